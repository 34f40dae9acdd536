"""How long reads take, and the processor time that they cost: a busy machine stretches the first, not the second."""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import psutil
from rich.console import Console
from rich.table import Table

from patra.kernel.db import Database
from patra.kernel.db.queries import statement

SECONDS_PER_READ = 1.5
MAX_SAMPLES = 200
LIMIT_MS = 200
STORY_LIMIT_MS = 100
BACKENDS = statement("backends", "SELECT pid, client_port FROM pg_stat_activity WHERE client_port > 0")


class Timing(NamedTuple):
    """Percentiles in milliseconds, processor time of one read in milliseconds, and how often it was asked."""

    p50: float
    p95: float
    p99: float
    cpu: float
    times: int


def limit_of(name: str) -> int:
    """What a read may take: stories half of what the others may."""
    return STORY_LIMIT_MS if "story" in name else LIMIT_MS


class Processor:
    """Processor time of this process, and of the PostgreSQL backends that serve it."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def used(self) -> float:
        return time.process_time() + sum(self._backends())

    def _backends(self) -> list[float]:
        if self._db.dialect != "postgres":
            return []
        mine = {one.laddr.port for one in psutil.Process().net_connections("tcp") if one.laddr}
        rows = self._db.read(lambda tx: tx.fetch(BACKENDS))
        times = [psutil.Process(pid).cpu_times() for pid, port in rows if port in mine]
        return [one.user + one.system for one in times]


def timed(work: Callable[[], Any], processor: Processor, seconds: float = SECONDS_PER_READ) -> Timing:
    work()  # the first of a kind fills caches
    samples: list[float] = []
    used = processor.used()
    end = time.perf_counter() + seconds
    while len(samples) < 5 or (time.perf_counter() < end and len(samples) < MAX_SAMPLES):
        begun = time.perf_counter()
        work()
        samples.append((time.perf_counter() - begun) * 1000)
    return percentiles(samples, (processor.used() - used) * 1000 / len(samples))


def percentiles(samples: Sequence[float], cpu: float = 0.0) -> Timing:
    ordered = sorted(samples)

    def part(share: float) -> float:
        return ordered[min(int(len(ordered) * share), len(ordered) - 1)]

    return Timing(statistics.median(ordered), part(0.95), part(0.99), cpu, len(ordered))


def show(title: str, rows: dict[str, Timing]) -> None:
    table = Table(title=f"{title}, while a writer writes", title_justify="left")
    for column in ("read", "p50 ms", "p95 ms", "p99 ms", "processor ms", "of the limit", "times"):
        table.add_column(column, justify="left" if column == "read" else "right")
    for name, one in rows.items():
        limit = "" if " written, " in name else f"{one.p95 / limit_of(name):.2f}"
        figures = (one.p50, one.p95, one.p99, one.cpu)
        table.add_row(name, *(f"{figure:.1f}" for figure in figures), limit, str(one.times))
    Console(width=130).print(table)
