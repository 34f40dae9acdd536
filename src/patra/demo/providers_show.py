"""The ingest step of the demonstration: a week of three providers, a crash in the middle, and one library at the end.

A process harvests the simulated PubMed and is killed with -9; another takes its work over when the lease has run out.
Nothing lands twice and nothing is missing, which the step checks itself.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta

from patra.demo import Demo, Step
from patra.demo.providers import library
from patra.demo.providers_http import LIMITS, Trouble, local_pack, serve
from patra.ingest import shelf, sources
from patra.ingest.codes import Operation
from patra.ingest.course import Options
from patra.ingest.executor import Executor
from patra.ingest.gates import LocalGate
from patra.ingest.planner import Planner
from patra.ingest.services import Services
from patra.ingest.transport import Transport
from patra.ingest.trigger import Trigger
from patra.ingest.works_merge import grouped, merged
from patra.ingest.works_read import count, works
from patra.kernel.clock import SECOND, SystemClock
from patra.kernel.db import Database, migrate, open_database

DAYS = 7
PATIENCE = 60.0
ENDPOINTS = {"pubmed": "search", "crossref": "works", "openalex": "works"}


def show(demo: Demo) -> Sequence[str]:
    """Run it; gives lines to print."""
    return list(_story(f"sqlite:///{demo.folder / 'patra.db'}"))


def _story(url: str) -> Iterator[str]:
    start = datetime.now(UTC).date() - timedelta(days=DAYS + 3)
    papers = library(DAYS, per_day=8, start=start, crowded={start + timedelta(days=2): 60})
    db = open_database(url)
    try:
        migrate(db, ["patra.kernel", "patra.ingest"])
        with serve(papers, trouble=Trouble(throttle_every=5)) as providers:
            _plan(db, providers.url, start)
            yield f"{len(papers.papers)} papers at each of {', '.join(LIMITS)}; planned {DAYS} days of each"
            before = _crash(url, db)
            yield f"a harvesting process was killed with -9 after {before} records"
            _finish(db)
            asked, refused = sum(providers.asked.values()), sum(providers.refused.values())
            yield f"another took over: {count(db)} records in {asked} requests, {refused} of them throttled"
        found = [work for page in works(db) for work in page if work is not None]
        joined = [merged(group) for group in grouped(found)]
        whole = len(found) == 3 * len(papers.papers) and len(joined) == len(papers.papers)
        yield f"{len(found)} records are {len(joined)} works, each with the source of every field"
        if not whole:
            raise RuntimeError(f"expected {len(papers.papers)} works, found {len(joined)}")
    finally:
        db.close()


def _plan(db: Database, url: str, start: date) -> None:
    clock = SystemClock()
    packs = [sources.parsed(local_pack(source, url), f"{source}.yaml") for source in ENDPOINTS]
    db.run(lambda tx: shelf.load(tx, packs, by="demo", now=clock.now()))
    since = int(datetime(start.year, start.month, start.day, tzinfo=UTC).timestamp()) * SECOND
    for source, endpoint in ENDPOINTS.items():
        Planner(db, clock).trigger(
            Trigger(
                source=source,
                endpoint=endpoint,
                operation=Operation.BACKFILL,
                since=since,
                until=since + DAYS * 86_400 * SECOND,
                sections={"window": {"maxWindow": "P1D"}},
                activity="demo",
            )
        )


def _crash(url: str, db: Database) -> int:
    """Let another process harvest until something has landed, then kill it."""
    run = [sys.executable, "-m", "patra.demo.providers_show", url]
    worker = subprocess.Popen(run, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603  ourselves
    try:
        until = time.monotonic() + PATIENCE
        while count(db) == 0 and worker.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        worker.send_signal(signal.SIGKILL)
        return count(db)
    finally:
        worker.kill()
        worker.wait()


def _finish(db: Database) -> None:
    """Work until nothing is queued or held by the dead."""
    until = time.monotonic() + PATIENCE
    executor, planner = _executor(db), Planner(db, SystemClock())
    while time.monotonic() < until:
        if executor.run_once().tasks:
            continue
        planner.run_once()
        if not _open(db):
            return
        time.sleep(0.1)


def _open(db: Database) -> int:
    states = db.read(lambda tx: tx.fetch(shelf.Q["queue_snapshot"], {"source": "", "operation": ""}))
    return sum(int(row[4]) for row in states if row[3] in {"QUEUED", "DISPATCHED", "EXECUTING"})


def _executor(db: Database) -> Executor:
    clock = SystemClock()
    services = Services(clock=clock, gate=LocalGate(clock), transport=Transport())
    return Executor(db, services, options=Options(ttl=3 * SECOND))


STEP = Step(name="Ingest: three providers, a crash, one library", show=show)


if __name__ == "__main__":  # the process that is going to be killed
    os.nice(5)
    worker = _executor(open_database(sys.argv[1]))
    while True:
        if not worker.run_once().tasks:
            time.sleep(0.05)
