"""A rendered request and a permit go in; an answer, or the kind of its failure, comes out (ch. 4.2, rulings I8).

The one place that opens connections. It sends what it is given, once: redirects come back as answers, and whoever wants
to follow one asks for another permit (`redirected`). Bodies are bounded before and after decompression. A secret leaves
in the request itself and nowhere else: requests show themselves without it, and failures are scrubbed of it.
"""

import ssl
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from enum import StrEnum
from hashlib import sha256
from http.client import HTTPException, HTTPResponse, IncompleteRead, InvalidURL
from socket import gaierror
from typing import Any, TypeAlias
from urllib.parse import quote, quote_plus, urljoin, urlsplit

import msgspec
import urllib3
from urllib3 import exceptions as wrong
from urllib3.util import parse_url

from patra.ingest.checks import on_hosts
from patra.ingest.connections import Connections, Origin
from patra.ingest.decoding import TooLargeError, accepted, decoder
from patra.ingest.gates import Permit
from patra.kernel.redact import MASK, redact_text, redact_url
from patra.kernel.telemetry import trace_headers

CHUNK = 65_536
LONGEST = 300.0  # seconds for one exchange, however slowly its bytes drip


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
        return redact_url(scrubbed(self.url, self.secrets))

    @property
    def body_hash(self) -> str | None:
        """sha256 of the body, its secrets masked."""
        if self.body is None:
            return None
        return sha256(
            scrubbed(self.body.decode("utf-8", "surrogateescape"), self.secrets).encode("utf-8", "surrogateescape")
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


def scrubbed(text: str, secrets: Iterable[str]) -> str:
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


def redirected(request: Outgoing, answer: Answer) -> Outgoing | Failure | None:
    """Where a redirect leads: the next request, why it is not followed, or None where the answer is no redirect."""
    if answer.status not in {301, 302, 303, 307, 308} or "location" not in answer.headers:
        return None
    target = urljoin(request.url, answer.headers["location"])
    shown = redact_url(scrubbed(target, request.secrets))
    if not request.follow:
        return Failure(fault=Fault.REDIRECT_REFUSED, detail=f"a redirect to {shown}, and the pack follows none")
    if request.method not in {"GET", "HEAD"}:
        return Failure(fault=Fault.REDIRECT_REFUSED, detail=f"a redirect of {request.method} to {shown}")
    if request.hops >= request.max_hops:
        return Failure(
            fault=Fault.REDIRECT_REFUSED, detail=f"more than {request.max_hops} redirects, the last to {shown}"
        )
    there, here = urlsplit(target), urlsplit(request.url)
    headers = request.headers
    if (there.scheme, there.netloc) != (
        here.scheme,
        here.netloc,
    ):  # another host does not get what was meant for this one
        headers = tuple(
            (name, value)
            for name, value in headers
            if name.lower() not in {"authorization", "cookie"} and scrubbed(value, request.secrets) == value
        )
    return msgspec.structs.replace(request, url=target, headers=headers, hops=request.hops + 1)


def refused_target(request: Outgoing) -> Failure | None:
    """Why this URL must not be asked, if it must not."""
    try:
        url = urlsplit(request.url)
        _ = url.port
    except ValueError as error:
        return Failure(fault=Fault.UNSENDABLE, detail=f"no URL: {error}")
    if url.scheme not in {"http", "https"} or not url.hostname:
        return Failure(fault=Fault.UNSENDABLE, detail=f"no http URL: {request.shown_url}")
    if url.username or url.password:
        return Failure(fault=Fault.HOST_REFUSED, detail=f"a URL with a user name: {request.shown_url}")
    if not on_hosts(url.netloc, list(request.hosts)):
        return Failure(fault=Fault.HOST_REFUSED, detail=f"{url.netloc} is not among the declared hosts")
    if url.scheme != "https" and not request.allow_http:
        detail = f"{request.shown_url} is not https, and the pack does not allow that"
        return Failure(fault=Fault.HOST_REFUSED, detail=detail)
    return None


class Transport:
    """Connections to providers, kept open and shared by the threads of a process."""

    def __init__(self, *, connections: int = 16) -> None:
        self._connections = connections
        self._direct = Connections(connections)
        self._proxies: dict[str, urllib3.ProxyManager] = {}

    def send(self, request: Outgoing, permit: Permit) -> Exchange:
        """One exchange. The permit says that the rate gate has agreed to it."""
        del permit
        if (refused := refused_target(request)) is not None:
            return refused
        started = time.monotonic()

        def failure(fault: Fault, error: object) -> Failure:
            detail = redact_text(scrubbed(str(error), request.secrets))[:500]
            return Failure(fault=fault, detail=detail, elapsed=_micros(started))

        try:
            return self._exchange(request, started)
        except TooLargeError:
            return failure(Fault.TOO_LARGE, f"the body passes {request.max_bytes} bytes")
        except _BadEncodingError as error:
            return failure(Fault.BAD_ENCODING, error)
        except (wrong.HTTPError, HTTPException, OSError) as error:
            return failure(_fault(error), error)
        except (ValueError, UnicodeError) as error:  # http.client refuses what would break the request's framing
            return failure(Fault.UNSENDABLE, error)

    def close(self) -> None:
        self._direct.close()
        for pool in self._proxies.values():
            pool.clear()

    def _exchange(self, request: Outgoing, started: float) -> Exchange:
        headers = urllib3.HTTPHeaderDict(request.headers)
        if request.compression:
            headers.setdefault("Accept-Encoding", accepted())
        if request.proxy is not None:
            return self._through(request.proxy, request, headers, started)
        url = parse_url(request.url)
        origin = Origin(url.scheme or "", url.host or "", url.port)
        connection = self._direct.take(origin, request.connect_timeout)
        try:
            connection.sock.settimeout(request.read_timeout)
            with suppress(BrokenPipeError):  # it may have answered before it had read everything
                connection.request(request.method, url.request_uri, body=request.body, headers=headers)
            response = connection.getresponse()
            body, wire = _body(response, _pieces(response), request, started)
        except BaseException:
            connection.close()  # a half-read connection must not be used again
            raise
        response.close()
        self._direct.keep(origin, connection)
        return _answer(request, response.status, response.headers.items(), body, wire, started)

    def _through(self, proxy: str, request: Outgoing, headers: urllib3.HTTPHeaderDict, started: float) -> Answer:
        response = self._pool(proxy).urlopen(
            request.method,
            request.url,
            body=request.body,
            headers=headers,
            preload_content=False,
            redirect=False,
            retries=False,
            timeout=urllib3.Timeout(connect=request.connect_timeout, read=request.read_timeout),
        )
        whole = False
        try:
            body, wire = _body(response, _proxied_pieces(response), request, started)
            whole = True
        finally:
            if whole:
                response.release_conn()
            else:
                response.close()
        return _answer(request, response.status, response.headers.itermerged(), body, wire, started)

    def _pool(self, proxy: str) -> urllib3.PoolManager:
        if proxy not in self._proxies:
            self._proxies[proxy] = urllib3.ProxyManager(proxy, num_pools=64, maxsize=self._connections)
        return self._proxies[proxy]


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
        if time.monotonic() - started > LONGEST:
            raise TimeoutError(f"{request.shown_url}: not over after {LONGEST:.0f} s")
    if not decode.complete:
        raise _CutError(f"the encoded body ends after {wire} bytes without its end")
    return b"".join(out), wire


def _pieces(response: HTTPResponse) -> Iterable[bytes]:
    """The body as it comes in, so that slow ones are noticed; in pieces of chunks, too."""
    while piece := response.read1(CHUNK):
        yield piece
    if response.length:
        raise _CutError(f"{response.length} bytes are missing")


def _proxied_pieces(response: Any) -> Iterable[bytes]:
    try:
        if response.chunked:
            yield from response.stream(CHUNK, decode_content=False)
            return
        while piece := response.read1(CHUNK, decode_content=False):
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
