"""Exports that schedules ask for: when the plan of a tick is done, its file is written again and replaces the old one.

A plan that begins before the last one is done does not hold back the export of the last, and one that does not end
within a day holds back none: plans that overlap night after night would postpone the file for ever.

The tick's line in the history is the order: it is claimed by one process, and says in the end what was written.
"""

from pathlib import Path

import msgspec

from patra.ingest.planning import store
from patra.ingest.planning.planner import Planned
from patra.ingest.planning.schedule import Scheduled, ScheduledExport
from patra.ingest.planning.schedule_run import note_run
from patra.ingest.works.export import JOINED, RECORDS, WORKS, joined_rows, record_rows, work_rows
from patra.ingest.works.file_writers import export, format_of, sink
from patra.kernel.clock import DAY, HOUR, Clock
from patra.kernel.db import Database, Tx
from patra.kernel.errors import Invalid, PatraError
from patra.kernel.telemetry import get_logger

log = get_logger()
CLAIM_TIMEOUT = HOUR
"""An export that was begun longer ago than this was given up by its process, and another starts over."""

PLAN_TIMEOUT = DAY
"""An export waits no longer than this for the plans of its tick and of those before it."""


class ExportCounts(msgspec.Struct, frozen=True, kw_only=True):
    """What one turn did."""

    written: int = 0
    failed: int = 0


def write_export(db: Database, wanted: ScheduledExport) -> int:
    """Write a file and put it in the place of the one before, complete or not at all; gives the number of rows."""
    out = Path(wanted.out)
    if db.holds(out):
        raise Invalid("file_is_the_store", f"{out} is the store itself", advice="name another file")
    match wanted.what, wanted.dedupe:
        case "works", True:
            pages, table = joined_rows(db, out.parent, wanted.sources, topic=wanted.topic), JOINED
        case "works", False:
            pages, table = work_rows(db, wanted.sources, topic=wanted.topic), WORKS
        case _:
            pages, table = record_rows(db, wanted.sources, topic=wanted.topic), RECORDS
    return export(pages, sink(out, format_of(out, None), table))


class ScheduledExports:
    """Writes due exports; any number of processes may."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    def run_once(self) -> ExportCounts:
        """Write the files of all ticks whose plans are done."""
        counts = ExportCounts()
        lost, late = self._clock.now() - CLAIM_TIMEOUT, self._clock.now() - PLAN_TIMEOUT
        due = self._db.read(lambda tx: tx.fetch(store.Q["pending_exports"], {"lost": lost, "late": late}))
        for job, tick, cfg, failed, unfinished in due:
            place, now = {"job": job, "tick": tick}, self._clock.now()
            claim = {**place, "now": now, "lost": lost}
            if not self._db.run(lambda tx, c=claim: tx.execute(store.Q["claim_export"], c)):
                continue
            status, detail = self._write(job, msgspec.json.decode(cfg, type=ScheduledExport), failed, unfinished)
            self._settle(job, tick, status, detail)
            good = status == "DONE"
            counts = ExportCounts(written=counts.written + int(good), failed=counts.failed + int(not good))
        return counts

    def write_after_run(self, entry: Scheduled, made: Planned, tick: int, *, failed: int) -> tuple[str, str] | None:
        """Note a run by hand whose work is over, and write its file; gives the status and what was written."""
        now, wanted = self._clock.now(), None if made.is_refused else entry.then
        claim = {"job": entry.job, "tick": tick, "now": now, "lost": now - CLAIM_TIMEOUT}

        def note(tx: Tx) -> None:
            note_run(tx, entry, made, tick, now)
            tx.execute(store.Q["claim_export"], claim)

        self._db.run(note)
        if wanted is None:
            return None
        status, detail = self._write(entry.job, wanted, failed, 0)
        self._settle(entry.job, tick, status, detail)
        return status, detail

    def _settle(self, job: str, tick: int, status: str, detail: str) -> None:
        place = {"job": job, "tick": tick}
        done = {**place, "status": status, "detail": detail, "now": self._clock.now()}
        self._db.run(lambda tx: tx.execute(store.Q["settle_export"], done))
        self._db.run(lambda tx: tx.execute(store.Q["supersede_exports"], place))

    def _write(self, job: str, wanted: ScheduledExport, failed: int, unfinished: int) -> tuple[str, str]:
        try:
            rows = write_export(self._db, wanted)
        except (PatraError, OSError, ValueError) as error:
            log.warning("scheduled_export_failed", job=job, out=wanted.out, error=str(error))
            return "FAILED", str(error)
        log.info("scheduled_export_written", job=job, rows=rows, out=wanted.out)
        note = f"; {failed} windows of the plan failed" if failed else ""
        note += f"; plans still under way: {unfinished}" if unfinished else ""
        return "DONE", f"{rows} rows in {wanted.out}{note}"
