"""Cleaners of output fields."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patra.ingest.expressions.cleaners import CLEANERS, Cleaner, clean


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
        ("doi_key", "https://doi.org/10.1000/ABC", "doi:10.1000/abc"),
        ("doi_key", "NA", None),
        ("pmid_key", "PMID: 29456894", "pmid:29456894"),
        ("openalex_key", "https://openalex.org/W2741809807", "openalex:W2741809807"),
        ("openalex_key", "https://openalex.org/A5023888391", None),
        ("issn", "EISSN-2618-6586", "2618-6586"),
        ("issn", "issn:1234567x", "1234-567X"),
        ("issn", "         ", None),
        ("issn", "9781484267004", None),
        ("isbn", "978-1-4842-6700-4", "9781484267004"),
        ("isbn", "http://id.crossref.org/isbn/080442957X", "080442957X"),
        ("isbn", "1234-5678", None),
        ("ror", "05ppvf150", "https://ror.org/05ppvf150"),
        ("ror", "http://ror.org/05PPVF150", "https://ror.org/05ppvf150"),
        ("ror", "grid.16149.3b", None),
        ("homonym", "Xiaopeng Zhang 0009", "Xiaopeng Zhang"),
        ("homonym", "Class of 1968 Collective", "Class of 1968 Collective"),
        (
            "bracketed",
            "Piwowar, Heather [orcid:0000-0003-1613-5981 omid:ra/063011942103]",
            {
                "name": "Heather Piwowar",
                "given": "Heather",
                "family": "Piwowar",
                "orcid": "0000-0003-1613-5981",
            },
        ),
        ("license", "CC BY NC", "cc-by-nc"),
        ("license", "CC BY-NC-ND 4.0", "cc-by-nc-nd-4.0"),
        ("license", "CCBYSA", "cc-by-sa"),
        ("license", "cc-zero", "cc0"),
        ("license", "Creative Commons Zero", "Creative Commons Zero"),
        ("text", "On <math> <mi>x</mi> <mo>=</mo> <mn>1</mn> </math> and on", "On x=1 and on"),
        ("text", "<math> <mi>a</mi> b <math> <mi>c</mi> <mn>1</mn> </math>", "a b c1"),  # the first is not closed
        ("text", "<mml:math>" * 20_000 + " x", "x"),
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


@pytest.mark.parametrize(
    "cleaner", [one for one in CLEANERS.values() if one.known is not None], ids=lambda one: one.name
)
@given(text=st.text(max_size=40))
def test_a_text_that_is_remembered_is_cleaned_as_any_other(cleaner: Cleaner, text: str) -> None:
    assert cleaner.known is not None
    found = cleaner.known(text)
    assert found == cleaner.known(text) == cleaner.call(text)
    assert found is None or type(found) is str  # nothing that a later step could change for all
