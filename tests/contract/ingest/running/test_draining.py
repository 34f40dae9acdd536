"""A trigger is worked on until it is done, and what is left of it is named."""

from typing import Any

import pytest

from patra.ingest.execution.progress import Progress
from patra.ingest.execution.run_to_completion import Drain, Drained
from patra.ingest.planning.operations import lift_breaker
from patra.ingest.planning.trigger import Trigger
from patra.ingest.vocabulary.codes import Operation
from patra.kernel.clock import HOUR, MINUTE, SystemClock
from patra.kernel.db import Database
from tests.contract.ingest.running.world import T0, T1, World, pack, world
from tests.support.hostile_provider import Habits, Reply, crowded

SPREAD = crowded(80, T0, T1, crowd=False)
REAL = SystemClock()


def wanted(**said: Any) -> Trigger:
    plain: dict[str, Any] = {
        "source": "hostile",
        "endpoint": "search",
        "operation": Operation.HARVEST,
        "since": T0,
        "until": T1,
    }
    return Trigger(**(plain | said))


def drained(w: World, trigger: Trigger | None = None, shown: list[Progress] | None = None, **how: Any) -> Drained:
    seen = [] if shown is None else shown
    return Drain(w.db, w.services, options=w.options, **how).run(trigger or wanted(), seen.append)


def test_a_trigger_is_drained_and_a_second_time_there_is_nothing_to_do(database: Database) -> None:
    with world(database, SPREAD, Habits(seed=5, truncates=30), clock=REAL) as w:
        w.load(pack(w.url, "OFFSET"))
        shown: list[Progress] = []
        done = drained(w, shown=shown)
        assert done.left == ()
        assert not done.refused
        assert w.landed() == w.provider.truth
        assert w.watermark() == T1
        last = done.progress
        assert shown[-1] == last
        assert (last.done, last.windows, last.failed, last.waiting) == (4, 4, 0, 0)
        assert last.inserted == len(SPREAD)
        assert last.requests == len(w.provider.asked)
        asked = len(w.provider.asked)
        again = drained(w)
        assert again.left == ()
        assert again.progress.inserted == 0
        assert len(w.provider.asked) == asked


def test_windows_that_are_too_deep_are_cut_on_the_way(database: Database) -> None:
    with world(database, crowded(400, T0, T1), Habits(depth=60), clock=REAL) as w:
        w.load(pack(w.url, "OFFSET", limits={"maxDepth": 60}))
        assert drained(w).left == ()
        assert w.landed() == w.provider.truth


def test_the_tasks_of_others_are_left_alone_and_do_not_count(database: Database) -> None:
    with world(database, SPREAD, clock=REAL) as w:
        w.load(pack(w.url, "OFFSET"))
        w.trigger(Operation.BACKFILL, since=T0 - 24 * HOUR, until=T0, activity="history")
        done = drained(w)
        assert done.left == ()
        states = w.rows("SELECT operation_code, status_code, count(*) FROM ing_task GROUP BY 1, 2 ORDER BY 1")
        assert states == [("BACKFILL", "QUEUED", 2), ("HARVEST", "SUCCEEDED", 4)]


def test_a_window_that_failed_is_named_and_tried_again_by_the_next_call(database: Database) -> None:
    with world(database, SPREAD, clock=REAL) as w:
        w.load(pack(w.url, "PAGE"))
        serve = w.provider._served
        bad = "2026-03-01T12:00:00Z"
        w.provider._served = lambda m, p, q, b: (  # type: ignore[method-assign]
            Reply(status=400, body=b"no such field", kind="text/plain") if q.get("from") == bad else serve(m, p, q, b)
        )
        done = drained(w)
        assert [(one.status, one.part) for one in done.left] == [("FAILED", f"{bad} … 2026-03-02T00:00:00Z")]
        assert "400" in done.left[0].why or "no such field" in done.left[0].why
        assert done.left[0].advice
        assert done.progress.failed == 1
        w.provider._served = serve  # type: ignore[method-assign]
        asked = len(w.provider.asked)
        done = drained(w)
        assert done.left == ()
        assert done.progress.failed == 0
        assert w.landed() == w.provider.truth
        assert all("from=2026-03-01T12" in one.path for one in w.provider.asked[asked:])


def test_what_is_left_is_named_although_another_source_has_read_the_same_window(database: Database) -> None:
    with world(database, SPREAD, clock=REAL) as w:
        w.load(pack(w.url, "PAGE") | {"source": "other"})
        w.load(pack(w.url, "PAGE"))
        assert drained(w, wanted(source="other")).left == ()
        w.provider._served = lambda *_: Reply(status=400, body=b"no", kind="text/plain")  # type: ignore[method-assign]
        done = drained(w)
        assert [one.status for one in done.left] == ["FAILED"] * 4
        assert done.progress.done == 0


def test_a_backfill_that_goes_by_the_clock_goes_on_when_the_same_is_said_later(database: Database) -> None:
    with world(database, SPREAD, clock=REAL) as w:
        w.load(pack(w.url, "PAGE"))
        serve = w.provider._served
        bad = "2026-03-01T12:00:00Z"
        w.provider._served = lambda m, p, q, b: (  # type: ignore[method-assign]
            Reply(status=400, body=b"no such field", kind="text/plain") if q.get("from") == bad else serve(m, p, q, b)
        )
        said = ("P2D", "2026-03-03")
        first = drained(w, wanted(operation=Operation.BACKFILL, said=said))
        assert len(first.left) == 1
        w.provider._served = serve  # type: ignore[method-assign]
        asked = len(w.provider.asked)
        later = drained(w, wanted(operation=Operation.BACKFILL, since=T0 + 20 * MINUTE, said=said))
        assert later.left == ()
        assert w.landed() == w.provider.truth
        assert {one.path for one in w.provider.asked[asked:] if one.path.count("2026-03-01T12") == 0} == set()


def test_a_halt_ends_it_and_it_says_how_to_lift_it(database: Database) -> None:
    with world(database, SPREAD, clock=REAL) as w:
        w.load(pack(w.url, "OFFSET"))
        serve = w.provider._served
        w.provider._served = lambda *_: Reply(status=401, body=b"who are you", kind="text/plain")  # type: ignore[method-assign]
        done = drained(w, executors=1)
        assert {one.status for one in done.left} == {"FAILED", "QUEUED"}
        assert all("`patra ingest lift hostile search`" in one.advice for one in done.left)
        refused = drained(w)
        assert refused.refused
        assert refused.planned.plan_id is None
        w.provider._served = serve  # type: ignore[method-assign]
        w.db.run(lambda tx: lift_breaker(tx, "hostile", "search", why="renewed"))
        assert drained(w).left == ()
        assert w.landed() == w.provider.truth


def test_who_interrupts_it_can_go_on_later(database: Database) -> None:
    with world(database, SPREAD, Habits(latency=0.01), clock=REAL) as w:
        w.load(pack(w.url, "OFFSET", pagination={"pageSize": 5}))

        def enough(progress: Progress) -> None:
            if progress.pages >= 1 and not told:
                told.append(progress)
                raise KeyboardInterrupt

        told: list[Progress] = []
        done = Drain(w.db, w.services, options=w.options, executors=1).run(wanted(), enough)
        assert done.interrupted or not done.left  # a quick machine may be done before it looks
        assert drained(w).left == ()
        assert w.landed() == w.provider.truth
        paths = [one.path for one in w.provider.asked]
        assert len(paths) == len(set(paths))


def test_what_may_not_be_taken_for_long_is_not_waited_for(database: Database) -> None:
    with world(database, SPREAD, clock=REAL) as w:
        w.load(pack(w.url, "OFFSET"))
        headers = {"Retry-After": "7200"}
        w.provider._served = lambda *_: Reply(status=503, body=b"", kind="text/plain", headers=headers)  # type: ignore[method-assign]
        done = drained(w, executors=1, patience=10 * MINUTE)
        assert {one.status for one in done.left} == {"QUEUED"}
        assert all("waits until" in one.why for one in done.left)


@pytest.mark.parametrize(
    "said",
    [{"endpoint": "nowhere"}, {"source": "nobody"}, {"since": T1, "until": T0}],
    ids=["endpoint", "source", "window"],
)
def test_what_cannot_be_planned_is_refused(database: Database, said: dict[str, Any]) -> None:
    with world(database, [], clock=REAL) as w:
        w.load(pack(w.url, "OFFSET"))
        done = drained(w, wanted(**said))
        assert done.refused
        assert done.planned.detail
        assert w.provider.asked == []


def test_a_refresh_by_ids_is_drained(database: Database) -> None:
    with world(database, SPREAD[:30], clock=REAL) as w:
        w.load(pack(w.url, "OFFSET"))
        drained(w)
        ids = tuple(sorted(w.landed())[:25])
        trigger = wanted(operation=Operation.UPDATE, since=None, until=None, ids=ids, activity="again")
        done = drained(w, trigger)
        assert done.left == ()
        assert done.progress.skipped == 25
