"""`patra attribution history …`: the log and records past their retention, in files."""

import click

from patra.cli.terminal.groups import Group
from patra.cli.terminal.options import (
    audit_act,
    config_option,
    json_option,
    open_patra,
    outcome_option,
    say_outcome,
    show,
    table,
)
from patra.kernel.errors import count_phrase

EPILOG = """\b
Examples:
  patra attribution history list --kind log --from 2026-01-01 --to 2026-02-01
  patra attribution history ask "SELECT app_id, count(*) FROM log GROUP BY app_id"
  patra attribution history ask "SELECT * FROM facts WHERE billing_key = 'ref|ra|billable_click'"
  patra attribution history restore --from 2026-01-01 --to 2026-01-02 --why "TICKET-7" """

kind_option = click.option(
    "--kind", type=click.Choice(["log", "audits", "facts", "settled"]), default=None, help="Only files of this kind."
)
from_option = click.option(
    "--from", "begin", metavar="INSTANT", help="Files with rows from here on: a date (UTC) or an RFC 3339 instant."
)
to_option = click.option("--to", "end", metavar="INSTANT", help="Files with rows from before this instant.")


@click.group("history", cls=Group, epilog=EPILOG)
def history() -> None:
    """The log and the records of decisions past their retention, as Parquet files.

    They are in attribution.history_folder or attribution.history_url.
    """


def _bounds(begin: str | None, end: str | None) -> tuple[int, int]:
    from patra.cli.attribution.settle import instant_of

    first = instant_of(begin, "--from") if begin else -(2**62)
    last = instant_of(end, "--to") if end else 2**62
    if first >= last:
        raise click.UsageError("--to is not after --from")
    return first, last


@history.command("list")
@kind_option
@from_option
@to_option
@config_option
@json_option
def list_command(kind: str | None, begin: str | None, end: str | None, config: str | None, as_json: bool) -> None:
    """List the files, the oldest of each kind first."""
    from patra.attribution.history.files import files_between
    from patra.kernel.clock import format_instant

    first, last = _bounds(begin, end)
    with open_patra(config) as patra:
        found = patra.db.read(lambda tx: files_between(tx, kind or "", first, last))
    rows = [
        {
            "file": one.file,
            "kind": one.kind,
            "rows": one.rows,
            "first": format_instant(one.first_at),
            "last": format_instant(one.last_at),
            "sha256": one.sha256,
            "rowsInStore": one.deleted_at is None,
            "heldUntil": format_instant(one.held_until) if one.held_until else None,
        }
        for one in found
    ]
    shown = ("file", "kind", "rows", "first", "last", "rowsInStore")
    show(rows if as_json else [{name: row[name] for name in shown} for row in rows], as_json=as_json)


@history.command("ask")
@click.argument("sql")
@from_option
@to_option
@config_option
@json_option
def ask_command(sql: str, begin: str | None, end: str | None, config: str | None, as_json: bool) -> None:
    """Run a query (DuckDB) over the views `log`, `audits`, `facts` and `settled`.

    `log` has a row for each line, with the batch as received in `body`; `audits` and `facts` have one for each output
    record, with its keys as columns; `settled` has one for each billable fact of a closed period. `time` is `at` as a
    timestamp in UTC. The query reads these files and nothing else.
    """
    from patra.app.components.attribution import kept_history
    from patra.attribution.history.ask import ask

    first, last = _bounds(begin, end)
    with open_patra(config) as patra:
        place = kept_history(patra.settings.attribution)
        found = ask(patra.db, place, sql, begin=first, end=last)
    rows = [[value.hex() if isinstance(value, bytes) else value for value in row] for row in found.rows]
    if as_json:
        show([dict(zip(found.columns, row, strict=True)) for row in rows], as_json=True)
        return
    table(found.columns, rows)
    click.echo(f"{count_phrase(len(rows), 'row')} out of {count_phrase(found.files, 'file')}", err=True)


@history.command("check")
@config_option
@json_option
def check_command(config: str | None, as_json: bool) -> int:
    """Read every file and compare its rows with their checksum; exit code 1 where one is missing or damaged."""
    from patra.app.components.attribution import kept_history
    from patra.attribution.history.ask import check_files

    with open_patra(config) as patra:
        found = check_files(patra.db, kept_history(patra.settings.attribution))
    if as_json:
        show(found, as_json=True)
    else:
        table(["problem"], [[problem] for problem in found.problems])
        count = len(found.problems)
        click.echo(f"{found.files} files, {found.rows} rows: {count} problem{'s' * (count != 1)}")
    return 1 if found.problems else 0


@history.command()
@click.option("--from", "begin", required=True, metavar="INSTANT", help="A date (UTC) or an RFC 3339 instant.")
@click.option("--to", "end", required=True, metavar="INSTANT", help="A date (UTC) or an RFC 3339 instant.")
@click.option("--days", type=click.IntRange(1, 3650), default=7, show_default=True, help="How long they are held.")
@click.option("--why", required=True, help="The reason, for the audit.")
@config_option
@outcome_option
def restore(begin: str, end: str, days: int, why: str, config: str | None) -> None:
    """Bring lines of the log back into the store, file by file.

    They are deleted again when the days are over. `patra attribution log export` does without: it reads the files.
    """
    from patra.app.components.attribution import kept_history
    from patra.attribution.history.log_lines import restore_log
    from patra.kernel.clock import DAY

    first, last = _bounds(begin, end)
    with open_patra(config) as patra:
        place, now = kept_history(patra.settings.attribution), patra.clock.now()
        done = restore_log(patra.db, place, begin=first, end=last, now=now, hold=days * DAY)
        audit_act(
            patra, "attribution.history_restore", f"{begin} to {end}", why=why, files=done.files, lines=done.lines
        )
    said = f"{done.lines} lines of {done.files} files brought back, held until {done.until}"
    say_outcome(said, files=done.files, lines=done.lines, until=done.until)
