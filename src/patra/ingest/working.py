"""A task in hand goes in; batch after batch lands, and how the run ended comes out (ch. 5.4.2, 9.3).

    place → fetch → judge → read → records → follow → commit → the next place

One `Run` is one attempt at one task. Everything that it must not forget is in its checkpoint, which is committed with
each batch: a run that dies at any line is taken up at its last confirmed batch. Decisions are made by the stages
(`steps`, `setbacks`), batches are written by its book (`bookkeeping`); here they are put in order.
"""

from msgspec.structs import replace

from patra.ingest import setbacks, steps
from patra.ingest.bookkeeping import Book, Entry
from patra.ingest.classify import Action
from patra.ingest.codes import Dimension
from patra.ingest.course import Course, Options, Scope
from patra.ingest.fetching import Deferred, Fetched, Tally, fetch, gate_of
from patra.ingest.gates import Pause
from patra.ingest.landing import Landing, ids_of, nothing, records_of, with_missing
from patra.ingest.line import Line
from patra.ingest.paging import Next, Place, Probe, stateful, too_deep
from patra.ingest.rategate import Sign, Signal
from patra.ingest.reasons_running import X
from patra.ingest.request import At
from patra.ingest.running_store import Taken
from patra.ingest.runs import DONE, Closing, Phase, Stats, deferred
from patra.ingest.services import Services
from patra.ingest.steps import Step
from patra.kernel.db import Database
from patra.kernel.telemetry import span


class Run:
    """One attempt at a task."""

    def __init__(
        self, db: Database, services: Services, course: Course, taken: Taken, pause: Pause, options: Options
    ) -> None:
        self._s = services
        self._course = course
        self._taken = taken
        self._pause = pause
        self._scope = Scope(course, taken.task)
        self._book = Book(db, services, course, taken, options)
        self._started = services.clock.now()
        self.checkpoint = taken.checkpoint or self._scope.begin()

    @property
    def stats(self) -> Stats:
        return self._book.stats

    @property
    def used(self) -> dict[str, int]:
        """Permits by rate key that no batch has booked."""
        return self._book.used

    def go(self) -> Closing:
        """Work until the task is done or cannot go on. Raises Fenced where the lease was lost."""
        self.checkpoint = steps.resumed(self._scope, self.checkpoint, self._now)
        while True:
            if self.checkpoint.finished:
                return self._book.close(DONE, self.checkpoint)
            if (closing := self._over_budget()) is not None:
                return self._book.close(closing, self.checkpoint)
            if (closing := self._batch()) is not None:
                return closing

    def _batch(self) -> Closing | None:
        """One batch, from its request to its commit; a page that is only probed is none, but a span all the same."""
        labels, taken, book = self._course.listing.labels, self._taken, self._book
        with span("Batch", **labels, run_id=taken.run_id, batch_no=book.batches + 1) as here:
            group = steps.group(self._scope, self.checkpoint)
            closing = self._details(group) if group else self._list()
            here.set(**book.landed)
            return closing

    @property
    def _now(self) -> int:
        return self._s.clock.now()

    def _over_budget(self) -> Closing | None:
        now = self._now
        if not self._pause(0):
            return deferred(X.STOPPED, now, "the executor stops; the task goes on from here")
        book = self._book
        found = setbacks.over_budget(
            self._scope,
            self.checkpoint,
            requests=book.stats.req_count,
            batches=book.batches,
            started=self._started,
            now=now,
        )
        if found is None:
            return None
        closing, acts = found
        book.healing(acts)
        return closing

    # --- lists

    def _list(self) -> Closing | None:
        line, place, started = self._course.listing, self.checkpoint.place, self._now
        fragile = stateful(self._course.spec.pagination) and place.index > 0
        fetched = self._fetch(line, self._scope.at(line, place, started), fragile=fragile)
        if isinstance(fetched, Deferred):
            return self._defer(fetched)
        scope, checkpoint, verdict = self._scope, self.checkpoint, fetched.verdict
        match verdict.action:
            case Action.ACCEPT | Action.EMPTY | Action.END:
                return self._page(line, place, fetched, started)
            case Action.RETRY:
                return self._exhausted(Phase.LIST, place, fetched)
            case Action.RESTART:
                return self._bare(
                    Phase.LIST, place, fetched, setbacks.restarted(scope, checkpoint, place, self._now), started
                )
            case Action.RESLICE if steps.can_shrink(scope, place):
                self._book.carry(fetched.tally)
                self._book.healing((X.PAGE_SHRINK,))
                self.checkpoint = replace(checkpoint, place=steps.smaller(place))
                return None
            case Action.RESLICE:
                return self._bare(Phase.LIST, place, fetched, setbacks.too_large(scope, checkpoint, verdict), started)
            case Action.FAIL | Action.HALT:
                return self._bare(Phase.LIST, place, fetched, setbacks.refused(checkpoint, verdict), started)

    def _page(self, line: Line, place: Place, fetched: Fetched, started: int) -> Closing | None:
        scope, listed = self._scope, fetched.listed
        items = (listed.items or []) if listed is not None else []
        total = listed.total if listed is not None else None
        if too_deep(total, line.leg.limits.max_depth, place) and scope.slice.dimension is Dimension.TIME:
            step = setbacks.too_deep(scope, self.checkpoint, total or 0)
            return self._bare(Phase.LIST, place, fetched, step, started)
        if self._course.detail is not None:
            landing = ids_of(line, items)
        else:
            window = scope.window if scope.spec.window.client_filter else None
            landing = records_of(line, items, fetched.at.now, self._course.plan, window)
        move = steps.move_on(scope, line, self.checkpoint, place, fetched, landing, len(items))
        if isinstance(move, Probe):
            self._book.carry(fetched.tally)
            self.checkpoint = replace(self.checkpoint, place=move.place)
            return None
        step = steps.after_page(scope, self.checkpoint, place, landing, move, total, self._now)
        if isinstance(move, Next):
            step = self._healed(line, step, place, total, fetched.tally)
        return self._land(line, Phase.LIST, place, fetched, landing, step, started, len(items))

    def _healed(self, line: Line, step: Step, place: Place, total: int | None, tally: Tally) -> Step:
        """What the matrix of 12.2 says, done."""
        step = steps.healed(
            self._scope,
            self.checkpoint,
            step,
            place,
            total,
            self._s.pulses.of(line.circuit_key).vitals(self._now),
            told_to_wait=self._book.carried.told + tally.told > 0,
            limits=self._s.thresholds,
        )
        if X.QPS_DOWNSHIFT in step.healed:
            key, policy = gate_of(self._s, line)
            self._s.gate.tell(key, policy, Signal(sign=Sign.DOWNSHIFT))
        return step

    # --- details

    def _details(self, ids: tuple[str, ...]) -> Closing | None:
        line, place, started = self._course.line(Phase.DETAIL), self.checkpoint.place, self._now
        fetched = self._fetch(line, self._scope.at(line, place, started, ids), fragile=False)
        if isinstance(fetched, Deferred):
            return self._defer(fetched)
        missing = line.leg.batching.missing_ids
        match fetched.verdict.action:
            case Action.ACCEPT | Action.EMPTY | Action.END:
                items = (fetched.listed.items or []) if fetched.listed is not None else []
                landing = with_missing(records_of(line, items, fetched.at.now, self._course.plan), ids, missing)
                return self._group(line, place, fetched, landing, ids, started, len(items))
            case Action.RETRY | Action.RESTART:
                return self._exhausted(Phase.DETAIL, place, fetched)
            case Action.RESLICE | Action.FAIL if len(ids) > 1:  # one of them spoils the group: find it by halves
                self._book.carry(fetched.tally)
                self.checkpoint = replace(self.checkpoint, group=max(len(ids) // 2, 1))
                return None
            case Action.RESLICE | Action.FAIL:
                return self._group(line, place, fetched, with_missing(nothing(), ids, missing), ids, started, 0)
            case Action.HALT:
                step = setbacks.refused(self.checkpoint, fetched.verdict)
                return self._bare(Phase.DETAIL, place, fetched, step, started)

    def _group(
        self,
        line: Line,
        place: Place,
        fetched: Fetched,
        landing: Landing,
        ids: tuple[str, ...],
        started: int,
        items: int,
    ) -> Closing | None:
        landing = replace(landing, ids=list(dict.fromkeys([*ids, *landing.ids])))
        step = steps.after_details(self._scope, line, self.checkpoint, ids, landing, self._now)
        return self._land(line, Phase.DETAIL, place, fetched, landing, step, started, items)

    # --- asking and committing

    def _fetch(self, line: Line, at: At, *, fragile: bool) -> Fetched | Deferred:
        run_id = self._taken.run_id
        correlation = f"ing-{run_id}-{self._book.batches + 1}"
        tally = Tally()
        try:
            return fetch(
                self._s,
                line,
                at,
                self._pause,
                task=run_id,
                correlation=correlation,
                fragile=fragile,
                tally=tally,
            )
        finally:  # what was sent counts, also where the lease was lost between two attempts
            if (key := line.ledger_key) is not None:
                for one in {key, gate_of(self._s, line)[0]}:  # the planner's, and the bucket's own
                    self._book.use(one, tally.permits)

    def _defer(self, found: Deferred) -> Closing:
        self._book.carry(found.tally)
        return self._book.close(deferred(found.code, found.until, found.detail), self.checkpoint)

    def _exhausted(self, phase: Phase, place: Place, fetched: Fetched) -> Closing | None:
        now = self._now
        step = setbacks.exhausted(
            self.checkpoint, fetched.verdict, batches=self._book.batches, now=now, jitter=self._s.jitter()
        )
        return self._bare(phase, place, fetched, step, now)

    def _bare(self, phase: Phase, place: Place, fetched: Fetched, step: Step, started: int) -> Closing | None:
        """Commit a batch that brings nothing."""
        return self._land(self._course.line(phase), phase, place, fetched, nothing(), step, started, 0)

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
    ) -> Closing | None:
        entry = Entry(
            line=line,
            phase=phase,
            place=place,
            fetched=fetched,
            landing=landing,
            step=step,
            started=started,
            items=items,
        )
        closing = self._book.land(entry, self.checkpoint)
        self.checkpoint = step.checkpoint
        return closing
