"""The evidence of a batch, and lists for people (ch. 14.9.1)."""

from msgspec.structs import replace

from patra.ingest.operations.reads.blackbox import export, view
from patra.kernel.db import Database
from tests.contract.ingest.running.world import T0, T1, pack, world
from tests.support.hostile_provider import Habits, crowded


def test_every_batch_can_be_explained(database: Database) -> None:
    with world(database, crowded(80, T0, T1, crowd=False), Habits(seed=5, truncates=30)) as w:
        w.load(pack(w.url, "OFFSET"))
        w.trigger()
        w.drain()
        run_id, batch_no = w.rows("SELECT run_id, batch_no FROM ing_task_run_batch ORDER BY batch_id")[0]
        evidence = export(database, run_id, batch_no)
        assert evidence is not None
        assert evidence["request_digest"]["method"] == "GET"
        assert evidence["response_digest"]["status"] == 200
        assert evidence["response_digest"]["bodyHash"].startswith("sha256:")
        assert evidence["response_digest"]["rate.limitKey"] == "hostile|search"
        assert evidence["cursorEvents"][0]["direction_code"] == "FORWARD"
        assert evidence["spec_fingerprint"]
        assert evidence["body"] is None
        assert export(database, run_id, 999) is None
        assert view(database, "view_cursors", {"source": "hostile"})[0]["cursor_value"] == "2026-03-03T00:00:00Z"
        assert view(database, "view_quarantine", {"source": "", "limit": 5}) == []
        assert view(database, "view_errors", {"source": "", "limit": 5}) == []


def test_a_run_that_fails_without_a_failed_batch_is_among_the_errors(database: Database) -> None:
    with world(database, crowded(80, T0, T1, crowd=False)) as w:
        w.load(pack(w.url, "PAGE", pagination={"pageSize": 5}))
        w.trigger()
        serve = w.provider._served
        w.provider._served = lambda m, p, q, b: serve(m, p, {**q, "page": "1"}, b)  # type: ignore[method-assign]
        w.drain()
        failed = w.rows("SELECT run_id FROM ing_task_run WHERE status_code = 'FAILED'")
        shown = view(database, "view_errors", {"source": "hostile", "limit": 50})
        assert {one["run_id"] for one in shown} == {run_id for (run_id,) in failed}
        assert {one["reason_code"] for one in shown} == {"i_loop"}
        assert all("i_loop: page" in one["error"] and one["batch_no"] >= 1 for one in shown)
        assert view(database, "view_errors", {"source": "other", "limit": 50}) == []


def test_bytes_that_are_no_text_are_counted_in_the_evidence(database: Database) -> None:
    with world(database, crowded(5, T0, T1, crowd=False)) as w:
        w.load(pack(w.url, "OFFSET", window={"maxWindow": "P2D"}))
        w.trigger()
        serve = w.provider._served

        def mangled(*asked):
            reply = serve(*asked)
            return replace(reply, body=reply.body.replace(b"Title 0", b"Title \xff"))

        w.provider._served = mangled  # type: ignore[method-assign]
        w.drain()
        (run_id,) = w.rows("SELECT run_id FROM ing_task_run")[0]
        evidence = export(database, run_id, 1)
        assert evidence is not None
        assert evidence["response_digest"]["undecodable"] == 1
        assert len(w.landed()) == 5
