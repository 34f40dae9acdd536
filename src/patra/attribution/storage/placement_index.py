"""Moves placements of opportunities from where the writer appended them into the tree that settlement reads.

Nobody but settlement asks for them, so a commit only appends (`att_placement`), and they are carried behind it into
`att_opportunity`: once enough wait, those that came at least `MAX_TRANSACTION_TIME` ago, in the order of their keys,
a part of the keys at a time; then their rows go. Settlement reads both, so it is right at any moment. Several
processes may try: each step moves a mark from where it was, and who comes second does nothing.
"""

from collections.abc import Callable

from patra.attribution.decision.decide import ITEM_BITS
from patra.attribution.storage.key_index import MAX_TRANSACTION_TIME
from patra.attribution.storage.sql import Q, mark
from patra.kernel.clock import Clock
from patra.kernel.db import Database, Tx

MIN_ITEMS_TO_CARRY = 2_000
"""Items with placements that are worth carrying in a quiet moment."""
MAX_WAITING_ITEMS = 50_000
"""Items beyond which they are carried however busy it is."""
CARRY_BATCH_ITEMS = 100
"""Items whose placements one step carries, were the keys of all put in order."""
DELETE_BATCH_ROWS = 5_000
"""Rows that go in one step."""

TO, FROM = "placed_to", "placed_from"
"""The marks: the first decision that is not carried this time, and the first key that is still to be carried."""
_BYTES = 7
_KEYS = 1 << (8 * _BYTES)
"""A key counts by its first bytes."""


class Carrier:
    """Carries placements, one step at a time."""

    def __init__(self, db: Database, clock: Clock, busy: Callable[[], bool] = lambda: False) -> None:
        self._db = db
        self._clock = clock
        self._busy = busy

    def run_once(self) -> int:
        """One step; gives whether there was one to do."""
        before = self._clock.now() - MAX_TRANSACTION_TIME
        to, low, oldest, settled = self._db.read(lambda tx: standing(tx, before))
        waiting = 0 if oldest is None else settled - (oldest >> ITEM_BITS)
        if waiting < MAX_WAITING_ITEMS and (self._busy() or (waiting < MIN_ITEMS_TO_CARRY and not to)):
            return 0
        if not to:
            return self._db.run(lambda tx: _move_entries(tx, TO, 0, (settled + 1) << ITEM_BITS))
        if low >= _KEYS:
            return self._db.run(lambda tx: _forget(tx, to))
        items = (to >> ITEM_BITS) - ((oldest or to) >> ITEM_BITS)
        high = min(low + _KEYS // max(items // CARRY_BATCH_ITEMS, 1), _KEYS)
        span = {"to": to, "low": _bound(low), "high": _bound(high)}
        first: dict[bytes, bytes] = {}
        for key, placement in self._db.read(lambda tx: tx.fetch(Q["placements_between"], span)):
            first.setdefault(bytes(key), bytes(placement))

        def carry(tx: Tx) -> int:
            moved = tx.execute(Q["carried_up_to"], {"to": to, "was": low, "value": high})
            if moved:
                tx.execute(Q["carry_placements"], rows=list(first.items()))
            return moved

        return self._db.run(carry)


def standing(tx: Tx, before: int) -> tuple[int, int, int | None, int]:
    """Both marks, the oldest decision that is not carried, and the newest item that no commit can come before.

    `before` allows for both: the wait of a received batch for its commit, and the life of a transaction, which the
    database ends after two minutes of silence.
    """
    received = tx.fetch(Q["received_before"], {"before": before})
    return mark(tx, TO), mark(tx, FROM), tx.fetch(Q["oldest_placement"])[0][0], received[0][0] if received else 0


def _move_entries(tx: Tx, name: str, was: int, value: int) -> int:
    return tx.execute(Q["move_mark"], {"name": name, "was": was, "value": value})


def _forget(tx: Tx, to: int) -> int:
    """All keys are carried: their rows are deleted, and at last the marks start again."""
    gone = tx.execute(Q["forget_placements"], {"to": to, "limit": DELETE_BATCH_ROWS})
    if gone < DELETE_BATCH_ROWS:
        _move_entries(tx, TO, to, 0)
        _move_entries(tx, FROM, _KEYS, 0)
    return max(gone, 1)


def _bound(place: int) -> bytes:
    """The least key of a place; past the last place, what no key reaches."""
    return b"\xff" * 17 if place >= _KEYS else place.to_bytes(_BYTES, "big")
