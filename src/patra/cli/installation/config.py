"""`patra config show`: the effective settings, secrets hidden, and where each came from."""

import click

from patra.cli.terminal.groups import Group
from patra.cli.terminal.options import config_option, json_option, loaded, table

EPILOG = """\b
Where a value comes from, the later wins:
  1. the default
  2. the settings file: --config FILE, else PATRA_CONFIG, else ./patra.toml
  3. the variable PATRA_SECTION_FIELD, such as PATRA_STORE_URL or PATRA_WEB_PORT

\b
Secrets are given as references, so that they stand in no file of yours:
  store.url = "env:DATABASE_URL"        the variable DATABASE_URL
  web.admin_tokens = ["file:admin.token"]

\b
Examples:
  patra config show
  patra config show --json | jq '.[] | select(.origin != "default")'"""


@click.group("config", cls=Group)
def group() -> None:
    """Show the settings and where each came from."""


@group.command(epilog=EPILOG)
@config_option
@json_option
def show(config: str | None, as_json: bool) -> None:
    """Print every setting, its value and its origin; secrets are hidden."""
    import msgspec

    found = loaded(config)
    if as_json:
        rows = [{"key": key, "value": value, "origin": origin} for key, value, origin in found.rows()]
        click.echo(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode())
    else:
        table(["setting", "value", "from"], found.rows())
    for variable in found.unread:
        click.echo(f"patra: note: {variable} is set, but is not a setting", err=True)
