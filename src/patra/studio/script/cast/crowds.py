"""Finds whether a sentence is about many people at once, who they are and how many (C§2.3)."""

# ruff: noqa: E501  patterns read better unbroken

import re
from collections.abc import Mapping

import msgspec

from patra.studio.script.cast.roles import kind_words_of
from patra.studio.script.lexicon import CHILDREN

THEY = frozenset({"they", "他们", "她们"})
SEVERAL_ZH = re.compile(
    r"(?:[两三四五六七八九十百千万亿几数]+|每|各|许多|很多|一群|一些)(?:个|位|名)?(?:年轻的?|年老的?|老|外国|中国|外地|本地|当地|国内|国外|著名|普通)?$"
)
_MANY_ZH = re.compile(r"[村镇城店街厂船][里上]?的人(?!家)|大家|全村|人人")
_YOUNG = re.compile(
    r"\b(?:children|pupils|schoolchildren|kids|boys|girls|classmates)\b|孩子|小学生|同学|学生|小朋友|娃娃"
)
_WOMEN = re.compile(r"\b(?:women|ladies|nuns|mothers|midwives|seamstresses)\b|妇女|女工|女兵|尼姑|大妈们|姑娘们")
_MEN = re.compile(
    r"\b(?:men|monks|priests|soldiers|sailors|fathers|\w{3,}(?<!wo)men)\b|士兵|战士|水手|渔夫|船夫|车夫|和尚|汉子|小伙子"
)
_AT_WORK = re.compile(
    r"\b(?:workers|crew|volunteers|labourers|laborers|protesters|officers|troops|colleagues)\b|工人|志愿者|职工|员工|民工|矿工"
)
_COUNTS = {
    word: count
    for count, words in enumerate(["four 四", "five 五", "six 六", "seven 七", "eight 八", "nine 九"], 4)
    for word in words.split()
}
_COUNTED_EN = re.compile(rf"\b({'|'.join(word for word in _COUNTS if word.isascii())}|[4-9])((?: [a-z]+){{1,3}})")
_COUNTED_ZH = re.compile(r"(?<![十百千零二三])([四五六七八九4-9])[个名位](?:[\u4e00-\u9fff]{0,4}?)$")


class Crowd(msgspec.Struct, frozen=True, kw_only=True):
    """Of which kinds many people are, in turn (no kinds: of all), and how many; 0 where nobody says or they are too many."""

    kinds: tuple[str, ...] = ()
    count: int = 0


def crowd_of(text: str, language: str) -> Crowd:
    """Who the many people of a sentence are."""
    words = kind_words_of(language)
    lowered = text.lower()
    if language == "zh":
        roles = [
            m for word, kind in words.items() if kind == "person" and len(word) > 1 for m in re.finditer(word, text)
        ]
        counts = [found[1] for m in roles if (found := _COUNTED_ZH.search(text[: m.start()]))]
    else:
        roles = [
            m
            for m in re.finditer(r"\b[a-z]+s\b", lowered)
            if m[0] not in words and words.get(m[0].removesuffix("s")) == "person"
        ]
        behind = {m[1]: m[2].split() for m in _COUNTED_EN.finditer(lowered)}
        plural = {m[0] for m in roles} | {
            m[0] for rule in (_YOUNG, _WOMEN, _MEN, _AT_WORK) for m in rule.finditer(lowered)
        }
        counts = [number for number, nouns in behind.items() if plural & set(nouns)]
    kinds: tuple[str, ...] = ()
    if _YOUNG.search(lowered):
        kinds = ("girl", "boy")
    elif _WOMEN.search(lowered) or _MEN.search(lowered):
        kinds = (*(("woman",) if _WOMEN.search(lowered) else ()), *(("man",) if _MEN.search(lowered) else ()))
    elif roles or _AT_WORK.search(lowered):
        kinds = ("man", "woman")
    count = (_COUNTS.get(counts[0]) or int(counts[0])) if len(counts) == 1 else 0
    return Crowd(kinds=kinds, count=count)


def crowd_in(text: str, kind_words: Mapping[str, str] | None = None, language: str = "en") -> bool:
    """Whether a sentence is about many people at once."""
    words = kind_words or kind_words_of(language)
    if language == "zh" and _MANY_ZH.search(text):
        return True
    if language == "zh":
        several = any(
            f"{word}们" in text for word, kind in words.items() if kind not in CHILDREN and word not in "他她"
        ) or any(SEVERAL_ZH.search(text[: at.start()]) for word in words for at in re.finditer(word, text))
        return several or any(word in text for word, kind in words.items() if kind == "crowd" and word not in THEY)
    return any(
        words.get(word) == "crowd" or (word not in words and word.removesuffix("s") in words)
        for word in re.findall(r"[a-z]+", text.lower())
    )
