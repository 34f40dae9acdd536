"""Writes pages of rows as JSONL, CSV, Parquet, DuckDB, CSL-JSON, BibTeX or RIS: a whole file or none.

Memory stays bounded whatever the number of rows: JSONL and CSV are written as rows come; for Parquet and DuckDB rows
are gathered in a file of lines, which is loaded into a DuckDB file while the next one is gathered, and written from
there. The target appears under its name only when it is complete.
"""

import contextlib
import csv
import gzip
import io
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Protocol, Self, cast

import msgspec

from patra.ingest.works.citation_formats import bibtex, csl, is_citable, ris
from patra.kernel.errors import Invalid

BATCH_BYTES = 48 * 1024 * 1024
DUCKDB_MEMORY = "512MB"
MIN_OBJECT_BYTES = 1024 * 1024


class Format(StrEnum):
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    DUCKDB = "duckdb"
    CSL_JSON = "csl-json"
    BIBTEX = "bibtex"
    RIS = "ris"


SUFFIXES = {
    ".jsonl": Format.JSONL,
    ".ndjson": Format.JSONL,
    ".csv": Format.CSV,
    ".parquet": Format.PARQUET,
    ".duckdb": Format.DUCKDB,
    ".csljson": Format.CSL_JSON,
    ".bib": Format.BIBTEX,
    ".ris": Format.RIS,
}


class Table(msgspec.Struct, frozen=True):
    """A table to write: its name, and its columns with their DuckDB types."""

    name: str
    columns: Mapping[str, str]


Json = Mapping[str, Any]
Progress = Callable[[int], None]
_encode = msgspec.json.Encoder().encode
_lines = msgspec.json.Encoder().encode_lines


def format_of(path: Path, given: str | None = None) -> Format:
    """The format by name, or by how the file's name ends. Raises Invalid."""
    if given is not None:
        return Format(given)
    name = path.name.removesuffix(".gz")
    found = SUFFIXES.get(Path(name).suffix.lower())
    if found is None:
        known = ", ".join(SUFFIXES)
        raise Invalid(
            "format_unknown",
            f"{path.name} has no ending of a known format",
            advice=f"name it {known}, or give --format",
        )
    return found


class Sink(Protocol):
    """Where rows go. Leaving its `with` in peace completes the file; an error leaves nothing behind."""

    def write(self, rows: Sequence[Json]) -> int:
        """Write them; gives how many were written."""
        ...

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def sink(path: Path, fmt: Format, table: Table) -> Sink:
    """A sink for a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    match fmt:
        case Format.JSONL:
            return _Jsonl(path)
        case Format.CSV:
            return _Csv(path, table)
        case Format.PARQUET:
            return _Parquet(path, table)
        case Format.DUCKDB:
            return _DuckDb(path, table)
        case Format.CSL_JSON:
            return _CslJson(path)
        case Format.BIBTEX:
            return _Texts(path, bibtex)
        case Format.RIS:
            return _Texts(path, ris)


def export(pages: Iterable[Sequence[Json]], target: Sink, progress: Progress | None = None) -> int:
    """Write all pages; gives the number of rows that were written."""
    count = 0
    with target:
        for rows in pages:
            count += target.write(rows)
            if progress is not None:
                progress(len(rows))
    return count


def to_stream(pages: Iterable[Sequence[Json]], out: BinaryIO) -> int:
    """Write all pages as JSONL to a stream, such as the standard output."""
    count = 0
    for rows in pages:
        out.write(_lines(rows))
        count += len(rows)
    out.flush()
    return count


class _File:
    """A file that appears when it is complete."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._partial = path.with_name(f".{path.name}.{os.getpid()}.partial")

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._close(whole=kind is None)
            if kind is None:
                self._partial.replace(self._path)
        finally:
            self._partial.unlink(missing_ok=True)

    def _open(self) -> None:
        raise NotImplementedError

    def _close(self, *, whole: bool) -> None:
        raise NotImplementedError


class _Jsonl(_File):
    """One JSON object a line; compressed where the name ends in .gz."""

    def _open(self) -> None:
        self._out = _open_file(self._partial, packed=self._path.name.endswith(".gz"))

    def write(self, rows: Sequence[Json]) -> int:
        self._out.write(_lines(rows))
        return len(rows)

    def _close(self, *, whole: bool) -> None:
        del whole
        self._out.close()


class _CslJson(_Jsonl):
    """One JSON array of items."""

    def _open(self) -> None:
        super()._open()
        self._mark = b"[\n"

    def write(self, rows: Sequence[Json]) -> int:
        found = list(filter(is_citable, rows))
        for row in found:
            self._out.write(self._mark + _encode(csl(row)))
            self._mark = b",\n"
        return len(found)

    def _close(self, *, whole: bool) -> None:
        self._out.write(b"[]\n" if self._mark == b"[\n" else b"\n]\n")
        super()._close(whole=whole)


class _Texts(_Jsonl):
    """Each row as a text of its own (BibTeX, RIS), one after the other."""

    def __init__(self, path: Path, written: Callable[[Json], str]) -> None:
        super().__init__(path)
        self._written = written

    def write(self, rows: Sequence[Json]) -> int:
        found = [self._written(row) for row in rows if is_citable(row)]
        self._out.write("\n".join([*found, ""]).encode())
        return len(found)


class _Csv(_File):
    """RFC 4180 with a header; lists and objects as JSON. Cells that a spreadsheet would run are kept as text."""

    def __init__(self, path: Path, table: Table) -> None:
        super().__init__(path)
        self._columns = list(table.columns)

    def _open(self) -> None:
        out = _open_file(self._partial, packed=self._path.name.endswith(".gz"))
        self._out = io.TextIOWrapper(out, encoding="utf-8", newline="")
        self._csv = csv.writer(self._out, lineterminator="\r\n")
        self._csv.writerow(self._columns)

    def write(self, rows: Sequence[Json]) -> int:
        self._csv.writerows([_cell(row.get(name)) for name in self._columns] for row in rows)
        return len(rows)

    def _close(self, *, whole: bool) -> None:
        del whole
        self._out.close()


class _DuckDb(_File):
    """A DuckDB file with one table."""

    def __init__(self, path: Path, table: Table) -> None:
        super().__init__(path)
        self._table = table
        self._longest = 0

    def _open(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix=".patra-export-", dir=self._path.parent))
        self._database = self._folder / "rows.duckdb"
        self._con = connect_duckdb(self._database, self._folder)
        columns = ", ".join(f'"{name}" {kind}' for name, kind in self._table.columns.items())
        self._con.execute(f'CREATE TABLE "{self._table.name}" ({columns})')
        self._batch = 0
        self._out = self._file(0).open("wb")
        self._loader = ThreadPoolExecutor(1, "patra export")
        self._loading: Future[None] | None = None

    def _file(self, batch: int) -> Path:
        return self._folder / f"rows-{batch % 2}.jsonl"

    def write(self, rows: Sequence[Json]) -> int:
        lines = _lines(rows)
        self._longest = max(self._longest, max(map(len, lines.splitlines()), default=0))
        self._out.write(lines)
        if self._out.tell() >= BATCH_BYTES:
            self._load()
        return len(rows)

    def _load(self) -> None:
        """Hand the gathered lines to DuckDB; it is done with those before them by then."""
        self._out.close()
        self._await_load()
        file, longest = self._file(self._batch), max(self._longest + 1024, MIN_OBJECT_BYTES)
        if file.stat().st_size:
            self._loading = self._loader.submit(self._insert, file, longest)
        self._batch += 1
        self._out = self._file(self._batch).open("wb")

    def _insert(self, file: Path, longest: int) -> None:
        names = ", ".join(f'"{name}"' for name in self._table.columns)
        # DuckDB keeps buffers of twice the largest object for each thread, so it is given their size
        self._con.execute(
            f"INSERT INTO \"{self._table.name}\" SELECT {names} FROM read_json(?, format = 'newline_delimited',"
            " columns = ?, maximum_object_size = ?)",
            [str(file), dict(self._table.columns), longest],
        )

    def _await_load(self) -> None:
        """Wait for what was handed over; its errors are ours."""
        if self._loading is not None:
            self._loading.result()
            self._loading = None

    def _close(self, *, whole: bool) -> None:
        try:
            if whole:
                self._load()
                self._await_load()
                self._finish()
        finally:
            self._loader.shutdown()
            self._out.close()
            with contextlib.suppress(Exception):
                self._con.close()
            shutil.rmtree(self._folder, ignore_errors=True)

    def _finish(self) -> None:
        self._con.execute("CHECKPOINT")
        self._con.close()
        self._database.replace(self._partial)


class _Parquet(_DuckDb):
    """A Parquet file, compressed with zstd."""

    def _finish(self) -> None:
        name = str(self._partial).replace("'", "''")
        self._con.execute(
            f"COPY \"{self._table.name}\" TO '{name}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 20000)"
        )


def _open_file(path: Path, *, packed: bool) -> BinaryIO:
    """Open for writing; the caller closes it."""
    return cast("BinaryIO", gzip.open(path, "wb", compresslevel=3)) if packed else path.open("wb")


def connect_duckdb(database: Path, spill: Path) -> Any:
    """A DuckDB file with bounded memory that spills beside itself. Raises Invalid where duckdb is not installed."""
    try:
        import duckdb  # noqa: PLC0415  an extra of 60 MB, and only for these two formats
    except ImportError as error:
        raise Invalid(
            "duckdb_missing", "Parquet and DuckDB need the duckdb package", advice="pip install 'patra[parquet]'"
        ) from error
    return duckdb.connect(
        str(database),
        config={
            "memory_limit": DUCKDB_MEMORY,
            "temp_directory": str(spill),
            "preserve_insertion_order": "true",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
        },
    )


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    text = value if isinstance(value, str) else _encode(value).decode()
    return f"'{text}" if text[:1] in _FORMULA else text


_FORMULA = frozenset("=+-@\t\r")
"""Characters with which a spreadsheet begins to calculate."""
