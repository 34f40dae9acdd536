"""Entries of several engines in one order, in pages, without secrets; and what candidates stand for."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis.strategies import integers, lists, sampled_from, tuples

from patra.app.story.model import Candidate, Engine, Entry, Related, Shape
from patra.app.story.paragraphs import link
from patra.app.story.search import things
from patra.app.story.timeline import (
    MAX_DETAIL_BYTES,
    Masks,
    detail_shown,
    entry_shown,
    in_order,
    page,
    place_of,
    related_shown,
)


def entry(name: str, at: int = 0, shape: Shape = Shape.RULE, **more: Any) -> Entry:
    fields = {"engine": Engine.BUS, "what": "x", "text": name, **more}
    return Entry(id=name, at=at, shape=shape, **fields)


def test_at_one_instant_what_came_in_goes_before_what_was_decided_written_and_sent() -> None:
    shapes = [Shape.ACT, Shape.OUT, Shape.WRITTEN, Shape.RULE, Shape.IN]
    found = in_order([*(entry(shape.value, shape=shape) for shape in shapes), entry("before", -1, Shape.ACT)])
    assert [one.id for one in found] == ["before", "in", "rule", "written", "out", "act"]


def test_what_two_engines_tell_alike_is_told_once() -> None:
    assert [one.text for one in in_order([entry("a"), entry("a", text="again"), entry("b")])] == ["a", "b"]


@pytest.mark.parametrize("place", ["--5~x", "²~x", "x", "~", "9" * 1000 + "~x"])
def test_a_place_that_is_none_is_before_everything_and_no_bug(place: str) -> None:
    found, more = page([entry("a", 1), entry("b", 2)], 5, place)
    assert ([one.id for one in found], more) == (["a", "b"], None)


@given(lists(tuples(integers(-3, 3), sampled_from(Shape)), max_size=30), integers(1, 7))
def test_pages_tell_every_entry_once_and_in_order(told: list[tuple[int, Shape]], limit: int) -> None:
    entries = in_order(entry(str(n), at, shape) for n, (at, shape) in enumerate(told))
    seen, after = [], ""
    while True:
        shown, following = page(entries, limit, after)
        assert len(shown) <= limit
        seen += shown
        if following is None:
            break
        after = following
    assert seen == entries


def test_a_page_goes_on_by_time_where_the_entry_of_its_place_is_gone() -> None:
    entries = in_order([entry("a", 1), entry("b", 2), entry("c", 3)])
    gone = place_of(entry("gone", 2))
    assert [one.id for one in page(entries, 5, gone)[0]] == ["c"]
    assert [one.id for one in page(entries, 5, "rubbish")[0]] == ["a", "b", "c"]


def test_nothing_secret_or_personal_is_shown() -> None:
    related = [Related(relation="same trace", kind="bus.trace_id", key="ann@example.com")]
    made = entry(
        "e", text="mail of ann@example.com", detail={"password": "hunter2", "url": "https://u:p@h/"}, related=related
    )
    text = msgspec.json.encode(entry_shown(made, Masks())).decode()
    assert [part for part in ("ann@", "hunter2", "u:p@") if part in text] == []
    assert "***" in text


def test_instants_of_rows_are_texts_and_large_details_are_left_out() -> None:
    assert detail_shown({"created_at": 0, "rows": [{"window_to": 1_000_000}], "n": 5}) == {
        "created_at": "1970-01-01T00:00:00Z",
        "rows": [{"window_to": "1970-01-01T00:00:01Z"}],
        "n": 5,
    }
    assert set(detail_shown({"body": "x" * MAX_DETAIL_BYTES})) == {"omitted_bytes"}


def test_related_keys_are_told_once_and_never_empty() -> None:
    one = Related(relation="r", kind="bus.trace_id", key="t")
    assert related_shown([one, one, msgspec.structs.replace(one, key="")], Masks()) == [one]


def test_a_key_is_masked_once_for_all_entries_that_name_it() -> None:
    masks = Masks()
    mine, personal = (Related(relation="r", kind="bus.trace_id", key=key) for key in ("t", "ann@example.com"))
    first, second = (entry_shown(entry(name, related=[mine, personal]), masks) for name in ("a", "b"))
    assert first.related == second.related == [mine, msgspec.structs.replace(personal, key=masks["ann@example.com"])]
    assert first.related[0] is mine
    assert set(masks) == {"t", "ann@example.com"}
    assert "ann" not in masks["ann@example.com"]


def candidate(kind: str, subject: str = "", count: int = 1) -> Candidate:
    return Candidate(engine=Engine.BUS, kind=kind, key="k", label="", count=count, subject=subject)


def test_names_of_one_thing_are_one_candidate_and_keys_of_the_bus_give_way_to_their_owner() -> None:
    trace, correlation = candidate("bus.trace_id", "1", 2), candidate("bus.correlation_id", "2", 5)
    run = candidate("ingest.run", "ingest.run:k")
    assert things([run, trace, correlation]) == [run]
    assert things([trace, correlation]) == [correlation]
    same = [candidate("attribution.eventId", "7"), candidate("attribution.traceKey", "7")]
    assert things(same) == same[:1]
    assert len(things([*same, candidate("attribution.appId", "7,8")])) == 2
    assert things([]) == []


@pytest.mark.parametrize(
    ("anchor", "expected"),
    [
        ("f-3-8-8", "specification/attribution.html#f-3-8-8"),
        ("f-3-8-19", "specification/attribution-facts.html#f-3-8-19"),
        ("i-10-3", "specification/ingest/10-cursors-and-watermarks.html#i-10-3"),
        ("c-5", "specification/event-contracts.html#c-5"),
        ("ruling-f9", "specification/rulings.html#ruling-f9"),
        ("", ""),
    ],
)
def test_a_paragraph_is_linked_by_its_anchor(anchor: str, expected: str) -> None:
    assert link(anchor) == expected
