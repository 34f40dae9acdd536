"""The model's keys, ledger, closures and facts against values worked out by hand (F5-F9, F12-F18, F20, F23)."""

import pytest

from tests.model.attribution import run
from tests.property.attribution.hand import (
    GONE,
    T0,
    at,
    audits,
    batch,
    billed,
    closures,
    codes,
    event,
    facts,
    sha,
    tick,
)

FAILED = ("closed_failure", "error")
TIMED_OUT = ("closed_failure", "system_timeout_synthesized")
SHOWN = ("closed_success", "impression")
OPEN = ("open", None)


def terminal(event_id, **fields):
    return event("error", event_id, errorClass="terminal", **fields)


def minute(number, seconds="00"):
    return f"2026-03-01T12:{number:02}:{seconds}Z"


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


# ------------------------------------------------------------------------------------------------ closures (F13, F14)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("opportunity_created", {}),
        ("auction_started", {}),
        ("postback", {}),
        ("ad_filled", {"r|a": OPEN}),
        ("interaction", {"r|a": OPEN}),
        ("click", {"r|a": OPEN}),
        ("error", {"r|a": OPEN}),
        ("impression", {"r|a": SHOWN}),
    ],
)
def test_which_types_open_a_closure(kind, expected):
    assert closures(run([at(T0, batch(event(kind, "e")))])) == expected


@pytest.mark.parametrize("kind", ["ad_filled", "postback", "error", "opportunity_created"])
def test_an_incomplete_closure_key_opens_nothing(kind):
    assert closures(run([at(T0, batch(event(kind, "e", renderAttemptId=None)))])) == {}
    assert closures(run([at(T0, batch(event(kind, "e", renderAttemptId=5)))])) == {}


def test_a_timeout_falls_due_at_its_deadline_and_not_before():
    opened = at(minute(0), batch(event("ad_filled", "e", traceKey="of the opener")))
    assert closures(run([opened, tick("2026-03-01T12:01:59.999999Z")])) == {"r|a": OPEN}
    output = run([opened, tick(minute(59))])
    assert closures(output) == {"r|a": TIMED_OUT}
    key = "f_dedup_v1:computed:" + sha("app|failure|rq|at|op|r|a|" + sha("f_terminal_timeout_autofill"))
    fact = output.attribution[1]
    assert fact == {
        "factId": "af_" + sha("attr_failure_terminal|" + key)[:32],
        "attributionType": "attr_failure_terminal",
        "sourceEventId": "fe_" + sha(key)[:32],
        "eventType": "failure",
        "responseReferenceOrNA": "r",
        "renderAttemptIdOrNA": "a",
        "opportunityKey": "op",
        "traceKey": "of the opener",
        "attributionKey": "attr_failure_terminal|" + key,
        "factAt": minute(2),
        "factVersion": "1",
        "recordStatus": "new",
    }
    assert audits(output) == [
        ("attribution_emit", "f_accepted", 1),
        ("attribution_emit", "f_terminal_timeout_autofill", 1),
    ]
    assert output.audits[1]["decidedAt"] == minute(2)


def test_a_second_event_does_not_move_the_deadline():
    lines = [
        at(minute(0), batch(event("ad_filled", "e1"))),
        at(minute(1), batch(event("interaction", "e2"), batch_id="b2")),
    ]
    assert closures(run([*lines, tick(minute(2))])) == {"r|a": TIMED_OUT}


def test_an_event_received_at_the_deadline_finds_the_timeout_applied():
    opened = at(minute(0), batch(event("ad_filled", "e1")))
    failure = batch(terminal("e2"), batch_id="b2")
    assert codes(run([opened, at("2026-03-01T12:01:59.999999Z", failure)]), 1) == ["f_accepted"]
    output = run([opened, at(minute(2), failure)])
    assert codes(output, 1) == ["f_terminal_duplicate_failure"]
    assert closures(output) == {"r|a": TIMED_OUT}
    assert facts(output) == [
        ("attr_ad_filled", "new"),
        ("attr_failure_terminal", "duplicate"),
        ("attr_failure_terminal", "new"),
    ]


def test_a_terminal_error_closes_and_its_second_is_a_duplicate():
    output = run([at(T0, batch(terminal("e1"))), at(T0, batch(terminal("e2")))])
    assert [codes(output, 0), codes(output, 1)] == [["f_accepted"], ["f_terminal_duplicate_failure"]]
    assert closures(output) == {"r|a": FAILED}
    assert facts(output) == [("attr_failure_terminal", "duplicate"), ("attr_failure_terminal", "new")]
    assert audits(output) == [
        ("attribution_emit", "f_accepted", 1),
        ("attribution_emit", "f_terminal_duplicate_failure", 1),
    ]
    # Without a complete key, or of another class, it is an error like any other.
    output = run([at(T0, batch(terminal("e1", renderAttemptId=GONE), event("error", "e2", errorClass="Terminal")))])
    assert facts(output) == [("attr_error", "new"), ("attr_error", "new")]
    assert closures(output) == {"r|a": OPEN}


# ------------------------------------------------------------------------------------------------ F15, F17


def test_a_second_impression_is_kept_as_a_duplicate_record():
    output = run([at(T0, batch(event("impression", "e1"))), at(T0, batch(event("impression", "e2")))])
    assert output.acks[1]["ackItems"][0]["ackStatus"] == "duplicate"
    assert codes(output, 1) == ["f_billing_conflict_duplicate_impression"]
    assert facts(output) == [("attr_impression", "duplicate"), ("attr_impression", "new")]
    assert billed(output) == ["r|a|billable_impression"]
    assert ("attribution_emit", "f_billing_conflict_duplicate_impression", 1) in audits(output)


def test_a_late_impression_supersedes_a_synthesised_failure():
    output = run([at(minute(0), batch(event("ad_filled", "e1"))), at(minute(9), batch(event("impression", "e2")))])
    assert codes(output, 1) == ["f_accepted"]
    assert closures(output) == {"r|a": SHOWN}
    assert facts(output) == [
        ("attr_ad_filled", "new"),
        ("attr_failure_terminal", "superseded"),
        ("attr_impression", "new"),
    ]
    assert billed(output) == ["r|a|billable_impression"]
    assert [r["recordStatus"] for r in output.records if "recordStatus" in r] == ["new", "superseded", "new", "new"]


def test_a_late_impression_supersedes_although_a_real_failure_came_between():
    lines = [
        at(minute(0), batch(event("ad_filled", "e1"))),
        at(minute(3), batch(terminal("e2"))),
        at(minute(4), batch(event("impression", "e3"))),
    ]
    output = run(lines)
    assert [codes(output, i)[0] for i in (1, 2)] == ["f_terminal_duplicate_failure", "f_accepted"]
    assert closures(output) == {"r|a": SHOWN}


def test_an_impression_over_a_real_failure_is_a_conflict():
    output = run([at(T0, batch(terminal("e1"))), at(T0, batch(event("impression", "e2")))])
    assert output.acks[1]["ackItems"][0]["ackStatus"] == "duplicate"
    assert codes(output, 1) == ["f_terminal_conflict_impression_after_failure"]
    assert facts(output) == [("attr_failure_terminal", "new"), ("attr_impression", "conflicted")]
    assert (billed(output), closures(output)) == ([], {"r|a": FAILED})


def test_a_failure_after_an_impression_is_a_duplicate():
    output = run([at(T0, batch(event("impression", "e1"))), at(T0, batch(terminal("e2")))])
    assert output.acks[1]["ackItems"][0]["ackStatus"] == "duplicate"
    assert codes(output, 1) == ["f_terminal_conflict_failure_after_impression"]
    assert closures(output) == {"r|a": SHOWN}


# ------------------------------------------------------------------------------------------------ clicks (F15, F16)


def test_a_click_after_the_impression_is_billed_once():
    output = run(
        [
            at(T0, batch(event("impression", "e1"))),
            at(minute(9), batch(event("click", "e2"))),
            at(minute(9), batch(event("click", "e3"))),
        ]
    )
    assert [codes(output, 1), codes(output, 2)] == [["f_accepted"], ["f_billing_conflict_duplicate_click"]]
    assert billed(output) == ["r|a|billable_click", "r|a|billable_impression"]
    assert facts(output) == [("attr_click", "duplicate"), ("attr_click", "new"), ("attr_impression", "new")]
    assert audits(output) == [
        ("attribution_emit", "f_billing_conflict_duplicate_click", 1),
        ("both_emit", "f_accepted", 1),
        ("both_emit", "f_accepted", 1),
    ]


def test_a_pending_click_is_upgraded_by_the_impression_with_the_click_as_source():
    click = event("click", "e1", idempotencyKey="no key", eventAt="2026-03-01T11:59:00Z", traceKey="of the click")
    output = run([at(minute(0), batch(click)), at("2026-03-01T12:01:59.999999Z", batch(event("impression", "e2")))])
    assert codes(output, 0) == ["f_idempotency_key_invalid_fallback"]
    key = "f_dedup_v1:client_event_id:app|b1|e1"
    fact = next(fact for fact in output.billable if fact["billableType"] == "billable_click")
    assert (fact["sourceEventId"], fact["factAt"], fact["traceKey"]) == (
        "fe_" + sha(key)[:32],
        "2026-03-01T11:59:00Z",
        "of the click",
    )
    assert facts(output) == [("attr_click", "new"), ("attr_click_pending", "new"), ("attr_impression", "new")]
    assert audits(output) == [
        ("attribution_emit", "f_idempotency_key_invalid_fallback", 1),
        ("both_emit", "f_accepted", 1),
        ("both_emit", "f_idempotency_key_invalid_fallback", 1),
    ]
    assert codes(run([at(minute(0), batch(click, event("click", "e9")))])) == [
        "f_idempotency_key_invalid_fallback",
        "f_billing_conflict_duplicate_click",
    ]


def test_a_click_whose_impression_comes_at_the_deadline_stays_without():
    output = run([at(minute(0), batch(event("click", "e1"))), at(minute(2), batch(event("impression", "e2")))])
    assert billed(output) == ["r|a|billable_impression"]
    assert ("attribution_emit", "f_billing_click_without_impression", 1) in audits(output)
    assert facts(output) == [
        ("attr_click_pending", "new"),
        ("attr_failure_terminal", "superseded"),
        ("attr_impression", "new"),
    ]
    assert {a["decidedAt"] for a in output.audits if a["decisionReasonCode"] != "f_accepted"} == {minute(2)}


def test_a_timeout_does_not_end_the_wait_of_a_click():
    lines = [at(minute(0), batch(event("ad_filled", "e1"))), at(minute(1), batch(event("click", "e2")))]
    output = run([*lines, at(minute(2, "30"), batch(event("impression", "e3")))])
    assert billed(output) == ["r|a|billable_click", "r|a|billable_impression"]
    assert ("attr_failure_terminal", "superseded") in facts(output)
    # A second click meanwhile is one on a closure with a click still pending.
    output = run([*lines, at(minute(2, "30"), batch(event("click", "e3")))])
    assert codes(output, 2) == ["f_billing_conflict_duplicate_click"]
    # At its own deadline the wait is over; the next click is one on a failed closure.
    output = run([*lines, at(minute(3), batch(event("click", "e3")))])
    assert codes(output, 2) == ["f_accepted"]
    assert ("attribution_emit", "f_billing_click_without_impression", 1) in audits(output)
    assert ("attribution_emit", "f_billing_ineligible_terminal_failure", 1) in audits(output)


def test_a_real_failure_leaves_the_click_to_its_deadline():
    lines = [at(minute(0), batch(event("click", "e1"))), at(minute(1), batch(terminal("e2")))]
    assert ("attribution_emit", "f_billing_click_without_impression", 1) in audits(run([*lines, tick(minute(2))]))
    output = run([*lines, at(minute(1, "30"), batch(event("impression", "e3"))), tick(minute(2))])
    assert codes(output, 2) == ["f_terminal_conflict_impression_after_failure"]
    assert billed(output) == []


@pytest.mark.parametrize("opened", [terminal("e1"), event("ad_filled", "e1")])
def test_a_click_on_a_failed_closure_is_attributed_and_not_billed(opened):
    lines = [at(minute(0), batch(opened)), at(minute(5), batch(event("click", "e2", idempotencyKey="")))]
    output = run(lines)
    assert codes(output, 1) == ["f_idempotency_key_invalid_fallback"]
    assert ("attribution_emit", "f_billing_ineligible_terminal_failure", 1) in audits(output)
    assert ("attr_click", "new") in facts(output)
    assert billed(output) == []
    # Twice the same: neither is billed nor pending.
    output = run([*lines, at(minute(5), batch(event("click", "e3")))])
    assert codes(output, 2) == ["f_accepted"]


def test_after_a_late_impression_a_new_click_is_billed_and_the_old_one_is_not():
    output = run(
        [
            at(minute(0), batch(event("ad_filled", "e1"))),
            at(minute(5), batch(event("click", "e2"))),
            at(minute(6), batch(event("impression", "e3"))),
            at(minute(7), batch(event("click", "e4"))),
        ]
    )
    key = "f_dedup_v1:client_event_id:app|b1|e4"
    assert [f["sourceEventId"] for f in output.billable if f["billableType"] == "billable_click"] == [
        "fe_" + sha(key)[:32]
    ]


# ------------------------------------------------------------------------------------------------ F18, F23, the letter


@pytest.mark.parametrize(
    ("first", "status", "record"),
    [
        (event("impression", "e1"), "failed", "conflicted"),
        (event("impression", "e1"), "success", "new"),
        (event("impression", "e1"), "pending", "new"),
        (event("impression", "e1"), "other", "new"),
        (terminal("e1"), "success", "conflicted"),
        (terminal("e1"), "failed", "new"),
        (event("ad_filled", "e1"), "failed", "new"),
        (event("ad_filled", "e1"), "success", "new"),
    ],
)
def test_a_postback_against_the_terminal_state(first, status, record):
    output = run([at(T0, batch(first, event("postback", "e2", postbackStatus=status)))])
    assert output.acks[0]["ackItems"][1]["ackStatus"] == "accepted"
    expected = "f_accepted_unknown_enum" if status == "other" else "f_accepted"
    assert codes(output)[1] == expected
    assert ("attr_postback", record) in facts(output)
    assert (("attribution_emit", "f_postback_terminal_conflict", 1) in audits(output)) == (record == "conflicted")
    without = event("postback", "e2", postbackStatus=status, renderAttemptId=None)
    assert ("attr_postback", "new") in facts(run([at(T0, batch(first, without))]))


def test_a_postback_of_success_after_a_timeout_is_a_conflict():
    output = run([at(minute(0), batch(event("ad_filled", "e1"))), at(minute(2), batch(event("postback", "e2")))])
    assert ("attr_postback", "conflicted") in facts(output)


@pytest.mark.parametrize(
    "kind", ["ad_filled", "impression", "click", "interaction", "postback", "error", "auction_started"]
)
def test_a_closure_belongs_to_the_app_that_opened_it(kind):
    output = run([at(T0, batch(event("interaction", "e1"))), at(T0, batch(event(kind, "e2"), app="other"))])
    item = output.acks[1]["ackItems"][0]
    assert (item["ackStatus"], item["ackReasonCode"]) == ("rejected", "f_closure_foreign_app")
    assert item["serverEventKey"] == "fe_" + sha("f_dedup_v1:client_event_id:other|b1|e2")[:32]
    assert len(output.attribution) == 1


def test_a_closure_key_is_its_text():
    output = run(
        [
            at(T0, batch(event("impression", "e1", responseReference="r|x", renderAttemptId="a"))),
            at(T0, batch(event("impression", "e2", responseReference="r", renderAttemptId="x|a"))),
        ]
    )
    assert codes(output, 1) == ["f_billing_conflict_duplicate_impression"]


def test_unknown_extra_fields_decide_nothing():
    plain = run([at(T0, batch(event("click", "e")))])
    extra = run([at(T0, batch(event("click", "e", errorStage="zz", whatever={"a": [1]}, errorClass="terminal")))])
    assert (plain.acks, plain.attribution, plain.closures) == (extra.acks, extra.attribution, extra.closures)


def test_a_batch_applies_the_deadlines_of_closures_it_does_not_name():
    lines = [at(minute(0), batch(event("ad_filled", "e1"))), at(minute(2), batch(5))]
    assert closures(run(lines)) == {"r|a": TIMED_OUT}
    assert closures(run([lines[0], at(minute(2), 5)])) == {"r|a": OPEN}  # a refused envelope is no event
