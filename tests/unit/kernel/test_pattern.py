"""Patterns of others: what they match, what is refused and where, and that nothing makes them slow."""

import re

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
        ("abc$", "abc\n", False, False),  # the end, not also the place before a last line break
        ("^b", "a\nb", False, False),  # one text, not lines
        ("a.b", "a\nb", False, False),
        ("(?i)rate LIMIT", "Rate limit", True, True),
        ("(?i)[a-c]+", "ABC", True, True),
        ("(?i)É", "é", True, True),
        ("[^@ ]+@[^@ ]+", "a@b.org", True, True),
        (r"10\.\d{4,9}/\S+", "10.1234/x y", False, True),
        ("a{2,3}", "aaaa", False, True),
        ("(ab|cd)*", "abcdab", True, True),
        ("^a|b$", "xb", False, True),
        ("", "", True, True),
        ("", "x", False, True),
        ("a|", "", True, True),
        ("[]a]+", "]a", True, True),
        (r"[\d.-]+", "1.2-3", True, True),
        ("()*a", "a", True, True),
        ("a|ab", "ab", True, True),  # the whole text, whichever alternative comes first
        ("^.$", "\u00e9", True, True),  # a character, not a byte
        (r"\d", "\u0663", False, False),
        (r"\w", "\u00e9", False, False),
        (r"\s", "\u3000", False, False),
        (r"\p{Nd}", "\u0663", True, True),
        (r"\p{L}", "\u00e9", True, True),
        (r"[\pZ]", "\u3000", True, True),
        ("a", "\ud800a", False, True),  # half of a surrogate pair is some other character
    ],
)
def test_a_pattern_matches_as_expected(source, text, whole, part):
    assert Pattern(source).matches(text) is whole
    assert Pattern(source).matches_part(text) is part


def test_a_part_is_found_in_bytes_of_any_length():
    assert Pattern("b$").found_in(b"a" * 100_000 + b"b")
    assert not Pattern("b").found_in(b"a" * 100_000)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("x(?=a)", "look-ahead ((?=) is not supported (at character 2)"),
        ("(?!a)b", "look-ahead ((?!) is not supported (at character 1)"),
        ("é(?<=a)b", "look-behind ((?<=) is not supported (at character 2)"),
        ("(?<!a)b", "look-behind ((?<!) is not supported (at character 1)"),
        (r"(a)\1", r"a back-reference (\1) is not supported (at character 4)"),
        ("(?P<n>a)(?P=n)", "a named back-reference ((?P) is not supported"),
        ("(?>a)", "an atomic group ((?>) is not supported (at character 1)"),
        ("(a", "missing )"),
        ("a)", "unexpected )"),
        ("[a", "missing ]"),
        ("*a", "no argument for repetition operator: * (at character 1)"),
        ("a**", "bad repetition operator: ** (at character 2)"),
        ("a{3,2}", "invalid repetition size: {3,2} (at character 2)"),
        ("a{1001}", "invalid repetition size"),
        ("((a{100}){100}){100}", "invalid repetition size"),
        (r"\p{L}{900}", "pattern too large"),
        ("[z-a]", "invalid character class range: z-a (at character 2)"),
        ("\\", "trailing \\"),
        ("x" * 501, "at most 500 characters"),
        ("\ud800", "surrogate"),
    ],
)
def test_what_is_no_pattern_is_refused_with_the_reason_and_the_place(source, words):
    with pytest.raises(Invalid) as raised:
        Pattern(source)
    assert raised.value.code == "pattern_invalid"
    assert words in raised.value.detail


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


@given(SOURCES, st.text("ab1cé\u0663", max_size=8))
def test_a_pattern_agrees_with_the_standard_engine(source, text):
    ours, theirs = Pattern(source), re.compile(source.replace(r"\d", "[0-9]").replace(r"\w", "[0-9A-Za-z_]"))
    assert ours.matches(text) is bool(theirs.fullmatch(text))
    assert ours.matches_part(text) is bool(theirs.search(text))


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
    assert Pattern(source).matches_part(text) is False  # a backtracking engine would need longer than the universe has


def test_no_more_than_the_beginning_of_a_text_is_looked_at():
    text = "é" * MAX_TEXT
    assert Pattern("^é+$").matches(text)
    assert not Pattern("^é+$").matches(text + "é")
    assert Pattern("^é+$").matches_part(text)
    assert not Pattern("^é+$").matches_part(text + "é")  # where it was cut is not its end
    assert not Pattern("b").matches_part(text + "b")


def test_a_pattern_is_compiled_once():
    assert pattern("a+b") is pattern("a+b")
