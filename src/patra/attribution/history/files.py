"""The files of history: each with an index beside it, and a row in the store that says what became of its rows.

A span of rows is fixed first (a row of `att_history_file`), then written as a file, read back and compared, then
entered as exported; only then its rows are deleted. So a process that is killed at any moment, or runs beside another,
leaves at most a file without an index, which nothing counts; its rows are in the store, or in a file that is entered.
"""

from collections.abc import Iterator

import msgspec

from patra.attribution.history.parquet_rows import Columns, digest_of, parquet_of, rows_of
from patra.attribution.storage.sql import Q, mark, set_mark
from patra.kernel.clock import format_instant
from patra.kernel.db import Row, Tx
from patra.kernel.errors import Invalid
from patra.kernel.files import FilePlace, StorageCodes, file_place

CODES = StorageCodes(
    missing="config_extra_missing",
    refused="attribution_history_refused",
    unavailable="attribution_history_unavailable",
    damaged="attribution_history_damaged",
)
INDEX_SUFFIX = ".index.json"
SETTING = "attribution.history_url"
KINDS = ("log", "audits", "facts", "settled")
FAILED_SINCE = "history_failed_"
"""How the marks begin that say since when rows of a kind cannot be moved."""


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """A span of rows that leaves the store, as `att_history_file` has it; without a `file` it is to be written."""

    number: int
    kind: str
    first: int
    last: int
    cutoff: int
    """Only rows from before this instant."""
    file: str | None = None
    rows: int = 0
    sha256: str = ""
    first_at: int = 0
    last_at: int = 0
    held_until: int | None = None
    deleted_at: int | None = None
    verified_at: int | None = None
    """When its file was last read back, where its rows wait to leave with their partition."""


class HistoryFile(msgspec.Struct, frozen=True, kw_only=True):
    """The index of one file: what is in it, so that it is opened only when it is asked for."""

    file: str
    kind: str
    rows: int
    sha256: str
    """Of the rows."""
    first: int
    last: int
    first_at: str
    last_at: str


def history_place(folder: str, url: str) -> FilePlace | None:
    """The place that the settings name; None where there is none."""
    return file_place(folder, url, CODES, setting=SETTING)


# --- rows of the store ------------------------------------------------------------------------------------------------


def open_span(tx: Tx, kind: str, now: int) -> Span | None:
    """The span of a kind that is still to be written or deleted, if there is one; those that are held wait."""
    return next(iter(_spans(tx.fetch(Q["open_history_file"], {"kind": kind, "now": now}))), None)


def add_span(tx: Tx, kind: str, first: int, last: int, cutoff: int, now: int) -> None:
    """Fix a span; nothing happens where another process was first."""
    tx.execute(Q["add_history_file"], {"kind": kind, "first": first, "last": last, "cutoff": cutoff, "planned_at": now})


def enter_file(tx: Tx, span: Span, written: HistoryFile, now: int) -> bool:
    """Enter the file of a span as exported; False where another process was first, whose file counts."""
    values = msgspec.structs.asdict(written) | {"first_at": span.first_at, "last_at": span.last_at}
    del values["first"], values["kind"]
    return bool(tx.execute(Q["enter_history_file"], {**values, "number": span.number, "exported_at": now}))


def files_between(tx: Tx, kind: str = "", begin: int = -(2**62), end: int = 2**62) -> list[Span]:
    """The exported files of a kind, or of all, with rows of a span of time; the oldest first."""
    return list(_spans(tx.fetch(Q["history_files"], {"kind": kind, "begin": begin, "end": end})))


def exported_rows(tx: Tx) -> dict[str, int]:
    """How many rows of each kind are in history and no longer in the store."""
    return {kind: int(rows) for kind, rows in tx.fetch(Q["history_rows"])}


def note_failure(tx: Tx, kind: str, since: int) -> None:
    """Note since when rows of a kind cannot be moved to history; 0: they can."""
    set_mark(tx, f"{FAILED_SINCE}{kind}", since)


def failing_kinds(tx: Tx) -> dict[str, int]:
    """The kinds of rows that cannot be moved to history, each with the instant since when."""
    return {kind: since for kind in KINDS if (since := mark(tx, f"{FAILED_SINCE}{kind}"))}


def _spans(rows: list[Row]) -> Iterator[Span]:
    names = Span.__struct_fields__
    for row in rows:
        given = {name: value for name, value in zip(names, row, strict=True) if value is not None}
        yield Span(**given)


# --- files ------------------------------------------------------------------------------------------------------------


def write_rows(place: FilePlace, span: Span, columns: Columns, rows: list[Row]) -> HistoryFile:
    """Write the rows of a span as a file and read it back; raises Invalid where it is not what was written."""
    digest = digest_of(rows)
    written = HistoryFile(
        file=f"{span.kind}-{span.first:019}-{digest[:16]}.parquet",
        kind=span.kind,
        rows=len(rows),
        sha256=digest,
        first=span.first,
        last=span.last,
        first_at=format_instant(span.first_at),
        last_at=format_instant(span.last_at),
    )
    place.put(written.file, parquet_of(columns, rows))
    read_rows(place, columns, written.file, digest)
    return written


def write_index(place: FilePlace, span: Span) -> None:
    """Put the index of an exported file beside it, from which the place can be read without the store."""
    index = HistoryFile(
        file=span.file or "",
        kind=span.kind,
        rows=span.rows,
        sha256=span.sha256,
        first=span.first,
        last=span.last,
        first_at=format_instant(span.first_at),
        last_at=format_instant(span.last_at),
    )
    place.put(f"{index.file.removesuffix('.parquet')}{INDEX_SUFFIX}", msgspec.json.encode(index))


def read_rows(place: FilePlace, columns: Columns, file: str, digest: str) -> list[Row]:
    """The rows of a file; raises Invalid where they are not those of its checksum."""
    content = place.read(file)
    if content is None:
        raise Invalid("attribution_history_damaged", f"{file} is not in {place.name}")
    try:
        rows = rows_of(columns, content)
    except ValueError as error:
        raise Invalid("attribution_history_damaged", f"{file} cannot be read: {error}") from error
    if digest_of(rows) != digest:
        raise Invalid("attribution_history_damaged", f"{file} is not what its checksum says")
    return rows
