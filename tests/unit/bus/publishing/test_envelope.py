"""C§1, B1: every event has an envelope, and every field of it its form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patra.bus.catalogue.reasons import Reason
from patra.bus.publishing.envelope import (
    FIELDS,
    REQUIRED,
    Envelope,
    Refused,
    check,
    decode,
    decode_trusted,
    encode,
    from_wire,
    plainly_well,
    rendition,
    to_wire,
)
from patra.bus.publishing.submission import Submission
from patra.kernel.clock import format_instant
from tests.unit.bus.making import NOW, envelope

WIRE = to_wire(envelope(causation_id="cause", forwarded_by=("A", "B")))
C1 = ("tenant_id", "project_id", "trace_id", "correlation_id", "idempotency_key", "schema_version")


def test_b1_the_fields_of_the_envelope_and_their_order():
    assert list(WIRE) == [
        "event_id", "event_type", "event_version", "schema_version", "producer", "forwarded_by", "tenant_id", "project_id",
        "trace_id", "correlation_id", "causation_id", "idempotency_key", "occurred_at", "payload",
    ]  # fmt: skip
    assert WIRE["occurred_at"] == "2023-11-14T22:13:20Z"


def test_b1_forwarded_by_is_absent_when_never_forwarded():
    assert "forwarded_by" not in to_wire(envelope())
    assert from_wire({**WIRE, "forwarded_by": []}).place == "/forwarded_by"


def test_an_envelope_survives_its_text():
    made = envelope(causation_id="cause", forwarded_by=("A",), payload={"key": "é\u2028", "n": 1}, occurred_at=NOW + 1)
    assert decode(encode(made)) == made
    assert decode_trusted(encode(made).decode()) == made
    assert decode(encode(envelope(event_id=made.event_id, idempotency_key="k"))).causation_id is None
    empty = envelope(payload={})
    assert decode(encode(empty)) == empty


@given(st.integers(-(10**17), 3 * 10**17))
def test_an_instant_is_written_as_the_kernel_writes_it(instant):
    assert to_wire(envelope(occurred_at=instant))["occurred_at"] == format_instant(instant)


@given(st.sampled_from([f for f in FIELDS if f not in {"event_type", "event_version", "producer"}]), st.data())
def test_what_is_well_at_a_glance_is_well_with_care(name, data):
    values = st.one_of(
        st.text(max_size=4), st.just("x" * 257), st.just("1.0"), st.just("2.0"), st.none(), st.integers(), st.just(())
    )
    made = envelope(**{name: data.draw(values)})
    assert check(made) is None or not plainly_well(made)


@pytest.mark.parametrize("name", REQUIRED)
@pytest.mark.parametrize("value", [None, "", "absent"])
def test_c1_a_required_field_is_not_absent_null_or_empty(name, value):
    wire = {**WIRE, name: value}
    if value == "absent":
        del wire[name]
    found = from_wire(wire)
    assert (found.code, found.place) == (Reason.ENVELOPE_MISSING, f"/{name}")


def test_c1_the_six_fields_are_among_the_required():
    assert set(C1) <= set(REQUIRED)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("event_id", "0190a1b2-0000-4000-8000-000000000000"),
        ("event_id", "0190A1B2-0000-7000-8000-000000000000"),
        ("event_id", 7),
        ("event_type", "Thing.Happened"),
        ("event_type", "thing"),
        ("event_version", "1"),
        ("event_version", 1),
        ("schema_version", "new"),
        ("schema_version", 1.0),
        ("tenant_id", 7),
        ("tenant_id", " "),
        ("tenant_id", "a\x00b"),
        ("trace_id", "x" * 257),
        ("idempotency_key", "line\nbreak"),
        ("producer", ["Maker"]),
        ("correlation_id", {}),
        ("causation_id", 3),
        ("forwarded_by", "A"),
        ("forwarded_by", ["A", 3]),
        ("forwarded_by", [f"m{n}" for n in range(33)]),
        ("occurred_at", "yesterday"),
        ("occurred_at", "2023-11-14T22:13:20"),
        ("occurred_at", 1700000000),
        ("payload", "text"),
        ("payload", [1]),
    ],
)
def test_b1_a_field_of_another_form_is_refused_with_its_place(name, value):
    found = from_wire({**WIRE, name: value})
    assert isinstance(found, Refused)
    assert found.code in {Reason.ENVELOPE_INVALID, Reason.ENVELOPE_MISSING}
    assert found.place.startswith(f"/{name}")


@pytest.mark.parametrize("text", ["1", "1.0", "1.2.3"])
def test_envelopes_of_schema_version_one_are_read(text):
    assert isinstance(from_wire({**WIRE, "schema_version": text}), Envelope)


def test_an_envelope_of_a_later_schema_is_refused():
    assert from_wire({**WIRE, "schema_version": "2.0"}).code is Reason.SCHEMA_VERSION


def test_a_field_that_b1_does_not_name_is_refused():
    found = from_wire({**WIRE, "priority": 1})
    assert (found.code, found.place) == (Reason.ENVELOPE_UNKNOWN, "/priority")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"3", b"\xff", b'"text"', b"null"])
def test_what_is_no_json_object_is_malformed(body):
    assert decode(body).code is Reason.ENVELOPE_MALFORMED


def test_a1_digits_beyond_microseconds_are_dropped_and_offsets_turned_to_utc():
    found = from_wire({**WIRE, "occurred_at": "2023-11-15T00:13:20.123456789+02:00"})
    assert found.occurred_at == NOW + 123456


def test_an_envelope_built_in_code_is_checked_too():
    assert check(envelope()) is None
    assert check(envelope(tenant_id="")).place == "/tenant_id"
    assert check(envelope(payload=[])).place == "/payload"
    assert check(envelope(occurred_at="now")).place == "/occurred_at"


def test_a_rendition_is_the_same_event_in_another_version():
    original = envelope()
    other = rendition(original, "2.0", {"other": 1})
    assert (other.event_id, other.idempotency_key) == (original.event_id, original.idempotency_key)
    assert other.payload == {"other": 1}


def test_all_that_is_wrong_with_an_envelope_is_said_at_once():
    found = from_wire({"event_type": "Thing", "occurred_at": "soon", "payload": [], "priority": 1, "tenant_id": 3})
    assert found.code is Reason.ENVELOPE_UNKNOWN
    missing = set(REQUIRED) - {"event_type", "occurred_at", "payload", "tenant_id"}
    wrong = {"/priority", "/event_type", "/occurred_at", "/payload", "/tenant_id"} | {f"/{name}" for name in missing}
    assert {one.place for one in (found, *found.others)} == wrong


def test_ids_and_times_may_be_left_out_at_the_edge_and_are_filled_in():
    left_out = {"event_id", "schema_version", "trace_id", "correlation_id", "occurred_at"}
    found = from_wire({k: v for k, v in WIRE.items() if k not in left_out}, Submission(NOW))
    assert check(found) is None
    assert (found.occurred_at, found.schema_version) == (NOW, "1.0")
    assert found.trace_id == found.correlation_id == found.event_id
    kept = from_wire(WIRE, Submission(NOW))
    assert kept == from_wire(WIRE)
    assert (
        from_wire({k: v for k, v in WIRE.items() if k != "idempotency_key"}, Submission(NOW)).place
        == "/idempotency_key"
    )


@pytest.mark.parametrize("inner", ['{"key": 1, "key": 2}', '{"a": [{"key": 1, "key": 1}]}'])
def test_a_key_that_stands_twice_is_refused(inner):
    body = encode(envelope()).decode().replace('{"key":"k"}', inner)
    found = decode(body)
    assert (found.code, "'key' stands twice" in found.detail) == (Reason.ENVELOPE_MALFORMED, True)


def test_extensions_survive_the_text_and_their_form_is_checked():
    made = envelope(extensions={"subject": "s", "n": 1})
    assert decode(encode(made)) == decode_trusted(encode(made).decode()) == made
    assert check(envelope(extensions={"A": "x"})).place == "/extensions/A"
    assert check(envelope(extensions=[])).place == "/extensions"
