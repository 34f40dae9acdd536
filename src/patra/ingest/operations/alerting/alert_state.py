"""The state machine of an alert: pending, firing, over; readings move it."""

from collections.abc import Mapping, Sequence
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from patra.ingest.operations.alerting.alerts import RULES, Look, Reading, Rule, Severity, Thresholds
from patra.kernel.machine import Machine


class AlertState(StrEnum):
    PENDING = "PENDING"
    FIRING = "FIRING"
    OVER = "OVER"


class AlertTransition(StrEnum):
    HOLD = "hold"  # it held for as long as its rule says
    CALM = "calm"
    BREACH = "breach"  # it was over, and is there again


ALERT: Machine[AlertState, AlertTransition] = Machine(
    "ing_alert",
    initial=AlertState.PENDING,
    edges={
        (AlertState.PENDING, AlertTransition.HOLD): AlertState.FIRING,
        (AlertState.PENDING, AlertTransition.CALM): AlertState.OVER,
        (AlertState.FIRING, AlertTransition.CALM): AlertState.OVER,
        (AlertState.OVER, AlertTransition.BREACH): AlertState.PENDING,
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
    """The alerts that changed, and those with a notification: fired, or over after they fired."""

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
            if (key := f"{rule.name}|{reading.subject}") in seen:
                continue  # the first counts: a key that is written twice at once is an error on PostgreSQL
            seen.add(key)
            before = known.get(key)
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
        return _begin_alert(before, rule, reading, now, t) if reading.breach else None
    alert = replace(before, seen_at=now, value=reading.value, text=reading.text)
    if reading.breach:
        alert = replace(alert, calm_since=None)
        return _hold_alert(alert, rule, now, t)
    if before.state is AlertState.PENDING:  # it never was one
        return replace(alert, state=ALERT.target(before.state, AlertTransition.CALM), over_at=now)
    if not reading.calm:
        return replace(alert, calm_since=None)
    since = before.calm_since if before.calm_since is not None else now
    if rule.hold(t) and now - since < t.calm:  # what fires at once is over at once: it is a fact, not a share
        return replace(alert, calm_since=since)
    return replace(alert, state=ALERT.target(before.state, AlertTransition.CALM), calm_since=since, over_at=now)


def _begin_alert(before: Alert | None, rule: Rule, reading: Reading, now: int, t: Thresholds) -> Alert:
    state = AlertState.PENDING if before is None else ALERT.target(before.state, AlertTransition.BREACH)
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
    return _hold_alert(alert, rule, now, t)


def _hold_alert(alert: Alert, rule: Rule, now: int, t: Thresholds) -> Alert:
    if alert.state is AlertState.PENDING and now - alert.since >= rule.hold(t):
        return replace(alert, state=ALERT.target(alert.state, AlertTransition.HOLD), fired_at=now)
    return alert
