"""Decides whether a list that ended is whole: what it lacks, and whether it is read once more to see (ruling I10).

Pure: no store, no clock.
"""

from msgspec.structs import replace

from patra.ingest.execution.compiled_plan import TaskScope
from patra.ingest.execution.growing_keys import above_what_is_known
from patra.ingest.extraction.completeness import Shortfall, fewest, hole
from patra.ingest.extraction.pagination import MAX_PASSES, End, PagePosition, short_of
from patra.ingest.landing.run_state import Checkpoint
from patra.ingest.packs.sections import Pagination
from patra.ingest.vocabulary.codes import PaginationType, Step, TotalMeaning, Verify
from patra.ingest.vocabulary.run_reasons import RunReason

OWN_ENDS = frozenset({RunReason.END_RANGE, RunReason.END_WINDOW, RunReason.END_ORDERED})
"""Where a slice ends by itself, and not because its list does."""


def lacking(
    scope: TaskScope, checkpoint: Checkpoint, end: End, items: int, distinct_ids: int | None
) -> Shortfall | None:
    """What a list that ended with a page of so many places lacks."""
    pagination = scope.spec.pagination
    if end.code not in OWN_ENDS:
        short = short_of(pagination, end.place, items, distinct_ids) or hole(pagination, end.place)
        if short is not None:
            return short
    return _unreported_total(scope, end, items) or above_what_is_known(scope, checkpoint, end)


def _unreported_total(scope: TaskScope, end: End, items: int) -> Shortfall | None:
    """A list of several pages, or of a full one, on which the declared total is not a number: nothing counts it.

    An end that the provider states (`hasMorePath`) needs no total, nor does a harvest by key, which goes on from its
    largest one.
    """
    pagination, place, path = scope.spec.pagination, end.place, scope.course.listing.leg.response.total_path
    counted = path is None or pagination.total is not TotalMeaning.EXACT or place.total is not None
    stated = end.code not in {RunReason.END_NO_NEXT, RunReason.END_SHORT, RunReason.END_EMPTY, RunReason.END_REPEATED}
    one = place.seen == items or (not items and place.index == 2)  # the second page may only show that it is over
    several = not one or (place.size is not None and place.seen >= place.size)
    if counted or stated or not several or scope.spec.by_key:
        return None
    return Shortfall(missing=1, why=f"no page gave a number at `totalPath` ({path}), and {place.seen} records came")


def verify_end(scope: TaskScope, end: End) -> PagePosition | Shortfall | None:
    """`verify: TWICE`: where to read the list again, what it lacks if no two readings agree; None: nothing to do.

    The next reading asks for pages of another size: a page that the provider leaves out lies elsewhere then.
    """
    pagination, place = scope.spec.pagination, end.place
    if pagination.verify is Verify.ONCE or fewest(pagination, place.total) is not None:
        return None
    if place.earlier == place.tally:
        return None
    if place.passes >= MAX_PASSES:
        return Shortfall(missing=1, why=f"no two of {place.passes + 1} readings gave the same records")
    start = replace(scope.first, passes=place.passes + 1, earlier=place.tally)
    return replace(start, size=_size_of_reading(scope, pagination, start.passes))


def _size_of_reading(scope: TaskScope, pagination: Pagination, number: int) -> int | None:
    """Pages of every other reading are smaller by a third, where nothing else goes by their size."""
    size = scope.first.size
    fixed = scope.slice.bounds.page is not None or pagination.step is Step.REQUESTED
    if size is None or size < 2 or (fixed and pagination.type in {PaginationType.OFFSET, PaginationType.PAGE}):
        return size
    return size - max(size // 3, 1) if number % 2 else size
