"""Turns a rendered request and a permit into an answer, or the kind of its failure (ch. 4.2, rulings I8).

The one place that opens connections. It sends what it is given, once: redirects come back as answers, and a caller that
follows one asks for another permit (`redirected`). Bodies are bounded before and after decompression. A secret leaves
in the request itself and nowhere else: requests show themselves without it, and failures are scrubbed of it.
"""

import ssl
import threading
import time
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from enum import StrEnum
from hashlib import sha256
from http.client import HTTPException, IncompleteRead, InvalidURL
from socket import gaierror
from typing import Any, TypeAlias
from urllib.parse import quote, quote_plus, urljoin

import msgspec
import urllib3
from urllib3 import exceptions as wrong

from patra.ingest.http.content_encoding import TooLargeError, accepted_encodings, decoder
from patra.ingest.packs.checks import on_hosts
from patra.ingest.ratelimit.limiter import Permit
from patra.kernel.safety.egress import guard
from patra.kernel.safety.http_url import HttpUrl, UrlInvalidError, UrlUserError, parse_http_url
from patra.kernel.safety.networks import Network
from patra.kernel.safety.redact import MASK, redact_text, redact_url
from patra.kernel.telemetry import trace_headers

CHUNK_BYTES = 65_536
MAX_EXCHANGE_S = 300.0  # seconds for one exchange, however slowly its bytes drip


class Fault(StrEnum):
    """What can go wrong without an answer; the names of `retry.retryableErrors`."""

    TIMEOUT = "timeout"
    DNS = "dns"
    TLS = "tls"
    CONNECT = "connect"
    RESET = "reset"
    TRUNCATED = "truncated"
    BAD_ENCODING = "bad_encoding"
    TOO_LARGE = "too_large"
    UNSENDABLE = "unsendable"
    HOST_REFUSED = "host_refused"
    REDIRECT_REFUSED = "redirect_refused"


class Outgoing(msgspec.Struct, frozen=True, kw_only=True):
    """A request as it goes over the wire. `secrets` are the values in it that nobody else may see."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    secrets: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    allow_http: bool = False
    connect_timeout: float = 10.0
    read_timeout: float = 30.0
    max_bytes: int = 64 * 1024 * 1024
    compression: bool = True
    proxy: str | None = None
    follow: bool = False
    hops: int = 0
    max_hops: int = 3

    def __repr__(self) -> str:
        return f"Outgoing({self.method} {self.shown_url})"

    @property
    def shown_url(self) -> str:
        return redact_url(scrub_text(self.url, self.secrets))

    @property
    def body_hash(self) -> str | None:
        """sha256 of the body, its secrets masked."""
        if self.body is None:
            return None
        return sha256(
            scrub_text(self.body.decode("utf-8", "surrogateescape"), self.secrets).encode("utf-8", "surrogateescape")
        ).hexdigest()


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What the provider sent: header names in small letters, the body decoded."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str
    elapsed: int
    wire_bytes: int

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """No answer; `detail` is for people and free of secrets."""

    fault: Fault
    detail: str
    elapsed: int = 0


Exchange: TypeAlias = Answer | Failure


def scrub_text(text: str, secrets: Iterable[str]) -> str:
    """The text without the secrets, in whatever encoding of URLs they stand."""
    for secret in secrets:
        for form in {secret, quote(secret, safe=""), quote(secret), quote_plus(secret)}:
            if form:
                text = text.replace(form, MASK)
    return text


def with_tracing(headers: Iterable[tuple[str, str]], correlation: str) -> tuple[tuple[str, str], ...]:
    """The headers with `X-Ingest-Correlation-Id` and a W3C trace context (ch. 14.2, 14.6)."""
    context = trace_headers()
    if not context:
        digest = sha256(correlation.encode()).hexdigest()
        context = {"traceparent": f"00-{digest[:32]}-{digest[32:48]}-00"}
    return (*headers, ("X-Ingest-Correlation-Id", correlation), *context.items())


def follow_redirect(request: Outgoing, answer: Answer) -> Outgoing | Failure | None:
    """Where a redirect leads: the next request, why it is not followed, or None where the answer is not a redirect."""
    if answer.status not in {301, 302, 303, 307, 308} or "location" not in answer.headers:
        return None
    location = answer.headers["location"]
    shown = redact_url(scrub_text(location, request.secrets))
    try:
        here = parse_http_url(request.url)
        there = parse_http_url(urljoin(str(here), location))
    except ValueError as error:
        return Failure(fault=Fault.REDIRECT_REFUSED, detail=f"a redirect to what is not a URL to follow: {error}")
    if not request.follow:
        return Failure(fault=Fault.REDIRECT_REFUSED, detail=f"a redirect to {shown}, and the pack follows none")
    if request.method not in {"GET", "HEAD"}:
        return Failure(fault=Fault.REDIRECT_REFUSED, detail=f"a redirect of {request.method} to {shown}")
    if request.hops >= request.max_hops:
        return Failure(
            fault=Fault.REDIRECT_REFUSED, detail=f"more than {request.max_hops} redirects, the last to {shown}"
        )
    headers = request.headers
    if there.origin != here.origin:  # another host does not get what was meant for this one
        headers = tuple(
            (name, value)
            for name, value in headers
            if name.lower() not in {"authorization", "cookie"} and scrub_text(value, request.secrets) == value
        )
    return msgspec.structs.replace(request, url=str(there), headers=headers, hops=request.hops + 1)


def checked_target(request: Outgoing) -> HttpUrl | Failure:
    """The URL in its parts, which are connected to as they were checked, or why it must not be asked."""
    try:
        url = parse_http_url(request.url)
    except UrlUserError:
        return Failure(fault=Fault.HOST_REFUSED, detail=f"a URL with a user name: {request.shown_url}")
    except UrlInvalidError as error:
        return Failure(fault=Fault.UNSENDABLE, detail=f"no URL that can be asked: {error}")
    if not on_hosts(url.netloc, list(request.hosts)):
        return Failure(fault=Fault.HOST_REFUSED, detail=f"{url.netloc} is not among the declared hosts")
    if url.scheme != "https" and not request.allow_http:
        detail = f"{request.shown_url} is not https, and the pack does not allow that"
        return Failure(fault=Fault.HOST_REFUSED, detail=detail)
    return url


class Transport:
    """Connections to providers, kept open and shared by the threads of a process.

    A host name of a pack leads to public addresses, and to those of `networks`. An address that the pack itself
    names is asked: a reader of the pack sees it.
    """

    def __init__(self, *, connections: int = 16, networks: Sequence[Network] = ()) -> None:
        self._connections = connections
        self._networks = networks
        self._lock = threading.Lock()
        self._pools: dict[str | None, urllib3.PoolManager] = {}

    def send(self, request: Outgoing, permit: Permit) -> Exchange:
        """One exchange. The permit says that the rate gate has agreed to it."""
        del permit
        target = checked_target(request)
        if isinstance(target, Failure):
            return target
        started = time.monotonic()

        def failure(fault: Fault, error: object) -> Failure:
            detail = redact_text(scrub_text(str(error), request.secrets))[:500]
            return Failure(fault=fault, detail=detail, elapsed=_micros(started))

        try:
            return self._exchange(request, target, started)
        except TooLargeError:
            return failure(Fault.TOO_LARGE, f"the body passes {request.max_bytes} bytes")
        except _BadEncodingError as error:
            return failure(Fault.BAD_ENCODING, error)
        except (wrong.HTTPError, HTTPException, OSError) as error:
            return failure(_fault(error), error)
        except (ValueError, UnicodeError) as error:  # http.client refuses what would break the request's framing
            return failure(Fault.UNSENDABLE, error)

    def close(self) -> None:
        for pool in self._pools.values():
            pool.clear()

    def _exchange(self, request: Outgoing, url: HttpUrl, started: float) -> Answer:
        response = self._open_response(request, url, _headers(request))
        try:
            body, wire = _body(response, _pieces(response), request, started)
        except BaseException:
            response.close()  # a half-read connection must not be used again
            raise
        response.release_conn()
        return _answer(request, response.status, response.headers.itermerged(), body, wire, started)

    def _open_response(
        self, request: Outgoing, url: HttpUrl, headers: MutableMapping[str, str]
    ) -> urllib3.BaseHTTPResponse:
        """Without a proxy the parts that were checked are connected to: no second parser sees the host."""
        pool = self._pool(request.proxy)
        options: dict[str, Any] = {
            "body": request.body,
            "headers": headers,
            "preload_content": False,
            "redirect": False,
            "retries": False,
            "timeout": urllib3.Timeout(connect=request.connect_timeout, read=request.read_timeout),
        }
        if request.proxy is not None:
            return pool.urlopen(request.method, str(url), **options)
        direct = pool.connection_from_host(url.host, url.port, url.scheme)
        return direct.urlopen(request.method, url.request_uri, **options)

    def _pool(self, proxy: str | None) -> urllib3.PoolManager:
        with self._lock:
            if (known := self._pools.get(proxy)) is not None:
                return known
            options: dict[str, Any] = {"num_pools": 64, "maxsize": self._connections, "ssl_context": _verifying()}
            made = urllib3.PoolManager(**options) if proxy is None else urllib3.ProxyManager(proxy, **options)
            guard(made, self._networks, literals=True)
            return self._pools.setdefault(proxy, made)


def _headers(request: Outgoing) -> MutableMapping[str, str]:
    """A plain mapping where each name comes once: urllib3 goes through its own several times, at 25 µs a request."""
    found: MutableMapping[str, str] = dict(request.headers)
    names = {name.lower() for name in found}
    if len(names) < len(request.headers):
        found = urllib3.HTTPHeaderDict(request.headers)
    if request.compression and "accept-encoding" not in names:
        found["Accept-Encoding"] = accepted_encodings()
    return found


def _verifying() -> ssl.SSLContext:
    """Certificates and host names are verified by what the system trusts; TLS 1.2 at least."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def _answer(
    request: Outgoing, status: int, headers: Iterable[tuple[str, str]], body: bytes, wire: int, started: float
) -> Answer:
    found: dict[str, str] = {}
    for name, value in headers:
        low = name.lower()
        found[low] = f"{found[low]}, {value}" if low in found else value
    return Answer(status=status, headers=found, body=body, url=request.url, elapsed=_micros(started), wire_bytes=wire)


class _BadEncodingError(Exception):
    pass


class _CutError(wrong.HTTPError):
    """The connection was closed in good order before the body was whole."""


def _body(response: Any, pieces: Iterable[bytes], request: Outgoing, started: float) -> tuple[bytes, int]:
    encodings = [part for part in response.headers.get("content-encoding", "").split(",") if part.strip()]
    if len(encodings) > 1 or (decode := decoder(encodings[0] if encodings else "")) is None:
        raise _BadEncodingError(f"Content-Encoding {', '.join(encodings)!r} is not one we asked for")
    out: list[bytes] = []
    size = wire = 0
    for chunk in pieces:
        wire += len(chunk)
        if wire > request.max_bytes:
            raise TooLargeError
        try:
            out.append(decode.feed(chunk, request.max_bytes - size))
            size += len(out[-1])
        except ValueError as error:
            raise _BadEncodingError(f"{encodings[0].strip()}: {error}") from error
        if time.monotonic() - started > MAX_EXCHANGE_S:
            raise TimeoutError(f"{request.shown_url}: not over after {MAX_EXCHANGE_S:.0f} s")
    if not decode.complete:
        raise _CutError(f"the encoded body ends after {wire} bytes without its end")
    return b"".join(out), wire


def _pieces(response: Any) -> Iterable[bytes]:
    """The body as it comes in, so that slow ones are noticed; in pieces of chunks, too."""
    try:
        while piece := response.read1(CHUNK_BYTES, decode_content=False):
            yield piece
    except wrong.ProtocolError as error:
        if any(isinstance(link, OSError) for link in _chain(error)):
            raise
        raise _CutError(str(error)) from error


def _fault(error: BaseException) -> Fault:
    """The kind of a failure: the most special one that is found in its chain of causes."""
    links = list(_chain(error))
    for kinds, fault in _FAULTS:
        if any(isinstance(link, kinds) for link in links):
            return fault
    return Fault.CONNECT


_FAULTS: tuple[tuple[tuple[type[BaseException], ...], Fault], ...] = (
    ((wrong.NameResolutionError, gaierror), Fault.DNS),
    ((wrong.SSLError, ssl.SSLError), Fault.TLS),
    ((wrong.NewConnectionError, ConnectionRefusedError), Fault.CONNECT),
    ((wrong.ConnectTimeoutError, wrong.ReadTimeoutError, TimeoutError), Fault.TIMEOUT),
    ((_CutError, wrong.IncompleteRead, wrong.InvalidChunkLength, IncompleteRead), Fault.TRUNCATED),
    ((wrong.LocationValueError, wrong.LocationParseError, InvalidURL), Fault.UNSENDABLE),
    ((ConnectionError, wrong.ProtocolError, HTTPException), Fault.RESET),
)


def _chain(error: BaseException) -> Iterable[BaseException]:
    seen: BaseException | None = error
    for _ in range(8):
        if seen is None:
            return
        yield seen
        nested = next((arg for arg in seen.args if isinstance(arg, BaseException)), None)
        seen = nested or seen.__cause__ or seen.__context__


def _micros(started: float) -> int:
    return int((time.monotonic() - started) * 1_000_000)
