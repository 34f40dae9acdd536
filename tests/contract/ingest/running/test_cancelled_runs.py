"""A run ends with its task, also where its executor is dead when the task is cancelled (ch. 5.9, 7.9.2)."""

from patra.ingest.landing import store as landing_store
from patra.ingest.planning import operations
from patra.kernel.clock import MINUTE
from patra.kernel.db import Database
from patra.kernel.machine import history
from tests.contract.ingest.running.world import World, pack, world


def runs(w: World) -> list[tuple[str, str | None, bool]]:
    found = w.rows("SELECT status_code, reason_code, finished_at FROM ing_task_run ORDER BY run_id")
    return [(status, code, finished is not None) for status, code, finished in found]


def waiting(w: World) -> bool:
    return w.db.read(lambda tx: landing_store.waiting(tx, w.clock.now()))


def test_a_run_whose_executor_died_before_its_task_was_cancelled_ends_cancelled(database: Database) -> None:
    with world(database, []) as w:
        w.load(pack(w.url))
        plan = w.trigger().plan_id or ""
        taken = w.db.run(lambda tx: landing_store.take(tx, "dead", w.clock.now(), MINUTE, 8))
        assert taken is not None
        w.db.run(lambda tx: operations.cancel_plan(tx, plan, why="enough", now=w.clock.now()))
        assert runs(w) == [("RUNNING", None, False)]
        assert waiting(w), "a process that has nothing else to do looks after it"
        w.executor.run_once()
        assert runs(w) == [("CANCELLED", "i_cancelled", True)]
        assert not waiting(w)
        moves = w.db.read(lambda tx: history(tx, [taken.run_id]))
        assert [(move.was, move.to, move.reason) for move in moves][-1] == ("RUNNING", "CANCELLED", "i_cancelled")


def test_a_run_whose_executor_lives_is_ended_once(database: Database) -> None:
    """Another executor looks after it first: the one that had it finds it ended, and its lease lost."""
    with world(database, []) as w:
        w.load(pack(w.url))
        plan = w.trigger().plan_id or ""
        other, serve = w.new_executor(), w.provider._served

        def served(*given):
            w.db.run(lambda tx: operations.cancel_plan(tx, plan, why="enough", now=w.clock.now()))
            other.run_once()
            return serve(*given)

        w.provider._served = served
        assert w.executor.run_once().fenced == 1
        assert runs(w) == [("CANCELLED", "i_cancelled", True)]
        [(run_id,)] = w.rows("SELECT run_id FROM ing_task_run")
        assert [move.to for move in w.db.read(lambda tx: history(tx, [run_id]))] == ["RUNNING", "CANCELLED"]
