"""Additive increase, multiplicative decrease: the rate falls at once, rises by steps, and comes back (ch. 4.10.4)."""

from hypothesis import given
from hypothesis import strategies as st

from patra.ingest.ratelimit.token_bucket import Policy, Sign, Signal, State, advance, feedback, fresh
from patra.kernel.clock import SECOND
from tests.property.ingest.running.test_token_bucket import START, pauses, policies

TROUBLE = (Sign.HTTP_429, Sign.TRANSIENT_5XX)
troubles = st.builds(
    Signal,
    sign=st.sampled_from([Sign.OK, *TROUBLE, Sign.DOWNSHIFT]),
    retry_after=st.sampled_from([-1, 0, SECOND // 2, 30 * SECOND]),
)
scripts = st.lists(st.tuples(pauses, troubles), max_size=40)


def played(policy: Policy, script: list[tuple[int, Signal]]) -> tuple[State, int]:
    """The state after a script; each answer is of a request that was allowed when it is reported."""
    now, state = START, fresh(policy, START)
    for pause, signal in script:
        now += pause
        state = feedback(policy, state, told_of(signal, now), now)
    return state, now


def told_of(signal: Signal, allowed_at: int) -> Signal:
    return Signal(sign=signal.sign, retry_after=signal.retry_after, allowed_at=allowed_at)


@given(policy=policies, script=scripts, sign=st.sampled_from(TROUBLE), others=st.integers(0, 5))
def test_trouble_divides_the_rate_once_for_all_that_were_in_flight(
    policy: Policy, script: list[tuple[int, Signal]], sign: Sign, others: int
) -> None:
    state, now = played(policy, script)
    now += 1
    before = advance(policy, state, now).rate
    after = feedback(policy, state, Signal(sign=sign, allowed_at=now), now)
    assert after.rate == max(before * 1000 // policy.demote, min(policy.floor, before))
    for _ in range(others):  # they were allowed before the rate was cut: they say nothing new
        after = feedback(policy, after, Signal(sign=sign, allowed_at=now), now)
    assert after.rate == max(before * 1000 // policy.demote, min(policy.floor, before))


@given(policy=policies, script=scripts)
def test_the_rate_rises_by_no_more_than_a_step_for_each_calm_period(
    policy: Policy, script: list[tuple[int, Signal]]
) -> None:
    now, state = START, fresh(policy, START)
    for pause, signal in script:
        before = state.rate
        periods = pause // policy.calm + 1  # the one that had begun
        now += pause
        state = feedback(policy, state, told_of(signal, now), now)
        assert state.rate <= before + policy.step * periods


@given(policy=policies, script=scripts)
def test_left_in_peace_the_rate_comes_back_to_what_is_declared(
    policy: Policy, script: list[tuple[int, Signal]]
) -> None:
    state, now = played(policy, script)
    enough = (policy.rate // policy.step + 2) * policy.calm + 60 * SECOND
    assert advance(policy, state, now + enough).rate == policy.rate
