"""`patra bus webhooks`: endpoints that events are sent to."""

from typing import TYPE_CHECKING

import click

from patra.cli.bus.common import acted, bus_in, by_option, who_is
from patra.cli.options import config_option, json_option, opened, show, table

if TYPE_CHECKING:
    from patra.bus.versions import VersionRange


@click.group(invoke_without_command=True)
@click.pass_context
@config_option
@json_option
def webhooks(ctx: click.Context, config: str | None, as_json: bool) -> None:
    """Endpoints that events are sent to, signed. Subcommands add and remove them."""
    if ctx.invoked_subcommand is not None:
        return
    from patra.bus import webhook
    from patra.bus.store import groups
    from patra.kernel.redact import redact_url

    with opened(config) as patra:
        found = patra.db.read(groups.webhooks)
        show(
            [{"name": h.name, "url": redact_url(h.url), "group": webhook.group(h.name)} for h in found], as_json=as_json
        )


def _wanted(text: str) -> "tuple[str, VersionRange]":
    from patra.bus.versions import parse_range

    event_type, _, versions = text.partition("@")
    if (wanted := parse_range(versions or ">=1")) is None:
        raise click.BadParameter(f"{text!r}: {versions!r} is no range such as >=1,<2", param_hint="TYPE[@VERSIONS]")
    return event_type, wanted


@webhooks.command("add")
@click.argument("name")
@click.argument("url")
@click.argument("types", nargs=-1, required=True, metavar="TYPE[@VERSIONS]…")
@by_option
@config_option
def add_webhook(name: str, url: str, types: tuple[str, ...], by: str, config: str | None) -> None:
    """Send events of some types to URL; prints the secret that signs them, once."""
    from patra.bus import webhook

    wanted = dict(map(_wanted, types))
    if len(wanted) < len(types):
        raise click.UsageError("each TYPE stands once; a range such as @>=1,<3 takes several versions")
    with opened(config) as patra:
        bus, who = bus_in(patra), who_is(by)
        made = acted(
            patra,
            "bus.webhook.add",
            name,
            lambda tx: webhook.add(tx, bus, name, url, wanted, by=who),
            who,
            types={event_type: versions.text for event_type, versions in wanted.items()},
        )
        table(["", ""], [["group", webhook.group(name)], ["secret", made.secret]], header=False)


@webhooks.command("remove")
@click.argument("name")
@by_option
@config_option
def remove_webhook(name: str, by: str, config: str | None) -> None:
    """Send nothing more to an endpoint."""
    from patra.bus import webhook
    from patra.bus.envelope import Refused
    from patra.bus.reasons import R

    with opened(config) as patra:
        bus, who = bus_in(patra), who_is(by)
        unknown = Refused(code=R.GROUP_UNKNOWN, place="/name", detail=f"there is no webhook {name}")
        acted(patra, "bus.webhook.remove", name, lambda tx: webhook.remove(tx, bus, name, by=who) or unknown, who)
        click.echo("done")
