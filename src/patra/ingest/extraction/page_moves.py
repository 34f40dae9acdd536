"""Where a list stands, what a page held, and where it leads: the next page, a second look, the end, or a stop."""

from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from patra.ingest.vocabulary.run_reasons import RunReason

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

    @property
    def reached(self) -> int:
        """Places of the list up to here, those of other slices and those that the provider leaves empty among them."""
        return self.before + self.seen + self.suppressed

    @property
    def only_short_pages(self) -> bool:
        """Whether every page so far held fewer records than were asked for: the provider may give no larger ones."""
        return self.size is not None and self.seen < self.index * self.size


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
    newest: int | None = None
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
