"""One event of a well-formed batch in; a rejection code or the normalised event out (F2, steps 1 to 6)."""

import re

from tests.model.attribution import instants
from tests.model.attribution.envelope import is_legal_id
from tests.model.attribution.instants import DAY, HOUR

# §3.8.5 what each type requires beside the common fields and `responseReference`; its keys are the eight types (F1).
REQUIRED_BY_TYPE = {
    "opportunity_created": ["placementKey"],
    "auction_started": ["auctionChannel"],
    "ad_filled": ["creativeId"],
    "impression": ["renderAttemptId", "creativeId"],
    "click": ["renderAttemptId", "clickTarget"],
    "interaction": ["renderAttemptId", "interactionType"],
    "postback": ["postbackType", "postbackStatus"],
    "error": ["errorStage", "errorCode"],
}

# §3.8.9 the tier of each type, §3.8.14 the window of each tier.
BILLING = ("impression", "click", "postback")
BILLING_WINDOW = 14 * DAY
DIAGNOSTICS_WINDOW = 3 * DAY

# F5 the sub-enum of a type and its known values, compared as written.
SUB_ENUM = {
    "auction_started": ("auctionChannel", ["waterfall", "bidding", "hybrid", "direct", "house"]),
    "interaction": (
        "interactionType",
        ["expand", "collapse", "dwell", "close", "scroll", "mute", "unmute", "video_start", "video_complete"],
    ),
    "postback": ("postbackStatus", ["success", "failed", "pending"]),
    "error": ("errorStage", ["request", "auction", "fill", "render", "click", "postback"]),
}

# F4 the forms in which an `eventId` is verified as globally unique.
_FORMS = {
    "uuid": re.compile(r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}"),
    "ulid": re.compile(r"[0-7][0-9ABCDEFGHJKMNPQRSTVWXYZ]{25}"),
}


def window_of(event_type):
    return BILLING_WINDOW if event_type in BILLING else DIAGNOSTICS_WINDOW


def is_text(value):
    """F2.2: not `null`, empty, of another type, or longer than 1,024 characters.

    CHOICE: a lone surrogate is not a character of UTF-8 (A2), so text that holds one is not text.
    """
    if not isinstance(value, str) or not 1 <= len(value) <= 1024:
        return False
    return not any("\ud800" <= character <= "\udfff" for character in value)


def is_integer(value):
    # In JSON `true` is not an integer. CHOICE: neither is `1.0`.
    return isinstance(value, int) and not isinstance(value, bool)


def needs_response_reference(event):
    """F2.2: every type but the first two and an `error` whose `renderAttemptId` is absent or `null`."""
    if event["eventType"] in ("opportunity_created", "auction_started"):
        return False
    return not (event["eventType"] == "error" and event.get("renderAttemptId") is None)


def something_missing(event):
    """F2.2: all required fields but `eventId`."""
    texts = ["traceKey", "requestKey", "attemptKey", "opportunityKey", *REQUIRED_BY_TYPE[event["eventType"]]]
    if needs_response_reference(event):
        texts.append("responseReference")
    if not all(is_text(event.get(name)) for name in texts):
        return True
    if not is_text(event.get("eventVersion")) and not is_integer(event.get("eventVersion")):
        return True
    # `eventAt`: absent, `null`, empty or too long is missing; "of any other type goes to 4".
    at = event.get("eventAt")
    return at is None or (isinstance(at, str) and not is_text(at))


def is_globally_unique(event, batch):
    """F4: declared by the batch, verified by the form of the `eventId`."""
    extensions = batch.get("extensions")
    declared = extensions.get("eventIdUniqueness") if isinstance(extensions, dict) else None
    form = _FORMS.get(declared) if isinstance(declared, str) else None
    return form is not None and isinstance(event["eventId"], str) and form.fullmatch(event["eventId"]) is not None


def check(event, batch, received):
    """F2: `(code, None)` of the first step that fails, or `(None, normalised event)` when 1 to 6 are passed."""
    # Step 1. CHOICE: `eventType` is missing in the sense of step 2 (also when it is not text, or too long).
    if not isinstance(event, dict) or not is_text(event.get("eventType")):
        return "f_event_missing_required", None
    if event["eventType"] not in REQUIRED_BY_TYPE:  # F1: `failure` is not among them
        return "f_event_type_unsupported", None

    # Step 2.
    event_id = event.get("eventId")
    if something_missing(event):
        if event_id is not None and not is_legal_id(event_id):
            return "f_event_id_invalid_no_fallback", None
        return "f_event_missing_required", None

    # Step 3.
    if event_id is None:
        return "f_event_missing_required", None

    # Step 4.
    at = instants.parse(event["eventAt"]) if isinstance(event["eventAt"], str) else None
    if at is None or at - received > 24 * HOUR:
        return "f_event_time_invalid", None

    # Step 5. CHOICE: `null` is not given, as elsewhere.
    scope = event.get("eventIdScope")
    if scope is not None and scope not in ("global_unique", "batch_scoped"):
        return "f_event_missing_required", None
    if scope == "global_unique" and not is_globally_unique(event, batch):
        return "f_event_id_global_uniqueness_unverified", None

    # Step 6: greater than the window, not equal to it.
    if received - at > window_of(event["eventType"]):
        return "f_event_stale_outside_dedup_window", None

    return None, normalised(event, batch, at, received)


def normalised(event, batch, at, received):
    """What the later steps look at. An optional key field that is not text counts as absent (F2.2): None here."""
    kind = event["eventType"]
    idempotency = event.get("idempotencyKey")
    response = event.get("responseReference") if is_text(event.get("responseReference")) else None
    render = event.get("renderAttemptId") if is_text(event.get("renderAttemptId")) else None
    # §3.8.17: `responseReference` and `renderAttemptId`, both or no closure.
    closure_key = f"{response}|{render}" if response is not None and render is not None else None
    raw_values = []
    if kind in SUB_ENUM:
        field, known = SUB_ENUM[kind]
        if event[field] not in known:
            raw_values.append({"rawValue": event[field], "canonicalValue": "unknown", "fieldPath": field})
    return {
        "appId": batch["appId"],
        "batchId": batch["batchId"],
        "eventType": kind,
        # F12: an `eventId` that is not text counts as empty.
        "eventIdText": event["eventId"] if isinstance(event["eventId"], str) else "",
        # Present but illegal: the event goes on with the computed key (F2.3).
        "eventId": event["eventId"] if is_legal_id(event["eventId"]) else None,
        "isGlobal": event.get("eventIdScope") == "global_unique",
        # F3: an illegal `idempotencyKey` is ignored, an absent or `null` one is not a key.
        "idempotencyKey": idempotency if is_legal_id(idempotency) else None,
        "isKeyIgnored": idempotency is not None and not is_legal_id(idempotency),
        "at": at,
        "received": received,
        "traceKey": event["traceKey"],
        "requestKey": event["requestKey"],
        "attemptKey": event["attemptKey"],
        "opportunityKey": event["opportunityKey"],
        "responseReference": response,
        "renderAttemptId": render,
        "closureKey": closure_key,
        # F14: terminal = `errorClass` is `terminal` and the closure key is complete.
        "isTerminalError": kind == "error" and event.get("errorClass") == "terminal" and closure_key is not None,
        "postbackStatus": event.get("postbackStatus") if kind == "postback" else None,
        "unknownValues": raw_values,
        "raw": event,
    }
