"""Turns a window, a range of pages or a stream of ids into slices that cover it exactly (ch. 8.2, 8.4, I4).

Windows are half-open, lie on the grid of the alignment, are no wider than the widest and no narrower than the narrowest
(a window that cannot be tiled so has one narrower slice). One that is estimated to be too large is cut in two, again
and again. Nothing is held in memory but the slice at hand; slices come in groups, and between groups slicing can stop
and go on later with the same result.
"""

import heapq
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import pairwise

import msgspec

from patra.ingest.packs.sections import Window


class Span(msgspec.Struct, frozen=True, order=True):
    """`[start, end)` in microseconds."""

    start: int
    end: int

    @property
    def width(self) -> int:
        return self.end - self.start


class Grid(msgspec.Struct, frozen=True, kw_only=True):
    """The rules for the edges of windows: unit of alignment, narrowest and widest; both multiples of the unit."""

    unit: int
    narrowest: int
    widest: int

    def floor(self, at: int) -> int:
        return at // self.unit * self.unit

    def ceil(self, at: int) -> int:
        return -(-at // self.unit) * self.unit

    def halves(self, span: Span) -> tuple[Span, Span] | None:
        """The two halves, if both are wide enough."""
        middle = span.start + self.floor(span.width // 2)
        if middle - span.start < self.narrowest or span.end - middle < self.narrowest:
            return None
        return Span(span.start, middle), Span(middle, span.end)


def grid_of(window: Window) -> Grid:
    return Grid(unit=window.unit_us, narrowest=window.min_us, widest=window.max_us)


Estimate = Callable[[Span], float | None]
"""How many records a window may hold; None where nothing is known."""


class Cut(msgspec.Struct, frozen=True):
    """A slice of time with its estimate."""

    span: Span
    estimate: float | None = None


def windows(
    span: Span, grid: Grid, *, most: float | None = None, estimate: Estimate | None = None, backward: bool = False
) -> Iterator[list[Cut]]:
    """Groups of slices: each group is one window of the widest kind, cut until its parts hold no more than `most`.

    The span must lie on the grid. Backward, the latest window comes first.
    """
    for whole in _tiles(span, grid, backward=backward):
        cuts = list(_bisect_span(whole, grid, most, estimate))
        yield cuts[::-1] if backward else cuts


def _tiles(span: Span, grid: Grid, *, backward: bool) -> Iterator[Span]:
    start, end = span.start, span.end
    while start < end:
        width = _next_width(end - start, grid)
        if backward:
            yield Span(end - width, end)
            end -= width
        else:
            yield Span(start, start + width)
            start += width


def _next_width(rest: int, grid: Grid) -> int:
    if rest <= grid.widest:
        return rest
    left_over = rest - grid.widest
    if left_over >= grid.narrowest:
        return grid.widest
    halves = grid.halves(Span(0, rest))  # the widest would leave a splinter: share the rest between two
    return halves[0].width if halves and halves[1].width <= grid.widest else grid.widest


def _bisect_span(span: Span, grid: Grid, most: float | None, estimate: Estimate | None) -> Iterator[Cut]:
    size = estimate(span) if estimate is not None else None
    halves = grid.halves(span) if most is not None and size is not None and size > most else None
    if halves is None:
        yield Cut(span, size)
        return
    for half in halves:
        yield from _bisect_span(half, grid, most, estimate)


def reslice_span(span: Span, grid: Grid, total: int | None, most: float) -> list[Span] | None:
    """The rest of a slice that turned out too large, cut by what was counted in it; None when it cannot be cut."""
    wanted = max(2, -(-(total or 0) * 5 // (4 * max(int(most), 1))))  # a quarter more than needed: records crowd
    parts = [span]
    while len(parts) < wanted:
        cut = [grid.halves(part) for part in parts]
        if not any(cut):
            break
        parts = [half for part, halves in zip(parts, cut, strict=True) for half in (halves or (part,))]
    return parts if len(parts) > 1 else None


def gaps(span: Span, covered: Iterable[Span]) -> list[Span]:
    """What of a window nobody takes care of yet."""
    found: list[Span] = []
    at = span.start
    for taken in sorted(covered):
        if taken.end <= at or taken.start >= span.end:
            continue
        if taken.start > at:
            found.append(Span(at, taken.start))
        at = max(at, taken.end)
    if at < span.end:
        found.append(Span(at, span.end))
    return found


class Density:
    """Totals that windows turned out to have, as an estimate for any window (ruling I3).

    Where windows overlap the later report counts. What no report covers is taken to be as dense as the mean.
    """

    def __init__(self, reports: Iterable[tuple[Span, int]]) -> None:
        """Reports from the oldest to the newest."""
        known = [(span, total / span.width) for span, total in reports if span.width > 0]
        self._pieces = list(_newest(known))
        self._starts = [piece.start for piece, _ in self._pieces]
        width = sum(piece.width for piece, _ in self._pieces)
        self._mean = sum(piece.width * rate for piece, rate in self._pieces) / width if width else None

    def __call__(self, span: Span) -> float | None:
        if self._mean is None:
            return None
        total, seen = 0.0, 0
        index = max(bisect_right(self._starts, span.start) - 1, 0)
        for piece, rate in self._pieces[index:]:
            if piece.start >= span.end:
                break
            overlap = min(piece.end, span.end) - max(piece.start, span.start)
            if overlap > 0:
                total += overlap * rate
                seen += overlap
        return total + (span.width - seen) * self._mean


def _newest(reports: Sequence[tuple[Span, float]]) -> Iterator[tuple[Span, float]]:
    """Pieces that do not overlap, each with the rate of the newest report over it."""
    edges = sorted({edge for span, _ in reports for edge in (span.start, span.end)})
    starting = sorted(range(len(reports)), key=lambda index: reports[index][0].start)
    active: list[int] = []  # a heap of reports over the piece at hand, the newest on top
    upcoming = 0
    for start, end in pairwise(edges):
        while upcoming < len(starting) and reports[starting[upcoming]][0].start <= start:
            heapq.heappush(active, -starting[upcoming])
            upcoming += 1
        while active and reports[-active[0]][0].end <= start:
            heapq.heappop(active)
        if active:
            yield Span(start, end), reports[-active[0]][1]


class PageRange(msgspec.Struct, frozen=True):
    """Pages from the first to the last, both included; no last means up to the end of the list."""

    first: int
    last: int | None


def page_ranges(first: int, pages: int | None, per_slice: int) -> Iterator[PageRange]:
    """Ranges of at most `per_slice` pages for those that are thought to be there, and an open one for all after them.

    How many there are is an estimate: only the open range knows where the list ends.
    """
    for start in range(first, first + (pages or 0), per_slice):
        yield PageRange(start, min(start + per_slice, first + (pages or 0)) - 1)
    yield PageRange(first + (pages or 0), None)


class IdList(msgspec.Struct, frozen=True):
    """Ids of one slice; the bucket is None where ids are not spread over buckets."""

    ids: tuple[str, ...]
    bucket: int | None = None


def id_lists(ids: Iterable[str], per_slice: int, buckets: int = 1) -> Iterator[IdList]:
    """Lists of at most `per_slice` ids, in order; with buckets, each list holds ids of one bucket only."""
    open_lists: dict[int, list[str]] = {}
    for one in ids:
        bucket = hash_bucket(one, buckets) if buckets > 1 else 0
        held = open_lists.setdefault(bucket, [])
        held.append(one)
        if len(held) == per_slice:
            yield IdList(tuple(open_lists.pop(bucket)), bucket if buckets > 1 else None)
    for bucket in sorted(open_lists):
        yield IdList(tuple(open_lists[bucket]), bucket if buckets > 1 else None)


def hash_bucket(text: str, buckets: int) -> int:
    return int.from_bytes(sha256(text.encode("utf-8", "surrogatepass")).digest()[:8]) % buckets


def threshold(page_size: int | None, max_pages: int, depth: int | None, max_requests: int) -> float | None:
    """Most records of a slice: its pages, its budget of requests, and the provider's depth with a fifth to spare."""
    bounds: list[float] = []
    if page_size:
        bounds.append(page_size * min(max_pages, max_requests))
    if depth:
        bounds.append(depth * 0.8)
    return min(bounds) if bounds else None


def align_span(span: Span, grid: Grid, latest: int) -> Span | None:
    """The window widened to the grid, but never past `latest`; None where nothing is left."""
    end = min(grid.ceil(span.end), grid.floor(latest))
    start = grid.floor(span.start)
    return Span(start, end) if start < end else None
