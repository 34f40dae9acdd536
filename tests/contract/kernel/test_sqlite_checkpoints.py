"""SQLite: committed pages are carried from the WAL into the file by a thread behind the writer."""

import threading
from pathlib import Path

import pytest

from patra.kernel.db import open_database
from patra.kernel.db.queries import statement
from patra.kernel.db.sqlite import CHANGES_BEHIND, SQLiteDatabase

COUNT = statement("count", "SELECT count(*) FROM thing")


def checkpointers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "sqlite checkpointer"]


def opened(url: str) -> SQLiteDatabase:
    db = open_database(url)
    assert isinstance(db, SQLiteDatabase)
    db.run(lambda tx: tx.script("CREATE TABLE IF NOT EXISTS thing (n INTEGER PRIMARY KEY)"))
    return db


def add(db: SQLiteDatabase, first: int, count: int) -> None:
    db.run(lambda tx: tx.insert_tuples("thing", ("n",), [(n,) for n in range(first, first + count)]))


def test_who_writes_little_has_no_thread(tmp_path: Path):
    before = len(checkpointers())
    db = opened(f"sqlite:///{tmp_path / 'small.db'}")
    add(db, 0, 10)
    assert len(checkpointers()) == before
    db.close()


def test_who_writes_much_has_one_and_it_ends_with_the_store(tmp_path: Path):
    before = len(checkpointers())
    db = opened(f"sqlite:///{tmp_path / 'large.db'}")
    for turn in range(5):
        add(db, turn * CHANGES_BEHIND, CHANGES_BEHIND)
    assert len(checkpointers()) == before + 1
    assert db.read(lambda tx: tx.fetch(COUNT)) == [(5 * CHANGES_BEHIND,)]
    db.close()
    assert len(checkpointers()) == before
    again = opened(f"sqlite:///{tmp_path / 'large.db'}")
    assert again.read(lambda tx: tx.fetch(COUNT)) == [(5 * CHANGES_BEHIND,)]
    again.close()


def test_a_store_in_memory_has_none():
    before = len(checkpointers())
    db = opened("sqlite:///:memory:")
    add(db, 0, 2 * CHANGES_BEHIND)
    assert len(checkpointers()) == before
    db.close()


def test_a_commit_holds_although_no_thread_can_be_started_and_the_next_one_starts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    before = len(checkpointers())
    db = opened(f"sqlite:///{tmp_path / 'exhausted.db'}")

    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as exhausted:
        exhausted.setattr(threading.Thread, "start", refused)
        add(db, 0, CHANGES_BEHIND)
    assert db.read(lambda tx: tx.fetch(COUNT)) == [(CHANGES_BEHIND,)]
    assert len(checkpointers()) == before
    add(db, CHANGES_BEHIND, 1)
    assert len(checkpointers()) == before + 1
    db.close()


def test_a_commit_waits_for_the_disk_again_after_one_that_did_not(tmp_path: Path):
    db = opened(f"sqlite:///{tmp_path / 'disk.db'}")
    waits = statement("waits", "PRAGMA synchronous")
    seen = [db.run(lambda tx: tx.fetch(waits), durable=durable) for durable in (True, False, True)]
    assert [value for [(value,)] in seen] == [2, 1, 2]
    db.close()
