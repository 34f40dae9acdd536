"""The rows that money is settled on, checked against each other and against the decisions and the log behind them.

What the writer promises (one billable fact for a billing key, one row for a closure, a fact for every decision that
bills, a dedup key for every event it accepted, a decision or a counted drop for every event of the log, a placement as
it was said, a statement as it was closed) is looked up afresh, without its memory or its indexes. It only reads, page
by page, each in one transaction, and notes its result.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from patra.attribution.checks.dedup_ledger import BEFORE_ALL, RecentSearch, key_findings, ledger_page, recent_page
from patra.attribution.checks.dropped_events import drop_findings
from patra.attribution.checks.finding import MAX_SHOWN, Finding, Page
from patra.attribution.checks.log_lines import line_page
from patra.attribution.checks.placements import placement_findings
from patra.attribution.checks.statements import statement_findings
from patra.attribution.contract.keys import half, opportunity
from patra.attribution.decision.decide import ITEM_BITS
from patra.attribution.decision.decisions import billing_key_of
from patra.attribution.history.files import exported_rows
from patra.attribution.history.log_partitions import read_with_log
from patra.attribution.retention import AUDITS, FACTS, LOG_PURGED
from patra.attribution.storage.key_index import INDEXED, locate_items, located_by
from patra.attribution.storage.read import Archived, decisions_after, decisions_by_id
from patra.attribution.storage.running_sums import MARKS
from patra.attribution.storage.sql import Q, mark, set_mark
from patra.kernel.clock import HOUR, Clock, format_instant
from patra.kernel.db import Database, Row, Tx
from patra.kernel.telemetry import gauge, get_logger

__all__ = ["DERIVED_CHECKS", "REBUILD_ADVICE", "Finding", "Verification", "verify"]

log = get_logger()

PAGE_ROWS = 5000
"""Decisions, events of lines, or dedup keys that are looked at in one transaction."""
INDEX_STEP = 1000
"""Of so many decisions one is looked for in the index by each of its keys."""
LAST_NUMBER = 2**62
"""After every decision."""
_SQLITE_CHECKS = ["keys_astray", "closures_unkeyed", "billing_keys_astray", "billables_unkeyed"]
DERIVED_CHECKS = frozenset({"sums_differ", "uncommitted_summed", "index_lacks_key"})
"""Checks of what is derived from the facts: a statement is made from the facts themselves, and needs none of it."""
REBUILD_ADVICE = "`patra attribution verify --rebuild-sums` rebuilds the running sums"
VERIFIED_AT, FINDINGS = "verified_at", "verify_findings"
"""The marks: when it last ran to its end, and how much it found."""

PROBLEMS = gauge("patra_attribution_verify_findings", "What the last verification found wrong.")


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """What was looked at, and what was found; at most `MAX_SHOWN` findings of a kind."""

    verifiedAt: str  # noqa: N815  names as in the other answers
    decisions: int
    billableFacts: int  # noqa: N815
    logLines: int  # noqa: N815
    dedupKeys: int  # noqa: N815
    findings: list[Finding]
    history: dict[str, int] = {}
    """Rows of each kind that were moved to history: what is checked are the others."""


class _Run:
    """The findings and counts of one verification."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._recent = RecentSearch()
        self._shown: Counter[str] = Counter()
        self.findings: list[Finding] = []
        self.decisions = self.facts = self.lines = self.dropped = self.keys = 0

    def add(self, findings: Iterable[Finding]) -> None:
        for one in findings:
            if self._shown[one.check] < MAX_SHOWN:
                self.findings.append(one)
            self._shown[one.check] += 1

    def read_decisions(self) -> None:
        after = -1
        while after < LAST_NUMBER:
            page, last, findings = read_with_log(self._db, lambda tx, after=after: self._decisions(tx, after))
            self.decisions += len(page)
            self.facts += sum(one.decision.billable is not None for one in page)
            self.add(findings)
            after = last

    def _decisions(self, tx: Tx, after: int) -> tuple[list[Archived], int, list[Finding]]:
        now = self._clock.now()  # of each page: keys are forgotten while it runs
        page = decisions_after(tx, after, PAGE_ROWS)
        last = page[-1].id if len(page) == PAGE_ROWS else LAST_NUMBER
        found = decision_findings(tx, page, after + 1, last, now, self._recent)
        sampled = [*page[INDEX_STEP - 1 : -1 : INDEX_STEP], *page[-1:]]
        return page, last, [*found, *(one for sample in sampled for one in index_findings(tx, sample))]

    def read_lines(self) -> None:
        after, more = 0, True
        while more:
            found = read_with_log(self._db, lambda tx, after=after: line_page(tx, after, PAGE_ROWS, self._recent))
            after, more = found.page.last, found.page.more
            self.lines += found.page.rows
            self.dropped += found.dropped
            self.add(found.page.findings)

    def read_keys(self) -> None:
        self._read_keys(ledger_page, BEFORE_ALL)
        if self._db.dialect == "sqlite":
            self._read_keys(recent_page, 0)

    def _read_keys(self, read: Callable[[Tx, int, int], Page], after: int) -> None:
        more = True
        while more:
            page = read_with_log(self._db, lambda tx, after=after: read(tx, after, PAGE_ROWS))
            after, more = page.last, page.more
            self.keys += page.rows
            self.add(page.findings)


def verify(db: Database, clock: Clock) -> Verification:
    """Check every row; the result is kept for `patra doctor`, as of when it began."""
    now, run = clock.now(), _Run(db, clock)
    before = db.read(_drops_counted)
    keyed = read_with_log(db, lambda tx: [*_key_findings(tx), *_sum_findings(tx)])
    is_log_whole = not any(one.check == "decisions_without_a_line" for one in keyed)
    run.add(keyed)
    run.read_decisions()
    run.read_lines()
    run.read_keys()
    run.add(statement_findings(db))
    if is_log_whole and before is not None and before == db.read(_drops_counted) and before[1] != run.dropped:
        key = f"{before[1]} counted, {run.dropped} events of the log"
        run.add([Finding(check="drop_counts_differ", key=key)])
    db.run(lambda tx: note_verification(tx, now, len(run.findings)))
    return Verification(
        verifiedAt=format_instant(now),
        decisions=run.decisions,
        billableFacts=run.facts,
        logLines=run.lines,
        dedupKeys=run.keys,
        findings=run.findings,
        history=db.read(exported_rows),
    )


def _drops_counted(tx: Tx) -> tuple[int, int] | None:
    """The newest line and how many events were dropped; None once retention took lines, audits or facts."""
    if any(mark(tx, name) for name in (LOG_PURGED, AUDITS, FACTS)):
        return None
    return tx.fetch(Q["dropped_events"])[0]


def decision_findings(
    tx: Tx, page: Sequence[Archived], first: int, last: int, now: int, recent: RecentSearch
) -> list[Finding]:
    """What is wrong with some decisions, which are all that there are from one number to another."""
    return [
        *fact_findings(tx, page, first, last),
        *key_findings(tx, page, now, recent),
        *drop_findings(tx, page, first, last, now, recent),
        *placement_findings(tx, page),
    ]


def last_verification(tx: Tx) -> tuple[int, int] | None:
    """When the last verification ended and how much it found; None if there was none."""
    at, findings = mark(tx, VERIFIED_AT), mark(tx, FINDINGS)
    return (at, findings) if at or findings else None


def note_verification(tx: Tx, now: int, findings: int) -> None:
    """Keep the result of a verification that ran to its end."""
    set_mark(tx, VERIFIED_AT, now)
    note_findings(tx, findings)


def note_findings(tx: Tx, findings: int) -> None:
    """Store and log how much is wrong."""
    set_mark(tx, FINDINGS, findings)
    PROBLEMS.set(findings)
    if findings:
        log.error("attribution_verify_found", findings=findings)


def _key_findings(tx: Tx) -> Iterator[Finding]:
    """Keys that must be unique, the tree of closure keys, and the log behind the decisions."""
    limit = {"limit": MAX_SHOWN}
    for closure, billable_type in tx.fetch(Q["billed_twice"], limit):
        yield Finding(check="billed_twice", key=f"{bytes(closure).hex()}|{billable_type}")
    names = ["closures_twice"] + (_SQLITE_CHECKS if tx.dialect == "sqlite" else [])
    for name in names:
        yield from (Finding(check=name, key=bytes(key).hex()) for (key,) in tx.fetch(Q[name], limit))
    purged = mark(tx, "log_purged")
    for (item,) in tx.fetch(Q["decisions_without_a_line"], {**limit, "since": purged or -(2**62)}):
        yield Finding(check="decisions_without_a_line", key=str(item))


def _sum_findings(tx: Tx) -> Iterator[Finding]:
    """The running sums of settlement, counted again."""
    limit = {"limit": MAX_SHOWN}
    for sums, name in MARKS.items():
        for hour, app_id, kind, summed, counted in tx.fetch(Q[f"{sums}_sums_differ"], limit):
            yield Finding(check="sums_differ", key=f"{app_id}|{kind} of hour {hour}: {summed} instead of {counted}")
        for (number,) in tx.fetch(Q["uncommitted_summed"], {**limit, "sums": sums, "mark": name}):
            yield Finding(check="uncommitted_summed", key=str(number))


def index_findings(tx: Tx, one: Archived) -> Iterator[Finding]:
    """The index by key, for one decision: every key of it leads to its item, unless it is purged by now."""
    item = one.id >> ITEM_BITS
    if item > mark(tx, INDEXED) or (item,) in tx.fetch(Q["gaps"]):
        return
    lacking = [key for key in sorted(located_by(one.decision)) if item not in locate_items(tx, {key})]
    if lacking and decisions_by_id(tx, {one.id}):
        yield from (Finding(check="index_lacks_key", key=key) for key in lacking)


def fact_findings(tx: Tx, page: Sequence[Archived], first: int, last: int) -> Iterator[Finding]:
    """A decision that bills has one row that says what it says; one that does not has none, nor has a row none.

    The decisions are all that there are from `first` to `last`.
    """
    purged = mark(tx, FACTS)
    left: list[Row] = [(one.id,) for one in page if one.id <= purged]
    found = tx.fetch(Q["billables_of_decisions"], rows=left) if left else []
    found += tx.fetch(Q["billables_of_items"], {"first": max(first, purged + 1), "last": last})
    rows = {row[0]: row[1:] for row in found}
    for one in page:
        kind, closure, app_id, fact_at, fact_hour, of = rows.pop(one.id, (None,) * 6)
        key, subject = billing_key_of(one.decision) or str(one.id), one.decision.subject
        if kind != one.decision.billable:
            yield Finding(check="fact_and_decision_differ", key=key)
        elif kind is None:
            continue
        elif closure is not None and bytes(closure) != half(subject.closure or ""):
            yield Finding(check="fact_of_another_closure", key=key)
        elif (app_id, fact_at, fact_hour) != (subject.app, subject.at, fact_at // HOUR) or (
            bytes(of) != opportunity(subject.app, subject.opportunity)
        ):
            yield Finding(check="fact_and_decision_differ", key=key)
    yield from (Finding(check="fact_without_a_decision", key=str(number)) for number in sorted(rows))
