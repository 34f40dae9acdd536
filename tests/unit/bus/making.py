"""Small catalogues and envelopes that the bus tests share."""

from typing import Any

import msgspec
import yaml

from patra.bus.catalogue.catalogue import Catalogue, EventType, parse
from patra.bus.publishing.envelope import Envelope
from patra.bus.store.dead_letters import NewDeadLetter
from patra.kernel.ids import new_id

NOW = 1_700_000_000_000_000


def closed(properties: dict[str, Any], required: list[str] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": required or [],
        "properties": properties,
        **more,
    }


THING = closed({"key": {"type": "string"}, "n": {"type": "integer"}}, ["key"])
THING_2 = closed({"key": {"type": "string"}, "number": {"type": "integer"}}, ["key", "number"])


def version(
    number: str = "1.0", schema: dict[str, Any] | None = None, status: str = "current", example: Any = None
) -> dict[str, Any]:
    chosen = THING if schema is None else schema
    return {
        "version": number,
        "schema": chosen,
        "status": status,
        "examples": [example or {"key": "k", **({"number": 1} if "number" in chosen.get("required", []) else {})}],
    }


def event_type(name: str = "thing.happened", versions: list[dict[str, Any]] | None = None, **more: Any) -> EventType:
    text = {
        "type": name,
        "title": "A thing",
        "description": "It happened.",
        "producer": "Maker",
        "versions": [version()] if versions is None else versions,
        **more,
    }
    return parse(yaml.safe_dump(text), f"{name}.yaml")


def catalogue(*types: EventType) -> Catalogue:
    return Catalogue({kind.name: kind for kind in types or (event_type(),)})


ORDERED = {"ordering": {"key": ["/payload/key"]}}
QUICK = {"retry": {"max_retries": 2, "base": "PT1S", "factor": 2.0, "cap": "PT1M"}}


def envelope(name: str = "thing.happened", payload: dict[str, Any] | None = None, **more: Any) -> Envelope:
    fields: dict[str, Any] = {
        "event_id": new_id(),
        "event_type": name,
        "event_version": "1.0",
        "producer": "Maker",
        "tenant_id": "tenant",
        "project_id": "project",
        "trace_id": "trace",
        "correlation_id": "correlation",
        "idempotency_key": new_id(),
        "occurred_at": NOW,
        "payload": {"key": "k"} if payload is None else payload,
    }
    return Envelope(**(fields | more))


def dead_letter(n: int, error_code: str = "b_handler_failed") -> NewDeadLetter:
    """The nth dead letter of the group `one`, as it is written; its event is nowhere else."""
    return NewDeadLetter(
        letter_id=f"one/e{n}",
        group_id=1,
        group_name="one",
        seq=n,
        order_key=None,
        event_id=f"e{n}",
        event_type="thing.happened",
        event_version="1.0",
        producer="Maker",
        tenant_id="",
        trace_id="",
        correlation_id="",
        error_code=error_code,
        error_detail="no luck",
        reason="b_retries_exhausted",
        attempts=1,
        first_failed_at=NOW,
        last_failed_at=NOW,
        envelope="{}",
    )


def forward(made: Envelope, by: str) -> Envelope:
    """The envelope as a module passes it on: the producer stays, the module signs (C§5)."""
    return msgspec.structs.replace(made, forwarded_by=(*made.forwarded_by, by))
