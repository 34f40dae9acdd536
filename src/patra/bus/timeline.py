"""What happened to the events of a key: `event_id`, `trace_id`, `correlation_id`, idempotency key."""

from typing import Any

import msgspec

from patra.bus.consuming.dead_letter import DeadLetterState, letter_id
from patra.bus.consuming.delivery_order import FAR_FUTURE
from patra.bus.publishing.envelope import decode_trusted
from patra.bus.store import dead_letters, deliveries, events, groups, hops
from patra.kernel.clock import format_instant
from patra.kernel.db import Tx
from patra.kernel.machine import history


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened: when, what, to which event, and the rest as it is stored."""

    at: int
    what: str
    event_id: str
    detail: dict[str, Any]


def timeline(tx: Tx, key: str, limit: int = 1000, tenant_id: str = "") -> list[Entry]:
    """What happened to the events that a key leads to, in the order of time; of one tenant alone where it is named."""
    stored = {
        row.seq: row
        for found in (
            events.by_id(tx, key, tenant_id),
            events.by_trace(tx, key, limit, tenant_id),
            events.by_correlation(tx, key, limit, tenant_id),
            _of_idempotency_key(tx, key, limit, tenant_id),
        )
        for row in found
    }
    found: list[Entry] = []
    ids: list[str] = []
    for row in stored.values():
        ids.append(row.event_id)
        if row.body is None:
            found.append(
                Entry(
                    at=row.published_at,
                    what="published",
                    event_id=row.event_id,
                    detail={"event_type": row.event_type, "published_by": row.published_by, "body": "purged"},
                )
            )
            continue
        envelope = decode_trusted(row.body)
        detail = {
            "event_type": row.event_type,
            "event_version": envelope.event_version,
            "producer": envelope.producer,
            "published_by": row.published_by,
            "trace_id": envelope.trace_id,
            "correlation_id": envelope.correlation_id,
            "occurred_at": envelope.occurred_at,
        }
        found.append(Entry(at=row.published_at, what="published", event_id=envelope.event_id, detail=detail))
    published = {entry.event_id: entry.at for entry in found}
    for event_id in dict.fromkeys([*ids, key]):
        hops = _refusals(tx, event_id, tenant_id)
        if not tenant_id or event_id in published:
            hops += _of_event(tx, event_id, alone=bool(tenant_id))
        reached = sorted({_group(hop) for hop in hops if hop.what in {"waiting", "handled", "dead_letter"}})
        if reached and event_id in published:
            found.append(Entry(at=published[event_id], what="routed", event_id=event_id, detail={"groups": reached}))
        found += hops
    return [_readable(entry) for entry in sorted(found, key=lambda entry: entry.at)[:limit]]


def _of_idempotency_key(tx: Tx, key: str, limit: int, tenant_id: str) -> list[events.Stored]:
    found = events.by_idempotency_keys(tx, [key], limit, tenant_id)
    return [row for row in found if row.body is not None and decode_trusted(row.body).idempotency_key == key]


def _group(hop: Entry) -> str:
    return str(hop.detail.get("group") or hop.detail.get("name", ""))


def _readable(entry: Entry) -> Entry:
    """With the instants of its detail as texts (A1)."""
    told = {k: format_instant(v) if k.endswith("_at") and type(v) is int else v for k, v in entry.detail.items()}
    return msgspec.structs.replace(entry, detail=told)


def _standing(event_id: str, row: dict[str, Any]) -> Entry:
    """An event in a group's line; one that a long worker holds, or that blocks as a dead letter, is never due."""
    due_at = None if row["due_at"] >= FAR_FUTURE else row["due_at"]
    at = row["last_failed_at"] or due_at or row["published_at"]
    return Entry(at=at, what="waiting", event_id=event_id, detail={**row, "due_at": due_at})


def _by(hop: hops.Hop) -> dict[str, str]:
    return {"by": hop.by} if hop.by else {}


def _refusals(tx: Tx, key: str, tenant_id: str) -> list[Entry]:
    return [
        Entry(at=row.first_at, what="refused", event_id=row.event_id, detail=msgspec.structs.asdict(row))
        for row in events.refusals_of(tx, key, tenant_id)
    ]


def _of_event(tx: Tx, event_id: str, *, alone: bool) -> list[Entry]:
    """The hops of one event; `alone` leaves out the other events that an act was on, which may be of other tenants."""
    found = [_standing(event_id, row) for row in deliveries.of_event(tx, event_id)]
    steps = hops.of_events(tx, [event_id])
    found += [
        Entry(at=hop.at, what=hop.what.value, event_id=event_id, detail={"group": hop.group, **_by(hop), **hop.detail})
        for hop in steps
        if hop.what is not hops.HopKind.HANDLED
    ]
    handled_by = {hop.group: {**_by(hop), **hop.detail} for hop in steps if hop.what is hops.HopKind.HANDLED}
    dead = dead_letters.of_events(tx, [event_id], limit=100)
    discarded = {letter.group for letter in dead if letter.state is DeadLetterState.DISCARDED}
    for group in groups.names(tx):
        if group not in discarded:
            handled = deliveries.handled_at(tx, group, [event_id])
            found += [
                Entry(at=at, what="handled", event_id=event_id, detail={"group": group, **handled_by.get(group, {})})
                for at in handled.values()
            ]
    for letter in dead:
        detail = {k: v for k, v in msgspec.structs.asdict(letter).items() if k not in {"envelope", "traceback"}}
        found.append(Entry(at=letter.last_failed_at, what="dead_letter", event_id=event_id, detail=detail))
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
                        detail={"by": act.done_by, "group": letter.group, **act.detail}
                        | ({"events": [event_id]} if alone else {}),
                    )
                )
    return found
