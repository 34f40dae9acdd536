"""`patra web`: the API alone, beside `patra work` processes on the same store."""

import click

from patra.cli.terminal.options import address_options, config_option, load_settings

EPILOG = """\b
Examples:
  patra web --port 8642        as many as you like on one PostgreSQL store
  patra work                   the loops that this process does not run"""


@click.command("web", epilog=EPILOG)
@config_option
@address_options
def command(config: str | None, host: str | None, port: int | None) -> int:
    """Serve the API alone; run the background loops with `patra work`."""
    from patra.cli.serving.process import run

    found = load_settings(config, web__host=host, web__port=port)
    return run(found.settings, web=True, loops=None, origins=found.origins)
