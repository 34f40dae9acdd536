"""The colour that a text gives what someone wears: they are drawn in it (C§2.3)."""

import re
from collections.abc import Sequence

import msgspec

from patra.studio.script.shots import Figure

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


def dress_figures(figures: Sequence[Figure], text: str) -> tuple[Figure, ...]:
    """The figures of a shot; one who is alone in it in the colours that it says they wear."""
    if len(figures) != 1:
        return tuple(figures)
    coat, hat = _colour(_WORN, text), _colour(_HAT, text)
    return (msgspec.structs.replace(figures[0], coat=coat or figures[0].coat, hat=hat),)


def _colour(rule: "re.Pattern[str]", text: str) -> str:
    found = rule.search(text)
    return _WORDS[(found[1] or found[2]).lower()] if found else ""
