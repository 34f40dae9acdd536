"""The ingest step of the demonstration: a week of three providers, a crash in the middle, and one library at the end.

A process harvests the simulated providers and is killed with -9; another takes its work over when the leases have run
out. Nothing lands twice and nothing is missing, which the step checks itself.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.parse import quote

from patra.demo import Demo, Link
from patra.demo.providers import library
from patra.demo.providers_http import Providers, Trouble, local_pack, serve
from patra.ingest.execution.compiled_plan import Options
from patra.ingest.execution.executor import Executor
from patra.ingest.fetching.runtime import Runtime
from patra.ingest.http.client import Transport
from patra.ingest.packs import bundled, registry
from patra.ingest.planning.planner import Planner
from patra.ingest.planning.trigger import Trigger
from patra.ingest.ratelimit.limiter import LocalGate
from patra.ingest.vocabulary.codes import Operation
from patra.ingest.works.merge import Merged, group_works, merge_works
from patra.ingest.works.read import count, works
from patra.kernel.clock import SECOND, SystemClock
from patra.kernel.db import Database, migrate, open_database
from patra.kernel.db.queries import statement

DAYS = 7
EARLIER_DAYS = 120  # what is read while the demonstration goes on
CROWD = 60
REACH = 64
"""How deep the simulated PubMed may be read here; the real one ends at 9,999."""
TIMEOUT_S = 300.0
PAUSE_S = 8.0
DOI = "10.5555/boats.0"
ENDPOINTS = {"pubmed": "search", "crossref": "works", "openalex": "works"}


def show(demo: Demo) -> Iterator[str]:
    """Run it on the store of a running demonstration; gives lines as they become true."""
    url = demo.store_url
    start = datetime.now(UTC).date() - timedelta(days=DAYS + 3)
    papers = library(DAYS, per_day=8, start=start, crowded={start + timedelta(days=2): CROWD}, earlier=EARLIER_DAYS)
    db = open_database(url)
    try:
        migrate(db, ["patra.kernel", "patra.ingest"])
        providers = demo.at_end.enter_context(serve(papers, trouble=Trouble(throttle_every=6)))
        yield f"three providers of our own making, {len(papers.papers)} papers each, at {providers.url}:"
        yield "  they limit rates, answer 429 now and then, and end their lists as the real ones do"
        _load(db, providers.url)
        for source in ENDPOINTS:
            _plan(db, source, start, start + timedelta(days=DAYS))
        yield f"planned: {DAYS} days of each, one window a source ({_tasks(db)} tasks in the queue)"
        before = _crash(url, db)
        yield f"a harvesting process was killed with -9 in the middle: {before} records were in the store"
        _finish(url, db)
        yield from _tell_sources(db, providers)
        yield from _check_records(db, sum(1 for paper in papers.papers if paper.entered >= start))
    finally:
        db.close()
    demo.walk.append(
        Link(path="/console/ingest/source/pubmed", text="windows on the axis of time, the crowded day cut, the crash")
    )
    demo.walk.append(
        Link(
            path=f"/console/story?key={quote(DOI, safe='')}",
            text="one paper: who asked for it, when it came, what changed",
        )
    )


def go_on(demo: Demo) -> None:
    """Read one more day of one provider at a time, backwards, with a process that works on the queue."""
    db = open_database(demo.store_url)
    demo.at_end.callback(db.close)
    demo.at_end.enter_context(_harvesting(demo.store_url))
    days = dict.fromkeys(ENDPOINTS, datetime.now(UTC).date() - timedelta(days=DAYS + 4))
    for number in range(10_000):
        if demo.stop.wait(PAUSE_S):
            return
        source = list(ENDPOINTS)[number % len(ENDPOINTS)]
        if not _tasks(db):
            _plan(db, source, days[source], days[source] + timedelta(days=1))
            days[source] -= timedelta(days=1)


def _tell_sources(db: Database, providers: Providers) -> Iterator[str]:
    asked, refused = sum(providers.asked.values()), sum(providers.refused.values())
    yield f"another process took over when the leases had run out: {count(db)} records after {asked} requests"
    yield f"throttled: {refused} answers were 429; each was waited for, none was lost"
    cut = _number(db, "SELECT count(*) FROM ing_reslice_request WHERE status_code = 'DONE'")
    yield f"the crowded day: {cut} windows found more than {REACH} records, as deep as may be read, and were cut in two"


def _check_records(db: Database, expected: int) -> Iterator[str]:
    found = [work for page in works(db) for work in page if work is not None]
    joined = [merge_works(group) for group in group_works(found)]
    if len(found) != 3 * expected or len(joined) != expected:
        raise RuntimeError(f"expected {expected} works of three sources, found {len(joined)} of {len(found)}")
    yield f"nothing is missing, nothing is there twice: {len(found)} records are {len(joined)} works"
    shown: Merged = next(one for one in joined if one.title is not None)
    given = ", ".join(f"{field} from {source}" for field, source in list(shown.given_by.items())[:4])
    yield f'for example "{shown.title}" ({shown.doi}): {given}'


def _load(db: Database, url: str) -> None:
    packs = [bundled.parse_pack(local_pack(source, url), f"{source}.yaml") for source in ENDPOINTS]
    db.run(lambda tx: registry.load(tx, packs, by="demo", now=SystemClock().now()))


def _plan(db: Database, source: str, start: date, end: date) -> None:
    deep: dict[str, Any] = {"limits": {"maxDepth": REACH}} if source == "pubmed" else {}
    paged: dict[str, Any] = {"pagination": {"pageSize": 40}} if source != "pubmed" else {}
    Planner(db, SystemClock()).trigger(
        Trigger(
            source=source,
            endpoint=ENDPOINTS[source],
            operation=Operation.BACKFILL,
            since=_midnight(start),
            until=_midnight(end),
            sections={"window": {"maxWindow": "P7D"}, **deep, **paged},
            activity="demo",
        )
    )


def _midnight(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * SECOND


@contextmanager
def _harvesting(url: str) -> Generator[subprocess.Popen[bytes]]:
    """A process that works on the queue until it is killed."""
    run = [sys.executable, "-m", "patra.demo.providers_show", url]
    worker = subprocess.Popen(run, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603  ourselves
    try:
        yield worker
    finally:
        worker.kill()
        worker.wait()


def _crash(url: str, db: Database) -> int:
    """Let a process harvest until something has landed, then kill it."""
    with _harvesting(url) as worker:
        _wait(worker, lambda: count(db) > 0)
        worker.send_signal(signal.SIGKILL)
    return count(db)


def _finish(url: str, db: Database) -> None:
    """Let another one work until nothing is queued or held by the dead; windows are cut here meanwhile."""
    planner = Planner(db, SystemClock())

    def is_done() -> bool:
        planner.run_once()
        return not _tasks(db)

    with _harvesting(url) as worker:
        _wait(worker, is_done)


def _wait(worker: subprocess.Popen[bytes], done: Callable[[], bool]) -> None:
    until = time.monotonic() + TIMEOUT_S
    while not done():
        if worker.poll() is not None:
            raise RuntimeError(f"the harvesting process ended by itself with exit code {worker.returncode}")
        if time.monotonic() > until:
            raise RuntimeError(f"not done after {TIMEOUT_S:.0f} s")
        time.sleep(0.05)


def _tasks(db: Database) -> int:
    """Tasks that are not over."""
    return _number(db, "SELECT count(*) FROM ing_task WHERE status_code IN ('QUEUED', 'DISPATCHED', 'EXECUTING')")


def _number(db: Database, sql: str) -> int:
    found = db.read(lambda tx: tx.fetch_one(statement("demo", sql), {}))
    return int(found[0]) if found else 0


def _executor(db: Database) -> Executor:
    clock = SystemClock()
    services = Runtime(clock=clock, gate=LocalGate(clock), transport=Transport())
    return Executor(db, services, options=Options(ttl=3 * SECOND))


if __name__ == "__main__":  # the process that is going to be killed
    os.nice(5)
    worker = _executor(open_database(sys.argv[1]))
    while True:
        if not worker.run_once().tasks:
            time.sleep(0.05)
