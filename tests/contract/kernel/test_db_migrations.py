"""Migrations: applied once, in order, never changed afterwards, and the same tables on both databases."""

import importlib
import itertools
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import patra
from patra.kernel.db import Database, migrate, open_database, pending_migrations
from patra.kernel.db.queries import statement
from patra.kernel.errors import MigrationMismatch, Permanent

Package = Callable[..., str]
_numbers = itertools.count()

SQLITE_COLUMNS = statement(
    "columns",
    'SELECT m.name, c.name, c.type, max(c."notnull", c.pk > 0) FROM sqlite_master m JOIN pragma_table_info(m.name) c '
    "WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'",
)
POSTGRES_COLUMNS = statement(
    "columns",
    "SELECT table_name, column_name, data_type, CASE is_nullable WHEN 'NO' THEN 1 ELSE 0 END "
    "FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name) "
    "WHERE table_schema = current_schema() AND table_type = 'BASE TABLE' "
    "AND NOT EXISTS (SELECT 1 FROM pg_inherits WHERE inhrelid = to_regclass(table_name))",
)
SQLITE_KEYS = statement(
    "keys",
    'SELECT m.name, i."unique", i.partial, '
    "(SELECT group_concat(coalesce(c.name, '?')) FROM pragma_index_info(i.name) c) "
    "FROM sqlite_master m JOIN pragma_index_list(m.name) i WHERE m.type = 'table' AND i.origin <> 'pk'",
)
POSTGRES_KEYS = statement(
    "keys",
    "SELECT t.relname, i.indisunique::int, (i.indpred IS NOT NULL)::int, "
    "(SELECT string_agg(coalesce(a.attname, '?'), ',' ORDER BY k.place) "
    " FROM unnest(i.indkey) WITH ORDINALITY AS k(number, place) "
    " LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.number) "
    "FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid "
    "WHERE t.relnamespace = current_schema()::regnamespace "
    "AND NOT t.relispartition "
    "AND NOT EXISTS (SELECT 1 FROM pg_constraint c WHERE c.conindid = i.indexrelid AND c.contype = 'p')",
)
POSTGRES_KEYS_ALONE = {("att_billable", 1, 0, "closure,billable_type"), ("att_closure", 0, 1, "?")}
"""SQLite fills `att_billing_key` behind the writer instead, and lists open closures by number, not by an expression."""
SQLITE_KEYS_ALONE = {("att_closure", 0, 1, "number")}
TYPES = {
    "text": "text",
    "bigint": "int",
    "integer": "int",
    "blob": "blob",
    "bytea": "blob",
    "double precision": "real",
}
TABLE = statement("table", "SELECT a FROM tst ORDER BY a")
CREATE = "CREATE TABLE tst (a BIGINT);"
SQLITE_ALONE = {("att_closure", "number"), ("att_closure_key", "key"), ("att_closure_key", "number")}
"""What PostgreSQL does not have: there closures are found by key (decision 0023)."""
PACKAGES = sorted(
    f"patra.{folder.parent.parent.name}"
    for folder in Path(patra.__path__[0]).glob("*/sql/migrations")
    if any(folder.glob("*.sql"))
)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Package:
    """Writes the migrations of a package; called again with `name`, those of its next version."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(files: dict[str, str], name: str = "") -> str:
        name = name or f"tst_package_{next(_numbers)}"
        folder = tmp_path / name / "sql" / "migrations"
        folder.mkdir(parents=True, exist_ok=True)
        (tmp_path / name / "__init__.py").touch()
        for old in folder.iterdir():
            old.unlink()
        for file, text in files.items():
            (folder / file).write_text(text, "utf-8")
        importlib.invalidate_caches()
        return name

    return write


def test_what_is_missing_is_applied_once_in_order(database: Database, package: Package):
    name = package({"0002_fill.sql": "INSERT INTO tst VALUES (1);", "0001_make.sql": CREATE})
    assert [m.number for m in pending_migrations(database, [name])] == [1, 2]
    assert [m.number for m in migrate(database, [name])] == [1, 2]
    assert migrate(database, [name]) == []
    package(
        {
            "0001_make.sql": CREATE,
            "0002_fill.sql": "INSERT INTO tst VALUES (1);",
            "0010_more.sql": "INSERT INTO tst VALUES (2);",
        },
        name,
    )
    assert [m.number for m in pending_migrations(database, [name])] == [10]
    assert [m.number for m in migrate(database, [name])] == [10]
    assert pending_migrations(database, [name]) == []
    assert database.read(lambda tx: tx.fetch(TABLE)) == [(1,), (2,)]


def test_an_index_that_was_built_ahead_is_taken_as_it_is(database: Database, package: Package):
    more = "-- one\nCREATE INDEX tst_by_a ON tst (a);\n-- no CREATE INDEX tst_by_a;\nCREATE UNIQUE INDEX tst_once ON tst (a) WHERE a > 0;"
    name = package({"0001_make.sql": CREATE})
    migrate(database, [name])
    database.run(lambda tx: tx.script("CREATE INDEX tst_by_a ON tst (a)"))  # an operator's; CONCURRENTLY on PostgreSQL
    package({"0001_make.sql": CREATE, "0002_more.sql": more}, name)
    assert [m.number for m in migrate(database, [name])] == [2]
    database.run(lambda tx: tx.insert("tst", [{"a": 1}]))
    with pytest.raises(Exception, match=r"tst_once|UNIQUE|unique"):  # the one that was not built ahead is there
        database.run(lambda tx: tx.insert("tst", [{"a": 1}]))


def test_a_unique_index_is_never_taken_as_it_is(database: Database, package: Package):
    name = package({"0001_make.sql": CREATE})
    migrate(database, [name])
    database.run(lambda tx: tx.script("CREATE INDEX tst_once ON tst (a)"))  # of that name, and not unique
    package({"0001_make.sql": CREATE, "0002_more.sql": "CREATE UNIQUE INDEX tst_once ON tst (a);"}, name)
    with pytest.raises(MigrationMismatch, match=r"migration_index_taken.*tst_once"):
        migrate(database, [name])
    assert len(pending_migrations(database, [name])) == 1
    database.run(lambda tx: tx.script("DROP INDEX tst_once"))
    assert [m.number for m in migrate(database, [name])] == [2]


def test_an_index_whose_building_failed_is_not_taken(postgres_url: str, package: Package):
    db = open_database(postgres_url)
    try:
        name = package({"0001_make.sql": CREATE})
        migrate(db, [name])
        db.run(lambda tx: tx.script("CREATE INDEX tst_by_a ON tst (a)"))
        failed = "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'tst_by_a'::regclass"
        db.run(lambda tx: tx.script(failed))  # what CREATE INDEX CONCURRENTLY leaves where it fails
        package({"0001_make.sql": CREATE, "0002_more.sql": "CREATE INDEX tst_by_a ON tst (a);"}, name)
        with pytest.raises(MigrationMismatch, match=r"migration_index_invalid.*tst_by_a"):
            migrate(db, [name])
        db.run(lambda tx: tx.script("DROP INDEX tst_by_a"))
        assert [m.number for m in migrate(db, [name])] == [2]
    finally:
        db.close()


def test_packages_are_applied_in_the_order_given(database: Database, package: Package):
    first, second = package({"0001_make.sql": CREATE}), package({"0001_fill.sql": "INSERT INTO tst VALUES (7);"})
    assert [m.package for m in migrate(database, [first, second])] == [first, second]
    assert database.read(lambda tx: tx.fetch(TABLE)) == [(7,)]


def test_a_migration_that_fails_leaves_nothing_behind(database: Database, package: Package):
    name = package(
        {"0001_make.sql": CREATE, "0002_wrong.sql": "INSERT INTO tst VALUES (1); CREATE TABEL x (a BIGINT);"}
    )
    with pytest.raises(Exception, match=r"(?i)syntax"):
        migrate(database, [name])
    assert len(pending_migrations(database, [name])) == 2
    package({"0001_make.sql": CREATE, "0002_right.sql": "INSERT INTO tst VALUES (1);"}, name)
    assert len(migrate(database, [name])) == 2


@pytest.mark.parametrize(
    ("then", "code"),
    [
        ({"0001_make.sql": CREATE + " ", "0003_fill.sql": "INSERT INTO tst VALUES (1);"}, "migration_changed"),
        ({"0001_make.sql": CREATE}, "migration_from_the_future"),
        ({}, "migration_from_the_future"),
        ({"0003_fill.sql": "INSERT INTO tst VALUES (1);"}, "migration_removed"),
        (
            {"0001_make.sql": CREATE, "0002_between.sql": "SELECT 1;", "0003_fill.sql": "INSERT INTO tst VALUES (1);"},
            "migration_out_of_order",
        ),
    ],
)
def test_what_was_applied_may_only_be_appended_to(
    database: Database, package: Package, then: dict[str, str], code: str
):
    name = package({"0001_make.sql": CREATE, "0003_fill.sql": "INSERT INTO tst VALUES (1);"})
    migrate(database, [name])
    package(then, name)
    for look in (migrate, pending_migrations):
        with pytest.raises(MigrationMismatch) as caught:
            look(database, [name])
        assert caught.value.code == code
        assert name in caught.value.detail


def test_two_migrations_of_one_number_are_refused(database: Database, package: Package):
    name = package({"0001_make.sql": CREATE, "0001_other.sql": "SELECT 1;"})
    with pytest.raises(MigrationMismatch, match="migration_number_twice"):
        migrate(database, [name])


def test_a_file_for_postgres_stands_in_for_the_shared_one(database: Database, package: Package):
    name = package(
        {
            "0001_make.sql": CREATE + "INSERT INTO tst VALUES (1);",
            "0001_make.postgres.sql": CREATE + "INSERT INTO tst VALUES (2);",
        }
    )
    assert len(migrate(database, [name])) == 1
    assert database.read(lambda tx: tx.fetch(TABLE)) == [(1 if database.dialect == "sqlite" else 2,)]


def test_several_statements_with_comments_and_semicolons_in_texts(database: Database, package: Package):
    text = """-- a comment; with a semicolon
CREATE TABLE tst (
  a BIGINT, -- the number; of what
  b TEXT DEFAULT 'x; y'
);

INSERT INTO tst (a) VALUES (1); INSERT INTO tst (a) VALUES (2);
/* the
   end; */
INSERT INTO tst (a, b) VALUES (3, '-- no comment;')"""
    migrate(database, [package({"0001_make.sql": text})])
    found = database.read(lambda tx: tx.fetch(statement("all", "SELECT a, b FROM tst ORDER BY a")))
    assert found == [(1, "x; y"), (2, "x; y"), (3, "-- no comment;")]


def test_many_that_migrate_at_once_apply_it_once(database_url: str, package: Package):
    name = package({"0001_make.sql": CREATE, "0002_fill.sql": "INSERT INTO tst VALUES (1);"})
    stores = [open_database(database_url) for _ in range(4)]
    applied: list[int] = []
    threads = [
        threading.Thread(target=lambda s=s: applied.append(len(migrate(s, ["patra.kernel", name])))) for s in stores
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(applied)[:3] == [0, 0, 0]
    assert len(applied) == 4
    assert stores[0].read(lambda tx: tx.fetch(TABLE)) == [(1,)]
    for store in stores:
        store.close()


def test_a_package_without_migrations_has_none(database: Database, package: Package):
    name = package({"README.md": "not a migration", "1_short.sql": "not one either"})
    assert migrate(database, [name]) == []


@pytest.mark.parametrize("name", PACKAGES)
def test_both_databases_end_with_the_same_tables(name: str, tmp_path: Path, postgres_url: str):
    packages = list(dict.fromkeys(["patra.kernel", name]))
    columns, keys = [], []
    for url, column_query, key_query in (
        (f"sqlite:///{tmp_path / 'patra.db'}", SQLITE_COLUMNS, SQLITE_KEYS),
        (postgres_url, POSTGRES_COLUMNS, POSTGRES_KEYS),
    ):
        db = open_database(url)
        migrate(db, packages)
        found = db.read(lambda tx, q=column_query: tx.fetch(q))
        columns.append(sorted((table, column, TYPES[kind.lower()], needed) for table, column, kind, needed in found))
        if db.dialect == "sqlite" and name == "patra.attribution":
            assert {column[:2] for column in columns[0]} > SQLITE_ALONE
            columns[0] = [column for column in columns[0] if column[:2] not in SQLITE_ALONE]
        found = set(db.read(lambda tx, q=key_query: tx.fetch(q)))
        if name == "patra.attribution":
            alone = POSTGRES_KEYS_ALONE if db.dialect == "postgres" else SQLITE_KEYS_ALONE
            assert found > alone
            found -= alone
        keys.append(sorted(found))
        db.close()
    assert columns[0] == columns[1]
    assert keys[0] == keys[1]
    assert len(columns[0]) > 20


def test_a_state_that_the_machine_does_not_know_is_refused_by_the_table(store: Database):
    with pytest.raises(Permanent, match="store_integrity"):
        store.run(
            lambda tx: tx.insert(
                "krn_outbox",
                [
                    {
                        "channel": "c",
                        "group_key": b"",
                        "message_key": "k",
                        "payload": b"",
                        "appended_at": 0,
                        "due_at": 0,
                        "status": "lost",
                    }
                ],
            )
        )
