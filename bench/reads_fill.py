"""Fills the large stores of `bench.reads` and `bench.growth` by set-based SQL: ingest, and the log of the bus.

Attribution fills its own by the commits of its writer (`bench.reads_engines`). Indexes that are no constraints are away
meanwhile and built at once at the end.
"""

import time
from collections.abc import Mapping
from typing import Any

from bench.bus import GROUP, envelope
from patra.bus.bus import Bus
from patra.bus.publishing.envelope import encode
from patra.bus.store import groups
from patra.kernel.clock import DAY, MINUTE, SECOND
from patra.kernel.db import Database
from patra.kernel.db.queries import Statement, statement

TASKS_PER_PLAN = 1000
T0 = 1_770_000_000 * SECOND
FILLED_SPAN = 30 * DAY
STEP_ROWS = 500_000
BUS_KIND = "job.succeeded"
BUS_EVENT_ID = "00000000-0000-7000-8000-{:012}"

NUMBERS = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT :from_row UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :many)",
    "postgres": "WITH n(i) AS (SELECT generate_series(CAST(:from_row AS bigint), :many - 1))",
}
PAD = {"sqlite": "printf('%06d', {0})", "postgres": "lpad(CAST({0} AS text), 6, '0')"}
SOURCE = "'source' || ((i / 1000) % 10)"
PAD_EVENT = {"sqlite": "printf('%012d', i)", "postgres": "lpad(CAST(i AS text), 12, '0')"}
HASH = {"sqlite": "CAST(printf('%016d', {0}) AS BLOB)", "postgres": "decode(md5(CAST({0} AS text)), 'hex')"}
LOG = """INSERT INTO bus_event (event_id, major, minor, event_type, identity, fingerprint, producer, tenant_id, trace_id,
  correlation_id, order_key, published_at, body)
SELECT {event_id}, 1, 0, :kind, {identity}, {identity}, 'p', 't', 'trace-' || i, 'run-' || (i / 10), {key},
  CASE WHEN i < :old THEN :past ELSE :now END + i, replace(replace(:body, :event_id, {event_id}), :key, 'filled-' || i)
FROM n"""
LINES = """INSERT INTO bus_delivery (group_id, seq, order_key, due_at)
SELECT :group_id, seq, order_key, :now FROM bus_event WHERE published_at >= :now"""


def fill_ingest(db: Database, tasks: int, batches: int, now: int) -> None:
    """Plans, slices, tasks, runs, ledgers, batches and cursor events; nine of ten tasks are done, some failed.

    What happened is spread over `FILLED_SPAN` before now.
    """
    pad = PAD[db.dialect].format
    plan, task = (
        f"'p0000000000' || {pad('i / 1000')}",
        f"'p0000000000' || {pad('i / 1000')} || '.t' || {pad('i % 1000')}",
    )
    state = "CASE WHEN i % 10 = 9 THEN 'QUEUED' WHEN i % 1000 = 7 THEN 'FAILED' ELSE 'SUCCEEDED' END"
    shared = {
        "now": now,
        "t0": T0,
        "hour": 60 * MINUTE,
        "step": FILLED_SPAN // max(tasks, 1),
        "start": now - FILLED_SPAN,
    }
    texts = [
        ("ing_plan", tasks // TASKS_PER_PLAN, f"""INSERT INTO ing_plan (plan_id, schedule_instance_id, provenance_code,
          endpoint_name, operation_code, plan_strategy, window_from, window_to, namespace_scope_code, namespace_key,
          priority, expr_proto_hash, expr_proto_snapshot, spec_fingerprint, status_code, record_remarks, created_at,
          updated_at) SELECT 'p0000000000' || {pad('i')}, 'i', 'source' || (i % 10), 'e', 'HARVEST', 'TIME', :t0, :now, 'EXPR',
          'n' || (i % 10), 1, '', '', 'f', 'READY', '', :start + i * 1000 * :step, :now FROM n"""),
        ("ing_task", tasks, f"""INSERT INTO ing_task (task_id, schedule_instance_id, plan_id, slice_id, provenance_code,
          endpoint_name, operation_code, partition_key, params, expr_hash, idempotent_key, status_code, priority,
          scheduled_at, namespace_key, window_from, window_to, created_at, updated_at)
          SELECT {task}, 'i', {plan}, 's' || i, {SOURCE}, 'e', 'HARVEST', {SOURCE} || '/e/HARVEST', '', '', 'k' || i,
          {state}, 1, :now, 'n' || ((i / 1000) % 10), :t0 + i * :hour, :t0 + (i + 1) * :hour, :now, :now FROM n"""),
        ("ing_task_run", tasks, f"""INSERT INTO ing_task_run (run_id, task_id, schedule_instance_id, plan_id, slice_id,
          provenance_code, endpoint_name, operation_code, attempt_no, status_code, lease_owner, lease_fence, checkpoint,
          stats, started_at, finished_at, updated_at) SELECT {task} || '.r1', {task}, 'i', {plan}, 's' || i, {SOURCE},
          'e', 'HARVEST', 1, CASE WHEN i % 1000 = 7 THEN 'FAILED' ELSE 'SUCCEEDED' END, 'x', 1, '', '{{}}',
          :start + i * :step, :start + i * :step, :now FROM n WHERE i % 10 <> 9"""),
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
          :start + i * :step / :each FROM n"""),
        ("ing_cursor_event", tasks * batches, f"""INSERT INTO ing_cursor_event (provenance_code, operation_code,
          cursor_key, namespace_scope_code, namespace_key, cursor_type_code, direction_code, new_value, reason_code,
          schedule_instance_id, plan_id, slice_id, task_id, run_id, batch_no, expr_hash, idempotent_key, record_remarks,
          event_time) SELECT {of}, 'HARVEST', 'c', 'EXPR', 'n' || ((i / :each / 1000) % 10), 'TIME', 'FORWARD', 'v',
          'i_advanced', 'i', 'p', 's', 't', {run}, i % :each + 1, '', 'k' || i, '{{}}', :start + i * :step / :each
          FROM n"""),
    ]  # fmt: skip
    made = _without_indexes(db, "idx_", "trg_task", "trg_window")
    for table in ("ing_task", "ing_window_ledger"):
        if db.dialect == "postgres":
            db.run(lambda tx, t=table: tx.script(f"ALTER TABLE {t} DISABLE TRIGGER USER"))
            made.append(f"ALTER TABLE {table} ENABLE TRIGGER USER")
    for name, many, text in texts:
        begun = time.perf_counter()
        _in_steps(db, statement(f"fill {name}", f"{NUMBERS[db.dialect]} {text}"), {**shared, "each": batches}, many)
        print(f"  {name}: {many:,} in {time.perf_counter() - begun:.1f} s", flush=True)
    begun = time.perf_counter()
    counts = "INSERT INTO ing_task_count SELECT partition_key, status_code, count(*) FROM ing_task GROUP BY 1, 2"
    sums = """INSERT INTO ing_window_sum SELECT provenance_code, endpoint_name, operation_code, count(*), sum(promised_last),
      sum(positions), sum(inserted), 0, 0, count(*) FROM ing_window_ledger GROUP BY 1, 2, 3"""
    for text in (*made, "DELETE FROM ing_task_count", "DELETE FROM ing_task_count_change", counts, sums):
        db.run(lambda tx, t=text: tx.script(t))
    print(f"  indexes: {time.perf_counter() - begun:.1f} s", flush=True)


def _in_steps(db: Database, stmt: Statement, params: Mapping[str, Any], many: int) -> None:
    """Insert so many rows, some at a time: a transaction of ten million is slow on SQLite."""
    used = {key: value for key, value in params.items() if f":{key}" in stmt.text[db.dialect]}
    for first in range(0, many, STEP_ROWS):
        step = {**used, "from_row": first, "many": min(first + STEP_ROWS, many)}
        db.run(lambda tx, p=step: tx.execute(stmt, p))


INDEXES = {
    "sqlite": "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND type IN ('index', 'trigger')",
    "postgres": """SELECT 'index', indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema()
      AND indexname NOT IN (SELECT conname FROM pg_constraint)""",
}


def _without_indexes(db: Database, *prefixes: str) -> list[str]:
    """Takes indexes that are no constraints away, and triggers, by their names; gives the statements to put them back."""
    asked = statement("indexes", INDEXES[db.dialect])
    found = [row for row in db.read(lambda tx: tx.fetch(asked)) if row[1].startswith(prefixes)]
    for kind, name, _ in found:
        db.run(lambda tx, text=f"DROP {kind} {name}": tx.script(text))
    return [sql for _, _, sql in found]


def fill_bus(db: Database, bus: Bus, rows: int, *, past: int, now: int) -> None:
    """A log whose older half, of `past`, is handled; the younger half waits for a group, in order per key."""
    example = envelope(bus, BUS_KIND)
    hashed = HASH[db.dialect].format
    params = {
        "old": rows // 2,
        "past": past,
        "now": now,
        "kind": BUS_KIND,
        "body": encode(example).decode(),
        "event_id": example.event_id,
        "key": example.idempotency_key,
    }
    event_id = f"'{BUS_EVENT_ID.partition('{')[0]}' || {PAD_EVENT[db.dialect]}"
    text = LOG.format(event_id=event_id, identity=hashed("i"), key=hashed("i % 1000"))
    log = statement("fill log", f"{NUMBERS[db.dialect]} {text}")
    lines = statement("fill lines", LINES)
    group = db.read(lambda tx: groups.find(tx, GROUP))
    assert group is not None
    if not rows:
        return
    made = _without_indexes(db, "bus_event_", "bus_delivery_")
    _in_steps(db, log, params, rows)
    db.run(lambda tx: tx.execute(lines, {"group_id": group.group_id, "now": now}))
    for text in made:
        db.run(lambda tx, t=text: tx.script(t))
