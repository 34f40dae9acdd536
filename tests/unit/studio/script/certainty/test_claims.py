"""Claims hold together less likely than each alone, and say why."""

import pytest

from patra.studio.script.certainty.claims import Claim, certainty_of, doubts


def claim(about: str, evidence: str) -> Claim:
    return Claim(about=about, subject="Ines", evidence=evidence)


def test_claims_are_multiplied_and_the_weakest_comes_first() -> None:
    claims = [claim("person", "named_here"), claim("age", "children_about"), claim("sex", "sex_guessed")]
    assert certainty_of(claims) == pytest.approx(0.98 * 0.85 * 0.5)
    assert [line.split(":")[0] for line in doubts(claims)] == ["sex Ines", "age Ines"]
    assert certainty_of([]) == 1.0
