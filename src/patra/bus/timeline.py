"""A key goes in (`event_id`, `trace_id`, `correlation_id`; of a refusal its idempotency key); all of it comes out."""

from typing import Any

import msgspec

from patra.bus.deadletter import Filter, letter_id
from patra.bus.delivery import NEVER
from patra.bus.envelope import decode_trusted
from patra.bus.store import deliveries, events, groups, letters
from patra.kernel.clock import format_instant
from patra.kernel.db import Tx
from patra.kernel.machine import history


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened: when, what, to which event, and the rest as it is stored."""

    at: int
    what: str
    event_id: str
    detail: dict[str, Any]


def timeline(tx: Tx, key: str, limit: int = 1000) -> list[Entry]:
    """What happened to the events that a key leads to, in the order of time."""
    stored = {
        row.seq: row
        for found in (events.by_id(tx, key), events.by_trace(tx, key, limit), events.by_correlation(tx, key, limit))
        for row in found
    }
    found: list[Entry] = []
    ids: list[str] = []
    for row in stored.values():
        if row.body is None:
            found.append(
                Entry(
                    at=row.published_at,
                    what="published",
                    event_id=key,
                    detail={"event_type": row.event_type, "body": "purged"},
                )
            )
            continue
        envelope = decode_trusted(row.body)
        ids.append(envelope.event_id)
        detail = {
            "event_type": row.event_type,
            "event_version": envelope.event_version,
            "producer": envelope.producer,
            "trace_id": envelope.trace_id,
            "correlation_id": envelope.correlation_id,
            "occurred_at": envelope.occurred_at,
        }
        found.append(Entry(at=row.published_at, what="published", event_id=envelope.event_id, detail=detail))
    for event_id in dict.fromkeys([*ids, key]):
        found += _of_event(tx, event_id)
    return [_readable(entry) for entry in sorted(found, key=lambda entry: entry.at)[:limit]]


def _readable(entry: Entry) -> Entry:
    """With the instants of its detail as texts (A1)."""
    told = {k: format_instant(v) if k.endswith("_at") and type(v) is int else v for k, v in entry.detail.items()}
    return msgspec.structs.replace(entry, detail=told)


def _standing(event_id: str, row: dict[str, Any]) -> Entry:
    """An event in a group's line; one that a long worker holds, or that blocks as a dead letter, is never due."""
    due_at = None if row["due_at"] >= NEVER else row["due_at"]
    at = row["last_failed_at"] or due_at or row["published_at"]
    return Entry(at=at, what="waiting", event_id=event_id, detail={**row, "due_at": due_at})


def _of_event(tx: Tx, event_id: str) -> list[Entry]:
    found = [_standing(event_id, row) for row in deliveries.of_event(tx, event_id)]
    found += [
        Entry(at=row.first_at, what="refused", event_id=row.event_id, detail=msgspec.structs.asdict(row))
        for row in events.refusals_of(tx, event_id)
    ]
    for one in letters.find(tx, Filter(event_id=event_id, state=None), limit=100):
        letter = one.letter
        detail = {k: v for k, v in msgspec.structs.asdict(letter).items() if k != "envelope"}
        found.append(Entry(at=letter.first_failed_at, what="dead_letter", event_id=event_id, detail=detail))
        found += [
            Entry(
                at=move.at,
                what=f"dead_letter_{move.to}",
                event_id=event_id,
                detail={"group": letter.group, "reason": move.reason},
            )
            for move in history(tx, [letter_id(letter.group, event_id)])
        ]
        for act in groups.acts(tx, subject=letter.group, limit=200):
            if event_id in act.detail.get("events", []):
                found.append(
                    Entry(
                        at=act.at,
                        what=act.act,
                        event_id=event_id,
                        detail={"by": act.done_by, "group": letter.group, **act.detail},
                    )
                )
    return found
