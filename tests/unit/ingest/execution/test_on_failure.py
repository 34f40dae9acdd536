"""What is done about an answer that lands nothing, without a store and without a clock."""

import pytest
from msgspec.structs import replace

from patra.ingest.execution import on_failure
from patra.ingest.execution.on_failure import MAX_FRUITLESS, MAX_RESTARTS
from patra.ingest.extraction.classify import Action, Verdict
from patra.ingest.landing.run_state import BatchStatus
from patra.ingest.planning.states import TaskTransition
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.clock import HOUR, MINUTE, SECOND
from tests.unit.ingest.execution.scopes import NOW, SMALLEST, WINDOW, limited, scope_of, spec_of

TRANSIENT = Verdict(action=Action.RETRY, code=RunReason.SERVER_ERROR, level="L1", detail="503")


def test_a_budget_is_never_used_up_before_the_first_batch():
    scope = scope_of(limited(spec_of(), max_requests=1))
    assert on_failure.over_budget(scope, scope.begin(), requests=9, batches=0, started=0, now=NOW) is None


def test_spent_requests_are_handed_on_as_smaller_slices_or_in_turn_at_the_smallest():
    spec = limited(spec_of(), max_requests=3)
    for window, task, acts in (
        (WINDOW, TaskTransition.PART, (RunReason.RESLICE,)),
        (SMALLEST, TaskTransition.DEFER, ()),
    ):
        scope = scope_of(spec, window)
        begun = scope.begin()
        assert on_failure.over_budget(scope, begun, requests=2, batches=1, started=NOW, now=NOW) is None
        found = on_failure.over_budget(scope, begun, requests=3, batches=1, started=NOW, now=NOW)
        assert found is not None
        assert (found[0].code, found[0].task, found[1]) == (RunReason.BUDGET_SPENT, task, acts)


def test_spent_time_cuts_what_is_left():
    scope = scope_of(limited(spec_of(), max_duration_sec=60))
    found = on_failure.over_budget(scope, scope.begin(), requests=1, batches=1, started=NOW, now=NOW + 61 * SECOND)
    assert found is not None
    assert (found[0].task, found[1]) == (TaskTransition.PART, (RunReason.RESLICE,))


def test_transient_failures_defer_the_task_and_give_it_up_when_it_gets_nowhere():
    begun = scope_of(spec_of()).begin()
    step = on_failure.after_exhaustion(begun, TRANSIENT, batches=0, now=NOW, jitter=0.0)
    assert step.closing is not None
    assert (step.closing.task, step.closing.code, step.closing.level) == (
        TaskTransition.DEFER,
        RunReason.PUT_BACK_L1,
        "L1",
    )
    assert (step.checkpoint.fruitless, step.status) == (1, BatchStatus.FAILED)
    last = replace(begun, fruitless=MAX_FRUITLESS - 1)
    ended = on_failure.after_exhaustion(last, TRANSIENT, batches=0, now=NOW, jitter=0.0)
    assert ended.closing is not None
    assert (ended.closing.task, ended.closing.code) == (TaskTransition.FAIL, RunReason.GAVE_UP)
    onward = on_failure.after_exhaustion(last, TRANSIENT, batches=1, now=NOW, jitter=0.0)
    assert onward.checkpoint.fruitless == MAX_FRUITLESS - 1


def test_a_task_waits_at_least_as_long_as_the_provider_asks():
    begun = scope_of(spec_of()).begin()
    asked = replace(TRANSIENT, retry_after=3 * HOUR)
    step = on_failure.after_exhaustion(begun, asked, batches=1, now=NOW, jitter=0.0)
    assert step.closing is not None
    assert step.closing.due == NOW + 3 * HOUR


def test_a_list_whose_cursor_dies_starts_again_then_waits_or_is_cut_and_at_last_fails():
    wide, narrow = scope_of(spec_of()), scope_of(spec_of(), SMALLEST)
    again = on_failure.after_lost_cursor(wide, wide.begin(), wide.first, NOW)
    assert (again.closing, again.checkpoint.restarts, again.status) == (None, 1, BatchStatus.SKIPPED)
    tired = replace(wide.begin(), restarts=MAX_RESTARTS)
    for scope, restarts, task in (
        (wide, MAX_RESTARTS, TaskTransition.PART),
        (narrow, MAX_RESTARTS, TaskTransition.DEFER),
        (narrow, MAX_RESTARTS + MAX_FRUITLESS, TaskTransition.FAIL),
    ):
        step = on_failure.after_lost_cursor(scope, replace(tired, restarts=restarts), scope.first, NOW)
        assert step.closing is not None
        assert (step.closing.code, step.closing.task) == (RunReason.TOKEN_EXPIRED, task)


def test_a_list_deeper_than_the_provider_pages_is_cut_before_it_is_read():
    for window, code in ((WINDOW, RunReason.TOO_DEEP), (SMALLEST, RunReason.TOO_DEEP_AT_SMALLEST)):
        scope = scope_of(spec_of(), window)
        step = on_failure.too_deep(scope, scope.begin(), 40_000)
        assert step.closing is not None
        assert (step.closing.code, step.status) == (code, BatchStatus.SKIPPED)
        assert "40000 records" in step.closing.detail


@pytest.mark.parametrize(
    ("action", "code", "halt"),
    [(Action.FAIL, RunReason.FAILED_L2, False), (Action.HALT, RunReason.FAILED_L4, True)],
)
def test_a_refused_request_fails_the_task_and_a_fatal_one_halts_the_endpoint(action, code, halt):
    verdict = Verdict(action=action, code=RunReason.UNAUTHORIZED, level="L4", detail="401", advice="look")
    step = on_failure.after_refusal(scope_of(spec_of()).begin(), verdict)
    assert step.closing is not None
    assert (step.closing.code, step.closing.halt, step.closing.advice) == (code, halt, "look")
    assert step.healed == ((RunReason.HALTED,) if halt else ())


def test_the_waits_of_a_task_grow_and_are_bounded():
    begun = scope_of(spec_of()).begin()
    waits = []
    for fruitless in range(MAX_FRUITLESS - 1):
        step = on_failure.after_exhaustion(
            replace(begun, fruitless=fruitless), TRANSIENT, batches=0, now=NOW, jitter=0.0
        )
        assert step.closing is not None
        assert step.closing.due is not None
        waits.append(step.closing.due - NOW)
    assert waits == sorted(waits)
    assert 0 < waits[0] <= waits[-1] < 24 * 60 * MINUTE
