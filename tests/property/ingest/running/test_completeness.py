"""Random lists with suppressed, null, repeated, moving and missing records, walked by every kind of paging.

Either everything that the provider has landed, or the window is incomplete: never a silent hole (ruling I10).
"""

from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from patra.ingest.extraction.pagination import (
    End,
    Next,
    Page,
    PagePosition,
    Probe,
    Stop,
    again,
    first,
    follow,
    has_moved,
    short_of,
)
from patra.ingest.packs.sections import Initial, Pagination
from patra.ingest.vocabulary.codes import PaginationType, ShortPage

KINDS = list(PaginationType)
NUMBERED = [PaginationType.OFFSET, PaginationType.PAGE]
CHAINED = [PaginationType.TOKEN, PaginationType.URL]


class Server:
    """A list of which some places are spoilt. A record's number is its time: a list by time goes by it.

    `at` gives the records of each number one instant with its neighbours, so many at a time.
    """

    def __init__(
        self,
        count: int,
        faults: dict[int, str],
        size: int,
        lost_link: int | None,
        leaves: int | None,
        crowd: int = 1,
    ) -> None:
        self.records: list[int] = list(range(count))
        self.crowd = crowd
        self.faults, self.size, self.lost_link, self.leaves = faults, size, lost_link, leaves
        self.asked = 0

    def at(self, record: int) -> int:
        return record // self.crowd + 1

    def page(self, kind: PaginationType, place: PagePosition) -> tuple[list[int], Page]:
        start = {
            PaginationType.OFFSET: lambda: place.offset or 0,
            PaginationType.PAGE: lambda: ((place.page or 1) - 1) * self.size,
            PaginationType.TOKEN: lambda: int(place.token or 0),
            PaginationType.URL: lambda: int(place.url or 0),
            PaginationType.TIME: lambda: sum(1 for one in self.records if self.at(one) < (place.since or 0)),
        }[kind]()
        places = self.records[start : start + self.size]
        items: list[int | None] = []
        for one in places:
            match self.faults.get(one):
                case "missing" | "suppressed":
                    continue
                case "null":
                    items.append(None)
                case "repeated":
                    items.append(places[0] if kind is PaginationType.TIME else self.records[0])
                case _:
                    items.append(one)
        end = start + self.size
        more = str(end) if end < len(self.records) else None
        if self.lost_link is not None and start <= self.lost_link < end:
            more = None
        total = len(self.records) - (start if kind is PaginationType.TIME else 0)
        self.asked += 1
        if self.leaves is not None and self.asked == 2 and kind not in CHAINED:  # a cursor walks over a snapshot
            self.records.pop(min(self.leaves, len(self.records) - 1))
        ids = [one for one in items if one is not None]
        nulls = len(items) - len(ids)
        newest = max((self.at(one) for one in ids), default=None)
        page = Page(
            items=len(items),
            null_items=nulls,
            token=more,
            url=more,
            total=total,
            digest=str((start, ids)),
            newest=newest,
        )
        return ids, page


def walk(server: Server, pagination: Pagination) -> tuple[set[int], bool, PagePosition]:
    """What lands, and whether the window is done, as `steps.after_page` decides it."""
    place, landed, reading = first(pagination, since=0), set[int](), set[int]()
    for _ in range(2000):
        reading = set[int]() if place.index == 0 else reading
        ids, page = server.page(pagination.type or PaginationType.PAGE, place)
        move = follow(pagination, place, page)
        match move:
            case Probe(place=place):
                continue
            case Stop():
                return landed | set(ids), False, place
            case Next(place=following):
                landed |= set(ids)
                reading |= set(ids)
                place = following
            case End():
                landed |= set(ids)
                reading |= set(ids)
                short = short_of(pagination, move.place, page.items, len(reading))
                start = replace(first(pagination, since=0), passes=place.passes)
                once_more = again(pagination, move, start, short=short is not None)
                if once_more is None:
                    return landed, short is None and not has_moved(pagination, move), move.place
                place = once_more
    raise AssertionError("the walk does not end")


faults = st.dictionaries(st.integers(1, 59), st.sampled_from(["missing", "null", "repeated"]), max_size=4)


@given(
    kind=st.sampled_from(KINDS),
    count=st.integers(0, 60),
    size=st.integers(1, 13),
    faults=faults,
    lost_link=st.none() | st.integers(0, 59),
    leaves=st.none() | st.integers(0, 59),
    short=st.sampled_from([None, ShortPage.CONTINUE]),
    crowd=st.sampled_from([1, 1, 2, 3]),
)
@example(
    kind=PaginationType.PAGE,
    count=40,
    size=10,
    faults={13: "missing"},
    lost_link=None,
    leaves=None,
    short=None,
    crowd=1,
)
@example(kind=PaginationType.TOKEN, count=40, size=10, faults={}, lost_link=12, leaves=None, short=None, crowd=1)
@example(
    kind=PaginationType.TIME,
    count=40,
    size=10,
    faults={13: "missing"},
    lost_link=None,
    leaves=None,
    short=None,
    crowd=1,
)
@example(
    kind=PaginationType.TIME,
    count=40,
    size=10,
    faults={13: "repeated"},
    lost_link=None,
    leaves=None,
    short=None,
    crowd=1,
)
@example(kind=PaginationType.TIME, count=40, size=10, faults={}, lost_link=None, leaves=3, short=None, crowd=1)
@example(
    kind=PaginationType.TIME,  # the null stands on two pages
    count=5,
    size=3,
    faults={4: "null", 1: "repeated"},
    lost_link=None,
    leaves=None,
    short=None,
    crowd=1,
)
@example(
    kind=PaginationType.OFFSET,  # behind a short page the null comes again
    count=12,
    size=12,
    faults={1: "missing", 11: "null"},
    lost_link=None,
    leaves=None,
    short=None,
    crowd=1,
)
def test_a_window_is_whole_or_incomplete(kind, count, size, faults, lost_link, leaves, short, crowd) -> None:
    server = Server(count, faults, size, lost_link, leaves if count > 1 else None, min(crowd, size - 1 or 1))
    pagination = Pagination(type=kind, page_size=size, base1=True, initial=Initial(token="0"), short_page=short)
    landed, done, place = walk(server, pagination)
    nameless = {one for one in server.records if server.faults.get(one) == "null"}
    hole = set(server.records) - landed - nameless
    assert not (done and hole), f"done, but {sorted(hole)} never came"
    if done:
        assert place.null_items >= len(nameless)  # counted, and shown in the coverage
    if not faults and leaves is None and (lost_link is None or kind not in CHAINED):
        stuck = kind is PaginationType.TIME and size == 1  # no page holds more than one instant
        assert done or stuck


@given(
    kind=st.sampled_from(NUMBERED),
    count=st.integers(0, 60),
    size=st.integers(2, 13),
    withheld=st.sets(st.integers(0, 59), max_size=20),
)
def test_a_walk_over_suppressed_records_asks_for_each_page_once(kind, count, size, withheld) -> None:
    server = Server(count, dict.fromkeys(withheld, "suppressed"), size, None, None)
    pagination = Pagination(type=kind, page_size=size, base1=True, short_page=ShortPage.SUPPRESSED)
    landed, done, place = walk(server, pagination)
    assert landed == set(range(count)) - withheld
    assert done
    assert server.asked == max(-(-count // size), 1)
    assert place.suppressed == len(withheld & set(range(count)))
