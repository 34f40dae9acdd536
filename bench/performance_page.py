"""Renders `docs/explanation/performance.md` from the kept results of benchmarks and proofs, and from nothing else.

    ./dev bench bus --page          measure, keep the result under bench/results, render the page
    ./dev bench --page              keep every result of build/bench (proofs too), render the page

A test holds that the committed page is what the committed results render to, so no figure is written by hand.
"""

import math
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from bench.growth_spot import growth_of, is_flat
from bench.harness import BUILD
from bench.reads_timing import LIMIT_MS, STORY_LIMIT_MS, limit_of

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results"
PAGE = ROOT / "docs" / "explanation" / "performance.md"
TITLES = {
    "attribution": "Attribution",
    "ingest": "Ingest",
    "bus": "Bus",
    "reads": "Reads of all engines while a writer writes",
    "growth": "Cost of one unit on small and large stores",
    "studio": "Studio",
    "kernel": "Kernel",
    "proofs": "Failures under load",
}
USUAL_FACTS = ("date", "commit", "machine", "load", "load_after", "python", "sqlite", "fdatasync")
SLOWEST_READS = 15
INTRODUCTION = """\
# Performance

This page is made by the benchmarks: `./dev bench NAME --page` measures, keeps the result under `bench/results` and renders the
page again. No figure is written by hand. Absolute figures depend on the machine; the ratios beside peers and plain limits were
measured in turns on the same machine at the same time, and are what to compare.
"""


class Bound(NamedTuple):
    """What is aimed for: a figure of the attribution benchmark, and the least or the most that it may be."""

    figure: str
    meaning: str
    bound: float
    unit: str
    at_least: bool


BOUNDS = (
    Bound("sqlite: events, 10 M keys (median)", "events on SQLite with ten million keys", 20_000, "events/s", True),
    Bound("postgres: batch at 10,000 offered, 10 M keys", "p99 on PostgreSQL at 10,000 events/s", 50, "ms", False),
)


def keep(names: Iterable[str] = ()) -> list[str]:
    """Copy results of the last runs to where they are committed; all that the page shows when none is named."""
    wanted = list(names) or list(TITLES)
    kept = [name for name in wanted if (BUILD / f"{name}.json").exists()]
    RESULTS.mkdir(parents=True, exist_ok=True)
    for name in kept:
        shutil.copyfile(BUILD / f"{name}.json", RESULTS / f"{name}.json")
    return kept


def documents(folder: Path = RESULTS) -> dict[str, dict[str, Any]]:
    return {
        name: msgspec.json.decode((folder / f"{name}.json").read_bytes())
        for name in TITLES
        if (folder / f"{name}.json").exists()
    }


def write_page() -> Path:
    PAGE.write_text(render(documents()), "utf-8")
    return PAGE


def render(found: dict[str, dict[str, Any]]) -> str:
    """The page; raises ValueError for a result in a form that it does not know."""
    parts = [INTRODUCTION]
    for name, document in found.items():
        parts += [f"## {TITLES[name]}\n", *_sections(name, document)]
    return "\n".join(parts)


def _sections(name: str, document: dict[str, Any]) -> list[str]:
    if name == "proofs":
        return [_proofs(document)]
    parts = [_conditions(name, document)]
    match document:
        case {"figures": dict(figures)}:
            parts += [_bounds(figures), _by_database(figures, document.get("texts", {}))]
        case {"reads": dict(reads)}:
            parts += [_reads(title, rows) for title, rows in reads.items()]
        case {"growth": dict(growth)}:
            parts += [_growth(title, rows) for title, rows in growth.items()]
        case {"results": [{"case": _}, *_]}:
            parts.append(_cases(document["results"]))
        case {"results": [{"contender": _}, *_]}:
            parts.append(_contenders(document["results"]))
        case _:
            raise ValueError(f"{name}: no form of a result that the page knows")
    if side_by_side := document.get("latency dominates"):
        parts.append(_processes(side_by_side))
    return parts


def _conditions(name: str, document: dict[str, Any]) -> str:
    """When, of what and on what it was measured, and what else the benchmark found out."""
    facts = document["facts"]
    quick = " A quick run: small stores and few rounds." if document.get("quick") else ""
    measured = (
        f"`./dev bench {name}` at commit `{facts['commit']}`, {facts.get('date', 'date not recorded')}, on {facts['machine']}, "
        f"Python {facts['python']}, SQLite {facts['sqlite']}; fdatasync {facts['fdatasync']}; load {facts['load']} before, "
        f"{facts.get('load_after', 'not recorded')} after.{quick}\n"
    )
    lines = [measured, *(f"- {key}: {_escaped(value)}" for key, value in facts.items() if key not in USUAL_FACTS)]
    return "\n".join([*lines, ""] if len(lines) > 1 else lines)


def _bounds(figures: dict[str, Any]) -> str:
    rows = []
    for one in BOUNDS:
        if one.figure in figures:
            value = float(figures[one.figure])
            held = value >= one.bound if one.at_least else value <= one.bound
            aim = f"{'at least' if one.at_least else 'at most'} {one.bound:,.0f} {one.unit}"
            measured = f"{value:,.0f} {one.unit}" if value >= 100 else f"{value:,.1f} {one.unit}"
            rows.append((one.meaning, aim, measured, f"{value / one.bound:.2f}", "yes" if held else "no"))
    return _table(("aim", "bound", "measured", "of the bound", "reached"), rows) if rows else ""


def _by_database(figures: dict[str, Any], texts: dict[str, str]) -> str:
    """A row per figure, a column per database; turns of a median are left out."""
    shown: dict[str, dict[str, str]] = {}
    columns: list[str] = []
    for key, value in figures.items():
        column, separator, name = key.partition(": ")
        column, name = (column, name) if separator else ("machine", key)
        if ", turn" in name:
            continue
        if column not in columns:
            columns.append(column)
        shown.setdefault(name, {})[column] = texts.get(key) or _number(value)
    rows = [(name, *(by_column.get(column, "") for column in columns)) for name, by_column in shown.items()]
    return _table(("figure", *columns), rows)


def _cases(results: Sequence[dict[str, Any]]) -> str:
    rows = []
    for result in results:
        ours, *others = result["figures"]
        rate = f"{ours['median']:,.0f} {result['unit']}"
        for other in others or [None]:
            beside = "" if other is None else f"{other['contender']}: {other['median']:,.0f}"
            ratio = "" if other is None else f"{other['of_ours']:.2f}"
            rows.append((result["case"], rate, f"{ours['cpu']:.1f}", beside, ratio))
    return _table(("case", "Patra, median", "CPU, µs", "beside", "Patra's part of it"), rows)


def _contenders(results: Sequence[dict[str, Any]]) -> str:
    rows = [
        (
            one["contender"],
            f"{one['records']:,}",
            f"{one['median']:,.0f} ({min(one['rates']):,.0f} to {max(one['rates']):,.0f})",
            _number(one["more"]["cpu_us"]) if "cpu_us" in one["more"] else "",
            f"{one['peak_mb']:,.0f} MB",
            "" if one["of_ours"] is None else f"{one['of_ours']:.2f}",
        )
        for one in results
    ]
    return _table(("contender", "records", "records/s", "CPU, µs", "memory", "Patra's part of it"), rows)


def _processes(found: dict[str, float]) -> str:
    rows = [(name, f"{rate:,.0f}") for name, rate in found.items() if name != "ratio"]
    return _table(("processes at 100 ms latency, PostgreSQL", "records/s"), rows)


def _reads(title: str, rows: dict[str, Sequence[float]]) -> str:
    """The slowest reads, how many keep their limits, and what reading costs the writer.

    Runs before November 18, 2026, at noon recorded neither the 99th percentile nor processor time.
    """
    rows = {name: one if len(one) > 3 else (*one[:2], math.nan, math.nan, one[2]) for name, one in rows.items()}
    written = {name: one for name, one in rows.items() if " written, " in name}
    reads = {name: one for name, one in rows.items() if name not in written}
    slowest = sorted(reads.items(), key=lambda pair: -pair[1][1] / limit_of(pair[0]))[:SLOWEST_READS]
    within = sum(p95 <= limit_of(name) for name, (_, p95, *_) in reads.items())
    lines = [(*_times(name, one), _ms(one[3]), f"{one[1] / limit_of(name):.2f}") for name, one in slowest]
    lines += [(*_times(name, one), "", "") for name, one in written.items()]
    said = f"{title}: {within} of {len(reads)} reads have a 95th percentile within {LIMIT_MS} ms ({STORY_LIMIT_MS} ms for stories)"
    costs = {name: cpu for name, (*_, cpu, _) in reads.items() if not math.isnan(cpu)}
    if costs:
        cheap = sum(cpu <= limit_of(name) / 2 for name, cpu in costs.items())
        said += f", and {cheap} take less than half of that of a processor"
    said += "; those nearest to their limits, and the writer:\n\n"
    return said + _table(("read", "p50, ms", "p95, ms", "p99, ms", "processor, ms", "p95 of the limit"), lines)


def _times(name: str, one: Sequence[float]) -> tuple[str, str, str, str]:
    p50, p95, p99, *_ = one
    return name, _ms(p50), _ms(p95), _ms(p99)


def _ms(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.1f}"


def _growth(title: str, rows: dict[str, dict[str, Any]]) -> str:
    """What a unit costs at each size, and whether that stays within the logarithm of the rows."""
    found = {
        name: (row["unit"], {int(size): cost for size, cost in row["costs"].items()}) for name, row in rows.items()
    }
    sizes = sorted({size for _, costs in found.values() for size in costs})
    lines: list[tuple[str, ...]] = []
    for name, (unit, costs) in found.items():
        ratio, flat = growth_of(costs), is_flat(costs)
        said = "" if flat is None else "yes" if flat else "no"
        shown = (f"{costs[size]:,.1f}" if size in costs else "" for size in sizes)
        lines.append((name, unit, *shown, "" if ratio is None else f"{ratio:.2f}", said))
    known = [flat for _, costs in found.values() if (flat := is_flat(costs)) is not None]
    said = f"{title}: {sum(known)} of {len(known)} stay flat; µs of one unit by rows of the store, the lowest of the rounds:\n\n"
    return said + _table(("spot", "unit", *(f"{size:,}" for size in sizes), "growth", "flat"), lines)


def _proofs(document: dict[str, Any]) -> str:
    rows = [
        (f"`./dev prove {name}`", one["result"], one["figures"], f"{one['date']}, `{one['commit']}`")
        for name, one in sorted(document["proofs"].items())
    ]
    said = "What was acknowledged is counted and compared with the store after every fault; a proof that finds a difference fails.\n\n"
    return said + _table(("proof", "result", "figures", "when, commit"), rows)


def _number(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"
    return str(value)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_escaped(cell) for cell in line) + " |" for line in lines) + "\n"


def _escaped(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
