"""Rows of the store go in; decisions with the status of their records, and closures, come out."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

import msgspec

from patra.attribution.closure import Action, Closure, Status
from patra.attribution.decide import ITEM_BITS
from patra.attribution.facts import Decision, audit_key_of
from patra.attribution.keys import half
from patra.attribution.pack import unpacked
from patra.attribution.records import RECORD, On, Record, Statuses, group_of, records
from patra.attribution.statements import Q
from patra.attribution.store import closure_of
from patra.kernel.canonical import key16
from patra.kernel.db import Database, Row, Tx

CHANNEL = "attribution.archive"
"""Of the outbox: decisions on their way to an archive outside the store."""
PAGE = 5000
_LAST = 2**63 - 1
_A_PACK = 50
"""Decisions that one item is expected to have; what is read at a time goes by it."""


class Archived(msgspec.Struct, frozen=True, kw_only=True):
    """A decision as the store holds it: its number, where its records stand, how often it was made (F20)."""

    id: int
    decision: Decision
    statuses: Statuses
    count: int
    settled_code: str | None = None
    """Why an archive outside the store did not take one of its records."""
    in_store: bool = True
    """The store itself was the archive when it was decided: no other has its records."""

    @property
    def records(self) -> list[Record]:
        return records(self.decision, self.statuses)


def decisions_by_id(tx: Tx, ids: Collection[int]) -> list[Archived]:
    wanted = set(ids)
    rows = _packs(tx, {number >> ITEM_BITS for number in wanted})
    return _archived(tx, [one for row in rows for one in _unpacked(row) if one.id in wanted])


def deliveries(tx: Tx) -> dict[str, int]:
    """How many decisions are on their way to an archive outside the store (`pending`), or were `given_up`."""
    return dict(tx.fetch(Q["deliveries"], {"channel": CHANNEL}))


def untold(tx: Tx, found: Sequence[Archived]) -> set[int]:
    """Which of some decisions have a superseded record that is still on its way to the archive as such."""
    rows = [
        (key16(group_of(one.decision)), str(one.id))
        for one in found
        if not one.in_store and one.statuses.attribution is Status.SUPERSEDED
    ]
    return {int(key) for (key,) in tx.fetch(Q["underway"], {"channel": CHANNEL}, rows=rows)} if rows else set()


Meets = Callable[[int, Decision], bool]
"""Whether a decision, by its number and what it says, is one that is asked for."""


def decisions_of_items(tx: Tx, items: Collection[int], meets: Meets) -> list[Archived]:
    """What was decided in some items of the log and meets what is asked for, in its order."""
    return _archived(tx, _meeting(_packs(tx, items), meets))


def decisions_from(tx: Tx, item: int, items: int, meets: Meets) -> tuple[list[Archived], int | None]:
    """The same of so many items from one on, whatever they are; and the item to go on with, if there are more."""
    rows = tx.fetch(Q["packs_from"], {"item": item, "limit": items})
    return _archived(tx, _meeting(rows, meets)), rows[-1][0] + 1 if len(rows) == items else None


def decisions_after(tx: Tx, after: int, limit: int) -> list[Archived]:
    """The decisions that follow a number, in their order."""
    found: list[_Born] = []
    item, packs = (after + 1) >> ITEM_BITS, limit // _A_PACK + 1
    while len(found) < limit and (rows := tx.fetch(Q["packs_from"], {"item": item, "limit": packs})):
        found += [one for row in rows for one in _unpacked(row) if one.id > after]
        item = rows[-1][0] + 1
    return _archived(tx, found[:limit])


def every_decision(db: Database) -> Iterator[Archived]:
    """All decisions in their order, read page by page."""
    after = -1
    while found := db.read(lambda tx, after=after: decisions_after(tx, after, PAGE)):
        yield from found
        after = found[-1].id


def every_closure(db: Database) -> Iterator[Closure]:
    """All closures, read page by page."""
    after = b""
    while found := db.read(lambda tx, after=after: closures_after(tx, after, PAGE)):
        yield from found
        after = place_of(found[-1])


def closures_after(tx: Tx, after: bytes, limit: int, state: str = "") -> list[Closure]:
    """Closures that follow a place, of one state or of any, in the order in which the store has them."""
    number = min(int.from_bytes(after, "big"), _LAST)
    rows = tx.fetch(Q["closures_page"], {"number": number, "key": after, "state": state, "limit": limit})
    return [closure_of(row) for row in rows]


def place_of(closure: Closure) -> bytes:
    """Where a closure stands: its number on SQLite, its key on PostgreSQL."""
    return closure.number.to_bytes(8, "big") if closure.number else closure.key


def is_empty(tx: Tx) -> bool:
    """Whether nothing ever came in."""
    return not tx.fetch(Q["log_page"], {"after": 0, "limit": 1})


def something_due(tx: Tx, now: int) -> bool:
    return bool(tx.fetch(Q["something_due"], {"now": now}))


class _Born(NamedTuple):
    """A decision, and whether its records were archived with it."""

    id: int
    decision: Decision
    archived: bool


def _packs(tx: Tx, items: Collection[int]) -> list[Row]:
    rows = tx.fetch(Q["packs_of_items"], rows=[(item,) for item in sorted(set(items))])
    return sorted(rows, key=lambda row: row[0])


def _unpacked(row: Row) -> list[_Born]:
    item, archived, body = row
    return [_Born(number, decision, bool(archived)) for number, decision in unpacked(item, bytes(body))]


def _meeting(rows: Sequence[Row], meets: Meets) -> list[_Born]:
    return [one for row in rows for one in _unpacked(row) if meets(one.id, one.decision)]


def _archived(tx: Tx, born: Sequence[_Born]) -> list[Archived]:
    """Join what stands in tables of its own: where records stand by now, and how often an event was dropped."""
    billed: list[Row] = [(one.id,) for one in born if one.decision.billable is not None]
    dropped = [half(audit_key_of(one.decision)) if one.decision.action == Action.DROP.value else None for one in born]
    status = dict(tx.fetch(Q["billables_by_id"], rows=billed))
    counts = _counts(tx, [key for key in dropped if key is not None])
    moved = {row[0]: row[1:] for row in tx.fetch(Q["statuses_by_id"], rows=[(one.id,) for one in born])}
    found: list[Archived] = []
    for i, one in enumerate(born):
        audit, attribution, code = moved.get(one.id, (None, None, None))
        birth = RECORD.target(Status.NEW, On.WRITTEN) if one.archived else Status.NEW
        fact = birth if one.decision.status == Status.NEW else Status(one.decision.status)
        found.append(
            Archived(
                id=one.id,
                decision=one.decision,
                statuses=Statuses(
                    Status(audit) if audit else birth,
                    Status(status[one.id]) if one.id in status else None,
                    None if one.decision.attribution is None else Status(attribution) if attribution else fact,
                ),
                count=counts.get(dropped[i], 1),
                settled_code=code,
                in_store=one.archived,
            )
        )
    return found


def _counts(tx: Tx, keys: Sequence[bytes]) -> dict[bytes | None, int]:
    found = tx.lookup("att_drop", columns=("key", "count"), key=("key",), keys=[(key,) for key in keys])
    return {bytes(key): count for key, count in found}
