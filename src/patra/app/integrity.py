"""Reads the whole store and says what in it is damaged, by table and key.

SQLite's own check finds broken pages, not bytes that were changed inside a value. Those are found by the checksums of
compressed values (decisions, batches as received) and by the hashes that records and kept bodies are stored with.
"""

from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any

import msgspec

from patra.attribution.intake.zstd import decompress_body
from patra.attribution.storage.decision_codec import unpack_decisions
from patra.ingest.landing.records import content_of
from patra.kernel.db import Database, Row, Statement
from patra.kernel.db.queries import statement
from patra.kernel.errors import PatraError

PAGE_ROWS = 500


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """One damaged place."""

    table: str
    key: str
    detail: str


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """How many rows were read, and what of them is damaged."""

    rows: dict[str, int]
    damages: list[Damage]

    @property
    def sound(self) -> bool:
        return not self.damages


class PackedTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table with values that can be checked by themselves; `check` raises for a row that is damaged."""

    name: str
    keys: tuple[str, ...]
    columns: str
    check: Callable[[Row], object]


def _check_log(row: Row) -> None:
    if row[1] is not None:
        decompress_body(bytes(row[1]))


def _check_record(row: Row) -> None:
    _compare(content_of(bytes(row[3])), row[4])


def _compare(body: bytes, digest: str) -> None:
    if sha256(body).hexdigest() != digest:
        raise ValueError("its content is not that of its hash")


TABLES: tuple[PackedTable, ...] = (
    PackedTable(name="att_log", keys=("number",), columns="number, body", check=_check_log),
    PackedTable(
        name="att_decision",
        keys=("item",),
        columns="item, body",
        check=lambda row: unpack_decisions(row[0], bytes(row[1])),
    ),
    PackedTable(
        name="ing_record",
        keys=("provenance_code", "endpoint_name", "provider_id"),
        columns="provenance_code, endpoint_name, provider_id, content, content_hash",
        check=_check_record,
    ),
    PackedTable(
        name="ing_body",
        keys=("body_hash",),
        columns="body_hash, content",
        check=lambda row: _compare(content_of(bytes(row[1])), row[0]),
    ),
)


def verify(db: Database) -> Verified:
    """Read everything that can be checked; never stops at the first damage."""
    rows: dict[str, int] = {}
    damages = list(_sqlite_damages(db)) if db.dialect == "sqlite" else []
    for table in TABLES:
        rows[table.name] = 0
        for row, damage in _check_rows(db, table):
            rows[table.name] += row
            if damage is not None:
                damages.append(damage)
    return Verified(rows=rows, damages=damages)


def _check_rows(db: Database, table: PackedTable) -> Iterator[tuple[int, Damage | None]]:
    """For every row a count and its damage; a page that cannot be read ends the table."""
    names = ", ".join(table.keys)
    first = statement(
        f"verify_{table.name}", f"SELECT {table.columns} FROM {table.name} ORDER BY {names} LIMIT {PAGE_ROWS}"
    )
    marks = ", ".join(f":{name}" for name in table.keys)
    following = statement(
        f"verify_{table.name}_after",
        f"SELECT {table.columns} FROM {table.name} WHERE ({names}) > ({marks}) ORDER BY {names} LIMIT {PAGE_ROWS}",
    )
    after: dict[str, Any] | None = None
    while True:
        stmt, params = (first, None) if after is None else (following, after)
        try:
            page = _page(db, stmt, params)
        except PatraError as error:
            key = "the first row" if after is None else f"behind {_key(after)}"
            yield 0, Damage(table=table.name, key=key, detail=f"it cannot be read: {error.detail}")
            return
        for row in page:
            yield 1, _damage(table, row)
        if len(page) < PAGE_ROWS:
            return
        after = dict(zip(table.keys, page[-1], strict=False))


def _page(db: Database, stmt: Statement, params: dict[str, Any] | None) -> list[Row]:
    return db.read(lambda tx: tx.fetch(stmt, params))


def _damage(table: PackedTable, row: Row) -> Damage | None:
    try:
        table.check(row)
    except Exception as error:  # noqa: BLE001  whatever damaged bytes do to a decoder is damage
        detail = error.detail if isinstance(error, PatraError) else f"{type(error).__name__}: {error}"
        key = _key(dict(zip(table.keys, row, strict=False)))
        return Damage(table=table.name, key=key, detail=detail)
    return None


def _sqlite_damages(db: Database) -> Iterator[Damage]:
    try:
        found = db.read(lambda tx: tx.fetch(statement("integrity_check", "PRAGMA integrity_check")))
    except PatraError as error:
        yield Damage(table="(file)", key="", detail=error.detail)
        return
    for (text,) in found:
        if text != "ok":
            yield Damage(table="(file)", key="", detail=" ".join(str(text).split()))


def _key(values: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())
