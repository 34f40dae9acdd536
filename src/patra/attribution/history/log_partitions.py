"""Partitions of the log, which leave the store whole: which lines wait for that, and for how long.

A partition is full once the writers are behind it. When its last line is past its time all of its lines are written to
files (where there is a place for history), and it is dropped. Lines of a full partition wait a day for that; after it
they leave one by one, as those do that no full partition has. So a slow store, whose partitions take weeks to fill,
keeps nothing longer than a day past its time.
"""

from collections.abc import Iterator

import msgspec

from patra.attribution.history.files import Span
from patra.attribution.storage.sql import Q
from patra.kernel.clock import DAY
from patra.kernel.db import Tx
from patra.kernel.db.partitions import (
    GrowingTable,
    Partition,
    drop,
    full_partitions,
    hold_still,
    newest_instant,
    rows_of,
)

LOG = GrowingTable(name="att_log", key="number", time="at")
MAX_WAIT = DAY
_FIRST, _END = -(2**62), 2**62


class Dropped(msgspec.Struct, frozen=True, kw_only=True):
    """A partition that went: how many lines it had, and up to which instant; None where it was empty."""

    lines: int
    until: int | None


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
        if into_files and _is_past(
            tx, one, before
        ):  # in their order, without a gap: those of its files need not be looked at again
            _, last = tx.fetch(Q["verified_log_rows"], {"first": one.first, "end": one.end})[0]
            yield Stretch(one.first if last is None else last + 1, one.end, before)
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
    newest, lines = newest_instant(tx, LOG, partition), rows_of(tx, partition)
    if newest is not None and newest >= before:
        return None
    asked = {"first": partition.first, "end": partition.end}
    if in_files and tx.fetch(Q["verified_log_rows"], asked)[0][0] != lines:
        return None
    drop(tx, LOG, partition)
    tx.execute(Q["end_verified_files"], {**asked, "now": now})
    return Dropped(lines=lines, until=None if newest is None else newest + 1)
