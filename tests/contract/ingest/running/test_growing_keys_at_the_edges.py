"""Harvests by a growing key with late, odd and very large numbers, misdeclared orders, caps and crashes (4.4.3)."""

import re
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from patra.ingest.execution.progress import window_wanted
from patra.ingest.http.client import Outgoing
from patra.ingest.packs.compiler import check_pack, offered_operations
from patra.ingest.planning.trigger import Trigger
from patra.ingest.vocabulary.codes import Operation
from patra.kernel.clock import HOUR
from tests.contract.ingest.running.test_growing_keys import (
    BY_NUMBER,
    FALLING,
    Numbers,
    ended,
    falling_ids,
    harvest,
    mark,
    two_phases,
)
from tests.support.hostile_provider import Item, Provider
from tests.unit.ingest.packs.effects.observe import Tree, built, compiled
from tests.unit.ingest.packs.effects.pack import DAILY
from tests.unit.ingest.packs.effects.stand_in import NOW, T0, Site, loaded_tree, site

RISING_IDS: Tree = BY_NUMBER | {
    "cursor": {"type": "ID"}, "ordering.orderBy": "item_id asc", "output.fields": {"title": "$.title"},
}  # fmt: skip
RISING_UNASKED = {"up": "1", "after": "${key.from}", "size": "${page.size}", "offset": "${page.offset}"}
"""The list rises, and the provider does not know the parameter."""


def some(*ids: int) -> list[tuple[str, int]]:
    return [(str(one), one) for one in ids]


def latest_end(s: Site) -> tuple[str, str]:
    return s.rows("SELECT status_code, reason_code FROM ing_task ORDER BY rowid DESC LIMIT 1")[0]


def landed(s: Site) -> list[int]:
    return sorted(map(int, s.landed))


# --- late


@pytest.mark.parametrize("tree", [RISING_IDS, falling_ids()], ids=["rising", "falling"])
def test_an_overlap_reads_what_appeared_below_the_mark(tree: Tree) -> None:
    numbers = Numbers(*some(1, 2, 4, 6, 8, 9, 10))
    with site(script=numbers) as s:
        s.load(built(tree | {"cursor": {"type": "ID", "overlap": 7}}))
        harvest(s)
        numbers.items += some(3, 5)
        harvest(s)
        assert 5 in landed(s), "10 less the overlap of 7 is 3: what lies above is read again"
        assert (ended(s), mark(s)) == ([("SUCCEEDED", "i_done")] * 2, 10)


def test_an_overlap_as_large_as_the_mark_reads_everything_and_each_time_asks_from_there() -> None:
    numbers = Numbers(*some(2, 3))
    with site(script=numbers) as s:
        s.load(built(RISING_IDS | {"cursor": {"type": "ID", "overlap": 3}}))
        harvest(s)
        harvest(s)
        assert "low=1&" in s.transport.sent[-1][1].url, "the first number behind 3 less 3"
        numbers.items += some(1, 4)
        harvest(s)
        harvest(s)
        assert "low=2&" in s.transport.sent[-1][1].url
        assert landed(s) == [1, 2, 3, 4]


def test_a_late_record_on_a_page_that_is_read_lands_although_it_is_below_the_mark() -> None:
    numbers = Numbers(*some(1, 2, 4, 5))
    with site(script=numbers) as s:
        s.load(built(falling_ids() | {"pagination.pageSize": 3}))
        harvest(s)
        numbers.items += some(3, 6)
        assert harvest(s) == 2, "6 5 4, then 3 2 1: the second page has no larger number and is the last"
        assert landed(s) == [1, 2, 3, 4, 5, 6]


def test_two_phases_ask_for_the_ids_of_the_overlap_again() -> None:
    numbers = Numbers(*some(1, 2, 4))
    with site(script=numbers, provider=Provider([Item(T0 + n * HOUR, str(n), f"Title {n}") for n in range(1, 6)])) as s:
        s.load(built(two_phases(falling=True) | {"cursor": {"type": "ID", "overlap": 2}}))
        harvest(s)
        numbers.items += some(3, 5)
        harvest(s)
        assert landed(s) == [1, 2, 3, 4, 5]


# --- odd and large numbers


@pytest.mark.parametrize("first", [1_850_000_000_000_000_000, 2**63 - 6])
@pytest.mark.parametrize("tree", [RISING_IDS, falling_ids(), BY_NUMBER], ids=["rising", "falling", "number"])
def test_ids_with_a_time_in_front_are_numbers_of_nineteen_digits(tree: Tree, first: int) -> None:
    numbers = Numbers(*some(first, first + 1, first + 2))
    with site(script=numbers) as s:
        s.load(built(tree))
        harvest(s)
        numbers.items += some(first + 3, first + 4)
        harvest(s)
        assert landed(s) == [first + n for n in range(5)]
        assert (ended(s), mark(s)) == ([("SUCCEEDED", "i_done")] * 2, first + 4)
        assert s.rows("SELECT 1 FROM ing_quarantine") == []


@pytest.mark.parametrize("tree", [RISING_IDS, falling_ids()], ids=["rising", "falling"])
def test_texts_of_different_length_are_compared_as_numbers(tree: Tree) -> None:
    numbers = Numbers(("0007", 7), ("9", 9), ("10", 10), ("000000000000000000000100", 100))
    with site(script=numbers) as s:
        s.load(built(tree))
        harvest(s)
        numbers.items += [("101", 101)]
        harvest(s)
        assert sorted(s.landed) == ["000000000000000000000100", "0007", "10", "101", "9"]
        assert (ended(s), mark(s)) == ([("SUCCEEDED", "i_done")] * 2, 101)


@pytest.mark.parametrize("odd", ["W12", "", "1.5", "12e3", "٣", "9223372036854775808", "1" * 5000])
def test_an_id_that_is_no_number_is_set_aside_and_the_others_go_on(odd: str) -> None:
    numbers = Numbers(*some(1, 2))
    with site(script=numbers) as s:
        s.load(built(RISING_IDS))
        numbers.listed = [*some(1, 2), (odd, 3), *some(4)]
        harvest(s)
        assert (landed(s), mark(s)) == ([1, 2, 4], 4)
        assert len(s.rows("SELECT reason_code FROM ing_quarantine")) == 1
        assert ended(s) == [("SUCCEEDED", "i_done")]


# --- providers that do something else than the pack says


@pytest.mark.parametrize("size", [1, 2])
def test_a_list_that_rises_although_the_pack_says_falling_is_read_to_its_end(size: int) -> None:
    """One record on a page shows no order: a known one is no reason to stop there."""
    numbers = Numbers(*some(1, 2, 3))
    rising = {"http.queryTemplate": {"up": "1", "size": "${page.size}", "offset": "${page.offset}"}}
    with site(script=numbers) as s:
        s.load(built(falling_ids() | rising | {"pagination.pageSize": size}))
        harvest(s)
        numbers.items += some(4, 5)
        harvest(s)
        assert (landed(s), mark(s)) == ([1, 2, 3, 4, 5], 5)


@pytest.mark.parametrize("pinned", [2, 3])
def test_known_records_that_stand_before_a_falling_list_hide_nothing(pinned: int) -> None:
    """A page of them alone looks like the end of what is new: the order is seen on the next one."""
    numbers = Numbers(*some(*range(1, 8)))
    with site(script=numbers) as s:
        s.load(built(falling_ids()))
        harvest(s)
        numbers.items += some(8, 9, 10)
        numbers.listed = [*some(*range(pinned, 0, -1)), *some(*range(10, pinned, -1))]
        harvest(s)
        assert (landed(s), mark(s), latest_end(s)) == (list(range(1, 11)), 10, ("SUCCEEDED", "i_done"))


def test_a_falling_list_by_pages_of_one_is_left_at_the_second_known_record() -> None:
    numbers = Numbers(*some(*range(1, 9)))
    with site(script=numbers) as s:
        s.load(built(falling_ids() | {"pagination.pageSize": 1}))
        harvest(s)
        numbers.items += some(9)
        assert harvest(s) == 2, "9, and 8 behind it"
        assert (landed(s), mark(s)) == (list(range(1, 10)), 9)


@pytest.mark.parametrize("tree", [RISING_IDS, BY_NUMBER], ids=["id", "number"])
def test_a_provider_that_ignores_the_bound_costs_requests_and_nothing_else(tree: Tree) -> None:
    numbers = Numbers(*some(*range(1, 8)))
    with site(script=numbers) as s:
        s.load(built(tree | {"http.queryTemplate": RISING_UNASKED}))
        harvest(s)
        numbers.items += some(8, 9)
        assert harvest(s) == 5
        assert (landed(s), mark(s)) == (list(range(1, 10)), 9)
        assert ended(s) == [("SUCCEEDED", "i_done")] * 2


def test_a_provider_that_falls_although_the_pack_says_rising_is_read_whole() -> None:
    numbers = Numbers(*some(*range(1, 8)))
    falls = {"http.queryTemplate": {"after": "${key.from}", "size": "${page.size}", "offset": "${page.offset}"}}
    with site(script=numbers) as s:
        s.load(built(RISING_IDS | falls))
        harvest(s)
        numbers.items += some(8, 9, 10)
        harvest(s)
        assert (landed(s), mark(s)) == (list(range(1, 11)), 10)


# --- deeper than the provider pages


def test_a_rising_list_goes_on_behind_the_depth_from_its_last_number() -> None:
    numbers = Numbers(*some(*range(1, 12)))
    numbers.reach = 4
    with site(script=numbers) as s:
        s.load(built(RISING_IDS | {"limits.maxDepth": 4}))
        harvest(s)
        assert (ended(s), mark(s)) == ([("SUCCEEDED", "i_done")], 11)
        assert landed(s) == list(range(1, 12))
        assert [url.partition("low=")[2].partition("&")[0] for _, url in asked(s) if "offset=0" in url] == [
            "",
            "5",
            "9",
        ]
        assert s.rows("SELECT positions, missing FROM ing_window_ledger WHERE leg_code = 'LIST'") == [(11, 0)]


@pytest.mark.parametrize("grows", [False, True])
def test_a_rising_list_goes_on_behind_its_last_page_from_its_last_number(grows: bool) -> None:
    numbers = Numbers(*some(*range(1, 12)))
    late = some(99) if grows else []
    numbers.before_page = lambda offset: numbers.items.extend(late.pop() for _ in range(len(late) * bool(offset)))
    with site(script=numbers) as s:
        s.load(built(RISING_IDS | {"pagination.maxPage": 2}))
        harvest(s)
        assert (ended(s), mark(s)) == ([("SUCCEEDED", "i_done")], int(numbers.items[-1][0]))
        assert landed(s) == sorted(int(one) for one, _ in numbers.items)
        numbers.items += some(*range(100, 120))
        harvest(s)
        assert (landed(s)[-20:], mark(s)) == (list(range(100, 120)), 119)


@pytest.mark.parametrize("tree", [falling_ids(), RISING_IDS | {"pagination.bridgeToTime": False}])
def test_a_last_page_that_cannot_be_passed_says_what_would_help(tree: Tree) -> None:
    numbers = Numbers(*some(*range(1, 12)))
    with site(script=numbers) as s:
        s.load(built(tree | {"pagination.maxPage": 2}))
        harvest(s)
        [(error,)] = s.rows("SELECT error FROM ing_task_run")
        assert (ended(s), "raise `pagination.maxPage`" in error) == ([("FAILED", "i_max_page")], True)
        assert s.rows("SELECT 1 FROM ing_cursor") == []


def asked(s: Site) -> Iterator[tuple[int, str]]:
    return ((at, request.url) for at, request in s.transport.sent)


def test_records_of_one_number_around_the_depth_all_land() -> None:
    numbers = Numbers(("1", 1), ("2", 2), ("3", 2), ("4", 3), ("5", 3), ("6", 3), ("7", 4))
    numbers.reach = 4
    with site(script=numbers) as s:
        s.load(built(BY_NUMBER | {"limits.maxDepth": 4}))
        harvest(s)
        assert (ended(s), mark(s), landed(s)) == ([("SUCCEEDED", "i_done")], 4, list(range(1, 8)))


@pytest.mark.parametrize("told_total", [True, False])
def test_more_records_of_one_number_than_the_provider_pages_are_a_loud_end(told_total: bool) -> None:
    numbers = Numbers(*[(str(one), 5) for one in range(1, 8)])
    numbers.reach, numbers.told_total = 4, told_total
    with site(script=numbers) as s:
        s.load(built(BY_NUMBER | {"limits.maxDepth": 4}))
        harvest(s)
        [(status, code)] = ended(s)
        assert (status, code) == ("FAILED", "i_incomplete" if told_total else "i_too_deep_at_smallest")
        assert s.rows("SELECT 1 FROM ing_cursor") == []


def test_a_falling_list_that_is_too_deep_says_what_would_help() -> None:
    numbers = Numbers(*some(*range(1, 12)))
    numbers.reach, numbers.told_total = 4, False
    with site(script=numbers) as s:
        s.load(built(falling_ids() | {"limits.maxDepth": 4}))
        harvest(s)
        [(error,)] = s.rows("SELECT error FROM ing_task_run")
        assert "put ${key.from} into the query" in error
        assert s.rows("SELECT 1 FROM ing_cursor") == []


# --- crashes


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("tree", [RISING_IDS, falling_ids(), BY_NUMBER | {"limits.maxDepth": 4}],
                         ids=["rising", "falling", "deep"])  # fmt: skip
@pytest.mark.parametrize("nth", [1, 2, 3, 4])
def test_a_kill_before_any_page_is_committed_loses_nothing(tree: Tree, nth: int) -> None:
    """Records arrive while nobody reads; the mark is right, however the two harvests are cut."""
    numbers = Numbers(*some(*range(1, 8)))
    numbers.reach = 4 if "limits.maxDepth" in tree else numbers.reach
    asked_for = iter(range(1, 1000))

    def killing(offset: int) -> None:
        del offset
        if next(asked_for) == nth:
            raise Killed

    with site(script=numbers) as s:
        s.load(built(tree))
        s.trigger(since=None, until=None)
        numbers.before_page = killing
        with pytest.raises(Killed):
            s.drain()
        numbers.items += some(8, 9)
        s.clock.advance(HOUR)
        s.drain()
        assert mark(s) in {7, 9}
        assert set(range(1, mark(s) + 1)) <= set(landed(s)), "nothing below the mark is missing"
        harvest(s)
        assert (landed(s), mark(s)) == (list(range(1, 10)), 9)
        assert s.rows("SELECT 1 FROM ing_task_run WHERE status_code = 'RUNNING'") == []


def test_records_that_push_a_page_down_make_no_circle_and_a_page_for_ever_does() -> None:
    numbers = Numbers(*some(*range(1, 9)))

    def grow(offset: int) -> None:
        if offset == 2 and len(numbers.items) < 12:
            last = len(numbers.items)
            numbers.items += some(last + 1, last + 2)

    with site(script=numbers) as s:
        s.load(built(falling_ids()))
        numbers.before_page = grow
        harvest(s)
        assert (ended(s), mark(s)) == ([("SUCCEEDED", "i_done")], 8)
        harvest(s)
        assert (landed(s), mark(s)) == (list(range(1, 11)), 10), "the two that came meanwhile are above: next time"
        harvest(s)
        assert (landed(s), mark(s)) == (list(range(1, 13)), 12)
        numbers.before_page = lambda _: None
        numbers.items += some(13, 14, 15, 16)
        real = numbers.__class__.__call__
        s.transport._script = lambda number, request: real(numbers, number, _first_page(request))
        harvest(s)
        assert latest_end(s) == ("FAILED", "i_loop")


def _first_page(request: Outgoing) -> Outgoing:
    return replace(request, url=re.sub(r"offset=\d+", "offset=0", request.url))


# --- what is checked, and what belongs to it


def wrong(given: Tree) -> list[str]:
    return [f"{one.message} ({one.advice})" for one in check_pack(loaded_tree(built(given))) if one.severity == "error"]


def test_an_endpoint_by_key_offers_no_backfill_and_one_that_names_it_is_told_why() -> None:
    tree = RISING_IDS | {"supports": None, "twoPhase": None}
    assert wrong(tree) == []
    assert offered_operations(loaded_tree(built(tree)).pack, "search") == (Operation.HARVEST,)
    [told] = {*wrong(tree | {"supports": ["HARVEST", "BACKFILL"]})}
    assert told.startswith("BACKFILL cannot have type ID (a backfill reads windows of time")
    assert "raise cursor.revision to read every number again" in told


def test_a_backfill_by_time_stands_beside_a_harvest_by_key() -> None:
    query = BY_NUMBER["http.queryTemplate"] | {"from": "${window.from}", "until": "${window.until}"}
    tree = RISING_IDS | {
        "supports": None,
        "twoPhase": None,
        "operations": {"BACKFILL": {"cursor": {"type": "TIME"}}},
        "http.queryTemplate": query,
        "response.updatedAtPath": "$.updated",
        "response.updateTime": None,
        "response.onEqual": None,
    }
    assert wrong(tree) == []
    assert offered_operations(loaded_tree(built(tree)).pack, "search") == (Operation.HARVEST, Operation.BACKFILL)
    assert compiled(built(tree), Operation.BACKFILL).cursor.type == "TIME"
    assert compiled(built(tree)).by_key


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"planning.dimension": "PAGE"}, "HARVEST cannot be cut by PAGE"),
        ({"cursor": {"overlap": 3}, "http.queryTemplate": {"from": "${window.from}", "offset": "${page.offset}"}},
         "a harvest by time does not count in numbers"),
        ({"/schedules": {"daily": DAILY["/schedules"]["daily"] | {"operation": "HARVEST", "last": "P3D"}}},
         "a harvest by ID has no window"),
        ({"/schedules": {"daily": DAILY["/schedules"]["daily"] | {"operation": "HARVEST", "missed": "ALL"}}},
         "missed ticks cannot be made up one by one"),
    ],
)  # fmt: skip
def test_what_would_have_no_effect_is_refused(given: Tree, message: str) -> None:
    assert any(message in one for one in wrong(RISING_IDS | given)), wrong(RISING_IDS | given)


def test_a_harvest_by_key_waits_for_no_window_although_the_pack_has_one() -> None:
    with site(script=Numbers(*some(1))) as s:
        s.load(built(RISING_IDS))
        trigger = Trigger(source="s", endpoint="search", operation=Operation.HARVEST)
        spec = s.planner.compile(trigger).spec
        assert spec is not None
        assert spec.window.initial
        assert s.db.read(lambda tx: window_wanted(tx, trigger, spec, NOW)) is None


def test_raising_the_revision_reads_every_number_again() -> None:
    numbers = Numbers(*some(1, 2, 3))
    with site(script=numbers) as s:
        s.load(built(RISING_IDS))
        harvest(s)
        s.load(built(RISING_IDS | {"cursor": {"type": "ID", "revision": 2}, "/version": "2"}))
        harvest(s)
        assert "low=" not in s.transport.sent[-1][1].url
        assert sorted(s.rows("SELECT normalized_numeric FROM ing_cursor")) == [(3,), (3,)]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    nights=st.lists(st.lists(st.integers(0, 2), max_size=9), min_size=1, max_size=4),
    size=st.integers(1, 4),
    depth=st.none() | st.integers(4, 6),
    falling=st.booleans(),
    by_id=st.booleans(),
    told_total=st.booleans(),
)
def test_after_every_night_all_is_there_and_the_mark_right_or_the_harvest_says_no(
    nights: list[list[int]], size: int, depth: int | None, falling: bool, by_id: bool, told_total: bool
) -> None:
    """Gaps, ties and caps in any order: what ended well has everything, what did not has moved nothing."""
    numbers = Numbers()
    numbers.told_total = told_total
    tree = falling_ids() if falling else RISING_IDS
    if not by_id:
        tree = BY_NUMBER | (FALLING if falling else {})
    if depth is not None:
        numbers.reach = depth
        tree |= {"limits.maxDepth": depth}
    with site(script=numbers) as s:
        s.load(built(tree | {"pagination.pageSize": size}))
        at = last = 0
        for steps in nights:
            for step in steps:
                at += step + by_id
                numbers.items.append((str(at) if by_id else str(len(numbers.items) + 1), at))
            marked = s.rows("SELECT normalized_numeric FROM ing_cursor")
            harvest(s)
            if latest_end(s) == ("SUCCEEDED", "i_done"):
                last = at if numbers.items else 0
                assert sorted(s.landed) == sorted(one for one, _ in numbers.items)
                assert s.rows("SELECT normalized_numeric FROM ing_cursor") == ([(last,)] if numbers.items else [])
            else:
                assert depth is not None
                assert s.rows("SELECT normalized_numeric FROM ing_cursor") == marked
