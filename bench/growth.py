"""What one unit of work costs on a store of no rows, of a million and of ten million, for every spot that once grew.

    ./dev bench growth                                        no rows, 1,000,000 and 10,000,000 (an hour and 30 GB)
    ./dev bench growth --sizes 0,20000,200000 --only postgres
    ./dev bench growth --engines bus,ingest --sizes 0,1000000

Each engine has a store of its own for each size, filled to it and then measured; rows are events of attribution, events
of the bus, and batches of ingest (a task for every ten of them). PostgreSQL keeps the statistics of the empty tables:
they mislead the planner as much as they can. A cost is the lowest of some rounds, which other work on the machine
distorts least. `growth` is the cost at the largest size beside that at the one before; what stays within a logarithm of
the rows, twice that for noise, is `flat`.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import msgspec
import psycopg
from rich.console import Console
from rich.table import Table
from tests import services

from bench.growth_attribution import AttributionGrowth
from bench.growth_bus import BusGrowth
from bench.growth_ingest import IngestGrowth
from bench.growth_spot import Spot, cost_of, growth_of, is_flat
from bench.harness import facts, write
from patra.app.wiring import packages
from patra.kernel.db import Database, migrate, open_database

ROUNDS = 5
SIZES = (0, 1_000_000, 10_000_000)
QUICK_SIZES = (0, 1_000, 10_000)


class Engine(Protocol):
    """The store of one engine, which fills itself and names its spots."""

    def fill(self, rows: int) -> None: ...

    def spots(self, rows: int) -> list[Spot]: ...


ENGINES: dict[str, Callable[[Database], Engine]] = {
    "attribution": AttributionGrowth,
    "ingest": IngestGrowth,
    "bus": BusGrowth,
}


class Row(msgspec.Struct, kw_only=True):
    """The cost of one unit in µs by the number of rows; none where there was nothing to do."""

    unit: str
    costs: dict[int, float] = {}


def measured(engines: Sequence[str], title: str, sizes: Sequence[int], rounds: int, server: str) -> dict[str, Row]:
    """The rows of the table of one database."""
    rows: dict[str, Row] = {}
    for engine in engines:
        for size in sizes:
            with store(server) as db:
                made = ENGINES[engine](db)
                begun = time.perf_counter()
                made.fill(size)
                print(f"{title}: {engine} filled to {size:,} in {time.perf_counter() - begun:.0f} s", flush=True)
                for spot in made.spots(size):
                    row = rows.setdefault(f"{engine}: {spot.name}", Row(unit=spot.unit))
                    if (cost := cost_of(spot, rounds)) is not None:
                        row.costs[size] = cost
    return rows


@contextmanager
def store(server: str) -> Generator[Database]:
    """A migrated store that nobody else uses: a file, or a database of the server, whose planner learns nothing more."""
    if not server:
        with tempfile.TemporaryDirectory(prefix="patra-bench-") as folder:
            db = open_database(f"sqlite:///{Path(folder) / 'patra.db'}")
            migrate(db, packages())
            yield db
            db.close()
        return
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute("CREATE DATABASE growth")
        db = open_database(server.rpartition("/")[0] + "/growth")
        try:
            migrate(db, packages())
            db.run(lambda tx: tx.script("ANALYZE"))
            yield db
        finally:
            db.close()
            admin.execute("DROP DATABASE growth WITH (FORCE)")


@contextmanager
def servers(only: str | None) -> Generator[dict[str, str]]:
    """Where stores are made, by the name of the database; an empty address stands for files."""
    found = {} if only == "postgres" else {"SQLite": ""}
    if only == "sqlite":
        yield found
        return
    with services.postgres(durable=True) as url:
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute("ALTER SYSTEM SET autovacuum = off")
            admin.execute("SELECT pg_reload_conf()")
        yield {**found, "PostgreSQL": url}


def show(title: str, rows: Mapping[str, Row], sizes: Sequence[int]) -> None:
    table = Table(title=f"{title}, µs of one unit by rows of the store", title_justify="left")
    for column in ("spot", "unit", *(f"{size:,}" for size in sizes), "growth", "flat"):
        table.add_column(column, justify="left" if column in {"spot", "unit"} else "right")
    for name, row in rows.items():
        ratio, flat = growth_of(row.costs), is_flat(row.costs)
        costs = [f"{row.costs[size]:,.1f}" if size in row.costs else "" for size in sizes]
        said = "" if flat is None else "yes" if flat else "NO"
        table.add_row(name, row.unit, *costs, "" if ratio is None else f"{ratio:.2f}", said)
    Console(width=140).print(table)


def sizes_of(text: str) -> list[int]:
    """Sizes from a list with commas, in their order."""
    try:
        found = sorted({int(part.replace("_", "")) for part in text.split(",")})
    except ValueError:
        raise argparse.ArgumentTypeError(f"not a list of numbers: {text!r}") from None
    if found[0] < 0:
        raise argparse.ArgumentTypeError("a store has no fewer than 0 rows")
    return found


def engines_of(text: str) -> list[str]:
    found = text.split(",")
    if unknown := [name for name in found if name not in ENGINES]:
        raise argparse.ArgumentTypeError(f"no such engine: {', '.join(unknown)}; there are: {', '.join(ENGINES)}")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="./dev bench growth", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small stores, to see that it runs")
    parser.add_argument("--sizes", type=sizes_of, metavar="N,N,…", help="rows of the stores")
    parser.add_argument("--engines", type=engines_of, default=list(ENGINES), metavar="NAME,…", help="only these")
    parser.add_argument("--rounds", type=int, help=f"measured rounds of each spot (default {ROUNDS})")
    parser.add_argument("--only", choices=["sqlite", "postgres"])
    said = parser.parse_args(arguments)
    sizes = said.sizes or list(QUICK_SIZES if said.quick else SIZES)
    known = facts(rows=", ".join(f"{size:,}" for size in sizes))
    results: dict[str, dict[str, Row]] = {}
    with servers(said.only) as found:
        for title, server in found.items():
            rounds = said.rounds or (2 if said.quick else ROUNDS)
            results[title] = measured(said.engines, title, sizes, rounds, server)
            show(title, results[title], sizes)
    known["load_after"] = " ".join(f"{load:.1f}" for load in os.getloadavg())
    write("growth", {"name": "growth", "quick": said.quick, "facts": known, "growth": results})
    return 0


if __name__ == "__main__":
    sys.exit(main())
