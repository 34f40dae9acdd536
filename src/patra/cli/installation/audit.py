"""`patra audit`: what operators did, newest first."""

import click

from patra.cli.terminal.options import config_option, json_option, open_patra, show

EPILOG = """\b
Examples:
  patra audit
  patra audit --act loop.wake --limit 20
  patra audit --json | jq '.[].actor' | sort | uniq -c"""


@click.command("audit", epilog=EPILOG)
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="How many acts.")
@click.option("--act", default="", help="Only acts of this name, such as loop.wake.")
@click.option("--subject", default="", help="Only acts on this subject.")
@config_option
@json_option
def command(limit: int, act: str, subject: str, config: str | None, as_json: bool) -> None:
    """Show what operators did, newest first."""
    from patra.app.access.audit import list_acts

    with open_patra(config) as patra:
        show(patra.db.read(lambda tx: list_acts(tx, limit=limit, act=act, subject=subject)), as_json=as_json)
