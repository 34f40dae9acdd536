"""Answers that look like the end of a list, or like text, and are neither."""

import json
from typing import Any

import pytest

from patra.kernel.db import Database
from tests.contract.ingest.running.test_lists_without_a_total import (
    LIST,
    SPREAD,
    Serve,
    landed,
    place_of,
    run,
    served_by,
    with_items,
)
from tests.contract.ingest.running.world import T0, pack, world
from tests.support.hostile_provider import Reply

KINDS = ["OFFSET", "PAGE", "TOKEN", "URL", "TIME"]


@pytest.mark.parametrize("at", [0, 20])
@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_that_is_only_accepted_is_no_empty_list(database: Database, kind: str, at: int) -> None:
    """202: the provider still works on it, and says so with an empty list."""
    left = [3]

    def answer(query: dict[str, str], serve: Serve) -> Reply:
        if place_of(query) == at and left[0]:
            left[0] -= 1
            return Reply(status=202, body=b'{"status": "pending", "total": 0, "items": []}', kind="application/json")
        return serve(query)

    with world(database, SPREAD) as w:
        served_by(w, answer)
        assert run(w, kind) == [("SUCCEEDED", "i_done")]
        assert landed(w) == set(w.provider.truth)


def test_records_of_an_answer_that_is_only_accepted_land(database: Database) -> None:
    def answer(query: dict[str, str], serve: Serve) -> Reply:
        reply = serve(query)
        return Reply(status=202 if json.loads(reply.body)["items"] else 200, body=reply.body, kind=reply.kind)

    with world(database, SPREAD) as w:
        served_by(w, answer)
        assert run(w, "OFFSET", "$.total") == [("SUCCEEDED", "i_done")]
        assert landed(w) == set(w.provider.truth)


@pytest.mark.parametrize("number", [9, 15, 39])
def test_one_record_with_a_wrong_date_is_no_end_of_a_list_by_time(database: Database, number: int) -> None:
    """The last one of a page, of the list, or one in the midst of a page: there the order is broken, which is told."""
    wrong = f"r{number:06}"

    def change(items: list[Any]) -> list[Any]:
        return [one | {"updated": "2027-01-01T00:00:00Z"} if one["id"] == wrong else one for one in items]

    with world(database, SPREAD) as w:
        served_by(w, lambda query, serve: with_items(serve(query), change))
        [(status, code)] = run(w, "TIME")
        if status == "SUCCEEDED":
            assert landed(w) == set(w.provider.truth)
        else:
            assert code == "i_stuck_instant"
            assert (w.watermark() or 0) <= w.provider.truth[wrong]
        assert (status == "SUCCEEDED") is (number == 39)


@pytest.mark.parametrize("charset", ["undefined", "idna", "unknown-8bit"])
def test_a_charset_that_is_none_costs_one_character(database: Database, charset: str) -> None:
    def answer(query: dict[str, str], serve: Serve) -> Reply:
        body = serve(query).body.replace(b'Title 3"', b'Title \xe9"')
        return Reply(status=200, body=body, kind=f"application/json; charset={charset}")

    with world(database, SPREAD) as w:
        served_by(w, answer)
        assert run(w, "OFFSET", "$.total") == [("SUCCEEDED", "i_done")]
        assert landed(w) == set(w.provider.truth)
        assert w.contents()["r000003"]["fields"]["title"] == "Title \ufffd"


@pytest.mark.parametrize("total", [0, 20])
@pytest.mark.parametrize("kind", ["TOKEN", "URL"])
def test_a_total_that_falls_where_a_link_is_lost_proves_nothing(database: Database, kind: str, total: int) -> None:
    def answer(query: dict[str, str], serve: Serve) -> Reply:
        reply = serve(query)
        return with_items(reply, lambda items: items, next=None, total=total) if place_of(query) == 10 else reply

    with world(database, SPREAD) as w:
        served_by(w, answer)
        assert run(w, kind, "$.total") == [("FAILED", "i_incomplete")]
        assert (w.watermark() or 0) <= T0
        [(missing, why)] = w.rows("SELECT missing, detail FROM ing_window_ledger")
        assert (missing, why) == (20, f"20 positions came; the total was 40, and {total} at the end of the list")


@pytest.mark.parametrize("kind", ["TOKEN", "URL"])
def test_a_list_that_lost_many_records_while_it_was_read_is_whole_by_another_reading(
    database: Database, kind: str
) -> None:
    """The provider dropped half of them behind the first page: the next reading is told so from its beginning."""
    asked: list[int] = []

    def answer(query: dict[str, str], serve: Serve) -> Reply:
        asked.append(place_of(query))
        reply = serve(query)
        link = {"next": None} if place_of(query) == 10 else {}
        return with_items(reply, lambda items: items, total=40 if len(asked) == 1 else 20, **link)

    with world(database, SPREAD) as w:
        served_by(w, answer)
        assert run(w, kind, "$.total") == [("SUCCEEDED", "i_done")]
        assert len(landed(w)) == 20
        assert w.one("SELECT readings FROM ing_window_ledger") == 2


@pytest.mark.parametrize("missing", ["QUARANTINE", "IGNORE"])
@pytest.mark.parametrize(
    "slip", [Reply(status=200, body=b'{"items": []}', kind="application/json"), Reply(status=204, body=b"", kind="")]
)
def test_a_group_of_details_that_was_empty_for_a_moment_lands(database: Database, missing: str, slip: Reply) -> None:
    with world(database, SPREAD) as w:
        tree = pack(w.url, two_phase=True, **LIST)
        tree["endpoints"]["details"]["batching"]["missingIds"] = missing
        w.load(tree)
        serve, slips = w.provider._served, [slip]

        def served(method: str, path: str, query: dict[str, str], body: bytes) -> Reply:
            return slips.pop() if path == "/details" and slips else serve(method, path, query, body)

        w.provider._served = served  # type: ignore[method-assign]
        w.trigger()
        w.drain()
        assert landed(w) == set(w.provider.truth)
        assert w.rows("SELECT gone, quarantined FROM ing_window_ledger WHERE leg_code = 'DETAIL'") == [(0, 0)]
