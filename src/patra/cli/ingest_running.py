"""`patra ingest run|cursors|quarantine|errors|blackbox`: work on what is planned, and see how it went (ch. 9 to 14)."""

from typing import TYPE_CHECKING, Any

import click

from patra.cli.ingest import trigger_of, trigger_options
from patra.cli.options import config_option, json_option, opened, show

if TYPE_CHECKING:
    from patra.kernel.db import Database


@click.command()
@trigger_options
@click.option("--executors", type=click.IntRange(1, 64), default=2, show_default=True, help="Tasks at the same time.")
@config_option
def run(config: str | None, executors: int, **said: Any) -> int:
    """Plan a window and work until nothing is left of it; run it again to go on where it stopped."""
    from patra.ingest.draining import drain
    from patra.kernel.clock import SystemClock

    with opened(config) as patra:
        left = drain(
            patra.db,
            trigger_of(SystemClock().now(), **said),
            executors=executors,
            tell=lambda line: click.echo(line, err=True),
        )
    for line in left:
        click.echo(line, err=True)
    return 1 if left else 0


@click.command()
@click.argument("source", required=False)
@config_option
@json_option
def cursors(config: str | None, source: str | None, *, as_json: bool) -> None:
    """Show every watermark and how far it lies behind now."""
    _print(config, "view_cursors", {"source": source or ""}, as_json=as_json)


@click.command()
@click.argument("source", required=False)
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
@config_option
@json_option
def quarantine(config: str | None, source: str | None, limit: int, *, as_json: bool) -> None:
    """Show records that could not be taken in: where, why, and a sample."""
    _print(config, "view_quarantine", {"source": source or "", "limit": limit}, as_json=as_json)


@click.command()
@click.argument("source", required=False)
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
@config_option
@json_option
def errors(config: str | None, source: str | None, limit: int, *, as_json: bool) -> None:
    """Show the latest failed batches, the newest first."""
    _print(config, "view_errors", {"source": source or "", "limit": limit}, as_json=as_json)


@click.command()
@click.argument("run_id", metavar="RUN")
@click.argument("batch_no", metavar="BATCH", type=int)
@config_option
def blackbox(config: str | None, run_id: str, batch_no: int) -> int:
    """Print the evidence of one batch as JSON: request, answer, counts, cursor events."""
    from patra.ingest.blackbox import export

    with opened(config) as patra:
        evidence = export(patra.db, run_id, batch_no)
    if evidence is None:
        click.echo(f"there is no batch {batch_no} of run {run_id}", err=True)
        return 1
    show(evidence, as_json=True)
    return 0


def _print(config: str | None, name: str, params: dict[str, Any], *, as_json: bool) -> None:
    from patra.ingest.blackbox import view

    with opened(config) as patra:
        db: Database = patra.db
        show(view(db, name, params), as_json=as_json)
