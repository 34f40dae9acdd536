"""SQLite's last line of defence: a background duty enters billable facts into a unique index of billing keys.

A commit only appends to `att_billable`, since a tree of random keys would cost it a page an event. In the order of
decision, facts are entered here; one whose key is taken already breaks what the writer promises. It is noted, logged
and counted, settlement leaves it out (`att_settled`), and no period closes while there is one: what waits is entered
before. While the writer is busy, this steps aside up to a bound, since each page costs the writer its turn. PostgreSQL
has a unique index in the writing transaction instead, and nothing to do here.
"""

from collections.abc import Callable

from patra.attribution.decision.decide import ITEM_BITS
from patra.attribution.storage.sql import Q, mark, set_mark
from patra.kernel.clock import Clock
from patra.kernel.db import Database, Row, Tx
from patra.kernel.telemetry import gauge, get_logger

log = get_logger()

PAGE_FACTS = 2_000
MAX_WAITING_ITEMS = 2_000
"""Items beyond which facts are entered however busy the writer is: settlement reads one by one what waits."""
BILLING_KEYED = "billing_keyed"
"""The mark: the last decision whose fact was entered."""

BILLED_TWICE = gauge(
    "patra_attribution_billed_twice", "Billable facts whose billing key was billed before: any is an alert."
)


class BillingTree:
    """Enters billable facts into the tree of billing keys, one page at a time."""

    def __init__(self, db: Database, clock: Clock, busy: Callable[[], bool] = lambda: False) -> None:
        self._db = db
        self._clock = clock
        self._busy = busy

    def run_once(self) -> int:
        """One page; gives how many facts it entered."""
        if self._db.dialect != "sqlite":
            return 0
        now, busy = self._clock.now(), self._busy()
        after, newest = self._db.read(lambda tx: (mark(tx, BILLING_KEYED), tx.fetch(Q["newest_item"])[0][0] or 0))
        if busy and newest - (after >> ITEM_BITS) <= MAX_WAITING_ITEMS:
            return 0
        if not self._db.read(lambda tx: tx.fetch(Q["billables_after"], {"after": after, "limit": 1})):
            return 0
        facts, twice, total = self._db.run(lambda tx: _enter_page(tx, now))
        BILLED_TWICE.set(total)
        if twice:
            log.error("attribution_billed_twice", facts=twice, total=total)
        return facts

    def catch_up(self) -> None:
        """Enter everything that is there."""
        while self.run_once():
            pass


def billed_twice(tx: Tx) -> int:
    """How many facts were found whose billing key had been billed before."""
    return tx.fetch(Q["count_billed_twice"])[0][0]


def _enter_page(tx: Tx, now: int) -> tuple[int, int, int]:
    after = mark(tx, BILLING_KEYED)
    ((facts, with_key, last),) = tx.fetch(Q["billables_to_key"], {"after": after, "limit": PAGE_FACTS})
    if not facts:
        return 0, 0, billed_twice(tx)
    entered = tx.execute(Q["key_billables"], {"after": after, "last": last})
    twice = [] if entered == with_key else _note_twice(tx, after, now)
    set_mark(tx, BILLING_KEYED, last)
    return facts, len(twice), billed_twice(tx)


def _note_twice(tx: Tx, after: int, now: int) -> list[Row]:
    """Note the facts of a page whose key is another's."""
    found = tx.fetch(Q["billables_after"], {"after": after, "limit": PAGE_FACTS})
    keyed = sorted((bytes(closure), kind, number) for closure, kind, number in found if closure is not None)
    twice = tx.fetch(Q["keyed_elsewhere"], rows=keyed)
    tx.execute(Q["note_billed_twice"], {"now": now}, rows=twice)
    return twice
