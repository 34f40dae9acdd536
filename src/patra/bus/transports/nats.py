"""Bytes go in and out of a NATS JetStream stream, synchronously: nats-py is asyncio and stays in a thread of its own.

The stream is a durable log: file storage, no limits unless an operator sets some. A message's id is the event's, so
that the server takes out what is sent twice within its window.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from queue import Empty, SimpleQueue
from typing import Any, NoReturn, TypeVar, cast

import msgspec

from patra.bus.reasons import R
from patra.bus.transports.inbound import Arrival
from patra.bus.transports.outbound import UNREACHABLE, Parcel
from patra.kernel.errors import Transient
from patra.kernel.ids import new_id
from patra.kernel.redact import redact_url

T = TypeVar("T")

PREFIX = "patra.bus"
SECONDS = 5.0
WISH_SECONDS = 5.0  # how long the server keeps a wish for messages that are still to come
CLOSED = object()  # what arrives when the connection is closed
_NO_MORE = {"404", "408"}
_GONE = "409"  # the consumer was deleted, or moved


class BrokerUnreachable(Transient):
    """The broker cannot be reached or did not confirm."""


class NatsStream:
    """One JetStream stream; both `Broker` and `Stream` of the other two modules. Use it from any thread."""

    def __init__(self, url: str, name: str = "PATRA_BUS", *, prefix: str = PREFIX, seconds: float = SECONDS) -> None:
        self.name = name
        self._url = url
        self._prefix = prefix
        self._seconds = seconds
        self._loop = asyncio.new_event_loop()
        self._closing = False
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"nats {name}", daemon=True)
        self._thread.start()
        self._nc: Any = None
        self._incarnation: str | None = None
        self._js: Any = None
        self._consumer: str | None = None
        self._subscription: Any = None
        self._arrived: SimpleQueue[Any] = SimpleQueue()
        self._next = 0  # the position that the reader stands before
        self._delivered = 0  # how many the consumer has brought
        self._wished = 0  # how many it may still bring unasked
        self._until = 0.0  # when that wish is over at the latest

    # ---- Broker

    def send(self, parcels: Sequence[Parcel]) -> list[str | None]:
        try:
            return self._call(self._send(parcels), self._seconds)
        except BrokerUnreachable:
            return [UNREACHABLE] * len(parcels)

    # ---- Stream

    def incarnation(self) -> str:
        if self._incarnation is None:
            self._incarnation = self._call(self._created(), self._seconds * 2)
        return self._incarnation

    def read(self, after: int, limit: int, seconds: float) -> list[Arrival]:
        """A wish stays with the server, which sends what comes: nobody asks while a message is waited for."""
        until = time.monotonic() + seconds
        turns = 0
        while True:
            turns += 1
            if self._consumer is None or self._next != after + 1 or (self._wished and not seconds):
                self._call(self._stand_before(after + 1), self._seconds * 2)
            if not self._wished:
                self._call(self._wish(limit, WISH_SECONDS if seconds else 0.0), self._seconds * 2)
            left = until - time.monotonic()
            if found := self._arrivals(limit, max(left, 0.0) if seconds else self._seconds):
                return found
            if self._wished and time.monotonic() > self._until:
                self._lost("the server does not answer")
            if left <= 0 and (seconds or self._consumer is not None or turns > 1):  # who lost its place looks once more
                return []

    def reset(self) -> None:
        self._next = 0

    def close(self) -> None:
        """Give the connection back and end the thread. Calling it twice does no harm."""
        if self._loop.is_closed():
            return
        self._closing = True  # who still reads or sends makes no new connection
        with contextlib.suppress(Exception):
            asyncio.run_coroutine_threadsafe(self._ended(), self._loop).result(self._seconds)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(self._seconds)
        if not self._thread.is_alive():
            self._loop.close()

    # ---- in the loop's thread

    def _call(self, work: Coroutine[Any, Any, T], seconds: float) -> T:
        import nats.errors  # noqa: PLC0415  an extra
        import nats.js.errors  # noqa: PLC0415

        if self._closing:
            work.close()
            raise BrokerUnreachable(R.TRANSPORT_UNREACHABLE, "this end was closed")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(seconds)
        except (nats.errors.Error, nats.js.errors.Error, TimeoutError, OSError) as error:
            future.cancel()
            self._incarnation, self._next = None, 0
            detail = f"{redact_url(self._url)}: {type(error).__name__} {error}"
            raise BrokerUnreachable(R.TRANSPORT_UNREACHABLE, detail) from error

    async def _ended(self) -> None:
        if self._nc is not None:
            with contextlib.suppress(Exception):
                await self._nc.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _connected(self) -> Any:
        """A connection with its stream there. A lost one is made anew, so that nothing waits on a dead socket."""
        import nats  # noqa: PLC0415

        if self._closing:
            raise BrokerUnreachable(R.TRANSPORT_UNREACHABLE, "this end was closed")
        connect = cast("Callable[..., Awaitable[Any]]", nats.connect)  # pyright: ignore[reportUnknownMemberType]
        if self._nc is None or self._nc.is_closed or not self._nc.is_connected:
            if self._nc is not None and not self._nc.is_closed:
                await self._nc.close()
            self._consumer = self._subscription = self._incarnation = None
            self._nc = await connect(
                self._url,
                connect_timeout=max(1, int(self._seconds)),
                allow_reconnect=False,
                max_reconnect_attempts=0,
                error_cb=_quiet,
                closed_cb=self._closed,
            )
            self._js = self._nc.jetstream(timeout=self._seconds)
        return self._nc

    async def _closed(self) -> None:
        self._arrived.put(CLOSED)

    async def _stream(self) -> Any:
        """The state of the stream; it is made when it is not there."""
        from nats.js.api import DiscardPolicy, RetentionPolicy, StorageType, StreamConfig  # noqa: PLC0415
        from nats.js.errors import NotFoundError  # noqa: PLC0415

        js = (await self._connected()).jetstream(timeout=self._seconds)
        try:
            return await js.stream_info(self.name)
        except NotFoundError:
            config = StreamConfig(
                name=self.name,
                subjects=[f"{self._prefix}.>"],
                retention=RetentionPolicy.LIMITS,
                storage=StorageType.FILE,
                discard=DiscardPolicy.NEW,  # a stream that is full refuses; it does not forget
                duplicate_window=120,
                allow_direct=True,
            )
            return await js.add_stream(config)

    async def _created(self) -> str:
        return str((await self._stream()).created)

    async def _send(self, parcels: Sequence[Parcel]) -> list[str | None]:
        if self._incarnation is None:
            self._incarnation = await self._created()
        await self._connected()
        sent = [
            self._js.publish(f"{self._prefix}.{p.event_type}", p.body, stream=self.name, headers={"Nats-Msg-Id": p.key})
            for p in parcels
        ]
        answers = await asyncio.gather(*sent, return_exceptions=True)
        if any(isinstance(answer, BaseException) for answer in answers):
            self._incarnation = None  # look again whether the stream is there
        return [UNREACHABLE if isinstance(answer, BaseException) else None for answer in answers]

    async def _stand_before(self, position: int) -> None:
        """A reader of the log that begins at a position; it lives on the server until it is idle for a while."""
        from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy  # noqa: PLC0415

        nc = await self._connected()
        js = nc.jetstream(timeout=self._seconds)
        if self._consumer is not None:
            with contextlib.suppress(Exception):
                await js.delete_consumer(self.name, self._consumer)
        if self._subscription is not None:
            with contextlib.suppress(Exception):
                await self._subscription.unsubscribe()
        config = ConsumerConfig(
            name=f"patra-{new_id()}",
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=position,
            ack_policy=AckPolicy.NONE,
            inactive_threshold=300.0,
            mem_storage=True,
        )
        self._consumer = (await js.add_consumer(self.name, config)).name
        arrived: SimpleQueue[Any] = SimpleQueue()

        async def arrive(message: Any) -> None:
            arrived.put(message)

        # no limit of bytes, past which messages would be thrown away: a wish is for so many, that is the limit
        self._subscription = await nc.subscribe(nc.new_inbox(), cb=arrive, pending_bytes_limit=0)
        self._arrived, self._next, self._delivered, self._wished = arrived, position, 0, 0

    async def _wish(self, batch: int, seconds: float) -> None:
        """Ask for so many messages: for those that are there, or with `seconds` for those that come by then, too."""
        nc = await self._connected()
        if self._consumer is None:  # the connection is a new one
            return
        wish: dict[str, Any] = {"expires": int(seconds * 1e9)} if seconds else {"no_wait": True}
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self.name}.{self._consumer}"
        self._wished, self._until = batch, time.monotonic() + seconds + self._seconds
        await nc.publish(subject, msgspec.json.encode({"batch": batch, **wish}), reply=self._subscription.subject)

    # ---- in the reader's thread

    def _arrivals(self, limit: int, wait: float) -> list[Arrival]:
        """Messages that are here, up to a limit; waits so long for the first, or for word that there is none."""
        found: list[Arrival] = []
        while len(found) < limit and self._wished:
            try:
                message = self._arrived.get_nowait() if found else self._arrived.get(timeout=wait)
            except Empty:
                break
            if message is CLOSED:
                self._lost("the connection was closed")
            status: Any = message.headers and message.headers.get("Status")
            if status is None:
                place = message.metadata.sequence
                if place.consumer != self._delivered + 1:  # one was lost on the way: begin again after the last
                    self._consumer = None
                    break
                self._delivered, self._wished = place.consumer, self._wished - 1
                found.append(Arrival(place.stream, message.data))
            elif status in _NO_MORE:
                self._wished = 0
            elif status == _GONE:
                self._wished, self._consumer = 0, None
            else:
                self._lost(f"the server answered {status} to a read")
        if found:
            self._next = found[-1].position + 1
        return found

    def _lost(self, why: str) -> NoReturn:
        self._consumer = self._incarnation = None
        raise BrokerUnreachable(R.TRANSPORT_UNREACHABLE, f"{redact_url(self._url)}: {why}")


async def _quiet(_: Exception) -> None:
    """Errors of the connection surface where it is used."""
