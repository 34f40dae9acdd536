"""Turns output records of attribution into events `attribution.record.emitted`: the bus as an archive (F21).

Attribution and bus do not know each other: what one writes is put into the words of the other here. The key and status
of a record are the idempotency key, so a record that is handed over twice is one event; another payload under the same
key is refused by the bus.
"""

from collections.abc import Sequence
from typing import Any

from patra.attribution.contract.reasons import Reason
from patra.attribution.decision.output_records import Record
from patra.attribution.delivery.port import Outcome, Rejected, Retry, Written
from patra.bus.bus import Bus
from patra.bus.catalogue.reasons import TEMPORARY
from patra.bus.publishing.envelope import Envelope
from patra.bus.publishing.publish import Outcome as Said
from patra.bus.publishing.publish import Published
from patra.bus.store import events
from patra.kernel.canonical import sha256_hex
from patra.kernel.db import Database, Tx
from patra.kernel.errors import StoreBusy

EVENT_TYPE = "attribution.record.emitted"
TENANT = "patra"
PROJECT = "attribution"
MAX_NAME_CHARS = 200  # characters that a trace may have on the bus; another is named by its hash


class BusArchive:
    """Publishes records; they are written once the event is in the store."""

    def __init__(self, db: Database, bus: Bus) -> None:
        self._db = db
        self._bus = bus

    def write(self, records: Sequence[Record]) -> list[Outcome]:
        made = [event_of(self._bus, record) for record in records]
        try:
            return self._db.run(lambda tx: self._publish_records(tx, made))
        except StoreBusy:
            return [Retry(Reason.ARCHIVE_UNAVAILABLE)] * len(records)

    def _publish_records(self, tx: Tx, made: Sequence[Envelope]) -> list[Outcome]:
        if EVENT_TYPE in events.routing(tx, {EVENT_TYPE}).frozen:  # asked first: the bus keeps a row for every refusal
            return [Retry(Reason.ARCHIVE_UNAVAILABLE)] * len(made)
        producer = self._bus.catalogue.types[EVENT_TYPE].producer
        return [_outcome(said) for said in self._bus.publish_many(tx, made, publisher=producer)]

    def close(self) -> None:
        """The store and the bus belong to the process."""


def event_of(bus: Bus, record: Record) -> Envelope:
    """A record as the contract of the event says it, with the fact or audit it refers to."""
    payload: dict[str, Any] = {**record.body, "payload": record.payload}
    trace = _name(str(record.body["sourceKeys"]["traceKey"]))
    return bus.envelope(
        EVENT_TYPE,
        payload,
        tenant_id=TENANT,
        project_id=PROJECT,
        trace_id=trace,
        correlation_id=trace,
        idempotency_key=f"{record.key}.{record.status.value}",
        occurred_at=record.at,
    )


def _name(text: str) -> str:
    return text if 0 < len(text) <= MAX_NAME_CHARS and text.isascii() and text.isprintable() else sha256_hex(text)


def _outcome(said: Said) -> Outcome:
    if isinstance(said, Published):
        return Written()
    return Retry(Reason.ARCHIVE_UNAVAILABLE) if said.code in TEMPORARY else Rejected(said.code.value)
