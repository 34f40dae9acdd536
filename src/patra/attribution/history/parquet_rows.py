"""Rows as the bytes of a Parquet file, and back, by DuckDB (the extra `parquet`)."""

from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from patra.kernel.db import Row
from patra.kernel.errors import ConfigInvalid

Columns = Mapping[str, str]
"""Names of columns with their SQL types."""


def load_duckdb() -> Any:
    """DuckDB; raises ConfigInvalid where it is not installed."""
    try:
        import duckdb  # noqa: PLC0415  an extra
    except ModuleNotFoundError as error:
        raise ConfigInvalid(
            "config_extra_missing", "Parquet files need the extra: pip install 'patra[parquet]'"
        ) from error
    return duckdb


@cache
def _connection() -> Any:
    """One for the process, of which every call takes a cursor: opening one costs more than a small file."""
    return load_duckdb().connect(config={"threads": 1})


def quote_path(path: Path | str) -> str:
    """A path as a literal of SQL."""
    return "'" + str(path).replace("'", "''") + "'"


def parquet_of(columns: Columns, rows: Sequence[Row]) -> bytes:
    """The bytes of a Parquet file with the rows, in their order."""
    values: list[list[Any]] = [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in columns]
    names = ", ".join(f'unnest(?::{kind}[]) AS "{name}"' for name, kind in columns.items())
    with TemporaryDirectory(prefix="patra-history-") as folder, _connection().cursor() as db:
        path = Path(folder) / "rows.parquet"
        db.execute(f"CREATE TEMP TABLE exported AS SELECT {names}", values)
        db.execute(f"COPY exported TO {quote_path(path)} (FORMAT parquet, COMPRESSION zstd)")
        return path.read_bytes()


def rows_of(columns: Columns, content: bytes) -> list[Row]:
    """The rows of a Parquet file, in their order; raises ValueError where it is none with these columns."""
    duckdb = load_duckdb()
    with TemporaryDirectory(prefix="patra-history-") as folder, _connection().cursor() as db:
        path = Path(folder) / "rows.parquet"
        path.write_bytes(content)
        names = ", ".join(f'"{name}"' for name in columns)
        try:
            return db.execute(f"SELECT {names} FROM read_parquet({quote_path(path)})").fetchall()
        except duckdb.Error as error:
            raise ValueError(str(error).partition("\n")[0]) from error


def digest_of(rows: Sequence[Row]) -> str:
    """The sha256 of rows, whatever file they are in."""
    return sha256(msgspec.json.Encoder().encode_lines(rows)).hexdigest()
