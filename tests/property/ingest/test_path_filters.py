"""Filters that are compiled into lookups find what the library finds, in the same order."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patra.ingest.expressions.path_bounds import bound, bounded_values
from patra.ingest.expressions.path_filters import compiled_walk
from patra.ingest.expressions.paths import json_environment, json_path

NAMES = ["a", "b", "id-type", "it's", "x'); y = ('", "\n  return"]
"""Names that look like code stay names."""
SCALARS = st.sampled_from([None, True, False, 0, 1, -1, 1.0, 1.5, "", "a", "b", "DOI", "10.1/x"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=12,
)


def quoted(name: str) -> str:
    return "['" + name.replace("'", "\\'").replace("\n", "\\n") + "']"


RELATIVE = st.lists(st.sampled_from([*map(quoted, NAMES), "[0]", "[-1]"]), max_size=2).map(
    lambda steps: "@" + "".join(steps)
)
LITERALS = st.sampled_from(["'a'", "'DOI'", "''", "'it\\'s {x} \\n'", "1", "1.0", "-1", "true", "false", "null"])
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
SELECTORS = st.sampled_from(["['a']", "['b']", quoted("it's"), "[*]", "[0]", "[-1]"]) | TESTS.map(
    lambda text: f"[?{text}]"
)
PATHS = st.lists(SELECTORS, max_size=3).map(lambda steps: "$" + "".join(steps))


@given(PATHS, VALUES)
def test_a_compiled_filter_finds_what_the_library_finds(path: str, document: Any):
    walk = compiled_walk(json_environment().compile(path))
    assert walk is not None
    expected = bounded_values(bound(json_environment().compile(path)), document)
    assert [(type(value), value) for value in walk([document])] == [(type(value), value) for value in expected]


@pytest.mark.parametrize("length", [1, 18, 40])
def test_what_is_too_deep_for_loops_is_left_to_the_library(length: int) -> None:
    document: Any = "end"
    for _ in range(length):
        document = [None, document]
    path = "$" + "[?@ != null]" * length
    assert json_path(path).find(document) == ["end"]
    assert (compiled_walk(json_environment().compile(path)) is None) is (length > 18)
