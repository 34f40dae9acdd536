"""`patra backup`, `patra restore`, `patra verify`: copies of the store, the way back, and whether it is sound."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from patra.cli.terminal.options import (
    config_option,
    json_option,
    load_settings,
    log_quietly,
    outcome_option,
    require_store,
    say_outcome,
    show,
    shown_store,
)

if TYPE_CHECKING:  # imported late, so that --help starts fast
    from patra.app.backup import Manifest
    from patra.app.configuration.settings import Settings
    from patra.app.integrity import Verified

BACKUP_EPILOG = """\b
Examples:
  patra backup /backups/patra-2026-11-17.db      while `patra up` runs; writes a manifest beside it
  patra verify /backups/patra-2026-11-17.db      whether the copy is whole
\b
In it: every table of the store, SQLite or PostgreSQL, as of one moment. Not in it: settings, packs in files, films,
history and archives in folders or buckets (how-to/back-up lists them), tables of yours in the same database.
Never copy patra.db with cp while a process runs: what was committed last is in patra.db-wal."""
RESTORE_EPILOG = """\b
Examples:
  patra restore /backups/patra-2026-11-17.db               where there is no store, or an empty database
  patra restore /backups/patra-2026-11-17.db --replace     SQLite: the store that is there is moved aside
\b
Stop every process on the store first. What restoring an older state means: how-to/back-up."""
VERIFY_EPILOG = """\b
Examples:
  patra verify                 the store of the settings; exit code 1 if something is damaged
  patra verify FILE            a backup: its checksum, then everything in it
\b
Of a SQLite file every page is checked; the tables that are listed have checksums in their rows, too."""


@click.command("backup", epilog=BACKUP_EPILOG)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@config_option
@json_option
def backup(file: Path, config: str | None, as_json: bool) -> None:
    """Copy the store into FILE while it is in use, with a manifest and a checksum."""
    from patra.app import backup as sqlite_copies
    from patra.app import postgres_backup
    from patra.app.wiring import open_store
    from patra.kernel.clock import SystemClock

    settings = load_settings(config).settings
    log_quietly(settings)
    require_store(settings)
    if not _is_postgres(settings):
        manifest = sqlite_copies.back_up(sqlite_copies.sqlite_file(settings), file, SystemClock())
    else:
        with closing(open_store(settings)) as db:
            manifest = postgres_backup.back_up(db, file, SystemClock())
    show(manifest if as_json else _in_short(file, manifest), as_json=as_json)


def _in_short(file: Path, manifest: "Manifest") -> dict[str, Any]:
    """What a person wants to know of a backup; the manifest beside it names every migration and table."""
    from patra.app.backup import manifest_file

    return {
        "file": str(file),
        "manifest": str(manifest_file(file)),
        "created_at": manifest.created_at,
        "size_bytes": manifest.size_bytes,
        "sha256": manifest.sha256,
        "tables": len(manifest.rows),
        "rows": sum(manifest.rows.values()),
        **({"left_out": ", ".join(manifest.left_out)} if manifest.left_out else {}),
    }


@click.command("restore", epilog=RESTORE_EPILOG)
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--replace", is_flag=True, help="SQLite: move the store that is there aside.")
@config_option
@outcome_option
def restore(file: Path, replace: bool, config: str | None) -> None:
    """Replace the store with a backup, or load it into an empty PostgreSQL database."""
    settings = load_settings(config).settings
    log_quietly(settings)
    restored, manifest, aside = (_into_postgres if _is_postgres(settings) else _into_sqlite)(settings, file, replace)
    moved = f"\nthe store that was there is now {aside}" if aside is not None else ""
    say_outcome(
        f"{restored} is restored, as of {manifest.created_at}{moved}",
        restored=restored,
        as_of=manifest.created_at,
        moved_aside=None if aside is None else str(aside),
    )


def _is_postgres(settings: "Settings") -> bool:
    from patra.app.configuration.secrets import resolve

    return not resolve(settings.store.url, "store.url").startswith("sqlite:")


def _into_sqlite(settings: "Settings", file: Path, replace: bool) -> "tuple[str, Manifest, Path | None]":
    from patra.app import backup as copies
    from patra.app.access.actor import command_line_actor
    from patra.app.access.audit import audit
    from patra.app.wiring import open_store
    from patra.kernel.clock import SystemClock

    clock, store = SystemClock(), copies.sqlite_file(settings)
    manifest, aside = copies.restore(file, store, clock, replace=replace)
    detail = {"sha256": manifest.sha256, "created_at": manifest.created_at}
    if any(name.startswith("patra.app ") for name in manifest.migrations):
        with closing(open_store(settings)) as db:
            db.run(lambda tx: audit(tx, command_line_actor(), "store.restore", "store", detail, clock.now()))
    return str(store), manifest, aside


def _into_postgres(settings: "Settings", file: Path, replace: bool) -> "tuple[str, Manifest, Path | None]":
    from patra.app import postgres_backup
    from patra.app.access.actor import command_line_actor
    from patra.app.wiring import open_store
    from patra.kernel.clock import SystemClock
    from patra.kernel.errors import Invalid

    if replace:
        advice = "create another database, name it in store.url, and restore into that"
        detail = "a PostgreSQL database is never replaced"
        raise Invalid("restore_no_replacement", detail, place="--replace", advice=advice)
    with closing(open_store(settings)) as db:
        manifest = postgres_backup.restore(file, db, SystemClock(), command_line_actor())
    return shown_store(settings), manifest, None


@click.command("verify", epilog=VERIFY_EPILOG)
@click.argument("file", required=False, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@config_option
@json_option
def verify(file: Path | None, config: str | None, as_json: bool) -> int:
    """Read the whole store, or a backup, and say what is damaged, by table and key."""
    import msgspec

    from patra.app import integrity, postgres_backup
    from patra.app.backup import read_manifest
    from patra.app.wiring import open_store
    from patra.kernel.db.sqlite_file import SQLiteFile
    from patra.kernel.errors import Invalid

    settings = load_settings(config).settings
    log_quietly(settings)
    if file is None:
        require_store(settings)
        with closing(open_store(settings)) as db:
            return _say_verified(integrity.verify(db), as_json=as_json)
    changed: list[integrity.Damage] = []
    try:
        read_manifest(file)
    except Invalid as error:
        changed.append(integrity.Damage(table="(file)", key=str(file), detail=error.detail))
    if postgres_backup.is_archive(file):
        found = postgres_backup.verify(file)
    else:
        with closing(SQLiteFile(file)) as copy:
            found = integrity.verify(copy)
    return _say_verified(msgspec.structs.replace(found, damages=[*changed, *found.damages]), as_json=as_json)


def _say_verified(found: "Verified", *, as_json: bool) -> int:
    from patra.cli.terminal.options import table

    if as_json:
        show({"sound": found.sound, "rows": found.rows, "damages": found.damages}, as_json=True)
    elif found.damages:
        table(["table", "key", "detail"], [[one.table, one.key, one.detail] for one in found.damages])
    else:
        table(["table", "rows checked"], [[name, count] for name, count in found.rows.items()])
        click.echo("nothing is damaged", err=True)
    return 0 if found.sound else 1
