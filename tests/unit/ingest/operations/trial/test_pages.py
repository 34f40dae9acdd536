"""A trial follows every kind of paging, says the next place as it is, and says what a harvest would lose."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from patra.ingest.fetching.runtime import Runtime
from patra.ingest.http.client import Transport
from patra.ingest.operations.trial.request import Wanted
from patra.ingest.operations.try_source import Tried, try_endpoint
from patra.ingest.packs.bundled import parse_pack
from patra.ingest.ratelimit.limiter import LocalGate
from patra.kernel.testing import ManualClock
from tests.contract.ingest.running.world import NOW, T0, T1, pack
from tests.support.hostile_provider import Provider, Reply, crowded, serving

ITEMS = crowded(60, T0, T1, crowd=False)
Change = Callable[[dict[str, str], dict[str, Any]], None]


def attempt(
    kind: str = "OFFSET", *, change: Change | None = None, provider: Provider | None = None, pages: int = 3, **more: Any
) -> Tried:
    """Try the list of a provider whose answers go through `change(query, body)` first."""
    provider = provider or Provider(ITEMS)
    serve = provider._served

    def served(method: str, path: str, query: dict[str, str], body: bytes) -> Reply:
        reply = serve(method, path, query, body)
        if change is None or path == "/details":
            return reply
        tree = json.loads(reply.body)
        change(query, tree)
        return Reply(status=200, body=json.dumps(tree).encode(), kind=reply.kind, headers=reply.headers)

    provider._served = served  # type: ignore[method-assign]
    clock, transport = ManualClock(NOW), Transport()
    probe = more.pop("probe_bounds", False)
    with serving(provider) as url:
        text = json.dumps(pack(url, kind, **({"window": {"bounds": "exclusive", "precision": "millisecond"}} | more)))
        loaded = parse_pack(text, "mine.yaml")
        services = Runtime(clock=clock, gate=LocalGate(clock), transport=transport)
        wanted = Wanted(endpoint="search", since=T0, until=T1, pages=pages, probe_bounds=probe)
        found = try_endpoint(loaded, wanted, services)
        transport.close()
    assert isinstance(found, Tried), found
    return found


@pytest.mark.parametrize(
    ("kind", "places"),
    [
        ("OFFSET", ["offset 25", "offset 50", "none (the end: fewer records than the page size)"]),
        ("PAGE", ["page 2", "page 3", "none (the end: fewer records than the page size)"]),
        ("TOKEN", ["token c1.25", "token c1.50", "none (the end: no next token or URL)"]),
    ],
)
def test_the_next_place_is_said_as_a_harvest_would_go_there(kind: str, places: list[str]) -> None:
    found = attempt(kind)
    assert [page.following for page in found.pages] == places
    assert [page.items for page in found.pages] == [25, 25, 10]
    assert (found.following, found.total, found.incomplete, found.notes) == (places[0], 60, "", [])
    assert found.is_good


@pytest.mark.parametrize("kind", ["URL", "LINK"])
def test_a_next_url_is_said_and_followed(kind: str) -> None:
    first, second, third = attempt(kind).pages
    assert first.following == f"URL {second.url}"
    assert second.following == f"URL {third.url}"
    assert third.following == "none (the end: no next token or URL)"


def test_a_list_by_time_goes_on_from_the_newest_record() -> None:
    found = attempt("TIME", pages=5)
    from patra.kernel.clock import format_instant

    assert found.pages[0].following == f"from {format_instant(ITEMS[24].updated)}"
    assert found.pages[-1].following == "none (the end: fewer records than the page size)"
    assert found.is_good


def test_a_walk_ends_where_it_was_told_to() -> None:
    found = attempt("PAGE", pages=2)
    assert [page.following for page in found.pages] == ["page 2", "page 3"]
    assert found.is_good


@pytest.mark.parametrize("kind", ["OFFSET", "TOKEN"])
def test_ids_are_followed_into_the_details(kind: str) -> None:
    found = attempt(kind, two_phase=True)
    assert [page.items for page in found.pages] == [25, 25, 10]
    assert [(page.asked_ids, page.items, page.missing_ids) for page in found.details] == [(20, 20, [])]
    assert found.details[0].method == "POST"
    assert [record["title"] for record in found.records] == [one.title for one in ITEMS[::-1][:3]]


def test_ids_that_the_details_do_not_know_are_named() -> None:
    provider = Provider(ITEMS)
    gone = ITEMS[-2].id
    provider._by_id.pop(gone)
    found = attempt("PAGE", two_phase=True, provider=provider)
    assert found.details[0].missing_ids == [gone]
    [note] = found.notes
    assert note.startswith(f"1 of 20 ids have no record in the details ({gone}): `batching.missingIds` says what ")
    assert note.endswith("now QUARANTINE")


def test_a_lost_next_link_is_said_to_be_incomplete() -> None:
    found = attempt("TOKEN", change=lambda _, tree: tree.update(next=None) if tree["next"] == "c1.50" else None)
    assert [page.items for page in found.pages] == [25, 25]
    assert found.incomplete.startswith("10 missing: 50 of 60 promised positions came; check the path of the next token")
    assert not found.is_good


def test_a_short_page_is_asked_for_again_and_said_to_be_incomplete() -> None:
    found = attempt("PAGE", pages=5, change=lambda query, tree: tree["items"].pop() if query["page"] == "2" else None)
    assert [page.items for page in found.pages] == [25, 24, 10, 0]
    assert found.incomplete.startswith("1 missing: 59 of 60 promised positions came")


def test_a_list_that_turns_in_a_circle_is_said_to() -> None:
    found = attempt("PAGE", change=lambda query, tree: tree.update(items=[{"id": "x", "updated": "2026-03-01"}] * 25))
    assert found.pages[-1].following.startswith("none, and the list cannot be followed: page 2 has the records of")
    assert not found.is_good


def test_null_ids_are_counted_and_said() -> None:
    def change(query: dict[str, str], tree: dict[str, Any]) -> None:
        if query["offset"] == "0":
            tree["items"][3] = tree["items"][4] = None
            tree["items"][5]["id"] = None

    found = attempt("OFFSET", change=change)
    assert (found.pages[0].null_items, found.pages[0].without_id) == (2, 1)
    nulls, without_id = found.notes
    assert nulls.startswith("2 of 60 places of the list are null: they count as walked, and nothing lands for them")
    assert without_id.startswith("1 of 60 items have no id at `response.idPath` ($.id): a harvest sets them aside")
    assert found.incomplete == ""


@pytest.mark.parametrize(
    ("total", "words"),
    [
        (lambda tree: {"value": 60}, "no page has a number at `response.totalPath` ($.total): a harvest of several"),
        (
            lambda tree: len(tree["items"]),
            "the number at `response.totalPath` ($.total) is that of the records on each",
        ),
    ],
)
def test_a_total_that_counts_nothing_is_said(total: Callable[[dict[str, Any]], Any], words: str) -> None:
    found = attempt("TOKEN", change=lambda _, tree: tree.update(total=total(tree)), pages=2)
    [note] = found.notes
    assert note.startswith(words)


def test_null_ids_of_a_search_are_said_before_its_details() -> None:
    def change(_: dict[str, str], tree: dict[str, Any]) -> None:
        tree["items"] = [None if n % 5 == 0 else one for n, one in enumerate(tree["items"])]

    found = attempt("OFFSET", two_phase=True, change=change)
    assert found.notes[0].startswith("12 of 60 places of the list are null")
    assert found.details[0].asked_ids == 20


def test_a_field_that_no_record_has_is_named() -> None:
    fields = {"title": "$.title", "doi": "$.nowhere", "_part": "$.nothing"}
    found = attempt("PAGE", output={"fields": fields})
    assert found.notes == ["1 field is null in all 60 records: `doi`; check the path, unless the provider has none"]
    some = attempt("PAGE", output={"fields": fields}, change=lambda _, tree: tree["items"][7].update(nowhere="10.1/x"))
    assert some.notes == []


def test_a_list_deeper_than_the_provider_pages_is_said_to_be_cut() -> None:
    found = attempt("OFFSET", limits={"maxDepth": 50}, pages=1)
    assert found.notes == ["60 records pass `limits.maxDepth` (50): a harvest cuts the window into smaller ones first"]


def test_an_answer_that_is_refused_ends_the_walk() -> None:
    provider = Provider(ITEMS)
    served = provider._served
    provider._served = lambda *a: (  # type: ignore[method-assign]
        Reply(status=500, body=b"no", kind="text/plain") if a[2].get("page") == "2" else served(*a)
    )
    found = attempt("PAGE", provider=provider)
    assert [page.status for page in found.pages] == [200, 500]
    assert found.pages[1].following == "not known: the answer was not accepted"
    assert not found.is_good
