"""Runs of the index by key are joined, and a search finds the same at every step of it."""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import pytest

from patra.attribution.storage import key_index_merge
from patra.attribution.storage.key_index import Indexer, located_by
from patra.attribution.storage.key_index_merge import RunMerger
from patra.attribution.storage.read import every_decision
from patra.attribution.storage.sql import Q
from patra.attribution.verify import index_findings, verify
from patra.kernel.clock import DAY
from patra.kernel.db import Database
from patra.kernel.db.queries import statement
from patra.kernel.testing import ManualClock
from tests.contract.attribution.test_retention import House as Store
from tests.unit.attribution.said import T0, event

ROWS = statement("rows", "SELECT bucket, count(*) FROM att_locator GROUP BY bucket ORDER BY 2 DESC")


class House(Store):
    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self.indexer = Indexer(db, self.clock, patience=0, run=1)
        self.merger = RunMerger(db)
        for n in range(7):
            self.take(event("impression", f"i{n}", renderAttemptId=f"ra{n}"), event("view", f"v{n}"), batch=f"b{n}")
        self.index()

    def everything(self) -> dict[str, Any]:
        keys = {key for one in every_decision(self.db) for key in located_by(one.decision)}
        return {key: self.found(key) for key in sorted(keys | {f"b{n}" for n in range(8)})}

    def rows(self) -> int:
        """Rows of the bucket that has most."""
        return self.db.read(lambda tx: tx.fetch(ROWS))[0][1]


@pytest.fixture
def house(database: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    monkeypatch.setattr(key_index_merge, "MERGE_RUNS", 3)
    monkeypatch.setattr(key_index_merge, "STEP_BUCKETS", 100)
    return House(database)


def test_a_search_finds_the_same_at_every_step_and_reads_fewer_rows(house: House):
    before, rows = house.everything(), house.rows()
    assert rows == 7  # the app's key is in every run
    steps = 0
    while house.merger.run_once():
        steps += 1
        assert house.everything() == before
    assert (steps, house.rows()) == (6, 3)  # two times three runs, and the last one
    house.take(event("click", "c", renderAttemptId="ra1"), batch="b7")
    house.index()
    assert house.found("ref|ra1|billable_click") == ["f_accepted"]
    assert verify(house.db, ManualClock(T0)).findings == []


def test_of_two_that_merge_one_does_each_step(house: House, monkeypatch: pytest.MonkeyPatch):
    before, other = house.everything(), RunMerger(house.db)
    original = house.db.run

    def overtaken(work: Any) -> Any:
        monkeypatch.setattr(house.db, "run", original)
        assert other.run_once()  # between the look at the marks and the step
        return original(work)

    monkeypatch.setattr(house.db, "run", overtaken)
    assert house.merger.run_once() == 0
    while house.merger.run_once():
        pass
    assert house.everything() == before


def test_merged_runs_are_purged_with_the_last_of_them(house: House):
    while house.merger.run_once():
        pass
    house.clock.advance(40 * DAY)
    house.take(event("ad_filled", "late", renderAttemptId="late"), batch="late")
    house.index()
    read = list(every_decision(house.db))
    house.purge(facts=DAY, audits=DAY, keep=lambda records: None)
    assert house.rows() == 1
    assert [found for one in read for found in house.db.read(lambda tx, one=one: list(index_findings(tx, one)))] == []
    assert house.found("ref|ra1") == []


def test_an_index_that_lacks_a_key_is_found(house: House):
    house.db.run(lambda tx: tx.execute(statement("change", "DELETE FROM att_locator")))
    assert {one.check for one in verify(house.db, ManualClock(T0)).findings} == {"index_lacks_key"}


def test_nothing_is_joined_while_a_process_of_the_release_before_may_run(house: House):
    merger = RunMerger(house.db, wait=DAY)
    assert merger.run_once() == 0
    upgraded = "UPDATE krn_migration SET applied_at = applied_at - 86400000000 WHERE package = 'patra.attribution'"
    house.db.run(lambda tx: tx.execute(statement("change", upgraded + " AND number <> 21")))
    assert merger.run_once() == 0
    house.db.run(lambda tx: tx.execute(statement("change", upgraded + " AND number = 21")))
    assert merger.run_once() > 0


def test_a_search_takes_no_value_out_of_the_store_that_does_not_have_its_hash(house: House):
    """A value is large, and of a rare key hardly one has it; it may have another key's bytes in their place."""
    hashed = sha256(b"ra3").digest()[:6]
    asked = {"bucket": hashed[0], "part": hashed[1:]}
    found = house.db.read(lambda tx: tx.fetch(Q["runs_with_hash"], asked))
    whole = house.db.read(lambda tx: tx.fetch(Q["runs_of_bucket"], {"bucket": hashed[0]}))
    assert len(found) == 1
    assert [row for row in whole if hashed[1:] in bytes(row[0])] == found
    nothing = house.db.read(lambda tx: tx.fetch(Q["runs_with_hash"], asked | {"part": sha256(b"nothing").digest()[:5]}))
    assert nothing == []
