"""Partitions of the log, which leave the store whole: which lines wait for that, and for how long.

A partition is full once the writers are behind it. When its last line is past its time all of its lines are written to
files (where there is a place for history), and it is dropped. Lines of a full partition wait a day for that; after it
they leave one by one, as those do that no full partition has. So a slow store, whose partitions take weeks to fill,
keeps nothing longer than a day past its time.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar

import msgspec

from patra.attribution.history.files import Span
from patra.attribution.storage.sql import Q
from patra.kernel.clock import DAY
from patra.kernel.db import Database, Row, Tx
from patra.kernel.db.partitions import (
    GrowingTable,
    Partition,
    drop,
    full_partitions,
    hold_still,
    keep_partitions,
    newest_instant,
    rows_of,
)

T = TypeVar("T")
LOG = GrowingTable(name="att_log", key="number", time="at")
MAX_WAIT = DAY
_FIRST, _END = -(2**62), 2**62


class Dropped(msgspec.Struct, frozen=True, kw_only=True):
    """A partition that went: how many lines it had, and up to which instant; None where it was empty."""

    lines: int
    until: int | None


def read_with_log(db: Database, work: Callable[[Tx], T]) -> T:
    """Read what is compared with the log: no partition of it is dropped meanwhile, and each line is of the snapshot."""

    def read(tx: Tx) -> T:
        keep_partitions(tx, LOG)
        return work(tx)

    return db.read(read)


class Stretch(msgspec.Struct, frozen=True):
    """Numbers whose lines leave if they are from before an instant."""

    first: int
    end: int
    before: int


def past_partitions(tx: Tx, before: int) -> list[Partition]:
    """Full ones that have no line from after an instant, the oldest first."""
    return [one for one in full_partitions(tx, LOG) if _is_past(tx, one, before)]


def _is_past(tx: Tx, partition: Partition, before: int) -> bool:
    newest = newest_instant(tx, LOG, partition)
    return newest is None or newest < before


def stretches(tx: Tx, before: int, *, into_files: bool) -> Iterator[Stretch]:
    """The lines that leave now one by one or, of partitions that are past, into files; all of a table that is whole.

    No file crosses from one stretch into the next.
    """
    reached = _FIRST
    for one in full_partitions(tx, LOG):
        if reached < one.first:
            yield Stretch(reached, one.first, before)
        if into_files and _is_past(tx, one, before):
            # in their order, without a gap: those of its files need not be looked at again
            yield Stretch(
                max((last + 1 for _, last, _ in _verified_lines(tx, one)), default=one.first), one.end, before
            )
        else:
            yield Stretch(one.first, one.end, before - MAX_WAIT)
        reached = one.end
    yield Stretch(reached, _END, before)


def waits_for_partition(tx: Tx, span: Span) -> bool:
    """Whether the lines of a span leave with their partition; those that were brought back, or waited a day, do not."""
    return span.held_until is None and any(
        one.first <= span.first and span.last < one.end and _is_past(tx, one, span.cutoff)
        for one in full_partitions(tx, LOG)
    )


def leave_to_partition(tx: Tx, span: Span, now: int) -> bool:
    """Note that the file of a span was read back, and that its lines wait."""
    return bool(tx.execute(Q["verify_history_file"], {"number": span.number, "now": now, "until": now + MAX_WAIT}))


def drop_past(tx: Tx, partition: Partition, before: int, now: int, *, in_files: bool) -> Dropped | None:
    """Drop a partition whose lines are past their time and, with `in_files`, all in files that were verified.

    None where it stays. Raises StoreBusy where the log is not free within a short time.
    """
    if not hold_still(tx, LOG, partition):
        return None
    newest = newest_instant(tx, LOG, partition)
    lines = rows_of(tx, LOG, partition, partition.first, partition.end - 1)
    if newest is not None and newest >= before:
        return None
    if in_files and not _all_in_files(tx, partition, lines):
        return None
    drop(tx, LOG, partition)
    tx.execute(Q["end_verified_files"], {"first": partition.first, "end": partition.end, "now": now})
    return Dropped(lines=lines, until=None if newest is None else newest + 1)


def _all_in_files(tx: Tx, partition: Partition, lines: int) -> bool:
    """Whether every line of a partition is in a verified file: between the first and the last of each there are as many
    as it has, no two files have the same, and there are no others. A sum alone could hide a line behind another's file.
    """
    reached, known = partition.first - 1, 0
    for first, last, count in _verified_lines(tx, partition):
        if first <= reached or rows_of(tx, LOG, partition, first, last) != count:
            return False
        reached, known = last, known + count
    return known == lines


def _verified_lines(tx: Tx, partition: Partition) -> list[Row]:
    """The first line, the last line and the number of lines of each verified file, in their order."""
    return tx.fetch(Q["verified_log_files"], {"first": partition.first, "end": partition.end})
