"""A list that is cut by pages is read to its end, filtered by the plan's window, and moves the watermark (8.2.1)."""

import pytest

from patra.ingest.planning.slicing.slice_spec import decode_slice
from patra.ingest.vocabulary.codes import Dimension
from patra.kernel.clock import DAY, HOUR, MINUTE
from patra.kernel.db import Database
from tests.contract.ingest.running.world import T0, T1, World, pack, world
from tests.support.hostile_provider import crowded

ITEMS = crowded(480, T0, T1, crowd=False)
WHOLE_LIST = {"supportsUpdatedSince": False, "clientFilter": True}
ORDER = {"orderBy": "updated asc", "stable": True, "monotonic": True}


def by_pages(w: World, kind: str = "PAGE", *, planning: dict | None = None, **pagination) -> None:
    tree = pack(
        w.url,
        kind,
        window=WHOLE_LIST,
        ordering=ORDER,
        pagination={"pageSize": 10, **pagination},
        planning=planning or {},
    )
    tree["endpoints"]["search"]["supports"] = ["HARVEST", "UPDATE"]
    query = tree["endpoints"]["search"]["http"]["queryTemplate"]
    del query["from"], query["until"]
    w.load(tree)


def page_bounds(w: World, plan_id: str | None) -> list[tuple[int, int | None]]:
    rows = w.rows("SELECT slice_spec FROM ing_plan_slice WHERE plan_id = :plan ORDER BY slice_id", plan=plan_id)
    pages = [decode_slice(text).bounds.page for (text,) in rows]
    return [(one.from_page, one.to_page) for one in pages if one is not None]


@pytest.mark.parametrize("kind", ["PAGE", "OFFSET"])
def test_a_bound_on_the_pages_of_a_slice_is_no_bound_on_the_list(database: Database, kind: str) -> None:
    with world(database, ITEMS) as w:
        by_pages(w, kind, maxPage=30, **({"base1": True} if kind == "PAGE" else {}))
        w.trigger()
        w.drain()
        assert len(w.landed()) == 480
        assert w.tasks() == {"SUCCEEDED i_done": 2, "PARTIAL i_bridge_to_time": 1}
        assert w.watermark() == T1


def test_a_list_that_may_not_be_cut_stops_loudly_at_its_last_page(database: Database) -> None:
    with world(database, ITEMS) as w:
        by_pages(w, maxPage=30, base1=True, bridgeToTime=False)
        w.trigger()
        w.drain()
        assert w.tasks() == {"FAILED i_max_page": 1}
        assert w.watermark() == T0


def test_auto_cuts_by_pages_where_the_provider_does_not_filter_and_reads_the_list_once(database: Database) -> None:
    with world(database, ITEMS) as w:
        by_pages(w, base1=True)
        w.trigger()
        w.drain()
        assert w.one("SELECT plan_strategy FROM ing_plan") == Dimension.PAGE.value
        assert w.one("SELECT count(*) FROM ing_task_run_batch") == 49  # the last one is empty
        assert len(w.landed()) == 480
        assert w.watermark() == T1


def test_records_after_the_end_that_was_asked_for_are_left_out(database: Database) -> None:
    with world(database, ITEMS) as w:
        by_pages(w, base1=True)
        w.trigger(until=T0 + DAY)
        w.drain()
        assert sorted(w.landed()) == sorted(one.id for one in ITEMS if one.updated < T0 + DAY)
        assert w.watermark() == T0 + DAY
        w.trigger(since=None, until=T0 + DAY + 6 * HOUR)
        w.drain()
        assert sorted(w.landed()) == sorted(one.id for one in ITEMS if one.updated < T0 + DAY + 6 * HOUR)
        assert w.watermark() == T0 + DAY + 6 * HOUR


def test_a_cursor_list_without_a_filter_is_one_slice(database: Database) -> None:
    with world(database, ITEMS) as w:
        by_pages(w, "TOKEN")
        made = w.trigger()
        w.drain()
        assert page_bounds(w, made.plan_id) == [(1, None)]
        assert len(w.landed()) == 480
        assert w.watermark() == T1


def test_the_watermark_waits_for_the_last_page_slice(database: Database) -> None:
    with world(database, ITEMS) as w:
        by_pages(w, base1=True, planning={"pagesPerSlice": 20})
        w.trigger(until=T0 + DAY)
        w.drain()
        made = w.trigger(since=None)
        assert page_bounds(w, made.plan_id) == [(1, 20), (21, 40), (41, 47), (48, None)]
        for _ in range(3):
            w.executor.run_once()
            assert w.watermark() == T0 + DAY
        w.executor.run_once()
        assert w.watermark() == T1


def test_smaller_pages_do_not_end_a_range_of_offsets_early(database: Database) -> None:
    with world(database, ITEMS) as w:
        by_pages(w, "OFFSET", maxPage=8, shortPage="CONTINUE")
        serve = w.provider._served

        def served(method, path, query, body):
            return serve(method, path, {**query, "size": str(min(int(query.get("size", 10)), 4))}, body)

        w.provider._served = served  # type: ignore[method-assign]
        w.trigger()
        w.drain()
        assert len(w.landed()) == 480


@pytest.mark.parametrize(
    ("order", "pages"), [("updated desc", 13), ("relevance", 49), ("updated asc", 49), ("entered desc", 49)]
)
def test_a_list_in_the_order_of_its_watermark_is_read_no_further_than_the_window(
    database: Database, order: str, pages: int
) -> None:
    with world(database, ITEMS) as w:
        window = WHOLE_LIST | ({"watermarkKey": "entered"} if order == "entered desc" else {})
        tree = pack(w.url, "PAGE", window=window, ordering=ORDER | {"orderBy": order}, pagination={"pageSize": 10})
        tree["endpoints"]["search"]["supports"] = ["HARVEST", "UPDATE"]
        query = tree["endpoints"]["search"]["http"]["queryTemplate"]
        del query["from"], query["until"]
        w.load(tree)
        recent = sorted(item.updated for item in ITEMS)[-120:]
        w.trigger(since=recent[0] // MINUTE * MINUTE)
        w.drain()
        assert {item.id for item in ITEMS if item.updated >= recent[0]} <= set(w.landed())
        assert len(w.provider.asked) == pages
        assert {key.split()[0] for key in w.tasks()} == {"SUCCEEDED"}
