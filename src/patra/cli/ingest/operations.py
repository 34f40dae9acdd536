"""`patra ingest pause`, `cancel` and the like: what operators may do (ch. 5.9), each with its row in the audit."""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from patra.cli.terminal.options import config_option, open_patra, outcome_option, say_outcome

if TYPE_CHECKING:
    from patra.ingest.planning.operations import Act
    from patra.kernel.db import Tx

OUTCOMES = {
    "ingest.acknowledge": "the alert {subject} is acknowledged",
    "ingest.add_schedule": "schedule {subject} is added; `patra up` runs it, the first time at once",
    "ingest.cancel_plan": "plan {subject} is cancelled: {changed} rows changed",
    "ingest.cancel_slice": "slice {subject} is cancelled: {changed} rows changed",
    "ingest.cancel_task": "task {subject} is cancelled",
    "ingest.change_schedule": "schedule {subject} is changed",
    "ingest.disable_schedule": "schedule {subject} is off",
    "ingest.dismiss": "{changed} quarantined records of {subject} are dismissed",
    "ingest.enable_schedule": "schedule {subject} is on; `patra up` runs it",
    "ingest.end_silence": "the alert {subject} is no longer silenced",
    "ingest.lift": "the circuit breaker of {subject} is lifted",
    "ingest.pack_promote": "the staged version of {subject} is now in force",
    "ingest.pack_rollback": "the staged version of {subject} is withdrawn",
    "ingest.pack_stage": "a new version of {subject} is staged; `patra ingest pack trial {subject}` compares the two",
    "ingest.pause": "{subject} is paused",
    "ingest.remove_schedule": "schedule {subject} is removed",
    "ingest.requeue_failed": "{changed} failed tasks of {subject} are queued again",
    "ingest.requeue_tasks": "{changed} failed tasks of {subject} are queued again",
    "ingest.requeue_task": "task {subject} is queued again",
    "ingest.resume": "{subject} is resumed",
    "ingest.signal": "{changed} records of {subject} will be fetched again by the next UPDATE",
    "ingest.silence": "the alert {subject} is silenced",
}
"""What each act did, in a sentence."""


def sentence(done: "Act") -> str:
    """What an act did, for people."""
    left_out = _left_out(done.detail.get("left_out", 0))
    if not done.changed:
        act = done.act.partition(".")[2].replace("_", " ")
        return f"nothing changed: {act} {done.subject} had nothing to do{left_out}"
    return OUTCOMES[done.act].format(subject=done.subject, changed=done.changed) + left_out + _trial(done.detail)


def _trial(detail: "Mapping[str, Any]") -> str:
    """What the trial had shown when a version was promoted."""
    if "trial_plans" not in detail:
        return ""
    plans, failed = detail["trial_plans"], detail["trial_failed"]
    if not plans:
        return "; on trial no plan was made from it, so nothing has shown yet that it works"
    return f"; on trial {plans} {'plan was' if plans == 1 else 'plans were'} made from it, {failed} tasks failed"


def _left_out(count: int) -> str:
    return f"; {count} of plans that were cancelled or failed are left out: name --plan to take them" if count else ""


def act(config: str | None, work: Callable[["Tx", str, int], "Act"]) -> None:
    """Do it and write the audit in one transaction; exit 1 when there was nothing to do."""
    from patra.app.access.actor import command_line_actor
    from patra.app.access.audit import audit

    actor = command_line_actor()
    with open_patra(config) as patra:
        now = patra.clock.now()

        def both(tx: "Tx") -> "Act":
            done = work(tx, actor.name, now)
            audit(tx, actor, done.act, done.subject, {**done.detail, "changed": done.changed}, now)
            return done

        done = patra.db.run(both)
    say_outcome(sentence(done), act=done.act, subject=done.subject, changed=done.changed)
    if not done.changed:
        raise click.exceptions.Exit(1)


why_option = click.option("--why", default="", help="The reason, for the audit.")


def _topic(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    from patra.ingest.packs.sections.base import NAME
    from patra.kernel.pattern import pattern

    if value and not pattern(NAME).matches_part(value):
        meant = re.sub(r"[^A-Za-z0-9_.-]+", "-", value).strip("-")
        such = meant if pattern(NAME).matches_part(meant) else "sea-otters"
        raise click.BadParameter(f"{value!r} is not a name; write letters, digits, '.', '-' and '_', such as {such}")
    return value


def topic_option(text: str) -> Callable[..., Any]:
    """`--topic NAME`: a name for what one or several searches find."""
    return click.option("--topic", default="", metavar="NAME", callback=_topic, help=text)


@click.command()
@click.argument("source")
@click.argument("endpoint", default="")
@why_option
@config_option
@outcome_option
def pause(source: str, endpoint: str, why: str, config: str | None) -> None:
    """Stop planning and running a source, or one of its endpoints."""
    from patra.ingest.planning import operations

    act(config, lambda tx, by, now: operations.pause(tx, source, endpoint, by=by, why=why, now=now))


@click.command()
@click.argument("source")
@click.argument("endpoint", default="")
@config_option
@outcome_option
def resume(source: str, endpoint: str, config: str | None) -> None:
    """Let a paused source or endpoint go on."""
    from patra.ingest.planning import operations

    act(config, lambda tx, _by, _now: operations.resume(tx, source, endpoint))


@click.command()
@click.argument("source")
@click.argument("endpoint", default="")
@why_option
@config_option
@outcome_option
def lift(source: str, endpoint: str, why: str, config: str | None) -> None:
    """Lift the circuit breaker that a fatal error has set."""
    from patra.ingest.planning import operations

    act(config, lambda tx, _by, _now: operations.lift_breaker(tx, source, endpoint, why=why))


@click.command()
@click.argument("which", metavar="PLAN|SLICE|TASK")
@why_option
@config_option
@outcome_option
def cancel(which: str, why: str, config: str | None) -> None:
    """Cancel a plan with all that belongs to it, a slice with its task, or a task."""
    from patra.ingest.planning import operations

    kind = which.partition(".")[2][:1]
    match kind:
        case "t":
            act(config, lambda tx, _by, now: operations.cancel_task(tx, which, why=why, now=now))
        case "s":
            act(config, lambda tx, _by, now: operations.cancel_slice(tx, which, why=why, now=now))
        case _:
            act(config, lambda tx, _by, now: operations.cancel_plan(tx, which, why=why, now=now))


@click.command()
@click.argument("tasks", metavar="[TASK]...", nargs=-1)
@click.option("--source", default="", help="All failed tasks of this source.")
@click.option("--endpoint", default="", help="All failed tasks of this endpoint.")
@click.option("--operation", default="", help="All failed tasks of this operation.")
@click.option("--plan", default="", help="All failed tasks of this plan.")
@click.option("--dry-run", is_flag=True, help="Count them by reason; change nothing.")
@why_option
@config_option
@outcome_option
def requeue(tasks: tuple[str, ...], why: str, config: str | None, *, dry_run: bool, **filters: str) -> None:
    """Let failed tasks be tried again: those that are named, or all failed tasks that the options name.

    Those of plans that were cancelled or failed are left out unless --plan names theirs.
    """
    from patra.ingest.operations.requeue import TaskFilter, preview, requeue_failed, requeue_tasks
    from patra.ingest.planning import operations

    wanted = TaskFilter(**filters)
    if bool(tasks) == any(filters.values()):
        raise click.UsageError("name tasks, or all of them by --source, --endpoint, --operation or --plan")
    if tasks and dry_run:
        raise click.UsageError("--dry-run counts the tasks of --source, --endpoint, --operation or --plan")
    if len(tasks) == 1:
        act(config, lambda tx, _by, now: operations.requeue_task(tx, tasks[0], why=why, now=now))
    elif tasks:
        act(config, lambda tx, _by, now: requeue_tasks(tx, tasks, why=why, now=now))
    elif dry_run:
        with open_patra(config) as patra:
            found = patra.db.read(lambda tx: preview(tx, wanted))
        reasons = ", ".join(f"{count} {reason or 'without a reason'}" for reason, count in found.by_reason.items())
        text = f"{found.tasks} failed tasks{' and more' if found.more else ''}{': ' if reasons else ''}{reasons}"
        text += _left_out(found.left_out)
        say_outcome(text, tasks=found.tasks, more=found.more, by_reason=found.by_reason, left_out=found.left_out)
    else:
        act(config, lambda tx, _by, now: requeue_failed(tx, wanted, why=why, now=now))


@click.command()
@click.argument("source")
@click.argument("endpoint")
@click.argument("ids", nargs=-1, required=True)
@why_option
@config_option
@outcome_option
def signal(source: str, endpoint: str, ids: tuple[str, ...], why: str, config: str | None) -> None:
    """Ask for records to be fetched again by the next UPDATE (retracted, merged, incomplete)."""
    from patra.ingest.planning import operations

    act(config, lambda tx, by, now: operations.signal(tx, source, endpoint, ids, by=by, why=why, now=now))


@click.command()
@click.argument("source")
@click.argument("endpoint")
@click.argument("keys", nargs=-1, required=True, metavar="KEY…")
@click.option("--why", required=True, help="The reason, for the audit.")
@config_option
@outcome_option
def dismiss(source: str, endpoint: str, keys: tuple[str, ...], why: str, config: str | None) -> None:
    """Close records of the quarantine permanently; one that comes with other content is opened again."""
    from patra.ingest.operations import quarantine

    act(config, lambda tx, _by, now: quarantine.dismiss(tx, source, endpoint, keys, why=why, now=now))
