"""What one attempt at a task is about: fixed when the task is taken and passed from step to step unchanged."""

from typing import Self

import msgspec

from patra.ingest.execution.compiled_plan import CompiledPlan, Options, TaskScope
from patra.ingest.fetching.runtime import Runtime
from patra.ingest.landing.batch_commit import Work
from patra.ingest.landing.run_state import Checkpoint, correlation_id
from patra.ingest.landing.store import LeasedTask
from patra.ingest.ratelimit.limiter import Pause
from patra.kernel.db import Database


class RunContext(msgspec.Struct, frozen=True, kw_only=True):
    """The store, the process's services, the compiled plan, the leased task with its scope, and the run's options."""

    db: Database
    services: Runtime
    plan: CompiledPlan
    task: LeasedTask
    scope: TaskScope
    work: Work
    pause: Pause
    options: Options
    started: int

    @classmethod
    def begin(
        cls, db: Database, services: Runtime, plan: CompiledPlan, task: LeasedTask, pause: Pause, options: Options
    ) -> Self:
        return cls(
            db=db,
            services=services,
            plan=plan,
            task=task,
            scope=TaskScope(plan, task.task),
            work=Work(
                spec=plan.spec,
                taken=task,
                ttl=options.ttl,
                publish=options.publish,
                server_clock=options.server_clock,
            ),
            pause=pause,
            options=options,
            started=services.clock.now(),
        )

    @property
    def now(self) -> int:
        return self.services.clock.now()

    @property
    def run_id(self) -> str:
        return self.task.run_id

    @property
    def checkpoint(self) -> Checkpoint:
        """Where the run begins: where the last one stopped, or at the beginning of the slice."""
        return self.task.checkpoint or self.scope.begin()

    def correlation_id(self, batch_no: int) -> str:
        return correlation_id(self.run_id, batch_no)
