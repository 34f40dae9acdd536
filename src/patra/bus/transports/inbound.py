"""Messages of a stream go in; events and deliveries of this store come out, each once, in the stream's order.

The position in the stream moves in the transaction that writes what was read, by compare-and-set: a receiver that dies
reads the same messages again, and of two receivers one is refused. Nothing is acknowledged to the broker, so nothing
can be acknowledged too early.
"""

from collections.abc import Sequence
from typing import Any, Protocol, cast

import msgspec

from patra.bus import publish as rules
from patra.bus.bus import Bus
from patra.bus.envelope import Envelope, Refused, from_wire
from patra.bus.publish import Candidate, Publication
from patra.bus.reasons import R
from patra.bus.store import events, groups
from patra.bus.store.groups import Position
from patra.kernel.db import Database, Tx
from patra.kernel.telemetry import get_logger

log = get_logger()


class Arrival(msgspec.Struct, frozen=True):
    position: int
    body: bytes


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
        """Forget how far was read: the next `read` may begin anywhere."""
        ...


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    received: int = 0
    new: int = 0
    delivered: int = 0
    refused: int = 0


class Receiver:
    """Reads a stream into a store."""

    def __init__(self, db: Database, bus: Bus, stream: Stream, *, batch: int = 500) -> None:
        self._db = db
        self._bus = bus
        self._stream = stream
        self._batch = batch
        self._position: Position | None = None

    def run_once(self, seconds: float = 0.0) -> Counts:
        incarnation = self._stream.incarnation()
        was = self._position or self._db.read(lambda tx: groups.position(tx, self._stream.name))
        start = was.position if was.incarnation == incarnation else 0
        arrivals = self._stream.read(start, self._batch, seconds)
        if not arrivals:
            return Counts()
        to = Position(incarnation, arrivals[-1].position)
        # no waiting for the disk: the position would be lost with what was read, and the stream has it still
        counts = self._db.run(lambda tx: self._write(tx, was, to, start, arrivals), durable=False)
        if counts is None:  # another receiver was faster
            self._position = None
            self._stream.reset()
            return Counts()
        self._position = to
        return counts

    def _write(self, tx: Tx, was: Position, to: Position, start: int, arrivals: Sequence[Arrival]) -> Counts | None:
        now = self._bus.clock.now()
        if not groups.set_position(tx, self._stream.name, was, to, now):
            return None
        if arrivals[0].position > start + 1:
            self._truncated(tx, start, arrivals[0].position, now)
        candidates: list[Candidate] = []
        refused: list[tuple[Envelope, Refused]] = []
        broken = 0
        for index, arrival in enumerate(arrivals):
            for envelope in _envelopes(arrival.body):
                if isinstance(envelope, Refused):
                    broken += 1
                    log.error(
                        "bus_message_refused", stream=self._stream.name, position=arrival.position, code=envelope.code
                    )
                    self._record(tx, arrival, envelope, now)
                    continue
                match rules.examine(self._bus.catalogue, envelope, index=index, elsewhere=True):
                    case Candidate() as candidate:
                        candidates.append(candidate)
                    case Refused() as refusal:
                        refused.append((envelope, refusal))
        events.record_refusals(tx, refused, now)
        publications = _publications(candidates)
        routes = events.routing(tx, rules.types_of(publications))
        new = events.insert(tx, publications, now)
        standing = events.standing(tx, [c for p in publications for c in p.renditions])
        seqs = standing.seqs
        events.refill(tx, standing.emptied)
        there = [p for p in publications if all((p.identity, c.major) in seqs for c in p.renditions)]
        known = {p.identity for p in there}
        strange = [p for p in publications if p.identity not in known]
        events.record_refusals(tx, [(p.renditions[0].envelope, rules.reused(p.event_id)) for p in strange], now)
        delivered = events.fan_out(tx, routes, there, seqs, now)
        return Counts(
            received=len(arrivals), new=len(new), delivered=delivered, refused=len(refused) + len(strange) + broken
        )

    def _truncated(self, tx: Tx, start: int, first: int, now: int) -> None:
        """A4: messages that expired before they were read are not skipped without a word."""
        detail = {"code": R.STREAM_TRUNCATED.value, "after": start, "first": first}
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


def _envelopes(body: bytes) -> list[Envelope | Refused]:
    try:
        raw: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return [Refused(code=R.ENVELOPE_MALFORMED, place="", detail=f"not JSON: {error}")]
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
