"""Dedup keys of the newest events, in memory: finds those that are known, with their fingerprints (F9).

A B-tree of random keys costs a page an event. So on SQLite, where one process writes, new keys are appended to the
store in the order of their coming and found here, until they are carried into the tree in the order of the tree, many
to a page (`dedup_keys`). This is the working copy of what was appended: forty bytes a key in buckets by the key's first
two bytes, which are in the tree's order as they stand. All keys here are in their first cycle.

Carrying freezes what is there: the frozen keys of a bucket stand before those that come meanwhile.
"""

import struct
from collections.abc import Collection, Iterable, Iterator
from typing import cast

from patra.attribution.contract.windows import BILLING_WINDOW, DIAGNOSTICS_WINDOW
from patra.kernel.ledger import Entry

BUCKETS = 1 << 16
KEY, MARK, TAIL = 16, 16, 8
SIZE = KEY + MARK + TAIL
WINDOWS = (DIAGNOSTICS_WINDOW, BILLING_WINDOW)

_each = struct.Struct(f"{SIZE}s").iter_unpack

First = tuple[bytes, bytes, int, int]
"""A key that nobody had: key, fingerprint, first instant, end of its window."""


class Recent:
    """The keys, in buckets. `count` says how many there are, frozen ones included."""

    def __init__(self) -> None:
        self._buckets: list[bytes | bytearray] = [b""] * BUCKETS
        self._frozen: list[int] | None = None
        self.count = 0

    def find_known(self, keys: Iterable[bytes]) -> dict[bytes, Entry]:
        """The entries of those keys that are here."""
        buckets = self._buckets
        found: dict[bytes, Entry] = {}
        for key in keys:
            bucket = buckets[key[0] << 8 | key[1]]
            at = bucket.find(key)
            while at > 0 and at % SIZE:  # not a key: the end of one and the beginning of what follows it
                at = bucket.find(key, at + 1)
            if at >= 0:
                found[key] = _entry(bytes(bucket[at : at + SIZE]))
        return found

    def add(self, body: bytes, *, from_bucket: int = 0) -> None:
        """Take keys in, as `packed` put them together; those of earlier buckets than `from_bucket` are elsewhere."""
        buckets, taken = self._buckets, 0
        for (one,) in cast("Iterator[tuple[bytes]]", _each(body)):
            number = one[0] << 8 | one[1]
            if number < from_bucket:
                continue
            if bucket := buckets[number]:
                bucket += one
            else:
                bucket = bytearray(one)
            buckets[number] = bucket
            taken += 1
        self.count += taken

    def freeze(self) -> None:
        """What is here now is what will be carried."""
        self._frozen = [len(bucket) for bucket in self._buckets]

    def carry_keys(self, bucket: int, most: int) -> tuple[list[First], int]:
        """Take out frozen keys from a bucket on, some buckets whole; gives them in order, and the next bucket."""
        frozen = self._frozen or []
        taken: list[First] = []
        while bucket < len(frozen) and len(taken) < most:
            if size := frozen[bucket]:
                held = self._buckets[bucket]
                taken += sorted(_first(bytes(held[at : at + SIZE])) for at in range(0, size, SIZE))
                self._buckets[bucket] = held[size:]
            bucket += 1
        self.count -= len(taken)
        return taken, bucket


def pack_firsts(firsts: Iterable[First]) -> bytes:
    """Keys as they are kept, one after the other."""
    tails: dict[tuple[int, int], bytes] = {}
    parts: list[bytes] = []
    for key, mark, first_at, expires_at in firsts:
        tail = tails.get((first_at, expires_at))
        if tail is None:
            billing = WINDOWS.index(expires_at - first_at)
            tail = tails[first_at, expires_at] = (first_at << 1 | billing).to_bytes(TAIL, "big", signed=True)
        parts += (key, mark, tail)
    return b"".join(parts)


def firsts_of(body: bytes) -> Iterator[First]:
    """The keys of one commit, as `packed` put them together."""
    return (_first(one) for (one,) in cast("Iterator[tuple[bytes]]", _each(body)))


def known_in(body: bytes, keys: Collection[bytes]) -> dict[bytes, Entry]:
    """The entries of those of some keys that one commit began."""
    each = cast("Iterator[tuple[bytes]]", _each(body))
    return {one[:KEY]: _entry(one) for (one,) in each if one[:KEY] in keys}


def _first(body: bytes) -> First:
    tail = int.from_bytes(body[KEY + MARK :], "big", signed=True)
    first_at = tail >> 1
    return body[:KEY], body[KEY : KEY + MARK], first_at, first_at + WINDOWS[tail & 1]


def _entry(body: bytes) -> Entry:
    key, mark, first_at, expires_at = _first(body)
    return Entry(key=key, fingerprint=mark, cycle=1, first_at=first_at, expires_at=expires_at)
