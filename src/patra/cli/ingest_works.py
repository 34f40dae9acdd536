"""`patra ingest records`, `works`, `packs`: what was harvested, exported; the packs of the distribution."""

import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from patra.cli.options import config_option, json_option, opened, show, spare_the_store, table

if TYPE_CHECKING:
    from patra.app.wiring import Patra
    from patra.ingest.export import Json, Progress, Table

FORMATS = ("jsonl", "csv", "parquet", "duckdb")


def export_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Where rows go, and of which sources."""
    for option in (
        config_option,
        click.option("--source", "sources", multiple=True, metavar="SOURCE", help="Only this one; may be repeated."),
        click.option(
            "-o",
            "--out",
            type=click.Path(dir_okay=False, path_type=Path),
            help="The file; its ending tells the format. Without it: JSONL to the standard output.",
        ),
        click.option("--format", "fmt", type=click.Choice(FORMATS), help="The format, where the ending does not tell."),
        click.option("--quiet", is_flag=True, help="No progress bar."),
    ):
        command = option(command)
    return command


@click.command(
    epilog="\b\nExamples:\n  patra ingest records pubmed -o pubmed.jsonl.gz\n"
    "  patra ingest records pubmed --since 2026-01-01 -o new.parquet\n"
    "  patra ingest records | jq .fields.title"
)
@click.argument("source", required=False)
@export_options
@click.option("--since", metavar="WHEN", help="Only what the provider updated then or later: a date, or P7D ago.")
def records(
    config: str | None,
    source: str | None,
    sources: tuple[str, ...],
    out: Path | None,
    fmt: str | None,
    quiet: bool,
    since: str | None,
) -> None:
    """Export records as they are stored: their fields, and the record as it came."""
    from patra.cli.ingest import instant_of
    from patra.ingest.works_export import RECORDS, record_rows
    from patra.ingest.works_read import count

    with opened(config) as patra:
        named = sources if source is None else (*sources, source)
        start = instant_of(since, "--since", patra.clock.now())
        total = count(patra.db, named, since=start)
        rows = partial(record_rows, patra.db, named, since=start)
        _write(patra, lambda _: rows(), RECORDS, out, fmt, total=total, quiet=quiet)


@click.command(
    epilog="\b\nExamples:\n  patra ingest works --out works.parquet\n"
    "  patra ingest works --dedupe --out library.duckdb   one row a work, with the source of each field\n"
    "  patra ingest works --source crossref --out dois.csv"
)
@export_options
@click.option(
    "--dedupe", is_flag=True, help="Join the same work across sources by DOI, PMID, PMCID, arXiv and OpenAlex id."
)
@click.option("--raw", is_flag=True, help="With the record as it came in a column.")
def works(
    config: str | None,
    sources: tuple[str, ...],
    out: Path | None,
    fmt: str | None,
    quiet: bool,
    dedupe: bool,
    raw: bool,
) -> None:
    """Export records in the common shape: one row a work."""
    from patra.ingest.works_export import JOINED, WORKS, WORKS_RAW, joined_rows, work_rows
    from patra.ingest.works_read import count

    if dedupe and raw:
        raise click.UsageError("--raw belongs to one source's record; with --dedupe there are several")
    with opened(config) as patra:
        total = count(patra.db, sources)
        if dedupe:
            folder = out.parent if out is not None else Path.cwd()
            rows = partial(joined_rows, patra.db, folder, sources)
            _write(patra, rows, JOINED, out, fmt, total=total, quiet=quiet, told=True)
            return
        written = _write(
            patra,
            lambda _: work_rows(patra.db, sources, raw=raw),
            WORKS_RAW if raw else WORKS,
            out,
            fmt,
            total=total,
            quiet=quiet,
        )
        if written < total:
            click.echo(f"{total - written} records are no works: `patra ingest records` has them", err=True)


@click.command("packs")
@click.argument("name", required=False)
@json_option
def bundled(name: str | None, as_json: bool) -> None:
    """List the packs that come with Patra, or print one: a file to load, or to start your own from."""
    from patra.ingest import sources
    from patra.ingest.works_docs import summaries

    if name is not None:
        click.echo(sources.text(name), nl=False)
        return
    found = summaries()
    if as_json:
        show(found, as_json=True)
    else:
        table(["source", "version", "endpoints", "rate"], [[s.source, s.version, s.endpoints, s.rate] for s in found])


def _write(
    patra: "Patra",
    pages: "Callable[[Progress | None], Iterable[Sequence[Json]]]",
    shape: "Table",
    out: Path | None,
    fmt: str | None,
    *,
    total: int,
    quiet: bool,
    told: bool = False,
) -> int:
    """Write what `pages` gives; with `told` it says itself how far it is, otherwise rows are counted as written."""
    from patra.ingest.export import export, format_of, sink, to_stream

    if out is None:
        if fmt not in {None, "jsonl"}:
            raise click.UsageError(f"{fmt} needs a file: --out FILE")
        return to_stream(pages(None), sys.stdout.buffer)
    spare_the_store(patra, out)
    target = sink(out, format_of(out, fmt), shape)
    with _progress(total, quiet=quiet) as advance:
        written = export(pages(advance if told else None), target, None if told else advance)
    click.echo(f"{written} rows in {out}", err=True)
    return written


@contextmanager
def _progress(total: int, *, quiet: bool) -> Generator[Callable[[int], None] | None]:
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    with Progress(BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task("rows", total=total)
        yield lambda rows: bar.advance(task, rows)
