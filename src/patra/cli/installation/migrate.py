"""`patra migrate`: missing migrations are applied, and the act is audited."""

import sys
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import click

from patra.cli.terminal.options import (
    config_option,
    json_wanted,
    load_settings,
    log_quietly,
    outcome_option,
    show,
    store_is_there,
    table,
)

if TYPE_CHECKING:  # imported late, so that --help starts fast
    from patra.kernel.db import Migration

EPILOG = """\b
Examples:
  patra migrate              apply what is missing, in one transaction
  patra migrate --check      only say what is missing; exit code 1 if something is"""


@click.command("migrate", epilog=EPILOG)
@click.option("--check", is_flag=True, help="Change nothing; exit with 1 if migrations are missing.")
@config_option
@outcome_option
def command(check: bool, config: str | None) -> int:
    """Bring the tables of the store up to date."""
    from patra.app.access.actor import command_line_actor
    from patra.app.access.audit import audit
    from patra.app.wiring import open_store, packages
    from patra.kernel.clock import SystemClock
    from patra.kernel.db import migrate, open_database, pending_migrations

    settings = load_settings(config).settings
    log_quietly(settings)
    there = store_is_there(settings)  # a check makes no store: where there is none, all of it is missing
    db = open_store(settings) if there or not check else open_database("sqlite:///:memory:")
    try:
        done = pending_migrations(db, packages()) if check else migrate(db, packages())
        _say(done, "missing" if check else "applied")
        if done and not check:
            newest = {migration.package: migration.number for migration in done}
            detail = {"applied": len(done), "newest": newest}
            now = SystemClock().now()
            db.run(lambda tx: audit(tx, command_line_actor(), "store.migrate", "store", detail, now))
    finally:
        db.close()
    return 1 if check and done else 0


def _say(migrations: "Sequence[Migration]", state: str) -> None:
    rows = [{"state": state, "package": one.package, "number": one.number, "name": one.name} for one in migrations]
    if json_wanted():
        show(rows, as_json=True)
        return
    if not sys.stdout.isatty():
        for one in migrations:
            click.echo(f"{state}\t{one.package}\t{one.number:04}\t{one.name}")
    else:
        _say_by_package(migrations, state)
    if not migrations or (state == "applied" and sys.stdout.isatty()):
        click.echo("the store is up to date")


def _say_by_package(migrations: "Sequence[Migration]", state: str) -> None:
    """A line for each part of Patra: a new store takes some ninety migrations, which nobody reads one by one."""
    by_package = [(package, list(found)) for package, found in groupby(migrations, lambda one: one.package)]
    rows = [[package, str(len(found)), f"{found[-1].number:04}"] for package, found in by_package]
    if rows:
        table(["package", state, "newest"], rows)
