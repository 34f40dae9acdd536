"""hasNext by the order of 4.3.3, and what real providers do at the end of their lists."""

import pytest
from msgspec.structs import replace

from patra.ingest.extraction.completeness import MAX_PAGES_UNCOUNTED, Shortfall, endless, hole
from patra.ingest.extraction.pagination import (
    MAX_EMPTY_ALLOWED,
    End,
    Move,
    Next,
    Page,
    PagePosition,
    Probe,
    Range,
    Stop,
    again,
    first,
    follow,
    is_capped,
    places_before,
    short_of,
    stateful,
    too_deep,
)
from patra.ingest.packs.sections import Initial, Pagination
from patra.ingest.vocabulary.codes import EmptyPage, PaginationType, RepeatedToken, ShortPage, Step, TotalMeaning
from patra.ingest.vocabulary.run_reasons import RunReason

OFFSET = Pagination(type=PaginationType.OFFSET, page_size=10)
PAGE = Pagination(type=PaginationType.PAGE, page_size=10, base1=True)
TOKEN = Pagination(type=PaginationType.TOKEN, page_size=10, initial=Initial(token="*"))
URL = Pagination(type=PaginationType.URL, page_size=10)
TIME = Pagination(type=PaginationType.TIME, page_size=10)


def reason(move: Move) -> RunReason:
    assert isinstance(move, End | Stop | Probe), move
    return move.code


def on(move: Move) -> PagePosition:
    assert isinstance(move, Next), move
    return move.place


def test_where_a_slice_begins() -> None:
    assert first(OFFSET).offset == 0
    assert first(OFFSET, from_page=2).offset == 10
    assert first(replace(OFFSET, base1=False), from_page=2).offset == 20
    assert first(PAGE).page == 1
    assert first(replace(PAGE, base1=False)).page == 0
    assert first(PAGE, from_page=201).page == 201
    assert first(TOKEN).token == "*"
    assert first(URL).url is None
    assert first(TIME, since=5).since == 5


def test_an_explicit_has_more_goes_before_everything() -> None:
    assert reason(follow(OFFSET, first(OFFSET), Page(items=10, has_more=False))) is RunReason.END_HAS_MORE
    assert on(follow(OFFSET, first(OFFSET), Page(items=3, has_more=True))).offset == 3
    assert reason(follow(TOKEN, first(TOKEN), Page(items=10, token="t", has_more=False))) is RunReason.END_HAS_MORE


def test_a_full_page_without_evidence_may_have_a_next_one() -> None:
    assert on(follow(PAGE, first(PAGE), Page(items=10, total=10))).page == 2


def test_a_short_page_ends_offset_and_page_lists_whose_total_counts() -> None:
    for pagination in (OFFSET, PAGE):
        second = on(follow(pagination, first(pagination), Page(items=10, total=19, digest="a")))
        assert reason(follow(pagination, second, Page(items=9, total=19, digest="b"))) is RunReason.END_SHORT
        assert reason(follow(pagination, first(pagination), Page(items=0))) is RunReason.END_EMPTY


def test_page_sizes_that_change_under_us_are_stepped_by_what_was_returned() -> None:
    biorxiv = replace(OFFSET, page_size=100, short_page=ShortPage.CONTINUE)
    place = on(follow(biorxiv, first(biorxiv), Page(items=30, total=70)))
    place = on(follow(biorxiv, place, Page(items=30, total=70)))
    assert place.offset == 60
    assert reason(follow(biorxiv, place, Page(items=10, total=70))) is RunReason.END_TOTAL
    requested = replace(OFFSET, step=Step.REQUESTED, short_page=ShortPage.CONTINUE)
    assert on(follow(requested, first(requested), Page(items=4))).offset == 10


@pytest.mark.parametrize(
    ("meaning", "told"),
    [
        (TotalMeaning.ESTIMATE, 25),  # it may be too low
        (TotalMeaning.NONE, 25),
        (TotalMeaning.EXACT, 20),  # it was passed, so that it says nothing of the end
        (TotalMeaning.UPPER_BOUND, 20),
    ],
)
def test_a_total_that_may_be_too_low_ends_no_list(meaning: TotalMeaning, told: int) -> None:
    sizes_change = replace(OFFSET, page_size=30, short_page=ShortPage.CONTINUE, total=meaning)
    place = on(follow(sizes_change, first(sizes_change), Page(items=25, total=told)))
    assert place.offset == 25
    assert reason(follow(sizes_change, place, Page(items=0, total=told))) is RunReason.END_EMPTY
    empties = replace(sizes_change, type=PaginationType.PAGE, base1=True, empty_page=EmptyPage.CONTINUE)
    place = on(follow(empties, first(empties), Page(items=25, total=told)))
    for _ in range(2):
        place = on(follow(empties, place, Page(items=0, total=told)))
    assert reason(follow(empties, place, Page(items=0, total=told))) is RunReason.END_TOTAL


@pytest.mark.parametrize(("meaning", "told"), [(TotalMeaning.EXACT, 5), (TotalMeaning.ESTIMATE, 10)])
def test_a_walk_over_suppressed_records_goes_on_to_an_empty_page_past_a_total_that_is_no_end(
    meaning: TotalMeaning, told: int
) -> None:
    withheld = replace(PAGE, short_page=ShortPage.SUPPRESSED, total=meaning)
    place = on(follow(withheld, first(withheld), Page(items=10, total=told)))
    assert reason(follow(withheld, place, Page(items=0, total=told))) is RunReason.END_EMPTY


def pages(pagination: Pagination, *told: tuple[int, int]) -> PagePosition:
    """Where a chain stands after pages of so many items, each with a total of its own."""
    place = first(pagination)
    for number, (items, total) in enumerate(told, 1):
        token = None if number == len(told) else f"t{number}"
        move = follow(pagination, place, Page(items=items, total=total, token=token, digest=str(number)))
        place = move.place
    return place


@pytest.mark.parametrize(
    ("told", "distinct", "missing"),
    [
        (((10, 10), (10, 10)), 20, 1),  # the number of records of the page
        (((10, 10), (4, 4)), 14, 1),
        (((10, 5), (10, 5), (10, 5)), 30, 1),  # cut off at five
        (((10, 50), (10, 40), (10, 30)), 30, 20),  # what each page leaves
        (((10, 20), (10, 10)), 20, None),  # the same, and everything came
        (((10, 19), (10, 19)), 20, None),  # one came, and another left, while it was read
        (((10, 22), (10, 19)), 20, None),
        (((10, 29), (10, 20)), 20, None),  # it fell by less than a page
        (((4, 4),), 4, None),
        (((10, 10), (0, 0)), 10, None),
    ],
)
def test_a_total_that_cannot_be_the_lists_proves_nothing(told, distinct: int, missing: int | None) -> None:
    place = pages(TOKEN, *told)
    found = short_of(TOKEN, place, told[-1][0], distinct)
    assert (found and found.missing) == missing
    estimate = replace(TOKEN, total=TotalMeaning.ESTIMATE)
    assert short_of(estimate, pages(estimate, *told), told[-1][0], distinct) is None


def test_a_chain_ends_where_no_token_follows() -> None:
    for missing in (None, ""):
        assert reason(follow(TOKEN, first(TOKEN), Page(items=10, token=missing))) is RunReason.END_NO_NEXT
        assert reason(follow(URL, first(URL), Page(items=10, url=missing))) is RunReason.END_NO_NEXT


def test_crossref_repeats_its_token_and_ends_with_an_empty_page() -> None:
    crossref = replace(TOKEN, repeated_token=RepeatedToken.CONTINUE)
    place = on(follow(crossref, first(crossref), Page(items=10, token="A", digest="1")))
    for number in range(2, 6):
        place = on(follow(crossref, place, Page(items=10, token="A", digest=str(number))))
    place = on(follow(crossref, place, Page(items=4, token="A", digest="last")))
    assert reason(follow(crossref, place, Page(items=0, token="A"))) is RunReason.END_EMPTY
    assert stateful(crossref)
    assert not stateful(TOKEN)


def test_solr_ends_by_giving_the_token_back() -> None:
    solr = replace(TOKEN, repeated_token=RepeatedToken.END)
    place = on(follow(solr, first(solr), Page(items=10, token="A", digest="1")))
    assert reason(follow(solr, place, Page(items=2, token="A", digest="2"))) is RunReason.END_REPEATED


def test_a_circle_of_tokens_is_no_end_where_only_a_token_that_comes_back_is_one() -> None:
    solr = replace(TOKEN, repeated_token=RepeatedToken.END)
    place = on(follow(solr, first(solr), Page(items=10, token="A", digest="1")))
    place = on(follow(solr, place, Page(items=10, token="B", digest="2")))
    for _ in range(3):
        move = follow(solr, place, Page(items=10, token="A", digest="1"))
        assert isinstance(move, Probe)
        place = move.place
    assert reason(follow(solr, place, Page(items=10, token="A", digest="1"))) is RunReason.LOOP
    assert reason(follow(solr, place, Page(items=10, token="B", digest="2"))) is RunReason.END_REPEATED


def test_a_star_that_comes_back_for_zero_hits_is_the_end_and_no_circle() -> None:
    assert reason(follow(TOKEN, first(TOKEN), Page(items=0, token="*"))) is RunReason.END_EMPTY


def test_a_repeated_token_is_a_circle_unless_the_pack_says_otherwise() -> None:
    place = on(follow(TOKEN, first(TOKEN), Page(items=10, token="A", digest="1")))
    assert reason(follow(TOKEN, place, Page(items=10, token="A", digest="2"))) is RunReason.LOOP


def test_empty_pages_in_the_middle_pass_where_the_pack_says_so_but_not_for_ever() -> None:
    filtered = replace(TOKEN, empty_page=EmptyPage.CONTINUE)
    place = first(filtered)
    for number in range(MAX_EMPTY_ALLOWED):
        place = on(follow(filtered, place, Page(items=0, token=f"t{number}")))
    assert reason(follow(filtered, place, Page(items=0, token="more"))) is RunReason.LOOP


def test_an_empty_page_may_be_probed_before_it_is_believed() -> None:
    careful = replace(PAGE, empty_page=EmptyPage.PROBE)
    move = follow(careful, first(careful), Page(items=0))
    assert isinstance(move, Probe)
    assert reason(follow(careful, move.place, Page(items=0))) is RunReason.END_EMPTY
    assert on(follow(careful, move.place, Page(items=10))).page == 2


def test_the_last_page_is_probed_once_where_tokens_get_lost() -> None:
    leaky = replace(TOKEN, last_page_probe=True)
    move = follow(leaky, first(leaky), Page(items=10, token=None, digest="1"))
    assert isinstance(move, Probe)
    assert on(follow(leaky, move.place, Page(items=10, token="A", digest="1"))).token == "A"
    assert reason(follow(leaky, move.place, Page(items=10, token=None, digest="1"))) is RunReason.END_NO_NEXT
    assert reason(follow(leaky, first(leaky), Page(items=4, token=None))) is RunReason.END_NO_NEXT
    assert reason(follow(leaky, first(leaky), Page(items=10, token=None, total=10))) is RunReason.END_NO_NEXT


def test_a_page_that_is_repeated_is_asked_for_again_and_then_is_a_circle() -> None:
    place = on(follow(PAGE, first(PAGE), Page(items=10, digest="same")))
    move = follow(PAGE, place, Page(items=10, digest="same"))
    assert isinstance(move, Probe)
    assert move.place.page == 2
    assert on(follow(PAGE, move.place, Page(items=10, digest="other"))).page == 3
    for _ in range(2):
        move = follow(PAGE, move.place, Page(items=10, digest="same"))
        assert isinstance(move, Probe)
    assert isinstance(follow(PAGE, move.place, Page(items=10, digest="same")), Stop)


def test_max_page_bridges_to_smaller_windows_where_there_are_any() -> None:
    bounded = replace(PAGE, max_page=1)
    full = Page(items=10)
    assert reason(follow(bounded, first(bounded), full, Range(splittable=True))) is RunReason.BRIDGE
    assert reason(follow(bounded, first(bounded), full, Range(splittable=False))) is RunReason.MAX_PAGE
    assert (
        reason(follow(replace(bounded, bridge_to_time=False), first(bounded), full, Range(splittable=True)))
        is RunReason.MAX_PAGE
    )
    assert reason(follow(bounded, first(bounded), Page(items=9), Range(splittable=True))) is RunReason.END_SHORT


@pytest.mark.parametrize(("items", "end"), [(4, RunReason.END_SHORT), (0, RunReason.END_EMPTY)])
def test_a_last_page_at_the_bound_is_believed_where_the_one_behind_may_not_be_asked_for(
    items: int, end: RunReason
) -> None:
    for bounded, bounds in (
        (replace(PAGE, max_page=2), Range()),
        (replace(PAGE, max_page=2), Range(splittable=True)),
        (replace(OFFSET, max_page=2), Range()),
        (PAGE, Range(max_depth=20)),
    ):
        place = on(follow(bounded, first(bounded), Page(items=10), bounds))
        assert reason(follow(bounded, place, Page(items=items), bounds)) is end


def test_a_bound_is_no_end_of_a_list_whose_pages_are_all_short_or_that_promises_more() -> None:
    bounded = replace(PAGE, max_page=2)
    place = on(follow(bounded, first(bounded), Page(items=4)))
    assert reason(follow(bounded, place, Page(items=4))) is RunReason.MAX_PAGE
    estimated = replace(bounded, total=TotalMeaning.ESTIMATE, total_tolerance=0.1)
    place = on(follow(estimated, first(estimated), Page(items=10, total=50)))
    assert reason(follow(estimated, place, Page(items=4, total=50))) is RunReason.MAX_PAGE
    declared = replace(bounded, short_page=ShortPage.CONTINUE, empty_page=EmptyPage.CONTINUE)
    for items in (4, 0):
        place = on(follow(declared, first(declared), Page(items=10)))
        assert reason(follow(declared, place, Page(items=items))) is RunReason.MAX_PAGE


def test_a_list_whose_total_is_that_of_each_page_is_not_followed_for_ever() -> None:
    place = replace(first(TOKEN), seen=10 * MAX_PAGES_UNCOUNTED, total=10, total_most=10, total_of_page=True)
    assert not endless(TOKEN, replace(place, index=MAX_PAGES_UNCOUNTED - 1))
    assert "no end or total in sight" in endless(TOKEN, replace(place, index=MAX_PAGES_UNCOUNTED))
    assert not endless(replace(TOKEN, max_page=2 * MAX_PAGES_UNCOUNTED), replace(place, index=MAX_PAGES_UNCOUNTED))
    assert "promised, and more follow" in endless(TOKEN, replace(place, total_of_page=False))


def test_a_slice_of_pages_ends_with_its_last_page() -> None:
    place = on(follow(PAGE, first(PAGE, from_page=5), Page(items=10), Range(last_page=2)))
    assert reason(follow(PAGE, place, Page(items=10), Range(last_page=2))) is RunReason.END_RANGE


def test_time_paging_starts_again_at_the_latest_instant() -> None:
    place = on(follow(TIME, first(TIME, since=100), Page(items=10, newest=150)))
    assert place.since == 150
    assert on(follow(TIME, place, Page(items=4, newest=180))).since == 180
    assert reason(follow(TIME, place, Page(items=4, newest=150))) is RunReason.END_SHORT
    assert reason(follow(TIME, place, Page(items=10, newest=200), Range(until=200))) is RunReason.END_WINDOW
    assert reason(follow(TIME, place, Page(items=10, newest=150))) is RunReason.STUCK_INSTANT


def test_time_paging_stops_where_a_page_does_not_say_where_the_list_goes_on() -> None:
    place = first(TIME, since=100)
    assert reason(follow(TIME, place, Page(items=10))) is RunReason.STUCK_INSTANT
    falling = Page(items=10, newest=200, rising=False)
    assert reason(follow(TIME, place, falling)) is RunReason.STUCK_INSTANT
    assert reason(follow(TIME, place, falling, Range(until=200))) is RunReason.STUCK_INSTANT


def test_more_without_a_way_there_is_loud() -> None:
    assert reason(follow(TOKEN, first(TOKEN), Page(items=10, has_more=True))) is RunReason.LOOP
    assert reason(follow(OFFSET, first(OFFSET), Page(items=0, has_more=True))) is RunReason.LOOP


def test_a_list_deeper_than_the_provider_pages_is_seen_on_its_first_page() -> None:
    assert too_deep(10_001, 10_000, first(OFFSET))
    assert not too_deep(10_000, 10_000, first(OFFSET))
    assert not too_deep(None, 10_000, first(OFFSET))
    assert not too_deep(20_000, None, first(OFFSET))


def test_a_list_whose_total_changed_on_the_way_is_read_again() -> None:
    place = on(follow(OFFSET, first(OFFSET), Page(items=10, total=15, digest="1")))
    end = follow(OFFSET, place, Page(items=4, total=14, digest="2"))
    assert isinstance(end, End)
    start = again(OFFSET, end, first(OFFSET))
    assert start is not None
    assert (start.passes, start.offset, start.drifted) == (1, 0, False)
    assert again(OFFSET, end, replace(start, passes=3)) is None


def ended(pagination: Pagination, page: Page) -> End:
    """The end of a list of one page, after it was asked for as often as it may be."""
    place = first(pagination)
    for probes in (1, 2):
        move = follow(pagination, place, page)
        assert isinstance(move, Probe)
        assert move.place.probes == probes
        place = move.place
    end = follow(pagination, place, page)
    assert isinstance(end, End)
    return end


def test_an_end_before_the_total_is_asked_for_again_and_the_list_read_once_more() -> None:
    empty = ended(PAGE, Page(items=0, total=10))
    assert short_of(PAGE, empty.place, 0) == Shortfall(missing=10, why="0 of 10 promised positions came")
    once_more = again(PAGE, empty, first(PAGE), short=True)
    assert once_more is not None
    assert again(PAGE, empty, once_more, short=True) is None
    oai = ended(TOKEN, Page(items=9, total=10))
    assert short_of(TOKEN, oai.place, 9) is not None
    assert again(TOKEN, oai, first(TOKEN), short=True) is not None
    whole = follow(PAGE, first(PAGE), Page(items=9, total=9))
    assert isinstance(whole, End)
    assert short_of(PAGE, whole.place, 9) is None
    assert again(PAGE, whole, first(PAGE)) is None


def test_a_page_that_stays_short_of_the_total_is_followed_by_the_next() -> None:
    place = replace(first(PAGE), probes=2)
    assert on(follow(PAGE, place, Page(items=9, total=20, digest="1"))).page == 2
    place = replace(first(OFFSET), probes=2)
    assert on(follow(OFFSET, place, Page(items=9, total=20, digest="1"))).offset == 9


def test_a_cursor_that_moves_by_itself_is_not_probed() -> None:
    crossref = Pagination(type=PaginationType.TOKEN, repeated_token=RepeatedToken.CONTINUE, page_size=10)
    end = follow(crossref, first(crossref), Page(items=5, total=10))
    assert isinstance(end, End)
    assert short_of(crossref, end.place, 5) is not None


@pytest.mark.parametrize(
    ("seen", "items", "total", "cut"),
    [
        (40, 20, None, False),
        (55, 15, None, False),  # a short page before the depth is an end
        (60, 20, None, True),
        (50, 0, None, True),  # the page that would cross it came empty
        (20, 0, None, False),
        (0, 0, None, False),
        (60, 20, 60, True),  # a total may be cut off where the list is
        (59, 19, 59, False),
        (60, 20, 30, True),  # more came than it said: it is not believed
    ],
)
def test_a_list_that_ends_at_the_providers_depth_may_have_more(seen, items, total, cut) -> None:
    offset = Pagination(type=PaginationType.OFFSET, page_size=20)
    end = PagePosition(offset=seen, size=20, seen=seen, total=total)
    assert is_capped(offset, end, items, 60) is cut
    assert not is_capped(offset, end, items, None)
    assert not is_capped(Pagination(type=PaginationType.TIME, page_size=20), end, items, 60)


@pytest.mark.parametrize(
    ("pagination", "place", "known"),
    [
        (Pagination(type=PaginationType.OFFSET, page_size=10), PagePosition(offset=30, seen=28, total=40), (30, 40)),
        (
            Pagination(type=PaginationType.PAGE, page_size=10, base1=True),
            PagePosition(page=4, size=10, total=40),
            (30, 40),
        ),
        (Pagination(type=PaginationType.PAGE, base1=True), PagePosition(page=4, seen=25), (25, None)),
        (Pagination(type=PaginationType.TOKEN), PagePosition(token="t", seen=25, total=40), (25, 40)),
        (Pagination(type=PaginationType.TIME), PagePosition(since=7, seen=25, total=40), (0, None)),
    ],
)
def test_what_stands_before_a_place_and_in_the_whole_list(pagination: Pagination, place: PagePosition, known) -> None:
    assert places_before(pagination, place) == known


def test_a_page_that_begins_at_the_providers_depth_is_not_asked_for() -> None:
    bounds = Range(max_depth=25)
    third = replace(first(PAGE), page=3, index=2, seen=20)
    assert on(follow(PAGE, replace(third, page=2, seen=10), Page(items=10, digest="2"), bounds)).page == 3
    assert reason(follow(PAGE, third, Page(items=10, digest="3"), bounds)) is RunReason.TOO_DEEP
    from_zero = replace(PAGE, base1=False)
    assert reason(follow(from_zero, replace(third, page=2), Page(items=10, digest="3"), bounds)) is RunReason.TOO_DEEP
    own = replace(bounds, last_page=3)  # the slice ends here anyway; what lies deeper is another's
    assert reason(follow(PAGE, third, Page(items=10, digest="3"), own)) is RunReason.END_RANGE


@pytest.mark.parametrize(
    ("distinct", "other", "missing"),
    [
        (30, {}, None),
        (29, {}, 1),
        (29, {"null_items": 1, "most_blanks": 1}, None),
        (28, {"null_items": 2, "most_blanks": 1}, 1),
        (29, {"without_id": 1}, None),
        (29, {"suppressed": 1, "most_blanks": 1}, None),
        (28, {"without_id": 1}, 1),
        (None, {}, None),
    ],
)
def test_a_list_by_time_adds_up_to_the_total_of_its_first_page(distinct, other, missing) -> None:
    """What stands on two pages is one record; of places without one only as many count as one page had."""
    place = PagePosition(index=3, size=10, total=3, total_first=30, **other)
    short = short_of(TIME, place, 3, distinct)
    assert (None if short is None else short.missing) == missing
    if not place.suppressed:
        assert short_of(TIME, place, 2, distinct) == Shortfall(missing=1, why="2 of 3 promised positions came")


def test_a_list_by_time_that_is_short_is_read_once_more_and_keeps_its_first_total() -> None:
    page = follow(TIME, first(TIME, since=1), Page(items=10, total=30, digest="1", newest=5))
    assert (on(page).total_first, on(page).total) == (30, 30)
    later = follow(TIME, on(page), Page(items=10, total=12, digest="2", newest=9))
    assert (on(later).total_first, on(later).total) == (30, 12)
    end = End(RunReason.END_SHORT, on(later))
    assert again(TIME, end, first(TIME, since=1), short=True) == replace(first(TIME, since=1), passes=1)
    assert again(TIME, end, replace(first(TIME, since=1), passes=1), short=True) is None
    assert again(TIME, end, first(TIME, since=1)) is None


@pytest.mark.parametrize("pagination", [OFFSET, PAGE])
def test_a_short_page_is_the_end_only_where_a_total_counts_or_the_pack_says_so(
    pagination: Pagination,
) -> None:
    begin = first(pagination)
    looked = on(follow(pagination, begin, Page(items=7, digest="a")))
    assert looked.seen == 7
    assert reason(follow(pagination, looked, Page(items=0))) is RunReason.END_EMPTY
    assert reason(follow(pagination, looked, Page(items=7, digest="a"))) is RunReason.END_SHORT
    assert on(follow(pagination, looked, Page(items=7, digest="b"))).seen == 14
    full = on(follow(pagination, begin, Page(items=10, digest="a")))
    behind = on(follow(pagination, full, Page(items=7, digest="b")))
    assert reason(follow(pagination, behind, Page(items=0))) is RunReason.END_EMPTY
    assert reason(follow(pagination, behind, Page(items=7, digest="b"))) is RunReason.END_SHORT  # it gives its last one
    assert on(follow(pagination, behind, Page(items=10, digest="c"))).seen == 27
    assert reason(follow(pagination, begin, Page(items=7, total=7, digest="a"))) is RunReason.END_SHORT
    declared = replace(pagination, short_page=ShortPage.END)
    assert reason(follow(declared, begin, Page(items=7, digest="a"))) is RunReason.END_SHORT


def test_behind_a_short_page_the_offset_goes_on_from_what_came_also_where_it_grows_by_the_page_size() -> None:
    requested = replace(OFFSET, step=Step.REQUESTED)
    assert on(follow(requested, first(requested), Page(items=7, digest="a"))).offset == 7
    assert on(follow(requested, first(requested), Page(items=10, digest="a"))).offset == 10


@pytest.mark.parametrize("meaning", TotalMeaning)
def test_a_record_on_two_pages_says_that_the_list_moved_where_no_total_is_to_be_reached(meaning: TotalMeaning) -> None:
    pagination = replace(OFFSET, total=meaning)
    begin = first(pagination)
    second = on(follow(pagination, begin, Page(items=10, total=15, digest="a")))
    end = follow(pagination, second, Page(items=5, total=15, digest="b", overlaps=True))
    if isinstance(end, Next):
        end = follow(pagination, end.place, Page(items=0, total=15))
    assert isinstance(end, End)
    once_more = again(pagination, end, begin)
    assert (once_more is not None) is (meaning in {TotalMeaning.UPPER_BOUND, TotalMeaning.NONE})


def test_a_list_by_time_of_short_pages_goes_on_from_the_latest_instant_until_nothing_later_comes() -> None:
    begin = first(TIME, since=5)
    second = on(follow(TIME, begin, Page(items=7, newest=9, digest="a")))
    assert second.since == 9
    assert reason(follow(TIME, second, Page(items=1, newest=9, digest="b"))) is RunReason.END_SHORT
    assert on(follow(TIME, second, Page(items=7, newest=14, digest="b"))).since == 14
    assert reason(follow(TIME, second, Page(items=7, newest=9, digest="b"))) is RunReason.STUCK_INSTANT
    assert reason(follow(TIME, begin, Page(items=7, newest=5, digest="a"))) is RunReason.END_SHORT
    assert reason(follow(TIME, begin, Page(items=7, newest=None, digest="a"))) is RunReason.END_SHORT
    assert reason(follow(TIME, begin, Page(items=7, newest=9, rising=False, digest="a"))) is RunReason.END_SHORT


@pytest.mark.parametrize("pagination", [OFFSET, PAGE])
def test_behind_an_empty_page_another_is_asked_for_where_a_full_one_came_before_it_and_nothing_counts(
    pagination: Pagination,
) -> None:
    full = on(follow(pagination, first(pagination), Page(items=10, digest="a")))
    looked = on(follow(pagination, full, Page(items=0)))
    assert (looked.offset, looked.page) == ((20, None) if pagination is OFFSET else (None, 3))
    assert reason(follow(pagination, looked, Page(items=0))) is RunReason.END_EMPTY
    behind = follow(pagination, looked, Page(items=4, digest="b"))
    assert on(behind).hole == "an empty page, behind the first 10 records"
    assert hole(pagination, on(behind)) is not None
    assert hole(replace(pagination, total=TotalMeaning.EXACT), replace(on(behind), total=14)) is None
    declared = replace(pagination, empty_page=EmptyPage.END)
    assert reason(follow(declared, full, Page(items=0))) is RunReason.END_EMPTY
    counted = on(follow(pagination, first(pagination), Page(items=10, total=10, digest="a")))
    assert reason(follow(pagination, counted, Page(items=0, total=10))) is RunReason.END_EMPTY


def test_an_empty_page_of_a_chain_is_asked_for_again_or_its_other_token_is_followed() -> None:
    full = on(follow(TOKEN, first(TOKEN), Page(items=10, token="b", digest="a")))
    probe = follow(TOKEN, full, Page(items=0))
    assert isinstance(probe, Probe)
    assert reason(follow(TOKEN, probe.place, Page(items=0))) is RunReason.END_EMPTY
    assert on(follow(TOKEN, probe.place, Page(items=10, token="c", digest="b"))).seen == 20
    led = on(follow(TOKEN, full, Page(items=0, token="c")))
    assert led.token == "c"
    assert reason(follow(TOKEN, led, Page(items=0, token="d"))) is RunReason.END_EMPTY
    moves_by_itself = replace(TOKEN, repeated_token=RepeatedToken.CONTINUE)
    assert reason(follow(moves_by_itself, full, Page(items=0, token="b"))) is RunReason.END_EMPTY


def test_by_page_a_shorter_page_in_the_midst_is_a_hole_and_one_of_many_that_are_as_short_is_none() -> None:
    def after(*sizes: int) -> PagePosition:
        place = first(PAGE)
        for number, size in enumerate(sizes):
            place = on(follow(PAGE, place, Page(items=size, digest=str(number))))
        return place

    assert after(10, 7, 10).hole == "a page of 7 records, where others held 10"
    assert not after(7, 7, 3).hole
    assert not after(10, 10, 3).hole
