"""Paths that are compiled to lookups find what RFC 9535 says (ch. 4.7)."""

import jsonpath_rfc9535
from hypothesis import given
from hypothesis import strategies as st

from patra.ingest.expressions.paths import json_path

STEPS = st.lists(st.sampled_from(["a", "b", 0, 1, -1]), max_size=5)
VALUES = st.recursive(
    st.none() | st.integers(0, 3) | st.text(max_size=1),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=20,
)


@given(STEPS, VALUES)
def test_lookups_find_what_the_path_finds(steps, value) -> None:
    path = "$" + "".join(f"['{step}']" if isinstance(step, str) else f"[{step}]" for step in steps)
    found = [one for one in jsonpath_rfc9535.find(path, value).values() if one is not None]
    assert json_path(path).first(value) == (found[0] if found else None)
    assert json_path(path).find(value) == found
