"""A SQLite file that is only looked at: not one byte of it changes, nor is a WAL made beside it."""

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from patra.kernel.db.api import Database, Tx
from patra.kernel.db.queries import Statement
from patra.kernel.db.sqlite import SQLiteTx, translate_errors
from patra.kernel.errors import Permanent, StoreUnavailable

T = TypeVar("T")


class SQLiteFile(Database):
    """Reads a file that nobody writes, such as a backup."""

    dialect = "sqlite"

    def __init__(self, path: Path) -> None:
        self.url = f"sqlite:///{path}"
        self.built: dict[str, Statement] = {}
        self._lock = threading.Lock()
        with translate_errors():
            uri = f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1"
            self._connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)

    def run(self, work: Callable[[Tx], T], *, durable: bool = True, seconds: float | None = None) -> T:
        del work, durable, seconds
        raise Permanent("store_read_only", "the file is only looked at")

    def read(self, work: Callable[[Tx], T]) -> T:
        try:
            with self._lock, translate_errors(reading=True):
                return work(SQLiteTx(self._connection, self))
        except sqlite3.OperationalError as error:  # in a store of ours a bug; in a file of others it lacks a table
            raise StoreUnavailable("store_unavailable", f"the file is no store of Patra: {error}") from error

    def close(self) -> None:
        self._connection.close()
