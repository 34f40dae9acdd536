"""`patra config show`: the effective settings, secrets hidden, and where each came from."""

import click

from patra.cli.terminal.groups import Group
from patra.cli.terminal.options import config_option, json_option, load_settings, table
from patra.cli.terminal.suggestions import did_you_mean, nearest

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
  patra config show web.port              one of them; web for its section
  patra config show --json | jq '.[] | select(.origin != "default")'"""


@click.group("config", cls=Group)
def group() -> None:
    """Show the settings and where each came from."""


@group.command(epilog=EPILOG)
@click.argument("name", default="")
@config_option
@json_option
def show(name: str, config: str | None, as_json: bool) -> None:
    """Print every setting, or NAME or those of a section, its value and its origin; secrets are hidden."""
    import msgspec

    found = load_settings(config)
    wanted = [row for row in found.rows() if not name or row[0] == name or row[0].startswith(f"{name}.")]
    if not wanted:
        known = [row[0] for row in found.rows()]
        meant = did_you_mean(nearest(name, [*known, *{key.partition(".")[0] for key in known}]))
        raise click.BadParameter(f"there is no setting {name!r}. {meant}".rstrip(), param_hint="NAME")
    if as_json:
        rows = [{"key": key, "value": value, "origin": origin} for key, value, origin in wanted]
        click.echo(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode())
    else:
        table(["setting", "value", "from"], wanted)
    for variable in found.unread:
        click.echo(f"patra: note: {variable} is set, but is not a setting", err=True)
