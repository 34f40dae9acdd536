"""How PostgreSQL finds what a commit waits for, while it knows nothing of the tables: by key, never by reading them whole.

A table that was never analysed is the usual one: it has just been made, or grows faster than statistics are taken.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from patra.attribution.storage.sql import Q
from patra.kernel.canonical import key16
from patra.kernel.db import Database, Tx, migrate, open_database
from patra.kernel.db.queries import Statement, statement
from tests.unit.attribution.said import PACKAGES

KEYS = [key16(str(n)) for n in range(1600)]

FILL = {
    "att_closure": """INSERT INTO att_closure (key, app_id, state, opened_at, body)
        SELECT substring(sha256(n::text::bytea) FROM 1 FOR 16), 'app', 'closed_success', 1, '' FROM generate_series(1, 20000) n""",
    "att_past": """INSERT INTO att_past (key, cycle)
        SELECT substring(sha256(n::text::bytea) FROM 1 FOR 16), 1 FROM generate_series(1, 20000) n""",
    "krn_outbox": """INSERT INTO krn_outbox (channel, group_key, message_key, payload, appended_at, due_at)
        SELECT 'attribution.archive', substring(sha256(n::text::bytea) FROM 1 FOR 16), n::text, '', 1, 1
        FROM generate_series(1, 20000) n""",
}

SUMMED = ("att_billable", "att_placement")

ASKED: list[tuple[str, str, dict[str, Any], list[Any]]] = [
    ("closures_by_key", "att_closure", {}, [(key,) for key in KEYS]),
    ("closures_by_key", "att_closure", {}, [(KEYS[0],)]),
    ("past_cycles", "att_past", {}, [(key,) for key in KEYS]),
    ("underway", "krn_outbox", {"channel": "attribution.archive"}, [(key, str(n)) for n, key in enumerate(KEYS[:100])]),
]


@pytest.fixture
def db(postgres_url: str) -> Iterator[Database]:
    database = open_database(postgres_url)
    migrate(database, PACKAGES)
    database.run(lambda tx: [tx.script(f"ALTER TABLE {name} SET (autovacuum_enabled = false)") for name in FILL])
    yield database
    database.close()


def plan(tx: Tx, name: str, params: dict[str, Any], rows: list[Any]) -> str:
    """What PostgreSQL would do for a statement with these rows."""
    known = Q[name]
    asked = Statement(name=f"plan of {name}", text=known.text, rows=known.rows)
    asked.__dict__.update(postgres=f"EXPLAIN {known.postgres}", postgres_one=f"EXPLAIN {known.postgres_one}")
    return "\n".join(line for (line,) in tx.fetch(asked, params, rows=rows or None))


@pytest.mark.parametrize("filled", [False, True])
@pytest.mark.parametrize(("name", "table", "params", "rows"), ASKED)
def test_no_table_without_statistics_is_read_as_a_whole(
    db: Database, name: str, table: str, params: dict[str, Any], rows: list[Any], filled: bool
):
    if filled:
        db.run(lambda tx: tx.script(FILL[table]))
    found = db.run(lambda tx: plan(tx, name, params, rows))
    assert f"Seq Scan on {table}" not in found, found
    assert "Index" in found, found
    known = statement("known", f"SELECT count(*) FROM pg_stats WHERE tablename = '{table}'")
    assert db.read(lambda tx: tx.fetch(known)) == [(0,)]


@pytest.mark.parametrize("analysed", [False, True])
@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("fresh_items", {"after": 39_000, "limit": 128}),
        ("gaps_filled", {}),
        ("items_without_a_line", {"first": 39_000, "last": 39_500, "since": 0}),
    ],
)
def test_what_the_log_says_of_some_items_is_looked_up_by_their_numbers(
    db: Database, name: str, params: dict[str, Any], analysed: bool
):
    """Joined, the log was read from its first line on for each run of the index, and for each page of a check."""

    def fill(tx: Tx) -> None:
        tx.script("""INSERT INTO att_log (place, at, kind, app_id, batch_id, body)
            SELECT 0, n, 'batch', 'app', 'b' || n, 'a body' FROM generate_series(1, 40000) n""")
        tx.script(
            "INSERT INTO att_decision (item, at, archived, body) SELECT n, n, 1, '' FROM generate_series(1, 40000) n"
        )
        tx.script("INSERT INTO att_gap (item, seen_at) VALUES (39900, 1)")
        if analysed:
            tx.script("ANALYZE att_log; ANALYZE att_decision")

    db.run(fill)
    found = db.read(lambda tx: plan(tx, name, params, []))
    assert "Merge" not in found, found
    assert "Hash" not in found, found
    assert "Seq Scan on att_log_0" not in found, found


def test_closures_that_are_due_are_found_by_their_deadline(db: Database):
    db.run(lambda tx: tx.script(FILL["att_closure"]))
    for name, params in (("due_until", {"now": 1, "limit": 1000}), ("closures_due", {"now": 1})):
        found = db.run(lambda tx, name=name, params=params: plan(tx, name, params, []))
        assert "Seq Scan" not in found, found


@pytest.mark.parametrize("analysed", [False, True])
@pytest.mark.parametrize(("state", "name"), [("open", "open"), ("closed_failure", "failed")])
def test_open_and_failed_closures_are_listed_past_all_that_succeeded(
    db: Database, analysed: bool, state: str, name: str
):
    """Also when the statistics are of a time when all were in that state: then the primary key would do as well."""
    before = FILL["att_closure"].replace("closed_success", state)
    texts = [before, "ANALYZE att_closure", "UPDATE att_closure SET state = 'closed_success'"] if analysed else []
    for text in [*texts, "DELETE FROM att_closure", FILL["att_closure"]]:
        db.run(lambda tx, text=text: tx.script(text))
    found = db.run(lambda tx: plan(tx, f"{name}_closures_page", {"key": b"", "limit": 50}, []))
    assert f"att_closure_{name}" in found, found
    assert not any(other in found for other in ("Seq Scan", "att_closure_pkey", "att_closure_due")), found


def test_placements_of_sums_are_looked_up_by_key_however_many_sums_and_opportunities_there_are(db: Database):
    db.run(
        lambda tx: [
            tx.script(text)
            for text in (
                """INSERT INTO att_opportunity (key, placement)
                   SELECT decode(md5(CAST(i AS text)), 'hex'), 'pl' FROM generate_series(1, 20000) i""",
                """INSERT INTO att_sum_placement (fact_hour, app_id, billable_type, placement, opportunity, facts)
                   SELECT i, 'app', 'billable_click', 'pl',
                     CASE WHEN i % 3 = 0 THEN decode(md5(CAST(i AS text)), 'hex') ELSE '' END, 1
                   FROM generate_series(1, 20000) i""",
                "ANALYZE att_opportunity",
                "ANALYZE att_sum_placement",
            )
        ]
    )
    found = db.run(lambda tx: plan(tx, "sums_by_placement", {"first": 0, "last": 30_000}, []))
    assert "Seq Scan on att_opportunity" not in found, found
    assert "att_opportunity_pkey" in found, found


@pytest.mark.parametrize("analysed", [False, True])
def test_a_page_of_sums_reads_the_placements_that_wait_once_whatever_the_statistics_say(db: Database, analysed: bool):
    """Also when they are of a time when there was hardly a fact: a page taken for one row would be walked for each."""
    facts = """INSERT INTO att_billable
          (decision_id, app_id, billable_type, opportunity, fact_hour, fact_at, closure, status)
        SELECT n, 'app', 'billable_click', substring(sha256(n::text::bytea) FROM 1 FOR 16), 1, 1, n::text::bytea, 'committed'
        FROM generate_series({}, {}) n"""
    placements = """INSERT INTO att_placement (decision_id, key, placement)
        SELECT n, substring(sha256(n::text::bytea) FROM 1 FOR 16), 'pl' FROM generate_series({}, {}) n"""
    few = [text.format(1, 5) for text in (facts, placements)]
    learnt = [*few, "ANALYZE att_billable", "ANALYZE att_placement"] if analysed else few
    db.run(lambda tx: [tx.script(f"ALTER TABLE {name} SET (autovacuum_enabled = false)") for name in SUMMED])
    for text in [*learnt, *(text.format(6, 20_000) for text in (facts, placements))]:
        db.run(lambda tx, text=text: tx.script(text))
    asked = {"after": 10_000, "bound": 20_000, "complete": 20_000}

    def planned_and_summed(tx: Tx) -> tuple[str, list[Any]]:
        tx.fetch(Q["joins_by_hash"])
        found = plan(tx, "placement_facts_to_sum", asked, [])
        return found, tx.fetch(Q["placement_facts_to_sum"], asked)

    found, sums = db.read(planned_and_summed)
    assert "Nested Loop" not in found, found
    assert found.count("Seq Scan on att_placement") <= 1, found
    assert [(*row[:3], bytes(row[3]), *row[4:]) for row in sums] == [(1, "app", "billable_click", b"pl", None, 10_000)]
