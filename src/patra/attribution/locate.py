"""A key of the specification goes in; every decision that carries it comes out, with its batch (§3.8.8, §3.8.25).

Decisions are indexed behind the writer, so that finding them costs the intake nothing: `Indexer.run_once` takes a bite
while the intake is not busy, and whatever it has not reached yet is looked through when something is searched. Keys
that name a row of their own (billing keys, batches) need no index.
"""

from collections.abc import Callable, Collection
from hashlib import sha256

import msgspec

from patra.attribution import keys
from patra.attribution.closure import Action
from patra.attribution.decide import ITEM_BITS
from patra.attribution.facts import Decision, attribution_key_of, billing_key_of
from patra.attribution.reading import Archived, decisions_after, decisions_by_id, decisions_of_items
from patra.attribution.records import record_keys
from patra.attribution.store import Q
from patra.kernel.canonical import key16
from patra.kernel.clock import MINUTE, Clock
from patra.kernel.db import Database, Row, Tx

BITE = 5
"""Batches of one turn of the indexer."""
ROWS = 500
"""Rows of the index in one transaction: some milliseconds, since the writer may be waiting for its turn."""
LATEST_COMMIT = 5 * MINUTE
"""Longer than any transaction lives: a number that is still missing by then was rolled back."""
TAIL_PAGE = 5000
MOST_CYCLES = 9
"""Cycles of a dedup key that a search by the key looks for."""

EAGER, SAFE, PURGED = "index_eager", "index_safe", "ledger_purged"
"""Marks: how far the index reaches, below which number it has no gap, and that the ledger has forgotten keys."""


class Indexed(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of the indexer."""

    decisions: int = 0


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
    own = {subject.dedup, subject.attempt, subject.event_id, subject.app, attribution_key_of(decision)}
    billing = billing_key_of(decision)
    own |= {billing, keys.billable_fact_id(billing)} if billing else set()
    return key in own or key in located_by(decision)


class Indexer:
    """Fills the index, one bite at a time; several of them do no harm, only twice the work."""

    def __init__(self, db: Database, clock: Clock, busy: Callable[[], bool] = lambda: False) -> None:
        self._db = db
        self._clock = clock
        self._busy = busy
        self._started = False
        self._eager = 0
        self._gaps: set[int] = set()
        self._checked_at = 0

    def run_once(self) -> Indexed:
        """Index what came since, and what has turned up in gaps: numbers drawn earlier and committed later."""
        if self._busy():
            return Indexed()
        if not self._started:
            self._eager = self._db.read(lambda tx: mark(tx, SAFE))
            self._started = True
        seen, count = self._bite()
        if seen:
            newest = max(*seen, self._eager)
            self._gaps = (self._gaps - seen) | (set(range(self._eager + 1, newest + 1)) - seen)
            self._eager = newest
        now = self._clock.now()
        if len(seen) < BITE and now - self._checked_at >= MINUTE:
            self._checked_at = now
            self._forget_gaps(now - LATEST_COMMIT)
        return Indexed(decisions=count)

    def _bite(self) -> tuple[set[int], int]:
        """Read and hash outside of any transaction that writes, then insert a little at a time: the writer is first."""
        items, found = self._db.read(self._fresh)
        rows = sorted({(key8(key), one.id) for one in found for key in located_by(one.decision)})
        for start in range(0, len(rows), ROWS):
            part = rows[start : start + ROWS]
            self._db.run(lambda tx, part=part: tx.execute(Q["index_decisions"], rows=part))
        if items:
            newest = max(self._eager, *items)
            self._db.run(lambda tx: set_mark(tx, EAGER, newest))
        return set(items), len(found)

    def _fresh(self, tx: Tx) -> tuple[list[int], list[Archived]]:
        late = {number for (number,) in tx.fetch(Q["log_numbers"], rows=[(number,) for number in sorted(self._gaps)])}
        fresh = [number for (number,) in tx.fetch(Q["log_after"], {"after": self._eager, "limit": BITE})]
        items = sorted(late.union(fresh))
        return items, decisions_of_items(tx, items)

    def _forget_gaps(self, before: int) -> None:
        """A number that is missing for longer than a transaction lives is gone; below it everything is indexed."""

        def work(tx: Tx) -> int:
            found = tx.fetch(Q["log_newest_before"], {"before": before, "number": self._eager})
            safe = found[0][0] if found else 0
            if safe > mark(tx, SAFE):
                set_mark(tx, SAFE, safe)
            return safe

        safe = self._db.run(work)
        self._gaps = {number for number in self._gaps if number > safe}


def find(tx: Tx, key: str) -> list[Found]:
    """Every decision that carries a key, in the order of decision; a batch's id stands for all of its events."""
    wanted = [key, *_sources(key)]
    ids = {number for (number,) in tx.fetch(Q["located"], rows=[(key8(one),) for one in wanted])}
    ids.update(number for (number,) in tx.fetch(Q["billable_by_key"], {"key": _billing16(key)}))
    found = {
        one.id: one for one in decisions_by_id(tx, ids) if any(carries(one.decision, one_key) for one_key in wanted)
    }
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


def key8(key: str) -> int:
    """The key in the index: eight bytes of a sha256 as a signed integer."""
    return int.from_bytes(sha256(key.encode()).digest()[:8], "big", signed=True)


def mark(tx: Tx, name: str) -> int:
    found = tx.fetch(Q["mark"], {"name": name})
    return found[0][0] if found else 0


def set_mark(tx: Tx, name: str, value: int) -> None:
    tx.execute(Q["set_mark"], {"name": name, "value": value})


def last_cycles(tx: Tx, dedup_keys: Collection[str]) -> dict[bytes, int]:
    """The last cycle of keys that the ledger has forgotten: the decisions remember them (F9).

    Only asked once entries were purged. A cycle is one that held the key, so a decision that was not dropped.
    """
    cycles: dict[bytes, int] = {}
    asked: list[str] = list(dedup_keys)
    cycle = 1
    while asked:
        sources = {keys.server_event_key(dedup, cycle): dedup for dedup in asked}
        ids = {number for (number,) in tx.fetch(Q["located"], rows=[(key8(source),) for source in sources])}
        held = {
            one.decision.subject.source
            for one in decisions_by_id(tx, ids)
            if one.decision.action != Action.DROP.value and one.decision.subject.dedup is not None
        }
        asked = [dedup for source, dedup in sources.items() if source in held]
        cycles |= {key16(dedup): cycle for dedup in asked}
        cycle += 1
    return cycles


def _sources(key: str) -> list[str]:
    """Source event ids that a dedup key or an attribution key stands for."""
    attribution, _, of_attribution = key.partition("|")
    dedup = of_attribution if attribution.startswith("attr_") else key
    if not dedup.startswith(f"{keys.DEDUP_VERSION}:"):
        return []
    if dedup is not key:  # an attribution key carries its cycle
        return [f"fe_{key16(dedup).hex()}"]
    return [keys.server_event_key(dedup, cycle) for cycle in range(1, MOST_CYCLES + 1)]


def _tail(tx: Tx, wanted: Collection[str]) -> list[Archived]:
    """Decisions that the indexer has not reached yet."""
    after = ((mark(tx, EAGER) + 1) << ITEM_BITS) - 1
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
    return key16(key)


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
