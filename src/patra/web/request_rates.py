"""Decides from a request's address and token how long it should have waited: a token bucket for each of both.

A bucket holds as many requests as may come at once (`web.request_burst`) and fills by so many a second. Buckets are
kept in memory, by process, `MAX_BUCKETS` of each kind; the one that was used the longest ago goes first.
Tokens are known by their hash alone.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from hashlib import sha256

from patra.app.configuration.settings import WebSettings
from patra.kernel.telemetry import counter
from patra.web.problem import Problem

MAX_BUCKETS = 10_000

REFUSED = counter(
    "patra_http_rate_refused_total", "Requests refused for coming too fast, by what was counted (address, token).", "by"
)


class Buckets:
    """Token buckets by key, filled by `rate` a second up to `burst`; a rate of 0 lets everything pass."""

    def __init__(self, rate: float, burst: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = burst
        self._monotonic = monotonic
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()  # how full, and when

    def take(self, key: str) -> float:
        """Take one; 0, or the seconds until there is one. What is refused costs nothing."""
        if not self._rate:
            return 0.0
        now = self._monotonic()
        level, at = self._levels.pop(key, (float(self._burst), now))
        level = min(self._burst, level + (now - at) * self._rate)
        taken = level >= 1
        self._levels[key] = (level - 1 if taken else level, now)
        if len(self._levels) > MAX_BUCKETS:
            self._levels.popitem(last=False)
        return 0.0 if taken else (1 - level) / self._rate


class RequestRates:
    """The buckets of one process. Used by the event loop alone."""

    def __init__(self, web: WebSettings, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._by_address = Buckets(web.requests_per_second_per_address, web.request_burst, monotonic)
        self._by_token = Buckets(web.requests_per_second_per_token, web.request_burst, monotonic)
        self.are_bounded = bool(web.requests_per_second_per_address or web.requests_per_second_per_token)

    def refusal(self, address: str, headers: Mapping[str, str]) -> Problem | None:
        """429 where the client's address, or what it presents, has asked too often."""
        wait, by = self._by_address.take(address), "address"
        presented = headers.get("authorization", "") or headers.get("cookie", "")
        if not wait and presented:
            wait, by = self._by_token.take(sha256(presented.encode()).hexdigest()), "token"
        if not wait:
            return None
        REFUSED.labels(by).inc()
        return Problem(
            429,
            "rate_exceeded",
            "Too many requests",
            f"This {by} has asked more often than web.requests_per_second_per_{by} allows.",
            {},
            {"Retry-After": str(max(1, int(-(-wait // 1))))},
        )
