"""A dead letter beside what its group did handle: the last event of its type, and what all of its cause have in common.

Only events of its own tenant and major version are looked at, as far back as their bodies are kept.
"""

from typing import Any, cast

import msgspec

from patra.bus.catalogue.versions import parse_version
from patra.bus.consuming.dead_letter import DeadLetter, DeadLetterState, Filter, letter_id
from patra.bus.consuming.shared_fields import SharedField, shared_fields
from patra.bus.publishing.envelope import decode_trusted
from patra.bus.store import dead_letters, deliveries, events
from patra.kernel.db import Tx
from patra.kernel.safety.redact import redact

MAX_HANDLED = 100
MAX_LETTERS = 50


class HandledEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event that a group handled, and when."""

    event_id: str
    event_version: str
    published_at: int
    handled_at: int
    payload: Any


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A dead letter's payload beside the last event of its type that its group handled, if one is still kept.

    `shared` is what all `letters` of its cause have in common and none of the `handled` events has. Payloads are
    masked before they are compared, so that no hidden value is compared.
    """

    payload: Any
    last_handled: HandledEvent | None
    shared: list[SharedField]
    letters: int
    handled: int


def comparison(tx: Tx, letter: DeadLetter) -> Comparison:
    handled = _handled_events(tx, letter)
    letters = [redact(_payload(one)) for one in _of_cause(tx, letter)]
    return Comparison(
        payload=redact(_payload(letter)),
        last_handled=handled[0] if handled else None,
        shared=shared_fields(letters, [one.payload for one in handled]),
        letters=len(letters),
        handled=len(handled),
    )


def _of_cause(tx: Tx, letter: DeadLetter) -> list[DeadLetter]:
    """Dead letters of the same cause in the same state, this one among them."""
    cause = Filter(
        group=letter.group,
        event_type=letter.event_type,
        error_code=letter.error_code,
        error_shape=letter.error_shape or None,
        tenant_id=letter.tenant_id,
        state=letter.state,
    )
    found = [one.letter for one in dead_letters.find(tx, cause, limit=MAX_LETTERS)]
    return [letter, *(one for one in found if one.letter_id != letter.letter_id)][:MAX_LETTERS]


def _handled_events(tx: Tx, letter: DeadLetter) -> list[HandledEvent]:
    """The last one handled first."""
    version = parse_version(letter.event_version)
    known = events.latest_of_type(tx, letter.event_type, version.major, letter.tenant_id) if version else []
    at = deliveries.handled_at(tx, letter.group, [one.event_id for one in known])
    ids = {letter_id(letter.group, event_id): event_id for event_id in at}
    for one in dead_letters.by_id(tx, ids):
        if one.letter.state is not DeadLetterState.REPLAYED:  # a discarded one is settled in the inbox, too
            at.pop(ids[one.letter.letter_id])
    latest = sorted((one for one in known if one.event_id in at), key=lambda one: (-at[one.event_id], -one.seq))
    return [
        HandledEvent(
            event_id=one.event_id,
            event_version=envelope.event_version,
            published_at=one.published_at,
            handled_at=at[one.event_id],
            payload=redact(envelope.payload),
        )
        for one in latest[:MAX_HANDLED]
        if one.body is not None
        for envelope in [decode_trusted(one.body)]
    ]


def _payload(letter: DeadLetter) -> Any:
    envelope = msgspec.json.decode(letter.envelope)
    return cast("dict[str, Any]", envelope).get("payload") if isinstance(envelope, dict) else None
