"""Questions of people go in; plans, tasks, queues and lineage come out, read only (ch. 14.7: CONTRACT)."""

from typing import Any

import msgspec

from patra.ingest import store
from patra.ingest.reasons import R
from patra.kernel.clock import format_instant
from patra.kernel.db import Tx

Q = store.Q


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """What to show; an empty field stands for any."""

    source: str = ""
    endpoint: str = ""
    operation: str = ""
    status: str = ""
    plan_id: str = ""
    limit: int = 50


class PlanView(msgspec.Struct, frozen=True, kw_only=True):
    """A plan in one line."""

    plan: str
    source: str
    endpoint: str
    operation: str
    status: str
    strategy: str
    since: str | None
    until: str | None
    slices: int
    estimated: int | None
    priority: int
    created: str


class TaskView(msgspec.Struct, frozen=True, kw_only=True):
    """A task in one line."""

    task: str
    plan: str
    source: str
    endpoint: str
    operation: str
    status: str
    priority: int
    due: str
    since: str | None
    until: str | None
    owner: str | None
    leases: int
    reason: str | None


class QueueView(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks of one source, endpoint and operation in one state."""

    source: str
    endpoint: str
    operation: str
    status: str
    tasks: int
    earliest: str


class SliceView(msgspec.Struct, frozen=True, kw_only=True):
    """A slice with its task."""

    slice: str
    status: str
    parent: str | None
    bounds: dict[str, Any]
    expected_requests: int
    estimated: int | None
    comment: str
    task: str | None
    task_status: str | None
    due: str | None
    reason: str | None
    signature: str


class Lineage(msgspec.Struct, frozen=True, kw_only=True):
    """From the trigger down to the tasks of a plan."""

    schedule_instance: dict[str, Any]
    plan: dict[str, Any]
    slice_counts: dict[str, int]
    task_counts: dict[str, int]
    slices: list[SliceView]
    more: bool


def plans(tx: Tx, wanted: Filter) -> list[PlanView]:
    """The newest plans first."""
    rows = tx.fetch_dicts(Q["plans_page"], _params(wanted))
    return [
        PlanView(
            plan=row["plan_id"],
            source=row["provenance_code"],
            endpoint=row["endpoint_name"],
            operation=row["operation_code"],
            status=row["status_code"],
            strategy=row["plan_strategy"],
            since=_at(row["window_from"]),
            until=_at(row["window_to"]),
            slices=row["slices"],
            estimated=row["total_estimated"],
            priority=row["priority"],
            created=format_instant(row["created_at"]),
        )
        for row in rows
    ]


def tasks(tx: Tx, wanted: Filter) -> list[TaskView]:
    """Tasks in the order of their plans and slices."""
    rows = tx.fetch_dicts(Q["tasks_page"], _params(wanted))
    return [
        TaskView(
            task=row["task_id"],
            plan=row["plan_id"],
            source=row["provenance_code"],
            endpoint=row["endpoint_name"],
            operation=row["operation_code"],
            status=row["status_code"],
            priority=row["priority"],
            due=format_instant(row["scheduled_at"]),
            since=_at(row["window_from"]),
            until=_at(row["window_to"]),
            owner=row["lease_owner"],
            leases=row["lease_count"],
            reason=row["reason_code"],
        )
        for row in rows
    ]


def queue(tx: Tx, source: str = "", operation: str = "") -> list[QueueView]:
    """`getQueueSnapshot` (ch. 14.7)."""
    rows = tx.fetch(Q["queue_snapshot"], {"source": source, "operation": operation})
    return [
        QueueView(source=s, endpoint=e, operation=o, status=status, tasks=count, earliest=format_instant(at))
        for s, e, o, status, count, at in rows
    ]


def lineage(tx: Tx, plan_id: str, *, limit: int = 100, after: str = "") -> Lineage:
    """`getPlanLineage` (ch. 14.7), as far as the planner writes it. Raises Invalid for a plan that is not there."""
    plan = store.plan_row(tx, plan_id)
    if plan is None:
        raise store.unknown(R.PLAN_UNKNOWN, plan_id)
    found = tx.fetch_dicts(Q["instance"], {"schedule_instance_id": plan.schedule_instance_id})
    instance: dict[str, Any] = found[0] if found else {}
    rows = tx.fetch_dicts(Q["slices_page"], {"plan_id": plan_id, "after": after, "limit": limit + 1})
    return Lineage(
        schedule_instance=_shown(instance),
        plan=_shown({k: v for k, v in msgspec.structs.asdict(plan).items() if k != "expr_proto_snapshot"}),
        slice_counts=dict(tx.fetch(Q["slice_counts"], {"plan_id": plan_id})),
        task_counts=dict(tx.fetch(Q["task_counts"], {"plan_id": plan_id})),
        slices=[_slice(row) for row in rows[:limit]],
        more=len(rows) > limit,
    )


def refused(tx: Tx, source: str = "", limit: int = 20) -> list[dict[str, Any]]:
    """Triggers that made no plan, and why; the newest first."""
    return [_shown(row) for row in tx.fetch_dicts(Q["refused_instances"], {"source": source, "limit": limit})]


def ticks(tx: Tx) -> list[dict[str, Any]]:
    """The last tick of each schedule, and what came of it."""
    return [_shown(row) for row in tx.fetch_dicts(Q["ticks"])]


def _slice(row: dict[str, Any]) -> SliceView:
    spec: dict[str, Any] = msgspec.json.decode(row["slice_spec"])
    bounds: dict[str, Any] = next(iter(spec["bounds"].values()))
    return SliceView(
        slice=row["slice_id"],
        status=row["status_code"],
        parent=row["parent_slice_id"],
        bounds={k: v for k, v in bounds.items() if k != "ids"},
        expected_requests=spec["budget"]["expectedRequests"],
        estimated=spec["telemetry"]["totalEstimated"],
        comment=spec["telemetry"]["comment"],
        task=row["task_id"],
        task_status=row["task_status"],
        due=_at(row["scheduled_at"]),
        reason=row["reason_code"],
        signature=row["slice_signature_hash"],
    )


_INSTANTS = ("_at", "_from", "_to", "_tick")
_JSON = ("record_remarks", "trigger_params")


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """Instants as text, JSON as values."""
    out: dict[str, Any] = {}
    for name, value in row.items():
        if name.endswith(_INSTANTS) and isinstance(value, int):
            out[name] = format_instant(value)
        elif name in _JSON and isinstance(value, str) and value:
            out[name] = msgspec.json.decode(value)
        else:
            out[name] = value
    return out


def _params(wanted: Filter) -> dict[str, Any]:
    return msgspec.structs.asdict(wanted)


def _at(value: int | None) -> str | None:
    return None if value is None else format_instant(value)
