"""The spots of ingest: how far a watermark may go behind a hole, where a cursor begins, the queue, the alerts' window."""

from collections.abc import Callable
from typing import Any

from bench.growth_spot import Spot
from bench.reads_fill import NUMBERS, T0, fill_ingest
from patra.ingest.landing.store import Q, frontier
from patra.ingest.operations.alerting.monitor import FLOW, FlowWindow
from patra.ingest.operations.reads import views
from patra.ingest.operations.reads.read_models import read_list
from patra.ingest.planning.slicing.windows import Span
from patra.kernel.clock import DAY, MINUTE, SystemClock
from patra.kernel.db import Database, Tx
from patra.kernel.db.queries import statement

BATCHES_PER_TASK = 10
RECENT_BATCHES = 3_000
"""Batches of the last five minutes, on a store of any size: what the alerts look at."""
HOUR_WIDTH = 60 * MINUTE
WHOSE = {"namespace": "hole", "source": "hole", "endpoint": "e", "operation": "HARVEST"}
HOLE_TASKS = """INSERT INTO ing_task (task_id, schedule_instance_id, plan_id, slice_id, provenance_code, endpoint_name,
  operation_code, partition_key, params, expr_hash, idempotent_key, status_code, priority, scheduled_at, namespace_key,
  window_from, window_to, created_at, updated_at)
SELECT 'h' || i, 'i', 'hole', 'h' || i, 'hole', 'e', 'HARVEST', 'hole/e/HARVEST', '', '', 'h' || i, 'SUCCEEDED', 1, :now,
  'hole', :t0 + (i + 1) * :hour, :t0 + (i + 2) * :hour, :now, :now FROM n"""
RECENT = """INSERT INTO ing_task_run_batch (batch_id, run_id, task_id, slice_id, plan_id, provenance_code, endpoint_name,
  operation_code, expr_hash, batch_no, phase_code, status_code, request_digest, response_digest, stats, idempotent_key,
  reason_code, created_at)
SELECT 'r' || i, 'r', 't', 's', 'p', 'source' || (i % 10), 'e', 'HARVEST', '', i, 'LIST', 'SUCCEEDED', '{}', '{}',
  '{"retryCount":0,"429Count":0}', 'r' || i, 'i_next', :now - i * :step FROM n"""


class IngestGrowth:
    """A tenth as many tasks as batches; as many windows again are done ahead of a hole that nothing fills."""

    def __init__(self, db: Database) -> None:
        self.db = db

    def fill(self, rows: int) -> None:
        tasks = rows // BATCHES_PER_TASK
        if tasks:
            now = SystemClock().now()
            fill_ingest(self.db, tasks, BATCHES_PER_TASK, now - DAY)
            self._insert("hole", HOLE_TASKS, {"many": tasks, "now": now, "t0": T0, "hour": HOUR_WIDTH})
        now = SystemClock().now()  # a large store takes longer to fill than the alerts look back
        step = FLOW // RECENT_BATCHES
        self._insert("recent", RECENT, {"many": RECENT_BATCHES, "now": now, "step": step})

    def _insert(self, name: str, text: str, params: dict[str, int]) -> None:
        stmt = statement(f"fill {name}", f"{NUMBERS[self.db.dialect]} {text}")
        self.db.run(lambda tx: tx.execute(stmt, {"from_row": 0, **params}))

    def spots(self, rows: int) -> list[Spot]:
        del rows
        done = Span(T0 + 5 * HOUR_WIDTH, T0 + 6 * HOUR_WIDTH)
        flows = FlowWindow()
        self.db.read(lambda tx: flows.look(tx, SystemClock().now()))
        reads: dict[str, Callable[[Tx], Any]] = {
            "windows done behind a hole": lambda tx: frontier(tx, WHOSE, T0, done),
            "windows done behind a hole, backward": lambda tx: frontier(tx, WHOSE, T0 + 2**50, done, backward=True),
            "where a cursor begins": lambda tx: tx.fetch_one(Q["cursor_base"], WHOSE),
            "queue": views.queue,
            "tasks that are queued": lambda tx: read_list(tx, "tasks", {"status": "QUEUED"}, limit=50),
            "alerts: first look at the flows": lambda tx: FlowWindow().look(tx, SystemClock().now()),
            "alerts: next look at the flows": lambda tx: flows.look(tx, SystemClock().now()),
        }
        return [Spot(name, "answer", lambda work=work: self._read(work)) for name, work in reads.items()]

    def _read(self, work: Callable[[Tx], Any]) -> int:
        self.db.read(work)
        return 1
