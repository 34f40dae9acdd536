"""Decides from records of a batch that is done again how the way into the store would end (ch. 14.9.2).

The full chain: rows that are still as the batch left them are taken out and everything is put in again as it was then,
records and outbox message, in one transaction that never commits. It needs a permission; nothing of
it stays.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from patra.ingest.landing.batch_commit import batch_key
from patra.ingest.landing.change_messages import CHANNEL, message_of
from patra.ingest.landing.records import Incoming, Sorted
from patra.ingest.landing.store import Q, RecordOrigin, before, store_records
from patra.kernel import outbox
from patra.kernel.db import Database, Tx


class Rehearsal(msgspec.Struct, frozen=True, kw_only=True):
    """How it would end. `own`: rows that are still as the batch left them."""

    own: int
    differing: list[str]
    """Rows of its own that would be written otherwise now."""
    wrote: dict[str, int]
    """By the rule of 11.1; rows that later batches have written over are equal or older, and left alone."""
    found: bool
    """Whether the same batch, committed a second time, would find the first and change nothing."""


class _Undone(Exception):  # noqa: N818  ends the transaction; never leaves this module
    def __init__(self, found: Rehearsal) -> None:
        self.found = found


def rehearse(
    db: Database,
    place: RecordOrigin,
    before_key: str | None,
    records: Sequence[Incoming],
    now: int,
    *,
    remap: bool,
    by_content: bool,
) -> Rehearsal:
    """Go the whole way, and undo it."""

    def work(tx: Tx) -> None:
        raise _Undone(_rehearse_gone(tx, place, before_key, records, now, remap=remap, by_content=by_content))

    try:
        db.run(work)
    except _Undone as undone:
        return undone.found
    raise AssertionError("unreachable")


def _rehearse_gone(
    tx: Tx,
    place: RecordOrigin,
    before_key: str | None,
    records: Sequence[Incoming],
    now: int,
    *,
    remap: bool,
    by_content: bool,
) -> Rehearsal:
    there = before(tx, place, batch_key(place.run_id, place.batch_no, before_key))
    mine: dict[str, Any] = {
        "source": place.source,
        "endpoint": place.endpoint,
        "run_id": place.run_id,
        "batch_no": place.batch_no,
    }
    rows = [(one,) for one in sorted({record.id for record in records})]
    own = {row[0]: tuple(row[1:]) for row in tx.fetch(Q["records_of_batch"], mine, rows=rows)}
    tx.execute(Q["records_take_out"], mine, rows=[(one,) for one in sorted(own)])
    out = Sorted(new=[], newer=[], equal=[], older=[])
    if records:
        out = store_records(tx, place, records, now, remap=remap, by_content=by_content)
    message = message_of(place, out)
    if message is not None:
        outbox.append(tx, CHANNEL, [message], now)
    written = {r.id: (r.updated_at, r.version, r.content_hash) for r in out.new}
    return Rehearsal(
        own=len(own),
        differing=sorted(one for one, was in own.items() if written.get(one) != was),
        wrote={"inserted": len(out.new), "updated": len(out.newer), "equal": len(out.equal), "older": len(out.older)},
        found=bool(there.there),
    )
