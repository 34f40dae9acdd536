"""Plans a trigger and works on it until nothing of it is left; says what was left behind.

A second call goes on where the first one stopped: everything that must not be forgotten is in the store.
"""

import threading
import time
from collections.abc import Callable

import msgspec

from patra.ingest.execution.compiled_plan import Options
from patra.ingest.execution.executor import Executor, Limits, Shared, compile_snapshot
from patra.ingest.execution.progress import (
    Count,
    Left,
    Meter,
    Own,
    Progress,
    count_tasks,
    left_behind,
    own_work,
    unproven,
    window_wanted,
)
from patra.ingest.fetching.runtime import Runtime
from patra.ingest.http.credentials import NoSecret, secrets_of
from patra.ingest.packs.problems import Problem
from patra.ingest.packs.spec import Spec
from patra.ingest.planning import store
from patra.ingest.planning.planner import Planned, Planner
from patra.ingest.planning.reslice import answer_reslices
from patra.ingest.planning.trigger import Trigger, partition_of
from patra.ingest.vocabulary.reasons import Reason
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.clock import MINUTE
from patra.kernel.db import Database
from patra.kernel.errors import PatraError
from patra.kernel.telemetry import get_logger

log = get_logger()

POLL_INTERVAL_S = 0.2  # seconds between looks
MAX_TASKS_SHOWN = 20  # tasks that are named in a list of what was left behind
MAX_EXECUTOR_FAILURES = 5  # of an executor in a row, before it gives up

Show = Callable[[Progress], None]


class Drained(msgspec.Struct, frozen=True, kw_only=True):
    """How it ended."""

    planned: Planned
    progress: Progress
    left: tuple[Left, ...] = ()
    more: int = 0
    """Left ones that are not named."""
    interrupted: bool = False
    unproven: int = 0
    """Windows that are done, as their lists ended, although nothing counts them."""

    @property
    def refused(self) -> bool:
        return self.planned.is_refused


class Drain:
    """One trigger, to be worked on until it is done."""

    def __init__(
        self,
        db: Database,
        services: Runtime,
        *,
        options: Options | None = None,
        limits: Limits | None = None,
        executors: int = 2,
        patience: int = 15 * MINUTE,
    ) -> None:
        """`patience`: a window that may not be taken for longer than this is not waited for (a quota, say)."""
        self._db = db
        self._s = services
        self._clock = services.clock
        self._options = options
        self._limits = limits
        self._executors = executors
        self._patience = patience
        self._planner = Planner(db, services.clock)
        self._stopping = threading.Event()
        self._errors: list[str] = []

    def run(self, trigger: Trigger, show: Show) -> Drained:
        """Plan, work, and say what is left."""
        spec = self._planner.compile(trigger).spec
        if spec is not None and (refused := self._without_secret(spec)) is not None:
            return Drained(planned=refused, progress=Progress())
        now = self._clock.now()
        window = self._db.read(lambda tx: window_wanted(tx, trigger, spec, now)) if spec is not None else None
        planned = self._planner.trigger(trigger)
        if spec is None or planned.is_refused:
            return Drained(planned=planned, progress=Progress())
        own = self._db.read(lambda tx: own_work(tx, trigger, spec, window, planned.plan_id))
        meter, started = Meter(trigger), time.monotonic()
        failed_before = self._db.read(lambda tx: count_tasks(tx, own)).get("FAILED", Count()).tasks

        def progress() -> Progress:
            counts = self._db.read(lambda tx: count_tasks(tx, own))
            return meter.since(counts, failed_before, time.monotonic() - started)

        interrupted = self._drain(trigger, own, progress, show)
        last = progress()
        show(last)
        broken = [Left(task_id="", part="executor", status="BROKEN", why=error) for error in self._errors]
        left = broken + self._db.read(lambda tx: left_behind(tx, own))
        return Drained(
            planned=planned,
            progress=last,
            left=tuple(left[:MAX_TASKS_SHOWN]),
            more=max(len(left) - MAX_TASKS_SHOWN, 0),
            interrupted=interrupted,
            unproven=min(self._db.read(lambda tx: unproven(tx, own)), last.done),
        )

    def _without_secret(self, spec: Spec) -> Planned | None:
        """Refuses before anything is planned: a run without the secret would halt the endpoint for all runs."""
        plan = compile_snapshot(self._db, spec)
        for line in (plan.listing, plan.detail):
            if line is None:
                continue
            each = [secrets_of(one.leg, one.credential, self._s.environ) for one in line.pool]
            found = each[0]
            if isinstance(found, NoSecret) and all(isinstance(one, NoSecret) for one in each):
                advice = "set what the reference names in the environment of this process, and run the same again"
                if found.code is RunReason.SECRET_WITHHELD:
                    advice = "`patra ingest secret allow SOURCE NAME` if it may, and run the same again"
                problem = Problem(code=Reason.SECRET_ABSENT, message=found.detail, advice=advice)
                return Planned(outcome=Reason.SECRET_ABSENT, detail=found.detail, problems=(problem,))
        return None

    def _drain(self, trigger: Trigger, own: Own, progress: Callable[[], Progress], show: Show) -> bool:
        """Work with as many threads as there are executors; gives whether it was interrupted."""
        shared = Shared()
        threads = [
            threading.Thread(target=self._work, args=(trigger, shared), name=f"executor {n + 1}", daemon=True)
            for n in range(self._executors)
        ]
        for thread in threads:
            thread.start()
        try:
            self._watch(own, progress, show)
        except KeyboardInterrupt:
            return True
        finally:
            self._stopping.set()
            for thread in threads:
                thread.join(30)
        return False

    def _work(self, trigger: Trigger, shared: Shared) -> None:
        executor = Executor(
            self._db,
            self._s,
            options=self._options,
            limits=self._limits,
            shared=shared,
            stopping=self._stopping,
            only=partition_of(trigger.source, trigger.endpoint, trigger.operation),
        )
        failures = 0
        while not self._stopping.is_set():
            try:
                if not executor.run_once().tasks:
                    self._stopping.wait(POLL_INTERVAL_S)
                failures = 0
            except Exception as error:  # the thread's edge: an outage of the store is waited for, a bug is reported
                failures += 1
                log.exception("ingest_executor_failed", reason=str(error), exc_info=not isinstance(error, PatraError))
                if failures >= MAX_EXECUTOR_FAILURES:
                    self._errors.append(f"{type(error).__name__}: {error}")
                    return
                self._stopping.wait(failures)

    def _watch(self, own: Own, progress: Callable[[], Progress], show: Show) -> None:
        """Look until nothing can be done any more."""
        while len(self._errors) < self._executors:
            began = time.monotonic()
            self._plan_on()
            now = progress()
            show(now)
            if not now.working and self._over(own, now):
                return
            took = time.monotonic() - began
            self._stopping.wait(max(POLL_INTERVAL_S, 10 * took))  # looking at many windows must not slow the work down

    def _over(self, own: Own, now: Progress) -> bool:
        if not now.waiting:
            return not self._plan_on()  # the last task may have asked for smaller ones just now
        if self._db.read(lambda tx: store.halts(tx, own.source, own.endpoint)):
            return True
        return now.due is not None and now.due > self._clock.now() + self._patience

    def _plan_on(self) -> bool:
        """Cut what executors want smaller, and go on with plans that were held back; gives whether anything was."""
        resliced, added = answer_reslices(self._db, self._clock)
        for plan_id, _ in self._db.read(lambda tx: store.open_plans(tx, 100)):
            added += self._planner.advance(plan_id)[1]
        return bool(resliced or added)
