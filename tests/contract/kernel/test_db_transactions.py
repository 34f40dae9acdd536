"""What a transaction promises, on both databases."""

import contextlib
import threading
from typing import Any

import pytest

from patra.kernel.db import Database, Tx, open_database
from patra.kernel.db.queries import Statement, statement
from patra.kernel.errors import Permanent, StoreBusy, StoreUnavailable
from tests.contract.kernel.tables import COUNT, add, create_thing, names


class StopError(Exception):
    pass


def test_what_returns_is_committed(db: Database):
    def work(tx):
        add(tx, "a")
        return "answer"

    assert db.run(work) == "answer"
    assert names(db) == ["a"]


def test_what_raises_is_undone_and_raised_as_it_was(db: Database):
    def work(tx):
        add(tx, "a")
        raise StopError("why")

    with pytest.raises(StopError, match="why") as caught:
        db.run(work)
    assert caught.value.__cause__ is None
    assert names(db) == []


def test_text_in_the_place_of_a_statement_is_refused_with_how_to_make_one(db: Database):
    text: Any = "INSERT INTO thing (name) VALUES ('a')"
    for act in ("execute", "fetch", "fetch_one", "fetch_dicts"):
        with pytest.raises(TypeError, match=r"made once by patra\.statement"):
            db.run(lambda tx, act=act: getattr(tx, act)(text))
    db.run(lambda tx: add(tx, "b"))
    assert names(db) == ["b"]


def test_a_transaction_goes_on_after_a_failed_one(db: Database):
    with pytest.raises(ZeroDivisionError):
        db.run(lambda tx: 1 // 0)
    db.run(lambda tx: add(tx, "a"))
    assert names(db) == ["a"]


def test_a_broken_constraint_is_permanent_and_undoes_the_rest(db: Database):
    db.run(lambda tx: add(tx, "a"))

    def work(tx):
        add(tx, "b")
        add(tx, "a")

    with pytest.raises(Permanent) as caught:
        db.run(work)
    assert caught.value.code == "store_integrity"
    assert names(db) == ["a"]


def test_wrong_sql_is_a_bug_and_no_outage(db: Database):
    for text in ("SELECT FROM WHERE", "SELECT * FROM no_such_table"):
        with pytest.raises(Exception, match=r"(?i)syntax|no_such_table") as caught:
            db.run(lambda tx, text=text: tx.fetch(statement("wrong", text)))
        assert not isinstance(caught.value, StoreUnavailable | StoreBusy)


@pytest.mark.parametrize("params", [None, {}, {"a": 1}])
def test_a_missing_parameter_is_a_bug_and_no_outage(db: Database, params: dict | None):
    with pytest.raises(Exception, match=r"(?i)binding|parameter|'b'") as caught:
        db.run(lambda tx: tx.fetch(statement("missing", "SELECT :a, :b"), params))
    assert not isinstance(caught.value, StoreUnavailable | StoreBusy)


def test_a_swallowed_failure_is_never_taken_for_a_commit_of_what_was_lost(db: Database):
    """PostgreSQL gives up the whole transaction, SQLite the one statement: a call that returns took effect."""
    db.run(lambda tx: add(tx, "a"))

    def work(tx):
        add(tx, "b")
        with contextlib.suppress(Exception):
            add(tx, "a")

    if db.dialect == "sqlite":
        db.run(work)
        assert names(db) == ["a", "b"]
    else:
        with pytest.raises(Permanent, match="store_aborted"):
            db.run(work)
        assert names(db) == ["a"]


def undone(tx: Tx, *names: str) -> None:
    with tx.savepoint():
        for name in names:
            add(tx, name)
        with tx.savepoint():
            add(tx, f"inside {name}")
        raise StopError


def test_a_savepoint_undoes_its_own_part_alone(db: Database):
    def work(tx):
        add(tx, "a")
        with pytest.raises(StopError):
            undone(tx, "b")
        with tx.savepoint():
            add(tx, "c")

    db.run(work)
    assert names(db) == ["a", "c"]


def test_savepoints_nest(db: Database):
    def work(tx):
        with tx.savepoint():
            add(tx, "outer")
            with pytest.raises(StopError):
                undone(tx, "inner")
            add(tx, "after")

    db.run(work)
    assert names(db) == ["after", "outer"]


def test_a_broken_constraint_in_a_savepoint_is_the_same_error_on_both_databases(db: Database):
    def work(tx):
        add(tx, "a")
        with pytest.raises(Permanent, match="store_integrity"):
            undone(tx, "b", "a")
        add(tx, "c")

    db.run(work)
    assert names(db) == ["a", "c"]


@pytest.mark.parametrize("inner", ["run", "read"])
@pytest.mark.parametrize("outer", ["run", "read"])
def test_a_transaction_inside_another_of_the_same_thread_is_refused(db: Database, outer: str, inner: str):
    def work(tx):
        getattr(db, inner)(lambda tx: tx.fetch(COUNT))

    with pytest.raises(Permanent) as caught:
        getattr(db, outer)(work)
    assert caught.value.code == "store_nested_transaction"
    assert db.read(lambda tx: tx.fetch(COUNT)) == [(0,)]


def test_another_thread_reads_while_one_writes_and_does_not_see_it(db: Database):
    db.run(lambda tx: add(tx, "a"))
    seen: list[list[str]] = []

    def work(tx):
        add(tx, "b")
        reader = threading.Thread(target=lambda: seen.append(names(db)))
        reader.start()
        reader.join(20)

    db.run(work)
    assert seen == [["a"]]
    assert names(db) == ["a", "b"]


def test_a_read_sees_one_state_from_its_first_statement_on(db: Database):
    db.run(lambda tx: add(tx, "a"))

    def work(tx):
        first = tx.fetch(COUNT)
        writer = threading.Thread(target=lambda: db.run(lambda tx: add(tx, "b")))
        writer.start()
        writer.join(20)
        return first, tx.fetch(COUNT)

    assert db.read(work) == ([(1,)], [(1,)])
    assert names(db) == ["a", "b"]


def test_a_write_in_a_read_is_refused_as_a_bug(db: Database):
    with pytest.raises(Permanent) as caught:
        db.read(lambda tx: add(tx, "a"))
    assert caught.value.code == "store_read_only"
    assert names(db) == []
    db.run(lambda tx: add(tx, "b"))
    assert names(db) == ["b"]


def test_an_in_memory_store_refuses_it_too_and_keeps_what_was_written():
    db = open_database("sqlite:///:memory:")
    create_thing(db)
    with pytest.raises(Permanent, match="store_read_only"):
        db.read(lambda tx: add(tx, "a"))
    db.run(lambda tx: add(tx, "b"))
    assert names(db) == ["b"]
    db.close()


def test_writers_of_many_threads_lose_nothing(db: Database):
    bump = statement("bump", "UPDATE thing SET n = n + 1 WHERE name = 'a'")
    db.run(lambda tx: add(tx, "a"))
    threads = [
        threading.Thread(target=lambda: [db.run(lambda tx: tx.execute(bump)) for _ in range(25)]) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert db.read(lambda tx: tx.fetch(statement("n", "SELECT n FROM thing"))) == [(200,)]


def test_more_threads_than_connections_wait_for_their_turn(database_url: str):
    db = open_database(database_url, pool_size=2)
    create_thing(db)
    threads = [threading.Thread(target=lambda i=i: db.run(lambda tx: add(tx, f"{i}"))) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(names(db)) == 16
    db.close()


def test_a_transaction_that_is_over_takes_no_more_statements(db: Database):
    leaked = [db.run(lambda tx: tx), db.read(lambda tx: tx)]
    for tx in leaked:
        with pytest.raises(Permanent) as caught:
            add(tx, "late")
        assert caught.value.code == "store_transaction_over"
    assert names(db) == []


def test_a_lost_race_is_run_again_from_the_start(db: Database):
    tries: list[int] = []

    def work(tx):
        tries.append(len(tries))
        add(tx, f"try {len(tries)}")
        if len(tries) < 3:
            raise StoreBusy("store_busy", "someone was first")

    db.run(work)
    assert names(db) == ["try 3"]


def test_a_race_that_is_always_lost_is_given_up(db: Database):
    def work(tx):
        raise StoreBusy("store_busy", "someone was first")

    with pytest.raises(StoreBusy):
        db.run(work)


def test_a_closed_store_is_unavailable_and_closing_twice_does_no_harm(database_url: str):
    db = open_database(database_url)
    db.run(lambda tx: tx.script("SELECT 1"))
    db.read(lambda tx: tx.script("SELECT 1"))
    db.close()
    db.close()
    for run in (db.run, db.read):
        with pytest.raises(StoreUnavailable):
            run(lambda tx: tx.script("SELECT 1"))


def test_the_store_has_a_clock(db: Database):
    first, second = db.run(lambda tx: (tx.server_now(), tx.server_now()))
    assert 1_700_000_000_000_000 < first <= second


def test_committed_rows_are_there_when_the_store_is_opened_again(database_url: str):
    first = open_database(database_url)
    create_thing(first)
    first.run(lambda tx: add(tx, "a"))
    first.close()
    again = open_database(database_url)
    assert names(again) == ["a"]
    again.close()


def test_what_does_not_wait_for_the_disk_is_committed_all_the_same(db: Database, database_url: str):
    db.run(lambda tx: add(tx, "a"), durable=False)
    other = open_database(database_url)
    assert names(other) == ["a"]
    other.close()
    with pytest.raises(StopError):
        db.run(lambda tx: add(tx, "b") or _stop(), durable=False)
    db.run(lambda tx: add(tx, "c"))
    assert names(db) == ["a", "c"]


def _stop():
    raise StopError


def test_only_the_commit_that_asks_for_it_does_not_wait_for_the_disk(db: Database):
    def waits(tx):
        if tx.dialect == "sqlite":
            return tx.fetch(statement("waits", "PRAGMA synchronous")) == [(2,)]
        return tx.fetch(statement("waits", "SELECT current_setting('synchronous_commit')")) != [("off",)]

    usually = db.run(waits)
    assert not db.run(waits, durable=False)
    with pytest.raises(StopError):
        db.run(lambda tx: _stop(), durable=False)
    assert db.run(waits) is usually


def test_a_call_after_the_commit_comes_when_all_can_see_it_and_never_otherwise(db: Database):
    seen = []

    def work(tx):
        add(tx, "a")
        tx.after_commit(lambda: seen.append(names(db)))
        assert seen == []

    db.run(work)
    assert seen == [["a"]]
    with pytest.raises(StopError):
        db.run(lambda tx: tx.after_commit(lambda: seen.append("undone")) or _stop())
    assert seen == [["a"]]


# ---- flows: what is written without an answer


RENAME = statement("rename", "UPDATE thing SET n = n + :by WHERE name = :name")
ADD_ALL = statement("add_all", "INSERT INTO thing (name, n) SELECT name, n FROM rows", "name text, n int")
MARK = statement("mark", "UPDATE thing SET n = rows.n FROM rows WHERE thing.name = rows.name", "name text, n int")


def numbered(db: Database) -> list[tuple]:
    return db.read(lambda tx: tx.fetch(statement("numbered", "SELECT name, n FROM thing ORDER BY name")))


def test_a_flow_writes_everything_in_order(db: Database):
    def work(tx: Tx) -> None:
        with tx.flow():
            for name in "abc":
                tx.insert("thing", [{"name": name, "n": 1}])
            tx.write(RENAME, {"name": "a", "by": 10})
            tx.write(RENAME, {"name": "b", "by": 20})
            tx.insert_tuples("thing", ("name", "n"), [("d", 1), ("e", 1)])
            tx.insert_tuples("thing", ("name", "n"), [])
            tx.write(MARK, rows=[("d", 5)])
            tx.write(MARK, rows=[("d", 6), ("e", 7)])
            tx.write(MARK, rows=[("c", 8)])
            tx.write(MARK, rows=[])
            with tx.flow():
                tx.write(RENAME, {"name": "c", "by": 100})

    db.run(work)
    assert numbered(db) == [("a", 11), ("b", 21), ("c", 108), ("d", 6), ("e", 7)]


def test_a_statement_that_is_answered_sees_what_was_written_before_it_in_a_flow(db: Database):
    def work(tx: Tx) -> list[object]:
        seen: list[object] = []
        with tx.flow():
            tx.insert("thing", [{"name": "a", "n": 1}])
            seen.append(tx.fetch(COUNT)[0][0])
            tx.insert("thing", [{"name": "b", "n": 1}])
            seen.append(tx.execute(RENAME, {"name": "b", "by": 1}))
            tx.write(RENAME, {"name": "b", "by": 1})
            seen.append(tx.fetch_dicts(statement("b", "SELECT n FROM thing WHERE name = 'b'")))
            tx.insert("thing", [{"name": "c", "n": 1}])
            tx.script("UPDATE thing SET n = 9 WHERE name = 'c'")
        seen.append(tx.fetch(COUNT)[0][0])
        return seen

    assert db.run(work) == [1, 1, [{"n": 3}], 3]
    assert numbered(db)[-1] == ("c", 9)


def test_a_flow_of_very_many_rows_is_whole(db: Database):
    def work(tx: Tx) -> None:
        with tx.flow():
            for n in range(12_000):
                tx.insert_tuples("thing", ("name", "n"), [(f"n{n}", n)])

    db.run(work)
    assert db.read(lambda tx: tx.fetch(COUNT)) == [(12_000,)]


def test_rows_given_to_a_flow_may_be_changed_afterwards(db: Database):
    def work(tx: Tx) -> None:
        with tx.flow():
            rows, params = [("a", 1)], {"name": "a", "by": 1}
            tx.insert_tuples("thing", ("name", "n"), rows)
            rows[0] = ("z", 1)
            tx.write(RENAME, params)
            params["by"] = 100

    db.run(work)
    assert numbered(db) == [("a", 2)]


@pytest.mark.parametrize("swallowed", [False, True])
def test_an_error_in_a_flow_lets_nothing_be_committed(db: Database, swallowed: bool):
    """Whichever call gets the error, and even if it swallows it."""
    db.run(lambda tx: add(tx, "a"))

    def work(tx: Tx) -> None:
        with tx.flow():
            tx.insert("thing", [{"name": "b", "n": 1}])
            with contextlib.suppress(Exception) if swallowed and db.dialect == "postgres" else contextlib.nullcontext():
                tx.insert("thing", [{"name": "a", "n": 1}])
                tx.fetch(COUNT)
            tx.insert("thing", [{"name": "c", "n": 1}])

    with pytest.raises(Permanent) as caught:
        db.run(work)
    assert caught.value.code == "store_integrity"
    assert names(db) == ["a"]


def test_a_value_that_the_store_cannot_hold_is_not_lost_in_a_flow_without_a_word(db: Database):
    def work(tx: Tx) -> None:
        with tx.flow():
            tx.insert("thing", [{"name": "b", "n": 1}, {"name": object(), "n": 1}])
            with contextlib.suppress(Exception):
                tx.fetch(COUNT)

    with pytest.raises(Exception, match=r"(?i)type|object|not supported"):
        db.run(work)
    assert names(db) == []


def test_whoever_goes_on_after_a_flow_that_raised_cannot_commit_the_rest(db: Database):
    if db.dialect == "sqlite":
        pytest.skip("nothing is kept back on SQLite")

    def work(tx: Tx) -> None:
        with contextlib.suppress(StopError), tx.flow():
            tx.insert("thing", [{"name": "a", "n": 1}])
            raise StopError

    with pytest.raises(StopError):
        db.run(work)
    assert names(db) == []


def test_a_savepoint_in_a_flow_undoes_its_own_and_nothing_else(db: Database):
    def work(tx: Tx) -> None:
        with tx.flow():
            tx.insert("thing", [{"name": "a", "n": 1}])
            with contextlib.suppress(Permanent), tx.savepoint():
                tx.insert("thing", [{"name": "b", "n": 1}])
                tx.insert("thing", [{"name": "a", "n": 1}])
            tx.insert("thing", [{"name": "c", "n": 1}])

    db.run(work)
    assert names(db) == ["a", "c"]


def test_a_large_set_that_was_sent_ahead_is_in_order_with_what_follows(db: Database):
    many = [(f"n{n}", n) for n in range(500)]

    def work(tx: Tx) -> list[tuple]:
        with tx.flow():
            tx.write(RENAME, {"name": "n1", "by": 1000})
            tx.insert("thing", [{"name": "first", "n": 1}])
            tx.write(ADD_ALL, rows=many)
            tx.write(RENAME, {"name": "n1", "by": 100})
            tx.write(MARK, rows=[(name, n + 1) for name, n in many[200:]])
            tx.write(RENAME, {"name": "n300", "by": 1000})
        return tx.fetch(COUNT)

    assert db.run(work) == [(501,)]
    assert {name: n for name, n in numbered(db) if name in {"n1", "n2", "n299", "n300"}} == {
        "n1": 101,
        "n2": 2,
        "n299": 300,
        "n300": 1301,
    }


@pytest.mark.parametrize("raised", [False, True])
def test_an_error_of_a_set_that_was_sent_ahead_lets_nothing_be_committed(db: Database, raised: bool):
    db.run(lambda tx: add(tx, "n7"))

    def work(tx: Tx) -> None:
        with tx.flow():
            tx.write(ADD_ALL, rows=[(f"n{n}", n) for n in range(500)])
            if raised:
                raise StopError
            tx.write(RENAME, {"name": "n1", "by": 1})

    with pytest.raises((Permanent, StopError)):
        db.run(work)
    assert numbered(db) == [("n7", 0)]
    db.run(lambda tx: add(tx, "after"))
    assert names(db) == ["after", "n7"]


# ---- claims: rows that nobody has written yet


CLAIM = Statement(
    name="claim",
    text={
        "sqlite": f"{ADD_ALL.text['sqlite']} WHERE true ON CONFLICT (name) DO NOTHING",
        "postgres": ADD_ALL.text["postgres"],
    },
    rows=ADD_ALL.rows,
)


@pytest.mark.parametrize("size", [1, 2, 300])
@pytest.mark.parametrize("flowing", [False, True])
def test_a_claim_that_comes_second_is_decided_again_on_what_the_first_left(db: Database, size: int, flowing: bool):
    db.run(lambda tx: add(tx, "n0", 5))
    seen: list[int] = []

    def work(tx: Tx) -> None:
        seen.append(tx.fetch(COUNT)[0][0])
        tx.insert("thing", [{"name": f"try{len(seen)}", "n": 0}])
        names = [f"n{n}" for n in range(0 if len(seen) == 1 else 1, size + 1)]  # the first one was not seen at first
        with tx.flow() if flowing else contextlib.nullcontext():
            tx.claim(CLAIM, rows=[(name, 1) for name in names[:size]])

    db.run(work)
    assert seen == [1, 1]
    assert numbered(db) == sorted([("n0", 5), ("try2", 0), *((f"n{n}", 1) for n in range(1, size + 1))])


def test_a_claim_of_nothing_is_granted(db: Database):
    db.run(lambda tx: tx.claim(CLAIM, rows=[]))
    assert names(db) == []


def test_a_claim_that_would_pass_over_what_is_taken_is_refused(db: Database):
    if db.dialect == "sqlite":
        pytest.skip("SQLite counts what it wrote")
    passing = statement("passing", CLAIM.text["sqlite"], "name text, n int")
    with pytest.raises(ValueError, match="passing"):
        db.run(lambda tx: tx.claim(passing, rows=[("a", 1)]))


def test_what_a_broken_flow_left_undone_is_not_taken_for_done(database_url: str):
    """A statement that the database was to prepare behind one that failed is not prepared."""
    alone = open_database(database_url, pool_size=1)
    create_thing(alone)
    alone.run(lambda tx: add(tx, "taken"))

    def work(tx: Tx, name: str) -> None:
        with tx.flow():
            tx.claim(CLAIM, rows=[(name, 1), (f"{name} too", 1)])
            tx.write(MARK, rows=[(name, 2), (f"{name} too", 3)])
            tx.write(RENAME, {"name": name, "by": 10})

    for n in range(20):
        tries = iter(["taken", f"n{n}"])
        alone.run(lambda tx, tries=tries: work(tx, next(tries)))
    assert len(numbered(alone)) == 41
    alone.close()
