"""Rows of ingest as entries and pending work of a story. Pure."""

from collections.abc import Sequence
from typing import Any

import msgspec

from patra.app.story.model import Engine, Entry, Pending, Related, Shape
from patra.ingest.landing.run_state import correlation_id
from patra.kernel.machine import Move

Fields = dict[str, Any]
Texts = dict[str, str]
OPEN_TASKS = frozenset({"QUEUED", "DISPATCHED", "EXECUTING"})
MACHINES = {
    "ing_plan": ("plan", "i-8-1"),
    "ing_plan_slice": ("slice", "i-8-2"),
    "ing_task": ("task", "i-9-2"),
    "ing_task_run": ("run", "i-9-3"),
}
"""What the machines of the journal are called, and their paragraphs."""


def related_key(relation: str, kind: str, key: str) -> Related:
    return Related(relation=relation, kind=kind, key=key)


def record_key(row: Fields) -> str:
    """The business key of a record, as its events have it."""
    return f"{row['provenance_code']}|{row['endpoint_name']}|{row['provider_id']}"


def cursor_key(row: Fields) -> str:
    return f"{row['provenance_code']}/{row['operation_code']}/{row['namespace_key']}"


def batch_key(row: Fields) -> str:
    return f"{row['run_id']}/{row['batch_no']}"


def trigger(row: Fields) -> Entry:
    who = f"schedule {row['scheduler_job_id']}" if row["trigger_type_code"] == "CRON" else "an operator"
    what = f"{row['operation_code']} of {row['provenance_code']}/{row['endpoint_name']}"
    name = row["schedule_instance_id"]
    return _entry(
        f"trigger.{name}",
        row["triggered_at"],
        Shape.IN,
        "trigger_received",
        f"{what} was triggered by {who}.",
        row,
        state=row["outcome_code"],
        code=row["outcome_code"],
        paragraph="i-7-1",
        keys=[related_key("trigger", "ingest.schedule_instance", name)],
    )


def plan(row: Fields) -> Entry:
    where = f"{row['operation_code']} of {row['provenance_code']}/{row['endpoint_name']}"
    keys = [
        related_key("plan", "ingest.plan", row["plan_id"]),
        related_key("trigger", "ingest.schedule_instance", row["schedule_instance_id"]),
        related_key("cursor", "ingest.cursor", cursor_key(row)),
    ]
    return _creation_entry(
        f"plan.{row['plan_id']}", "plan_created", f"Plan {row['plan_id']}, {where},", row, keys, "i-8-1"
    )


def plan_slice(row: Fields, task_id: str) -> Entry:
    keys = [
        related_key("slice", "ingest.slice", row["slice_id"]),
        related_key("plan", "ingest.plan", row["plan_id"]),
        related_key("task", "ingest.task", task_id),
    ]
    if row["parent_slice_id"]:
        keys.append(related_key("cut from", "ingest.slice", row["parent_slice_id"]))
    return _creation_entry(f"slice.{row['slice_id']}", "slice_cut", f"Slice {row['slice_id']}", row, keys, "i-8-2")


def task(row: Fields) -> Entry:
    keys = [
        related_key("task", "ingest.task", row["task_id"]),
        related_key("slice", "ingest.slice", row["slice_id"]),
        related_key("plan", "ingest.plan", row["plan_id"]),
    ]
    return _creation_entry(f"task.{row['task_id']}", "task_created", f"Task {row['task_id']}", row, keys, "i-9-1")


def task_pending(row: Fields) -> Pending | None:
    """What a task waits for: its turn, or the end of the work on it; None once it is over."""
    if row["status_code"] not in OPEN_TASKS:
        return None
    leased, name = row["lease_owner"] is not None, row["task_id"]
    working = f"{row['lease_owner']} works on task {name}; its lease ends then unless it is renewed."
    return Pending(
        engine=Engine.INGEST,
        what="task_lease" if leased else "task",
        text=working if leased else f"Task {name} waits for an executor.",
        due=row["leased_until"] if leased else row["scheduled_at"],
        state=row["status_code"],
        related=[related_key("task", "ingest.task", name)],
    )


def run(row: Fields) -> Entry:
    return _entry(
        f"run.{row['run_id']}",
        row["started_at"],
        Shape.WRITTEN,
        "run_started",
        f"Run {row['run_id']} began, attempt {row['attempt_no']}; it is {row['status_code']} now.",
        row,
        state=row["status_code"],
        code=row["reason_code"],
        paragraph="i-9-3",
        keys=[
            related_key("run", "ingest.run", row["run_id"]),
            related_key("task", "ingest.task", row["task_id"]),
        ],
    )


def batch(row: Fields) -> Entry:
    name = batch_key(row)
    digests = ("request_digest", "response_digest", "stats")
    return _entry(
        f"batch.{name}",
        row["created_at"],
        Shape.IN,
        "batch_landed" if row["status_code"] == "SUCCEEDED" else "batch_ended",
        f"Batch {name} ({row['phase_code']}) ended {row['status_code']}.",
        row | {part: msgspec.json.decode(row[part]) for part in digests if row[part]},
        state=row["status_code"],
        code=row["reason_code"],
        paragraph="i-9-4" if row["error_level"] is None else "i-12-1",
        keys=[
            related_key("batch", "ingest.batch", name),
            related_key("run", "ingest.run", row["run_id"]),
            related_key("task", "ingest.task", row["task_id"]),
            related_key("correlation id", "ingest.correlation_id", correlation_id(row["run_id"], row["batch_no"])),
        ],
    )


def cursor_event(row: Fields) -> Entry:
    moved = row["new_value"] is not None and row["new_value"] != row["prev_value"]
    return _entry(
        f"cursor.{row['event_id']}",
        row["event_time"],
        Shape.WRITTEN,
        "cursor_advanced" if moved else "cursor_kept",
        f"Cursor {row['cursor_key']}: {row['prev_value'] or 'none'} to {row['new_value'] or 'no change'}.",
        row,
        state=row["direction_code"],
        code=row["reason_code"],
        paragraph="i-10-3",
        keys=[
            related_key("cursor", "ingest.cursor", cursor_key(row)),
            related_key("batch", "ingest.batch", batch_key(row)),
        ],
    )


def cursor(row: Fields) -> Entry:
    name = cursor_key(row)
    keys = [related_key("cursor", "ingest.cursor", name)]
    if row["run_id"]:
        keys.append(related_key("last moved by", "ingest.batch", batch_key(row)))
    if row["plan_id"]:
        keys.append(related_key("plan", "ingest.plan", row["plan_id"]))
    return _entry(
        f"cursor_state.{name}.{row['cursor_key']}.{row['namespace_scope_code']}",
        row["updated_at"],
        Shape.WRITTEN,
        "cursor_state",
        f"Cursor {row['cursor_key']} of {row['provenance_code']} stands at {row['cursor_value']}.",
        row,
        state=row["cursor_type_code"],
        paragraph="i-10-1",
        keys=keys,
    )


def record(row: Fields, works: Sequence[Related] = ()) -> list[Entry]:
    """When a record was first seen, and what its last change was; `works` lead to other records of the same work."""
    name, state = record_key(row), "deleted" if row["deleted"] else "stored"
    keys = [
        related_key("record", "ingest.record", name),
        related_key("batch", "ingest.batch", batch_key(row)),
        related_key("run", "ingest.run", row["run_id"]),
        related_key("task", "ingest.task", row["task_id"]),
        *works,
    ]
    text = f"Record {name} was stored{' as deleted' if row['deleted'] else ''} by batch {batch_key(row)}."
    changed = _entry(
        f"record.{name}.{batch_key(row)}",
        row["changed_at"],
        Shape.WRITTEN,
        "record_changed",
        text,
        row,
        state=state,
        rule_version=row["expr_hash"],
        paragraph="i-11-1",
        keys=keys,
    )
    if row["first_seen_at"] == row["changed_at"]:
        return [changed]
    text = f"Record {name} was seen for the first time."
    seen = (f"record.{name}.first", row["first_seen_at"], Shape.WRITTEN, "record_created", text)
    return [_entry(*seen, {}, state="created", paragraph="i-11-1", keys=keys[:1]), changed]


def quarantine_entry(row: Fields) -> Entry:
    name = f"{row['provenance_code']}|{row['endpoint_name']}|{row['item_key']}"
    return _entry(
        f"quarantine.{name}",
        row["first_seen_at"],
        Shape.RULE,
        "record_quarantined",
        f"Record {name} could not be taken in, {row['seen_count']} times; it is {row['status_code']}.",
        row,
        state=row["status_code"],
        code=row["reason_code"],
        paragraph="i-12-5",
        keys=[related_key("record", "ingest.record", name), related_key("batch", "ingest.batch", batch_key(row))],
    )


def quarantine_pending(row: Fields) -> Pending | None:
    name = f"{row['provenance_code']}|{row['endpoint_name']}|{row['item_key']}"
    if row["status_code"] != "OPEN":
        return None
    return Pending(
        engine=Engine.INGEST,
        what="quarantine",
        text=f"Record {name} is in quarantine until it is read again or dismissed.",
        due=None,
        state="OPEN",
        related=[related_key("record", "ingest.record", name)],
    )


def publication_pending(head: Fields, row: Fields) -> Pending:
    name = batch_key(row)
    return Pending(
        engine=Engine.INGEST,
        what="publication",
        text=f"The changed records of batch {name} wait to be published on the bus.",
        due=head["due_at"],
        state=head["reason"] or "pending",
        related=[related_key("batch", "ingest.batch", name)],
    )


def signal(row: Fields) -> Entry:
    name = record_key(row)
    keys = [related_key("record", "ingest.record", name)]
    if row["plan_id"]:
        keys.append(related_key("taken up by", "ingest.plan", row["plan_id"]))
    return _entry(
        f"signal.{name}",
        row["raised_at"],
        Shape.ACT,
        "refresh_requested",
        f"{row['raised_by']} asked for record {name} to be read again.",
        row,
        state="taken" if row["plan_id"] else "open",
        code=row["reason_code"],
        paragraph="i-4-14",
        keys=keys,
    )


def move(one: Move, number: int) -> Entry:
    """A step of the journal; `number` distinguishes the steps of one subject."""
    kind, paragraph = MACHINES[one.machine]
    return _entry(
        f"move.{one.subject}.{number}",
        one.at,
        Shape.RULE,
        f"{kind}_moved",
        f"{kind.capitalize()} {one.subject} went from {one.was} to {one.to}.",
        {},
        state=one.to,
        code=one.reason,
        rule_version=one.rule_version,
        paragraph=paragraph,
        keys=[related_key(kind, f"ingest.{kind}", one.subject)],
    )


def explain_entry(entry: Entry, texts: Texts) -> Entry:
    return msgspec.structs.replace(entry, code_text=texts.get(entry.code, ""))


def _creation_entry(name: str, what: str, subject: str, row: Fields, keys: list[Related], paragraph: str) -> Entry:
    return _entry(
        name,
        row["created_at"],
        Shape.WRITTEN,
        what,
        f"{subject} was created; it is {row['status_code']} now.",
        row,
        state=row["status_code"],
        code=row.get("reason_code"),
        rule_version=row.get("spec_fingerprint") or "",
        paragraph=paragraph,
        keys=keys,
    )


def _entry(
    name: str,
    at: int,
    shape: Shape,
    what: str,
    text: str,
    detail: Fields,
    *,
    state: str,
    paragraph: str,
    keys: list[Related],
    code: str | None = None,
    rule_version: str = "",
) -> Entry:
    return Entry(
        id=f"ingest.{name}",
        at=at,
        engine=Engine.INGEST,
        shape=shape,
        what=what,
        text=text,
        state=state,
        code=code or "",
        rule_version=rule_version,
        paragraph=paragraph,
        detail=detail,
        related=keys,
    )
