"""What the planner reads and writes, statement by statement; decisions are made elsewhere."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from patra.ingest.packs.schema import Schedule
from patra.ingest.packs.spec import Spec
from patra.ingest.planning.schedule import DueTick, Scheduled, ScheduledExport
from patra.ingest.planning.slicing.windows import Span
from patra.ingest.planning.trigger import Trigger
from patra.ingest.vocabulary.codes import Operation
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.clock import DAY
from patra.kernel.db import Database, Queries, Tx
from patra.kernel.errors import Invalid

Q = Queries.load("patra.ingest")
NO_PLAN_ID = ""  # no plan has this id
MAX_REPORTS = 5000
KEEP_HISTORY = 90 * DAY
"""For how long the ticks of schedules are kept."""


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

    @property
    def window(self) -> Span | None:
        """What the plan covers; a refresh has none."""
        return None if self.window_from is None or self.window_to is None else Span(self.window_from, self.window_to)


def take_turns(tx: Tx, name: str) -> None:
    """Until the transaction ends, others that plan the same wait; they then read what the first has written."""
    tx.fetch(Q["take_turns"], {"name": name})


def fresh_statistics(tx: Tx) -> None:
    """Let PostgreSQL know at once what a large plan has added: until it does, taking a task reads the whole table."""
    if tx.dialect == "postgres":
        tx.script("ANALYZE ing_task")


def watermark(tx: Tx, spec: Spec) -> int | None:
    """The forward watermark of what the snapshot selects, whatever the operation."""
    cursor = spec.harvest_cursor or spec.cursor
    scope, namespace, key = cursor.scope.value, cursor.namespace_key, cursor.key
    if spec.operation is not Operation.HARVEST and spec.harvest_cursor is None:
        scope, namespace = "EXPR", spec.selection_key.partition("/")[2]
        key = spec.window.watermark_key
    row = tx.fetch_one(
        Q["watermark"], {"source": spec.provenance_code, "key": key, "scope": scope, "namespace": namespace}
    )
    return row[0] if row else None


def last_key(tx: Tx, spec: Spec) -> int | None:
    """The largest key that a harvest by key has read."""
    cursor = spec.cursor
    place = {"source": spec.provenance_code, "key": cursor.key, "scope": cursor.scope.value}
    row = tx.fetch_one(Q["last_key"], {**place, "namespace": cursor.namespace_key})
    return row[0] if row else None


def covered_spans(tx: Tx, spec: Spec, namespace: str, span: Span, *, except_plan: str = NO_PLAN_ID) -> list[Span]:
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


def count_queued(tx: Tx, partition: str, limit: int) -> int:
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
    params: dict[str, Any] = {"selection": selection, "since": span.start, "until": span.end, "limit": MAX_REPORTS}
    rows = tx.fetch(Q["window_stats"], params)
    if not rows:
        rows = tx.fetch(Q["window_stats_any"], {"selection": selection, "limit": 200})
    return [(Span(start, end), total) for start, end, total in reversed(rows)]


def last_total(tx: Tx, selection: str) -> int | None:
    """How many records the whole list had when it was read last."""
    row = tx.fetch_one(Q["window_stats_any"], {"selection": selection, "limit": 1})
    return None if row is None else row[2]


def pages_done(tx: Tx, plan_id: str, task_id: str) -> Span | None:
    """The window of a plan by pages whose other tasks are all done; None while any is not.

    Of two tasks that end at the same moment the second waits for the first here.
    """
    tx.fetch_one(Q["plan_for_update"], {"plan_id": plan_id})
    row = tx.fetch_one(Q["pages_done"], {"plan_id": plan_id, "task_id": task_id})
    return None if row is None else Span(row[0], row[1])


def report_total(tx: Tx, selection: str, span: Span, total: int, now: int) -> None:
    """An executor has learnt how many records a window holds (ch. 4.16)."""
    tx.execute(Q["report_total"], rows=[(selection, span.start, span.end, total, now)])


def instance_of_tick(tx: Tx, trigger: Trigger) -> Instance | None:
    """The same tick of the same words; a schedule of this name that asked for something else was another one."""
    asked = {
        "scheduler": trigger.scheduler,
        "job": trigger.job,
        "log": trigger.log,
        "endpoint": trigger.endpoint,
        "operation": trigger.operation.value,
        "said": msgspec.json.encode(trigger.describe_trigger).decode(),
    }
    row = tx.fetch_one(Q["instance_of_tick"], asked)
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
    """The schedules that fire."""
    return [entry for entry in all_schedules(tx) if entry.enabled]


def all_schedules(tx: Tx) -> list[Scheduled]:
    """The schedules of all packs, also those that are off."""
    return [
        Scheduled(
            source=source,
            name=name,
            enabled=bool(on),
            schedule=msgspec.json.decode(cfg, type=Schedule),
            since=since,
            own=bool(own),
            then=msgspec.json.decode(then, type=ScheduledExport) if then else None,
            topic=topic,
        )
        for source, name, on, cfg, since, own, then, _, topic in tx.fetch(Q["schedules"])
    ]


def add_schedule(tx: Tx, entry: Scheduled, *, by: str, now: int) -> bool:
    """Keep a schedule of an operator; False where there is one of its name."""
    then = msgspec.json.encode(entry.then).decode() if entry.then is not None else ""
    cfg = msgspec.json.encode(entry.schedule).decode()
    row = (entry.job, entry.source, entry.name, cfg, then, entry.topic, by, now)
    return tx.execute(Q["add_schedule"], rows=[row]) > 0


def change_schedule(tx: Tx, entry: Scheduled, *, by: str, now: int) -> None:
    """Keep a schedule of an operator in other words; ticks before `now` are not missed."""
    then = msgspec.json.encode(entry.then).decode() if entry.then is not None else ""
    cfg = msgspec.json.encode(entry.schedule).decode()
    given = {"job": entry.job, "cfg": cfg, "then": then, "topic": entry.topic, "by": by, "now": now}
    tx.execute(Q["change_schedule"], given)
    tx.execute(Q["touch_switch"], {"job": entry.job, "now": now})


def remove_schedule(tx: Tx, job: str) -> bool:
    """Forget a schedule of an operator, how it was switched and its last tick; its history stays."""
    for name in ("forget_switch", "forget_tick"):
        tx.execute(Q[name], {"job": job})
    return tx.execute(Q["remove_schedule"], {"job": job}) > 0


def switch_schedule(tx: Tx, job: str, *, enabled: bool, by: str, now: int) -> None:
    tx.execute(Q["switch_schedule"], rows=[(job, int(enabled), by, now)])


def follow_topic(tx: Tx, topic: str, selection: str) -> None:
    """From now on, records that harvests and backfills of a search find are noted under the topic."""
    tx.insert_absent(
        "ing_topic_selection", [{"selection_key": selection, "topic": topic}], key=("selection_key", "topic")
    )


def unfollow_topic(tx: Tx, topic: str, selection: str) -> None:
    """From now on, what the search finds is no more noted under the topic; what was noted stays."""
    tx.execute(Q["unfollow_topic"], {"topic": topic, "selection": selection})


def fired_ticks(tx: Tx) -> dict[str, int]:
    return dict(tx.fetch(Q["fired_ticks"]))


def write_tick(tx: Tx, due: DueTick, outcome: str, detail: str, plan_id: str | None, now: int) -> None:
    """The result of a tick: the schedule's last, and a line of its history."""
    tx.execute(Q["write_tick"], rows=[(due.entry.job, due.tick, outcome, detail, plan_id, now)])
    then = due.entry.then if due.trigger is not None else None
    write_schedule_history(tx, due.entry.job, due.tick, outcome, detail, plan_id, then, now)


def write_schedule_history(
    tx: Tx, job: str, tick: int, outcome: str, detail: str, plan_id: str | None, then: ScheduledExport | None, now: int
) -> None:
    """A line of the history, which is kept for `KEEP_HISTORY`; the file is written when the plan is done."""
    cfg = msgspec.json.encode(then).decode() if then is not None else ""
    tx.execute(Q["write_history"], rows=[(job, tick, outcome, detail, plan_id, now, cfg, "PENDING" if cfg else "")])
    for name in ("purge_history", "purge_empty_instances"):
        tx.execute(Q[name], {"job": job, "before": now - KEEP_HISTORY})


def schedule_history(tx: Tx, job: str, limit: int) -> list[dict[str, Any]]:
    """The result of the ticks of a schedule, or of all with an empty job; the newest first."""
    return tx.fetch_dicts(Q["schedule_history"], {"job": job, "limit": limit})


def take_signals(tx: Tx, spec: Spec, ids: Sequence[str], plan_id: str) -> None:
    params = {"source": spec.provenance_code, "endpoint": spec.kept_under, "plan_id": plan_id}
    tx.execute(Q["take_signals"], params, rows=[(one,) for one in ids])


def release_signals(tx: Tx, tasks: Sequence[str]) -> None:
    """Tasks that will not fetch their records give back the signals of those they have not looked at."""
    for plan_id, source, _, ids in _signalled_ids(tx, tasks):
        params = {"source": source, "plan_id": plan_id}
        tx.execute(Q["release_signals"], params, rows=[(one,) for one in ids])


def retake_signals(tx: Tx, tasks: Sequence[str]) -> None:
    """Tasks that are tried again take up what they had given back."""
    for plan_id, source, endpoint, ids in _signalled_ids(tx, tasks):
        params = {"source": source, "endpoint": endpoint, "plan_id": plan_id}
        tx.execute(Q["take_signals"], params, rows=[(one,) for one in ids])


def _signalled_ids(tx: Tx, tasks: Sequence[str]) -> list[tuple[str, str, str, list[str]]]:
    rows = tx.fetch(Q["id_slices_of"], rows=[(task,) for task in tasks])
    return [
        (plan_id, source, endpoint, msgspec.json.decode(text)["bounds"]["id"]["ids"])
        for _, plan_id, source, endpoint, text in rows
    ]


def raise_signals(
    tx: Tx, source: str, endpoint: str, ids: Sequence[str], *, reason: str, detail: str, by: str, now: int
) -> int:
    """Ask for records to be fetched again; one that is being fetched is asked for once more."""
    rows = [(source, endpoint, one, reason, detail, by, now) for one in dict.fromkeys(ids)]
    return tx.execute(Q["raise_signals"], rows=rows)


_WHERE = {
    Reason.PLAN_UNKNOWN: "`patra ingest plans` lists them",
    Reason.SLICE_UNKNOWN: "`patra ingest lineage PLAN` lists those of a plan",
    Reason.TASK_UNKNOWN: "`patra ingest tasks` lists them",
}


def unknown_name(code: Reason, name: str) -> Invalid:
    """What is said of a plan, a slice or a task that is not there."""
    return Invalid(code, f"{code.text}: {name}", advice=_WHERE[code])


TASK_COUNT_CHANGES = 1000
"""Changes of task counts that reads may add up themselves."""


def fold_task_counts(db: Database) -> None:
    """Put changes of task counts into the counts, where there are many; on SQLite there are never any."""
    if db.dialect != "postgres":
        return
    row = db.read(lambda tx: tx.fetch_one(Q["task_count_changes"], {"limit": TASK_COUNT_CHANGES}))
    if row is not None and row[0] >= TASK_COUNT_CHANGES:
        db.run(lambda tx: tx.execute(Q["task_count_fold"]))
