"""Closures are found on SQLite by numbers in memory and in a tree, whatever happens between two commits."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from patra.attribution.commit import commit
from patra.attribution.intake.batch import read_batch
from patra.attribution.queries import closure_by_key, closures
from patra.attribution.storage import closure_index, dedup_keys
from patra.attribution.storage.dedup_keys import Keys, carry_once
from patra.attribution.storage.read import every_closure
from patra.kernel.clock import DAY
from patra.kernel.db import Database, migrate, open_database
from patra.kernel.db.queries import statement
from patra.kernel.errors import Permanent, StoreUnavailable
from tests.support.faults import FaultyDatabase
from tests.unit.attribution.said import ALL_DUE_CLOSURES, PACKAGES, T0, at, envelope, event

TREE = statement("tree", "SELECT count(*) FROM att_closure_key")
TWICE = statement("twice", "SELECT key FROM att_closure GROUP BY key HAVING count(*) > 1")


class House:
    def __init__(self, db: Database) -> None:
        self.db = db
        self.keys = Keys()
        self.sent = 0

    def take(
        self, *attempts: int, keys: Keys | None = None, kind: str = "impression", db: Database | None = None
    ) -> list[str]:
        """Batches with an event for each render attempt; gives the codes of their answers."""
        if len(attempts) > 100:
            return self.take(*attempts[:100], keys=keys, db=db) + self.take(*attempts[100:], keys=keys, db=db)
        self.sent += 1
        found = [event(kind, f"e{n}", renderAttemptId=f"r{n}") for n in attempts]
        body = json.dumps(envelope(*found, batch=f"b{self.sent}")).encode()
        (ack,) = commit(db or self.db, [read_batch(body, T0)], keys=keys or self.keys)
        return [str(item.ackReasonCode).removeprefix("f_") for item in ack.ackItems]  # type: ignore[union-attr]

    def carry(self, keys: Keys | None = None) -> int:
        steps = 0
        while carry_once(self.db, keys or self.keys, T0):
            steps += 1
        return steps

    def tree(self) -> int:
        return self.db.read(lambda tx: tx.fetch(TREE))[0][0]

    def twice(self) -> list[object]:
        return self.db.read(lambda tx: tx.fetch(TWICE))  # type: ignore[return-value]


ACCEPTED, AGAIN = "accepted", "billing_conflict_duplicate_impression"


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    monkeypatch.setattr(dedup_keys, "ENOUGH_CLOSURES", 1)
    db = open_database(f"sqlite:///{tmp_path}/numbers.db")
    migrate(db, PACKAGES)
    yield House(db)
    db.close()


def test_a_closure_is_found_by_the_process_that_opened_it_by_a_new_one_and_after_it_was_carried(house: House):
    assert house.take(1, 2) == [ACCEPTED] * 2
    assert house.take(1, 3) == [AGAIN, ACCEPTED]
    assert house.take(1, 2, 3, keys=Keys()) == [AGAIN] * 3
    assert house.carry() == closure_index.BUCKETS
    assert house.tree() == 3
    assert house.keys.closures.count == 0
    assert house.take(1, 2, 3, 4) == [AGAIN, AGAIN, AGAIN, ACCEPTED]
    assert house.take(1, 2, 3, 4, keys=Keys()) == [AGAIN] * 4
    assert house.twice() == []


def test_a_closure_is_found_though_carrying_was_asked_for_before_there_was_one(house: House):
    for _ in range(closure_index.BUCKETS // 2):
        house.db.run(house.keys.carry_closures)
    assert house.take(*range(20)) == [ACCEPTED] * 20
    for _ in range(closure_index.BUCKETS // 2):
        house.db.run(house.keys.carry_closures)
    assert house.take(*range(20), keys=Keys()) == [AGAIN] * 20
    assert house.twice() == []


def test_a_closure_that_another_process_opened_is_noticed(house: House):
    one, other = Keys(), Keys()
    for n in range(0, 20, 2):
        assert house.take(n, keys=one) == [ACCEPTED]
        assert house.take(n, n + 1, keys=other) == [AGAIN, ACCEPTED]
        assert house.take(n, n + 1, keys=one) == [AGAIN, AGAIN]
    assert house.twice() == []


def test_another_process_goes_on_while_keys_are_carried(house: House):
    other = Keys()
    house.take(*range(50))
    for n in range(closure_index.BUCKETS // 2):
        house.db.run(house.keys.carry_closures)
        if n % 16 == 0:
            assert house.take(n, 100 + n, keys=other) == [AGAIN if n < 50 else ACCEPTED, ACCEPTED]
    assert (
        house.carry() == closure_index.BUCKETS // 2 + closure_index.BUCKETS
    )  # it went on where it was, and began again
    house.carry(other)
    house.carry()
    assert house.tree() == len(list(every_closure(house.db)))
    assert house.twice() == []


def test_a_closure_opened_by_a_key_in_its_second_cycle_is_found_by_another_process(house: House):
    one, other = Keys(), Keys()
    assert house.take(1, kind="interaction", keys=one)
    assert house.take(7, keys=other) == [ACCEPTED]
    body = json.dumps(
        envelope(event("interaction", "e1", renderAttemptId="r1", eventAt=at(20 * 86400)), batch="b1")
    ).encode()
    commit(house.db, [read_batch(body, T0 + 20 * DAY)], keys=one, due=ALL_DUE_CLOSURES)
    assert house.take(7, keys=other) == [AGAIN]


def test_nothing_is_opened_twice_after_a_fault_at_any_statement(house: House, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(dedup_keys, "ENOUGH_CLOSURES", 10**9)
    done = 0
    for step in range(1, 60):
        wanted = [done, done + 1]
        faulty = FaultyDatabase(house.db, fail_at=step)
        try:
            assert house.take(*wanted, db=faulty) == [ACCEPTED] * 2
        except StoreUnavailable:
            first = house.take(*wanted)
            assert first in ([ACCEPTED] * 2, [AGAIN] * 2), f"after a fault at {step}"
        assert house.take(*wanted) == [AGAIN] * 2
        done += 2
    for step in range(1, 30):
        try:
            for _ in range(10):
                FaultyDatabase(house.db, fail_at=step).run(house.keys.carry_closures)
        except StoreUnavailable:
            assert house.take(*range(done)) == [AGAIN] * done
    assert house.twice() == []
    assert len(list(every_closure(house.db))) == done


def test_beyond_the_most_every_commit_carries(house: House, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(dedup_keys, "ENOUGH_CLOSURES", 10**9)
    keys = Keys(most_closures=10)
    for n in range(0, 700, 2):
        assert house.take(n, n + 1, keys=keys) == [ACCEPTED] * 2
        assert keys.closures.count <= 10 + closure_index.BUCKETS * 2 + 2
    assert house.tree() > 100
    assert house.take(*range(100), keys=Keys()) == [AGAIN] * 100


def test_one_closure_is_found_by_people_before_it_is_carried_and_after(house: House):
    house.take(1, 2, 3)
    for _ in range(2):
        view = house.db.read(lambda tx: closure_by_key(tx, "ref|r2"))
        assert view is not None
        assert view.closureKey == "ref|r2"
        assert house.db.read(lambda tx: closure_by_key(tx, "ref|r9")) is None
        house.carry()


def test_closures_are_listed_in_the_order_of_their_opening_page_by_page(house: House):
    house.take(5, 3, 4)
    house.take(1, 2)
    seen: list[str] = []
    after: bytes | None = b""
    while after is not None:
        page = house.db.read(lambda tx, after=after: closures(tx, state=None, after=after, limit=2))
        seen += [view.closureKey for view in page.closures]
        after = page.next
    assert seen == ["ref|r3", "ref|r4", "ref|r5", "ref|r1", "ref|r2"]
    assert house.db.read(lambda tx: closures(tx, state=None, after=b"\xff" * 16, limit=2)).closures == []


def test_two_closures_with_one_key_are_told_and_not_carried(house: House):
    house.take(1)
    copy = statement(
        "copy",
        "INSERT INTO att_closure (key, app_id, state, source, opened_at, body) "
        "SELECT key, app_id, state, source, opened_at, body FROM att_closure",
    )
    house.carry()
    house.db.run(lambda tx: tx.execute(copy))
    broken = Keys()
    house.db.run(broken.refresh)
    with pytest.raises(Permanent, match="two closures with the key"):
        house.carry(broken)
