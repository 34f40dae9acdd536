"""Counts what a window promised against the result, and says what is missing (ruling I10).

A total is what a provider says that a query has; what it means is declared in the pack (`pagination.total`). Positions
are the places of a list that were walked: records with and without an id, null items, and places that the provider
declares to be empty. A window is done when its positions reach the total that was reported last and no record stands on
two of them in place of another. Pure: no store, no clock.
"""

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import msgspec
from msgspec.structs import replace

from patra.ingest.extraction.page_moves import Page, PagePosition
from patra.ingest.packs.sections import Pagination
from patra.ingest.vocabulary.codes import PaginationType, TotalMeaning

MAX_TRACKED_KEYS = 2_000_000
"""Records of one window whose repetition is noticed; of a larger one only the positions are counted."""


MAX_PAGES_ABOVE = 10
"""A list that brings twice its exact total and so many pages more is followed no further."""

MAX_PAGES_UNCOUNTED = 100_000
"""Pages of one list that no total counts and whose pack names no `maxPage`."""


class LegCount(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one leg of a window has seen so far. LIST counts places of the list, DETAIL the ids that were asked for."""

    promised_first: int | None = None
    promised_last: int | None = None
    positions: int = 0
    """LIST: places that the last reading walked. DETAIL: ids that were asked for."""
    distinct_ids: int = 0
    """LIST: records of the last reading that differ in id, version or update time. DETAIL: ids that were answered."""
    null_items: int = 0
    without_id: int = 0
    suppressed: int = 0
    inserted: int = 0
    updated: int = 0
    equal: int = 0
    older: int = 0
    repeated: int = 0
    outside: int = 0
    quarantined: int = 0
    gone: int = 0
    """DETAIL: ids for which the provider has no record."""
    readings: int = 1
    missing: int = 0
    """LIST: how many positions, or records, the total promises beyond what came."""
    why: str = ""
    agreed: bool = False
    """LIST: two readings gave the same records (`verify: TWICE`)."""


class Ledger(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Both legs of a window; a window without a second phase has an empty DETAIL."""

    listing: LegCount = LegCount()
    detail: LegCount = LegCount()

    @property
    def missing(self) -> int:
        return self.listing.missing + self.detail.missing


class Walked(msgspec.Struct, frozen=True, kw_only=True):
    """What one reading of a list has walked over."""

    positions: int
    null_items: int = 0
    without_id: int = 0
    suppressed: int = 0
    skipped: int = 0
    """Places before the slice's own first page."""
    perhaps_twice: int = 0
    """Where pages may overlap: nulls and empty places that may have stood on an earlier one."""


class Shortfall(msgspec.Struct, frozen=True, kw_only=True):
    """How many are missing, and which count says so."""

    missing: int
    why: str


def fewest(pagination: Pagination, total: int | None) -> int | None:
    """How many positions a total asks for at least; None where it promises nothing that could be counted."""
    if total is None:
        return None
    match pagination.total:
        case TotalMeaning.EXACT:
            return total
        case TotalMeaning.ESTIMATE:
            return total - int(total * pagination.total_tolerance)
        case TotalMeaning.UPPER_BOUND | TotalMeaning.NONE:
            return None


def shortfall(
    pagination: Pagination, walked: Walked, total: int | None, distinct_ids: int | None = None
) -> Shortfall | None:
    """What a list that ended lacks of its total. `distinct_ids` is None where nobody could count them.

    A list by time is requested again from each instant on, so that its total is the one of its last page, as are the
    positions; whether its pages held all there was, `shortfall_by_time` says.
    """
    least = fewest(pagination, total)
    if least is None:
        return None
    reached = walked.skipped + walked.positions + walked.suppressed
    if reached < least:
        return Shortfall(missing=least - reached, why=f"{reached} of {total} promised positions came")
    if distinct_ids is None:
        return None
    known = walked.skipped + distinct_ids + walked.null_items + walked.without_id + walked.suppressed
    known -= walked.perhaps_twice
    if known < least:
        again = f"{walked.positions} positions came for {total} promised, but some records stood there twice"
        return Shortfall(missing=least - known, why=again)
    return None


def shortfall_by_time(
    pagination: Pagination, walked: Walked, total_first: int | None, distinct_ids: int | None
) -> Shortfall | None:
    """What a list by time lacks of the total of its first page: its records are counted, each once.

    Pages overlap. Items without an id are distinguished by their content (`NamelessItems`); nulls and places that the
    provider declares to be empty cannot be: only as many count as one page had, so that none counts twice.
    """
    least = fewest(pagination, total_first)
    if least is None or distinct_ids is None:
        return None
    known = distinct_ids + walked.null_items + walked.without_id + walked.suppressed - walked.perhaps_twice
    if known >= least:
        return None
    return Shortfall(missing=least - known, why=f"{known} records came for {total_first} promised at the beginning")


def wrong_total(pagination: Pagination, place: PagePosition, distinct_ids: int | None) -> Shortfall | None:
    """A total that is declared exact and cannot be: it adds up to a list that is cut off as well as to a whole one.

    While a list changes, a few records more than its total may come; a page more does not. So may its total fall by a
    few; where it falls by more than a page and a link is missing, the link is what is believed least.
    """
    most, reached = place.total_most, place.places_reached
    if most is None or pagination.total is not TotalMeaning.EXACT:
        return None
    if place.total_of_rest and reached < most and pagination.type is not PaginationType.TIME:
        why = f"{reached} of {most} promised positions came; the total is what each page leaves, not the list's"
        return Shortfall(missing=most - reached, why=why)
    if pagination.type in {PaginationType.TOKEN, PaginationType.URL} and reached + (place.size or place.longest) < most:
        why = f"{reached} positions came; the total was {most}, and {place.total} at the end of the list"
        return Shortfall(missing=most - reached, why=why)
    room = 0 if place.total_of_page else place.size or 0
    if distinct_ids is None or distinct_ids <= most + room:
        return None
    of_page = "; it is the number of records of each page" if place.total_of_page else ""
    why = f"{distinct_ids} records came for {most} promised, so that the total cannot say whether that is all{of_page}"
    return Shortfall(missing=1, why=why)


def perhaps_capped(pagination: Pagination, place: PagePosition, page: Page, here: PagePosition) -> bool:
    """Whether a short page may have others behind it: the provider may give no larger ones, or have cut this one.

    The pack does not say what a short page means, and no total counts: the next page is asked for. Reading too much
    costs one request (I11). `here` is the place with the page counted.
    """
    if page.has_more is not None or not page.items:
        return False
    if pagination.type is PaginationType.TIME:
        stuck = place.index == 0 and place.since is not None and (page.newest or 0) <= place.since
        if page.newest is None or not page.rising or stuck:
            return False  # there is no later instant to go on from
    return looks_behind(pagination, here)


def looks_behind(pagination: Pagination, place: PagePosition) -> bool:
    """Whether a page is asked for only because the short one before it may not have been the last."""
    kinds = {PaginationType.OFFSET, PaginationType.PAGE, PaginationType.TIME}
    declared = pagination.short_page is not None or pagination.max_page == 1
    return pagination.type in kinds and not declared and not counts_records(pagination, place.total)


def counts_records(pagination: Pagination, total: int | None) -> bool:
    """Whether a total says how many records a list has at most, so that reaching it is the end."""
    return total is not None and pagination.total in {TotalMeaning.EXACT, TotalMeaning.UPPER_BOUND}


def endless(pagination: Pagination, place: PagePosition) -> str:
    """Why a list is followed no further: a provider that invents records has no end; empty where it may go on."""
    most = None if pagination.type is PaginationType.TIME else place.total_most
    says_nothing = place.total_of_page or place.total_of_rest
    if most is not None and pagination.total is TotalMeaning.EXACT and not says_nothing:
        room = most + MAX_PAGES_ABOVE * (place.size or place.longest)
        return f"{place.seen} records came for {most} promised, and more follow" if place.seen > most + room else ""
    uncounted = says_nothing or fewest(pagination, place.total) is None
    if pagination.max_page is None and uncounted and place.index >= MAX_PAGES_UNCOUNTED:
        return f"{place.index} pages, and no end or total in sight; name `pagination.maxPage` if it is really so long"
    return ""


def hole(pagination: Pagination, place: PagePosition) -> Shortfall | None:
    """What a list lacks in which records stood behind a page that looked like its last one, with no total to ask."""
    if not place.hole or counts_records(pagination, place.total):
        return None
    what = "emptyPage: CONTINUE" if place.hole.startswith("an empty") else "shortPage: CONTINUE"
    why = f"records stood behind {place.hole}; if the provider filters after paging, declare `{what}`"
    return Shortfall(missing=1, why=why)


class NamelessItems:
    """Items without an id that one reading of a list by time has met, by the hash of their content.

    Pages overlap: an item counts again only where a page holds more of the same than any page before it.
    """

    def __init__(self) -> None:
        self._met: Counter[int] = Counter()

    def fresh(self, page: Sequence[int]) -> int:
        """How many of a page were not met before."""
        return (Counter(page) - self._met).total()

    def add(self, page: Sequence[int]) -> None:
        if len(self._met) <= MAX_TRACKED_KEYS:
            self._met |= Counter(page)


def advice(pagination: Pagination) -> str:
    """What to do about a window that does not add up."""
    if pagination.type in {PaginationType.TOKEN, PaginationType.URL}:
        look = "check the path of the next token or URL and `hasMorePath`"
    else:
        look = "check `pageSize`, `hasMorePath` and the order of the list"
    return (
        f"{look} with `patra ingest try`, fix the pack and run the same again: the window is read again; if the total "
        "is not exact, declare `pagination.total` (ESTIMATE, UPPER_BOUND, NONE), and if the provider withholds "
        "records, `shortPage: SUPPRESSED`"
    )


def with_page(ledger: Ledger, walked: Walked, total: int | None, *, distinct_ids: int, readings: int) -> Ledger:
    """The ledger after a page of the list."""
    was = ledger.listing
    first = total if was.promised_first is None else was.promised_first
    return replace(
        ledger,
        listing=replace(
            was,
            promised_first=first,
            promised_last=was.promised_last if total is None else total,
            positions=walked.positions,
            null_items=walked.null_items,
            without_id=walked.without_id,
            suppressed=walked.suppressed,
            distinct_ids=distinct_ids,
            readings=readings,
        ),
    )


def with_shortfall(ledger: Ledger, found: Shortfall | None, note: str = "", *, agreed: bool = False) -> Ledger:
    """The ledger at the end of the list; `note`: what is to be known of it although nothing is missing."""
    was = ledger.listing
    missing, why = (0, note or _nulls(was)) if found is None else (found.missing, found.why)
    return replace(ledger, listing=replace(was, missing=missing, why=why, agreed=agreed))


def _nulls(count: LegCount) -> str:
    """Nulls count as places of the list, and nobody can say which records they stand for."""
    if not count.null_items:
        return ""
    return f"{count.null_items} of {count.positions} places of the list hold null instead of a record or its id"


def with_details(ledger: Ledger, asked: AbstractSet[str], came: AbstractSet[str], *, ignored: bool) -> Ledger:
    """The ledger after a group of details; ids without a record are gone where the pack ignores them.

    Otherwise they went to the quarantine, and are counted as such.
    """
    was, answered = ledger.detail, len(asked & came)
    lost = len(asked) - answered
    return replace(
        ledger,
        detail=replace(
            was,
            positions=was.positions + len(asked),
            distinct_ids=was.distinct_ids + answered,
            gone=was.gone + (lost if ignored else 0),
        ),
    )


class Outcomes(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the records of one batch."""

    inserted: int = 0
    updated: int = 0
    equal: int = 0
    older: int = 0
    repeated: int = 0
    outside: int = 0
    quarantined: int = 0
    gone: int = 0


def with_outcomes(ledger: Ledger, found: Outcomes, *, detail: bool) -> Ledger:
    """The ledger with what was written of a batch."""
    was = ledger.detail if detail else ledger.listing
    after = replace(
        was,
        inserted=was.inserted + found.inserted,
        updated=was.updated + found.updated,
        equal=was.equal + found.equal,
        older=was.older + found.older,
        repeated=was.repeated + found.repeated,
        outside=was.outside + found.outside,
        quarantined=was.quarantined + found.quarantined,
        gone=was.gone + found.gone,
    )
    return replace(ledger, detail=after) if detail else replace(ledger, listing=after)
