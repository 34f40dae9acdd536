"""One task with its runs, one run with its batches, the windows of a source on an axis of time; read only (ch. 14.7).

Every statement is bounded and goes by an index: a source may have a million tasks.
"""

from typing import Any

import msgspec

from patra.ingest.landing import store as landing_store
from patra.ingest.operations.reads.legible_rows import shown_row
from patra.ingest.planning import store
from patra.ingest.vocabulary.codes import Operation
from patra.kernel.db import Tx

Q = store.Q
MAX_RUNS = 100
MAX_WINDOWS = 400
BUCKETS = 200
MAX_BUCKETED_WINDOWS = 20_000
WORST_FIRST = ("FAILED", "PARTIAL", "CANCELLED", "EXECUTING", "DISPATCHED", "QUEUED", "SUCCEEDED")
MAX_SERIES = 5
MAX_PLANS = 500
"""Plans of a source and operation, the newest, whose namespaces are shown."""


def task(tx: Tx, task_id: str) -> dict[str, Any] | None:
    """A task as it stands, with its runs, the latest first."""
    found = tx.fetch_dicts(Q["drill_task"], {"task_id": task_id})
    if not found:
        return None
    runs = tx.fetch_dicts(Q["drill_runs"], {"task_id": task_id, "limit": MAX_RUNS})
    return {**shown_row(found[0]), "runs": [shown_row(run) for run in runs]}


def run(tx: Tx, run_id: str, *, after: int, limit: int) -> dict[str, Any] | None:
    """A run with a page of its batches."""
    found = tx.fetch_dicts(Q["drill_run"], {"run_id": run_id})
    if not found:
        return None
    rows = tx.fetch_dicts(Q["drill_batches"], {"run_id": run_id, "after": after, "limit": limit + 1})
    following = rows[limit - 1]["batch_no"] if len(rows) > limit else None
    return {**shown_row(found[0]), "batches": [shown_row(row) for row in rows[:limit]], "next": following}


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """The windows of one operation and namespace.

    Where there are too many to draw, a row stands for all that begin in a part of the span: the state is the worst,
    `counts` has the number of each. `more` says that there are even more than were looked at; those are earlier.
    """

    operation: str
    namespace: str
    endpoint: str
    windows: list[dict[str, Any]]
    more: bool


def windows(tx: Tx, source: str, since: int, until: int) -> list[Series]:
    """The windows of a source that meet a span, by operation and namespace; instants in µs."""
    found: list[Series] = []
    for operation in Operation:
        asked = {"source": source, "operation": operation.value, "plans": MAX_PLANS, "limit": MAX_SERIES}
        for namespace, _, endpoint, _ in tx.fetch(Q["drill_series"], asked):
            widest = tx.fetch_one(landing_store.Q["widest_window"], {"namespace": namespace})
            params = {
                "namespace": namespace,
                "source": source,
                "operation": operation.value,
                "since": since,
                "until": until,
                "beyond": until + (widest[0] if widest else 0),
                "limit": MAX_WINDOWS + 1,
            }
            rows = tx.fetch_dicts(Q["drill_windows"], params)
            more = False
            if len(rows) > MAX_WINDOWS:
                rows, more = _buckets(tx, params)
            found.append(
                Series(operation=operation.value, namespace=namespace, endpoint=endpoint, windows=rows, more=more)
            )
    return found


def _buckets(tx: Tx, params: dict[str, Any]) -> tuple[list[dict[str, Any]], bool]:
    """One row for each part of the span in which windows begin, and whether not all of them were looked at."""
    width = max((params["until"] - params["since"]) // BUCKETS, 1)
    parts = tx.fetch_dicts(Q["drill_buckets"], {**params, "width": width, "limit": MAX_BUCKETED_WINDOWS})
    rows: dict[int, dict[str, Any]] = {}
    for part in parts:
        row = rows.setdefault(part["bucket"], {**part, "counts": {}})
        row["counts"][part["status_code"]] = part["windows"]
        row["window_from"] = min(row["window_from"], part["window_from"])
        row["window_to"] = max(row["window_to"], part["window_to"])
        if WORST_FIRST.index(part["status_code"]) < WORST_FIRST.index(row["status_code"]):
            row["status_code"], row["task_id"] = part["status_code"], part["task_id"]
    return list(rows.values()), sum(part["windows"] for part in parts) >= MAX_BUCKETED_WINDOWS
