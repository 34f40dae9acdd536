"""What a film is made of, over HTTP: a picture of each shot, captions for a player, the manifest (C§2.5, C§2.6)."""

import asyncio
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

import msgspec
from starlette.requests import Request as RawRequest
from starlette.responses import Response

from patra.app.access.actor import Role
from patra.app.components.studio import StudioEngine
from patra.app.wiring import Patra
from patra.kernel.errors import Invalid, PatraError
from patra.studio.storage import store
from patra.studio.storage.artifacts import Artifact
from patra.studio.views import tenant_of
from patra.studio.vocabulary.contracts import plan_id_of
from patra.studio.vocabulary.reasons import Reason
from patra.web.dispatch import SAFE_HEADERS
from patra.web.endpoint import Endpoint, Reply, Request
from patra.web.problem import Problem, problem_of, problem_response

TAG = "studio"
NO_SHOT = {404: "There is no such run or shot, or it is not made yet."}
NO_FILM = {404: "There is no such run, or it has no film."}
MAX_STILLS = 256
WEB_VTT = "text/vtt"
SRT_TIME = re.compile(r"(\d\d:\d\d:\d\d),(\d\d\d)")
TITLES = {
    str(Reason.RUN_UNKNOWN): "There is no such run",
    str(Reason.FILM_MISSING): "The run has no film",
    str(Reason.ARTIFACT_MISSING): "The file is gone",
    str(Reason.ARTIFACT_CORRUPT): "The file is not the one that was made",
}


def routes(patra: Patra) -> list[Endpoint]:
    media = _Media(patra)
    return [
        Endpoint(
            method="GET",
            path="/studio/runs/{run_id}/shots/{shot_id}/still",
            raw=media.still,
            role=Role.VIEWER,
            tenant_of=tenant_of_run,
            summary="A picture of one shot, as soon as its clip is made",
            tag=TAG,
            media="image/jpeg",
            problems=NO_SHOT,
        ),
        Endpoint(
            method="GET",
            path="/studio/runs/{run_id}/captions",
            raw=media.captions,
            role=Role.VIEWER,
            tenant_of=tenant_of_run,
            summary="The captions of the published film as WebVTT",
            tag=TAG,
            media=WEB_VTT,
            problems=NO_FILM,
        ),
        Endpoint(
            method="GET",
            path="/studio/runs/{run_id}/manifest",
            handler=_manifest,
            role=Role.VIEWER,
            tenant_of=tenant_of_run,
            summary="The manifest of the published film: what was asked, with what it was made, what came out",
            tag=TAG,
            problems=NO_FILM,
        ),
    ]


def tenant_of_run(patra: Patra, path: Mapping[str, str]) -> str | None:
    """Whose chapter the run of a path is made from."""
    return patra.db.read(lambda tx: tenant_of(tx, path["run_id"]))


def _studio(patra: Patra) -> Any:
    return patra.engine(StudioEngine).studio


def _manifest(request: Request) -> Reply | Problem:
    from patra.studio.pipeline import manifest_of  # noqa: PLC0415  the studio's libraries are an extra

    run_id = request.path["run_id"]
    try:
        found = request.patra.db.read(lambda tx: manifest_of(tx, run_id))
    except Invalid as error:
        return _missing(error)
    return Reply(msgspec.to_builtins(found))


def _missing(error: PatraError) -> Problem:
    title = TITLES.get(str(error.code))
    return Problem(404, str(error.code), title, error.detail) if title else problem_of(error)


def web_vtt(srt: str) -> str:
    """SRT as WebVTT: other marks in the times, and what a player would take for markup as text."""
    return "WEBVTT\n\n" + SRT_TIME.sub(r"\1.\2", srt.replace("&", "&amp;").replace("<", "&lt;"))


def captions_of(files: Sequence[Artifact]) -> Artifact | None:
    """The captions of a film: its WebVTT, or its SRT, which is all that films of earlier releases have."""
    subtitles = [one for one in files if one.kind == "subtitles"]
    return next((one for one in subtitles if one.media_type == WEB_VTT), next(iter(subtitles), None))


class _Media:
    """Answers with a body that is no JSON. Stills are made once and kept, the latest used."""

    def __init__(self, patra: Patra) -> None:
        self._patra = patra
        self._lock = Lock()
        self._stills: OrderedDict[str, bytes] = OrderedDict()

    async def still(self, request: RawRequest) -> Response:
        run_id, shot_id = request.path_params["run_id"], request.path_params["shot_id"]
        try:
            clip = await asyncio.to_thread(self._clip, run_id, shot_id)
            if clip is None:
                return problem_response(
                    Problem(404, str(Reason.ARTIFACT_MISSING), "This shot is not there or not made yet")
                )
            body = await asyncio.to_thread(self._picture, clip)
        except PatraError as error:
            return problem_response(_missing(error))
        headers = SAFE_HEADERS | {"ETag": f'"{clip.sha256}"', "Cache-Control": "private, max-age=3600"}
        return Response(body, media_type="image/jpeg", headers=headers)

    def _clip(self, run_id: str, shot_id: str) -> Artifact | None:
        """The clip of a shot in the run's plan of now."""

        def read(tx: Any) -> Artifact | None:
            run = store.run(tx, run_id)
            jobs = store.jobs(tx, run_id, plan_id_of(run_id, run.plan_version), shot_id) if run and shot_id else []
            clips = [one for job in jobs if job.state == "succeeded" for one in job.artifacts if one["kind"] == "video"]
            return msgspec.convert(clips[0], Artifact) if clips else None

        return self._patra.db.read(read)

    def _picture(self, clip: Artifact) -> bytes:
        from patra.studio.film.stills import still  # noqa: PLC0415

        with self._lock:
            if (known := self._stills.get(clip.sha256)) is not None:
                self._stills.move_to_end(clip.sha256)
                return known
        made = still(_studio(self._patra).artifacts.path(clip), (clip.duration_ms or 0) / 2000)
        with self._lock:
            self._stills[clip.sha256] = made
            if len(self._stills) > MAX_STILLS:
                self._stills.popitem(last=False)
        return made

    async def captions(self, request: RawRequest) -> Response:
        run_id = request.path_params["run_id"]
        try:
            text = await asyncio.to_thread(self._vtt, run_id)
        except PatraError as error:
            return problem_response(_missing(error))
        headers = SAFE_HEADERS | {"Cache-Control": "no-store"}
        return Response(text, media_type=WEB_VTT, headers=headers)

    def _vtt(self, run_id: str) -> str:
        from patra.studio.pipeline import manifest_of  # noqa: PLC0415

        manifest = self._patra.db.read(lambda tx: manifest_of(tx, run_id))
        subtitles = captions_of(manifest.artifacts)
        if subtitles is None:
            raise Invalid(Reason.FILM_MISSING, "the film has no captions", place="run_id")
        text = _studio(self._patra).artifacts.path(subtitles).read_text("utf-8")
        return text if subtitles.media_type == WEB_VTT else web_vtt(text)
