"""Turns where a list stands and what its last page held into the next place, or why there is none (ch. 4.3.3).

The order of evidence is the specification's: an explicit `hasMore`, then the next token or URL, then the size of the
page, then `maxPage`. A full page without any evidence means that there may be more. What providers do beyond
that is declared by the pack: whether a repeated token, an empty or a short page is the end. Whatever it says, no list
is followed for ever: repeated pages are found with Brent's cycle detection in constant memory.
"""

from msgspec.structs import replace

from patra.ingest.extraction.completeness import (
    Shortfall,
    Walked,
    counts_records,
    endless,
    fewest,
    looks_behind,
    perhaps_capped,
    shortfall,
    shortfall_by_time,
    wrong_total,
)
from patra.ingest.extraction.page_moves import (
    MAX_PROBES,
    MAX_SLIPS,
    End,
    Move,
    Next,
    Page,
    PagePosition,
    Probe,
    Range,
    Stop,
    next_by_time,
    pushed_down,
    with_page_counted,
)
from patra.ingest.packs.sections import Pagination
from patra.ingest.vocabulary.codes import EmptyPage, PaginationType, RepeatedToken, ShortPage, Step, TotalMeaning
from patra.ingest.vocabulary.run_reasons import RunReason

MAX_PASSES = 3  # times that a list is read again because it changed while it was read
MAX_RECOUNTS = 2  # times that a page is asked for again because less came than the total promises
MAX_EMPTY = 3  # pages without records in a row, where nothing says that they may be
MAX_EMPTY_ALLOWED = 1000  # the same where the pack says that an empty page means nothing


def first(pagination: Pagination, *, from_page: int | None = None, since: int | None = None) -> PagePosition:
    """Where a slice begins."""
    initial, size = pagination.initial, pagination.page_size
    match pagination.type:
        case PaginationType.OFFSET:
            before = _before(pagination, from_page)
            return PagePosition(offset=initial.offset + before, size=size, before=before)
        case PaginationType.PAGE:
            page = from_page if from_page is not None else pagination.first_page
            return PagePosition(page=page, size=size, before=_before(pagination, from_page))
        case PaginationType.TOKEN:
            return PagePosition(token=initial.token, size=size)
        case PaginationType.URL:
            return PagePosition(url=initial.url, size=size)
        case PaginationType.TIME | None:
            return PagePosition(since=since, size=size)


def _before(pagination: Pagination, from_page: int | None) -> int:
    """Places of the list before a slice that begins at a page of its own."""
    if from_page is None or pagination.page_size is None:
        return 0
    return (from_page - pagination.first_page) * pagination.page_size


def follow(pagination: Pagination, place: PagePosition, page: Page, bounds: Range | None = None) -> Move:
    """What comes after a page that was asked for at `place`."""
    bounds = bounds or Range()
    here = with_page_counted(pagination, place, page, bounds)
    if page.items and place.trail.has(page.digest):
        short = place.size is not None and page.items < place.size
        if short and perhaps_capped(pagination, place, page, here) and page.digest == place.trail.recent[-1]:
            return End(RunReason.END_SHORT, place)  # whatever page is asked for, it gives this one
        if not pushed_down(here, page):
            return _repeat_page(pagination, place, page, here)
        here = replace(here, slips=here.slips + 1)
    end = _end(pagination, place, page, here)
    if isinstance(end, End):
        end = doubt_end(pagination, place, end, page.items)
    if end is not None:
        return end
    if why := endless(pagination, here):
        return Stop(RunReason.LOOP, why, here)
    following = _next(pagination, place, page, here, bounds)
    if isinstance(following, End):
        return (following.code is RunReason.TOO_DEEP and _end_at_bound(pagination, page, here)) or following
    if _range_is_over(following.place, here, bounds):
        return End(RunReason.END_RANGE, here)
    open_ended = bounds.last_page is None  # a range of pages is no longer than `maxPage` from the beginning
    if pagination.max_page is not None and open_ended and here.index >= pagination.max_page:
        return _end_at_bound(pagination, page, here) or _at_max_page(pagination, following.place, bounds)
    if here.empties > (MAX_EMPTY_ALLOWED if pagination.empty_page is EmptyPage.CONTINUE else MAX_EMPTY):
        return Stop(RunReason.LOOP, f"{here.empties} pages without records in a row", here)
    return following


def _range_is_over(following: PagePosition, here: PagePosition, bounds: Range) -> bool:
    """Pages may be asked for in smaller ones, or come short: then their number says nothing of where they end."""
    if bounds.until_offset is not None:
        return (following.offset or 0) >= bounds.until_offset
    return bounds.last_page is not None and here.index >= bounds.last_page


def doubt_end(pagination: Pagination, place: PagePosition, end: End, items: int) -> Move | None:
    """An end before the total is reached is not believed at once: the same page is asked for again, a few times.

    A page that stays short does not end a list by page or offset while its total promises more: None says to go on.
    """
    if short_of(pagination, end.place, items) is None:
        return end
    if place.probes < MAX_RECOUNTS and not stateful(pagination):
        return Probe(replace(place, probes=place.probes + 1), RunReason.PROBE)
    kinds = {PaginationType.OFFSET, PaginationType.PAGE}
    return None if end.code is RunReason.END_SHORT and pagination.type in kinds and items else end


def walk_over(pagination: Pagination, place: PagePosition, items: int) -> Walked:
    """What has been walked over when a page of so many places ended at `place`."""
    by_time = pagination.type in {PaginationType.TIME, None}
    return Walked(
        positions=items if by_time else place.seen,
        null_items=place.null_items,
        without_id=place.without_id,
        suppressed=place.suppressed,
        skipped=place.before,
        perhaps_twice=place.null_items + place.suppressed - place.most_blanks if place.may_overlap(pagination) else 0,
    )


def short_of(
    pagination: Pagination, place: PagePosition, items: int, distinct_ids: int | None = None
) -> Shortfall | None:
    """What a list that ended at `place`, with a page of so many places, lacks of its total."""
    found = walk_over(pagination, place, items)
    if pagination.type is PaginationType.TIME:
        return shortfall(pagination, found, place.total) or shortfall_by_time(
            pagination, found, place.total_first, distinct_ids
        )
    total = place.total if place.total_first is None else place.total_first
    return shortfall(pagination, found, total, distinct_ids) or wrong_total(pagination, place, distinct_ids)


def places_before(pagination: Pagination, place: PagePosition) -> tuple[int, int | None]:
    """How many records of the list stand before a place, and how many there are in all as far as a page has said so.

    A list by time is requested again from each instant on: what it said of the rest is not comparable.
    """
    match pagination.type:
        case PaginationType.TIME | None:
            return 0, None
        case PaginationType.OFFSET:
            before = (place.offset or 0) - pagination.initial.offset
        case PaginationType.PAGE:
            before = ((place.page or 0) - pagination.first_page) * (place.size or 0)
        case PaginationType.TOKEN | PaginationType.URL:
            before = 0
    return max(place.seen, before), place.total


def stateful(pagination: Pagination) -> bool:
    """Whether the provider's cursor moves with every request: a page that got lost cannot be asked for again.

    Then a failure that may have reached the provider, and a crash, start the list again.
    """
    return pagination.type is PaginationType.TOKEN and pagination.repeated_token is RepeatedToken.CONTINUE


def again(pagination: Pagination, end: End, start: PagePosition, *, short: bool = False) -> PagePosition | None:
    """Where to read the list once more because it changed under the reader; None where it did not, or too often.

    Offsets and page numbers shift when a record leaves the list: the one behind it is skipped. The total shows
    it: it changed meanwhile. Where more was promised than came (`short`), one more reading must show it again; so it
    must where a list grew at its end, as that may hide a record that left it.
    """
    if start.passes >= MAX_PASSES or pagination.type is None:
        return None
    once = (short or (end.place.grew and pagination.type in {PaginationType.OFFSET, PaginationType.PAGE})) and (
        not start.passes
    )
    return replace(start, passes=start.passes + 1) if has_moved(pagination, end) or once else None


def has_moved(pagination: Pagination, end: End) -> bool:
    """Whether a list by page or offset changed while it was read: then records may have been skipped.

    Only a total that counts the records says so, and, where none is to be reached, a record that came on two pages.
    """
    counts = pagination.total in {TotalMeaning.EXACT, TotalMeaning.UPPER_BOUND}
    overlapped = end.place.overlapped and fewest(pagination, end.place.total) is None
    kinds = {PaginationType.OFFSET, PaginationType.PAGE}
    return ((end.place.drifted and counts) or overlapped) and pagination.type in kinds


def last_again(pagination: Pagination, place: PagePosition, items: int) -> PagePosition | None:
    """The last page once more, as a safeguard against records that move while they are read (ch. 4.5); once a list.

    A cursor that moves by itself cannot be asked again, and an empty page has nothing that could have moved.
    """
    if place.reread or not items or stateful(pagination):
        return None
    return replace(place, reread=True, probes=0)


def too_deep(total: int | None, max_depth: int | None, place: PagePosition) -> bool:
    """Whether the list goes deeper than the provider pages (ruling I4); asked when the first page is read."""
    return total is not None and max_depth is not None and total > max_depth and place.index == 0


def is_capped(pagination: Pagination, end: PagePosition, items: int, max_depth: int | None) -> bool:
    """Whether a list ended where the provider pages no deeper, and nothing says that this is its end.

    Asked at the end of a list: `end` is the place behind its last page, which had so many `items`. A total below the
    depth is believed; one that is the depth itself may be cut off there as the list is.
    """
    if max_depth is None or pagination.type is PaginationType.TIME:
        return False
    if end.total is not None and end.seen <= end.total < max_depth and pagination.total is not TotalMeaning.NONE:
        return False
    return end.seen >= max_depth or (items == 0 and end.seen > 0 and end.seen + (end.size or 0) > max_depth)


def _repeat_page(pagination: Pagination, place: PagePosition, page: Page, here: PagePosition) -> Move:
    """A page that was there before: a few times may be a slip of the provider, always is a circle.

    It is the end only where the token came back, too, and the pack says that this means so: a circle of tokens is none.
    """
    if place.probes < MAX_PROBES and place.slips < MAX_SLIPS:
        return Probe(replace(place, probes=place.probes + 1, slips=place.slips + 1), RunReason.LOOP)
    ends = pagination.repeated_token is RepeatedToken.END and pagination.type is PaginationType.TOKEN
    if ends and page.token == place.token:
        return End(RunReason.END_REPEATED, here)
    return Stop(RunReason.LOOP, f"page {here.index} has the records of an earlier page", here)


def _end(pagination: Pagination, place: PagePosition, page: Page, here: PagePosition) -> Move | None:
    """The end of the list by the order of 4.3.3, or None where there may be more."""
    if page.has_more is not None:
        return None if page.has_more else End(RunReason.END_HAS_MORE, here)
    if pagination.type in {PaginationType.TOKEN, PaginationType.URL}:
        return _end_of_chain(pagination, place, page, here)
    if pagination.short_page is ShortPage.SUPPRESSED and here.total is not None:
        if _all_walked(pagination, here):
            return End(RunReason.END_TOTAL, here)
        if here.places_reached < here.total:
            return None
    if page.items == 0:
        return _empty(pagination, place, page, here)
    if place.size is None:
        return None
    if page.items < place.size:
        if perhaps_capped(pagination, place, page, here):
            return None
        if pagination.type is PaginationType.TIME:
            return End(RunReason.END_SHORT, here)
        if pagination.short_page in {None, ShortPage.END}:
            return End(RunReason.END_SHORT, here)
        if _all_walked(pagination, here):
            return End(RunReason.END_TOTAL, here)
    return None


def _all_walked(pagination: Pagination, here: PagePosition) -> bool:
    """Whether the total says that this was all: one that may be too low does not, nor one that was passed already."""
    says = pagination.total in {TotalMeaning.EXACT, TotalMeaning.UPPER_BOUND}
    return says and here.total is not None and here.places_reached == here.total


def _end_of_chain(pagination: Pagination, place: PagePosition, page: Page, here: PagePosition) -> Move | None:
    following = page.token if pagination.type is PaginationType.TOKEN else page.url
    sent = place.token if pagination.type is PaginationType.TOKEN else place.url
    if not following:
        if page.items == 0 and pagination.empty_page is None:
            return _doubted_empty(pagination, place, page, here)
        full = place.size is None or page.items >= place.size
        done = _all_walked(pagination, here)
        if pagination.last_page_probe and place.probes == 0 and full and page.items and not done:
            return Probe(replace(place, probes=1), RunReason.PROBE)
        return End(RunReason.END_NO_NEXT, here)
    if page.items == 0 and pagination.empty_page is not EmptyPage.CONTINUE:
        return _empty(pagination, place, page, here)
    if following == sent:
        if pagination.repeated_token is RepeatedToken.END:
            return End(RunReason.END_REPEATED, here)
        if pagination.repeated_token is RepeatedToken.FAIL:
            return Stop(RunReason.LOOP, "the token or URL that was sent came back", here)
    short = place.size is not None and page.items < place.size
    if short and pagination.short_page is ShortPage.END:
        return End(RunReason.END_SHORT, here)
    return None


def _empty(pagination: Pagination, place: PagePosition, page: Page, here: PagePosition) -> Move | None:
    match pagination.empty_page:
        case None:
            return _doubted_empty(pagination, place, page, here)
        case EmptyPage.END:
            return End(RunReason.END_EMPTY, here)
        case EmptyPage.PROBE:
            return End(RunReason.END_EMPTY, here) if place.probes else Probe(replace(place, probes=1), RunReason.PROBE)
        case EmptyPage.CONTINUE:
            done = _all_walked(pagination, here)
            enough = here.total is not None and here.places_reached >= here.total and here.empties >= MAX_EMPTY
            return End(RunReason.END_TOTAL, here) if done or enough else None


def _doubted_empty(pagination: Pagination, place: PagePosition, page: Page, here: PagePosition) -> Move | None:
    """Nothing counts, and a full page came before: some providers answer so in the midst of a list (I11).

    An empty one behind a short one, or behind another empty one, is the end, as is an empty list.
    """
    full = place.last is not None and place.last >= (place.size or 1)
    if not full or fewest(pagination, here.total) is not None or counts_records(pagination, here.total):
        return End(RunReason.END_EMPTY, here)
    if pagination.type in {PaginationType.OFFSET, PaginationType.PAGE}:
        return None
    following, sent = (page.token, place.token) if pagination.type is PaginationType.TOKEN else (page.url, place.url)
    if following and following != sent:
        return None
    if place.probes or stateful(pagination) or pagination.type in {PaginationType.TIME, None}:
        return End(RunReason.END_EMPTY, here)
    return Probe(replace(place, probes=1), RunReason.PROBE)


def _end_at_bound(pagination: Pagination, page: Page, here: PagePosition) -> End | None:
    """The end of a list whose last page looks like it, where the one behind may not be asked for to make sure."""
    if (page.has_more, page.token, page.url) != (None, None, None) or page.items >= here.longest:
        return None
    undeclared = looks_behind(pagination, here) if page.items else pagination.empty_page is None
    code = RunReason.END_SHORT if page.items else RunReason.END_EMPTY
    return End(code, here) if undeclared and short_of(pagination, here, page.items) is None else None


def _at_max_page(pagination: Pagination, here: PagePosition, bounds: Range) -> Move:
    if pagination.bridge_to_time and bounds.splittable:
        return Stop(RunReason.BRIDGE, f"maxPage {pagination.max_page} is reached", here)
    return Stop(RunReason.MAX_PAGE, f"maxPage {pagination.max_page} is reached and the slice cannot be cut", here)


def _next(pagination: Pagination, place: PagePosition, page: Page, here: PagePosition, bounds: Range) -> Move:
    here = replace(here, probes=0)
    match pagination.type:
        case PaginationType.OFFSET:
            whole = pagination.step is Step.REQUESTED or pagination.short_page is ShortPage.SUPPRESSED
            fixed = whole and not perhaps_capped(pagination, place, page, here)
            fixed = fixed or (not page.items and pagination.empty_page is None and page.has_more is None)
            asked = place.size if fixed and place.size is not None else page.items
            if asked == 0:
                return Stop(RunReason.LOOP, "an empty page does not move the offset", here)
            offset = (place.offset or 0) + asked
            if bounds.max_depth is None or place.size is None:
                return Next(replace(here, offset=offset))
            left = bounds.max_depth - (offset - pagination.initial.offset)
            following = replace(here, offset=offset)
            if left <= 0:
                over = _range_is_over(following, here, bounds)  # what lies deeper is another slice's
                return Next(following) if over else End(RunReason.TOO_DEEP, here)
            return Next(replace(following, size=min(place.size, left)))
        case PaginationType.PAGE:
            page_no = (place.page or 0) + 1
            before = (page_no - pagination.first_page) * (place.size or 0)
            following = replace(here, page=page_no)
            over = _range_is_over(following, here, bounds)  # what lies deeper is another slice's
            if bounds.max_depth is not None and before >= bounds.max_depth and not over:  # it would be refused
                return End(RunReason.TOO_DEEP, here)
            return Next(following)
        case PaginationType.TOKEN:
            return _chain_page(here, page.token, "token")
        case PaginationType.URL:
            return _chain_page(here, page.url, "url")
        case PaginationType.TIME | None:
            return next_by_time(place, page, here, bounds)


def _chain_page(here: PagePosition, following: str | None, name: str) -> Move:
    if not following:  # hasMore says yes, and nothing says where
        return Stop(RunReason.LOOP, f"there is more, but no next {name}", here)
    return Next(replace(here, token=following) if name == "token" else replace(here, url=following))
