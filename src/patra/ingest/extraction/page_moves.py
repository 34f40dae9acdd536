"""Where a list stands, what a page held, and where it leads: the next page, a second look, the end, or a stop."""

from collections.abc import Set as AbstractSet
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from patra.ingest.packs.sections import Pagination
from patra.ingest.vocabulary.codes import PaginationType, RepeatedToken, ShortPage
from patra.ingest.vocabulary.run_reasons import RunReason

MAX_TALLY = 2**62 - 1
MAX_PROBES = 3  # times that a repeated page is asked for again before it is a circle
MAX_SLIPS = 8  # repeated pages of one list that are forgiven
RECENT_PAGES = 16  # pages whose repetition is noticed at once; longer circles are noticed after a few turns


class Trail(msgspec.Struct, frozen=True, kw_only=True):
    """The latest pages, and Brent's memory: an earlier page, how long ago, and when a newer one takes its place."""

    recent: tuple[str, ...] = ()
    mark: str = ""
    steps: int = 0
    power: int = 1

    def after(self, digest: str) -> "Trail":
        """The memory with one more page."""
        recent = (*self.recent, digest)[-RECENT_PAGES:]
        if self.steps + 1 >= self.power:
            return Trail(recent=recent, mark=digest, steps=0, power=self.power * 2)
        return replace(self, recent=recent, steps=self.steps + 1)

    def has(self, digest: str) -> bool:
        """Whether a page was there before, as far as is remembered."""
        return bool(digest) and (digest == self.mark or digest in self.recent)


class PagePosition(msgspec.Struct, frozen=True, kw_only=True):
    """Where the next request stands. It is the checkpoint: a run that begins here goes on as if nothing had been."""

    index: int = 0
    page: int | None = None
    offset: int | None = None
    token: str | None = None
    url: str | None = None
    since: int | None = None
    size: int | None = None
    before: int = 0
    """Places of the list before the slice's own first page."""
    seen: int = 0
    null_items: int = 0
    without_id: int = 0
    suppressed: int = 0
    most_blanks: int = 0
    """Nulls and places that the provider leaves empty, on the page that had most of them."""
    total: int | None = None
    total_first: int | None = None
    """Its total when this reading began: by time, and where a list grows at its head. What came since stands above."""
    total_most: int | None = None
    """The highest total that a page of this reading gave."""
    total_of_page: bool = False
    """Every total so far was the number of records on its own page."""
    total_of_rest: bool = False
    """Every total so far was what the pages before it had left over of the first one."""
    last: int | None = None
    """Places of the list on the page before this one."""
    empties: int = 0
    probes: int = 0
    slips: int = 0
    drifted: bool = False
    grew: bool = False
    """A list that grows at its end did so while it was read: a record that left it meanwhile would not show."""
    overlapped: bool = False
    """A record of an earlier page stood on a later one: the list moved, and others may have been skipped."""
    passes: int = 0
    reread: bool = False
    """The last page was read, and is read once more."""
    trail: Trail = Trail()
    longest: int = 0
    """Places of the list on the longest page so far."""
    tally: int = 0
    """`verify: TWICE`: the sum of the hashes of the records of this reading, whatever their order."""
    earlier: int | None = None
    """The same of the reading before this one."""
    hole: str = ""
    """A page in the midst that looked like the last one: it was empty, or by page shorter than others."""

    @property
    def places_reached(self) -> int:
        """Places of the list up to here, those of other slices and those that the provider leaves empty among them."""
        return self.before + self.seen + self.suppressed

    def may_overlap(self, pagination: Pagination) -> bool:
        """Whether a place of the list may stand on two pages: by time, or by offset behind a short page."""
        if pagination.type is PaginationType.OFFSET and self.offset is not None and self.size is not None:
            return self.offset - pagination.initial.offset - self.before != (self.index - 1) * self.size
        return pagination.type in {PaginationType.TIME, None}


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """What a page held. `digest` identifies it; `newest` is the latest update time on it."""

    items: int
    """Places of the list on it, nulls and items without an id among them."""
    null_items: int = 0
    without_id: int = 0
    overlaps: bool = False
    """A record on it was on an earlier page of this reading."""
    has_more: bool | None = None
    token: str | None = None
    url: str | None = None
    total: int | None = None
    digest: str = ""
    tally: int = 0
    """`verify: TWICE`: the sum of the hashes of its records that no earlier page of this reading had."""
    newest: int | None = None
    newest_but_one: int | None = None
    """The update time of the record before the last one."""
    rising: bool = True
    """Its update times do not fall from one record to the next."""


class Range(msgspec.Struct, frozen=True, kw_only=True):
    """What the slice itself bounds: pages, or the end of a window of time."""

    last_page: int | None = None
    until_offset: int | None = None
    """OFFSET: the pages of the slice end here, however many requests they took."""
    until: int | None = None
    splittable: bool = False
    max_depth: int | None = None
    """No page begins deeper than this; the last one of a list by offset asks for what is left up to it."""
    grows: bool = False
    """New records get larger keys: only a total that falls says that the list moved."""
    grows_at_head: bool = False
    """The same, with the largest first: the new ones are not in this reading."""


class Next(msgspec.Struct, frozen=True):
    """Go on here."""

    place: PagePosition


class Probe(msgspec.Struct, frozen=True):
    """Ask for the same page once more: its end, or its repetition, is not believed yet."""

    place: PagePosition
    code: RunReason


class End(msgspec.Struct, frozen=True):
    """The list is over."""

    code: RunReason
    place: PagePosition
    note: str = ""
    """What the window's count says of it although nothing is missing."""


class Stop(msgspec.Struct, frozen=True):
    """The list is not over, but cannot be followed: BRIDGE asks for smaller windows, the others are loud."""

    code: RunReason
    detail: str
    place: PagePosition


Move: TypeAlias = Next | Probe | End | Stop


def led_back(pagination: Pagination, place: PagePosition, move: Move, asked: AbstractSet[int]) -> Move:
    """A link to a page that this reading has asked for before is a slip of the provider, or a circle.

    `asked`: hashes of the tokens and URLs of the pages that have landed. A cursor that keeps its text says so itself.
    """
    if not isinstance(move, Next) or pagination.repeated_token is RepeatedToken.CONTINUE:
        return move
    link = move.place.token or move.place.url
    if not link or hash(link) not in asked:
        return move
    if place.probes < MAX_PROBES and place.slips < MAX_SLIPS:
        return Probe(replace(place, probes=place.probes + 1, slips=place.slips + 1), RunReason.LOOP)
    return Stop(RunReason.LOOP, f"page {move.place.index} leads back to one that was read before", move.place)


def with_page_counted(pagination: Pagination, place: PagePosition, page: Page, bounds: Range) -> PagePosition:
    total = page.total if page.total is not None else place.total
    change = 0 if page.total is None or place.total is None else page.total - place.total
    first = place.total if place.total_first is None else place.total_first
    most = max((one for one in (page.total, place.total_most) if one is not None), default=None)
    rest = page.total is not None and page.total + place.seen == most
    empty = _suppressed_places(pagination, place, page, total)
    return replace(
        place,
        index=place.index + 1,
        seen=place.seen + page.items,
        null_items=place.null_items + page.null_items,
        without_id=place.without_id + page.without_id,
        suppressed=place.suppressed + empty,
        most_blanks=max(place.most_blanks, page.null_items + empty),
        total=total,
        total_first=(total if first is None else first) if _keeps_first(pagination, bounds) else None,
        total_most=most,
        total_of_page=page.total == page.items and (place.total_of_page or place.index == 0),
        total_of_rest=rest and (place.total_of_rest or place.index == 0),
        last=page.items,
        longest=max(place.longest, page.items),
        tally=(place.tally + page.tally) & MAX_TALLY,
        hole=place.hole or _hole(pagination, place, page),
        drifted=place.drifted or (change < 0 if bounds.grows else change != 0),
        grew=place.grew or (bounds.grows and not bounds.grows_at_head and change > 0),
        overlapped=place.overlapped or page.overlaps,
        empties=0 if page.items else place.empties + 1,
        trail=place.trail.after(page.digest) if page.items else place.trail,
    )


def _keeps_first(pagination: Pagination, bounds: Range) -> bool:
    """Whether the total of the first page is the one to add up to: later ones say less, or more, of another list."""
    return bounds.grows_at_head or pagination.type is PaginationType.TIME


def _suppressed_places(pagination: Pagination, place: PagePosition, page: Page, total: int | None) -> int:
    """Places of a page that the provider leaves empty, where the pack declares it; none lies beyond the total."""
    if pagination.short_page is not ShortPage.SUPPRESSED or total is None or place.size is None:
        return 0
    left = total - place.before - place.seen - place.suppressed
    return max(min(place.size, left) - page.items, 0)


def _hole(pagination: Pagination, place: PagePosition, page: Page) -> str:
    """The page before this one, where it looked like the last one and is not: nothing else shows what it left out.

    By offset a short page is followed by what stands behind it. A token may lead past what the provider filtered.
    """
    if not page.items or place.last is None:
        return ""
    kinds = {PaginationType.OFFSET, PaginationType.PAGE}
    if place.empties and pagination.empty_page is None and pagination.type in kinds:
        return f"an empty page, behind the first {place.seen} records"
    short = 0 < place.last < place.longest and pagination.type is PaginationType.PAGE and pagination.short_page is None
    return f"a page of {place.last} records, where others held {place.longest}" if short else ""


def pushed_down(here: PagePosition, page: Page) -> bool:
    """Whether records that came at the head since explain a page that was there before: they push others down.

    As often as there are so many new ones, so that a provider that gives one page for ever is a circle still.
    """
    if here.total is None or here.total_first is None:
        return False
    return (here.slips + 1) * page.items <= here.total - here.total_first


def next_by_time(place: PagePosition, page: Page, here: PagePosition, bounds: Range) -> Move:
    """A list by time goes on from the latest instant of its page.

    One record behind the window may only have a wrong date: the list goes on from the one before it, and is over when
    nothing else comes.
    """
    if page.newest is None:
        if page.items == 0:
            return End(RunReason.END_EMPTY, here)
        return Stop(RunReason.STUCK_INSTANT, "no record of the page has an update time to go on from", here)
    if not page.rising:
        detail = "the page is not in rising order of the update time, and a list by time goes on from its latest"
        return Stop(RunReason.STUCK_INSTANT, detail, here)
    if bounds.until is not None and page.newest >= bounds.until:
        earlier = page.newest_but_one
        if earlier is None or earlier >= bounds.until or (place.since is not None and earlier <= place.since):
            return End(RunReason.END_WINDOW, here)
        return Next(replace(here, since=earlier))
    if place.since is not None and page.newest <= place.since:
        if page.items * place.index < place.seen:  # fewer than before, and nothing later: it was the end
            return End(RunReason.END_SHORT, here)
        return Stop(RunReason.STUCK_INSTANT, "a full page of records of one instant; ask for larger pages", here)
    return Next(replace(here, since=page.newest))
