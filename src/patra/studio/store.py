"""Rows of the studio's tables go in and out; the one place that runs its SQL (STYLE: SQL)."""

from typing import Any

import msgspec

from patra.kernel.db import Queries, Tx
from patra.studio.contracts import Context
from patra.studio.script.plan import Plan

Q = Queries.load("patra.studio")


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    run_id: str
    task_id: str
    stage: str
    epoch: int
    plan_version: int
    context: Context
    options: dict[str, Any]
    reason_code: str
    reason: str
    created_at: int
    changed_at: int


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
    tries: int
    error_code: str
    error: str


class PartRow(msgspec.Struct, frozen=True, kw_only=True):
    job_id: str
    shot_id: str
    worker_type: str
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


def plan_size(tx: Tx, plan_id: str) -> tuple[int, int]:
    """Shots and prompts of a plan; nothing when it is not there yet."""
    found = tx.fetch_one(Q["plan_size"], {"plan_id": plan_id})
    return (found[0], found[1]) if found else (0, 0)


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


def film(tx: Tx, run_id: str) -> FilmRow | None:
    found = tx.fetch_dicts(Q["film"], {"run_id": run_id})
    return _row(found[0], FilmRow, context=Context) if found else None


def parts(tx: Tx, run_id: str, plan_id: str) -> list[PartRow] | None:
    """What the jobs of a plan gave, in the order of its shots; nothing while the word of one is still on its way."""
    params = {"run_id": run_id, "plan_id": plan_id}
    missing = tx.fetch_one(Q["parts_missing"], params)
    if missing and missing[0]:
        return None
    return [_row(row, PartRow, artifacts=list[dict[str, Any]]) for row in tx.fetch_dicts(Q["parts_of_run"], params)]


def _job(row: dict[str, Any]) -> JobRow:
    return _row(row, JobRow, fallback_chain=list[str], artifacts=list[dict[str, Any]])


def _row(row: dict[str, Any], kind: Any, **json: Any) -> Any:
    """A row as its struct; the columns named in `json` hold JSON of that type."""
    fields = {name: row[name] for name in kind.__struct_fields__}
    for name, inner in json.items():
        fields[name] = msgspec.json.decode(fields[name], type=inner)
    return kind(**fields)
