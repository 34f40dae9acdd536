"""Keys of the newest events in memory (F9)."""

import random

from patra.attribution.contract.windows import BILLING_WINDOW, DIAGNOSTICS_WINDOW
from patra.attribution.storage.recent_keys import BUCKETS, SIZE, First, Recent, pack_firsts

RNG = random.Random(7)


def first(key: bytes | None = None, at: int = 1_000_000, window: int = BILLING_WINDOW) -> First:
    return key or RNG.randbytes(16), RNG.randbytes(16), at, at + window


def holding(*firsts: First) -> Recent:
    recent = Recent()
    recent.add(pack_firsts(firsts))
    return recent


def test_a_key_is_found_with_its_fingerprint_and_window():
    for window in (BILLING_WINDOW, DIAGNOSTICS_WINDOW):
        for at in (-62_135_596_800_000_000, -1, 0, 1, 253_402_300_799_999_999):
            key, mark, first_at, expires_at = one = first(at=at, window=window)
            entry = holding(first(), one, first()).find_known([key])[key]
            assert (entry.key, entry.fingerprint, entry.cycle) == (key, mark, 1)
            assert (entry.first_at, entry.expires_at) == (first_at, expires_at)


def test_a_key_that_nobody_has_is_not_found():
    recent = holding(*[first() for _ in range(100)])
    assert recent.find_known([RNG.randbytes(16)]) == {}


def test_bytes_that_only_look_like_a_key_are_not_found():
    inside = b"\x01\x02" + RNG.randbytes(14)
    lying = (b"\x01\x02" + RNG.randbytes(14), inside, 5, 5 + BILLING_WINDOW)
    recent = holding(lying)
    assert recent.find_known([inside]) == {}
    mine = first(inside)
    recent.add(pack_firsts([mine]))
    assert recent.find_known([inside])[inside].fingerprint == mine[1]


def test_carried_keys_come_in_the_order_of_the_tree_and_are_gone():
    firsts = [first() for _ in range(500)]
    recent = holding(*firsts)
    recent.freeze()
    later = [first() for _ in range(50)]
    recent.add(pack_firsts(later))
    taken: list[First] = []
    bucket = 0
    while bucket < BUCKETS:
        some, bucket = recent.carry_keys(bucket, 60)
        assert len(some) < 60 + 500
        taken += some
    assert taken == sorted(firsts)
    assert recent.count == len(later)
    assert recent.find_known([key for key, *_ in firsts]) == {}
    assert set(recent.find_known([key for key, *_ in later])) == {key for key, *_ in later}


def test_keys_of_buckets_that_were_carried_are_left_out_when_rows_are_read_again():
    low, high = first(b"\x00\x10" + bytes(14)), first(b"\x00\x11" + bytes(14))
    recent = Recent()
    recent.add(pack_firsts([low, high]), from_bucket=0x11)
    assert set(recent.find_known([low[0], high[0]])) == {high[0]}
    assert recent.count == 1


def test_a_key_takes_forty_bytes():
    assert len(pack_firsts([first()])) == SIZE == 40
