"""`patra bus replay-all`, `discard-all`, `acts`: one act on every dead letter that a query finds (C§6)."""

from typing import TYPE_CHECKING, Any

import click

from patra.cli.bus.common import act_audited, ask_confirmation, bus_in, by_option, who_is
from patra.cli.terminal.options import config_option, json_option, open_patra, show

if TYPE_CHECKING:
    from patra.app.wiring import Patra
    from patra.bus.bulk_acts import BulkAct, Preview

EPILOG = """\b
The dead letters are fixed when the act begins; later ones are not touched.
They are handled in batches, here and by every process that runs the bus;
Ctrl-C leaves the rest to those. `patra bus acts` shows the progress.

\b
Examples:
  patra bus replay-all composer --error-code b_handler_failed --dry-run
  patra bus replay-all composer --type job.succeeded --confirm composer
  patra bus discard-all composer --type job.succeeded --reason "withdrawn" --confirm composer"""


def _options(command: Any) -> Any:
    for option in reversed(
        [
            click.argument("name"),
            click.option("--type", "event_type", default="", help="Of this event type."),
            click.option("--error-code", default="", help="With this error code."),
            click.option("--dry-run", is_flag=True, help="Say how many and which; do nothing."),
            click.option("--confirm", default="", help="The name of the group once more, instead of being asked."),
        ]
    ):
        command = option(command)
    return command


@click.command("replay-all", epilog=EPILOG)
@_options
@by_option
@config_option
@json_option
def replay_all(
    name: str, event_type: str, error_code: str, dry_run: bool, confirm: str, by: str, config: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Send every open dead letter of the group NAME, or those that a filter finds, to it once more."""
    _run("replay", name, event_type, error_code, "", dry_run, confirm, by, config, as_json)


@click.command("discard-all", epilog=EPILOG)
@_options
@click.option("--reason", required=True, help="Why; it is kept with every dead letter.")
@by_option
@config_option
@json_option
def discard_all(
    name: str, event_type: str, error_code: str, dry_run: bool, confirm: str, reason: str, by: str,
    config: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Set every open dead letter of the group NAME aside permanently, or those that a filter finds."""
    _run("discard", name, event_type, error_code, reason, dry_run, confirm, by, config, as_json)


@click.command("acts")
@click.argument("act_id", default="")
@click.option("--stop", is_flag=True, help="Stop the act ACT_ID after its current batch.")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
@by_option
@config_option
@json_option
def acts(act_id: str, stop: bool, limit: int, by: str, config: str | None, as_json: bool) -> None:
    """List bulk replays and discards of dead letters, or show the progress of one."""
    from patra.bus import bulk_acts
    from patra.bus.publishing.envelope import Refused

    if stop and not act_id:
        raise click.UsageError("name the act to stop")
    with open_patra(config) as patra:
        if stop:
            bus, who = bus_in(patra), who_is(by)
            act_audited(patra, "bus.bulk_stop", act_id, lambda tx: bulk_acts.stop(tx, bus, act_id), who)
        if not act_id:
            found = patra.db.read(lambda tx: bulk_acts.acts(tx, limit=limit))
            show([_line(one) for one in found], as_json=as_json)
            return
        progress = patra.db.read(lambda tx: bulk_acts.progress(tx, act_id))
        if isinstance(progress, Refused):
            raise click.ClickException(progress.detail)
        told = _line(progress.act) | {"letters": progress.states, "new_since": progress.new_since}
        show(told, as_json=as_json)


def _run(
    kind: str, name: str, event_type: str, error_code: str, why: str, dry_run: bool, confirm: str, by: str,
    config: str | None, as_json: bool,
) -> None:  # fmt: skip
    import msgspec

    from patra.bus import bulk_acts
    from patra.bus.consuming.dead_letter import Filter

    wanted = Filter(group=name, event_type=event_type or None, error_code=error_code or None)
    with open_patra(config) as patra:
        bus, who = bus_in(patra), who_is(by)
        preview = patra.db.read(lambda tx: bulk_acts.preview(tx, bus, wanted))
        if dry_run or not preview.letters:
            _show_preview(preview, as_json=as_json)
            return
        click.echo(_sentence(kind, preview), err=True)
        counted = msgspec.structs.replace(wanted, failed_to=preview.as_of + 1)  # what dies meanwhile is left alone
        typed = confirm or ask_confirmation(f"Type the name of the group, {name}, to confirm")
        act = act_audited(
            patra,
            "bus.bulk_act",
            name,
            lambda tx: bulk_acts.begin(tx, bus, kind, counted, by=who, confirm=typed, why=why),
            who,
            kind=kind,
            type=event_type,
            error_code=error_code,
            why=why,
        )
        _follow(patra, act, as_json=as_json)


def _follow(patra: "Patra", act: "BulkAct", *, as_json: bool) -> None:
    from patra.bus import bulk_acts
    from patra.bus.publishing.envelope import Refused

    bus = bus_in(patra)
    while patra.db.run(lambda tx: bulk_acts.work_off(tx, bus, act.act_id)):
        found = patra.db.read(lambda tx: bulk_acts.progress(tx, act.act_id))
        if not isinstance(found, Refused):
            click.echo(f"{found.act.moved + found.act.refused} of {found.act.total}", err=True)
    found = patra.db.read(lambda tx: bulk_acts.progress(tx, act.act_id))
    if not isinstance(found, Refused):
        show(_line(found.act), as_json=as_json)


def _sentence(kind: str, preview: "Preview") -> str:
    what = "will be handled once more" if kind == "replay" else "will be set aside for good"
    again = f"; {preview.replayed_before} were replayed before" if preview.replayed_before else ""
    broken = preview.sample_breaking_contract
    wrong = f"; {broken} of the latest {len(preview.sample)} break today's contract" if broken else ""
    return f"{preview.letters} dead letters {what}{again}{wrong}"


def _show_preview(preview: "Preview", *, as_json: bool) -> None:
    import msgspec

    from patra.kernel.clock import format_instant

    if as_json:
        show(msgspec.to_builtins(preview), as_json=True)
        return
    click.echo(f"{preview.letters} open dead letters match")
    rows = [
        {
            "letters": cause.letters,
            "type": cause.event_type,
            "error_code": cause.error_code,
            "detail": cause.detail[:80],
            "last_failed_at": format_instant(cause.last_failed_at),
        }
        for cause in preview.causes
    ]
    if rows:
        show(rows, as_json=False)


def _line(act: "BulkAct") -> dict[str, Any]:
    from patra.kernel.clock import format_instant

    return {
        "act_id": act.act_id,
        "act": act.kind,
        "group": act.group,
        "state": act.state,
        "moved": act.moved,
        "refused": act.refused,
        "left": act.remaining,
        "total": act.total,
        "by": act.by,
        "begun_at": format_instant(act.begun_at),
        "why": act.why,
    }
