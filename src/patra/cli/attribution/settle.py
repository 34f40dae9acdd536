"""`patra attribution settle`: count billable facts."""

from typing import Any

import click

from patra.cli.terminal.options import config_option, json_wanted, open_patra, outcome_option, spare_the_store, table
from patra.cli.terminal.suggestions import did_you_mean, nearest

SETTLE_EPILOG = """\b
Only facts whose record is `committed` count. --from is included, --to is not; both go by factAt.

\b
Examples:
  patra attribution settle --from 2026-01-01 --to 2026-02-01
  patra attribution settle --from 2026-01-01 --to 2026-02-01 --by placement --format csv > january.csv
  patra attribution settle --from 2026-01-01 --to 2026-02-01 --by app,day,creative --where placement=home
  patra attribution settle --from 2026-01-01 --to 2026-02-01 --by day --format parquet --out january.parquet"""


_COLUMNS = {"app": {"app_id": "app"}, "day": {"day": "day"}, "placement": {"app_id": "app", "placement": "placement"}}
"""What a line of each dimension has, and what the table calls it."""


@click.command("settle", epilog=SETTLE_EPILOG)
@click.option("--from", "begin", required=True, metavar="INSTANT", help="A date (UTC) or an RFC 3339 instant.")
@click.option("--to", "end", required=True, metavar="INSTANT", help="A date (UTC) or an RFC 3339 instant.")
@click.option(
    "--by",
    default="app",
    show_default=True,
    metavar="DIMENSIONS",
    help="Any of app, day, placement, creative and opportunity, separated by commas.",
)
@click.option("--where", "filters", multiple=True, metavar="DIMENSION=VALUE", help="Only facts with this value.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json", "parquet"]),
    help="By default what the name of FILE ends with, or a table.",
)
@click.option("--out", type=click.Path(dir_okay=False), metavar="FILE", help="Instead of standard output.")
@config_option
@outcome_option
def settle(
    begin: str, end: str, by: Any, filters: tuple[str, ...], form: str | None, out: str | None, config: str | None
) -> None:
    """Count billable facts between two instants."""
    from patra.attribution.settlement import as_csv, as_parquet
    from patra.attribution.settlement import settle as settled
    from patra.cli.terminal.empty import explanation

    first, last = instant_of(begin, "--from"), instant_of(end, "--to")
    if first > last:
        raise click.BadParameter("lies before --from", param_hint="--to")
    form = form or ("json" if json_wanted() and out is None else "") or (out or "table").rpartition(".")[2].lower()
    if form not in {"csv", "json", "parquet"} and (out is not None or form != "table"):
        raise click.UsageError("--out: name the file .csv, .json or .parquet, or give --format")
    if form == "parquet" and out is None:
        raise click.UsageError("--format parquet needs --out FILE")
    dimensions, wanted = _dimensions(by), dict(_filter(one) for one in filters)
    if wanted or dimensions not in (["app"], ["day"], ["placement"]):
        from patra.cli.attribution.dimensions import settle_by_dimensions

        settle_by_dimensions(config, (first, last), dimensions, wanted, form, out)
        return
    with open_patra(config) as patra:
        if out is not None:
            spare_the_store(patra, out)
        found = patra.db.read(lambda tx: settled(tx, first, last, by))
    if found.uncounted:
        left = ", ".join(f"{count} {status}" for status, count in found.uncounted.items())
        click.echo(f"not counted, since the archive does not have them: {left}", err=True)
    if form == "parquet":
        as_parquet(found, out or "")
    elif form == "table":
        columns = _COLUMNS[dimensions[0]]
        rows = [[getattr(line, name) for name in (*columns, "impressions", "clicks")] for line in found.lines]
        total = ["total", *("" for _ in list(columns)[1:]), found.impressions, found.clicks]
        table([*columns.values(), "impressions", "clicks"], [*rows, total])
        if not rows:
            click.echo(explanation(), err=True)
    else:
        import msgspec

        text = as_csv(found) if form == "csv" else msgspec.json.encode(found).decode() + "\n"
        with click.open_file(out or "-", "w", encoding="utf-8") as file:
            file.write(text)


def _dimensions(text: str) -> list[Any]:
    from patra.attribution.settlement.dimensions import DIMENSIONS

    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in DIMENSIONS or names.count(name) > 1:
            near = [] if name in DIMENSIONS else nearest(name, DIMENSIONS)
            said = did_you_mean(near) or f"Each of {', '.join(DIMENSIONS)} once."
            twice = " twice" if name in DIMENSIONS else ""
            raise click.BadParameter(f"cannot be {name!r}{twice}. {said}", param_hint="--by")
    return names


def _filter(text: str) -> tuple[Any, str]:
    from patra.attribution.settlement.dimensions import DIMENSIONS

    name, mark, value = text.partition("=")
    if not mark or name not in DIMENSIONS:
        meant = did_you_mean(nearest(name, DIMENSIONS)) if mark else "Write it as placement=home."
        said = meant or f"A dimension is one of {', '.join(DIMENSIONS)}."
        raise click.BadParameter(f"{text!r} is not DIMENSION=VALUE. {said}", param_hint="--where")
    return name, value


def instant_of(text: str, option: str) -> int:
    from patra.kernel.clock import parse_instant

    found = parse_instant(text if "T" in text.upper() else f"{text}T00:00:00Z")
    if found is None:
        raise click.BadParameter(
            f"{text!r} is neither a date (2026-01-31) nor an RFC 3339 instant with its offset "
            "(2026-01-31T00:00:00+08:00)",
            param_hint=option,
        )
    return found
