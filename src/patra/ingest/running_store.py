"""What executors read and write, statement by statement; decisions are made elsewhere (STYLE: SQL)."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from patra.ingest import store
from patra.ingest.cursor import Frontier, merged
from patra.ingest.machines import TASK, TASKS, TaskOn, TaskStatus
from patra.ingest.reasons_running import X
from patra.ingest.records import Bad, Incoming, Sorted, Stored, sort_out, unique_bad
from patra.ingest.runs import RUN, Checkpoint, RunOn, RunStatus, decode_checkpoint, encode_checkpoint
from patra.ingest.slicing import Span
from patra.kernel import leases
from patra.kernel.db import Tx
from patra.kernel.errors import StoreBusy
from patra.kernel.leases import Lease
from patra.kernel.machine import advance, journal

Q = store.Q

RUNNABLE = msgspec.structs.replace(
    TASKS,
    ready=TASKS.ready
    + " AND (provenance_code, '') NOT IN (SELECT h.provenance_code, h.endpoint_name FROM ing_halt h)"
    + " AND (provenance_code, endpoint_name) NOT IN (SELECT h.provenance_code, h.endpoint_name FROM ing_halt h)",
)
"""The queue without what stands still: paused or halted sources and endpoints (ch. 5.9)."""


class TaskRow(msgspec.Struct, frozen=True, kw_only=True):
    """A task with its slice."""

    task_id: str
    schedule_instance_id: str
    plan_id: str
    slice_id: str
    provenance_code: str
    endpoint_name: str
    operation_code: str
    partition_key: str
    expr_hash: str
    namespace_key: str
    window_from: int | None
    window_to: int | None
    status_code: str
    lease_count: int
    scheduled_at: int
    priority: int
    slice_spec: str
    slice_signature_hash: str

    @property
    def whose(self) -> dict[str, str]:
        """Whose windows it belongs to, as the statements name the parts."""
        return {
            "source": self.provenance_code,
            "endpoint": self.endpoint_name,
            "operation": self.operation_code,
            "namespace": self.namespace_key,
        }


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """A task in hand: its lease, its run, and where the last run came to."""

    task: TaskRow
    lease: Lease
    run_id: str
    attempt_no: int
    checkpoint: Checkpoint | None


def waiting(tx: Tx, now: int) -> bool:
    """Whether there may be something to take: a look of a reader, before anybody asks for the writer's place."""
    row = tx.fetch_one(Q["work_waits"], {"now": now})
    return row is not None and bool(row[0])


def free_expired(tx: Tx, now: int) -> int:
    """Put tasks whose executor was not heard of back into the queue; their runs end as PARTIAL."""
    expired = leases.expire(tx, TASKS, now=now)
    if not expired:
        return 0
    states = dict(tx.fetch(Q["task_states"], rows=[(task_id,) for task_id in expired]))
    moves = [
        TASK.move(task_id, status, TaskOn.EXPIRE, reason=X.LEASE_EXPIRED, at=now)
        for task_id, status in states.items()
        if TASK.allows(status, TaskOn.EXPIRE)
    ]
    _move_tasks(tx, moves, now)
    _end_runs(tx, expired, now)
    return len(expired)


@lru_cache(maxsize=16)
def queue_of(partition: str | None) -> leases.LeaseTable:
    """The queue, or the part of it that belongs to one partition."""
    if partition is None:
        return RUNNABLE
    if not re.fullmatch(r"[\w./-]+", partition):
        raise ValueError(f"{partition!r} is no partition")
    return msgspec.structs.replace(RUNNABLE, ready=f"{RUNNABLE.ready} AND partition_key = '{partition}'")


def take(
    tx: Tx,
    holder: str,
    now: int,
    ttl: int,
    per_partition: int,
    *,
    bounds: Mapping[str, int] | None = None,
    only: str | None = None,
) -> Taken | None:
    """The next task in turn, leased and started, with a run of its own; None where nothing is due.

    `bounds`: partitions of which fewer are worked on, or none; `only`: leave all others alone.
    """
    queue = queue_of(only)
    held = leases.acquire(tx, queue, holder=holder, n=1, now=now, ttl=ttl, per_partition=per_partition, bounds=bounds)
    if not held:
        return None
    lease = held[0]
    found = tx.fetch_dicts(Q["tasks_taken"], rows=[(lease.id,)])
    task = TaskRow(**found[0])
    moves = [
        TASK.move(task.task_id, TaskStatus.QUEUED, TaskOn.LEASE, reason=X.LEASED, at=now),
        TASK.move(task.task_id, TaskStatus.DISPATCHED, TaskOn.START, reason=X.STARTED, at=now),
    ]
    _move_tasks(tx, moves, now, started_at=now, reason_code=X.STARTED.value)
    _end_runs(tx, [task.task_id], now)
    last = tx.fetch_one(Q["last_run"], {"task_id": task.task_id})
    attempt = last[1] + 1 if last else 1
    checkpoint = decode_checkpoint(last[2]) if last and last[2] else None
    run_id = f"{task.task_id}.r{attempt}"
    tx.insert(
        "ing_task_run",
        [
            {
                "run_id": run_id,
                "task_id": task.task_id,
                "schedule_instance_id": task.schedule_instance_id,
                "plan_id": task.plan_id,
                "slice_id": task.slice_id,
                "provenance_code": task.provenance_code,
                "endpoint_name": task.endpoint_name,
                "operation_code": task.operation_code,
                "attempt_no": attempt,
                "status_code": RunStatus.RUNNING.value,
                "window_from": task.window_from,
                "window_to": task.window_to,
                "lease_owner": holder,
                "lease_fence": lease.fence,
                "checkpoint": encode_checkpoint(checkpoint) if checkpoint else "",
                "stats": "{}",
                "started_at": now,
                "updated_at": now,
            }
        ],
    )
    journal(tx, [RUN.move(run_id, RunStatus.PLANNED, RunOn.START, reason=X.STARTED, at=now)])
    return Taken(task=task, lease=lease, run_id=run_id, attempt_no=attempt, checkpoint=checkpoint)


def _end_runs(tx: Tx, tasks: Sequence[str], now: int) -> None:
    """Runs that a dead executor left open."""
    moves = [
        RUN.move(run_id, RunStatus.RUNNING, RunOn.PART, reason=X.LEASE_EXPIRED, at=now)
        for (run_id,) in tx.fetch(Q["runs_open"], rows=[(task_id,) for task_id in tasks])
    ]
    also = {"finished_at": now, "updated_at": now, "reason_code": X.LEASE_EXPIRED.value}
    advance(tx, RUN, table="ing_task_run", key="run_id", column="status_code", moves=moves, also=also)


def _move_tasks(tx: Tx, moves: Sequence[Any], now: int, **also: Any) -> set[str]:
    return advance(
        tx, TASK, table="ing_task", key="task_id", column="status_code", moves=moves, also={"updated_at": now, **also}
    )


def move_task(tx: Tx, task_id: str, on: TaskOn, reason: X, now: int, **also: Any) -> bool:
    """Move a task that this executor works on."""
    moves = [TASK.move(task_id, TaskStatus.EXECUTING, on, reason=reason, at=now)]
    return bool(_move_tasks(tx, moves, now, reason_code=reason.value, **also))


def end_run(tx: Tx, run_id: str, on: RunOn, reason: X, now: int, error: str | None) -> None:
    moves = [RUN.move(run_id, RunStatus.RUNNING, on, reason=reason, at=now)]
    also = {"finished_at": now, "updated_at": now, "reason_code": reason.value, "error": error}
    advance(tx, RUN, table="ing_task_run", key="run_id", column="status_code", moves=moves, also=also)


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Whose records these are, and which batch brings them."""

    source: str
    endpoint: str
    operation: str
    expr_hash: str
    plan_id: str
    slice_id: str
    task_id: str
    run_id: str
    batch_no: int

    @property
    def params(self) -> dict[str, Any]:
        return msgspec.structs.asdict(self)


def store_records(tx: Tx, place: Place, records: Sequence[Incoming], now: int, *, remap: bool) -> Sorted:
    """Store what is new and newer by the rule of 11.1, on rows that are locked while it is decided."""
    key = {"source": place.source, "endpoint": place.endpoint}
    params = {**_only(place, "expr_hash", "task_id", "run_id", "batch_no"), **key, "now": now}
    new: list[Incoming] = []
    newer: list[tuple[Incoming, Stored]] = []
    repeated = 0
    for _ in range(3):
        seen = tx.fetch(Q["records_seen"], key, rows=[(one,) for one in sorted({r.id for r in records})])
        out = sort_out(records, {one[0]: Stored(*one[1:]) for one in seen}, place.expr_hash, remap=remap)
        inserted = _inserted(tx, params, out.new)
        rows = [(*_row(r), was.updated_at) for r, was in out.newer]
        changed = {one for (one,) in tx.fetch(Q["records_update"], params, rows=rows)}
        new += [r for r in out.new if r.id in inserted]
        newer += [(r, was) for r, was in out.newer if r.id in changed]
        repeated += out.repeated
        left = {r.id for r in out.new if r.id not in inserted} | {r.id for r, _ in out.newer if r.id not in changed}
        if not left:
            checked = [(one,) for one in sorted([*out.equal, *out.older])]
            tx.execute(Q["records_checked"], {**key, "now": now}, rows=checked)
            return Sorted(new=new, newer=newer, equal=out.equal, older=out.older, repeated=repeated)
        # Another executor was first with some of them: look at those again, and at what the first look settled.
        settled = inserted | changed
        records = [r for r in records if r.id not in settled]
    raise StoreBusy("records_contended", f"others write the same records of {place.source}/{place.endpoint}")


def _inserted(tx: Tx, params: Mapping[str, Any], records: Sequence[Incoming]) -> set[str]:
    """Insert records that were not there; which of them were, is asked only where another executor was first."""
    count = tx.execute(Q["records_insert"], params, rows=[_row(r) for r in records])
    if count == len(records):
        return {r.id for r in records}
    key = {name: params[name] for name in ("source", "endpoint", "run_id", "batch_no")}
    return {row[0] for row in tx.fetch(Q["records_of_batch"], key, rows=[(r.id,) for r in records])}


def _row(r: Incoming) -> tuple[Any, ...]:
    return r.id, r.updated_at, r.version, int(r.deleted), r.content, r.content_hash


def _only(place: Place, *names: str) -> dict[str, Any]:
    return {name: getattr(place, name) for name in names}


def quarantine(tx: Tx, place: Place, found: Sequence[Bad], request: str, now: int) -> list[str]:
    """Keep bad records; gives the ids of those that were not there before, for a signal."""
    rows = [(b.key, b.id, b.code.value, b.path, b.detail, b.sample, b.sample_hash) for b in unique_bad(found)]
    params = {**place.params, "request_digest": request, "now": now}
    kept = tx.fetch(Q["quarantine_add"], params, rows=rows)
    return [provider_id for provider_id, count in kept if provider_id is not None and count == 1]


def resolve(tx: Tx, source: str, endpoint: str, ids: Sequence[str], now: int) -> int:
    """Records that came in well after all leave the quarantine."""
    key = {"source": source, "endpoint": endpoint}
    return tx.execute(Q["quarantine_resolve"], {**key, "now": now}, rows=[(one,) for one in sorted(ids)])


class Before(msgspec.Struct, frozen=True):
    """What a batch finds before it is written: its task's state, whether it is there already, whether the endpoint has
    records in the quarantine.
    """

    status: str
    there: int
    quarantined: int


def before(tx: Tx, place: "Place", key: str) -> Before | None:
    """What a batch finds; None where its task is gone."""
    params = {"task_id": place.task_id, "key": key, "source": place.source, "endpoint": place.endpoint}
    row = tx.fetch_one(Q["batch_before"], params)
    return None if row is None else Before(*row)


def frontier(tx: Tx, whose: Mapping[str, Any], present: int, *, backward: bool) -> Frontier:
    """The watermark with what tasks have finished beyond it: those of its own source, endpoint and operation.

    Two sources whose endpoints have one name and are asked alike have one `namespace_key`.
    """
    far = 2**62
    bounds = {"since": -far, "until": present} if backward else {"since": present, "until": far}
    done = [Span(start, end) for start, end in tx.fetch(Q["windows_done"], {**whose, **bounds})]
    return Frontier(present=present, done=tuple(merged(done)))
