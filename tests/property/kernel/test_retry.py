"""Delays stay within their bounds, whatever the attempt and the dice."""

from hypothesis import given
from hypothesis import strategies as st

from patra.kernel.retry import Backoff, DelayTable

BACKOFFS = st.builds(
    lambda base, factor, more, spread: Backoff(base, factor, base + more, spread),
    st.integers(1, 10**9),
    st.floats(1, 10),
    st.integers(0, 10**12),
    st.floats(0, 1),
)
JITTER = st.floats(0, 1, exclude_max=True)


@given(BACKOFFS, st.integers(1, 10**6), JITTER)
def test_a_delay_lies_between_its_floor_and_its_ceiling(backoff: Backoff, attempt: int, jitter: float) -> None:
    ceiling = backoff.ceiling(attempt)
    assert backoff.base <= ceiling <= backoff.cap
    assert ceiling * (1 - backoff.spread) - 1 <= backoff.delay(attempt, jitter) <= ceiling


@given(BACKOFFS, st.integers(1, 10**4), JITTER)
def test_the_next_delay_with_the_same_dice_is_not_shorter(backoff: Backoff, attempt: int, jitter: float) -> None:
    assert backoff.delay(attempt + 1, jitter) >= backoff.delay(attempt, jitter) - 1


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=6), st.integers(1, 50))
def test_a_cycling_table_has_the_period_of_its_length(delays: list[int], attempt: int) -> None:
    table = DelayTable(tuple(delays), cycle=True)
    assert table.delay(attempt) == table.delay(attempt + len(delays))
    assert DelayTable(tuple(delays)).delay(attempt + len(delays)) == delays[-1]
