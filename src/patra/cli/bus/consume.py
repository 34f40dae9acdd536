"""`patra bus consume`: a shell command as the handler of a consumer group."""

from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from patra.cli.bus.common import bus_in
from patra.cli.terminal.options import config_option, json_wanted, open_patra, outcome_option, show

if TYPE_CHECKING:
    import threading
    from collections.abc import Generator

EPILOG = """\b
Examples:
  patra bus consume artifact.published --group uploads -- ./upload.sh
  patra bus consume job.failed --group pager --once -- sh -c 'jq -r .payload.error_code | mail -s failed ops'"""


@click.command(epilog=EPILOG)
@click.argument("event_type")
@click.argument("command", nargs=-1, required=True)
@click.option("--group", required=True, metavar="NAME", help="The consumer group; it keeps its place between runs.")
@click.option("--versions", default=">=1", show_default=True, help="Which versions the command reads.")
@click.option("--concurrency", type=click.IntRange(1, 64), default=1, show_default=True, help="Commands at a time.")
@click.option(
    "--timeout",
    default="PT1H",
    show_default=True,
    metavar="DURATION",
    help="How long a command may take; then it is ended, and the event has failed.",
)
@click.option("--from-beginning", is_flag=True, help="A new group begins at the oldest event that is kept.")
@click.option("--once", is_flag=True, help="Handle the events that are waiting now, then end.")
@config_option
@outcome_option
def consume(
    event_type: str,
    command: tuple[str, ...],
    group: str,
    versions: str,
    concurrency: int,
    timeout: str,
    from_beginning: bool,
    once: bool,
    config: str | None,
) -> None:
    """Run COMMAND for each event of EVENT_TYPE, with the envelope as JSON on its standard input.

    Exit code 0: handled. 65 (EX_DATAERR): a dead letter at once. Any other: a failure, which comes back by the type's
    retries. The event is held by a lease while the command runs, so it is handled by one command at a time; the command
    sees PATRA_EVENT_ID, PATRA_EVENT_TYPE and PATRA_ATTEMPT, and should do its work once for an id.

    A command, and what it has started, is ended by SIGTERM and then SIGKILL: past --timeout, when `consume` is ended,
    and when the lease was lost.
    """
    import shutil

    from patra.app.components.bus import bus_of
    from patra.bus.dispatch.dispatcher import Dispatcher
    from patra.bus.dispatch.long_worker import LongWorker
    from patra.cli.bus.shell_command import ShellCommand

    if shutil.which(command[0]) is None:  # or every event would fail by it, and end as a dead letter
        raise click.BadParameter(f"there is no command {command[0]}", param_hint="COMMAND")
    handler = ShellCommand(command, _seconds(timeout))
    with open_patra(config, create=True) as patra:
        engine, bus = bus_of(patra), bus_in(patra)
        bus.long_consumer(
            event_type, group=group, versions=versions, concurrency=concurrency, from_beginning=from_beginning
        )(handler)
        patra.db.run(bus.join)
        dispatcher, worker, waker = Dispatcher(patra.db, bus, group), LongWorker(patra.db, bus, group), engine.waker()
        totals = {"handled": 0, "later": 0, "dead": 0}
        with _ends_on_signals() as ending:
            try:
                while not ending.is_set():
                    step, counts = dispatcher.run_once(), worker.run_once(0.5)
                    for name in totals:
                        totals[name] += getattr(counts, name)
                    busy = step.busy or counts.started > 0 or worker.in_hand > 0
                    if once and not busy:
                        break
                    if not busy:
                        waker.wait(0.5)
            except KeyboardInterrupt:
                pass
            finally:
                try:
                    handler.end_all()  # before the events are another's: no two commands for one of them
                finally:
                    worker.close()
        if json_wanted():
            show(totals, as_json=True)
        else:
            click.echo(", ".join(f"{count} {name}" for name, count in totals.items()), err=True)


@contextmanager
def _ends_on_signals() -> "Generator[threading.Event]":
    """Set by Ctrl-C and by what a supervisor sends: the turn is ended, the events of running commands are given back.

    An exception in the midst of a turn could lose sight of a command that has just begun. A second Ctrl-C does not wait
    for the turn.
    """
    import signal
    import threading

    ending = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield ending
        return

    def end(number: int, _: object) -> None:
        if number == signal.SIGINT and ending.is_set():
            raise KeyboardInterrupt
        ending.set()

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield ending
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _seconds(timeout: str) -> float:
    from patra.kernel.clock import SECOND, parse_duration
    from patra.kernel.errors import Invalid

    try:
        found = parse_duration(timeout)
    except Invalid as error:
        raise click.BadParameter(f"{error.detail}; {error.advice}", param_hint="--timeout") from None
    if found <= 0:
        raise click.BadParameter("longer than nothing", param_hint="--timeout")
    return found / SECOND
