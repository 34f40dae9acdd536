"""Texts of people out of markup."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patra.ingest.expressions.cleaners import clean
from patra.ingest.expressions.markup import plain_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1) \x93Las memorias\x94 \x85", "1) \u201cLas memorias\u201d \u2026"),
        ("Bericht\xaderstattung \u200b", "Berichterstattung"),
        ("Fog&shy;horn&#8203;s", "Foghorns"),
        ("\x9d", None),
        ("می\u200cخواهم", "می\u200cخواهم"),  # a joiner that its script needs
    ],
)
def test_signs_that_nobody_can_see_are_not_in_a_text(text: str, expected: str | None) -> None:
    assert plain_text(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("structure in<i>PRCC-TFE3</i>fusion", "structure in PRCC-TFE3 fusion"),
        ("The&lt;i&gt;TFE3&lt;/i&gt;fusion", "The TFE3 fusion"),
        ("d<i>N</i>/d<i>S</i> and <i>N</i>-acetyl", "dN/dS and N-acetyl"),
        ("<i>lac</i>ZYA of <i>Drosophila</i>s", "lacZYA of Drosophilas"),
        ("H<sub>2</sub>O and (<em>in vitro</em>)", "H2O and (in vitro)"),
    ],
)
def test_italics_have_the_spaces_that_a_deposit_has_lost(text: str, expected: str) -> None:
    assert plain_text(text) == expected


def test_the_title_of_a_section_is_parted_from_its_text() -> None:
    jats = "<jats:sec><jats:title>Background</jats:title><jats:p>Fog.</jats:p></jats:sec>"
    assert clean(("abstract",), f"<jats:title>Abstract</jats:title>{jats}") == "Background: Fog."
    assert clean(("abstract",), "<h4>Methods:</h4>Lamps. <h4>Why?</h4>Light.") == "Methods: Lamps. Why? Light."


@given(st.text("ab \n\u00a0\u2003é", max_size=30))
def test_white_space_is_single_and_none_is_at_the_ends(text: str) -> None:
    assert plain_text(text) == (" ".join(text.split()) or None)
    assert plain_text(f"<p>{text}</p>") == (" ".join(text.split()) or None)
