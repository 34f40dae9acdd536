"""Finds windows whose tasks failed permanently and that nothing has read since: the input of alerts about failure."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import msgspec

from patra.ingest.landing.store import Q, done_within
from patra.ingest.landing.window_ledger import key_list_read_since
from patra.ingest.operations.alerting.alerts import Ended, Failure, HeldMark, Lag, Where
from patra.ingest.planning.slicing.windows import Span, gaps
from patra.ingest.vocabulary.reasons import Reason
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.clock import DAY, format_instant
from patra.kernel.db import Tx

MAX_FAILED_TASKS = 1000
"""Failed tasks that one look goes through, the newest first."""


class FailedWindow(msgspec.Struct, frozen=True, kw_only=True):
    """A window that failed and is still open."""

    where: Where
    namespace: str
    window: Span | None
    reason: str
    missing: int
    task_id: str = ""
    """None of a plan that failed."""

    @property
    def whose(self) -> dict[str, str]:
        return {
            "source": self.where.source,
            "endpoint": self.where.endpoint,
            "operation": self.where.operation,
            "namespace": self.namespace,
        }


def open_failures(tx: Tx) -> list[FailedWindow]:
    """Windows of failed tasks that no other task of their namespace has read or is about to read, and failed plans."""
    found = [_window(row) for row in tx.fetch_dicts(Q["watch_failed"], {"limit": MAX_FAILED_TASKS})]
    plans = [_of_plan(row) for row in tx.fetch_dicts(Q["watch_failed_plans"], {"limit": MAX_FAILED_TASKS})]
    return [one for one in sorted([*found, *plans], key=_place) if _is_open(tx, one)]


def _place(one: FailedWindow) -> tuple[Where, str, int]:
    return one.where, one.namespace, one.window.start if one.window else 0


def _window(row: dict[str, Any]) -> FailedWindow:
    timed = row["window_from"] is not None
    return FailedWindow(
        where=Where(row["provenance_code"], row["endpoint_name"], row["operation_code"]),
        namespace=row["namespace_key"],
        window=Span(row["window_from"], row["window_to"]) if timed else None,
        reason=row["reason_code"] or "",
        missing=row["missing"],
        task_id=row["task_id"],
    )


def _of_plan(row: dict[str, Any]) -> FailedWindow:
    """A plan that could not be cut and that no later one stands for."""
    return FailedWindow(
        where=Where(row["provenance_code"], row["endpoint_name"], row["operation_code"]),
        namespace=row["namespace_key"],
        window=None,
        reason=Reason.PLAN_FAILED.value,
        missing=0,
    )


def _is_open(tx: Tx, one: FailedWindow) -> bool:
    if one.window is None:
        return not (one.task_id and key_list_read_since(tx, one.task_id))
    done = done_within(tx, one.whose, one.window)
    asked = {**one.whose, "since": one.window.start, "until": one.window.end}
    under_way = [Span(start, end) for start, end in tx.fetch(Q["watch_under_way"], asked)]
    return bool(gaps(one.window, sorted([*done, *under_way])))


def failures(found: Sequence[FailedWindow], *, incomplete: bool) -> list[Failure]:
    """By endpoint and operation: windows that do not add up, or those that failed for another reason."""
    wanted = [one for one in found if (one.reason == RunReason.INCOMPLETE.value) is incomplete]
    return [
        Failure(
            where=where,
            windows=len(group),
            reasons=tuple(sorted({one.reason for one in group})),
            missing=sum(one.missing for one in group),
        )
        for where, group in ((where, list(part)) for where, part in groupby(wanted, key=lambda one: one.where))
    ]


def held_marks(found: Sequence[FailedWindow], marks: Sequence[tuple[Lag, int]]) -> list[HeldMark]:
    """HARVEST watermarks, with the instant where each stands, that lie in a window which failed."""
    held: list[HeldMark] = []
    for mark, instant in marks:
        at = format_instant(instant)
        here = next((one for one in found if _holds(one, mark, instant)), None)
        if here is not None:
            held.append(HeldMark(where=here.where, namespace=here.namespace, stands_at=at, reason=here.reason))
    return held


def _holds(one: FailedWindow, mark: Lag, instant: int) -> bool:
    if one.where != mark.where or one.namespace != mark.namespace or one.window is None:
        return False
    return one.where.operation == "HARVEST" and one.window.start <= instant < one.window.end


def ended_runs(tx: Tx, now: int) -> list[Ended]:
    """How the runs of the last day ended, by endpoint and operation."""
    rows = tx.fetch(Q["watch_ended"], {"since": now - DAY})
    return [Ended(where=Where(*row[:3]), runs=row[3], failed=int(row[4])) for row in rows]
