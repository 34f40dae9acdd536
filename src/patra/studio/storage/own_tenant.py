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
TENANT_QUERIES = {"task_id": "tenant_of_task", "run_id": "tenant_of_run", "job_id": "tenants_of_job"}


def of_own_tenant(handler: Handler) -> Handler:
    """The handler, for events whose task, run and job are of the tenant that the event is of."""

    @wraps(handler)
    def handle(tx: Tx, event: Event) -> None:
        if _tenants(tx, event) - {event.envelope.tenant_id}:
            log.warning(
                "studio_event_of_other_tenant",
                event_id=event.event_id,
                event_type=event.envelope.event_type,
                tenant_id=event.envelope.tenant_id,
            )
            return
        handler(tx, event)

    return handle


def _tenants(tx: Tx, event: Event) -> set[str]:
    """Whose the things are that the payload names, as far as they are there."""
    named = {name: event.payload.get(name) for name in TENANT_QUERIES}
    queries = [(TENANT_QUERIES[name], {"id": value}) for name, value in named.items() if value]
    return {tenant_id for query, asked in queries for (tenant_id,) in tx.fetch(Q[query], asked)}
