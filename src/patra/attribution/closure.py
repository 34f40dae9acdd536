"""A closure and an event on it go in; how the event is answered and what becomes of the closure comes out.

§3.8.17 to §3.8.19, §3.8.22 to §3.8.24, F13 to F18. A `Closure` is the working copy of one row: the functions here
change it and nothing else. Deadlines that lie at or before the instant at hand are applied first (A1): the caller asks
`next_due` and `lapse` before it brings an event.
"""

from enum import StrEnum
from functools import lru_cache

import msgspec

from patra.attribution import keys
from patra.attribution.contract import KINDS, WAIT_WINDOW
from patra.attribution.event import Event, Who, origin, subject_of
from patra.attribution.reasons import R
from patra.attribution.subject import Origin, Subject, subject_of_timeout
from patra.kernel.machine import Machine

BILLABLE_IMPRESSION = "billable_impression"
BILLABLE_CLICK = "billable_click"
ATTR_IMPRESSION = "attr_impression"
ATTR_FAILURE = "attr_failure_terminal"
ATTR_CLICK = "attr_click"
ATTR_CLICK_PENDING = "attr_click_pending"


class C(StrEnum):
    OPEN = "open"
    CLOSED_SUCCESS = "closed_success"
    CLOSED_FAILURE = "closed_failure"


class On(StrEnum):
    IMPRESSION = "impression"
    FAILURE = "failure"
    TIMEOUT = "timeout"
    LATE_IMPRESSION = "late_impression"


CLOSURE = Machine(
    "attribution_closure",
    version="f_closure_v1",
    initial=C.OPEN,
    edges={
        (C.OPEN, On.IMPRESSION): C.CLOSED_SUCCESS,
        (C.OPEN, On.FAILURE): C.CLOSED_FAILURE,
        (C.OPEN, On.TIMEOUT): C.CLOSED_FAILURE,
        (C.CLOSED_FAILURE, On.LATE_IMPRESSION): C.CLOSED_SUCCESS,  # only over a synthesised failure (§3.8.19)
    },
)


class Terminal(StrEnum):
    """`terminalSource`: what closed a closure."""

    IMPRESSION = "impression"
    ERROR = "error"
    TIMEOUT = "system_timeout_synthesized"


class Click(StrEnum):
    """What became of the click that a closure counts."""

    PENDING = "pending"
    BILLABLE = "billable"
    LAPSED = "lapsed"


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
    code: R
    """The reason of the answer."""
    reason: R
    """The reason of the audit."""
    action: Action
    conflict: Conflict = Conflict.NONE
    attribution: str | None = None
    status: Status = Status.NEW
    """What the attribution record is born as: `new`, `duplicate` or `conflicted`."""
    billable: str | None = None
    conflict_with: str | None = None
    supersedes: str | None = None


class Closure(msgspec.Struct, kw_only=True):
    """One render attempt until it has ended, and its one click."""

    key: bytes
    closure: str
    app: str
    opened_at: int
    opener: Who | None
    """Whom a timeout takes its keys from; not kept once the closure is closed."""
    state: C = C.OPEN
    source: Terminal | None = None
    ended_by: Origin | None = None
    timeout: int | None = None
    """The decision of the timeout, whose record a late impression supersedes."""
    click: Click | None = None
    clicked_by: Who | None = None
    """The click that waits."""
    billed: Origin | None = None
    """The click that was billed."""
    click_code: R | None = None
    click_due: int | None = None
    number: int = 0
    """Of its row, where the store numbers closures."""
    is_new: bool = True
    """Not in the store yet."""
    changed: bool = True
    """Not as it is in the store."""

    @property
    def next_due(self) -> int | None:
        """The next deadline: of the closure while it is open, of its click while that is pending."""
        ends = self.opened_at + WAIT_WINDOW if self.state is C.OPEN else None
        if self.click is Click.PENDING and self.click_due is not None:
            return self.click_due if ends is None else min(ends, self.click_due)
        return ends


def opened(key: bytes, name: str, app: str, who: Who, received_at: int) -> Closure:
    """A closure that its first event opens (F13)."""
    return Closure(key=key, closure=name, app=app, opened_at=received_at, opener=who)


def end(closure: Closure, on: On, source: Terminal, who: Who) -> None:
    """Close along an edge of the table."""
    closure.state = CLOSURE.target(closure.state, on)
    closure.source = source
    closure.ended_by = origin(who)
    closure.changed = True


PLAIN = {
    attribution: Ruling(
        ack=Ack.ACCEPTED,
        code=R.ACCEPTED,
        reason=R.ACCEPTED,
        action=Action.ATTRIBUTION,
        attribution=attribution,
    )
    for attribution in (ATTR_FAILURE, ATTR_CLICK_PENDING, *(kind.attribution for kind in KINDS.values()))
}
"""The ruling on most events, made once."""


@lru_cache
def drop(ack: Ack, reason: R, conflict: Conflict) -> Ruling:
    """The ruling on an event that goes no further: rejected, or a duplicate of the ledger."""
    return Ruling(ack=ack, code=reason, reason=reason, action=Action.DROP, conflict=conflict)


# --- an event on its closure ------------------------------------------------------------------------------------------


def rule(closure: Closure, event: Event, who: Who, received_at: int) -> Ruling:
    """Decide an event that passed dedup and owner, on the closure that it finds or opens."""
    if event.terminal:
        return _failure(closure, event, who)
    match event.type:
        case "impression":
            return _impression(closure, event, who)
        case "click":
            return _click(closure, event, who, received_at)
        case "postback":
            return _postback(closure, event)
        case _:
            return accepted(event, event.kind.attribution)


def accepted(event: Event, attribution: str) -> Ruling:
    """The ruling on an event that nothing stands against."""
    code = event.code
    if code is R.ACCEPTED:
        return PLAIN[attribution]
    return Ruling(ack=Ack.ACCEPTED, code=code, reason=code, action=Action.ATTRIBUTION, attribution=attribution)


def _duplicate(code: R, attribution: str, conflict_with: str | None, status: Status = Status.DUPLICATE) -> Ruling:
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


def _impression(closure: Closure, event: Event, who: Who) -> Ruling:
    supersedes: str | None = None
    if closure.state is C.CLOSED_SUCCESS:
        return _duplicate(
            R.DUPLICATE_IMPRESSION, ATTR_IMPRESSION, billable_record(closure, closure.ended_by, BILLABLE_IMPRESSION)
        )
    if closure.state is C.CLOSED_FAILURE:
        ended = attribution_record(closure.ended_by, ATTR_FAILURE)
        if closure.source is not Terminal.TIMEOUT:
            return _duplicate(R.IMPRESSION_AFTER_FAILURE, ATTR_IMPRESSION, ended, Status.CONFLICTED)
        supersedes = ended
        end(closure, On.LATE_IMPRESSION, Terminal.IMPRESSION, who)
    else:
        end(closure, On.IMPRESSION, Terminal.IMPRESSION, who)
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


def _failure(closure: Closure, event: Event, who: Who) -> Ruling:
    if closure.state is C.CLOSED_SUCCESS:
        ended = attribution_record(closure.ended_by, ATTR_IMPRESSION)
        return _duplicate(R.FAILURE_AFTER_IMPRESSION, ATTR_FAILURE, ended)
    if closure.state is C.CLOSED_FAILURE:
        return _duplicate(R.DUPLICATE_FAILURE, ATTR_FAILURE, attribution_record(closure.ended_by, ATTR_FAILURE))
    end(closure, On.FAILURE, Terminal.ERROR, who)
    return accepted(event, ATTR_FAILURE)


def _click(closure: Closure, event: Event, who: Who, received_at: int) -> Ruling:
    match closure.click:
        case Click.BILLABLE:
            return _duplicate(R.DUPLICATE_CLICK, ATTR_CLICK, billable_record(closure, closure.billed, BILLABLE_CLICK))
        case Click.PENDING:
            waiting = None if closure.clicked_by is None else origin(closure.clicked_by)
            return _duplicate(R.DUPLICATE_CLICK, ATTR_CLICK, attribution_record(waiting, ATTR_CLICK_PENDING))
        case Click.LAPSED | None:
            pass
    if closure.state is C.CLOSED_FAILURE:
        return Ruling(
            ack=Ack.ACCEPTED,
            code=event.code,
            reason=R.CLICK_INELIGIBLE,
            action=Action.ATTRIBUTION,
            conflict=Conflict.NON_BILLABLE,
            attribution=ATTR_CLICK,
        )
    closure.changed = True
    if closure.state is C.OPEN:
        closure.clicked_by, closure.click_code = who, event.code
        closure.click, closure.click_due = Click.PENDING, received_at + WAIT_WINDOW
        return accepted(event, ATTR_CLICK_PENDING)
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
        case C.CLOSED_FAILURE, "success":
            ended = attribution_record(closure.ended_by, ATTR_FAILURE)
        case C.CLOSED_SUCCESS, "failed":
            ended = attribution_record(closure.ended_by, ATTR_IMPRESSION)
        case _:
            return accepted(event, event.kind.attribution)
    return Ruling(
        ack=Ack.ACCEPTED,
        code=event.code,
        reason=R.POSTBACK_CONFLICT,
        action=Action.ATTRIBUTION,
        conflict=Conflict.CONFLICTED,
        attribution=event.kind.attribution,
        status=Status.CONFLICTED,
        conflict_with=ended,
    )


# --- what follows from an impression, and from time -------------------------------------------------------------------


def upgrade(closure: Closure) -> tuple[Subject, Ruling] | None:
    """The click that was waiting for the impression that has just come: billable from now on (F16)."""
    if closure.state is not C.CLOSED_SUCCESS or closure.click is not Click.PENDING:
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
    if closure.state is C.OPEN and closure.opened_at + WAIT_WINDOW == due:
        if closure.opener is None:
            raise AssertionError("an open closure knows who opened it")
        subject = subject_of_timeout(subject_of(closure.opener), due)
        end(closure, On.TIMEOUT, Terminal.TIMEOUT, subject)
        return subject, Ruling(
            ack=Ack.ACCEPTED, code=R.TIMEOUT, reason=R.TIMEOUT, action=Action.ATTRIBUTION, attribution=ATTR_FAILURE
        )
    clicked = closure.clicked_by
    if clicked is None:
        raise AssertionError("a pending click is there")
    closure.click, closure.click_due = Click.LAPSED, None
    closure.clicked_by = closure.click_code = None
    return subject_of(clicked), Ruling(
        ack=Ack.ACCEPTED,
        code=R.CLICK_WITHOUT_IMPRESSION,
        reason=R.CLICK_WITHOUT_IMPRESSION,
        action=Action.ATTRIBUTION,
        conflict=Conflict.NON_BILLABLE,
    )


# --- the records that a conflict points to ----------------------------------------------------------------------------


def attribution_record(source: Origin | None, attribution_type: str) -> str | None:
    """The `recordKey` of an attribution fact."""
    if source is None:
        return None
    attribution = keys.attribution_key(attribution_type, source.dedup, source.cycle)
    return keys.record_key("attribution_fact", keys.attribution_fact_id(attribution), source.dedup)


def billable_record(closure: Closure, source: Origin | None, billable_type: str) -> str | None:
    """The `recordKey` of a billable fact, whose `billingKey` is its closure's key and its type."""
    if source is None:
        return None
    billing = f"{closure.closure}|{billable_type}"
    return keys.record_key("billable_fact", keys.billable_fact_id(billing), source.dedup)
