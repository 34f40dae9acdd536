"""`patra migrate`: missing migrations are applied, and the act is audited."""

import click

from patra.cli.options import config_option, loaded, log_quietly

EPILOG = """\b
Examples:
  patra migrate              apply what is missing, in one transaction
  patra migrate --check      only say what is missing; exit code 1 if something is"""


@click.command("migrate", epilog=EPILOG)
@click.option("--check", is_flag=True, help="Change nothing; exit with 1 if migrations are missing.")
@config_option
def command(check: bool, config: str | None) -> int:
    """Bring the tables of the store up to date."""
    from patra.app.actor import command_line_actor
    from patra.app.audit import audit
    from patra.app.wiring import open_store, packages
    from patra.kernel.clock import SystemClock
    from patra.kernel.db import migrate, pending_migrations

    settings = loaded(config).settings
    log_quietly(settings)
    db = open_store(settings)
    try:
        done = pending_migrations(db, packages()) if check else migrate(db, packages())
        for migration in done:
            click.echo(
                f"{'missing' if check else 'applied'}\t{migration.package}\t{migration.number:04}\t{migration.name}"
            )
        if not done:
            click.echo("the store is up to date")
        elif not check:
            names = [f"{migration.package} {migration.number:04}" for migration in done]
            now = SystemClock().now()
            db.run(lambda tx: audit(tx, command_line_actor(), "store.migrate", "store", {"applied": names}, now))
    finally:
        db.close()
    return 1 if check and done else 0
