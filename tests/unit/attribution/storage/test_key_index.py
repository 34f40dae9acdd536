"""Values of the index by key: one run, or several that were joined."""

from patra.attribution.storage.key_index import merge_bodies, segments


def value(first: int, *entries: bytes) -> bytes:
    return first.to_bytes(8, "big") + b"".join(entries)


def test_values_of_several_runs_keep_their_entries_apart():
    bodies = [value(1, b"entry--1", b"entry--2"), value(500, b"entry--3"), value(7)]
    assert segments(bodies[0]) == ([1], [24], 8)
    whole = merge_bodies([merge_bodies(bodies[:2]), bodies[2]])
    bases, ends, start = segments(whole)
    assert bases == [1, 500, 7]
    assert [end - start for end in ends] == [16, 24, 24]
    assert whole[start:] == b"entry--1entry--2entry--3"
