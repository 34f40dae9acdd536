"""`advance` moves sets of rows by compare-and-set and journals what took effect, on every database."""

from collections.abc import Sequence
from enum import StrEnum

import pytest

from patra.kernel.db import Database, Row, Tx, migrate
from patra.kernel.db.queries import statement
from patra.kernel.errors import IllegalMove
from patra.kernel.machine import Machine, Move, advance, history, journal


class Job(StrEnum):
    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    DONE = "DONE"


JOB = Machine(
    "test_job",
    initial=Job.QUEUED,
    edges={
        (Job.QUEUED, "start"): Job.RUNNING,
        (Job.RUNNING, "finish"): Job.DONE,
        (Job.RUNNING, "yield"): Job.QUEUED,
        (Job.RUNNING, "beat"): Job.RUNNING,
    },
    version="v3",
)

ALL = statement("all_jobs", "SELECT job_id, status_code, ended_at FROM tst_job ORDER BY job_id")


@pytest.fixture
def store(database: Database) -> Database:
    migrate(database, ["patra.kernel"])

    def prepare(tx: Tx) -> None:
        tx.script(
            "CREATE TABLE tst_job (job_id TEXT PRIMARY KEY, status_code TEXT NOT NULL "
            f"CHECK ({JOB.check_sql('status_code')}), ended_at BIGINT)"
        )
        tx.insert("tst_job", [{"job_id": name, "status_code": "QUEUED", "ended_at": None} for name in "abc"])

    database.run(prepare)
    return database


def move(store: Database, *moves: Move, also: dict[str, int] | None = None) -> set[str]:
    return store.run(
        lambda tx: advance(tx, JOB, table="tst_job", key="job_id", column="status_code", moves=moves, also=also)
    )


def jobs(store: Database) -> Sequence[Row]:
    return store.read(lambda tx: tx.fetch(ALL))


def start(subject: str, at: int = 1) -> Move:
    return JOB.move(subject, Job.QUEUED, "start", reason="x_due", at=at)


def finish(subject: str, at: int = 2) -> Move:
    return JOB.move(subject, Job.RUNNING, "finish", reason="x_end", at=at)


def test_a_set_of_rows_moves_in_one_call(store: Database) -> None:
    assert move(store, start("a"), start("b")) == {"a", "b"}
    assert jobs(store) == [("a", "RUNNING", None), ("b", "RUNNING", None), ("c", "QUEUED", None)]


def test_a_row_that_someone_else_moved_stays_where_it_is_and_leaves_no_journal(store: Database) -> None:
    move(store, start("a", at=1))
    assert move(store, start("a", at=5), start("b", at=5)) == {"b"}
    assert [m.at for m in store.read(lambda tx: history(tx, ["a"]))] == [1]


def test_a_row_that_is_not_there_does_not_move(store: Database) -> None:
    assert move(store, start("nobody")) == set()
    assert store.read(lambda tx: history(tx, ["nobody"])) == []


def test_every_move_is_journaled_in_order_with_reason_instant_and_rule_version(store: Database) -> None:
    move(store, start("a", at=1))
    move(store, finish("a", at=2))
    assert store.read(lambda tx: history(tx, ["a"])) == [start("a", at=1), finish("a", at=2)]


def test_a_chain_of_moves_of_one_row_is_one_step_with_its_whole_journal(store: Database) -> None:
    assert move(store, start("a"), start("b"), finish("a")) == {"a", "b"}
    assert jobs(store)[0] == ("a", "DONE", None)
    assert [m.to for m in store.read(lambda tx: history(tx, ["a"]))] == ["RUNNING", "DONE"]


def test_a_chain_is_taken_whole_or_not_at_all(store: Database) -> None:
    move(store, start("a"))
    assert move(store, start("a"), finish("a")) == set()
    assert jobs(store)[0] == ("a", "RUNNING", None)


def test_a_move_that_does_not_follow_on_the_one_before_is_refused(store: Database) -> None:
    with pytest.raises(IllegalMove, match="does not follow"):
        move(store, start("a"), start("a"))
    assert jobs(store)[0] == ("a", "QUEUED", None)


def test_a_move_along_no_edge_is_refused_before_anything_is_written(store: Database) -> None:
    forged = Move(
        machine="test_job", subject="b", was="QUEUED", on="start", to="DONE", reason="x", at=1, rule_version=""
    )
    with pytest.raises(IllegalMove):
        move(store, start("a"), forged)
    assert jobs(store)[0] == ("a", "QUEUED", None)


def test_a_move_of_another_machine_is_refused(store: Database) -> None:
    other = Machine("test_other_job", initial=Job.QUEUED, edges=JOB.edges)
    with pytest.raises(IllegalMove):
        move(store, other.move("a", Job.QUEUED, "start", reason="x", at=1))


def test_other_columns_are_set_on_the_rows_that_move_and_on_no_others(store: Database) -> None:
    move(store, start("a"))
    assert move(store, finish("a"), finish("b"), also={"ended_at": 77}) == {"a"}
    assert jobs(store)[:2] == [("a", "DONE", 77), ("b", "QUEUED", None)]


def test_a_move_from_a_state_to_itself_is_a_move(store: Database) -> None:
    move(store, start("a"))
    assert move(store, JOB.move("a", Job.RUNNING, "beat", reason="x_beat", at=9)) == {"a"}


def test_no_moves_touch_nothing(store: Database) -> None:
    assert move(store) == set()


def test_ten_thousand_rows_move_and_are_journaled(store: Database) -> None:
    names = [f"n{i}" for i in range(10_000)]
    store.run(
        lambda tx: tx.insert("tst_job", [{"job_id": n, "status_code": "QUEUED", "ended_at": None} for n in names])
    )
    assert move(store, *(start(n) for n in names)) == set(names)
    assert len(store.read(lambda tx: history(tx, names))) == len(names)


def test_an_engine_may_journal_moves_that_its_own_statement_made(store: Database) -> None:
    store.run(lambda tx: journal(tx, [start("elsewhere")]))
    store.run(lambda tx: journal(tx, []))
    assert store.read(lambda tx: history(tx, ["elsewhere", "elsewhere"])) == [start("elsewhere")]


def test_the_move_and_its_journal_are_undone_together(store: Database) -> None:
    def broken(tx: Tx) -> None:
        advance(tx, JOB, table="tst_job", key="job_id", column="status_code", moves=[start("a")])
        raise RuntimeError

    with pytest.raises(RuntimeError):
        store.run(broken)
    assert jobs(store)[0] == ("a", "QUEUED", None)
    assert store.read(lambda tx: history(tx, ["a"])) == []


@pytest.mark.parametrize("name", ["tst_job; DROP TABLE tst_job", "TST", "a.b", ""])
def test_names_that_are_not_plain_are_refused(store: Database, name: str) -> None:
    with pytest.raises(ValueError):
        store.run(lambda tx: advance(tx, JOB, table=name, key="job_id", column="status_code", moves=[start("a")]))
    with pytest.raises(ValueError):
        move(store, start("a"), also={name: 1})
