"""Finds the numbers of closures' rows by their keys (SQLite).

A tree of random keys costs a page a closure. So on SQLite, where one process writes, closures stand in the order of
their opening, and their keys are found in memory until they are carried into a tree of their own, in its order, many to
a page, as dedup keys are (`recent`). A closure never goes and its number never changes, so a key may stand in memory
and in the tree at once. Marks say up to which number all keys are in the tree, and how far a carrying has come; the
keys of later closures are read at the start.

What is in memory here is right as long as what `dedup_keys` has in memory is: both are read again together.
"""

from collections.abc import Collection

from patra.attribution.storage.sql import Q, mark, set_mark
from patra.kernel.db import Tx
from patra.kernel.errors import Permanent

KEYED, TO, FROM = "closures_keyed", "closures_keyed_to", "closures_keyed_from"
"""The marks: the last number up to which all keys are in the tree; the number up to which they are being carried, and
the bucket to go on with."""
BUCKETS = 256
"""Keys are carried one first byte after the other."""


class Numbers:
    """The numbers of closures as one process has them; its methods are called inside of a transaction that writes."""

    def __init__(self) -> None:
        self._buckets: list[dict[bytes, int]] = [{} for _ in range(BUCKETS)]
        self._tree = False
        self._to = 0
        self._from = 0
        self.newest = 0
        self.count = 0
        """How many keys are in memory."""

    @classmethod
    def read(cls, tx: Tx) -> "Numbers":
        """As the store has them: what is not in the tree yet comes into memory."""
        found = cls()
        found.newest = mark(tx, KEYED)
        found._to, found._from = mark(tx, TO), mark(tx, FROM)
        found._tree = bool(tx.fetch(Q["some_closure_key"]))
        for number, key in tx.fetch(Q["closures_not_keyed"], {"keyed": found.newest}):
            found.add(bytes(key), number)
        return found

    @property
    def carrying(self) -> bool:
        """Whether some keys were carried and others are still to be."""
        return self._to > 0

    def find(self, tx: Tx, keys: Collection[bytes]) -> list[int]:
        """The numbers of those closures that there are."""
        buckets = self._buckets
        found: list[int] = []
        others: list[bytes] = []
        for key in keys:
            number = buckets[key[0]].get(key)
            if number is None:
                others.append(key)
            else:
                found.append(number)
        if self._tree and others:  # sorted: neighbours share the pages that are looked at
            found += [number for _, number in tx.fetch(Q["closure_numbers"], rows=[(key,) for key in sorted(others)])]
        return found

    def add(self, key: bytes, number: int) -> None:
        """A closure that was opened; numbers rise."""
        self._buckets[key[0]][key] = number
        self.newest = number
        self.count += 1

    def carry(self, tx: Tx) -> int:
        """Carry the keys of one bucket into the tree; those that came since the carrying began wait for the next."""
        self._to = self._to or self.newest
        if not self._to:  # nobody opened one yet: a step now would pass over the keys that come later
            return 0
        bucket = self._buckets[self._from]
        rows = sorted((key, number) for key, number in bucket.items() if number <= self._to)
        if tx.execute(Q["key_closures"], rows=rows) != len(rows):
            _same(tx, rows)
        self._buckets[self._from] = {key: number for key, number in bucket.items() if number > self._to}
        self.count -= len(rows)
        self._tree = True
        self._from += 1
        if self._from == BUCKETS:
            set_mark(tx, KEYED, self._to)
            self._to = self._from = 0
        set_mark(tx, TO, self._to)
        set_mark(tx, FROM, self._from)
        return max(len(rows), 1)


def _same(tx: Tx, rows: list[tuple[bytes, int]]) -> None:
    """Keys that are in the tree already lead to the same closures; two closures with one key would bill it twice."""
    there = {bytes(key): number for key, number in tx.fetch(Q["closure_numbers"], rows=[(key,) for key, _ in rows])}
    if twice := [key.hex() for key, number in rows if there[key] != number]:
        raise Permanent("attribution_closure_twice", f"the store has two closures with the key {twice[0]}")
