"""Who is asking, from a request's headers, or the reason why they may not.

Two modes (`app.exposure`). With tokens configured, a bearer token says who it is: one of the settings, or one that the
store keeps (`app.tokens`). With none, on a loopback address and with no proxy in front, every caller of the port is
admin. In both modes a request must be addressed to a name of this installation (no DNS rebinding) and must not come
from a page of another origin (no CSRF); in the open mode it must not have passed a proxy either, since a proxy lets
others in.
"""

import hmac
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

import msgspec

from patra.app.access.actor import Actor, Role
from patra.app.access.tokens import StoredTokens, TokenRefusal
from patra.app.configuration.exposure import Exposure, check_exposure, exposure, is_loopback, plain_host
from patra.app.configuration.secrets import is_reference, resolve
from patra.app.configuration.settings import WebSettings
from patra.kernel.errors import ConfigInvalid
from patra.kernel.telemetry import get_logger
from patra.web.problem import Problem

log = get_logger()

LOOK_SECONDS = 2.0
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
SHORTEST_TOKEN = 20
LOCAL = Actor(name="local", role=Role.ADMIN)
HASH = "sha256:"
PROXY_HEADERS = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via")
"""What proxies add to a request: in the open mode its presence says that others are let in."""


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """A token as it is kept: never itself, only its hash."""

    digest: bytes
    actor: Actor


class Gate:
    """Decides on every request who is asking."""

    def __init__(
        self,
        tokens: Iterable[Token],
        exposure: Exposure,
        source: "Callable[[], list[Token]] | None" = None,
        stored: StoredTokens | None = None,
    ) -> None:
        self.tokens = tuple(tokens)
        self.stored = stored
        self.exposure = exposure
        self.open = exposure.open
        self._source = source

    def reload(self) -> bool:
        """Read the tokens again, from their files and variables; where one is malformed, those known stay in force."""
        if self._source is None:
            return False
        try:
            self.tokens = tuple(self._source())
        except ConfigInvalid as error:
            log.warning("tokens_not_reloaded", place=error.place, code=error.code, detail=error.detail)
            return False
        log.info("tokens_reloaded", tokens=len(self.tokens))
        return True

    def refusal(
        self, method: str, headers: Mapping[str, str], server: str = "", *, probe: bool = False
    ) -> Problem | None:
        """Why no caller at all may ask this; `server` is the address that the request reached.

        A `probe` asks whether the process lives: an orchestrator names any address of it, of the pod or before a NAT.
        """
        header = headers.get("host", "")
        if not self._is_ours(_host_of(header), server, probe=probe):
            return Problem(
                421,
                "host_not_allowed",
                "Patra is not known under this name",
                f"The Host header is {header!r}; call 127.0.0.1 or localhost, or name the host in web.public_url "
                "or web.allowed_hosts.",
            )
        if self.open and any(name in headers for name in PROXY_HEADERS):
            return Problem(
                403,
                "proxy_not_configured",
                "Without tokens Patra takes nothing from a proxy",
                "The request has passed a proxy, so others may reach it: configure tokens and web.public_url.",
            )
        origin = headers.get("origin")
        foreign = origin is not None and not self._is_own_origin(origin, header)
        if foreign or (method not in SAFE_METHODS and headers.get("sec-fetch-site") in {"cross-site", "same-site"}):
            return Problem(
                403,
                "cross_origin_refused",
                "Patra takes no requests from pages of other origins",
                "A page of another site sent this request; web.public_url names the origin of Patra's own pages.",
            )
        return None

    def _is_ours(self, host: str, server: str, *, probe: bool) -> bool:
        if is_loopback(host) or plain_host(host) in self.exposure.names:
            return True
        if self.open:
            return False
        named, reached = (
            _address(host),
            _address(server),
        )  # an address cannot be rebound by DNS: a caller that names it has reached it
        return named is not None and (probe or named == reached)

    def _is_own_origin(self, origin: str, host: str) -> bool:
        scheme, mark, rest = origin.lower().partition("://")
        if self.exposure.origin and origin.lower() == self.exposure.origin:
            return True
        return bool(mark) and scheme in {"http", "https"} and rest == host.lower()

    def actor(self, headers: Mapping[str, str]) -> Actor | None:
        """Who is asking by a token of the settings, or None when they do not say or are not known there."""
        if self.open:
            return LOCAL
        presented = bearer(headers)
        return self.configured_actor(sha256(presented.encode()).digest()) if presented else None

    def configured_actor(self, digest: bytes) -> Actor | None:
        """Whose token of the settings has this hash."""
        found: Actor | None = None
        for token in self.tokens:  # all of them, always: the time taken says nothing about which one matched
            if hmac.compare_digest(digest, token.digest):
                found = token.actor
        return found

    def holder(self, digest: bytes) -> Actor | None:
        """Whose token, of the settings or in force in the store, has this hash; asks the store."""
        found = self.configured_actor(digest)
        if found is None and self.stored is not None:
            kept = self.stored.holder_of_hash(digest.hex())
            found = kept if isinstance(kept, Actor) else None
        return found

    def admit(
        self, needed: Role | None, headers: Mapping[str, str], kept: Actor | TokenRefusal | None = None
    ) -> Actor | Problem | None:
        """The actor if their role suffices, None for anyone where no role is needed, else the refusal.

        `kept` is what the store says of a token that the settings do not know.
        """
        actor = self.actor(headers) or (kept if isinstance(kept, Actor) else None)
        if needed is None:
            return actor
        if actor is None:
            code = "token_unknown" if "authorization" in headers else "token_missing"
            code = kept.code if isinstance(kept, TokenRefusal) else code
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


def gate(settings: WebSettings, stored: StoredTokens | None = None) -> Gate:
    """Read the configured tokens; a malformed one stops the start."""
    return Gate(tokens_of(settings), exposure(settings), lambda: tokens_of(settings), stored)


def bearer(headers: Mapping[str, str]) -> str:
    """The bearer token that a request presents, empty where it presents none."""
    scheme, _, presented = headers.get("authorization", "").partition(" ")
    return presented.strip() if scheme.lower() == "bearer" else ""


def tokens_of(settings: WebSettings) -> list[Token]:
    """The tokens that the settings name, read now."""
    configured = {
        Role.VIEWER: settings.viewer_tokens,
        Role.OPERATOR: settings.operator_tokens,
        Role.ADMIN: settings.admin_tokens,
        Role.PUBLISHER: settings.publisher_tokens,
    }
    return [
        _token(text, role, f"web.{role.value}_tokens[{index}]")
        for role, texts in configured.items()
        for index, text in enumerate(texts)
    ]


def token_files(settings: WebSettings) -> list[Path]:
    """The files that tokens are read from."""
    entries = (
        *settings.viewer_tokens,
        *settings.operator_tokens,
        *settings.publisher_tokens,
        *settings.admin_tokens,
    )
    references = [entry if is_reference(entry) else entry.partition("=")[2] for entry in entries]
    return [Path(reference.removeprefix("file:")) for reference in references if reference.startswith("file:")]


class TokenFiles:
    """Notices that a token file was changed, so that a running process goes by it within two seconds."""

    def __init__(self, gate: Gate, files: Sequence[Path], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._gate = gate
        self._files = files
        self._monotonic = monotonic
        self._looked_at = monotonic()
        self._marks = self._read_marks()

    def look(self) -> None:
        """Read the tokens again where a file of theirs was written since; looks every two seconds at most."""
        if not self._files or self._monotonic() - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = self._monotonic()
        marks = self._read_marks()
        if marks != self._marks:
            self._marks = marks
            self._gate.reload()

    def _read_marks(self) -> list[tuple[int, int, int] | None]:
        return [_mark(file) for file in self._files]


def _mark(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def check_address(settings: WebSettings) -> None:
    """Refuse to listen where others come in while no admin token is configured."""
    check_exposure(settings)


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


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """An address, IPv4 also where a socket of IPv6 shows it as its own."""
    try:
        found = ip_address(text)
    except ValueError:
        return None
    return found.ipv4_mapped or found if isinstance(found, IPv6Address) else found


def _host_of(header: str) -> str:
    """The name in a Host header, without the port: `[::1]:8642` gives `::1`."""
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]
