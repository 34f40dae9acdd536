"""Decides for a harvest by a key that only grows whether a list that ended is whole, and how it goes on (4.4.3).

Pure: no store, no clock.
"""

from patra.ingest.execution.compiled_plan import TaskScope
from patra.ingest.extraction.completeness import Shortfall
from patra.ingest.extraction.key_ranges import KeyRanges, continue_ranges
from patra.ingest.extraction.pagination import End, has_moved
from patra.ingest.landing.run_state import Checkpoint
from patra.ingest.vocabulary.codes import TotalMeaning
from patra.ingest.vocabulary.run_reasons import RunReason

RAISE_MAX_PAGE = "raise `pagination.maxPage`, or leave it out: reading the same again ends at the same page"
DEEP_BY_KEY = "put ${key.from} into the query and say `ordering.orderBy` with `asc`, or page by token or URL"


def from_the_last_key(scope: TaskScope, checkpoint: Checkpoint, end: End) -> KeyRanges | None:
    """What is left of a list that is deeper than the provider pages: a list of its own, from the last key on.

    None where the list does not rise or changed while it was read: it is read again, or is incomplete.
    """
    growing, last, pagination = scope.growing_key, checkpoint.last_key, scope.spec.pagination
    if growing is None or last is None or not scope.course.rises_from_a_key or last != checkpoint.highest:
        return None
    if has_moved(pagination, end) or (end.place.grew and not end.place.passes):
        return None
    first = last + (growing.field is None)
    return continue_ranges(checkpoint.ranges, checkpoint.ledger.listing, growing.first, first)


def above_what_is_known(scope: TaskScope, checkpoint: Checkpoint, end: End) -> Shortfall | None:
    """A list that falls from its largest key and ends before it comes to a known one: what lies between may be missing.

    It is believed where it adds up to a total that counts the records, and where it was left at what is known.
    """
    after, last = scope.after_key, checkpoint.last_key
    if after is None or end.code is RunReason.END_ORDERED or not scope.course.falls_to_known_keys:
        return None
    counted = scope.spec.pagination.total is TotalMeaning.EXACT and end.place.total is not None
    if counted or (last is not None and last <= after):
        return None
    where = "without a key" if last is None else f"at key {last}"
    return Shortfall(missing=1, why=f"the list ended {where} before it came to {after}, up to which it was read before")
