"""The rate gate's promises hold for every order of requests, answers and pauses (ch. 4.10)."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from patra.ingest.ratelimit.token_bucket import (
    PERMIT_UNITS,
    Allow,
    Ask,
    Policy,
    Sign,
    Signal,
    Wait,
    decide,
    feedback,
    fresh,
    give_back,
)
from patra.kernel.clock import DAY, HOUR, MINUTE, SECOND
from tests.support.examples import examples

START = 1_700_000_000 * SECOND

policies = st.builds(
    Policy,
    rate=st.one_of(st.sampled_from([1000, 3000]), st.integers(100, 50_000)),
    burst=st.integers(2, 8),
    warmup=st.sampled_from([0, 0, 10 * SECOND]),
    quantum=st.integers(1, 10),
    demote=st.sampled_from([1100, 2000, 4000]),
    floor=st.integers(1, 100),
    step=st.integers(1, 1000),
    calm=st.sampled_from([SECOND, 30 * SECOND]),
    concurrency=st.sampled_from([0, 0, 0, 1, 3]),
)
signals = st.builds(
    Signal,
    sign=st.sampled_from([Sign.OK, Sign.OK, Sign.HTTP_429, Sign.TRANSIENT_5XX, Sign.DOWNSHIFT]),
    retry_after=st.sampled_from([-1, -1, 0, 1, SECOND // 2, 30 * SECOND]),
    remaining=st.sampled_from([-1, -1, 0, 1, 5]),
    reset=st.sampled_from([-1, START + 5 * SECOND, START + HOUR]),
    limit=st.sampled_from([-1, -1, 500, 20_000]),
    jitter=st.integers(0, 999),
)
asks = st.builds(
    Ask,
    task=st.sampled_from(["a", "b", "c"]),
    permit=st.just(""),
    cost=st.integers(1, 2),
    want=st.integers(1, 6),
    deadline=st.sampled_from([0, SECOND, MINUTE]),
    jitter=st.integers(0, 999),
)
pauses = st.sampled_from([0, 0, 1, 999, 10_000, SECOND // 10, SECOND, 20 * SECOND])
eager = st.builds(Ask, task=st.sampled_from(["a", "b"]), permit=st.just(""), want=st.just(4))
throttled = st.builds(Signal, sign=st.just(Sign.HTTP_429), retry_after=st.sampled_from([1, SECOND]))
steps = st.one_of(
    st.lists(st.tuples(pauses, st.one_of(asks, asks, asks, signals)), max_size=60),
    st.lists(st.tuples(st.sampled_from([0, SECOND]), st.one_of(eager, eager, throttled)), min_size=2, max_size=6),
)


def most(policy: Policy, span: int) -> int:
    """burst + rate * t in billionths of a permit."""
    return policy.burst * PERMIT_UNITS + policy.rate * span


@settings(max_examples=examples(200))
@given(policy=policies, script=steps, late=st.booleans(), back=st.booleans())
def test_no_interval_sees_more_than_burst_plus_rate_times_its_length(
    policy: Policy, script: list[tuple[int, Ask | Signal]], late: bool, back: bool
) -> None:
    now, state = START, fresh(policy, START)
    uses: list[tuple[int, int]] = []
    lots: list[tuple[str, int, int]] = []
    for number, (pause, step) in enumerate(script):
        now += pause
        if isinstance(step, Signal):
            state = feedback(policy, state, step, now)
            continue
        decision, state = decide(policy, state, replace_permit(step, f"p{number}"), now)
        if isinstance(decision, Allow):
            # a lot may be used at its last instant, all at once: the worst that a process can do
            at = decision.until if late and not back and decision.permits > 1 else now
            used = decision.permits // 2 if back and decision.permits > 1 else decision.permits
            uses.append((at, used * step.cost))
            if used < decision.permits:
                lots.append((f"p{number}", (decision.permits - used) * step.cost, decision.until))
        for permit, unused, until in lots:
            if until > now:
                state = give_back(policy, state, permit, unused, now)
        lots = []
    uses.sort()
    for i, (first, _) in enumerate(uses):
        total = 0
        for last, permits in uses[i:]:
            total += permits
            assert total * PERMIT_UNITS <= most(policy, last - first)


def replace_permit(ask: Ask, permit: str) -> Ask:
    return Ask(task=ask.task, permit=permit, cost=ask.cost, want=ask.want, deadline=ask.deadline, jitter=ask.jitter)


@given(policy=policies, script=st.lists(st.tuples(pauses, signals), max_size=60))
def test_the_rate_stays_between_its_floor_and_what_is_declared(
    policy: Policy, script: list[tuple[int, Signal]]
) -> None:
    now, state = START, fresh(policy, START)
    lowest = policy.rate
    for pause, signal in script:
        now += pause
        before = state
        state = feedback(policy, state, signal, now)
        if signal.limit > 0:
            lowest = min(lowest, signal.limit)
        assert min(policy.floor, lowest) <= state.rate <= policy.rate
        assert state.cooldown >= before.cooldown


@given(policy=policies, tasks=st.integers(2, 8), jitters=st.randoms(use_true_random=False))
def test_nobody_starves_and_nobody_takes_two_turns_while_another_waits(policy: Policy, tasks: int, jitters) -> None:
    """All tasks want permits all the time: each is served at least once in every `tasks` grants, once all wait."""
    state = fresh(policy, START)
    wake = {f"t{i}": START for i in range(tasks)}
    grants: list[str] = []
    flying: list[tuple[int, str]] = []
    for turn in range(tasks * 12):
        task = min(wake, key=lambda name: (wake[name], name))
        now = wake[task]
        for at, permit in list(flying):
            if at <= now:
                flying.remove((at, permit))
                state = feedback(policy, state, Signal(sign=Sign.OK, permit=permit), now)
        ask = Ask(task=task, permit=f"p{turn}", deadline=HOUR, jitter=jitters.randrange(1000))
        decision, state = decide(policy, state, ask, now)
        match decision:
            case Allow():
                grants.append(task)
                flying.append((now + 1000, f"p{turn}"))
                wake[task] = now + 1
            case Wait(until=until):
                wake[task] = until
            case _:
                raise AssertionError(decision)
    for i in range(policy.burst * 2, len(grants) - 2 * tasks):
        window = grants[i : i + 2 * tasks]
        assert set(window) == set(wake)
    after_burst = grants[policy.burst + tasks :]
    assert all(a != b for a, b in pairwise(after_burst))


@given(script=steps, quota=st.integers(1, 20), policy=policies)
def test_no_hour_and_no_day_sees_more_than_its_quota(
    script: list[tuple[int, Ask | Signal]], quota: int, policy: Policy
) -> None:
    bounded = Policy(rate=policy.rate, burst=policy.burst, quota_hour=quota, quota_day=quota * 3)
    now, state = START, fresh(bounded, START)
    used: dict[int, int] = {}
    days: dict[int, int] = {}
    for number, (pause, step) in enumerate(script):
        now += pause * 30
        if isinstance(step, Ask):
            decision, state = decide(bounded, state, replace_permit(step, f"p{number}"), now)
            if isinstance(decision, Allow):
                used[now // HOUR] = used.get(now // HOUR, 0) + decision.permits * step.cost
                days[now // DAY] = days.get(now // DAY, 0) + decision.permits * step.cost
    assert all(count <= quota for count in used.values())
    assert all(count <= quota * 3 for count in days.values())
