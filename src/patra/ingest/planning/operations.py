"""Acts of operators on plans, tasks and sources, with their audit row, in one transaction (ch. 5.9).

Each function gives an `Act`; the shell writes it into the audit in the transaction that did it.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from patra.ingest.packs import registry, staged_release
from patra.ingest.packs.spec import Spec, decode_spec
from patra.ingest.planning import plan_rows, store
from patra.ingest.planning.limits.leg_quotas import legs_by_key, permits_by_key
from patra.ingest.planning.limits.quota import periods
from patra.ingest.planning.schedule import Scheduled
from patra.ingest.planning.slicing.slice_spec import decode_slice, expected_details
from patra.ingest.planning.states import (
    PLAN,
    SLICE,
    TASK,
    PlanStatus,
    PlanTransition,
    SliceTransition,
    TaskStatus,
    TaskTransition,
)
from patra.ingest.ratelimit import quota_store
from patra.ingest.vocabulary.reasons import Reason
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.db import Tx
from patra.kernel.errors import Invalid
from patra.kernel.machine import advance

Q = store.Q
UPDATE_BATCH_ROWS = 5000  # rows moved by one statement
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
    changed = halt(tx, source, endpoint, PAUSE, reason=Reason.OPERATOR.value, detail=why or "paused", by=by, now=now)
    return Act(act="ingest.pause", subject=_subject(source, endpoint), changed=changed, detail={"why": why})


def resume(tx: Tx, source: str, endpoint: str) -> Act:
    _check_known(tx, source, endpoint)
    changed = tx.execute(Q["unhalt"], {"source": source, "endpoint": endpoint, "kind": PAUSE})
    return Act(act="ingest.resume", subject=_subject(source, endpoint), changed=changed, detail={})


def signal(tx: Tx, source: str, endpoint: str, ids: Sequence[str], *, by: str, why: str, now: int) -> Act:
    """Records that the next UPDATE of an endpoint fetches again."""
    _check_known(tx, source, endpoint)
    raised = store.raise_signals(tx, source, endpoint, ids, reason=Reason.OPERATOR.value, detail=why, by=by, now=now)
    detail = {"why": why, "ids": list(ids)[:100]}
    return Act(act="ingest.signal", subject=_subject(source, endpoint), changed=raised, detail=detail)


def switch_schedule(tx: Tx, job: str, *, enabled: bool, by: str, why: str, now: int) -> Act:
    """Turn a schedule on or off, whatever its pack says. One that is turned on fires for its latest tick at once."""
    entry = known_schedule(tx, job)
    if entry.enabled != enabled:
        store.switch_schedule(tx, job, enabled=enabled, by=by, now=now)
    act = "ingest.enable_schedule" if enabled else "ingest.disable_schedule"
    return Act(act=act, subject=job, changed=int(entry.enabled != enabled), detail={"why": why})


def known_schedule(tx: Tx, job: str) -> Scheduled:
    for entry in store.all_schedules(tx):
        if entry.job == job:
            return entry
    raise Invalid(
        Reason.SCHEDULE_UNKNOWN, f"there is no schedule {job}", advice="`patra ingest schedule list` lists them"
    )


def lift_breaker(tx: Tx, source: str, endpoint: str, *, why: str) -> Act:
    """Let a source or endpoint go on that a fatal error (L4) has halted."""
    _check_known(tx, source, endpoint)
    changed = tx.execute(Q["unhalt"], {"source": source, "endpoint": endpoint, "kind": BREAKER})
    detail = {"why": why, "reason": RunReason.LIFTED.value}
    return Act(act="ingest.lift", subject=_subject(source, endpoint), changed=changed, detail=detail)


def halt(tx: Tx, source: str, endpoint: str, kind: str, *, reason: str, detail: str, by: str, now: int) -> int:
    """Stop a source (empty endpoint) or an endpoint; 1 if it was not stopped in this way before.

    Executors call it with BREAKER for a fatal error.
    """
    _check_known(tx, source, endpoint)
    return len(tx.fetch(Q["halt"], rows=[(source, endpoint, kind, reason, detail, by, now)]))


def cancel_plan(tx: Tx, plan_id: str, *, why: str, now: int) -> Act:
    """The plan, its slices and all tasks that have not ended. Workers that hold one find their lease lost."""
    plan = store.plan_row(tx, plan_id)
    if plan is None:
        raise store.unknown_name(Reason.PLAN_UNKNOWN, plan_id)
    stopped, tasks = 0, 0
    if PLAN.allows(plan.status_code, PlanTransition.CANCEL):
        moves = [PLAN.move(plan_id, plan.status_code, PlanTransition.CANCEL, reason=Reason.OPERATOR, at=now)]
        also = {"updated_at": now}
        stopped = len(advance(tx, PLAN, table="ing_plan", key="plan_id", column="status_code", moves=moves, also=also))
    while rows := tx.fetch(Q["live_tasks_of_plan"], {"plan_id": plan_id, "limit": UPDATE_BATCH_ROWS}):
        tasks += _cancel_tasks(tx, [(str(task), str(status)) for task, status in rows], now)
    while rows := tx.fetch(Q["live_slices"], {"plan_id": plan_id, "limit": UPDATE_BATCH_ROWS}):
        _cancel_slices(tx, [(str(part), str(status)) for part, status in rows], now)
    detail = {"why": why, "was": plan.status_code, "tasks": tasks}
    return Act(act="ingest.cancel_plan", subject=plan_id, changed=stopped + tasks, detail=detail)


def fail_plan(tx: Tx, plan_id: str, *, why: str, now: int) -> bool:
    """A plan that cannot be cut: executors take nothing of it any more (5.5), and its window is planned again."""
    plan = store.plan_row(tx, plan_id)
    if plan is None or plan.status_code not in {PlanStatus.SLICING, PlanStatus.PARTIAL}:
        return False
    if plan.status_code == PlanStatus.PARTIAL:
        plan_rows.move_plan(tx, plan_id, PlanStatus.PARTIAL, PlanTransition.RESUME, Reason.RESUMED, now)
    if not plan_rows.move_plan(tx, plan_id, PlanStatus.SLICING, PlanTransition.FAIL, Reason.PLAN_FAILED, now):
        return False
    plan_rows.note(tx, plan, {"failed": why, "heldBack": None}, now)
    while rows := tx.fetch(Q["live_tasks_of_plan"], {"plan_id": plan_id, "limit": UPDATE_BATCH_ROWS}):
        _cancel_tasks(tx, [(str(task), str(status)) for task, status in rows], now, Reason.PLAN_FAILED)
    while rows := tx.fetch(Q["live_slices"], {"plan_id": plan_id, "limit": UPDATE_BATCH_ROWS}):
        _cancel_slices(tx, [(str(part), str(status)) for part, status in rows], now, Reason.PLAN_FAILED)
    return True


def cancel_slice(tx: Tx, slice_id: str, *, why: str, now: int) -> Act:
    state = tx.fetch_one(Q["slice_state"], {"slice_id": slice_id})
    if state is None:
        raise store.unknown_name(Reason.SLICE_UNKNOWN, slice_id)
    plan_id, status = state
    rows = tx.fetch(Q["live_tasks_of_slice"], {"plan_id": plan_id, "slice_id": slice_id})
    changed = _cancel_tasks(tx, [(str(task), str(was)) for task, was in rows], now)
    if SLICE.allows(status, SliceTransition.CANCEL):
        _cancel_slices(tx, [(slice_id, status)], now)
    return Act(act="ingest.cancel_slice", subject=slice_id, changed=changed, detail={"why": why, "was": status})


def cancel_task(tx: Tx, task_id: str, *, why: str, now: int) -> Act:
    state = tx.fetch_one(Q["task_state"], {"task_id": task_id})
    if state is None:
        raise store.unknown_name(Reason.TASK_UNKNOWN, task_id)
    status: str = state[2]
    live = TASK.allows(status, TaskTransition.CANCEL)
    changed = _cancel_tasks(tx, [(task_id, status)], now) if live else 0
    return Act(act="ingest.cancel_task", subject=task_id, changed=changed, detail={"why": why, "was": status})


def requeue_task(tx: Tx, task_id: str, *, why: str, now: int) -> Act:
    """Let a task that failed be tried again, now."""
    state = tx.fetch_one(Q["task_state"], {"task_id": task_id})
    if state is None:
        raise store.unknown_name(Reason.TASK_UNKNOWN, task_id)
    status: str = state[2]
    changed = 0
    if TASK.allows(status, TaskTransition.REQUEUE):
        moves = [TASK.move(task_id, status, TaskTransition.REQUEUE, reason=Reason.OPERATOR, at=now)]
        also = {"lease_owner": None, "leased_until": None}
        changed = len(advance(tx, TASK, table="ing_task", key="task_id", column="status_code", moves=moves, also=also))
        tx.execute(Q["due_now"], {"task_id": task_id, "now": now})
        store.retake_signals(tx, [task_id])
    return Act(act="ingest.requeue_task", subject=task_id, changed=changed, detail={"why": why, "was": status})


def _cancel_tasks(tx: Tx, tasks: list[tuple[str, str]], now: int, why: Reason = Reason.OPERATOR) -> int:
    moves = [TASK.move(task, was, TaskTransition.CANCEL, reason=why, at=now) for task, was in tasks]
    also = {
        "lease_owner": None,
        "leased_until": None,
        "finished_at": now,
        "reason_code": why.value,
        "updated_at": now,
    }
    moved = advance(tx, TASK, table="ing_task", key="task_id", column="status_code", moves=moves, also=also)
    store.release_signals(tx, sorted(moved))
    _release_quota(tx, [task for task, was in tasks if task in moved and was == TaskStatus.QUEUED], now)
    return len(moved)


def _release_quota(tx: Tx, tasks: Sequence[str], now: int) -> None:
    """Give back what tasks that never began had reserved, by leg, in the periods in which they were due (4.10.5)."""
    specs: dict[str, Spec] = {}
    back: dict[str, Counter[tuple[str, int]]] = {}
    for plan_id, due, text, snapshot in tx.fetch(Q["reserved_by"], rows=[(task,) for task in tasks]):
        try:
            spec = specs.get(plan_id) or specs.setdefault(plan_id, decode_spec(snapshot))
            part = decode_slice(text)
        except msgspec.MsgspecError:
            continue  # nobody knows whose quota it was; reservations end with their period
        requests, legs = part.budget.expected_requests, legs_by_key(spec)
        for key, permits in permits_by_key(spec, requests, expected_details(spec, part)).items():
            for kind in periods(legs[key], spec.operation):
                counts = back.setdefault(key, Counter())
                counts[kind.code, due // kind.length * kind.length] += permits
    for key, counts in back.items():
        quota_store.release_quota(tx, key, counts, now)


def _cancel_slices(tx: Tx, slices: list[tuple[str, str]], now: int, why: Reason = Reason.OPERATOR) -> None:
    moves = [SLICE.move(part, was, SliceTransition.CANCEL, reason=why, at=now) for part, was in slices]
    also = {"updated_at": now}
    advance(tx, SLICE, table="ing_plan_slice", key="slice_id", column="status_code", moves=moves, also=also)


def _subject(source: str, endpoint: str) -> str:
    return f"{source}/{endpoint}" if endpoint else source


def _check_known(tx: Tx, source: str, endpoint: str) -> None:
    if not tx.fetch(Q["known_endpoint"], {"source": source, "endpoint": endpoint}):
        if not endpoint or not tx.fetch(Q["known_endpoint"], {"source": source, "endpoint": ""}):
            raise registry.unknown_source(tx, source)
        raise Invalid(
            Reason.ENDPOINT_UNKNOWN,
            f"{source} has no endpoint {endpoint!r}",
            advice=f"`patra ingest pack show {source}` has its endpoints",
        )


def promote_pack(tx: Tx, source: str, *, by: str, why: str, now: int, version: int | None = None) -> Act:
    """The version on trial is in force for all plans to come; with `version` only if it is the one on trial."""
    on_trial = staged_release.compare(tx, source)[-1]
    number = staged_release.promote(tx, source, by=by, now=now, version=version).version_no
    detail = {"version": number, "why": why, "trial_plans": on_trial.plans, "trial_failed": on_trial.failed}
    return Act(act="ingest.pack_promote", subject=source, changed=1, detail=detail)


def roll_back_pack(tx: Tx, source: str, *, why: str) -> Act:
    """The trial ends: plans to come are made from the version in force."""
    version = staged_release.roll_back(tx, source).version_no
    return Act(act="ingest.pack_rollback", subject=source, changed=1, detail={"version": version, "why": why})
