"""A store with packs in it, a clock set by hand and a planner: what tests of planning stand on."""

from typing import Any

from patra.ingest.packs import registry
from patra.ingest.planning import store
from patra.ingest.planning.planner import Planned, Planner
from patra.ingest.planning.trigger import Trigger
from patra.ingest.vocabulary.codes import Operation
from patra.kernel.clock import parse_instant
from patra.kernel.db import Database, Statement, migrate
from patra.kernel.db.queries import statement
from patra.kernel.testing import ManualClock
from tests.unit.ingest.sample_packs import KINDS, loaded, loaded_text

NOW = "2026-11-16T02:03:04Z"
PACKAGES = ["patra.kernel", "patra.ingest"]


def at(text: str) -> int:
    found = parse_instant(text)
    assert found is not None
    return found


class Site:
    def __init__(self, db: Database, *, chunk: int = 500, migrated: bool = False, scheduled: bool = False) -> None:
        self.db = db
        self.clock = ManualClock(at(NOW))
        self.planner = Planner(db, self.clock, chunk=chunk)
        if not migrated:
            migrate(db, PACKAGES)
            self.load(*KINDS)
            if not scheduled:
                self.run("DELETE FROM reg_prov_schedule")

    def load(self, *names: str) -> None:
        packs = [loaded(name) for name in names]
        self.db.run(lambda tx: registry.load(tx, packs, by="test", now=self.clock.now()))

    def load_text(self, text: str) -> list[registry.RegistryEntry]:
        pack = loaded_text(text)
        return self.db.run(lambda tx: registry.load(tx, [pack], by="test", now=self.clock.now()))

    def trigger(self, source: str, endpoint: str, operation: Operation = Operation.HARVEST, **said: Any) -> Planned:
        for name in ("since", "until"):
            if isinstance(said.get(name), str):
                said[name] = at(said[name])
        return self.planner.trigger(Trigger(source=source, endpoint=endpoint, operation=operation, **said))

    def rows(self, sql: str, **params: Any) -> list[tuple[Any, ...]]:
        stmt: Statement = statement("test", sql)
        return self.db.read(lambda tx: tx.fetch(stmt, params))

    def run(self, sql: str, **params: Any) -> int:
        stmt: Statement = statement("test", sql)
        return self.db.run(lambda tx: tx.execute(stmt, params))

    def count(self, table: str, where: str = "1 = 1") -> int:
        return self.rows(f"SELECT count(*) FROM {table} WHERE {where}")[0][0]

    def tasks(self, plan_id: str) -> list[tuple[Any, ...]]:
        return self.rows(
            "SELECT task_id, status_code, window_from, window_to, scheduled_at, priority FROM ing_task "
            "WHERE plan_id = :plan ORDER BY task_id",
            plan=plan_id,
        )

    def set_status(self, task_id: str, status: str) -> None:
        self.run("UPDATE ing_task SET status_code = :status WHERE task_id = :task", status=status, task=task_id)

    def plan(self, plan_id: str) -> store.PlanRow:
        row = self.db.read(lambda tx: store.plan_row(tx, plan_id))
        assert row is not None
        return row

    def everything(self) -> dict[str, list[tuple[Any, ...]]]:
        """What planning wrote, without instants of writing and the journal's numbers."""
        return {
            "instance": self.rows(
                "SELECT schedule_instance_id, outcome_code, trigger_key FROM ing_schedule_instance ORDER BY 1"
            ),
            "plan": self.rows(
                "SELECT plan_id, status_code, progress, next_slice_no, expected_requests FROM ing_plan ORDER BY 1"
            ),
            "slice": self.rows(
                "SELECT slice_id, slice_signature_hash, expr_hash, slice_spec, status_code FROM ing_plan_slice ORDER BY 1"
            ),
            "task": self.rows(
                "SELECT task_id, idempotent_key, params, status_code, window_from, window_to FROM ing_task ORDER BY 1"
            ),
            "quota": self.rows("SELECT rate_key, period_code, period_start, reserved FROM ing_quota ORDER BY 1, 2, 3"),
            "cursor": self.rows(
                "SELECT provenance_code, namespace_key, normalized_instant FROM ing_cursor ORDER BY 1, 2"
            ),
        }
