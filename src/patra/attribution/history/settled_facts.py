"""Billable facts of closed periods: out of the store once their statement is verified and their decision is gone.

What stays: the statement with all of its facts, the running sums (settlement of whole hours counts as before), and the
closure, reduced to its outcome and the statement of its impression, by which a late click is priced. A closure is what
keeps a late event from being billed again, so it never goes; what it no longer has is which record a late duplicate
conflicts with.
"""

from collections import Counter
from collections.abc import Sequence

from patra.attribution.decision.closure_rules import BILLABLE_IMPRESSION
from patra.attribution.history import kinds
from patra.attribution.history.decisions import FACTS, StatementVerified
from patra.attribution.history.files import Span
from patra.attribution.history.kinds import Bounds
from patra.attribution.history.parquet_rows import Columns
from patra.attribution.storage.billing_tree import BILLING_KEYED
from patra.attribution.storage.read import decisions_by_id
from patra.attribution.storage.running_sums import MARKS, summed_facts
from patra.attribution.storage.sql import Q, mark
from patra.attribution.storage.write import outcome_of_closure
from patra.kernel.clock import HOUR
from patra.kernel.db import Row, Tx

SETTLED_COLUMNS: Columns = {
    "decision_id": "BIGINT",
    "at": "BIGINT",
    "app_id": "VARCHAR",
    "billable_type": "VARCHAR",
    "placement": "BLOB",
    "opportunity": "BLOB",
    "statement": "BIGINT",
    "period": "VARCHAR",
    "closure": "BLOB",
    "closure_state": "VARCHAR",
    "closure_source": "VARCHAR",
    "closure_opened_at": "BIGINT",
    "closure_body": "VARCHAR",
}


class SettledFacts:
    """Facts that a verified statement counts, each with its closure as it was."""

    name = "settled"
    columns: Columns = SETTLED_COLUMNS

    def __init__(self, verified: StatementVerified) -> None:
        self._verified = verified

    def next_span(self, tx: Tx, before: int) -> Bounds | None:
        """Facts of statements that were closed before an instant, up to the first whose statement is not verified.

        Only facts that the running sums and, on SQLite, the tree of billing keys have passed, and whose decision is
        gone: some stay although retention has passed them, and a decision that bills has its fact.
        """
        bounds = [mark(tx, FACTS), *(mark(tx, name) for name in MARKS.values())]
        if tx.dialect == "sqlite":
            bounds.append(mark(tx, BILLING_KEYED))
        asked = {"after": -1, "bound": min(bounds), "before": before, "limit": kinds.MAX_FILE_ROWS}
        while page := tx.fetch(Q["settled_facts_to_export"], asked):
            asked["after"] = page[-1][0]
            decided = _with_decision(tx, page)
            going = [row for row in page if row[0] not in decided]
            stop = next((i for i, row in enumerate(going) if not self._verified(tx, row[1], row[2])), len(going))
            if going:
                return Bounds(going[0][0], going[stop - 1][0]) if stop else None
        return None

    def rows_of(self, tx: Tx, span: Span) -> list[Row]:
        asked = {"first": span.first, "last": span.last, "cutoff": span.cutoff}
        found = tx.fetch(Q["settled_facts_of_span"], asked)
        decided = _with_decision(tx, found)
        return [
            (*row[:4], *map(_bytes, row[4:6]), *row[6:8], *map(_bytes, row[8:9]), *row[9:12], _text(row[12]))
            for row in found
            if row[0] not in decided
        ]

    def delete(self, tx: Tx, rows: Sequence[Row]) -> int:
        """Delete facts up to the first that the running sums, which were rebuilt meanwhile, have not passed again.

        Nor one whose decision is there, as files of an earlier build hold them. Facts that another process deleted
        already are neither summed nor reduced again.
        """
        rows = rows[: self._first_that_stays(tx, rows)]
        gone = {number for (number,) in tx.fetch(Q["purge_billables"], rows=[(row[0],) for row in rows])}
        left = [row for row in rows if row[0] in gone]
        sums: Counter[Row] = Counter(
            (at // HOUR, app_id, kind, placement or b"", b"" if placement is not None else opportunity)
            for _, at, app_id, kind, placement, opportunity, *_ in left
        )
        tx.execute(Q["add_to_purged_sums"], rows=[(*key, count) for key, count in sorted(sums.items())])
        tx.execute(Q["purge_stated"], rows=[(row[0],) for row in left])
        keys = sorted({row[8] for row in left if row[8] is not None})
        if tx.dialect == "sqlite":
            tx.execute(Q["purge_billing_keys"], rows=[(row[0], row[8], row[3]) for row in left if row[8] is not None])
        bodies = {row[8]: row[12] for row in left if row[8] is not None and row[12] is not None}
        stated = {row[8]: (row[2], row[6]) for row in left if row[3] == BILLABLE_IMPRESSION}
        reduced: list[Row] = [
            (key, outcome_of_closure(bodies[key].encode(), stated.get(key))) for key in keys if key in bodies
        ]
        tx.execute(Q["reduce_closures"], rows=reduced)
        return len(rows)

    def _first_that_stays(self, tx: Tx, rows: Sequence[Row]) -> int:
        summed = summed_facts(tx)
        left = {number for (number,) in tx.fetch(Q["billables_left"], rows=[(row[0],) for row in rows])}
        decided = _with_decision(tx, rows)
        staying = {number for number in left if number > summed or number in decided}
        return next((i for i, row in enumerate(rows) if row[0] in staying), len(rows))

    def finish(self, tx: Tx, span: Span) -> None:
        del tx, span


def _with_decision(tx: Tx, rows: Sequence[Row]) -> set[int]:
    """Which facts, given by rows that begin with their number, have their decision in the store."""
    return {one.id for one in decisions_by_id(tx, [row[0] for row in rows])} if rows else set()


def _bytes(value: bytes | None) -> bytes | None:
    return None if value is None else bytes(value)


def _text(body: bytes | None) -> str | None:
    return None if body is None else bytes(body).decode()


def facts_in_history(tx: Tx, begin: int, end: int, app_id: str = "") -> int:
    """How many facts of the hours of a span left the store, of one app or of all."""
    asked = {"first": begin // HOUR, "last": -(-end // HOUR), "app_id": app_id}
    return int(tx.fetch(Q["purged_facts"], asked)[0][0])
