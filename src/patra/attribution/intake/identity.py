"""Whom a decision is about: the identity of one event, as facts, audits, records and closures carry it (§3.8.26).

`validate` makes it of an event, `subject_of_timeout` of the event that opened a closure whose deadline has passed.
"""

import msgspec
from msgspec.structs import replace

from patra.attribution.contract import keys
from patra.attribution.contract.event_types import NA
from patra.attribution.contract.reasons import Reason

FAILURE = "failure"
"""The processor's own event type: terminal errors and timeouts are normalised to it (F1, F14)."""


class Subject(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The identity of an event; an array in the store, so that millions of them stay small."""

    source: str
    app: str
    event_id: str
    event_type: str
    trace: str
    request: str
    attempt: str
    opportunity: str
    reference: str | None
    render: str | None
    dedup: str | None
    """`canonicalDedupKey`; None where the event was rejected before it had one."""
    cycle: int
    at: int | None
    """`eventAt`, or the deadline that a synthesised failure stands for."""
    index: int | None

    @property
    def closure(self) -> str | None:
        if self.reference is None or self.render is None:
            return None
        return keys.closure_key(self.reference, self.render)


class Origin(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What of a subject the keys of its records are made of: all that a closure keeps of the one that closed it."""

    dedup: str
    cycle: int


def in_cycle(subject: Subject, cycle: int) -> Subject:
    """The same event in a later cycle of its dedup key (F9)."""
    if subject.dedup is None:
        raise AssertionError("only a checked event has cycles")
    return replace(subject, source=keys.server_event_key(subject.dedup, cycle), cycle=cycle)


def subject_of_timeout(opener: Subject, deadline: int) -> Subject:
    """The failure that the system writes at a deadline: keys from the event that opened the closure (F13)."""
    digest = keys.semantic_digest([Reason.TIMEOUT])
    computed = keys.computed_key(
        opener.app,
        FAILURE,
        opener.request,
        opener.attempt,
        opener.opportunity,
        opener.reference,
        opener.render,
        digest,
    )
    dedup = keys.computed_dedup_key(computed)
    return Subject(
        keys.server_event_key(dedup, 1),
        opener.app,
        NA,
        FAILURE,
        opener.trace,
        opener.request,
        opener.attempt,
        opener.opportunity,
        opener.reference,
        opener.render,
        dedup,
        1,
        deadline,
        None,
    )
