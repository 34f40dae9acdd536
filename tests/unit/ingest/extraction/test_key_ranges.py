"""Ranges of a key: they are disjoint, cover everything, and end at single keys."""

from patra.ingest.extraction.completeness import Ledger, LegCount
from patra.ingest.extraction.key_ranges import KeyRanges, narrower, recount_ledger
from patra.ingest.packs.sections import KeyBounds

BOUNDS = KeyBounds(first=1, last=8)


def pairs(ranges: KeyRanges | None) -> list[tuple[int, int]]:
    assert ranges is not None
    return [(one.first, one.last) for one in ranges.todo if not one.recount]


def test_the_range_that_is_too_deep_is_halved_and_the_whole_is_counted_last() -> None:
    once = narrower(KeyRanges(), BOUNDS)
    assert pairs(once) == [(1, 4), (5, 8)]
    assert once is not None
    assert once.todo[-1].recount
    assert pairs(narrower(once, BOUNDS)) == [(1, 2), (3, 4), (5, 8)]


def test_a_single_key_and_a_pack_without_keys_have_no_smaller_range() -> None:
    ranges: KeyRanges | None = KeyRanges()
    for _ in range(3):
        assert ranges is not None
        ranges = narrower(ranges, BOUNDS)
    assert pairs(ranges)[0] == (1, 1)
    assert ranges is not None
    assert narrower(ranges, BOUNDS) is None
    assert narrower(KeyRanges(), None) is None


def test_a_whole_that_has_more_than_its_ranges_is_short() -> None:
    ledger = Ledger(listing=LegCount(promised_last=90, positions=90))
    assert recount_ledger(ledger, 100).missing == 10
    assert recount_ledger(ledger, 90) == recount_ledger(ledger, 80) == ledger
    assert recount_ledger(ledger, None).missing == 1, "nobody says that this was all"
