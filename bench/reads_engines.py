"""The reads of attribution and of the bus on a large store: stories by key, lists, settlement, while a writer writes.

The store is filled by the engines themselves, so every index, running sum and packed row is what traffic leaves.
"""

import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

from bench.attribution_traffic import APPS, EVENTS, TEMPLATES, filled, mark, templates
from bench.bus import envelope, prepared
from patra.app.story.search import story
from patra.attribution.commit import commit
from patra.attribution.intake.batch import read_batch
from patra.attribution.queries import closures, newest_decisions, refused, rejects
from patra.attribution.settlement import settle
from patra.attribution.storage.billing_tree import BillingTree
from patra.attribution.storage.dedup_keys import Keys, carry_once
from patra.attribution.storage.key_index import Indexer
from patra.attribution.storage.key_index_merge import RunMerger
from patra.attribution.storage.placement_index import Carrier
from patra.attribution.storage.running_sums import MARKS, RunningSums
from patra.bus import operations
from patra.bus.bus import Bus
from patra.bus.consuming.dead_letter import Filter
from patra.bus.timeline import timeline
from patra.kernel.clock import DAY, HOUR, SystemClock
from patra.kernel.db import Database, Tx

GROUP_BATCHES = 32
BUS_GROUP_EVENTS = 1_000
WRITES_PER_SECOND = 20
Reads = dict[str, Callable[[], Any]]


class AttributionStore:
    """A store of attribution that is filled by commits as the writer makes them."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.keys = Keys()
        self._bodies = self._made()

    def _made(self) -> Iterator[bytes]:
        by_app = [templates(app) for app in APPS]
        number = 0
        while True:
            for sender, bodies in enumerate(by_app):
                yield filled(bodies[number % len(bodies)], mark(sender, number), mark(sender, max(number - 1, 0)))
            number += 1

    def write(self, batches: int) -> None:
        now = SystemClock().now()
        commit(self.db, [read_batch(next(self._bodies), now) for _ in range(batches)], keys=self.keys)

    def fill(self, events: int) -> None:
        for number in range(0, events // EVENTS, GROUP_BATCHES):
            self.write(min(GROUP_BATCHES, events // EVENTS - number))
            if number % (GROUP_BATCHES * 100) == 0:
                self.settle()
        self.settle()

    def settle(self) -> None:
        """Let everything catch up that runs behind the writer."""
        clock = SystemClock()
        while carry_once(self.db, self.keys, clock.now() + HOUR):
            pass
        BillingTree(self.db, clock).catch_up()
        indexer = Indexer(self.db, clock, patience=0)
        while indexer.run_once().items:
            pass
        merger = RunMerger(self.db)
        while merger.run_once():
            pass
        carrier = Carrier(self.db, clock)
        while carrier.run_once():
            pass
        for sums in MARKS:
            RunningSums(self.db, sums).catch_up()

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
            "rejects": lambda tx: rejects(tx, limit=50),
            "refused": lambda tx: refused(tx, limit=50),
        }
        for by in ("app", "day", "placement"):
            lists[f"settlement by {by}"] = lambda tx, by=by: settle(tx, now - DAY, now + DAY, by)
        return found | {f"attribution: {name}": lambda work=work: self.db.read(work) for name, work in lists.items()}


class BusStore:
    """A store of the bus whose group has handled half of what was published."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.bus: Bus = prepared(db, "job.succeeded")
        self.middle = ""

    def write(self, events: int) -> None:
        made = [envelope(self.bus, "job.succeeded") for _ in range(events)]
        self.middle = made[0].event_id
        self.db.run(lambda tx: self.bus.publish_many(tx, made))

    def fill(self, events: int) -> None:
        first = ""
        for number in range(0, events, BUS_GROUP_EVENTS):
            self.write(BUS_GROUP_EVENTS)
            first = self.middle if number <= events // 2 else first
        self.middle = first
        if self.db.dialect == "postgres":
            self.db.run(lambda tx: tx.script("ANALYZE"))

    def reads(self) -> Reads:
        middle = self.middle
        lists: dict[str, Callable[[Tx], Any]] = {
            "timeline of an event": lambda tx: timeline(tx, middle),
            "health": operations.health,
            "dead letters": lambda tx: operations.find_letters(tx, Filter(), limit=50),
        }
        found: Reads = {"bus: story of an event": lambda: story(self.db, middle)}
        return found | {f"bus: {name}": lambda work=work: self.db.read(work) for name, work in lists.items()}


@contextmanager
def writing(write: Callable[[], None]) -> Generator[list[float]]:
    """Another thread that writes some times a second; gives how long each write took, in milliseconds."""
    stop, taken = threading.Event(), list[float]()

    def loop() -> None:
        while not stop.wait(1 / WRITES_PER_SECOND):
            begun = time.perf_counter()
            write()
            taken.append((time.perf_counter() - begun) * 1000)

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        yield taken
    finally:
        stop.set()
        thread.join()
