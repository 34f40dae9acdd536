"""How many records have landed: each batch is counted once, however many ask, and none that is committed late is lost."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from patra.app.wiring import build
from patra.kernel.clock import SECOND
from patra.kernel.testing import ManualClock
from patra.web.console.reads.ingest import COMMIT_MARGIN, LandedRecords
from tests.unit.web.served import web_settings

ASKERS = 4


def batch(number: int, at: int) -> dict[str, Any]:
    names = ("run_id", "task_id", "slice_id", "plan_id", "expr_hash", "request_digest", "response_digest")
    return {
        **dict.fromkeys(names, "x"),
        "batch_id": f"b{number}",
        "batch_no": number,
        "phase_code": "LIST",
        "status_code": "SUCCEEDED",
        "stats": '{"inserted": 5, "updated": 2}',
        "idempotent_key": f"k{number}",
        "reason_code": "i_landed",
        "created_at": at,
    }


def test_a_batch_is_counted_once_however_many_ask_and_also_when_it_is_committed_late() -> None:
    clock = ManualClock()
    patra = build(web_settings(), clock)
    try:
        landed, together = LandedRecords(patra), Barrier(ASKERS)

        def ask(_: int) -> float:
            together.wait(60)
            return landed()

        clock.advance(SECOND)
        begun_at = clock.now()
        patra.db.run(lambda tx: tx.insert("ing_task_run_batch", [batch(1, begun_at)]))
        clock.advance(SECOND)
        assert landed() == 0.0
        patra.db.run(lambda tx: tx.insert("ing_task_run_batch", [batch(2, begun_at)]))  # as one that took a second
        clock.advance(COMMIT_MARGIN)
        with ThreadPoolExecutor(ASKERS) as threads:
            assert list(threads.map(ask, range(ASKERS))) == [14.0] * ASKERS
    finally:
        patra.close(5)
