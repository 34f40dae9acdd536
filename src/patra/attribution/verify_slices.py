"""Verification in the background: a slice at a time, so that no read lasts long and the writer goes first.

A pass begins when the last one is older than so long, and ends when every decision, closure, line of the log and
dedup key was looked at that was there when it began. What a slice finds is reported at once; the instant of the last
verification is that of the end of a pass. A slice checks its facts against their decisions, their log and, on SQLite,
the trees of keys: each fact is the one that its billing key leads to, so no key has two. Entries of the trees that
lead nowhere, running sums, and the total of all drops are left to `verify`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from patra.attribution.checks.dedup_ledger import BEFORE_ALL, RecentSearch, ledger_page, recent_page
from patra.attribution.checks.finding import Finding, Page
from patra.attribution.checks.log_lines import line_page
from patra.attribution.decision.decide import ITEM_BITS
from patra.attribution.decision.dedup import SCOPE
from patra.attribution.history.log_partitions import read_with_log
from patra.attribution.storage.read import Archived, decisions_after
from patra.attribution.storage.sql import Q, mark, set_mark
from patra.attribution.verify import (
    LAST_NUMBER,
    decision_findings,
    last_verification,
    note_findings,
    note_verification,
)
from patra.kernel.clock import Clock
from patra.kernel.db import Database, Tx

SLICE_DECISIONS = 5_000
FOUND, BEGUN = "pass_findings", "pass_under_way"
"""The marks of the pass under way: what it found, whether it has begun. Earlier releases use `slice_…`."""
DECISIONS, CLOSURES, LINES = "pass_decision", "pass_closure", "pass_line"
LEDGER, RECENT = "pass_ledger", "pass_recent"
"""The marks that say where it stands in each of its parts; with `_end` behind them, how far it goes."""
BEGINNINGS = {DECISIONS: -1, CLOSURES: 0, LINES: 0, LEDGER: BEFORE_ALL, RECENT: 0}


class Slice(msgspec.Struct, frozen=True, kw_only=True):
    """One slice: how much was looked at, what was found, and whether the pass ended with it."""

    decisions: int = 0
    closures: int = 0
    lines: int = 0
    keys: int = 0
    findings: list[Finding] = []
    complete: bool = False


def verify_slice(db: Database, now: int, *, size: int = SLICE_DECISIONS) -> Slice:
    """Look at the next decisions, closures, lines and keys of the pass under way, or begin one."""
    ends, pages = read_with_log(db, lambda tx: _looked_at(tx, now, size))
    reached = {name: page.last if page.more else max(page.last, ends[name]) for name, page in pages.items()}
    complete = all(place >= ends[name] for name, place in reached.items())
    findings = [one for page in pages.values() for one in page.findings]

    def work(tx: Tx) -> None:
        found = mark(tx, FOUND) + len(findings)
        if findings or complete:
            note_findings(tx, found)
        if complete:
            note_verification(tx, now, found)
        for name, place in reached.items():
            set_mark(tx, name, place)
            set_mark(tx, f"{name}_end", ends[name])
        set_mark(tx, FOUND, 0 if complete else found)
        set_mark(tx, BEGUN, int(not complete))

    db.run(work)
    return Slice(
        decisions=pages[DECISIONS].rows,
        closures=pages[CLOSURES].rows,
        lines=pages[LINES].rows,
        keys=pages[LEDGER].rows + pages[RECENT].rows,
        findings=findings,
        complete=complete,
    )


def _looked_at(tx: Tx, now: int, size: int) -> tuple[Mapping[str, int], Mapping[str, Page]]:
    """How far each part of the pass goes, and the next page of each."""
    begun = bool(mark(tx, BEGUN))
    after = {name: mark(tx, name) if begun else beginning for name, beginning in BEGINNINGS.items()}
    ends = {name: mark(tx, f"{name}_end") for name in BEGINNINGS} if begun else _ends(tx)
    recent = RecentSearch()
    parts: dict[str, Callable[[], Page]] = {
        DECISIONS: lambda: _decision_page(tx, after[DECISIONS], now, size, recent),
        CLOSURES: lambda: _closure_page(tx, after[CLOSURES], size),
        LINES: lambda: line_page(tx, after[LINES], size, recent).page,
        LEDGER: lambda: ledger_page(tx, after[LEDGER], size),
        RECENT: lambda: recent_page(tx, after[RECENT], size),
    }
    done = {name: Page(rows=0, last=place, more=False, findings=[]) for name, place in after.items()}
    return ends, {name: read() if after[name] < ends[name] else done[name] for name, read in parts.items()}


def _ends(tx: Tx) -> dict[str, int]:
    """Where the parts of a pass end that begins now: what comes while it is under way is left to the next one.

    PostgreSQL has one table of closures, whose primary key they are, and its dedup keys in the ledger alone.
    """
    item = tx.fetch(Q["newest_line"])[0][0] or 0
    expiry = tx.fetch(Q["last_expiry"], {"scope": SCOPE})[0][0]
    is_sqlite = tx.dialect == "sqlite"
    return {
        DECISIONS: ((item + 1) << ITEM_BITS) - 1,
        LINES: item,
        LEDGER: BEFORE_ALL if expiry is None else expiry,
        CLOSURES: (tx.fetch(Q["newest_closure"])[0][0] or 0) if is_sqlite else 0,
        RECENT: (tx.fetch(Q["newest_recent"])[0][0] or 0) if is_sqlite else 0,
    }


def _decision_page(tx: Tx, after: int, now: int, size: int, recent: RecentSearch) -> Page:
    page = decisions_after(tx, after, size)
    last = page[-1].id if len(page) == size else LAST_NUMBER
    findings = [*decision_findings(tx, page, after + 1, last, now, recent), *_line_findings(tx, page)]
    findings += _tree_findings(tx, after + 1, last) if tx.dialect == "sqlite" else []
    return Page(rows=len(page), last=page[-1].id if page else after, more=len(page) == size, findings=findings)


def _closure_page(tx: Tx, after: int, size: int) -> Page:
    """The tree of closure keys behind the closures of SQLite."""
    rows = tx.fetch(Q["closures_with_entries"], {"after": after, "limit": size})
    keyed = mark(tx, "closures_keyed")
    findings = [
        Finding(check="closures_unkeyed", key=bytes(key).hex())
        for number, key, entry in rows
        if (entry is None and number <= keyed) or (entry is not None and entry != number)
    ]
    return Page(rows=len(rows), last=rows[-1][0] if rows else after, more=len(rows) == size, findings=findings)


def _line_findings(tx: Tx, page: Sequence[Archived]) -> Iterator[Finding]:
    """The log behind the decisions."""
    if not page:
        return
    items = {"first": page[0].id >> ITEM_BITS, "last": page[-1].id >> ITEM_BITS, "since": mark(tx, "log_purged")}
    for (item,) in tx.fetch(Q["items_without_a_line"], items):
        yield Finding(check="decisions_without_a_line", key=str(item))


def _tree_findings(tx: Tx, first: int, last: int) -> Iterator[Finding]:
    """The tree of billing keys behind the facts of SQLite."""
    keyed = mark(tx, "billing_keyed")
    for number, kind, closure, entry in tx.fetch(Q["facts_with_entries"], {"first": first, "last": last}):
        key = f"{bytes(closure).hex()}|{kind}"
        if entry is not None and entry != number:
            yield Finding(check="billed_twice", key=key)
        elif entry is None and number <= keyed:
            yield Finding(check="billables_unkeyed", key=key)


class ScheduledVerification:
    """Verifies slice by slice when the last result is older than so long, and the writer has time."""

    def __init__(
        self,
        db: Database,
        clock: Clock,
        every: int,
        busy: Callable[[], bool] = lambda: False,
        *,
        size: int = SLICE_DECISIONS,
    ) -> None:
        self._db = db
        self._clock = clock
        self._every = every
        self._busy = busy
        self._size = size

    def run_once(self) -> Slice:
        """Look at one slice if it is time, or a pass is under way."""
        now = self._clock.now()
        if not self._every or self._busy():
            return Slice()
        last, begun = self._db.read(lambda tx: (last_verification(tx), mark(tx, BEGUN)))
        if not begun and last is not None and now - last[0] < self._every:
            return Slice()
        return verify_slice(self._db, now, size=self._size)
