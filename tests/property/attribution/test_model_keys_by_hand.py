"""The model's keys, ledger and order of decision against values worked out by hand (F5-F9, F12, F20)."""

import pytest

from tests.model.attribution import run
from tests.property.attribution.hand import (
    GONE,
    SHOWN,
    T0,
    at,
    audits,
    batch,
    billed,
    closures,
    codes,
    event,
    sha,
    terminal,
)

# ------------------------------------------------------------------------------------------------ keys (F7)


def test_the_keys_of_an_impression_written_out():
    output = run([at(T0, batch(event("impression", "e1")))])
    key = "f_dedup_v1:client_event_id:app|b1|e1"
    server = "fe_" + sha(key)[:32]
    assert output.acks == [
        {
            "batchId": "b1",
            "receivedAt": T0,
            "overallStatus": "accepted_all",
            "ackItems": [
                {
                    "eventId": "e1",
                    "eventIndex": 0,
                    "ackStatus": "accepted",
                    "ackReasonCode": "f_accepted",
                    "retryable": False,
                    "serverEventKey": server,
                }
            ],
        }
    ]
    assert output.billable == [
        {
            "factId": "bf_" + sha("r|a|billable_impression")[:32],
            "billableType": "billable_impression",
            "sourceEventId": server,
            "responseReference": "r",
            "renderAttemptId": "a",
            "opportunityKey": "op",
            "traceKey": "tr",
            "billingKey": "r|a|billable_impression",
            "factAt": T0,
            "factVersion": "1",
        }
    ]
    assert output.attribution == [
        {
            "factId": "af_" + sha("attr_impression|" + key)[:32],
            "attributionType": "attr_impression",
            "sourceEventId": server,
            "eventType": "impression",
            "responseReferenceOrNA": "r",
            "renderAttemptIdOrNA": "a",
            "opportunityKey": "op",
            "traceKey": "tr",
            "attributionKey": "attr_impression|" + key,
            "factAt": T0,
            "factVersion": "1",
            "recordStatus": "new",
        }
    ]
    assert audits(output) == [("both_emit", "f_accepted", 1)]
    assert closures(output) == {"r|a": SHOWN}
    assert sorted(record["recordType"] for record in output.records) == [
        "attribution_fact",
        "billable_fact",
        "decision_audit",
    ]


COMPUTED = {
    "opportunity_created": ("p", "NA", "NA"),
    "auction_started": ("bidding", "NA", "NA"),
    "ad_filled": ("c", "r", "NA"),
    "impression": ("c|a", "r", "a"),
    "click": ("a|t", "r", "a"),
    "interaction": ("a|expand", "r", "a"),
    "postback": ("install|success", "r", "NA"),
    "error": ("render|e1", "NA", "NA"),
}


@pytest.mark.parametrize("kind", COMPUTED)
def test_an_illegal_event_id_falls_back_to_the_computed_key(kind):
    semantic, response, render = COMPUTED[kind]
    raw = event(
        kind,
        "no id",
        responseReference=GONE if response == "NA" else response,
        renderAttemptId=GONE if render == "NA" else render,
    )
    item = run([at(T0, batch(raw))]).acks[0]["ackItems"][0]
    value = sha(f"app|{kind}|rq|at|op|{response}|{render}|{sha(semantic)}")
    assert item["serverEventKey"] == "fe_" + sha("f_dedup_v1:computed:" + value)[:32]


def test_the_idempotency_key_comes_before_the_event_id_and_an_illegal_one_is_ignored():
    item = run([at(T0, batch(event("click", "e1", idempotencyKey="k")))]).acks[0]["ackItems"][0]
    assert item["serverEventKey"] == "fe_" + sha("f_dedup_v1:client_idempotency:app|k")[:32]
    for illegal in ("", "a b", 5, "x" * 129, [], False):
        item = run([at(T0, batch(event("click", "e1", idempotencyKey=illegal)))]).acks[0]["ackItems"][0]
        assert item["serverEventKey"] == "fe_" + sha("f_dedup_v1:client_event_id:app|b1|e1")[:32]
        assert (item["ackStatus"], item["ackReasonCode"]) == ("accepted", "f_idempotency_key_invalid_fallback")
    item = run([at(T0, batch(event("click", "e1", idempotencyKey=None)))]).acks[0]["ackItems"][0]
    assert item["ackReasonCode"] == "f_accepted"


def test_a_verified_global_id_is_the_same_event_in_another_batch():
    raw = event("click", "0189abcd-0000-7000-8000-000000000000", eventIdScope="global_unique")
    declared = {"eventIdUniqueness": "uuid"}
    output = run([at(T0, batch(raw, extensions=declared)), at(T0, batch(raw, batch_id="b2", extensions=declared))])
    assert codes(output, 1) == ["f_dedup_committed_duplicate"]
    assert output.acks[0]["ackItems"][0]["serverEventKey"] == output.acks[1]["ackItems"][0]["serverEventKey"]
    assert output.attribution[0]["attributionKey"] == (
        "attr_click_pending|f_dedup_v1:client_event_id:app|global|0189abcd-0000-7000-8000-000000000000"
    )


# ------------------------------------------------------------------------------------------------ enums (F5, F8)


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        ("auction_started", "auctionChannel"),
        ("interaction", "interactionType"),
        ("postback", "postbackStatus"),
        ("error", "errorStage"),
    ],
)
def test_an_unknown_sub_enum_is_accepted_and_audited(kind, field):
    for value in ("Success", "unknown", "zzz"):
        output = run([at(T0, batch(event(kind, "e", **{field: value})))])
        assert codes(output) == ["f_accepted_unknown_enum"]
        assert output.audits[0]["unknownValues"] == [
            {"rawValue": value, "canonicalValue": "unknown", "fieldPath": field}
        ]
        output = run([at(T0, batch(event(kind, "e", idempotencyKey="", **{field: value})))])
        assert codes(output) == ["f_idempotency_key_invalid_fallback"]


def test_the_fingerprint_uses_the_raw_value_of_a_sub_enum():
    first = event("interaction", "e", idempotencyKey="k", interactionType="x")
    again = event("interaction", "e", idempotencyKey="k", interactionType="y")
    assert codes(run([at(T0, batch(first)), at(T0, batch(again))]), 1) == ["f_dedup_payload_conflict"]


# ------------------------------------------------------------------------------------------------ dedup (F9)


def test_the_same_batch_again_is_a_duplicate_with_the_same_keys_and_counted():
    body = batch(event("ad_filled", "e1"), event("ad_filled", "e1"), event("impression", "e2"))
    output = run([at(T0, body), at(T0, body), at(T0, body)])
    assert codes(output, 0) == ["f_accepted", "f_dedup_inflight_duplicate", "f_accepted"]
    assert codes(output, 1) == codes(output, 2) == ["f_dedup_committed_duplicate"] * 3
    assert output.acks[0]["overallStatus"] == output.acks[1]["overallStatus"] == "partial_success"
    assert audits(output) == [
        ("attribution_emit", "f_accepted", 1),
        ("both_emit", "f_accepted", 1),
        ("drop", "f_dedup_committed_duplicate", 2),
        ("drop", "f_dedup_committed_duplicate", 4),
        ("drop", "f_dedup_inflight_duplicate", 1),
    ]
    assert len(output.records) == 5 + 2 + 1


def test_an_idempotency_key_shared_by_two_payloads_is_a_conflict():
    output = run(
        [at(T0, batch(event("click", "e1", idempotencyKey="k"), event("interaction", "e2", idempotencyKey="k")))]
    )
    assert codes(output) == ["f_accepted", "f_dedup_payload_conflict"]
    assert output.acks[0]["ackItems"][1]["ackStatus"] == "rejected"
    assert len({item["serverEventKey"] for item in output.acks[0]["ackItems"]}) == 1


def test_past_the_window_a_key_starts_its_second_cycle():
    def filled(day, fraction=""):
        now = f"2026-03-{day}T00:00:00{fraction}Z"
        return at(now, batch(event("ad_filled", "e", idempotencyKey="k", eventAt=now, renderAttemptId=GONE)))

    output = run([filled("01"), filled("04"), filled("04", ".000001"), filled("07", ".000001"), filled("08")])
    key = "f_dedup_v1:client_idempotency:app|k"
    assert [ack["ackItems"][0]["ackReasonCode"] for ack in output.acks] == [
        "f_accepted",
        "f_dedup_committed_duplicate",
        "f_accepted",
        "f_dedup_committed_duplicate",
        "f_accepted",
    ]
    cycles = [key, key, key + "#2", key + "#2", key + "#3"]
    assert [ack["ackItems"][0]["serverEventKey"] for ack in output.acks] == ["fe_" + sha(k)[:32] for k in cycles]
    assert [fact["attributionKey"] for fact in output.attribution] == [
        "attr_ad_filled|" + key,
        "attr_ad_filled|" + key + "#2",
        "attr_ad_filled|" + key + "#3",
    ]


def test_a_billing_event_has_fourteen_days():
    def postback(day, fraction=""):
        now = f"2026-03-{day}T00:00:00{fraction}Z"
        return at(now, batch(event("postback", "e", idempotencyKey="k", eventAt=now)))

    output = run([postback("01"), postback("15"), postback("15", ".000001")])
    assert [codes(output, i)[0] for i in range(3)] == ["f_accepted", "f_dedup_committed_duplicate", "f_accepted"]


def test_what_is_refused_holds_no_ledger_row_and_a_closure_duplicate_does():
    shown = event("impression", "e1")
    second = event("impression", "e2")
    output = run([at(T0, batch(shown)), at(T0, batch(second)), at(T0, batch(second))])
    assert codes(output, 1) == ["f_billing_conflict_duplicate_impression"]
    assert codes(output, 2) == ["f_dedup_committed_duplicate"]
    foreign = at(T0, batch(event("click", "e9"), app="other"))
    output = run([at(T0, batch(shown)), foreign, foreign])
    assert codes(output, 1) == codes(output, 2) == ["f_closure_foreign_app"]
    assert ("drop", "f_closure_foreign_app", 2) in audits(output)


# ------------------------------------------------------------------------------------------------ order (F12)


def test_events_are_decided_by_time_then_id_then_position():
    later = "2026-03-01T12:00:01Z"
    output = run([at(T0, batch(event("impression", "a", eventAt=later), event("impression", "b")))])
    assert codes(output) == ["f_billing_conflict_duplicate_impression", "f_accepted"]
    output = run([at(T0, batch(event("impression", "b"), event("impression", "a")))])
    assert codes(output) == ["f_billing_conflict_duplicate_impression", "f_accepted"]
    # Not text counts as empty and comes first.
    output = run([at(T0, batch(event("impression", "a"), event("impression", 7)))])
    assert codes(output) == ["f_billing_conflict_duplicate_impression", "f_accepted"]
    # The same instant written with another offset is a tie.
    output = run(
        [
            at(
                T0,
                batch(
                    event("impression", "b", eventAt="2026-03-01T11:00:00Z"),
                    event("impression", "a", eventAt="2026-03-01T12:00:00+01:00"),
                ),
            )
        ]
    )
    assert codes(output) == ["f_billing_conflict_duplicate_impression", "f_accepted"]


def test_a_terminal_error_waits_for_the_impression_of_its_closure():
    early = "2026-03-01T11:00:00Z"
    output = run([at(T0, batch(terminal("e1", eventAt=early), event("impression", "e2")))])
    assert codes(output) == ["f_terminal_conflict_failure_after_impression", "f_accepted"]
    assert closures(output) == {"r|a": SHOWN}
    # Another closure's impression keeps nobody waiting.
    output = run([at(T0, batch(terminal("e1", eventAt=early), event("impression", "e2", renderAttemptId="b")))])
    assert codes(output) == ["f_accepted", "f_accepted"]
    # An impression that did not pass checks 1-6 is not among them.
    output = run([at(T0, batch(terminal("e1", eventAt=early), event("impression", "e2", eventAt="never")))])
    assert codes(output) == ["f_accepted", "f_event_time_invalid"]
    # The wait puts it behind the clicks of its closure too.
    output = run([at(T0, batch(terminal("e1", eventAt=early), event("impression", "e2"), event("click", "e3")))])
    assert codes(output) == ["f_terminal_conflict_failure_after_impression", "f_accepted", "f_accepted"]
    assert billed(output) == ["r|a|billable_click", "r|a|billable_impression"]
