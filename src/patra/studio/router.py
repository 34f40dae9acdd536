"""Turns a plan's prompts into `route.decision.made`, one per job: profile, fallback chain, cost (C§2.4).
Producer: Model Router.
"""

from collections.abc import Callable, Mapping
from typing import Any

from patra.bus.bus import Bus
from patra.bus.consuming.consumer import Event, Poison
from patra.kernel.db import Tx
from patra.studio.profiles import Profile, choose
from patra.studio.script.plan import Plan
from patra.studio.storage.own_tenant import of_own_tenant
from patra.studio.vocabulary.contracts import VERSIONS, OutgoingEvent, context_of, job_id_of, publish
from patra.studio.vocabulary.reasons import Reason

MODULE = "Model Router"  # as the bus knows it (C§5)

GROUP = "model-router"


class Router:
    def __init__(self, bus: Bus, profiles: Mapping[str, Profile], plans: Callable[[Tx, str, str], Plan | None]) -> None:
        """`plans` gives the plan that an event refers to, by its id and run."""
        self._bus = bus
        self._profiles = profiles
        self._plans = plans
        bus.consumer("plan.shot.generated", group=GROUP, versions=VERSIONS)(of_own_tenant(self.on_shots))
        bus.consumer("plan.prompt.generated", group=GROUP, versions=VERSIONS)(of_own_tenant(self.on_prompts))

    def on_shots(self, tx: Tx, event: Event) -> None:
        """The plan holds the shots with their lengths; decisions wait for the prompts, which follow in order."""

    def on_prompts(self, tx: Tx, event: Event) -> None:
        payload = event.payload
        plan = self._plans(tx, payload["plan_id"], payload["run_id"])
        if plan is None:
            raise Poison(Reason.RUN_UNKNOWN, str(payload["run_id"]))
        seconds = {shot.shot_id: shot.estimated_ms / 1000 for shot in plan.shots}
        said: list[OutgoingEvent] = []
        for ref in payload["prompt_refs"]:
            choice = choose(
                self._profiles,
                ref["worker_type"],
                language=plan.language,
                quality=plan.quality,
                seconds=seconds.get(ref["shot_id"], 1.0),
                preferred=plan.preferred.get(ref["worker_type"], ()),
            )
            if choice is None:
                raise Poison(
                    Reason.NO_PROFILE,
                    f"no profile does {ref['worker_type']} in {plan.language} at quality {plan.quality}",
                )
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
            said.append(OutgoingEvent(type="route.decision.made", key=job_id, payload=body))
        publish(self._bus, tx, context_of(event), said, by=MODULE)
