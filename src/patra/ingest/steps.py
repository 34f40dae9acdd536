"""An answer that landed goes in; where it leads comes out: the next place, what is confirmed, the end (ch. 4.3.3, 9.3).

Pure: no store, no clock. What goes wrong is `setbacks.py`'s business.
"""

import msgspec
from msgspec.structs import replace

from patra.ingest.codes import Operation, PaginationType
from patra.ingest.course import Scope
from patra.ingest.cursor import confirmed
from patra.ingest.cutting import Rest
from patra.ingest.fetching import Fetched
from patra.ingest.healing import Thresholds, Vitals, heal
from patra.ingest.landing import Landing
from patra.ingest.line import Line
from patra.ingest.machines import TaskOn
from patra.ingest.paging import (
    End,
    Move,
    Next,
    Page,
    Place,
    Probe,
    Range,
    Stop,
    again,
    capped,
    follow,
    last_again,
    stateful,
)
from patra.ingest.reasons_running import X
from patra.ingest.runs import DONE, BatchStatus, Checkpoint, Closing, RunOn, failed
from patra.ingest.slicing import Span
from patra.kernel.clock import parse_duration

FEWEST = 10  # records of the smallest page that is asked for


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch leads to: the checkpoint after it, what it confirms, and the end of the run if it is one."""

    checkpoint: Checkpoint
    confirm: Span | None = None
    closing: Closing | None = None
    has_next: bool = False
    following: Place | None = None
    status: BatchStatus = BatchStatus.SUCCEEDED
    healed: tuple[X, ...] = ()
    """What was done about the state of things, by the matrix of 12.2."""


def resumed(scope: Scope, checkpoint: Checkpoint, now: int) -> Checkpoint:
    """What a new run must not take over from the last: a cursor that moved on, or a token that died meanwhile."""
    pagination = scope.spec.pagination
    if checkpoint.over or checkpoint.place.index == 0:
        return checkpoint
    ttl = parse_duration(pagination.token_ttl) if pagination.token_ttl else None
    old = ttl is not None and now - checkpoint.at > ttl
    if stateful(pagination) or (old and pagination.type in {PaginationType.TOKEN, PaginationType.URL}):
        return replace(checkpoint, place=scope.first, restarts=checkpoint.restarts + 1)
    return checkpoint


def group(scope: Scope, checkpoint: Checkpoint) -> tuple[str, ...]:
    """Ids whose records are fetched now: when enough of them wait, or no more will come."""
    if not checkpoint.pending:
        return ()
    batching = (scope.course.detail or scope.course.listing).leg.batching
    size = checkpoint.group or batching.id_batch_size
    if not checkpoint.over and len(checkpoint.pending) < batching.combine_threshold:
        return ()
    return checkpoint.pending[:size]


def move_on(
    scope: Scope, line: Line, checkpoint: Checkpoint, place: Place, fetched: Fetched, landing: Landing, items: int
) -> Move:
    """Where the list goes on after a page."""
    listed = fetched.listed
    if listed is None:  # EMPTY or END: the provider says that there is nothing more
        return End(fetched.verdict.code, replace(place, index=place.index + 1))
    page = Page(
        items=items,
        has_more=listed.has_more,
        token=listed.token,
        url=line.without_secret(listed.url),
        total=listed.total,
        digest=landing.digest,
        newest=landing.newest,
    )
    pages = scope.slice.bounds.page
    last = pages.to_page - pages.from_page + 1 if pages is not None and pages.to_page is not None else None
    until = scope.window.end if scope.window else None
    bounds = Range(last_page=last, until=until, splittable=scope.rest(checkpoint) is not None)
    return follow(scope.spec.pagination, place, page, bounds)


def after_page(
    scope: Scope, checkpoint: Checkpoint, place: Place, landing: Landing, move: Move, total: int | None, now: int
) -> Step:
    """Where a landed page leads."""
    known = checkpoint
    checkpoint = replace(checkpoint, fruitless=0, at=now)
    if scope.course.detail is not None:
        checkpoint = replace(checkpoint, pending=tuple(dict.fromkeys([*checkpoint.pending, *landing.ids])))
    match move:
        case Next(following):
            confirm = _confirmed(scope, known, landing, over=False)
            if confirm is not None:
                checkpoint = replace(checkpoint, confirmed=confirm.end)
            checkpoint = replace(checkpoint, place=following)
            return Step(checkpoint=checkpoint, confirm=confirm, has_next=True, following=following)
        case End():
            if (
                cut := _cut_at_depth(scope, known, checkpoint, move.place, len(landing.ids) + len(landing.bad))
            ) is not None:
                return cut
            once_more = again(scope.spec.pagination, move, replace(scope.first, passes=place.passes))
            if once_more is not None:
                checkpoint = replace(checkpoint, place=once_more)
                return Step(checkpoint=checkpoint, has_next=True, following=once_more, healed=(X.DRIFTED,))
            last = last_again(scope.spec.pagination, place, len(landing.ids)) if _rereads(scope) else None
            if last is not None:
                return Step(checkpoint=replace(checkpoint, place=last), has_next=True, following=last)
            checkpoint = replace(checkpoint, place=move.place, over=True)
            if checkpoint.pending:
                return Step(checkpoint=checkpoint)
            return Step(checkpoint=checkpoint, confirm=_confirmed(scope, known, landing, over=True), closing=DONE)
        case Stop(code, detail, _):
            rest = scope.rest(known)
            if code is X.BRIDGE and rest is not None:
                return Step(checkpoint=checkpoint, closing=part(code, detail, rest, total), healed=(X.RESLICE,))
            return Step(checkpoint=checkpoint, closing=failed(code, detail, level="L2"))
        case Probe():
            raise AssertionError("a probe lands nothing")


def _cut_at_depth(scope: Scope, known: Checkpoint, after: Checkpoint, end: Place, items: int) -> Step | None:
    """A list that ended where the provider pages no deeper (ruling I4): smaller slices, or a loud end."""
    depth = scope.spec.limits.max_depth
    if not capped(scope.spec.pagination, end, items, depth):
        return None
    detail = f"{end.seen} records came, and the provider pages {depth} deep"
    if (rest := scope.rest(known)) is not None:
        return Step(checkpoint=after, closing=part(X.TOO_DEEP, detail, rest, end.total), healed=(X.RESLICE,))
    if end.total is not None:  # all that was promised
        return None
    advice = "lower `window.minWindow` or narrow the query"
    return Step(checkpoint=after, closing=failed(X.TOO_DEEP_AT_SMALLEST, detail, level="L2", advice=advice))


def after_details(
    scope: Scope, line: Line, checkpoint: Checkpoint, ids: tuple[str, ...], landing: Landing, now: int
) -> Step:
    """Where a landed group of details leads."""
    known = checkpoint
    size = line.leg.batching.id_batch_size
    grown = None if checkpoint.group is None or checkpoint.group * 2 >= size else checkpoint.group * 2
    checkpoint = replace(checkpoint, fruitless=0, at=now, pending=checkpoint.pending[len(ids) :], group=grown)
    if not checkpoint.finished:
        return Step(checkpoint=checkpoint, has_next=True)
    return Step(checkpoint=checkpoint, confirm=_confirmed(scope, known, landing, over=True), closing=DONE)


def healed(
    scope: Scope,
    checkpoint: Checkpoint,
    step: Step,
    place: Place,
    total: int | None,
    pulse: Vitals,
    *,
    told_to_wait: bool,
    limits: Thresholds,
) -> Step:
    """What the matrix of 12.2 says after a page that has a next one; the failures in a row are the circuit's."""
    rest = scope.rest(checkpoint)
    budget = scope.slice.budget
    expected = budget.expected_requests if scope.slice.telemetry.total_estimated is not None else None
    vitals: Vitals = replace(
        pulse,
        failures_in_row=0,
        pages=place.index + 1,
        pages_expected=expected,
        splittable=rest is not None and (total is None or total > (place.size or 1) * (place.index + 2)),
        page_can_shrink=can_shrink(scope, place),
        retry_after=told_to_wait,
        body_bytes_most=scope.spec.planning.reslice_bytes,
    )
    for found in heal(vitals, limits):
        step = replace(step, healed=(*step.healed, found.act))
        match found.act:
            case X.PAGE_SHRINK if step.following is not None:
                step = replace(step, checkpoint=replace(step.checkpoint, place=smaller(step.following)))
            case X.RESLICE if rest is not None:
                return replace(step, closing=part(X.RESLICE, "deeper than estimated", rest, total))
            case X.TASK_STOPPED:
                detail = "more refused requests than the threshold"
                return replace(step, closing=failed(X.TASK_STOPPED, detail, level="L2"))
            case _:
                pass
    return step


def _rereads(scope: Scope) -> bool:
    return scope.spec.ordering.reread_last_page and scope.spec.operation is Operation.HARVEST


def part(code: X, detail: str, rest: Rest, total: int | None = None) -> Closing:
    """The task ends here, and smaller slices take the rest."""
    return Closing(run=RunOn.PART, task=TaskOn.PART, code=code, detail=detail, rest=rest, total=total)


def can_shrink(scope: Scope, place: Place) -> bool:
    kinds = {PaginationType.OFFSET, PaginationType.TIME}
    return scope.spec.pagination.type in kinds and place.size is not None and place.size > FEWEST


def smaller(place: Place) -> Place:
    return replace(place, size=max((place.size or FEWEST) // 2, FEWEST))


def _confirmed(scope: Scope, checkpoint: Checkpoint, landing: Landing, *, over: bool) -> Span | None:
    if scope.window is None:
        return None
    ascending = scope.spec.ordering.ascending and scope.course.detail is None
    return confirmed(scope.window, over=over, ascending=ascending, newest=landing.newest, since=checkpoint.confirmed)
