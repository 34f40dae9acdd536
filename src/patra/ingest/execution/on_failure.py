"""Decides from an answer that lands nothing what is done about it: wait, begin again, cut, give up (ch. 9.5, 12).

Pure: no store, no clock.
"""

from msgspec.structs import replace

from patra.ingest.execution.compiled_plan import TaskScope
from patra.ingest.execution.on_success import Step, part
from patra.ingest.extraction.classify import Action, Verdict
from patra.ingest.extraction.completeness import looks_behind
from patra.ingest.extraction.key_ranges import narrower
from patra.ingest.extraction.pagination import PagePosition
from patra.ingest.fetching.fetch import Fetched
from patra.ingest.landing.evidence import error_of
from patra.ingest.landing.run_state import BatchTransition, Checkpoint, Closing, defer_task, fail_task
from patra.ingest.packs.sections import Pagination
from patra.ingest.vocabulary.codes import PaginationType
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.clock import MINUTE, SECOND
from patra.kernel.retry import Backoff

MAX_RESTARTS = 3
MAX_FRUITLESS = 6
SIZE_CUTS = 16  # the smallest part of the largest window that is asked for because a page was too large
TASK_BACKOFF = Backoff(base=15 * SECOND, factor=2.0, cap=15 * MINUTE, spread=0.3)
"""How long a task waits after transient failures used up the attempts of a batch."""


def over_budget(
    scope: TaskScope, checkpoint: Checkpoint, *, requests: int, batches: int, started: int, now: int
) -> tuple[Closing, tuple[RunReason, ...]] | None:
    """The slice's time or its requests are used up; never before a first batch has landed."""
    budget = scope.slice.budget
    if not batches:
        return None
    if now - started > budget.max_duration_sec * SECOND:
        spent = "the slice's time is over"
    elif requests >= budget.max_requests:
        spent = "the slice's requests are used up"
    else:
        return None
    rest = scope.rest(checkpoint) or scope.remaining(checkpoint.place, checkpoint.pending)
    if rest is not None:
        return part(RunReason.BUDGET_SPENT, spent, rest, checkpoint.place.total), (RunReason.RESLICE,)
    return defer_task(RunReason.BUDGET_SPENT, now, f"{spent}; it goes on in its turn"), ()


def after_exhaustion(checkpoint: Checkpoint, verdict: Verdict, *, batches: int, now: int, jitter: float) -> Step:
    """Transient failures used up the attempts: the task waits and goes on, or is given up when it gets nowhere."""
    fruitless = checkpoint.fruitless + (batches == 0)
    wait = max(TASK_BACKOFF.delay(fruitless + 1, min(jitter, 0.999)), verdict.retry_after or 0)
    detail = error_of(verdict) or verdict.detail
    closing = defer_task(RunReason.PUT_BACK_L1, now + wait, detail)
    if fruitless >= MAX_FRUITLESS:
        closing = fail_task(RunReason.GAVE_UP, detail, level="L1")
    return Step(
        checkpoint=replace(checkpoint, fruitless=fruitless),
        closing=replace(closing, level=verdict.level),
        outcome=BatchTransition.FAIL,
    )


def after_lost_cursor(scope: TaskScope, checkpoint: Checkpoint, place: PagePosition, now: int) -> Step:
    """The cursor is not known any more: from the slice's confirmed point, which for a list is its beginning."""
    rest = scope.rest(checkpoint)
    checkpoint = replace(checkpoint, place=scope.first, restarts=checkpoint.restarts + 1, at=now)
    closing: Closing | None = None
    acts: tuple[RunReason, ...] = ()
    if checkpoint.restarts > MAX_RESTARTS and rest is not None:  # shorter lists live long enough
        closing = part(RunReason.TOKEN_EXPIRED, "the cursor dies before the list is read", rest, place.total)
        acts = (RunReason.RESLICE,)
    elif checkpoint.restarts > MAX_RESTARTS + MAX_FRUITLESS:
        closing = fail_task(RunReason.TOKEN_EXPIRED, "the cursor dies every time before the list is read", level="L2")
    elif checkpoint.restarts > MAX_RESTARTS:
        due = now + TASK_BACKOFF.delay(checkpoint.restarts - MAX_RESTARTS, 0.5)
        closing = defer_task(RunReason.TOKEN_EXPIRED, due, "the cursor dies before the list is read; the task waits")
    return Step(checkpoint=checkpoint, closing=closing, has_next=True, outcome=BatchTransition.SKIP, healed=acts)


def too_large(scope: TaskScope, checkpoint: Checkpoint, verdict: Verdict) -> Step:
    """A body past the bound, and pages cannot be made smaller: smaller slices where they may help, or a loud end."""
    rest = scope.rest(checkpoint)
    if rest is None or not _narrower_helps(scope, checkpoint.place):
        return after_refusal(checkpoint, verdict)
    closing = part(RunReason.RESLICE, verdict.detail, rest)
    return Step(checkpoint=checkpoint, closing=closing, outcome=BatchTransition.FAIL, healed=(RunReason.RESLICE,))


def after_bisection(scope: TaskScope, checkpoint: Checkpoint, verdict: Verdict) -> Step:
    """A rule of the pack says that the window holds too much: it is cut in two, and the smallest one fails."""
    if (rest := scope.rest(checkpoint)) is None:
        return after_refusal(checkpoint, verdict)
    closing = part(RunReason.RESLICE, verdict.detail, rest)
    return Step(checkpoint=checkpoint, closing=closing, outcome=BatchTransition.SKIP, healed=(RunReason.RESLICE,))


def _narrower_helps(scope: TaskScope, place: PagePosition) -> bool:
    """Whether fewer records in the window may make a smaller body, or whether it is one that only grows (a bomb).

    A list without pages comes as a whole, so its size is the window's. A page is no larger for a wide window: one of
    the fewest records is as small as it gets, others may become a little smaller, which is tried a few times only.
    """
    if place.size is None or scope.window is None:
        return True
    if scope.spec.pagination.type in {PaginationType.OFFSET, PaginationType.TIME}:
        return False  # its pages were made smaller first
    return scope.window.width * SIZE_CUTS > scope.spec.window.max_us


def too_deep(scope: TaskScope, checkpoint: Checkpoint, total: int) -> Step:
    """More records than the provider pages (ruling I4): cut before reading, by time and at the smallest by the key.

    Without a key, or with a single one, it fails loudly.
    """
    detail = f"{total} records, and the provider pages {scope.spec.limits.max_depth} deep"
    if (rest := scope.rest(checkpoint)) is None:
        ranges = narrower(checkpoint.ranges, scope.spec.planning.key_bounds)
        if ranges is not None:
            begun = replace(checkpoint, place=scope.first, ranges=ranges)
            acts = (RunReason.KEY_RANGES,)
            return Step(checkpoint=begun, has_next=True, outcome=BatchTransition.SKIP, healed=acts)
        advice = "lower `window.minWindow`, narrow the query, or declare `planning.keyBounds`"
        closing = fail_task(RunReason.TOO_DEEP_AT_SMALLEST, detail, level="L2", advice=advice)
        return Step(checkpoint=checkpoint, closing=closing, outcome=BatchTransition.SKIP)
    closing = part(RunReason.TOO_DEEP, detail, rest, total)
    return Step(checkpoint=checkpoint, closing=closing, outcome=BatchTransition.SKIP, healed=(RunReason.RESLICE,))


def behind_the_end(
    pagination: Pagination, place: PagePosition, fetched: Fetched, earlier: Fetched | None
) -> Fetched | None:
    """The end of the list, where a refusal or an answer without a list stands behind a short page; else the answer.

    One such answer may be a slip of the provider. None: the same page is to be asked for once more, and it is the end
    only when that answer is the same as the `earlier` one.
    """
    verdict, answer = fetched.verdict, fetched.answer
    refused = verdict.action is Action.FAIL or verdict.code is RunReason.SCHEMA_CHANGED
    after_short = place.last is not None and place.size is not None and place.last < place.size
    if answer is None or not refused or verdict.rule or not after_short or not looks_behind(pagination, place):
        return fetched
    if earlier is None:
        return None
    before = earlier.answer
    if before is None or (before.status, earlier.verdict.code) != (answer.status, verdict.code):
        return fetched
    detail = (
        f"the page behind the first {place.seen} records was answered twice with {answer.status} and no list: as the "
        f"page before it held {place.last} of {place.size}, that is taken for the end"
    )
    return replace(fetched, verdict=Verdict(action=Action.END, code=RunReason.END_SHORT, detail=detail), listed=None)


def after_refusal(checkpoint: Checkpoint, verdict: Verdict) -> Step:
    """The request itself is at fault (L2), or the source is halted until an operator lifts it (L4)."""
    halt = verdict.action is Action.HALT
    closing = fail_task(
        RunReason.FAILED_L4 if halt else RunReason.FAILED_L2,
        error_of(verdict) or verdict.detail,
        level=verdict.level,
        advice=verdict.advice,
        halt=halt,
    )
    acts = (RunReason.HALTED,) if halt else ()
    return Step(checkpoint=checkpoint, closing=closing, outcome=BatchTransition.FAIL, healed=acts)
