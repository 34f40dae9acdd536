"""Smaller flaws that were found by use: each is held by a test of its own."""

import json
from typing import Any

import pytest

from patra.app.components.ingest import alert_thresholds_of, healing_of, options_of
from patra.app.configuration.engine_settings import AlertSettings, HealingSettings, IngestSettings
from patra.app.configuration.settings import Settings
from patra.ingest.execution.executor import DEAD_TASK_SCAN_INTERVAL
from patra.ingest.execution.run_to_completion import Drain
from patra.ingest.fetching import metrics
from patra.ingest.landing import batch_commit
from patra.ingest.operations import quarantine
from patra.ingest.planning.limits import back_pressure
from patra.ingest.planning.trigger import Trigger
from patra.ingest.vocabulary.codes import Operation
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel import telemetry
from patra.kernel.clock import DAY, MINUTE, SECOND, format_instant
from patra.kernel.db import Database
from tests.contract.ingest.running.test_credentials_at_the_gate import keyed
from tests.contract.ingest.running.world import T0, T1, pack, world
from tests.support.hostile_provider import Reply, crowded

SPREAD = crowded(100, T0, T1, crowd=False)
TRIGGER = Trigger(source="hostile", endpoint="search", operation=Operation.HARVEST, since=T0, until=T1)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_process_without_the_key_is_refused_before_anything_is_planned(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOSTILE_KEY", raising=False)
    with world(database, SPREAD) as w:
        w.load(keyed(w.url))
        done = Drain(w.db, w.services, options=w.options).run(TRIGGER, lambda _: None)
        assert done.refused
        assert done.planned.outcome is Reason.SECRET_ABSENT
        assert "env:HOSTILE_KEY" in str(done.planned.problems[0])
        assert w.one("SELECT count(*) FROM ing_plan") == 0
        assert w.one("SELECT count(*) FROM ing_schedule_instance") == 0
        assert w.one("SELECT count(*) FROM ing_halt") == 0
        monkeypatch.setenv("HOSTILE_KEY", "s3cr3t-k3y-value")
        assert not Drain(w.db, w.services, options=w.options).run(TRIGGER, lambda _: None).left
        assert w.landed() == w.provider.truth


def test_the_latest_observed_value_is_right_after_every_batch(database: Database) -> None:
    with world(database, SPREAD) as w:
        w.load(pack(w.url, "OFFSET", window={"maxWindow": "P2D"}))
        w.trigger(until=T0 + DAY)
        seen: list[tuple[Any, Any]] = []
        land = batch_commit.land

        def landed(tx: Any, commit: Any) -> Any:
            done = land(tx, commit)
            newest = tx.fetch_one(_sql("SELECT max(updated_at) FROM ing_record"))[0]
            row = tx.fetch_one(_sql("SELECT observed_max_value FROM ing_cursor"))
            seen.append((row and row[0], format_instant(newest)))
            return done

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(batch_commit, "land", landed)
            w.drain()
            first = [one for one in seen if one[0] is not None]
            w.trigger(since=None, until=T1)
            w.drain()
        assert first
        assert len(seen) > len(first) + 1
        assert [row for row, _ in seen if row is not None] == [newest for row, newest in seen if row is not None]


def _sql(text: str) -> Any:
    from patra.kernel.db.queries import statement

    return statement("test", text)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_rule_of_the_pack_may_ask_for_the_window_to_be_cut_in_two(database: Database) -> None:
    busy = {"status": [400], "pattern": "too many", "outcome": "BISECT"}
    with world(database, SPREAD) as w:
        w.load(pack(w.url, "TOKEN", errors={"busy": busy}, window={"maxWindow": "P2D"}))
        w.trigger()
        serve = w.provider._served
        refused: list[str] = []

        def served(*args: Any) -> Reply:
            if not refused:
                refused.append("once")
                return Reply(status=400, body=b"too many records match", kind="text/plain")
            return serve(*args)

        w.provider._served = served  # type: ignore[method-assign]
        w.drain()
        assert w.landed() == w.provider.truth
        assert w.one("SELECT count(*) FROM ing_task WHERE status_code = 'PARTIAL'") == 1
        assert w.one("SELECT count(*) FROM ing_plan_slice WHERE parent_slice_id IS NOT NULL") == 2


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_the_last_page_asks_for_no_more_than_the_provider_pages(database: Database) -> None:
    with world(database, SPREAD) as w:
        tree = pack(w.url, "OFFSET", limits={"maxDepth": 110}, window={"maxWindow": "P2D"})
        w.load(tree)
        asked: list[tuple[int, int]] = []
        serve = w.provider._served

        def served(method: str, path: str, query: Any, *rest: Any) -> Reply:
            asked.append((int(query["offset"]), int(query["size"])))
            return serve(method, path, query, *rest)

        w.provider._served = served  # type: ignore[method-assign]
        w.trigger()
        w.drain()
        assert w.landed() == w.provider.truth
        assert max(offset + size for offset, size in asked) <= 110
        assert (100, 10) in asked


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_run_stats_name_the_errors_of_their_batches(database: Database) -> None:
    with world(database, SPREAD) as w:
        w.load(pack(w.url, "OFFSET", output={"fields": {"title": {"path": "$.title", "enum": ["none such"]}}}))
        w.trigger()
        w.drain()
        stats = [json.loads(row[0]) for row in w.rows("SELECT stats FROM ing_task_run")]
        found = [error for one in stats for error in one["errors"]]
        assert {(one["code"], one["level"]) for one in found} == {("i_field_invalid", "L3")}
        assert sum(one["count"] for one in found) == len(SPREAD)
        assert "is not one of none such" in found[0]["detail"]


def test_the_quarantine_counts_rows_and_a_dismissed_one_stays_so(database: Database) -> None:
    with world(database, SPREAD) as w:
        broken = {"fields": {"title": {"path": "$.title", "enum": ["none such"]}}}
        w.load(pack(w.url, "OFFSET", output=broken, ordering={"rereadLastPage": True}))
        w.trigger()
        w.drain()
        rows = w.one("SELECT count(*) FROM ing_quarantine")
        stats = [json.loads(row[0]) for row in w.rows("SELECT stats FROM ing_task_run")]
        assert rows == len(SPREAD)
        assert w.one("SELECT max(seen_count) FROM ing_quarantine") > 1
        assert sum(one["failed"] for one in stats) == rows
        assert w.one("SELECT sum(quarantined) FROM ing_window_ledger WHERE leg_code = 'LIST'") == rows

        key = w.one("SELECT min(item_key) FROM ing_quarantine")
        now = w.clock.now()
        act = w.db.run(lambda tx: quarantine.dismiss(tx, "hostile", "search", [key], why="known", now=now))
        assert (act.act, act.changed) == ("ingest.dismiss", 1)
        assert w.db.run(lambda tx: quarantine.dismiss(tx, "hostile", "search", [key], why="", now=now)).changed == 0
        w.trigger(operation=Operation.BACKFILL, activity="again")
        w.drain()
        states = dict(w.rows("SELECT status_code, count(*) FROM ing_quarantine GROUP BY status_code"))
        assert states == {"OPEN": rows - 1, "DISMISSED": 1}
        changed = w.provider.truth[key]
        w.run("UPDATE ing_quarantine SET sample_hash = 'other' WHERE item_key = :key", key=key)
        w.trigger(operation=Operation.BACKFILL, activity="changed", since=changed - 1, until=changed + DAY)
        w.drain()
        assert w.one("SELECT status_code FROM ing_quarantine WHERE item_key = :key", key=key) == "OPEN"


def counted(name: str) -> float:
    return sum(
        float(line.rsplit(" ", 1)[1])
        for line in telemetry.metrics_text().decode().splitlines()
        if line.startswith(name)
    )


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_cursor_advances_and_repeated_batches_are_counted_as_such(database: Database) -> None:
    with world(database, SPREAD) as w:
        w.load(pack(w.url, "OFFSET", pagination={"pageSize": 10}))
        before = counted("patra_ingest_cursor_advance_events_total")
        w.trigger()
        w.drain()
        moves = w.one("SELECT count(*) FROM ing_cursor_event WHERE reason_code = 'i_advanced'")
        assert counted("patra_ingest_cursor_advance_events_total") - before == moves
        assert w.one("SELECT count(*) FROM ing_cursor_event") > moves
        hits = metrics.IDEMPOTENCY_HITS.labels(source="hostile", endpoint="search", op="HARVEST")._value.get()
        w.trigger(operation=Operation.BACKFILL, activity="again")
        land = batch_commit.land
        with pytest.MonkeyPatch.context() as patched:  # the outcome of a commit is not known: it is done twice
            patched.setattr(batch_commit, "land", lambda tx, commit: (land(tx, commit), land(tx, commit))[1])
            w.executor.run_once()
        later = metrics.IDEMPOTENCY_HITS.labels(source="hostile", endpoint="search", op="BACKFILL")._value.get()
        assert hits == 0
        assert later > 0


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_what_a_killed_executor_worked_on_is_free_after_the_lease_of_thirty_seconds(database: Database) -> None:
    ttl = options_of(Settings(), database).ttl
    assert ttl == 30 * SECOND
    assert options_of(Settings(ingest=IngestSettings(lease_seconds=7)), database).ttl == 7 * SECOND

    class Killed(BaseException):
        pass

    with world(database, SPREAD, ttl=ttl) as w:
        w.load(pack(w.url, "OFFSET", window={"maxWindow": "P2D"}))
        w.trigger()
        serve, keeper, held = w.provider._served, w.executor._shared.keeper, list[bool]()

        def served(*args: Any) -> Reply:
            held.append(bool(keeper._held))
            return serve(*args)

        w.provider._served = served  # type: ignore[method-assign]
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(batch_commit, "land", lambda *_: (_ for _ in ()).throw(Killed()))
            with pytest.raises(Killed):
                w.executor.run_once()
        assert held == [True]  # its lease is renewed while it waits for an answer
        other = w.new_executor()
        w.clock.advance(ttl - SECOND)
        assert other.run_once().tasks == 0
        w.clock.advance(2 * SECOND + DEAD_TASK_SCAN_INTERVAL)
        assert other.run_once().succeeded == 1
        assert w.landed() == w.provider.truth


def test_the_safety_lag_grows_while_a_partition_is_under_pressure(database: Database) -> None:
    with world(database, SPREAD) as w:
        w.load(pack(w.url, "OFFSET"))

        def window_end() -> int:
            preview = w.planner.preview(Trigger(source="hostile", endpoint="search", operation=Operation.HARVEST))
            assert preview.window is not None
            return preview.window.end

        calm = window_end()
        ends = []
        for _ in range(6):
            w.db.run(lambda tx: back_pressure.add(tx, "hostile/search/HARVEST", "i_concurrency_down", w.clock.now()))
            ends.append((calm - window_end()) // MINUTE)
        assert ends == [10, 20, 30, 40, 40, 40]  # the pack's lag is ten minutes
        w.clock.advance(10 * MINUTE)
        assert window_end() == calm + 10 * MINUTE
        w.db.run(lambda tx: back_pressure.add(tx, "hostile/search/HARVEST", "i_concurrency_down", w.clock.now()))
        assert window_end() == calm


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_throttled_partition_tells_the_planner(database: Database) -> None:
    with world(database, SPREAD) as w:
        w.load(pack(w.url, "OFFSET", errors={"slow": {"status": [403], "outcome": "L1"}}, pagination={"pageSize": 5}))
        serve, asked = w.provider._served, list[int]()

        def served(*args: Any) -> Reply:
            asked.append(1)
            if len(asked) == 1:
                return Reply(status=403, body=b"{}", kind="application/json", headers={"Retry-After": "1"})
            return serve(*args)

        w.provider._served = served  # type: ignore[method-assign]
        w.trigger()
        w.drain()
        assert w.rows("SELECT partition_key, level, reason_code FROM ing_pressure") == [
            ("hostile/search/HARVEST", 1, "i_qps_downshift")
        ]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_thresholds_come_from_the_settings(database: Database) -> None:
    said = Settings(
        healing=HealingSettings(slow_database_ms=90, throttled_percent=2.5, circuit_seconds=5),
        alerts=AlertSettings(errors_percent=1, budget_percent=20, plan_idle_seconds=60),
    )
    healing, alerts = healing_of(said), alert_thresholds_of(said)
    assert (healing.database, healing.throttled, healing.circuit) == (90_000, 25, 5 * SECOND)
    assert (alerts.errors, alerts.budget, alerts.plan_idle) == (10, 200, MINUTE)
    assert healing_of(Settings()) == type(healing)()
    assert alert_thresholds_of(Settings()) == type(alerts)()
