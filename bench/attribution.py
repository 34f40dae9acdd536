"""Durable accepted events a second of `POST /events`, beside the plain limit and beside what a user would write instead.

Everything runs against real `patra up` processes with durable commits; the sender is a process of its own on the same
machine. The plain limit and the naive service are measured in the same run, in turns with Patra, since a shared machine
is not the same machine from one minute to the next.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
import urllib3
from tests import services

from bench import attribution_load as load
from bench.attribution_constraints import two_sides
from bench.attribution_fill import KEYS, fill_postgres, fill_sqlite
from bench.attribution_limit import (
    PACKAGES,
    Written,
    fdatasync,
    postgres_limit,
    row_a_thing,
    schema,
    sqlite_limit,
    written,
)
from bench.attribution_traffic import EVENTS
from bench.harness import facts, write
from patra.kernel.db import migrate, open_database

OFFERED = {"sqlite": 20_000, "postgres": 10_000}
CONNECTIONS = 64
"""Senders. In the closed loop too few leave the server waiting for them: two groups of a commit have to be on their way."""
NAIVE_CONNECTIONS = (8, 32)
START_SECONDS = 60.0


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How long and how often."""

    seconds: float
    rounds: int
    keys: int
    limit_batches: int
    databases: tuple[str, ...]


FULL = Plan(seconds=6.0, rounds=2, keys=KEYS, limit_batches=240, databases=("sqlite", "postgres"))
QUICK = Plan(seconds=3.0, rounds=1, keys=200_000, limit_batches=150, databases=("sqlite", "postgres"))


class Server(msgspec.Struct, kw_only=True):
    """A server process that is being measured."""

    url: str
    pid: int

    @property
    def memory(self) -> float:
        """Resident memory, in MiB, its children's with it."""
        lines = [line for pid in self._pids() for line in Path(f"/proc/{pid}/status").read_text().splitlines()]
        return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024

    @property
    def cpu(self) -> float:
        """Seconds of processor time so far, its children's with it."""
        found = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in self._pids()]
        return sum(int(fields[11]) + int(fields[12]) for fields in found) / os.sysconf("SC_CLK_TCK")

    def _pids(self) -> list[int]:
        children = [task.read_text().split() for task in Path(f"/proc/{self.pid}/task").glob("*/children")]
        return [self.pid, *(int(pid) for some in children for pid in some)]


@contextmanager
def patra(folder: Path, store: str) -> Iterator[Server]:
    """`patra up` on a store, on a free port."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("PATRA_")}
    with _process(
        [sys.executable, "-m", "patra", "up", "--port", "0"],
        folder,
        own | {"PATRA_STORE_URL": store, "PATRA_LOG_FORMAT": "json"},
    ) as (process, log):
        until = time.monotonic() + START_SECONDS
        while True:
            lines = [msgspec.json.decode(line) for line in log.read_text().splitlines() if line.startswith("{")]
            if found := [line["url"] for line in lines if line["event"] == "listening"]:
                yield Server(url=found[0], pid=process.pid)
                return
            _still_starting(process, until, log)


@contextmanager
def naive(folder: Path, store: str) -> Iterator[Server]:
    port = services.free_port()
    store = store.replace("postgresql://", "postgresql+psycopg://", 1)
    with _process(
        [sys.executable, "-m", "bench.attribution_naive"],
        folder,
        os.environ | {"NAIVE_URL": store, "NAIVE_PORT": str(port), "PYTHONPATH": str(Path(__file__).parent.parent)},
    ) as (process, log):
        url = f"http://127.0.0.1:{port}"
        until = time.monotonic() + START_SECONDS
        while True:
            try:
                urllib3.request("GET", f"{url}/ready", retries=False, timeout=2)
            except urllib3.exceptions.HTTPError:
                _still_starting(process, until, log)
            else:
                yield Server(url=url, pid=process.pid)
                return


@contextmanager
def _process(
    command: list[str], folder: Path, environment: dict[str, str]
) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    log = folder / "server.log"
    with (
        log.open("wb") as sink,
        subprocess.Popen(command, cwd=folder, env=environment, stdout=sink, stderr=sink) as process,
    ):
        try:
            yield process, log
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


def _still_starting(process: subprocess.Popen[bytes], until: float, log: Path) -> None:
    if process.poll() is not None or time.monotonic() > until:
        raise RuntimeError(f"the server did not start:\n{log.read_text()[-3000:]}")
    time.sleep(0.05)


# --- one thing after the other ----------------------------------------------------------------------------------------


class Throughput(msgspec.Struct, kw_only=True):
    rate: float
    memory: float
    cpu_us: float
    """Processor time of the server for one event, in microseconds."""
    group: float
    """Batches in one commit, as the server's own metric has it."""
    outcome: load.Outcome


def throughput(server: Server, seconds: float, connections: int = CONNECTIONS) -> Throughput:
    """Closed loop: as much as the server takes."""
    before, commits_before, batches_before = server.cpu, *_commits(server)
    outcome = load.run(server.url, seconds=seconds, warm=1.0, connections=connections)
    commits, batches = _commits(server)
    total = outcome.accepted * (1 + 1.0 / seconds) or 1
    return Throughput(
        rate=outcome.rate,
        memory=server.memory,
        cpu_us=1e6 * (server.cpu - before) / total,
        group=(batches - batches_before) / max(commits - commits_before, 1),
        outcome=outcome,
    )


def _commits(server: Server) -> tuple[float, float]:
    """Commits and batches so far, from `/metrics`."""
    text = urllib3.request("GET", f"{server.url}/metrics", retries=False).data.decode()
    found = {line.split(" ")[0]: float(line.split(" ")[1]) for line in text.splitlines() if line[:1] not in {"#", ""}}
    name = "patra_attribution_commit_batches"
    return found.get(f"{name}_count", 0.0), found.get(f"{name}_sum", 0.0)


@contextmanager
def store(database: str, folder: Path, server: str | None, name: str) -> Iterator[str]:
    """An empty, migrated store of a database."""
    with ExitStack() as stack:
        if database == "sqlite":
            url = f"sqlite:///{folder / name}.db"
            stack.callback(lambda: [file.unlink() for file in folder.glob(f"{name}.db*")])
        else:
            assert server
            url = stack.enter_context(schema(server, f"bench_{name}"))
        db = open_database(url)
        migrate(db, PACKAGES)
        db.close()
        yield url


class Report:
    """Lines for people as the run goes on, and everything as JSON at its end."""

    def __init__(self) -> None:
        self.figures: dict[str, float | str] = {}
        self.texts: dict[str, str] = {}

    def add(self, name: str, value: float | str, text: str) -> None:
        self.figures[name] = value
        self.texts[name] = text.strip()
        print(f"  {name:<44} {text}", flush=True)

    def rate(self, name: str, value: float) -> None:
        self.add(name, value, f"{value:>10,.0f} events/s")


def measure(database: str, plan: Plan, folder: Path, server: str | None, rows: Written, report: Report) -> None:
    """All figures of one database."""
    print(f"\n{database}", flush=True)
    rates: list[float] = []
    limits: list[float] = []
    with store(database, folder, server, "fresh") as url, patra(folder, url) as one:
        group = 8
        for turn in range(plan.rounds):
            got = throughput(one, plan.seconds)
            group = max(1, round(got.group))
            rates.append(got.rate)
            limits.append(_limit(database, rows, folder, server, group))
            report.rate(f"{database}: events, turn {turn + 1}", got.rate)
            report.rate(f"{database}: plain limit, turn {turn + 1}", limits[-1])
            report.add(f"{database}: answers, turn {turn + 1}", str(got.outcome.statuses), str(got.outcome.statuses))
        report.add(f"{database}: batches a commit", got.group, f"{got.group:>10.1f}")
        report.add(f"{database}: processor an event", got.cpu_us, f"{got.cpu_us:>10.1f} µs")
        report.add(f"{database}: memory", got.memory, f"{got.memory:>10.0f} MiB")
        took = got.outcome
        report.add(f"{database}: batch, closed loop", took.p99, f"p50 {took.p50:.0f} ms, p99 {took.p99:.0f} ms")
    rate, limit = statistics.median(rates), statistics.median(limits)
    report.rate(f"{database}: events (median)", rate)
    report.rate(f"{database}: plain limit (median)", limit)
    report.add(f"{database}: part of the plain limit", rate / limit, f"{rate / limit:>10.2f}")
    if database == "sqlite":
        for name, batches in (("as many batches a commit", group), ("a batch a commit", 1)):
            things = row_a_thing(folder, plan.limit_batches * EVENTS, batches)
            report.rate(f"sqlite: a key, three rows, {name}", things)
            report.add(f"sqlite: part of that, {name}", rate / things, f"{rate / things:>10.2f}")
    if database == "postgres":
        copied = postgres_limit(rows, str(server), group, copy=True)
        report.rate(f"{database}: the same rows by COPY", copied)
    _latency(database, plan, folder, server, "empty ledger", 0, report)
    _with_keys(database, plan, folder, server, report)
    _constraints(database, plan, folder, server, report)


def _limit(database: str, rows: Written, folder: Path, server: str | None, group: int) -> float:
    if database == "sqlite":
        return sqlite_limit(rows, folder, group)
    return postgres_limit(rows, str(server), group)


def _latency(database: str, plan: Plan, folder: Path, server: str | None, name: str, keys: int, report: Report) -> None:
    with store(database, folder, server, "latency") as url:
        if keys:
            _fill(database, url, keys)
        with patra(folder, url) as one:
            _offered(database, one, plan, name, report)


def _offered(database: str, one: Server, plan: Plan, name: str, report: Report) -> None:
    rate = OFFERED[database]
    outcome = load.run(one.url, seconds=plan.seconds, warm=2.0, connections=CONNECTIONS, rate=rate / EVENTS)
    report.add(
        f"{database}: batch at {rate:,} offered, {name}",
        outcome.p99,
        f"p50 {outcome.p50:.1f} ms, p99 {outcome.p99:.1f} ms, worst {outcome.worst:.1f} ms, {outcome.statuses}",
    )


def _with_keys(database: str, plan: Plan, folder: Path, server: str | None, report: Report) -> None:
    """The same with millions of keys in the ledger."""
    name = f"{plan.keys / 1e6:g} M keys"
    with store(database, folder, server, "keys") as url:
        seconds = _fill(database, url, plan.keys)
        report.add(f"{database}: filling {name}", seconds, f"{seconds:>10.0f} s")
        with patra(folder, url) as one:
            rates = [throughput(one, plan.seconds).rate for _ in range(plan.rounds)]
            report.rate(f"{database}: events, {name} (median)", statistics.median(rates))
            report.add(f"{database}: events, {name}, turns", str(rates), ", ".join(f"{rate:,.0f}" for rate in rates))
            _offered(database, one, plan, name, report)
            report.add(f"{database}: memory, {name}", one.memory, f"{one.memory:>10.0f} MiB")


def _constraints(database: str, plan: Plan, folder: Path, server: str | None, report: Report) -> None:
    """The same with the constraints on the money and without, in turns: what the last line of defence costs."""
    sides = two_sides()
    for _ in range(plan.rounds):
        for side in sides:
            with store(database, folder, server, "constraints") as url:
                side.change(url)
                with patra(folder, url) as one:
                    got = throughput(one, plan.seconds)
            side.rates.append(got.rate)
            side.costs.append(got.cpu_us)
            side.outcomes.append(got.outcome)
    bound, free = sides
    for side in sides:
        rate, cost = statistics.median(side.rates), statistics.median(side.costs)
        p99 = statistics.median(outcome.p99 for outcome in side.outcomes)
        report.add(
            f"{database}: {side.name}",
            rate,
            f"{rate:>10,.0f} events/s, processor {cost:.1f} µs an event, p99 {p99:.0f} ms in the closed loop",
        )
    part = statistics.median(bound.rates) / max(statistics.median(free.rates), 1)
    more = statistics.median(bound.costs) - statistics.median(free.costs)
    report.add(f"{database}: the constraints cost", part, f"{part:>10.2f} of the rate is left, {more:+.1f} µs an event")


def _fill(database: str, url: str, keys: int) -> float:
    return fill_sqlite(url.removeprefix("sqlite:///"), keys) if database == "sqlite" else fill_postgres(url, keys)


def _naive(plan: Plan, folder: Path, server: str, report: Report) -> None:
    print("\nnaive service", flush=True)
    with schema(server, "bench_naive") as url, naive(folder, url) as one:
        outcomes = {
            senders: load.run(one.url, seconds=plan.seconds, warm=1.0, connections=senders)
            for senders in NAIVE_CONNECTIONS
        }
        senders, outcome = max(outcomes.items(), key=lambda found: found[1].rate)
        report.rate(f"naive: events ({senders} senders, its best)", outcome.rate)
        report.add("naive: batch", outcome.p99, f"p50 {outcome.p50:.0f} ms, p99 {outcome.p99:.0f} ms, closed loop")
        report.add("naive: memory", one.memory, f"{one.memory:>10.0f} MiB")
    for database in plan.databases:
        times = float(report.figures[f"{database}: events (median)"]) / max(outcome.rate, 1)
        report.add(f"{database}: times the naive service", times, f"{times:>10.0f}")


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="./dev bench attribution", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes, and a small ledger")
    parser.add_argument("--database", choices=["sqlite", "postgres"], help="this one only")
    options = parser.parse_args(argv if argv is not None else sys.argv[1:])
    plan = QUICK if options.quick else FULL
    if options.database:
        plan = msgspec.structs.replace(plan, databases=(options.database,))
    known = facts()
    report = Report()
    folder = Path(tempfile.mkdtemp(prefix="patra-bench-"))
    try:
        for name, value in known.items():
            print(f"{name:>10}  {value}")
        disk = fdatasync(folder)
        report.add("fdatasync of 64 KiB", disk.p50, f"p50 {disk.p50:.2f} ms, p99 {disk.p99:.2f} ms")
        with services.postgres(durable=True) as server:
            for database in plan.databases:
                rows = written(plan.limit_batches, database)
                report.add(f"{database}: rows an event", rows.rows_an_event, f"{rows.rows_an_event:>10.2f}")
                measure(database, plan, folder, server, rows, report)
            _naive(plan, folder, server, report)
        known["load_after"] = " ".join(f"{load:.1f}" for load in os.getloadavg())
        print(f"load_after  {known['load_after']}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    document = {
        "name": "attribution",
        "quick": options.quick,
        "facts": known,
        "figures": report.figures,
        "texts": report.texts,
    }
    write(f"attribution_{options.database}" if options.database else "attribution", document)


if __name__ == "__main__":
    main()
