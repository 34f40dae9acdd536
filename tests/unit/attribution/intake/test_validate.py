"""Checks 1 to 6 of one event: §3.8.5, §3.8.9, §3.8.10, F1 to F6, F8."""

from typing import Any

import pytest

from patra.attribution.contract.event_types import KINDS
from patra.attribution.contract.windows import BILLING_WINDOW, DIAGNOSTICS_WINDOW
from tests.unit.attribution.said import (
    ABSENT,
    FIELDS,
    KEYS,
    answered,
    at,
    audited,
    billed,
    code_of,
    event,
    facts,
    records,
    replayed,
    sent,
    terminal,
)

DAY = 86_400
UUID = "0190A0b0-0000-7000-8000-00000000000f"
ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
REQUIRED = [
    (name, field)
    for name, kind in FIELDS.items()
    for field in [*KEYS, "eventAt", *kind]
    if not (name in {"ad_filled", "postback"} and field == "renderAttemptId")
    and not (name == "error" and field == "renderAttemptId")
]
WRONG = [ABSENT, None, "", 7, True, [], ["x"], {"a": 1}, "x" * 1025]


# --- 1: the type -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FIELDS)
def test_each_of_the_eight_types_is_accepted(name):
    assert code_of(event(name)) == "f_accepted"


@pytest.mark.parametrize("value", [None, 5, "text", [], [event("click")], True, 1.5])
def test_an_event_that_is_no_object_is_missing_everything(value):
    output = replayed(sent(0, value, event("click")))
    assert [item["ackReasonCode"] for item in output.acks[0]["ackItems"]] == ["f_event_missing_required", "f_accepted"]
    assert output.acks[0]["ackItems"][0]["eventId"] is None


@pytest.mark.parametrize("value", WRONG)
def test_a_missing_event_type_is_a_missing_field(value):
    assert code_of(event("click", eventType=value)) == "f_event_missing_required"


@pytest.mark.parametrize("value", ["failure", "Click", "click ", "view", "x" * 1024])
def test_unknown_types_are_unsupported_and_failure_is_one_when_an_sdk_sends_it(value):
    assert code_of(event("click", eventType=value)) == "f_event_type_unsupported"


def test_the_type_is_judged_before_everything_else():
    assert code_of({"eventType": "view"}) == "f_event_type_unsupported"
    assert code_of({"eventId": "?", "eventType": 5}) == "f_event_missing_required"


# --- 2: required fields ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "field"), REQUIRED)
def test_a_required_field_may_not_be_absent(name, field):
    assert code_of(event(name, **{field: ABSENT})) == "f_event_missing_required"


@pytest.mark.parametrize("value", WRONG)
@pytest.mark.parametrize(
    "field", ["traceKey", "requestKey", "attemptKey", "opportunityKey", "clickTarget", "responseReference"]
)
def test_a_field_is_missing_when_it_is_not_text_of_1_to_1024_characters(field, value):
    assert code_of(event("click", **{field: value})) == "f_event_missing_required"


def test_1024_characters_are_counted_as_characters():
    assert code_of(event("click", traceKey="é" * 1024)) == "f_accepted"
    assert code_of(event("click", traceKey="😀" * 1024)) == "f_accepted"
    assert code_of(event("click", traceKey=" ")) == "f_accepted"


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (1, "f_accepted"),
        (-7, "f_accepted"),
        (10**30, "f_accepted"),
        ("v", "f_accepted"),
        (True, "f_event_missing_required"),
        (1.0, "f_event_missing_required"),
        ("", "f_event_missing_required"),
        (None, "f_event_missing_required"),
    ],
)
def test_event_version_may_be_an_integer(value, code):
    assert code_of(event("click", eventVersion=value)) == code


@pytest.mark.parametrize("value", [ABSENT, None, "", "x" * 1025, f"2026-01-01T00:00:00.{'0' * 1004}Z"])
def test_event_at_is_missing_when_absent_null_empty_or_too_long(value):
    assert code_of(event("click", eventAt=value)) == "f_event_missing_required"


def test_an_event_at_of_1024_characters_is_an_instant():
    assert code_of(event("click", eventAt=f"2026-01-01T00:00:00.{'0' * 1003}Z")) == "f_accepted"


@pytest.mark.parametrize("name", ["opportunity_created", "auction_started"])
def test_the_first_two_types_need_no_response_reference(name):
    assert code_of(event(name, responseReference=ABSENT)) == "f_accepted"
    assert code_of(event(name, responseReference=7, renderAttemptId=7)) == "f_accepted"


@pytest.mark.parametrize("render", [ABSENT, None])
def test_an_error_without_a_render_attempt_needs_no_response_reference(render):
    assert code_of(event("error", responseReference=ABSENT, renderAttemptId=render)) == "f_accepted"


@pytest.mark.parametrize("render", ["ra", "", 7, "x" * 1025, False])
def test_an_error_that_names_a_render_attempt_needs_its_response_reference(render):
    assert code_of(event("error", responseReference=ABSENT, renderAttemptId=render)) == "f_event_missing_required"
    assert code_of(event("error", renderAttemptId=render)) == "f_accepted"


@pytest.mark.parametrize("render", ["", 7, "x" * 1025, None, ABSENT])
def test_an_optional_key_that_is_no_such_text_counts_as_absent(render):
    output = replayed(sent(0, event("ad_filled", renderAttemptId=render), terminal(renderAttemptId=render)))
    assert {fact["renderAttemptIdOrNA"] for fact in output.attribution} == {"NA"}
    assert [fact[0] for fact in facts(output)] == ["attr_ad_filled", "attr_error"]
    assert output.closures == []


@pytest.mark.parametrize("event_id", ["", "a b", 7, True, [], {}, "x" * 129, "é"])
def test_with_an_illegal_event_id_a_missing_field_leaves_no_fallback(event_id):
    assert code_of(event("click", event_id, eventId=event_id, traceKey=ABSENT)) == "f_event_id_invalid_no_fallback"
    assert (
        code_of(event("click", eventId=event_id, idempotencyKey="k", creativeId=1, clickTarget=5))
        == "f_event_id_invalid_no_fallback"
    )


# --- 3: eventId ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("event_id", [ABSENT, None])
def test_an_absent_event_id_is_a_missing_field(event_id):
    assert code_of(event("click", eventId=event_id)) == "f_event_missing_required"
    assert code_of(event("click", eventId=event_id, traceKey=ABSENT)) == "f_event_missing_required"
    assert code_of(event("click", eventId=event_id, idempotencyKey="k")) == "f_event_missing_required"


@pytest.mark.parametrize("event_id", ["", "a b", 7, True, [1], {"a": 1}, "x" * 129])
def test_an_illegal_event_id_goes_on_with_the_computed_key_and_is_answered_as_sent(event_id):
    output = replayed(sent(0, event("click", eventId=event_id)))
    assert output.acks[0]["ackItems"][0] | {"serverEventKey": ""} == {
        "eventId": event_id,
        "eventIndex": 0,
        "ackStatus": "accepted",
        "ackReasonCode": "f_accepted",
        "retryable": False,
        "serverEventKey": "",
    }
    assert records(output, "decision_audit")[0]["relationKeys"]["canonicalDedupKey"].startswith("f_dedup_v1:computed:")


# --- 4: eventAt ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        "yesterday",
        "2026-01-01",
        "2026-01-01T00:00:00",
        "2026-01-01 00:00:00Z",
        "2026-02-30T00:00:00Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T00:00:00+0000",
        " 2026-01-01T00:00:00Z",
        "2026-01-01T00:00:00Z\n",
        1767225600,
        1.5,
        True,
        [],
        {},
    ],
)
def test_an_event_at_that_is_no_instant_with_an_offset_is_invalid(value):
    assert code_of(event("click", eventAt=value)) == "f_event_time_invalid"


@pytest.mark.parametrize(
    "value",
    [
        "2026-01-01T00:00:00z",
        "2026-01-01t00:00:00Z",
        "2025-12-31T19:00:00-05:00",
        "2026-01-01T00:00:00.123456789Z",
        "2026-01-01T00:00:00-00:00",
    ],
)
def test_every_form_of_rfc_3339_is_an_instant(value):
    assert code_of(event("click", eventAt=value)) == "f_accepted"


def test_digits_past_the_microsecond_are_dropped():
    output = replayed(sent(0, event("ad_filled", eventAt="2026-01-01T01:00:00.1234569+01:00")))
    assert output.attribution[0]["factAt"] == "2026-01-01T00:00:00.123456Z"


WAYS = [{}, {"eventIdScope": "batch_scoped"}, {"note": "more"}, {"eventIdScope": None, "note": 1}]
"""What decides nothing, but may lead an event another way through the reading: the rules hold on each."""


@pytest.mark.parametrize("more", WAYS)
def test_exactly_24_hours_ahead_is_taken_and_more_is_not(more):
    assert code_of(event("click", eventAt=at(DAY), **more)) == "f_accepted"
    assert code_of(event("click", eventAt=at(DAY + 0.000001), **more)) == "f_event_time_invalid"


# --- 5: scope and uniqueness -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["", "global", "Batch_scoped", 1, [], {}, False])
def test_a_scope_that_is_neither_value_is_a_missing_field(value):
    assert code_of(event("click", eventIdScope=value)) == "f_event_missing_required"


@pytest.mark.parametrize("value", [ABSENT, None, "batch_scoped"])
def test_the_scope_is_the_batch_by_default(value):
    output = replayed(sent(0, event("click", "e1", eventIdScope=value)))
    assert (
        records(output, "decision_audit")[0]["relationKeys"]["canonicalDedupKey"]
        == "f_dedup_v1:client_event_id:app|b1|e1"
    )


@pytest.mark.parametrize(
    ("declared", "event_id"), [("uuid", UUID), ("uuid", UUID.lower()), ("ulid", ULID), ("ulid", "7" + "Z" * 25)]
)
def test_a_declared_form_verifies_global_uniqueness(declared, event_id):
    sent_event = event("click", event_id, eventIdScope="global_unique")
    output = replayed(sent(0, sent_event, extensions={"eventIdUniqueness": declared}))
    key = records(output, "decision_audit")[0]["relationKeys"]["canonicalDedupKey"]
    assert key == f"f_dedup_v1:client_event_id:app|global|{event_id}"


@pytest.mark.parametrize(
    ("extensions", "event_id"),
    [
        (ABSENT, UUID),
        (None, UUID),
        ("uuid", UUID),
        ({}, UUID),
        ({"eventIdUniqueness": "guid"}, UUID),
        ({"eventIdUniqueness": ["uuid"]}, UUID),
        ({"eventIdUniqueness": "uuid"}, ULID),
        ({"eventIdUniqueness": "ulid"}, UUID),
        ({"eventIdUniqueness": "ulid"}, ULID.lower()),
        ({"eventIdUniqueness": "ulid"}, "8" + "Z" * 25),
        ({"eventIdUniqueness": "ulid"}, "0" + "I" * 25),
        ({"eventIdUniqueness": "uuid"}, UUID + "\n"),
        ({"eventIdUniqueness": "uuid"}, UUID.replace("-", "")),
    ],
)
def test_global_uniqueness_that_is_not_verified_is_rejected(extensions, event_id):
    sent_event = event("click", event_id, eventIdScope="global_unique")
    assert code_of(sent_event, extensions=extensions) == "f_event_id_global_uniqueness_unverified"
    assert (
        code_of({**sent_event, "idempotencyKey": "k"}, extensions=extensions)
        == "f_event_id_global_uniqueness_unverified"
    )


# --- 6: stale --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "days"), [(name, 14 if name in {"impression", "click", "postback"} else 3) for name in FIELDS]
)
@pytest.mark.parametrize("more", WAYS)
def test_an_event_older_than_the_window_of_its_tier_is_stale(name, days, more):
    sent_event = event(name, **more)
    assert answered(sent(days * DAY, sent_event)) == [("accepted", "f_accepted")]
    assert answered(sent(days * DAY + 0.000001, sent_event)) == [("rejected", "f_event_stale_outside_dedup_window")]


def test_each_type_belongs_to_exactly_one_tier():
    billing = {name for name, kind in KINDS.items() if kind.window == BILLING_WINDOW}
    assert billing == {"impression", "click", "postback"}
    assert {kind.window for kind in KINDS.values()} == {BILLING_WINDOW, DIAGNOSTICS_WINDOW}


def test_the_checks_are_made_in_their_order():
    wrong: dict[str, Any] = {"traceKey": ABSENT, "eventAt": "never", "eventIdScope": "x"}
    assert code_of(event("click", eventId=ABSENT, **wrong)) == "f_event_missing_required"
    assert code_of(event("click", eventId="a b", **wrong)) == "f_event_id_invalid_no_fallback"
    del wrong["traceKey"]
    assert code_of(event("click", **wrong)) == "f_event_time_invalid"
    wrong["eventAt"] = at(-20 * DAY)
    assert code_of(event("click", **wrong)) == "f_event_missing_required"
    wrong["eventIdScope"] = "global_unique"
    assert code_of(event("click", **wrong)) == "f_event_id_global_uniqueness_unverified"
    del wrong["eventIdScope"]
    assert code_of(event("click", **wrong)) == "f_event_stale_outside_dedup_window"


# --- F3, F5, F6, F8: idempotency keys, sub-enums, extra fields -------------------------------------------------------


@pytest.mark.parametrize("value", ["", "a b", 7, True, [], {}, "x" * 129])
def test_an_illegal_idempotency_key_is_ignored_and_the_event_goes_on(value):
    output = replayed(sent(0, event("click", "e1", idempotencyKey=value)))
    assert output.acks[0]["ackItems"][0]["ackReasonCode"] == "f_idempotency_key_invalid_fallback"
    assert output.acks[0]["ackItems"][0]["ackStatus"] == "accepted"
    assert (
        records(output, "decision_audit")[0]["relationKeys"]["canonicalDedupKey"]
        == "f_dedup_v1:client_event_id:app|b1|e1"
    )


@pytest.mark.parametrize("value", [ABSENT, None])
def test_an_absent_idempotency_key_is_no_key(value):
    assert code_of(event("click", idempotencyKey=value)) == "f_accepted"


SUB_ENUMS = {
    "auction_started": ("auctionChannel", ["waterfall", "bidding", "hybrid", "direct", "house"]),
    "interaction": (
        "interactionType",
        ["expand", "collapse", "dwell", "close", "scroll", "mute", "unmute", "video_start", "video_complete"],
    ),
    "postback": ("postbackStatus", ["success", "failed", "pending"]),
    "error": ("errorStage", ["request", "auction", "fill", "render", "click", "postback"]),
}


@pytest.mark.parametrize(("name", "field", "value"), [(n, f, v) for n, (f, vs) in SUB_ENUMS.items() for v in vs])
def test_known_sub_enum_values_are_accepted_as_they_are(name, field, value):
    output = replayed(sent(0, event(name, **{field: value})))
    assert output.acks[0]["ackItems"][0]["ackReasonCode"] == "f_accepted"
    assert "rawValue" not in output.audits[0]


@pytest.mark.parametrize(("name", "field"), [(n, f) for n, (f, _) in SUB_ENUMS.items()])
@pytest.mark.parametrize("value", ["EXPAND", "unknown", "nothing\x00known"])
def test_an_unknown_sub_enum_value_is_stored_as_unknown_with_an_audit_entry(name, field, value):
    output = replayed(sent(0, event(name, **{field: value})))
    assert output.acks[0]["ackItems"][0]["ackReasonCode"] == "f_accepted_unknown_enum"
    audit = output.audits[0]
    assert (audit["fieldPath"], audit["rawValue"], audit["canonicalValue"]) == (field, value, "unknown")
    assert audit["decisionReasonCode"] == "f_accepted_unknown_enum"


def test_the_fingerprint_uses_the_raw_value_of_an_unknown_sub_enum():
    one, two = event("interaction", interactionType="a"), event("interaction", interactionType="b")
    assert answered(sent(0, one), sent(1, two)) == [
        ("accepted", "f_accepted_unknown_enum"),
        ("rejected", "f_dedup_payload_conflict"),
    ]


def test_an_ignored_idempotency_key_outweighs_an_unknown_sub_enum():
    assert (
        code_of(event("interaction", interactionType="a", idempotencyKey="?")) == "f_idempotency_key_invalid_fallback"
    )


def test_free_text_fields_are_no_sub_enums():
    assert code_of(event("postback", postbackType="anything")) == "f_accepted"
    assert code_of(event("click", clickTarget="anything")) == "f_accepted"
    assert code_of(event("error", errorCode="anything")) == "f_accepted"


def test_unknown_extra_fields_are_kept_under_extensions_and_decide_nothing():
    plain, extra = event("click"), event("click", colour="red", score=1.5, deep={"a": [None]}, extensions={"x": 1})
    with_extra, without = replayed(sent(0, extra)), replayed(sent(0, plain))
    record = records(with_extra, "attribution_fact")[0]
    assert record.pop("extensions") == {"colour": "red", "score": 1.5, "deep": {"a": [None]}, "x": 1}
    assert record == records(without, "attribution_fact")[0]
    assert (with_extra.acks, with_extra.audits, with_extra.attribution) == (
        without.acks,
        without.audits,
        without.attribution,
    )
    assert answered(sent(0, plain), sent(1, extra)) == [
        ("accepted", "f_accepted"),
        ("duplicate", "f_dedup_committed_duplicate"),
    ]


def test_unknown_sub_enums_do_not_change_the_tier():
    output = replayed(sent(10 * DAY, event("postback", postbackStatus="?"), event("interaction", interactionType="?")))
    assert [item["ackReasonCode"] for item in output.acks[0]["ackItems"]] == [
        "f_accepted_unknown_enum",
        "f_event_stale_outside_dedup_window",
    ]


def test_u0000_in_text_is_kept_like_any_character():
    output = replayed(sent(0, event("impression", traceKey="a\x00b", responseReference="\x00", note="\x00")))
    assert output.attribution[0]["traceKey"] == "a\x00b"
    assert billed(output) == ["\x00|ra|billable_impression"]


def test_half_a_surrogate_pair_is_not_text():
    line = sent(0, event("click", traceKey="\ud800"), event("click", "\ud800x", note="\udfff"))
    assert answered(line) == [("rejected", "f_event_missing_required"), ("accepted", "f_accepted")]


def test_every_rejection_is_dropped_with_its_code_in_the_audit():
    output = replayed(sent(0, event("view"), event("click", eventAt=5), None))
    assert audited(output) == [
        ("drop", "f_event_missing_required"),
        ("drop", "f_event_time_invalid"),
        ("drop", "f_event_type_unsupported"),
    ]
    assert output.attribution == output.billable == []
