"""Lists by page and offset that no total counts: what else shows that a page was not the last, or that the list moved."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from patra.kernel.db import Database
from tests.contract.ingest.running.world import T0, T1, World, pack, world
from tests.support.hostile_provider import Reply, crowded

SPREAD = crowded(40, T0, T1, crowd=False)
LIST = {"pagination": {"pageSize": 10}, "window": {"maxWindow": "P2D"}}

Serve = Callable[[dict[str, str]], Reply]


def served_by(w: World, answer: Callable[[dict[str, str], Serve], Reply]) -> None:
    serve = w.provider._served

    def served(method: str, path: str, query: dict[str, str], body: bytes) -> Reply:
        return answer(query, lambda query: serve(method, path, query, body))

    w.provider._served = served  # type: ignore[method-assign]


def run(w: World, kind: str, total_path: str | None = None, **pagination: Any) -> list[tuple[Any, ...]]:
    tree = pack(w.url, kind, **{**LIST, "pagination": {**LIST["pagination"], **pagination}})
    tree["endpoints"]["search"]["response"]["totalPath"] = total_path
    w.load(tree)
    w.trigger()
    w.drain()
    return w.rows("SELECT status_code, reason_code FROM ing_task")


def landed(w: World) -> set[str]:
    return {one for (one,) in w.rows("SELECT provider_id FROM ing_record")}


def capped(query: dict[str, str], serve: Serve) -> Reply:
    """It gives no more than seven records a page, whatever is asked for."""
    return serve({**query, "size": str(min(int(query["size"]), 7))})


@pytest.mark.parametrize("step", [None, "REQUESTED"])
@pytest.mark.parametrize("kind", ["OFFSET", "PAGE", "TIME"])
def test_a_provider_that_gives_smaller_pages_than_asked_for_is_read_to_its_end(
    database: Database, kind: str, step: str | None
) -> None:
    with world(database, SPREAD) as w:
        served_by(w, capped)
        tasks = run(w, kind, **({"step": step} if step else {}))
        assert landed(w) == set(w.provider.truth)
        assert tasks == [("SUCCEEDED", "i_done")]


@pytest.mark.parametrize("behind", ["refused", "bare", "null", "same"])
@pytest.mark.parametrize("kind", ["OFFSET", "PAGE"])
def test_what_a_provider_answers_behind_its_last_page_ends_a_list_of_short_pages(
    database: Database, kind: str, behind: str
) -> None:
    last: dict[str, Reply] = {}

    def answer(query: dict[str, str], serve: Serve) -> Reply:
        reply = capped(query, serve)
        if json.loads(reply.body)["items"]:
            last[""] = reply
            return reply
        match behind:
            case "refused":
                return Reply(status=404, body=b'{"detail": "Invalid page."}', kind=reply.kind)
            case "bare":
                return Reply(status=200, body=b"{}", kind=reply.kind)
            case "null":
                return Reply(status=200, body=b'{"items": null}', kind=reply.kind)
            case _:
                return last[""]

    with world(database, SPREAD) as w:
        served_by(w, answer)
        tasks = run(w, kind)
        assert landed(w) == set(w.provider.truth)
        assert tasks == [("SUCCEEDED", "i_done")]
        assert w.rows("SELECT kind_code FROM ing_halt") == []
        note = w.one("SELECT detail FROM ing_window_ledger")
        assert note.startswith("the page behind the first 40 records was answered twice") is (behind != "same"), note


def test_a_refusal_within_a_list_of_full_pages_is_no_end(database: Database) -> None:
    def answer(query: dict[str, str], serve: Serve) -> Reply:
        return Reply(status=404, body=b"{}", kind="application/json") if query["page"] == "2" else serve(query)

    with world(database, SPREAD) as w:
        served_by(w, answer)
        assert run(w, "PAGE") == [("FAILED", "i_failed_request")]


@pytest.mark.parametrize("status", [400, 404, 410])
@pytest.mark.parametrize("kind", ["OFFSET", "PAGE"])
def test_one_refusal_behind_a_short_page_is_no_end(database: Database, kind: str, status: int) -> None:
    """A slip of the provider: the same page, asked for once more, has its records."""
    asked: list[str] = []

    def answer(query: dict[str, str], serve: Serve) -> Reply:
        asked.append(query.get("offset", query.get("page", "")))
        if len(asked) == 3:
            return Reply(status=status, body=b"{}", kind="application/json")
        return capped(query, serve)

    with world(database, SPREAD) as w:
        served_by(w, answer)
        assert run(w, kind) == [("SUCCEEDED", "i_done")]
        assert landed(w) == set(w.provider.truth)
        assert asked[2] == asked[3]


def test_two_refusals_that_differ_are_no_end(database: Database) -> None:
    asked: list[str] = []

    def answer(query: dict[str, str], serve: Serve) -> Reply:
        asked.append(query["page"])
        if len(asked) in {3, 4}:
            return Reply(status=404 if len(asked) == 3 else 400, body=b"{}", kind="application/json")
        return capped(query, serve)

    with world(database, SPREAD) as w:
        served_by(w, answer)
        assert run(w, "PAGE") == [("FAILED", "i_failed_request")]


def test_a_refusal_behind_a_full_page_is_no_end_though_an_earlier_one_was_short(database: Database) -> None:
    def answer(query: dict[str, str], serve: Serve) -> Reply:
        if query["offset"] == "17":
            return Reply(status=404, body=b"{}", kind="application/json")
        return capped(query, serve) if query["offset"] == "0" else serve(query)

    with world(database, SPREAD) as w:
        served_by(w, answer)
        assert run(w, "OFFSET") == [("FAILED", "i_failed_request")]


def test_a_total_that_is_no_number_does_not_hide_that_pages_are_smaller(database: Database) -> None:
    def answer(query: dict[str, str], serve: Serve) -> Reply:
        reply = capped(query, serve)
        tree = json.loads(reply.body) | {"total": "40 records"}
        return Reply(status=200, body=json.dumps(tree).encode(), kind=reply.kind)

    with world(database, SPREAD) as w:
        served_by(w, answer)
        assert run(w, "OFFSET", "$.total") == [("FAILED", "i_incomplete")]
        assert landed(w) == set(w.provider.truth)


def test_one_short_page_without_its_total_is_whole_when_nothing_stands_behind_it(database: Database) -> None:
    def answer(query: dict[str, str], serve: Serve) -> Reply:
        reply = serve(query)
        tree = json.loads(reply.body)
        del tree["total"]
        return Reply(status=200, body=json.dumps(tree).encode(), kind=reply.kind)

    with world(database, SPREAD[:6]) as w:
        served_by(w, answer)
        assert run(w, "OFFSET", "$.total") == [("SUCCEEDED", "i_done")]


@pytest.mark.parametrize("kind", ["OFFSET", "PAGE"])
def test_a_list_in_which_a_record_stands_on_two_pages_is_read_again(database: Database, kind: str) -> None:
    """The second page begins with the last record of the first, in the place of another."""
    pages: list[list[Any]] = []

    def answer(query: dict[str, str], serve: Serve) -> Reply:
        reply = serve(query)
        tree = json.loads(reply.body)
        if len(pages) == 1:
            tree["items"][0] = pages[0][-1]
        pages.append(tree["items"])
        return Reply(status=200, body=json.dumps(tree).encode(), kind=reply.kind)

    with world(database, SPREAD) as w:
        served_by(w, answer)
        tasks = run(w, kind)
        assert landed(w) == set(w.provider.truth)
        assert tasks == [("SUCCEEDED", "i_done")]
        assert w.one("SELECT max(readings) FROM ing_window_ledger") == 2


def test_a_list_that_always_repeats_a_record_is_done_when_another_reading_brings_nothing_new(
    database: Database,
) -> None:
    def answer(query: dict[str, str], serve: Serve) -> Reply:
        reply = serve(query)
        tree = json.loads(reply.body)
        if tree["items"] and query["offset"] != "0":
            tree["items"][0] = json.loads(serve({**query, "offset": "0"}).body)["items"][0]
        return Reply(status=200, body=json.dumps(tree).encode(), kind=reply.kind)

    with world(database, SPREAD) as w:
        served_by(w, answer)
        assert run(w, "OFFSET") == [("SUCCEEDED", "i_done")]
        assert w.one("SELECT max(readings) FROM ing_window_ledger") == 2
