"""The same log gives the same bytes on every database, and a fault at any step changes nothing (A3, §3.8.30.3)."""

import msgspec
import pytest

from patra.attribution.queries import closures
from patra.attribution.replay import ReplayOutput, replay
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
    found: list[str] = []
    after = b""
    while page := database.read(lambda tx, after=after: closures(tx, state="open", after=after, limit=3)):
        found += [view.closureKey for _, view in page]
        after = page[-1][0]
    assert sorted(found) == [f"ref|ra{n}" for n in (0, 2, 3, 5)]


def test_failed_closures_are_listed_page_by_page_without_those_that_are_open_or_succeeded_later(database: Database):
    migrate(database, PACKAGES)
    failed = [event("error", f"e{n}", errorClass="terminal", renderAttemptId=f"ra{n}") for n in range(6)]
    waiting = event("ad_filled", "f6", renderAttemptId="ra6")
    shown = [event("impression", f"i{n}", renderAttemptId=f"ra{n}") for n in (1, 4, 7)]
    replay([sent(0, *failed, waiting), sent(1, *shown)], database)
    found: list[str] = []
    after = b""
    while page := database.read(lambda tx, after=after: closures(tx, state="closed_failure", after=after, limit=3)):
        found += [view.closureKey for _, view in page]
        after = page[-1][0]
    stays = {view.closureKey: view.state for _, view in database.read(_all_closures)}
    assert sorted(found) == [key for key, state in sorted(stays.items()) if state == "closed_failure"]
    assert len(found) >= 4


def _all_closures(tx):
    return closures(tx, state=None, after=b"", limit=100)


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
