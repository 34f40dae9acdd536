"""Turns messages of the ingest outbox into events: one per changed record and per halted endpoint (ch. 11.1, 12).

A message names all records that a batch has changed, or an endpoint that a fatal error halted. Ingest and bus do
not know each other: what one says is put into the words of the other here. A message that is relayed twice gives
the same idempotency keys both times, so the bus keeps one event of each record and version.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from patra.bus.bus import Bus
from patra.bus.catalogue.reasons import TEMPORARY, Reason
from patra.bus.publishing.envelope import Envelope
from patra.bus.publishing.publish import Outcome, Published
from patra.bus.store import events
from patra.ingest.landing.change_messages import CHANNEL, HALTS, Change, Changes, Halt
from patra.kernel import outbox
from patra.kernel.canonical import sha256_hex
from patra.kernel.clock import MINUTE, SECOND, format_instant
from patra.kernel.db import Database, Tx
from patra.kernel.errors import StoreBusy
from patra.kernel.retry import DelayTable

EVENT_TYPE = "ingest.record.changed"
HALTED = "ingest.source.halted"
TENANT = "patra"
MAX_KEY_CHARS = 256  # characters; the bus takes no longer one
POLICY = outbox.Policy(
    delays=DelayTable((SECOND, 5 * SECOND, 30 * SECOND, MINUTE)),
    window=None,  # a frozen type is waited for: a change that is committed is never given up
    groups=16,  # a group is an endpoint, a message a batch of it: one relay batch is a few thousand events
    per_group=4,
)

MakeEvents = Callable[[Bus, outbox.Pending], list[Envelope] | outbox.Refused]

_decode = msgspec.json.Decoder(Changes).decode
_decode_halt = msgspec.json.Decoder(Halt).decode


def payload(changes: Changes, one: Change) -> dict[str, Any]:
    """A changed record, as the contract of the event says it."""
    return {
        "provenance_code": changes.source,
        "endpoint_name": changes.endpoint,
        "provider_id": one.provider_id,
        "record_key": f"{changes.source}|{changes.endpoint}|{one.provider_id}",
        "change": "created" if one.action == "insert" else "updated",
        "updated_at": format_instant(one.updated_at),
        "deleted": one.deleted,
        "content_hash": one.content_hash,
        "expr_hash": changes.expr_hash,
        "run_id": changes.run_id,
        "batch_no": changes.batch_no,
    }


def change_key(changes: Changes, one: Change) -> str:
    """The idempotency key of this change of a record: the same when it is published again."""
    version = f"{one.updated_at}.{one.version or ''}.{changes.expr_hash[:8]}"
    return f"{changes.source}/{changes.endpoint}/{one.provider_id}@{version}.{changes.run_id}.{changes.batch_no}"


def idempotency_key(key: str) -> str:
    """The key of the change; its hash where a provider's id makes it something that is not a name on the bus."""
    return key if len(key) <= MAX_KEY_CHARS and key.isprintable() else sha256_hex(key)


def envelopes(bus: Bus, message: outbox.Pending) -> list[Envelope] | outbox.Refused:
    """The events of a message: of the source as their project, traced by the run that landed the records."""
    try:
        changes = _decode(message.payload)
    except msgspec.DecodeError:
        return outbox.Refused(Reason.PAYLOAD_INVALID.value)
    return [
        bus.envelope(
            EVENT_TYPE,
            payload(changes, one),
            tenant_id=TENANT,
            project_id=changes.source,
            trace_id=changes.run_id,
            correlation_id=changes.run_id,
            idempotency_key=idempotency_key(change_key(changes, one)),
            occurred_at=message.appended_at,
        )
        for one in changes.records
    ]


def halt_events(bus: Bus, message: outbox.Pending) -> list[Envelope] | outbox.Refused:
    """The event of a halt: what happened, and how to lift it."""
    try:
        said = _decode_halt(message.payload)
    except msgspec.DecodeError:
        return outbox.Refused(Reason.PAYLOAD_INVALID.value)
    lift = f"`patra ingest lift {said.source} {said.endpoint}`"
    facts = {
        "provenance_code": said.source,
        "endpoint_name": said.endpoint,
        "error_level": said.level,
        "error_code": said.code,
        "message": said.detail[:10_000],
        "halted_at": format_instant(message.appended_at),
        "run_id": said.run_id,
        "lift_advice": f"{said.advice[:1500]} ({lift})" if said.advice else lift,
    }
    return [
        bus.envelope(
            HALTED,
            facts,
            tenant_id=TENANT,
            project_id=said.source,
            trace_id=said.run_id,
            correlation_id=said.run_id,
            idempotency_key=idempotency_key(message.key),
            occurred_at=message.appended_at,
        )
    ]


def in_line(messages: Sequence[outbox.Pending], outcomes: Sequence[outbox.Outcome]) -> list[outbox.Outcome]:
    """What follows a message that must wait, in its group, waits with it."""
    waiting: set[bytes] = set()
    answers: list[outbox.Outcome] = []
    for message, outcome in zip(messages, outcomes, strict=True):
        answers.append(outbox.Untried() if message.group_key in waiting else outcome)
        if isinstance(outcome, outbox.Retry):
            waiting.add(message.group_key)
    return answers


def together(outcomes: Sequence[outbox.Outcome]) -> outbox.Outcome:
    """What becomes of a message, from what became of its events: the first that must wait, else the first refused."""
    for kind in (outbox.Retry, outbox.Refused):
        if (found := next((one for one in outcomes if isinstance(one, kind)), None)) is not None:
            return found
    return outbox.Delivered()


def publishing(db: Database, bus: Bus, event_type: str = EVENT_TYPE, make: MakeEvents = envelopes) -> outbox.Deliver:
    """A delivery that publishes a batch of messages in one transaction."""

    def deliver(messages: Sequence[outbox.Pending]) -> list[outbox.Outcome]:
        made = [make(bus, message) for message in messages]
        ready = [event for one in made if isinstance(one, list) for event in one]
        try:
            said = iter(db.run(lambda tx: _publish_ready(tx, bus, event_type, ready)))
        except StoreBusy as error:
            said = iter([outbox.Retry(error.code)] * len(ready))
        answers = [together([next(said) for _ in one]) if isinstance(one, list) else one for one in made]
        return in_line(messages, answers)

    return deliver


def _publish_ready(tx: Tx, bus: Bus, event_type: str, ready: Sequence[Envelope]) -> Sequence[outbox.Outcome]:
    if event_type in events.routing(tx, {event_type}).frozen:  # asked first: the bus keeps a row for every refusal
        return [outbox.Retry(Reason.TYPE_FROZEN.value)] * len(ready)
    return [_outcome(one) for one in bus.publish_many(tx, ready, publisher=bus.catalogue.types[event_type].producer)]


def _outcome(said: Outcome) -> outbox.Outcome:
    if isinstance(said, Published):
        return outbox.Delivered()
    return outbox.Retry(said.code.value) if said.code in TEMPORARY else outbox.Refused(said.code.value)


def relays(db: Database, bus: Bus) -> dict[str, outbox.Relay]:
    """By the name of the loop that turns it."""
    return {
        "ingest.relay": outbox.Relay(db, CHANNEL, publishing(db, bus), POLICY, bus.clock),
        "ingest.halts": outbox.Relay(db, HALTS, publishing(db, bus, HALTED, halt_events), POLICY, bus.clock),
    }
