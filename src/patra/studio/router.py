"""A plan's prompts go in; `route.decision.made` comes out, one a job: profile, fallback chain, cost (C§2.4).
Producer: Model Router.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from patra.bus.bus import Bus
from patra.bus.consumer import Event, Poison
from patra.kernel.db import Tx
from patra.studio import store
from patra.studio.contracts import VERSIONS, Said, context_of, job_id_of, say
from patra.studio.gateway import Wishes
from patra.studio.profiles import Profile, choose
from patra.studio.reasons import R

GROUP = "model-router"


class Router:
    def __init__(self, bus: Bus, profiles: Mapping[str, Profile]) -> None:
        self._bus = bus
        self._profiles = profiles
        bus.consumer("plan.shot.generated", group=GROUP, versions=VERSIONS)(self.on_shots)
        bus.consumer("plan.prompt.generated", group=GROUP, versions=VERSIONS)(self.on_prompts)

    def on_shots(self, tx: Tx, event: Event) -> None:
        """The shots are in the store with their lengths; decisions wait for the prompts, which follow in order."""

    def on_prompts(self, tx: Tx, event: Event) -> None:
        payload = event.payload
        plan = store.plan(tx, payload["plan_id"])
        run = store.run(tx, payload["run_id"])
        task = store.task(tx, run.task_id) if run else None
        if plan is None or run is None or task is None:
            raise Poison(R.RUN_UNKNOWN, str(payload["run_id"]))
        wishes = msgspec.json.decode(task["options"], type=Wishes)
        seconds = {shot.shot_id: shot.estimated_ms / 1000 for shot in plan.shots}
        said: list[Said] = []
        for ref in payload["prompt_refs"]:
            if ref["worker_type"] == "lipsync" and not wishes.narrator:
                continue
            choice = choose(
                self._profiles,
                ref["worker_type"],
                language=plan.language,
                quality=task["quality"],
                seconds=seconds.get(ref["shot_id"], 1.0),
                preferred=wishes.profiles.get(ref["worker_type"], ()),
            )
            if choice is None:
                raise Poison(R.NO_PROFILE, f"nobody does {ref['worker_type']} in {plan.language}, {task['quality']}")
            job_id = job_id_of(payload["plan_id"], ref["prompt_id"])
            body: dict[str, Any] = {
                "decision_id": f"dec_{job_id[4:]}",
                "job_id": job_id,
                "run_id": payload["run_id"],
                "shot_id": ref["shot_id"],
                "worker_type": ref["worker_type"],
                "model_profile_id": choice.profile_id,
                "fallback_chain": list(choice.fallback_chain),
                "reason_code": str(choice.reason),
                "reason": choice.reason.text,
                "estimated_ms": choice.estimated_ms,
                "estimated_cost_micros": choice.estimated_cost_micros,
            }
            said.append(Said(type="route.decision.made", key=job_id, payload=body))
        say(self._bus, tx, context_of(event), said)
