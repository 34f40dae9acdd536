"""Wrong tokens are logged and slowed, by address; a right token is never slowed."""

import time
from collections.abc import Callable

from patra.kernel.telemetry import counter, get_logger

log = get_logger()

WINDOW_SECONDS = 60.0
LOG_SECONDS = 10.0
DELAY_STEP_SECONDS = 0.05
MAX_DELAY_SECONDS = 1.0
MAX_ADDRESSES = 4096

FAILED = counter("patra_http_tokens_refused_total", "Requests with a token that is not known.")


class _Attempts:
    def __init__(self, now: float) -> None:
        self.since = now
        self.count = 0
        self.told_at = float("-inf")
        self.untold = 0


class FailedAttempts:
    """Counts wrong tokens of each address for a minute."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._by_address: dict[str, _Attempts] = {}

    def record(self, address: str, path: str) -> float:
        """Note a wrong token; gives the seconds that its answer is to wait."""
        now = self._monotonic()
        found = self._by_address.get(address)
        if found is None or now - found.since > WINDOW_SECONDS:
            if found is None and len(self._by_address) >= MAX_ADDRESSES:
                self._by_address.pop(next(iter(self._by_address)))
            found = self._by_address[address] = _Attempts(now)
        found.count += 1
        found.untold += 1
        FAILED.inc()
        if now - found.told_at >= LOG_SECONDS:
            log.warning("http_token_refused", address=address, path=path, attempts=found.untold)
            found.told_at, found.untold = now, 0
        return min((found.count - 1) * DELAY_STEP_SECONDS, MAX_DELAY_SECONDS)
