"""Finds whether a sentence is about many people at once (C§2.3)."""

import re
from collections.abc import Mapping

from patra.studio.script.cast.roles import kind_words_of
from patra.studio.script.lexicon import CHILDREN

THEY = frozenset({"they", "他们", "她们"})
SEVERAL_ZH = re.compile(r"(?:[两三四五六七八九十百千万亿几数]+|每|各|许多|很多|一群|一些)(?:个|位|名)?(?:年轻|老)?$")
_MANY_ZH = re.compile(r"[村镇城店街厂船][里上]?的人(?!家)|大家|全村|人人")


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
