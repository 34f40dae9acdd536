"""Decides which language a chapter is written in, from its script and its most frequent words (C§2.3).

Only English and Chinese are understood. Any other language is named, so that it is refused instead of being read by
the wrong voice.
"""

# ruff: noqa: E501  tables read better unbroken

import re
from collections import Counter

READ = ("en", "zh")
"""Languages whose text is understood; others are narrated only when they are asked for by name."""

NAMES = {
    "en": "English", "zh": "Chinese", "ru": "Russian", "ja": "Japanese", "ko": "Korean", "ar": "Arabic",
    "he": "Hebrew", "el": "Greek", "hi": "Hindi", "th": "Thai", "de": "German", "fr": "French", "es": "Spanish",
    "it": "Italian", "pt": "Portuguese", "nl": "Dutch", "pl": "Polish", "tr": "Turkish", "vi": "Vietnamese",
    "sv": "Swedish",
}  # fmt: skip

_SCRIPTS = (
    ("ja", re.compile(r"[\u3041-\u30ff]")),
    ("zh", re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")),
    ("ru", re.compile(r"[\u0400-\u04ff]")),
    ("ko", re.compile(r"[\uac00-\ud7af]")),
    ("ar", re.compile(r"[\u0600-\u06ff]")),
    ("he", re.compile(r"[\u0590-\u05ff]")),
    ("el", re.compile(r"[\u0370-\u03ff]")),
    ("hi", re.compile(r"[\u0900-\u097f]")),
    ("th", re.compile(r"[\u0e00-\u0e7f]")),
)
_SCRIPT_SHARE = 1 / 3  # of the letters; kana decide earlier: Japanese is half Chinese characters
_KANA_SHARE = 0.08
_FREQUENT = {
    "en": "the and of to a in was he she it that his her with had for is on at they from but not you as by there said this are were into over",
    "de": "der die das und ist nicht ein eine einen den dem von mit zu sich auf für war sie er es im als auch an wie aber noch hatte wurde ich",
    "fr": "le la les et est un une des du de dans que qui pas il elle sur pour avec au ne se ce était sont par plus mais comme avait",
    "es": "el la los las y es un una de del en que no se por con para su al lo como más pero era había estaba muy ella",
    "it": "il lo la gli le e è un una di del della che non si per con nel al come più ma era aveva sono anche suo",
    "pt": "o a os as e é um uma de do da em que não se por com para no na como mais mas era tinha foi ele ela seu",
    "nl": "de het een en van is niet dat op te in met voor zijn hij ze was er aan maar ook had naar werd deze",
    "pl": "i w na nie się z do to że jest jak po co ale był była przez od dla tak już jego",
    "tr": "ve bir bu da de için ile çok ama gibi ne o daha var olarak kadar sonra değil",
    "vi": "và của là một có không được cho trong người với những các này đã khi từ đó",
    "sv": "och att det en ett som på är av för med den till inte han hon var från men hade om när",
}  # fmt: skip
_SETS = {tag: frozenset(words.split()) for tag, words in _FREQUENT.items()}
_MARKS = {
    "de": "äöüß",
    "fr": "éèêçàùœ",
    "es": "ñ¿¡áíó",
    "pt": "ãõç",
    "pl": "łęąśżźć",
    "tr": "ğışç",
    "vi": "ơưđạảấầ",
    "sv": "åäö",
}
_WORD = re.compile(r"[^\W\d_]+")


def language_of(text: str) -> str:
    """The BCP 47 tag of the language that carries the text; English where nothing speaks against it."""
    letters = sum(c.isalpha() for c in text)
    for tag, script in _SCRIPTS:
        share = _KANA_SHARE if tag == "ja" else _SCRIPT_SHARE
        if letters and len(script.findall(text)) >= share * letters:
            return tag
    words = Counter(_WORD.findall(text.lower()))
    scores = {
        tag: sum(count for word, count in words.items() if word in frequent)
        + (sum(text.lower().count(mark) for mark in _MARKS.get(tag, "")))
        for tag, frequent in _SETS.items()
    }
    best = max(scores, key=lambda tag: (scores[tag], tag == "en"))
    return best if scores[best] > scores["en"] + 1 else "en"


def disagrees(text: str, language: str) -> str:
    """The script's language where the text is written in a script that the given language is not; else nothing.

    Between languages of the same script the given one is believed.
    """
    found = language_of(text)
    scripts = {tag for tag, _ in _SCRIPTS}
    return found if found != language and (found in scripts or language in scripts & set(READ)) else ""
