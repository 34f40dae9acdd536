"""`patra ingest cursors|quarantine|errors|alerts`: see how it goes (ch. 10 to 14)."""

from typing import TYPE_CHECKING, Any

import click

from patra.cli.options import config_option, json_option, opened, show

if TYPE_CHECKING:
    from patra.kernel.db import Database


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
    """Show the latest failed batches, and runs that failed without one, the newest first."""
    _print(config, "view_errors", {"source": source or "", "limit": limit}, as_json=as_json)


@click.command()
@config_option
@json_option
def alerts(config: str | None, *, as_json: bool) -> int:
    """Show the alerts that fire, those that may soon, and those that were over in the last day; exit 1 if any fires."""
    from patra.ingest.watch import alerts as found

    with opened(config) as patra:
        rows = found(patra.db, patra.clock.now())
    firing = sum(1 for row in rows if row["state"] == "FIRING")
    if as_json:
        show(rows, as_json=True)
    elif rows:
        names = ("state", "severity", "alert", "subject", "since", "detail", "advice")
        show([{name: row[name] for name in names} for row in rows], as_json=False)
    else:
        click.echo("no alert fires")
    return 1 if firing else 0


def _print(config: str | None, name: str, params: dict[str, Any], *, as_json: bool) -> None:
    from patra.ingest.blackbox import view

    with opened(config) as patra:
        db: Database = patra.db
        show(view(db, name, params), as_json=as_json)
