"""The watermark never crosses a hole, never goes back, and forgets nothing that is finished (ruling I2)."""

from hypothesis import given
from hypothesis import strategies as st

from patra.ingest.landing.watermark import Frontier, confirm_window, finish, later_id, merge_spans, ordered_id
from patra.ingest.planning.slicing.windows import Span, gaps
from patra.ingest.vocabulary.codes import Direction
from patra.ingest.vocabulary.run_reasons import RunReason

BASE = 100
spans = st.builds(lambda start, width: Span(start, start + width), st.integers(0, 200), st.integers(0, 30))


def cells(windows) -> set[int]:
    return {cell for span in windows for cell in range(span.start, span.end)}


@given(windows=st.lists(spans, max_size=25))
def test_in_whatever_order_windows_finish_the_watermark_ends_where_the_unbroken_run_does(windows: list[Span]) -> None:
    frontier = Frontier(present=BASE)
    finished: set[int] = set()
    for window in windows:
        advance = finish(frontier, window)
        finished |= cells([window])
        after = advance.after
        assert after.present >= frontier.present
        assert set(range(BASE, after.present)) <= finished  # no hole under the watermark
        assert after.present not in finished or after.present < BASE  # and it stands as far as it can
        assert cells(after.done) == {cell for cell in finished if cell > after.present}  # nothing is forgotten
        assert list(after.done) == merge_spans(after.done)
        assert advance.has_moved == (advance.code is RunReason.ADVANCED)
        frontier = after


@given(windows=st.permutations([Span(start, start + 10) for start in range(100, 200, 10)]))
def test_once_all_windows_of_a_plan_are_finished_the_watermark_stands_at_its_end(windows: list[Span]) -> None:
    frontier = Frontier(present=BASE)
    for window in windows:
        frontier = finish(frontier, window).after
    assert frontier == Frontier(present=200)


@given(windows=st.lists(spans, max_size=25))
def test_backwards_it_is_the_same_in_a_mirror(windows: list[Span]) -> None:
    there, back = Frontier(present=BASE), Frontier(present=-BASE)
    for window in windows:
        forward = finish(there, window)
        backward = finish(back, Span(-window.end, -window.start), Direction.BACKFILL)
        assert backward.after.present == -forward.after.present
        assert backward.code is forward.code
        there, back = forward.after, backward.after


@given(windows=st.lists(spans, max_size=15), end=st.integers(100, 260))
def test_a_plan_made_of_what_is_missing_closes_every_hole_and_reads_nothing_twice(
    windows: list[Span], end: int
) -> None:
    frontier = Frontier(present=BASE)
    for window in windows:
        frontier = finish(frontier, window).after
    holes = gaps(Span(frontier.present, end), frontier.done) if frontier.present < end else []
    assert not cells(holes) & cells(windows) - set(range(frontier.present))
    for hole in reversed(holes):
        frontier = finish(frontier, hole).after
    assert frontier.present >= end


def test_the_last_batch_confirms_the_window_and_an_ascending_one_what_it_has_passed() -> None:
    window = Span(100, 200)
    assert confirm_window(window, over=True, ascending=False, oldest=None) == window
    assert confirm_window(window, over=False, ascending=False, oldest=150) is None
    assert confirm_window(window, over=False, ascending=True, oldest=150) == Span(100, 150)
    assert confirm_window(window, over=False, ascending=True, oldest=150, since=150) is None
    assert confirm_window(window, over=False, ascending=True, oldest=250) == window
    assert confirm_window(window, over=False, ascending=True, oldest=90) is None


def test_ids_are_ordered_by_number_where_they_are_numbers() -> None:
    assert sorted(["10", "9", "b", "A1", "010"], key=ordered_id) == ["9", "10", "010", "A1", "b"]
    assert later_id(None, []) is None
    assert later_id("9", ["10", "2"]) == "10"
    assert later_id("20", ["10"]) == "20"
