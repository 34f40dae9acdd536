"""The steps of an event: what is before the one that decided passed, what is behind it was not looked at."""

from typing import Any

import pytest

from patra.attribution.queries import DecisionView, events_of_batch
from patra.attribution.queries.decision_steps import FAILED_AT, StepName, StepOutcome
from patra.attribution.replay import replay
from tests.unit.attribution.said import ABSENT, envelope, event, fresh, sent, terminal, tick

P, F, D, W, N = "passed", "failed", "duplicate", "waiting", "not_reached"
ORDER = [name.value for name in StepName]


def decided(batch: str, event_id: str, *lines: Any) -> list[DecisionView]:
    db = fresh()
    try:
        replay(lines, db)
        return db.read(lambda tx: events_of_batch(tx, batch, event_id)).decisions
    finally:
        db.close()


def outcomes(view: DecisionView) -> list[tuple[str, str]]:
    return [(step.name.value, step.outcome.value) for step in view.steps]


def step(view: DecisionView, name: StepName) -> tuple[str, str, str | None]:
    (found,) = [one for one in view.steps if one.name is name]
    return found.outcome.value, found.text, found.transition


def test_an_impression_passes_every_step_and_ends_its_closure():
    (view,) = decided("b1", "i", sent(0, event("ad_filled", "f"), event("impression", "i")))
    assert outcomes(view) == [(name, P) for name in ORDER]
    assert step(view, StepName.ENVELOPE)[1] == "batch b1, event 2 of it"
    assert step(view, StepName.CLOSURE) == (P, "open → closed_success", "impression")
    assert step(view, StepName.FACTS)[1] == "billable_impression, attr_impression"
    assert step(view, StepName.ARCHIVE)[1] == "records: 3 committed"


@pytest.mark.parametrize(
    ("change", "failed", "text"),
    [
        ({"eventType": "nonsense"}, StepName.TYPE, "eventType: expected one of ad_filled"),
        ({"creativeId": ABSENT}, StepName.FIELDS, "creativeId: expected text of 1 to 1,024 characters"),
        ({"eventId": ABSENT}, StepName.EVENT_ID, "eventId: expected text of 1 to 128 characters"),
        ({"eventAt": "yesterday"}, StepName.EVENT_AT, "eventAt: expected an RFC 3339 instant"),
        ({"eventIdScope": "everywhere"}, StepName.SCOPE, "eventIdScope: expected one of"),
        ({"eventIdScope": "global_unique"}, StepName.SCOPE, "eventId: expected an id of the form"),
        ({"eventAt": "2025-11-01T00:00:00Z"}, StepName.AGE, "eventAt: expected an instant at most 14 days before"),
    ],
)
def test_the_check_that_failed_decides_and_nothing_behind_it_was_looked_at(
    change: dict[str, Any], failed: StepName, text: str
):
    (view,) = decided("b1", "", sent(0, event("impression", "i", **change)))
    at = ORDER.index(failed.value)
    behind = len(ORDER) - at - 2
    assert [outcome for _, outcome in outcomes(view)] == [P] * at + [F] + [N] * behind + [P]
    assert step(view, failed)[1].startswith(text)


def test_a_duplicate_and_a_conflict_of_dedup_end_there():
    first = sent(0, event("impression", "i"))
    again = decided("b1", "i", first, sent(1, event("impression", "i")))[-1]
    other = decided("b1", "i", first, sent(1, event("impression", "i", creativeId="another")))[-1]
    assert (again.answer, other.answer, again.eventType) == ("duplicate", "rejected", "impression")
    assert step(again, StepName.DEDUP)[0] == D
    assert step(other, StepName.DEDUP)[0] == F
    assert step(again, StepName.OWNER)[0] == step(again, StepName.CLOSURE)[0] == step(again, StepName.FACTS)[0] == N


def test_a_foreign_closure_is_refused_by_its_owner():
    (view,) = decided(
        "b2", "i", sent(0, event("ad_filled", "f")), sent(1, event("impression", "i"), batch="b2", app="thief")
    )
    assert (step(view, StepName.DEDUP)[0], step(view, StepName.OWNER)[0]) == (P, F)


def test_what_was_decided_later_begins_at_the_closure():
    lines = [sent(0, event("ad_filled", "f"), event("click", "c")), tick(200)]
    click, lapsed = decided("b1", "c", *lines)
    assert step(click, StepName.CLOSURE)[:2] == (W, "open: the click waits for its impression")
    assert [name for name, _ in outcomes(lapsed)] == ["closure", "facts", "archive"]
    assert step(lapsed, StepName.CLOSURE)[0] == F
    assert (click.answer, lapsed.answer) == ("accepted", "timer")
    (ended,) = [one for one in decided("b1", "", *lines) if one.eventType == "failure"]
    assert (ended.answer, step(ended, StepName.CLOSURE)[2]) == ("timer", "timeout")


def test_a_late_impression_and_a_second_one_say_what_became_of_the_closure():
    lines = [sent(0, event("ad_filled", "f")), tick(200), sent(201, event("impression", "i"), batch="b2")]
    (late,) = decided("b2", "i", *lines)
    assert step(late, StepName.CLOSURE) == (P, "closed_failure → closed_success, a late impression", "late_impression")
    (second,) = decided("b3", "j", *lines, sent(202, event("impression", "j", attemptKey="2"), batch="b3"))
    assert step(second, StepName.CLOSURE) == (D, "stays closed_success: it had ended before", None)
    (failure,) = decided("b1", "t", sent(0, terminal("t")))
    assert step(failure, StepName.CLOSURE)[2] == "failure"


def test_each_code_that_drops_an_event_has_its_step():
    line = {"receivedAt": "2026-01-01T00:00:00Z", "batch": envelope(event("impression", "i"))}
    assert outcomes(decided("b1", "i", line)[0])[0] == ("envelope", P)
    assert {StepOutcome(value) for value in (P, F, D, W, N)} == set(StepOutcome)
    assert set(FAILED_AT.values()) == {
        name for name in StepName if name not in {"envelope", "check 3", "closure", "facts", "archive"}
    }
