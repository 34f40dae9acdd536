"""Turns a rate key, its policy and a request into a permit or a refusal, on this machine (ch. 4.10.6).

`LocalGate` keeps the buckets of one process under a lock. `obtain` is what an executor calls before every request: it
waits as needed and gives up at the deadline. A `Permit` is what the transport asks for before it sends anything.
"""

import random
import threading
from collections.abc import Callable
from typing import Protocol

import msgspec
from msgspec.structs import replace

from patra.ingest.ratelimit.token_bucket import (
    PERMIT_UNITS,
    Allow,
    Ask,
    Decision,
    Policy,
    Reject,
    Sign,
    Signal,
    State,
    Wait,
    Why,
    advance,
    cool_down,
    decide,
    feedback,
    fresh,
    give_back,
    quota_left,
    warm_rate,
)
from patra.kernel.clock import DAY, HOUR, SECOND, Clock, format_instant
from patra.kernel.ids import new_id

MIN_SHARED_REST = 2 * SECOND
"""A longer rest than this is passed on to the next process."""


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """A decision, the state after it, and the instant by the gate's own clock."""

    decision: Decision
    state: State
    now: int


class Gate(Protocol):
    """Where permits come from. Keys are text: source, endpoint, credential as the scope says."""

    def ask(self, key: str, policy: Policy, ask: Ask) -> Answered: ...
    def tell(self, key: str, policy: Policy, signal: Signal) -> State: ...
    def look(self, key: str, policy: Policy) -> State: ...
    def close(self) -> None: ...


class Memory(Protocol):
    """What a gate's process leaves behind for the next."""

    def quota_use(self, key: str, now: int) -> tuple[int, int]:
        """What was used of a key's quotas in this hour and on this day."""
        ...

    def cooldown(self, key: str) -> int:
        """Until when a key must rest; 0 where nothing is known."""
        ...

    def cool(self, key: str, until: int, now: int) -> None:
        """A key must rest."""
        ...


class LocalGate:
    """The gate of one process. It begins with what its memory knows of earlier ones."""

    def __init__(self, clock: Clock, memory: Memory | None = None) -> None:
        self._clock = clock
        self._memory = memory
        self._lock = threading.Lock()
        self._states: dict[str, State] = {}

    def ask(self, key: str, policy: Policy, ask: Ask) -> Answered:
        with self._lock:
            now = self._clock.now()
            decision, state = decide(policy, self._state(key, policy, now), ask, now)
            self._states[key] = state
            return Answered(decision=decision, state=state, now=now)

    def tell(self, key: str, policy: Policy, signal: Signal) -> State:
        with self._lock:
            now = self._clock.now()
            before = self._state(key, policy, now)
            self._states[key] = state = feedback(policy, before, signal, now)
        if self._memory is not None and state.cooldown > max(before.cooldown, now) + MIN_SHARED_REST:
            self._memory.cool(key, state.cooldown, now)
        return state

    def look(self, key: str, policy: Policy) -> State:
        with self._lock:
            now = self._clock.now()
            self._states[key] = state = advance(policy, self._state(key, policy, now), now)
            return state

    def give_back(self, key: str, policy: Policy, permit: str, unused: int) -> None:
        with self._lock:
            now = self._clock.now()
            self._states[key] = give_back(policy, self._state(key, policy, now), permit, unused, now)

    def take_over(self, key: str, state: State) -> None:
        """Go on from what another gate knew of its provider: cool-down, windows, quotas; nobody waits here yet."""
        with self._lock:
            self._states[key] = replace(state, tokens=min(state.tokens, PERMIT_UNITS), queue=(), lots=(), flights=())

    def cooling(self) -> dict[str, int]:
        """Which keys must rest, and how long."""
        with self._lock:
            now = self._clock.now()
            return {key: s.cooldown - now for key, s in self._states.items() if s.cooldown > now}

    def close(self) -> None:
        pass

    def _state(self, key: str, policy: Policy, now: int) -> State:
        if (known := self._states.get(key)) is not None:
            return known
        state = fresh(policy, now)
        if self._memory is None:
            return state
        if (cooldown := self._memory.cooldown(key)) > now:
            state = cool_down(policy, state, cooldown)
        if policy.quota_hour or policy.quota_day:
            hour, day = self._memory.quota_use(key, now)
            state = replace(state, hour_used=hour, day_used=day)
        return state


class Permit(msgspec.Struct, frozen=True, kw_only=True):
    """The right to send one request, and how it was come by (4.10.7)."""

    key: str
    id: str
    cost: int
    at: int
    waited: int
    asked: int
    why: Why | None
    view: dict[str, str | int | float]


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """No permit within the deadline: the task goes back into the queue until `until`."""

    why: Why
    until: int
    waited: int
    view: dict[str, str | int | float]


class Pause(Protocol):
    """Sleeps for so many microseconds; false if it was woken because the executor stops."""

    def __call__(self, microseconds: int, /) -> bool: ...


def obtain(
    gate: Gate,
    clock: Clock,
    pause: Pause,
    *,
    key: str,
    policy: Policy,
    task: str,
    cost: int = 1,
    share: int = 1000,
    deadline: int = 30 * SECOND,
    jitter: Callable[[], int] = lambda: random.randrange(1000),
) -> Permit | Refusal:
    """One permit, waiting for it up to `deadline`; nothing is sent without one."""
    started = clock.now()
    permit = new_id()
    why: Why | None = None
    for asked in range(1, 1_000_000):
        waited = clock.now() - started
        ask = Ask(
            task=task,
            permit=permit,
            cost=cost,
            share=share,
            deadline=max(deadline - waited, 0),
            jitter=jitter(),
        )
        answer = gate.ask(key, policy, ask)
        match answer.decision:
            case Allow():
                view = rate_view(key, policy, answer, cost, waited, "WAIT" if asked > 1 else "ALLOW")
                return Permit(
                    key=key, id=permit, cost=cost, at=answer.now, waited=waited, asked=asked, why=why, view=view
                )
            case Reject(why=why, until=until):
                view = rate_view(key, policy, answer, cost, waited, f"REJECT({why})")
                return Refusal(why=why, until=clock.now() + until - answer.now, waited=waited, view=view)
            case Wait(why=why, until=until):
                if not pause(max(until - answer.now, 1)):
                    view = rate_view(key, policy, answer, cost, waited, "REJECT(STOPPED)")
                    return Refusal(why=why, until=clock.now(), waited=waited, view=view)
    raise AssertionError("a gate that never answers")


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """What a rate key can still do within a horizon (4.10.6 `estimate`)."""

    permits: int
    rate_per_sec: float
    concurrency: int
    blocked_until: int | None


def estimate(policy: Policy, state: State, horizon: int, now: int) -> Budget:
    """Permits within the horizon and how many tasks can share them, as things stand now."""
    s = advance(policy, state, now)
    start = max(now, s.cooldown, s.reset if s.left == 0 else 0)
    permits = max(s.tokens + s.rate * max(now + horizon - start, 0), 0) // PERMIT_UNITS
    if (left := quota_left(policy, s)) >= 0:
        permits = min(permits, max(left, 0))
    bounds = [n for n in (policy.concurrency, s.concurrency) if n]
    return Budget(
        permits=permits,
        rate_per_sec=s.rate / 1000,
        concurrency=min([*bounds, max(-(-s.rate // 1000), 1)]),
        blocked_until=start if start > now else None,
    )


def rate_view(
    key: str, policy: Policy, answer: Answered, cost: int, waited: int, decision: str
) -> dict[str, str | int | float]:
    """The fields `rate.*` and `quota.*` of a batch row (4.10.7); what was not said is left out."""
    s, now = answer.state, answer.now
    view: dict[str, str | int | float] = {
        "rate.limitKey": key,
        "rate.permitCost": cost,
        "rate.waitMs": waited // 1000,
        "rate.decision": decision,
        "rate.r": warm_rate(policy, s, now) / 1000,
        "rate.burst": policy.burst,
    }
    if s.cooldown > now:
        view["rate.cooldownUntil"] = format_instant(s.cooldown)
    if s.left >= 0:
        view["quota.remaining"] = s.left
        view["quota.windowReset"] = format_instant(s.reset)
    elif (left := quota_left(policy, s)) >= 0:
        hourly = policy.quota_hour and left == policy.quota_hour - s.hour_used
        view["quota.remaining"] = left
        view["quota.limit"] = policy.quota_hour if hourly else policy.quota_day
        view["quota.windowReset"] = format_instant((s.hour + 1) * HOUR if hourly else (s.day + 1) * DAY)
    return view


def unsent(permit: Permit) -> Signal:
    """A permit that was not used is given back."""
    return Signal(sign=Sign.NOT_SENT, permit=permit.id, cost=permit.cost)
