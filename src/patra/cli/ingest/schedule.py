"""`patra ingest schedule …`: which schedules there are, adding and changing some, on and off, running one now."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from patra.cli.ingest.group import OPERATIONS, params_of
from patra.cli.ingest.operations import act, topic_option, why_option
from patra.cli.terminal.groups import Group
from patra.cli.terminal.options import (
    config_option,
    json_option,
    json_wanted,
    open_patra,
    outcome_option,
    say_outcome,
    show,
    table,
    wide_wanted,
)
from patra.cli.terminal.wrapping import say

if TYPE_CHECKING:
    from patra.app.wiring import Patra
    from patra.ingest.planning.schedule import Scheduled, ScheduledExport

EPILOG = """\b
Examples:
  patra ingest schedule add crossref/nightly works --at 03:30 --timezone Europe/Berlin \\
      --param query=otters --topic otters --then export works --out otters.duckdb --dedupe
  patra ingest schedule list
  patra ingest schedule enable crossref/daily    fires for its latest tick at once, then as its cron says
  patra ingest schedule run crossref/daily       plan it now; `patra up` does the work
  patra ingest schedule run crossref/daily --work   plan it, do the work and export, without `patra up`
  patra ingest schedule history crossref/daily   the results of its ticks"""


@click.group(cls=Group, epilog=EPILOG)
def schedule() -> None:
    """List schedules, add, change and remove some, turn them on and off, run one now."""


@click.command("schedules")
@config_option
@json_option
def listing(config: str | None, *, as_json: bool) -> None:
    """List the schedules of all packs, also those that are off: when they fire next and the result of the last time."""
    _list(config, as_json=as_json)


@schedule.command("list")
@config_option
@json_option
def list_command(config: str | None, *, as_json: bool) -> None:
    """List the schedules of all packs, also those that are off: when they fire next and the result of the last time."""
    _list(config, as_json=as_json)


@schedule.command()
@click.argument("job", metavar="SOURCE/NAME")
@why_option
@config_option
@outcome_option
def enable(job: str, why: str, config: str | None) -> None:
    """Turn a schedule on, whatever its pack says."""
    from patra.ingest.planning import operations

    act(config, lambda tx, by, now: operations.switch_schedule(tx, job, enabled=True, by=by, why=why, now=now))


@schedule.command()
@click.argument("job", metavar="SOURCE/NAME")
@why_option
@config_option
@outcome_option
def disable(job: str, why: str, config: str | None) -> None:
    """Turn a schedule off, whatever its pack says."""
    from patra.ingest.planning import operations

    act(config, lambda tx, by, now: operations.switch_schedule(tx, job, enabled=False, by=by, why=why, now=now))


_SAID_OPTIONS = (
    click.argument("job", metavar="SOURCE/NAME"),
    click.argument("endpoint"),
    click.option("--cron", metavar="CRON", help="When: minute hour day month weekday, as '0 3 * * 1-5'."),
    click.option("--at", "daily_at", metavar="HH:MM", help="Every day at this time; short for --cron."),
    click.option("--timezone", default="UTC", show_default=True, metavar="ZONE", help="Zone of --cron and --at."),
    click.option("--jitter", default="PT0S", show_default=True, metavar="DURATION", help="Fire later by up to this."),
    click.option(
        "--missed",
        type=click.Choice(["once", "all", "none"]),
        default="once",
        show_default=True,
        help="Ticks while nothing ran or the source was paused: the latest stands for all, each is made up, "
        "or skipped.",
    ),
    click.option("--operation", type=click.Choice(OPERATIONS), default="HARVEST", show_default=True),
    click.option(
        "--last", metavar="DURATION", help="Read the last so much of time instead of what is new; BACKFILL needs it."
    ),
    click.option("--reread", is_flag=True, help="BACKFILL: read the whole of --last again each time."),
    click.option("--param", "params", multiple=True, metavar="NAME=VALUE", help="A parameter of the pack."),
    click.option("--priority", type=click.IntRange(0, 999), help="The smaller runs first."),
    topic_option(
        "Note what is found under this name; the file of --then holds only what schedules of the topic found."
    ),
    click.option(
        "--then",
        type=(click.Choice(["export"]), click.Choice(["works", "records"])),
        default=None,
        metavar="export works|records",
        help="When the plan of a tick is done, write this file again; needs --out.",
    ),
    click.option(
        "--out", type=click.Path(dir_okay=False, path_type=Path), help="--then: the file; it is replaced at once."
    ),
    click.option("--dedupe", is_flag=True, help="--then export works: join the same work across sources."),
    click.option("--source", "sources", multiple=True, help="--then: only of this source; may be given many times."),
)
"""What is said of a schedule, in the order of the help."""


def _said_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_SAID_OPTIONS):
        command = option(command)
    return command


@schedule.command()
@_said_options
@why_option
@config_option
@outcome_option
def add(job: str, why: str, config: str | None, **said: Any) -> None:
    """Add a schedule to those of the packs; it fires at once for its latest tick, then at its times."""
    from patra.ingest.planning import own_schedules

    entry = own_schedules.schedule_of(job, _schedule_fields(said), _export(said), said["topic"])
    act(config, lambda tx, by, now: own_schedules.add(tx, entry, by=by, now=now, why=why))


@schedule.command()
@_said_options
@why_option
@config_option
@outcome_option
def change(job: str, why: str, config: str | None, **said: Any) -> None:
    """Change a schedule that was added; an option that is left out gets its default. It stays on or off."""
    from patra.ingest.planning import own_schedules

    entry = own_schedules.schedule_of(job, _schedule_fields(said), _export(said), said["topic"])
    act(config, lambda tx, by, now: own_schedules.change(tx, entry, by=by, now=now, why=why))


@schedule.command()
@click.argument("job", metavar="SOURCE/NAME")
@why_option
@config_option
@outcome_option
def remove(job: str, why: str, config: str | None) -> None:
    """Remove a schedule that was added; what it planned stays."""
    from patra.ingest.planning import own_schedules

    act(config, lambda tx, _by, _now: own_schedules.remove(tx, job, why=why))


@schedule.command()
@click.argument("job", metavar="[SOURCE/NAME]", default="")
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True)
@config_option
@json_option
def history(job: str, limit: int, config: str | None, *, as_json: bool) -> None:
    """Show the results of the ticks of a schedule, or of all: plans, and files that were written.

    Windows, not records: `patra ingest records` and `patra ingest works` show those.
    """
    from patra.ingest.operations.reads import views
    from patra.ingest.planning import operations

    with open_patra(config) as patra:
        if job:
            patra.db.read(lambda tx: operations.known_schedule(tx, job))
        show(patra.db.read(lambda tx: views.schedule_history(tx, job, limit)), as_json=as_json)


@schedule.command(
    epilog="\b\nExit code 0 when something was planned, 1 when there was nothing to plan. With --work: 0 when\n"
    "nothing is left, also where there was nothing new; 1 when something is left or the file could not be\n"
    "written; 5 when it was refused."
)
@click.argument("job", metavar="SOURCE/NAME")
@click.option(
    "--work", is_flag=True, help="Also do the work and write the schedule's file; for cron and systemd timers."
)
@config_option
@outcome_option
def run(job: str, config: str | None, *, work: bool) -> int:
    """Plan what a schedule would plan, now; also one that is off."""
    from patra.ingest.planning import operations
    from patra.ingest.planning.schedule_run import run_schedule
    from patra.kernel.errors import count_phrase

    with open_patra(config) as patra:
        entry = patra.db.read(lambda tx: operations.known_schedule(tx, job))
        if work:
            return _work(patra, entry)
        made = run_schedule(patra.db, patra.clock, entry)
    what = f"plan {made.plan_id}, {count_phrase(made.slices, 'slice')}" if made.plan_id else made.detail
    text = "; ".join(filter(None, (f"{job}: {made.outcome.value}: {what}".rstrip(": "), made.note)))
    said = "; ".join(filter(None, (made.detail, made.note)))
    say_outcome(text, job=job, outcome=made.outcome.value, plan=made.plan_id, slices=made.slices, detail=said)
    return 0 if made.slices else 1


def _work(patra: "Patra", entry: "Scheduled") -> int:
    from patra.app.components.ingest import run_of
    from patra.cli.ingest.run import Lines, tell_drained
    from patra.ingest.planning.schedule import trigger_now
    from patra.ingest.works.scheduled_export import ScheduledExports

    tick = patra.clock.now()
    done = run_of(patra.ground).run(trigger_now(entry, tick), Lines(entry.job).show)
    code = tell_drained(done, as_json=json_wanted())
    if done.interrupted:
        return code
    left = len(done.left) + done.more
    written = ScheduledExports(patra.db, patra.clock).write_after_run(entry, done.planned, tick, failed=left)
    if written is None:
        return code
    status, detail = written
    click.echo(detail if status == "DONE" else f"{entry.job}: the file was not written: {detail}", err=json_wanted())
    return code if status == "DONE" else 1


def _schedule_fields(said: dict[str, Any]) -> dict[str, Any]:
    """The options in the words of the pack format."""
    names = ("endpoint", "operation", "timezone", "jitter", "last", "reread", "priority")
    found = {name: said[name] for name in names if said[name] is not None}
    return {**found, "cron": _cron(said), "missed": said["missed"].upper(), "params": params_of(said["params"])}


def _cron(said: dict[str, Any]) -> str:
    if (said["cron"] is None) == (said["daily_at"] is None):
        raise click.UsageError("say when: --cron CRON, or --at HH:MM for every day")
    if said["cron"] is not None:
        return said["cron"]
    hour, _, minute = said["daily_at"].partition(":")
    if not (hour.isdecimal() and minute.isdecimal() and int(hour) < 24 and int(minute) < 60):
        raise click.BadParameter(f"{said['daily_at']!r} is not a time; write 03:30", param_hint="--at")
    return f"{int(minute)} {int(hour)} * * *"


def _export(said: dict[str, Any]) -> "ScheduledExport | None":
    from patra.ingest.planning.schedule import ScheduledExport
    from patra.ingest.works.file_writers import format_of

    if said["then"] is None:
        if said["out"] is not None or said["dedupe"] or said["sources"]:
            raise click.UsageError("--out, --dedupe and --source belong to --then export works|records")
        return None
    what = said["then"][1]
    if said["out"] is None:
        raise click.UsageError("--then export needs a file: --out FILE")
    if said["dedupe"] and what == "records":
        raise click.UsageError("--dedupe joins works; records are exported as they came")
    format_of(said["out"], None)
    out = str(said["out"].absolute())
    dedupe, sources, topic = said["dedupe"], said["sources"], said["topic"]
    return ScheduledExport(what=what, out=out, dedupe=dedupe, sources=sources, topic=topic)


def _show_on(rows: list[dict[str, Any]]) -> None:
    """On a terminal: a row for each schedule that is on, and the names of the others, which packs bring."""
    on = [row for row in rows if row["on"] == "yes"]
    off = [row["job"] for row in rows if row["on"] != "yes"]
    names = ("job", "endpoint", "operation", "cron", "timezone", "next", "last tick", "outcome", "topic", "then")
    cells = [[row["last" if name == "last tick" else name] for name in names] for row in on]
    if on:
        table(names, [[*row[:-1], _short_then(row[-1])] for row in cells])
    elif not off:
        show([], as_json=False)
    if off:
        say(f"off: {', '.join(off)}; `patra ingest schedule enable JOB` turns one on, --wide lists them whole")


def _short_then(then: str | None) -> str | None:
    """A file below the folder that one is in is named from there."""
    here = f"{Path.cwd()}{os.sep}"
    return then.replace(f" to {here}", " to ") if then else None


def _list(config: str | None, *, as_json: bool) -> None:
    from patra.ingest.operations.reads import views

    with open_patra(config) as patra:
        now = patra.clock.now()
        rows = patra.db.read(lambda tx: views.schedules(tx, now))
    if as_json or wide_wanted() or not sys.stdout.isatty():
        show(rows, as_json=as_json)
    else:
        _show_on(rows)
    waiting = [row["job"] for row in rows if row["on"] == "yes" and row["last"] is None]
    if waiting and not as_json:
        click.echo(f"for the first time as soon as `patra up` runs: {', '.join(waiting)}", err=True)
