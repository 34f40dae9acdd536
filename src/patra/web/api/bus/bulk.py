"""Acts on many dead letters over HTTP: their causes, what a query would touch, the act, how far it is (C§6)."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from patra.app.components.bus import bus_of
from patra.bus import bulk_acts
from patra.bus.consuming.dead_letter import DeadLetterState, Filter
from patra.bus.publishing.envelope import Refused
from patra.kernel.clock import HOUR, format_instant, parse_instant
from patra.kernel.db import Tx
from patra.kernel.safety.redact import redact_text
from patra.web.api.bus.shapes import instants, problem
from patra.web.auth import LOCAL
from patra.web.endpoint import Endpoint, EndpointGroup, Request
from patra.web.problem import Problem

TAG = "bus"
Text = Annotated[str, Meta(max_length=400)]
HOURS = 24
UNKNOWN = {404: "There is no such act."}


class CauseLine(msgspec.Struct, frozen=True, kw_only=True):
    """Dead letters of one group, type and error code; `detail` is what the latest of them said."""

    group: str
    event_type: str
    error_code: str
    detail: str
    letters: int
    first_failed_at: str
    last_failed_at: str
    replayed_before: int


class CauseOverTime(CauseLine, frozen=True, kw_only=True):
    """With how many failed last in each of the last 24 hours, the earliest first."""

    hours: list[int]


class Causes(msgspec.Struct, frozen=True, kw_only=True):
    causes: list[CauseOverTime]


class CauseQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    group: Annotated[str, Meta(description="Only dead letters of this consumer group.")] = ""
    type: Annotated[str, Meta(description="Only dead letters of this event type.")] = ""
    error_code: Annotated[str, Meta(description="Only dead letters with this error code.")] = ""
    tenant_id: Annotated[str, Meta(description="Only dead letters of this tenant.")] = ""
    state: Annotated[Literal["open", "replaying", "replayed", "discarded"], Meta(description="In this state.")] = "open"


class PreviewQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    group: Annotated[str, Meta(min_length=1, description="The consumer group.")]
    type: Annotated[str, Meta(description="Only dead letters of this event type.")] = ""
    error_code: Annotated[str, Meta(description="Only dead letters with this error code.")] = ""


class BulkPreview(msgspec.Struct, frozen=True, kw_only=True):
    """What an act on all of them would touch; `sample` are the event ids of the latest.

    An act that is begun with this `as_of` touches no dead letter that failed later.
    """

    letters: int
    replayed_before: int
    causes: list[CauseLine]
    sample: list[str]
    sample_breaking_contract: int
    as_of: str


class BulkAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Replay or discard every open dead letter of a group that `type` and `error_code` find."""

    act: Literal["replay", "discard"]
    group: Text
    confirm: Annotated[str, Meta(description="The name of the group once more.")]
    type: Text = ""
    error_code: Text = ""
    why: Annotated[str, Meta(max_length=500, description="A discard needs a reason.")] = ""
    as_of: Annotated[
        str, Meta(max_length=40, description="`as_of` of a preview: dead letters that failed later are left alone.")
    ] = ""


class BulkLine(msgspec.Struct, frozen=True, kw_only=True):
    """An act on many dead letters; `refused` were no longer open when their turn came."""

    act_id: str
    act: str
    group: str
    type: str
    error_code: str
    by: str
    why: str
    begun_at: str
    ended_at: str | None
    state: str
    total: int
    moved: int
    refused: int
    left: int
    last_code: str


class BulkProgress(BulkLine, frozen=True, kw_only=True):
    """With the results for its dead letters so far, and how many have failed in the same way since."""

    letters: dict[str, int]
    new_since: int


class BulkLines(msgspec.Struct, frozen=True, kw_only=True):
    acts: list[BulkLine]
    next: str | None


class BulkQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    before: Annotated[str, Meta(max_length=80, description="Continue after this act_id.")] = ""
    limit: Annotated[int, Meta(ge=1, le=1000, description="How many.")] = 50


def routes() -> list[Endpoint]:
    group = EndpointGroup(TAG)
    get, post = group.get, group.post
    return [
        get(
            "/bus/dead-letters/causes",
            _causes,
            "Dead letters by what went wrong",
            Causes,
            query=CauseQuery,
            tenant_query="tenant_id",
        ),
        get(
            "/bus/dead-letters/preview",
            _preview,
            "What an act on all that a query finds would touch",
            BulkPreview,
            query=PreviewQuery,
        ),
        get("/bus/acts", _acts, "Acts on many dead letters, the latest first", BulkLines, query=BulkQuery),
        get("/bus/acts/{act_id}", _progress, "How far such an act is", BulkProgress, problems=UNKNOWN),
        post(
            "/bus/acts",
            _begin,
            "bus.bulk_act",
            "Replay or discard all dead letters that a query finds, in the background",
            description="They are fixed when it begins. `GET /bus/dead-letters/preview` says which they are.",
            request=BulkAsked,
            response=BulkLine,
            status=202,
            problems={400: "not confirmed by name, or a discard without a reason", 404: "there is no such group"},
        ),
        post(
            "/bus/acts/{act_id}/stop",
            _stop,
            "bus.bulk_stop",
            "Stop such an act after its current batch",
            response=BulkLine,
            problems=UNKNOWN,
        ),
    ]


def _wanted_filter(query: Any, state: str = "open") -> Filter:
    return Filter(
        group=query.group or None,
        event_type=query.type or None,
        error_code=query.error_code or None,
        state=DeadLetterState(state),
    )


def _cause(cause: bulk_acts.Cause) -> CauseLine:
    return CauseLine(**_cause_fields(cause))


def _cause_fields(cause: bulk_acts.Cause) -> dict[str, Any]:
    return instants(msgspec.to_builtins(cause)) | {"detail": redact_text(cause.detail)}


def _causes(request: Request) -> Causes:
    query: CauseQuery = request.query
    wanted = msgspec.structs.replace(_wanted_filter(query, query.state), tenant_id=query.tenant_id or None)
    until = request.patra.clock.now() + 1

    def read(tx: Tx) -> Causes:
        found = bulk_acts.causes_over_time(tx, wanted, until, parts=HOURS, step=HOUR)
        return Causes(causes=[CauseOverTime(**_cause_fields(one), hours=hours) for one, hours in found])

    return request.patra.db.read(read)


def _preview(request: Request) -> BulkPreview:
    bus = bus_of(request.patra).bus
    found = request.patra.db.read(lambda tx: bulk_acts.preview(tx, bus, _wanted_filter(request.query)))
    return BulkPreview(
        letters=found.letters,
        replayed_before=found.replayed_before,
        causes=[_cause(one) for one in found.causes],
        sample=found.sample,
        sample_breaking_contract=found.sample_breaking_contract,
        as_of=format_instant(found.as_of),
    )


def _line(act: bulk_acts.BulkAct) -> dict[str, Any]:
    return {
        "act_id": act.act_id,
        "act": act.kind,
        "group": act.group,
        "type": act.event_type,
        "error_code": act.error_code,
        "by": act.by,
        "why": redact_text(act.why),
        "begun_at": format_instant(act.begun_at),
        "ended_at": None if act.ended_at is None else format_instant(act.ended_at),
        "state": act.state,
        "total": act.total,
        "moved": act.moved,
        "refused": act.refused,
        "left": act.remaining,
        "last_code": act.last_code,
    }


def _acts(request: Request) -> BulkLines:
    query: BulkQuery = request.query
    found = request.patra.db.read(lambda tx: bulk_acts.acts(tx, limit=query.limit, before=query.before))
    following = found[-1].act_id if len(found) == query.limit else None
    return BulkLines(acts=[BulkLine(**_line(one)) for one in found], next=following)


def _progress(request: Request) -> BulkProgress | Problem:
    found = request.patra.db.read(lambda tx: bulk_acts.progress(tx, request.path["act_id"]))
    if isinstance(found, Refused):
        return problem(found)
    return BulkProgress(**_line(found.act), letters=found.states, new_since=found.new_since)


def _begin(request: Request) -> BulkLine | Problem:
    asked: BulkAsked = request.body
    bus, by = bus_of(request.patra).bus, (request.actor or LOCAL).name
    as_of = parse_instant(asked.as_of) if asked.as_of else None
    if asked.as_of and as_of is None:
        return Problem(422, "body_invalid", "`as_of` is not an instant such as 2026-01-31T08:00:00Z")
    wanted = msgspec.structs.replace(_wanted_filter(asked), failed_to=None if as_of is None else as_of + 1)
    return _act_audited(
        request,
        lambda tx: bulk_acts.begin(tx, bus, asked.act, wanted, by=by, confirm=asked.confirm, why=asked.why),
        asked.group,
        {"kind": asked.act, "type": asked.type, "error_code": asked.error_code, "why": asked.why},
    )


def _stop(request: Request) -> BulkLine | Problem:
    bus, act_id = bus_of(request.patra).bus, request.path["act_id"]
    return _act_audited(request, lambda tx: bulk_acts.stop(tx, bus, act_id), act_id, {})


def _act_audited(
    request: Request, work: Callable[[Tx], "bulk_acts.BulkAct | Refused"], subject: str, detail: dict[str, Any]
) -> BulkLine | Problem:
    """The act and its audit row; a refusal leaves none, since nothing was done."""

    def both(tx: Tx) -> bulk_acts.BulkAct | Refused:
        done = work(tx)
        if isinstance(done, bulk_acts.BulkAct):
            request.audit(tx, subject, {**detail, "act_id": done.act_id, "letters": done.total})
        return done

    done = request.patra.db.run(both)
    request.audited = True
    return problem(done) if isinstance(done, Refused) else BulkLine(**_line(done))
