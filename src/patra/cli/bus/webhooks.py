"""`patra bus webhooks`: endpoints that events are sent to."""

import click

from patra.cli.bus.common import acted, bus_in, by_option, who_is
from patra.cli.options import config_option, json_option, opened, show, table


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

    with opened(config) as patra:
        found = patra.db.read(groups.webhooks)
        show([{"name": h.name, "url": h.url, "group": webhook.group(h.name)} for h in found], as_json=as_json)


@webhooks.command("add")
@click.argument("name")
@click.argument("url")
@click.argument("types", nargs=-1, required=True, metavar="TYPE[@VERSIONS]…")
@by_option
@config_option
def add_webhook(name: str, url: str, types: tuple[str, ...], by: str, config: str | None) -> None:
    """Send events of some types to URL; prints the secret that signs them, once."""
    from patra.bus import webhook
    from patra.bus.consumer import parse_versions

    wanted = {t.partition("@")[0]: parse_versions(t.partition("@")[2] or ">=1", t) for t in types}
    with opened(config) as patra:
        bus, who = bus_in(patra), who_is(by)
        made = acted(patra, "bus.webhook.add", name, lambda tx: webhook.add(tx, bus, name, url, wanted, by=who), who)
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
