"""Decides who a chapter is about, what they look like, and whom each word points to (C§2.3).

A person is known by a name, a role ("the baker") or a kind ("an old woman"). A definite "the woman" is the one who was
introduced; "a woman" is a new person. A pronoun is the last one it fits. One person keeps one kind, and so one look,
through the film.
"""

import re
from collections.abc import Mapping

import msgspec

from patra.studio.script.cast.ages import Stage, stages_of
from patra.studio.script.cast.mentions import Mention, mentions_between
from patra.studio.script.cast.names import kinds_of_names
from patra.studio.script.language import READ
from patra.studio.script.references import Scan
from patra.studio.script.sentences import Chapter


class People(msgspec.Struct, frozen=True, kw_only=True):
    """Everyone in a chapter: their kinds by name, and who is meant where."""

    kinds: dict[str, str]
    mentions: tuple[Mention, ...]
    names: tuple[str, ...] = ()  # those of the kinds that are names, not roles
    aliases: Mapping[str, str] = {}  # other words for those with names: 月琴, 老沈
    stages: tuple[Stage, ...] = ()  # who is a child there, or old
    unsure: frozenset[str] = frozenset()  # of whom nothing says whether they are women or men

    def kind_at(self, name: str, place: int) -> str:
        """How someone is drawn at a place of the chapter."""
        there = next((s.kind for s in reversed(self.stages) if s.name == name and s.start <= place < s.end), "")
        return there or self.kinds.get(name, "man")

    def without_names(self, text: str, language: str) -> str:
        """A text with blanks for names: 小雨 is a girl and no weather, and Owen Price costs nothing."""
        for name in (*self.names, *self.aliases):
            pattern = re.escape(name) if language == "zh" else rf"\b{re.escape(name)}\b"
            text = re.sub(pattern, lambda found: " " * len(found[0]), text)
        return text

    def acting(self, start: int, end: int) -> list[str]:
        """Who is pointed to between two places, without those of whom only something is: "her parents" is not she."""
        here = mentions_between(self.mentions, start, end)
        return list(dict.fromkeys(m.name for m in here if not m.absent and not m.weak))

    def within(self, start: int, end: int) -> list[str]:
        """Who is pointed to between two places, in order; possessives count where nobody else is named."""
        here = [m for m in mentions_between(self.mentions, start, end) if not m.absent]
        strong = [m.name for m in here if not m.weak]
        return list(dict.fromkeys(strong or [m.name for m in here]))


def people_of(chapter: Chapter) -> People:
    """Everyone whom a chapter names or points to."""
    if chapter.language not in READ:
        return People(kinds={}, mentions=())
    named, aliases, unsure = kinds_of_names(chapter)
    scan = Scan(chapter, named, aliases, unsure)
    mentions = scan.join_mentions(tuple(scan.run()))
    places = [(m.at, m.name) for m in mentions]
    stages, whole = stages_of(chapter.sentences, scan.told, places, scan.kinds, tuple(named))
    names = tuple(sorted(named, key=len, reverse=True))
    return People(
        kinds=scan.kinds | whole, mentions=mentions, names=names, aliases=aliases, stages=stages, unsure=scan.unsure
    )


__all__ = ["People", "people_of"]
