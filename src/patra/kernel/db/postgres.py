"""PostgreSQL: a pool, READ COMMITTED, serialization failures and deadlocks tried again at the transaction's edge."""

import math
import random
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, TypeVar, cast

import msgspec
import psycopg
from psycopg import errors
from psycopg.errors import Diagnostic
from psycopg.rows import dict_row

from patra.kernel.db.api import Database, Over, Params, Row, TransactionGuard, Tx, claim_taken, identifier, identifiers
from patra.kernel.db.pool import SILENT_SECONDS, Connection, Pool
from patra.kernel.db.postgres_parameters import bind
from patra.kernel.db.queries import ColumnType, Statement, statement
from patra.kernel.errors import Permanent, StoreBusy, StoreUnavailable
from patra.kernel.safety.redact import redact_url

T = TypeVar("T")

ATTEMPTS = 8
WAIT_SECONDS = 10.0
READ_ONLY = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
MOST_LATE = 5000  # rows that a flow keeps back before it sends them
MANY = 64  # rows of a set that is worth sending ahead of what follows it
DURABLE = b"BEGIN ISOLATION LEVEL READ COMMITTED"
NOT_DURABLE = DURABLE + b"; SET LOCAL synchronous_commit = off"
TRANSACTION_TIMEOUT_SINCE = 170000  # the server's version
_WARNING = "01000"  # the SQLSTATE of a warning that has no other

_TYPES: dict[str, ColumnType] = {
    "text": "text",
    "bigint": "int",
    "integer": "int",
    "double precision": "real",
    "bytea": "blob",
}
_COLUMNS = statement(
    "column_types",
    "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute "
    "WHERE attrelid = to_regclass(:table) AND attnum > 0 AND NOT attisdropped",
)
_NOW = statement("server_now", "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")


class _Late(msgspec.Struct, kw_only=True, eq=False):
    """Calls of one statement in a row that a flow keeps back; those with `rows` and no `text` go out as one set."""

    stmt: Statement
    text: str | None = None
    bound: list[dict[str, Any]] = msgspec.field(default_factory=list[dict[str, Any]])
    rows: list[Row] = msgspec.field(default_factory=list[Row])


class PostgresTx(Tx):
    dialect = "postgres"

    def __init__(self, connection: Connection, owner: "PostgresDatabase", *, writes: bool = True) -> None:
        self._connection = connection
        self._owner = owner
        self._writes = writes
        self._late: list[_Late] | None = None  # in a flow
        self._late_rows = 0
        self._pipeline: ExitStack | None = None  # something was sent ahead, and is to be waited for
        self._claims = False
        self._broken: BaseException | None = None  # what went wrong with something that was kept back

    @property
    def connection(self) -> Connection:
        """For COPY, which no statement of `Tx` is."""
        return self._connection

    def end(self) -> None:
        self._connection = cast("Connection", Over())

    def fetch(self, stmt: Statement, params: Params | None = None, *, rows: Sequence[Row] | None = None) -> list[Row]:
        if rows is not None and not rows:
            return []
        return self._run(self._connection.cursor(), stmt, params, rows).fetchall()

    def fetch_dicts(
        self, stmt: Statement, params: Params | None = None, *, rows: Sequence[Row] | None = None
    ) -> list[dict[str, Any]]:
        if rows is not None and not rows:
            return []
        return self._run(self._connection.cursor(row_factory=dict_row), stmt, params, rows).fetchall()

    def execute(self, stmt: Statement, params: Params | None = None, *, rows: Sequence[Row] | None = None) -> int:
        if rows is not None and not rows:
            return 0
        return max(self._run(self._connection.cursor(), stmt, params, rows).rowcount, 0)

    def insert_tuples(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        names = identifiers(columns)
        stmt = self._build_statement(
            f"insert:{table}:{names}",
            lambda: f"INSERT INTO {identifier(table)} ({names}) SELECT {names} FROM rows",
            table,
            columns,
        )
        if self._late is None:
            self.execute(stmt, rows=rows)
        elif rows:
            last = self._late[-1] if self._late else None
            if last is None or last.stmt is not stmt or last.text is not None:
                last = _Late(stmt=stmt)
                self._late.append(last)
            last.rows += rows
            self._kept_back(len(rows))

    def write(self, stmt: Statement, params: Params | None = None, *, rows: Sequence[Row] | None = None) -> None:
        if self._late is None:
            self.execute(stmt, params, rows=rows)
        elif rows is None or rows:
            text, bound = bind(stmt, params, rows)
            last = self._late[-1] if self._late else None
            if last is None or last.stmt is not stmt or last.text != text:
                last = _Late(stmt=stmt, text=text)
                self._late.append(last)
            last.bound.append(bound)
            if rows is not None and len(rows) >= MANY:
                with self._breaking():
                    self._send_ahead()
            else:
                self._kept_back(len(rows or (1,)))

    def claim(self, stmt: Statement, params: Params | None = None, *, rows: Sequence[Row]) -> None:
        if "ON CONFLICT" in stmt.postgres:  # it would pass over what is taken, and a flow does not count
            raise ValueError(f"{stmt.name}: on PostgreSQL a claim leaves conflicts to the unique index")
        self._claims = True
        try:
            self.write(stmt, params, rows=rows)
        except errors.UniqueViolation as error:
            raise claim_taken() from error

    @contextmanager
    def flow(self) -> Generator[None]:
        if self._late is not None:  # a flow in a flow
            yield
            return
        self.settle()
        self._late = []
        try:
            yield
            self.settle()
        except BaseException as error:
            self._give_up(error)  # the statements kept back are lost: the transaction must not commit
            raise
        finally:
            self._late = None

    def settle(self) -> None:
        """Send what was kept back and wait until all is done; what went wrong once is said again each time."""
        if self._broken is not None:
            raise self._broken
        if not self._late and self._pipeline is None:
            return
        with self._breaking():
            if self._pipeline is None and self._late is not None and len(self._late) == 1:
                self._send()  # alone: there is nothing to send ahead of
            else:
                self._send_ahead()
            if self._pipeline is not None:
                pipeline, self._pipeline = self._pipeline, None
                pipeline.close()

    def _kept_back(self, rows: int) -> None:
        self._late_rows += rows
        if self._late_rows >= MOST_LATE:
            self.settle()

    def _send_ahead(self) -> None:
        """Send what was kept back without waiting for it: the database is at work while we make what follows."""
        if self._pipeline is None:
            self._pipeline = ExitStack()
            self._pipeline.enter_context(self._connection.pipeline())
        self._send()

    def _send(self) -> None:
        late, self._late, self._late_rows = self._late or [], [], 0
        for one in late:
            cursor = self._connection.cursor()
            if one.text is None:
                text, bound = bind(one.stmt, None, one.rows)
                cursor.execute(text.encode(), bound)
            elif len(one.bound) == 1:
                cursor.execute(one.text.encode(), one.bound[0])
            else:
                cursor.executemany(one.text.encode(), one.bound)

    @contextmanager
    def _breaking(self) -> Generator[None]:
        """An error of something that was kept back breaks the transaction."""
        try:
            yield
        except errors.UniqueViolation as error:
            self._give_up(claim_taken() if self._claims else error)
            raise self._broken or error from error
        except BaseException as error:
            self._give_up(error)
            raise

    def _give_up(self, error: BaseException) -> None:
        self._broken = self._broken or error
        if self._pipeline is not None:
            pipeline, self._pipeline = self._pipeline, None
            with suppress(psycopg.Error):
                pipeline.close()

    def script(self, text: str) -> None:
        self.settle()
        self._connection.execute(text.encode())

    @contextmanager
    def savepoint(self) -> Generator[None]:
        """In a flow, too, what is written inside is waited for: whose error it is must be known when it ends."""
        self.settle()
        late, self._late = self._late, None
        try:
            with self._connection.transaction():
                yield
        except psycopg.Error as error:
            raise _translation(error, writes=self._writes, committing=False, url=self._owner.url) from error
        finally:
            self._late = late

    def server_now(self) -> int:
        return self.fetch(_NOW)[0][0]

    def column_types(self, table: str) -> Mapping[str, ColumnType]:
        found = self.fetch(_COLUMNS, {"table": table})
        if not found:
            raise Permanent("store_no_such_table", f"there is no table {table!r}")
        return {name: _TYPES[kind] for name, kind in found}

    def built_statements(self) -> dict[str, Statement]:
        return self._owner.built

    def _run(
        self, cursor: psycopg.Cursor[Any], stmt: Statement, params: Params | None, rows: Sequence[Row] | None
    ) -> psycopg.Cursor[Any]:
        self.settle()
        text, bound = bind(stmt, params, rows)
        return cursor.execute(text.encode(), bound)


class PostgresDatabase(Database):
    dialect = "postgres"

    def __init__(
        self, url: str, *, pool_size: int = 8, wait: float = WAIT_SECONDS, silent_seconds: float = SILENT_SECONDS
    ) -> None:
        self.url = url
        self.built: dict[str, Statement] = {}
        self._own = TransactionGuard()
        self._pool = Pool(url, size=pool_size, wait=wait, silent_seconds=silent_seconds)

    def run(self, work: Callable[[Tx], T], *, durable: bool = True, seconds: float | None = None) -> T:
        until = None if seconds is None else time.monotonic() + seconds
        for attempt in range(1, ATTEMPTS + 1):
            try:
                tx, result = self._attempt(work, DURABLE if durable else NOT_DURABLE, until)
            except (StoreBusy, _LostBeforeCommit) as error:
                if attempt == ATTEMPTS:
                    raise
                self._before_another(attempt, error)
            else:
                tx.note_commit()
                return result
        raise AssertionError("unreachable")

    def read(self, work: Callable[[Tx], T]) -> T:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._attempt(work, READ_ONLY)[1]
            except _LostBeforeCommit as error:
                if attempt == ATTEMPTS:
                    raise
                self._before_another(attempt, error)
        raise AssertionError("unreachable")

    def close(self) -> None:
        self._pool.close()

    def _attempt(self, work: Callable[[Tx], T], begin: bytes, until: float | None = None) -> tuple[Tx, T]:
        committing, writes = False, begin is not READ_ONLY
        with self._own(), self._connection() as connection:
            tx = PostgresTx(connection, self, writes=writes)
            try:
                connection.execute(begin if until is None else begin + self._bound(connection, until))
                result = work(tx)
                tx.settle()
                committing = writes
                _commit(connection)
            except psycopg.Error as error:
                _roll_back(connection)
                raise _translation(error, writes=writes, committing=committing, url=self.url) from error
            except BaseException:
                _roll_back(connection)
                raise
            finally:
                tx.end()
            return tx, result

    def _bound(self, connection: Connection, until: float) -> bytes:
        """Lets the server end the transaction when its time is over. Raises StoreUnavailable when it is by now."""
        left = math.ceil((until - time.monotonic()) * 1000)
        if left <= 0:
            raise StoreUnavailable("store_unavailable", f"{redact_url(self.url)}: nothing was committed in time")
        known = connection.info.server_version >= TRANSACTION_TIMEOUT_SINCE
        name = "transaction_timeout" if known else "idle_in_transaction_session_timeout"
        return f"; SET LOCAL {name} = {left}".encode()

    def _before_another(self, attempt: int, error: Exception) -> None:
        if isinstance(error, _LostBeforeCommit):
            self._pool.drop_idle()
        time.sleep(random.random() * 0.005 * 2**attempt)

    @contextmanager
    def _connection(self) -> Generator[Connection]:
        connection = self._pool.take()
        try:
            yield connection
        except _TakesNoWrites:
            connection.close()
            raise
        finally:
            self._pool.give_back(connection)


class _LostBeforeCommit(StoreUnavailable):
    """The connection was lost while nothing had been committed: the work can be done again."""


class _TakesNoWrites(_LostBeforeCommit):
    """The server is a standby, or was set read-only: another connection may lead to the primary, this one does not."""


def _commit(connection: Connection) -> None:
    """Commit. A server that stopped waiting for its synchronous standby says so in a warning only, and is not believed.

    It does that when an administrator cancels the wait: a failover would lose what was committed here alone.
    """
    warnings: list[str] = []

    def hear_notice(notice: Diagnostic) -> None:
        if notice.sqlstate == _WARNING and notice.severity_nonlocalized == "WARNING":
            warnings.append(notice.message_primary or "")

    connection.add_notice_handler(hear_notice)
    try:
        status = connection.execute(b"COMMIT").statusmessage
    finally:
        connection.remove_notice_handler(hear_notice)
    if status != "COMMIT":
        raise Permanent("store_aborted", "a statement failed and its error was swallowed: nothing was written")
    if warnings:
        raise StoreUnavailable("store_commit_unknown", f"the server committed with a warning: {'; '.join(warnings)}")


def _roll_back(connection: Connection) -> None:
    if connection.closed:
        return
    try:
        connection.rollback()  # which forgets what was prepared: what stood behind an error in a pipeline never was
    except psycopg.Error:
        connection.close()


def _translation(error: psycopg.Error, *, writes: bool, committing: bool, url: str) -> Exception:
    match error:
        case errors.SerializationFailure() | errors.DeadlockDetected() | errors.LockNotAvailable():
            return StoreBusy("store_busy", f"the transaction met another one: {error}")
        case errors.IntegrityError():
            return Permanent("store_integrity", str(error))
        case errors.DataError():
            return Permanent("store_value", f"PostgreSQL cannot hold a value: {error}")
        case errors.ReadOnlySqlTransaction() if writes:
            return _TakesNoWrites(
                "store_unavailable", f"{redact_url(url)} takes no writes, as a standby does: {error} (find its primary)"
            )
        case errors.ReadOnlySqlTransaction():
            return Permanent("store_read_only", "a read-only transaction tried to write")
        case errors.InFailedSqlTransaction():
            return Permanent("store_aborted", "a statement failed, its error was swallowed, and another one followed")
        case errors.TransactionTimeout() | errors.IdleInTransactionSessionTimeout() if not committing:
            return _LostBeforeCommit("store_unavailable", f"{redact_url(url)} ended a transaction that took too long")
        case errors.TransactionTimeout() | errors.IdleInTransactionSessionTimeout():
            return StoreUnavailable("store_commit_unknown", f"{redact_url(url)} ended a transaction that took too long")
        case psycopg.OperationalError() | psycopg.InterfaceError() if committing:
            return StoreUnavailable("store_commit_unknown", f"{redact_url(url)} was lost during the commit: {error}")
        case psycopg.OperationalError() | psycopg.InterfaceError():
            return _LostBeforeCommit("store_unavailable", f"{redact_url(url)} was lost: {error}")
        case _:
            return error
