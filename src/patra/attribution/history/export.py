"""Moves rows past their retention into files: fix a span, write it, verify it, delete its rows, in bounded batches.

Each step begins with what the store says, so a process that was killed is continued by the next, and two processes do
the same work at worst. What is deleted is what the file holds, as it was read back.
"""

from collections.abc import Sequence

import msgspec

from patra.attribution.history.decisions import DecisionRecords
from patra.attribution.history.files import (
    Span,
    add_span,
    enter_file,
    open_span,
    read_rows,
    write_index,
    write_rows,
)
from patra.attribution.history.kinds import Kind, LogLines, in_batches
from patra.attribution.history.log_partitions import leave_to_partition, waits_for_partition
from patra.attribution.history.parquet_rows import digest_of
from patra.attribution.storage.sql import Q
from patra.kernel.db import Database, Row, Tx
from patra.kernel.errors import Invalid
from patra.kernel.files import FilePlace
from patra.kernel.telemetry import get_logger

log = get_logger()


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """One step: rows that were deleted after they were exported, and decisions that stay permanently."""

    rows: int = 0
    passed: int = 0
    written: int = 0
    """Files that were lost before any of their rows was deleted, and were written again."""


class Exporter:
    """Moves rows of any kind from a store to a place."""

    def __init__(self, db: Database, place: FilePlace) -> None:
        self._db = db
        self._place = place

    def move(self, kind: Kind, before: int, now: int) -> Moved:
        """One file of a kind: rows from before an instant."""
        span = self._db.read(lambda tx: open_span(tx, kind.name, now)) or self._plan_span(kind, before, now)
        if span is None:
            passed = self._passed_over(kind, before)
            return Moved(passed=passed)
        if span.file is None:
            self._write(kind, span, now)
            span = self._db.read(lambda tx: open_span(tx, kind.name, now))
            if span is None or span.file is None:
                return Moved()
        try:
            rows = read_rows(self._place, kind.columns, span.file or "", span.sha256)
        except Invalid:
            if not self._db.run(lambda tx: _reset(tx, kind, span)):
                raise
            log.warning("attribution_history_file_written_again", kind=kind.name, file=span.file)
            self._write(kind, self._db.read(lambda tx: open_span(tx, kind.name, now)) or span, now)
            return Moved(rows=0, written=1)
        return Moved(rows=self._delete(kind, span, rows, now))

    def _plan_span(self, kind: Kind, before: int, now: int) -> Span | None:
        bounds = self._db.read(lambda tx: kind.next_span(tx, before))
        if bounds is None:
            return None
        self._db.run(lambda tx: add_span(tx, kind.name, bounds.first, bounds.last, before, now))
        return self._db.read(lambda tx: open_span(tx, kind.name, now))

    def _passed_over(self, kind: Kind, before: int) -> int:
        return self._db.run(lambda tx: kind.pass_over(tx, before)) if isinstance(kind, DecisionRecords) else 0

    def _write(self, kind: Kind, span: Span, now: int) -> None:
        """Write the file of a span; its rows are read together with the span, which another process may have moved."""

        def read(tx: Tx) -> list[Row] | None:
            found = open_span(tx, kind.name, now)
            return kind.rows_of(tx, span) if found is not None and found == span else None

        rows = self._db.read(read)
        if rows is None:
            return
        if not rows:  # deleted meanwhile by other means
            self._db.run(lambda tx: tx.execute(Q["drop_history_span"], {"number": span.number}))
            return
        times = [row[1] for row in rows]
        timed = msgspec.structs.replace(span, last=rows[-1][0], first_at=min(times), last_at=max(times))
        written = write_rows(self._place, timed, kind.columns, rows)
        self._db.run(lambda tx: enter_file(tx, timed, written, now))

    def _delete(self, kind: Kind, span: Span, rows: Sequence[Row], now: int) -> int:
        if isinstance(kind, LogLines) and self._left_to_partition(span, now):
            return len(rows)
        done = 0
        for batch in in_batches(rows):
            gone = self._db.run(lambda tx, batch=batch: kind.delete(tx, batch) if _under_way(tx, span) else None)
            if gone is None:  # another process has shortened the file, or ended the span
                return done
            done += gone
            if gone < len(batch):
                return done if self._shorten_span(kind, span, rows, done, now) else 0
        write_index(self._place, span)

        def end(tx: Tx) -> None:
            kind.finish(tx, span)
            tx.execute(Q["end_history_file"], {"number": span.number, "now": now})

        self._db.run(end)
        return len(rows)

    def _left_to_partition(self, span: Span, now: int) -> bool:
        """Whether the lines of a span, whose file was read back, leave with their partition of the log."""
        if not self._db.read(lambda tx: waits_for_partition(tx, span)):
            return False
        write_index(self._place, span)
        return self._db.run(lambda tx: _under_way(tx, span) and leave_to_partition(tx, span, now))

    def _shorten_span(self, kind: Kind, span: Span, rows: Sequence[Row], done: int, now: int) -> bool:
        """End a span before rows that have to stay; a later one takes them. Its file is written again without them.

        False where they need not stay any longer: the span goes on as it was.
        """
        kept = list(rows[:done])
        short, written = span, None
        if kept:
            times = [row[1] for row in kept]
            short = msgspec.structs.replace(span, last=kept[-1][0], first_at=min(times), last_at=max(times))
            written = write_rows(self._place, short, kind.columns, kept)
            short = msgspec.structs.replace(short, file=written.file, rows=written.rows, sha256=written.sha256)
            write_index(self._place, short)
        following = next(in_batches(rows[done:]))

        def end(tx: Tx) -> bool:
            if not _under_way(tx, span) or kind.delete(tx, following):
                return False
            tx.execute(Q["reset_history_file"], {"number": span.number})
            if written is None:
                tx.execute(Q["drop_history_span"], {"number": span.number})
            else:
                enter_file(tx, short, written, now)
                tx.execute(Q["end_history_file"], {"number": span.number, "now": now})
            return True

        return self._db.run(end)


def _under_way(tx: Tx, span: Span) -> bool:
    """Whether a span is still to be deleted as its file has it; nobody else changes it before the transaction ends."""
    return bool(tx.fetch(Q["history_file_under_way"], {"number": span.number, "file": span.file}))


def _reset(tx: Tx, kind: Kind, span: Span) -> bool:
    """Forget the file of a span, which is lost, where all of its rows are still in the store; whether that is so.

    Rows are deleted in their order. Where the first is there, none was; lines of the log that were brought back have to
    be there all.
    """
    if not _under_way(tx, span):
        return False
    rows = kind.rows_of(tx, span)
    first_is_left = span.held_until is None and bool(rows) and rows[0][0] == span.first
    if not first_is_left and digest_of(rows) != span.sha256:
        return False
    tx.execute(Q["reset_history_file"], {"number": span.number})
    return True
