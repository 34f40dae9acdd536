"""`patra bus stage`: how far new major versions have come, and where they go next (B8)."""

from typing import TYPE_CHECKING, Any

import click

from patra.cli.bus.common import act_audited, bus_in, by_option, who_is
from patra.cli.terminal.options import config_option, json_option, open_patra, show

if TYPE_CHECKING:
    from patra.bus.consuming.version_stages import StagedMajor

EPILOG = """\b
Examples:
  patra bus stage
  patra bus stage order.placed dual --tenant acme
  patra bus stage order.placed dual --share 10
  patra bus stage order.placed shadow"""


@click.command("stage", epilog=EPILOG)
@click.argument("event_type", default="")
@click.argument("to", default="", metavar="[shadow|dual|retiring]")
@click.option("--tenant", "tenants", multiple=True, help="With dual: groups get the new version for this tenant.")
@click.option("--share", type=click.IntRange(0, 100), default=0, help="With dual: for so many percent of the events.")
@by_option
@config_option
@json_option
def stage(
    event_type: str, to: str, tenants: tuple[str, ...], share: int, by: str, config: str | None, as_json: bool
) -> None:
    """Move the newest major version of EVENT_TYPE to a stage; without one, list how far new versions have come.

    A new major begins as a shadow: groups that read both versions get the one before. With dual they get the new one
    for some tenants or a share, with retiring for all. Each can be taken back until the version before is retired,
    which is done in its contract.
    """
    from patra.bus import operations
    from patra.bus.consuming.version_stages import Stage
    from patra.bus.store import version_stages

    if to and to not in {one.value for one in Stage}:
        raise click.UsageError(f"{to!r} is not a stage: shadow, dual, retiring")
    if (tenants or share) and not to:
        raise click.UsageError("say which stage: dual")
    with open_patra(config) as patra:
        bus, who = bus_in(patra), who_is(by)
        if to:
            act_audited(
                patra,
                "bus.stage",
                event_type,
                lambda tx: operations.set_stage(tx, bus, event_type, Stage(to), by=who, tenants=tenants, share=share),
                who,
                stage=to,
                tenants=list(tenants),
                share=share,
            )
        found = patra.db.read(version_stages.find)
        show([_row(one) for one in found if event_type in {"", one.event_type}], as_json=as_json)


def _row(one: "StagedMajor") -> dict[str, Any]:
    from patra.kernel.clock import format_instant

    return {
        "type": one.event_type,
        "major": one.major,
        "stage": one.stage.value,
        "tenants": ", ".join(one.tenants),
        "share": one.share,
        "by": one.changed_by,
        "since": format_instant(one.changed_at),
    }
