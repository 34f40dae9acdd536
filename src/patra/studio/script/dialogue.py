"""Decides who says what to whom: each quotation of a chapter with its speaker (C§2.3).

The speaker is whom the words beside the quotation name ("said Anna", "she asked", 小满说). Without such words it is who
spoke before in the paragraph, or who acts in it; else the two who are talking take turns.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

import msgspec

from patra.studio.script.depiction import without_speech
from patra.studio.script.lexicon import CHILDREN
from patra.studio.script.people import People
from patra.studio.script.sentences import Chapter, Sentence

_QUOTE = re.compile(r"“[^”]*”?|「[^」]*」?|『[^』]*』?|\"[^\"]*\"?")
_SAYS_EN = re.compile(
    r"\b(?:said|says|say|asked|asks|cried|whispered|shouted|answered|replied|called|told|murmured|added|laughed|sighed|"
    r"muttered|explained|began|continued|agreed|warned|begged|exclaimed|wondered|suggested|insisted|promised|thought)\b"
)
_SAYS_ZH = re.compile(r"说|道|问|答|喊|叫|笑着|回答|嘀咕|低声|大声|告诉")
_TO_EN = re.compile(
    r"\b(?:said|whispered|spoke|called|shouted|explained)\s+to\s+|\b(?:asked|told|answered|warned|begged)\s+"
)
_TO_ZH = re.compile(r"(?:对|向|跟|问|告诉)")
_CHILD = re.compile(
    r"小朋友|孩子，|娃|\b(?:my (?:boy|girl|child|dear)|little one|young (?:man|lady)|sonny)\b", re.IGNORECASE
)
NEAR = 90  # characters beside a quotation in which its speaker is looked for
_PUBLIC = re.compile(r"\bon (?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b|\breporters?\b|记者")
FAR = (110, 36)  # characters of narration, English and Chinese, after which another one is not listening any more


class Utterance(msgspec.Struct, frozen=True, kw_only=True):
    """A quotation, from and to which place of the chapter, by whom and to whom; empty where it is unknown."""

    start: int
    end: int
    speaker: str
    to: str = ""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What was understood of a chapter beside its scenes."""

    language: str
    people: People
    text: str = ""
    utterances: tuple[Utterance, ...] = ()
    explains: bool = False
    cards_only: bool = False  # it asks how or why: no scene tells that
    bodily: bool = False  # about the body: an eye is one

    def utterances_in(self, sentence: Sentence) -> Sequence[Utterance]:
        """What people say in a sentence."""
        first = bisect_right(self.utterances, sentence.start, key=lambda said: said.end)
        last = bisect_left(self.utterances, sentence.end, lo=first, key=lambda said: said.start)
        return self.utterances[first:last]

    def speaker(self, sentence: Sentence) -> str:
        """Who says most of a sentence; nobody where the narrator does."""
        shares: dict[str, int] = {}
        for said in self.utterances_in(sentence):
            shared = min(said.end, sentence.end) - max(said.start, sentence.start)
            shares[said.speaker] = shares.get(said.speaker, 0) + shared
        return max(shares, key=lambda name: shares[name]) if shares else ""

    def narration_of(self, sentence: Sentence) -> str:  # blanks for what people say, also over several sentences
        text = sentence.text
        for said in self.utterances_in(sentence):
            start, end = max(0, said.start - sentence.start), said.end - sentence.start
            if start < len(text) and end > 0:
                text = text[:start] + " " * (min(end, len(text)) - start) + text[end:]
        return without_speech(text)

    def parts(self, sentence: Sentence, text: str) -> list[dict[str, Any]]:
        """A sentence as what the narrator says and what people say themselves, in order."""
        pieces: list[tuple[int, int, str]] = []
        at = sentence.start
        for said in self.utterances_in(sentence):
            begins, ends = max(at, said.start), min(said.end, sentence.end)
            pieces += [(at, begins, ""), (begins, ends, said.speaker)]
            at = ends
        pieces.append((at, sentence.end, ""))
        numbers = {name: number for number, name in enumerate(self.people.kinds)}
        worded = [(" ".join(text[start:end].split()), speaker) for start, end, speaker in pieces]
        return [
            {
                "text": words,
                "speaker": speaker,
                "kind": self.people.kinds.get(speaker, ""),
                "number": numbers.get(speaker, 0),
            }
            for words, speaker in worded
            if any(map(str.isalnum, words))
        ]


def utterances_of(chapter: Chapter, text: str, people: People) -> tuple[Utterance, ...]:
    found: list[Utterance] = []
    spoke = here = 0  # where the utterances of the paragraph before begin, and those of this one
    for start, end in _paragraph_spans(chapter):
        spoke, here = here, len(found)
        quotes = [(start + m.start(), start + m.end()) for m in _QUOTE.finditer(text[start:end])]
        quotes = [span for span in quotes if _is_speech(text[slice(*span)], chapter.language)]
        in_paragraph = ""
        tagged_behind = False  # “…”小川低下头。 “…”老秦笑了。
        for number, (begins, ends) in enumerate(quotes):
            before = (quotes[number - 1][1] if number else start, begins)
            after = (ends, quotes[number + 1][0] if number + 1 < len(quotes) else end)
            speaker, to = _tagged_speaker(chapter, text, people, before, after)
            beat = _beat(text, before, begins=number == 0)
            follows = _following_beat(people, text, ends) if chapter.language == "zh" else ""
            tagged_behind = tagged_behind or number == 0 or not text[slice(*before)].strip()
            speaker = speaker or (follows if tagged_behind else "")
            tagged_behind = tagged_behind and bool(follows)
            speaker = speaker or _acting(people, *beat) or in_paragraph or _acting(people, ends, end)
            speaker = speaker or _turn(found, people)
            in_paragraph = speaker
            to = to or _called_person(text[begins:ends], people, speaker)
            to = to if to != speaker else ""
            lately = found[spoke:][-4:]  # after a paragraph without speech someone else may be there
            if len(text[start:begins].strip()) > FAR[chapter.language == "zh"]:
                lately = found[here:]
            other = next((u.speaker for u in reversed(lately) if u.speaker and u.speaker != speaker), "")
            public = _PUBLIC.search(text[ends : ends + NEAR].split("\n", maxsplit=1)[0]) is not None
            to = to or other or "" if public else to or other or _beside(people, begins, speaker, chapter.language)
            found.append(Utterance(start=begins, end=ends, speaker=speaker, to=to))
    return tuple(found)


def _called_person(quote: str, people: People, speaker: str) -> str:
    """Whom the words themselves address: by name, or as a child where there is only one."""
    words = {name: name for name in people.names} | dict(people.aliases)
    if by_name := next(
        (n for w, n in words.items() if re.search(rf"[“「『\"，,]\s*{re.escape(w)}[，,！!？?]", quote)), ""
    ):
        return by_name
    young = [name for name, kind in people.kinds.items() if kind in CHILDREN and name != speaker]
    return young[0] if len(young) == 1 and _CHILD.search(quote) else ""


def _paragraph_spans(chapter: Chapter) -> list[tuple[int, int]]:
    spans: dict[int, tuple[int, int]] = {}
    for sentence in chapter.sentences:
        first, _ = spans.get(sentence.paragraph, (sentence.start, 0))
        spans[sentence.paragraph] = (first, sentence.end)
    return list(spans.values())


def _is_speech(quote: str, language: str) -> bool:
    """A quotation that ends like a sentence or a clause; a single quoted word is a name or a title."""
    inner = quote.strip('“”「」『』" ')
    ends = inner[-1:] in set(".,!?…—;。，！？；~")
    return bool(inner) and (ends or len(inner) > (6 if language == "zh" else 24))


def _tagged_speaker(
    chapter: Chapter, text: str, people: People, before: tuple[int, int], after: tuple[int, int]
) -> tuple[str, str]:
    says, to = (_SAYS_ZH, _TO_ZH) if chapter.language == "zh" else (_SAYS_EN, _TO_EN)
    follows = text[after[0] : min(after[1], after[0] + NEAR)]
    clause = re.split(r"[.!?。！？]", follows, maxsplit=1)[0]
    lead = text[max(before[0], before[1] - NEAR) : before[1]]
    lead = re.split(r"[.!?。！？]", lead)[-1]
    begins_tag = chapter.language != "zh" or not lead.rstrip().endswith(("：", ":"))
    if begins_tag and says.search(clause) and not clause.lstrip().startswith("\n"):
        return _who(people, after[0], clause, to)
    if says.search(lead) and lead.rstrip().endswith((":", ",", "：", "，", "—", "道", "说")):
        return _who(people, before[1] - len(lead), lead, to)
    return "", ""


def _who(people: People, start: int, clause: str, to: "re.Pattern[str]") -> tuple[str, str]:
    """The speaker and the one spoken to, by the places of those whom a clause names."""
    here = [m for m in people.mentions if start <= m.at < start + len(clause)]
    spoken_to = ""
    if found := to.search(clause):
        heard = [m for m in here if start + found.end() <= m.at <= start + found.end() + 14]
        rest = [m for m in here if m not in heard[:1]]
        if heard and rest:
            spoken_to, here = heard[0].name, rest
    strong = [m.name for m in here if not m.weak] or [m.name for m in here]
    return (strong[0] if strong else ""), spoken_to


def _acting(people: People, start: int, end: int) -> str:
    return next(iter(people.within(start, end)), "")


def _beside(people: People, begins: int, speaker: str, language: str) -> str:
    """The one with a name who was with the speaker right before: 方大妈看着豆豆。“想吃什么？”方大妈问。"""
    near = people.within(begins - FAR[language == "zh"], begins)
    others = [name for name in near if name != speaker]
    return others[0] if len(others) == 1 and others[0] in people.names else ""


def _following_beat(people: People, text: str, ends: int) -> str:
    """Who acts right behind a quotation, in the same line: the next one may be about the listener."""
    near = (m for m in people.mentions if ends <= m.at <= ends + 1 and not m.weak)
    return next((m.name for m in near if "\n" not in text[ends : m.at]), "")


def _beat(text: str, before: tuple[int, int], *, begins: bool) -> tuple[int, int]:
    """The sentence of narration right before a quotation; after another quotation its own tag does not count."""
    between = text[slice(*before)]
    cuts = [m.end() for m in re.finditer(r"[.!?。！？]\s*", between) if between[m.end() :].strip()]
    if not cuts:
        return before if begins else (before[1], before[1])
    return before[0] + cuts[-1] - 1, before[1]  # a sentence begins with the blank before it


def _turn(found: Sequence[Utterance], people: People) -> str:
    """The other one of the two who are talking."""
    if not found:
        return ""
    last = found[-1]
    other = next((u.speaker for u in reversed(found) if u.speaker and u.speaker != last.speaker), last.to)
    known = list(people.kinds)
    if not other and len(known) == 2 and last.speaker in known:
        return known[1 - known.index(last.speaker)]
    return other
