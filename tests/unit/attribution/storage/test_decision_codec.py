"""The decisions on an item as one row of the store: what went in comes out, whichever way the row was made."""

import msgspec
from hypothesis import given, settings

from patra.attribution.commit import whole
from patra.attribution.decision.closure_state import Closure
from patra.attribution.decision.decide import ITEM_BITS, Changes, decide
from patra.attribution.decision.dedup import Ledger
from patra.attribution.intake.batch import Item, Tick, read_batch
from patra.attribution.storage.decision_codec import pack_decisions, packed_whole, unpack_decisions
from patra.kernel.clock import MINUTE, parse_instant
from tests.property.attribution.logs import logs
from tests.unit.attribution.said import T0, envelope, event


def decided(*items: Item, closures: dict[bytes, Closure] | None = None) -> tuple[Changes, dict[int, Item]]:
    numbered = dict(enumerate(items, 1))
    return decide(Ledger({}), closures or {}, numbered)[1], numbered


def rows(changes: Changes, items: dict[int, Item]) -> list[tuple[int, bytes]]:
    return [(number, pack_decisions(made, items[number])) for number, made in changes.decisions.items()]


@settings(max_examples=60)
@given(logs())
def test_what_was_decided_is_read_back_from_its_rows(lines):
    batches = [
        (msgspec.json.encode(line["batch"]), parse_instant(line["receivedAt"])) for line in lines if "batch" in line
    ]
    changes, items = decided(*(read_batch(body, at or 0) for body, at in batches), Tick(at=T0 + 999 * MINUTE))
    found = [one for number, body in rows(changes, items) for one in unpack_decisions(number, body)]
    assert found == whole(changes, items)


def test_rows_of_whole_decisions_say_the_same_and_the_oldest_know_only_places():
    sent = msgspec.json.encode(envelope(event("impression", extensions={"x": 1}), event("click", "c")))
    changes, items = decided(read_batch(sent, T0))
    ((number, body),) = rows(changes, items)
    found = unpack_decisions(number, body)
    assert [decision.extensions for _, decision in found] == [None, {"x": 1}, None]  # click, impression, click again
    assert unpack_decisions(number, packed_whole(found)) == found
    places = [(place - (number << ITEM_BITS), decision) for place, decision in found]
    assert unpack_decisions(number, packed_whole(places)) == found


def test_with_a_text_those_decisions_are_read_that_can_hold_it():
    events = [event("click", f"event-{n}", renderAttemptId=f"ra-{n}") for n in range(5)]
    first = msgspec.json.encode(envelope(*events, event("impression", "event-1", renderAttemptId="ra-1")))
    changes, items = decided(read_batch(first, T0), Tick(at=T0 + 999 * MINUTE))
    whole_rows = [(number, packed_whole(unpack_decisions(number, body))) for number, body in rows(changes, items)]
    for number, body in [*rows(changes, items), *whole_rows]:
        everything = unpack_decisions(number, body)
        for n in range(5):
            text = f"event-{n}".encode()
            found = unpack_decisions(number, body, text)
            assert [one for one in found if one[1].subject.event_id == text.decode()] == [
                one for one in everything if one[1].subject.event_id == text.decode()
            ]
            assert number != 1 or len(found) < len(everything)  # those of a tick name their subjects themselves
    ((_, body), *_) = rows(changes, items)
    assert unpack_decisions(1, body, b"nobody-has-this") == [
        one for one in unpack_decisions(1, body) if one[1].batch is not None
    ]
