"""A backup of a store in use is one moment of it, is held to its checksum, and comes back; damage is said by table and key."""

import errno
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from patra.app import backup
from patra.app.backup import back_up, file_digest, manifest_file, read_manifest, restore, sqlite_file
from patra.app.configuration.settings import Settings, StoreSettings
from patra.app.integrity import verify
from patra.app.wiring import packages
from patra.attribution.commit import commit
from patra.attribution.intake.batch import read_batch
from patra.attribution.intake.zstd import compress_body
from patra.attribution.settlement.counts import settle
from patra.attribution.storage.decision_codec import unpack_decisions
from patra.attribution.verify import verify as verify_attribution
from patra.ingest.landing.records import pack_body
from patra.kernel.canonical import sha256_hex
from patra.kernel.clock import DAY
from patra.kernel.db import Database, migrate, open_database
from patra.kernel.db.queries import statement
from patra.kernel.db.sqlite_file import SQLiteFile
from patra.kernel.errors import Invalid, StoreCorrupt
from patra.kernel.ids import new_id
from patra.kernel.testing import ManualClock
from tests.unit.attribution.said import T0, envelope, event

CLOCK = ManualClock()
PAIR = statement("pair", "INSERT INTO att_log (place, at, kind) VALUES (:place, 0, 'tick')")
COUNT = statement("count", "SELECT count(*) FROM att_log")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    db = open_database(f"sqlite:///{tmp_path / 'patra.db'}", synchronous="NORMAL")
    migrate(db, packages())
    yield db
    db.close()


def test_a_backup_under_load_has_whole_transactions_and_misses_none_that_was_answered(
    store: Database, tmp_path: Path
) -> None:
    answered, stop = 0, threading.Event()
    begun = threading.Event()

    def write() -> None:
        nonlocal answered
        while not stop.is_set():
            store.run(lambda tx: [tx.execute(PAIR, {"place": place}) for place in (0, 1)])
            answered += 2
            begun.set()

    writer = threading.Thread(target=write)
    writer.start()
    assert begun.wait(30)
    for number in range(5):
        before = answered
        manifest = back_up(tmp_path / "patra.db", tmp_path / f"copy-{number}.db", CLOCK)
        assert manifest.rows["att_log"] >= before
        assert manifest.rows["att_log"] % 2 == 0
    stop.set()
    writer.join(30)


def test_a_backup_under_load_settles_the_same_where_it_is_restored(store: Database, tmp_path: Path) -> None:
    answered, stop, begun = 0, threading.Event(), threading.Event()

    def write() -> None:
        nonlocal answered
        while not stop.is_set():
            keys = {"renderAttemptId": f"r{answered}", "opportunityKey": f"o{answered}"}
            events = [event("impression", **keys), event("click", **keys)]
            commit(store, [read_batch(msgspec.json.encode(envelope(*events, batch=f"b{answered}")), T0)])
            answered += 1
            begun.set()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert begun.wait(60)
        before = answered
        back_up(tmp_path / "patra.db", tmp_path / "copy.db", CLOCK)
    finally:
        stop.set()
        writer.join(60)
    restore(tmp_path / "copy.db", tmp_path / "other.db", CLOCK, replace=False)
    with closing(open_database(f"sqlite:///{tmp_path / 'other.db'}")) as other:
        batches = other.read(lambda tx: tx.fetch(COUNT))[0][0]
        found = other.read(lambda tx: settle(tx, T0, T0 + DAY, "app"))
        assert before <= batches <= answered
        assert (found.impressions, found.clicks) == (batches, batches)
        assert verify_attribution(other, ManualClock(T0)).findings == []
        assert verify(other).sound


def test_a_backup_is_its_owners_alone_one_file_and_as_its_manifest_says(store: Database, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    manifest = back_up(tmp_path / "patra.db", copy, CLOCK)
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert (manifest.sha256, manifest.size_bytes) == (file_digest(copy), copy.stat().st_size)
    assert "patra.kernel 0001" in manifest.migrations
    assert read_manifest(copy) == manifest
    found = SQLiteFile(copy)
    assert verify(found).sound
    found.close()
    assert read_manifest(copy) == manifest  # looking at it changed nothing
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith(("copy", "."))) == [
        "copy.db",
        "copy.db.manifest.json",
    ]


def test_a_backup_is_never_written_over_another(store: Database, tmp_path: Path) -> None:
    back_up(tmp_path / "patra.db", tmp_path / "copy.db", CLOCK)
    with pytest.raises(Invalid) as caught:
        back_up(tmp_path / "patra.db", tmp_path / "copy.db", CLOCK)
    assert caught.value.code == "backup_exists"


def test_what_was_backed_up_comes_back_and_the_store_that_was_there_is_kept(store: Database, tmp_path: Path) -> None:
    store.run(lambda tx: tx.execute(PAIR, {"place": 0}))
    back_up(tmp_path / "patra.db", tmp_path / "copy.db", CLOCK)
    store.run(lambda tx: tx.execute(PAIR, {"place": 1}))

    for replace, code in ((False, "restore_store_exists"), (True, "restore_store_in_use")):
        with pytest.raises(Invalid) as caught:
            restore(tmp_path / "copy.db", tmp_path / "patra.db", CLOCK, replace=replace)
        assert caught.value.code == code

    store.close()
    _, aside = restore(tmp_path / "copy.db", tmp_path / "patra.db", CLOCK, replace=True)
    assert aside is not None
    for path, count in ((tmp_path / "patra.db", 1), (aside, 2)):
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("SELECT count(*) FROM att_log").fetchone() == (count,)


def test_a_changed_backup_is_not_restored(store: Database, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    back_up(tmp_path / "patra.db", copy, CLOCK)
    body = bytearray(copy.read_bytes())
    body[-1] ^= 1
    copy.write_bytes(bytes(body))
    with pytest.raises(Invalid) as caught:
        restore(copy, tmp_path / "other.db", CLOCK, replace=False)
    assert caught.value.code == "backup_corrupt"
    assert not (tmp_path / "other.db").exists()
    manifest_file(copy).unlink()
    with pytest.raises(Invalid) as caught:
        read_manifest(copy)
    assert caught.value.code == "backup_no_manifest"


def test_a_journal_without_its_store_is_not_mixed_with_a_backup(store: Database, tmp_path: Path) -> None:
    back_up(tmp_path / "patra.db", tmp_path / "copy.db", CLOCK)
    (tmp_path / "lost.db-wal").write_bytes(b"the last commits of another store")
    with pytest.raises(Invalid) as caught:
        restore(tmp_path / "copy.db", tmp_path / "lost.db", CLOCK, replace=False)
    assert caught.value.code == "restore_journal_left"


def test_commits_in_the_journal_of_a_damaged_store_stay_with_it_and_do_not_come_into_the_restored_one(
    store: Database, tmp_path: Path
) -> None:
    file, link = tmp_path / "patra.db", tmp_path / "link.db"
    store.run(lambda tx: tx.execute(PAIR, {"place": 0}))
    store.close()
    back_up(file, tmp_path / "copy.db", CLOCK)
    left = {}
    with closing(sqlite3.connect(file)) as killed:
        killed.execute("PRAGMA wal_autocheckpoint = 0")
        killed.execute("UPDATE att_log SET place = 77")
        killed.commit()
        left = {more: (tmp_path / f"patra.db{more}").read_bytes() for more in ("-wal", "-shm")}
    file.write_bytes(b"not a database" + file.read_bytes()[14:5000])
    for more, body in left.items():
        (tmp_path / f"patra.db{more}").write_bytes(body)
    link.symlink_to(file)

    _, aside = restore(tmp_path / "copy.db", link, CLOCK, replace=True)
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT place FROM att_log").fetchall() == [(0,)]
    assert aside is not None
    assert aside.read_bytes().startswith(b"not a database")
    assert aside.with_name(f"{aside.name}-wal").read_bytes() == left["-wal"]


def test_a_backup_that_ends_before_its_manifest_is_written_is_none(
    store: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "no space left on device", str(path))

    monkeypatch.setattr(backup, "write_whole", full)
    with pytest.raises(OSError, match="no space"):
        back_up(tmp_path / "patra.db", tmp_path / "copy.db", CLOCK)
    assert not (tmp_path / "copy.db").exists()
    assert list(tmp_path.glob(".*")) == []


@pytest.mark.parametrize(("offset", "length"), [(0, 16), (20 * 4096, 40 * 4096)])
def test_a_store_that_cannot_be_read_is_called_damaged_and_no_backup_is_left(
    store: Database, tmp_path: Path, offset: int, length: int
) -> None:
    store.close()
    body = bytearray((tmp_path / "patra.db").read_bytes())
    body[offset : offset + length] = b"\xff" * length
    (tmp_path / "patra.db").write_bytes(bytes(body))
    with pytest.raises(Invalid) as caught:
        back_up(tmp_path / "patra.db", tmp_path / "copy.db", CLOCK)
    assert caught.value.code == "backup_store_damaged"
    assert sorted(tmp_path.iterdir()) == [tmp_path / "patra.db"]


def test_a_backup_onto_a_full_disk_names_the_folder_that_has_no_room(store: Database, tmp_path: Path) -> None:
    """SQLite says the same where a file may have no more pages."""

    def copy(part: Path) -> Any:
        with backup.copy_errors(tmp_path / "patra.db", part), closing(sqlite3.connect(part)) as connection:
            connection.execute("PRAGMA max_page_count = 1")
            connection.execute("CREATE TABLE copied (row)")

    with pytest.raises(OSError, match="No space left") as caught:
        backup.write_backup(tmp_path / "copy.db", copy)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(tmp_path))
    assert list(tmp_path.glob("*copy.db*")) == []


def test_a_restore_onto_a_full_disk_names_the_folder_of_the_store_and_leaves_the_store_there(
    store: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    copy = tmp_path / "elsewhere" / "copy.db"
    back_up(tmp_path / "patra.db", copy, CLOCK)
    store.close()

    def full(source: Path, target: Path) -> None:
        target.write_bytes(b"half of it")
        raise OSError(errno.ENOSPC, "no space left on device", str(source), None, str(target))

    monkeypatch.setattr(backup.shutil, "copyfile", full)
    with pytest.raises(OSError, match="No space left") as caught:
        restore(copy, tmp_path / "patra.db", CLOCK, replace=True)
    assert caught.value.filename == str(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "patra.db"]


def test_what_a_killed_backup_left_is_deleted_a_day_after_it_was_last_written(store: Database, tmp_path: Path) -> None:
    old, fresh, others = (tmp_path / name for name in (f".a.db.{new_id()}", f".b.db.{new_id()}", ".profile"))
    for path in (old, tmp_path / f"{old.name}-journal", fresh, others):
        path.write_bytes(b"half of a copy")
        if path != fresh:
            os.utime(path, (0, time.time() - 25 * 3600))
    back_up(tmp_path / "patra.db", tmp_path / "copy.db", CLOCK)
    assert sorted(tmp_path.glob(".*")) == sorted([fresh, others])


def test_a_store_in_memory_is_refused() -> None:
    with pytest.raises(Invalid) as caught:
        sqlite_file(Settings(store=StoreSettings(url="sqlite:///:memory:")))
    assert caught.value.code == "backup_in_memory"


def test_a_backup_of_the_other_database_is_refused(store: Database, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    manifest = back_up(tmp_path / "patra.db", copy, CLOCK)
    other = msgspec.structs.replace(manifest, database="postgres")
    manifest_file(copy).write_bytes(msgspec.json.encode(other))
    with pytest.raises(Invalid) as caught:
        restore(copy, tmp_path / "other.db", CLOCK, replace=False)
    assert caught.value.code == "restore_other_database"
    assert not (tmp_path / "other.db").exists()


def flipped(body: bytes) -> bytes:
    place = len(body) // 2
    return body[:place] + bytes([body[place] ^ 0x10]) + body[place + 1 :]


def test_a_flipped_byte_is_found_by_table_and_key(store: Database) -> None:
    content = msgspec.json.encode({"fields": {"title": "x" * 5000}})
    rows = {
        "att_log": {"number": 7, "place": 0, "at": 0, "kind": "batch", "body": compress_body(b"[1, 2, 3]" * 50)},
        "att_decision": {"item": 9, "at": 0, "archived": 1, "body": compress_body(b"[]" + b" " * 500)},
        "ing_body": {"body_hash": sha256_hex(content), "content": pack_body(content), "size": 1, "kept_at": 0},
    }
    store.run(lambda tx: [tx.insert(table, [row]) for table, row in rows.items()])
    assert verify(store).damages == []

    for table, column in (("att_log", "body"), ("att_decision", "body"), ("ing_body", "content")):
        change = statement(f"change_{table}", f"UPDATE {table} SET {column} = :body")
        body = flipped(rows[table][column])
        store.run(lambda tx, change=change, body=body: tx.execute(change, {"body": body}))
    found = verify(store)
    assert [(one.table, one.key) for one in found.damages] == [
        ("att_log", "number=7"),
        ("att_decision", "item=9"),
        ("ing_body", f"body_hash={sha256_hex(content)}"),
    ]
    assert found.rows["att_log"] == 1


def test_every_flipped_byte_of_a_decision_is_corruption_and_no_bug() -> None:
    body = compress_body(b"[]" + b" " * 300)
    for place in range(4, len(body)):  # the first four say that it is a frame at all
        damaged = body[:place] + bytes([body[place] ^ 0x01]) + body[place + 1 :]
        with pytest.raises(StoreCorrupt) as caught:
            unpack_decisions(9, damaged)
        assert "att_decision, item=9" in caught.value.detail


def test_a_file_of_another_program_and_one_of_an_unknown_format_are_damaged_and_no_bug(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as made:
        made.execute("CREATE TABLE att_log (number INTEGER)")
    whole = other.read_bytes()
    for body in (whole, whole[:47] + b"\x09" + whole[48:]):
        other.write_bytes(body)
        with closing(SQLiteFile(other)) as found:
            assert {"att_log", "att_decision", "ing_record", "ing_body"} <= {one.table for one in verify(found).damages}


def test_a_broken_page_is_found(store: Database, tmp_path: Path) -> None:
    for place in range(50):
        store.run(lambda tx, place=place: tx.execute(PAIR, {"place": place}))
    copy = tmp_path / "copy.db"
    back_up(tmp_path / "patra.db", copy, CLOCK)
    body = bytearray(copy.read_bytes())
    body[4096 * 2 : 4096 * 40] = b"\xff" * (4096 * 38)
    copy.write_bytes(bytes(body))
    found = SQLiteFile(copy)
    assert not verify(found).sound
    found.close()
