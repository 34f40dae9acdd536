"""A checked event: the fields that decisions need, and the rest already encoded for storage.

Most of an event is never looked at again once it is checked. So its reader, a child process where there is one,
puts that into the form of the store at once (`encode_stored_event`), and the writer passes it on as bytes.
"""

from typing import Any

import msgspec

from patra.attribution.contract.event_types import KINDS, Kind
from patra.attribution.contract.reasons import Reason
from patra.attribution.intake.envelope import display_text
from patra.attribution.intake.identity import Origin, Subject

_encode = msgspec.json.Encoder(enc_hook=display_text).encode


class StoredEvent(msgspec.Struct, frozen=True, array_like=True):
    """What the store keeps of an event beside what was decided about it."""

    subject: Subject
    """Who it is, if its dedup key is in its first cycle."""
    values: tuple[str, ...]
    """The fields of its type, sub-enums in their canonical form."""
    raw: tuple[str, str] | None
    """`fieldPath` and `rawValue` of a sub-enum that became `unknown` (F5)."""
    extensions: dict[str, Any] | None


_decode = msgspec.json.Decoder(StoredEvent).decode


class Event(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An event that passed checks 1 to 6: normalised, with its dedup key and fingerprint."""

    index: int
    sent_id: Any
    """`eventId` as sent, for the ACK."""
    type: str
    """Its `eventType`."""
    at: int
    source: str
    """Its `serverEventKey`, if its dedup key is in its first cycle."""
    dedup: str
    """`canonicalDedupKey`."""
    closure: str | None
    """Its `closureKey`, where both halves are there."""
    closure_key: bytes | None
    """The store's key of that."""
    terminal: bool
    """A terminal error (F14): the processor's own `failure`."""
    key: bytes
    """The ledger's key of its dedup key."""
    fingerprint: bytes
    """The first half of the computed key: what the ledger compares."""
    code: Reason
    """The reason of the ACK if the event is accepted (F8)."""
    said: str | None
    """The value that more hangs on than itself (`Kind.says`), in its canonical form."""
    opportunity: bytes | None
    """The store's key of its opportunity, where settlement may ask for it."""
    told: bytes
    """A `StoredEvent`, in the form of the store."""

    @property
    def kind(self) -> Kind:
        return KINDS[self.type]


EventRef = Event | Subject
"""The subject of a decision: the event at hand in its first cycle, or any other."""


def encode_stored_event(
    subject: Subject, values: tuple[str, ...], raw: tuple[str, str] | None, extensions: dict[str, Any] | None
) -> bytes:
    return _encode(StoredEvent(subject, values, raw, extensions))


def stored_event(event: Event) -> StoredEvent:
    return _decode(event.told)


def subject_of(who: EventRef) -> Subject:
    return who if isinstance(who, Subject) else stored_event(who).subject


def origin(who: EventRef) -> Origin:
    if isinstance(who, Event):
        return Origin(who.dedup, 1)
    if who.dedup is None:
        raise AssertionError("only an event with a dedup key reaches a closure")
    return Origin(who.dedup, who.cycle)
