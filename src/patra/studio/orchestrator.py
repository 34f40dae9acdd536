"""Tasks, routes and results go in; runs, stages and jobs come out (C§2.2, C§2.4, C§2.5). Producer: Orchestrator.

The shot is the unit of retry and resume: a job is created when what it needs is there, and a shot that cannot be made
is left out by policy instead of wasting the run. `epoch` counts resumptions; a result of an earlier epoch is ignored.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from patra.bus.bus import Bus
from patra.bus.consumer import Event
from patra.bus.envelope import Envelope, decode_trusted
from patra.bus.store import events
from patra.kernel.clock import format_instant
from patra.kernel.db import Database, Tx
from patra.kernel.errors import IllegalMove, Invalid
from patra.kernel.machine import advance
from patra.studio import store
from patra.studio.contracts import VERSIONS, Context, Said, after, context_of, epoch_of, plan_id_of, run_id_of, say
from patra.studio.gateway import Wishes
from patra.studio.reasons import R
from patra.studio.script.plan import NEEDS, SOFT
from patra.studio.stages import ENDED, JOB, PROGRESS, RUN, SETTLED, Film, Job, JobOn, On, Stage
from patra.studio.store import JobRow, Q, RunRow

GROUP = "orchestrator"
FROM_STAGES = {"planning": On.REPLAN, "executing": On.REEXECUTE, "composing": On.RECOMPOSE}


class Orchestrator:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        for event_type, handler in (
            ("task.submitted", self.on_task),
            ("route.decision.made", self.on_route),
            ("job.claimed", self.on_claimed),
            ("job.succeeded", self.on_result),
            ("job.failed", self.on_result),
            ("compose.completed", self.on_composed),
            ("artifact.published", self.on_published),
        ):
            bus.consumer(event_type, group=GROUP, versions=VERSIONS)(handler)

    # ---- events

    def on_task(self, tx: Tx, event: Event) -> None:
        context = context_of(event)
        if event_id := self._created(tx, event.payload, context):
            self._move(tx, run_id_of(event.payload["task_id"]), On.START, R.STARTED, after(context, event_id))

    def _created(self, tx: Tx, payload: Mapping[str, Any], context: Context) -> str:
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
        (event_id,) = say(self._bus, tx, context, [Said(type="run.created", key=run_id, payload=created)])
        return event_id

    def on_route(self, tx: Tx, event: Event) -> None:
        payload, context = event.payload, context_of(event)
        run = store.run(tx, payload["run_id"])
        if run is None or run.stage in ENDED:
            return
        plan_id = plan_id_of(run.run_id, run.plan_version)
        index = int(payload["shot_id"].rpartition("_")[2]) - 1
        row = {
            "job_id": payload["job_id"],
            "run_id": run.run_id,
            "plan_id": plan_id,
            "shot_id": payload["shot_id"],
            "shot_index": index,
            "worker_type": payload["worker_type"],
            "prompt_id": f"prm_{index + 1:04}_{payload['worker_type']}",
            "profile_id": payload["model_profile_id"],
            "fallback_chain": store.text(payload["fallback_chain"]),
            "state": Job.WAITING.value,
            "epoch": run.epoch,
            "changed_at": self._bus.clock.now(),
        }
        tx.insert_absent("stu_job", [row], key=("job_id",))
        if run.stage == Stage.PLANNING:
            self._move(tx, run.run_id, On.FIRST_ROUTE, R.ALL_PLANNED, context)
        wishes = msgspec.convert(run.options, Wishes)
        workers = len(NEEDS) - (0 if wishes.narrator else 1)
        shots, _ = store.plan_size(tx, plan_id)
        routed = store.jobs_count(tx, run.run_id, plan_id).total
        if shots and routed == workers * shots and self._move(tx, run.run_id, On.ALL_ROUTED, R.ALL_ROUTED, context):
            self._create_ready(tx, run, store.jobs(tx, run.run_id, plan_id), context)

    def on_claimed(self, tx: Tx, event: Event) -> None:
        job = store.job(tx, event.payload["job_id"])
        if job and JOB.allows(Job(job.state), JobOn.CLAIM):
            self._move_jobs(tx, [job], JobOn.CLAIM, "")

    def on_result(self, tx: Tx, event: Event) -> None:
        """A job has ended: note it, start what waited for it, and see whether the run can go on."""
        payload, context = event.payload, context_of(event)
        job = store.job(tx, payload["job_id"])
        run = store.run(tx, payload["run_id"])
        won = payload["status"] == "succeeded"
        on = JobOn.SUCCEED if won else JobOn.FAIL
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
        if run.stage != Stage.EXECUTING:
            return
        wishes = msgspec.convert(run.options, Wishes)
        if not won and job.worker_type not in SOFT and wishes.on_failed_shot == "stop":
            detail = f"{job.shot_id} {job.worker_type}: {payload.get('error_code')}"
            self._stop(tx, run, On.FAIL, R.SHOT_FAILED, context, detail)
            return
        self._go_on(tx, run, context, job.shot_id)

    def on_composed(self, tx: Tx, event: Event) -> None:
        self._move(tx, event.payload["run_id"], On.COMPOSED, R.COMPOSED, context_of(event))

    def on_published(self, tx: Tx, event: Event) -> None:
        self._move(tx, event.payload["run_id"], On.PUBLISHED, R.PUBLISHED, context_of(event))

    # ---- people's acts

    def cancel(self, tx: Tx, run_id: str, by: str) -> None:
        """Stop a run; one that is only submitted is created first, so that its `task.submitted` finds it ended."""
        if store.run(tx, run_id) is None and (asked := _submission(tx, run_id)) is not None:
            self._created(tx, asked.payload, context_of(asked))
        store.hold_run(tx, run_id)
        run, film = self._known(tx, run_id), store.film(tx, run_id)
        if film and film.state == Film.PUBLISHED and film.epoch == run.epoch:
            raise IllegalMove(R.RUN_NOT_RUNNING, "the film is published")
        if not RUN.allows(Stage(run.stage), On.CANCEL):
            raise IllegalMove(R.RUN_NOT_RUNNING, f"the run is {run.stage}")
        self._stop(tx, run, On.CANCEL, R.CANCELLED, run.context, f"by {by}")

    def resume(self, tx: Tx, run_id: str, by: str) -> str:
        """Go on where an ended run stopped: what succeeded is kept. Gives the stage."""
        run = self._known(tx, run_id)
        jobs = store.jobs(tx, run_id, plan_id_of(run_id, run.plan_version))
        shots, _ = store.plan_size(tx, plan_id_of(run_id, run.plan_version))
        if not shots or not jobs:
            return self._again(tx, run, "planning", R.RESUMED, by, ())
        undone = [job for job in jobs if job.state != Job.SUCCEEDED]
        return self._again(tx, run, "executing" if undone else "composing", R.RESUMED, by, undone)

    def rerun(self, tx: Tx, run_id: str, stage: str, by: str) -> str:
        """Do an ended run again from a stage; work that is the same is found, not done."""
        run = self._known(tx, run_id)
        if stage not in FROM_STAGES:
            raise Invalid(R.STAGE_UNKNOWN, f"is one of {', '.join(FROM_STAGES)}", place="stage")
        jobs = store.jobs(tx, run_id, plan_id_of(run_id, run.plan_version))
        if stage != "planning" and not jobs:
            raise Invalid(R.STAGE_UNKNOWN, "the run has no plan; run it again from planning", place="stage")
        return self._again(tx, run, stage, R.RERUN, by, jobs if stage == "executing" else ())

    def _again(self, tx: Tx, run: RunRow, stage: str, reason: R, by: str, jobs: Sequence[JobRow]) -> str:
        if run.stage not in ENDED:
            raise IllegalMove(R.RUN_NOT_ENDED, f"the run is {run.stage}")
        version = run.plan_version + (1 if stage == "planning" else 0)
        tx.execute(Q["run_next_epoch"], {"run_id": run.run_id, "plan_version": version})
        settled = [job for job in jobs if job.state != Job.WAITING]
        self._move_jobs(tx, settled, JobOn.AGAIN, reason)
        epoch = run.epoch + 1
        tx.execute(Q["jobs_set_epoch"], {"epoch": epoch}, rows=[(job.job_id,) for job in jobs])
        now = store.run(tx, run.run_id)
        assert now is not None  # noqa: S101  it was there a statement ago
        self._move(tx, run.run_id, FROM_STAGES[stage], reason, run.context, f"by {by}")
        if stage == "executing":
            self._go_on(tx, now, run.context)
        return stage

    # ---- watching

    def run_once(self, db: Database) -> int:
        """Runs whose film could not be made fail; gives how many."""
        return db.run(self._watch) if db.read(lambda tx: tx.fetch(Q["films_failed"])) else 0

    def _watch(self, tx: Tx) -> int:
        failed = tx.fetch(Q["films_failed"])
        for run_id, code, detail in failed:
            run = self._known(tx, run_id)
            self._stop(tx, run, On.FAIL, R.COMPOSE_FAILED, run.context, f"{code}: {detail}")
        return len(failed)

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
            self._stop(tx, run, On.FAIL, R.NOTHING_LEFT, context, "no shot could be made")
            return
        self._move(tx, run.run_id, On.ALL_SETTLED, R.ALL_SETTLED, context)

    def _skip_hopeless(self, tx: Tx, jobs: list[JobRow]) -> list[JobRow]:
        states = {(job.shot_id, job.worker_type): job.state for job in jobs}

        def hopeless(job: JobRow) -> bool:
            needs = [states.get((job.shot_id, need)) for need in NEEDS[job.worker_type] if need not in SOFT]
            return job.state == Job.WAITING and any(state in {Job.FAILED, Job.CANCELLED} for state in needs)

        lost = [job for job in jobs if hopeless(job)]
        if not lost:
            return jobs
        self._move_jobs(tx, lost, JobOn.SKIP, R.SHOT_LEFT_OUT)
        gone = {job.job_id for job in lost}
        after = [msgspec.structs.replace(j, state=Job.FAILED.value) if j.job_id in gone else j for j in jobs]
        return self._skip_hopeless(tx, after)

    def _create_ready(self, tx: Tx, run: RunRow, jobs: Sequence[JobRow], context: Context) -> None:
        by_shot = {(job.shot_id, job.worker_type): job for job in jobs}

        def needs(job: JobRow) -> list[JobRow]:
            return [by_shot[job.shot_id, need] for need in NEEDS[job.worker_type] if (job.shot_id, need) in by_shot]

        ready = [job for job in jobs if job.state == Job.WAITING and all(need.state in SETTLED for need in needs(job))]
        if not ready:
            return
        self._move_jobs(tx, ready, JobOn.READY, "")
        said = [
            Said(
                type="job.created",
                key=f"{job.job_id}:{job.epoch}",
                payload={
                    "job_id": job.job_id,
                    "run_id": job.run_id,
                    "shot_id": job.shot_id,
                    "worker_type": job.worker_type,
                    "model_profile_id": job.profile_id,
                    "fallback_chain": job.fallback_chain,
                    "prompt_id": job.prompt_id,
                    "inputs": [a for need in needs(job) if need.state == Job.SUCCEEDED for a in need.artifacts],
                    "parameters": {"plan_id": job.plan_id, "fresh": str(run.options.get("fresh", ""))},
                    "priority": min(1000, job.shot_index),
                    "attempt": job.epoch,
                },
            )
            for job in ready
        ]
        say(self._bus, tx, context, said)

    def _stop(self, tx: Tx, run: RunRow, on: On, reason: R, context: Context, detail: str) -> None:
        jobs = store.jobs(tx, run.run_id, plan_id_of(run.run_id, run.plan_version))
        self._move_jobs(tx, [job for job in jobs if job.state not in SETTLED], JobOn.CANCEL, reason)
        self._move(tx, run.run_id, on, reason, context, detail)

    def _move(self, tx: Tx, run_id: str, on: On, reason: R, context: Context, detail: str = "") -> bool:
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
        }
        say(
            self._bus,
            tx,
            context,
            [Said(type="run.stage.changed", key=f"{run_id}:{run.epoch}:{stage}", payload=payload)],
        )
        return True

    def _move_jobs(self, tx: Tx, jobs: Sequence[JobRow], on: JobOn, reason: str) -> None:
        now = self._bus.clock.now()
        moves = [JOB.move(job.job_id, Job(job.state), on, reason=str(reason), at=now) for job in jobs]
        advance(tx, JOB, table="stu_job", key="job_id", column="state", moves=moves, also={"changed_at": now})

    def _known(self, tx: Tx, run_id: str) -> RunRow:
        run = store.run(tx, run_id)
        if run is None and store.task_of_run(tx, run_id) is not None:
            raise IllegalMove(R.RUN_NOT_ENDED, "the run is submitted and has not begun")
        if run is None:
            raise Invalid(R.RUN_UNKNOWN, f"no run {run_id}", place="run_id")
        return run


def _submission(tx: Tx, run_id: str) -> Envelope | None:
    """The `task.submitted` of a run that the Orchestrator has yet to create; it keeps its body until it is handled."""
    task = store.task_of_run(tx, run_id)
    said = events.by_correlation(tx, task["task_id"]) if task else []
    return next((decode_trusted(one.body) for one in said if one.event_type == "task.submitted" and one.body), None)
