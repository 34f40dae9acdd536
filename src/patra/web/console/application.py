"""The console as an ASGI application: addresses below `/console`, pages for GET, acts for POST, nothing else."""

import asyncio
import re
import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import monotonic
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.convertors import Convertor
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import compile_path
from starlette.types import Receive, Scope, Send

import patra
from patra.app.access.sessions import Sessions
from patra.app.wiring import Patra
from patra.kernel.errors import PatraError
from patra.web.auth import Gate
from patra.web.body import read_body
from patra.web.console import live, responses
from patra.web.console.access import COOKIE, Access, Visitor, drop_cookie, local_path, set_cookie
from patra.web.console.act import Act, Fields, command_of, lacking, path_of
from patra.web.console.acts import ACTS
from patra.web.console.assets import asset_response
from patra.web.console.calls import Calls, Refusal
from patra.web.console.forms import FORM_BYTES, LOGIN_BYTES, form_fields, handed_on, join_fields
from patra.web.console.navigation import navigation
from patra.web.console.outcomes import Outcome, Outcomes
from patra.web.console.pages import ROUTES
from patra.web.console.reads.attention import Counts, read_counts
from patra.web.console.reads.ingest import LandedRecords
from patra.web.console.reads.series import Series
from patra.web.console.render import render
from patra.web.console.view import Page, Route, View
from patra.web.dispatch import REQUESTS, client_address, reached_address, unexpected_problem
from patra.web.endpoint import Endpoint
from patra.web.failed_attempts import FailedAttempts
from patra.web.problem import Problem, problem_of

PAGE_SECONDS = 20.0
MEDIA = {
    "film": "/studio/runs/{run_id}/film",
    "captions": "/studio/runs/{run_id}/captions",
    "still": "/studio/runs/{run_id}/shots/{shot_id}/still",
}
"""Files of a run under `/console/studio`, by the word that names them there."""
NOT_FOUND = Problem(404, "page_unknown", "There is no such page", "Search for a key above, or choose a view.")
ACT_TOO_SLOW = Problem(
    504, "query_too_slow", "The store took too long", "The act may still be done: look before you send it again."
)
OLD_FORM = Problem(403, "form_expired", "This form is too old", "Load the page again and send it once more.")


class Console:
    """Everything below `/console`."""

    def __init__(
        self,
        patra: Patra,
        endpoints: Sequence[Endpoint],
        gate: Gate,
        threads: ThreadPoolExecutor,
        failed: FailedAttempts,
    ) -> None:
        self._exposure = gate.exposure
        self._failed = failed
        self._patra = patra
        self._calls = Calls(patra, endpoints)
        self._access = Access(gate, Sessions(patra.db, patra.clock))
        self._threads = threads
        self._outcomes = Outcomes()
        self._counts = Counts(partial(read_counts, self._calls))
        self.live = live.Live()
        has_ingest = any(part.name == "ingest" for part in patra.parts)
        self.series = Series({"records": LandedRecords(patra)} if has_ingest else {})
        self._routes = [(*_compile_route(f"/console{route.path}"), route) for route in ROUTES]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        path = scope["path"]
        if path.startswith("/console/static/"):
            found = asset_response(path.removeprefix("/console/static/"), request.headers.get("accept-encoding", ""))
            response = found or Response("no such file", 404, responses.HEADERS, "text/plain")
            label = "/console/static"
        else:
            label, response = await self._answer(request, path)
        REQUESTS.labels(
            request.method if request.method in {"GET", "POST"} else "other", label, str(response.status_code)
        ).inc()
        await response(scope, receive, send)

    async def _answer(self, request: Request, path: str) -> tuple[str, Response]:
        if refusal := self._access.refusal(request.method, request.headers, reached_address(request.scope)):
            return "/console", self._bare(request, refusal)
        if path == "/console":
            return path, responses.redirect("/console/")
        cookie = request.cookies.get(COOKIE, "")
        try:
            visitor = await self._in_thread(lambda: self._access.visitor(cookie))
            if path == "/console/login":
                return path, await self._login(request, visitor)
            if visitor is None:
                return path, self._to_login(request, path)
            label, response = await self._signed_in(request, path, visitor)
        except TimeoutError:
            return "/console", self._bare(request, Problem(504, "query_too_slow", "The store took too long"))
        except PatraError as error:
            return "/console", self._bare(request, problem_of(error))
        except Exception as error:  # noqa: BLE001  the edge of the process: a bug becomes a 500 that the log explains
            return "/console", self._bare(request, unexpected_problem(error, f"console: {path}"))
        if visitor.fresh:
            set_cookie(response, visitor.cookie, secure=self._is_secure(request))
        return label, response

    async def _signed_in(self, request: Request, path: str, visitor: Visitor) -> tuple[str, Response]:
        kind, _, name = path.removeprefix("/console/").partition("/")
        match request.method, kind:
            case (("GET" | "HEAD"), "live"):
                return "/console/live", self._stream(request, visitor)
            case "GET", "confirm" if name in ACTS:
                form = Fields(join_fields(request.query_params.multi_items()))
                return "/console/confirm", await self._confirmation(request, visitor, name, form)
            case (("GET" | "HEAD"), "studio") if name.partition("/")[0] in MEDIA:
                what, _, which = name.partition("/")
                return f"/console/studio/{what}", await self._media(request, visitor, MEDIA[what], which)
            case "POST", "do" if name in ACTS:
                return "/console/do", await self._act(request, visitor, name)
            case "POST", "logout":
                return "/console/logout", await self._logout(request, visitor)
            case (("GET" | "HEAD"), _):
                query = dict(request.query_params.items())
                page, route = await self._in_thread(lambda: self._page(visitor, path, query))
                label = f"/console{route.path}" if route else "/console"
                return label, await self._in_thread(lambda: self._frame_page(request, visitor, page, route, query))
            case _:
                return "/console", self._bare(request, Problem(405, "method_not_allowed", "Not by this method"))

    def _to_login(self, request: Request, path: str) -> Response:
        """A page leads there; a part of a page (a dialog, a stream) takes the whole page there and back."""
        asked = path + (f"?{request.url.query}" if request.url.query else "")
        if not responses.is_part(request):
            return responses.redirect(f"/console/login?{urlencode({'next': asked})}")
        page = urlsplit(request.headers.get("hx-current-url", ""))
        shown = local_path(page.path + (f"?{page.query}" if page.query else ""))
        return responses.redirect_page(f"/console/login?{urlencode({'next': shown})}")

    # --- pages

    def _page(self, visitor: Visitor, path: str, query: dict[str, str]) -> tuple[Page, Route | None]:
        for pattern, convertors, route in self._routes:
            if found := pattern.match(path):
                values = {name: convertors[name].convert(text) for name, text in found.groupdict().items()}
                view = View(
                    calls=self._calls,
                    series=self.series,
                    actor=visitor.actor,
                    route=route.path,
                    path=values,
                    query=query,
                    now=self._patra.clock.now(),
                )
                try:
                    page = route.handler(view)
                except Refusal as refusal:
                    page = problem_page(refusal.problem)
                return page.among({"here": view.here(), "view": view, "partial": view.partial}), route
        return problem_page(NOT_FOUND), None

    def _frame_page(
        self, request: Request, visitor: Visitor, page: Page, route: Route | None, query: dict[str, str]
    ) -> Response:
        if page.file is not None:
            return responses.download(page.file.name, page.file.content)
        after_act = "did" in query or route is None
        values = self._values(visitor, page, route, query, not_before=monotonic() if after_act else 0.0)
        values |= {"theme": request.cookies.get("patra_theme", ""), "layout": "frame.html"}
        values["said"] = self._outcomes.text(f"{visitor.cookie}/{query['did']}") if "did" in query else ""
        return responses.html(request, render(page.template, values), page.status)

    def _values(
        self, visitor: Visitor, page: Page, route: Route | None, query: dict[str, str], *, not_before: float = 0.0
    ) -> dict[str, Any]:
        asked = urlencode({name: value for name, value in query.items() if name != "did"})
        may = partial(self._calls.may, visitor.actor)
        return {
            "title": page.title,
            "now": self._patra.clock.now(),
            "actor": visitor.actor,
            "open": self._access.open,
            "version": patra.__version__,
            "may": may,
            "form_token": visitor.form_token,
            "once": secrets.token_urlsafe(12),
            "nav": navigation(self._counts.now(visitor.actor, not_before), route.nav if route else "", may, query),
            "live_query": asked,
            "is_live": route is not None and route.live,
            "here": "/console/",
            "partial": [],
            **page.values,
        }

    def _bare(self, request: Request, problem: Problem) -> Response:
        """A problem before the visitor is known: no navigation, no names. In a dialog, as a part of it."""
        if responses.is_part(request):
            return self._problem_part(request, problem)
        return responses.html(request, render("bare.html", {"problem": problem, "theme": ""}), problem.status)

    def _problem_part(self, request: Request, problem: Problem) -> Response:
        again = f"{request.url.path}?{request.url.query}" if request.method == "GET" else ""
        values = {"problem": problem, "again": again}
        return responses.part(request, render("dialog_problem.html", values), problem.status)

    async def _media(self, request: Request, visitor: Visitor, template: str, which: str) -> Response:
        """A file as the HTTP interface gives it, ranges included: a player has a cookie, not a token."""
        endpoint = self._calls.endpoint("GET", template)
        if endpoint.raw is None or not self._calls.may(visitor.actor, endpoint.method, endpoint.template):
            return self._bare(request, NOT_FOUND)
        run_id, _, shot_id = which.partition("/")
        request.scope["path_params"] = {"run_id": run_id, "shot_id": shot_id}
        response = await endpoint.raw(request)
        response.headers["Content-Disposition"] = "inline"
        return response

    # --- live

    def _stream(self, request: Request, visitor: Visitor) -> Response:
        if self.live.full:
            return self._bare(request, Problem(503, "too_many_streams", "Too many live pages; reload to see news"))
        asked = urlsplit(local_path(request.query_params.get("view", "")))
        query = dict(parse_qsl(asked.query))
        cookie, key = visitor.cookie, (f"{asked.path}?{asked.query}", visitor.actor.role.value)
        connected_at = monotonic()

        def make_page() -> str:
            page, route = self._page(visitor, asked.path, query)
            values = self._values(visitor, page, route, query, not_before=connected_at)
            # shared with others of the role: nothing of this session stands in it
            shared = {"layout": "fragment.html", "said": "", "theme": "", "form_token": "", "once": ""}
            return render(page.template, values | shared)

        def look() -> live.Fragment | None:
            return self.live.fragment(key, make_page, connected_at) if self._access.visitor(cookie) else None

        stream = self.live.messages(look, request.headers.get("last-event-id", ""))
        headers = responses.HEADERS | {"X-Accel-Buffering": "no"}
        return StreamingResponse(stream, headers=headers, media_type="text/event-stream")

    # --- acts

    async def _form(self, request: Request, max_bytes: int = FORM_BYTES) -> Fields | Problem:
        body = await read_body(request, max_bytes)
        if isinstance(body, Problem):
            return body
        found = await self._in_thread(lambda: form_fields(body))
        return found if isinstance(found, Problem) else Fields(join_fields(request.query_params.multi_items()) | found)

    async def _act(self, request: Request, visitor: Visitor, name: str) -> Response:
        form = await self._form(request)
        if isinstance(form, Problem):
            return self._bare(request, form)
        if not self._access.is_form_of(visitor, form["form_token"]):
            return self._bare(request, OLD_FORM)
        act = ACTS[name]
        if wrong := lacking(act, form):
            return await self._confirmation(request, visitor, name, form, wrong=wrong, status=422)

        def work() -> Outcome:
            answer = self._calls.ask(visitor.actor, act.method, act.template, act.path(form), None, act.body(form))
            shown = act.secret(answer) if act.secret else None
            target = local_path(act.after(form, answer))
            return Outcome(
                text=act.done(form, answer), target=target, secret=shown, report=answer if act.report else None
            )

        once = form["once"] or secrets.token_urlsafe(12)
        try:
            content = (name, handed_on(form))
            outcome, now = await self._in_thread(lambda: self._outcomes.once(f"{visitor.cookie}/{once}", work, content))
        except TimeoutError:
            return self._bare(request, ACT_TOO_SLOW)
        except Refusal as refusal:
            return await self._confirmation(
                request, visitor, name, form, problem=refusal.problem, status=refusal.problem.status
            )
        if outcome.secret is not None:
            shown = outcome.secret if now else ("It was shown when it was made", "")
            page = Page(title=outcome.text, template="secret.html", values={"secret": shown, "back": outcome.target})
            return await self._in_thread(lambda: self._frame_page(request, visitor, page, None, {}))
        if act.report:
            values = {"found": outcome.report, "form": form, "back": outcome.target}
            page = Page(title=outcome.text, template=act.report, values=values)
            return await self._in_thread(lambda: self._frame_page(request, visitor, page, None, {}))
        joint = "&" if "?" in outcome.target else "?"
        return responses.redirect(f"{outcome.target}{joint}did={once}")

    async def _confirmation(
        self,
        request: Request,
        visitor: Visitor,
        name: str,
        form: Fields,
        *,
        wrong: dict[str, str] | None = None,
        problem: Problem | None = None,
        status: int = 200,
    ) -> Response:
        act = ACTS[name]
        if not self._calls.may(visitor.actor, act.method, act.template):
            needed = self._calls.endpoint(act.method, act.template).role
            problem = Problem(403, "role_insufficient", f"This needs the role {needed.value if needed else ''}")
            if responses.is_part(request):
                return self._problem_part(request, problem)
            return await self._in_thread(lambda: self._frame_page(request, visitor, problem_page(problem), None, {}))
        values: dict[str, Any] = {
            "act": act,
            "name": name,
            "form": form,
            "wrong": wrong or {},
            "problem": problem,
            "heading": " ".join(act.title.format_map(form).split()),
            "command": command_of(act, form),
            "preview": await self._in_thread(lambda: self._preview(visitor, act, form)),
            "given": handed_on(form),
        }
        page = Page(title=values["heading"], template="confirm.html", values=values, status=status)

        def answer_page() -> Response:
            shown = self._values(visitor, page, None, {}) | {
                "theme": request.cookies.get("patra_theme", ""),
                "said": "",
            }
            if responses.is_part(request):
                return responses.part(request, render(page.template, shown | {"layout": "part.html"}), status)
            return responses.html(request, render(page.template, shown | {"layout": "frame.html"}), status)

        return await self._in_thread(answer_page)

    def _preview(self, visitor: Visitor, act: Act, form: Fields) -> dict[str, Any] | None:
        """What the server says of an act before it is done; what it cannot say is not a reason to refuse the form."""
        asked = act.preview
        if asked is None or not self._calls.may(visitor.actor, asked.method, asked.template):
            return None
        try:
            path, query = path_of(asked.template, form), asked.query(form)
            return {"found": self._calls.ask(visitor.actor, asked.method, asked.template, path, query)}
        except Refusal as refusal:
            return {"problem": refusal.problem}

    # --- signing in and out

    async def _login(self, request: Request, visitor: Visitor | None) -> Response:
        target = local_path(request.query_params.get("next", ""))
        if self._access.open:
            return responses.redirect(target)
        values = {"next": target, "wrong": False, "visitor": visitor, "theme": request.cookies.get("patra_theme", "")}
        if request.method != "POST":
            return responses.html(request, render("login.html", values))
        form = await self._form(request, LOGIN_BYTES)
        if isinstance(form, Problem):
            return self._bare(request, form)
        made = await self._in_thread(lambda: self._access.sign_in(form["token"]))
        if made is None:
            await asyncio.sleep(self._failed.record(client_address(request, self._exposure), "/console/login"))
            return responses.html(request, render("login.html", values | {"wrong": True}), 401)
        if visitor is not None:  # one browser, one session
            await self._in_thread(lambda: self._access.sign_out(visitor.cookie))
        response = responses.redirect(local_path(form["next"]))
        set_cookie(response, made.cookie, secure=self._is_secure(request))
        return response

    def _is_secure(self, request: Request) -> bool:
        """Whether the browser speaks TLS: with us, or with the proxy in front that web.public_url names."""
        return request.url.scheme == "https" or self._exposure.origin.startswith("https://")

    async def _logout(self, request: Request, visitor: Visitor) -> Response:
        form = await self._form(request)
        if isinstance(form, Problem) or not self._access.is_form_of(visitor, form["form_token"]):
            return self._bare(request, OLD_FORM)
        await self._in_thread(lambda: self._access.sign_out(visitor.cookie))
        response = responses.redirect("/console/login")
        drop_cookie(response)
        return response

    async def _in_thread(self, work: Callable[[], Any]) -> Any:
        async with asyncio.timeout(PAGE_SECONDS):
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def _compile_route(path: str) -> tuple[re.Pattern[str], dict[str, Convertor[Any]]]:
    pattern, _, convertors = compile_path(path)
    return pattern, convertors


def problem_page(problem: Problem) -> Page:
    return Page(title=problem.title, template="problem.html", values={"problem": problem}, status=problem.status)
