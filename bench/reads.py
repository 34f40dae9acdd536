"""The read side of all engines on a large store, while a writer writes, on SQLite and PostgreSQL.

    ./dev bench reads                           100,000 tasks and runs, a million batches and events of each engine
    ./dev bench reads --tasks 1000000 --events 10000000
    ./dev bench reads --tasks 10000 --events 100000 --only sqlite --keep /tmp/stores [--fill]

The tables of ingest and of the bus are filled by set-based SQL, so that a million rows take seconds; attribution fills
its own by commits, some 10,000 events a second, with a month's receipt times. A store that is kept is filled once. Each
read is asked for again and again while another process commits to all engines; the specification asks for a 95th
percentile below 200 ms with a million tasks and ten million batches (ch. 13.10), 100 ms for a story. `of the limit` is
that percentile beside those limits; `processor` is what one read costs, the backend of PostgreSQL included, whatever
else the machine does. List pages are taken at their beginning and in their middle: a page far down costs what the
first one does. At last the writer is measured by turns: nobody reads, and ten pages a second are read.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import msgspec
from tests import services

from bench import reads_console, reads_ingest
from bench.attribution_traffic import EVENTS
from bench.harness import BUILD, facts, write
from bench.reads_engines import AttributionStore, BusStore
from bench.reads_fill import fill_ingest
from bench.reads_timing import SECONDS_PER_READ, Processor, Timing, percentiles, show, timed
from bench.reads_writer import Writer, writing
from patra.app.wiring import packages
from patra.kernel.clock import SystemClock
from patra.kernel.db import Database, migrate, open_database
from patra.kernel.db.queries import statement

PACKAGES = packages()
SOURCES = 10
TURNS = 4
TURN_LENGTH = 8
PAGES_PER_SECOND = 10
ALONE, BESIDE = "nobody reads", f"{PAGES_PER_SECOND} pages a second are read"
FILLED = statement("filled", "SELECT part FROM bench_filled")


def fill(db: Database, title: str, tasks: int, batches: int, events: int, copies: int) -> None:
    """Fill what is not filled yet."""
    db.run(lambda tx: tx.script("CREATE TABLE IF NOT EXISTS bench_filled (part TEXT PRIMARY KEY)"))
    filled = {part for (part,) in db.read(lambda tx: tx.fetch(FILLED))}
    parts: dict[str, Callable[[], object]] = {
        "attribution": lambda: AttributionStore(db).fill(events, copies),
        "bus": lambda: BusStore(db).fill(events),
        "ingest": lambda: fill_ingest(db, tasks, batches, SystemClock().now()),
        "sources": lambda: reads_console.load_sources(db, SOURCES),
        "statistics": lambda: db.dialect == "postgres" and db.run(lambda tx: tx.script("ANALYZE")),
    }
    for part, work in parts.items():
        if part not in filled:
            begun = time.perf_counter()
            work()
            db.run(lambda tx, part=part: tx.insert("bench_filled", [{"part": part}]))
            print(f"{title}: filled {part} in {time.perf_counter() - begun:.0f} s", flush=True)


def measure(db: Database, url: str, tasks: int, events: int, copies: int, seconds: float) -> dict[str, Timing]:
    """Reads of the engines, the console's pages and the stories; then what reading costs the writer."""
    asked: dict[str, Callable[[], Any]] = reads_ingest.asked(db, tasks)
    asked |= AttributionStore(db).reads(events // (copies + 1)) | BusStore(db).reads(events)
    processor = Processor(db)
    with reads_console.served(url) as address, writing(url) as writer:
        browser = reads_console.Browser(address)
        pages = reads_console.pages(browser, db, tasks, events, copies)
        rows = {name: timed(work, processor, seconds) for name, work in (asked | pages).items()}
        by_turns(writer, list(pages.values()), TURN_LENGTH * seconds)
        browser.close()
    for name in (ALONE, BESIDE):
        rows[f"a batch of 100 events written, {name}"] = percentiles(writer.taken[name])
    return rows


def by_turns(writer: Writer, pages: list[Callable[[], Any]], seconds: float) -> None:
    """Let the writer write, with and without reads beside it: whatever else the machine does falls on both."""
    following = cycle(pages)
    for _ in range(TURNS):
        writer.say(ALONE)
        time.sleep(seconds)
        writer.say(BESIDE)
        end = time.perf_counter() + seconds
        while (begun := time.perf_counter()) < end:
            next(following)()
            time.sleep(max(begun + 1 / PAGES_PER_SECOND - time.perf_counter(), 0))
    writer.say("ended")


@contextmanager
def stores(only: str | None, keep: Path | None) -> Generator[dict[str, str]]:
    """The address of a store of each database that is wanted."""
    with ExitStack() as stack:
        folder = keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        found: dict[str, str] = {}
        if only != "postgres":
            found["SQLite"] = f"sqlite:///{folder / 'patra.db'}"
        if only != "sqlite":
            found["PostgreSQL"] = stack.enter_context(services.postgres(durable=True))
        yield found


COUNTED = statement(
    "counted",
    f"""SELECT (SELECT count(*) FROM ing_task), (SELECT count(*) FROM ing_task_run_batch),
      {EVENTS} * (SELECT count(*) FROM att_decision), (SELECT count(*) FROM bus_event), (SELECT count(*) FROM bus_delivery)""",
)


def rows_of(db: Database) -> str:
    tasks, batches, attribution, bus, waiting = db.read(lambda tx: tx.fetch(COUNTED))[0]
    return (
        f"{tasks:,} tasks, {batches:,} batches; {attribution:,} events of attribution; "
        f"{bus:,} of the bus, of which {waiting:,} wait"
    )


def keep(known: dict[str, str], results: dict[str, dict[str, Timing]], *, quick: bool) -> None:
    """Write the results down, beside those of the other database from its last run."""
    known["load_after"] = " ".join(f"{load:.1f}" for load in os.getloadavg())
    for title in results:
        known[title] += f"; {known['date']}, commit {known['commit']}, load {known['load']} to {known['load_after']}"
    before: dict[str, Any] = {"facts": {}, "reads": {}}
    if (BUILD / "reads.json").exists():
        before = msgspec.json.decode((BUILD / "reads.json").read_bytes())
    others = {title: rows for title, rows in before["reads"].items() if title in before["facts"]}
    known |= {title: before["facts"][title] for title in others if title not in results}
    write("reads", {"name": "reads", "quick": quick, "facts": known, "reads": others | results})


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev bench reads", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small stores, to see that it runs")
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--batches", type=int, default=10, help="batches and cursor events a task")
    parser.add_argument("--events", type=int, default=1_000_000, help="events of attribution, and of the bus")
    parser.add_argument("--copies", type=int, default=0, help="copies of attribution's rows among its events")
    parser.add_argument("--seconds", type=float, default=SECONDS_PER_READ, help="how long each read is asked again")
    parser.add_argument("--only", choices=["sqlite", "postgres"])
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="the SQLite store, which stays; filled once")
    parser.add_argument("--fill", action="store_true", help="fill only")
    said = parser.parse_args()
    tasks, events = (2_000, 10_000) if said.quick else (said.tasks, said.events)
    known = facts()
    if said.copies:
        known["filled"] = (
            f"one of {said.copies + 1} parts of attribution's events by commits of its writer, the others are older copies of "
            "its rows under other numbers, instants and hashes (`bench/reads_copies`); ingest and bus by set-based SQL"
        )
    results: dict[str, dict[str, Timing]] = {}
    with stores(said.only, said.keep) as found:
        for title, url in found.items():
            db = open_database(url)
            migrate(db, PACKAGES)
            fill(db, title, tasks, said.batches, events, said.copies)
            if not said.fill:
                known[title] = rows_of(db)
                results[title] = measure(db, url, tasks, events, said.copies, 0.1 if said.quick else said.seconds)
                show(title, results[title])
            db.close()
    if results:
        keep(known, results, quick=said.quick)
    return 0


if __name__ == "__main__":
    sys.exit(main())
