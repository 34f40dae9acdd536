"""Turns batches, ticks and the state they meet into answers, decisions and the new state (F2, F12).

All decisions of attribution, without a store: check 7 (dedup), 8 (owner of the closure), 9 (closure and facts),
and the deadlines that lie at or before each instant (A1): a batch applies those of the closures that its own events
name, a tick all of them (F24). The result does not depend on how the sequence is cut.
"""

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

import msgspec

from patra.attribution.contract import keys
from patra.attribution.contract.event_types import KINDS, Kind
from patra.attribution.contract.reasons import Reason
from patra.attribution.contract.rules import LIVE_RULES, Rules
from patra.attribution.decision.ack import AckItem, BatchAck, batch_ack
from patra.attribution.decision.closure_rules import (
    Ack,
    Conflict,
    Ruling,
    accept_event,
    drop,
    lapse,
    open_closure,
    rule,
    upgrade,
)
from patra.attribution.decision.closure_state import Closure
from patra.attribution.decision.decisions import PendingDecision
from patra.attribution.decision.dedup import REFUSALS, Ledger
from patra.attribution.intake.batch import Batch, Item, Tick
from patra.attribution.intake.checked_event import Event, EventRef, subject_of
from patra.attribution.intake.envelope import Envelope, Refused
from patra.attribution.intake.identity import Subject, in_cycle
from patra.attribution.intake.validate import Rejected, subject_of_rejected
from patra.kernel.clock import HOUR
from patra.kernel.ledger import Outcome

ITEM_BITS = 20
"""A decision's number is its item's number in the log and its place in that item: they sort as they were made."""


class RejectedEvent(NamedTuple):
    """A rejected event as sent, and where it stood."""

    at: int
    event: Any
    batch_id: str
    place: int
    quarantined: bool
    sent_id: Any
    field: str
    """The field that the check failed on."""
    expected: str
    also_wrong: str = ""
    """Further required fields that are missing."""


_KEY_FIELDS = {"client_idempotency": "idempotencyKey", "client_event_id": "eventId", "computed": "eventId"}
_EXPECTED_LATE = {
    Reason.DEDUP_CONFLICT: "a key that was not used for another event within its dedup window",
    Reason.FOREIGN_APP: "the closure of a render attempt that this app opened",
}


class Drop(msgspec.Struct, kw_only=True):
    """A decision that drops an event; the same one again is counted, not repeated (F20)."""

    made: PendingDecision
    audit_key: str
    source: str
    count: int = 1
    app: str
    rejected: list[RejectedEvent] = []
    """The events that were dropped so, where they were rejected; none where they were duplicates (F25)."""


class Billable(NamedTuple):
    """A billable fact as settlement counts it."""

    number: int
    """Of its decision."""
    app: str
    type: str
    opportunity: bytes
    hour: int
    at: int
    closure: bytes | None
    """The store's key of its closure."""


class Placement(NamedTuple):
    """Where an opportunity was, which settlement asks for."""

    number: int
    """Of its decision."""
    opportunity: bytes
    placement: bytes


class Superseded(msgspec.Struct, frozen=True, kw_only=True):
    """The attribution record of a timeout that gave way to a late impression (F17)."""

    decision_id: int
    record_key: str
    at: int


class Changes(msgspec.Struct, kw_only=True):
    """Everything that one commit writes."""

    ledger: Ledger
    closures: list[Closure] = []
    decisions: dict[int, list[PendingDecision]] = {}
    """By the item that they were made on."""
    billables: list[Billable] = []
    placements: list[Placement] = []
    drops: dict[bytes, Drop] = {}
    superseded: list[Superseded] = []
    ambiguous: list[PendingDecision] = []
    """Failures that the system wrote whose record keys another one's may share (`record_key_check`)."""
    absent: set[bytes] = set()
    """Closures that were looked for, not found, and not opened either: nothing in the store holds them absent."""


class Ticked(msgspec.Struct, frozen=True):
    """How many deadlines a tick applied."""

    applied: int


Answer = BatchAck | Refused | Ticked


def decide(
    ledger: Ledger, closures: Mapping[bytes, Closure], items: Mapping[int, Item], rules: Rules = LIVE_RULES
) -> tuple[list[Answer], Changes]:
    """Decide the items one after the other; they come by their numbers in the log, in the order of decision."""
    run = _Run(ledger, closures.values(), rules)
    answers: list[Answer] = [run.item(number, one) for number, one in items.items()]
    run.changes.closures = [closure for closure in run.closures.values() if closure.changed]
    run.changes.absent.difference_update(run.closures)
    return answers, run.changes


class _Run:
    """The state of one call of `decide`."""

    def __init__(self, ledger: Ledger, closures: Iterable[Closure], rules: Rules) -> None:
        self.changes = Changes(ledger=ledger)
        self.closures = {closure.key: closure for closure in closures}
        self._rules = rules
        for closure in self.closures.values():
            closure.wait, closure.click_wait = rules.closure_wait, rules.click_wait
        self._due = [(due, c.key) for c in self.closures.values() if (due := c.next_due) is not None]
        heapify(self._due)
        self._next = 0
        self._decisions: list[PendingDecision] = []
        self._received_at = 0
        self._batch_id = ""
        self._app = ""

    def item(self, number: int, one: Item) -> Answer:
        self._next = number << ITEM_BITS
        self._decisions = self.changes.decisions[number] = []
        if isinstance(one, Tick):
            self._lapse_all(one.at)
            return Ticked(self._next - (number << ITEM_BITS))
        if isinstance(one.envelope, Refused):
            return one.envelope
        self._lapse_of(one)
        return self._batch(number, one, one.envelope)

    def _batch(self, number: int, batch: Batch, envelope: Envelope) -> BatchAck:
        self._received_at, self._batch_id, self._app = batch.received_at, envelope.batch_id, envelope.app_id
        answers = [self._reject_event(rejected) for rejected in batch.rejected]
        answers += [self._event(event, number, batch) for event in batch.events]
        return batch_ack(envelope, batch.received_at, answers)

    def _reject_event(self, rejected: Rejected) -> AckItem:
        subject = subject_of_rejected(rejected, self._batch_id)
        ruling = drop(Ack.REJECTED, rejected.code, Conflict.NONE)
        sent = self._as_rejected(rejected.event, rejected.index, rejected.sent_id, rejected.field, rejected.expected)
        sent = sent._replace(quarantined=rejected.lacks_reference, also_wrong=rejected.also_wrong)
        self._drop(ruling, rejected.index, subject, sent)
        why = {"fieldPath": rejected.field, "expected": rejected.expected}
        if rejected.also_wrong:
            why["alsoWrong"] = rejected.also_wrong
        return AckItem(rejected.sent_id, rejected.index, Ack.REJECTED, rejected.code, False, subject.source, why)

    def _event(self, event: Event, number: int, batch: Batch) -> AckItem:
        ledger, received_at = self.changes.ledger, self._received_at
        outcome, cycle = ledger.verdict(event.key, event.fingerprint, received_at, number)
        who = event if cycle == 1 else in_cycle(subject_of(event), cycle)
        if outcome is not Outcome.FIRST and outcome is not Outcome.NEW_CYCLE:
            if outcome is Outcome.CONFLICT:
                return self._rejected_late(event, who, REFUSALS[outcome], batch)
            self._drop(drop(Ack.DUPLICATE, REFUSALS[outcome], Conflict.DUPLICATE), event.index, who)
            return AckItem(event.sent_id, event.index, Ack.DUPLICATE, REFUSALS[outcome], False, who.source)
        key, kind = event.closure_key, KINDS[event.type]
        closure = None if key is None else self.closures.get(key)
        if closure is not None:
            if closure.app != self._app:
                return self._rejected_late(event, who, Reason.FOREIGN_APP, batch)
        elif key is not None:
            closure = open_closure(event, key, self._app, who, received_at, self._batch_id)
            if closure is None:
                self.changes.absent.add(key)
            else:
                self.closures[key] = closure
                closure.wait, closure.click_wait = self._rules.closure_wait, self._rules.click_wait
                self._watch(closure)
        ruling = self._rule_event(closure, event, who, kind)
        window = self._rules.windows[kind.name]
        ledger.begin(event.key, event.fingerprint, received_at, window, cycle=cycle, batch=number)
        return AckItem(event.sent_id, event.index, ruling.ack, ruling.code, False, who.source)

    def _rejected_late(self, event: Event, who: EventRef, code: Reason, batch: Batch) -> AckItem:
        """An event that passed the checks of its own and fails against what is known."""
        field = "responseReference" if code is Reason.FOREIGN_APP else _KEY_FIELDS[keys.key_source(event.dedup)]
        sent = self._as_rejected(batch.as_sent()[event.index], event.index, event.sent_id, field, _EXPECTED_LATE[code])
        self._drop(drop(Ack.REJECTED, code, Conflict.REJECTED), event.index, who, sent)
        why = {"fieldPath": field, "expected": _EXPECTED_LATE[code]}
        return AckItem(event.sent_id, event.index, Ack.REJECTED, code, False, who.source, why)

    def _rule_event(self, closure: Closure | None, event: Event, who: EventRef, kind: Kind) -> Ruling:
        """Apply the closure's rules, and what an impression brings with it: a superseded timeout, a click upgraded."""
        if closure is None or not (kind.rules or event.terminal):
            ruling = accept_event(event, kind.attribution)
            number = self._record_decision(ruling, self._received_at, event, who)
            if event.opportunity and event.said:
                self.changes.placements.append(Placement(number, event.opportunity, event.said.encode()))
            return ruling
        timeout, due = closure.timeout, closure.next_due
        ruling = rule(closure, event, who, self._received_at, self._batch_id)
        number = self._record_decision(ruling, self._received_at, event, who)
        if ruling.billable is not None and event.opportunity:
            self._bill(number, ruling.billable, event.opportunity, self._app, event.at, event.closure_key)
        if ruling.supersedes is not None and timeout is not None:
            self.changes.superseded.append(
                Superseded(decision_id=timeout, record_key=ruling.supersedes, at=self._received_at)
            )
        if (clicked := upgrade(closure)) is not None:
            self._follows(*clicked, self._received_at, closure, closure.click_batch)
        if closure.next_due != due:
            self._watch(closure)
        return ruling

    def _lapse_all(self, now: int) -> None:
        """Apply every deadline at or before an instant, each as of its own, the earliest first."""
        while self._due and self._due[0][0] <= now:
            due, key = heappop(self._due)
            self._lapse(self.closures[key], due)

    def _lapse_of(self, batch: Batch) -> None:
        """Apply the deadlines of the closures that a batch names, if any of those at hand is due at all (F24)."""
        now = batch.received_at
        while self._due and self._due[0][0] <= now:
            due, key = self._due[0]
            if self.closures[key].next_due == due:
                break
            heappop(self._due)
        else:
            return
        named = [self.closures[key] for key in set(batch.closure_keys) if key in self.closures]
        while late := [(due, c.key) for c in named if (due := c.next_due) is not None and due <= now]:
            for due, key in sorted(late):
                self._lapse(self.closures[key], due)

    def _lapse(self, closure: Closure, due: int) -> None:
        if closure.next_due != due:  # it was closed, upgraded or watched again since
            return
        subject, ruling = lapse(closure, due)
        batch_id = closure.opener_batch if ruling.reason is Reason.TIMEOUT else closure.click_batch
        number = self._follows(subject, ruling, due, closure, batch_id)
        if ruling.reason is Reason.TIMEOUT:
            closure.timeout = number
            if "|" in f"{subject.request}{subject.attempt}{subject.opportunity}{subject.reference}{subject.render}":
                self.changes.ambiguous.append(self._decisions[-1])
        self._watch(closure)

    def _watch(self, closure: Closure) -> None:
        if (due := closure.next_due) is not None:
            heappush(self._due, (due, closure.key))

    def _record_decision(self, ruling: Ruling, at: int, event: Event, who: EventRef) -> int:
        """A decision on an event of the batch at hand."""
        number = self._next
        self._next += 1
        self._decisions.append(
            PendingDecision(number, at, ruling, event.index, None if who is event else subject_of(who))
        )
        return number

    def _follows(self, subject: Subject, ruling: Ruling, at: int, closure: Closure, batch_id: str | None) -> int:
        """A decision that follows from time, or from a decision on another event."""
        number = self._next
        self._next += 1
        self._decisions.append(PendingDecision(number, at, ruling, batch_id, subject))
        if ruling.billable is not None and subject.at is not None:
            opportunity = keys.opportunity(subject.app, subject.opportunity)
            self._bill(number, ruling.billable, opportunity, subject.app, subject.at, closure.key)
        return number

    def _bill(self, number: int, billable: str, opportunity: bytes, app: str, at: int, closure: bytes | None) -> None:
        self.changes.billables.append(Billable(number, app, billable, opportunity, at // HOUR, at, closure))

    def _as_rejected(self, event: Any, index: int, sent_id: Any, field: str, expected: str) -> RejectedEvent:
        return RejectedEvent(self._received_at, event, self._batch_id, index, False, sent_id, field, expected)

    def _drop(self, ruling: Ruling, index: int, who: EventRef, sent: RejectedEvent | None = None) -> None:
        audit_key = keys.audit_key(who.source, ruling.action, ruling.reason)
        key = keys.half(audit_key)
        known = self.changes.drops.get(key)
        rejected = [] if sent is None else [sent]
        if known is not None:
            known.count += 1
            known.rejected += rejected
            return
        number = self._next
        self._next += 1
        event, subject = (index, None) if isinstance(who, Event) else (None, who)
        self.changes.drops[key] = Drop(
            made=PendingDecision(number, self._received_at, ruling, event, subject),
            audit_key=audit_key,
            source=who.source,
            app=self._app,
            rejected=rejected,
        )
