"""The log out of the files of history: read in its order, and brought back into the store for a while."""

from typing import Any

import msgspec

from patra.attribution.history.files import Span, files_between, read_rows
from patra.attribution.history.kinds import DELETE_BATCH_SIZE, LOG_COLUMNS, log_row
from patra.attribution.intake.zstd import decompress_body
from patra.attribution.storage.sql import Q
from patra.kernel.clock import format_instant
from patra.kernel.db import Database, Row, Tx
from patra.kernel.errors import Invalid
from patra.kernel.files import FilePlace

LogLine = tuple[int, int, str, bytes | None]
"""A line: number, instant, kind, and the body as it was sent."""

_TABLE_COLUMNS: tuple[str, ...] = ("number", "place", "at", "kind", "app_id", "batch_id", "code", "body")


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """What was brought back: files, lines that were not there, and until when they are held."""

    files: int
    lines: int
    until: str


def lines_of_file(place: FilePlace, span: Span) -> list[LogLine]:
    """The lines of a file, by number; raises Invalid where it is missing or damaged."""
    return [_line(row) for row in read_rows(place, LOG_COLUMNS, span.file or "", span.sha256)]


def _line(row: Row) -> LogLine:
    number, _, at, kind, _, _, _, body = log_row(row)
    return number, at, kind, None if body is None else decompress_body(body)


def restore_log(db: Database, place: FilePlace, *, begin: int, end: int, now: int, hold: int) -> Restored:
    """Bring the files with lines of a span of time back into the store, whole, and hold them there for `hold`.

    Doing it again adds nothing and holds them for longer. Raises Invalid where history has no such lines.
    """
    spans = db.read(lambda tx: files_between(tx, "log", begin, end))
    if not spans:
        raise Invalid(
            "attribution_history_missing",
            f"history has no lines from {format_instant(begin)} up to {format_instant(end)}",
            advice="`patra attribution history list` shows what it has",
        )
    lines = sum(_restore(db, place, span, now + hold) for span in spans)
    return Restored(files=len(spans), lines=lines, until=format_instant(now + hold))


def _restore(db: Database, place: FilePlace, span: Span, until: int) -> int:
    """The hold is written first: what comes back after it is deleted again, whatever happens in between."""
    rows = [log_row(row) for row in read_rows(place, LOG_COLUMNS, span.file or "", span.sha256)]
    db.run(lambda tx: tx.execute(Q["hold_history_file"], {"number": span.number, "until": until}))
    lines = 0
    for start in range(0, len(rows), DELETE_BATCH_SIZE):
        batch: list[dict[str, Any]] = [
            dict(zip(_TABLE_COLUMNS, row, strict=True)) for row in rows[start : start + DELETE_BATCH_SIZE]
        ]

        def bring(tx: Tx, batch: list[dict[str, Any]] = batch) -> int:
            return len(tx.insert_absent("att_log", batch, key=("number",)))

        lines += db.run(bring)
    return lines
