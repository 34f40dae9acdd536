"""Any JSON value in; the code with which the whole batch is refused, or None for a well-formed batch (§3.8.4, F11)."""

import re

# F3: `eventId`, `idempotencyKey`, `batchId` and `appId`: 1-128 characters of this alphabet.
_LEGAL = re.compile(r"[A-Za-z0-9._:-]{1,128}")

# §3.8.4 required, in its order.
REQUIRED = ("batchId", "appId", "sdkVersion", "sentAt", "schemaVersion", "events")


def is_legal_id(value):
    return isinstance(value, str) and _LEGAL.fullmatch(value) is not None


def _is_empty(value):
    # CHOICE: "empty" is the empty text, the empty array and the empty object.
    return value in ("", [], {})


def refusal(batch):
    """F11: the first that applies. (Bytes that are not JSON never become a value: see log.py.)"""
    if not isinstance(batch, dict):
        return "f_batch_malformed"
    for name in REQUIRED:
        value = batch.get(name)
        # F11: "an empty `events` is not this". CHOICE: nothing is asked of the type of `sdkVersion` and `sentAt`.
        if value is None or (name != "events" and _is_empty(value)):
            return "f_batch_missing_required"
    if not is_legal_id(batch["batchId"]) or not is_legal_id(batch["appId"]):
        return "f_batch_id_invalid"
    # "the texts `1` and `1.0`": the number 1 is not one of them.
    if not isinstance(batch["schemaVersion"], str) or batch["schemaVersion"] not in ("1", "1.0"):
        return "f_batch_schema_unsupported"
    events = batch["events"]
    if not isinstance(events, list) or not 1 <= len(events) <= 100:
        return "f_batch_events_invalid"
    return None
