"""`patra ingest runs|batches|quarantine|cursors|…`: the lists of the running side, the same as over HTTP (ch. 14.7)."""

from collections.abc import Callable
from typing import Any

import click

from patra.cli.terminal.options import AtLeast, config_option, json_option, open_patra, show
from patra.ingest.operations.reads.read_models import FILTER_TEXTS, READ_MODELS, read_list

POSITIONAL = frozenset({"cursors", "quarantine", "errors", "refused", "signals"})
"""Lists whose source may be named without an option."""
TITLES = {
    "provenance_code": "source",
    "endpoint_name": "endpoint",
    "operation_code": "operation",
    "status_code": "status",
    "reason_code": "reason",
    "outcome_code": "outcome",
    "phase_code": "leg",
    "error_level": "level",
    "namespace_key": "namespace",
    "cursor_value": "watermark",
    "observed_max_value": "latest seen",
    "plan_id": "plan",
    "task_id": "task",
    "run_id": "run",
    "batch_id": "batch",
    "batch_no": "batch",
    "item_key": "record",
    "provider_id": "record",
    "field_path": "field",
    "window_from": "from",
    "window_to": "to",
    "scheduled_at": "scheduled",
    "created_at": "created",
    "updated_at": "updated",
    "started_at": "started",
    "finished_at": "finished",
    "seen_count": "seen",
    "last_seen_at": "last seen",
    "raised_by": "raised by",
    "raised_at": "raised",
    "triggered_at": "triggered",
    "event_time": "when",
    "prev_value": "before",
    "new_value": "after",
    "rate_key": "limit",
    "wait_ms": "waited (ms)",
    "demoted": "slowed down",
    "last_at": "last",
}
"""Headings on a terminal of the columns that the store has; a pipe and JSON keep their names."""
OPTION_TEXTS = {**FILTER_TEXTS, "since": "From this instant on.", "until": "Before this instant."}


def _command(name: str) -> click.Command:
    model = READ_MODELS[name]

    def run(config: str | None, *, as_json: bool, limit: int, after: str, named: str = "", **wanted: str) -> None:
        if named:
            wanted["source"] = named
        asked: dict[str, Any] = {
            key: instant(value) if key in ("since", "until") else value for key, value in wanted.items()
        }
        with open_patra(config) as patra:
            found = patra.db.read(lambda tx: read_list(tx, name, asked, limit=limit, after=after))
        if as_json:
            show(found.rows, as_json=True)
        else:
            show([{key: row[key] for key in model.shown} for row in found.rows], as_json=False, titles=TITLES)
        if found.next is not None:
            click.echo(f"more: --after {found.next}", err=True)

    run.__doc__ = model.summary
    command: Callable[..., Any] = json_option(config_option(run))
    command = click.option("--after", default="", help="Go on behind this place, as the last page named it.")(command)
    limits = click.IntRange(1, 10_000)
    command = click.option("--limit", type=limits, default=50, show_default=True, help="Rows to show.")(command)
    for one in reversed(list(model.listing.filters)):
        default = "OPEN" if (name, one) == ("quarantine", "status") else ""
        command = click.option(f"--{one}", default=default, show_default=bool(default), help=OPTION_TEXTS[one])(command)
    if name in POSITIONAL:
        command = click.argument("named", metavar="[SOURCE]", default="")(command)
    return click.command(name)(command)


def instant(text: str) -> int | None:
    """An instant of the command line; raises where it is none."""
    from patra.kernel.clock import parse_instant

    if not text:
        return None
    found = parse_instant(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is not an instant; write 2026-01-31T00:00:00Z")
    return found


runs = _command("runs")
batches = _command("batches")
quarantine = _command("quarantine")
cursors = _command("cursors")
cursor_timeline = _command("cursor-timeline")
errors = _command("errors")
signals = _command("signals")
refused = _command("refused")


@click.command(
    "show",
    epilog="\b\nExamples:\n  patra ingest show p1f….t000003          the task with its runs\n"
    "  patra ingest show p1f….t000003.r1       the run with its batches\n"
    "  patra ingest show p1f….t000003.r1/4     what was asked and answered, what it changed",
)
@click.argument("key", metavar="TASK|RUN|RUN/BATCH")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="Batches of a run to show.")
@click.option("--after", type=AtLeast(0, 2**31), default=0, help="Go on behind this batch of a run.")
@config_option
def show_one(key: str, limit: int, after: int, config: str | None) -> int:
    """Show a task with its runs, a run with its batches, or a batch with its exchange, as JSON."""
    from patra.ingest.operations.reads import blackbox, drilldown

    name, _, number = key.partition("/")
    with open_patra(config) as patra:
        if number.isdecimal() and len(number) < 10:
            found = blackbox.display_batch(patra.db, name, int(number))
        else:
            found = patra.db.read(lambda tx: drilldown.task(tx, key)) or patra.db.read(
                lambda tx: drilldown.run(tx, key, after=after, limit=limit)
            )
    if found is None:
        click.echo(f"there is no task, run or batch {key}; it may have been purged", err=True)
        return 1
    show(found, as_json=True)
    return 0


@click.command("windows")
@click.argument("source")
@click.option("--since", default="", help="From this instant on; 30 days ago if it is not said.")
@click.option("--until", default="", help="Before this instant; now if it is not said.")
@config_option
@json_option
def windows(source: str, since: str, until: str, config: str | None, *, as_json: bool) -> None:
    """Show the windows of a source on the axis of time, by state.

    Many of them are shown in groups, each with the worst state of its windows.
    """
    from patra.ingest.operations.reads import drilldown
    from patra.kernel.clock import DAY, format_instant

    with open_patra(config) as patra:
        last = instant(until) or patra.clock.now()
        first = instant(since) or last - 30 * DAY
        found = patra.db.read(lambda tx: drilldown.windows(tx, source, first, last))
    rows: list[dict[str, Any]] = [
        {
            "operation": series.operation,
            "namespace": series.namespace,
            "from": format_instant(row["window_from"]),
            "to": format_instant(row["window_to"]),
            "state": row["status_code"],
            "windows": sum(row["counts"].values()) if "counts" in row else 1,
            "task": row["task_id"],
        }
        for series in found
        for row in series.windows
    ]
    show(rows, as_json=as_json)


@click.command("rate")
@config_option
@json_option
def rate(config: str | None, *, as_json: bool) -> None:
    """Show what may be sent to each provider, what was sent lately, quotas, and which providers asked for a pause."""
    from patra.ingest.operations.reads.rates import rates

    with open_patra(config) as patra:
        now = patra.clock.now()
        found = patra.db.read(lambda tx: rates(tx, now))
    if as_json:
        show(found, as_json=True)
        return
    names = ("rate_key", "source", "requests", "wait_ms", "throttled", "demoted", "last_at")
    show([{name: gate[name] for name in names} for gate in found.gates], as_json=False, titles=TITLES)
    for title, rows in (("quotas", found.quotas), ("cool-downs", found.cooldowns)):
        if rows:
            click.echo(f"\n{title}")
            show(rows, as_json=False)


@click.command("top-errors")
@click.option("--source", default="", help=OPTION_TEXTS["source"])
@click.option("--operation", default="", help=OPTION_TEXTS["operation"])
@click.option("--level", default="", help=OPTION_TEXTS["level"])
@click.option("--since", default="", help="From this instant on; a day ago if it is not said.")
@click.option("--until", default="", help=OPTION_TEXTS["until"])
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="Groups to show.")
@config_option
@json_option
def top_errors(config: str | None, *, as_json: bool, since: str, until: str, limit: int, **wanted: str) -> None:
    """Count errors by source, endpoint, operation and reason, the most frequent first."""
    from patra.ingest.operations.reads.read_models import error_top
    from patra.kernel.clock import DAY

    with open_patra(config) as patra:
        last = instant(until) or patra.clock.now()
        first = instant(since) or last - DAY
        show(patra.db.read(lambda tx: error_top(tx, wanted, since=first, until=last, limit=limit)), as_json=as_json)
