"""Turns a kind of worker into its loop: claim, execute under heartbeats, report (C§2.5). Producers: worker-*.

The result is kept in the artifact store before it is reported, under the key of the work: a worker that dies between
the
two has not worked in vain, the next one finds it.
"""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from patra.bus.bus import Bus
from patra.kernel.db import Database, Tx
from patra.kernel.errors import Fenced, PatraError, Permanent, Transient
from patra.kernel.safety.redact import redact_text
from patra.kernel.telemetry import bind_lineage, get_logger
from patra.studio.film.ffmpeg import Interrupted
from patra.studio.film.quality import QUALITIES, shape_quality
from patra.studio.heartbeat import Heartbeat
from patra.studio.hub import Claim, Hub, report_key
from patra.studio.profiles import Profile
from patra.studio.script.plan import Plan
from patra.studio.storage.artifacts import Artifact, ArtifactStore
from patra.studio.storage.full_disk import FULL_DISK_PAUSE, is_disk_full
from patra.studio.vocabulary.contracts import OutgoingEvent, publish
from patra.studio.vocabulary.reasons import Reason
from patra.studio.workers.audio import Audio
from patra.studio.workers.job_request import Executor, JobRequest
from patra.studio.workers.lipsync import Lipsync
from patra.studio.workers.llm import Llm
from patra.studio.workers.video import Video

log = get_logger()


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a job: files, or a code and whether trying again may help."""

    artifacts: tuple[Artifact, ...] = ()
    metrics: dict[str, float] = {}
    error_code: str = ""
    error_message: str = ""
    retryable: bool = False


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    done: int = 0
    failed: int = 0
    fenced: int = 0


EXECUTORS: Mapping[str, type[Executor]] = {"llm": Llm, "audio": Audio, "lipsync": Lipsync, "video": Video}


class WorkerLoop:
    """One worker of one kind."""

    def __init__(
        self,
        db: Database,
        bus: Bus,
        hub: Hub,
        artifacts: ArtifactStore,
        profiles: Mapping[str, Profile],
        worker_type: str,
        worker_id: str,
        plans: Callable[[Tx, str, str], Plan | None],
        *,
        job_seconds: float = 3600.0,
    ) -> None:
        """`plans` gives the plan that a job refers to, by its id and run."""
        self.worker_type = worker_type
        self._plans = plans
        self._db = db
        self._bus = bus
        self._hub = hub
        self._artifacts = artifacts
        self._profiles = profiles
        self._id = worker_id
        self._executor = EXECUTORS[worker_type]()
        self._job_seconds = job_seconds
        self._leaving = threading.Event()
        self._no_job_before = 0

    def leave(self) -> None:
        """Stop the current job soon, and give it back."""
        self._leaving.set()

    def run_once(self) -> Counts:
        if self._bus.clock.now() < self._no_job_before:
            return Counts()
        claim = self._hub.claim(self.worker_type, self._id)
        if claim is None:
            return Counts()
        began = time.monotonic()
        beat = Heartbeat(
            claim.work.job_id,
            lambda: self._hub.beat(claim),
            ttl=self._hub.limits.lease,
            leaving=self._leaving,
            seconds=self._job_seconds,
        )
        with bind_lineage(run_id=claim.work.run_id, task_id=claim.context.correlation_id), beat:
            outcome = self._outcome(claim, beat)
        if outcome is None:
            log.warning("studio_folder_full", job_id=claim.work.job_id, folder=str(self._artifacts.root))
            self._no_job_before = self._bus.clock.now() + FULL_DISK_PAUSE
            self._hub.give_back(claim)
            return Counts()
        if self._leaving.is_set() and outcome.error_code == str(Reason.JOB_CANCELLED):
            self._hub.give_back(claim)
            return Counts()
        spent = round(1000 * (time.monotonic() - began))
        try:
            self._db.run(lambda tx: self._report(tx, claim, outcome, spent))
        except Fenced:
            log.warning("studio_lease_lost", job_id=claim.work.job_id, worker_type=self.worker_type)
            return Counts(fenced=1)
        return Counts(failed=1) if outcome.error_code else Counts(done=1)

    def _outcome(self, claim: Claim, beat: Heartbeat) -> Outcome | None:
        """What became of the job; None where the disk was full: that is nobody's failure, and will pass."""
        try:
            return self._attempt(claim, beat)
        except Exception as error:
            if is_disk_full(error):
                return None
            log.exception("studio_worker_failed", job_id=claim.work.job_id, worker_type=self.worker_type)
            words = redact_text(f"{type(error).__name__}: {error}")[:2000]
            return Outcome(
                error_code=str(Reason.WORKER_CRASHED),
                error_message=words,
                retryable=isinstance(error, (OSError, MemoryError)),
            )

    def _attempt(self, claim: Claim, beat: Heartbeat) -> Outcome:
        try:
            order = self._order(claim)
            work = order.work(self._executor.version)
            if (found := self._artifacts.find(work)) is not None:
                return Outcome(artifacts=_of_shot(found.artifacts, order), metrics={"reused": 1.0})
            with self._artifacts.workspace() as folder:
                made = self._executor.execute(order, folder, self._artifacts, beat.stop)
                kept = [self._artifacts.keep(f.path, f.kind, f.media_type, **f.fields) for f in made.files]
                self._artifacts.commit(work, kept, made.metrics)
            return Outcome(artifacts=_of_shot(kept, order), metrics=made.metrics)
        except Interrupted:
            late = beat.too_long
            code, words = (
                (Reason.JOB_TIMEOUT, "the job took too long")
                if late
                else (Reason.JOB_CANCELLED, "the job was cancelled")
            )
            return Outcome(error_code=str(code), error_message=words, retryable=late)
        except PatraError as error:
            if is_disk_full(error):
                raise
            return Outcome(
                error_code=str(error.code)[:100],
                error_message=redact_text(error.detail)[:2000],
                retryable=isinstance(error, Transient),
            )

    def _order(self, claim: Claim) -> JobRequest:
        work = claim.work
        profile = self._profiles.get(work.profile_id)
        if profile is None:
            raise Permanent(Reason.PROFILE_UNKNOWN, work.profile_id)
        plan = self._db.read(lambda tx: self._plans(tx, work.body["parameters"]["plan_id"], work.run_id))
        if plan is None:
            raise Permanent(Reason.RUN_UNKNOWN, work.run_id)
        prompt = next(p for p in plan.prompts if p.prompt_id == work.body["prompt_id"])
        name = prompt.body.get("quality") or next(p.body["quality"] for p in plan.prompts if "quality" in p.body)
        return JobRequest(
            job_id=work.job_id,
            run_id=work.run_id,
            shot_id=work.body["shot_id"],
            worker_type=work.worker_type,
            prompt=prompt.body,
            prompt_sha256=prompt.sha256,
            inputs=tuple(msgspec.convert(a, Artifact) for a in work.body.get("inputs", ())),
            profile=profile,
            quality=shape_quality(QUALITIES[name], prompt.body.get("format", "")),
            language=plan.language,
            fresh=work.body["parameters"].get("fresh", ""),
        )

    def _report(self, tx: Tx, claim: Claim, outcome: Outcome, spent: int) -> None:
        self._hub.report(tx, claim)
        payload: dict[str, Any] = {
            "job_id": claim.work.job_id,
            "run_id": claim.work.run_id,
            "shot_id": claim.work.body["shot_id"],
            "worker_id": self._id,
            "model_profile_id": claim.work.profile_id,
            "status": "failed" if outcome.error_code else "succeeded",
            "artifacts": msgspec.to_builtins(outcome.artifacts),
            "error_code": outcome.error_code or None,
            "retryable": outcome.retryable,
            "duration_ms": spent,
            "metrics": outcome.metrics,
        }
        if outcome.error_code:
            payload["error_message"] = outcome.error_message
        said = OutgoingEvent(type=f"worker.{self.worker_type}.completed", key=report_key(claim.work), payload=payload)
        publish(self._bus, tx, claim.context, [said], by=f"worker-{self.worker_type}")


def _of_shot(artifacts: "tuple[Artifact, ...] | list[Artifact]", order: JobRequest) -> tuple[Artifact, ...]:
    return tuple(msgspec.structs.replace(artifact, shot_id=order.shot_id) for artifact in artifacts)
