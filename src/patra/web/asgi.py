"""Turns a Patra into an ASGI application: the table of endpoints as routes, and nothing that is not a route.

Every answer that is not a success is `application/problem+json`, also for unknown paths.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from typing import Any

import msgspec
from starlette.requests import Request as RawRequest
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from patra.app.access.tokens import StoredTokens
from patra.app.wiring import Patra
from patra.web.api import operations, story, tokens
from patra.web.auth import Gate, TokenFiles, gate, token_files
from patra.web.console.application import Console
from patra.web.dispatch import PROBES, REQUESTS, Bounds, Dispatch, client_address, reached_address, unexpected_problem
from patra.web.endpoint import JSON, Endpoint
from patra.web.failed_attempts import FailedAttempts
from patra.web.openapi import openapi
from patra.web.problem import Problem, problem_response
from patra.web.request_rates import RequestRates


class App:
    """The ASGI application and its threads."""

    def __init__(self, patra: Patra, endpoints: Sequence[Endpoint]) -> None:
        self.settings = web = patra.settings.web
        self.gate = gate(web, StoredTokens(patra.db, patra.clock))
        self._token_files = TokenFiles(self.gate, token_files(web))
        failed = FailedAttempts()
        self._rates = RequestRates(web)
        self.endpoints = [*endpoints, _openapi_endpoint(endpoints, self.gate)]
        self.threads = ThreadPoolExecutor(web.threads, thread_name_prefix="web")
        self.console = Console(patra, self.endpoints, self.gate, self.threads, failed)
        bounds = Bounds(body_bytes=web.max_body_bytes, seconds=web.request_seconds)
        by_path: dict[str, list[Endpoint]] = {}
        for endpoint in self.endpoints:
            by_path.setdefault(endpoint.path, []).append(endpoint)
        dispatches: dict[str, ASGIApp] = {
            path: Dispatch(group, patra=patra, gate=self.gate, bounds=bounds, threads=self.threads, failed=failed)
            for path, group in by_path.items()
        }
        self._plain = {path: dispatch for path, dispatch in dispatches.items() if "{" not in path}
        self._router: ASGIApp = Router(
            [Route(path, dispatch) for path, dispatch in dispatches.items() if "{" in path],
            redirect_slashes=False,
            default=self._unknown_path,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        self._token_files.look()
        path = scope["path"]
        if path not in PROBES and (refusal := self._too_fast(scope)) is not None:
            REQUESTS.labels("other", "(unread)", "429").inc()
            await problem_response(refusal)(scope, receive, send)
            return
        try:
            if path == "/console" or path.startswith("/console/"):
                await self.console(scope, receive, send)
            elif path == "/" and _wants_page(scope) and not self._refusal(scope):
                await RedirectResponse("/console/", 303, {"Vary": "Accept"})(scope, receive, send)
            else:
                await self._plain.get(path, self._router)(scope, receive, send)
        except Exception as error:
            unexpected_problem(error, f"{scope['method']} {scope['path']}")
            raise

    def _too_fast(self, scope: Scope) -> Problem | None:
        if not self._rates.are_bounded:  # before the headers are read for it
            return None
        request = RawRequest(scope)
        return self._rates.refusal(client_address(request, self.gate.exposure), request.headers)

    def _refusal(self, scope: Scope) -> Problem | None:
        request = RawRequest(scope)
        return self.gate.refusal(request.method, request.headers, reached_address(scope))

    async def _unknown_path(self, scope: Scope, receive: Receive, send: Send) -> None:
        problem = self._refusal(scope) or Problem(
            404, "path_unknown", "There is nothing at this path", "`/openapi.json` lists what there is."
        )
        REQUESTS.labels("other", "(unknown)", str(problem.status)).inc()  # labels are not the client's to invent
        await problem_response(problem)(scope, receive, send)

    def begin(self) -> None:
        """What runs beside the requests: the counts behind the console's drawings."""
        self.console.series.begin()

    def end_streams(self) -> None:
        """Let live pages end: they would hold up a server that stops. Safe in a signal handler: it sets a flag."""
        self.console.live.stopping = True

    def close(self) -> None:
        """Take no more work; a handler that still runs is not waited for."""
        self.console.series.close()
        self.threads.shutdown(wait=False, cancel_futures=True)


def _wants_page(scope: Scope) -> bool:
    """Whether a browser asks: it names text/html, programs do not."""
    request = RawRequest(scope)
    return request.method in {"GET", "HEAD"} and "text/html" in request.headers.get("accept", "")


def every_endpoint(patra: Patra) -> list[Endpoint]:
    """The table: the process's own, then each part's from `patra.web.api.<part>`."""
    return [
        *operations.routes(patra),
        *tokens.routes(patra),
        *story.routes(patra),
        *chain.from_iterable(_routes_of(part.name, patra) for part in patra.parts),
    ]


def app(patra: Patra, endpoints: Sequence[Endpoint] | None = None) -> App:
    """The application with every endpoint, or only with those given."""
    return App(patra, every_endpoint(patra) if endpoints is None else endpoints)


def _routes_of(part: str, patra: Patra) -> list[Endpoint]:
    name = f"patra.web.api.{part}"
    return import_module(name).routes(patra) if find_spec(name) else []


def _openapi_endpoint(endpoints: Sequence[Endpoint], gate: Gate) -> Endpoint:
    async def handler(request: RawRequest) -> Response:
        del request
        return Response(document, media_type=JSON)

    endpoint = Endpoint(
        method="GET",
        path="/openapi.json",
        raw=handler,
        role=None,
        summary="This interface as an OpenAPI 3.1 document",
        response=dict[str, Any],
    )
    document = msgspec.json.encode(openapi([*endpoints, endpoint], tokens=not gate.open))
    return endpoint
