"""Rows of the store go in; decisions with the status of their records, and closures, come out."""

from collections.abc import Collection, Iterator, Sequence

import msgspec

from patra.attribution.closure import Action, Closure, Status
from patra.attribution.decide import ITEM_BITS
from patra.attribution.facts import Decision, audit_key_of, billing_key_of, decode_decision
from patra.attribution.records import Record, Statuses, records
from patra.attribution.store import Q, closure_of
from patra.kernel.canonical import key16
from patra.kernel.db import Database, Row, Tx

PAGE = 5000


class Archived(msgspec.Struct, frozen=True, kw_only=True):
    """A decision as the store holds it: its number, where its records stand, how often it was made (F20)."""

    id: int
    decision: Decision
    statuses: Statuses
    count: int
    settled_code: str | None = None
    """Why an archive outside the store did not take one of its records."""

    @property
    def records(self) -> list[Record]:
        return records(self.decision, self.statuses)


def decisions_by_id(tx: Tx, ids: Collection[int]) -> list[Archived]:
    rows = tx.fetch(Q["decisions_by_id"], rows=[(number,) for number in sorted(set(ids))])
    return _archived(tx, sorted(rows, key=lambda row: row[0]))


def decisions_of_items(tx: Tx, numbers: Collection[int]) -> list[Archived]:
    """All that was decided in some items of the log, in its order."""
    ranges = [(number << ITEM_BITS, (number + 1) << ITEM_BITS) for number in sorted(set(numbers))]
    return _archived(tx, sorted(tx.fetch(Q["decisions_of_items"], rows=ranges), key=lambda row: row[0]))


def decisions_after(tx: Tx, after: int, limit: int) -> list[Archived]:
    """The decisions that follow a number, in their order."""
    return _archived(tx, tx.fetch(Q["decisions_after"], {"after": after, "limit": limit}))


def every_decision(db: Database) -> Iterator[Archived]:
    """All decisions in their order, read page by page."""
    after = -1
    while found := db.read(lambda tx, after=after: decisions_after(tx, after, PAGE)):
        yield from found
        after = found[-1].id


def every_closure(db: Database) -> Iterator[Closure]:
    """All closures in the order of their keys in the store, read page by page."""
    after = b""
    while rows := db.read(lambda tx, after=after: tx.fetch(Q["closures_after"], {"after": after, "limit": PAGE})):
        yield from map(closure_of, rows)
        after = bytes(rows[-1][0])


def is_empty(tx: Tx) -> bool:
    """Whether nothing ever came in."""
    return not tx.fetch(Q["log_page"], {"after": 0, "limit": 1})


def something_due(tx: Tx, now: int) -> bool:
    return bool(tx.fetch(Q["something_due"], {"now": now}))


def _archived(tx: Tx, rows: Sequence[Row]) -> list[Archived]:
    """Join what stands in tables of its own: the billable record's status, and how often an event was dropped."""
    decisions = [decode_decision(row[4]) for row in rows]
    billing = [key16(key) if (key := billing_key_of(decision)) else None for decision in decisions]
    dropped = [
        key16(audit_key_of(decision)) if decision.action == Action.DROP.value else None for decision in decisions
    ]
    status = _by_key(tx, "att_billable", "status", billing)
    counts = _by_key(tx, "att_drop", "count", dropped)
    return [
        Archived(
            id=number,
            decision=decision,
            statuses=Statuses(
                Status(audit),
                Status(status[key]) if (key := billing[i]) in status else None,
                Status(attribution) if attribution else None,
            ),
            count=int(counts.get(dropped[i], 1)),
            settled_code=code,
        )
        for i, ((number, audit, attribution, code, _), decision) in enumerate(zip(rows, decisions, strict=True))
    ]


def _by_key(tx: Tx, table: str, column: str, keys: Sequence[bytes | None]) -> dict[bytes | None, str | int]:
    found = tx.lookup(table, columns=("key", column), key=("key",), keys=[(key,) for key in keys if key is not None])
    return {bytes(key): value for key, value in found}
