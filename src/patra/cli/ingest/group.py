"""`patra ingest …`: sources and their packs, plans, tasks, and what operators may do to them."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from patra.cli.ingest import SECTIONS
from patra.cli.ingest.operations import topic_option
from patra.cli.terminal.groups import LazyGroup
from patra.cli.terminal.options import audit_act, config_option, json_option, open_patra, show, table
from patra.cli.terminal.wrapping import say

if TYPE_CHECKING:
    from patra.ingest.packs.problems import Problem
    from patra.ingest.planning.limits.cost import Cost
    from patra.ingest.planning.planner import Preview
    from patra.ingest.planning.trigger import Trigger
    from patra.kernel.db import Tx

EPILOG = """\b
Examples:
  patra ingest pack check crossref.yaml          every problem, with its line
  patra ingest pack load crossref.yaml
  patra ingest plan crossref works --dry-run     the slices, nothing written
  patra ingest plan crossref works --operation BACKFILL --from 2024-01-01 --to 2024-02-01
  patra ingest plans; patra ingest lineage PLAN
  patra ingest pause crossref --why "maintenance at the provider" """

ELSEWHERE: dict[str, tuple[str, str]] = {
    "pack": ("patra.cli.ingest.pack:pack", "Start, check, load, show and compare source packs."),
    "secret": ("patra.cli.ingest.secrets:secret", "Say which secrets the pack of a source may read."),
    "spec": ("patra.cli.ingest.pack:spec", "Show the settings that a plan would get, and where each comes from."),
    "packs": ("patra.cli.ingest.works:bundled", "List the packs that come with Patra, or print one."),
    "try": ("patra.cli.ingest.try_source:command", "Send one request of a pack and show what became of it."),
    "record": ("patra.cli.ingest.record:command", "Write the exchange with a provider down, without your secrets."),
    "records": ("patra.cli.ingest.works:records", "Export records as they are stored."),
    "works": ("patra.cli.ingest.works:works", "Export records in the common shape, joined if you like."),
    "run": ("patra.cli.ingest.run:run", "Plan a window and work until nothing is left of it."),
    "coverage": ("patra.cli.ingest.coverage:coverage", "Show which windows were read and whether they add up."),
    "reread": ("patra.cli.ingest.coverage:reread", "Read finished windows again, without moving the watermark."),
    "schedule": ("patra.cli.ingest.schedule:schedule", "Read every night: add schedules, list, change, run them."),
    "schedules": ("patra.cli.ingest.schedule:listing", "List the schedules of all packs."),
    "alerts": ("patra.cli.ingest.alerts:alerts", "Show the alerts that fire."),
    "acknowledge": ("patra.cli.ingest.alerts:acknowledge", "Acknowledge an alert."),
    "silence": ("patra.cli.ingest.alerts:silence", "Send no notifications of an alert for a while."),
    "end-silence": ("patra.cli.ingest.alerts:end_silence", "Send notifications of an alert again."),
    "cursors": ("patra.cli.ingest.lists:cursors", "List watermarks and the latest instant that was seen."),
    "cursor-timeline": ("patra.cli.ingest.lists:cursor_timeline", "List the events of a watermark."),
    "quarantine": ("patra.cli.ingest.lists:quarantine", "List records that could not be taken in, and why."),
    "dismiss": ("patra.cli.ingest.operations:dismiss", "Close records of the quarantine for good."),
    "errors": ("patra.cli.ingest.lists:errors", "List failed batches and runs."),
    "top-errors": ("patra.cli.ingest.lists:top_errors", "Count errors by source, endpoint, operation and reason."),
    "show": ("patra.cli.ingest.lists:show_one", "Show a task with its runs, a run with its batches, or a batch."),
    "windows": ("patra.cli.ingest.lists:windows", "Show the windows of a source on the axis of time, by state."),
    "rate": ("patra.cli.ingest.lists:rate", "Show what may be sent, what is sent, quotas and cool-downs."),
    "runs": ("patra.cli.ingest.lists:runs", "List runs of tasks."),
    "batches": ("patra.cli.ingest.lists:batches", "List batches of runs."),
    "signals": ("patra.cli.ingest.lists:signals", "List records that wait to be fetched again."),
    "refused": ("patra.cli.ingest.lists:refused", "List triggers that made no plan, and what was missing."),
    "history": ("patra.cli.ingest.history:history", "List history past its retention, and bring it back."),
    "blackbox": ("patra.cli.ingest.replay:blackbox", "Export the evidence of one batch."),
    "replay": ("patra.cli.ingest.replay:replay", "Repeat one batch without any effect, and compare."),
    "pause": ("patra.cli.ingest.operations:pause", "Stop planning and running a source, or one of its endpoints."),
    "resume": ("patra.cli.ingest.operations:resume", "Let a paused source or endpoint go on."),
    "lift": ("patra.cli.ingest.operations:lift", "Lift the circuit breaker that a fatal error has set."),
    "cancel": ("patra.cli.ingest.operations:cancel", "Cancel a plan, a slice or a task."),
    "requeue": ("patra.cli.ingest.operations:requeue", "Let failed tasks be tried again."),
    "signal": ("patra.cli.ingest.operations:signal", "Ask for records to be fetched again."),
}
OPERATIONS = ("HARVEST", "BACKFILL", "UPDATE")


class _IngestGroup(LazyGroup):
    elsewhere = ELSEWHERE
    sections = SECTIONS


@click.group("ingest", cls=_IngestGroup, epilog=EPILOG)
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
        topic_option("Note the records that are found under this name; `patra ingest works --topic` exports them."),
        click.option("--priority", type=click.IntRange(0, 999), help="The smaller runs first."),
        click.option("--job", default="", metavar="NAME", help="Name of the job that asks."),
    ):
        command = option(command)
    return command


def trigger_of(now: int, **said: Any) -> "Trigger":
    """The trigger that the options describe; exits with what is wrong with them."""
    from patra.ingest.planning.trigger import Trigger
    from patra.ingest.vocabulary.codes import Operation

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
        topic=said["topic"],
        priority=said["priority"],
        job=said["job"],
    )


def instant_of(text: str | None, option: str, now: int) -> int | None:
    from patra.ingest.vocabulary.instants import read_instant
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
        raise click.BadParameter(
            f"{text!r} is not an instant; write 2026-01-31 or 2026-01-31T12:00:00Z", param_hint=option
        )
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
    from patra.ingest.packs.problems import Source
    from patra.ingest.packs.schema import Sections
    from patra.ingest.packs.yaml.yaml_document import read_value

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
@click.option(
    "--dry-run", is_flag=True, help="Show the slices and what they will cost: requests, quota, time; write nothing."
)
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True, help="Slices to show.")
@config_option
@json_option
def plan(config: str | None, as_json: bool, dry_run: bool, limit: int, **said: Any) -> None:
    """Make a plan: cut a window, pages or records into slices, each with a task in the queue."""
    from patra.ingest.planning.planner import Planner

    with open_patra(config, create=not dry_run) as patra:
        planner = Planner(patra.db, patra.clock)
        trigger = trigger_of(patra.clock.now(), **said)
        if dry_run:
            _show_preview(planner.preview(trigger, limit), as_json=as_json)
            return
        made = planner.trigger(trigger)
        subject = f"{trigger.source}/{trigger.endpoint}"
        audit_act(patra, "ingest.plan", subject, outcome=made.outcome.value, plan=made.plan_id)
        report(made.problems, made.plan_id is None)
        show(made, as_json=True) if as_json else _show_made(made)
        if made.plan_id is None:
            raise click.exceptions.Exit(5 if made.is_refused else 1)


def report(problems: "Sequence[Problem]", refused: bool) -> None:
    """Why a trigger was refused, each reason once; warnings were shown when the pack was checked and loaded."""
    for problem in problems:
        if refused and problem.severity == "error":
            click.echo(f"{problem.severity}: {problem}", err=True)


def _show_made(made: Any) -> None:
    if made.plan_id is None:
        if not any(problem.severity == "error" for problem in made.problems):
            say(made.detail or made.outcome.text)
        return
    say(f"plan {made.plan_id} is {made.status}, {made.slices} new slices{f'; {made.detail}' if made.detail else ''}")
    if made.note:
        say(made.note)


def _show_preview(preview: "Preview", *, as_json: bool) -> None:
    import msgspec

    from patra.kernel.clock import format_instant

    report(preview.problems, preview.spec is None)
    if preview.spec is None:
        if not any(problem.severity == "error" for problem in preview.problems):
            say(preview.detail or preview.outcome.text)
        raise click.exceptions.Exit(5 if preview.is_refused else 1)
    specs: list[dict[str, Any]] = [msgspec.json.decode(one.slice_spec) for one in preview.slices]
    if as_json:
        slices = [
            {**spec, "signature": one.slice_signature_hash} for spec, one in zip(specs, preview.slices, strict=True)
        ]
        show({"cost": msgspec.to_builtins(preview.cost), "slices": slices, "more": preview.more}, as_json=True)
        return
    if preview.window:
        whole = f"window {format_instant(preview.window.start)} … {format_instant(preview.window.end)}"
        say(preview.note or whole)
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
                spec["telemetry"]["comment"].partition("budgetHint ")[0].strip(),  # the hint is for programs: --json
                one.slice_signature_hash[:12],
            ]
        )
    table(["no", "by", "from", "to", "estimated", "requests", "comment", "signature"], rows)
    if preview.more:
        click.echo(f"… and more; --limit shows more than {len(rows)}")
    if preview.cost is not None:
        say(_cost_line(preview.cost))


def _count_phrase(count: int, noun: str, *, more: bool = False) -> str:
    return f"{count:,}{' or more' if more else ''} {noun}{'' if count == 1 else 's'}"


def _cost_line(cost: "Cost") -> str:
    """What it will cost, in words."""
    minutes, seconds = divmod(cost.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    least = "" if cost.measured else "at least "
    records = "" if cost.records is None else f", about {cost.records:,} records"
    text = (
        f"{_count_phrase(cost.slices, 'slice', more=cost.more)}, {least}{_count_phrase(cost.requests, 'request')}"
        f"{records}; {least}{hours}:{minutes:02}:{seconds:02} at {cost.rate_per_sec:g} requests per second"
    )
    if cost.quota_left is not None:
        spread = f", spread over {cost.quota_periods} periods" if cost.quota_periods > 1 else ""
        text += f"; the quota has {cost.quota_left:,} left and {cost.permits:,} are needed{spread}"
    return text


def list_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--source", default="", help="Only this source."),
        click.option("--endpoint", default="", help="Only this endpoint."),
        click.option("--operation", default="", type=click.Choice(["", *OPERATIONS]), help="Only this operation."),
        click.option("--status", default="", help="Only this state."),
        click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True),
        click.option("--after", default="", help="Go on behind this place, as the last page named it."),
        config_option,
        json_option,
    ):
        command = option(command)
    return command


@group.command()
@list_options
def plans(config: str | None, as_json: bool, after: str, **wanted: Any) -> None:
    """List plans, the newest first."""
    from patra.ingest.operations.reads import views

    with open_patra(config) as patra:
        found = patra.db.read(lambda tx: views.plan_page(tx, views.Filter(**wanted), after))
    show(found.plans, as_json=as_json)
    _tell_next(found.next)


def _tell_next(place: str | None) -> None:
    if place is not None:
        click.echo(f"more: --after {place}", err=True)


@group.command()
@click.option("--plan", "plan_id", default="", help="Only tasks of this plan.")
@list_options
def tasks(config: str | None, as_json: bool, after: str, **wanted: Any) -> None:
    """List tasks."""
    from patra.ingest.operations.reads import views

    with open_patra(config) as patra:
        found = patra.db.read(lambda tx: views.task_page(tx, views.Filter(**wanted), after))
    show(found.tasks, as_json=as_json)
    _tell_next(found.next)


@group.command()
@click.option("--source", default="", help="Only this source.")
@click.option("--operation", default="", type=click.Choice(["", *OPERATIONS]), help="Only this operation.")
@config_option
@json_option
def queue(source: str, operation: str, config: str | None, as_json: bool) -> None:
    """Count tasks by source, endpoint, operation and state."""
    from patra.ingest.operations.reads import views

    with open_patra(config) as patra:
        show(patra.db.read(lambda tx: views.queue(tx, source, operation)), as_json=as_json)


@group.command()
@click.argument("plan_id", metavar="PLAN")
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True, help="Slices to show.")
@click.option("--after", default="", help="Go on behind this slice.")
@config_option
@json_option
def lineage(plan_id: str, limit: int, after: str, config: str | None, as_json: bool) -> None:
    """Show a plan from its trigger down to its batches (`--json` names each; `patra ingest batches` lists all)."""
    from patra.ingest.operations.reads import views

    with open_patra(config) as patra:
        found = patra.db.read(lambda tx: views.lineage(tx, plan_id, limit=limit, after=after))
    if as_json:
        show(found, as_json=True)
        return
    for title, part in (("trigger", found.schedule_instance), ("plan", found.plan)):
        click.echo(title)
        table(["", ""], [[name, value] for name, value in part.items()], header=False)
    say(f"slices {found.slice_counts}  tasks {found.task_counts}")
    rows = [
        [s.slice, s.status, s.bounds, s.estimated, s.task_status, len(s.runs), s.due, s.reason] for s in found.slices
    ]
    table(["slice", "status", "bounds", "estimated", "task", "runs", "due", "reason"], rows)
    if found.more:
        click.echo(f"more: --after {found.slices[-1].slice}", err=True)


@group.command()
@config_option
@json_option
def sources(config: str | None, as_json: bool) -> None:
    """List the sources whose packs are loaded."""
    from patra.ingest.packs import registry
    from patra.ingest.planning import store
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
            for row in registry.sources(tx)
        ]

    with open_patra(config) as patra:
        show(patra.db.read(read), as_json=as_json)
