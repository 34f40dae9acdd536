"""Events that arrive over HTTP or from the command line: what a sender may leave out is filled in."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from patra.bus.publishing.refusal import Refused
from patra.kernel.clock import format_instant
from patra.kernel.ids import new_id

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}\Z")


class Submission(msgspec.Struct, frozen=True):
    """What is known where an event arrives over HTTP or from the command line; one for all events of a request.

    `judge` says what else is wrong with those fields of a broken envelope that have their form. `event_ids` are those
    that were filled in, by tenant, type and key: versions of one event that are sent together share theirs.
    """

    now: int
    judge: Callable[[Mapping[str, Any]], Sequence[Refused]] = lambda _: ()
    event_ids: dict[tuple[Any, Any, Any], str] = msgspec.field(default_factory=dict[tuple[Any, Any, Any], str])

    def event_id(self, fields: Mapping[str, Any]) -> str:
        key = fields.get("tenant_id"), fields.get("event_type"), fields.get("idempotency_key")
        if not all(isinstance(part, str) for part in key):
            return new_id()
        return self.event_ids.setdefault(key, new_id())


def fill_fields(fields: Mapping[str, Any], submission: Submission) -> dict[str, Any]:
    """With the ids and times that a sender may leave out at the edge: a shell cannot make a UUIDv7.

    The idempotency key is no such id: only the producer knows what makes two publishes the same (C§3).
    """
    event_id = fields.get("event_id") or submission.event_id(fields)
    extensions: Any = fields.get("extensions")
    parent = extensions.get("traceparent") if isinstance(extensions, Mapping) else None  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]
    traced = _TRACEPARENT.match(parent) if isinstance(parent, str) else None
    defaults = {
        "event_id": event_id,
        "schema_version": "1.0",
        "trace_id": traced[1] if traced else event_id,
        "correlation_id": event_id,
        "occurred_at": format_instant(submission.now),
    }
    return {**fields, **{name: value for name, value in defaults.items() if fields.get(name) in {None, ""}}}
