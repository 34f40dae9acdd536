"""`patra bus dead-letters`, `replay`, `discard`, `freeze`, `thaw`: what failed, and what is done about it (C§6)."""

from typing import TYPE_CHECKING, Any

import click

from patra.cli.bus.common import REFUSED, acted, bus_in, by_option, confirmed, who_is
from patra.cli.options import config_option, json_option, opened, show

if TYPE_CHECKING:
    from patra.bus.deadletter import Filter
    from patra.kernel.db import Tx

REPLAY_EPILOG = """\b
Examples:
  patra bus replay composer 0190a1b2-...
  patra bus replay composer --type job.succeeded --confirm composer"""


def _filters(command: Any) -> Any:
    for option in reversed(
        [
            click.option("--type", "event_type", default="", help="Of this event type."),
            click.option("--error-code", default="", help="With this error code."),
            click.option("--trace", default="", help="Of this trace."),
            click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True),
        ]
    ):
        command = option(command)
    return command


def _wanted(group_name: str, event_type: str, error_code: str, trace: str, state: str = "open") -> "Filter":
    from patra.bus.deadletter import Filter, L

    return Filter(
        group=group_name or None,
        event_type=event_type or None,
        error_code=error_code or None,
        trace_id=trace or None,
        state=None if state == "all" else L(state),
    )


@click.command("dead-letters")
@click.argument("event_id", default="")
@click.option(
    "--state",
    type=click.Choice(["open", "replaying", "replayed", "discarded", "all"]),
    default="open",
    show_default=True,
)
@click.option("--group", "group_name", default="", help="Of this consumer group.")
@_filters
@config_option
@json_option
def dead_letters(
    event_id: str, state: str, group_name: str, event_type: str, error_code: str, trace: str, limit: int,
    config: str | None, as_json: bool,
) -> None:  # fmt: skip
    """List dead letters, or show one EVENT_ID whole: envelope, errors, and the payload held against its schema."""
    import msgspec

    from patra.bus import operations
    from patra.bus.deadletter import violations
    from patra.kernel.clock import format_instant

    with opened(config) as patra:
        wanted = _wanted(group_name, event_type, error_code, trace, "all" if event_id else state)
        wanted = msgspec.structs.replace(wanted, event_id=event_id or None)
        found = patra.db.read(lambda tx: operations.find_letters(tx, wanted, limit=limit))
        if not event_id:
            rows = [
                {
                    "group": x.group,
                    "event_id": x.event_id,
                    "type": x.event_type,
                    "state": x.state.value,
                    "attempts": x.attempts,
                    "error_code": x.error_code,
                    "error": x.error_detail[:80],
                    "last_failed_at": format_instant(x.last_failed_at),
                    "replays": x.replay_count,
                }
                for x in found
            ]
            show(rows, as_json=as_json)
            return
        for letter in found:
            fields: dict[str, Any] = msgspec.to_builtins(letter)
            told = {k: format_instant(v) if k.endswith("_at") and v is not None else v for k, v in fields.items()}
            whole = {
                **told,
                "envelope": msgspec.json.decode(letter.envelope),
                "violations": [msgspec.to_builtins(v) for v in violations(bus_in(patra).catalogue, letter)],
            }
            click.echo(msgspec.json.format(msgspec.json.encode(whole), indent=2).decode())
        if not found:
            click.echo(f"no dead letter of {event_id}", err=True)
            raise SystemExit(1)


@click.command(epilog=REPLAY_EPILOG)
@click.argument("name")
@click.argument("event_ids", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every open dead letter of the group, up to --limit.")
@click.option("--confirm", default="", help="The name of the group once more, instead of being asked.")
@_filters
@by_option
@config_option
def replay(
    name: str, event_ids: tuple[str, ...], everything: bool, confirm: str, event_type: str,
    error_code: str, trace: str, limit: int, by: str, config: str | None,
) -> None:  # fmt: skip
    """Send dead letters to the group NAME once more, past its inbox, with the same event_id."""
    from patra.bus import operations

    if not event_ids and not everything and not (event_type or error_code or trace):
        raise click.UsageError("name EVENT_IDS, a filter, or --all")
    if event_ids and (everything or event_type or error_code or trace):
        raise click.UsageError("either EVENT_IDS, or a filter or --all: not both")
    with opened(config) as patra:
        bus, who = bus_in(patra), who_is(by)
        typed = confirm or confirmed(f"Handlers of {name} will run again. Type the name of the group to confirm")

        def work(tx: "Tx") -> Any:
            if event_ids:
                return operations.replay(tx, bus, name, event_ids, by=who, confirm=typed)
            wanted = _wanted(name, event_type, error_code, trace)
            return operations.replay_found(tx, bus, wanted, by=who, confirm=typed, limit=limit)

        query = {"type": event_type, "error_code": error_code, "trace": trace}
        asked_for = {"event_ids": list(event_ids)} if event_ids else {k: v for k, v in query.items() if v}
        asked_for = asked_for or {"all": True}
        done = acted(patra, "bus.replay", name, work, who, **asked_for)
        if not event_ids and len(done.letters) == limit:
            click.echo(f"--limit {limit} is reached: there may be more", err=True)
        _told(done, f"replayed to {name} only, past its inbox")


@click.command()
@click.argument("name")
@click.argument("event_ids", nargs=-1, required=True)
@click.option("--reason", required=True, help="Why; it is kept with the letter.")
@by_option
@config_option
def discard(name: str, event_ids: tuple[str, ...], reason: str, by: str, config: str | None) -> None:
    """Set dead letters of the group NAME aside for good, with a reason."""
    from patra.bus import operations

    with opened(config) as patra:
        bus, who = bus_in(patra), who_is(by)

        def work(tx: "Tx") -> Any:
            return operations.discard(tx, bus, name, event_ids, by=who, reason=reason)

        _told(acted(patra, "bus.discard", name, work, who, event_ids=list(event_ids), reason=reason), "discarded")


def _told(done: Any, what: str) -> None:
    click.echo(f"{len(done.letters)} {what}")
    for letter, refused in done.refused.items():
        click.echo(f"{letter}: {refused.code}: {refused.detail}", err=True)
    if done.refused:
        raise SystemExit(REFUSED)


@click.command()
@click.argument("event_type", default="")
@click.option("--reason", default="", help="Why.")
@by_option
@config_option
@json_option
def freeze(event_type: str, reason: str, by: str, config: str | None, as_json: bool) -> None:
    """Freeze publishing of EVENT_TYPE; without one, list what is frozen and why."""
    from patra.bus import operations
    from patra.bus.store import letters
    from patra.kernel.clock import format_instant

    with opened(config) as patra:
        bus, who = bus_in(patra), who_is(by)
        if event_type:
            acted(
                patra,
                "bus.freeze",
                event_type,
                lambda tx: operations.freeze(tx, bus, event_type, by=who, reason=reason),
                who,
                reason=reason,
            )
        rows = [
            {
                "type": f.event_type,
                "state": f.state.value,
                "since": format_instant(f.since),
                "reason": f.reason,
                "by": f.by,
            }
            for f in patra.db.read(letters.freezes)
        ]
        show(rows, as_json=as_json)


@click.command()
@click.argument("event_type")
@by_option
@config_option
def thaw(event_type: str, by: str, config: str | None) -> None:
    """Lift a freeze of EVENT_TYPE."""
    from patra.bus import operations

    with opened(config) as patra:
        bus, who = bus_in(patra), who_is(by)
        acted(patra, "bus.thaw", event_type, lambda tx: operations.thaw(tx, bus, event_type, by=who), who)
        click.echo(f"{event_type} can be published again")
