"""Computes from a reading of the platform and the current alerts the new alerts and the notifications (ch. 14.8).

Pure: no store, no clock, no delivery. Each rule turns a `Look` into readings, one per subject; a reading that breaches
makes an alert PENDING; after the rule's hold time it FIRES, and one notification is sent. It is over when its reading
has stayed below a lower line (hysteresis) for a calm period; one notification says so. A flickering alert is one alert.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum

import msgspec

from patra.kernel.clock import MINUTE, SECOND


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
    failing_runs: int = 3  # ended runs of a day, all of them failed
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
    """A watermark. `expected`: its normal lag (safety lag, window, schedule)."""

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


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Windows of an endpoint whose tasks failed permanently, and that nothing has read since."""

    where: Where
    windows: int
    reasons: tuple[str, ...]
    missing: int = 0
    """Records that their totals promise beyond what came."""


class HeldMark(msgspec.Struct, frozen=True, kw_only=True):
    """A HARVEST watermark that stands at a window which failed, while nothing is under way that would read it."""

    where: Where
    namespace: str
    stands_at: str
    reason: str


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of the last day that ended in failure."""

    where: Where
    runs: int
    failed: int


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the rules look at, at one instant."""

    at: int
    flows: Sequence[Flow] = ()
    halts: Sequence[Halted] = ()
    lags: Sequence[Lag] = ()
    queues: Sequence[Queue] = ()
    idle: Sequence[IdlePlan] = ()
    budgets: Sequence[Budget] = ()
    failures: Sequence[Failure] = ()
    incomplete: Sequence[Failure] = ()
    held_marks: Sequence[HeldMark] = ()
    ended: Sequence[Ended] = ()
    handed_in: Mapping[str, Sequence["Reading"]] = {}
    """Readings of other engines, by the name of their rule."""


# --- the rules -------------------------------------------------------------------------------------------------------


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule reads of one subject. Between `calm` and `breach` an alert stays as it is."""

    subject: str
    value: float
    breach: bool
    calm: bool
    text: str


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A row of 14.8. `hold`: how long it must hold before it fires."""

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


def _crowded_days(look: Look, t: Thresholds) -> Iterable[Reading]:
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


def _failed_tasks(look: Look, _: Thresholds) -> Iterable[Reading]:
    for one in look.failures:
        text = f"{one.windows} tasks or plans failed for good: {', '.join(one.reasons)}"
        yield Reading(subject=one.where.subject, value=one.windows, breach=True, calm=False, text=text)


def _incomplete(look: Look, _: Thresholds) -> Iterable[Reading]:
    for one in look.incomplete:
        text = f"{one.windows} windows do not add up; {one.missing} records or more are missing"
        yield Reading(subject=one.where.subject, value=one.missing, breach=True, calm=False, text=text)


def _held_mark(look: Look, _: Thresholds) -> Iterable[Reading]:
    for one in look.held_marks:
        text = f"the watermark stands at {one.stands_at}: the window there failed ({one.reason}), and nothing reads it"
        subject = f"{one.where.subject} {one.namespace}"
        yield Reading(subject=subject, value=1, breach=True, calm=False, text=text)


def _always_failing(look: Look, t: Thresholds) -> Iterable[Reading]:
    for one in look.ended:
        yield Reading(
            subject=one.where.subject,
            value=one.failed,
            breach=one.failed == one.runs and one.runs >= t.failing_runs,
            calm=one.failed < one.runs,
            text=f"all of the {one.failed} runs that ended in the last day failed",
        )


RULES: tuple[Rule, ...] = (
    Rule(
        name="incomplete",
        severity=Severity.CRITICAL,
        text="a window does not add up: less came than its total promises",
        advice="`patra ingest errors SOURCE` says what is missing; fix the pack and run the same again",
        read=_incomplete,
        hold=lambda _: 0,
    ),
    Rule(
        name="failed",
        severity=Severity.WARNING,
        text="tasks failed for good, and nothing has read their windows since",
        advice="look at `patra ingest errors SOURCE`, fix the cause, then run the same again",
        read=_failed_tasks,
        hold=lambda _: 0,
    ),
    Rule(
        name="watermark_held",
        severity=Severity.WARNING,
        text="a HARVEST watermark stands before a window that failed",
        advice="look at `patra ingest errors SOURCE`, fix the cause, then run the same again",
        read=_held_mark,
        hold=lambda _: 0,
    ),
    Rule(
        name="always_failing",
        severity=Severity.CRITICAL,
        text="every run of an endpoint that ended in the last day failed",
        advice="look at `patra ingest errors SOURCE`",
        read=_always_failing,
        hold=lambda _: 0,
    ),
    Rule(
        name="fatal",
        severity=Severity.CRITICAL,
        text="an L4 has stopped a source or endpoint",
        advice="fix the cause, then `patra ingest lift SOURCE [ENDPOINT]`",
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
        advice="`patra ingest rate` shows the answers of providers; `patra ingest errors SOURCE` what failed for good",
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
        read=_crowded_days,
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
