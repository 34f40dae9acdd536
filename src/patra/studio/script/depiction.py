"""Decides which parts of a sentence are there to be seen: not what is denied, compared with, or only spoken of (C§2.3).

What is left out is replaced by blanks of the same length, so that places in the text stay the same. "No moon" shows
no moon, "hands like spades" shows no spade, and who remembers the sea is not at the sea.
"""

# ruff: noqa: E501  patterns read better unbroken

import re
from collections.abc import Sequence

_NP = r"(?:(?:\w|['’-])+\s+){0,2}?(?:\w|['’-])+"
_STOP = r"(?=\s+(?:in|on|at|by|near|over|under|through|across|along|behind|above|below|beside|around|to|from|for|with|and|but|or|nor|that|which|who|when|where|as|of|is|was|were|are|could|would|had|has|left|came|fell|rose|stood|he|she|they|we|it|i|you)\b|[,.;:!?—)\"”’]|$)"
_DENIED_EN = (
    re.compile(
        r"\b(?:no (?:[a-z]+ ){1,2}(?:in [A-Z]\w+ )?|nobody |no one )(?:would|could|will|can|ever) (?:ever )?[a-z]+ "
        rf"(an? {_NP}){_STOP}",
        re.IGNORECASE,
    ),
    re.compile(
        r"\b(?:have you seen|did you see|where is|where are|do you have|look(?:ed|s|ing) for|search(?:ed|es|ing) for)\s+([^?.!,;]*)",
        re.IGNORECASE,
    ),
    re.compile(rf"\bno\s+{_NP}\s+or\s+({_NP}){_STOP}", re.IGNORECASE),
    re.compile(
        rf"\b(?:no|neither|nor|without(?:\s+(?:a|an|the|any|his|her|their|its))?|not\s+(?:a|an|any|one|the)(?:\s+single)?)\s+({_NP}){_STOP}",
        re.IGNORECASE,
    ),
    re.compile(
        r"\b(?:did|does|do|is|was|were|are|had|has|have|could|would|will|can)(?:\s+not|n['’]t|\s+never)\s+((?:rain(?:ed)?|snow(?:ed)?|see|find|have|own|go|come|get|reach|know|want|need|allowed|permitted|able|been?|hear|any|there)\b[^,.;:!?—]*?)(?=\s+(?:but|because|until|so)\b|[,.;:!?—]|$)",
        re.IGNORECASE,
    ),
    re.compile(
        r"(?:^|[.!?;]\s+)\W*(?:do not|don['’]t|never)\s+(?:\w+\s+)([^,.;:!?—]*?)(?=\s+(?:near|in|on|at)\b|[,.;:!?—]|$)",
        re.IGNORECASE,
    ),
    re.compile(r"\bnever\s+((?:saw|seen|had|went|gone|came|come|been|reached|heard)\b[^,.;:!?—]*)", re.IGNORECASE),
    re.compile(
        rf"\bnothing (?:is|was|remains|remained)(?: left)? of (?:the |its |their )?({_NP}){_STOP}", re.IGNORECASE
    ),
    re.compile(
        r"\b(?:the|its|their|his|her|our) ((?:[\w'’-]+ ){0,2}[\w'’-]+) (?:was|were|is|are|has been|had been|have been) "
        r"(?:\w+ly )?(?:destroyed|demolished|torn down|pulled down|burn(?:ed|t) down|blown up|washed away|stolen|bombed|gone|sold)\b",
        re.IGNORECASE,
    ),
    re.compile(rf"\bno need (?:of|for)\s+({_NP}){_STOP}", re.IGNORECASE),
    re.compile(
        rf"\b(?:instead of|rather than|far (?:away )?from|away from|free of|lack of)\s+({_NP}){_STOP}", re.IGNORECASE
    ),
)
_LIKE_EN = (
    re.compile(
        r"(?<!\bi )(?<!\byou )(?<!\bwe )(?<!\bthey )(?<!\bwould )(?<!'d )(?<!\bto )(?<!\bnot )(?<!n't )\blike\s+([^,.;:!?—]+?)(?=\s+(?:and|but|when|while|as)\b|[,.;:!?—]|$)",
        re.IGNORECASE,
    ),
    re.compile(r"\bas\s+(?:if|though)\s+([^,.;:!?—]+)", re.IGNORECASE),
    re.compile(
        r"\b(?:cold|white|black|quiet|still|soft|hard|old|light|heavy|red|dark|bright|sharp|thin|big|small|pale|warm|hot|strong|"
        r"fast|slow|smooth|clear|dry|deep|round|flat|green|blue)\s+as\s+([^,.;:!?—]+)",
        re.IGNORECASE,
    ),
    re.compile(
        r"\bas\s+\w+(?:\s+and\s+\w+)?\s+as\s+([^,.;:!?—]+?)(?=\s+(?:and|but|when|while)\b|[,.;:!?—]|$)", re.IGNORECASE
    ),
    re.compile(
        r"\b(?:resembl\w+|similar to|reminded \w+ of|the (?:size|shape|colou?r) of)\s+([^,.;:!?—]+)", re.IGNORECASE
    ),
)
_THOUGHT_EN = (
    re.compile(
        r"\b(?:remember(?:s|ed|ing)?|dream(?:s|ed|t|ing)? (?:of|about)|imagin(?:e|es|ed|ing)|thought (?:of|about)|thinking (?:of|about)|spoke of|talk(?:s|ed|ing) (?:of|about)|wish(?:ed|es)? for|longed for|missed|stories (?:of|about)|(?:an?|the|this|that|his|her)(?: \w+)? (?:picture|painting|photograph|photo|portrait|statue|drawing|story) of|used to)\s+([^.;:!?—]*)",
        re.IGNORECASE,
    ),
    re.compile(r"\bif\s+([^,.;:!?—]+)", re.IGNORECASE),
    re.compile(
        r"\b(?:last|next) (?:night|week|month|year|season|spring|summer|autumn|winter|(?:mon|tues|wednes|thurs|fri|satur|sun)day)['’]s\s+((?:\w+ ){0,2}\w+)|"
        r"\b(?:yesterday|tomorrow)['’]s\s+((?:\w+ ){0,2}\w+)",
        re.IGNORECASE,
    ),
    re.compile(
        r"\b(?:in|on) (?:the|this|that|one|another) (?:photograph|photo|picture|painting|screen|poster|film)[,]?\s+([^.;:!?]*)",
        re.IGNORECASE,
    ),
)
_PICTURED_EN = re.compile(
    r"\b(?:embroidered|painted|printed|carved|engraved|decorated|stitched|woven|stamped) with\s+([^,.;:!?—]+)|"
    r"\bin the shape of\s+([^,.;:!?—]+)",
    re.IGNORECASE,
)
_PICTURED_ZH = re.compile(r"(?:印|画|刻|绣|绘|雕|织)(?:着|有|了)([^，。；！？：]{1,10}?)(?=的|[，。；！？：]|$)")
"""What is only a picture on a thing: an embroidered swallow."""

_PLANNED_EN = re.compile(
    r"\b(?:will|shall|could|might|(?:is|are|was|were|am) going to|(?:want|plan|hope|promise|decide|intend|agree|refuse|offer|expect|aim|need)\w* to|"
    r"(?:told|asked|invited|wants?|wanted) (?:him|her|them|me|us|you) to|about to|next (?:week|month|year|summer|spring|autumn|winter|time))\s+([^.;:!?—]*)",
    re.IGNORECASE,
)
_PLANNED_ZH = re.compile(
    r"(?:将要|将在|将会|打算|计划|想去|要去|希望|约定|约好|答应|明天|后天|下周|下个?月|明年|下次|等到|等你|以后要)([^，。；！？：]{1,16})"
)
"""What is to come is not where someone is."""

_DENIED_ZH = (
    re.compile(
        r"([\u4e00-\u9fff]{1,4}?)(?:在[^，。]{1,6}中)?被(?:炸毁|炸掉|烧毁|烧掉|拆毁|拆除|拆掉|毁掉|推倒|冲走|冲垮|偷走)"
    ),
    re.compile(
        r"(?:不要放|不用放|不要加|不用|不要|没有|看不见|看不到|不见|不是|并非|毫无|不再有|从未有过|没去|不去|不许|不准|不让|不能|没见过|没)([^，。；！？、：“”但而却就便]{1,8})"
    ),
    re.compile(r"不(?:再)?(?:卖|吃|喝|带|坐|买|养|种|戴|穿|骑|点|养)([^，。；！？、：“”]{1,8})"),
    re.compile(r"(?<![从毫])无(?![数论边垠穷尽限])([^，。；！？、：]{1,2})"),
)
_LIKE_ZH = (
    re.compile(
        r"(?<![图头画偶雕录影])(?:好像|仿佛|如同|犹如|宛如|好似|像)(?!素)([^，。；！？：”]{1,14}?)(?=一样|一般|似的|那样|般|[，。；！？：”]|$)"
    ),
)
_THOUGHT_ZH = (
    re.compile(r"(?:照片|相片|画面|画|电视|屏幕|电影)(?:上|里|中)，?([^。；！？]{1,30})"),
    re.compile(r"写着([^，。；！？：]{1,10})"),
    re.compile(r"(?:昨天|昨夜|昨晚|上周|上个月|去年|明天|下周)的([^，。；！？：]{1,10})"),
    re.compile(r"(?:想起|想到|想象|梦见|梦到|回忆|记得|怀念|如果|要是|假如)([^，。；！？：]{1,16})"),
)
_SALUTATION = re.compile(
    r"\W*(?:My dear(?:est)?|Dear(?:est)?)\s+[^.!?]{1,60}[,:]\s*$|(?:亲爱的|尊敬的)[^。！？]{1,20}[：:，,]\s*$|[\u4e00-\u9fff]{1,8}(?<![说道问答喊叫：])[：:]\s*$"
)
_CLOSED_BY = {"“": "”", "「": "」", "『": "』", '"': '"'}
_SPEECH = re.compile(r"[“「『\"][^”」』\"]*[”」』\"]?")


def without_speech(sentence: str) -> str:
    """The sentence without what is said in quotation marks: a place in dialogue is not where the speaker is."""
    return _SPEECH.sub(lambda found: " " * len(found[0]), sentence)


def with_closed_speech(text: str) -> str:
    """Lettering of a part of someone's speech, opened and closed by a mark of its own."""
    for opening, closing in (("“", "”"), ("「", "」"), ("『", "』")):
        inside = False
        for letter in text:
            if letter == closing and not inside:
                text = opening + text
                break
            inside = letter == opening or (inside and letter != closing)
        if text.rfind(opening) > text.rfind(closing):
            text = text.rstrip() + closing
    return text


def with_open_speech(sentences: Sequence[str], paragraphs: Sequence[int]) -> list[str]:
    """Sentences in order, each that goes on with the speech of the one before opened by a quotation mark.

    Speech ends with its paragraph, closed or not: one that goes on is opened again by who wrote it, and a mark that is
    none (5'9") reaches no further.
    """
    told: list[str] = []
    mark, before = "", -1
    for sentence, paragraph in zip(sentences, paragraphs, strict=True):
        mark, before = mark if paragraph == before else "", paragraph
        told.append(mark + sentence)
        for letter in sentence:
            if mark and letter == _CLOSED_BY[mark]:
                mark = ""
            elif letter in _CLOSED_BY:
                mark = letter
    return told


def seen_part(sentence: str, language: str) -> str:
    """The sentence without what is denied and what is only compared with."""
    rules = (*_DENIED_ZH, *_LIKE_ZH, _PICTURED_ZH) if language == "zh" else (*_DENIED_EN, *_LIKE_EN, _PICTURED_EN)
    return _blank_rules(sentence, rules)


def undenied_part(sentence: str, language: str) -> str:
    """The sentence without what is denied."""
    return _blank_rules(sentence, _DENIED_ZH if language == "zh" else _DENIED_EN)


def here_part(sentence: str, language: str) -> str:
    """The sentence without speech, and without what a person only remembers, imagines, plans or would do."""
    told = unthought_part(seen_part(without_speech(sentence), language), language)
    return _blank_rules(told, (_PLANNED_ZH if language == "zh" else _PLANNED_EN,))


def is_salutation(sentence: str) -> bool:
    """Whether a letter begins: whom it greets is not here."""
    return _SALUTATION.match(sentence) is not None


def unthought_part(sentence: str, language: str) -> str:
    """The sentence without what a person only remembers, imagines or would do."""
    return _blank_rules(sentence, _THOUGHT_ZH if language == "zh" else _THOUGHT_EN)


def _blank_rules(sentence: str, rules: tuple["re.Pattern[str]", ...]) -> str:
    for rule in rules:
        sentence = rule.sub(_blank, sentence)
    return sentence


def _blank(found: "re.Match[str]") -> str:
    start, end = (edge - found.start() for edge in found.span(found.lastindex or 1))
    return found[0][:start] + " " * (end - start) + found[0][end:]
