"""No page of the console and no story reads a growing table as a whole on PostgreSQL, whatever its statistics say.

The statements of every page are taken as they are sent. Then the tables grow a thousandfold, behind the back of the
statistics, which still say that there are a few rows: as they do where events come faster than `ANALYZE`.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
import urllib3

from patra.attribution.storage.running_sums import MARKS, RunningSums
from patra.kernel.db import postgres
from patra.kernel.telemetry import setup_logging
from patra.web.console.pages import ROUTES
from tests.conftest import schema_of_its_own
from tests.e2e.console.world import World, world

KNOWN_ROWS = 50
"""What the statistics say."""
GROWN_ROWS = 5_000
GROWING = (
    "att_log", "att_decision", "att_closure", "att_reject", "att_billable", "ing_plan", "ing_task", "ing_task_run",
    "ing_task_run_batch", "ing_record", "ing_cursor_event", "bus_event", "bus_delivery", "att_status",
)  # fmt: skip
"""Tables that grow with the traffic."""
VALUES = {
    "text": "'x' || n",
    "bigint": "1000000 + n",
    "integer": "1",
    "smallint": "1",
    "bytea": "decode(md5(n::text), 'hex')",
    "double precision": "1.0",
}
CHOSEN = {
    "att_log": {"kind": "'batch'"},
    "att_closure": {"state": "'closed_success'", "due_at": "NULL"},
    "att_billable": {"status": "'committed'", "billable_type": "'billable_impression'"},
    "ing_plan": {"status_code": "'READY'", "operation_code": "'HARVEST'", "provenance_code": "'atomlike'"},
    "ing_task": {"status_code": "'SUCCEEDED'", "operation_code": "'HARVEST'", "provenance_code": "'atomlike'"},
    "ing_task_run": {"status_code": "'SUCCEEDED'", "operation_code": "'HARVEST'", "provenance_code": "'atomlike'"},
    "ing_task_run_batch": {"status_code": "'SUCCEEDED'", "error_level": "NULL", "provenance_code": "'atomlike'"},
    "bus_delivery": {"state": "'done'"},
}
"""What a filled column holds where the table asks for it, or where the usual row has it."""
Asked = dict[str, tuple[str, dict[str, Any]]]
"""Statements with their parameters, by text."""


def grow(
    connection: psycopg.Connection[Any],
    table: str,
    *,
    rows: int = GROWN_ROWS,
    chosen: Mapping[str, str] | None = None,
    known: Mapping[str, str] | None = None,
) -> None:
    """Rows for the planner alone, nobody reads them: a few when statistics are taken, then very many."""
    connection.execute(f"TRUNCATE {table}".encode())
    leaves = connection.execute(
        "SELECT c.oid::regclass::text FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid"
        " WHERE (c.oid = to_regclass(%(table)s) OR i.inhparent = to_regclass(%(table)s)) AND c.relkind = 'r'",
        {"table": table},
    ).fetchall()
    for (leaf,) in leaves:
        connection.execute(f"ALTER TABLE {leaf} SET (autovacuum_enabled = false)".encode())
    rules = connection.execute(
        "SELECT conname FROM pg_constraint WHERE conrelid = to_regclass(%s) AND contype IN ('c', 'f')", [table]
    ).fetchall()
    for (name,) in rules:
        connection.execute(f'ALTER TABLE {table} DROP CONSTRAINT "{name}"'.encode())
    columns = connection.execute(
        "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute"
        " WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped AND attgenerated = ''",
        [table],
    ).fetchall()
    usual = CHOSEN.get(table, {}) if chosen is None else chosen
    names = ", ".join(name for name, _ in columns)
    for first, last in ((1, KNOWN_ROWS), (KNOWN_ROWS + 1, rows)):
        held = {**usual, **(known or {})} if last == KNOWN_ROWS else usual
        values = ", ".join(held.get(name, VALUES[kind]) for name, kind in columns)
        numbers = f"generate_series({first}, {last}) n"
        connection.execute(f"INSERT INTO {table} ({names}) SELECT {values} FROM {numbers}".encode())
        if last == KNOWN_ROWS:
            connection.execute(f"ANALYZE {table}".encode())


def addresses(made: World) -> Iterator[str]:
    """Every page, with what it shows of this world, and the story of a key of each kind."""
    known = made.known
    named = {
        "source": "atomlike",
        "plan": known["plan"],
        "task": known["task"],
        "run": known["run"],
        "number": "1",
        "group": "search-index",
        "event_id": known["letter-0"],
        "type": "task.submitted",
    }
    for route in ROUTES:
        path = re.sub(r"{(\w+)(?::\w+)?}", lambda found: named.get(found[1], "x"), route.path)
        yield f"/console{path}"
    for query in ("attribution/events?app=shop&type=click", "attribution/closures?state=open", "ingest/tasks?status=FAILED",
                  "ingest/tasks?source=atomlike", "ingest/plans?source=atomlike", "ingest/errors?source=atomlike",
                  "attribution/rejects?batch=b-bad", "bus/dead-letters?group=mail-out"):  # fmt: skip
        yield f"/console/{query}"
    keys = [
        "b-1",
        "b-1/e-2",
        "e-2",
        "ref|ra",
        "ref|ra|billable_impression",
        "shop",
        "10.5555/boats.1",
        "trace-0",
        "k-0",
    ]
    for key in (
        *keys,
        known["plan"],
        known["task"],
        known["run"],
        f"{known['run']}/1",
        known["letter-0"],
        known["film"],
    ):
        yield f"/console/story?key={quote(key, safe='')}"


@pytest.fixture(scope="module")
def asked(postgres_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Asked]]:
    setup_logging(level="critical")
    found: Asked = {}
    folder = tmp_path_factory.mktemp("plans")
    with schema_of_its_own(postgres_server) as url, world(folder, url=url) as made:
        for sums in MARKS:
            RunningSums(made.patra.db, sums).catch_up()
        with pytest.MonkeyPatch.context() as patched:
            bind, place = postgres.bind, ""

            def noted(*given: Any) -> tuple[str, dict[str, Any]]:
                text, bound = bind(*given)
                found.setdefault(text, (place, bound))
                return text, bound

            patched.setattr(postgres, "bind", noted)
            http = urllib3.PoolManager(retries=False)
            for place in addresses(made):
                assert http.request("GET", made.url + place, redirect=False).status in {200, 303, 404}, place
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("SET session_replication_role = replica")  # no trigger counts what nobody reads
            for table in GROWING:
                grow(connection, table)
        yield url, found


def plans(url: str, asked: Asked) -> Iterator[tuple[str, str, str]]:
    """The place that asked, the statement and its plan."""
    with psycopg.connect(url) as connection:
        for text, (place, bound) in asked.items():
            if text.lstrip().upper().startswith(("SELECT", "WITH")) and "INSERT INTO" not in text:
                lines = connection.execute(f"EXPLAIN {text}".encode(), bound).fetchall()
                connection.rollback()
                yield place, text, "\n".join(line for (line,) in lines)


def test_no_page_reads_a_growing_table_as_a_whole(asked: tuple[str, Asked]) -> None:
    url, statements = asked
    scanned = re.compile(rf"Seq Scan on ({'|'.join(GROWING)})(?:_0)?\b")  # the partition that has rows
    found = [
        f"{place} reads {', '.join(sorted(set(scanned.findall(plan))))}:\n{text}\n{plan}"
        for place, text, plan in plans(url, statements)
        if scanned.search(plan)
    ]
    assert not found, f"{len(found)} of {len(statements)}\n\n" + "\n\n".join(found)


def test_the_pages_ask_about_every_growing_table_and_a_scan_would_be_noticed(asked: tuple[str, Asked]) -> None:
    url, statements = asked
    texts = " ".join(statements)
    assert [table for table in GROWING if table not in texts] == []
    whole: Asked = {"SELECT count(*) FROM att_log": ("nowhere", {})}
    [(_, _, plan)] = plans(url, whole)
    assert "Seq Scan on att_log_0" in plan or "Index Only Scan" in plan
