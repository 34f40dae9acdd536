"""Harvests by a key that only grows: an id, or another number that stands for the update time (4.4.3)."""

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patra.ingest.http.client import Outgoing
from patra.ingest.operations.alerting.monitor import Watch, alerts
from patra.ingest.packs.compiler import check_pack
from patra.ingest.planning.store import Q
from patra.kernel.clock import DAY, MINUTE
from patra.kernel.db import Database
from tests.contract.ingest.running.world import T0, T1, World, pack, world
from tests.support.hostile_provider import Item, Provider, Reply
from tests.unit.ingest.packs.effects.observe import Tree, built, checked
from tests.unit.ingest.packs.effects.stand_in import Site, as_json, loaded_tree, site

GROWING = {"orderBy": "item_id desc", "stable": True, "monotonic": True}


def numbered(first: int, last: int, start: int = T0) -> list[Item]:
    """Records with numbers as ids; a later one has a later time."""
    return [Item(start + number * 1_000_000, str(number), f"Title {number}") for number in range(first, last + 1)]


def by_key(w: World, **sections: Any) -> dict[str, Any]:
    """A list without a filter, the largest id first."""
    query = {"size": "${page.size}", "offset": "${page.offset}"}
    more = {"ordering": GROWING, "cursor": {"type": "ID"}, "pagination": {"pageSize": 10}, **sections}
    tree = pack(w.url, "OFFSET", **more)
    tree["endpoints"]["search"]["http"] = {"queryTemplate": query}
    tree["endpoints"]["search"]["supports"] = ["HARVEST"]
    return tree


def add(provider: Provider, items: list[Item]) -> None:
    with provider._lock:
        provider._items = sorted([*provider._items, *items])
        provider._by_id |= {item.id: item for item in items}


def cursor(w: World) -> tuple[Any, ...]:
    columns = "cursor_key, cursor_type_code, cursor_value, normalized_numeric, observed_max_value, normalized_instant"
    return w.rows(f"SELECT {columns} FROM ing_cursor")[0]


def test_a_harvest_by_id_reads_what_is_new_and_stops_at_what_it_knows(database: Database) -> None:
    with world(database, numbered(1, 95)) as w:
        w.load(by_key(w))
        assert w.trigger(since=None, until=None).outcome == "i_planned"
        w.drain()
        assert w.landed() == w.provider.truth
        assert cursor(w) == ("item_id", "ID", "95", 95, "95", None)
        first = len(w.provider.asked)
        add(w.provider, numbered(96, 107))
        w.trigger(since=None, until=None)
        w.drain()
        assert w.landed() == w.provider.truth
        assert cursor(w)[:4] == ("item_id", "ID", "107", 107)
        assert len(w.provider.asked) - first == 3, "two pages with new records, and the one that has none"
        w.trigger(since=None, until=None)
        w.drain()
        assert cursor(w)[3] == 107
        assert w.tasks() == {"SUCCEEDED i_done": 3}


def test_a_list_that_breaks_off_does_not_move_the_key(database: Database) -> None:
    with world(database, numbered(1, 35)) as w:
        w.load(by_key(w, retry={"maxAttempts": 1}, errors={"wrong": {"status": [400], "outcome": "L2"}}))
        serve = w.provider._served
        broken = [True]

        def served(method: str, path: str, query: dict[str, str], body: bytes) -> Reply:
            if broken[0] and query.get("offset") == "20":
                return Reply(status=400, body=b"{}", kind="application/json")
            return serve(method, path, query, body)

        w.provider._served = served  # type: ignore[method-assign]
        w.trigger(since=None, until=None)
        w.drain()
        assert w.rows("SELECT 1 FROM ing_cursor") == [], (
            "20 of 35 landed, the largest first: what lies below is not read"
        )
        broken[0] = False
        w.trigger(since=None, until=None)
        w.drain()
        assert w.landed() == w.provider.truth
        assert cursor(w)[3] == 35


def test_a_failed_list_is_told_until_a_later_one_is_read_and_one_that_is_not_read_lags(database: Database) -> None:
    with world(database, numbered(1, 5)) as w:
        w.load(by_key(w, retry={"maxAttempts": 1}, errors={"wrong": {"status": [400], "outcome": "L2"}}))
        watch = Watch(w.db, w.clock)
        serve = w.provider._served

        def harvested(*, broken: bool) -> list[str]:
            wrong = Reply(status=400, body=b"{}", kind="application/json")
            w.provider._served = lambda *given: wrong if broken else serve(*given)  # type: ignore[method-assign]
            w.trigger(since=None, until=None)
            w.drain()
            return looked()

        def looked(times: int = 3) -> list[str]:
            for _ in range(times):
                watch.run_once()
                w.clock.advance(MINUTE)
            return sorted(one["alert"] for one in alerts(w.db, w.clock.now()) if one["state"] == "FIRING")

        assert harvested(broken=False) == []
        assert "failed" in harvested(broken=True)
        assert len(w.db.read(lambda tx: tx.fetch(Q["watch_failed"], {"limit": 9}))) == 1
        assert harvested(broken=False) == []
        w.clock.advance(30 * DAY)
        assert looked() == [], "nothing is to read it: no schedule, no task that waits"
        w.trigger(since=None, until=None)
        assert "cursor_lag" in looked()
        w.drain()
        assert looked(times=12) == []


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_window_is_refused_and_a_second_harvest_waits_for_the_first(database: Database) -> None:
    with world(database, numbered(1, 5)) as w:
        w.load(by_key(w))
        made = w.trigger(since=T0, until=T1)
        assert (made.outcome, made.detail) == ("i_option_unused", "a harvest by item_id has no from and no to")
        assert w.trigger(since=None, until=None).outcome == "i_planned"
        assert w.trigger(since=None, until=None).outcome == "i_window_covered"


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_two_phases_list_the_new_ids_only(database: Database) -> None:
    with world(database, numbered(1, 25)) as w:
        tree = pack(
            w.url, "OFFSET", two_phase=True, ordering=GROWING, cursor={"type": "ID"}, pagination={"pageSize": 10}
        )
        tree["endpoints"]["search"]["supports"] = ["HARVEST"]
        tree["endpoints"]["search"]["http"] = {
            "queryTemplate": {"size": "${page.size}", "offset": "${page.offset}", "ids": "1"}
        }
        w.load(tree)
        w.trigger(since=None, until=None)
        w.drain()
        assert (w.landed() == w.provider.truth, cursor(w)[3]) == (True, 25)
        add(w.provider, numbered(26, 28))
        bodies: list[bytes] = []
        serve = w.provider._served
        w.provider._served = lambda m, p, q, b: (bodies.append(b), serve(m, p, q, b))[1]  # type: ignore[method-assign]
        w.trigger(since=None, until=None)
        w.drain()
        assert (w.landed() == w.provider.truth, cursor(w)[3]) == (True, 28)
        assert [one for one in bodies if one] == [b"ids=28%2C27%2C26"]


# --- another number than the id, and a provider that filters

SEQUENCE: Tree = {
    "cursor": {"type": "ID", "key": "seq"},
    "ordering": {"orderBy": "seq asc", "stable": True, "monotonic": True},
    "output.fields": {"seq": {"path": "$.title", "apply": ["digits"], "type": "INT"}},
    "http.queryTemplate": {"low": "${key.from}", "high": "999999", "size": "${page.size}", "offset": "${page.offset}"},
    "response": {
        "itemsPath": "$.items", "idPath": "$.id", "updatedAtPath": "", "totalPath": "$.total",
        "updateTime": "NONE", "onEqual": "CONTENT",
    },
    "supports": ["HARVEST"],
}  # fmt: skip


def harvest(s: Site) -> int:
    """One harvest; gives how many requests it took."""
    before = len(s.transport.sent)
    assert s.trigger(since=None, until=None).outcome == "i_planned"
    s.drain()
    return len(s.transport.sent) - before


def test_a_number_stands_for_the_update_time_that_a_source_does_not_have() -> None:
    with site(provider=Provider(numbered(1, 12))) as s:
        s.load(built(SEQUENCE))
        assert harvest(s) == 2
        assert "low=" not in s.transport.sent[0][1].url
        add(s.provider, numbered(13, 14))
        assert harvest(s) == 1
        assert "low=12&" in s.transport.sent[-1][1].url
        assert sorted(map(int, s.landed)) == list(range(1, 15))
        assert s.rows("SELECT cursor_key, normalized_numeric FROM ing_cursor") == [("seq", 14)]


class Numbers:
    """A list of (id, number), filtered by `low` or with the largest number first; the answer of each request."""

    def __init__(self, *items: tuple[str, int]) -> None:
        self.items = list(items)
        self.told_total = True
        self.listed: list[tuple[str, int]] | None = None
        """What the list is, as it stands; else the items in their order."""
        self.reach = 1_000_000
        self.deleted: set[str] = set()
        self.before_page: Callable[[int], None] = lambda _: None
        """Called with the offset of each page before it is answered."""

    def __call__(self, _: int, request: Outgoing) -> Reply | None:
        if request.method == "POST":  # the records of ids
            return None
        query = dict(parse_qsl(urlsplit(request.url).query))
        offset, size = int(query.get("offset", 0)), int(query.get("size", 10))
        self.before_page(offset)
        rising = "low" in query or "up" in query
        every = self.listed or sorted(self.items, key=lambda one: (one[1], int(one[0])), reverse=not rising)
        found = [one for one in every if one[1] >= int(query.get("low") or -1)]
        page = found[offset : min(offset + size, self.reach)]
        shown = [
            {"id": one, "title": f"Title {number}", "gone": one in self.deleted}
            | ({} if one in self.deleted else {"seq": number})
            for one, number in page
        ]
        return as_json({"items": shown} | ({"total": len(found)} if self.told_total else {}))


BY_NUMBER: Tree = {
    "cursor": {"type": "ID", "key": "seq"},
    "ordering": {"orderBy": "seq asc", "stable": True, "monotonic": True},
    "output.fields": {"seq": {"path": "$.seq", "type": "INT"}, "title": "$.title"},
    "http.queryTemplate": {"up": "1", "low": "${key.from}", "size": "${page.size}", "offset": "${page.offset}"},
    "response": {
        "itemsPath": "$.items", "idPath": "$.id", "updatedAtPath": "", "totalPath": "$.total",
        "updateTime": "NONE", "onEqual": "CONTENT",
    },
    "supports": ["HARVEST"],
    "pagination.pageSize": 2,
}  # fmt: skip

FALLING: Tree = {
    "ordering.orderBy": "seq desc",
    "http.queryTemplate": {"size": "${page.size}", "offset": "${page.offset}"},
}


def ended(s: Site) -> list[tuple[str, str]]:
    return s.rows("SELECT status_code, reason_code FROM ing_task ORDER BY task_id")


def mark(s: Site) -> int:
    return s.rows("SELECT normalized_numeric FROM ing_cursor")[0][0]


@pytest.mark.parametrize("given", [{}, FALLING])
def test_a_record_with_the_number_of_one_that_was_read_lands_when_it_comes_later(given: Tree) -> None:
    """A number that is not the id may stand in several records: the later ones have that of the last (I11)."""
    numbers = Numbers(("1", 5), ("2", 6), ("3", 7))
    with site(script=numbers) as s:
        s.load(built(BY_NUMBER | given))
        harvest(s)
        numbers.items += [("4", 7), ("5", 7), ("6", 7)]
        harvest(s)
        assert sorted(s.landed) == ["1", "2", "3", "4", "5", "6"]
        assert (ended(s), mark(s)) == ([("SUCCEEDED", "i_done")] * 2, 7)


def falling_ids() -> Tree:
    """A list by id, the largest first, without a filter."""
    by_id = {"cursor": {"type": "ID"}, "ordering.orderBy": "item_id desc", "output.fields": {"title": "$.title"}}
    return BY_NUMBER | FALLING | by_id


@pytest.mark.parametrize("tree", [BY_NUMBER | FALLING, falling_ids()], ids=["number", "id"])
def test_a_falling_list_that_ends_above_the_mark_is_incomplete_and_moves_nothing(tree: Tree) -> None:
    numbers = Numbers(*((str(number), number) for number in range(1, 6)))
    numbers.told_total = False
    with site(script=numbers) as s:
        s.load(built(tree))
        harvest(s)
        assert (ended(s), mark(s)) == ([("SUCCEEDED", "i_done")], 5)
        numbers.items += [(str(number), number) for number in range(6, 16)]
        numbers.reach = 3  # the list breaks off without a word: 15, 14, 13
        harvest(s)
        assert (ended(s)[1:], mark(s)) == ([("FAILED", "i_incomplete")], 5)
        [(why,)] = s.rows("SELECT detail FROM ing_window_ledger WHERE status_code = 'INCOMPLETE'")
        assert why == "the list ended at key 13 before it came to 5, up to which it was read before"
        numbers.reach = 1_000_000
        harvest(s)
        assert (ended(s)[2:], mark(s)) == ([("SUCCEEDED", "i_done")], 15)
        assert sorted(map(int, s.landed)) == list(range(1, 16))


def test_an_exact_total_shows_that_a_falling_list_is_whole_where_the_last_known_record_is_gone() -> None:
    numbers = Numbers(("1", 1))
    with site(script=numbers) as s:
        s.load(built(falling_ids()))
        harvest(s)
        numbers.items = [("2", 2), ("3", 3), ("4", 4)]
        harvest(s)
        assert (ended(s)[1:], mark(s)) == ([("SUCCEEDED", "i_done")], 4)


@pytest.mark.parametrize(
    ("falling", "query"),
    [
        (False, BY_NUMBER["http.queryTemplate"]),
        (True, FALLING["http.queryTemplate"]),
        (True, FALLING["http.queryTemplate"] | {"after": "${key.from}"}),
    ],
    ids=["rising", "falling", "falling from a key on"],
)
@pytest.mark.parametrize("key", ["seq", "item_id"])
def test_a_list_that_grows_whenever_it_is_read_comes_to_an_end(falling: bool, query: Tree, key: str) -> None:
    """Records that come above what was read skip nothing; where they come at the end, a second reading makes sure."""
    numbers = Numbers(*((str(number), number) for number in range(1, 9)))
    order = {"ordering.orderBy": f"{key} {'desc' if falling else 'asc'}", "http.queryTemplate": query}

    def grow(offset: int) -> None:
        if offset in {2, 6}:
            more = len(numbers.items) + 1
            numbers.items.append((str(more), more))

    with site(script=numbers) as s:
        s.load(built((BY_NUMBER if key == "seq" else falling_ids()) | order))
        numbers.before_page = grow
        requests = harvest(s)
        assert (ended(s), requests) == ([("SUCCEEDED", "i_done")], 6 if falling else 6 + 7)
        numbers.before_page = lambda _: None
        harvest(s)
        assert sorted(map(int, s.landed)) == sorted(number for _, number in numbers.items)
        assert mark(s) == len(numbers.items)


@pytest.mark.parametrize("falling", [False, True])
def test_a_record_that_is_skipped_because_another_left_the_list_is_read(falling: bool) -> None:
    """In a rising list the new one hides the one that left: the total stays, or grows."""
    numbers = Numbers(*((str(number), number) for number in range(1, 9)))
    query = FALLING["http.queryTemplate"] if falling else BY_NUMBER["http.queryTemplate"]
    changed: list[int] = []

    def change(offset: int) -> None:
        if offset == 2 and not changed:
            changed.append(offset)
            numbers.items.remove(("8", 8) if falling else ("1", 1))
            numbers.items += [] if falling else [("9", 9), ("10", 10)]

    with site(script=numbers) as s:
        s.load(
            built(
                falling_ids()
                | {"ordering.orderBy": f"item_id {'desc' if falling else 'asc'}", "http.queryTemplate": query}
            )
        )
        numbers.before_page = change
        harvest(s)
        assert ended(s) == [("SUCCEEDED", "i_done")]
        assert {one for one, _ in numbers.items} <= set(s.landed)


def two_phases(*, falling: bool) -> Tree:
    """Ids, then records; a list that begins again each time, whatever the request says."""
    order = {} if falling else {"ordering.orderBy": "item_id asc", "http.queryTemplate": RISING_UNFILTERED}
    return falling_ids() | {"twoPhase": {"enabled": True, "linkedEndpoint": "details"}} | order


RISING_UNFILTERED = {"up": "1", "after": "${key.from}", "size": "${page.size}", "offset": "${page.offset}"}


@pytest.mark.parametrize("falling", [False, True])
def test_known_ids_of_a_list_of_ids_count_and_tell_their_pages_apart(falling: bool) -> None:
    """Two pages without a new id are two pages, and the records on them are some of the total."""
    numbers = Numbers(*((str(number), number) for number in range(1, 10)))
    with site(script=numbers, provider=Provider(numbered(1, 12))) as s:
        s.load(built(two_phases(falling=falling)))
        harvest(s)
        assert (ended(s), mark(s)) == ([("SUCCEEDED", "i_done")], 9)
        numbers.items += [("10", 10), ("11", 11), ("12", 12)]
        harvest(s)
        assert (ended(s)[1:], mark(s)) == ([("SUCCEEDED", "i_done")], 12)
        assert sorted(map(int, s.landed)) == list(range(1, 13))


def test_a_record_without_its_number_is_set_aside() -> None:
    with site(provider=Provider([*numbered(1, 3), Item(T1, "4", "No number")])) as s:
        s.load(built(SEQUENCE | {"output.fields": {"seq": "$.title"}}))
        harvest(s)
        assert {row[0] for row in s.rows("SELECT reason_code FROM ing_quarantine")} == {"i_field_invalid"}
        assert s.landed == {}
        assert s.rows("SELECT 1 FROM ing_cursor") == []


@pytest.mark.parametrize("number", [2**63, -1, True])
def test_a_number_that_the_mark_cannot_hold_is_set_aside_and_moves_nothing(number: int) -> None:
    numbers = Numbers(("1", 1), ("2", 2))
    with site(script=numbers) as s:
        s.load(built(BY_NUMBER | {"output.fields": {"seq": "$.seq", "title": "$.title"}}))
        numbers.items.append(("3", number))
        harvest(s)
        assert sorted(s.landed) == ["1", "2"]
        [(code, why)] = s.rows("SELECT reason_code, detail FROM ing_quarantine")
        assert code == "i_field_invalid"
        assert "not a whole number from 0 to 9223372036854775807" in why
        assert mark(s) == 2


@pytest.mark.parametrize("given", [{}, FALLING])
def test_a_deleted_record_without_its_number_lands_as_deleted(given: Tree) -> None:
    numbers = Numbers(("1", 1), ("2", 2), ("3", 3))
    response = BY_NUMBER["response"] | {"deletedPath": "$.gone"}
    with site(script=numbers) as s:
        s.load(built(BY_NUMBER | given | {"response": response}))
        harvest(s)
        numbers.deleted = {"2"}
        numbers.items = [("1", 1), ("3", 3), ("2", 4), ("4", 5)]
        harvest(s)
        assert ended(s) == [("SUCCEEDED", "i_done")] * 2
        assert s.rows("SELECT 1 FROM ing_quarantine") == []
        assert {one: gone for one, (_, gone, _) in s.landed.items()} == {"1": 0, "2": 1, "3": 0, "4": 0}
        assert mark(s) == 5


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(nights=st.lists(st.integers(0, 23), min_size=1, max_size=5), size=st.integers(2, 9))
def test_every_record_lands_once_however_many_come_each_night(nights: list[int], size: int) -> None:
    with site(provider=Provider([])) as s:
        falling = {"http.queryTemplate": {"size": "${page.size}", "offset": "${page.offset}"}}
        s.load(
            built(
                falling
                | {"ordering": GROWING, "cursor": {"type": "ID"}, "pagination.pageSize": size, "supports": ["HARVEST"]}
            )
        )
        total = 0
        for count in nights:
            add(s.provider, numbered(total + 1, total + count))
            total += count
            requests = harvest(s)
            assert len(s.landed) == total
            assert requests <= count // size + 2, "no further than the first page without anything new"
        marks = s.rows("SELECT normalized_numeric FROM ing_cursor")
        assert marks == ([(total,)] if total else [])
        assert s.rows("SELECT max(version) FROM ing_cursor")[0][0] == (len([one for one in nights if one]) or None)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cursor.key": "sequence", "ordering.orderBy": "sequence desc"}, "'sequence' is not an output field"),
        ({"ordering.monotonic": False}, "needs one that only grows"),
        ({"ordering.orderBy": "item_id asc"}, "nothing in the request reads key.from"),
        (
            {"twoPhase": {"enabled": True, "linkedEndpoint": "details"}, "cursor.key": "title"},
            "the list gives ids only",
        ),
    ],
)
def test_what_a_harvest_by_key_needs_is_checked(given: Tree, message: str) -> None:
    base = {"ordering": GROWING, "cursor": {"type": "ID"}, "supports": ["HARVEST"]}
    good = [one for one in checked(built(base)) if one[1] == "error"]
    assert good == []
    assert any(message in one[2] for one in checked(built(base | given)) if one[1] == "error")


def test_a_harvest_by_key_needs_no_update_time_and_the_check_says_how() -> None:
    base = {"ordering": GROWING, "cursor": {"type": "ID"}, "supports": ["HARVEST"], "response.updatedAtPath": ""}
    [problem] = [one for one in check_pack(loaded_tree(built(base))) if one.severity == "error"]
    assert "updateTime: NONE and onEqual: CONTENT" in problem.advice
    said = {"response.updateTime": "NONE", "response.onEqual": "CONTENT"}
    assert not [one for one in checked(built(base | said)) if one[1] == "error"]
