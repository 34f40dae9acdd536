"""A plan, what is covered and what is known of sizes go in; groups of slices come out (ch. 8.2, 8.4).

Between two groups slicing can stop (inventory, quota, a crash) and go on later from `progress`.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from patra.ingest.bits import Pagination
from patra.ingest.codes import Dimension, Operation
from patra.ingest.intent import grid_of
from patra.ingest.slices import Sliced, Slicer
from patra.ingest.slicing import (
    Cut,
    Density,
    PageRange,
    Span,
    gaps,
    id_lists,
    page_ranges,
    resliced,
    threshold,
    windows,
)
from patra.ingest.spec import Spec


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


def page_groups(spec: Spec, slicer: Slicer, progress: str, total: float | None) -> Iterator[Group]:
    """Ranges of pages; how many there are comes from an estimate and from the pack's bound, whichever is less."""
    pagination = spec.pagination
    first = int(progress) if progress else pagination.first_page
    done = first - pagination.first_page
    pages = _pages(pagination, total)
    rest = None if pages is None else max(pages - done, 0)
    for part in page_ranges(first, rest, spec.planning.pages_per_slice):
        sliced = slicer.of_pages(part)
        after = str(part.last + 1) if part.last is not None else "end"
        yield Group(slices=[sliced], progress=after, estimated=None)
        if part.last is None:
            return


def _pages(pagination: Pagination, total: float | None) -> int | None:
    bounds: list[int] = []
    if total is not None and pagination.page_size:
        bounds.append(-(-int(total) // pagination.page_size) + 1)
    if pagination.max_page is not None:
        bounds.append(pagination.max_page)
    return min(bounds) if bounds else None


def id_group(spec: Spec, slicer: Slicer, ids: Sequence[str]) -> Group:
    """All slices of a refresh."""
    lists = id_lists(ids, spec.planning.ids_per_slice, spec.planning.hash_buckets)
    return Group(slices=[slicer.of_ids(part) for part in lists], progress="end", estimated=len(ids))


class Rest(msgspec.Struct, frozen=True, kw_only=True):
    """What an executor has not done of its slice: a window, pages from one on, or ids."""

    window: Span | None = None
    pages: PageRange | None = None
    ids: tuple[str, ...] = ()


def smaller(spec: Spec, slicer: Slicer, rest: Rest, total: int | None) -> list[Sliced] | None:
    """Smaller slices for the rest; None when it is as small as it may be."""
    comment = "online-reslice"
    if rest.window is not None:
        most = most_records(spec) or max((total or 2) / 2, 1)
        parts = resliced(rest.window, grid_of(spec.window), total, most)
        if parts is None:
            return None
        whole = rest.window.width
        return [slicer.of_window(p, None if total is None else total * p.width / whole, comment) for p in parts]
    if rest.pages is not None:
        first, last = rest.pages.first, rest.pages.last
        if last is None or last <= first:
            return None
        middle = (first + last) // 2
        return [slicer.of_pages(part, comment) for part in (PageRange(first, middle), PageRange(middle + 1, last))]
    if len(rest.ids) > 1:
        half = -(-len(rest.ids) // 2)
        return [slicer.of_ids(part, comment) for part in id_lists(rest.ids, half)]
    return None


def _sum(cuts: Sequence[Cut]) -> int | None:
    known = [cut.estimate for cut in cuts if cut.estimate is not None]
    return int(sum(known)) if known else None


def strategy_of(spec: Spec) -> str:
    return Dimension.ID.value if spec.operation is Operation.UPDATE else spec.dimension.value
