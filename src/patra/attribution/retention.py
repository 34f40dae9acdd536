"""Deletes rows past their retention, in bounded batches; facts stay unless the settings say otherwise.

| what | kept for | by default |
|---|---|---|
| ledger keys | their window (3 or 14 days) and an hour | then forgotten, but for how many cycles they had |
| the log (batches as received) | `log` | 30 days |
| rejected and quarantined events | `rejects` | 90 days |
| audits of dropped events | `audits` | for ever |
| facts, with their audits and records | `facts` | for ever |
| billable facts as settlement counts them | `settled`, after their period was closed | for ever |

With a place for history (`history`), log lines and records of decisions are written there first, verified, and can be
asked and brought back. Without one, lines of the log are deleted.

Closures are never purged: a closure is what keeps a late event from being billed twice; those of settled facts are
reduced to their outcome when the facts go. Nor are the cycles of forgotten keys: a key that is used again must not get
the `recordKey` of a purged fact (§3.8.29). A fact is purged only once the archive has its record. Where the store is
the only archive that has it, because it was the archive then, or because the one outside did not take it, it is purged
only into a file that takes its place.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import msgspec
import zstandard

from patra.attribution.decision.dedup import SCOPE
from patra.attribution.decision.output_records import Record
from patra.attribution.delivery.port import as_sent
from patra.attribution.history.decisions import (
    AUDITS,
    FACTS,
    DecisionRecords,
    StatementVerified,
    next_decisions,
    status_rows,
)
from patra.attribution.history.export import Exporter, Moved
from patra.attribution.history.files import failing_kinds, note_failure
from patra.attribution.history.kinds import LOG_LOST, LOG_PURGED, Kind, LogLines, note_moved
from patra.attribution.history.log_partitions import drop_past, past_partitions, stretches
from patra.attribution.history.settled_facts import SettledFacts
from patra.attribution.storage.dedup_keys import PURGED
from patra.attribution.storage.sql import Q, mark, set_mark
from patra.kernel.clock import HOUR, Clock
from patra.kernel.db import Database, Tx
from patra.kernel.db.partitions import Partition
from patra.kernel.errors import PatraError, StoreBusy
from patra.kernel.files import FilePlace, write_whole
from patra.kernel.telemetry import get_logger

log = get_logger()

__all__ = [
    "AUDITS",
    "FACTS",
    "LOG_PURGED",
    "MAX_TRANSIT_TIME",
    "REJECTS_PURGED",
    "Keep",
    "Purged",
    "Retention",
    "RetentionRounds",
    "into_files",
    "purge_once",
]

PURGE_BATCH_SIZE = 1000

Keep = Callable[[Sequence[Record]], None]
"""Where the records of purged facts go; it has them durably when it returns."""

MAX_TRANSIT_TIME = HOUR
"""How long after its arrival a batch may still be on its way to a writer, by whichever clock: keys past their window
are kept that much longer, so that no answer depends on when they were forgotten (A1)."""

REJECTS_PURGED = "rejects_purged"
"""The mark: the instant up to which rejected events were purged."""


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """How long to keep what, in microseconds; None keeps it for ever."""

    log: int | None = None
    rejects: int | None = None
    audits: int | None = None
    facts: int | None = None
    verified: StatementVerified | None = None
    """Facts wait until their statement is written and verified, by this; None: they do not."""
    settled: int | None = None
    """How long after its period was closed a billable fact is kept as settlement counts it; needs `statements`."""
    statements: StatementVerified | None = None


class Purged(msgspec.Struct, frozen=True, kw_only=True):
    """One turn: how many rows of each kind went."""

    ledger: int = 0
    log: int = 0
    rejects: int = 0
    audits: int = 0
    facts: int = 0
    settled: int = 0
    passed: int = 0
    """Decisions that were examined and stay permanently."""
    rewritten: int = 0
    """Files of history that were lost before their rows went, and were written again."""
    statements: int = 0
    """Statements that were checked, since facts wait for them."""


class RetentionRounds:
    """Turns of retention, in rounds: in each goes what is past when it begins; what becomes past waits for the next.

    So a round ends, whatever goes on meanwhile: rows become past as steadily as they came, and without rounds each turn
    would find the few of the last moment, and write a file for them.
    """

    def __init__(
        self,
        db: Database,
        clock: Clock,
        retention: Retention,
        *,
        keep: Keep | None = None,
        history: FilePlace | None = None,
    ) -> None:
        self._db = db
        self._clock = clock
        self._retention = retention
        self._keep = keep
        self._history = history
        self._began: int | None = None

    def run_once(self) -> Purged:
        """One turn; one that finds nothing, or fails, ends its round."""
        began, self._began = self._began or self._clock.now(), None
        purged = purge_once(self._db, began, self._retention, keep=self._keep, history=self._history)
        self._began = None if purged == Purged() else began
        return purged


def purge_once(
    db: Database, now: int, retention: Retention, *, keep: Keep | None = None, history: FilePlace | None = None
) -> Purged:
    """Delete one batch of everything past its retention; what needs no file goes first, in case the disk is full.

    With a place for history, log lines and records of decisions go there first; `keep` is for records alone.
    """
    ledger = db.run(lambda tx: _purge_ledger(tx, now))
    rejects = db.run(lambda tx: _purge_rejects(tx, now, retention.rejects))
    statements = _check_statements(db, now, retention)
    if history is not None:
        moved, failures = _move(db, history, now, retention)
        if not moved.log:  # all that is past is in files; lines of a partition were counted when they came into one
            _drop_partitions(db, now, retention.log, in_files=True)
        if failures and moved == Purged():  # else the next turn follows at once, and comes here when all else is done
            raise failures[0]
        return msgspec.structs.replace(moved, ledger=ledger, rejects=rejects, statements=statements)
    log = _drop_partitions(db, now, retention.log, in_files=False)
    log += db.run(lambda tx: _purge_log(tx, now, retention.log))
    audits, passed_by = _purge_decisions(db, AUDITS, now, retention, keep)
    facts, passed = _purge_decisions(db, FACTS, now, retention, keep)
    return Purged(
        ledger=ledger,
        log=log,
        rejects=rejects,
        audits=audits,
        facts=facts,
        passed=passed_by + passed,
        statements=statements,
    )


def _check_statements(db: Database, now: int, retention: Retention) -> int:
    """Check the statements that facts wait for; gives how many."""
    checks = (retention.verified if retention.facts else None) or (retention.statements if retention.settled else None)
    return checks.check_pending(db, now) if checks is not None else 0


def _purge_ledger(tx: Tx, now: int) -> int:
    """Forget keys past their window; what is kept of them is how many cycles they had (F9)."""
    gone = tx.fetch(Q["forget_keys"], {"scope": SCOPE, "before": now - MAX_TRANSIT_TIME, "limit": PURGE_BATCH_SIZE})
    tx.execute(Q["remember_keys"], rows=sorted((bytes(key), cycle) for key, cycle in gone))
    if gone and not mark(tx, PURGED):
        set_mark(tx, PURGED, 1)
    return len(gone)


def _purge_log(tx: Tx, now: int, kept: int | None) -> int:
    """Batches as received, but never the newest: numbers go on from it. Marks say that the beginning is gone."""
    gone = 0
    for one in stretches(tx, now - kept, into_files=False) if kept else ():
        asked = {"before": one.before, "first": one.first, "end": one.end, "limit": PURGE_BATCH_SIZE - gone}
        gone += tx.execute(Q["purge_log"], asked)
        if gone >= PURGE_BATCH_SIZE:
            break
    if gone and kept:
        set_mark(tx, LOG_PURGED, now - kept)
        set_mark(tx, LOG_LOST, now - kept)
    return gone


def _drop_partitions(db: Database, now: int, kept: int | None, *, in_files: bool) -> int:
    """Drop partitions of the log that are past; gives how many lines went.

    One that a backup or another process reads is left to a later turn.
    """
    if not kept or db.dialect != "postgres":
        return 0
    before = now - kept

    def work(tx: Tx, partition: Partition) -> int:
        dropped = drop_past(tx, partition, before, now, in_files=in_files)
        if dropped is None:
            return 0
        if in_files and dropped.until is not None:
            note_moved(tx, dropped.until)
        elif dropped.lines:
            set_mark(tx, LOG_PURGED, before)
            set_mark(tx, LOG_LOST, before)
        return dropped.lines

    lines = 0
    with suppress(StoreBusy):
        for one in db.read(lambda tx: past_partitions(tx, before)):
            lines += db.run(lambda tx, one=one: work(tx, one))
    return lines


def _purge_rejects(tx: Tx, now: int, kept: int | None) -> int:
    if not kept:
        return 0
    past = {"before": now - kept, "limit": PURGE_BATCH_SIZE}
    gone = tx.execute(Q["purge_rejects"], past)
    set_mark(tx, REJECTS_PURGED, max(now - kept, mark(tx, REJECTS_PURGED)))  # earlier releases purge without it
    return gone + tx.execute(Q["purge_turned_away"], past)


def _purge_decisions(db: Database, scanned: str, now: int, retention: Retention, keep: Keep | None) -> tuple[int, int]:
    """Delete the oldest decisions that were not looked at yet; gives how many of the kind went, and how many stay."""
    kept = retention.facts if scanned == FACTS else retention.audits
    if not kept:
        return 0, 0
    verified = retention.verified if scanned == FACTS else None
    page = db.read(
        lambda tx: next_decisions(
            tx, scanned, now - kept, PURGE_BATCH_SIZE, has_file=keep is not None, verified=verified
        )
    )
    if page.reached is None:
        return 0, 0
    if keep is not None:
        keep([record for one in page.gone for record in one.records])

    kind, rows = DecisionRecords("", scanned, verified), status_rows(page.gone)

    def work(tx: Tx) -> int:
        done = kind.delete(tx, rows)
        if done == len(rows):
            set_mark(tx, scanned, page.reached or 0)
        return done

    gone = {row[0] for row in rows[: db.run(work)]}
    return len(gone), page.passed if len(gone) == len(page.gone) else 0


def _move(db: Database, history: FilePlace, now: int, retention: Retention) -> tuple[Purged, list[PatraError]]:
    """One file of each kind that goes to history, and the errors of kinds that could not; each fails for itself."""
    exporter = Exporter(db, history)
    failing = db.read(failing_kinds)
    failures: list[PatraError] = []

    def move_rows(kind: Kind, kept: int | None) -> Moved:
        if not kept:
            return Moved()
        try:
            done = exporter.move(kind, now - kept, now)
        except StoreBusy:
            raise
        except PatraError as error:
            log.exception("attribution_history_failed", kind=kind.name, code=error.code)
            failures.append(error)
            done = Moved()
            if kind.name not in failing:
                db.run(lambda tx: note_failure(tx, kind.name, now))
        else:
            if kind.name in failing:
                db.run(lambda tx: note_failure(tx, kind.name, 0))
        return done

    log_lines = move_rows(LogLines(), retention.log)
    audits = move_rows(DecisionRecords("audits", AUDITS), retention.audits)
    facts = move_rows(DecisionRecords("facts", FACTS, retention.verified), retention.facts)
    settled = move_rows(SettledFacts(retention.statements), retention.settled) if retention.statements else Moved()
    purged = Purged(
        log=log_lines.rows,
        audits=audits.rows,
        facts=facts.rows,
        settled=settled.rows,
        passed=audits.passed + facts.passed,
        rewritten=sum(one.written for one in (log_lines, audits, facts, settled)),
    )
    return purged, failures


def into_files(folder: Path) -> Keep:
    """Keep the records of purged facts as JSON lines, compressed: one file per batch, durable before they are deleted.

    A file is named by what it holds and appears whole, so a process that purges the same at the same time, or after a
    crash, replaces nothing else: at worst a record stands in two files.
    """

    def keep(records: Sequence[Record]) -> None:
        if not records:
            return
        lines = msgspec.json.Encoder().encode_lines([as_sent(record) for record in records])
        path = folder / f"records-{records[0].at}-{sha256(lines).hexdigest()[:16]}.jsonl.zst"
        write_whole(path, zstandard.ZstdCompressor(level=6).compress(lines))

    return keep
