"""A page's records go in; they are upserted by DOI and committed durably: what the plain loop and the Airbyte cell write with.

Nothing but the standard library, since the Airbyte CDK runs in an environment of its own.
"""

import sqlite3
from collections.abc import Callable
from typing import Any

TABLE = "CREATE TABLE work (doi TEXT PRIMARY KEY, updated TEXT NOT NULL, content {blob} NOT NULL)"
UPSERT = """INSERT INTO work (doi, updated, content) VALUES ({marks}) ON CONFLICT (doi) DO UPDATE
SET updated = excluded.updated, content = excluded.content WHERE excluded.updated > work.updated"""


def sqlite(store: str) -> tuple[Callable[[list[Any]], object], Callable[[], object]]:
    db = sqlite3.connect(store.removeprefix("sqlite:///"))
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")
    db.execute(TABLE.format(blob="BLOB"))

    def write(rows: list[Any]) -> None:
        with db:
            db.executemany(UPSERT.format(marks="?,?,?"), rows)

    return write, db.close
