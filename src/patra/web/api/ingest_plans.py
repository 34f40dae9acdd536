"""Plans made and previewed over HTTP, and schedules turned on, off and run now (ch. 5.2.1, 5.9)."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from patra.ingest.planning import operations
from patra.ingest.planning.limits.cost import Cost
from patra.ingest.planning.planner import Planned, Planner
from patra.ingest.planning.schedule_run import run_schedule
from patra.ingest.planning.trigger import Trigger
from patra.ingest.vocabulary.codes import Operation
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.clock import format_instant, parse_instant
from patra.kernel.errors import Invalid
from patra.kernel.ids import new_id
from patra.web.api.ingest_acts import TAG, Done, act_audited, missing
from patra.web.auth import LOCAL
from patra.web.endpoint import Endpoint, EndpointGroup, Request
from patra.web.problem import Problem

Operations = Literal["HARVEST", "BACKFILL", "UPDATE"]
Text = Annotated[str, Meta(max_length=200)]
NO_SCHEDULE = frozenset({Reason.SCHEDULE_UNKNOWN})


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


class RereadWish(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A window that was read and is to be read again."""

    source: Text
    endpoint: Text
    since: Annotated[str, Meta(max_length=40, description="Start of the window, RFC 3339.")]
    until: Annotated[str, Meta(max_length=40, description="End of the window, not included.")]
    why: Annotated[str, Meta(min_length=1, max_length=500, description="The reason, for the audit.")]


class ScheduleWish(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which schedule, and why."""

    job: Annotated[str, Meta(min_length=1, max_length=400, description="SOURCE/NAME, as in `GET /ingest/schedules`.")]
    why: Annotated[str, Meta(max_length=500, description="The reason, for the audit.")] = ""


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome; without a plan, `outcome` and `detail` say why."""

    outcome: str
    detail: str
    plan: str | None
    status: str | None
    slices: int
    problems: list[str]


class PreviewQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The trigger whose plan is looked at."""

    source: Text
    endpoint: Text
    operation: Operations = "HARVEST"
    since: Annotated[str | None, Meta(description="Start of the window, RFC 3339.")] = None
    until: Annotated[str | None, Meta(description="End of the window, not included.")] = None
    params: Annotated[str, Meta(description="Values of the pack's parameters, as a JSON object.")] = "{}"
    activity: Annotated[str | None, Meta(description="BACKFILL, UPDATE: name of the campaign.")] = None


class Previewed(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan would be; without a cost, `outcome` and `detail` say why there would be none."""

    outcome: str
    detail: str
    since: str | None
    until: str | None
    cost: Cost | None
    problems: list[str]


def routes() -> list[Endpoint]:
    group = EndpointGroup(TAG)
    return [
        group.post(
            "/ingest/plans",
            _plan,
            "ingest.plan",
            "Make a plan",
            description="Asking twice adds nothing: what is done or under way is not planned again.",
            request=Wish,
            response=Made,
            problems={422: "The trigger was refused; the body says why, with the line of the pack where there is one."},
        ),
        group.post(
            "/ingest/reread",
            _reread_windows,
            "ingest.reread",
            "Plan to read a finished window again",
            description="A BACKFILL of its own name: the watermark stays where it is, and known records are compared, "
            "not doubled.",
            request=RereadWish,
            response=Made,
            problems={422: "The trigger was refused; the body says why."},
        ),
        *(
            group.post(
                f"/ingest/schedules/{verb}",
                handler,
                f"ingest.{verb}_schedule",
                summary,
                request=ScheduleWish,
                response=response,
                problems={404: "There is no such schedule."},
            )
            for verb, handler, response, summary in (
                ("enable", _enable, Done, "Turn a schedule on, whatever its pack says"),
                ("disable", _disable, Done, "Turn a schedule off, whatever its pack says"),
                ("run", _run_schedule, Made, "Plan what a schedule would plan, now; also one that is off"),
            )
        ),
        group.get(
            "/ingest/preview",
            _preview,
            "What a plan would cost",
            Previewed,
            PreviewQuery,
            description="Windows, requests, quota and time at the declared rate, from history where there is one. "
            "Nothing is written.",
            problems={422: "The trigger would be refused; the body says why."},
        ),
    ]


def _preview(request: Request) -> Previewed | Problem:
    found = Planner(request.patra.db, request.patra.clock).preview(_trigger(_wish(request.query)), 0)
    told = Previewed(
        outcome=found.outcome.value,
        detail=found.detail or found.outcome.text,
        since=format_instant(found.window.start) if found.window else None,
        until=format_instant(found.window.end) if found.window else None,
        cost=found.cost,
        problems=[str(problem) for problem in found.problems],
    )
    if found.is_refused:
        return Problem(422, told.outcome, found.outcome.text, told.detail, {"problems": told.problems})
    return told


def _wish(query: PreviewQuery) -> Wish:
    try:
        params = msgspec.json.decode(query.params, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError) as error:
        advice = 'a JSON object: {"query": "otters"}'
        raise Invalid("i_param_invalid", str(error), place="params", advice=advice) from None
    return Wish(
        source=query.source,
        endpoint=query.endpoint,
        operation=query.operation,
        since=query.since,
        until=query.until,
        params=params,
        activity=query.activity,
    )


def _trigger(wish: Wish) -> Trigger:
    return Trigger(
        source=wish.source,
        endpoint=wish.endpoint,
        operation=Operation(wish.operation),
        since=instant(wish.since, "since"),
        until=instant(wish.until, "until"),
        params=wish.params,
        ids=tuple(wish.ids),
        activity=wish.activity,
    )


def _plan(request: Request) -> Made | Problem:
    wish: Wish = request.body
    trigger = _trigger(wish)
    made = Planner(request.patra.db, request.patra.clock).trigger(trigger)
    request.act(lambda _: None, f"{wish.source}/{wish.endpoint}", outcome=made.outcome.value, plan=made.plan_id)
    return _refuse_trigger(made) if made.is_refused else _made_plan(made)


def _reread_windows(request: Request) -> Made | Problem:
    wish: RereadWish = request.body
    trigger = Trigger(
        source=wish.source,
        endpoint=wish.endpoint,
        operation=Operation.BACKFILL,
        since=instant(wish.since, "since"),
        until=instant(wish.until, "until"),
        activity=f"reread-{new_id()}",
    )
    made = Planner(request.patra.db, request.patra.clock).trigger(trigger)
    told = {"why": wish.why, "since": wish.since, "until": wish.until, "plan": made.plan_id}
    request.act(lambda _: None, f"{wish.source}/{wish.endpoint}", outcome=made.outcome.value, **told)
    return _refuse_trigger(made) if made.is_refused else _made_plan(made)


def _enable(request: Request) -> Done | Problem:
    return _switch(request, enabled=True)


def _disable(request: Request) -> Done | Problem:
    return _switch(request, enabled=False)


def _switch(request: Request, *, enabled: bool) -> Done | Problem:
    wish: ScheduleWish = request.body
    by, now = (request.actor or LOCAL).name, request.patra.clock.now()
    return act_audited(
        request,
        lambda tx: operations.switch_schedule(tx, wish.job, enabled=enabled, by=by, why=wish.why, now=now),
        NO_SCHEDULE,
    )


def _run_schedule(request: Request) -> Made | Problem:
    wish: ScheduleWish = request.body
    patra = request.patra
    try:
        entry = patra.db.read(lambda tx: operations.known_schedule(tx, wish.job))
    except Invalid as error:
        return missing(error, NO_SCHEDULE)
    made = run_schedule(patra.db, patra.clock, entry)
    request.act(lambda _: None, wish.job, outcome=made.outcome.value, plan=made.plan_id, why=wish.why)
    return _refuse_trigger(made) if made.is_refused else _made_plan(made)


def _refuse_trigger(made: Planned) -> Problem:
    told = msgspec.to_builtins(_made_plan(made))
    extra = {name: told[name] for name in ("outcome", "plan", "slices", "problems")}
    return Problem(422, made.outcome.value, made.outcome.text, told["detail"], extra)


def _made_plan(made: Planned) -> Made:
    return Made(
        outcome=made.outcome.value,
        detail=made.detail or made.outcome.text,
        plan=made.plan_id,
        status=made.status,
        slices=made.slices,
        problems=[str(problem) for problem in made.problems],
    )


def instant(text: str | None, name: str) -> int | None:
    """An instant of a query or a body; None where none was given."""
    if text is None:
        return None
    found = parse_instant(text)
    if found is None:
        raise Invalid(
            "i_window_invalid", f"{text!r} is not an instant", place=name, advice="write 2026-01-31T00:00:00Z"
        )
    return found
