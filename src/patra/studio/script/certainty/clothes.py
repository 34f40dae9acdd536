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


def dressed(figures: Sequence[Figure], text: str) -> tuple[Figure, ...]:
    """The figures of a shot; one who is alone in it in the colour that it says they wear."""
    worn = _WORN.search(text)
    if worn is None or len(figures) != 1:
        return tuple(figures)
    colour = _WORDS[(worn[1] or worn[2]).lower()]
    return (msgspec.structs.replace(figures[0], coat=colour),)
