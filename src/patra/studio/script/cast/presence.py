"""Decides who is spoken of without being there: in what is reported, far away, or dead (C§2.3)."""

# ruff: noqa: E501  patterns read better unbroken

import re
from collections.abc import Collection

from patra.studio.script.cast.phrases import KIN_BEFORE, OF_ROLE

_REPORTED_EN = re.compile(
    r"\b(?:sa(?:id|ys?)|told(?: \w+){1,3}|tells?(?: \w+){1,3}|th(?:ink|inks|ought)|kn(?:ew|ows?|own)|believe[sd]?|hope[sd]?|heard|ask(?:s|ed)?(?: \w+)?|wonder(?:s|ed)?|explain(?:s|ed)?|"
    r"learn(?:s|ed|t)?|fear(?:s|ed)?|promise[sd]?|sw(?:ore|ears?)|wr(?:ote|ites?)|sure|certain|claim(?:s|ed)?|insist(?:s|ed)?|announce[sd]?|add(?:s|ed)?|agree[sd]?|decided|remember(?:s|ed)?)\s+"
    r"(?:that|whether|if|how|why|what|where|when|who)\s+([^.;!?]*)",
    re.IGNORECASE,
)
_REPORTED_ZH = re.compile(
    r"(?<![没不别再小听传])(?:说(?![完着过话起到了道：，]*[：“])(?!完|着|过|话|起|到|了|书|明)|表示|认为|觉得|知道|听说|据说|希望|相信|以为|担心|告诉[^，。“：]{1,4}(?=，))，?([^。；！？“：]*)"
)
_AWAY_EN = re.compile(
    r"(?: [A-Z]\w+)?(?:, who [^,.]*,)?(?:,? who)? (?:would (?:have|be)\b|(?:had )?(?:stayed|remained|waited|was|is) at home\b|(?:is|was|were|had been|has been) (?:still |now |often )?(?:away|abroad|at (?:sea|work|war|the front|school|university|the office)|in (?:prison|hospital|the army|the war|the navy))\b|"
    r"(?:works?|worked|lives?|lived|stud(?:y|ies|ied)|served|fought|had (?:gone|moved|left|emigrated)|moved|(?:is|was) (?:working|living|studying|serving))\s+(?:far away |now |mostly )?(?:abroad|in|at|on|for|to)\b)"
)
_AWAY_ZH = re.compile(
    r"[^，。]{0,4}?(?:在[^，。]{2,6}?(?:工作|打工|上学|读书|念书|当兵|做生意|出差|住院|上班|生活|安了家|上大学|上中学|读大学)|(?:去|到)了?[^，。]{2,4}(?:打工|工作|读书|念书|当兵|出差)|去了(?:国外|外地|前线|远方)|出差|外出|出了远门|没回来|不在家|嫁到|搬到|常年在|长年在|远在|常年在外|被送[到去进])|[^。]{0,24}(?:一年|个月|每年|过年)才回"
)
_DEAD_EN = re.compile(
    r"(?:,? who)?(?: had| has)? (?:been dead|died|drowned|passed away|been killed|was killed|was dead|were dead|fell in the war|fell (?:at|in) [A-Z]\w+)\b|,? dead (?:for|these|since)\b| never (?:came|returned|come)\b"
)
_DEAD_ZH = re.compile(
    r"[^，。]{0,6}?(?:去世|过世|离世|病逝|死在|病故|逝世|牺牲|遇难|死了|走得早|去得早|不在了|不在人世)|[^。]{0,12}都已经?(?:去世|过世|不在)|(?:也|就|便)?死于|出[海门征远][^，。]{0,6}没|[^。]{0,16}再也没有?回来|[^，。]{0,12}?(?:离开了人世|永远闭上了眼睛|与世长辞)|已经?走了[^，。]{0,3}年|留下的|生前"
)
_PICTURED_EN = re.compile(
    r"\bin (?:the|an?|her|his) (?:old )?(?:photograph|photo|picture|painting|portrait|film|dream)s?\b,?([^.;]*)",
    re.IGNORECASE,
)
_PICTURED_ZH = re.compile(r"(?:照片|相片|画|画像|电视|屏幕|梦)[上里中]，?([^。；]*)")
_KIN_PLACE = re.compile(
    r"(?:铺|店|馆|厂|院|部|室|所|局|家庭|学校|节|楼|证|席|费|服|帽|装|票|时代|时期|年代|生涯|身份|宿舍|食堂|公寓)"
)


_TOLD_TO = re.compile(
    r"\b(?:late|dead) $|"
    r"(?:你|请|替我|帮我|代我)(?:告诉|问候|转告|问|劝)$|"
    r"^\W*(?:Tell|Kiss|Ask|Remind|Thank|Hug|Greet|Give my (?:love|regards) to|Say hello to)\s+(?:your |the |little )?$|"
    r"\b(?:letter|card|parcel|postcard|message|call|it was|was|heard) from (?:his|her|my|their|our) (?:\w+ )?$|"
    r"\bn(?:obody|o one|one)\b[^,;]*\b(?:saw|met|found|heard|knew|seen)\b[^,;]*$|"
    r"\b(?:wrote|writes|written|phoned|telephoned|emailed|sent \w+ \w+|sent \w+) to $",
    re.IGNORECASE,
)
_GIVEN = re.compile(r"[^，。]{0,3}(?:买|寄|捎|写信|写了|打电话|打了[^，。]{0,3}电话|发)")


def unreported_part(text: str, language: str) -> str:
    """The sentence without what someone says, thinks or hopes in it: who is only in that is not seen."""
    for rule in (_REPORTED_ZH, _PICTURED_ZH) if language == "zh" else (_REPORTED_EN, _PICTURED_EN):
        text = rule.sub(_blank, text)
    return text


def is_away(rest: str, language: str) -> bool:
    """Whether the words behind a relative say that they work, live or are somewhere else."""
    return (_AWAY_ZH if language == "zh" else _AWAY_EN).match(rest) is not None


def is_dead(rest: str, language: str) -> bool:
    """Whether the words behind a person say that they are dead."""
    return (_DEAD_ZH if language == "zh" else _DEAD_EN).match(rest) is not None


def is_far(before: str, rest: str) -> bool:
    """Whether the words around a person say that something comes from or goes to them: a letter from her sister."""
    return _TOLD_TO.search(before) is not None or (before.endswith("给") and _GIVEN.match(rest) is not None)


def is_elsewhere(before: str, rest: str, language: str, *, kin: bool) -> bool:
    """Whether someone is away, far, or only whose something is; of those with a name only relatives live elsewhere."""
    if kin and (is_away(rest, language) or OF_ROLE.search(before)):
        return True
    return is_far(KIN_BEFORE.sub(r"\1 ", before) if kin else before, rest)


def is_owner(rest: str, kind_words: Collection[str], language: str) -> bool:
    """Whether a name only says whose relative someone is: Tom's mother, 米兰的母亲."""
    if language != "zh" and re.match(
        r"['’]s?\s+(?:\w+\s+)?(?:house|flat|room|shop|farm|kitchen|garden|office|door|home|grave|place|study|yard|workshop)\b",
        rest,
    ):
        return True  # to Mr Pettifer's flat
    follows = re.match(r"的(.{1,3})" if language == "zh" else r"['’]s?\s+(?:\w+\s+)?([a-z]+)", rest)
    return follows is not None and any(follows[1].startswith(w) for w in kind_words if len(w) > 1)


def is_workplace(rest: str) -> bool:
    """Whether a Chinese role is only part of a word for a place or a thing: 裁缝铺, 医生家庭."""
    return _KIN_PLACE.match(rest) is not None


def _blank(found: "re.Match[str]") -> str:
    start, end = (edge - found.start() for edge in found.span(1))
    return found[0][:start] + " " * (end - start) + found[0][end:]
