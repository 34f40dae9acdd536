"""`patra bus publish`, `tail`, `timeline`: events in, events followed, an event's story."""

from typing import TYPE_CHECKING, Any

import click

from patra.cli.bus.common import REFUSED, bus_in
from patra.cli.options import config_option, json_option, opened, show

if TYPE_CHECKING:
    from patra.bus.envelope import Envelope, Refused
    from patra.bus.publish import Outcome
    from patra.kernel.db import Tx

TAIL_EPILOG = """\b
Examples:
  patra bus tail
  patra bus tail --type job.failed --no-follow -n 50
  patra bus tail --json | jq .payload"""


@click.command(epilog="\b\nExamples:\n  patra bus publish event.json\n  cat events.jsonl | patra bus publish -")
@click.argument("file", type=click.File("rb"))
@config_option
@json_option
def publish(file: Any, config: str | None, as_json: bool) -> None:
    """Publish the envelopes of FILE (- for standard input): one, a list, or one a line; CloudEvents too."""
    from patra.app.bus import bus_of
    from patra.bus.envelope import Envelope, Refused
    from patra.bus.publish import Published
    from patra.kernel.errors import ConfigInvalid

    read = _envelopes(file.read())
    found = [one for _, one in read]
    with opened(config) as patra:
        bus = bus_in(patra)
        good = [one for one in found if isinstance(one, Envelope)]
        unread = [(seen, one) for seen, one in read if isinstance(one, Refused)]
        if broken := bus_of(patra).hindrance({one.event_type for one in good}):
            advice = "nothing was published; see `patra bus catalogue check --store` and bus.catalogue"
            raise ConfigInvalid(broken.code, str(broken), place="catalogue", advice=advice)

        def work(tx: "Tx") -> "list[Outcome]":
            bus.refuse(tx, unread)
            return bus.publish_many(tx, good)

        answered = iter(patra.db.run(work) if found else [])
        rows: list[dict[str, Any]] = []
        for one in found:
            match one if isinstance(one, Refused) else next(answered):
                case Published(event_id=event_id, duplicate=duplicate):
                    rows.append(
                        {"event_id": event_id, "result": "duplicate" if duplicate else "published", "detail": ""}
                    )
                case Refused(code=code, place=place, detail=detail):
                    event_id = one.event_id if isinstance(one, Envelope) else ""
                    told = f"{place}: {detail}" if place else detail
                    rows.append({"event_id": event_id, "result": code.value, "detail": told})
        show(rows, as_json=as_json)
        if any(row["result"] not in {"published", "duplicate"} for row in rows):
            raise SystemExit(REFUSED)


def _envelopes(body: bytes) -> "list[tuple[Envelope, Envelope | Refused]]":
    """What is legible of each, and the envelope or why it is none."""
    import msgspec

    from patra.bus.cloudevents import from_structured, legible_event
    from patra.bus.envelope import Refused, from_wire, legible
    from patra.bus.reasons import R

    def one(raw: Any) -> "tuple[Envelope, Envelope | Refused]":
        if isinstance(raw, dict) and "specversion" in raw:
            return legible_event(raw), from_structured(raw)
        return legible(raw), from_wire(raw)

    try:
        raw: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raw = []
        for number, line in enumerate(body.split(b"\n"), 1):
            try:
                raw += [msgspec.json.decode(line)] if line.strip() else []
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                detail = f"neither JSON nor JSON lines: {error}"
                return [(legible(None), Refused(code=R.ENVELOPE_MALFORMED, place=f"line {number}", detail=detail))]
    return [one(item) for item in (raw if isinstance(raw, list) else [raw])]  # pyright: ignore[reportUnknownVariableType]


@click.command(epilog=TAIL_EPILOG)
@click.option("--type", "event_type", default="", help="Only this event type.")
@click.option("--tenant", default="", help="Only events of this tenant.")
@click.option("--trace", default="", help="Only events of this trace.")
@click.option(
    "-n", "count", type=click.IntRange(0, 10_000), default=10, show_default=True, help="How many to begin with."
)
@click.option("--follow/--no-follow", default=True, help="Go on with what is published from now on.")
@config_option
@json_option
def tail(event_type: str, tenant: str, trace: str, count: int, follow: bool, config: str | None, as_json: bool) -> None:
    """Follow the log of events, one a line, as they are published."""
    from patra.bus.tailing import Tail

    with opened(config) as patra:
        if event_type and event_type not in bus_in(patra).catalogue.types:
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
    from patra.bus.envelope import decode_trusted
    from patra.kernel.clock import format_instant

    if as_json:
        click.echo(stored.body)
        return
    e = decode_trusted(stored.body)
    keys = " ".join(
        f"{k}={v}"
        for k, v in e.payload.items()
        if isinstance(v, (str, int)) and (k.endswith("_id") or k in {"stage", "status"})
    )
    at = format_instant(stored.published_at)
    name = click.style(f"{e.event_type} {e.event_version}", fg="red" if e.event_type.endswith("failed") else "cyan")
    click.echo(
        f"{at}  {name}  {click.style(e.producer, bold=True)}  "
        f"tenant={e.tenant_id} trace={e.trace_id} {keys}  {e.event_id}"
    )


@click.command()
@click.argument("key")
@config_option
@json_option
def timeline(key: str, config: str | None, as_json: bool) -> None:
    """What happened to an event, by event_id, trace_id or correlation_id; a refusal by its idempotency key, too."""
    from patra.bus.timeline import timeline as story
    from patra.kernel.clock import format_instant

    with opened(config) as patra:
        found = patra.db.read(lambda tx: story(tx, key))
        rows = [{"at": format_instant(e.at), "what": e.what, "event_id": e.event_id, "detail": e.detail} for e in found]
        show(rows, as_json=as_json)
