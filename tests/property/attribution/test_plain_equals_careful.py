"""The quick way of reading an event gives what the careful way gives, or leaves it to that (F2, F12)."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patra.attribution.contract.event_types import KINDS
from patra.attribution.contract.windows import FUTURE_LIMIT
from patra.attribution.intake.batch import in_order
from patra.attribution.intake.envelope import Envelope, as_read, plain_envelope
from patra.attribution.intake.validate import Event, check_event
from patra.attribution.intake.validate_fast import plain_reader
from patra.kernel.clock import parse_instant
from tests.property.attribution.logs import logs, seeded_log
from tests.support.examples import examples
from tests.unit.attribution.said import T0, event

NOBODY = Envelope(batch_id="b", app_id="app", uniqueness=None, events=[])


def both(sent: bytes, received_at: int, envelope: Envelope = NOBODY) -> tuple[Event | None, object]:
    raw = msgspec.Raw(sent)
    quick = plain_reader(envelope, received_at)(raw, 3)
    return quick, check_event(as_read(raw), 3, envelope, received_at)


def batches(lines):
    for line in lines:
        if isinstance(line.get("batch"), dict) and isinstance(line["batch"].get("events"), list):
            yield parse_instant(line["receivedAt"]), line["batch"]["events"]


@settings(max_examples=examples(50))
@given(logs())
def test_whatever_is_read_quickly_is_read_the_same_with_care(lines):
    for received_at, events in batches(lines):
        for sent in events:
            quick, careful = both(msgspec.json.encode(sent), received_at)
            assert quick is None or quick == careful


def test_most_sound_events_are_read_quickly():
    found = [
        (quick, careful)
        for received_at, events in batches(seeded_log(1, lines=60, events=12))
        for quick, careful in (both(msgspec.json.encode(sent), received_at) for sent in events)
        if isinstance(careful, Event)
    ]
    assert sum(quick is not None for quick, _ in found) > len(found) / 2


TEXTS = st.sampled_from(["", "x", "é" * 1024, "x" * 1025, "terminal", "unknown", "NA", "\x00", "2026-11-16T01:02:03Z"])
VALUES = st.one_of(
    TEXTS, st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.just(1.0), st.just([]), st.just({})
)


@settings(max_examples=examples(100))
@given(st.sampled_from(sorted(KINDS)), st.data())
def test_a_changed_field_never_tells_the_two_ways_apart(kind, data):
    sent = event(kind)
    names = [*sent, "idempotencyKey", "eventIdScope", "errorClass", "renderAttemptId", "responseReference", "note"]
    sent[data.draw(st.sampled_from(names))] = data.draw(VALUES)
    quick, careful = both(msgspec.json.encode(sent), T0)
    assert quick is None or quick == careful


@pytest.mark.parametrize(
    "at",
    [
        "2026-11-16T00:00:00Z",
        "2026-11-16T00:00:00.1Z",
        "2026-11-16T00:00:00.123456789Z",
        "2026-11-16T00:00:00.Z",
        "2026-11-16T00:00:00.١Z",
        "2026-11-16T00:00:00,5Z",
        "2026-11-16T00:00:00.5+00:00",
        "2026-11-16T00:00:00z",
        "2026-11-15T23:59:60Z",
        "2026-11-16T24:00:00Z",
        "2026-02-30T00:00:00Z",
        "2026-11-16 00:00:00Z",
        "2026-11-16T00:00:000Z",
        "Z" * 20,
        f"2026-11-16T00:00:00.{'0' * 1003}Z",
        f"2026-11-16T00:00:00.{'0' * 1004}Z",
    ],
)
def test_instants_are_read_as_the_clock_reads_them(at):
    quick, careful = both(msgspec.json.encode(event("impression") | {"eventAt": at}), T0)
    assert quick is None or quick == careful


def test_a_name_that_stands_twice_counts_the_last_time():
    text = msgspec.json.encode(event("impression"))
    for more in (
        b',"eventType":"click"}',
        b',"eventType":"impression"}',
        b',"traceKey":"other"}',
        b',"eventId":"other"}',
    ):
        quick, careful = both(text[:-1] + more, T0)
        assert quick is None or quick == careful


@pytest.mark.parametrize(
    "change",
    [
        {"batchId": "no legal id"},
        {"appId": ""},
        {"schemaVersion": "2"},
        {"sdkVersion": ""},
        {"sentAt": None},
        {"events": []},
        {"events": [{}] * 101},
        {"other": 1},
        {"extensions": {"a": [[]] * 256}},
    ],
)
def test_an_unusual_envelope_is_read_with_care(change):
    usual = {"batchId": "b", "appId": "a", "sdkVersion": "1", "sentAt": "x", "schemaVersion": "1", "events": [1]}
    assert plain_envelope(msgspec.json.encode(usual)) is not None
    assert plain_envelope(msgspec.json.encode(usual | change)) is None


def test_events_in_their_order_stay_in_it():
    quick = [both(msgspec.json.encode(event("ad_filled", name)), T0)[1] for name in ("b", "a", "c")]
    assert [one.sent_id for one in in_order(quick)] == ["a", "b", "c"]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_an_event_at_the_edge_of_a_bound_is_read_the_same(kind):
    for bound in (KINDS[kind].window, -FUTURE_LIMIT):
        for beyond in (-1, 0, 1):
            quick, careful = both(msgspec.json.encode(event(kind)), T0 + bound + beyond)
            assert quick is None or quick == careful
            assert isinstance(careful, Event) is ((beyond <= 0) if bound > 0 else (beyond >= 0))
