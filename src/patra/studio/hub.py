"""Leases jobs to workers and reports `job.claimed`, `job.succeeded`, `job.failed` (C§2.4, C§2.5).
Producer: Worker Hub.

A worker holds a job by a lease with heartbeats; a dead worker's job comes back and its late report is fenced off. A
failure that is `retryable` is tried again on the same profile, later each time; then the next profile of the
`fallback_chain` is asked; when the chain is at its end, the job has failed.
"""

from typing import Any

import msgspec

from patra.bus.bus import Bus
from patra.bus.consuming.consumer import Event
from patra.kernel import leases
from patra.kernel.clock import SECOND, format_instant
from patra.kernel.db import Database, Tx
from patra.kernel.leases import Lease, LeaseTable
from patra.kernel.machine import advance
from patra.kernel.retry import Backoff
from patra.studio.script.plan import WORKERS
from patra.studio.storage import store
from patra.studio.storage.own_tenant import of_own_tenant
from patra.studio.storage.store import Q, WorkRow
from patra.studio.vocabulary.contracts import VERSIONS, Context, OutgoingEvent, after, context_of, publish, run_epoch_of
from patra.studio.vocabulary.reasons import Reason
from patra.studio.vocabulary.stages import WORK, Stage, Work, WorkTransition

MODULE = "Worker Hub"  # as the bus knows it (C§5)

GROUP = "worker-hub"
BACKOFF = Backoff(base=SECOND, factor=2.0, cap=60 * SECOND)


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    lease: int = 20 * SECOND
    max_attempts: int = 3  # on one profile
    max_losses: int = 4  # workers that may die over one job before the next profile is tried
    backoff: Backoff = BACKOFF


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A job in a worker's hands."""

    lease: Lease
    work: WorkRow
    context: Context  # of what the worker says: caused by the claim
    worker_id: str


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    expired: int = 0
    given_up: int = 0


def table(worker_type: str) -> LeaseTable:
    if worker_type not in WORKERS:
        raise ValueError(f"{worker_type!r} is no kind of worker")
    return LeaseTable(
        table="stu_work",
        id="job_id",
        partition="run_id",
        priority="priority",
        due="due_at",
        scope=f"worker_type = '{worker_type}'",
        ready="state = 'queued'",
    )


class Hub:
    def __init__(self, db: Database, bus: Bus, limits: Limits | None = None) -> None:
        self._db = db
        self._bus = bus
        self.limits = limits or Limits()
        bus.consumer("route.decision.made", group=GROUP, versions=VERSIONS)(of_own_tenant(self.on_route))
        bus.consumer("job.created", group=GROUP, versions=VERSIONS)(of_own_tenant(self.on_job))
        bus.consumer("run.stage.changed", group=GROUP, versions=VERSIONS)(of_own_tenant(self.on_stage))
        for worker_type in WORKERS:
            bus.consumer(f"worker.{worker_type}.completed", group=GROUP, versions=VERSIONS)(
                of_own_tenant(self.on_completed)
            )

    # ---- events

    def on_route(self, tx: Tx, event: Event) -> None:
        """A job is announced: its profile and chain are known before it is to be done."""
        payload = event.payload
        row = {
            "job_id": payload["job_id"],
            "run_id": payload["run_id"],
            "worker_type": payload["worker_type"],
            "state": Work.ANNOUNCED.value,
            "epoch": 0,
            "profile_id": payload["model_profile_id"],
            "chain": store.text(payload["fallback_chain"]),
            "context": store.text(context_of(event)),
        }
        tx.insert_absent("stu_work", [row], key=("job_id",))

    def on_job(self, tx: Tx, event: Event) -> None:
        payload, epoch = event.payload, event.payload.get("attempt", 1)
        work = store.work(tx, payload["job_id"])
        if work is None:
            self.on_route(tx, event)
            work = store.work(tx, payload["job_id"])
        if work is None or work.epoch >= epoch:
            return
        if not WORK.allows(Work(work.state), WorkTransition.CREATE):  # a worker still holds an earlier epoch
            self._move(tx, work, WorkTransition.CANCEL, Reason.LEASE_LOST)
            work = msgspec.structs.replace(work, state=Work.CANCELLED.value)
        self._move(tx, work, WorkTransition.CREATE, "")
        tx.execute(
            Q["work_create"],
            {
                "job_id": work.job_id,
                "epoch": epoch,
                "profile_id": payload["model_profile_id"],
                "chain": store.text(payload["fallback_chain"]),
                "body": store.text(payload),
                "context": store.text(context_of(event)),
                "priority": payload.get("priority", 100),
                "now": self._bus.clock.now(),
            },
        )

    def on_stage(self, tx: Tx, event: Event) -> None:
        """A run that ended before its time takes its work along, but not that of a later epoch: it was resumed."""
        if event.payload["stage"] not in {Stage.CANCELLED, Stage.FAILED}:
            return
        ended = {"run_id": event.payload["run_id"], "epoch": run_epoch_of(event)}
        tx.execute(Q["work_stop_run"], ended)
        now = self._bus.clock.now()
        moves = [
            WORK.move(job_id, Work(state), WorkTransition.CANCEL, reason=str(Reason.JOB_CANCELLED), at=now)
            for job_id, state in tx.fetch(Q["works_of_run"], ended)
            if state in {Work.QUEUED, Work.REPORTED}
        ]
        advance(tx, WORK, table="stu_work", key="job_id", column="state", moves=moves)

    def on_completed(self, tx: Tx, event: Event) -> None:
        """A worker's own result: it is the job's, or the job is tried again, or the next profile is."""
        payload = event.payload
        work = store.work(tx, payload["job_id"])
        if work is None or work.state != Work.REPORTED or event.envelope.idempotency_key != report_key(work):
            return
        if payload["status"] == "succeeded":
            self._move(tx, work, WorkTransition.SUCCEED, "")
            self._end_job(tx, work, context_of(event), payload)
            return
        code = payload.get("error_code") or str(Reason.WORKER_CRASHED)
        self._fail_job(tx, work, context_of(event), payload, code, retryable=bool(payload.get("retryable")))

    def _fail_job(
        self, tx: Tx, work: WorkRow, context: Context, payload: dict[str, Any], code: str, *, retryable: bool
    ) -> None:
        now = self._bus.clock.now()
        if code == str(Reason.JOB_CANCELLED) or work.stop:
            self._move(tx, work, WorkTransition.CANCEL, Reason.JOB_CANCELLED)
            self._end_job(tx, work, context, payload | {"retryable": False, "error_code": str(Reason.JOB_CANCELLED)})
        elif retryable and work.tries < self.limits.max_attempts:
            self._move(tx, work, WorkTransition.RETRY, code)
            due = now + self.limits.backoff.delay(work.tries, 0.0)
            self._requeue(tx, work, due, work.profile_id, work.chain, work.tries)
        elif work.chain:
            self._move(tx, work, WorkTransition.FALL_BACK, code)
            self._requeue(tx, work, now, work.chain[0], work.chain[1:], 0)
        else:
            self._move(tx, work, WorkTransition.GIVE_UP, code)
            self._end_job(tx, work, context, payload | {"retryable": retryable})

    def _requeue(self, tx: Tx, work: WorkRow, due: int, profile: str, chain: list[str], tries: int) -> None:
        params = {
            "job_id": work.job_id,
            "due_at": due,
            "profile_id": profile,
            "chain": store.text(chain),
            "tries": tries,
        }
        tx.execute(Q["work_requeued"], params)

    def _end_job(self, tx: Tx, work: WorkRow, context: Context, payload: dict[str, Any]) -> None:
        won = payload["status"] == "succeeded"
        body: dict[str, Any] = {
            "job_id": work.job_id,
            "run_id": work.run_id,
            "shot_id": work.body["shot_id"],
            "worker_type": work.worker_type,
            "worker_id": payload["worker_id"],
            "model_profile_id": work.profile_id,
            "status": "succeeded" if won else "failed",
            "artifacts": payload["artifacts"] if won else [],
            "error_code": None if won else payload["error_code"],
            "retryable": False if won else bool(payload.get("retryable")),
            "attempt": max(1, work.attempt),
            "duration_ms": payload.get("duration_ms", 0),
        }
        if not won:
            body["error_message"] = payload.get("error_message", "")
        kind = "job.succeeded" if won else "job.failed"
        publish(
            self._bus,
            tx,
            context,
            [OutgoingEvent(type=kind, key=f"{work.job_id}:{work.epoch}", payload=body)],
            by=MODULE,
        )

    # ---- workers

    def claim(self, worker_type: str, worker_id: str) -> Claim | None:
        """Lease the next job of a kind, and say so."""
        params = {"worker_type": worker_type, "now": self._bus.clock.now()}
        if not self._db.read(lambda tx: tx.fetch(Q["work_due"], params)):
            return None  # looking costs no write
        return self._db.run(lambda tx: self._claim_job(tx, worker_type, worker_id))

    def _claim_job(self, tx: Tx, worker_type: str, worker_id: str) -> Claim | None:
        now, where = self._bus.clock.now(), table(worker_type)
        held = leases.acquire(tx, where, holder=worker_id, n=1, now=now, ttl=self.limits.lease)
        if not held:
            return None
        lease = held[0]
        work = store.work(tx, lease.id)
        assert work is not None  # noqa: S101  it was just leased
        self._move(tx, work, WorkTransition.CLAIM, "")
        payload: dict[str, Any] = {
            "job_id": work.job_id,
            "run_id": work.run_id,
            "worker_type": worker_type,
            "worker_id": worker_id,
            "model_profile_id": work.profile_id,
            "attempt": work.attempt + 1,
            "claimed_at": format_instant(now),
            "lease_until": format_instant(lease.until),
        }
        key = f"{work.job_id}:{work.epoch}:{work.attempt + 1}"
        (event_id,) = publish(
            self._bus, tx, work.context, [OutgoingEvent(type="job.claimed", key=key, payload=payload)], by=MODULE
        )
        tx.execute(Q["work_claimed"], {"job_id": work.job_id, "context": store.text(work.context)})
        mine = msgspec.structs.replace(work, attempt=work.attempt + 1, tries=work.tries + 1, state=Work.LEASED.value)
        return Claim(lease=lease, work=mine, context=after(work.context, event_id), worker_id=worker_id)

    def beat(self, claim: Claim) -> bool:
        """Hold on to a job; gives whether to go on: the lease is still held and nobody asked to stop."""
        now = self._bus.clock.now()

        def renew(tx: Tx) -> bool:
            kept = leases.renew(tx, table(claim.work.worker_type), [claim.lease], now=now, ttl=self.limits.lease)
            work = store.work(tx, claim.work.job_id)
            return bool(kept) and work is not None and not work.stop and work.epoch == claim.work.epoch

        return self._db.run(renew)

    def report(self, tx: Tx, claim: Claim) -> None:
        """The worker is done and says so itself, in this transaction. Raises Fenced when it is too late."""
        where = table(claim.work.worker_type)
        leases.guard(tx, where, [claim.lease])
        work = store.work(tx, claim.work.job_id)
        if work is not None and work.state == Work.LEASED:
            self._move(tx, work, WorkTransition.REPORT, "")
        leases.release(tx, where, [claim.lease])

    def give_back(self, claim: Claim) -> None:
        """An orderly end of a worker: the job is free at once."""

        def free(tx: Tx) -> None:
            work = store.work(tx, claim.work.job_id)
            if leases.release(tx, table(claim.work.worker_type), [claim.lease]) and work and work.state == Work.LEASED:
                self._move(tx, work, WorkTransition.EXPIRE, Reason.LEASE_LOST)

        self._db.run(free)

    def run_once(self) -> Counts:
        """Jobs of dead workers come back; one that kills its workers goes to the next profile, or fails."""
        now = {"now": self._bus.clock.now()}
        if not self._db.read(lambda tx: tx.fetch(Q["work_expired"], now)):
            return Counts()
        return self._db.run(self._revive_jobs)

    def _revive_jobs(self, tx: Tx) -> Counts:
        now, expired, given_up = self._bus.clock.now(), 0, 0
        for worker_type in WORKERS:
            for job_id in leases.expire(tx, table(worker_type), now=now):
                work = store.work(tx, job_id)
                if work is None or work.state != Work.LEASED:
                    continue
                expired += 1
                tx.execute(Q["work_lost"], rows=[(job_id,)])
                if work.stop:
                    self._move(tx, work, WorkTransition.CANCEL, Reason.JOB_CANCELLED)
                    continue
                self._move(tx, work, WorkTransition.EXPIRE, Reason.LEASE_LOST)
                if work.losses + 1 >= self.limits.max_losses:
                    given_up += 1
                    self._hopeless(tx, msgspec.structs.replace(work, state=Work.QUEUED.value), now)
        return Counts(expired=expired, given_up=given_up)

    def _hopeless(self, tx: Tx, work: WorkRow, now: int) -> None:
        if work.chain:
            self._requeue(tx, work, now, work.chain[0], work.chain[1:], 0)
            return
        self._move(tx, work, WorkTransition.GIVE_UP, Reason.WORKER_CRASHED)
        lost: dict[str, Any] = {
            "status": "failed",
            "worker_id": "worker-hub",
            "artifacts": [],
            "error_code": str(Reason.WORKER_CRASHED),
        }
        self._end_job(
            tx, work, work.context, lost | {"error_message": "every worker that took the job died", "retryable": False}
        )

    def _move(self, tx: Tx, work: WorkRow, on: WorkTransition, reason: str) -> None:
        move = WORK.move(work.job_id, Work(work.state), on, reason=str(reason), at=self._bus.clock.now())
        advance(tx, WORK, table="stu_work", key="job_id", column="state", moves=[move])


def report_key(work: WorkRow) -> str:
    """The key of a worker's own event: one for each attempt."""
    return f"{work.job_id}:{work.epoch}:{work.attempt}"
