"""Whom a decision is about: the identity of one event, as facts, audits, records and closures carry it (§3.8.26).

In goes a checked event and its cycle, a rejected one, or a closure whose deadline passed; out comes a `Subject`.
"""

from typing import Any, cast

import msgspec

from patra.attribution import keys
from patra.attribution.contract import LONGEST_FIELD, NA
from patra.attribution.reasons import R
from patra.attribution.validate import Event, Rejected, is_text, text_or_na

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


def subject_of(event: Event, cycle: int) -> Subject:
    """The subject of a checked event; a terminal error is a `failure` from here on."""
    return Subject(
        f"fe_{event.key.hex()}" if cycle == 1 else keys.server_event_key(event.dedup, cycle),
        event.app_id,
        event.sent_id if type(event.sent_id) is str and 0 < len(event.sent_id) <= LONGEST_FIELD else NA,
        FAILURE if event.terminal else event.kind.name,
        event.trace,
        event.request,
        event.attempt,
        event.opportunity,
        event.reference,
        event.render,
        event.dedup,
        cycle,
        event.at,
        event.index,
    )


def subject_of_rejected(rejected: Rejected, batch_id: str) -> Subject:
    """What can be read of an event that failed the checks; it has no dedup key (F7)."""
    sent: Any = rejected.event
    fields = cast("dict[str, Any]", sent) if isinstance(sent, dict) else {}
    reference, render = fields.get("responseReference"), fields.get("renderAttemptId")
    return Subject(
        keys.server_event_key_without_dedup(rejected.app_id, batch_id, rejected.index),
        rejected.app_id,
        text_or_na(rejected.sent_id),
        text_or_na(fields.get("eventType")),
        text_or_na(fields.get("traceKey")),
        text_or_na(fields.get("requestKey")),
        text_or_na(fields.get("attemptKey")),
        text_or_na(fields.get("opportunityKey")),
        reference if is_text(reference) else None,
        render if is_text(render) else None,
        None,
        1,
        None,
        rejected.index,
    )


def subject_of_timeout(opener: Subject, deadline: int) -> Subject:
    """The failure that the system writes at a deadline: keys from the event that opened the closure (F13)."""
    digest = keys.semantic_digest([R.TIMEOUT])
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
