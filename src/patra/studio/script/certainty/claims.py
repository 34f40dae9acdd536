"""A claim that a picture makes, with the evidence for it; how likely several of them all hold (C§2.3)."""

from collections.abc import Iterable
from math import prod

import msgspec

from patra.studio.script.certainty.evidence import EVIDENCE


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """What a picture claims: this person is there, is a woman, is grown; it is that place; that is the thing meant."""

    about: str  # person, name, sex, age, missing, place, thing
    subject: str  # whom or what
    evidence: str  # a code of the table

    @property
    def confidence(self) -> float:
        return EVIDENCE[self.evidence][0]

    @property
    def words(self) -> str:
        return f"{self.about} {self.subject}: {EVIDENCE[self.evidence][1]} ({self.confidence:.2f})".replace(" :", ":")


def certainty_of(claims: Iterable[Claim]) -> float:
    """How likely all claims hold, as if they were independent."""
    return prod(claim.confidence for claim in claims)


def doubts(claims: Iterable[Claim], below: float = 0.9) -> list[str]:
    """The claims that make a shot uncertain, the weakest first, in words."""
    weak = [claim for claim in claims if claim.confidence < below]
    return [claim.words for claim in sorted(weak, key=lambda claim: claim.confidence)]
