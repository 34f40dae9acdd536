"""Decisions past their retention: which of them may go, their records as rows of a file, and their deletion.

A fact goes only once the archive has its records, and, unless the settings say otherwise, once the statement that
counts it is written and verified: what is not settled yet needs its decision.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Protocol

import msgspec

from patra.attribution.contract.keys import half
from patra.attribution.decision.closure_rules import BILLABLE_CLICK, BILLABLE_IMPRESSION, Action, Status
from patra.attribution.decision.decide import ITEM_BITS
from patra.attribution.decision.decisions import audit_key_of
from patra.attribution.delivery.parquet_archive import COLUMNS, record_row
from patra.attribution.history.files import Span
from patra.attribution.history.kinds import Bounds
from patra.attribution.history.parquet_rows import Columns
from patra.attribution.storage.decision_codec import packed_whole, unpack_decisions
from patra.attribution.storage.key_index import INDEXED
from patra.attribution.storage.read import Archived, decisions_after, decisions_by_id, untold_decisions
from patra.attribution.storage.sql import Q, mark, set_mark
from patra.kernel.db import Database, Row, Tx
from patra.kernel.machine import forget

AUDITS, FACTS = "purge_scanned_audits", "purge_scanned_facts"
"""The marks: the decisions that were looked at already. Each kind has its own, since it has its own time."""
MAX_FILE_DECISIONS = 10_000
_NO_LIMIT = 2**62


class StatementVerified(Protocol):
    """Whether the statement of an app with a number was checked and is what its hash says."""

    def __call__(self, tx: Tx, app_id: str, number: int) -> bool: ...

    def check_pending(self, db: Database, now: int) -> int:
        """Check statements that were not checked yet, outside of any transaction; gives how many."""
        ...


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """The decisions that go next, and how far the log of decisions was looked through with them."""

    gone: list[Archived]
    reached: int | None
    """The last decision that was looked at; None where the first one has to wait."""
    passed: int
    """Decisions that were looked at and stay permanently."""


def next_decisions(
    tx: Tx, scanned: str, before: int, limit: int, *, has_file: bool, verified: StatementVerified | None = None
) -> Selection:
    """The oldest decisions of a kind that were not looked at yet, up to the first that will go later.

    `has_file`: whether a file takes their records; without one a fact stays that no archive outside has. With
    `verified`, facts wait for their statement.
    """
    page = decisions_after(tx, mark(tx, scanned), limit)
    return _selection(tx, page, scanned, before, has_file=has_file, verified=verified)


def _selection(
    tx: Tx, page: Sequence[Archived], scanned: str, before: int, *, has_file: bool, verified: StatementVerified | None
) -> Selection:
    """Of decisions in their order those that go, up to the first that will go later."""
    superseding = untold_decisions(tx, page)
    own = [is_fact(one) is (scanned == FACTS) and (has_file or not _only_here(one)) for one in page]
    if verified:
        clicks = _of_lost_impressions(tx, [one for i, one in enumerate(page) if own[i]])
        own = [own[i] and one.id not in clicks for i, one in enumerate(page)]
    unsettled = (
        _unsettled_facts(tx, [one for i, one in enumerate(page) if own[i]], verified) if verified else set[int]()
    )
    waiting = superseding | unsettled
    stop = next((i for i, one in enumerate(page) if own[i] and (one.id in waiting or _waits(one, before))), len(page))
    gone = [one for i, one in enumerate(page[:stop]) if own[i]]
    return Selection(gone=gone, reached=page[stop - 1].id if stop else None, passed=stop - len(gone))


def _unsettled_facts(tx: Tx, page: Sequence[Archived], verified: StatementVerified) -> set[int]:
    """Facts that settlement counts and that are in no statement, or in one that is not verified.

    With them impressions whose click is such a fact, or is on its way to the archive: a click has the creative, and so
    the price, of its impression.
    """
    facts: list[Row] = [(one.id,) for one in page if one.decision.billable is not None]
    impressions: list[Row] = [(one.id,) for one in page if one.decision.billable == BILLABLE_IMPRESSION]
    clicks = tx.fetch(Q["clicks_of_impressions"], rows=impressions) if impressions else []
    rows: list[Row] = sorted({*facts, *((click,) for _, click, _ in clicks)})
    found = tx.fetch(Q["statements_of_settled"], rows=rows) if rows else []
    known = {(app, number): number is not None and verified(tx, app, number) for _, app, number in found}
    unsettled = {decision_id for decision_id, app, number in found if not known[app, number]}
    awaited = {one for one, click, status in clicks if click in unsettled or status == Status.NEW.value}
    return {one.id for one in page if one.id in unsettled or one.id in awaited}


def _of_lost_impressions(tx: Tx, page: Sequence[Archived]) -> set[int]:
    """Clicks that count once their impression, which the archive did not take, is issued again.

    They stay with the decision of that impression; those whose impression is among these, which go, go with it.
    """
    rows: list[Row] = [(one.id,) for one in page if one.decision.billable == BILLABLE_CLICK]
    found = dict(tx.fetch(Q["lost_impressions_of_clicks"], rows=rows)) if rows else {}
    lost = set(found.values()) - {one.id for one in page}
    left = {one.id for one in decisions_by_id(tx, lost)} if lost else set[int]()
    return {click for click, impression in found.items() if impression in left}


def is_fact(one: Archived) -> bool:
    """Whether it is kept as facts are: a decision that emitted something."""
    return one.decision.action != Action.DROP.value


def _only_here(one: Archived) -> bool:
    """Whether no archive outside has all of a fact's records, nor ever will."""
    return is_fact(one) and (one.in_store or one.settled_code is not None)


def _waits(one: Archived, before: int) -> bool:
    """Whether a decision will be purged one day, but not yet: it is too young, or the archive has not all of it."""
    return one.decision.at >= before or Status.NEW in {*one.statuses, *(issued.status for issued in one.reissues)}


def delete_decisions(tx: Tx, gone: Sequence[tuple[int, bytes]]) -> None:
    """Delete decisions, given with the keys of their audits, and all that belongs to them."""
    rewrite_items(tx, {number for number, _ in gone})
    tx.execute(Q["purge_statuses"], rows=[(number,) for number, _ in gone])
    tx.execute(Q["purge_reissues"], rows=[(number,) for number, _ in gone])
    tx.execute(Q["purge_drops"], rows=[(key,) for _, key in gone])
    oldest = tx.fetch(Q["oldest_item"])[0][0]
    tx.execute(Q["purge_runs"], {"oldest": mark(tx, INDEXED) + 1 if oldest is None else oldest})


def rewrite_items(tx: Tx, gone: Collection[int]) -> None:
    """Take decisions out of the rows of their items, which nobody else may do meanwhile; an empty row goes."""
    left: list[Row] = []
    empty: list[Row] = []
    for item, body in tx.fetch(Q["packs_to_rewrite"], rows=_items_of(gone)):
        kept = [(number, decision) for number, decision in unpack_decisions(item, bytes(body)) if number not in gone]
        if kept:
            left.append((item, packed_whole(kept)))
        else:
            empty.append((item,))
    tx.execute(Q["rewrite_items"], rows=left)
    tx.execute(Q["purge_items"], rows=empty)


RECORD_COLUMNS: Columns = {
    "decision_id": "BIGINT",
    "at": "BIGINT",
    "drop_count": "BIGINT",
    "audit_key": "BLOB",
    **dict.fromkeys(COLUMNS[:-1], "VARCHAR"),
}
"""Those of an archive of Parquet files but the last, which is all others once more; before them the decision."""

_STATUS = list(RECORD_COLUMNS).index("record_status")


class DecisionRecords:
    """The records of decisions of one kind, drops (`audits`) or facts, a row for each record."""

    columns: Columns = RECORD_COLUMNS

    def __init__(self, name: str, scanned: str, verified: StatementVerified | None = None) -> None:
        self.name = name
        self._scanned = scanned
        self._verified = verified

    def next_span(self, tx: Tx, before: int) -> Bounds | None:
        """Where nothing goes, the mark may still move on; that is left to `pass_over`."""
        found = self._select_rows(tx, before, MAX_FILE_DECISIONS)
        return Bounds(found.gone[0].id, found.reached or 0) if found.gone else None

    def pass_over(self, tx: Tx, before: int) -> int:
        """Move on past decisions that stay permanently; gives how many."""
        found = self._select_rows(tx, before, MAX_FILE_DECISIONS)
        if found.gone or found.reached is None:
            return 0
        set_mark(tx, self._scanned, found.reached)
        return found.passed

    def _select_rows(self, tx: Tx, before: int, limit: int) -> Selection:
        return next_decisions(tx, self._scanned, before, limit, has_file=True, verified=self._verified)

    def rows_of(self, tx: Tx, span: Span) -> list[Row]:
        """Up to the first that has to wait by now: its records were issued again, or a click of it came."""
        page = [one for one in decisions_after(tx, span.first - 1, MAX_FILE_DECISIONS) if one.id <= span.last]
        return list(record_rows(self._going(tx, page, span.cutoff)))

    def _going(self, tx: Tx, page: Sequence[Archived], before: int) -> list[Archived]:
        return _selection(tx, page, self._scanned, before, has_file=True, verified=self._verified).gone

    def delete(self, tx: Tx, rows: Sequence[Row]) -> int:
        """Delete decisions up to the first that has to wait by now, or is no longer what the rows say.

        Gives how many of the rows are out of the store; those of decisions that went before are.
        """
        held: dict[int, list[Row]] = {}
        for row in rows:
            held.setdefault(row[0], []).append(row)
        tx.fetch(Q["packs_to_rewrite"], rows=_items_of(held))  # against `reissue`, which takes the same lock
        page = decisions_by_id(tx, held)
        unchanged = {one.id for one in self._going(tx, page, _NO_LIMIT) if _is_as_held(one, held[one.id])}
        stop = next((one.id for one in page if one.id not in unchanged), _NO_LIMIT)
        gone = [row for row in rows if row[0] < stop]
        if gone:
            delete_decisions(tx, sorted({(row[0], bytes(row[3])) for row in gone}))
            _forget_moves(tx, [key for one in page if one.id < stop for key in one.moves])
            self._move_mark(tx, max(row[0] for row in gone))  # with them: `verify` asks for decisions past the mark
        return len(gone)

    def finish(self, tx: Tx, span: Span) -> None:
        self._move_mark(tx, span.last)

    def _move_mark(self, tx: Tx, reached: int) -> None:
        set_mark(tx, self._scanned, max(reached, mark(tx, self._scanned)))


def _forget_moves(tx: Tx, record_keys: Sequence[str]) -> None:
    """Delete the journal of records that are gone, but for keys that another decision's record may have."""
    asked: list[Row] = [(half(key),) for key in record_keys]
    shared = {bytes(key) for (key,) in tx.lookup("att_record_key", columns=("key",), key=("key",), keys=asked)}
    forget(tx, [key for key in record_keys if half(key) not in shared], _NO_LIMIT)


def _items_of(numbers: Collection[int]) -> list[Row]:
    return [(item,) for item in sorted({number >> ITEM_BITS for number in numbers})]


def _is_as_held(one: Archived, rows: Sequence[Row]) -> bool:
    """Whether a decision has the records that rows hold: one that moved has another status, one issued again is new.

    How often an event was dropped may grow at any time. Payloads never change, and are not made again for this.
    """
    statuses = [*one.statuses, *(issued.status for issued in one.reissues)]
    return sorted(row[_STATUS] for row in rows) == sorted(status.value for status in statuses if status is not None)


def status_rows(decisions: Sequence[Archived]) -> list[Row]:
    """What `DecisionRecords.delete` needs of the rows: the decision, and where each of its records stands."""
    return [
        (one.id, one.decision.at, one.count, half(audit_key_of(one.decision)), None, None, status.value)
        for one in decisions
        for status in (*one.statuses, *(issued.status for issued in one.reissues))
        if status is not None
    ]


def record_rows(decisions: Sequence[Archived]) -> Iterator[Row]:
    """The records of decisions as rows, in their order."""
    for one in decisions:
        key = half(audit_key_of(one.decision))
        for record in one.records:
            yield one.id, one.decision.at, one.count, key, *map(_plain_text, record_row(record)[:-1])


def _plain_text(value: object) -> str | None:
    """A value as text that any reader of Parquet files takes: no half surrogates."""
    return None if value is None else str(value).encode(errors="replace").decode()
