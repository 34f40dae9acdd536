"""Decisions with all their results: the timeline of a key, of a batch, the newest, and lists of facts.

Everything is found by a key that the specification names (`key_index`); pages are in the order of decision and continue
after the number of their last row.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from patra.attribution.contract.event_types import KINDS
from patra.attribution.contract.keys import key_source
from patra.attribution.contract.versions import VERSIONS
from patra.attribution.decision.closure_rules import Action, Status
from patra.attribution.decision.decide import ITEM_BITS
from patra.attribution.decision.decisions import Decision, attribution_fact, audit, billable_fact
from patra.attribution.decision.output_records import Record, RecordType
from patra.attribution.intake.identity import FAILURE
from patra.attribution.queries.decision_steps import Answer, Step, answer_of, decision_steps
from patra.attribution.queries.rejects import RefusedView, RejectView, list_refused, rejects_of_decisions
from patra.attribution.storage.key_search import (
    ANY,
    MAX_PAGE_DECISIONS,
    Found,
    Only,
    decisions_of_batch,
    find,
    find_latest,
    with_batches,
)
from patra.attribution.storage.read import Archived, DecisionFilter, decisions_after, decisions_of_items
from patra.attribution.storage.sql import Q
from patra.kernel.clock import format_instant
from patra.kernel.db import Tx

_LAST_NUMBER = 2**62


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """Instants that decisions lie between: `since` included, `until` not; None: no bound."""

    since: int | None = None
    until: int | None = None


ALWAYS = Span()
What = Literal["billable", "attribution", "audits", "records"]


class MoveView(msgspec.Struct, frozen=True, kw_only=True):
    """A move of a record: why, when and under which version of the rules (§3.8.27)."""

    recordKey: str  # noqa: N815  names of the specification
    was: str
    recordStatus: str  # noqa: N815
    decisionReasonCode: str  # noqa: N815
    decidedAt: str  # noqa: N815
    ruleVersionSnapshot: str  # noqa: N815


class DecisionView(msgspec.Struct, frozen=True, kw_only=True):
    """One decision with all its results; `archiveCode`: why the archive lacks one of its records."""

    number: int
    batchId: str | None  # noqa: N815
    appId: str  # noqa: N815
    eventType: str  # noqa: N815
    """As sent, or `NA` where it was no type; `failure` is the processor's own."""
    answer: Answer
    audit: dict[str, Any]
    count: int
    keySource: str | None  # noqa: N815
    billable: dict[str, Any] | None
    attribution: dict[str, Any] | None
    detail: dict[str, str]
    records: list[dict[str, Any]]
    archiveCode: str | None = None  # noqa: N815
    moves: list[MoveView] = []
    rejects: list[RejectView] = []
    """The rejected events that it was decided on, each with the field that was wrong and what was expected."""
    steps: list[Step] = []
    """Of the events of a batch: the way of each through its checks, in their order."""


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """Decisions in their order; `next` is the number to go on after, if there are more.

    `refused` are envelopes of a batch of that id that were refused, the newest first: nothing was decided on them.
    """

    decisions: list[DecisionView]
    next: int | None = None
    refused: list[RefusedView] = []


def timeline(tx: Tx, key: str, only: Only = ANY, *, after: int = -1, limit: int = MAX_PAGE_DECISIONS) -> Timeline:
    """The decisions that carry a key, in the order of decision, page by page."""
    results = find(tx, key, only, after=after, limit=limit)
    unread = _refused_as(tx, key, only)
    return Timeline(decisions=_views(tx, results.found), next=results.next, refused=unread)


class LatestDecisions(msgspec.Struct, frozen=True, kw_only=True):
    """The latest decisions that carry a key, in their order; `more`: there are earlier ones, in about `items` batches.

    `refused` are envelopes of a batch of that id that were refused, the newest first: nothing was decided on them.
    """

    decisions: list[DecisionView]
    more: bool
    items: int
    refused: list[RefusedView]


def latest_decisions(
    tx: Tx, key: str, *, limit: int, known: Mapping[int, DecisionView] = MappingProxyType({})
) -> LatestDecisions:
    """The latest decisions that carry a key; how many others there are makes no difference to what it costs.

    `known` are those that the transaction has read already, by their numbers.
    """
    latest = find_latest(tx, key, limit=limit)
    return LatestDecisions(
        decisions=_views(tx, latest.found, known),
        more=latest.more,
        items=latest.items,
        refused=_refused_as(tx, key, ANY),
    )


def events_of_batch(
    tx: Tx, batch_id: str, event_id: str = "", only: Only = ANY, *, after: int = -1, limit: int = MAX_PAGE_DECISIONS
) -> Timeline:
    """What was decided about the events of a batch, or about one of them (§3.8.8), page by page."""
    results = decisions_of_batch(tx, batch_id, event_id, only, after=after, limit=limit)
    views = [_with_steps(view, one) for view, one in zip(_views(tx, results.found), results.found, strict=True)]
    return Timeline(decisions=views, next=results.next, refused=_refused_as(tx, batch_id, only))


def _with_steps(view: DecisionView, found: Found) -> DecisionView:
    one = found.archived
    steps = decision_steps(one.decision, one.records, view.rejects, found.batch_id, one.settled_code)
    return msgspec.structs.replace(view, steps=steps)


MAX_REFUSED_BATCHES = 100


def _refused_as(tx: Tx, batch_id: str, only: Only) -> list[RefusedView]:
    """Refused batches of an id; whose they are is not known, and without an id none is asked for."""
    return (
        list_refused(tx, batch_id=batch_id, code=only.code, limit=MAX_REFUSED_BATCHES)
        if batch_id and not only.app
        else []
    )


def _views(
    tx: Tx, found: Sequence[Found], known: Mapping[int, DecisionView] = MappingProxyType({})
) -> list[DecisionView]:
    unknown = [one.archived for one in found if one.archived.id not in known]
    rejected = rejects_of_decisions(tx, [one.id for one in unknown if one.decision.action == Action.DROP.value])
    return [
        known.get(one.archived.id) or _view(one.archived, one.batch_id, rejected.get(one.archived.id, []))
        for one in found
    ]


def _moves(archived: Archived, record: Record) -> list[MoveView]:
    """Every move of a record: those of the journal, and before them its birth or plain arrival, which leaves no row."""
    journalled = archived.moves.get(record.key, [])
    found = [
        MoveView(
            recordKey=move.subject,
            was=move.was,
            recordStatus=move.to,
            decisionReasonCode=move.reason,
            decidedAt=format_instant(move.at),
            ruleVersionSnapshot=move.rule_version,
        )
        for move in journalled
    ]
    if record.status is Status.NEW or any(move.was == Status.NEW.value for move in journalled):
        return found
    first = Status.COMMITTED if record.status is Status.SUPERSEDED else record.status
    arrived = archived.decision.at if archived.in_store or first is not Status.COMMITTED else archived.settled_at
    plain = MoveView(
        recordKey=record.key,
        was=Status.NEW.value,
        recordStatus=first.value,
        decisionReasonCode=archived.decision.reason,
        decidedAt=format_instant(archived.decision.at if arrived is None else arrived),
        ruleVersionSnapshot=VERSIONS[archived.decision.versions].archiveContractVersion,
    )
    return [plain, *found]


def _view(archived: Archived, batch_id: str | None, rejects: list[RejectView]) -> DecisionView:
    decision, records = archived.decision, archived.records
    fact = attribution_fact(decision)
    return DecisionView(
        number=archived.id,
        batchId=batch_id,
        appId=decision.subject.app,
        eventType=decision.subject.event_type,
        answer=answer_of(decision),
        audit=audit(decision),
        count=archived.count,
        keySource=key_source(decision.subject.dedup) if decision.subject.dedup else None,
        billable=billable_fact(decision),
        attribution={**fact, "recordStatus": archived.last_status(RecordType.ATTRIBUTION)} if fact else None,
        detail=_detail(archived),
        records=[record.body for record in records],
        archiveCode=archived.settled_code,
        moves=[move for record in records for move in _moves(archived, record)],
        rejects=rejects,
    )


def page_of_decisions(tx: Tx, after: int, limit: int) -> Timeline:
    found = decisions_after(tx, after, limit)
    following = found[-1].id if len(found) == limit else None
    return Timeline(decisions=_views(tx, with_batches(tx, found)), next=following)


NEWEST_ITEMS = 20
"""Items of the log that a page of the newest decisions looks at in one step, at most: the first step looks at one."""


def first_item_from(tx: Tx, at: int) -> int:
    """The first item of the log that was decided at an instant or later: items are numbered as time goes by.

    Found by halving, so that it needs no index of its own; where the clock was set back, it is near.
    """
    low, high = 0, tx.fetch(Q["last_item"])[0][0] + 1
    while low < high:
        middle = (low + high) // 2
        found = tx.fetch(Q["item_at_or_after"], {"item": middle})
        if not found or found[0][1] >= at:
            high = middle
        else:
            low = found[0][0] + 1
    return low


def newest_decisions(
    tx: Tx,
    meets: Callable[[int, Decision], bool],
    *,
    before: int = _LAST_NUMBER,
    limit: int,
    steps: int = 10,
    span: Span = ALWAYS,
) -> Timeline:
    """The latest decisions first, those that meet what is asked for; `next` is the number to go on before.

    A page looks at a bounded part of the log: it may hold fewer than `limit`, and `next` says that there is more.
    """
    found: list[Archived] = []
    if span.until is not None:
        before = min(before, first_item_from(tx, span.until) << ITEM_BITS)
    lowest = 0 if span.since is None else first_item_from(tx, span.since)
    item = (before - 1 >> ITEM_BITS) + 1
    left, size = steps * NEWEST_ITEMS, 1
    while left > 0:
        asked_items = {"before": item, "limit": min(size, left)}
        items = [number for (number,) in tx.fetch(Q["items_before"], asked_items) if number >= lowest]
        if not items:
            return Timeline(decisions=_newest_views(tx, found))
        item, left, size = items[-1], left - len(items), min(2 * size, NEWEST_ITEMS)
        asked = DecisionFilter(meets=lambda number, decision: number < before and meets(number, decision))
        page = decisions_of_items(tx, items, asked)
        found += sorted(page, key=lambda one: -one.id)
        if len(found) >= limit:
            found = found[:limit]
            return Timeline(decisions=_newest_views(tx, found), next=found[-1].id)
    return Timeline(decisions=_newest_views(tx, found), next=item << ITEM_BITS)


def _newest_views(tx: Tx, found: Sequence[Archived]) -> list[DecisionView]:
    views = _views(tx, with_batches(tx, sorted(found, key=lambda one: one.id)))
    return views[::-1]


def listing(
    tx: Tx, what: What, *, key: str = "", only: Only = ANY, after: int = -1, limit: int = MAX_PAGE_DECISIONS
) -> tuple[list[dict[str, Any]], int | None]:
    """Facts, audits or records in the order of decision, of a key, an app, or all; and where the next page begins.

    A page looks at `limit` decisions, so it may hold fewer lines, or more.
    """
    if key or only.app:
        results = find(tx, key or only.app, only, after=after, limit=limit)
        found, following = [one.archived for one in results.found], results.next
    else:
        found = decisions_after(tx, after, limit)
        following = found[-1].id if len(found) == limit else None
    return [line for one in found for line in _lines(one, what)], following


def _lines(one: Archived, what: What) -> list[dict[str, Any]]:
    match what:
        case "audits":
            return [{**audit(one.decision), "count": one.count}]
        case "records":
            return [record.body for record in one.records]
        case "billable":
            fact, status = billable_fact(one.decision), one.last_status(RecordType.BILLABLE)
        case "attribution":
            fact, status = attribution_fact(one.decision), one.last_status(RecordType.ATTRIBUTION)
    return [{**fact, "recordStatus": status}] if fact else []


def _detail(archived: Archived) -> dict[str, str]:
    """The fields of the event's type, sub-enums in their canonical form."""
    decision = archived.decision
    kind = KINDS.get("error" if decision.subject.event_type == FAILURE else decision.subject.event_type)
    return dict(zip(kind.fields, decision.values, strict=False)) if kind else {}
