"""A few words in; events, batches and log lines with every field that §3.8.4 and §3.8.5 require out."""

import hashlib

from tests.model.attribution import run

T0 = "2026-03-01T12:00:00Z"

FIELDS = {
    "opportunity_created": {"placementKey": "p"},
    "auction_started": {"auctionChannel": "bidding"},
    "ad_filled": {"creativeId": "c"},
    "impression": {"creativeId": "c"},
    "click": {"clickTarget": "t"},
    "interaction": {"interactionType": "expand"},
    "postback": {"postbackType": "install", "postbackStatus": "success"},
    "error": {"errorStage": "render", "errorCode": "e1"},
}

FAILED = ("closed_failure", "error")
TIMED_OUT = ("closed_failure", "system_timeout_synthesized")
SHOWN = ("closed_success", "impression")
OPEN = ("open", None)

GONE = object()  # a field given as GONE is left out


def sha(text):
    return hashlib.sha256(text.encode()).hexdigest()


def event(kind, event_id, **fields):
    """A complete event on closure `r|a`."""
    made = {
        "eventId": event_id,
        "eventType": kind,
        "eventAt": T0,
        "traceKey": "tr",
        "requestKey": "rq",
        "attemptKey": "at",
        "opportunityKey": "op",
        "responseReference": "r",
        "renderAttemptId": "a",
        "eventVersion": "1",
        **FIELDS.get(kind, {}),
        **fields,
    }
    return {name: value for name, value in made.items() if value is not GONE}


def terminal(event_id, **fields):
    return event("error", event_id, errorClass="terminal", **fields)


def minute(number, seconds="00"):
    return f"2026-03-01T12:{number:02}:{seconds}Z"


def batch(*events, batch_id="b1", app="app", **fields):
    made = {
        "batchId": batch_id,
        "appId": app,
        "sdkVersion": "9",
        "sentAt": T0,
        "schemaVersion": "1",
        "events": list(events),
        **fields,
    }
    return {name: value for name, value in made.items() if value is not GONE}


def at(instant, body):
    return {"receivedAt": instant, "batch": body}


def tick(instant):
    return {"tick": instant}


def codes(output, number=0):
    """The reason codes of one batch."""
    return [item["ackReasonCode"] for item in output.acks[number]["ackItems"]]


def answer(raw, received=T0, **envelope):
    """`(ackStatus, ackReasonCode)` of one event alone on an empty store."""
    item = run([at(received, batch(raw, **envelope))]).acks[0]["ackItems"][0]
    return item["ackStatus"], item["ackReasonCode"]


def audits(output):
    return sorted((a["decisionAction"], a["decisionReasonCode"], a["count"]) for a in output.audits)


def facts(output):
    return sorted((f["attributionType"], f["recordStatus"]) for f in output.attribution)


def billed(output):
    return sorted(f["billingKey"] for f in output.billable)


def closures(output):
    return {c["closureKey"]: (c["state"], c["terminalSource"]) for c in output.closures}
