"""Facts, audits and output records: §3.8.21 to §3.8.28, F20, F22."""

from typing import Any

import pytest

from patra.attribution.decision.closure_rules import Status
from patra.attribution.decision.output_records import RECORD, Record, RecordType, in_write_order, seal_record
from patra.kernel.clock import SECOND
from tests.unit.attribution.said import FIELDS, T0, at, audited, event, facts, records, replayed, sent, terminal, tick

ATTRIBUTION = {
    "opportunity_created": "attr_opportunity_created",
    "auction_started": "attr_auction_started",
    "ad_filled": "attr_ad_filled",
    "impression": "attr_impression",
    "click": "attr_click_pending",
    "interaction": "attr_interaction",
    "postback": "attr_postback",
    "error": "attr_error",
}
ANCHORS = {
    "eventContractVersion": "f_event_v1",
    "mappingRuleVersion": "f_map_v1",
    "dedupFingerprintVersion": "f_dedup_v1",
    "closureRuleVersion": "f_closure_v1",
    "billingRuleVersion": "f_billing_v1",
    "archiveContractVersion": "f_archive_v1",
}


def everything():
    """A log that reaches most decisions."""
    return replayed(
        sent(0, event("opportunity_created"), event("auction_started"), event("ad_filled"), event("view"), None),
        sent(1, event("click"), event("interaction", interactionType="odd"), event("ad_filled")),
        sent(2, event("impression"), terminal(), event("postback", postbackStatus="failed")),
        sent(3, event("ad_filled", "f2", renderAttemptId="two"), event("click", "c2", renderAttemptId="three")),
        sent(4, terminal("t2", renderAttemptId="four"), event("impression", "i4", renderAttemptId="four"), batch="b4"),
        sent(5, event("click", "x"), app="other"),
        tick(200),
        sent(201, event("impression", "i2", renderAttemptId="two")),
    )


@pytest.mark.parametrize("name", FIELDS)
def test_each_type_maps_to_its_attribution_fact(name):
    output = replayed(sent(0, event(name)))
    assert facts(output) == [(ATTRIBUTION[name], "committed")]
    assert output.attribution[0]["eventType"] == name
    assert len(output.billable) == (1 if name == "impression" else 0)


def test_a_billable_fact_has_its_fields_and_no_others():
    fact = replayed(sent(0, event("impression"))).billable[0]
    assert list(fact) == [
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
    assert fact["factVersion"] == 1


def test_an_attribution_fact_has_its_fields_and_the_status_of_its_record():
    fact = replayed(sent(0, event("impression"))).attribution[0]
    assert list(fact) == [
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


def test_an_audit_has_its_fields_and_its_count():
    audit = replayed(sent(0, event("impression"))).audits[0]
    assert list(audit) == [
        "sourceEventId",
        "mappingRuleVersion",
        "decisionAction",
        "decisionReasonCode",
        "conflictDecision",
        "decidedAt",
        "count",
    ]
    assert (audit["mappingRuleVersion"], audit["decidedAt"], audit["count"]) == ("f_map_v1", at(0), 1)


def test_every_event_of_a_well_formed_batch_leaves_one_audit():
    batch = [
        event("opportunity_created"),
        event("view"),
        None,
        event("impression"),
        event("impression", "i2"),
        event("impression", "i3", eventAt=5),
    ]
    assert sum(audit["count"] for audit in replayed(sent(0, *batch)).audits) == len(batch)


def test_actions_follow_from_what_was_emitted():
    output = everything()
    actions = {
        audit["decisionReasonCode"]: audit["decisionAction"]
        for audit in output.audits
        if audit["decisionReasonCode"] != "f_accepted"
    }
    assert actions == {
        "f_event_type_unsupported": "drop",
        "f_event_missing_required": "drop",
        "f_accepted_unknown_enum": "attribution_emit",
        "f_dedup_committed_duplicate": "drop",
        "f_terminal_conflict_failure_after_impression": "attribution_emit",
        "f_postback_terminal_conflict": "attribution_emit",
        "f_closure_foreign_app": "drop",
        "f_terminal_timeout_autofill": "attribution_emit",
        "f_billing_click_without_impression": "attribution_emit",
    }
    assert {action for action, code in audited(output) if code == "f_accepted"} == {"both_emit", "attribution_emit"}


def test_every_record_has_its_status_keys_anchors_and_reason():
    output = everything()
    for record in output.records:
        assert (
            {
                "recordKey",
                "recordType",
                "recordStatus",
                "payloadRef",
                "sourceKeys",
                "relationKeys",
                "versionAnchors",
                "decisionReasonCode",
                "outputAt",
            }
            <= set(record)
            <= {
                "recordKey",
                "recordType",
                "recordStatus",
                "payloadRef",
                "sourceKeys",
                "relationKeys",
                "versionAnchors",
                "decisionReasonCode",
                "outputAt",
                "conflictWithRecordKey",
                "supersededRecordKey",
                "extensions",
            }
        )
        assert record["versionAnchors"] == ANCHORS
        assert list(record["sourceKeys"]) == [
            "eventId",
            "sourceEventId",
            "traceKey",
            "requestKey",
            "attemptKey",
            "opportunityKey",
            "responseReferenceOrNA",
            "renderAttemptIdOrNA",
        ]
        assert list(record["relationKeys"]) == [
            "closureKeyOrNA",
            "billingKeyOrNA",
            "attributionKeyOrNA",
            "canonicalDedupKey",
        ]
        assert all(record["sourceKeys"].values())
        assert all(record["relationKeys"].values())
    keys = [record["recordKey"] for record in output.records]
    assert len(set(keys)) == len(keys)


def test_each_audit_and_each_fact_has_exactly_one_record():
    output = everything()
    assert len(records(output, "decision_audit")) == len(output.audits)
    assert {r["payloadRef"]["payloadKey"] for r in records(output, "billable_fact")} == {
        f["factId"] for f in output.billable
    }
    status = {r["payloadRef"]["payloadKey"]: r["recordStatus"] for r in records(output, "attribution_fact")}
    assert status == {f["factId"]: f["recordStatus"] for f in output.attribution}


def test_a_billable_record_names_its_billing_key_and_an_attribution_record_its_attribution_key():
    output = everything()
    assert {r["relationKeys"]["billingKeyOrNA"] for r in records(output, "billable_fact")} == {
        f["billingKey"] for f in output.billable
    }
    assert {r["relationKeys"]["attributionKeyOrNA"] for r in records(output, "attribution_fact")} == {
        f["attributionKey"] for f in output.attribution
    }
    terminal_types = {"impression", "failure"}
    for fact in output.attribution:
        if fact["eventType"] in terminal_types:
            record = next(r for r in output.records if r["payloadRef"]["payloadKey"] == fact["factId"])
            assert record["relationKeys"]["closureKeyOrNA"] != "NA"


def test_payload_types_go_with_record_types():
    pairs = {(r["recordType"], r["payloadRef"]["payloadType"]) for r in everything().records}
    assert pairs == {
        ("decision_audit", "factDecisionAuditLite"),
        ("billable_fact", "billableFactLite"),
        ("attribution_fact", "attributionFactLite"),
    }


def test_within_a_group_and_an_instant_the_audit_is_written_before_the_facts():
    rank = {"decision_audit": 0, "billable_fact": 1, "attribution_fact": 2}
    output = everything()
    groups: dict[tuple[str, str, str], list[tuple[int, str]]] = {}
    for r in output.records:
        group = (r["outputAt"], r["relationKeys"]["closureKeyOrNA"], r["sourceKeys"]["traceKey"])
        groups.setdefault(group, []).append((rank[r["recordType"]], r["recordKey"]))
    assert all(found == sorted(found) for found in groups.values())


def test_records_of_one_group_are_sorted_by_type_then_instant_then_key():
    def record(kind: RecordType, key: str, instant: float) -> Record:
        body = {"relationKeys": {"closureKeyOrNA": "c"}, "sourceKeys": {"traceKey": "t"}}
        return Record(kind, key, Status.NEW, T0 + round(instant * SECOND), body, {})

    wanted = [
        record(RecordType.AUDIT, "a", 1),
        record(RecordType.AUDIT, "b", 1),
        record(RecordType.AUDIT, "a", 1.5),
        record(RecordType.AUDIT, "z", 2),
        record(RecordType.BILLABLE, "a", 1),
        record(RecordType.ATTRIBUTION, "a", 0),
    ]
    assert in_write_order(wanted[::-1]) == wanted


def test_a_record_without_a_version_anchor_is_rejected():
    body = {
        "recordKey": "k",
        "recordStatus": "new",
        "versionAnchors": dict(ANCHORS),
        "decisionReasonCode": "f_accepted",
    }
    whole = Record(RecordType.AUDIT, "k", Status.NEW, T0, body, {})
    assert seal_record(whole) is whole
    for name in ANCHORS:
        for value in (None, ""):
            broken = whole._replace(body={**body, "versionAnchors": {**ANCHORS, name: value}})
            assert seal_record(broken).status is Status.REJECTED
            assert seal_record(broken).body["decisionReasonCode"] == "f_output_missing_version_anchor"
            assert seal_record(broken).body["recordStatus"] == "rejected"


def test_the_record_machine_is_the_table_of_the_specification():
    assert {(was.value, to.value) for (was, _), to in RECORD.edges.items()} == {
        ("new", "committed"),
        ("new", "duplicate"),
        ("new", "conflicted"),
        ("new", "rejected"),
        ("committed", "superseded"),
    }
    assert {state.value for state in RECORD.terminal} == {"duplicate", "conflicted", "rejected", "superseded"}


def test_output_at_is_the_instant_of_the_decision():
    output = everything()
    at_deadlines = {r["outputAt"] for r in output.records if "timeout" in r["decisionReasonCode"]}
    assert at_deadlines == {at(123)}
    assert {r["outputAt"] for r in output.records} - at_deadlines <= {at(i) for i in (0, 1, 2, 3, 4, 5, 201)}


def test_the_conflict_decision_of_an_audit_says_how_a_conflict_was_decided():
    def said(*lines: Any) -> set[tuple[str, str]]:
        return {(one["decisionReasonCode"], one["conflictDecision"]) for one in replayed(*lines).audits}

    late = event("impression", "late", eventAt=at(200))
    click = event("click", "c", eventAt=at(200))
    assert said(sent(0, event("ad_filled")), sent(200, late)) == {
        ("f_accepted", "none"),
        ("f_terminal_timeout_autofill", "none"),
        ("f_accepted", "superseded"),
    }
    assert ("f_billing_conflict_duplicate_impression", "duplicate") in said(
        sent(0, event("impression")), sent(1, event("impression", "again"))
    )
    assert ("f_terminal_conflict_impression_after_failure", "conflicted") in said(
        sent(0, terminal()), sent(1, event("impression"))
    )
    assert ("f_billing_ineligible_terminal_failure", "non_billable") in said(
        sent(0, event("ad_filled")), sent(200, click)
    )
    assert ("f_billing_click_without_impression", "non_billable") in said(sent(0, event("click")), tick(120))
    assert ("f_postback_terminal_conflict", "conflicted") in said(sent(0, terminal()), sent(1, event("postback")))
    assert said(sent(0, event("view"))) == {("f_event_type_unsupported", "none")}
    assert ("f_dedup_committed_duplicate", "duplicate") in said(sent(0, event("click")), sent(1, event("click")))
    assert ("f_dedup_payload_conflict", "rejected") in said(
        sent(0, event("click")), sent(1, event("click", clickTarget="other"))
    )
    assert ("f_closure_foreign_app", "rejected") in said(sent(0, event("click")), sent(1, event("click"), app="other"))


@pytest.mark.parametrize(
    ("first", "then", "points_at"),
    [
        (event("impression"), event("impression", "again"), ("billable_fact", "impression")),
        (event("impression"), terminal(), ("attribution_fact", "impression")),
        (terminal(), terminal("again"), ("attribution_fact", "terminal")),
        (terminal(), event("impression"), ("attribution_fact", "terminal")),
        (event("click"), event("click", "again"), ("attribution_fact", "click")),
        (terminal(), event("postback"), ("attribution_fact", "terminal")),
        (event("impression"), event("postback", postbackStatus="failed"), ("attribution_fact", "impression")),
    ],
)
def test_a_record_in_conflict_names_the_record_that_it_conflicts_with(first, then, points_at):
    output = replayed(sent(0, first), sent(1, then))
    known = {one["recordKey"]: (one["recordType"], one["sourceKeys"]["eventId"]) for one in output.records}
    (conflicting,) = [one for one in output.records if one["recordStatus"] in {"duplicate", "conflicted"}]
    assert conflicting["sourceKeys"]["eventId"] == then["eventId"]
    assert known[conflicting["conflictWithRecordKey"]] == points_at


@pytest.mark.parametrize("names", [("impression", "click"), ("click", "impression")])
def test_a_second_click_names_the_billable_click_that_it_conflicts_with(names):
    output = replayed(*[sent(n, event(name)) for n, name in enumerate(names)], sent(5, event("click", "again")))
    (duplicate,) = [one for one in output.records if one["recordStatus"] == "duplicate"]
    (click,) = [one for one in records(output, "billable_fact") if one["sourceKeys"]["eventId"] == "click"]
    assert duplicate["conflictWithRecordKey"] == click["recordKey"]


def test_a_late_impression_names_the_record_that_it_supersedes():
    output = replayed(sent(0, event("ad_filled")), sent(200, event("impression", eventAt=at(200))))
    (gone,) = [one for one in output.records if one["recordStatus"] == "superseded"]
    (heir,) = [one for one in output.records if one.get("supersededRecordKey")]
    assert (heir["recordType"], heir["supersededRecordKey"]) == ("attribution_fact", gone["recordKey"])
    assert gone["decisionReasonCode"] == "f_terminal_timeout_superseded"


@pytest.mark.parametrize("name", FIELDS)
def test_the_keys_of_an_event_reach_its_facts_and_records_as_sent(name):
    """What the delivery chain (E) keyed its events by is found again on everything that comes of them."""
    keys = {"traceKey": "t é", "requestKey": "r|1", "attemptKey": "a#1", "opportunityKey": "o 1"}
    link = {"responseReference": "ref:9", "renderAttemptId": "ra/9"}
    output = replayed(sent(0, event(name, "e-1", **keys, **link)))
    for fact in output.attribution + output.billable:
        assert (fact["traceKey"], fact["opportunityKey"]) == (keys["traceKey"], keys["opportunityKey"])
        found = [fact.get(f"{half}OrNA", fact.get(half)) for half in link]
        assert found == list(link.values())
    for record in output.records:
        assert record["sourceKeys"] == {
            "eventId": "e-1",
            "sourceEventId": output.acks[0]["ackItems"][0]["serverEventKey"],
            **keys,
            "responseReferenceOrNA": "ref:9",
            "renderAttemptIdOrNA": "ra/9",
        }
        assert record["relationKeys"]["closureKeyOrNA"] == "ref:9|ra/9"


def test_only_the_audit_of_the_event_that_is_accepted_tells_how_a_value_became_unknown():
    unknown = event("interaction", interactionType="wiggle", idempotencyKey="k")
    output = replayed(sent(0, unknown), sent(1, unknown))
    assert [(one["decisionAction"], one.get("rawValue")) for one in output.audits] == [
        ("attribution_emit", "wiggle"),
        ("drop", None),
    ]
