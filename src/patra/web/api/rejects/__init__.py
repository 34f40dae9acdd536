"""What was refused, over HTTP: rejected events and when they came, refused batches, what was turned away. For viewers.

`/attribution/rejects/over-time` counts the latest of a span, so that it costs the same however many there are.
"""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from patra.attribution.queries import (
    LAST_PLACE,
    RefusedView,
    RejectsOverTime,
    RejectsPage,
    list_refused,
    reject_place,
    rejects,
    rejects_over_time,
)
from patra.attribution.turned_away import TurnedAwayView, turned_away
from patra.kernel.clock import parse_instant
from patra.web.endpoint import Endpoint, EndpointGroup, Handler, Request
from patra.web.problem import Problem

TAG = "attribution"
LATEST = 2**62
CAUSES_SHOWN = 50
Since = Annotated[str, Meta(description="From this instant on, RFC 3339.")]
Until = Annotated[str, Meta(description="Before this instant, RFC 3339.")]


class RejectsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    batchId: Annotated[str, Meta(description="Only events of this batch.")] = ""  # noqa: N815  as in the specification
    code: Annotated[str, Meta(description="Only events with this reason code.")] = ""
    quarantined: Annotated[bool, Meta(description="Only events in quarantine, with their payload.")] = False
    since: Since = ""
    until: Until = ""
    before: Annotated[
        str, Meta(description="Only events received before this instant, or after the page whose `next` this is.")
    ] = ""
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class OverTimeQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    code: Annotated[str, Meta(description="Only events with this reason code.")] = ""
    quarantined: Annotated[bool, Meta(description="Only events in quarantine.")] = False
    since: Since = ""
    until: Until = ""
    parts: Annotated[int, Meta(ge=1, le=400, description="Into how many parts the time is cut.")] = 60


class RefusedQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    batchId: Annotated[str, Meta(description="Only batches of this id.")] = ""  # noqa: N815
    code: Annotated[str, Meta(description="Only batches that were refused with this code.")] = ""
    before: Annotated[int, Meta(ge=0, le=LATEST, description="`number` of the last one of the page before.")] = LATEST
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class RefusedBatches(msgspec.Struct, frozen=True, kw_only=True):
    refused: list[RefusedView]


class TurnedAwayQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    code: Annotated[str, Meta(description="Only batches that were turned away with this code.")] = ""
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class TurnedAwayBatches(msgspec.Struct, frozen=True, kw_only=True):
    batches: list[TurnedAwayView]


def _rejects(request: Request) -> RejectsPage | Problem:
    asked: RejectsQuery = request.query
    place = reject_place(asked.before) if asked.before else LAST_PLACE
    since, until = parse_instant(asked.since), parse_instant(asked.until)
    if place is None:
        return _no_instant("before")
    if wrong := _not_a_span(asked, since, until):
        return wrong
    if until is not None:
        place = min(place, (until, LAST_PLACE[1]))
    return request.patra.db.read(
        lambda tx: rejects(
            tx,
            batch_id=asked.batchId,
            code=asked.code,
            quarantined=asked.quarantined,
            before=place,
            since=since or 0,
            limit=asked.limit,
        )
    )


def _over_time(request: Request) -> RejectsOverTime | Problem:
    asked: OverTimeQuery = request.query
    since, until = parse_instant(asked.since), parse_instant(asked.until)
    if wrong := _not_a_span(asked, since, until):
        return wrong
    until = request.patra.clock.now() + 1 if until is None else until
    found = request.patra.db.read(
        lambda tx: rejects_over_time(
            tx, code=asked.code, quarantined=asked.quarantined, since=since, until=until, parts=asked.parts
        )
    )
    return msgspec.structs.replace(found, causes=found.causes[:CAUSES_SHOWN])


def _not_a_span(asked: RejectsQuery | OverTimeQuery, since: int | None, until: int | None) -> Problem | None:
    if (asked.since and since is None) or (asked.until and until is None):
        return _no_instant("since" if asked.since and since is None else "until")
    if since is not None and until is not None and since >= until:
        return Problem(400, "span_invalid", "The span ends before it begins")
    return None


def _no_instant(name: str) -> Problem:
    return Problem(400, "instant_invalid", f"{name} is not an RFC 3339 instant with an offset")


def _list_refused(request: Request) -> RefusedBatches:
    asked: RefusedQuery = request.query
    found = request.patra.db.read(
        lambda tx: list_refused(tx, batch_id=asked.batchId, code=asked.code, before=asked.before, limit=asked.limit)
    )
    return RefusedBatches(refused=found)


def _turned_away(request: Request) -> TurnedAwayBatches:
    asked: TurnedAwayQuery = request.query
    code = "" if "\x00" in asked.code else asked.code
    return TurnedAwayBatches(batches=request.patra.db.read(lambda tx: turned_away(tx, code=code, limit=asked.limit)))


def reject_routes() -> list[Endpoint]:
    return [
        _reading("/attribution/rejects", _rejects, "Rejected events, the newest first", RejectsPage, RejectsQuery),
        _reading(
            "/attribution/rejects/over-time",
            _over_time,
            "When events were rejected and for what, as counts on an axis of time",
            RejectsOverTime,
            OverTimeQuery,
            description="Without `since` from the first of them on, without `until` to now. An event that was sent "
            "again counts once. The latest 10,000 of the span are counted; with `more` the axis begins with them.",
        ),
        _reading(
            "/attribution/refused",
            _list_refused,
            "Batches that were refused as a whole, the newest first",
            RefusedBatches,
            RefusedQuery,
        ),
        _reading(
            "/attribution/turned-away",
            _turned_away,
            "Batches that were turned away unread (401, 403, 413, 415, overload), the newest first",
            TurnedAwayBatches,
            TurnedAwayQuery,
        ),
    ]


def _reading(path: str, handler: Handler, summary: str, response: Any, query: Any, **more: Any) -> Endpoint:
    return EndpointGroup(TAG).get(path, handler, summary, response, query, **more)
