"""Turns a decision into its output records for the archive, in the order in which they are written.

`fToGArchiveRecordLite`: §3.8.26 to §3.8.29. The audit goes before the facts it explains; within one group
(`closureKeyOrNA` and `traceKey`) order is audit, billable fact, attribution fact, then `outputAt`, then `recordKey`.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from patra.attribution.contract import keys
from patra.attribution.contract.event_types import NA
from patra.attribution.contract.reasons import Reason
from patra.attribution.contract.versions import VERSIONS
from patra.attribution.decision.closure_rules import Status
from patra.attribution.decision.decisions import (
    Decision,
    attribution_fact,
    attribution_key_of,
    audit,
    audit_key_of,
    billable_fact,
    billing_key_of,
)
from patra.kernel.canonical import fingerprint
from patra.kernel.clock import format_instant
from patra.kernel.machine import Machine


class RecordType(StrEnum):
    AUDIT = "decision_audit"
    BILLABLE = "billable_fact"
    ATTRIBUTION = "attribution_fact"


RANK = {RecordType.AUDIT: 0, RecordType.BILLABLE: 1, RecordType.ATTRIBUTION: 2}
PAYLOAD_TYPES = {
    RecordType.AUDIT: "factDecisionAuditLite",
    RecordType.BILLABLE: "billableFactLite",
    RecordType.ATTRIBUTION: "attributionFactLite",
}


class RecordTransition(StrEnum):
    WRITTEN = "written"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    REFUSED = "refused"
    SUPERSEDED = "superseded"


RECORD = Machine(
    "attribution_record",
    version="f_archive_v1",
    initial=Status.NEW,
    edges={
        (Status.NEW, RecordTransition.WRITTEN): Status.COMMITTED,
        (Status.NEW, RecordTransition.DUPLICATE): Status.DUPLICATE,
        (Status.NEW, RecordTransition.CONFLICT): Status.CONFLICTED,
        (Status.NEW, RecordTransition.REFUSED): Status.REJECTED,
        (Status.COMMITTED, RecordTransition.SUPERSEDED): Status.SUPERSEDED,
    },
)


class Record(NamedTuple):
    """A record, what it refers to, and the digest by which the archive distinguishes a repetition from a conflict."""

    type: RecordType
    key: str
    status: Status
    at: int
    body: dict[str, Any]
    payload: dict[str, Any]

    @property
    def digest(self) -> str:
        return fingerprint(self.payload)

    @property
    def group(self) -> str:
        return f"{self.body['relationKeys']['closureKeyOrNA']}|{self.body['sourceKeys']['traceKey']}"


class Statuses(NamedTuple):
    """Where the records of one decision stand; None for a record that it has not."""

    audit: Status
    billable: Status | None
    attribution: Status | None


def records(decision: Decision, statuses: Statuses) -> list[Record]:
    """The records of one decision, in the order of §3.8.29.2."""
    found = [_record(decision, RecordType.AUDIT, audit_key_of(decision), statuses.audit, audit(decision))]
    billable, attribution = billable_fact(decision), attribution_fact(decision)
    if billable is not None and statuses.billable is not None:
        found.append(_record(decision, RecordType.BILLABLE, billable["factId"], statuses.billable, billable))
    if attribution is not None and statuses.attribution is not None:
        found.append(
            _record(decision, RecordType.ATTRIBUTION, attribution["factId"], statuses.attribution, attribution)
        )
    return found


class Reissue(NamedTuple):
    """A record of a decision that an operator issued again (F26)."""

    type: RecordType
    issue: int
    status: Status
    at: int


def reissue_record(decision: Decision, issued: Reissue) -> Record:
    """The record of a later issue: the same payload under a key of its own, naming the issue before it."""
    payloads = {
        RecordType.AUDIT: (audit_key_of(decision), audit(decision)),
        RecordType.BILLABLE: _with_fact_id(billable_fact(decision)),
        RecordType.ATTRIBUTION: _with_fact_id(attribution_fact(decision)),
    }
    payload_key, payload = payloads[issued.type]
    record = _record(decision, issued.type, payload_key, issued.status, payload)
    dedup, versions = decision.subject.dedup, decision.versions
    body: dict[str, Any] = {
        **record.body,
        "recordKey": keys.record_key(issued.type, payload_key, dedup, versions, issued.issue),
        "versionAnchors": {
            **record.body["versionAnchors"],
            "archiveContractVersion": keys.archive_version(versions, issued.issue),
        },
        "conflictWithRecordKey": keys.record_key(issued.type, payload_key, dedup, versions, issued.issue - 1),
        "outputAt": format_instant(issued.at),
    }
    return Record(issued.type, str(body["recordKey"]), issued.status, issued.at, body, payload)


def _with_fact_id(fact: dict[str, Any] | None) -> tuple[str, dict[str, Any]]:
    return ("", {}) if fact is None else (fact["factId"], fact)


def record_keys(decision: Decision) -> list[str]:
    """The keys of the records of a decision; they do not depend on where the records stand."""
    dedup, versions = decision.subject.dedup, decision.versions
    found = [keys.record_key(RecordType.AUDIT, audit_key_of(decision), dedup, versions)]
    billing, attribution = billing_key_of(decision), attribution_key_of(decision)
    if billing is not None:
        found.append(keys.record_key(RecordType.BILLABLE, keys.billable_fact_id(billing), dedup, versions))
    if attribution is not None:
        found.append(keys.record_key(RecordType.ATTRIBUTION, keys.attribution_fact_id(attribution), dedup, versions))
    return found


def group_of(decision: Decision) -> str:
    """The group within which records keep their order: `closureKeyOrNA` and `traceKey`."""
    return f"{decision.subject.closure or NA}|{decision.subject.trace}"


def in_write_order(found: Sequence[Record]) -> list[Record]:
    """The records of several decisions in the order in which one group is written (§3.8.29.2)."""
    return sorted(found, key=lambda record: (record.group, RANK[record.type], record.at, record.key))


def seal_record(record: Record) -> Record:
    """The record, or the same one as `rejected` where a version anchor is missing (§3.8.28)."""
    anchors = record.body.get("versionAnchors", {})
    if all(anchors.get(name) for name in msgspec.structs.asdict(VERSIONS[0])):
        return record
    body = {**record.body, "recordStatus": Status.REJECTED, "decisionReasonCode": Reason.MISSING_VERSION_ANCHOR}
    return record._replace(status=RECORD.target(Status.NEW, RecordTransition.REFUSED), body=body)


def _record(decision: Decision, kind: RecordType, payload_key: str, status: Status, payload: dict[str, Any]) -> Record:
    subject = decision.subject
    body: dict[str, Any] = {
        "recordKey": keys.record_key(kind, payload_key, subject.dedup, decision.versions),
        "recordType": kind,
        "recordStatus": status,
        "payloadRef": {"payloadType": PAYLOAD_TYPES[kind], "payloadKey": payload_key},
        "sourceKeys": {
            "eventId": subject.event_id,
            "sourceEventId": subject.source,
            "traceKey": subject.trace,
            "requestKey": subject.request,
            "attemptKey": subject.attempt,
            "opportunityKey": subject.opportunity,
            "responseReferenceOrNA": subject.reference or NA,
            "renderAttemptIdOrNA": subject.render or NA,
        },
        "relationKeys": {
            "closureKeyOrNA": subject.closure or NA,
            "billingKeyOrNA": (billing_key_of(decision) if kind is RecordType.BILLABLE else None) or NA,
            "attributionKeyOrNA": (attribution_key_of(decision) if kind is RecordType.ATTRIBUTION else None) or NA,
            "canonicalDedupKey": subject.dedup or NA,
        },
        "versionAnchors": msgspec.structs.asdict(VERSIONS[decision.versions]),
        "decisionReasonCode": decision.reason,
        "outputAt": format_instant(decision.at),
    }
    if kind is RecordType.ATTRIBUTION:
        optional = {
            "conflictWithRecordKey": decision.conflict_with,
            "supersededRecordKey": decision.supersedes,
            "extensions": decision.extensions,
        }
        body |= {name: value for name, value in optional.items() if value}
    return Record(kind, body["recordKey"], status, decision.at, body, payload)
