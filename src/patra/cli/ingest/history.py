"""`patra ingest history …`: history past its retention, and the way back into the store (ch. 14.11)."""

import click

from patra.cli.terminal.groups import Group
from patra.cli.terminal.options import config_option, json_option, open_patra, outcome_option, say_outcome, show

EPILOG = """\b
Examples:
  patra ingest history list --run p1f….t000003.r1
  patra ingest history restore --run p1f….t000003.r1 --why "TICKET-7"    then blackbox and replay know it again
  patra ingest history restore --plan p1f… --days 30 --why audit """


@click.group(cls=Group, epilog=EPILOG)
def history() -> None:
    """List history past its retention, and bring it back.

    History are plans, tasks, runs and batches. Records: `patra ingest records`; ticks: `patra ingest schedule history`.
    """


@history.command("list")
@click.option("--run", "run_id", default="", help="Only files with rows of this run.")
@click.option("--plan", "plan_id", default="", help="Only files with rows of this plan.")
@config_option
@json_option
def list_command(config: str | None, run_id: str, plan_id: str, *, as_json: bool) -> None:
    """List the files of history past its retention, the oldest first."""
    from patra.app.components.ingest import kept_history
    from patra.ingest.operations.history import history_files

    with open_patra(config) as patra:
        files = history_files(kept_history(patra.settings), run_id=run_id, plan_id=plan_id)
    if as_json:
        show(files, as_json=True)
        return
    show(
        [{"file": one.file, "kind": one.kind, "rows": one.rows, "first": one.first, "last": one.last} for one in files],
        as_json=False,
    )


@history.command()
@click.option("--run", "run_id", default="", help="Bring back this run.")
@click.option("--plan", "plan_id", default="", help="Bring back all runs of this plan.")
@click.option("--days", type=click.IntRange(1, 3650), default=7, show_default=True, help="How long it is held.")
@click.option("--why", required=True, help="The reason, for the audit.")
@config_option
@outcome_option
def restore(config: str | None, run_id: str, plan_id: str, days: int, why: str) -> None:
    """Bring batches, runs and cursor events back into the store."""
    from patra.app.components.ingest import kept_history
    from patra.cli.terminal.options import audit_act
    from patra.ingest.operations.history import restore as bring_back
    from patra.kernel.clock import DAY

    if bool(run_id) == bool(plan_id):
        raise click.UsageError("name either --run or --plan")
    with open_patra(config) as patra:
        place, now = kept_history(patra.settings), patra.clock.now()
        done = bring_back(patra.db, place, run_id=run_id, plan_id=plan_id, now=now, hold=days * DAY)
        audit_act(patra, "ingest.history_restore", run_id or plan_id, why=why, rows=done.rows)
    rows = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in done.rows.items())
    said = f"{done.runs} runs brought back ({rows}), held until {done.until}"
    say_outcome(said, runs=done.runs, rows=done.rows, until=done.until)
