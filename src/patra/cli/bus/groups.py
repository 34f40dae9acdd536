"""`patra bus groups`: the health of consumer groups; pause, resume, unsubscribe, forget."""

from typing import TYPE_CHECKING, Any

import click

from patra.cli.bus.common import act_audited, ask_confirmation, bus_in, by_option, who_is
from patra.cli.terminal.groups import Group
from patra.cli.terminal.options import config_option, json_option, open_patra, outcome_option, say_outcome, show

if TYPE_CHECKING:
    from patra.bus.bus import Bus


@click.group("groups", cls=Group, invoke_without_command=True)
@click.pass_context
@config_option
@json_option
def groups_(ctx: click.Context, config: str | None, as_json: bool) -> None:
    """Consumer groups: how far behind, what fails. Subcommands pause, resume, unsubscribe and forget."""
    if ctx.invoked_subcommand is not None:
        return
    from patra.bus import operations
    from patra.bus.store import groups
    from patra.kernel.clock import SECOND

    with open_patra(config) as patra:
        now = patra.clock.now()
        rows: list[dict[str, Any]] = []
        subscribed: set[str] = set()
        for g in patra.db.read(groups.totals):
            subscribed |= g.subscriptions.keys()
            lag = "" if g.oldest is None else f"{max(now - g.oldest, 0) / SECOND:.1f} s"
            wants = ", ".join(f"{t} {' | '.join(v)}" for t, v in g.subscriptions.items())
            rows.append(
                {"group": g.name, "state": g.state.value, "waiting": g.waiting, "lag": lag, "failing": g.failing,
                 "held": g.held, "dead": g.dead, "subscriptions": wants}
            )  # fmt: skip
        show(rows, as_json=as_json)
        bus = bus_in(patra)
        absent = patra.db.read(lambda tx: operations.absent_consumers(tx, bus))
        for name, types in _in_use(absent, subscribed, bus).items():
            click.echo(f"{name} has never subscribed; the catalogue lists it for {', '.join(types)}", err=True)


def _in_use(absent: dict[str, list[str]], subscribed: set[str], bus: "Bus") -> dict[str, list[str]]:
    """Of the consumers that are absent, those of types that are used here: by a group, or by contracts of your own."""
    from patra.bus.catalogue.catalogue import load

    if not absent:
        return {}
    used = subscribed | (bus.catalogue.types.keys() - load().types.keys())
    kept = {name: [kind for kind in types if kind in used] for name, types in absent.items()}
    return {name: types for name, types in kept.items() if types}


@groups_.command()
@click.argument("name")
@by_option
@config_option
@outcome_option
def pause(name: str, by: str, config: str | None) -> None:
    """Pause the delivery of events to a group; they wait."""
    from patra.bus import operations

    with open_patra(config) as patra:
        bus, who = bus_in(patra), who_is(by)
        changed = act_audited(patra, "bus.pause", name, lambda tx: operations.pause(tx, bus, name, by=who), who)
        text = f"{name} is paused" if changed else f"{name} was paused already"
        say_outcome(text, group=name, state="paused", changed=bool(changed))


@groups_.command()
@click.argument("name")
@by_option
@config_option
@outcome_option
def resume(name: str, by: str, config: str | None) -> None:
    """Resume the delivery of events to a group."""
    from patra.bus import operations

    with open_patra(config) as patra:
        bus, who = bus_in(patra), who_is(by)
        changed = act_audited(patra, "bus.resume", name, lambda tx: operations.resume(tx, bus, name, by=who), who)
        text = f"{name} is active" if changed else f"{name} was active already"
        say_outcome(text, group=name, state="active", changed=bool(changed))


@groups_.command()
@click.argument("name")
@click.argument("event_type")
@by_option
@config_option
@outcome_option
def unsubscribe(name: str, event_type: str, by: str, config: str | None) -> None:
    """Stop sending events of a type to a group."""
    from patra.bus import operations

    with open_patra(config) as patra:
        bus, who = bus_in(patra), who_is(by)
        gone = act_audited(
            patra,
            "bus.unsubscribe",
            name,
            lambda tx: operations.unsubscribe(tx, bus, name, event_type, by=who),
            who,
            type=event_type,
        )
        text = f"{name} gets no more {event_type}" if gone else f"{name} was not subscribed to {event_type}"
        say_outcome(text, group=name, type=event_type, changed=bool(gone))


@groups_.command()
@click.argument("name")
@click.option("--confirm", default="", help="The name of the group once more, instead of being asked.")
@by_option
@config_option
@outcome_option
def forget(name: str, confirm: str, by: str, config: str | None) -> None:
    """Remove a group and everything it had still to handle."""
    from patra.bus import operations

    with open_patra(config) as patra:
        bus, who = bus_in(patra), who_is(by)
        typed = confirm or ask_confirmation(f"Type the name of the group to forget it ({name})")
        waiting = act_audited(
            patra, "bus.forget", name, lambda tx: operations.forget(tx, bus, name, by=who, confirm=typed), who
        )
        text = f"{name} is removed, with {waiting} events that it had not handled"
        say_outcome(text, group=name, removed=True, unhandled=waiting)
