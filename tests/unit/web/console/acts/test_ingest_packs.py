"""Parameters of a schedule in a text area: what is written is read back, whatever it is."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patra.web.console.acts.ingest_packs import parameter_lines, parameters

NAMES = st.text("abcXYZ_0", min_size=1, max_size=5)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**50), 2**50) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_parameters_are_read_as_they_were_shown(params: dict[str, Any]) -> None:
    assert parameters(parameter_lines(params)) == params


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {}),
        ("query=otters and otters\n\n", {"query": "otters and otters"}),
        ("a=1\na=2\na=x=y", {"a": ["1", "2", "x=y"]}),
        ("year:=2026\nbroken:={", {"year": 2026, "broken": "{"}),
        pytest.param(f"deep:={'[' * 5000}", {"deep": "[" * 5000}, id="too deep"),
        ("lonely", {"lonely": ""}),
    ],
)
def test_what_a_person_types(text: str, found: dict[str, Any]) -> None:
    assert parameters(text) == found
