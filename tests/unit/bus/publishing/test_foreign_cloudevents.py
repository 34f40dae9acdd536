"""CloudEvents of senders that know nothing of Patra become envelopes; ours are left as they are."""

import msgspec
import pytest

from patra.bus.catalogue.reasons import Reason
from patra.bus.publishing.cloudevents import from_binary, from_structured, structure_event
from patra.bus.publishing.envelope import Envelope
from patra.bus.publishing.foreign_cloudevents import completion
from patra.bus.publishing.submission import Submission
from patra.kernel.ids import new_id
from tests.unit.bus.making import NOW, THING_2, catalogue, envelope, event_type, version

TYPES = catalogue(event_type(versions=[version("1.3", status="retiring"), version("2.1", THING_2)]))
ORDINARY = {
    "specversion": "1.0",
    "id": "A234-1234-1234",
    "source": "https://shop.example/orders?x=1",
    "type": "thing.happened",
    "subject": "order 7",
    "data": {"key": "k", "number": 1},
}
COMPLETE = completion(TYPES, {"acme"})


def read(sent=ORDINARY, complete=COMPLETE):
    return from_structured(sent, Submission(NOW), complete)


def test_an_ordinary_cloudevent_becomes_an_envelope():
    found = read()
    assert isinstance(found, Envelope), found
    assert (found.producer, found.event_version, found.tenant_id, found.project_id) == (
        "Maker",
        "2.1",
        "acme",
        "default",
    )
    assert found.idempotency_key == "https://shop.example/orders?x=1 A234-1234-1234"
    assert found.payload == ORDINARY["data"]
    origin = {"originsource": ORDINARY["source"], "originid": ORDINARY["id"], "subject": "order 7"}
    assert found.extensions == origin
    assert read().event_id != found.event_id  # sent again it is a duplicate by its key
    assert {name: structure_event(found)[name] for name in origin} == origin


def test_binary_mode_is_completed_too():
    headers = {f"ce-{name}": value for name, value in ORDINARY.items() if name not in {"data", "subject"}}
    found = from_binary(
        {"content-type": "application/json", **headers}, b'{"key": "k", "number": 1}', Submission(NOW), COMPLETE
    )
    assert isinstance(found, Envelope), found
    assert (found.producer, found.idempotency_key) == ("Maker", read().idempotency_key)


def test_what_the_sender_says_itself_stands():
    said = {"eventversion": "1.2", "tenantid": "beta", "projectid": "p", "idempotencykey": "mine", "id": new_id()}
    found = read({**ORDINARY, **said})
    assert (found.event_version, found.tenant_id, found.project_id) == ("1.2", "beta", "p")
    assert (found.idempotency_key, found.event_id) == ("mine", said["id"])
    assert "originid" not in found.extensions


def test_a_publisher_of_several_tenants_has_to_name_one():
    for tenants in (None, {"acme", "beta"}, set()):
        refused = read(complete=completion(TYPES, tenants))
        assert (refused.code, refused.place) == (Reason.ENVELOPE_MISSING, "/tenant_id")


def test_the_version_is_the_highest_live_one_that_is_read_by_all():
    def filled(kinds=TYPES, staged=()):
        return read(complete=completion(kinds, {"acme"}, lambda: {"thing.happened": staged}))

    assert filled().event_version == "2.1"
    assert filled(staged={2}).event_version == "1.3"
    refused = filled(staged={1, 2})  # none is clear
    assert (refused.code, refused.place) == (Reason.ENVELOPE_MISSING, "/event_version")
    later = catalogue(event_type(versions=[version("1.3", status="retired"), version("2.1", THING_2)]))
    assert filled(later, {2}).event_version == "2.1"  # there is no other


def test_the_stages_are_asked_for_only_where_a_version_has_to_be_chosen():
    def never():
        raise AssertionError

    single = catalogue(event_type())
    assert read(complete=completion(single, {"acme"}, never)).event_version == "1.0"
    assert read({**ORDINARY, "eventversion": "1.2"}, completion(TYPES, {"acme"}, never)).event_version == "1.2"


def test_a_long_source_is_a_key_of_bounded_length():
    found = [read({**ORDINARY, "source": f"https://shop.example/{'x' * 300}", "id": i}).idempotency_key for i in "ab"]
    assert len(set(found)) == 2
    assert {len(key) for key in found} == {len("sha256:") + 64}


@pytest.mark.parametrize("length", [0, 300])
def test_two_different_pairs_of_source_and_id_never_share_a_key(length):
    def key(source, identifier):
        return read({**ORDINARY, "source": source, "id": identifier + "x" * length}).idempotency_key

    pairs = [("a", "b c"), ("a b", "c"), ("a ", "b c"), ("a  b", "c"), ("a%20b", "c"), ("1", "a b"), ("3", "a b c")]
    assert len({key(*pair) for pair in pairs}) == len(pairs)
    assert [key(*pair) for pair in pairs] == [key(*pair) for pair in pairs]
    if not length:
        assert [key(*pair) for pair in (pairs[0], pairs[4])] == ["a b c", "a%20b c"]  # a URI: as ever


def test_events_of_our_own_producers_are_left_as_they_are():
    made = envelope()
    assert from_structured(structure_event(made), Submission(NOW), COMPLETE) == made
    for source in ("", 7, None):
        assert from_structured({**structure_event(made), "source": source}, Submission(NOW), COMPLETE) != made
    bare = {**ORDINARY, "source": "urn:patra:producer:Maker"}
    assert read(bare).code in {Reason.ENVELOPE_MISSING, Reason.ENVELOPE_INVALID}


def test_an_unknown_type_is_refused_as_such_later_and_not_for_its_source():
    assert read({**ORDINARY, "type": "no.such"}).producer == "unknown"
    assert msgspec.json.encode(structure_event(read()))
