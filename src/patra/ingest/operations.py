"""An operator's wish goes in; what was moved, with the words for the audit, comes out in one transaction (ch. 5.9).

Each function gives an `Act`; the shell writes it into the audit in the transaction that did it.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from patra.ingest import store
from patra.ingest.machines import PLAN, SLICE, TASK, PlanOn, SliceOn, TaskOn
from patra.ingest.reasons import R
from patra.kernel.db import Tx
from patra.kernel.errors import Invalid
from patra.kernel.machine import advance

Q = store.Q
BITE = 5000  # rows moved by one statement
PAUSE = "PAUSE"
BREAKER = "BREAKER"


class Act(msgspec.Struct, frozen=True, kw_only=True):
    """What was done: a constant name, what it was done to, and how much of it there was. Zero means: nothing to do."""

    act: str
    subject: str
    changed: int
    detail: dict[str, Any]


def pause(tx: Tx, source: str, endpoint: str, *, by: str, why: str, now: int) -> Act:
    """The planner makes no plans for it and executors leave its tasks alone, until it is resumed."""
    changed = halt(tx, source, endpoint, PAUSE, reason=R.OPERATOR.value, detail=why or "paused", by=by, now=now)
    return Act(act="ingest.pause", subject=_subject(source, endpoint), changed=changed, detail={"why": why})


def resume(tx: Tx, source: str, endpoint: str) -> Act:
    _known(tx, source, endpoint)
    changed = tx.execute(Q["unhalt"], {"source": source, "endpoint": endpoint, "kind": PAUSE})
    return Act(act="ingest.resume", subject=_subject(source, endpoint), changed=changed, detail={})


def signal(tx: Tx, source: str, endpoint: str, ids: Sequence[str], *, by: str, why: str, now: int) -> Act:
    """Records that the next UPDATE of an endpoint fetches again."""
    _known(tx, source, endpoint)
    raised = store.raise_signals(tx, source, endpoint, ids, reason=R.OPERATOR.value, detail=why, by=by, now=now)
    detail = {"why": why, "ids": list(ids)[:100]}
    return Act(act="ingest.signal", subject=_subject(source, endpoint), changed=raised, detail=detail)


def lift_breaker(tx: Tx, source: str, endpoint: str, *, why: str) -> Act:
    """Let a source or endpoint go on that a fatal error (L4) has halted."""
    _known(tx, source, endpoint)
    changed = tx.execute(Q["unhalt"], {"source": source, "endpoint": endpoint, "kind": BREAKER})
    return Act(act="ingest.lift", subject=_subject(source, endpoint), changed=changed, detail={"why": why})


def halt(tx: Tx, source: str, endpoint: str, kind: str, *, reason: str, detail: str, by: str, now: int) -> int:
    """Stop a source (empty endpoint) or an endpoint; 1 if it was not stopped in this way before.

    Executors call it with BREAKER for a fatal error.
    """
    _known(tx, source, endpoint)
    return len(tx.fetch(Q["halt"], rows=[(source, endpoint, kind, reason, detail, by, now)]))


def cancel_plan(tx: Tx, plan_id: str, *, why: str, now: int) -> Act:
    """The plan, its slices and all tasks that have not ended. Workers that hold one find their lease lost."""
    plan = store.plan_row(tx, plan_id)
    if plan is None:
        raise store.unknown(R.PLAN_UNKNOWN, plan_id)
    stopped, tasks = 0, 0
    if PLAN.allows(plan.status_code, PlanOn.CANCEL):
        moves = [PLAN.move(plan_id, plan.status_code, PlanOn.CANCEL, reason=R.OPERATOR, at=now)]
        also = {"updated_at": now}
        stopped = len(advance(tx, PLAN, table="ing_plan", key="plan_id", column="status_code", moves=moves, also=also))
    while rows := tx.fetch(Q["live_tasks_of_plan"], {"plan_id": plan_id, "limit": BITE}):
        tasks += _cancel_tasks(tx, [(str(task), str(status)) for task, status in rows], now)
    while rows := tx.fetch(Q["live_slices"], {"plan_id": plan_id, "limit": BITE}):
        _cancel_slices(tx, [(str(part), str(status)) for part, status in rows], now)
    detail = {"why": why, "was": plan.status_code, "tasks": tasks}
    return Act(act="ingest.cancel_plan", subject=plan_id, changed=stopped + tasks, detail=detail)


def cancel_slice(tx: Tx, slice_id: str, *, why: str, now: int) -> Act:
    state = tx.fetch_one(Q["slice_state"], {"slice_id": slice_id})
    if state is None:
        raise store.unknown(R.SLICE_UNKNOWN, slice_id)
    plan_id, status = state
    rows = tx.fetch(Q["live_tasks_of_slice"], {"plan_id": plan_id, "slice_id": slice_id})
    changed = _cancel_tasks(tx, [(str(task), str(was)) for task, was in rows], now)
    if SLICE.allows(status, SliceOn.CANCEL):
        _cancel_slices(tx, [(slice_id, status)], now)
    return Act(act="ingest.cancel_slice", subject=slice_id, changed=changed, detail={"why": why, "was": status})


def cancel_task(tx: Tx, task_id: str, *, why: str, now: int) -> Act:
    state = tx.fetch_one(Q["task_state"], {"task_id": task_id})
    if state is None:
        raise store.unknown(R.TASK_UNKNOWN, task_id)
    status: str = state[2]
    live = TASK.allows(status, TaskOn.CANCEL)
    changed = _cancel_tasks(tx, [(task_id, status)], now) if live else 0
    return Act(act="ingest.cancel_task", subject=task_id, changed=changed, detail={"why": why, "was": status})


def requeue_task(tx: Tx, task_id: str, *, why: str, now: int) -> Act:
    """Let a task that failed be tried again, now."""
    state = tx.fetch_one(Q["task_state"], {"task_id": task_id})
    if state is None:
        raise store.unknown(R.TASK_UNKNOWN, task_id)
    status: str = state[2]
    changed = 0
    if TASK.allows(status, TaskOn.REQUEUE):
        moves = [TASK.move(task_id, status, TaskOn.REQUEUE, reason=R.OPERATOR, at=now)]
        also = {"lease_owner": None, "leased_until": None}
        changed = len(advance(tx, TASK, table="ing_task", key="task_id", column="status_code", moves=moves, also=also))
        tx.execute(Q["due_now"], {"task_id": task_id, "now": now})
    return Act(act="ingest.requeue_task", subject=task_id, changed=changed, detail={"why": why, "was": status})


def _cancel_tasks(tx: Tx, tasks: list[tuple[str, str]], now: int) -> int:
    moves = [TASK.move(task, was, TaskOn.CANCEL, reason=R.OPERATOR, at=now) for task, was in tasks]
    also = {
        "lease_owner": None,
        "leased_until": None,
        "finished_at": now,
        "reason_code": R.OPERATOR.value,
        "updated_at": now,
    }
    return len(advance(tx, TASK, table="ing_task", key="task_id", column="status_code", moves=moves, also=also))


def _cancel_slices(tx: Tx, slices: list[tuple[str, str]], now: int) -> None:
    moves = [SLICE.move(part, was, SliceOn.CANCEL, reason=R.OPERATOR, at=now) for part, was in slices]
    also = {"updated_at": now}
    advance(tx, SLICE, table="ing_plan_slice", key="slice_id", column="status_code", moves=moves, also=also)


def _subject(source: str, endpoint: str) -> str:
    return f"{source}/{endpoint}" if endpoint else source


def _known(tx: Tx, source: str, endpoint: str) -> None:
    if not tx.fetch(Q["known_endpoint"], {"source": source, "endpoint": endpoint}):
        raise Invalid(
            R.ENDPOINT_UNKNOWN if endpoint else R.SOURCE_UNKNOWN,
            f"there is no {_subject(source, endpoint)}",
            advice="`patra ingest sources` lists them",
        )
