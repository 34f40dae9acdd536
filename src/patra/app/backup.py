"""Copies of a SQLite store: a consistent one while others write, with a manifest; and the way back.

`postgres_backup` has those of a PostgreSQL store, with the same manifest.

`cp` of a store under load is not a backup: the last commits are in the WAL beside the file. The copy is made by
SQLite's online backup, which reads one moment of the store and holds up nobody who writes.
"""

import errno
import os
import re
import shutil
import sqlite3
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Literal

import msgspec

import patra
from patra.app.configuration.secrets import resolve
from patra.app.configuration.settings import Settings
from patra.kernel.clock import Clock, format_instant
from patra.kernel.db.sqlite import translate_errors
from patra.kernel.errors import Invalid, StoreUnavailable
from patra.kernel.files import sync, write_whole
from patra.kernel.ids import new_id

MANIFEST_SUFFIX = ".manifest.json"
CHUNK_BYTES = 1 << 20
BUSY_SECONDS = 10.0
JOURNALS = ("-wal", "-shm", "-journal")
ABANDONED_PART_SECONDS = 24 * 3600
"""No copy is that long without a byte written: SQLite's check of it only reads."""
_PART_NAME = re.compile(r"\..+\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(-journal)?")


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a backup is, beside it in a file of its own."""

    format: int = 1
    database: Literal["sqlite", "postgres"] = "sqlite"
    patra: str
    created_at: str
    size_bytes: int
    sha256: str
    migrations: list[str]
    rows: dict[str, int]
    left_out: list[str] = []
    """Tables beside the store's own, which are not in it."""


def manifest_file(backup: Path) -> Path:
    return backup.with_name(backup.name + MANIFEST_SUFFIX)


def sqlite_file(settings: Settings) -> Path:
    """The file of a SQLite store; one in memory is refused."""
    path = resolve(settings.store.url, "store.url").removeprefix("sqlite:///")
    if path == ":memory:":
        raise Invalid("backup_in_memory", "the store is in memory and ends with its process", place="store.url")
    return Path(path)


def back_up(source: Path, target: Path, clock: Clock) -> Manifest:
    """Write a copy of the store, checked and durable, and its manifest; a copy that is there has its manifest."""
    if not source.exists():
        raise Invalid("backup_no_store", f"{source} does not exist", place="store.url")
    return write_backup(target, lambda part: _copy_store(source, part, clock))


def write_backup(target: Path, write: Callable[[Path], Manifest]) -> Manifest:
    """Let `write` fill a file that is its owner's alone, then give it its name, and the manifest beside it."""
    if target.exists() or manifest_file(target).exists():
        raise Invalid("backup_exists", f"{target} is there already", advice="name another file")
    _delete_abandoned_parts(target.parent)
    part = target.with_name(f".{target.name}.{new_id()}")
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        manifest = write(part)
        sync(part)
        manifest = msgspec.structs.replace(manifest, size_bytes=part.stat().st_size, sha256=file_digest(part))
        write_whole(manifest_file(target), msgspec.json.format(msgspec.json.encode(manifest)))
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync(target.parent)
    return manifest


def _delete_abandoned_parts(folder: Path) -> None:
    """A process that was killed over a copy leaves its part, as large as the store; each night one more."""
    abandoned_before = time.time() - ABANDONED_PART_SECONDS
    for file in folder.glob(".*"):
        if _PART_NAME.fullmatch(file.name):
            with suppress(OSError):  # ended meanwhile, or not ours
                if file.stat().st_mtime < abandoned_before:
                    file.unlink()


def _copy_store(source: Path, part: Path, clock: Clock) -> Manifest:
    with (
        copy_errors(source, part),
        closing(sqlite3.connect(source, timeout=BUSY_SECONDS)) as store,
        closing(sqlite3.connect(part)) as copy,
    ):
        store.backup(copy)
        copy.execute("PRAGMA journal_mode=DELETE")  # one file, without a WAL beside it
        _check_sound(copy, source)
        return Manifest(
            patra=patra.__version__,
            created_at=format_instant(clock.now()),
            size_bytes=0,
            sha256="",
            migrations=_migrations(copy),
            rows=_row_counts(copy),
        )


def read_manifest(backup: Path) -> Manifest:
    """The manifest of a backup, which the file is held to; a changed file is refused."""
    try:
        manifest = msgspec.json.decode(manifest_file(backup).read_bytes(), type=Manifest)
    except FileNotFoundError as error:
        detail = f"{manifest_file(backup)} is not there"
        raise Invalid("backup_no_manifest", detail, advice="keep the manifest beside its backup") from error
    except msgspec.DecodeError as error:
        raise Invalid("backup_corrupt", f"{manifest_file(backup)} is not a manifest: {error}") from error
    if file_digest(backup) != manifest.sha256:
        raise Invalid(
            "backup_corrupt",
            f"{backup} is not the file that its manifest describes: its sha256 differs",
            advice="take another backup; `patra verify FILE` says what is damaged in this one",
        )
    return manifest


def require_database(manifest: Manifest, database: str) -> None:
    if manifest.database != database:
        raise Invalid(
            "restore_other_database",
            f"the backup is one of {manifest.database}, and the store is of {database}",
            place="store.url",
            advice="restore it into a store of the same database; `patra attribution log export` moves a log",
        )


def restore(backup: Path, store: Path, clock: Clock, *, replace: bool) -> tuple[Manifest, Path | None]:
    """Put a backup in the place of the store; gives its manifest, and where the store that was there went."""
    manifest = read_manifest(backup)
    require_database(manifest, "sqlite")
    aside: Path | None = None
    store = store.resolve()  # SQLite keeps the journals beside the file itself, not beside a link to it
    if store.exists():
        if not replace:
            raise Invalid("restore_store_exists", f"{store} is there already", advice="--replace moves it aside")
        _check_unused(store)
        aside = store.with_name(f"{store.name}.before-restore-{clock.now()}")
    elif any(_beside(store, more).exists() for more in JOURNALS):
        detail = f"{store} is not there, but a journal of it is: its last commits"
        raise Invalid("restore_journal_left", detail, advice=f"move {store}-wal and {store}-shm away first")
    _delete_abandoned_parts(store.parent)
    part = store.with_name(f".{store.name}.{new_id()}")
    try:
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        _copy_backup(backup, part)
        _check_digest(part, manifest)
        sync(part)
        if aside is not None:
            _move_aside(store, aside)
        part.replace(store)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync(store.parent)
    return manifest, aside


def _copy_backup(backup: Path, part: Path) -> None:
    try:
        shutil.copyfile(backup, part)
    except OSError as error:
        if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
            raise
        # the library names the file that it read
        raise OSError(error.errno, os.strerror(error.errno), str(part.parent)) from error


def _move_aside(store: Path, aside: Path) -> None:
    """Keep a store, with the journal that a damaged one may still have, under another name.

    The journal goes first: beside a restored store SQLite would read its commits into that. The store itself stays
    under its name, too, where the file system can do so, until the restored one takes its place.
    """
    for more in JOURNALS:
        with suppress(FileNotFoundError):
            _beside(store, more).replace(_beside(aside, more))
    sync(store.parent)
    try:
        aside.hardlink_to(store)
    except OSError:
        store.replace(aside)


def file_digest(path: Path) -> str:
    digest = sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _check_digest(copy: Path, manifest: Manifest) -> None:
    if file_digest(copy) != manifest.sha256:
        raise Invalid("backup_corrupt", "the backup changed while it was read", advice="try again")


def _check_sound(copy: sqlite3.Connection, source: Path) -> None:
    problems = [text for (text,) in copy.execute("PRAGMA integrity_check") if text != "ok"]
    if problems:
        raise _damage_error(source, problems[0])


def _damage_error(source: Path, problem: str) -> Invalid:
    detail = f"{source} is damaged: {' '.join(problem.split())}"
    return Invalid("backup_store_damaged", detail, advice="`patra verify` says what; no backup was written")


@contextmanager
def copy_errors(source: Path, part: Path) -> Generator[None]:
    """What keeps a store from being copied, as errors that say where."""
    try:
        with translate_errors():
            yield
    except StoreUnavailable as error:
        code = getattr(error.__cause__, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL:  # the store itself is only read
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(part.parent)) from error
        if code in {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}:
            raise _damage_error(source, str(error.__cause__)) from error
        raise


def _check_unused(store: Path) -> None:
    """SQLite leaves the WAL mode only when nobody else has the store open; the WAL has gone into the file then."""
    try:
        with closing(sqlite3.connect(store, timeout=0)) as connection:
            connection.execute("PRAGMA journal_mode=DELETE").fetchall()
    except sqlite3.OperationalError as error:
        detail = f"another process has {store} open: {error}"
        raise Invalid("restore_store_in_use", detail, advice="stop every Patra on this store first") from error
    except sqlite3.DatabaseError:
        return  # it is damaged, which is why it is replaced


def _beside(store: Path, more: str) -> Path:
    return store.with_name(store.name + more)


def _migrations(copy: sqlite3.Connection) -> list[str]:
    if not copy.execute("SELECT 1 FROM sqlite_master WHERE name = 'krn_migration'").fetchone():
        return []
    found = copy.execute("SELECT package, number FROM krn_migration ORDER BY package, number")
    return [f"{package} {number:04}" for package, number in found]


def _row_counts(copy: sqlite3.Connection) -> dict[str, int]:
    tables = copy.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
    )
    names = [name for (name,) in tables.fetchall()]
    return {name: copy.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in names}
