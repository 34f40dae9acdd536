"""The HTTP interface of the studio: chapters, runs with live progress, films (C§2.1, C§2.6).

| file | in | out |
|---|---|---|
| `media` | a run, a shot | stills, captions, the manifest |
| `edits` | what changes in a shot | the shots of a run, the film made again |
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from starlette.requests import Request as RawRequest
from starlette.responses import FileResponse, Response, StreamingResponse

from patra.app.access.actor import Role
from patra.app.components.studio import StudioEngine
from patra.app.wiring import Patra
from patra.kernel.errors import Invalid
from patra.kernel.ids import new_id
from patra.kernel.safety.untrusted_text import integer_of
from patra.studio.script.edits import ShotEdit
from patra.studio.views import RunLine, recent
from patra.studio.vocabulary.contracts import run_id_of
from patra.studio.vocabulary.reasons import Reason
from patra.web.api.studio import edits, media
from patra.web.dispatch import SAFE_HEADERS
from patra.web.endpoint import Endpoint, Reply, Request
from patra.web.problem import Problem, problem_response

TAG = "studio"
MAX_BODY_BYTES = 4 * 1024 * 1024
LOOK_EVERY = 0.4  # seconds between looks at a run that is watched
MAX_STREAMS = 50  # of one process: each looks at the store all the while
MAX_STREAMS_PER_ACTOR = 5
ASK_AGAIN_SECONDS = 60.0  # between looks whether the token of a stream holds still
RETRY = {"Retry-After": "5"}
NO_RUN = {404: "There is no such run, or it has no film."}
_MISSING = {str(Reason.RUN_UNKNOWN): "There is no such run", str(Reason.FILM_MISSING): "The run has no film"}


class Chapter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A chapter to be made into a film."""

    chapter: Annotated[str, Meta(min_length=1, description="The text; a first line without a full stop is its title.")]
    title: Annotated[str, Meta(max_length=500)] = ""
    quality: Annotated[str, Meta(description="draft, standard or high.")] = "draft"
    language: Annotated[str, Meta(max_length=35, description="BCP 47; found from the text when empty.")] = ""
    task_id: Annotated[str, Meta(max_length=120, description="Your own id: the same again is the same task.")] = ""
    chapter_id: Annotated[str, Meta(max_length=120)] = ""
    tenant_id: Annotated[str, Meta(max_length=120)] = "default"
    project_id: Annotated[str, Meta(max_length=120)] = "default"
    edits: Annotated[dict[str, ShotEdit], Meta(description="Edits of its shots, by id, as of a storyboard.")] = {}
    options: Annotated[
        dict[str, Any], Meta(description="subtitles, format, narrator, ambience, on_failed_shot, profiles, fresh.")
    ] = {}


class Submitted(msgspec.Struct, frozen=True, kw_only=True):
    run_id: str
    links: dict[str, str]


class Acted(msgspec.Struct, frozen=True, kw_only=True):
    run_id: str
    stage: str


class Again(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """From which stage an ended run is done again; where it stopped when empty."""

    stage: Annotated[str, Meta(description="planning, executing or composing; empty: resume.")] = ""


class Runs(msgspec.Struct, frozen=True, kw_only=True):
    runs: list[RunLine]


class RunsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    tenant_id: Annotated[str, Meta(max_length=120, description="Only runs of this tenant.")] = ""
    limit: Annotated[int, Meta(ge=1, le=1000, description="How many runs to give.")] = 50


def routes(patra: Patra) -> list[Endpoint]:
    live = _Live(patra)
    return [
        Endpoint(
            method="POST",
            path="/studio/runs",
            handler=_submit,
            role=Role.OPERATOR,
            act="studio.submit",
            summary="Make a film from a chapter",
            description="Answers at once; the film is made in the background.",
            tag=TAG,
            request=Chapter,
            response=Submitted,
            status=202,
            max_body_bytes=MAX_BODY_BYTES,
            problems={400: "The chapter or a wish breaks a rule.", 409: "The task's id is another task's."},
        ),
        Endpoint(
            method="GET",
            path="/studio/runs",
            handler=_runs,
            role=Role.VIEWER,
            summary="Runs, newest first",
            tag=TAG,
            query=RunsQuery,
            tenant_query="tenant_id",
            response=Runs,
        ),
        Endpoint(
            method="GET",
            path="/studio/runs/{run_id}",
            handler=_run,
            role=Role.VIEWER,
            tenant_of=media.tenant_of_run,
            summary="A run: stage, jobs, costs, film, what was left out",
            tag=TAG,
            problems=NO_RUN,
        ),
        Endpoint(
            method="GET",
            path="/studio/runs/{run_id}/events",
            raw=live.events,
            role=Role.VIEWER,
            tenant_of=media.tenant_of_run,
            summary="The story of a run as server-sent events, until it ends",
            description="Each event of the run is one `note`, with its number as the id (send `Last-Event-ID` to go "
            "on); `progress` follows whenever something changed.",
            tag=TAG,
            media="text/event-stream",
            problems=NO_RUN | {503: "Too many runs are watched."},
        ),
        Endpoint(
            method="GET",
            path="/studio/runs/{run_id}/film",
            raw=live.film,
            role=Role.VIEWER,
            tenant_of=media.tenant_of_run,
            summary="The published film",
            tag=TAG,
            media="video/mp4",
            problems=NO_RUN,
        ),
        Endpoint(
            method="POST",
            path="/studio/runs/{run_id}/cancel",
            handler=_cancel,
            role=Role.OPERATOR,
            act="studio.cancel",
            summary="Cancel a run that is under way",
            tag=TAG,
            response=Acted,
            problems=NO_RUN | {409: "The run has ended, or its film is being published."},
        ),
        Endpoint(
            method="POST",
            path="/studio/runs/{run_id}/resume",
            handler=_resume,
            role=Role.OPERATOR,
            act="studio.resume",
            summary="Go on with an ended run, or run it again from a stage",
            tag=TAG,
            request=Again,
            response=Acted,
            problems=NO_RUN | {400: "The stage is unknown.", 409: "The run is under way."},
        ),
        *media.routes(patra),
        *edits.routes(),
    ]


def _studio(patra: Patra) -> Any:
    return patra.engine(StudioEngine).studio


def _submit(request: Request) -> Reply:
    from patra.studio.gateway import Options, Submission  # noqa: PLC0415  the studio's libraries are an extra

    asked: Chapter = request.body
    try:
        wishes = msgspec.convert(asked.options, Options)
    except msgspec.ValidationError as error:
        raise Invalid(Reason.OPTION_INVALID, str(error), place="options") from error
    given = {name: getattr(asked, name) for name in Chapter.__struct_fields__ if name not in {"options", "edits"}}
    given["task_id"] = asked.task_id or f"task_{new_id()}"
    by = request.actor.name if request.actor else "local"
    submission, run_id = Submission(**given, submitted_by=by, options=wishes), run_id_of(given["task_id"])
    studio = _studio(request.patra)
    request.act(lambda tx: studio.submit_in(tx, submission, asked.edits), run_id, quality=asked.quality)
    links = {
        name: f"/studio/runs/{run_id}{path}" for name, path in (("run", ""), ("events", "/events"), ("film", "/film"))
    }
    return Reply(Submitted(run_id=run_id, links=links), 202, {"Location": links["run"]})


def _runs(request: Request) -> Runs:
    query: RunsQuery = request.query
    return Runs(runs=request.patra.db.read(lambda tx: recent(tx, query.limit, query.tenant_id)))


def _run(request: Request) -> Any:
    try:
        return _studio(request.patra).progress(request.path["run_id"])
    except Invalid as error:
        return _missing(error)


def _cancel(request: Request) -> Acted | Problem:
    run_id, studio = request.path["run_id"], _studio(request.patra)
    by = request.actor.name if request.actor else "local"
    try:
        request.act(lambda tx: studio.orchestrator.cancel(tx, run_id, by), run_id)
    except Invalid as error:
        return _missing(error)
    return Acted(run_id=run_id, stage="cancelled")


def _resume(request: Request) -> Acted | Problem:
    run_id, studio = request.path["run_id"], _studio(request.patra)
    asked: Again = request.body
    by = request.actor.name if request.actor else "local"
    try:
        if asked.stage:
            stage = request.act(lambda tx: studio.orchestrator.rerun(tx, run_id, asked.stage, by), run_id)
        else:
            stage = request.act(lambda tx: studio.orchestrator.resume(tx, run_id, by), run_id)
    except Invalid as error:
        return _missing(error)
    return Acted(run_id=run_id, stage=stage)


def _missing(error: Invalid) -> Problem:
    if error.code not in _MISSING:
        raise error
    return Problem(404, error.code, _MISSING[error.code], error.detail)


class _Live:
    """Answers that stream: the story of a run, and its film."""

    def __init__(self, patra: Patra) -> None:
        self._patra = patra
        self._streams: Counter[str] = Counter()

    async def events(self, request: RawRequest) -> Response:
        run_id = request.path_params["run_id"]
        try:
            await asyncio.to_thread(self._run_state, run_id)
        except Invalid as error:
            return problem_response(_missing(error))
        actor = request.scope["patra.actor"].name
        if self._is_full(actor):
            return problem_response(Problem(503, "too_many_streams", "Too many runs are watched", "", {}, RETRY))
        since = integer_of(request.headers.get("last-event-id", "")) or 0
        headers = SAFE_HEADERS | {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        stream = self._tell_messages(run_id, since, actor, request.scope["patra.still_admitted"])
        return StreamingResponse(stream, headers=headers, media_type="text/event-stream")

    def _is_full(self, actor: str) -> bool:
        return self._streams.total() >= MAX_STREAMS or self._streams[actor] >= MAX_STREAMS_PER_ACTOR

    async def _tell_messages(
        self, run_id: str, since: int, actor: str, still_admitted: Callable[[], Awaitable[bool]]
    ) -> AsyncGenerator[bytes]:
        from patra.studio.observer import notes  # noqa: PLC0415

        before = b""
        if self._is_full(actor):  # they came all at once
            return
        self._streams[actor] += 1
        asked_at = time.monotonic()
        try:
            while True:
                progress = await asyncio.to_thread(self._run_state, run_id)
                fresh = await asyncio.to_thread(self._patra.db.read, lambda tx, since=since: notes(tx, run_id, since))
                for note in fresh:
                    since = note.note_id
                    yield b"id: %d\nevent: note\ndata: %s\n\n" % (since, msgspec.json.encode(note))
                now = msgspec.json.encode(progress)
                if now != before:
                    before = now
                    yield b"event: progress\ndata: %s\n\n" % now
                if progress.has_ended and not fresh:
                    yield b"event: end\ndata: {}\n\n"
                    return
                await asyncio.sleep(LOOK_EVERY)
                if time.monotonic() - asked_at >= ASK_AGAIN_SECONDS:
                    asked_at = time.monotonic()
                    if not await still_admitted():
                        return
        finally:
            self._streams[actor] -= 1
            self._streams += Counter()  # without those who watch nothing

    async def film(self, request: RawRequest) -> Response:
        run_id = request.path_params["run_id"]
        try:
            path, manifest = await asyncio.to_thread(lambda: _studio(self._patra).film(run_id))
        except Invalid as error:
            return problem_response(_missing(error))
        headers = SAFE_HEADERS | {"ETag": f'"{manifest.artifacts[0].sha256}"'}
        return FileResponse(path, media_type="video/mp4", filename=f"{run_id}.mp4", headers=headers)

    def _run_state(self, run_id: str) -> Any:
        return _studio(self._patra).progress(run_id)
