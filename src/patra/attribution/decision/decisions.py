"""Turns a ruling on a subject into the decision as it is stored, and its facts and audit as the wire has them.

§3.8.21, §3.8.22, F7, F20. One decision has one audit, at most one attribution fact and at most one billable fact, so
one row of the store holds everything that its output records are made of.
"""

from typing import Any

import msgspec

from patra.attribution.contract import keys
from patra.attribution.contract.event_types import NA, UNKNOWN
from patra.attribution.contract.versions import CURRENT, FACT_VERSION, VERSIONS
from patra.attribution.decision.closure_rules import Action, Ruling
from patra.attribution.decision.closure_state import Closure
from patra.attribution.intake.checked_event import StoredEvent
from patra.attribution.intake.identity import Subject
from patra.kernel.clock import format_instant


class PendingDecision(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A decision as it is made and stored: who it is about stands with it, or beside it among the events of its item.

    `number` is its own, `at` the instant of the decision.
    """

    number: int
    at: int
    ruling: Ruling
    event: int | str | None
    """The place in its batch of the event that was decided; of a decision taken later, its source event's batch."""
    subject: Subject | None = None
    """Who it is about, if that is not the event in its first cycle."""
    versions: int = CURRENT


class Decision(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One decision, whole. The instant is both `decidedAt` and `outputAt`.

    Action, reason, conflict and status are members of their enums when they are made and plain text when they are read
    back: a member equals its text, so callers see no difference.
    """

    at: int
    subject: Subject
    action: str
    reason: str
    conflict: str
    attribution: str | None
    status: str
    """What the attribution record is born as: `new`, `duplicate` or `conflicted`."""
    billable: str | None
    raw: tuple[str, str] | None = None
    values: tuple[str, ...] = ()
    extensions: dict[str, Any] | None = None
    conflict_with: str | None = None
    supersedes: str | None = None
    versions: int = CURRENT
    batch: str | None = None
    """Of a decision taken later, the batch of its source event (F25), or "" where that is not known; else None."""


def decision_of(made: PendingDecision, event: StoredEvent | None) -> Decision:
    """The whole of a decision, of what was made and the event that it is about."""
    ruling, subject = made.ruling, made.subject or (event and event.subject)
    if subject is None:
        raise AssertionError("a decision has a subject")
    emitted = event if ruling.action is not Action.DROP else None  # an event that goes no further says no more
    return Decision(
        made.at,
        subject,
        ruling.action,
        ruling.reason,
        ruling.conflict,
        ruling.attribution,
        ruling.status,
        ruling.billable,
        emitted and emitted.raw,
        emitted.values if emitted else (),
        emitted and emitted.extensions,
        ruling.conflict_with,
        ruling.supersedes,
        made.versions,
        _later_batch(made),
    )


def _later_batch(made: PendingDecision) -> str | None:
    if isinstance(made.event, int) or made.ruling.action is Action.DROP:
        return None
    return made.event or ""


# --- the objects of §3.8.21 -------------------------------------------------------------------------------------------


def billing_key_of(decision: Decision) -> str | None:
    subject = decision.subject
    if decision.billable is None or subject.reference is None or subject.render is None:
        return None
    return keys.billing_key(subject.reference, subject.render, decision.billable)


def attribution_key_of(decision: Decision) -> str | None:
    subject = decision.subject
    if decision.attribution is None or subject.dedup is None:
        return None
    return keys.attribution_key(decision.attribution, subject.dedup, subject.cycle)


def audit_key_of(decision: Decision) -> str:
    return keys.audit_key(decision.subject.source, decision.action, decision.reason)


def billable_fact(decision: Decision) -> dict[str, Any] | None:
    """`billableFactLite`."""
    billing = billing_key_of(decision)
    if billing is None:
        return None
    subject = decision.subject
    return {
        "factId": keys.billable_fact_id(billing),
        "billableType": decision.billable,
        "sourceEventId": subject.source,
        "responseReference": subject.reference,
        "renderAttemptId": subject.render,
        "opportunityKey": subject.opportunity,
        "traceKey": subject.trace,
        "billingKey": billing,
        "factAt": _instant(subject.at),
        "factVersion": FACT_VERSION,
    }


def attribution_fact(decision: Decision) -> dict[str, Any] | None:
    """`attributionFactLite`."""
    attribution = attribution_key_of(decision)
    if attribution is None:
        return None
    subject = decision.subject
    return {
        "factId": keys.attribution_fact_id(attribution),
        "attributionType": decision.attribution,
        "sourceEventId": subject.source,
        "eventType": subject.event_type,
        "responseReferenceOrNA": subject.reference or NA,
        "renderAttemptIdOrNA": subject.render or NA,
        "opportunityKey": subject.opportunity,
        "traceKey": subject.trace,
        "attributionKey": attribution,
        "factAt": _instant(subject.at),
        "factVersion": FACT_VERSION,
    }


def audit(decision: Decision) -> dict[str, Any]:
    """`factDecisionAuditLite`, with the entry of F5 where a sub-enum became `unknown`."""
    found: dict[str, Any] = {
        "sourceEventId": decision.subject.source,
        "mappingRuleVersion": VERSIONS[decision.versions].mappingRuleVersion,
        "decisionAction": decision.action,
        "decisionReasonCode": decision.reason,
        "conflictDecision": decision.conflict,
        "decidedAt": format_instant(decision.at),
    }
    if decision.raw is not None:
        found |= {"fieldPath": decision.raw[0], "rawValue": decision.raw[1], "canonicalValue": UNKNOWN}
    return found


def closure_line(closure: Closure) -> dict[str, Any]:
    """A closure as replay and queries show it."""
    return {"closureKey": closure.closure, "state": closure.state, "terminalSource": closure.source}


def _instant(at: int | None) -> str:
    return NA if at is None else format_instant(at)
