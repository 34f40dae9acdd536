"""Quotas of both legs of a plan: the list and the details each have their own, or share one (ch. 4.10.5, 4.10.9).

Requests are reserved under the rate key of the leg that sends them, at what that leg says one costs. A slice is due
when all of its legs have room.
"""

from collections import Counter
from collections.abc import Mapping

from patra.ingest.packs.spec import Leg, Spec
from patra.ingest.planning.limits.quota import MAX_PERIODS_AHEAD, Placed, Reservation, periods, remaining
from patra.ingest.ratelimit import quota_store
from patra.ingest.ratelimit.policy import rate_key
from patra.kernel.clock import DAY
from patra.kernel.db import Tx

Taken = Mapping[str, Mapping[tuple[str, int], int]]
"""What is used of each period, by rate key."""


def legs_by_key(spec: Spec) -> dict[str, Leg]:
    """The legs that requests of a plan go through; of two that share a rate key the list's own quota holds."""
    legs: list[Leg] = [spec] if spec.detail is None else [spec.detail, spec]
    return {rate_key(spec.provenance_code, leg, authenticated=False): leg for leg in legs}


def permits_by_key(spec: Spec, requests: int, details: int) -> dict[str, int]:
    """What so many requests cost under each rate key; `details` of them are for details."""
    found: Counter[str] = Counter()
    for leg, count in ((spec, requests - details), (spec.detail or spec, details)):
        if count:
            found[rate_key(spec.provenance_code, leg, authenticated=False)] += count * leg.rate_limit.cost
    return dict(found)


def taken_of(tx: Tx, spec: Spec, now: int) -> Taken:
    """What is used of the quotas that a plan has; nothing is read where there are none."""
    limited = [key for key, leg in legs_by_key(spec).items() if periods(leg, spec.operation)]
    return {key: quota_store.quota_taken(tx, key, now - DAY) for key in limited}


class LegQuotas:
    """Places slices one after the other; never one before the one that came earlier."""

    def __init__(self, spec: Spec, taken: Taken, now: int, start: int | None = None) -> None:
        """`start`: nothing is due before it."""
        self._spec = spec
        self._now = now
        self._taken = taken
        self._kinds = {key: periods(leg, spec.operation) for key, leg in legs_by_key(spec).items()}
        self.at = now if start is None else start
        """Where the next slice would be placed at the earliest."""
        self._by_key = {
            key: Reservation(kinds, taken.get(key, {}), self.at) for key, kinds in self._kinds.items() if kinds
        }

    def place(self, requests: int, details: int = 0) -> Placed:
        """Reserve the requests of a slice where every leg has room for its own."""
        needs = permits_by_key(self._spec, requests, details)
        wanted = [(self._by_key[key], count) for key, count in needs.items() if key in self._by_key]
        for _ in range(MAX_PERIODS_AHEAD):
            later = max((one.earliest(self.at, count) for one, count in wanted), default=self.at)
            if later == self.at:
                break
            self.at = later
        for one, count in wanted:
            one.book(self.at, count)
        return Placed(self.at, self.at > self._now)

    @property
    def added_permits(self) -> dict[str, dict[tuple[str, int], int]]:
        """What was reserved, by rate key."""
        return {key: one.added for key, one in self._by_key.items() if one.added}

    def remaining(self) -> int | None:
        """Requests left in the tightest period of now; None without a quota."""
        left = [remaining(kinds, self._taken.get(key, {}), self._now) for key, kinds in self._kinds.items()]
        return min((one for one in left if one is not None), default=None)

    def periods_used(self) -> int:
        """Over how many periods of one quota the slices are spread."""
        counts = (Counter(code for code, _ in added) for added in self.added_permits.values())
        return max((count for one in counts for count in one.values()), default=0)
