"""Follows how old the people of a chapter are: a life from childhood to old age is drawn so (C§2.3).

A life is written in years and ages: someone who is six stays a child until the text says otherwise, and is old when the
years since birth say so. In other texts an age that is only looked back on ("at six") ends with its paragraph.
"""

# ruff: noqa: E501  patterns read better unbroken

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

import msgspec

from patra.studio.script.cast.presence import unreported_part
from patra.studio.script.cast.roles import FEMALE, MALE
from patra.studio.script.lexicon import CHILDREN
from patra.studio.script.sentences import Sentence

YOUNG_MAX_YEARS, OLD_MIN_YEARS = 14, 62
_ONES = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()  # noqa: SIM905
_TENS = {
    "twenty": 20,
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
    "seventy": 70,
    "eighty": 80,
    "ninety": 90,
}
_WORDS = {word: years for years, word in enumerate(_ONES, 1)} | _TENS
_NUMBER = rf"(\d{{1,3}}|(?:{'|'.join(_TENS)})(?:-(?:{'|'.join(_ONES[:9])}))?|{'|'.join(sorted(_ONES, key=len, reverse=True))})"
_END = r"(?=\s+years? old\b|\s*[,.;:!?]|\s+(?:and|but|when|she|he|who|that|an?|the|his|her|their|they|it|to|in|now)\b|\s+[A-Z]|$)"
_AGE_EN = re.compile(
    rf"\b(?:at(?: the age of| only| just)?|aged|by the age of|(?P<is>(?:is|was|turned)(?: only| just| now| already| almost)?))\s+{_NUMBER}(?!\s+o'clock)(?! (?:years?|months?|days?|hours?|of|per|miles|people)\b(?! old)){_END}|"
    rf"(?P<of>\b)(?<!felt )(?<!feel )(?<!looked )(?<!seemed )(?<!feels ){_NUMBER}[- ]years?[- ]old\b|\bwhen (?:he|she) was {_NUMBER}\b|(?P<after>[a-z]), (\d{{1,2}}),|\b(?:man|woman|boy|girl|child|teacher|farmer|widow|widower|nurse|doctor|pensioner|student|pupil|worker) of {_NUMBER}{_END}",
    re.IGNORECASE,
)
_DIGITS = "[0-9一二三四五六七八九十]"
_AGE_ZH = re.compile(rf"(?<!我的)(?<!{_DIGITS})({_DIGITS}{{1,4}})多?岁(?P<of>的)?|年(?:过|近)({_DIGITS}{{1,3}})")
_CHILDHOOD = re.compile(
    r"\bas an? (?:small |little |young )?(?:child|girl|boy)\b|\bwhen (?:he|she) was (?:still )?(?:an? (?:small |little |young )?(?:child|girl|boy)|small|little)\b|\bin (?:his|her) childhood\b|小时候|童年|年幼时|幼时|儿时",
    re.IGNORECASE,
)
_OLD_AGE = re.compile(
    r"\bin (?:his|her) (?:old age|last (?:years?|winter|summer|days|months|spring|autumn))\b|\b(?:he|she) (?:was|is|grew) (?:very |now )?old\b|\bnow an old (?:man|woman)\b|晚年|年老|老了以后|上了年纪|满头白发|老了(?=[，。])|白发苍苍|耄耋|弥留",
    re.IGNORECASE,
)
_GROWN = re.compile(
    r"\b(?:married|wedding|university|college|graduated|apprentice|husband|wife|first job|worked as|was hired|joined the (?:army|navy|company)|qualified)\b|结婚|大学|毕业|工作|参军|嫁|娶|入伍|成了家|丈夫|妻子|当上|成为"
)
_YEAR = re.compile(
    r"\b(?:in|by|until|since|of|summer|winter|spring|autumn|January|February|March|April|May|June|July|August|September|October|November|December)\s+(1[5-9]\d\d|20\d\d)\b|(1[5-9]\d\d|20\d\d|[一二][零〇一二三四五六七八九]{3})年",
    re.IGNORECASE,
)
_NOWADAYS = re.compile(r"\b(?:today|nowadays|these days|years later)\b|如今|现在|长大", re.IGNORECASE)
_BIRTH = re.compile(r"\b(?:was|were) born\b|出生|生于|生在|诞生")
_BORN = re.compile(r"\b(?:was|were) born\b|出生(?:在|于)|生于|年生在")
_LATER = re.compile(rf"\b{_NUMBER} years later\b|([0-9一二三四五六七八九十]{{1,3}})年(?:以?后|之后)", re.IGNORECASE)


class Stage(msgspec.Struct, frozen=True):
    """How old someone is drawn between two places of a chapter."""

    start: int
    end: int
    name: str
    kind: str


@lru_cache(maxsize=8)
def is_life(text: str) -> bool:
    """Whether a text tells a life: of a birth, of where someone grew up, or of several ages."""
    ages = (_AGE_ZH if _is_chinese(text) else _AGE_EN).findall(text)
    return _BIRTH.search(text) is not None or re.search(r"\bgrew up\b", text) is not None or len(ages) > 2


def is_birth(text: str) -> bool:
    """Whether someone is born in a sentence: they are not seen there grown up."""
    return _BORN.search(text) is not None


def kind_at_age(kind: str, years: int) -> str:
    """The kind of a person who is so old."""
    if kind not in FEMALE | MALE:
        return kind
    if years <= YOUNG_MAX_YEARS:
        return "girl" if kind in FEMALE else "boy"
    if years >= OLD_MIN_YEARS:
        return "granny" if kind in FEMALE else "old"
    return "woman" if kind in FEMALE else "man"


def stages_of(
    sentences: Sequence[Sentence],
    told: Sequence[str],
    mentioned: Sequence[tuple[int, str]],
    kinds: Mapping[str, str],
    names: Sequence[str],
) -> tuple[tuple[Stage, ...], dict[str, str]]:
    """How old people with names are drawn where, and those who are another age from the first word on.

    `told` are the sentences without speech, `mentioned` the places where each person is meant.
    """
    life = is_life("\n".join(told))
    years: dict[str, int] = {}  # the last age that is known of each
    born: dict[str, int] = {}
    now = 0  # the year
    passing = set[str]()  # whose age ends with the paragraph
    grown = set[str]()  # who is seen as grown up somewhere
    stages: list[Stage] = []
    whole: dict[str, str] = {}
    topic, paragraph = "", -1
    for sentence, spoken in zip(sentences, told, strict=True):
        text = unreported_part(spoken, "zh" if _is_chinese(spoken) else "en")
        here = [(at - sentence.start, name) for at, name in mentioned if sentence.start <= at < sentence.end]
        everyone = here
        here = [(at, name) for at, name in here if name in names]
        if sentence.paragraph != paragraph:
            for name in passing:
                years.pop(name, None)
            passing, paragraph = set[str](), sentence.paragraph
        before, now = now, _year(text) or now
        if now != before and (later := {name: now - year for name, year in born.items() if now > year}):
            years |= later
        if now != before:
            born |= {name: now - age for name, age in years.items() if name not in born}  # or earlier
        for match in _LATER.finditer(text):
            years = {name: age + _years(match[1] or match[2]) for name, age in years.items()}
        if life and _NOWADAYS.search(text):
            grown |= {name for name, age in years.items() if age <= YOUNG_MAX_YEARS}
            years = {name: age for name, age in years.items() if age > YOUNG_MAX_YEARS}
        if _BIRTH.search(text) and here and now:
            born.setdefault(here[0][1], now)
        for match in (_AGE_ZH if _is_chinese(text) else _AGE_EN).finditer(text):
            number = next((one for one in match.groups()[::-1] if one and _years(one)), "")
            found = match.groupdict()
            name = _whose(here, everyone, match.start(), match.end(), topic, of=found.get("of") is not None)
            if name not in names or not _years(number):
                continue
            years[name] = _years(number)
            if not life and (
                found.get("is") or found.get("of") is not None or found.get("after") or " of " in match[0]
            ):
                whole.setdefault(name, kind_at_age(kinds[name], years[name]))
            elif not life:
                passing.add(name)
        subject = here[0][1] if here else topic
        if subject:
            if childhood := _CHILDHOOD.search(text):
                if text[: childhood.start()].endswith(("him ", "her ")):
                    continue  # she painted him as a boy
                child = next((one for at, one in here if childhood.start() <= at < childhood.end()), subject)
                if sentence.start == sentences[0].start or not text[: childhood.start()].strip(" ,，“”") or life:
                    years[child] = YOUNG_MAX_YEARS
                    passing.add(child)
            elif _OLD_AGE.search(text):
                years[subject] = OLD_MIN_YEARS
            elif _GROWN.search(text) and years.get(subject, 99) <= YOUNG_MAX_YEARS:
                del years[subject]
                grown.add(subject)
            topic = subject
        grown |= {name for name, age in years.items() if age > YOUNG_MAX_YEARS}
        for name, age in years.items():
            if name in kinds:
                stages.append(Stage(sentence.start, sentence.end, name, kind_at_age(kinds[name], age)))
    for name, kind in kinds.items():  # seven in the first sentence of a life, and grown up later
        own = {stage.kind for stage in stages if stage.name == name}
        if life and ((kind in CHILDREN and name in grown) or (kind in {"old", "granny"} and own - {kind})):
            whole[name] = kind_at_age(kind, OLD_MIN_YEARS - 1)
    return tuple(stages), whole


def _whose(
    here: Sequence[tuple[int, str]], everyone: Sequence[tuple[int, str]], start: int, end: int, topic: str, *, of: bool
) -> str:
    """Whose age it is: of whom it stands before, else whom the sentence named last before it, else next."""
    before = [name for at, name in everyone if at < start]
    after = [(at, name) for at, name in here if at >= end]
    if of:  # 三岁的儿子 is another person
        return after[0][1] if after and after[0][0] - end < 12 else ""
    return (before[-1] if before else "") or (after[0][1] if after else "") or topic


def _is_chinese(text: str) -> bool:
    return re.search("[\u4e00-\u9fff]", text) is not None


def _year(text: str) -> int:
    found = list(_YEAR.finditer(text))
    if not found:
        return 0
    word = found[-1][1] or found[-1][2]
    return int(
        "".join(
            str("零一二三四五六七八九".find("零" if one == "〇" else one)) if not one.isdigit() else one for one in word
        )
    )


def _years(word: str) -> int:
    word = word.lower()
    if word.isascii():
        tens, _, ones = word.partition("-")
        return int(word) if word.isdigit() else _WORDS.get(tens, 0) + _WORDS.get(ones, 0)
    tens, ten, ones = word.partition("十")
    digits = "零一二三四五六七八九"
    return max(digits.find(tens), 1) * 10 + max(digits.find(ones), 0) if ten else max(digits.find(tens), 0)


__all__ = ["Stage", "is_birth", "is_life", "kind_at_age", "stages_of"]
