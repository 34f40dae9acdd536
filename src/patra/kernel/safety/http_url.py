r"""One parser of http URLs: what was checked is what is connected to.

Two parsers that read one text differently are a hole: `http://127.0.0.1\.good.test/` is a host below good.test to
one and 127.0.0.1 to the other. So the text is parsed once, strictly, and the result is used for the decision and for
the connection alike. What RFC 3986 does not allow in the authority is refused, not repaired.
"""

import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import quote

import msgspec

MAX_URL_CHARACTERS = 65_536

_URL = re.compile(
    r"(?P<scheme>https?)://(?P<authority>[^/?#]*)(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?(?:#.*)?", re.IGNORECASE
).fullmatch
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f-\xa0\\\u2028\u2029\ufeff]").search
_AUTHORITY = re.compile(
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_.])?)(?::(?P<port>[0-9]{1,5}))?"
)
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*").fullmatch
_LONE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_SAFE = "%/@:!$&'()*+,;=-._~"


class UrlInvalidError(ValueError):
    """The text is not an http URL, or one that parsers could read differently. The message does not repeat the text."""


class UrlUserError(UrlInvalidError):
    """The URL carries a user name or a password."""


class HttpUrl(msgspec.Struct, frozen=True, kw_only=True):
    """A URL in its parts. `host` is in small letters, an IPv6 address in brackets."""

    scheme: str
    host: str
    port: int | None
    path: str
    query: str | None

    @property
    def netloc(self) -> str:
        return self.host if self.port is None else f"{self.host}:{self.port}"

    @property
    def origin(self) -> tuple[str, str, int]:
        return self.scheme, self.host, self.port or {"http": 80, "https": 443}[self.scheme]

    @property
    def request_uri(self) -> str:
        """Path and query as they go over the wire."""
        path = _encode_text(self.path or "/", _SAFE)
        return path if self.query is None else f"{path}?{_encode_text(self.query, _SAFE + '?')}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.netloc}{self.request_uri}"


def parse_http_url(text: str) -> HttpUrl:
    """The parts of an absolute http or https URL; raises `UrlInvalidError`."""
    if len(text) > MAX_URL_CHARACTERS:
        raise UrlInvalidError(f"more than {MAX_URL_CHARACTERS} characters")
    if _FORBIDDEN(text):
        raise UrlInvalidError("white space, a control character or a backslash")
    match = _URL(text)
    if match is None:
        raise UrlInvalidError("no http or https URL")
    if "@" in match["authority"]:
        raise UrlUserError("a user name or password")
    host, port = _host_and_port(match["authority"])
    return HttpUrl(scheme=match["scheme"].lower(), host=host, port=port, path=match["path"], query=match["query"])


@lru_cache(maxsize=64)  # a source asks the same host again and again
def _host_and_port(text: str) -> tuple[str, int | None]:
    authority = _AUTHORITY.fullmatch(text)
    if authority is None:
        raise UrlInvalidError("no host name or address, or no port")
    port = int(authority["port"]) if authority["port"] else None
    if port is not None and not 0 < port < 65_536:
        raise UrlInvalidError("no port")
    return _host(authority["host"]), port


def _host(text: str) -> str:
    """The host in small letters; a number that only some resolvers take for an address is refused."""
    if text.startswith("["):
        try:
            return f"[{IPv6Address(text[1:-1])}]"
        except ValueError as error:
            raise UrlInvalidError("no IPv6 address") from error
    host = text.lower()
    if ".." in host:
        raise UrlInvalidError("an empty part of the host name")
    if _NUMBER(host.rstrip(".").rpartition(".")[2]):
        try:
            return str(IPv4Address(host))
        except ValueError as error:
            raise UrlInvalidError("no IPv4 address") from error
    return host


def _encode_text(text: str, safe: str) -> str:
    return quote(_LONE_PERCENT.sub("%25", text), safe=safe)
