"""The keys of a decision, by the names that the specification gives them, and what each leads to (§3.8)."""

from typing import Any

from patra.app.story.model import Related
from patra.attribution.queries import DecisionView

NA = "NA"


def kinds_of(one: DecisionView, key: str) -> list[str]:
    named = [(kind, value) for kind, value in decision_keys(one) if value == key]
    found = [f"attribution.{kind}" for kind, _ in named]
    dedup = relation_key(one, "canonicalDedupKey")
    if dedup is not None and dedup.startswith(f"{key}#"):  # a later cycle of the key
        found.append("attribution.canonicalDedupKey")
    return found


def decision_keys(one: DecisionView) -> list[tuple[str, str]]:
    """Every key of a decision, by the name that the specification gives it."""
    source = one.records[0]["sourceKeys"]
    found: list[tuple[str, Any]] = [
        ("batchId", one.batchId),
        ("eventId", source["eventId"]),
        ("sourceEventId", source["sourceEventId"]),
        ("canonicalDedupKey", relation_key(one, "canonicalDedupKey")),
        ("closureKey", closure_of(one)),
        ("billingKey", one.billable and one.billable["billingKey"]),
        ("attributionKey", one.attribution and one.attribution["attributionKey"]),
        ("factId", one.billable and one.billable["factId"]),
        ("factId", one.attribution and one.attribution["factId"]),
        ("auditKey", one.records[0]["payloadRef"]["payloadKey"]),
        *(("recordKey", record["recordKey"]) for record in one.records),
        ("traceKey", source["traceKey"]),
        ("requestKey", source["requestKey"]),
        ("attemptKey", source["attemptKey"]),
        ("opportunityKey", source["opportunityKey"]),
        ("responseReference", source["responseReferenceOrNA"]),
        ("renderAttemptId", source["renderAttemptIdOrNA"]),
        ("appId", one.appId),
    ]
    return [(kind, value) for kind, value in found if isinstance(value, str) and value not in {"", NA}]


def relation_key(one: DecisionView, name: str) -> str | None:
    value: str = one.records[0]["relationKeys"][name]
    return None if value == NA else value


def closure_of(one: DecisionView) -> str | None:
    return relation_key(one, "closureKeyOrNA")


def related_keys(one: DecisionView) -> list[Related]:
    found = [
        Related(relation=_RELATIONS[kind], kind=f"attribution.{kind}", key=value) for kind, value in decision_keys(one)
    ]
    if one.batchId:
        event = f"{one.batchId}/{one.records[0]['sourceKeys']['eventId']}"
        found.append(Related(relation="came in as", kind="attribution.event", key=event))
    return list(dict.fromkeys(found))


_RELATIONS = {
    "batchId": "came in with",
    "eventId": "event",
    "sourceEventId": "event",
    "canonicalDedupKey": "deduplicated by",
    "closureKey": "closure",
    "billingKey": "billed as",
    "attributionKey": "attributed as",
    "factId": "fact",
    "auditKey": "audit",
    "recordKey": "record",
    "traceKey": "same trace",
    "requestKey": "same request",
    "attemptKey": "same attempt",
    "opportunityKey": "same opportunity",
    "responseReference": "same response",
    "renderAttemptId": "same render attempt",
    "appId": "app",
}


def published_as(one: DecisionView) -> list[Related]:
    """The events of the bus that the records became, where the bus is the archive."""
    return [
        Related(relation="published as", kind="bus.idempotency_key", key=f"{record['recordKey']}.{status}")
        for record in one.records
        for status in dict.fromkeys(("committed", str(record["recordStatus"])))
    ]
