"""SQL over the files of history: one view for each kind, by DuckDB, which sees these files and nothing else."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from patra.attribution.history.decisions import RECORD_COLUMNS
from patra.attribution.history.files import Span, files_between, read_rows
from patra.attribution.history.kinds import LOG_COLUMNS
from patra.attribution.history.parquet_rows import Columns, load_duckdb, quote_path
from patra.attribution.history.settled_facts import SETTLED_COLUMNS
from patra.kernel.db import Database, Row
from patra.kernel.errors import Invalid
from patra.kernel.files import FilePlace

VIEWS: Mapping[str, Columns] = {
    "log": LOG_COLUMNS,
    "audits": RECORD_COLUMNS,
    "facts": RECORD_COLUMNS,
    "settled": SETTLED_COLUMNS,
}
"""The kinds of files, with their columns; each view has `time` beside them, which is `at` as a timestamp in UTC."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The columns and rows of a query, and how many files it could read."""

    columns: list[str]
    rows: list[Row]
    files: int


def ask(db: Database, place: FilePlace, sql: str, *, begin: int = -(2**62), end: int = 2**62) -> Answer:
    """Run a query over the files with rows of a span of time; raises Invalid where it is wrong or a file is missing."""
    spans = db.read(lambda tx: files_between(tx, begin=begin, end=end))
    duckdb = load_duckdb()
    with TemporaryDirectory(prefix="patra-history-") as folder, duckdb.connect() as connection:
        for kind, columns in VIEWS.items():
            paths = [_copy_part(place, span, Path(folder)) for span in spans if span.kind == kind]
            connection.execute(_view(kind, columns, paths))
        connection.execute(f"SET allowed_directories = [{quote_path(folder)}]")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        try:
            found: Any = connection.execute(sql)
            rows = found.fetchall()
        except duckdb.Error as error:
            raise Invalid("attribution_history_query", f"the query failed: {error}") from error
        return Answer(columns=[one[0] for one in found.description or ()], rows=rows, files=len(spans))


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """Files and rows that were read, and what is wrong with them."""

    files: int
    rows: int
    problems: list[str]


def check_files(db: Database, place: FilePlace) -> Checked:
    """Read every file and compare its rows with their checksum."""
    rows, problems = 0, list[str]()
    spans = db.read(files_between)
    for span in spans:
        try:
            rows += len(read_rows(place, VIEWS[span.kind], span.file or "", span.sha256))
        except Invalid as error:
            problems.append(error.detail)
    return Checked(files=len(spans), rows=rows, problems=problems)


def _copy_part(place: FilePlace, span: Span, folder: Path) -> Path:
    content = place.read(span.file or "")
    if content is None:
        raise Invalid("attribution_history_damaged", f"{span.file} is not in {place.name}")
    path = folder / (span.file or "")
    path.write_bytes(content)
    return path


def _view(kind: str, columns: Columns, paths: list[Path]) -> str:
    names = ", ".join(f'"{name}"' for name in columns)
    if paths:
        files = ", ".join(map(quote_path, paths))
        source = f"SELECT {names} FROM read_parquet([{files}])"
    else:
        empty = ", ".join(f'NULL::{sql_type} AS "{name}"' for name, sql_type in columns.items())
        source = f"SELECT * FROM (SELECT {empty}) WHERE false"
    return f'CREATE VIEW "{kind}" AS SELECT *, make_timestamp("at") AS "time" FROM ({source})'
