"""The alert rules of ch. 14.8: looks go in, alerts come out."""

from typing import Any

import pytest

from patra.ingest.operations.alerting.alert_state import Alert, AlertState, step
from patra.ingest.operations.alerting.alerts import (
    RULES,
    Budget,
    Flow,
    Halted,
    IdlePlan,
    Lag,
    Look,
    Queue,
    Reading,
    Severity,
    Thresholds,
    Where,
)
from patra.ingest.operations.alerting.bus_rules import BUS_RULES
from patra.kernel.clock import HOUR, MINUTE, SECOND

T = 1_800_000_000 * SECOND
HERE = Where("crossref", "works", "HARVEST")


class Watch:
    """Readings one after the other; keeps the notifications."""

    def __init__(self, thresholds: Thresholds | None = None) -> None:
        self.known: dict[str, Alert] = {}
        self.told: list[tuple[int, str, str]] = []
        self._thresholds = thresholds

    def look(self, at: int, **seen: Any) -> None:
        found = step(self.known, Look(at=T + at, **seen), self._thresholds)
        self.known |= {alert.key: alert for alert in found.changed}
        self.told += [(at, alert.rule, alert.state.value) for alert in found.told]

    @property
    def firing(self) -> list[str]:
        return [key for key, alert in self.known.items() if alert.state is AlertState.FIRING]


def test_a_fatal_error_is_told_at_once_and_once_and_is_over_when_it_is_lifted() -> None:
    watch = Watch()
    halt = Halted(where=Where("crossref", "works"), reason="i_failed_fatal", detail="401 (renew the key)")
    for at in range(0, 5 * MINUTE, 30 * SECOND):
        watch.look(at, halts=[halt])
    assert watch.told == [(0, "fatal", "FIRING")]
    alert = watch.known["fatal|crossref/works"]
    assert alert.severity is Severity.CRITICAL
    assert "renew the key" in alert.text
    watch.look(5 * MINUTE)
    assert watch.told[1:] == [(5 * MINUTE, "fatal", "OVER")]
    watch.look(6 * MINUTE, halts=[halt])
    assert watch.told[2:] == [(6 * MINUTE, "fatal", "FIRING")]


def test_a_subject_that_is_read_twice_is_one_alert() -> None:
    """Two rows of one key in one INSERT ... ON CONFLICT DO UPDATE are an error on PostgreSQL."""
    readings = [Reading(subject="s", value=n, breach=True, calm=False, text=f"reading {n}") for n in (1, 2)]
    found = step({}, Look(at=T, handed_in={"bus_frozen": readings}), rules=BUS_RULES)
    assert [(alert.key, alert.text) for alert in found.changed] == [("bus_frozen|s", "reading 1")]
    assert found.told == found.changed


def test_a_fatal_error_that_was_lifted_between_two_looks_is_told_all_the_same() -> None:
    watch = Watch()
    watch.look(0, flows=[Flow(where=HERE, batches=30, fatal=1)])
    assert watch.firing == ["fatal|crossref/works"]


def test_a_watermark_that_falls_behind_for_two_looks_is_told() -> None:
    def lag(seconds: int, **more: Any) -> list[Lag]:
        return [Lag(where=HERE, namespace="works:1", lag=seconds * SECOND, **more)]

    watch = Watch()
    watch.look(0, lags=lag(1801))
    assert watch.told == []
    watch.look(30 * SECOND, lags=lag(1831))
    assert watch.told == [(30 * SECOND, "cursor_lag", "FIRING")]
    watch.look(MINUTE, lags=lag(1790))  # below the line, but not calm
    watch.look(20 * MINUTE, lags=lag(1700))
    assert watch.firing
    watch.look(21 * MINUTE, lags=lag(60))
    watch.look(25 * MINUTE, lags=lag(60))
    assert watch.firing  # calm, but not for long enough
    watch.look(26 * MINUTE, lags=lag(60))
    assert watch.told[1:] == [(26 * MINUTE, "cursor_lag", "OVER")]
    blink = Watch()
    blink.look(0, lags=lag(1801))
    blink.look(30 * SECOND, lags=lag(10))
    blink.look(MINUTE, lags=lag(1801))
    assert blink.told == []


@pytest.mark.parametrize(
    "more",
    [{"expected": 25 * HOUR}, {"watched": False}, {"where": Where("crossref", "works", "BACKFILL")}],
    ids=["a daily source", "nothing moves it", "no harvest"],
)
def test_a_watermark_is_measured_by_what_is_to_move_it(more: dict[str, Any]) -> None:
    watch = Watch()
    for at in (0, MINUTE):
        watch.look(at, lags=[Lag(**({"where": HERE, "namespace": "n", "lag": 24 * HOUR} | more))])
    assert watch.told == []


@pytest.mark.parametrize(
    ("rule", "count", "hold"), [("errors", "errors", 10 * MINUTE), ("throttled", "throttled", 5 * MINUTE)]
)
def test_a_share_must_hold_before_it_is_told_and_flickering_is_one_alert(rule: str, count: str, hold: int) -> None:
    def flow(part: int, batches: int = 100) -> list[Flow]:
        return [Flow(where=HERE, batches=batches, **{count: part})]

    watch = Watch()
    at = 0
    while at < hold:
        watch.look(at, flows=flow(6))
        assert watch.told == []
        at += 30 * SECOND
    watch.look(at, flows=flow(6))
    assert watch.told == [(hold, rule, "FIRING")]
    for part in (5, 6, 5, 6, 4, 6):  # five of a hundred is the line, four of a hundred is calm
        at += MINUTE
        watch.look(at, flows=flow(part))
    assert len(watch.told) == 1
    for _ in range(6):
        at += MINUTE
        watch.look(at, flows=flow(3))
    assert watch.told[1:] == [(at, rule, "OVER")]


def test_few_batches_say_nothing() -> None:
    watch = Watch()
    for at in range(0, 30 * MINUTE, MINUTE):
        watch.look(at, flows=[Flow(where=HERE, batches=19, errors=19, throttled=19)])
    assert watch.told == []


def test_a_queue_is_long_by_its_own_history() -> None:
    def queue(queued: int, samples: int = 100) -> list[Queue]:
        """A history of 100 and 300 in turn: mean 200, spread 100."""
        return [
            Queue(
                where=HERE,
                queued=queued,
                samples=samples,
                total=200 * samples,
                squares=(100**2 + 300**2) // 2 * samples,
            )
        ]

    watch = Watch()
    watch.look(0, queues=queue(500))
    watch.look(MINUTE, queues=queue(500))
    assert watch.told == []
    watch.look(2 * MINUTE, queues=queue(501))
    watch.look(3 * MINUTE, queues=queue(501))
    assert watch.told == [(3 * MINUTE, "queue", "FIRING")]
    young = Watch()
    young.look(0, queues=queue(9999, samples=10))
    young.look(MINUTE, queues=queue(9999, samples=10))
    assert young.told == []


def test_a_plan_that_nobody_works_on_is_told_and_over_when_somebody_does() -> None:
    watch = Watch()
    watch.look(0, idle=[IdlePlan(where=HERE, plan_id="p1", waiting=30 * MINUTE)])
    assert watch.told == []
    watch.look(MINUTE, idle=[IdlePlan(where=HERE, plan_id="p1", waiting=31 * MINUTE)])
    watch.look(2 * MINUTE)
    assert watch.told == [(MINUTE, "plan_idle", "FIRING"), (2 * MINUTE, "plan_idle", "OVER")]


def test_a_budget_below_a_tenth_is_told() -> None:
    watch = Watch()
    watch.look(0, budgets=[Budget(where=HERE, remaining=100, capacity=1000)])
    assert watch.told == []
    watch.look(MINUTE, budgets=[Budget(where=HERE, remaining=99, capacity=1000)])
    watch.look(2 * MINUTE, budgets=[Budget(where=HERE, remaining=120, capacity=1000)])
    assert watch.told == [(MINUTE, "budget", "FIRING")]
    watch.look(3 * MINUTE, budgets=[Budget(where=HERE, remaining=1000, capacity=1000)])
    assert watch.told[1:] == [(3 * MINUTE, "budget", "OVER")]


def test_what_does_not_change_is_not_written_again_but_for_when_it_was_seen() -> None:
    halt = Halted(where=Where("a"), reason="r", detail="d")
    first = step({}, Look(at=T, halts=[halt]))
    known = {alert.key: alert for alert in first.changed}
    second = step(known, Look(at=T + SECOND, halts=[halt]))
    assert [(a.seen_at, a.fired_at) for a in second.changed] == [(T + SECOND, T)]
    assert second.told == ()
    assert step({}, Look(at=T)).changed == ()


def test_every_rule_of_the_specification_is_there() -> None:
    assert [rule.name for rule in RULES] == [
        "incomplete",
        "failed",
        "watermark_held",
        "always_failing",
        "fatal",
        "cursor_lag",
        "errors",
        "throttled",
        "queue",
        "plan_idle",
        "budget",
    ]
    assert all(rule.text and rule.advice for rule in RULES)
