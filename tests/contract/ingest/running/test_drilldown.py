"""The windows of a source on an axis of time: one by one while they can be drawn, then grouped, and always bounded."""

from typing import Any

from patra.ingest.operations.reads import drilldown
from patra.kernel.clock import HOUR
from patra.kernel.db import Database, Tx, migrate
from patra.kernel.db.queries import statement

T0 = 1_770_000_000_000_000


def _task(number: int, status: str, namespace: str = "n") -> dict[str, Any]:
    return {
        "task_id": f"p.t{number:06}",
        "schedule_instance_id": "i",
        "plan_id": "p",
        "slice_id": f"s{number}",
        "provenance_code": "source",
        "endpoint_name": "e",
        "operation_code": "HARVEST",
        "partition_key": "source/e/HARVEST",
        "params": "",
        "expr_hash": "",
        "idempotent_key": f"k{number}",
        "status_code": status,
        "priority": 1,
        "scheduled_at": T0,
        "namespace_key": namespace,
        "window_from": T0 + number * HOUR,
        "window_to": T0 + (number + 1) * HOUR,
        "created_at": T0,
        "updated_at": T0,
    }


def _plan(number: int, namespace: str) -> dict[str, Any]:
    empty = dict.fromkeys(("expr_proto_hash", "expr_proto_snapshot", "record_remarks"), "")
    return empty | {
        "plan_id": f"p{number}",
        "schedule_instance_id": "i",
        "provenance_code": "source",
        "endpoint_name": "e",
        "operation_code": "HARVEST",
        "plan_strategy": "TIME",
        "window_from": T0,
        "window_to": T0 + HOUR,
        "namespace_scope_code": "EXPR",
        "namespace_key": namespace,
        "priority": 1,
        "spec_fingerprint": "f",
        "status_code": "READY",
        "created_at": T0 + number,
        "updated_at": T0,
    }


def _filled(database: Database, states: dict[int, str], count: int) -> None:
    migrate(database, ["patra.kernel", "patra.ingest"])

    def fill(tx: Tx) -> None:
        tx.insert("ing_plan", [_plan(1, "n")])
        tx.insert("ing_task", [_task(number, states.get(number, "SUCCEEDED")) for number in range(count)])

    database.run(fill)


def test_windows_are_drawn_one_by_one_while_they_are_few(database: Database) -> None:
    _filled(database, {3: "FAILED"}, drilldown.MAX_WINDOWS)
    [series] = database.read(lambda tx: drilldown.windows(tx, "source", T0, T0 + 1000 * HOUR))
    assert (len(series.windows), series.more) == (drilldown.MAX_WINDOWS, False)
    assert [row["task_id"] for row in series.windows if row["status_code"] == "FAILED"] == ["p.t000003"]
    assert "counts" not in series.windows[0]


def test_a_span_of_the_past_shows_a_wide_window_and_does_not_walk_the_later_ones(database: Database) -> None:
    _filled(database, {}, 50)
    wide = _task(50, "FAILED") | {"window_from": T0 + 2 * HOUR, "window_to": T0 + 30 * HOUR}
    database.run(lambda tx: tx.insert("ing_task", [wide]))
    [series] = database.read(lambda tx: drilldown.windows(tx, "source", T0, T0 + 3 * HOUR))
    assert [row["task_id"] for row in series.windows] == ["p.t000000", "p.t000001", "p.t000002", "p.t000050"]
    text = drilldown.Q["drill_windows"].text[database.dialect]
    explained = statement("explained", f"EXPLAIN {'QUERY PLAN ' if database.dialect == 'sqlite' else ''}{text}")
    asked = {"namespace": "n", "source": "source", "operation": "HARVEST", "limit": 9}
    bounds = {"since": T0, "until": T0 + 3 * HOUR, "beyond": T0 + 31 * HOUR}
    plan = str(database.read(lambda tx: tx.fetch(explained, asked | bounds)))
    assert "window_to<?" in plan or "window_to < " in plan, plan


def test_too_many_windows_are_grouped_none_is_left_out_and_the_worst_is_seen(database: Database) -> None:
    count = drilldown.MAX_WINDOWS + 200
    _filled(database, {3: "PARTIAL", 301: "FAILED", count - 1: "QUEUED"}, count)
    [series] = database.read(lambda tx: drilldown.windows(tx, "source", T0 + HOUR // 2, T0 + count * HOUR))
    assert len(series.windows) <= drilldown.BUCKETS + 1
    assert sum(sum(row["counts"].values()) for row in series.windows) == count
    assert not series.more
    seen = {row["status_code"]: row["task_id"] for row in series.windows if row["status_code"] != "SUCCEEDED"}
    assert seen == {"PARTIAL": "p.t000003", "FAILED": "p.t000301", "QUEUED": f"p.t{count - 1:06}"}
    spans = [(row["window_from"], row["window_to"]) for row in series.windows]
    assert spans == sorted(spans)
    assert (spans[0][0], spans[-1][1]) == (T0, T0 + count * HOUR)


def test_of_windows_beyond_every_bound_the_latest_are_shown(database: Database, monkeypatch: Any) -> None:
    monkeypatch.setattr(drilldown, "MAX_BUCKETED_WINDOWS", 50)
    count = drilldown.MAX_WINDOWS + 1
    _filled(database, {}, count)
    [series] = database.read(lambda tx: drilldown.windows(tx, "source", T0, T0 + count * HOUR))
    assert series.more
    assert sum(row["counts"]["SUCCEEDED"] for row in series.windows) == 50
    assert series.windows[-1]["window_to"] == T0 + count * HOUR


def test_namespaces_are_those_of_the_newest_plans(database: Database, monkeypatch: Any) -> None:
    monkeypatch.setattr(drilldown, "MAX_PLANS", 3)
    _filled(database, {}, 1)
    database.run(lambda tx: tx.insert("ing_plan", [_plan(number, f"n{number % 2}") for number in range(2, 7)]))
    found = database.read(lambda tx: drilldown.windows(tx, "source", T0, T0 + HOUR))
    assert [series.namespace for series in found] == ["n0", "n1"]
