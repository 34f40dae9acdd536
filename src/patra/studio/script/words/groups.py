"""Finds small groups of people without names: two sisters, three boys, parents, the children (C§2.3).

They are drawn as so many people of that kind; more than three are a crowd.
"""

# ruff: noqa: E501  patterns and tables read better unbroken

import re

from patra.studio.script.cast.roles import kind_words_of

_COUNTS = {"两": 2, "二": 2, "三": 3, "俩": 2}
_PLURALS = {"children": "child", "men": "man", "women": "woman", "kids": "child", "wives": "wife"}
_GROUP_EN = re.compile(
    r"\b(?:(two|three|both|twin|a pair of|a couple of)\s+)(?:(?:the|of|his|her|their|my)\s+)*((?:(?:old|young|little|small|tall|other|tired|elderly|poor|foreign|local|police|fire|school|army|railway|hospital|village|town)\s+)*)([a-z]+)\b",
    re.IGNORECASE,
)
_FAMILY_EN = re.compile(
    r"\b(?:(?:his|her|their|my|our|the|your)\s+)(children|parents|grandparents|twins|sisters|brothers|daughters|sons|couple|newlyweds)\b|^(Children)\b",
    re.IGNORECASE,
)
_GROUP_ZH = re.compile(r"(两|二|三|俩)(?:个|位|名)(?:年轻的?|年老的?|小(?=[男女]孩))?")
_FAMILY = {
    "children": ("girl", "boy"), "parents": ("woman", "man"), "grandparents": ("granny", "old"), "twins": ("child", "child"),
    "sisters": ("woman", "woman"), "brothers": ("man", "man"), "daughters": ("girl", "girl"), "sons": ("boy", "boy"),
    "couple": ("woman", "man"), "newlyweds": ("woman", "man"), "父母": ("woman", "man"), "爸爸妈妈": ("woman", "man"),
    "爸妈": ("woman", "man"), "爷爷奶奶": ("granny", "old"), "夫妻": ("woman", "man"), "夫妇": ("woman", "man"), "兄弟": ("man", "man"),
    "姐妹": ("woman", "woman"), "兄妹": ("man", "woman"), "姐弟": ("woman", "man"), "孩子们": ("girl", "boy"), "小朋友们": ("girl", "boy"),
    "师徒": ("old", "man"), "母女": ("woman", "girl"), "父子": ("man", "boy"), "母子": ("woman", "boy"), "父女": ("man", "girl"),
}  # fmt: skip
_FAMILY_ZH = re.compile("|".join(sorted((w for w in _FAMILY if w >= "一"), key=len, reverse=True)))


def groups_in(text: str, language: str) -> tuple[tuple[str, ...], str]:
    """The kinds of the people of small groups in a sentence, and the sentence with blanks for their words."""
    return _chinese(text) if language == "zh" else _english(text)


def _english(text: str) -> tuple[tuple[str, ...], str]:
    kinds: list[str] = []
    words = kind_words_of("en")
    for match in _GROUP_EN.finditer(text):
        noun = match[3].lower()
        single = _PLURALS.get(noun) or noun.removesuffix("s")
        kind = "person" if noun == "people" else words.get(single, words.get(noun, "")) if noun != single else ""
        if kind:
            aged = {"woman": "granny", "man": "old"} if "old" in match[2] or "elder" in match[2] else {}
            kinds += _several(aged.get(kind, kind), 3 if match[1].lower() == "three" else 2)
            text = _blank_match(text, match)
    for match in _FAMILY_EN.finditer(text):
        kinds += _FAMILY[(match[1] or match[2]).lower()]
        text = _blank_match(text, match)
    return tuple(kinds[:3]), text


def _chinese(text: str) -> tuple[tuple[str, ...], str]:
    kinds: list[str] = []
    words = kind_words_of("zh")
    for match in _GROUP_ZH.finditer(text):
        rest = text[match.end() :]
        spots = [(at, rest[at : at + size]) for at in range(4) for size in range(5, 0, -1)]
        at, noun = next(((at, word) for at, word in spots if word in words and "，" not in rest[:at]), (0, ""))
        if noun and noun not in {"他", "她", "他们", "她们"}:
            kinds += _several(words[noun], _COUNTS[match[1]])
            width = match.end() - match.start() + at + len(noun)
            text = text[: match.start()] + " " * width + rest[at + len(noun) :]
    for match in _FAMILY_ZH.finditer(text):
        kinds += _FAMILY[match[0]]
        text = _blank_match(text, match)
    return tuple(kinds[:3]), text


def _several(kind: str, count: int) -> list[str]:
    if kind in {"person", "crowd"}:
        return ["woman", "man", "woman"][:count]
    return (["girl", "boy", "girl"] if kind == "child" else [kind] * 3)[:count]


def _blank_match(text: str, match: "re.Match[str]") -> str:
    return text[: match.start()] + " " * (match.end() - match.start()) + text[match.end() :]
