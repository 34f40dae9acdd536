"""Slices of any window are disjoint, cover it exactly and keep to the grid; so do pages and ids."""

import itertools

import msgspec
from hypothesis import assume, given
from hypothesis import strategies as st

from patra.ingest.extraction.pagination import Next, Page, Range, Stop, first, follow
from patra.ingest.packs.sections import Pagination
from patra.ingest.planning.slicing.windows import (
    Density,
    Grid,
    PageRange,
    Span,
    align_span,
    gaps,
    hash_bucket,
    id_lists,
    page_ranges,
    reslice_span,
    windows,
)
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.clock import DAY, HOUR, MINUTE

UNITS = st.sampled_from([MINUTE, HOUR, DAY])


@st.composite
def grids(draw):
    unit = draw(UNITS)
    narrowest = draw(st.integers(1, 50))
    widest = draw(st.integers(narrowest, 200))
    return Grid(unit=unit, narrowest=narrowest * unit, widest=widest * unit)


@st.composite
def cases(draw):
    grid = draw(grids())
    start = draw(st.integers(-10_000, 10_000)) * grid.unit
    span = Span(start, start + draw(st.integers(1, 2000)) * grid.unit)
    reports = draw(
        st.lists(
            st.tuples(st.integers(-100, 2100), st.integers(1, 300), st.integers(0, 100_000)).map(
                lambda r: (Span(start + r[0] * grid.unit, start + (r[0] + r[1]) * grid.unit), r[2])
            ),
            max_size=6,
        )
    )
    most = draw(st.none() | st.floats(1, 50_000))
    return span, grid, reports, most, draw(st.booleans())


def spans(case):
    span, grid, reports, most, backward = case
    return [
        cut.span
        for group in windows(span, grid, most=most, estimate=Density(reports), backward=backward)
        for cut in group
    ]


@given(cases())
def test_windows_are_disjoint_and_cover_exactly(case):
    span, _, _, _, backward = case
    found = spans(case)
    if backward:
        assert found == sorted(found, reverse=True)
    else:
        assert found == sorted(found)
    ordered = sorted(found)
    assert ordered[0].start == span.start
    assert ordered[-1].end == span.end
    assert all(left.end == right.start for left, right in itertools.pairwise(ordered))


@given(cases())
def test_windows_lie_on_the_grid_and_keep_their_width(case):
    span, grid, *_ = case
    found = spans(case)
    assert all(one.start % grid.unit == 0 and one.end % grid.unit == 0 for one in found)
    assert all(0 < one.width <= grid.widest for one in found)
    narrow = [one for one in found if one.width < grid.narrowest]
    assert len(narrow) <= 1
    if narrow:  # only where no tiling without a splinter was found next to the widest kind
        assert span.width < 2 * grid.narrowest + grid.unit or span.width % grid.widest < grid.narrowest


@given(cases())
def test_no_window_that_could_be_cut_is_too_large(case):
    span, grid, reports, most, backward = case
    estimate = Density(reports)
    for group in windows(span, grid, most=most, estimate=estimate, backward=backward):
        for cut in group:
            if most is not None and cut.estimate is not None and cut.estimate > most:
                assert grid.halves(cut.span) is None


@given(cases(), st.data())
def test_slicing_can_stop_after_any_group_and_go_on_with_the_same_result(case, data):
    span, grid, reports, most, backward = case
    estimate = Density(reports)
    groups = list(windows(span, grid, most=most, estimate=estimate, backward=backward))
    stop = data.draw(st.integers(0, len(groups) - 1))
    done = [cut.span for group in groups[:stop] for cut in group]
    if not done:
        rest = span
    elif backward:
        rest = Span(span.start, min(one.start for one in done))
    else:
        rest = Span(max(one.end for one in done), span.end)
    again = [
        cut.span for group in windows(rest, grid, most=most, estimate=estimate, backward=backward) for cut in group
    ]
    assert done + again == [cut.span for group in groups for cut in group]


@given(
    grids(),
    st.integers(-1000, 1000),
    st.integers(1, 500),
    st.none() | st.integers(0, 10_000_000),
    st.floats(1, 100_000),
)
def test_a_slice_cut_again_is_covered_by_its_parts(grid, start, width, total, most):
    span = Span(start * grid.unit, (start + width) * grid.unit)
    parts = reslice_span(span, grid, total, most)
    if parts is None:
        assert grid.halves(span) is None
        return
    assert len(parts) > 1
    assert parts[0].start == span.start
    assert parts[-1].end == span.end
    assert all(left.end == right.start for left, right in itertools.pairwise(parts))
    assert all(part.width >= grid.narrowest and part.start % grid.unit == 0 for part in parts)


SPANS = st.tuples(st.integers(0, 100), st.integers(1, 30)).map(lambda p: Span(p[0], p[0] + p[1]))


@given(SPANS, st.lists(SPANS, max_size=8))
def test_gaps_are_what_nobody_covers(span, covered):
    free = {at for gap in gaps(span, covered) for at in range(gap.start, gap.end)}
    taken = {at for one in covered for at in range(one.start, one.end)}
    assert free == set(range(span.start, span.end)) - taken
    found = gaps(span, covered)
    assert all(left.end < right.start for left, right in itertools.pairwise(found))


@given(st.lists(st.tuples(SPANS, st.integers(0, 1000)), max_size=6), SPANS)
def test_an_estimate_takes_the_newest_report_of_each_instant(reports, span):
    known: dict[int, float] = {}
    for one, total in reports:
        known |= dict.fromkeys(range(one.start, one.end), total / one.width)
    found = Density(reports)(span)
    if not known:
        assert found is None
        return
    mean = sum(known.values()) / len(known)
    expected = sum(known.get(at, mean) for at in range(span.start, span.end))
    assert abs(found - expected) < 1e-6 * max(expected, 1)


@given(st.integers(0, 5), st.integers(1, 5000), st.integers(1, 300))
def test_page_ranges_cover_every_page_once(first, pages, per_slice):
    found = list(page_ranges(first, pages, per_slice))
    *closed, last = found
    assert [page for part in closed for page in range(part.first, part.last + 1)] == list(range(first, first + pages))
    assert last == PageRange(first + pages, None), "only the open range knows where the list ends"
    assert all(part.last - part.first < per_slice for part in closed)
    assert list(page_ranges(first, None, per_slice)) == [PageRange(first, None)]


@given(st.lists(st.text(max_size=5), unique=True, max_size=200), st.integers(1, 30), st.integers(1, 16))
def test_every_id_is_in_one_list_of_its_bucket(ids, per_slice, buckets):
    found = list(id_lists(ids, per_slice, buckets))
    assert sorted(one for part in found for one in part.ids) == sorted(ids)
    assert all(1 <= len(part.ids) <= per_slice for part in found)
    if buckets > 1:
        assert all(hash_bucket(one, buckets) == part.bucket for part in found for one in part.ids)
    else:
        assert [one for part in found for one in part.ids] == ids


@given(grids(), st.integers(-(10**18), 10**18), st.integers(1, 10**14), st.integers(-(10**18), 10**18))
def test_a_window_is_widened_to_the_grid_but_never_past_the_latest_instant(grid, start, width, latest):
    span = Span(start, start + width)
    found = align_span(span, grid, latest)
    if found is None:
        assert grid.floor(min(latest, span.end + grid.unit)) <= grid.ceil(start)
        return
    assert found.start <= span.start
    assert span.start - found.start < grid.unit
    assert found.end <= latest
    assert found.start % grid.unit == found.end % grid.unit == 0
    assume(latest >= span.end + grid.unit)
    assert found.end >= span.end


@given(
    st.sampled_from(["PAGE", "OFFSET"]),
    st.integers(0, 400),
    st.none() | st.integers(0, 600),
    st.integers(1, 12),
    st.integers(1, 9),
    st.none() | st.integers(1, 9),
    st.booleans(),
)
def test_page_slices_read_a_list_once_and_to_its_end_or_stop_loudly(kind, records, estimate, size, per, most, bridge):
    """Whatever was estimated: no record is missed unless a slice has stopped, and none is read by two slices."""
    given_pages = {"type": kind, "pageSize": size, "base1": True, "maxPage": most, "bridgeToTime": bridge}
    pagination = msgspec.convert(given_pages, Pagination)
    bound = min(per, most or per)
    full = 0 if estimate is None else max((estimate - 1) // size, 0)
    waiting = list(page_ranges(1, full, bound))
    seen: list[int] = []
    stopped = False
    while waiting:
        part = waiting.pop(0)
        place = first(pagination, from_page=part.first)
        length = None if part.last is None else part.last - part.first + 1
        until = None if part.last is None or kind == "PAGE" else part.last * size
        while True:
            start = ((place.page or 1) - 1) * size if kind == "PAGE" else place.offset or 0
            found = list(range(start, min(start + size, records)))
            page = Page(items=len(found), digest=str(found))
            bounds = Range(last_page=length, until_offset=until, splittable=part.last is None)
            move = follow(pagination, place, page, bounds)
            seen += found
            if isinstance(move, Next):
                place = move.place
                continue
            if isinstance(move, Stop):
                assert part.last is None
                if move.code is RunReason.BRIDGE:
                    at = move.place.page if kind == "PAGE" else (move.place.offset or 0) // size + 1
                    waiting += page_ranges(at or 1, bound, bound)
                else:
                    stopped = True
            break
    assert len(seen) == len(set(seen))
    assert stopped or set(seen) == set(range(records))
    if stopped:
        assert not bridge
