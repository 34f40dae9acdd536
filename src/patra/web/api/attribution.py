"""Batches of SDKs, answered event by event; and the table of everything that attribution offers over HTTP.

`POST /events` is a raw handler: the body is bounded before and after it is inflated, app keys are checked before it is
read, and a queue that is too long turns it away unread (F10, F11).
"""

import asyncio
from typing import Any

from starlette.requests import Request as RawRequest
from starlette.responses import Response

from patra.app.access.actor import Actor, Role
from patra.app.access.tokens import PREFIX, StoredTokens
from patra.app.components.attribution import Attribution
from patra.app.configuration.exposure import exposure
from patra.app.wiring import Patra
from patra.attribution.contract.event_fields import example_batch
from patra.attribution.contract.reasons import Reason
from patra.attribution.decision.ack import BatchAck, encode_ack
from patra.attribution.event_schema import BATCH_NAME, request_components
from patra.attribution.intake.decompress import MAX_BODY_BYTES, MAX_ENCODING_OVERHEAD_BYTES, inflate_body
from patra.attribution.intake.envelope import Refused
from patra.attribution.intake.response_proof import unproven
from patra.attribution.writer import NotTaken, Overloaded
from patra.kernel.errors import Transient
from patra.web.api.attribution_acts import act_routes
from patra.web.api.attribution_history import history_routes
from patra.web.api.attribution_reads import read_routes
from patra.web.api.attribution_settlement import settlement_routes
from patra.web.api.rejects import reject_routes
from patra.web.auth import bearer
from patra.web.body import read_body
from patra.web.dispatch import SAFE_HEADERS
from patra.web.endpoint import JSON, Endpoint, RequestSchema
from patra.web.problem import Problem, problem_response

TAG = "attribution"
KEYS_SECONDS = 10.0
"""How long a request waits for the app keys to be read."""
STATUSES: dict[Reason, int] = {
    Reason.APP_KEY_MISSING: 401,
    Reason.APP_KEY_FOREIGN: 403,
    Reason.APP_NOT_BOUND: 403,
    Reason.RESPONSE_PROOF_MISSING: 403,
    Reason.RESPONSE_PROOF_INVALID: 403,
    Reason.BODY_TOO_LARGE: 413,
    Reason.ENCODING_UNSUPPORTED: 415,
    Reason.INTAKE_OVERLOADED: 503,
    Reason.STORE_UNAVAILABLE: 503,
}
"""HTTP statuses of codes that refuse a whole request; every other one is 400 (F11)."""


class Events:
    """The handler of `POST /events`."""

    def __init__(self, patra: Patra) -> None:
        self._attribution = patra.engine(Attribution)
        self._open = exposure(patra.settings.web).open
        self._tokens = StoredTokens(patra.db, patra.clock)
        self._most_asking = patra.settings.attribution.waiting_batches
        self._asking = 0
        self._reading: asyncio.Future[None] | None = None

    async def __call__(self, request: RawRequest) -> Response:
        if self._attribution.engine.full:  # before it costs anything
            return self._turn_away(request, Reason.INTAKE_OVERLOADED, retry_after=Overloaded().retry_after)
        app_id = await self._app(request)
        if isinstance(app_id, Reason):
            return self._turn_away(request, app_id, retry_after=1 if STATUSES.get(app_id) == 503 else None)
        media = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
        if media != JSON:  # what a page of another site may send without asking is never JSON
            return problem_response(
                Problem(415, "media_type_unsupported", "A batch is JSON", f"Send `Content-Type: {JSON}`.")
            )
        if self._attribution.engine.full:  # by now, and before its body costs anything
            return self._turn_away(request, Reason.INTAKE_OVERLOADED, app_id, retry_after=Overloaded().retry_after)
        encoding = request.headers.get("content-encoding", "")
        raw = await read_body(request, MAX_BODY_BYTES + (MAX_ENCODING_OVERHEAD_BYTES if encoding else 0))
        if isinstance(raw, Problem):
            too_large = raw.status == 413
            return (
                self._turn_away(request, Reason.BODY_TOO_LARGE, app_id, close=True)
                if too_large
                else problem_response(raw)
            )
        body = inflate_body(raw, encoding)
        if isinstance(body, Reason):
            return self._turn_away(request, body, app_id)
        signing = self._attribution.signing
        if signing.concerns(app_id) and (found := unproven(body, app_id, signing)) is not None:
            return self._turn_away(request, found.code, app_id, why=found.detail)
        reply = self._attribution.engine.submit(body, app_id=app_id)
        if isinstance(reply, Overloaded):
            code, wait = Reason.INTAKE_OVERLOADED, reply.retry_after
            return self._turn_away(request, code, app_id, retry_after=wait, why=reply.why)
        match await asyncio.wrap_future(reply):
            case BatchAck() as ack:
                return Response(encode_ack(ack), 200, SAFE_HEADERS, media_type=JSON)
            case Refused(code=Reason.APP_KEY_FOREIGN as code, batch_id=batch_id):
                return self._turn_away(request, code, app_id, batch_id=batch_id)
            case Refused(code=code, batch_id=batch_id):  # the log has it
                return _refusal(code, batch_id=batch_id)
            case NotTaken(ack=BatchAck() as ack):
                headers = {**SAFE_HEADERS, "Retry-After": "1"}
                return Response(encode_ack(ack), STATUSES[Reason.STORE_UNAVAILABLE], headers, media_type=JSON)
            case NotTaken():
                return _refusal(Reason.STORE_UNAVAILABLE, retry_after=1)

    def _turn_away(
        self,
        request: RawRequest,
        code: Reason,
        app_id: str | None = None,
        *,
        batch_id: str | None = None,
        retry_after: int | None = None,
        close: bool = False,
        why: str = "",
    ) -> Response:
        """Refuse what the log will not hold, and leave a row with what is legible (F25)."""
        length = request.headers.get("content-length", "")
        size = int(length) if length.isdecimal() and len(length) < 16 else None
        self._attribution.turned_away.note(code, app_id=app_id, batch_id=batch_id, size=size)
        return _refusal(code, batch_id=batch_id, retry_after=retry_after, close=close, why=why)

    async def _app(self, request: RawRequest) -> str | Reason | None:
        """The app that the request's key speaks for; None where no key is needed: no app yet, and Patra is open."""
        keys, presented = self._attribution.keys, bearer(request.headers)
        if presented.startswith(PREFIX):
            return await self._app_of_token(presented)
        if not keys.is_fresh and (trouble := await self._read_keys()) is not None:
            return trouble
        if not keys.has_apps:
            return None if self._open else Reason.APP_KEY_MISSING
        return (keys.app_of(presented) if presented else None) or Reason.APP_KEY_MISSING

    async def _app_of_token(self, presented: str) -> str | Reason:
        """The app of a publisher's token that the store keeps; it is asked for every batch."""
        if self._asking >= self._most_asking:
            return Reason.INTAKE_OVERLOADED
        self._asking += 1
        try:
            async with asyncio.timeout(KEYS_SECONDS):
                holder = await asyncio.to_thread(self._tokens.holder, presented)
        except (TimeoutError, Transient):
            return Reason.STORE_UNAVAILABLE
        finally:
            self._asking -= 1
        if isinstance(holder, Actor) and holder.role is Role.PUBLISHER and holder.scope.app:
            return holder.scope.app
        return Reason.APP_KEY_MISSING

    async def _read_keys(self) -> Reason | None:
        """Read the keys again, once for all who ask meanwhile; a store that does not answer holds up only so many."""
        if self._asking >= self._most_asking:
            return Reason.INTAKE_OVERLOADED
        if self._reading is None or self._reading.done():
            self._reading = asyncio.ensure_future(asyncio.to_thread(self._attribution.keys.refresh))
        self._asking += 1
        try:
            done, _ = await asyncio.wait([self._reading], timeout=KEYS_SECONDS)
        finally:
            self._asking -= 1
        for reading in done:
            if isinstance(error := reading.exception(), Transient):
                return Reason.STORE_UNAVAILABLE
            if error is not None:
                raise error
        return None if done else Reason.STORE_UNAVAILABLE


def _refusal(
    code: Reason, *, batch_id: str | None = None, retry_after: int | None = None, close: bool = False, why: str = ""
) -> Response:
    extra: dict[str, Any] = {"batchId": batch_id} if batch_id is not None else {}
    headers = {"Retry-After": str(retry_after)} if retry_after is not None else {}
    if code is Reason.APP_KEY_MISSING:
        headers["WWW-Authenticate"] = 'Bearer realm="patra attribution"'
        why = f"{code.text}: send `Authorization: Bearer KEY`; `patra attribution app add APP` prints a key"
    if close:
        headers["Connection"] = "close"
    return problem_response(
        Problem(STATUSES.get(code, 400), code.value, "The batch was not taken", why or code.text, extra, headers)
    )


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
            request_schema=_batch_schema(),
            response=BatchAck,
            problems={
                400: "The envelope is refused (`f_batch_…`), or the body is not what its encoding says",
                401: "No known app key",
                403: "The key of another app",
                413: "More than 1 MiB, as sent or inflated",
                415: "Declared as another type than JSON, or neither gzip, zstd nor identity",
                503: "Not now: too many batches wait, or the store cannot be written",
            },
        ),
        *read_routes(),
        *reject_routes(),
        *settlement_routes(),
        *history_routes(),
        *act_routes(),
    ]


def _batch_schema() -> RequestSchema:
    schema, definitions = request_components("#/components/schemas/{name}")
    return RequestSchema(name=BATCH_NAME, schema=schema, definitions=definitions, example=example_batch())
