"""Turns the answers to single events into the answer to their batch (§3.8.6, §3.8.7, F10)."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, cast

import msgspec

from patra.attribution.contract import keys
from patra.attribution.contract.reasons import RETRYABLE, Reason
from patra.attribution.decision.closure_rules import Ack
from patra.attribution.intake.envelope import Envelope, as_read, display_text
from patra.kernel.clock import format_instant


class AckItem(msgspec.Struct, frozen=True, gc=False):
    """`ackItemLite`."""

    eventId: Any  # noqa: N815  names of the specification
    eventIndex: int  # noqa: N815
    ackStatus: Ack  # noqa: N815
    ackReasonCode: Reason  # noqa: N815
    retryable: bool
    serverEventKey: str  # noqa: N815
    extensions: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    """Of a rejected event, `fieldPath` and `expected`: which field was wrong, and what it should have been; `alsoWrong`
    names further required fields that are missing.
    """


class BatchAck(msgspec.Struct, frozen=True):
    """`eventBatchAckLite`."""

    batchId: str  # noqa: N815
    receivedAt: str  # noqa: N815
    overallStatus: str  # noqa: N815
    ackItems: list[AckItem]  # noqa: N815


_index = attrgetter("eventIndex")
encode_ack = msgspec.json.Encoder(enc_hook=display_text).encode


def batch_ack(envelope: Envelope, received_at: int, items: Sequence[AckItem]) -> BatchAck:
    """The items in the order of the request, and the result of the batch as a whole."""
    return BatchAck(
        envelope.batch_id,
        format_instant(received_at),
        overall_status([answer.ackStatus for answer in items]),
        sorted(items, key=_index),
    )


def overall_status(statuses: Sequence[Ack]) -> str:
    if all(status is Ack.ACCEPTED for status in statuses):
        return "accepted_all"
    return "rejected_all" if all(status is Ack.REJECTED for status in statuses) else "partial_success"


def not_taken(envelope: Envelope, received_at: int, sent: Sequence[Any], code: Reason) -> BatchAck:
    """The answer when nothing of a well-formed batch could be taken: every item may be sent again (F10)."""
    items = [
        AckItem(
            cast("dict[str, Any]", event).get("eventId") if isinstance(event := as_read(one), dict) else None,
            index,
            Ack.REJECTED,
            code,
            code in RETRYABLE,
            keys.server_event_key_without_dedup(envelope.app_id, envelope.batch_id, index),
        )
        for index, one in enumerate(sent)
    ]
    return batch_ack(envelope, received_at, items)
