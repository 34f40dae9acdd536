"""Usual forms take a short way through a cleaner or filter; what comes out is what the long way gives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patra.ingest.expressions.cleaners import clean
from patra.ingest.expressions.paths import json_path, parse_xml, text_at

ORCID = "0000-0002-1694-233X"


@pytest.mark.parametrize(
    ("cleaner", "usual", "unusual", "expected"),
    [
        ("orcid", f"https://orcid.org/{ORCID}", f" https://orcid.org/{ORCID.lower()}", ORCID),
        ("orcid", f"http://orcid.org/{ORCID}", ORCID.replace("-", ""), ORCID),
        ("orcid", f"https://orcid.org/{ORCID[:-1]}", f" {ORCID[:-1]}", None),
        ("pages", "253-277", "pp. 253–277", "253-277"),
        ("pages", "253-253", " 253 - 253 ", "253"),
        ("pages", "0", "p. 0", "0"),
        ("pages", "444-58", "pp. 444-58", "444-458"),
        (
            "abstract",
            "<jats:p> One  paragraph &lt;b&gt;of&lt;/b&gt;\n it </jats:p>",
            " <p>One paragraph of it</p>",
            "One paragraph of it",
        ),
        ("abstract", "<p>https://a.org/x</p>", " <p>https://a.org/x</p>", None),
        ("abstract", "<p></p>", " <p> </p>", None),
        ("abstract", "<jats:p>A<b>c</b></jats:p>", f"<jats:p a='{'x' * 200}'>A<b>c</b></jats:p>", "Ac"),
        ("abstract", "<title>Abstract</title>Text of it", "Abstract: Text of it", "Text of it"),
        ("abstract", "On\nAbstract: algebra", "On Abstract:\nalgebra", "On Abstract: algebra"),
    ],
)
def test_both_forms_are_cleaned_alike(cleaner: str, usual: str, unusual: str, expected: str | None) -> None:
    assert clean((cleaner,), usual) == expected
    assert clean((cleaner,), unusual) == expected


@given(
    st.sampled_from(["jats:p", "p"]),
    st.text(st.sampled_from("ab <>&;\\n\n\x93\xad\u200b") | st.characters(), max_size=30),
)
def test_an_abstract_of_one_paragraph_is_cleaned_as_any_other(name: str, text: str) -> None:
    whole = f"<{name}>{text}</{name}>"
    assert clean(("abstract",), whole) == clean(("abstract",), f" {whole}")  # begins with no tag


@given(st.text(st.sampled_from("0123456789-- .٣pn"), max_size=12))
def test_pages_are_cleaned_as_those_with_white_space_are(text: str) -> None:
    assert clean(("pages",), text) == clean(("pages",), f" {text} ")


@pytest.mark.parametrize("length", [3, 200, 201, 16_384, 16_385, 20_000])
def test_a_filter_finds_its_pattern_in_short_and_long_texts(length: int) -> None:
    path = json_path("$[?search(@.u, 'a$')]")
    ends, other = {"u": "b" * (length - 1) + "a"}, {"u": "b" * length}
    cut = length > 16_384  # no more of a text is looked at
    for _ in range(2):
        assert path.find([ends, other, {"u": 1}]) == ([] if cut else [ends])


@pytest.mark.parametrize(
    "inside",
    ["", " x ", "<![CDATA[<x>]]> y", "a<b/>c", "<b> x </b>", "&amp;", "a<?pi x?>b", "<b/>", "a<!-- c -->b"],
)
def test_the_text_of_an_element_is_that_of_all_below_it(inside: str) -> None:
    element = parse_xml(f"<a>{inside}</a>".encode())
    assert text_at(element) == "".join(element.itertext()).strip()
