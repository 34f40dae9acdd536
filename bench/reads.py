"""The read side of all engines on a large store, while a writer writes, on SQLite and PostgreSQL.

    ./dev bench reads                           100,000 tasks and runs, a million batches and events of each engine
    ./dev bench reads --tasks 1000000 --events 10000000
    ./dev bench reads --tasks 10000 --events 100000 --only sqlite

Ingest's tables are filled by set-based SQL, so that a million rows take seconds; attribution and the bus fill theirs
themselves, some 20,000 events a second. Each read is asked for again and again while
another thread commits batches; the specification asks for a 95th percentile below 200 ms with a million tasks and ten
million batches (ch. 13.10). `of the limit` is that percentile beside those 200 ms. The list pages are taken at their
beginning and in their middle: a page far down costs what the first one does.
"""

import argparse
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table
from tests import services

from bench import reads_console
from bench.harness import facts, write
from bench.reads_engines import AttributionStore, BusStore
from bench.reads_engines import writing as beside_writer
from patra.app.wiring import packages
from patra.ingest.operations.alerting.monitor import FlowWindow
from patra.ingest.operations.coverage import coverage
from patra.ingest.operations.reads import drilldown, views
from patra.ingest.operations.reads.read_models import error_top, read_list
from patra.kernel.clock import DAY, MINUTE, SECOND, SystemClock
from patra.kernel.db import Database, Tx, migrate, open_database
from patra.kernel.db.queries import statement

PACKAGES = packages()
SECONDS_PER_READ = 1.5
WRITER_ALONE_SECONDS = 10
MAX_SAMPLES = 200
LIMIT_MS = 200
SOURCES = 10
TASKS_PER_PLAN = 1000
T0 = 1_770_000_000 * SECOND

NUMBERS = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :many)",
    "postgres": "WITH n(i) AS (SELECT generate_series(0, :many - 1))",
}
PAD = {"sqlite": "printf('%06d', {0})", "postgres": "lpad(CAST({0} AS text), 6, '0')"}
SOURCE = "'source' || ((i / 1000) % 10)"


class Timing(NamedTuple):
    """Median and 95th percentile in milliseconds, and how often it was asked."""

    p50: float
    p95: float
    times: int


def fill(db: Database, tasks: int, batches: int, now: int) -> None:
    """Plans, slices, tasks, runs, ledgers, batches and cursor events; nine of ten tasks are done, some failed."""
    pad = PAD[db.dialect].format
    plan, task = (
        f"'p0000000000' || {pad('i / 1000')}",
        f"'p0000000000' || {pad('i / 1000')} || '.t' || {pad('i % 1000')}",
    )
    state = "CASE WHEN i % 10 = 9 THEN 'QUEUED' WHEN i % 1000 = 7 THEN 'FAILED' ELSE 'SUCCEEDED' END"
    shared = {"now": now, "t0": T0, "hour": 60 * MINUTE, "start": now - tasks * 1000}
    texts = [
        ("ing_plan", tasks // TASKS_PER_PLAN, f"""INSERT INTO ing_plan (plan_id, schedule_instance_id, provenance_code,
          endpoint_name, operation_code, plan_strategy, window_from, window_to, namespace_scope_code, namespace_key,
          priority, expr_proto_hash, expr_proto_snapshot, spec_fingerprint, status_code, record_remarks, created_at,
          updated_at) SELECT 'p0000000000' || {pad('i')}, 'i', 'source' || (i % 10), 'e', 'HARVEST', 'TIME', :t0, :now, 'EXPR',
          'n' || (i % 10), 1, '', '', 'f', 'READY', '', :start + i * 1000000, :now FROM n"""),
        ("ing_task", tasks, f"""INSERT INTO ing_task (task_id, schedule_instance_id, plan_id, slice_id, provenance_code,
          endpoint_name, operation_code, partition_key, params, expr_hash, idempotent_key, status_code, priority,
          scheduled_at, namespace_key, window_from, window_to, created_at, updated_at)
          SELECT {task}, 'i', {plan}, 's' || i, {SOURCE}, 'e', 'HARVEST', {SOURCE} || '/e/HARVEST', '', '', 'k' || i,
          {state}, 1, :now, 'n' || ((i / 1000) % 10), :t0 + i * :hour, :t0 + (i + 1) * :hour, :now, :now FROM n"""),
        ("ing_task_run", tasks, f"""INSERT INTO ing_task_run (run_id, task_id, schedule_instance_id, plan_id, slice_id,
          provenance_code, endpoint_name, operation_code, attempt_no, status_code, lease_owner, lease_fence, checkpoint,
          stats, started_at, finished_at, updated_at) SELECT {task} || '.r1', {task}, 'i', {plan}, 's' || i, {SOURCE},
          'e', 'HARVEST', 1, CASE WHEN i % 1000 = 7 THEN 'FAILED' ELSE 'SUCCEEDED' END, 'x', 1, '', '{{}}',
          :start + i * 1000, :start + i * 1000, :now FROM n WHERE i % 10 <> 9"""),
        ("ing_window_ledger", tasks, f"""INSERT INTO ing_window_ledger (task_id, leg_code, run_id, plan_id,
          provenance_code, endpoint_name, operation_code, namespace_key, window_from, window_to, status_code, total_code,
          promised_first, promised_last, positions, distinct_ids, null_items, without_id, suppressed, inserted, updated,
          equal_count, older_count, repeated, outside, quarantined, gone, readings, missing, detail, spec_fingerprint,
          closed_at) SELECT {task}, 'LIST', {task} || '.r1', {plan}, {SOURCE}, 'e', 'HARVEST',
          'n' || ((i / 1000) % 10), :t0 + i * :hour, :t0 + (i + 1) * :hour, 'COMPLETE', 'EXACT', 10, 10, 10, 10, 0, 0, 0,
          10, 0, 0, 0, 0, 0, 0, 0, 1, 0, '', 'f', :now FROM n WHERE i % 10 <> 9"""),
    ]  # fmt: skip
    run = f"'p0000000000' || {pad('i / :each / 1000')} || '.t' || {pad('i / :each % 1000')} || '.r1'"
    of = "'source' || ((i / :each / 1000) % 10)"
    stats = """'{"retryCount":0,"429Count":0}'"""
    texts += [
        ("ing_task_run_batch", tasks * batches, f"""INSERT INTO ing_task_run_batch (batch_id, run_id, task_id, slice_id,
          plan_id, provenance_code, endpoint_name, operation_code, expr_hash, batch_no, phase_code, status_code,
          request_digest, response_digest, stats, idempotent_key, error_level, reason_code, created_at)
          SELECT {run} || '.b' || (i % :each + 1), {run}, 't', 's', 'p', {of}, 'e', 'HARVEST', '', i % :each + 1, 'LIST',
          'SUCCEEDED', '{{}}', '{{}}', {stats}, 'k' || i, CASE WHEN i % 5000 = 7 THEN 'L1' END, 'i_next',
          :start + i * 1000 / :each FROM n"""),
        ("ing_cursor_event", tasks * batches, f"""INSERT INTO ing_cursor_event (provenance_code, operation_code,
          cursor_key, namespace_scope_code, namespace_key, cursor_type_code, direction_code, new_value, reason_code,
          schedule_instance_id, plan_id, slice_id, task_id, run_id, batch_no, expr_hash, idempotent_key, record_remarks,
          event_time) SELECT {of}, 'HARVEST', 'c', 'EXPR', 'n' || ((i / :each / 1000) % 10), 'TIME', 'FORWARD', 'v',
          'i_advanced', 'i', 'p', 's', 't', {run}, i % :each + 1, '', 'k' || i, '{{}}', :start + i * 1000 / :each
          FROM n"""),
    ]  # fmt: skip
    made = _without_indexes(db)
    for name, many, text in texts:
        stmt = statement(f"fill {name}", f"{NUMBERS[db.dialect]} {text}")
        params = {**shared, "many": many, "each": batches}
        used = {key: value for key, value in params.items() if f":{key}" in stmt.text[db.dialect]}
        begun = time.perf_counter()
        db.run(lambda tx, s=stmt, p=used: tx.execute(s, p))
        print(f"  {name}: {many:,} in {time.perf_counter() - begun:.1f} s", flush=True)
    begun = time.perf_counter()
    counts = "INSERT INTO ing_task_count SELECT partition_key, status_code, count(*) FROM ing_task GROUP BY 1, 2"
    for text in (*made, "DELETE FROM ing_task_count", "DELETE FROM ing_task_count_change", counts, "ANALYZE"):
        db.run(lambda tx, t=text: tx.script(t))
    print(f"  indexes: {time.perf_counter() - begun:.1f} s", flush=True)


def _without_indexes(db: Database) -> list[str]:
    """Takes indexes that are no constraints away, and counting triggers; gives the statements that put them back."""
    if db.dialect == "sqlite":
        asked = "SELECT type, name, sql FROM sqlite_master WHERE name LIKE 'idx!_%' ESCAPE '!' OR type = 'trigger'"
        found = [row for row in db.read(lambda tx: tx.fetch(statement("indexes", asked))) if _is_ours(row[1])]
        for kind, name, _ in found:
            db.run(lambda tx, text=f"DROP {kind} {name}": tx.script(text))
        return [sql for _, _, sql in found]
    asked = "SELECT 'index', indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema()"
    found = [row for row in db.read(lambda tx: tx.fetch(statement("indexes", asked))) if row[1].startswith("idx_")]
    for _, name, _ in found:
        db.run(lambda tx, text=f"DROP INDEX {name}": tx.script(text))
    db.run(lambda tx: tx.script("ALTER TABLE ing_task DISABLE TRIGGER USER"))
    return [*(sql for _, _, sql in found), "ALTER TABLE ing_task ENABLE TRIGGER USER"]


def _is_ours(name: str) -> bool:
    return name.startswith(("idx_", "trg_task"))


@contextmanager
def writing(db: Database, first: int = 0) -> Generator[list[int]]:
    """Another thread that commits batches as an executor does, a hundred a second at most."""
    stop, written = threading.Event(), list[int]()
    row = (
        "INSERT INTO ing_task_run_batch (batch_id, run_id, task_id, slice_id, plan_id, provenance_code, endpoint_name,"
        " operation_code, expr_hash, batch_no, phase_code, status_code, request_digest, response_digest, stats,"
        " idempotent_key, reason_code, created_at) VALUES ('w' || :n, 'w', 't', 's', 'p', 'source0', 'e', 'HARVEST', '',"
        """ :n, 'LIST', 'SUCCEEDED', '{}', '{}', '{"retryCount":0,"429Count":0}', 'w' || :n, 'i_next', :now)"""
    )
    insert = statement("write", row)
    move = statement("move", "UPDATE ing_task SET status_code = 'SUCCEEDED' WHERE task_id = :id")

    def write() -> None:
        number = first
        while not stop.wait(0.01):
            number += 1
            params = {"n": number, "now": SystemClock().now()}
            name = f"p0000000000000000.t{number * 10 % 1000:06}"

            def work(tx: Tx, p: dict[str, Any] = params, task: str = name) -> None:
                tx.execute(insert, p)
                tx.execute(move, {"id": task})

            db.run(work)
            written.append(number)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield written
    finally:
        stop.set()
        thread.join()


def reads(tasks: int, now: int) -> dict[str, Callable[[Tx], Any]]:
    """The reads, each by its name."""
    middle = f"p0000000000{tasks // TASKS_PER_PLAN // 2:06}"
    asked: list[tuple[str, dict[str, Any]]] = [
        ("plans", {}), ("plans", {"source": "source3"}), ("tasks", {}), ("tasks", {"status": "QUEUED"}),
        ("tasks", {"source": "source3", "status": "FAILED"}), ("tasks", {"source": "source3"}),
        ("tasks", {"plan": middle}), ("runs", {}), ("runs", {"status": "FAILED"}),
        ("runs", {"source": "source3", "status": "FAILED"}), ("runs", {"plan": middle}), ("batches", {}),
        ("batches", {"run": f"{middle}.t000500.r1"}), ("batches", {"plan": middle}), ("errors", {}),
        ("errors", {"source": "source3"}), ("quarantine", {"status": "OPEN"}), ("cursors", {}),
        ("cursor-timeline", {"source": "source3", "operation": "HARVEST", "namespace": "n3"}), ("signals", {}),
        ("refused", {}),
    ]  # fmt: skip
    found: dict[str, Callable[[Tx], Any]] = {"queue": views.queue}
    for name, wanted in asked:
        said = ", ".join(f"{key}={value}" for key, value in wanted.items())
        found[f"{name} {said}".strip()] = lambda tx, n=name, w=wanted: read_list(tx, n, w, limit=50)
    found["lineage"] = lambda tx: views.lineage(tx, middle, limit=50)
    found["top errors, a day"] = lambda tx: error_top(tx, {}, since=now - DAY, until=now, limit=20)
    found["windows of a source, 30 days"] = lambda tx: drilldown.windows(tx, "source3", now - 30 * DAY, now)
    found["task with its runs"] = lambda tx: drilldown.task(tx, f"{middle}.t000500")
    found["run with its batches"] = lambda tx: drilldown.run(tx, f"{middle}.t000500.r1", after=0, limit=50)
    found["coverage, with its sum"] = lambda tx: coverage(tx, "source3", limit=50)
    return found


def deep(db: Database, name: str, pages: int) -> Callable[[Tx], Any]:
    """A page far down a list."""
    after = ""
    for _ in range(pages):
        found = db.read(lambda tx, a=after: read_list(tx, name, {}, limit=1000, after=a))
        if found.next is None:
            break
        after = found.next
    return lambda tx: read_list(tx, name, {}, limit=50, after=after)


def timed(work: Callable[[], Any]) -> Timing:
    samples: list[float] = []
    end = time.perf_counter() + SECONDS_PER_READ
    while len(samples) < 5 or (time.perf_counter() < end and len(samples) < MAX_SAMPLES):
        begun = time.perf_counter()
        work()
        samples.append((time.perf_counter() - begun) * 1000)
    return _percentiles(samples)


def _percentiles(samples: Sequence[float]) -> Timing:
    ordered = sorted(samples)
    p95 = ordered[min(int(len(ordered) * 0.95), len(ordered) - 1)]
    return Timing(statistics.median(ordered), p95, len(ordered))


def measure(db: Database, title: str, tasks: int, batches: int) -> dict[str, Timing]:
    now = SystemClock().now()
    print(f"{title}: filling {tasks:,} tasks, {tasks * batches:,} batches and cursor events", flush=True)
    fill(db, tasks, batches, now)
    with writing(db):
        flows = FlowWindow()
        asked = reads(tasks, now)
        for name in ("tasks", "batches", "runs"):
            asked[f"{name}, 20,000 rows down"] = deep(db, name, 20)
        rows = {f"ingest: {name}": timed(lambda w=work: db.read(w)) for name, work in asked.items()}
        rows["ingest: alerts, batches since the last look"] = timed(
            lambda: db.read(lambda tx: flows.look(tx, SystemClock().now()))
        )
    return rows


def measure_engines(db: Database, title: str, events: int) -> dict[str, Timing]:
    """Attribution and the bus, and what reading costs the one who writes at the same time."""
    found: dict[str, Timing] = {}
    attribution, bus = AttributionStore(db), BusStore(db)
    for name, store in (("attribution", attribution), ("bus", bus)):
        begun = time.perf_counter()
        print(f"{title}: filling {name} with {events:,} events", flush=True)
        store.fill(events)
        print(f"  {time.perf_counter() - begun:.0f} s", flush=True)
    with beside_writer(lambda: attribution.write(1)) as alone:
        time.sleep(WRITER_ALONE_SECONDS)
    with beside_writer(lambda: attribution.write(1)) as beside:
        found |= {name: timed(work) for name, work in attribution.reads(events).items()}
    with beside_writer(lambda: bus.write(10)):
        found |= {name: timed(work) for name, work in bus.reads().items()}
    found["a batch of 100 events written, nobody reads"] = _percentiles(alone)
    found["a batch of 100 events written, while all of that is read"] = _percentiles(beside)
    return found


def measure_pages(db: Database, url: str, tasks: int, events: int) -> dict[str, Timing]:
    """The console's pages, and the story of keys of every engine, over HTTP."""
    reads_console.load_sources(db, SOURCES)
    with reads_console.served(url) as address, writing(db, first=1_000_000):
        browser = reads_console.Browser(address)
        asked = reads_console.pages(browser, tasks, events, TASKS_PER_PLAN)
        rows = {name: timed(work) for name, work in asked.items()}
        browser.close()
    return rows


def show(title: str, rows: dict[str, Timing]) -> None:
    table = Table(title=f"{title}, while a writer writes", title_justify="left")
    for column in ("read", "p50 ms", "p95 ms", "of the limit", "times"):
        table.add_column(column, justify="left" if column == "read" else "right")
    for name, (p50, p95, times) in rows.items():
        table.add_row(name, f"{p50:.1f}", f"{p95:.1f}", f"{p95 / LIMIT_MS:.2f}", str(times))
    Console(width=110).print(table)


@contextmanager
def stores(only: str | None) -> Generator[dict[str, str]]:
    """The address of an empty store of each database that is wanted."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        found: dict[str, str] = {}
        if only != "postgres":
            found["SQLite"] = f"sqlite:///{Path(folder) / 'patra.db'}"
        if only != "sqlite":
            found["PostgreSQL"] = stack.enter_context(services.postgres(durable=True))
        yield found


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev bench reads", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small stores, to see that it runs")
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--batches", type=int, default=10, help="batches and cursor events a task")
    parser.add_argument("--events", type=int, default=1_000_000, help="events of attribution, and of the bus")
    parser.add_argument("--only", choices=["sqlite", "postgres"])
    said = parser.parse_args()
    tasks, events = (2_000, 10_000) if said.quick else (said.tasks, said.events)
    known = facts(rows=f"{tasks:,} tasks, {tasks * said.batches:,} batches; {events:,} events of attribution and bus")
    results: dict[str, dict[str, Timing]] = {}
    with stores(said.only) as found:
        for title, url in found.items():
            db = open_database(url)
            migrate(db, PACKAGES)
            rows: dict[str, Timing] = {}
            rows |= measure(db, title, tasks, said.batches)
            rows |= measure_engines(db, title, events)
            rows |= measure_pages(db, url, tasks, events)
            show(title, rows)
            results[title] = rows
            db.close()
    known["load_after"] = " ".join(f"{load:.1f}" for load in os.getloadavg())
    write("reads", {"name": "reads", "quick": said.quick, "facts": known, "reads": results})
    return 0


if __name__ == "__main__":
    sys.exit(main())
