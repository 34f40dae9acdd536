"""Settled facts in history: what is priced, counted and verified after they left the store is as it was before."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import msgspec
import pytest

from patra.attribution.contract.reasons import Reason
from patra.attribution.delivery.port import Retry
from patra.attribution.history import kinds, settled_facts
from patra.attribution.history.ask import ask
from patra.attribution.history.decisions import FACTS, DecisionRecords
from patra.attribution.history.export import Exporter, Moved
from patra.attribution.history.settled_facts import SettledFacts
from patra.attribution.retention import Purged, Retention, purge_once
from patra.attribution.settlement.counts import settle
from patra.attribution.settlement.facts import settled_facts as facts_to_settle
from patra.attribution.settlement.period import close_period
from patra.attribution.settlement.rate_card import Rate
from patra.attribution.settlement.statement_store import add_rate
from patra.attribution.settlement.verified_statements import VerifiedStatements
from patra.attribution.storage import running_sums
from patra.attribution.storage.read import Archived
from patra.attribution.storage.running_sums import rebuild_sums
from patra.attribution.verify import verify
from patra.kernel.clock import DAY
from patra.kernel.db import Database, Tx
from patra.kernel.db.queries import statement
from patra.kernel.errors import Invalid, StoreCorrupt
from patra.kernel.files import FilePlace, FolderPlace
from patra.kernel.testing import ManualClock
from tests.contract.attribution.test_history import CODES, Killed, Mortal, catch_up
from tests.contract.attribution.test_history_waits import (
    FEBRUARY,
    JANUARY,
    LATER,
    click_in_february,
    close,
    count,
    priced,
    shown_in_january,
    shown_thrice,
)
from tests.contract.attribution.test_reissue import House
from tests.unit.attribution.said import T0, event, sent

AFTER = LATER + 31 * DAY
"""When facts of periods that were closed at `LATER` are past their time."""

BYS = ("app", "day", "placement")


@pytest.fixture
def place(tmp_path: Path) -> FilePlace:
    return FolderPlace(tmp_path / "history", CODES)


@pytest.fixture
def store(database: Database) -> Database:
    """An impression of January, whose statement is closed."""
    priced(database)
    shown_in_january(database)
    assert close(database, JANUARY) == [("billable_impression", 2500)]
    catch_up(database)
    return database


def move(db: Database, place: FilePlace) -> None:
    verified = VerifiedStatements()
    retention = Retention(facts=DAY, settled=30 * DAY, verified=verified, statements=verified)
    while purge_once(db, AFTER, retention, history=place) != Purged():
        pass


def bodies(db: Database) -> list[bytes]:
    found = db.read(lambda tx: tx.fetch(statement("bodies", "SELECT body FROM att_closure")))
    return [bytes(body) for (body,) in found]


def test_a_click_that_comes_after_its_impression_left_has_the_creative_of_its_statement(
    store: Database, place: FilePlace
):
    move(store, place)
    assert (count(store, "att_billable"), count(store, "att_statement_fact")) == (0, 0)
    click_in_february(store)
    assert msgspec.json.decode(bodies(store)[0])[-1] == ["app", 1]  # the click wrote the closure again
    assert close(store, FEBRUARY) == [("billable_click", 7_000_000)]
    catch_up(store)
    move(store, place)
    assert count(store, "att_billable") == 0
    assert msgspec.json.decode(bodies(store)[0])[-1] == ["app", 1]
    assert verify(store, ManualClock(AFTER)).findings == []


def test_a_click_on_a_closure_that_the_release_before_reduced_has_the_creative_of_its_statement(
    store: Database, place: FilePlace
):
    move(store, place)
    (body,) = bodies(store)
    before = msgspec.json.encode(msgspec.json.decode(body)[:-1])
    assert len(msgspec.json.decode(before)) == 8
    changed = statement("as_before", "UPDATE att_closure SET body = :body")
    store.run(lambda tx: tx.execute(changed, {"body": before}))
    click_in_february(store)
    assert close(store, FEBRUARY) == [("billable_click", 7_000_000)]


def test_a_click_whose_impression_left_and_is_in_no_statement_is_not_priced(store: Database, place: FilePlace):
    move(store, place)
    click_in_february(store)
    store.run(lambda tx: tx.script("DELETE FROM att_statement_page"))
    with pytest.raises(Invalid, match="period_unverified"):
        close(store, FEBRUARY)
    with pytest.raises(StoreCorrupt, match="priced by the creative of its impression"):
        list(facts_to_settle(store, FEBRUARY.begin, FEBRUARY.end, "app"))


def counted(db: Database) -> tuple[int, ...]:
    found = [db.read(lambda tx, by=by: settle(tx, T0, T0 + 31 * DAY, by)) for by in BYS]
    return tuple(one.impressions for one in found)


@pytest.mark.parametrize("deleted", [0, 2])
def test_facts_that_rebuilt_sums_have_not_passed_again_stay_until_they_have(
    store: Database, place: FilePlace, monkeypatch: pytest.MonkeyPatch, deleted: int
):
    """`deleted`: how many of them the process deletes before it ends; then the sums are rebuilt."""
    shown_thrice(store)
    close_period(store, ManualClock(LATER), "app", FEBRUARY)
    catch_up(store)
    before = counted(store)
    while Exporter(store, place).move(DecisionRecords("facts", FACTS), LATER, LATER) != Moved():
        pass
    monkeypatch.setattr(kinds, "DELETE_BATCH_SIZE", 2)
    checks = VerifiedStatements()
    assert checks.check_pending(store, LATER) == 2
    mortal: Any = Mortal(store, place, 3 + deleted // 2)
    with pytest.raises(Killed):
        Exporter(mortal, mortal).move(SettledFacts(checks), AFTER, AFTER)
    assert count(store, "att_billable") == 4 - deleted
    store.run(rebuild_sums)
    assert Exporter(store, place).move(SettledFacts(checks), AFTER, AFTER) == Moved(rows=deleted)
    assert count(store, "att_billable") == 4 - deleted
    assert counted(store) == before
    catch_up(store)
    assert Exporter(store, place).move(SettledFacts(checks), AFTER, AFTER) == Moved(rows=4 - deleted)
    assert (count(store, "att_billable"), counted(store)) == (0, before)
    assert ask(store, place, "SELECT count(*), count(DISTINCT decision_id) FROM settled").rows == [(4, 4)]
    assert verify(store, ManualClock(AFTER)).findings == []


def test_a_settled_fact_stays_with_its_decision_that_retention_has_passed(
    store: Database, place: FilePlace, monkeypatch: pytest.MonkeyPatch
):
    """Without a place for history decisions stay whose records only the store has; those after it go."""
    assert purge_once(store, LATER, Retention(facts=DAY, verified=VerifiedStatements())).passed == 1
    shown_thrice(store)
    close_period(store, ManualClock(LATER), "app", FEBRUARY)
    catch_up(store)
    before = counted(store)
    monkeypatch.setattr(kinds, "MAX_FILE_ROWS", 1)
    move(store, place)
    assert (count(store, "att_decision"), count(store, "att_billable")) == (1, 1)
    assert ask(store, place, "SELECT count(*), count(DISTINCT decision_id) FROM settled").rows == [(3, 3)]
    assert counted(store) == before
    assert verify(store, ManualClock(AFTER)).findings == []


def no_decisions(tx: Tx, ids: Collection[int]) -> list[Archived]:
    del tx, ids
    return []


def test_a_fact_with_its_decision_that_a_file_holds_stays_and_the_others_of_the_file_go(
    store: Database, place: FilePlace, monkeypatch: pytest.MonkeyPatch
):
    """As builds before this one wrote them."""
    assert purge_once(store, LATER, Retention(facts=DAY, verified=VerifiedStatements())).passed == 1
    shown_thrice(store)
    close_period(store, ManualClock(LATER), "app", FEBRUARY)
    catch_up(store)
    while Exporter(store, place).move(DecisionRecords("facts", FACTS), LATER, LATER) != Moved():
        pass
    checks = VerifiedStatements()
    assert checks.check_pending(store, LATER) == 1
    mortal: Any = Mortal(store, place, 3)
    with monkeypatch.context() as patch:
        patch.setattr(settled_facts, "decisions_by_id", no_decisions)
        with pytest.raises(Killed):
            Exporter(mortal, mortal).move(SettledFacts(checks), AFTER, AFTER)
    assert Exporter(store, place).move(SettledFacts(checks), AFTER, AFTER) == Moved()  # its first fact stays
    assert count(store, "att_billable") == 4
    assert Exporter(store, place).move(SettledFacts(checks), AFTER, AFTER) == Moved(rows=3)
    assert (count(store, "att_decision"), count(store, "att_billable")) == (1, 1)
    assert ask(store, place, "SELECT count(*), count(DISTINCT decision_id) FROM settled").rows == [(3, 3)]
    assert verify(store, ManualClock(AFTER)).findings == []


def test_a_settled_fact_that_waits_to_be_summed_stays_until_it_is(
    database: Database, place: FilePlace, monkeypatch: pytest.MonkeyPatch
):
    """The sums have passed it before the archive answered, and have listed it as pending."""
    monkeypatch.setattr(running_sums, "MAX_NEW_FACTS", 0)
    house = House(database)
    for n in range(3):
        house.take(sent(n, event("impression", f"i{n}", renderAttemptId=f"r{n}"), batch=f"b{n}"))
    house.archive.fails = lambda record: Retry(Reason.ARCHIVE_TIMEOUT) if "ref|r1" in str(record.body) else None
    house.deliver()
    catch_up(database)
    house.archive.fails = lambda record: None
    house.clock.advance(DAY)
    house.deliver()
    rate = Rate(billable_type="billable_impression", price_micros=5, currency="EUR", valid_from=T0)
    database.run(lambda tx: add_rate(tx, rate, T0))
    assert close(database, JANUARY) == [("billable_impression", 5)] * 3
    move(database, place)
    assert (count(database, "att_decision"), count(database, "att_billable")) == (0, 1)
    assert counted(database) == (3, 3, 3)
    catch_up(database)
    move(database, place)
    assert (count(database, "att_billable"), counted(database)) == (0, (3, 3, 3))
    assert verify(database, ManualClock(AFTER)).findings == []
