"""Patterns of packs: what they match, and that nothing makes them slow."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patra.ingest.pattern import MAX_TEXT, Pattern, pattern
from patra.kernel.errors import Invalid


@pytest.mark.parametrize(
    ("source", "text", "whole", "part"),
    [
        ("abc", "abc", True, True),
        ("abc", "xabcx", False, True),
        ("^abc", "xabc", False, False),
        ("abc$", "xabc", False, True),
        ("abc$", "abcx", False, False),
        ("(?i)rate LIMIT", "Rate limit", True, True),
        ("(?i)[a-c]+", "ABC", True, True),
        ("[^@ ]+@[^@ ]+", "a@b.org", True, True),
        (r"10\.\d{4,9}/\S+", "10.1234/x y", False, True),
        ("a{2,3}", "aaaa", False, True),
        ("(ab|cd)*", "abcdab", True, True),
        ("", "", True, True),
        ("", "x", False, True),
        ("a|", "", True, True),
        ("[]a]+", "]a", True, True),
        (r"[\d.-]+", "1.2-3", True, True),
        ("()*a", "a", True, True),
    ],
)
def test_a_pattern_matches_as_expected(source, text, whole, part):
    assert Pattern(source).matches(text) is whole
    assert Pattern(source).found(text) is part


@pytest.mark.parametrize(
    "source",
    [
        "(a",
        "a)",
        "[a",
        "*a",
        "a**",
        r"\1",
        r"(?=a)",
        "(?P<n>a)",
        "a{3,2}",
        "a{1000}",
        "a{x}",
        "a^b",
        "a$b",
        "[z-a]",
        "\\",
        "x" * 501,
    ],
)
def test_what_is_no_pattern_of_ours_is_refused_with_its_place(source):
    with pytest.raises(Invalid) as raised:
        Pattern(source)
    assert raised.value.code == "pattern_invalid"


ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\d", r"\w"])
SOURCES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda p: f"(?:{p[0]}|{p[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,2}", "{1,}"])).map(
            lambda p: f"(?:{p[0]}){p[1]}"
        ),
    ),
    max_leaves=8,
)


@given(SOURCES, st.text("ab1c", max_size=8))
def test_a_pattern_agrees_with_the_standard_engine(source, text):
    ours, theirs = Pattern(source), re.compile(source)
    assert ours.matches(text) is bool(theirs.fullmatch(text))
    assert ours.found(text) is bool(theirs.search(text))


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("(a+)+$", "a" * MAX_TEXT + "b"),
        ("(a|a)*b", "a" * MAX_TEXT),
        ("(a*)*(b*)*(c*)*d", "abc" * 5000),
        (r"(\w+\s?)*:", "word " * 3000),
    ],
)
def test_patterns_that_hang_backtracking_engines_end(source, text):
    begun = time.process_time()
    assert Pattern(source).found(text) is False
    assert time.process_time() - begun < 20  # the standard engine would need longer than the universe has


def test_deeply_nested_groups_are_refused_and_do_not_explode():
    with pytest.raises(Invalid):
        Pattern("(" * 30 + "a" + ")" * 30)
    assert Pattern("(" * 20 + "a" + ")" * 20).matches("a")


def test_a_pattern_is_compiled_once():
    assert pattern("a+b") is pattern("a+b")
