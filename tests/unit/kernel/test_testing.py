"""The tools of the tests are tested too."""

import subprocess
import sys

import pytest

from patra.kernel.clock import SECOND
from patra.kernel.db import open_database
from patra.kernel.db.queries import statement
from patra.kernel.errors import StoreBusy, StoreUnavailable
from patra.kernel.testing import ManualClock
from tests.support.faults import FaultyDatabase, InjectedFault, kill_hard

MAKE = "CREATE TABLE t (a INTEGER PRIMARY KEY)"
ADD = statement("add", "INSERT INTO t (a) VALUES (:a)")
ALL = statement("all", "SELECT a FROM t ORDER BY a")
ECHO = statement("echo", "SELECT n FROM rows", "n int")


@pytest.fixture
def inner():
    db = open_database("sqlite:///:memory:")
    db.run(lambda tx: tx.script(MAKE))
    yield db
    db.close()


def work(tx):
    tx.execute(ADD, {"a": 1})
    tx.fetch(ALL)
    tx.fetch_dicts(ALL)
    tx.fetch_one(ALL)
    tx.fetch(ECHO, rows=[(1,)])
    tx.insert("t", [{"a": 2}])
    tx.insert_absent("t", [{"a": 2}], key=("a",))
    tx.lookup("t", columns=("a",), key=("a",), keys=[(1,)])
    with tx.savepoint():
        tx.script("INSERT INTO t (a) VALUES (3)")
    tx.server_now()


def test_a_clock_stands_still_until_it_is_moved():
    clock = ManualClock(5)
    assert (clock.now(), clock.now()) == (5, 5)
    clock.advance(2 * SECOND)
    assert clock.now() == 2 * SECOND + 5
    clock.set(1)
    assert clock.now() == 1


def test_without_a_fault_it_is_the_store_itself_and_counts_every_step(inner):
    db = FaultyDatabase(inner)
    db.run(work)
    assert db.steps == 10 + 2
    assert db.read(lambda tx: tx.fetch(ALL)) == [(1,), (2,), (3,)]
    assert db.steps == 13
    assert (db.dialect, db.url) == ("sqlite", inner.url)


def test_it_fails_at_each_step_once_and_only_the_last_leaves_something(inner):
    for n in range(1, 13):
        db = FaultyDatabase(inner, fail_at=n)
        with pytest.raises(InjectedFault, match=f"step {n}:") as caught:
            db.run(work)
        assert isinstance(caught.value, StoreUnavailable)
        assert len(inner.read(lambda tx: tx.fetch(ALL))) == (3 if n == 12 else 0)


def test_after_its_fault_it_works(inner):
    db = FaultyDatabase(inner, fail_at=1)
    with pytest.raises(InjectedFault):
        db.run(work)
    db.run(work)
    assert len(inner.read(lambda tx: tx.fetch(ALL))) == 3


def test_a_busy_fault_is_run_again_by_the_store(inner):
    db = FaultyDatabase(inner, fail_at=4, fault=lambda place: StoreBusy("store_busy", place))
    db.run(work)
    assert db.steps == 4 + 12
    assert len(inner.read(lambda tx: tx.fetch(ALL))) == 3


def test_a_killed_process_runs_nothing_more():
    code = (
        "import sys, signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        kill_hard(process)
        assert process.returncode == -9
        kill_hard(process)
