"""How long to wait before an attempt, in microseconds; the first attempt is number 1.

Retry decisions are data. Nothing here reads a clock or rolls dice: jitter is a number in [0, 1) that the caller passes.
"""

import msgspec


class Backoff(msgspec.Struct, frozen=True):
    """Exponential delays with jitter.

    The ceiling of attempt n is `base * factor ** (n - 1)`, at most `cap`. `spread` is the share of it that is left to
    jitter: with 0.5 ("equal jitter", the default) a delay lies in the upper half of the ceiling, so that callers part
    and none comes back at once; with 1.0 ("full jitter") anywhere below the ceiling; with 0.0 it is the ceiling.
    """

    base: int
    factor: float
    cap: int
    spread: float = 0.5

    def __post_init__(self) -> None:
        if not (0 < self.base <= self.cap and self.factor >= 1 and 0 <= self.spread <= 1):
            raise ValueError("a backoff needs 0 < base <= cap, factor >= 1 and spread in [0, 1]")

    def delay(self, attempt: int, jitter: float) -> int:
        """The wait after attempt number `attempt` failed."""
        _check_attempt(attempt)
        if not 0 <= jitter < 1:
            raise ValueError(f"jitter lies in [0, 1), not {jitter}")
        ceiling = self.ceiling(attempt)
        return ceiling - int(ceiling * self.spread * (1 - jitter))

    def ceiling(self, attempt: int) -> int:
        """The longest that the delay of this attempt can be."""
        _check_attempt(attempt)
        try:
            return int(min(self.base * self.factor ** (attempt - 1), self.cap))
        except OverflowError:
            return self.cap


class DelayTable(msgspec.Struct, frozen=True):
    """Delays as a specification lists them; past the last one they start again (`cycle`) or stay at the last."""

    delays: tuple[int, ...]
    cycle: bool = False

    def __post_init__(self) -> None:
        if not self.delays or min(self.delays) < 0:
            raise ValueError("a table of delays holds at least one, none below zero")

    def delay(self, attempt: int) -> int:
        """The wait after attempt number `attempt` failed."""
        _check_attempt(attempt)
        index = attempt - 1
        return self.delays[index % len(self.delays) if self.cycle else min(index, len(self.delays) - 1)]


def _check_attempt(attempt: int) -> None:
    if attempt < 1:
        raise ValueError(f"attempts count from 1, not {attempt}")
