"""Turns a credential's references into its secrets, for the request alone (ch. 3.8, 4.2, ruling of 14.10).

The registry holds references (`env:NAME`, `file:PATH`, `keyring:SERVICE/USER`); secrets are read when they are needed
and kept nowhere. OAuth2 client credentials are exchanged for a token, which is renewed before it ends. What signs
requests in a way of its own is a hook of the program, found by its name.
"""

import base64
import hmac
import os
import threading
from collections.abc import Callable, Mapping
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlencode

import msgspec

from patra.ingest.http.client import Answer, Exchange, Outgoing
from patra.ingest.http.request import Request
from patra.ingest.packs.extensions import ExtensionPoint, load_extension
from patra.ingest.packs.secret_grants import WITHHELD
from patra.ingest.packs.sections import Credential
from patra.ingest.packs.spec import Leg
from patra.ingest.vocabulary.codes import AuthType, ClientAuth
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.clock import SECOND, parse_duration
from patra.kernel.errors import Invalid
from patra.kernel.safety.excerpt import redacted_excerpt
from patra.kernel.safety.known_secrets import know_secret

SECRET_NAMES: dict[AuthType, tuple[str, ...]] = {
    AuthType.API_KEY: ("apiKey",),
    AuthType.BEARER: ("token",),
    AuthType.OAUTH2: ("clientId", "clientSecret"),
}


class NoSecret(msgspec.Struct, frozen=True, kw_only=True):
    """Why a request cannot be authenticated (L4)."""

    code: RunReason
    detail: str
    advice: str


Secrets = Mapping[str, str]


def resolve(reference: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """What a reference leads to; None where there is nothing."""
    kind, _, name = reference.partition(":")
    match kind:
        case "env":
            return environ.get(name, "").strip() or None
        case "file":
            try:
                return Path(name).read_text("utf-8").strip() or None
            except (OSError, UnicodeDecodeError):
                return None
        case "keyring":
            service, _, user = name.partition("/")
            try:
                library: Any = import_module("keyring")
            except ImportError:
                return None
            return cast("str | None", library.get_password(service, user)) or None
        case _:
            return None


def secrets_of(leg: Leg, credential: Credential | None, environ: Mapping[str, str] = os.environ) -> Secrets | NoSecret:
    """The secrets of a leg; none where it asks for none, or can do without and they are not there."""
    auth = leg.auth
    if auth.type is AuthType.NONE:
        return {}
    found: dict[str, str] = {}
    missing: list[str] = []
    for name, reference in (credential.secrets if credential else {}).items():
        value = resolve(reference, environ)
        if value is None:
            missing.append(reference)
        else:
            found[name] = know_secret(value)
    needed = SECRET_NAMES.get(auth.type, ())
    if credential is None and auth.credential_ref is not None:
        missing.append(auth.credential_ref)
    if missing or any(name not in found for name in needed):
        if auth.optional:
            return {}
        if withheld := [one.removeprefix(WITHHELD) for one in missing if one.startswith(WITHHELD)]:
            return NoSecret(
                code=RunReason.SECRET_WITHHELD,
                detail=f"the source of {leg.endpoint_code} may not read {', '.join(withheld)}",
                advice="`patra ingest secret allow SOURCE NAME` if it may, then lift the halt",
            )
        what = ", ".join(missing) or f"{auth.credential_ref} has no {' or '.join(needed)}"
        return NoSecret(
            code=RunReason.CREDENTIAL_MISSING,
            detail=f"the credential of {leg.endpoint_code} leads to nothing: {what}",
            advice="set what the reference names for this process, then lift the halt",
        )
    return found


def secret_names(leg: Leg, credential: Credential | None) -> tuple[str, ...]:
    """The names that templates may read as `${credential.name}`."""
    return tuple(credential.secrets) if credential else SECRET_NAMES.get(leg.auth.type, ())


class Token(msgspec.Struct, frozen=True):
    value: str
    until: int


class Tokens:
    """Access tokens by credential, shared by the threads of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tokens: dict[str, Token] = {}

    def get(self, key: str, now: int) -> str | None:
        with self._lock:
            token = self._tokens.get(key)
            return token.value if token is not None and now < token.until else None

    def keep(self, key: str, token: Token) -> None:
        know_secret(token.value)
        with self._lock:
            self._tokens[key] = token

    def forget(self, key: str) -> None:
        with self._lock:
            self._tokens.pop(key, None)


class CredentialHealth:
    """Which credentials of pools are set aside for now, shared by the threads of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._until: dict[str, int] = {}

    def set_aside(self, key: str, until: int) -> None:
        """Do not use a credential before `until`, unless there is no other."""
        with self._lock:
            self._until[key] = max(self._until.get(key, 0), until)

    def usable(self, key: str, now: int) -> bool:
        with self._lock:
            return self._until.get(key, 0) <= now


def token_request(leg: Leg, secrets: Secrets, hosts: tuple[str, ...]) -> Outgoing:
    """The request of the client credentials grant (RFC 6749 §4.4)."""
    oauth = leg.auth.oauth2
    fields = {"grant_type": "client_credentials"}
    if oauth.scopes:
        fields["scope"] = " ".join(oauth.scopes)
    if oauth.audience is not None:
        fields["audience"] = oauth.audience
    identity, secret = secrets.get("clientId", ""), secrets.get("clientSecret", "")
    headers = [("Accept", "application/json"), ("Content-Type", "application/x-www-form-urlencoded")]
    basic = base64.b64encode(f"{identity}:{secret}".encode()).decode()
    if oauth.client_auth is ClientAuth.BASIC:
        headers.append(("Authorization", f"Basic {basic}"))
    else:
        fields |= {"client_id": identity, "client_secret": secret}
    return Outgoing(
        method="POST",
        url=oauth.token_url,
        headers=tuple(headers),
        body=urlencode(fields).encode(),
        secrets=(secret, basic),
        hosts=hosts,
        allow_http=leg.http.allow_http,
        connect_timeout=leg.http.connect_timeout_ms / 1000,
        read_timeout=leg.http.read_timeout_ms / 1000,
        max_bytes=1_048_576,
    )


def token_of_hook(
    leg: Leg, hook: str, secrets: Secrets, hosts: tuple[str, ...], transmit: Callable[[Outgoing], Exchange], now: int
) -> Token | NoSecret:
    """The token that an extension gets: it is given the secrets, a way to ask declared hosts, and the base URL."""

    def send(method: str, url: str, headers: Mapping[str, str], body: bytes | None = None) -> Exchange:
        http = leg.http
        return transmit(
            Outgoing(
                method=method,
                url=url,
                headers=tuple(headers.items()),
                body=body,
                secrets=tuple(secrets.values()),
                hosts=hosts,
                allow_http=http.allow_http,
                connect_timeout=http.connect_timeout_ms / 1000,
                read_timeout=http.read_timeout_ms / 1000,
                max_bytes=1_048_576,
            )
        )

    try:
        value, seconds = load_extension(ExtensionPoint.AUTHENTICATION, hook)(secrets, send, leg.http.base_url)
        return Token(str(value), now + int(float(seconds) * SECOND))
    except Exception as error:  # noqa: BLE001  other people's code; its message may hold the secret
        why = error.detail if isinstance(error, Invalid) else type(error).__name__
        return NoSecret(
            code=RunReason.TOKEN_REFUSED,
            detail=f"the token hook {hook!r} failed: {why}",
            advice="check the credential and the hook, then lift the halt",
        )


class _Grant(msgspec.Struct):
    access_token: str
    expires_in: float | str | None = None


def grant_token(exchange: Exchange, skew: str, now: int) -> Token | NoSecret | None:
    """The token of an answer; NoSecret where the client is refused, None where it is worth another attempt."""
    if not isinstance(exchange, Answer) or exchange.status == 429 or exchange.status >= 500:
        return None
    if exchange.status != 200:
        detail = redacted_excerpt(exchange.body, 200)
        return NoSecret(
            code=RunReason.TOKEN_REFUSED,
            detail=f"the token endpoint answers {exchange.status}: {detail}",
            advice="check client id, secret and scopes with the provider, then lift the halt",
        )
    try:
        grant = msgspec.json.decode(exchange.body, type=_Grant)
        life = int(float(grant.expires_in or 3600) * SECOND)
    except (msgspec.DecodeError, ValueError):
        return None
    return Token(grant.access_token, now + max(life - parse_duration(skew), life // 2))


def hmac_sha256(request: Request, secrets: Secrets, now: int) -> Request:
    """`X-Timestamp`, and in `X-Signature` the HMAC-SHA256 of timestamp, method, URL and body, in hex."""
    stamp = str(now // SECOND)
    text = "\n".join([stamp, request.method, request.url, sha256(request.body or b"").hexdigest()])
    digest = hmac.new(secrets.get("secret", "").encode(), text.encode(), sha256).hexdigest()
    headers = (*request.headers, ("X-Timestamp", stamp), ("X-Signature", digest))
    if "keyId" in secrets:
        headers = (*headers, ("X-Key-Id", secrets["keyId"]))
    return msgspec.structs.replace(request, headers=headers)
