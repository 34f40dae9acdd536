"""Turns rows into runs as lists show them, and the shots of one."""

import msgspec

from patra.kernel.clock import format_instant
from patra.kernel.db import Tx
from patra.kernel.errors import Invalid
from patra.studio.script.edits import AppliedEdit
from patra.studio.script.plan import Plan, in_words, style_of
from patra.studio.script.shots import Shot
from patra.studio.storage import store
from patra.studio.storage.store import Q
from patra.studio.vocabulary.contracts import plan_id_of
from patra.studio.vocabulary.reasons import Reason

SUBMITTED = "submitted"  # what is said of a run until the Orchestrator has created it


class RunLine(msgspec.Struct, frozen=True, kw_only=True):
    """One run in a list."""

    run_id: str | None
    task_id: str
    title: str
    language: str
    quality: str
    stage: str
    reason_code: str
    submitted_at: str
    film_uri: str | None


def tenant_of(tx: Tx, run_id: str) -> str | None:
    """Whose chapter a run makes into a film; None where there is no such run."""
    found = tx.fetch_one(Q["tenant_of_run"], {"id": run_id})
    return None if found is None else str(found[0])


def recent(tx: Tx, limit: int, tenant_id: str = "") -> list[RunLine]:
    """The newest runs first; of one tenant alone where it is named."""
    rows = tx.fetch_dicts(Q["tasks_recent"], {"limit": limit, "tenant_id": tenant_id})
    return [
        RunLine(
            run_id=row["run_id"],
            task_id=row["task_id"],
            title=row["title"],
            language=row["language"],
            quality=row["quality"],
            stage=row["stage"] or SUBMITTED,
            reason_code=row["reason_code"] or "",
            submitted_at=format_instant(row["submitted_at"]),
            film_uri=row["film_uri"],
        )
        for row in rows
    ]


class ShotLine(msgspec.Struct, frozen=True, kw_only=True):
    """One shot of a run: `waiting`, `at_work`, `made` or `failed`."""

    shot_id: str
    state: str


def shots(tx: Tx, run_id: str) -> list[ShotLine]:
    """The shots of a run in the film's order; one is made when its picture is."""
    run = store.run(tx, run_id)
    if run is None:
        return []
    found: dict[str, dict[str, str]] = {}
    for job in sorted(store.jobs(tx, run_id, plan_id_of(run_id, run.plan_version)), key=lambda job: job.shot_index):
        found.setdefault(job.shot_id, {})[job.worker_type] = job.state
    return [ShotLine(shot_id=shot_id, state=_state(jobs)) for shot_id, jobs in found.items()]


def _state(jobs: dict[str, str]) -> str:
    if jobs.get("video") == "succeeded":
        return "made"
    if any(state == "failed" for worker, state in jobs.items() if worker != "lipsync"):
        return "failed"
    return "at_work" if "claimed" in jobs.values() else "waiting"


class ShotDetail(msgspec.Struct, frozen=True, kw_only=True):
    """One shot as its plan has it, in the words of an edit, and who changed it."""

    number: int
    shot_id: str
    state: str
    narration: str
    seen: str  # the picture as a sentence
    place: str
    time: str
    weather: str
    mood: str
    framing: str
    camera: str
    subject: str
    people: tuple[str, ...]
    things: tuple[str, ...]
    lettering: str
    seconds: float  # estimated before it is made
    take: int
    edits: tuple[AppliedEdit, ...]
    certainty: float = 1.0  # how likely all claims of the scene hold that was understood
    doubts: tuple[str, ...] = ()  # what makes it uncertain; less certain than `SCENE` it is a card

    @property
    def edited_by(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(edit.by for edit in self.edits))


def plan_of(tx: Tx, run_id: str) -> tuple[Plan, str]:
    """The plan of a run as it is now, and the film's format. Raises Invalid where there is none."""
    run = store.run(tx, run_id)
    plan = store.plan(tx, plan_id_of(run_id, run.plan_version)) if run else None
    if run is None and store.task_of_run(tx, run_id) is None:
        raise Invalid(Reason.RUN_UNKNOWN, f"no run {run_id}", place="run_id")
    if run is None or plan is None:
        raise Invalid(Reason.SHOT_UNKNOWN, "the run is not planned yet", place="run_id")
    return plan, str(run.options.get("format", "16:9"))


def shot_details(tx: Tx, run_id: str) -> list[ShotDetail]:
    """The shots of a run in the film's order, as an edit could change them."""
    plan, _ = plan_of(tx, run_id)
    states = {line.shot_id: line.state for line in shots(tx, run_id)}
    return [shot_detail(plan, shot, states.get(shot.shot_id, "waiting")) for shot in plan.shots]


def shot_detail(plan: Plan, shot: Shot, state: str = "waiting") -> ShotDetail:
    picture = shot.picture
    return ShotDetail(
        number=shot.index + 1,
        shot_id=shot.shot_id,
        state=state,
        narration=shot.narration,
        seen=in_words(picture).removesuffix(f"; {style_of(picture)}"),
        place=picture.place,
        time=picture.time,
        weather=picture.weather,
        mood=picture.mood,
        framing=picture.framing,
        camera=picture.camera,
        subject=picture.subject,
        people=tuple(figure.name or figure.kind for figure in picture.figures),
        things=tuple(dict.fromkeys([*picture.motifs, *picture.pictograms])),
        lettering=picture.card.title if picture.card else "",
        seconds=round(shot.estimated_ms / 1000, 1),
        take=shot.take,
        certainty=shot.certainty,
        doubts=shot.doubts,
        edits=tuple(edit for edit in plan.edits if edit.shot_id == shot.shot_id),
    )
