"""Dedup: §3.8.14 to §3.8.16, F9."""

from hashlib import sha256

import pytest

from patra.attribution.decision.dedup import DEDUP, REFUSALS, STATES, DedupState
from patra.kernel.ledger import Outcome
from tests.unit.attribution.said import (
    FIELDS,
    answered,
    answers,
    at,
    audited,
    billed,
    event,
    facts,
    records,
    replayed,
    sent,
    tick,
)

DAY = 86_400
WINDOWS = [(name, (14 if name in {"impression", "click", "postback"} else 3) * DAY) for name in FIELDS]


@pytest.mark.parametrize("name", FIELDS)
def test_the_same_event_again_is_a_committed_duplicate_and_writes_nothing_twice(name):
    output = replayed(sent(0, event(name)), sent(1, event(name)), sent(2, event(name)))
    assert answers(output) == [("accepted", "f_accepted"), *[("duplicate", "f_dedup_committed_duplicate")] * 2]
    assert len(output.attribution) == 1
    assert len({record["recordKey"] for record in output.records}) == len(output.records)


def test_the_same_event_in_the_same_batch_is_an_inflight_duplicate():
    assert answered(sent(0, event("click"), event("click"), event("click"))) == [
        ("accepted", "f_accepted"),
        ("duplicate", "f_dedup_inflight_duplicate"),
        ("duplicate", "f_dedup_inflight_duplicate"),
    ]


def test_a_batch_sent_again_is_answered_with_committed_duplicates_also_within_it():
    line = sent(0, event("ad_filled"), event("ad_filled"))
    assert answered(line, line)[2:] == [("duplicate", "f_dedup_committed_duplicate")] * 2


def test_an_earlier_batch_of_the_same_commit_counts_as_committed():
    lines = [sent(0, event("click"), batch="b1"), sent(0, event("click"), batch="b1")]
    assert (
        answers(replayed(*lines, group=[2]))
        == answers(replayed(*lines))
        == [
            ("accepted", "f_accepted"),
            ("duplicate", "f_dedup_committed_duplicate"),
        ]
    )


def test_the_same_key_for_another_event_is_a_payload_conflict():
    output = replayed(sent(0, event("click", idempotencyKey="k")), sent(1, event("impression", idempotencyKey="k")))
    assert answers(output) == [("accepted", "f_accepted"), ("rejected", "f_dedup_payload_conflict")]
    assert billed(output) == []
    assert audited(output)[-1] == ("drop", "f_dedup_payload_conflict")


def test_a_payload_conflict_in_the_same_batch_is_one_too_and_leaves_the_first_alone():
    assert answered(
        sent(
            0,
            event("ad_filled", "e", creativeId="1"),
            event("ad_filled", "e", creativeId="2"),
            event("ad_filled", "e", creativeId="1"),
        )
    ) == [
        ("accepted", "f_accepted"),
        ("rejected", "f_dedup_payload_conflict"),
        ("duplicate", "f_dedup_inflight_duplicate"),
    ]


@pytest.mark.parametrize(("name", "window"), WINDOWS)
def test_a_key_is_held_for_exactly_its_window_and_then_begins_a_new_cycle(name, window):
    def again(seconds: float) -> str:
        later = event(name, eventAt=at(seconds))
        return answered(sent(0, event(name)), sent(seconds, later))[1][1]

    assert again(window) == "f_dedup_committed_duplicate"
    assert again(window + 0.000001) != "f_dedup_committed_duplicate"


def test_the_window_is_that_of_the_event_that_holds_the_key():
    first = sent(0, event("opportunity_created", idempotencyKey="k"))
    later = sent(5 * DAY, event("postback", idempotencyKey="k", eventAt=at(5 * DAY)))
    assert answered(first, later)[1] == ("accepted", "f_accepted")
    held = sent(0, event("postback", idempotencyKey="k"))
    inside = sent(5 * DAY, event("opportunity_created", idempotencyKey="k", eventAt=at(5 * DAY)))
    assert answered(held, inside)[1] == ("rejected", "f_dedup_payload_conflict")


def test_from_the_second_cycle_on_derived_keys_carry_its_number():
    days = [0, 4, 8]
    output = replayed(*[sent(day * DAY, event("auction_started", "e", eventAt=at(day * DAY))) for day in days])
    assert answers(output) == [("accepted", "f_accepted")] * 3
    dedup = "f_dedup_v1:client_event_id:app|b1|e"
    for ack, fact, key in zip(output.acks, output.attribution, [dedup, f"{dedup}#2", f"{dedup}#3"], strict=True):
        digest = sha256(key.encode()).hexdigest()[:32]
        assert ack["ackItems"][0]["serverEventKey"] == fact["sourceEventId"] == f"fe_{digest}"
        assert fact["attributionKey"] == f"attr_auction_started|{key}"
    assert {record["relationKeys"]["canonicalDedupKey"] for record in output.records} == {dedup}
    assert len({record["recordKey"] for record in output.records}) == len(output.records) == 6


def test_duplicates_and_conflicts_of_a_later_cycle_carry_its_number():
    later = event("auction_started", "e", eventAt=at(4 * DAY))
    other = event("auction_started", "e", eventAt=at(4 * DAY), auctionChannel="house")
    output = replayed(sent(0, event("auction_started", "e")), sent(4 * DAY, later, later, other))
    keys = [item["serverEventKey"] for item in output.acks[1]["ackItems"]]
    assert keys == [f"fe_{sha256(b'f_dedup_v1:client_event_id:app|b1|e#2').hexdigest()[:32]}"] * 3


def test_two_new_cycles_in_one_commit_are_as_two_commits():
    lines = [sent(day * DAY, event("auction_started", "e", eventAt=at(day * DAY))) for day in (0, 4, 8, 12, 12)]
    assert replayed(*lines, group=[1, 4]) == replayed(*lines, group=[5]) == replayed(*lines)


def test_rejected_events_hold_no_key():
    bad = event("click", "e", eventAt="never")
    assert answered(sent(0, bad), sent(1, event("click", "e")), sent(2, bad))[1:] == [
        ("accepted", "f_accepted"),
        ("rejected", "f_event_time_invalid"),
    ]


def test_a_payload_conflict_does_not_take_the_key_over():
    assert answered(
        sent(0, event("ad_filled", "e", creativeId="1")),
        sent(1, event("ad_filled", "e", creativeId="2")),
        sent(2, event("ad_filled", "e", creativeId="2")),
        sent(3, event("ad_filled", "e", creativeId="1")),
    )[1:] == [("rejected", "f_dedup_payload_conflict")] * 2 + [("duplicate", "f_dedup_committed_duplicate")]


def test_what_a_closure_marks_duplicate_holds_its_key():
    second = event("impression", "i2")
    assert answered(sent(0, event("impression", "i1")), sent(1, second), sent(2, second))[1:] == [
        ("duplicate", "f_billing_conflict_duplicate_impression"),
        ("duplicate", "f_dedup_committed_duplicate"),
    ]


def test_an_instant_before_the_first_is_within_the_window():
    assert answered(sent(100, event("click")), sent(0, event("click")))[1] == (
        "duplicate",
        "f_dedup_committed_duplicate",
    )


def test_duplicates_are_counted_in_one_audit_with_one_record():
    line = sent(0, event("ad_filled"))
    output = replayed(line, line, line, line)
    counts = {audit["decisionReasonCode"]: audit["count"] for audit in output.audits}
    assert counts == {"f_accepted": 1, "f_dedup_committed_duplicate": 3}
    assert len(records(output, "decision_audit")) == 2
    assert len({audit["decidedAt"] for audit in output.audits}) == 1


def test_every_dedup_decision_records_key_source_key_and_version():
    output = replayed(sent(0, event("click", "e"), event("click", "e")))
    for record in records(output, "decision_audit"):
        assert record["relationKeys"]["canonicalDedupKey"] == "f_dedup_v1:client_event_id:app|b1|e"
        assert record["versionAnchors"]["dedupFingerprintVersion"] == "f_dedup_v1"


def test_the_dedup_machine_is_the_table_of_the_specification():
    assert {(was.value, to.value) for (was, _), to in DEDUP.edges.items()} == {
        ("new", "inflight_locked"),
        ("inflight_locked", "accepted_committed"),
        ("inflight_locked", "rejected_conflict"),
        ("inflight_locked", "duplicate_inflight"),
        ("accepted_committed", "duplicate_committed"),
        ("accepted_committed", "expired"),
        ("expired", "new"),
    }
    assert DEDUP.terminal == {
        DedupState.DUPLICATE_INFLIGHT,
        DedupState.DUPLICATE_COMMITTED,
        DedupState.REJECTED_CONFLICT,
    }


def test_a_retry_of_a_partly_rejected_batch_counts_nothing_twice():
    first = sent(0, event("impression", "i"), event("click", "c", eventAt="never"), event("ad_filled", "f"))
    again = sent(5, event("impression", "i"), event("click", "c"), event("ad_filled", "f"))
    output = replayed(first, again, tick(500))
    assert billed(output) == ["ref|ra|billable_click", "ref|ra|billable_impression"]
    assert facts(output) == [
        ("attr_ad_filled", "committed"),
        ("attr_click", "committed"),
        ("attr_impression", "committed"),
    ]


def test_every_verdict_of_the_ledger_is_an_edge_of_the_table_and_those_that_drop_have_a_reason():
    assert STATES.keys() == set(Outcome)
    assert set(STATES.values()) <= set(DEDUP.edges.values())
    kept = {Outcome.FIRST, Outcome.NEW_CYCLE}
    assert {outcome: reason.value for outcome, reason in REFUSALS.items()} == {
        Outcome.DUPLICATE_IN_FLIGHT: "f_dedup_inflight_duplicate",
        Outcome.DUPLICATE_COMMITTED: "f_dedup_committed_duplicate",
        Outcome.CONFLICT: "f_dedup_payload_conflict",
    }
    assert REFUSALS.keys() == set(Outcome) - kept
