"""What an event does to the closure of its attempt: opens it, ends it, is billed once, or conflicts with how it ended.

| rule | section |
|---|---|
| who opens a closure, and how long it waits | §3.8.17, §3.8.18, F13 |
| impression and failure exclude each other; a late impression replaces a synthesised failure | §3.8.19, F14, F17 |
| what an event is mapped to: facts, records, answer | §3.8.22 |
| at most one billable impression and one billable click per attempt | §3.8.23, F15, F16 |
| how a conflict is resolved, and which record it points to | §3.8.24, F18 |

A `Closure` is the working copy of one row: the functions here change it and nothing else. Deadlines that lie at or
before the instant at hand are applied first (A1): the caller asks `next_due` and `lapse` before it brings an event.
"""

from enum import StrEnum
from functools import lru_cache

import msgspec

from patra.attribution.contract import keys
from patra.attribution.contract.event_types import KINDS
from patra.attribution.contract.reasons import Reason
from patra.attribution.decision.closure_state import (
    CLOSURE,
    Click,
    Closure,
    ClosureState,
    ClosureTransition,
    Terminal,
)
from patra.attribution.intake.checked_event import Event, EventRef, origin, subject_of
from patra.attribution.intake.identity import Origin, Subject, subject_of_timeout

BILLABLE_IMPRESSION = "billable_impression"
BILLABLE_CLICK = "billable_click"
ATTR_IMPRESSION = "attr_impression"
ATTR_FAILURE = "attr_failure_terminal"
ATTR_CLICK = "attr_click"
ATTR_CLICK_PENDING = "attr_click_pending"


class Ack(StrEnum):
    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    REJECTED = "rejected"


class Action(StrEnum):
    """`decisionAction` (§3.8.21). The mapping of the MVP never emits a billable fact alone."""

    BILLABLE = "billable_emit"
    ATTRIBUTION = "attribution_emit"
    BOTH = "both_emit"
    DROP = "drop"


class Status(StrEnum):
    """`recordStatus` of an output record (§3.8.27)."""

    NEW = "new"
    COMMITTED = "committed"
    DUPLICATE = "duplicate"
    CONFLICTED = "conflicted"
    REJECTED = "rejected"
    SUPERSEDED = "superseded"


class Conflict(StrEnum):
    """`conflictDecision`: how a conflict was decided, or that there was none."""

    NONE = "none"
    DUPLICATE = "duplicate"
    CONFLICTED = "conflicted"
    REJECTED = "rejected"
    SUPERSEDED = "superseded"
    NON_BILLABLE = "non_billable"


class Ruling(msgspec.Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """What is decided about an event: its answer, its audit, its facts and the status of their records."""

    ack: Ack
    code: Reason
    """The reason of the answer."""
    reason: Reason
    """The reason of the audit."""
    action: Action
    conflict: Conflict = Conflict.NONE
    attribution: str | None = None
    status: Status = Status.NEW
    """What the attribution record is born as: `new`, `duplicate` or `conflicted`."""
    billable: str | None = None
    conflict_with: str | None = None
    supersedes: str | None = None


def open_closure(event: Event, key: bytes, app: str, who: EventRef, received_at: int, batch_id: str) -> Closure | None:
    """The closure that an event opens where its attempt has none; None where its type opens none (F13)."""
    if not KINDS[event.type].opens:
        return None
    name = event.closure or ""
    return Closure(key=key, closure=name, app=app, opened_at=received_at, opener=who, opener_batch=batch_id)


def end(closure: Closure, on: ClosureTransition, source: Terminal, who: EventRef) -> None:
    """Close along an edge of the table."""
    closure.state = CLOSURE.target(closure.state, on)
    closure.source = source
    closure.ended_by = origin(who)
    closure.changed = True


PLAIN = {
    attribution: Ruling(
        ack=Ack.ACCEPTED,
        code=Reason.ACCEPTED,
        reason=Reason.ACCEPTED,
        action=Action.ATTRIBUTION,
        attribution=attribution,
    )
    for attribution in (ATTR_FAILURE, ATTR_CLICK_PENDING, *(kind.attribution for kind in KINDS.values()))
}
"""The ruling on most events, made once."""


@lru_cache
def drop(ack: Ack, reason: Reason, conflict: Conflict) -> Ruling:
    """The ruling on an event that goes no further: rejected, or a duplicate of the ledger."""
    return Ruling(ack=ack, code=reason, reason=reason, action=Action.DROP, conflict=conflict)


def attribution_record(source: Origin | None, attribution_type: str) -> str | None:
    """The `recordKey` that a conflict points to (`conflictWithRecordKey`, §3.8.24): of an attribution fact."""
    if source is None:
        return None
    attribution = keys.attribution_key(attribution_type, source.dedup, source.cycle)
    return keys.record_key("attribution_fact", keys.attribution_fact_id(attribution), source.dedup)


def billable_record(closure_key: str, source: Origin | None, billable_type: str) -> str | None:
    """The `recordKey` that a conflict points to: of a billable fact (its closure's key and its type)."""
    if source is None:
        return None
    billing = f"{closure_key}|{billable_type}"
    return keys.record_key("billable_fact", keys.billable_fact_id(billing), source.dedup)


# --- an event on its closure ------------------------------------------------------------------------------------------


def rule(closure: Closure, event: Event, who: EventRef, received_at: int, batch_id: str) -> Ruling:
    """Decide an event that passed dedup and owner, on the closure that it finds or opens."""
    if event.terminal:
        return _failure(closure, event, who)
    match event.type:
        case "impression":
            return _impression(closure, event, who)
        case "click":
            return _click(closure, event, who, received_at, batch_id)
        case "postback":
            return _postback(closure, event)
        case _:
            return accept_event(event, event.kind.attribution)


def accept_event(event: Event, attribution: str) -> Ruling:
    """The ruling on an event that nothing stands against."""
    code = event.code
    if code is Reason.ACCEPTED:
        return PLAIN[attribution]
    return Ruling(ack=Ack.ACCEPTED, code=code, reason=code, action=Action.ATTRIBUTION, attribution=attribution)


def _duplicate(code: Reason, attribution: str, conflict_with: str | None, status: Status = Status.DUPLICATE) -> Ruling:
    """Answered as a duplicate, with one attribution record that keeps the status (F14, F15, F17)."""
    return Ruling(
        ack=Ack.DUPLICATE,
        code=code,
        reason=code,
        action=Action.ATTRIBUTION,
        conflict=Conflict(status.value),
        attribution=attribution,
        status=status,
        conflict_with=conflict_with,
    )


def _impression(closure: Closure, event: Event, who: EventRef) -> Ruling:
    supersedes: str | None = None
    if closure.state is ClosureState.CLOSED_SUCCESS:
        return _duplicate(
            Reason.DUPLICATE_IMPRESSION,
            ATTR_IMPRESSION,
            billable_record(closure.closure, closure.ended_by, BILLABLE_IMPRESSION),
        )
    if closure.state is ClosureState.CLOSED_FAILURE:
        ended = attribution_record(closure.ended_by, ATTR_FAILURE)
        if closure.source is not Terminal.TIMEOUT:
            return _duplicate(Reason.IMPRESSION_AFTER_FAILURE, ATTR_IMPRESSION, ended, Status.CONFLICTED)
        supersedes = ended
        end(closure, ClosureTransition.LATE_IMPRESSION, Terminal.IMPRESSION, who)
    else:
        end(closure, ClosureTransition.IMPRESSION, Terminal.IMPRESSION, who)
    return Ruling(
        ack=Ack.ACCEPTED,
        code=event.code,
        reason=event.code,
        action=Action.BOTH,
        conflict=Conflict.SUPERSEDED if supersedes else Conflict.NONE,
        attribution=ATTR_IMPRESSION,
        billable=BILLABLE_IMPRESSION,
        supersedes=supersedes,
    )


def _failure(closure: Closure, event: Event, who: EventRef) -> Ruling:
    if closure.state is ClosureState.CLOSED_SUCCESS:
        ended = attribution_record(closure.ended_by, ATTR_IMPRESSION)
        return _duplicate(Reason.FAILURE_AFTER_IMPRESSION, ATTR_FAILURE, ended)
    if closure.state is ClosureState.CLOSED_FAILURE:
        return _duplicate(Reason.DUPLICATE_FAILURE, ATTR_FAILURE, attribution_record(closure.ended_by, ATTR_FAILURE))
    end(closure, ClosureTransition.FAILURE, Terminal.ERROR, who)
    return accept_event(event, ATTR_FAILURE)


def _click(closure: Closure, event: Event, who: EventRef, received_at: int, batch_id: str) -> Ruling:
    match closure.click:
        case Click.BILLABLE:
            return _duplicate(
                Reason.DUPLICATE_CLICK, ATTR_CLICK, billable_record(closure.closure, closure.billed, BILLABLE_CLICK)
            )
        case Click.PENDING:
            waiting = None if closure.clicked_by is None else origin(closure.clicked_by)
            return _duplicate(Reason.DUPLICATE_CLICK, ATTR_CLICK, attribution_record(waiting, ATTR_CLICK_PENDING))
        case Click.LAPSED | None:
            pass
    if closure.state is ClosureState.CLOSED_FAILURE:
        return Ruling(
            ack=Ack.ACCEPTED,
            code=event.code,
            reason=Reason.CLICK_INELIGIBLE,
            action=Action.ATTRIBUTION,
            conflict=Conflict.NON_BILLABLE,
            attribution=ATTR_CLICK,
        )
    closure.changed = True
    if closure.state is ClosureState.OPEN:
        closure.clicked_by, closure.click_code, closure.click_batch = who, event.code, batch_id
        closure.click, closure.click_due = Click.PENDING, received_at + closure.click_wait
        return accept_event(event, ATTR_CLICK_PENDING)
    closure.click, closure.click_due, closure.billed = Click.BILLABLE, None, origin(who)
    return Ruling(
        ack=Ack.ACCEPTED,
        code=event.code,
        reason=event.code,
        action=Action.BOTH,
        attribution=ATTR_CLICK,
        billable=BILLABLE_CLICK,
    )


def _postback(closure: Closure, event: Event) -> Ruling:
    """A postback that contradicts the terminal state is kept as conflicted, and changes nothing (F18)."""
    match closure.state, event.said:
        case ClosureState.CLOSED_FAILURE, "success":
            ended = attribution_record(closure.ended_by, ATTR_FAILURE)
        case ClosureState.CLOSED_SUCCESS, "failed":
            ended = attribution_record(closure.ended_by, ATTR_IMPRESSION)
        case _:
            return accept_event(event, event.kind.attribution)
    return Ruling(
        ack=Ack.ACCEPTED,
        code=event.code,
        reason=Reason.POSTBACK_CONFLICT,
        action=Action.ATTRIBUTION,
        conflict=Conflict.CONFLICTED,
        attribution=event.kind.attribution,
        status=Status.CONFLICTED,
        conflict_with=ended,
    )


# --- what follows from an impression, and from time -------------------------------------------------------------------


def upgrade(closure: Closure) -> tuple[Subject, Ruling] | None:
    """The click that was waiting for the impression that has just come: billable from now on (F16)."""
    if closure.state is not ClosureState.CLOSED_SUCCESS or closure.click is not Click.PENDING:
        return None
    clicked, code = closure.clicked_by, closure.click_code
    if clicked is None or code is None:
        raise AssertionError("a pending click is there")
    closure.click, closure.click_due, closure.billed, closure.changed = Click.BILLABLE, None, origin(clicked), True
    closure.clicked_by = closure.click_code = None
    return subject_of(clicked), Ruling(
        ack=Ack.ACCEPTED,
        code=code,
        reason=code,
        action=Action.BOTH,
        attribution=ATTR_CLICK,
        billable=BILLABLE_CLICK,
    )


def lapse(closure: Closure, due: int) -> tuple[Subject, Ruling]:
    """Apply the deadline that `next_due` gave: the closure's timeout, or the end of its click's wait."""
    closure.changed = True
    if closure.state is ClosureState.OPEN and closure.opened_at + closure.wait == due:
        if closure.opener is None:
            raise AssertionError("an open closure knows who opened it")
        subject = subject_of_timeout(subject_of(closure.opener), due)
        end(closure, ClosureTransition.TIMEOUT, Terminal.TIMEOUT, subject)
        return subject, Ruling(
            ack=Ack.ACCEPTED,
            code=Reason.TIMEOUT,
            reason=Reason.TIMEOUT,
            action=Action.ATTRIBUTION,
            attribution=ATTR_FAILURE,
        )
    clicked = closure.clicked_by
    if clicked is None:
        raise AssertionError("a pending click is there")
    closure.click, closure.click_due = Click.LAPSED, None
    closure.clicked_by = closure.click_code = None
    return subject_of(clicked), Ruling(
        ack=Ack.ACCEPTED,
        code=Reason.CLICK_WITHOUT_IMPRESSION,
        reason=Reason.CLICK_WITHOUT_IMPRESSION,
        action=Action.ATTRIBUTION,
        conflict=Conflict.NON_BILLABLE,
    )
