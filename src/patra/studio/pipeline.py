"""Turns a store, a bus and settings into the whole studio: modules joined, loops that run them (C§2, B6).

`Studio.run_once()` is one turn of every module in one thread: what tests and a small installation need. For speed, the
loops of `duties()` run in threads or processes of their own; they meet only in the store.
"""

import os
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from patra.bus.bus import Bus
from patra.bus.dispatch.dispatcher import Dispatcher
from patra.kernel.clock import SECOND, format_instant
from patra.kernel.db import Database, Tx
from patra.kernel.errors import Invalid
from patra.kernel.ids import new_id
from patra.studio import composer as composing
from patra.studio import gateway as gate
from patra.studio import hub as hubs
from patra.studio import observer as observing
from patra.studio import orchestrator as orchestrating
from patra.studio import planner as planning
from patra.studio import router as routing
from patra.studio import supervisor as supervising
from patra.studio.gateway import Submission
from patra.studio.profiles import Profile
from patra.studio.script.edits import ShotEdit
from patra.studio.script.plan import WORKERS
from patra.studio.storage import store
from patra.studio.storage.artifacts import Artifact, ArtifactStore, Manifest
from patra.studio.storage.store import Q
from patra.studio.views import SUBMITTED
from patra.studio.vocabulary.contracts import plan_id_of, run_id_of
from patra.studio.vocabulary.reasons import Reason
from patra.studio.vocabulary.stages import ENDED
from patra.studio.workers.worker_loop import WorkerLoop

SWEEP_EVERY = 60 * SECOND
GROUPS = (
    *(gate.GROUP, orchestrating.GROUP, planning.GROUP, routing.GROUP, hubs.GROUP, composing.GROUP),
    *(observing.GROUP, supervising.GROUP),
)


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """What one turn did."""

    events: int = 0
    jobs: int = 0
    films: int = 0
    revived: int = 0
    failed: int = 0


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """A run as people see it."""

    run_id: str
    task_id: str
    title: str
    stage: str  # `submitted` until the Orchestrator has created the run
    epoch: int = 0
    progress: int = 0
    reason_code: str = ""
    reason: str = ""
    shots: int = 0
    jobs: dict[str, dict[str, int]] = {}  # by worker type, by state
    film_uri: str | None = None
    film_ms: int | None = None
    left_out: list[dict[str, Any]] = []
    cost_micros: int = 0
    work_ms: int = 0
    created_at: str
    changed_at: str

    @property
    def has_ended(self) -> bool:
        return self.stage in ENDED


class Studio:
    """All modules on one store; each publishes as itself."""

    def __init__(
        self,
        db: Database,
        bus: Bus,
        artifacts: ArtifactStore,
        profiles: Mapping[str, Profile],
        *,
        limits: hubs.Limits | None = None,
        max_characters: int = 200_000,
        workers: int = 2,
        job_seconds: float = 3600.0,
        name: str = "",
    ) -> None:
        self.db = db
        self.bus = bus
        self.artifacts = artifacts
        self.profiles = dict(profiles)
        me = name or f"{os.getpid()}-{new_id()[-8:]}"
        self.gateway = gate.Gateway(bus, self.profiles, max_characters=max_characters)
        self.planner = planning.Planner(bus, self.profiles, self.gateway.request)
        self.router = routing.Router(bus, self.profiles, self.planner.plan)
        self.hub = hubs.Hub(db, bus, limits)
        self.composer = composing.Composer(
            *(db, bus, artifacts, f"composer-{me}", self.gateway.request, self.planner.plan),
            lease=self.hub.limits.lease,
        )
        self.orchestrator = orchestrating.Orchestrator(
            bus, self.composer, self.gateway.submission, self.planner.prompts
        )
        self.observer = observing.Observer(bus, self.profiles)
        self.supervisor = supervising.Supervisor(bus, self.orchestrator)
        self.desks = [
            WorkerLoop(
                *(db, bus, self.hub, artifacts, self.profiles, kind, f"worker-{kind}-{me}-{n}", self.planner.plan),
                job_seconds=job_seconds,
            )
            for kind in WORKERS
            for n in range(workers if kind == "video" else 1)
        ]
        self._swept = bus.clock.now()
        self.dispatchers = [Dispatcher(db, bus, group) for group in GROUPS]

    def join(self) -> None:
        """Register what the modules listen to, and sweep what killed processes left."""
        self.db.run(self.bus.join)
        self.artifacts.sweep()

    # ---- acts

    def submit(self, asked: Submission) -> str:
        """Take a chapter; gives the id of its run, which is known before the run begins."""
        return self.db.run(lambda tx: self.submit_in(tx, asked))

    def cancel(self, run_id: str, by: str = "local") -> None:
        self.db.run(lambda tx: self.orchestrator.cancel(tx, run_id, by))

    def resume(self, run_id: str, by: str = "local") -> str:
        return self.db.run(lambda tx: self.orchestrator.resume(tx, run_id, by))

    def submit_in(self, tx: Tx, asked: Submission, edits: Mapping[str, ShotEdit] | None = None) -> str:
        """Take a chapter, with edits of its shots, in the caller's transaction; gives the id of its run.

        The same task again has the same edits. Raises IllegalMove where they are others.
        """
        task_id, new = self.gateway.submit(tx, asked)
        run_id = run_id_of(task_id)
        if not new:
            self.planner.check_first(tx, run_id, edits or {})
        elif edits:
            self.planner.edit(tx, run_id, edits, asked.submitted_by, first=True)
        return run_id

    def edit_in(
        self, tx: Tx, run_id: str, edits: Mapping[str, ShotEdit], by: str = "local", *, later: bool = False
    ) -> str:
        """Change shots of an ended run and make its film again, or only keep the edits; gives the run's stage.

        Without any edit the film is made again with those that were kept.
        """
        self.orchestrator.check_ended(tx, run_id)
        if edits:
            self.planner.edit(tx, run_id, edits, by)
        if later:
            return progress(tx, run_id).stage
        return self.orchestrator.remake(tx, run_id, by, sorted(edits))

    def edit(self, run_id: str, edits: Mapping[str, ShotEdit], by: str = "local", *, later: bool = False) -> str:
        return self.db.run(lambda tx: self.edit_in(tx, run_id, edits, by, later=later))

    def rerun(self, run_id: str, stage: str, by: str = "local") -> str:
        return self.db.run(lambda tx: self.orchestrator.rerun(tx, run_id, stage, by))

    # ---- turns

    def dispatch(self) -> Turn:
        """Every module handles what is on its line; dead workers' jobs come back."""
        now = self.bus.clock.now()
        counts = [one.run_once() for one in self.dispatchers if (due := one.next_due()) is not None and due <= now]
        revived = self.hub.run_once()
        self.observer.run_once(self.db)
        if now - self._swept > SWEEP_EVERY:
            self._swept = now
            self.artifacts.sweep()
        return Turn(
            events=sum(c.handled + c.duplicates for c in counts),
            failed=sum(c.later + c.dead for c in counts),
            revived=revived.expired,
        )

    def run_once(self) -> Turn:
        """One turn of everything, in this thread."""
        turn = self.dispatch()
        done = [desk.run_once() for desk in self.desks]
        films = self.composer.run_once()
        return msgspec.structs.replace(
            turn, jobs=sum(d.done + d.failed for d in done), films=films.published, failed=turn.failed + films.failed
        )

    def duties(self) -> dict[str, Callable[[], msgspec.Struct]]:
        """The loops of the studio, by name; each may run in a thread or process of its own."""
        found: dict[str, Callable[[], msgspec.Struct]] = {
            "studio.dispatch": self.dispatch,
            "studio.composer": self.composer.run_once,
        }
        for number, desk in enumerate(self.desks):
            found[f"studio.{desk.worker_type}.{number}"] = desk.run_once
        return found

    def leave(self) -> None:
        """Running jobs stop soon and are given back."""
        self.composer.leave()
        for desk in self.desks:
            desk.leave()

    @contextmanager
    def running(self, pause: float = 0.01, longest: float = 0.25) -> Generator[list[BaseException]]:
        """All duties in threads until the block ends; gives the list of what they could not bear."""
        over, broken = threading.Event(), list[BaseException]()

        def loop(duty: Callable[[], Any]) -> None:
            wait = pause
            while not over.is_set():
                try:
                    counts = msgspec.structs.astuple(duty())
                except Exception as error:  # noqa: BLE001  a loop's edge
                    broken.append(error)
                    counts = ()
                wait = pause if any(counts) else min(longest, wait * 1.6)
                if not any(counts):
                    over.wait(wait)

        threads = [
            threading.Thread(target=loop, args=(duty,), name=name, daemon=True) for name, duty in self.duties().items()
        ]
        for thread in threads:
            thread.start()
        try:
            yield broken
        finally:
            over.set()
            self.leave()
            for thread in threads:
                thread.join(30)

    # ---- views

    def progress(self, run_id: str) -> Progress:
        return self.db.read(lambda tx: progress(tx, run_id))

    def film(self, run_id: str) -> tuple[Path, Manifest]:
        """The published film's local file, its hash checked, and its manifest."""
        manifest = self.db.read(lambda tx: manifest_of(tx, run_id))
        return self.artifacts.verify_once(manifest.artifacts[0]), manifest


def manifest_of(tx: Tx, run_id: str) -> Manifest:
    found = tx.fetch_dicts(Q["film"], {"run_id": run_id})
    if not found or found[0]["manifest"] is None:
        stage = progress(tx, run_id).stage
        raise Invalid(Reason.FILM_MISSING, f"the run is {stage}, and no film was made", place="run_id")
    return msgspec.json.decode(bytes(found[0]["manifest"]), type=Manifest)


def progress(tx: Tx, run_id: str) -> Progress:
    run = store.run(tx, run_id)
    if run is None:
        return _submission_progress(tx, run_id)
    plan_id = plan_id_of(run_id, run.plan_version)
    task = store.task(tx, run.task_id) or {}
    jobs: dict[str, dict[str, int]] = {}
    done = total = 0
    for worker_type, state, count in tx.fetch(Q["job_states"], {"run_id": run_id, "plan_id": plan_id}):
        jobs.setdefault(worker_type, {})[state] = count
        total += count
        done += count if state in {"succeeded", "failed", "cancelled"} else 0
    cost, spent = tx.fetch_one(Q["run_totals"], {"run_id": run_id}) or (0, 0)
    film = tx.fetch_dicts(Q["film"], {"run_id": run_id})
    body: Any = film[0]["manifest"] if film and run.stage == "completed" else None
    manifest = msgspec.json.decode(bytes(body), type=Manifest) if body is not None else None
    percent = orchestrating.PROGRESS[orchestrating.Stage(run.stage)]
    if run.stage == "executing" and total:
        percent = 15 + round(70 * done / total)
    return Progress(
        run_id=run_id,
        task_id=run.task_id,
        title=str(task.get("title", "")),
        stage=run.stage,
        epoch=run.epoch,
        progress=percent,
        reason_code=run.reason_code,
        reason=run.reason,
        shots=store.plan_shots(tx, plan_id),
        jobs=jobs,
        film_uri=manifest.artifacts[0].uri if manifest else None,
        film_ms=manifest.artifacts[0].duration_ms if manifest else None,
        left_out=list(manifest.facts["left_out"]) if manifest else [],
        cost_micros=cost,
        work_ms=spent,
        created_at=format_instant(run.created_at),
        changed_at=format_instant(run.changed_at),
    )


def _submission_progress(tx: Tx, run_id: str) -> Progress:
    """A run that has yet to be created: its task waits for the Orchestrator."""
    task = store.task_of_run(tx, run_id)
    if task is None:
        raise Invalid(Reason.RUN_UNKNOWN, f"no run {run_id}", place="run_id")
    at = format_instant(task["submitted_at"])
    return Progress(
        run_id=run_id,
        task_id=task["task_id"],
        title=task["title"],
        stage=SUBMITTED,
        created_at=at,
        changed_at=at,
    )


__all__ = ["GROUPS", "Artifact", "Progress", "Studio", "Turn", "manifest_of", "progress"]
