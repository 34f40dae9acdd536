"""The read side: the same set over HTTP and on the command line, paged by key, every page by an index (ch. 14.7, 13.6)."""

import re
from importlib.resources import files
from typing import Any

import click
import pytest

from patra.cli.ingest.group import group
from patra.cli.ingest.operations import OUTCOMES
from patra.ingest.landing import store as landing_store
from patra.ingest.landing import window_ledger
from patra.ingest.operations.coverage import coverage
from patra.ingest.operations.reads import views
from patra.ingest.operations.reads.listing import page
from patra.ingest.operations.reads.read_models import READ_MODELS, error_top, listing_of, read_list
from patra.ingest.planning import store
from patra.ingest.planning.operations import pause
from patra.ingest.vocabulary.codes import Operation
from patra.kernel.clock import DAY, HOUR
from patra.kernel.db import Database, Statement
from patra.kernel.db.queries import statement
from patra.kernel.errors import Invalid
from patra.web.api import ingest
from tests.contract.ingest.running.world import T0, T1, World, explain_listing, pack, world
from tests.support.hostile_provider import crowded

SMALL = crowded(120, T0, T1, crowd=False)
OTHER_NAMES = {
    "plans/{plan}": "lineage",
    "errors/top": "top-errors",
    "sources/{source}/pack": "pack show",
    "sources/{source}/trial": "pack trial",
    "sources/{source}/specs/{endpoint}": "spec show",
    "history": "history list",
    "preview": "plan",
    "requeue/preview": "requeue",
    "tasks/{task}": "show",
    "runs/{run}": "show",
    "runs/{run}/batches/{batch}": "show",
}
"""Reads that are called otherwise on the command line."""
PAGING = {"limit", "after"}
ONLY_THERE = {"spec show": {"all"}, "pack show": {"version", "versions"}, "coverage": {"out", "pdf"}}


def http_reads() -> dict[str, set[str]]:
    """Parameters by read, as the command line would call it."""
    found: dict[str, set[str]] = {}
    for route in ingest.routes(None):  # type: ignore[arg-type]
        if route.method == "GET":
            path = route.path.removeprefix("/ingest/")
            query = set(route.query.__struct_fields__) if route.query is not None else set()
            found[OTHER_NAMES.get(path, path)] = query
    return found


def command(name: str) -> click.Command | None:
    found: Any = group
    for part in name.split(" "):
        found = found.get_command(click.Context(found), part)
        if found is None:
            return None
    return found


def test_what_http_reads_the_command_line_reads_with_the_same_filters() -> None:
    for name, query in http_reads().items():
        found = command(name)
        assert found is not None, f"GET /ingest/{name} has no command"
        options = {option.removeprefix("--") for one in found.params for option in one.opts}
        options |= {str(one.name).removesuffix("_id") for one in found.params}
        assert query - options - ({"source"} if name in {"coverage", "windows"} else set()) <= set(), (
            name,
            query - options,
        )


def test_what_operators_do_on_the_command_line_they_do_over_http() -> None:
    """`tests/contract/app/test_acts_of_both_interfaces.py` compares the commands of all engines."""
    assert set(OUTCOMES) <= {route.act for route in ingest.routes(None)}  # type: ignore[arg-type]


def test_what_the_command_line_lists_http_lists_with_the_same_filters() -> None:
    reads = http_reads()
    for name in READ_MODELS:
        filters = set(READ_MODELS[name].listing.filters) | PAGING
        assert name in reads
        assert reads[name] == filters, name
    wanted = {"queue", "lineage", "cursor-timeline", "top-errors", "runs", "batches", "quarantine", "cursors"}
    wanted |= {"coverage", "alerts", "schedules", "signals", "spec show", "packs", "pack show", "sources", "errors"}
    assert wanted <= set(reads)
    acts = {route.path for route in ingest.routes(None) if route.method == "POST"}  # type: ignore[arg-type]
    assert {"/ingest/packs", "/ingest/packs/diff"} <= acts


@pytest.fixture
def filled(database: Database):
    with world(database, SMALL) as w:
        broken = {"fields": {"title": {"path": "$.title", "enum": ["none such"]}}}
        w.load(pack(w.url, "OFFSET", pagination={"pageSize": 5}, window={"maxWindow": "PT6H"}))
        w.trigger()
        w.drain()
        w.load(pack(w.url, "OFFSET", output=broken))
        w.trigger(operation=Operation.BACKFILL, activity="broken", until=T0 + HOUR * 12)
        w.drain()
        yield w


def every_page(w: World, name: str, limit: int, **wanted: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    after: str | None = ""
    while after is not None:
        found = w.db.read(lambda tx, a=after: read_list(tx, name, wanted, limit=limit, after=a))
        assert len(found.rows) <= limit
        assert found.rows or found.next is None
        rows += found.rows
        after = found.next
    return rows


def test_pages_of_every_list_together_are_the_list(filled: World) -> None:
    w = filled
    namespace = w.one("SELECT namespace_key FROM ing_cursor WHERE operation_code = 'HARVEST'")
    plan = w.one("SELECT min(plan_id) FROM ing_plan")
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("plans", {}, "ing_plan"),
        ("plans", {"source": "hostile", "operation": "HARVEST"}, "ing_plan WHERE operation_code = 'HARVEST'"),
        ("tasks", {}, "ing_task"),
        ("tasks", {"plan": plan}, f"ing_task WHERE plan_id = '{plan}'"),
        ("tasks", {"source": "hostile", "status": "SUCCEEDED"}, "ing_task WHERE status_code = 'SUCCEEDED'"),
        ("tasks", {"operation": "BACKFILL"}, "ing_task WHERE operation_code = 'BACKFILL'"),
        ("tasks", {"status": "FAILED"}, "ing_task WHERE status_code = 'FAILED'"),
        ("runs", {}, "ing_task_run"),
        ("runs", {"source": "hostile"}, "ing_task_run"),
        ("runs", {"plan": plan}, f"ing_task_run WHERE plan_id = '{plan}'"),
        ("batches", {}, "ing_task_run_batch"),
        ("batches", {"plan": plan}, f"ing_task_run_batch WHERE plan_id = '{plan}'"),
        ("quarantine", {}, "ing_quarantine"),
        ("quarantine", {"source": "hostile", "status": "OPEN"}, "ing_quarantine"),
        ("cursors", {"source": "hostile"}, "ing_cursor"),
        (
            "cursor-timeline",
            {"source": "hostile", "operation": "HARVEST", "namespace": namespace},
            "ing_cursor_event WHERE operation_code = 'HARVEST'",
        ),
        ("signals", {}, "ing_signal WHERE plan_id IS NULL"),
    ]
    for name, wanted, where in cases:
        found = every_page(w, name, 3, **wanted)
        key = [tuple(row[column] for column in READ_MODELS[name].listing.order) for row in found]
        assert len(set(key)) == len(key) == w.one(f"SELECT count(*) FROM {where}"), (name, wanted)
        assert found == every_page(w, name, 1000, **wanted)
    assert every_page(w, "tasks", 3, source="another") == []


def test_refused_triggers_are_those_that_could_not_be_planned(filled: World) -> None:
    """What was planned, found nothing to do or was missed is not refused; everything else is, and is paged."""
    w = filled
    assert every_page(w, "refused", 3) == []
    for params in ({"colour": "red"}, {"colour": "blue"}, {"size": "9"}):
        w.clock.advance(1)
        assert w.trigger(params=params).outcome == "i_compile_failed"
    w.clock.advance(1)
    assert w.trigger(activity="harvests have none").outcome == "i_option_unused"
    assert w.trigger().outcome == "i_window_covered"
    assert w.trigger(since=w.clock.now(), until=None).outcome == "i_window_empty"
    assert w.trigger(operation=Operation.UPDATE, since=None, until=None, ids=("r000001",)).outcome == "i_planned"
    w.db.run(lambda tx: pause(tx, "hostile", "", by="me", why="a rest", now=w.clock.now()))
    w.clock.advance(1)
    assert w.trigger(operation=Operation.BACKFILL, activity="paused").outcome == "i_paused"
    expected = ["i_paused", "i_option_unused", "i_compile_failed", "i_compile_failed", "i_compile_failed"]
    assert [row["outcome_code"] for row in every_page(w, "refused", 2)] == expected
    assert [row["outcome_code"] for row in every_page(w, "refused", 2, operation="BACKFILL")] == ["i_paused"]


def test_places_and_filters_that_are_none_are_refused(filled: World) -> None:
    def ask(name: str, after: str = "", **wanted: Any) -> None:
        filled.db.read(lambda tx: read_list(tx, name, wanted, limit=2, after=after))

    place = filled.db.read(lambda tx: read_list(tx, "tasks", {}, limit=2)).next
    assert place
    for after in ("rubbish", "W10", "bnVsbA", "\x00", place + "AA"):
        with pytest.raises(Invalid, match="is not a place in this list"):
            ask("tasks", after)
    with pytest.raises(Invalid, match="is not a place in this list"):
        ask("tasks", place, source="hostile")  # of another order
    with pytest.raises(Invalid, match="cannot be filtered by colour"):
        ask("tasks", colour="red")


def test_the_queue_is_counted_without_reading_it(filled: World) -> None:
    w = filled
    w.trigger(operation=Operation.BACKFILL, activity="waits", until=T0 + DAY)

    def counted() -> dict[tuple[str, ...], int]:
        rows = w.db.read(views.queue)
        return {(one.source, one.endpoint, one.operation, one.status): one.tasks for one in rows}

    def truth() -> dict[tuple[str, ...], int]:
        rows = w.rows(
            "SELECT provenance_code, endpoint_name, operation_code, status_code, count(*) FROM ing_task GROUP BY 1,2,3,4"
        )
        return {tuple(row[:4]): row[4] for row in rows}

    assert counted() == truth()
    waiting = [one for one in w.db.read(lambda tx: views.queue(tx, "hostile", "BACKFILL")) if one.status == "QUEUED"]
    assert [one.earliest for one in waiting] != [None]
    assert w.db.read(lambda tx: views.queue(tx, "another")) == []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(store, "TASK_COUNT_CHANGES", 1)
        store.fold_task_counts(w.db)
    assert w.one("SELECT count(*) FROM ing_task_count_change") == 0
    w.drain()
    assert counted() == truth()
    w.run("DELETE FROM ing_task WHERE status_code = 'SUCCEEDED'")
    assert counted() == truth()


def test_the_lineage_goes_down_to_the_batch(filled: World) -> None:
    plan = filled.one("SELECT min(plan_id) FROM ing_plan WHERE operation_code = 'HARVEST'")
    found = filled.db.read(lambda tx: views.lineage(tx, plan, limit=2))
    assert found.more
    again = filled.db.read(lambda tx: views.lineage(tx, plan, after=found.slices[-1].slice))
    slices = [*found.slices, *again.slices]
    batches = [batch for one in slices for run in one.runs for batch in run["batches"]]
    assert len(batches) == filled.one("SELECT count(*) FROM ing_task_run_batch WHERE plan_id = :p", p=plan)


def test_errors_are_counted_by_what_they_are(filled: World) -> None:
    w = filled
    w.run("UPDATE ing_task_run_batch SET error_level = 'L1', reason_code = 'i_timeout' WHERE batch_no = 1")
    now = w.clock.now()
    top = w.db.read(lambda tx: error_top(tx, {}, since=0, until=now + 1, limit=10))
    assert {(one["operation_code"], one["reason_code"]) for one in top} == {
        ("HARVEST", "i_timeout"), ("BACKFILL", "i_timeout"),
    }  # fmt: skip
    assert sum(one["errors"] for one in top) == w.one("SELECT count(*) FROM ing_task_run_batch WHERE batch_no = 1")
    assert w.db.read(lambda tx: error_top(tx, {"level": "L4"}, since=0, until=now + 1, limit=10)) == []
    assert w.db.read(lambda tx: error_top(tx, {}, since=now + 1, until=now + 2, limit=10)) == []
    assert len(every_page(w, "errors", 2)) == sum(one["errors"] for one in top)


def test_a_page_of_errors_merges_batches_and_runs_in_the_order_of_time(filled: World) -> None:
    """A run that failed without a failed batch is an error, too; they are two tables."""
    w = filled
    w.run("UPDATE ing_task_run_batch SET error_level = 'L1' WHERE batch_no = 1")
    w.run(
        "UPDATE ing_task_run SET status_code = 'FAILED', finished_at = finished_at - 1 WHERE run_id LIKE '%.t000002.%'"
    )
    rows = every_page(w, "errors", 1)
    assert {row["error_level"] for row in rows} == {"L1", None}
    assert [row["error_id"] for row in rows] == [row["error_id"] for row in every_page(w, "errors", 100)]
    assert [row["created_at"] for row in rows] == sorted((row["created_at"] for row in rows), reverse=True)
    assert all(row["batch_no"] for row in rows)


def coverage_sums(w: World) -> None:
    """What is kept is what all windows add up to."""
    for wanted in ({}, {"endpoint": "search"}, {"operation": "BACKFILL"}):
        whole = w.db.read(lambda tx, f=wanted: coverage(tx, "hostile", **f, limit=1000))
        first = w.db.read(lambda tx, f=wanted: coverage(tx, "hostile", **f, limit=1))
        assert (whole.after, first.sum) == ("", whole.sum)
        assert whole.sum.windows


def test_the_sum_of_coverage_is_that_of_its_windows_and_kept_as_they_change(filled: World) -> None:
    w = filled
    coverage_sums(w)
    detail = (
        "SELECT task_id, 'DETAIL', run_id, plan_id, provenance_code, endpoint_name,"
        " operation_code, namespace_key, window_from, window_to, status_code, 'NONE', NULL, NULL, positions, distinct_ids,"
        " 0, 0, 0, inserted + 1, updated, equal_count, older_count, repeated, 0, quarantined + 2, 0, 1, 0, '',"
        " spec_fingerprint, closed_at, 'IDS' FROM ing_window_ledger WHERE leg_code = 'LIST' AND operation_code = 'HARVEST'"
    )
    w.run(f"INSERT INTO ing_window_ledger {detail}")
    landed = w.db.read(lambda tx: coverage(tx, "hostile", limit=1)).sum.landed
    coverage_sums(w)
    # both legs in one statement, as the writer has them; and the first of them from a window that did not add up
    for change in (
        "status_code = 'FAILED', inserted = inserted + 5",
        "status_code = 'COMPLETE', inserted = inserted + 7, promised_last = 9, proof_code = 'NONE'",
        "inserted = inserted + 3, positions = positions + 4, missing = 1, proof_code = 'TOTAL'",
    ):
        w.run(f"UPDATE ing_window_ledger SET {change} WHERE operation_code = 'HARVEST'")
        coverage_sums(w)
    assert w.db.read(lambda tx: coverage(tx, "hostile", limit=1)).sum.landed != landed
    w.run("DELETE FROM ing_window_ledger WHERE leg_code = 'DETAIL' AND task_id LIKE '%1'")
    coverage_sums(w)
    w.run(
        f"INSERT INTO ing_window_ledger {detail} ON CONFLICT (task_id, leg_code)"
        " DO UPDATE SET inserted = excluded.inserted + 1, status_code = 'COMPLETE'"
    )
    coverage_sums(w)
    w.run("DELETE FROM ing_window_ledger WHERE leg_code = 'LIST' AND task_id LIKE '%2'")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(window_ledger, "MAX_SUM_CHANGES", 1)
        before = w.db.read(lambda tx: coverage(tx, "hostile", limit=1)).sum
        window_ledger.fold_window_sums(w.db)
        assert w.db.read(lambda tx: coverage(tx, "hostile", limit=1)).sum == before
    assert w.one("SELECT count(*) FROM ing_window_sum_change") == 0


def test_a_store_that_is_upgraded_begins_with_the_sums_of_its_windows(filled: World) -> None:
    w = filled
    coverage_sums(w)
    w.run("DELETE FROM ing_window_sum_change")
    w.run("DELETE FROM ing_window_sum")
    assert w.db.read(lambda tx: coverage(tx, "hostile", limit=1)).sum.windows == 0
    dialect = ".postgres" if w.db.dialect == "postgres" else ""
    text = (files("patra.ingest") / "sql" / "migrations" / f"0371_window_sums{dialect}.sql").read_text("utf-8")
    for part in re.findall(r"^INSERT INTO [^;]+", text, re.MULTILINE):
        w.run(part)
    coverage_sums(w)


def test_the_sum_of_coverage_reads_no_window_that_adds_up(filled: World) -> None:
    asked = {"source": "hostile", "endpoint": "", "operation": ""}
    lines = plan_of(filled, landing_store.Q["ledger_sum"], asked)
    assert not any("ing_window_ledger" in line for line in lines), lines
    lines = plan_of(filled, landing_store.Q["ledger_open"], asked)
    assert any("idx_ledger_open" in line for line in lines), lines


LARGE = ("ing_task_run_batch", "ing_task_run", "ing_task", "ing_plan", "ing_cursor_event", "ing_quarantine")
CASES: list[tuple[str, dict[str, Any]]] = [
    ("plans", {}),
    ("plans", {"source": "hostile"}),
    ("plans", {"status": "READY"}),
    ("tasks", {}),
    ("tasks", {"plan": "p1"}),
    ("tasks", {"source": "hostile", "status": "QUEUED"}),
    ("tasks", {"status": "QUEUED"}),
    ("runs", {}),
    ("runs", {"task": "p1.t1"}),
    ("runs", {"plan": "p1"}),
    ("runs", {"source": "hostile", "status": "FAILED"}),
    ("runs", {"status": "FAILED"}),
    ("batches", {}),
    ("batches", {"run": "p1.t1.r1"}),
    ("batches", {"task": "p1.t1"}),
    ("batches", {"plan": "p1"}),
    ("errors", {}),
    ("errors", {"source": "hostile"}),
    ("errors", {"endpoint": "search"}),
    ("errors", {"level": "L4"}),
    ("quarantine", {"status": "OPEN"}),
    ("quarantine", {"source": "hostile"}),
    ("cursor-timeline", {"source": "hostile", "operation": "HARVEST", "namespace": "n"}),
    ("cursor-timeline", {"run": "p1.t1.r1"}),
]


def plan_of(w: World, stmt: Statement, params: dict[str, Any]) -> list[str]:
    """The plan of a statement, as the store has it."""
    text = stmt.text[w.db.dialect]
    if w.db.dialect == "sqlite":
        asked = statement("explained", f"EXPLAIN QUERY PLAN {text}")
        return [str(row[3]) for row in w.db.read(lambda tx: tx.fetch(asked, params))]
    off = statement("off", "SELECT set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'on', true)")
    asked = statement("explained", f"EXPLAIN {text}")

    def read(tx: Any) -> list[str]:
        tx.fetch(off)  # a table of a few rows is read as a whole unless it is forbidden
        return [str(row[0]) for row in tx.fetch(asked, params)]

    return w.db.run(read)


def test_every_list_is_read_by_an_index(filled: World) -> None:
    w = filled
    for name, wanted in CASES:
        stmt, params = w.db.read(lambda tx, n=name, f=wanted: explain_listing(tx, listing_of(n, f), f))
        lines = plan_of(w, stmt, params)
        full = [
            line
            for line in lines
            if (line.strip().startswith("SCAN") and "USING" not in line and any(table in line for table in LARGE))
            or "Seq Scan" in line
        ]
        assert not full, (name, wanted, lines)


DONE_TASKS = """INSERT INTO ing_task (task_id, schedule_instance_id, plan_id, slice_id, provenance_code, endpoint_name,
  operation_code, partition_key, params, expr_hash, idempotent_key, status_code, priority, scheduled_at,
  namespace_key, created_at, updated_at)
SELECT 'a' || (10000 + n), 'i', 'p', 'a' || n, 's', 'e', 'HARVEST', 's/e/HARVEST', '', '', 'a' || n,
  CASE WHEN n > 2700 THEN 'QUEUED' ELSE 'SUCCEEDED' END, 1, 1, 'n', 1, 1
FROM generate_series(1, 3000) n"""


def test_a_list_of_one_state_does_not_walk_past_the_others(filled: World) -> None:
    """The rows lie in the order of the primary key, which makes its index tempting for what is sorted by it."""
    if filled.db.dialect == "sqlite":
        return
    for text in (DONE_TASKS, "ANALYZE ing_task"):
        filled.db.run(lambda tx, text=text: tx.script(text))
    for wanted, index in (
        ({"status": "QUEUED"}, "idx_task_status"),
        ({"source": "s", "status": "QUEUED"}, "idx_task_partition"),
        ({"plan": "p", "status": "QUEUED"}, "idx_task_plan"),
    ):
        stmt, params = filled.db.read(lambda tx, f=wanted: explain_listing(tx, READ_MODELS["tasks"].listing, f))
        lines = plan_of(filled, stmt, params)
        assert any(f"using {index} " in line for line in lines), lines
        assert not any(word in line for line in lines for word in ("Sort", "ing_task_pkey")), lines


DONE_RUNS = """INSERT INTO ing_task_run (run_id, task_id, schedule_instance_id, plan_id, slice_id, provenance_code,
  endpoint_name, operation_code, attempt_no, status_code, lease_owner, lease_fence, checkpoint, stats, started_at,
  finished_at, updated_at)
SELECT 'a' || (10000 + n), 'a' || n, 'i', 'p', 'a' || n, 's', CASE WHEN n > 2990 THEN 'rare' ELSE 'e' END, 'HARVEST', 1,
  'FAILED', 'x', 1, '', '{}', n, n, 1 FROM generate_series(1, 3000) n"""
RARE_TASK = """INSERT INTO ing_task (task_id, schedule_instance_id, plan_id, slice_id, provenance_code, endpoint_name,
  operation_code, partition_key, params, expr_hash, idempotent_key, status_code, priority, scheduled_at,
  namespace_key, created_at, updated_at)
VALUES ('rare', 'i', 'p', 'rare', 's', 'rare', 'HARVEST', 's/rare/HARVEST', '', '', 'rare', 'SUCCEEDED', 1, 1, 'n', 1, 1)"""
DONE_BATCHES = """INSERT INTO ing_task_run_batch (batch_id, run_id, task_id, slice_id, plan_id, provenance_code,
  endpoint_name, operation_code, expr_hash, batch_no, phase_code, status_code, request_digest, response_digest, stats,
  idempotent_key, reason_code, created_at, error_level)
SELECT 'a' || (10000 + n), 'a', 'a', 'a', 'p', 's', CASE WHEN n > 2990 THEN 'rare' ELSE 'e' END, 'HARVEST', '', n, 'LIST',
  CASE WHEN n > 2990 THEN 'FAILED' ELSE 'SUCCEEDED' END, '{}', '{}', '{}', 'a' || n, 'i_next', n,
  CASE WHEN n > 2990 THEN 'L4' ELSE 'L1' END
FROM generate_series(1, 3000) n"""


def test_what_is_rare_is_listed_without_walking_past_the_rest(filled: World) -> None:
    w = filled
    w.run(RARE_TASK)
    if w.db.dialect == "postgres":
        for text in (DONE_RUNS, DONE_BATCHES, "ANALYZE ing_task_run", "ANALYZE ing_task_run_batch"):
            w.db.run(lambda tx, text=text: tx.script(text))
    for name, wanted, index in (
        ("runs", {"endpoint": "rare"}, "idx_run_partition"),
        ("runs", {"source": "s", "endpoint": "rare"}, "idx_run_partition"),
        ("batches", {"status": "FAILED"}, "idx_batch_status"),
        ("batches", {"status": "SKIPPED"}, "idx_batch_status"),
        ("errors", {"endpoint": "rare"}, "idx_batch_error_partition"),
        ("errors", {"endpoint": "rare"}, "idx_run_failure_partition"),
        ("errors", {"source": "s", "endpoint": "rare", "operation": "HARVEST"}, "idx_batch_error_partition"),
        ("errors", {"level": "L4"}, "idx_batch_error_level"),
        ("errors", {"source": "s", "level": "L4"}, "idx_batch_error_level"),
    ):
        stmt, params = w.db.read(lambda tx, n=name, f=wanted: explain_listing(tx, listing_of(n, f), f))
        lines = plan_of(w, stmt, params)
        assert any(index in line for line in lines), "\n".join([name, str(wanted), *lines])
        assert not any(other in line for line in lines for other in ("idx_batch_time", "idx_run_started")), lines


def test_errors_of_a_class_or_an_endpoint_are_those_of_the_whole_list(filled: World) -> None:
    w = filled
    w.run("UPDATE ing_task_run_batch SET error_level = 'L1' WHERE batch_no = 1")
    w.run("UPDATE ing_task_run_batch SET error_level = 'L4' WHERE batch_no = 2 AND run_id LIKE '%1.r1'")
    w.run("UPDATE ing_task_run SET status_code = 'FAILED' WHERE run_id LIKE '%.t000002.%'")

    def listed(**wanted: str) -> list[str]:
        found, after = [], ""
        while True:
            part = w.db.read(lambda tx, a=after: read_list(tx, "errors", wanted, limit=2, after=a))
            found += [one["error_id"] for one in part.rows]
            if part.next is None:
                return found
            after = part.next

    rows = w.db.read(lambda tx: read_list(tx, "errors", {}, limit=1000)).rows
    assert {row["error_level"] for row in rows} == {"L1", "L4", None}
    for level in ("L1", "L4", "L2"):
        of_level = [row["error_id"] for row in rows if row["error_level"] == level]
        assert listed(level=level) == listed(level=level, source="hostile", endpoint="search") == of_level
        assert listed(level=level, endpoint="nothing") == []
    assert listed(endpoint="search") == listed(source="hostile", endpoint="search") == [row["error_id"] for row in rows]
    assert listed(endpoint="nothing") == []


def test_runs_of_an_endpoint_and_batches_of_a_state_are_those_of_the_whole_list(filled: World) -> None:
    def listed(name: str, **wanted: str) -> list[str]:
        found, after = [], ""
        while True:
            part = filled.db.read(lambda tx, a=after: page(tx, READ_MODELS[name].listing, wanted, limit=2, after=a))
            found += [one[READ_MODELS[name].listing.order[-1]] for one in part.rows]
            if part.next is None:
                return found
            after = part.next

    endpoints = dict(
        filled.db.read(lambda tx: tx.fetch(statement("e", "SELECT run_id, endpoint_name FROM ing_task_run")))
    )
    states = dict(
        filled.db.read(lambda tx: tx.fetch(statement("s", "SELECT batch_id, status_code FROM ing_task_run_batch")))
    )
    for endpoint in {*endpoints.values(), "nothing"}:
        assert listed("runs", endpoint=endpoint) == [one for one in listed("runs") if endpoints[one] == endpoint]
    for state in ("SUCCEEDED", "FAILED", "SKIPPED"):
        assert listed("batches", status=state) == [one for one in listed("batches") if states[one] == state]


def test_a_page_reads_no_further_than_it_shows(filled: World) -> None:
    found = filled.db.read(lambda tx: page(tx, READ_MODELS["tasks"].listing, {"source": "hostile"}, limit=1))
    assert len(found.rows) == 1
    assert found.next is not None
