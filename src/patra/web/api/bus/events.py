"""Reads of events: the log backwards, events by a key, what happened to them; each may be narrowed to one tenant."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from patra.bus.publishing.cloudevents import structure_event
from patra.bus.publishing.envelope import decode_trusted
from patra.bus.store import events
from patra.bus.timeline import timeline
from patra.kernel.clock import format_instant
from patra.kernel.db import Tx
from patra.web.api.bus.shapes import MAX_PAGE_ROWS, Happened, Timeline, to_shape
from patra.web.endpoint import Endpoint, EndpointGroup, Reply, Request

TenantFilter = Annotated[str, Meta(max_length=400, description="Only events of this tenant.")]


class TenantQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    tenant_id: TenantFilter = ""


class EventsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    type: Annotated[str, Meta(max_length=400, description="Only events of this type.")] = ""
    tenant_id: TenantFilter = ""
    before: Annotated[int, Meta(ge=0, le=events.LATEST, description="`next` of the page before.")] = events.LATEST
    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE_ROWS, description="How many events at most.")] = 100


class EventLine(msgspec.Struct, frozen=True, kw_only=True):
    """An event without its payload; `seq` is its place in the log, `published_by` who handed it in (B7)."""

    seq: int
    event_id: str
    event_type: str
    event_version: str
    producer: str
    tenant_id: str
    project_id: str
    trace_id: str
    correlation_id: str
    idempotency_key: str
    occurred_at: str
    published_at: str
    published_by: str | None


class EventLines(msgspec.Struct, frozen=True, kw_only=True):
    """The newest first. A page may be short or empty while `next` says where the log goes on."""

    events: list[EventLine]
    next: int | None


def routes(tag: str) -> list[Endpoint]:
    get = EndpointGroup(tag).get
    return [
        get(
            "/bus/events",
            _log,
            "Events of the log without their payloads, the newest first",
            EventLines,
            query=EventsQuery,
            tenant_query="tenant_id",
            description=f"A page looks through {events.PAGE_SCAN_ROWS:,} events of the log at most: go on with `next`"
            " as `before` until it is null.",
        ),
        get(
            "/bus/events/{key}",
            _by_key,
            "Events by event_id, trace_id or correlation_id, as CloudEvents",
            Any,
            query=TenantQuery,
            tenant_query="tenant_id",
        ),
        get(
            "/bus/timeline/{key}",
            _timeline,
            "What happened to an event or a trace, in order",
            Timeline,
            query=TenantQuery,
            tenant_query="tenant_id",
        ),
    ]


def _log(request: Request) -> EventLines:
    query: EventsQuery = request.query
    page = request.patra.db.read(
        lambda tx: events.page_before(
            tx, query.before, limit=query.limit, event_type=query.type, tenant_id=query.tenant_id
        )
    )
    return EventLines(events=[_line(one, one.body) for one in page.events if one.body is not None], next=page.next)


def _line(one: events.Stored, body: str) -> EventLine:
    envelope = decode_trusted(body)
    return EventLine(
        seq=one.seq,
        event_id=one.event_id,
        event_type=one.event_type,
        event_version=envelope.event_version,
        producer=envelope.producer,
        tenant_id=one.tenant_id,
        project_id=envelope.project_id,
        trace_id=envelope.trace_id,
        correlation_id=envelope.correlation_id,
        idempotency_key=envelope.idempotency_key,
        occurred_at=format_instant(envelope.occurred_at),
        published_at=format_instant(one.published_at),
        published_by=one.published_by,
    )


def _by_key(request: Request) -> Reply:
    key, tenant_id = request.path["key"], request.query.tenant_id

    def look(tx: Tx) -> list[events.Stored]:
        return (
            events.by_id(tx, key, tenant_id)
            or events.by_trace(tx, key, tenant_id=tenant_id)
            or events.by_correlation(tx, key, tenant_id=tenant_id)
        )

    found = request.patra.db.read(look)
    return Reply([structure_event(decode_trusted(row.body)) for row in found if row.body is not None])


def _timeline(request: Request) -> Timeline:
    key, tenant_id = request.path["key"], request.query.tenant_id
    found = request.patra.db.read(lambda tx: timeline(tx, key, tenant_id=tenant_id))
    return Timeline(entries=[to_shape(entry, Happened) for entry in found])
