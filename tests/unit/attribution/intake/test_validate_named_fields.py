"""Every rejection names the field that was wrong and what it should have been, in the `extensions` of its ACK."""

from typing import Any

import pytest

from patra.attribution.contract.reasons import Reason
from tests.unit.attribution.said import ABSENT, at, event, replayed, sent, terminal

TYPES = "one of ad_filled, auction_started, click, error, impression, interaction, opportunity_created, postback"
TEXT = "text of 1 to 1,024 characters"
INSTANT = "an RFC 3339 instant with an offset, at most 24 h ahead of receivedAt"
DAYS = 86_400
CASES: list[tuple[Reason, Any, str, str]] = [
    (Reason.MISSING_REQUIRED, 5, "$", "a JSON object"),
    (Reason.MISSING_REQUIRED, event("click", eventType=ABSENT), "eventType", TYPES),
    (Reason.TYPE_UNSUPPORTED, event("view"), "eventType", TYPES),
    (Reason.MISSING_REQUIRED, event("click", traceKey=""), "traceKey", TEXT),
    (Reason.MISSING_REQUIRED, event("impression", creativeId=7), "creativeId", TEXT),
    (Reason.MISSING_REQUIRED, event("click", responseReference=None), "responseReference", TEXT),
    (Reason.MISSING_REQUIRED, event("click", eventVersion=1.5), "eventVersion", f"an integer, or {TEXT}"),
    (Reason.MISSING_REQUIRED, event("click", eventAt=ABSENT), "eventAt", INSTANT),
    (
        Reason.MISSING_REQUIRED,
        terminal(responseReference=ABSENT),
        "responseReference",
        f"{TEXT}, since renderAttemptId is given",
    ),
    (Reason.ID_INVALID_NO_FALLBACK, event("click", "?", clickTarget=ABSENT), "clickTarget", TEXT),
    (
        Reason.MISSING_REQUIRED,
        event("click", eventId=None),
        "eventId",
        "text of 1 to 128 characters of A-Z a-z 0-9 . _ : -",
    ),
    (Reason.TIME_INVALID, event("click", eventAt="yesterday"), "eventAt", INSTANT),
    (Reason.TIME_INVALID, event("click", eventAt=at(2 * DAYS)), "eventAt", INSTANT),
    (
        Reason.MISSING_REQUIRED,
        event("click", eventIdScope="mine"),
        "eventIdScope",
        "one of batch_scoped, global_unique, or nothing",
    ),
    (
        Reason.UNIQUENESS_UNVERIFIED,
        event("click", eventIdScope="global_unique"),
        "eventId",
        "an id of the form that the batch declares in extensions.eventIdUniqueness: uuid or ulid",
    ),
    (Reason.STALE, event("click", eventAt=at(-15 * DAYS)), "eventAt", "an instant at most 14 days before receivedAt"),
    (Reason.STALE, event("ad_filled", eventAt=at(-4 * DAYS)), "eventAt", "an instant at most 3 days before receivedAt"),
]


@pytest.mark.parametrize(("code", "sent_event", "field", "expected"), CASES)
def test_a_rejected_event_is_told_which_field_was_wrong(code: Reason, sent_event: Any, field: str, expected: str):
    (item,) = replayed(sent(0, sent_event)).acks[0]["ackItems"]
    assert item["ackReasonCode"] == code.value
    assert item["extensions"] == {"fieldPath": field, "expected": expected}


def test_further_required_fields_that_are_missing_are_named_at_once():
    wrong = event("click", eventId=None, traceKey="", clickTarget=ABSENT, eventVersion=1.5)
    (item,) = replayed(sent(0, wrong)).acks[0]["ackItems"]
    assert item["ackReasonCode"] == "f_event_missing_required"
    assert item["extensions"] == {
        "fieldPath": "traceKey",
        "expected": TEXT,
        "alsoWrong": "clickTarget, eventVersion, eventId",
    }


def test_an_event_that_is_rejected_for_what_is_known_is_told_by_which_key():
    first = event("click", "a", idempotencyKey="k")
    other = event("click", "b", idempotencyKey="k", clickTarget="two")
    acks = replayed(
        sent(0, first, event("click", "a2")), sent(1, other), sent(2, event("click", "a2", clickTarget="3"))
    ).acks
    fields = [ack["ackItems"][0].get("extensions", {}).get("fieldPath") for ack in acks]
    assert fields == [None, "idempotencyKey", "eventId"]
    foreign = replayed(sent(0, event("ad_filled")), sent(1, event("click"), app="other")).acks[1]["ackItems"][0]
    assert foreign["extensions"] == {
        "fieldPath": "responseReference",
        "expected": "the closure of a render attempt that this app opened",
    }


def test_accepted_and_duplicate_events_have_the_frozen_fields_alone():
    acks = replayed(sent(0, event("click")), sent(1, event("click"))).acks
    assert all("extensions" not in ack["ackItems"][0] for ack in acks)
