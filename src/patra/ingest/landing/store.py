"""What executors read and write, statement by statement; decisions are made elsewhere."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from patra.ingest.landing.records import Bad, Incoming, Sorted, Stored, sort_out, unique_bad
from patra.ingest.landing.run_state import (
    RUN,
    Checkpoint,
    RunStatus,
    RunTransition,
    decode_checkpoint,
    encode_checkpoint,
)
from patra.ingest.landing.watermark import Frontier, merge_spans
from patra.ingest.planning import store
from patra.ingest.planning.slicing.windows import Span
from patra.ingest.planning.states import TASK, TASKS, TaskStatus, TaskTransition
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel import leases
from patra.kernel.db import Tx
from patra.kernel.errors import StoreBusy
from patra.kernel.leases import Lease
from patra.kernel.machine import advance, journal

Q = store.Q
FIRST_WINDOWS_READ = 16
WINDOWS_READ = 1000
RUNS_ENDED_AT_ONCE = 500

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


class LeasedTask(msgspec.Struct, frozen=True, kw_only=True):
    """A leased task: its lease, its run, and where the last run stopped."""

    task: TaskRow
    lease: Lease
    run_id: str
    attempt_no: int
    checkpoint: Checkpoint | None


def waiting(tx: Tx, now: int) -> bool:
    """Whether there may be something to take: a read, before asking for the writer's lock."""
    row = tx.fetch_one(Q["work_waits"], {"now": now})
    return row is not None and bool(row[0])


def free_expired(tx: Tx, now: int) -> int:
    """Put tasks whose executor was not heard of back into the queue; their runs end as PARTIAL.

    Runs of cancelled tasks end as CANCELLED: their executor does it, unless it is dead.
    """
    _end_cancelled_runs(tx, now)
    expired = leases.expire(tx, TASKS, now=now)
    if not expired:
        return 0
    states = dict(tx.fetch(Q["task_states"], rows=[(task_id,) for task_id in expired]))
    moves = [
        TASK.move(task_id, status, TaskTransition.EXPIRE, reason=RunReason.LEASE_EXPIRED, at=now)
        for task_id, status in states.items()
        if TASK.allows(status, TaskTransition.EXPIRE)
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
        raise ValueError(f"{partition!r} is not a partition")
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
) -> LeasedTask | None:
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
        TASK.move(task.task_id, TaskStatus.QUEUED, TaskTransition.LEASE, reason=RunReason.LEASED, at=now),
        TASK.move(task.task_id, TaskStatus.DISPATCHED, TaskTransition.START, reason=RunReason.STARTED, at=now),
    ]
    _move_tasks(tx, moves, now, started_at=now, reason_code=RunReason.STARTED.value)
    _end_runs(tx, [task.task_id], now)
    last = tx.fetch_one(Q["last_run"], {"task_id": task.task_id})
    attempt = last[1] + 1 if last else 1
    checkpoint = decode_checkpoint(last[2]) if last and last[2] else None
    run_id = run_id_of(task.task_id, attempt)
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
    journal(tx, [RUN.move(run_id, RunStatus.PLANNED, RunTransition.START, reason=RunReason.STARTED, at=now)])
    return LeasedTask(task=task, lease=lease, run_id=run_id, attempt_no=attempt, checkpoint=checkpoint)


def run_id_of(task_id: str, attempt: int) -> str:
    return f"{task_id}.r{attempt}"


def attempt_of(run_id: str) -> int:
    """Which attempt at its task a run is."""
    return int(run_id.rpartition(".r")[2])


def _end_runs(tx: Tx, tasks: Sequence[str], now: int) -> None:
    """Runs that a dead executor left open."""
    moves = [
        RUN.move(run_id, RunStatus.RUNNING, RunTransition.PART, reason=RunReason.LEASE_EXPIRED, at=now)
        for (run_id,) in tx.fetch(Q["runs_open"], rows=[(task_id,) for task_id in tasks])
    ]
    also = {"finished_at": now, "updated_at": now, "reason_code": RunReason.LEASE_EXPIRED.value}
    advance(tx, RUN, table="ing_task_run", key="run_id", column="status_code", moves=moves, also=also)


def _end_cancelled_runs(tx: Tx, now: int) -> None:
    moves = [
        RUN.move(run_id, RunStatus.RUNNING, RunTransition.CANCEL, reason=RunReason.CANCELLED, at=now)
        for (run_id,) in tx.fetch(Q["runs_cancelled"], {"limit": RUNS_ENDED_AT_ONCE})
    ]
    also = {"finished_at": now, "updated_at": now, "reason_code": RunReason.CANCELLED.value}
    advance(tx, RUN, table="ing_task_run", key="run_id", column="status_code", moves=moves, also=also)


def _move_tasks(tx: Tx, moves: Sequence[Any], now: int, **also: Any) -> set[str]:
    return advance(
        tx, TASK, table="ing_task", key="task_id", column="status_code", moves=moves, also={"updated_at": now, **also}
    )


def move_task(tx: Tx, task_id: str, on: TaskTransition, reason: RunReason, now: int, **also: Any) -> bool:
    """Move a task that this executor works on."""
    moves = [TASK.move(task_id, TaskStatus.EXECUTING, on, reason=reason, at=now)]
    moved = _move_tasks(tx, moves, now, reason_code=reason.value, **also)
    if moved and on is TaskTransition.FAIL:
        store.release_signals(tx, [task_id])
    return bool(moved)


def end_run(tx: Tx, run_id: str, on: RunTransition, reason: RunReason, now: int, error: str | None) -> None:
    moves = [RUN.move(run_id, RunStatus.RUNNING, on, reason=reason, at=now)]
    also = {"finished_at": now, "updated_at": now, "reason_code": reason.value, "error": error}
    advance(tx, RUN, table="ing_task_run", key="run_id", column="status_code", moves=moves, also=also)


def end_cancelled_run(tx: Tx, task_id: str, run_id: str, now: int) -> bool:
    """End a run whose task was cancelled meanwhile: it holds no lease any more, and nobody takes the task again."""
    states = dict(tx.fetch(Q["task_states"], rows=[(task_id,)]))
    if states.get(task_id) != TaskStatus.CANCELLED or (run_id,) not in tx.fetch(Q["runs_open"], rows=[(task_id,)]):
        return False
    end_run(tx, run_id, RunTransition.CANCEL, RunReason.CANCELLED, now, None)
    return True


class RecordOrigin(msgspec.Struct, frozen=True, kw_only=True):
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


def store_records(
    tx: Tx, place: RecordOrigin, records: Sequence[Incoming], now: int, *, remap: bool, by_content: bool = False
) -> Sorted:
    """Store what is new and newer by the rule of 11.1, on rows that are locked while it is decided."""
    key = {"source": place.source, "endpoint": place.endpoint}
    params = {**_only(place, "expr_hash", "task_id", "run_id", "batch_no"), **key, "now": now}
    new: list[Incoming] = []
    newer: list[tuple[Incoming, Stored]] = []
    repeated = same_time = 0
    for _ in range(3):
        seen = tx.fetch(Q["records_seen"], key, rows=[(one,) for one in sorted({r.id for r in records})])
        known = {one[0]: Stored(*one[1:]) for one in seen}
        out = sort_out(records, known, place.expr_hash, remap=remap, by_content=by_content)
        inserted = _insert_new(tx, params, out.new)
        rows = [(*_row(r), was.updated_at) for r, was in out.newer]
        changed = {one for (one,) in tx.fetch(Q["records_update"], params, rows=rows)}
        new += [r for r in out.new if r.id in inserted]
        newer += [(r, was) for r, was in out.newer if r.id in changed]
        repeated += out.repeated
        same_time += out.same_time
        left = {r.id for r in out.new if r.id not in inserted} | {r.id for r, _ in out.newer if r.id not in changed}
        if not left:
            checked = [(one,) for one in sorted([*out.equal, *out.older])]
            tx.execute(Q["records_checked"], {**key, "now": now}, rows=checked)
            return msgspec.structs.replace(out, new=new, newer=newer, repeated=repeated, same_time=same_time)
        # Another executor was first with some of them: look at those again, and at what the first look settled.
        settled = inserted | changed
        records = [r for r in records if r.id not in settled]
    raise StoreBusy("records_contended", f"others write the same records of {place.source}/{place.endpoint}")


def _insert_new(tx: Tx, params: Mapping[str, Any], records: Sequence[Incoming]) -> set[str]:
    """Insert records that were not there; which of them were, is asked only where another executor was first."""
    count = tx.execute(Q["records_insert"], params, rows=[_row(r) for r in records])
    if count == len(records):
        return {r.id for r in records}
    key = {name: params[name] for name in ("source", "endpoint", "run_id", "batch_no")}
    return {row[0] for row in tx.fetch(Q["records_of_batch"], key, rows=[(r.id,) for r in records])}


def _row(r: Incoming) -> tuple[Any, ...]:
    return r.id, r.updated_at, r.version, int(r.deleted), r.content, r.content_hash


def _only(place: RecordOrigin, *names: str) -> dict[str, Any]:
    return {name: getattr(place, name) for name in names}


def quarantine(
    tx: Tx, place: RecordOrigin, found: Sequence[Bad], request: str, now: int, *, since: int
) -> tuple[list[str], int]:
    """Keep bad records; gives the ids of those that were not there before, for a signal, and how many the task had not
    set aside since its attempt `since`, in which its ledger began: a page that is read again brings the same ones.
    """
    rows = [(b.key, b.id, b.code.value, b.path, b.detail, b.sample, b.sample_hash) for b in unique_bad(found)]
    own = {"source": place.source, "endpoint": place.endpoint, "task_id": place.task_id}
    runs = tx.fetch(Q["quarantine_of_task"], own, rows=[(row[0],) for row in rows])
    known = sum(attempt_of(run_id) >= since for (run_id,) in runs)
    params = {**place.params, "request_digest": request, "now": now}
    kept = tx.fetch(Q["quarantine_add"], params, rows=rows)
    fresh = [provider_id for provider_id, count in kept if provider_id is not None and count == 1]
    return fresh, len(rows) - known


def resolve(tx: Tx, source: str, endpoint: str, ids: Sequence[str], now: int) -> int:
    """Records that came in well after all leave the quarantine."""
    key = {"source": source, "endpoint": endpoint}
    return tx.execute(Q["quarantine_resolve"], {**key, "now": now}, rows=[(one,) for one in sorted(ids)])


class Before(msgspec.Struct, frozen=True):
    """What a batch finds before it is written: whether it is there already, whether the endpoint has records in the
    quarantine.
    """

    there: int
    quarantined: int
    topics: int
    """Whether the records of its search are noted under a topic."""


def before(tx: Tx, place: "RecordOrigin", key: str, selection: str = "") -> Before:
    """What a batch finds; the lease of its task is held."""
    params = {"key": key, "source": place.source, "endpoint": place.endpoint, "selection": selection}
    row = tx.fetch_one(Q["batch_before"], params)
    return Before(*row) if row is not None else Before(0, 0, 0)


def done_within(tx: Tx, whose: Mapping[str, Any], window: Span) -> list[Span]:
    """What tasks of a source, endpoint and operation have finished of a window, joined."""
    row = tx.fetch_one(Q["widest_window"], {"namespace": whose["namespace"]})
    bounds = {"low": window.start - (row[0] if row else 0), "since": window.start, "until": window.end}
    return merge_spans([Span(start, end) for start, end in tx.fetch(Q["windows_done_within"], {**whose, **bounds})])


def frontier(tx: Tx, whose: Mapping[str, Any], present: int, window: Span, *, backward: bool = False) -> Frontier:
    """The watermark with what tasks have finished beyond it, up to the first hole: those of its own source, endpoint
    and operation. Behind a hole a few rows are read, however many windows are done there.

    Two sources whose endpoints have one name and are asked alike have one `namespace_key`.
    """
    sign, name = (-1, "windows_done_backward") if backward else (1, "windows_done")
    row = tx.fetch_one(Q["widest_window"], {"namespace": whose["namespace"]})
    widest = row[0] if row else 0
    reach = present
    low = present - sign * (widest + 1)
    done: list[Span] = []
    limit = FIRST_WINDOWS_READ
    while True:
        reach = _reach_with(reach, window, sign)
        asked = {**whose, "low": low, "present": present, "limit": limit}
        found = [Span(start, end) for start, end in tx.fetch(Q[name], asked)]
        for span in found:
            if sign * (span.end if backward else span.start) > sign * reach:
                return Frontier(present=present, done=tuple(merge_spans(done)))
            done.append(span)
            reach = _reach_with(_reach_with(reach, span, sign), window, sign)
        if len(found) < limit:
            return Frontier(present=present, done=tuple(merge_spans(done)))
        low = found[-1].end if backward else found[-1].start  # of those that begin together the widest came first
        limit = WINDOWS_READ


def _reach_with(reach: int, span: Span, sign: int) -> int:
    """How far it is done if this span is."""
    near, far = (span.start, span.end) if sign > 0 else (span.end, span.start)
    return far if sign * near <= sign * reach < sign * far else reach
