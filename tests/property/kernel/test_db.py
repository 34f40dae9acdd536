"""Whatever the values, both databases give back what was put in, and keys behave like those of a dictionary."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from patra.kernel.db import Database, Tx
from patra.kernel.db.queries import statement

ECHO = statement("echo", "SELECT place, t, n, b, r FROM rows", "place int, t text, n int, b blob, r real")
ALL = statement("all", "SELECT k, n, at FROM thing WHERE part = :part")
_parts = itertools.count()

# PostgreSQL has no U+0000 in text; SQLite stores NaN as NULL.
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
integers = st.integers(-(2**63), 2**63 - 1)
reals = st.floats(allow_nan=False, allow_infinity=False)
rows = st.lists(
    st.tuples(*(st.one_of(st.none(), values) for values in (texts, integers, st.binary(max_size=300), reals))),
    max_size=300,
)
keyed = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c", "d", "é", ""]), st.integers(0, 9), st.integers(0, 5)), max_size=12
)


def create(tx: Tx) -> None:
    tx.script("CREATE TABLE IF NOT EXISTS thing (part BIGINT, k TEXT, n BIGINT, at BIGINT, PRIMARY KEY (part, k))")


@given(rows)
def test_a_set_of_any_values_comes_back(database: Database, rows: list[tuple]):
    found = database.read(lambda tx: tx.fetch(ECHO, rows=[(place, *row) for place, row in enumerate(rows)]))
    assert [row[1:] for row in sorted(found, key=lambda row: row[0])] == rows


@given(texts, integers, st.binary(), reals)
def test_parameters_of_any_value_come_back(database: Database, text: str, n: int, blob: bytes, real: float):
    """A cast says what PostgreSQL could not know; in a statement on a table the column does."""
    kinds = ("TEXT", "BIGINT", "BLOB" if database.dialect == "sqlite" else "BYTEA", "DOUBLE PRECISION")
    casts = ", ".join(f"CAST(:p{i} AS {kind})" for i, kind in enumerate(kinds))
    params = {"p0": text, "p1": n, "p2": blob, "p3": real}
    found = database.read(lambda tx: tx.fetch_one(statement("casts", f"SELECT {casts}"), params))
    assert found == (text, n, blob, real)


@given(st.lists(st.tuples(st.sampled_from(["absent", "newer"]), keyed), max_size=6))
def test_insert_absent_and_upsert_newer_are_a_dictionary(database: Database, steps: list[tuple]):
    database.run(create)
    part, model = next(_parts), {}
    for step, values in steps:
        before = dict(model)
        rows = [{"part": part, "k": k, "n": n, "at": at} for k, n, at in values]
        if step == "absent":
            for k, n, at in values:
                model.setdefault(k, (n, at))
            expected = sorted((k,) for k in model if k not in before)
            found = database.run(lambda tx: tx.insert_absent("thing", rows, key=("part", "k"), returning=("k",)))  # noqa: B023
        else:
            for k, n, at in values:
                if k not in model or at > model[k][1]:
                    model[k] = (n, at)
            expected = sorted((k,) for k in model if model[k] != before.get(k))
            found = database.run(
                lambda tx: tx.upsert_newer("thing", rows, key=("part", "k"), newer="at", returning=("k",))  # noqa: B023
            )
        assert sorted(found) == expected
        stored = database.read(lambda tx: tx.fetch(ALL, {"part": part}))
        assert {k: (n, at) for k, n, at in stored} == model
