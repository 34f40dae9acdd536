"""The same log gives the same bytes on every database, and a fault at any step changes nothing (A3, §3.8.30.3)."""

import msgspec
import pytest

from patra.attribution.queries import ClosurePage, closures
from patra.attribution.replay import ReplayOutput, replay
from patra.attribution.storage import read
from patra.kernel.db import Database, migrate, open_database
from tests.support.faults import FaultyDatabase, InjectedFault
from tests.unit.attribution.said import PACKAGES, event, fresh, replayed, sent, terminal, tick
from tests.unit.attribution.test_replay import random_log

STORY = [
    sent(0, event("opportunity_created"), event("ad_filled"), event("click"), event("view"), event("ad_filled")),
    sent(60, event("click", "late", renderAttemptId="two"), event("impression", "lost", responseReference=None)),
    tick(130),
    sent(140, event("impression"), terminal()),
    sent(150, event("impression", "again"), event("postback", postbackStatus="failed", note="\x00")),
    sent(151, event("click", "x"), app="other"),
    tick(1000),
]


@pytest.mark.parametrize("seed", range(6))
def test_a_log_gives_the_same_bytes_on_every_database(database: Database, seed: int):
    migrate(database, PACKAGES)
    lines = random_log(seed)
    assert _bytes(replay(lines, database, group=[3] * 20)) == _bytes(replayed(*lines))


def test_a_story_gives_the_same_bytes_on_every_database(database: Database):
    migrate(database, PACKAGES)
    assert _bytes(replay(STORY, database)) == _bytes(replayed(*STORY))


def test_open_closures_are_listed_page_by_page_without_those_that_are_closed(database: Database):
    migrate(database, PACKAGES)
    filled = [event("ad_filled", f"f{n}", renderAttemptId=f"ra{n}") for n in range(6)]
    shown = [event("impression", f"i{n}", renderAttemptId=f"ra{n}") for n in (1, 4)]  # their clicks are awaited
    replay([sent(0, *filled), sent(1, *shown)], database)
    found = _listed(database, "open")
    assert sorted(found) == [f"ref|ra{n}" for n in (0, 2, 3, 5)]


def test_failed_closures_are_listed_page_by_page_without_those_that_are_open_or_succeeded_later(database: Database):
    migrate(database, PACKAGES)
    failed = [event("error", f"e{n}", errorClass="terminal", renderAttemptId=f"ra{n}") for n in range(6)]
    waiting = event("ad_filled", "f6", renderAttemptId="ra6")
    shown = [event("impression", f"i{n}", renderAttemptId=f"ra{n}") for n in (1, 4, 7)]
    replay([sent(0, *failed, waiting), sent(1, *shown)], database)
    found = _listed(database, "closed_failure")
    stays = {view.closureKey: view.state for view in database.read(_all_closures)}
    assert sorted(found) == [key for key, state in sorted(stays.items()) if state == "closed_failure"]
    assert len(found) >= 4


def test_closures_that_succeeded_are_looked_for_among_some_at_a_time(
    database: Database, monkeypatch: pytest.MonkeyPatch
):
    """Where they are few, a page ends before it is full, and says where to go on."""
    migrate(database, PACKAGES)
    monkeypatch.setattr(read, "MAX_CLOSURES_READ", 4)
    failed = [event("error", f"e{n}", errorClass="terminal", renderAttemptId=f"ra{n}") for n in range(11)]
    shown = [event("impression", f"i{n}", renderAttemptId=f"ra{n}") for n in (3, 9, 11, 12)]
    replay([sent(0, *failed), sent(1, *shown)], database)
    stays = {view.closureKey: view.state for view in database.read(_all_closures)}
    succeeded = [key for key, state in sorted(stays.items()) if state == "closed_success"]
    assert len(succeeded) >= 2
    for limit in (1, 3, 100):
        assert sorted(_listed(database, "closed_success", limit)) == succeeded
    pages = _pages(database, "closed_success", 100)
    assert len(pages) == 4  # of 13 closures, four at a time


def _pages(database: Database, state: str, limit: int) -> list[ClosurePage]:
    found: list[ClosurePage] = []
    after: bytes | None = b""
    while after is not None:
        found.append(database.read(lambda tx, after=after: closures(tx, state=state, after=after, limit=limit)))
        after = found[-1].next
    return found


def _listed(database: Database, state: str, limit: int = 3) -> list[str]:
    return [view.closureKey for page in _pages(database, state, limit) for view in page.closures]


def _all_closures(tx):
    return closures(tx, state=None, after=b"", limit=100).closures


def test_a_fault_at_any_statement_leaves_what_one_more_run_completes():
    counting = FaultyDatabase(fresh())
    whole = replay(STORY, counting)
    for step in range(1, counting.steps + 1):
        db = fresh()
        try:
            replay(STORY, FaultyDatabase(db, fail_at=step))
        except InjectedFault:
            output = replay(STORY, db)
            assert _facts(output) == _facts(whole), f"after a fault at step {step}"
        db.close()


def test_migrations_make_the_same_tables_on_both(postgres_url: str):
    columns = []
    for db in (fresh(), open_database(postgres_url)):
        migrate(db, PACKAGES)
        tables = [
            "att_status",
            "att_past",
            "att_gap",
            "att_log",
            "att_closure",
            "att_billable",
            "att_opportunity",
            "att_placement",
            "att_drop",
            "att_reject",
            "att_app_key",
            "att_mark",
            "att_locator",
            "att_decision",
        ]
        columns.append(db.read(lambda tx, tables=tables: {name: dict(tx.column_types(name)) for name in tables}))
        db.close()
    assert columns[0]["att_closure"].pop("number") == "int"  # SQLite alone finds closures by number
    assert columns[0] == columns[1]


def _bytes(output: ReplayOutput) -> bytes:
    return msgspec.json.encode(output)


def _facts(output: ReplayOutput) -> object:
    """What must not change when work is done again: all but the audits that say it came again."""
    dropped = {"f_dedup_committed_duplicate", "f_dedup_inflight_duplicate"}
    audits = [{**a, "count": 1} for a in output.audits if a["decisionReasonCode"] not in dropped]
    records = [r for r in output.records if r["decisionReasonCode"] not in dropped]
    return output.billable, output.attribution, audits, records, output.closures
