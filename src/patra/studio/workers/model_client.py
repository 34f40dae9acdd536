"""Turns a request to a model server into its answer, or a code that says whether to ask again (C§2.5
retryable).

| answer | code | again |
|---|---|---|
| 2xx | | |
| 408, 425, 429, 5xx, no connection, an answer that takes longer than `timeout_seconds` | `s_server_unavailable` | yes |
| other 4xx (a 403 too) | `s_server_refused` | no: the next profile is asked |
| 2xx that is not what was asked | `s_server_answer_invalid` | no |
| nothing was asked: the key refers to nothing | `s_key_missing` | no |
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import urllib3

from patra.kernel.errors import Permanent, Transient
from patra.kernel.safety.egress import pool_for
from patra.kernel.safety.excerpt import redacted_excerpt
from patra.kernel.safety.known_secrets import know_secret
from patra.kernel.safety.networks import networks_of
from patra.studio.film.ffmpeg import Interrupted
from patra.studio.profiles import Profile
from patra.studio.vocabulary.reasons import Reason
from patra.studio.workers.job_request import Stop

_AGAIN = frozenset({408, 425, 429})
LARGEST_JSON = 16 * 1024 * 1024
LARGEST = 512 * 1024 * 1024
PIECE = 1 << 16


def post_json(profile: Profile, path: str, body: dict[str, Any], stop: Stop) -> Any:
    """The decoded JSON answer."""
    with _send_request(profile, path, body) as response:
        data = b"".join(_pieces(profile, response, LARGEST_JSON, stop))
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise Permanent(Reason.SERVER_ANSWER_INVALID, f"{profile.profile_id}: no JSON: {error}") from error


def post_for_file(profile: Profile, path: str, body: dict[str, Any], target: Path, stop: Stop) -> str:
    """Stream the answer into a file; gives its media type."""
    with _send_request(profile, path, body) as response:
        size = 0
        with target.open("wb") as file:
            for piece in _pieces(profile, response, LARGEST, stop):
                size += len(piece)
                file.write(piece)
        expected = response.headers.get("Content-Length")
        if size == 0 or (expected is not None and size != int(expected)):
            raise Transient(Reason.SERVER_UNAVAILABLE, f"{profile.profile_id}: the answer broke off after {size} bytes")
        return response.headers.get("Content-Type", "").partition(";")[0].strip().lower()


def _pieces(profile: Profile, response: Any, most: int, stop: Stop) -> Iterator[bytes]:
    """The answer as it comes, bounded in size and time: bytes that drip in, each in time, keep nobody's worker."""
    until, size = time.monotonic() + profile.timeout_seconds, 0
    while piece := response.read1(PIECE):
        size += len(piece)
        if size > most:
            raise Permanent(Reason.SERVER_ANSWER_INVALID, f"{profile.profile_id}: more than {most} bytes")
        if stop():
            raise Interrupted
        if time.monotonic() > until:
            detail = f"{profile.profile_id}: the answer took longer than {profile.timeout_seconds:g} s"
            raise Transient(Reason.SERVER_UNAVAILABLE, detail)
        yield piece


class _Sent:
    """An answer that is given back to its pool whatever happens, with its errors in our words."""

    def __init__(self, profile: Profile, response: Any, pool: urllib3.PoolManager) -> None:
        self._profile = profile
        self._response = response
        self._pool = pool

    def __enter__(self) -> Any:
        return self._response

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._response.release_conn()
        self._pool.clear()
        if isinstance(error, urllib3.exceptions.HTTPError):
            raise Transient(Reason.SERVER_UNAVAILABLE, f"{self._profile.profile_id}: {type(error).__name__}") from error


def _send_request(profile: Profile, path: str, body: dict[str, Any]) -> _Sent:
    headers = {"Content-Type": "application/json"}
    if profile.api_key:
        headers["Authorization"] = f"Bearer {_secret(profile)}"
    timeout = urllib3.Timeout(connect=10, read=profile.timeout_seconds)
    pool = pool_for(profile.url, networks_of(profile.networks), retries=False, timeout=timeout)
    try:
        response = pool.request(
            "POST",
            profile.url.rstrip("/") + path,
            body=msgspec.json.encode(body),
            headers=headers,
            preload_content=False,
            redirect=False,
        )
    except urllib3.exceptions.HTTPError as error:
        raise Transient(Reason.SERVER_UNAVAILABLE, f"{profile.profile_id}: {type(error).__name__}") from error
    if 200 <= response.status < 300:
        return _Sent(profile, response, pool)
    words = redacted_excerpt(response.read(2000), 500)
    response.release_conn()
    detail = f"{profile.profile_id} answered {response.status}: {words}"
    if response.status in _AGAIN or response.status >= 500:
        raise Transient(Reason.SERVER_UNAVAILABLE, detail)
    raise Permanent(Reason.SERVER_REFUSED, detail)


def _secret(profile: Profile) -> str:
    """The key, or what it refers to, looked up for each request: it may be changed meanwhile."""
    kind, _, name = profile.api_key.partition(":")
    try:
        found = {"env": lambda: os.environ.get(name, ""), "file": lambda: Path(name).read_text("utf-8")}[kind]().strip()
    except KeyError:
        return know_secret(profile.api_key)
    except (OSError, UnicodeDecodeError):
        found = ""
    if not found:
        detail = f"{profile.profile_id}: its key refers to {profile.api_key}, which leads to nothing"
        raise Permanent(Reason.KEY_MISSING, detail)
    return know_secret(found)
