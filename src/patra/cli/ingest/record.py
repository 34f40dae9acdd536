"""`patra ingest record`: pages of a real exchange as files without secrets, in the form of our test cases."""

from pathlib import Path

import click

from patra.cli.ingest.try_source import pack_of, request_options, wait, wanted_of
from patra.cli.terminal.options import config_option, json_option, load_settings, log_quietly, show

EPILOG = """\b
Examples:
  patra ingest record ror organizations --pages 3 --folder cases
  patra ingest record zenodo record --id 123 --folder cases      the answer about one record
Read the files before you send them: what a provider repeats of you in another form is not found.
Exit code 1 when an answer was an error (it is written all the same), 5 when the pack does not compile."""


@click.command("record", epilog=EPILOG)
@request_options
@click.option(
    "--pages", type=click.IntRange(1, 50), default=2, show_default=True, help="How many pages to write at most."
)
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Where the files go, in a folder with the source's name; the present folder unless given.",
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
    pages: int,
    folder: Path,
    config: str | None,
    as_json: bool,
) -> None:
    """Send the requests of a few pages and write each exchange to a file, secrets and addresses removed."""
    import msgspec

    from patra.app.configuration.egress_networks import networks
    from patra.ingest.fetching.runtime import Runtime
    from patra.ingest.http.client import Transport
    from patra.ingest.operations.record_exchange import record_exchanges
    from patra.ingest.ratelimit.limiter import LocalGate
    from patra.kernel.clock import SystemClock

    settings = load_settings(config).settings
    log_quietly(settings)
    read, grants = pack_of(pack, config, settings)
    clock = SystemClock()
    wanted = wanted_of(endpoint, params, since, until, ids, clock.now())
    transport = Transport(networks=networks(settings))
    refused = False
    written: list[dict[str, object]] = []
    try:
        services = Runtime(clock=clock, gate=LocalGate(clock), transport=transport)
        found = record_exchanges(read, wanted, services, pages, wait, grants)
        if isinstance(found, tuple):
            for problem in found:
                click.echo(str(problem), err=True)
            raise click.exceptions.Exit(5)
        place = folder / read.pack.source
        place.mkdir(parents=True, exist_ok=True)
        for exchange in found:
            file = place / exchange.name
            file.write_bytes(msgspec.json.format(msgspec.json.encode(exchange.tree), indent=1) + b"\n")
            records = f"{exchange.items} records" if exchange.items is not None else "no list"
            written.append({"file": str(file), "status": exchange.status, "records": exchange.items})
            if not as_json:
                click.echo(f"{file}: status {exchange.status}, {records}")
            refused = refused or exchange.status >= 400
    finally:
        transport.close()
    if as_json:
        show(written, as_json=True)
    if refused:
        raise click.exceptions.Exit(1)
