"""How much of the intake one app may take: a share of the queue, and batches a second.

An app above its share is refused alone, with the seconds to wait; other apps are not affected. The app is the one of
the request's key, so registered apps are required: without keys a client can claim any app.
"""

import math
import threading
from collections.abc import Callable, Mapping

import msgspec

BURST_S = 2.0
"""Seconds of its rate that an app may send at once."""


class AppLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of apps; a rate of 0 is none."""

    queue_share: float = 1.0
    """Part of the queue that the batches of one app may fill; at least one batch."""
    rate: float = 0.0
    """Batches a second of every app that has no rate of its own."""
    rates: Mapping[str, float] = {}

    def rate_of(self, app_id: str) -> float:
        return self.rates.get(app_id, self.rate)


class FairShare:
    """Counts what apps have in the queue and how fast they send; for any thread."""

    def __init__(self, limits: AppLimits, queue: int, monotonic: Callable[[], float]) -> None:
        self._limits = limits
        self._most = max(int(queue * limits.queue_share), 1)
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._held: dict[str, int] = {}
        self._buckets: dict[str, tuple[float, float]] = {}

    def enter(self, app_id: str) -> int:
        """Take a place for one batch; 0, or the seconds after which the app may try again."""
        with self._lock:
            held = self._held.get(app_id, 0)
            if held >= self._most:
                return 1
            if (wait := self._take_token(app_id)) > 0:
                return wait
            self._held[app_id] = held + 1
            return 0

    def leave(self, app_id: str) -> None:
        """Give the place of one batch back."""
        with self._lock:
            held = self._held.get(app_id, 0) - 1
            if held > 0:
                self._held[app_id] = held
            else:
                self._held.pop(app_id, None)

    def _take_token(self, app_id: str) -> int:
        rate = self._limits.rate_of(app_id)
        if not rate:
            return 0
        now, burst = self._monotonic(), max(rate * BURST_S, 1.0)
        tokens, since = self._buckets.get(app_id, (burst, now))
        tokens = min(burst, tokens + (now - since) * rate)
        taken = tokens >= 1.0
        self._buckets[app_id] = (tokens - 1.0 if taken else tokens, now)
        return 0 if taken else max(math.ceil((1.0 - tokens) / rate), 1)
