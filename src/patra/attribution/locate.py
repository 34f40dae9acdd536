"""A key of the specification goes in; the decisions that carry it come out, with their batch, page by page.

§3.8.8, §3.8.16, §3.8.20, §3.8.25, §3.8.28, §3.8.30 name the keys.

Decisions are indexed behind the writer, a run of items at a time, so that finding them costs the intake nothing: a run
is cut into buckets by the first byte of a key's hash; each bucket of a run is one value, appended and never changed. A
search reads one bucket of every run, and looks through what no run has reached yet. Batches name rows of the log; they
are indexed too, since facts outlive the log.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256

import msgspec

from patra.attribution import keys
from patra.attribution.batch import read_batch
from patra.attribution.closure import Action
from patra.attribution.contract import NA
from patra.attribution.decide import ITEM_BITS
from patra.attribution.facts import Decision, attribution_key_of, audit_key_of, billing_key_of
from patra.attribution.frame import decompressed
from patra.attribution.intake import legal_id
from patra.attribution.pack import unpacked
from patra.attribution.reading import Archived, Meets, decisions_from, decisions_of_items
from patra.attribution.records import record_keys
from patra.attribution.statements import Q, mark
from patra.kernel.clock import MINUTE, Clock
from patra.kernel.db import Database, Row, Tx

RUN = 128
"""Items of one run; fewer when nothing more has come for a while."""
PATIENCE = 5 * MINUTE
"""How long items wait for their run to be full."""
MOST_WAITING = 10_000
"""Items beyond which the index is filled although the intake is busy: a search reads whatever waits."""
LATEST_COMMIT = 5 * MINUTE
"""Longer than any transaction lives: a number that is still missing by then was rolled back."""
MOST_FOUND = 1000
"""Decisions of one page of an answer, unless one asks for fewer."""
STEP = 100
"""Items that are read at a time."""
MOST_BODIES = 1000
"""Batches of one id, the newest, that are read again for an event that was dropped."""
MOST_CYCLES = 9
"""Cycles of a dedup key that a search by the key looks for."""

INDEXED = "indexed"
"""The mark: the newest item that a run has reached."""

_KEY, _ITEM = 5, 3
"""Bytes of a key's hash after the first, which is the bucket, and of an item's distance from the first of its run."""
_ENTRY = _KEY + _ITEM
_BASE = 8


class Indexed(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of the indexer."""

    items: int = 0


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A decision and the batch in which the event came, where one did."""

    archived: Archived
    batch_id: str | None


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """A page of what was found, in the order of decision; `next` is the number to go on after, if there is more."""

    found: list[Found]
    next: int | None


def located_by(decision: Decision) -> set[str]:
    """The keys that a decision can be found by, beyond its batch."""
    subject = decision.subject
    found = {
        subject.source,
        subject.app,
        subject.event_id,
        subject.trace,
        subject.request,
        subject.attempt,
        subject.opportunity,
        subject.reference or NA,
        subject.render or NA,
        subject.closure or NA,
    }
    billing, attribution = billing_key_of(decision), attribution_key_of(decision)
    if billing is not None:
        found.add(keys.billable_fact_id(billing))
    if attribution is not None:
        found.add(keys.attribution_fact_id(attribution))
    found.update(record_keys(decision))
    return found - {NA}


class _Sought:
    """A key that is looked for, and under which other names a decision carries it."""

    def __init__(self, *names: str) -> None:
        self.keys = frozenset(names) - {NA}
        self._derived = any(key.startswith(("af_", "bf_", "attr_")) or "|billable_" in key for key in names)
        self._record = any(len(key) == 64 for key in names)
        self._audits = {key for key in names if key.startswith("fe_") and "|" in key}

    def met_by(self, decision: Decision) -> bool:
        """Whether any key of a decision, or of one of its records, is this one; hashes are made only where needed."""
        subject, sought = decision.subject, self.keys
        return (
            subject.source in sought
            or subject.app in sought
            or subject.event_id in sought
            or subject.trace in sought
            or subject.request in sought
            or subject.attempt in sought
            or subject.opportunity in sought
            or subject.reference in sought
            or subject.render in sought
            or subject.closure in sought
            or subject.dedup in sought
            or (self._derived and not sought.isdisjoint(_derived(decision)))
            or (self._record and not sought.isdisjoint(record_keys(decision)))
            or (bool(self._audits) and audit_key_of(decision) in self._audits)
        )

    @property
    def places(self) -> frozenset[str]:
        """Keys of the index that lead to it: an audit's own, its `payloadKey`, begins with its source."""
        return self.keys.union(key.partition("|")[0] for key in self._audits)


def _derived(decision: Decision) -> set[str]:
    """Keys and ids of the facts of a decision."""
    billing, attribution = billing_key_of(decision), attribution_key_of(decision)
    found = {billing, keys.billable_fact_id(billing)} if billing else set[str]()
    return found | ({attribution, keys.attribution_fact_id(attribution)} if attribution else set[str]())


class Indexer:
    """Fills the index, one run at a time. It keeps nothing in memory, and of several only one can write a run."""

    def __init__(
        self,
        db: Database,
        clock: Clock,
        busy: Callable[[], bool] = lambda: False,
        *,
        run: int = RUN,
        patience: int = PATIENCE,
    ) -> None:
        self._db = db
        self._clock = clock
        self._busy = busy
        self._run = run
        self._patience = patience

    def run_once(self) -> Indexed:
        """Index what came since, and what has turned up in gaps: numbers drawn earlier and committed later."""
        if self._busy() and not self._db.read(_too_many_wait):
            return Indexed()
        now = self._clock.now()
        indexed, fresh, late, lost = self._db.read(lambda tx: _waiting(tx, self._run, now - LATEST_COMMIT))
        if len(fresh) < self._run and (not fresh or now - fresh[0][1] < self._patience):
            fresh = []
        if not (fresh or late or lost):
            return Indexed()
        items = {item: bytes(body) for item, _, body, _ in (*late, *fresh)}
        newest = max([indexed, *items])
        batches = {item: batch_id for item, _, _, batch_id in (*late, *fresh) if batch_id is not None}
        rows = run_of(items, batches)  # decoded and hashed outside of any transaction that writes: the writer is first
        missing = [(item,) for item in range(indexed + 1, newest) if item not in items]
        closed = sorted({item for item, *_ in late}.union(lost))

        def work(tx: Tx) -> int:
            # the mark and the gaps move with the run, and only from where they were: another may have been first
            if fresh and not tx.execute(Q["move_mark"], {"name": INDEXED, "was": indexed, "value": newest}):
                raise _OvertakenError
            if tx.execute(Q["close_gaps"], rows=[(item,) for item in closed]) != len(closed):
                raise _OvertakenError
            tx.execute(Q["add_gaps"], {"now": now}, rows=missing)
            if rows:
                ((number,),) = tx.fetch(Q["next_run"])
                tx.execute(Q["add_run"], {"run": number, "last": newest}, rows=rows)
            return len(items)

        try:
            return Indexed(items=self._db.run(work))
        except _OvertakenError:
            return Indexed()


class _OvertakenError(Exception):
    """Another indexer wrote this run first."""


def _too_many_wait(tx: Tx) -> bool:
    return (tx.fetch(Q["newest_item"])[0][0] or 0) - mark(tx, INDEXED) >= MOST_WAITING


def _waiting(tx: Tx, limit: int, before: int) -> tuple[int, list[Row], list[Row], list[int]]:
    """How far the index reaches, the items that follow, those that turned up in gaps, and gaps that never will be."""
    indexed = mark(tx, INDEXED)
    late = tx.fetch(Q["gaps_filled"])
    filled = {row[0] for row in late}
    lost = [item for (item,) in tx.fetch(Q["gaps_seen_before"], {"before": before}) if item not in filled]
    return indexed, tx.fetch(Q["fresh_items"], {"after": indexed, "limit": limit}), late, lost


def run_of(items: Mapping[int, bytes], batches: Mapping[int, str]) -> list[Row]:
    """The buckets of a run: for each key of a decision, the bytes of its hash and the distance of its item.

    A decision tells its own keys, so a hash that is another's too misleads nobody. It does not tell its batch: that has
    two entries, so that no other is taken for it.
    """
    if not items:
        return []
    base = min(items)
    buckets: dict[int, list[bytes]] = {}
    for item, body in items.items():
        place = (item - base).to_bytes(_ITEM, "big")
        found: set[bytes] = set()
        for _, decision in unpacked(item, body):
            found.update(_hashes(located_by(decision)))
        for hashed in found:
            buckets.setdefault(hashed[0], []).append(hashed[1:] + place)
        if item in batches:
            bucket, *parts = _batch_hashes(batches[item])
            buckets.setdefault(bucket[0], []).extend(part + place for part in parts)
    head = base.to_bytes(_BASE, "big")
    return [(bucket, head + b"".join(entries)) for bucket, entries in sorted(buckets.items())]


def _hashes(found: Iterable[str]) -> list[bytes]:
    return [sha256(key.encode()).digest()[: _KEY + 1] for key in found]


def _batch_hashes(batch_id: str) -> tuple[bytes, bytes, bytes]:
    """The bucket of a batch, and the two hashes that stand for it there."""
    hashed = sha256(f"batchId|{batch_id}".encode()).digest()  # no key of a decision but an odd one begins so
    return hashed[:1], hashed[1 : 1 + _KEY], hashed[1 + _KEY : 1 + 2 * _KEY]


def _items_of_batch(tx: Tx, batch_id: str) -> set[int]:
    """The items of a batch, by the log and by the index, which knows it longer."""
    if not legal_id(batch_id):
        return set()
    found = {number for (number,) in tx.fetch(Q["log_of_batch"], {"batch_id": batch_id})}
    (bucket,), *parts = _batch_hashes(batch_id)
    for (body,) in tx.fetch(Q["runs_of_bucket"], {"bucket": bucket}):
        first, second = (set(_items(bytes(body), part)) for part in parts)
        found |= first & second
    return found


def _located(tx: Tx, wanted: Collection[str]) -> set[int]:
    """Items that may hold a decision with one of the keys."""
    found: set[int] = set()
    for hashed in _hashes(wanted):
        for (body,) in tx.fetch(Q["runs_of_bucket"], {"bucket": hashed[0]}):
            found.update(_items(bytes(body), hashed[1:]))
    return found


def _items(body: bytes, key: bytes) -> Iterator[int]:
    """The items of a bucket's entries that begin with these bytes."""
    base = int.from_bytes(body[:_BASE], "big")
    at = body.find(key, _BASE)
    while at >= 0:
        if (at - _BASE) % _ENTRY == 0:
            yield base + int.from_bytes(body[at + _KEY : at + _ENTRY], "big")
        at = body.find(key, at + 1)


class Only(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for beside a key; what is empty is not asked."""

    app: str = ""
    code: str = ""
    """A `decisionReasonCode`."""
    action: str = ""

    def met_by(self, decision: Decision) -> bool:
        return (
            (not self.app or decision.subject.app == self.app)
            and (not self.code or decision.reason == self.code)
            and (not self.action or decision.action == self.action)
        )


ANY = Only()


def find(tx: Tx, key: str, only: Only = ANY, *, after: int = -1, limit: int = MOST_FOUND) -> Results:
    """The decisions that carry a key, in their order: those that follow a number, so many of them.

    A batch's id stands for all of its events. An app's id matches very many: it is found page by page, like any key.
    """
    batch = _items_of_batch(tx, key)
    sought = _Sought(key, *_stands_for(key))

    def meets(number: int, decision: Decision) -> bool:
        of_batch = number >> ITEM_BITS in batch and decision.subject.index is not None
        return number > after and only.met_by(decision) and (of_batch or sought.met_by(decision))

    found = _search(tx, batch | _located(tx, sought.places), meets, (after + 1) >> ITEM_BITS, limit)
    page = found[:limit]
    return Results(
        found=with_batches(tx, page, dict.fromkeys(batch, key)), next=page[-1].id if len(found) > limit else None
    )


def _search(tx: Tx, items: Collection[int], meets: Meets, first: int, limit: int) -> list[Archived]:
    """Decisions of some items from one on, and of all that no run has reached; at most a step past the limit."""
    indexed = mark(tx, INDEXED)
    gaps = {item for (item,) in tx.fetch(Q["gaps"])}
    early = [item for item in gaps.union(items) if item <= indexed]
    found = _step_by_step(tx, early, meets, first, limit)
    item: int | None = max(indexed + 1, first)
    while item is not None and len(found) <= limit:
        some, item = decisions_from(tx, item, STEP, meets)
        found += some
    return found


def _step_by_step(tx: Tx, items: Iterable[int], meets: Meets, first: int, limit: int) -> list[Archived]:
    """Decisions of some items from one on, at most a step past the limit."""
    wanted = sorted(item for item in items if item >= first)
    found: list[Archived] = []
    for start in range(0, len(wanted), STEP):
        found += decisions_of_items(tx, wanted[start : start + STEP], meets)
        if len(found) > limit:
            break
    return found


def decisions_of_batch(
    tx: Tx, batch_id: str, event_id: str = "", only: Only = ANY, *, after: int = -1, limit: int = MOST_FOUND
) -> Results:
    """What was decided about the events of a batch, or about one of them: those that follow a number, so many of them.

    An event that was dropped before for the same reason, in another batch, left its audit there (F20): of one event
    that is asked for by its id, that audit is found too. An id that an SDK gave to all of its batches finds many.
    """
    first = (after + 1) >> ITEM_BITS

    def meets(number: int, decision: Decision) -> bool:
        asked = decision.subject.index is not None and (not event_id or decision.subject.event_id == event_id)
        return number > after and asked and only.met_by(decision)

    items = _items_of_batch(tx, batch_id)
    found = _step_by_step(tx, items, meets, first, limit)
    if event_id:
        sought = _Sought(*_dropped_as(tx, batch_id, event_id, only.app))

        def dropped(number: int, one: Decision) -> bool:
            return number > after and one.action == Action.DROP.value and only.met_by(one) and sought.met_by(one)

        found += _search(tx, _located(tx, sought.keys), dropped, first, limit)
    answer = {one.id: one for one in found}
    page = [answer[number] for number in sorted(answer)[:limit]]
    return Results(
        found=with_batches(tx, page, dict.fromkeys(items, batch_id)),
        next=page[-1].id if len(answer) > limit else None,
    )


def _dropped_as(tx: Tx, batch_id: str, event_id: str, app: str) -> set[str]:
    """Sources that an event of a batch has by its dedup key, as far as the log still has the batch."""
    found: set[str] = set()
    for app_id, at, body in tx.fetch(Q["bodies_of_batch"], {"batch_id": batch_id, "limit": MOST_BODIES}):
        events = read_batch(decompressed(bytes(body)), at).events if app in {"", app_id} else []
        dedups = {event.dedup for event in events if event.sent_id == event_id}
        found.update(keys.server_event_key(dedup, cycle) for dedup in dedups for cycle in range(1, MOST_CYCLES + 1))
    return found


def _stands_for(key: str) -> list[str]:
    """Keys of the index that another stands for: a billing key for its fact, dedup and attribution keys for sources."""
    fact = [keys.billable_fact_id(key)] if "|billable_" in key else []
    attribution, _, of_attribution = key.partition("|")
    dedup = of_attribution if attribution.startswith("attr_") else key
    if not dedup.startswith(f"{keys.DEDUP_VERSION}:"):
        return fact
    if dedup is not key:  # an attribution key carries its cycle
        return [*fact, f"fe_{keys.half(dedup).hex()}"]
    return [*fact, *(keys.server_event_key(dedup, cycle) for cycle in range(1, MOST_CYCLES + 1))]


def with_batches(tx: Tx, found: Sequence[Archived], known: Mapping[int, str] | None = None) -> list[Found]:
    """Decisions, each with the batch of its event as far as the log has it, or it is known."""
    rows: list[Row] = [(number,) for number in sorted({one.id >> ITEM_BITS for one in found})]
    batches = {**(known or {}), **dict(tx.fetch(Q["batch_ids"], rows=rows))}
    return [
        Found(
            archived=one,
            batch_id=batches.get(one.id >> ITEM_BITS) if one.decision.subject.index is not None else None,
        )
        for one in found
    ]
