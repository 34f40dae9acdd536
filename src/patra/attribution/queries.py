"""Questions of people and other systems go in; closures, rejects, timelines and aggregate states come out.

Everything is found by a key that the specification names (`locate`); pages are in the order of decision and continue
after the number of their last row.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Literal

import msgspec

from patra.attribution.closure import BILLABLE_IMPRESSION, C, Closure, Status
from patra.attribution.contract import KINDS
from patra.attribution.facts import attribution_fact, audit, billable_fact
from patra.attribution.keys import key_source
from patra.attribution.locate import ANY, MOST_FOUND, Found, Only, decisions_of_batch, find, with_batches
from patra.attribution.reading import Archived, closures_after, decisions_after, place_of, untold
from patra.attribution.reasons import R
from patra.attribution.statements import Q
from patra.attribution.store import closure_of
from patra.attribution.subject import FAILURE
from patra.kernel.canonical import key16
from patra.kernel.clock import format_instant, parse_instant
from patra.kernel.db import Tx
from patra.kernel.machine import history


class Aggregate(StrEnum):
    """How far the records of one closure have come in the archive (§3.8.29.4)."""

    COMMITTED = "consistent_committed"
    NON_BILLABLE = "consistent_non_billable"
    PENDING = "partial_pending"
    TIMEOUT = "partial_timeout"


What = Literal["billable", "attribution", "audits", "records"]


class ClosureView(msgspec.Struct, frozen=True, kw_only=True):
    """A closure for people: where it stands, what ended it, its click, its records as a whole."""

    closureKey: str  # noqa: N815  names of the specification
    appId: str  # noqa: N815
    state: str
    terminalSource: str | None  # noqa: N815
    openedAt: str  # noqa: N815
    nextDeadline: str | None  # noqa: N815
    click: str | None
    aggregate: str | msgspec.UnsetType | None = msgspec.UNSET
    """Of one closure, not of a list; None once what was decided about it has been purged."""


class RejectView(msgspec.Struct, frozen=True, kw_only=True):
    """A rejected event: never its payload, unless it is in quarantine."""

    at: str
    appId: str  # noqa: N815
    batchId: str  # noqa: N815
    eventIndex: int  # noqa: N815
    ackReasonCode: str  # noqa: N815
    serverEventKey: str  # noqa: N815
    digest: str
    count: int
    raw: msgspec.Raw | None = None


class MoveView(msgspec.Struct, frozen=True, kw_only=True):
    """A move of a record that was not its plain arrival in the archive (§3.8.27)."""

    recordKey: str  # noqa: N815  names of the specification
    was: str
    recordStatus: str  # noqa: N815
    decisionReasonCode: str  # noqa: N815
    decidedAt: str  # noqa: N815
    ruleVersionSnapshot: str  # noqa: N815


class DecisionView(msgspec.Struct, frozen=True, kw_only=True):
    """One decision with everything that came of it; `archiveCode`: why the archive lacks one of its records."""

    number: int
    batchId: str | None  # noqa: N815
    appId: str  # noqa: N815
    audit: dict[str, Any]
    count: int
    keySource: str | None  # noqa: N815
    billable: dict[str, Any] | None
    attribution: dict[str, Any] | None
    detail: dict[str, str]
    records: list[dict[str, Any]]
    archiveCode: str | None = None  # noqa: N815
    moves: list[MoveView] = []


class RefusedView(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that was refused as a whole (F11); its events were not looked at."""

    number: int
    receivedAt: str  # noqa: N815
    batchId: str | None  # noqa: N815
    code: str


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """Decisions in their order; `next` is the number to go on after, if there are more.

    `refused` are envelopes of a batch of that id that were refused, the newest first: nothing was decided on them.
    """

    decisions: list[DecisionView]
    next: int | None = None
    refused: list[RefusedView] = []


def timeline(tx: Tx, key: str, only: Only = ANY, *, after: int = -1, limit: int = MOST_FOUND) -> Timeline:
    """The decisions that carry a key, in the order of decision, page by page."""
    results = find(tx, key, only, after=after, limit=limit)
    unread = _refused_as(tx, key, only)
    return Timeline(decisions=_views(tx, results.found), next=results.next, refused=unread)


def events_of_batch(
    tx: Tx, batch_id: str, event_id: str = "", only: Only = ANY, *, after: int = -1, limit: int = MOST_FOUND
) -> Timeline:
    """What was decided about the events of a batch, or about one of them (§3.8.8), page by page."""
    results = decisions_of_batch(tx, batch_id, event_id, only, after=after, limit=limit)
    return Timeline(decisions=_views(tx, results.found), next=results.next, refused=_refused_as(tx, batch_id, only))


MOST_REFUSED = 100


def _refused_as(tx: Tx, batch_id: str, only: Only) -> list[RefusedView]:
    """Refused batches of an id; whose they are is not known, and without an id none is asked for."""
    return refused(tx, batch_id=batch_id, code=only.code, limit=MOST_REFUSED) if batch_id and not only.app else []


def refused(tx: Tx, *, batch_id: str = "", code: str = "", before: int = 2**62, limit: int) -> list[RefusedView]:
    """Batches that were refused as a whole, as far as the log reaches, the newest first; `before` is a number."""
    if "\x00" in batch_id or "\x00" in code:
        return []
    name = "refused_by_batch" if batch_id else "refused_page"
    asked = {"code": code, "before": before, "limit": limit} | ({"batch_id": batch_id} if batch_id else {})
    return [
        RefusedView(number=number, receivedAt=format_instant(at), batchId=batch, code=reason)
        for number, at, batch, reason in tx.fetch(Q[name], asked)
    ]


def _views(tx: Tx, found: Sequence[Found]) -> list[DecisionView]:
    moves = _moves(tx, [one.archived for one in found])
    return [_view(one.archived, one.batch_id, moves) for one in found]


def _moves(tx: Tx, found: Sequence[Archived]) -> dict[str, list[MoveView]]:
    """The moves that the journal tells of, by record; a plain arrival leaves none."""
    told = [one for one in found if one.settled_code or one.statuses.attribution is Status.SUPERSEDED]
    moves: dict[str, list[MoveView]] = {}
    for move in history(tx, [record.key for one in told for record in one.records]) if told else ():
        view = MoveView(
            recordKey=move.subject,
            was=move.was,
            recordStatus=move.to,
            decisionReasonCode=move.reason,
            decidedAt=format_instant(move.at),
            ruleVersionSnapshot=move.rule_version,
        )
        moves.setdefault(move.subject, []).append(view)
    return moves


def _view(archived: Archived, batch_id: str | None, moves: Mapping[str, Sequence[MoveView]]) -> DecisionView:
    decision, records = archived.decision, archived.records
    fact = attribution_fact(decision)
    return DecisionView(
        number=archived.id,
        batchId=batch_id,
        appId=decision.subject.app,
        audit=audit(decision),
        count=archived.count,
        keySource=key_source(decision.subject.dedup) if decision.subject.dedup else None,
        billable=billable_fact(decision),
        attribution={**fact, "recordStatus": archived.statuses.attribution} if fact else None,
        detail=_detail(archived),
        records=[record.body for record in records],
        archiveCode=archived.settled_code,
        moves=[move for record in records for move in moves.get(record.key, ())],
    )


def page_of_decisions(tx: Tx, after: int, limit: int) -> Timeline:
    found = decisions_after(tx, after, limit)
    following = found[-1].id if len(found) == limit else None
    return Timeline(decisions=_views(tx, with_batches(tx, found)), next=following)


def listing(
    tx: Tx, what: What, *, key: str = "", only: Only = ANY, after: int = -1, limit: int = MOST_FOUND
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
            fact, status = billable_fact(one.decision), one.statuses.billable
        case "attribution":
            fact, status = attribution_fact(one.decision), one.statuses.attribution
    return [{**fact, "recordStatus": status}] if fact else []


def closure_by_key(tx: Tx, closure_key: str) -> ClosureView | None:
    """One closure with its aggregate state, as far as that can be known; None where there is no closure."""
    rows = tx.fetch(Q["closure_by_key"], {"key": key16(closure_key)})
    if not rows:
        return None
    closure, found = closure_of(rows[0]), _of_closure(tx, closure_key)
    underway = bool(untold(tx, [one.archived for one in found]))
    complete = bool(found) if closure.state is not C.CLOSED_SUCCESS else _billing(found)
    return msgspec.structs.replace(_closure_view(closure), aggregate=aggregate(found, underway) if complete else None)


def _billing(found: Sequence[Found]) -> bool:
    """Whether the impression is among the decisions: if a closure has succeeded without one, it was purged."""
    return any(one.archived.decision.billable == BILLABLE_IMPRESSION for one in found)


def _of_closure(tx: Tx, closure_key: str) -> list[Found]:
    """Every decision on a closure; another key that happens to be the same text is not asked for."""
    found: list[Found] = []
    after: int | None = -1
    while after is not None:
        page = find(tx, closure_key, after=after)
        found += [one for one in page.found if one.archived.decision.subject.closure == closure_key]
        after = page.next
    return found


def closures(tx: Tx, *, state: str | None, after: bytes, limit: int) -> list[tuple[bytes, ClosureView]]:
    """Closures that follow a place, each with its own, of one state or of any."""
    return [(place_of(one), _closure_view(one)) for one in closures_after(tx, after, limit, state or "")]


def aggregate(found: Sequence[Found], underway: bool = False) -> Aggregate:
    """The aggregate state of all records of one closure; `underway`: that one was superseded is yet to be told."""
    records = [record for one in found for record in one.archived.records]
    codes = {one.archived.settled_code for one in found}
    if R.COMPENSATION_EXHAUSTED.value in codes:
        return Aggregate.TIMEOUT
    if underway or any(record.status is Status.NEW for record in records):
        return Aggregate.PENDING
    billed = any(one.archived.statuses.billable is Status.COMMITTED for one in found)
    return Aggregate.COMMITTED if billed else Aggregate.NON_BILLABLE


class RejectsPage(msgspec.Struct, frozen=True, kw_only=True):
    """Rejected events, the newest first; `next` stands for the last of them where there may be more."""

    rejects: list[RejectView]
    next: str | None


_AFTER_ALL = b"\xff" * 17
"""After every key: what was received at an instant itself is not before it."""
LAST_PLACE = (2**62, _AFTER_ALL)


def rejects(
    tx: Tx,
    *,
    batch_id: str | None = None,
    code: str | None = None,
    quarantined: bool = False,
    before: tuple[int, bytes] = LAST_PLACE,
    limit: int,
) -> RejectsPage:
    """Rejected events, with their payload where they are in quarantine; `before` is an instant and a place in it."""
    params = {
        "batch_id": batch_id or "",
        "code": code or "",
        "quarantined": int(quarantined),
        "before": before[0],
        "after": before[1],
        "limit": limit,
    }
    rows = tx.fetch(Q["rejects_page"], params)
    found = [
        RejectView(
            at=format_instant(at),
            appId=app_id,
            batchId=batch,
            eventIndex=index,
            ackReasonCode=reason,
            serverEventKey=source,
            digest=digest,
            count=count,
            raw=msgspec.Raw(bytes(raw)) if raw is not None else None,
        )
        for _, at, app_id, batch, index, reason, source, digest, raw, count in rows
    ]
    following = f"{format_instant(rows[-1][1])}~{bytes(rows[-1][0]).hex()}" if len(rows) == limit else None
    return RejectsPage(rejects=found, next=following)


def reject_place(text: str) -> tuple[int, bytes] | None:
    """Where a page of rejects begins: before an instant, or after what `next` of a page stands for; None if neither."""
    instant, _, key = text.partition("~")
    at = parse_instant(instant)
    try:
        return None if at is None else (at, bytes.fromhex(key) if key else _AFTER_ALL)
    except ValueError:
        return None


def _closure_view(closure: Closure) -> ClosureView:
    due = closure.next_due
    return ClosureView(
        closureKey=closure.closure,
        appId=closure.app,
        state=closure.state.value,
        terminalSource=closure.source.value if closure.source else None,
        openedAt=format_instant(closure.opened_at),
        nextDeadline=format_instant(due) if due is not None else None,
        click=closure.click.value if closure.click else None,
    )


def _detail(archived: Archived) -> dict[str, str]:
    """The fields of the event's type, sub-enums in their canonical form."""
    decision = archived.decision
    kind = KINDS.get("error" if decision.subject.event_type == FAILURE else decision.subject.event_type)
    return dict(zip(kind.fields, decision.values, strict=False)) if kind else {}
