"""Faults on purpose: a store that fails at the n-th statement, a process that is killed."""

import os
import signal
import subprocess
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from patra.kernel.db import Database, Row, Statement, Tx
from patra.kernel.db.api import Params
from patra.kernel.db.queries import ColumnType
from patra.kernel.errors import StoreUnavailable

T = TypeVar("T")


class InjectedFault(StoreUnavailable):
    """The failure that a `FaultyDatabase` was told to make."""

    def __init__(self, place: str) -> None:
        super().__init__("injected_fault", place)


class FaultyDatabase(Database):
    """A store that fails once, at its n-th step; a step is a statement, or a commit just before or just after it.

    `steps` counts them, so a test runs the work once without a fault to learn how many there are, and then once for
    each: `for n in range(1, steps + 1)`. The fault is an outage, which ends the caller's step, unless another is given:
    `StoreBusy` makes the inner store run the transaction again.
    """

    def __init__(
        self, inner: Database, fail_at: int | None = None, *, fault: Callable[[str], Exception] = InjectedFault
    ) -> None:
        self.dialect = inner.dialect
        self.url = inner.url
        self.steps = 0
        self._inner = inner
        self._fail_at = fail_at
        self._fault = fault

    def run(self, work: Callable[[Tx], T], *, durable: bool = True, seconds: float | None = None) -> T:
        def faulty(tx: Tx) -> T:
            result = work(FaultyTx(tx, self))
            self.step("before the commit")
            return result

        result = self._inner.run(faulty, durable=durable, seconds=seconds)
        self.step("after the commit")
        return result

    def read(self, work: Callable[[Tx], T]) -> T:
        return self._inner.read(lambda tx: work(FaultyTx(tx, self)))

    def close(self) -> None:
        self._inner.close()

    def step(self, place: str) -> None:
        self.steps += 1
        if self.steps == self._fail_at:
            raise self._fault(f"step {self.steps}: {place}")


class FaultyTx(Tx):
    def __init__(self, inner: Tx, owner: FaultyDatabase) -> None:
        self.dialect = inner.dialect
        self._inner = inner
        self._owner = owner

    def fetch(self, stmt: Statement, params: Params | None = None, *, rows: Sequence[Row] | None = None) -> list[Row]:
        self._owner.step(stmt.name)
        return self._inner.fetch(stmt, params, rows=rows)

    def execute(self, stmt: Statement, params: Params | None = None, *, rows: Sequence[Row] | None = None) -> int:
        self._owner.step(stmt.name)
        return self._inner.execute(stmt, params, rows=rows)

    def fetch_dicts(
        self, stmt: Statement, params: Params | None = None, *, rows: Sequence[Row] | None = None
    ) -> list[dict[str, Any]]:
        self._owner.step(stmt.name)
        return self._inner.fetch_dicts(stmt, params, rows=rows)

    def insert_tuples(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        self._owner.step(f"insert into {table}")
        self._inner.insert_tuples(table, columns, rows)

    def write(self, stmt: Statement, params: Params | None = None, *, rows: Sequence[Row] | None = None) -> None:
        self._owner.step(stmt.name)
        self._inner.write(stmt, params, rows=rows)

    def claim(self, stmt: Statement, params: Params | None = None, *, rows: Sequence[Row]) -> None:
        self._owner.step(stmt.name)
        self._inner.claim(stmt, params, rows=rows)

    @contextmanager
    def flow(self) -> Generator[None]:
        with self._inner.flow():
            yield
            self._owner.step("the end of a flow")

    def script(self, text: str) -> None:
        self._owner.step(text[:40])
        self._inner.script(text)

    @contextmanager
    def savepoint(self) -> Generator[None]:
        with self._inner.savepoint():
            yield

    def server_now(self) -> int:
        self._owner.step("server_now")
        return self._inner.server_now()

    def column_types(self, table: str) -> Mapping[str, ColumnType]:
        return self._inner.column_types(table)

    def built_statements(self) -> dict[str, Statement]:
        return self._inner.built_statements()

    def after_commit(self, call: Callable[[], object]) -> None:
        self._inner.after_commit(call)


def kill_hard(process: "subprocess.Popen[bytes]") -> None:
    """End a process as a power cut would: no handler runs, nothing is flushed."""
    if process.poll() is None:
        os.kill(process.pid, signal.SIGKILL)
    process.wait()
