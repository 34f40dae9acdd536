"""`patra work [LOOP…]`: background loops alone."""

import click

from patra.cli.options import config_option, loaded

EPILOG = """\b
Examples:
  patra work                    every loop of every engine
  patra work ingest             the loops of one engine
  patra work bus.relay          one loop
  patra work --port 8700        also answer /health, /ready, /loops and /metrics there"""


@click.command("work", epilog=EPILOG)
@click.argument("loops", nargs=-1, metavar="[LOOP]…")
@click.option("--port", type=int, help="Serve /health, /ready, /loops and /metrics of this process on this port.")
@config_option
def command(loops: tuple[str, ...], port: int | None, config: str | None) -> int:
    """Run background loops alone: all, those of an engine, or those named."""
    from patra.cli.process import run

    settings = loaded(config, web__port=port).settings
    return run(settings, web=port is not None, loops=loops, only_operations=True)
