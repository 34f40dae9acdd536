"""Decisions in; facts (§3.8.21), audits (F20) and output records (§3.8.26) out, in the fields the text fixes."""

from tests.model.attribution import instants, keys

# F22.
VERSION_ANCHORS = {
    "eventContractVersion": "f_event_v1",
    "mappingRuleVersion": "f_map_v1",
    "dedupFingerprintVersion": "f_dedup_v1",
    "closureRuleVersion": "f_closure_v1",
    "billingRuleVersion": "f_billing_v1",
    "archiveContractVersion": "f_archive_v1",
}


class Output:
    """What a replay writes. Each list is in the order of the decisions, which the text does not fix."""

    def __init__(self):
        self.acks = []
        self.billable = []
        self.attribution = []
        self.audits = []
        self.records = []
        self.closures = []
        self.audit_of = {}  # (sourceEventId, decisionAction, decisionReasonCode) -> its entry in audits
        self.billing_keys = set()
        # F19, beside the files of a replay.
        self.quarantine = []
        self.rejects = []


def attribution_fact(output, source, attribution_type, *, status, reason, decided):
    """§3.8.21 `attributionFactLite` and its record. `source` is a normalised event with its `key` (cycle included)."""
    attribution_key = f"{attribution_type}|{source['key']}"  # F7
    fact = {
        "factId": "af_" + keys.sha256(attribution_key)[:32],
        "attributionType": attribution_type,
        "sourceEventId": keys.server_event_key(source["key"]),
        # §3.8.17: a terminal error is normalised into `failure` before it is attributed (§3.8.2.1). CHOICE: the fact
        # names the normalised type.
        "eventType": "failure" if attribution_type == "attr_failure_terminal" else source["eventType"],
        "responseReferenceOrNA": keys.or_na(source["responseReference"]),
        "renderAttemptIdOrNA": keys.or_na(source["renderAttemptId"]),
        "opportunityKey": source["opportunityKey"],
        "traceKey": source["traceKey"],
        "attributionKey": attribution_key,
        "factAt": instants.format(source["at"]),  # F7: of a synthesised failure this is its deadline
        "factVersion": "1",
        "recordStatus": status,
    }
    output.attribution.append(fact)
    record = {"status": status, "reason": reason, "decided": decided, "attribution_key": attribution_key}
    fact_record(output, "attribution_fact", source, **record)
    return fact


def billable_fact(output, source, billable_type, *, reason, decided):
    """§3.8.21 `billableFactLite` and its record. §3.8.23: a billing key twice would be a defect of this model."""
    billing_key = keys.billing_key(source, billable_type)
    assert billing_key not in output.billing_keys, billing_key
    output.billing_keys.add(billing_key)
    output.billable.append(
        {
            "factId": "bf_" + keys.sha256(billing_key)[:32],
            "billableType": billable_type,
            "sourceEventId": keys.server_event_key(source["key"]),
            "responseReference": source["responseReference"],
            "renderAttemptId": source["renderAttemptId"],
            "opportunityKey": source["opportunityKey"],
            "traceKey": source["traceKey"],
            "billingKey": billing_key,
            "factAt": instants.format(source["at"]),
            "factVersion": "1",
        }
    )
    record = {"status": "new", "reason": reason, "decided": decided, "billing_key": billing_key}
    fact_record(output, "billable_fact", source, **record)


def fact_record(output, record_type, source, *, status, reason, decided, billing_key=None, attribution_key=None):
    """§3.8.26 of a fact. `payloadKey` is not fixed by the text, so neither is `recordKey`: both are left out."""
    output.records.append(
        {
            "recordType": record_type,
            "recordStatus": status,
            "sourceKeys": {
                "eventId": source["eventId"],
                "sourceEventId": keys.server_event_key(source["key"]),
                "traceKey": source["traceKey"],
                "requestKey": source["requestKey"],
                "attemptKey": source["attemptKey"],
                "opportunityKey": source["opportunityKey"],
                "responseReferenceOrNA": keys.or_na(source["responseReference"]),
                "renderAttemptIdOrNA": keys.or_na(source["renderAttemptId"]),
            },
            "relationKeys": {
                "closureKeyOrNA": keys.or_na(source["closureKey"]),
                "billingKeyOrNA": keys.or_na(billing_key),
                "attributionKeyOrNA": keys.or_na(attribution_key),
                "canonicalDedupKey": source["key"],
            },
            "versionAnchors": VERSION_ANCHORS,
            "decisionReasonCode": reason,
            "outputAt": instants.format(decided),
        }
    )


def audit(output, source_event_id, action, reason, *, decided, unknown_values=()):
    """F20: keyed by source, action and reason; the same decision again is counted and adds no record."""
    known = output.audit_of.get((source_event_id, action, reason))
    if known is not None:
        known["count"] += 1
        return
    entry = {
        "sourceEventId": source_event_id,
        "mappingRuleVersion": VERSION_ANCHORS["mappingRuleVersion"],
        "decisionAction": action,
        "decisionReasonCode": reason,
        "decidedAt": instants.format(decided),  # CHOICE: of a counted audit, the first
        "count": 1,
        "unknownValues": list(unknown_values),  # F5
    }
    output.audit_of[source_event_id, action, reason] = entry
    output.audits.append(entry)
    output.records.append(
        {
            "recordType": "decision_audit",
            "sourceKeys": {"sourceEventId": source_event_id},
            "versionAnchors": VERSION_ANCHORS,
            "decisionReasonCode": reason,
            "outputAt": instants.format(decided),
        }
    )
