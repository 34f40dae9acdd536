"""Turns rows of the store into decisions with the status of their records, and closures."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from patra.attribution.contract.keys import half
from patra.attribution.decision.closure_rules import Action, Status
from patra.attribution.decision.closure_state import Closure, ClosureState
from patra.attribution.decision.decide import ITEM_BITS
from patra.attribution.decision.decisions import Decision, audit_key_of
from patra.attribution.decision.output_records import (
    RANK,
    RECORD,
    Record,
    RecordTransition,
    RecordType,
    Reissue,
    Statuses,
    group_of,
    record_keys,
    records,
    reissue_record,
)
from patra.attribution.storage.decision_codec import may_hold, unpack_decisions
from patra.attribution.storage.derived_keys import may_have
from patra.attribution.storage.sql import Q
from patra.attribution.storage.write import closure_of
from patra.kernel.canonical import key16
from patra.kernel.db import Database, Row, Tx
from patra.kernel.machine import Move, history

CHANNEL = "attribution.archive"
"""Of the outbox: decisions on their way to an archive outside the store."""
PAGE_DECISIONS = 5000
MAX_CLOSURES_READ = 5000
"""Closures that are looked through for a page of those that succeeded."""
_LAST = 2**63 - 1
_LAST_KEY = b"\xff" * 32
_A_PACK = 50
"""Decisions that one item is expected to have; what is read at a time goes by it."""


class Archived(msgspec.Struct, frozen=True, kw_only=True):
    """A decision as the store holds it: its number, where its records stand, how often it was made (F20)."""

    id: int
    decision: Decision
    statuses: Statuses
    count: int
    settled_code: str | None = None
    """Why an archive did not take one of its records."""
    settled_at: int | None = None
    """When an archive outside the store took them, or did not."""
    moves: dict[str, list[Move]] = {}
    """Moves of its records that were not their plain arrival, by record."""
    in_store: bool = True
    """The store itself was the archive when it was decided: no other has its records."""
    reissues: tuple[Reissue, ...] = ()
    """Records that an operator issued again, in their order."""
    superseded_told_at: int | None = None
    """When the archive was informed again that its attribution record was superseded."""

    @property
    def own_records(self) -> list[Record]:
        """The records that it was decided with; the reason of one that has moved is the code of its last move (F26)."""
        found = records(self.decision, self.statuses)
        return [_with_last_code(record, self.moves.get(record.key, ())) for record in found] if self.moves else found

    @property
    def reissued_records(self) -> list[Record]:
        found = [reissue_record(self.decision, issued) for issued in self.reissues]
        return [_with_last_code(record, self.moves.get(record.key, ())) for record in found]

    @property
    def records(self) -> list[Record]:
        """Its records, and behind them those that were issued again."""
        return [*self.own_records, *self.reissued_records] if self.reissues else self.own_records

    def last_status(self, kind: RecordType) -> Status | None:
        """Where the record of a type stands in its last issue; None if the decision has none."""
        issued = [one.status for one in self.reissues if one.type is kind]
        by_type = {
            RecordType.AUDIT: self.statuses.audit,
            RecordType.BILLABLE: self.statuses.billable,
            RecordType.ATTRIBUTION: self.statuses.attribution,
        }
        return issued[-1] if issued else by_type[kind]

    @property
    def is_superseded_untold(self) -> bool:
        """Whether the archive may not know that the attribution record was superseded."""
        told = self.settled_code is None or self.superseded_told_at is not None
        return self.statuses.attribution is Status.SUPERSEDED and not told

    @property
    def not_taken(self) -> list[RecordType]:
        """Types of records that the archive did not take, also in their last issue; not those born in conflict."""
        if self.settled_code is None:
            return []
        born = {RecordType.ATTRIBUTION} if self.decision.status != Status.NEW.value else set[RecordType]()
        return [kind for kind in RecordType if kind not in born and self.last_status(kind) is Status.CONFLICTED]


def decisions_by_id(tx: Tx, ids: Collection[int]) -> list[Archived]:
    wanted = set(ids)
    rows = _packs(tx, {number >> ITEM_BITS for number in wanted})
    return _archived_decisions(tx, [one for row in rows for one in _unpack_row(row) if one.id in wanted])


def deliveries(tx: Tx) -> dict[str, int]:
    """How many decisions are on their way to an archive outside the store (`pending`), or were `given_up`."""
    return dict(tx.fetch(Q["deliveries"], {"channel": CHANNEL}))


def untold_decisions(tx: Tx, found: Sequence[Archived]) -> set[int]:
    """Which of some decisions have a superseded record that is still on its way to the archive as such."""
    rows = [
        (key16(group_of(one.decision)), str(one.id))
        for one in found
        if not one.in_store and one.statuses.attribution is Status.SUPERSEDED
    ]
    return {int(key) for (key,) in tx.fetch(Q["underway"], {"channel": CHANNEL}, rows=rows)} if rows else set()


Meets = Callable[[int, Decision], bool]
"""Whether a decision, by its number and what it says, is one that is asked for."""


class DecisionFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which decisions are asked for."""

    meets: Meets
    text: bytes | None = None
    """What the row of every such decision holds, where that is known: the other decisions of a row are not decoded."""
    whole: Collection[int] = ()
    """Items whose decisions may be asked for although they do not hold the text."""
    hashed: bytes | None = None
    """How the hash begins that every such decision has as a key, or else it holds the text (`derived_keys`)."""

    def may_meet(self, row: Row) -> bool:
        """Whether any decision of a row can be asked for."""
        if self.text is None or row[0] in self.whole or may_hold(bytes(row[2]), self.text):
            return True
        return self.hashed is not None and may_have(row[0], bytes(row[2]), self.hashed)

    def of_row(self, row: Row) -> "list[_Born]":
        item, archived, body = row
        text = None if item in self.whole or self.hashed is not None else self.text
        found = unpack_decisions(item, bytes(body), text)
        return [_Born(number, one, bool(archived)) for number, one in found if self.meets(number, one)]


def decisions_of_items(tx: Tx, items: Collection[int], asked: DecisionFilter) -> list[Archived]:
    """What was decided in some items of the log and is asked for, in its order."""
    return _archived_decisions(tx, [one for row in _packs(tx, items) for one in asked.of_row(row)])


def decisions_from(tx: Tx, item: int, items: int, asked: DecisionFilter) -> tuple[list[Archived], int | None]:
    """The same of so many items from one on; and the item to go on with, if there are more."""
    rows = tx.fetch(Q["packs_from"], {"item": item, "limit": items})
    return _archived_decisions(tx, _held_decisions(rows, asked)), rows[-1][0] + 1 if len(rows) == items else None


def decisions_before(
    tx: Tx, before: int, after: int, items: int, asked: DecisionFilter
) -> tuple[list[Archived], int | None]:
    """The same of so many items between two, the last ones; and the item to go on before, if there are more."""
    rows = tx.fetch(Q["packs_before"], {"before": before, "after": after, "limit": items})
    return _archived_decisions(tx, _held_decisions(rows[::-1], asked)), rows[-1][0] if len(rows) == items else None


def _held_decisions(rows: Sequence[Row], asked: DecisionFilter) -> "list[_Born]":
    return [one for row in rows if asked.may_meet(row) for one in asked.of_row(row)]


def decisions_after(tx: Tx, after: int, limit: int) -> list[Archived]:
    """The decisions that follow a number, in their order."""
    found: list[_Born] = []
    item, packs = (after + 1) >> ITEM_BITS, limit // _A_PACK + 1
    while len(found) < limit and (rows := tx.fetch(Q["packs_from"], {"item": item, "limit": packs})):
        found += [one for row in rows for one in _unpack_row(row) if one.id > after]
        item = rows[-1][0] + 1
    return _archived_decisions(tx, found[:limit])


def every_decision(db: Database) -> Iterator[Archived]:
    """All decisions in their order, read page by page."""
    after = -1
    while found := db.read(lambda tx, after=after: decisions_after(tx, after, PAGE_DECISIONS)):
        yield from found
        after = found[-1].id


def every_closure(db: Database) -> Iterator[Closure]:
    """All closures, read page by page."""
    after = b""
    while found := db.read(lambda tx, after=after: closures_after(tx, after, PAGE_DECISIONS)):
        yield from found
        after = place_of(found[-1])


def closures_after(tx: Tx, after: bytes, limit: int, state: str = "") -> list[Closure]:
    """Closures that follow a place, of one state or of any, in the order in which the store has them."""
    number = min(int.from_bytes(after, "big"), _LAST)
    asked = {"number": number, "key": after, "limit": limit}
    match state:
        case ClosureState.OPEN.value:
            rows = tx.fetch(Q["open_closures_page"], asked)
        case ClosureState.CLOSED_FAILURE.value:
            rows = tx.fetch(Q["failed_closures_page"], asked)
        case _:
            rows = tx.fetch(Q["closures_page"], {**asked, "state": state})
    return [closure_of(row) for row in rows]


def succeeded_closures_after(tx: Tx, after: bytes, limit: int) -> tuple[list[Closure], bytes | None]:
    """Those that succeeded among some that follow a place, and the place behind these; None behind the last.

    They are most of all closures, so that they have no index of their own. Where they are few, a page is short.
    """
    number = min(int.from_bytes(after, "big"), _LAST)
    seen = tx.fetch(Q["closures_looked_through"], {"number": number, "key": after, "look": MAX_CLOSURES_READ - 1})
    until: int | bytes = seen[0][0] if seen else _LAST if tx.dialect == "sqlite" else _LAST_KEY
    rows = tx.fetch(Q["succeeded_closures_page"], {"number": number, "key": after, "until": until, "limit": limit})
    end = None if not seen else until.to_bytes(8, "big") if isinstance(until, int) else bytes(until)
    return [closure_of(row) for row in rows], end


def closures_by_deadline(tx: Tx, after: bytes, until: int, app: str, limit: int) -> list[Closure]:
    """Closures that wait for something, the one whose wait ends first before the others; they follow a place."""
    due = min(int.from_bytes(after[:8], "big"), _LAST)
    asked = {"due": due, "key": after[8:], "until": until, "app": app, "limit": limit}
    return [closure_of(row) for row in tx.fetch(Q["closures_by_deadline"], asked)]


def deadline_place(closure: Closure) -> bytes:
    """Where a closure stands in the order of deadlines."""
    return (closure.next_due or 0).to_bytes(8, "big") + closure.key


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


def _unpack_row(row: Row) -> list[_Born]:
    item, archived, body = row
    return [_Born(number, decision, bool(archived)) for number, decision in unpack_decisions(item, bytes(body))]


_NOT_MOVED: Row = (None, None, None, None, None)


def _archived_decisions(tx: Tx, born: Sequence[_Born]) -> list[Archived]:
    """Join what stands in tables of its own: where records stand by now, and how often an event was dropped."""
    billed: list[Row] = [(one.id,) for one in born if one.decision.billable is not None]
    dropped = [half(audit_key_of(one.decision)) if one.decision.action == Action.DROP.value else None for one in born]
    status = dict(tx.fetch(Q["billables_by_id"], rows=billed))
    counts = _counts(tx, [key for key in dropped if key is not None])
    moved = {row[0]: row[1:] for row in tx.fetch(Q["statuses_by_id"], rows=[(one.id,) for one in born])}
    reissues = _reissues(tx, moved)
    journals = _journals(tx, {one.id: one.decision for one in born}, moved, reissues)
    found: list[Archived] = []
    for i, one in enumerate(born):
        audit, attribution, code, settled_at, told_at = moved.get(one.id, _NOT_MOVED)
        birth = RECORD.target(Status.NEW, RecordTransition.WRITTEN) if one.archived else Status.NEW
        fact = birth if one.decision.status == Status.NEW else Status(one.decision.status)
        issued = tuple(reissues.get(one.id, ()))
        if any(reissue.type is RecordType.BILLABLE for reissue in issued):
            status[one.id] = Status.CONFLICTED.value  # of the first record: what counts is the fact
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
                settled_at=settled_at,
                moves=journals.get(one.id, {}),
                in_store=one.archived,
                reissues=issued,
                superseded_told_at=told_at,
            )
        )
    return found


def _reissues(tx: Tx, moved: Mapping[int, Row]) -> dict[int, list[Reissue]]:
    """What was issued again of decisions: only where the archive did not take something."""
    refused: list[Row] = [(number,) for number, (_, _, code, *_) in sorted(moved.items()) if code is not None]
    found: dict[int, list[Reissue]] = {}
    for number, kind, issue, _, status, at in tx.fetch(Q["reissues_by_id"], rows=refused) if refused else ():
        found.setdefault(number, []).append(Reissue(RecordType(kind), issue, Status(status), at))
    return {number: sorted(some, key=lambda one: (one.issue, RANK[one.type])) for number, some in found.items()}


def _journals(
    tx: Tx, decisions: Mapping[int, Decision], moved: Mapping[int, Row], reissues: Mapping[int, Sequence[Reissue]]
) -> dict[int, dict[str, list[Move]]]:
    """The journal's entries about the records of decisions; a plain arrival has none, so few are asked for."""
    told = {
        number: [
            *record_keys(decisions[number]),
            *(reissue_record(decisions[number], issued).key for issued in reissues.get(number, ())),
        ]
        for number, (_, attribution, code, *_) in moved.items()
        if code is not None or attribution == Status.SUPERSEDED.value
    }
    by_key: dict[str, list[Move]] = {}
    for move in history(tx, [key for keys in told.values() for key in keys]) if told else ():
        by_key.setdefault(move.subject, []).append(move)
    return {number: {key: by_key[key] for key in keys if key in by_key} for number, keys in told.items()}


def _with_last_code(record: Record, moves: Sequence[Move]) -> Record:
    """Two payloads may share a key, so the last move is the last one that led to where this one stands."""
    codes = [move.reason for move in moves if move.to == record.status.value]
    return record._replace(body={**record.body, "decisionReasonCode": codes[-1]}) if codes else record


def _counts(tx: Tx, keys: Sequence[bytes]) -> dict[bytes | None, int]:
    found = tx.lookup("att_drop", columns=("key", "count"), key=("key",), keys=[(key,) for key in keys])
    return {bytes(key): count for key, count in found}
