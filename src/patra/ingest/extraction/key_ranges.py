"""A list holds more than the provider pages: it is read in ranges of a numeric key (ruling I4).

The ranges of a smallest window are read one after another by the task that has it, so that the window still stands for
itself in the watermark, the coverage and the ledger. A range that is too deep itself is halved. The last one is the
whole once more: its total must not be more than came, or the key does not reach every record. A harvest by a growing
key, whose list rises, goes on from the last key of what it could read. Pure: no store, no clock.
"""

import msgspec
from msgspec.structs import replace

from patra.ingest.extraction.completeness import Ledger, LegCount, Shortfall, with_shortfall
from patra.ingest.packs.sections import KeyBounds

MAX_KEY = 2**63 - 1
"""What the store holds as a number, in both dialects: ids with a time in front (snowflakes) have 19 digits."""


class KeyRange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Keys from `first` to `last`, both included."""

    first: int
    last: int
    recount: bool = False
    """The whole without a key, asked for its total only: all ranges before it are read."""


class KeyRanges(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is still to read, the range that is being read first; and what the ranges before it have counted."""

    todo: tuple[KeyRange, ...] = ()
    read: LegCount = LegCount()

    @property
    def current(self) -> KeyRange | None:
        return self.todo[0] if self.todo else None


def narrower(ranges: KeyRanges, bounds: KeyBounds | None) -> KeyRanges | None:
    """Smaller ranges where the present one, or the whole window, is too deep; None where there are none."""
    if bounds is None:
        return None
    if not ranges.todo:
        whole = KeyRange(first=bounds.first, last=bounds.last)
        ranges = KeyRanges(todo=(whole, replace(whole, recount=True)))
    present, *rest = ranges.todo
    if present.first >= present.last:
        return None
    middle = (present.first + present.last) // 2
    halves = (KeyRange(first=present.first, last=middle), KeyRange(first=middle + 1, last=present.last))
    return replace(ranges, todo=(*halves, *rest))


def continue_ranges(ranges: KeyRanges, listing: LegCount, floor: int | None, first: int) -> KeyRanges | None:
    """The rest of a rising list that was asked for from `floor` on and could be read up to its depth: from `first` on.

    None where that is not a step forward: then one key has more records than the provider pages.
    """
    present = ranges.current.first if ranges.current is not None else floor
    if present is not None and first <= present:
        return None
    read = replace(listing, promised_last=listing.positions)
    return KeyRanges(todo=(KeyRange(first=first, last=MAX_KEY),), read=read)


def after_range(ranges: KeyRanges, ledger: Ledger) -> KeyRanges:
    """What is left when the present range is read; the ledger has counted it already."""
    return KeyRanges(todo=ranges.todo[1:], read=ledger.listing)


def with_ranges(ledger: Ledger, read: LegCount) -> Ledger:
    """The ledger of the present range, with those before it."""
    now = ledger.listing
    return replace(
        ledger,
        listing=replace(
            now,
            promised_last=(now.promised_last or 0) + (read.promised_last or 0),
            positions=now.positions + read.positions,
            null_items=now.null_items + read.null_items,
            without_id=now.without_id + read.without_id,
            suppressed=now.suppressed + read.suppressed,
            distinct_ids=now.distinct_ids + read.distinct_ids,
            readings=max(now.readings, read.readings),
        ),
    )


def recount_ledger(ledger: Ledger, total: int | None) -> Ledger:
    """The ledger at the end of all ranges, compared with the provider's present total."""
    came = ledger.listing.promised_last or 0
    if total is None:
        return with_shortfall(ledger, Shortfall(missing=1, why="the window was counted again and reported no total"))
    if total <= came:
        return ledger
    why = f"the ranges of the key have {came} records together, and the window has {total}"
    short = with_shortfall(ledger, Shortfall(missing=total - came, why=why))
    return replace(short, listing=replace(short.listing, promised_last=total))
