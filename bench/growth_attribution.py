"""The spots of attribution: what comes in, what runs behind the writer, a key, settlement, lists."""

from collections.abc import Callable
from typing import Any

from bench.attribution_traffic import APPS, EVENTS, mark
from bench.growth_spot import Spot
from bench.reads_engines import GROUP_BATCHES, AttributionStore
from patra.attribution.commit import commit
from patra.attribution.intake.batch import read_batch
from patra.attribution.queries import closures, list_refused
from patra.attribution.settlement import settle
from patra.attribution.storage.key_index import Indexer
from patra.attribution.storage.key_index_merge import RunMerger
from patra.attribution.storage.key_search import find
from patra.kernel.clock import DAY, SystemClock
from patra.kernel.db import Database, Tx

REFUSED_BATCHES = 10
PAGE_ROWS = 50


class AttributionGrowth:
    """A store that the engine filled itself; its refused batches are the oldest of its log, behind all others."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.store = AttributionStore(db)

    def fill(self, rows: int) -> None:
        now = SystemClock().now()
        commit(self.db, [read_batch(b"{", now) for _ in range(REFUSED_BATCHES)], keys=self.store.keys)
        self.store.fill(rows)

    def spots(self, rows: int) -> list[Spot]:
        key = f"rr-{mark(0, rows // EVENTS // len(APPS) // 2)}-003"
        now = SystemClock().now()
        found = [
            Spot("intake: read and commit", "event", self._write),
            Spot("index by key, runs joined", "event", self._index, self._caught_up),
            Spot("sums, keys, placements behind the writer", "event", self._settle, self._indexed),
        ]
        reads: dict[str, Callable[[Tx], Any]] = {
            "find a key": lambda tx: find(tx, key),
            "find a key that nothing has": lambda tx: find(tx, "nothing-has-this-key"),
            "closures, open": lambda tx: closures(tx, state="open", after=b"", limit=PAGE_ROWS),
            "closures, failed": lambda tx: closures(tx, state="closed_failure", after=b"", limit=PAGE_ROWS),
            "refused": lambda tx: list_refused(tx, limit=PAGE_ROWS),
        }
        for by in ("app", "day", "placement"):
            reads[f"settle by {by}"] = lambda tx, by=by: settle(tx, now - DAY, now + DAY, by)
        found += [
            Spot(name, "answer", lambda work=work: self._read(work), self.store.settle) for name, work in reads.items()
        ]
        return found

    def _read(self, work: Callable[[Tx], Any]) -> int:
        self.db.read(work)
        return 1

    def _write(self) -> int:
        self.store.write(GROUP_BATCHES)
        return GROUP_BATCHES * EVENTS

    def _caught_up(self) -> None:
        self.store.settle()
        self._write()

    def _index(self) -> int:
        indexer, merger = Indexer(self.db, SystemClock(), patience=0), RunMerger(self.db)
        while indexer.run_once().items:
            pass
        while merger.run_once():
            pass
        return GROUP_BATCHES * EVENTS

    def _indexed(self) -> None:
        self._caught_up()
        self._index()

    def _settle(self) -> int:
        self.store.settle()
        return GROUP_BATCHES * EVENTS
