"""Executors of two versions at work on one store: what one of them cannot read is left to the other."""

import msgspec
import pytest
from structlog.testing import capture_logs

from patra.ingest.vocabulary.codes import Operation
from patra.kernel.clock import MINUTE
from patra.kernel.db.queries import statement
from tests.unit.ingest.packs.effects.observe import TWO_PHASE, built
from tests.unit.ingest.packs.effects.stand_in import NOW, Site, site

BUDGET = {"maxRequests", "maxDurationSec", "priority", "expectedRequests"}
TELEMETRY = {"totalEstimated", "comment"}
CURSOR = {"type", "scope", "direction", "key", "namespaceKey"}
PLAN = "UPDATE ing_plan SET expr_proto_snapshot = :text"
SLICE = "UPDATE ing_plan_slice SET slice_spec = :text"
READ = {PLAN: "SELECT expr_proto_snapshot FROM ing_plan", SLICE: "SELECT slice_spec FROM ing_plan_slice"}


def write(s: Site, sql: str, text: str) -> None:
    s.db.run(lambda tx: tx.execute(statement("t", sql), {"text": text}))


def tasks(s: Site) -> list[tuple]:
    return s.rows("SELECT status_code, reason_code, scheduled_at - :now, lease_owner FROM ing_task", now=NOW)


@pytest.mark.parametrize("tree", [{}, TWO_PHASE], ids=["one phase", "two phases"])
def test_slices_and_snapshots_have_no_field_that_executors_of_the_release_before_refuse(tree: dict) -> None:
    with site() as s:
        s.load(built(tree))
        s.trigger()
        s.drain()
        s.trigger(Operation.BACKFILL, activity="again")  # with an estimate
        for (text,) in s.rows(READ[SLICE]):
            part = msgspec.json.decode(text)
            assert (set(part["budget"]), set(part["telemetry"])) == (BUDGET, TELEMETRY)
        for (text,) in s.rows(READ[PLAN]):
            assert set(msgspec.json.decode(text)["cursor"]) == CURSOR


@pytest.mark.parametrize(("sql", "section"), [(PLAN, "cursor"), (SLICE, "bounds")])
def test_a_task_of_a_newer_version_is_put_back_and_logged_once(sql: str, section: str) -> None:
    with site() as s, capture_logs() as lines:
        s.load(built({}))
        s.trigger()
        ((text,),) = s.rows(READ[sql])
        tree = msgspec.json.decode(text)
        tree[section]["ofTomorrow"] = 1
        write(s, sql, msgspec.json.encode(tree).decode())
        for turn in (1, 2):
            assert s.executor.run_once().deferred == 1
            assert tasks(s) == [("QUEUED", "i_put_back_version", turn * MINUTE, None)]
            assert s.executor.run_once().tasks == 0, "it is left alone until then"
            s.clock.advance(MINUTE)
        assert [one["event"] for one in lines].count("ingest_task_of_newer_version") == 1
        write(s, sql, text)  # an executor of that version reads it
        s.drain()
        assert [row[:2] for row in tasks(s)] == [("SUCCEEDED", "i_done")]
        assert len(s.landed) == 30


def test_a_slice_that_no_version_could_read_fails_its_task() -> None:
    with site() as s:
        s.load(built({}))
        s.trigger()
        write(s, SLICE, "{")
        assert s.executor.run_once().failed == 1
        assert [row[:2] for row in tasks(s)] == [("FAILED", "i_broken")]
