"""What a kind of rows has to say to go to history, and the first of them: lines of the log.

A kind says which rows are next (`next_span`), reads them as they are written (`rows_of`), and deletes those that a file
holds (`delete`), in one transaction for each batch of keys; `finish` notes that a span is gone.
"""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple, Protocol

from patra.attribution.history.files import Span
from patra.attribution.history.log_partitions import stretches
from patra.attribution.history.parquet_rows import Columns
from patra.attribution.intake.zstd import compress_body, decompress_body
from patra.attribution.storage.sql import Q, mark, set_mark
from patra.kernel.db import Row, Tx

MAX_FILE_ROWS = 20_000
MAX_FILE_BYTES = 8 << 20
"""Of compressed log lines in one file; uncompressed they are some ten times as much."""
DELETE_BATCH_SIZE = 1000

LOG_PURGED, LOG_LOST, LOG_MOVED = "log_purged", "log_lost", "log_moved"
"""The marks: the instants up to which lines of the log were deleted at all, without being exported, and after that.

A process of an earlier release deletes lines and sets only the first: where it is not the third, lines are lost."""


class Bounds(NamedTuple):
    """The first and last key of the rows that go next."""

    first: int
    last: int


class Kind(Protocol):
    """Rows of one kind. The first column of its files is the key by which rows are deleted, the second their time."""

    name: str
    columns: Columns

    def next_span(self, tx: Tx, before: int) -> Bounds | None: ...

    def rows_of(self, tx: Tx, span: Span) -> list[Row]: ...

    def delete(self, tx: Tx, rows: Sequence[Row]) -> int:
        """Delete rows of a file, in their order, up to the first that has to stay; gives how many are gone."""
        ...

    def finish(self, tx: Tx, span: Span) -> None: ...


LOG_COLUMNS: Columns = {
    "number": "BIGINT",
    "at": "BIGINT",
    "place": "BIGINT",
    "kind": "VARCHAR",
    "app_id": "VARCHAR",
    "batch_id": "VARCHAR",
    "code": "VARCHAR",
    "body": "VARCHAR",
    "raw": "BLOB",
}


def log_purged_before(tx: Tx) -> int | None:
    """Up to which instant lines of the log left the store; None where none did."""
    return _instant(tx, LOG_PURGED)


def log_lost_before(tx: Tx) -> int | None:
    """Up to which instant lines of the log are in no file either; None where none are lost."""
    purged, lost = _instant(tx, LOG_PURGED), _instant(tx, LOG_LOST)
    if purged is None or purged == _instant(tx, LOG_MOVED):
        return lost
    return purged if lost is None else max(purged, lost)


def note_moved(tx: Tx, until: int) -> None:
    """Note that lines from before an instant left the store for files."""
    lost = log_lost_before(tx)
    purged = max(mark(tx, LOG_PURGED), until)
    if lost is not None:  # noted before the marks are the same again
        set_mark(tx, LOG_LOST, lost)
    set_mark(tx, LOG_PURGED, purged)
    set_mark(tx, LOG_MOVED, purged)


def _instant(tx: Tx, name: str) -> int | None:
    found = tx.fetch(Q["log_mark"], {"name": name})
    return found[0][0] if found else None


class LogLines:
    """Batches as received and ticks; a body that is not text stands in `raw`."""

    name = "log"
    columns: Columns = LOG_COLUMNS

    def next_span(self, tx: Tx, before: int) -> Bounds | None:
        """Never the newest line: numbers go on from it."""
        for stretch in stretches(tx, before, into_files=True):
            asked = {"before": stretch.before, "first": stretch.first, "end": stretch.end, "limit": MAX_FILE_ROWS}
            size = 0
            numbers: list[int] = []
            for number, _, length in tx.fetch(Q["log_lines_to_export"], asked):
                size += length
                if numbers and size > MAX_FILE_BYTES:
                    break
                numbers.append(number)
            if numbers:
                return Bounds(numbers[0], numbers[-1])
        return None

    def rows_of(self, tx: Tx, span: Span) -> list[Row]:
        asked = {"first": span.first, "last": span.last, "cutoff": span.cutoff}
        return [
            (number, at, place, kind, app_id, batch_id, code, *_text(body))
            for number, place, at, kind, app_id, batch_id, code, body in tx.fetch(Q["log_lines_of_span"], asked)
        ]

    def delete(self, tx: Tx, rows: Sequence[Row]) -> int:
        tx.execute(Q["purge_log_lines"], rows=[(row[0],) for row in rows])
        note_moved(tx, max(row[1] for row in rows) + 1)
        return len(rows)

    def finish(self, tx: Tx, span: Span) -> None:
        del tx, span


def _text(body: bytes | None) -> tuple[str | None, bytes | None]:
    """The body as text, or as the bytes it was."""
    if body is None:
        return None, None
    sent = decompress_body(bytes(body))
    try:
        text = sent.decode()
    except UnicodeDecodeError:
        return None, sent
    return (None, sent) if "\0" in text else (text, None)


def log_row(row: Row) -> Row:
    """A line of a file as `att_log` has it: number, place, at, kind, app, batch, code, body."""
    number, at, place, kind, app_id, batch_id, code, body, raw = row
    sent = raw if body is None else str(body).encode()
    return number, place, at, kind, app_id, batch_id, code, None if sent is None else compress_body(bytes(sent))


def in_batches(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Rows in batches; rows of one key stay together."""
    start = 0
    while start < len(rows):
        stop = min(start + DELETE_BATCH_SIZE, len(rows))
        stop += sum(1 for _ in takewhile(lambda row, last=rows[stop - 1][0]: row[0] == last, rows[stop:]))
        yield rows[start:stop]
        start = stop
