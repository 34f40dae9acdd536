"""The canonical form equals the reference implementation's, whatever the value."""

import json
import random
from hashlib import sha256
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from patra.kernel.canonical import MAX_INTEGER, canonical, fingerprint
from patra.kernel.errors import NotCanonical

# Text in which the characters that matter (escapes, the edges of the surrogates, beyond the BMP) come up often.
ODD = st.sampled_from('\x00\x1f\b\t\n\f\r"\\/\x7f\x80\u2028\ud7ff\ue000\ufb33\uffff\U00010000\U0001f600\U0010ffff1a~')
TEXT = st.text(st.one_of(ODD, st.characters(exclude_categories=["Cs"])), max_size=8)
INTEGERS = st.integers(-MAX_INTEGER, MAX_INTEGER)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)


def json_values(scalars: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        scalars,
        lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(TEXT, inner, max_size=5)),
        max_leaves=20,
    )


PLAIN = st.one_of(st.none(), st.booleans(), INTEGERS, TEXT)
VALUES = json_values(st.one_of(PLAIN, FLOATS))


@given(st.one_of(VALUES, json_values(PLAIN)))
def test_the_bytes_are_those_of_the_reference(value: Any) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@given(VALUES)
def test_the_bytes_mean_the_value(value: Any) -> None:
    assert json.loads(canonical(value), parse_int=float) == value


@given(st.dictionaries(TEXT, VALUES, max_size=8), st.randoms(use_true_random=False))
def test_the_order_of_keys_changes_nothing(value: dict[str, Any], dice: random.Random) -> None:
    items = list(value.items())
    dice.shuffle(items)
    assert fingerprint(dict(items)) == fingerprint(value) == sha256(rfc8785.dumps(value)).hexdigest()


@given(VALUES, VALUES)
def test_two_values_share_their_bytes_only_if_they_are_the_same_json(one: Any, other: Any) -> None:
    same = json.loads(rfc8785.dumps(one)) == json.loads(rfc8785.dumps(other))
    if canonical(one) == canonical(other):
        assert same


@given(VALUES)
def test_the_canonical_form_of_what_was_canonical_is_itself(value: Any) -> None:
    once = canonical(value)
    assert canonical(json.loads(once, parse_int=float)) == once


WRONG = st.one_of(
    st.sampled_from([float("nan"), float("inf"), float("-inf"), b"x", {1, 2}, object(), 1j, "\ud800", "a\udfff"]),
    st.integers(min_value=MAX_INTEGER + 1),
    st.integers(max_value=-MAX_INTEGER - 1),
    st.dictionaries(st.one_of(st.integers(), st.none(), st.just("\udc00")), PLAIN, min_size=1, max_size=2),
)


@given(WRONG, st.lists(st.one_of(st.integers(0, 3), st.sampled_from("abc")), max_size=6), VALUES)
def test_one_wrong_value_anywhere_is_refused_with_its_path(wrong: Any, way: list[int | str], beside: Any) -> None:
    value, path = wrong, ""
    for step in reversed(way):
        if isinstance(step, int):
            value, path = [beside] * step + [value], f"[{step}]{path}"
        else:
            value, path = {"0": beside, step: value}, f".{step}{path}"
    with pytest.raises(NotCanonical) as refused:
        canonical(value)
    assert refused.value.path.startswith(f"${path}")
