"""The interface of the store: a `Database` gives short transactions, a `Tx` runs statements on sets of rows.

What differs between the databases is hidden in two places: how the relation `rows` of a statement is filled
(`queries`), and how a transaction begins, ends and is tried again (`sqlite`, `postgres`). Everything else, including
insert-if-absent, upsert-if-newer and reads by a list of keys, is one text for both.
"""

import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from patra.kernel.db.queries import Column, ColumnType, Dialect, Statement, statement
from patra.kernel.errors import Permanent, StoreBusy

Value: TypeAlias = str | int | float | bytes | None
Row: TypeAlias = tuple[Any, ...]
Params: TypeAlias = Mapping[str, Value | Sequence[Value]]
T = TypeVar("T")

_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]*\Z")


class Tx(ABC):
    """One transaction. It is over when the `work` given to `Database.run` or `Database.read` returns or raises."""

    dialect: Dialect
    _after: list[Callable[[], object]] | None = None

    @abstractmethod
    def fetch(self, stmt: Statement, params: Params | None = None, *, rows: Sequence[Row] | None = None) -> list[Row]:
        """Run a statement and give what it returns. With `rows=[]` nothing runs."""

    @abstractmethod
    def execute(self, stmt: Statement, params: Params | None = None, *, rows: Sequence[Row] | None = None) -> int:
        """Run a statement and give the number of rows it changed. With `rows=[]` nothing runs."""

    @abstractmethod
    def fetch_dicts(
        self, stmt: Statement, params: Params | None = None, *, rows: Sequence[Row] | None = None
    ) -> list[dict[str, Any]]:
        """As `fetch`, each row by its column names."""

    @abstractmethod
    def insert_tuples(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Insert rows that are known to be new: the fastest way in."""

    def write(self, stmt: Statement, params: Params | None = None, *, rows: Sequence[Row] | None = None) -> None:
        """Run a statement of which nothing needs to be known: in a `flow` it is not waited for."""
        self.execute(stmt, params, rows=rows)

    def claim(self, stmt: Statement, params: Params | None = None, *, rows: Sequence[Row]) -> None:
        """Insert rows that nobody has written yet: where another was first with one, `StoreBusy` undoes it all.

        As `write`, it is not waited for in a `flow`; there, any row that is taken counts as claimed. On SQLite the
        statement says ON CONFLICT DO NOTHING, on PostgreSQL it must not: its unique index decides, and sooner.
        """
        if self.execute(stmt, params, rows=rows) != len(rows):
            raise claim_taken()

    def flow(self) -> AbstractContextManager[None]:
        """Inside, `write`, `claim`, `insert` and `insert_tuples` are not waited for, where waiting costs something.

        They reach the store in order, before the next statement that is answered and at the end at the latest, inserts
        into one table that follow each other as one set. So an error of theirs may come up in a later statement; it
        then comes up in every one, and nothing of the transaction can be committed.
        """
        return nullcontext()

    @abstractmethod
    def script(self, text: str) -> None:
        """Run one statement of a migration as it stands."""

    @abstractmethod
    def savepoint(self) -> AbstractContextManager[None]:
        """What happens inside is undone when it raises; the transaction goes on."""

    @abstractmethod
    def server_now(self) -> int:
        """The database's clock, µs UTC: leases held by several machines go by this one clock."""

    @abstractmethod
    def column_types(self, table: str) -> Mapping[str, ColumnType]:
        """The columns of a table and their types."""

    def after_commit(self, call: Callable[[], object]) -> None:
        """Call this when the transaction has committed, e.g. to wake a waiting thread. It must not fail."""
        if self._after is None:
            self._after = []
        self._after.append(call)

    def note_commit(self) -> None:
        """Said by the database, once nothing of the transaction is held any more."""
        for call in self._after or ():
            call()

    def fetch_one(self, stmt: Statement, params: Params | None = None) -> Row | None:
        found = self.fetch(stmt, params)
        return found[0] if found else None

    def insert(self, table: str, rows: Sequence[Mapping[str, Value]]) -> None:
        """Insert rows that are known to be new; all have the keys of the first."""
        if rows:
            columns = tuple(rows[0])
            self.insert_tuples(table, columns, _tuples(rows, columns))

    def insert_absent(
        self, table: str, rows: Sequence[Mapping[str, Value]], *, key: Sequence[str], returning: Sequence[str] = ()
    ) -> list[Row]:
        """Insert the rows whose key is not there yet; gives `returning` (the key by default) of those that were new."""
        if not rows:
            return []
        columns = tuple(rows[0])
        stmt = self._build_statement(
            f"insert_absent:{table}:{','.join(columns)}:{','.join(key)}:{','.join(returning)}",
            lambda: (
                f"INSERT INTO {identifier(table)} ({identifiers(columns)}) "
                f"SELECT {identifiers(columns)} FROM rows WHERE true "
                f"ON CONFLICT ({identifiers(key)}) DO NOTHING RETURNING {identifiers(returning or key)}"
            ),
            table,
            columns,
        )
        return self.fetch(stmt, rows=_tuples(rows, columns))

    def upsert_newer(
        self,
        table: str,
        rows: Sequence[Mapping[str, Value]],
        *,
        key: Sequence[str],
        newer: str,
        returning: Sequence[str] = (),
    ) -> list[Row]:
        """Insert rows, or replace those whose `newer` column is smaller; gives `returning` of those written.

        Of several rows with one key the newest counts, and of those the first.
        """
        if not rows:
            return []
        columns = tuple(rows[0])
        rows = _newest(rows, key, newer)
        stmt = self._build_statement(
            f"upsert_newer:{table}:{','.join(columns)}:{','.join(key)}:{newer}:{','.join(returning)}",
            lambda: (
                f"INSERT INTO {identifier(table)} ({identifiers(columns)}) "
                f"SELECT {identifiers(columns)} FROM rows WHERE true "
                f"ON CONFLICT ({identifiers(key)}) DO UPDATE SET "
                + ", ".join(f"{identifier(c)} = excluded.{c}" for c in columns if c not in key)
                + f" WHERE excluded.{identifier(newer)} > {table}.{newer} RETURNING {identifiers(returning or key)}"
            ),
            table,
            columns,
        )
        return self.fetch(stmt, rows=_tuples(rows, columns))

    def lookup(self, table: str, *, columns: Sequence[str], key: Sequence[str], keys: Sequence[Row]) -> list[Row]:
        """The given columns of the rows whose key is in a list, in no particular order."""
        if not keys:
            return []
        stmt = self._build_statement(
            f"lookup:{table}:{','.join(columns)}:{','.join(key)}",
            lambda: (
                f"SELECT {', '.join(f't.{identifier(c)}' for c in columns)} FROM rows "
                f"JOIN {identifier(table)} t ON {' AND '.join(f't.{identifier(k)} = rows.{k}' for k in key)}"
            ),
            table,
            key,
        )
        return self.fetch(stmt, rows=keys)

    def _build_statement(self, name: str, text: Callable[[], str], table: str, columns: Sequence[str]) -> Statement:
        built = self.built_statements()
        if (stmt := built.get(name)) is None:
            types = self.column_types(table)
            plain = statement(name, text())
            if unknown := [column for column in columns if column not in types]:
                raise Permanent("store_no_such_column", f"{table} has no column {unknown[0]!r}")
            rows = tuple(Column(column, types[column]) for column in columns)
            stmt = built[name] = Statement(name=name, text=plain.text, rows=rows)
        return stmt

    @abstractmethod
    def built_statements(self) -> dict[str, Statement]:
        """The statements built so far from tables' columns, kept by the database."""


def claim_taken() -> StoreBusy:
    """What a claim raises that came second."""
    return StoreBusy("store_busy", "another writer was first with a key")


class Over:
    """What a transaction that is over has in place of its connection: a leaked `Tx` fails instead of writing late."""

    def __getattr__(self, name: str) -> Any:
        raise Permanent("store_transaction_over", f"{name} was called on a transaction that is over")


class TransactionGuard:
    """Refuses a transaction inside another of the same thread: it may wait for itself for ever."""

    def __init__(self) -> None:
        self._inside = threading.local()

    @contextmanager
    def __call__(self) -> Generator[None]:
        if getattr(self._inside, "busy", False):
            detail = (
                "a transaction was begun inside another one of this thread: pass on the `tx` of the one that is open"
            )
            raise Permanent("store_nested_transaction", detail)
        self._inside.busy = True
        try:
            yield
        finally:
            self._inside.busy = False


class Database(ABC):
    """A store, opened by its URL."""

    dialect: Dialect
    url: str

    @abstractmethod
    def run(self, work: Callable[[Tx], T], *, durable: bool = True, seconds: float | None = None) -> T:
        """Do the work in one transaction and commit it durably.

        `seconds` bounds all of it: PostgreSQL (from 17 on) ends the transaction then, also while this process stands
        still in its midst and others wait for its locks, and no attempt begins after that. Raises `StoreUnavailable`.

        With `durable=False` the commit does not wait for the disk: all see it, and it outlives this process, but a loss
        of the machine or of the database server may undo it, whole, as long as no durable commit came after it. For
        what can be found out or done again: a hold, a position in a log, a note that something was sent.

        The work is done again from the start when the database asks for it (deadlock, serialization failure, a lost
        connection before the commit), so it has no effects outside the transaction. Raises `StoreBusy` when that did
        not help, `StoreUnavailable` when the database cannot be reached or the outcome of the commit is unknown.
        """

    @abstractmethod
    def read(self, work: Callable[[Tx], T]) -> T:
        """Do the work in one read-only transaction that sees one state of the store."""

    def holds(self, file: Path) -> bool:
        """Whether a file is one of the store's own, which nobody else may write."""
        del file
        return False

    @abstractmethod
    def close(self) -> None:
        """Give the connections back. Calling it twice does no harm."""


def _newest(rows: Sequence[Mapping[str, Value]], key: Sequence[str], newer: str) -> Sequence[Mapping[str, Value]]:
    """One row a key: PostgreSQL refuses to write a row twice in one statement, SQLite would answer it twice."""
    newest: dict[Row, Mapping[str, Any]] = {}
    for row in rows:
        same = tuple([row[column] for column in key])
        if (other := newest.get(same)) is None or row[newer] > other[newer]:  # pyright: ignore[reportOperatorIssue]
            newest[same] = row
    return rows if len(newest) == len(rows) else list(newest.values())


def identifier(name: str) -> str:
    """A name that may stand in SQL as it is."""
    if not _IDENTIFIER.match(name):
        raise ValueError(f"{name!r} is not a name of ours for a table or column")
    return name


def identifiers(names: Sequence[str]) -> str:
    return ", ".join(map(identifier, names))


def _tuples(rows: Sequence[Mapping[str, Value]], columns: Sequence[str]) -> list[Row]:
    return [tuple([row[column] for column in columns]) for row in rows]
