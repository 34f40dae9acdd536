"""A normalised event in; its computed key, its dedup key and all that is derived from the latter (§3.8.12, F7)."""

import hashlib

# §3.8.12: the fields of `semanticPayloadDigest` of each type, in the order of the text.
SEMANTIC_FIELDS = {
    "opportunity_created": ["placementKey"],
    "auction_started": ["auctionChannel"],
    "ad_filled": ["creativeId"],
    "impression": ["creativeId", "renderAttemptId"],
    "click": ["renderAttemptId", "clickTarget"],
    "interaction": ["renderAttemptId", "interactionType"],
    "postback": ["postbackType", "postbackStatus"],
    "error": ["errorStage", "errorCode"],
}


def sha256(text):
    """A2: lower-case hex over UTF-8."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def or_na(value):
    return "NA" if value is None else value


def computed_key(event):
    """§3.8.12.3, with the raw value of a sub-enum (F5)."""
    fields = SEMANTIC_FIELDS[event["eventType"]]
    return _computed(event, event["eventType"], sha256("|".join(event["raw"][name] for name in fields)))


def timeout_dedup_key(opener):
    """F13: source `computed`, event type `failure`, the digest of `f_terminal_timeout_autofill`."""
    return "f_dedup_v1:computed:" + _computed(opener, "failure", sha256("f_terminal_timeout_autofill"))


def _computed(event, event_type, digest):
    return sha256(
        "|".join(
            [
                event["appId"],
                event_type,
                event["requestKey"],
                event["attemptKey"],
                event["opportunityKey"],
                or_na(event["responseReference"]),
                or_na(event["renderAttemptId"]),
                digest,
            ]
        )
    )


def dedup_key(event):
    """§3.8.13: the idempotency key before the namespaced event id before the computed key."""
    app = event["appId"]
    if event["idempotencyKey"] is not None:
        return f"f_dedup_v1:client_idempotency:{app}|{event['idempotencyKey']}"
    if event["eventId"] is not None:
        scope = "global" if event["isGlobal"] else event["batchId"]
        return f"f_dedup_v1:client_event_id:{app}|{scope}|{event['eventId']}"
    return f"f_dedup_v1:computed:{computed_key(event)}"


def in_cycle(key, cycle):
    """F9: in the n-th cycle (n ≥ 2) whatever F7 derives from the dedup key uses it with `#n` appended."""
    return key if cycle == 1 else f"{key}#{cycle}"


def server_event_key(key_with_cycle):
    return "fe_" + sha256(key_with_cycle)[:32]


def server_event_key_without_dedup_key(app, batch, index):
    """F7: of an event that was rejected before step 7. CHOICE: the first event has index 0."""
    return "fe_" + sha256(f"{app}|{batch}|{index}")[:32]


def billing_key(event, billable_type):
    """§3.8.21."""
    return f"{event['responseReference']}|{event['renderAttemptId']}|{billable_type}"
