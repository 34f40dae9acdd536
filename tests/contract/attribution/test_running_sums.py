"""Settlement from running sums is what the facts come to, at every moment and whatever the sums have reached."""

import random
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import msgspec
import pytest

from patra.attribution.commit import commit
from patra.attribution.contract.reasons import Reason
from patra.attribution.decision.output_records import RecordType
from patra.attribution.delivery.port import Rejected, Retry
from patra.attribution.delivery.reissue import reissue
from patra.attribution.intake.batch import read_batch
from patra.attribution.settlement.counts import By, settle, waiting_placements
from patra.attribution.storage import placement_index, running_sums
from patra.attribution.storage.billing_tree import BillingTree
from patra.attribution.storage.placement_index import Carrier
from patra.attribution.storage.running_sums import MARKS, RunningSums, rebuild_sums
from patra.attribution.storage.sql import Q, mark
from patra.attribution.verify import verify
from patra.kernel.clock import DAY, HOUR, MINUTE, SECOND, format_instant
from patra.kernel.db import Database, open_database
from patra.kernel.db.queries import statement
from patra.kernel.errors import Invalid
from patra.kernel.testing import ManualClock
from tests.contract.attribution.test_delivery import House as Store
from tests.contract.attribution.test_verify import COPY
from tests.unit.attribution.said import T0, event, sent

SUMMED = statement("summed", "SELECT coalesce(sum(facts), 0) FROM att_sum_hour")
LEFT_OUT = statement(
    "left_out",
    "SELECT status, count(*) FROM att_billable WHERE status <> 'committed' AND fact_at >= :begin AND fact_at < :end "
    "GROUP BY status",
)


class House(Store):
    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self.tree = BillingTree(db, self.clock)
        self.hours = RunningSums(db, "hour")
        self.placements = RunningSums(db, "placement")
        self.carrier = Carrier(db, self.clock)
        self.sent = 0

    def show(self, hours: int = 0, *, app: str = "app", place: str = "", click: bool = True) -> str:
        """An impression, with its click and its placement; gives the key of its closure."""
        self.sent += 1
        own: dict[str, Any] = {"renderAttemptId": f"ra{self.sent}", "opportunityKey": f"o{self.sent % 7}"}
        own["eventAt"] = format_instant(self.clock.now() - hours * HOUR - self.sent)
        said = [event("opportunity_created", "o", placementKey=place, opportunityKey=own["opportunityKey"])]
        clicked = [event("click", "c", **own)]
        events = [*said[: bool(place)], event("impression", "i", **own), *clicked[:click]]
        self.take(sent(0, *events, batch=f"b{self.sent}", app=app))
        return f"ref|ra{self.sent}"

    def catch_up(self) -> None:
        self.tree.catch_up()
        for _ in range(3):  # a gap is passed in the turns after it was seen
            self.hours.catch_up()
            self.placements.catch_up()

    def summed(self) -> int:
        return int(self.db.read(lambda tx: tx.fetch(SUMMED))[0][0])

    def check(self) -> None:
        now = self.clock.now()
        for by in ("app", "day", "placement"):
            for begin, end in ((T0 - DAY, now + DAY), (T0 - 3 * HOUR - 7, now - MINUTE), (T0 - 5, T0 + 5)):
                self._check(begin, end, by)

    def _check(self, begin: int, end: int, by: By) -> None:
        """The settlement against one that counts every fact of the span."""
        asked = {"begin": begin, "end": end, "first": begin // HOUR, "last": end // HOUR, "day": DAY}
        found, rows, left_out, waiting = self.db.read(
            lambda tx: (
                settle(tx, begin, end, by),
                tx.fetch(Q[f"settle_by_{by}"], asked),
                dict(tx.fetch(LEFT_OUT, {"begin": begin, "end": end})),
                waiting_placements(tx),
            )
        )
        expected: dict[tuple[str, str, str], int] = {}
        for app_id, group, kind, count, opportunity in rows:
            place = waiting.get(bytes(opportunity)) if opportunity is not None else group
            day = format_instant(group * DAY)[:10] if by == "day" else ""
            key = (app_id or "", day or (bytes(place or b"").decode() if by == "placement" else ""), kind)
            expected[key] = expected.get(key, 0) + count
        told = {
            (line.app_id, line.day or line.placement, f"billable_{kind}"): count
            for line in found.lines
            for kind, count in (("impression", line.impressions), ("click", line.clicks))
            if count
        }
        assert told == expected
        assert {
            name: count for name, count in found.uncounted.items() if name in {"new", "conflicted", "rejected"}
        } == (left_out)


@pytest.fixture
def house(database: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    monkeypatch.setattr(running_sums, "PAGE_FACTS", 3)
    monkeypatch.setattr(placement_index, "MIN_ITEMS_TO_CARRY", 1)
    return House(database)


def _give_up(house: House) -> None:
    house.archive.fails = lambda record: Retry(Reason.ARCHIVE_TIMEOUT) if record.type is RecordType.BILLABLE else None
    for _ in range(31):
        house.deliver()
        house.clock.advance(30 * SECOND)
    house.archive.fails = lambda record: None


def _refuse_clicks(house: House) -> None:
    house.archive.fails = lambda record: (
        Rejected("g_no") if record.payload.get("billableType") == "billable_click" else None
    )
    house.deliver()
    house.archive.fails = lambda record: None


def _reissue(house: House, closure: str) -> None:
    with suppress(Invalid):  # it was taken
        house.db.run(lambda tx: reissue(tx, closure, house.clock.now(), archived=False))


@pytest.mark.parametrize("seed", range(2))
def test_sums_say_what_the_facts_say_at_every_step(house: House, monkeypatch: pytest.MonkeyPatch, seed: int):
    rng = random.Random(seed)
    closures = [house.show(place="p0")]
    acts: list[tuple[int, Callable[[], Any]]] = [
        (
            6,
            lambda: closures.append(
                house.show(rng.randrange(4), app=rng.choice(["app", "other"]), place=rng.choice(["", "p1"]))
            ),
        ),
        (3, house.deliver),
        (1, lambda: _refuse_clicks(house)),
        (1, lambda: _give_up(house)),
        (2, lambda: _reissue(house, rng.choice(closures))),
        (3, house.tree.run_once),
        (4, house.hours.run_once),
        (4, house.placements.run_once),
        (3, house.carrier.run_once),
        (2, lambda: house.clock.advance(rng.choice([MINUTE, 6 * MINUTE, HOUR]))),
        (1, lambda: monkeypatch.setattr(running_sums, "MAX_NEW_FACTS", rng.choice([0, 100]))),
    ]
    for act in rng.choices([act for _, act in acts], weights=[weight for weight, _ in acts], k=32):
        act()
        house.check()
    house.catch_up()
    house.check()
    assert verify(house.db, ManualClock(T0)).findings == []
    assert house.summed() > 0


def test_what_was_summed_is_not_looked_at_again_and_what_is_pending_enters_later(
    house: House, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(running_sums, "MAX_NEW_FACTS", 0)
    house.show()
    house.catch_up()
    assert house.summed() == 0  # listed as pending: the archive has not answered
    house.deliver()
    house.check()
    house.catch_up()
    assert house.summed() == 2
    assert house.db.read(lambda tx: tx.fetch(Q["sum_pending_committed"], {"sums": "hour", "limit": 9})) == []


def test_few_facts_that_the_archive_has_not_answered_for_hold_the_mark(house: House):
    house.show()
    house.catch_up()
    before = house.db.read(lambda tx: mark(tx, MARKS["hour"]))
    house.deliver()
    house.catch_up()
    assert house.db.read(lambda tx: mark(tx, MARKS["hour"])) > before
    assert house.summed() == 2


def test_a_fact_that_was_billed_before_is_taken_off(tmp_path: Any):
    db = open_database(f"sqlite:///{tmp_path}/twice.db")
    try:
        house = House(db)
        house.show()
        house.deliver()
        db.run(lambda tx: tx.execute(statement("change", COPY)))
        house.catch_up()
        assert house.summed() == 3
        house.check()
        found = db.read(lambda tx: settle(tx, T0 - DAY, T0 + DAY, "app"))
        assert (found.impressions, found.clicks, found.uncounted) == (1, 1, {"billed_twice": 1})
    finally:
        db.close()


PLACED = statement(
    "placed", "SELECT placement, length(opportunity), sum(facts) FROM att_sum_placement GROUP BY 1, 2 ORDER BY 1"
)


def test_placements_that_wait_to_be_carried_do_not_hold_the_sums(house: House):
    """Settlement would count every fact one by one until they are: seconds of it while much comes in."""
    for number in range(14):
        house.show(place=f"p{number // 7}")  # the second time another place is said of each opportunity
    house.deliver()
    house.catch_up()
    reached = house.db.read(lambda tx: [mark(tx, name) for name in MARKS.values()])
    assert reached[0] == reached[1] > 0
    placed = [(bytes(place), length, int(facts)) for place, length, facts in house.db.read(lambda tx: tx.fetch(PLACED))]
    assert placed == [(b"p0", 0, 28)]  # the first that was said counts
    house.check()
    assert verify(house.db, ManualClock(T0)).findings == []
    house.clock.advance(20 * MINUTE)
    while house.carrier.run_once():
        house.check()
    assert verify(house.db, ManualClock(T0)).findings == []


def test_a_placement_that_is_said_after_its_fact_was_summed_counts(house: House):
    house.show()
    house.deliver()
    house.catch_up()
    late = event("opportunity_created", "o", placementKey="late", opportunityKey="o1")
    house.take(sent(0, late, batch="late"))
    found = house.db.read(lambda tx: settle(tx, T0 - DAY, T0 + DAY, "placement"))
    assert [(line.placement, line.impressions, line.clicks) for line in found.lines] == [("late", 1, 1)]
    house.check()
    assert verify(house.db, ManualClock(T0)).findings == []


@pytest.mark.parametrize("table", ["att_sum_hour", "att_sum_placement"])
@pytest.mark.parametrize("change", ["UPDATE {} SET facts = facts + 1", "DELETE FROM {}"])
def test_a_sum_that_is_not_what_the_facts_come_to_is_found(house: House, table: str, change: str):
    house.show(place="p0")
    house.deliver()
    house.clock.advance(20 * MINUTE)
    while house.carrier.run_once():
        pass
    house.catch_up()
    assert verify(house.db, ManualClock(T0)).findings == []
    house.db.run(lambda tx: tx.execute(statement("change", change.format(table))))
    assert {one.check for one in verify(house.db, ManualClock(T0)).findings} == {"sums_differ"}


def test_a_fact_that_was_summed_and_is_not_committed_is_found(house: House):
    house.show()
    house.deliver()
    house.catch_up()
    house.db.run(lambda tx: tx.execute(statement("change", "UPDATE att_billable SET status = 'conflicted'")))
    assert {one.check for one in verify(house.db, ManualClock(T0)).findings} == {"uncommitted_summed"}


def test_sums_that_were_wrong_are_rebuilt(house: House, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(running_sums, "MAX_NEW_FACTS", 0)
    house.show(place="p0")
    house.deliver()
    house.show(1)
    house.catch_up()
    for table in ("att_sum_hour", "att_sum_placement"):
        house.db.run(lambda tx, table=table: tx.execute(statement("change", f"UPDATE {table} SET facts = facts + 1")))
    house.db.run(lambda tx: tx.execute(statement("change", "DELETE FROM att_sum_pending")))
    assert {one.check for one in verify(house.db, ManualClock(T0)).findings} == {"sums_differ", "uncommitted_summed"}
    house.db.run(rebuild_sums)
    assert (house.summed(), verify(house.db, ManualClock(T0)).findings) == (0, [])
    house.check()
    house.catch_up()
    house.deliver()
    house.catch_up()
    assert (house.summed(), verify(house.db, ManualClock(T0)).findings) == (4, [])
    house.check()


# --- PostgreSQL: numbers that are drawn earlier and committed later, or never -------------------------------------------


@pytest.fixture
def shared(postgres_url: str) -> Iterator[House]:
    db = open_database(postgres_url)
    yield House(db)
    db.close()


@contextmanager
def held_commit(url: str, at: int) -> Generator[Callable[[], None]]:
    """A commit that has drawn its number, and goes on when the function that is given is called."""
    drawn, go_on = threading.Event(), threading.Event()
    second = open_database(url)
    slow = event("impression", renderAttemptId="slow", eventAt=format_instant(at))
    batch = read_batch(msgspec.json.encode(sent(0, slow, batch="slow")["batch"]), at)

    def hold(*_: Any) -> None:
        drawn.set()
        assert go_on.wait(30)

    thread = threading.Thread(target=lambda: commit(second, [batch], hand=hold))

    def finish() -> None:
        go_on.set()
        thread.join(30)

    try:
        thread.start()
        assert drawn.wait(30)
        yield finish
    finally:
        finish()
        second.close()


def _check_late_commit(shared: House, finish: Callable[[], None]) -> None:
    """Nothing behind a number under way is summed before it is committed, and all of it then."""
    shared.show()
    shared.deliver()
    shared.catch_up()
    assert shared.summed() == 0  # the number before it is still on its way
    shared.check()
    finish()
    shared.db.run(lambda tx: tx.execute(statement("change", "UPDATE att_billable SET status = 'committed'")))
    shared.catch_up()
    assert shared.summed() == 3
    shared.check()
    assert verify(shared.db, ManualClock(T0)).findings == []


def test_a_number_that_may_still_be_committed_is_not_passed(shared: House, postgres_url: str):
    with held_commit(postgres_url, T0) as finish:
        _check_late_commit(shared, finish)


def test_a_tick_that_applies_an_old_deadline_says_nothing_of_the_numbers_before_it(shared: House, postgres_url: str):
    shared.take(sent(0, event("ad_filled", renderAttemptId="unanswered")))
    shared.clock.advance(HOUR)
    with held_commit(postgres_url, shared.clock.now()) as finish:
        shared.take(3600)
        logged = shared.db.read(lambda tx: tx.fetch(Q["log_page"], {"after": 1, "limit": 9}))
        assert [(kind, at < T0 + HOUR - 20 * MINUTE) for _, at, kind, _ in logged] == [("tick", True)]
        _check_late_commit(shared, finish)


def test_a_number_that_was_rolled_back_is_passed_once_its_commit_has_ended(shared: House):
    batch = read_batch(
        msgspec.json.encode(sent(0, event("impression", renderAttemptId="gone"), batch="gone")["batch"]), T0
    )

    def fail(*_: Any) -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        commit(shared.db, [batch], hand=fail)
    shared.show()
    shared.deliver()
    assert shared.hours.run_once() == 0  # seen missing
    assert shared.hours.run_once() == 2
    shared.check()
