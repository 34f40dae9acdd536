"""The log of events: publications go in, rows and deliveries come out, each key once (B2)."""

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from patra.bus.delivery import Subscription, recipients
from patra.bus.envelope import Envelope, Refused
from patra.bus.publish import Candidate, Known, Publication
from patra.bus.versions import Version, parse_range
from patra.kernel.canonical import key16
from patra.kernel.db import Queries, Tx

Q = Queries.load("patra.bus")


class Routing(msgspec.Struct, frozen=True, kw_only=True):
    """Who listens to some types, and which of them are frozen, and why."""

    subscriptions: Mapping[str, list[Subscription]]
    frozen: Mapping[str, str]


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the log; `body` is None once it is past its retention."""

    seq: int
    event_type: str
    published_at: int
    body: str | None


class RefusalRow(msgspec.Struct, frozen=True, kw_only=True):
    """A publish that was refused, and how often."""

    event_id: str
    event_type: str
    producer: str
    tenant_id: str
    trace_id: str
    idempotency_key: str
    code: str
    place: str
    detail: str
    first_at: int
    last_at: int
    count: int


def routing(tx: Tx, types: Collection[str]) -> Routing:
    """Read the routes; groups that join at the same time wait until this transaction is over."""
    tx.fetch(Q["routing_lock_shared"])
    subscriptions: dict[str, list[Subscription]] = {}
    frozen: dict[str, str] = {}
    for kind, group_id, name, event_type, versions in tx.fetch(Q["routing"], rows=[(t,) for t in sorted(types)]):
        if kind == "frozen":
            frozen[event_type] = name
        elif (accepted := parse_range(versions)) is not None:
            one = Subscription(group_id=group_id, group=name, event_type=event_type, versions=accepted)
            subscriptions.setdefault(event_type, []).append(one)
    return Routing(subscriptions=subscriptions, frozen=frozen)


def insert(tx: Tx, publications: Sequence[Publication], now: int) -> dict[tuple[bytes, int], int]:
    """Write the events whose key and id are new; gives their `seq` by key and major."""
    rows = [
        (
            e.event_id,
            c.major,
            c.minor,
            e.event_type,
            c.identity,
            c.fingerprint,
            e.producer,
            e.tenant_id,
            e.trace_id,
            e.correlation_id,
            c.order_key,
            c.body,
        )
        for publication in publications
        for c in publication.renditions
        for e in (c.envelope,)
    ]
    return {
        (bytes(identity), major): seq for identity, major, seq in tx.fetch(Q["event_insert"], {"now": now}, rows=rows)
    }


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """Where events stand in the log, by key and major; `emptied` are those whose body is past its retention."""

    seqs: dict[tuple[bytes, int], int]
    emptied: list[Candidate]


def standing(tx: Tx, candidates: Sequence[Candidate]) -> Standing:
    """Where events stand in the log, as far as they are there under the same id."""
    rows = [(c.envelope.event_id, c.major) for c in candidates]
    found = {(event_id, major): (seq, empty) for event_id, major, seq, empty in tx.fetch(Q["event_seqs"], rows=rows)}
    there = [(c, *found[key]) for c in candidates if (key := (c.envelope.event_id, c.major)) in found]
    return Standing(
        seqs={(c.identity, c.major): seq for c, seq, _ in there}, emptied=[c for c, _, empty in there if empty]
    )


def refill(tx: Tx, candidates: Sequence[Candidate]) -> None:
    """Give events that come after their retention, from a broker that was away, their body back: it is needed now."""
    tx.execute(Q["event_refill"], rows=[(c.envelope.event_id, c.major, c.fingerprint, c.body) for c in candidates])


def remove(tx: Tx, seqs: Collection[int]) -> None:
    """Take back rows of this transaction: of an event in two versions one was there before."""
    tx.execute(Q["event_remove"], rows=[(seq,) for seq in sorted(seqs)])


def known(tx: Tx, identities: Collection[bytes]) -> dict[bytes, Known]:
    """What the log holds under some idempotency keys."""
    found: dict[bytes, tuple[str, dict[int, bytes]]] = {}
    for identity, event_id, major, fingerprint in tx.fetch(Q["event_known"], rows=[(i,) for i in sorted(identities)]):
        found.setdefault(bytes(identity), (event_id, {}))[1][major] = bytes(fingerprint)
    return {identity: Known(event_id, prints) for identity, (event_id, prints) in found.items()}


def fan_out(
    tx: Tx, routes: Routing, publications: Sequence[Publication], seqs: Mapping[tuple[bytes, int], int], now: int
) -> int:
    """One delivery for each group that listens, in the newest version that it reads; gives how many."""
    rows: list[tuple[int, int, bytes | None]] = []
    chosen: dict[tuple[object, ...], list[tuple[int, int]]] = {}
    for publication in publications:
        first, *more = publication.renditions
        key = (first.kind.name, first.major, first.minor, *[(c.major, c.minor) for c in more])
        if (to := chosen.get(key)) is None:
            versions = [Version(c.major, c.minor) for c in publication.renditions]
            got = recipients(routes.subscriptions.get(first.kind.name, ()), first.kind.name, versions)
            to = chosen[key] = [(group_id, version.major) for group_id, version in got.items()]
        for group_id, major in to:
            rows.append((group_id, seqs[publication.identity, major], first.order_key))
    return deliver(tx, rows, now)


def deliver(tx: Tx, rows: Sequence[tuple[int, int, bytes | None]], now: int) -> int:
    """Put events before groups and wake whoever waits for them."""
    if not rows:
        return 0
    tx.execute(Q["delivery_insert"], {"now": now}, rows=rows)  # on PostgreSQL it wakes whoever listens, too
    return len(rows)


def wake(tx: Tx, topic: str = "") -> None:
    """Tell listeners, once the transaction has committed, that there is something to do (PostgreSQL's NOTIFY)."""
    tx.fetch(Q["wake"], {"topic": topic})


def record_refusals(tx: Tx, refusals: Iterable[tuple[Envelope, Refused]], now: int) -> None:
    """A4: what was refused leaves a row that says why."""
    rows: dict[bytes, tuple[bytes | str, ...]] = {}
    for envelope, refused in refusals:
        texts = [
            _text(t)
            for t in (
                envelope.event_id,
                envelope.event_type,
                envelope.producer,
                envelope.tenant_id,
                envelope.trace_id,
                envelope.idempotency_key,
            )
        ]
        key = key16("|".join([refused.code, refused.place, *texts[1:4], texts[5]]))
        rows[key] = (key, *texts, refused.code.value, refused.place, _text(refused.detail))
    tx.execute(Q["refusal_record"], {"now": now}, rows=list(rows.values()))


def refusals(tx: Tx, *, limit: int, before: int = 2**62, code: str = "") -> list[RefusalRow]:
    return [
        RefusalRow(**row) for row in tx.fetch_dicts(Q["refusals"], {"limit": limit, "before": before, "code": code})
    ]


def refusals_of(tx: Tx, key: str) -> list[RefusalRow]:
    """Refusals by `event_id` or idempotency key."""
    return [RefusalRow(**row) for row in tx.fetch_dicts(Q["refusals_by_event"], {"event_id": key})]


def after(tx: Tx, seq: int, *, limit: int, event_type: str = "") -> list[Stored]:
    """The log from a place on."""
    return _stored(tx.fetch(Q["events_after"], {"after": seq, "limit": limit, "event_type": event_type}))


def last_seq(tx: Tx) -> int:
    return tx.fetch(Q["events_last"])[0][0]


def by_id(tx: Tx, event_id: str) -> list[Stored]:
    return _stored(tx.fetch(Q["events_by_id"], {"key": event_id}))


def by_trace(tx: Tx, trace_id: str, limit: int = 1000) -> list[Stored]:
    return _stored(tx.fetch(Q["events_by_trace"], {"key": trace_id, "limit": limit}))


def by_correlation(tx: Tx, correlation_id: str, limit: int = 1000) -> list[Stored]:
    return _stored(tx.fetch(Q["events_by_correlation"], {"key": correlation_id, "limit": limit}))


def purge_bodies(tx: Tx, event_type: str, *, before: int, limit: int) -> int:
    """Empty events past their retention that no group and no dead letter waits for; the row and its key stay."""
    return tx.execute(Q["event_purge"], {"event_type": event_type, "before": before, "limit": limit})


def purge_refusals(tx: Tx, *, before: int, limit: int) -> int:
    return tx.execute(Q["refusal_purge"], {"before": before, "limit": limit})


def _stored(rows: list[tuple[int, str, int, str | None]]) -> list[Stored]:
    return [Stored(seq=seq, event_type=kind, published_at=at, body=body) for seq, kind, at, body in rows]


def _text(value: object) -> str:
    """Whatever a caller put there, as text that PostgreSQL can hold."""
    return str(value)[:2000].replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
