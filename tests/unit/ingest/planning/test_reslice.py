"""What is cut smaller while it runs stands in the plan's remarks, where people read a plan (14.3.5)."""

from typing import Any

import msgspec

from patra.ingest.operations.reads import views
from patra.ingest.vocabulary.codes import Operation
from patra.kernel.db.queries import statement
from tests.unit.ingest.packs.effects.observe import built
from tests.unit.ingest.packs.effects.stand_in import Site, site


def remarks(s: Site, plan_id: str) -> dict[str, Any]:
    """What `patra ingest lineage` and `GET /ingest/plans/ID` show of it."""
    return s.db.read(lambda tx: views.lineage(tx, plan_id)).plan["record_remarks"]


def test_slices_that_were_cut_smaller_and_estimates_stand_in_the_remarks_of_the_plan() -> None:
    with site() as s:
        s.load(built({"limits": {"maxDepth": 20}}))
        plan = s.trigger().plan_id or ""
        before = remarks(s, plan)
        assert "resliced" not in before
        assert (before["totalEstimated"], before["expectedRequests"]) == (None, 1)
        s.drain()
        (sliced,) = s.rows("SELECT slice_id FROM ing_plan_slice WHERE parent_slice_id IS NULL")
        resliced = remarks(s, plan)["resliced"]
        assert (resliced["slices"], resliced["parts"]) == (1, 4)
        assert (resliced["last"]["slice"], resliced["last"]["reason"]) == (sliced[0], "i_too_deep")
        again = s.trigger(Operation.BACKFILL, activity="again").plan_id or ""
        assert remarks(s, again)["totalEstimated"] == 30


def test_a_request_of_a_plan_of_a_newer_version_is_left_to_a_planner_of_that_version() -> None:
    with site() as s:
        s.load(built({"limits": {"maxDepth": 20}}))
        s.trigger()
        assert s.executor.run_once().partial == 1
        ((text,),) = s.rows("SELECT expr_proto_snapshot FROM ing_plan")
        tree = msgspec.json.decode(text)
        tree["cursor"]["ofTomorrow"] = 1
        write = statement("t", "UPDATE ing_plan SET expr_proto_snapshot = :text")
        s.db.run(lambda tx: tx.execute(write, {"text": msgspec.json.encode(tree).decode()}))
        assert s.planner.run_once().resliced == 0
        assert s.rows("SELECT status_code FROM ing_reslice_request") == [("OPEN",)]
        s.db.run(lambda tx: tx.execute(write, {"text": text}))
        assert s.planner.run_once().resliced == 1
        s.drain()
        assert len(s.landed) == 30
