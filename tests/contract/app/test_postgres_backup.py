"""A PostgreSQL store under load is copied as of one moment, and is the same store where it was restored."""

import threading
import zipfile
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard

from patra.app import postgres_backup
from patra.app.access.actor import command_line_actor
from patra.app.backup import Manifest, file_digest, manifest_file, read_manifest
from patra.app.integrity import verify as verify_bytes
from patra.app.postgres_backup import CONTENTS, back_up, restore, verify
from patra.app.wiring import packages
from patra.attribution.commit import commit
from patra.attribution.intake.batch import read_batch
from patra.attribution.settlement.counts import settle
from patra.attribution.verify import verify as verify_attribution
from patra.kernel.clock import DAY
from patra.kernel.db import Database, migrate, open_database, pending_migrations
from patra.kernel.db.migrate import table_names
from patra.kernel.db.postgres_copy import copy_out, sequences, tables
from patra.kernel.db.queries import statement
from patra.kernel.errors import Invalid, MigrationMismatch
from patra.kernel.testing import ManualClock
from tests.conftest import schema_of_its_own
from tests.contract.app.test_ingest_wiring import process
from tests.unit.attribution.said import T0, at, envelope, event

CLOCK = ManualClock(T0)
OURS = table_names(packages(), "postgres")
NEWEST = statement(
    "newest_migration",
    "SELECT package, number, name, checksum, applied_at FROM krn_migration ORDER BY package, number DESC LIMIT 1",
)
BATCHES = statement("count_batches", "SELECT count(*) FROM att_log WHERE kind = 'batch'")


@contextmanager
def empty_database(server: str) -> Generator[Database]:
    with schema_of_its_own(server) as url, closing(open_database(url)) as db:
        yield db


def send(db: Database, number: int, day: int) -> None:
    """One batch: an impression and its click."""
    keys = {"eventAt": at(day * 86400), "renderAttemptId": f"r{number}"}
    events = [event("impression", **keys), event("click", **keys)]
    body = msgspec.json.encode(envelope(*events, batch=f"b{number}"))
    commit(db, [read_batch(body, T0 + day * DAY)])


@pytest.fixture(scope="module")
def source(postgres_server: str) -> Iterator[Database]:
    """A store with facts, a finished harvest and its events on the bus."""
    with empty_database(postgres_server) as db:
        migrate(db, packages())
        with process(db) as p:
            p.w.trigger()
            p.w.drain()
            p.turns("ingest.relay")
        for number in range(3):
            send(db, number, day=0)
        yield db


def counted(db: Database, day: int) -> tuple[int, int]:
    found = db.read(lambda tx: settle(tx, T0 + day * DAY, T0 + (day + 1) * DAY, "app"))
    return found.impressions, found.clicks


def content(db: Database) -> dict[str, str]:
    """Every table with a digest of all its rows."""

    def digests(tx: Any) -> dict[str, str]:
        found: dict[str, str] = {}
        for table in tables(tx, OURS)[0]:
            blocks: list[bytes] = []
            copy_out(tx, table, blocks.append)
            found[table.name] = sha256(b"".join(sorted(b"".join(blocks).splitlines(keepends=True)))).hexdigest()
        return found

    return db.read(digests)


def test_a_backup_under_load_is_one_moment_and_settles_the_same_where_it_is_restored(
    source: Database, postgres_server: str, tmp_path: Path
) -> None:
    answered, stop, begun = 0, threading.Event(), threading.Event()

    def write() -> None:
        nonlocal answered
        for number in count(100):
            send(source, number, day=1)
            answered += 1
            begun.set()
            if stop.is_set():
                return

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert begun.wait(60)
        before = answered
        manifest = back_up(source, tmp_path / "copy", CLOCK)
    finally:
        stop.set()
        writer.join(60)
    assert verify(tmp_path / "copy").rows == manifest.rows

    with empty_database(postgres_server) as db:
        assert restore(tmp_path / "copy", db, CLOCK, command_line_actor()) == manifest
        (batches,) = db.read(lambda tx: tx.fetch(BATCHES)[0])
        assert before <= batches - 3 <= answered
        assert counted(db, 0) == counted(source, 0) == (3, 3)
        assert counted(db, 1) == (batches - 3, batches - 3)
        assert verify_attribution(db, CLOCK).findings == []
        assert verify_bytes(db).damages == []
        send(db, 10_000, day=2)  # its numbers go on behind those of the backup
        assert counted(db, 2) == (1, 1)


def test_every_table_and_number_comes_back_and_triggers_count_nothing_twice(
    source: Database, postgres_server: str, tmp_path: Path
) -> None:
    manifest = back_up(source, tmp_path / "copy", CLOCK)
    assert manifest.database == "postgres"
    assert manifest.rows["ing_record"] > 0
    assert manifest.rows["bus_event"] > 0
    with empty_database(postgres_server) as db:
        restore(tmp_path / "copy", db, CLOCK, command_line_actor())
        assert pending_migrations(db, packages()) == []
        audited = {"app_audit"}  # the restore itself
        here, there = content(db), content(source)
        assert {name for name in here | there if here.get(name) != there.get(name)} == audited
        last, now = (one.read(lambda tx: sequences(tx, OURS)) for one in (source, db))
        assert {name: last[name] for name in last if not name.startswith("app_audit")} == {
            name: now[name] for name in now if not name.startswith("app_audit")
        }
        with pytest.raises(Invalid) as caught:
            restore(tmp_path / "copy", db, CLOCK, command_line_actor())
        assert caught.value.code == "restore_store_exists"


def test_tables_of_others_are_named_and_not_copied(source: Database, tmp_path: Path) -> None:
    source.run(lambda tx: tx.script("CREATE TABLE orders (id BIGSERIAL PRIMARY KEY)"))
    source.run(lambda tx: tx.script("CREATE TABLE parts (id BIGINT PRIMARY KEY, of_order BIGINT REFERENCES orders)"))
    source.run(lambda tx: tx.script("ALTER TABLE orders ADD COLUMN first_part BIGINT REFERENCES parts"))
    try:
        manifest = back_up(source, tmp_path / "copy", CLOCK)
        numbers = source.read(lambda tx: sequences(tx, OURS))
    finally:
        source.run(lambda tx: tx.script("DROP TABLE orders, parts CASCADE"))
    assert manifest.left_out == ["orders", "parts"]
    assert "orders" not in manifest.rows
    assert "orders.id" not in numbers


def test_a_store_that_is_migrated_while_it_is_copied_gives_no_backup(
    source: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = postgres_backup._write_table
    applied = source.read(lambda tx: tx.fetch(NEWEST))
    row = dict(zip(("package", "number", "name", "checksum", "applied_at"), applied[0], strict=True))
    forget = f"DELETE FROM krn_migration WHERE package = '{row['package']}' AND number = {row['number']}"

    def migrated_meanwhile(tx: Any, archive: Any, name: str, columns: list[str]) -> Any:
        with closing(open_database(source.url)) as another:
            another.run(lambda other: other.script(forget))
        return copied(tx, archive, name, columns)

    monkeypatch.setattr(postgres_backup, "_write_table", migrated_meanwhile)
    try:
        with pytest.raises(Invalid) as caught:
            back_up(source, tmp_path / "copy", CLOCK)
    finally:
        source.run(lambda tx: tx.insert("krn_migration", [row]))
    assert caught.value.code == "backup_migrated"
    assert list(tmp_path.iterdir()) == []


def test_a_store_of_a_later_release_is_not_copied_in_part(source: Database, tmp_path: Path) -> None:
    row = {"package": "patra.bus", "number": 9999, "name": "later", "checksum": "0", "applied_at": 0}
    source.run(lambda tx: tx.insert("krn_migration", [row]))
    try:
        with pytest.raises(MigrationMismatch) as caught:
            back_up(source, tmp_path / "copy", CLOCK)
    finally:
        source.run(lambda tx: tx.script("DELETE FROM krn_migration WHERE number = 9999"))
    assert caught.value.code == "migration_from_the_future"
    assert list(tmp_path.iterdir()) == []


def test_a_database_without_tables_has_nothing_to_copy(postgres_server: str, tmp_path: Path) -> None:
    with empty_database(postgres_server) as db, pytest.raises(Invalid) as caught:
        back_up(db, tmp_path / "copy", CLOCK)
    assert caught.value.code == "backup_no_store"
    assert list(tmp_path.iterdir()) == []


def rewritten(backup: Path, name: str, change: Any) -> None:
    """The archive with one member changed, and a manifest that fits it: damage that only the inside shows."""
    with zipfile.ZipFile(backup) as archive:
        members = {one: archive.read(one) for one in archive.namelist()}
    members[name] = change(members[name])
    with zipfile.ZipFile(backup, "w") as archive:
        for one, body in members.items():
            archive.writestr(one, body)
    manifest = msgspec.json.decode(manifest_file(backup).read_bytes(), type=Manifest)
    manifest_file(backup).write_bytes(
        msgspec.json.encode(msgspec.structs.replace(manifest, sha256=file_digest(backup)))
    )


def test_a_damaged_backup_is_not_restored_and_leaves_the_database_empty(
    source: Database, postgres_server: str, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    back_up(source, copy, CLOCK)
    whole = copy.read_bytes()
    copy.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(Invalid) as caught:
        read_manifest(copy)
    assert caught.value.code == "backup_corrupt"
    assert not verify(copy).sound

    copy.write_bytes(whole)
    rewritten(copy, "ing_record.copy.zst", lambda _body: zstandard.compress(b""))  # which COPY would take
    assert [one.table for one in verify(copy).damages] == ["ing_record"]
    with empty_database(postgres_server) as db:
        with pytest.raises(Invalid) as caught:
            restore(copy, db, CLOCK, command_line_actor())
        assert caught.value.code == "backup_corrupt"
        assert content(db) == {}


def test_a_backup_of_a_later_release_is_refused(source: Database, postgres_server: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    back_up(source, copy, CLOCK)

    def later(body: bytes) -> bytes:
        found = msgspec.json.decode(body)
        found["migrations"].append({"package": "patra.bus", "number": 9999, "checksum": "0"})
        return msgspec.json.encode(found)

    rewritten(copy, CONTENTS, later)
    with empty_database(postgres_server) as db:
        with pytest.raises(MigrationMismatch) as caught:
            restore(copy, db, CLOCK, command_line_actor())
        assert caught.value.code == "migration_from_the_future"
        assert content(db) == {}
