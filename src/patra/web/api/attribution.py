"""Batches of SDKs go in and are answered event by event; facts, closures, rejects and settlements come out.

`POST /events` is a raw handler: the body is bounded before and after it is inflated, app keys are checked before it is
read, and a queue that is too long turns it away unread (F10, F11). Everything else reads, for viewers.
"""

import asyncio
from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from starlette.requests import Request as RawRequest
from starlette.responses import Response

from patra.app.actor import Role
from patra.app.attribution import Attribution
from patra.app.wiring import Patra
from patra.attribution.ack import BatchAck, encode_ack
from patra.attribution.apps import AppKey, add_key, app_keys, revoke_keys, rotate_key
from patra.attribution.engine import NotTaken, Overloaded
from patra.attribution.inflate import LARGEST_OVERHEAD, MOST_BYTES, inflated
from patra.attribution.intake import Refused
from patra.attribution.locate import Only
from patra.attribution.queries import (
    LAST_PLACE,
    ClosureView,
    RefusedView,
    RejectsPage,
    Timeline,
    What,
    closure_by_key,
    closures,
    events_of_batch,
    listing,
    page_of_decisions,
    refused,
    reject_place,
    rejects,
    timeline,
)
from patra.attribution.reasons import R
from patra.attribution.settle import Settlement, settle
from patra.kernel.clock import parse_instant
from patra.kernel.errors import Transient
from patra.web.auth import is_loopback
from patra.web.body import read_body
from patra.web.dispatch import SAFE_HEADERS
from patra.web.endpoint import JSON, Endpoint, Request
from patra.web.problem import Problem, problem_response

TAG = "attribution"
LATEST = 2**62
KEYS_SECONDS = 10.0
"""How long a request waits for the app keys to be read."""
STATUSES: dict[R, int] = {
    R.APP_KEY_MISSING: 401,
    R.APP_KEY_FOREIGN: 403,
    R.BODY_TOO_LARGE: 413,
    R.ENCODING_UNSUPPORTED: 415,
    R.INTAKE_OVERLOADED: 503,
    R.STORE_UNAVAILABLE: 503,
}
"""HTTP statuses of codes that refuse a whole request; every other one is 400 (F11)."""


# --- POST /events -----------------------------------------------------------------------------------------------------


class Events:
    """The handler of `POST /events`."""

    def __init__(self, patra: Patra) -> None:
        self._attribution = patra.engine(Attribution)
        self._loopback = is_loopback(patra.settings.web.host)
        self._most_asking = patra.settings.attribution.waiting_batches
        self._asking = 0
        self._reading: asyncio.Future[None] | None = None

    async def __call__(self, request: RawRequest) -> Response:
        if self._attribution.engine.full:  # before it costs anything
            return _refusal(R.INTAKE_OVERLOADED, retry_after=Overloaded().retry_after)
        app_id = await self._app(request)
        if isinstance(app_id, R):
            return _refusal(app_id, retry_after=1 if STATUSES.get(app_id) == 503 else None)
        if self._attribution.engine.full:  # by now, and before its body costs anything
            return _refusal(R.INTAKE_OVERLOADED, retry_after=Overloaded().retry_after)
        encoding = request.headers.get("content-encoding", "")
        raw = await read_body(request, MOST_BYTES + (LARGEST_OVERHEAD if encoding else 0))
        if isinstance(raw, Problem):
            return _refusal(R.BODY_TOO_LARGE, close=True) if raw.status == 413 else problem_response(raw)
        body = inflated(raw, encoding)
        if isinstance(body, R):
            return _refusal(body)
        reply = self._attribution.engine.submit(body, app_id=app_id)
        if isinstance(reply, Overloaded):
            return _refusal(R.INTAKE_OVERLOADED, retry_after=reply.retry_after)
        match await asyncio.wrap_future(reply):
            case BatchAck() as ack:
                return Response(encode_ack(ack), 200, SAFE_HEADERS, media_type=JSON)
            case Refused(code=code, batch_id=batch_id):
                return _refusal(code, batch_id=batch_id)
            case NotTaken(ack=BatchAck() as ack):
                headers = {**SAFE_HEADERS, "Retry-After": "1"}
                return Response(encode_ack(ack), STATUSES[R.STORE_UNAVAILABLE], headers, media_type=JSON)
            case NotTaken():
                return _refusal(R.STORE_UNAVAILABLE, retry_after=1)

    async def _app(self, request: RawRequest) -> str | R | None:
        """The app that the request's key speaks for; None where no key is needed: no app yet, and on loopback only."""
        keys = self._attribution.keys
        if not keys.is_fresh and (trouble := await self._read_keys()) is not None:
            return trouble
        if not keys.registered:
            return None if self._loopback else R.APP_KEY_MISSING
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        return (keys.app_of(key.strip()) if scheme.lower() == "bearer" else None) or R.APP_KEY_MISSING

    async def _read_keys(self) -> R | None:
        """Read the keys again, once for all who ask meanwhile; a store that does not answer holds up only so many."""
        if self._asking >= self._most_asking:
            return R.INTAKE_OVERLOADED
        if self._reading is None or self._reading.done():
            self._reading = asyncio.ensure_future(asyncio.to_thread(self._attribution.keys.refresh))
        self._asking += 1
        try:
            done, _ = await asyncio.wait([self._reading], timeout=KEYS_SECONDS)
        finally:
            self._asking -= 1
        for reading in done:
            if isinstance(error := reading.exception(), Transient):
                return R.STORE_UNAVAILABLE
            if error is not None:
                raise error
        return None if done else R.STORE_UNAVAILABLE


def _refusal(code: R, *, batch_id: str | None = None, retry_after: int | None = None, close: bool = False) -> Response:
    extra: dict[str, Any] = {"batchId": batch_id} if batch_id is not None else {}
    headers = {"Retry-After": str(retry_after)} if retry_after is not None else {}
    if code is R.APP_KEY_MISSING:
        headers["WWW-Authenticate"] = 'Bearer realm="patra attribution"'
    if close:
        headers["Connection"] = "close"
    return problem_response(
        Problem(STATUSES.get(code, 400), code.value, "The batch was not taken", code.text, extra, headers)
    )


# --- reading ----------------------------------------------------------------------------------------------------------


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


class ClosuresQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    state: Annotated[
        Literal["", "open", "closed_success", "closed_failure"], Meta(description="Only closures in this state.")
    ] = ""
    after: Annotated[str, Meta(pattern="^([0-9a-f]{2})*$", description="`next` of the page before.")] = ""
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class RejectsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    batchId: Annotated[str, Meta(description="Only events of this batch.")] = ""  # noqa: N815
    code: Annotated[str, Meta(description="Only events with this reason code.")] = ""
    quarantined: Annotated[bool, Meta(description="Only events in quarantine, with their payload.")] = False
    before: Annotated[
        str, Meta(description="Only events received before this instant, or after the page whose `next` this is.")
    ] = ""
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class RefusedQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    batchId: Annotated[str, Meta(description="Only batches of this id.")] = ""  # noqa: N815
    code: Annotated[str, Meta(description="Only batches that were refused with this code.")] = ""
    before: Annotated[int, Meta(ge=0, le=LATEST, description="`number` of the last one of the page before.")] = LATEST
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


class RefusedBatches(msgspec.Struct, frozen=True, kw_only=True):
    refused: list[RefusedView]


class Apps(msgspec.Struct, frozen=True, kw_only=True):
    keys: list[AppKey]


class NewKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key; it is shown here and never again."""

    app_id: str
    key: str


class Revoked(msgspec.Struct, frozen=True, kw_only=True):
    revoked: list[str]


def _timeline(request: Request) -> Timeline:
    key, asked = request.path["key"], request.query
    only = Only(app=asked.appId, code=asked.code)
    return request.patra.db.read(lambda tx: timeline(tx, key, only, after=asked.after, limit=asked.limit))


def _events(request: Request) -> Timeline:
    asked: EventsQuery = request.query
    only = Only(app=asked.appId, code=asked.code)
    return request.patra.db.read(
        lambda tx: events_of_batch(tx, asked.batchId, asked.eventId, only, after=asked.after, limit=asked.limit)
    )


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
    return request.patra.db.read(lambda tx: page_of_decisions(tx, page.after, page.limit))


def _closure(request: Request) -> ClosureView | Problem:
    key = request.path["key"]
    found = request.patra.db.read(lambda tx: closure_by_key(tx, key))
    return found or Problem(404, "closure_unknown", "There is no such closure", f"{key!r} was never opened.")


def _closures(request: Request) -> Closures:
    asked: ClosuresQuery = request.query
    after = bytes.fromhex(asked.after)
    found = request.patra.db.read(lambda tx: closures(tx, state=asked.state, after=after, limit=asked.limit))
    more = found[-1][0].hex() if len(found) == asked.limit else None
    return Closures(closures=[view for _, view in found], next=more)


def _rejects(request: Request) -> RejectsPage | Problem:
    asked: RejectsQuery = request.query
    place = reject_place(asked.before) if asked.before else LAST_PLACE
    if place is None:
        return _no_instant("before")
    return request.patra.db.read(
        lambda tx: rejects(
            tx,
            batch_id=asked.batchId,
            code=asked.code,
            quarantined=asked.quarantined,
            before=place,
            limit=asked.limit,
        )
    )


def _refused(request: Request) -> RefusedBatches:
    asked: RefusedQuery = request.query
    found = request.patra.db.read(
        lambda tx: refused(tx, batch_id=asked.batchId, code=asked.code, before=asked.before, limit=asked.limit)
    )
    return RefusedBatches(refused=found)


def _settlement(request: Request) -> Settlement | Problem:
    asked: SettlementQuery = request.query
    begin, end = parse_instant(asked.begin), parse_instant(asked.end)
    if begin is None or end is None:
        return _no_instant("begin" if begin is None else "end")
    if begin > end:
        return Problem(400, "span_invalid", "begin lies after end")
    return request.patra.db.read(lambda tx: settle(tx, begin, end, asked.by))


def _no_instant(name: str) -> Problem:
    return Problem(400, "instant_invalid", f"{name} is no RFC 3339 instant with an offset")


LISTINGS: tuple[tuple[str, What, str], ...] = (
    ("facts/billable", "billable", "`billableFactLite`, with the status of its record"),
    ("facts/attribution", "attribution", "`attributionFactLite`, with the status of its record"),
    ("audits", "audits", "`factDecisionAuditLite`, with how often the decision was made"),
    ("records", "records", "`fToGArchiveRecordLite`"),
)


# --- app keys ---------------------------------------------------------------------------------------------------------


def _apps(request: Request) -> Apps:
    return Apps(keys=request.patra.db.read(app_keys))


def _add_key(request: Request) -> NewKey:
    app_id, now = request.path["app"], request.patra.clock.now()
    return NewKey(app_id=app_id, key=request.act(lambda tx: add_key(tx, app_id, now), app_id))


def _rotate_key(request: Request) -> NewKey:
    app_id, now = request.path["app"], request.patra.clock.now()
    return NewKey(app_id=app_id, key=request.act(lambda tx: rotate_key(tx, app_id, now), app_id))


def _revoke_keys(request: Request) -> Revoked:
    app_id, now = request.path["app"], request.patra.clock.now()
    return Revoked(revoked=request.act(lambda tx: revoke_keys(tx, app_id, now), app_id))


# --- the table --------------------------------------------------------------------------------------------------------


def routes(patra: Patra) -> list[Endpoint]:
    return [
        Endpoint(
            method="POST",
            path="/events",
            raw=Events(patra),
            role=None,
            tag=TAG,
            summary="Take a batch of events and answer each of them when they are durable",
            description="`eventBatchRequestLite` in, `eventBatchAckLite` out (§3.8.4 to §3.8.7). Bodies may be gzip or "
            "zstd. Where apps are registered, `Authorization: Bearer KEY` carries the key of the batch's app. 503 "
            "with an ACK body: nothing was taken, every item is `retryable`.",
            response=BatchAck,
            problems={
                400: "The envelope is refused (`f_batch_…`), or the body is not what its encoding says",
                401: "No known app key",
                403: "The key of another app",
                413: "More than 1 MiB, as sent or inflated",
                415: "Neither gzip, zstd nor identity",
                503: "Not now: too many batches wait, or the store cannot be written",
            },
        ),
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
        *(
            _reading(f"/attribution/{path}", _listing(what), summary, Listing, ListingQuery)
            for path, what, summary in LISTINGS
        ),
        _reading("/attribution/closures", _closures, "Closures, by state", Closures, ClosuresQuery),
        _reading(
            "/attribution/closures/{key:path}",
            _closure,
            "One closure, and how far its records have come",
            ClosureView,
            problems={404: "There is no such closure"},
        ),
        _reading("/attribution/rejects", _rejects, "Rejected events, the newest first", RejectsPage, RejectsQuery),
        _reading(
            "/attribution/refused",
            _refused,
            "Batches that were refused as a whole, the newest first",
            RefusedBatches,
            RefusedQuery,
        ),
        _reading(
            "/attribution/settlement",
            _settlement,
            "Committed billable facts between two instants, by app, day or placement",
            Settlement,
            SettlementQuery,
        ),
        _reading("/attribution/apps", _apps, "App keys, by their hashes", Apps),
        _acting("POST", "/attribution/apps/{app}/keys", _add_key, "Give an app a key, shown once", NewKey, "add"),
        _acting(
            "POST",
            "/attribution/apps/{app}/rotate",
            _rotate_key,
            "Revoke an app's keys and give it a new one, shown once",
            NewKey,
            "rotate",
        ),
        _acting("DELETE", "/attribution/apps/{app}/keys", _revoke_keys, "Revoke an app's keys", Revoked, "revoke"),
    ]


def _reading(
    path: str,
    handler: Any,
    summary: str,
    response: Any,
    query: type[msgspec.Struct] | None = None,
    problems: dict[int, str] | None = None,
) -> Endpoint:
    return Endpoint(
        method="GET",
        path=path,
        handler=handler,
        role=Role.VIEWER,
        tag=TAG,
        summary=summary,
        response=response,
        query=query,
        problems=problems or {},
    )


def _acting(method: str, path: str, handler: Any, summary: str, response: Any, act: str) -> Endpoint:
    return Endpoint(
        method=method,
        path=path,
        handler=handler,
        role=Role.ADMIN,
        tag=TAG,
        summary=summary,
        response=response,
        act=f"attribution.app.{act}",
        problems={400: "No such app or key"},
    )
