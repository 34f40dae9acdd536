"""How a list is walked: pagination, order, window, cursor (ch. 4.3, 4.4, 4.5, 10)."""

from typing import Annotated

from msgspec import Meta

from patra.ingest.packs.sections.base import Bit, Count, Duration, Path, doc
from patra.ingest.vocabulary.codes import (
    Align,
    Bounds,
    CursorType,
    Direction,
    EmptyPage,
    NamespaceScope,
    Overshoot,
    PaginationType,
    Precision,
    RepeatedToken,
    ShortPage,
    Step,
    TotalMeaning,
    Verify,
)
from patra.kernel.clock import DAY, HOUR, MINUTE, SECOND, parse_duration, parse_instant

ALIGNMENT: dict[Align, int] = {Align.MIN: MINUTE, Align.HOUR: HOUR, Align.DAY: DAY}

PRECISIONS: dict[Precision, int] = {
    Precision.DAY: DAY,
    Precision.MINUTE: MINUTE,
    Precision.SECOND: SECOND,
    Precision.MILLISECOND: SECOND // 1000,
}


class Initial(Bit, frozen=True, kw_only=True):
    """Where a list begins."""

    offset: Annotated[int, doc("OFFSET: the first offset.", 0, ge=0)] = 0
    page: Annotated[
        Annotated[int, Meta(ge=0)] | None, doc("PAGE: the first page; 1 or 0 by `base1` unless given.", 1)
    ] = None
    token: Annotated[str | None, doc("TOKEN: sent with the first request; absent leaves it out.", "*")] = None
    url: Annotated[str | None, doc("URL: the first URL, where it is not what `http` renders.", "https://…")] = None


class Pagination(Bit, frozen=True, kw_only=True):
    """How the next page is asked for, and how the end is recognised (ch. 4.3)."""

    type: Annotated[PaginationType | None, doc("What drives the pages; an endpoint that lists needs one.", "TOKEN")] = (
        None
    )
    page_size: Annotated[Count | None, doc("Records asked for per page: `${page.size}`.", 100)] = None
    max_page: Annotated[Count | None, doc("Most pages of one slice; absent means no bound.", 1000)] = None
    base1: Annotated[
        bool | None, doc("PAGE: whether the first page is 1 (true) or 0 (false); required for PAGE.", True)
    ] = None
    initial: Annotated[Initial, doc("Where a list begins.", {"token": "*"})] = Initial()
    step: Annotated[Step, doc("OFFSET: by what the offset grows.", "RETURNED")] = Step.RETURNED
    next_token_path: Annotated[Path | None, doc("TOKEN: where the next token stands.", "$.message['next-cursor']")] = (
        None
    )
    next_token_param: Annotated[
        str | None,
        doc("TOKEN: what stands there is a URL; the token is this query parameter of it.", "page[cursor]"),
    ] = None
    next_token_hook: Annotated[
        str | None,
        doc("TOKEN: name of the extension that finds the next token, instead of `nextTokenPath`.", "last_id"),
    ] = None
    next_url_path: Annotated[Path | None, doc("URL: where the next URL stands in the body.", "$.links.next")] = None
    next_url_link: Annotated[
        str | None, doc("URL: relation in the `Link` header that holds the next URL, instead of `nextUrlPath`.", "next")
    ] = None
    carry_query: Annotated[
        bool, doc("URL: add the parameters of `queryTemplate` that the next URL has dropped.", True)
    ] = False
    pin_path: Annotated[
        bool, doc("URL: keep the path of the first request where the next URL points to another one.", True)
    ] = False
    empty_page: Annotated[
        EmptyPage | None,
        doc(
            "What an empty page means. Undeclared, it is the end, but behind a full page, where no total counts, it "
            "is doubted first: the next one is asked for, or, without a way there, the same one once more.",
            "END",
        ),
    ] = None
    short_page: Annotated[
        ShortPage | None,
        doc(
            "What a page with fewer records than asked for means. Undeclared, it ends a list by OFFSET, PAGE or TIME "
            "whose total counts; where none does, the next one is asked for.",
            "CONTINUE",
        ),
    ] = None
    total: Annotated[
        TotalMeaning,
        doc("What the number at `response.totalPath` promises; a window is done when it adds up.", "ESTIMATE"),
    ] = TotalMeaning.EXACT
    total_tolerance: Annotated[
        float, doc("ESTIMATE: by which share of itself the total may be too high.", 0.05, ge=0, le=1)
    ] = 0.0
    verify: Annotated[
        Verify,
        doc("A list that no total counts: whether a second reading must give the same records.", "TWICE"),
    ] = Verify.ONCE
    repeated_token: Annotated[
        RepeatedToken, doc("What it means that the token or URL just sent comes back.", "END")
    ] = RepeatedToken.FAIL
    last_page_probe: Annotated[
        bool, doc("Ask once more for the page after the last where a provider drops its token now and then.", True)
    ] = False
    token_ttl: Annotated[Duration | None, doc("How long a token lives on the server.", "PT5M")] = None
    bridge_to_time: Annotated[
        bool, doc("At `maxPage`, cut the rest of the window into smaller ones instead of stopping.", True)
    ] = True

    @property
    def first_page(self) -> int:
        return self.initial.page if self.initial.page is not None else int(self.base1 is not False)


class Ordering(Bit, frozen=True, kw_only=True):
    """The order in which a list comes (ch. 4.5)."""

    order_by: Annotated[
        str,
        doc(
            "What the list is ordered by. Where it is the watermark key, as `updated_at desc`, a stable and monotonic "
            "list that is filtered here is read no further than the window.",
            "updated_at desc",
        ),
    ] = "updated desc"
    ascending: Annotated[
        bool,
        doc(
            "The list comes in rising order of the update time: a slice that stops half-way is done up to there.", True
        ),
    ] = False
    stable: Annotated[bool, doc("The order does not change between two requests.", True)] = False
    monotonic: Annotated[bool, doc("The field that orders the list only grows for new and changed records.", True)] = (
        False
    )
    as_of: Annotated[bool, doc("The server pages over a snapshot of its own (scroll, point in time).", True)] = False
    reread_last_page: Annotated[
        bool, doc("Read the last page once more where records may move while they are read.", True)
    ] = False


class Window(Bit, frozen=True, kw_only=True):
    """The half-open window `[from, to)` in UTC and how far it may go (ch. 4.4)."""

    supports_updated_since: Annotated[bool, doc("The provider filters by update time.", True)] = False
    client_filter: Annotated[
        bool, doc("Records outside the window are dropped on our side; for providers that do not filter.", True)
    ] = False
    safety_lag: Annotated[Duration, doc("A window ends no later than now minus this.", "PT10M")] = "PT10M"
    min_window: Annotated[Duration, doc("No slice is narrower.", "PT1H")] = "PT1H"
    max_window: Annotated[Duration, doc("No slice is wider.", "P7D")] = "P1D"
    align: Annotated[Align, doc("Edges of windows lie on whole minutes, hours or days.", "day")] = Align.HOUR
    watermark_key: Annotated[str, doc("The field whose time moves the watermark.", "updated_at")] = ""
    substitute_key: Annotated[
        str | None,
        doc(
            "An output field whose instant stands for the update time where the provider has none; the list must be in "
            "its order (`ordering.monotonic`).",
            "created",
        ),
    ] = None
    initial: Annotated[
        str | None,
        doc("Where the first HARVEST starts: an instant, or a duration back from now.", "P7D", kind="instant"),
    ] = None
    overshoot: Annotated[Overshoot, doc("What happens to a window past now minus the safety lag.", "CLAMP")] = (
        Overshoot.CLAMP
    )
    source_timezone: Annotated[
        str, doc("Zone of instants in the provider's answers that carry no offset.", "America/New_York")
    ] = "UTC"
    bounds: Annotated[
        Bounds | None,
        doc(
            "Whether the provider gives what lies on its upper bound; undeclared, `window.until` is the window's end, "
            "and reads a little too much rather than too little.",
            "inclusive",
        ),
    ] = None
    precision: Annotated[
        Precision | None,
        doc("The finest part of an instant by which the provider compares; an inclusive bound needs it.", "second"),
    ] = None

    def until_us(self, end: int) -> int:
        """The upper bound to send for a window that ends before `end`; never one that leaves something out (I11).

        An inclusive one is the last millisecond of the last day, second, … that the window touches: written in whole
        days or seconds it is that day or second, and written finer it still leaves nothing out.
        """
        if self.bounds is None or self.precision is None:
            return end
        unit = PRECISIONS[self.precision]
        above = -(-end // unit) * unit
        return above - PRECISIONS[Precision.MILLISECOND] if self.bounds is Bounds.INCLUSIVE else above

    def start_of_unit_us(self, bound: int) -> int:
        """Where the unit begins that an inclusive bound stands for; any other bound stands for itself."""
        if self.bounds is not Bounds.INCLUSIVE or self.precision is None:
            return bound
        return bound // PRECISIONS[self.precision] * PRECISIONS[self.precision]

    @property
    def safety_lag_us(self) -> int:
        return parse_duration(self.safety_lag)

    @property
    def min_us(self) -> int:
        return parse_duration(self.min_window)

    @property
    def max_us(self) -> int:
        return parse_duration(self.max_window)

    @property
    def unit_us(self) -> int:
        return ALIGNMENT[self.align]

    def initial_us(self, now: int) -> int | None:
        """Where a first HARVEST at `now` starts."""
        if self.initial is None:
            return None
        if (instant := parse_instant(self.initial)) is not None:
            return instant
        return now - parse_duration(self.initial)


class Cursor(Bit, frozen=True, kw_only=True):
    """Which watermark an operation moves (ch. 10). Absent fields take the defaults of the operation."""

    type: Annotated[
        CursorType | None,
        doc(
            "HARVEST: TIME, or ID for a key that only grows: what is new is what has a larger one. BACKFILL: TIME. "
            "UPDATE: ID or TIME.",
            "TIME",
        ),
    ] = None
    scope: Annotated[NamespaceScope | None, doc("HARVEST: EXPR or GLOBAL. BACKFILL and UPDATE: CUSTOM.", "EXPR")] = None
    direction: Annotated[Direction | None, doc("HARVEST: FORWARD. BACKFILL: BACKFILL.", "FORWARD")] = None
    key: Annotated[
        str | None,
        doc(
            "Name of the cursor; the watermark key unless given. HARVEST by ID: the output field that holds the "
            "number, the record's id unless given.",
            "updated_at",
        ),
    ] = None
    revision: Annotated[
        int, doc("Raise it when the query selects something else: the watermark starts again.", 1, ge=1)
    ] = 1
    overlap: Annotated[
        int,
        doc(
            "HARVEST by ID: how far below the largest number each harvest begins again, for records that appear later "
            "than ones with larger numbers.",
            1000,
            ge=0,
        ),
    ] = 0
