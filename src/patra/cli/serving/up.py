"""`patra up`: the API and every background loop in one process."""

import click

from patra.cli.terminal.options import address_options, config_option, load_settings

EPILOG = """\b
Examples:
  patra up                                   ./patra.db, http://127.0.0.1:8642
  patra up --port 9000
  PATRA_STORE_URL=postgresql://patra@db/patra patra up
  patra up --config /etc/patra.toml

\b
Stop it with Ctrl-C or SIGTERM: it takes no new requests, finishes running work within
web.shutdown_seconds, releases leases and closes the store. A second signal ends it at once."""


@click.command("up", epilog=EPILOG)
@config_option
@address_options
def command(config: str | None, host: str | None, port: int | None) -> int:
    """Serve the API and run every background loop, in one process."""
    from patra.cli.serving.process import run

    found = load_settings(config, web__host=host, web__port=port)
    return run(found.settings, web=True, loops=(), origins=found.origins)
