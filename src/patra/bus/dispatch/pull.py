"""Events for programs that pull them: each is held by a lease until it is acknowledged, refused or given back (C§3).

The inbox is on our side: an event is out of the group's line with its acknowledgement, an acknowledgement that comes
twice has one effect, one that comes after the lease was lost is refused. What the consumer publishes in answer is
written in the same transaction, so that it exists if, and only if, the event counts as handled.
"""

import random
from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from patra.bus.bus import Bus
from patra.bus.catalogue.catalogue import is_group
from patra.bus.catalogue.reasons import Reason
from patra.bus.catalogue.versions import VersionRange
from patra.bus.consuming.consumer import Consumer, Event, Hold, Kind, Trouble
from patra.bus.consuming.delivery_order import Waiting
from patra.bus.dispatch import outcomes
from patra.bus.dispatch.dispatcher import Dispatcher, item, pool_name
from patra.bus.dispatch.long_worker import LeaseBounds, LeasedEvent, as_failed_before, lease_events
from patra.bus.publishing.envelope import Envelope, Refused, decode_trusted
from patra.bus.publishing.publish import Outcome, Published
from patra.bus.publishing.publisher_tokens import Publisher
from patra.bus.store import deliveries, groups, hops
from patra.bus.store import events as store_events
from patra.kernel import leases
from patra.kernel.db import Database, Tx
from patra.kernel.ids import new_id

MAX_HELD_AT_ONCE = 10_000  # deliveries of a group, over all programs that pull
MAX_PASSED_BATCH = 200
MAX_PASSED_BATCHES = 10  # how far a pull looks behind events that others of the group take


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """An event in the hands of a consumer: `delivery` is what it answers with, until `lease_until`."""

    delivery: str
    event: Envelope
    attempt: int
    replay: bool
    lease_until: int


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """By delivery: handled, later, dead, extended, or lost (the lease ran out; the event is not the caller's)."""

    deliveries: dict[str, str]
    published: list[Outcome] = []


class Nack(msgspec.Struct, frozen=True, kw_only=True):
    """Why an event failed; `dead` when no retry can help, `wait` is the least time until the next try (µs)."""

    code: str
    detail: str
    dead: bool = False
    wait: int = 0


class _NotPublished(Exception):  # noqa: N818  no error: a signal to undo
    """What came with an acknowledgement was refused."""

    def __init__(self, outcomes_: Sequence[Outcome]) -> None:
        super().__init__()
        self.outcomes = list(outcomes_)


class _AnsweredBefore(Exception):  # noqa: N818  no error: a signal to undo
    """New events came with an acknowledgement of what the group has handled already, `waiting` still in its line."""

    def __init__(self, tokens: Sequence[str], waiting: Sequence[str] = ()) -> None:
        super().__init__()
        self.tokens = list(tokens)
        self.waiting = list(waiting)


class _Asks(msgspec.Struct, frozen=True, kw_only=True):
    """Who pulls: the tenants that it may see, and those that all who pull for the group may; None for every one."""

    tenants: Collection[str] | None
    seen_by_group: Callable[[Tx], Collection[str] | None]
    by: str

    def may_see(self, one: LeasedEvent) -> bool:
        return self.tenants is None or _tenant(one) in self.tenants


def _every_tenant(_: Tx) -> None:
    """Nobody knows who else pulls: nothing is passed over."""


def _tenant(one: LeasedEvent) -> str:
    return decode_trusted(one.waiting.body or "{}").tenant_id


def _never(event: Event, hold: Hold) -> None:
    """The handler of a pulled event is elsewhere."""


class PullConsumers:
    """Hands events of groups to programs that ask for them."""

    def __init__(self, db: Database, bus: Bus) -> None:
        self._db = db
        self._bus = bus

    def subscribe(
        self, group: str, types: Mapping[str, VersionRange], *, from_beginning: bool = False, by: str = ""
    ) -> Refused | None:
        """Make sure that the group has these subscriptions; what it had before stays. A refusal leaves a row (A4)."""
        if (refused := self._not_subscribed(group, types, from_beginning, by)) is not None:
            self.record_refusal(group, types, refused, by)
        return refused

    def record_refusal(self, group: str, types: Collection[str], refused: Refused, by: str) -> None:
        """Leave a row for a program that asked for events it does not get (A4); one for all invalid group names."""
        asked = next((name for name in sorted(types) if name in self._bus.catalogue.types), "")
        row = _blank_envelope(asked)
        detail = f"pull of group {group}: {refused.detail}"
        told = msgspec.structs.replace(refused, detail=detail)
        of = group if is_group(group) else ""
        self._db.run(lambda tx: store_events.record_refusals(tx, [(row, told)], self._bus.clock.now(), by, of))

    def _not_subscribed(
        self, group: str, types: Mapping[str, VersionRange], from_beginning: bool, by: str
    ) -> Refused | None:
        if not is_group(group) or group.startswith(groups.WEBHOOK_PREFIX):
            return Refused(code=Reason.GROUP_UNKNOWN, place="/group", detail=f"{group!r} is not a name for a group")
        for name, versions in types.items():
            kind = self._bus.catalogue.types.get(name)
            if kind is None:
                return Refused(code=Reason.TYPE_UNKNOWN, place="/types", detail=f"the catalogue has no {name}")
            if not versions.majors(set(kind.contracts)):
                known = ", ".join(str(c.version) for c in kind.contracts.values())
                detail = f"no version of {name} is {versions.text}; there is {known}"
                return Refused(code=Reason.VERSION_UNKNOWN, place="/types", detail=detail)
        if self._is_ours(group):
            detail = f"{group} is a group of the bus's own consumers: pull for a group of another name"
            return Refused(code=Reason.CONSUMER, place="/group", detail=detail)
        have = {(g, t, v.text) for g, t, v in self._db.read(groups.subscriptions)}
        if any((group, name, versions.text) not in have for name, versions in types.items()):
            self._db.run(lambda tx: self._subscribe_group(tx, group, types, from_beginning, by))
        return None

    def _is_ours(self, group: str) -> bool:
        """Whether handlers in processes of the bus work for a group: what is leased to others would pass them by."""
        if group in self._bus.groups():
            return True
        found = self._db.read(lambda tx: groups.find(tx, group))
        return found is not None and not found.remote

    def _subscribe_group(
        self, tx: Tx, group: str, types: Mapping[str, VersionRange], from_beginning: bool, by: str
    ) -> None:
        self._bus.join(tx)  # with the locks, and with the catalogue put in force (B8)
        now = self._bus.clock.now()
        for name, versions in types.items():
            if self._bus.subscribe(tx, group, name, versions, from_beginning, now):
                detail = {"event_type": name, "versions": versions.text, "from_beginning": from_beginning}
                groups.record_act(tx, by=by or "pull", act="subscribe", subject=group, detail=detail, now=now)
        groups.set_remote(tx, group)

    def pull(
        self,
        group: str,
        n: int,
        lease: int,
        *,
        tenants: Collection[str] | None = None,
        seen_by_group: Callable[[Tx], Collection[str] | None] | None = None,
        by: str = "",
    ) -> list[Delivery]:
        """Up to n events that are due, each under a lease.

        Events of other tenants are left in line for who may see them: `seen_by_group` gives the tenants of all who pull
        for the group, None for every tenant. What none of them may see is passed over, as handled.
        """
        bus = self._of_group(group)
        if self._db.read(lambda tx: self._is_idle(tx, group)):
            return []
        Dispatcher(self._db, bus, group, batch=n, slow_start=False).run_once()
        bounds = LeaseBounds(holder=new_id(), ttl=lease, at_once=MAX_HELD_AT_ONCE, others=False)
        asks = _Asks(tenants=tenants, seen_by_group=seen_by_group or _every_tenant, by=by)
        found, unseen = self._db.run(lambda tx: self._lease_events(tx, bus, group, n, bounds, asks))
        if unseen:
            self.acknowledge(group, unseen)
        return found

    def _lease_events(
        self, tx: Tx, bus: Bus, group: str, n: int, bounds: LeaseBounds, asks: "_Asks"
    ) -> tuple[list[Delivery], list[str]]:
        """Events that are the caller's from now on, and deliveries of events that nobody who pulls may see."""
        mine: list[LeasedEvent] = []
        foreign: list[LeasedEvent] = []
        for batch in (n, *[MAX_PASSED_BATCH] * MAX_PASSED_BATCHES):
            taken, _ = lease_events(tx, bus, group, batch, bounds, random.random)
            for one in taken:
                (mine if asks.may_see(one) else foreign).append(one)
            if mine or not taken:
                break
        seen = asks.seen_by_group(tx) if foreign else ()
        left = [one for one in foreign if seen is None or _tenant(one) in seen]
        unseen = [one for one in foreign if seen is not None and _tenant(one) not in seen]
        self._left_in_line(tx, group, [*mine[n:], *left])
        found = [
            Delivery(
                delivery=_token(one),
                event=decode_trusted(one.waiting.body or "{}"),
                attempt=one.waiting.tries,
                replay=one.waiting.replay,
                lease_until=one.lease.until,
            )
            for one in mine[:n]
        ]
        hops.record(tx, [_delivery_hop(group, one, asks.by) for one in found], bus.clock.now())
        return found, [_token(one) for one in unseen]

    def _left_in_line(self, tx: Tx, group: str, left: Sequence[LeasedEvent]) -> None:
        """Release what is another's: that it was taken is no loss of a worker, and the next pull may take it."""
        if not left:
            return
        leases.release(tx, leases.pool(pool_name(group)), [one.lease for one in left])
        group_id, now = groups.require(tx, group).group_id, self._bus.clock.now()
        deliveries.count_losses(tx, group_id, [one.waiting.seq for one in left], now, by=-1)

    def _is_idle(self, tx: Tx, group: str) -> bool:
        found = groups.require(tx, group)
        due = deliveries.next_due(tx, found.group_id)
        now = self._bus.clock.now()
        return (due is None or due > now) and not leases.has_free(tx, leases.pool(pool_name(group)), now=now)

    def acknowledge(
        self, group: str, tokens: Sequence[str], events: Sequence[Envelope] = (), publisher: Publisher | None = None
    ) -> Settled:
        """The events are handled. `events` are published with it, or nothing is done where one of them is refused."""
        try:
            return self._db.run(lambda tx: self._acknowledge_events(tx, group, tokens, events, publisher))
        except _NotPublished as refused:
            return Settled(deliveries={}, published=refused.outcomes)
        except _AnsweredBefore as before:
            if waiting := before.waiting:  # out of the line, without a second answer
                self._db.run(lambda tx: self._acknowledge_events(tx, group, waiting, (), None))
            return Settled(deliveries=dict.fromkeys(before.tokens, "lost"))

    def _acknowledge_events(
        self, tx: Tx, group: str, tokens: Sequence[str], events: Sequence[Envelope], publisher: Publisher | None
    ) -> Settled:
        group_id = groups.require(tx, group).group_id
        now = self._bus.clock.now()
        held, told = self._held_deliveries(tx, group, group_id, tokens)
        if events and "lost" in told.values():
            return Settled(deliveries=told)
        published = self._bus.publish_many(tx, events, publisher=publisher) if events else []
        if any(isinstance(one, Refused) for one in published):
            raise _NotPublished(published)
        is_new = any(isinstance(one, Published) and not one.duplicate for one in published)
        if is_new and told:  # another holder's answer counts: only the same acknowledgement again finds its own events
            raise _AnsweredBefore(list(told))
        leases.finish(tx, leases.pool(pool_name(group)), [lease for lease, _ in held.values()])
        done = [waiting for _, waiting in held.values()]
        won = deliveries.accept(tx, group, done, now)
        again = [token for token, (_, waiting) in held.items() if waiting.seq not in won]
        if is_new and again:
            raise _AnsweredBefore(again, again)
        by = publisher.name if publisher else ""
        outcomes.settle_successes(tx, self._bus, group, group_id, [as_failed_before(w) for w in done], now, by=by)
        return Settled(deliveries=told | dict.fromkeys(held, "handled"), published=published)

    def refuse(self, group: str, nacks: Mapping[str, Nack], *, by: str = "") -> Settled:
        """The events failed: they come back by the type's retries, or are dead letters."""
        return self._db.run(lambda tx: self._refuse_events(tx, group, nacks, by))

    def _refuse_events(self, tx: Tx, group: str, nacks: Mapping[str, Nack], by: str) -> Settled:
        group_id = groups.require(tx, group).group_id
        held, told = self._held_deliveries(tx, group, group_id, list(nacks))
        leases.finish(tx, leases.pool(pool_name(group)), [lease for lease, _ in held.values()])
        failed = [
            outcomes.Failed(waiting=waiting, failures=waiting.attempts + 1, trouble=_trouble(nacks[token]), by=by)
            for token, (_, waiting) in held.items()
        ]
        jitters = [random.random() for _ in failed]
        done = outcomes.settle_failures(tx, self._bus, group, group_id, failed, self._bus.clock.now(), jitters)
        for token, (_, waiting) in held.items():
            told[token] = "later" if waiting.seq in done.until else "dead"
        return Settled(deliveries=told)

    def extend(self, group: str, tokens: Sequence[str], lease: int) -> Settled:
        """Hold on to events that take longer."""

        def work(tx: Tx) -> Settled:
            now, pool = self._bus.clock.now(), leases.pool(pool_name(group))
            held, told = self._held_deliveries(tx, group, groups.require(tx, group).group_id, tokens)
            leases.renew(tx, pool, [one for one, _ in held.values()], now=now, ttl=lease)
            return Settled(deliveries=told | dict.fromkeys(held, "extended"))

        return self._db.run(work)

    def _held_deliveries(
        self, tx: Tx, group: str, group_id: int, tokens: Sequence[str]
    ) -> tuple[dict[str, tuple[leases.Lease, Waiting]], dict[str, str]]:
        """Deliveries that are still in the caller's hands, and what became of the others: handled before, or lost."""
        asked = {token: _lease(token) for token in tokens}
        known = {token: lease for token, lease in asked.items() if lease is not None}
        pool = leases.pool(pool_name(group))
        kept = {lease.id for lease in leases.held_leases(tx, pool, known.values())}
        lines = {item(w.seq): w for w in deliveries.find_held(tx, group_id, [int(i) for i in kept])}
        held: dict[str, tuple[leases.Lease, Waiting]] = {}
        others: dict[str, str] = dict.fromkeys(asked, "lost")
        for token, lease in known.items():
            if lease.id in kept and lease.id in lines:
                held[token] = (lease, lines[lease.id])
                del others[token]
        handled = deliveries.handled_at(tx, group, [token.rpartition(".")[2] for token in others])
        return held, {t: "handled" if t.rpartition(".")[2] in handled else "lost" for t in others}

    def _of_group(self, group: str) -> Bus:
        """A bus whose consumers are the group's subscriptions, for the dispatcher: what it takes is leased."""
        made = Bus(self._bus.catalogue, self._bus.clock)
        for name, event_type, versions in self._db.read(groups.subscriptions):
            if name == group and event_type in self._bus.catalogue.types:
                made.consumers.append(
                    Consumer(event_type=event_type, group=group, versions=versions, kind=Kind.LONG, handler=_never)
                )
        return made


def _delivery_hop(group: str, one: Delivery, by: str) -> hops.NewHop:
    detail = {"attempt": one.attempt, "lease_until_at": one.lease_until}
    return hops.NewHop(event_id=one.event.event_id, group=group, what=hops.HopKind.DELIVERED, by=by, detail=detail)


def _blank_envelope(event_type: str) -> Envelope:
    """What the row of a refusal holds where no event is in question."""
    empty = dict.fromkeys(("event_id", "producer", "tenant_id", "project_id", "trace_id", "correlation_id"), "")
    return Envelope(**empty, event_type=event_type, event_version="", idempotency_key="", occurred_at=0, payload={})


def _token(one: LeasedEvent) -> str:
    return f"{one.waiting.seq}.{one.lease.fence}.{one.lease.holder}.{one.waiting.event_id}"


def _lease(token: str) -> leases.Lease | None:
    parts = token.split(".")
    if len(parts) != 4 or not (parts[0].isdecimal() and parts[1].isdecimal()) or len(parts[0]) > 18:
        return None
    return leases.Lease(id=item(int(parts[0])), partition="", holder=parts[2], fence=int(parts[1][:18]), until=0)


def _trouble(nack: Nack) -> Trouble:
    return Trouble(
        code=nack.code[:200], detail=nack.detail[:4000], poison=nack.dead, wait=nack.wait, kinds=(nack.code,)
    )
