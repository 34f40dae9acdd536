"""Writes the counts of a window when its task ends, and finds the windows that still do not add up (ruling I10)."""

from enum import StrEnum
from typing import Any

import msgspec

from patra.ingest.extraction.completeness import Ledger, LegCount
from patra.ingest.landing.run_state import Closing
from patra.ingest.landing.store import Q, TaskRow, done_within
from patra.ingest.packs.spec import Spec
from patra.ingest.planning.slicing.slice_spec import decode_slice
from patra.ingest.planning.slicing.windows import Span, gaps
from patra.ingest.planning.states import TaskTransition
from patra.ingest.vocabulary.codes import Operation, TotalMeaning
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.db import Database, Row, Tx

EMPTY = LegCount()
MAX_SUM_CHANGES = 1000
"""Changes of the sums of coverage that a read may add up itself."""


class WindowState(StrEnum):
    COMPLETE = "COMPLETE"
    INCOMPLETE = "INCOMPLETE"
    HANDED_OVER = "HANDED_OVER"  # smaller windows took the rest
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class Proof(StrEnum):
    """What shows that nothing of a window is missing."""

    TOTAL = "TOTAL"  # as many records as the provider's own total says
    ESTIMATE = "ESTIMATE"  # no fewer than the declared tolerance of its total allows
    READINGS = "READINGS"  # two readings of the list gave the same records
    IDS = "IDS"  # each id that was asked for has an outcome
    NONE = "NONE"  # the list ended, and nothing counts it


class Incomplete(msgspec.Struct, frozen=True, kw_only=True):
    """A window that does not add up, and that no later reading has completed."""

    task_id: str
    run_id: str
    source: str
    endpoint: str
    operation: str
    window: Span | None
    missing: int
    detail: str
    closed_at: int


def state_of(closing: Closing) -> WindowState:
    """The state of a window whose task ends so; DEFER never comes here."""
    match closing.task:
        case TaskTransition.SUCCEED:
            return WindowState.COMPLETE
        case TaskTransition.PART:
            return WindowState.HANDED_OVER
        case TaskTransition.CANCEL:
            return WindowState.CANCELLED
        case _:
            return WindowState.INCOMPLETE if closing.code is RunReason.INCOMPLETE else WindowState.FAILED


def proof_of(spec: Spec, leg: str, count: LegCount) -> Proof:
    """What a leg whose counts add up rests on."""
    if leg == "DETAIL" or spec.operation is Operation.UPDATE:
        return Proof.IDS
    if count.promised_last is not None and spec.pagination.total is TotalMeaning.EXACT:
        return Proof.TOTAL
    if count.agreed:
        return Proof.READINGS
    estimated = count.promised_last is not None and spec.pagination.total is TotalMeaning.ESTIMATE
    return Proof.ESTIMATE if estimated else Proof.NONE


def write(tx: Tx, spec: Spec, task: TaskRow, run_id: str, closing: Closing, ledger: Ledger, now: int) -> None:
    """Store the counts of a window whose task ends, one row per leg that was used."""
    legs = {"LIST": ledger.listing} | ({"DETAIL": ledger.detail} if ledger.detail != EMPTY else {})
    state = state_of(closing).value
    rows: list[Row] = [
        (
            task.task_id,
            leg,
            run_id,
            task.plan_id,
            spec.provenance_code,
            spec.endpoint_code,
            spec.operation.value,
            task.namespace_key,
            task.window_from,
            task.window_to,
            state,
            spec.pagination.total.value if leg == "LIST" else "NONE",
            count.promised_first,
            count.promised_last,
            count.positions,
            count.distinct_ids,
            count.null_items,
            count.without_id,
            count.suppressed,
            count.inserted,
            count.updated,
            count.equal,
            count.older,
            count.repeated,
            count.outside,
            count.quarantined,
            count.gone,
            count.readings,
            count.missing,
            count.why,
            spec.spec_fingerprint,
            now,
            proof_of(spec, leg, count).value,
        )
        for leg, count in legs.items()
    ]
    tx.execute(Q["ledger_write"], rows=rows)


def fold_window_sums(db: Database) -> None:
    """Put changes of the sums of coverage into the sums, where there are many; on SQLite there are never any."""
    if db.dialect != "postgres":
        return
    row = db.read(lambda tx: tx.fetch_one(Q["window_sum_changes"], {"limit": MAX_SUM_CHANGES}))
    if row is not None and row[0] >= MAX_SUM_CHANGES:
        db.run(lambda tx: tx.execute(Q["window_sum_fold"]))


def incomplete(tx: Tx, source: str = "", endpoint: str = "") -> list[Incomplete]:
    """Windows that do not add up, without those that were read to the end since."""
    rows = tx.fetch_dicts(Q["ledger_incomplete"], {"source": source, "endpoint": endpoint})
    return [_incomplete(row) for row in rows if not made_good(tx, row)]


def made_good(tx: Tx, row: dict[str, Any]) -> bool:
    """Whether the task itself, or others of its namespace, have read the window to its end since."""
    if row["task_status"] != "FAILED":
        return True
    window = _window(row)
    if window is None:
        return key_list_read_since(tx, row["task_id"])
    whose = {
        "source": row["provenance_code"],
        "endpoint": row["endpoint_name"],
        "operation": row["operation_code"],
        "namespace": row["namespace_key"],
    }
    return not gaps(window, done_within(tx, whose, window))


def key_list_read_since(tx: Tx, task_id: str) -> bool:
    """HARVEST by key: whether a later list was read to its end; it begins where the mark stood. Others have none."""
    row = tx.fetch_one(Q["key_list_read_since"], {"task_id": task_id})
    return row is not None and all(decode_slice(one).bounds.key is not None for one in row)


def _window(row: dict[str, Any]) -> Span | None:
    return None if row["window_from"] is None else Span(row["window_from"], row["window_to"])


def _incomplete(row: dict[str, Any]) -> Incomplete:
    return Incomplete(
        task_id=row["task_id"],
        run_id=row["run_id"],
        source=row["provenance_code"],
        endpoint=row["endpoint_name"],
        operation=row["operation_code"],
        window=_window(row),
        missing=row["missing"],
        detail=row["detail"],
        closed_at=row["closed_at"],
    )
