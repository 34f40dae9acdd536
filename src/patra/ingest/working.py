"""A task in hand goes in; batch after batch lands, and how the run ended comes out (ch. 5.4.2, 9.3).

    place → fetch → judge → read → records → follow → commit → the next place

One `Run` is one attempt at one task. Everything that it must not forget is in its checkpoint, which is committed with
each batch: a run that dies at any line is taken up at its last confirmed batch. Decisions are made by the stages; here
they are put in order.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from patra.ingest import commits, measures
from patra.ingest.bits import Credential
from patra.ingest.classify import Action, Verdict
from patra.ingest.codes import Dimension, Operation, PaginationType
from patra.ingest.commits import Batch, Committed, Work
from patra.ingest.cursor import confirmed
from patra.ingest.cutting import Rest
from patra.ingest.evidence import batch_stats, body_hash, error_of, request_digest, response_digest
from patra.ingest.fetching import Deferred, Fetched, Tally, fetch
from patra.ingest.gates import Pause
from patra.ingest.healing import Vitals, heal
from patra.ingest.intent import grid_of
from patra.ingest.landing import Landing, ids_of, nothing, records_of, with_missing
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
    first,
    follow,
    stateful,
    too_deep,
)
from patra.ingest.rategate import Sign, Signal
from patra.ingest.reasons_running import X
from patra.ingest.records import packed
from patra.ingest.request import At
from patra.ingest.running_store import Taken
from patra.ingest.runs import (
    DONE,
    BatchStatus,
    Checkpoint,
    Closing,
    Phase,
    RunOn,
    Stats,
    deferred,
    failed,
)
from patra.ingest.services import Services
from patra.ingest.slices import SliceSpec, decode_slice
from patra.ingest.slicing import Span
from patra.ingest.spec import Spec
from patra.kernel.canonical import sha256_hex
from patra.kernel.clock import MINUTE, SECOND, parse_duration
from patra.kernel.db import Database
from patra.kernel.retry import Backoff
from patra.kernel.telemetry import get_logger, span

log = get_logger()

MAX_RESTARTS = 3
MAX_FRUITLESS = 6
PATIENCE = Backoff(base=15 * SECOND, factor=2.0, cap=15 * MINUTE, spread=0.3)
"""How long a task waits after transient failures used up the attempts of a batch."""


class Course:
    """A plan's snapshot, compiled: the line that lists, and the one that gives records where that is another."""

    def __init__(self, spec: Spec, credentials: Callable[[str], Credential | None]) -> None:
        self.spec = spec
        ref = spec.auth.credential_ref
        self.listing = Line(spec, spec, credentials(ref) if ref else None)
        detail = spec.detail
        two = detail is not None and (spec.two_phase.enabled or spec.operation is Operation.UPDATE)
        self.detail: Line | None = None
        if detail is not None and two:
            other = detail.auth.credential_ref
            self.detail = Line(spec, detail, credentials(other) if other else None)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What an installation decides about runs."""

    ttl: int = 2 * MINUTE
    publish: bool = True
    server_clock: bool = False
    """Leases go by the store's clock: for executors on several machines."""
    keep_bodies: bool = False
    max_body: int = 16 * 1024 * 1024


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch leads to: the checkpoint after it, what it confirms, and the end of the run if it is one."""

    checkpoint: Checkpoint
    confirm: Span | None = None
    closing: Closing | None = None
    has_next: bool = False
    following: Place | None = None


class Run:
    """One attempt at a task."""

    def __init__(
        self, db: Database, services: Services, course: Course, taken: Taken, pause: Pause, options: Options
    ) -> None:
        self._db = db
        self._s = services
        self._course = course
        self._spec = course.spec
        self._taken = taken
        self._pause = pause
        self._options = options
        self._slice: SliceSpec = decode_slice(taken.task.slice_spec)
        self._work = Work(spec=course.spec, taken=taken, ttl=options.ttl, publish=options.publish)
        task = taken.task
        timed = task.window_from is not None and task.window_to is not None
        self._window = Span(task.window_from or 0, task.window_to or 0) if timed else None
        self.stats = Stats()
        self.checkpoint = taken.checkpoint or self._begin()
        self._batch_no = 0
        self._carried = Tally()
        self._used: dict[str, int] = {}
        self._started = services.clock.now()
        self._first = self._first_place()

    # --- the loop

    def go(self) -> Closing:
        """Work until the task is done or cannot go on. Raises Fenced where the lease was lost."""
        self._resume()
        while True:
            checkpoint = self.checkpoint
            if checkpoint.finished:
                return self._close(DONE)
            if (closing := self._over_budget()) is not None:
                return self._close(closing)
            group = self._group()
            closing = self._details(group) if group else self._list()
            if closing is not None:
                return closing

    def _begin(self) -> Checkpoint:
        if self._slice.bounds.id is not None:
            return Checkpoint(pending=tuple(self._slice.bounds.id.ids), over=True)
        return Checkpoint(place=self._first_place())

    def _first_place(self) -> Place:
        pages = self._slice.bounds.page
        since = self._window.start if self._window else None
        return first(self._spec.pagination, from_page=pages.from_page if pages else None, since=since)

    def _resume(self) -> None:
        """What a new run must not take over from the last: a cursor that moved on, or a token that died meanwhile."""
        if self._taken.checkpoint is None:
            self.checkpoint = replace(self.checkpoint, place=self._first)
            return
        pagination = self._spec.pagination
        place = self.checkpoint.place
        if self.checkpoint.over or place.index == 0:
            return
        ttl = parse_duration(pagination.token_ttl) if pagination.token_ttl else None
        old = ttl is not None and self._s.clock.now() - self.checkpoint.at > ttl
        if stateful(pagination) or (old and pagination.type in {PaginationType.TOKEN, PaginationType.URL}):
            self.checkpoint = replace(self.checkpoint, place=self._first, restarts=self.checkpoint.restarts + 1)

    def _over_budget(self) -> Closing | None:
        budget = self._slice.budget
        now = self._s.clock.now()
        if not self._pause(0):
            return deferred(X.STOPPED, now, "the executor stops; the task goes on from here")
        if now - self._started > budget.max_duration_sec * SECOND and self._batch_no:
            return deferred(X.BUDGET_SPENT, now, "the slice's time is over; it goes on in its turn")
        if self.stats.req_count >= budget.max_requests and self._batch_no:
            rest = self._rest()
            if rest is not None:
                return self._part(X.BUDGET_SPENT, "the slice's requests are used up", rest)
            return deferred(X.BUDGET_SPENT, now, "the slice's requests are used up; it goes on in its turn")
        return None

    def _group(self) -> tuple[str, ...]:
        """Ids whose records are fetched now: when enough of them wait, or no more will come."""
        checkpoint = self.checkpoint
        if not checkpoint.pending:
            return ()
        batching = (self._course.detail or self._course.listing).leg.batching
        size = checkpoint.group or batching.id_batch_size
        if not checkpoint.over and len(checkpoint.pending) < batching.combine_threshold:
            return ()
        return checkpoint.pending[:size]

    # --- lists

    def _list(self) -> Closing | None:
        line, place = self._course.listing, self.checkpoint.place
        started = self._s.clock.now()
        fetched = self._fetch(line, self._at(line, place), fragile=stateful(self._spec.pagination) and place.index > 0)
        if isinstance(fetched, Deferred):
            return self._defer(fetched)
        verdict = fetched.verdict
        match verdict.action:
            case Action.ACCEPT | Action.EMPTY | Action.END:
                return self._page(line, place, fetched, started)
            case Action.RETRY:
                return self._exhausted(fetched, Phase.LIST, place)
            case Action.RESTART:
                return self._restart(fetched, place, started)
            case Action.RESLICE:
                return self._too_large(fetched, place, started)
            case Action.FAIL | Action.HALT:
                return self._fail(fetched, Phase.LIST, place, started)

    def _page(self, line: Line, place: Place, fetched: Fetched, started: int) -> Closing | None:
        listed = fetched.listed
        items = (listed.items or []) if listed is not None else []
        total = listed.total if listed is not None else None
        if too_deep(total, line.leg.limits.max_depth, place) and self._slice.dimension is Dimension.TIME:
            return self._too_deep(fetched, place, total or 0, started)
        two = self._course.detail is not None
        window = self._window if self._spec.window.client_filter else None
        landing = ids_of(line, items) if two else records_of(line, items, fetched.at.now, self._plan, window)
        move = self._follow(line, place, fetched, landing, len(items))
        if isinstance(move, Probe):
            self._carry(fetched.tally)
            self.checkpoint = replace(self.checkpoint, place=move.place)
            return None
        step = self._after(place, landing, move, total)
        return self._land(line, Phase.LIST, place, fetched, landing, step, started, len(items))

    def _follow(self, line: Line, place: Place, fetched: Fetched, landing: Landing, items: int) -> Move:
        listed = fetched.listed
        if listed is None:  # EMPTY or END: the provider says that there is nothing more
            here = replace(place, index=place.index + 1)
            return End(fetched.verdict.code, here)
        page = Page(
            items=items,
            has_more=listed.has_more,
            token=listed.token,
            url=line.without_secret(listed.url),
            total=listed.total,
            digest=landing.digest,
            newest=landing.newest,
        )
        pages = self._slice.bounds.page
        last = pages.to_page - pages.from_page + 1 if pages is not None and pages.to_page is not None else None
        until = self._window.end if self._window else None
        bounds = Range(last_page=last, until=until, splittable=self._rest() is not None)
        return follow(self._spec.pagination, place, page, bounds)

    def _after(self, place: Place, landing: Landing, move: Move, total: int | None) -> Step:
        """Where a landed page leads."""
        checkpoint = replace(self.checkpoint, fruitless=0, at=self._s.clock.now())
        if self._course.detail is not None:
            checkpoint = replace(checkpoint, pending=tuple(dict.fromkeys([*checkpoint.pending, *landing.ids])))
        match move:
            case Next(following):
                confirm = self._confirmed(landing, over=False)
                if confirm is not None:
                    checkpoint = replace(checkpoint, confirmed=confirm.end)
                step = Step(
                    checkpoint=replace(checkpoint, place=following), confirm=confirm, has_next=True, following=following
                )
                return self._healed(step, place, total)
            case End():
                once_more = again(self._spec.pagination, move, replace(self._first, passes=place.passes))
                if once_more is not None:
                    self._healing(X.DRIFTED)
                    return Step(checkpoint=replace(checkpoint, place=once_more), has_next=True, following=once_more)
                checkpoint = replace(checkpoint, place=move.place, over=True)
                if checkpoint.pending:
                    return Step(checkpoint=checkpoint)
                return Step(checkpoint=checkpoint, confirm=self._confirmed(landing, over=True), closing=DONE)
            case Stop(code, detail, _):
                rest = self._rest()
                if code is X.BRIDGE and rest is not None:
                    return Step(checkpoint=checkpoint, closing=self._part(code, detail, rest, total))
                return Step(checkpoint=checkpoint, closing=failed(code, detail, level="L2"))
            case Probe():
                raise AssertionError("a probe lands nothing")

    def _confirmed(self, landing: Landing, *, over: bool) -> Span | None:
        if self._window is None:
            return None
        ascending = self._spec.ordering.ascending and self._course.detail is None
        return confirmed(
            self._window, over=over, ascending=ascending, newest=landing.newest, since=self.checkpoint.confirmed
        )

    # --- details

    def _details(self, ids: tuple[str, ...]) -> Closing | None:
        line = self._course.detail or self._course.listing
        place = self.checkpoint.place
        started = self._s.clock.now()
        fetched = self._fetch(line, self._at(line, place, ids), fragile=False)
        if isinstance(fetched, Deferred):
            return self._defer(fetched)
        match fetched.verdict.action:
            case Action.ACCEPT | Action.EMPTY | Action.END:
                items = (fetched.listed.items or []) if fetched.listed is not None else []
                landing = records_of(line, items, fetched.at.now, self._plan)
                landing = with_missing(landing, ids, line.leg.batching.missing_ids)
                return self._land_details(line, place, fetched, landing, ids, started, len(items))
            case Action.RETRY | Action.RESTART:
                return self._exhausted(fetched, Phase.DETAIL, place)
            case Action.RESLICE | Action.FAIL if len(ids) > 1:  # one of them spoils the group: find it by halves
                self._carry(fetched.tally)
                self.checkpoint = replace(self.checkpoint, group=max(len(ids) // 2, 1))
                return None
            case Action.RESLICE | Action.FAIL:
                landing = with_missing(nothing(), ids, line.leg.batching.missing_ids)
                return self._land_details(line, place, fetched, landing, ids, started, 0)
            case Action.HALT:
                return self._fail(fetched, Phase.DETAIL, place, started)

    def _land_details(
        self,
        line: Line,
        place: Place,
        fetched: Fetched,
        landing: Landing,
        ids: tuple[str, ...],
        started: int,
        items: int,
    ) -> Closing | None:
        checkpoint = replace(self.checkpoint, fruitless=0, at=self._s.clock.now())
        rest = checkpoint.pending[len(ids) :]
        size = line.leg.batching.id_batch_size
        group = None if checkpoint.group is None or checkpoint.group * 2 >= size else checkpoint.group * 2
        checkpoint = replace(checkpoint, pending=rest, group=group)
        landing = replace(landing, ids=list(dict.fromkeys([*ids, *landing.ids])))
        if not checkpoint.finished:
            step = Step(checkpoint=checkpoint, has_next=True)
        else:
            step = Step(checkpoint=checkpoint, confirm=self._confirmed(landing, over=True), closing=DONE)
        return self._land(line, Phase.DETAIL, place, fetched, landing, step, started, items)

    # --- what else can happen

    def _exhausted(self, fetched: Fetched, phase: Phase, place: Place) -> Closing | None:
        """Transient failures used up the attempts: the task waits and goes on, or is given up when it gets nowhere."""
        verdict = fetched.verdict
        fruitless = self.checkpoint.fruitless + (self._batch_no == 0)
        checkpoint = replace(self.checkpoint, fruitless=fruitless)
        now = self._s.clock.now()
        wait = max(PATIENCE.delay(fruitless + 1, min(self._s.jitter(), 0.999)), verdict.retry_after or 0)
        detail = error_of(verdict) or verdict.detail
        closing = deferred(X.PUT_BACK_L1, now + wait, detail)
        if fruitless >= MAX_FRUITLESS:
            closing = failed(X.GAVE_UP, detail, level="L1")
        closing = replace(closing, level=verdict.level)
        step = Step(checkpoint=checkpoint, closing=closing)
        return self._land(self._line(phase), phase, place, fetched, nothing(), step, now, 0, status=BatchStatus.FAILED)

    def _restart(self, fetched: Fetched, place: Place, started: int) -> Closing | None:
        """The cursor is not known any more: from the slice's confirmed point, which for a list is its beginning."""
        checkpoint = replace(
            self.checkpoint, place=self._first, restarts=self.checkpoint.restarts + 1, at=self._s.clock.now()
        )
        closing = None
        rest = self._rest()
        if checkpoint.restarts > MAX_RESTARTS and rest is not None:  # shorter lists live long enough
            closing = self._part(X.TOKEN_EXPIRED, "the cursor dies before the list is read", rest, place.total)
        elif checkpoint.restarts > MAX_RESTARTS + MAX_FRUITLESS:
            closing = failed(X.TOKEN_EXPIRED, "the cursor dies every time before the list is read", level="L2")
        elif checkpoint.restarts > MAX_RESTARTS:
            due = self._s.clock.now() + PATIENCE.delay(checkpoint.restarts - MAX_RESTARTS, 0.5)
            closing = deferred(X.TOKEN_EXPIRED, due, "the cursor dies before the list is read; the task waits")
        step = Step(checkpoint=checkpoint, closing=closing, has_next=True)
        return self._land(
            self._course.listing, Phase.LIST, place, fetched, nothing(), step, started, 0, status=BatchStatus.SKIPPED
        )

    def _too_large(self, fetched: Fetched, place: Place, started: int) -> Closing | None:
        """A body past the bound: smaller pages where the list allows it, else smaller slices."""
        if self._can_shrink(place):
            self._carry(fetched.tally)
            self._shrink(place)
            return None
        if (rest := self._rest()) is not None:
            step = Step(checkpoint=self.checkpoint, closing=self._part(X.RESLICE, fetched.verdict.detail, rest))
            status = BatchStatus.FAILED
            line = self._course.listing
            return self._land(line, Phase.LIST, place, fetched, nothing(), step, started, 0, status=status)
        return self._fail(fetched, Phase.LIST, place, started)

    def _too_deep(self, fetched: Fetched, place: Place, total: int, started: int) -> Closing | None:
        """More records than the provider pages (ruling I4): cut before reading, or fail loudly at the smallest."""
        rest = self._rest()
        depth = self._spec.limits.max_depth
        detail = f"{total} records, and the provider pages {depth} deep"
        if rest is None:
            closing = failed(
                X.TOO_DEEP_AT_SMALLEST, detail, level="L2", advice="lower `window.minWindow` or narrow the query"
            )
        else:
            closing = self._part(X.TOO_DEEP, detail, rest, total)
        step = Step(checkpoint=self.checkpoint, closing=closing)
        line, status = self._course.listing, BatchStatus.SKIPPED
        return self._land(line, Phase.LIST, place, fetched, nothing(), step, started, 0, status=status)

    def _fail(self, fetched: Fetched, phase: Phase, place: Place, started: int) -> Closing | None:
        verdict = fetched.verdict
        halt = verdict.action is Action.HALT
        if halt:
            self._healing(X.HALTED)
        closing = failed(
            X.FAILED_L4 if halt else X.FAILED_L2,
            error_of(verdict) or verdict.detail,
            level=verdict.level,
            advice=verdict.advice,
            halt=halt,
        )
        step = Step(checkpoint=self.checkpoint, closing=closing)
        return self._land(
            self._line(phase), phase, place, fetched, nothing(), step, started, 0, status=BatchStatus.FAILED
        )

    def _defer(self, found: Deferred) -> Closing:
        self.stats.add_fetch(found.tally)
        return self._close(deferred(found.code, found.until, found.detail))

    def _part(self, code: X, detail: str, rest: Rest, total: int | None = None) -> Closing:
        self._healing(X.RESLICE)
        return Closing(run=RunOn.PART, task=TaskOn.PART, code=code, detail=detail, rest=rest, total=total)

    def _rest(self) -> Rest | None:
        """What smaller slices could take over: the window from its confirmed point on; None at the smallest."""
        if self._window is None or self._slice.dimension is not Dimension.TIME:
            return None
        grid = grid_of(self._spec.window)
        start = grid.floor(self.checkpoint.confirmed) if self.checkpoint.confirmed is not None else self._window.start
        window = Span(max(start, self._window.start), self._window.end)
        return Rest(window=window) if grid.halves(window) is not None else None

    # --- healing, by the matrix of 12.2

    def _healed(self, step: Step, place: Place, total: int | None) -> Step:
        """What the matrix says after a page that has a next one."""
        now = self._s.clock.now()
        pulse = self._s.pulses.of(self._course.listing.circuit_key).vitals(now)
        planning = self._spec.planning
        rest = self._rest()
        expected = self._slice.budget.expected_requests if self._slice.telemetry.total_estimated is not None else None
        vitals: Vitals = replace(
            pulse,
            failures_in_row=0,  # the circuit sees to them
            pages=place.index + 1,
            pages_expected=expected,
            splittable=rest is not None and (total is None or total > (place.size or 1) * (place.index + 2)),
            page_can_shrink=self._can_shrink(place),
            retry_after=self._carried.retry_after_hits > 0,
            body_bytes_most=planning.reslice_bytes,
        )
        for found in heal(vitals, self._s.thresholds):
            self._healing(found.act)
            match found.act:
                case X.QPS_DOWNSHIFT:
                    key, policy = self._course.listing.gate({})
                    self._s.gate.tell(key, policy, Signal(sign=Sign.DOWNSHIFT))
                    self.stats.rate_adjusted = True
                case X.PAGE_SHRINK if step.following is not None:
                    step = replace(step, checkpoint=replace(step.checkpoint, place=_smaller(step.following)))
                case X.RESLICE if rest is not None:
                    return replace(step, closing=self._part(X.RESLICE, "deeper than estimated", rest, total))
                case X.TASK_STOPPED:
                    detail = "more refused requests than the threshold"
                    return replace(step, closing=failed(X.TASK_STOPPED, detail, level="L2"))
                case _:
                    pass
        return step

    def _healing(self, act: X) -> None:
        name = _HEAL_NAMES.get(act, act.name.lower())
        self.stats.healed[name] = self.stats.healed.get(name, 0) + 1
        measures.SELF_HEAL.labels(type=name).inc()
        log.warning("ingest_self_heal", act=act.value, type=name, run_id=self._taken.run_id)

    def _can_shrink(self, place: Place) -> bool:
        kinds = {PaginationType.OFFSET, PaginationType.TIME}
        return self._spec.pagination.type in kinds and place.size is not None and place.size > 10

    def _shrink(self, place: Place) -> None:
        self._healing(X.PAGE_SHRINK)
        self.checkpoint = replace(self.checkpoint, place=_smaller(place))

    # --- asking and committing

    def _fetch(self, line: Line, at: At, *, fragile: bool) -> Fetched | Deferred:
        correlation = f"ing-{self._taken.run_id}-{self._batch_no + 1}"
        found = fetch(self._s, line, at, self._pause, task=self._taken.run_id, correlation=correlation, fragile=fragile)
        key, policy = line.gate({})
        if policy.quota_hour or policy.quota_day:
            self._used[key] = self._used.get(key, 0) + found.tally.permits
        return found

    def _at(self, line: Line, place: Place, ids: tuple[str, ...] = ()) -> At:
        return At(
            source=self._spec.provenance_code,
            endpoint=line.leg.endpoint_code,
            operation=self._spec.operation,
            now=self._s.clock.now(),
            window_from=self._window.start if self._window else None,
            window_to=self._window.end if self._window else None,
            page_no=place.page,
            page_index=place.index,
            page_size=place.size,
            offset=place.offset,
            token=place.token,
            url=place.url if not ids else None,
            page_from=place.since,
            page_to=self._window.end if self._window else None,
            ids=ids,
        )

    @property
    def _plan(self) -> dict[str, Any]:
        spec = self._spec
        return {"source": spec.provenance_code, "endpoint": spec.endpoint_code, "operation": spec.operation.value}

    def _line(self, phase: Phase) -> Line:
        return self._course.listing if phase is Phase.LIST else self._course.detail or self._course.listing

    def _carry(self, tally: Tally) -> None:
        """A request whose answer lands nothing counts with the next batch."""
        self._carried = _sum(self._carried, tally)

    def _land(
        self,
        line: Line,
        phase: Phase,
        place: Place,
        fetched: Fetched,
        landing: Landing,
        step: Step,
        started: int,
        items: int,
        *,
        status: BatchStatus = BatchStatus.SUCCEEDED,
    ) -> Closing | None:
        """Commit a batch; gives the end of the run, if it is one."""
        tally = _sum(self._carried, fetched.tally)
        stats = replace(self.stats, healed=dict(self.stats.healed))
        stats.add_fetch(tally)
        stats.has_next_last = step.has_next
        self._batch_no += 1
        batch = self._batch(line, phase, place, fetched, step, status)
        now = self._s.clock.now()
        labels = line.labels
        following = step.following
        hint = {"token": following.token, "page": following.page, "url": following.url} if following else {}
        healed = dict.fromkeys(stats.healed, True)

        def stats_of(out: Any) -> str:
            return batch_stats(
                fetched, tally, out, len(landing.bad), items, landing.outside,
                has_next=step.has_next, next_hint=hint, latency=now - started, healed=healed,
            )  # fmt: skip

        with span("Batch", **labels, run_id=self._taken.run_id, batch_no=self._batch_no, has_next=step.has_next):
            begun = self._s.clock.now()
            committed: Committed = self._db.run(
                lambda tx: commits.land(
                    tx,
                    self._work,
                    batch,
                    landing,
                    step.confirm,
                    step.checkpoint,
                    stats,
                    stats_of,
                    step.closing,
                    now,
                )
            )
            measures.BOOKKEEPING.labels(**labels).observe((self._s.clock.now() - begun) / 1000)
        if committed.cancelled:
            return self._close(Closing(run=RunOn.CANCEL, task=TaskOn.CANCEL, code=X.CANCELLED))
        self.stats = committed.stats
        self.checkpoint = step.checkpoint
        self._carried = Tally()
        self._s.pulses.of(line.circuit_key).batch(now, now - started)
        _measure(labels, committed, landing, now - started)
        self._log(batch, committed, landing)
        return step.closing

    def _batch(
        self, line: Line, phase: Phase, place: Place, fetched: Fetched, step: Step, status: BatchStatus
    ) -> Batch:
        answer, verdict = fetched.answer, fetched.verdict
        following = step.following
        kept = self._options.keep_bodies and answer is not None and len(answer.body) <= self._options.max_body
        chained = self._spec.pagination.type in {PaginationType.TOKEN, PaginationType.URL}
        before = place.token or place.url or ""
        key = None
        if phase is Phase.LIST and chained:
            turn = (
                f"#{self._batch_no}" if stateful(self._spec.pagination) or status is not BatchStatus.SUCCEEDED else ""
            )
            key = sha256_hex(f"{place.passes}|{self.checkpoint.restarts}|{before}{turn}")[:32]
        return Batch(
            no=self._batch_no,
            phase=phase,
            status=status,
            page_no=place.page,
            page_size=place.size,
            offset=place.offset,
            before_token=_plain(place.token),
            after_token=_plain(following.token) if following else None,
            before_url=_plain(place.url),
            next_url=_plain(following.url) if following else None,
            before_key=key,
            request=request_digest(line, fetched.at),
            response=response_digest(line, fetched, has_next=step.has_next),
            body_hash=body_hash(answer.body) if kept and answer else None,
            body=packed(answer.body) if kept and answer else None,
            code=_code(verdict, step),
            level=verdict.level,
            error=error_of(verdict),
        )

    def _close(self, closing: Closing) -> Closing:
        now = self._s.clock.now()
        self.stats.add_fetch(self._carried)
        self._db.run(lambda tx: commits.close(tx, self._work, closing, self.checkpoint, self.stats, now))
        return closing

    @property
    def used(self) -> dict[str, int]:
        """Permits by rate key, for those that have a quota."""
        return self._used

    def _log(self, batch: Batch, committed: Committed, landing: Landing) -> None:
        out = committed.sorted
        write = log.info if batch.level is None else log.warning
        write(
            "ingest_batch",
            run_id=self._taken.run_id,
            batch_no=batch.no,
            phase=batch.phase.value,
            status=batch.status.value,
            code=batch.code.value,
            level=batch.level,
            inserted=len(out.new),
            updated=len(out.newer),
            equal=len(out.equal),
            older=len(out.older),
            quarantined=len(landing.bad),
            cursor=committed.cursor.value if committed.cursor else None,
            error=batch.error,
        )


_HEAL_NAMES = {
    X.QPS_DOWNSHIFT: "qpsDownshift",
    X.RESLICE: "reslice",
    X.CIRCUIT_OPEN: "circuitOpen",
    X.CONCURRENCY_DOWN: "concurrencyDown",
    X.PAGE_SHRINK: "pageSizeShrink",
    X.HALTED: "halt",
    X.TASK_STOPPED: "taskStop",
    X.DRIFTED: "reread",
}


def _code(verdict: Verdict, step: Step) -> X:
    if verdict.level is not None or verdict.action is Action.RESTART:
        return verdict.code
    if step.closing is not None and step.closing is not DONE:
        return step.closing.code
    return X.NEXT if step.has_next else X.DONE


def _measure(labels: Any, committed: Committed, landing: Landing, latency: int) -> None:
    out = committed.sorted
    measures.BATCHES.labels(**labels).inc()
    measures.BATCH_LATENCY.labels(**labels).observe(latency / 1000)
    counts = {
        "insert": len(out.new),
        "update": len(out.newer),
        "skip": len(out.equal) + len(out.older) + out.repeated + landing.outside,
        "quarantine": len(landing.bad),
    }
    for action, count in counts.items():
        if count:
            measures.ITEMS.labels(**labels, action=action).inc(count)


def _sum(one: Tally, other: Tally) -> Tally:
    """Both together; the later view of the rate gate counts."""
    out = Tally(view=other.view or one.view, longest=max(one.longest, other.longest))
    for field in ("requests", "retries", "throttled", "retry_after_hits", "permits", "waited", "latency", "wire_bytes",
                  "circuit_opened", "quota_soft", "quota_hard", "refused"):  # fmt: skip
        setattr(out, field, getattr(one, field) + getattr(other, field))
    return out


def _smaller(place: Place) -> Place:
    return replace(place, size=max((place.size or 10) // 2, 10))


def _plain(text: str | None) -> str | None:
    """PostgreSQL's text cannot hold U+0000."""
    return None if text is None else text.replace("\0", "\ufffd")
