"""Rates, closed periods, statements and reconciliation over HTTP, as on the command line."""

import io
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from patra.app.access.actor import Role
from patra.attribution.settlement import Settlement, as_csv, as_parquet
from patra.attribution.settlement.dimensions import DIMENSIONS, Dimension, DimensionCounts, counts_by
from patra.attribution.settlement.facts import settled_facts
from patra.attribution.settlement.period import close_period, parse_period
from patra.attribution.settlement.rate_card import Rate
from patra.attribution.settlement.reconcile import Difference, their_facts
from patra.attribution.settlement.reconciliation import reconcile
from patra.attribution.settlement.statement import Statement, StatementFile
from patra.attribution.settlement.statement_store import add_rate, all_rates, statement_file, statements
from patra.kernel.clock import format_instant, parse_instant
from patra.web.api.attribution_reads import SettlementQuery, app_parameter, settlement
from patra.web.endpoint import Endpoint, EndpointGroup, Handler, Reply, Request
from patra.web.problem import Problem

TAG = "attribution"
MAX_LIST_BYTES = 64 * 1024 * 1024
CLOSE_SECONDS = 600.0


class FileQuery(SettlementQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    format: Annotated[
        Literal["csv", "json", "parquet"], Meta(description="`parquet` needs the extra `patra[parquet]`.")
    ] = "csv"


class RateBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A price; what is empty stands for any."""

    billableType: str  # noqa: N815
    priceMicros: int  # noqa: N815
    currency: str
    validFrom: Annotated[str, Meta(description="RFC 3339.")]  # noqa: N815
    validTo: str | None = None  # noqa: N815
    appId: str = ""  # noqa: N815
    placement: str = ""
    creative: str = ""


class RateView(msgspec.Struct, frozen=True, kw_only=True):
    """A price as it stands in the store."""

    version: int
    billableType: str  # noqa: N815
    priceMicros: int  # noqa: N815
    currency: str
    validFrom: str  # noqa: N815
    validTo: str | None  # noqa: N815
    appId: str  # noqa: N815
    placement: str
    creative: str


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    rates: list[RateView]


class Statements(msgspec.Struct, frozen=True, kw_only=True):
    statements: list[Statement]


class StatementsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    appId: Annotated[str, Meta(description="Only statements of this app.")] = ""  # noqa: N815


class CloseBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    allowUnpriced: bool = False  # noqa: N815


class ReconcileBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The counterparty's list, as CSV with a header."""

    csv: str


class Differences(msgspec.Struct, frozen=True, kw_only=True):
    rows: int
    differences: list[Difference]


class DimensionsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    begin: Annotated[str, Meta(description="First instant of `factAt`, RFC 3339.")]
    end: Annotated[str, Meta(description="First instant that no longer counts.")]
    by: Annotated[str, Meta(description="Any of app, day, placement, creative, opportunity, by commas.")] = "app"
    app: Annotated[str | None, Meta(description="Only facts of this app.")] = None
    day: Annotated[str | None, Meta(description="Only facts of this day (UTC).")] = None
    placement: Annotated[str | None, Meta(description="Only facts of this placement.")] = None
    creative: Annotated[str | None, Meta(description="Only facts of this creative.")] = None
    opportunity: Annotated[str | None, Meta(description="Only facts of this opportunity.")] = None


def _rates(request: Request) -> Rates:
    return Rates(rates=[_rate_view(rate) for rate in request.patra.db.read(all_rates)])


def _add_rate(request: Request) -> RateView | Problem:
    body: RateBody = request.body
    begin = parse_instant(body.validFrom)
    end = parse_instant(body.validTo) if body.validTo is not None else None
    if begin is None or (body.validTo is not None and end is None):
        return Problem(400, "instant_invalid", "validFrom or validTo is not an RFC 3339 instant with an offset")
    rate = Rate(
        billable_type=body.billableType,
        price_micros=body.priceMicros,
        currency=body.currency,
        app_id=body.appId,
        placement=body.placement,
        creative=body.creative,
        valid_from=begin,
        valid_to=end,
    )
    now = request.patra.clock.now()
    named = {"type": body.billableType, "currency": body.currency}
    version = request.act(lambda tx: add_rate(tx, rate, now), body.appId, **named, price_micros=body.priceMicros)
    return _rate_view(msgspec.structs.replace(rate, version=version))


def _rate_view(rate: Rate) -> RateView:
    return RateView(
        version=rate.version,
        billableType=rate.billable_type,
        priceMicros=rate.price_micros,
        currency=rate.currency,
        validFrom=format_instant(rate.valid_from),
        validTo=format_instant(rate.valid_to) if rate.valid_to is not None else None,
        appId=rate.app_id,
        placement=rate.placement,
        creative=rate.creative,
    )


def _statements(request: Request) -> Statements:
    return Statements(statements=request.patra.db.read(lambda tx: statements(tx, request.query.appId)))


def _statement(request: Request) -> StatementFile | Problem:
    app_id, period = request.path["app"], request.path["period"]
    found = request.patra.db.read(lambda tx: statement_file(tx, app_id, period))
    return found or Problem(404, "statement_unknown", "There is no such statement", f"{app_id} has none of {period}.")


def _close(request: Request) -> Statement:
    app_id, period = request.path["app"], parse_period(request.path["period"])
    patra, allow = request.patra, request.body.allowUnpriced
    file = close_period(patra.db, patra.clock, app_id, period, allow_unpriced=allow)
    request.act(lambda _: None, app_id, period=period.name, hash=file.statement.hash)
    return file.statement


def _reconcile(request: Request) -> Differences:
    app_id, period = request.path["app"], parse_period(request.path["period"])
    theirs = their_facts(io.StringIO(request.body.csv, newline=""))
    bound = request.actor is not None and bool(request.actor.scope.app)
    found = reconcile(request.patra.db, app_id, period, theirs, other_apps=not bound)
    request.act(lambda _: None, app_id, period=period.name, rows=len(theirs), differences=len(found))
    return Differences(rows=len(theirs), differences=found)


def _dimensions(request: Request) -> DimensionCounts | Problem:
    asked: DimensionsQuery = request.query
    begin, end = parse_instant(asked.begin), parse_instant(asked.end)
    if begin is None or end is None or begin > end:
        return Problem(400, "span_invalid", "begin and end are RFC 3339 instants, the first not after the second")
    known: dict[str, Dimension] = {name: name for name in DIMENSIONS}
    names = asked.by.split(",")
    if len({*names}) != len(names) or not known.keys() >= {*names}:
        return Problem(400, "dimension_unknown", f"by is any of {', '.join(DIMENSIONS)}, each once")
    filters: dict[Dimension, str] = {name: value for name in DIMENSIONS if (value := getattr(asked, name)) is not None}
    facts = settled_facts(request.patra.db, begin, end, filters.get("app", ""))
    return counts_by(facts, [known[name] for name in names], filters)


def _file(request: Request) -> Reply | Problem:
    asked: FileQuery = request.query
    found = settlement(request)
    if isinstance(found, Problem):
        return found
    name = f"settlement-{asked.begin[:10]}-{asked.end[:10]}-by-{asked.by}.{asked.format}"
    return Reply(_content(found, asked.format), headers={"Content-Disposition": f'attachment; filename="{name}"'})


def _content(found: Settlement, form: str) -> bytes:
    if form == "csv":
        return as_csv(found).encode()
    if form == "json":
        return msgspec.json.encode(found) + b"\n"
    with TemporaryDirectory() as folder:
        file = Path(folder) / "settlement.parquet"
        as_parquet(found, str(file))
        return file.read_bytes()


def settlement_routes() -> list[Endpoint]:
    """Everything that money is settled by."""
    return [
        _reading(
            "/attribution/settlement/dimensions",
            _dimensions,
            "Committed billable facts between two instants, in any combination of dimensions, with filters",
            DimensionCounts,
            DimensionsQuery,
        ),
        _reading(
            "/attribution/settlement/file",
            _file,
            "The same settlement as a file: CSV, JSON or Parquet",
            bytes,
            FileQuery,
            media="application/octet-stream",
            problems={400: "The span is none, or the extra for Parquet is not installed"},
        ),
        _reading("/attribution/rates", _rates, "Prices, by version", Rates),
        _acting("/attribution/rates", _add_rate, "Add a price", RateView, RateBody, "rate.add"),
        _reading("/attribution/statements", _statements, "Statements of closed periods", Statements, StatementsQuery),
        _reading(
            "/attribution/statements/{app}/{period}",
            _statement,
            "One statement with its facts, as `statement verify` reads it",
            StatementFile,
            problems={404: "There is no such statement"},
        ),
        _acting(
            "/attribution/apps/{app}/periods/{period}/close",
            _close,
            "Write the immutable statement of a month or a day",
            Statement,
            CloseBody,
            "period.close",
        ),
        _acting(
            "/attribution/apps/{app}/periods/{period}/reconcile",
            _reconcile,
            "Compare the counterparty's list with ours, and explain each difference",
            Differences,
            ReconcileBody,
            "period.reconcile",
            role=Role.OPERATOR,
        ),
    ]


def _reading(path: str, handler: Handler, summary: str, response: Any, query: Any = None, **more: Any) -> Endpoint:
    narrow = app_parameter(query)
    return EndpointGroup(TAG).get(
        path, handler, summary, response, query, app_query=narrow, seconds=CLOSE_SECONDS, **more
    )


def _acting(
    path: str, handler: Handler, summary: str, response: Any, body: Any, act: str, *, role: Role = Role.ADMIN
) -> Endpoint:
    return EndpointGroup(TAG).post(
        path,
        handler,
        f"attribution.{act}",
        summary,
        role=role,
        request=body,
        response=response,
        seconds=CLOSE_SECONDS,
        max_body_bytes=MAX_LIST_BYTES,
        problems={400: "It breaks a rule; `code` says which"},
    )
