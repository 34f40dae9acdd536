"""Events go in, signed HTTP requests come out: an endpoint of somebody else's as a consumer group.

The signature is that of Standard Webhooks: `webhook-id` (the `event_id`), `webhook-timestamp`, and `webhook-signature`
over `id.timestamp.body` with HMAC-SHA256. The body is the CloudEvent in structured mode. Any answer but 2xx is a
failure: retried by the type's policy, then a dead letter; 410 says that no retry can help.
"""

import base64
import hmac
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias
from urllib.parse import urlsplit

import msgspec

from patra.bus.bus import Bus
from patra.bus.cloudevents import STRUCTURED, structured
from patra.bus.consumer import Consumer, Event, Hold, Kind, Poison
from patra.bus.envelope import Refused
from patra.bus.reasons import R
from patra.bus.store import groups
from patra.bus.versions import VersionRange
from patra.kernel.clock import SECOND, Clock
from patra.kernel.db import Tx
from patra.kernel.errors import Transient
from patra.kernel.redact import redact_url

PREFIX = "webhook."
SECRET = "whsec_"  # noqa: S105  a mark in front of secrets, none itself
TOLERANCE = 300 * SECOND
CONCURRENCY = 4  # calls of one endpoint at a time
SMALL = 64 * 1024

Post: TypeAlias = Callable[[str, Mapping[str, str], bytes], int]
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,40}\Z")


class WebhookFailed(Transient):
    """The endpoint did not take the event."""


def new_secret() -> str:
    return SECRET + base64.b64encode(secrets.token_bytes(32)).decode()


def signature(secret: str, event_id: str, timestamp: int, body: bytes) -> str:
    """`v1,` and the HMAC; `timestamp` in seconds."""
    key = base64.b64decode(secret.removeprefix(SECRET))
    digest = hmac.digest(key, f"{event_id}.{timestamp}.".encode() + body, "sha256")
    return f"v1,{base64.b64encode(digest).decode()}"


def verified(secret: str, headers: Mapping[str, str], body: bytes, now: int) -> bool:
    """What a receiver does: compare the signature in constant time, and refuse old requests."""
    stamp, event_id = headers.get("webhook-timestamp", ""), headers.get("webhook-id", "")
    if not stamp.isdecimal() or abs(int(stamp) * SECOND - now) > TOLERANCE:
        return False
    expected = signature(secret, event_id, int(stamp), body)
    return any(hmac.compare_digest(expected, given) for given in headers.get("webhook-signature", "").split(" "))


def request(secret: str, event: Event, now: int) -> tuple[dict[str, str], bytes]:
    """Headers and body of one call."""
    body = msgspec.json.encode(structured(event.envelope))
    stamp = now // SECOND
    headers = {
        "content-type": f"{STRUCTURED}; charset=utf-8",
        "webhook-id": event.event_id,
        "webhook-timestamp": str(stamp),
        "webhook-signature": signature(secret, event.event_id, stamp, body),
    }
    return headers, body


def post(seconds: float = 10.0) -> Post:
    """The network: one connection pool, no redirects (they could lead anywhere), bounded in time.

    The status is the answer. What of a body came along with it is read; a connection on which more of it would follow
    is not used again, since the next answer would begin with the rest.
    """
    import urllib3  # noqa: PLC0415  only a process that calls webhooks needs it

    pool = urllib3.PoolManager(maxsize=CONCURRENCY, timeout=urllib3.Timeout(total=seconds), retries=False)

    def call(url: str, headers: Mapping[str, str], body: bytes) -> int:
        try:
            answer = pool.request("POST", url, body=body, headers=headers, redirect=False, preload_content=False)
        except urllib3.exceptions.HTTPError as error:
            raise WebhookFailed(R.WEBHOOK_UNREACHABLE, f"{redact_url(url)}: {type(error).__name__}") from error
        with suppress(urllib3.exceptions.HTTPError):
            answer.read1(SMALL, decode_content=False)  # whole, it goes back into the pool
        answer.close()
        return answer.status

    return call


def caller(webhook: groups.Webhook, clock: Clock, send: Post) -> Callable[[Event, Hold], None]:
    """The long handler that calls an endpoint."""

    def call(event: Event, hold: Hold) -> None:
        del hold
        headers, body = request(webhook.secret, event, clock.now())
        status = send(webhook.url, headers, body)
        if status == 410:
            raise Poison(R.WEBHOOK_STATUS, "the endpoint is gone (410)")
        if not 200 <= status < 300:
            raise WebhookFailed(R.WEBHOOK_STATUS, f"the endpoint answered {status}")

    return call


def group(name: str) -> str:
    return PREFIX + name


def add(
    tx: Tx, bus: Bus, name: str, url: str, wanted: Mapping[str, VersionRange], *, by: str
) -> groups.Webhook | Refused:
    """Register an endpoint for some event types; gives it with its new secret, which is shown this once."""
    if not _NAME.match(name):
        return Refused(code=R.WEBHOOK_NAME, place="/name", detail="lower-case letters, digits, - and _, at most 41")
    if (wrong := _wrong_with(url)) is not None:
        return Refused(code=R.WEBHOOK_URL, place="/url", detail=wrong)
    for event_type, versions in wanted.items():
        kind = bus.catalogue.types.get(event_type)
        if kind is None or not versions.majors(set(kind.contracts)):
            return Refused(code=R.TYPE_UNKNOWN, place=f"/types/{event_type}", detail="no such type and version")
    if not wanted:
        return Refused(code=R.TYPE_UNKNOWN, place="/types", detail="name at least one event type")
    now = bus.clock.now()
    made = groups.Webhook(name=name, url=url, secret=new_secret(), created_by=by, created_at=now)
    if not groups.add_webhook(tx, made):
        return Refused(code=R.WEBHOOK_EXISTS, place="/name", detail=f"there is a webhook {name} already")
    groups.lock(tx)
    for event_type, versions in wanted.items():
        bus.subscribe(tx, group(name), event_type, versions, False, now)
    detail = {"url": redact_url(url), "types": sorted(wanted)}
    groups.record_act(tx, by=by, act="webhook_add", subject=group(name), detail=detail, now=now)
    return made


def _wrong_with(url: str) -> str | None:
    """No name and no password stand in it. Parameters that tell may, and are masked where webhooks are shown."""
    try:
        parts = urlsplit(url)
        sound = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        sound = False
    else:
        if sound and parts.username is not None:
            return "without a name or password, which all would read; the signature tells who sends"
    return None if sound and url.isprintable() and " " not in url else "an http or https URL"


def remove(tx: Tx, bus: Bus, name: str, *, by: str) -> bool:
    """Forget an endpoint and its group; its dead letters stay. False, and nothing is done, where there is none."""
    groups.lock(tx)
    if not groups.remove_webhook(tx, name):
        return False
    found = groups.find(tx, group(name))
    if found is not None:
        groups.remove(tx, found.group_id)
    groups.record_act(tx, by=by, act="webhook_remove", subject=group(name), detail={}, now=bus.clock.now())
    return True


def consumers(
    webhook: groups.Webhook, subscriptions: Sequence[tuple[str, str, VersionRange]], clock: Clock, send: Post
) -> list[Consumer]:
    """The consumers of an endpoint, one a subscription."""
    handler = caller(webhook, clock, send)
    return [
        Consumer(
            event_type=event_type,
            group=name,
            versions=versions,
            kind=Kind.LONG,
            handler=handler,
            concurrency=CONCURRENCY,
            lease=60 * SECOND,
        )
        for name, event_type, versions in subscriptions
        if name == group(webhook.name)
    ]
