"""Batches and events as an SDK would send them, and what replay makes of them: the vocabulary of these tests."""

from typing import Any

from patra.attribution.replay import ReplayOutput, replay
from patra.kernel.clock import SECOND, format_instant
from patra.kernel.db import Database, migrate, open_database

T0 = 1_767_225_600 * SECOND
"""2026-01-01T00:00:00Z."""

PACKAGES = ["patra.kernel", "patra.attribution"]

ALL_DUE_CLOSURES = 2**31
"""As many overdue closures as one commit can take."""

KEYS = {"traceKey": "trace", "requestKey": "req", "attemptKey": "att", "opportunityKey": "opp", "eventVersion": "1"}
LINK = {"responseReference": "ref", "renderAttemptId": "ra"}
FIELDS: dict[str, dict[str, Any]] = {
    "opportunity_created": {"placementKey": "home"},
    "auction_started": {"auctionChannel": "bidding"},
    "ad_filled": {**LINK, "creativeId": "cr"},
    "impression": {**LINK, "creativeId": "cr"},
    "click": {**LINK, "clickTarget": "shop"},
    "interaction": {**LINK, "interactionType": "expand"},
    "postback": {**LINK, "postbackType": "install", "postbackStatus": "success"},
    "error": {**LINK, "errorStage": "render", "errorCode": "E1"},
}
ABSENT = object()


def at(seconds: float) -> str:
    return format_instant(T0 + round(seconds * SECOND))


def event(event_type: str, event_id: Any = None, **changes: Any) -> dict[str, Any]:
    """A valid event of a type; `field=ABSENT` leaves one out."""
    fields = {
        "eventId": event_id or event_type,
        "eventType": event_type,
        "eventAt": at(0),
        **KEYS,
        **FIELDS.get(event_type, {}),
        **changes,
    }
    return {name: value for name, value in fields.items() if value is not ABSENT}


def terminal(event_id: Any = "terminal", **changes: Any) -> dict[str, Any]:
    return event("error", event_id, errorClass="terminal", **changes)


def envelope(*events: Any, batch: Any = "b1", app: Any = "app", **changes: Any) -> dict[str, Any]:
    fields = {
        "batchId": batch,
        "appId": app,
        "sdkVersion": "1.0",
        "sentAt": at(0),
        "schemaVersion": "1",
        "events": list(events),
        **changes,
    }
    return {name: value for name, value in fields.items() if value is not ABSENT}


def sent(seconds: float, *events: Any, batch: Any = "b1", app: Any = "app", **changes: Any) -> dict[str, Any]:
    """A line of the log: a batch received so many seconds after T0."""
    return {"receivedAt": at(seconds), "batch": envelope(*events, batch=batch, app=app, **changes)}


def tick(seconds: float) -> dict[str, Any]:
    return {"tick": at(seconds)}


def fresh() -> Database:
    db = open_database("sqlite:///:memory:")
    migrate(db, PACKAGES)
    return db


def replayed(*lines: Any, group: list[int] | None = None) -> ReplayOutput:
    db = fresh()
    try:
        return replay(lines, db, group=group)
    finally:
        db.close()


def answers(output: ReplayOutput) -> list[tuple[str, str]]:
    """Status and code of every event of every batch, in order."""
    return [(item["ackStatus"], item["ackReasonCode"]) for ack in output.acks for item in ack.get("ackItems", [ack])]


def answered(*lines: Any) -> list[tuple[str, str]]:
    return answers(replayed(*lines))


def code_of(sent_event: Any, **envelope_changes: Any) -> str:
    """The code that a single event is answered with."""
    return answered(sent(0, sent_event, **envelope_changes))[0][1]


def facts(output: ReplayOutput) -> list[tuple[str, str]]:
    """Every attribution fact and its record's status, in order of time and key."""
    return sorted((fact["attributionType"], fact["recordStatus"]) for fact in output.attribution)


def billed(output: ReplayOutput) -> list[str]:
    return sorted(fact["billingKey"] for fact in output.billable)


def audited(output: ReplayOutput) -> list[tuple[str, str]]:
    return sorted((audit["decisionAction"], audit["decisionReasonCode"]) for audit in output.audits)


def closures(output: ReplayOutput) -> dict[str, tuple[str, str | None]]:
    return {line["closureKey"]: (line["state"], line["terminalSource"]) for line in output.closures}


def records(output: ReplayOutput, kind: str) -> list[dict[str, Any]]:
    return [record for record in output.records if record["recordType"] == kind]
