"""`patra ingest …`: sources and their packs, plans, tasks, and what operators may do to them."""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from patra.cli.options import audited, config_option, json_option, opened, show, table

if TYPE_CHECKING:
    from patra.ingest.planner import Preview
    from patra.ingest.trigger import Trigger
    from patra.kernel.db import Tx

EPILOG = """\b
Examples:
  patra ingest pack check crossref.yaml          every problem, with its line
  patra ingest pack load crossref.yaml
  patra ingest plan crossref works --dry-run     the slices, nothing written
  patra ingest plan crossref works --operation BACKFILL --from 2024-01-01 --to 2024-02-01
  patra ingest plans; patra ingest lineage PLAN
  patra ingest pause crossref --why "maintenance at the provider" """

# Groups and commands in modules of their own, imported when they are asked for.
ELSEWHERE: dict[str, tuple[str, str]] = {
    "pack": ("patra.cli.ingest_pack:pack", "Start, check, load, show and compare source packs."),
    "spec": ("patra.cli.ingest_pack:spec", "Show the snapshot that a plan would get."),
    "packs": ("patra.cli.ingest_works:bundled", "List the packs that come with Patra, or print one."),
    "try": ("patra.cli.ingest_try:command", "Send one request of a pack and show what became of it."),
    "records": ("patra.cli.ingest_works:records", "Export records as they are stored."),
    "works": ("patra.cli.ingest_works:works", "Export records in the common shape, joined if you like."),
    "run": ("patra.cli.ingest_run:run", "Plan a window and work until nothing is left of it."),
    "alerts": ("patra.cli.ingest_running:alerts", "Show the alerts that fire."),
    "cursors": ("patra.cli.ingest_running:cursors", "Show every watermark."),
    "quarantine": ("patra.cli.ingest_running:quarantine", "Show records that could not be taken in, and why."),
    "errors": ("patra.cli.ingest_running:errors", "Show the latest failed batches and runs."),
    "blackbox": ("patra.cli.ingest_replay:blackbox", "Export the evidence of one batch."),
    "replay": ("patra.cli.ingest_replay:replay", "Do one batch again without any effect, and compare."),
    "pause": ("patra.cli.ingest_acts:pause", "Stop planning and running a source, or one of its endpoints."),
    "resume": ("patra.cli.ingest_acts:resume", "Let a paused source or endpoint go on."),
    "lift": ("patra.cli.ingest_acts:lift", "Lift the circuit breaker that a fatal error has set."),
    "cancel": ("patra.cli.ingest_acts:cancel", "Cancel a plan, a slice or a task."),
    "requeue": ("patra.cli.ingest_acts:requeue", "Let a failed task be tried again."),
    "signal": ("patra.cli.ingest_acts:signal", "Ask for records to be fetched again."),
}
OPERATIONS = ("HARVEST", "BACKFILL", "UPDATE")


class Lazy(click.Group):
    """The commands of this file, and those of others by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *ELSEWHERE])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in ELSEWHERE:
            module, _, attribute = ELSEWHERE[cmd_name][0].partition(":")
            return getattr(import_module(module), attribute)
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows: list[tuple[str, str]] = []
        for name in self.list_commands(ctx):
            command = super().get_command(ctx, name)
            rows.append((name, ELSEWHERE[name][1] if command is None else command.get_short_help_str(80)))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.group("ingest", cls=Lazy, epilog=EPILOG)
def group() -> None:
    """Harvest literature from providers, described by packs."""


def trigger_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What a trigger may say."""
    for option in (
        click.argument("endpoint"),
        click.argument("source"),
        click.option("--operation", type=click.Choice(OPERATIONS), default="HARVEST", show_default=True),
        click.option("--from", "since", metavar="WHEN", help="Start of the window: a date, an instant, or P7D ago."),
        click.option("--to", "until", metavar="WHEN", help="End of the window, not included."),
        click.option("--param", "params", multiple=True, metavar="NAME=VALUE", help="A parameter of the pack."),
        click.option(
            "--set", "settings", multiple=True, metavar="PATH=VALUE", help="Override, as retry.maxAttempts=3."
        ),
        click.option("--id", "ids", multiple=True, metavar="ID", help="UPDATE: this record; may be given many times."),
        click.option("--activity", metavar="NAME", help="BACKFILL, UPDATE: name of the campaign it belongs to."),
        click.option("--priority", type=click.IntRange(0, 999), help="The smaller runs first."),
        click.option("--job", default="", metavar="NAME", help="Name of the job that asks."),
    ):
        command = option(command)
    return command


def trigger_of(now: int, **said: Any) -> "Trigger":
    """The trigger that the options describe; exits with what is wrong with them."""
    from patra.ingest.codes import Operation
    from patra.ingest.trigger import Trigger

    return Trigger(
        source=said["source"],
        endpoint=said["endpoint"],
        operation=Operation(said["operation"]),
        since=instant_of(said["since"], "--from", now),
        until=instant_of(said["until"], "--to", now),
        params=params_of(said["params"]),
        sections=_sections(said["settings"]),
        ids=tuple(said["ids"]),
        activity=said["activity"],
        priority=said["priority"],
        job=said["job"],
    )


def instant_of(text: str | None, option: str, now: int) -> int | None:
    from patra.ingest.times import read_instant
    from patra.kernel.clock import parse_duration
    from patra.kernel.errors import Invalid

    if text is None:
        return None
    if text.startswith("P"):
        try:
            return now - parse_duration(text)
        except Invalid as error:
            raise click.BadParameter(str(error), param_hint=option) from None
    found = read_instant(text, ("ISO",))
    if found is None:
        raise click.BadParameter(f"{text!r} is no instant; write 2026-01-31 or 2026-01-31T12:00:00Z", param_hint=option)
    return found.at


def params_of(given: Sequence[str]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--param")
        out[name] = [*([out[name]] if isinstance(out[name], str) else out[name]), value] if name in out else value
    return out


def _sections(given: Sequence[str]) -> dict[str, Any]:
    from patra.ingest.document import read_value
    from patra.ingest.pack import Sections
    from patra.ingest.problem import Source

    tree: dict[str, Any] = {}
    for text in given:
        name, sign, value = text.partition("=")
        path = tuple(name.split("."))
        if not sign or not name:
            raise click.BadParameter(f"{text!r} is not PATH=VALUE", param_hint="--set")
        found, problems = read_value(value, Sections, path, Source())
        if problems:
            raise click.BadParameter("; ".join(str(problem) for problem in problems), param_hint="--set")
        at = tree
        for part in path[:-1]:
            at = at.setdefault(part, {})
        at[path[-1]] = found
    return tree


@group.command(epilog="\b\nExit code 1 when there was nothing to plan, 5 when the trigger was refused.")
@trigger_options
@click.option("--dry-run", is_flag=True, help="Show the slices; write nothing.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True, help="Slices to show.")
@config_option
@json_option
def plan(config: str | None, as_json: bool, dry_run: bool, limit: int, **said: Any) -> None:
    """Make a plan: cut a window, pages or records into slices, each with a task in the queue."""
    from patra.ingest.planner import Planner

    with opened(config) as patra:
        planner = Planner(patra.db, patra.clock)
        trigger = trigger_of(patra.clock.now(), **said)
        if dry_run:
            _show_preview(planner.preview(trigger, limit), as_json=as_json)
            return
        made = planner.trigger(trigger)
        subject = f"{trigger.source}/{trigger.endpoint}"
        audited(patra, "ingest.plan", subject, outcome=made.outcome.value, plan=made.plan_id)
        for problem in made.problems:
            click.echo(f"{problem.severity}: {problem}", err=True)
        show(made, as_json=True) if as_json else _show_made(made)
        if made.plan_id is None:
            raise click.exceptions.Exit(5 if made.schedule_instance_id else 1)


def _show_made(made: Any) -> None:
    if made.plan_id is None:
        click.echo(made.detail or made.outcome.text)
        return
    click.echo(
        f"plan {made.plan_id} is {made.status}, {made.slices} new slices{f'; {made.detail}' if made.detail else ''}"
    )


def _show_preview(preview: "Preview", *, as_json: bool) -> None:
    import msgspec

    from patra.kernel.clock import format_instant

    for problem in preview.problems:
        click.echo(f"{problem.severity}: {problem}", err=True)
    if preview.spec is None:
        click.echo(preview.detail or preview.outcome.text)
        raise click.exceptions.Exit(5 if preview.problems else 1)
    specs: list[dict[str, Any]] = [msgspec.json.decode(one.slice_spec) for one in preview.slices]
    if as_json:
        show(
            [{**spec, "signature": one.slice_signature_hash} for spec, one in zip(specs, preview.slices, strict=True)],
            as_json=True,
        )
        return
    if preview.window:
        click.echo(f"window {format_instant(preview.window.start)} … {format_instant(preview.window.end)}")
    rows: list[list[Any]] = []
    for number, (spec, one) in enumerate(zip(specs, preview.slices, strict=True), 1):
        bounds: dict[str, Any] = {k: v for k, v in next(iter(spec["bounds"].values())).items() if k != "ids"}
        first, last, *_ = [*bounds.values(), None]
        rows.append(
            [
                number,
                spec["dimension"],
                first,
                last,
                spec["telemetry"]["totalEstimated"],
                spec["budget"]["expectedRequests"],
                spec["telemetry"]["comment"],
                one.slice_signature_hash[:12],
            ]
        )
    table(["no", "by", "from", "to", "estimated", "requests", "comment", "signature"], rows)
    if preview.more:
        click.echo(f"… and more; --limit shows more than {len(rows)}")


def list_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--source", default="", help="Only this source."),
        click.option("--endpoint", default="", help="Only this endpoint."),
        click.option("--operation", default="", type=click.Choice(["", *OPERATIONS]), help="Only this operation."),
        click.option("--status", default="", help="Only this state."),
        click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True),
        config_option,
        json_option,
    ):
        command = option(command)
    return command


@group.command()
@list_options
def plans(config: str | None, as_json: bool, **wanted: Any) -> None:
    """List plans, the newest first."""
    from patra.ingest import views

    with opened(config) as patra:
        show(patra.db.read(lambda tx: views.plans(tx, views.Filter(**wanted))), as_json=as_json)


@group.command()
@click.option("--plan", "plan_id", default="", help="Only tasks of this plan.")
@list_options
def tasks(config: str | None, as_json: bool, **wanted: Any) -> None:
    """List tasks."""
    from patra.ingest import views

    with opened(config) as patra:
        show(patra.db.read(lambda tx: views.tasks(tx, views.Filter(**wanted))), as_json=as_json)


@group.command()
@click.option("--source", default="", help="Only this source.")
@config_option
@json_option
def queue(source: str, config: str | None, as_json: bool) -> None:
    """Count tasks by source, endpoint, operation and state."""
    from patra.ingest import views

    with opened(config) as patra:
        show(patra.db.read(lambda tx: views.queue(tx, source)), as_json=as_json)


@group.command()
@click.argument("plan_id", metavar="PLAN")
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True, help="Slices to show.")
@config_option
@json_option
def lineage(plan_id: str, limit: int, config: str | None, as_json: bool) -> None:
    """Show a plan from its trigger down to its tasks."""
    from patra.ingest import views

    with opened(config) as patra:
        found = patra.db.read(lambda tx: views.lineage(tx, plan_id, limit=limit))
    if as_json:
        show(found, as_json=True)
        return
    for title, part in (("trigger", found.schedule_instance), ("plan", found.plan)):
        click.echo(title)
        table(["", ""], [[name, value] for name, value in part.items()], header=False)
    click.echo(f"slices {found.slice_counts}  tasks {found.task_counts}")
    rows = [[s.slice, s.status, s.bounds, s.estimated, s.task_status, s.due, s.reason] for s in found.slices]
    table(["slice", "status", "bounds", "estimated", "task", "due", "reason"], rows)
    if found.more:
        click.echo(f"… and more; --limit shows more than {limit}")


@group.command()
@config_option
@json_option
def sources(config: str | None, as_json: bool) -> None:
    """List the sources whose packs are loaded."""
    from patra.ingest import shelf, store
    from patra.kernel.clock import format_instant

    def read(tx: "Tx") -> list[dict[str, Any]]:
        halts = store.halts(tx)
        return [
            {
                "source": row["provenance_code"],
                "title": row["provenance_name"],
                "version": row["pack_version"],
                "loaded": format_instant(row["updated_at"]),
                "endpoints": row["endpoints"],
                "schedules": row["schedules"],
                "state": ", ".join(
                    f"{h.kind.lower()}{f' {h.endpoint}' if h.endpoint else ''}"
                    for h in halts
                    if h.source == row["provenance_code"]
                )
                or ("enabled" if row["enabled"] else "disabled"),
            }
            for row in shelf.sources(tx)
        ]

    with opened(config) as patra:
        show(patra.db.read(read), as_json=as_json)


@group.command()
@config_option
@json_option
def schedules(config: str | None, as_json: bool) -> None:
    """List the schedules of all packs, when they fire next and what came of the last time."""
    from patra.ingest import store, views
    from patra.ingest.schedule import next_tick
    from patra.kernel.clock import format_instant

    with opened(config) as patra:
        found, ticks = patra.db.read(lambda tx: (store.schedules(tx), views.ticks(tx)))
        last = {row["job_id"]: row for row in ticks}
        rows = [
            {
                "job": entry.job,
                "endpoint": entry.schedule.endpoint,
                "operation": entry.schedule.operation.value,
                "cron": entry.schedule.cron,
                "next": format_instant(next_tick(entry.schedule.cron, patra.clock.now())),
                "last": last.get(entry.job, {}).get("last_tick"),
                "outcome": last.get(entry.job, {}).get("outcome_code"),
                "plan": last.get(entry.job, {}).get("plan_id"),
            }
            for entry in found
        ]
        show(rows, as_json=as_json)


@group.command()
@click.option("--source", default="", help="Only this source.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True)
@config_option
@json_option
def refused(source: str, limit: int, config: str | None, as_json: bool) -> None:
    """List triggers that made no plan, and what was missing."""
    from patra.ingest import views

    with opened(config) as patra:
        show(patra.db.read(lambda tx: views.refused(tx, source, limit)), as_json=as_json)
