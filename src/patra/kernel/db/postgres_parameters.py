"""Parameters of a statement as psycopg takes them: single values, one row, or a set as arrays."""

from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Any

import msgspec
from psycopg.types.numeric import Int8

from patra.kernel.db.api import Params, Row
from patra.kernel.db.queries import KEY_BYTES, Statement, not_a_statement

_encode = msgspec.json.Encoder().encode


def bind(stmt: Statement, params: Params | None, rows: Sequence[Row] | None) -> tuple[str, dict[str, Any]]:
    """The text of a call and its parameters."""
    bound: dict[str, Any] = dict(params) if params else {}
    if rows is None:
        try:
            return stmt.postgres, bound
        except AttributeError:
            raise not_a_statement(stmt) from None
    if len(rows) == 1:
        return stmt.postgres_one, bound | _one(stmt, rows[0])
    return stmt.postgres, bound | _set(stmt, rows)


def _one(stmt: Statement, row: Row) -> dict[str, Any]:
    """Integers always of one size, or each size would be a prepared statement of its own."""
    return {
        f"rows__{place}": Int8(value) if column.type == "int" and value is not None else value
        for place, (column, value) in enumerate(zip(stmt.rows, row, strict=True))
    }


def _set(stmt: Statement, rows: Sequence[Row]) -> dict[str, Any]:
    """A set as one JSON text, keys and blobs beside it: the cheapest way to hand PostgreSQL a thousand rows."""
    columns: list[Sequence[Any]] = []
    keys: list[Sequence[bytes]] = []
    blobs: list[bytes] = []
    end = 1
    for column, values in zip(stmt.rows, zip(*rows, strict=True), strict=True):
        match column.type:
            case "key16":
                keys.append(values)
            case "blob":
                blobs += [value for value in values if value is not None]
                sizes = [None if value is None else len(value) for value in values]
                starts = list(accumulate((size or 0 for size in sizes), initial=end))
                columns += [starts[:-1], sizes]
                end = starts[-1]
            case _:
                columns.append(values)
    found: dict[str, Any] = {}
    if columns:
        found["rows"] = _encode(list(map(stmt.json_row, *columns))).decode()
    if len(columns) > len(stmt.rows) - len(keys):
        found["blobs"] = b"".join(blobs)
    if keys:
        found["keys"] = b"".join(keys[0] if len(keys) == 1 else chain.from_iterable(zip(*keys, strict=True)))
        if len(found["keys"]) != KEY_BYTES * len(keys) * len(rows):
            raise ValueError(f"{stmt.name}: a key16 has {KEY_BYTES} bytes")
    return found
