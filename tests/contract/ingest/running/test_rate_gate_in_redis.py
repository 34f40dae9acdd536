"""The script in Redis decides as the pure machine does, and its absence is survived politely (ch. 4.10.8)."""

import threading

import msgspec
import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patra.ingest.ratelimit.limiter import LocalGate, Permit, Refusal, obtain
from patra.ingest.ratelimit.redis import FALLBACKS, RedisGate
from patra.ingest.ratelimit.token_bucket import (
    PERMIT_UNITS,
    Allow,
    Ask,
    Decision,
    Flight,
    Lot,
    Policy,
    Reject,
    Sign,
    Signal,
    State,
    Wait,
    Waiter,
    Why,
    advance,
    decide,
    feedback,
    give_back,
)
from patra.kernel.clock import DAY, HOUR, SECOND, Clock, SystemClock
from patra.kernel.testing import ManualClock
from tests.services import free_port
from tests.support.examples import examples

policies = st.builds(
    Policy,
    rate=st.integers(1, 1_000_000),
    burst=st.integers(1, 1000),
    warmup=st.sampled_from([0, 0, 10 * SECOND]),
    quantum=st.integers(1, 10),
    demote=st.integers(1100, 10_000),
    floor=st.integers(1, 1000),
    step=st.integers(1, 1000),
    calm=st.integers(1, 60 * SECOND),
    quota_hour=st.sampled_from([0, 0, 5, 1000]),
    quota_day=st.sampled_from([0, 0, 7, 100_000]),
    concurrency=st.sampled_from([0, 0, 1, 3]),
)
spans = st.one_of(st.integers(-SECOND, SECOND), st.integers(-DAY, DAY), st.sampled_from([0, 1, -1]))
names = st.sampled_from(["a", "b", "c", "d"])
asks = st.builds(
    Ask,
    task=names,
    permit=st.just("new"),
    cost=st.integers(1, 3),
    want=st.integers(1, 12),
    deadline=st.one_of(st.just(0), st.integers(0, HOUR)),
    share=st.sampled_from([1000, 800, 600]),
    jitter=st.integers(0, 999),
    returns=st.sampled_from(["", "lot"]),
    unused=st.integers(0, 5),
)


@st.composite
def states(draw) -> State:
    """A state whose instants are relative to now; `shifted` makes them absolute."""
    back = draw(st.one_of(st.integers(0, 10 * SECOND), st.integers(0, DAY)))
    return State(
        at=draw(st.integers(-back, SECOND)),
        started=-back - draw(st.sampled_from([0, 1000, SECOND, DAY])),
        tokens=draw(st.one_of(st.integers(-PERMIT_UNITS, 3 * PERMIT_UNITS), st.integers(0, 1000 * PERMIT_UNITS))),
        rate=draw(st.integers(1, 1_000_000)),
        ceiling=draw(st.sampled_from([0, 0, 500, 20_000])),
        demoted=draw(spans),
        calm_from=draw(spans),
        cooldown=draw(spans),
        left=draw(st.sampled_from([-1, -1, 0, 1, 50])),
        reset=draw(spans),
        hour_used=draw(st.integers(0, 10)),
        day_used=draw(st.integers(0, 10)),
        concurrency=draw(st.sampled_from([0, 0, 1, 2])),
        queue=tuple(
            draw(st.lists(st.builds(Waiter, names, st.integers(1, 3), spans), max_size=3, unique_by=lambda w: w.task))
        ),
        lots=tuple(draw(st.lists(st.builds(Lot, st.just("lot"), st.integers(1, 5), spans), max_size=1))),
        flights=tuple(draw(st.lists(st.builds(Flight, st.sampled_from(["f", "g"]), spans), max_size=2))),
    )


def shifted(s: State, now: int, earlier_hour: bool) -> State:
    return msgspec.structs.replace(
        s,
        at=now + s.at,
        started=now + s.started,
        demoted=now + s.demoted,
        calm_from=max(now + s.calm_from, 0),
        cooldown=now + s.cooldown,
        reset=now + s.reset,
        hour=now // HOUR - earlier_hour,
        day=now // DAY - earlier_hour,
        queue=tuple(Waiter(w.task, w.cost, now + w.until) for w in s.queue),
        lots=tuple(Lot(lot.permit, lot.permits, now + lot.until) for lot in s.lots),
        flights=tuple(Flight(f.permit, now + f.until) for f in s.flights),
    )


class Bare:
    """The script alone, without lots and fallback."""

    def __init__(self, url: str, client: redis.Redis) -> None:
        self.gate = shared_gate(url, SystemClock())
        self.client = client

    def run(self, verb: str, policy: Policy, request: Ask | Signal, state: State, earlier: bool):
        seconds, micros = self.client.time()
        before = shifted(state, seconds * SECOND + micros, earlier)
        self.client.set("patra:rate:k", msgspec.msgpack.encode(before))
        answer = self.gate._call(verb, "k", policy, request)
        assert answer is not None
        return before, answer


@pytest.fixture(scope="module")
def bare(redis_url: str):
    with redis.Redis.from_url(redis_url) as client:
        found = Bare(redis_url, client)
        yield found
        found.gate.close()


differential = settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])


@differential
@given(policy=policies, state=states(), ask=asks, earlier=st.booleans())
def test_the_script_grants_waits_and_rejects_as_the_machine(
    bare: Bare, policy: Policy, state: State, ask: Ask, earlier: bool
) -> None:
    before, answer = bare.run("ask", policy, ask, state, earlier)
    expected: tuple[Decision, State] = decide(policy, before, ask, answer.now)
    assert (answer.decision, answer.state) == expected


@differential
@given(
    policy=policies,
    state=states(),
    earlier=st.booleans(),
    offset=spans,
    reset=spans,
    signal=st.builds(
        Signal,
        sign=st.sampled_from(Sign),
        permit=st.sampled_from(["", "f"]),
        retry_after=st.sampled_from([-1, 0, 1, SECOND, DAY]),
        remaining=st.sampled_from([-1, 0, 1, 50]),
        limit=st.sampled_from([-1, 1, 5000]),
        concurrency=st.sampled_from([-1, 2]),
        cost=st.integers(0, 3),
        jitter=st.integers(0, 999),
    ),
)
def test_the_script_learns_from_answers_as_the_machine(
    bare: Bare, policy, state, earlier, offset, reset, signal
) -> None:
    seconds, micros = bare.client.time()
    now = seconds * SECOND + micros
    given_signal = msgspec.structs.replace(signal, allowed_at=now + offset, reset=now + reset)
    before, answer = bare.run("signal", policy, given_signal, state, earlier)
    assert answer.state == feedback(policy, before, given_signal, answer.now)


@differential
@given(policy=policies, state=states(), unused=st.integers(0, 5))
def test_the_script_takes_lots_back_as_the_machine(bare: Bare, policy: Policy, state: State, unused: int) -> None:
    before, answer = bare.run("back", policy, Ask(task="", permit="", returns="lot", unused=unused), state, False)
    assert answer.state == give_back(policy, before, "lot", unused, answer.now)
    before, answer = bare.run("look", policy, Ask(task="", permit=""), state, False)
    assert answer.state == advance(policy, before, answer.now)


def shared_gate(url: str, clock: Clock) -> RedisGate:
    """A gate that waits for its Redis as long as a busy machine needs: else it would fall back to its own."""
    return RedisGate(url, clock, timeout=60)


def test_two_processes_share_one_bucket(redis_url: str) -> None:
    policy = Policy(rate=1, burst=6, quantum=4)
    one, two = shared_gate(redis_url, SystemClock()), shared_gate(redis_url, SystemClock())
    key = f"shared-{free_port()}"
    granted = 0
    for turn in range(10):
        for name, gate in (("one", one), ("two", two)):
            answer = gate.ask(key, policy, Ask(task=name, permit=f"{name}{turn}"))
            granted += isinstance(answer.decision, Allow)
    assert granted == 6


def test_prefetched_permits_that_were_not_used_come_back(redis_url: str) -> None:
    policy = Policy(rate=8000, burst=8, quantum=8, lease=3600 * SECOND)
    key = f"prefetch-{free_port()}"
    gate = shared_gate(redis_url, ManualClock())
    assert isinstance(gate.ask(key, policy, Ask(task="t", permit="p1")).decision, Allow)
    assert gate.look(key, policy).lots == (Lot("p1", 4, gate.look(key, policy).lots[0].until),)
    gate.close()
    other = shared_gate(redis_url, ManualClock())
    assert other.look(key, policy).lots == ()
    assert other.look(key, policy).tokens >= 7 * PERMIT_UNITS


def test_a_throttled_answer_voids_what_was_prefetched(redis_url: str) -> None:
    policy = Policy(rate=8000, burst=8, quantum=8, lease=3600 * SECOND)
    key = f"void-{free_port()}"
    gate = shared_gate(redis_url, SystemClock())
    assert isinstance(gate.ask(key, policy, Ask(task="t", permit="p1")).decision, Allow)
    gate.tell(key, policy, Signal(sign=Sign.HTTP_429, allowed_at=SystemClock().now(), retry_after=60 * SECOND))
    decision = gate.ask(key, policy, Ask(task="t", permit="p2", deadline=SECOND)).decision
    assert isinstance(decision, Reject)
    assert decision.why == "COOLDOWN"


def test_without_redis_each_process_keeps_to_a_permit_a_second_and_one_at_a_time() -> None:
    clock = ManualClock()
    gate = RedisGate(f"redis://127.0.0.1:{free_port()}/0", clock, timeout=0.2)
    policy = Policy(rate=50_000, burst=20)
    first = gate.ask("k", policy, Ask(task="t", permit="p1"))
    assert isinstance(first.decision, Allow)
    assert gate.away
    clock.advance(10 * SECOND)
    second = gate.ask("k", policy, Ask(task="u", permit="p2", deadline=60 * SECOND))
    assert isinstance(second.decision, Wait)
    assert second.decision.why == "CONCURRENCY"
    gate.tell("k", policy, Signal(sign=Sign.OK, permit="p1"))
    assert isinstance(gate.ask("k", policy, Ask(task="u", permit="p2")).decision, Allow)
    gate.tell("k", policy, Signal(sign=Sign.OK, permit="p2"))
    assert isinstance(gate.ask("k", policy, Ask(task="u", permit="p3")).decision, Reject)


def test_the_fallback_goes_no_faster_than_the_slowest_tenth_of_what_was_seen(redis_url: str) -> None:
    key = f"p10-{free_port()}"
    gate = shared_gate(redis_url, SystemClock())
    slow = Policy(rate=200, burst=1)
    gate.ask(key, slow, Ask(task="t", permit="p"))
    assert gate._careful(key, Policy(rate=50_000, burst=20)).rate == 200
    assert gate._careful("other", Policy(rate=50_000, burst=20)).rate == 1000


def test_when_redis_comes_back_it_is_used_again(redis_url: str) -> None:
    clock = ManualClock()
    gate = shared_gate(redis_url, clock)
    gate._note_loss(OSError("gone"))
    assert gate.away
    policy = Policy(rate=1000, burst=1)
    key = f"back-{free_port()}"
    gate.ask(key, policy, Ask(task="t", permit="p"))
    assert gate.away
    clock.advance(5 * SECOND)
    gate.ask(key, policy, Ask(task="t", permit="p"))
    assert not gate.away


def test_a_cool_down_outlives_the_loss_of_redis(redis_url: str) -> None:
    clock = SystemClock()
    gate = shared_gate(redis_url, clock)
    policy = Policy(rate=50_000, burst=20)
    key = f"rest-{free_port()}"
    gate.ask(key, policy, Ask(task="t", permit="p1"))
    gate.tell(key, policy, Signal(sign=Sign.HTTP_429, permit="p1", allowed_at=clock.now(), retry_after=600 * SECOND))
    gate._note_loss(OSError("gone"))
    answer = gate.ask(key, policy, Ask(task="t", permit="p2", deadline=SECOND))
    assert isinstance(answer.decision, Reject)
    assert answer.decision.why == "COOLDOWN"


def test_a_quota_outlives_the_loss_of_redis(redis_url: str) -> None:
    gate = shared_gate(redis_url, SystemClock())
    policy = Policy(rate=50_000, burst=20, quota_day=3)
    key = f"spent-{free_port()}"
    for turn in range(3):
        assert isinstance(gate.ask(key, policy, Ask(task="t", permit=f"p{turn}", want=2)).decision, Allow)
    gate._lots.drop_all()
    before = FALLBACKS._value.get()
    gate._note_loss(OSError("gone"))
    assert FALLBACKS._value.get() == before + 1
    assert gate.ask(key, policy, Ask(task="t", permit="p9", deadline=SECOND)).decision == Reject(
        why=Why.QUOTA_HARD, until=(SystemClock().now() // DAY + 1) * DAY
    )


def test_redis_hears_of_a_cool_down_that_was_asked_for_in_its_absence(redis_url: str) -> None:
    clock = ManualClock()
    gate = shared_gate(redis_url, clock)
    policy = Policy(rate=50_000, burst=20)
    key = f"heard-{free_port()}"
    gate._note_loss(OSError("gone"))
    assert isinstance(gate.ask(key, policy, Ask(task="t", permit="p")).decision, Allow)
    gate.tell(key, policy, Signal(sign=Sign.HTTP_429, permit="p", allowed_at=clock.now(), retry_after=600 * SECOND))
    clock.advance(5 * SECOND)
    answer = gate.ask(key, policy, Ask(task="t", permit="q", deadline=SECOND))
    assert not gate.away
    assert isinstance(answer.decision, Reject)
    assert answer.decision.why == "COOLDOWN"
    other = shared_gate(redis_url, SystemClock())
    assert isinstance(other.ask(key, policy, Ask(task="u", permit="r", deadline=SECOND)).decision, Reject)


def test_who_may_use_less_of_a_quota_does_not_live_on_anothers_lot(redis_url: str) -> None:
    policy = Policy(rate=8000, burst=8, quantum=8, lease=3600 * SECOND, quota_day=10)
    key = f"share-{free_port()}"
    gate = shared_gate(redis_url, SystemClock())
    for turn in range(6):
        assert isinstance(gate.ask(key, policy, Ask(task="harvest", permit=f"h{turn}")).decision, Allow)
    assert gate._lots._lots[key].left > 0
    refused = gate.ask(key, policy, Ask(task="backfill", permit="b", share=600)).decision
    assert isinstance(refused, Reject)
    assert refused.why == "QUOTA_SOFT"
    assert isinstance(gate.ask(key, policy, Ask(task="harvest", permit="h9")).decision, Allow)


def test_a_permit_of_a_lot_is_dated_by_the_servers_clock(redis_url: str) -> None:
    policy = Policy(rate=8000, burst=8, quantum=8, lease=3600 * SECOND)
    gate = shared_gate(redis_url, ManualClock())
    key = f"dated-{free_port()}"
    first = gate.ask(key, policy, Ask(task="t", permit="p1"))
    second = gate.ask(key, policy, Ask(task="t", permit="p2"))
    assert second.now == first.now


def test_threads_of_one_process_never_pass_the_local_gate_together() -> None:
    clock = ManualClock()
    gate = LocalGate(clock)
    policy = Policy(rate=1, burst=5)
    granted: list[Permit | Refusal] = []

    def work(name: str) -> None:
        granted.extend(
            obtain(gate, clock, lambda _: False, key="k", policy=policy, task=f"{name}{i}", deadline=0)
            for i in range(4)
        )

    threads = [threading.Thread(target=work, args=(str(n),)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(isinstance(answer, Permit) for answer in granted) == 5
