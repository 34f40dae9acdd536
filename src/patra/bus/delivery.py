"""Events, groups and failures go in; who gets what, what comes next in line, and when it comes back is told (C§3, B5).

Order per key: within a group, an event with an ordering key is handled only when no earlier event of that key is
still unhandled. A key that fails holds back its own followers and nobody else's.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum

import msgspec

from patra.bus.catalogue import OnDeadLetter, Retry
from patra.bus.reasons import R
from patra.bus.versions import Version, VersionRange
from patra.kernel.clock import HOUR, SECOND
from patra.kernel.machine import Machine

NEVER = 2**62
BLOCKED_PAUSE = SECOND // 5  # how long a follower waits when its predecessor is in another worker's hands
SHARDS = 64  # into which the ordering keys of a group are dealt, so that workers keep out of each other's way
LEAST_SHARE = 4
QUIET = 8  # steps without meeting anybody, after which a worker takes itself to be alone
MOST_LOST = 5  # processes lost with an event alone in hand: then it is a dead letter
LOST_TOGETHER = 2  # losses in a row of long work, after which it is done without company
FROZEN_PAUSE = 5 * SECOND  # until a handler is tried again that may not publish while a type is frozen
BLOCKED_BY_DEAD = HOUR  # a follower of a dead letter that blocks; replay and discard wake it earlier


class Subscription(msgspec.Struct, frozen=True, kw_only=True):
    """A group's wish for one event type."""

    group_id: int
    group: str
    event_type: str
    versions: VersionRange


class Waiting(msgspec.Struct, frozen=True, gc=False):
    """One event that a group has still to handle."""

    seq: int
    order_key: bytes | None
    attempts: int
    due_at: int
    replay: bool
    first_failed_at: int | None
    event_type: str
    version: Version
    event_id: str
    published_at: int
    body: str | None
    lost: int = 0  # processes that did not come back from trying it alone, the one that tries it now among them

    @property
    def tries(self) -> int:
        """Which try this is."""
        return self.attempts + max(self.lost, 1)


class D(StrEnum):
    """The life of an event for one group."""

    READY = "ready"
    HELD = "held"
    WAITING = "waiting"
    DONE = "done"
    DEAD = "dead"


class On(StrEnum):
    TAKE = "take"
    SUCCEED = "succeed"
    FAIL = "fail"
    LOSE = "lose"
    GIVE_UP = "give_up"
    REPLAY = "replay"


DELIVERY = Machine(
    "bus_delivery",
    initial=D.READY,
    edges={
        (D.READY, On.TAKE): D.HELD,
        (D.WAITING, On.TAKE): D.HELD,
        (D.HELD, On.SUCCEED): D.DONE,
        (D.HELD, On.FAIL): D.WAITING,
        (D.HELD, On.LOSE): D.WAITING,
        (D.HELD, On.GIVE_UP): D.DEAD,
        (D.DEAD, On.REPLAY): D.READY,
    },
    version="b_delivery_v1",
)


def recipients(
    subscriptions: Iterable[Subscription], event_type: str, versions: Collection[Version]
) -> dict[int, Version]:
    """Which groups get an event, and in which of its versions: the newest that the group reads. Each group gets one."""
    chosen: dict[int, Version] = {}
    for subscription in subscriptions:
        if subscription.event_type != event_type:
            continue
        readable = [version for version in versions if version in subscription.versions]
        if readable:
            best = max(readable)
            chosen[subscription.group_id] = max(best, chosen.get(subscription.group_id, best))
    return chosen


class Reach(msgspec.Struct, frozen=True):
    """Which shards of the ordering keys a worker asks for: so many, from this one on."""

    first: int = 0
    share: int = SHARDS
    quiet: int = 0  # steps in a row in which nobody else had any of them in hand

    @property
    def alone(self) -> bool:
        """Whether nobody else seems to be at work: there is nothing to look past."""
        return self.share == SHARDS and self.quiet >= QUIET


def next_reach(reach: Reach, *, refused: int, first: int) -> Reach:
    """Half as many, where others had some of them in hand, so that all workers find some; else twice as many."""
    if refused:
        return Reach(first % SHARDS, max(reach.share // 2, LEAST_SHARE))
    return Reach(first % SHARDS, min(reach.share * 2, SHARDS), min(reach.quiet + 1, QUIET))


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker may handle now, in order, and what has to wait, until when.

    `overtaken` are those that have to wait for an earlier one of their key which is due as well: it came later to the
    line, or is in other hands. It is to be called up, or the key would stand in its own way.
    """

    ready: list[Waiting]
    blocked: dict[int, int]
    overtaken: dict[int, bytes]


def in_line(taken: Sequence[Waiting], standing: Mapping[bytes, Sequence[tuple[int, int]]], now: int) -> Line:
    """Of the events that a worker took, those whose predecessors are all in its own hands.

    `standing` are all unhandled events (seq, due_at) of the keys at hand, up to the last one taken, read after taking:
    one that the worker did not take is in another's hands, waits for its retry, or blocks as a dead letter.
    """
    mine = {due.seq for due in taken}
    barrier: dict[bytes, tuple[int, int]] = {}
    for key, others in standing.items():
        foreign = [(seq, due_at) for seq, due_at in others if seq not in mine]
        if foreign:
            barrier[key] = min(foreign)
    ready: list[Waiting] = []
    blocked: dict[int, int] = {}
    overtaken: dict[int, bytes] = {}
    for due in sorted(taken, key=lambda d: d.seq):
        stop = barrier.get(due.order_key) if due.order_key is not None else None
        if stop is None or due.order_key is None or due.seq < stop[0]:
            ready.append(due)
            continue
        blocked[due.seq] = follower_due(stop[1], now)
        if stop[1] <= now:
            overtaken[due.seq] = due.order_key
    return Line(ready=ready, blocked=blocked, overtaken=overtaken)


def follower_due(predecessor_due: int, now: int) -> int:
    """When an event looks again whether its predecessor is gone: when that one is due, or shortly."""
    if predecessor_due >= NEVER:
        return now + BLOCKED_BY_DEAD
    return max(predecessor_due, now + BLOCKED_PAUSE)


class Comeback(msgspec.Struct, frozen=True):
    """A failed event comes back at an instant."""

    due_at: int


class GiveUp(msgspec.Struct, frozen=True):
    """A failed event becomes a dead letter; `keep` says whether it goes on blocking its key."""

    reason: R
    keep: bool


def after_failure(
    retry: Retry,
    failures: int,
    now: int,
    jitter: float,
    *,
    poison: bool,
    ordered: OnDeadLetter | None,
    final: R | None = None,
    frozen: bool = False,
) -> Comeback | GiveUp:
    """B5: after the n-th failure, n up to `max_retries`, it comes back later each time; then it is a dead letter.

    One that a freeze keeps from publishing waits until the thaw: it would only add to the dead letters of another type,
    and freeze that one as well.
    """
    keep = ordered is OnDeadLetter.BLOCK
    if final is not None:
        return GiveUp(final, keep)
    if frozen:
        return Comeback(now + FROZEN_PAUSE)
    if poison:
        return GiveUp(R.HANDLER_POISON, keep)
    if failures > retry.max_retries:
        return GiveUp(R.RETRIES_EXHAUSTED, keep)
    return Comeback(now + retry.backoff.delay(failures, jitter))
