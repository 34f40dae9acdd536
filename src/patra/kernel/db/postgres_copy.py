"""Tables of PostgreSQL as COPY writes and reads them: text, one row per line, as of the transaction's one snapshot.

The tables are those of the first schema of the search path. The last value of a sequence is outside any snapshot: it is
read after the snapshot was taken, so it is never behind a row in it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from graphlib import TopologicalSorter
from typing import cast

import msgspec
from psycopg.sql import SQL, Composed, Identifier

from patra.kernel.db.api import Tx
from patra.kernel.db.pool import Connection
from patra.kernel.db.postgres import PostgresTx
from patra.kernel.db.queries import statement

_TABLES = statement(
    "copied_tables",
    "SELECT c.relname, array_agg(a.attname::text ORDER BY a.attnum) FROM pg_class c "
    "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' "
    "WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition "
    "GROUP BY c.relname ORDER BY c.relname",
)
_REFERENCES = statement(
    "copied_references",
    "SELECT DISTINCT c.conrelid::regclass::text, c.confrelid::regclass::text FROM pg_constraint c "
    "WHERE c.connamespace = current_schema()::regnamespace AND c.contype = 'f' AND c.conrelid <> c.confrelid",
)
_SEQUENCES = statement(
    "copied_sequences",
    "SELECT t.relname, a.attname, s.relname FROM pg_depend d "
    "JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S' JOIN pg_class t ON t.oid = d.refobjid "
    "JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = d.refobjsubid "
    "WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('i', 'a') "
    "AND t.relnamespace = current_schema()::regnamespace ORDER BY t.relname, a.attname",
)
_RELATIONS = statement(
    "relations",
    "SELECT c.relname FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND NOT EXISTS "
    "(SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e') "
    "ORDER BY c.relname",
)
_NO_TIMEOUT = b"SET LOCAL statement_timeout = 0"  # a table takes as long as it is long


class CopiedTable(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    columns: list[str]


def relation_names(tx: Tx) -> list[str]:
    """Whatever there is in the schema: tables, views, sequences; not those of an extension."""
    return [name for (name,) in tx.fetch(_RELATIONS)]


def tables(tx: Tx, names: Collection[str]) -> tuple[list[CopiedTable], list[str]]:
    """The tables of some names, one that is referred to before those that refer to it; and the names of all others."""
    there = {name: CopiedTable(name=name, columns=columns) for name, columns in tx.fetch(_TABLES)}
    found = {name: table for name, table in there.items() if name in names}
    order = TopologicalSorter[str](dict.fromkeys(found, ()))
    for name, other in tx.fetch(_REFERENCES):
        if name in found and other in found:
            order.add(name, other)
    return [found[name] for name in order.static_order()], sorted(there.keys() - found.keys())


def copy_out(tx: Tx, table: CopiedTable, write: Callable[[bytes], object]) -> None:
    connection = _connection(tx)
    connection.execute(_NO_TIMEOUT)
    with connection.cursor().copy(_copy_out(table)) as copy:
        for block in copy:
            write(bytes(block))


def copy_in(tx: Tx, table: CopiedTable, blocks: Iterable[bytes]) -> None:
    """Fill an empty table; triggers do not run, since what they wrote is copied as well."""
    connection, name = _connection(tx), Identifier(table.name)
    connection.execute(_NO_TIMEOUT)
    connection.execute(SQL("ALTER TABLE {} DISABLE TRIGGER USER").format(name))
    with connection.cursor().copy(_copy_in(table)) as copy:
        for block in blocks:
            copy.write(block)
    connection.execute(SQL("ALTER TABLE {} ENABLE TRIGGER USER").format(name))
    connection.execute(SQL("ANALYZE {}").format(name))


def empty_tables(tx: Tx, found: Sequence[CopiedTable]) -> None:
    names = SQL(", ").join(Identifier(table.name) for table in found)
    _connection(tx).execute(SQL("TRUNCATE {}").format(names))


def sequences(tx: Tx, names: Collection[str]) -> dict[str, int]:
    """The number that each column of its own numbers gave last in some tables, by `table.column`; 0 where none."""
    connection, found = _connection(tx), dict[str, int]()
    for table, column, sequence in tx.fetch(_SEQUENCES):
        if table not in names:
            continue
        question = SQL("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {}").format(Identifier(sequence))
        found[f"{table}.{column}"] = cast("tuple[int]", connection.execute(question).fetchone())[0]
    return found


def set_sequences(tx: Tx, last: Mapping[str, int]) -> None:
    """Let every column of its own numbers go on behind the number that it gave last."""
    connection = _connection(tx)
    for table, column, sequence in tx.fetch(_SEQUENCES):
        if number := last.get(f"{table}.{column}"):
            connection.execute(b"SELECT setval(%s::regclass, %s)", (sequence, number))


def _copy_out(table: CopiedTable) -> Composed:
    """A query, since COPY of a table reads none of its partitions."""
    columns = SQL(", ").join(map(Identifier, table.columns))
    rows = SQL("SELECT {} FROM {}").format(columns, Identifier(table.name))
    return SQL("COPY ({}) TO STDOUT WITH (FORMAT text, ENCODING 'UTF8')").format(rows)


def _copy_in(table: CopiedTable) -> Composed:
    columns = SQL(", ").join(map(Identifier, table.columns))
    return SQL("COPY {} ({}) FROM STDIN WITH (FORMAT text, ENCODING 'UTF8')").format(Identifier(table.name), columns)


def _connection(tx: Tx) -> Connection:
    if not isinstance(tx, PostgresTx):
        raise TypeError("only tables of PostgreSQL are copied so")
    tx.settle()
    return tx.connection
