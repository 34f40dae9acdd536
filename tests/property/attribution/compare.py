"""What the engine gave for a log and what the model gave in; where they differ, in words, out.

Files have no fixed order, so everything but the ACKs is compared by key. Only what the specification fixes is compared:
a record `new` or `committed` is the same to a replay, for whether the archive has been written to is not a decision.
"""

import hashlib
from collections import Counter

from tests.model.attribution import instants

BILLABLE = [
    "factId",
    "billableType",
    "sourceEventId",
    "responseReference",
    "renderAttemptId",
    "opportunityKey",
    "traceKey",
    "billingKey",
    "factAt",
    "factVersion",
]
ATTRIBUTION = [
    "factId",
    "attributionType",
    "sourceEventId",
    "eventType",
    "responseReferenceOrNA",
    "renderAttemptIdOrNA",
    "opportunityKey",
    "traceKey",
    "attributionKey",
    "factAt",
    "factVersion",
    "recordStatus",
]
ACK_ITEM = ["eventId", "eventIndex", "ackStatus", "ackReasonCode", "retryable", "serverEventKey"]


def differences(engine, model):
    """Empty when the two agree."""
    return [
        *_in_order("ack", [_ack(a) for a in engine.acks], [_ack(a) for a in model.acks]),
        *_by_key("billable", _table(engine.billable, _billable), _table(model.billable, _billable)),
        *_by_key("attribution", _table(engine.attribution, _attribution), _table(model.attribution, _attribution)),
        *_by_key("audit", _table(engine.audits, _audit), _table(model.audits, _audit)),
        *_by_key("record", _table(_facts(engine), _fact_record), _table(_facts(model), _fact_record)),
        *_by_key("audit record", _audit_records(engine), _audit_records(model)),
        *_by_key("closure", _table(engine.closures, _closure), _table(model.closures, _closure)),
        *_own_keys(engine),
    ]


# ---------------------------------------------------------------- what is compared of a row: (key, value)


def _ack(ack):
    if "code" in ack:
        return {"code": ack["code"]}
    items = [{name: item[name] for name in ACK_ITEM} for item in ack["ackItems"]]
    return {
        "batchId": ack["batchId"],
        "receivedAt": _instant(ack["receivedAt"]),
        "overallStatus": ack["overallStatus"],
        "ackItems": items,
    }


def _billable(fact):
    value = {name: fact[name] for name in BILLABLE}
    value |= {"factAt": _instant(fact["factAt"]), "factVersion": str(fact["factVersion"])}
    return fact["billingKey"], value


def _attribution(fact):
    value = {name: fact[name] for name in ATTRIBUTION}
    value |= {
        "factAt": _instant(fact["factAt"]),
        "factVersion": str(fact["factVersion"]),
        "recordStatus": _status(fact["recordStatus"]),
    }
    return fact["attributionKey"], value


def _audit(audit):
    count = audit.get("count", 1)
    value = {
        "mappingRuleVersion": audit["mappingRuleVersion"],
        "count": count,
        # Of a counted audit the text does not say which of its instants is kept.
        "decidedAt": _instant(audit["decidedAt"]) if count == 1 else "any",
        # F5 asks it of what is stored; a dropped event's audit may say it too.
        "unknownValue": "any" if audit["decisionAction"] == "drop" else _unknown_value(audit),
    }
    return (audit["sourceEventId"], audit["decisionAction"], audit["decisionReasonCode"]), value


def _unknown_value(audit):
    """F5. The engine says it in fields of the audit, the model in a list (of at most one: no type has two sub-enums)."""
    names = ("rawValue", "canonicalValue", "fieldPath")
    found = [*audit.get("unknownValues", []), *([audit] if "rawValue" in audit else [])]
    return [[value[name] for name in names] for value in found]


def _fact_record(record):
    relations = record["relationKeys"]
    key = relations["billingKeyOrNA" if record["recordType"] == "billable_fact" else "attributionKeyOrNA"]
    is_terminal = record["recordType"] == "billable_fact" or key.startswith(
        ("attr_impression|", "attr_failure_terminal|")
    )
    sources = record["sourceKeys"]
    value = {
        "recordStatus": _status(record["recordStatus"]),
        "sourceKeys": {name: value for name, value in sources.items() if name != "eventId"},
        "canonicalDedupKey": relations["canonicalDedupKey"].partition("#")[0],
        # §3.8.28: required of what belongs to a terminal state.
        "closureKeyOrNA": relations["closureKeyOrNA"] if is_terminal else "any",
        "versionAnchors": record["versionAnchors"],
        "decisionReasonCode": record["decisionReasonCode"],
        "outputAt": _instant(record["outputAt"]),
    }
    return (record["recordType"], key), value


def _closure(closure):
    synthesised = closure["terminalSource"] == "system_timeout_synthesized"
    return closure["closureKey"], {"state": closure["state"], "synthesised": synthesised}


def _facts(output):
    return [record for record in output.records if record["recordType"] != "decision_audit"]


def _audit_records(output):
    records = [record for record in output.records if record["recordType"] == "decision_audit"]
    return Counter((record["sourceKeys"]["sourceEventId"], record["decisionReasonCode"]) for record in records)


def _own_keys(engine):
    """§3.8.29.1: every record key is the hash of its own fields and unlike every other."""
    found = []
    for record in engine.records:
        parts = [
            record["recordType"],
            record["payloadRef"]["payloadKey"],
            record["relationKeys"]["canonicalDedupKey"],
            record["versionAnchors"]["archiveContractVersion"],
        ]
        if record["recordKey"] != hashlib.sha256("|".join(parts).encode()).hexdigest():
            found.append(f"record key {record['recordKey']} is not made of its fields: {record}")
    keys = Counter(record["recordKey"] for record in engine.records)
    return found + [f"record key {key} is used {times} times" for key, times in keys.items() if times > 1]


# ---------------------------------------------------------------- how


def _instant(text):
    parsed = instants.parse(text)
    return text if parsed is None or not text.endswith("Z") else parsed


def _status(status):
    return "new" if status == "committed" else status


def _table(rows, view):
    """By key; a key that comes twice keeps both values, so that it cannot be overlooked."""
    table = {}
    for row in rows:
        key, value = view(row)
        table[key] = value if key not in table else ["twice", table[key], value]
    return table


def _in_order(what, engine, model):
    if len(engine) != len(model):
        yield f"{len(engine)} {what}s, the model {len(model)}"
    for number, (ours, theirs) in enumerate(zip(engine, model, strict=False)):
        if ours != theirs:
            yield f"{what} {number}: engine {_only(ours, theirs)}, model {_only(theirs, ours)}"


def _by_key(what, engine, model):
    for key in engine.keys() | model.keys():
        if key not in model:
            yield f"{what} {key}: engine only: {engine[key]}"
        elif key not in engine:
            yield f"{what} {key}: model only: {model[key]}"
        elif engine[key] != model[key]:
            yield f"{what} {key}: engine {_only(engine[key], model[key])}, model {_only(model[key], engine[key])}"


def _only(value, other):
    """The part of `value` that differs from `other`."""
    if isinstance(value, dict) and isinstance(other, dict):
        return {name: _only(item, other.get(name)) for name, item in value.items() if item != other.get(name)}
    if isinstance(value, list) and isinstance(other, list) and len(value) == len(other):
        return {i: _only(a, b) for i, (a, b) in enumerate(zip(value, other, strict=True)) if a != b}
    return value
