"""Batches, ticks and the state they meet go in; answers, decisions and the new state come out (F2, F12).

The whole of what Module F decides, without a store: check 7 (dedup), 8 (owner of the closure), 9 (closure and facts),
and the deadlines that lie at or before each instant (A1). The result does not depend on how the sequence is cut.
"""

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

import msgspec

from patra.attribution import keys
from patra.attribution.ack import AckItem, BatchAck, batch_ack
from patra.attribution.batch import Batch, Item, Tick, instant
from patra.attribution.closure import (
    Ack,
    Closure,
    Conflict,
    Ruling,
    accepted,
    drop,
    lapse,
    opened,
    rule,
    upgrade,
)
from patra.attribution.contract import KINDS, Kind
from patra.attribution.dedup import REFUSALS, Ledger
from patra.attribution.event import Event, Who, subject_of
from patra.attribution.facts import Made
from patra.attribution.intake import Envelope, Refused
from patra.attribution.reasons import R
from patra.attribution.subject import Subject, in_cycle
from patra.attribution.validate import Rejected, subject_of_rejected
from patra.kernel.clock import HOUR
from patra.kernel.ledger import Outcome

ITEM_BITS = 20
"""A decision's number is its item's number in the log and its place in that item: they sort as they were made."""


class Drop(msgspec.Struct, kw_only=True):
    """A decision that drops an event; the same one again is counted, not repeated (F20)."""

    made: Made
    audit_key: str
    source: str
    count: int = 1
    app: str
    batch_id: str
    index: int
    sent: tuple[Any, ...] = ()
    """The event as sent, where it was rejected; nothing where it was a duplicate."""
    quarantined: bool = False
    further: list[tuple[int, Any]] = []
    """Instants and events to quarantine that were dropped likewise: a batch's id may have been used again (F19)."""


class Billable(NamedTuple):
    """A billable fact as settlement counts it."""

    number: int
    """Of its decision."""
    app: str
    type: str
    opportunity: bytes
    hour: int
    at: int


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
    decisions: dict[int, list[Made]] = {}
    """By the item that they were made on."""
    billables: list[Billable] = []
    placements: list[Placement] = []
    drops: dict[bytes, Drop] = {}
    superseded: list[Superseded] = []


class Ticked(msgspec.Struct, frozen=True):
    """How many deadlines a tick applied."""

    applied: int


Answer = BatchAck | Refused | Ticked


def decide(
    ledger: Ledger, closures: Mapping[bytes, Closure], items: Mapping[int, Item]
) -> tuple[list[Answer], Changes]:
    """Decide the items one after the other; they come by their numbers in the log, in the order of decision."""
    run = _Run(ledger, closures.values())
    answers: list[Answer] = [run.item(number, one) for number, one in items.items()]
    run.changes.closures = [closure for closure in run.closures.values() if closure.changed]
    return answers, run.changes


class _Run:
    """The state of one call of `decide`."""

    def __init__(self, ledger: Ledger, closures: Iterable[Closure]) -> None:
        self.changes = Changes(ledger=ledger)
        self.closures = {closure.key: closure for closure in closures}
        self._due = [(due, c.key) for c in self.closures.values() if (due := c.next_due) is not None]
        heapify(self._due)
        self._next = 0
        self._decisions: list[Made] = []
        self._received_at = 0
        self._batch_id = ""
        self._app = ""

    def item(self, number: int, one: Item) -> Answer:
        self._next = number << ITEM_BITS
        self._decisions = self.changes.decisions[number] = []
        self._lapse(instant(one))
        if isinstance(one, Tick):
            return Ticked(self._next - (number << ITEM_BITS))
        if isinstance(one.envelope, Refused):
            return one.envelope
        return self._batch(number, one, one.envelope)

    def _batch(self, number: int, batch: Batch, envelope: Envelope) -> BatchAck:
        self._received_at, self._batch_id, self._app = batch.received_at, envelope.batch_id, envelope.app_id
        answers = [self._rejected(rejected) for rejected in batch.rejected]
        answers += [self._event(event, number, batch) for event in batch.events]
        return batch_ack(envelope, batch.received_at, answers)

    def _rejected(self, rejected: Rejected) -> AckItem:
        subject = subject_of_rejected(rejected, self._batch_id)
        ruling = drop(Ack.REJECTED, rejected.code, Conflict.NONE)
        self._drop(ruling, rejected.index, subject, (rejected.event,), quarantined=rejected.lacks_reference)
        return AckItem(rejected.sent_id, rejected.index, Ack.REJECTED, rejected.code, False, subject.source)

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
                return self._rejected_late(event, who, R.FOREIGN_APP, batch)
        elif key is not None and kind.opens:
            closure = self.closures[key] = opened(key, event.closure or "", self._app, who, received_at)
            self._watch(closure)
        ruling = self._ruled(closure, event, who, kind)
        ledger.begin(event.key, event.fingerprint, received_at, kind.window, cycle=cycle, batch=number)
        return AckItem(event.sent_id, event.index, ruling.ack, ruling.code, False, who.source)

    def _rejected_late(self, event: Event, who: Who, code: R, batch: Batch) -> AckItem:
        """An event that passed the checks of its own and fails against what is known."""
        self._drop(drop(Ack.REJECTED, code, Conflict.REJECTED), event.index, who, (batch.as_sent()[event.index],))
        return AckItem(event.sent_id, event.index, Ack.REJECTED, code, False, who.source)

    def _ruled(self, closure: Closure | None, event: Event, who: Who, kind: Kind) -> Ruling:
        """Apply the closure's rules, and what an impression brings with it: a superseded timeout, a click upgraded."""
        if closure is None or not (kind.rules or event.terminal):
            ruling = accepted(event, kind.attribution)
            number = self._made(ruling, self._received_at, event, who)
            if event.opportunity and event.said:
                self.changes.placements.append(Placement(number, event.opportunity, event.said.encode()))
            return ruling
        timeout, due = closure.timeout, closure.next_due
        ruling = rule(closure, event, who, self._received_at)
        number = self._made(ruling, self._received_at, event, who)
        if ruling.billable is not None and event.opportunity:
            self._bill(number, ruling.billable, event.opportunity, self._app, event.at)
        if ruling.supersedes is not None and timeout is not None:
            self.changes.superseded.append(
                Superseded(decision_id=timeout, record_key=ruling.supersedes, at=self._received_at)
            )
        if (clicked := upgrade(closure)) is not None:
            self._follows(*clicked, self._received_at)
        if closure.next_due != due:
            self._watch(closure)
        return ruling

    def _lapse(self, now: int) -> None:
        """Apply every deadline at or before an instant, each as of its own, the earliest first."""
        while self._due and self._due[0][0] <= now:
            due, key = heappop(self._due)
            closure = self.closures[key]
            if closure.next_due != due:  # it was closed, upgraded or watched again since
                continue
            subject, ruling = lapse(closure, due)
            number = self._follows(subject, ruling, due)
            if ruling.reason is R.TIMEOUT:
                closure.timeout = number
            self._watch(closure)

    def _watch(self, closure: Closure) -> None:
        if (due := closure.next_due) is not None:
            heappush(self._due, (due, closure.key))

    def _made(self, ruling: Ruling, at: int, event: Event, who: Who) -> int:
        """A decision on an event of the batch at hand."""
        number = self._next
        self._next += 1
        self._decisions.append(Made(number, at, ruling, event.index, None if who is event else subject_of(who)))
        return number

    def _follows(self, subject: Subject, ruling: Ruling, at: int) -> int:
        """A decision that follows from time, or from a decision on another event."""
        number = self._next
        self._next += 1
        self._decisions.append(Made(number, at, ruling, None, subject))
        if ruling.billable is not None and subject.at is not None:
            opportunity = keys.opportunity(subject.app, subject.opportunity)
            self._bill(number, ruling.billable, opportunity, subject.app, subject.at)
        return number

    def _bill(self, number: int, billable: str, opportunity: bytes, app: str, at: int) -> None:
        self.changes.billables.append(Billable(number, app, billable, opportunity, at // HOUR, at))

    def _drop(
        self, ruling: Ruling, index: int, who: Who, sent: tuple[Any, ...] = (), *, quarantined: bool = False
    ) -> None:
        audit_key = keys.audit_key(who.source, ruling.action, ruling.reason)
        key = keys.half(audit_key)
        known = self.changes.drops.get(key)
        if known is not None:
            known.count += 1
            if quarantined:
                known.further.append((self._received_at, sent[0]))
            return
        number = self._next
        self._next += 1
        event, subject = (index, None) if isinstance(who, Event) else (None, who)
        self.changes.drops[key] = Drop(
            made=Made(number, self._received_at, ruling, event, subject),
            audit_key=audit_key,
            source=who.source,
            app=self._app,
            batch_id=self._batch_id,
            index=index,
            sent=sent,
            quarantined=quarantined,
        )
