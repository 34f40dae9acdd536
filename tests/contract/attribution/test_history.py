"""Rows past their retention in files: moved whole or not at all, asked, brought back, and replayed from there."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from patra.attribution.commit import commit
from patra.attribution.contract.reasons import Reason
from patra.attribution.history import decisions, kinds
from patra.attribution.history.ask import ask, check_files
from patra.attribution.history.decisions import FACTS, DecisionRecords
from patra.attribution.history.export import Exporter, Moved
from patra.attribution.history.files import CODES, exported_rows, files_between, history_place
from patra.attribution.history.kinds import LogLines
from patra.attribution.history.log_lines import restore_log
from patra.attribution.history.settled_facts import SettledFacts
from patra.attribution.intake.batch import read_batch
from patra.attribution.log_export import export_log
from patra.attribution.replay import replay
from patra.attribution.retention import Purged, Retention, RetentionRounds, purge_once
from patra.attribution.settlement.counts import settle
from patra.attribution.settlement.facts import settled_facts
from patra.attribution.settlement.period import close_period, parse_period
from patra.attribution.settlement.rate_card import Rate
from patra.attribution.settlement.statement_store import add_rate
from patra.attribution.settlement.verified_statements import VerifiedStatements
from patra.attribution.storage.billing_tree import BillingTree
from patra.attribution.storage.closure_index import BUCKETS
from patra.attribution.storage.dedup_keys import Keys
from patra.attribution.storage.placement_index import Carrier
from patra.attribution.storage.running_sums import RunningSums, rebuild_sums
from patra.attribution.verify import verify
from patra.kernel.clock import DAY, SECOND
from patra.kernel.db import Database, migrate
from patra.kernel.db.queries import statement
from patra.kernel.errors import ConfigInvalid, Invalid, Transient
from patra.kernel.files import FilePlace, FolderPlace
from patra.kernel.testing import ManualClock
from tests.unit.attribution.said import ALL_DUE_CLOSURES, PACKAGES, T0, at, envelope, event, fresh, sent

LATER = T0 + 400 * DAY
BATCHES = 16


class Killed(BaseException):
    """As of a process that ends here and now."""


class Mortal:
    """A store and a place; the process ends before their n-th act."""

    def __init__(self, db: Database, place: FilePlace, acts: int) -> None:
        self._db, self._place, self._left = db, place, acts
        self.dialect = db.dialect

    def _act(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise Killed

    def run(self, work: Callable[[Any], Any]) -> Any:
        self._act()
        return self._db.run(work)

    def read(self, work: Any) -> Any:
        return self._place.read(work) if isinstance(work, str) else self._db.read(work)

    def put(self, name: str, content: bytes) -> None:
        self._act()
        self._place.put(name, content)

    @property
    def name(self) -> str:
        return self._place.name


@pytest.fixture
def place(tmp_path: Path) -> FilePlace:
    return FolderPlace(tmp_path / "history", CODES)


def fill(db: Database) -> None:
    """An impression and a click in each of some batches, and two that were refused."""
    lines: list[Any] = []
    for n in range(BATCHES):
        keys = {"renderAttemptId": f"ra{n}", "opportunityKey": f"o{n}", "eventAt": at(n)}
        lines.append(sent(n, event("impression", "i", **keys), event("click", "c", **keys), batch=f"b{n}"))
    replay([*lines, sent(50, batch="refused"), {"receivedAt": at(51), "batch": "no JSON \u0000"}], db)


@pytest.fixture
def store(database: Database) -> Database:
    migrate(database, PACKAGES)
    fill(database)
    return database


def log(db: Database, place: FilePlace | None = None) -> list[bytes]:
    return list(export_log(db, LATER, place))


def move_all(db: Any, place: Any, kind: Any, now: int = LATER) -> int:
    """Until nothing is left to do; gives how many rows were moved."""
    rows, done = 0, Moved(rows=1)
    while done != Moved():
        done = Exporter(db, place).move(kind, now - DAY, now)
        rows += done.rows
    return rows


def count(db: Database, table: str) -> int:
    return db.read(lambda tx: tx.fetch(statement("rows_of_table", f"SELECT count(*) FROM {table}")))[0][0]


class Passing(ManualClock):
    """A second passes whenever it is looked at."""

    def now(self) -> int:
        self.advance(SECOND)
        return super().now()


def test_a_round_of_retention_ends_although_lines_become_past_meanwhile(store: Database, place: FilePlace):
    """Else a store that takes a batch each second would get a file each second."""
    clock = Passing(T0 + 3 * SECOND + DAY)
    rounds = RetentionRounds(store, clock, Retention(log=DAY), history=place)
    turns = [rounds.run_once().log for _ in range(4)]
    assert turns == [4, 0, 1, 0]
    assert [one.rows for one in store.read(files_between)] == [4, 1]


def test_a_round_of_retention_that_fails_ends(store: Database, place: FilePlace, monkeypatch: pytest.MonkeyPatch):
    clock = Passing(T0 + 3 * SECOND + DAY)
    rounds = RetentionRounds(store, clock, Retention(log=DAY), history=place)

    def unreachable(name: str, content: bytes) -> None:
        raise Transient("attribution_history_unavailable", f"{name}: {len(content)} bytes")

    with monkeypatch.context() as broken:
        broken.setattr(place, "put", unreachable)
        with pytest.raises(Transient):
            rounds.run_once()
    assert [rounds.run_once().log for _ in range(3)] == [4, 1, 0]  # the span of before, and what is past by now


def test_a_log_that_was_moved_to_history_is_exported_whole_and_replayed(store: Database, place: FilePlace):
    before = log(store)
    assert move_all(store, place, LogLines()) == len(before) - 1
    assert count(store, "att_log") == 1
    assert log(store, place) == before
    assert b"purgedBefore" in log(store)[0]
    assert [one.rows for one in store.read(files_between)] == [len(before) - 1]
    again = fresh()
    assert replay(log(store, place), again).billable == replay(before, fresh()).billable
    assert move_all(store, place, LogLines()) == 0
    assert verify(store, ManualClock(LATER)).findings == []
    assert verify(store, ManualClock(LATER)).history == {"log": len(before) - 1}


def test_a_process_that_is_killed_at_any_act_leaves_every_line_once(
    store: Database, place: FilePlace, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(kinds, "MAX_FILE_ROWS", 2)
    monkeypatch.setattr(kinds, "DELETE_BATCH_SIZE", 1)
    before = log(store)
    killed = 0
    for acts in range(8):
        mortal: Any = Mortal(store, place, acts)
        try:
            Exporter(mortal, mortal).move(LogLines(), LATER - DAY, LATER)
        except Killed:
            killed += 1
            assert log(store, place) == before
            assert check_files(store, place).problems == []
            assert Exporter(store, place).move(LogLines(), LATER - DAY, LATER) == Moved(rows=2)
    assert killed == 7  # before the plan, the file, its entry, the index, two deletions and their end
    move_all(store, place, LogLines())
    assert log(store, place) == before
    files = store.read(files_between)
    assert sum(one.rows for one in files) == len(before) - 1
    assert {one.deleted_at for one in files} == {LATER}


def test_of_two_processes_that_move_the_same_one_enters_its_file(store: Database, place: FilePlace):
    before = log(store)
    overtaken: list[int] = []

    class Overtaken(FolderPlace):
        def put(self, name: str, content: bytes) -> None:
            if not overtaken:
                overtaken.append(1)
                overtaken.append(move_all(store, place, LogLines()))
            super().put(name, content)

    slow = Overtaken(Path(place.name), CODES)
    assert Exporter(store, slow).move(LogLines(), LATER - DAY, LATER) == Moved()
    assert overtaken == [1, len(before) - 1]
    assert log(store, place) == before
    assert len(store.read(files_between)) == 1


def test_lines_that_are_brought_back_are_held_and_then_leave_again_without_another_file(
    store: Database, place: FilePlace, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(kinds, "MAX_FILE_ROWS", 5)
    before = log(store)
    moved = move_all(store, place, LogLines())
    files = len(store.read(files_between))
    done = restore_log(store, place, begin=T0, end=T0 + DAY, now=LATER, hold=7 * DAY)
    assert (done.files, done.lines) == (files, moved)
    assert restore_log(store, place, begin=T0, end=T0 + DAY, now=LATER, hold=7 * DAY).lines == 0
    assert count(store, "att_log") == len(before)
    assert log(store, place) == before
    assert verify(store, ManualClock(LATER)).findings == []
    assert move_all(store, place, LogLines(), LATER + 6 * DAY) == 0
    assert move_all(store, place, LogLines(), LATER + 8 * DAY) == moved
    assert len(store.read(files_between)) == files
    assert log(store, place) == before
    with pytest.raises(Invalid, match="attribution_history_missing"):
        restore_log(store, place, begin=LATER, end=LATER + DAY, now=LATER, hold=DAY)


def test_a_line_that_was_deleted_before_there_was_a_history_is_said_to_be_lost(store: Database, place: FilePlace):
    now = T0 + 30 * DAY
    assert purge_once(store, now, Retention(log=DAY)).log > 0
    assert b"purgedBefore" in log(store, place)[0]


def test_a_line_that_an_earlier_release_deletes_beside_this_one_is_said_to_be_lost(
    store: Database, place: FilePlace, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(kinds, "MAX_FILE_ROWS", 4)
    Exporter(store, place).move(LogLines(), LATER - DAY, LATER)
    assert b"purgedBefore" not in log(store, place)[0]
    oldest = statement("delete_oldest", "DELETE FROM att_log WHERE number = (SELECT min(number) FROM att_log)")
    purged = statement("note_purge", "UPDATE att_mark SET value = :value WHERE name = 'log_purged'")
    store.run(lambda tx: (tx.execute(oldest), tx.execute(purged, {"value": T0 + 5 * DAY})))
    assert log(store, place)[0] == b'{"purgedBefore":"2026-01-06T00:00:00Z"}'
    move_all(store, place, LogLines())
    assert b"purgedBefore" in log(store, place)[0]


def test_a_damaged_or_missing_file_is_found_and_nothing_is_deleted_for_it(store: Database, place: FilePlace):
    move_all(store, place, LogLines())
    (file,) = store.read(files_between)
    path = Path(place.name) / (file.file or "")
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    assert len(check_files(store, place).problems) == 1
    with pytest.raises(Invalid, match="attribution_history_damaged"):
        log(store, place)
    path.unlink()
    with pytest.raises(Invalid, match="attribution_history_damaged"):
        ask(store, place, "SELECT 1")
    path.write_bytes(whole)
    assert check_files(store, place).problems == []


def test_a_file_that_is_not_what_was_written_is_not_entered_and_its_rows_stay(store: Database, tmp_path: Path):
    class Lossy(FolderPlace):
        def put(self, name: str, content: bytes) -> None:
            super().put(name, content[:100])

    with pytest.raises(Invalid, match="attribution_history_damaged"):
        Exporter(store, Lossy(tmp_path / "lossy", CODES)).move(LogLines(), LATER - DAY, LATER)
    assert count(store, "att_log") == BATCHES + 2
    assert store.read(files_between) == []


def test_a_query_reads_the_files_and_nothing_else(store: Database, place: FilePlace, tmp_path: Path):
    move_all(store, place, LogLines())
    sql = "SELECT kind, count(*), min(time) FROM log WHERE json_valid(body) OR body IS NULL GROUP BY kind ORDER BY kind"
    found = ask(store, place, sql)
    assert [row[:2] for row in found.rows] == [("batch", BATCHES), ("refused", 1)]
    assert found.columns == ["kind", "count_star()", 'min("time")']
    assert ask(store, place, "SELECT count(*) FROM facts").rows == [(0,)]
    assert ask(store, place, "SELECT count(*) FROM log", begin=LATER).rows == [(0,)]
    (tmp_path / "secret").write_text("x")
    for wrong in ("SELEC", f"SELECT * FROM read_text('{tmp_path}/secret')", f"COPY log TO '{tmp_path}/out.csv'"):
        with pytest.raises(Invalid, match="attribution_history_query"):
            ask(store, place, wrong)


BILLED = "SELECT count(*) FROM facts WHERE record_type = 'billable_fact'"


def billed_in_history(db: Database, place: FilePlace) -> int:
    """After everything past its retention was moved, until there is no more."""
    retention = Retention(log=DAY, audits=DAY, facts=DAY, verified=VerifiedStatements())
    while purge_once(db, LATER, retention, history=place) != Purged():
        pass
    return ask(db, place, BILLED).rows[0][0]


def close_january(db: Database) -> None:
    for kind in ("billable_impression", "billable_click"):
        rate = Rate(billable_type=kind, price_micros=2500, currency="EUR", valid_from=T0)
        db.run(lambda tx, rate=rate: add_rate(tx, rate, T0))
    close_period(db, ManualClock(LATER), "app", parse_period("2026-01"))


def test_facts_wait_for_their_statement_and_are_found_in_history_after_it(store: Database, place: FilePlace):
    assert billed_in_history(store, place) == 0
    close_january(store)
    assert billed_in_history(store, place) == 2 * BATCHES
    assert count(store, "att_decision") == 0
    sql = (
        "SELECT record_type, record_status FROM facts WHERE billing_key = 'ref|ra3|billable_click' ORDER BY record_key"
    )
    assert ("billable_fact", "committed") in ask(store, place, sql).rows
    files = store.read(files_between)
    assert billed_in_history(store, place) == 2 * BATCHES
    assert store.read(files_between) == files
    found = verify(store, ManualClock(LATER))
    assert (found.findings, set(found.history)) == ([], {"log", "facts"})


def test_facts_of_a_statement_that_is_not_what_its_hash_says_stay(store: Database, place: FilePlace):
    close_january(store)
    store.run(lambda tx: tx.script("DELETE FROM att_statement_page"))
    assert billed_in_history(store, place) == 0
    assert count(store, "att_decision") == BATCHES


def test_decisions_that_are_killed_in_the_middle_of_their_deletion_leave_a_store_that_verifies(
    store: Database, place: FilePlace, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(kinds, "DELETE_BATCH_SIZE", 4)
    monkeypatch.setattr(decisions, "MAX_FILE_DECISIONS", 6)
    close_january(store)
    for acts in range(3, 7):
        mortal: Any = Mortal(store, place, acts)
        with pytest.raises(Killed):
            Exporter(mortal, mortal).move(DecisionRecords("facts", FACTS), LATER - DAY, LATER)
        assert verify(store, ManualClock(LATER)).findings == []
        Exporter(store, place).move(DecisionRecords("facts", FACTS), LATER - DAY, LATER)
    move_all(store, place, DecisionRecords("facts", FACTS))
    records = 8 * BATCHES  # an impression has three, a click two while it waits and three when it is billed
    sql = "SELECT count(*), count(DISTINCT record_key) FROM facts"
    assert ask(store, place, sql).rows == [(records, records)]
    assert store.read(exported_rows) == {"facts": records}
    assert count(store, "att_decision") == 0


def settle_whole(db: Database, by: Any, begin: int = T0, end: int = T0 + DAY) -> Any:
    return msgspec.to_builtins(db.read(lambda tx: settle(tx, begin, end, by)))


def catch_up(db: Database) -> None:
    clock = ManualClock(LATER)
    carry, keys = Carrier(db, clock), Keys()
    while carry.run_once():
        pass
    for _ in range(BUCKETS if db.dialect == "sqlite" else 0):
        db.run(keys.carry_closures)
    BillingTree(db, clock).catch_up()
    RunningSums(db, "hour").catch_up()
    RunningSums(db, "placement").catch_up()


def test_settled_facts_go_after_their_period_and_nothing_is_counted_or_billed_differently(
    store: Database, place: FilePlace
):
    close_january(store)
    catch_up(store)
    bys = ("app", "day", "placement")
    before = [settle_whole(store, by) for by in bys]
    statements_of_facts = VerifiedStatements()
    kept = Retention(facts=DAY, settled=30 * DAY, verified=statements_of_facts, statements=statements_of_facts)
    now = LATER + 29 * DAY
    while purge_once(store, now, kept, history=place) != Purged():
        pass
    assert count(store, "att_billable") == 2 * BATCHES
    now = LATER + 31 * DAY
    while purge_once(store, now, kept, history=place) != Purged():
        pass
    assert (count(store, "att_billable"), count(store, "att_statement_fact")) == (0, 0)
    assert [settle_whole(store, by) for by in bys] == before
    assert verify(store, ManualClock(now)).findings == []
    store.run(rebuild_sums)
    catch_up(store)
    assert [settle_whole(store, by) for by in bys] == before
    assert verify(store, ManualClock(now)).findings == []
    with pytest.raises(Invalid, match="settle_facts_in_history"):
        settle_whole(store, "app", end=T0 + 60 * SECOND)
    with pytest.raises(Invalid, match="settle_facts_in_history"):
        list(settled_facts(store, T0, T0 + DAY))
    sql = "SELECT count(*), count(DISTINCT closure), min(period), min(closure_state) FROM settled"
    assert ask(store, place, sql).rows == [(2 * BATCHES, BATCHES, "2026-01", "closed_success")]
    ((smallest, largest),) = store.read(
        lambda tx: tx.fetch(statement("bodies", "SELECT min(length(body)), max(length(body)) FROM att_closure"))
    )
    assert largest - smallest <= 1  # what differs is the length of its name
    late = {"renderAttemptId": "ra3", "opportunityKey": "o3", "eventAt": at(405 * 86_400)}
    ack = commit_batch(store, event("impression", "again", **late), event("click", "once more", **late))
    assert ack == [Reason.DUPLICATE_IMPRESSION, Reason.DUPLICATE_CLICK]
    assert count(store, "att_billable") == 0
    assert close_period(store, ManualClock(now), "app", parse_period("2026-02")).facts == []


def test_after_all_periods_only_what_the_page_says_is_kept_has_rows(store: Database, place: FilePlace):
    page = (Path(__file__).parents[3] / "docs" / "operations" / "retention.md").read_text("utf-8")
    periodic = re.findall(r"^\| `(att_\w+)` \|[^|]*\| period: ", page, re.MULTILINE)
    assert {"att_log", "att_decision", "att_billable", "att_statement_fact", "att_reject"} <= set(periodic)
    commit_batch(store, {"eventType": "unknown"})
    close_january(store)
    catch_up(store)
    assert count(store, "att_reject") == 1
    verified = VerifiedStatements()
    periods = dict.fromkeys(("log", "rejects", "audits", "facts", "settled"), 30 * DAY)
    while (
        purge_once(store, LATER + 99 * DAY, Retention(**periods, verified=verified, statements=verified), history=place)
        != Purged()
    ):
        pass
    left = {name: count(store, name) for name in periodic if store.dialect == "sqlite" or name != "att_closure_key"}
    assert left == {name: int(name == "att_log") for name in left}  # the newest line: numbers go on from it
    assert verify(store, ManualClock(LATER + 99 * DAY)).findings == []


def test_a_settled_fact_is_summed_once_although_its_deletion_was_killed(
    store: Database, place: FilePlace, monkeypatch: pytest.MonkeyPatch
):
    close_january(store)
    catch_up(store)
    move_all(store, place, DecisionRecords("facts", FACTS))
    monkeypatch.setattr(kinds, "DELETE_BATCH_SIZE", 10)
    checks = VerifiedStatements()
    assert checks.check_pending(store, LATER) == 1
    kind = SettledFacts(checks)
    later = LATER + 40 * DAY
    for acts in (5, 1):  # after the first batch of deletions; and then before the second
        mortal: Any = Mortal(store, place, acts)
        with pytest.raises(Killed):
            Exporter(mortal, mortal).move(kind, later, later)
        assert verify(store, ManualClock(later)).findings == []
    move_all(store, place, kind, later + DAY)
    assert count(store, "att_billable") == 0
    assert verify(store, ManualClock(later)).findings == []
    assert ask(store, place, "SELECT count(*), count(DISTINCT decision_id) FROM settled").rows == [
        (2 * BATCHES, 2 * BATCHES)
    ]


def commit_batch(db: Database, *events: Any) -> list[Reason]:
    body = msgspec.json.encode(envelope(*events, batch="late"))
    (ack,) = commit(db, [read_batch(body, T0 + 405 * DAY)], due=ALL_DUE_CLOSURES)
    return [item.ackReasonCode for item in ack.ackItems]  # type: ignore[union-attr]


def test_a_place_is_a_folder_or_a_bucket(tmp_path: Path):
    assert history_place("", "") is None
    assert isinstance(history_place(str(tmp_path), ""), FolderPlace)
    found = history_place("", f"file://{tmp_path}/x")
    assert found is not None
    assert found.name == f"{tmp_path}/x"
    with pytest.raises(ConfigInvalid, match="config_wrong_value"):
        history_place("", "s3://")
