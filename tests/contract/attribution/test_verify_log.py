"""`verify` against the log: the dedup ledger, the counts of drops and rejected events, lines and decisions.

Each fault is planted by SQL and has to be named with its key, by the command and by a pass of slices. The tests share
one store of each database, whose rows are put back behind each of them.
"""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing

import pytest

from patra.attribution.checks import dedup_ledger
from patra.attribution.contract.keys import half
from patra.attribution.replay import replay
from patra.attribution.retention import Retention, purge_once
from patra.attribution.storage.dedup_keys import Keys
from patra.attribution.storage.sql import mark
from patra.attribution.verify import last_verification, verify
from patra.attribution.verify_slices import verify_slice
from patra.kernel.clock import DAY
from patra.kernel.db import Database, Tx, migrate, open_database
from patra.kernel.db.queries import statement
from patra.kernel.testing import ManualClock
from tests.conftest import schema_of_its_own
from tests.unit.attribution.said import ABSENT, PACKAGES, T0, event, sent, tick

LINES = [
    sent(0, event("ad_filled"), event("click"), event("view")),  # line 1: the third is of an unknown type
    sent(1, event("impression"), batch="b2"),
    sent(2, event("ad_filled", "f2", renderAttemptId="b"), batch="b3"),
    sent(3, event("impression"), event("impression"), batch="b2"),  # line 4: committed duplicates
    sent(4, event("impression", responseReference=ABSENT), batch="b5"),  # in quarantine
    sent(5, event("impression", responseReference=ABSENT), batch="b5"),
    sent(6, event("impression", creativeId="other"), batch="b2"),  # line 7: another event under a known key
    {"receivedAt": "2026-01-01T00:00:07Z", "batch": {"batchId": "refused"}},
    sent(8, event("click", renderAttemptId="b"), batch="b9", app="other"),  # line 9: of another app's closure
    tick(200),
]
IMPRESSION = "f_dedup_v1:client_event_id:app|b2|impression"
SOURCE = f"fe_{half(IMPRESSION).hex()}"
QUARANTINED = "fe_4dc98ec43aa822ee9974470ad27b1cc6|drop|f_event_missing_required"


def run(db: Database, text: str) -> None:
    db.run(lambda tx: tx.execute(statement("change", text)))


def found(db: Database, now: int = T0) -> list[tuple[str, str]]:
    """What `verify` finds, which is what a pass of slices finds too, but for the total of all drops."""
    whole = [(one.check, one.key) for one in verify(db, ManualClock(now)).findings]
    sliced: list[tuple[str, str]] = []
    complete = False
    while not complete:
        one = verify_slice(db, now, size=5)
        sliced += [(finding.check, finding.key) for finding in one.findings]
        complete = one.complete
    assert sorted(sliced) == sorted(one for one in whole if one[0] != "drop_counts_differ")
    return sorted(whole)


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def shared(request: pytest.FixtureRequest) -> Iterator[Database]:
    """A store of every kind of decision, its dedup keys in the ledger's tree, and a copy of its rows."""
    with ExitStack() as stack:
        url = "sqlite:///:memory:"
        if request.param == "postgres":
            url = stack.enter_context(schema_of_its_own(request.getfixturevalue("postgres_server")))
        db = stack.enter_context(closing(open_database(url)))
        migrate(db, PACKAGES)
        replay(LINES, db)
        if db.dialect == "sqlite":
            keys = Keys()
            while db.run(keys.carry):
                pass
        _run_all(db, [f"CREATE TABLE kept_{table} AS SELECT * FROM {table}" for table in _tables(db)])
        yield db


@pytest.fixture
def store(shared: Database) -> Iterator[Database]:
    yield shared
    tables = _tables(shared)
    _run_all(shared, [f"DELETE FROM {table}" for table in tables])
    _run_all(shared, [f"INSERT INTO {table} SELECT * FROM kept_{table}" for table in tables])


def _tables(db: Database) -> list[str]:
    """The tables of the rows that verification looks at."""
    listed = "SELECT name FROM sqlite_master WHERE type = 'table'"
    if db.dialect == "postgres":
        listed = (
            "SELECT relname FROM pg_class "
            "WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition"
        )
    names = [name for (name,) in db.read(lambda tx: tx.fetch(statement("tables", listed)))]
    return [name for name in names if name == "krn_ledger" or name.startswith("att_")]


def _run_all(db: Database, texts: Iterable[str]) -> None:
    def work(tx: Tx) -> None:
        for text in texts:
            tx.script(text)

    db.run(work)


def test_a_sound_store_of_every_kind_of_decision_is_clean(store: Database):
    assert found(store) == []
    looked = verify(store, ManualClock(T0))
    assert (looked.logLines, looked.dedupKeys) == (10, 4)


def test_an_accepted_event_whose_key_the_ledger_lacks_is_named(store: Database):
    run(store, f"DELETE FROM krn_ledger WHERE key = {_blob(store, half(IMPRESSION))}")
    assert found(store) == [("ledger_lacks_key", IMPRESSION)]


@pytest.mark.parametrize("change", ["first_at = first_at + 1", "expires_at = expires_at - 1"])
def test_an_entry_of_the_ledger_that_is_not_as_it_was_given_is_named(store: Database, change: str):
    run(store, f"UPDATE krn_ledger SET {change} WHERE key = {_blob(store, half(IMPRESSION))}")
    differing = [("ledger_entry_differs", IMPRESSION)]
    unfounded = [("ledger_key_without_a_decision", half(IMPRESSION).hex())]
    assert found(store) == differing + (unfounded if "first_at" in change else [])


def test_a_key_of_the_ledger_that_no_event_was_accepted_for_is_named(store: Database):
    copied = (
        "SELECT scope, {key}, fingerprint, cycle, first_at{later}, expires_at{later} FROM krn_ledger WHERE key = {own}"
    )
    for key, later in ((b"\x01" * 16, ""), (b"\x02" * 16, " + 12345")):
        rows = copied.format(key=_blob(store, key), later=later, own=_blob(store, half(IMPRESSION)))
        run(store, f"INSERT INTO krn_ledger (scope, key, fingerprint, cycle, first_at, expires_at) {rows}")
    assert found(store) == [
        ("ledger_key_without_a_decision", "01" * 16),
        ("ledger_key_without_a_decision", "02" * 16),
    ]


def test_a_later_cycle_that_no_event_began_is_named(store: Database):
    run(store, f"UPDATE krn_ledger SET cycle = 2 WHERE key = {_blob(store, half(IMPRESSION))}")
    assert found(store) == [("ledger_key_without_a_decision", f"{half(IMPRESSION).hex()}#2")]


def test_a_key_that_was_forgotten_within_its_window_is_named_and_past_it_is_not(store: Database):
    later = T0 + 20 * DAY
    assert purge_once(store, later, Retention()).ledger == 4
    assert found(store, later) == []
    assert [check for check, _ in found(store)] == ["ledger_lacks_key"] * 4
    run(store, f"DELETE FROM att_past WHERE key = {_blob(store, half(IMPRESSION))}")
    assert found(store, later) == [("ledger_lacks_key", IMPRESSION)]


def test_a_key_that_is_forgotten_while_a_long_verification_runs_is_not_missed(store: Database):
    class PassingClock(ManualClock):
        def now(self) -> int:
            self.advance(20 * DAY)
            return super().now() - 20 * DAY

    assert purge_once(store, T0 + 20 * DAY, Retention()).ledger == 4
    assert verify(store, PassingClock(T0)).findings == []


def test_a_key_in_its_second_cycle_is_clean(store: Database):
    replay([sent(15 * 86_400, event("impression", eventAt="2026-01-16T00:00:00Z"), batch="b2")], store)
    assert found(store, T0 + 15 * DAY) == []


def test_keys_that_sqlite_has_not_carried_yet_are_found_and_missed(
    sqlite_store: Database, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(dedup_ledger, "RECENT_ROWS", 1)
    assert found(sqlite_store) == []
    run(
        sqlite_store,
        "UPDATE att_recent SET body = CAST(substr(body, 1, 40) || zeroblob(16) || substr(body, 57) AS BLOB) "
        "WHERE number = 1",
    )
    names = [check for check, _ in found(sqlite_store)]
    assert names == ["ledger_key_without_a_decision", "ledger_lacks_key"]
    run(sqlite_store, "DELETE FROM att_recent WHERE number = 2")
    assert ("ledger_lacks_key", IMPRESSION) in found(sqlite_store)


def test_a_carry_under_way_hides_no_key_and_invents_none(sqlite_store: Database, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("patra.attribution.storage.dedup_keys.CARRY_BATCH_SIZE", 1)
    keys = Keys()
    while sqlite_store.run(keys.carry):
        assert found(sqlite_store) == []
    assert sqlite_store.read(lambda tx: mark(tx, "carry_to")) == 0


@pytest.fixture
def sqlite_store() -> Iterator[Database]:
    db = open_database("sqlite:///:memory:")
    migrate(db, PACKAGES)
    replay(LINES, db)
    yield db
    db.close()


def test_a_drop_without_its_count_is_named(store: Database):
    run(store, f"DELETE FROM att_drop WHERE key = {_blob(store, half(QUARANTINED))}")
    assert found(store) == [
        ("drop_counts_differ", "5 counted, 6 events of the log"),
        ("drop_without_a_count", QUARANTINED),
        ("event_without_a_decision", "event 0 of batch b5, line 6"),
    ]


def test_a_count_without_its_drop_is_named(store: Database):
    run(store, f"INSERT INTO att_drop (key, decision_id, count) VALUES ({_blob(store, b'k' * 16)}, 2097153, 1)")
    assert found(store) == [
        ("drop_counts_differ", "8 counted, 7 events of the log"),
        ("drop_without_a_decision", f"{(b'k' * 16).hex()} of decision 2097153"),
    ]


def test_a_count_of_rejected_events_that_their_rows_do_not_make_up_is_named(store: Database):
    run(store, f"UPDATE att_drop SET count = 3 WHERE key = {_blob(store, half(QUARANTINED))}")
    assert found(store) == [
        ("drop_counts_differ", "8 counted, 7 events of the log"),
        ("reject_counts_differ", f"{QUARANTINED}: 2 rejected events instead of 3"),
    ]
    run(store, f"UPDATE att_drop SET count = 1 WHERE key = {_blob(store, half(QUARANTINED))}")
    assert found(store) == [
        ("event_without_a_decision", "event 0 of batch b5, line 6"),
        ("reject_counts_differ", f"{QUARANTINED}: 2 rejected events instead of 1"),
    ]


def test_a_count_of_duplicates_that_the_log_does_not_make_up_is_named(store: Database):
    key = f"{SOURCE}|drop|f_dedup_committed_duplicate"
    run(store, f"UPDATE att_drop SET count = count + 1 WHERE key = {_blob(store, half(key))}")
    assert found(store) == [("drop_counts_differ", "8 counted, 7 events of the log")]
    run(store, f"UPDATE att_drop SET count = 1 WHERE key = {_blob(store, half(key))}")
    assert ("event_without_a_decision", "event 1 of batch b2, line 4") in found(store)


@pytest.mark.parametrize("code", ["f_dedup_payload_conflict", "f_closure_foreign_app", "f_event_type_unsupported"])
def test_a_rejected_event_that_is_gone_is_named(store: Database, code: str):
    run(store, f"DELETE FROM att_reject WHERE code = '{code}'")
    ((check, key),) = found(store)
    assert check == "reject_counts_differ"
    assert key.endswith(f"|drop|{code}: 0 rejected events instead of 1")


def test_a_rejected_event_that_says_something_else_than_its_decision_is_named(store: Database):
    run(store, "UPDATE att_reject SET app_id = 'other' WHERE batch_id = 'b5'")
    assert found(store) == [("reject_and_decision_differ", QUARANTINED)]
    run(store, "UPDATE att_reject SET app_id = 'app', code = 'f_event_time_invalid' WHERE batch_id = 'b5'")
    assert found(store) == [("reject_and_decision_differ", QUARANTINED)]


def test_a_rejected_event_without_a_decision_is_named(store: Database):
    run(store, "UPDATE att_reject SET decision_id = 99 WHERE code = 'f_event_type_unsupported'")
    assert [check for check, _ in found(store)] == ["reject_counts_differ", "reject_without_a_decision"]


def test_a_quarantined_event_without_its_payload_is_named(store: Database):
    run(store, "UPDATE att_reject SET raw = NULL WHERE batch_id = 'b5'")
    assert found(store) == [("quarantine_lacks_payload", f"{QUARANTINED}: 1 events")]


def test_what_retention_took_is_not_missed(store: Database):
    later = T0 + 100 * DAY
    purge_once(store, later, Retention(rejects=90 * DAY))
    assert store.read(lambda tx: mark(tx, "rejects_purged")) == T0 + 10 * DAY
    assert found(store, later) == []
    purge_once(store, later, Retention(audits=90 * DAY))
    assert found(store, later) == []
    purge_once(store, later, Retention(log=90 * DAY))
    assert found(store, later) == []


def test_what_a_process_of_an_earlier_release_took_is_not_missed(store: Database):
    run(store, "DELETE FROM att_reject")  # it leaves no mark
    later = T0 + 100 * DAY
    assert {check for check, _ in found(store, later)} == {"reject_counts_differ"}
    purge_once(store, later, Retention(rejects=90 * DAY))
    assert found(store, later) == []


def test_an_event_of_a_line_that_was_never_decided_is_named(store: Database):
    run(store, "DELETE FROM att_decision WHERE item = 3")
    assert found(store) == [
        ("event_without_a_decision", "event 0 of batch b3, line 3"),
        ("ledger_key_without_a_decision", half("f_dedup_v1:client_event_id:app|b3|f2").hex()),
    ]


def test_a_decision_on_an_event_that_its_line_does_not_have_is_named(store: Database):
    run(store, "UPDATE att_log SET body = (SELECT body FROM att_log WHERE number = 3) WHERE number = 1")
    assert [one for one in found(store) if one[0] != "drop_counts_differ"] == [
        ("decision_without_an_event", "event 1, line 1"),
        ("decision_without_an_event", "event 2, line 1"),
    ]


def test_decisions_on_a_batch_that_was_refused_are_named(store: Database):
    run(store, "UPDATE att_log SET kind = 'refused' WHERE number = 3")
    assert found(store) == [("decisions_on_a_refused_batch", "3")]


def test_a_decision_without_its_line_is_named_once(store: Database):
    run(store, "DELETE FROM att_log WHERE number = 3")
    assert found(store) == [("decisions_without_a_line", "3")]


def test_a_fact_behind_the_last_decision_is_named(store: Database):
    run(
        store,
        "INSERT INTO att_billable (decision_id, app_id, billable_type, opportunity, fact_hour, fact_at, status) "
        "SELECT decision_id + 1000000000, app_id, billable_type, opportunity, fact_hour, fact_at, status "
        "FROM att_billable WHERE billable_type = 'billable_click'",
    )
    ((check, _),) = found(store)
    assert check == "fact_without_a_decision"


def test_a_pass_ends_with_what_was_there_when_it_began(store: Database):
    slices = [verify_slice(store, T0, size=2)]
    while not slices[-1].complete and len(slices) < 20:  # each time more comes in than it looks at
        for place in range(4):
            replay([sent(300, event("auction_started"), batch=f"c{len(slices)}-{place}")], store)
        slices.append(verify_slice(store, T0, size=2))
    assert len(slices) < 10
    assert store.read(last_verification) == (T0, 0)


def _blob(db: Database, key: bytes) -> str:
    """A value of bytes as the database writes it."""
    return f"x'{key.hex()}'" if db.dialect == "sqlite" else f"'\\x{key.hex()}'::bytea"
