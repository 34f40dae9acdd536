"""Shots of a run over HTTP: what is seen in each, changing one, making the film again (C§2.3, C§2.4)."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from patra.app.access.actor import Role
from patra.app.components.studio import StudioEngine
from patra.kernel.errors import Invalid
from patra.studio.script.edits import MAX_NARRATION_CHARACTERS, ShotEdit
from patra.studio.views import ShotDetail, shot_details
from patra.studio.vocabulary.reasons import Reason
from patra.web.endpoint import Endpoint, Request
from patra.web.problem import Problem

TAG = "studio"
NOT_THERE = {404: "There is no such run or shot, or the run is not planned yet."}
PROBLEMS = NOT_THERE | {400: "The edit asks for what cannot be said or drawn.", 409: "The run is under way."}
TITLES = {
    str(Reason.RUN_UNKNOWN): "There is no such run",
    str(Reason.SHOT_UNKNOWN): "There is no such shot",
}


class Shots(msgspec.Struct, frozen=True, kw_only=True):
    shots: list[ShotDetail]


class Change(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What changes in a shot; what is not given stays as it is."""

    narration: Annotated[str, Meta(max_length=MAX_NARRATION_CHARACTERS, description="What is said instead.")] | None = (
        None
    )
    place: Annotated[str, Meta(description="kitchen, sea, …; empty: no place.")] | None = None
    time: Annotated[str, Meta(description="dawn, morning, day, dusk or night.")] | None = None
    weather: Annotated[str, Meta(description="rain, storm, snow, fog, wind or clear.")] | None = None
    mood: Annotated[str, Meta(description="calm, joyful, sad, tense, mysterious or warm.")] | None = None
    framing: Annotated[str, Meta(description="wide, medium or insert.")] | None = None
    camera: (
        Annotated[str, Meta(description="push_in, pull_out, pan_left, pan_right, drift_up or drift_down.")] | None
    ) = None
    subject: Annotated[str, Meta(description="The thing of a close-up.")] | None = None
    people: Annotated[list[str], Meta(description="Names of the chapter, kinds, or NAME=KIND.")] | None = None
    things: Annotated[list[str], Meta(description="Instead of those that the text names.")] | None = None
    lettering: Annotated[str, Meta(description="Words instead of a scene.")] | None = None
    seconds: Annotated[float, Meta(ge=0, description="At least this long.")] | None = None
    again: Annotated[bool, Meta(description="Another take of the shot.")] = False
    reset: Annotated[bool, Meta(description="Without the earlier edits of the shot.")] = False
    later: Annotated[bool, Meta(description="Only keep the edit; the film is made by a later one or by `render`.")] = (
        False
    )


class Remake(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which shots are made again, beside those that were edited."""

    shots: Annotated[list[str], Meta(max_length=5000, description="Ids of shots of which another take is wanted.")] = []


class Edited(msgspec.Struct, frozen=True, kw_only=True):
    run_id: str
    stage: str


def routes() -> list[Endpoint]:
    return [
        Endpoint(
            method="GET",
            path="/studio/runs/{run_id}/shots",
            handler=_shots,
            role=Role.VIEWER,
            summary="The shots of a run: what is said, what is seen, who changed it",
            tag=TAG,
            response=Shots,
            problems=NOT_THERE,
        ),
        Endpoint(
            method="POST",
            path="/studio/runs/{run_id}/shots/{shot_id}/edit",
            handler=_edit,
            role=Role.OPERATOR,
            act="studio.edit",
            summary="Change one shot of an ended run and make its film again",
            description="Only what changed is made again; everything else is found by its hash.",
            tag=TAG,
            request=Change,
            response=Edited,
            problems=PROBLEMS,
        ),
        Endpoint(
            method="POST",
            path="/studio/runs/{run_id}/render",
            handler=_render,
            role=Role.OPERATOR,
            act="studio.edit",
            summary="Make the film of an ended run again with the edits of its shots",
            tag=TAG,
            request=Remake,
            response=Edited,
            problems=PROBLEMS,
        ),
    ]


def _shots(request: Request) -> Shots | Problem:
    run_id = request.path["run_id"]
    try:
        return Shots(shots=request.patra.db.read(lambda tx: shot_details(tx, run_id)))
    except Invalid as error:
        return _missing(error)


def _edit(request: Request) -> Edited | Problem:
    asked: Change = request.body
    given = msgspec.structs.asdict(asked)
    later = given.pop("later")
    change = msgspec.convert(given, ShotEdit)
    if not change.changes:
        raise Invalid(Reason.EDIT_INVALID, "nothing changes", advice="give what is to change, such as a place")
    return _remade(request, {request.path["shot_id"]: change}, later=later)


def _render(request: Request) -> Edited | Problem:
    asked: Remake = request.body
    return _remade(request, {shot_id: ShotEdit(again=True) for shot_id in asked.shots}, later=False)


def _remade(request: Request, edits: dict[str, ShotEdit], *, later: bool) -> Edited | Problem:
    run_id, studio = request.path["run_id"], request.patra.engine(StudioEngine).studio
    by = request.actor.name if request.actor else "local"
    detail: dict[str, Any] = {shot_id: change.changes for shot_id, change in edits.items()}
    try:
        stage = request.act(lambda tx: studio.edit_in(tx, run_id, edits, by, later=later), run_id, shots=detail)
    except Invalid as error:
        return _missing(error)
    return Edited(run_id=run_id, stage=stage)


def _missing(error: Invalid) -> Problem:
    if str(error.code) not in TITLES:
        raise error
    return Problem(404, str(error.code), TITLES[str(error.code)], error.detail)
