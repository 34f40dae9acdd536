"""What attribution knows about a key: batches, decisions, closures, facts, records (§3.8)."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from patra.app.story import attribution_pending, keys, statements
from patra.app.story.attribution_keys import closure_of, kinds_of, published_as, related_keys
from patra.app.story.model import Candidate, Engine, Entry, Lookup, Related, Shape
from patra.attribution.contract.reasons import Reason
from patra.attribution.decision.closure_rules import Action
from patra.attribution.queries import (
    ClosureView,
    DecisionView,
    RefusedView,
    RejectView,
    closures_by_key,
    events_of_batch,
    latest_decisions,
)
from patra.attribution.settlement.statement_store import statements_of_facts
from patra.kernel.clock import parse_instant
from patra.kernel.db import Tx

SAMPLE_DECISIONS = 40
"""Decisions that are read first: if there are more, they show whether the key is that of many different events."""
MAX_DECISIONS = 100
"""Decisions of one story, the latest: each has an audit and up to three records."""
MAX_EVENTS = 20
"""Events with one `eventId` that are offered, and beyond which it is taken for that of different ones."""
MAX_CLOSURES = 50
"""Closures that are shown with their state and deadlines; the others are named by their keys."""
_ACTIONS = {
    Action.BOTH: "was billed and attributed",
    Action.BILLABLE: "was billed",
    Action.ATTRIBUTION: "was attributed, not billed",
    Action.DROP: "was not counted",
}
_TEXTS = {reason.value: reason.text for reason in Reason}
_PARAGRAPHS = {
    "f_batch_": "ruling-f11",
    "f_accepted": "ruling-f8",
    "f_idempotency_": "f-3-8-12",
    "f_event_": "ruling-f2",
    "f_dedup_": "ruling-f9",
    "f_closure_": "ruling-f23",
    "f_terminal_timeout_": "f-3-8-19",
    "f_terminal_": "f-3-8-18",
    "f_billing_": "f-3-8-24",
    "f_postback_": "ruling-f18",
    "f_output_": "f-3-8-29",
    "g_archive_": "f-3-8-29",
}
"""Paragraphs by the beginning of a reason code; the first that fits counts."""


class _Pages(msgspec.Struct, frozen=True, kw_only=True):
    """What was read for a key."""

    decisions: dict[int, DecisionView]
    in_batch: set[int]
    """Those of one event of a batch, where the key is `batchId/eventId`."""
    refused: list[RefusedView]
    complete: bool
    items: int
    """In about how many batches the key occurs, where not everything was read."""


def look_up(tx: Tx, key: str, kinds: Sequence[str], limit: int) -> Lookup:
    """The decisions that carry a key under one of some kinds, with their closures, facts and records.

    Of very many the latest are read. An id that very many events have is that of each of them: they are candidates.
    """
    wanted = set(kinds)
    pages = _read(tx, key, wanted, min(limit, SAMPLE_DECISIONS), {})
    if not pages.complete:
        if different := _different_events(pages, key, wanted):
            return _one_of_many(key, kinds, different, pages.items)
        pages = _read(tx, key, wanted, min(limit, MAX_DECISIONS), pages.decisions)
    decisions = pages.decisions
    of_kind = _by_kind(list(decisions.values()), key, wanted)
    if pages.in_batch:
        of_kind = {"attribution.event": pages.in_batch, **of_kind}
    refused = pages.refused
    if refused and "attribution.batchId" not in of_kind:
        of_kind["attribution.batchId"] = set()
    meant = {number for numbers in of_kind.values() for number in numbers}
    shown = [one for number, one in sorted(decisions.items()) if number in meant]
    closures = closures_by_key(tx, dict.fromkeys(k for one in shown if (k := closure_of(one)) is not None))
    if not shown and "attribution.closureKey" in wanted:
        closures = closures_by_key(tx, [key])  # what was decided on it may have been purged
        of_kind |= {"attribution.closureKey": set()} if closures else {}
    return Lookup(
        kinds=list(kinds),
        candidates=[_candidate(kind, key, numbers, decisions, refused) for kind, numbers in of_kind.items()],
        entries=[
            *_batches(shown),
            *(_refusal(one) for one in refused),
            *(entry for one in shown for entry in _decision(one)),
            *(_opening_entry(one) for one in closures[:MAX_CLOSURES]),
            *(statements.closing_entry(one) for one in statements_of_facts(tx, [one.number for one in shown])),
        ],
        pending=[pending for one in closures for pending in attribution_pending.due(one)]
        + [p for one in shown for p in attribution_pending.pending_deliveries(one)],
        follow=[related for one in shown for related in published_as(one)],
        complete=pages.complete,
        advice=[] if pages.complete else [_all_of(key, f"The latest {len(decisions)} decisions are read", pages.items)],
    )


def _read(tx: Tx, key: str, wanted: set[str], limit: int, known: Mapping[int, DecisionView]) -> _Pages:
    batches = [events_of_batch(tx, *one, limit=limit) for one in keys.event_in_batch(key)]
    batches = batches if "attribution.event" in wanted else []
    in_batch = {one.number: one for page in batches for one in page.decisions}
    refused = [one for page in batches for one in page.refused]
    if not wanted - {"attribution.event"}:
        complete = all(page.next is None for page in batches)
        return _Pages(decisions=in_batch, in_batch=set(in_batch), refused=_once(refused), complete=complete, items=0)
    latest = latest_decisions(tx, key, limit=limit, known=known)
    return _Pages(
        decisions=in_batch | {one.number: one for one in latest.decisions},
        in_batch=set(in_batch),
        refused=_once([*refused, *latest.refused]) if wanted & {"attribution.batchId", "attribution.event"} else [],
        complete=not latest.more and all(page.next is None for page in batches),
        items=latest.items,
    )


def _once(refused: Sequence[RefusedView]) -> list[RefusedView]:
    return list({one.number: one for one in refused}.values())


def _different_events(pages: _Pages, key: str, wanted: set[str]) -> list[DecisionView]:
    """One decision of each batch, if the key is the `eventId` of different events in many batches and nothing else.

    An event is offered by its batch and its `eventId`: events of one batch with one `eventId` cannot be told apart.
    """
    decisions = [one for _, one in sorted(pages.decisions.items(), reverse=True)]
    if pages.in_batch or set(_by_kind(decisions, key, wanted)) != {"attribution.eventId"}:
        return []
    events = {one.records[0]["sourceKeys"]["sourceEventId"]: one for one in decisions if one.batchId}
    batches = {one.batchId: one for one in events.values()}
    return list(batches.values())[:MAX_EVENTS] if len(batches) > MAX_EVENTS else []


def _one_of_many(key: str, kinds: Sequence[str], different: Sequence[DecisionView], items: int) -> Lookup:
    return Lookup(
        kinds=list(kinds),
        candidates=[
            Candidate(
                engine=Engine.ATTRIBUTION,
                kind="attribution.event",
                key=f"{one.batchId}/{key}",
                label=f"{one.attribution['eventType'] if one.attribution else 'event'} of app {one.appId}, "
                f"{one.audit['decidedAt'][:19]}Z, {_ACTIONS[Action(one.audit['decisionAction'])]} "
                f"({one.audit['decisionReasonCode']})",
            )
            for one in different
        ],
        complete=False,
        advice=[_all_of(key, f"These are the latest {len(different)} events with this eventId", items)],
    )


def _all_of(key: str, shown: str, items: int) -> str:
    many = f"about {items:,} batches have it" if items else "there are more"
    return f"{shown}; {many}. All of them, page by page: `patra attribution find {shlex.quote(key)}`"


def _by_kind(found: Sequence[DecisionView], key: str, wanted: set[str]) -> dict[str, set[int]]:
    """Under which kinds the decisions carry the key."""
    of_kind: dict[str, set[int]] = {}
    for one in found:
        for kind in kinds_of(one, key):
            if kind in wanted:
                of_kind.setdefault(kind, set()).add(one.number)
    return {kind: of_kind[kind] for kind in keys.KINDS if kind in of_kind}


def _candidate(
    kind: str, key: str, numbers: set[int], decisions: dict[int, DecisionView], refused: Sequence[RefusedView]
) -> Candidate:
    name = kind.partition(".")[2]
    types = sorted({one.attribution["eventType"] for n in numbers if (one := decisions[n]).attribution})
    label = f"{name} of {len(numbers)} decisions" + (f" on {', '.join(types)}" if types else "")
    if refused and not numbers:
        label = f"{name} of {len(refused)} refused batches"
    subject = f"attribution:{','.join(map(str, sorted(numbers)))}" if numbers else f"attribution:{kind}"
    count = len(numbers) or len(refused) or 1
    return Candidate(engine=Engine.ATTRIBUTION, kind=kind, key=key, label=label, count=count, subject=subject)


def _batches(found: Sequence[DecisionView]) -> list[Entry]:
    """The batches in which the events came, each once."""
    first: dict[tuple[str, str], DecisionView] = {}
    for one in found:
        if one.batchId:
            first.setdefault((one.batchId, one.audit["decidedAt"]), one)
    return [
        Entry(
            id=f"attribution.batch.{one.number}",
            at=_at(at),
            engine=Engine.ATTRIBUTION,
            shape=Shape.IN,
            what="batch_received",
            text=f"Batch {batch} of app {one.appId} was received.",
            state="received",
            paragraph="f-3-8-8",
            related=[
                Related(relation="came in with", kind="attribution.batchId", key=batch),
                Related(relation="app", kind="attribution.appId", key=one.appId),
            ],
        )
        for (batch, at), one in first.items()
    ]


def _refusal(one: RefusedView) -> Entry:
    batch = [Related(relation="came in with", kind="attribution.batchId", key=one.batchId)] if one.batchId else []
    return Entry(
        id=f"attribution.refused.{one.number}",
        at=_at(one.receivedAt),
        engine=Engine.ATTRIBUTION,
        shape=Shape.IN,
        what="batch_refused",
        text="A batch was refused as a whole; its events were not looked at.",
        state="refused",
        code=one.code,
        code_text=_TEXTS.get(one.code, ""),
        paragraph=_paragraph(one.code),
        related=batch,
    )


def _decision(one: DecisionView) -> list[Entry]:
    audit, related, at = one.audit, related_keys(one), _at(one.audit["decidedAt"])
    code, event = str(audit["decisionReasonCode"]), one.records[0]["sourceKeys"]["eventId"]
    times = f", {one.count} times" if one.count > 1 else ""
    who = "A deadline passed" if one.batchId is None and code.startswith("f_terminal_timeout") else f"Event {event}"
    found = [
        Entry(
            id=f"attribution.decision.{one.number}",
            at=at,
            engine=Engine.ATTRIBUTION,
            shape=Shape.RULE,
            what="event_decided",
            text=f"{who} of app {one.appId} {_ACTIONS[Action(audit['decisionAction'])]}{times}: "
            f"{_wrong(one) or _TEXTS.get(code, code)}.",
            state=str(audit["decisionAction"]),
            code=code,
            code_text=_TEXTS.get(code, ""),
            cause=_wrong(one),
            rule_version=str(audit["mappingRuleVersion"]),
            paragraph=_paragraph(code),
            detail={"audit": audit, "fields": one.detail, "keySource": one.keySource, "count": one.count}
            | ({"rejects": [_reject_detail(reject) for reject in one.rejects]} if one.rejects else {}),
            related=related,
        )
    ]
    found += [_record(one, record, at) for record in one.records]
    types = {record["recordKey"]: str(record["recordType"]).replace("_", " ") for record in one.records}
    for number, move in enumerate(one.moves):
        found.append(
            Entry(
                id=f"attribution.move.{one.number}.{number}",
                at=_at(move.decidedAt),
                engine=Engine.ATTRIBUTION,
                shape=Shape.WRITTEN,
                what="record_moved",
                text=f"The record of the {types.get(move.recordKey, 'decision')} went from {move.was} to "
                f"{move.recordStatus}.",
                state=move.recordStatus,
                code=move.decisionReasonCode,
                code_text=_TEXTS.get(move.decisionReasonCode, ""),
                rule_version=move.ruleVersionSnapshot,
                paragraph="f-3-8-27",
                related=[Related(relation="record", kind="attribution.recordKey", key=move.recordKey)],
            )
        )
    return found


def _wrong(one: DecisionView) -> str:
    """What was wrong with a rejected event, in words; of several that were rejected for one reason, the first.

    The text of the code names every cause that it is given for; this is the one that applied.
    """
    reject = next((reject for reject in one.rejects if reject.fieldPath), None)
    if reject is None:
        return ""
    where = "the event" if reject.fieldPath == "$" else reject.fieldPath
    also = f"; also wrong: {reject.alsoWrong}" if reject.alsoWrong else ""
    return f"{where} was expected to be {reject.expected}{also}"


def _reject_detail(reject: RejectView) -> dict[str, Any]:
    return {
        "batchId": reject.batchId,
        "eventIndex": reject.eventIndex,
        "eventId": reject.eventId,
        "fieldPath": reject.fieldPath,
        "expected": reject.expected,
        "alsoWrong": reject.alsoWrong,
        "count": reject.count,
    }


_FACTS = {
    "decision_audit": ("decision_audit_recorded", "The decision's audit was recorded", "f-3-8-22"),
    "billable_fact": ("billable_fact_recorded", "A billable fact was recorded", "f-3-8-24"),
    "attribution_fact": ("attribution_fact_recorded", "An attribution fact was recorded", "f-3-8-21"),
}


def _record(one: DecisionView, record: dict[str, Any], at: int) -> Entry:
    """A record with the fact or audit that it carries."""
    kind = str(record["recordType"])
    what, text, paragraph = _FACTS[kind]
    fact = {"billable_fact": one.billable, "attribution_fact": one.attribution}.get(kind)
    names = {"billable_fact": ("billingKey", "billed as"), "attribution_fact": ("attributionKey", "attributed as")}
    related = [Related(relation="record", kind="attribution.recordKey", key=record["recordKey"])]
    if fact is not None:
        name, relation = names[kind]
        related.append(Related(relation="fact", kind="attribution.factId", key=fact["factId"]))
        related.append(Related(relation=relation, kind=f"attribution.{name}", key=fact[name]))
        text += f": {fact.get('billableType') or fact.get('attributionType')}"
    for name in ("conflictWithRecordKey", "supersededRecordKey"):
        if other := record.get(name):
            relation = "conflicts with" if name.startswith("conflict") else "supersedes"
            related.append(Related(relation=relation, kind="attribution.recordKey", key=other))
    source = record["sourceKeys"]["sourceEventId"]
    related.append(Related(relation="event", kind="attribution.sourceEventId", key=source))
    return Entry(
        id=f"attribution.record.{one.number}.{kind}",
        at=at,
        engine=Engine.ATTRIBUTION,
        shape=Shape.WRITTEN,
        what=what,
        text=f"{text}; its record is {record['recordStatus']}.",
        state=str(record["recordStatus"]),
        code=one.archiveCode or "",
        code_text=_TEXTS.get(one.archiveCode or "", ""),
        rule_version=str(record["versionAnchors"]["archiveContractVersion"]),
        paragraph=paragraph,
        detail={"record": record, "fact": fact or one.audit},
        related=related,
    )


def _opening_entry(one: ClosureView) -> Entry:
    ended = f"; its state is now {one.state}" + (f", set by {one.terminalSource}" if one.terminalSource else "")
    return Entry(
        id=f"attribution.closure.{one.closureKey}",
        at=_at(one.openedAt),
        engine=Engine.ATTRIBUTION,
        shape=Shape.WRITTEN,
        what="closure_opened",
        text=f"Closure {one.closureKey} was opened{ended}.",
        state=one.state,
        paragraph="f-3-8-17",
        detail={"terminalSource": one.terminalSource, "click": one.click, "nextDeadline": one.nextDeadline},
        related=[Related(relation="closure", kind="attribution.closureKey", key=one.closureKey)],
    )


def _paragraph(code: str) -> str:
    return next((anchor for begins, anchor in _PARAGRAPHS.items() if code.startswith(begins)), "")


def _at(text: str) -> int:
    at = parse_instant(text)
    if at is None:
        raise AssertionError(f"{text!r} is an instant that attribution wrote")
    return at
