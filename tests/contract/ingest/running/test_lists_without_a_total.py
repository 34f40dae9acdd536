"""Lists by page and offset that no total counts: what else shows that a page was not the last, or that the list moved."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from patra.ingest.extraction import completeness
from patra.ingest.operations.coverage import coverage
from patra.kernel.db import Database
from tests.contract.ingest.running.world import T0, T1, World, pack, world
from tests.support.hostile_provider import Habits, Reply, crowded

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


def place_of(query: dict[str, str]) -> int:
    """Where in the list a request asks."""
    if "offset" in query:
        return int(query["offset"])
    if "page" in query:
        return (int(query["page"]) - 1) * int(query["size"])
    return int(query.get("token", query.get("cursor", "0")).rpartition(".")[2] or 0) if "." in str(query) else 0


def with_items(reply: Reply, change: Callable[[list[Any]], list[Any]], **more: Any) -> Reply:
    tree = json.loads(reply.body)
    body = json.dumps(tree | {"items": change(tree["items"])} | more).encode()
    return Reply(status=200, body=body, kind=reply.kind, headers=reply.headers)


def test_a_short_page_in_the_midst_ends_no_list_by_offset(database: Database) -> None:
    def answer(query: dict[str, str], serve: Serve) -> Reply:
        return with_items(serve(query), lambda items: items[:-3] if place_of(query) == 20 else items)

    with world(database, SPREAD) as w:
        served_by(w, answer)
        assert run(w, "OFFSET") == [("SUCCEEDED", "i_done")]
        assert landed(w) == set(w.provider.truth)


def test_a_short_page_in_the_midst_of_a_list_by_page_leaves_the_window_open(database: Database) -> None:
    def answer(query: dict[str, str], serve: Serve) -> Reply:
        return with_items(serve(query), lambda items: items[:-3] if place_of(query) == 20 else items)

    with world(database, SPREAD) as w:
        served_by(w, answer)
        assert run(w, "PAGE") == [("FAILED", "i_incomplete")]
        assert len(landed(w)) == 37
        assert "a page of 7 records, where others held 10" in w.one("SELECT detail FROM ing_window_ledger")
        assert w.watermark() is None or w.watermark() < T1


@pytest.mark.parametrize("lasts", [False, True])
@pytest.mark.parametrize("kind", ["OFFSET", "PAGE"])
def test_an_empty_page_in_the_midst_is_no_end(database: Database, kind: str, lasts: bool) -> None:
    """A 200 with an error and an empty list looks so; for good, the window stays open."""
    answered: list[int] = []

    def answer(query: dict[str, str], serve: Serve) -> Reply:
        if place_of(query) != 20 or (answered and not lasts):
            return serve(query)
        answered.append(20)
        return Reply(status=200, body=b'{"error": "try again", "items": []}', kind="application/json")

    with world(database, SPREAD) as w:
        served_by(w, answer)
        tasks = run(w, kind)
        assert tasks == ([("FAILED", "i_incomplete")] if lasts else [("SUCCEEDED", "i_done")])
        assert len(landed(w)) == (30 if lasts else 40)


@pytest.mark.parametrize("kind", ["TOKEN", "URL"])
def test_an_empty_answer_without_a_link_is_no_end_of_a_chain_unless_it_is_repeated(
    database: Database, kind: str
) -> None:
    asked: list[int] = []

    def answer(query: dict[str, str], serve: Serve) -> Reply:
        asked.append(1)
        if len(asked) == 3:
            return Reply(status=200, body=b'{"error": "try again", "items": []}', kind="application/json")
        return serve(query)

    with world(database, SPREAD) as w:
        served_by(w, answer)
        assert run(w, kind) == [("SUCCEEDED", "i_done")]
        assert landed(w) == set(w.provider.truth)


def skips(query: dict[str, str], serve: Serve) -> Reply:
    """One link leads past the page behind it."""
    reply = serve(query)
    tree = json.loads(reply.body)
    following = (tree.get("next") or "").replace(".20", ".30")
    return with_items(reply, lambda items: items, next=following or None)


@pytest.mark.parametrize("kind", ["TOKEN", "URL"])
def test_a_link_that_skips_a_page_is_found_where_two_readings_must_agree(database: Database, kind: str) -> None:
    with world(database, SPREAD) as w:
        served_by(w, skips)
        assert run(w, kind, verify="TWICE") == [("FAILED", "i_incomplete")]
        assert landed(w) == set(w.provider.truth), "pages of another size are cut elsewhere"
        assert w.one("SELECT detail FROM ing_window_ledger") == "no two of 4 readings gave the same records"


@pytest.mark.parametrize("kind", ["OFFSET", "PAGE", "TOKEN", "URL", "LINK"])
def test_two_readings_that_agree_are_enough(database: Database, kind: str) -> None:
    with world(database, SPREAD) as w:
        assert run(w, kind, verify="TWICE") == [("SUCCEEDED", "i_done")]
        assert landed(w) == set(w.provider.truth)
        assert w.one("SELECT readings FROM ing_window_ledger") == 2


def test_a_list_whose_total_counts_is_not_read_twice(database: Database) -> None:
    with world(database, SPREAD) as w:
        assert run(w, "OFFSET", "$.total", verify="TWICE") == [("SUCCEEDED", "i_done")]
        assert w.one("SELECT readings FROM ing_window_ledger") == 1


def test_two_readings_agree_also_where_a_run_ends_between_two_pages(database: Database) -> None:
    """The checkpoint holds what the readings brought, not the process."""
    with world(database, SPREAD) as w:
        w.provider.habits = Habits(seed=4, fails=400)
        assert run(w, "TOKEN", verify="TWICE") == [("SUCCEEDED", "i_done")]
        assert w.one("SELECT count(*) FROM ing_task_run") > 1
        assert landed(w) == set(w.provider.truth)


@pytest.mark.parametrize(
    ("pagination", "total_path", "proof"),
    [
        ({}, None, "NONE"),
        ({"verify": "TWICE"}, None, "READINGS"),
        ({}, "$.total", "TOTAL"),
        ({"total": "ESTIMATE", "totalTolerance": 0.1}, "$.total", "ESTIMATE"),
        ({"total": "UPPER_BOUND"}, "$.total", "NONE"),
    ],
)
def test_the_coverage_says_what_shows_that_nothing_is_missing(
    database: Database, pagination: dict[str, Any], total_path: str | None, proof: str
) -> None:
    with world(database, SPREAD) as w:
        assert run(w, "OFFSET", total_path, **pagination) == [("SUCCEEDED", "i_done")]
        found = database.read(lambda tx: coverage(tx, "hostile"))
        assert [one.proof for one in found.windows] == [proof]
        assert found.sum.unproven == database.read(lambda tx: coverage(tx, "hostile", limit=1)).sum.unproven
        assert found.sum.unproven == (proof == "NONE")


def test_nulls_in_a_list_of_ids_are_told_with_their_window(database: Database) -> None:
    with world(database, SPREAD) as w:
        tree = pack(w.url, "OFFSET", two_phase=True, **LIST)
        w.load(tree)
        served_by(w, lambda query, serve: with_items(serve(query), lambda items: [None, *items[1:]][: len(items)]))
        serve = w.provider._served
        plain = type(w.provider)._served
        w.provider._served = lambda m, p, q, b: (  # type: ignore[method-assign]
            plain(w.provider, m, p, q, b) if p == "/details" else serve(m, p, q, b)
        )
        w.trigger()
        w.drain()
        [one] = [one for one in database.read(lambda tx: coverage(tx, "hostile")).windows if one.leg == "LIST"]
        assert (one.status, one.null_items, len(landed(w))) == ("COMPLETE", 4, 36)
        assert one.detail == "4 of 40 places of the list hold null instead of a record or its id"


@pytest.mark.parametrize(
    ("total_path", "pagination", "pages", "task"),
    [
        (None, {"maxPage": 30, "bridgeToTime": False}, 30, ("FAILED", "i_max_page")),
        ("$.total", {}, 19, ("FAILED", "i_loop")),  # twice the 40 that are promised, and ten pages more
        (None, {}, 25, ("FAILED", "i_loop")),
    ],
)
def test_a_provider_that_invents_records_for_ever_ends_loudly(
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    total_path: str | None,
    pagination: dict[str, Any],
    pages: int,
    task: tuple[str, str],
) -> None:
    monkeypatch.setattr(completeness, "MAX_PAGES_UNCOUNTED", 25)
    asked: list[int] = []

    def answer(query: dict[str, str], serve: Serve) -> Reply:
        asked.append(1)
        made = [{"id": f"x{len(asked)}-{n}", "updated": "2026-03-01T05:00:00Z", "title": "t"} for n in range(10)]
        return with_items(serve(query), lambda _: made, next=f"c1.{len(asked)}")

    with world(database, SPREAD) as w:
        served_by(w, answer)
        assert run(w, "TOKEN", total_path, **pagination) == [task]
        assert len(asked) == pages
        assert w.watermark() is None or w.watermark() < T1
