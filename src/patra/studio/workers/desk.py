"""A kind of worker goes in; its loop comes out: claim, execute under heartbeats, report (C§2.5). Producers: worker-*.

The result is kept in the artifact store before it is reported, under the key of the work: a worker that dies between
the
two has not worked in vain, the next one finds it.
"""

import threading
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from patra.bus.bus import Bus
from patra.kernel.db import Database, Tx
from patra.kernel.errors import Fenced, PatraError, Permanent, Transient
from patra.kernel.redact import redact_text
from patra.kernel.telemetry import bind_lineage, get_logger
from patra.studio import store
from patra.studio.artifacts import Artifact, ArtifactStore
from patra.studio.contracts import Said, say
from patra.studio.film.ffmpeg import Interrupted
from patra.studio.film.quality import QUALITIES
from patra.studio.hub import Claim, Hub, report_key
from patra.studio.profiles import Profile
from patra.studio.reasons import R
from patra.studio.workers.audio import Audio
from patra.studio.workers.lipsync import Lipsync
from patra.studio.workers.llm import Llm
from patra.studio.workers.order import Executor, Order
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


class Desk:
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
        *,
        job_seconds: float = 3600.0,
    ) -> None:
        self.worker_type = worker_type
        self._db = db
        self._bus = bus
        self._hub = hub
        self._artifacts = artifacts
        self._profiles = profiles
        self._id = worker_id
        self._executor = EXECUTORS[worker_type]()
        self._job_seconds = job_seconds
        self._leaving = threading.Event()

    def leave(self) -> None:
        """Stop the job in hand soon, and give it back."""
        self._leaving.set()

    def run_once(self) -> Counts:
        claim = self._hub.claim(self.worker_type, self._id)
        if claim is None:
            return Counts()
        began = time.monotonic()
        beat = _Heart(self._hub, claim, self._job_seconds, self._leaving)
        with bind_lineage(run_id=claim.work.run_id, task_id=claim.context.correlation_id), beat:
            outcome = self._outcome(claim, beat)
        if self._leaving.is_set() and outcome.error_code == str(R.JOB_CANCELLED):
            self._hub.give_back(claim)
            return Counts()
        spent = round(1000 * (time.monotonic() - began))
        try:
            self._db.run(lambda tx: self._report(tx, claim, outcome, spent))
        except Fenced:
            log.warning("studio_lease_lost", job_id=claim.work.job_id, worker_type=self.worker_type)
            return Counts(fenced=1)
        return Counts(failed=1) if outcome.error_code else Counts(done=1)

    def _outcome(self, claim: Claim, beat: "_Heart") -> Outcome:
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
                (R.JOB_TIMEOUT, "the job took too long") if late else (R.JOB_CANCELLED, "the job was told to stop")
            )
            return Outcome(error_code=str(code), error_message=words, retryable=late)
        except PatraError as error:
            return Outcome(
                error_code=str(error.code)[:100],
                error_message=redact_text(error.detail)[:2000],
                retryable=isinstance(error, Transient),
            )
        except Exception as error:
            log.exception("studio_worker_failed", job_id=claim.work.job_id, worker_type=self.worker_type)
            words = redact_text(f"{type(error).__name__}: {error}")[:2000]
            return Outcome(
                error_code=str(R.WORKER_CRASHED),
                error_message=words,
                retryable=isinstance(error, (OSError, MemoryError)),
            )

    def _order(self, claim: Claim) -> Order:
        work = claim.work
        profile = self._profiles.get(work.profile_id)
        if profile is None:
            raise Permanent(R.PROFILE_UNKNOWN, work.profile_id)
        plan = self._db.read(lambda tx: store.plan(tx, work.body["parameters"]["plan_id"]))
        if plan is None:
            raise Permanent(R.RUN_UNKNOWN, work.run_id)
        prompt = next(p for p in plan.prompts if p.prompt_id == work.body["prompt_id"])
        name = prompt.body.get("quality") or next(p.body["quality"] for p in plan.prompts if "quality" in p.body)
        return Order(
            job_id=work.job_id,
            run_id=work.run_id,
            shot_id=work.body["shot_id"],
            worker_type=work.worker_type,
            prompt=prompt.body,
            prompt_sha256=prompt.sha256,
            inputs=tuple(msgspec.convert(a, Artifact) for a in work.body.get("inputs", ())),
            profile=profile,
            quality=QUALITIES[name],
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
        said = Said(type=f"worker.{self.worker_type}.completed", key=report_key(claim.work), payload=payload)
        say(self._bus, tx, claim.context, [said])


class _Heart:
    """Renews a claim while its job runs; says when to stop."""

    def __init__(self, hub: Hub, claim: Claim, job_seconds: float, leaving: threading.Event) -> None:
        self._hub = hub
        self._claim = claim
        self._leaving = leaving
        self._until = time.monotonic() + job_seconds
        self._lost = threading.Event()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name=f"heart {claim.work.job_id}", daemon=True)

    @property
    def too_long(self) -> bool:
        return time.monotonic() > self._until

    def stop(self) -> bool:
        return self._lost.is_set() or self._leaving.is_set() or self.too_long

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        pause = self._hub.limits.lease / 4 / 1_000_000
        while not self._over.wait(min(pause, 1.0)):
            try:
                if not self._hub.beat(self._claim):
                    self._lost.set()
            except Exception:  # noqa: BLE001  the store is away for a moment; the lease decides
                log.warning("studio_heartbeat_failed", job_id=self._claim.work.job_id)


def _of_shot(artifacts: "tuple[Artifact, ...] | list[Artifact]", order: Order) -> tuple[Artifact, ...]:
    return tuple(msgspec.structs.replace(artifact, shot_id=order.shot_id) for artifact in artifacts)
