"""Patterns of others: what they match, and that nothing makes them slow."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patra.kernel.errors import Invalid
from patra.kernel.pattern import MAX_TEXT, Pattern, pattern


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
        "^a|b",
        "a|b$",
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


@pytest.mark.parametrize(
    "source",
    [
        "^[0-9a-f]{64}$",
        "^[a-z0-9.+-]+/[A-Za-z0-9.+-]+$",
        "^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$",
        r"^1(\.\d+){0,2}$",
        "^(a|bc)*d?$",
        "abc",
        r"\d{4}-\d\d",
    ],
)
def test_a_pattern_that_is_read_in_one_way_is_unambiguous(source):
    assert Pattern(source, unicode=True).unambiguous


@pytest.mark.parametrize(
    "source",
    [
        "^(a+)+$",
        "^(a*)*b",
        "^(a|a)*$",
        "^(a|ab)*c$",
        r"^(\w+\s?)*:",
        r"^\w*\d*$",
        "^(a?){1,30}b",
        "a?a?a?aaa",
        "[a-z]+$",
        "^[^@]+@[^@]+[.][^@]+$",
        "(?i)^ab$",
        "^\u00e9$",
        "^()*a$",
    ],
)
def test_a_pattern_that_could_be_read_in_two_ways_is_not(source):
    assert not Pattern(source, unicode=True).unambiguous


@given(SOURCES, st.text("ab1c \u0663\u00e9\u3000", max_size=8))
def test_with_unicode_classes_it_is_the_standard_engine_s_width(source, text):
    source = source.replace("[ab]", r"\s")
    assert Pattern(source, unicode=True).matches(text) is bool(re.fullmatch(source, text))


@given(SOURCES, st.text("ab1c", max_size=8))
def test_an_unambiguous_pattern_has_one_way_through_any_text(source, text):
    """Counted on the machine itself: along an unambiguous pattern at most one node takes each character."""
    ours = Pattern("^(?:" + source + ")$")
    if not ours.unambiguous:
        return
    state = ours._start
    for char in text:
        takers = [n for n in state if (test := ours._nodes[n][0]) is not None and test(char)]
        assert len(takers) <= 1
        state = ours._move(state, char, again=False)
