"""No look-up of a story reads a whole table: every statement goes by an index, whatever the tables hold."""

import re

import pytest

from patra.app.wiring import packages
from patra.bus.store.events import Q as BUS
from patra.ingest.planning.store import Q as INGEST
from patra.kernel.db import Queries, Tx, migrate, open_database
from patra.kernel.db.queries import Statement, statement
from patra.studio.storage.store import Q as STUDIO

SMALL = {"bus_group", "bus_subscription", "reg_prov_endpoint_def"}
"""Tables with a row for each group or endpoint; they may be read whole."""
STATEMENTS: list[tuple[Queries, str]] = [
    *(
        (BUS, name)
        for name in ("events_by_id", "events_by_trace", "events_by_correlation", "events_by_idempotency_key")
    ),
    *(
        (BUS, name)
        for name in ("refusals_by_event", "letters_of_events", "deliveries_of_events", "deliveries_of_event")
    ),
    *((INGEST, f"story_{name}") for name in ("instance", "plans_of_instance", "plan", "slice", "task", "run")),
    *((INGEST, f"story_{name}") for name in ("tasks_of_plan", "runs_of_task", "batches_of_run", "records")),
    *((INGEST, f"story_{name}") for name in ("quarantine", "signals", "cursor_events_of_run", "cursors")),
    *((INGEST, f"story_{name}") for name in ("cursor_events", "relay_head")),
    *((STUDIO, name) for name in ("task", "task_of_run", "run", "job", "artifacts_by_key", "tasks_by_chapter")),
    *((STUDIO, name) for name in ("jobs_page", "work_state", "notes_of_run")),
]


def scans(tx: Tx, stmt: Statement) -> list[str]:
    """Tables that SQLite would read whole for a statement."""
    text = stmt.text["sqlite"]
    columns = ", ".join(f"NULL AS {column.name}" for column in stmt.rows)
    text = f"WITH rows AS (SELECT {columns}) {text}" if stmt.rows else text
    params = dict.fromkeys(re.findall(r"(?<![:\w]):(\w+)", text), 1)
    plan = tx.fetch(statement("plan", f"EXPLAIN QUERY PLAN {text}"), params)
    found = [re.match(r"SCAN (?:TABLE )?(\w+)", row[3]) for row in plan]
    names = dict(re.findall(r"(?:FROM|JOIN) (\w+) (?:AS )?(\w)\b", text))
    aliases = {alias: table for table, alias in names.items()}
    tables = {aliases.get(match[1], match[1]) for match in found if match}
    return sorted(tables - SMALL - {"rows", "CONSTANT", "d"})


@pytest.mark.parametrize(("queries", "name"), STATEMENTS, ids=[name for _, name in STATEMENTS])
def test_a_look_up_goes_by_an_index(queries: Queries, name: str) -> None:
    db = open_database("sqlite:///:memory:")
    migrate(db, packages())
    assert db.read(lambda tx: scans(tx, queries[name])) == []
    db.close()


def test_a_statement_without_an_index_is_noticed() -> None:
    db = open_database("sqlite:///:memory:")
    migrate(db, packages())
    whole = statement("whole", "SELECT 1 FROM bus_event e WHERE e.tenant_id = :key")
    assert db.read(lambda tx: scans(tx, whole)) == ["bus_event"]
    db.close()
