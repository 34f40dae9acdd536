"""Bytes go in and out of a NATS JetStream stream, synchronously: nats-py is asyncio and stays in a thread of its own.

The stream is a durable log: file storage, no limits unless an operator sets some. A message's id is the event's, so
that the server takes out what is sent twice within its window.
"""

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar, cast

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
_NO_MESSAGES = {"404", "408", "409"}


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
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"nats {name}", daemon=True)
        self._thread.start()
        self._nc: Any = None
        self._incarnation: str | None = None
        self._consumer: str | None = None
        self._inbox: Any = None
        self._next = 0  # the position that the consumer stands before

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
        return self._call(self._read(after, limit, seconds), self._seconds * 2 + seconds)

    def reset(self) -> None:
        self._next = 0

    def close(self) -> None:
        """Give the connection back and end the thread. Calling it twice does no harm."""
        if self._loop.is_closed():
            return
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

        connect = cast("Callable[..., Awaitable[Any]]", nats.connect)  # pyright: ignore[reportUnknownMemberType]
        if self._nc is None or self._nc.is_closed or not self._nc.is_connected:
            if self._nc is not None and not self._nc.is_closed:
                await self._nc.close()
            self._consumer = self._inbox = None
            self._incarnation = None
            self._nc = await connect(
                self._url,
                connect_timeout=max(1, int(self._seconds)),
                allow_reconnect=False,
                max_reconnect_attempts=0,
                error_cb=_quiet,
            )
        return self._nc

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
        js = (await self._connected()).jetstream(timeout=self._seconds, publish_async_max_pending=len(parcels) + 1)
        sent = [
            js.publish(f"{self._prefix}.{p.event_type}", p.body, stream=self.name, headers={"Nats-Msg-Id": p.key})
            for p in parcels
        ]
        answers = await asyncio.gather(*sent, return_exceptions=True)
        if any(isinstance(answer, BaseException) for answer in answers):
            self._incarnation = None  # look again whether the stream is there
        return [UNREACHABLE if isinstance(answer, BaseException) else None for answer in answers]

    async def _read(self, after: int, limit: int, seconds: float) -> list[Arrival]:
        nc = await self._connected()
        if self._consumer is None or self._next != after + 1:
            await self._stand_before(nc, after + 1)
        found = await self._pull(nc, {"batch": limit, "no_wait": True}, limit, self._seconds)
        if not found and seconds > 0:
            found = await self._pull(nc, {"batch": 1, "expires": int(seconds * 1e9)}, 1, seconds + self._seconds)
        if found:
            self._next = found[-1].position + 1
        return found

    async def _stand_before(self, nc: Any, position: int) -> None:
        """A reader of the log that begins at a position; it lives on the server until it is idle for a while."""
        from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy  # noqa: PLC0415

        js = nc.jetstream(timeout=self._seconds)
        if self._consumer is not None:
            with contextlib.suppress(Exception):
                await js.delete_consumer(self.name, self._consumer)
        config = ConsumerConfig(
            name=f"patra-{new_id()}",
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=position,
            ack_policy=AckPolicy.NONE,
            inactive_threshold=300.0,
            mem_storage=True,
        )
        self._consumer = (await js.add_consumer(self.name, config)).name
        if self._inbox is not None:
            with contextlib.suppress(Exception):
                await self._inbox.unsubscribe()
        self._inbox = await nc.subscribe(nc.new_inbox())
        self._next = position

    async def _pull(self, nc: Any, request: dict[str, Any], most: int, seconds: float) -> list[Arrival]:
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self.name}.{self._consumer}"
        await nc.publish(subject, msgspec.json.encode(request), reply=self._inbox.subject)
        found: list[Arrival] = []
        while len(found) < most:
            message = await self._inbox.next_msg(timeout=seconds)
            status: Any = message.headers and message.headers.get("Status")
            if status in _NO_MESSAGES:
                break
            if status:
                self._consumer = None
                raise BrokerUnreachable(R.TRANSPORT_UNREACHABLE, f"the server answered {status} to a read")
            found.append(Arrival(message.metadata.sequence.stream, message.data))
        return found


async def _quiet(_: Exception) -> None:
    """Errors of the connection surface where it is used."""
