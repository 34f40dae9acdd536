"""The matrix of 12.2 row by row, and the circuit breaker."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patra.ingest.fetching.resilience import (
    CIRCUIT,
    HEALTH_WINDOW,
    MATRIX,
    Circuit,
    CircuitState,
    ConcurrencyLimiter,
    HealthCounts,
    HealthWindow,
    Thresholds,
    admit,
    fewer,
    heal,
    more,
    settle,
)
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.clock import MINUTE, SECOND

T0 = 1_700_000_000 * SECOND


def acts(**vitals) -> list[RunReason]:
    return [found.act for found in heal(HealthCounts(**vitals))]


@pytest.mark.parametrize(
    ("vitals", "expected"),
    [
        ({}, []),
        ({"requests": 100, "throttled": 5}, []),
        ({"requests": 100, "throttled": 6}, [RunReason.QPS_DOWNSHIFT]),
        ({"requests": 10, "throttled": 5}, []),
        ({"retry_after": True}, [RunReason.QPS_DOWNSHIFT]),
        ({"batches": 2, "latency": 6 * SECOND}, []),
        ({"batches": 2, "latency": 6 * SECOND + 2}, [RunReason.CONCURRENCY_DOWN]),
        (
            {"batches": 2, "latency": 8 * SECOND, "page_can_shrink": True},
            [RunReason.CONCURRENCY_DOWN, RunReason.PAGE_SHRINK],
        ),
        ({"pages": 31, "pages_expected": 10, "splittable": True}, [RunReason.RESLICE]),
        ({"pages": 31, "pages_expected": 10}, []),
        ({"pages": 30, "pages_expected": 10, "splittable": True}, []),
        ({"pages": 999, "splittable": True}, []),
        ({"body_bytes": 11, "body_bytes_most": 10, "page_can_shrink": True}, [RunReason.PAGE_SHRINK]),
        ({"body_bytes": 11, "body_bytes_most": 10, "splittable": True}, [RunReason.RESLICE]),
        ({"failures_in_row": 2}, []),
        ({"failures_in_row": 3}, [RunReason.CIRCUIT_OPEN]),
        ({"requests": 100, "refused": 10}, []),
        ({"requests": 100, "refused": 11}, [RunReason.TASK_STOPPED]),
        ({"polluted": 50}, []),
        ({"fatal": True}, [RunReason.HALTED]),
    ],
)
def test_each_row_of_the_matrix(vitals: dict, expected: list[RunReason]) -> None:
    assert acts(**vitals) == expected


def test_the_matrix_has_the_rows_of_the_specification() -> None:
    names = [row.name for row in MATRIX]
    for row in ("throttled", "slow", "deeper_than_estimated", "failures_in_row", "refused", "polluted", "fatal"):
        assert row in names


def test_a_pulse_forgets_what_is_older_than_five_minutes() -> None:
    pulse = HealthWindow()
    for second in range(10):
        pulse.request(T0 + second * SECOND, throttled=second % 2 == 0)
    pulse.batch(T0 + 9 * SECOND, 2 * SECOND)
    vitals = pulse.vitals(T0 + 10 * SECOND)
    assert (vitals.requests, vitals.throttled, vitals.batches, vitals.latency) == (10, 5, 1, 2 * SECOND)
    assert pulse.vitals(T0 + HEALTH_WINDOW + 5 * MINUTE) == HealthCounts()


def test_failures_in_a_row_end_with_a_success() -> None:
    pulse = HealthWindow()
    pulse.request(T0, failed=True)
    pulse.request(T0, failed=True)
    assert pulse.vitals(T0).failures_in_row == 2
    pulse.request(T0)
    assert pulse.vitals(T0).failures_in_row == 0


def test_three_failures_open_the_circuit_for_one_to_two_minutes() -> None:
    circuit = Circuit()
    for _ in range(3):
        circuit = settle(circuit, failed=True, now=T0, jitter=0.5)
    assert (circuit.state, circuit.until) == (CircuitState.OPEN, T0 + 90 * SECOND)
    assert admit(circuit, T0 + 89 * SECOND) == (False, circuit)


def test_after_the_pause_one_request_tries_and_decides() -> None:
    circuit = Circuit(state=CircuitState.OPEN, failures=3, until=T0)
    allowed, trying = admit(circuit, T0)
    assert allowed
    assert trying.state is CircuitState.HALF_OPEN
    assert admit(trying, T0 + 1)[0] is False
    assert settle(trying, failed=False, now=T0, jitter=0) == Circuit()
    again = settle(trying, failed=True, now=T0, jitter=0)
    assert (again.state, again.until) == (CircuitState.OPEN, T0 + MINUTE)


def test_a_try_that_is_never_heard_of_again_does_not_block_for_ever() -> None:
    _, trying = admit(Circuit(state=CircuitState.OPEN, until=T0), T0)
    assert admit(trying, T0 + 2 * MINUTE)[0]


@given(script=st.lists(st.tuples(st.booleans(), st.integers(0, 3 * MINUTE)), max_size=60), jitter=st.floats(0, 0.99))
def test_an_open_circuit_sends_nothing_before_its_time_and_always_opens_again(script, jitter: float) -> None:
    now, circuit = T0, Circuit()
    opened = None
    for failed, pause in script:
        now += pause
        allowed, circuit = admit(circuit, now)
        if opened is not None and now < opened + Thresholds().circuit:
            assert not allowed
        if allowed:
            circuit = settle(circuit, failed=failed, now=now, jitter=jitter)
            opened = now if circuit.state is CircuitState.OPEN else None
        assert circuit.state in CIRCUIT.states
    assert admit(circuit, now + 10 * MINUTE)[0]


def test_a_crowd_halves_slowly_enough_to_see_whether_it_helps_and_grows_one_by_one() -> None:
    limiter = ConcurrencyLimiter(most=8, bound=8)
    now = 100 * MINUTE
    limiter = fewer(limiter, now)
    assert limiter.bound == 4
    assert fewer(limiter, now + 59 * SECOND) == limiter
    limiter = fewer(limiter, now + MINUTE)
    assert limiter.bound == 2
    for minutes in range(2, 9):
        limiter = fewer(limiter, now + minutes * MINUTE)
    assert limiter.bound == 1
    assert more(limiter, limiter.at + 5 * MINUTE - 1) == limiter
    bounds = []
    for _ in range(10):
        limiter = more(limiter, limiter.at + 5 * MINUTE)
        bounds.append(limiter.bound)
    assert bounds == [2, 3, 4, 5, 6, 7, 8, 8, 8, 8]


def test_a_database_that_is_slow_on_average_lowers_the_concurrency():
    health = HealthWindow()
    for _ in range(19):
        health.batch(0, 1, 300_000)
    assert heal(health.vitals(0)) == []
    health.batch(0, 1, 300_000)
    assert [(one.row, one.act) for one in heal(health.vitals(0))] == [("database_slow", RunReason.CONCURRENCY_DOWN)]
    assert heal(health.vitals(0), Thresholds(database=300_000)) == []
