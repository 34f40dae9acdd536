"""Each rule of ch. 4.10 by itself."""

from patra.ingest.ratelimit.limiter import LocalGate, Permit, Refusal, estimate, obtain, unsent
from patra.ingest.ratelimit.token_bucket import (
    PERMIT_UNITS,
    POLL_INTERVAL,
    Allow,
    Ask,
    Policy,
    Reject,
    Sign,
    Signal,
    State,
    Wait,
    Why,
    advance,
    decide,
    feedback,
    fresh,
    warm_rate,
)
from patra.kernel.clock import HOUR, MINUTE, SECOND
from patra.kernel.testing import ManualClock

T0 = 1_700_000_000 * SECOND
TWO = Policy(rate=2000, burst=2)


def drained(policy: Policy, now: int = T0) -> State:
    state = fresh(policy, now)
    for turn in range(policy.burst):
        decision, state = decide(policy, state, Ask(task="drain", permit=str(turn)), now)
        assert isinstance(decision, Allow)
    return state


def test_a_bucket_starts_full_and_then_gives_what_the_rate_gives() -> None:
    state = drained(TWO)
    decision, state = decide(TWO, state, Ask(task="t", permit="p", deadline=SECOND), T0)
    assert decision == Wait(until=T0 + 525_000, why=Why.TOKENS)
    decision, state = decide(TWO, state, Ask(task="t", permit="p", deadline=SECOND), T0 + 525_000)
    assert isinstance(decision, Allow)


def test_a_wait_past_the_deadline_is_a_rejection_that_says_when_to_come_back() -> None:
    decision, _ = decide(TWO, drained(TWO), Ask(task="t", permit="p", deadline=499_999), T0)
    assert decision == Reject(why=Why.OVER_DEADLINE, until=T0 + 500_000)


def test_waits_are_stretched_by_five_to_fifteen_percent() -> None:
    for jitter, until in ((0, 525_000), (500, 550_000), (999, 574_500)):
        decision, _ = decide(TWO, drained(TWO), Ask(task="t", permit="p", deadline=SECOND, jitter=jitter), T0)
        assert decision == Wait(until=T0 + until, why=Why.TOKENS)


def test_a_dearer_request_takes_more_permits() -> None:
    decision, state = decide(TWO, fresh(TWO, T0), Ask(task="t", permit="p", cost=2), T0)
    assert isinstance(decision, Allow)
    assert state.tokens == 0


def test_a_warm_up_starts_with_one_permit_and_a_tenth_of_the_rate() -> None:
    policy = Policy(rate=10_000, burst=5, warmup=10 * SECOND)
    state = fresh(policy, T0)
    assert state.tokens == PERMIT_UNITS
    assert [warm_rate(policy, state, T0 + s * SECOND) for s in (0, 1, 5, 10, 60)] == [1000, 1000, 5000, 10_000, 10_000]


def test_who_asked_first_is_served_first_and_the_one_served_goes_to_the_back() -> None:
    state = drained(TWO)
    for task in ("a", "b"):
        _, state = decide(TWO, state, Ask(task=task, permit=task, deadline=MINUTE), T0)
    decision, state = decide(TWO, state, Ask(task="c", permit="c", deadline=MINUTE), T0 + 600_000)
    assert isinstance(decision, Wait)
    decision, state = decide(TWO, state, Ask(task="a", permit="a", deadline=MINUTE), T0 + 600_000)
    assert isinstance(decision, Allow)
    decision, state = decide(TWO, state, Ask(task="a", permit="a2", deadline=MINUTE), T0 + 1_200_000)
    assert isinstance(decision, Wait)
    assert [waiter.task for waiter in state.queue] == ["b", "c", "a"]


def test_a_waiter_that_died_does_not_block_the_queue_for_ever() -> None:
    state = drained(TWO)
    decision, state = decide(TWO, state, Ask(task="dead", permit="d", deadline=MINUTE), T0)
    assert isinstance(decision, Wait)
    late = decision.until + SECOND + 1
    assert isinstance(decide(TWO, state, Ask(task="t", permit="p"), late)[0], Allow)


def test_a_lot_is_no_larger_than_the_quantum() -> None:
    policy = Policy(rate=1000, burst=50, quantum=4)
    decision, _ = decide(policy, fresh(policy, T0), Ask(task="t", permit="p", want=30), T0)
    assert isinstance(decision, Allow)
    assert decision.permits == 4


def test_a_429_halves_the_rate_once_for_all_that_were_in_flight() -> None:
    state = fresh(TWO, T0)
    state = feedback(TWO, state, Signal(sign=Sign.HTTP_429, allowed_at=T0), T0 + SECOND)
    assert state.rate == 1000
    state = feedback(TWO, state, Signal(sign=Sign.HTTP_429, allowed_at=T0 + 1), T0 + SECOND + 5)
    assert state.rate == 1000
    state = feedback(TWO, state, Signal(sign=Sign.HTTP_429, allowed_at=T0 + 2 * SECOND), T0 + 3 * SECOND)
    assert state.rate == 500


def test_a_transient_5xx_lowers_the_rate_too() -> None:
    assert feedback(TWO, fresh(TWO, T0), Signal(sign=Sign.TRANSIENT_5XX, allowed_at=T0), T0).rate == 1000


def test_the_rate_comes_back_by_a_step_each_calm_period() -> None:
    policy = Policy(rate=2000, burst=2, step=300, calm=30 * SECOND)
    state = feedback(policy, fresh(policy, T0), Signal(sign=Sign.HTTP_429, allowed_at=T0), T0)
    rates = [advance(policy, state, T0 + s * SECOND).rate for s in (0, 29, 30, 60, 90, 120, 600)]
    assert rates == [1000, 1000, 1300, 1600, 1900, 2000, 2000]


def test_retry_after_stops_everyone_until_it_is_over() -> None:
    state = feedback(TWO, fresh(TWO, T0), Signal(sign=Sign.HTTP_429, allowed_at=T0, retry_after=10 * SECOND), T0)
    decision, state = decide(TWO, state, Ask(task="t", permit="p", deadline=5 * SECOND), T0 + 1)
    assert decision == Reject(why=Why.COOLDOWN, until=T0 + 10_500_000)
    decision, state = decide(TWO, state, Ask(task="t", permit="p", deadline=MINUTE), T0 + 1)
    assert isinstance(decision, Wait)
    after = T0 + 10_500_000
    decision, state = decide(TWO, state, Ask(task="t", permit="p"), after)
    assert isinstance(decision, Allow)
    assert isinstance(decide(TWO, state, Ask(task="u", permit="q"), after)[0], Reject)  # one, not a burst


def test_retry_after_zero_is_no_cool_down_but_the_burst_is_gone() -> None:
    state = feedback(TWO, fresh(TWO, T0), Signal(sign=Sign.HTTP_429, allowed_at=T0, retry_after=0), T0)
    assert state.cooldown == 0
    decision, _ = decide(TWO, state, Ask(task="t", permit="p"), T0)
    assert decision == Reject(why=Why.OVER_DEADLINE, until=T0 + SECOND)


def test_what_the_provider_says_is_left_goes_before_our_count() -> None:
    policy = Policy(rate=100_000, burst=50)
    told = Signal(sign=Sign.OK, remaining=1, reset=T0 + MINUTE)
    state = feedback(policy, fresh(policy, T0), told, T0)
    decision, state = decide(policy, state, Ask(task="t", permit="p"), T0)
    assert isinstance(decision, Allow)
    decision, state = decide(policy, state, Ask(task="t", permit="p"), T0 + SECOND)
    assert decision == Reject(why=Why.PROVIDER_WINDOW, until=T0 + MINUTE)
    assert isinstance(decide(policy, state, Ask(task="t", permit="p"), T0 + MINUTE)[0], Allow)


def test_an_answer_that_was_overtaken_does_not_raise_what_is_left() -> None:
    policy = Policy(rate=100_000, burst=50)
    state = feedback(policy, fresh(policy, T0), Signal(sign=Sign.OK, remaining=3, reset=T0 + MINUTE), T0)
    state = feedback(policy, state, Signal(sign=Sign.OK, remaining=9, reset=T0 + MINUTE + 700_000), T0 + 1)
    assert state.left == 3


def test_remaining_without_a_reset_only_empties_the_bucket() -> None:
    policy = Policy(rate=10_000, burst=10)
    state = feedback(policy, fresh(policy, T0), Signal(sign=Sign.OK, remaining=0), T0)
    assert (state.left, state.tokens) == (-1, 0)


def test_a_limit_that_the_provider_names_caps_the_rate() -> None:
    policy = Policy(rate=10_000, burst=1)
    state = feedback(policy, fresh(policy, T0), Signal(sign=Sign.OK, limit=5000), T0)
    assert advance(policy, state, T0 + HOUR).rate == 5000
    state = feedback(policy, state, Signal(sign=Sign.OK, limit=50_000), T0)
    assert advance(policy, state, T0 + HOUR).rate == 10_000


def test_no_more_requests_are_in_flight_than_the_provider_allows() -> None:
    policy = Policy(rate=100_000, burst=10, concurrency=3)
    state = feedback(policy, fresh(policy, T0), Signal(sign=Sign.OK, concurrency=1), T0)
    _, state = decide(policy, state, Ask(task="a", permit="a"), T0)
    decision, state = decide(policy, state, Ask(task="b", permit="b", deadline=MINUTE), T0)
    assert decision == Wait(until=T0 + POLL_INTERVAL + POLL_INTERVAL // 20, why=Why.CONCURRENCY)
    state = feedback(policy, state, Signal(sign=Sign.OK, permit="a"), T0)
    assert isinstance(decide(policy, state, Ask(task="b", permit="b"), T0)[0], Allow)


def test_a_quota_keeps_its_last_part_for_the_operations_that_go_first() -> None:
    policy = Policy(rate=100_000, burst=100, quota_hour=10)
    state = fresh(policy, T0)
    for turn in range(6):
        decision, state = decide(policy, state, Ask(task="b", permit=str(turn), share=600), T0)
        assert isinstance(decision, Allow)
    end = (T0 // HOUR + 1) * HOUR
    decision, state = decide(policy, state, Ask(task="b", permit="x", share=600), T0)
    assert decision == Reject(why=Why.QUOTA_SOFT, until=end)
    for turn in range(4):
        decision, state = decide(policy, state, Ask(task="h", permit=f"h{turn}", share=1000), T0)
        assert isinstance(decision, Allow)
    decision, state = decide(policy, state, Ask(task="h", permit="y", share=1000), T0)
    assert decision == Reject(why=Why.QUOTA_HARD, until=end)
    assert isinstance(decide(policy, state, Ask(task="b", permit="z", share=600), end)[0], Allow)


def test_a_permit_that_was_not_used_is_given_back() -> None:
    clock = ManualClock()
    gate = LocalGate(clock)
    policy = Policy(rate=1, burst=1, quota_day=1)
    permit = obtain(gate, clock, lambda _: True, key="k", policy=policy, task="t")
    assert isinstance(permit, Permit)
    gate.tell("k", policy, unsent(permit))
    assert isinstance(obtain(gate, clock, lambda _: True, key="k", policy=policy, task="t", deadline=0), Permit)


def test_a_healing_downshift_stops_at_thirty_percent() -> None:
    state = fresh(TWO, T0)
    for _ in range(5):
        state = feedback(TWO, state, Signal(sign=Sign.DOWNSHIFT), T0)
    assert state.rate == 600


def test_obtaining_waits_as_told_and_says_how_long() -> None:
    clock = ManualClock(T0)
    gate = LocalGate(clock)

    def pause(span: int) -> bool:
        clock.advance(span)
        return True

    policy = Policy(rate=1000, burst=1)
    obtain(gate, clock, pause, key="k", policy=policy, task="t")
    permit = obtain(gate, clock, pause, key="k", policy=policy, task="t", jitter=lambda: 0)
    assert isinstance(permit, Permit)
    assert (permit.waited, permit.why) == (1_050_000, Why.TOKENS)
    assert permit.view["rate.waitMs"] == 1050
    assert permit.view["rate.decision"] == "WAIT"


def test_a_stopping_executor_stops_waiting() -> None:
    clock = ManualClock(T0)
    gate = LocalGate(clock)
    policy = Policy(rate=1, burst=1)
    obtain(gate, clock, lambda _: True, key="k", policy=policy, task="t")
    answer = obtain(gate, clock, lambda _: False, key="k", policy=policy, task="t", deadline=HOUR)
    assert isinstance(answer, Refusal)


def test_an_estimate_counts_tokens_rate_and_quota_within_the_horizon() -> None:
    policy = Policy(rate=2000, burst=10)
    assert estimate(policy, fresh(policy, T0), 30 * SECOND, T0).permits == 70
    capped = Policy(rate=2000, burst=10, quota_day=25)
    assert estimate(capped, fresh(capped, T0), 30 * SECOND, T0).permits == 25
    cold = feedback(policy, fresh(policy, T0), Signal(sign=Sign.OK, retry_after=MINUTE), T0)
    budget = estimate(policy, cold, 30 * SECOND, T0)
    assert (budget.permits, budget.blocked_until) == (1, T0 + 63 * SECOND)
