"""Turns a dead letter into its comparison with what its group did handle, without secrets and personal data."""

from typing import Any

import msgspec

from patra.bus import operations
from patra.bus.catalogue.reasons import Reason
from patra.bus.consuming.dead_letter import Filter
from patra.bus.consuming.shared_fields import SharedField
from patra.bus.last_handled import MAX_HANDLED, MAX_LETTERS, Comparison, comparison
from patra.kernel.clock import format_instant
from patra.kernel.db import Tx
from patra.web.api.bus.reading import tenant_of_letter
from patra.web.endpoint import Endpoint, EndpointGroup, Request
from patra.web.problem import Problem


class LastHandled(msgspec.Struct, frozen=True, kw_only=True):
    """The last event of a dead letter's type that its group handled."""

    event_id: str
    event_version: str
    published_at: str
    handled_at: str
    payload: Any


class LetterBeside(msgspec.Struct, frozen=True, kw_only=True):
    """`last_handled` is null where the group handled none that is still kept; `shared` is what all `letters` of the
    cause have in common and none of the last `handled` events has.
    """

    payload: Any
    last_handled: LastHandled | None
    shared: list[SharedField]
    letters: int
    handled: int


def routes(tag: str) -> list[Endpoint]:
    return [
        EndpointGroup(tag).get(
            "/bus/dead-letters/{group}/{event_id}/beside",
            _beside,
            "A dead letter beside the last event of its type that its group handled",
            LetterBeside,
            problems={404: "there is no such thing"},
            tenant_of=tenant_of_letter,
            description=f"Looks at the last {MAX_HANDLED} handled events of the same tenant and major version whose "
            f"bodies are kept, and at {MAX_LETTERS} dead letters of the same cause; of each at a megabyte at most.",
        )
    ]


def _beside(request: Request) -> LetterBeside | Problem:
    group, event_id = request.path["group"], request.path["event_id"]

    def read(tx: Tx) -> Comparison | None:
        found = operations.find_letters(tx, Filter(group=group, event_id=event_id, state=None), limit=1)
        return comparison(tx, found[0]) if found else None

    found = request.patra.db.read(read)
    if found is None:
        return Problem(404, Reason.LETTER_UNKNOWN.value, Reason.LETTER_UNKNOWN.text, f"{group}/{event_id}")
    last = found.last_handled
    return LetterBeside(
        payload=found.payload,
        last_handled=None
        if last is None
        else LastHandled(
            event_id=last.event_id,
            event_version=last.event_version,
            published_at=format_instant(last.published_at),
            handled_at=format_instant(last.handled_at),
            payload=last.payload,
        ),
        shared=found.shared,
        letters=found.letters,
        handled=found.handled,
    )
