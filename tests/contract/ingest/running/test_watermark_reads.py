"""How far a watermark may go is found without reading what lies behind a hole."""

import random
from typing import Any

import pytest

from patra.ingest.landing import store
from patra.ingest.landing.watermark import Frontier, finish, merge_spans
from patra.ingest.planning.slicing.windows import Span
from patra.ingest.vocabulary.codes import Direction
from patra.kernel.db import Database, migrate
from patra.kernel.db.queries import statement

WHOSE = {"namespace": "n", "source": "s", "endpoint": "e", "operation": "HARVEST"}


def fill(db: Database, spans: list[tuple[int, int, str]]) -> None:
    rows = [
        {
            "task_id": f"p.t{number:06}", "schedule_instance_id": "i", "plan_id": "p", "slice_id": f"p.s{number:06}",
            "provenance_code": "s", "endpoint_name": "e", "operation_code": "HARVEST", "partition_key": "s/e/HARVEST",
            "params": "", "expr_hash": "", "idempotent_key": str(number), "status_code": status, "priority": 1,
            "scheduled_at": 0, "namespace_key": "n", "window_from": start, "window_to": end, "created_at": 0,
            "updated_at": 0,
        }
        for number, (start, end, status) in enumerate(spans)
    ]  # fmt: skip
    db.run(lambda tx: tx.execute(statement("clear", "DELETE FROM ing_task")))
    db.run(lambda tx: tx.insert("ing_task", rows))


@pytest.mark.parametrize("backward", [False, True])
def test_the_watermark_goes_as_far_as_if_everything_were_read(database: Database, backward: bool) -> None:
    migrate(database, ["patra.kernel", "patra.ingest"])
    direction = Direction.BACKFILL if backward else Direction.FORWARD
    chance = random.Random(17)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(store, "FIRST_WINDOWS_READ", 2)
        patched.setattr(store, "WINDOWS_READ", 3)
        moved = 0
        for _ in range(25):
            spans = [
                (start, start + chance.choice([1, 2, 2, 2, 9]), chance.choice(["SUCCEEDED"] * 7 + ["FAILED"]))
                for start in (chance.randrange(0, 40) for _ in range(chance.randrange(1, 30)))
            ]
            fill(database, spans)
            present = chance.randrange(0, 40)
            start = chance.choice([present, present - 2, chance.randrange(0, 40)])
            window = Span(start, start + 2)
            done = tuple(merge_spans([Span(a, b) for a, b, status in spans if status == "SUCCEEDED"]))
            truth = finish(Frontier(present=present, done=done), window, direction)
            found = database.read(lambda tx, p=present, w=window: store.frontier(tx, WHOSE, p, w, backward=backward))
            assert finish(found, window, direction).after.present == truth.after.present, (spans, present, window)
            moved += truth.has_moved
        assert moved


def test_behind_a_hole_a_few_rows_are_read(database: Database) -> None:
    migrate(database, ["patra.kernel", "patra.ingest"])
    fill(database, [(start, start + 1, "SUCCEEDED") for start in range(10, 300)])
    reads: list[int] = []

    def read(tx: Any) -> Frontier:
        fetch = tx.fetch

        def counted(stmt: Any, params: Any = None, **more: Any) -> Any:
            rows = fetch(stmt, params, **more)
            reads.append(len(rows))
            return rows

        tx.fetch = counted
        try:
            return store.frontier(tx, WHOSE, 5, Span(50, 51))
        finally:
            del tx.fetch

    assert database.read(read).done == ()
    assert sum(reads) <= store.FIRST_WINDOWS_READ + 1
