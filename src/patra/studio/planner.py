"""A run in its planning stage goes in; `plan.shot.generated` and `plan.prompt.generated` come out (C§2.3). Producer:
Planner.

The plan itself is kept in the store; the events carry the shots and refer to the prompts by id, place and hash.
"""

from typing import Any

import msgspec

from patra.bus.bus import Bus
from patra.bus.consumer import Event, Poison
from patra.kernel.db import Tx
from patra.studio import store
from patra.studio.contracts import VERSIONS, Said, after, context_of, plan_id_of, say
from patra.studio.reasons import R
from patra.studio.script.plan import Plan, in_words, make_plan
from patra.studio.script.shots import Shot
from patra.studio.stages import Stage

GROUP = "planner"


class Planner:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        bus.consumer("run.created", group=GROUP, versions=VERSIONS)(self.on_created)
        bus.consumer("run.stage.changed", group=GROUP, versions=VERSIONS)(self.on_stage)

    def on_created(self, tx: Tx, event: Event) -> None:
        """Nothing yet: the run is planned when the Orchestrator moves it to that stage."""

    def on_stage(self, tx: Tx, event: Event) -> None:
        if event.payload["stage"] != Stage.PLANNING:
            return
        run = store.run(tx, event.payload["run_id"])
        task = store.task(tx, run.task_id) if run else None
        if run is None or task is None:
            raise Poison(R.RUN_UNKNOWN, str(event.payload["run_id"]))
        if run.stage != Stage.PLANNING:
            return  # cancelled meanwhile
        plan = make_plan(bytes(task["chapter"]).decode(), task["language"], task["quality"], task["title"])
        plan_id = plan_id_of(run.run_id, run.plan_version)
        row = {
            "plan_id": plan_id,
            "run_id": run.run_id,
            "plan_version": run.plan_version,
            "shots": len(plan.shots),
            "prompts": len(plan.prompts),
            "body": msgspec.json.encode(plan),
            "created_at": self._bus.clock.now(),
        }
        tx.insert_absent("stu_plan", [row], key=("plan_id",))
        self._say(tx, event, plan, plan_id, run.plan_version)

    def _say(self, tx: Tx, event: Event, plan: Plan, plan_id: str, version: int) -> None:
        common: dict[str, Any] = {
            "plan_id": plan_id,
            "run_id": event.payload["run_id"],
            "plan_version": version,
            "language": plan.language,
        }
        refs = [{"prompt_id": p.prompt_id, "shot_id": p.shot_id, "worker_type": p.worker_type} for p in plan.prompts]
        shots = Said(
            type="plan.shot.generated",
            key=plan_id,
            payload=common | {"shots": [shot_payload(shot) for shot in plan.shots], "prompt_refs": refs},
        )
        whole = [
            ref | {"uri": f"studio:plan/{plan_id}/{p.prompt_id}", "sha256": p.sha256}
            for ref, p in zip(refs, plan.prompts, strict=True)
        ]
        prompts = Said(
            type="plan.prompt.generated",
            key=plan_id,
            payload=common
            | {"shots": [{"shot_id": s.shot_id, "index": s.index} for s in plan.shots], "prompt_refs": whole},
        )
        context = context_of(event)
        (first,) = say(self._bus, tx, context, [shots])
        say(self._bus, tx, after(context, first), [prompts])


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
