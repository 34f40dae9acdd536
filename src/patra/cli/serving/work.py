"""`patra work [LOOP…]`: background loops alone."""

import click

from patra.cli.terminal.options import config_option, load_settings

EPILOG = """\b
Examples:
  patra work                    every loop of every engine
  patra work ingest             the loops of one engine
  patra work bus.relay          one loop
  patra work --role indexer     the indexes and running sums of every engine
  patra work attribution --role timers --role indexer
  patra work --port 8700        also answer /health, /ready, /loops and /metrics there"""


@click.command("work", epilog=EPILOG)
@click.argument("loops", nargs=-1, metavar="[LOOP]…")
@click.option(
    "--role",
    "roles",
    multiple=True,
    type=click.Choice(["intake", "timers", "indexer", "relay", "work", "upkeep"]),
    help="Only loops of this role; may be given several times.",
)
@click.option("--port", type=int, help="Serve /health, /ready, /loops and /metrics of this process on this port.")
@config_option
def command(loops: tuple[str, ...], roles: tuple[str, ...], port: int | None, config: str | None) -> int:
    """Run background loops alone: all, those of an engine or a role, or those named."""
    from patra.cli.serving.process import run

    settings = load_settings(config, web__port=port).settings
    return run(settings, web=port is not None, loops=loops, roles=roles, only_operations=True)
