"""Turns a failure past its last retry into the record of C§6; its states are a table (B5)."""

import re
from enum import StrEnum

import msgspec

from patra.bus.catalogue.catalogue import Catalogue
from patra.bus.catalogue.reasons import Reason
from patra.bus.catalogue.schema import Violation
from patra.bus.publishing.envelope import Refused, decode
from patra.kernel.machine import Machine

MAX_SHAPE_CHARS = 200
_SHAPES = (
    (re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"), "ID"),
    (re.compile(r"'[^']{0,200}'|\"[^\"]{0,200}\""), "'…'"),
    (re.compile(r"\b(?=[0-9a-fA-F]*\d)[0-9a-fA-F]{8,}\b|0x[0-9a-fA-F]+"), "HEX"),
    (re.compile(r"\d+"), "N"),
)
_FRAME = re.compile(r'^  File "([^"\n]+)", line (\d+)', re.MULTILINE)


class DeadLetterState(StrEnum):
    """Nothing expires: a dead letter is open until it is replayed with success or discarded."""

    OPEN = "open"
    REPLAYING = "replaying"
    REPLAYED = "replayed"
    DISCARDED = "discarded"


class DeadLetterTransition(StrEnum):
    REPLAY = "replay"
    HANDLED = "handled"
    FAILED_AGAIN = "failed_again"
    DISCARD = "discard"


DEAD_LETTER = Machine(
    "bus_dead_letter",
    initial=DeadLetterState.OPEN,
    edges={
        (DeadLetterState.OPEN, DeadLetterTransition.REPLAY): DeadLetterState.REPLAYING,
        (DeadLetterState.OPEN, DeadLetterTransition.DISCARD): DeadLetterState.DISCARDED,
        (DeadLetterState.REPLAYING, DeadLetterTransition.HANDLED): DeadLetterState.REPLAYED,
        (DeadLetterState.REPLAYING, DeadLetterTransition.FAILED_AGAIN): DeadLetterState.OPEN,
        (
            DeadLetterState.REPLAYED,
            DeadLetterTransition.FAILED_AGAIN,
        ): DeadLetterState.OPEN,  # a copy came when the inbox had forgotten it
        (DeadLetterState.DISCARDED, DeadLetterTransition.FAILED_AGAIN): DeadLetterState.OPEN,
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
    state: DeadLetterState
    replay_count: int
    replayed_by: str | None
    replayed_at: int | None
    closed_by: str | None
    closed_at: int | None
    close_reason: str | None
    envelope: str
    traceback: str = ""
    error_shape: str = ""


def error_shape(detail: str) -> str:
    """An error without what differs from event to event, so that dead letters of one cause are grouped."""
    shape = detail
    for pattern, stand_in in _SHAPES:
        shape = pattern.sub(stand_in, shape)
    return shape[:MAX_SHAPE_CHARS]


def error_place(traceback: str) -> str:
    """Where an error was raised: file and line of the last frame of a traceback, without its folders."""
    frames = _FRAME.findall(traceback)
    if not frames:
        return ""
    file, line = frames[-1]
    return f"{file.replace(chr(92), '/').rpartition('/')[2]}:{line}"


def letter_id(group: str, event_id: str) -> str:
    """One dead letter for a group and an event, however often it fails: its history stays in one place (A3)."""
    return f"{group}/{event_id}"


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Which dead letters: every part that is given must hold."""

    group: str | None = None
    event_type: str | None = None
    event_id: str | None = None
    error_code: str | None = None
    trace_id: str | None = None
    tenant_id: str | None = None
    error_shape: str | None = None
    state: DeadLetterState | None = DeadLetterState.OPEN
    failed_from: int | None = None
    failed_to: int | None = None


def violations(catalogue: Catalogue, letter: DeadLetter) -> list[Violation]:
    """The payload of a dead letter against the schema as it is today: every violation."""
    envelope = decode(letter.envelope)
    if isinstance(envelope, Refused):
        return [Violation(envelope.place, envelope.code, envelope.detail)]
    contract = catalogue.contract(envelope.event_type, envelope.version)
    if contract is None:
        return [
            Violation(
                "/event_version",
                Reason.VERSION_UNKNOWN,
                f"{envelope.event_type} {envelope.version} is not in the catalogue",
            )
        ]
    return contract.violations(envelope.payload)
