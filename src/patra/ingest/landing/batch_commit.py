"""One step, one transaction: a batch with all its effects, and the end of a run (ch. 9.3, 9.4, 2.6).

Records, outbox, quarantine, batch row, cursor event, cursor, checkpoint and lease stand or fall together. What is
committed twice (an unknown outcome, a run started again) finds the first batch by its key and changes nothing.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from patra.ingest.extraction.completeness import Ledger, Outcomes, with_outcomes
from patra.ingest.landing import list_keys, size_report, window_ledger
from patra.ingest.landing import store as landing_store
from patra.ingest.landing.change_messages import CHANNEL, HALTS, Halt, halt_message, message_of
from patra.ingest.landing.cursor_store import Here, Observed, advance_cursor
from patra.ingest.landing.identifiers import note_identifiers
from patra.ingest.landing.page_records import Landing, with_lost
from patra.ingest.landing.records import Sorted
from patra.ingest.landing.run_state import BatchStatus, Checkpoint, Closing, Phase, Stats, encode_checkpoint
from patra.ingest.landing.store import LeasedTask, Q
from patra.ingest.landing.topics import note_topics
from patra.ingest.packs.spec import Spec
from patra.ingest.planning import operations, store
from patra.ingest.planning.reslice import request_reslice
from patra.ingest.planning.slicing.windows import Span
from patra.ingest.planning.states import TASKS, TaskTransition
from patra.ingest.vocabulary.codes import Dimension, OnEqual, Operation
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel import leases, outbox
from patra.kernel.canonical import sha256_hex
from patra.kernel.clock import DAY, HOUR
from patra.kernel.db import Tx
from patra.kernel.errors import Fenced


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
    list_page: int | None = None
    """Which page of a list this is that goes on behind it: what it brought is known to the runs that follow."""
    request: str
    response: str
    body_hash: str | None = None
    body: bytes | None = None
    code: RunReason
    level: str | None = None
    error: str | None = None


class Committed(msgspec.Struct, frozen=True, kw_only=True):
    """What became of it. `repeated`: it stood there already."""

    sorted: Sorted
    stats: Stats
    ledger: Ledger | None = None
    cursor: RunReason | None = None
    quarantined: int = 0
    """Records that the task had not set aside since it counts."""
    repeated: bool = False


NO_RECORDS = Sorted(new=[], newer=[], equal=[], older=[])


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """Whose batches these are."""

    spec: Spec
    taken: LeasedTask
    ttl: int
    publish: bool = True
    server_clock: bool = False
    """Leases go by the store's clock."""


class BatchCommit(msgspec.Struct, frozen=True, kw_only=True):
    """One batch with all that is committed with it."""

    work: Work
    batch: Batch
    landing: Landing
    confirm: Span | None
    """The part of the window that is complete with this batch."""
    checkpoint: Checkpoint
    stats: Stats
    stats_of: Callable[[Sorted], str]
    """The row's `stats`, once it is known what became of the records."""
    closing: Closing | None
    """The end of the run, if this is its last batch."""
    now: int
    used: Mapping[str, int] = {}
    """What its requests have used of quotas, by rate key."""
    renew: bool = True
    """It is time to hold on to the lease for longer."""


class RunEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a run without a batch."""

    work: Work
    closing: Closing
    checkpoint: Checkpoint
    stats: Stats
    now: int
    used: Mapping[str, int] = {}


def land(tx: Tx, commit: BatchCommit) -> Committed:
    """Write one batch, and with it the end of the run if it was the last. Raises Fenced where the lease was lost."""
    work, batch, landing, now = commit.work, commit.batch, commit.landing, commit.now
    taken, spec, task = work.taken, work.spec, work.taken.task
    _hold(tx, work, now, renew=commit.renew)
    place = landing_store.RecordOrigin(
        source=spec.provenance_code,
        endpoint=spec.kept_under,
        operation=spec.operation.value,
        expr_hash=spec.record_expr_hash,
        plan_id=task.plan_id,
        slice_id=task.slice_id,
        task_id=task.task_id,
        run_id=taken.run_id,
        batch_no=batch.no,
    )
    key = batch_key(taken.run_id, batch.no, batch.before_key)
    found = landing_store.before(tx, place, key, spec.selection_key)
    if found.there:
        return Committed(sorted=NO_RECORDS, stats=commit.stats, repeated=True)
    if commit.used:
        consume(tx, commit.used, now)
    remap = spec.operation is Operation.UPDATE
    by_content = spec.yields.response.on_equal is OnEqual.CONTENT
    out = NO_RECORDS
    if landing.records:
        out = landing_store.store_records(tx, place, landing.records, now, remap=remap, by_content=by_content)
    if out.absent and not remap:  # a list named them: what never came is not deleted (I10)
        landing, out = with_lost(landing, out.absent), replace(out, absent=[])
    note_identifiers(tx, place, out)
    if found.topics and not remap:  # an UPDATE reads known records again, whichever search found them
        note_topics(tx, place, spec.selection_key, out, landing.bad)
    if work.publish and (message := message_of(place, out)) is not None:
        outbox.append(tx, CHANNEL, [message], now)
    since = commit.checkpoint.counted_since
    set_aside = _set_aside(
        tx, place, landing, out, batch.request, now, quarantined=bool(found.quarantined), since=since
    )
    _write(tx, work, batch, key, commit.stats_of(out), now)
    if batch.body is not None and batch.body_hash is not None:
        tx.execute(Q["body_keep"], rows=[(batch.body_hash, batch.body, len(batch.body), now)])
    stats = replace(commit.stats)  # the transaction may be done again: nothing outside it changes
    moved: RunReason | None = None
    if batch.status is BatchStatus.SUCCEEDED:
        here = Here(spec=spec, task=task, run_id=taken.run_id, batch_no=batch.no, now=now)
        written = [*out.new, *(record for record, _ in out.newer)]
        late = sum(1 for r in written if r.updated_at and r.updated_at < (task.window_from or 0))  # 0: unknown
        stats.late_arrivals += late
        done = commit.closing is not None and commit.closing.task is TaskTransition.SUCCEED
        seen = Observed(
            window=_confirmed_span(tx, commit),
            ids=tuple(map(str, landing.growing)) if spec.by_key else tuple(landing.ids),
            newest=landing.newest,
            late=late,
            highest=commit.checkpoint.highest if done else None,
        )
        moved = advance_cursor(tx, here, seen)
    _count(stats, batch, out, landing, set_aside)
    ledger = with_outcomes(
        commit.checkpoint.ledger, _outcomes(out, landing, set_aside), detail=batch.phase is Phase.DETAIL
    )
    checkpoint = replace(commit.checkpoint, ledger=ledger)
    if batch.list_page is not None:
        list_keys.keep(tx, task.task_id, batch.list_page, landing.keys, landing.nameless)
    size_report.report(tx, spec, task, ledger.listing, commit.closing, first=batch.no == 1, now=now)
    params = {"run_id": taken.run_id, "checkpoint": encode_checkpoint(checkpoint), "stats": stats.to_json(), "now": now}
    tx.execute(Q["run_progress"], params)
    if commit.closing is not None:
        _end(tx, work, commit.closing, checkpoint, now)
    return Committed(sorted=out, stats=stats, ledger=ledger, cursor=moved, quarantined=set_aside)


def _confirmed_span(tx: Tx, commit: BatchCommit) -> Span | None:
    """The window that is complete with this batch; that of a list by pages with the last of its slices."""
    closing, task = commit.closing, commit.work.taken.task
    if commit.confirm is not None or closing is None or closing.task is not TaskTransition.SUCCEED:
        return commit.confirm
    return store.pages_done(tx, task.plan_id, task.task_id) if _by_pages(commit.work.spec) else None


def _by_pages(spec: Spec) -> bool:
    """No slice of a list by pages confirms a part of time; all of them together confirm the plan's window."""
    return spec.operation is Operation.HARVEST and spec.dimension is Dimension.PAGE


def _outcomes(out: Sorted, landing: Landing, quarantined: int) -> Outcomes:
    return Outcomes(
        inserted=len(out.new),
        updated=len(out.newer),
        equal=len(out.equal),
        older=len(out.older),
        repeated=out.repeated,
        outside=landing.outside,
        quarantined=quarantined,
        gone=len(out.absent),
    )


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


def close(tx: Tx, end: RunEnd) -> bool:
    """End a run without a batch. False where the task was cancelled or lost meanwhile."""
    taken, now = end.work.taken, end.now
    leases.guard(tx, TASKS, [taken.lease])
    if end.used:
        consume(tx, end.used, now)
    checkpoint, stats = encode_checkpoint(end.checkpoint), end.stats.to_json()
    tx.execute(Q["run_progress"], {"run_id": taken.run_id, "checkpoint": checkpoint, "stats": stats, "now": now})
    return _end(tx, end.work, end.closing, end.checkpoint, now)


def _end(tx: Tx, work: Work, closing: Closing, checkpoint: Checkpoint, now: int) -> bool:
    taken, spec = work.taken, work.spec
    task = taken.task
    error = None
    if closing.level is not None or closing.task in {TaskTransition.FAIL, TaskTransition.PART}:
        error = f"{closing.code.value}: {_closing_words(closing)}"
    landing_store.end_run(tx, taken.run_id, closing.run, closing.code, now, error)
    also: dict[str, Any] = {} if closing.task is TaskTransition.DEFER else {"finished_at": now}
    moved = landing_store.move_task(tx, task.task_id, closing.task, closing.code, now, **also)
    if closing.task is TaskTransition.DEFER and closing.due is not None:
        tx.execute(Q["task_due"], {"task_id": task.task_id, "due": closing.due})
    if closing.task is not TaskTransition.DEFER:
        window_ledger.write(tx, spec, task, taken.run_id, closing, checkpoint.ledger, now)
        if closing.task is not TaskTransition.FAIL or not checkpoint.place.index:  # else it may go on when requeued
            list_keys.forget(tx, task.task_id)
    if closing.rest is not None:
        request_reslice(tx, task.task_id, closing.rest, closing.total, closing.code.value, now)
    if closing.halt:
        _halt(tx, spec, closing, taken.run_id, now)
    leases.release(tx, TASKS, [taken.lease])
    return moved


def _halt(tx: Tx, spec: Spec, closing: Closing, run_id: str, now: int) -> None:
    """Stop the endpoint until an operator lifts it; the first run that meets the error publishes it."""
    source, endpoint, code = spec.provenance_code, spec.endpoint_code, closing.code.value
    detail = _closing_words(closing)
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
        outbox.append(tx, HALTS, [halt_message(said, now)], now)


def _closing_words(closing: Closing) -> str:
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


def _set_aside(
    tx: Tx,
    place: landing_store.RecordOrigin,
    landing: Landing,
    out: Sorted,
    request: str,
    now: int,
    *,
    quarantined: bool,
    since: int,
) -> int:
    """Keep bad records, let go those that came in well; gives how many the task had not set aside since it counts."""
    count = 0
    if landing.bad:
        fresh, count = landing_store.quarantine(tx, place, landing.bad, request, now, since=since)
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
        landing_store.resolve(tx, place.source, place.endpoint, good, now)
    return count


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
                "provenance_code": task.provenance_code,
                "endpoint_name": task.endpoint_name,
                "operation_code": task.operation_code,
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


def _count(stats: Stats, batch: Batch, out: Sorted, landing: Landing, quarantined: int) -> None:
    stats.batches += 1
    stats.pages_visited += batch.phase is Phase.LIST and batch.status is BatchStatus.SUCCEEDED
    stats.ret_count += len(landing.ids)
    stats.inserted += len(out.new)
    stats.updated += len(out.newer)
    stats.updated_same_time += out.same_time
    stats.skipped += len(out.equal) + len(out.older) + len(out.absent) + out.repeated + landing.outside
    stats.failed += quarantined
    if batch.level is not None:
        stats.add_error(batch.code.value, batch.level, batch.no, batch.error or "")
    for code in sorted({bad.code for bad in landing.bad}):
        alike = [bad for bad in landing.bad if bad.code is code]
        stats.add_error(code.value, "L3", batch.no, alike[-1].detail, len(alike))
