"""The plain limit: the rows that the engine writes, batch by batch, written by a loop over a raw driver and nothing else.

In go batches of the usual traffic; the engine decides them once, on a store in memory, and every row that it leaves is
kept. Out comes how fast `sqlite3` and `psycopg` put those rows into empty tables of the same shape, durably, with as
many batches in a commit as the engine had.
"""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from urllib.parse import quote

import msgspec
import psycopg

from bench.attribution_traffic import EVENTS, filled, mark, templates
from patra.attribution.commit import commit
from patra.attribution.intake.batch import read_batch
from patra.attribution.storage.dedup_keys import Keys
from patra.kernel.clock import SystemClock
from patra.kernel.db import Database, Tx, migrate, open_database
from patra.kernel.db.queries import statement

PACKAGES = ["patra.kernel", "patra.attribution"]
Rows = dict[str, list[tuple[object, ...]]]


class Written(msgspec.Struct, kw_only=True):
    """Every row of some batches, by batch and table."""

    columns: dict[str, list[str]]
    batches: list[Rows]

    @property
    def rows_an_event(self) -> float:
        rows = sum(len(rows) for batch in self.batches for rows in batch.values())
        return rows / (len(self.batches) * EVENTS)


def written(batches: int, database: str) -> Written:
    """Decide batches and keep the rows that each of them leaves; dedup keys where this database has them."""
    db = open_database("sqlite:///:memory:")
    migrate(db, PACKAGES)
    tables = [name for (name,) in _ask(db, "SELECT name FROM sqlite_master WHERE type = 'table'")]
    tables = [name for name in tables if (name.startswith("att_") and name != "att_mark") or name == "krn_ledger"]
    columns = {table: [row[1] for row in _ask(db, f"PRAGMA table_info({table})")] for table in tables}
    bodies = templates()
    now = SystemClock().now()
    found: list[Rows] = []
    numbers = count(1)
    if database == "postgres":
        columns["att_closure"].remove("number")
    for number in range(batches):
        body = filled(bodies[number % len(bodies)], mark(0xFFFF, number + 1), mark(0xFFFE, number))
        keys = Keys()
        commit(db, [read_batch(body, now + number)], keys=keys)
        while database == "postgres" and db.run(keys.carry):
            pass
        rows = {table: _ask(db, f"SELECT * FROM {table}") for table in tables}
        opened = [row[1:] for row in rows["att_closure"]]  # SQLite numbers closures, PostgreSQL has none
        numbered = [(next(numbers), *row) for row in opened] if database == "sqlite" else opened
        found.append({table: some for table, some in {**rows, "att_closure": numbered}.items() if some})
        db.run(lambda tx, rows=rows: _emptied(tx, [table for table, some in rows.items() if some]))
    db.close()
    return Written(columns=columns, batches=found)


def _ask(db: Database, text: str) -> list[tuple[object, ...]]:
    return db.run(lambda tx: tx.fetch(statement("ask", text)))


def _emptied(tx: Tx, tables: list[str]) -> None:
    for table in tables:
        tx.execute(statement("empty", f"DELETE FROM {table}"))


def _commits(rows: Written, group: int) -> Iterator[Rows]:
    """The rows of as many batches as one commit takes, table by table, each set in the order of its keys."""
    for at in range(0, len(rows.batches), group):
        together: Rows = {}
        for batch in rows.batches[at : at + group]:
            for table, some in batch.items():
                together.setdefault(table, []).extend(some)
        yield {table: sorted(some, key=lambda row: row[:2]) for table, some in together.items()}


def sqlite_limit(rows: Written, folder: Path, group: int) -> float:
    """Events a second through `executemany`, WAL and FULL."""
    path = folder / "limit.db"
    db = open_database(f"sqlite:///{path}")
    migrate(db, PACKAGES)
    db.close()
    commits = list(_commits(rows, group))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "cache_size=-65536", "wal_autocheckpoint=1000"):
            connection.execute(f"PRAGMA {pragma}")
        began = time.perf_counter()
        for one in commits:
            connection.execute("BEGIN IMMEDIATE")
            for table, some in one.items():
                marks = ",".join("?" * len(rows.columns[table]))
                connection.executemany(f"INSERT INTO {table} VALUES ({marks})", some)
            connection.execute("COMMIT")
        seconds = time.perf_counter() - began
    for file in folder.glob("limit.db*"):
        file.unlink()
    return len(rows.batches) * EVENTS / seconds


def row_a_thing(folder: Path, events: int, group: int) -> float:
    """Events a second where each leaves a dedup key and three rows of 300 bytes, as a plain service has them."""
    path = folder / "things.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "cache_size=-65536", "wal_autocheckpoint=1000"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("CREATE TABLE key (key BLOB PRIMARY KEY) WITHOUT ROWID")
        for table in ("fact", "audit", "record"):
            connection.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, body BLOB)")
        size = group * EVENTS
        commits = [
            (sorted((os.urandom(16),) for _ in range(size)), [(os.urandom(300),) for _ in range(size)])
            for _ in range(events // size)
        ]
        began = time.perf_counter()
        for keys, rows in commits:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT INTO key VALUES (?)", keys)
            for table in ("fact", "audit", "record"):
                connection.executemany(f"INSERT INTO {table} (body) VALUES (?)", rows)
            connection.execute("COMMIT")
        seconds = time.perf_counter() - began
    for file in folder.glob("things.db*"):
        file.unlink()
    return len(commits) * size / seconds


def postgres_limit(rows: Written, server: str, group: int, *, copy: bool = False) -> float:
    """Events a second through psycopg's `executemany` (pipelined, prepared), or through COPY."""
    with schema(server, "attribution_limit") as url:
        db = open_database(url)
        migrate(db, PACKAGES)
        db.close()
        commits = list(_commits(rows, group))
        with psycopg.connect(url) as connection:
            began = time.perf_counter()
            for one in commits:
                with connection.cursor() as cursor:
                    for table, some in one.items():
                        columns = rows.columns[table]
                        if copy:
                            with cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as copier:
                                for row in some:
                                    copier.write_row(row)
                        else:
                            marks = ",".join(["%s"] * len(columns))
                            cursor.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", some)
                connection.commit()
            seconds = time.perf_counter() - began
    return len(rows.batches) * EVENTS / seconds


@contextmanager
def schema(server: str, name: str) -> Iterator[str]:
    """A schema of its own on a server, gone afterwards; gives the URL that leads to it."""
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")
        admin.execute(f"CREATE SCHEMA {name}")
        try:
            yield f"{server}?options={quote(f'-csearch_path={name}')}"
        finally:
            admin.execute(f"DROP SCHEMA {name} CASCADE")


class Disk(msgspec.Struct, kw_only=True):
    """What `fdatasync` of some freshly written bytes costs, in milliseconds."""

    size: int
    p50: float
    p99: float


def fdatasync(folder: Path, size: int = 65536, times: int = 200) -> Disk:
    """Append and sync, again and again."""
    path = folder / "fdatasync"
    data = os.urandom(size)
    spent: list[float] = []
    handle = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    try:
        for _ in range(times):
            os.write(handle, data)
            began = time.perf_counter()
            os.fdatasync(handle)
            spent.append(1000 * (time.perf_counter() - began))
    finally:
        os.close(handle)
        path.unlink()
    spent.sort()
    return Disk(size=size, p50=spent[times // 2], p99=spent[int(times * 0.99)])
