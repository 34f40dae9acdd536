"""Finds what a sentence says in figures and lists: numbers, comparisons, enumerations, definitions (C§2.3).

Such a sentence is drawn as a chart, a list or lettering. What is not certain is left alone: a wrong chart is worse
than none.
"""

# ruff: noqa: E501, SIM905  patterns and tables read better unbroken

import re

import msgspec

from patra.studio.script.language import READ

MOST_ITEMS = 6
_UNITS = (
    "percent|per cent|%|degrees?|kilomet(?:re|er)s?|met(?:re|er)s?|centimet(?:re|er)s?|millimet(?:re|er)s?|kilograms?|"
    "grams?|litres?|liters?|tonnes?|tons?|watt-hours?|kilowatt-hours?|watts?|volts?|hours?|minutes?|seconds?|days?|weeks?|"
    "months?|years?|miles?|feet|people|households|homes|dollars|euros|pounds|million|billion|times|km|kg|cm|mm|ml|kWh|MW|GW"
)
_ONES: dict[str, int] = dict(zip("one two three four five six seven eight nine".split(), range(1, 10), strict=True))
_TEENS: dict[str, int] = dict(
    zip(
        "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split(),
        range(10, 20),
        strict=True,
    )
)
_TENS: dict[str, int] = dict(
    zip("twenty thirty forty fifty sixty seventy eighty ninety".split(), range(20, 100, 10), strict=True)
)
_WORDS: dict[str, int] = _ONES | _TEENS | _TENS
_AMOUNT = rf"(?:\d[\d,]*(?:\.\d+)?|(?:{'|'.join(_TENS)})[- ](?:{'|'.join(_ONES)})|{'|'.join(_WORDS)})"
_BEGUN_BEFORE = re.compile(
    rf"(?:[-–—.,\d]|\b(?:hundred|thousand|million|point)(?:\s+and)?\s|\b(?:\d+|{'|'.join(_WORDS)})\s+(?:to|or|and)\s)$",
    re.IGNORECASE,
)
"""What stands before the last part of a larger amount or of a range: a hundred and, two or."""
_NUMBER_EN = re.compile(rf"\b({_AMOUNT})\s*(?:(million|billion|thousand|hundred)\s+)?({_UNITS})(?!\w)", re.IGNORECASE)
_MEASURED_EN = re.compile(
    r"(?:ton|kilo|milli|centi|gram|lit|met|watt|volt|percent|per cent|degree|pound|euro|dollar)", re.IGNORECASE
)
_NUMBER_ZH = re.compile(
    r"(?<![零〇一二三四五六七八九十百千两0-9第])([0-9]+(?:\.[0-9]+)?|[一二三四五六七八九十百千两]+)\s*(万|亿)?(%|度|公里|千米|米|厘米|公斤|千克|克|升|毫升|吨|小时|分钟|秒|天|年|个月|人|元|瓦时|瓦|伏|倍|户)|百分之([一二三四五六七八九十百]+|[0-9]+)"
)
_YEAR = re.compile(
    r"\b(?:in|by|since|until|of)\s+(1[0-9]{3}|20[0-9]{2})\b|([0-9]{4}|[一二][零〇一二三四五六七八九]{3})年"
)
_DEFINITION_EN = re.compile(
    r"^(?:An?\s+|The\s+)?([A-Za-z][A-Za-z -]{1,30}?)\s+(?:is|are|means)\s+((?:an?|the|any|one|what|tiny|small|a kind of)\s[^.;!?]{10,140})",
    re.IGNORECASE,
)
_CALLED = re.compile(r"\b(?:is|are)\s+called\s+(?:an?\s+|the\s+)?([a-z][a-z -]{2,30})", re.IGNORECASE)
_DEFINITION_ZH = re.compile(
    r"^(?:所谓)?([\u4e00-\u9fff]{1,10}?)(?:是|指的是|就是)(?:一种|指|一个|把|由|用|能)([^。；！？]{4,60})"
)
_NOT_DEFINED = frozenset(
    "he she it they this that there what who i we you here his her their everything nothing one time all".split()
)
_ITEM = r"(?:[\w'’%-]+\s+){0,4}?[\w'’%-]+"
_LIST_EN = re.compile(
    rf"({_ITEM}(?:,\s+{_ITEM})+,?\s+(?:and|or)\s+{_ITEM})(?=[.;:!?]|\s+(?:in|on|to|for|with|that|which|until|into|from)\b|$)"
)
_LIST_LEAD = re.compile(
    r"^.*?\b(?:needs?|has|have|had|are|is|was|were|includes?|of|with|contains?|takes?|took|adds?|mix|bring|brought|like|for|by|"
    r"buys?|packs?|gather|use|uses|gives?|makes?|eats?|grows?|carries|means|between|from|into|the parts|both|as|say|"
    r"wanted|brought|carried|packed|bought)\s+(?=\S+(?:\s+\S+){0,3}$)", re.IGNORECASE,
)  # fmt: skip
_LIST_ZH = re.compile(
    r"((?:[^，。；：！？、有需要是把和与用]{1,8}、)+[^，。；：！？、和与]{1,8}(?:和|与|以及)[^，。；：！？、]{1,8}?)(?=[，。；：！？]|等|$)"
)
_LIST_LEAD_ZH = re.compile(
    r"^.*?(?:准备好?|备好|备齐|带[上着好]|买[来了好些]|放[入进上]|加[入进上]|拿[来出好]|取[出来]|洗净|切好|摆[上着好]|种[了着上]|装[着满好]|包括|分为|分成)了?(?=[\u4e00-\u9fff]{2,}$)"
)
_DONE_ZH = re.compile(r"[装放运送带搬抬拉推卖买拿取挂摆倒端捧献](?:上|进|入|到|回|来|往|给|出|走|下|成)")
"""A verb with its direction: what holds one is more than the name of a thing."""
_ARTICLE = re.compile(r"^(?:an?|the|some|and|or|its|his|her|their|then)\s+", re.IGNORECASE)


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """What is drawn instead of a place: `number`, `bars`, `list`, `steps`, `definition`, `date`, `things`, `words`."""

    kind: str
    title: str = ""
    items: tuple[str, ...] = ()
    values: tuple[float, ...] = ()
    step: tuple[int, int] | None = None  # which of how many steps


def card_of(sentence: str, language: str) -> Card | None:
    """The card of one sentence, if its content is better seen as one."""
    if language not in READ:
        return None
    text = sentence.strip(' “”"')
    numbers = _numbers(text, language)
    if len(numbers) >= 2 and len({unit for _, unit, _ in numbers}) == 1 and (bars := _bars(text, numbers, language)):
        return bars
    if items := _items(text, language):
        return Card(kind="list", items=items[:MOST_ITEMS])
    if found := _definition(text, language):
        return found
    if numbers:
        value, _, shown = numbers[0]
        return Card(kind="number", title=shown, items=(text,), values=(value,))
    if year := _YEAR.search(text):
        return Card(kind="date", title=year[1] or year[2], items=(text,))
    return None


def with_whole_text(card: Card, text: str) -> Card | None:
    """The card of one of several sentences that share a shot, with all that is said; none where it has no room for it."""
    return msgspec.structs.replace(card, items=(text,)) if card.kind in {"number", "date"} else None


def _numbers(text: str, language: str) -> list[tuple[float, str, str]]:
    """Value, unit and the words of each amount."""
    found: list[tuple[float, str, str]] = []
    if language == "zh":
        for m in _NUMBER_ZH.finditer(text):
            value = _chinese_number(m[4] or m[1])
            if value is not None and not (m[3] == "年" and value > 1000):
                found.append((value * {"万": 1e4, "亿": 1e8}.get(m[2] or "", 1), "%" if m[4] else m[3], m[0]))
        return found
    for m in _NUMBER_EN.finditer(text):
        if m[1].lower() == "one" and not _MEASURED_EN.match(m[3]):
            continue  # one day
        if _BEGUN_BEFORE.search(text, 0, m.start()):
            continue
        words = m[1].lower().replace("-", " ").split()
        value = float(sum(_WORDS[word] for word in words)) if words[0] in _WORDS else float(m[1].replace(",", ""))
        scale = {"million": 1e6, "billion": 1e9, "thousand": 1e3, "hundred": 1e2}.get((m[2] or "").lower(), 1)
        found.append((value * scale, m[3].lower().rstrip("s"), m[0]))
    return found


def _chinese_number(text: str) -> float | None:
    if re.fullmatch(r"[0-9.]+", text):
        return float(text)
    digits = {c: n for n, c in enumerate("零一二三四五六七八九")} | {"两": 2}
    total, current = 0, 0
    for letter in text:
        if letter in digits:
            current = digits[letter]
        else:
            total += (current or 1) * {"十": 10, "百": 100, "千": 1000}[letter]
            current = 0
    return float(total + current)


def _bars(text: str, numbers: list[tuple[float, str, str]], language: str) -> Card | None:
    """Two or three amounts of one unit, each with the words before it as its label."""
    items: list[str] = []
    at = 0
    for _, _, shown in numbers[:3]:
        place = text.find(shown, at)
        label = re.split(r"[,，;；]|\b(?:and|while|but|whereas)\b|而|但", text[at:place])[-1].strip(" :：")
        label = re.split(
            r"\b(?:would|will|can|could|stored|held|took|lasted|weighed|weigh|travelled|ran|cost|needed|lived|reached|stores?|holds?|has|is|are|was|were|takes?|lasts?|weighs?|travels?|runs?|gives?|makes?|costs?|reaches|needs?|lives?|about|only|for|at|up|around|nearly)\b|有|约|大约|能|只|可以|需要|是|重|长|高|达到",
            label,
        )[0]
        label = _ARTICLE.sub("", label.strip())
        if not label or len(label) > (14 if language == "zh" else 32):
            return None
        items.append(label)
        at = place + len(shown)
    shown = tuple(f"{item}|{number[2]}" for item, number in zip(items, numbers, strict=False))
    return Card(kind="bars", items=shown, values=tuple(value for value, _, _ in numbers[:3]))


def _items(text: str, language: str) -> tuple[str, ...]:
    if language == "zh":
        found = _LIST_ZH.search(text)
        parts = re.split(r"、|和|与|以及", found[1]) if found else []
        parts[:1] = [_LIST_LEAD_ZH.sub("", part) for part in parts[:1]]
    else:
        _, colon, after = text.partition(": ")
        found = _LIST_EN.search(after if colon else text)
        if not found:
            return ()
        first, *rest = [
            part
            for part in re.split(
                r",\s*(?:and\s+|or\s+)?|(?<!hundred)(?<!thousand)(?<!million)\s+(?:and|or)\s+", found[1]
            )
            if part
        ]
        if not colon and not _LIST_LEAD.match(first):
            return ()  # names in a row, or a tired and cold end of a sentence
        parts = [_LIST_LEAD.sub("", first), *rest]
    items = tuple(_ARTICLE.sub("", part.strip()).rpartition("的")[2] for part in parts)
    if language == "zh" and any(_DONE_ZH.search(item) for item in items):
        return ()  # a list that names what is done with it, too, is read as a sentence
    short = 8 if language == "zh" else 28
    fits = len(items) >= 3 and all(0 < len(item) <= short and len(item.split()) <= 4 for item in items)
    verbs = r"\b(?:leaves?|runs?|goes|go|comes?|makes?|takes?|turns?|puts?|gives?|falls?|rises?|becomes?|add|stir|mix|pour|cook|fry|boil|bake|serve|let|cut|then|minutes?|hours?)\b"
    clause = any(re.search(verbs, item) for item in items) or any(
        re.search(r"\b(?:was|were|is|are|he|she|they|it|had|his|her)\b", item) for item in items
    )
    begins = any(
        re.match(
            r"(?:with|in|on|at|to|for|by|without|from|into|up|down|over|under|near|along|across|somewhere|between)\b",
            item,
        )
        for item in items
    )
    return items if fits and not clause and not begins else ()


def _definition(text: str, language: str) -> Card | None:
    if language == "zh":
        found = _DEFINITION_ZH.match(text)
        title = re.sub(r"(?:主要|大多|通常|一般|其实|往往|都|也|就)+$", "", found[1]) if found else ""
        return Card(kind="definition", title=title, items=(found[2],)) if found and title else None
    if called := _CALLED.search(text):
        return Card(kind="definition", title=called[1].strip(), items=(text.rstrip("."),))
    found = _DEFINITION_EN.match(text)
    if found is None or found[1].split()[0].lower() in _NOT_DEFINED or len(found[1].split()) > 3:
        return None
    return Card(kind="definition", title=found[1], items=(found[2],))
