"""Find the decisions that carry a key of the specification, with their batch, page by page.

§3.8.8, §3.8.16, §3.8.20, §3.8.25, §3.8.28, §3.8.30 name the keys.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice

import msgspec

from patra.attribution.contract import keys
from patra.attribution.contract.event_types import NA
from patra.attribution.contract.reasons import Reason
from patra.attribution.decision.closure_rules import BILLABLE_CLICK, BILLABLE_IMPRESSION, Action
from patra.attribution.decision.decide import ITEM_BITS
from patra.attribution.decision.decisions import Decision, attribution_key_of, audit_key_of, billing_key_of
from patra.attribution.decision.output_records import record_keys
from patra.attribution.intake.batch import read_batch
from patra.attribution.intake.zstd import decompress_body
from patra.attribution.storage.derived_keys import beginning_of, stored_text
from patra.attribution.storage.key_index import (
    INDEXED,
    LATER_IN_BATCH,
    MAX_DEDUP_CYCLES,
    items_of_batch,
    locate_items,
    located_newest,
)
from patra.attribution.storage.read import (
    Archived,
    DecisionFilter,
    decisions_before,
    decisions_from,
    decisions_of_items,
)
from patra.attribution.storage.sql import Q, mark
from patra.kernel.db import Row, Tx

MAX_PAGE_DECISIONS = 1000
"""Decisions of one page of an answer, unless one asks for fewer."""
READ_BATCH_SIZE = 100
"""Items that are read at a time, at most."""
FIRST_BATCH_SIZE = 1
"""Items that are read first."""
MAX_BODIES_READ = 1000
"""Batches of one id, the newest, that are read again for an event that was dropped."""
_NO_LIMIT = 2**62
LOST_BILLING = {
    Reason.DUPLICATE_IMPRESSION.value: BILLABLE_IMPRESSION,
    Reason.IMPRESSION_AFTER_FAILURE.value: BILLABLE_IMPRESSION,
    Reason.DUPLICATE_CLICK.value: BILLABLE_CLICK,
    Reason.CLICK_WITHOUT_IMPRESSION.value: BILLABLE_CLICK,
    Reason.CLICK_INELIGIBLE.value: BILLABLE_CLICK,
}
"""Reasons for which an event gets no billable fact, and the type of the one that it would have had."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A decision and the batch in which the event came, where one did."""

    archived: Archived
    batch_id: str | None


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """A page of what was found, in the order of decision; `next` is the number to go on after, if there is more."""

    found: list[Found]
    next: int | None


class _Sought:
    """A key that is looked for, and under which other names a decision carries it."""

    def __init__(self, *names: str) -> None:
        self.keys = frozenset(names) - {NA}
        self._derived = any(key.startswith(("af_", "bf_", "attr_")) or "|billable_" in key for key in names)
        self._record = any(len(key) == 64 for key in names)
        self._audits = {key for key in names if key.startswith("fe_") and "|" in key}
        self._billing = {key for key in names if key.endswith((f"|{BILLABLE_IMPRESSION}", f"|{BILLABLE_CLICK}"))}

    def met_by(self, decision: Decision) -> bool:
        """Whether any key of a decision, or of one of its records, is this one; hashes are made only where needed."""
        subject, sought = decision.subject, self.keys
        return (
            subject.source in sought
            or subject.app in sought
            or subject.event_id in sought
            or subject.trace in sought
            or subject.request in sought
            or subject.attempt in sought
            or subject.opportunity in sought
            or subject.reference in sought
            or subject.render in sought
            or subject.closure in sought
            or subject.dedup in sought
            or (self._derived and not sought.isdisjoint(_derived_keys(decision)))
            or (self._record and not sought.isdisjoint(record_keys(decision)))
            or (bool(self._audits) and audit_key_of(decision) in self._audits)
            or (bool(self._billing) and _lost_billing_key(decision) in self._billing)
        )

    @property
    def places(self) -> frozenset[str]:
        """Keys of the index that lead to it: an audit's own, its `payloadKey`, begins with its source.

        A billing key begins with its closure, which leads to those that lost the fact to another.
        """
        closures = {key.rpartition("|")[0] for key in self._billing}
        return self.keys.union(closures, (key.partition("|")[0] for key in self._audits))


def _lost_billing_key(decision: Decision) -> str | None:
    """The billing key of the fact that an event would have had, and was refused."""
    kind, closure = LOST_BILLING.get(decision.reason), decision.subject.closure
    return f"{closure}|{kind}" if kind and closure else None


def _derived_keys(decision: Decision) -> set[str]:
    """Keys and ids of the facts of a decision."""
    billing, attribution = billing_key_of(decision), attribution_key_of(decision)
    found = {billing, keys.billable_fact_id(billing)} if billing else set[str]()
    return found | ({attribution, keys.attribution_fact_id(attribution)} if attribution else set[str]())


class Only(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for beside a key; what is empty is not asked."""

    app: str = ""
    code: str = ""
    """A `decisionReasonCode`."""
    action: str = ""

    def met_by(self, decision: Decision) -> bool:
        return (
            (not self.app or decision.subject.app == self.app)
            and (not self.code or decision.reason == self.code)
            and (not self.action or decision.action == self.action)
        )


ANY = Only()


class _Question:
    """A key that is looked for in the store: where it may be, and which decisions carry it."""

    def __init__(self, tx: Tx, key: str, *, newest: int = 0) -> None:
        self._key = key
        self._sought = _Sought(key, *_stands_for(key))
        self.batch = items_of_batch(tx, key, newest)
        """Items of the log whose batch has the key as its id; with `newest` so many of the latest."""
        reissued = tx.fetch(Q["reissued_by_key"], {"record_key": key}) if len(key) == 64 else []
        self._reissued = {number for (number,) in reissued}
        self.known = self.batch | {number >> ITEM_BITS for number in self._reissued}
        self.places = {*self._sought.places, LATER_IN_BATCH + key}

    def decision_filter(self, only: Only = ANY, after: int = -1) -> DecisionFilter:
        def meets(number: int, decision: Decision) -> bool:
            return number > after and only.met_by(decision) and self._carried_by(number, decision)

        text = stored_text(self._key)
        return DecisionFilter(meets=meets, text=text, whole=self.known, hashed=beginning_of(self._key))

    def _carried_by(self, number: int, decision: Decision) -> bool:
        of_batch = number >> ITEM_BITS in self.batch and _is_of_item(decision)
        reissued = number in self._reissued
        return of_batch or reissued or decision.batch == self._key or self._sought.met_by(decision)


def find(tx: Tx, key: str, only: Only = ANY, *, after: int = -1, limit: int = MAX_PAGE_DECISIONS) -> Results:
    """The decisions that carry a key, in their order: those that follow a number, so many of them.

    A batch's id stands for all of its events. An app's id matches very many: it is found page by page, like any key.
    """
    question = _Question(tx, key)
    items, first = question.known | locate_items(tx, question.places), (after + 1) >> ITEM_BITS
    found = _search(tx, items, question.decision_filter(only, after), first, limit)
    page = found[:limit]
    known = dict.fromkeys(question.batch, key)
    return Results(found=with_batches(tx, page, known), next=page[-1].id if len(found) > limit else None)


class Latest(msgspec.Struct, frozen=True, kw_only=True):
    """The latest of the decisions that carry a key, in the order of decision."""

    found: list[Found]
    more: bool
    """Whether there are earlier ones."""
    items: int
    """In about how many batches the key occurs."""


def find_latest(tx: Tx, key: str, *, limit: int) -> Latest:
    """The latest decisions that carry a key: what is read does not grow with how many carry it."""
    question = _Question(tx, key, newest=limit + 1)
    latest = _latest_of(tx, key, question, limit)
    if latest.more or len(question.batch) <= limit:
        return latest
    return _latest_of(tx, key, _Question(tx, key), limit)  # the latest items of the batch were not enough


def _latest_of(tx: Tx, key: str, question: _Question, limit: int) -> Latest:
    asked, indexed = question.decision_filter(), mark(tx, INDEXED)
    found: list[Archived] = []
    before: int | None = _NO_LIMIT
    steps = _step_sizes()
    while before is not None and len(found) <= limit:
        some, before = decisions_before(tx, before, indexed, next(steps), asked)
        found = some + found
    late = len({one.id >> ITEM_BITS for one in found})
    located_items, count = located_newest(tx, question.places)
    gaps = [item for (item,) in tx.fetch(Q["gaps"])]
    early = merge(sorted({*question.known, *gaps}, reverse=True), located_items, reverse=True)
    items = (item for item in _distinct(early) if item <= indexed)
    steps = _step_sizes()
    while len(found) <= limit and (step := list(islice(items, next(steps)))):
        found = decisions_of_items(tx, step, asked) + found
    page = sorted(found, key=lambda one: one.id)[-limit:]
    return Latest(
        found=with_batches(tx, page, dict.fromkeys(question.batch, key)),
        more=len(found) > limit,
        items=max(count, len(question.batch)) + late,
    )


def _distinct(items: Iterable[int]) -> Iterator[int]:
    seen: set[int] = set()
    for item in items:
        if item not in seen:
            seen.add(item)
            yield item


def decisions_of_billing_keys(tx: Tx, billing_keys: Collection[str]) -> dict[str, list[Archived]]:
    """The decisions on many billing keys at once, by key, in their order: those that billed it, and those that did not.

    An impression or click on the closure that was dropped is found too: it is why there is no fact.
    """
    wanted = frozenset(billing_keys)

    def meets(_: int, decision: Decision) -> bool:
        return not wanted.isdisjoint(_billing_keys(decision))

    closures = {key.rpartition("|")[0] for key in wanted}
    places = wanted.union(closures, map(keys.billable_fact_id, wanted))
    answer: dict[str, list[Archived]] = {}
    for one in _search(tx, locate_items(tx, places), DecisionFilter(meets=meets), 0, _NO_LIMIT):
        for key in wanted.intersection(_billing_keys(one.decision)):
            answer.setdefault(key, []).append(one)
    return answer


def _billing_keys(decision: Decision) -> set[str]:
    """The billing key of its fact, or of the one that an impression or click would have had."""
    billing, closure = billing_key_of(decision), decision.subject.closure
    found = {billing} if billing is not None else set[str]()
    if closure is not None and decision.subject.event_type in {"impression", "click"}:
        found.add(f"{closure}|billable_{decision.subject.event_type}")
    return found


def _is_of_item(decision: Decision) -> bool:
    """Whether it is about an event of the batch that it was decided in, and not taken later (F25)."""
    return decision.batch is None and decision.subject.index is not None


def _search(tx: Tx, items: Collection[int], asked: DecisionFilter, first: int, limit: int) -> list[Archived]:
    """Decisions of some items from one on, and of all that no run has reached; at most a step past the limit."""
    indexed = mark(tx, INDEXED)
    gaps = {item for (item,) in tx.fetch(Q["gaps"])}
    early = [item for item in gaps.union(items) if item <= indexed]
    found = _step_by_step(tx, early, asked, first, limit)
    item: int | None = max(indexed + 1, first)
    while item is not None and len(found) <= limit:
        some, item = decisions_from(tx, item, READ_BATCH_SIZE, asked)
        found += some
    return found


def _step_by_step(tx: Tx, items: Iterable[int], asked: DecisionFilter, first: int, limit: int) -> list[Archived]:
    """Decisions of some items from one on, at most a step past the limit."""
    wanted = iter(sorted(item for item in items if item >= first))
    found: list[Archived] = []
    for size in _step_sizes():
        step = list(islice(wanted, size))
        found += decisions_of_items(tx, step, asked) if step else []
        if not step or len(found) > limit:
            break
    return found


def _step_sizes() -> Iterator[int]:
    """How many items are read at a time: few at first, since each may have all that is asked for."""
    size = FIRST_BATCH_SIZE
    while True:
        yield size
        size = min(2 * size, READ_BATCH_SIZE)


def decisions_of_batch(
    tx: Tx, batch_id: str, event_id: str = "", only: Only = ANY, *, after: int = -1, limit: int = MAX_PAGE_DECISIONS
) -> Results:
    """What was decided about the events of a batch, or about one of them: those that follow a number, so many of them.

    An event that was dropped before for the same reason, in another batch, left its audit there (F20): of one event
    that is asked for by its id, that audit is found too. An id that an SDK gave to all of its batches finds many.
    """
    first = (after + 1) >> ITEM_BITS

    def asks_for(number: int, decision: Decision) -> bool:
        of_event = not event_id or decision.subject.event_id == event_id
        return number > after and of_event and only.met_by(decision)

    items = items_of_batch(tx, batch_id)
    of_item = DecisionFilter(
        meets=lambda number, one: asks_for(number, one) and _is_of_item(one), text=stored_text(event_id)
    )
    found = _step_by_step(tx, items, of_item, first, limit)
    later = DecisionFilter(
        meets=lambda number, one: asks_for(number, one) and one.batch == batch_id, text=stored_text(batch_id)
    )
    found += _search(tx, locate_items(tx, {LATER_IN_BATCH + batch_id}), later, first, limit)
    dropped_as = _dropped_as(tx, batch_id, event_id, only.app) if event_id else set[str]()
    if dropped_as:  # without any, no decision can be met, and what is not indexed need not be read
        sought = _Sought(*dropped_as)

        def is_drop(number: int, one: Decision) -> bool:
            return number > after and one.action == Action.DROP.value and only.met_by(one) and sought.met_by(one)

        texts = {stored_text(key) for key in dropped_as if key.startswith(f"{keys.DEDUP_VERSION}:")}
        of_dropped = DecisionFilter(meets=is_drop, text=texts.pop() if len(texts) == 1 else None)
        found += _search(tx, locate_items(tx, sought.keys), of_dropped, first, limit)
    answer = {one.id: one for one in found}
    page = [answer[number] for number in sorted(answer)[:limit]]
    return Results(
        found=with_batches(tx, page, dict.fromkeys(items, batch_id)),
        next=page[-1].id if len(answer) > limit else None,
    )


def _dropped_as(tx: Tx, batch_id: str, event_id: str, app: str) -> set[str]:
    """Sources that an event of a batch has by its dedup key, as far as the log still has the batch."""
    found: set[str] = set()
    for app_id, at, body in tx.fetch(Q["bodies_of_batch"], {"batch_id": batch_id, "limit": MAX_BODIES_READ}):
        events = read_batch(decompress_body(bytes(body)), at).events if app in {"", app_id} else []
        dedups = {event.dedup for event in events if event.sent_id == event_id}
        found.update(dedups)
        found.update(
            keys.server_event_key(dedup, cycle) for dedup in dedups for cycle in range(1, MAX_DEDUP_CYCLES + 1)
        )
    return found


def _stands_for(key: str) -> list[str]:
    """Keys of the index that another stands for: a billing key for its fact, dedup and attribution keys for sources."""
    fact = [keys.billable_fact_id(key)] if "|billable_" in key else []
    attribution, _, of_attribution = key.partition("|")
    dedup = of_attribution if attribution.startswith("attr_") else key
    if not dedup.startswith(f"{keys.DEDUP_VERSION}:"):
        return fact
    if dedup is not key:  # an attribution key carries its cycle
        return [*fact, f"fe_{keys.half(dedup).hex()}"]
    return [*fact, *(keys.server_event_key(dedup, cycle) for cycle in range(1, MAX_DEDUP_CYCLES + 1))]


def with_batches(tx: Tx, found: Sequence[Archived], known: Mapping[int, str] | None = None) -> list[Found]:
    """Decisions, each with the batch of its event as far as the log has it, or it is known."""
    rows: list[Row] = [(number,) for number in sorted({one.id >> ITEM_BITS for one in found})]
    batches = {**(known or {}), **dict(tx.fetch(Q["batch_ids"], rows=rows))}
    return [
        Found(
            archived=one,
            batch_id=batches.get(one.id >> ITEM_BITS) if _is_of_item(one.decision) else one.decision.batch or None,
        )
        for one in found
    ]
