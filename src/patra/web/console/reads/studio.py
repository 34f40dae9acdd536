"""Studio: the shots of a run, and its notes, the latest first."""

from collections.abc import Sequence
from typing import Any

import msgspec

from patra.app.wiring import Patra
from patra.kernel.db import Tx
from patra.kernel.db.queries import statement
from patra.studio.observer import notes as studio_notes
from patra.studio.storage import store
from patra.studio.views import shots as studio_shots
from patra.studio.vocabulary.contracts import plan_id_of

NOTES_SHOWN = 1000
TRIES = statement("console_studio_tries", "SELECT job_id, attempt, tries, losses FROM stu_work WHERE run_id = :run_id")
WORKERS = ("llm", "audio", "lipsync", "video")
"""In the order in which a shot needs them."""


def shots(patra: Patra, run_id: str) -> list[dict[str, Any]]:
    """The shots in the film's order, each with its jobs: who made it, what became of it."""

    def read(tx: Tx) -> list[dict[str, Any]]:
        run = store.run(tx, run_id)
        jobs = store.jobs(tx, run_id, plan_id_of(run_id, run.plan_version)) if run else []
        lines = msgspec.to_builtins(studio_shots(tx, run_id))
        tried = {row["job_id"]: row for row in tx.fetch_dicts(TRIES, {"run_id": run_id})}
        of: dict[str, list[Any]] = {}
        for job in sorted(jobs, key=lambda job: WORKERS.index(job.worker_type) if job.worker_type in WORKERS else 9):
            of.setdefault(job.shot_id, []).append(msgspec.to_builtins(job) | _tries(tried.get(job.job_id)))
        return [line | {"jobs": of[line["shot_id"]]} for line in lines]

    return patra.db.read(read)


def posters(patra: Patra, run_ids: Sequence[str]) -> dict[str, str]:
    """Of each run the first shot that is made; empty where none is."""

    def read(tx: Tx) -> dict[str, str]:
        return {
            run_id: next((str(one.shot_id) for one in studio_shots(tx, run_id) if one.state == "made"), "")
            for run_id in run_ids
        }

    return patra.db.read(read)


def _tries(row: dict[str, Any] | None) -> dict[str, int]:
    """How often a job was begun, in which place of its chain of profiles it is, how often its worker was lost."""
    return {name: int(row[name]) if row else 0 for name in ("attempt", "tries", "losses")}


def notes(patra: Patra, run_id: str) -> list[dict[str, Any]]:
    """In the order of their reports, the latest first."""
    found = patra.db.read(lambda tx: studio_notes(tx, run_id, limit=NOTES_SHOWN))
    return msgspec.to_builtins(found[::-1])
