"""Ends runs that cannot go on: a module that gave an event up would leave its run waiting for ever (C§2.6, C§6).

The group `studio` of the catalogue. It hears of dead letters by the Observer's `error.recorded`.
"""

from typing import Any

from patra.bus.bus import Bus
from patra.bus.consuming.consumer import Event
from patra.kernel.db import Tx
from patra.studio.orchestrator import Orchestrator
from patra.studio.storage.own_tenant import of_own_tenant
from patra.studio.vocabulary.contracts import VERSIONS, context_of

GROUP = "studio"


class Supervisor:
    def __init__(self, bus: Bus, orchestrator: Orchestrator) -> None:
        self._orchestrator = orchestrator
        bus.consumer("error.recorded", group=GROUP, versions=VERSIONS)(of_own_tenant(self.on_error))
        for event_type in ("compose.completed", "artifact.published"):
            bus.consumer(event_type, group=GROUP, versions=VERSIONS)(of_own_tenant(self.on_film))

    def on_error(self, tx: Tx, event: Event) -> None:
        """A dead letter of a module that the run needs ends the run; other errors have their own way."""
        payload = event.payload
        details: dict[str, Any] = payload.get("details", {})
        if payload["severity"] != "critical" or "dead_letter" not in details:
            return
        words = f"{payload['module']} could not handle {payload['source_event_type']}: {payload['error_code']}"
        detail = f"{words} {payload['message']}".strip()
        self._orchestrator.fail(tx, payload["run_id"], detail[:1500], details["failed_at"], context_of(event))

    def on_film(self, tx: Tx, event: Event) -> None:
        """Nothing to end: the run is about to be completed."""
