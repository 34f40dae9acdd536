"""Permits that a process fetched in advance, one lot a rate key: not every request costs a transaction.

A lot is small, no more than is due within its short life, and the bucket keeps its place free until it is over: a
process that dies with unused permits lets the provider see fewer requests, never more.
"""

from collections.abc import Callable

import msgspec

from patra.ingest.ratelimit.limiter import Answered
from patra.ingest.ratelimit.token_bucket import Allow, Ask, Policy, State
from patra.kernel.clock import SECOND

LOT_LIFE = SECOND // 5
MAX_LOT_PERMITS = 20


class PermitLot(msgspec.Struct):
    """What is left of one; instants by this process's own clock."""

    permit: str
    left: int
    cost: int
    share: int
    until: int
    ahead: int
    """How far the gate's clock goes before ours."""
    state: State


class PermitLots:
    """The lots of one process; its gate holds a lock around every call."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._lots: dict[str, PermitLot] = {}

    def take(self, key: str, ask: Ask) -> Answered | None:
        """A permit from the lot at hand. Of a quota, who may use less of it must not live on what another was given."""
        lot, now = self._lots.get(key), self._now()
        if lot is None or lot.left < 1 or lot.cost != ask.cost or lot.share > ask.share or now >= lot.until:
            return None
        lot.left -= 1
        now += lot.ahead
        return Answered(decision=Allow(at=now, permits=1, until=lot.until + lot.ahead), state=lot.state, now=now)

    def keep(self, key: str, ask: Ask, answer: Answered, asked_at: int) -> None:
        """What an answer gave beyond the one permit; it ends here before it ends at the gate."""
        if isinstance(answer.decision, Allow) and answer.decision.permits > 1:
            self._lots[key] = PermitLot(
                permit=ask.permit,
                left=answer.decision.permits - 1,
                cost=ask.cost,
                share=ask.share,
                until=asked_at + answer.decision.until - answer.now,
                ahead=answer.now - asked_at,
                state=answer.state,
            )

    def drop(self, key: str) -> PermitLot | None:
        """Take a lot out; None where there is none, or where it is over."""
        return self._lots.pop(key, None)

    def drop_all(self) -> dict[str, PermitLot]:
        """Take all lots out, by their keys."""
        lots, self._lots = self._lots, {}
        return lots


def lot_permits(policy: Policy, life: int = LOT_LIFE, most: int = MAX_LOT_PERMITS) -> int:
    """How many to fetch: the permits due within half of a lot's life, one where requests in flight are counted."""
    if policy.concurrency:
        return 1
    due = policy.rate * life // (2000 * SECOND)
    return max(min(most, policy.quantum, policy.burst // 2, due), 1)
