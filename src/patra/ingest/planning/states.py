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


class PlanTransition(StrEnum):
    BEGIN = "begin"
    SLICED = "sliced"
    HELD_BACK = "held_back"  # inventory or quota: the rest waits
    RESUME = "resume"
    FAIL = "fail"
    CANCEL = "cancel"


PLAN: Machine[PlanStatus, PlanTransition] = Machine(
    "ing_plan",
    initial=PlanStatus.DRAFT,
    edges={
        (PlanStatus.DRAFT, PlanTransition.BEGIN): PlanStatus.SLICING,
        (PlanStatus.SLICING, PlanTransition.SLICED): PlanStatus.READY,
        (PlanStatus.SLICING, PlanTransition.HELD_BACK): PlanStatus.PARTIAL,
        (PlanStatus.PARTIAL, PlanTransition.RESUME): PlanStatus.SLICING,
        (PlanStatus.DRAFT, PlanTransition.FAIL): PlanStatus.FAILED,
        (PlanStatus.SLICING, PlanTransition.FAIL): PlanStatus.FAILED,
        (PlanStatus.DRAFT, PlanTransition.CANCEL): PlanStatus.CANCELLED,
        (PlanStatus.SLICING, PlanTransition.CANCEL): PlanStatus.CANCELLED,
        (PlanStatus.PARTIAL, PlanTransition.CANCEL): PlanStatus.CANCELLED,
        (PlanStatus.READY, PlanTransition.CANCEL): PlanStatus.CANCELLED,
    },
)


class SliceStatus(StrEnum):
    PENDING = "PENDING"
    READY = "READY"
    PARTIAL = "PARTIAL"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class SliceTransition(StrEnum):
    DERIVE = "derive"  # its task is there
    RESLICE = "reslice"  # smaller slices took over the rest
    REFUSE = "refuse"  # it cannot be cut any smaller
    CANCEL = "cancel"


SLICE: Machine[SliceStatus, SliceTransition] = Machine(
    "ing_plan_slice",
    initial=SliceStatus.PENDING,
    edges={
        # A slice and its task are written by one statement each in one transaction: it is never seen PENDING.
        (SliceStatus.PENDING, SliceTransition.DERIVE): SliceStatus.READY,
        (SliceStatus.READY, SliceTransition.RESLICE): SliceStatus.PARTIAL,
        (SliceStatus.READY, SliceTransition.REFUSE): SliceStatus.FAILED,
        (SliceStatus.PENDING, SliceTransition.CANCEL): SliceStatus.CANCELLED,
        (SliceStatus.READY, SliceTransition.CANCEL): SliceStatus.CANCELLED,
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


class TaskTransition(StrEnum):
    LEASE = "lease"
    START = "start"
    EXPIRE = "expire"  # the lease ran out: another executor may take it
    DEFER = "defer"  # given back for later: rate gate, quota, shutdown
    SUCCEED = "succeed"
    FAIL = "fail"
    PART = "part"  # a part is done, smaller slices or a later plan take the rest
    CANCEL = "cancel"
    REQUEUE = "requeue"  # an operator wants it tried again


TASK: Machine[TaskStatus, TaskTransition] = Machine(
    "ing_task",
    initial=TaskStatus.QUEUED,
    edges={
        (TaskStatus.QUEUED, TaskTransition.LEASE): TaskStatus.DISPATCHED,
        (TaskStatus.DISPATCHED, TaskTransition.START): TaskStatus.EXECUTING,
        (TaskStatus.DISPATCHED, TaskTransition.EXPIRE): TaskStatus.QUEUED,
        (TaskStatus.EXECUTING, TaskTransition.EXPIRE): TaskStatus.QUEUED,
        (TaskStatus.DISPATCHED, TaskTransition.DEFER): TaskStatus.QUEUED,
        (TaskStatus.EXECUTING, TaskTransition.DEFER): TaskStatus.QUEUED,
        (TaskStatus.EXECUTING, TaskTransition.SUCCEED): TaskStatus.SUCCEEDED,
        (TaskStatus.EXECUTING, TaskTransition.FAIL): TaskStatus.FAILED,
        (TaskStatus.DISPATCHED, TaskTransition.FAIL): TaskStatus.FAILED,
        (TaskStatus.EXECUTING, TaskTransition.PART): TaskStatus.PARTIAL,
        (TaskStatus.QUEUED, TaskTransition.CANCEL): TaskStatus.CANCELLED,
        (TaskStatus.DISPATCHED, TaskTransition.CANCEL): TaskStatus.CANCELLED,
        (TaskStatus.EXECUTING, TaskTransition.CANCEL): TaskStatus.CANCELLED,
        (TaskStatus.FAILED, TaskTransition.REQUEUE): TaskStatus.QUEUED,
    },
)

TASKS = LeaseTable(
    table="ing_task",
    id="task_id",
    partition="partition_key",
    priority="priority",
    due="scheduled_at",
    ready="status_code = 'QUEUED'",
)
"""The queue, as executors lease from it (ch. 5.6, 13.3.1)."""
