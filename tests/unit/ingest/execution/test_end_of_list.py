"""Whether a list that no total counts is read again, and when two readings are enough."""

from types import SimpleNamespace
from typing import Any

import pytest

from patra.ingest.execution.end_of_list import verify_end
from patra.ingest.extraction.completeness import Shortfall
from patra.ingest.extraction.page_moves import End, PagePosition
from patra.ingest.extraction.pagination import MAX_PASSES, first
from patra.ingest.packs.sections import Pagination
from patra.ingest.vocabulary.codes import PaginationType, Step, TotalMeaning, Verify
from patra.ingest.vocabulary.run_reasons import RunReason

TWICE = {"type": PaginationType.OFFSET, "page_size": 30, "verify": Verify.TWICE}


def scope(pages: object = None, **pagination: Any) -> Any:
    spec = SimpleNamespace(pagination=Pagination(**{**TWICE, **pagination}))
    bounds = SimpleNamespace(bounds=SimpleNamespace(page=pages))
    return SimpleNamespace(spec=spec, first=first(spec.pagination), slice=bounds)


def after(where: Any, **place: Any) -> PagePosition | Shortfall | None:
    return verify_end(where, End(RunReason.END_EMPTY, PagePosition(**place)))


def test_the_second_reading_begins_anew_with_smaller_pages_and_knows_the_first() -> None:
    start = after(scope(), tally=7, size=30)
    assert isinstance(start, PagePosition)
    assert (start.offset, start.size, start.passes, start.earlier, start.tally) == (0, 20, 1, 7, 0)
    third = after(scope(), tally=8, earlier=7, passes=1)
    assert isinstance(third, PagePosition)
    assert (third.size, third.passes, third.earlier) == (30, 2, 8)


def test_readings_that_agree_are_enough_and_those_that_never_do_leave_the_window_open() -> None:
    assert after(scope(), tally=7, earlier=7, passes=1) is None
    assert isinstance(after(scope(), tally=7, earlier=6, passes=MAX_PASSES), Shortfall)


@pytest.mark.parametrize(
    "more", [{"verify": Verify.ONCE}, {"total": TotalMeaning.EXACT}, {"total": TotalMeaning.ESTIMATE}]
)
def test_a_list_that_is_counted_or_not_to_be_verified_is_read_once(more: dict[str, Any]) -> None:
    assert after(scope(**more), tally=7, total=9) is None


@pytest.mark.parametrize(("pages", "more"), [(object(), {}), (None, {"step": Step.REQUESTED})])
def test_pages_keep_their_size_where_something_goes_by_it(pages: object, more: dict[str, Any]) -> None:
    start = after(scope(pages, **more), tally=7)
    assert isinstance(start, PagePosition)
    assert start.size == 30
