"""Tells which jobs of a plan can begin, which never will, and which results a film is made of (C§2.4, C§2.6)."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from patra.studio.script.plan import NEEDS, SOFT
from patra.studio.storage.store import JobRow
from patra.studio.vocabulary.stages import SETTLED, Job


def hopeless(jobs: Sequence[JobRow]) -> list[JobRow]:
    """The jobs that wait for one that failed, was cancelled or is hopeless itself."""
    states = {(job.shot_id, job.worker_type): job.state for job in jobs}

    def is_lost(job: JobRow) -> bool:
        needs = [states.get((job.shot_id, need)) for need in NEEDS[job.worker_type] if need not in SOFT]
        return job.state == Job.WAITING and any(state in {Job.FAILED, Job.CANCELLED} for state in needs)

    found = [job for job in jobs if is_lost(job)]
    if not found:
        return []
    gone = {job.job_id for job in found}
    return found + hopeless(
        [msgspec.structs.replace(j, state=Job.FAILED.value) if j.job_id in gone else j for j in jobs]
    )


def ready_with_inputs(jobs: Sequence[JobRow]) -> list[tuple[JobRow, list[dict[str, Any]]]]:
    """The jobs that wait for nothing any more, with the artifacts of those that they needed."""
    by_shot = {(job.shot_id, job.worker_type): job for job in jobs}
    ready: list[tuple[JobRow, list[dict[str, Any]]]] = []
    for job in jobs:
        keys = [(job.shot_id, need) for need in NEEDS[job.worker_type]]
        needs = [by_shot[key] for key in keys if key in by_shot]
        if job.state == Job.WAITING and all(need.state in SETTLED for need in needs):
            ready.append((job, [a for need in needs if need.state == Job.SUCCEEDED for a in need.artifacts]))
    return ready


def created_of(job: JobRow, inputs: Sequence[Mapping[str, Any]], fresh: str) -> dict[str, Any]:
    """The payload of `job.created`; work of another `fresh` text is not reused."""
    return {
        "job_id": job.job_id,
        "run_id": job.run_id,
        "shot_id": job.shot_id,
        "worker_type": job.worker_type,
        "model_profile_id": job.profile_id,
        "fallback_chain": job.fallback_chain,
        "prompt_id": job.prompt_id,
        "inputs": list(inputs),
        "parameters": {"plan_id": job.plan_id, "fresh": fresh},
        "priority": min(1000, job.shot_index),
        "attempt": job.epoch,
    }


def film_parts_of(jobs: Sequence[JobRow]) -> list[dict[str, Any]]:
    """The results that a film is made of, and those that say why a shot is left out, each with the attempt that counts.

    A job that was skipped has no result.
    """
    ended = [job for job in jobs if job.state == Job.SUCCEEDED or (job.state == Job.FAILED and job.error_code)]
    return [{"job_id": job.job_id, "attempt": job.epoch} for job in ended]
