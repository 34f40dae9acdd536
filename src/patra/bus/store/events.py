"""The log of events: writes publications as rows and deliveries, each key once (B2)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import takewhile

import msgspec

from patra.bus.catalogue.versions import Version, parse_range
from patra.bus.consuming.recipients import Subscription, recipients
from patra.bus.consuming.version_stages import StagedMajor, reluctant
from patra.bus.publishing.envelope import Envelope, Refused, deliver_at
from patra.bus.publishing.publish import Candidate, Known, Publication
from patra.bus.store import version_stages
from patra.kernel.canonical import key16
from patra.kernel.db import Queries, Tx

Q = Queries.load("patra.bus")
LATEST = 2**62
PAGE_SCAN_ROWS = 20_000
MAX_LATEST_SCAN = 2_000
MAX_LATEST = 200
"""Of the newest events of a type: so many are looked at, and so many of one tenant and major given."""
"""How much of the log a page looks through for events that pass its filter."""


class Routing(msgspec.Struct, frozen=True, kw_only=True):
    """Who listens to some types, which of them are frozen, and why, and which catalogue is in force."""

    subscriptions: Mapping[str, list[Subscription]]
    frozen: Mapping[str, str]
    staged: Mapping[str, Mapping[int, StagedMajor]] = {}  # new majors that are not for all yet (B8)
    remote: tuple[str, ...] = ()  # digests of catalogues that other stores of the stream have adopted
    adopted: str = ""  # the digest of the catalogue in force; empty before the first was adopted


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the log; `body` is None once it is past its retention."""

    seq: int
    event_type: str
    published_at: int
    body: str | None
    published_by: str | None = None
    event_id: str
    tenant_id: str


class EventsPage(msgspec.Struct, frozen=True, kw_only=True):
    """Events of the log, the newest first; `next` is where the page after begins, None at the beginning of the log."""

    events: list[Stored]
    next: int | None


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
    published_by: str | None = None


def routing(tx: Tx, types: Collection[str]) -> Routing:
    """Read the routes; groups that join at the same time wait until this transaction is over."""
    tx.fetch(Q["routing_lock_shared"])
    subscriptions: dict[str, list[Subscription]] = {}
    frozen: dict[str, str] = {}
    staged: dict[str, dict[int, StagedMajor]] = {}
    adopted = ""
    remote: list[str] = []
    for kind, group_id, name, event_type, versions in tx.fetch(Q["routing"], rows=[(t,) for t in sorted(types)]):
        if kind == "frozen":
            frozen[event_type] = name
        elif kind == "catalogue":
            adopted = name
        elif kind == "remote":
            remote.append(name)
        elif kind == "stage":
            share, _, tenants = versions.partition(" ")
            one = version_stages.stage_major(event_type, group_id, name, tenants, int(share))
            staged.setdefault(event_type, {})[group_id] = one
        elif (accepted := parse_range(versions)) is not None:
            one = Subscription(group_id=group_id, group=name, event_type=event_type, versions=accepted)
            subscriptions.setdefault(event_type, []).append(one)
    return Routing(
        subscriptions=subscriptions, frozen=frozen, adopted=adopted, staged=staged, remote=tuple(sorted(set(remote)))
    )


def insert(
    tx: Tx, publications: Sequence[Publication], now: int, by: str = "", *, by_event: Mapping[str, str] | None = None
) -> dict[tuple[bytes, int], int]:
    """Write the events whose key and id are new, and who handed them in; gives their `seq` by key and major.

    `by_event` names who handed in each event, where they are not all of one hand.
    """
    who = by_event or {}
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
            who.get(e.event_id, by),
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


def publishers(tx: Tx, event_ids: Collection[str]) -> dict[str, str]:
    """Who handed in some events, where that is known (B7)."""
    return dict(tx.fetch(Q["event_publishers"], rows=[(event_id,) for event_id in event_ids]))


def refill(tx: Tx, candidates: Sequence[Candidate]) -> None:
    """Give events that come after their retention, from a broker that was away, their body back: it is needed now."""
    tx.execute(Q["event_refill"], rows=[(c.envelope.event_id, c.major, c.fingerprint, c.body) for c in candidates])


def remove(tx: Tx, seqs: Collection[int]) -> None:
    """Take back rows of this transaction: of an event in two versions one was there before."""
    tx.execute(Q["event_remove"], rows=[(seq,) for seq in sorted(seqs)])


def find_known(tx: Tx, identities: Collection[bytes]) -> dict[bytes, Known]:
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
    scheduled: list[tuple[int, int, int]] = []
    chosen: dict[tuple[object, ...], list[tuple[int, int]]] = {}
    for publication in publications:
        first, *more = publication.renditions
        key = (first.kind.name, first.major, first.minor, *[(c.major, c.minor) for c in more])
        avoided: frozenset[int] = frozenset()
        if more and (staged := routes.staged.get(first.kind.name)):
            majors = [c.major for c in publication.renditions]
            avoided = reluctant(staged, first.envelope.tenant_id, publication.identity, majors)
            key = (*key, avoided)
        if (to := chosen.get(key)) is None:
            versions = [Version(c.major, c.minor) for c in publication.renditions]
            got = recipients(routes.subscriptions.get(first.kind.name, ()), first.kind.name, versions, avoided)
            to = chosen[key] = [(group_id, version.major) for group_id, version in got.items()]
        due_at = deliver_at(first.envelope)
        for group_id, major in to:
            rows.append((group_id, seqs[publication.identity, major], first.order_key))
            if due_at > now:
                scheduled.append((group_id, seqs[publication.identity, major], due_at))
    count = deliver(tx, rows, now)
    tx.execute(Q["deliveries_schedule"], rows=scheduled)
    return count


def deliver(tx: Tx, rows: Sequence[tuple[int, int, bytes | None]], now: int) -> int:
    """Queue events for groups and wake the workers that wait for them."""
    if not rows:
        return 0
    tx.execute(Q["delivery_insert"], {"now": now}, rows=rows)  # on PostgreSQL it wakes listeners, too
    return len(rows)


def wake(tx: Tx, topic: str = "") -> None:
    """Notify listeners, once the transaction has committed, that there is work (PostgreSQL's NOTIFY)."""
    tx.fetch(Q["wake"], {"topic": topic})


def record_refusals(
    tx: Tx, refusals: Iterable[tuple[Envelope, Refused]], now: int, by: str = "", group: str = ""
) -> None:
    """A4: what was refused leaves a row that says why; the same again is counted there, for each group by itself."""
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
        who = [by, group] if group else [by] if by else []
        key = key16("|".join([refused.code, refused.place, *texts[1:4], texts[5], *who]))
        rows[key] = (key, *texts, refused.code.value, refused.place, _text(refused.detail))
    tx.execute(Q["refusal_record"], {"now": now, "by": by}, rows=list(rows.values()))


def refusals(tx: Tx, *, limit: int, before: int = LATEST, code: str = "", tenant_id: str = "") -> list[RefusalRow]:
    """The latest first; those of the last instant are all there, so that the next page begins before it."""
    asked = {"limit": limit, "before": before, "code": code, "tenant_id": tenant_id}
    return [RefusalRow(**row) for row in tx.fetch_dicts(Q["refusals"], asked)]


def refusals_of(tx: Tx, key: str, tenant_id: str = "") -> list[RefusalRow]:
    """Refusals by `event_id` or idempotency key."""
    asked = {"event_id": key, "tenant_id": tenant_id}
    return [RefusalRow(**row) for row in tx.fetch_dicts(Q["refusals_by_event"], asked)]


def after(tx: Tx, seq: int, *, limit: int, event_type: str = "") -> list[Stored]:
    """The log from a place on."""
    return _stored_events(tx.fetch(Q["events_after"], {"after": seq, "limit": limit, "event_type": event_type}))


def page_before(tx: Tx, before: int = LATEST, *, limit: int, event_type: str = "", tenant_id: str = "") -> EventsPage:
    """The log backwards from a place, as far as bodies are kept.

    A page looks through a bounded stretch of the log: with a filter that few events pass it may be short or empty, and
    there is more all the same.
    """
    top = min(before, last_seq(tx) + 1)
    lowest = max(top - PAGE_SCAN_ROWS, 0)
    asked = {"before": top, "lowest": lowest, "event_type": event_type, "tenant_id": tenant_id, "limit": limit}
    found = _stored_events(tx.fetch(Q["events_before"], asked))
    following = found[-1].seq if len(found) == limit else lowest
    return EventsPage(events=found, next=following if following > 1 else None)


class Published(msgspec.Struct, frozen=True):
    """An event of the log without its body."""

    seq: int
    event_id: str
    published_at: int


def latest_of_type(tx: Tx, event_type: str, major: int, tenant_id: str) -> list[Published]:
    """The newest events of a type, major version and tenant whose bodies are kept; a bounded look back."""
    asked = {"event_type": event_type, "major": major, "tenant_id": tenant_id}
    found = tx.fetch(Q["events_of_type"], {**asked, "scanned": MAX_LATEST_SCAN, "limit": MAX_LATEST})
    return [Published(*row) for row in found]


def bodies(tx: Tx, seqs: Collection[int]) -> dict[int, str]:
    """The bodies of some events, as far as they are kept."""
    return dict(tx.fetch(Q["event_bodies"], rows=[(seq,) for seq in sorted(seqs)]))


def last_seq(tx: Tx) -> int:
    return tx.fetch(Q["events_last"])[0][0]


def by_id(tx: Tx, event_id: str, tenant_id: str = "") -> list[Stored]:
    return _stored_events(tx.fetch(Q["events_by_id"], {"key": event_id, "tenant_id": tenant_id}))


def by_trace(tx: Tx, trace_id: str, limit: int = 1000, tenant_id: str = "") -> list[Stored]:
    return _stored_events(tx.fetch(Q["events_by_trace"], {"key": trace_id, "limit": limit, "tenant_id": tenant_id}))


def by_correlation(tx: Tx, correlation_id: str, limit: int = 1000, tenant_id: str = "") -> list[Stored]:
    asked = {"key": correlation_id, "limit": limit, "tenant_id": tenant_id}
    return _stored_events(tx.fetch(Q["events_by_correlation"], asked))


def by_idempotency_keys(tx: Tx, keys: Collection[str], limit: int = 1000, tenant_id: str = "") -> list[Stored]:
    """Events by the key of B2 alone, whatever their type; those past their retention are not found."""
    rows = [(msgspec.json.encode(key).decode()[1:-1].partition('"')[0],) for key in sorted(set(keys))]
    asked = {"limit": limit, "tenant_id": tenant_id}
    return _stored_events(tx.fetch(Q["events_by_idempotency_key"], asked, rows=rows)) if rows else []


class PurgeMark(msgspec.Struct, frozen=True):
    """How far the log of a type was looked through for events past their retention: the last one that was seen."""

    published_at: int = 0
    seq: int = 0


class PurgedPage(msgspec.Struct, frozen=True, kw_only=True):
    """How many events a page had, and how many of them were emptied; the next page begins after `last`."""

    seen: int
    emptied: int
    last: PurgeMark


def purge_bodies(tx: Tx, event_type: str, *, before: int, limit: int, after: PurgeMark = PurgeMark()) -> PurgedPage:  # noqa: B008  frozen
    """Empty events past their retention that no group and no dead letter waits for; the row and its key stay.

    One page of the log after a mark: what has to stay is looked at once, and not again with every page.
    """
    asked = {"event_type": event_type, "before": before, "limit": limit}
    page = tx.fetch(Q["event_purge_page"], {**asked, "from_at": after.published_at, "from_seq": after.seq})
    if not page:
        return PurgedPage(seen=0, emptied=0, last=after)
    emptied = tx.execute(Q["event_purge"], rows=[(seq,) for seq, _ in page])
    seq, published_at = page[-1]
    return PurgedPage(seen=len(page), emptied=emptied, last=PurgeMark(published_at, seq))


class PurgedKeys(msgspec.Struct, frozen=True, kw_only=True):
    """How many events a page had and how many of them were deleted, keys and all; the next page begins after `last`."""

    seen: int
    deleted: int
    last: int


def purge_keys(tx: Tx, *, before: int, limit: int, after: int = 0) -> PurgedKeys:
    """Delete emptied events from before an instant, but never the newest: then their keys may be used again (B2).

    One page of the log after a place, up to the first event that is too young.
    """
    page = tx.fetch(Q["event_key_page"], {"after": after, "limit": limit})
    old: list[int] = [row[0] for row in takewhile(lambda row: row[1] < before, page)]
    if not old:
        return PurgedKeys(seen=0, deleted=0, last=after)
    deleted = tx.execute(Q["event_key_purge"], rows=[(seq,) for seq in old])
    return PurgedKeys(seen=len(old), deleted=deleted, last=old[-1])


def purge_refusals(tx: Tx, *, before: int, limit: int) -> int:
    return tx.execute(Q["refusal_purge"], {"before": before, "limit": limit})


def _stored_events(rows: list[tuple[int, str, int, str | None, str | None, str, str]]) -> list[Stored]:
    return [
        Stored(
            seq=seq,
            event_type=kind,
            published_at=at,
            body=body,
            published_by=by,
            event_id=event_id,
            tenant_id=tenant_id,
        )
        for seq, kind, at, body, by, event_id, tenant_id in rows
    ]


def _text(value: object) -> str:
    """Whatever a caller put there, as text that PostgreSQL can hold."""
    return str(value)[:2000].replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
