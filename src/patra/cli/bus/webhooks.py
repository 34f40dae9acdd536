"""`patra bus webhooks`: endpoints that events are sent to."""

from typing import TYPE_CHECKING

import click

from patra.cli.bus.common import act_audited, bus_in, by_option, who_is
from patra.cli.terminal.groups import Group
from patra.cli.terminal.options import (
    config_option,
    json_option,
    json_wanted,
    open_patra,
    outcome_option,
    say_outcome,
    show,
)

if TYPE_CHECKING:
    from patra.bus.catalogue.versions import VersionRange


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
@config_option
@json_option
def webhooks(ctx: click.Context, config: str | None, as_json: bool) -> None:
    """Endpoints that events are sent to, signed. Subcommands add and remove them, and change their secrets."""
    if ctx.invoked_subcommand is not None:
        return
    from patra.bus.store import groups
    from patra.bus.transports import webhook
    from patra.kernel.safety.redact import redact_url

    with open_patra(config) as patra:
        found, states = patra.db.read(lambda tx: (groups.webhooks(tx), groups.webhook_states(tx)))
        rows = [
            {"name": h.name, "url": redact_url(h.url), "group": webhook.group(h.name), "tenants": ", ".join(h.tenants),
             "last_success": _instant(states[h.name].last_success_at),
             "suspended": _instant(states[h.name].suspended_at), "reason": states[h.name].suspended_reason}
            for h in found
        ]  # fmt: skip
        show(rows, as_json=as_json)


def _instant(at: int | None) -> str:
    from patra.kernel.clock import format_instant

    return "" if at is None else format_instant(at)


def _parse_subscription(text: str) -> "tuple[str, VersionRange]":
    from patra.bus.catalogue.versions import parse_range

    event_type, _, versions = text.partition("@")
    if (wanted := parse_range(versions or ">=1")) is None:
        raise click.BadParameter(f"{text!r}: {versions!r} is not a range such as >=1,<2", param_hint="TYPE[@VERSIONS]")
    return event_type, wanted


@webhooks.command("add")
@click.argument("name")
@click.argument("url")
@click.argument("types", nargs=-1, required=True, metavar="TYPE[@VERSIONS]…")
@click.option("--tenant", "tenants", multiple=True, help="Only events of this tenant; may be repeated.")
@by_option
@config_option
@outcome_option
def add_webhook(
    name: str, url: str, types: tuple[str, ...], tenants: tuple[str, ...], by: str, config: str | None
) -> None:
    """Send events of some types to URL; prints the secret that signs them, once."""
    from patra.app.components.bus import bus_of
    from patra.bus.transports import webhook

    wanted = dict(map(_parse_subscription, types))
    if len(wanted) < len(types):
        raise click.UsageError("each TYPE stands once; a range such as @>=1,<3 takes several versions")
    with open_patra(config, create=True) as patra:
        bus, who, engine = bus_in(patra), who_is(by), bus_of(patra)
        keys, networks = engine.webhook_keys, engine.webhook_networks
        made = act_audited(
            patra,
            "bus.webhook.add",
            name,
            lambda tx: webhook.add(tx, bus, name, url, wanted, by=who, tenants=tenants, keys=keys, networks=networks),
            who,
            types={event_type: versions.text for event_type, versions in wanted.items()},
            **({"tenants": list(tenants)} if tenants else {}),
        )
        show({"group": webhook.group(name), "secret": made.secret}, as_json=json_wanted())
        click.echo("The receiver checks signatures with the secret, which is shown only now.", err=True)


@webhooks.command("rotate")
@click.argument("name")
@click.option(
    "--overlap", default="PT24H", show_default=True, metavar="DURATION", help="How long the old secret stays valid."
)
@by_option
@config_option
@outcome_option
def rotate_webhook(name: str, overlap: str, by: str, config: str | None) -> None:
    """Give an endpoint a new secret and print it, once; requests carry a signature of both for a while."""
    from patra.app.components.bus import bus_of
    from patra.bus.catalogue.reasons import Reason
    from patra.bus.publishing.envelope import Refused
    from patra.bus.transports import webhook
    from patra.kernel.clock import parse_duration
    from patra.kernel.errors import Invalid

    try:
        span = parse_duration(overlap)
    except Invalid as error:
        raise click.BadParameter(error.detail, param_hint="--overlap") from None
    with open_patra(config) as patra:
        bus, who, keys = bus_in(patra), who_is(by), bus_of(patra).webhook_keys
        unknown = Refused(code=Reason.GROUP_UNKNOWN, place="/name", detail=f"there is no webhook {name}")
        made = act_audited(
            patra,
            "bus.webhook.rotate",
            name,
            lambda tx: webhook.rotate(tx, bus, name, by=who, overlap=span, keys=keys) or unknown,
            who,
            overlap=overlap,
        )
        show({"secret": made}, as_json=json_wanted())
        click.echo("The receiver needs the new secret, which is shown only now.", err=True)


@webhooks.command("remove")
@click.argument("name")
@by_option
@config_option
@outcome_option
def remove_webhook(name: str, by: str, config: str | None) -> None:
    """Send nothing more to an endpoint."""
    from patra.bus.catalogue.reasons import Reason
    from patra.bus.publishing.envelope import Refused
    from patra.bus.transports import webhook

    with open_patra(config) as patra:
        bus, who = bus_in(patra), who_is(by)
        unknown = Refused(code=Reason.GROUP_UNKNOWN, place="/name", detail=f"there is no webhook {name}")
        act_audited(patra, "bus.webhook.remove", name, lambda tx: webhook.remove(tx, bus, name, by=who) or unknown, who)
        say_outcome(f"nothing more is sent to {name}", webhook=name, removed=True)
