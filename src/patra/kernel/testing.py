"""For tests of programs that use Patra: a clock that the test sets (`from patra import ManualClock`)."""

from patra.kernel.clock import SECOND


class ManualClock:
    """Stands still until it is moved."""

    def __init__(self, now: int = 1_700_000_000 * SECOND) -> None:
        self._now = now
        self._jumps = 0

    def now(self) -> int:
        return self._now

    def monotonic(self) -> int:
        return self._now - self._jumps

    def set(self, now: int) -> None:
        self._now = now

    def advance(self, microseconds: int) -> None:
        self._now += microseconds

    def jump(self, microseconds: int) -> None:
        """Move the hands alone: no time passes."""
        self._now += microseconds
        self._jumps += microseconds
