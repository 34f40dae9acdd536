"""Turns a plan, what is covered and what is known of sizes into groups of slices (ch. 8.2, 8.4).

Between two groups slicing can stop (inventory, quota, a crash) and go on later from `progress`.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from patra.ingest.packs.sections import Pagination
from patra.ingest.packs.spec import Spec
from patra.ingest.planning.slicing.slice_spec import Sliced, Slicer
from patra.ingest.planning.slicing.windows import (
    Cut,
    Density,
    PageRange,
    Span,
    gaps,
    grid_of,
    id_lists,
    page_ranges,
    reslice_span,
    threshold,
    windows,
)
from patra.ingest.vocabulary.codes import Dimension, Operation, PaginationType

NUMBERED = frozenset({PaginationType.OFFSET, PaginationType.PAGE})
"""Lists that can be entered at any page."""


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Slices that are written together, and where the rest of the plan begins after them."""

    slices: list[Sliced]
    progress: str
    estimated: int | None


def most_records(spec: Spec) -> float | None:
    """A window that may hold more is cut in two."""
    planning = spec.planning
    return threshold(
        spec.pagination.page_size, planning.max_pages_per_slice, spec.limits.max_depth, planning.max_requests
    )


def time_groups(spec: Spec, slicer: Slicer, rest: Span, covered: Iterable[Span], density: Density) -> Iterator[Group]:
    """Windows of the rest that nobody covers; for BACKFILL the latest first."""
    backward = spec.operation is Operation.BACKFILL
    todo = gaps(rest, covered)
    most = most_records(spec)
    for gap in reversed(todo) if backward else todo:
        for cuts in windows(gap, grid_of(spec.window), most=most, estimate=density, backward=backward):
            spans = [cut.span for cut in cuts]
            edge = min(span.start for span in spans) if backward else max(span.end for span in spans)
            comment = "auto-bisect from estimate" if len(cuts) > 1 else ""
            yield Group(
                slices=[slicer.of_window(cut.span, cut.estimate, comment) for cut in cuts],
                progress=str(edge),
                estimated=_sum(cuts),
            )


def page_groups(spec: Spec, slicer: Slicer, progress: str, window: Span, total: float | None) -> Iterator[Group]:
    """Ranges of pages up to the estimated end of the list, and an open one from there to its real end."""
    pagination = spec.pagination
    first = int(progress) if progress else pagination.first_page
    size = pagination.page_size or 1
    for part in page_ranges(first, _full_pages(pagination, first, total), _pages_per_slice(spec)):
        after = str(part.last + 1) if part.last is not None else "end"
        before = (part.first - pagination.first_page) * size
        rest = None if total is None else max(int(total) - before, 0)
        count = rest if part.last is None or rest is None else (part.last - part.first + 1) * size
        yield Group(slices=[slicer.of_pages(part, window)], progress=after, estimated=count)


def _pages_per_slice(spec: Spec) -> int:
    return min(spec.planning.pages_per_slice, spec.pagination.max_page or spec.planning.pages_per_slice)


def _full_pages(pagination: Pagination, first: int, total: float | None) -> int:
    """Pages from `first` on that are certainly full if the estimate is right; the last one is not among them."""
    if total is None or not pagination.page_size or pagination.type not in NUMBERED:
        return 0
    return max((int(total) - 1) // pagination.page_size - (first - pagination.first_page), 0)


def id_group(spec: Spec, slicer: Slicer, ids: Sequence[str]) -> Group:
    """All slices of a refresh."""
    lists = id_lists(ids, spec.planning.ids_per_slice, spec.planning.hash_buckets)
    return Group(slices=[slicer.of_ids(part) for part in lists], progress="end", estimated=len(ids))


class Rest(msgspec.Struct, frozen=True, kw_only=True):
    """What an executor has not done of its slice: a window, pages from one on, or ids."""

    window: Span | None = None
    pages: PageRange | None = None
    ids: tuple[str, ...] = ()


def smaller(
    spec: Spec, slicer: Slicer, rest: Rest, total: int | None, window: Span | None = None
) -> list[Sliced] | None:
    """Smaller slices for the rest; None when it is as small as it may be. `window` is the plan's."""
    comment = "online-reslice"
    if rest.window is not None:
        most = most_records(spec) or max((total or 2) / 2, 1)
        parts = reslice_span(rest.window, grid_of(spec.window), total, most)
        if parts is None:
            return None
        whole = rest.window.width
        return [slicer.of_window(p, None if total is None else total * p.width / whole, comment) for p in parts]
    if rest.pages is not None:
        parts = _smaller_pages(spec, rest.pages, total)
        return [slicer.of_pages(part, window, comment) for part in parts] or None
    if len(rest.ids) > 1:
        half = -(-len(rest.ids) // 2)
        return [slicer.of_ids(part, comment) for part in id_lists(rest.ids, half)]
    return None


def _smaller_pages(spec: Spec, pages: PageRange, total: int | None) -> list[PageRange]:
    first, last, most = pages.first, pages.last, _pages_per_slice(spec)
    if last is None:
        known = _full_pages(spec.pagination, first, total)
        return list(page_ranges(first, known if total is not None else most, most))
    if last <= first:
        return []
    middle = (first + last) // 2
    return [PageRange(first, middle), PageRange(middle + 1, last)]


def _sum(cuts: Sequence[Cut]) -> int | None:
    known = [cut.estimate for cut in cuts if cut.estimate is not None]
    return int(sum(known)) if known else None


def strategy_of(spec: Spec) -> str:
    return Dimension.ID.value if spec.operation is Operation.UPDATE else spec.dimension.value
