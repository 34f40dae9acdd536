"""Decides which pictograms show the nouns of a sentence that no drawing of ours knows (C§2.3).

The table is `tables/things`.
"""

# ruff: noqa: E501, SIM905  tables read better unbroken, as words

import re
from functools import lru_cache

from patra.studio.script.depiction import seen_part
from patra.studio.script.language import READ
from patra.studio.script.lexicon import FIGURES, word_length
from patra.studio.script.tables.senses import is_other_sense
from patra.studio.script.tables.things import PAINTED, PICTOGRAMS

MOST_SHOWN = 5
_WORD = re.compile(r"[a-z]+(?:-[a-z]+)*")
_VERB_AFTER = frozenset(
    "to i you we they he she it can will must should could would may might who and then not never always".split()
)


def pictograms_of(sentence: str, language: str) -> tuple[str, ...]:
    """The pictograms of a sentence, in the order of mention."""
    return tuple(pictogram_words(sentence, language))


def pictogram_words(sentence: str, language: str) -> dict[str, str]:
    """The pictograms of a sentence, in the order of mention, each with the word that it stands for."""
    if language not in READ:
        return {}
    text = seen_part(sentence, language)
    found = _chinese(text) if language == "zh" else _english(text)
    return dict(list(found.items())[:MOST_SHOWN])


def is_alone(text: str, at: int) -> bool:
    """Whether a single character is a word of its own: 油 after 倒, but neither that of 酱油 nor the 水 of 水分子."""
    if text[at] not in _ALONE:
        return False
    before, after = text[at - 1 : at] if at else "", text[at + 1 : at + 2]
    begins = not "\u4e00" <= before <= "\u9fff" or before in _BEFORE_ALONE
    return begins and (not "\u4e00" <= after <= "\u9fff" or after in _AFTER_ALONE)


_AFTER_ALONE = frozenset(
    "的了在和与里上中下是有一放倒煮烧开会就也都被把从到变流喝吃来去不没很太又还给用让后前边很滚热凉冷干湿香"
)
_BEFORE_ALONE = frozenset(
    "一二两三四五六七八九十几半的了着把将和与加放倒喝吃买卖有用是在从到进上下里煮烧切点提拿背打带给没个只杯碗勺锅瓶壶袋张条块滴片根头群匹这那些冷热清凉温开小大新旧老白黑红浇装取送付收花种挑抓赶喂骑采看望见闻擦洗刷搬背"
)
ANIMALS = frozenset(
    "cow pig sheep duck rabbit elephant kangaroo panda penguin owl shark jellyfish paw rodent bat donkey turtle tortoise dolphin koala bee butterfly snail snake turkey".split()
)
_PETS = re.compile(
    r"\b(?:cat|dog|horse|bird|parrot|hen|goose|fox|monkey|pony|mare|kitten|puppy|hound|terrier|whale|crow|raven|robot|dragon|doll)\b|[猫狗马鸟鸡鹅]|鹦鹉|猴|龙"
)


def is_animal(word: str) -> bool:
    """Whether an English word is one animal."""
    return word in ANIMALS or (word.isascii() and _PETS.fullmatch(word) is not None)


def has_animal(text: str, language: str) -> bool:
    """Whether a sentence names an animal: a pronoun may mean it."""
    return bool(ANIMALS & set(pictogram_words(text, language))) or _PETS.search(text.lower()) is not None


BODY = frozenset({"brain", "heart-pulse", "eye", "ear-hearing", "tooth", "lungs", "hand-back-right"})


def is_bodily(text: str, language: str) -> bool:
    """Whether a chapter is about the body: teeth of a zip and the heart of a town are none."""
    return language in READ and len(BODY & set((_chinese if language == "zh" else _english)(text))) > 1


def is_pictured(word: str, language: str) -> bool:
    return word in _index(language) and (language != "zh" or len(word) > 1 or word in _ALONE)


def pictogram_of_motif(motif: str, word: str) -> str:
    """The pictogram of the very word that the text has for a motif of ours; nothing where none is nearer to it.

    A ferry is no sailing boat, an owl not any bird.
    """
    if not word:
        return ""
    index = _index("en" if word.isascii() else "zh")
    found = next((index[form] for form in (word.lower(), _single(word.lower())) if form in index), "")
    return found if PAINTED.get(found) == motif else ""


def _chinese(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    index = _index("zh")
    longest, at = max(map(len, index)), 0
    while at < len(text):
        own = word_length(text, at)
        for length in range(min(longest, len(text) - at), 0, -1):
            if length < own:  # a part of a longer word that is drawn otherwise: 油 of 油灯
                at += own - 1
                break
            word = text[at : at + length]
            if (name := index.get(word)) is not None and (length > 1 or is_alone(text, at)):
                found.setdefault(name, word)
                at += length - 1
                break
        at += 1
    return found


def _english(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    index = _index("en")
    lowered = text.lower()
    words = _WORD.findall(lowered)
    paired = -1
    for at, word in enumerate(words):
        if at == paired:
            continue  # the chocolate of hot chocolate
        pair = f"{word}-{words[at + 1]}" if at + 1 < len(words) else ""
        if word == "mine" and (at == 0 or words[at - 1] not in _MINES):
            continue  # take mine
        after = words[at + 1] if at + 1 < len(words) else ""
        if _single(word) in _VERBS and (after in {"to", "at", "off", "away"} or (at and words[at - 1] in _ROLE_WORDS)):
            continue  # my brother waves to her
        acts = at > 1 and words[at - 2] in _BEING  # they were making cheese
        doing = at > 0 and not acts and len(words[at - 1]) > 5 and words[at - 1].endswith("ing")  # a sewing machine
        made_of = (
            word in _MATERIALS and f"{word} {after}" in lowered and after not in _AFTER_MATERIAL | {""}
        )  # an iron pan is no iron
        for form in (pair, _single(pair), *(() if doing or made_of else (word, _single(word)))):
            verb = form in _VERBS and (at == 0 or words[at - 1] in _VERB_AFTER)
            if form and form in index and not verb and not is_other_sense(form, lowered):
                found.setdefault(index[form], pair.replace("-", " ") if "-" in form and "-" not in word else word)
                paired = at + 1 if "-" in form and "-" not in word else -1
                break
    return found


_MATERIALS = frozenset(
    "iron gold silver copper steel metal apple lemon orange corn rice egg wine oil water fire ice stone wool bone salt sugar milk bread car bus bee horse fish flower coffee tea whale coconut olive sunflower peanut pumpkin carrot potato tomato chicken beef mushroom grain school police rescue heat birthday".split()
)
_AFTER_MATERIAL = frozenset(
    "and or in on at by with from of for to is was were are that which until over into it the a an as then but so if when while under out".split()
)
_BEING = frozenset("is are was were am be been began started kept stopped and by of".split())
_ROLE_WORDS = frozenset(word for row in FIGURES.values() for word in row.split("|")[0].split())
_ALONE = frozenset("锅汤粥蛋盐酒醋油刀草蛇牛猪羊鸭云水冰肺药针磁锚票剑盾旗钱税鼓碗")
_MINES = frozenset("a the coal gold salt copper iron silver old deep in".split())
_VERBS = frozenset(
    "water plant power heat light bank ring nail saw paint spring measure screw hook fan pump bear bat drum degree present note notes table well mine mind wave waves current trade goods sweet panel steps filter spray shoot web vote bolt plate drop balance bath brush camp court box law price store sample kind sun earth world air lock cloud seed energy colour dress coat fuel goal ball peace business company music oil rock rocks sand well pin pins film tape horn lance graph ribbon torch mask puppet tools drain pipe tap filter fly file stamp seal chip label frame sink jam roll cap duck crane mat patch drip sheet till cane ball rent target dial trunk jar chain picture wall file row".split()
)


def _single(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


@lru_cache(maxsize=2)
def _index(language: str) -> dict[str, str]:
    index: dict[str, str] = {}
    for name, row in PICTOGRAMS.items():
        english, chinese = row.split("|")
        for word in (chinese if language == "zh" else english).split():
            index.setdefault(word, name)
    return index
