"""An answer that lands nothing goes in; what is done about it comes out: wait, begin again, cut, give up (ch. 9.5, 12).

Pure: no store, no clock.
"""

from msgspec.structs import replace

from patra.ingest.classify import Action, Verdict
from patra.ingest.codes import PaginationType
from patra.ingest.course import Scope
from patra.ingest.evidence import error_of
from patra.ingest.paging import Place
from patra.ingest.reasons_running import X
from patra.ingest.runs import BatchStatus, Checkpoint, Closing, deferred, failed
from patra.ingest.steps import Step, part
from patra.kernel.clock import MINUTE, SECOND
from patra.kernel.retry import Backoff

MAX_RESTARTS = 3
MAX_FRUITLESS = 6
SIZE_CUTS = 16  # the smallest part of the largest window that is asked for because a page was too large
PATIENCE = Backoff(base=15 * SECOND, factor=2.0, cap=15 * MINUTE, spread=0.3)
"""How long a task waits after transient failures used up the attempts of a batch."""


def over_budget(
    scope: Scope, checkpoint: Checkpoint, *, requests: int, batches: int, started: int, now: int
) -> tuple[Closing, tuple[X, ...]] | None:
    """The slice's time or its requests are used up; never before a first batch has landed."""
    budget = scope.slice.budget
    if not batches:
        return None
    if now - started > budget.max_duration_sec * SECOND:
        return deferred(X.BUDGET_SPENT, now, "the slice's time is over; it goes on in its turn"), ()
    if requests >= budget.max_requests:
        rest = scope.rest(checkpoint)
        if rest is not None:
            return part(X.BUDGET_SPENT, "the slice's requests are used up", rest), (X.RESLICE,)
        return deferred(X.BUDGET_SPENT, now, "the slice's requests are used up; it goes on in its turn"), ()
    return None


def exhausted(checkpoint: Checkpoint, verdict: Verdict, *, batches: int, now: int, jitter: float) -> Step:
    """Transient failures used up the attempts: the task waits and goes on, or is given up when it gets nowhere."""
    fruitless = checkpoint.fruitless + (batches == 0)
    wait = max(PATIENCE.delay(fruitless + 1, min(jitter, 0.999)), verdict.retry_after or 0)
    detail = error_of(verdict) or verdict.detail
    closing = deferred(X.PUT_BACK_L1, now + wait, detail)
    if fruitless >= MAX_FRUITLESS:
        closing = failed(X.GAVE_UP, detail, level="L1")
    return Step(
        checkpoint=replace(checkpoint, fruitless=fruitless),
        closing=replace(closing, level=verdict.level),
        status=BatchStatus.FAILED,
    )


def restarted(scope: Scope, checkpoint: Checkpoint, place: Place, now: int) -> Step:
    """The cursor is not known any more: from the slice's confirmed point, which for a list is its beginning."""
    rest = scope.rest(checkpoint)
    checkpoint = replace(checkpoint, place=scope.first, restarts=checkpoint.restarts + 1, at=now)
    closing: Closing | None = None
    acts: tuple[X, ...] = ()
    if checkpoint.restarts > MAX_RESTARTS and rest is not None:  # shorter lists live long enough
        closing = part(X.TOKEN_EXPIRED, "the cursor dies before the list is read", rest, place.total)
        acts = (X.RESLICE,)
    elif checkpoint.restarts > MAX_RESTARTS + MAX_FRUITLESS:
        closing = failed(X.TOKEN_EXPIRED, "the cursor dies every time before the list is read", level="L2")
    elif checkpoint.restarts > MAX_RESTARTS:
        due = now + PATIENCE.delay(checkpoint.restarts - MAX_RESTARTS, 0.5)
        closing = deferred(X.TOKEN_EXPIRED, due, "the cursor dies before the list is read; the task waits")
    return Step(checkpoint=checkpoint, closing=closing, has_next=True, status=BatchStatus.SKIPPED, healed=acts)


def too_large(scope: Scope, checkpoint: Checkpoint, verdict: Verdict) -> Step:
    """A body past the bound, and pages cannot be made smaller: smaller slices where they may help, or a loud end."""
    rest = scope.rest(checkpoint)
    if rest is None or not _narrower_helps(scope, checkpoint.place):
        return refused(checkpoint, verdict)
    closing = part(X.RESLICE, verdict.detail, rest)
    return Step(checkpoint=checkpoint, closing=closing, status=BatchStatus.FAILED, healed=(X.RESLICE,))


def _narrower_helps(scope: Scope, place: Place) -> bool:
    """Whether fewer records in the window may make a smaller body, or whether it is one that only grows (a bomb).

    A list without pages comes as a whole, so its size is the window's. A page is no larger for a wide window: one of
    the fewest records is as small as it gets, others may become a little smaller, which is tried a few times only.
    """
    if place.size is None or scope.window is None:
        return True
    if scope.spec.pagination.type in {PaginationType.OFFSET, PaginationType.TIME}:
        return False  # its pages were made smaller first
    return scope.window.width * SIZE_CUTS > scope.spec.window.max_us


def too_deep(scope: Scope, checkpoint: Checkpoint, total: int) -> Step:
    """More records than the provider pages (ruling I4): cut before reading, or fail loudly at the smallest."""
    detail = f"{total} records, and the provider pages {scope.spec.limits.max_depth} deep"
    if (rest := scope.rest(checkpoint)) is None:
        advice = "lower `window.minWindow` or narrow the query"
        closing = failed(X.TOO_DEEP_AT_SMALLEST, detail, level="L2", advice=advice)
        return Step(checkpoint=checkpoint, closing=closing, status=BatchStatus.SKIPPED)
    closing = part(X.TOO_DEEP, detail, rest, total)
    return Step(checkpoint=checkpoint, closing=closing, status=BatchStatus.SKIPPED, healed=(X.RESLICE,))


def refused(checkpoint: Checkpoint, verdict: Verdict) -> Step:
    """The request itself is at fault (L2), or the source stands still until somebody has looked (L4)."""
    halt = verdict.action is Action.HALT
    closing = failed(
        X.FAILED_L4 if halt else X.FAILED_L2,
        error_of(verdict) or verdict.detail,
        level=verdict.level,
        advice=verdict.advice,
        halt=halt,
    )
    acts = (X.HALTED,) if halt else ()
    return Step(checkpoint=checkpoint, closing=closing, status=BatchStatus.FAILED, healed=acts)
