"""Placements are carried behind the writer, and settlement is right at every moment of it."""

import json
from collections.abc import Iterator

import pytest

from patra.attribution.commit import commit
from patra.attribution.intake.batch import Tick, read_batch
from patra.attribution.settlement import settle
from patra.attribution.storage import placement_index
from patra.attribution.storage.dedup_keys import Keys
from patra.attribution.storage.placement_index import Carrier, standing
from patra.attribution.storage.sql import Q
from patra.kernel.clock import DAY, HOUR, MINUTE
from patra.kernel.db import Database, migrate
from patra.kernel.db.queries import statement
from patra.kernel.errors import StoreUnavailable
from patra.kernel.testing import ManualClock
from tests.support.faults import FaultyDatabase
from tests.unit.attribution.said import ALL_DUE_CLOSURES, PACKAGES, T0, envelope, event

WAITING = statement("waiting", "SELECT count(*) FROM att_placement")
CARRIED = statement("carried", "SELECT count(*) FROM att_opportunity")
ITEMS = 30


class House:
    def __init__(self, db: Database) -> None:
        migrate(db, PACKAGES)
        self.db = db
        self.clock = ManualClock(T0)
        self.keys = Keys()
        self.sent = 0

    def take(self, opportunity: str, place: str | None = None) -> None:
        """A batch with an impression of an opportunity, and where it is, if that is said."""
        self.sent += 1
        said = [event("opportunity_created", opportunityKey=opportunity, placementKey=place)] if place else []
        shown = event("impression", opportunityKey=opportunity, responseReference=f"r{self.sent}")
        body = json.dumps(envelope(*said, shown, batch=f"b{self.sent}")).encode()
        commit(self.db, [read_batch(body, T0)], keys=self.keys)

    def settled(self) -> dict[str, int]:
        found = self.db.read(lambda tx: settle(tx, T0 - DAY, T0 + DAY, "placement"))
        return {line.placement: line.impressions for line in found.lines}

    def count(self, what: object) -> int:
        return self.db.read(lambda tx: tx.fetch(what))[0][0]  # type: ignore[arg-type]


@pytest.fixture
def house(database: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    monkeypatch.setattr(placement_index, "MIN_ITEMS_TO_CARRY", ITEMS - 1)
    monkeypatch.setattr(placement_index, "CARRY_BATCH_ITEMS", 4)
    monkeypatch.setattr(placement_index, "DELETE_BATCH_ROWS", 7)
    found = House(database)
    for n in range(ITEMS):
        found.take(f"o{n}", f"p{n % 3}")
    return found


EXPECTED = {"p0": 10, "p1": 10, "p2": 10}


def test_settlement_by_placement_is_the_same_before_after_and_at_every_step_of_carrying(house: House):
    assert house.settled() == EXPECTED
    house.clock.advance(HOUR)
    carrier = Carrier(house.db, house.clock)
    steps = 0
    while carrier.run_once():
        steps += 1
        assert house.settled() == EXPECTED, f"after step {steps}"
    assert steps > 8
    assert (house.count(WAITING), house.count(CARRIED)) == (0, ITEMS)


def test_the_first_placement_stays_the_first_whether_it_was_carried_or_not(house: House):
    house.take("o1", "later")
    assert "later" not in house.settled()
    house.clock.advance(HOUR)
    while Carrier(house.db, house.clock).run_once():
        pass
    house.take("o2", "later")
    assert "later" not in house.settled()
    house.take("o99", "later")
    assert house.settled()["later"] == 1


def test_what_a_commit_on_its_way_may_still_precede_is_not_carried(house: House):
    assert Carrier(house.db, house.clock).run_once() == 0
    assert house.count(WAITING) == ITEMS


def test_carrying_steps_aside_while_the_intake_is_busy(house: House, monkeypatch: pytest.MonkeyPatch):
    house.clock.advance(HOUR)
    assert Carrier(house.db, house.clock, lambda: True).run_once() == 0
    monkeypatch.setattr(placement_index, "MAX_WAITING_ITEMS", ITEMS - 1)
    assert Carrier(house.db, house.clock, lambda: True).run_once() == 1


def test_carrying_goes_on_after_a_fault_at_any_step(house: House):
    house.clock.advance(HOUR)
    for step in range(1, 200):
        try:
            while Carrier(FaultyDatabase(house.db, fail_at=step), house.clock).run_once():
                assert house.settled() == EXPECTED
        except StoreUnavailable:
            assert house.settled() == EXPECTED, f"after a fault at {step}"
    assert (house.count(WAITING), house.count(CARRIED)) == (0, ITEMS)


def test_two_processes_that_carry_at_once_leave_nothing_out(house: House):
    house.clock.advance(HOUR)
    one, other = Carrier(house.db, house.clock), Carrier(house.db, house.clock)
    while one.run_once() + other.run_once():
        assert house.settled() == EXPECTED
    assert house.count(WAITING) == 0
    for n in range(ITEMS, 2 * ITEMS):
        house.take(f"o{n}", f"p{n % 3}")
    while other.run_once() + one.run_once():
        pass
    assert house.settled() == dict.fromkeys(EXPECTED, 20)
    assert house.count(CARRIED) == 2 * ITEMS


def test_a_step_that_was_overtaken_by_a_whole_turn_changes_nothing(house: House, monkeypatch: pytest.MonkeyPatch):
    house.clock.advance(HOUR)
    slow, fast = Carrier(house.db, house.clock), Carrier(house.db, house.clock)
    assert slow.run_once() == 1  # the turn has begun
    real = placement_index.standing
    stood = house.db.read(lambda tx: real(tx, house.clock.now()))
    while fast.run_once():
        pass
    for n in range(ITEMS, 2 * ITEMS):
        house.take(f"o{n}", f"p{n % 3}")
    assert fast.run_once() == 1  # the next one has begun too
    monkeypatch.setattr(placement_index, "standing", lambda tx, before: stood)
    assert slow.run_once() == 0
    monkeypatch.setattr(placement_index, "standing", real)
    while fast.run_once():
        pass
    assert house.count(CARRIED) == 2 * ITEMS


def test_a_tick_that_applies_an_old_deadline_does_not_vouch_for_the_numbers_before_it(house: House):
    body = json.dumps(envelope(event("ad_filled", renderAttemptId="unanswered"), batch="fill")).encode()
    commit(house.db, [read_batch(body, T0)], keys=house.keys)
    commit(house.db, [Tick(at=T0 + HOUR)], due=ALL_DUE_CLOSURES, keys=house.keys)
    newest = house.db.read(lambda tx: tx.fetch(Q["newest_item"]))[0][0]
    settled = house.db.read(lambda tx: standing(tx, T0 + HOUR - MINUTE))[-1]
    assert settled == newest - 1  # the batch of an hour ago, not the tick of just now
