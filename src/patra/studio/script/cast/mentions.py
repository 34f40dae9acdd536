"""A word that points to a person, and where in the chapter it stands (C§2.3)."""

from bisect import bisect_left
from collections.abc import Sequence

import msgspec

from patra.studio.script.lexicon import CHILDREN
from patra.studio.script.sentences import Sentence


class Mention(msgspec.Struct, frozen=True):
    """A word that points to a person, at a place of the chapter; `weak` is a possessive, which need not show them.

    `absent` is a person who is only remembered, imagined or spoken of: a pronoun may mean them, but they are not seen.
    """

    at: int
    name: str
    weak: bool = False
    absent: bool = False


def mentions_between(mentions: Sequence[Mention], start: int, end: int) -> Sequence[Mention]:
    """The mentions from a place on and before another; they stand in the order of the text."""
    first = bisect_left(mentions, start, key=lambda m: m.at)
    return mentions[first : bisect_left(mentions, end, lo=first, key=lambda m: m.at)]


def blank_speech(text: str, open_quote: bool) -> tuple[str, bool]:
    """The sentence with speech blanked, also speech that an earlier sentence began; and whether it is still open."""
    out: list[str] = []
    for letter in text:
        if letter in "“「『" or (letter == '"' and not open_quote):
            open_quote = True
            out.append(" ")
        elif letter in "”」』" or (letter == '"' and open_quote):
            open_quote = False
            out.append(" ")
        else:
            out.append(" " if open_quote else letter)
    return "".join(out), open_quote


def absolute(sentence: Sentence, place: int) -> int:
    return min(sentence.start + place, sentence.end - 1)


def fits_kind(own: str, kind: str) -> bool:
    if kind == "child":
        return own in CHILDREN
    return own == kind or (kind == "woman" and own == "granny") or (kind == "man" and own == "old")
