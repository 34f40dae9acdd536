"""A store, a clock and settings go in; the bus with everything that keeps it going comes out, as duties to be run.

A duty's `run_once` is called again and again by whoever runs loops. One that finds nothing to do waits for a commit, at
most half a second, so that an event is handled when it is published and not when a timer fires.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

import msgspec

from patra.bus import webhook as webhooks
from patra.bus.bus import Bus
from patra.bus.catalogue import Catalogue, load
from patra.bus.consumer import Kind
from patra.bus.dispatcher import Dispatcher
from patra.bus.evolution import Objection
from patra.bus.operations import Health, health
from patra.bus.store import deliveries, events, groups
from patra.bus.transports.inbound import Receiver
from patra.bus.transports.nats import NatsStream
from patra.bus.transports.outbound import Outboxed, relay
from patra.bus.transports.waking import Hub, Sleeper, source
from patra.bus.worker import LongWorker
from patra.kernel import ledger, outbox
from patra.kernel.clock import DAY, SECOND, Clock
from patra.kernel.db import Database
from patra.kernel.telemetry import gauge

IDLE_SECONDS = 0.5
RECORD_SECONDS = 0.01
BLOCKED_SECONDS = 0.05
REFUSALS_KEPT = 30 * DAY
BITE = 1000
UPKEEP_EVERY = 60 * SECOND
RELAY, LINES = "relay", "lines"  # what a thread waits for: something to send, something to handle

WAITING = gauge("patra_bus_waiting", "Events that a group has still to handle.", "group")
LAG = gauge("patra_bus_lag_seconds", "Age of the oldest event that a group has not handled.", "group")
DEAD = gauge("patra_bus_dead_letters", "Dead letters that wait for someone, by type.", "event_type")


class Duty(msgspec.Struct, frozen=True, kw_only=True):
    """Something to be called again and again."""

    name: str
    run_once: Callable[[], object]
    every: int = 1  # µs of pause after a turn that did nothing: most wait by themselves


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """What a turn did, summed up."""

    done: int = 0


class BusEngine:
    """The bus on a store: for publishers `bus`, for whoever runs loops `duties` and `group_duties`."""

    def __init__(
        self, db: Database, clock: Clock, catalogue: Catalogue, *, nats_url: str = "", stream: str = "PATRA_BUS"
    ) -> None:
        self.db = db
        self.clock = clock
        self.stream = NatsStream(nats_url, stream) if nats_url else None
        self._hub = Hub(source(db))
        first = RELAY if self.stream else LINES  # whose turn it is when something was published
        self.bus = Bus(catalogue, clock, Outboxed() if self.stream else None, wake=lambda: self._hub.poke(first))
        self._workers: list[LongWorker] = []
        self._adopted = False

    @classmethod
    def open(
        cls,
        db: Database,
        clock: Clock,
        folders: Iterable[str] = (),
        *,
        nats_url: str = "",
        stream: str = "PATRA_BUS",
    ) -> "BusEngine":
        """With the built-in contracts and those of some folders."""
        return cls(db, clock, load([Path(folder) for folder in folders]), nats_url=nats_url, stream=stream)

    def adopt(self) -> None:
        """Put the catalogue of this process in force on its store, once. Raises ConfigInvalid where it breaks that."""
        if not self._adopted:
            self.db.run(self.bus.adopt)
            self._adopted = True

    def hindrance(self, types: Collection[str]) -> Objection | None:
        """Why this process publishes no event of these types: its contract of one breaks that in force (B4)."""
        if self._adopted:
            return None
        if found := self.db.read(self.bus.evolution):
            return next((one for one in found if one.event_type in types), None)
        self.adopt()
        return None

    def duties(self) -> list[Duty]:
        """What belongs to the bus itself: transport, webhooks, upkeep."""
        found = [
            Duty(name="upkeep", run_once=Upkeep(self).run_once, every=5 * SECOND),
            Duty(name="webhooks", run_once=Webhooks(self).run_once),
        ]
        if self.stream is not None:
            sending, receiving = relay(self.db, self.stream, self.clock), Receiver(self.db, self.bus, self.stream)
            found.append(Duty(name="relay", run_once=RelayTurn(self, sending).run_once))

            def receive() -> Turn:
                done = receiving.run_once(IDLE_SECONDS).received
                if done:
                    self._hub.poke(LINES)  # the groups of this process need not wait until they hear of the commit
                return Turn(done=done)

            found.append(Duty(name="receiver", run_once=receive))
        return found

    def group_duties(self, group: str, *, workers: int = 1) -> list[Duty]:
        """What it takes to handle the events of a group that has consumers in this process."""
        found = [
            Duty(name=f"group.{group}" + (f".{n + 1}" if workers > 1 else ""), run_once=GroupTurn(self, group).run_once)
            for n in range(workers)
        ]
        if any(c.group == group and c.kind is Kind.LONG for c in self.bus.consumers):
            worker = LongWorker(self.db, self.bus, group)
            self._workers.append(worker)
            waiting = self.waker()

            def work() -> Turn:
                counts = worker.run_once(IDLE_SECONDS / 5)
                done = counts.started + counts.handled + counts.later + counts.dead
                if not done and not worker.in_hand:
                    waiting.wait(IDLE_SECONDS)
                return Turn(done=done)

            found.append(Duty(name=f"work.{group}", run_once=work))
        return found

    def waker(self, topic: str = LINES) -> Sleeper:
        """A place to wait for commits, one a thread."""
        return self._hub.waker(topic)

    def health(self) -> Health:
        return self.db.read(health)

    def close(self) -> None:
        """Give back what is in hand, wake whoever waits, close the connections."""
        for worker in self._workers:
            worker.close()
        self._hub.close()
        if self.stream is not None:
            self.stream.close()


class RelayTurn:
    """Send what is due. What came of it is written down with the next turn, or when nothing more comes for a moment:
    the receiver and the groups, who wait for what was sent, come first.
    """

    def __init__(self, engine: BusEngine, sending: outbox.Relay) -> None:
        self._clock = engine.clock
        self._sending = sending
        self._waker = engine.waker(RELAY)
        self._look_first = engine.db.dialect == "sqlite"  # a look is a reader's: only work asks for the writer's place
        self._rest = False  # whether all that was due has been sent
        self._record_by = 0.0

    def run_once(self) -> Turn:
        if not self._rest and self._anything_due():
            ahead = self._sending.run_ahead()
            self._rest = not ahead.full
            if ahead.groups:
                self._record_by = time.monotonic() + RECORD_SECONDS
                return Turn(done=ahead.groups)
        self._rest = False
        if not self._sending.behind:
            self._waker.wait(IDLE_SECONDS)
        elif (left := self._record_by - time.monotonic()) <= 0 or not self._waker.wait(left):
            self._sending.catch_up()
        return Turn()

    def _anything_due(self) -> bool:
        if not self._look_first or self._waker.told:
            return True
        due = self._sending.next_due()
        return due is not None and due <= self._clock.now()


class GroupTurn:
    """Work off a group's line; when nothing is due, wait for a commit or for the next event to fall due."""

    def __init__(self, engine: BusEngine, group: str) -> None:
        self._engine = engine
        self._dispatcher = Dispatcher(engine.db, engine.bus, group)
        self._waker = engine.waker()
        self._joined = False
        self._one_writer = engine.db.dialect == "sqlite"
        self._woken = False

    def run_once(self) -> Turn:
        if not self._joined:
            self._engine.db.run(self._engine.bus.join)
            self._joined = True
        if self._one_writer or not self._woken:  # a look is a reader's: only work asks for the writer's place
            due = self._dispatcher.next_due()
            left = IDLE_SECONDS if due is None else (due - self._engine.clock.now()) / SECOND
            if left > 0:
                self._woken = self._waker.wait(min(left, IDLE_SECONDS))
                return Turn()
        self._woken = False
        counts = self._dispatcher.run_once()
        if not counts.busy:  # due, but paused or bound or in other hands
            self._waker.wait(BLOCKED_SECONDS)
        return Turn(done=counts.handled + counts.duplicates + counts.later + counts.dead + counts.started)


class Webhooks:
    """All endpoints of the store: whatever was added or removed since is found at the next turn."""

    def __init__(self, engine: BusEngine) -> None:
        self._engine = engine
        self._post: webhooks.Post | None = None
        self._known: dict[str, tuple[groups.Webhook, Dispatcher, LongWorker]] = {}
        self._waker = engine.waker()
        self._idle = threading.Event()

    def run_once(self) -> Turn:
        found, subscriptions = self._engine.db.read(lambda tx: (groups.webhooks(tx), groups.subscriptions(tx)))
        wanting = {group for group, _, _ in subscriptions}  # one whose group was forgotten stops nobody else
        found = [one for one in found if webhooks.group(one.name) in wanting]
        for name in [one.name for one, _, _ in self._known.values() if one not in found]:
            self._known.pop(name)[2].close()
        for one in found:
            if one.name not in self._known:
                self._known[one.name] = self._joined(one, subscriptions)
        done = 0
        for _, dispatcher, worker in self._known.values():
            step = dispatcher.run_once()
            counts = worker.run_once()
            done += step.started + step.duplicates + counts.started + counts.handled + counts.later + counts.dead
        if not self._known:
            self._idle.wait(IDLE_SECONDS)  # no endpoint: commits are of no interest
        elif not done:
            self._waker.wait(IDLE_SECONDS)
        return Turn(done=done)

    def _joined(
        self, one: groups.Webhook, subscriptions: "list[tuple[str, str, webhooks.VersionRange]]"
    ) -> tuple[groups.Webhook, Dispatcher, LongWorker]:
        self._post = self._post or webhooks.post()
        bus = Bus(self._engine.bus.catalogue, self._engine.clock)
        for consumer in webhooks.consumers(one, subscriptions, self._engine.clock, self._post):
            bus.add(consumer)
        name = webhooks.group(one.name)
        return one, Dispatcher(self._engine.db, bus, name), LongWorker(self._engine.db, bus, name)


class Upkeep:
    """Once a minute: bodies past their retention, old refusals and inbox entries go, in bites; gauges are set."""

    def __init__(self, engine: BusEngine) -> None:
        self._engine = engine
        self._next = 0

    def run_once(self) -> Turn:
        db, now = self._engine.db, self._engine.clock.now()
        self._engine.adopt()
        if now < self._next:
            return Turn()
        done = 0
        for name, kind in self._engine.bus.catalogue.types.items():
            before = now - kind.retention
            done += db.run(lambda tx, n=name, b=before: events.purge_bodies(tx, n, before=b, limit=BITE))
        done += db.run(lambda tx: events.purge_refusals(tx, before=now - REFUSALS_KEPT, limit=BITE))
        state = self._engine.health()
        for one in state.groups:
            scope = deliveries.inbox(one.name)
            done += db.run(lambda tx, s=scope: ledger.purge(tx, s, before=now, limit=BITE))
            WAITING.labels(one.name).set(one.waiting)
            LAG.labels(one.name).set(0 if one.oldest is None else max(now - one.oldest, 0) / SECOND)
        for event_type in self._engine.bus.catalogue.types:
            DEAD.labels(event_type).set(state.dead_letters.get(event_type, 0))
        if not done:
            self._next = now + UPKEEP_EVERY
        return Turn(done=done)
