"""`patra bus publish`, `tail`, `timeline`: events in, events followed, an event's story."""

import shutil
import sys
from typing import TYPE_CHECKING, Any

import click

from patra.cli.bus.common import REFUSED, bus_in
from patra.cli.bus.timeline_lines import print_timeline
from patra.cli.terminal.options import config_option, json_option, open_patra, show, wide_wanted
from patra.cli.terminal.tables import Styled
from patra.kernel.safety.untrusted_text import without_controls

if TYPE_CHECKING:
    from patra.bus.publishing.envelope import Envelope, Refused
    from patra.bus.publishing.foreign_cloudevents import Completion
    from patra.bus.publishing.publish import Outcome
    from patra.bus.publishing.submission import Submission
    from patra.kernel.db import Tx

PUBLISH_EPILOG = """\b
Examples:
  patra bus publish event.json
  cat events.jsonl | patra bus publish -
  patra bus publish --sample task.submitted | patra bus publish -"""

TAIL_EPILOG = """\b
Examples:
  patra bus tail
  patra bus tail --type job.failed --no-follow --limit 50
  patra bus tail --json | jq .payload"""


@click.command(epilog=PUBLISH_EPILOG)
@click.argument("file", type=click.File("rb"), required=False)
@click.option("--sample", default="", metavar="TYPE", help="Print an envelope of TYPE, publish nothing.")
@click.option(
    "--as", "name", default="", metavar="NAME", help="Publish as this one of `bus.publishers`, and be bound by it."
)
@click.option(
    "--deliver-at", default="", metavar="TIME", help="No group handles the events before this time (RFC 3339)."
)
@config_option
@json_option
def publish(file: Any, sample: str, name: str, deliver_at: str, config: str | None, as_json: bool) -> None:
    """Publish the envelopes of FILE (- for standard input): one, a list, or one per line; CloudEvents too.

    Without --as the events are published by your account (`cli:NAME`), which holds the store and may publish anything.
    """
    from functools import partial

    from patra.app.access.actor import Actor, Role, command_line_actor
    from patra.app.components.bus import bus_of, completion_for, publisher_for
    from patra.bus.publishing.envelope import Envelope, Refused
    from patra.bus.publishing.publish import Published, objections
    from patra.bus.publishing.submission import Submission
    from patra.kernel.clock import SystemClock
    from patra.kernel.errors import ConfigInvalid

    if sample:
        click.echo(_sample(sample, config))
        return
    if file is None:
        raise click.UsageError("say which FILE to publish (- for standard input), or --sample TYPE")
    body = file.read()
    with open_patra(config, create=True) as patra:
        bus = bus_in(patra)
        who = publisher_for(patra, Actor(name=name, role=Role.PUBLISHER) if name else command_line_actor())
        if who is None:
            raise click.BadParameter(f"{name} is not one of bus.publishers", param_hint="--as")
        submission = Submission(SystemClock().now(), partial(objections, bus.catalogue))
        read = _envelopes(body, submission, completion_for(patra, who))
        if deliver_at:
            read = [(_later(seen, deliver_at), _later(one, deliver_at)) for seen, one in read]
        found = [one for _, one in read]
        good = [one for one in found if isinstance(one, Envelope)]
        unread = [(seen, one) for seen, one in read if isinstance(one, Refused)]
        if broken := bus_of(patra).hindrance({one.event_type for one in good}):
            advice = "nothing was published; see `patra bus catalogue check --store` and bus.catalogue"
            raise ConfigInvalid(broken.code, str(broken), place="catalogue", advice=advice)

        def work(tx: "Tx") -> "list[Outcome]":
            bus.refuse(tx, unread, by=who.name)
            return bus.publish_many(tx, good, publisher=who)

        answered = iter(patra.db.run(work) if found else [])
        rows: list[dict[str, Any]] = []
        for one in found:
            match one if isinstance(one, Refused) else next(answered):
                case Published(event_id=event_id, duplicate=duplicate):
                    rows.append(
                        {"event_id": event_id, "result": "duplicate" if duplicate else "published", "detail": ""}
                    )
                case Refused(code=code, place=place, detail=detail, others=others):
                    event_id = one.event_id if isinstance(one, Envelope) else ""
                    told = f"{place}: {detail}" if place else detail
                    told = "; ".join([told, *(f"{other.place}: {other.detail}" for other in others)])
                    rows.append({"event_id": event_id, "result": code.value, "detail": told})
        show(rows, as_json=as_json)
        if any(row["result"] not in {"published", "duplicate"} for row in rows):
            raise SystemExit(REFUSED)


def _later(one: Any, deliver_at: str) -> Any:
    import msgspec

    from patra.bus.publishing.envelope import DELIVER_AT, Envelope
    from patra.kernel.clock import parse_instant

    if parse_instant(deliver_at) is None:
        raise click.BadParameter("no time such as 2026-01-31T08:00:00Z", param_hint="--deliver-at")
    if not isinstance(one, Envelope):
        return one
    return msgspec.structs.replace(one, extensions={**one.extensions, DELIVER_AT: deliver_at})


def _sample(event_type: str, config: str | None) -> str:
    """An envelope with the example of a contract as its payload; what may be left out is left out.

    One for each major version in use, which are published together: they are one event.
    """
    from pathlib import Path

    import msgspec

    from patra.bus.catalogue.catalogue import load
    from patra.cli.terminal.options import load_settings
    from patra.kernel.ids import new_id

    kind = load([Path(one) for one in load_settings(config).settings.bus.catalogue]).types.get(event_type)
    if kind is None:
        raise click.BadParameter(f"the catalogue has no {event_type}; see `patra bus catalogue`", param_hint="--sample")
    if not kind.live:
        raise click.BadParameter(f"every version of {event_type} is retired", param_hint="--sample")
    key = new_id()
    made = [
        {
            "event_type": event_type,
            "event_version": str(contract.version),
            "producer": kind.producer,
            "tenant_id": "example",
            "project_id": "example",
            "idempotency_key": key,
            "payload": contract.examples[0],
        }
        for contract in (kind.contracts[major] for major in sorted(kind.live))
    ]
    return msgspec.json.format(msgspec.json.encode(made if len(made) > 1 else made[0]), indent=2).decode()


def _envelopes(
    body: bytes, submission: "Submission", complete: "Completion"
) -> "list[tuple[Envelope, Envelope | Refused]]":
    """What is legible of each, and the envelope or why it is none."""
    from patra.bus.catalogue.reasons import Reason
    from patra.bus.publishing.cloudevents import from_structured, legible_event
    from patra.bus.publishing.envelope import Refused, from_wire, legible
    from patra.bus.publishing.json_text import UNREADABLE, decode_json

    def one(raw: Any) -> "tuple[Envelope, Envelope | Refused]":
        if isinstance(raw, dict) and "specversion" in raw:
            return legible_event(raw), from_structured(raw, submission, complete)
        return legible(raw), from_wire(raw, submission)

    try:
        raw: Any = decode_json(body)
    except UNREADABLE:
        raw = []
        for number, line in enumerate(body.split(b"\n"), 1):
            try:
                raw += [decode_json(line)] if line.strip() else []
            except UNREADABLE as error:
                detail = f"neither JSON nor JSON lines: {error}"
                return [(legible(None), Refused(code=Reason.ENVELOPE_MALFORMED, place=f"line {number}", detail=detail))]
    return [one(item) for item in (raw if isinstance(raw, list) else [raw])]  # pyright: ignore[reportUnknownVariableType]


@click.command(epilog=TAIL_EPILOG)
@click.option("--type", "event_type", default="", help="Only this event type.")
@click.option("--tenant", default="", help="Only events of this tenant.")
@click.option("--trace", default="", help="Only events of this trace.")
@click.option(
    "-n",
    "--limit",
    "count",
    type=click.IntRange(0, 10_000),
    default=10,
    show_default=True,
    help="How many to begin with.",
)
@click.option("--follow/--no-follow", default=True, help="Go on with what is published from now on.")
@config_option
@json_option
def tail(event_type: str, tenant: str, trace: str, count: int, follow: bool, config: str | None, as_json: bool) -> None:
    """Follow the log of events, one per line, as they are published."""
    from patra.bus.tail import Tail

    with open_patra(config) as patra:
        bus = bus_in(patra)
        known = bus.catalogue.types.keys() | patra.db.read(bus.registered_elsewhere).types.keys()
        if event_type and event_type not in known:
            click.echo(f"the catalogue has no {event_type}; `patra bus catalogue` lists the types", err=True)
        following = Tail(patra.db, event_type=event_type, tenant_id=tenant, trace_id=trace)
        try:
            for stored in following.begin(count):
                _line(stored, as_json=as_json)
            while follow:
                for stored in following.more(1.0):
                    _line(stored, as_json=as_json)
        except KeyboardInterrupt:
            pass
        finally:
            following.close()


def _line(stored: Any, *, as_json: bool) -> None:
    from patra.bus.publishing.envelope import decode_trusted
    from patra.kernel.clock import format_instant

    if as_json:
        click.echo(stored.body)
        return
    e = decode_trusted(stored.body)
    keys = " ".join(
        without_controls(f"{k}={v}")
        for k, v in e.payload.items()
        if isinstance(v, (str, int)) and (k.endswith("_id") or k in {"stage", "status"})
    )
    at = format_instant(stored.published_at)
    name = click.style(f"{e.event_type} {e.event_version}", fg="red" if e.event_type.endswith("failed") else "cyan")
    head = (
        f"{at}  {name}  {click.style(without_controls(e.producer), bold=True)}  tenant={without_controls(e.tenant_id)}"
    )
    line = f"{head} trace={without_controls(e.trace_id)} {keys}  {e.event_id}"
    if sys.stdout.isatty() and len(click.unstyle(line)) > shutil.get_terminal_size().columns:
        line = f"{head}\n  {e.event_id} {keys}".rstrip()  # --json has the trace
    click.echo(Styled(line))


@click.command()
@click.argument("key")
@config_option
@json_option
def timeline(key: str, config: str | None, as_json: bool) -> None:
    """What happened to an event, by event_id, trace_id or correlation_id; a refusal by its idempotency key, too."""
    from patra.bus.timeline import timeline as story
    from patra.kernel.clock import format_instant

    with open_patra(config) as patra:
        found = patra.db.read(lambda tx: story(tx, key))
        rows = [{"at": format_instant(e.at), "what": e.what, "event_id": e.event_id, "detail": e.detail} for e in found]
        if found and not as_json and not wide_wanted() and sys.stdout.isatty():
            print_timeline(found)
        else:
            show(rows, as_json=as_json)
