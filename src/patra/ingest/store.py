"""What the planner reads and writes, statement by statement; decisions are made elsewhere (STYLE: SQL)."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from patra.ingest.codes import Operation
from patra.ingest.pack import Schedule
from patra.ingest.reasons import R
from patra.ingest.schedule import Scheduled
from patra.ingest.slicing import Span
from patra.ingest.spec import Spec
from patra.kernel.clock import DAY, HOUR
from patra.kernel.db import Database, Queries, Tx
from patra.kernel.errors import Invalid

Q = Queries.load("patra.ingest")
NOBODY = ""  # no plan has this id
MOST_REPORTS = 5000


class Halt(msgspec.Struct, frozen=True, kw_only=True):
    """A source or endpoint that stands still; an empty endpoint means all of the source."""

    source: str
    endpoint: str
    kind: str
    reason: str
    detail: str
    by: str
    at: int


class Instance(msgspec.Struct, frozen=True):
    """A trigger that was seen before."""

    schedule_instance_id: str
    outcome: str
    remarks: str
    plan_id: str | None


class PlanRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `ing_plan`."""

    plan_id: str
    schedule_instance_id: str
    provenance_code: str
    endpoint_name: str
    operation_code: str
    plan_strategy: str
    window_from: int | None
    window_to: int | None
    namespace_scope_code: str
    namespace_key: str
    priority: int
    expr_proto_hash: str
    expr_proto_snapshot: str
    spec_fingerprint: str
    status_code: str
    next_slice_no: int
    progress: str
    total_estimated: int | None
    expected_requests: int
    record_remarks: str
    created_at: int
    updated_at: int


def take_turns(tx: Tx, name: str) -> None:
    """Until the transaction ends, whoever plans the same waits; what it then reads is what the first has written."""
    tx.fetch(Q["take_turns"], {"name": name})


def fresh_statistics(tx: Tx) -> None:
    """Let PostgreSQL know at once what a large plan has added: until it does, taking a task reads the whole table."""
    if tx.dialect == "postgres":
        tx.script("ANALYZE ing_task")


def watermark(tx: Tx, spec: Spec) -> int | None:
    """The forward watermark of what the snapshot selects, whatever the operation."""
    cursor = spec.cursor
    scope, namespace, key = cursor.scope.value, cursor.namespace_key, cursor.key
    if spec.operation is not Operation.HARVEST:
        scope, namespace = "EXPR", spec.selection_key.partition("/")[2]
        key = spec.window.watermark_key
    row = tx.fetch_one(
        Q["watermark"], {"source": spec.provenance_code, "key": key, "scope": scope, "namespace": namespace}
    )
    return row[0] if row else None


def covered(tx: Tx, spec: Spec, namespace: str, span: Span, *, except_plan: str = NOBODY) -> list[Span]:
    """Parts of a window that tasks have done or will do, and those that plans still have to cut."""
    params: dict[str, Any] = {
        **_place(spec, namespace),
        "except_plan": except_plan,
        "since": span.start,
        "until": span.end,
    }
    backward = spec.operation is Operation.BACKFILL
    found = [
        rest_of(Span(start, end), progress, backward=backward)
        for start, end, progress in tx.fetch(Q["covered"], params)
    ]
    return [taken for taken in found if taken.width > 0]


def rest_of(span: Span, progress: str, *, backward: bool) -> Span:
    """What of a plan's window is not cut yet: forward what comes after `progress`, backward what comes before it."""
    if not progress:
        return span
    return Span(span.start, int(progress)) if backward else Span(int(progress), span.end)


def generation(tx: Tx, spec: Spec, namespace: str) -> int:
    """How many plans there were in a namespace."""
    row = tx.fetch_one(Q["generation"], _place(spec, namespace))
    return row[0] if row else 0


def under_way(tx: Tx, spec: Spec, namespace: str) -> bool:
    """Whether a plan of a namespace is being cut or has tasks that are not done."""
    return bool(tx.fetch(Q["under_way"], _place(spec, namespace)))


def _place(spec: Spec, namespace: str) -> dict[str, str]:
    return {
        "source": spec.provenance_code,
        "endpoint": spec.endpoint_code,
        "operation": spec.operation.value,
        "namespace": namespace,
    }


def queued(tx: Tx, partition: str, limit: int) -> int:
    """How many tasks of a partition wait, counted up to a limit."""
    row = tx.fetch_one(Q["queued"], {"partition": partition, "limit": limit})
    return row[0] if row else 0


def halts(tx: Tx, source: str | None = None, endpoint: str = "") -> list[Halt]:
    """What stands still: everything, or what concerns one endpoint."""
    rows = tx.fetch(Q["halts"]) if source is None else tx.fetch(Q["halts_of"], {"source": source, "endpoint": endpoint})
    return [
        Halt(source=s, endpoint=e, kind=kind, reason=reason, detail=detail, by=by, at=at)
        for s, e, kind, reason, detail, by, at in rows
    ]


def reports(tx: Tx, selection: str, span: Span) -> list[tuple[Span, int]]:
    """Totals that windows turned out to have, from the oldest report to the newest."""
    params: dict[str, Any] = {"selection": selection, "since": span.start, "until": span.end, "limit": MOST_REPORTS}
    rows = tx.fetch(Q["window_stats"], params)
    if not rows:
        rows = tx.fetch(Q["window_stats_any"], {"selection": selection, "limit": 200})
    return [(Span(start, end), total) for start, end, total in reversed(rows)]


def report_total(tx: Tx, selection: str, span: Span, total: int, now: int) -> None:
    """An executor has learnt how many records a window holds (ch. 4.16)."""
    tx.execute(Q["report_total"], rows=[(selection, span.start, span.end, total, now)])


def quota_taken(tx: Tx, rate_key: str, since: int) -> dict[tuple[str, int], int]:
    """How much of each period is used: what was reserved, or what was consumed where that is more."""
    rows = tx.fetch(Q["quota_taken"], {"rate_key": rate_key, "since": since})
    return {(code, start): max(reserved, consumed) for code, start, reserved, consumed in rows}


def quota_spent(tx: Tx, rate_key: str, now: int) -> tuple[int, int]:
    """What runs have used of a quota in this hour and on this day."""
    rows = tx.fetch(Q["quota_taken"], {"rate_key": rate_key, "since": now - DAY})
    used = {(code, start): consumed for code, start, _, consumed in rows}
    return used.get(("HOUR", now // HOUR * HOUR), 0), used.get(("DAY", now // DAY * DAY), 0)


class RateMemory:
    """What gates of processes without Redis leave behind for the next, in the store."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def spent(self, key: str, now: int) -> tuple[int, int]:
        return self._db.read(lambda tx: quota_spent(tx, key, now))

    def cooldown(self, key: str) -> int:
        row = self._db.read(lambda tx: tx.fetch_one(Q["cooldown_of"], {"rate_key": key}))
        return row[0] if row else 0

    def cool(self, key: str, until: int, now: int) -> None:
        self._db.run(lambda tx: tx.execute(Q["cooldown_keep"], rows=[(key, until, now)]))


def reserve(tx: Tx, rate_key: str, added: Mapping[tuple[str, int], int], now: int) -> None:
    rows = [(rate_key, code, start, requests, now) for (code, start), requests in sorted(added.items())]
    tx.execute(Q["quota_reserve"], rows=rows)


def instance_of_tick(tx: Tx, scheduler: str, job: str, log: str) -> Instance | None:
    row = tx.fetch_one(Q["instance_of_tick"], {"scheduler": scheduler, "job": job, "log": log})
    return Instance(*row) if row else None


def instance_of_key(tx: Tx, key: str) -> Instance | None:
    row = tx.fetch_one(Q["instance_of_key"], {"key": key})
    return Instance(*row) if row else None


def write_instance(tx: Tx, row: Mapping[str, Any]) -> None:
    """Write a schedule instance; one that was refused before is written over by its next attempt."""
    stmt = Q["write_instance"]
    tx.execute(stmt, rows=[tuple(row[column.name] for column in stmt.rows)])


def plan_row(tx: Tx, plan_id: str) -> PlanRow | None:
    found = tx.fetch_dicts(Q["plan"], {"plan_id": plan_id})
    return PlanRow(**found[0]) if found else None


def open_plans(tx: Tx, limit: int) -> list[tuple[str, str]]:
    """Plans that are not wholly cut, and their state; the most urgent first."""
    return [(plan_id, status) for plan_id, status in tx.fetch(Q["open_plans"], {"limit": limit})]


def trigger_of_plan(tx: Tx, plan_id: str) -> tuple[str, dict[str, Any], str]:
    """The key and the words of the trigger that a plan came from, and its schedule instance."""
    row = tx.fetch_one(Q["trigger_of_plan"], {"plan_id": plan_id})
    if row is None:
        return "", {}, ""
    return row[0], msgspec.json.decode(row[1]), row[2]


def schedules(tx: Tx) -> list[Scheduled]:
    """The schedules of all enabled packs."""
    return [
        Scheduled(source=source, name=name, schedule=msgspec.json.decode(cfg, type=Schedule))
        for source, name, _, _, _, cfg in tx.fetch(Q["schedules"])
    ]


def fired_ticks(tx: Tx) -> dict[str, int]:
    return dict(tx.fetch(Q["fired_ticks"]))


def write_tick(tx: Tx, job: str, tick: int, outcome: str, detail: str, plan_id: str | None, now: int) -> None:
    tx.execute(Q["write_tick"], rows=[(job, tick, outcome, detail, plan_id, now)])


def candidates(tx: Tx, spec: Spec, before: int | None, limit: int) -> tuple[list[str], list[str]]:
    """Ids due for a refresh, each once: those that were signalled, and those found by hash or age (ch. 6.3.2)."""
    place = {"source": spec.provenance_code, "endpoint": spec.endpoint_code}
    signalled: list[str] = []
    if spec.update.signals:
        signalled = [row[0] for row in tx.fetch(Q["candidates_signalled"], {**place, "limit": limit})]
    found: dict[str, None] = {}
    if spec.update.expr_change:
        params = {**place, "expr_hash": spec.record_expr_hash, "limit": limit}
        found |= dict.fromkeys(row[0] for row in tx.fetch(Q["candidates_changed"], params))
    if before is not None:
        total = tx.fetch_one(Q["records_of"], place)
        share = -(-(total[0] if total else 0) // spec.update.rounds)
        params = {**place, "before": before, "limit": min(limit, share)}
        found |= dict.fromkeys(row[0] for row in tx.fetch(Q["candidates_stale"], params))
    known = set(signalled)
    return signalled, [one for one in found if one not in known][: max(limit - len(signalled), 0)]


def take_signals(tx: Tx, spec: Spec, ids: Sequence[str], plan_id: str) -> None:
    params = {"source": spec.provenance_code, "endpoint": spec.endpoint_code, "plan_id": plan_id}
    tx.execute(Q["take_signals"], params, rows=[(one,) for one in ids])


def raise_signals(
    tx: Tx, source: str, endpoint: str, ids: Sequence[str], *, reason: str, detail: str, by: str, now: int
) -> int:
    """Ask for records to be fetched again; one that is being fetched is asked for once more."""
    rows = [(source, endpoint, one, reason, detail, by, now) for one in dict.fromkeys(ids)]
    return tx.execute(Q["raise_signals"], rows=rows)


_WHERE = {
    R.PLAN_UNKNOWN: "`patra ingest plans` lists them",
    R.SLICE_UNKNOWN: "`patra ingest lineage PLAN` lists those of a plan",
    R.TASK_UNKNOWN: "`patra ingest tasks` lists them",
}


def unknown(code: R, name: str) -> Invalid:
    """What is said of a plan, a slice or a task that is not there."""
    return Invalid(code, f"{code.text}: {name}", advice=_WHERE[code])
