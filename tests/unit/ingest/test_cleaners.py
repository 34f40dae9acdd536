"""Cleaners of output fields."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patra.ingest.cleaners import CLEANERS, clean


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("text", "<p>A <i>b</i>\n  c</p>", "A b c"),
        ("text", "H<sub>2</sub>O &amp; CO<sub>2</sub>", "H2O & CO2"),
        ("text", "&lt;p&gt;x&lt;/p&gt;", "x"),
        ("text", "a < b and c > d", "a < b and c > d"),
        ("text", "   ", None),
        ("strip", " a ", "a"),
        ("lower", "A", "a"),
        ("upper", "a", "A"),
        ("doi", "https://doi.org/10.1000/ABC.", "10.1000/abc"),
        (
            "doi",
            "doi:10.1641/0006-3568(2005)055[0851:POTAPF]2.0.CO;2",
            "10.1641/0006-3568(2005)055[0851:potapf]2.0.co;2",
        ),
        ("doi", "none", None),
        ("orcid", "http://orcid.org/0000-0002-1825-009x", "0000-0002-1825-009X"),
        ("arxiv", "http://arxiv.org/abs/2104.12255v1", "2104.12255"),
        ("arxiv", "astro-ph/0601001", "astro-ph/0601001"),
        ("digits", "https://pubmed.ncbi.nlm.nih.gov/123/", "123"),
        ("url", "javascript:alert(1)", None),
        ("url", "https://a.org/x", "https://a.org/x"),
        ("first", ["a", "b"], "a"),
        ("first", [], None),
        ("compact", ["a", None, ""], ["a"]),
        ("uninvert", {"world": [1], "hello": [0, 2]}, "hello world hello"),
    ],
)
def test_a_cleaner_cleans(name, value, expected):
    assert clean([name], value) == expected


def test_cleaners_follow_each_other_and_nothing_stays_nothing():
    assert clean(["first", "text", "lower"], ["<b>A</b>"]) == "a"
    assert clean(["text"], None) is None


@given(
    st.sampled_from(sorted(CLEANERS)),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.text(), x),
        max_leaves=5,
    ),
)
def test_any_json_can_be_cleaned(name, value):
    clean([name], value)
