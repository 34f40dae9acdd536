"""The way of one event in the order of F2: envelope, checks 1 to 6, deduplication, owner, closure, facts, archive.

It is read off what was decided: the first check that fails decides, so everything before it passed and nothing after
it was looked at. A decision that was taken later (by a deadline, or with the impression that a click waited for)
begins at the closure.
"""

from collections import Counter
from enum import StrEnum

import msgspec

from patra.attribution.contract.event_types import KINDS
from patra.attribution.contract.keys import key_source
from patra.attribution.contract.reasons import Reason
from patra.attribution.decision.closure_rules import (
    ATTR_CLICK_PENDING,
    ATTR_FAILURE,
    BILLABLE_CLICK,
    BILLABLE_IMPRESSION,
    Action,
    Status,
)
from patra.attribution.decision.closure_state import CLOSURE, ClosureState, ClosureTransition
from patra.attribution.decision.decisions import Decision
from patra.attribution.decision.output_records import Record
from patra.attribution.queries.rejects import RejectView


class Answer(StrEnum):
    """How an event was answered; `timer` is a decision that a deadline made, which nobody was answered."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    REJECTED = "rejected"
    TIMER = "timer"


class StepName(StrEnum):
    ENVELOPE = "envelope"
    TYPE = "check 1"
    FIELDS = "check 2"
    EVENT_ID = "check 3"
    EVENT_AT = "check 4"
    SCOPE = "check 5"
    AGE = "check 6"
    DEDUP = "dedup"
    OWNER = "owner"
    CLOSURE = "closure"
    FACTS = "facts"
    ARCHIVE = "archive"


class StepOutcome(StrEnum):
    """How a step ended for the event."""

    PASSED = "passed"
    FAILED = "failed"
    DUPLICATE = "duplicate"
    WAITING = "waiting"
    NOT_REACHED = "not_reached"
    """An earlier step decided, or the step is not for such an event."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One step: what it asks or did, and how it ended. `transition` is the closure's, where the event moved it."""

    name: StepName
    outcome: StepOutcome
    text: str
    transition: str | None = None


CHECKS: dict[StepName, str] = {
    StepName.TYPE: "eventType is one of the eight",
    StepName.FIELDS: "no required field is missing",
    StepName.EVENT_ID: "eventId is there",
    StepName.EVENT_AT: "eventAt is an instant, not far ahead",
    StepName.SCOPE: "eventIdScope is known and verified",
    StepName.AGE: "within the dedup window of its type",
}
"""What each of the checks 1 to 6 asks (F2)."""
FAILED_AT: dict[str, StepName] = {
    Reason.TYPE_UNSUPPORTED: StepName.TYPE,
    Reason.MISSING_REQUIRED: StepName.FIELDS,
    Reason.ID_INVALID_NO_FALLBACK: StepName.FIELDS,
    Reason.TIME_INVALID: StepName.EVENT_AT,
    Reason.UNIQUENESS_UNVERIFIED: StepName.SCOPE,
    Reason.STALE: StepName.AGE,
    Reason.DEDUP_INFLIGHT: StepName.DEDUP,
    Reason.DEDUP_COMMITTED: StepName.DEDUP,
    Reason.DEDUP_CONFLICT: StepName.DEDUP,
    Reason.FOREIGN_APP: StepName.OWNER,
}
"""The step that gives each code that drops an event."""
FIELD_STEPS = {
    "$": StepName.TYPE,
    "eventType": StepName.TYPE,
    "eventId": StepName.EVENT_ID,
    "eventIdScope": StepName.SCOPE,
}
"""Which check a missing field failed, where that is not check 2."""
SEEN_BEFORE = frozenset({Reason.DEDUP_INFLIGHT.value, Reason.DEDUP_COMMITTED.value})
STAYS: dict[str, ClosureState] = {
    Reason.DUPLICATE_IMPRESSION.value: ClosureState.CLOSED_SUCCESS,
    Reason.FAILURE_AFTER_IMPRESSION.value: ClosureState.CLOSED_SUCCESS,
    Reason.IMPRESSION_AFTER_FAILURE.value: ClosureState.CLOSED_FAILURE,
    Reason.DUPLICATE_FAILURE.value: ClosureState.CLOSED_FAILURE,
}
"""The state in which a closure stays that has ended before."""


BY_DEADLINE = frozenset({Reason.TIMEOUT.value, Reason.CLICK_WITHOUT_IMPRESSION.value})
DUPLICATES = SEEN_BEFORE | STAYS.keys() | {Reason.DUPLICATE_CLICK.value}


def answer_of(decision: Decision) -> Answer:
    """The answer that a decision stands for, by its action and reason."""
    if decision.reason in BY_DEADLINE:
        return Answer.TIMER
    if decision.reason in DUPLICATES:
        return Answer.DUPLICATE
    return Answer.REJECTED if decision.action == Action.DROP.value else Answer.ACCEPTED


def decision_steps(
    decision: Decision,
    records: list[Record],
    rejects: list[RejectView],
    batch: str | None,
    archive_code: str | None = None,
) -> list[Step]:
    """Every step in its order, with how it ended for this decision; `archive_code`: why the archive lacks a record."""
    closure_on = [_closure(decision), _facts(decision), _archive(records, archive_code)]
    if decision.batch is not None or decision.reason in BY_DEADLINE:
        return closure_on
    of_batch = f"batch {batch}" if batch else "its batch"
    index = decision.subject.index
    text = of_batch if index is None else f"{of_batch}, event {index + 1} of it"
    steps = [Step(name=StepName.ENVELOPE, outcome=StepOutcome.PASSED, text=text)]
    failed = _failed_at(decision, rejects)
    before = {**CHECKS, StepName.DEDUP: _dedup_text(decision), StepName.OWNER: _owner_text(decision)}
    ended = False
    for name, asked in before.items():
        if ended:
            steps.append(Step(name=name, outcome=StepOutcome.NOT_REACHED, text=CHECKS.get(name, "not looked at")))
        elif name is failed:
            ended = True
            outcome = StepOutcome.DUPLICATE if decision.reason in SEEN_BEFORE else StepOutcome.FAILED
            steps.append(Step(name=name, outcome=outcome, text=_why(decision, rejects)))
        else:
            reached = name is not StepName.OWNER or decision.subject.closure is not None
            steps.append(
                Step(name=name, outcome=StepOutcome.PASSED if reached else StepOutcome.NOT_REACHED, text=asked)
            )
    return [*steps, *closure_on]


def _failed_at(decision: Decision, rejects: list[RejectView]) -> StepName | None:
    if decision.action != Action.DROP.value:
        return None
    step = FAILED_AT.get(decision.reason)
    if decision.reason != Reason.MISSING_REQUIRED.value:
        return step
    field = next((one.fieldPath for one in rejects if one.fieldPath), "")
    return FIELD_STEPS.get(field or "", step)


def _why(decision: Decision, rejects: list[RejectView]) -> str:
    for one in rejects:
        if one.fieldPath and one.expected:
            what = "the event" if one.fieldPath == "$" else one.fieldPath
            return f"{what}: expected {one.expected}"
    return Reason(decision.reason).text


def _dedup_text(decision: Decision) -> str:
    subject = decision.subject
    if subject.dedup is None:
        return "no key was made"
    made_of = {"client_idempotency": "idempotencyKey", "client_event_id": "eventId", "computed": "its fields"}
    key = f"key made of {made_of[key_source(subject.dedup)]}"
    return f"{key}, new" if subject.cycle <= 1 else f"{key}, cycle {subject.cycle}: its window had ended"


def _owner_text(decision: Decision) -> str:
    closure = decision.subject.closure
    return f"the closure is of {decision.subject.app}" if closure else "no closure: the event names no render attempt"


def _closure(decision: Decision) -> Step:
    def step(outcome: StepOutcome, text: str, transition: ClosureTransition | None = None) -> Step:
        return Step(
            name=StepName.CLOSURE, outcome=outcome, text=text, transition=transition.value if transition else None
        )

    reason = decision.reason
    if reason == Reason.CLICK_WITHOUT_IMPRESSION.value:
        return step(StepOutcome.FAILED, "the click's wait ended without an impression")
    if decision.action == Action.DROP.value:
        return step(StepOutcome.NOT_REACHED, "not looked at")
    if decision.subject.closure is None:
        return step(StepOutcome.NOT_REACHED, "the event belongs to none")
    if (stays := STAYS.get(reason)) is not None:
        return step(StepOutcome.DUPLICATE, f"stays {stays}: it had ended before")
    if reason == Reason.DUPLICATE_CLICK.value:
        return step(StepOutcome.DUPLICATE, "it has a click already")
    if reason == Reason.CLICK_INELIGIBLE.value:
        return step(StepOutcome.FAILED, "it has failed: its click is never billed")
    if reason == Reason.POSTBACK_CONFLICT.value:
        return step(StepOutcome.FAILED, "the postback contradicts how it ended")
    if (transition := transition_of(decision)) is not None:
        edges = [f"{was} → {to}" for (was, on), to in CLOSURE.edges.items() if on is transition]
        by = {ClosureTransition.TIMEOUT: ", by its deadline", ClosureTransition.LATE_IMPRESSION: ", a late impression"}
        return step(StepOutcome.PASSED, edges[0] + by.get(transition, ""), transition)
    if decision.attribution == ATTR_CLICK_PENDING:
        return step(StepOutcome.WAITING, "open: the click waits for its impression")
    if decision.billable == BILLABLE_CLICK:
        return step(StepOutcome.PASSED, "its impression is there: the click counts")
    kind = KINDS.get(decision.subject.event_type)
    opens = kind is not None and kind.opens
    return step(
        StepOutcome.PASSED, "open; such an event does not end it" if opens else "such an event does not move it"
    )


def transition_of(decision: Decision) -> ClosureTransition | None:
    """The edge along which a decision moved its closure."""
    if decision.reason in STAYS:
        return None
    if decision.reason == Reason.TIMEOUT.value:
        return ClosureTransition.TIMEOUT
    if decision.billable == BILLABLE_IMPRESSION:
        return ClosureTransition.LATE_IMPRESSION if decision.supersedes else ClosureTransition.IMPRESSION
    if decision.attribution == ATTR_FAILURE and decision.subject.closure is not None:
        return ClosureTransition.FAILURE
    return None


def _facts(decision: Decision) -> Step:
    made = [one for one in (decision.billable, decision.attribution) if one is not None]
    if not made:
        return Step(name=StepName.FACTS, outcome=StepOutcome.NOT_REACHED, text="none")
    return Step(name=StepName.FACTS, outcome=StepOutcome.PASSED, text=", ".join(made))


def _archive(records: list[Record], code: str | None) -> Step:
    counts = Counter(record.status for record in records)
    text = ", ".join(f"{count} {status.value}" for status, count in counts.items()) or "no record"
    if counts[Status.NEW]:
        outcome = StepOutcome.WAITING
    elif counts[Status.REJECTED] or code is not None:
        outcome = StepOutcome.FAILED
    else:
        outcome = StepOutcome.PASSED
    return Step(name=StepName.ARCHIVE, outcome=outcome, text=f"records: {text}")
