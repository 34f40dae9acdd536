"""No loop and no step of the work walks a growing table on PostgreSQL, whatever its statistics say.

What a world sends to the database while it is filled (batches, a harvest, events, a film), and then in a turn of every
loop, is taken as it is sent, changes too. The tables then grow behind the back of the statistics, as in
`test_console_plans`, by rows that nobody waits for: done, of three days ago, neither leased nor due.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import psycopg
import pytest

from patra.kernel.clock import DAY, SystemClock
from patra.kernel.db import postgres
from patra.kernel.db.queries import Statement
from patra.kernel.telemetry import setup_logging
from tests.conftest import schema_of_its_own
from tests.contract.app.test_console_plans import CHOSEN, GROWING, VALUES, grow
from tests.e2e.console.world import world

GROWN_ROWS = 20_000
ALSO_GROWING = (
    "att_drop", "att_opportunity", "att_past", "att_placement", "att_record_key", "bus_dead_letter", "bus_hop",
    "ing_plan_slice", "ing_quarantine", "ing_record_identifier", "ing_window_ledger", "krn_ledger", "krn_move",
    "krn_outbox", "stu_work",
)  # fmt: skip
TABLES = (*GROWING, *ALSO_GROWING)
AN_INSTANT = re.compile(r"(^|_)(at|until|since|time)$")
OF_WORK = {
    "att_billable": {"decision_id": "-n"},  # summed long ago
    "att_placement": {"decision_id": "-n"},
    "bus_dead_letter": {"state": "'discarded'"},
    "ing_quarantine": {"status_code": "'SETTLED'"},
    "ing_task": {"lease_owner": "NULL", "leased_until": "NULL"},
    "krn_outbox": {"status": "'pending'", "failed_at": "NULL", "channel": "'another'"},
    "stu_work": {"status": "'done'", "lease_owner": "NULL", "leased_until": "NULL"},
}
HOT = {
    "att_closure": {"state": "'open'", "due_at": "1"},
    "bus_dead_letter": {"state": "'open'"},
    "bus_delivery": {"group_id": "1", "due_at": "1", "attempts": "1", "state": "'held'"},
    "ing_plan": {"status_code": "'SLICING'"},
    "ing_quarantine": {"status_code": "'OPEN'"},
    "ing_task": {"status_code": "'QUEUED'", "lease_owner": "'w'", "leased_until": "1", "plan_id": "'p'"},
    "ing_task_run": {"status_code": "'RUNNING'"},
    "krn_outbox": {"status": "'refused'", "failed_at": "1"},
    "stu_work": {"status": "'queued'", "lease_owner": "'w'", "leased_until": "1"},
}
"""What the rows held when statistics were taken: each one waited, was leased, and was due."""
WALKS = {
    "drops_between": "verify: its range, here all there is",
    "lookup:att_drop:key,count:key": "verify: a page of keys costs more than all of so small a table",
    "placement_facts_to_sum": "reads the placements that wait, once for a page of facts",
}
"""Statements that do walk, and why that may stay; a statement that is fixed leaves the list."""
PARTIAL = "SELECT indexrelid::regclass::text FROM pg_index WHERE indpred IS NOT NULL"
Asked = dict[str, tuple[str, str, dict[str, Any]]]
"""Where a statement was asked, its name and its parameters, by text."""


class Usual(dict[str, str]):
    """What a column holds unless something is said of it: instants of three days ago."""

    def get(self, name: str, default: Any = None) -> Any:
        ago = f"{SystemClock().now() - 3 * DAY} + n"
        return super().get(name, ago if AN_INSTANT.search(name) and default == VALUES["bigint"] else default)


@pytest.fixture(scope="module")
def asked(postgres_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Asked]]:
    setup_logging(level="critical")
    found: Asked = {}
    folder = tmp_path_factory.mktemp("plans")
    with schema_of_its_own(postgres_server) as url:
        with pytest.MonkeyPatch.context() as patched:
            bind, place = postgres.bind, "the work"

            def noted(stmt: Statement, *given: Any) -> tuple[str, dict[str, Any]]:
                text, bound = bind(stmt, *given)
                found.setdefault(text, (place, stmt.name, bound))
                return text, bound

            patched.setattr(postgres, "bind", noted)
            with world(folder, url=url) as made:
                for loop in made.patra.loops:
                    place = loop.name
                    loop.run_once()
        yield url, found


def walks(node: dict[str, Any], partial: Collection[str], *, bounded: bool = False) -> Iterator[str]:
    """Tables that a plan reads from one end to the other; an index of the few that wait is no such table."""
    kind, table = node["Node Type"], re.sub(r"_0$", "", node.get("Relation Name", ""))  # the partition that has rows
    whole = kind == "Seq Scan" or (
        kind.startswith("Index") and "Index Cond" not in node and not bounded and node["Index Name"] not in partial
    )
    if table in TABLES and whole:
        yield f"{kind} on {table}"
    for below in node.get("Plans", []):
        yield from walks(below, partial, bounded=kind == "Limit" or (bounded and kind not in {"Sort", "Hash"}))


def plan(connection: psycopg.Connection[Any], text: str, bound: dict[str, Any]) -> dict[str, Any]:
    ((found,),) = connection.execute(f"EXPLAIN (FORMAT JSON) {text}".encode(), bound).fetchall()
    connection.rollback()
    return found[0]["Plan"]


def grow_behind_statistics(url: str, known: Mapping[str, Mapping[str, str]]) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")  # no trigger counts what nobody reads
        for table in TABLES:
            chosen = Usual({**CHOSEN.get(table, {}), **OF_WORK.get(table, {})})
            grow(connection, table, rows=GROWN_ROWS, chosen=chosen, known=known.get(table))


@pytest.mark.parametrize("statistics", ["few", "hot"])
def test_no_loop_and_no_step_walks_a_growing_table(asked: tuple[str, Asked], statistics: str) -> None:
    url, statements = asked
    grow_behind_statistics(url, HOT if statistics == "hot" else {})
    with psycopg.connect(url) as connection:
        partial = {name for (name,) in connection.execute(PARTIAL).fetchall()}
        found = {
            name: f"{place}: {', '.join(walked)}\n{text}"
            for text, (place, name, bound) in statements.items()
            if (walked := sorted(set(walks(plan(connection, text, bound), partial))))
        }
        assert set(walks(plan(connection, "SELECT count(key) FROM krn_ledger", {}), partial))
    new = {name: told for name, told in found.items() if name not in WALKS}
    assert not new, f"{len(new)} of {len(statements)}\n\n" + "\n\n".join(new.values())


def test_what_is_done_each_second_and_for_each_event_is_among_what_was_asked(asked: tuple[str, Asked]) -> None:
    names = {name for _, name, _ in asked[1].values()}
    assert {
        "closures_by_key", "deliveries_due", "something_due", "work_waits", "take", "expire", "work_expired", "page_to_sum",
    } <= names  # fmt: skip
