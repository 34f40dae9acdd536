"""The decisions on an item as one row of the store: what went in comes out, whichever way the row was made."""

import msgspec
from hypothesis import given, settings

from patra.attribution.batch import Item, Tick, read_batch
from patra.attribution.closure import Closure
from patra.attribution.commit import whole
from patra.attribution.decide import ITEM_BITS, Changes, decide
from patra.attribution.dedup import Ledger
from patra.attribution.pack import packed, packed_whole, unpacked
from patra.kernel.clock import MINUTE, parse_instant
from tests.property.attribution.logs import logs
from tests.unit.attribution.said import T0, envelope, event


def decided(*items: Item, closures: dict[bytes, Closure] | None = None) -> tuple[Changes, dict[int, Item]]:
    numbered = dict(enumerate(items, 1))
    return decide(Ledger({}), closures or {}, numbered)[1], numbered


def rows(changes: Changes, items: dict[int, Item]) -> list[tuple[int, bytes]]:
    return [(number, packed(made, items[number])) for number, made in changes.decisions.items()]


@settings(max_examples=60)
@given(logs())
def test_what_was_decided_is_read_back_from_its_rows(lines):
    batches = [
        (msgspec.json.encode(line["batch"]), parse_instant(line["receivedAt"])) for line in lines if "batch" in line
    ]
    changes, items = decided(*(read_batch(body, at or 0) for body, at in batches), Tick(at=T0 + 999 * MINUTE))
    found = [one for number, body in rows(changes, items) for one in unpacked(number, body)]
    assert found == whole(changes, items)


def test_rows_of_whole_decisions_say_the_same_and_the_oldest_know_only_places():
    sent = msgspec.json.encode(envelope(event("impression", extensions={"x": 1}), event("click", "c")))
    changes, items = decided(read_batch(sent, T0))
    ((number, body),) = rows(changes, items)
    found = unpacked(number, body)
    assert [decision.extensions for _, decision in found] == [None, {"x": 1}, None]  # click, impression, click again
    assert unpacked(number, packed_whole(found)) == found
    places = [(place - (number << ITEM_BITS), decision) for place, decision in found]
    assert unpacked(number, packed_whole(places)) == found
