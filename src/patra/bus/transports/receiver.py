"""Turns messages of a stream into events and deliveries of this store, each once, in the stream's order.

The position in the stream moves in the transaction that writes what was read, by compare-and-set: a receiver that dies
reads the same messages again, and of two receivers one is refused. Nothing is acknowledged to the broker, so nothing
can be acknowledged too early.
"""

import threading
from collections.abc import Sequence
from typing import Any, Protocol, cast

import msgspec

from patra.bus.bus import Bus
from patra.bus.catalogue.reasons import Reason
from patra.bus.catalogue.versions import Version
from patra.bus.consuming.recipients import recipients
from patra.bus.publishing import publish as rules
from patra.bus.publishing.envelope import Envelope, Refused, from_wire
from patra.bus.publishing.publish import Candidate, Publication
from patra.bus.store import deliveries, events, groups, held_messages, stream_control
from patra.bus.store.groups import Position
from patra.bus.store.held_messages import NewHeldMessage
from patra.kernel.clock import SECOND
from patra.kernel.db import Database, Tx
from patra.kernel.telemetry import get_logger

log = get_logger()
STANDBY = SECOND // 2  # between two looks whether another receiver still moves on


class Arrival(msgspec.Struct, frozen=True):
    position: int
    body: bytes
    published_by: str = ""


class Stream(Protocol):
    """What a stream must do: be a log that can be read from a position."""

    name: str

    def incarnation(self) -> str:
        """Changes when the stream is another one under the same name."""
        ...

    def read(self, after: int, limit: int, seconds: float) -> list[Arrival]:
        """Messages after a position, in order; waits so long for the first."""
        ...

    def reset(self) -> None:
        """Forget how far was read, and of which stream: the next `read` may begin anywhere."""
        ...


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    received: int = 0
    new: int = 0
    delivered: int = 0
    refused: int = 0
    held: int = 0


class _Overtaken(Exception):  # noqa: N818  no error: a signal to begin again
    """Another receiver moved on meanwhile."""


class _Examined(msgspec.Struct, kw_only=True):
    """A message and what this catalogue says of its events."""

    arrival: Arrival
    candidates: list[Candidate] = msgspec.field(default_factory=list[Candidate])
    unknown: list[tuple[Envelope, Refused]] = msgspec.field(default_factory=list[tuple[Envelope, Refused]])
    refused: list[tuple[Envelope, Refused]] = msgspec.field(default_factory=list[tuple[Envelope, Refused]])
    broken: int = 0


class Receiver:
    """Reads a stream into a store.

    A message in a type or major version that this process does not know, but a group of the store reads, is held there
    in its order until a process reads it whose catalogue has them: it costs no group its event, and stops nobody.
    """

    def __init__(self, db: Database, bus: Bus, stream: Stream, *, batch: int = 500) -> None:
        self._db = db
        self._bus = bus
        self._stream = stream
        self._batch = batch
        self._position: Position | None = None
        self._standby_until = 0  # µs; another receiver of this store was faster, and is let go on alone
        self._standby_at: Position | None = None  # where the store stood when this one last looked
        self._wait = threading.Event().wait

    def run_once(self, seconds: float = 0.0) -> Counts:
        """Read what waits for a catalogue that is known by now, else the next messages of the stream."""
        if (released := self._release()).received:
            return released
        if self._stands_by(seconds):
            return Counts()
        incarnation = self._stream.incarnation()
        was = self._position or self._db.read(lambda tx: groups.position(tx, self._stream.name))
        if was.incarnation != incarnation:
            announced = self._announce_stream(was, Position(incarnation, 0))
            if announced.incarnation != incarnation:  # no position of this stream: the next turn announces it again
                return Counts()
            was = announced
        start = was.position
        arrivals = self._stream.read(start, self._batch, seconds)
        if not arrivals:
            return Counts()
        to = Position(incarnation, arrivals[-1].position)
        try:
            # no waiting for the disk: the position would be lost with what was read, and the stream has it still
            counts = self._db.run(lambda tx: self._write(tx, was, to, start, arrivals), durable=False)
        except _Overtaken:
            self._begin_again()
            return Counts()
        if counts is None:  # another receiver was faster: two that go on get in each other's way with every message
            self._begin_again()
            self._standby_until, self._standby_at = self._bus.clock.now() + STANDBY, None
            return Counts()
        self._position = to
        return counts

    def _begin_again(self) -> None:
        self._position = None
        self._stream.reset()

    def _stands_by(self, seconds: float) -> bool:
        """Whether another receiver is at work: the store's position moves from look to look.

        Clocks of other machines are not asked. When it stands still for a second, this one reads the stream again.
        """
        if not self._standby_until:
            return False
        if (left := self._standby_until - self._bus.clock.now()) > 0:
            self._wait(min(seconds, left / SECOND))
            return True
        stands_at = self._db.read(lambda tx: groups.position(tx, self._stream.name))
        if stands_at != self._standby_at:
            self._standby_until, self._standby_at = self._bus.clock.now() + STANDBY, stands_at
            return True
        self._standby_until = 0
        return False

    def _announce_stream(self, was: Position, new: Position) -> Position:
        """Where a stream that is new to this store begins; others hear there what this store has frozen and adopted.

        What it announced before was lost with the old stream; one of several receivers announces it. The others get
        the store's position, which may be one of the stream before.
        """

        def work(tx: Tx) -> bool:
            if not groups.set_position(tx, self._stream.name, was, new, self._bus.clock.now()):
                return False
            self._bus.announce(tx)
            return True

        self._position = None
        return new if self._db.run(work) else self._db.read(lambda tx: groups.position(tx, self._stream.name))

    def _release(self) -> Counts:
        """Messages that another receiver, or this store before its upgrade, could not read: they go first."""
        if not self._db.read(self._readable):
            return Counts()
        return self._db.run(self._release_messages)

    def _readable(self, tx: Tx) -> list[held_messages.HeldMessage]:
        majors = [(name, major) for name, kind in self._bus.catalogue.types.items() for major in kind.contracts]
        return held_messages.list_known(tx, self._stream.name, majors, self._batch)

    def _release_messages(self, tx: Tx) -> Counts:
        groups.lock(tx)  # of two receivers one takes them
        held = self._readable(tx)
        held_messages.remove(tx, held)
        arrivals = [Arrival(one.position, one.body.encode(), one.published_by) for one in held]
        return self._enter(tx, arrivals, self._bus.clock.now(), again=True)

    def _write(self, tx: Tx, was: Position, to: Position, start: int, arrivals: Sequence[Arrival]) -> Counts | None:
        now = self._bus.clock.now()
        if not groups.set_position(tx, self._stream.name, was, to, now):
            return None
        if self._readable(tx):  # held since this receiver looked: it stands before these messages in the stream
            raise _Overtaken
        if arrivals[0].position > start + 1:
            self._note_truncation(tx, start, arrivals[0].position, now)
        return self._enter(tx, arrivals, now)

    def _enter(self, tx: Tx, arrivals: Sequence[Arrival], now: int, *, again: bool = False) -> Counts:
        """Write the events of messages and put them before their groups; `again`: some versions may be there."""
        read = self._examine_messages(tx, arrivals, now)
        refused = [one for message in read for one in message.refused]
        publications = _publications([c for message in read for c in message.candidates])
        types = rules.types_of(publications) | {e.event_type for m in read for e, _ in m.unknown}
        routes = events.routing(tx, types)
        held: list[NewHeldMessage] = []
        for message in read:
            if not message.unknown:
                continue
            if self._is_awaited(tx, routes, message):
                held.append(_message_to_hold(message))
            else:
                refused += message.unknown
        held_messages.hold(tx, self._stream.name, held, now)
        self._report_held(held)
        events.record_refusals(tx, refused, now)
        by_event = {c.envelope.event_id: m.arrival.published_by for m in read for c in m.candidates}
        new = events.insert(tx, publications, now, by_event=by_event)
        standing = events.standing(tx, [c for p in publications for c in p.renditions])
        seqs = standing.seqs
        events.refill(tx, standing.emptied)
        there = [p for p in publications if all((p.identity, c.major) in seqs for c in p.renditions)]
        known = {p.identity for p in there}
        strange = [p for p in publications if p.identity not in known]
        events.record_refusals(tx, [(p.renditions[0].envelope, rules.refuse_reuse(p.event_id)) for p in strange], now)
        delivered = events.fan_out(tx, routes, there, seqs, now)
        if again:
            delivered -= deliveries.remove_repeats(tx, new.values())
        broken = sum(message.broken for message in read)
        return Counts(
            received=len(arrivals),
            new=len(new),
            delivered=delivered,
            refused=len(refused) + len(strange) + broken,
            held=len(held),
        )

    def _examine_messages(self, tx: Tx, arrivals: Sequence[Arrival], now: int) -> list[_Examined]:
        """Each message with its events that this catalogue takes, does not know, and refuses."""
        found: list[_Examined] = []
        for index, arrival in enumerate(arrivals):
            message = _Examined(arrival=arrival)
            found.append(message)
            if self._was_control(tx, arrival, now):
                continue
            for envelope in _envelopes(arrival.body):
                if isinstance(envelope, Refused):
                    message.broken += 1
                    log.error(
                        "bus_message_refused", stream=self._stream.name, position=arrival.position, code=envelope.code
                    )
                    self._record(tx, arrival, envelope, now)
                    continue
                match rules.examine(self._bus.catalogue, envelope, index=index, elsewhere=True):
                    case Candidate() as candidate:
                        message.candidates.append(candidate)
                    case Refused(code=Reason.TYPE_UNKNOWN | Reason.VERSION_UNKNOWN) as refusal:
                        message.unknown.append((envelope, refusal))
                    case Refused() as refusal:
                        message.refused.append((envelope, refusal))
        return found

    def _was_control(self, tx: Tx, arrival: Arrival, now: int) -> bool:
        """Whether a message is another store's word on itself; then it is written down."""
        try:
            told = stream_control.decode(arrival.body)
        except msgspec.MsgspecError:
            return False  # of a later version: it is refused and recorded like anything that is not an event
        if told is None:
            return False
        if stream_control.take(tx, told, now):
            tell = log.warning if isinstance(told, stream_control.FreezeTold) else log.info
            tell("bus_stream_control", stream=self._stream.name, kind=type(told).__name__, store=told.store_id)
        return True

    def _is_awaited(self, tx: Tx, routes: events.Routing, message: _Examined) -> bool:
        """Whether a group of this store reads, or may yet read, a version that this catalogue does not know (B8)."""
        adopted = self._bus.adopted_majors(tx, routes.adopted)
        if any(e.version.major in adopted.get(e.event_type, ()) for e, _ in message.unknown):
            return True
        name = message.unknown[0][0].event_type
        known = [Version(c.major, c.minor) for c in message.candidates]
        listening = routes.subscriptions.get(name, ())
        every = recipients(listening, name, [*known, *(e.version for e, _ in message.unknown)])
        return bool(every.keys() - recipients(listening, name, known).keys())

    def _report_held(self, held: Sequence[NewHeldMessage]) -> None:
        for name, major in sorted({(one.event_type, one.major) for one in held}):
            log.error(
                "bus_messages_held",
                stream=self._stream.name,
                event_type=name,
                major=major,
                messages=sum((one.event_type, one.major) == (name, major) for one in held),
                advice="upgrade this process: its catalogue does not know this version",
            )

    def _note_truncation(self, tx: Tx, start: int, first: int, now: int) -> None:
        """A4: messages that expired before they were read are not skipped without a word."""
        detail = {"code": Reason.STREAM_TRUNCATED.value, "after": start, "first": first}
        log.error("bus_stream_truncated", stream=self._stream.name, after=start, first=first)
        groups.record_act(tx, by="receiver", act="stream_truncated", subject=self._stream.name, detail=detail, now=now)

    def _record(self, tx: Tx, arrival: Arrival, refusal: Refused, now: int) -> None:
        detail = {
            "position": arrival.position,
            "code": refusal.code.value,
            "place": refusal.place,
            "detail": refusal.detail,
        }
        groups.record_act(tx, by="receiver", act="message_refused", subject=self._stream.name, detail=detail, now=now)


def _message_to_hold(message: _Examined) -> NewHeldMessage:
    newest, refusal = max(message.unknown, key=lambda pair: pair[0].version)
    return NewHeldMessage(
        position=message.arrival.position,
        event_type=newest.event_type,
        major=newest.version.major,
        body=message.arrival.body.decode(),
        published_by=message.arrival.published_by,
        detail=refusal.detail,
    )


def _envelopes(body: bytes) -> list[Envelope | Refused]:
    try:
        raw: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return [Refused(code=Reason.ENVELOPE_MALFORMED, place="", detail=f"not JSON: {error}")]
    several = cast("list[Any]", raw) if isinstance(raw, list) else [raw]
    return [from_wire(one) for one in several]


def _publications(candidates: Sequence[Candidate]) -> list[Publication]:
    """What was published elsewhere is not judged again: renditions that came together belong together."""
    together: dict[tuple[int, bytes], list[Candidate]] = {}
    for candidate in candidates:
        together.setdefault((candidate.index, candidate.identity), []).append(candidate)
    once: dict[bytes, Publication] = {}
    for (_, identity), renditions in together.items():
        first = renditions[0].envelope
        once.setdefault(identity, Publication(identity=identity, event_id=first.event_id, renditions=tuple(renditions)))
    return list(once.values())
