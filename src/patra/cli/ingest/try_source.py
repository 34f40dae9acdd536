"""`patra ingest try`: a few polite requests of a pack, and what became of the answers; nothing is stored."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from patra.cli.ingest.group import instant_of, params_of
from patra.cli.terminal.options import (
    config_option,
    json_option,
    load_settings,
    log_quietly,
    open_patra,
    show,
    store_is_there,
)
from patra.cli.terminal.wrapping import say
from patra.kernel.clock import SECOND

if TYPE_CHECKING:
    from patra.app.configuration.settings import Settings
    from patra.ingest.operations.trial.request import Wanted
    from patra.ingest.packs.compiler import LoadedPack
    from patra.ingest.packs.secret_grants import Grant

MOST_RECORDS = 10_000
MAX_WAIT_SECONDS = 60
EPILOG = """\b
Examples:
  patra ingest try crossref works --param query=otters     a source that is loaded, or a pack of the distribution
  patra ingest try mine.yaml records --from P1D            a pack that you are writing
  patra ingest try mine.yaml records --pages 10            further into the list
  patra ingest try openalex work --id W2741809807
  patra ingest try ror organizations --live                what to check before you trust it
Where the pack does not declare `window.bounds`, and with --live, a record is asked for at the bounds of a window in
three more requests at most; --pages 1 asks once. Exit code 1 when an answer was not accepted, the list ends before its
total or a bound loses records; 5 when the pack does not compile."""


def request_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Which request of a pack: its endpoint, parameters, window or ids."""
    for option in reversed(
        (
            click.argument("pack", metavar="SOURCE|FILE"),
            click.argument("endpoint"),
            click.option("--param", "params", multiple=True, metavar="NAME=VALUE", help="A parameter of the pack."),
            click.option(
                "--from", "since", metavar="WHEN", help="Start of the window; by default the newest whole one."
            ),
            click.option("--to", "until", metavar="WHEN", help="End of the window, not included."),
            click.option("--id", "ids", multiple=True, metavar="ID", help="Ask for this record; may be repeated."),
        )
    ):
        command = option(command)
    return command


def wait_seconds(microseconds: int) -> float:
    """How long to sleep for a wait that the rate of the pack asks for, in microseconds as all our durations are."""
    return min(microseconds / SECOND, MAX_WAIT_SECONDS)


def wait(microseconds: int) -> bool:
    time.sleep(wait_seconds(microseconds))
    return True


@click.command("try", epilog=EPILOG)
@request_options
@click.option(
    "--pages", type=click.IntRange(1, 50), default=3, show_default=True, help="How many pages of a list to follow."
)
@click.option(
    "--records",
    type=click.IntRange(0, 10_000),
    default=3,
    show_default=True,
    help="How many of the first records to show.",
)
@click.option("--live", is_flag=True, help="Say what to check against the live service before a harvest is trusted.")
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
    records: int,
    live: bool,
    config: str | None,
    as_json: bool,
) -> None:
    """Follow a list over a few pages and into its details: requests (secrets hidden), answers, first records as mapped.

    What would be lost in a harvest is said: a list that ends before its total, null ids, fields that no record has.
    """
    from msgspec import to_builtins
    from msgspec.structs import replace

    from patra.app.configuration.egress_networks import networks
    from patra.ingest.fetching.runtime import Runtime
    from patra.ingest.http.client import Transport
    from patra.ingest.operations.live_checks import lines_of, live_checks, tree_of
    from patra.ingest.operations.try_source import Tried, try_endpoint
    from patra.ingest.ratelimit.limiter import LocalGate
    from patra.kernel.clock import SystemClock

    settings = load_settings(config).settings
    log_quietly(settings)
    read, grants = pack_of(pack, config, settings)
    clock = SystemClock()
    more = {"records": MOST_RECORDS if live else records, "pages": pages, "probe_bounds": live}
    wanted = wanted_of(endpoint, params, since, until, ids, clock.now(), **more)
    transport = Transport(networks=networks(settings))
    try:
        services = Runtime(clock=clock, gate=LocalGate(clock), transport=transport)
        found = try_endpoint(read, wanted, services, grants, pause=wait)
    finally:
        transport.close()
    if not isinstance(found, Tried):
        for problem in found:
            click.echo(str(problem), err=True)
        raise click.exceptions.Exit(5)
    checks = live_checks(read, wanted, found, pack) if live else []
    found = replace(found, records=found.records[:records])
    if as_json:
        show({**to_builtins(found), "checks": tree_of(checks)} if live else found, as_json=True)
    else:
        _tell(found)
        for line in lines_of(checks) if live else []:
            say(line)
    if not found.is_good:
        raise click.exceptions.Exit(1)


def wanted_of(
    endpoint: str,
    params: tuple[str, ...],
    since: str | None,
    until: str | None,
    ids: tuple[str, ...],
    now: int,
    **more: Any,
) -> "Wanted":
    """The request that `request_options` name."""
    from patra.ingest.operations.trial.request import Wanted

    return Wanted(
        endpoint=endpoint,
        params=params_of(params),
        since=instant_of(since, "--from", now),
        until=instant_of(until, "--to", now),
        ids=ids,
        **more,
    )


def pack_of(name: str, config: str | None, settings: "Settings") -> "tuple[LoadedPack, list[Grant]]":
    """A file, a source as it was loaded into the store, or a pack of the distribution; and what secrets are allowed."""
    from patra.ingest.packs import bundled, registry, secret_grants
    from patra.kernel.errors import Invalid

    path, found, grants = Path(name), None, list["Grant"]()
    if store_is_there(settings):  # to look for a pack makes none
        with open_patra(config) as patra:
            grants = patra.db.read(secret_grants.grants_of)
            found = None if path.suffix else patra.db.read(lambda tx: registry.read_pack(tx, name))
    if path.suffix:
        try:
            return bundled.parse_pack(path.read_text(encoding="utf-8"), path.name), grants
        except OSError as error:
            raise Invalid("pack_unreadable", f"{name}: {error.strerror}") from error
    return bundled.pack(name) if found is None else found, grants


def _tell(found: Any) -> None:
    import msgspec

    click.echo(f"{found.method} {found.url}")
    for name, value in found.headers.items():
        click.echo(f"  {name}: {value}")
    if found.body:
        click.echo(f"  {found.body[:500]}")
    say(f"\nstatus {found.status}: {found.verdict}")
    for text in (found.detail if not found.verdict.startswith("accept") else "", found.advice):
        if text:
            say(f"  {text}")
    if found.items is not None:
        click.echo(f"{found.items} records on this page, {found.total if found.total is not None else '?'} in all")
        click.echo(f"next: {found.following or 'none'}")
        if not found.items and not found.records:
            say("no record here: --from and --to choose another window, --param what is asked for")
    for number, page in enumerate(found.pages[1:], 2):
        click.echo(f"\n{_request_line(page, f'request {number}')}\nnext: {page.following or 'none'}")
    for page in found.details:
        missing = f", {len(page.missing_ids)} without a record" if page.missing_ids else ""
        click.echo(f"\n{_request_line(page, 'details')} for {page.asked_ids} ids{missing}")
    for record in found.records:
        click.echo("\n" + msgspec.json.format(msgspec.json.encode(record), indent=2).decode())
    if not found.records and found.begins:
        click.echo(f"\nthe answer begins: {found.begins}")
    _tell_findings(found)


def _request_line(page: Any, name: str) -> str:
    why = "" if page.verdict.startswith("accept") else f"\n  {page.detail}\n  {page.advice}".rstrip()
    return f"{name}: {page.method} {page.url}\nstatus {page.status}: {page.verdict}{why}\n{page.items or 0} records"


def _tell_findings(found: Any) -> None:
    """What a harvest would lose or leave empty, at the end where it is seen."""
    lines = [f"INCOMPLETE: {found.incomplete}"] if found.incomplete else []
    lines += [f"NOTE: {note}" for note in found.notes]
    if found.bounds is not None:
        probe = found.bounds
        mark = "LOSS" if probe.loses else "NOTE"
        lines.append(f"{mark}: bounds by the {probe.unit}: lower {probe.lower}, upper {probe.upper}; {probe.says}")
    if lines:
        say("\n" + "\n".join(lines))
