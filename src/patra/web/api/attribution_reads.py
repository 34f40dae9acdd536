"""What was decided, and why, over HTTP: decisions, timelines, closures, settlement. For viewers."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from patra.attribution.decision.decisions import Decision
from patra.attribution.queries import (
    ArchiveDelivery,
    ClosureView,
    Deadlines,
    Span,
    Timeline,
    What,
    answer_of,
    archive_delivery,
    closure_by_key,
    closures,
    closures_by_deadline,
    deadlines,
    events_of_batch,
    listing,
    newest_decisions,
    page_of_decisions,
    timeline,
)
from patra.attribution.settlement import Settlement, settle
from patra.attribution.storage.key_search import Only
from patra.kernel.clock import parse_instant
from patra.kernel.safety.redact import redact
from patra.web.endpoint import Endpoint, EndpointGroup, Handler, Request
from patra.web.problem import Problem

TAG = "attribution"
LATEST = 2**62


class Page(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    after: Annotated[int, Meta(ge=-1, le=LATEST, description="Decisions that follow this number.")] = -1
    limit: Annotated[int, Meta(ge=1, le=1000, description="How many to give.")] = 100


class TimelineQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    appId: Annotated[str, Meta(description="Only events of this app.")] = ""  # noqa: N815  names of the specification
    code: Annotated[str, Meta(description="Only decisions with this reason code.")] = ""
    after: Annotated[int, Meta(ge=-1, le=LATEST, description="`next` of the page before.")] = -1
    limit: Annotated[int, Meta(ge=1, le=1000, description="How many to give.")] = 1000


class EventsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    batchId: Annotated[str, Meta(description="The batch.")]  # noqa: N815
    eventId: Annotated[str, Meta(description="Only this event of it.")] = ""  # noqa: N815
    appId: Annotated[str, Meta(description="Only events of this app.")] = ""  # noqa: N815
    code: Annotated[str, Meta(description="Only decisions with this reason code.")] = ""
    after: Annotated[int, Meta(ge=-1, le=LATEST, description="`next` of the page before.")] = -1
    limit: Annotated[int, Meta(ge=1, le=1000, description="How many to give.")] = 1000


class NewestQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    appId: Annotated[str, Meta(description="Only events of this app.")] = ""  # noqa: N815
    type: Annotated[str, Meta(description="Only events of this type.")] = ""
    code: Annotated[str, Meta(description="Only decisions with this reason code.")] = ""
    answer: Annotated[
        Literal["", "accepted", "duplicate", "rejected", "timer"],
        Meta(description="Only events that were answered so; `timer`: what a deadline decided."),
    ] = ""
    since: Annotated[str, Meta(description="Only decisions from this instant on.")] = ""
    until: Annotated[str, Meta(description="Only decisions before this instant.")] = ""
    before: Annotated[int, Meta(ge=0, le=LATEST, description="`next` of the page before.")] = LATEST
    limit: Annotated[int, Meta(ge=1, le=200, description="How many to give.")] = 50


class ClosuresQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    state: Annotated[
        Literal["", "open", "closed_success", "closed_failure"], Meta(description="Only closures in this state.")
    ] = ""
    order: Annotated[
        Literal["", "deadline"],
        Meta(description="`deadline`: those that wait, the one that is due first before the others."),
    ] = ""
    appId: Annotated[str, Meta(description="Only closures of this app; with `order=deadline`.")] = ""  # noqa: N815
    dueBefore: Annotated[  # noqa: N815
        str, Meta(description="Only closures whose deadline lies before this instant; with `order=deadline`.")
    ] = ""
    after: Annotated[str, Meta(pattern="^([0-9a-f]{2})*$", description="`next` of the page before.")] = ""
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class SettlementQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    begin: Annotated[str, Meta(description="First instant of `factAt`, RFC 3339.")]
    end: Annotated[str, Meta(description="First instant that no longer counts.")]
    by: Literal["app", "day", "placement"] = "app"


class ListingQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    key: Annotated[str, Meta(description="Only what carries this key.")] = ""
    appId: Annotated[str, Meta(description="Only what is of this app.")] = ""  # noqa: N815
    after: Annotated[int, Meta(ge=-1, le=LATEST, description="`next` of the page before.")] = -1
    limit: Annotated[int, Meta(ge=1, le=1000, description="How many decisions to look at.")] = 100


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """Objects of the specification, in the order of decision."""

    items: list[dict[str, Any]]
    next: int | None


class Closures(msgspec.Struct, frozen=True, kw_only=True):
    closures: list[ClosureView]
    next: str | None


def _timeline(request: Request) -> Timeline:
    key, asked = request.path["key"], request.query
    only = Only(app=asked.appId, code=asked.code)
    found = request.patra.db.read(lambda tx: timeline(tx, key, only, after=asked.after, limit=asked.limit))
    return _mask_timeline(found)


def _events(request: Request) -> Timeline:
    asked: EventsQuery = request.query
    only = Only(app=asked.appId, code=asked.code)
    found = request.patra.db.read(
        lambda tx: events_of_batch(tx, asked.batchId, asked.eventId, only, after=asked.after, limit=asked.limit)
    )
    return _mask_timeline(found)


def _newest(request: Request) -> Timeline | Problem:
    asked: NewestQuery = request.query
    span = Span(since=parse_instant(asked.since), until=parse_instant(asked.until))
    if (asked.since and span.since is None) or (asked.until and span.until is None):
        return _no_instant("since" if asked.since and span.since is None else "until")

    def meets(_: int, decision: Decision) -> bool:
        subject = decision.subject
        return (
            asked.appId in ("", subject.app)
            and asked.type in ("", subject.event_type)
            and asked.code in ("", decision.reason)
            and asked.answer in ("", answer_of(decision))
        )

    found = request.patra.db.read(
        lambda tx: newest_decisions(tx, meets, before=asked.before, limit=asked.limit, span=span)
    )
    return _mask_timeline(found)


def _archive(request: Request) -> ArchiveDelivery:
    where = request.patra.settings.attribution.archive
    return request.patra.db.read(lambda tx: archive_delivery(tx, where))


def _listing(what: What) -> Callable[[Request], Listing]:
    def handler(request: Request) -> Listing:
        asked: ListingQuery = request.query
        only = Only(app=asked.appId)
        items, following = request.patra.db.read(
            lambda tx: listing(tx, what, key=asked.key, only=only, after=asked.after, limit=asked.limit)
        )
        return Listing(items=items, next=following)

    return handler


def _decisions(request: Request) -> Timeline:
    page: Page = request.query
    return _mask_timeline(request.patra.db.read(lambda tx: page_of_decisions(tx, page.after, page.limit)))


def _mask_timeline(found: Timeline) -> Timeline:
    """Without secrets and personal data in what SDKs wrote; keys are left as they are, since others ask by them."""
    replace = msgspec.structs.replace
    return replace(found, decisions=[replace(one, detail=redact(one.detail)) for one in found.decisions])


def _closure(request: Request) -> ClosureView | Problem:
    key = request.path["key"]
    found = request.patra.db.read(lambda tx: closure_by_key(tx, key))
    return found or Problem(404, "closure_unknown", "There is no such closure", f"{key!r} was never opened.")


def _closures(request: Request) -> Closures | Problem:
    asked: ClosuresQuery = request.query
    after = bytes.fromhex(asked.after)
    if asked.order == "deadline":
        until = parse_instant(asked.dueBefore) if asked.dueBefore else LATEST
        if until is None:
            return _no_instant("dueBefore")
        found = request.patra.db.read(
            lambda tx: closures_by_deadline(tx, after=after, until=until, app=asked.appId, limit=asked.limit)
        )
    elif asked.appId or asked.dueBefore:
        return Problem(400, "query_invalid", "appId and dueBefore need order=deadline")
    else:
        page = request.patra.db.read(lambda tx: closures(tx, state=asked.state, after=after, limit=asked.limit))
        return Closures(closures=page.closures, next=page.next.hex() if page.next else None)
    more = found[-1][0].hex() if len(found) == asked.limit else None
    return Closures(closures=[view for _, view in found], next=more)


def _deadlines(request: Request) -> Deadlines:
    now = request.patra.clock.now()
    return request.patra.db.read(lambda tx: deadlines(tx, now))


def settlement(request: Request) -> Settlement | Problem:
    """What may be billed between two instants."""
    asked: SettlementQuery = request.query
    begin, end = parse_instant(asked.begin), parse_instant(asked.end)
    if begin is None or end is None:
        return _no_instant("begin" if begin is None else "end")
    if begin > end:
        return Problem(400, "span_invalid", "begin lies after end")
    return request.patra.db.read(lambda tx: settle(tx, begin, end, asked.by))


def _no_instant(name: str) -> Problem:
    return Problem(400, "instant_invalid", f"{name} is not an RFC 3339 instant with an offset")


LISTINGS: tuple[tuple[str, What, str], ...] = (
    ("facts/billable", "billable", "`billableFactLite`, with the status of its record"),
    ("facts/attribution", "attribution", "`attributionFactLite`, with the status of its record"),
    ("audits", "audits", "`factDecisionAuditLite`, with how often the decision was made"),
    ("records", "records", "`fToGArchiveRecordLite`"),
)


def read_routes() -> list[Endpoint]:
    return [
        _reading("/attribution/decisions", _decisions, "All decisions, in their order", Timeline, Page),
        _reading(
            "/attribution/timeline/{key:path}",
            _timeline,
            "The decisions that carry a key: batch, event, trace, closure, billing, record, fact, app …",
            Timeline,
            TimelineQuery,
        ),
        _reading(
            "/attribution/events",
            _events,
            "What was decided about the events of a batch, by batchId, eventId and reason code",
            Timeline,
            EventsQuery,
        ),
        _reading(
            "/attribution/newest",
            _newest,
            "The latest decisions first; a page looks at a bounded part of the log, and `next` goes on",
            Timeline,
            NewestQuery,
        ),
        _reading("/attribution/archive", _archive, "Records on their way to the archive", ArchiveDelivery),
        *(
            _reading(f"/attribution/{path}", _listing(what), summary, Listing, ListingQuery)
            for path, what, summary in LISTINGS
        ),
        _reading("/attribution/closures", _closures, "Closures, by state or by deadline", Closures, ClosuresQuery),
        _reading(
            "/attribution/deadlines", _deadlines, "How many closures are due, in steps of seconds from now", Deadlines
        ),
        _reading(
            "/attribution/closures/{key:path}",
            _closure,
            "One closure, and how far its records have come",
            ClosureView,
            problems={404: "There is no such closure"},
        ),
        _reading(
            "/attribution/settlement",
            settlement,
            "Committed billable facts between two instants, by app, day or placement",
            Settlement,
            SettlementQuery,
        ),
    ]


def _reading(path: str, handler: Handler, summary: str, response: Any, query: Any = None, **more: Any) -> Endpoint:
    return EndpointGroup(TAG).get(path, handler, summary, response, query, app_query=app_parameter(query), **more)


def app_parameter(query: type[msgspec.Struct] | None) -> str:
    """The query parameter that narrows the answer to one app."""
    return next((name for name in ("appId", "app") if query is not None and name in query.__struct_fields__), "")
