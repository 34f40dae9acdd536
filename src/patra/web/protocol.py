"""Bounds below HTTP: how much header a request may have, how long it may take, how many connections there may be.

uvicorn bounds none of these. A connection is *waiting* from its beginning, or from the end of an answer, until the
header of the next request is complete. When there are too many connections, the one that has waited longest is closed
for the new one, so connections that ask nothing cannot keep out one that asks.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, ClassVar, cast

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from patra.kernel.telemetry import counter
from patra.web.problem import MEDIA, SAFE_HEADERS, Problem, problem_content

REFUSED = counter("patra_http_connections_refused_total", "Connections closed below HTTP, by reason.", "reason")

HEADERS_TOO_LARGE = Problem(431, "headers_too_large", "The header of the request is too large")
HEADERS_TIMED_OUT = Problem(408, "headers_timed_out", "The header of the request did not arrive in time")
TOO_MANY_CONNECTIONS = Problem(
    503, "too_many_connections", "There are too many connections", "", {}, {"Retry-After": "1"}
)
REQUEST_MALFORMED = Problem(400, "request_malformed", "This is not an HTTP request")


class ConnectionLimits(msgspec.Struct, frozen=True, kw_only=True):
    header_bytes: int
    header_count: int
    header_seconds: float
    idle_seconds: float
    write_seconds: float
    connections: int
    per_address: int


class Connections:
    """The connections of one server: how many by address, and which of them wait for a request."""

    def __init__(self, limits: ConnectionLimits, exempt: Callable[[str], bool]) -> None:
        self._limits = limits
        self._exempt = exempt
        self._addresses: dict[BoundedProtocol, str] = {}
        self._counts: Counter[str] = Counter()
        self._waiting: dict[BoundedProtocol, None] = {}  # the one that has waited longest first

    def admit(self, connection: "BoundedProtocol", address: str) -> bool:
        """Whether there is room for the connection, if need be instead of one that waits."""
        if (
            self._counts[address] >= self._limits.per_address
            and not self._exempt(address)
            and not self._make_room(address)
        ):
            return False
        if len(self._addresses) >= self._limits.connections and not self._make_room(None):
            return False
        self._addresses[connection] = address
        self._counts[address] += 1
        self._waiting[connection] = None
        return True

    def wait(self, connection: "BoundedProtocol") -> None:
        if connection in self._addresses:
            self._waiting[connection] = None

    def work(self, connection: "BoundedProtocol") -> None:
        self._waiting.pop(connection, None)

    def forget(self, connection: "BoundedProtocol") -> None:
        self._waiting.pop(connection, None)
        address = self._addresses.pop(connection, None)
        if address is not None:
            self._counts[address] -= 1
            if not self._counts[address]:
                del self._counts[address]

    def _make_room(self, address: str | None) -> bool:
        oldest = next((one for one in self._waiting if address is None or self._addresses[one] == address), None)
        if oldest is None:
            return False
        REFUSED.labels("evicted").inc()
        self.forget(oldest)
        oldest.transport.close()
        return True


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with bounds; `bounded` makes the class that a server uses."""

    limits: ClassVar[ConnectionLimits]
    all: ClassVar[Connections]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._refusal = REQUEST_MALFORMED
        self._unparsed_bytes = 0  # since the last whole header or piece of a body
        self._header_count = 0
        self._has_host = False
        self._in_body = False
        self._deadline: asyncio.TimerHandle | None = None
        self._write_deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        if not self.all.admit(self, self.client[0] if self.client else ""):
            self._refuse(TOO_MANY_CONNECTIONS)
            return
        self._set_deadline(self.limits.header_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        self.all.forget(self)
        self._set_deadline(None)
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._unparsed_bytes += len(data)
        super().data_received(data)
        if self._unparsed_bytes > self.limits.header_bytes and not self.transport.is_closing():
            self._refuse(HEADERS_TOO_LARGE)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._header_count = 0
        self._has_host = False
        self._in_body = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_count += 1
        size = len(name) + len(value)
        if name.lower() == b"host":
            if self._has_host:  # a proxy in front may go by the other one
                raise ValueError("two Host headers")
            self._has_host = True
        if self._header_count > self.limits.header_count or size > self.limits.header_bytes:
            self._refusal = HEADERS_TOO_LARGE
            raise ValueError("too many headers, or too large ones")  # the parser stops, and `send_400_response` follows
        if not self._in_body:  # a trailer is no header: a proxy has neither checked nor replaced what stands in it
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if sum(len(name) + len(value) for name, value in self.headers) + len(self.url) > self.limits.header_bytes:
            self._refusal = HEADERS_TOO_LARGE
            raise ValueError("the header is too large")
        self._unparsed_bytes = 0
        self._in_body = True
        self._set_deadline(None)
        self.all.work(self)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unparsed_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unparsed_bytes = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        more = bool(self.pipeline)
        super().on_response_complete()
        if not more and not self.transport.is_closing():
            self.all.wait(self)
            self._set_deadline(self.limits.idle_seconds + self.limits.header_seconds)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_deadline = self._write_deadline or self.loop.call_later(
            self.limits.write_seconds, self._not_read_in_time
        )

    def resume_writing(self) -> None:
        if self._write_deadline is not None:
            self._write_deadline.cancel()
            self._write_deadline = None
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        del msg
        self._refuse(self._refusal)

    def _set_deadline(self, seconds: float | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self._no_request_in_time)

    def _no_request_in_time(self) -> None:
        if self._unparsed_bytes:
            self._refuse(HEADERS_TIMED_OUT)
        else:
            REFUSED.labels("idle").inc()
            self.transport.close()

    def _not_read_in_time(self) -> None:
        REFUSED.labels("answer_not_read").inc()
        self.transport.abort()

    def _refuse(self, problem: Problem) -> None:
        """Say why and close; but not into the middle of another answer."""
        REFUSED.labels(problem.code).inc()
        self.all.forget(self)
        self._set_deadline(None)
        cycle = cast("RequestResponseCycle | None", self.cycle)  # None before the first request
        if cycle is None or cycle.response_complete:
            self.transport.write(_answer(problem))
        self.transport.close()


def bound_protocol(limits: ConnectionLimits, exempt: Callable[[str], bool]) -> type[BoundedProtocol]:
    """The protocol of one server; `exempt` says which addresses may hold any number of connections."""

    class Protocol(BoundedProtocol):
        pass

    Protocol.limits = limits
    Protocol.all = Connections(limits, exempt)
    return Protocol


def _answer(problem: Problem) -> bytes:
    body = problem_content(problem)
    headers = {
        "Content-Type": MEDIA,
        "Content-Length": str(len(body)),
        "Connection": "close",
        **SAFE_HEADERS,
        **problem.headers,
    }
    lines = [f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("ascii") + body
