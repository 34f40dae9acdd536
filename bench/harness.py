"""Cases go in; medians and ratios of contenders that ran side by side come out, as a table and as JSON.

A case names its contenders, the first of them ours, the others what it is measured by. They take turns: in every round each
is given fresh input, made outside the measured time, and does the same number of units. The ratio is the median of the
rounds' own ratios, so that a machine which is busy with something else for a while slows both sides of it.
"""

import argparse
import os
import platform
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

BUILD = Path("build/bench")
ROUNDS = 9


class Contender(msgspec.Struct, kw_only=True):
    """`run` is given what the case made for it, and is timed."""

    name: str
    run: Callable[[Any], object]


class Running(msgspec.Struct, kw_only=True):
    """A case with its stores open: `make` gives the input of one round."""

    contenders: Sequence[Contender]
    make: Callable[[], Any]
    units: int


class Case(msgspec.Struct, kw_only=True):
    """What is measured, and how it is set up: `open` is a context manager that cleans up after itself."""

    name: str
    unit: str
    open: Callable[[], AbstractContextManager[Running]]


class Figures(msgspec.Struct, kw_only=True):
    contender: str
    median: float
    rates: list[float]
    cpu: float  # µs of this process for one unit: what a busy machine does not distort
    of_ours: float | None = None  # how much of this contender's rate ours reaches


class Result(msgspec.Struct, kw_only=True):
    case: str
    unit: str
    figures: list[Figures]


def measure(case: Case, rounds: int = ROUNDS) -> Result:
    """Run the contenders of a case in turn; the first round warms up and is not counted."""
    with case.open() as running:
        rates: dict[str, list[float]] = {contender.name: [] for contender in running.contenders}
        costs: dict[str, list[float]] = {contender.name: [] for contender in running.contenders}
        for number in range(rounds + 1):
            order = running.contenders if number % 2 else list(reversed(running.contenders))
            for contender in order:
                made = running.make()
                cpu, start = time.process_time(), time.perf_counter()
                contender.run(made)
                seconds, cost = time.perf_counter() - start, time.process_time() - cpu
                if number:
                    rates[contender.name].append(running.units / seconds)
                    costs[contender.name].append(cost / running.units * 1e6)
    ours = rates[running.contenders[0].name]
    return Result(
        case=case.name,
        unit=case.unit,
        figures=[
            Figures(
                contender=name,
                median=statistics.median(found),
                rates=found,
                cpu=statistics.median(costs[name]),
                of_ours=None
                if found is ours
                else statistics.median(mine / theirs for mine, theirs in zip(ours, found, strict=True)),
            )
            for name, found in rates.items()
        ],
    )


def main(name: str, module: ModuleType, arguments: list[str]) -> int:
    """Measure the cases of a benchmark. It may have `facts()` for what else must be known to read them."""
    parser = argparse.ArgumentParser(prog=f"./dev bench {name}", description=(module.__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small stores and few rounds, to see that it runs")
    usual = getattr(module, "ROUNDS", ROUNDS)
    parser.add_argument("--rounds", type=int, help=f"measured rounds of each contender (default {usual})")
    parser.add_argument("--only", default="", metavar="TEXT", help="only the cases whose name contains it")
    options = parser.parse_args(arguments)
    rounds = options.rounds or (2 if options.quick else usual)
    more = module.facts(options.quick) if hasattr(module, "facts") else {}
    cases = (case for case in module.cases(options.quick) if options.only in case.name)
    report(name, facts(**more), (measure(case, rounds) for case in cases), quick=options.quick)
    return 0


def facts(**more: str) -> dict[str, str]:
    """What must be known about the machine to read the figures."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": f"{_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}",
        "load": " ".join(f"{load:.1f}" for load in os.getloadavg()),
        "python": sys.version.split()[0],
        "sqlite": sqlite3.sqlite_version,
        "fdatasync": f"{fdatasync_cost() * 1e3:.2f} ms for 4 KiB on the disk of the stores (median of 200)",
        "commit": commit(),
        **more,
    }


def fdatasync_cost(times: int = 200) -> float:
    """Seconds that one durable write of a page costs where temporary files lie."""
    costs: list[float] = []
    with tempfile.TemporaryFile() as file:
        for _ in range(times):
            file.write(b"\0" * 4096)
            file.flush()
            start = time.perf_counter()
            os.fdatasync(file.fileno())
            costs.append(time.perf_counter() - start)
    return statistics.median(costs)


def write(name: str, document: dict[str, Any]) -> Path:
    """Write a result down, as JSON that people can read; `--page` takes it from there."""
    BUILD.mkdir(parents=True, exist_ok=True)
    target = BUILD / f"{name}.json"
    target.write_bytes(msgspec.json.format(msgspec.json.encode(document), indent=1))
    return target


def report(name: str, known: dict[str, str], results: Iterator[Result], *, quick: bool = False) -> Path:
    """Print each result as it comes, and write all of them down."""
    console = Console(width=None if sys.stdout.isatty() else 150)
    for key, value in known.items():
        console.print(f"[dim]{key:>10}[/dim]  {value}", highlight=False)
    kept: list[Result] = []
    for result in results:
        kept.append(result)
        console.print(_table(result))
    load = " ".join(f"{load:.1f}" for load in os.getloadavg())
    target = write(name, {"name": name, "quick": quick, "facts": {**known, "load_after": load}, "results": kept})
    console.print(f"[dim]written to {target}[/dim]")
    return target


def _table(result: Result) -> Table:
    table = Table(title=f"{result.case}", title_justify="left", title_style="bold", show_edge=False, pad_edge=False)
    table.add_column("contender", min_width=46)
    for column in (f"median {result.unit}", "lowest", "highest", "CPU here, µs", "ours is"):
        table.add_column(column, justify="right", min_width=12)
    for row in result.figures:
        ratio = "" if row.of_ours is None else f"{row.of_ours:.0%} of it"
        table.add_row(
            row.contender,
            f"{row.median:,.0f}",
            f"{min(row.rates):,.0f}",
            f"{max(row.rates):,.0f}",
            f"{row.cpu:.1f}",
            ratio,
        )
    return table


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def commit() -> str:
    """The commit that was measured, and whether the checkout differed from it."""
    with suppress(OSError):
        command = ["git", "describe", "--always", "--exclude=*", "--dirty= with changes"]
        found = subprocess.run(command, capture_output=True, text=True, check=False)
        return found.stdout.strip() or "unknown"
    return "unknown"
