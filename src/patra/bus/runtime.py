"""Turns a store, a clock and settings into the bus with everything that keeps it going, as duties to be run.

A duty's `run_once` is called repeatedly by the process's loops. One that finds nothing to do waits for a commit, at
most half a second, so that an event is handled when it is published and not when a timer fires.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from patra.bus import bulk_acts
from patra.bus.bus import Bus
from patra.bus.catalogue.catalogue import Catalogue, load
from patra.bus.catalogue.evolution import Objection
from patra.bus.consuming.consumer import Kind
from patra.bus.dispatch.dispatcher import Dispatcher
from patra.bus.dispatch.long_worker import LongWorker
from patra.bus.operations import Health, health
from patra.bus.store import dead_letters, deliveries, events, groups, hops
from patra.bus.transports import webhook as webhooks
from patra.bus.transports.notifier import Hub, Sleeper, source
from patra.bus.transports.receiver import Receiver
from patra.bus.transports.sender import Outboxed, relay
from patra.bus.transports.webhook_secrets import NO_KEYS
from patra.kernel import ledger, outbox
from patra.kernel.clock import DAY, SECOND, Clock
from patra.kernel.db import Database
from patra.kernel.safety.networks import Network
from patra.kernel.telemetry import gauge, get_logger

if TYPE_CHECKING:
    from patra.bus.transports.nats import NatsStream

log = get_logger()

IDLE_SECONDS = 0.5
RECORD_SECONDS = 0.01
BLOCKED_SECONDS = 0.05
REFUSALS_KEPT = 30 * DAY
HOPS_KEPT = 30 * DAY
PURGE_BATCH_SIZE = 2000
PURGE_ROUNDS = 10  # of each type in a turn
UPKEEP_EVERY = 60 * SECOND
RETENTION_RESTART = 3600 * SECOND  # after which events that had to stay are looked at again
RELAY, LINES = "relay", "lines"  # what a thread waits for: something to send, something to handle

WAITING = gauge("patra_bus_waiting", "Events that a group has still to handle.", "group")
LAG = gauge("patra_bus_lag_seconds", "Age of the oldest event that a group has not handled.", "group")
HELD = gauge(
    "patra_bus_held_messages", "Messages of a stream that wait for a process that knows their version.", "event_type"
)
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
    """The bus on a store: `bus` for publishers, `duties` and `group_duties` for the process's loops."""

    def __init__(
        self,
        db: Database,
        clock: Clock,
        catalogue: Catalogue,
        *,
        nats_url: str = "",
        stream: str = "PATRA_BUS",
        credentials: str = "",
        replicas: int = 1,
    ) -> None:
        self.db = db
        self.clock = clock
        self.stream = _stream(nats_url, stream, credentials, replicas) if nats_url else None
        self._hub = Hub(source(db))
        first = RELAY if self.stream else LINES  # whose turn it is when something was published
        self.bus = Bus(catalogue, clock, Outboxed() if self.stream else None, wake=lambda: self._hub.poke(first))
        self._workers: list[LongWorker] = []
        self._carriers: tuple[outbox.Relay, Receiver] | None = None  # of `carry`
        self._adopted = False
        self.webhook_networks: Sequence[Network] | None = None  # None: webhooks may be anywhere
        self.webhook_keys = NO_KEYS
        self.keys_kept: int | None = None  # how long (µs) the key of an emptied event stays; None: for ever
        self.settled_letters_kept: int | None = None  # how long (µs) a settled dead letter stays; None: for ever

    @classmethod
    def open(
        cls,
        db: Database,
        clock: Clock,
        folders: Iterable[str] = (),
        *,
        nats_url: str = "",
        stream: str = "PATRA_BUS",
        credentials: str = "",
        replicas: int = 1,
    ) -> "BusEngine":
        """With the built-in contracts and those of some folders."""
        known = load([Path(folder) for folder in folders])
        return cls(db, clock, known, nats_url=nats_url, stream=stream, credentials=credentials, replicas=replicas)

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
            Duty(
                name="bulk_acts", run_once=lambda: Turn(done=bulk_acts.run_once(self.db, self.bus)), every=SECOND // 2
            ),
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

    def carry(self) -> bool:
        """Send and receive once what a stream has to carry now; gives whether there was anything."""
        if self.stream is None:
            return False
        if self._carriers is None:
            self._carriers = relay(self.db, self.stream, self.clock), Receiver(self.db, self.bus, self.stream)
        sending, receiving = self._carriers
        return bool(sending.run_once().groups) | bool(receiving.run_once().received)

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
        """Release what is in progress, wake waiting threads, close the connections."""
        for worker in self._workers:
            worker.close()
        self._hub.close()
        if self.stream is not None:
            self.stream.close()


class RelayTurn:
    """Send due messages. The result is written down with the next turn, or when nothing more comes for a moment:
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
    """Handle a group's queue; when nothing is due, wait for a commit or for the next event to fall due."""

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
        self._keyless: set[str] = set()
        self._waker = engine.waker()
        self._idle = threading.Event()

    def run_once(self) -> Turn:
        found, subscriptions = self._engine.db.read(lambda tx: (groups.webhooks(tx), groups.subscriptions(tx)))
        wanting = {group for group, _, _ in subscriptions}  # one whose group was forgotten stops nobody else
        found = [one for one in found if webhooks.group(one.name) in wanting]
        for name in [one.name for one, _, _ in self._known.values() if one not in found]:
            self._known.pop(name)[2].close()
        for one in found:
            if one.name not in self._known and (revealed := self._reveal_secrets(one)) is not None:
                self._known[one.name] = self._join_endpoint(one, revealed, subscriptions)
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

    def _reveal_secrets(self, one: groups.Webhook) -> groups.Webhook | None:
        """With its secrets; an endpoint whose key is missing is not called, and its events wait."""
        revealed = self._engine.webhook_keys.reveal(one)
        if revealed is None and one.name not in self._keyless:
            self._keyless.add(one.name)
            log.error("bus_webhook_key_missing", webhook=one.name, advice="put its key back into bus.webhook_keys")
        return revealed

    def _join_endpoint(
        self,
        one: groups.Webhook,
        revealed: groups.Webhook,
        subscriptions: "list[tuple[str, str, webhooks.VersionRange]]",
    ) -> tuple[groups.Webhook, Dispatcher, LongWorker]:
        self._post = self._post or webhooks.post(self._engine.clock, networks=self._engine.webhook_networks)
        bus = Bus(self._engine.bus.catalogue, self._engine.clock)
        for consumer in webhooks.consumers(revealed, subscriptions, self._engine.clock, self._post):
            bus.add(consumer)
        name = webhooks.group(one.name)
        return one, Dispatcher(self._engine.db, bus, name), LongWorker(self._engine.db, bus, name)


class Upkeep:
    """Once a minute: bodies, keys, refusals, inbox entries and secrets past their retention go, gauges are set."""

    def __init__(self, engine: BusEngine) -> None:
        self._engine = engine
        self._next = 0
        self._marks: dict[str, events.PurgeMark] = {}  # by type, how far its log was looked through
        self._keys_mark = 0  # how far the log was looked through for keys past their time
        self._from_the_start_at = 0

    def run_once(self) -> Turn:
        db, now = self._engine.db, self._engine.clock.now()
        self._engine.adopt()
        if now < self._next:
            return Turn()
        done = 0
        if now >= self._from_the_start_at:  # what had to stay the last time may go by now
            self._marks.clear()
            self._keys_mark = 0
            self._from_the_start_at = now + RETENTION_RESTART
        for name, kind in self._engine.bus.catalogue.types.items():
            before = now - kind.retention
            done += self._purge_bodies(name, before)
        if self._engine.keys_kept is not None:
            done += self._purge_keys(now - self._engine.keys_kept)
        if (kept := self._engine.settled_letters_kept) is not None:
            done += db.run(lambda tx: dead_letters.purge_settled(tx, before=now - kept, limit=PURGE_BATCH_SIZE))
        done += db.run(lambda tx: events.purge_refusals(tx, before=now - REFUSALS_KEPT, limit=PURGE_BATCH_SIZE))
        done += db.run(lambda tx: hops.purge(tx, before=now - HOPS_KEPT, limit=PURGE_BATCH_SIZE))
        done += db.run(lambda tx: groups.forget_old_secrets(tx, now))
        state = self._engine.health()
        for one in state.groups:
            scope = deliveries.inbox(one.name)
            done += db.run(lambda tx, s=scope: ledger.purge(tx, s, before=now, limit=PURGE_BATCH_SIZE))
            WAITING.labels(one.name).set(one.waiting)
            LAG.labels(one.name).set(0 if one.oldest is None else max(now - one.oldest, 0) / SECOND)
        for event_type in self._engine.bus.catalogue.types:
            HELD.labels(event_type).set(sum(h.messages for h in state.held if h.event_type == event_type))
            DEAD.labels(event_type).set(state.dead_letters.get(event_type, 0))
        if not done:
            self._next = now + UPKEEP_EVERY
        return Turn(done=done)

    def _purge_bodies(self, event_type: str, before: int) -> int:
        """Up to ten pages; gives how many events were seen, also such that have to stay: there may be more."""
        seen = 0
        for _ in range(PURGE_ROUNDS):
            after = self._marks.get(event_type, events.PurgeMark())
            page = self._engine.db.run(
                lambda tx, a=after: events.purge_bodies(tx, event_type, before=before, limit=PURGE_BATCH_SIZE, after=a)
            )
            self._marks[event_type] = page.last
            seen += page.seen
            if page.seen < PURGE_BATCH_SIZE:
                break
        return seen

    def _purge_keys(self, before: int) -> int:
        """Up to ten pages; gives how many events were seen."""
        seen = 0
        for _ in range(PURGE_ROUNDS):
            after = self._keys_mark
            page = self._engine.db.run(
                lambda tx, a=after: events.purge_keys(tx, before=before, limit=PURGE_BATCH_SIZE, after=a)
            )
            self._keys_mark = page.last
            seen += page.seen
            if page.seen < PURGE_BATCH_SIZE:
                break
        return seen


def _stream(url: str, name: str, credentials: str, replicas: int) -> "NatsStream":
    from patra.bus.transports.nats import NatsStream  # noqa: PLC0415  an extra; a bus on the store does not pay for it

    return NatsStream(url, name, credentials=credentials, replicas=replicas)
