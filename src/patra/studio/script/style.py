"""Decides whether a chapter tells a story or explains something, and whether its paragraphs are episodes (C§2.3)."""

# ruff: noqa: E501  patterns read better unbroken

import re

from patra.studio.script.depiction import is_salutation
from patra.studio.script.dialogue import Utterance
from patra.studio.script.facts import card_of
from patra.studio.script.language import READ
from patra.studio.script.people import People
from patra.studio.script.sentences import Chapter

PEOPLED_SHARE = 0.34  # of the sentences; from here on it is a story
MOST_PEOPLED_SHARE = 0.67  # under a title that asks how or why
_ASKS = re.compile(
    r"(?:how|why|what|when|where)\b|怎[样么]|如何|为什么|什么是|[^，。]*(?:原理|是怎么|怎样)", re.IGNORECASE
)
_TOLD_EN = re.compile(r"\b(?:was|were|had|went|came|\w+ed)\b")
_STEP_EN = re.compile(
    r"^(?:First|Then|Next|Finally|Now)?,?\s*(?:add|mix|cut|boil|bake|stir|pour|heat|put|turn|press|open|close|place|wash|peel|"
    r"fold|hold|remove|let|leave|take|fill|serve|knead|chop|rinse|plug|screw|wait|repeat|check|choose|dig|water|tie|spread)\b",
    re.IGNORECASE,
)
_STEP_ZH = re.compile(
    r"(?:^|，)(?:首先|先|然后|接着|再|最后|另)?，?(?:把[^，。]{1,8}[放倒切插装剪]|将|加入|放入|倒入|放进|切成|切|煮|炸|炒|蒸|烤|拌|搅|撒|浇上|捞|关火|开小火|剪|铺|拧|折|涂|洗净|泡|盖|"
    r"准备|打开|关闭|按|取|起锅)"
)


MIN_STANZAS = 3
MAX_VERSE_CHARACTERS = 60


def is_verse(text: str) -> bool:
    """Whether a text is a poem: stanzas of short lines, most of which end no sentence."""
    stanzas = [block.strip().splitlines() for block in re.split(r"\n\s*\n", text.strip())]
    lines = [line.strip() for stanza in stanzas if len(stanza) > 1 for line in stanza]
    if sum(len(stanza) > 1 for stanza in stanzas) < MIN_STANZAS or any(
        len(line) > MAX_VERSE_CHARACTERS for line in lines
    ):
        return False
    return sum(not line.endswith((".", "!", "?", "。", "！", "？", ":", "：")) for line in lines) * 2 >= len(lines)


def is_asking(title: str) -> bool:
    """Whether a title asks how or why something is."""
    return _ASKS.match(title) is not None


def is_step(text: str, language: str) -> bool:
    """Whether a sentence says what to do next."""
    return bool((_STEP_ZH if language == "zh" else _STEP_EN).search(text))


def is_instructing(chapter: Chapter) -> bool:
    """Whether half of a chapter are steps: a recipe, an instruction."""
    steps = sum(is_step(sentence.text, chapter.language) for sentence in chapter.sentences)
    return steps > 1 and steps * 2 >= len(chapter.sentences)


def is_explaining(chapter: Chapter, people: People, spoken: tuple[Utterance, ...]) -> bool:
    """Whether things matter more than people: few sentences have a person, nobody speaks, or steps are given."""
    sentences = chapter.sentences
    if chapter.language not in READ:
        return True  # nothing is understood, so nothing but lettering is shown
    if not sentences or spoken:
        return False
    asks = is_asking(chapter.title)
    peopled = sum(bool(people.within(s.start, s.end)) for s in sentences) / len(sentences)
    if is_instructing(chapter):
        return True
    if peopled >= (PEOPLED_SHARE if not asks else MOST_PEOPLED_SHARE):
        return False
    if asks:
        return True
    carded = sum(card_of(s.text, chapter.language) is not None for s in sentences)
    told = sum(bool(_TOLD_EN.search(s.text)) for s in sentences) if chapter.language != "zh" else 0
    return carded * 3 >= len(sentences) or ((chapter.language != "zh" and told * 3 <= len(sentences)) and peopled < 0.2)


_DATED = re.compile(
    r"\b(?:1[0-9]{3}|20[0-9]{2})\b|\b[Ll]ast (?:year|month|week)\b|\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b|\b(?:century|centuries|officials?|"
    r"spokes\w+|according to|was born|died)\b|\bat the age of\b|[一二1-2][零〇一二三四五六七八九0-9]{3}年|世纪|[一二三四五六七八九十0-9]+岁|"
    r"出生|去世|朝(?:代|时)|皇帝|据[^，。]{1,8}(?:介绍|报道)|记者|(?:本|上|下)?周[一二三四五六日]|[0-9]+月[0-9]+日|年以?前",
)
DATED_SENTENCES = 2


def is_episodic(chapter: Chapter, text: str) -> bool:
    """Whether each paragraph is about something else: a poem, a letter, or what has dates (a life, news, history)."""
    dated = sum(bool(_DATED.search(sentence.text)) for sentence in chapter.sentences)
    return is_verse(text) or any(is_salutation(s.text) for s in chapter.sentences[:2]) or dated >= DATED_SENTENCES
