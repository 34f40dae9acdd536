"""The model's closures, facts and deadlines against values worked out by hand (F6, F13-F18, F20, F23)."""

import pytest

from tests.model.attribution import run
from tests.property.attribution.hand import (
    FAILED,
    GONE,
    OPEN,
    SHOWN,
    T0,
    TIMED_OUT,
    at,
    audits,
    batch,
    billed,
    closures,
    codes,
    event,
    facts,
    minute,
    sha,
    terminal,
    tick,
)

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


def test_an_event_applies_the_deadlines_of_its_own_closure_and_of_no_other():
    first = at(minute(0), batch(event("ad_filled", "e1")))
    other = event("postback", "e2", renderAttemptId="b")
    assert closures(run([first, at(minute(2), batch(5, other))])) == {"r|a": OPEN}
    assert closures(run([first, at(minute(2), batch(event("postback", "e2")))])) == {"r|a": TIMED_OUT}
    assert closures(run([first, {"tick": minute(2)}])) == {"r|a": TIMED_OUT}


def test_a_line_that_goes_back_in_time_finds_a_deadline_unapplied_that_only_others_passed():
    lines = [
        at(minute(0), batch(event("ad_filled", "e1"), event("click", "e2"))),
        at(minute(2), batch(event("ad_filled", "e3", renderAttemptId="b"))),
        at(minute(1), batch(event("impression", "e4"))),
    ]
    output = run(lines)
    assert sorted(fact["billableType"] for fact in output.billable) == ["billable_click", "billable_impression"]
