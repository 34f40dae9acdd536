"""A group's line goes in; handlers run, each effect once and in order per key, and the line gets shorter (C§3).

One step is one transaction: take what is due, keep what is in line, pass the inbox, run the handlers, take the events
out. It is tried for the whole batch at once; when a handler fails, everything is undone and done again with a savepoint
around each event, so that the failure touches nobody else. Events that failed before always get a savepoint.

A dispatcher begins slowly: one event, its attempt counted before it is tried, then two, four … An event that kills the
process comes to the head of the line in a few restarts, is counted there, and ends as a dead letter, not in a circle.
"""

import random
import sqlite3
import sys
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from patra.bus import settlement
from patra.bus.bus import Bus
from patra.bus.consumer import Consumer, Event, Kind, event, trouble
from patra.bus.delivery import BLOCKED_PAUSE, Waiting, in_line
from patra.bus.store import deliveries, groups
from patra.bus.versions import Version
from patra.kernel import leases
from patra.kernel.clock import SECOND
from patra.kernel.db import Database, Tx
from patra.kernel.errors import StoreBusy, StoreUnavailable

UNHANDLED_PAUSE = 5 * SECOND  # an event that only another process can handle
_PASSING = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """What one step did. `put_off` waits for its turn, `started` went to the long workers."""

    handled: int = 0
    duplicates: int = 0
    later: int = 0
    dead: int = 0
    put_off: int = 0
    started: int = 0

    @property
    def busy(self) -> bool:
        """Whether there may be more to do at once: something was due. What was put off made place for the next."""
        return bool(self.handled or self.duplicates or self.later or self.dead or self.started or self.put_off)


class _Spoiled(Exception):  # noqa: N818  no error: a signal to do the batch again, event by event
    """A handler failed in a batch that was tried as a whole."""


class _Batch(msgspec.Struct, kw_only=True):
    """A step in hand: what was decided of each event."""

    handled: list[Waiting] = msgspec.field(default_factory=list[Waiting])
    duplicates: list[Waiting] = msgspec.field(default_factory=list[Waiting])
    failed: list[settlement.Failed] = msgspec.field(default_factory=list[settlement.Failed])
    held: list[Waiting] = msgspec.field(default_factory=list[Waiting])
    put_off: dict[int, int] = msgspec.field(default_factory=dict[int, int])
    failed_keys: dict[bytes, int] = msgspec.field(default_factory=dict[bytes, int])
    behind: dict[int, int] = msgspec.field(default_factory=dict[int, int])  # the failed event that each waits for


class Dispatcher:
    """Works off the line of one group; any number of them may, in any number of processes."""

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
        self._size = 0 if slow_start else batch  # events of the next step: none yet, then doubled from one
        self._jitter = jitter
        self._group_id: int | None = None
        self._concurrency = next((c.concurrency for c in bus.consumers if c.group == group), None)

    def run_once(self) -> Counts:
        marked = self._db.run(self._mark) if self._size == 0 else None
        self._size = max(self._size, 1)
        try:
            counts = self._db.run(lambda tx: self._step(tx, careful=marked is not None, marked=marked))
        except _Spoiled:
            counts = self._db.run(lambda tx: self._step(tx, careful=True, marked=marked))
        self._size = min(self._size * 2, self._batch)
        return counts

    def _mark(self, tx: Tx) -> int | None:
        """Count the attempt of the first in line before it is tried; one that was lost too often is buried instead."""
        now = self._bus.clock.now()
        group_id = self._id(tx)
        taken = deliveries.due(tx, group_id, now, 1) if groups.state(tx, group_id) is groups.G.ACTIVE else []
        for first in in_line(taken, deliveries.standing(tx, group_id, taken), now).ready:
            consumer = self._bus.handler(self.group, first.event_type, first.version)
            if consumer is None or consumer.kind is Kind.LONG:
                return None  # not ours to try, or counted where it is leased
            if first.attempts > self._bus.catalogue.types[first.event_type].retry.max_retries:
                gone = settlement.lost(first, first.attempts)
                settlement.failed(tx, self._bus, self.group, group_id, [gone], now, [self._jitter()])
                return None
            deliveries.count_attempts(tx, group_id, [first.seq])
            return first.seq
        return None

    def next_due(self) -> int | None:
        """When there will be something to do, if nothing is published before."""
        return self._db.read(lambda tx: deliveries.next_due(tx, self._id(tx)))

    def _step(self, tx: Tx, *, careful: bool, marked: int | None) -> Counts:
        now = self._bus.clock.now()
        group_id = self._id(tx)
        if groups.state(tx, group_id) is not groups.G.ACTIVE or not self._slot(tx, group_id):
            return Counts()
        taken = [_unmarked(w, marked) for w in deliveries.due(tx, group_id, now, self._size)]
        if not taken:
            return Counts()
        line = in_line(taken, deliveries.standing(tx, group_id, taken), now)
        batch = _Batch(put_off=line.blocked)
        short = self._sorted_out(batch, line.ready, now)
        if careful:
            for waiting, consumer in short:
                self._one(tx, batch, waiting, consumer, now)
        else:
            self._all(tx, batch, short, now)
        return self._write(tx, batch, group_id, now)

    def _sorted_out(self, batch: _Batch, ready: Sequence[Waiting], now: int) -> list[tuple[Waiting, Consumer]]:
        """Events of this step's handlers, in order; long ones go to their workers, and hold back their key."""
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
        tried = {w.order_key for w, _ in short if (w.attempts or w.replay) and w.order_key is not None}
        fresh = [(w, c) for w, c in short if not w.attempts and not w.replay and w.order_key not in tried]
        accepted = deliveries.accept(tx, self.group, [w for w, _ in fresh], now)
        run: list[Waiting] = []
        runner: Consumer | None = None
        for waiting, consumer in fresh:
            if waiting.seq not in accepted:
                batch.duplicates.append(waiting)
                continue
            if run and consumer is not runner:
                self._handle(tx, runner, run)
                run = []
            runner = consumer
            run.append(waiting)
            batch.handled.append(waiting)
        self._handle(tx, runner, run)
        alone = {w.seq for w, _ in fresh}
        for waiting, consumer in short:
            if waiting.seq not in alone:
                self._one(tx, batch, waiting, consumer, now)

    def _handle(self, tx: Tx, consumer: Consumer | None, run: Sequence[Waiting]) -> None:
        if consumer is None or not run:
            return
        try:
            _call(tx, consumer, [event(w) for w in run])
        except Exception as error:
            if store_trouble(error):
                raise
            raise _Spoiled from error

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
                _call(tx, consumer, [event(waiting)])
        except Exception as error:
            if store_trouble(error):
                raise
            batch.failed.append(
                settlement.Failed(waiting=waiting, failures=waiting.attempts + 1, trouble=trouble(error))
            )
            if waiting.order_key is not None:
                batch.failed_keys[waiting.order_key] = waiting.seq
        else:
            batch.handled.append(waiting)

    def _write(self, tx: Tx, batch: _Batch, group_id: int, now: int) -> Counts:
        settled = settlement.failed(
            tx, self._bus, self.group, group_id, batch.failed, now, [self._jitter() for _ in batch.failed]
        )
        behind = {seq: settled.until.get(head, now) for seq, head in batch.behind.items()}
        deliveries.put_off(tx, group_id, batch.put_off | behind)
        settlement.succeeded(tx, self._bus, self.group, group_id, [*batch.handled, *batch.duplicates], now)
        if batch.held:
            deliveries.hold(tx, group_id, [w.seq for w in batch.held])
            leases.add(tx, pool_name(self.group), [leases.Work(item=item(w.seq), due_at=now) for w in batch.held])
        return Counts(
            handled=len(batch.handled),
            duplicates=len(batch.duplicates),
            later=settled.later,
            dead=settled.dead,
            put_off=len(batch.put_off) + len(behind),
            started=len(batch.held),
        )

    def _slot(self, tx: Tx, group_id: int) -> bool:
        if self._concurrency is None:
            return True
        first = random.randrange(self._concurrency)
        return any(deliveries.slot(tx, group_id, (first + i) % self._concurrency) for i in range(self._concurrency))

    def _id(self, tx: Tx) -> int:
        if self._group_id is None:
            found = groups.find(tx, self.group)
            if found is None:
                raise LookupError(f"the group {self.group} has not joined this store")
            self._group_id = found.group_id
        return self._group_id


def _unmarked(waiting: Waiting, marked: int | None) -> Waiting:
    """The attempt that was counted ahead is the one that begins now."""
    return msgspec.structs.replace(waiting, attempts=waiting.attempts - 1) if waiting.seq == marked else waiting


def _call(tx: Tx, consumer: Consumer, run: Sequence[Event]) -> None:
    if consumer.kind is Kind.BATCH:
        consumer.handler(tx, run)
    else:
        for one in run:
            consumer.handler(tx, one)


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
