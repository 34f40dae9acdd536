"""`patra outbox`: messages that could not be delivered, and another try for them."""

import click

from patra.cli.terminal.groups import Group
from patra.cli.terminal.options import config_option, json_option, open_patra, outcome_option, say_outcome, show

EPILOG = """\b
Examples:
  patra outbox                                   what was refused or given up, and why
  patra outbox requeue ingest.record 17 18       try these again, the cause being gone"""


@click.group("outbox", cls=Group, invoke_without_command=True, epilog=EPILOG)
@click.option("--channel", default="", help="Only of this channel.")
@click.option("--after", type=click.IntRange(0, 2**62), default=0, help="Only those behind this number, to page on.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="How many.")
@click.pass_context
@config_option
@json_option
def group(ctx: click.Context, channel: str, after: int, limit: int, config: str | None, as_json: bool) -> None:
    """Show messages to others that were refused or given up, the oldest first."""
    if ctx.invoked_subcommand is not None:
        return
    from patra.app.outbox_admin import lines

    with open_patra(config) as patra:
        show(patra.db.read(lambda tx: lines(tx, channel=channel, after=after, limit=limit)), as_json=as_json)


@group.command(
    epilog="\b\nExamples:\n"
    "  patra outbox requeue ingest.record 17 18\n"
    '  patra outbox requeue ingest.alert.webhook 4 --why "the receiver is back"'
)
@click.argument("channel")
@click.argument("seqs", nargs=-1, required=True, type=click.IntRange(0, 2**62), metavar="SEQ…")
@click.option("--why", default="", help="The reason, for the audit.")
@config_option
@outcome_option
def requeue(channel: str, seqs: tuple[int, ...], why: str, config: str | None) -> int:
    """Try messages again; exit code 1 when none of them waits for that."""
    from patra.app.access.actor import command_line_actor
    from patra.app.access.audit import audit
    from patra.app.outbox_admin import requeue as again
    from patra.kernel.db import Tx

    with open_patra(config) as patra:
        now = patra.clock.now()

        def both(tx: Tx) -> int:
            changed = again(tx, channel, seqs, now)
            detail = {"seqs": list(seqs), "why": why, "changed": changed}
            audit(tx, command_line_actor(), "outbox.requeue", channel, detail, now)
            return changed

        changed = patra.db.run(both)
    say_outcome(f"{changed} of {channel} are tried again", channel=channel, requeued=changed)
    return 0 if changed else 1
