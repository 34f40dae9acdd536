"""Turns a watermark, finished windows beyond it and a newly finished one into the next watermark (ch. 10, I2).

Slices of one plan run side by side and may fail, so windows finish in any order. The present value moves only to the
end of the unbroken run of finished windows from its old value: it never jumps over a hole. A window that finished
behind a hole is remembered, so that it is not read again, and counts when the hole closes. Backwards (BACKFILL) it is
the same in a mirror. Nothing ever moves against its direction.
"""

from collections.abc import Iterable

import msgspec

from patra.ingest.planning.slicing.windows import Span
from patra.ingest.vocabulary.codes import Direction
from patra.ingest.vocabulary.run_reasons import RunReason


class Frontier(msgspec.Struct, frozen=True, kw_only=True):
    """The present value, and what is finished beyond it: sorted, disjoint, not touching it or each other."""

    present: int
    done: tuple[Span, ...] = ()


class Advance(msgspec.Struct, frozen=True, kw_only=True):
    """What an event did to the frontier."""

    before: Frontier
    after: Frontier
    code: RunReason

    @property
    def has_moved(self) -> bool:
        return self.after.present != self.before.present


def finish(frontier: Frontier, window: Span, direction: Direction = Direction.FORWARD) -> Advance:
    """The frontier once this window is confirmed; an empty window confirms nothing."""
    if direction is Direction.BACKFILL:
        flipped = finish(_mirror(frontier), _flip(window), Direction.FORWARD)
        return Advance(before=frontier, after=_mirror(flipped.after), code=flipped.code)
    if window.end <= max(frontier.present, window.start):
        return Advance(before=frontier, after=frontier, code=RunReason.NOT_FORWARD)
    present = frontier.present
    kept: list[Span] = []
    for span in merge_spans([*frontier.done, window]):
        if span.start <= present:
            present = max(present, span.end)
        else:
            kept.append(span)
    after = Frontier(present=present, done=tuple(kept))
    if present != frontier.present:
        return Advance(before=frontier, after=after, code=RunReason.ADVANCED)
    return Advance(
        before=frontier, after=after, code=RunReason.NOT_FORWARD if after == frontier else RunReason.BEHIND_HOLE
    )


def merge_spans(spans: Iterable[Span]) -> list[Span]:
    """The same windows sorted, those that touch or overlap joined, empty ones left out."""
    out: list[Span] = []
    for span in sorted(span for span in spans if span.start < span.end):
        if out and span.start <= out[-1].end:
            if span.end > out[-1].end:
                out[-1] = Span(out[-1].start, span.end)
        else:
            out.append(span)
    return out


def confirm_window(
    window: Span, *, over: bool, ascending: bool, oldest: int | None, since: int | None = None
) -> Span | None:
    """What a batch confirms of its slice's window.

    The last batch confirms all of it. Before that only a list in rising order confirms something: everything before
    the first instant on the page (`oldest`, none of a page that is not in order): its last one may be a wrong date, and
    only the next page shows that. `since` is what earlier batches confirmed.
    """
    start = window.start if since is None else since
    if over:
        return Span(window.start, window.end)
    if not ascending or oldest is None:
        return None
    end = min(oldest, window.end)
    return Span(window.start, end) if end > start else None


def ordered_id(value: str) -> tuple[int, int, str]:
    """A key that sorts ids: numbers by size, before texts in their alphabetical order."""
    return (0, int(value), "") if value.isascii() and value.isdecimal() else (1, 0, value)


def later_id(present: str | None, seen: Iterable[str]) -> str | None:
    """The last id in order of what is there and what was looked at; the progress of an UPDATE."""
    ids = [value for value in (present, *seen) if value is not None]
    return max(ids, key=ordered_id) if ids else None


def _flip(span: Span) -> Span:
    return Span(-span.end, -span.start)


def _mirror(frontier: Frontier) -> Frontier:
    return Frontier(present=-frontier.present, done=tuple(sorted(_flip(span) for span in frontier.done)))
