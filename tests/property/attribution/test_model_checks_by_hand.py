"""The model's envelope and event checks against values worked out by hand (F1-F4, F10, F11, A1)."""

import pytest

from tests.model.attribution import instants, read_log, run
from tests.model.attribution.log import NotJsonError
from tests.property.attribution.hand import GONE, T0, answer, at, audits, batch, event, sha

REJECTED = "rejected"
MISSING = (REJECTED, "f_event_missing_required")
NO_FALLBACK = (REJECTED, "f_event_id_invalid_no_fallback")
TIME = (REJECTED, "f_event_time_invalid")
STALE = (REJECTED, "f_event_stale_outside_dedup_window")
ACCEPTED = ("accepted", "f_accepted")


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00.000001Z", 1),
        ("1970-01-01T00:00:00.0000019Z", 1),  # dropped, not rounded
        ("1970-01-02T00:00:00+01:00", 23 * 3600 * 10**6),
        ("1969-12-31T23:59:59Z", -(10**6)),
        ("2000-03-01T00:00:00Z", 951868800 * 10**6),
        ("2024-02-29t12:00:00.5z", 1709208000500000),
        ("2026-03-01T00:00:00-00:00", 1772323200 * 10**6),
        ("2026-02-29T00:00:00Z", None),
        ("1900-02-29T00:00:00Z", None),
        ("2026-03-01T24:00:00Z", None),
        ("2026-03-01T23:60:00Z", None),
        ("2026-03-01T00:00:00+24:00", None),
        ("2026-03-01T00:00:00", None),
        ("2026-03-01 00:00:00Z", None),
        ("2026-03-01T00:00:00.Z", None),
        ("2026-03-01T00:00:00,5Z", None),
        ("2026-03-01T00:00Z", None),
        ("2026-3-1T00:00:00Z", None),
        (" 2026-03-01T00:00:00Z", None),
        ("2026-03-01T00:00:00Z\n", None),
        ("٢٠٢٦-03-01T00:00:00Z", None),
    ],
)
def test_instants_are_rfc_3339_in_microseconds(text, microseconds):
    assert instants.parse(text) == microseconds


@pytest.mark.parametrize(
    "text",
    ["1970-01-01T00:00:00Z", "1999-12-31T23:59:59.999999Z", "2024-02-29T00:00:00Z", "2026-12-31T01:02:03.000100Z"],
)
def test_instants_are_written_as_they_are_read(text):
    assert instants.format(instants.parse(text)) == text


@pytest.mark.parametrize(
    "text", ['{"tick": NaN}', '{"tick": 1, "tick": 2}', '{"tick": Infinity}', "{", '"x"', '{"a":1}']
)
def test_a_log_line_that_is_no_json_is_refused(text):
    with pytest.raises(NotJsonError):
        read_log(text)


def test_a_large_integer_stays_whole():
    assert read_log('{"receivedAt": "x", "batch": 123456789012345678901234567890}\n\n')[0]["batch"] == int(
        "1234567890" * 3
    )


@pytest.mark.parametrize("body", [None, 5, "text", [], [1], True])
def test_a_batch_that_is_no_object_is_malformed(body):
    assert run([at(T0, body)]).acks == [{"code": "f_batch_malformed"}]


@pytest.mark.parametrize("name", ["batchId", "appId", "sdkVersion", "sentAt", "schemaVersion", "events"])
@pytest.mark.parametrize("value", [GONE, None, "", [], {}])
def test_a_required_field_of_the_batch_absent_null_or_empty(name, value):
    expected = "f_batch_missing_required"
    if name == "events" and value is not GONE and value is not None:
        expected = "f_batch_events_invalid"
    body = batch(event("click", "e"))
    body = {key: item for key, item in body.items() if key != name} if value is GONE else {**body, name: value}
    assert run([at(T0, body)]).acks == [{"code": expected}]


def test_the_first_envelope_defect_decides():
    everything = {
        "batchId": "not legal!",
        "appId": "app",
        "sdkVersion": 1,
        "sentAt": 1,
        "schemaVersion": 1,
        "events": [],
    }
    assert run([at(T0, {**everything, "sentAt": None})]).acks == [{"code": "f_batch_missing_required"}]
    assert run([at(T0, everything)]).acks == [{"code": "f_batch_id_invalid"}]
    assert run([at(T0, {**everything, "batchId": "b", "appId": "é"})]).acks == [{"code": "f_batch_id_invalid"}]
    assert run([at(T0, {**everything, "batchId": "b"})]).acks == [{"code": "f_batch_schema_unsupported"}]
    assert run([at(T0, {**everything, "batchId": "b", "schemaVersion": "1.0"})]).acks == [
        {"code": "f_batch_events_invalid"}
    ]


@pytest.mark.parametrize("version", ["1.1", "2", "01", " 1", 1, 1.0, True])
def test_schema_versions_other_than_the_two_texts_are_unsupported(version):
    assert run([at(T0, batch(1, schemaVersion=version))]).acks == [{"code": "f_batch_schema_unsupported"}]


def test_a_batch_holds_one_to_a_hundred_events():
    assert len(run([at(T0, batch(*[1] * 100))]).acks[0]["ackItems"]) == 100
    assert run([at(T0, batch(*[1] * 101))]).acks == [{"code": "f_batch_events_invalid"}]
    assert run([at(T0, batch())]).acks == [{"code": "f_batch_events_invalid"}]


def test_identifiers_of_128_characters_are_legal_and_of_129_not():
    assert "ackItems" in run([at(T0, batch(1, batch_id="x" * 128))]).acks[0]
    assert run([at(T0, batch(1, batch_id="x" * 129))]).acks == [{"code": "f_batch_id_invalid"}]
    assert run([at(T0, batch(1, app="a.B_0:-"))]).acks[0]["overallStatus"] == "rejected_all"


@pytest.mark.parametrize("raw", [None, 5, "x", [], [event("click", "e")], True])
def test_an_event_that_is_no_object_misses_what_is_required(raw):
    assert answer(raw) == MISSING


@pytest.mark.parametrize("kind", [GONE, None, "", 5, [], "x" * 1025])
def test_a_missing_event_type(kind):
    assert answer(event("click", "bad id", eventType=kind)) == MISSING


@pytest.mark.parametrize("kind", ["failure", "Click", "click ", "x" * 1024])
def test_failure_and_every_other_type_are_unsupported(kind):
    assert answer(event("click", "e", eventType=kind)) == (REJECTED, "f_event_type_unsupported")


COMMON = ["traceKey", "requestKey", "attemptKey", "opportunityKey", "eventVersion", "eventAt"]
REQUIRED = {
    "opportunity_created": ["placementKey"],
    "auction_started": ["auctionChannel"],
    "ad_filled": ["responseReference", "creativeId"],
    "impression": ["responseReference", "renderAttemptId", "creativeId"],
    "click": ["responseReference", "renderAttemptId", "clickTarget"],
    "interaction": ["responseReference", "renderAttemptId", "interactionType"],
    "postback": ["responseReference", "postbackType", "postbackStatus"],
    "error": ["responseReference", "errorStage", "errorCode"],
}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in REQUIRED for name in [*COMMON, *REQUIRED[kind]]])
@pytest.mark.parametrize("value", [GONE, None, "", "x" * 1025])
def test_every_required_field(kind, name, value):
    assert answer(event(kind, "e", **{name: value})) == MISSING
    assert answer(event(kind, "", **{name: value})) == NO_FALLBACK
    assert answer(event(kind, None, **{name: value})) == MISSING


@pytest.mark.parametrize("kind", REQUIRED)
def test_a_required_field_that_is_not_text_is_missing(kind):
    for name in [*COMMON[:5], *REQUIRED[kind]]:
        for value in ([], {}, True, 1.5):
            assert answer(event(kind, "e", **{name: value})) == MISSING
    assert answer(event(kind, "e", traceKey=7)) == MISSING
    assert answer(event(kind, "e", eventVersion=7)) == ACCEPTED
    assert answer(event(kind, "e", eventVersion=10**40)) == ACCEPTED


def test_1024_characters_are_counted_as_characters():
    assert answer(event("impression", "e", creativeId="😀" * 1024)) == ACCEPTED
    assert answer(event("impression", "e", creativeId="😀" * 1025)) == MISSING


@pytest.mark.parametrize("kind", ["opportunity_created", "auction_started"])
@pytest.mark.parametrize("value", [GONE, None, "", 5, "x" * 1025])
def test_the_first_two_types_need_no_response_reference(kind, value):
    assert answer(event(kind, "e", responseReference=value)) == ACCEPTED


@pytest.mark.parametrize(
    ("render", "expected"), [(GONE, ACCEPTED), (None, ACCEPTED), ("", MISSING), (5, MISSING), ("x" * 1025, MISSING)]
)
def test_an_error_needs_a_response_reference_unless_it_has_no_render_attempt(render, expected):
    assert answer(event("error", "e", responseReference=GONE, renderAttemptId=render)) == expected
    assert answer(event("error", "e", responseReference=5, renderAttemptId=render)) == expected


def test_an_absent_event_id_is_missing_and_an_illegal_one_is_not():
    assert answer(event("click", GONE)) == MISSING
    assert answer(event("click", None)) == MISSING
    for illegal in ("", "a b", "x" * 129, 5, [], {}, False, "é", "e\n"):
        assert answer(event("click", illegal)) == ACCEPTED
    # Step 3 comes before step 4.
    assert answer(event("click", GONE, eventAt="never")) == MISSING
    assert answer(event("click", "a b", eventAt="never")) == TIME


@pytest.mark.parametrize("value", [5, 1.5, True, [], {}, "never", "2026-03-01T12:00:00", "2026-03-01"])
def test_event_at_that_is_no_instant(value):
    assert answer(event("click", "e", eventAt=value)) == TIME


def test_event_at_may_be_24_hours_ahead_and_not_a_microsecond_more():
    assert answer(event("click", "e", eventAt="2026-03-02T12:00:00Z")) == ACCEPTED
    assert answer(event("click", "e", eventAt="2026-03-02T12:00:00.0000009Z")) == ACCEPTED
    assert answer(event("click", "e", eventAt="2026-03-02T12:00:00.000001Z")) == TIME
    assert answer(event("click", "e", eventAt="2026-03-02T14:00:00+02:00")) == ACCEPTED


@pytest.mark.parametrize("scope", ["", 5, [], "Global_unique", "global"])
def test_an_event_id_scope_must_be_one_of_the_two_values(scope):
    assert answer(event("click", "e", eventIdScope=scope)) == MISSING
    assert answer(event("click", "e", eventIdScope=scope, eventAt="never")) == TIME


UUID = "0189ABcd-0000-7000-8000-00000000000f"
ULID = "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"


@pytest.mark.parametrize(
    ("event_id", "extensions", "verified"),
    [
        (UUID, {"eventIdUniqueness": "uuid"}, True),
        (ULID, {"eventIdUniqueness": "ulid"}, True),
        (UUID, {"eventIdUniqueness": "ulid"}, False),
        (ULID, {"eventIdUniqueness": "uuid"}, False),
        (ULID.lower(), {"eventIdUniqueness": "ulid"}, False),
        ("8" + ULID[1:], {"eventIdUniqueness": "ulid"}, False),
        ("7U" + ULID[2:], {"eventIdUniqueness": "ulid"}, False),
        (UUID.replace("-", ""), {"eventIdUniqueness": "uuid"}, False),
        (UUID + "\n", {"eventIdUniqueness": "uuid"}, False),
        (UUID, {"eventIdUniqueness": "UUID"}, False),
        (UUID, {"eventIdUniqueness": ["uuid"]}, False),
        (UUID, {}, False),
        (UUID, None, False),
        (UUID, GONE, False),
        (UUID, "uuid", False),
        (5, {"eventIdUniqueness": "uuid"}, False),
    ],
)
def test_global_uniqueness_is_declared_by_the_batch_and_verified_by_form(event_id, extensions, verified):
    expected = ACCEPTED if verified else (REJECTED, "f_event_id_global_uniqueness_unverified")
    raw = event("click", event_id, eventIdScope="global_unique", idempotencyKey="k")
    assert answer(raw, extensions=extensions) == expected
    assert answer(event("click", event_id, eventIdScope="batch_scoped"), extensions=extensions) == ACCEPTED
    assert answer(event("click", event_id, eventIdScope=None), extensions=extensions) == ACCEPTED


@pytest.mark.parametrize("kind", REQUIRED)
def test_older_than_the_window_of_the_tier_is_stale_and_as_old_is_not(kind):
    days = "15" if kind in {"impression", "click", "postback"} else "04"
    assert answer(event(kind, "e", eventAt="2026-03-01T00:00:00Z"), f"2026-03-{days}T00:00:00Z") == ACCEPTED
    assert answer(event(kind, "e", eventAt="2026-03-01T00:00:00Z"), f"2026-03-{days}T00:00:00.000001Z") == STALE


def test_what_is_rejected_before_dedup_is_keyed_by_app_batch_and_index():
    output = run([at(T0, batch(1, 2, batch_id="b", app="x")), at(T0, batch(1, 2, batch_id="b", app="x"))])
    keys = ["fe_" + sha("x|b|0")[:32], "fe_" + sha("x|b|1")[:32]]
    for ack in output.acks:
        assert [item["serverEventKey"] for item in ack["ackItems"]] == keys
        assert [item["retryable"] for item in ack["ackItems"]] == [False, False]
        assert ack["overallStatus"] == "rejected_all"
    assert audits(output) == [("drop", "f_event_missing_required", 2)] * 2  # F20: counted, not added
    assert [record["recordType"] for record in output.records] == ["decision_audit"] * 2


def test_a_rejected_event_without_its_response_reference_is_quarantined_raw():
    lacking = event("click", "e", responseReference=GONE)
    other = event("click", "e", traceKey=GONE)
    output = run([at(T0, batch(lacking, other, 5))])
    assert [(row["eventIndex"], row["raw"]) for row in output.quarantine] == [(0, lacking), (2, 5)]
    assert [(row["eventIndex"], "raw" in row) for row in output.rejects] == [(1, False)]
