"""`patra bus dead-letters`, `replay`, `discard`, `freeze`, `thaw`: what failed, and what is done about it (C§6)."""

import sys
from typing import TYPE_CHECKING, Any

import click

from patra.cli.bus.common import REFUSED, act_audited, ask_confirmation, bus_in, by_option, who_is
from patra.cli.bus.one_dead_letter import print_letter, whole_letter
from patra.cli.terminal.options import config_option, json_option, open_patra, outcome_option, say_outcome, show

if TYPE_CHECKING:
    from patra.app.wiring import Patra
    from patra.bus.bus import Bus
    from patra.bus.consuming.dead_letter import Filter
    from patra.bus.store.deliveries import Retrying
    from patra.kernel.db import Tx

MAX_RETRYING_SHOWN = 10

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
            click.option("--error", "error_shape", default="", help="With this error, as --by-error shows it."),
            click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True),
        ]
    ):
        command = option(command)
    return command


def _wanted_filter(
    group_name: str, event_type: str, error_code: str, trace: str, error_shape: str, state: str = "open"
) -> "Filter":
    from patra.bus.consuming.dead_letter import DeadLetterState, Filter

    return Filter(
        group=group_name or None,
        event_type=event_type or None,
        error_code=error_code or None,
        trace_id=trace or None,
        error_shape=error_shape or None,
        state=None if state == "all" else DeadLetterState(state),
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
@click.option("--by-error", is_flag=True, help="Count dead letters by cause instead of listing them.")
@_filters
@config_option
@json_option
def dead_letters(
    event_id: str, state: str, group_name: str, by_error: bool, event_type: str, error_code: str, trace: str,
    error_shape: str, limit: int, config: str | None, as_json: bool,
) -> None:  # fmt: skip
    """List dead letters, or show one EVENT_ID whole: envelope, errors, and the payload compared with its schema and
    with the last event of its type that the group handled.
    """
    import msgspec

    from patra.bus import operations
    from patra.bus.consuming.dead_letter import error_place
    from patra.bus.store import dead_letters as store_letters
    from patra.kernel.clock import format_instant
    from patra.kernel.safety.redact import redact_text

    with open_patra(config) as patra:
        wanted = _wanted_filter(group_name, event_type, error_code, trace, error_shape, "all" if event_id else state)
        wanted = msgspec.structs.replace(wanted, event_id=event_id or None)
        if by_error:
            causes = patra.db.read(lambda tx: store_letters.by_error(tx, wanted, limit=limit))
            show([_cause(one) for one in causes], as_json=as_json)
            return
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
                    "error": redact_text(x.error_detail)[:80],
                    "at": error_place(x.traceback),
                    "last_failed_at": format_instant(x.last_failed_at),
                    "replays": x.replay_count,
                }
                for x in found
            ]
            show(rows, as_json=as_json)
            if state == "open" and not as_json:
                _tell_retrying(patra, group_name)
            return
        for letter in found:
            whole = whole_letter(patra, letter)
            if as_json or not sys.stdout.isatty():
                click.echo(msgspec.json.format(msgspec.json.encode(whole), indent=2).decode())
            else:
                print_letter(whole)
        if not found:
            click.echo(f"no dead letter of {event_id}", err=True)
            raise SystemExit(1)


def _cause(one: Any) -> dict[str, Any]:
    from patra.kernel.clock import format_instant

    return {
        "group": one.group,
        "type": one.event_type,
        "error_code": one.error_code,
        "error": one.error_shape,
        "letters": one.letters,
        "first_failed_at": format_instant(one.first_failed_at),
        "last_failed_at": format_instant(one.last_failed_at),
        "event_id": one.event_id,
    }


@click.command(epilog=REPLAY_EPILOG)
@click.argument("name")
@click.argument("event_ids", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every open dead letter of the group, up to --limit.")
@click.option("--confirm", default="", help="The name of the group once more, instead of being asked.")
@_filters
@by_option
@config_option
@outcome_option
def replay(
    name: str, event_ids: tuple[str, ...], everything: bool, confirm: str, event_type: str,
    error_code: str, trace: str, error_shape: str, limit: int, by: str, config: str | None,
) -> None:  # fmt: skip
    """Deliver dead letters to the group NAME again, with the same event_id and to no other group."""
    from patra.bus import operations

    if not event_ids and not everything and not (event_type or error_code or trace or error_shape):
        raise click.UsageError("name EVENT_IDS, a filter, or --all")
    if event_ids and (everything or event_type or error_code or trace or error_shape):
        raise click.UsageError("either EVENT_IDS, or a filter or --all: not both")
    with open_patra(config) as patra:
        bus, who = bus_in(patra), who_is(by)
        typed = confirm or ask_confirmation(f"Handlers of {name} will run again. Type the name of the group to confirm")

        def work(tx: "Tx") -> Any:
            if event_ids:
                return operations.replay(tx, bus, name, event_ids, by=who, confirm=typed)
            wanted = _wanted_filter(name, event_type, error_code, trace, error_shape)
            return operations.replay_found(tx, bus, wanted, by=who, confirm=typed, limit=limit)

        query = {"type": event_type, "error_code": error_code, "trace": trace, "error": error_shape}
        asked_for = {"event_ids": list(event_ids)} if event_ids else {k: v for k, v in query.items() if v}
        asked_for = asked_for or {"all": True}
        done = act_audited(patra, "bus.replay", name, work, who, **asked_for)
        if not event_ids and len(done.letters) == limit:
            click.echo(f"--limit {limit} is reached: there may be more", err=True)
        waits = ", and to no other group; handled while a consumer of the group runs" if done.letters else ""
        _print_result(done, f"given to {name} again{waits}", name, "replayed")
        if not event_ids and not done.letters:
            _tell_retrying(patra, name)


@click.command()
@click.argument("name")
@click.argument("event_ids", nargs=-1, required=True)
@click.option("--reason", required=True, help="Why; it is kept with the dead letter.")
@by_option
@config_option
@outcome_option
def discard(name: str, event_ids: tuple[str, ...], reason: str, by: str, config: str | None) -> None:
    """Set dead letters of the group NAME aside permanently, with a reason."""
    from patra.bus import operations

    with open_patra(config) as patra:
        bus, who = bus_in(patra), who_is(by)

        def work(tx: "Tx") -> Any:
            return operations.discard(tx, bus, name, event_ids, by=who, reason=reason)

        done = act_audited(patra, "bus.discard", name, work, who, event_ids=list(event_ids), reason=reason)
        _print_result(done, "discarded", name, "discarded")


def _print_result(done: Any, what: str, group_name: str, state: str) -> None:
    letters = [getattr(letter, "event_id", letter) for letter in done.letters]
    refusals = {letter: {"code": refused.code, "detail": refused.detail} for letter, refused in done.refused.items()}
    say_outcome(
        f"{len(letters)} dead letter{'' if len(letters) == 1 else 's'} {what}",
        group=group_name,
        state=state,
        event_ids=letters,
        refused=refusals,
    )
    for letter, refused in done.refused.items():
        click.echo(f"{letter}: {refused.code}: {refused.detail}", err=True)
    if done.refused:
        raise SystemExit(REFUSED)


def _tell_retrying(patra: "Patra", group_name: str) -> None:
    """Which events failed and are not dead letters yet, when they are tried next, and when they will be."""
    from patra.bus.store.deliveries import retrying

    found = patra.db.read(lambda tx: retrying(tx, group_name, MAX_RETRYING_SHOWN + 1))
    if not found:
        return
    bus = bus_in(patra)
    click.echo("still retried, not yet dead letters; an attempt needs a running consumer of the group:", err=True)
    for one in found[:MAX_RETRYING_SHOWN]:
        click.echo(f"  {_retrying_line(bus, one, patra.clock.now())}", err=True)
    if len(found) > MAX_RETRYING_SHOWN:
        click.echo("  … and more: `patra bus groups` counts them under failing", err=True)


def _retrying_line(bus: "Bus", one: "Retrying", now: int) -> str:
    from patra.bus.consuming.delivery_order import FAR_FUTURE
    from patra.bus.consuming.retry_or_dead_letter import dead_letter_by
    from patra.kernel.clock import SECOND, format_instant
    from patra.kernel.safety.redact import redact_text

    def at(instant: int) -> str:
        return format_instant(-(-instant // SECOND) * SECOND)

    kind = bus.catalogue.types.get(one.event_type)
    error = redact_text(one.error_detail or one.error_code)[:80]
    head = f"{one.group} {one.event_id} {one.event_type}: "
    failed = f"failed {'once' if one.failures == 1 else f'{one.failures} times'} ({error})"
    due = f"next attempt {at(one.due_at)}" if one.due_at > now else "next attempt when a consumer runs"
    due = "being tried now" if one.due_at >= FAR_FUTURE else due
    if kind is None:  # a contract that only the consumer's program has
        return f"{head}{failed}; {due}; a dead letter after the retries of its contract (by default five)"
    retry = kind.retry.of_error((one.error_code, one.error_detail.partition(":")[0]))
    if one.webhook or one.due_at >= FAR_FUTURE or one.failures > retry.max_retries:
        return f"{head}{failed}; {due}"
    dead = at(dead_letter_by(retry, one.failures, max(one.due_at, now)))
    of = f"attempt {one.failures} of {retry.max_retries + 1} failed ({error})"
    return f"{head}{of}; {due}, a dead letter about {dead} if all fail"


@click.command()
@click.argument("event_type", default="")
@click.option("--reason", default="", help="Why.")
@by_option
@config_option
@json_option
def freeze(event_type: str, reason: str, by: str, config: str | None, as_json: bool) -> None:
    """Freeze publishing of EVENT_TYPE; without one, list what is frozen and why."""
    from patra.bus import operations
    from patra.bus.store import dead_letters
    from patra.kernel.clock import format_instant

    with open_patra(config) as patra:
        bus, who = bus_in(patra), who_is(by)
        if event_type:
            act_audited(
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
            for f in patra.db.read(dead_letters.freezes)
        ]
        show(rows, as_json=as_json)


@click.command()
@click.argument("event_type")
@by_option
@config_option
@outcome_option
def thaw(event_type: str, by: str, config: str | None) -> None:
    """Lift a freeze of EVENT_TYPE."""
    from patra.bus import operations
    from patra.bus.store import dead_letters

    with open_patra(config) as patra:
        bus, who = bus_in(patra), who_is(by)
        was = any(one.event_type == event_type for one in patra.db.read(dead_letters.freezes))
        act_audited(patra, "bus.thaw", event_type, lambda tx: operations.thaw(tx, bus, event_type, by=who), who)
        said = "can be published again" if was else "was not frozen; it can be published"
        say_outcome(f"{event_type} {said}", type=event_type, frozen=False)
