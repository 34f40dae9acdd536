"""A failure past its last retry goes in, the record of C§6 comes out; its states are a table (B5)."""

from enum import StrEnum
from typing import Any

import msgspec

from patra.bus.catalogue import Catalogue
from patra.bus.envelope import Refused, decode
from patra.bus.reasons import R
from patra.bus.schema import Violation
from patra.kernel.machine import Machine


class L(StrEnum):
    """Nothing expires: a letter is open until someone replays it with success or discards it."""

    OPEN = "open"
    REPLAYING = "replaying"
    REPLAYED = "replayed"
    DISCARDED = "discarded"


class On(StrEnum):
    REPLAY = "replay"
    HANDLED = "handled"
    FAILED_AGAIN = "failed_again"
    DISCARD = "discard"


DEAD_LETTER = Machine(
    "bus_dead_letter",
    initial=L.OPEN,
    edges={
        (L.OPEN, On.REPLAY): L.REPLAYING,
        (L.OPEN, On.DISCARD): L.DISCARDED,
        (L.REPLAYING, On.HANDLED): L.REPLAYED,
        (L.REPLAYING, On.FAILED_AGAIN): L.OPEN,
        (L.REPLAYED, On.FAILED_AGAIN): L.OPEN,  # a copy came when the inbox had forgotten it
        (L.DISCARDED, On.FAILED_AGAIN): L.OPEN,
    },
    version="b_dead_letter_v1",
)


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """The record of C§6 with the envelope, the last error and the attempts; instants in µs."""

    letter_id: str
    group: str
    event_id: str
    event_type: str
    event_version: str
    producer: str
    tenant_id: str
    trace_id: str
    correlation_id: str
    error_code: str
    error_detail: str
    reason: str
    attempts: int
    first_failed_at: int
    last_failed_at: int
    state: L
    replay_count: int
    replayed_by: str | None
    replayed_at: int | None
    closed_by: str | None
    closed_at: int | None
    close_reason: str | None
    envelope: str


def letter_id(group: str, event_id: str) -> str:
    """One letter for a group and an event, however often it fails: its history stays in one place (A3)."""
    return f"{group}/{event_id}"


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Which dead letters: every part that is given must hold."""

    group: str | None = None
    event_type: str | None = None
    event_id: str | None = None
    error_code: str | None = None
    trace_id: str | None = None
    tenant_id: str | None = None
    state: L | None = L.OPEN
    failed_from: int | None = None
    failed_to: int | None = None


def violations(catalogue: Catalogue, letter: DeadLetter) -> list[Violation]:
    """The payload of a letter against the schema as it stands today: every place where it breaks it."""
    envelope = decode(letter.envelope)
    if isinstance(envelope, Refused):
        return [Violation(envelope.place, envelope.code, envelope.detail)]
    contract = catalogue.contract(envelope.event_type, envelope.version)
    if contract is None:
        return [
            Violation(
                "/event_version", R.VERSION_UNKNOWN, f"{envelope.event_type} {envelope.version} is not in the catalogue"
            )
        ]
    return contract.violations(envelope.payload)


def shown(letter: DeadLetter) -> dict[str, Any]:
    """A letter with its envelope as JSON, for people and for the HTTP interface."""
    return {**msgspec.structs.asdict(letter), "envelope": msgspec.Raw(letter.envelope.encode())}
