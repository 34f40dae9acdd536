"""Decides from an answer that landed where it leads: the next place, what is confirmed, the end (ch. 4.3.3, 9.3).

Pure: no store, no clock. What goes wrong is `on_failure.py`'s business.
"""

from itertools import pairwise

import msgspec
from msgspec.structs import replace

from patra.ingest.execution.compiled_plan import TaskScope
from patra.ingest.execution.end_of_list import lacking, verify_end
from patra.ingest.execution.growing_keys import DEEP_BY_KEY, RAISE_MAX_PAGE, from_the_last_key
from patra.ingest.expressions.paths import last_name
from patra.ingest.extraction.completeness import Ledger, Shortfall, advice, fewest, with_shortfall
from patra.ingest.extraction.key_ranges import KeyRanges, after_range, recount_ledger
from patra.ingest.extraction.pagination import (
    End,
    Move,
    Next,
    PagePosition,
    Probe,
    Range,
    Stop,
    again,
    doubt_end,
    follow,
    has_moved,
    is_capped,
    last_again,
    short_of,
    stateful,
)
from patra.ingest.fetching.endpoint_client import EndpointClient
from patra.ingest.fetching.fetch import Fetched
from patra.ingest.fetching.resilience import HealthCounts, Thresholds, heal
from patra.ingest.landing.page_records import Landing, page_of
from patra.ingest.landing.run_state import (
    BATCH,
    DONE,
    BatchStatus,
    BatchTransition,
    Checkpoint,
    Closing,
    RunTransition,
    fail_task,
)
from patra.ingest.landing.watermark import confirm_window
from patra.ingest.planning.slicing.slice_groups import Rest
from patra.ingest.planning.slicing.slice_spec import expected_details
from patra.ingest.planning.slicing.windows import Span
from patra.ingest.planning.states import TaskTransition
from patra.ingest.vocabulary.codes import Operation, PaginationType
from patra.ingest.vocabulary.reasons import Reason
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.clock import parse_duration

LEAVE_THE_CIRCLE = (
    "look at the pages with `patra ingest batches`; if the list ends there, say how it shows: `response.hasMorePath`, "
    "`pagination.repeatedToken: END` or `shortPage: END`; then run the same again"
)
MIN_PAGE_RECORDS = 10  # records of the smallest page that is asked for


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch leads to: the checkpoint after it, what it confirms, and the end of the run if it is one."""

    checkpoint: Checkpoint
    confirm: Span | None = None
    closing: Closing | None = None
    has_next: bool = False
    following: PagePosition | None = None
    outcome: BatchTransition = BatchTransition.LAND
    healed: tuple[RunReason, ...] = ()
    """What was done about the state of things, by the matrix of 12.2."""

    @property
    def status(self) -> BatchStatus:
        """The state in which the batch is written: it is over by then."""
        return BATCH.target(BatchStatus.RUNNING, self.outcome)


def resume_checkpoint(scope: TaskScope, checkpoint: Checkpoint, now: int, *, attempt: int = 1) -> Checkpoint:
    """What a new run must not take over from the last: a cursor that moved on, or a token that died meanwhile."""
    pagination = scope.spec.pagination
    if checkpoint.over:
        return checkpoint
    if checkpoint.ranges.todo and checkpoint.place.index == 0:
        return checkpoint
    if checkpoint.place.index == 0 and not checkpoint.place.passes:  # nothing of it was read, or all is read again
        return replace(checkpoint, ledger=Ledger(), counted_since=attempt)
    ttl = parse_duration(pagination.token_ttl) if pagination.token_ttl else None
    old = ttl is not None and now - checkpoint.at > ttl
    if stateful(pagination) or (old and pagination.type in {PaginationType.TOKEN, PaginationType.URL}):
        return replace(checkpoint, place=scope.first, restarts=checkpoint.restarts + 1)
    return checkpoint


def group(scope: TaskScope, checkpoint: Checkpoint) -> tuple[str, ...]:
    """Ids whose records are fetched now: when enough of them wait, or no more will come."""
    if not checkpoint.pending:
        return ()
    batching = (scope.course.detail or scope.course.listing).leg.batching
    size = checkpoint.group or batching.id_batch_size
    if not checkpoint.over and len(checkpoint.pending) < batching.combine_threshold:
        return ()
    return checkpoint.pending[:size]


def move_on(
    scope: TaskScope,
    line: EndpointClient,
    checkpoint: Checkpoint,
    place: PagePosition,
    fetched: Fetched,
    landing: Landing,
    items: int,
    *,
    overlaps: bool = False,
    tally: int = 0,
) -> Move:
    """Where the list goes on after a page; `overlaps`: a record on it was on an earlier page of this reading."""
    listed = fetched.listed
    pagination = scope.spec.pagination
    if listed is None:  # EMPTY or END: the provider says that there is nothing more
        note = fetched.verdict.detail if fetched.verdict.code is RunReason.END_SHORT else ""
        end = End(fetched.verdict.code, replace(place, index=place.index + 1), note)
        return doubt_end(pagination, place, end, 0) or end
    page = replace(page_of(line, listed, landing, items), overlaps=overlaps and not scope.spec.by_key, tally=tally)
    pages = scope.slice.bounds.page
    last = pages.to_page - pages.from_page + 1 if pages is not None and pages.to_page is not None else None
    until = scope.window.end if scope.window else None
    splittable = scope.rest(checkpoint) is not None or scope.remaining(place, ()) is not None
    bounds = Range(
        last_page=last,
        until_offset=scope.until_offset,
        until=until,
        splittable=splittable,
        max_depth=scope.spec.limits.max_depth,
        grows=scope.spec.by_key,
        grows_at_head=scope.course.largest_key_first,
    )
    following = follow(pagination, place, page, bounds)
    before = checkpoint.last_key if place.index else None
    if isinstance(following, Next) and _past_the_window(scope, line, landing, before):
        return End(RunReason.END_ORDERED, following.place)
    return following


def _past_the_window(scope: TaskScope, line: EndpointClient, landing: Landing, before: int | None) -> bool:
    """Whether a list that is in the order of its watermark, and filtered here, has nothing more for the window.

    A page that is not in the declared order is no reason to stop, nor is an order by another date than the one that is
    read from the records: nothing is guessed in the losing direction (I11). One record alone shows no order; `before`
    is the key with which the page before it ended.
    """
    spec, window = scope.spec, scope.covers
    ordering = spec.ordering
    if spec.by_key:
        keys, growing = landing.growing, scope.growing_key
        if growing is None or not keys or landing.bad or not scope.course.largest_key_first:
            return False
        came = keys if before is None else (before, *keys)
        if before is None and growing.after is not None and keys[0] < growing.after:
            return False  # the largest known key is gone, or others stand before it: the next page shows the order
        return len(came) > 1 and all(a >= b for a, b in pairwise(came)) and growing.was_read(keys[0])
    declared = spec.window.client_filter and ordering.stable and ordering.monotonic
    came = landing.instants
    if not declared or window is None or landing.bad or len(came) < 2:
        return False
    if last_name(line.leg.response.updated_at_path or "") != spec.window.watermark_key:
        return False
    match ordering.order_by.split():
        case [key, "desc"] if key == spec.window.watermark_key:
            return came[0] < window.start and all(a >= b for a, b in pairwise(came))
        case [key, "asc"] if key == spec.window.watermark_key:
            return came[0] >= window.end and all(a <= b for a, b in pairwise(came))
        case _:
            return False


def after_page(
    scope: TaskScope,
    checkpoint: Checkpoint,
    place: PagePosition,
    landing: Landing,
    move: Move,
    total: int | None,
    now: int,
    *,
    items: int,
    distinct_ids: int | None = None,
) -> Step:
    """Where a landed page of so many places leads; `distinct_ids`: records of the window so far, if they are known."""
    known = checkpoint
    checkpoint = replace(checkpoint, fruitless=0, at=now)
    if scope.course.detail is not None:
        checkpoint = replace(checkpoint, pending=tuple(dict.fromkeys([*checkpoint.pending, *landing.ids])))
    match move:
        case Next(following):
            confirm = _confirmed_span(scope, known, landing, following)
            if confirm is not None:
                checkpoint = replace(checkpoint, confirmed=confirm.end)
            checkpoint = replace(checkpoint, place=following)
            return Step(checkpoint=checkpoint, confirm=confirm, has_next=True, following=following)
        case End():
            came = len(landing.ids) + len(landing.bad) + landing.outside
            if (cut := _cut_at_depth(scope, known, checkpoint, move, came)) is not None:
                return cut
            pagination = scope.spec.pagination
            short = lacking(scope, checkpoint, move, items, distinct_ids)
            start = replace(scope.first, passes=place.passes)
            once_more = again(pagination, move, start, short=short is not None)
            if once_more is not None:
                checkpoint = replace(checkpoint, place=once_more)
                return Step(checkpoint=checkpoint, has_next=True, following=once_more, healed=(RunReason.DRIFTED,))
            if has_moved(pagination, move):
                if (rest := scope.rest(known)) is not None:  # shorter lists are read before they change
                    detail = "the list changed every time while it was read"
                    closing = part(RunReason.DRIFTED, detail, rest, move.place.total)
                    return Step(checkpoint=checkpoint, closing=closing, healed=(RunReason.RESLICE,))
                short = short or Shortfall(missing=1, why="the list changed every time while it was read")
            second = None if short is not None else verify_end(scope, move)
            if isinstance(second, PagePosition):
                checkpoint = replace(checkpoint, place=second)
                return Step(checkpoint=checkpoint, has_next=True, following=second)
            short = short or second
            last = last_again(scope.spec.pagination, place, len(landing.ids)) if _rereads(scope) else None
            if last is not None:
                return Step(checkpoint=replace(checkpoint, place=last), has_next=True, following=last)
            ranges = after_range(checkpoint.ranges, checkpoint.ledger)
            if ranges.todo and short is None:
                return Step(checkpoint=replace(checkpoint, place=scope.first, ranges=ranges), has_next=True)
            agreed = move.place.earlier is not None and move.place.earlier == move.place.tally
            ledger = with_shortfall(checkpoint.ledger, short, move.note, agreed=agreed)
            checkpoint = replace(checkpoint, place=move.place, over=True, ledger=ledger)
            return Step(checkpoint=checkpoint) if checkpoint.pending else finish_window(scope, checkpoint)
        case Stop(code, detail, following):
            rest = scope.rest(known) or scope.remaining(following, checkpoint.pending)
            if code is RunReason.BRIDGE and rest is not None:
                return Step(checkpoint=checkpoint, closing=part(code, detail, rest, total), healed=(RunReason.RESLICE,))
            if code is not RunReason.MAX_PAGE:
                what = LEAVE_THE_CIRCLE if code is RunReason.LOOP else ""
                return Step(checkpoint=checkpoint, closing=fail_task(code, detail, level="L2", advice=what))
            closing = fail_task(code, detail, level="L2", advice=RAISE_MAX_PAGE)
            further = _behind_max_page(scope, checkpoint, End(code, following))
            return further or Step(checkpoint=checkpoint, closing=closing)
        case Probe():
            raise AssertionError("a probe lands nothing")


def after_ranges(scope: TaskScope, checkpoint: Checkpoint, total: int | None, now: int) -> Step:
    """All ranges of the key are read, and the whole was counted once more: the end of the list, short or not."""
    ledger = recount_ledger(checkpoint.ledger, total)
    checkpoint = replace(checkpoint, over=True, ledger=ledger, ranges=KeyRanges(), fruitless=0, at=now)
    return Step(checkpoint=checkpoint) if checkpoint.pending else finish_window(scope, checkpoint)


def _cut_at_depth(scope: TaskScope, known: Checkpoint, after: Checkpoint, move: End, items: int) -> Step | None:
    """A list that ended where the provider pages no deeper (ruling I4): smaller slices, or a loud end."""
    depth, end = scope.spec.limits.max_depth, move.place
    if move.code is not RunReason.TOO_DEEP and not is_capped(scope.spec.pagination, end, items, depth):
        return None
    if (further := _from_the_last_key(scope, after, move)) is not None:
        return further
    detail = f"{end.seen} records came, and the provider pages {depth} deep"
    if (rest := scope.rest(known)) is not None:
        return Step(
            checkpoint=after, closing=part(RunReason.TOO_DEEP, detail, rest, end.total), healed=(RunReason.RESLICE,)
        )
    if short_of(scope.spec.pagination, end, items) is not None:  # the count says how many are missing
        return None
    advice = DEEP_BY_KEY if scope.spec.by_key else "lower `window.minWindow` or narrow the query"
    return Step(checkpoint=after, closing=fail_task(RunReason.TOO_DEEP_AT_SMALLEST, detail, level="L2", advice=advice))


def _from_the_last_key(scope: TaskScope, checkpoint: Checkpoint, end: End) -> Step | None:
    """A harvest by key asks for the rest of a rising list from its last key on, where it may be paged no deeper."""
    if (ranges := from_the_last_key(scope, checkpoint, end)) is None:
        return None
    going_on = replace(checkpoint, place=scope.first, ranges=ranges)
    return Step(checkpoint=going_on, has_next=True, following=scope.first, healed=(RunReason.KEY_RANGES,))


def _behind_max_page(scope: TaskScope, checkpoint: Checkpoint, end: End) -> Step | None:
    """How a rising list by key goes on at `maxPage`; one that changed while it was read is read again first."""
    pagination = scope.spec.pagination
    if not pagination.bridge_to_time or not scope.course.rises_from_a_key:
        return None
    once_more = again(pagination, end, replace(scope.first, passes=end.place.passes))
    if once_more is None:
        return _from_the_last_key(scope, checkpoint, end)
    going_on = replace(checkpoint, place=once_more)
    return Step(checkpoint=going_on, has_next=True, following=once_more, healed=(RunReason.DRIFTED,))


def after_details(
    scope: TaskScope, line: EndpointClient, checkpoint: Checkpoint, ids: tuple[str, ...], now: int
) -> Step:
    """Where a landed group of details leads."""
    size = line.leg.batching.id_batch_size
    grown = None if checkpoint.group is None or checkpoint.group * 2 >= size else checkpoint.group * 2
    checkpoint = replace(checkpoint, fruitless=0, at=now, pending=checkpoint.pending[len(ids) :], group=grown)
    return finish_window(scope, checkpoint) if checkpoint.is_finished else Step(checkpoint=checkpoint, has_next=True)


def finish_window(scope: TaskScope, checkpoint: Checkpoint) -> Step:
    """The end of a window: done when it adds up, else incomplete and read again by the next run (I10)."""
    window, short = scope.window, checkpoint.ledger.listing
    if not checkpoint.ledger.missing:
        return Step(checkpoint=checkpoint, confirm=window, closing=DONE)
    detail = f"incomplete, {short.missing} missing: {short.why}; read {short.readings} times"
    closing = fail_task(RunReason.INCOMPLETE, detail, advice=advice(scope.spec.pagination))
    anew = replace(scope.begin(), ledger=checkpoint.ledger, at=checkpoint.at)
    return Step(checkpoint=anew, closing=closing)


def heal_page(
    scope: TaskScope,
    checkpoint: Checkpoint,
    step: Step,
    place: PagePosition,
    total: int | None,
    pulse: HealthCounts,
    *,
    told_to_wait: bool,
    limits: Thresholds,
    body_bytes: int = 0,
    run_requests: int = 0,
    run_throttled: int = 0,
) -> Step:
    """What the matrix of 12.2 says after a page that has a next one; the failures in a row are the circuit's."""
    following = step.checkpoint
    rest = scope.rest(checkpoint) or scope.remaining(following.place, following.pending)
    pages = scope.slice.budget.expected_requests - expected_details(scope.spec, scope.slice)
    expected = pages if scope.slice.telemetry.total_estimated is not None else None
    vitals: HealthCounts = replace(
        pulse,
        failures_in_row=0,
        pages=place.index + 1,
        pages_expected=expected,
        splittable=rest is not None and (total is None or total > (place.size or 1) * (place.index + 2)),
        page_can_shrink=can_shrink(scope, place),
        retry_after=told_to_wait,
        body_bytes=body_bytes,
        body_bytes_most=scope.spec.planning.reslice_bytes,
        run_requests=run_requests,
        run_throttled=run_throttled,
        throttled_most=scope.spec.planning.reslice_throttled,
    )
    for found in heal(vitals, limits):
        step = replace(step, healed=(*step.healed, found.act))
        match found.act:
            case RunReason.PAGE_SHRINK if step.following is not None:
                step = replace(step, checkpoint=replace(step.checkpoint, place=smaller(step.following)))
            case RunReason.RESLICE if rest is not None:
                return replace(step, closing=part(RunReason.RESLICE, found.row.replace("_", " "), rest, total))
            case RunReason.TASK_STOPPED:
                detail = "more refused requests than the threshold"
                return replace(step, closing=fail_task(RunReason.TASK_STOPPED, detail, level="L2"))
            case _:
                pass
    return step


def _rereads(scope: TaskScope) -> bool:
    """Where records may move between pages, a harvest reads the last page once more (4.5)."""
    spec = scope.spec
    wanted = spec.ordering.reread_last_page or Reason.UNSTABLE_ORDER in spec.degradations
    return wanted and spec.operation is Operation.HARVEST


def part(code: RunReason, detail: str, rest: Rest, total: int | None = None) -> Closing:
    """The task ends here, and smaller slices take the rest."""
    return Closing(run=RunTransition.PART, task=TaskTransition.PART, code=code, detail=detail, rest=rest, total=total)


def can_shrink(scope: TaskScope, place: PagePosition) -> bool:
    kinds = {PaginationType.OFFSET, PaginationType.TIME}
    return scope.spec.pagination.type in kinds and place.size is not None and place.size > MIN_PAGE_RECORDS


def smaller(place: PagePosition) -> PagePosition:
    return replace(place, size=max((place.size or MIN_PAGE_RECORDS) // 2, MIN_PAGE_RECORDS))


def _confirmed_span(scope: TaskScope, checkpoint: Checkpoint, landing: Landing, following: PagePosition) -> Span | None:
    """What a page in the midst of a list confirms: nothing where its end must show first that it adds up (I10)."""
    pagination = scope.spec.pagination
    counted = fewest(pagination, following.total) is not None
    if scope.window is None or counted or checkpoint.ranges.todo:
        return None
    ascending = scope.spec.ordering.ascending and scope.course.detail is None
    came = list(landing.instants)
    in_order = len(came) > 1 and all(a <= b for a, b in pairwise(came))
    oldest = came[0] if in_order else None
    return confirm_window(scope.window, over=False, ascending=ascending, oldest=oldest, since=checkpoint.confirmed)
