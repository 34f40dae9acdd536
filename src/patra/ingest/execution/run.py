"""One attempt at a task: batch after batch goes through the same steps until the run ends (ch. 5.4.2, 9.3).

    resume → [ end? → choose → fetch → decide → commit ] → close

One `RunContext` holds what does not change; the checkpoint is what a run must not forget, and is committed with each
batch: a run that dies at any line is taken up at its last confirmed batch. The rules are in the stages (`on_success`,
`on_failure`), batches are written by the recorder (`run_recorder`); here they are put in order.
"""

from typing import assert_never

import msgspec
from msgspec.structs import replace

from patra.ingest.execution import on_failure, on_success
from patra.ingest.execution.on_success import Step
from patra.ingest.execution.run_context import RunContext
from patra.ingest.execution.run_recorder import Entry, RunRecorder
from patra.ingest.extraction.classify import Action
from patra.ingest.extraction.completeness import MAX_TRACKED_KEYS, NamelessItems, with_details, with_page
from patra.ingest.extraction.key_ranges import with_ranges
from patra.ingest.extraction.page_moves import led_back
from patra.ingest.extraction.pagination import End, Move, Next, PagePosition, Probe, stateful, too_deep, walk_over
from patra.ingest.fetching.endpoint_client import EndpointClient
from patra.ingest.fetching.fetch import Fetched, fetch
from patra.ingest.fetching.sender import Deferred, Tally
from patra.ingest.landing.list_keys import pages_before
from patra.ingest.landing.page_records import (
    Landing,
    ReadingTally,
    ids_of,
    nothing,
    records_of,
    unreadable,
    with_missing,
)
from patra.ingest.landing.run_state import DONE, Checkpoint, Closing, Phase, Stats, defer_task
from patra.ingest.ratelimit.token_bucket import Sign, Signal
from patra.ingest.vocabulary.codes import Dimension, MissingIds, PaginationType, Verify
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.telemetry import span


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for next: a page of the list, or the records of a group of ids."""

    line: EndpointClient
    phase: Phase
    place: PagePosition
    started: int
    ids: tuple[str, ...] = ()


class Carry(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that lands nothing: its costs count with the next batch, which goes on from this checkpoint."""

    tally: Tally
    checkpoint: Checkpoint
    healed: tuple[RunReason, ...] = ()


Decision = Entry | Carry | Deferred


class Run:
    """One attempt at a task."""

    def __init__(self, context: RunContext) -> None:
        self._run = context
        self._scope = context.scope
        self._recorder = RunRecorder(context)
        self.checkpoint = context.checkpoint
        self._keys: set[int] = set()
        self._earlier: set[int] = set()
        """Records of the readings before this one."""
        self._asked: set[int] = set()
        """Tokens and URLs of the pages of this reading that have landed, by their hashes."""
        self._nameless = NamelessItems()
        self._readings = ReadingTally()
        self._verifies = context.scope.spec.pagination.verify is Verify.TWICE
        self._refused: Fetched | None = None
        """The answer to a page that may lie behind the end of the list, which is asked for once more."""
        self._known_before = 0
        """Records of the list that earlier runs of the task have counted, and that nobody knows by name."""

    @property
    def stats(self) -> Stats:
        return self._recorder.stats

    @property
    def unbooked_permits(self) -> dict[str, int]:
        """Permits by rate key that no batch has booked."""
        return self._recorder.used

    def go(self) -> Closing:
        """Work until the task is done or cannot go on. Raises Fenced where the lease was lost."""
        self._resume()
        while True:
            if (closing := self._end()) is not None:
                return self._recorder.close(closing, self.checkpoint)
            if (closing := self._batch()) is not None:
                return closing

    def _batch(self) -> Closing | None:
        """One batch, from its request to its commit; a page that is only probed is none, but a span all the same."""
        labels, recorder = self._run.plan.listing.labels, self._recorder
        with span("Batch", **labels, run_id=self._run.run_id, batch_no=recorder.batches + 1) as here:
            ask = self._choose()
            closing = self._commit(self._decide(ask, self._fetch(ask)))
            here.set(**recorder.landed)
            return closing

    # --- the steps, in their order

    def _resume(self) -> None:
        self.checkpoint = on_success.resume_checkpoint(
            self._scope, self.checkpoint, self._run.now, attempt=self._run.task.attempt_no
        )
        counted, before = self.checkpoint.ledger.listing, self.checkpoint.ranges.read
        if not (index := self.checkpoint.place.index) or self.checkpoint.over:
            return
        pages = self._run.db.read(lambda tx: pages_before(tx, self._run.task.task.task_id, index))
        for page in pages:
            self._keys.update(page.keys)
            self._nameless.add(page.nameless)
        if len(pages) < index:  # a release that kept none began with the list
            self._known_before = max(counted.distinct_ids - before.distinct_ids - len(self._keys), 0)

    def _end(self) -> Closing | None:
        """How the run ends before another batch: everything is read, it is to stop, or its budget is used up."""
        if self.checkpoint.is_finished:
            last = on_success.finish_window(self._scope, self.checkpoint)
            self.checkpoint = last.checkpoint
            return last.closing or DONE
        now, recorder = self._run.now, self._recorder
        if not self._run.pause(0):
            return defer_task(RunReason.STOPPED, now, "the executor stops; the task goes on from here")
        found = on_failure.over_budget(
            self._scope,
            self.checkpoint,
            requests=recorder.stats.req_count,
            batches=recorder.batches,
            started=self._run.started,
            now=now,
        )
        if found is None:
            return None
        closing, acts = found
        recorder.healing(acts)
        return closing

    def _choose(self) -> Ask:
        ids = on_success.group(self._scope, self.checkpoint)
        phase = Phase.DETAIL if ids else Phase.LIST
        line = self._run.plan.line(phase)
        return Ask(line=line, phase=phase, place=self.checkpoint.place, started=self._run.now, ids=ids)

    def _fetch(self, ask: Ask) -> Fetched | Deferred:
        run, line, tally = self._run, ask.line, Tally()
        fragile = ask.phase is Phase.LIST and stateful(run.plan.spec.pagination) and ask.place.index > 0
        try:
            return fetch(
                run.services,
                line,
                self._scope.at(line, ask.place, ask.started, ask.ids, self.checkpoint.ranges.current),
                run.pause,
                task=run.run_id,
                correlation=run.correlation_id(self._recorder.batches + 1),
                fragile=fragile,
                tally=tally,
            )
        finally:  # what was sent counts, also where the lease was lost between two attempts
            if (key := line.ledger_key) is not None:  # the planner's, and the buckets' own
                for one, permits in ({key: sum(tally.permits_by_key.values())} | tally.permits_by_key).items():
                    self._recorder.use(one, permits)

    def _decide(self, ask: Ask, fetched: Fetched | Deferred) -> Decision:
        if isinstance(fetched, Deferred):
            return fetched
        return self._decide_list(ask, fetched) if ask.phase is Phase.LIST else self._decide_details(ask, fetched)

    def _commit(self, decision: Decision) -> Closing | None:
        """Write what was decided; gives the end of the run, if it is one."""
        recorder = self._recorder
        match decision:
            case Deferred(code=code, until=until, detail=detail, tally=tally):
                recorder.carry(tally)
                return recorder.close(defer_task(code, until, detail), self.checkpoint)
            case Carry(tally=tally, checkpoint=checkpoint, healed=healed):
                recorder.carry(tally)
                recorder.healing(healed)
                self.checkpoint = checkpoint
                return None
            case Entry(step=step):
                closing = recorder.land(decision, self.checkpoint)
                self.checkpoint = replace(step.checkpoint, ledger=recorder.ledger or step.checkpoint.ledger)
                return closing
            case _:
                assert_never(decision)

    # --- deciding on a page of a list

    def _decide_list(self, ask: Ask, fetched: Fetched) -> Decision:
        scope, checkpoint, place = self._scope, self.checkpoint, ask.place
        judged = on_failure.behind_the_end(scope.spec.pagination, place, fetched, self._refused)
        if judged is None:
            self._refused = fetched
            return Carry(tally=fetched.tally, checkpoint=checkpoint)
        self._refused, fetched, verdict = None, judged, judged.verdict
        match verdict.action:
            case Action.ACCEPT | Action.EMPTY | Action.END:
                return self._page(ask, fetched)
            case Action.RETRY:
                return self._exhausted_entry(ask, fetched)
            case Action.RESTART:
                return _bare(ask, fetched, on_failure.after_lost_cursor(scope, checkpoint, place, self._run.now))
            case Action.RESLICE if on_success.can_shrink(scope, place):
                shrunk = replace(checkpoint, place=on_success.smaller(place))
                return Carry(tally=fetched.tally, checkpoint=shrunk, healed=(RunReason.PAGE_SHRINK,))
            case Action.RESLICE:
                return _bare(ask, fetched, on_failure.too_large(scope, checkpoint, verdict))
            case Action.BISECT:
                return _bare(ask, fetched, on_failure.after_bisection(scope, checkpoint, verdict))
            case Action.FAIL | Action.HALT:
                return _bare(ask, fetched, on_failure.after_refusal(checkpoint, verdict))

    def _page(self, ask: Ask, fetched: Fetched) -> Entry | Carry:
        scope, line, place, listed = self._scope, ask.line, ask.place, fetched.listed
        items = (listed.items or []) if listed is not None else []
        total = listed.total if listed is not None else None
        places = len(items) + (listed.null_items if listed is not None else 0)
        if (keys := self.checkpoint.ranges.current) is not None and keys.recount:
            return _bare(ask, fetched, on_success.after_ranges(scope, self.checkpoint, total, self._run.now))
        if too_deep(total, line.leg.limits.max_depth, place) and scope.slice.dimension is Dimension.TIME:
            return _bare(ask, fetched, on_failure.too_deep(scope, self.checkpoint, total or 0))
        if self._run.plan.detail is not None:
            landing = ids_of(line, items, scope.growing_key)
        else:
            window = scope.covers if scope.spec.window.client_filter else None
            landing = records_of(line, items, fetched.at.now, self._run.plan.plan, window, scope.growing_key)
        if scope.spec.pagination.type is PaginationType.TIME:  # its pages overlap
            met = self._nameless if place.index else NamelessItems()
            landing = replace(landing, without_id=met.fresh(landing.nameless))
        overlaps = place.index > 0 and not place.reread and not landing.keys.isdisjoint(self._keys)
        if place.index == 0:
            self._readings = ReadingTally()
        tally = self._readings.of(landing) if self._verifies else 0
        move = on_success.move_on(
            scope, line, self.checkpoint, place, fetched, landing, len(items), overlaps=overlaps, tally=tally
        )
        move = led_back(scope.spec.pagination, place, move, self._asked if place.index else set())
        if isinstance(move, End) and place.passes and self._keys | landing.keys <= self._earlier:
            move = replace(move, place=replace(move.place, overlapped=False))  # read again, and nothing else came
        if isinstance(move, Probe):
            return Carry(tally=fetched.tally, checkpoint=replace(self.checkpoint, place=move.place))
        step = on_success.after_page(
            scope,
            self._count_page(landing, move, total, places),
            place,
            landing,
            move,
            total,
            self._run.now,
            items=places,
            distinct_ids=None if len(self._keys) > MAX_TRACKED_KEYS else self._known_before + len(self._keys),
        )
        if isinstance(move, Next):
            body = len(fetched.answer.body) if fetched.answer is not None else 0
            step = self._heal_page(line, step, place, total, fetched, body)
        return _entry(ask, fetched, landing, step, len(items))

    def _count_page(self, landing: Landing, move: Move, total: int | None, places: int) -> Checkpoint:
        """The checkpoint with a page that will land, counted. Each reading of the list counts its own records.

        A record that has left the list meanwhile must not stand for one that never came.
        """
        if self.checkpoint.place.index == 0:
            self._earlier = self._earlier | self._keys if self.checkpoint.place.passes else set()
            self._keys, self._known_before, self._nameless = set(), 0, NamelessItems()
            self._asked = set()
        self._asked.add(hash(self.checkpoint.place.token or self.checkpoint.place.url))
        if len(self._keys) <= MAX_TRACKED_KEYS:
            self._keys |= landing.keys
        self._nameless.add(landing.nameless)
        if self._verifies:
            self._readings.add(landing)
        ledger = with_page(
            self.checkpoint.ledger,
            walk_over(self._run.plan.spec.pagination, move.place, places),
            (move.place.total or 0) if self.checkpoint.ranges.todo else total,
            distinct_ids=self._known_before + len(self._keys),
            readings=move.place.passes + 1,
        )
        if self.checkpoint.ranges.todo:
            ledger = with_ranges(ledger, self.checkpoint.ranges.read)
        highest = max((key for key in (self.checkpoint.highest, *landing.growing) if key is not None), default=None)
        earlier = None if self.checkpoint.place.index == 0 else self.checkpoint.last_key
        last_key = landing.growing[-1] if landing.growing else earlier
        return replace(self.checkpoint, ledger=ledger, highest=highest, last_key=last_key)

    def _heal_page(
        self, line: EndpointClient, step: Step, place: PagePosition, total: int | None, fetched: Fetched, body: int
    ) -> Step:
        """What the matrix of 12.2 says, done."""
        services, tally = self._run.services, fetched.tally
        step = on_success.heal_page(
            self._scope,
            self.checkpoint,
            step,
            place,
            total,
            services.pulses.of(line.circuit_key).vitals(self._run.now),
            told_to_wait=self._recorder.carried.told + tally.told > 0,
            limits=services.thresholds,
            body_bytes=body,
            run_requests=self.stats.req_count + tally.requests,
            run_throttled=self.stats.throttled + tally.throttled,
        )
        if RunReason.QPS_DOWNSHIFT in step.healed:
            services.gate.tell(*fetched.gate, Signal(sign=Sign.DOWNSHIFT))
        return step

    # --- deciding on a group of details

    def _decide_details(self, ask: Ask, fetched: Fetched) -> Decision:
        line, ids, verdict = ask.line, ask.ids, fetched.verdict
        missing = line.leg.batching.missing_ids
        garbled = verdict.code is RunReason.UNREADABLE
        match verdict.action:
            case Action.ACCEPT | Action.EMPTY | Action.END:
                items = (fetched.listed.items or []) if fetched.listed is not None else []
                came = records_of(line, items, fetched.at.now, self._run.plan.plan)
                told = verdict.action is Action.EMPTY and bool(verdict.rule) and len(ids) == 1
                landing = with_missing(came, ids, missing, told_empty=told)
                return self._group(ask, fetched, landing, len(items))
            case Action.HALT:
                return _bare(ask, fetched, on_failure.after_refusal(self.checkpoint, verdict))
            case Action.RETRY | Action.RESTART if not garbled:
                return self._exhausted_entry(ask, fetched)
            case _ if len(ids) > 1:  # one of them spoils the group: find it by halves
                halved = replace(self.checkpoint, group=max(len(ids) // 2, 1))
                return Carry(tally=fetched.tally, checkpoint=halved)
            case _:
                landing = unreadable(ids, verdict.detail) if garbled else with_missing(nothing(), ids, missing)
                return self._group(ask, fetched, landing, 0)

    def _group(self, ask: Ask, fetched: Fetched, landing: Landing, items: int) -> Entry:
        line, ids = ask.line, ask.ids
        ignored = line.leg.batching.missing_ids is MissingIds.IGNORE
        ledger = with_details(self.checkpoint.ledger, set(ids), set(landing.ids), ignored=ignored)
        landing = replace(landing, ids=list(dict.fromkeys([*ids, *landing.ids])))
        checkpoint = replace(self.checkpoint, ledger=ledger)
        step = on_success.after_details(self._scope, line, checkpoint, ids, self._run.now)
        return _entry(ask, fetched, landing, step, items)

    def _exhausted_entry(self, ask: Ask, fetched: Fetched) -> Entry:
        now, jitter = self._run.now, self._run.services.jitter()
        batches = self._recorder.batches
        step = on_failure.after_exhaustion(self.checkpoint, fetched.verdict, batches=batches, now=now, jitter=jitter)
        return _bare(replace(ask, started=now), fetched, step)


def _bare(ask: Ask, fetched: Fetched, step: Step) -> Entry:
    """A batch that brings nothing."""
    return _entry(ask, fetched, nothing(), step, 0)


def _entry(ask: Ask, fetched: Fetched, landing: Landing, step: Step, items: int) -> Entry:
    return Entry(
        line=ask.line,
        phase=ask.phase,
        place=ask.place,
        fetched=fetched,
        landing=landing,
        step=step,
        started=ask.started,
        items=items,
    )
