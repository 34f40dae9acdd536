"""Following any honest list reads each record once and in order; following any circle stops."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from patra.ingest.extraction.pagination import End, Next, Page, PagePosition, Probe, Stop, first, follow
from patra.ingest.packs.sections import Initial, Pagination
from patra.ingest.vocabulary.codes import EmptyPage, PaginationType, RepeatedToken, ShortPage

kinds = st.sampled_from(PaginationType)


def reading(pagination: Pagination, ask, bound: int):
    place, read = first(pagination, since=0), []
    for _ in range(bound):
        items, page = ask(place)
        move = follow(pagination, place, page)
        match move:
            case Next(place=place):
                read.append(items)
            case Probe(place=place):
                pass
            case End():
                return [*read, items], move
            case Stop():
                return [*read, items], move
    raise AssertionError(f"not over after {bound} pages")


@given(
    kind=kinds,
    count=st.integers(0, 60),
    size=st.integers(1, 12),
    has_more=st.booleans(),
    extra=st.booleans(),
    probe=st.booleans(),
)
def test_an_honest_list_is_read_whole(kind, count: int, size: int, has_more: bool, extra: bool, probe: bool) -> None:
    """`extra`: the provider gives a token also with its last page, as Crossref and OpenAlex do."""
    records = list(range(count))
    pagination = Pagination(type=kind, page_size=size, base1=True, initial=Initial(token="0"), last_page_probe=probe)

    def ask(place: PagePosition):
        match kind:
            case PaginationType.OFFSET:
                start = place.offset
            case PaginationType.PAGE:
                start = (place.page - 1) * size
            case PaginationType.TOKEN:
                start = int(place.token)
            case PaginationType.URL:
                start = int((place.url or "?0").rpartition("?")[2])
            case PaginationType.TIME:
                start = place.since
        items = records[start : start + size]
        more = start + size < count
        following = str(start + size) if more or (extra and items) else None
        explicit = more if has_more and kind not in {PaginationType.TOKEN, PaginationType.URL} else None
        page = Page(
            items=len(items),
            has_more=explicit,
            token=following,
            url=following and f"https://x/?{following}",
            digest=str(items),
            newest=items[-1] if items else None,
        )
        return items, page

    if kind is PaginationType.TIME and size == 1 and count:
        return  # one record a page and the next page starts with it: STUCK, tested by itself
    pages, move = reading(pagination, ask, 200)
    assert isinstance(move, End)
    read = [item for page in pages for item in page]
    assert sorted(set(read)) == records
    if kind is not PaginationType.TIME:
        assert read == records


@given(
    kind=kinds,
    tail=st.integers(0, 30),
    circle=st.integers(1, 40),
    empty=st.sampled_from(EmptyPage),
    short=st.sampled_from([None, *ShortPage]),
    repeated=st.sampled_from(RepeatedToken),
    sizes=st.integers(0, 10),
)
def test_a_circle_of_any_length_is_left(kind, tail, circle, empty, short, repeated, sizes) -> None:
    """The provider always says that there is more, and comes back to what it had."""
    pagination = Pagination(
        type=kind, page_size=10, base1=True, empty_page=empty, short_page=short, repeated_token=repeated
    )
    asked = 0

    def ask(place: PagePosition):
        nonlocal asked
        number = asked if asked < tail else tail + (asked - tail) % circle
        asked += 1
        items = list(range(number * 10, number * 10 + sizes))
        token = f"t{number + 1}"
        return items, Page(items=sizes, token=token, url=token, digest=str(number), newest=number * 10)

    _, move = reading(pagination, ask, 12 * (tail + circle) + 1100)
    assert isinstance(move, End | Stop)


@given(kind=kinds, slip=st.integers(0, 8))
def test_one_repeated_page_costs_one_more_request_and_no_record(kind, slip: int) -> None:
    if kind is PaginationType.TIME:
        return
    pagination = Pagination(type=kind, page_size=2, base1=True, initial=Initial(token="0"))
    records = list(range(15))
    before: list = []
    slipped = False

    def at(place: PagePosition) -> int:
        match kind:
            case PaginationType.OFFSET:
                return place.offset
            case PaginationType.PAGE:
                return (place.page - 1) * 2
            case PaginationType.TOKEN:
                return int(place.token)
            case _:
                return int(place.url or 0)

    def ask(place: PagePosition):
        nonlocal slipped
        start = at(place)
        items = records[start : start + 2]
        following = str(start + 2) if start + 2 < 15 else None
        page = Page(items=len(items), token=following, url=following, digest=str(items))
        if place.index == slip and before and not slipped:
            slipped = True
            items = before[-1]
            page = replace(page, items=2, digest=str(items))
        before.append(items)
        return items, page

    pages, move = reading(pagination, ask, 50)
    assert isinstance(move, End)
    assert sorted({item for page in pages for item in page}) == records
