"""Where an answer that landed leads, without a store and without a clock."""

import pytest
from msgspec.structs import replace

from patra.ingest.execution import on_success
from patra.ingest.expressions.paths import last_name
from patra.ingest.extraction.completeness import Shortfall, with_shortfall
from patra.ingest.extraction.pagination import End, Next, Stop
from patra.ingest.fetching.resilience import HealthCounts, Thresholds
from patra.ingest.landing.run_state import DONE, BatchStatus, BatchTransition, Phase
from patra.ingest.planning.slicing.windows import Span
from patra.ingest.planning.states import TaskTransition
from patra.ingest.vocabulary.codes import Operation, RepeatedToken, TotalMeaning
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.clock import HOUR
from tests.unit.ingest.execution.scopes import NOW, SMALLEST, WINDOW, landing_of, scope_of, scope_of_ids, spec_of


def test_a_batch_that_lands_is_written_as_succeeded_by_the_table():
    step = on_success.Step(checkpoint=scope_of(spec_of()).begin())
    assert step.outcome is BatchTransition.LAND
    assert step.status is BatchStatus.SUCCEEDED


def test_a_page_with_a_next_one_moves_the_checkpoint_and_confirms_nothing_that_was_promised_a_total():
    scope = scope_of(spec_of())
    following = replace(scope.first, index=1, offset=100, total=250)
    begun = replace(scope.begin(), fruitless=3)
    step = on_success.after_page(
        scope, begun, scope.first, landing_of("a", newest=WINDOW.start + HOUR), Next(following), 250, NOW, items=1
    )
    assert (step.has_next, step.following, step.confirm, step.closing) == (True, following, None, None)
    assert (step.checkpoint.place, step.checkpoint.fruitless, step.checkpoint.at) == (following, 0, NOW)


@pytest.mark.parametrize(
    ("hours", "confirmed"),
    [([1, 2, 3], 1), ([1, 2, 99], 1), ([2, 1, 3], None), ([99, 1, 2], None), ([1], None), ([], None)],
)
def test_a_rising_list_without_a_total_confirms_what_lies_before_the_page(hours: list[int], confirmed: int | None):
    """One record with a wrong date confirms nothing, wherever it stands."""
    spec = spec_of()
    scope = scope_of(replace(spec, response=replace(spec.response, total_path=None)))
    following = replace(scope.first, index=1, offset=100)
    came = tuple(WINDOW.start + hour * HOUR for hour in hours)
    landing = replace(landing_of("a", newest=max(came, default=None)), instants=came)
    step = on_success.after_page(
        scope, scope.begin(), scope.first, landing, Next(following), None, NOW, items=len(hours)
    )
    end = None if confirmed is None else WINDOW.start + confirmed * HOUR
    assert step.confirm == (None if end is None else Span(WINDOW.start, end))
    assert step.checkpoint.confirmed == end


def test_the_end_of_a_list_that_adds_up_ends_the_run_and_confirms_the_window():
    scope = scope_of(spec_of())
    end = End(RunReason.END_TOTAL, replace(scope.first, index=1, seen=2, total=2))
    step = on_success.after_page(
        scope, scope.begin(), scope.first, landing_of("a", "b"), end, 2, NOW, items=2, distinct_ids=2
    )
    assert step.closing is DONE
    assert step.confirm == WINDOW
    assert step.checkpoint.over


def test_the_end_of_a_list_of_ids_waits_for_their_records():
    scope = scope_of(spec_of("twophase"))
    end = End(RunReason.END_SHORT, replace(scope.first, index=1, seen=2, total=2))
    step = on_success.after_page(
        scope, scope.begin(), scope.first, landing_of("7", "8"), end, 2, NOW, items=2, distinct_ids=2
    )
    assert (step.closing, step.checkpoint.pending, step.checkpoint.over) == (None, ("7", "8"), True)
    assert on_success.group(scope, step.checkpoint) == ("7", "8")


def test_a_window_that_does_not_add_up_is_incomplete_and_begins_anew():
    scope = scope_of(spec_of())
    begun = scope.begin()
    ledger = with_shortfall(begun.ledger, Shortfall(missing=3, why="fewer than promised"))
    step = on_success.finish_window(
        scope, replace(begun, over=True, place=replace(scope.first, index=9), ledger=ledger)
    )
    assert step.closing is not None
    assert (step.closing.code, step.closing.task) == (RunReason.INCOMPLETE, TaskTransition.FAIL)
    assert "3 missing" in step.closing.detail
    assert (step.checkpoint.place, step.checkpoint.over, step.confirm) == (scope.first, False, None)


def test_a_list_that_cannot_be_followed_is_cut_where_it_can_be_and_fails_where_it_cannot():
    spec = spec_of()
    stop = Stop(RunReason.BRIDGE, "page 10 is the last", scope_of(spec).first)
    for window, task in ((WINDOW, TaskTransition.PART), (SMALLEST, TaskTransition.FAIL)):
        scope = scope_of(spec, window)
        step = on_success.after_page(scope, scope.begin(), scope.first, landing_of("a"), stop, 5000, NOW, items=1)
        assert step.closing is not None
        assert (step.closing.code, step.closing.task) == (RunReason.BRIDGE, task)
        assert (step.closing.rest is not None) is (task is TaskTransition.PART)


@pytest.mark.parametrize("meaning", list(TotalMeaning))
@pytest.mark.parametrize("window", [WINDOW, SMALLEST])
@pytest.mark.parametrize("total", [900, 1000])
def test_a_list_that_reaches_the_depth_is_not_done_whatever_its_total_means(
    meaning: TotalMeaning, window: Span, total: int
):
    """It said 900 and went on to the 1000 that the provider pages, or 1000 as all larger lists do: neither is an end."""
    spec = spec_of()
    pagination = replace(spec.pagination, total=meaning)
    scope = scope_of(replace(spec, pagination=pagination, limits=replace(spec.limits, max_depth=1000)), window)
    end = End(RunReason.TOO_DEEP, replace(scope.first, index=10, seen=1000, total=total))
    step = on_success.after_page(
        scope, scope.begin(), scope.first, landing_of("a"), end, total, NOW, items=100, distinct_ids=1000
    )
    assert step.closing is not None
    if window == WINDOW:
        assert (step.closing.code, step.closing.task) == (RunReason.TOO_DEEP, TaskTransition.PART)
    else:
        assert (step.closing.code, step.closing.task) == (RunReason.TOO_DEEP_AT_SMALLEST, TaskTransition.FAIL)


def test_groups_of_details_shrink_on_demand_and_grow_back():
    spec = spec_of("twophase", Operation.UPDATE)
    ids = tuple(str(n) for n in range(500))
    scope = scope_of_ids(spec, ids)
    line = scope.course.line(Phase.DETAIL)
    size = line.leg.batching.id_batch_size
    begun = scope.begin()
    assert on_success.group(scope, begun) == ids[:size]
    halved = replace(begun, group=1)
    assert on_success.group(scope, halved) == ids[:1]
    step = on_success.after_details(scope, line, halved, ids[:1], NOW)
    assert (step.checkpoint.pending, step.checkpoint.group, step.has_next) == (ids[1:], 2, True)
    last = on_success.after_details(scope, line, replace(begun, pending=("1",)), ("1",), NOW)
    assert (last.closing, last.checkpoint.group) == (DONE, None)


def test_a_run_that_takes_over_a_dead_token_starts_the_list_again():
    spec = spec_of("token")
    scope = scope_of(replace(spec, pagination=replace(spec.pagination, repeated_token=RepeatedToken.FAIL)))
    midst = replace(scope.begin(), place=replace(scope.first, index=3, token="t"), at=0)
    assert on_success.resume_checkpoint(scope, midst, NOW).place == scope.first
    assert on_success.resume_checkpoint(scope, midst, NOW).restarts == 1
    fresh = replace(midst, at=NOW)
    assert on_success.resume_checkpoint(scope, fresh, NOW) == fresh
    moving = scope_of(spec)  # its cursor moves with every request
    assert on_success.resume_checkpoint(moving, fresh, NOW).place == moving.first


def test_healing_ends_a_run_whose_requests_are_refused_too_often():
    scope = scope_of(spec_of())
    step = on_success.Step(checkpoint=scope.begin(), has_next=True, following=replace(scope.first, index=1))
    sick = HealthCounts(requests=100, refused=100)
    found = on_success.heal_page(
        scope, scope.begin(), step, scope.first, None, sick, told_to_wait=False, limits=Thresholds()
    )
    assert found.closing is not None
    assert found.closing.code is RunReason.TASK_STOPPED
    well = on_success.heal_page(
        scope, scope.begin(), step, scope.first, None, HealthCounts(), told_to_wait=False, limits=Thresholds()
    )
    assert well == step


def test_a_page_shrinks_by_halves_down_to_ten_records():
    scope = scope_of(spec_of())
    sizes = []
    place = scope.first
    while on_success.can_shrink(scope, place):
        place = on_success.smaller(place)
        sizes.append(place.size)
    assert sizes == [50, 25, 12, 10]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("$.meta.updated", "updated"),
        ("/entry/atom:updated/text()", "updated"),
        ("$['updated']", "updated"),
        ("$['updated', 'created']", ""),
        ("", ""),
    ],
)
def test_the_date_that_records_are_read_by_is_the_last_name_of_its_path(path: str, name: str) -> None:
    assert last_name(path) == name
