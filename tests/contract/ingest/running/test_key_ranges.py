"""The smallest window holds more than the provider pages: it is read in ranges of a key, and nothing is lost (I4)."""

from typing import Any

from patra.kernel.clock import HOUR
from patra.kernel.db import Database
from tests.contract.ingest.running.test_completeness import ledger
from tests.contract.ingest.running.world import T0, T1, World, pack, world
from tests.support.hostile_provider import Habits, Item, Reply

MINUTE = T0 + 10 * HOUR
DENSE = [Item(MINUTE + n, f"d{n:04}") for n in range(60)]
BEYOND = "the ranges of the key have 31 records together, and the window has 60"


def by_key(w: World, last: int = 63, *, two_phase: bool = False, **planning: Any) -> dict[str, Any]:
    made = pack(
        w.url,
        "OFFSET",
        two_phase=two_phase,
        window={"align": "day", "minWindow": "P2D", "maxWindow": "P2D"},
        limits={"maxDepth": 20},
        pagination={"pageSize": 10},
        planning={"keyBounds": {"first": 0, "last": last}, **planning},
    )
    made["endpoints"]["search"]["http"]["queryTemplate"] |= {"low": "${key.from}", "high": "${key.to}"}
    return made


def test_a_window_that_is_too_deep_is_read_in_ranges_of_its_key(database: Database) -> None:
    with world(database, DENSE, Habits(depth=20)) as w:
        w.load(by_key(w, two_phase=True))
        w.trigger()
        w.drain()
        assert w.landed() == w.provider.truth
        assert w.watermark() == T1
        assert "FAILED i_too_deep_at_smallest" not in w.tasks()
        assert counted(w) == ("COMPLETE", 60, 60, 0)
        assert all(one.status == 200 for one in w.provider.asked)


def test_a_range_without_content_promises_nothing(database: Database) -> None:
    with world(database, DENSE, Habits(depth=20)) as w:
        w.load(by_key(w, last=127))
        serve = w.provider._served

        def served(method: str, path: str, query: dict[str, str], body: bytes) -> Reply:
            if int(query.get("low") or 0) >= 64:
                return Reply(status=204, body=b"", kind="application/json")
            return serve(method, path, query, body)

        w.provider._served = served  # type: ignore[method-assign]
        w.trigger()
        w.drain()
        assert w.landed() == w.provider.truth
        assert counted(w) == ("COMPLETE", 60, 60, 0)


def counted(w: World) -> tuple[Any, ...]:
    [row] = w.rows(
        "SELECT status_code, promised_last, positions, missing FROM ing_window_ledger"
        " WHERE leg_code = 'LIST' AND promised_last > 0"
    )
    return tuple(row)


def test_ranges_go_on_where_an_earlier_run_stopped(database: Database) -> None:
    with world(database, DENSE, Habits(depth=20)) as w:
        w.load(by_key(w, maxRequests=3))
        w.trigger()
        w.drain()
        assert w.landed() == w.provider.truth
        assert w.one("SELECT count(*) FROM ing_task_run WHERE reason_code = 'i_budget_spent'") > 2
        assert counted(w) == ("COMPLETE", 60, 60, 0)
        assert ledger(w)["inserted"] == 60


def test_a_key_that_does_not_reach_every_record_leaves_the_window_open(database: Database) -> None:
    with world(database, DENSE, Habits(depth=20)) as w:
        w.load(by_key(w, last=30))
        w.trigger()
        w.drain()
        assert w.tasks()["FAILED i_incomplete"] == 1
        assert w.watermark() == T0
        assert BEYOND in ledger(w, status="INCOMPLETE")["detail"]
