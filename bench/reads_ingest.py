"""The reads of ingest on a large store: lists at their beginning and far down, drill-down, coverage, alerts."""

from collections.abc import Callable
from typing import Any

from bench.reads_fill import TASKS_PER_PLAN
from patra.ingest.operations.alerting.monitor import FlowWindow
from patra.ingest.operations.coverage import coverage
from patra.ingest.operations.reads import drilldown, views
from patra.ingest.operations.reads.read_models import error_top, read_list
from patra.kernel.clock import DAY, SystemClock
from patra.kernel.db import Database, Tx


def asked(db: Database, tasks: int) -> dict[str, Callable[[], Any]]:
    """Every read by its name."""
    flows = FlowWindow()
    found = reads(tasks, SystemClock().now())
    for name in ("tasks", "batches", "runs"):
        found[f"{name}, 20,000 rows down"] = deep(db, name, 20)
    found["alerts, batches since the last look"] = lambda tx: flows.look(tx, SystemClock().now())
    return {f"ingest: {name}": lambda work=work: db.read(work) for name, work in found.items()}


def reads(tasks: int, now: int) -> dict[str, Callable[[Tx], Any]]:
    """The reads, each by its name."""
    middle = f"p0000000000{tasks // TASKS_PER_PLAN // 2:06}"
    asked: list[tuple[str, dict[str, Any]]] = [
        ("plans", {}), ("plans", {"source": "source3"}), ("tasks", {}), ("tasks", {"status": "QUEUED"}),
        ("tasks", {"source": "source3", "status": "FAILED"}), ("tasks", {"source": "source3"}),
        ("tasks", {"plan": middle}), ("runs", {}), ("runs", {"status": "FAILED"}),
        ("runs", {"source": "source3", "status": "FAILED"}), ("runs", {"plan": middle}), ("batches", {}),
        ("batches", {"run": f"{middle}.t000500.r1"}), ("batches", {"plan": middle}), ("errors", {}),
        ("errors", {"source": "source3"}), ("quarantine", {"status": "OPEN"}), ("cursors", {}),
        ("cursor-timeline", {"source": "source3", "operation": "HARVEST", "namespace": "n3"}), ("signals", {}),
        ("refused", {}),
    ]  # fmt: skip
    found: dict[str, Callable[[Tx], Any]] = {"queue": views.queue}
    for name, wanted in asked:
        said = ", ".join(f"{key}={value}" for key, value in wanted.items())
        found[f"{name} {said}".strip()] = lambda tx, n=name, w=wanted: read_list(tx, n, w, limit=50)
    found["lineage"] = lambda tx: views.lineage(tx, middle, limit=50)
    found["top errors, a day"] = lambda tx: error_top(tx, {}, since=now - DAY, until=now, limit=20)
    found["windows of a source, 30 days"] = lambda tx: drilldown.windows(tx, "source3", now - 30 * DAY, now)
    found["task with its runs"] = lambda tx: drilldown.task(tx, f"{middle}.t000500")
    found["run with its batches"] = lambda tx: drilldown.run(tx, f"{middle}.t000500.r1", after=0, limit=50)
    found["coverage, with its sum"] = lambda tx: coverage(tx, "source3", limit=50)
    return found


def deep(db: Database, name: str, pages: int) -> Callable[[Tx], Any]:
    """A page far down a list."""
    after = ""
    for _ in range(pages):
        found = db.read(lambda tx, a=after: read_list(tx, name, {}, limit=1000, after=a))
        if found.next is None:
            break
        after = found.next
    return lambda tx: read_list(tx, name, {}, limit=50, after=after)
