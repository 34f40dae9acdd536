"""What modules say to each other: keys, contexts, and publishing that cannot be refused unnoticed (C§1, C§3, C§5)."""

from collections.abc import Sequence
from typing import Any

import msgspec

from patra.bus.bus import Bus
from patra.bus.catalogue.reasons import TEMPORARY
from patra.bus.consuming.consumer import Event
from patra.bus.publishing.envelope import Envelope, Refused
from patra.kernel.canonical import sha256_hex
from patra.kernel.db import Tx
from patra.kernel.errors import Permanent, Transient

VERSIONS = ">=1,<2"


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What ties an event to its story (C§1); `causation_id` is the event that led to it."""

    tenant_id: str
    project_id: str
    trace_id: str
    correlation_id: str
    causation_id: str | None = None


class OutgoingEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event to publish: its type, the key of C§3, its payload."""

    type: str
    key: str
    payload: dict[str, Any]


def context_of(event: Event | Envelope) -> Context:
    """The context of what follows from an event."""
    e = event if isinstance(event, Envelope) else event.envelope
    return Context(
        tenant_id=e.tenant_id,
        project_id=e.project_id,
        trace_id=e.trace_id,
        correlation_id=e.correlation_id,
        causation_id=e.event_id,
    )


def after(context: Context, event_id: str) -> Context:
    return msgspec.structs.replace(context, causation_id=event_id)


def publish(bus: Bus, tx: Tx, context: Context, said: Sequence[OutgoingEvent], *, by: str) -> list[str]:
    """Publish events in the caller's transaction; gives their ids. Saying the same again gives the first ids.

    `by` is the module that publishes: the bus refuses it what another module produces (C§5, B7).
    """
    envelopes: list[Envelope] = [
        bus.envelope(
            one.type,
            one.payload,
            tenant_id=context.tenant_id,
            project_id=context.project_id,
            trace_id=context.trace_id,
            correlation_id=context.correlation_id,
            causation_id=context.causation_id,
            idempotency_key=one.key,
        )
        for one in said
    ]
    ids: list[str] = []
    for one, outcome in zip(said, bus.publish_many(tx, envelopes, publisher=by), strict=True):
        if isinstance(outcome, Refused):
            passing = outcome.code in TEMPORARY  # until an operator thaws the type or upgrades this process
            raise (Transient if passing else Permanent)(
                outcome.code, f"{one.type} {one.key}: {outcome.place} {outcome.detail}"
            )
        ids.append(outcome.event_id)
    return ids


def run_id_of(task_id: str) -> str:
    return f"run_{sha256_hex(task_id)[:24]}"


def plan_id_of(run_id: str, version: int) -> str:
    return f"plan_{sha256_hex(f'{run_id}|{version}')[:24]}"


def job_id_of(plan_id: str, prompt_id: str) -> str:
    """Router and Orchestrator both know it without asking each other (A3)."""
    return f"job_{sha256_hex(f'{plan_id}|{prompt_id}')[:24]}"


def run_epoch_of(event: Event) -> int:
    """The epoch that a run's event belongs to: its key is `run:epoch:stage`."""
    return int(event.envelope.idempotency_key.split(":")[-2])


def epoch_of(event: Event) -> int:
    """The epoch that a job's event belongs to: its key is `job:epoch`."""
    return int(event.envelope.idempotency_key.rpartition(":")[2])
