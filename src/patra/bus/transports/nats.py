"""Writes and reads the bytes of a NATS JetStream stream.

The stream is a durable log: file storage, no limits unless an operator sets some. A message's id is the event's, so
that the server takes out what is sent twice within its window. Sending and reading have a connection each.
"""

import threading
import time
from collections.abc import Sequence
from typing import Any, NoReturn

import msgspec

from patra.bus.catalogue.reasons import Reason
from patra.bus.transports.nats_connection import (
    ConnectionLost,
    EventLoop,
    NatsConnection,
    Post,
    check_installed,
    login,
)
from patra.bus.transports.receiver import Arrival
from patra.bus.transports.sender import UNREACHABLE, Parcel
from patra.kernel.errors import Transient
from patra.kernel.ids import new_id
from patra.kernel.safety.redact import redact_url

PREFIX = "patra.bus"
TIMEOUT_S = 5.0
WISH_SECONDS = 5.0  # how long the server keeps a wish for messages that are still to come
HEARTBEAT_SECONDS = 1.0  # a server that keeps a wish says so this often; one that was silent for longer has lost it
DUPLICATES_SECONDS = 120
FORGOTTEN_SECONDS = 300  # after which the server forgets a reader that does not come back
API = "$JS.API"
_HEARTBEAT = "100"
_NO_MORE = {"404", "408"}
_GONE = {"409", "503"}  # the consumer was deleted, or moved
_NO_STREAM = 10059
_NANO = 1_000_000_000


class BrokerUnreachable(Transient):
    """The broker cannot be reached or did not confirm."""


class NatsStream:
    """One JetStream stream; both `Broker` and `Stream` of the other two modules. Use it from any thread.

    `url` may name several servers of a cluster, with commas between them; `credentials` is the text of a credentials
    file (JWT and seed) or of an nkey's seed. A stream that has fewer than `replicas` gets them.
    """

    def __init__(
        self,
        url: str,
        name: str = "PATRA_BUS",
        *,
        prefix: str = PREFIX,
        seconds: float = TIMEOUT_S,
        credentials: str = "",
        replicas: int = 1,
    ) -> None:
        check_installed()
        self.name = name
        self._url = url
        self._login = login(url, credentials)
        self._servers = self._login.servers  # and those that the cluster announced
        self._replicas = replicas
        self._prefix = prefix
        self._seconds = seconds
        self._loop = EventLoop()
        self._closing = False
        self._sending = threading.Lock()
        self._out: NatsConnection | None = None
        self._there = False  # whether the stream was there when the sender looked
        self._reading = threading.RLock()
        self._in: NatsConnection | None = None
        self._incarnation: str | None = None
        self._consumer: str | None = None
        self._inbox = ""
        self._next = 0  # the position that the reader stands before
        self._delivered = 0  # how many the consumer has brought
        self._wished = 0  # how many it may still bring unasked
        self._until = 0.0  # when the server has to have said something at the latest

    def close(self) -> None:
        """Close the connections; callers that still read or send get an error. Calling it twice does no harm."""
        self._closing = True
        for connection in (self._in, self._out):
            if connection is not None:
                connection.close()
        self._loop.close()

    # ---- Broker

    def send(self, parcels: Sequence[Parcel]) -> list[str | None]:
        """All at once; what was confirmed in time is confirmed, whatever became of the rest."""
        confirmed: set[int] = set()
        with self._sending:
            try:
                self._send(parcels, confirmed)
            except (ConnectionLost, BrokerUnreachable):
                self._there = False
        return [None if place in confirmed else UNREACHABLE for place in range(len(parcels))]

    def _send(self, parcels: Sequence[Parcel], confirmed: set[int]) -> None:
        connection = self._sender()
        if not self._there:
            self._stream(connection)
            self._there = True
        answers = connection.publish([self._post(parcel) for parcel in parcels])
        confirmed |= {place for place, done in enumerate(answers) if done}
        self._there = all(answers)

    def _sender(self) -> NatsConnection:
        if self._out is None or self._out.closed:
            self._there = False
            self._out = self._connect_stream()
        return self._out

    def _post(self, parcel: Parcel) -> Post:
        subject = f"{self._prefix}.{parcel.event_type}"
        return Post(subject=subject, data=parcel.body, key=parcel.key, stream=self.name, by=parcel.published_by)

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
            except ConnectionLost as error:
                self._lose_connection(str(error))

    def reset(self) -> None:
        with self._reading:
            self._next, self._incarnation = 0, None

    def leader(self) -> str:
        """The name of the server that leads the stream, of a cluster; else empty."""
        with self._reading:
            try:
                return str(self._information(self._reader()).get("cluster", {}).get("leader", ""))
            except ConnectionLost as error:
                self._lose_connection(str(error))

    def _read(self, after: int, limit: int, seconds: float) -> list[Arrival]:
        until = time.monotonic() + seconds
        known = self._incarnation
        turns = 0
        while True:
            turns += 1
            connection = self._reader()
            if self._consumer is None or self._next != after + 1 or (self._wished and not seconds):
                self._incarnation = self._looked_up()
                if known is not None and self._incarnation != known:
                    return []  # another stream under the same name: the reader decides where to begin
                self._stand_before(connection, after + 1)
            if not self._wished:
                self._wish(connection, limit, WISH_SECONDS if seconds else 0.0)
            left = until - time.monotonic()
            if found := self._arrivals(
                connection, limit, max(left, 0.0) if seconds else self._seconds, whole=not seconds
            ):
                return found
            if self._wished and time.monotonic() > self._until:
                self._lose_connection("the server does not answer")
            if left <= 0 and (seconds or self._consumer is not None or turns > 1):  # who lost its place looks once more
                return []

    def _reader(self) -> NatsConnection:
        if self._in is None or self._in.closed:
            self._consumer = None
            self._in = self._connect_stream()
        return self._in

    def _looked_up(self) -> str:
        try:
            return self._stream(self._reader())
        except ConnectionLost as error:
            self._lose_connection(str(error))

    def _stand_before(self, connection: NatsConnection, position: int) -> None:
        """A reader of the log that begins at a position; it lives on the server until it is idle for a while."""
        if self._consumer is not None:
            connection.request(f"{API}.CONSUMER.DELETE.{self.name}.{self._consumer}")
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
        self._consumer = None
        _ask_server(connection, f"CONSUMER.CREATE.{self.name}.{name}", {"stream_name": self.name, "config": config})
        self._inbox = f"_INBOX.{new_id()}"
        connection.subscribe(self._inbox)
        self._consumer, self._next, self._delivered, self._wished = name, position, 0, 0

    def _wish(self, connection: NatsConnection, batch: int, seconds: float) -> None:
        """Ask for so many messages: for those that are there, or with `seconds` for those that come by then, too."""
        wish: dict[str, Any] = {"no_wait": True}
        if seconds:
            wish = {"expires": int(seconds * _NANO), "idle_heartbeat": int(HEARTBEAT_SECONDS * _NANO)}
        self._wished = batch
        self._until = time.monotonic() + (3 * HEARTBEAT_SECONDS if seconds else self._seconds)
        subject = f"{API}.CONSUMER.MSG.NEXT.{self.name}.{self._consumer}"
        connection.post(subject, msgspec.json.encode({"batch": batch, **wish}), self._inbox)

    def _arrivals(self, connection: NatsConnection, limit: int, wait: float, *, whole: bool) -> list[Arrival]:
        """Messages that are here, up to a limit; waits so long for the first, or for word that there is none.

        With `whole` it waits for the rest as well, until the server says that there is no more.
        """
        found: list[Arrival] = []
        until = time.monotonic() + wait
        while len(found) < limit and self._wished:
            wait = 0.0 if found and not whole else max(until - time.monotonic(), 0.0)
            if (message := connection.receive(wait)) is None:
                break
            self._until = time.monotonic() + 3 * HEARTBEAT_SECONDS
            if message.status is None:
                position, number = _place(message.reply)
                if number != self._delivered + 1:  # one was lost on the way: begin again after the last
                    self._consumer = None
                    break
                self._delivered, self._wished = number, self._wished - 1
                found.append(Arrival(position, message.data, message.by))
            elif message.status == _HEARTBEAT:
                continue
            elif message.status in _NO_MORE:
                self._wished = 0
            elif message.status in _GONE:
                self._wished, self._consumer = 0, None
            else:
                self._lose_connection(f"the server answered {message.status} to a read")
        if found:
            self._next = found[-1].position + 1
        return found

    def _connect_stream(self) -> NatsConnection:
        if self._closing:
            raise BrokerUnreachable(Reason.TRANSPORT_UNREACHABLE, "this end was closed")
        told = [server for one in (self._in, self._out) if one is not None for server in one.servers]
        self._servers = tuple(dict.fromkeys((*self._servers, *told)))
        try:
            connection = NatsConnection(
                self._loop, msgspec.structs.replace(self._login, servers=self._servers), self._seconds
            )
        except ConnectionLost as error:
            self._lose_connection(str(error))
        if self._closing:  # meanwhile
            connection.close()
        return connection

    def _stream(self, connection: NatsConnection) -> str:
        """When the stream was made; it is made when it is not there, and gets more replicas where it has too few."""
        answer = self._information(connection)
        if answer.get("error", {}).get("err_code") == _NO_STREAM:
            config = {
                "name": self.name,
                "subjects": [f"{self._prefix}.>"],
                "retention": "limits",
                "storage": "file",
                "discard": "new",  # a stream that is full refuses; it does not forget
                "duplicate_window": DUPLICATES_SECONDS * _NANO,
                "allow_direct": True,
                "num_replicas": self._replicas,
            }
            answer = _ask_server(connection, f"STREAM.CREATE.{self.name}", config)
        if "created" not in answer:
            raise ConnectionLost(f"no stream {self.name}: {answer.get('error', answer)}")
        if answer["config"].get("num_replicas", 1) < self._replicas:
            _ask_server(connection, f"STREAM.UPDATE.{self.name}", {**answer["config"], "num_replicas": self._replicas})
        return str(answer["created"])

    def _information(self, connection: NatsConnection) -> dict[str, Any]:
        return msgspec.json.decode(connection.request(f"{API}.STREAM.INFO.{self.name}").data or b"{}")

    def _lose_connection(self, why: str) -> NoReturn:
        self._consumer = self._incarnation = None
        raise BrokerUnreachable(Reason.TRANSPORT_UNREACHABLE, f"{redact_url(self._url)}: {why}")


def _ask_server(connection: NatsConnection, what: str, question: dict[str, Any]) -> dict[str, Any]:
    message = connection.request(f"{API}.{what}", msgspec.json.encode(question))
    answer = msgspec.json.decode(message.data or b"{}", type=dict[str, Any])
    if message.status is not None or "error" in answer:
        raise ConnectionLost(f"{what}: {message.status or answer.get('error')}")
    return answer


def _place(reply: str) -> tuple[int, int]:
    """Where a message stands in the stream, and as which the consumer brought it: its reply subject says so.

    `$JS.ACK.STREAM.CONSUMER.tries.stream.consumer.time.pending`, newer servers put domain and account after `ACK`.
    """
    words = reply.split(".")
    at = 5 if len(words) == 9 else 7
    return int(words[at]), int(words[at + 1])
