"""Bytes go in and out of a NATS JetStream stream.

The stream is a durable log: file storage, no limits unless an operator sets some. A message's id is the event's, so
that the server takes out what is sent twice within its window. Sending and reading have a connection each.
"""

import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

import msgspec

from patra.bus.reasons import R
from patra.bus.transports.inbound import Arrival
from patra.bus.transports.outbound import UNREACHABLE, Parcel
from patra.bus.transports.wire import Message, Post, Wire, WireError
from patra.kernel.errors import Transient
from patra.kernel.ids import new_id
from patra.kernel.redact import redact_url

PREFIX = "patra.bus"
SECONDS = 5.0
WISH_SECONDS = 5.0  # how long the server keeps a wish for messages that are still to come
DUPLICATES_SECONDS = 120
FORGOTTEN_SECONDS = 300  # after which the server forgets a reader that does not come back
API = "$JS.API"
_NO_MORE = {"404", "408"}
_GONE = {"409", "503"}  # the consumer was deleted, or moved
_NO_STREAM = 10059
_NANO = 1_000_000_000


class BrokerUnreachable(Transient):
    """The broker cannot be reached or did not confirm."""


class NatsStream:
    """One JetStream stream; both `Broker` and `Stream` of the other two modules. Use it from any thread.

    `url` may name several servers of a cluster, with commas between them.
    """

    def __init__(self, url: str, name: str = "PATRA_BUS", *, prefix: str = PREFIX, seconds: float = SECONDS) -> None:
        self.name = name
        self._url = url
        self._servers = deque(url.split(","))
        self._prefix = prefix
        self._seconds = seconds
        self._closing = False
        self._sending = threading.Lock()
        self._out: Wire | None = None
        self._there = False  # whether the stream was there when the sender looked
        self._reading = threading.RLock()
        self._in: Wire | None = None
        self._incarnation: str | None = None
        self._consumer: str | None = None
        self._subscription = 0
        self._inbox = ""
        self._next = 0  # the position that the reader stands before
        self._delivered = 0  # how many the consumer has brought
        self._wished = 0  # how many it may still bring unasked
        self._until = 0.0  # when that wish is over at the latest

    def close(self) -> None:
        """Give the connections back; who still reads or sends is told so. Calling it twice does no harm."""
        self._closing = True
        for wire in (self._in, self._out):
            if wire is not None:
                wire.close()

    # ---- Broker

    def send(self, parcels: Sequence[Parcel]) -> list[str | None]:
        """All at once; what was confirmed in time is confirmed, whatever became of the rest."""
        confirmed: set[int] = set()
        with self._sending:
            try:
                self._send(parcels, confirmed)
            except (WireError, BrokerUnreachable):
                self._there = False
        return [None if place in confirmed else UNREACHABLE for place in range(len(parcels))]

    def _send(self, parcels: Sequence[Parcel], confirmed: set[int]) -> None:
        wire = self._sender()
        if not self._there:
            _stream(wire, self.name, self._prefix)
            self._there = True
        waiting = {wire.own_subject(): place for place, p in enumerate(parcels) if len(p.body) < wire.largest - 4096}
        wire.post([self._post(parcels[place], reply) for reply, place in waiting.items()])
        until = time.monotonic() + self._seconds
        while waiting:
            if (message := wire.receive(until)) is None:
                wire.close()  # whoever does not answer is asked anew
                break
            if (place := waiting.pop(message.subject, None)) is None:
                continue
            if _confirmed(message):
                confirmed.add(place)
        self._there = len(confirmed) == len(parcels)

    def _sender(self) -> Wire:
        """A connection that is alive as far as is known: one that the server closed meanwhile is made anew."""
        if self._out is not None and not self._out.closed:
            with suppress(WireError):
                self._out.tend()
        if self._out is None or self._out.closed:
            self._there = False
            self._out = self._connected()
        return self._out

    def _post(self, parcel: Parcel, reply: str) -> Post:
        headers = (("Nats-Msg-Id", parcel.key), ("Nats-Expected-Stream", self.name))
        return Post(subject=f"{self._prefix}.{parcel.event_type}", data=parcel.body, reply=reply, headers=headers)

    # ---- Stream

    def incarnation(self) -> str:
        with self._reading:
            if self._incarnation is None or self._in is None or self._in.closed:
                self._incarnation = self._looked_up()
            return self._incarnation

    def read(self, after: int, limit: int, seconds: float) -> list[Arrival]:
        """A wish stays with the server, which sends what comes: nobody asks while a message is waited for."""
        with self._reading:
            try:
                return self._read(after, limit, seconds)
            except WireError as error:
                self._lost(str(error))

    def reset(self) -> None:
        self._next = 0

    def _read(self, after: int, limit: int, seconds: float) -> list[Arrival]:
        until = time.monotonic() + seconds
        known = self._incarnation
        turns = 0
        while True:
            turns += 1
            wire = self._reader()
            if self._consumer is None or self._next != after + 1 or (self._wished and not seconds):
                self._incarnation = self._looked_up()
                if known is not None and self._incarnation != known:
                    return []  # another stream under the same name: whoever reads decides where to begin
                self._stand_before(wire, after + 1)
            if not self._wished:
                self._wish(wire, limit, WISH_SECONDS if seconds else 0.0)
            left = until - time.monotonic()
            if found := self._arrivals(wire, limit, max(left, 0.0) if seconds else self._seconds, whole=not seconds):
                return found
            if self._wished and time.monotonic() > self._until:
                self._lost("the server does not answer")
            if left <= 0 and (seconds or self._consumer is not None or turns > 1):  # who lost its place looks once more
                self._tend_sender()
                return []

    def _tend_sender(self) -> None:
        """The server asks now and then who is there; a sender with nothing to send does not hear it."""
        if self._out is not None and not self._out.closed and self._sending.acquire(blocking=False):
            try:
                with suppress(WireError):
                    self._out.tend()
            finally:
                self._sending.release()

    def _reader(self) -> Wire:
        if self._in is None or self._in.closed:
            self._consumer = None
            self._in = self._connected()
        return self._in

    def _looked_up(self) -> str:
        try:
            return _stream(self._reader(), self.name, self._prefix)
        except WireError as error:
            self._lost(str(error))

    def _stand_before(self, wire: Wire, position: int) -> None:
        """A reader of the log that begins at a position; it lives on the server until it is idle for a while."""
        if self._consumer is not None:
            wire.request(f"{API}.CONSUMER.DELETE.{self.name}.{self._consumer}")
        if self._subscription:
            wire.unsubscribe(self._subscription)
        name = f"patra-{new_id()}"
        config = {
            "name": name,
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": position,
            "ack_policy": "none",
            "replay_policy": "instant",
            "inactive_threshold": FORGOTTEN_SECONDS * _NANO,
            "mem_storage": True,
        }
        self._consumer, self._subscription = None, 0
        _asked(wire, f"CONSUMER.CREATE.{self.name}.{name}", {"stream_name": self.name, "config": config})
        self._inbox = f"_INBOX.{new_id()}"
        self._subscription = wire.subscribe(self._inbox)
        self._consumer, self._next, self._delivered, self._wished = name, position, 0, 0

    def _wish(self, wire: Wire, batch: int, seconds: float) -> None:
        """Ask for so many messages: for those that are there, or with `seconds` for those that come by then, too."""
        wish: dict[str, Any] = {"expires": int(seconds * _NANO)} if seconds else {"no_wait": True}
        self._wished, self._until = batch, time.monotonic() + seconds + self._seconds
        subject = f"{API}.CONSUMER.MSG.NEXT.{self.name}.{self._consumer}"
        wire.post([Post(subject=subject, data=msgspec.json.encode({"batch": batch, **wish}), reply=self._inbox)])

    def _arrivals(self, wire: Wire, limit: int, wait: float, *, whole: bool) -> list[Arrival]:
        """Messages that are here, up to a limit; waits so long for the first, or for word that there is none.

        With `whole` it waits for the rest as well, until the server says that there is no more.
        """
        found: list[Arrival] = []
        until = time.monotonic() + wait
        while len(found) < limit and self._wished:
            if (message := wire.receive(0.0 if found and not whole else until)) is None:
                break
            if message.sid != self._subscription:
                continue  # of a place that this reader has left
            if message.status is None:
                position, number = _place(message.reply)
                if number != self._delivered + 1:  # one was lost on the way: begin again after the last
                    self._consumer = None
                    break
                self._delivered, self._wished = number, self._wished - 1
                found.append(Arrival(position, message.data))
            elif message.status in _NO_MORE:
                self._wished = 0
            elif message.status in _GONE:
                self._wished, self._consumer = 0, None
            else:
                self._lost(f"the server answered {message.status} to a read")
        if found:
            self._next = found[-1].position + 1
        return found

    def _connected(self) -> Wire:
        if self._closing:
            raise BrokerUnreachable(R.TRANSPORT_UNREACHABLE, "this end was closed")
        wire = self._anyone()
        if self._closing:  # meanwhile
            wire.close()
        return wire

    def _anyone(self) -> Wire:
        """Of several servers, the next one that answers."""
        for left in reversed(range(len(self._servers))):
            try:
                return Wire(self._servers[0], self._seconds)
            except WireError as error:
                self._servers.rotate(-1)
                if not left:
                    self._lost(str(error))
        raise AssertionError("unreachable")

    def _lost(self, why: str) -> NoReturn:
        self._consumer = self._incarnation = None
        raise BrokerUnreachable(R.TRANSPORT_UNREACHABLE, f"{redact_url(self._url)}: {why}")


def _stream(wire: Wire, name: str, prefix: str) -> str:
    """When the stream was made; it is made when it is not there."""
    answer = msgspec.json.decode(wire.request(f"{API}.STREAM.INFO.{name}").data or b"{}")
    if answer.get("error", {}).get("err_code") == _NO_STREAM:
        config = {
            "name": name,
            "subjects": [f"{prefix}.>"],
            "retention": "limits",
            "storage": "file",
            "discard": "new",  # a stream that is full refuses; it does not forget
            "duplicate_window": DUPLICATES_SECONDS * _NANO,
            "allow_direct": True,
        }
        answer = _asked(wire, f"STREAM.CREATE.{name}", config)
    if "created" not in answer:
        raise WireError(f"no stream {name}: {answer.get('error', answer)}")
    return str(answer["created"])


def _asked(wire: Wire, what: str, question: dict[str, Any]) -> dict[str, Any]:
    message = wire.request(f"{API}.{what}", msgspec.json.encode(question))
    answer = msgspec.json.decode(message.data or b"{}", type=dict[str, Any])
    if message.status is not None or "error" in answer:
        raise WireError(f"{what}: {message.status or answer.get('error')}")
    return answer


def _confirmed(message: Message) -> bool:
    if message.status is not None:  # nobody listens: there is no stream
        return False
    answer: dict[str, Any] = msgspec.json.decode(message.data or b"{}", type=dict[str, Any])
    return "error" not in answer and "seq" in answer


def _place(reply: str) -> tuple[int, int]:
    """Where a message stands in the stream, and as which the consumer brought it: its reply subject says so.

    `$JS.ACK.STREAM.CONSUMER.tries.stream.consumer.time.pending`, newer servers put domain and account after `ACK`.
    """
    words = reply.split(".")
    at = 5 if len(words) == 9 else 7
    return int(words[at]), int(words[at + 1])
