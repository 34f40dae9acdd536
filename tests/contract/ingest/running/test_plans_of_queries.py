"""PostgreSQL finds records, windows and batches by their indexes, however little it knows of the tables."""

import re
from typing import Any

import pytest

from patra.app.wiring import packages
from patra.ingest.landing.store import Q
from patra.ingest.operations.alerting import monitor
from patra.kernel.db import Database, migrate, open_database
from patra.kernel.db.queries import Statement
from tests.contract.ingest.running.world import T0, T1, pack, world
from tests.contract.kernel.test_outbox import explained
from tests.support.hostile_provider import crowded


def test_known_records_are_looked_up_by_the_primary_key(database: Database) -> None:
    if database.dialect == "sqlite":
        return
    with world(database, crowded(1000, T0, T1)) as w:
        w.load(pack(w.url, "OFFSET", pagination={"pageSize": 100}))
        w.trigger()
        w.drain()
        key = {"source": "hostile", "endpoint": "search"}
        rows = [(one,) for one in list(w.provider.truth)[:100]]
        for name in ("records_seen", "records_known"):
            text = Q[name].postgres.replace("WITH", "EXPLAIN WITH", 1)
            stmt = Statement(name=name, text={"sqlite": "", "postgres": Q[name].text["postgres"]}, rows=Q[name].rows)
            stmt.__dict__["postgres"] = text
            lines = [line for (line,) in w.db.run(lambda tx, s=stmt: tx.fetch(s, key, rows=rows))]
            at = next(n for n, line in enumerate(lines) if "on ing_record" in line)
            assert "ing_record_pkey" in lines[at], lines
            assert "provider_id = ANY" in lines[at + 1], lines
            assert "Index Cond" in lines[at + 1], lines


HOLE = """INSERT INTO ing_task (task_id, schedule_instance_id, plan_id, slice_id, provenance_code, endpoint_name,
  operation_code, partition_key, params, expr_hash, idempotent_key, status_code, priority, scheduled_at,
  namespace_key, window_from, window_to, created_at, updated_at)
SELECT 'a' || n, 'i', 'p', 'a' || n, 's', 'e', 'HARVEST', 's/e/HARVEST', '', '', 'a' || n, 'SUCCEEDED', 1, 1, 'n', n,
  n + 1, 1, 1 FROM generate_series(1, 20000) n"""
BATCHES = """INSERT INTO ing_task_run_batch (batch_id, run_id, task_id, slice_id, plan_id, provenance_code,
  endpoint_name, operation_code, expr_hash, batch_no, phase_code, status_code, request_digest, response_digest, stats,
  idempotent_key, reason_code, created_at)
SELECT 'a' || n, 'a', 'a', 'a', 'p', 's', 'e', 'HARVEST', '', n, 'LIST', 'SUCCEEDED', '{}', '{}', '{}', 'a' || n,
  'i_next', n FROM generate_series(1, 20000) n"""
WHOSE = {"namespace": "n", "source": "s", "endpoint": "e", "operation": "HARVEST"}
DONE = WHOSE | {"low": 5, "present": 6, "limit": 16}


@pytest.mark.parametrize(
    ("name", "params", "indexes"),
    [
        ("cursor_base", WHOSE, {"idx_task_cursor_from", "idx_task_cursor_to"}),
        ("windows_done", DONE, {"idx_task_cursor_from"}),
        ("windows_done_backward", DONE | {"low": 19_000}, {"idx_task_cursor_to"}),
        ("watch_flows", {"since": 19_990, "width": 10}, {"idx_batch_time"}),
    ],
)
def test_statistics_of_an_empty_table_lead_nobody_to_read_all_windows_or_batches(
    postgres_url: str, name: str, params: dict[str, Any], indexes: set[str]
) -> None:
    database = open_database(postgres_url)
    migrate(database, packages())
    for table in ("ing_task", "ing_task_run_batch"):
        database.run(lambda tx, t=table: tx.script(f"ALTER TABLE {t} SET (autovacuum_enabled = false); ANALYZE {t}"))
    for text in (HOLE, BATCHES):
        database.run(lambda tx, text=text: tx.script(text))
    known = (monitor.Q if name == "watch_flows" else Q)[name]
    lines = database.read(lambda tx: tx.fetch(explained(known), params))
    database.close()
    found = "\n".join(line for (line,) in lines)
    assert "Seq Scan on ing_task" not in found, found
    assert set(re.findall(r"(?:using|on) (idx_(?:task|batch)_\w+)", found)) == indexes, found
