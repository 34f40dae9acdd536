import pytest

from patra.kernel.clock import HOUR, SECOND
from patra.kernel.retry import Backoff, DelayTable

BACKOFF = Backoff(base=SECOND, factor=2, cap=60 * SECOND)


def test_the_ceiling_doubles_until_the_cap() -> None:
    assert [BACKOFF.ceiling(n) // SECOND for n in range(1, 9)] == [1, 2, 4, 8, 16, 32, 60, 60]


def test_equal_jitter_leaves_at_least_half_of_the_ceiling() -> None:
    assert BACKOFF.delay(3, 0.0) == 2 * SECOND
    assert BACKOFF.delay(3, 0.5) == 3 * SECOND
    assert 2 * SECOND < BACKOFF.delay(3, 0.999) < 4 * SECOND


def test_full_jitter_may_leave_nothing() -> None:
    assert Backoff(SECOND, 2, HOUR, spread=1.0).delay(3, 0.0) == 0


def test_no_jitter_is_the_ceiling() -> None:
    assert Backoff(SECOND, 2, HOUR, spread=0.0).delay(3, 0.25) == 4 * SECOND


def test_the_thousandth_attempt_waits_the_cap_and_overflows_nothing() -> None:
    assert BACKOFF.ceiling(100_000) == 60 * SECOND
    assert Backoff(1, 10.5, HOUR).ceiling(100_000) == HOUR


def test_a_cycling_table_starts_again() -> None:
    table = DelayTable((1 * SECOND, 5 * SECOND, 30 * SECOND, 120 * SECOND), cycle=True)
    assert [table.delay(n) // SECOND for n in range(1, 10)] == [1, 5, 30, 120, 1, 5, 30, 120, 1]


def test_a_table_that_does_not_cycle_stays_at_its_last() -> None:
    table = DelayTable((1 * SECOND, 5 * SECOND))
    assert [table.delay(n) // SECOND for n in range(1, 5)] == [1, 5, 5, 5]


@pytest.mark.parametrize("attempt", [0, -1])
def test_attempts_count_from_one(attempt: int) -> None:
    with pytest.raises(ValueError):
        BACKOFF.delay(attempt, 0.5)
    with pytest.raises(ValueError):
        DelayTable((1,)).delay(attempt)


@pytest.mark.parametrize("jitter", [-0.1, 1.0, float("nan")])
def test_jitter_outside_its_range_is_refused(jitter: float) -> None:
    with pytest.raises(ValueError):
        BACKOFF.delay(1, jitter)


@pytest.mark.parametrize(
    ("base", "factor", "cap", "spread"), [(0, 2, 1, 0.5), (2, 2, 1, 0.5), (1, 0.5, 1, 0.5), (1, 2, 1, 1.5)]
)
def test_a_backoff_that_makes_no_sense_is_refused(base: int, factor: float, cap: int, spread: float) -> None:
    with pytest.raises(ValueError):
        Backoff(base, factor, cap, spread)


@pytest.mark.parametrize("delays", [(), (1, -1)])
def test_a_table_that_makes_no_sense_is_refused(delays: tuple[int, ...]) -> None:
    with pytest.raises(ValueError):
        DelayTable(delays)
