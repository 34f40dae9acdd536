"""The machine's clock, checked against its monotonic clock: a jump is not believed at once (F27).

One reading that runs ahead by days would make every event stale, apply every deadline, end every window of delivery and
purge what is kept; and the intake never goes back behind an instant that it gave. So a reading that is more than
`MAX_JUMP` away from where the monotonic clock says it should be counts for nothing until it has lasted `BELIEF_DELAY`;
until then the instant goes on from the last one that was believed.
"""

import threading

from patra.kernel.clock import MINUTE, SECOND, Clock
from patra.kernel.telemetry import gauge, get_logger

log = get_logger()

MAX_JUMP = MINUTE
BELIEF_DELAY = 30 * SECOND

AHEAD = gauge(
    "patra_attribution_clock_doubted_seconds",
    "How far the clock is from where the monotonic clock expects it, while that is not believed; else 0.",
)


class TrustedClock:
    """A clock whose jumps are believed only when they last. Safe for threads."""

    def __init__(self, clock: Clock) -> None:
        self.source = clock
        self._lock = threading.Lock()
        self._at, self._mono = clock.now(), clock.monotonic()
        self._doubted_since: int | None = None
        self._ahead = 0

    def now(self) -> int:
        """The instant, as far as it is believed."""
        with self._lock:
            wall, mono = self.source.now(), self.source.monotonic()
            expected = self._at + mono - self._mono
            jump = wall - expected
            if -MAX_JUMP <= jump <= MAX_JUMP:
                if self._doubted_since is not None:
                    self._end_doubt("attribution_clock_recovered", jump)
            else:
                if self._doubted_since is None or (jump > 0) is not (self._ahead > 0):
                    self._doubted_since = mono
                    log.error("attribution_clock_doubted", jump_seconds=jump // SECOND)
                self._ahead = jump
                AHEAD.set(jump / SECOND)
                if mono - self._doubted_since < BELIEF_DELAY:
                    return expected
                self._end_doubt("attribution_clock_believed", jump)
            self._at, self._mono = wall, mono
            return wall

    def monotonic(self) -> int:
        return self.source.monotonic()

    def seconds_of_doubt(self) -> int:
        """How many seconds the intake should wait, since the clock runs ahead and is not believed; else 0."""
        self.now()
        with self._lock:
            if self._doubted_since is None or self._ahead < 0:
                return 0
            left = self._doubted_since + BELIEF_DELAY - self.source.monotonic()
            return max(1, -(-left // SECOND))

    def _end_doubt(self, name: str, jump: int) -> None:
        self._doubted_since, self._ahead = None, 0
        AHEAD.set(0)
        log.warning(name, jump_seconds=jump // SECOND)


def trust_clock(clock: Clock) -> TrustedClock:
    return clock if isinstance(clock, TrustedClock) else TrustedClock(clock)
