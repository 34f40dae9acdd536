"""A signal is open until its record was fetched: a plan that is cancelled or fails gives it back, a crash keeps it (6.3.2)."""

import pytest

from patra.ingest.planning import operations, store
from patra.ingest.vocabulary.codes import Operation
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.clock import MINUTE
from patra.kernel.db import Database
from tests.contract.ingest.running.world import T0, T1, World, pack, world
from tests.support.hostile_provider import Reply, crowded

ITEMS = crowded(60, T0, T1, crowd=False)


def raised(w: World) -> list[str]:
    """A harvested store with a signal for each of three records."""
    w.load(pack(w.url, "OFFSET"))
    w.trigger()
    w.drain()
    ids = sorted(w.landed())[:3]
    w.clock.advance(MINUTE)
    now = w.clock.now()
    w.db.run(
        lambda tx: store.raise_signals(tx, "hostile", "search", ids, reason="retracted", detail="", by="t", now=now)
    )
    w.clock.advance(MINUTE)
    return ids


def refresh(w: World):
    return w.trigger(Operation.UPDATE, since=None, until=None)


def open_signals(w: World) -> list[str]:
    return [one for (one,) in w.rows("SELECT provider_id FROM ing_signal WHERE plan_id IS NULL ORDER BY 1")]


def test_a_cancelled_plan_gives_its_signals_back(database: Database) -> None:
    with world(database, ITEMS) as w:
        ids = raised(w)
        plan = refresh(w)
        assert open_signals(w) == []
        w.db.run(lambda tx: operations.cancel_plan(tx, plan.plan_id or "", why="wrong day", now=w.clock.now()))
        assert open_signals(w) == ids
        assert refresh(w).outcome is Reason.PLANNED
        w.drain()
        assert open_signals(w) == []
        assert refresh(w).outcome is Reason.NO_CANDIDATES


def test_a_cancelled_task_and_a_cancelled_slice_give_theirs_back(database: Database) -> None:
    with world(database, ITEMS) as w:
        ids = raised(w)
        for cancel, column in ((operations.cancel_task, "task_id"), (operations.cancel_slice, "slice_id")):
            plan = refresh(w)
            one = w.one(f"SELECT {column} FROM ing_task WHERE plan_id = :plan", plan=plan.plan_id)
            w.db.run(lambda tx, cancel=cancel, one=one: cancel(tx, one, why="", now=w.clock.now()))
            assert open_signals(w) == ids


def test_a_failed_task_gives_back_what_it_did_not_fetch_and_a_requeued_one_takes_it_again(database: Database) -> None:
    with world(database, ITEMS) as w:
        ids = raised(w)
        tree = pack(w.url, "OFFSET")
        tree["endpoints"]["details"]["batching"] = {"idBatchSize": 1}
        tree["endpoints"]["details"]["errors"] = {"key": {"status": [418], "outcome": "L4"}}
        w.load(tree)
        plan = refresh(w)
        serve, asked = w.provider._served, []

        def served(method: str, path: str, query: dict[str, str], body: bytes) -> Reply:
            asked.append(path)
            reply = serve(method, path, query, body)
            return reply if len(asked) == 1 else Reply(status=418, body=b"", kind=reply.kind)

        w.provider._served = served  # type: ignore[method-assign]
        w.drain()
        (task, status), *_ = w.rows("SELECT task_id, status_code FROM ing_task WHERE plan_id = :p", p=plan.plan_id)
        assert status == "FAILED"
        assert open_signals(w) == ids[1:]
        w.db.run(lambda tx: operations.requeue_task(tx, task, why="", now=w.clock.now()))
        assert open_signals(w) == []


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("asked", [1, 2])
def test_a_crash_while_a_record_is_fetched_loses_no_signal(database: Database, asked: int) -> None:
    """Before the first record came, and after it was committed: what is left is fetched by whoever takes the task."""
    with world(database, ITEMS) as w:
        ids = raised(w)
        tree = pack(w.url, "OFFSET")
        tree["endpoints"]["details"]["batching"] = {"idBatchSize": 1}
        w.load(tree)
        refresh(w)
        send, sent = w.transport.send, []

        def killing(*given):
            sent.append(given)
            if len(sent) == asked:
                raise Killed
            return send(*given)

        w.transport.send = killing  # type: ignore[method-assign]
        with pytest.raises(Killed):
            w.drain()
        w.transport.send = send  # type: ignore[method-assign]
        assert refresh(w).outcome is Reason.WINDOW_COVERED, "the task waits for its lease to end"
        w.clock.advance(20 * MINUTE)
        before = w.clock.now()
        w.drain()
        checked = w.rows("SELECT provider_id FROM ing_record WHERE refresh_checked_at >= :t ORDER BY 1", t=before)
        assert [one for (one,) in checked] == ids[asked - 1 :]
        assert open_signals(w) == []
        assert w.one("SELECT count(*) FROM ing_signal") == 0 or refresh(w).outcome is Reason.NO_CANDIDATES
