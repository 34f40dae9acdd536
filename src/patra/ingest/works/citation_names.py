"""Parts the name of an author into family name, given names and suffix, where it is that of a person."""

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from patra.ingest.expressions.bibliography import without_degrees

_SUFFIX = re.compile(r"(?P<name>.+ .+?),? (?P<suffix>[JS]r\.?|I{2,3}|IV)")


def without_suffix(name: str) -> tuple[str, str | None]:
    """`Martin Luther King Jr.` is of the family King, and so is it cited."""
    found = _SUFFIX.fullmatch(name)
    return (name, None) if found is None else (found["name"], found["suffix"])


_PARTICLES = frozenset({
    "af", "al", "da", "de", "del", "della", "den", "der", "des", "di", "do", "dos", "du",
    "el", "la", "le", "ten", "ter", "van", "vom", "von", "zu", "zum", "zur", "'t",
})  # fmt: skip


def name_parts(author: Mapping[str, Any]) -> dict[str, Any]:
    """Family name, given names and suffix; nothing of a group, nor of a name in a script without an order of its own.

    Sources that give a name as one text (OpenAlex, arXiv) mean a person by `Gustavo A. B. da Fonseca`: the last word
    is the family name, with the particles before it, as reference managers and BibTeX itself read it.
    """
    if author.get("family"):
        return {"family": author["family"], "given": author.get("given"), "suffix": author.get("suffix")}
    name = without_degrees(str(author.get("name") or ""))
    if not is_person(name):
        return {}
    name, suffix = without_suffix(name)
    words = name.split()
    at = len(words) - 1
    while at > 1 and words[at - 1] in _PARTICLES:
        at -= 1
    return {"family": " ".join(words[at:]), "given": " ".join(words[:at]), "suffix": suffix}


_GROUP = re.compile(
    r"(?i)\b(?:collaboration|consorti\w+|group|network|committee|commission|society|association|universit\w+|institut\w+"
    r"|laborator\w+|project|team|initiative|foundation|organi[sz]ation|council|cent(?:er|re)|department|agency|signatories"
    r"|\w*gruppe|of|for|and|und|für|(?-i:the|on|in|et))\b|(?-i:^The\b)|[,;()&\d\"„“]"
)
"""Small words in small letters: In-Soo, On and The are given names, too."""


_INITIALS = re.compile(r" [A-Z]{1,2}$")
"""`Zhou W`: the family name comes first."""
_MAX_LONG_WORDS = 5


def is_person(name: str) -> bool:
    """Whether a name as one text looks like that of a person, the given name first."""
    words = name.split()
    long = sum(len(word.rstrip(".")) > 1 and word not in _PARTICLES for word in words)
    looks_like_one = len(words) > 1 and 0 < long <= _MAX_LONG_WORDS and _is_latin(name)
    return looks_like_one and not _GROUP.search(name) and not _INITIALS.search(name)


def _is_latin(name: str) -> bool:
    return all("LATIN" in unicodedata.name(one, "") for one in name if one.isalpha())
