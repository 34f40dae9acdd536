"""`patra doctor`: what works, what is broken, what to do."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from patra.cli.terminal.options import config_option, json_option, load_settings, log_quietly, show, table
from patra.cli.terminal.wrapping import wrap_text

if TYPE_CHECKING:
    from patra.app.component import Check

EPILOG = """\b
ok       as it should be
warning  works, but look at it
broken   needs a fix; the exit code is 1
off      optional, and not in use

\b
Examples:
  patra doctor
  patra doctor --json | jq '.[] | select(.health == "broken")'"""


@click.command("doctor", epilog=EPILOG)
@config_option
@json_option
def command(config: str | None, as_json: bool) -> int:
    """Check this installation and say what to do."""
    from patra.app.component import Health
    from patra.app.doctor import examine

    found = load_settings(config)
    log_quietly(found.settings)
    checks = list(examine(found))
    if as_json:
        show(checks, as_json=True)
    else:
        _tell(checks)
    return 1 if any(check.health is Health.BROKEN for check in checks) else 0


def _tell(checks: "Sequence[Check]") -> None:
    """A table; on a terminal what to do stands below it, where it has the whole width."""
    if not sys.stdout.isatty():
        table(["health", "check", "found", "what to do"], [[c.health.value, c.name, c.found, c.advice] for c in checks])
        return
    table(["health", "check", "found"], [[c.health.value, c.name, c.found] for c in checks])
    if advised := [check for check in checks if check.advice]:
        click.echo("\nwhat to do")
    for check in advised:
        click.echo(wrap_text(f"  {check.name}: {check.advice}"))
