"""Other processes, lost connections and servers that go away: what may be tried again is, and what is unknown is said."""

import errno
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from pathlib import Path

import psycopg
import pytest

from patra.kernel.db import Database, Tx, open_database
from patra.kernel.db.queries import statement
from patra.kernel.errors import Permanent, StoreBusy, StoreUnavailable
from tests.contract.kernel.tables import COUNT, add, create_thing, names
from tests.contract.kernel.wire import Wire
from tests.support.faults import kill_hard

BACKEND = statement("backend", "SELECT pg_backend_pid()")
TERMINATE = statement("terminate", "SELECT pg_terminate_backend(:pid)")
SLEEP = statement("sleep", "SELECT count(*) FROM (SELECT pg_sleep(1)) AS slept")
BUMP = statement("bump", "UPDATE thing SET n = n + 1 WHERE name = :name")
NOTHING = statement("nothing", "DELETE FROM thing WHERE n IN (SELECT n FROM rows) AND name = 'nobody'", "n int")
NUMBER = statement("number", "SELECT n FROM thing WHERE name = :name")

HOLD_THE_STORE = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
connection.execute("INSERT INTO thing (name) VALUES ('theirs')")
print("held", flush=True)
sys.stdin.readline()
connection.execute("COMMIT")
"""

# A fresh interpreter: a fork of the test process would share its connections and threads.
spawn = multiprocessing.get_context("spawn")


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Database]:
    db = open_database(f"sqlite:///{tmp_path / 'patra.db'}", wait=0.3)
    create_thing(db)
    yield db
    db.close()


@pytest.fixture
def other_process(sqlite: Database) -> Iterator["subprocess.Popen[bytes]"]:
    """Another process that is in the middle of a write transaction until a line is sent to it."""
    command = [sys.executable, "-c", HOLD_THE_STORE, sqlite.url.removeprefix("sqlite:///")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield process
        kill_hard(process)


@pytest.fixture
def wire(postgres_url: str) -> Iterator[Wire]:
    wire = Wire(postgres_url)
    yield wire
    wire.take_away()


@pytest.fixture
def wired(wire: Wire) -> Iterator[Database]:
    """A PostgreSQL store behind the wire."""
    db = open_database(wire.url, pool_size=4, wait=5)
    create_thing(db)
    yield db
    db.close()


def let_go(process: "subprocess.Popen[bytes]") -> None:
    assert process.stdin is not None
    process.stdin.write(b"\n")
    process.stdin.flush()


# SQLite, several processes


def test_a_store_that_another_process_holds_is_busy_for_writers_and_open_for_readers(sqlite, other_process):
    with pytest.raises(StoreBusy):
        sqlite.run(lambda tx: add(tx, "ours"))
    assert names(sqlite) == []
    let_go(other_process)
    assert other_process.wait() == 0
    sqlite.run(lambda tx: add(tx, "ours"))
    assert names(sqlite) == ["ours", "theirs"]


def test_a_writer_waits_for_another_process_to_finish(sqlite, other_process):
    patient = open_database(sqlite.url, wait=30)
    writer = threading.Thread(target=lambda: patient.run(lambda tx: add(tx, "ours")))
    writer.start()
    let_go(other_process)
    writer.join()
    assert names(patient) == ["ours", "theirs"]
    patient.close()


def test_a_process_that_is_killed_in_its_transaction_leaves_nothing_and_blocks_nobody(sqlite, other_process):
    kill_hard(other_process)
    sqlite.run(lambda tx: add(tx, "ours"))
    assert names(sqlite) == ["ours"]


def open_and_bump(url: str, times: int) -> None:
    db = open_database(url, wait=60)
    for _ in range(times):
        db.run(lambda tx: tx.execute(BUMP, {"name": "a"}))
    db.close()


def test_writers_in_several_processes_lose_nothing(database_url: str):
    db = open_database(database_url)
    create_thing(db)
    db.run(lambda tx: add(tx, "a"))
    processes = [spawn.Process(target=open_and_bump, args=(database_url, 50)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert db.read(lambda tx: tx.fetch(NUMBER, {"name": "a"})) == [(150,)]
    db.close()


def test_many_may_open_a_new_store_at_once(tmp_path: Path):
    url = f"sqlite:///{tmp_path / 'new.db'}"
    start = threading.Barrier(8)
    opened: list[Database] = []

    def open_it() -> None:
        start.wait()
        opened.append(open_database(url))

    threads = [threading.Thread(target=open_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == 8
    for db in opened:
        db.close()


def test_a_full_disk_is_an_outage_and_undoes_the_transaction(sqlite):
    def fill(tx: Tx) -> None:
        add(tx, "small")
        tx.script("PRAGMA max_page_count = 1")
        tx.insert("thing", [{"name": f"{n}", "body": b"\xff" * 4000} for n in range(100)])

    with pytest.raises(StoreUnavailable, match="full"):
        sqlite.run(fill)
    assert names(sqlite) == []
    sqlite.run(lambda tx: tx.script("PRAGMA max_page_count = 1000000"))
    sqlite.run(lambda tx: add(tx, "again"))
    assert names(sqlite) == ["again"]


def test_a_full_disk_in_a_savepoint_ends_the_whole_transaction(sqlite):
    def fill(tx: Tx) -> None:
        add(tx, "small")
        tx.script("PRAGMA max_page_count = 1")
        with tx.savepoint():
            tx.insert("thing", [{"name": f"{n}", "body": b"\xff" * 4000} for n in range(100)])

    with pytest.raises(StoreUnavailable, match="full"):
        sqlite.run(fill)
    assert names(sqlite) == []


def test_a_file_that_is_no_store_is_unavailable(tmp_path: Path):
    (tmp_path / "patra.db").write_bytes(b"something else entirely" * 100)
    with pytest.raises(StoreUnavailable, match="not a sound SQLite store"):
        open_database(f"sqlite:///{tmp_path / 'patra.db'}")


def test_a_new_store_is_its_owners_alone_and_one_that_is_there_keeps_its_rights(tmp_path: Path):
    before = os.umask(0)
    try:
        new, shared = tmp_path / "new.db", tmp_path / "shared.db"
        shared.touch(0o664)
        for file, rights in ((new, 0o600), (shared, 0o664)):
            db = open_database(f"sqlite:///{file}")
            db.run(lambda tx: tx.script("CREATE TABLE thing (n INTEGER PRIMARY KEY)"))
            there = list(tmp_path.glob(f"{file.name}*"))
            assert len(there) == 3  # with its WAL and its index
            assert {one.stat().st_mode & 0o777 for one in there} == {rights}
            db.close()
    finally:
        os.umask(before)


def test_commits_are_flushed_to_the_disk_unless_told_otherwise(tmp_path: Path):
    for synchronous, level in (("FULL", 2), ("NORMAL", 1)):
        db = open_database(f"sqlite:///{tmp_path / synchronous}.db", synchronous=synchronous)
        assert db.run(lambda tx: tx.fetch(statement("s", "PRAGMA synchronous"))) == [(level,)]
        assert db.read(lambda tx: tx.fetch(statement("j", "PRAGMA journal_mode"))) == [("wal",)]
        db.close()


# PostgreSQL, races between transactions


def test_a_deadlock_is_run_again_and_both_get_through(postgres_url: str):
    db = open_database(postgres_url)
    create_thing(db)
    db.run(lambda tx: tx.insert("thing", [{"name": "a", "n": 0}, {"name": "b", "n": 0}]))
    both_hold_one = threading.Barrier(2)
    attempts: list[str] = []

    def cross(first: str, second: str) -> None:
        def work(tx: Tx) -> None:
            again = first in attempts
            attempts.append(first)
            tx.execute(BUMP, {"name": first})
            if not again:
                both_hold_one.wait(30)
            tx.execute(BUMP, {"name": second})

        db.run(work)

    threads = [threading.Thread(target=cross, args=pair) for pair in (("a", "b"), ("b", "a"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(attempts) > 2  # PostgreSQL may pick both, one after the other
    assert db.read(lambda tx: tx.fetch(statement("n", "SELECT name, n FROM thing ORDER BY name"))) == [
        ("a", 2),
        ("b", 2),
    ]
    db.close()


def test_a_serialization_failure_is_run_again(postgres_url: str):
    db = open_database(postgres_url)
    create_thing(db)
    db.run(lambda tx: tx.insert("thing", [{"name": "a", "n": 0}]))
    other = open_database(postgres_url)
    attempts: list[int] = []

    def work(tx: Tx) -> None:
        attempts.append(1)
        tx.script("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        tx.fetch(COUNT)
        if len(attempts) == 1:
            other.run(lambda tx: tx.execute(BUMP, {"name": "a"}))
        tx.execute(BUMP, {"name": "a"})

    db.run(work)
    assert len(attempts) == 2
    assert db.read(lambda tx: tx.fetch(NUMBER, {"name": "a"})) == [(2,)]
    other.close()
    db.close()


# PostgreSQL, outages


def test_a_connection_lost_before_the_commit_is_run_again(wired: Database):
    other = open_database(wired.url)
    attempts: list[int] = []

    def work(tx: Tx) -> None:
        attempts.append(1)
        add(tx, f"attempt {len(attempts)}")
        if len(attempts) == 1:
            (pid,) = tx.fetch(BACKEND)[0]
            other.run(lambda tx: tx.fetch(TERMINATE, {"pid": pid}))
        tx.fetch(COUNT)

    wired.run(work)
    assert names(wired) == ["attempt 2"]
    other.close()


def test_a_read_whose_connection_is_lost_is_done_again(wired: Database, wire: Wire):
    attempts: list[int] = []

    def work(tx: Tx) -> list[tuple]:
        attempts.append(1)
        if len(attempts) == 1:
            wire.cut()
        return tx.fetch(COUNT)

    assert wired.read(work) == [(0,)]
    assert len(attempts) == 2


def test_one_call_gets_through_after_every_idle_connection_was_lost(wired: Database, wire: Wire):
    together = threading.Barrier(4)

    def occupy(tx: Tx) -> None:
        together.wait(30)
        tx.fetch(COUNT)

    threads = [threading.Thread(target=lambda: wired.read(occupy)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wire.cut()
    wired.run(lambda tx: add(tx, "a"))
    wire.cut()
    assert names(wired) == ["a"]


def test_a_server_that_is_away_is_an_outage_and_works_again_when_it_is_back(wired: Database, wire: Wire):
    wired.run(lambda tx: add(tx, "before"))
    wire.take_away()
    for run in (wired.run, wired.read):
        with pytest.raises(StoreUnavailable) as caught:
            run(lambda tx: tx.fetch(COUNT))
        assert caught.value.code == "store_unavailable"
    wire.bring_back()
    wired.run(lambda tx: add(tx, "after"))
    assert names(wired) == ["after", "before"]


def test_a_server_that_is_away_when_the_store_is_opened_is_found_when_it_comes(wire: Wire, postgres_url: str):
    wire.take_away()
    db = open_database(wire.url, wait=5)
    with pytest.raises(StoreUnavailable):
        db.read(lambda tx: tx.fetch(COUNT))
    wire.bring_back()
    create_thing(db)
    assert names(db) == []
    db.close()


@pytest.mark.parametrize(("cut_at", "there"), [("before the commit", []), ("after the commit", ["a"])])
def test_a_commit_without_an_answer_is_unknown_and_not_run_again(wire: Wire, postgres_url: str, cut_at, there):
    direct = open_database(postgres_url)
    create_thing(direct)
    db = open_database(wire.url, wait=5)
    wire.cut_at = cut_at
    attempts: list[int] = []

    def work(tx: Tx) -> None:
        attempts.append(1)
        add(tx, "a")

    with pytest.raises(StoreUnavailable) as caught:
        db.run(work)
    assert caught.value.code == "store_commit_unknown"
    assert len(attempts) == 1
    assert names(direct) == there
    wire.cut_at = None
    db.run(lambda tx: add(tx, "b"))
    assert names(db) == [*there, "b"]
    db.close()
    direct.close()


def test_when_all_connections_are_in_use_a_caller_waits_and_is_then_told(postgres_url: str):
    db = open_database(postgres_url, pool_size=1, wait=0.1)
    told: list[StoreUnavailable] = []

    def ask() -> None:
        try:
            db.read(lambda tx: tx.script("SELECT 1"))
        except StoreUnavailable as error:
            told.append(error)

    def work(tx: Tx) -> None:
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()

    db.run(work)
    assert "all 1 connections were in use" in str(told[0])
    ask()
    assert len(told) == 1
    db.close()


def test_the_password_of_a_store_is_in_no_message():
    db = open_database("postgresql://someone:hunter2@127.0.0.1:1/nothing")
    with pytest.raises(StoreUnavailable) as caught:
        db.run(lambda tx: tx.fetch(COUNT))
    assert "hunter2" not in str(caught.value)
    db.close()


def test_a_url_that_is_neither_is_refused_without_its_password():
    for url in ("mysql://u:hunter2@h/db", "sqlite:///", "file.db"):
        with pytest.raises(Permanent) as caught:
            open_database(url)
        assert caught.value.code == "config_store_url"
        assert "hunter2" not in str(caught.value)


# PostgreSQL, a server that is silent


def test_a_silent_server_holds_up_nobody_and_is_found_again(wire: Wire) -> None:
    db = open_database(wire.url, pool_size=4, wait=5, silent_seconds=0.2)
    create_thing(db)

    def work(tx: Tx) -> None:
        add(tx, "lost")
        wire.silent = True
        tx.fetch(COUNT)

    with pytest.raises(StoreUnavailable) as caught:
        db.run(work)
    assert caught.value.code == "store_unavailable"
    wire.silent = False
    db.run(lambda tx: add(tx, "kept"))
    assert names(db) == ["kept"]
    db.close()


def test_a_server_that_falls_silent_during_the_commit_leaves_it_unknown(wire: Wire) -> None:
    db = open_database(wire.url, pool_size=4, wait=5, silent_seconds=0.2)
    create_thing(db)

    def work(tx: Tx) -> None:
        add(tx, "perhaps")
        wire.silent = True

    with pytest.raises(StoreUnavailable) as caught:
        db.run(work)
    assert caught.value.code == "store_commit_unknown"
    wire.silent = False
    db.close()


@pytest.mark.parametrize("ahead", [False, True], ids=["between statements", "in a pipeline"])
def test_a_bounded_transaction_that_stands_still_is_ended_and_others_get_its_locks(
    postgres_url: str, ahead: bool
) -> None:
    db, other = open_database(postgres_url), open_database(postgres_url)
    create_thing(db)
    db.run(lambda tx: add(tx, "a"))
    attempts: list[int] = []

    def stand_still(tx: Tx) -> None:
        attempts.append(1)
        with tx.flow() if ahead else nullcontext():
            tx.write(BUMP, {"name": "a"})
            if ahead:  # so many are sent without waiting for the answer: the server waits for more of them
                tx.write(NOTHING, rows=[(n,) for n in range(100)])
            waiting = pool.submit(other.run, lambda tx: tx.execute(BUMP, {"name": "a"}))
            assert waiting.result(60) == 1

    with ThreadPoolExecutor(1) as pool, pytest.raises(StoreUnavailable):
        db.run(stand_still, seconds=0.3)
    assert len(attempts) == 1
    assert db.read(lambda tx: tx.fetch(NUMBER, {"name": "a"})) == [(1,)]
    assert db.run(lambda tx: tx.execute(BUMP, {"name": "a"}), seconds=60) == 1
    for one in (db, other):
        one.close()


def test_a_long_statement_on_a_server_that_answers_is_left_alone(postgres_url: str) -> None:
    db = open_database(postgres_url, pool_size=4, wait=5, silent_seconds=0.1)
    assert db.read(lambda tx: tx.fetch(SLEEP)) == [(1,)]
    db.close()


def test_idle_connections_to_a_silent_server_are_dropped(wire: Wire) -> None:
    db = open_database(wire.url, pool_size=4, wait=5, silent_seconds=0.2)
    create_thing(db)
    both = threading.Barrier(2)

    def meet(tx: Tx) -> None:
        tx.fetch(COUNT)
        both.wait(30)

    threads = [threading.Thread(target=lambda: db.read(meet)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    wire.silent = True
    with pytest.raises(StoreUnavailable):  # by the first: the second connection is not waited for
        db.read(lambda tx: tx.fetch(COUNT))
    wire.silent = False
    assert db.read(lambda tx: tx.fetch(COUNT)) == [(0,)]
    db.close()


def test_what_the_url_leaves_open_is_set_so_that_a_lost_server_is_noticed() -> None:
    from psycopg.conninfo import conninfo_to_dict

    from patra.kernel.db.liveness import with_timeouts

    one = conninfo_to_dict(with_timeouts("postgresql://u@db/x?tcp_user_timeout=7", connect_seconds=5))
    assert (one["connect_timeout"], one["tcp_user_timeout"], one["keepalives_idle"]) == ("5", "7", "10")
    assert "target_session_attrs" not in one
    many = conninfo_to_dict(with_timeouts("postgresql://u@a,b:5433/x", connect_seconds=5))
    assert many["target_session_attrs"] == "read-write"
    chosen = conninfo_to_dict(with_timeouts("postgresql://u@a,b/x?target_session_attrs=any", connect_seconds=5))
    assert chosen["target_session_attrs"] == "any"


def test_a_process_that_may_open_no_further_file_cannot_reach_its_store(
    database_url: str, monkeypatch: pytest.MonkeyPatch
):
    db = open_database(database_url)
    if db.dialect != "postgres":
        db.close()
        pytest.skip("SQLite has its files open")

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with closing(db), monkeypatch.context() as exhausted:
        exhausted.setattr(psycopg, "connect", refused)
        db._pool.drop_idle()
        with pytest.raises(StoreUnavailable, match="Too many open files"):
            db.read(lambda tx: tx.server_now())
