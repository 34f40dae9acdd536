"""Runs the handlers of a group on its queued events, each effect once and in order per key (C§3).

One step is one transaction: take due events, keep what is in line, pass the inbox, run the handlers, take the events
out. It is tried for the whole batch at once; when a handler fails, everything is undone and done again with a savepoint
around each event, so that the failure affects no other event. Events that failed before always get a savepoint.

An event that crashes its process (out of memory, a crash in C) would crash its batch with it again and again. So a
dispatcher starts with a trial: one event alone, recorded as lost before it is tried, and cleared with its result; then
two events, four … After a few restarts the crashing event is at the head of the queue, is recorded as lost, and from
then on is tried only alone, with growing pauses, while the others continue. Lost five times, it is a dead letter. A
process that dies outside a trial blames no event. One that dies in a trial for another reason has blamed one event
once, which the next attempt clears: an event that was lost before is tried while no other handler of this process
runs, so that the crash of another handler does not count against it.

On PostgreSQL workers avoid each other's keys: the ordering keys of a group are divided into shards, and a step takes
events of shards that no other worker holds. A worker that meets others asks for fewer of them.
"""

import random
import sqlite3
import sys
import threading
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import msgspec

from patra.bus.bus import Bus
from patra.bus.catalogue.versions import Version
from patra.bus.consuming.consumer import Consumer, Effect, Event, Kind, require_no_awaitable, trouble
from patra.bus.consuming.delivery_order import BLOCKED_PAUSE, SHARDS, Reach, Waiting, in_line, next_reach
from patra.bus.consuming.retry_or_dead_letter import MAX_LOST_WORKERS
from patra.bus.dispatch import outcomes
from patra.bus.dispatch.exclusive_lock import SharedExclusiveLock
from patra.bus.store import deliveries, groups
from patra.kernel import leases
from patra.kernel.clock import SECOND
from patra.kernel.db import Database, Tx
from patra.kernel.errors import StoreBusy, StoreUnavailable

UNHANDLED_PAUSE = 5 * SECOND  # an event that only another process can handle
_TRIALS = threading.Lock()  # one trial at a time in a process: its death can be the doing of one event only
_STEP_LOCK = SharedExclusiveLock()  # of this process
_PASSING = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """What one step did. `put_off` waits for its turn, `started` went to the long workers, `suspect` needs a trial."""

    handled: int = 0
    duplicates: int = 0
    later: int = 0
    dead: int = 0
    put_off: int = 0
    started: int = 0
    suspect: int = 0

    @property
    def busy(self) -> bool:
        """Whether there may be more to do at once: something was due. What was put off made place for the next."""
        return any(msgspec.structs.astuple(self))


class _Spoiled(Exception):  # noqa: N818  no error: a signal to do the batch again, event by event
    """A handler failed in a batch that was tried as a whole."""


class _Batch(msgspec.Struct, kw_only=True):
    """A running step: the decision for each event."""

    handled: list[Waiting] = msgspec.field(default_factory=list[Waiting])
    duplicates: list[Waiting] = msgspec.field(default_factory=list[Waiting])
    failed: list[outcomes.Failed] = msgspec.field(default_factory=list[outcomes.Failed])
    held: list[Waiting] = msgspec.field(default_factory=list[Waiting])
    put_off: dict[int, int] = msgspec.field(default_factory=dict[int, int])
    suspect: int = 0
    overtaken: int = 0
    failed_keys: dict[bytes, int] = msgspec.field(default_factory=dict[bytes, int])
    effects: dict[str, Sequence[Effect]] = msgspec.field(default_factory=dict[str, Sequence[Effect]])  # by event id
    behind: dict[int, int] = msgspec.field(default_factory=dict[int, int])  # the failed event that each waits for


class Dispatcher:
    """Handles the queue of one group; any number of dispatchers may, in any number of processes."""

    def __init__(
        self,
        db: Database,
        bus: Bus,
        group: str,
        *,
        batch: int = 500,
        slow_start: bool = True,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.group = group
        self._db = db
        self._bus = bus
        self._batch = batch
        self._size = 1 if slow_start else batch  # events of the next step, doubled each time
        self._alone = slow_start  # whether the next step is a trial
        self._suspicious = False  # whether that trial is of an event that was lost before
        self._trial: Waiting | None = None  # running; it stays so when the store fails, and is not counted again
        self._jitter = jitter
        mine = [c for c in bus.consumers if c.group == group]
        self._concurrency = next((c.concurrency for c in mine), None)
        self._by_key = any(bus.catalogue.types[c.event_type].ordering is not None for c in mine)
        self._has_long = any(c.kind is Kind.LONG for c in mine)
        self._reach = Reach()

    def run_once(self) -> Counts:
        if self._alone and (counts := self._tried_alone()) is not None:
            return counts
        with _STEP_LOCK.shared():
            try:
                counts = self._db.run(lambda tx: self._step(tx, careful=False))
            except _Spoiled:
                counts = None
            if counts is None:  # not while the error is handled: it would stand in the tracebacks of the others
                counts = self._db.run(lambda tx: self._step(tx, careful=True))
        self._size = min(self._size * 2, self._batch)
        self._alone = counts.suspect > 0
        return counts

    def _tried_alone(self) -> Counts | None:
        """One event by itself; None when there is none that this process could try so."""
        with _TRIALS, _STEP_LOCK.exclusive() if self._suspicious else _STEP_LOCK.shared():
            if self._trial is None:
                ahead = self._db.run(self._written_ahead)
                if isinstance(ahead, Counts):
                    self._suspicious = ahead.suspect > 0
                    return ahead
                self._trial = ahead
            if self._trial is None:
                self._alone = self._suspicious = False
                return None
            trial = self._trial
            counts = self._db.run(lambda tx: self._step_of_trial(tx, trial))
            if counts is None:
                return Counts()
            self._trial, self._alone, self._suspicious = None, False, False
            return counts

    def _written_ahead(self, tx: Tx) -> Waiting | Counts | None:
        """The event for a trial, its loss written down: a suspect, or the first in line.

        Or what became of a suspect instead: it is buried, or has to wait until nobody else is at work.
        """
        now = self._bus.clock.now()
        group = groups.require(tx, self.group)
        group_id = group.group_id
        if not self._may_work(tx, group):
            return None
        taken = self._due(tx, group_id, now)
        ready = in_line(taken, deliveries.standing(tx, group_id, taken), now).ready
        for one in sorted(ready, key=lambda w: not w.lost):
            consumer = self._bus.handler(self.group, one.event_type, one.version)
            if consumer is None or consumer.kind is Kind.LONG:
                continue  # not ours to try, or counted where it is leased
            if one.lost and not self._suspicious:
                return Counts(suspect=1)
            if one.lost < MAX_LOST_WORKERS:
                return outcomes.lost_ahead(tx, self._bus, group_id, one, now, self._jitter())
            outcomes.settle_failures(
                tx, self._bus, self.group, group_id, [outcomes.loss_failure(one)], now, [self._jitter()]
            )
            return Counts(dead=1)
        return None

    def _step_of_trial(self, tx: Tx, trial: Waiting) -> Counts | None:
        """None when it cannot be now: the trial stays pending."""
        now = self._bus.clock.now()
        group = groups.require(tx, self.group)
        group_id = group.group_id
        if not self._may_work(tx, group):
            return None
        consumer = self._bus.handler(self.group, trial.event_type, trial.version)
        batch = _Batch()
        if consumer is not None and deliveries.in_trial(tx, group_id, trial):  # else another process was faster
            self._one(tx, batch, trial, consumer, now)
        return self._write(tx, batch, group_id, now)

    def next_due(self) -> int | None:
        """When there will be something to do, if nothing is published before."""
        return self._db.read(lambda tx: deliveries.next_due(tx, groups.require(tx, self.group).group_id))

    def _step(self, tx: Tx, *, careful: bool) -> Counts:
        now = self._bus.clock.now()
        group = groups.require(tx, self.group)
        group_id = group.group_id
        if not self._may_work(tx, group):
            return Counts()
        taken = self._due(tx, group_id, now)
        if not taken:
            return Counts()
        line = in_line(taken, deliveries.standing(tx, group_id, taken), now)
        batch = _Batch(put_off=line.blocked)
        if line.overtaken and deliveries.call_up(tx, group_id, line.overtaken, now):
            batch.overtaken = len(line.overtaken)  # they stay where they are: the others go before them now
            batch.put_off = {seq: until for seq, until in line.blocked.items() if seq not in line.overtaken}
        short = self._sorted_out(batch, self._drop_handled(tx, batch, line.ready, now), now)
        if careful:
            for waiting, consumer in short:
                self._one(tx, batch, waiting, consumer, now)
        else:
            self._all(tx, batch, short, now)
        return self._write(tx, batch, group_id, now)

    def _due(self, tx: Tx, group_id: int, now: int) -> list[Waiting]:
        """The due events, oldest first, of keys that no other worker holds."""
        if not self._by_key:
            return deliveries.due(tx, group_id, now, self._size)
        taken, refused = deliveries.due_by_key(tx, group_id, now, self._size, self._reach, far=not self._reach.alone)
        if not taken and (self._reach.alone or self._reach.share < SHARDS):
            taken, refused = deliveries.due_by_key(tx, group_id, now, self._size, Reach())
        self._reach = next_reach(self._reach, refused=refused, first=random.randrange(SHARDS))
        return taken

    def _drop_handled(self, tx: Tx, batch: _Batch, ready: Sequence[Waiting], now: int) -> Sequence[Waiting]:
        """Without what the group handled before, where the work is outside of the transaction that passes the inbox."""
        if not self._has_long:
            return ready
        over = deliveries.in_inbox(tx, self.group, [w.event_id for w in ready if not w.replay], now)
        batch.duplicates += [w for w in ready if w.event_id in over and not w.replay]
        return [w for w in ready if w.event_id not in over or w.replay]

    def _sorted_out(self, batch: _Batch, ready: Sequence[Waiting], now: int) -> list[tuple[Waiting, Consumer]]:
        """Events of this step's handlers, in order. Long ones go to their workers, suspects wait for their trial; both
        hold back their key.
        """
        short: list[tuple[Waiting, Consumer]] = []
        short_keys: set[bytes] = set()
        unknown = object()
        handlers: dict[tuple[str, Version], Any] = {}
        stopped: dict[bytes, int] = {}
        for waiting in ready:
            key = waiting.order_key
            if key is not None and key in stopped:
                batch.put_off[waiting.seq] = stopped[key]
                continue
            consumer = handlers.get((waiting.event_type, waiting.version), unknown)
            if consumer is unknown:
                consumer = self._bus.handler(self.group, waiting.event_type, waiting.version)
                handlers[waiting.event_type, waiting.version] = consumer
            if consumer is None:
                batch.put_off[waiting.seq] = now + UNHANDLED_PAUSE
            elif consumer.kind is not Kind.LONG and waiting.lost:
                batch.suspect += 1
            elif consumer.kind is not Kind.LONG:
                short.append((waiting, consumer))
                if key is not None:
                    short_keys.add(key)
                continue
            elif key is not None and key in short_keys:
                batch.put_off[waiting.seq] = now  # its predecessors are handled in this very step
            else:
                batch.held.append(waiting)
            if key is not None:
                stopped[key] = batch.put_off.get(waiting.seq, now + BLOCKED_PAUSE)
        return short

    def _all(self, tx: Tx, batch: _Batch, short: Sequence[tuple[Waiting, Consumer]], now: int) -> None:
        """The whole batch at once; only what failed before, and what stands in line with it, goes by itself."""
        tried = {w.order_key for w, _ in short if w.attempts and w.order_key is not None}
        fresh = [(w, c) for w, c in short if not w.attempts and w.order_key not in tried]
        accepted = deliveries.accept(tx, self.group, [w for w, _ in fresh], now)
        mine = [(w, c) for w, c in fresh if w.seq in accepted]
        batch.handled += [w for w, _ in mine]
        batch.duplicates += [w for w, _ in fresh if w.seq not in accepted]
        try:
            with tx.flow():  # an error may come up late, in another event's handler: then each is tried by itself
                for _, run in groupby(mine, key=lambda pair: id(pair[1])):
                    pairs = list(run)
                    batch.effects |= _call(tx, pairs[0][1], [Event(w) for w, _ in pairs])
        except Exception as error:
            if store_trouble(error):
                raise
            raise _Spoiled from error
        alone = {w.seq for w, _ in fresh}
        for waiting, consumer in short:
            if waiting.seq not in alone:
                self._one(tx, batch, waiting, consumer, now)

    def _one(self, tx: Tx, batch: _Batch, waiting: Waiting, consumer: Consumer, now: int) -> None:
        """One event in a savepoint: inbox and effects stay or go together."""
        if waiting.order_key is not None and waiting.order_key in batch.failed_keys:
            batch.behind[waiting.seq] = batch.failed_keys[waiting.order_key]
            return
        try:
            with tx.savepoint():
                if not deliveries.accept(tx, self.group, [waiting], now):
                    batch.duplicates.append(waiting)
                    return
                effects = _call(tx, consumer, [Event(waiting)])
        except Exception as error:
            if store_trouble(error):
                raise
            batch.failed.append(outcomes.Failed(waiting=waiting, failures=waiting.attempts + 1, trouble=trouble(error)))
            if waiting.order_key is not None:
                batch.failed_keys[waiting.order_key] = waiting.seq
        else:
            batch.handled.append(waiting)
            batch.effects |= effects

    def _write(self, tx: Tx, batch: _Batch, group_id: int, now: int) -> Counts:
        settled = outcomes.settle_failures(
            tx, self._bus, self.group, group_id, batch.failed, now, [self._jitter() for _ in batch.failed]
        )
        behind = {seq: settled.until.get(head, now) for seq, head in batch.behind.items()}
        deliveries.put_off(tx, group_id, batch.put_off | behind)
        done = [*batch.handled, *batch.duplicates]
        outcomes.settle_successes(tx, self._bus, self.group, group_id, done, now, effects=batch.effects)
        if batch.held:
            deliveries.hold(tx, group_id, [w.seq for w in batch.held])
            leases.add(tx, pool_name(self.group), [leases.Work(item=item(w.seq), due_at=now) for w in batch.held])
        return Counts(
            handled=len(batch.handled),
            duplicates=len(batch.duplicates),
            later=settled.later,
            dead=settled.dead,
            put_off=len(batch.put_off) + len(behind) + batch.overtaken,
            started=len(batch.held),
            suspect=batch.suspect,
        )

    def _may_work(self, tx: Tx, group: groups.Group) -> bool:
        """Whether the group is not paused, and not as many as it allows are at work."""
        if group.state is not groups.GroupState.ACTIVE:
            return False
        if self._concurrency is None:
            return True
        first = random.randrange(self._concurrency)
        slots = [(first + i) % self._concurrency for i in range(self._concurrency)]
        return any(deliveries.slot(tx, group.group_id, slot) for slot in slots)


def _call(tx: Tx, consumer: Consumer, run: Sequence[Event]) -> dict[str, Sequence[Effect]]:
    """Run the handler; gives the rows that were declared as written, by event."""
    if consumer.kind is Kind.BATCH:
        require_no_awaitable(consumer.handler(tx, run))
    else:
        for one in run:
            require_no_awaitable(consumer.handler(tx, one))
    consumer.declare_effects(run)
    return {one.event_id: one.effects for one in run if one.effects}


def pool_name(group: str) -> str:
    """The pool of leases in which the long work of a group lies."""
    return f"bus.{group}"


def item(seq: int) -> str:
    return f"{seq:019d}"


def store_trouble(error: BaseException) -> bool:
    """Whether an error is the store's and not the handler's: it ends the step, and counts against no event."""
    if isinstance(error, (StoreUnavailable, StoreBusy)):
        return True
    if isinstance(error, sqlite3.OperationalError):
        return ((error.sqlite_errorcode or 0) & 0xFF) in _PASSING
    psycopg = sys.modules.get("psycopg")
    return psycopg is not None and isinstance(error, psycopg.OperationalError)
