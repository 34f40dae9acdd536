"""Answers requests for one path: who may, how large, how long, what shape; then the handler.

The only asynchronous code of Patra besides raw handlers: a handler is a plain function and runs in a thread.
"""

import asyncio
import contextvars
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Literal, assert_never

import msgspec
from starlette.requests import Request as RawRequest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from patra.app.access.actor import Actor
from patra.app.access.tokens import PREFIX, TokenRefusal
from patra.app.configuration.exposure import Exposure
from patra.app.wiring import Patra
from patra.kernel.errors import PatraError
from patra.kernel.ids import new_id
from patra.kernel.safety.threads import is_exhausted, no_thread
from patra.kernel.telemetry import counter, get_logger, histogram
from patra.web.auth import Gate, bearer
from patra.web.body import read_body
from patra.web.endpoint import JSON, Endpoint, Reply, Request
from patra.web.failed_attempts import FailedAttempts
from patra.web.problem import RETRY_SECONDS, SAFE_HEADERS, Problem, problem_of, problem_response
from patra.web.scopes import narrow_query, of_own_tenant, within_scope

log = get_logger()

REQUESTS = counter(
    "patra_http_requests_total", "HTTP requests answered, by path of the table.", "method", "path", "status"
)
REQUEST_SECONDS = histogram(
    "patra_http_request_seconds", "Time from a request's headers to its answer.", "method", "path"
)


TOKEN_SECONDS = 10.0
"""How long a request waits for its token to be looked up in the store."""
TOKEN_REFUSALS = frozenset({"token_unknown", "token_expired", "token_revoked"})
RETRY = {"Retry-After": RETRY_SECONDS}
CAREFUL = "It may still be carried out; look before you ask again."


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """How much one request may take."""

    body_bytes: int
    seconds: float


class Progress:
    """How far a request has come: what a timeout means depends on it."""

    def __init__(self) -> None:
        self.work: Future[Any] | None = None
        self.raw = False

    def stop(self) -> Literal["reading", "waiting", "running"]:
        """Cancel the work if no thread has begun it, and say how far it had come."""
        if self.work is None:
            return "running" if self.raw else "reading"
        return "waiting" if self.work.cancel() else "running"


PROBES = frozenset({"/health", "/ready"})


class Dispatch:
    """The ASGI application of one path: its endpoints by method."""

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        *,
        patra: Patra,
        gate: Gate,
        bounds: Bounds,
        threads: ThreadPoolExecutor,
        failed: FailedAttempts,
    ) -> None:
        self._failed = failed
        self._endpoints = {endpoint.method: endpoint for endpoint in endpoints}
        if "GET" in self._endpoints:
            self._endpoints.setdefault("HEAD", self._endpoints["GET"])
        self._path = endpoints[0].template
        self._patra = patra
        self._gate = gate
        self._bounds = bounds
        self._threads = threads

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = RawRequest(scope, receive)
        began = time.perf_counter()
        response = await self._answer(request)
        method = request.method if request.method in self._endpoints else "other"
        REQUEST_SECONDS.labels(method, self._path).observe(time.perf_counter() - began)
        REQUESTS.labels(method, self._path, str(response.status_code)).inc()
        await response(scope, receive, send)

    async def _answer(self, request: RawRequest) -> Response:
        probe = self._path in PROBES and request.method in {"GET", "HEAD"}
        if refusal := self._gate.refusal(request.method, request.headers, reached_address(request.scope), probe=probe):
            return problem_response(refusal)
        endpoint = self._endpoints.get(request.method)
        if endpoint is None:
            return self._no_such_method(request)
        actor = await self._admit_actor(endpoint, request)
        if isinstance(actor, Problem):
            if actor.code in TOKEN_REFUSALS:
                await asyncio.sleep(self._failed.record(client_address(request, self._gate.exposure), self._path))
            return problem_response(actor)
        progress = Progress()
        try:
            async with asyncio.timeout(endpoint.seconds or self._bounds.seconds):  # a response streams beyond it
                if refusal := await self._foreign(endpoint, request, actor):
                    return problem_response(refusal)
                if endpoint.raw is not None:
                    progress.raw = True
                    request.scope["patra.actor"] = actor
                    request.scope["patra.still_admitted"] = partial(self._still_admitted, endpoint, request)
                    return await endpoint.raw(request)
                return await self._run_handler(endpoint, request, actor, progress)
        except TimeoutError:
            return problem_response(_timed_out(endpoint, progress))
        except asyncio.CancelledError:  # the server's bound for running requests has passed
            return problem_response(_cut_off(endpoint, progress))
        except PatraError as error:
            log.warning("http_request_refused", endpoint=endpoint.name, code=error.code, detail=error.detail)
            return problem_response(problem_of(error))
        except Exception as error:  # noqa: BLE001  the edge of the process: a bug becomes a 500 that the log explains
            return problem_response(unexpected_problem(error, endpoint.name))

    async def _admit_actor(self, endpoint: Endpoint, request: RawRequest) -> Actor | Problem | None:
        """Who is asking: by a token of the settings, else by one of the store, within its scopes."""
        headers, kept = request.headers, None
        if self._asks_store(endpoint, headers):
            try:
                kept = await self._kept_actor(bearer(headers))
            except TimeoutError:
                return Problem(503, "server_busy", "The token could not be looked up in time", "", {}, RETRY)
            except PatraError as error:
                return problem_of(error)
        actor = self._gate.admit(endpoint.role, headers, kept)
        return (
            actor if actor is None or isinstance(actor, Problem) else within_scope(actor, endpoint, request.path_params)
        )

    async def _still_admitted(self, endpoint: Endpoint, request: RawRequest) -> bool:
        """Whether the token of a request that streams holds still; a store that cannot say ends no stream."""
        found = await self._admit_actor(endpoint, request)
        return not isinstance(found, Problem) or found.status not in {401, 403}

    def _asks_store(self, endpoint: Endpoint, headers: Mapping[str, str]) -> bool:
        """Whether a token may be one of the store; who needs none and reads the request itself is not held up."""
        if self._gate.stored is None or (endpoint.role is None and endpoint.raw is not None):
            return False
        return bearer(headers).startswith(PREFIX) and self._gate.actor(headers) is None

    async def _kept_actor(self, presented: str) -> Actor | TokenRefusal | None:
        stored = self._gate.stored
        if stored is None:
            return None
        async with asyncio.timeout(TOKEN_SECONDS):
            return await asyncio.wrap_future(self._threads.submit(stored.holder, presented))

    async def _foreign(self, endpoint: Endpoint, request: RawRequest, actor: Actor | None) -> Problem | None:
        """Why a token that is bound to tenants may not ask for what this path names."""
        if actor is None or not actor.scope.tenants or endpoint.tenant_of is None:
            return None
        path = dict(request.path_params)
        if any("\x00" in text for text in path.values()):
            return of_own_tenant(actor.scope, None)
        look = self._threads.submit(endpoint.tenant_of, self._patra, path)
        return of_own_tenant(actor.scope, await asyncio.wrap_future(look))

    async def _run_handler(
        self, endpoint: Endpoint, request: RawRequest, actor: Actor | None, progress: Progress
    ) -> Response:
        decoded = await self._decode_request(endpoint, request, actor)
        if isinstance(decoded, Problem):
            return problem_response(decoded)
        query, body = decoded
        asked = Request(
            patra=self._patra, actor=actor, act=endpoint.act, path=dict(request.path_params), query=query, body=body
        )
        progress.work = self._threads.submit(contextvars.copy_context().run, run_handler, endpoint, asked)
        answer = await asyncio.wrap_future(progress.work)
        response = encode_answer(endpoint, answer)
        if endpoint.act:
            name = actor.name if actor else None
            log.info("http_act", act=endpoint.act, actor=name, path=dict(asked.path), status=response.status_code)
        return response

    async def _decode_request(
        self, endpoint: Endpoint, request: RawRequest, actor: Actor | None
    ) -> tuple[Any, Any] | Problem:
        query = _query(endpoint, request, actor)
        if isinstance(query, Problem):
            return query
        body: Any = None
        if endpoint.writes:
            raw = await read_body(request, endpoint.max_body_bytes or self._bounds.body_bytes)
            if isinstance(raw, Problem):
                return raw
            body = _body(endpoint, request, raw)
            if isinstance(body, Problem):
                return body
        return query, body

    def _no_such_method(self, request: RawRequest) -> Response:
        allow = {"Allow": ", ".join(sorted({*self._endpoints, "OPTIONS"}))}
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=allow)
        return problem_response(
            Problem(
                405,
                "method_not_allowed",
                "The path does not know this method",
                f"{request.method} {request.url.path}: allowed are {allow['Allow']}.",
                {},
                allow,
            )
        )


def client_address(request: RawRequest, exposure: Exposure) -> str:
    """Whose request it is: the peer's, or of a trusted proxy its client's. A proxy may append a header of its own."""
    forwarded = ",".join(request.headers.getlist("x-forwarded-for"))
    return exposure.client(request.client.host if request.client else "", forwarded)


def reached_address(scope: Scope) -> str:
    """The address of this machine that the request reached."""
    server = scope.get("server")
    return server[0] if server else ""


def encode_answer(endpoint: Endpoint, answer: Any) -> Response:
    """A handler's answer as bytes on the wire."""
    if isinstance(answer, Problem):
        return problem_response(answer)
    status, headers = endpoint.status, dict(SAFE_HEADERS)
    if isinstance(answer, Reply):
        status, headers, answer = answer.status, headers | dict(answer.headers), answer.body
    if answer is None:
        return Response(status_code=204, headers=headers)
    content = answer if isinstance(answer, bytes) else msgspec.json.encode(answer)
    return Response(content, status, headers, media_type=endpoint.media if isinstance(answer, bytes) else JSON)


def unexpected_problem(error: Exception, endpoint: str) -> Problem:
    """A bug: the client gets an id, the log gets the id and everything else. Not a bug: a machine that is exhausted."""
    if is_exhausted(error):
        log.error("http_process_exhausted", endpoint=endpoint, exc_info=error)
        return problem_of(no_thread(error))
    error_id = new_id()
    log.error("http_internal_error", endpoint=endpoint, error_id=error_id, exc_info=error)
    return Problem(
        500,
        "internal_error",
        "Something went wrong inside Patra",
        f"The log has the details under error_id {error_id}.",
        {"error_id": error_id},
    )


def run_handler(endpoint: Endpoint, asked: Request) -> Any:
    """In a thread: the handler, and the audit row that it did not write itself."""
    handler = endpoint.handler
    if handler is None:
        raise TypeError(f"{endpoint.name} is raw")
    answer = handler(asked)
    if endpoint.act and not asked.audited and not isinstance(answer, Problem):
        subject = "/".join(asked.path.values())
        asked.patra.db.run(lambda tx: asked.audit(tx, subject, {}))
    return answer


def _query(endpoint: Endpoint, request: RawRequest, actor: Actor | None) -> Any:
    if any("\x00" in text for text in (*request.path_params.values(), *request.query_params.values())):
        return Problem(400, "parameter_invalid", "A parameter holds the character U+0000")
    if endpoint.query is None:
        return None
    given = dict(request.query_params)
    if actor is not None and isinstance(given := narrow_query(actor.scope, endpoint, given), Problem):
        return given
    try:
        return msgspec.convert(given, endpoint.query, strict=False)
    except msgspec.ValidationError as error:
        return Problem(400, "query_invalid", "A query parameter is wrong", str(error))


def _body(endpoint: Endpoint, request: RawRequest, raw: bytes) -> Any:
    if endpoint.request is None:
        return raw
    if not raw and endpoint.body_optional:
        return endpoint.request()
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != JSON:
        return Problem(415, "media_type_unsupported", "The body must be JSON", f"Send `Content-Type: {JSON}`.")
    try:
        return msgspec.json.decode(raw, type=endpoint.request)
    except msgspec.ValidationError as error:
        return Problem(422, "body_invalid", "The body is not of the shape asked for", str(error))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return Problem(400, "body_malformed", "The body is not JSON", str(error))


def _cut_off(endpoint: Endpoint, progress: Progress) -> Problem:
    stage = progress.stop()
    log.warning("http_request_cut_off", endpoint=endpoint.name, stage=stage)
    careful = CAREFUL if endpoint.writes and stage == "running" else ""
    return Problem(503, "shutting_down", "The process is shutting down", careful, {}, {"Connection": "close"})


def _timed_out(endpoint: Endpoint, progress: Progress) -> Problem:
    stage = progress.stop()
    log.warning("http_request_timed_out", endpoint=endpoint.name, stage=stage)
    match stage:
        case "reading":
            return Problem(408, "body_timed_out", "The body did not arrive in time", "", {}, {"Connection": "close"})
        case "waiting":  # cancelled before a thread took it: nothing has been done
            headers = {"Retry-After": RETRY_SECONDS}
            return Problem(
                503, "server_busy", "Every thread is busy: the same request may succeed later", "", {}, headers
            )
        case "running":
            return Problem(504, "request_timed_out", "The request took too long", CAREFUL if endpoint.writes else "")
        case _:
            assert_never(stage)
