"""Questions about sources, plans and tasks, and what operators may do to them, over HTTP (ch. 5.9, 14.7)."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from patra.app.actor import Role
from patra.app.wiring import Patra
from patra.ingest import operations, shelf, store, views
from patra.ingest.codes import Operation
from patra.ingest.planner import Planned, Planner
from patra.ingest.reasons import R
from patra.ingest.trigger import Trigger
from patra.kernel.clock import format_instant, parse_instant
from patra.kernel.db import Tx
from patra.kernel.errors import Invalid
from patra.web.endpoint import Endpoint, Reply, Request
from patra.web.problem import Problem

TAG = "ingest"
Operations = Literal["HARVEST", "BACKFILL", "UPDATE"]
Text = Annotated[str, Meta(max_length=200)]


class SourceLine(msgspec.Struct, frozen=True, kw_only=True):
    """A source whose pack is loaded; `halts` says what stands still."""

    source: str
    title: str
    version: str
    hash: str
    loaded: str
    enabled: bool
    endpoints: int
    schedules: int
    halts: list[dict[str, str]]


class Sources(msgspec.Struct, frozen=True, kw_only=True):
    sources: list[SourceLine]


class ListQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to list; an empty field stands for any."""

    source: Annotated[str, Meta(max_length=200, description="Only this source.")] = ""
    endpoint: Annotated[str, Meta(max_length=200, description="Only this endpoint.")] = ""
    operation: Annotated[str, Meta(max_length=20, description="Only this operation.")] = ""
    status: Annotated[str, Meta(max_length=20, description="Only this state.")] = ""
    plan: Annotated[str, Meta(max_length=80, description="Tasks: only of this plan.")] = ""
    limit: Annotated[int, Meta(ge=1, le=1000, description="How many.")] = 100


class Plans(msgspec.Struct, frozen=True, kw_only=True):
    plans: list[views.PlanView]


class Tasks(msgspec.Struct, frozen=True, kw_only=True):
    tasks: list[views.TaskView]


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    queue: list[views.QueueView]


class Wish(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A trigger: what is to be planned. What is not said is decided by the pack and the watermark."""

    source: Text
    endpoint: Text
    operation: Operations = "HARVEST"
    since: Annotated[str | None, Meta(description="Start of the window, RFC 3339.")] = None
    until: Annotated[str | None, Meta(description="End of the window, not included.")] = None
    params: Annotated[dict[str, Any], Meta(description="Values of the pack's parameters.")] = {}
    ids: Annotated[list[str], Meta(description="UPDATE: these records.", max_length=10_000)] = []
    activity: Annotated[str | None, Meta(description="BACKFILL, UPDATE: name of the campaign.")] = None


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it; without a plan, `outcome` and `detail` say why."""

    outcome: str
    detail: str
    plan: str | None
    status: str | None
    slices: int
    problems: list[str]


class Why(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The reason, for the audit."""

    why: Annotated[str, Meta(max_length=500)] = ""
    endpoint: Annotated[str, Meta(max_length=200, description="Only this endpoint of the source.")] = ""


class Done(msgspec.Struct, frozen=True, kw_only=True):
    act: str
    subject: str
    changed: int


NOT_THERE = {404: "There is no such source, endpoint, plan, slice or task."}
UNKNOWN = {R.SOURCE_UNKNOWN, R.ENDPOINT_UNKNOWN, R.PLAN_UNKNOWN, R.SLICE_UNKNOWN, R.TASK_UNKNOWN}


def routes(patra: Patra) -> list[Endpoint]:
    del patra  # handlers find it in their request
    return [
        _get("/ingest/sources", _sources, "Sources whose packs are loaded", Sources),
        _get("/ingest/sources/{source}/pack", _pack, "What the registry holds for a source", dict[str, Any]),
        _get("/ingest/plans", _plans, "Plans, the newest first", Plans, ListQuery),
        _get("/ingest/plans/{plan}", _lineage, "A plan from its trigger down to its tasks", views.Lineage),
        _get("/ingest/tasks", _tasks, "Tasks", Tasks, ListQuery),
        _get("/ingest/queue", _queue, "Tasks counted by source, endpoint, operation and state", Queue, ListQuery),
        Endpoint(
            method="POST",
            path="/ingest/plans",
            handler=_plan,
            role=Role.OPERATOR,
            act="ingest.plan",
            summary="Make a plan",
            description="Asking twice adds nothing: what is done or under way is not planned again.",
            tag=TAG,
            request=Wish,
            response=Made,
            problems={422: "The trigger was refused; the body says why, with the line of the pack where there is one."},
        ),
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
    ]


def _get(
    path: str,
    handler: Any,
    summary: str,
    response: Any,
    query: type[msgspec.Struct] | None = None,
) -> Endpoint:
    return Endpoint(
        method="GET",
        path=path,
        handler=handler,
        role=Role.VIEWER,
        summary=summary,
        tag=TAG,
        query=query,
        response=response,
        problems=NOT_THERE if "{" in path else {},
    )


def _act(path: str, handler: Any, act: str, summary: str) -> Endpoint:
    return Endpoint(
        method="POST",
        path=path,
        handler=handler,
        role=Role.OPERATOR,
        act=act,
        summary=summary,
        tag=TAG,
        request=Why,
        response=Done,
        problems=NOT_THERE,
    )


def _sources(request: Request) -> Sources:
    def read(tx: Tx) -> Sources:
        halts = store.halts(tx)
        return Sources(
            sources=[
                SourceLine(
                    source=row["provenance_code"],
                    title=row["provenance_name"],
                    version=row["pack_version"],
                    hash=row["pack_hash"],
                    loaded=format_instant(row["updated_at"]),
                    enabled=bool(row["enabled"]),
                    endpoints=row["endpoints"],
                    schedules=row["schedules"],
                    halts=[
                        {"endpoint": h.endpoint, "kind": h.kind, "detail": h.detail, "since": format_instant(h.at)}
                        for h in halts
                        if h.source == row["provenance_code"]
                    ],
                )
                for row in shelf.sources(tx)
            ]
        )

    return request.patra.db.read(read)


def _pack(request: Request) -> Reply | Problem:
    source = request.path["source"]
    tree = request.patra.db.read(lambda tx: shelf.read_tree(tx, source))
    if tree is None:
        return Problem(
            404, R.SOURCE_UNKNOWN.value, R.SOURCE_UNKNOWN.text, f"`GET /ingest/sources` lists them: {source}"
        )
    return Reply(tree)


def _filter(query: ListQuery) -> views.Filter:
    return views.Filter(
        source=query.source,
        endpoint=query.endpoint,
        operation=query.operation,
        status=query.status,
        plan_id=query.plan,
        limit=query.limit,
    )


def _plans(request: Request) -> Plans:
    return Plans(plans=request.patra.db.read(lambda tx: views.plans(tx, _filter(request.query))))


def _tasks(request: Request) -> Tasks:
    return Tasks(tasks=request.patra.db.read(lambda tx: views.tasks(tx, _filter(request.query))))


def _queue(request: Request) -> Queue:
    query: ListQuery = request.query
    return Queue(queue=request.patra.db.read(lambda tx: views.queue(tx, query.source, query.operation)))


def _lineage(request: Request) -> views.Lineage | Problem:
    try:
        return request.patra.db.read(lambda tx: views.lineage(tx, request.path["plan"]))
    except Invalid as error:
        return _missing(error)


def _missing(error: Invalid) -> Problem:
    """What stands in the path and is not there: the address leads nowhere."""
    if error.code not in UNKNOWN:
        raise error
    return Problem(404, error.code, "There is nothing of this name", error.detail, {"advice": error.advice})


def _plan(request: Request) -> Made | Problem:
    wish: Wish = request.body
    trigger = Trigger(
        source=wish.source,
        endpoint=wish.endpoint,
        operation=Operation(wish.operation),
        since=_instant(wish.since, "since"),
        until=_instant(wish.until, "until"),
        params=wish.params,
        ids=tuple(wish.ids),
        activity=wish.activity,
    )
    made = Planner(request.patra.db, request.patra.clock).trigger(trigger)
    request.act(lambda _: None, f"{wish.source}/{wish.endpoint}", outcome=made.outcome.value, plan=made.plan_id)
    refused = made.plan_id is None and made.schedule_instance_id is not None
    return _refused(made) if refused else _made(made)


def _refused(made: Planned) -> Problem:
    told = msgspec.to_builtins(_made(made))
    extra = {name: told[name] for name in ("outcome", "plan", "slices", "problems")}
    return Problem(422, made.outcome.value, made.outcome.text, told["detail"], extra)


def _made(made: Planned) -> Made:
    return Made(
        outcome=made.outcome.value,
        detail=made.detail or made.outcome.text,
        plan=made.plan_id,
        status=made.status,
        slices=made.slices,
        problems=[str(problem) for problem in made.problems],
    )


def _instant(text: str | None, name: str) -> int | None:
    if text is None:
        return None
    found = parse_instant(text)
    if found is None:
        raise Invalid("i_window_invalid", f"{text!r} is no instant", place=name, advice="write 2026-01-31T00:00:00Z")
    return found


def _done(request: Request, work: Callable[[Tx], operations.Act]) -> Done | Problem:
    """Do it with its audit row in one transaction."""

    def both(tx: Tx) -> operations.Act:
        act = work(tx)
        request.audit(tx, act.subject, {**act.detail, "changed": act.changed})
        return act

    try:
        act = request.patra.db.run(both)
    except Invalid as error:
        return _missing(error)
    request.audited = True
    return Done(act=act.act, subject=act.subject, changed=act.changed)


def _pause(request: Request) -> Done | Problem:
    why: Why = request.body
    by = request.actor.name if request.actor else "local"
    now = request.patra.clock.now()
    source = request.path["source"]
    return _done(request, lambda tx: operations.pause(tx, source, why.endpoint, by=by, why=why.why, now=now))


def _resume(request: Request) -> Done | Problem:
    why: Why = request.body
    return _done(request, lambda tx: operations.resume(tx, request.path["source"], why.endpoint))


def _lift(request: Request) -> Done | Problem:
    why: Why = request.body
    return _done(request, lambda tx: operations.lift_breaker(tx, request.path["source"], why.endpoint, why=why.why))


def _cancel_plan(request: Request) -> Done | Problem:
    why, now = request.body.why, request.patra.clock.now()
    return _done(request, lambda tx: operations.cancel_plan(tx, request.path["plan"], why=why, now=now))


def _cancel_slice(request: Request) -> Done | Problem:
    why, now = request.body.why, request.patra.clock.now()
    return _done(request, lambda tx: operations.cancel_slice(tx, request.path["slice"], why=why, now=now))


def _cancel_task(request: Request) -> Done | Problem:
    why, now = request.body.why, request.patra.clock.now()
    return _done(request, lambda tx: operations.cancel_task(tx, request.path["task"], why=why, now=now))


def _requeue(request: Request) -> Done | Problem:
    why, now = request.body.why, request.patra.clock.now()
    return _done(request, lambda tx: operations.requeue_task(tx, request.path["task"], why=why, now=now))
