"""A 200 with an error body loses no page, also where the pack takes an answer without its list for an empty page."""

from typing import Any

import pytest

from patra.ingest.operations.replay import replay
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.db import Database
from tests.contract.ingest.running.world import T0, T1, World, pack, world
from tests.support.hostile_provider import Habits, Reply, crowded

SPREAD = crowded(200, T0, T1, crowd=False)
KINDS = ["OFFSET", "PAGE", "TOKEN", "URL", "LINK"]


def lenient(url: str, kind: str, **more: Any) -> dict[str, Any]:
    """A pack that takes a missing list for an empty page, and one window for all."""
    tree = pack(url, kind, response={"itemsMissing": "EMPTY"}, window={"maxWindow": "P2D"}, **more)
    tree["endpoints"]["details"]["response"]["itemsMissing"] = "EMPTY"
    return tree


def broken_from(w: World, page: int, body: bytes = b'{"error": "try again later"}', status: int = 200) -> None:
    """From its so many-th request on, the provider answers with nothing but this."""
    serve, asked = w.provider._served, iter(range(1000))
    reply = Reply(status=status, body=body, kind="application/json")
    w.provider._served = lambda *a: reply if next(asked) >= page else serve(*a)  # type: ignore[method-assign]


def hiccup(w: World, when: set[int], body: bytes) -> None:
    """Those requests alone are answered with this."""
    serve, asked = w.provider._served, iter(range(1000))
    reply = Reply(status=200, body=body, kind="application/json")
    w.provider._served = lambda *a: reply if next(asked) in when else serve(*a)  # type: ignore[method-assign]


@pytest.mark.parametrize("two_phase", [False, True])
@pytest.mark.parametrize("xml", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_an_error_in_place_of_a_list_is_tried_again(database: Database, kind: str, xml: bool, two_phase: bool) -> None:
    with world(database, SPREAD, Habits(seed=5, errors=200)) as w:
        w.load(lenient(w.url, kind, xml=xml, two_phase=two_phase))
        w.trigger()
        w.drain()
        assert w.landed() == w.provider.truth
        assert w.watermark() == T1
        assert w.rows("SELECT * FROM ing_quarantine") == []


@pytest.mark.parametrize("kind", [*KINDS, "TIME"])  # by time there is no total: the page before speaks against it
def test_an_error_that_stays_is_no_end_of_the_list(database: Database, kind: str) -> None:
    with world(database, SPREAD) as w:
        w.load(lenient(w.url, kind))
        w.trigger()
        broken_from(w, 1)
        w.drain()
        assert list(w.tasks()) == ["FAILED i_gave_up"]
        assert w.watermark() != T1
        error = w.one("SELECT error FROM ing_task_run WHERE status_code = 'FAILED'")
        assert "i_no_list: the answer has no $.items" in error
        assert "try again later" in error


def test_no_content_in_the_midst_of_a_list_is_no_end(database: Database) -> None:
    with world(database, SPREAD) as w:
        w.load(lenient(w.url, "TOKEN"))
        w.trigger()
        broken_from(w, 1, b"", 204)
        w.drain()
        assert list(w.tasks()) == ["FAILED i_gave_up"]


def test_a_result_of_nothing_may_come_without_a_list(database: Database) -> None:
    with world(database, SPREAD) as w:
        w.load(lenient(w.url, "OFFSET"))
        w.trigger()
        broken_from(w, 0, b'{"total": 0, "offset": 0}')  # Semantic Scholar
        w.drain()
        assert list(w.tasks()) == ["SUCCEEDED i_done"]
        assert w.watermark() == T1


def test_a_replay_judges_an_answer_without_a_list_by_what_was_known_then(database: Database) -> None:
    with world(database, SPREAD, keep_bodies=True) as w:
        w.load(lenient(w.url, "TOKEN"))
        w.trigger()
        broken_from(w, 1)
        w.drain()
        found = w.rows("SELECT run_id, batch_no FROM ing_task_run_batch WHERE reason_code = 'i_no_list'")
        for kept in (True, False):
            report = replay(w.db, w.services, *found[0], lambda _: True, kept=kept)
            assert report is not None
            assert report.conclusion is RunReason.REPLAY_EQUAL


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("TOKEN", b'{"items": [], "total": 200}'),
        ("TOKEN", b'{"items": [], "next": "x"}'),
        ("URL", b'{"items": [], "total": 0}'),
        ("LINK", b'{"items": []}'),
    ],
)
def test_an_empty_page_is_no_end_of_a_list_while_its_total_promises_more(
    database: Database, kind: str, body: bytes
) -> None:
    with world(database, SPREAD) as w:
        w.load(pack(w.url, kind, window={"maxWindow": "P2D"}))
        w.trigger()
        broken_from(w, 1, body)
        w.drain()
        assert list(w.tasks()) == ["FAILED i_gave_up"]
        assert w.watermark() != T1
        error = w.one("SELECT error FROM ing_task_run WHERE status_code = 'FAILED'")
        assert "i_no_list: the list is empty here, but 25 of 200 records were read" in error


@pytest.mark.parametrize(("kind", "empty_page"), [("TOKEN", "END"), ("TOKEN", "CONTINUE"), ("URL", "PROBE")])
def test_a_list_that_was_empty_for_a_moment_is_read_to_its_end(database: Database, kind: str, empty_page: str) -> None:
    with world(database, SPREAD) as w:
        w.load(pack(w.url, kind, window={"maxWindow": "P2D"}, pagination={"emptyPage": empty_page}))
        w.trigger()
        hiccup(w, {2, 5}, b'{"items": [], "total": 0}')
        w.drain()
        assert w.landed() == w.provider.truth
        assert w.watermark() == T1


def test_an_empty_page_that_is_less_than_a_page_short_of_the_total_is_believed_when_it_comes_twice(
    database: Database,
) -> None:
    """Where the pack declares that totals are not exact; what is missing of an exact one is (ruling I10)."""
    with world(database, SPREAD) as w:
        estimate = {"total": "ESTIMATE", "totalTolerance": 0.2}
        w.load(pack(w.url, "TOKEN", window={"maxWindow": "P2D"}, pagination=estimate))
        w.trigger()
        broken_from(w, 1, b'{"items": [], "total": 30}')
        w.drain()
        assert list(w.tasks()) == ["SUCCEEDED i_done"]
        assert len(w.provider.asked) == 3


def test_a_list_whose_first_page_is_empty_though_it_counts_records_is_not_believed(database: Database) -> None:
    with world(database, SPREAD) as w:
        w.load(pack(w.url, "TOKEN", window={"maxWindow": "P2D"}))
        w.trigger()
        broken_from(w, 0, b'{"items": [], "total": 3}')
        w.drain()
        assert list(w.tasks()) == ["FAILED i_gave_up"]
