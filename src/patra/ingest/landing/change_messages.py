"""What others hear of a batch and of a halted source, as messages of the outbox (ch. 9.4, 12.6)."""

from typing import Literal

import msgspec

from patra.ingest.landing.records import Sorted
from patra.ingest.landing.store import RecordOrigin
from patra.kernel import outbox

CHANNEL = "ingest.record"
"""The outbox channel of changed records; the bus publishes each as `ingest.record.changed`."""
HALTS = "ingest.source"
"""The outbox channel of sources that a fatal error halted; the bus publishes them as `ingest.source.halted`."""


class Change(msgspec.Struct, frozen=True, array_like=True):
    """A record that was written: which version of it; its content stays here."""

    provider_id: str
    updated_at: int
    version: str | None
    deleted: bool
    action: Literal["insert", "update"]
    content_hash: str


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch has changed, as one message: rows of the outbox would cost as much as the records themselves."""

    source: str
    endpoint: str
    expr_hash: str
    run_id: str
    batch_no: int
    records: list[Change]


class Halt(msgspec.Struct, frozen=True, kw_only=True):
    """An endpoint that a fatal error halted, which run met it, and what to do."""

    source: str
    endpoint: str
    level: str
    code: str
    detail: str
    advice: str
    run_id: str


_encode = msgspec.json.Encoder().encode


def message_of(place: RecordOrigin, out: Sorted) -> outbox.Message | None:
    """What the bus is to hear of a batch; nothing where it changed nothing. Batches of an endpoint leave in order."""
    new = [Change(r.id, r.updated_at, r.version, r.deleted, "insert", r.content_hash) for r in out.new]
    newer = [Change(r.id, r.updated_at, r.version, r.deleted, "update", r.content_hash) for r, _ in out.newer]
    if not new and not newer:
        return None
    changes = Changes(
        source=place.source,
        endpoint=place.endpoint,
        expr_hash=place.expr_hash,
        run_id=place.run_id,
        batch_no=place.batch_no,
        records=new + newer,
    )
    return outbox.Message(
        group=f"{place.source}/{place.endpoint}", key=f"{place.run_id}.b{place.batch_no}", payload=_encode(changes)
    )


def halt_message(halt: Halt, now: int) -> outbox.Message:
    """What the bus is to hear of a halted endpoint; those of a source leave in order."""
    key = f"{halt.source}/{halt.endpoint}@{now}.{halt.run_id}"
    return outbox.Message(group=halt.source, key=key, payload=_encode(halt))
