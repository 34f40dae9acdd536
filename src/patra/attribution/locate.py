"""A key of the specification goes in; every decision that carries it comes out, with its batch (§3.8.8, §3.8.25).

Decisions are indexed behind the writer, a run of items at a time, so that finding them costs the intake nothing: a run
is cut into buckets by the first byte of a key's hash; each bucket of a run is one value, appended and never changed. A
search reads one bucket of every run, and looks through what no run has reached yet. Keys that name a row of their
own (billing keys, batches) need no index.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from hashlib import sha256

import msgspec

from patra.attribution import keys
from patra.attribution.decide import ITEM_BITS
from patra.attribution.facts import Decision, attribution_key_of, billing_key_of
from patra.attribution.pack import unpacked
from patra.attribution.reading import Archived, decisions_after, decisions_by_id, decisions_of_items
from patra.attribution.records import record_keys
from patra.attribution.store import Q, mark
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
TAIL_PAGE = 5000
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


def located_by(decision: Decision) -> set[str]:
    """The keys that a decision can be found by, beyond those that name rows of their own."""
    subject = decision.subject
    found = {subject.source, subject.trace, subject.request, subject.opportunity}
    if subject.reference is not None:
        found.add(subject.reference)
    if subject.closure is not None:
        found.add(subject.closure)
    attribution = attribution_key_of(decision)
    if attribution is not None:
        found.add(keys.attribution_fact_id(attribution))
    found.update(record_keys(decision))
    return found - {"NA"}


def carries(decision: Decision, key: str) -> bool:
    """Whether any key of a decision, or of one of its records, is this one."""
    subject = decision.subject
    own = {subject.dedup, attribution_key_of(decision)}
    billing = billing_key_of(decision)
    own |= {billing, keys.billable_fact_id(billing)} if billing else set()
    return key in own or key in located_by(decision)


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
        items = {item: bytes(body) for item, _, body in (*late, *fresh)}
        newest = max([indexed, *items])
        rows = run_of(items)  # decoded and hashed outside of any transaction that writes: the writer is first
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


def run_of(items: Mapping[int, bytes]) -> list[Row]:
    """The buckets of a run: for each key of a decision, the bytes of its hash and the distance of its item."""
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
    head = base.to_bytes(_BASE, "big")
    return [(bucket, head + b"".join(entries)) for bucket, entries in sorted(buckets.items())]


def _hashes(found: Iterable[str]) -> list[bytes]:
    return [sha256(key.encode()).digest()[: _KEY + 1] for key in found]


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


def find(tx: Tx, key: str) -> list[Found]:
    """Every decision that carries a key, in the order of decision; a batch's id stands for all of its events."""
    wanted = [key, *_sources(key)]
    ids = [number for (number,) in tx.fetch(Q["billable_by_key"], {"key": _billing16(key)})]
    seen = decisions_by_id(tx, ids) + decisions_of_items(tx, _located(tx, wanted))
    found = {one.id: one for one in seen if any(carries(one.decision, one_key) for one_key in wanted)}
    found |= {one.id: one for one in _tail(tx, wanted)}
    found |= {one.id: one for one in decisions_of_batch(tx, key)}
    return _with_batches(tx, [found[number] for number in sorted(found)])


def decisions_of_batch(tx: Tx, batch_id: str, event_id: str | None = None) -> list[Archived]:
    """What was decided about the events of a batch, or about one of them."""
    if "\x00" in batch_id:
        return []
    numbers = [number for (number,) in tx.fetch(Q["log_of_batch"], {"batch_id": batch_id})]
    found = [one for one in decisions_of_items(tx, numbers) if one.decision.subject.index is not None]
    return [one for one in found if event_id is None or one.decision.subject.event_id == event_id]


def _sources(key: str) -> list[str]:
    """Source event ids that a dedup key or an attribution key stands for."""
    attribution, _, of_attribution = key.partition("|")
    dedup = of_attribution if attribution.startswith("attr_") else key
    if not dedup.startswith(f"{keys.DEDUP_VERSION}:"):
        return []
    if dedup is not key:  # an attribution key carries its cycle
        return [f"fe_{keys.half(dedup).hex()}"]
    return [keys.server_event_key(dedup, cycle) for cycle in range(1, MOST_CYCLES + 1)]


def _tail(tx: Tx, wanted: Collection[str]) -> list[Archived]:
    """Decisions that the indexer has not reached yet."""
    after = ((mark(tx, INDEXED) + 1) << ITEM_BITS) - 1
    found: list[Archived] = []
    while page := decisions_after(tx, after, TAIL_PAGE):
        found += [one for one in page if any(carries(one.decision, key) for key in wanted)]
        after = page[-1].id
    return found


def _billing16(key: str) -> bytes:
    """A billing key's place in its table, also when it is given as the id of its fact."""
    if key.startswith("bf_") and len(key) == 35:
        try:
            return bytes.fromhex(key[3:])
        except ValueError:
            pass
    return keys.half(key)


def _with_batches(tx: Tx, found: list[Archived]) -> list[Found]:
    rows: list[Row] = [(number,) for number in sorted({one.id >> ITEM_BITS for one in found})]
    batches = dict(tx.fetch(Q["batch_ids"], rows=rows))
    return [
        Found(
            archived=one,
            batch_id=batches.get(one.id >> ITEM_BITS) if one.decision.subject.index is not None else None,
        )
        for one in found
    ]
