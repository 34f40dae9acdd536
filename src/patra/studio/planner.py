"""Turns a run in its planning stage into `plan.shot.generated` and `plan.prompt.generated` (C§2.3). Producer:
Planner.

The plan itself is kept in the store; the events carry the shots and refer to the prompts by id, place and hash.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from patra.bus.bus import Bus
from patra.bus.consuming.consumer import Event, Poison
from patra.kernel.db import Tx
from patra.kernel.errors import IllegalMove, Invalid
from patra.studio.gateway import ChapterRequest, Options
from patra.studio.profiles import Engine, Profile, choose
from patra.studio.script.edits import Edit, ShotEdit, source_of
from patra.studio.script.plan import WORKERS, Plan, in_words, make_plan
from patra.studio.script.shots import Shot
from patra.studio.storage import earlier_release, store
from patra.studio.storage.own_tenant import of_own_tenant
from patra.studio.vocabulary.contracts import (
    VERSIONS,
    OutgoingEvent,
    after,
    context_of,
    plan_id_of,
    publish,
    run_epoch_of,
)
from patra.studio.vocabulary.reasons import Reason
from patra.studio.vocabulary.stages import Stage

MODULE = "Planner"  # as the bus knows it (C§5)

GROUP = "planner"


class Planner:
    def __init__(
        self, bus: Bus, profiles: Mapping[str, Profile], chapters: Callable[[Tx, str], ChapterRequest | None]
    ) -> None:
        """`chapters` gives the chapter of a run."""
        self._bus = bus
        self._profiles = profiles
        self._chapters = chapters
        bus.consumer("run.created", group=GROUP, versions=VERSIONS)(of_own_tenant(self.on_created))
        bus.consumer("run.stage.changed", group=GROUP, versions=VERSIONS)(of_own_tenant(self.on_stage))

    def on_created(self, tx: Tx, event: Event) -> None:
        """Nothing yet: the run is planned when the Orchestrator moves it to that stage."""

    def on_stage(self, tx: Tx, event: Event) -> None:
        if event.payload["stage"] != Stage.PLANNING:
            return
        run_id = str(event.payload["run_id"])
        request = self._chapters(tx, run_id)
        if request is None:
            raise Poison(Reason.RUN_UNKNOWN, run_id)
        version = event.payload.get("plan_version") or earlier_release.plan_version(tx, run_id, run_epoch_of(event))
        if not version:
            return  # the run was planned again since
        edits = store.edits(tx, run_id)
        plan = self._plan(request, edits, stored=len(edits))
        plan_id = plan_id_of(run_id, version)
        row = {
            "plan_id": plan_id,
            "run_id": run_id,
            "plan_version": version,
            "shots": len(plan.shots),
            "prompts": len(plan.prompts),
            "body": msgspec.json.encode(plan),
            "created_at": self._bus.clock.now(),
        }
        tx.insert_absent("stu_plan", [row], key=("plan_id",))
        self._say(tx, event, plan, plan_id, version)

    def plan(self, tx: Tx, plan_id: str, run_id: str) -> Plan | None:
        """A plan, to which the events of its run refer: it holds the prompts."""
        plan = store.plan(tx, plan_id)
        if plan is None or plan.quality:
            return plan
        request = self._chapters(tx, run_id)  # a plan of an earlier release did not hold what was asked
        if request is None:
            return None
        return msgspec.structs.replace(plan, quality=request.quality, preferred=request.wishes.profiles)

    def prompts(self, tx: Tx, plan_id: str) -> int:
        """How many prompts a plan has; none where it is not there yet."""
        return store.plan_prompts(tx, plan_id)

    def _plan(self, request: ChapterRequest, edits: Sequence[Edit], *, stored: int = 0) -> Plan:
        language, quality, wishes = request.language, request.quality, request.wishes
        workers = workers_for(self._profiles, language, quality, wishes)
        plan = make_plan(request.text, language, quality, request.title, workers, wishes.format, edits, stored)
        return msgspec.structs.replace(plan, preferred=wishes.profiles)

    def edit(self, tx: Tx, run_id: str, edits: Mapping[str, ShotEdit], by: str, *, first: bool = False) -> None:
        """Keep what someone changed in shots; the next plan has it. Raises Invalid where it cannot be drawn.

        `first`: the edits come with the chapter and bear the instant of its submission.
        """
        request = self._chapters(tx, run_id)
        if request is None:
            raise Invalid(Reason.RUN_UNKNOWN, f"no run {run_id}", place="run_id")
        kept = store.edits(tx, run_id)
        shots = {shot.shot_id: shot for shot in self._plan(request, ()).shots}
        if unknown := [shot_id for shot_id in edits if shot_id not in shots]:
            raise Invalid(Reason.SHOT_UNKNOWN, f"no {unknown[0]}, only {min(shots)} to {max(shots)}", place="shot_id")
        now = request.submitted_at if first else self._bus.clock.now()
        new = [
            Edit(shot_id=shot_id, start=source[0], end=source[1], change=change, by=by, at=now)
            for shot_id, change in edits.items()
            for source in [source_of(shots[shot_id])]
        ]
        self._plan(request, [*kept, *new], stored=len(kept))
        if store.keep_edits(tx, run_id, len(kept) + 1, new) != len(new):
            raise IllegalMove(Reason.RUN_NOT_ENDED, "another edit of the run was kept meanwhile; give this one again")

    def check_first(self, tx: Tx, run_id: str, edits: Mapping[str, ShotEdit]) -> None:
        """Raises IllegalMove where a chapter that is submitted again brings other edits than at first."""
        request = self._chapters(tx, run_id)
        first = [edit for edit in store.edits(tx, run_id) if request and edit.at == request.submitted_at]
        if {edit.shot_id: edit.change for edit in first} != dict(edits):
            detail = "the task was submitted with other edits of its shots; change them when its run has ended"
            raise IllegalMove(Reason.TASK_CONFLICT, detail)

    def _say(self, tx: Tx, event: Event, plan: Plan, plan_id: str, version: int) -> None:
        common: dict[str, Any] = {
            "plan_id": plan_id,
            "run_id": event.payload["run_id"],
            "plan_version": version,
            "language": plan.language,
        }
        refs = [{"prompt_id": p.prompt_id, "shot_id": p.shot_id, "worker_type": p.worker_type} for p in plan.prompts]
        shots = OutgoingEvent(
            type="plan.shot.generated",
            key=plan_id,
            payload=common | {"shots": [shot_payload(shot) for shot in plan.shots], "prompt_refs": refs},
        )
        whole = [
            ref | {"uri": f"studio:plan/{plan_id}/{p.prompt_id}", "sha256": p.sha256}
            for ref, p in zip(refs, plan.prompts, strict=True)
        ]
        prompts = OutgoingEvent(
            type="plan.prompt.generated",
            key=plan_id,
            payload=common
            | {"shots": [{"shot_id": s.shot_id, "index": s.index} for s in plan.shots], "prompt_refs": whole},
        )
        context = context_of(event)
        (first,) = publish(self._bus, tx, context, [shots], by=MODULE)
        publish(self._bus, tx, after(context, first), [prompts], by=MODULE)


def workers_for(profiles: Mapping[str, Profile], language: str, quality: str, wishes: Options) -> tuple[str, ...]:
    """The kinds of worker that a shot needs.

    Without a narrator there is no face to move. The staging is the planner's own work: only a chat server can change
    it, so there is no such job where none would be asked.
    """
    preferred = wishes.profiles.get("llm", ())
    staging = choose(profiles, "llm", language=language, quality=quality, seconds=1.0, preferred=preferred)
    unneeded = {
        *(() if wishes.narrator else ("lipsync",)),
        *(() if staging and profiles[staging.profile_id].engine is not Engine.LOCAL else ("llm",)),
    }
    return tuple(worker for worker in WORKERS if worker not in unneeded)


def shot_payload(shot: Shot) -> dict[str, Any]:
    return {
        "shot_id": shot.shot_id,
        "index": shot.index,
        "duration_ms": shot.estimated_ms,
        "description": in_words(shot.picture),
        "narration": shot.narration,
        "characters": list(shot.characters),
        "camera": f"{shot.picture.framing}, {shot.picture.camera}",
        "source_range": {"from": shot.sentences[0].start, "to": shot.sentences[-1].end},
    }
