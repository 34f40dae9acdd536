"""Turns numbered SQL files of each package into tables, with a checksum of every file that made them.

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
from patra.kernel.db.queries import Dialect, Statement, expand, statement
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
_INDEX = re.compile(r"(?:\s|--[^\n]*\n)*CREATE (UNIQUE )?INDEX (?!IF NOT EXISTS\b)(\w+)")
_TABLE = re.compile(r"\b(?:CREATE TABLE|RENAME TO) (\w+)")
_INDEX_FOUND: dict[Dialect, Statement] = {
    "sqlite": statement("index_found", "SELECT 1 FROM sqlite_master WHERE type = 'index' AND name = :name"),
    "postgres": statement(
        "index_found",
        "SELECT i.indisvalid::int FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
        "WHERE c.relname = :name AND c.relnamespace = current_schema()::regnamespace",
    ),
}
"""Whether there is an index of a name, and whether it is valid."""
FROM_THE_FUTURE = "migration_from_the_future"
"""The code of a store that has migrations of a newer release."""
_LOCK = "SELECT pg_advisory_xact_lock(7026817)"  # one migrator at a time; the number is ours alone


class Migration(msgspec.Struct, frozen=True, kw_only=True):
    package: str
    number: int
    name: str
    text: str
    checksum: str


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """A migration that a store has, by the checksum of its file."""

    package: str
    number: int
    checksum: str


def migrate(db: Database, packages: Sequence[str]) -> list[Migration]:
    """Apply what is missing, in one transaction, in the order of the packages; gives what was applied."""

    def work(tx: Tx) -> list[Migration]:
        if tx.dialect == "postgres":
            tx.script(_LOCK)
        tx.script(_CREATE)
        missing = _missing(tx, packages)
        for migration in missing:
            _run(tx, migration)
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


def applied_migrations(tx: Tx, packages: Sequence[str]) -> list[Applied]:
    """What a store has; raises MigrationMismatch where it is not what this program would have applied."""
    if not tx.fetch(statement("has_migrations", _EXISTS[tx.dialect])):
        return []
    _missing(tx, packages)
    found = [Applied(package=p, number=n, checksum=c) for p, n, c in tx.fetch(_APPLIED) if p in packages]
    return sorted(found, key=lambda one: (packages.index(one.package), one.number))


def make_tables(tx: Tx, packages: Sequence[str], applied: Sequence[Applied]) -> None:
    """Make the tables as the migrations that another store has left them; `krn_migration` stays empty.

    Raises MigrationMismatch for one that this program does not know, or knows otherwise.
    """
    if tx.dialect == "postgres":
        tx.script(_LOCK)
    tx.script(_CREATE)
    ours = {(one.package, one.number): one for package in packages for one in _files(package, tx.dialect)}
    for one in applied:
        migration = ours.get((one.package, one.number))
        if migration is None or migration.checksum != one.checksum:
            raise MigrationMismatch(
                FROM_THE_FUTURE if migration is None else "migration_changed",
                f"this program does not have migration {one.number:04} of {one.package} as it was applied; "
                "run the program that the store is of, or a newer one",
            )
    for one in applied:
        _run(tx, ours[one.package, one.number])


def table_names(packages: Sequence[str], dialect: Dialect) -> frozenset[str]:
    """Every table that a migration makes, whether a later one drops it or not."""
    texts = (migration.text for package in packages for migration in _files(package, dialect))
    return frozenset(name for text in texts for name in _TABLE.findall(text)) | {"krn_migration"}


def _run(tx: Tx, migration: Migration) -> None:
    for part in _statements(migration.text):
        _apply(tx, migration, part)


def _apply(tx: Tx, migration: Migration, part: str) -> None:
    """Run one statement; an index that an operator built ahead, without a lock that stops writers, is taken as it is.

    Not one that a failed `CREATE INDEX CONCURRENTLY` left behind, which is not used; nor one in the place of a unique
    index, which is a promise about the rows: whether it keeps it is not known by its name.
    """
    made = _INDEX.match(part)
    found = tx.fetch(_INDEX_FOUND[tx.dialect], {"name": made[2]}) if made else []
    if not made or not found:
        tx.script(part)
        return
    what = f"{migration.package} migration {migration.number:04} ({migration.name})"
    if made[1]:
        raise MigrationMismatch(
            "migration_index_taken",
            f"{what} makes the unique index {made[2]}, and there is one of that name; drop it, and migrate again",
        )
    if not found[0][0]:
        raise MigrationMismatch(
            "migration_index_invalid",
            f"{what} finds the index {made[2]}, whose building failed; drop it, and build it or migrate again",
        )


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
                FROM_THE_FUTURE,
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
