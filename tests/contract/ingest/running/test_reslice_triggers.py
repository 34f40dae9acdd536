"""What makes a slice ask for smaller ones (ch. 8.4): time, requests, large answers, refusals; windows, pages and ids."""

from patra.ingest.vocabulary.codes import Operation
from patra.kernel.clock import SECOND
from patra.kernel.db import Database
from patra.kernel.db.queries import statement
from tests.contract.ingest.running.test_page_slices import by_pages
from tests.contract.ingest.running.world import T0, T1, World, pack, world
from tests.support.hostile_provider import Reply, crowded

ITEMS = crowded(400, T0, T1, crowd=False)
WHOLE = {"maxWindow": "P2D"}


def reasons(w: World) -> set[tuple[str, str]]:
    return set(w.rows("SELECT reason_code, status_code FROM ing_reslice_request"))


def each_answer(w: World, change) -> None:
    serve = w.provider._served
    w.provider._served = lambda *asked: change(serve(*asked))  # type: ignore[method-assign]


def test_a_slice_over_its_time_is_cut(database: Database) -> None:
    with world(database, ITEMS) as w:
        w.load(pack(w.url, "TOKEN", window=WHOLE, planning={"maxDurationSec": 60}))

        def slow(reply: Reply) -> Reply:
            w.clock.advance(20 * SECOND)
            return reply

        each_answer(w, slow)
        w.trigger()
        w.drain()
        assert reasons(w) == {("i_budget_spent", "DONE")}
        assert len(w.landed()) == 400
        assert w.watermark() == T1


def test_pages_are_cut_where_their_requests_are_used_up(database: Database) -> None:
    with world(database, ITEMS) as w:
        by_pages(w, base1=True, planning={"maxRequests": 15})
        w.trigger()
        w.drain()
        assert reasons(w) == {("i_budget_spent", "DONE")}
        assert len(w.landed()) == 400
        assert w.watermark() == T1
        batches = w.one("SELECT count(*) FROM ing_task_run_batch")
        assert batches <= 41, "no page is read by two slices"


def test_ids_are_cut_where_their_requests_are_used_up(database: Database) -> None:
    with world(database, ITEMS) as w:
        tree = pack(w.url, "OFFSET", planning={"maxRequests": 5})
        w.load(tree)
        w.trigger()
        w.drain()
        ids = tuple(sorted(w.landed()))
        w.clock.advance(SECOND)
        began = w.clock.now()
        w.trigger(Operation.UPDATE, since=None, until=None, ids=ids)
        w.drain()
        rows = w.rows(
            "SELECT status_code, count(*) FROM ing_task WHERE operation_code = 'UPDATE' GROUP BY 1 ORDER BY 1"
        )
        assert [status for status, _ in rows] == ["PARTIAL", "SUCCEEDED"]
        assert w.one("SELECT count(*) FROM ing_record WHERE refresh_checked_at >= :at", at=began) == 400
        assert w.one("SELECT count(*) FROM ing_task_run_batch WHERE phase_code = 'DETAIL'") <= 24  # 20 in one slice


def test_a_large_answer_asks_for_smaller_slices(database: Database) -> None:
    with world(database, ITEMS) as w:
        w.load(pack(w.url, "TOKEN", window=WHOLE, planning={"resliceBytes": 1024}))
        w.trigger()
        w.drain()
        assert ("i_reslice", "DONE") in reasons(w)
        assert len(w.landed()) == 400


def test_a_slice_that_is_refused_too_often_is_cut(database: Database) -> None:
    for share, expected in ((0.05, {("i_reslice", "DONE")}), (1.0, set())):
        with world(database, crowded(1500, T0, T1, crowd=False)) as w:
            for table in ("ing_reslice_request", "ing_task", "ing_plan", "ing_plan_slice", "ing_cursor"):
                w.db.run(lambda tx, table=table: tx.execute(statement("test", f"DELETE FROM {table}")))
            w.load(pack(w.url, "TOKEN", window=WHOLE, planning={"resliceThrottled": share, "maxPagesPerSlice": 1000}))
            count = [0]

            def refuse(reply: Reply, count=count) -> Reply:
                count[0] += 1
                return Reply(status=429, body=b"", kind=reply.kind) if count[0] % 5 == 0 else reply

            each_answer(w, refuse)
            w.trigger()
            w.drain()
            assert reasons(w) == expected
