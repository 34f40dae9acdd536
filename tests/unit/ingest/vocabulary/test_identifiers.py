"""A DOI in one form, whatever it came in: the short way for those that have it gives what the long way gives."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from patra.ingest.vocabulary.identifiers import doi

PARTS = st.sampled_from(
    ["10.1038", "10.", "10.123", "/", "s41586-020", "A", "ß", ".", ",", ";", "%2F", "doi.org", " ", "\n", "٣"]
)


@given(st.lists(PARTS, max_size=8).map("".join))
@example("10.1038/" + "x" * 1900)
@example("10.1038/" + "x" * 2000)
@example("10.1038/a\n")
@example("10.1038/.")
def test_a_doi_ends_where_white_space_begins_in_small_letters_without_punctuation(text):
    if "%" in text:
        return
    found = re.search(r"10\.\d{4,9}/\S+", text.strip()[:2000])
    assert doi(text) == (found[0].rstrip(".,;").lower() if found else None)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("10.5555/abc(1)<2>", "10.5555/abc(1)<2>"),
        ("https://doi.org/10.5555%2FABC", "10.5555/abc"),
        ("doi:10.5555/a%2Fb", "10.5555/a%2fb"),
        (" 10.5555/x. ", "10.5555/x"),
        ("Smith, J. (2012): Fog (doi:10.5555/x(2)).", "10.5555/x(2)"),
        ("Nature, 2018, 555, pp.515-519. \u27e810.1038/nature25777\u27e9", "10.1038/nature25777"),
        ('<a href="https://doi.org/10.5555/x">10.5555/x</a>', "10.5555/x"),
        ("doi:10.5555/(sici)1(1998)49:8<693::aid-x>3.0.co;2-o", "10.5555/(sici)1(1998)49:8<693::aid-x>3.0.co;2-o"),
        ("11.5555/x", None),
        (5, None),
    ],
)
def test_a_doi_is_found_in_what_it_came_with(text, found):
    assert doi(text) == found
