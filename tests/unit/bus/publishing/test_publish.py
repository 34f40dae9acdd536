"""The decision on a publish: C§4, C§5, B2 to B5, in their order."""

from functools import partial

import msgspec
import pytest

from patra.bus.catalogue.catalogue import load
from patra.bus.catalogue.reasons import Reason
from patra.bus.publishing.envelope import Refused, from_wire, rendition, to_wire
from patra.bus.publishing.publish import (
    Candidate,
    Known,
    Published,
    answer_repeat,
    decide,
    examine,
    gather,
    identity,
    objections,
    order_key,
)
from patra.bus.publishing.publisher_tokens import module_publisher
from patra.bus.publishing.submission import Submission
from tests.unit.bus.making import ORDERED, THING, THING_2, catalogue, closed, envelope, event_type, version

SMALL = catalogue()
TWO = {"key": "k", "number": 1}
DUAL = catalogue(event_type(versions=[version("1.0", status="retiring"), version("2.0", THING_2)]))


def code(found):
    assert isinstance(found, Refused), found
    return found.code, found.place


def candidate(made=None, types=SMALL, index=0):
    found = examine(types, made or envelope(), index=index)
    assert isinstance(found, Candidate), found
    return found


def test_c1_an_event_that_breaks_the_envelope_is_not_published():
    assert code(examine(SMALL, envelope(tenant_id=""))) == (Reason.ENVELOPE_MISSING, "/tenant_id")


def test_all_that_is_wrong_is_said_at_once_and_the_first_check_decides():
    gate = msgspec.structs.replace(module_publisher("Maker"), tenants=frozenset({"acme"}))
    found = examine(SMALL, envelope(tenant_id=" ", event_version="3.0", producer="Thief", payload={"n": "x"}), gate)
    assert code(found) == (Reason.ENVELOPE_INVALID, "/tenant_id")
    assert [code(one) for one in found.others] == [
        (Reason.VERSION_UNKNOWN, "/event_version"),
        (Reason.PRODUCER, "/producer"),
    ]  # a payload of an unknown version is not judged
    found = examine(SMALL, envelope(producer="Thief", payload={"n": "x"}), gate)
    assert code(found) == (Reason.PRODUCER, "/producer")
    assert [code(one) for one in found.others] == [(Reason.PAYLOAD_INVALID, "/payload/n")]
    found = examine(SMALL, envelope(payload={"n": "x"}), gate)
    assert [code(one) for one in (found, *found.others)] == [
        (Reason.PUBLISHER, "/tenant_id"),
        (Reason.PAYLOAD_INVALID, "/payload/n"),
    ]


def test_fields_of_a_broken_envelope_are_judged_by_the_catalogue_as_far_as_they_have_their_form():
    submission = Submission(0, partial(objections, SMALL))
    wire = {"event_type": "thing.happened", "event_version": "1.0", "producer": "Thief", "payload": {"key": 1}}
    found = from_wire(wire, submission)
    assert code(found) == (Reason.ENVELOPE_MISSING, "/tenant_id")
    assert {one.place for one in found.others} == {"/project_id", "/idempotency_key", "/producer", "/payload/key"}
    assert {one.place for one in from_wire({**wire, "event_type": "no.such"}, submission).others} >= {"/event_type"}
    assert "/payload/key" not in {one.place for one in from_wire({**wire, "event_version": 3}, submission).others}
    assert from_wire({"event_type": []}, submission).code is Reason.ENVELOPE_MISSING


def test_versions_of_one_event_that_arrive_together_without_an_id_share_one():
    submission = Submission(0)
    wire = {k: v for k, v in to_wire(envelope()).items() if k not in {"event_id", "trace_id", "occurred_at"}}
    made = [from_wire(wire, submission), from_wire({**wire, "event_version": "2.0"}, submission)]
    other = from_wire({**wire, "idempotency_key": "other"}, submission)
    assert made[0].event_id == made[1].event_id != other.event_id
    pair = [candidate(one, DUAL, index) for index, one in enumerate([made[0], rendition(made[1], "2.0", TWO)])]
    assert len(gather(pair).publications) == 1


def test_c4_an_unknown_type_is_refused():
    assert code(examine(SMALL, envelope("other.happened"))) == (Reason.TYPE_UNKNOWN, "/event_type")


@pytest.mark.parametrize("text", ["1.1", "2.0", "0.1"])
def test_c4_an_unknown_version_is_refused(text):
    assert code(examine(SMALL, envelope(event_version=text))) == (Reason.VERSION_UNKNOWN, "/event_version")


def test_c4_an_older_minor_of_a_known_major_is_taken():
    types = catalogue(event_type(versions=[version("1.3")]))
    assert candidate(envelope(event_version="1.2"), types).minor == 2


def test_c4_a_retired_major_is_refused():
    types = catalogue(event_type(versions=[version("1.0", status="retired"), version("2.0", THING_2)]))
    assert code(examine(types, envelope())) == (Reason.VERSION_RETIRED, "/event_version")


@pytest.mark.parametrize("name", sorted(load().types))
def test_b3_only_the_authoritative_producer_publishes(name):
    types = load()
    made = envelope(name, dict(types.types[name].contracts[1].examples[0]), producer="Somebody Else")
    assert code(examine(types, made)) == (Reason.PRODUCER, "/producer")
    assert isinstance(examine(types, msgspec.structs.replace(made, producer=types.types[name].producer)), Candidate)


@pytest.mark.parametrize("spelling", ["Worker Hub", "worker-hub", "worker_hub", "WORKER HUB"])
def test_c5_one_module_may_be_spelled_as_the_table_spells_it(spelling):
    types = load()
    payload = dict(types.types["job.claimed"].contracts[1].examples[0])
    assert isinstance(examine(types, envelope("job.claimed", payload, producer=spelling)), Candidate)


def test_c5_whoever_passes_an_event_on_signs_it():
    assert code(examine(SMALL, envelope(), module_publisher("Hub"))) == (Reason.FORWARD_UNMARKED, "/forwarded_by")
    assert code(examine(SMALL, envelope(forwarded_by=("Other",)), module_publisher("Hub"))) == (
        Reason.FORWARD_UNMARKED,
        "/forwarded_by",
    )
    assert isinstance(examine(SMALL, envelope(forwarded_by=("Other", "hub")), module_publisher("Hub")), Candidate)
    assert isinstance(examine(SMALL, envelope(), module_publisher("maker")), Candidate)


def test_c5_a_forwarder_cannot_take_the_producers_place():
    assert code(examine(SMALL, envelope(producer="Hub", forwarded_by=("Hub",)), module_publisher("Hub"))) == (
        Reason.PRODUCER,
        "/producer",
    )


@pytest.mark.parametrize("path", [("Hub", "hub"), ("Maker",), ("Hub", "MAKER")])
def test_c5_no_module_forwards_twice_nor_its_own(path):
    assert code(examine(SMALL, envelope(forwarded_by=path))) == (Reason.FORWARD_LOOP, "/forwarded_by")


def test_a_payload_that_breaks_the_schema_is_refused_at_its_place():
    assert code(examine(SMALL, envelope(payload={"key": 3}))) == (Reason.PAYLOAD_INVALID, "/payload/key")
    found = examine(SMALL, envelope(payload={"other": 1}))
    assert found.place == "/payload/other"
    assert found.detail.endswith("; /payload/key: is missing"), "each violation is named with its place"
    many = examine(SMALL, envelope(payload={f"other{n}": n for n in range(7)})).detail
    assert (many.count("; /payload/other"), many.endswith(" (and 3 more)")) == (4, True)


def test_a_payload_without_canonical_form_is_refused_at_its_place():
    assert code(examine(SMALL, envelope(payload={"key": "k", "n": 2**60}))) == (
        Reason.PAYLOAD_NOT_CANONICAL,
        "/payload/n",
    )
    assert code(examine(SMALL, envelope(payload={"key": "\ud800"})))[0] is Reason.PAYLOAD_NOT_CANONICAL


def test_an_envelope_that_is_too_large_is_refused():
    assert code(examine(SMALL, envelope(payload={"key": "x" * 1_048_576})))[0] is Reason.PAYLOAD_TOO_LARGE


def test_b2_the_key_is_tenant_type_and_idempotency_key():
    one = envelope()
    assert identity(one) == identity(msgspec.structs.replace(one, payload={"key": "x"}, trace_id="t", project_id="q"))
    for change in ({"tenant_id": "other"}, {"event_type": "other.happened"}, {"idempotency_key": "other"}):
        assert identity(one) != identity(msgspec.structs.replace(one, **change))
    assert identity(envelope(tenant_id="a", idempotency_key="1:b")) != identity(
        envelope(tenant_id="a1:b", idempotency_key="")
    )


def known(made, event_id="first"):
    return Known(event_id, {c.major: c.fingerprint for c in made.renditions})


def publication(*candidates):
    (found,) = gather(candidates).publications
    return found


def test_b2_the_same_payload_again_gives_the_first_event_id():
    made = publication(candidate(envelope(payload={"key": "k", "n": 1})))
    again = publication(candidate(envelope(payload={"n": 1, "key": "k"})))
    assert decide(again, known(made), {}) == Published(event_id="first", duplicate=True)


def test_b2_another_payload_under_the_key_is_refused():
    made, other = publication(candidate()), publication(candidate(envelope(payload={"key": "other"})))
    assert code(decide(other, known(made), {})) == (Reason.IDEMPOTENCY_CONFLICT, "/idempotency_key")


def test_b5_a_frozen_type_takes_nothing_new():
    made = publication(candidate())
    assert code(decide(made, None, {"thing.happened": "why"})) == (Reason.TYPE_FROZEN, "/event_type")
    assert decide(made, None, {"other.happened": "why"}) == Published(event_id=made.event_id)


def test_b5_a_duplicate_is_no_new_publish_even_while_frozen():
    made = publication(candidate())
    assert decide(made, known(made), {"thing.happened": "why"}).duplicate


def test_b4_two_majors_in_use_are_published_together():
    assert gather([candidate(envelope(), DUAL)]).refused[0].code is Reason.DUAL_MISSING
    one = envelope()
    both = [candidate(one, DUAL), candidate(rendition(one, "2.0", {"key": "k", "number": 1}), DUAL, 1)]
    made = publication(*both)
    assert [c.major for c in made.renditions] == [1, 2]


@pytest.mark.parametrize(
    "change", [{"event_id": "0190a1b2-0000-7000-8000-000000000000"}, {"trace_id": "other"}, {"forwarded_by": ("Hub",)}]
)
def test_b4_renditions_of_one_event_differ_in_version_and_payload_only(change):
    one = envelope()
    other = msgspec.structs.replace(rendition(one, "2.0", {"key": "k", "number": 1}), **change)
    found = gather([candidate(one, DUAL), candidate(other, DUAL, 1)])
    assert {r.code for r in found.refused.values()} == {Reason.RENDITIONS_DISAGREE}
    assert set(found.refused) == {0, 1}


def test_b4_renditions_of_one_event_have_one_ordering_key():
    types = catalogue(event_type(versions=[version("1.0", status="retiring"), version("2.0", THING_2)], **ORDERED))
    one = envelope()
    found = gather([candidate(one, types), candidate(rendition(one, "2.0", {"key": "x", "number": 1}), types, 1)])
    assert found.refused[0].code is Reason.RENDITIONS_DISAGREE


def test_b2_a_retry_across_an_upgrade_to_two_majors_is_a_duplicate():
    before = publication(candidate())
    one = envelope()
    after = publication(candidate(one, DUAL), candidate(rendition(one, "2.0", {"key": "k", "number": 1}), DUAL, 1))
    assert decide(after, known(before), {}) == Published(event_id="first", duplicate=True)
    only_new = catalogue(event_type(versions=[version("1.0", status="retired"), version("2.0", THING_2)]))
    later = publication(candidate(envelope(event_version="2.0", payload={"key": "k", "number": 1}), only_new))
    assert code(decide(later, known(before), {}))[0] is Reason.IDEMPOTENCY_CONFLICT


def test_b2_a_key_that_stands_twice_in_one_call_is_decided_in_order():
    one = envelope()
    same = msgspec.structs.replace(one, event_id="0190a1b2-0000-7000-8000-000000000000")
    other = msgspec.structs.replace(one, payload={"key": "x"})
    found = gather([candidate(one), candidate(same, index=1), candidate(other, index=2)])
    assert len(found.publications) == 1
    (second, first), (third, _) = found.repeats
    assert answer_repeat(second, first, Published(event_id="e")) == Published(event_id="e", duplicate=True)
    assert answer_repeat(third, first, Published(event_id="e")).code is Reason.IDEMPOTENCY_CONFLICT
    refused = Refused(code=Reason.TYPE_FROZEN, place="", detail="")
    assert answer_repeat(second, first, refused) is refused


def test_order_keys_are_built_from_scope_and_values():
    one, other = (
        event_type(**ORDERED),
        event_type("other.happened", ordering={"key": ["/payload/key"], "scope": "thing.happened"}),
    )
    made = envelope()
    assert order_key(event_type(), made) is None
    assert order_key(one, made) == order_key(other, made)
    assert order_key(one, made) != order_key(one, envelope(payload={"key": "x"}))
    alone = event_type("other.happened", **ORDERED)
    assert order_key(one, made) != order_key(alone, made)
    pair = event_type(ordering={"key": ["/tenant_id", "/payload/key"]})
    assert order_key(pair, envelope(tenant_id="a", payload={"key": "b|c"})) != order_key(
        pair, envelope(tenant_id="a|b", payload={"key": "c"})
    )


INNER = closed({"a": {"type": "string"}, "b": {"type": "string", "since": "1.2"}})
LATER = closed(
    {**THING["properties"], "new": {"type": "string", "since": "1.1"}, "list": {"type": "array", "items": INNER}},
    ["key"],
)
MINORS = catalogue(event_type(versions=[version("1.2", LATER)]))


@pytest.mark.parametrize(
    ("label", "payload", "place"),
    [
        ("1.0", {"key": "k", "new": "x"}, "/payload/new"),
        ("1.1", {"key": "k", "new": "x"}, None),
        ("1.0", {"key": "k", "list": [{"a": "x"}]}, None),
        ("1.1", {"key": "k", "list": [{"a": "x"}, {"b": "x"}]}, "/payload/list/1/b"),
        ("1.2", {"key": "k", "list": [{"b": "x"}]}, None),
    ],
)
def test_c4_an_event_carries_no_field_of_a_later_minor_than_its_label(label, payload, place):
    found = examine(MINORS, envelope(payload=payload, event_version=label))
    if place is None:
        assert isinstance(found, Candidate)
    else:
        assert code(found) == (Reason.PAYLOAD_INVALID, place)
        assert isinstance(examine(MINORS, envelope(payload=payload, event_version=label), elsewhere=True), Candidate)
