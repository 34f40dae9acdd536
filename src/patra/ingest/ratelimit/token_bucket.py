"""Turns a request for permits, a bucket's state and now into allow, wait or reject and the next state (ch. 4.10).

The machine of the rate gate, without clock, lock or store; `limiter.py` hosts it in the process, `redis.py` says
the same in Lua for many processes. All numbers are integers, so that both agree to the last digit: instants and spans
in µs, rates in thousandths of a permit a second, tokens in billionths of a permit.

What it promises, whatever is asked in whatever order:
- in no interval of t seconds do more than `burst + rate * t` permits become usable, prefetched ones included;
- who waits is served in the order of asking: nobody starves, and nobody takes more than `quantum` in a row meanwhile;
- the rate stays between its floor and what pack and provider allow.
"""

from enum import StrEnum
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from patra.ingest.ratelimit.waiters import Waiter, cost_ahead, placed_in_line, without_task
from patra.kernel.clock import DAY, HOUR, SECOND

PERMIT_UNITS = 10**9
POLL_INTERVAL = SECOND // 20  # how soon to ask again where the time of the next permit is unknown
WAITER_GRACE = SECOND  # a waiter that has not come back so long after its time is thought dead
FLIGHT_TIMEOUT = 300 * SECOND  # a request that nobody reported back counts as over after this
WINDOW_SLACK = 2 * SECOND  # the provider's "reset" wobbles by that much within one window


class Why(StrEnum):
    """Why a request waits or is rejected."""

    TOKENS = "TOKENS"
    TURN = "TURN"
    CONCURRENCY = "CONCURRENCY"
    COOLDOWN = "COOLDOWN"
    PROVIDER_WINDOW = "PROVIDER_WINDOW"
    QUOTA_SOFT = "QUOTA_SOFT"
    QUOTA_HARD = "QUOTA_HARD"
    OVER_DEADLINE = "OVER_DEADLINE"


class Sign(StrEnum):
    """What a finished request says about the provider's mood."""

    OK = "OK"
    HTTP_429 = "HTTP_429"
    TRANSIENT_5XX = "5xx_TRANSIENT"
    NOT_SENT = "NOT_SENT"
    DOWNSHIFT = "DOWNSHIFT"


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """What a pack allows on one rate key. Zero means "no such bound" for quotas and concurrency."""

    rate: int
    burst: int
    warmup: int = 0
    quantum: int = 10
    demote: int = 2000
    floor: int = 100
    step: int = 100
    calm: int = 30 * SECOND
    quota_hour: int = 0
    quota_day: int = 0
    concurrency: int = 0
    lease: int = SECOND


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """`want` permits of `cost` each for a task, within `deadline` µs.

    `share` (thousandths) of a quota is for this operation; `jitter` lies in 0..999; `returns` names a prefetched lot
    that is over, `unused` what is left of it.
    """

    task: str
    permit: str
    cost: int = 1
    want: int = 1
    deadline: int = 0
    share: int = 1000
    jitter: int = 0
    returns: str = ""
    unused: int = 0


class Signal(msgspec.Struct, frozen=True, kw_only=True):
    """What came back: -1 stands for "not said". `retry_after` is a span, `reset` an instant, `limit` a rate.

    `cost` is what the request cost beyond its permit; of one that was not sent, what is given back.
    """

    sign: Sign
    permit: str = ""
    allowed_at: int = 0
    retry_after: int = -1
    remaining: int = -1
    reset: int = -1
    limit: int = -1
    concurrency: int = -1
    cost: int = 0
    jitter: int = 0


class Lot(msgspec.Struct, frozen=True, array_like=True):
    """Prefetched permits that may still be used until an instant."""

    permit: str
    permits: int
    until: int


class Flight(msgspec.Struct, frozen=True, array_like=True):
    permit: str
    until: int


class State(msgspec.Struct, frozen=True, kw_only=True):
    """One bucket. `left` and `reset` are what the provider's headers said of its own window (-1: nothing)."""

    at: int
    started: int
    tokens: int
    rate: int
    ceiling: int = 0
    demoted: int = -1
    calm_from: int = 0
    cooldown: int = 0
    left: int = -1
    reset: int = 0
    hour: int = 0
    hour_used: int = 0
    day: int = 0
    day_used: int = 0
    concurrency: int = 0
    queue: tuple[Waiter, ...] = ()
    lots: tuple[Lot, ...] = ()
    flights: tuple[Flight, ...] = ()


class Allow(msgspec.Struct, frozen=True, kw_only=True):
    """Send now. More than one permit is a lot that may be used until `until`."""

    at: int
    permits: int
    until: int


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """Ask again at `until`; the place in the queue is kept."""

    until: int
    why: Why


class Reject(msgspec.Struct, frozen=True, kw_only=True):
    """Not within the deadline; `until` says when it is worth trying."""

    why: Why
    until: int


Decision: TypeAlias = Allow | Wait | Reject


def fresh(policy: Policy, now: int) -> State:
    """A bucket starts full (4.10.3); one that warms up starts with a single permit, or there would be no warming up."""
    tokens = PERMIT_UNITS if policy.warmup else policy.burst * PERMIT_UNITS
    return State(at=now, started=now, tokens=tokens, rate=policy.rate, hour=now // HOUR, day=now // DAY)


def decide(policy: Policy, state: State, ask: Ask, now: int) -> tuple[Decision, State]:
    """One `acquire` (4.10.2)."""
    s = advance(policy, _return_permits(state, ask), now)
    if (block := _blocked_until(policy, s, ask, now)) is not None:
        why, until = block
        s = replace(s, queue=without_task(s.queue, ask.task))
        if until - now > ask.deadline:
            return Reject(why=why, until=until), s
        return Wait(until=now + _jitter_span(until - now, ask.jitter), why=why), s
    ahead = cost_ahead(s.queue, ask.task)
    crowded = _is_crowded(policy, s)
    if not ahead and not crowded and s.tokens >= ask.cost * PERMIT_UNITS:
        return _allow_request(policy, s, ask, now)
    missing = (ahead + ask.cost) * PERMIT_UNITS - s.tokens
    wait = -(-missing // warm_rate(policy, s, now)) if missing > 0 else 0
    if wait > ask.deadline:
        return Reject(why=Why.OVER_DEADLINE, until=now + wait), replace(s, queue=without_task(s.queue, ask.task))
    why = Why.CONCURRENCY if crowded else Why.TURN if wait == 0 else Why.TOKENS
    until = now + _jitter_span(max(wait, POLL_INTERVAL) if wait == 0 or crowded else wait, ask.jitter)
    return Wait(until=until, why=why), replace(
        s, queue=placed_in_line(s.queue, Waiter(ask.task, ask.cost, until + WAITER_GRACE))
    )


def feedback(policy: Policy, state: State, signal: Signal, now: int) -> State:
    """One `feedback`: AIMD, cool-down and the provider's own counts (4.10.4)."""
    s = advance(policy, state, now)
    s = replace(s, flights=tuple(f for f in s.flights if f.permit != signal.permit))
    match signal.sign:
        case Sign.NOT_SENT:
            return _refund_permits(policy, s, signal.cost)
        case Sign.DOWNSHIFT:  # 12.2: to no less than 30 % of what the pack allows
            return _demote_rate(policy, s, now, floor=max(policy.floor, policy.rate * 3 // 10))
        case Sign.HTTP_429 | Sign.TRANSIENT_5XX:
            if signal.allowed_at > s.demoted:  # those in flight when the rate was cut last say nothing new
                s = _demote_rate(policy, s, now, floor=policy.floor)
            if signal.sign is Sign.HTTP_429:
                s = replace(s, tokens=min(s.tokens, 0))
        case Sign.OK:
            pass
    if signal.retry_after > 0:
        s = cool_down(policy, s, now + _jitter_span(signal.retry_after, signal.jitter))
    return _apply_signal(s, signal, now)


def give_back(policy: Policy, state: State, permit: str, unused: int, now: int) -> State:
    """A prefetched lot is over."""
    return advance(policy, _return_permits(state, Ask(task="", permit="", returns=permit, unused=unused)), now)


def advance(policy: Policy, state: State, now: int) -> State:
    """The state at `now`: refilled, recovered, windows turned, what is over removed."""
    # What lies in lots may be used up to their last instant, so until they are gone the bucket keeps their place free.
    room = (policy.burst - sum(lot.permits for lot in state.lots)) * PERMIT_UNITS
    tokens = state.tokens
    rate = max(min(state.rate, _ceiling(policy, state)), 1)
    dt = now - state.at
    if dt > 0 and tokens < room:
        speed = warm_rate(policy, replace(state, rate=rate), state.at)
        tokens = room if dt >= -(-(room - tokens) // speed) else tokens + speed * dt
    calm_from = state.calm_from
    if rate < _ceiling(policy, state) and now > calm_from:
        periods = (now - calm_from) // policy.calm
        rate = min(_ceiling(policy, state), rate + policy.step * periods)
        calm_from += periods * policy.calm
    hour, day = max(now // HOUR, state.hour), max(now // DAY, state.day)
    return replace(
        state,
        at=max(state.at, now),
        tokens=min(tokens, room),
        rate=rate,
        calm_from=calm_from,
        left=-1 if state.reset <= now else state.left,
        hour=hour,
        hour_used=state.hour_used if hour == state.hour else 0,
        day=day,
        day_used=state.day_used if day == state.day else 0,
        queue=tuple(w for w in state.queue if w.until >= now),
        lots=tuple(lot for lot in state.lots if lot.until > now),
        flights=tuple(f for f in state.flights if f.until > now),
    )


def warm_rate(policy: Policy, state: State, now: int) -> int:
    """The rate in force: during the warm-up it rises from a tenth."""
    if policy.warmup and now - state.started < policy.warmup:
        return max(state.rate * max((now - state.started) * 1000 // policy.warmup, 100) // 1000, 1)
    return state.rate


def quota_left(policy: Policy, state: State) -> int:
    """Permits left in the tighter of hour and day; -1 where there is no quota."""
    left = [
        quota - used
        for quota, used in ((policy.quota_hour, state.hour_used), (policy.quota_day, state.day_used))
        if quota
    ]
    return min(left) if left else -1


def _ceiling(policy: Policy, state: State) -> int:
    return min(policy.rate, state.ceiling) if state.ceiling else policy.rate


def _is_crowded(policy: Policy, state: State) -> bool:
    bounds = [bound for bound in (policy.concurrency, state.concurrency) if bound]
    return bool(bounds) and len(state.flights) >= min(bounds)


def _blocked_until(policy: Policy, s: State, ask: Ask, now: int) -> tuple[Why, int] | None:
    """What no waiting in the queue helps against, and until when."""
    for quota, used, end in (
        (policy.quota_day, s.day_used, (s.day + 1) * DAY),
        (policy.quota_hour, s.hour_used, (s.hour + 1) * HOUR),
    ):
        if quota and used + ask.cost > quota:
            return Why.QUOTA_HARD, end
        if quota and used + ask.cost > quota * ask.share // 1000:
            return Why.QUOTA_SOFT, end
    if 0 <= s.left < ask.cost and now < s.reset:
        return Why.PROVIDER_WINDOW, s.reset
    if now < s.cooldown:
        return Why.COOLDOWN, s.cooldown
    return None


def _allow_request(policy: Policy, s: State, ask: Ask, now: int) -> tuple[Decision, State]:
    bounds = [ask.want, policy.quantum, s.tokens // (ask.cost * PERMIT_UNITS)]
    if policy.quota_hour:
        bounds.append((policy.quota_hour * ask.share // 1000 - s.hour_used) // ask.cost)
    if policy.quota_day:
        bounds.append((policy.quota_day * ask.share // 1000 - s.day_used) // ask.cost)
    if s.left >= 0:
        bounds.append(s.left // ask.cost)
    flies = bool(policy.concurrency or s.concurrency)
    permits = 1 if flies else max(min(bounds), 1)
    spent = permits * ask.cost
    until = now + policy.lease
    s = replace(
        s,
        tokens=s.tokens - spent * PERMIT_UNITS,
        left=s.left - spent if s.left >= 0 else -1,
        hour_used=s.hour_used + spent,
        day_used=s.day_used + spent,
        queue=without_task(s.queue, ask.task),
        lots=(*s.lots, Lot(ask.permit, spent, until)) if permits > 1 else s.lots,
        flights=(*s.flights, Flight(ask.permit, now + FLIGHT_TIMEOUT)) if flies else s.flights,
    )
    return Allow(at=now, permits=permits, until=until), s


def _demote_rate(policy: Policy, s: State, now: int, *, floor: int) -> State:
    rate = min(s.rate, max(s.rate * 1000 // policy.demote, floor, 1))
    return replace(s, rate=rate, demoted=now, calm_from=now)


def cool_down(policy: Policy, s: State, until: int) -> State:
    """After the pause one permit may be there, not a burst: refill for the time of the pause, up to one."""
    until = max(s.cooldown, until, s.at)
    tokens = min(s.tokens, PERMIT_UNITS)
    gained = warm_rate(policy, s, s.at) * min(until - s.at, PERMIT_UNITS)
    return replace(
        s, cooldown=until, calm_from=max(s.calm_from, until), at=until, tokens=min(tokens + gained, PERMIT_UNITS)
    )


def _refund_permits(policy: Policy, s: State, cost: int) -> State:
    room = (policy.burst - sum(lot.permits for lot in s.lots)) * PERMIT_UNITS
    return replace(
        s,
        tokens=max(min(s.tokens + cost * PERMIT_UNITS, room), s.tokens),
        left=s.left + cost if s.left >= 0 else -1,
        hour_used=max(s.hour_used - cost, 0),
        day_used=max(s.day_used - cost, 0),
    )


def _apply_signal(s: State, signal: Signal, now: int) -> State:
    """The provider's own words go before our inference."""
    if signal.limit > 0:
        s = replace(s, ceiling=signal.limit)
    if signal.concurrency > 0:
        s = replace(s, concurrency=signal.concurrency)
    if signal.cost > 0:
        s = replace(s, tokens=s.tokens - signal.cost * PERMIT_UNITS)
    if signal.remaining < 0:
        return s
    s = replace(s, tokens=min(s.tokens, signal.remaining * PERMIT_UNITS))
    if signal.reset <= now:
        return s
    same = s.left >= 0 and abs(signal.reset - s.reset) <= WINDOW_SLACK
    left = min(s.left, signal.remaining) if same else signal.remaining
    return replace(s, left=left, reset=max(s.reset, signal.reset) if same else signal.reset)


def _return_permits(s: State, ask: Ask) -> State:
    lots = tuple(lot for lot in s.lots if lot.permit != ask.returns)
    if not ask.returns or len(lots) == len(s.lots):
        return s  # none, or it ran out: then its permits count as used
    s = replace(s, lots=lots)
    return replace(
        s,
        tokens=s.tokens + ask.unused * PERMIT_UNITS,
        left=s.left + ask.unused if s.left >= 0 else -1,
        hour_used=max(s.hour_used - ask.unused, 0),
        day_used=max(s.day_used - ask.unused, 0),
    )


def _jitter_span(span: int, jitter: int) -> int:
    """5 to 15 % longer, so that those who wait do not come back as a herd (4.10.4)."""
    return span + span * (50 + jitter // 10) // 1000
