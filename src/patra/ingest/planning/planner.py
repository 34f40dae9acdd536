"""Turns triggers into plans, slices and queued tasks, each once however often it is asked for (ch. 5.3, 8).

The shell around the stages: read, compile, decide, write. A plan is made in one transaction and cut into slices in many
small ones, each of which says how far it came; a planner that finds it half cut continues there. The planner never asks
the network anything.
"""

from collections.abc import Iterator
from itertools import islice

import msgspec

from patra.ingest.packs import registry, staged_release
from patra.ingest.packs.checks import Dictionary
from patra.ingest.packs.compiler import Compiled, LoadedPack, Overrides, compile_spec
from patra.ingest.packs.problems import Problem, errors
from patra.ingest.packs.spec import Spec
from patra.ingest.planning import plan_rows, store
from patra.ingest.planning.earlier_watermark import watermark_of
from patra.ingest.planning.limits import back_pressure
from patra.ingest.planning.limits.cost import Cost, cost_of
from patra.ingest.planning.limits.leg_quotas import taken_of
from patra.ingest.planning.limits.rate_budget import rate_budget
from patra.ingest.planning.reslice import answer_reslices
from patra.ingest.planning.schedule import DueTick, due_ticks
from patra.ingest.planning.slicer import SLICES_PER_TRANSACTION, PlanSlicer
from patra.ingest.planning.slicing.slice_groups import Group
from patra.ingest.planning.slicing.slice_spec import Sliced, Slicer
from patra.ingest.planning.slicing.windows import Span, gaps
from patra.ingest.planning.snapshot_cache import SnapshotCache, snapshot_key
from patra.ingest.planning.trigger import Trigger, activity_key, trigger_key, unused_options
from patra.ingest.planning.update_candidates import update_candidates
from patra.ingest.planning.window_intent import Idle, window_note, window_of
from patra.ingest.vocabulary.codes import Dimension, Operation
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.clock import MINUTE, Clock
from patra.kernel.db import Database, Tx
from patra.kernel.errors import Permanent
from patra.kernel.telemetry import counter, get_logger, span

log = get_logger()
PLANS = counter("patra_ingest_plans_total", "Triggers by outcome.", "source", "endpoint", "op", "outcome")

NOTHING_TO_PLAN = frozenset({Reason.WINDOW_EMPTY, Reason.WINDOW_COVERED, Reason.NO_CANDIDATES, Reason.TICK_MISSED})
"""Outcomes of triggers that were right but found nothing to do."""


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a trigger."""

    outcome: Reason
    detail: str = ""
    schedule_instance_id: str | None = None
    plan_id: str | None = None
    status: str | None = None
    slices: int = 0
    problems: tuple[Problem, ...] = ()
    note: str = ""
    """The window of the plan, and why it ends before now."""

    @property
    def is_refused(self) -> bool:
        """Whether the trigger could not be planned, other than for want of work."""
        return self.plan_id is None and self.outcome not in NOTHING_TO_PLAN


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """What a trigger would do."""

    outcome: Reason
    detail: str = ""
    spec: Spec | None = None
    namespace: str = ""
    window: Span | None = None
    todo: tuple[Span, ...] = ()
    slices: tuple[Sliced, ...] = ()
    more: bool = False
    problems: tuple[Problem, ...] = ()
    cost: Cost | None = None
    note: str = ""

    @property
    def is_refused(self) -> bool:
        """Whether the trigger could not be planned, other than for want of work."""
        return self.spec is None and self.outcome not in NOTHING_TO_PLAN


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

    def __init__(
        self,
        db: Database,
        clock: Clock,
        *,
        chunk: int = SLICES_PER_TRANSACTION,
        snapshots: SnapshotCache | None = None,
    ) -> None:
        """`snapshots` keeps compiled snapshots for triggers that say the same again; without it each compiles."""
        self._db = db
        self._snapshots = snapshots
        self._clock = clock
        self._cutter = PlanSlicer(db, clock, chunk=chunk)

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
            if made.outcome is not Reason.PLANNED or made.plan_id is None:
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
            slicer = Slicer(spec, decided.key, rate_budget(tx, spec, now))
            found: list[Sliced] = []

            def groups() -> Iterator[Group]:
                for group in self._cutter.groups(
                    tx, spec, slicer, decided.window, "", decided.namespace, store.NO_PLAN_ID, trigger.describe_trigger
                ):
                    found.extend(islice(group.slices, max(limit + 1 - len(found), 0)))
                    yield group

            cost = cost_of(spec, groups(), taken_of(tx, spec, now), now)
            return Preview(
                outcome=Reason.PLANNED,
                spec=spec,
                namespace=decided.namespace,
                window=decided.window,
                todo=decided.todo,
                slices=tuple(found[:limit]),
                more=len(found) > limit,
                problems=decided.warnings,
                cost=cost,
                note=window_note(spec, trigger, decided.window, now),
            )

        return self._db.read(look)

    def compile(self, trigger: Trigger) -> Compiled:
        """The snapshot that a plan would get, or every reason why not."""
        return self._compile(trigger)

    def _compile(self, trigger: Trigger) -> Compiled:
        if self._snapshots is None:
            return self._compile_anew(trigger)
        key = self._db.read(lambda tx: snapshot_key(tx, trigger))
        if key is not None and (known := self._snapshots.find(key)) is not None:
            return known
        return self._compile_anew(trigger)

    def _compile_anew(self, trigger: Trigger) -> Compiled:
        key, loaded, dictionary = self._read_sources(trigger)
        compiled = self._compile_from(trigger, loaded, dictionary)
        if self._snapshots is not None and key is not None:
            self._snapshots.keep(key, compiled)
        return compiled

    def _read_sources(self, trigger: Trigger) -> tuple[str | None, LoadedPack | None, Dictionary]:
        """The pack and the codes, with the key of just these: a trial may begin or end between two reads."""

        def read(tx: Tx) -> tuple[str | None, LoadedPack | None, Dictionary]:
            trial = staged_release.staged_version(tx, trigger.source)
            tick = trigger.log or str(self._clock.now() // MINUTE)
            what = f"{trigger.source}/{trigger.endpoint}/{trigger.operation.value}/{trigger.job}/{tick}"
            if trial is not None and staged_release.takes_part(trial, what):
                return None, trial.pack, registry.dictionary(tx)
            key = snapshot_key(tx, trigger) if trial is None and self._snapshots is not None else None
            return key, registry.read_pack(tx, trigger.source), registry.dictionary(tx)

        return self._db.read(read)

    def _compile_from(self, trigger: Trigger, loaded: LoadedPack | None, dictionary: Dictionary) -> Compiled:
        if loaded is None:
            problem = Problem(
                code=Reason.SOURCE_UNKNOWN,
                message=f"no source {trigger.source!r} is loaded",
                advice="load its pack with `patra ingest pack load FILE`",
            )
            return Compiled(spec=None, problems=(problem,), origins={})
        if not loaded.pack.enabled:
            problem = loaded.source.problem(
                Reason.SOURCE_DISABLED, ("enabled",), f"{trigger.source} is disabled in its pack"
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
        if trigger.log and (seen := store.instance_of_tick(tx, trigger)) and seen.plan_id:
            return self._existing(tx, seen)
        decided = self._decide(tx, trigger, compiled, now)
        if trigger.topic and compiled.spec is not None and (isinstance(decided, Intent) or not decided.is_refused):
            store.follow_topic(tx, trigger.topic, compiled.spec.selection_key)
        if isinstance(decided, Planned):
            remarks = {"detail": decided.detail, "problems": [str(problem) for problem in decided.problems]}
            key = trigger_key(trigger, decided.outcome.value, 0, ())
            instance = plan_rows.write_instance(tx, trigger, key, decided.outcome, remarks, compiled.spec, now)
            return msgspec.structs.replace(decided, schedule_instance_id=instance)
        if (seen := store.instance_of_key(tx, decided.key)) and seen.plan_id:
            return self._existing(tx, seen)
        spec = decided.spec
        remarks = plan_rows.remarks_of(spec, decided.window, decided.namespace, decided.warnings)
        instance = plan_rows.write_instance(
            tx, trigger, decided.key, Reason.PLANNED, {"warnings": remarks["warnings"]}, spec, now
        )
        plan_id = plan_rows.write_plan(tx, spec, instance, decided.key, decided.window, decided.namespace, remarks, now)
        told = [problem.message for problem in decided.warnings if problem.code is Reason.WATERMARK_REPLACED]
        for message in told:
            log.warning("watermark_replaced", source=spec.provenance_code, endpoint=spec.endpoint_code, detail=message)
        return Planned(
            outcome=Reason.PLANNED,
            detail="; ".join(told),
            note=window_note(spec, trigger, decided.window, now),
            schedule_instance_id=instance,
            plan_id=plan_id,
            problems=decided.warnings,
        )

    def _existing(self, tx: Tx, seen: store.Instance) -> Planned:
        row = store.plan_row(tx, seen.plan_id or "")
        return Planned(
            outcome=Reason.WINDOW_COVERED,
            detail="the same trigger made this plan before",
            schedule_instance_id=seen.schedule_instance_id,
            plan_id=seen.plan_id,
            status=row.status_code if row else None,
        )

    def _decide(self, tx: Tx, trigger: Trigger, compiled: Compiled, now: int) -> Intent | Planned:
        """What is to be planned, or why nothing is."""
        if compiled.spec is None:
            found = errors(compiled.problems)
            return Planned(
                outcome=Reason.COMPILE_FAILED, detail=str(found[0]) if found else "", problems=compiled.problems
            )
        if (wrong := unused_options(trigger)) is not None:
            return Planned(outcome=Reason.OPTION_UNUSED, detail=wrong)
        for halt in store.halts(tx, trigger.source, trigger.endpoint):
            code = Reason.PAUSED if halt.kind == "PAUSE" else Reason.BREAKER_OPEN
            return Planned(outcome=code, detail=f"{code.text}: {halt.detail} (by {halt.by})")
        spec = compiled.spec
        warnings = tuple(compiled.warnings)
        if spec.operation is Operation.UPDATE:
            return self._refresh(tx, trigger, spec, warnings, now)
        if spec.by_key:
            return self._new_keys(tx, trigger, spec, warnings)
        mark, earlier = watermark_of(tx, spec, trigger, now)
        if earlier is not None:
            warnings = (*warnings, earlier.warning(spec))
        window = window_of(spec, trigger, mark, now, back_pressure.added_lag(tx, spec, now))
        if isinstance(window, Idle):
            return Planned(outcome=window.code, detail=window.detail)
        namespace = spec.cursor.namespace_key or activity_key(trigger, spec.selection_key)
        if spec.dimension is Dimension.PAGE:
            todo = () if store.under_way(tx, spec, namespace) else (window,)
        else:
            todo = tuple(gaps(window, store.covered_spans(tx, spec, namespace, window)))
        if not todo:
            return Planned(outcome=Reason.WINDOW_COVERED, detail="every part of the window is done or under way")
        key = trigger_key(trigger, namespace, store.generation(tx, spec, namespace), todo)
        return Intent(spec=spec, warnings=warnings, window=window, todo=todo, namespace=namespace, key=key)

    def _new_keys(self, tx: Tx, trigger: Trigger, spec: Spec, warnings: tuple[Problem, ...]) -> Intent | Planned:
        """A harvest by a growing key: one list from the last key on, and no window."""
        if trigger.since is not None or trigger.until is not None:
            return Planned(outcome=Reason.OPTION_UNUSED, detail=f"a harvest by {spec.cursor.key} has no from and no to")
        namespace = spec.cursor.namespace_key
        if store.under_way(tx, spec, namespace):
            return Planned(outcome=Reason.WINDOW_COVERED, detail="a harvest of the new keys is under way")
        key = trigger_key(trigger, namespace, store.generation(tx, spec, namespace), ())
        return Intent(spec=spec, warnings=warnings, window=None, todo=(), namespace=namespace, key=key)

    def _refresh(
        self, tx: Tx, trigger: Trigger, spec: Spec, warnings: tuple[Problem, ...], now: int
    ) -> Intent | Planned:
        namespace = activity_key(trigger, spec.selection_key)
        if store.under_way(tx, spec, namespace):
            return Planned(outcome=Reason.WINDOW_COVERED, detail="a refresh of these records is under way")
        count = len(trigger.ids) or sum(map(len, update_candidates(tx, spec, 1, now)))
        if not count:
            return Planned(
                outcome=Reason.NO_CANDIDATES, detail="no record was signalled, is stale or has another mapping"
            )
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
            return Planned(outcome=Reason.TRIGGER_FAILED, detail=str(error))

    def _waits(self, trigger: Trigger) -> bool:
        """Whether a tick has been refused before because its source stands still, and it still does."""

        def look(tx: Tx) -> bool:
            halted = store.halts(tx, trigger.source, trigger.endpoint)
            return bool(halted and store.instance_of_tick(tx, trigger))

        return self._db.read(look)

    def _tick(self, due: DueTick, now: int) -> Planned | None:
        """Fire a tick and note the result; None where its source stands still."""
        if due.trigger is None:
            made = Planned(outcome=Reason.TICK_MISSED, detail=Reason.TICK_MISSED.text)
        elif self._waits(due.trigger):
            return None
        else:
            made = self._fire(due.trigger)
        if made.outcome in {Reason.PAUSED, Reason.BREAKER_OPEN}:
            return None
        said = "; ".join(filter(None, (made.detail, made.note)))
        self._db.run(lambda tx: store.write_tick(tx, due, made.outcome.value, said, made.plan_id, now))
        return made

    def run_once(self) -> PlannerCounts:
        """Fire the schedules that are due, answer executors that ask for smaller slices, go on with open plans."""
        counts = PlannerCounts()
        now = self._clock.now()
        schedules, fired = self._db.read(lambda tx: (store.schedules(tx), store.fired_ticks(tx)))
        for entry in schedules:
            for due in due_ticks(entry, fired.get(entry.job), now):
                made = self._tick(due, now)
                if made is None:
                    break  # the ticks of a source that stands still are not lost: they fire when it goes on
                counts = msgspec.structs.replace(
                    counts,
                    triggered=counts.triggered + 1,
                    planned=counts.planned + int(made.outcome is Reason.PLANNED),
                    refused=counts.refused + int(made.is_refused),
                    slices=counts.slices + made.slices,
                )
        resliced, added = answer_reslices(self._db, self._clock)
        resumed = 0
        for plan_id, _ in self._db.read(lambda tx: store.open_plans(tx, 100)):
            _, new = self.advance(plan_id)
            resumed += int(new > 0)
            added += new
        return msgspec.structs.replace(counts, resliced=resliced, resumed=resumed, slices=counts.slices + added)
