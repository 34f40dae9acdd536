"""Triggers go in; plans, slices and queued tasks come out, each once however often it is asked for (ch. 5.3, 8).

The shell around the stages: read, compile, decide, write. A plan is made in one transaction and cut into slices in many
small ones, each of which says how far it came; whoever finds a plan half cut goes on from there. The planner never asks
the network anything.
"""

from itertools import islice

import msgspec

from patra.ingest import plans, shelf, store
from patra.ingest.checks import Dictionary
from patra.ingest.codes import Dimension, Operation
from patra.ingest.compiler import Compiled, LoadedPack, Overrides, compile_spec
from patra.ingest.cutter import CHUNK, Cutter, candidates
from patra.ingest.intent import Idle, window_of
from patra.ingest.problem import Problem, errors
from patra.ingest.reasons import R
from patra.ingest.reslicing import answer_reslices
from patra.ingest.schedule import due_triggers, latest_tick
from patra.ingest.slices import Sliced, Slicer
from patra.ingest.slicing import Span, gaps
from patra.ingest.spec import Spec
from patra.ingest.trigger import Trigger, activity_key, trigger_key
from patra.kernel.clock import Clock
from patra.kernel.db import Database, Tx
from patra.kernel.errors import Permanent
from patra.kernel.telemetry import counter, get_logger, span

log = get_logger()
PLANS = counter("patra_ingest_plans_total", "Triggers by what came of them.", "source", "endpoint", "op", "outcome")


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a trigger."""

    outcome: R
    detail: str = ""
    schedule_instance_id: str | None = None
    plan_id: str | None = None
    status: str | None = None
    slices: int = 0
    problems: tuple[Problem, ...] = ()


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """What a trigger would do."""

    outcome: R
    detail: str = ""
    spec: Spec | None = None
    namespace: str = ""
    window: Span | None = None
    todo: tuple[Span, ...] = ()
    slices: tuple[Sliced, ...] = ()
    more: bool = False
    problems: tuple[Problem, ...] = ()


class PlannerCounts(msgspec.Struct, frozen=True, kw_only=True):
    """What one turn of the planner did."""

    triggered: int = 0
    planned: int = 0
    refused: int = 0
    resliced: int = 0
    resumed: int = 0
    slices: int = 0


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """A compiled trigger with what it is to cover."""

    spec: Spec
    warnings: tuple[Problem, ...]
    window: Span | None
    todo: tuple[Span, ...]
    namespace: str
    key: str
    ids: int = 0


class Planner:
    """One planner; any number may run on one store."""

    def __init__(self, db: Database, clock: Clock, *, chunk: int = CHUNK) -> None:
        self._db = db
        self._clock = clock
        self._cutter = Cutter(db, clock, chunk=chunk)

    # --- triggers

    def trigger(self, trigger: Trigger) -> Planned:
        """Make a plan and cut it, or say why not. Doing it again finds what is there."""
        labels = {"source": trigger.source, "endpoint": trigger.endpoint, "op": trigger.operation.value}
        with span("PlannerTrigger", **labels) as turn:
            now = self._clock.now()
            with span("CompileSpec", **labels):
                compiled = self._compile(trigger)
            made = self._db.run(lambda tx: self._make(tx, trigger, compiled, now))
            PLANS.labels(**labels, outcome=made.outcome.value).inc()
            turn.set(outcome=made.outcome.value, plan=made.plan_id or "")
            if made.outcome is not R.PLANNED or made.plan_id is None:
                return made
            status, slices = self.advance(made.plan_id)
            return msgspec.structs.replace(made, status=status, slices=slices)

    def preview(self, trigger: Trigger, limit: int = 1000) -> Preview:
        """What the trigger would do, without writing anything."""
        now = self._clock.now()
        compiled = self._compile(trigger)

        def look(tx: Tx) -> Preview:
            decided = self._decide(tx, trigger, compiled, now)
            if isinstance(decided, Planned):
                return Preview(outcome=decided.outcome, detail=decided.detail, problems=decided.problems)
            spec = decided.spec
            slicer = Slicer(spec, decided.key)
            groups = self._cutter.groups(
                tx, spec, slicer, decided.window, "", decided.namespace, store.NOBODY, trigger.described
            )
            found = list(islice((one for group in groups for one in group.slices), limit + 1))
            return Preview(
                outcome=R.PLANNED,
                spec=spec,
                namespace=decided.namespace,
                window=decided.window,
                todo=decided.todo,
                slices=tuple(found[:limit]),
                more=len(found) > limit,
                problems=decided.warnings,
            )

        return self._db.read(look)

    def compile(self, trigger: Trigger) -> Compiled:
        """The snapshot that a plan would get, or every reason why not."""
        return self._compile(trigger)

    def _compile(self, trigger: Trigger) -> Compiled:
        def read(tx: Tx) -> tuple[LoadedPack | None, Dictionary]:
            return shelf.read_pack(tx, trigger.source), shelf.dictionary(tx)

        loaded, dictionary = self._db.read(read)
        if loaded is None:
            problem = Problem(
                code=R.SOURCE_UNKNOWN,
                message=f"no source {trigger.source!r} is loaded",
                advice="load its pack with `patra ingest pack load FILE`",
            )
            return Compiled(spec=None, problems=(problem,), origins={})
        if not loaded.pack.enabled:
            problem = loaded.source.problem(
                R.SOURCE_DISABLED, ("enabled",), f"{trigger.source} is disabled in its pack"
            )
            return Compiled(spec=None, problems=(problem,), origins={})
        sections = dict(trigger.sections)
        if trigger.priority is not None:
            sections["planning"] = {**sections.get("planning", {}), "priority": trigger.priority}
        given = Overrides(params=trigger.params, sections=sections)
        return compile_spec(loaded, trigger.endpoint, trigger.operation, given, dictionary)

    def _make(self, tx: Tx, trigger: Trigger, compiled: Compiled, now: int) -> Planned:
        """The instance and, where there is something to do, the plan: one transaction, one planner at a time."""
        store.take_turns(tx, f"{trigger.source}/{trigger.endpoint}/{trigger.operation.value}")
        if (
            trigger.log
            and (seen := store.instance_of_tick(tx, trigger.scheduler, trigger.job, trigger.log))
            and seen.plan_id
        ):
            return self._existing(tx, seen)
        decided = self._decide(tx, trigger, compiled, now)
        if isinstance(decided, Planned):
            if decided.outcome in {R.WINDOW_EMPTY, R.WINDOW_COVERED, R.NO_CANDIDATES}:
                return decided
            remarks = {"detail": decided.detail, "problems": [str(problem) for problem in decided.problems]}
            key = trigger_key(trigger, decided.outcome.value, 0, ())
            instance = plans.write_instance(tx, trigger, key, decided.outcome, remarks, compiled.spec, now)
            return msgspec.structs.replace(decided, schedule_instance_id=instance)
        if (seen := store.instance_of_key(tx, decided.key)) and seen.plan_id:
            return self._existing(tx, seen)
        spec = decided.spec
        remarks = plans.remarks_of(spec, decided.window, decided.namespace, decided.warnings)
        instance = plans.write_instance(
            tx, trigger, decided.key, R.PLANNED, {"warnings": remarks["warnings"]}, spec, now
        )
        plan_id = plans.write_plan(tx, spec, instance, decided.key, decided.window, decided.namespace, remarks, now)
        return Planned(outcome=R.PLANNED, schedule_instance_id=instance, plan_id=plan_id, problems=decided.warnings)

    def _existing(self, tx: Tx, seen: store.Instance) -> Planned:
        row = store.plan_row(tx, seen.plan_id or "")
        return Planned(
            outcome=R.WINDOW_COVERED,
            detail="the same trigger made this plan before",
            schedule_instance_id=seen.schedule_instance_id,
            plan_id=seen.plan_id,
            status=row.status_code if row else None,
        )

    def _decide(self, tx: Tx, trigger: Trigger, compiled: Compiled, now: int) -> Intent | Planned:
        """What is to be planned, or why nothing is."""
        if compiled.spec is None:
            found = errors(compiled.problems)
            return Planned(outcome=R.COMPILE_FAILED, detail=str(found[0]) if found else "", problems=compiled.problems)
        for halt in store.halts(tx, trigger.source, trigger.endpoint):
            code = R.PAUSED if halt.kind == "PAUSE" else R.BREAKER_OPEN
            return Planned(outcome=code, detail=f"{code.text}: {halt.detail} (by {halt.by})")
        spec = compiled.spec
        warnings = tuple(compiled.warnings)
        if spec.operation is Operation.UPDATE:
            return self._refresh(tx, trigger, spec, warnings, now)
        window = window_of(spec, trigger, store.watermark(tx, spec), now)
        if isinstance(window, Idle):
            return Planned(outcome=window.code, detail=window.detail)
        namespace = spec.cursor.namespace_key or activity_key(trigger, spec.selection_key)
        if spec.dimension is Dimension.PAGE:
            todo = () if store.under_way(tx, spec, namespace) else (window,)
        else:
            todo = tuple(gaps(window, store.covered(tx, spec, namespace, window)))
        if not todo:
            return Planned(outcome=R.WINDOW_COVERED, detail="every part of the window is done or under way")
        key = trigger_key(trigger, namespace, store.generation(tx, spec, namespace), todo)
        return Intent(spec=spec, warnings=warnings, window=window, todo=todo, namespace=namespace, key=key)

    def _refresh(
        self, tx: Tx, trigger: Trigger, spec: Spec, warnings: tuple[Problem, ...], now: int
    ) -> Intent | Planned:
        namespace = activity_key(trigger, spec.selection_key)
        if store.under_way(tx, spec, namespace):
            return Planned(outcome=R.WINDOW_COVERED, detail="a refresh of these records is under way")
        count = len(trigger.ids) or sum(map(len, candidates(tx, spec, 1, now)))
        if not count:
            return Planned(outcome=R.NO_CANDIDATES, detail="no record was signalled, is stale or has another mapping")
        key = trigger_key(trigger, namespace, store.generation(tx, spec, namespace), ())
        return Intent(spec=spec, warnings=warnings, window=None, todo=(), namespace=namespace, key=key, ids=count)

    # --- the loop

    def advance(self, plan_id: str) -> tuple[str | None, int]:
        """Go on with a plan as far as inventory and quota allow; gives its state and how many slices were added."""
        return self._cutter.advance(plan_id)

    def _fire(self, trigger: Trigger) -> Planned:
        """A schedule that cannot be planned must not keep the others from theirs."""
        try:
            return self.trigger(trigger)
        except Permanent as error:
            log.warning(
                "trigger_failed", source=trigger.source, endpoint=trigger.endpoint, job=trigger.job, error=str(error)
            )
            return Planned(outcome=R.TRIGGER_FAILED, detail=str(error))

    def run_once(self) -> PlannerCounts:
        """Fire the schedules that are due, answer executors that ask for smaller slices, go on with open plans."""
        counts = PlannerCounts()
        now = self._clock.now()
        schedules, fired = self._db.read(lambda tx: (store.schedules(tx), store.fired_ticks(tx)))
        for trigger in due_triggers(schedules, fired, now):
            made = self._fire(trigger)
            cron = next(entry.schedule.cron for entry in schedules if entry.job == trigger.job)
            tick = latest_tick(cron, now)
            self._db.run(
                lambda tx, t=trigger, m=made, at=tick: store.write_tick(
                    tx, t.job, at, m.outcome.value, m.detail, m.plan_id, now
                )
            )
            counts = msgspec.structs.replace(
                counts,
                triggered=counts.triggered + 1,
                planned=counts.planned + int(made.outcome is R.PLANNED),
                refused=counts.refused + int(made.schedule_instance_id is not None and made.plan_id is None),
                slices=counts.slices + made.slices,
            )
        resliced, added = answer_reslices(self._db, self._clock)
        resumed = 0
        for plan_id, _ in self._db.read(lambda tx: store.open_plans(tx, 100)):
            _, new = self.advance(plan_id)
            resumed += int(new > 0)
            added += new
        return msgspec.structs.replace(counts, resliced=resliced, resumed=resumed, slices=counts.slices + added)
