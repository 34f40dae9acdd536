"""What the bus knows about a key: publications, deliveries, dead letters, replays, refusals (C§1 to C§6)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from patra.app.story import keys
from patra.app.story.model import Candidate, Engine, Entry, Lookup, Pending, Related, Shape
from patra.app.story.sentences import ended_by, fault_at, times
from patra.bus.catalogue.reasons import Reason
from patra.bus.consuming.dead_letter import DeadLetter, letter_id
from patra.bus.consuming.delivery_order import FAR_FUTURE
from patra.bus.publishing.envelope import Envelope, decode_trusted
from patra.bus.store import dead_letters, deliveries, events, groups, hops
from patra.kernel.db import Tx
from patra.kernel.machine import history

EVENTS_FOLLOWED = 1000
"""Events of a trace that are read when only some of them are asked for."""
_TEXTS = {reason.value: reason.text for reason in Reason}
_PARAGRAPHS: dict[str, str] = {
    Reason.HANDLER_FAILED: "c-6",
    Reason.RETRIES_EXHAUSTED: "c-6",
    Reason.REPLAY_ASKED: "c-6",
    Reason.REPLAY_SUCCEEDED: "c-6",
    Reason.DISCARDED: "c-6",
    Reason.IDEMPOTENCY_CONFLICT: "ruling-b2",
    Reason.EVENT_ID_REUSED: "ruling-b2",
    Reason.TYPE_FROZEN: "ruling-b5",
    Reason.PAYLOAD_INVALID: "ruling-b3",
}


class Event:
    """A stored event with its envelope; `envelope` is None once the body is past its retention."""

    def __init__(self, row: events.Stored) -> None:
        self.row = row
        self.envelope: Envelope | None = None if row.body is None else decode_trusted(row.body)
        self.event_id = row.event_id

    def has(self, where: Mapping[str, Any]) -> bool:
        payload = self.envelope.payload if self.envelope else {}
        return all(payload.get(name) == value for name, value in where.items())


def look_up(tx: Tx, key: str, kinds: Sequence[str], limit: int) -> Lookup:
    """The events that a key leads to under some kinds, and all that happened to them."""
    found: dict[str, list[Event]] = {}
    for kind in kinds:
        match kind:
            case "bus.event_id":
                found[kind] = [Event(row) for row in events.by_id(tx, key)]
            case "bus.trace_id":
                found[kind] = [Event(row) for row in events.by_trace(tx, key, limit + 1)]
            case "bus.correlation_id":
                found[kind] = [Event(row) for row in events.by_correlation(tx, key, limit + 1)]
            case "bus.idempotency_key":
                found[kind] = _by_idempotency_keys(tx, [key], limit + 1)
            case "bus.dead_letter":
                group_and_event = keys.dead_letter(key)
                found[kind] = _of_letter(tx, *group_and_event) if group_and_event else []
            case _:
                raise ValueError(f"the bus has no kind {kind!r}")
    refused = [_refusal(row) for row in events.refusals_of(tx, key)]
    candidates = [_candidate(kind, key, some) for kind, some in found.items() if some]
    if refused and not candidates:
        kind = "bus.event_id" if keys.is_event_id(key) else "bus.idempotency_key"
        label = f"{len(refused)} publications of this key were refused"
        candidates = [Candidate(engine=Engine.BUS, kind=kind, key=key, label=label, count=len(refused))]
    lookup = tell_events(tx, [event for some in found.values() for event in some], limit)
    return Lookup(
        kinds=list(kinds),
        candidates=candidates,
        entries=[*lookup.entries, *refused],
        pending=lookup.pending,
        follow=lookup.follow,
        complete=lookup.complete,
    )


def follow(tx: Tx, followed: Sequence[Related], where: Mapping[str, Mapping[str, Any]], limit: int) -> Lookup:
    """The events of keys that other engines name; `where` says of a trace which payloads are meant."""
    wanted: list[Event] = _by_idempotency_keys(
        tx, [one.key for one in followed if one.kind == "bus.idempotency_key"], limit + 1
    )
    for one in followed:
        meant = where.get(one.key, {})
        read = EVENTS_FOLLOWED if meant else limit + 1
        match one.kind:
            case "bus.trace_id":
                wanted += [e for row in events.by_trace(tx, one.key, read) if (e := Event(row)).has(meant)]
            case "bus.correlation_id":
                wanted += [e for row in events.by_correlation(tx, one.key, read) if (e := Event(row)).has(meant)]
            case "bus.event_id":
                wanted += [Event(row) for row in events.by_id(tx, one.key)]
            case _:
                pass
    return tell_events(tx, wanted, limit)


def tell_events(tx: Tx, found: Sequence[Event], limit: int) -> Lookup:
    """Everything that happened to some events, the first of them in the order of publishing."""
    ordered = list({event.row.seq: event for event in sorted(found, key=lambda event: event.row.seq)}.values())
    shown = ordered[:limit]
    ids = {event.event_id for event in shown if event.event_id}
    entries = [_publishing_entry(event) for event in shown]
    pending: list[Pending] = []
    for row in deliveries.of_events(tx, ids, limit) if ids else ():
        if row["attempts"] or row["lost"]:
            entries.append(_failure_entry(row))
        if row["state"] != "dead":
            pending.append(_waiting(row))
    dead = dead_letters.of_events(tx, ids, limit) if ids else []
    for letter in dead:
        entries += _letter(tx, letter)
        if letter.state.value == "open":
            pending.append(_unread(letter))
    over = {letter.letter_id for letter in dead if letter.state.value == "discarded"}
    steps = hops.of_events(tx, ids, limit) if ids else []
    counted = {
        (entry.detail.get("group"), entry.related[0].key) for entry in entries if entry.what == "delivery_failed"
    }
    entries += [_attempt(n, hop) for n, hop in enumerate(steps) if _is_past_attempt(hop, counted)]
    entries += _handling(tx, shown, over, steps)
    origins = [related for event in shown for related in _origins(event.envelope)[:1]]
    return Lookup(
        kinds=[], entries=entries, pending=pending, follow=list(dict.fromkeys(origins)), complete=len(ordered) <= limit
    )


def _by_idempotency_keys(tx: Tx, wanted: Sequence[str], limit: int) -> list[Event]:
    exact = set(wanted)
    found = (Event(row) for row in events.by_idempotency_keys(tx, wanted, limit))
    return [event for event in found if event.envelope and event.envelope.idempotency_key in exact]


def _of_letter(tx: Tx, group: str, event_id: str) -> list[Event]:
    if not dead_letters.by_id(tx, [letter_id(group, event_id)]):
        return []
    return [Event(row) for row in events.by_id(tx, event_id)]


def _candidate(kind: str, key: str, found: Sequence[Event]) -> Candidate:
    types = sorted({event.row.event_type for event in found})
    label = f"{types[0]}" if len(types) == 1 else f"{types[0]} and {len(types) - 1} other types"
    seqs = ",".join(str(event.row.seq) for event in found)
    return Candidate(engine=Engine.BUS, kind=kind, key=key, label=label, count=len(found), subject=f"bus:{seqs}")


def _related_keys(envelope: Envelope) -> list[Related]:
    found = [
        Related(relation="event", kind="bus.event_id", key=envelope.event_id),
        Related(relation="same trace", kind="bus.trace_id", key=envelope.trace_id),
        Related(relation="same correlation", kind="bus.correlation_id", key=envelope.correlation_id),
        Related(relation="idempotency key", kind="bus.idempotency_key", key=envelope.idempotency_key),
    ]
    if envelope.causation_id:
        found.append(Related(relation="caused by", kind="bus.event_id", key=envelope.causation_id))
    return [*found, *_origins(envelope)]


def _origins(envelope: Envelope | None) -> list[Related]:
    """The keys of the engine that published the event."""
    if envelope is None:
        return []
    payload = envelope.payload
    match envelope.event_type.partition(".")[0]:
        case "attribution":
            found = [("attribution.recordKey", payload.get("recordKey"))]
        case "ingest":
            batch = f"{payload['run_id']}/{payload['batch_no']}" if "batch_no" in payload else None
            found = [
                ("ingest.record", payload.get("record_key")),
                ("ingest.batch", batch),
                ("ingest.run", payload.get("run_id")),
            ]
        case _:
            found = [
                ("studio.job", payload.get("job_id")),
                ("studio.run", payload.get("run_id")),
                ("studio.task", payload.get("task_id")),
                ("studio.artifact", payload.get("sha256")),
            ]
    return [
        Related(relation="origin", kind=kind, key=key) for kind, key in found if isinstance(key, str) and len(key) > 0
    ]


def _publishing_entry(event: Event) -> Entry:
    envelope, row = event.envelope, event.row
    if envelope is None:
        return Entry(
            id=f"bus.published.{row.seq}",
            at=row.published_at,
            engine=Engine.BUS,
            shape=Shape.OUT,
            what="event_published",
            text=f"{row.event_type} was published; its body is past its retention.",
            state="purged",
            paragraph="c-1",
            related=[Related(relation="event", kind="bus.event_id", key=event.event_id)] if event.event_id else [],
        )
    return Entry(
        id=f"bus.published.{row.seq}",
        at=row.published_at,
        engine=Engine.BUS,
        shape=Shape.OUT,
        what="event_published",
        text=f"{envelope.producer} published {envelope.event_type} {envelope.event_version}.",
        state="published",
        rule_version=envelope.event_version,
        paragraph="c-1",
        detail={
            "event_id": envelope.event_id,
            "event_type": envelope.event_type,
            "producer": envelope.producer,
            "tenant_id": envelope.tenant_id,
            "project_id": envelope.project_id,
            "occurred_at": envelope.occurred_at,
            "payload": envelope.payload,
        },
        related=_related_keys(envelope),
    )


def _is_past_attempt(hop: hops.Hop, waiting: Collection[tuple[Any, str]]) -> bool:
    """Whether an attempt failed whose event no longer waits: a waiting event shows its attempts in its own row."""
    return hop.what is hops.HopKind.ATTEMPT_FAILED and (hop.group, hop.event_id) not in waiting


def _attempt(number: int, hop: hops.Hop) -> Entry:
    code, error = str(hop.detail.get("error_code", "")), str(hop.detail.get("error_detail") or "")
    return Entry(
        id=f"bus.attempt.{hop.group}.{hop.event_id}.{number}",
        at=hop.at,
        engine=Engine.BUS,
        shape=Shape.RULE,
        what="attempt_failed",
        text=f"Attempt {hop.detail.get('attempt')} of group {hop.group} failed{ended_by(error)}",
        state="failed",
        code=code,
        cause=error,
        code_text=_TEXTS.get(code, ""),
        paragraph="c-6",
        detail={"group": hop.group, "by": hop.by, **hop.detail},
        related=[Related(relation="event", kind="bus.event_id", key=hop.event_id)],
    )


def _handling(tx: Tx, found: Iterable[Event], discarded: Collection[str], steps: Sequence[hops.Hop]) -> list[Entry]:
    """Which groups have handled the events, as far as their inboxes reach back; one that discarded it has not.

    With the rows that a handler declared as written, and the program that handled it, where it was one elsewhere.
    """
    more = {
        (hop.group, hop.event_id): {**({"by": hop.by} if hop.by else {}), **hop.detail}
        for hop in steps
        if hop.what is hops.HopKind.HANDLED
    }
    by_type: dict[str, set[str]] = {}
    for event in found:
        if keys.is_event_id(event.event_id):
            by_type.setdefault(event.row.event_type, set()).add(event.event_id)
    readers = {(group, event_type) for group, event_type, _ in groups.subscriptions(tx) if event_type in by_type}
    return [
        Entry(
            id=f"bus.handled.{group}.{event_id}",
            at=at,
            engine=Engine.BUS,
            shape=Shape.WRITTEN,
            what="event_handled",
            text=f"Group {group} handled {event_type}.",
            state="done",
            paragraph="c-3",
            detail={"group": group, **more.get((group, event_id), {})},
            related=[Related(relation="event", kind="bus.event_id", key=event_id)],
        )
        for group, event_type in sorted(readers)
        for event_id, at in deliveries.handled_at(tx, group, by_type[event_type]).items()
        if letter_id(group, event_id) not in discarded
    ]


def _of(event_id: str, group: str) -> list[Related]:
    return [
        Related(relation="event", kind="bus.event_id", key=event_id),
        Related(relation="dead letter", kind="bus.dead_letter", key=letter_id(group, event_id)),
    ]


def _failure_entry(row: Mapping[str, Any]) -> Entry:
    code = row["error_code"] or ""
    return Entry(
        id=f"bus.failed.{row['name']}.{row['event_id']}",
        at=row["last_failed_at"] or row["published_at"],
        engine=Engine.BUS,
        shape=Shape.RULE,
        what="delivery_failed",
        text=f"Group {row['name']} failed to handle the event, {times(row['attempts'] + row['lost'])} so far"
        + ended_by(row["error_detail"]),
        state=row["state"],
        code=code,
        cause=row["error_detail"] or "",
        code_text=_TEXTS.get(code, ""),
        paragraph="c-6",
        detail={"group": row["name"], "attempts": row["attempts"], "error_detail": row["error_detail"] or ""},
        related=[Related(relation="event", kind="bus.event_id", key=row["event_id"])],
    )


def _waiting(row: Mapping[str, Any]) -> Pending:
    due = None if row["due_at"] >= FAR_FUTURE else max(row["due_at"], row["published_at"])
    return Pending(
        engine=Engine.BUS,
        what="delivery",
        text=f"Group {row['name']} has yet to handle the event.",
        due=due,
        state=row["state"],
        related=[Related(relation="event", kind="bus.event_id", key=row["event_id"])],
    )


def _unread(letter: DeadLetter) -> Pending:
    act = f"`patra bus replay {letter.group} {letter.event_id}`"
    return Pending(
        engine=Engine.BUS,
        what="dead_letter",
        text=f"An operator replays ({act}) or discards the dead letter of group {letter.group}.",
        due=None,
        state=letter.state.value,
        related=_of(letter.event_id, letter.group),
    )


def _letter(tx: Tx, letter: DeadLetter) -> list[Entry]:
    found = [
        Entry(
            id=f"bus.letter.{letter.letter_id}",
            at=letter.last_failed_at,
            engine=Engine.BUS,
            shape=Shape.WRITTEN,
            what="dead_letter_written",
            text=f"The event became a dead letter of group {letter.group}, tried {times(letter.attempts)}"
            + ended_by(letter.error_detail),
            state=letter.state.value,
            code=letter.error_code,
            cause=letter.error_detail,
            code_text=_TEXTS.get(letter.error_code, ""),
            paragraph="c-6",
            detail={
                "group": letter.group,
                "attempts": letter.attempts,
                "error_detail": letter.error_detail,
                "reason": letter.reason,
                "replay_count": letter.replay_count,
                "replayed_by": letter.replayed_by,
                "closed_by": letter.closed_by,
                "close_reason": letter.close_reason,
            },
            related=_of(letter.event_id, letter.group),
        )
    ]
    for number, move in enumerate(history(tx, [letter.letter_id])):
        found.append(
            Entry(
                id=f"bus.letter.{letter.letter_id}.{number}",
                at=move.at,
                engine=Engine.BUS,
                shape=Shape.ACT if move.to in {"replaying", "discarded"} else Shape.WRITTEN,
                what=f"dead_letter_{move.to}",
                text=f"The dead letter of group {letter.group} went from {move.was} to {move.to}.",
                state=move.to,
                code=move.reason,
                code_text=_TEXTS.get(move.reason, ""),
                rule_version=move.rule_version,
                paragraph="c-6",
                detail={"group": letter.group},
                related=_of(letter.event_id, letter.group),
            )
        )
    return found


def _refusal(row: events.RefusalRow) -> Entry:
    return Entry(
        id=f"bus.refused.{row.event_id}.{row.code}.{row.place}.{row.first_at}",
        at=row.first_at,
        engine=Engine.BUS,
        shape=Shape.RULE,
        what="publish_refused",
        text=f"{row.event_type or 'An event'} of {row.producer or 'someone unnamed'} was refused, {times(row.count)}"
        + ended_by(fault_at(row.place, row.detail)),
        state="refused",
        code=row.code,
        cause=fault_at(row.place, row.detail),
        code_text=_TEXTS.get(row.code, ""),
        paragraph=_PARAGRAPHS.get(row.code, "c-1"),
        detail={"place": row.place, "detail": row.detail, "last_at": row.last_at, "count": row.count},
        related=[Related(relation="event", kind="bus.event_id", key=row.event_id)] if row.event_id else [],
    )
