"""Finds every word of a sentence that may point to a person: names, roles, pronouns (C§2.3)."""

import re
from collections.abc import Iterator, Mapping

import msgspec

from patra.studio.script.cast.crowds import SEVERAL_ZH
from patra.studio.script.cast.phrases import NEW_EN, PRONOUN_EN
from patra.studio.script.cast.presence import is_workplace
from patra.studio.script.cast.roles import TITLES
from patra.studio.script.lexicon import CHILDREN


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """Whom a chapter is known to have so far, and the words for people of its language."""

    chinese: bool
    kinds: Mapping[str, str]
    aliases: Mapping[str, str]
    roles: Mapping[str, str]
    kind_words: Mapping[str, str]


def pointers(text: str, people: Known) -> Iterator[tuple[int, str, str, int]]:
    """Places, words and articles of everything that may point to a person."""
    taken: set[int] = set()
    for name in sorted(people.kinds, key=len, reverse=True):
        others = (alias for alias, own in people.aliases.items() if own == name)
        for form in dict.fromkeys((name, *others, *(name.split("·")[1:] if people.chinese else name.split()))):
            if form in TITLES or (not people.chinese and form.rstrip(".") in {"Mr", "Mrs", "Dr"}):
                continue
            pattern = re.escape(form) if people.chinese else rf"\b{re.escape(form)}\b"
            for match in re.finditer(pattern, text):
                if not people.chinese and form != name and text[: match.start()].endswith("the "):
                    continue  # the Gant mill
                if not taken & {match.start(), match.end() - 1}:
                    taken.update(range(match.start(), match.end()))
                    yield match.start(), name, "name", len(form)
    if people.chinese:
        yield from _chinese(text, people, taken)
        return
    for match in re.finditer(
        r"\b(?:(a|an|another|the|his|her|my|our|their|your|this|that|two|three)\s+)?((?:old|elderly|little|young)\s+)?([a-z]+|Mother|Father|Grandmother|Grandfather|Grandma|Grandpa|Granddad|Granny|Gran|Nana|Mum|Mom|Mama|Mummy|Dad|Daddy|Papa)\b(?!-)",
        text,
    ):
        adjective, noun = (match[2] or "").strip(), match[3].lower()
        word = f"{adjective}-{noun}" if f"{adjective}-{noun}" in people.kind_words else noun
        owner = text[match.end() : match.end() + 2] in {"'s", "’s"} and word not in people.roles
        if word in people.kind_words and match.start(3) not in taken and not owner:  # several of them are a crowd
            new = NEW_EN.search(text[: match.start()])  # a tall man
            yield match.start(3), word, (match[1] or (new[1] if new else "")).lower(), len(noun)
    for match in PRONOUN_EN.finditer(text):
        yield match.start(), match[1].lower(), "pronoun", len(match[1])


_GROWS = re.compile("[底全内外东西南北中上下局头尾根腰腹面颈胸背顶前后]部长")
"""What grows at the bottom of something is no minister: 底部长出."""


def _chinese(text: str, people: Known, taken: set[int]) -> Iterator[tuple[int, str, str, int]]:
    longest = max(map(len, people.kind_words))
    at = 0
    while at < len(text):
        for length in range(min(longest, len(text) - at), 0, -1):
            word = text[at : at + length]
            if word in people.kind_words and at not in taken and not _GROWS.match(text, max(0, at - 1)):
                if is_workplace(text[at + length :]) or re.match(
                    r"家(?![人里])", text[at + length :]
                ):  # 外婆家的院子: nobody is named but whose it is
                    at += length - 1
                    break
                several = text[at + length : at + length + 1] == "们" and people.kind_words[word] not in CHILDREN
                if several or SEVERAL_ZH.search(text[:at]):  # several of them are a crowd
                    at += length - 1
                    break
                new = re.search(r"(?:一个|一位|一名|另一个|有个|有位|几个|两个)[^，。]{0,4}$", text[:at])
                article = "pronoun" if word in {"他", "她", "他们", "她们"} else ("a" if new else "the")
                yield at, word, article, length
                at += length - 1
                break
        at += 1
