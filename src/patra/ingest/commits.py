"""One step, one transaction: a batch with all its effects, and the end of a run (ch. 9.3, 9.4, 2.6).

Records, outbox, quarantine, batch row, cursor event, cursor, checkpoint and lease stand or fall together. What is
committed twice (an unknown outcome, a run started anew) finds the first batch by its key and changes nothing.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from patra.ingest import operations, running_store, store
from patra.ingest.codes import Operation
from patra.ingest.landing import Landing
from patra.ingest.machines import TASKS, TaskOn, TaskStatus
from patra.ingest.reasons_running import X
from patra.ingest.records import Sorted
from patra.ingest.reslicing import request_reslice
from patra.ingest.running_store import Q, Taken
from patra.ingest.runs import BatchStatus, Checkpoint, Closing, Phase, Stats, encode_checkpoint
from patra.ingest.slicing import Span
from patra.ingest.spec import Spec
from patra.ingest.watermarks import Here, Observed, advance_cursor
from patra.kernel import leases, outbox
from patra.kernel.canonical import sha256_hex
from patra.kernel.clock import DAY, HOUR
from patra.kernel.db import Tx
from patra.kernel.errors import Fenced

CHANNEL = "ingest.record"
"""The outbox channel of changed records; the bus publishes each as `ingest.record.changed`."""
HALTS = "ingest.source"
"""The outbox channel of sources that a fatal error halted; the bus publishes them as `ingest.source.halted`."""


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that is over, as its row says it; `stats_of` completes it once the records are sorted out."""

    no: int
    phase: Phase
    status: BatchStatus
    page_no: int | None = None
    page_size: int | None = None
    offset: int | None = None
    before_token: str | None = None
    after_token: str | None = None
    before_url: str | None = None
    next_url: str | None = None
    before_key: str | None = None
    request: str
    response: str
    body_hash: str | None = None
    body: bytes | None = None
    code: X
    level: str | None = None
    error: str | None = None


class Committed(msgspec.Struct, frozen=True, kw_only=True):
    """What became of it. `repeated`: it stood there already; `cancelled`: an operator cancelled the task meanwhile."""

    sorted: Sorted
    stats: Stats
    cursor: X | None = None
    repeated: bool = False
    cancelled: bool = False


NOTHING = Sorted(new=[], newer=[], equal=[], older=[])


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """Whose batches these are."""

    spec: Spec
    taken: Taken
    ttl: int
    publish: bool = True
    server_clock: bool = False
    """Leases go by the store's clock."""


def land(
    tx: Tx,
    work: Work,
    batch: Batch,
    landing: Landing,
    confirm: Span | None,
    checkpoint: Checkpoint,
    stats: Stats,
    stats_of: Any,
    closing: Closing | None,
    now: int,
    used: Mapping[str, int] | None = None,
    *,
    renew: bool = True,
) -> Committed:
    """Write one batch, and with it the end of the run if it was the last. Raises Fenced where the lease was lost.

    `used`: what its requests have used of quotas. `renew`: it is time to hold on to the lease for longer.
    """
    taken, spec, task = work.taken, work.spec, work.taken.task
    _hold(tx, work, now, renew=renew)
    place = running_store.Place(
        source=spec.provenance_code,
        endpoint=spec.endpoint_code,
        operation=spec.operation.value,
        expr_hash=spec.record_expr_hash,
        plan_id=task.plan_id,
        slice_id=task.slice_id,
        task_id=task.task_id,
        run_id=taken.run_id,
        batch_no=batch.no,
    )
    key = batch_key(taken.run_id, batch.no, batch.before_key)
    found = running_store.before(tx, place, key)
    if found is None or found.status == TaskStatus.CANCELLED:
        return Committed(sorted=NOTHING, stats=stats, cancelled=True)
    if found.there:
        return Committed(sorted=NOTHING, stats=stats, repeated=True)
    if used:
        consume(tx, used, now)
    remap = spec.operation is Operation.UPDATE
    out = running_store.store_records(tx, place, landing.records, now, remap=remap) if landing.records else NOTHING
    if work.publish and (message := message_of(place, out)) is not None:
        outbox.append(tx, CHANNEL, [message], now)
    _set_aside(tx, place, landing, out, batch.request, now, quarantined=bool(found.quarantined))
    _write(tx, work, batch, key, stats_of(out), now)
    if batch.body is not None and batch.body_hash is not None:
        tx.execute(Q["body_keep"], rows=[(batch.body_hash, batch.body, len(batch.body), now)])
    stats = msgspec.structs.replace(stats)  # the transaction may be done again: nothing outside it changes
    moved: X | None = None
    if batch.status is BatchStatus.SUCCEEDED:
        here = Here(spec=spec, task=task, run_id=taken.run_id, batch_no=batch.no, now=now)
        written = [*out.new, *(record for record, _ in out.newer)]
        late = sum(1 for r in written if task.window_from is not None and r.updated_at < task.window_from)
        stats.late_arrivals += late
        seen = Observed(window=confirm, ids=tuple(landing.ids), newest=landing.newest, late=late)
        moved = advance_cursor(tx, here, seen)
    _count(stats, batch, out, landing)
    params = {"run_id": taken.run_id, "checkpoint": encode_checkpoint(checkpoint), "stats": stats.encoded(), "now": now}
    tx.execute(Q["run_progress"], params)
    if closing is not None:
        _end(tx, work, closing, now)
    return Committed(sorted=out, stats=stats, cursor=moved)


def batch_key(run_id: str, batch_no: int, before_key: str | None) -> str:
    """What finds a batch again that is committed twice."""
    return sha256_hex(f"{run_id}|{batch_no}|{before_key or ''}")


def _hold(tx: Tx, work: Work, now: int, *, renew: bool) -> None:
    """See that the lease is held; its row stays locked until this batch is written."""
    lease = work.taken.lease
    if not renew:
        leases.guard(tx, TASKS, [lease])
    elif not leases.renew(tx, TASKS, [lease], now=tx.server_now() if work.server_clock else now, ttl=work.ttl):
        raise Fenced("lease_lost", f"{work.taken.task.task_id} went to another executor")


def close(
    tx: Tx,
    work: Work,
    closing: Closing,
    checkpoint: Checkpoint,
    stats: Stats,
    now: int,
    used: Mapping[str, int] | None = None,
) -> bool:
    """End a run without a batch. False where the task was cancelled or lost meanwhile."""
    taken = work.taken
    leases.guard(tx, TASKS, [taken.lease])
    if used:
        consume(tx, used, now)
    params = {"run_id": taken.run_id, "checkpoint": encode_checkpoint(checkpoint), "stats": stats.encoded(), "now": now}
    tx.execute(Q["run_progress"], params)
    return _end(tx, work, closing, now)


def _end(tx: Tx, work: Work, closing: Closing, now: int) -> bool:
    taken, spec = work.taken, work.spec
    task = taken.task
    error = None
    if closing.level is not None or closing.task in {TaskOn.FAIL, TaskOn.PART}:
        error = f"{closing.code.value}: {_advised(closing)}"
    running_store.end_run(tx, taken.run_id, closing.run, closing.code, now, error)
    also: dict[str, Any] = {} if closing.task is TaskOn.DEFER else {"finished_at": now}
    moved = running_store.move_task(tx, task.task_id, closing.task, closing.code, now, **also)
    if closing.task is TaskOn.DEFER and closing.due is not None:
        tx.execute(Q["task_due"], {"task_id": task.task_id, "due": closing.due})
    if closing.rest is not None:
        request_reslice(tx, task.task_id, closing.rest, closing.total, closing.code.value, now)
    if closing.halt:
        _halt(tx, spec, closing, taken.run_id, now)
    leases.release(tx, TASKS, [taken.lease])
    return moved


def _halt(tx: Tx, spec: Spec, closing: Closing, run_id: str, now: int) -> None:
    """Stop the endpoint until an operator lifts it; the first run that meets the error tells the bus."""
    source, endpoint, code = spec.provenance_code, spec.endpoint_code, closing.code.value
    detail = _advised(closing)
    if operations.halt(tx, source, endpoint, operations.BREAKER, reason=code, detail=detail, by=run_id, now=now):
        said = Halt(
            source=source,
            endpoint=endpoint,
            level=closing.level or "L4",
            code=code,
            detail=closing.detail or closing.code.text,
            advice=closing.advice,
            run_id=run_id,
        )
        message = outbox.Message(group=source, key=f"{source}/{endpoint}@{now}.{run_id}", payload=_encode(said))
        outbox.append(tx, HALTS, [message], now)


def _advised(closing: Closing) -> str:
    """What is wrong and what to do, each once: a verdict may have said both already."""
    detail = closing.detail or closing.code.text
    return f"{detail} ({closing.advice})" if closing.advice and closing.advice not in detail else detail


def consume(tx: Tx, used: Mapping[str, int], now: int) -> None:
    """What requests have used of quotas, by rate key."""
    rows = [
        (key, code, now // length * length, count, now)
        for key, count in sorted(used.items())
        for code, length in (("DAY", DAY), ("HOUR", HOUR))
        if count
    ]
    tx.execute(Q["quota_consume"], rows=rows)


class Change(msgspec.Struct, frozen=True, array_like=True):
    """A record that was written: which version of it; its content stays here."""

    provider_id: str
    updated_at: int
    version: str | None
    deleted: bool
    action: Literal["insert", "update"]
    content_hash: str


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch has changed, as one message: rows of the outbox would cost as much as the records themselves."""

    source: str
    endpoint: str
    expr_hash: str
    run_id: str
    batch_no: int
    records: list[Change]


class Halt(msgspec.Struct, frozen=True, kw_only=True):
    """An endpoint that a fatal error halted, which run met it, and what to do."""

    source: str
    endpoint: str
    level: str
    code: str
    detail: str
    advice: str
    run_id: str


_encode = msgspec.json.Encoder().encode


def message_of(place: running_store.Place, out: Sorted) -> outbox.Message | None:
    """What the bus is to hear of a batch; nothing where it changed nothing. Batches of an endpoint leave in order."""
    new = [Change(r.id, r.updated_at, r.version, r.deleted, "insert", r.content_hash) for r in out.new]
    newer = [Change(r.id, r.updated_at, r.version, r.deleted, "update", r.content_hash) for r, _ in out.newer]
    if not new and not newer:
        return None
    changes = Changes(
        source=place.source,
        endpoint=place.endpoint,
        expr_hash=place.expr_hash,
        run_id=place.run_id,
        batch_no=place.batch_no,
        records=new + newer,
    )
    return outbox.Message(
        group=f"{place.source}/{place.endpoint}", key=f"{place.run_id}.b{place.batch_no}", payload=_encode(changes)
    )


def _set_aside(
    tx: Tx, place: running_store.Place, landing: Landing, out: Sorted, request: str, now: int, *, quarantined: bool
) -> None:
    if landing.bad:
        fresh = running_store.quarantine(tx, place, landing.bad, request, now)
        store.raise_signals(
            tx,
            place.source,
            place.endpoint,
            fresh,
            reason="i_quarantined",
            detail=place.run_id,
            by=f"{place.run_id}/{place.batch_no}",
            now=now,
        )
    good = [r.id for r in out.new] + [r.id for r, _ in out.newer] + out.equal
    if good and (quarantined or landing.bad):
        running_store.resolve(tx, place.source, place.endpoint, good, now)


def _write(tx: Tx, work: Work, batch: Batch, key: str, stats: str, now: int) -> None:
    task = work.taken.task
    tx.insert(
        "ing_task_run_batch",
        [
            {
                "batch_id": f"{work.taken.run_id}.b{batch.no}",
                "run_id": work.taken.run_id,
                "task_id": task.task_id,
                "slice_id": task.slice_id,
                "plan_id": task.plan_id,
                "expr_hash": task.expr_hash,
                "batch_no": batch.no,
                "phase_code": batch.phase.value,
                "status_code": batch.status.value,
                "page_no": batch.page_no,
                "page_size": batch.page_size,
                "page_offset": batch.offset,
                "before_token": batch.before_token,
                "after_token": batch.after_token,
                "before_url": batch.before_url,
                "next_url": batch.next_url,
                "before_key": batch.before_key,
                "window_from": task.window_from,
                "window_to": task.window_to,
                "request_digest": batch.request,
                "response_digest": batch.response,
                "stats": stats,
                "body_hash": batch.body_hash,
                "idempotent_key": key,
                "error_level": batch.level,
                "reason_code": batch.code.value,
                "error": batch.error,
                "created_at": now,
            }
        ],
    )


def _count(stats: Stats, batch: Batch, out: Sorted, landing: Landing) -> None:
    stats.batches += 1
    stats.pages_visited += batch.phase is Phase.LIST and batch.status is BatchStatus.SUCCEEDED
    stats.ret_count += len(landing.ids)
    stats.inserted += len(out.new)
    stats.updated += len(out.newer)
    stats.skipped += len(out.equal) + len(out.older) + out.repeated + landing.outside
    stats.failed += len(landing.bad)
