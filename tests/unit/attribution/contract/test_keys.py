"""Keys, worked out by hand with nothing but sha256: §3.8.12, §3.8.13, F7."""

from hashlib import sha256

import pytest

from tests.unit.attribution.said import ABSENT, FIELDS, at, event, records, replayed, sent, terminal, tick


def sha(text: str) -> str:
    return sha256(text.encode()).hexdigest()


DIGESTS = {
    "opportunity_created": "home",
    "auction_started": "bidding",
    "ad_filled": "cr",
    "impression": "cr|ra",
    "click": "ra|shop",
    "interaction": "ra|expand",
    "postback": "install|success",
    "error": "render|E1",
}


@pytest.mark.parametrize("name", FIELDS)
def test_the_computed_key_is_made_of_the_listed_fields(name):
    output = replayed(sent(0, event(name, eventId="not legal")))
    link = "NA|NA" if name in {"opportunity_created", "auction_started"} else "ref|ra"
    computed = sha(f"app|{name}|req|att|opp|{link}|{sha(DIGESTS[name])}")
    relation = records(output, "decision_audit")[0]["relationKeys"]
    assert relation["canonicalDedupKey"] == f"f_dedup_v1:computed:{computed}"


def dedup_key(*events, **changes) -> str:
    return records(replayed(sent(0, *events, **changes)), "decision_audit")[0]["relationKeys"]["canonicalDedupKey"]


def test_the_idempotency_key_goes_before_the_event_id_and_that_before_the_computed_key():
    assert dedup_key(event("click", "e1", idempotencyKey="k1")) == "f_dedup_v1:client_idempotency:app|k1"
    assert dedup_key(event("click", "e1")) == "f_dedup_v1:client_event_id:app|b1|e1"
    assert dedup_key(event("click", eventId="?", idempotencyKey="k1")) == "f_dedup_v1:client_idempotency:app|k1"
    assert dedup_key(event("click", eventId="?", idempotencyKey="?")).startswith("f_dedup_v1:computed:")


def test_an_event_id_is_never_used_without_its_namespace():
    first = sent(0, event("ad_filled", "e1"), batch="b1")
    other_batch = sent(1, event("ad_filled", "e1", responseReference="r2"), batch="b2")
    other_app = sent(2, event("ad_filled", "e1", responseReference="r3"), batch="b1", app="app2")
    output = replayed(first, other_batch, other_app)
    assert [ack["ackItems"][0]["ackStatus"] for ack in output.acks] == ["accepted"] * 3


def test_server_event_key_source_event_id_fact_ids_and_record_keys():
    output = replayed(sent(0, event("impression", "e1")))
    dedup = "f_dedup_v1:client_event_id:app|b1|e1"
    source = f"fe_{sha(dedup)[:32]}"
    assert output.acks[0]["ackItems"][0]["serverEventKey"] == source
    billable, attribution = output.billable[0], output.attribution[0]
    assert billable["factId"] == f"bf_{sha('ref|ra|billable_impression')[:32]}"
    assert attribution["attributionKey"] == f"attr_impression|{dedup}"
    assert attribution["factId"] == f"af_{sha(f'attr_impression|{dedup}')[:32]}"
    assert {fact["sourceEventId"] for fact in (billable, attribution, output.audits[0])} == {source}
    expected = {
        "decision_audit": f"{source}|both_emit|f_accepted",
        "billable_fact": billable["factId"],
        "attribution_fact": attribution["factId"],
    }
    for record in output.records:
        kind = record["recordType"]
        assert record["payloadRef"]["payloadKey"] == expected[kind]
        assert record["recordKey"] == sha(f"{kind}|{expected[kind]}|{dedup}|f_archive_v1")


def test_an_event_rejected_before_dedup_is_known_by_its_place_in_the_batch():
    output = replayed(sent(0, event("click"), event("view"), None))
    items = output.acks[0]["ackItems"]
    assert items[1]["serverEventKey"] == f"fe_{sha('app|b1|1')[:32]}"
    assert items[2]["serverEventKey"] == f"fe_{sha('app|b1|2')[:32]}"
    dropped = [record for record in output.records if record["decisionReasonCode"] == "f_event_type_unsupported"]
    assert dropped[0]["relationKeys"]["canonicalDedupKey"] == "NA"


def test_a_payload_conflict_is_known_by_its_dedup_key():
    output = replayed(sent(0, event("ad_filled", "e1"), event("ad_filled", "e1", creativeId="other")))
    first, second = output.acks[0]["ackItems"]
    assert second["ackReasonCode"] == "f_dedup_payload_conflict"
    assert first["serverEventKey"] == second["serverEventKey"]


def test_a_synthesised_failure_has_a_computed_key_of_its_opener_and_its_reason():
    output = replayed(sent(0, event("ad_filled", "e1", traceKey="t9")), tick(120))
    computed = sha(f"app|failure|req|att|opp|ref|ra|{sha('f_terminal_timeout_autofill')}")
    fact = output.attribution[1]
    assert fact["attributionKey"] == f"attr_failure_terminal|f_dedup_v1:computed:{computed}"
    assert fact["sourceEventId"] == f"fe_{sha(f'f_dedup_v1:computed:{computed}')[:32]}"
    assert (fact["eventType"], fact["traceKey"], fact["factAt"]) == ("failure", "t9", at(120))


def test_fact_at_is_the_event_at_of_the_source():
    output = replayed(sent(50, event("impression", eventAt=at(7.25))))
    assert output.billable[0]["factAt"] == output.attribution[0]["factAt"] == at(7.25)


def test_absent_keys_are_na_in_facts_and_records():
    output = replayed(sent(0, event("opportunity_created", responseReference=ABSENT)))
    fact, record = output.attribution[0], records(output, "attribution_fact")[0]
    assert (fact["responseReferenceOrNA"], fact["renderAttemptIdOrNA"]) == ("NA", "NA")
    assert record["relationKeys"]["closureKeyOrNA"] == record["relationKeys"]["billingKeyOrNA"] == "NA"


def test_a_terminal_error_is_hashed_as_the_error_it_was_sent_as():
    assert dedup_key(terminal(eventId="?")) == dedup_key(event("error", eventId="?"))
