"""B1: the envelope maps one to one onto CloudEvents 1.0, structured and binary."""

import base64

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from patra.bus.catalogue.reasons import Reason
from patra.bus.publishing.cloudevents import binary, from_binary, from_structured, is_binary, structure_event
from patra.bus.publishing.envelope import Envelope, check
from patra.bus.publishing.submission import Submission
from patra.kernel.ids import new_id
from tests.unit.bus.making import NOW, envelope

names = st.text(st.characters(exclude_categories=["Cc", "Cs", "Cn"]), min_size=1, max_size=30).filter(
    lambda s: not s.isspace() and "\ufffe" not in s
)
json_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**53) + 1, 2**53 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(exclude_categories=["Cs"])),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), inner, max_size=3),
    ),
    max_leaves=8,
)
envelopes = st.builds(
    Envelope,
    event_id=st.builds(new_id),
    event_type=st.sampled_from(["thing.happened", "a_b.c9.d"]),
    event_version=st.sampled_from(["1.0", "2.13"]),
    schema_version=st.sampled_from(["1", "1.0", "1.2"]),
    producer=names,
    forwarded_by=st.lists(names, max_size=3).map(tuple),
    tenant_id=names,
    project_id=names,
    trace_id=names,
    correlation_id=names,
    causation_id=st.one_of(st.none(), names),
    idempotency_key=names,
    extensions=st.dictionaries(st.sampled_from(["subject", "dataschema", "traceparent", "myext1"]), names, max_size=3),
    occurred_at=st.integers(0, 4_000_000_000_000_000),
    payload=st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), json_values, max_size=4),
)


@given(envelopes)
def test_b1_structured_mode_is_a_round_trip(made):
    assert check(made) is None
    text = msgspec.json.encode(structure_event(made))
    assert from_structured(msgspec.json.decode(text)) == made


@given(envelopes)
def test_b1_binary_mode_is_a_round_trip_through_ascii_headers(made):
    headers, body = binary(made)
    assert all(value.isascii() and value.isprintable() for value in headers.values())
    assert is_binary(headers)
    assert from_binary({name.upper(): value for name, value in headers.items()}, body) == made


@given(envelopes)
def test_b1_attribute_names_are_legal_and_every_value_is_text(made):
    for name, value in structure_event(made).items():
        if name != "data":
            assert name.isalnum()
            assert name.islower()
            assert isinstance(value, str)


def test_the_mapping_of_names():
    made = envelope(producer="Model Router", causation_id="cause", forwarded_by=("Worker Hub", "a,b"))
    assert structure_event(made) == {
        "specversion": "1.0",
        "id": made.event_id,
        "source": "urn:patra:producer:Model%20Router",
        "type": "thing.happened",
        "time": "2023-11-14T22:13:20Z",
        "eventversion": "1.0",
        "schemaversion": "1.0",
        "tenantid": "tenant",
        "projectid": "project",
        "traceid": "trace",
        "correlationid": "correlation",
        "causationid": "cause",
        "idempotencykey": made.idempotency_key,
        "forwardedby": "Worker%20Hub,a%2Cb",
        "datacontenttype": "application/json",
        "data": {"key": "k"},
    }


BASE = structure_event(envelope(occurred_at=NOW))


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"specversion": "0.3"}, "/specversion"),
        ({"datacontenttype": "text/xml"}, "/datacontenttype"),
        ({"source": "/gateway"}, "/source"),
        ({"source": "urn:patra:producer:%zz"}, "/source"),
        ({"source": "urn:patra:producer:%ff"}, "/source"),
        ({"forwardedby": "%"}, "/forwardedby"),
        ({"tenantid": 7}, "/tenantid"),
        ({"data_base64": "e30="}, "/data_base64"),
    ],
)
def test_a_cloudevent_that_maps_onto_no_envelope_is_refused_with_its_place(change, place):
    found = from_structured({**BASE, **change})
    assert (found.code, found.place) == (Reason.CLOUDEVENT_INVALID, place)


def test_data_may_come_in_base64():
    body = {k: v for k, v in BASE.items() if k != "data"} | {"data_base64": base64.b64encode(b'{"key": "k"}').decode()}
    assert from_structured(body) == from_structured(BASE)
    assert from_structured({**body, "data_base64": "###"}).place == "/data_base64"


def test_a_missing_attribute_is_named_by_its_field_and_as_it_is_sent():
    found = from_structured({k: v for k, v in BASE.items() if k not in {"tenantid", "source"}})
    assert (found.code, found.place) == (Reason.ENVELOPE_MISSING, "/producer")
    assert found.detail == "is required (attribute `source`)"
    (other,) = found.others
    assert (other.place, other.detail) == ("/tenant_id", "is required (attribute `tenantid`)")


@pytest.mark.parametrize(
    ("headers", "body", "place"),
    [
        ({}, b"{", "/data"),
        ({"content-type": "text/plain"}, b"{}", "/datacontenttype"),
        ({"ce-id": "%ff"}, b"{}", "/id"),
    ],
)
def test_binary_mode_that_is_none_is_refused(headers, body, place):
    good, _ = binary(envelope())
    assert from_binary({**good, **headers}, body).place == place


def test_no_object_is_no_cloudevent():
    assert from_structured([]).code is Reason.CLOUDEVENT_INVALID


def test_attributes_of_other_senders_are_kept_and_given_back():
    sent = {**BASE, "subject": "cover.png", "dataschema": "https://example.org/s.json", "flag": True, "count": 3}
    found = from_structured(sent)
    assert found.extensions == {k: sent[k] for k in ("subject", "dataschema", "flag", "count")}
    assert structure_event(found) == sent
    headers, body = binary(found)
    assert (headers["ce-subject"], headers["ce-flag"], headers["ce-count"]) == ("cover.png", "true", "3")
    assert from_binary(headers, body).extensions["subject"] == "cover.png"


@pytest.mark.parametrize("change", [{"Bad": "x"}, {"under_score": "x"}, {"ext": 1.5}, {"ext": ["x"]}, {"ext": "a\x00"}])
def test_an_attribute_that_cloudevents_does_not_allow_is_refused(change):
    (name,) = change
    found = from_structured({**BASE, **change})
    assert (found.code, found.place) == (Reason.ENVELOPE_INVALID, f"/extensions/{name}")


def test_a_trace_is_taken_from_the_traceparent_where_none_is_named():
    sent = {k: v for k, v in BASE.items() if k not in {"traceid", "correlationid", "time"}}
    parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    found = from_structured({**sent, "traceparent": parent}, Submission(NOW))
    assert (found.trace_id, found.correlation_id) == ("4bf92f3577b34da6a3ce929d0e0e4736", found.event_id)
    assert (found.extensions, found.occurred_at) == ({"traceparent": parent}, NOW)
