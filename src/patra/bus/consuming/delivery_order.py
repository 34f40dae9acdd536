"""The states of a delivery, and the order of deliveries in a group: which events a worker may handle now (C§3, B5).

Within a group, an event with an ordering key is handled only when no earlier event of that key is still unhandled. A
key that fails holds back its own followers and nobody else's.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum

import msgspec

from patra.bus.catalogue.versions import Version
from patra.kernel.clock import HOUR, SECOND
from patra.kernel.machine import Machine

FAR_FUTURE = 2**62
BLOCKED_PAUSE = SECOND // 5  # how long a follower waits when its predecessor is in another worker's hands
SHARDS = 64  # into which the ordering keys of a group are dealt, so that workers keep out of each other's way
MIN_SHARDS = 4
QUIET_STEPS = 8  # steps without meeting anybody, after which a worker takes itself to be alone
LOST_TOGETHER = 2  # losses in a row of long work, after which it is done without company
BLOCKED_BY_DEAD = HOUR  # a follower of a dead letter that blocks; replay and discard wake it earlier


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


class DeliveryState(StrEnum):
    """The life of an event for one group."""

    READY = "ready"
    HELD = "held"
    WAITING = "waiting"
    DONE = "done"
    DEAD = "dead"


class DeliveryTransition(StrEnum):
    TAKE = "take"
    SUCCEED = "succeed"
    FAIL = "fail"
    LOSE = "lose"
    GIVE_UP = "give_up"
    REPLAY = "replay"


DELIVERY = Machine(
    "bus_delivery",
    initial=DeliveryState.READY,
    edges={
        (DeliveryState.READY, DeliveryTransition.TAKE): DeliveryState.HELD,
        (DeliveryState.WAITING, DeliveryTransition.TAKE): DeliveryState.HELD,
        (DeliveryState.HELD, DeliveryTransition.SUCCEED): DeliveryState.DONE,
        (DeliveryState.HELD, DeliveryTransition.FAIL): DeliveryState.WAITING,
        (DeliveryState.HELD, DeliveryTransition.LOSE): DeliveryState.WAITING,
        (DeliveryState.HELD, DeliveryTransition.GIVE_UP): DeliveryState.DEAD,
        (DeliveryState.DEAD, DeliveryTransition.REPLAY): DeliveryState.READY,
    },
    version="b_delivery_v1",
)


class Reach(msgspec.Struct, frozen=True):
    """Which shards of the ordering keys a worker asks for: so many, from this one on."""

    first: int = 0
    share: int = SHARDS
    quiet: int = 0  # steps in a row in which no other worker held any of them

    @property
    def alone(self) -> bool:
        """Whether nobody else seems to be at work: there is nothing to look past."""
        return self.share == SHARDS and self.quiet >= QUIET_STEPS


def next_reach(reach: Reach, *, refused: int, first: int) -> Reach:
    """Half as many, where others held some of them, so that all workers find some; else twice as many."""
    if refused:
        return Reach(first % SHARDS, max(reach.share // 2, MIN_SHARDS))
    return Reach(first % SHARDS, min(reach.share * 2, SHARDS), min(reach.quiet + 1, QUIET_STEPS))


class RunnableEvents(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker may handle now, in order, and what has to wait, until when.

    `overtaken` are those that have to wait for an earlier one of their key which is due as well: it came later to the
    line, or is in other hands. It is to be called up, or the key would stand in its own way.
    """

    ready: list[Waiting]
    blocked: dict[int, int]
    overtaken: dict[int, bytes]


def in_line(taken: Sequence[Waiting], standing: Mapping[bytes, Sequence[tuple[int, int]]], now: int) -> RunnableEvents:
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
    return RunnableEvents(ready=ready, blocked=blocked, overtaken=overtaken)


def follower_due(predecessor_due: int, now: int) -> int:
    """When an event looks again whether its predecessor is gone: when that one is due, or shortly."""
    if predecessor_due >= FAR_FUTURE:
        return now + BLOCKED_BY_DEAD
    return max(predecessor_due, now + BLOCKED_PAUSE)
