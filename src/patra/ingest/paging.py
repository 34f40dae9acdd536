"""Where a list stands and what its last page held go in; the next place, or why there is none, comes out (ch. 4.3.3).

The order of evidence is the specification's: an explicit `hasMore`, then the next token or URL, then the size of the
page, then `maxPage`. A full page without any evidence means that there may be more. What providers do beyond that
(FACTS 1, 4, 11, 12) is said by the pack: whether a repeated token, an empty or a short page is the end. Whatever it
says, nothing here turns for ever: repeated pages are found with Brent's cycle detection in constant memory.
"""

from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from patra.ingest.bits import Pagination
from patra.ingest.codes import EmptyPage, PaginationType, RepeatedToken, ShortPage, Step
from patra.ingest.reasons_running import X

RECENT = 16  # pages whose repetition is noticed at once; longer circles are noticed after a few turns
MAX_PROBES = 3  # times that a repeated page is asked for again before it is a circle
MAX_SLIPS = 8  # repeated pages of one list that are forgiven
MAX_PASSES = 3  # times that a list is read again because it changed while it was read
MAX_EMPTY = 3  # pages without records in a row, where nothing says that they may be
MAX_EMPTY_ALLOWED = 1000  # the same where the pack says that an empty page means nothing


class Trail(msgspec.Struct, frozen=True, kw_only=True):
    """The latest pages, and Brent's memory: an earlier page, how long ago, and when a newer one takes its place."""

    recent: tuple[str, ...] = ()
    mark: str = ""
    steps: int = 0
    power: int = 1


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where the next request stands. It is the checkpoint: a run that begins here goes on as if nothing had been."""

    index: int = 0
    page: int | None = None
    offset: int | None = None
    token: str | None = None
    url: str | None = None
    since: int | None = None
    size: int | None = None
    seen: int = 0
    total: int | None = None
    empties: int = 0
    probes: int = 0
    slips: int = 0
    drifted: bool = False
    passes: int = 0
    reread: bool = False
    """The last page was read, and is read once more."""
    trail: Trail = Trail()


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """What a page held. `digest` tells it from others; `newest` is the latest update time on it."""

    items: int
    has_more: bool | None = None
    token: str | None = None
    url: str | None = None
    total: int | None = None
    digest: str = ""
    newest: int | None = None


class Range(msgspec.Struct, frozen=True, kw_only=True):
    """What the slice itself bounds: pages, or the end of a window of time."""

    last_page: int | None = None
    until: int | None = None
    splittable: bool = False


class Next(msgspec.Struct, frozen=True):
    """Go on here."""

    place: Place


class Probe(msgspec.Struct, frozen=True):
    """Ask for the same page once more: its end, or its repetition, is not believed yet."""

    place: Place
    code: X


class End(msgspec.Struct, frozen=True):
    """The list is over."""

    code: X
    place: Place


class Stop(msgspec.Struct, frozen=True):
    """The list is not over, but cannot be followed: BRIDGE asks for smaller windows, the others are loud."""

    code: X
    detail: str
    place: Place


Move: TypeAlias = Next | Probe | End | Stop


def first(pagination: Pagination, *, from_page: int | None = None, since: int | None = None) -> Place:
    """Where a slice begins."""
    initial, size = pagination.initial, pagination.page_size
    match pagination.type:
        case PaginationType.OFFSET:
            start = initial.offset
            if from_page is not None and size is not None:
                start += (from_page - pagination.first_page) * size
            return Place(offset=start, size=size)
        case PaginationType.PAGE:
            return Place(page=from_page if from_page is not None else pagination.first_page, size=size)
        case PaginationType.TOKEN:
            return Place(token=initial.token, size=size)
        case PaginationType.URL:
            return Place(url=initial.url, size=size)
        case PaginationType.TIME | None:
            return Place(since=since, size=size)


def follow(pagination: Pagination, place: Place, page: Page, bounds: Range | None = None) -> Move:
    """What comes after a page that was asked for at `place`."""
    bounds = bounds or Range()
    here = _counted(place, page)
    if page.items and _turned(place, page):
        return _repeated(pagination, place, page, here)
    if (end := _end(pagination, place, page, here)) is not None:
        return end
    if bounds.last_page is not None and here.index >= bounds.last_page:
        return End(X.END_RANGE, here)
    if pagination.max_page is not None and here.index >= pagination.max_page:
        return _at_max_page(pagination, here, bounds)
    if here.empties > (MAX_EMPTY_ALLOWED if pagination.empty_page is EmptyPage.CONTINUE else MAX_EMPTY):
        return Stop(X.LOOP, f"{here.empties} pages without records in a row", here)
    return _next(pagination, place, page, here, bounds)


def passed(pagination: Pagination, place: Place) -> tuple[int, int | None]:
    """How many records of the list stand before a place, and how many there are in all as far as a page has said so.

    A list by time is asked for anew from each instant on: what it said of the rest is not comparable.
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

    Then a failure that may have reached the provider, and a crash, start the list anew (FACTS 1).
    """
    return pagination.type is PaginationType.TOKEN and pagination.repeated_token is RepeatedToken.CONTINUE


def again(pagination: Pagination, end: End, start: Place) -> Place | None:
    """Where to read the list once more because it changed under the reader; None where it did not, or too often.

    Offsets and page numbers shift when a record leaves the list: the one behind it is skipped. The total tells (FACTS
    12): it changed on the way, or more was promised than came.
    """
    here = end.place
    if pagination.type not in {PaginationType.OFFSET, PaginationType.PAGE} or start.passes >= MAX_PASSES:
        return None
    short = here.total is not None and here.seen < here.total and end.code is not X.END_RANGE
    return replace(start, passes=start.passes + 1) if here.drifted or short else None


def last_again(pagination: Pagination, place: Place, items: int) -> Place | None:
    """The last page once more, as a safeguard against records that move while they are read (ch. 4.5); once a list.

    A cursor that moves by itself cannot be asked again, and an empty page has nothing that could have moved.
    """
    if place.reread or not items or stateful(pagination):
        return None
    return replace(place, reread=True, probes=0)


def too_deep(total: int | None, max_depth: int | None, place: Place) -> bool:
    """Whether the list goes deeper than the provider pages (ruling I4); asked when the first page is read."""
    return total is not None and max_depth is not None and total > max_depth and place.index == 0


def capped(pagination: Pagination, end: Place, items: int, max_depth: int | None) -> bool:
    """Whether a list ended where the provider pages no deeper, and nothing says that this is its end.

    Asked at the end of a list: `end` is the place behind its last page, which had so many `items`. A total below the
    depth is believed; one that is the depth itself may be cut off there as the list is.
    """
    if max_depth is None or pagination.type is PaginationType.TIME:
        return False
    if end.total is not None and end.total < max_depth:
        return False
    return end.seen >= max_depth or (items == 0 and end.seen > 0 and end.seen + (end.size or 0) > max_depth)


def _counted(place: Place, page: Page) -> Place:
    return replace(
        place,
        index=place.index + 1,
        seen=place.seen + page.items,
        total=page.total if page.total is not None else place.total,
        drifted=place.drifted or (page.total is not None and place.total is not None and page.total != place.total),
        empties=0 if page.items else place.empties + 1,
        trail=_trodden(place.trail, page.digest) if page.items else place.trail,
    )


def _trodden(trail: Trail, digest: str) -> Trail:
    recent = (*trail.recent, digest)[-RECENT:]
    if trail.steps + 1 >= trail.power:
        return Trail(recent=recent, mark=digest, steps=0, power=trail.power * 2)
    return replace(trail, recent=recent, steps=trail.steps + 1)


def _turned(place: Place, page: Page) -> bool:
    return bool(page.digest) and (page.digest == place.trail.mark or page.digest in place.trail.recent)


def _repeated(pagination: Pagination, place: Place, page: Page, here: Place) -> Move:
    """A page that was there before: a few times may be a slip of the provider, always is a circle.

    It is the end only where the token came back, too, and the pack says that this means so: a circle of tokens is none.
    """
    if place.probes < MAX_PROBES and place.slips < MAX_SLIPS:
        return Probe(replace(place, probes=place.probes + 1, slips=place.slips + 1), X.LOOP)
    ends = pagination.repeated_token is RepeatedToken.END and pagination.type is PaginationType.TOKEN
    if ends and page.token == place.token:
        return End(X.END_REPEATED, here)
    return Stop(X.LOOP, f"page {here.index} has the records of an earlier page", here)


def _end(pagination: Pagination, place: Place, page: Page, here: Place) -> Move | None:
    """The end of the list by the order of 4.3.3, or None where there may be more."""
    if page.has_more is not None:
        return None if page.has_more else End(X.END_HAS_MORE, here)
    if pagination.type in {PaginationType.TOKEN, PaginationType.URL}:
        return _end_of_chain(pagination, place, page, here)
    if page.items == 0:
        return _empty(pagination, place, here)
    if pagination.type is PaginationType.TIME or place.size is None:
        return None if place.size is None or page.items >= place.size else End(X.END_SHORT, here)
    if page.items < place.size:
        if pagination.short_page is not ShortPage.CONTINUE:
            return End(X.END_SHORT, here)
        if here.total is not None and here.seen >= here.total:
            return End(X.END_TOTAL, here)
    return None


def _end_of_chain(pagination: Pagination, place: Place, page: Page, here: Place) -> Move | None:
    following = page.token if pagination.type is PaginationType.TOKEN else page.url
    sent = place.token if pagination.type is PaginationType.TOKEN else place.url
    if not following:
        full = place.size is None or page.items >= place.size
        done = here.total is not None and here.seen >= here.total
        if pagination.last_page_probe and place.probes == 0 and full and page.items and not done:
            return Probe(replace(place, probes=1), X.PROBE)
        return End(X.END_NO_NEXT, here)
    if page.items == 0 and pagination.empty_page is not EmptyPage.CONTINUE:
        return _empty(pagination, place, here)
    if following == sent:
        if pagination.repeated_token is RepeatedToken.END:
            return End(X.END_REPEATED, here)
        if pagination.repeated_token is RepeatedToken.FAIL:
            return Stop(X.LOOP, "the token or URL that was sent came back", here)
    short = place.size is not None and page.items < place.size
    if short and pagination.short_page is ShortPage.END:
        return End(X.END_SHORT, here)
    return None


def _empty(pagination: Pagination, place: Place, here: Place) -> Move | None:
    match pagination.empty_page:
        case EmptyPage.END:
            return End(X.END_EMPTY, here)
        case EmptyPage.PROBE:
            return End(X.END_EMPTY, here) if place.probes else Probe(replace(place, probes=1), X.PROBE)
        case EmptyPage.CONTINUE:
            done = here.total is not None and here.seen >= here.total
            return End(X.END_TOTAL, here) if done else None


def _at_max_page(pagination: Pagination, here: Place, bounds: Range) -> Move:
    if pagination.bridge_to_time and bounds.splittable:
        return Stop(X.BRIDGE, f"maxPage {pagination.max_page} is reached", here)
    return Stop(X.MAX_PAGE, f"maxPage {pagination.max_page} is reached and the slice cannot be cut", here)


def _next(pagination: Pagination, place: Place, page: Page, here: Place, bounds: Range) -> Move:
    here = replace(here, probes=0)
    match pagination.type:
        case PaginationType.OFFSET:
            asked = place.size if pagination.step is Step.REQUESTED and place.size is not None else page.items
            if asked == 0:
                return Stop(X.LOOP, "an empty page does not move the offset", here)
            return Next(replace(here, offset=(place.offset or 0) + asked))
        case PaginationType.PAGE:
            return Next(replace(here, page=(place.page or 0) + 1))
        case PaginationType.TOKEN:
            return _chained(here, page.token, "token")
        case PaginationType.URL:
            return _chained(here, page.url, "url")
        case PaginationType.TIME | None:
            return _later(place, page, here, bounds)


def _chained(here: Place, following: str | None, name: str) -> Move:
    if not following:  # hasMore says yes, and nothing says where
        return Stop(X.LOOP, f"there is more, but no next {name}", here)
    return Next(replace(here, token=following) if name == "token" else replace(here, url=following))


def _later(place: Place, page: Page, here: Place, bounds: Range) -> Move:
    if page.newest is None:
        return End(X.END_EMPTY, here)
    if bounds.until is not None and page.newest >= bounds.until:
        return End(X.END_WINDOW, here)
    if place.since is not None and page.newest <= place.since:
        return Stop(X.STUCK_INSTANT, "a full page of records of one instant; ask for larger pages", here)
    return Next(replace(here, since=page.newest))
