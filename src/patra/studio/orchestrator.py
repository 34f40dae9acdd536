"""Turns tasks, routes and results into runs, stages and jobs (C§2.2, C§2.4, C§2.5). Producer: Orchestrator.

The shot is the unit of retry and resume: a job is created when what it needs is there, and a shot that cannot be made
is left out by policy instead of wasting the run. `epoch` counts resumptions; a result of an earlier epoch is ignored.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from patra.bus.bus import Bus
from patra.bus.consuming.consumer import Event
from patra.bus.publishing.envelope import Envelope
from patra.kernel.clock import format_instant
from patra.kernel.db import Tx
from patra.kernel.errors import IllegalMove, Invalid
from patra.kernel.machine import advance
from patra.studio.gateway import Options
from patra.studio.job_needs import created_of, film_parts_of, hopeless, ready_with_inputs
from patra.studio.script.plan import SOFT
from patra.studio.storage import store
from patra.studio.storage.own_tenant import of_own_tenant
from patra.studio.storage.store import JobRow, Q, RunRow
from patra.studio.vocabulary.contracts import (
    VERSIONS,
    Context,
    OutgoingEvent,
    after,
    context_of,
    epoch_of,
    job_id_of,
    plan_id_of,
    publish,
    run_id_of,
)
from patra.studio.vocabulary.reasons import Reason
from patra.studio.vocabulary.stages import (
    ENDED,
    JOB,
    PROGRESS,
    RUN,
    SETTLED,
    Job,
    JobTransition,
    Stage,
    StageTransition,
)

MODULE = "Orchestrator"  # as the bus knows it (C§5)

GROUP = "orchestrator"
FROM_STAGES = {
    "planning": StageTransition.REPLAN,
    "executing": StageTransition.REEXECUTE,
    "composing": StageTransition.RECOMPOSE,
}


class Films(Protocol):
    """The Composer, as far as the end of a run concerns it."""

    def stop(self, tx: Tx, run_id: str, epoch: int, context: Context) -> bool:
        """No film of this epoch is published any more; gives False where it is published already."""
        ...


class Orchestrator:
    def __init__(
        self,
        bus: Bus,
        films: Films,
        submissions: Callable[[Tx, str], Envelope | None],
        prompts: Callable[[Tx, str], int],
    ) -> None:
        """`submissions` gives the `task.submitted` of a run that has yet to be created, `prompts` counts a plan's."""
        self._bus = bus
        self._prompts_of_plan = prompts
        self._films = films
        self._submissions = submissions
        for event_type, handler in (
            ("task.submitted", self.on_task),
            ("plan.prompt.generated", self.on_plan),
            ("route.decision.made", self.on_route),
            ("job.claimed", self.on_claimed),
            ("job.succeeded", self.on_result),
            ("job.failed", self.on_result),
            ("compose.completed", self.on_composed),
            ("compose.failed", self.on_compose_failed),
            ("artifact.published", self.on_published),
        ):
            bus.consumer(event_type, group=GROUP, versions=VERSIONS)(of_own_tenant(handler))

    # ---- events

    def on_task(self, tx: Tx, event: Event) -> None:
        context = context_of(event)
        if event_id := self._create_run(tx, event.payload, context):
            self._move(
                tx, run_id_of(event.payload["task_id"]), StageTransition.START, Reason.STARTED, after(context, event_id)
            )

    def _create_run(self, tx: Tx, payload: Mapping[str, Any], context: Context) -> str:
        """Create the run of a task and say so; gives the id of `run.created`, or nothing where it was there."""
        run_id, now = run_id_of(payload["task_id"]), self._bus.clock.now()
        row = {
            "run_id": run_id,
            "task_id": payload["task_id"],
            "stage": Stage.QUEUED.value,
            "context": store.text(context),
            "options": store.text(payload.get("options", {})),
            "created_at": now,
            "changed_at": now,
        }
        if not tx.insert_absent("stu_run", [row], key=("run_id",)):
            return ""
        created: dict[str, Any] = {
            "run_id": run_id,
            "task_id": payload["task_id"],
            "chapter_id": payload["chapter_id"],
            "stage": Stage.QUEUED.value,
            "progress": 0,
            "attempt": 1,
            "requested_quality": payload["requested_quality"],
            "language_context": payload["language_context"],
        }
        said = OutgoingEvent(type="run.created", key=run_id, payload=created)
        (event_id,) = publish(self._bus, tx, context, [said], by=MODULE)
        return event_id

    def on_route(self, tx: Tx, event: Event) -> None:
        payload, context = event.payload, context_of(event)
        run = store.run(tx, payload["run_id"])
        if run is None or run.stage in ENDED:
            return
        plan_id = plan_id_of(run.run_id, run.plan_version)
        index = int(payload["shot_id"].rpartition("_")[2]) - 1
        prompt_id = f"prm_{index + 1:04}_{payload['worker_type']}"
        if payload["job_id"] != job_id_of(plan_id, prompt_id):
            return  # of an earlier plan: its event was replayed after the run was planned again
        row = {
            "job_id": payload["job_id"],
            "run_id": run.run_id,
            "plan_id": plan_id,
            "shot_id": payload["shot_id"],
            "shot_index": index,
            "worker_type": payload["worker_type"],
            "prompt_id": prompt_id,
            "profile_id": payload["model_profile_id"],
            "fallback_chain": store.text(payload["fallback_chain"]),
            "state": Job.WAITING.value,
            "epoch": run.epoch,
            "changed_at": self._bus.clock.now(),
        }
        tx.insert_absent("stu_job", [row], key=("job_id",))
        if run.stage == Stage.PLANNING:
            self._move(tx, run.run_id, StageTransition.FIRST_ROUTE, Reason.ALL_PLANNED, context)
        self._execute_when_routed(tx, run, self._prompts(tx, run), context)

    def on_plan(self, tx: Tx, event: Event) -> None:
        """How many routes to wait for; they may have come before this."""
        run, prompts = store.run(tx, event.payload["run_id"]), len(event.payload["prompt_refs"])
        if run is None or event.payload["plan_id"] != plan_id_of(run.run_id, run.plan_version):
            return  # of an earlier plan
        tx.execute(Q["run_planned"], {"run_id": run.run_id, "prompts": prompts})
        self._execute_when_routed(tx, run, prompts, context_of(event))

    def _prompts(self, tx: Tx, run: RunRow) -> int:
        """How many prompts the plan of a run has.

        A run that 0.2.0 planned has no count, or that of the plan before; the Planner is asked until that release is
        gone (see `storage/earlier_release`).
        """
        if run.plan_version == 1 and run.plan_prompts:
            return run.plan_prompts
        return self._prompts_of_plan(tx, plan_id_of(run.run_id, run.plan_version))

    def _execute_when_routed(self, tx: Tx, run: RunRow, prompts: int, context: Context) -> None:
        plan_id = plan_id_of(run.run_id, run.plan_version)
        if (
            prompts
            and store.jobs_count(tx, run.run_id, plan_id).total == prompts
            and self._move(tx, run.run_id, StageTransition.ALL_ROUTED, Reason.ALL_ROUTED, context)
        ):
            self._create_ready(tx, run, store.jobs(tx, run.run_id, plan_id), context)

    def on_claimed(self, tx: Tx, event: Event) -> None:
        job = store.job(tx, event.payload["job_id"])
        if job and JOB.allows(Job(job.state), JobTransition.CLAIM):
            self._move_jobs(tx, [job], JobTransition.CLAIM, "")

    def on_result(self, tx: Tx, event: Event) -> None:
        """A job has ended: note it, start what waited for it, and see whether the run can go on."""
        payload, context = event.payload, context_of(event)
        job = store.job(tx, payload["job_id"])
        run = store.run(tx, payload["run_id"])
        won = payload["status"] == "succeeded"
        on = JobTransition.SUCCEED if won else JobTransition.FAIL
        if job is None or run is None or not JOB.allows(Job(job.state), on) or epoch_of(event) != job.epoch:
            return
        self._move_jobs(tx, [job], on, payload.get("error_code") or "")
        tx.execute(
            Q["job_result"],
            {
                "job_id": job.job_id,
                "artifacts": store.text(payload["artifacts"]),
                "error_code": payload.get("error_code") or "",
                "profile_id": payload.get("model_profile_id", job.profile_id),
            },
        )
        store.note_artifacts(tx, run.run_id, job.job_id, payload["artifacts"], self._bus.clock.now())
        if run.stage != Stage.EXECUTING:
            return
        wishes = msgspec.convert(run.options, Options)
        if not won and job.worker_type not in SOFT and wishes.on_failed_shot == "stop":
            detail = f"{job.shot_id} {job.worker_type}: {payload.get('error_code')}"
            self._stop(tx, run, StageTransition.FAIL, Reason.SHOT_FAILED, context, detail)
            return
        self._go_on(tx, run, context, job.shot_id)

    def on_composed(self, tx: Tx, event: Event) -> None:
        self._move(tx, event.payload["run_id"], StageTransition.COMPOSED, Reason.COMPOSED, context_of(event))

    def on_compose_failed(self, tx: Tx, event: Event) -> None:
        run, payload = store.run(tx, event.payload["run_id"]), event.payload
        if run is not None and run.stage == Stage.COMPOSING and run.epoch == epoch_of(event):
            detail = f"{payload['error_code']}: {payload.get('error_message', '')}"
            self._stop(tx, run, StageTransition.FAIL, Reason.COMPOSE_FAILED, context_of(event), detail)

    def on_published(self, tx: Tx, event: Event) -> None:
        self._move(tx, event.payload["run_id"], StageTransition.PUBLISHED, Reason.PUBLISHED, context_of(event))

    # ---- people's acts

    def cancel(self, tx: Tx, run_id: str, by: str) -> None:
        """Stop a run; one that is only submitted is created first, so that its `task.submitted` finds it ended."""
        self._create_submitted(tx, run_id)
        run = self._known_run(tx, run_id)
        if not RUN.allows(Stage(run.stage), StageTransition.CANCEL):
            raise IllegalMove(Reason.RUN_NOT_RUNNING, f"the run is {run.stage}")
        if not self._film_stopped(tx, run):
            raise IllegalMove(Reason.RUN_NOT_RUNNING, "the film is published")
        self._stop(tx, run, StageTransition.CANCEL, Reason.CANCELLED, run.context, f"by {by}")

    def fail(self, tx: Tx, run_id: str, detail: str, failed_at: int, context: Context) -> None:
        """End a run that would wait for ever because a module gave an event up.

        One that has ended, is unknown, was resumed since or has its film stays as it is.
        """
        self._create_submitted(tx, run_id)
        store.hold_run(tx, run_id)
        run = store.run(tx, run_id)
        if run is None or failed_at < run.resumed_at or not RUN.allows(Stage(run.stage), StageTransition.FAIL):
            return
        if self._film_stopped(tx, run):
            self._stop(tx, run, StageTransition.FAIL, Reason.HANDLER_FAILED, context, detail)

    def _create_submitted(self, tx: Tx, run_id: str) -> None:
        if store.run(tx, run_id) is None and (asked := self._submissions(tx, run_id)) is not None:
            self._create_run(tx, asked.payload, context_of(asked))

    def _film_stopped(self, tx: Tx, run: RunRow) -> bool:
        """Whether no film of the run comes any more; it is asked for in its own stage alone."""
        return run.stage != Stage.COMPOSING or self._films.stop(tx, run.run_id, run.epoch, run.context)

    def resume(self, tx: Tx, run_id: str, by: str) -> str:
        """Go on where an ended run stopped: what succeeded is kept. Gives the stage.

        After a dead letter a module may not know what was done, so each job is asked for again; finished work is found.
        """
        run = self._known_run(tx, run_id)
        jobs = store.jobs(tx, run_id, plan_id_of(run_id, run.plan_version))
        if not jobs or len(jobs) != self._prompts(tx, run):
            return self._again(tx, run, "planning", Reason.RESUMED, by, ())
        missed = run.reason_code == str(Reason.HANDLER_FAILED)
        undone = [job for job in jobs if missed or job.state != Job.SUCCEEDED]
        return self._again(tx, run, "executing" if undone else "composing", Reason.RESUMED, by, undone)

    def rerun(self, tx: Tx, run_id: str, stage: str, by: str) -> str:
        """Do an ended run again from a stage; work that is the same is found, not done."""
        run = self._known_run(tx, run_id)
        if stage not in FROM_STAGES:
            raise Invalid(Reason.STAGE_UNKNOWN, f"is one of {', '.join(FROM_STAGES)}", place="stage")
        jobs = store.jobs(tx, run_id, plan_id_of(run_id, run.plan_version))
        if stage != "planning" and not jobs:
            raise Invalid(Reason.STAGE_UNKNOWN, "the run has no plan; run it again from planning", place="stage")
        return self._again(tx, run, stage, Reason.RERUN, by, jobs if stage == "executing" else ())

    def check_ended(self, tx: Tx, run_id: str) -> None:
        """Raises where a run is under way: its shots are edited when it has ended."""
        run = self._known_run(tx, run_id)
        if run.stage not in ENDED:
            raise IllegalMove(Reason.RUN_NOT_ENDED, f"the run is {run.stage}")

    def remake(self, tx: Tx, run_id: str, by: str, shots: Sequence[str]) -> str:
        """Plan an ended run again with the edits of its shots. What is the same is found: only those are made again."""
        by = f"{by}: {', '.join(shots)}"[:500] if shots else by
        return self._again(tx, self._known_run(tx, run_id), "planning", Reason.SHOTS_EDITED, by, ())

    def _again(self, tx: Tx, run: RunRow, stage: str, reason: Reason, by: str, jobs: Sequence[JobRow]) -> str:
        if run.stage not in ENDED:
            raise IllegalMove(Reason.RUN_NOT_ENDED, f"the run is {run.stage}")
        version = run.plan_version + (1 if stage == "planning" else 0)
        tx.execute(Q["run_next_epoch"], {"run_id": run.run_id, "plan_version": version, "now": self._bus.clock.now()})
        settled = [job for job in jobs if job.state != Job.WAITING]
        self._move_jobs(tx, settled, JobTransition.AGAIN, reason)
        epoch = run.epoch + 1
        tx.execute(Q["jobs_set_epoch"], {"epoch": epoch}, rows=[(job.job_id,) for job in jobs])
        now = store.run(tx, run.run_id)
        assert now is not None  # noqa: S101  it was there a statement ago
        self._move(tx, run.run_id, FROM_STAGES[stage], reason, run.context, f"by {by}")
        if stage == "executing":
            self._go_on(tx, now, run.context)
        return stage

    # ---- steps

    def _go_on(self, tx: Tx, run: RunRow, context: Context, shot_id: str = "") -> None:
        """Create the jobs whose needs are met, give up those whose needs failed; when all have ended, compose.

        A job needs only others of its shot, so after one job it is enough to look at that shot.
        """
        plan_id = plan_id_of(run.run_id, run.plan_version)
        jobs = self._skip_hopeless(tx, store.jobs(tx, run.run_id, plan_id, shot_id))
        self._create_ready(tx, run, jobs, context)
        counts = store.jobs_count(tx, run.run_id, plan_id)
        if counts.unsettled:
            return
        if not counts.films:
            self._stop(tx, run, StageTransition.FAIL, Reason.NOTHING_LEFT, context, "no shot could be made")
            return
        self._move(tx, run.run_id, StageTransition.ALL_SETTLED, Reason.ALL_SETTLED, context)

    def _skip_hopeless(self, tx: Tx, jobs: list[JobRow]) -> list[JobRow]:
        lost = hopeless(jobs)
        self._move_jobs(tx, lost, JobTransition.SKIP, Reason.SHOT_LEFT_OUT)
        gone = {job.job_id for job in lost}
        return [msgspec.structs.replace(job, state=Job.FAILED.value) if job.job_id in gone else job for job in jobs]

    def _create_ready(self, tx: Tx, run: RunRow, jobs: Sequence[JobRow], context: Context) -> None:
        ready = ready_with_inputs(jobs)
        self._move_jobs(tx, [job for job, _ in ready], JobTransition.READY, "")
        fresh = str(run.options.get("fresh", ""))
        said = [
            OutgoingEvent(type="job.created", key=f"{job.job_id}:{job.epoch}", payload=created_of(job, inputs, fresh))
            for job, inputs in ready
        ]
        publish(self._bus, tx, context, said, by=MODULE)

    def _stop(self, tx: Tx, run: RunRow, on: StageTransition, reason: Reason, context: Context, detail: str) -> None:
        jobs = store.jobs(tx, run.run_id, plan_id_of(run.run_id, run.plan_version))
        self._move_jobs(tx, [job for job in jobs if job.state not in SETTLED], JobTransition.CANCEL, reason)
        self._move(tx, run.run_id, on, reason, context, detail)

    def _move(
        self, tx: Tx, run_id: str, on: StageTransition, reason: Reason, context: Context, detail: str = ""
    ) -> bool:
        """Move a run along its table and say so; nothing happens when the table has no such edge (it came too late)."""
        run = store.run(tx, run_id)
        if run is None or not RUN.allows(Stage(run.stage), on):
            return False
        now = self._bus.clock.now()
        move = RUN.move(run_id, Stage(run.stage), on, reason=str(reason), at=now)
        also = {"changed_at": now, "reason_code": str(reason), "reason": detail}
        if not advance(tx, RUN, table="stu_run", key="run_id", column="stage", moves=[move], also=also):
            return False
        stage = Stage(move.to)
        payload: dict[str, Any] = {
            "run_id": run_id,
            "task_id": run.task_id,
            "stage": stage.value,
            "previous_stage": run.stage,
            "progress": PROGRESS[stage],
            "reason_code": str(reason),
            "reason": f"{reason.text}{': ' + detail if detail else ''}"[:2000],
            "changed_at": format_instant(now),
            "plan_id": plan_id_of(run_id, run.plan_version),
            "plan_version": run.plan_version,
        }
        if stage is Stage.COMPOSING:
            payload["parts"] = film_parts_of(store.jobs(tx, run_id, payload["plan_id"]))
        said = OutgoingEvent(type="run.stage.changed", key=f"{run_id}:{run.epoch}:{stage}", payload=payload)
        publish(self._bus, tx, context, [said], by=MODULE)
        return True

    def _move_jobs(self, tx: Tx, jobs: Sequence[JobRow], on: JobTransition, reason: str) -> None:
        now = self._bus.clock.now()
        moves = [JOB.move(job.job_id, Job(job.state), on, reason=str(reason), at=now) for job in jobs]
        advance(tx, JOB, table="stu_job", key="job_id", column="state", moves=moves, also={"changed_at": now})

    def _known_run(self, tx: Tx, run_id: str) -> RunRow:
        store.hold_run(tx, run_id)  # of two acts at the same time, the second sees what the first did
        run = store.run(tx, run_id)
        if run is None and self._submissions(tx, run_id) is not None:
            raise IllegalMove(Reason.RUN_NOT_ENDED, "the run is submitted and has not begun")
        if run is None:
            raise Invalid(Reason.RUN_UNKNOWN, f"no run {run_id}", place="run_id")
        return run
