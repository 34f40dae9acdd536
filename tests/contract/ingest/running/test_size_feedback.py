"""What a window turned out to hold decides how the next plan is cut (ch. 4.16, 8.3, ruling I3)."""

import msgspec
import pytest

from patra.ingest.vocabulary.codes import Operation
from patra.kernel.clock import HOUR
from patra.kernel.db import Database
from tests.contract.ingest.running.world import T0, T1, World, pack, world
from tests.support.hostile_provider import crowded

ITEMS = crowded(600, T0, T1, crowd=False)


def stats(w: World) -> list[tuple[int, int, int]]:
    return w.rows("SELECT window_from, window_to, total FROM ing_window_stat ORDER BY window_from")


@pytest.mark.parametrize("kind", ["OFFSET", "TOKEN", "TIME"])
def test_every_window_leaves_its_total_for_the_next_plan(database: Database, kind: str) -> None:
    with world(database, ITEMS) as w:
        w.load(pack(w.url, kind, planning={"maxPagesPerSlice": 2}))
        w.trigger()
        w.drain()
        found = stats(w)
        assert [(start, end) for start, end, _ in found] == [
            (T0 + n * 12 * HOUR, T0 + (n + 1) * 12 * HOUR) for n in range(4)
        ]
        for start, end, total in found:
            assert total == sum(start <= one.updated < end for one in ITEMS)
        again = w.trigger(Operation.BACKFILL)
        (estimated, remarks), *_ = w.rows(
            "SELECT total_estimated, record_remarks FROM ing_plan WHERE plan_id = :plan", plan=again.plan_id
        )
        assert estimated == pytest.approx(600, abs=len(again.problems) + again.slices)
        assert msgspec.json.decode(remarks)["totalEstimated"] == estimated
        assert again.slices >= 12  # no more than two pages of 25 records each
        w.drain()
        assert len(w.landed()) == 600


def test_a_window_without_a_total_is_reported_by_what_came(database: Database) -> None:
    with world(database, ITEMS) as w:
        w.load(pack(w.url, "TOKEN", pagination={"total": "NONE"}))
        w.trigger()
        w.drain()
        assert len(w.landed()) == 600, w.tasks()
        assert sum(total for _, _, total in stats(w)) == 600, stats(w)
