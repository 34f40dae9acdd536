"""Reports how many records a window holds, for the planner's next estimate (ch. 4.16, 8.3, ruling I3)."""

from patra.ingest.extraction.completeness import LegCount
from patra.ingest.landing.run_state import Closing
from patra.ingest.landing.store import TaskRow
from patra.ingest.packs.spec import Spec
from patra.ingest.planning import store
from patra.ingest.planning.slicing.slice_spec import decode_slice
from patra.ingest.planning.slicing.windows import Span
from patra.ingest.planning.states import TaskTransition
from patra.ingest.vocabulary.codes import Dimension, Operation, PaginationType, TotalMeaning
from patra.kernel.db import Tx


def report(
    tx: Tx, spec: Spec, task: TaskRow, counted: LegCount, closing: Closing | None, *, first: bool, now: int
) -> None:
    """Write what the first page of a run promised, and what its end has shown; nothing between them."""
    if spec.operation is Operation.UPDATE or not (first or closing is not None):
        return
    total = total_of(spec, counted, closing)
    if total is not None and (span := _span(spec, task)) is not None:
        store.report_total(tx, spec.selection_key, span, total, now)


def total_of(spec: Spec, counted: LegCount, closing: Closing | None) -> int | None:
    """The provider's total where it means one; else what was counted, once the window is done."""
    if closing is not None and closing.total is not None:
        return closing.total
    if spec.pagination.total is not TotalMeaning.NONE:
        # a list by time is requested again from each instant on: only its first total is the window's
        by_time = spec.pagination.type in {PaginationType.TIME, None}
        promised = counted.promised_first if by_time else counted.promised_last
        if promised is not None:
            return promised
    done = closing is not None and closing.task is TaskTransition.SUCCEED
    return counted.distinct_ids if done and spec.dimension is Dimension.TIME else None


def _span(spec: Spec, task: TaskRow) -> Span | None:
    """The window that the total belongs to; none where each window reads the whole list."""
    if spec.dimension is Dimension.PAGE:
        bounds = decode_slice(task.slice_spec).bounds.time
        return None if bounds is None else bounds.span
    if not spec.window.supports_updated_since or task.window_from is None or task.window_to is None:
        return None
    return Span(task.window_from, task.window_to)
