"""Filters that are compiled into lookups find what the library finds, in the same order."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from patra.ingest.expressions.path_bounds import bound, bounded_values
from patra.ingest.expressions.path_filters import compiled_walk
from patra.ingest.expressions.paths import json_environment

NAMES = ["a", "b", "id-type"]
SCALARS = st.sampled_from([None, True, False, 0, 1, -1, 1.0, 1.5, "", "a", "b", "DOI", "10.1/x"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=12,
)
RELATIVE = st.lists(st.sampled_from([*(f"['{name}']" for name in NAMES), "[0]", "[-1]"]), max_size=2).map(
    lambda steps: "@" + "".join(steps)
)
LITERALS = st.sampled_from(["'a'", "'DOI'", "''", "1", "1.0", "-1", "true", "false", "null"])
OPERANDS = RELATIVE | LITERALS
COMPARISONS = st.builds(
    lambda left, operator, right: f"{left} {operator} {right}",
    OPERANDS,
    st.sampled_from(["==", "!=", "<", "<=", ">", ">="]),
    OPERANDS,
)
FUNCTIONS = st.builds(
    lambda name, subject, source: f"{name}({subject}, '{source}')",
    st.sampled_from(["match", "search"]),
    RELATIVE,
    st.sampled_from(["a", "DO.", "[0-9]+", "(", ""]),
)
EXISTENCE = RELATIVE.filter(lambda text: text != "@")
TESTS = st.recursive(
    COMPARISONS | FUNCTIONS | EXISTENCE,
    lambda inner: (
        st.builds(lambda a, b, sign: f"({a} {sign} {b})", inner, inner, st.sampled_from(["&&", "||"]))
        | inner.map(lambda text: f"!({text})")
    ),
    max_leaves=4,
)
SELECTORS = st.sampled_from(["['a']", "['b']", "[*]", "[0]", "[-1]"]) | TESTS.map(lambda text: f"[?{text}]")
PATHS = st.lists(SELECTORS, max_size=3).map(lambda steps: "$" + "".join(steps))


@given(PATHS, VALUES)
def test_a_compiled_filter_finds_what_the_library_finds(path: str, document: Any):
    walk = compiled_walk(json_environment().compile(path))
    assert walk is not None
    expected = bounded_values(bound(json_environment().compile(path)), document)
    assert [(type(value), value) for value in walk([document])] == [(type(value), value) for value in expected]
