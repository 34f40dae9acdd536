"""Stores and finds dedup keys (F9): in the ledger's tree, on SQLite by way of `att_recent`.

On PostgreSQL a commit writes its keys into the tree, and a commit that finds another was first decides again. On SQLite
it appends them as one row. They are found in memory (`recent`) until they are carried into the tree, batch by batch:
the keys of the rows up to `carry_to`, bucket after bucket from `carry_from` on, and then those rows go. A key is either
in memory or in the tree, never in both.

Memory is right as long as the mark `recent` is the one that this process wrote last: every transaction that changes a
key writes a mark of its own, so what another process wrote, or what was undone here, is noticed, and the rows are read
again. The numbers of closures (`numbers`) are kept beside the keys and go by the same mark: no closure is opened but by
an event with a new key, or with a new cycle of one.
"""

import secrets
from collections.abc import Collection

from patra.attribution.decision.dedup import SCOPE, Ledger
from patra.attribution.storage.closure_index import Numbers
from patra.attribution.storage.recent_keys import BUCKETS, First, Recent, pack_firsts
from patra.attribution.storage.sql import Q, mark, set_mark
from patra.kernel.clock import HOUR
from patra.kernel.db import Database, Tx
from patra.kernel.ledger import Entry, begin_cycles, entries

MAX_RECENT_KEYS = 1_000_000
"""Keys in memory beyond which every commit carries some, however busy it is."""
MIN_KEYS_TO_CARRY = 100_000
"""Keys that are worth carrying in a quiet moment."""
MOST_CLOSURES, ENOUGH_CLOSURES = 200_000, 20_000
"""The same for closures."""
MAX_RECENT_KEY_AGE = HOUR
"""How old the oldest may become before fewer are carried too."""
CARRY_BATCH_SIZE = 2000
"""Keys, or rows, of one step."""
CARRY_DONE_MARK = 1 << 40
"""`carry_from` once all keys are carried and only their rows are left."""

PURGED = "ledger_purged"
"""The mark that says that the ledger has forgotten keys."""
VERSION, CARRY_TO, CARRY_FROM = "recent", "carry_to", "carry_from"


class Keys:
    """The dedup keys as one process has them; its methods are called inside of a transaction that writes."""

    def __init__(self, most: int = MAX_RECENT_KEYS, most_closures: int = MOST_CLOSURES) -> None:
        self._most = most
        self._most_closures = most_closures
        self._recent = Recent()
        self._version = -1
        self._tree = False
        self._to = 0
        self._from = 0
        self.closures = Numbers()
        """On SQLite, the closures by key."""

    @property
    def count(self) -> int:
        """How many keys are in memory."""
        return self._recent.count

    def load(self, tx: Tx, keys: Collection[bytes]) -> Ledger:
        """The entries of the keys at hand; of keys that the ledger has forgotten, how far their cycles had come.

        Only after `refresh` in the same transaction: what is in memory is trusted.
        """
        found = self._find_known(tx, keys)
        if not mark(tx, PURGED):
            return Ledger(found)
        past = tx.fetch(Q["past_cycles"], rows=[(key,) for key in keys if key not in found])
        return Ledger(found, {bytes(key): cycle for key, cycle in past})

    def write(self, tx: Tx, ledger: Ledger, at: int) -> None:
        """Keys that nobody had, then new cycles of keys that are there, one layer after the other."""
        if tx.dialect == "sqlite":
            self._append(tx, ledger.firsts, at)
            if ledger.layers:  # a closure may be opened by no other event
                self._stamp(tx)
            if ledger.layers and self._recent.find_known(key for layer in ledger.layers for key in layer):
                while self.count:  # a key of a later cycle is the tree's alone
                    self._carry(tx)
        else:
            _insert(tx, ledger.firsts)
        for layer in ledger.layers:
            begin_cycles(tx, SCOPE, layer)
            self._tree = True
        if self.closures.count > self._most_closures:
            self.carry_closures(tx)

    def refresh(self, tx: Tx) -> None:
        """Read what is in memory again where it is not what the store has."""
        if tx.dialect == "sqlite":
            self._refresh(tx)

    def carry_closures(self, tx: Tx) -> int:
        """Carry some keys of closures into their tree; gives how many that were."""
        self._refresh(tx)
        self._stamp(tx)
        return self.closures.carry(tx)

    def carry(self, tx: Tx) -> int:
        """Carry one batch into the tree; gives how many keys or rows that were, 0 when nothing is left."""
        self._refresh(tx)
        return self._carry(tx)

    def _find_known(self, tx: Tx, keys: Collection[bytes]) -> dict[bytes, Entry]:
        found: dict[bytes, Entry] = {}
        if tx.dialect == "sqlite":
            found = self._recent.find_known(keys)
            if not self._tree:
                return found
        wanted = sorted(key for key in keys if key not in found) if found else sorted(keys)
        return found | entries(tx, SCOPE, wanted)  # sorted: neighbours share the pages that are looked at

    def _append(self, tx: Tx, firsts: list[First], at: int) -> None:
        if not firsts:
            return
        try:
            body = pack_firsts(firsts)
        except ValueError:  # windows of other rules than the live ones: such keys are the tree's alone
            _insert(tx, firsts)
            self._tree = True
            return
        self._stamp(tx)
        tx.execute(Q["append_recent"], {"at": at, "body": body})
        self._recent.add(body)
        if self.count > self._most:
            self._carry(tx, CARRY_BATCH_SIZE + len(firsts))  # more than came: a carry ends some day

    def _stamp(self, tx: Tx) -> None:
        self._version = secrets.randbits(62)
        set_mark(tx, VERSION, self._version)

    def _refresh(self, tx: Tx) -> None:
        version = mark(tx, VERSION)
        if version == self._version:
            return
        self._version = -1  # until everything is read
        self._recent = Recent()
        self.closures = Numbers.read(tx)
        self._to, self._from = mark(tx, CARRY_TO), mark(tx, CARRY_FROM)
        frozen = False
        for number, body in tx.fetch(Q["recent_keys"]):
            if number > self._to and not frozen:
                self._recent.freeze()
                frozen = True
            self._recent.add(bytes(body), from_bucket=self._from if number <= self._to else 0)
        if not frozen:
            self._recent.freeze()
        self._tree = bool(tx.fetch(Q["some_key"], {"scope": SCOPE}))
        self._version = version

    def _carry(self, tx: Tx, most: int = CARRY_BATCH_SIZE) -> int:
        if not self._to:
            ((newest,),) = tx.fetch(Q["newest_recent"])
            if newest is None:
                return 0
            self._to = newest
            self._recent.freeze()
            self._from = 0
            set_mark(tx, CARRY_TO, self._to)
        self._stamp(tx)
        if self._from == CARRY_DONE_MARK:
            gone = tx.execute(Q["forget_recent"], {"last": self._to, "limit": CARRY_BATCH_SIZE})
            if gone < CARRY_BATCH_SIZE:
                self._to = self._from = 0
                set_mark(tx, CARRY_TO, 0)
                set_mark(tx, CARRY_FROM, 0)
            return max(gone, 1)
        firsts, self._from = self._recent.carry_keys(self._from, most)
        if self._from >= BUCKETS:
            self._from = CARRY_DONE_MARK
        set_mark(tx, CARRY_FROM, self._from)
        _insert(tx, firsts)
        self._tree = True
        return max(len(firsts), 1)


def carry_once(db: Database, keys: Keys, now: int) -> int:
    """When idle: carry a batch of the recent keys into their trees, where they are many or old."""
    if db.dialect != "sqlite":
        return 0

    def due(tx: Tx) -> bool:
        oldest = tx.fetch(Q["oldest_recent_at"])
        return bool(oldest) and (
            bool(mark(tx, CARRY_TO)) or keys.count >= MIN_KEYS_TO_CARRY or now - oldest[0][0] >= MAX_RECENT_KEY_AGE
        )

    if db.read(due):
        return db.run(keys.carry)
    return db.run(keys.carry_closures) if keys.closures.carrying or keys.closures.count >= ENOUGH_CLOSURES else 0


def _insert(tx: Tx, firsts: list[First]) -> None:
    """Into the tree, in the order of the keys."""
    tx.claim(Q["begin_keys"], {"scope": SCOPE}, rows=sorted(firsts))
