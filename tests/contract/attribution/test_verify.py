"""The last line of defence: what the writer promises about money is refused or found when it is broken."""

from collections.abc import Iterator

import pytest

from patra.app.component import Health
from patra.app.configuration.settings import Settings, StoreSettings
from patra.app.wiring import build
from patra.attribution.replay import replay
from patra.attribution.retention import FACTS
from patra.attribution.settlement import settle
from patra.attribution.storage.billing_tree import BILLED_TWICE, BillingTree, billed_twice
from patra.attribution.storage.sql import set_mark
from patra.attribution.verify import last_verification, verify
from patra.attribution.verify_slices import ScheduledVerification, Slice, verify_slice
from patra.kernel.clock import DAY
from patra.kernel.db import Database, migrate, open_database
from patra.kernel.db.queries import statement
from patra.kernel.testing import ManualClock
from tests.unit.attribution.said import PACKAGES, T0, event, sent, tick

COPY = """INSERT INTO att_billable (decision_id, app_id, billable_type, opportunity, fact_hour, fact_at, status, closure)
SELECT decision_id + 1000, app_id, billable_type, opportunity, fact_hour, fact_at, status, closure FROM att_billable
WHERE billable_type = 'billable_impression'"""


@pytest.fixture
def store(database: Database) -> Iterator[Database]:
    migrate(database, PACKAGES)
    story = sent(0, event("ad_filled"), event("click"), event("view"))
    replay(
        [
            story,
            sent(1, event("impression"), batch="b2"),
            sent(2, event("ad_filled", "f2", renderAttemptId="b"), batch="b3"),
            tick(200),
        ],
        database,
    )
    return database


def run(db: Database, text: str) -> None:
    db.run(lambda tx: tx.execute(statement("change", text)))


def checks(db: Database) -> list[str]:
    return sorted({one.check for one in verify(db, ManualClock(T0)).findings})


def test_a_sound_store_is_found_clean_and_the_result_is_kept(store: Database):
    assert store.read(last_verification) is None
    found = verify(store, ManualClock(T0))
    assert (found.findings, found.billableFacts) == ([], 2)
    assert found.decisions == 7
    assert store.read(last_verification) == (T0, 0)


def test_a_second_billable_fact_is_found(sqlite_store: Database):
    run(sqlite_store, COPY)
    assert checks(sqlite_store) == ["billed_twice", "fact_without_a_decision"]
    assert sqlite_store.read(last_verification) == (T0, 2)


def test_postgres_refuses_a_second_billable_fact(postgres_url: str):
    db = open_database(postgres_url)
    try:
        migrate(db, PACKAGES)
        replay([sent(0, event("impression"))], db)
        with pytest.raises(Exception, match="att_billable_key"):
            run(db, COPY)
        assert checks(db) == []
    finally:
        db.close()


def test_a_fact_that_is_missing_or_of_another_kind_or_closure_is_found(store: Database):
    run(store, "UPDATE att_billable SET closure = opportunity WHERE billable_type = 'billable_click'")
    assert checks(store) == ["fact_of_another_closure"]
    run(store, "DELETE FROM att_billable WHERE billable_type = 'billable_click'")
    assert checks(store) == ["fact_and_decision_differ"]


@pytest.mark.parametrize("change", ["app_id = 'other'", "fact_at = fact_at + 1", "fact_hour = fact_hour - 1"])
def test_a_fact_that_says_something_else_than_its_decision_is_found(store: Database, change: str):
    run(store, f"UPDATE att_billable SET {change} WHERE billable_type = 'billable_click'")
    assert checks(store) == ["fact_and_decision_differ"]


def test_a_fact_without_a_decision_is_found_unless_that_may_have_been_purged(store: Database):
    run(store, "UPDATE att_billable SET decision_id = decision_id + 1000 WHERE billable_type = 'billable_impression'")
    assert checks(store) == ["fact_and_decision_differ", "fact_without_a_decision"]
    store.run(lambda tx: set_mark(tx, FACTS, 2**60))
    assert checks(store) == ["fact_and_decision_differ"]


def test_a_decision_without_its_line_of_the_log_is_found(store: Database):
    run(store, "DELETE FROM att_log WHERE number = 1")
    assert checks(store) == ["decisions_without_a_line"]


def test_a_closure_twice_and_a_tree_that_leads_astray_are_found(sqlite_store: Database):
    run(
        sqlite_store,
        "INSERT INTO att_closure (key, app_id, state, source, opened_at, body) "
        "SELECT key, app_id, state, source, opened_at, body FROM att_closure WHERE number = 1",
    )
    run(sqlite_store, "INSERT INTO att_closure_key (key, number) VALUES (x'00', 1)")
    run(sqlite_store, "UPDATE att_mark SET value = 1 WHERE name = 'closures_keyed'")
    assert checks(sqlite_store) == ["closures_twice", "closures_unkeyed", "keys_astray"]


@pytest.fixture
def sqlite_store() -> Iterator[Database]:
    db = open_database("sqlite:///:memory:")
    migrate(db, PACKAGES)
    replay([sent(0, event("impression"), event("click"))], db)
    yield db
    db.close()


def test_sqlites_tree_finds_a_second_fact_and_settlement_counts_one(sqlite_store: Database):
    def settled() -> tuple[int, int, dict[str, int]]:
        found = sqlite_store.read(lambda tx: settle(tx, T0 - DAY, T0 + DAY, "app"))
        return found.impressions, found.clicks, found.uncounted

    tree = BillingTree(sqlite_store, ManualClock(T0))
    run(sqlite_store, COPY)
    assert settled() == (1, 1, {})  # also before the tree has reached them
    assert tree.run_once() == 3
    assert tree.run_once() == 0
    assert settled() == (1, 1, {"billed_twice": 1})
    assert sqlite_store.read(billed_twice) == 1
    assert BILLED_TWICE.collect()[0].samples[0].value == 1
    run(sqlite_store, COPY.replace("+ 1000", "+ 2000 + decision_id"))  # a key that the tree has
    assert settled()[:2] == (1, 1)
    tree.catch_up()
    assert sqlite_store.read(billed_twice) == 3


def test_facts_of_many_pages_are_entered_once(monkeypatch: pytest.MonkeyPatch, sqlite_store: Database):
    monkeypatch.setattr("patra.attribution.storage.billing_tree.PAGE_FACTS", 1)
    tree = BillingTree(sqlite_store, ManualClock(T0))
    assert [tree.run_once() for _ in range(3)] == [1, 1, 0]
    assert sqlite_store.read(billed_twice) == 0
    assert checks(sqlite_store) == []


def test_the_tree_steps_aside_for_a_busy_writer_until_too_much_waits(
    monkeypatch: pytest.MonkeyPatch, sqlite_store: Database
):
    assert BillingTree(sqlite_store, ManualClock(T0), lambda: True).run_once() == 0
    monkeypatch.setattr("patra.attribution.storage.billing_tree.MAX_WAITING_ITEMS", 0)
    assert BillingTree(sqlite_store, ManualClock(T0), lambda: True).run_once() == 2


def test_a_tree_of_billing_keys_that_leads_astray_or_lacks_a_fact_is_found(sqlite_store: Database):
    BillingTree(sqlite_store, ManualClock(T0)).catch_up()
    run(sqlite_store, "UPDATE att_billing_key SET closure = x'00' WHERE billable_type = 'billable_click'")
    assert checks(sqlite_store) == ["billables_unkeyed", "billing_keys_astray"]


def test_verification_runs_when_its_time_has_come_and_the_writer_is_not_busy(store: Database):
    clock = ManualClock(T0)
    assert ScheduledVerification(store, clock, DAY, lambda: True).run_once() == Slice()
    assert ScheduledVerification(store, clock, 0).run_once() == Slice()
    scheduled = ScheduledVerification(store, clock, DAY)
    assert [scheduled.run_once().complete, scheduled.run_once()] == [True, Slice()]
    clock.advance(DAY)
    assert scheduled.run_once().complete
    assert store.read(last_verification) == (T0 + DAY, 0)


def test_a_pass_of_slices_looks_at_every_decision_once_and_ends(store: Database):
    found = [verify_slice(store, T0 + n, size=3) for n in range(3)]
    assert [(one.decisions, one.complete, one.findings) for one in found] == [
        (3, False, []),
        (3, False, []),
        (1, True, []),
    ]
    assert store.read(last_verification) == (T0 + 2, 0)
    assert verify_slice(store, T0 + 9, size=100).decisions == 7


def test_what_a_slice_finds_is_told_before_the_pass_ends(store: Database):
    run(store, "DELETE FROM att_log WHERE number = 1")
    assert [one.check for one in verify_slice(store, T0, size=3).findings] == ["decisions_without_a_line"]
    assert store.read(last_verification) == (0, 1)
    while not verify_slice(store, T0 + 5, size=3).complete:
        pass
    assert store.read(last_verification) == (T0 + 5, 1)


def test_a_pass_is_not_disturbed_by_that_of_an_earlier_release(sqlite_store: Database):
    run(sqlite_store, "DELETE FROM att_billable WHERE billable_type = 'billable_impression'")
    looked = [verify_slice(sqlite_store, T0, size=1)]
    while not looked[-1].complete and len(looked) < 20:
        for name in ("slice_decision", "slice_closure", "slice_findings"):  # the older process begins again and again
            sqlite_store.run(lambda tx, name=name: set_mark(tx, name, 0))
        looked.append(verify_slice(sqlite_store, T0, size=1))
    assert (sum(one.decisions for one in looked), looked[-1].complete) == (3, True)
    assert sqlite_store.read(last_verification) == (T0, sum(len(one.findings) for one in looked))
    assert any(one.findings for one in looked[:-1])


def test_a_slice_finds_a_second_fact_and_what_the_trees_lack(sqlite_store: Database):
    BillingTree(sqlite_store, ManualClock(T0)).catch_up()
    run(sqlite_store, COPY)
    assert {one.check for one in verify_slice(sqlite_store, T0).findings} == {
        "billed_twice",
        "fact_without_a_decision",
    }
    run(sqlite_store, "DELETE FROM att_billing_key")
    assert "billables_unkeyed" in {one.check for one in verify_slice(sqlite_store, T0).findings}


def test_the_doctor_shows_a_key_that_was_billed_twice():
    patra = build(Settings(store=StoreSettings(url="sqlite:///:memory:")))
    try:
        replay([sent(0, event("impression"), event("click"))], patra.db)
        run(patra.db, COPY)
        BillingTree(patra.db, ManualClock(T0)).catch_up()
        found = {check.name: check.health for check in (look() for look in patra.checks)}
        assert found["attribution billing keys"] is Health.BROKEN
    finally:
        patra.close(0)
