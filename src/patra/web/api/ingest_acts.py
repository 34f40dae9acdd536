"""What operators may do to sources, plans, slices and tasks over HTTP, each act with its audit row (ch. 14.7)."""

from collections.abc import Callable, Collection
from typing import Annotated

import msgspec
from msgspec import Meta

from patra.ingest.operations import requeue
from patra.ingest.planning import operations
from patra.ingest.planning.operations import Act
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.db import Tx
from patra.kernel.errors import Invalid
from patra.web.auth import LOCAL
from patra.web.endpoint import Endpoint, EndpointGroup, Handler, Request
from patra.web.problem import Problem

TAG = "ingest"
NOT_THERE = {404: "There is no such source, endpoint, plan, slice or task."}
UNKNOWN = frozenset(
    {
        Reason.SOURCE_UNKNOWN,
        Reason.ENDPOINT_UNKNOWN,
        Reason.PLAN_UNKNOWN,
        Reason.SLICE_UNKNOWN,
        Reason.TASK_UNKNOWN,
    }
)


class Why(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The reason, for the audit."""

    why: Annotated[str, Meta(max_length=500)] = ""
    endpoint: Annotated[str, Meta(max_length=200, description="Only this endpoint of the source.")] = ""


class RequeueQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which failed tasks; an empty field stands for any, and at least one is needed."""

    source: Annotated[str, Meta(max_length=200, description="Only this source.")] = ""
    endpoint: Annotated[str, Meta(max_length=200, description="Only this endpoint.")] = ""
    operation: Annotated[str, Meta(max_length=20, description="Only this operation.")] = ""
    plan: Annotated[str, Meta(max_length=80, description="Only of this plan.")] = ""


class RequeueWish(RequeueQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which failed tasks are tried again, and why."""

    why: Annotated[str, Meta(max_length=500, description="The reason, for the audit.")] = ""


class TasksWish(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which failed tasks, by their names, are tried again, and why."""

    tasks: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=80)]],
        Meta(min_length=1, max_length=1000, description="The name of each."),
    ]
    why: Annotated[str, Meta(max_length=500, description="The reason, for the audit.")] = ""


class SignalWish(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which records the next UPDATE fetches again, and why."""

    source: Annotated[str, Meta(max_length=200)]
    endpoint: Annotated[str, Meta(max_length=200)]
    ids: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=2000)]],
        Meta(min_length=1, max_length=1000, description="The provider's id of each."),
    ]
    why: Annotated[str, Meta(max_length=500, description="The reason, for the audit.")] = ""


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What was done, and to how many."""

    act: str
    subject: str
    changed: int


def routes() -> list[Endpoint]:
    return [
        *(
            _act(f"/ingest/sources/{{source}}/{name}", handler, f"ingest.{name}", text)
            for name, handler, text in (
                ("pause", _pause, "Stop planning and running a source, or one of its endpoints"),
                ("resume", _resume, "Let a paused source or endpoint go on"),
                ("lift", _lift, "Lift the circuit breaker that a fatal error has set"),
            )
        ),
        _act(
            "/ingest/plans/{plan}/cancel",
            _cancel_plan,
            "ingest.cancel_plan",
            "Cancel a plan and all that has not ended",
        ),
        _act("/ingest/slices/{slice}/cancel", _cancel_slice, "ingest.cancel_slice", "Cancel a slice and its task"),
        _act("/ingest/tasks/{task}/cancel", _cancel_task, "ingest.cancel_task", "Cancel a task"),
        _act("/ingest/tasks/{task}/requeue", _requeue, "ingest.requeue_task", "Let a failed task be tried again"),
        EndpointGroup(TAG).post(
            "/ingest/tasks/requeue",
            _requeue_tasks,
            "ingest.requeue_tasks",
            "Let some failed tasks be tried again",
            description="All of them or none, where one is unknown; tasks that did not fail stay as they are.",
            request=TasksWish,
            response=Done,
            problems=NOT_THERE,
        ),
        EndpointGroup(TAG).get(
            "/ingest/requeue/preview",
            _requeue_preview,
            "Failed tasks that a requeue would take, counted by reason and source",
            requeue.RequeuePreview,
            RequeueQuery,
        ),
        EndpointGroup(TAG).post(
            "/ingest/requeue",
            _requeue_failed,
            "ingest.requeue_failed",
            "Let all failed tasks that a filter finds be tried again",
            description=f"At least one filter is needed; at most {requeue.MAX_TASKS_PER_ACT:,} tasks at a time.",
            request=RequeueWish,
            response=Done,
        ),
        EndpointGroup(TAG).post(
            "/ingest/signals",
            _signal,
            "ingest.signal",
            "Ask for records to be fetched again by the next UPDATE",
            description="`GET /ingest/signals` lists those that no plan has taken up.",
            request=SignalWish,
            response=Done,
            problems=NOT_THERE,
        ),
    ]


def _act(path: str, handler: Handler, act: str, summary: str) -> Endpoint:
    return EndpointGroup(TAG).post(path, handler, act, summary, request=Why, response=Done, problems=NOT_THERE)


def missing(error: Invalid, codes: Collection[str] = UNKNOWN) -> Problem:
    """What stands in the path or the body and is not there: the address leads nowhere. Other errors are raised."""
    if error.code not in codes:
        raise error
    return Problem(404, error.code, "There is nothing of this name", error.detail, {"advice": error.advice})


def act_audited(request: Request, work: Callable[[Tx], Act], unknown: Collection[str] = UNKNOWN) -> Done | Problem:
    """Do it with its audit row in one transaction; 404 where it fails with one of the codes of `unknown`."""

    def both(tx: Tx) -> Act:
        act = work(tx)
        request.audit(tx, act.subject, {**act.detail, "changed": act.changed})
        return act

    try:
        act = request.patra.db.run(both)
    except Invalid as error:
        return missing(error, unknown)
    request.audited = True
    return Done(act=act.act, subject=act.subject, changed=act.changed)


def _pause(request: Request) -> Done | Problem:
    why: Why = request.body
    by = (request.actor or LOCAL).name
    now = request.patra.clock.now()
    source = request.path["source"]
    return act_audited(request, lambda tx: operations.pause(tx, source, why.endpoint, by=by, why=why.why, now=now))


def _resume(request: Request) -> Done | Problem:
    why: Why = request.body
    return act_audited(request, lambda tx: operations.resume(tx, request.path["source"], why.endpoint))


def _lift(request: Request) -> Done | Problem:
    why: Why = request.body
    return act_audited(
        request, lambda tx: operations.lift_breaker(tx, request.path["source"], why.endpoint, why=why.why)
    )


def _cancel_plan(request: Request) -> Done | Problem:
    why, now = request.body.why, request.patra.clock.now()
    return act_audited(request, lambda tx: operations.cancel_plan(tx, request.path["plan"], why=why, now=now))


def _cancel_slice(request: Request) -> Done | Problem:
    why, now = request.body.why, request.patra.clock.now()
    return act_audited(request, lambda tx: operations.cancel_slice(tx, request.path["slice"], why=why, now=now))


def _cancel_task(request: Request) -> Done | Problem:
    why, now = request.body.why, request.patra.clock.now()
    return act_audited(request, lambda tx: operations.cancel_task(tx, request.path["task"], why=why, now=now))


def _requeue(request: Request) -> Done | Problem:
    why, now = request.body.why, request.patra.clock.now()
    return act_audited(request, lambda tx: operations.requeue_task(tx, request.path["task"], why=why, now=now))


def _requeue_tasks(request: Request) -> Done | Problem:
    wish, now = request.body, request.patra.clock.now()
    return act_audited(request, lambda tx: requeue.requeue_tasks(tx, wish.tasks, why=wish.why, now=now))


def _task_filter(asked: RequeueQuery) -> requeue.TaskFilter:
    return requeue.TaskFilter(source=asked.source, endpoint=asked.endpoint, operation=asked.operation, plan=asked.plan)


def _requeue_preview(request: Request) -> requeue.RequeuePreview:
    return request.patra.db.read(lambda tx: requeue.preview(tx, _task_filter(request.query)))


def _requeue_failed(request: Request) -> Done | Problem:
    wish, now = request.body, request.patra.clock.now()
    return act_audited(request, lambda tx: requeue.requeue_failed(tx, _task_filter(wish), why=wish.why, now=now))


def _signal(request: Request) -> Done | Problem:
    wish: SignalWish = request.body
    by, now = (request.actor or LOCAL).name, request.patra.clock.now()
    return act_audited(
        request,
        lambda tx: operations.signal(tx, wish.source, wish.endpoint, wish.ids, by=by, why=wish.why, now=now),
    )
