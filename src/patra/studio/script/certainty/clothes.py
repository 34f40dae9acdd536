"""The colours that a text gives what someone wears, and their hair: they are drawn in them (C§2.3)."""

# ruff: noqa: E501  patterns read better unbroken

import re
from collections.abc import Mapping, Sequence

import msgspec

from patra.studio.script.cast.mentions import mentions_between
from patra.studio.script.dialogue import Reading
from patra.studio.script.sentences import Sentence
from patra.studio.script.shots import Figure

FAR = 24  # characters behind a word for hair in which whose it is stands
_COLOURS = {
    "red": "red 红",
    "yellow": "yellow golden 黄",
    "green": "green 绿",
    "blue": "blue 蓝",
    "white": "white 白",
    "black": "black 黑",
    "brown": "brown 棕 褐",
    "grey": "grey gray 灰",
    "pink": "pink 粉",
    "purple": "purple 紫",
    "orange": "orange 橙",
}
_WORDS = {word: name for name, row in _COLOURS.items() for word in row.split()}
_WORN = re.compile(
    r"\b(?:in|wearing|wore) (?:a|an|the|his|her|their) (?:\w+ )?("
    + "|".join(word for word in _WORDS if word.isascii())
    + r") (?:coat|raincoat|jacket|dress|shirt|blouse|cardigan|sweater|jumper|pullover|uniform|cloak)\b"
    r"|[穿披]着?(?:了?一?[件身条])?([红黄绿蓝白黑棕褐灰粉紫橙])色?的?(?:\w{0,2})(?:外套|大衣|衣|衫|袄|裙|毛衣|制服|雨衣)",
    re.IGNORECASE,
)


_HAT = re.compile(
    r"\b(?:in|wearing|wore|with) (?:a|an|the|his|her|their) (?:\w+ )?("
    + "|".join(word for word in _WORDS if word.isascii())
    + r") (?:\w+ )?(?:hat|cap|beret|bonnet|bobble hat|helmet)\b"
    r"|戴着?(?:了?一?[顶个])?([红黄绿蓝白黑棕褐灰粉紫橙])色?的?(?:\w{0,2})帽",
    re.IGNORECASE,
)


_HAIRS = {
    "grey": "grey gray silver silvery 灰 灰白 花白 斑白",
    "white": "white snow-white 白 雪白 银白 银",
    "red": "red ginger auburn 红",
    "blond": "blond blonde golden fair yellow 金 金黄",
    "brown": "brown chestnut 棕 褐",
    "black": "black dark raven 黑 乌黑",
}
_HAIR_WORDS = {word: name for name, row in _HAIRS.items() for word in row.split()}
_EN = "|".join(sorted((word for word in _HAIR_WORDS if word.isascii()), key=len, reverse=True))
_ZH = "|".join(sorted((word for word in _HAIR_WORDS if not word.isascii()), key=len, reverse=True))
_HAIRED = re.compile(
    rf"\b({_EN})-haired\b|(?:一头|满头|留着|长着|有着|扎着)?({_ZH})(?:色的?|的)?(?:长|短|卷)?(?:头发|发的|辫子)|(?:满头|一头)(白)发",
    re.IGNORECASE,
)
_OWN_HAIR = re.compile(
    rf"\b(?:with|had|has|have) (?:a |an |\w+, )?(?:\w+ )?({_EN}) (?:\w+ )?(?:hair|plaits?|braids?|curls|ponytail)\b|\b(?:his|her|whose) (?:\w+ )?({_EN}) (?:\w+ )?hair\b",
    re.IGNORECASE,
)
_TURNED = re.compile(
    rf"\b(?:his|her|whose) (?:\w+ )?hair (?:is|was|had|has|turned|went)(?: (?:been|gone|turned|gone quite|already|now|long|quite|all)){{0,2}} ({_EN})\b|头发(?:已经?|都|全|早就?|也)*(?:变|成|是)?({_ZH})了?",
    re.IGNORECASE,
)


class Hair(msgspec.Struct, frozen=True, kw_only=True):
    """The colour of someone's hair from a place of the chapter on."""

    name: str
    colour: str
    at: int


def hair_of_people(sentences: Sequence[Sentence], reading: Reading) -> list[Hair]:
    """The hair of everyone of whom the text says it: of who stands before it, or right behind a grey-haired."""
    found: list[Hair] = []
    for sentence in sentences:
        here = mentions_between(reading.people.mentions, sentence.start, sentence.end)
        for rule in (_OWN_HAIR, _TURNED, _HAIRED):
            for match in rule.finditer(sentence.text):
                ends = sentence.start + match.end()
                before = [m.name for m in here if m.at < ends]
                behind = [m.name for m in here if ends <= m.at <= ends + FAR] if rule is _HAIRED else []
                who = next(iter(behind), before[-1] if before else "")
                colour = _HAIR_WORDS[next(one for one in match.groups() if one).lower()]
                if who:
                    found.append(Hair(name=who, colour=colour, at=sentence.start if rule is _TURNED else 0))
    return found


def with_hair(figures: Sequence[Figure], hair: Sequence[Hair], place: int) -> tuple[Figure, ...]:
    """The figures with the hair that they have at a place of the chapter."""

    def colour(name: str) -> str:
        return next((one.colour for one in reversed(hair) if one.name == name and one.at <= place), "")

    return tuple(msgspec.structs.replace(figure, hair=colour(figure.name)) for figure in figures)


def dress_figures(figures: Sequence[Figure], text: str, worn: Mapping[str, Figure] | None = None) -> tuple[Figure, ...]:
    """The figures of a shot; one who is alone in it in the colours that it says they wear, others as they were before."""
    before = worn or {}

    def dress(figure: Figure) -> Figure:
        last = before.get(figure.name, figure)
        coat, hat = (_colour(_WORN, text), _colour(_HAT, text)) if len(figures) == 1 else ("", "")
        return msgspec.structs.replace(figure, coat=coat or figure.coat or last.coat, hat=hat or last.hat)

    return tuple(dress(figure) for figure in figures)


def _colour(rule: "re.Pattern[str]", text: str) -> str:
    found = rule.search(text)
    return _WORDS[(found[1] or found[2]).lower()] if found else ""
