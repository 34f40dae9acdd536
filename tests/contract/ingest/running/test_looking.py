"""Draining a trigger with threads, and the evidence of a batch (ch. 14.9.1)."""

from patra.demo.hostile import Habits, crowded
from patra.ingest.blackbox import export, view
from patra.ingest.codes import Operation
from patra.ingest.draining import drain
from patra.ingest.trigger import Trigger
from patra.kernel.db import Database
from tests.contract.ingest.running.world import T0, T1, pack, world


def test_a_trigger_is_drained_by_threads_and_every_batch_can_be_explained(database: Database) -> None:
    with world(database, crowded(80, T0, T1, crowd=False), Habits(seed=5, truncates=30)) as w:
        w.load(pack(w.url, "OFFSET"))
        trigger = Trigger(source="hostile", endpoint="search", operation=Operation.HARVEST, since=T0, until=T1)
        told: list[str] = []
        assert drain(database, trigger, executors=2, tell=told.append) == []
        assert w.landed() == w.provider.truth
        assert w.watermark() == T1
        assert drain(database, trigger, executors=1, tell=told.append) == []
        run_id, batch_no = w.rows("SELECT run_id, batch_no FROM ing_task_run_batch ORDER BY batch_id")[0]
        evidence = export(database, run_id, batch_no)
        assert evidence is not None
        assert evidence["request_digest"]["method"] == "GET"
        assert evidence["response_digest"]["status"] == 200
        assert evidence["response_digest"]["bodyHash"].startswith("sha256:")
        assert evidence["response_digest"]["rate.limitKey"] == "hostile|search"
        assert evidence["cursorEvents"][0]["direction_code"] == "FORWARD"
        assert evidence["spec_fingerprint"]
        assert export(database, run_id, 999) is None
        assert view(database, "view_cursors", {"source": "hostile"})[0]["cursor_value"] == "2026-03-03T00:00:00Z"
        assert view(database, "view_quarantine", {"source": "", "limit": 5}) == []
        assert view(database, "view_errors", {"source": "", "limit": 5}) == []
