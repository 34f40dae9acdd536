"""Turns questions of people into plans, tasks, queues and lineage, read only (ch. 14.7: CONTRACT)."""

from typing import Any

import msgspec

from patra.ingest.operations.reads.listing import page
from patra.ingest.operations.reads.read_models import PLANS, TASKS
from patra.ingest.planning import store
from patra.ingest.planning.schedule import Scheduled
from patra.ingest.vocabulary.reasons import Reason
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
    earliest: str | None
    """When the earliest of them is due; of tasks that have not ended."""


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
    runs: list[dict[str, Any]] = []
    """The runs of its task, each with the first of its batches."""


BATCHES_PER_RUN = 20
"""Batches of a run that a lineage shows; `batches` lists all of them."""


class Lineage(msgspec.Struct, frozen=True, kw_only=True):
    """From the trigger down to the batches of a plan."""

    schedule_instance: dict[str, Any]
    plan: dict[str, Any]
    slice_counts: dict[str, int]
    task_counts: dict[str, int]
    slices: list[SliceView]
    more: bool


class PlanPage(msgspec.Struct, frozen=True, kw_only=True):
    """Plans, and where the next page begins."""

    plans: list[PlanView]
    next: str | None


class TaskPage(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks, and where the next page begins."""

    tasks: list[TaskView]
    next: str | None


def plans(tx: Tx, wanted: Filter) -> list[PlanView]:
    """The newest plans first."""
    return plan_page(tx, wanted).plans


def plan_page(tx: Tx, wanted: Filter, after: str = "") -> PlanPage:
    """A page of plans, the newest first."""
    found = page(tx, PLANS, _filters(wanted), limit=wanted.limit, after=after)
    return PlanPage(
        plans=[
            PlanView(
                plan=row["plan_id"],
                source=row["provenance_code"],
                endpoint=row["endpoint_name"],
                operation=row["operation_code"],
                status=row["status_code"],
                strategy=row["plan_strategy"],
                since=_at(row["window_from"]),
                until=_at(row["window_to"]),
                slices=row["next_slice_no"] - 1,
                estimated=row["total_estimated"],
                priority=row["priority"],
                created=format_instant(row["created_at"]),
            )
            for row in found.rows
        ],
        next=found.next,
    )


def tasks(tx: Tx, wanted: Filter) -> list[TaskView]:
    """Tasks in the order of their plans and slices."""
    return task_page(tx, wanted).tasks


def task_page(tx: Tx, wanted: Filter, after: str = "") -> TaskPage:
    """A page of tasks in the order of their plans and slices."""
    filters = {**_filters(wanted), "plan": wanted.plan_id}
    found = page(tx, TASKS, filters, limit=wanted.limit, after=after)
    return TaskPage(
        tasks=[
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
            for row in found.rows
        ],
        next=found.next,
    )


def _filters(wanted: Filter) -> dict[str, str]:
    return {
        "source": wanted.source,
        "endpoint": wanted.endpoint,
        "operation": wanted.operation,
        "status": wanted.status,
    }


def queue(tx: Tx, source: str = "", operation: str = "") -> list[QueueView]:
    """`getQueueSnapshot` (ch. 14.7). It reads counts that are kept, and one task for each live state."""
    found: list[QueueView] = []
    for partition, status, count, at in tx.fetch(Q["queue_snapshot"]):
        of, endpoint, does = partition.split("/", 2)
        if (not source or of == source) and (not operation or does == operation):
            found.append(
                QueueView(source=of, endpoint=endpoint, operation=does, status=status, tasks=count, earliest=_at(at))
            )
    return found


def lineage(tx: Tx, plan_id: str, *, limit: int = 100, after: str = "") -> Lineage:
    """`getPlanLineage` (ch. 14.7): slices with their tasks, runs and batches, from the one behind `after` on.

    Raises Invalid for a plan that is not there.
    """
    plan = store.plan_row(tx, plan_id)
    if plan is None:
        raise store.unknown_name(Reason.PLAN_UNKNOWN, plan_id)
    found = tx.fetch_dicts(Q["instance"], {"schedule_instance_id": plan.schedule_instance_id})
    instance: dict[str, Any] = found[0] if found else {}
    rows = tx.fetch_dicts(Q["slices_page"], {"plan_id": plan_id, "after": after, "limit": limit + 1})
    return Lineage(
        schedule_instance=_display_row(instance),
        plan=_display_row({k: v for k, v in msgspec.structs.asdict(plan).items() if k != "expr_proto_snapshot"}),
        slice_counts=dict(tx.fetch(Q["slice_counts"], {"plan_id": plan_id})),
        task_counts=dict(tx.fetch(Q["task_counts"], {"plan_id": plan_id})),
        slices=_with_runs(tx, [_slice(row) for row in rows[:limit]]),
        more=len(rows) > limit,
    )


def _with_runs(tx: Tx, slices: list[SliceView]) -> list[SliceView]:
    tasks = [(one.task,) for one in slices if one.task is not None]
    runs = tx.fetch_dicts(Q["lineage_runs"], rows=tasks) if tasks else []
    names = [(row["run_id"],) for row in runs]
    batches = tx.fetch_dicts(Q["lineage_batches"], {"most": BATCHES_PER_RUN}, rows=names) if names else []
    of_run: dict[str, list[dict[str, Any]]] = {}
    for row in batches:
        of_run.setdefault(row["run_id"], []).append(_display_row(row))
    of_task: dict[str, list[dict[str, Any]]] = {}
    for row in runs:
        of_task.setdefault(row["task_id"], []).append({**_display_row(row), "batches": of_run.get(row["run_id"], [])})
    return [msgspec.structs.replace(one, runs=of_task.get(one.task or "", [])) for one in slices]


def schedules(tx: Tx, now: int, *, whole: bool = False) -> list[dict[str, Any]]:
    """The schedules of all packs, also those that are off: when they fire next and the result of the last time.

    `whole`: with everything that was said of them, and whether an operator added them. `last` is the last tick; what
    the schedule calls `last`, how far back it reads, is `look_back`.
    """
    last: dict[str, dict[str, Any]] = {row["job_id"]: row for row in ticks(tx)}
    return [
        {
            "job": entry.job,
            "on": "yes" if entry.enabled else "no",
            "endpoint": entry.schedule.endpoint,
            "operation": entry.schedule.operation.value,
            "cron": entry.schedule.cron,
            "timezone": entry.schedule.timezone,
            "next": format_instant(entry.next(now)) if entry.enabled else None,
            "last": last.get(entry.job, {}).get("last_tick"),
            "outcome": last.get(entry.job, {}).get("outcome_code"),
            "plan": last.get(entry.job, {}).get("plan_id"),
            "topic": entry.topic,
            "then": f"export {entry.then.what} to {entry.then.out}" if entry.then else None,
            **(_said_of(entry) if whole else {}),
        }
        for entry in store.all_schedules(tx)
    ]


def _said_of(entry: Scheduled) -> dict[str, Any]:
    said = msgspec.to_builtins(entry.schedule)
    names = ("jitter", "missed", "reread", "params", "priority")
    return {"own": entry.own, "look_back": said["last"], **{name: said[name] for name in names}}


def ticks(tx: Tx) -> list[dict[str, Any]]:
    """The last tick of each schedule, and the result."""
    return [_display_row(row) for row in tx.fetch_dicts(Q["ticks"])]


def schedule_history(tx: Tx, job: str, limit: int) -> list[dict[str, Any]]:
    """The result of the ticks of a schedule, the newest first."""
    return [
        {
            "job": row["job_id"],
            "tick": format_instant(row["tick"]),
            "fired": format_instant(row["fired_at"]),
            "outcome": row["outcome_code"],
            "plan": row["plan_id"],
            "detail": row["detail"],
            "then": row["then_status"],
            "then_detail": row["then_detail"],
        }
        for row in store.schedule_history(tx, job, limit)
    ]


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


def _display_row(row: dict[str, Any]) -> dict[str, Any]:
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


def _at(value: int | None) -> str | None:
    return None if value is None else format_instant(value)
