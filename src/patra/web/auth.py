"""A request's headers go in, who is asking comes out, or the reason why they may not.

Two modes. With tokens configured, a bearer token says who it is. With none, on a loopback address, whoever reaches the
port is admin ("open on loopback"); since a web page in the same machine's browser reaches it too, that mode takes only
requests addressed to a loopback name (no DNS rebinding) and no writes that come from another origin (no CSRF).
"""

import hmac
from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from ipaddress import ip_address
from urllib.parse import urlsplit

import msgspec

from patra.app.actor import Actor, Role
from patra.app.references import is_reference, resolve
from patra.app.settings import WebSettings
from patra.kernel.errors import ConfigInvalid
from patra.web.problem import Problem

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
SHORTEST_TOKEN = 20
LOCAL = Actor(name="local", role=Role.ADMIN)
HASH = "sha256:"


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """A token as it is kept: never itself, only its hash."""

    digest: bytes
    actor: Actor


class Gate:
    """Decides on every request who is asking."""

    def __init__(self, tokens: Iterable[Token]) -> None:
        self.tokens = tuple(tokens)
        self.open = not self.tokens

    def refusal(self, method: str, headers: Mapping[str, str]) -> Problem | None:
        """What holds for every path in the open mode."""
        if not self.open:
            return None
        host = headers.get("host", "")
        if not is_loopback(_host_of(host)):
            return Problem(
                421,
                "host_not_allowed",
                "Without tokens Patra answers only to loopback names",
                f"The Host header is {host!r}; call 127.0.0.1 or localhost, or configure tokens.",
            )
        if method in SAFE_METHODS:
            return None
        origin = headers.get("origin")
        foreign = origin is not None and urlsplit(origin).netloc != host
        if foreign or headers.get("sec-fetch-site") in {"cross-site", "same-site"}:
            return Problem(
                403,
                "cross_origin_refused",
                "Without tokens Patra takes no writes from other origins",
                "A page of another site sent this request; configure tokens to allow other clients.",
            )
        return None

    def actor(self, headers: Mapping[str, str]) -> Actor | None:
        """Who is asking, or None when they do not say or are not known."""
        if self.open:
            return LOCAL
        scheme, _, presented = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        digest = sha256(presented.strip().encode()).digest()
        found: Actor | None = None
        for token in self.tokens:  # all of them, always: the time taken says nothing about which one matched
            if hmac.compare_digest(digest, token.digest):
                found = token.actor
        return found

    def admit(self, needed: Role | None, headers: Mapping[str, str]) -> Actor | Problem | None:
        """The actor if their role suffices, None for anyone where no role is needed, else the refusal."""
        actor = self.actor(headers)
        if needed is None:
            return actor
        if actor is None:
            code = "token_unknown" if "authorization" in headers else "token_missing"
            return Problem(
                401,
                code,
                "A bearer token is needed",
                f"Send `Authorization: Bearer …` with a token of the role {needed.value}.",
                {},
                {"WWW-Authenticate": 'Bearer realm="patra"'},
            )
        if not actor.role.allows(needed):
            return Problem(
                403,
                "role_insufficient",
                "The token's role does not suffice",
                f"This needs the role {needed.value}; the token's is {actor.role.value}.",
            )
        return actor


def gate(settings: WebSettings) -> Gate:
    """Read the configured tokens; a malformed one stops the start."""
    configured = {
        Role.VIEWER: settings.viewer_tokens,
        Role.OPERATOR: settings.operator_tokens,
        Role.ADMIN: settings.admin_tokens,
    }
    return Gate(
        _token(text, role, f"web.{role.value}_tokens[{index}]")
        for role, texts in configured.items()
        for index, text in enumerate(texts)
    )


def check_address(settings: WebSettings) -> None:
    """Refuse to listen beyond this machine while anyone could come in."""
    if is_loopback(settings.host) or settings.admin_tokens:
        return
    raise ConfigInvalid(
        "config_bind_needs_token",
        f"{settings.host} is reachable from other machines, and no admin token is configured",
        place="web.host",
        advice="make one with `patra token new admin` and set web.admin_tokens, or listen on 127.0.0.1",
    )


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _token(text: str, role: Role, place: str) -> Token:
    name, mark, reference = ("", "", text) if is_reference(text) or text.startswith(HASH) else text.partition("=")
    secret = resolve(reference, place) if is_reference(reference) else reference
    if secret.startswith(HASH):
        digest = _digest(secret.removeprefix(HASH), place)
    elif secret is reference:
        raise ConfigInvalid(
            "config_token_in_clear",
            "a token stands here in clear text"
            if not mark
            else "what follows the name is neither a hash nor a reference",
            place=place,
            advice=f"write sha256:HEX, env:NAME or file:PATH; `patra token new {role.value}` makes one",
        )
    elif len(secret) < SHORTEST_TOKEN:
        raise ConfigInvalid(
            "config_token_too_short",
            f"the token has fewer than {SHORTEST_TOKEN} characters",
            place=place,
            advice=f"`patra token new {role.value}` makes a good one",
        )
    else:
        digest = sha256(secret.encode()).digest()
    return Token(digest=digest, actor=Actor(name=name or f"{role.value}-{digest.hex()[:8]}", role=role))


def _digest(text: str, place: str) -> bytes:
    try:
        digest = bytes.fromhex(text)
    except ValueError:
        digest = b""
    if len(digest) != 32:
        raise ConfigInvalid(
            "config_token_hash", "sha256: is not followed by 64 hex digits", place=place, advice="see `patra token new`"
        )
    return digest


def _host_of(header: str) -> str:
    """The name in a Host header, without the port: `[::1]:8642` gives `::1`."""
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]
