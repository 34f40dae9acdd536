"""What ingest knows about a key: trigger, plan, slice, task, run, batch, record, cursor (ch. 7, 14.7, 14.9)."""

from collections.abc import Sequence
from typing import Any

import msgspec

from patra.app.bridges.ingest_events import change_key, idempotency_key
from patra.app.story import ingest_entries as entries
from patra.app.story import keys
from patra.app.story.ingest_entries import Fields, related_key
from patra.app.story.model import Candidate, Collected, Engine, Entry, Lookup, Pending
from patra.ingest.landing.change_messages import CHANNEL, Change, Changes
from patra.ingest.operations.reads import lineage
from patra.ingest.vocabulary.reasons import Reason
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.db import Tx
from patra.kernel.machine import history

MAX_TASKS = 20
"""Tasks of a plan that its story includes; each has a story of its own."""
_TEXTS = {reason.value: reason.text for reason in Reason} | {reason.value: reason.text for reason in RunReason}


class Told(Collected):
    """What ingest tells, with the rows whose moves belong to it."""

    def __init__(self, tx: Tx, limit: int) -> None:
        super().__init__(tx, limit)
        self.where: dict[str, dict[str, Any]] = {}
        self.moving: dict[str, None] = {}

    def add(self, entry: Entry, pending: Pending | None = None, moves_of: str = "") -> None:
        """Add an entry, what is pending with it, and (`moves_of`) the state changes of its row."""
        self.entries.setdefault(entry.id, entries.explain_entry(entry, _TEXTS))
        if pending is not None:
            self.pending[entry.id] = pending
        if moves_of:
            self.moving[moves_of] = None

    def cut(self, rows: Sequence[Fields], limit: int) -> list[Fields]:
        """The rows up to a limit; notes where there are more."""
        if len(rows) > limit:
            self.complete = False
        return list(rows[:limit])

    # --- origin: from a task up to its trigger

    def task(self, row: Fields) -> None:
        self.add(entries.task(row), entries.task_pending(row), moves_of=row["task_id"])

    def task_and_origin(self, row: Fields) -> None:
        self.task(row)
        self.slice_and_origin(row["slice_id"])

    def slice_and_origin(self, slice_id: str) -> None:
        row = lineage.plan_slice(self.tx, slice_id)
        if row is not None:
            self.add(entries.plan_slice(row, lineage.task_id_of_slice(slice_id)), moves_of=slice_id)
            self.plan_and_origin(row["plan_id"])

    def plan_and_origin(self, plan_id: str) -> None:
        plan = lineage.plan(self.tx, plan_id)
        if plan is not None:
            self.add(entries.plan(plan), moves_of=plan_id)
            trigger = lineage.instance(self.tx, plan["schedule_instance_id"])
            if trigger is not None:
                self.add(entries.trigger(trigger))

    # --- effects: from a task down to its batches

    def runs(self, task_id: str) -> None:
        for run in self.cut(lineage.runs_of_task(self.tx, task_id, self.limit + 1), self.limit):
            self.add(entries.run(run), moves_of=run["run_id"])
            self.batches(run["run_id"])

    def batches(self, run_id: str, batch_no: int | None = None) -> None:
        for row in self.cut(lineage.batches(self.tx, run_id, self.limit + 1, batch_no), self.limit):
            self.add(entries.batch(row))
        for row in self.cut(lineage.cursor_events_of_run(self.tx, run_id, self.limit + 1, batch_no), self.limit):
            self.add(entries.cursor_event(row))
        self.follow[related_key("published as", "bus.trace_id", run_id)] = None
        if batch_no is not None:
            self.where[run_id] = {"batch_no": batch_no}

    def origin_of_batch(self, row: Fields, since: int) -> None:
        """The run of a batch up to its trigger, and whether its changes still wait for the relay.

        Messages of an endpoint leave in order: those of a batch wait as long as the oldest is no younger than it.
        """
        run = lineage.run(self.tx, row["run_id"])
        task = lineage.task(self.tx, run["task_id"]) if run else None
        if run is None or task is None:
            return
        self.add(entries.run(run), moves_of=run["run_id"])
        self.task_and_origin(task)
        group = f"{task['provenance_code']}/{task['endpoint_name']}"
        head = lineage.relay_head(self.tx, CHANNEL, group)
        if head is not None and head["appended_at"] <= since:
            self.pending[f"relay.{group}"] = entries.publication_pending(head, row)

    def record(self, row: Fields, within: str | None) -> None:
        """A record, its batch and origin; `within` is the DOI that the story is of."""
        dois = dict.fromkeys(filter(None, map(keys.doi, lineage.identifiers(self.tx, row))))
        works = [related_key("same work", "ingest.record", doi) for doi in dois if doi != within]
        for entry in entries.record(row, works):
            self.add(entry)
        for batch in lineage.batches(self.tx, row["run_id"], 1, row["batch_no"]):
            self.add(entries.batch(batch))
        self.origin_of_batch(row, row["changed_at"])
        self.follow[related_key("published as", "bus.idempotency_key", _event_key(row))] = None

    def moves(self) -> None:
        """The journal's entries about the rows that were collected."""
        for number, move in enumerate(history(self.tx, self.moving)):
            if move.machine in entries.MACHINES:
                self.add(entries.move(move, number))


def _event_key(row: Fields) -> str:
    """The idempotency key of the event that announced a record's last change."""
    deleted = bool(row["deleted"])
    change = Change(
        row["provider_id"], row["updated_at"], row["record_version"], deleted, "insert", row["content_hash"]
    )
    changes = Changes(
        source=row["provenance_code"],
        endpoint=row["endpoint_name"],
        expr_hash=row["expr_hash"],
        run_id=row["run_id"],
        batch_no=row["batch_no"],
        records=[change],
    )
    return idempotency_key(change_key(changes, change))


def look_up(tx: Tx, key: str, kinds: Sequence[str], limit: int) -> tuple[Lookup, dict[str, dict[str, Any]]]:
    """The rows that a key leads to under some kinds, their origin and effects; and which events of a run are meant."""
    told = Told(tx, limit)
    candidates = [one for kind in kinds for one in _find_candidates(told, key, kind)]
    told.moves()
    return told.lookup(kinds, candidates), told.where


def _find_candidates(told: Told, key: str, kind: str) -> list[Candidate]:
    match kind:
        case "ingest.schedule_instance":
            return _schedule(told, key)
        case "ingest.plan":
            return _plan(told, key)
        case "ingest.slice":
            return _slice(told, key)
        case "ingest.task":
            return _task(told, key)
        case "ingest.run":
            return _run(told, key)
        case "ingest.batch" | "ingest.correlation_id":
            return _batch(told, key, kind)
        case "ingest.record":
            return _records(told, key)
        case "ingest.cursor":
            return _cursors(told, key)
        case _:
            raise ValueError(f"ingest has no kind {kind!r}")


def _schedule(told: Told, key: str) -> list[Candidate]:
    row = lineage.instance(told.tx, key)
    if row is None:
        return []
    told.add(entries.trigger(row))
    for plan_id in lineage.plans_of_instance(told.tx, row["schedule_instance_id"], told.limit):
        told.plan_and_origin(plan_id)
    return [_candidate("ingest.schedule_instance", key, f"trigger of {row['provenance_code']}")]


def _plan(told: Told, key: str) -> list[Candidate]:
    row = lineage.plan(told.tx, key)
    if row is None:
        return []
    told.plan_and_origin(key)
    for task in told.cut(lineage.tasks_of_plan(told.tx, key, MAX_TASKS + 1), MAX_TASKS):
        told.task(task)
    return [_candidate("ingest.plan", key, f"plan of {row['provenance_code']}/{row['endpoint_name']}")]


def _slice(told: Told, key: str) -> list[Candidate]:
    row = lineage.plan_slice(told.tx, key)
    if row is None:
        return []
    told.slice_and_origin(key)
    task = lineage.task(told.tx, lineage.task_id_of_slice(key))
    if task is not None:
        told.task(task)
        told.runs(task["task_id"])
    return [_candidate("ingest.slice", key, f"slice of plan {row['plan_id']}")]


def _task(told: Told, key: str) -> list[Candidate]:
    row = lineage.task(told.tx, key)
    if row is None:
        return []
    told.task_and_origin(row)
    told.runs(key)
    return [_candidate("ingest.task", key, f"task of {row['provenance_code']}/{row['endpoint_name']}")]


def _run(told: Told, key: str) -> list[Candidate]:
    row = lineage.run(told.tx, key)
    if row is None:
        return []
    told.add(entries.run(row), moves_of=key)
    told.batches(key)
    if (task := lineage.task(told.tx, row["task_id"])) is not None:
        told.task_and_origin(task)
    return [_candidate("ingest.run", key, f"run of task {row['task_id']}")]


def _batch(told: Told, key: str, kind: str) -> list[Candidate]:
    place = keys.ingest_batch(key)
    if place is None or not (rows := lineage.batches(told.tx, place[0], 1, place[1])):
        return []
    run_id, batch_no = place
    told.batches(run_id, batch_no)
    told.origin_of_batch(rows[0], rows[0]["created_at"])
    return [_candidate(kind, key, f"batch {batch_no} of run {run_id}")]


def _records(told: Told, key: str) -> list[Candidate]:
    """Records by the provider's id (a DOI with or without its resolver), `source:id`, or `source|endpoint|id`."""
    if found := _records_of(told, key, *_record_parts(key)):
        return found
    within = keys.source_and_id(key)
    return _records_of(told, key, within[0], "", [within[1]]) if within else []


def _records_of(told: Told, key: str, source: str, endpoint: str, ids: list[str]) -> list[Candidate]:
    found: dict[str, Candidate] = {}

    def is_meant(row: Fields) -> bool:
        return source in {"", row["provenance_code"]} and endpoint in {"", row["endpoint_name"]}

    rows = [
        *lineage.records(told.tx, ids, told.limit),
        *([] if endpoint else lineage.identify_records(told.tx, ids, told.limit)),
    ]
    for row in filter(is_meant, rows):
        name = entries.record_key(row)
        if name not in found:
            told.record(row, within=keys.doi(key))
            found[name] = _record_candidate(row, keys.doi(key))
    for row in filter(is_meant, lineage.quarantined_records(told.tx, ids, told.limit)):
        told.add(entries.quarantine_entry(row), entries.quarantine_pending(row))
        name = f"{row['provenance_code']}|{row['endpoint_name']}|{row['item_key']}"
        label = f"quarantined record of {row['provenance_code']}/{row['endpoint_name']}"
        found.setdefault(name, _candidate("ingest.record", name, label))
        told.origin_of_batch(row, row["first_seen_at"])
    for row in filter(is_meant, lineage.signals(told.tx, ids, told.limit)):
        told.add(entries.signal(row))
        name = entries.record_key(row)
        found.setdefault(name, _candidate("ingest.record", name, "record that is asked for again"))
    return list(found.values())


def _record_candidate(row: Fields, doi: str | None) -> Candidate:
    """A record; those that share the DOI that was asked for are one work, and have one story."""
    name = entries.record_key(row)
    made = _candidate("ingest.record", name, f"record of {row['provenance_code']}/{row['endpoint_name']}")
    return made if doi is None else msgspec.structs.replace(made, subject=f"ingest.work:{doi}")


def _record_parts(key: str) -> tuple[str, str, list[str]]:
    """Source, endpoint and the forms of the provider's id that a text may stand for; empty where it does not say."""
    source, _, rest = key.partition("|")
    endpoint, bar, provider_id = rest.partition("|")
    if bar and provider_id:
        return source, endpoint, [provider_id]
    bare = keys.doi(key)
    if bare is None:
        return "", "", [key]
    cases = dict.fromkeys([bare, bare.lower(), bare.upper()])  # a DOI is the same in any case; providers keep their own
    forms = [key, key.removeprefix("doi:"), *cases, *(f"https://doi.org/{case}" for case in cases)]
    return "", "", list(dict.fromkeys(forms))


def _cursors(told: Told, key: str) -> list[Candidate]:
    """Cursors by their namespace, or by `source/operation/namespace`."""
    parts = key.split("/", 2)
    rows = lineage.cursors(told.tx, key, told.limit)
    if not rows and len(parts) == 3:
        rows = lineage.cursors(told.tx, parts[2], told.limit, source=parts[0], operation=parts[1])
    for row in rows:
        told.add(entries.cursor(row))
        for event in told.cut(lineage.cursor_events(told.tx, row, told.limit + 1), told.limit):
            told.add(entries.cursor_event(event))
        if row["plan_id"]:
            told.plan_and_origin(row["plan_id"])
    return [
        _candidate(
            "ingest.cursor",
            entries.cursor_key(row),
            f"cursor {row['cursor_key']} of {row['provenance_code']}, {row['operation_code']}",
        )
        for row in rows
    ]


def _candidate(kind: str, key: str, label: str) -> Candidate:
    subject = f"{kind}:{key}" if kind != "ingest.correlation_id" else f"ingest.batch:{key}"
    return Candidate(engine=Engine.INGEST, kind=kind, key=key, label=label, subject=subject)
