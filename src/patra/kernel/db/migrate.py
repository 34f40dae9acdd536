"""Numbered SQL files of each package go in; tables come out, with a checksum of every file that made them.

Files are `sql/migrations/NNNN_name.sql`, in the shared dialect (macros of `queries`); `NNNN_name.postgres.sql` stands
in for the whole file on PostgreSQL. They are append-only: a file that was applied and then changed is refused.
"""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from importlib.resources import files

import msgspec

from patra.kernel.canonical import sha256_hex
from patra.kernel.db.api import Database, Tx
from patra.kernel.db.queries import Dialect, expand, statement
from patra.kernel.errors import MigrationMismatch

_CREATE = (
    "CREATE TABLE IF NOT EXISTS krn_migration (package TEXT NOT NULL, number BIGINT NOT NULL, name TEXT NOT NULL, "
    "checksum TEXT NOT NULL, applied_at BIGINT NOT NULL, PRIMARY KEY (package, number))"
)
_EXISTS: dict[Dialect, str] = {
    "sqlite": "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'krn_migration'",
    "postgres": "SELECT 1 WHERE to_regclass('krn_migration') IS NOT NULL",
}
_APPLIED = statement("migrations", "SELECT package, number, checksum FROM krn_migration")
_LOCK = "SELECT pg_advisory_xact_lock(7026817)"  # one migrator at a time; the number is ours alone


class Migration(msgspec.Struct, frozen=True, kw_only=True):
    package: str
    number: int
    name: str
    text: str
    checksum: str


def migrate(db: Database, packages: Sequence[str]) -> list[Migration]:
    """Apply what is missing, in one transaction, in the order of the packages; gives what was applied."""

    def work(tx: Tx) -> list[Migration]:
        if tx.dialect == "postgres":
            tx.script(_LOCK)
        tx.script(_CREATE)
        missing = _missing(tx, packages)
        for migration in missing:
            for part in _statements(migration.text):
                tx.script(part)
            tx.insert(
                "krn_migration",
                [
                    {
                        "package": migration.package,
                        "number": migration.number,
                        "name": migration.name,
                        "checksum": migration.checksum,
                        "applied_at": tx.server_now(),
                    }
                ],
            )
        return missing

    return db.run(work)


def pending_migrations(db: Database, packages: Sequence[str]) -> list[Migration]:
    """What `migrate` would apply."""

    def work(tx: Tx) -> list[Migration]:
        if not tx.fetch(statement("has_migrations", _EXISTS[tx.dialect])):
            return [m for package in packages for m in _files(package, tx.dialect)]
        return _missing(tx, packages)

    return db.read(work)


def _missing(tx: Tx, packages: Sequence[str]) -> list[Migration]:
    applied = {(package, number): checksum for package, number, checksum in tx.fetch(_APPLIED)}
    missing: list[Migration] = []
    for package in packages:
        ours = _files(package, tx.dialect)
        done = {number for owner, number in applied if owner == package}
        known = max((migration.number for migration in ours), default=0)
        for migration in ours:
            checksum = applied.get((package, migration.number))
            if checksum is None:
                if done and migration.number < max(done):
                    raise MigrationMismatch(
                        "migration_out_of_order",
                        f"{package} migration {migration.number:04} ({migration.name}) is new, but the store "
                        f"already has {max(done):04}; give it the next number",
                    )
                missing.append(migration)
            elif checksum != migration.checksum:
                raise MigrationMismatch(
                    "migration_changed",
                    f"{package} migration {migration.number:04} ({migration.name}) was changed after it was applied; "
                    "restore the file and write a new migration instead",
                )
        if done and max(done) > known:
            raise MigrationMismatch(
                "migration_from_the_future",
                f"the store has migration {max(done):04} of {package}, this program knows {known:04}; "
                "run the newer program",
            )
        if gone := done - {migration.number for migration in ours}:
            raise MigrationMismatch(
                "migration_removed",
                f"the store has migration {min(gone):04} of {package}, whose file is gone; restore it",
            )
    return missing


def _files(package: str, dialect: Dialect) -> list[Migration]:
    folder = files(package) / "sql" / "migrations"
    if not folder.is_dir():
        return []
    chosen: dict[int, Migration] = {}
    for source in sorted(folder.iterdir(), key=lambda f: f.name):
        match = re.fullmatch(r"(\d{4})_([a-z0-9_]+)(\.postgres)?\.sql", source.name)
        if match is None or (match[3] and dialect != "postgres"):
            continue
        number = int(match[1])
        if number in chosen:
            if chosen[number].name != match[2]:
                raise MigrationMismatch("migration_number_twice", f"{package} has two migrations {number:04}")
            continue  # `.postgres.sql` sorts before `.sql`
        text = source.read_text("utf-8")
        chosen[number] = Migration(
            package=package, number=number, name=match[2], text=expand(text, dialect), checksum=sha256_hex(text)
        )
    return [chosen[number] for number in sorted(chosen)]


def _statements(text: str) -> Iterator[str]:
    """The statements one by one: each ends at the first semicolon outside texts and comments."""
    part = ""
    for piece in re.split(r"(?<=;)", text):
        part += piece
        if sqlite3.complete_statement(part):
            yield part
            part = ""
    if re.sub(r"--[^\n]*|/\*.*?\*/", "", part, flags=re.DOTALL).strip():
        yield part
