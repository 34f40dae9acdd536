"""The envelope: §3.8.4, F11."""

import json
import random
from typing import Any

import pytest

from patra.attribution.contract.reasons import Reason
from patra.attribution.intake.envelope import MAX_JSON_DEPTH, Envelope, NotText, Refused, envelope, read_json
from tests.unit.attribution.said import ABSENT, answered, event, replayed, sent
from tests.unit.attribution.said import envelope as batch


def code(value: object) -> str:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    found = envelope(body)
    return found.code if isinstance(found, Refused) else "taken"


def events_of(body: bytes) -> list[object]:
    found = envelope(body)
    assert isinstance(found, Envelope)
    return found.events


@pytest.mark.parametrize(
    "body", [b"", b"{", b"nope", b"\xff", b'{"a":NaN}', b'{"a":1,}', b"\xef\xbb\xbf{}", b"[]", b"5", b'"text"', b"null"]
)
def test_a_body_that_is_not_a_json_object_is_malformed(body):
    assert code(body) == "f_batch_malformed"


@pytest.mark.parametrize("field", ["batchId", "appId", "sdkVersion", "sentAt", "schemaVersion"])
@pytest.mark.parametrize("value", [ABSENT, None, "", [], {}])
def test_a_required_field_that_is_absent_null_or_empty_is_missing(field, value):
    assert code(batch(event("click"), **{field: value})) == "f_batch_missing_required"


@pytest.mark.parametrize("value", [ABSENT, None])
def test_absent_events_are_missing(value):
    assert code(batch(events=value)) == "f_batch_missing_required"


@pytest.mark.parametrize("value", [[], {}, "", "x", 5, {"a": 1}, [event("click")] * 101])
def test_events_that_are_no_array_of_1_to_100_are_invalid(value):
    assert code(batch(events=value)) == "f_batch_events_invalid"


def test_one_and_a_hundred_events_are_taken():
    assert code(batch(event("click"))) == "taken"
    assert code(batch(*[event("click")] * 100)) == "taken"


@pytest.mark.parametrize("field", ["batchId", "appId"])
@pytest.mark.parametrize("value", ["a b", "é", "x" * 129, 5, True, ["x"], {"x": 1}, "a\n", "a|b"])
def test_batch_id_and_app_id_have_the_form_of_an_event_id(field, value):
    assert code(batch(event("click"), **{field: value})) == "f_batch_id_invalid"


@pytest.mark.parametrize("value", ["a", "x" * 128, "A-Z.a_z:0-9"])
def test_legal_batch_ids_are_taken(value):
    assert code(batch(event("click"), batch=value, app=value)) == "taken"


@pytest.mark.parametrize("value", ["2", "1.1", "1.00", 1, 1.0, True, " 1", {"a": 1}])
def test_schema_versions_other_than_the_texts_1_and_1_0_are_unsupported(value):
    assert code(batch(event("click"), schemaVersion=value)) == "f_batch_schema_unsupported"


@pytest.mark.parametrize("value", ["1", "1.0"])
def test_schema_versions_1_and_1_0_are_supported(value):
    assert code(batch(event("click"), schemaVersion=value)) == "taken"


def test_the_first_check_that_fails_decides():
    wrong = batch(events=[], batchId="a b", schemaVersion="9")
    assert code({**wrong, "sdkVersion": None}) == "f_batch_missing_required"
    assert code(wrong) == "f_batch_id_invalid"
    assert code({**wrong, "batchId": "b"}) == "f_batch_schema_unsupported"
    assert code({**wrong, "batchId": "b", "schemaVersion": "1"}) == "f_batch_events_invalid"


def test_fields_that_no_rule_names_may_be_anything():
    assert code(batch(event("click"), sdkVersion=7, sentAt="yesterday", retrySequence=[], extensions="x")) == "taken"


def test_a_refusal_names_the_batch_where_its_id_can_be_read():
    assert envelope(b"[") == Refused(code="f_batch_malformed", batch_id=None)  # type: ignore[arg-type]
    refused = envelope(json.dumps(batch(events=[], batch="b7")).encode())
    assert isinstance(refused, Refused)
    assert refused.batch_id == "b7"


@pytest.mark.parametrize(("batch_id", "legible"), [("x" * 1024, True), ("x" * 1025, False), ("a b", True), (7, False)])
def test_a_batch_id_can_be_read_when_it_is_text_of_1_to_1024_characters(batch_id, legible):
    refused = envelope(json.dumps(batch(event("click"), batch=batch_id)).encode())
    assert refused == Refused(code=Reason.BATCH_ID_INVALID, batch_id=batch_id if legible else None)
    assert envelope(json.dumps(batch(event("click"), batch="")).encode()) == Refused(code=Reason.BATCH_MISSING_REQUIRED)


def test_a_refused_envelope_has_no_answers_to_single_events_and_leaves_no_audit():
    output = replayed(sent(0, event("click"), schemaVersion="3"))
    assert output.acks == [{"code": "f_batch_schema_unsupported"}]
    assert output.audits == output.records == output.closures == []


def test_of_a_name_that_stands_twice_the_last_counts():
    body = json.dumps(batch(event("click"))).encode()
    assert code(body[:-1] + b',"schemaVersion":"9"}') == "f_batch_schema_unsupported"


def test_one_event_with_half_a_surrogate_pair_does_not_take_the_batch_down():
    body = json.dumps(batch({"eventId": "\ud800", "x\udfff": 1}, event("click"))).encode()
    first, second = events_of(body)
    assert second == event("click")
    assert first == {"eventId": "\ufffd", "x\ufffd": 1}
    assert type(first["eventId"]) is NotText  # type: ignore[index]


def test_numbers_past_the_range_of_doubles_do_not_take_the_batch_down():
    body = json.dumps(batch(event("click"))).replace('"clickTarget"', f'"a":1e400,"b":{"9" * 6000},"clickTarget"')
    assert answered(f'{{"receivedAt": "2026-01-01T00:00:00Z", "batch": {body}}}') == [("accepted", "f_accepted")]


def test_an_event_that_nests_too_deeply_is_read_as_null_and_the_others_are_taken():
    def nested(levels: int) -> bytes:
        deep = b"[" * (levels - 1) + b"]" * (levels - 1)
        return json.dumps(batch(event("click"), "DEEP")).encode().replace(b'"DEEP"', b'{"a":' + deep + b"}")

    assert events_of(nested(MAX_JSON_DEPTH + 1))[1] is None
    assert events_of(nested(MAX_JSON_DEPTH + 1))[0] == event("click")
    assert events_of(nested(MAX_JSON_DEPTH))[1] is not None
    assert events_of(nested(100_000))[1] is None


def test_brackets_inside_text_do_not_count_as_nesting():
    text = "[{" * 5000 + '\\"' + "]"
    assert events_of(json.dumps(batch(event("click", note=text), event("click"))).encode())[0]["note"] == text  # type: ignore[index]


def test_unmatched_brackets_are_malformed_however_many():
    assert code(b"[" * 100_000) == "f_batch_malformed"
    assert code(b'{"events":' + b"[" * 100_000 + b"}") == "f_batch_malformed"


def test_text_that_never_ends_is_read_once_and_not_from_each_of_its_quotes():
    never = b'"' + b'\\"' * 400_000
    assert code(b"[" * 300 + never) == "f_batch_malformed"
    assert code(b'{"events":[' + b'{"a":' * 300 + never) == "f_batch_malformed"


def test_of_many_events_that_nest_too_deeply_each_is_null_and_what_stands_between_them_stays():
    deep = b'{"a":' + b"[" * MAX_JSON_DEPTH + b"]" * MAX_JSON_DEPTH + b"}"
    body = json.dumps(batch("DEEP", event("click"), "DEEP", 7, "DEEP")).encode().replace(b'"DEEP"', deep)
    assert events_of(body) == [None, event("click"), None, 7, None]


def test_whatever_nests_too_deeply_on_the_third_level_is_null_and_nothing_else(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("patra.attribution.intake.envelope.MAX_JSON_DEPTH", 3)
    dice = random.Random(11)

    def value(levels: int) -> Any:
        if not levels or dice.random() < 0.2:
            return dice.choice([1, None, "]", '"[', [], {}])
        some = [value(levels - 1) for _ in range(dice.randrange(4))]
        return some if dice.random() < 0.5 else {f'"{{{n}': one for n, one in enumerate(some)}

    def levels_of(one: Any) -> int:
        parts = one.values() if isinstance(one, dict) else one if isinstance(one, list) else None
        return 0 if parts is None else 1 + max(map(levels_of, parts), default=0)

    def cut(one: Any, level: int) -> Any:
        if level == 3:
            return None if levels_of(one) > 3 else one
        if isinstance(one, dict):
            return {name: cut(part, level + 1) for name, part in one.items()}
        return [cut(part, level + 1) for part in one] if isinstance(one, list) else one

    many = [value(dice.randrange(2, 9)) for _ in range(2000)]
    assert sum(cut(one, 1) != one for one in many) > 300
    for one in many:
        assert read_json(json.dumps(one).encode()) == cut(one, 1)
        assert read_json(json.dumps(one, indent=1).encode()) == cut(one, 1)
