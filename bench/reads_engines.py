"""The reads of attribution and of the bus on a large store: stories by key, lists, settlement, while a writer writes.

The store is filled by the engines themselves, so every index, running sum and packed row is what traffic leaves.
"""

from collections.abc import Callable, Iterator
from typing import Any

from bench.attribution_traffic import APPS, EVENTS, TEMPLATES, filled, mark, templates
from bench.bus import envelope, prepared
from bench.reads_copies import Space, copy, leave_room
from bench.reads_fill import BUS_EVENT_ID, BUS_KIND, FILLED_SPAN, fill_bus
from patra.app.story.search import story
from patra.attribution.commit import commit
from patra.attribution.intake.batch import read_batch
from patra.attribution.queries import closures, list_refused, newest_decisions, rejects
from patra.attribution.settlement import settle
from patra.attribution.storage.billing_tree import BillingTree
from patra.attribution.storage.dedup_keys import Keys, carry_once
from patra.attribution.storage.key_index import RUN_TIMEOUT, Indexer
from patra.attribution.storage.key_index_merge import RunMerger
from patra.attribution.storage.placement_index import Carrier
from patra.attribution.storage.running_sums import MARKS, RunningSums
from patra.bus import operations
from patra.bus.bus import Bus
from patra.bus.consuming.dead_letter import Filter
from patra.bus.timeline import timeline
from patra.kernel.clock import DAY, HOUR, SECOND, SystemClock
from patra.kernel.db import Database, Tx

GROUP_BATCHES = 32
MAX_DAYS = 30
MIN_BATCHES_PER_DAY = 1_000
Reads = dict[str, Callable[[], Any]]


class Loops:
    """What runs behind the writer of attribution: the tree of billing keys, the index by key, placements, sums."""

    def __init__(self, db: Database, patience: int = RUN_TIMEOUT) -> None:
        clock = SystemClock()
        tree, indexer = BillingTree(db, clock), Indexer(db, clock, patience=patience)
        sums = [RunningSums(db, kind) for kind in MARKS]
        self._steps: list[Callable[[], int]] = [
            tree.run_once,
            lambda: indexer.run_once().items,
            RunMerger(db).run_once,
            Carrier(db, clock).run_once,
            *(one.run_once for one in sums),
        ]

    def turn(self) -> None:
        """One step of each."""
        for step in self._steps:
            step()

    def catch_up(self) -> None:
        for step in self._steps:
            while step():
                pass


class AttributionStore:
    """A store of attribution that is filled by commits as the writer makes them."""

    def __init__(self, db: Database, first: int = 0) -> None:
        self.db = db
        self.keys = Keys()
        self._ago = 0
        self._number = first
        self._bodies = self._made()

    def _made(self) -> Iterator[bytes]:
        by_app = [templates(app, at=(SystemClock().now() - self._ago) / SECOND) for app in APPS]
        while True:
            number, self._number = self._number, self._number + 1
            for sender, bodies in enumerate(by_app):
                yield filled(bodies[number % len(bodies)], mark(sender, number), mark(sender, max(number - 1, 0)))

    def write(self, batches: int) -> None:
        now = SystemClock().now() - self._ago
        commit(self.db, [read_batch(next(self._bodies), now) for _ in range(batches)], keys=self.keys)

    def fill(self, events: int, copies: int = 0) -> None:
        """So many events, received over some days as they would have been, the last of them today.

        With copies, as large a part of them is committed, and the others are older copies of its rows.
        """
        batches = events // EVENTS // (copies + 1)
        days = max(min(events // EVENTS // MIN_BATCHES_PER_DAY, MAX_DAYS) // (copies + 1), 1)
        space = Space(copies=copies, items=batches, age=days * DAY)
        leave_room(self.db, space)
        for day in range(days):
            self._ago = (days - 1 - day) * DAY
            self._bodies = self._made()
            today = batches * (day + 1) // days - batches * day // days
            for number in range(0, today, GROUP_BATCHES):
                self.write(min(GROUP_BATCHES, today - number))
            self.settle()
        copy(self.db, space)

    def settle(self) -> None:
        """Let everything catch up that runs behind the writer."""
        while carry_once(self.db, self.keys, SystemClock().now() + HOUR):
            pass
        Loops(self.db, patience=0).catch_up()

    def reads(self, events: int) -> Reads:
        """A key of each kind from the middle of the store, the lists, and settlement of the day."""
        middle_number = events // EVENTS // len(APPS) // 2
        middle = mark(0, middle_number)
        now = SystemClock().now()
        found: Reads = {
            f"attribution: story of {name}": lambda key=key: story(self.db, key)
            for name, key in {
                "a traceKey": f"tr-{middle}-003",
                "a responseReference": f"rr-{middle}-003",
                "a batchId": f"b-{middle}-{middle_number % TEMPLATES:02}",
                "an unknown key": "nothing-has-this-key",
            }.items()
        }
        lists: dict[str, Callable[[Tx], Any]] = {
            "newest decisions": lambda tx: newest_decisions(tx, lambda _, __: True, limit=50),
            "closures, open": lambda tx: closures(tx, state="open", after=b"", limit=50),
            "closures, failed": lambda tx: closures(tx, state="closed_failure", after=b"", limit=50),
            "rejects": lambda tx: rejects(tx, limit=50),
            "refused": lambda tx: list_refused(tx, limit=50),
        }
        for by in ("app", "day", "placement"):
            lists[f"settlement by {by}, a day"] = lambda tx, by=by: settle(tx, now - DAY, now + DAY, by)
            lists[f"settlement by {by}, all days"] = lambda tx, by=by: settle(tx, now - MAX_DAYS * DAY, now + DAY, by)
        return found | {f"attribution: {name}": lambda work=work: self.db.read(work) for name, work in lists.items()}


class BusStore:
    """A store of the bus whose group has handled the older half of what was published."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.bus: Bus = prepared(db, BUS_KIND)

    def write(self, events: int) -> None:
        made = [envelope(self.bus, BUS_KIND) for _ in range(events)]
        self.db.run(lambda tx: self.bus.publish_many(tx, made))

    def fill(self, events: int) -> None:
        now = SystemClock().now()
        fill_bus(self.db, self.bus, events, past=now - FILLED_SPAN, now=now - DAY)

    def reads(self, events: int) -> Reads:
        middle = BUS_EVENT_ID.format(events // 2)
        lists: dict[str, Callable[[Tx], Any]] = {
            "timeline of an event": lambda tx: timeline(tx, middle),
            "health": operations.health,
            "dead letters": lambda tx: operations.find_letters(tx, Filter(), limit=50),
        }
        found: Reads = {"bus: story of an event": lambda: story(self.db, middle)}
        return found | {f"bus: {name}": lambda work=work: self.db.read(work) for name, work in lists.items()}
