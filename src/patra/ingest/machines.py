"""The states of plans, slices and tasks, and every way between them (ch. 7.9)."""

from enum import StrEnum

from patra.kernel.leases import LeaseTable
from patra.kernel.machine import Machine


class PlanStatus(StrEnum):
    DRAFT = "DRAFT"
    SLICING = "SLICING"
    READY = "READY"
    PARTIAL = "PARTIAL"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class PlanOn(StrEnum):
    BEGIN = "begin"
    SLICED = "sliced"
    HELD_BACK = "held_back"  # inventory or quota: the rest waits
    RESUME = "resume"
    FAIL = "fail"
    CANCEL = "cancel"


PLAN: Machine[PlanStatus, PlanOn] = Machine(
    "ing_plan",
    initial=PlanStatus.DRAFT,
    edges={
        (PlanStatus.DRAFT, PlanOn.BEGIN): PlanStatus.SLICING,
        (PlanStatus.SLICING, PlanOn.SLICED): PlanStatus.READY,
        (PlanStatus.SLICING, PlanOn.HELD_BACK): PlanStatus.PARTIAL,
        (PlanStatus.PARTIAL, PlanOn.RESUME): PlanStatus.SLICING,
        (PlanStatus.DRAFT, PlanOn.FAIL): PlanStatus.FAILED,
        (PlanStatus.SLICING, PlanOn.FAIL): PlanStatus.FAILED,
        (PlanStatus.DRAFT, PlanOn.CANCEL): PlanStatus.CANCELLED,
        (PlanStatus.SLICING, PlanOn.CANCEL): PlanStatus.CANCELLED,
        (PlanStatus.PARTIAL, PlanOn.CANCEL): PlanStatus.CANCELLED,
        (PlanStatus.READY, PlanOn.CANCEL): PlanStatus.CANCELLED,
    },
)


class SliceStatus(StrEnum):
    PENDING = "PENDING"
    READY = "READY"
    PARTIAL = "PARTIAL"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class SliceOn(StrEnum):
    DERIVE = "derive"  # its task is there
    RESLICE = "reslice"  # smaller slices took over the rest
    REFUSE = "refuse"  # it cannot be cut any smaller
    CANCEL = "cancel"


SLICE: Machine[SliceStatus, SliceOn] = Machine(
    "ing_plan_slice",
    initial=SliceStatus.PENDING,
    edges={
        # A slice and its task are written by one statement each in one transaction: it is never seen PENDING.
        (SliceStatus.PENDING, SliceOn.DERIVE): SliceStatus.READY,
        (SliceStatus.READY, SliceOn.RESLICE): SliceStatus.PARTIAL,
        (SliceStatus.READY, SliceOn.REFUSE): SliceStatus.FAILED,
        (SliceStatus.PENDING, SliceOn.CANCEL): SliceStatus.CANCELLED,
        (SliceStatus.READY, SliceOn.CANCEL): SliceStatus.CANCELLED,
    },
)


class TaskStatus(StrEnum):
    QUEUED = "QUEUED"
    DISPATCHED = "DISPATCHED"
    EXECUTING = "EXECUTING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    PARTIAL = "PARTIAL"
    CANCELLED = "CANCELLED"


class TaskOn(StrEnum):
    LEASE = "lease"
    START = "start"
    EXPIRE = "expire"  # the lease ran out: someone else may take it
    DEFER = "defer"  # given back for later: rate gate, quota, shutdown
    SUCCEED = "succeed"
    FAIL = "fail"
    PART = "part"  # a part is done, smaller slices or a later plan take the rest
    CANCEL = "cancel"
    REQUEUE = "requeue"  # an operator wants it tried again


TASK: Machine[TaskStatus, TaskOn] = Machine(
    "ing_task",
    initial=TaskStatus.QUEUED,
    edges={
        (TaskStatus.QUEUED, TaskOn.LEASE): TaskStatus.DISPATCHED,
        (TaskStatus.DISPATCHED, TaskOn.START): TaskStatus.EXECUTING,
        (TaskStatus.DISPATCHED, TaskOn.EXPIRE): TaskStatus.QUEUED,
        (TaskStatus.EXECUTING, TaskOn.EXPIRE): TaskStatus.QUEUED,
        (TaskStatus.DISPATCHED, TaskOn.DEFER): TaskStatus.QUEUED,
        (TaskStatus.EXECUTING, TaskOn.DEFER): TaskStatus.QUEUED,
        (TaskStatus.EXECUTING, TaskOn.SUCCEED): TaskStatus.SUCCEEDED,
        (TaskStatus.EXECUTING, TaskOn.FAIL): TaskStatus.FAILED,
        (TaskStatus.DISPATCHED, TaskOn.FAIL): TaskStatus.FAILED,
        (TaskStatus.EXECUTING, TaskOn.PART): TaskStatus.PARTIAL,
        (TaskStatus.QUEUED, TaskOn.CANCEL): TaskStatus.CANCELLED,
        (TaskStatus.DISPATCHED, TaskOn.CANCEL): TaskStatus.CANCELLED,
        (TaskStatus.EXECUTING, TaskOn.CANCEL): TaskStatus.CANCELLED,
        (TaskStatus.FAILED, TaskOn.REQUEUE): TaskStatus.QUEUED,
    },
)

COVERING = (
    TaskStatus.QUEUED,
    TaskStatus.DISPATCHED,
    TaskStatus.EXECUTING,
    TaskStatus.SUCCEEDED,
    TaskStatus.PARTIAL,
)
"""A window is taken care of by a task in one of these states; failed and cancelled ones leave a hole to plan again."""

TASKS = LeaseTable(
    table="ing_task",
    id="task_id",
    partition="partition_key",
    priority="priority",
    due="scheduled_at",
    ready="status_code = 'QUEUED'",
)
"""The queue, as executors lease from it (ch. 5.6, 13.3.1)."""
