"""50,000 Crossref-sized records from a local server without limits, beside dlt, the Airbyte CDK and a plain loop.

    python -m bench.ingest                     everything, some minutes
    python -m bench.ingest --quick             a tenth of the records, one round
    python -m bench.ingest --only patra        only contenders whose name contains it

Each contender and the server are processes of their own; pages are rendered beforehand. Patra has everything on: black box,
cursor events, guarded upsert, outbox, durable commits (SQLite WAL with FULL, PostgreSQL with fsync). dlt and the Airbyte CDK
are installed from PyPI into an environment of their own, build/bench/ingest-venv. The figure is the median of the rounds;
memory is the peak of the process. Contenders take turns in every round, and a ratio is the median of the rounds' own ratios:
the machine's speed changes. dlt as installed is given 5,000 records, since it needs gigabytes for them. Besides: Patra with
three times as many records (is its memory flat?), and one and two executor processes on PostgreSQL with a slow provider.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec
from tests import services

from bench.harness import BUILD, facts, write

VENV = BUILD / "ingest-venv"
PYTHON = VENV / "bin" / "python"
UV = Path(".dev/uv/bin/uv")
PAGE = 100
LIMIT = 600.0


class Contender(msgspec.Struct, frozen=True, kw_only=True):
    """`most`: it is given no more records than this, since its memory grows with them."""

    name: str
    run: Callable[[str, int], dict[str, Any]]
    most: int | None = None
    rounds: int | None = None
    page: int = PAGE


class Result(msgspec.Struct, kw_only=True):
    contender: str
    records: int
    median: float  # records a second
    rates: list[float]
    peak_mb: float
    more: dict[str, float]
    of_ours: float | None = None


@contextmanager
def server(records: int, *, page: int = PAGE, latency: int = 0, windows: int = 1) -> Generator[str]:
    command = [sys.executable, "-m", "bench.ingest_server", *map(str, (records, page, latency, windows))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


def said(command: list[str | Path]) -> dict[str, Any]:
    """What a contender writes on its last line."""
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=LIMIT)
    if done.returncode:
        raise RuntimeError(f"{command[:4]}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


@contextmanager
def folder() -> Generator[str]:
    with tempfile.TemporaryDirectory(prefix="patra-bench-") as found:
        yield found


@contextmanager
def sqlite() -> Generator[str]:
    with folder() as found:
        yield f"sqlite:///{found}/store.db"


@contextmanager
def postgres() -> Generator[str]:
    with services.postgres(durable=True) as url:
        yield url


def ours(store: Callable[[], Any], *more: str) -> Callable[[str, int], dict[str, Any]]:
    def run(url: str, records: int) -> dict[str, Any]:
        with store() as found:
            return said([sys.executable, "-m", "bench.ingest_ours", url, found, str(records), "1", *more])

    return run


def plain(store: Callable[[], Any], library: str) -> Callable[[str, int], dict[str, Any]]:
    def run(url: str, records: int) -> dict[str, Any]:
        del records
        with store() as found:
            return said([sys.executable, "-m", "bench.ingest_plain", url, found, library])

    return run


def dlt(how: str) -> Callable[[str, int], dict[str, Any]]:
    def run(url: str, records: int) -> dict[str, Any]:
        del records
        with folder() as found:
            return said([PYTHON, "bench/ingest_dlt.py", url, found, how])

    return run


def airbyte(url: str, records: int) -> dict[str, Any]:
    del records
    return said([PYTHON, "bench/ingest_airbyte.py", url])


def airbyte_and_upsert(url: str, records: int) -> dict[str, Any]:
    del records
    with sqlite() as found:
        return said([PYTHON, "bench/ingest_airbyte.py", url, found])


CONTENDERS = (
    Contender(name="patra, SQLite", run=ours(sqlite)),
    Contender(
        name="patra, SQLite, mapping of the shipped Crossref pack", run=ours(sqlite, "--pack", "crossref"), rounds=1
    ),
    Contender(name="patra, SQLite, 500 a page", run=ours(sqlite), page=500),
    Contender(name="plain loop, msgspec, SQLite, 500 a page", run=plain(sqlite, "msgspec"), page=500),
    Contender(name="patra, PostgreSQL", run=ours(postgres)),
    Contender(name="plain loop, msgspec, SQLite", run=plain(sqlite, "msgspec")),
    Contender(name="plain loop, standard library, SQLite", run=plain(sqlite, "stdlib"), rounds=1),
    Contender(name="plain loop, msgspec, PostgreSQL", run=plain(postgres, "msgspec")),
    Contender(name="dlt, tuned, DuckDB", run=dlt("tuned"), rounds=1),
    Contender(name="dlt, as installed, DuckDB", run=dlt("default"), most=5_000, rounds=1),
    Contender(name="Airbyte CDK, reading only", run=airbyte, rounds=1),
    Contender(name="Airbyte CDK, and the plain loop's upsert, SQLite", run=airbyte_and_upsert, rounds=1),
)


def compared(chosen: list[Contender], records: int, rounds: int) -> list[Result]:
    """All of them in turn, round after round; the first is what the others are measured by."""
    runs: dict[str, list[dict[str, Any]]] = {contender.name: [] for contender in chosen}
    given = {contender.name: min(records, contender.most or records) for contender in chosen}
    with ExitStack() as stack:
        kinds = {(given[contender.name], contender.page) for contender in chosen}
        urls = {kind: stack.enter_context(server(kind[0], page=kind[1])) for kind in sorted(kinds)}
        for number in range(rounds):
            for contender in chosen:
                count = given[contender.name]
                if number < (contender.rounds or rounds):
                    run = contender.run(urls[count, contender.page], count)
                    assert run["landed"] == count, f"{contender.name} landed {run['landed']} of {count}"
                    runs[contender.name].append({**run, "rate": count / run["seconds"]})
                    rate, peak = count / run["seconds"], run["peak_mb"]
                    book = f", {run['book_mean_ms']:.1f} ms a batch" if "book_mean_ms" in run else ""
                    cost = run["cpu"] / count * 1e6
                    line = f"{contender.name}: {rate:,.0f} /s, processor {cost:.1f} µs a record, {peak:.0f} MB{book}"
                    print(f"   round {number + 1}: {line}", flush=True)
    first = runs[chosen[0].name]
    return [result(contender.name, given[contender.name], runs[contender.name], first) for contender in chosen]


def result(name: str, records: int, runs: list[dict[str, Any]], first: list[dict[str, Any]]) -> Result:
    more = {key: round(statistics.median(run[key] for run in runs), 2) for key in runs[0] if key.startswith("book_")}
    more["cpu_us"] = round(statistics.median(run["cpu"] for run in runs) / records * 1e6, 1)
    return Result(
        contender=name,
        records=records,
        median=statistics.median(run["rate"] for run in runs),
        rates=[run["rate"] for run in runs],
        peak_mb=round(max(run["peak_mb"] for run in runs), 1),
        more=more,
        of_ours=None
        if runs is first
        else statistics.median(mine["rate"] / run["rate"] for mine, run in zip(first, runs, strict=False)),
    )


def side_by_side(records: int, latency: int) -> dict[str, float]:
    """Records a second of one and of two executor processes on PostgreSQL while the provider's latency dominates."""
    found: dict[str, float] = {}
    windows = 8
    with server(records, latency=latency, windows=windows) as url:
        for processes in (1, 2):
            with postgres() as store:
                command = [sys.executable, "-m", "bench.ingest_ours", url, store, str(records), str(windows)]
                said([*command, "--plan"])
                crew = [
                    subprocess.Popen([*command, "--work"], stdout=subprocess.PIPE, text=True) for _ in range(processes)
                ]
                ended = [json.loads(process.communicate(timeout=LIMIT)[0].splitlines()[-1]) for process in crew]
                assert all(process.returncode == 0 for process in crew)
                # the longest of them, from its first look for work: what a process takes to start is no throughput
                found[f"{processes} process{'es' if processes > 1 else ''}"] = records / max(
                    e["seconds"] for e in ended
                )
    found["ratio"] = found["2 processes"] / found["1 process"]
    return found


def install() -> None:
    """dlt and the Airbyte CDK would not go together with our lock: they get an environment of their own."""
    if (VENV / ".ready").exists():
        return
    shutil.rmtree(VENV, ignore_errors=True)
    VENV.parent.mkdir(parents=True, exist_ok=True)
    wanted = ["dlt[duckdb,parquet]", "airbyte-cdk"]
    if UV.exists():
        subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, VENV], check=True)
        subprocess.run([UV, "pip", "install", "--quiet", "--python", PYTHON, *wanted], check=True)
    else:
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
        subprocess.run([PYTHON, "-m", "pip", "install", "--quiet", *wanted], check=True)
    (VENV / ".ready").touch()


def versions() -> str:
    text = (
        "from importlib.metadata import version as v; print(*(f'{n} {v(n)}' for n in ('dlt', 'duckdb', 'airbyte-cdk')))"
    )
    return subprocess.run([PYTHON, "-c", text], check=True, capture_output=True, text=True).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev bench ingest", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--records", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parts", default="compare,memory,processes", help="which of them")
    options = parser.parse_args()
    records, rounds = (5_000, 1) if options.quick else (options.records, options.rounds)
    install()
    known = facts(alternatives=versions(), records=f"{records}, about 2 KB each, {PAGE} a page, {rounds} rounds")
    for key, value in known.items():
        print(f"{key:>12}  {value}")
    results: list[Result] = []
    more: dict[str, Any] = {}
    parts = options.parts.split(",")
    if "compare" in parts:
        chosen = [contender for contender in CONTENDERS if options.only in contender.name]
        results += compared(chosen, records, rounds)
    if "memory" in parts:
        results += compared([CONTENDERS[0]], 3 * records, 1)
    for found in results:
        show(found)
    if "processes" in parts:
        more["latency dominates"] = side_by_side(records // 5, latency=100)
        print("   100 ms latency, PostgreSQL:", {k: round(v, 2) for k, v in more["latency dominates"].items()})
    known["load_after"] = " ".join(f"{load:.1f}" for load in os.getloadavg())
    target = write("ingest", {"name": "ingest", "quick": options.quick, "facts": known, "results": results, **more})
    print(f"written to {target}")


def show(found: Result) -> None:
    ratio = "" if found.of_ours is None else f"ours is {found.of_ours:.2f} of it"
    print(
        f"{found.contender:52} {found.records:>8,} records {found.median:>9,.0f} /s "
        f"({min(found.rates):,.0f}-{max(found.rates):,.0f}) {found.peak_mb:>7,.0f} MB  {ratio}  {found.more}",
        flush=True,
    )


if __name__ == "__main__":
    main()
