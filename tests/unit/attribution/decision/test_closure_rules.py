"""Closures, their deadlines and their conflicts: §3.8.17 to §3.8.20, §3.8.24, F12 to F18, F23, A1."""

from typing import Any

import pytest

from patra.attribution.decision.closure_state import CLOSURE, ClosureState
from tests.unit.attribution.said import (
    ABSENT,
    FIELDS,
    answered,
    answers,
    at,
    audited,
    billed,
    closures,
    event,
    facts,
    records,
    replayed,
    sent,
    terminal,
    tick,
)

ACCEPTED = ("accepted", "f_accepted")
SYNTHESISED = ("closed_failure", "system_timeout_synthesized")
OPENERS = ["ad_filled", "interaction", "click", "error"]


# --- opening (§3.8.17, F13) ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPENERS)
def test_a_render_signal_opens_its_closure(name):
    assert closures(replayed(sent(0, event(name)))) == {"ref|ra": ("open", None)}


@pytest.mark.parametrize("name", ["opportunity_created", "auction_started", "postback"])
def test_other_events_open_none_even_with_a_complete_key(name):
    output = replayed(sent(0, event(name, responseReference="ref", renderAttemptId="ra")))
    assert closures(output) == {}
    assert records(output, "attribution_fact")[0]["relationKeys"]["closureKeyOrNA"] == "ref|ra"


@pytest.mark.parametrize("name", ["ad_filled", "error", "postback"])
def test_without_a_render_attempt_there_is_no_closure(name):
    assert closures(replayed(sent(0, event(name, renderAttemptId=ABSENT)), tick(1000))) == {}


def test_an_impression_opens_and_closes_in_one_step():
    output = replayed(sent(0, event("impression")), tick(1000))
    assert closures(output) == {"ref|ra": ("closed_success", "impression")}
    assert facts(output) == [("attr_impression", "committed")]


def test_a_terminal_error_opens_and_closes_in_one_step_and_is_a_failure():
    output = replayed(sent(0, terminal()), tick(1000))
    assert closures(output) == {"ref|ra": ("closed_failure", "error")}
    assert facts(output) == [("attr_failure_terminal", "committed")]
    assert output.attribution[0]["eventType"] == "failure"
    assert answers(output) == [ACCEPTED]


@pytest.mark.parametrize("value", ["Terminal", "transient", "", None, 1, ABSENT])
def test_an_error_of_another_class_is_not_terminal(value):
    output = replayed(sent(0, event("error", errorClass=value)))
    assert facts(output) == [("attr_error", "committed")]
    assert closures(output) == {"ref|ra": ("open", None)}


def test_a_terminal_error_without_a_complete_key_is_an_error():
    assert facts(replayed(sent(0, terminal(renderAttemptId=ABSENT)))) == [("attr_error", "committed")]


def test_the_closure_machine_is_the_table_of_the_specification():
    assert {(was.value, to.value) for (was, _), to in CLOSURE.edges.items()} == {
        ("open", "closed_success"),
        ("open", "closed_failure"),
        ("closed_failure", "closed_success"),
    }
    assert CLOSURE.initial is ClosureState.OPEN


@pytest.mark.parametrize("name", sorted(set(FIELDS) - {"impression"}))
def test_nothing_but_an_impression_and_a_terminal_error_closes_a_closure(name):
    other = event(name, "other", responseReference="ref", renderAttemptId="ra", idempotencyKey="k")
    assert closures(replayed(sent(0, event("ad_filled")), sent(1, other))) == {"ref|ra": ("open", None)}


@pytest.mark.parametrize("ended", [event("impression", "i"), terminal("t")])
def test_a_closure_that_is_closed_never_opens_again(ended):
    closed = closures(replayed(sent(0, ended)))
    more = [event(name, f"{name}-2", responseReference="ref", renderAttemptId="ra") for name in FIELDS]
    assert (
        closures(replayed(sent(0, ended), sent(1, *more), sent(500, event("ad_filled", "late")), tick(900))) == closed
    )


# --- the timeout (§3.8.18, F13, A1) ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPENERS)
def test_a_closure_without_a_terminal_event_fails_after_120_seconds(name):
    assert closures(replayed(sent(10, event(name)), tick(129.999999))) == {"ref|ra": ("open", None)}
    assert closures(replayed(sent(10, event(name)), tick(130))) == {"ref|ra": SYNTHESISED}


def test_the_timeout_is_written_once_as_of_its_deadline_whenever_it_is_noticed():
    opened = sent(0, event("ad_filled"))
    at_once, late, by_event = (
        replayed(opened, tick(120), tick(200), tick(5000)),
        replayed(opened, tick(5000)),
        replayed(opened, sent(5000, event("postback", eventAt=at(5000), postbackStatus="pending"), batch="other")),
    )
    for output in (at_once, late, by_event):
        failure = [fact for fact in output.attribution if fact["attributionType"] == "attr_failure_terminal"]
        assert [fact["factAt"] for fact in failure] == [at(120)]
        audit = [audit for audit in output.audits if audit["decisionReasonCode"] == "f_terminal_timeout_autofill"]
        assert [(a["decidedAt"], a["decisionAction"], a["count"]) for a in audit] == [(at(120), "attribution_emit", 1)]
        outputs = [r["outputAt"] for r in output.records if r["decisionReasonCode"] == "f_terminal_timeout_autofill"]
        assert outputs == [at(120)] * 2
    assert at_once.records == late.records


def test_the_wait_begins_with_the_event_that_opened_the_closure_and_later_ones_do_not_prolong_it():
    output = replayed(sent(0, event("ad_filled")), sent(100, event("interaction")), tick(120))
    assert closures(output) == {"ref|ra": SYNTHESISED}


def test_an_event_at_the_deadline_finds_the_timeout_applied_and_one_before_it_does_not():
    opened, late = sent(0, event("ad_filled")), event("impression")
    assert facts(replayed(opened, sent(119.999999, late))) == [
        ("attr_ad_filled", "committed"),
        ("attr_impression", "committed"),
    ]
    assert ("attr_failure_terminal", "superseded") in facts(replayed(opened, sent(120, late)))


def test_a_synthesised_failure_takes_its_keys_from_the_opener():
    keys = {"traceKey": "t1", "requestKey": "r1", "attemptKey": "a1", "opportunityKey": "o1"}
    output = replayed(sent(0, event("ad_filled", **keys)), sent(1, event("interaction", traceKey="t2")), tick(120))
    record = next(
        r for r in records(output, "attribution_fact") if r["decisionReasonCode"] == "f_terminal_timeout_autofill"
    )
    assert record["sourceKeys"].items() >= keys.items()
    assert record["sourceKeys"]["eventId"] == "NA"
    assert record["relationKeys"]["closureKeyOrNA"] == "ref|ra"


def test_every_closure_ends_in_exactly_one_terminal_state():
    lines = [sent(i, event("ad_filled", f"e{i}", renderAttemptId=f"ra{i}")) for i in range(50)]
    output = replayed(*lines, tick(10_000))
    assert set(closures(output).values()) == {SYNTHESISED}
    assert len([f for f in facts(output) if f[0] == "attr_failure_terminal"]) == 50


# --- impression and failure exclude each other (§3.8.19, F14, F17) ---------------------------------------------------


def test_a_failure_after_an_impression_is_a_duplicate():
    output = replayed(sent(0, event("impression")), sent(1, terminal()))
    assert answers(output)[1] == ("duplicate", "f_terminal_conflict_failure_after_impression")
    assert closures(output) == {"ref|ra": ("closed_success", "impression")}
    assert facts(output) == [("attr_failure_terminal", "duplicate"), ("attr_impression", "committed")]
    assert ("attribution_emit", "f_terminal_conflict_failure_after_impression") in audited(output)


def test_a_second_failure_is_a_duplicate():
    output = replayed(sent(0, terminal("e1")), sent(1, terminal("e2")))
    assert answers(output)[1] == ("duplicate", "f_terminal_duplicate_failure")
    assert facts(output) == [("attr_failure_terminal", "committed"), ("attr_failure_terminal", "duplicate")]


def test_a_real_failure_after_a_synthesised_one_is_a_duplicate():
    output = replayed(sent(0, event("ad_filled")), sent(120, terminal()))
    assert answers(output)[1] == ("duplicate", "f_terminal_duplicate_failure")
    assert closures(output) == {"ref|ra": SYNTHESISED}


def test_a_late_impression_supersedes_a_synthesised_failure():
    output = replayed(sent(0, event("ad_filled")), tick(120), sent(1000, event("impression")))
    assert answers(output)[1] == ACCEPTED
    assert closures(output) == {"ref|ra": ("closed_success", "impression")}
    assert billed(output) == ["ref|ra|billable_impression"]
    assert facts(output) == [
        ("attr_ad_filled", "committed"),
        ("attr_failure_terminal", "superseded"),
        ("attr_impression", "committed"),
    ]
    superseded = [r for r in output.records if r["recordStatus"] == "superseded"]
    impression = [r for r in records(output, "attribution_fact") if r["decisionReasonCode"] == "f_accepted"][-1]
    assert [r["recordType"] for r in superseded] == ["attribution_fact"]
    assert impression["supersededRecordKey"] == superseded[0]["recordKey"]


def test_an_impression_after_a_real_failure_is_a_conflict_set_aside():
    output = replayed(sent(0, terminal()), sent(1, event("impression")))
    assert answers(output)[1] == ("duplicate", "f_terminal_conflict_impression_after_failure")
    assert closures(output) == {"ref|ra": ("closed_failure", "error")}
    assert billed(output) == []
    assert facts(output) == [("attr_failure_terminal", "committed"), ("attr_impression", "conflicted")]


def test_after_a_late_impression_the_closure_is_as_after_any_impression():
    output = replayed(
        sent(0, event("ad_filled")),
        sent(130, event("impression", "i1")),
        sent(131, event("impression", "i2")),
        sent(132, terminal()),
    )
    assert answers(output)[2:] == [
        ("duplicate", "f_billing_conflict_duplicate_impression"),
        ("duplicate", "f_terminal_conflict_failure_after_impression"),
    ]


def test_in_one_batch_the_impression_goes_before_the_failure_whatever_their_times():
    output = replayed(sent(0, terminal(eventAt=at(-10)), event("impression", eventAt=at(-1))))
    assert answers(output) == [("duplicate", "f_terminal_conflict_failure_after_impression"), ACCEPTED]


def test_a_terminal_error_waits_until_all_others_are_decided():
    failure = terminal("a", eventAt=at(-10), idempotencyKey="k")
    same_key = event("opportunity_created", "z", idempotencyKey="k", eventAt=at(-1))
    assert answered(sent(0, failure, same_key, event("impression", "i"))) == [
        ("rejected", "f_dedup_payload_conflict"),
        ACCEPTED,
        ACCEPTED,
    ]
    assert answered(sent(0, failure, same_key)) == [ACCEPTED, ("rejected", "f_dedup_payload_conflict")]


def test_only_an_impression_that_passes_the_checks_makes_a_failure_wait():
    failure = terminal("f", eventAt=at(-10))
    click = event("click", "c", eventAt=at(-5))
    stale = event("impression", "i", eventAt=at(-15 * 86_400))
    output = replayed(sent(0, failure, click, stale))
    assert ("attribution_emit", "f_billing_ineligible_terminal_failure") in audited(output)
    passing = event("impression", "i", eventAt=at(-20))
    assert answered(sent(0, failure, click, passing))[0] == (
        "duplicate",
        "f_terminal_conflict_failure_after_impression",
    )


def test_an_impression_on_another_closure_makes_no_failure_wait():
    other = event("impression", "i", renderAttemptId="other", eventAt=at(-1))
    assert answered(sent(0, terminal(eventAt=at(-10)), other)) == [ACCEPTED, ACCEPTED]


@pytest.mark.parametrize("other", [{}, {"renderAttemptId": "two"}])
def test_terminal_errors_that_wait_are_decided_in_the_order_of_all_events(other):
    """Which of them is first shows in who gets the key that both claim."""
    impressions = [event("impression", f"i{n}", **link) for n, link in enumerate([{}, other] if other else [{}])]
    first, lost = "f_terminal_conflict_failure_after_impression", "f_dedup_payload_conflict"

    def decided(one: dict[str, Any], two: dict[str, Any]) -> tuple[str, str]:
        left, right = terminal(idempotencyKey="k", **one), terminal(idempotencyKey="k", errorCode="E2", **other, **two)
        codes = [code for _, code in answered(sent(0, left, *impressions, right))]
        return codes[0], codes[-1]

    assert decided({"event_id": "a", "eventAt": at(-1)}, {"event_id": "b", "eventAt": at(-2)}) == (lost, first)
    assert decided({"event_id": "b"}, {"event_id": "a"}) == (lost, first)
    assert decided({"event_id": "same"}, {"event_id": "same"}) == (first, lost)


# --- order inside a batch (F12) --------------------------------------------------------------------------------------


def test_events_are_decided_by_event_at_then_event_id_then_position_and_answered_in_order():
    late, early = event("impression", "a", eventAt=at(-1)), event("impression", "b", eventAt=at(-2))
    assert answered(sent(0, late, early)) == [("duplicate", "f_billing_conflict_duplicate_impression"), ACCEPTED]
    second, first = event("impression", "b"), event("impression", "a")
    assert answered(sent(0, second, first)) == [("duplicate", "f_billing_conflict_duplicate_impression"), ACCEPTED]
    one, two = (event("impression", "same", idempotencyKey=key) for key in ("k1", "k2"))
    assert answered(sent(0, one, two)) == [ACCEPTED, ("duplicate", "f_billing_conflict_duplicate_impression")]


def test_an_event_id_that_is_not_text_sorts_as_empty():
    number, text = event("impression", eventId=9, creativeId="1"), event("impression", "!")
    assert answered(sent(0, text, number)) == [("duplicate", "f_billing_conflict_duplicate_impression"), ACCEPTED]


def test_event_at_is_compared_as_an_instant():
    later, earlier = (
        event("impression", "a", eventAt="2026-01-01T00:00:00Z"),
        event("impression", "b", eventAt="2026-01-01T00:59:59+01:00"),
    )
    assert answered(sent(0, later, earlier)) == [("duplicate", "f_billing_conflict_duplicate_impression"), ACCEPTED]


def test_of_several_impressions_the_earliest_of_the_batch_that_came_first_is_billed():
    first = sent(0, event("impression", "b", eventAt=at(-1)), event("impression", "a", eventAt=at(-2)))
    earlier = sent(1, event("impression", "c", eventAt=at(-3)), batch="b2")
    output = replayed(first, earlier)
    assert [status for status, _ in answers(output)] == ["duplicate", "accepted", "duplicate"]
    assert [fact["factAt"] for fact in output.billable] == [at(-2)]


# --- impressions and clicks (§3.8.24, F15, F16) ----------------------------------------------------------------------


def test_a_second_impression_is_a_duplicate_with_one_attribution_record():
    output = replayed(sent(0, event("impression", "i1")), sent(1, event("impression", "i2")))
    assert answers(output)[1] == ("duplicate", "f_billing_conflict_duplicate_impression")
    assert billed(output) == ["ref|ra|billable_impression"]
    assert facts(output) == [("attr_impression", "committed"), ("attr_impression", "duplicate")]
    duplicate = next(r for r in output.records if r["recordStatus"] == "duplicate")
    assert duplicate["conflictWithRecordKey"] == records(output, "billable_fact")[0]["recordKey"]


def test_a_click_after_its_impression_is_billable_at_once():
    output = replayed(sent(0, event("impression")), sent(500, event("click")))
    assert billed(output) == ["ref|ra|billable_click", "ref|ra|billable_impression"]
    assert facts(output) == [("attr_click", "committed"), ("attr_impression", "committed")]
    assert audited(output) == [("both_emit", "f_accepted")] * 2


def test_a_second_click_is_a_duplicate():
    output = replayed(sent(0, event("impression")), sent(1, event("click", "c1")), sent(2, event("click", "c2")))
    assert answers(output)[2] == ("duplicate", "f_billing_conflict_duplicate_click")
    assert len(billed(output)) == 2
    assert ("attr_click", "duplicate") in facts(output)


def test_a_click_before_its_impression_is_pending_and_then_upgraded():
    output = replayed(
        sent(0, event("ad_filled")), sent(10, event("click", "c", eventAt=at(5))), sent(20, event("impression"))
    )
    assert answers(output) == [ACCEPTED] * 3
    assert facts(output) == [
        ("attr_ad_filled", "committed"),
        ("attr_click", "committed"),
        ("attr_click_pending", "committed"),
        ("attr_impression", "committed"),
    ]
    click = next(fact for fact in output.billable if fact["billableType"] == "billable_click")
    pending = next(fact for fact in output.attribution if fact["attributionType"] == "attr_click_pending")
    assert (click["sourceEventId"], click["factAt"]) == (pending["sourceEventId"], at(5))
    of_click = [
        (a["decisionAction"], a["decidedAt"]) for a in output.audits if a["sourceEventId"] == click["sourceEventId"]
    ]
    assert of_click == [("attribution_emit", at(10)), ("both_emit", at(20))]


def test_the_second_audit_of_an_upgraded_click_carries_the_code_of_its_ack():
    output = replayed(sent(0, event("click", idempotencyKey="not legal")), sent(1, event("impression")))
    assert ("both_emit", "f_idempotency_key_invalid_fallback") in audited(output)


def test_a_click_waits_120_seconds_from_its_own_arrival():
    opened, click, impression = sent(0, event("ad_filled")), sent(50, event("click")), event("impression")
    in_time = replayed(opened, click, sent(169.999999, impression))
    assert "ref|ra|billable_click" in billed(in_time)
    too_late = replayed(opened, click, sent(170, impression))
    assert billed(too_late) == ["ref|ra|billable_impression"]
    lapsed = [a for a in too_late.audits if a["decisionReasonCode"] == "f_billing_click_without_impression"]
    assert [(a["decisionAction"], a["decidedAt"]) for a in lapsed] == [("attribution_emit", at(170))]


def test_a_click_may_lapse_before_its_closure_times_out():
    """Batches of several processes need not be decided in the order in which they were received."""
    opened, click = sent(100, event("ad_filled")), sent(50, event("click"))
    early = replayed(opened, click, tick(219.999999))
    assert closures(early) == {"ref|ra": ("open", None)}
    assert [a["decidedAt"] for a in early.audits if a["decisionReasonCode"] != "f_accepted"] == [at(170)]
    late = replayed(opened, click, tick(220))
    assert closures(late) == {"ref|ra": SYNTHESISED}
    assert billed(replayed(opened, click, sent(200, event("impression")))) == ["ref|ra|billable_impression"]
    assert len(billed(replayed(opened, click, sent(169, event("impression"))))) == 2


def test_a_click_that_lapses_keeps_its_pending_fact_and_gets_no_other():
    output = replayed(sent(0, event("click")), tick(120))
    assert facts(output) == [("attr_click_pending", "committed"), ("attr_failure_terminal", "committed")]
    assert billed(output) == []
    assert audited(output) == [
        ("attribution_emit", "f_accepted"),
        ("attribution_emit", "f_billing_click_without_impression"),
        ("attribution_emit", "f_terminal_timeout_autofill"),
    ]


def test_a_timeout_of_the_closure_does_not_end_the_wait_of_a_click_that_was_pending_before_it():
    output = replayed(sent(0, event("ad_filled")), sent(100, event("click")), tick(150), sent(219, event("impression")))
    assert billed(output) == ["ref|ra|billable_click", "ref|ra|billable_impression"]
    assert ("attr_failure_terminal", "superseded") in facts(output)


def test_a_real_failure_leaves_a_pending_click_to_lapse():
    output = replayed(sent(0, event("click")), sent(1, terminal()), sent(2, event("impression")), tick(120))
    assert billed(output) == []
    assert ("attribution_emit", "f_billing_click_without_impression") in audited(output)


@pytest.mark.parametrize("failed", [sent(1, terminal()), tick(120)])
def test_a_click_on_a_failed_closure_is_accepted_and_never_billable(failed):
    output = replayed(sent(0, event("ad_filled")), failed, sent(130, event("click")))
    assert answers(output)[-1] == ACCEPTED
    assert billed(output) == []
    assert ("attribution_emit", "f_billing_ineligible_terminal_failure") in audited(output)
    record = records(output, "attribution_fact")[-1]
    assert (record["recordStatus"], record["decisionReasonCode"]) == (
        "committed",
        "f_billing_ineligible_terminal_failure",
    )


def test_a_click_on_a_failed_closure_does_not_stand_in_the_way_of_one_after_a_late_impression():
    output = replayed(
        sent(0, event("ad_filled")),
        sent(130, event("click", "c1")),
        sent(140, event("impression")),
        sent(150, event("click", "c2")),
    )
    assert billed(output) == ["ref|ra|billable_click", "ref|ra|billable_impression"]
    assert answers(output)[-1] == ACCEPTED


def test_a_second_click_while_one_is_pending_is_a_duplicate():
    output = replayed(sent(0, event("click", "c1")), sent(1, event("click", "c2")))
    assert answers(output)[1] == ("duplicate", "f_billing_conflict_duplicate_click")


def test_a_click_still_pending_after_the_timeout_makes_another_one_a_duplicate():
    output = replayed(sent(0, event("ad_filled")), sent(100, event("click", "c1")), sent(130, event("click", "c2")))
    assert answers(output)[-1] == ("duplicate", "f_billing_conflict_duplicate_click")


def test_after_a_lapsed_click_and_a_late_impression_a_new_click_is_billable():
    output = replayed(sent(0, event("click", "c1")), sent(500, event("impression")), sent(501, event("click", "c2")))
    assert answers(output)[-1] == ACCEPTED
    assert "ref|ra|billable_click" in billed(output)


def test_a_closure_is_billed_at_most_one_impression_and_one_click():
    lines = [sent(i, event(name, f"{name}{i}")) for i in range(20) for name in ("click", "impression")]
    assert billed(replayed(*lines, tick(1000))) == ["ref|ra|billable_click", "ref|ra|billable_impression"]


def test_a_billable_fact_stays_as_it_was_whatever_comes_later():
    lines = [sent(0, event("impression", "i")), sent(1, event("click", "c"))]
    again = [event(name, f"{name}-2", eventAt=at(5), creativeId="other", clickTarget="other") for name in FIELDS]
    later = [
        sent(5, *again, terminal("t", eventAt=at(5)), event("postback", "p", postbackStatus="failed", eventAt=at(5))),
        sent(5, event("impression", "i"), event("click", "c")),
        sent(20 * 86_400, event("impression", "i", eventAt=at(20 * 86_400)), batch="b1"),
        tick(21 * 86_400),
    ]
    assert replayed(*lines, *later).billable == replayed(*lines).billable
    assert len(replayed(*lines).billable) == 2


# --- postbacks (F18) -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ended", "status"), [(event("impression"), "failed"), (terminal(), "success")])
def test_a_postback_against_the_terminal_state_is_accepted_and_its_record_conflicted(ended, status):
    output = replayed(sent(0, ended), sent(1, event("postback", postbackStatus=status)))
    assert answers(output)[1] == ACCEPTED
    assert ("attr_postback", "conflicted") in facts(output)
    assert ("attribution_emit", "f_postback_terminal_conflict") in audited(output)
    record = next(r for r in records(output, "attribution_fact") if r["recordStatus"] == "conflicted")
    assert record["decisionReasonCode"] == "f_postback_terminal_conflict"


def test_success_contradicts_a_synthesised_failure_too():
    output = replayed(sent(0, event("ad_filled")), sent(120, event("postback")))
    assert ("attr_postback", "conflicted") in facts(output)


@pytest.mark.parametrize(
    ("ended", "status"),
    [
        (event("impression"), "success"),
        (terminal(), "failed"),
        (event("impression"), "pending"),
        (terminal(), "pending"),
        (terminal(), "odd"),
        (event("ad_filled"), "success"),
        (event("ad_filled"), "failed"),
    ],
)
def test_other_postbacks_are_no_conflict(ended, status):
    output = replayed(sent(0, ended), sent(1, event("postback", postbackStatus=status)))
    assert ("attr_postback", "committed") in facts(output)


def test_a_postback_before_its_closure_is_no_conflict():
    output = replayed(sent(0, event("postback", postbackStatus="failed")), sent(1, event("impression")))
    assert ("attr_postback", "committed") in facts(output)


# --- the owner (F23) -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["opportunity_created", "auction_started", "ad_filled", "impression", "click", "interaction", "postback", "error"],
)
def test_an_event_of_another_app_on_a_closure_is_rejected(name):
    foreign = event(name, responseReference="ref", renderAttemptId="ra")
    output = replayed(sent(0, event("ad_filled")), sent(1, foreign, app="other"))
    assert answers(output)[1] == ("rejected", "f_closure_foreign_app")
    assert ("drop", "f_closure_foreign_app") in audited(output)


def test_a_foreign_event_takes_no_key():
    foreign = sent(1, event("click", "c"), app="other")
    assert answered(sent(0, event("ad_filled")), foreign, foreign)[1:] == [("rejected", "f_closure_foreign_app")] * 2
    both = sent(1, event("click", "c"), event("click", "c"), app="other")
    assert answered(sent(0, event("ad_filled")), both)[1:] == [("rejected", "f_closure_foreign_app")] * 2


def test_dedup_is_decided_before_the_owner():
    other = sent(0, event("interaction", "e", responseReference="mine"), app="other", batch="x")
    foreign = sent(2, event("interaction", "e", interactionType="close"), app="other", batch="x")
    assert answered(other, sent(1, event("ad_filled")), foreign)[2] == ("rejected", "f_dedup_payload_conflict")


def test_a_closure_belongs_to_the_app_whose_event_came_first():
    output = replayed(sent(0, event("impression", "i"), app="other"), sent(1, event("ad_filled")))
    assert answers(output)[1] == ("rejected", "f_closure_foreign_app")


def test_a_postback_does_not_make_its_app_the_owner():
    assert answered(sent(0, event("postback"), app="other"), sent(1, event("ad_filled")))[1] == ACCEPTED
