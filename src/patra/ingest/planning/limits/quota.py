"""Decides from a quota and what is already reserved of it when each slice may run (ch. 4.10.5, 4.12).

A plan reserves what its slices are expected to need. What does not fit into a period is due in the next one. An
operation takes no more than its share, so that a backfill leaves room for the harvest.
"""

from collections.abc import Mapping

import msgspec

from patra.ingest.packs.spec import Leg
from patra.ingest.vocabulary.codes import AuthType, Operation
from patra.kernel.clock import DAY, HOUR

MAX_PERIODS_AHEAD = 1000
"""Periods ahead in which a slice may be placed; past them it is due in the last."""


class Period(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of period and what one of them allows an operation."""

    code: str
    length: int
    capacity: int


def periods(leg: Leg, operation: Operation) -> tuple[Period, ...]:
    """The quotas of a leg for an operation; none where the pack names none."""
    rate = leg.rate_limit
    sure = leg.auth.type is not AuthType.NONE and not leg.auth.optional
    more = rate.authenticated if sure else None
    share = (1 - rate.quota_reserve) * rate.quota_share.get(operation, 1.0)
    found: list[Period] = []
    for code, length, quota in (
        ("DAY", DAY, (more and more.quota_daily) or rate.quota_daily),
        ("HOUR", HOUR, (more and more.quota_hourly) or rate.quota_hourly),
    ):
        if quota is not None:
            found.append(Period(code=code, length=length, capacity=max(int(quota * share), 1)))
    return tuple(found)


class Placed(msgspec.Struct, frozen=True):
    """When a slice is due, and whether a quota moved it."""

    due: int
    moved: bool


class Reservation:
    """Places slices one after the other; never one before the one that came earlier."""

    def __init__(self, kinds: tuple[Period, ...], taken: Mapping[tuple[str, int], int], now: int) -> None:
        """`taken` says how much of a period is used, by its code and start."""
        self._kinds = kinds
        self._taken = dict(taken)
        self._now = now
        self._at = now
        self.added: dict[tuple[str, int], int] = {}

    def place(self, requests: int) -> Placed:
        """Reserve requests in the first period of every kind that still has room for them."""
        self._at = self.earliest(self._at, requests)
        self.book(self._at, requests)
        return Placed(self._at, self._at > self._now)

    def earliest(self, at: int, requests: int) -> int:
        """When every kind has room for so many, from an instant on."""
        for _ in range(MAX_PERIODS_AHEAD):
            later = max((self._later(kind, at, requests) for kind in self._kinds), default=at)
            if later == at:
                break
            at = later
        return at

    def book(self, at: int, requests: int) -> None:
        """Reserve requests in the periods of an instant."""
        for kind in self._kinds:
            key = (kind.code, at // kind.length * kind.length)
            self._taken[key] = self._taken.get(key, 0) + requests
            self.added[key] = self.added.get(key, 0) + requests

    def _later(self, kind: Period, at: int, requests: int) -> int:
        """`at` itself, or the start of the next period of this kind where there is no room."""
        start = at // kind.length * kind.length
        used = self._taken.get((kind.code, start), 0)
        fits = used + requests <= kind.capacity or used == 0  # what needs more than a period gets one to itself
        return at if fits else start + kind.length


def remaining(kinds: tuple[Period, ...], taken: Mapping[tuple[str, int], int], now: int) -> int | None:
    """Requests left for an operation in the tightest period of now; None without a quota."""
    left = [kind.capacity - taken.get((kind.code, now // kind.length * kind.length), 0) for kind in kinds]
    return max(min(left), 0) if left else None
