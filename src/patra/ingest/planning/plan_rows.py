"""Rows of a plan: the instance, the plan, and the slices and tasks of a group, each set in one statement (ch. 7)."""

from collections.abc import Sequence
from typing import Any

import msgspec

from patra.ingest.packs.problems import Problem
from patra.ingest.packs.spec import Spec, encode_spec
from patra.ingest.planning import store
from patra.ingest.planning.limits.leg_quotas import LegQuotas
from patra.ingest.planning.slicing.slice_groups import Group, strategy_of
from patra.ingest.planning.slicing.slice_spec import Sliced
from patra.ingest.planning.slicing.windows import Span
from patra.ingest.planning.states import PLAN, PlanStatus, PlanTransition, SliceStatus, TaskStatus
from patra.ingest.planning.store import PlanRow
from patra.ingest.planning.trigger import (
    Trigger,
    partition_of,
    plan_id_of,
    schedule_instance_id_of,
    slice_id_of,
    task_id_of,
)
from patra.ingest.vocabulary.codes import Operation
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.clock import format_instant, parse_duration
from patra.kernel.db import Tx
from patra.kernel.machine import advance

Q = store.Q


def write_instance(
    tx: Tx, trigger: Trigger, key: str, outcome: Reason, remarks: dict[str, Any], spec: Spec | None, now: int
) -> str:
    """The root of a trigger; refused ones are kept too, with what is missing (ch. 5.3.2, 12.4)."""
    instance_id = schedule_instance_id_of(key)
    store.write_instance(
        tx,
        {
            "schedule_instance_id": instance_id,
            "trigger_key": key,
            "scheduler_code": trigger.scheduler,
            "scheduler_job_id": trigger.job,
            "scheduler_log_id": trigger.log,
            "trigger_type_code": trigger.kind,
            "provenance_code": trigger.source,
            "endpoint_name": trigger.endpoint,
            "operation_code": trigger.operation.value,
            "trigger_params": _json(trigger.describe_trigger),
            "expr_proto_hash": spec.expr_proto_hash if spec else None,
            "spec_fingerprint": spec.spec_fingerprint if spec else None,
            "outcome_code": outcome.value,
            "record_remarks": _json(remarks),
            "triggered_at": now,
            "created_at": now,
            "updated_at": now,
        },
    )
    return instance_id


def write_plan(
    tx: Tx,
    spec: Spec,
    instance_id: str,
    key: str,
    window: Span | None,
    namespace: str,
    remarks: dict[str, Any],
    now: int,
) -> str:
    """The plan, on its way from DRAFT to SLICING, and the initial watermark of a first harvest."""
    plan_id = plan_id_of(key)
    tx.insert_absent(
        "ing_plan",
        [
            {
                "plan_id": plan_id,
                "schedule_instance_id": instance_id,
                "provenance_code": spec.provenance_code,
                "endpoint_name": spec.endpoint_code,
                "operation_code": spec.operation.value,
                "plan_strategy": strategy_of(spec),
                "window_from": window.start if window else None,
                "window_to": window.end if window else None,
                "namespace_scope_code": spec.cursor.scope.value,
                "namespace_key": namespace,
                "priority": spec.priority,
                "expr_proto_hash": spec.expr_proto_hash,
                "expr_proto_snapshot": encode_spec(spec),
                "spec_fingerprint": spec.spec_fingerprint,
                "status_code": PlanStatus.DRAFT.value,
                "record_remarks": _json(remarks),
                "created_at": now,
                "updated_at": now,
            }
        ],
        key=("plan_id",),
    )
    move_plan(tx, plan_id, PlanStatus.DRAFT, PlanTransition.BEGIN, Reason.PLANNED, now)
    if spec.operation is Operation.HARVEST and window is not None:
        cursor = spec.cursor
        place = (spec.provenance_code, spec.operation.value, cursor.key, cursor.scope.value, cursor.namespace_key)
        at = (format_instant(window.start), window.start, instance_id, plan_id, now)
        tx.execute(Q["initial_cursor"], rows=[(*place, *at)])
    return plan_id


def move_plan(tx: Tx, plan_id: str, was: PlanStatus | str, on: PlanTransition, reason: Reason, now: int) -> bool:
    moves = [PLAN.move(plan_id, was, on, reason=reason, at=now)]
    also = {"updated_at": now}
    return bool(advance(tx, PLAN, table="ing_plan", key="plan_id", column="status_code", moves=moves, also=also))


def write_slices(
    tx: Tx,
    plan: PlanRow,
    spec: Spec,
    slices: Sequence[Sliced],
    number: int,
    due: Sequence[int],
    now: int,
    parent: str | None = None,
) -> int:
    """Slices from `number` on, with their tasks; gives how many were new."""
    numbers = range(number, number + len(slices))
    rows = [
        {
            "slice_id": slice_id_of(plan.plan_id, no),
            "plan_id": plan.plan_id,
            "slice_no": no,
            "parent_slice_id": parent,
            "provenance_code": plan.provenance_code,
            "slice_signature_hash": one.slice_signature_hash,
            "slice_spec": one.slice_spec,
            "expr_hash": one.expr_hash,
            "expr_snapshot": one.expr_snapshot,
            "status_code": SliceStatus.READY.value,
            "created_at": now,
            "updated_at": now,
        }
        for no, one in zip(numbers, slices, strict=True)
    ]
    new = {
        slice_id
        for (slice_id,) in tx.insert_absent(
            "ing_plan_slice", rows, key=("plan_id", "slice_signature_hash"), returning=("slice_id",)
        )
    }
    spread = parse_duration(spec.planning.spread)
    partition = partition_of(plan.provenance_code, plan.endpoint_name, spec.operation)
    tasks = [
        {
            "task_id": task_id_of(plan.plan_id, no),
            "schedule_instance_id": plan.schedule_instance_id,
            "plan_id": plan.plan_id,
            "slice_id": slice_id_of(plan.plan_id, no),
            "provenance_code": plan.provenance_code,
            "endpoint_name": plan.endpoint_name,
            "operation_code": plan.operation_code,
            "partition_key": partition,
            "credential_id": spec.auth.credential_ref,
            "params": one.params,
            "expr_hash": one.expr_hash,
            "idempotent_key": one.idempotent_key,
            "status_code": TaskStatus.QUEUED.value,
            "priority": plan.priority,
            "scheduled_at": at + spread * (no - number),
            "namespace_key": plan.namespace_key,
            "window_from": one.window.start if one.window else None,
            "window_to": one.window.end if one.window else None,
            "created_at": now,
            "updated_at": now,
        }
        for no, one, at in zip(numbers, slices, due, strict=True)
        if slice_id_of(plan.plan_id, no) in new
    ]
    return len(tx.insert_absent("ing_task", tasks, key=("idempotent_key",)))


def note_progress(tx: Tx, plan_id: str, groups: Sequence[Group], number: int, now: int) -> None:
    """How far the plan is cut after these groups."""
    known = [group.estimated for group in groups if group.estimated is not None]
    tx.execute(
        Q["plan_progress"],
        {
            "plan_id": plan_id,
            "progress": groups[-1].progress,
            "next_slice_no": number,
            "expected": sum(one.expected_requests for group in groups for one in group.slices),
            "estimated": sum(known) if known else -1,
            "now": now,
        },
    )


def place(groups: Sequence[Group], quotas: LegQuotas, until: int) -> tuple[list[Group], list[int]]:
    """The groups that start within the horizon, and when each of their slices is due."""
    kept: list[Group] = []
    due: list[int] = []
    for group in groups:
        if quotas.at > until:
            break
        kept.append(group)
        due += [quotas.place(one.expected_requests, one.expected_details).due for one in group.slices]
    return kept, due


def remarks_of(spec: Spec, window: Span | None, namespace: str, warnings: Sequence[Problem]) -> dict[str, Any]:
    """`ing_plan.record_remarks` (ch. 14.3.5)."""
    return {
        "window": None
        if window is None
        else {
            "from": format_instant(window.start),
            "to": format_instant(window.end),
            "safetyLag": spec.window.safety_lag,
        },
        "namespace": {
            "scope": spec.cursor.scope.value,
            "key": namespace,
            "direction": spec.cursor.direction.value,
            "cursorKey": spec.cursor.key,
        },
        "degradation": spec.degradations,
        "warnings": [str(warning) for warning in warnings],
        "budget": {"maxRequests": spec.planning.max_requests, "qps": spec.rate_limit.refill_rate_per_sec},
    }


def note(tx: Tx, plan: PlanRow, more: dict[str, Any], now: int) -> None:
    """Add to the remarks of a plan."""
    remarks: dict[str, Any] = {**msgspec.json.decode(plan.record_remarks), **more}
    tx.execute(Q["plan_remarks"], {"plan_id": plan.plan_id, "remarks": _json(remarks), "now": now})


def note_reslice(tx: Tx, plan: PlanRow, slice_id: str, parts: int, reason: str, now: int) -> None:
    """That a slice was cut smaller while it ran (14.3.5): how often so far, and the last one."""
    before: dict[str, Any] = msgspec.json.decode(plan.record_remarks).get("resliced", {})
    last = {"slice": slice_id, "parts": parts, "reason": reason, "at": format_instant(now)}
    counts = {"slices": before.get("slices", 0) + 1, "parts": before.get("parts", 0) + parts}
    note(tx, plan, {"resliced": {**counts, "last": last}}, now)


def note_rate(tx: Tx, plan_id: str, *, demoted: int, throttled: int, now: int) -> None:
    """That the rate was lowered in a run of a plan (ch. 12.2): how often so far, and when last."""
    tx.fetch_one(Q["plan_for_update"], {"plan_id": plan_id})
    plan = store.plan_row(tx, plan_id)
    if plan is None:
        return
    before: dict[str, Any] = msgspec.json.decode(plan.record_remarks).get("rateAdjusted", {})
    counts = {"runs": 1, "demoteEvents": demoted, "429Count": throttled}
    more = {name: before.get(name, 0) + count for name, count in counts.items()}
    note(tx, plan, {"rateAdjusted": {**more, "at": format_instant(now)}}, now)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
