"""Rows go in; runs as lists show them, and the shots of one, come out."""

import msgspec

from patra.kernel.clock import format_instant
from patra.kernel.db import Tx
from patra.studio import store
from patra.studio.contracts import plan_id_of
from patra.studio.store import Q

SUBMITTED = "submitted"  # what is said of a run until the Orchestrator has created it


class RunLine(msgspec.Struct, frozen=True, kw_only=True):
    """One run in a list."""

    run_id: str | None
    task_id: str
    title: str
    language: str
    quality: str
    stage: str
    reason_code: str
    submitted_at: str
    film_uri: str | None


def recent(tx: Tx, limit: int) -> list[RunLine]:
    """The newest runs first."""
    rows = tx.fetch_dicts(Q["tasks_recent"], {"limit": limit})
    return [
        RunLine(
            run_id=row["run_id"],
            task_id=row["task_id"],
            title=row["title"],
            language=row["language"],
            quality=row["quality"],
            stage=row["stage"] or SUBMITTED,
            reason_code=row["reason_code"] or "",
            submitted_at=format_instant(row["submitted_at"]),
            film_uri=row["film_uri"],
        )
        for row in rows
    ]


class ShotLine(msgspec.Struct, frozen=True, kw_only=True):
    """One shot of a run: `waiting`, `at_work`, `made` or `failed`."""

    shot_id: str
    state: str


def shots(tx: Tx, run_id: str) -> list[ShotLine]:
    """The shots of a run in the film's order; one is made when its picture is."""
    run = store.run(tx, run_id)
    if run is None:
        return []
    found: dict[str, dict[str, str]] = {}
    for job in sorted(store.jobs(tx, run_id, plan_id_of(run_id, run.plan_version)), key=lambda job: job.shot_index):
        found.setdefault(job.shot_id, {})[job.worker_type] = job.state
    return [ShotLine(shot_id=shot_id, state=_state(jobs)) for shot_id, jobs in found.items()]


def _state(jobs: dict[str, str]) -> str:
    if jobs.get("video") == "succeeded":
        return "made"
    if any(state == "failed" for worker, state in jobs.items() if worker != "lipsync"):
        return "failed"
    return "at_work" if "claimed" in jobs.values() else "waiting"
