"""Writes published events to the kernel's outbox in the publisher's transaction; a relay sends them to the broker."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from patra.bus.catalogue.reasons import Reason
from patra.bus.publishing.publish import Publication
from patra.bus.store import events
from patra.bus.store.stream_control import SUBJECT, CatalogueTold, FreezeTold, encode
from patra.kernel import outbox
from patra.kernel.clock import MINUTE, SECOND, Clock
from patra.kernel.db import Database, Tx
from patra.kernel.ids import new_id
from patra.kernel.retry import DelayTable

CHANNEL = "bus"
POLICY = outbox.Policy(
    delays=DelayTable((SECOND // 10, SECOND, 5 * SECOND, 30 * SECOND, MINUTE)),
    window=None,  # a broker that is down is waited for: a committed event is never given up
    hold=10 * SECOND,  # messages of a killed relay wait that long: twice what a broker may take
    groups=256,
    per_group=8,
    durable=False,  # stream, position and inbox each take out what is sent twice
)


class Parcel(msgspec.Struct, frozen=True, kw_only=True):
    """One message for a broker: `key` is the event's id, so that the broker recognises a repetition."""

    key: str
    event_type: str
    body: bytes
    published_by: str = ""  # who handed the event in (B7)


class Broker(Protocol):
    """What a broker must do: keep messages durably, in the order in which they were confirmed."""

    def send(self, parcels: Sequence[Parcel]) -> list[str | None]:
        """Send all at once; gives None for each that the broker confirmed, else a code."""
        ...


class Outboxed:
    """Events leave through the outbox: they are sent if, and only if, the publisher's transaction commits."""

    def send(
        self,
        tx: Tx,
        routes: events.Routing,
        publications: Sequence[Publication],
        seqs: dict[tuple[bytes, int], int],
        now: int,
    ) -> None:
        del routes, seqs  # the receiver finds who listens
        outbox.append(tx, CHANNEL, [message(p) for p in publications], now)
        events.wake(tx)

    def tell(self, tx: Tx, told: FreezeTold | CatalogueTold, now: int) -> None:
        """Through the stream, one after the other, so that the last word is the last that others read."""
        payload = f"{SUBJECT}\n".encode() + encode(told)
        outbox.append(tx, CHANNEL, [outbox.Message(group=SUBJECT, key=new_id(), payload=payload)], now)
        events.wake(tx)


def message(publication: Publication) -> outbox.Message:
    """An event with all its renditions as one message; events of one ordering key go out one after the other."""
    first = publication.renditions[0]
    group = publication.event_id if first.order_key is None else first.order_key.hex()
    bodies = [c.body for c in publication.renditions]
    return outbox.Message(group=group, key=publication.event_id, payload=pack(first.kind.name, bodies))


def pack(event_type: str, bodies: Sequence[str]) -> bytes:
    """The type on the first line (the subject), then one envelope, or a list of them."""
    text = bodies[0] if len(bodies) == 1 else f"[{','.join(bodies)}]"
    return f"{event_type}\n{text}".encode()


def relay(db: Database, broker: Broker, clock: Clock) -> outbox.Relay:
    return outbox.Relay(db, CHANNEL, _deliver(db, broker), POLICY, clock)


def _deliver(db: Database, broker: Broker) -> Callable[[Sequence[outbox.Pending]], list[outbox.Outcome]]:
    def deliver(messages: Sequence[outbox.Pending]) -> list[outbox.Outcome]:
        """Rounds of one message a group: a key's next event leaves when the last one is confirmed."""
        outcomes: dict[int, outbox.Outcome] = {}
        lines: dict[bytes, list[outbox.Pending]] = {}
        who = db.read(lambda tx: events.publishers(tx, [one.key for one in messages]))
        for one in messages:
            lines.setdefault(one.group_key, []).append(one)
        while lines:
            heads = [line[0] for line in lines.values()]
            for head, code in zip(heads, broker.send([_parcel(h, who) for h in heads]), strict=True):
                line = lines[head.group_key]
                if code is None:
                    outcomes[head.seq] = outbox.Delivered()
                    line.pop(0)
                else:
                    outcomes |= {one.seq: outbox.Untried() for one in line[1:]}
                    outcomes[head.seq] = outbox.Retry(code)
                    line.clear()
            lines = {key: line for key, line in lines.items() if line}
        return [outcomes[one.seq] for one in messages]

    return deliver


def _parcel(pending: outbox.Pending, who: Mapping[str, str]) -> Parcel:
    event_type, _, body = pending.payload.partition(b"\n")
    by = who.get(pending.key, "")
    return Parcel(key=pending.key, event_type=event_type.decode(), body=body, published_by=by)


UNREACHABLE = Reason.TRANSPORT_UNREACHABLE.value
