"""Statements on sets of rows: `rows`, insert-if-absent, upsert-if-newer and reads by a list of keys."""

import itertools
from collections.abc import Callable
from contextlib import closing

import pytest

from patra.kernel.db import Database, Tx, open_database
from patra.kernel.db.queries import Statement, statement
from patra.kernel.errors import Permanent
from tests.contract.kernel.tables import (
    ALL,
    COLUMNS,
    COUNT,
    ECHO,
    ODD_BLOBS,
    ODD_INTS,
    ODD_REALS,
    ODD_TEXTS,
    names,
    things,
)

DOUBLED = statement("doubled", "SELECT n * :by FROM rows ORDER BY n", "n int")
ADD_ALL = statement(
    "add_all",
    "INSERT INTO thing (name, n) SELECT name, n FROM rows WHERE true ON CONFLICT (name) DO NOTHING",
    "name text, n int",
)
SET_ALL = statement(
    "set_all",
    "UPDATE thing SET n = rows.n FROM rows WHERE thing.name = rows.name AND thing.n = rows.was RETURNING thing.name",
    "name text, was int, n int",
)
DROP_ALL = statement("drop_all", "DELETE FROM thing WHERE name IN (SELECT name FROM rows)", "name text")


def echo(db: Database, values: list[tuple]) -> list[tuple]:
    found = db.read(lambda tx: tx.fetch(ECHO, rows=[(place, *row) for place, row in enumerate(values)]))
    return [row[1:] for row in sorted(found)]


def odd_rows() -> list[tuple]:
    longest = max(map(len, (ODD_TEXTS, ODD_INTS, ODD_BLOBS, ODD_REALS)))
    columns = [list(itertools.islice(itertools.cycle(v), longest)) for v in (ODD_TEXTS, ODD_INTS, ODD_BLOBS, ODD_REALS)]
    return list(zip(*columns, strict=True))


def test_odd_values_come_back_from_a_set_as_they_went_in(db: Database):
    assert echo(db, odd_rows()) == odd_rows()


def test_odd_values_come_back_from_a_table_as_they_went_in(db: Database):
    rows = [(*row, 7) for row in odd_rows()]
    db.run(lambda tx: tx.insert_tuples("thing", COLUMNS, rows))
    assert sorted(things(db)) == sorted(rows)


def test_odd_values_come_back_from_parameters_as_they_went_in(db: Database):
    one = statement("one", "INSERT INTO thing (name, n, body, ratio, at) VALUES (:name, :n, :body, :ratio, :at)")
    for row in odd_rows():
        db.run(lambda tx, row=row: tx.execute(one, dict(zip(COLUMNS, (*row, None), strict=True))))
    assert sorted(row[:4] for row in things(db)) == sorted(odd_rows())


def test_texts_that_differ_are_different_keys(db: Database):
    texts = [*ODD_TEXTS, "Plain", "plain ", "é", "e\u0301"]
    db.run(lambda tx: tx.insert("thing", [{"name": text} for text in texts]))
    for text in texts:
        found = db.read(lambda tx, text=text: tx.lookup("thing", columns=("name",), key=("name",), keys=[(text,)]))
        assert found == [(text,)]


@pytest.mark.parametrize("n", [2**63, -(2**63) - 1, 2**64])
def test_an_integer_beyond_63_bits_is_refused_and_never_rounded(db: Database, n: int):
    for work in (
        lambda tx: tx.insert("thing", [{"name": "a", "n": n}]),
        lambda tx: tx.execute(ADD_ALL, rows=[("a", n)]),
        lambda tx: tx.execute(statement("one", "INSERT INTO thing (name, n) VALUES ('a', :n)"), {"n": n}),
    ):
        with pytest.raises((OverflowError, Permanent)):
            db.run(work)
    assert names(db) == []


@pytest.mark.parametrize(
    "work",
    [
        lambda tx: tx.insert("thing", [{"name": "a\0b"}]),
        lambda tx: tx.execute(statement("one", "INSERT INTO thing (name) VALUES (:name)"), {"name": "a\0b"}),
    ],
)
def test_text_with_a_nul_is_kept_or_refused_and_never_cut(db: Database, work: Callable[[Tx], object]):
    if db.dialect == "sqlite":
        db.run(work)
        assert names(db) == ["a\0b"]
    else:
        with pytest.raises(Permanent, match="store_value"):
            db.run(work)


@pytest.mark.parametrize("size", [1, 2, 3, 255, 256, 257, 1000, 5003])
def test_a_set_of_any_size_is_whole(db: Database, size: int):
    found = db.read(lambda tx: tx.fetch(DOUBLED, {"by": 2}, rows=[(n,) for n in range(size)]))
    assert sorted(found) == [(2 * n,) for n in range(size)]
    assert db.run(lambda tx: tx.execute(ADD_ALL, rows=[(f"{n}", n) for n in range(size)])) == size
    assert db.read(lambda tx: tx.fetch(COUNT)) == [(size,)]


@pytest.mark.parametrize("columns", ["key key16", "key key16, other key16", "n int, key key16, body blob, other key16"])
@pytest.mark.parametrize("size", [1, 2, 3, 700])
def test_keys_come_back_from_a_set_in_their_rows(db: Database, columns: str, size: int):
    names = [column.split()[0] for column in columns.split(", ")]
    stmt = statement("keys", f"SELECT {', '.join(names)} FROM rows", columns)
    given = [
        {"n": n, "key": n.to_bytes(16, "big"), "body": None if n % 3 else bytes(n % 7), "other": bytes([n % 251]) * 16}
        for n in range(size)
    ]
    rows = [tuple(one[name] for name in names) for one in given]
    assert db.read(lambda tx: tx.fetch(stmt, rows=rows)) == rows


def test_a_key_of_another_length_is_a_bug_that_shows(postgres_url: str):
    stmt = statement("keys", "SELECT key FROM rows", "key key16")
    with closing(open_database(postgres_url)) as db, pytest.raises(ValueError, match="16 bytes"):
        db.read(lambda tx: tx.fetch(stmt, rows=[(b"short",), (bytes(16),)]))


def test_a_wide_set_is_whole(db: Database):
    columns = [f"c{i}" for i in range(200)]
    wide = statement("wide", f"SELECT {', '.join(columns)} FROM rows", ", ".join(f"{c} int" for c in columns))
    rows = [tuple(range(n, n + 200)) for n in range(500)]
    assert sorted(db.read(lambda tx: tx.fetch(wide, rows=rows))) == rows


def test_an_empty_set_runs_nothing(db: Database):
    wrong = statement("wrong", "SELECT this is not sql", "a int")

    def work(tx):
        return [
            tx.fetch(wrong, rows=[]),
            tx.execute(wrong, rows=[]),
            tx.fetch_dicts(wrong, rows=[]),
            tx.insert_absent("no_such_table", [], key=("a",)),
            tx.upsert_newer("no_such_table", [], key=("a",), newer="b"),
            tx.lookup("no_such_table", columns=("a",), key=("a",), keys=[]),
        ]

    assert db.run(work) == [[], 0, [], [], [], []]
    db.run(lambda tx: tx.insert("thing", []))
    db.run(lambda tx: tx.insert_tuples("thing", COLUMNS, []))


def test_a_set_beside_parameters_and_a_common_table_expression(db: Database):
    stmt = statement(
        "both",
        "WITH RECURSIVE up(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM up WHERE i < :top) "
        "SELECT rows.n, up.i FROM rows JOIN up ON up.i = rows.n WHERE :bottom < up.i",
        "n int",
    )
    found = db.read(lambda tx: tx.fetch(stmt, {"top": 4, "bottom": 2}, rows=[(n,) for n in range(10)]))
    assert sorted(found) == [(3, 3), (4, 4)]


def test_one_parameter_may_stand_several_times(db: Database):
    stmt = statement("twice", "SELECT n FROM rows WHERE n > :low OR n = :low", "n int")
    assert sorted(db.read(lambda tx: tx.fetch(stmt, {"low": 2}, rows=[(n,) for n in range(4)]))) == [(2,), (3,)]


def test_marks_in_literals_and_comments_are_no_parameters(db: Database):
    stmt = statement("marks", "SELECT ':a %s %(b)s ?' AS \"x:y%\", :c AS z -- :d 100%\n")
    assert db.read(lambda tx: tx.fetch_dicts(stmt, {"c": "c"})) == [{"x:y%": ":a %s %(b)s ?", "z": "c"}]


def test_the_override_of_a_dialect_is_the_one_that_runs(db: Database):
    stmt = Statement(name="which", text={"sqlite": "SELECT 'sqlite'", "postgres": "SELECT 'postgres'"})
    assert db.read(lambda tx: tx.fetch_one(stmt)) == (db.dialect,)


def test_fetch_one_gives_the_first_or_none(db: Database):
    assert db.read(lambda tx: tx.fetch_one(ALL)) is None
    db.run(lambda tx: tx.insert("thing", [{"name": "b"}, {"name": "a"}]))
    assert db.read(lambda tx: tx.fetch_one(ALL)) == ("a", None, None, None, None)


def test_rows_come_by_their_column_names_too(db: Database):
    db.run(lambda tx: tx.insert("thing", [{"name": "a", "n": 1, "body": b"\0"}]))
    assert db.read(lambda tx: tx.fetch_dicts(ALL)) == [{"name": "a", "n": 1, "body": b"\0", "ratio": None, "at": None}]
    by_name = statement("by_name", "SELECT thing.name AS found FROM rows JOIN thing ON thing.name = rows.k", "k text")
    assert db.read(lambda tx: tx.fetch_dicts(by_name, rows=[("a",), ("b",)])) == [{"found": "a"}]


def test_execute_counts_the_rows_that_changed(db: Database):
    def work(tx):
        added = tx.execute(ADD_ALL, rows=[("a", 1), ("b", 2), ("a", 3)])
        moved = tx.fetch(SET_ALL, rows=[("a", 1, 10), ("b", 99, 20), ("c", 1, 30)])
        dropped = tx.execute(DROP_ALL, rows=[("b",), ("c",)])
        nothing = tx.execute(statement("none", "DELETE FROM thing WHERE name = :name"), {"name": "z"})
        return added, moved, dropped, nothing

    assert db.run(work) == (2, [("a",)], 1, 0)
    assert things(db) == [("a", 10, None, None, None)]


def test_insert_absent_tells_which_were_new(db: Database):
    db.run(lambda tx: tx.insert("thing", [{"name": "a", "n": 1}]))
    rows = [{"name": "a", "n": 2}, {"name": "b", "n": 3}, {"name": "b", "n": 4}, {"name": "c", "n": 5}]
    new = db.run(lambda tx: tx.insert_absent("thing", rows, key=("name",), returning=("name", "n")))
    assert sorted(new) == [("b", 3), ("c", 5)]
    assert db.run(lambda tx: tx.insert_absent("thing", rows, key=("name",))) == []
    assert [row[:2] for row in things(db)] == [("a", 1), ("b", 3), ("c", 5)]


def test_upsert_newer_writes_what_is_absent_or_newer(db: Database):
    def upsert(*rows):
        values = [{"name": name, "n": n, "at": at} for name, n, at in rows]
        return sorted(db.run(lambda tx: tx.upsert_newer("thing", values, key=("name",), newer="at")))

    assert upsert(("a", 1, 10), ("b", 1, 10)) == [("a",), ("b",)]
    assert upsert(("a", 2, 11), ("b", 2, 10), ("c", 2, 1)) == [("a",), ("c",)]
    assert upsert(("a", 3, 9)) == []
    assert [(name, n, at) for name, n, _, _, at in things(db)] == [("a", 2, 11), ("b", 1, 10), ("c", 2, 1)]


def test_of_several_rows_with_one_key_the_newest_is_written_once(db: Database):
    rows = [{"name": "a", "n": n, "at": at} for n, at in [(1, 5), (2, 9), (3, 9), (4, 2)]]
    assert db.run(lambda tx: tx.upsert_newer("thing", rows, key=("name",), newer="at", returning=("n",))) == [(2,)]
    assert [row[1] for row in things(db)] == [2]


def test_lookup_gives_what_is_there(db: Database):
    db.run(lambda tx: tx.insert("thing", [{"name": f"{n}", "n": n} for n in range(1000)]))
    keys = [(f"{n}",) for n in range(990, 1010)]
    found = db.read(lambda tx: tx.lookup("thing", columns=("n", "body"), key=("name",), keys=keys))
    assert sorted(found) == [(n, None) for n in range(990, 1000)]


def test_lookup_by_several_columns(db: Database):
    db.run(lambda tx: tx.insert("thing", [{"name": "a", "n": 1}, {"name": "b", "n": 1}, {"name": "c", "n": 2}]))
    keys = [("a", 1), ("b", 2), ("c", 2)]
    found = db.read(lambda tx: tx.lookup("thing", columns=("name",), key=("name", "n"), keys=keys))
    assert sorted(found) == [("a",), ("c",)]


def test_a_table_or_column_that_is_not_there_is_named(db: Database):
    with pytest.raises(Permanent, match="no table 'nothing'"):
        db.run(lambda tx: tx.insert_absent("nothing", [{"a": 1}], key=("a",)))
    with pytest.raises(Permanent, match="no column 'colour'"):
        db.run(lambda tx: tx.insert_absent("thing", [{"name": "a", "colour": 1}], key=("name",)))


def test_a_column_that_was_added_later_is_known_at_once(db: Database):
    db.run(lambda tx: tx.insert_absent("thing", [{"name": "a"}], key=("name",)))
    db.run(lambda tx: tx.script("ALTER TABLE thing ADD COLUMN colour TEXT"))
    db.run(lambda tx: tx.insert_absent("thing", [{"name": "b", "colour": "red"}], key=("name",)))
    assert db.read(lambda tx: tx.lookup("thing", columns=("colour",), key=("name",), keys=[("b",)])) == [("red",)]


@pytest.mark.parametrize("name", ["thing; DROP TABLE thing", "Thing", "thing t", "", "1", 'a"b'])
def test_names_that_are_not_ours_are_refused(db: Database, name: str):
    for work in (
        lambda tx: tx.insert_absent(name, [{"name": "a"}], key=("name",)),
        lambda tx: tx.insert_absent("thing", [{name: "a"}], key=("name",)),
        lambda tx: tx.upsert_newer("thing", [{"name": "a", "at": 1}], key=(name,), newer="at"),
        lambda tx: tx.lookup("thing", columns=(name,), key=("name",), keys=[("a",)]),
        lambda tx: tx.insert(name, [{"name": "a"}]),
        lambda tx: tx.insert("thing", [{name: "a"}]),
    ):
        with pytest.raises((ValueError, KeyError, Permanent)):
            db.run(work)
    assert names(db) == []


def test_insert_keeps_the_order_of_the_set(db: Database):
    numbered = (
        "INTEGER PRIMARY KEY AUTOINCREMENT" if db.dialect == "sqlite" else "BIGINT GENERATED BY DEFAULT AS IDENTITY"
    )
    db.run(lambda tx: tx.script(f"CREATE TABLE line (seq {numbered}, n BIGINT)"))
    db.run(lambda tx: tx.insert_tuples("line", ("n",), [(n,) for n in range(5000)]))
    found = db.read(lambda tx: tx.fetch(statement("lines", "SELECT n FROM line ORDER BY seq")))
    assert found == [(n,) for n in range(5000)]


def test_a_set_of_one_row_is_read_as_any_other(db: Database):
    """PostgreSQL gets one row as parameters, several as JSON: what arrives must be the same."""
    stmt = statement("back", "SELECT a, b, c, d FROM rows ORDER BY b", "a text, b int, c real, d blob")
    for row in (
        ("'%s :a \u2028 😀", 2**63 - 1, 1.5, b"\x00\xff"),
        ("", -(2**63), -0.25, b""),
        (None, 0, None, None),
        ("\\x41", 1, 3, b"\\x41"),
    ):
        (alone,) = db.read(lambda tx, row=row: tx.fetch(stmt, rows=[row]))
        first, second = db.read(lambda tx, row=row: tx.fetch(stmt, rows=[row, row]))
        assert alone == first == second == row
        assert [type(value) for value in alone] == [type(value) for value in first]


def test_one_row_serves_statements_with_ctes_and_parameters_of_their_own(db: Database):
    stmt = statement("both", "WITH more AS (SELECT a, :b AS b FROM rows) SELECT a, b FROM more", "a text")
    assert db.read(lambda tx: tx.fetch(stmt, {"b": 7}, rows=[("x",)])) == [("x", 7)]
