"""The index by key: which items of the log may hold a decision that carries a key (`key_search` asks it).

Decisions are indexed behind the writer, a run of items at a time, so that finding them costs the intake nothing: a run
is cut into buckets by the first byte of a key's hash; each bucket of a run is one value. A search reads one bucket of
every run, and looks through what no run has reached yet. `key_index_merge` joins the values of many runs, so that a
search reads few. Batches name rows of the log; they
are indexed too, since facts outlive the log.
"""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from heapq import merge
from itertools import chain

import msgspec

from patra.attribution.contract import keys
from patra.attribution.contract.event_types import NA
from patra.attribution.decision.decisions import Decision, attribution_key_of, billing_key_of
from patra.attribution.decision.output_records import record_keys
from patra.attribution.intake.envelope import legal_id
from patra.attribution.storage.decision_codec import unpack_decisions
from patra.attribution.storage.sql import Q, mark
from patra.kernel.clock import MINUTE, Clock
from patra.kernel.db import Database, Row, Tx

RUN_ITEMS = 128
"""Items of one run; fewer when nothing more has come for a while."""
RUN_TIMEOUT = 5 * MINUTE
"""How long items wait for their run to be full."""
MAX_WAITING_ITEMS = 10_000
"""Items beyond which the index is filled although the intake is busy: a search reads whatever waits."""
MAX_TRANSACTION_TIME = 5 * MINUTE
"""Longer than any transaction lives: a number that is still missing by then was rolled back."""
MAX_DEDUP_CYCLES = 9
"""Cycles of a dedup key that a search by the key looks for one by one; later ones are indexed by the key itself."""
LATER_IN_BATCH = "laterInBatch|"
"""How the index's key of a decision begins that was taken later about an event of a batch."""

INDEXED = "indexed"
"""The mark: the newest item that a run has reached."""

_KEY, _ITEM = 5, 3
"""Bytes of a key's hash after the first, which is the bucket, and of an item's distance from the first of its run."""
ENTRY_BYTES = _KEY + _ITEM
_BASE = 8
MERGED = b"\xff"
"""How a value begins that holds several runs; that of one run begins with its first item, which is never so large."""
SEGMENT_BYTES = 2 * _BASE


class Indexed(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of the indexer."""

    items: int = 0


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
    if decision.batch:
        found.add(LATER_IN_BATCH + decision.batch)
    if subject.dedup and subject.cycle > MAX_DEDUP_CYCLES:
        found.add(subject.dedup)
    found.update(record_keys(decision))
    return found - {NA}


class Indexer:
    """Fills the index, one run at a time. It keeps nothing in memory, and of several only one can write a run."""

    def __init__(
        self,
        db: Database,
        clock: Clock,
        busy: Callable[[], bool] = lambda: False,
        *,
        run: int = RUN_ITEMS,
        patience: int = RUN_TIMEOUT,
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
        indexed, fresh, late, lost = self._db.read(lambda tx: _waiting(tx, self._run, now - MAX_TRANSACTION_TIME))
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
    return (tx.fetch(Q["newest_item"])[0][0] or 0) - mark(tx, INDEXED) >= MAX_WAITING_ITEMS


def _waiting(tx: Tx, limit: int, before: int) -> tuple[int, list[Row], list[Row], list[int]]:
    """How far the index reaches, the items that follow, those that turned up in gaps, and gaps that never will be."""
    indexed = mark(tx, INDEXED)
    late = tx.fetch(Q["gaps_filled"])
    filled = {row[0] for row in late}
    lost = [item for (item,) in tx.fetch(Q["gaps_seen_before"], {"before": before}) if item not in filled]
    return indexed, tx.fetch(Q["fresh_items"], {"after": indexed, "limit": limit}), late, lost


def run_of(items: Mapping[int, bytes], batches: Mapping[int, str]) -> list[Row]:
    """The buckets of a run: for each key of a decision, the bytes of its hash and the distance of its item.

    A decision names its own keys, so a hash collision does no harm. It does not name its batch: that has
    two entries, so that no other is taken for it.
    """
    if not items:
        return []
    base = min(items)
    buckets: dict[int, list[bytes]] = {}
    for item, body in items.items():
        place = (item - base).to_bytes(_ITEM, "big")
        found: set[bytes] = set()
        for _, decision in unpack_decisions(item, body):
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


def items_of_batch(tx: Tx, batch_id: str, newest: int = 0) -> set[int]:
    """The items of a batch, by the log and by the index, which knows it longer; or so many of the newest."""
    if not legal_id(batch_id):
        return set()
    if newest:
        late = {number for (number,) in tx.fetch(Q["newest_of_batch"], {"batch_id": batch_id, "limit": newest})}
        if len(late) == newest:
            return late
    found = {number for (number,) in tx.fetch(Q["log_of_batch"], {"batch_id": batch_id})}
    (bucket,), *parts = _batch_hashes(batch_id)
    for body in _values(tx, bucket, parts[:1]):
        first, second = (set(_items(body, part)) for part in parts)
        found |= first & second
    return found


def locate_items(tx: Tx, wanted: Collection[str]) -> set[int]:
    """Items that may hold a decision with one of the keys."""
    found: set[int] = set()
    buckets: dict[int, list[bytes]] = {}
    for hashed in _hashes(wanted):
        buckets.setdefault(hashed[0], []).append(hashed[1:])
    for bucket, parts in sorted(buckets.items()):
        for body in _values(tx, bucket, parts):
            for part in parts:
                found.update(_items(body, part))
    return found


def _values(tx: Tx, bucket: int, parts: Sequence[bytes]) -> Iterator[bytes]:
    """The values of a bucket that may have one of these hashes, the earliest first."""
    if len(parts) == 1:
        rows = tx.fetch(Q["runs_with_hash"], {"bucket": bucket, "part": parts[0]})
    else:
        rows = tx.fetch(Q["runs_of_bucket"], {"bucket": bucket})
    return (bytes(body) for (body,) in rows)


def located_newest(tx: Tx, wanted: Collection[str]) -> tuple[Iterator[int], int]:
    """The same items, the latest first, and in how many the most frequent of the keys occurs.

    An item that was committed late is in a later run than its neighbours: it comes where the index has it.
    """
    places: list[Iterator[int]] = []
    most = 0
    for hashed in _hashes(wanted):
        values = list(_values(tx, hashed[0], [hashed[1:]]))
        counts = [body.count(hashed[1:]) for body in values]
        most = max(most, sum(counts))
        held = [body for body, count in zip(values, counts, strict=True) if count]
        places.append(_all_backwards(held, hashed[1:]))
    return merge(*places, reverse=True), most


def _all_backwards(bodies: Sequence[bytes], key: bytes) -> Iterator[int]:
    return chain.from_iterable(_items_backwards(body, key) for body in reversed(bodies))


def _items(body: bytes, key: bytes) -> Iterator[int]:
    """The items of a bucket's entries that begin with these bytes."""
    bases, ends, start = segments(body)
    at = body.find(key, start)
    while at >= 0:
        if (at - start) % ENTRY_BYTES == 0:
            yield bases[bisect_right(ends, at)] + int.from_bytes(body[at + _KEY : at + ENTRY_BYTES], "big")
        at = body.find(key, at + 1)


def _items_backwards(body: bytes, key: bytes) -> Iterator[int]:
    """The same, from the last entry on."""
    bases, ends, start = segments(body)
    at = body.rfind(key, start)
    while at >= 0:
        if (at - start) % ENTRY_BYTES == 0:
            yield bases[bisect_right(ends, at)] + int.from_bytes(body[at + _KEY : at + ENTRY_BYTES], "big")
        at = body.rfind(key, start, at + _KEY - 1)


def segments(body: bytes) -> tuple[list[int], list[int], int]:
    """The runs that a value holds: the first item of each, where its entries end, and where the first entry begins."""
    if body[:1] != MERGED:
        return [int.from_bytes(body[:_BASE], "big")], [len(body)], _BASE
    count = int.from_bytes(body[1:_BASE], "big")
    start = end = _BASE + count * SEGMENT_BYTES
    bases: list[int] = []
    ends: list[int] = []
    for place in range(_BASE, start, SEGMENT_BYTES):
        bases.append(int.from_bytes(body[place : place + _BASE], "big"))
        end += int.from_bytes(body[place + _BASE : place + SEGMENT_BYTES], "big")
        ends.append(end)
    return bases, ends, start


def merge_bodies(bodies: Sequence[bytes]) -> bytes:
    """Values of one bucket as one value, which says where each began."""
    heads: list[bytes] = []
    entries: list[bytes] = []
    for body in bodies:
        bases, ends, start = segments(body)
        for base, end in zip(bases, ends, strict=True):
            heads.append(base.to_bytes(_BASE, "big") + (end - start).to_bytes(_BASE, "big"))
            entries.append(body[start:end])
            start = end
    return b"".join((MERGED, len(heads).to_bytes(_BASE - 1, "big"), *heads, *entries))
