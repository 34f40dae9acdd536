"""A week of nights: three schedules, one outage and one pause; the exported file is right every morning."""

import itertools
from pathlib import Path
from typing import Any

import duckdb

from patra.app.configuration.engine_settings import IngestSettings
from patra.app.configuration.settings import Settings
from patra.ingest.operations.reads import views
from patra.ingest.planning import operations, own_schedules
from patra.ingest.planning.schedule import ScheduledExport
from patra.kernel.clock import DAY, HOUR, MINUTE
from patra.kernel.db import open_database
from patra.kernel.testing import ManualClock
from tests.contract.app.test_ingest_wiring import Process
from tests.contract.ingest.running.world import T0, World, pack, world
from tests.support.hostile_provider import Habits, crowded

ITEMS = crowded(84, T0, T0 + 7 * DAY, crowd=False)
OUTAGE, PAUSE = 2, 4
HOURS = (0, 3, 4, 5, 6, 12)
"""The hours of a day at which the loops run; nothing is due at the others."""


def a_week_of_schedules(w: World, out: Path) -> None:
    tree = pack(
        w.url,
        "OFFSET",
        update={"staleAfter": "P2D", "rounds": 1},
        output={"shape": "work", "fields": {"title": "$.title"}},
        retry={"policy": "none"},
        window={"maxWindow": "P2D", "minWindow": "PT1M", "initial": "2026-03-01T00:00:00Z"},
    )
    tree["endpoints"]["details"]["output"] = {"shape": "work", "fields": {"title": "$.title"}}
    tree["schedules"] = {
        "again": {"endpoint": "search", "operation": "BACKFILL", "cron": "0 4 * * *", "last": "P2D", "reread": True},
        "refresh": {"endpoint": "search", "operation": "UPDATE", "cron": "0 5 * * *"},
    }
    w.load(tree)
    said: dict[str, Any] = {
        "endpoint": "search",
        "operation": "HARVEST",
        "cron": "0 4 * * *",
        "timezone": "Europe/Rome",
    }
    then = ScheduledExport(what="works", out=str(out), dedupe=True)
    entry = own_schedules.schedule_of("hostile/nightly", said, then)
    w.db.run(lambda tx: own_schedules.add(tx, entry, by="librarian", now=w.clock.now()))


def ids_in(out: Path) -> set[str]:
    with duckdb.connect(str(out), read_only=True) as file:
        return {row[0] for row in file.execute("SELECT unnest(seen).id FROM works").fetchall()}


def test_seven_nights(tmp_path: Path) -> None:
    db = open_database(f"sqlite:///{tmp_path / 'patra.db'}", synchronous="OFF")
    out = tmp_path / "library.duckdb"
    with world(db, ITEMS, clock=ManualClock(T0)) as w:
        a_week_of_schedules(w, out)
        process = Process(w, Settings(ingest=IngestSettings(executors=1)))
        holds: dict[int, set[str]] = {}
        for day, of_day in itertools.product(range(7), HOURS):
            w.clock.set(T0 + day * DAY + of_day * HOUR)
            if of_day == 0:
                w.provider.habits = Habits(fails=1000) if day == OUTAGE else Habits()
            if (day, of_day) == (PAUSE, 0):
                db.run(lambda tx: operations.pause(tx, "hostile", "", by="librarian", why="", now=w.clock.now()))
            if (day, of_day) == (PAUSE + 1, 12):
                db.run(lambda tx: operations.resume(tx, "hostile", ""))
            for name in ("ingest.planner", "ingest.executor.1", "ingest.planner", "ingest.exports"):
                process.turns(name)
            if of_day == 6:
                holds[day] = ids_in(out)
        assert holds == {day: expected(day) for day in range(7)}
        assert any(one.status >= 500 for one in w.provider.asked), "the outage was felt"
        ticks = db.read(lambda tx: views.schedule_history(tx, "hostile/nightly", 99))
        others = {
            name: [
                (one["tick"][8:13], one["outcome"])
                for one in reversed(db.read(lambda tx, n=name: views.schedule_history(tx, f"hostile/{n}", 99)))
            ]
            for name in ("again", "refresh")
        }
        reread = {item.id for item in ITEMS if item.updated < T0 + 2 * DAY}
        checked = {
            one for (one,) in w.rows("SELECT provider_id FROM ing_record WHERE refresh_checked_at > first_seen_at")
        }
    assert [(one["tick"][8:13], one["then"]) for one in reversed(ticks)] == [
        ("28T03", "DONE"),  # it was added at midnight and fired for its latest tick at once
        ("01T03", "DONE"),
        ("02T03", "DONE"),
        ("03T03", "DONE"),
        ("04T03", "DONE"),
        ("06T03", "DONE"),
        ("07T03", "DONE"),
    ]
    days = ["28", "01", "02", "03", "04", "06", "07"]
    assert others["again"] == [(f"{day}T04", "i_planned") for day in days]  # wherever the watermark stands
    assert [tick for tick, _ in others["refresh"]] == [f"{day}T05" for day in days]
    assert {"i_planned", "i_no_candidates"} == {outcome for _, outcome in others["refresh"]}
    assert reread <= checked
    db.close()


def expected(day: int) -> set[str]:
    """What was there at 02:50 of the night, or of the last one before an outage or a pause."""
    night = {OUTAGE: OUTAGE - 1, PAUSE: PAUSE - 1, PAUSE + 1: PAUSE - 1}.get(day, day)
    until = T0 + night * DAY + 3 * HOUR - 10 * MINUTE
    return {item.id for item in ITEMS if item.updated < until}
