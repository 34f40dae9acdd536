"""Copies of a PostgreSQL store: every table as of one snapshot while others write; and the way back into an empty one.

The file is a ZIP archive: `TABLE.copy.zst` holds what COPY wrote, as text, compressed, and `contents.json` says what
there is. The tables themselves are not described: the migrations make them again, as far as the store had them, and
they are append-only. So neither `pg_dump` nor a superuser is needed, and any release from that of the store on can
restore it.
"""

import zipfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import IO

import msgspec
import zstandard

import patra
from patra.app.access.actor import Actor
from patra.app.access.audit import audit
from patra.app.backup import Manifest, read_manifest, require_database, write_backup
from patra.app.integrity import Damage, Verified
from patra.app.wiring import packages
from patra.attribution.history.log_partitions import LOG
from patra.kernel.clock import Clock, format_instant
from patra.kernel.db import Database, Tx
from patra.kernel.db.migrate import Applied, applied_migrations, make_tables, table_names
from patra.kernel.db.partitions import make_for_copy
from patra.kernel.errors import Invalid

CONTENTS = "contents.json"
CHUNK_BYTES = 1 << 20
MAX_CONTENTS_BYTES = 16 << 20
ENCRYPTED = 0x1
DAMAGES = (LookupError, EOFError, ValueError, RuntimeError, OSError, zipfile.BadZipFile, zstandard.ZstdError)
"""What the libraries raise for bytes that are not as they were written."""


class TableContent(msgspec.Struct, frozen=True, kw_only=True):
    """A table in the archive; the digest is that of what COPY wrote."""

    name: str
    columns: list[str]
    rows: int
    sha256: str


class Contents(msgspec.Struct, frozen=True, kw_only=True):
    tables: list[TableContent]
    """In an order in which they can be filled."""
    sequences: dict[str, int]
    migrations: list[Applied]


def back_up(db: Database, target: Path, clock: Clock) -> Manifest:
    """Write a copy of the store as of one moment, durable, and its manifest; a copy that is there has its manifest."""

    def write(part: Path) -> Manifest:
        has_log = any(name.startswith("patra.attribution ") for name in db.read(_migrations))
        manifest = db.read(lambda tx: _write(tx, part, clock, has_log=has_log))
        # COPY finds a table by its name of now: one that a migration has put in its place has no rows of the snapshot
        if db.read(_migrations) != manifest.migrations:
            raise Invalid("backup_migrated", "the store was migrated while it was copied", advice="take it again")
        return manifest

    return write_backup(target, write)


def _migrations(tx: Tx) -> list[str]:
    return [f"{one.package} {one.number:04}" for one in applied_migrations(tx, packages())]


def _write(tx: Tx, part: Path, clock: Clock, *, has_log: bool) -> Manifest:
    """Runs again from the start where the connection was lost."""
    from patra.kernel.db.postgres_copy import sequences, tables  # noqa: PLC0415  (an extra: psycopg)

    if has_log:  # before the snapshot is taken: no partition of it is dropped that the snapshot has rows of
        tx.script(f"LOCK TABLE {LOG.name} IN ACCESS SHARE MODE")
    known = packages()
    migrations = applied_migrations(tx, known)
    if not migrations:
        raise Invalid("backup_no_store", "the database has no tables of Patra", place="store.url")
    ours = table_names(known, "postgres")
    found, others = tables(tx, ours)
    with zipfile.ZipFile(part, "w") as archive:
        copied = [_write_table(tx, archive, one.name, one.columns) for one in found]
        contents = Contents(tables=copied, sequences=sequences(tx, ours), migrations=migrations)
        archive.writestr(CONTENTS, msgspec.json.encode(contents))
    return Manifest(
        database="postgres",
        patra=patra.__version__,
        created_at=format_instant(clock.now()),
        size_bytes=0,
        sha256="",
        migrations=[f"{one.package} {one.number:04}" for one in migrations],
        rows={one.name: one.rows for one in sorted(copied, key=lambda one: one.name)},
        left_out=others,
    )


def _write_table(tx: Tx, archive: zipfile.ZipFile, name: str, columns: list[str]) -> TableContent:
    from patra.kernel.db.postgres_copy import CopiedTable, copy_out  # noqa: PLC0415

    digest, rows = sha256(), 0
    with (
        archive.open(_member(name), "w", force_zip64=True) as member,
        zstandard.ZstdCompressor(level=1, write_checksum=True).stream_writer(member, closefd=False) as compressed,
    ):

        def write(block: bytes) -> None:
            nonlocal rows
            digest.update(block)
            rows += block.count(b"\n")  # one ends each row; those in values are escaped
            compressed.write(block)

        copy_out(tx, CopiedTable(name=name, columns=columns), write)
    return TableContent(name=name, columns=columns, rows=rows, sha256=digest.hexdigest())


def restore(backup: Path, db: Database, clock: Clock, actor: Actor) -> Manifest:
    """Fill an empty database with a backup, in one transaction: it is there whole afterwards, or still empty."""
    manifest = read_manifest(backup)
    require_database(manifest, "postgres")
    detail = {"sha256": manifest.sha256, "created_at": manifest.created_at}

    def work(tx: Tx) -> None:
        with _archive(backup) as archive:
            _fill(tx, archive)
        if any(name.startswith("patra.app ") for name in manifest.migrations):
            audit(tx, actor, "store.restore", "store", detail, clock.now())

    db.run(work)
    return manifest


def _fill(tx: Tx, archive: zipfile.ZipFile) -> None:
    from patra.kernel.db import postgres_copy as copies  # noqa: PLC0415

    if there := copies.relation_names(tx):
        raise Invalid(
            "restore_store_exists",
            f"the database is not empty: it has {there[0]} and {len(there) - 1} more",
            place="store.url",
            advice="create another database, name it in store.url, and restore into that",
        )
    contents = _contents(archive)
    make_tables(tx, packages(), contents.migrations)
    made, _ = copies.tables(tx, table_names(packages(), "postgres"))
    if {one.name: sorted(one.columns) for one in made} != {one.name: sorted(one.columns) for one in contents.tables}:
        raise Invalid("backup_corrupt", "the backup's tables are not those that its migrations make")
    copies.empty_tables(tx, made)  # a migration may have written rows, which are in the backup as well
    for table in contents.tables:
        if table.name == LOG.name:
            make_for_copy(tx, LOG, rows=table.rows, last=contents.sequences.get(f"{LOG.name}.{LOG.key}", 0))
        blocks = _blocks(archive, table)
        copies.copy_in(tx, copies.CopiedTable(name=table.name, columns=table.columns), blocks)
    copies.set_sequences(tx, contents.sequences)


def is_archive(file: Path) -> bool:
    """Whether a file is a backup of a PostgreSQL store, as far as its first bytes tell."""
    with file.open("rb") as opened:
        return opened.read(2) == b"PK"


def verify(backup: Path) -> Verified:
    """Read every table of a backup, and say which is not as it was written."""
    rows: dict[str, int] = {}
    damages: list[Damage] = []
    try:
        with _archive(backup) as archive:
            for table in sorted(_contents(archive).tables, key=lambda one: one.name):
                rows[table.name] = table.rows
                try:
                    for _ in _blocks(archive, table):
                        pass
                except Invalid as error:
                    damages.append(Damage(table=table.name, key="", detail=error.detail))
    except Invalid as error:
        damages.append(Damage(table="(file)", key="", detail=str(error)))
    return Verified(rows=rows, damages=damages)


@contextmanager
def _archive(backup: Path) -> Generator[zipfile.ZipFile]:
    try:
        opened = zipfile.ZipFile(backup)
    except DAMAGES as error:
        raise Invalid("backup_corrupt", f"the archive cannot be read: {error}") from error
    with opened:
        yield opened


def _open_member(archive: zipfile.ZipFile, name: str, max_bytes: int | None = None) -> IO[bytes]:
    """A file of the archive, which we store as it is; what another program compressed could be of any size."""
    found = archive.getinfo(name)
    if found.compress_type != zipfile.ZIP_STORED or found.flag_bits & ENCRYPTED:
        raise ValueError(f"{name} is not stored as Patra does it")
    if max_bytes is not None and found.file_size > max_bytes:
        raise ValueError(f"{name} has {found.file_size} bytes")
    return archive.open(found)


def _contents(archive: zipfile.ZipFile) -> Contents:
    try:
        with _open_member(archive, CONTENTS, MAX_CONTENTS_BYTES) as member:
            return msgspec.json.decode(member.read(), type=Contents)
    except (*DAMAGES, msgspec.DecodeError) as error:
        raise Invalid("backup_corrupt", f"the list of what is in the backup cannot be read: {error}") from error


def _blocks(archive: zipfile.ZipFile, table: TableContent) -> Iterator[bytes]:
    """What COPY wrote; raises Invalid behind the last block when it is not that, so nothing of it is kept."""
    digest = sha256()
    try:
        with _open_member(archive, _member(table.name)) as member, _reader(member) as reader:
            while block := reader.read(CHUNK_BYTES):
                digest.update(block)
                yield block
    except DAMAGES as error:
        raise Invalid("backup_corrupt", f"{table.name} cannot be read: {error}") from error
    if digest.hexdigest() != table.sha256:
        raise Invalid("backup_corrupt", f"{table.name} is not as it was written: its sha256 differs")


def _reader(member: IO[bytes]) -> zstandard.ZstdDecompressionReader:
    return zstandard.ZstdDecompressor().stream_reader(member)


def _member(table: str) -> str:
    return f"{table}.copy.zst"
