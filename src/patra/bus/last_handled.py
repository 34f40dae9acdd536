"""A dead letter beside what its group did handle: the last event of its type, and what all of its cause have in common.

Only events of its own tenant and major version are looked at, as far back as their bodies are kept, and no more of
them than a page can wait for: an event may have a megabyte, which takes a fifth of a second to mask.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar, cast

import msgspec

from patra.bus.catalogue.versions import parse_version
from patra.bus.consuming.dead_letter import DeadLetter, DeadLetterState, Filter, letter_id
from patra.bus.consuming.shared_fields import SharedField, shared_fields
from patra.bus.publishing.envelope import decode_trusted
from patra.bus.store import dead_letters, deliveries, events
from patra.kernel.db import Tx
from patra.kernel.safety.redact import redact

T = TypeVar("T")
MAX_HANDLED = 100
MAX_LETTERS = 50
MAX_COMPARED_CHARS = 1_000_000
"""Of the bodies of handled events, and of those of dead letters; the first of each is looked at however large it is."""
READ_AT_ONCE = 5


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
    of_cause = _within_bound(islice(_of_cause(tx, letter), MAX_LETTERS), lambda one: len(one.envelope))
    letters = [redact(_payload(one)) for one in of_cause]
    return Comparison(
        payload=letters[0],
        last_handled=handled[0] if handled else None,
        shared=shared_fields(letters, [one.payload for one in handled]),
        letters=len(letters),
        handled=len(handled),
    )


def _within_bound(found: Iterable[T], size: Callable[[T], int]) -> Iterator[T]:
    """As many as are not too large together; no more is asked for then."""
    sizes = 0
    for one in found:
        if sizes and sizes + size(one) > MAX_COMPARED_CHARS:
            return
        sizes += size(one)
        yield one


def _of_cause(tx: Tx, letter: DeadLetter) -> Iterator[DeadLetter]:
    """This dead letter, and others of the same cause in the same state."""
    cause = Filter(
        group=letter.group,
        event_type=letter.event_type,
        error_code=letter.error_code,
        error_shape=letter.error_shape or None,
        tenant_id=letter.tenant_id,
        state=letter.state,
    )
    yield letter
    before: DeadLetter | None = None
    while page := [one.letter for one in dead_letters.find(tx, cause, limit=READ_AT_ONCE, before=before)]:
        yield from (one for one in page if one.letter_id != letter.letter_id)
        before = page[-1]


def _handled_events(tx: Tx, letter: DeadLetter) -> list[HandledEvent]:
    """The last one handled first."""
    version = parse_version(letter.event_version)
    known = events.latest_of_type(tx, letter.event_type, version.major, letter.tenant_id) if version else []
    at = deliveries.handled_at(tx, letter.group, [one.event_id for one in known])
    ids = {letter_id(letter.group, event_id): event_id for event_id in at}
    for one, state in dead_letters.states(tx, ids).items():
        if state is not DeadLetterState.REPLAYED:  # a discarded one is settled in the inbox, too
            at.pop(ids[one])
    latest = sorted((one for one in known if one.event_id in at), key=lambda one: (-at[one.event_id], -one.seq))
    return [
        HandledEvent(
            event_id=one.event_id,
            event_version=envelope.event_version,
            published_at=one.published_at,
            handled_at=at[one.event_id],
            payload=redact(envelope.payload),
        )
        for one, body in _within_bound(_with_bodies(tx, latest[:MAX_HANDLED]), lambda found: len(found[1]))
        for envelope in [decode_trusted(body)]
    ]


def _with_bodies(tx: Tx, latest: list[events.Published]) -> Iterator[tuple[events.Published, str]]:
    for start in range(0, len(latest), READ_AT_ONCE):
        page = latest[start : start + READ_AT_ONCE]
        bodies = events.bodies(tx, [one.seq for one in page])
        yield from ((one, bodies[one.seq]) for one in page if one.seq in bodies)


def _payload(letter: DeadLetter) -> Any:
    envelope = msgspec.json.decode(letter.envelope)
    return cast("dict[str, Any]", envelope).get("payload") if isinstance(envelope, dict) else None
