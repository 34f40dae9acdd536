"""`patra ingest pause`, `cancel` and the like: what operators may do (ch. 5.9), each with its row in the audit."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from patra.cli.options import config_option, opened

if TYPE_CHECKING:
    from patra.ingest.operations import Act
    from patra.kernel.db import Tx


def _act(config: str | None, work: Callable[["Tx", str, int], "Act"]) -> None:
    """Do it and write the audit in one transaction; exit 1 when there was nothing to do."""
    from patra.app.actor import command_line_actor
    from patra.app.audit import audit

    actor = command_line_actor()
    with opened(config) as patra:
        now = patra.clock.now()

        def both(tx: "Tx") -> "Act":
            done = work(tx, actor.name, now)
            audit(tx, actor, done.act, done.subject, {**done.detail, "changed": done.changed}, now)
            return done

        done = patra.db.run(both)
    click.echo(f"{done.act} {done.subject}: {f'{done.changed} changed' if done.changed else 'nothing to do'}")
    if not done.changed:
        raise click.exceptions.Exit(1)


why_option = click.option("--why", default="", help="The reason, for the audit.")


@click.command()
@click.argument("source")
@click.argument("endpoint", default="")
@why_option
@config_option
def pause(source: str, endpoint: str, why: str, config: str | None) -> None:
    """Stop planning and running a source, or one of its endpoints."""
    from patra.ingest import operations

    _act(config, lambda tx, by, now: operations.pause(tx, source, endpoint, by=by, why=why, now=now))


@click.command()
@click.argument("source")
@click.argument("endpoint", default="")
@config_option
def resume(source: str, endpoint: str, config: str | None) -> None:
    """Let a paused source or endpoint go on."""
    from patra.ingest import operations

    _act(config, lambda tx, _by, _now: operations.resume(tx, source, endpoint))


@click.command()
@click.argument("source")
@click.argument("endpoint", default="")
@why_option
@config_option
def lift(source: str, endpoint: str, why: str, config: str | None) -> None:
    """Lift the circuit breaker that a fatal error has set."""
    from patra.ingest import operations

    _act(config, lambda tx, _by, _now: operations.lift_breaker(tx, source, endpoint, why=why))


@click.command()
@click.argument("which", metavar="PLAN|SLICE|TASK")
@why_option
@config_option
def cancel(which: str, why: str, config: str | None) -> None:
    """Cancel a plan with all that belongs to it, a slice with its task, or a task."""
    from patra.ingest import operations

    kind = which.partition(".")[2][:1]
    match kind:
        case "t":
            _act(config, lambda tx, _by, now: operations.cancel_task(tx, which, why=why, now=now))
        case "s":
            _act(config, lambda tx, _by, now: operations.cancel_slice(tx, which, why=why, now=now))
        case _:
            _act(config, lambda tx, _by, now: operations.cancel_plan(tx, which, why=why, now=now))


@click.command()
@click.argument("task")
@why_option
@config_option
def requeue(task: str, why: str, config: str | None) -> None:
    """Let a failed task be tried again."""
    from patra.ingest import operations

    _act(config, lambda tx, _by, now: operations.requeue_task(tx, task, why=why, now=now))


@click.command()
@click.argument("source")
@click.argument("endpoint")
@click.argument("ids", nargs=-1, required=True)
@why_option
@config_option
def signal(source: str, endpoint: str, ids: tuple[str, ...], why: str, config: str | None) -> None:
    """Ask for records to be fetched again by the next UPDATE (retracted, merged, incomplete)."""
    from patra.ingest import operations

    _act(config, lambda tx, by, now: operations.signal(tx, source, endpoint, ids, by=by, why=why, now=now))
