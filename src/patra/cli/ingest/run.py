"""`patra ingest run`: plan a window and work until nothing is left of it, with a live display."""

import sys
import time
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Self

import click

from patra.cli.ingest.group import trigger_of, trigger_options
from patra.cli.terminal.options import audit_act, config_option, json_option, open_patra, show
from patra.cli.terminal.wrapping import say

if TYPE_CHECKING:
    from patra.ingest.execution.progress import Progress
    from patra.ingest.execution.run_to_completion import Drained
    from patra.ingest.planning.trigger import Trigger

EPILOG = """\b
Examples:
  patra ingest run crossref works --from 2026-01-01 --to 2026-02-01 --param query=otters
  patra ingest run pubmed search                       from the watermark until now
  patra ingest run crossref works --operation BACKFILL --from 2020-01-01 --activity history
\b
Run the same again to go on where it stopped: what has landed is not read again. So it is with a backfill
from P7D, too, unless it is given another --activity.
Exit code 0 when all of it is done, 1 when something of it was left behind (it says what and why),
5 when it cannot be planned, 130 when it was interrupted."""

LINES_EVERY = 5.0  # seconds between lines without a terminal
HELD_FOR_SECONDS = 2.0  # so long before a lease of another process is reported


@click.command(epilog=EPILOG)
@trigger_options
@click.option("--executors", type=click.IntRange(1, 64), default=2, show_default=True, help="Windows at the same time.")
@click.option(
    "--patience",
    default="PT15M",
    show_default=True,
    metavar="DURATION",
    help="Do not wait longer than this for a window that may not be taken yet (a quota, a long Retry-After).",
)
@config_option
@json_option
def run(config: str | None, executors: int, patience: str, as_json: bool, **said: Any) -> int:
    """Plan a window and work until nothing is left of it; run it again to go on where it stopped."""
    from patra.app.components.ingest import Ingest, gate_in_force, run_of
    from patra.kernel.clock import parse_duration
    from patra.kernel.errors import Invalid
    from patra.kernel.telemetry import get_logger

    try:
        longest = parse_duration(patience)
    except Invalid as error:
        raise click.BadParameter(str(error), param_hint="--patience") from None
    with open_patra(config, create=True) as patra:
        trigger = going_on(trigger_of(patra.clock.now(), **said), said["since"], said["until"])
        get_logger().info("ingest_rate_gate", gate=gate_in_force(patra.engine(Ingest).services.gate))
        drain = run_of(patra.ground, executors=executors, patience=longest)
        operation = trigger.operation.value
        audit_act(patra, "ingest.run", f"{trigger.source}/{trigger.endpoint}", operation=operation)
        title = f"{trigger.source} {trigger.endpoint} {operation}"
        display = Live(title) if sys.stderr.isatty() else Lines(title)
        with display:
            done = drain.run(trigger, display.show)
    return tell_drained(done, as_json=as_json)


def tell_drained(done: "Drained", *, as_json: bool) -> int:
    """Say how it ended; gives the exit code."""
    if as_json:
        show(done, as_json=True)
    else:
        _tell(done)
    return _code(done)


def going_on(trigger: "Trigger", since: str | None, until: str | None) -> "Trigger":
    """The trigger, known again when the same is said later: `--from P7D` begins elsewhere every time."""
    from msgspec.structs import replace

    by_the_clock = any(text is not None and text.startswith("P") for text in (since, until))
    return replace(trigger, said=(since, until)) if by_the_clock else trigger


def _code(done: "Drained") -> int:
    if done.refused:
        return 5
    if done.interrupted:
        return 130
    return 1 if done.left else 0


def _tell(done: "Drained") -> None:
    from patra.ingest.vocabulary.reasons import Reason

    planned = done.planned
    errors = [problem for problem in planned.problems if problem.severity == "error"]  # warnings: `pack load` had them
    for problem in errors:
        click.echo(f"{'not planned' if done.refused else problem.severity}: {problem}", err=True)
    if done.refused:
        if not errors:
            click.echo(f"not planned: {planned.detail or planned.outcome.text}", err=True)
        return
    for problem in planned.problems:
        if problem.code is Reason.WATERMARK_REPLACED:  # of this harvest, not of the pack
            click.echo(f"note: {problem.message}", err=True)
    p = done.progress
    took = f"{p.elapsed:.1f} s" if p.elapsed < 60 else f"{p.elapsed / 60:.1f} min"
    if not p.windows:
        say(planned.detail or "nothing to do")
    else:
        requests = f"{p.requests:,} request{'' if p.requests == 1 else 's'}"
        say(
            f"{p.done} of {p.windows} windows done in {took}: {p.inserted:,} new records, {p.updated:,} newer, "
            f"{p.skipped:,} known, {p.quarantined:,} in quarantine; {requests}"
        )
        seen = p.inserted + p.updated + p.skipped + p.quarantined
        if p.requests and not (seen or done.left or done.interrupted):
            say("the source has no record for these parameters in this window; `patra ingest coverage` shows it")
    if done.unproven:
        say(f"{done.unproven} of them cannot be proven complete, no total counts them (`patra ingest coverage`)")
    if planned.note:
        say(planned.note)
    if p.quarantined:
        click.echo("`patra ingest quarantine` says what is wrong with those", err=True)
    if done.interrupted:
        click.echo("interrupted; run the same again to go on", err=True)
    if done.left and not done.interrupted:
        click.echo(f"left behind: {len(done.left) + done.more}", err=True)
    if not done.interrupted:
        for one in done.left:
            name = f" ({one.task_id})" if one.task_id else ""
            click.echo(f"  {one.part}{name}: {one.status}: {one.why}", err=True)
        if done.more:
            click.echo(f"  … and {done.more} more; `patra ingest tasks --status FAILED` lists them", err=True)
        for advice in dict.fromkeys(one.advice for one in done.left if one.advice):
            click.echo(f"→ {advice}", err=True)


class Pace:
    """Records a second over the last moments."""

    def __init__(self) -> None:
        self._seen: list[tuple[float, int]] = []

    def of(self, progress: "Progress") -> float:
        self._seen.append((progress.elapsed, progress.records))
        while len(self._seen) > 2 and self._seen[0][0] < progress.elapsed - 10:
            self._seen.pop(0)
        (then, before), (now, after) = self._seen[0], self._seen[-1]
        return (after - before) / (now - then) if now > then else 0.0


class Lines:
    """Plain lines, for logs and pipes: one when something changed, at most every few seconds."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._pace = Pace()
        self._last: tuple[int, ...] = ()
        self._at = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def show(self, p: "Progress") -> None:
        pace = self._pace.of(p)
        state = (p.done, p.windows, p.records, p.failed, p.retries)
        if state == self._last or time.monotonic() - self._at < LINES_EVERY:
            return
        self._last, self._at = state, time.monotonic()
        click.echo(f"{self._title}: {line(p, pace)}", err=True)


def line(p: "Progress", pace: float) -> str:
    """All of it in one line."""
    return (
        f"windows {p.done}/{p.windows}, records {p.records} ({pace:.0f}/s), pages {p.pages}, "
        f"waited {p.waited:.1f} s, retries {p.retries}, 429 {p.throttled}, quarantined {p.quarantined}, "
        f"failed {p.failed}{f'; {wait}' if (wait := waiting(p)) else ''}"
    )


class Live:
    """A display that is drawn over itself, for people at a terminal."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._pace = Pace()
        self._live: Any = None
        self._context: AbstractContextManager[Any] = nullcontext()
        self._held_since: float | None = None

    def __enter__(self) -> Self:
        from rich.console import Console
        from rich.live import Live as Drawn

        from patra.kernel.telemetry import setup_logging

        self._context = self._live = Drawn(console=Console(stderr=True), refresh_per_second=8, transient=False)
        self._context.__enter__()
        setup_logging(level="error", stream=sys.stderr)  # the display says what warnings would; they would tear it
        return self

    def __exit__(self, *how: object) -> None:
        self._context.__exit__(*how)  # pyright: ignore[reportArgumentType]  as it came

    def show(self, p: "Progress") -> None:
        self._live.update(draw_progress(self._title, self._settled_progress(p), self._pace.of(p)))

    def _settled_progress(self, p: "Progress") -> "Progress":
        """The progress without leases of others that were seen only now: between two steps our own look like that."""
        import msgspec

        self._held_since = (p.elapsed if self._held_since is None else self._held_since) if p.held else None
        if self._held_since is None or p.elapsed - self._held_since >= HELD_FOR_SECONDS:
            return p
        return msgspec.structs.replace(p, held=0)


def draw_progress(title: str, p: "Progress", pace: float) -> Any:
    """The display: a bar of windows, and what has happened so far."""
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    minutes, seconds = divmod(int(p.elapsed), 60)
    head = Table.grid(padding=(0, 1), expand=False)
    state = [f"{p.working} at work"] if p.working else []
    if p.failed:
        state.append(f"[red]{p.failed} failed[/red]")
    head.add_row(
        Text(title, style="bold"),
        ProgressBar(total=max(p.windows, 1), completed=p.done, width=36),
        f"{p.done}/{p.windows} windows",
        f"{minutes}:{seconds:02}",
        remaining(p.elapsed, p.done, p.windows),
        ", ".join(state),
    )
    body = Table.grid(padding=(0, 2))
    bad = f"[yellow]{p.quarantined:,} quarantined[/yellow]" if p.quarantined else "0 quarantined"
    body.add_row(
        "records",
        f"[bold]{pace:,.0f}/s[/bold]",
        f"{p.inserted:,} new",
        f"{p.updated:,} newer",
        f"{p.skipped:,} known",
        bad,
    )
    limit = f" ({p.rate:g}/s)" if p.rate else ""
    body.add_row(
        "requests",
        f"{p.requests:,}",
        f"{p.pages:,} pages",
        f"{p.retries:,} retries",
        f"{p.throttled:,} throttled",
        f"{p.waited:.1f} s of waiting for the rate limit{limit}",
    )
    whole = Table.grid()
    whole.add_row(head)
    whole.add_row(body)
    if wait := waiting(p):
        whole.add_row(Text(wait, style="yellow"))
    return whole


def remaining(elapsed: float, done: int, total: int) -> str:
    """How long the rest will take if it goes on as it went; nothing before the first part is done."""
    if not 0 < done < total:
        return ""
    minutes, seconds = divmod(int(elapsed * (total - done) / done), 60)
    return f"about {minutes}:{seconds:02} left"


def waiting(p: "Progress") -> str:
    """What everything waits for, if it does."""
    from patra.kernel.clock import SECOND, SystemClock, format_instant

    if p.held and p.held == p.working and p.held_until is not None:
        until = format_instant(p.held_until // SECOND * SECOND)
        windows = "1 window is" if p.held == 1 else f"{p.held} windows are"
        return f"{windows} leased to other processes; if those have died, the first lease ends at {until}"
    if p.working or not p.waiting or p.due is None:
        return ""
    left = (p.due - SystemClock().now()) // SECOND
    if left < 1:
        return ""
    return f"waiting until {format_instant(p.due // SECOND * SECOND)} ({left} s){f': {p.why}' if p.why else ''}"
