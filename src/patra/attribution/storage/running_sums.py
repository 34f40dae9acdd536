"""Running sums that settlement counts by: committed billable facts of each hour, kept just behind the writer.

Facts are taken in the order of decision, up to a mark. One that is not committed when it is reached is listed as
pending and enters the sums once it is; a committed fact stays committed, so a sum never has to be taken back.
Settlement adds what is past the mark and what is pending, and takes off the few facts that the sums hold and that do
not count (billed before, clicks whose impression is lost): it is exact at any moment, whatever the sums have reached.
`verify` counts every sum again.

There are two: by app (`hour`), and by placement, whether that of an opportunity is carried (`placement_index`) or waits
to be: the earliest decision up to the mark says, and no earlier one can come any more.

The mark never passes a number that a transaction under way may still commit (PostgreSQL), nor a fact that the tree of
billing keys has not reached (SQLite). Several processes may try: each step moves the mark from where it was, and the
one that comes second does nothing.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal

import msgspec

from patra.attribution.decision.decide import ITEM_BITS
from patra.attribution.storage.billing_tree import BILLING_KEYED
from patra.attribution.storage.sql import Q, mark, set_mark
from patra.kernel.db import Database, Row, Tx

Sums = Literal["hour", "placement"]
MARKS: dict[Sums, str] = {"hour": "summed_hour", "placement": "summed_placement"}
"""The marks: the last decision whose fact was summed or listed as pending."""

PAGE_FACTS = 20_000
PAGE_NUMBERS = 2_000
"""Numbers of the log that one step looks through for gaps."""
MAX_WAITING_ITEMS = 1_000
"""Items beyond which facts are summed however busy it is: settlement counts one by one whatever waits.

Their facts fill a page, and each page by placement reads all placements that wait to be carried."""
MAX_NEW_FACTS = 50_000
"""Facts past the mark beyond which those that the archive has not answered for are listed as pending; fewer wait."""
_LAST_DECISION = 2**62


class RunningSums:
    """Keeps one of the sums, a page at a time."""

    def __init__(self, db: Database, sums: Sums, busy: Callable[[], bool] = lambda: False) -> None:
        self._db = db
        self._sums: Sums = sums
        self._busy = busy
        self._gaps: dict[tuple[int, int], frozenset[str]] = {}
        """Numbers missing in the log (first, last), with the commits under way both when they were seen and now."""

    def run_once(self) -> int:
        """Sum one page, and facts that were pending and are committed by now; gives how many facts that were."""
        if self._busy() and not self._db.read(self._too_many_wait):
            return 0
        return self._sum_page() + self._sum_pending()

    def catch_up(self) -> None:
        """Sum everything that can be."""
        while self.run_once():
            pass

    def _too_many_wait(self, tx: Tx) -> bool:
        return (tx.fetch(Q["newest_item"])[0][0] or 0) - (mark(tx, MARKS[self._sums]) >> ITEM_BITS) > MAX_WAITING_ITEMS

    def _sum_page(self) -> int:
        page = self._db.read(self._page)
        if not page.facts and page.reached - page.was < PAGE_NUMBERS << ITEM_BITS:
            return 0

        def work(tx: Tx) -> int:
            moved = tx.execute(Q["move_mark"], {"name": MARKS[self._sums], "was": page.was, "value": page.reached})
            if moved:
                self._add(tx, page.counts)
                tx.execute(Q["add_sum_pending"], {"sums": self._sums}, rows=page.pending)
            return moved

        return max(page.facts, 1) if self._db.run(work) else 0

    def _page(self, tx: Tx) -> "_Page":
        """The facts from the mark up to where it may go now; those that are new wait while they are few."""
        was = mark(tx, MARKS[self._sums])
        bound = complete = mark(tx, BILLING_KEYED) if tx.dialect == "sqlite" else self._without_gaps(tx, was)
        ((facts, last, new, uncommitted),) = tx.fetch(
            Q["page_to_sum"], {"after": was, "bound": bound, "limit": PAGE_FACTS}
        )
        if facts == PAGE_FACTS:
            bound = last
        if new is not None and not tx.fetch(Q["some_fact_beyond"], {"after": was, "skip": MAX_NEW_FACTS}):
            bound = new - 1
        span = {"after": was, "bound": max(bound, was)}
        counts = self._facts(tx, span, complete) if facts else []
        pending = tx.fetch(Q["facts_pending"], span) if uncommitted else []
        summed = sum(count for *_, count in counts) + len(pending)
        return _Page(was=was, reached=span["bound"], facts=summed, counts=counts, pending=pending)

    def _facts(self, tx: Tx, span: Mapping[str, int], complete: int) -> list[Row]:
        """The facts of a page by hour, app and type, and by placement; nothing up to `complete` can still come."""
        if self._sums == "hour":
            return tx.fetch(Q["hour_facts_to_sum"], span)
        tx.fetch(Q["joins_by_hash"])
        return tx.fetch(Q["placement_facts_to_sum"], {**span, "complete": complete})

    def _without_gaps(self, tx: Tx, after: int) -> int:
        """The last decision number before the first number of the log that may still be committed (PostgreSQL).

        Missing numbers are passed once every commit that was under way when they were seen has ended, and they are
        missing still. How old the lines beside them are says nothing: a tick is logged at the deadline it applies.
        """
        item = reached = max(after, 0) >> ITEM_BITS
        missing: list[tuple[int, int]] = []
        for (number,) in tx.fetch(Q["log_numbers_after"], {"after": item, "limit": PAGE_NUMBERS}):
            gap = item + 1, number - 1
            if item + 1 < number and self._gaps.get(gap, True):
                missing.append(gap)
            item = number
            reached = reached if missing else number
        under_way = frozenset(holder for (holder,) in tx.fetch(Q["commits_under_way"])) if missing else frozenset[str]()
        self._gaps = {gap: known for gap, known in self._gaps.items() if gap[1] > reached and not known} | {
            gap: self._gaps.get(gap, under_way) & under_way for gap in missing
        }
        return max(((reached + 1) << ITEM_BITS) - 1, after)

    def _sum_pending(self) -> int:
        asked = {"sums": self._sums, "limit": PAGE_FACTS}
        found = self._db.read(lambda tx: self._pending_committed(tx, asked))
        if not found:
            return 0

        def work(tx: Tx) -> int:
            rows: list[Row] = [(number,) for number, *_ in found]
            taken = {number for (number,) in tx.fetch(Q["take_sum_pending"], {"sums": self._sums}, rows=rows)}
            self._add(tx, [(*fact, 1) for number, *fact in found if number in taken])
            return len(taken)

        return self._db.run(work)

    def _pending_committed(self, tx: Tx, asked: Mapping[str, str | int]) -> list[Row]:
        found = [(*fact, number) for number, *fact in tx.fetch(Q["sum_pending_committed"], asked)]
        return [(number, *fact) for *fact, number in self._place_rows(tx, found, mark(tx, MARKS[self._sums]))]

    def _place_rows(self, tx: Tx, rows: Sequence[Row], bound: int) -> list[Row]:
        """The rows (hour, app, type, placement, opportunity, …) with placements that wait to be carried.

        Nothing more can be committed up to `bound`, so the earliest of these stays the earliest.
        """
        if self._sums != "placement":
            return list(rows)
        waiting = waiting_placements_of(tx, {bytes(row[4]) for row in rows if row[4] is not None}, bound)
        places = [None if row[4] is None else waiting.get(bytes(row[4])) for row in rows]
        return [
            row if place is None else (*row[:3], place, None, *row[5:]) for row, place in zip(rows, places, strict=True)
        ]

    def _add(self, tx: Tx, counts: Sequence[Row]) -> None:
        """Add facts, each row with their hour, app, type, placement or else opportunity, and number."""
        found: Counter[Row] = Counter()
        for hour, app_id, kind, *place, count in counts:
            placement, opportunity = place or (None, None)
            key = (hour, app_id, kind, bytes(placement or b""), bytes(opportunity or b""))
            found[key if self._sums == "placement" else key[:3]] += count
        tx.execute(Q[f"add_to_{self._sums}_sums"], rows=[(*key, count) for key, count in sorted(found.items())])


def waiting_placements_of(tx: Tx, opportunities: Collection[bytes], bound: int = _LAST_DECISION) -> dict[bytes, bytes]:
    """Placements of some opportunities that are not carried yet, up to a decision; the earliest of each says."""
    rows: list[Row] = [(key,) for key in sorted(opportunities)]
    found: dict[bytes, bytes] = {}
    for key, placement in tx.fetch(Q["waiting_placements_of"], {"bound": bound}, rows=rows) if rows else ():
        found.setdefault(bytes(key), bytes(placement))
    return found


def summed_facts(tx: Tx) -> int:
    """The last decision that both sums have passed and whose placement is carried, as are all before it.

    Neither sum moves, nor is rebuilt, before the transaction ends.
    """
    marks = [value for (value,) in tx.fetch(Q["sum_marks"], {str(sums): name for sums, name in MARKS.items()})]
    waiting = tx.fetch(Q["oldest_placement"])[0][0]
    return min(marks) if waiting is None else min(*marks, waiting - 1)


def rebuild_sums(tx: Tx) -> None:
    """Start the sums again, with the facts that are in history; settlement is exact meanwhile, and slower.

    The order keeps others out: a page waits for the marks, a fact that was pending for its row of the list.
    """
    for name in MARKS.values():
        set_mark(tx, name, -1)
    for table in ("pending", "hour", "placement"):
        tx.execute(Q[f"empty_sum_{table}"])
    for sums in MARKS:
        tx.execute(Q[f"{sums}_sums_of_purged"])


class _Page(msgspec.Struct, frozen=True, kw_only=True):
    """What one step sums: from a mark to a mark, how many facts, their counts, and those that are pending."""

    was: int
    reached: int
    facts: int
    counts: list[Row]
    pending: list[Row]
