"""Lets an event act on runs of its own tenant alone.

A publisher's token is bound to producers and tenants; the runs that a payload names are not the bus's to know. Without
this a worker that speaks for one tenant could end or replace a film of another. Such an event is dropped and logged:
a dead letter would end the run that it names.
"""

from collections.abc import Callable
from functools import wraps

from patra.bus.consuming.consumer import Event
from patra.kernel.db import Tx
from patra.kernel.telemetry import get_logger
from patra.studio.storage.store import Q

log = get_logger()

Handler = Callable[[Tx, Event], None]


def of_own_tenant(handler: Handler) -> Handler:
    """The handler, for events whose task, run, plan and job are of the tenant that the event is of."""

    @wraps(handler)
    def handle(tx: Tx, event: Event) -> None:
        asked = {name: event.payload.get(name) or "" for name in ("task_id", "run_id", "plan_id", "job_id")}
        others = {tenant_id for (tenant_id,) in tx.fetch(Q["tenants_named"], asked)} - {event.envelope.tenant_id}
        if others:
            log.warning(
                "studio_event_of_other_tenant",
                event_id=event.event_id,
                event_type=event.envelope.event_type,
                tenant_id=event.envelope.tenant_id,
            )
            return
        handler(tx, event)

    return handle
