"""SQLite: one file, WAL, one writer at a time, any number of readers; durable at commit (`synchronous=FULL`).

A busy writer's pages are carried from the WAL into the file by a background thread, so that a commit need not wait for
it; the writer does it itself only when the WAL has grown long all the same.
"""

import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from patra.kernel.db.api import Database, Over, Params, Row, TransactionGuard, Tx, identifier, identifiers
from patra.kernel.db.queries import ColumnType, Statement, not_a_statement
from patra.kernel.errors import PatraError, Permanent, StoreBusy, StoreUnavailable, Transient
from patra.kernel.safety.threads import start_thread
from patra.kernel.telemetry import get_logger

log = get_logger()

T = TypeVar("T")

LARGEST_CHUNK = 256  # rows of one VALUES list: each costs the interpreter's lock once, which a server has to wait for
MOST_VARIABLES = 30_000  # SQLite takes 32,766
WAIT_SECONDS = 10.0  # for another process to let go of the store
ATTEMPTS = 6
CHANGES_BEHIND = 2000  # rows changed after which the thread behind the writer is woken
LONGEST_WAL = 8000  # pages, after which the writer waits


class Owner(Protocol):
    """What a transaction keeps its built statements in."""

    built: dict[str, Statement]


class SQLiteTx(Tx):
    dialect = "sqlite"

    def __init__(self, connection: sqlite3.Connection, owner: "Owner") -> None:
        self._connection = connection
        self._owner = owner

    def end(self) -> None:
        self._connection = cast("sqlite3.Connection", Over())

    def fetch(self, stmt: Statement, params: Params | None = None, *, rows: Sequence[Row] | None = None) -> list[Row]:
        if rows is None:
            return self._one(stmt, params).fetchall()
        found: list[Row] = []
        for cursor in self._chunks(stmt, params, rows):
            found += cursor.fetchall()
        return found

    def fetch_dicts(
        self, stmt: Statement, params: Params | None = None, *, rows: Sequence[Row] | None = None
    ) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for cursor in [self._one(stmt, params)] if rows is None else self._chunks(stmt, params, rows):
            names = [column[0] for column in cursor.description]
            found += [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        return found

    def execute(self, stmt: Statement, params: Params | None = None, *, rows: Sequence[Row] | None = None) -> int:
        # Not the cursor's rowcount: Python leaves it at -1 for whatever begins with WITH.
        before = self._connection.total_changes
        for cursor in [self._one(stmt, params)] if rows is None else self._chunks(stmt, params, rows):
            cursor.fetchall()
        return self._connection.total_changes - before

    def insert_tuples(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        marks = ",".join("?" * len(columns))
        text = f"INSERT INTO {identifier(table)} ({identifiers(columns)}) VALUES ({marks})"
        self._connection.executemany(text, rows)

    def script(self, text: str) -> None:
        self._connection.execute(text)

    @contextmanager
    def savepoint(self) -> Generator[None]:
        self._connection.execute("SAVEPOINT inner_step")
        try:
            with translate_errors():
                yield
        except BaseException:
            if self._connection.in_transaction:  # some failures, such as a full disk, end the whole transaction
                self._connection.execute("ROLLBACK TO inner_step")
                self._connection.execute("RELEASE inner_step")
            raise
        self._connection.execute("RELEASE inner_step")

    def server_now(self) -> int:
        return time.time_ns() // 1000

    def column_types(self, table: str) -> Mapping[str, ColumnType]:
        info = self._connection.execute("SELECT name, type FROM pragma_table_info(?)", (table,)).fetchall()
        if not info:
            raise Permanent("store_no_such_table", f"there is no table {table!r}")
        return {name: _column_type(declared) for name, declared in info}

    def built_statements(self) -> dict[str, Statement]:
        return self._owner.built

    def _one(self, stmt: Statement, params: Params | None) -> sqlite3.Cursor:
        try:
            _, text, names = stmt.sqlite
        except AttributeError:
            raise not_a_statement(stmt) from None
        return self._connection.execute(text, [params[name] for name in names] if params else ())

    def _chunks(self, stmt: Statement, params: Params | None, rows: Sequence[Row]) -> Generator[sqlite3.Cursor]:
        """Chunks are powers of two, so that a handful of prepared texts serves sets of every size."""
        before, after, names = stmt.sqlite
        texts = stmt.sqlite_texts
        fixed = [params[name] for name in names] if params else []
        width = len(stmt.rows)
        largest = LARGEST_CHUNK
        while largest * width > MOST_VARIABLES:
            largest //= 2
        done, total = 0, len(rows)
        while done < total:
            size = min(largest, 1 << ((total - done).bit_length() - 1))
            if (text := texts.get(size)) is None:
                marks = f"({','.join('?' * width)})"
                text = texts[size] = before + ",".join([marks] * size) + after
            values: list[Any] = list(chain.from_iterable(rows[done : done + size]))
            done += size
            yield self._connection.execute(text, values + fixed)


class SQLiteDatabase(Database):
    """One connection writes, behind a lock; readers have their own. An in-memory store has one connection for both."""

    dialect = "sqlite"

    def __init__(self, path: str, *, synchronous: str = "FULL", wait: float = WAIT_SECONDS) -> None:
        self.url = f"sqlite:///{path}"
        self.built: dict[str, Statement] = {}
        self._path = path
        self._synchronous = self._waits = synchronous
        self._wait = wait
        self._memory = path == ":memory:"
        self._lock = threading.Lock()
        self._own = TransactionGuard()
        self._readers: list[sqlite3.Connection] = []
        self._closed = False
        self._carried = 0
        self._behind = Checkpointer(self._connect)
        if not self._memory:
            _make_folder(Path(path).absolute().parent)
            _claim_privately(path)
        self._writer = self._connect()

    def run(self, work: Callable[[Tx], T], *, durable: bool = True, seconds: float | None = None) -> T:
        patience = time.monotonic() + min(self._wait, self._wait if seconds is None else seconds)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                with self._own(), self._lock:
                    tx, result = self._commit(work, durable)
            except StoreBusy:
                if attempt == ATTEMPTS or time.monotonic() > patience:
                    raise
                time.sleep(random.random() * 0.01 * 2**attempt)
            else:
                tx.note_commit()
                return result
        raise AssertionError("unreachable")

    def read(self, work: Callable[[Tx], T]) -> T:
        with self._own():
            if self._memory:
                with self._lock:
                    self._check_open()
                    self._writer.execute("PRAGMA query_only=ON")
                    try:
                        return self._look(self._writer, work)
                    finally:
                        self._writer.execute("PRAGMA query_only=OFF")
            connection = self._reader()
            try:
                return self._look(connection, work)
            finally:
                self._give_back(connection)

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._behind.close()
            self._writer.close()
        self._close_readers()

    def _commit(self, work: Callable[[Tx], T], durable: bool) -> tuple[Tx, T]:
        self._check_open()
        connection = self._writer
        tx = SQLiteTx(connection, self)
        with translate_errors():
            self._wait_for_disk(connection, wait=durable)
            connection.execute("BEGIN IMMEDIATE")
            try:
                result = work(tx)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            finally:
                tx.end()
        # It is committed: nothing that follows may say otherwise.
        if not self._memory and connection.total_changes - self._carried >= CHANGES_BEHIND:
            with suppress(Transient):  # no thread for it now: the next commit asks again
                self._behind.wake()
                self._carried = connection.total_changes
        return tx, result

    def _wait_for_disk(self, connection: sqlite3.Connection, *, wait: bool) -> None:
        """A commit that does not wait only writes to the WAL; the next one that waits, waits for it as well."""
        wanted = self._synchronous if wait else "NORMAL"
        if wanted != self._waits:
            connection.execute(f"PRAGMA synchronous={wanted}")
            self._waits = wanted

    def _look(self, connection: sqlite3.Connection, work: Callable[[Tx], T]) -> T:
        tx = SQLiteTx(connection, self)
        with translate_errors(reading=True):
            connection.execute("BEGIN")
            try:
                return work(tx)
            finally:
                tx.end()
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def holds(self, file: Path) -> bool:
        own = [Path(self._path + more).resolve() for more in ("", "-wal", "-shm", "-journal")]
        return not self._memory and file.resolve() in own

    def _check_open(self) -> None:
        if self._closed:
            raise StoreUnavailable("store_closed", "the store has been closed")

    def _reader(self) -> sqlite3.Connection:
        self._check_open()
        try:
            return self._readers.pop()
        except IndexError:
            connection = self._connect()
            connection.execute("PRAGMA query_only=ON")
            return connection

    def _give_back(self, connection: sqlite3.Connection) -> None:
        self._readers.append(connection)
        if self._closed:  # while this reader was at work
            self._close_readers()

    def _close_readers(self) -> None:
        while self._readers:
            self._readers.pop().close()

    def _connect(self) -> sqlite3.Connection:
        with translate_errors():
            connection = sqlite3.connect(
                self._path,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=512,
                timeout=self._wait,
            )
            _switch_to_wal(connection, time.monotonic() + self._wait)
            for pragma in (
                f"synchronous={self._synchronous}",
                "foreign_keys=ON",
                "temp_store=MEMORY",
                "cache_size=-65536",
                f"wal_autocheckpoint={LONGEST_WAL}",
            ):
                connection.execute(f"PRAGMA {pragma}")
        return connection


def _make_folder(folder: Path) -> None:
    """The folder of a new store; one that was not there is said, since a mistyped `store.url` looks just like it."""
    if not folder.exists():
        folder.mkdir(parents=True, exist_ok=True)
        log.warning("store_folder_made", folder=str(folder), advice="if it was to be there already: see store.url")


def _claim_privately(path: str) -> None:
    """A new store is its owner's alone; SQLite gives its journals the rights of the file. One that is there stays."""
    with suppress(OSError):  # what is wrong with the place is said when it is opened
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _switch_to_wal(connection: sqlite3.Connection, until: float) -> None:
    """SQLite waits for other writers, but not for another who makes the same switch: that is left to us."""
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                connection.close()
                raise
            time.sleep(random.random() * 0.02)
        else:
            return


class Checkpointer:
    """A thread that carries committed pages from the WAL into the file whenever it is woken; begun with the first."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._woken = threading.Event()
        self._closing = False
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """Raises Transient when there is no thread and none can be started."""
        self._woken.set()
        self._thread = start_thread(self._thread, self._run, "sqlite checkpointer")

    def close(self) -> None:
        self._closing = True
        self._woken.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            with closing(self._connect()) as connection:
                while True:
                    self._woken.wait()
                    self._woken.clear()
                    if self._closing:
                        return
                    # PASSIVE waits for nobody and nobody waits for it; what it leaves, the next one takes
                    with suppress(sqlite3.Error):
                        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        except (PatraError, sqlite3.Error, MemoryError):
            return  # the file is gone or cannot be opened now: the writer will say so, or wake another


@contextmanager
def translate_errors(*, reading: bool = False) -> Generator[None]:
    """Errors of SQLite become errors of a store."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise Permanent("store_integrity", str(error)) from error
    except sqlite3.DatabaseError as error:
        # Errors of the Python module itself (a wrong number of parameters) have no code: they are bugs, as they stand.
        match getattr(error, "sqlite_errorcode", 0) & 0xFF:
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                raise StoreBusy("store_busy", f"another process holds the store: {error}") from error
            case sqlite3.SQLITE_READONLY if reading:
                raise Permanent("store_read_only", "a read-only transaction tried to write") from error
            case (
                sqlite3.SQLITE_FULL
                | sqlite3.SQLITE_IOERR
                | sqlite3.SQLITE_CANTOPEN
                | sqlite3.SQLITE_READONLY
                | sqlite3.SQLITE_PERM
            ):
                raise StoreUnavailable("store_unavailable", f"the store cannot be used: {error}") from error
            case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT:
                detail = f"the file is not a sound SQLite store: {error}; `patra verify` says what is damaged"
                raise StoreUnavailable("store_unavailable", detail) from error
            case _:
                raise


def _column_type(declared: str) -> ColumnType:
    kind = declared.upper()
    if "INT" in kind:
        return "int"
    if "BLOB" in kind:
        return "blob"
    if "DOUBLE" in kind or "REAL" in kind:
        return "real"
    return "text"
