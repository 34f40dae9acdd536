"""The generator is worth its time only while its logs reach every rule."""

import json

from hypothesis import given, settings

from tests.model.attribution import read_log, run
from tests.property.attribution.logs import logs, seeded_log
from tests.support.examples import examples

REACHED = {
    "f_accepted",
    "f_accepted_unknown_enum",
    "f_batch_events_invalid",
    "f_batch_id_invalid",
    "f_batch_malformed",
    "f_batch_missing_required",
    "f_batch_schema_unsupported",
    "f_billing_click_without_impression",
    "f_billing_conflict_duplicate_click",
    "f_billing_conflict_duplicate_impression",
    "f_billing_ineligible_terminal_failure",
    "f_closure_foreign_app",
    "f_dedup_committed_duplicate",
    "f_dedup_inflight_duplicate",
    "f_dedup_payload_conflict",
    "f_event_id_global_uniqueness_unverified",
    "f_event_id_invalid_no_fallback",
    "f_event_missing_required",
    "f_event_stale_outside_dedup_window",
    "f_event_time_invalid",
    "f_event_type_unsupported",
    "f_idempotency_key_invalid_fallback",
    "f_postback_terminal_conflict",
    "f_terminal_conflict_failure_after_impression",
    "f_terminal_conflict_impression_after_failure",
    "f_terminal_duplicate_failure",
    "f_terminal_timeout_autofill",
}


def test_the_seeded_logs_reach_every_code_status_and_state():
    codes, facts, states, cycles = set(), set(), set(), 0
    for seed in range(100):
        output = run(seeded_log(seed, lines=25, events=7))
        codes |= {ack["code"] for ack in output.acks if "code" in ack}
        codes |= {item["ackReasonCode"] for ack in output.acks for item in ack.get("ackItems", [])}
        codes |= {audit["decisionReasonCode"] for audit in output.audits}
        facts |= {(fact["attributionType"], fact["recordStatus"]) for fact in output.attribution}
        states |= {(closure["state"], closure["terminalSource"]) for closure in output.closures}
        cycles += sum("#" in fact["attributionKey"] for fact in output.attribution)
    assert codes == REACHED
    assert {status for _, status in facts} == {"new", "duplicate", "conflicted", "superseded"}
    assert len({kind for kind, _ in facts}) == 10
    assert len(states) == 4
    assert cycles > 0


@settings(max_examples=examples(30))
@given(logs())
def test_a_log_is_json_and_running_it_twice_gives_the_same(lines):
    text = "\n".join(json.dumps(line) for line in lines)
    assert read_log(text) == lines
    assert vars(run(lines)) == vars(run(read_log(text)))


@settings(max_examples=examples(40))
@given(logs())
def test_the_model_keeps_what_the_specification_promises(lines):
    """§3.8.16, §3.8.20, §3.8.25: one acceptance a key, one fact a billing key, one audit a decision."""
    output = run([*lines, {"tick": "2030-01-01T00:00:00Z"}])
    accepted = [
        item["serverEventKey"]
        for ack in output.acks
        for item in ack.get("ackItems", [])
        if item["ackStatus"] == "accepted"
    ]
    assert len(set(accepted)) == len(accepted)
    billing = [fact["billingKey"] for fact in output.billable]
    assert len(set(billing)) == len(billing)
    attribution = [fact["attributionKey"] for fact in output.attribution]
    assert len(set(attribution)) == len(attribution)
    assert all(closure["state"] != "open" for closure in output.closures)
    events = sum(len(ack.get("ackItems", [])) for ack in output.acks)
    at_deadlines = ("f_terminal_timeout_autofill", "f_billing_click_without_impression")
    of_events = sum(a["count"] for a in output.audits if a["decisionReasonCode"] not in at_deadlines)
    keys = {(fact["attributionType"], fact["attributionKey"].partition("|")[2]) for fact in output.attribution}
    upgrades = sum(("attr_click", key) in keys for kind, key in keys if kind == "attr_click_pending")
    assert of_events == events + upgrades  # F20: an upgraded click leaves a second audit
