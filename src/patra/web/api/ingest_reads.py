"""Lists of the running side over HTTP, the same set as on the command line (ch. 14.7); evidence and history."""

from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from patra.app.components.ingest import kept_history
from patra.ingest.operations import history, quarantine
from patra.ingest.operations.reads import blackbox, views
from patra.ingest.operations.reads.read_models import FILTER_TEXTS, READ_MODELS, error_top, read_list
from patra.ingest.packs.spec import encode_spec
from patra.ingest.planning.planner import Planner
from patra.ingest.planning.trigger import Trigger
from patra.ingest.vocabulary.codes import Operation
from patra.ingest.vocabulary.reasons import Reason
from patra.ingest.works.docs import summaries
from patra.kernel.clock import DAY, format_instant
from patra.kernel.errors import Invalid
from patra.web.api.ingest_acts import TAG, Done, act_audited
from patra.web.api.ingest_plans import instant
from patra.web.auth import LOCAL
from patra.web.endpoint import Endpoint, EndpointGroup, Handler, Request
from patra.web.problem import Problem

EVIDENCE_DAYS = 7  # ch. 14.11
ELSEWHERE = frozenset({"plans", "tasks"})
"""Lists that `ingest` serves in a shape of their own."""
Why = Annotated[str, Meta(min_length=1, max_length=500, description="The reason, for the audit.")]


class Rows(msgspec.Struct, frozen=True, kw_only=True):
    """A page of rows; `next` is given back as `after` for the next one, and null at the end."""

    rows: list[dict[str, Any]]
    next: str | None = None


class TopQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which errors to count."""

    source: Annotated[str, Meta(max_length=200, description=FILTER_TEXTS["source"])] = ""
    operation: Annotated[str, Meta(max_length=20, description=FILTER_TEXTS["operation"])] = ""
    level: Annotated[str, Meta(max_length=2, description=FILTER_TEXTS["level"])] = ""
    since: Annotated[str, Meta(max_length=40, description="From this instant on; a day ago if empty.")] = ""
    until: Annotated[str, Meta(max_length=40, description=FILTER_TEXTS["until"])] = ""
    limit: Annotated[int, Meta(ge=1, le=1000, description="How many.")] = 20


class SpecQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """For which operation."""

    operation: Annotated[str, Meta(max_length=20, description="HARVEST, BACKFILL or UPDATE.")] = "HARVEST"


class EvidenceWish(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why the evidence is exported."""

    why: Why


class DismissWish(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which records of the quarantine are closed permanently."""

    source: Annotated[str, Meta(max_length=200)]
    endpoint: Annotated[str, Meta(max_length=200)]
    keys: Annotated[list[str], Meta(min_length=1, max_length=1000, description="`item_key` of each.")]
    why: Why


class RestoreWish(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which history is brought back: of a run, or of all runs of a plan."""

    run: Annotated[str, Meta(max_length=200)] = ""
    plan: Annotated[str, Meta(max_length=200)] = ""
    days: Annotated[int, Meta(ge=1, le=3650, description="How long it is held in the store.")] = 7
    why: Why


class HistoryQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which files to list."""

    run: Annotated[str, Meta(max_length=200, description=FILTER_TEXTS["run"])] = ""
    plan: Annotated[str, Meta(max_length=200, description=FILTER_TEXTS["plan"])] = ""


class History(msgspec.Struct, frozen=True, kw_only=True):
    """Files of history past its retention, the oldest first."""

    files: list[history.HistoryFile]


def list_query(name: str) -> type[msgspec.Struct]:
    """The query parameters of a list: its filters, `limit` and `after`."""
    listing = READ_MODELS[name].listing
    default = "OPEN" if name == "quarantine" else ""
    fields: list[Any] = [
        (one, Annotated[str, Meta(max_length=300, description=FILTER_TEXTS[one])], default if one == "status" else "")
        for one in listing.filters
    ]
    fields.append(("limit", Annotated[int, Meta(ge=1, le=1000, description="How many.")], 100))
    fields.append(("after", Annotated[str, Meta(max_length=2000, description="`next` of the last page.")], ""))
    title = "".join(part.capitalize() for part in name.split("-"))
    return msgspec.defstruct(
        f"{title}Query", fields, kw_only=True, frozen=True, forbid_unknown_fields=True, module=__name__
    )


def routes() -> list[Endpoint]:
    """Lists, then what is not a list of rows, then acts."""
    return [
        *(
            _get(f"/ingest/{name}", _list_rows(name), model.summary.rstrip("."), Rows, list_query(name))
            for name, model in READ_MODELS.items()
            if name not in ELSEWHERE
        ),
        _get("/ingest/errors/top", _top, "Errors counted by source, endpoint, operation and reason", Rows, TopQuery),
        _get("/ingest/schedules", _schedules, "The schedules of all packs", Rows),
        _get("/ingest/packs", _packs, "The packs that come with Patra", Rows),
        _get(
            "/ingest/sources/{source}/specs/{endpoint}", _spec, "The snapshot that a plan would get", dict[str, Any],
            SpecQuery,
        ),
        _get("/ingest/history", _history, "Files of history past its retention", History, HistoryQuery),
        _act("/ingest/runs/{run}/batches/{batch}/evidence", _evidence, "ingest.blackbox",
             "Export the evidence of one batch", EvidenceWish, dict[str, Any]),
        _act("/ingest/quarantine/dismiss", _dismiss, "ingest.dismiss", "Close records of the quarantine for good",
             DismissWish, Done),
        _act("/ingest/history/restore", _restore, "ingest.history_restore",
             "Bring history back into the store", RestoreWish, history.Restored),
    ]  # fmt: skip


def _get(path: str, handler: Handler, summary: str, response: Any, query: Any = None) -> Endpoint:
    problems = {404: "There is no such source or endpoint."} if "{" in path else {}
    return EndpointGroup(TAG).get(path, handler, summary, response, query, problems=problems)


def _act(path: str, handler: Handler, act: str, summary: str, request: Any, response: Any, **more: Any) -> Endpoint:
    problems = {404: "There is nothing of this name."}
    return EndpointGroup(TAG).post(
        path, handler, act, summary, request=request, response=response, problems=problems, **more
    )


def _list_rows(name: str) -> Callable[[Request], Rows]:
    def handler(request: Request) -> Rows:
        asked: dict[str, Any] = msgspec.structs.asdict(request.query)
        limit, after = asked.pop("limit"), asked.pop("after")
        for bound in ("since", "until"):
            if bound in asked:
                asked[bound] = instant(asked[bound] or None, bound)
        found = request.patra.db.read(lambda tx: read_list(tx, name, asked, limit=limit, after=after))
        return Rows(rows=found.rows, next=found.next)

    return handler


def _top(request: Request) -> Rows:
    query: TopQuery = request.query
    until = instant(query.until or None, "until") or request.patra.clock.now()
    since = instant(query.since or None, "since") or until - DAY
    asked = {"source": query.source, "operation": query.operation, "level": query.level}
    return Rows(
        rows=request.patra.db.read(lambda tx: error_top(tx, asked, since=since, until=until, limit=query.limit))
    )


def _schedules(request: Request) -> Rows:
    now = request.patra.clock.now()
    return Rows(rows=request.patra.db.read(lambda tx: views.schedules(tx, now, whole=True)))


def _packs(_: Request) -> Rows:
    return Rows(rows=[msgspec.to_builtins(one) for one in summaries()])


def _spec(request: Request) -> dict[str, Any] | Problem:
    if request.query.operation not in Operation.__members__:
        raise Invalid("i_operation_unsupported", f"{request.query.operation!r} is not an operation")
    trigger = Trigger(
        source=request.path["source"],
        endpoint=request.path["endpoint"],
        operation=Operation(request.query.operation),
    )
    compiled = Planner(request.patra.db, request.patra.clock).compile(trigger)
    if compiled.spec is None:
        unknown = {Reason.SOURCE_UNKNOWN, Reason.ENDPOINT_UNKNOWN}
        first = next((one for one in compiled.problems if one.code in unknown), compiled.problems[0])
        status = 404 if first.code in unknown else 422
        return Problem(status, first.code.value, first.code.text, "; ".join(str(one) for one in compiled.problems))
    return msgspec.json.decode(encode_spec(compiled.spec))


def _evidence(request: Request) -> dict[str, Any] | Problem:
    run, number, why = request.path["run"], request.path["batch"], request.body.why
    found = blackbox.export(request.patra.db, run, int(number)) if number.isdecimal() and len(number) < 10 else None
    if found is None:
        return Problem(404, "i_batch_unknown", "There is no such batch", f"`GET /ingest/batches?run={run}` lists them")
    now = request.patra.clock.now()
    request.act(lambda _: None, f"{run}/{number}", why=why)
    exported = {
        "by": (request.actor or LOCAL).name,
        "at": format_instant(now),
        "why": why,
        "validUntil": format_instant(now + EVIDENCE_DAYS * DAY),
    }
    return blackbox.for_others(found, exported)


def _dismiss(request: Request) -> Done | Problem:
    wish: DismissWish = request.body
    now = request.patra.clock.now()
    return act_audited(
        request,
        lambda tx: quarantine.dismiss(tx, wish.source, wish.endpoint, wish.keys, why=wish.why, now=now),
        unknown=(),
    )


def _history(request: Request) -> History:
    query: HistoryQuery = request.query
    return History(
        files=history.history_files(kept_history(request.patra.settings), run_id=query.run, plan_id=query.plan)
    )


def _restore(request: Request) -> history.Restored | Problem:
    wish: RestoreWish = request.body
    if not wish.run and not wish.plan:
        raise Invalid("i_history_missing", "name a run or a plan", place="run")
    now = request.patra.clock.now()
    try:
        restored = history.restore(
            request.patra.db,
            kept_history(request.patra.settings),
            run_id=wish.run,
            plan_id=wish.plan,
            now=now,
            hold=wish.days * DAY,
        )
    except Invalid as error:
        if error.code != "i_history_missing":
            raise
        return Problem(404, error.code, "There is no such history", error.detail, {"advice": error.advice})
    request.act(lambda _: None, wish.run or wish.plan, why=wish.why, rows=restored.rows)
    return restored
