"""The history of events in a group: the worker that got each, failed attempts, the result, and the rows written.

The row of a delivery is deleted when its event is handled, and its attempts with it. These rows stay for the timeline
until they are past their own retention.
"""

from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from patra.kernel.db import Queries, Tx

Q = Queries.load("patra.bus")


class HopKind(StrEnum):
    DELIVERED = "delivered"
    ATTEMPT_FAILED = "attempt_failed"
    HANDLED = "handled"


class NewHop(msgspec.Struct, frozen=True, kw_only=True):
    """`by` is who took, refused or acknowledged the event: a token's name, or empty for a process of the bus."""

    event_id: str
    group: str
    what: HopKind
    by: str = ""
    detail: dict[str, Any] = {}


class Hop(msgspec.Struct, frozen=True, kw_only=True):
    event_id: str
    group: str
    what: HopKind
    at: int
    by: str
    detail: dict[str, Any]


def record(tx: Tx, hops: Sequence[NewHop], now: int) -> None:
    """Write hops; none costs no statement."""
    if hops:
        rows = [(h.event_id, h.group, h.what.value, h.by, msgspec.json.encode(h.detail).decode()) for h in hops]
        tx.execute(Q["hops_record"], {"now": now}, rows=rows)


def of_events(tx: Tx, event_ids: Collection[str], limit: int = 1000) -> list[Hop]:
    """In the order in which they were written."""
    found = tx.fetch(Q["hops_of_events"], {"limit": limit}, rows=[(event_id,) for event_id in sorted(event_ids)])
    return [
        Hop(
            event_id=event_id,
            group=group,
            what=HopKind(what),
            at=at,
            by=by,
            detail=msgspec.json.decode(detail, type=dict[str, Any]),
        )
        for event_id, group, what, at, by, detail in found
    ]


def purge(tx: Tx, *, before: int, limit: int) -> int:
    return tx.execute(Q["hops_purge"], {"before": before, "limit": limit})
