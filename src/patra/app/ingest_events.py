"""Messages of the ingest outbox go in; events `ingest.record.changed` on the bus come out, one each (ingest ch. 11.1).

The ingest platform and the bus do not know each other: what one says of a changed record is put into the words of the
other here. A message that is relayed twice has the same idempotency key both times, so the bus keeps one event.
"""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from patra.bus.bus import Bus
from patra.bus.envelope import Envelope
from patra.bus.publish import Outcome, Published
from patra.bus.reasons import R
from patra.bus.store import events
from patra.ingest.commits import CHANNEL
from patra.kernel import outbox
from patra.kernel.canonical import sha256_hex
from patra.kernel.clock import MINUTE, SECOND
from patra.kernel.db import Database, Tx
from patra.kernel.errors import StoreBusy
from patra.kernel.retry import DelayTable

EVENT_TYPE = "ingest.record.changed"
TENANT = "patra"
LONGEST_KEY = 256  # characters; the bus takes no longer one
POLICY = outbox.Policy(
    delays=DelayTable((SECOND, 5 * SECOND, 30 * SECOND, MINUTE)),
    window=None,  # a frozen type is waited for: a change that is committed is never given up
    groups=1000,  # a group is a record: a bite has about as many messages
)


class Changed(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A changed record, as the ingest platform says it."""

    provenance_code: str
    endpoint_name: str
    provider_id: str
    updated_at: str
    deleted: bool
    action: Literal["insert", "update"]
    content_hash: str
    expr_hash: str
    run_id: str
    batch_no: int


_decode = msgspec.json.Decoder(Changed).decode


def payload(said: Changed) -> dict[str, Any]:
    """The same, as the contract of the event says it."""
    return {
        "provenance_code": said.provenance_code,
        "endpoint_name": said.endpoint_name,
        "provider_id": said.provider_id,
        "record_key": f"{said.provenance_code}|{said.endpoint_name}|{said.provider_id}",
        "change": "created" if said.action == "insert" else "updated",
        "updated_at": said.updated_at,
        "deleted": said.deleted,
        "content_hash": said.content_hash,
        "expr_hash": said.expr_hash,
        "run_id": said.run_id,
        "batch_no": said.batch_no,
    }


def idempotency_key(message_key: str) -> str:
    """The key of the message; its hash where a provider's id makes it something that is no name on the bus."""
    return message_key if len(message_key) <= LONGEST_KEY and message_key.isprintable() else sha256_hex(message_key)


def envelope(bus: Bus, message: outbox.Pending) -> Envelope | outbox.Refused:
    """The event of a message: of the source as its project, traced by the run that landed the record."""
    try:
        said = _decode(message.payload)
    except msgspec.DecodeError:
        return outbox.Refused(R.PAYLOAD_INVALID.value)
    return bus.envelope(
        EVENT_TYPE,
        payload(said),
        tenant_id=TENANT,
        project_id=said.provenance_code,
        trace_id=said.run_id,
        correlation_id=said.run_id,
        idempotency_key=idempotency_key(message.key),
        occurred_at=message.appended_at,
    )


def in_line(messages: Sequence[outbox.Pending], outcomes: Sequence[outbox.Outcome]) -> list[outbox.Outcome]:
    """What follows a message that must wait, in its group, waits with it."""
    waiting: set[bytes] = set()
    answers: list[outbox.Outcome] = []
    for message, outcome in zip(messages, outcomes, strict=True):
        answers.append(outbox.Untried() if message.group_key in waiting else outcome)
        if isinstance(outcome, outbox.Retry):
            waiting.add(message.group_key)
    return answers


def publishing(db: Database, bus: Bus) -> outbox.Deliver:
    """A delivery that publishes a bite of messages in one transaction."""

    def deliver(messages: Sequence[outbox.Pending]) -> list[outbox.Outcome]:
        made = [envelope(bus, message) for message in messages]
        ready = [one for one in made if isinstance(one, Envelope)]
        try:
            said = iter(db.run(lambda tx: _published(tx, bus, ready)))
        except StoreBusy as error:
            said = iter([outbox.Retry(error.code)] * len(ready))
        return in_line(messages, [next(said) if isinstance(one, Envelope) else one for one in made])

    return deliver


def _published(tx: Tx, bus: Bus, envelopes: Sequence[Envelope]) -> Sequence[outbox.Outcome]:
    if EVENT_TYPE in events.routing(tx, {EVENT_TYPE}).frozen:  # asked first: the bus keeps a row for every refusal
        return [outbox.Retry(R.TYPE_FROZEN.value)] * len(envelopes)
    return [
        _outcome(one) for one in bus.publish_many(tx, envelopes, publisher=bus.catalogue.types[EVENT_TYPE].producer)
    ]


def _outcome(said: Outcome) -> outbox.Outcome:
    if isinstance(said, Published):
        return outbox.Delivered()
    return outbox.Retry(said.code.value) if said.code is R.TYPE_FROZEN else outbox.Refused(said.code.value)


def relay(db: Database, bus: Bus) -> outbox.Relay:
    return outbox.Relay(db, CHANNEL, publishing(db, bus), POLICY, bus.clock)
