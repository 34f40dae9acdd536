"""A look at the platform and the alerts so far go in; the alerts after it, and what is to be told, come out (ch. 14.8).

Pure: no store, no clock, no delivery. Each rule turns a `Look` into readings, one a subject; a reading that breaches
makes an alert PENDING, for as long as the rule says it FIRES, and it is told once. It is over when its reading has
stayed below a lower line (hysteresis) for a calm period, and that is told once too: one that flickers is one alert.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from patra.kernel.clock import MINUTE, SECOND
from patra.kernel.machine import Machine


class Severity(StrEnum):
    CRITICAL = "critical"
    WARNING = "warning"


class Thresholds(msgspec.Struct, frozen=True, kw_only=True):
    """The lines of 14.8; shares in thousandths, spans in microseconds."""

    cursor_lag: int = 1800 * SECOND
    errors: int = 50
    errors_for: int = 10 * MINUTE
    throttled: int = 50
    throttled_for: int = 5 * MINUTE
    fewest: int = 20  # batches below which a share says nothing
    queue_sigmas: int = 3
    queue_samples: int = 60  # looks at a queue before its mean says anything
    queue_fewest: int = 100  # tasks below which no queue is a long one
    plan_idle: int = 30 * MINUTE
    budget: int = 100
    sample: int = 30 * SECOND
    """Time between two looks: what must hold for two of them holds for this long."""
    calm: int = 5 * MINUTE
    """How long a reading stays below the line before an alert is over."""


# --- what is looked at -----------------------------------------------------------------------------------------------


class Where(msgspec.Struct, frozen=True, order=True):
    """A source, one of its endpoints and an operation; what is not meant is empty."""

    source: str
    endpoint: str = ""
    operation: str = ""

    @property
    def subject(self) -> str:
        return "/".join(part for part in (self.source, self.endpoint, self.operation) if part)


class Flow(msgspec.Struct, frozen=True, kw_only=True):
    """Batches of the last minutes."""

    where: Where
    batches: int = 0
    errors: int = 0
    """Attempts that ended as L1 or L2."""
    throttled: int = 0
    fatal: int = 0


class Halted(msgspec.Struct, frozen=True, kw_only=True):
    """A source or endpoint that an L4 stopped."""

    where: Where
    reason: str
    detail: str


class Lag(msgspec.Struct, frozen=True, kw_only=True):
    """A watermark. `expected`: what it lies behind where all is well (safety lag, window, schedule)."""

    where: Where
    namespace: str
    lag: int
    expected: int = 0
    watched: bool = True
    """Whether anything is to move it: a schedule, or tasks that wait."""


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """How many tasks wait, and how many did in the past days: samples, their sum and the sum of their squares."""

    where: Where
    queued: int
    samples: int = 0
    total: int = 0
    squares: int = 0


class IdlePlan(msgspec.Struct, frozen=True, kw_only=True):
    """A plan that is READY and none of whose tasks was ever taken."""

    where: Where
    plan_id: str
    waiting: int


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """Requests left in the tightest quota of now."""

    where: Where
    remaining: int
    capacity: int


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the rules look at, at one instant."""

    at: int
    flows: Sequence[Flow] = ()
    halts: Sequence[Halted] = ()
    lags: Sequence[Lag] = ()
    queues: Sequence[Queue] = ()
    idle: Sequence[IdlePlan] = ()
    budgets: Sequence[Budget] = ()


# --- the rules -------------------------------------------------------------------------------------------------------


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule reads of one subject. Between `calm` and `breach` an alert stays as it is."""

    subject: str
    value: float
    breach: bool
    calm: bool
    text: str


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A row of 14.8. `hold`: how long it must hold before it is told."""

    name: str
    severity: Severity
    text: str
    advice: str
    read: Callable[[Look, Thresholds], Iterable[Reading]]
    hold: Callable[[Thresholds], int]


def _fatal(look: Look, _: Thresholds) -> Iterable[Reading]:
    halted = {one.where.subject for one in look.halts}
    for one in look.halts:
        yield Reading(subject=one.where.subject, value=1, breach=True, calm=False, text=f"{one.reason}: {one.detail}")
    for flow in look.flows:
        subject = Where(flow.where.source, flow.where.endpoint).subject
        if flow.fatal and subject not in halted:
            text = f"{flow.fatal} fatal errors in the last minutes; lifted since"
            yield Reading(subject=subject, value=flow.fatal, breach=True, calm=False, text=text)


def _lagging(look: Look, t: Thresholds) -> Iterable[Reading]:
    for one in look.lags:
        if not one.watched or one.where.operation != "HARVEST":
            continue
        line = max(t.cursor_lag, one.expected)
        seconds = one.lag // SECOND
        yield Reading(
            subject=f"{one.where.subject} {one.namespace}",
            value=seconds,
            breach=one.lag > line,
            calm=one.lag <= line * 9 // 10,
            text=f"the watermark lies {seconds} s behind, and {line // SECOND} s are expected at most",
        )


def _share(part: int, whole: int) -> float:
    return part * 1000 / whole if whole else 0.0


def _sharing(
    name: str, count: Callable[[Flow], int], line: Callable[[Thresholds], int]
) -> Callable[..., Iterable[Reading]]:
    def read(look: Look, t: Thresholds) -> Iterable[Reading]:
        for flow in look.flows:
            share = _share(count(flow), flow.batches)
            enough = flow.batches >= t.fewest
            yield Reading(
                subject=flow.where.subject,
                value=share / 10,
                breach=enough and share > line(t),
                calm=share <= line(t) * 8 / 10,
                text=f"{count(flow)} {name} in {flow.batches} batches of the last five minutes ({share / 10:.1f} %)",
            )

    return read


def _crowded(look: Look, t: Thresholds) -> Iterable[Reading]:
    for queue in look.queues:
        mean = queue.total / queue.samples if queue.samples else 0.0
        spread = max(queue.squares / queue.samples - mean * mean, 0.0) ** 0.5 if queue.samples else 0.0
        line = max(mean + t.queue_sigmas * spread, t.queue_fewest)
        yield Reading(
            subject=queue.where.subject,
            value=queue.queued,
            breach=queue.samples >= t.queue_samples and queue.queued > line,
            calm=queue.queued <= max(mean + t.queue_sigmas * spread / 2, t.queue_fewest),
            text=f"{queue.queued} tasks wait; {mean:.0f} did on average, and up to {line:.0f} is usual",
        )


def _idle(look: Look, t: Thresholds) -> Iterable[Reading]:
    for plan in look.idle:
        minutes = plan.waiting // MINUTE
        yield Reading(
            subject=f"{plan.where.subject} {plan.plan_id}",
            value=minutes,
            breach=plan.waiting > t.plan_idle,
            calm=False,
            text=f"the plan is ready, and nobody has taken a task of it for {minutes} minutes",
        )


def _budget(look: Look, t: Thresholds) -> Iterable[Reading]:
    for one in look.budgets:
        share = _share(one.remaining, one.capacity)
        yield Reading(
            subject=one.where.subject,
            value=share / 10,
            breach=share < t.budget,
            calm=share >= t.budget * 1.5,
            text=f"{one.remaining} of {one.capacity} requests are left ({share / 10:.1f} %)",
        )


RULES: tuple[Rule, ...] = (
    Rule(
        name="fatal",
        severity=Severity.CRITICAL,
        text="an L4 has stopped a source or endpoint",
        advice="mend the cause, then `patra ingest lift SOURCE [ENDPOINT]`",
        read=_fatal,
        hold=lambda _: 0,
    ),
    Rule(
        name="cursor_lag",
        severity=Severity.WARNING,
        text="a HARVEST watermark stands still or falls behind",
        advice="look at `patra ingest errors SOURCE` and `patra ingest queue`",
        read=_lagging,
        hold=lambda t: t.sample,
    ),
    Rule(
        name="errors",
        severity=Severity.WARNING,
        text="too many L1 and L2 errors",
        advice="look at `patra ingest errors SOURCE`, then `patra ingest replay RUN BATCH`",
        read=_sharing("errors (L1, L2)", lambda flow: flow.errors, lambda t: t.errors),
        hold=lambda t: t.errors_for,
    ),
    Rule(
        name="throttled",
        severity=Severity.WARNING,
        text="the provider answers too many requests with 429",
        advice="lower `rateLimit.refillRatePerSec` of the pack; other users of the same key count too",
        read=_sharing("answers 429", lambda flow: flow.throttled, lambda t: t.throttled),
        hold=lambda t: t.throttled_for,
    ),
    Rule(
        name="queue",
        severity=Severity.WARNING,
        text="many more tasks wait than usual",
        advice="more executors (`ingest.executors`, another process), or a wider window in the pack",
        read=_crowded,
        hold=lambda t: t.sample,
    ),
    Rule(
        name="plan_idle",
        severity=Severity.WARNING,
        text="a plan is READY and nobody works on it",
        advice="is an executor running (`patra up`, `patra work ingest`)?",
        read=_idle,
        hold=lambda _: 0,
    ),
    Rule(
        name="budget",
        severity=Severity.WARNING,
        text="a quota is nearly used up; plans wait for its next period",
        advice="nothing need be done: tasks that do not fit are due in the next period",
        read=_budget,
        hold=lambda _: 0,
    ),
)


# --- an alert's life -------------------------------------------------------------------------------------------------


class AlertState(StrEnum):
    PENDING = "PENDING"
    FIRING = "FIRING"
    OVER = "OVER"


class AlertOn(StrEnum):
    HOLD = "hold"  # it held for as long as its rule says
    CALM = "calm"
    BREACH = "breach"  # it was over, and is there again


ALERT: Machine[AlertState, AlertOn] = Machine(
    "ing_alert",
    initial=AlertState.PENDING,
    edges={
        (AlertState.PENDING, AlertOn.HOLD): AlertState.FIRING,
        (AlertState.PENDING, AlertOn.CALM): AlertState.OVER,
        (AlertState.FIRING, AlertOn.CALM): AlertState.OVER,
        (AlertState.OVER, AlertOn.BREACH): AlertState.PENDING,
    },
)


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """One rule and subject; `since` is when its reading crossed the line, `calm_since` when it went back."""

    rule: str
    subject: str
    severity: Severity
    state: AlertState
    value: float
    text: str
    since: int
    seen_at: int
    fired_at: int | None = None
    over_at: int | None = None
    calm_since: int | None = None

    @property
    def key(self) -> str:
        return f"{self.rule}|{self.subject}"


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """The alerts that changed, and those of them that people are told of: fired, or over after they fired."""

    changed: tuple[Alert, ...]
    told: tuple[Alert, ...]


def step(known: Mapping[str, Alert], look: Look, t: Thresholds | None = None, rules: Sequence[Rule] = RULES) -> Step:
    """What a look makes of the alerts so far."""
    t = t or Thresholds()
    changed: list[Alert] = []
    told: list[Alert] = []
    seen: set[str] = set()
    for rule in rules:
        for reading in rule.read(look, t):
            before = known.get(f"{rule.name}|{reading.subject}")
            seen.add(f"{rule.name}|{reading.subject}")
            after = _after(before, rule, reading, look.at, t)
            _note(before, after, changed, told)
    for key, before in known.items():  # a subject that is not read any more is calm: a halt lifted, a plan begun
        if key not in seen and before.state is not AlertState.OVER:
            gone = next((rule for rule in rules if rule.name == before.rule), None)
            if gone is None:
                continue
            reading = Reading(subject=before.subject, value=0, breach=False, calm=True, text=before.text)
            _note(before, _after(before, gone, reading, look.at, t), changed, told)
    return Step(changed=tuple(changed), told=tuple(told))


def _note(before: Alert | None, after: Alert | None, changed: list[Alert], told: list[Alert]) -> None:
    if after is None or after == before:
        return
    changed.append(after)
    was = before.state if before is not None else None
    fired = after.state is AlertState.FIRING and was is not AlertState.FIRING
    over = after.state is AlertState.OVER and was is AlertState.FIRING
    if fired or over:
        told.append(after)


def _after(before: Alert | None, rule: Rule, reading: Reading, now: int, t: Thresholds) -> Alert | None:
    if before is None or before.state is AlertState.OVER:
        return _begun(before, rule, reading, now, t) if reading.breach else None
    alert = replace(before, seen_at=now, value=reading.value, text=reading.text)
    if reading.breach:
        alert = replace(alert, calm_since=None)
        return _held(alert, rule, now, t)
    if before.state is AlertState.PENDING:  # it never was one
        return replace(alert, state=ALERT.target(before.state, AlertOn.CALM), over_at=now)
    if not reading.calm:
        return replace(alert, calm_since=None)
    since = before.calm_since if before.calm_since is not None else now
    if rule.hold(t) and now - since < t.calm:  # what fires at once is over at once: it is a fact, not a share
        return replace(alert, calm_since=since)
    return replace(alert, state=ALERT.target(before.state, AlertOn.CALM), calm_since=since, over_at=now)


def _begun(before: Alert | None, rule: Rule, reading: Reading, now: int, t: Thresholds) -> Alert:
    state = AlertState.PENDING if before is None else ALERT.target(before.state, AlertOn.BREACH)
    alert = Alert(
        rule=rule.name,
        subject=reading.subject,
        severity=rule.severity,
        state=state,
        value=reading.value,
        text=reading.text,
        since=now,
        seen_at=now,
    )
    return _held(alert, rule, now, t)


def _held(alert: Alert, rule: Rule, now: int, t: Thresholds) -> Alert:
    if alert.state is AlertState.PENDING and now - alert.since >= rule.hold(t):
        return replace(alert, state=ALERT.target(alert.state, AlertOn.HOLD), fired_at=now)
    return alert
