"""Finding and forgetting: §3.8.25, F9, F19, A4."""

import json
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import zstandard

from patra.attribution.commit import commit
from patra.attribution.contract.keys import half
from patra.attribution.decision.output_records import Record
from patra.attribution.history.decisions import rewrite_items
from patra.attribution.intake.batch import Tick, read_batch
from patra.attribution.log_export import export_log
from patra.attribution.queries import events_of_batch, rejects, timeline
from patra.attribution.replay import replay
from patra.attribution.retention import MAX_TRANSIT_TIME, Purged, Retention, into_files, purge_once
from patra.attribution.storage.dedup_keys import PURGED, Keys, carry_once
from patra.attribution.storage.key_index import INDEXED, MAX_TRANSACTION_TIME, RUN_TIMEOUT, Indexer
from patra.attribution.storage.key_search import Only, find
from patra.attribution.storage.read import every_closure, every_decision
from patra.attribution.storage.sql import mark
from patra.kernel.clock import DAY, HOUR, SECOND
from patra.kernel.db import Database, Tx, migrate
from patra.kernel.db.queries import statement
from patra.kernel.testing import ManualClock
from tests.unit.attribution.said import ALL_DUE_CLOSURES, PACKAGES, T0, at, envelope, event, replayed, sent, tick


class House:
    def __init__(self, db: Database) -> None:
        migrate(db, PACKAGES)
        self.db = db
        self.clock = ManualClock(T0)
        self.indexer = Indexer(db, self.clock, patience=0)
        self.keys = Keys()

    def take(self, *events: Any, **changes: Any) -> list[str]:
        body = json.dumps(envelope(*events, **changes)).encode()
        (ack,) = commit(self.db, [read_batch(body, self.clock.now())], due=ALL_DUE_CLOSURES, keys=self.keys)
        return [f"{item.ackReasonCode} {item.serverEventKey}" for item in ack.ackItems]  # type: ignore[union-attr]

    def index(self) -> None:
        while self.indexer.run_once().items:
            pass

    def wait(self, duration: int) -> None:
        self.clock.advance(duration)
        self.index()
        while carry_once(self.db, self.keys, self.clock.now()):
            pass

    def purge(self, **kept: Any) -> Purged:
        files: list[Record] = []
        keep = kept.pop("keep", files.extend)
        names = Purged.__struct_fields__
        total = dict.fromkeys(names, 0)
        while True:
            done = purge_once(self.db, self.clock.now(), Retention(**kept), keep=keep)
            if done == Purged():
                return Purged(**total)
            total = {name: total[name] + getattr(done, name) for name in names}

    def found(self, key: str) -> list[str]:
        return [one.archived.decision.reason for one in self.db.read(lambda tx: find(tx, key)).found]


@pytest.fixture
def house(database: Database) -> Iterator[House]:
    return House(database)


def test_the_index_changes_nothing_about_what_is_found(house: House):
    house.take(event("impression", "i"), event("view", "v"), event("impression", "i"))
    house.take(event("click", "c", traceKey="other"), batch="b2")
    keys = [
        "trace",
        "other",
        "ref",
        "ref|ra",
        "b1",
        "b2",
        "ref|ra|billable_click",
        "f_dedup_v1:client_event_id:app|b1|i",
        "nothing",
        "NA",
    ]
    before = {key: house.found(key) for key in keys}
    house.index()
    assert house.db.read(lambda tx: mark(tx, INDEXED)) == 2
    assert {key: house.found(key) for key in keys} == before
    assert before["ref|ra|billable_click"] == ["f_accepted"]
    assert before["f_dedup_v1:client_event_id:app|b1|i"] == ["f_accepted", "f_dedup_inflight_duplicate"]
    assert before["nothing"] == before["NA"] == []


def numbers(house: House, table: str) -> list[int]:
    column = "item" if table in ("att_gap", "att_decision") else "run"
    text = f"SELECT DISTINCT {column} FROM {table} ORDER BY {column}"
    return [number for (number,) in house.db.read(lambda tx: tx.fetch(statement("numbers", text)))]


def test_the_journal_of_a_record_goes_with_its_decision_unless_another_may_have_its_key(house: House):
    filled = [sent(0, event("ad_filled", one, renderAttemptId=one), batch=f"fill-{one}") for one in "ab"]
    late = [sent(4001, event("impression", f"i{one}", renderAttemptId=one), batch=f"late-{one}") for one in "ab"]
    replay([*filled, tick(4000), *late], house.db)
    moved = "SELECT DISTINCT subject FROM krn_move ORDER BY subject"
    subjects = [key for (key,) in house.db.read(lambda tx: tx.fetch(statement("moved", moved)))]
    assert len(subjects) == 2  # the timeouts' records, which gave way to impressions
    shared = {"key": half(subjects[0]), "digest": "x", "decision_id": 0}
    house.db.run(lambda tx: tx.insert("att_record_key", [shared]))
    house.wait(40 * DAY)
    assert house.purge(facts=30 * DAY).facts > 0
    assert house.db.read(lambda tx: tx.fetch(statement("moved", moved))) == [(subjects[0],)]


def test_a_number_drawn_earlier_and_committed_later_is_indexed_when_it_turns_up(house: House):
    house.take(event("ad_filled", "one"), batch="one")
    house.take(event("ad_filled", "two", traceKey="late"), batch="two")
    house.take(event("ad_filled", "three"), batch="three")
    hide = "UPDATE att_decision SET item = {} WHERE item = {}"
    house.db.run(lambda tx: tx.script(hide.format(-2, 2)))  # not committed yet, as far as the index can see
    house.index()
    assert numbers(house, "att_gap") == [2]
    house.db.run(lambda tx: tx.script(hide.format(2, -2)))
    house.index()
    assert numbers(house, "att_gap") == []
    assert house.db.read(lambda tx: mark(tx, INDEXED)) == 3
    assert house.found("late") == ["f_accepted"]


def test_a_number_that_never_turns_up_is_given_up(house: House):
    house.take(event("ad_filled", "one"), batch="one")
    house.take(event("ad_filled", "two"), batch="two")
    house.db.run(lambda tx: tx.script("DELETE FROM att_decision WHERE item = 1"))
    house.index()
    assert numbers(house, "att_gap") == [1]
    house.clock.advance(MAX_TRANSACTION_TIME + 1)
    house.index()
    assert numbers(house, "att_gap") == []


def test_of_two_indexers_one_writes_each_run(house: House):
    house.take(event("ad_filled", "one"), batch="one")
    other = Indexer(house.db, house.clock, patience=0)
    read = house.db.read

    def overtaken(work: Any) -> Any:
        found = read(work)
        house.db.read = read  # type: ignore[method-assign]
        assert other.run_once().items == 1
        return found

    house.db.read = overtaken  # type: ignore[method-assign]
    assert house.indexer.run_once().items == 0
    assert numbers(house, "att_locator") == [1]


def test_a_run_waits_until_it_is_full_or_its_first_item_is_old(house: House):
    house.indexer = Indexer(house.db, house.clock, run=2)
    house.take(event("ad_filled", "one"), batch="one")
    assert house.indexer.run_once().items == 0
    house.take(event("ad_filled", "two"), batch="two")
    assert house.indexer.run_once().items == 2
    house.take(event("ad_filled", "three"), batch="three")
    assert house.indexer.run_once().items == 0
    house.clock.advance(RUN_TIMEOUT)
    assert house.indexer.run_once().items == 1


def test_the_index_steps_aside_while_the_intake_is_busy(house: House):
    house.take(event("ad_filled", "one"), batch="one")
    assert Indexer(house.db, house.clock, lambda: True, patience=0).run_once().items == 0


def test_ledger_keys_are_forgotten_after_their_window_and_answers_stay_the_same(house: House):
    lines = [
        (0, event("auction_started", "e")),
        (4 * DAY, event("auction_started", "e", eventAt=at(4 * 86_400))),
        (8 * DAY, event("auction_started", "e", eventAt=at(8 * 86_400))),
    ]
    expected = [
        f"{i['ackReasonCode']} {i['serverEventKey']}"
        for a in replayed(*[sent(t / SECOND, e) for t, e in lines]).acks
        for i in a["ackItems"]
    ]
    answers: list[str] = []
    for instant, one in lines:
        house.clock.set(T0 + instant)
        house.purge()
        answers += house.take(one)
        house.wait(HOUR)
    assert answers == expected
    assert house.db.read(lambda tx: mark(tx, PURGED)) == 1
    house.clock.set(T0 + 30 * DAY)
    assert house.purge().ledger == 1
    assert house.db.read(lambda tx: tx.fetch(statement("keys", "SELECT key FROM krn_ledger"))) == []


def test_a_key_within_its_window_is_never_forgotten(house: House):
    house.take(event("impression", "i"), event("ad_filled", "f"))
    house.wait(HOUR)
    house.clock.set(T0 + 3 * DAY + MAX_TRANSIT_TIME)
    assert house.purge().ledger == 0
    house.clock.set(T0 + 3 * DAY + MAX_TRANSIT_TIME + 1)
    assert house.purge().ledger == 1
    assert house.take(event("impression", "i"))[0].startswith("f_dedup_committed_duplicate")


def test_a_batch_that_was_received_within_the_window_finds_its_key_although_a_purge_came_before_its_turn(house: House):
    house.take(event("ad_filled", "f"))
    house.clock.set(T0 + 3 * DAY + 5 * SECOND)
    house.purge()
    house.clock.set(T0 + 3 * DAY)  # it waited for its turn, or the clock of its process is behind
    assert house.take(event("ad_filled", "f"))[0].startswith("f_dedup_committed_duplicate")


def test_a_foreign_event_is_no_cycle_that_the_decisions_remember(house: House):
    house.take(event("ad_filled", "f"))
    house.take(event("interaction", "x"), app="other")
    house.wait(HOUR)
    house.clock.set(T0 + 5 * DAY)
    house.purge()
    later = event("interaction", "x", eventAt=at(5 * 86_400), renderAttemptId="own")
    assert house.take(later, app="other") == [
        f"f_accepted {replayed(sent(5 * 86_400, later, app='other')).acks[0]['ackItems'][0]['serverEventKey']}"
    ]


def test_the_log_and_rejects_go_after_their_time_and_facts_stay(house: House):
    house.take(event("impression", "i"), event("view", "v"))
    house.take(event("click", "c"), batch="b2")
    house.wait(HOUR)
    kept = {"log": 30 * DAY, "rejects": 90 * DAY}
    house.clock.set(T0 + 29 * DAY)
    assert house.purge(**kept) == Purged(ledger=2)
    house.clock.set(T0 + 31 * DAY)
    assert house.purge(**kept).log == 1
    house.clock.set(T0 + 91 * DAY)
    assert house.purge(**kept).rejects == 1
    assert len(list(every_decision(house.db))) == 3
    assert len(list(every_closure(house.db))) == 1
    assert house.db.read(lambda tx: rejects(tx, limit=10)).rejects == []


def test_a_batch_is_found_by_its_id_although_the_log_has_forgotten_it(house: House):
    """§3.8.8: any rejection is found by batch, event and code, as long as there is something to be found."""
    house.take(event("impression", "i"), event("view", "v"), batch="b1")
    house.take(event("click", "c", traceKey="batchId|b1"), batch="b2")
    house.clock.advance(DAY)
    house.take(event("interaction", "x", eventAt=at(86_400)), batch="b1")  # the same id again
    house.index()
    house.clock.advance(20 * DAY)
    house.take(event("interaction", "y", eventAt=at(21 * 86_400)), batch="newest")
    assert house.purge(log=10 * DAY).log == 3
    found = house.db.read(lambda tx: timeline(tx, "b1"))
    sent_as = [(one.records[0]["sourceKeys"]["eventId"], one.batchId) for one in found.decisions]
    assert sent_as == [("v", "b1"), ("i", "b1"), ("x", "b1")]
    (lost,) = house.db.read(lambda tx: events_of_batch(tx, "b1", "v", Only(code="f_event_type_unsupported"))).decisions
    assert lost.audit["decisionReasonCode"] == "f_event_type_unsupported"
    assert [one.batchId for one in house.db.read(lambda tx: timeline(tx, "b2")).decisions] == ["b2"]
    assert house.db.read(lambda tx: timeline(tx, "b3")).decisions == []


def test_what_is_exactly_as_old_as_it_is_kept_for_stays(house: House):
    house.take(event("impression", "i"), event("view", "v"))
    house.take(event("impression", "j", renderAttemptId="two"), batch="newest")
    kept = {"log": DAY, "rejects": DAY, "audits": DAY, "facts": DAY}
    house.clock.set(T0 + DAY)
    found = house.purge(**kept)
    assert (found.log, found.rejects, found.audits, found.facts) == (0, 0, 0, 0)
    house.clock.set(T0 + DAY + 1)
    found = house.purge(**kept)
    assert (found.log, found.rejects, found.audits, found.facts) == (1, 1, 1, 2)


def test_audits_of_dropped_events_go_and_facts_stay_when_only_they_are_to_go(house: House):
    house.take(event("impression", "i"), event("view", "v"), event("impression", "i"))
    house.wait(HOUR)
    house.clock.set(T0 + 10 * DAY)
    assert house.purge(audits=5 * DAY).audits == 2
    assert [one.decision.reason for one in every_decision(house.db)] == ["f_accepted"]
    assert house.found("ref|ra") == ["f_accepted"]


def test_facts_that_are_kept_longer_do_not_keep_the_audits_of_dropped_events(house: House):
    house.take(event("impression", "i"))
    house.take(event("view", "v"), event("impression", "i"), batch="b2")
    house.wait(HOUR)
    house.clock.set(T0 + 10 * DAY)
    kept = {"audits": 5 * DAY, "facts": 100 * DAY}
    assert house.purge(**kept).audits == 1
    assert [one.decision.reason for one in every_decision(house.db)] == [
        "f_accepted",
        "f_billing_conflict_duplicate_impression",
    ]
    house.clock.set(T0 + 101 * DAY)
    assert house.purge(**kept).facts == 2
    assert list(every_decision(house.db)) == []


def test_facts_go_also_when_they_are_to_go_only_after_audits_were_purged_for_a_while(house: House):
    house.take(event("impression", "i"), event("view", "v"))
    house.wait(HOUR)
    house.clock.set(T0 + 10 * DAY)
    assert house.purge(audits=5 * DAY).audits == 1
    assert house.purge(audits=5 * DAY, facts=5 * DAY).facts == 1


def test_a_turn_that_only_passes_over_what_stays_says_that_there_is_more_to_do(house: House):
    for n in range(15):
        house.take(*[event("opportunity_created", f"e{n}.{i}") for i in range(100)], batch=f"b{n}")
    house.take(event("view", "v"), batch="last")
    house.wait(HOUR)
    house.clock.set(T0 + 2 * DAY)
    turns = [purge_once(house.db, house.clock.now(), Retention(audits=DAY)) for _ in range(3)]
    assert turns == [Purged(passed=1000), Purged(passed=500, audits=1), Purged()]


def test_facts_go_into_a_file_before_they_go(house: House, tmp_path: Path):
    house.take(event("impression", "i"))
    house.wait(HOUR)
    wanted = [record.body for one in every_decision(house.db) for record in one.records]
    house.clock.set(T0 + 10 * DAY)
    assert house.purge(facts=5 * DAY, keep=into_files(tmp_path / "kept")).facts == 1
    (file,) = (tmp_path / "kept").iterdir()
    lines = zstandard.ZstdDecompressor().decompress(file.read_bytes(), max_output_size=1 << 20).splitlines()
    assert [json.loads(line)["record"] for line in lines] == wanted
    assert list(every_decision(house.db)) == []
    assert house.found("ref|ra") == []


def test_a_folder_that_cannot_be_written_keeps_facts_and_nothing_else(house: House, tmp_path: Path):
    house.take(event("impression", "i"), event("view", "v"))
    house.take(event("ad_filled", "f"), batch="newest")
    house.wait(HOUR)
    house.clock.set(T0 + 20 * DAY)
    (tmp_path / "file").write_text("no folder")
    kept = Retention(log=DAY, rejects=DAY, facts=DAY)
    with pytest.raises(OSError, match="file"):
        purge_once(house.db, house.clock.now(), kept, keep=into_files(tmp_path / "file"))
    assert len(list(every_decision(house.db))) == 3
    assert house.db.read(lambda tx: tx.lookup("att_reject", columns=("code",), key=("app_id",), keys=[("app",)])) == []
    assert house.purge(log=DAY, rejects=DAY, facts=DAY) == Purged(facts=2, passed=1)


def test_of_two_who_purge_at_once_none_takes_the_file_of_the_other(house: House, tmp_path: Path):
    for n in range(3):
        house.clock.set(T0 + n * SECOND)
        house.take(event("impression", f"i{n}", renderAttemptId=f"ra{n}"), batch=f"b{n}")
    wanted = {record.key for one in every_decision(house.db) for record in one.records}
    keep = into_files(tmp_path / "kept")

    def overtaken(records: Sequence[Record]) -> None:
        """Another process, with a later clock, is faster."""
        assert purge_once(house.db, T0 + DAY + 10 * SECOND, Retention(facts=DAY), keep=keep).facts == 3
        keep(records)

    purge_once(house.db, T0 + DAY + SECOND, Retention(facts=DAY), keep=overtaken)
    assert list(every_decision(house.db)) == []
    lines = [
        json.loads(line)
        for file in (tmp_path / "kept").iterdir()
        for line in zstandard.ZstdDecompressor().decompress(file.read_bytes(), max_output_size=1 << 20).splitlines()
    ]
    assert {line["record"]["recordKey"] for line in lines} == wanted


def test_of_two_who_purge_decisions_of_one_item_at_once_none_brings_back_what_the_other_took(house: House):
    if house.db.dialect != "postgres":
        pytest.skip("SQLite has one writer at a time")
    house.take(event("impression", "i1"), event("impression", "i2", renderAttemptId="two"), event("view", "v"))
    first, second, third = [one.id for one in every_decision(house.db)]
    waits = statement("waits", "SELECT count(*) FROM pg_locks WHERE NOT granted")
    other = threading.Thread(target=lambda: house.db.run(lambda tx: rewrite_items(tx, {second})))

    def work(tx: Tx) -> None:
        rewrite_items(tx, {first})
        other.start()
        while not tx.fetch(waits)[0][0]:
            pass

    house.db.run(work)
    other.join()
    assert [one.id for one in every_decision(house.db)] == [third]


def test_a_purged_fact_is_never_billed_again(house: House, tmp_path: Path):
    house.take(event("impression", "i"))
    house.wait(HOUR)
    house.clock.set(T0 + 20 * DAY)
    house.purge(facts=5 * DAY, keep=into_files(tmp_path / "kept"))
    late = event("impression", "again", eventAt=at(20 * 86_400))
    assert house.take(late)[0].startswith("f_billing_conflict_duplicate_impression")


def test_a_key_goes_on_with_its_next_cycle_after_its_facts_were_purged(house: House, tmp_path: Path):
    """Another event under a key of old must not get the record keys of the purged one (§3.8.29)."""
    made: set[str] = set()
    sources: set[str] = set()
    for days in (0, 20, 40, 60):
        house.clock.set(T0 + days * DAY)
        kept = into_files(tmp_path / "kept")
        house.purge(facts=5 * DAY, keep=kept)
        again = event("impression", "i", idempotencyKey="k", eventAt=at(days * 86_400), renderAttemptId=f"r{days}")
        sources |= {*house.take(again)}
        keys = {record.key for one in every_decision(house.db) for record in one.records}
        assert len(keys) == 3
        assert not keys & made
        made |= keys
        house.wait(HOUR)
    assert len(sources) == 4


def test_an_audit_is_written_anew_when_its_event_is_dropped_again_after_it_was_purged(house: House):
    first = house.take(event("view", "v"))
    house.wait(HOUR)
    house.clock.set(T0 + 10 * DAY)
    assert house.purge(audits=5 * DAY).audits == 1
    assert house.found("v") == []
    assert house.take(event("view", "v")) == first
    assert house.found("v") == ["f_event_type_unsupported"]
    assert [one.count for one in every_decision(house.db)] == [1]


def test_purging_is_done_in_bounded_bites(house: House):
    for n in range(25):
        house.take(*[event("opportunity_created", f"e{n}.{i}") for i in range(100)], batch=f"b{n}")
    house.wait(HOUR)
    house.clock.set(T0 + 4 * DAY)
    assert purge_once(house.db, house.clock.now(), Retention()).ledger == 1000
    assert house.purge().ledger == 1500


def test_an_exported_log_is_that_of_one_moment_although_batches_turn_up_behind_what_was_read(
    house: House, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("patra.attribution.log_export.PAGE_ROWS", 1)
    for n in range(1, 4):
        house.take(event("click", "c"), batch=f"b{n}")
    late = house.db.run(lambda tx: tx.fetch(statement("late", "DELETE FROM att_log WHERE batch_id = 'b2' RETURNING *")))
    lines = export_log(house.db, house.clock.now())
    read = [next(lines), next(lines)]
    columns = ("number", "place", "at", "kind", "app_id", "batch_id", "code", "body")
    house.db.run(lambda tx: tx.insert_tuples("att_log", columns, late))
    house.take(event("click", "c"), batch="b4")
    read += lines
    assert [json.loads(line)["batch"]["batchId"] for line in read] == ["b1", "b3"]
    house.clock.advance(MAX_TRANSACTION_TIME + 1)
    whole = export_log(house.db, house.clock.now())
    assert [json.loads(line)["batch"]["batchId"] for line in whole] == ["b1", "b2", "b3", "b4"]


def test_a_tick_that_applies_nothing_leaves_no_line_in_the_log(house: House):
    commit(house.db, [Tick(at=T0)], due=10)
    assert house.db.read(lambda tx: tx.lookup("att_log", columns=("number",), key=("kind",), keys=[("tick",)])) == []
