"""Questions about sources, plans and tasks over HTTP; the routes of all that ingest offers (ch. 5.9, 14.7)."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from patra.app.wiring import Patra
from patra.ingest.operations.coverage import Coverage, coverage
from patra.ingest.operations.reads import drilldown, rates, views
from patra.ingest.packs import registry
from patra.ingest.planning import store
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.clock import DAY, format_instant
from patra.kernel.db import Tx
from patra.kernel.errors import Invalid
from patra.kernel.safety.redact import redact_text
from patra.web.api import ingest_acts, ingest_alerts, ingest_packs, ingest_plans, ingest_reads, ingest_replay
from patra.web.api.ingest_acts import NOT_THERE, TAG, missing
from patra.web.api.ingest_plans import instant
from patra.web.endpoint import Endpoint, EndpointGroup, Reply, Request
from patra.web.problem import Problem

WINDOWS_SPAN = 30 * DAY


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
    limit: Annotated[int, Meta(ge=1, le=1000, description="How many.")] = 100
    after: Annotated[str, Meta(max_length=2000, description="`next` of the last page.")] = ""


class TaskQuery(ListQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which tasks to list; an empty field stands for any."""

    plan: Annotated[str, Meta(max_length=80, description="Only of this plan.")] = ""


class QueueQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which part of the queue to count."""

    source: Annotated[str, Meta(max_length=200, description="Only this source.")] = ""
    operation: Annotated[str, Meta(max_length=20, description="Only this operation.")] = ""


class LineageQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which slices of the plan to show."""

    limit: Annotated[int, Meta(ge=1, le=1000, description="How many.")] = 100
    after: Annotated[str, Meta(max_length=300, description="The last slice of the page before.")] = ""


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    queue: list[views.QueueView]


class WindowsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which part of the axis to show."""

    source: Annotated[str, Meta(min_length=1, max_length=200, description="The source.")]
    since: Annotated[str, Meta(max_length=40, description="From this instant on; 30 days ago if empty.")] = ""
    until: Annotated[str, Meta(max_length=40, description="Before this instant; now if empty.")] = ""


class Windows(msgspec.Struct, frozen=True, kw_only=True):
    """Windows by operation and namespace; instants in microseconds, as a drawing needs them."""

    since: int
    until: int
    series: list[drilldown.Series]


class CoverageQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which windows to show."""

    source: Annotated[str, Meta(min_length=1, max_length=200, description="The source.")]
    endpoint: Annotated[str, Meta(max_length=200, description="Only this endpoint.")] = ""
    operation: Annotated[str, Meta(max_length=20, description="Only this operation.")] = ""
    limit: Annotated[int, Meta(ge=1, le=1000, description="How many.")] = 100
    after: Annotated[str, Meta(max_length=300, description="Go on behind this place, as the last answer gave it.")] = ""


def routes(patra: Patra) -> list[Endpoint]:
    del patra  # handlers find it in their request
    get = EndpointGroup(TAG).get
    return [
        get("/ingest/sources", _sources, "Sources whose packs are loaded", Sources),
        get(
            "/ingest/sources/{source}/pack",
            _pack,
            "What the registry holds for a source",
            dict[str, Any],
            problems=NOT_THERE,
        ),
        get("/ingest/plans", _plans, "Plans, the newest first", views.PlanPage, ListQuery),
        get(
            "/ingest/plans/{plan}",
            _lineage,
            "A plan from its trigger down to its batches",
            views.Lineage,
            LineageQuery,
            problems=NOT_THERE,
        ),
        get("/ingest/tasks", _tasks, "Tasks", views.TaskPage, TaskQuery),
        get("/ingest/queue", _queue, "Tasks counted by source, endpoint, operation and state", Queue, QueueQuery),
        get(
            "/ingest/coverage",
            _coverage,
            "Windows on the axis of time: promised, read, landed, set aside, missing",
            Coverage,
            CoverageQuery,
        ),
        get(
            "/ingest/windows",
            _windows,
            "Windows of a source on the axis of time, by state; grouped where there are too many to draw",
            Windows,
            WindowsQuery,
        ),
        get("/ingest/rate", _rate, "What may be sent, what is sent, quotas and cool-downs", rates.Rates),
        *ingest_plans.routes(),
        *ingest_packs.routes(),
        *ingest_acts.routes(),
        *ingest_alerts.routes(),
        *ingest_reads.routes(),
        *ingest_replay.routes(),
    ]


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
                        {
                            "endpoint": h.endpoint,
                            "kind": h.kind,
                            "detail": redact_text(h.detail),
                            "since": format_instant(h.at),
                        }
                        for h in halts
                        if h.source == row["provenance_code"]
                    ],
                )
                for row in registry.sources(tx)
            ]
        )

    return request.patra.db.read(read)


def _pack(request: Request) -> Reply | Problem:
    source = request.path["source"]
    tree = request.patra.db.read(lambda tx: registry.read_tree(tx, source))
    if tree is None:
        return Problem(
            404, Reason.SOURCE_UNKNOWN.value, Reason.SOURCE_UNKNOWN.text, f"`GET /ingest/sources` lists them: {source}"
        )
    return Reply(tree)


def _filter(query: ListQuery) -> views.Filter:
    return views.Filter(
        source=query.source,
        endpoint=query.endpoint,
        operation=query.operation,
        status=query.status,
        limit=query.limit,
    )


def _plans(request: Request) -> views.PlanPage:
    query: ListQuery = request.query
    return request.patra.db.read(lambda tx: views.plan_page(tx, _filter(query), query.after))


def _tasks(request: Request) -> views.TaskPage:
    query: TaskQuery = request.query
    wanted = msgspec.structs.replace(_filter(query), plan_id=query.plan)
    return request.patra.db.read(lambda tx: views.task_page(tx, wanted, query.after))


def _queue(request: Request) -> Queue:
    query: QueueQuery = request.query
    return Queue(queue=request.patra.db.read(lambda tx: views.queue(tx, query.source, query.operation)))


def _coverage(request: Request) -> Coverage:
    query: CoverageQuery = request.query
    return request.patra.db.read(
        lambda tx: coverage(
            tx, query.source, query.endpoint, operation=query.operation, limit=query.limit, after=query.after
        )
    )


def _windows(request: Request) -> Windows:
    query: WindowsQuery = request.query
    until = instant(query.until or None, "until") or request.patra.clock.now()
    since = instant(query.since or None, "since") or until - WINDOWS_SPAN
    found = request.patra.db.read(lambda tx: drilldown.windows(tx, query.source, since, until))
    return Windows(since=since, until=until, series=found)


def _rate(request: Request) -> rates.Rates:
    now = request.patra.clock.now()
    return request.patra.db.read(lambda tx: rates.rates(tx, now))


def _lineage(request: Request) -> views.Lineage | Problem:
    query: LineageQuery = request.query
    try:
        return request.patra.db.read(
            lambda tx: views.lineage(tx, request.path["plan"], limit=query.limit, after=query.after)
        )
    except Invalid as error:
        return missing(error)
