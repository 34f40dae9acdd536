"""Runs long handlers in threads: each holds its event by a lease that is renewed while it runs; results are written.

A handler that outlives a time-out would run twice; here the lease is renewed for as long as the process lives. A
process that dies leaves leases that run out: the event goes to another worker, and whatever the dead one still tries to
write is fenced off. A loss is not a failure of the handler, costs no retry, and is recorded when the event is taken and
cleared with its result. An event that was lost twice in a row is handled while its worker has nothing else to do, so
that the crash of another handler does not count against it; lost five times in a row, it is a dead letter.
"""

import random
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress

import msgspec

from patra.bus.bus import Bus
from patra.bus.consuming.consumer import Consumer, Effect, Event, Finish, Hold, Kind, Trouble, trouble
from patra.bus.consuming.delivery_order import LOST_TOGETHER, Waiting
from patra.bus.consuming.retry_or_dead_letter import MAX_LOST_WORKERS
from patra.bus.dispatch import outcomes
from patra.bus.dispatch.dispatcher import UNHANDLED_PAUSE, item, pool_name, store_trouble
from patra.bus.store import deliveries, groups
from patra.kernel import leases
from patra.kernel.db import Database, Tx
from patra.kernel.errors import Fenced
from patra.kernel.ids import new_id
from patra.kernel.telemetry import get_logger

log = get_logger()


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    started: int = 0
    handled: int = 0
    later: int = 0
    dead: int = 0
    fenced: int = 0


class _Hand(msgspec.Struct, kw_only=True, eq=False):
    """One event in progress."""

    waiting: Waiting
    consumer: Consumer
    event: Event
    lease: leases.Lease
    hold: Hold
    future: "Future[Finish | None]"


class LeasedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event that a worker holds by a lease."""

    lease: leases.Lease
    waiting: Waiting
    consumer: Consumer


class LeaseBounds(msgspec.Struct, frozen=True, kw_only=True):
    """Who takes events, for how long, how many of the group may be held at once, and whether the holder has others."""

    holder: str
    ttl: int
    at_once: int
    others: bool


def lease_events(
    tx: Tx, bus: Bus, group_name: str, n: int, bounds: LeaseBounds, jitter: Callable[[], float]
) -> tuple[list[LeasedEvent], int]:
    """Take up to n events that a dispatcher held for long work; gives them, and how many became dead letters."""
    now = bus.clock.now()
    group = groups.require(tx, group_name)
    group_id = group.group_id
    if group.state is not groups.GroupState.ACTIVE:
        return [], 0
    pool = leases.pool(pool_name(group_name))
    leases.expire(tx, pool, now=now)
    got = leases.acquire(tx, pool, holder=bounds.holder, n=n, now=now, ttl=bounds.ttl, per_partition=bounds.at_once)
    if not got:
        return [], 0
    waiting = {item(w.seq): w for w in deliveries.find_held(tx, group_id, [int(lease.id) for lease in got])}
    taken: list[LeasedEvent] = []
    strange: list[leases.Lease] = []
    lost: list[outcomes.Failed] = []
    for lease in got:
        one = waiting.get(lease.id)
        consumer = bus.handler(group_name, one.event_type, one.version) if one else None
        if one is None:
            leases.finish(tx, pool, [lease])
        elif consumer is None or consumer.kind is not Kind.LONG:
            strange.append(lease)
        elif one.lost >= MAX_LOST_WORKERS:
            lost.append(outcomes.loss_failure(one))
            leases.finish(tx, pool, [lease])
        else:
            taken.append(LeasedEvent(lease=lease, waiting=one, consumer=consumer))
    taken, put_back = _in_company(taken, others=bounds.others)
    leases.release(tx, pool, [t.lease for t in put_back])
    if strange:  # a lease of theirs would be taken first again and again, and nothing behind it
        leases.finish(tx, pool, strange)
        deliveries.put_back(tx, group_id, [int(lease.id) for lease in strange], now + UNHANDLED_PAUSE)
    deliveries.count_losses(tx, group_id, [t.waiting.seq for t in taken], now)
    settled = outcomes.settle_failures(tx, bus, group_name, group_id, lost, now, [jitter() for _ in lost])
    return [msgspec.structs.replace(t, waiting=_count_loss(t.waiting, now)) for t in taken], settled.dead


class LongWorker:
    """Runs the long handlers of one group in this process, at most as many at once as the group allows."""

    def __init__(self, db: Database, bus: Bus, group: str, *, jitter: Callable[[], float] = random.random) -> None:
        mine = [c for c in bus.consumers if c.group == group and c.kind is Kind.LONG]
        self.group = group
        self._db = db
        self._bus = bus
        self._jitter = jitter
        self._bound = next((c.concurrency for c in mine if c.concurrency), None) or 1
        self._ttl = min((c.lease for c in mine), default=0)
        self._pool = leases.pool(pool_name(group))
        self._holder = new_id()
        self._hands: dict[str, _Hand] = {}
        self._threads = ThreadPoolExecutor(self._bound, thread_name_prefix=f"bus {group}")

    @property
    def in_hand(self) -> int:
        return len(self._hands)

    def run_once(self, seconds: float = 0.0) -> Counts:
        """Write what is done, renew what is not, take what is free. Waits up to `seconds` for the first to be done."""
        if self._hands and seconds:
            wait([hand.future for hand in self._hands.values()], timeout=seconds, return_when=FIRST_COMPLETED)
        counts = [self._settle(hand) for hand in list(self._hands.values()) if hand.future.done()]
        self._renew()
        started, lost = self._take()
        return Counts(
            started=started,
            handled=sum(c.handled for c in counts),
            later=sum(c.later for c in counts),
            dead=sum(c.dead for c in counts) + lost,
            fenced=sum(c.fenced for c in counts),
        )

    def close(self) -> None:
        """Release all events: the next worker may take them at once. Handlers are notified that they lost them."""
        for hand in self._hands.values():
            hand.hold.lose()
            hand.future.cancel()
        held = list(self._hands.values())
        self._hands.clear()
        if held:
            self._db.run(lambda tx: self._given_back(tx, held))
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _given_back(self, tx: Tx, held: list[_Hand]) -> None:
        """An orderly end is no loss: only what this worker still held is taken off its count."""
        kept = {lease.id for lease in leases.renew(tx, self._pool, [h.lease for h in held], now=0, ttl=0)}
        leases.release(tx, self._pool, [h.lease for h in held])
        seqs = [h.waiting.seq for h in held if h.lease.id in kept]
        if (group := groups.find(tx, self.group)) is not None:
            deliveries.count_losses(tx, group.group_id, seqs, self._bus.clock.now(), by=-1)

    def _take(self) -> tuple[int, int]:
        free = self._bound - len(self._hands)
        if free <= 0 or any(hand.waiting.lost > LOST_TOGETHER for hand in self._hands.values()):
            return 0, 0  # what is done without company is done first
        taken, lost = self._db.run(lambda tx: self._acquire_leases(tx, free))
        for one in taken:
            hold, event = Hold(), Event(one.waiting)
            future = self._threads.submit(_run, one.consumer, event, hold)
            self._hands[one.lease.id] = _Hand(
                waiting=one.waiting, consumer=one.consumer, event=event, lease=one.lease, hold=hold, future=future
            )
        return len(taken), lost

    def _acquire_leases(self, tx: Tx, free: int) -> tuple[list[LeasedEvent], int]:
        bound = LeaseBounds(holder=self._holder, ttl=self._ttl, at_once=self._bound, others=bool(self._hands))
        return lease_events(tx, self._bus, self.group, free, bound, self._jitter)

    def _renew(self) -> None:
        """Renew the leases once a third of their time is over."""
        now = self._bus.clock.now()
        old = [hand.lease for hand in self._hands.values() if hand.lease.until - now < self._ttl * 2 // 3]
        if not old:
            return
        kept = {
            lease.id: lease
            for lease in self._db.run(lambda tx: leases.renew(tx, self._pool, old, now=now, ttl=self._ttl))
        }
        for lease in old:
            hand = self._hands[lease.id]
            if lease.id in kept:
                hand.lease = kept[lease.id]
            else:
                hand.hold.lose()

    def _settle(self, hand: _Hand) -> Counts:
        try:
            counts = self._db.run(lambda tx: self._write_outcome(tx, hand))
        except groups.GroupGone:  # the group was removed: its events are given up
            with suppress(Fenced):
                self._db.run(lambda tx: leases.finish(tx, self._pool, [hand.lease]))
            log.warning("bus_group_gone", group=self.group, event_id=hand.waiting.event_id)
            counts = Counts(fenced=1)
        except Fenced:
            log.warning("bus_lease_lost", group=self.group, event_id=hand.waiting.event_id)
            counts = Counts(fenced=1)
        except Exception as error:
            if store_trouble(error):
                raise  # the result is kept and written at the next turn
            why = trouble(error)
            counts = self._db.run(lambda tx: self._write_failure(tx, hand, why))
        del self._hands[hand.lease.id]
        return counts

    def _write_outcome(self, tx: Tx, hand: _Hand) -> Counts:
        now = self._bus.clock.now()
        group_id = groups.require(tx, self.group).group_id
        error = hand.future.exception()
        if error is not None:
            return self._write_failure(tx, hand, trouble(error))
        leases.finish(tx, self._pool, [hand.lease])
        effects: dict[str, Sequence[Effect]] = {}
        if deliveries.accept(tx, self.group, [hand.waiting], now):
            if (finish := hand.future.result()) is not None:
                finish(tx)
            hand.consumer.declare_effects([hand.event])
            effects = {hand.event.event_id: hand.event.effects} if hand.event.effects else {}
        done = [as_failed_before(hand.waiting)]
        outcomes.settle_successes(tx, self._bus, self.group, group_id, done, now, effects=effects)
        return Counts(handled=1)

    def _write_failure(self, tx: Tx, hand: _Hand, why: Trouble) -> Counts:
        now = self._bus.clock.now()
        leases.finish(tx, self._pool, [hand.lease])
        failed = outcomes.Failed(waiting=hand.waiting, failures=hand.waiting.attempts + 1, trouble=why)
        group_id = groups.require(tx, self.group).group_id
        settled = outcomes.settle_failures(tx, self._bus, self.group, group_id, [failed], now, [self._jitter()])
        return Counts(later=settled.later, dead=settled.dead)


def _in_company(taken: list[LeasedEvent], *, others: bool) -> tuple[list[LeasedEvent], list[LeasedEvent]]:
    """What may be begun at once, and what waits: a suspect is begun alone, and nothing else before it."""
    suspect = next((t for t in taken if t.waiting.lost >= LOST_TOGETHER), None)
    if suspect is None:
        return taken, []
    begun = [] if others else [suspect]
    return begun, [t for t in taken if t not in begun]


def _count_loss(waiting: Waiting, now: int) -> Waiting:
    """As `deliveries.count_losses` writes it."""
    first = now if waiting.lost and waiting.first_failed_at is None else waiting.first_failed_at
    return msgspec.structs.replace(waiting, lost=waiting.lost + 1, first_failed_at=first)


def _run(consumer: Consumer, what: Event, hold: Hold) -> Finish | None:
    return consumer.handler(what, hold)


def as_failed_before(waiting: Waiting) -> Waiting:
    """Followers were put off while it ran: they are woken as after a failure."""
    return msgspec.structs.replace(waiting, attempts=max(waiting.attempts, 1))
