"""Reads and writes the rows of the studio's tables; the one place that runs its SQL."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from patra.kernel.db import Queries, Tx
from patra.studio.script.edits import Edit, ShotEdit
from patra.studio.script.plan import Plan
from patra.studio.vocabulary.contracts import Context

Q = Queries.load("patra.studio")


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    run_id: str
    task_id: str
    stage: str
    epoch: int
    plan_version: int
    plan_prompts: int  # of that plan; 0 until the planner has said so
    context: Context
    options: dict[str, Any]
    reason_code: str
    reason: str
    created_at: int
    changed_at: int
    resumed_at: int


class JobRow(msgspec.Struct, frozen=True, kw_only=True):
    job_id: str
    run_id: str
    plan_id: str
    shot_id: str
    shot_index: int
    worker_type: str
    prompt_id: str
    profile_id: str
    fallback_chain: list[str]
    state: str
    epoch: int
    artifacts: list[dict[str, Any]]
    error_code: str
    changed_at: int


class WorkRow(msgspec.Struct, frozen=True, kw_only=True):
    job_id: str
    run_id: str
    worker_type: str
    state: str
    epoch: int
    profile_id: str
    chain: list[str]
    body: dict[str, Any]
    context: Context
    attempt: int
    tries: int
    losses: int
    stop: int


class FilmRow(msgspec.Struct, frozen=True, kw_only=True):
    run_id: str
    state: str
    epoch: int
    context: Context
    plan_id: str
    parts: str  # NamedParts as JSON; empty, or of an earlier epoch, where nobody said so
    tries: int
    error_code: str
    error: str


class NamedParts(msgspec.Struct, frozen=True, kw_only=True):
    """The results that a film is made of, as they were named for one epoch of it."""

    epoch: int
    attempts: dict[str, int]  # by job: the attempt whose result counts


class PartRow(msgspec.Struct, frozen=True, kw_only=True):
    job_id: str
    shot_id: str
    worker_type: str
    epoch: int
    status: str
    profile_id: str
    artifacts: list[dict[str, Any]]
    error_code: str


def text(value: Any) -> str:
    """A value as the JSON that a column holds."""
    return msgspec.json.encode(value).decode()


def any_task(tx: Tx) -> bool:
    """Whether a chapter was ever submitted to this store."""
    return bool(tx.fetch(Q["any_task"]))


def task(tx: Tx, task_id: str) -> dict[str, Any] | None:
    found = tx.fetch_dicts(Q["task"], {"task_id": task_id})
    return found[0] if found else None


def task_of_run(tx: Tx, run_id: str) -> dict[str, Any] | None:
    """The task of a run, also of one that the Orchestrator has yet to create."""
    found = tx.fetch_dicts(Q["task_of_run"], {"run_id": run_id})
    return found[0] if found else None


def run(tx: Tx, run_id: str) -> RunRow | None:
    found = tx.fetch_dicts(Q["run"], {"run_id": run_id})
    return _row(found[0], RunRow, context=Context, options=dict[str, Any]) if found else None


def hold_run(tx: Tx, run_id: str) -> tuple[str, int] | None:
    """Stage and epoch of a run that nobody else moves until this transaction ends."""
    found = tx.fetch(Q["run_held"], {"run_id": run_id})
    return (found[0][0], found[0][1]) if found else None


def plan(tx: Tx, plan_id: str) -> Plan | None:
    found = tx.fetch_one(Q["plan"], {"plan_id": plan_id})
    return msgspec.json.decode(bytes(found[0]), type=Plan) if found else None


def plan_shots(tx: Tx, plan_id: str) -> int:
    """How many shots a plan has; none when it is not there yet."""
    found = tx.fetch_one(Q["plan_shots"], {"plan_id": plan_id})
    return found[0] if found else 0


def plan_prompts(tx: Tx, plan_id: str) -> int:
    """How many prompts a plan has; none when it is not there yet."""
    found = tx.fetch_one(Q["plan_prompts"], {"plan_id": plan_id})
    return found[0] if found else 0


def edits(tx: Tx, run_id: str) -> list[Edit]:
    """What people changed in the shots of a run, in order."""
    return [
        Edit(shot_id=shot_id, start=start, end=end, change=msgspec.json.decode(changes, type=ShotEdit), by=by, at=at)
        for shot_id, start, end, changes, by, at in tx.fetch(Q["edits_of_run"], {"run_id": run_id})
    ]


def keep_edits(tx: Tx, run_id: str, first: int, new: Sequence[Edit]) -> int:
    """Append edits, numbered from `first`; gives how many, for a number that is taken is left as it is."""
    rows = [
        {
            "run_id": run_id,
            "number": number,
            "shot_id": edit.shot_id,
            "source_start": edit.start,
            "source_end": edit.end,
            "changes": text(edit.change),
            "edited_by": edit.by,
            "edited_at": edit.at,
        }
        for number, edit in enumerate(new, first)
    ]
    return len(tx.insert_absent("stu_edit", rows, key=("run_id", "number")))


class JobCounts(msgspec.Struct, frozen=True):
    total: int
    unsettled: int
    films: int  # shots whose picture is made


def jobs(tx: Tx, run_id: str, plan_id: str, shot_id: str = "") -> list[JobRow]:
    """The jobs of a plan, or of one of its shots."""
    params = {"run_id": run_id, "plan_id": plan_id, "shot_id": shot_id}
    return [_job(row) for row in tx.fetch_dicts(Q["jobs_of_run"], params)]


def jobs_count(tx: Tx, run_id: str, plan_id: str) -> JobCounts:
    found = tx.fetch_one(Q["jobs_count"], {"run_id": run_id, "plan_id": plan_id})
    return JobCounts(*found) if found else JobCounts(0, 0, 0)


def job(tx: Tx, job_id: str) -> JobRow | None:
    found = tx.fetch_dicts(Q["job"], {"job_id": job_id})
    return _job(found[0]) if found else None


def work(tx: Tx, job_id: str) -> WorkRow | None:
    found = tx.fetch_dicts(Q["work"], {"job_id": job_id})
    return _row(found[0], WorkRow, context=Context, chain=list[str], body=dict[str, Any]) if found else None


class ArtifactNote(msgspec.Struct, frozen=True):
    """Which job of which run gave an artifact; the artifacts of a film are given by no job."""

    sha256: str
    artifact_id: str
    run_id: str
    job_id: str
    kind: str
    noted_at: int


def note_artifacts(tx: Tx, run_id: str, job_id: str, artifacts: Sequence[Mapping[str, Any]], now: int) -> None:
    """Remember where artifacts came from, so that they are found by their hash."""
    rows = [(a["sha256"], a["artifact_id"], run_id, job_id, a["kind"]) for a in artifacts]
    tx.execute(Q["artifact_note"], {"now": now}, rows=rows)


def artifacts_by_key(tx: Tx, key: str, limit: int) -> list[ArtifactNote]:
    """By hash or by artifact id: the same work, done once, may be part of several runs."""
    return [ArtifactNote(*row) for row in tx.fetch(Q["artifacts_by_key"], {"key": key, "limit": limit})]


def tasks_of_chapter(tx: Tx, sha256: str, limit: int) -> list[str]:
    return [task_id for (task_id,) in tx.fetch(Q["tasks_by_chapter"], {"key": sha256, "limit": limit})]


def some_jobs(tx: Tx, run_id: str, limit: int) -> list[JobRow]:
    """The first jobs of a run, of any plan."""
    return [_job(row) for row in tx.fetch_dicts(Q["jobs_page"], {"run_id": run_id, "limit": limit})]


class WorkState(msgspec.Struct, frozen=True):
    """Where the work on a job stands: due, or leased until an instant."""

    state: str
    attempt: int
    due_at: int
    lease_owner: str | None
    leased_until: int | None


def work_state(tx: Tx, job_id: str) -> WorkState | None:
    row = tx.fetch_one(Q["work_state"], {"job_id": job_id})
    return WorkState(*row) if row else None


def film(tx: Tx, run_id: str) -> FilmRow | None:
    found = tx.fetch_dicts(Q["film"], {"run_id": run_id})
    return _row(found[0], FilmRow, context=Context) if found else None


def hold_film(tx: Tx, run_id: str) -> tuple[str, int] | None:
    """State and epoch of a film that nobody else moves until this transaction ends."""
    found = tx.fetch(Q["film_held"], {"run_id": run_id})
    return (found[0][0], found[0][1]) if found else None


def parts(tx: Tx, run_id: str) -> list[PartRow]:
    """The last result of each job of a run, of every plan."""
    rows = tx.fetch_dicts(Q["parts_of_run"], {"run_id": run_id})
    return [_row(row, PartRow, artifacts=list[dict[str, Any]]) for row in rows]


def _job(row: dict[str, Any]) -> JobRow:
    return _row(row, JobRow, fallback_chain=list[str], artifacts=list[dict[str, Any]])


def _row(row: dict[str, Any], kind: Any, **json: Any) -> Any:
    """A row as its struct; the columns named in `json` hold JSON of that type."""
    fields = {name: row[name] for name in kind.__struct_fields__}
    for name, inner in json.items():
        fields[name] = msgspec.json.decode(fields[name], type=inner)
    return kind(**fields)
