"""Batches, ticks and the state they meet go in; answers, decisions and the new state come out (F2, F12).

The whole of what Module F decides, without a store: check 7 (dedup), 8 (owner of the closure), 9 (closure and facts),
and the deadlines that lie at or before each instant (A1). The result does not depend on how the sequence is cut.
"""

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

import msgspec

from patra.attribution.ack import AckItem, BatchAck, batch_ack
from patra.attribution.batch import Batch, Item, Tick, instant
from patra.attribution.closure import (
    Ack,
    Closure,
    Conflict,
    Ruling,
    accepted,
    lapse,
    opened,
    rule,
    upgrade,
)
from patra.attribution.contract import KINDS, Kind
from patra.attribution.dedup import REFUSALS, Ledger
from patra.attribution.facts import Decision, audit_key_of, decided, dropped
from patra.attribution.intake import Envelope, Refused
from patra.attribution.reasons import R
from patra.attribution.subject import Subject, in_cycle
from patra.attribution.validate import Event, Rejected, subject_of_rejected
from patra.kernel.canonical import key16
from patra.kernel.ledger import Outcome

ITEM_BITS = 20
"""A decision's number is its item's number in the log and its place in that item: they sort as they were made."""


class Drop(msgspec.Struct, kw_only=True):
    """A decision that drops an event; the same one again is counted, not repeated (F20)."""

    id: int
    decision: Decision
    count: int = 1
    sent: tuple[Any, ...] = ()
    """The event as sent, where it was rejected; nothing where it was a duplicate."""
    batch_id: str = ""
    quarantined: bool = False
    further: list[tuple[int, Any]] = []
    """Instants and events to quarantine that were dropped likewise: a batch's id may have been used again (F19)."""


class Superseded(msgspec.Struct, frozen=True, kw_only=True):
    """The attribution record of a timeout that gave way to a late impression (F17)."""

    decision_id: int
    record_key: str
    at: int


class Changes(msgspec.Struct, kw_only=True):
    """Everything that one commit writes."""

    ledger: Ledger
    closures: list[Closure] = []
    decisions: dict[int, list[tuple[int, Decision]]] = {}
    """By the item that they were made on, each with its number."""
    drops: dict[bytes, Drop] = {}
    superseded: list[Superseded] = []


class Ticked(msgspec.Struct, frozen=True):
    """How many deadlines a tick applied."""

    applied: int


Answer = BatchAck | Refused | Ticked


def decide(
    ledger: Ledger, closures: Mapping[bytes, Closure], items: Sequence[tuple[int, Item]]
) -> tuple[list[Answer], Changes]:
    """Decide the items one after the other; each comes with its number in the log."""
    run = _Run(ledger, closures.values())
    answers: list[Answer] = [run.item(number, one) for number, one in items]
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
        self._decisions: list[tuple[int, Decision]] = []
        self._received_at = 0
        self._batch_id = ""

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
        self._received_at, self._batch_id = batch.received_at, envelope.batch_id
        answers = [self._rejected(rejected) for rejected in batch.rejected]
        answers += [self._event(event, number, batch) for event in batch.events]
        return batch_ack(envelope, batch.received_at, answers)

    def _rejected(self, rejected: Rejected) -> AckItem:
        subject = subject_of_rejected(rejected, self._batch_id)
        decision = dropped(subject, rejected.code, Conflict.NONE, self._received_at)
        self._drop(decision, (rejected.event,), quarantined=rejected.lacks_reference)
        return AckItem(rejected.sent_id, rejected.index, Ack.REJECTED, rejected.code, False, subject.source)

    def _event(self, event: Event, number: int, batch: Batch) -> AckItem:
        ledger = self.changes.ledger
        outcome, cycle = ledger.verdict(event.key, event.fingerprint, self._received_at, number)
        subject = event.subject if cycle == 1 else in_cycle(event.subject, cycle)
        if outcome is not Outcome.FIRST and outcome is not Outcome.NEW_CYCLE:
            return self._refused_by_ledger(event, subject, outcome, batch)
        key = event.closure_key
        closure = None if key is None else self.closures.get(key)
        if closure is not None and closure.app != subject.app:
            refusal = dropped(subject, R.FOREIGN_APP, Conflict.REJECTED, self._received_at)
            self._drop(refusal, (batch.as_sent()[event.index],))
            return AckItem(event.sent_id, event.index, Ack.REJECTED, R.FOREIGN_APP, False, subject.source)
        kind = KINDS[event.type]
        if closure is None and key is not None and kind.opens:
            closure = self.closures[key] = opened(key, subject, self._received_at)
        ruling = self._ruled(closure, event, subject, kind)
        ledger.begin(event.key, event.fingerprint, self._received_at, kind.window, cycle=cycle, batch=number)
        return AckItem(event.sent_id, event.index, ruling.ack, ruling.code, False, subject.source)

    def _refused_by_ledger(self, event: Event, subject: Subject, outcome: Outcome, batch: Batch) -> AckItem:
        code = REFUSALS[outcome]
        if outcome is Outcome.CONFLICT:
            sent = batch.as_sent()[event.index]
            self._drop(dropped(subject, code, Conflict.REJECTED, self._received_at), (sent,))
            return AckItem(event.sent_id, event.index, Ack.REJECTED, code, False, subject.source)
        self._drop(dropped(subject, code, Conflict.DUPLICATE, self._received_at))
        return AckItem(event.sent_id, event.index, Ack.DUPLICATE, code, False, subject.source)

    def _ruled(self, closure: Closure | None, event: Event, subject: Subject, kind: Kind) -> Ruling:
        """Apply the closure's rules, and what an impression brings with it: a superseded timeout, a click upgraded."""
        if closure is None:
            ruling = accepted(event, kind.attribution)
            self._decided(decided(subject, ruling, self._received_at, event))
            return ruling
        timeout, due = closure.timeout, None if closure.fresh else closure.next_due
        ruling = rule(closure, event, subject, self._received_at)
        closure.fresh = False
        self._decided(decided(subject, ruling, self._received_at, event))
        if ruling.supersedes is not None and timeout is not None:
            self.changes.superseded.append(
                Superseded(decision_id=timeout, record_key=ruling.supersedes, at=self._received_at)
            )
        if (clicked := upgrade(closure)) is not None:
            self._decided(decided(*clicked, self._received_at))
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
            number = self._decided(decided(subject, ruling, due))
            if ruling.reason is R.TIMEOUT:
                closure.timeout = number
            self._watch(closure)

    def _watch(self, closure: Closure) -> None:
        if (due := closure.next_due) is not None:
            heappush(self._due, (due, closure.key))

    def _decided(self, decision: Decision) -> int:
        number = self._next
        self._next += 1
        self._decisions.append((number, decision))
        return number

    def _drop(self, decision: Decision, sent: tuple[Any, ...] = (), *, quarantined: bool = False) -> None:
        key = key16(audit_key_of(decision))
        known = self.changes.drops.get(key)
        if known is not None:
            known.count += 1
            if quarantined:
                known.further.append((decision.at, sent[0]))
            return
        number = self._next
        self._next += 1
        self.changes.drops[key] = Drop(
            id=number, decision=decision, sent=sent, batch_id=self._batch_id, quarantined=quarantined
        )
