"""What the studio knows about a key: task, run, job, artifact (C§2)."""

from collections.abc import Sequence

from patra.app.story.model import Candidate, Collected, Engine, Entry, Lookup, Pending, Related, Shape
from patra.kernel.clock import parse_instant
from patra.kernel.db import Tx
from patra.kernel.machine import history
from patra.studio import observer
from patra.studio.storage import store
from patra.studio.vocabulary.reasons import Reason

MAX_JOBS = 100
"""Jobs of a run that its story includes; each has a story of its own."""
_TEXTS = {reason.value: reason.text for reason in Reason}
_ENDED = {"completed", "failed", "cancelled"}
_JOB_ENDED = {"succeeded", "failed", "cancelled"}


def look_up(tx: Tx, key: str, kinds: Sequence[str], limit: int) -> Lookup:
    """The rows that a key leads to under some kinds, with what the Observer noted of their run."""
    told = _Told(tx, limit)
    candidates: list[Candidate] = []
    for kind in kinds:
        match kind:
            case "studio.task":
                candidates += told.by_task(key)
            case "studio.run":
                candidates += told.by_run(key)
            case "studio.job":
                candidates += told.by_job(key)
            case "studio.artifact":
                candidates += told.by_artifact(key)
            case _:
                raise ValueError(f"the studio has no kind {kind!r}")
    return told.lookup(kinds, candidates)


class _Told(Collected):
    def add(self, entry: Entry) -> None:
        self.entries.setdefault(entry.id, entry)

    def by_task(self, key: str) -> list[Candidate]:
        task = store.task(self.tx, key)
        if task is None:
            return []
        self._whole_run(task["run_id"] or "", key)
        return [_candidate("studio.task", key, f"film of {task['title'] or task['chapter_id']}")]

    def by_run(self, key: str) -> list[Candidate]:
        task = store.task_of_run(self.tx, key)
        if task is None:
            return []
        self._whole_run(key, task["task_id"])
        return [_candidate("studio.run", key, f"run of task {task['task_id']}")]

    def by_job(self, key: str) -> list[Candidate]:
        job = store.job(self.tx, key)
        if job is None:
            return []
        self._origin(job.run_id)
        self._job(job)
        return [_candidate("studio.job", key, f"{job.worker_type} of shot {job.shot_id} in run {job.run_id}")]

    def by_artifact(self, key: str) -> list[Candidate]:
        found = store.artifacts_by_key(self.tx, key, self.limit)
        for note in found:
            self._origin(note.run_id)
            job = store.job(self.tx, note.job_id) if note.job_id else None
            if job is not None:
                self._job(job)
            self._artifact(note)
        if found:
            kinds = ", ".join(sorted({note.kind for note in found}))
            return [_candidate("studio.artifact", key, f"{kinds} in {len({note.run_id for note in found})} runs")]
        tasks = store.tasks_of_chapter(self.tx, key, self.limit)
        for task_id in tasks:
            task = store.task(self.tx, task_id)
            if task is not None and task["run_id"]:
                self._origin(task["run_id"])
        return [_candidate("studio.artifact", key, f"chapter of {len(tasks)} tasks")] if tasks else []

    def _whole_run(self, run_id: str, task_id: str) -> None:
        self._origin(run_id)
        for note in observer.notes(self.tx, run_id, limit=self.limit):
            self._note(run_id, note)
        jobs = store.some_jobs(self.tx, run_id, MAX_JOBS + 1)
        self.complete = self.complete and len(jobs) <= MAX_JOBS
        for job in jobs[:MAX_JOBS]:
            self._job(job)
        self.follow[Related(relation="published as", kind="bus.correlation_id", key=task_id)] = None

    def _origin(self, run_id: str) -> None:
        """The task of a run, the run, and how it moved."""
        task = store.task_of_run(self.tx, run_id)
        if task is None:
            return
        related = [
            Related(relation="task", kind="studio.task", key=task["task_id"]),
            Related(relation="run", kind="studio.run", key=run_id),
            Related(relation="chapter", kind="studio.artifact", key=task["chapter_sha256"]),
            Related(relation="published as", kind="bus.correlation_id", key=task["task_id"]),
            Related(relation="same trace", kind="bus.trace_id", key=task["trace_id"]),
        ]
        self.add(
            Entry(
                id=f"studio.task.{task['task_id']}",
                at=task["submitted_at"],
                engine=Engine.STUDIO,
                shape=Shape.IN,
                what="task_submitted",
                text=f"{task['submitted_by']} submitted a chapter in {task['language']}, quality {task['quality']}.",
                state="submitted",
                paragraph="c-2-1",
                detail={"title": task["title"], "chapter_id": task["chapter_id"], "tenant_id": task["tenant_id"]},
                related=related,
            )
        )
        if task["film_sha256"]:
            self._film(task, run_id)
        self._run(run_id, related[:2])

    def _film(self, task: dict[str, str], run_id: str) -> None:
        self.add(
            Entry(
                id=f"studio.film.{run_id}",
                at=int(task["published_at"] or task["submitted_at"]),
                engine=Engine.STUDIO,
                shape=Shape.OUT,
                what="film_published",
                text="The film was published.",
                state="published",
                paragraph="c-2-6",
                detail={"uri": task["film_uri"], "milliseconds": task["film_ms"]},
                related=[
                    Related(relation="film", kind="studio.artifact", key=task["film_sha256"]),
                    Related(relation="run", kind="studio.run", key=run_id),
                    Related(relation="task", kind="studio.task", key=task["task_id"]),
                ],
            )
        )

    def _run(self, run_id: str, related: list[Related]) -> None:
        run = store.run(self.tx, run_id)
        if run is None:
            text = f"The orchestrator has yet to create run {run_id}."
            self.pending[run_id] = Pending(
                engine=Engine.STUDIO, what="run", text=text, due=None, state="submitted", related=related
            )
            return
        for number, move in enumerate(history(self.tx, [run_id])):
            self.add(
                Entry(
                    id=f"studio.move.{run_id}.{number}",
                    at=move.at,
                    engine=Engine.STUDIO,
                    shape=Shape.RULE,
                    what="run_moved",
                    text=f"Run {run_id} went from {move.was} to {move.to}.",
                    state=move.to,
                    code=move.reason,
                    code_text=_TEXTS.get(move.reason, ""),
                    rule_version=move.rule_version,
                    paragraph="c-2-2",
                    related=related,
                )
            )
        if run.stage not in _ENDED:
            text = f"Run {run_id} is {run.stage}."
            self.pending[run_id] = Pending(
                engine=Engine.STUDIO, what="run", text=text, due=None, state=run.stage, related=related
            )

    def _job(self, job: store.JobRow) -> None:
        related = [
            Related(relation="job", kind="studio.job", key=job.job_id),
            Related(relation="run", kind="studio.run", key=job.run_id),
            *(Related(relation="made", kind="studio.artifact", key=a["sha256"]) for a in job.artifacts),
        ]
        self.add(
            Entry(
                id=f"studio.job.{job.job_id}",
                at=job.changed_at,
                engine=Engine.STUDIO,
                shape=Shape.WRITTEN,
                what="job_state",
                text=f"The {job.worker_type} job of shot {job.shot_id} is {job.state}.",
                state=job.state,
                code=job.error_code,
                code_text=_TEXTS.get(job.error_code, ""),
                rule_version=str(job.epoch),
                paragraph="c-2-4",
                detail={"profile_id": job.profile_id, "shot_id": job.shot_id, "artifacts": job.artifacts},
                related=related,
            )
        )
        if job.state not in _JOB_ENDED and (work := store.work_state(self.tx, job.job_id)) is not None:
            self.pending[job.job_id] = Pending(
                engine=Engine.STUDIO,
                what="job_lease" if work.lease_owner else "job",
                text=f"{work.lease_owner or 'A worker'} has the {job.worker_type} job of shot {job.shot_id} to do.",
                due=work.leased_until if work.lease_owner else work.due_at,
                state=work.state,
                related=related[:1],
            )

    def _artifact(self, note: store.ArtifactNote) -> None:
        related = [
            Related(relation="artifact", kind="studio.artifact", key=note.sha256),
            Related(relation="run", kind="studio.run", key=note.run_id),
        ]
        if note.job_id:
            related.append(Related(relation="made by", kind="studio.job", key=note.job_id))
        self.add(
            Entry(
                id=f"studio.artifact.{note.sha256}.{note.run_id}.{note.job_id}.{note.kind}",
                at=note.noted_at,
                engine=Engine.STUDIO,
                shape=Shape.WRITTEN,
                what="artifact_made",
                text=f"A {note.kind} artifact was made for run {note.run_id}.",
                state="made",
                paragraph="c-2-5",
                detail={"artifact_id": note.artifact_id, "kind": note.kind},
                related=related,
            )
        )

    def _note(self, run_id: str, note: observer.Note) -> None:
        code = str(note.detail.get("error_code") or note.detail.get("reason_code") or "")
        related = [
            Related(relation="event", kind="bus.event_id", key=note.event_id),
            Related(relation="run", kind="studio.run", key=run_id),
        ]
        if job_id := note.detail.get("job_id"):
            related.append(Related(relation="job", kind="studio.job", key=job_id))
        self.add(
            Entry(
                id=f"studio.note.{note.note_id}",
                at=parse_instant(note.at) or 0,
                engine=Engine.STUDIO,
                shape=Shape.WRITTEN,
                what="run_observed",
                text=f"{note.kind} {note.subject}".strip() + " was observed.",
                state=str(note.detail.get("status") or note.detail.get("stage") or ""),
                code=code,
                code_text=_TEXTS.get(code, ""),
                paragraph="c-5",
                detail=note.detail,
                related=related,
            )
        )


def _candidate(kind: str, key: str, label: str) -> Candidate:
    return Candidate(engine=Engine.STUDIO, kind=kind, key=key, label=label, subject=f"{kind}:{key}")
