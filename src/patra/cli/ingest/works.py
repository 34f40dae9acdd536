"""`patra ingest records`, `works`, `packs`: what was harvested, exported; the packs of the distribution."""

import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from patra.cli.ingest.operations import topic_option
from patra.cli.terminal.options import (
    config_option,
    json_option,
    json_wanted,
    open_patra,
    outcome_option,
    show,
    spare_the_store,
    table,
)

if TYPE_CHECKING:
    from patra.app.wiring import Patra
    from patra.ingest.works.file_writers import Json, Progress, Table

FORMATS = ("jsonl", "csv", "parquet", "duckdb", "csl-json", "bibtex", "ris")


def export_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Where rows go, and of which sources."""
    for option in (
        config_option,
        outcome_option,
        click.option("--source", "sources", multiple=True, metavar="SOURCE", help="Only this one; may be repeated."),
        topic_option("Only what runs and schedules with this --topic found."),
        click.option(
            "-o",
            "--out",
            type=click.Path(dir_okay=False, path_type=Path),
            help="The file; its ending decides the format. Without it: a table on a terminal, else JSON lines.",
        ),
        click.option("--format", "fmt", type=click.Choice(FORMATS), help="The format, where the ending does not say."),
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
    topic: str,
) -> None:
    """Export records as they are stored: their fields, and the record as it came, personal data included."""
    from patra.cli.ingest.group import instant_of
    from patra.ingest.works.export import RECORDS, record_rows
    from patra.ingest.works.read import count

    with open_patra(config) as patra:
        _known_topic(patra, topic)
        named = sources if source is None else (*sources, source)
        start = instant_of(since, "--since", patra.clock.now())
        total = count(patra.db, named, since=start, topic=topic)
        rows = partial(record_rows, patra.db, named, since=start, topic=topic)
        _write(patra, lambda _: rows(), RECORDS, out, fmt, total=total, quiet=quiet)


@click.command(
    epilog="\b\nExamples:\n  patra ingest works --out works.parquet\n"
    "  patra ingest works --dedupe --out library.duckdb   one row per work, with the source of each field\n"
    "  patra ingest works --source crossref --out dois.csv\n"
    "  patra ingest works --topic otters --out otters.duckdb   only what the searches of that topic found\n"
    "  patra ingest works --dedupe --out library.bib      for reference managers; also .ris and .csljson"
)
@export_options
@click.option(
    "--dedupe",
    is_flag=True,
    help="Join the same work across sources by its identifiers, and by versions and preprints that name each other.",
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
    topic: str,
) -> None:
    """Export records in the common shape: one row per work; e-mail addresses and keys in texts are masked."""
    from patra.ingest.works.export import JOINED, WORKS, WORKS_RAW, joined_rows, work_rows
    from patra.ingest.works.read import count

    if dedupe and raw:
        raise click.UsageError("--raw belongs to one source's record; with --dedupe there are several")
    with open_patra(config) as patra:
        _known_topic(patra, topic)
        total = count(patra.db, sources, topic=topic)
        if dedupe:
            folder = out.parent if out is not None else Path.cwd()
            rows = partial(joined_rows, patra.db, folder, sources, topic=topic)
            _write(patra, rows, JOINED, out, fmt, total=total, quiet=quiet, told=True)
            return
        written = _write(
            patra,
            lambda _: work_rows(patra.db, sources, raw=raw, topic=topic),
            WORKS_RAW if raw else WORKS,
            out,
            fmt,
            total=total,
            quiet=quiet,
        )
        if written < total:
            click.echo(f"{total - written} records are not works: `patra ingest records` has them", err=True)


def _known_topic(patra: "Patra", topic: str) -> None:
    """Refuse a topic that no search was followed for, instead of an empty file."""
    from patra.ingest.packs.problems import unknown_name
    from patra.ingest.works.read import topics

    known = patra.db.read(topics)
    if topic and topic not in known:
        raise click.BadParameter(
            f"no search has the topic {topic!r}; {unknown_name(topic, known)}", param_hint="--topic"
        )


@click.command("packs")
@click.argument("name", required=False)
@json_option
def bundled(name: str | None, as_json: bool) -> None:
    """List the packs that come with Patra, or print one: a file to load, or to start your own from."""
    from patra.ingest.packs import bundled
    from patra.ingest.works.docs import summaries

    if name is not None:
        click.echo(bundled.text(name), nl=False)
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
    from patra.ingest.works.file_writers import export, format_of, sink, to_stream

    if out is None:
        if fmt not in {None, "jsonl"}:
            raise click.UsageError(f"{fmt} needs a file: --out FILE")
        if fmt is None and sys.stdout.isatty() and not json_wanted():
            return _on_terminal(pages(None), shape, total)
        return to_stream(pages(None), sys.stdout.buffer)
    spare_the_store(patra, out)
    target = sink(out, format_of(out, fmt), shape)
    with _progress(total, quiet=quiet) as advance:
        written = export(pages(advance if told else None), target, None if told else advance)
    if json_wanted():
        show({"rows": written, "file": str(out)}, as_json=True)
    else:
        click.echo(f"{written} rows in {out}", err=True)
    return written


SHOWN_ROWS = 20
SHOWN_COLUMNS = ("source", "id", "doi", "title", "issued", "sources")


def _short(value: Any) -> Any:
    """A list without its brackets, and an instant of publication as its date."""
    if isinstance(value, (list, tuple)):
        return " ".join(map(str, cast("Sequence[Any]", value)))
    return value[:10] if isinstance(value, str) and value.endswith("T00:00:00Z") else value


def _on_terminal(pages: "Iterable[Sequence[Json]]", shape: "Table", total: int) -> int:
    """The first rows, in the columns that tell one from another; --out has all of them."""
    rows = list(islice((row for page in pages for row in page), SHOWN_ROWS))
    names = [name for name in SHOWN_COLUMNS if name in shape.columns]
    show([{name: _short(row.get(name)) for name in names} for row in rows], as_json=False)
    if total > len(rows) == SHOWN_ROWS:
        click.echo(f"the first {SHOWN_ROWS}; --out FILE writes all, with every column", err=True)
    return total


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
