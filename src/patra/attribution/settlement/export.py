"""Rows as files for spreadsheets and warehouses."""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from patra.kernel.errors import ConfigInvalid

FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")
KEY_COLUMNS = frozenset({"billingKey", "factId"})
"""Columns that programs compare: ids are written as they are."""
_PLAIN_ID = re.compile(r"[-+][\w.:/+=|-]*", re.ASCII).fullmatch
"""An id that begins with a sign, as those in base64 do: without brackets, quotes or blanks no formula can act."""


def csv_cell(value: Any) -> Any:
    """A value for a spreadsheet: what an app named "=HYPERLINK(…)" is a text there, not a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_SIGNS) else value


def key_cell(value: Any) -> Any:
    """A key for programs that compare it, and for a spreadsheet: only what could act there is made a text."""
    return value if isinstance(value, str) and _PLAIN_ID(value) else csv_cell(value)


def cell_text(cell: str) -> str:
    """The text of a cell, without the apostrophe that `csv_cell` or a spreadsheet put before it."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(FORMULA_SIGNS) else cell


def rows_as_csv(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows with a header."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        values = [(name, "" if row[name] is None else row[name]) for name in columns]
        writer.writerow([key_cell(value) if name in KEY_COLUMNS else csv_cell(value) for name, value in values])
    return text.getvalue()


def rows_as_parquet(columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]], path: str) -> None:
    """Rows as a Parquet file, by the SQL types of their columns; needs the extra `patra[parquet]`."""
    try:
        import duckdb  # noqa: PLC0415  (an extra)
    except ModuleNotFoundError as error:
        raise ConfigInvalid(
            "config_extra_missing", "Parquet files need the extra: pip install 'patra[parquet]'"
        ) from error
    Path(path).touch()  # what is wrong with the file is said as of any other
    values = [[row[name] for row in rows] for name in columns]
    names = ", ".join(f'unnest(?::{kind}[]) AS "{name}"' for name, kind in columns.items())
    connection: Any = duckdb.connect()
    try:
        connection.execute(f"CREATE TABLE exported AS SELECT {names}", values)
        connection.execute(f"COPY exported TO '{path.replace(chr(39), chr(39) * 2)}' (FORMAT parquet)")
    finally:
        connection.close()


FACT_COLUMNS = {
    "factId": "VARCHAR",
    "billingKey": "VARCHAR",
    "billableType": "VARCHAR",
    "factAt": "VARCHAR",
    "placement": "VARCHAR",
    "creative": "VARCHAR",
    "opportunity": "VARCHAR",
    "currency": "VARCHAR",
    "priceMicros": "BIGINT",
    "rateVersion": "BIGINT",
    "adjustmentFlag": "BOOLEAN",
    "period": "VARCHAR",
}
"""The columns of a statement's facts."""
