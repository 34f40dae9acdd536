"""`patra ingest try`: one polite request of a pack, and what became of the answer; nothing is stored."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from patra.cli.ingest import instant_of, params_of
from patra.cli.options import config_option, json_option, loaded, log_quietly, opened, show, store_is_there

if TYPE_CHECKING:
    from patra.app.settings import Settings
    from patra.ingest.compiler import LoadedPack

EPILOG = """\b
Examples:
  patra ingest try crossref works --param query=otters     a source that is loaded, or a pack of the distribution
  patra ingest try mine.yaml records --from P1D            a pack that you are writing
  patra ingest try openalex work --id W2741809807
Exit code 1 when the answer was not accepted, 5 when the pack does not compile."""


@click.command("try", epilog=EPILOG)
@click.argument("pack", metavar="SOURCE|FILE")
@click.argument("endpoint")
@click.option("--param", "params", multiple=True, metavar="NAME=VALUE", help="A parameter of the pack.")
@click.option("--from", "since", metavar="WHEN", help="Start of the window; by default the newest whole one.")
@click.option("--to", "until", metavar="WHEN", help="End of the window, not included.")
@click.option("--id", "ids", multiple=True, metavar="ID", help="Ask for this record; may be repeated.")
@click.option(
    "--records",
    type=click.IntRange(0, 10_000),
    default=3,
    show_default=True,
    help="How many of the first records to show.",
)
@config_option
@json_option
def command(
    pack: str,
    endpoint: str,
    params: tuple[str, ...],
    since: str | None,
    until: str | None,
    ids: tuple[str, ...],
    records: int,
    config: str | None,
    as_json: bool,
) -> None:
    """Send one request and show it (secrets hidden), its status, what it means, and the first records as mapped."""
    from patra.ingest.gates import LocalGate
    from patra.ingest.services import Services
    from patra.ingest.transport import Transport
    from patra.ingest.trial import Tried, Wanted, tried
    from patra.kernel.clock import SystemClock

    settings = loaded(config).settings
    log_quietly(settings)
    read = _pack(pack, config, settings)
    clock = SystemClock()
    wanted = Wanted(
        endpoint=endpoint,
        params=params_of(params),
        since=instant_of(since, "--from", clock.now()),
        until=instant_of(until, "--to", clock.now()),
        ids=ids,
        records=records,
    )
    transport = Transport()
    try:
        found = tried(read, wanted, Services(clock=clock, gate=LocalGate(clock), transport=transport))
    finally:
        transport.close()
    if not isinstance(found, Tried):
        for problem in found:
            click.echo(str(problem), err=True)
        raise SystemExit(5)
    if as_json:
        show(found, as_json=True)
    else:
        _tell(found)
    if not found.verdict.startswith(("accept", "empty")):
        raise SystemExit(1)


def _pack(name: str, config: str | None, settings: "Settings") -> "LoadedPack":
    """A file, a source as it was loaded into the store, or a pack of the distribution."""
    from patra.ingest import shelf, sources
    from patra.kernel.errors import Invalid

    path = Path(name)
    if path.suffix:
        try:
            return sources.parsed(path.read_text(encoding="utf-8"), path.name)
        except OSError as error:
            raise Invalid("pack_unreadable", f"{name}: {error.strerror}") from error
    if not store_is_there(settings):  # to look for a pack makes none
        return sources.pack(name)
    with opened(config) as patra:
        found = patra.db.read(lambda tx: shelf.read_pack(tx, name))
    return sources.pack(name) if found is None else found


def _tell(found: Any) -> None:
    import msgspec

    click.echo(f"{found.method} {found.url}")
    for name, value in found.headers.items():
        click.echo(f"  {name}: {value}")
    if found.body:
        click.echo(f"  {found.body[:500]}")
    click.echo(f"\nstatus {found.status}: {found.verdict}")
    for text in (found.detail if not found.verdict.startswith("accept") else "", found.advice):
        if text:
            click.echo(f"  {text}")
    if found.items is not None:
        click.echo(f"{found.items} records on this page, {found.total if found.total is not None else '?'} in all")
        click.echo(f"next page: {found.following or 'none'}")
    for record in found.records:
        click.echo("\n" + msgspec.json.format(msgspec.json.encode(record), indent=2).decode())
    if not found.records and found.begins:
        click.echo(f"\nthe answer begins: {found.begins}")
