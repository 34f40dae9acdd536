"""Turns leases into finished tasks: a turn takes the next task, fairly by partition, and works on it (ch. 5.4).

Any number of executors share one store, in threads of one process and in many processes; they meet in the lease table
and at the rate gate, nowhere else. An executor that dies leaves a lease that runs out and a checkpoint that holds.
"""

import gc
import threading
from collections import OrderedDict
from collections.abc import Callable

import msgspec

from patra.ingest.execution.compiled_plan import CompiledPlan, Options
from patra.ingest.execution.lease_keeper import LeaseKeeper
from patra.ingest.execution.run import Run
from patra.ingest.execution.run_context import RunContext
from patra.ingest.fetching import metrics
from patra.ingest.fetching.runtime import Runtime
from patra.ingest.landing import batch_commit
from patra.ingest.landing import store as landing_store
from patra.ingest.landing.run_state import Checkpoint, Closing, Stats, defer_task, fail_task
from patra.ingest.landing.store import LeasedTask, Q
from patra.ingest.landing.window_ledger import fold_window_sums
from patra.ingest.packs import secret_grants
from patra.ingest.packs.sections import Credential
from patra.ingest.packs.spec import Spec, decode_spec, of_newer_version
from patra.ingest.planning import plan_rows, store
from patra.ingest.planning.states import TASKS, TaskTransition
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel import leases
from patra.kernel.clock import SECOND, format_instant
from patra.kernel.db import Database, Tx
from patra.kernel.errors import Fenced, Invalid, Permanent
from patra.kernel.ids import new_id
from patra.kernel.safety.redact import redact_text
from patra.kernel.telemetry import bind_lineage, get_logger, span

log = get_logger()

MAX_CACHED_PLANS = 64  # compiled snapshots that a process keeps
DEAD_TASK_SCAN_INTERVAL = 5 * SECOND
PAGES_WORTH = 100_000  # objects
NEWER_VERSION_WAIT = 60 * SECOND


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """What one turn did."""

    tasks: int = 0
    succeeded: int = 0
    partial: int = 0
    failed: int = 0
    deferred: int = 0
    fenced: int = 0
    batches: int = 0
    records: int = 0


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """C_max: tasks of one partition at the same time, by whomever (ch. 5.6). C_total is the number of executors."""

    per_partition: int = 4


class Gatekeeper:
    """How many tasks of a partition this process works on; it lets fewer in while batches take too long (12.2)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[str, int] = {}

    def enter(self, partition: str) -> int:
        with self._lock:
            self._running[partition] = self._running.get(partition, 0) + 1
            return self._running[partition]

    def leave(self, partition: str) -> int:
        with self._lock:
            self._running[partition] -= 1
            return self._running[partition]


class Executor:
    """One worker. `run_once` works on one task; a process runs as many as it has threads for."""

    def __init__(
        self,
        db: Database,
        services: Runtime,
        *,
        options: Options | None = None,
        limits: Limits | None = None,
        stopping: threading.Event | None = None,
        pause: Callable[[float], bool] | None = None,
        holder: str | None = None,
        shared: "Shared | None" = None,
        only: str | None = None,
    ) -> None:
        """`only`: take tasks of this partition alone."""
        self._db = db
        self._s = services
        self._options = options or Options()
        self._limits = limits or Limits()
        self._stopping = stopping or threading.Event()
        self._pause = pause or self._stopping.wait
        self._holder = holder or f"executor-{new_id()}"
        self._shared = shared or Shared()
        self._only = only
        self._looked = 0

    def run_once(self) -> Counts:
        """Take a task and work on it until it is done, deferred or lost; nothing where none is due."""
        with span("ExecutorTrigger", holder=self._holder):
            taken = self._take()
            return Counts() if taken is None else self._run(taken)

    def _run(self, taken: LeasedTask) -> Counts:
        task = taken.task
        labels = {"source": task.provenance_code, "endpoint": task.endpoint_name, "op": task.operation_code}
        gauge = metrics.CONCURRENCY.labels(**labels)
        slot = self._shared.gatekeeper.enter(task.partition_key)
        gauge.set(slot)
        lineage = {
            **labels,
            "schedule_instance_id": task.schedule_instance_id,
            "plan_id": task.plan_id,
            "slice_id": task.slice_id,
            "task_id": task.task_id,
            "run_id": taken.run_id,
        }
        try:
            with bind_lineage(**lineage), span("Run", **labels, run_id=taken.run_id, priority=task.priority) as run:
                log.info(
                    "ingest_task_taken",
                    holder=self._holder,
                    leased_until=format_instant(taken.lease.until),
                    fence=taken.lease.fence,
                    slot=slot,
                    attempt=taken.attempt_no,
                    late_ms=(self._s.clock.now() - task.scheduled_at) // 1000,
                )
                counts = self._work(taken)
                run.set(status=_outcome(counts), batches=counts.batches)
                return counts
        finally:
            gauge.set(self._shared.gatekeeper.leave(task.partition_key))

    def _take(self) -> LeasedTask | None:
        now = self._s.clock.now()
        look = now - self._looked >= DEAD_TASK_SCAN_INTERVAL
        with span("PickTask"):
            taken = self._db.run(lambda tx: self._take_task(tx, now, look=look))
        if look:
            self._looked = now
            store.fold_task_counts(self._db)
            fold_window_sums(self._db)
        return taken

    def _take_task(self, tx: Tx, now: int, *, look: bool) -> LeasedTask | None:
        now = self._now(tx, now)
        if look:
            landing_store.free_expired(tx, now)
        most, bounds = self._limits.per_partition, self._s.limiters.bounds(now)
        return landing_store.take(tx, self._holder, now, self._options.ttl, most, bounds=bounds, only=self._only)

    def _work(self, taken: LeasedTask) -> Counts:
        stats, batches = Stats(), 0
        run: Run | None = None
        try:
            context = self._begin(taken)
            if context is None:
                return Counts(tasks=1, deferred=1)
            if (full := self._full(context.plan, taken)) is not None:
                self._end(taken, full, context)
                return Counts(tasks=1, deferred=1)
            run = Run(context)
            keeper = self._shared.keeper
            with keeper.holding(taken.task.task_id, lambda: self._renew_lease(taken), self._options.ttl):
                closing = run.go()
            stats, batches = run.stats, run.stats.batches
            if stats.rate_adjusted:
                self._note_rate(taken, stats)
        except Fenced:
            log.warning("ingest_lease_lost", run_id=taken.run_id)
            self._note_use(run)
            now = self._s.clock.now()
            self._db.run(
                lambda tx: landing_store.end_cancelled_run(tx, taken.task.task_id, taken.run_id, now),
            )
            return Counts(tasks=1, fenced=1)
        except Permanent as error:  # a snapshot that this version cannot run, a rule of ours that broke
            closing = fail_task(RunReason.BROKEN, redact_text(f"{type(error).__name__}: {error}"), level="L2")
            log.exception("ingest_run_broken", run_id=taken.run_id)
            self._end(taken, closing, None)
            self._note_use(run)
        records = stats.inserted + stats.updated
        log.info(
            "ingest_run_closed",
            run_id=taken.run_id,
            outcome=closing.task.value,
            code=closing.code.value,
            batches=batches,
            inserted=stats.inserted,
            updated=stats.updated,
            requests=stats.req_count,
        )
        return Counts(
            tasks=1,
            succeeded=closing.task is TaskTransition.SUCCEED,
            partial=closing.task is TaskTransition.PART,
            failed=closing.task in {TaskTransition.FAIL, TaskTransition.CANCEL},
            deferred=closing.task is TaskTransition.DEFER,
            batches=batches,
            records=records,
        )

    def _note_use(self, run: Run | None) -> None:
        """Requests whose answer could not be committed have used the quota all the same."""
        if run is not None and run.unbooked_permits:
            self._db.run(lambda tx: batch_commit.consume(tx, run.unbooked_permits, self._s.clock.now()))

    def _note_rate(self, taken: LeasedTask, stats: Stats) -> None:
        demoted, throttled, now = stats.demote_events, stats.throttled, self._s.clock.now()
        plan_id = taken.task.plan_id
        self._db.run(lambda tx: plan_rows.note_rate(tx, plan_id, demoted=demoted, throttled=throttled, now=now))

    def _full(self, course: CompiledPlan, taken: LeasedTask) -> Closing | None:
        """The pack's own bound on tasks at the same time, and the one that slow batches have lowered (12.2).

        It is learnt from the first task of a partition; from then on no task beyond it is taken at all.
        """
        partition = taken.task.partition_key
        most = min(course.spec.rate_limit.max_concurrency, self._limits.per_partition)
        bound = self._s.limiters.learn(partition, most)
        if bound >= self._limits.per_partition:
            return None
        row = self._db.read(lambda tx: tx.fetch_one(Q["partition_held"], {"partition": partition}))
        if row is None or row[0] <= bound:
            return None
        return defer_task(
            RunReason.PUT_BACK_RATE, self._s.clock.now() + SECOND, f"{bound} tasks of this partition at a time"
        )

    def _begin(self, taken: LeasedTask) -> RunContext | None:
        """What a run needs; None where a newer version has written the task, which is then free for its executors."""
        try:
            return RunContext.begin(self._db, self._s, self._course(taken), taken, _Pause(self, taken), self._options)
        except msgspec.MsgspecError as error:
            if not of_newer_version(error):
                raise Invalid(RunReason.BROKEN, f"its plan or slice cannot be read: {error}") from error
            plan_id = taken.task.plan_id
            if self._shared.courses.first_of_newer_version(plan_id):
                log.warning("ingest_task_of_newer_version", plan=plan_id, error=str(error))
            due = self._s.clock.now() + NEWER_VERSION_WAIT
            self._end(taken, defer_task(RunReason.PUT_BACK_VERSION, due, str(error)), None)
            return None

    def _end(self, taken: LeasedTask, closing: Closing, run: RunContext | None) -> None:
        """End a run that never began."""
        now = self._s.clock.now()
        if run is not None:
            end = batch_commit.RunEnd(work=run.work, closing=closing, checkpoint=run.checkpoint, stats=Stats(), now=now)
            self._db.run(lambda tx: batch_commit.close(tx, end))
            return

        def give_up(tx: Tx) -> None:
            leases.guard(tx, TASKS, [taken.lease])
            landing_store.end_run(tx, taken.run_id, closing.run, closing.code, now, closing.detail)
            over = {} if closing.due is not None else {"finished_at": now}
            landing_store.move_task(tx, taken.task.task_id, closing.task, closing.code, now, **over)
            if closing.due is not None:
                tx.execute(Q["task_due"], {"task_id": taken.task.task_id, "due": closing.due})
            leases.release(tx, TASKS, [taken.lease])

        self._db.run(give_up)

    def _course(self, taken: LeasedTask) -> CompiledPlan:
        return self._shared.courses.get(self._db, taken.task.plan_id)

    def wait(self, taken: LeasedTask, microseconds: int) -> bool:
        """Sleep, and hold on to the lease meanwhile; false where the executor is to stop."""
        left = microseconds
        self._shared.keeper.note_alive(taken.task.task_id)
        while left > 0:
            pause = min(left, self._options.ttl // 3)
            if self._pause(pause / 1_000_000):
                return False
            left -= pause
            if left > 0:
                self._shared.keeper.note_alive(taken.task.task_id)
                self._renew(taken)
        return not self._stopping.is_set()

    def _now(self, tx: Tx, now: int) -> int:
        """By which clock leases go: the store's, where executors run on several machines."""
        return tx.server_now() if self._options.server_clock else now

    def _renew(self, taken: LeasedTask) -> None:
        if not self._renew_lease(taken):
            raise Fenced("lease_lost", f"{taken.task.task_id} went to another executor")

    def _renew_lease(self, taken: LeasedTask) -> bool:
        def renew(tx: Tx) -> list[leases.Lease]:
            return leases.renew(tx, TASKS, [taken.lease], now=self._now(tx, self._s.clock.now()), ttl=self._options.ttl)

        return bool(self._db.run(renew))


def _outcome(counts: Counts) -> str:
    """How a turn ended, in a word."""
    return next(
        (name for name in ("succeeded", "partial", "failed", "deferred", "fenced") if getattr(counts, name)), "idle"
    )


class _Pause:
    def __init__(self, executor: Executor, taken: LeasedTask) -> None:
        self._executor = executor
        self._taken = taken

    def __call__(self, microseconds: int, /) -> bool:
        return self._executor.wait(self._taken, microseconds)


class CompiledPlans:
    """Compiled snapshots by plan, the latest used first; a plan's snapshot never changes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, CompiledPlan] = OrderedDict()
        self._grants = (0, 0)
        self._newer: set[str] = set()

    def first_of_newer_version(self, plan_id: str) -> bool:
        """Whether this plan of a newer version is met for the first time: it is logged once."""
        with self._lock:
            first = plan_id not in self._newer
            self._newer.add(plan_id)
            return first

    def get(self, db: Database, plan_id: str) -> CompiledPlan:
        grants = db.read(secret_grants.revision)
        with self._lock:
            if grants != self._grants:  # a secret was allowed or revoked: no compiled plan goes by the old grants
                self._grants = grants
                self._kept.clear()
            if (found := self._kept.get(plan_id)) is not None:
                self._kept.move_to_end(plan_id)
                return found
        plan = db.read(lambda tx: store.plan_row(tx, plan_id))
        if plan is None:
            raise Invalid("plan_missing", f"there is no plan {plan_id}")
        course = compile_snapshot(db, decode_spec(plan.expr_proto_snapshot))
        with self._lock:
            self._kept[plan_id] = course
            while len(self._kept) > MAX_CACHED_PLANS:
                self._kept.popitem(last=False)
        return course


def compile_snapshot(db: Database, spec: Spec) -> CompiledPlan:
    """A snapshot with its credentials' references, the one thing that it does not hold (ch. 3.8); those that the
    installation has not allowed for the source are withheld.
    """
    source = spec.provenance_code

    def credentials(reference: str) -> dict[str, Credential]:
        def read(tx: Tx) -> dict[str, Credential]:
            rows = [
                (name, msgspec.json.decode(cfg, type=Credential)) for name, cfg in tx.fetch(Q["credential_cfgs"], at)
            ]
            named = [(name, one) for name, one in rows if reference in {name, one.pool}]
            grants, destination = secret_grants.grants_of(tx, source), secret_grants.destination_of(spec)
            return {name: secret_grants.withhold(one, destination, grants) for name, one in named}

        at = {"source": source}
        return db.read(read)

    return CompiledPlan(spec, credentials)


class Shared:
    """What the executors of one process share beside their services: compiled snapshots, counts, the collector's pace.

    A page is some ten thousand objects that live until it is mapped. Looked at every 700 allocations they cost as much
    as decoding them, for nothing.
    """

    def __init__(self) -> None:
        gc.set_threshold(max(gc.get_threshold()[0], PAGES_WORTH))
        self.courses = CompiledPlans()
        self.gatekeeper = Gatekeeper()
        self.keeper = LeaseKeeper()


__all__ = ["Checkpoint", "Counts", "Executor", "Limits", "Shared"]
