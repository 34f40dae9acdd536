"""Decides whether a sentence speaks against the place that its shot would show (C§2.3).

A place that was said before lasts only for what goes on there: not when someone goes away, things of a room stand under
the sky, another place has a name, time passes, or others act.
"""

# ruff: noqa: E501  patterns read better unbroken

import re
from collections.abc import Collection, Sequence

from patra.studio.script.cast.segments import tagged_words
from patra.studio.script.signs import VEHICLES, set_of, sign_of

_MOVES = {
    "en": re.compile(
        r"\b(?:went|goes|going|left|leaves|leaving|came|comes|arriv\w+|mov(?:ed|es) (?:to|into|away|out)|sail\w*|travel\w*|drove|drives|rode|rides|flew|ran|runs|walk(?:ed|s)|climb\w*|return\w*|cross\w*|"
        r"stepp?(?:ed|s) (?:out|off|onto|into)|follow(?:ed|s)|hurried|set off|brought|carried|fled|escaped|journey\w*|steamed|marched|rushed|led)\b",
        re.IGNORECASE,
    ),
    "zh": re.compile(
        r"[走跑赶骑驶开飞搬逃爬].{0,3}[到往去向回出进上下过]|坐[^在，。]{1,4}[到往去回]|回到|来到|回家|出门|离开|前往|搬[到进去家]|运[到往去]|送到|带到|上车|下车|启程|出发|抵达|到了|去了|(?:^|[，。他她])去[\u4e00-\u9fff]"
    ),
}
_OF_ROOMS = {
    "en": re.compile(
        r"\b(?:table|desk|lamp|bed|bedroom|pillow|blanket|sofa|couch|armchair|chairs?|stove|oven|kettle|sink|fridge|cupboard|shel(?:f|ves)|drawer|wardrobe|counter|curtains?|ceiling|floor|carpet|stairs|staircase|door|fireplace|plates?|saucepan|screen|telephone)\b",
        re.IGNORECASE,
    ),
    "zh": re.compile(
        r"桌|台灯|油灯|点[上亮起]?了?灯|床|枕头|被子|沙发|椅|灶|炉|水壶|冰箱|柜|书架|抽屉|窗帘|天花板|地板|楼梯|电视|锅|碗|屋里|房间|门口|柜台"
    ),
}
_OF_THE_OPEN = {
    "en": re.compile(
        r"\b(?:sky|horizon|waves|boats?|ships?|shore|beach|grass|meadow|trees?|garden|yard|roof|rooftop|bench|cart|plough|tram|pavement|platform|outside|outdoors|street|road)\b",
        re.IGNORECASE,
    ),
    "zh": re.compile(
        r"天空|天上|海浪|波浪|[小渔木]?船|岸|沙滩|草地|树|院子|花园|屋顶|房顶|长椅|马车|电车|街|马路|站台|门外|外面|田"
    ),
}
_TIME = {
    "en": re.compile(
        r"\b(?:at|by) (?:the age of )?(?:\w+teen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)(?:-\w+)?\b|\b(?:years?|months?|weeks?|days?|decades?|centur(?:y|ies)|seasons?|hours) (?:later|afterwards|after|before)\b|\b(?:later|afterwards|eventually|nowadays|today|yesterday|tomorrow|meanwhile)\b|"
        r"\b(?:in|by|since|until|from) (?:the )?(?:1\d{3}|20\d{2})|\bfor (?:\w+ )?(?:years|months|weeks|decades|centuries)\b|\b(?:the|that|this) (?:next|following) (?:day|morning|week|month|year|spring|summer|autumn|winter)|\bduring\b|\b(?:every|each) (?:year|week|spring|summer|autumn|winter)|\bwhen (?:he|she|they) (?:was|were) ",
        re.IGNORECASE,
    ),
    "zh": re.compile(
        r"后来|如今|从此|此后|第二[天年]|[^，。]{0,3}世纪|\d{4}年|[一二][零〇一二三四五六七八九]{3}年|岁那年|岁时|[年月周天]以?[后前]|不久|多年|昨天|明天|今天|每[年周]|下个?[月周]|上个?[月周]|期间"
    ),
}
_NAMED = {
    "en": re.compile(r"\b(?i:in|to|at|from|near|into|of|towards?|across|through) (?:the )?((?:[A-Z][\w’'-]+ ?)+)"),
    "zh": re.compile(r"[在到去从往至向]"),
}
_GOES_TO = re.compile(
    r"\b(?:went|left|mov(?:ed|es)|came|sail\w*|travel\w*|flew|return\w*|drove|walked|sent|brought|led)\b[^,.;]{0,24} (?:to|for|into) (?:the )?([A-Z][\w’'-]+)"
)
_DAYS = frozenset(
    [
        "Monday",
        "Tuesday",
        "Wednesday",
        "Thursday",
        "Friday",
        "Saturday",
        "Sunday",
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
        "I",
        "Christmas",
        "Easter",
        "Mr",
        "Mrs",
        "Miss",
        "Ms",
        "Dr",
    ]
)
_PART_EN = r"(?:roof|rooftop|walls?|gates?|door|doors|doorway|steps|fa[cç]ade|chimney|tower|windows?|entrance|garden|yard|car park)"
_PART_ZH = r"(?:屋顶|房顶|楼顶|顶上|外墙|围墙|墙外|大门|门口|门外|门前|台阶|院子|旁边|附近|对面|窗外|外面)"
_AT_THE_DOOR = re.compile(
    r"\b(?:at|outside|before|in front of) (?:the|its|his|her|their) (?:\w+ )?(?:door|doors|gate|entrance)\b|\bon (?:the|its) (?:\w+ )?(?:roof|steps)\b|[在到站停][^，。]{0,4}(?:门口|门外|门前|屋顶|房顶)",
    re.IGNORECASE,
)
_ONE_IN_MANY = frozenset(
    [
        "woods",
        "mountains",
        "hills",
        "dunes",
        "docks",
        "stairs",
        "fields",
        "meadows",
        "gardens",
        "barracks",
        "stables",
        "headquarters",
    ]
)
_ON_THE_WAY = re.compile(r"\bon (?:the|its|their|his|her) (?:way|road)\b|[在到]路上|一路|路过", re.IGNORECASE)
ALIKE = frozenset({"outdoors", "works", "corridor", "space"})  # sets that stand for many kinds of places
_MANY_SIGHTS = frozenset({"hill", "hills", "slope", "cliff"})  # words of a city, too, that are drawn as wild land


def against_carried(told: str, language: str, names: Collection[str], *, inside: bool, peopled: bool) -> str:
    """The evidence that what a sentence tells is not at the place of the sentence before; nothing where none is."""
    if language not in _MOVES:
        return "place_others"
    if _TIME[language].search(told):
        return "place_after_time"
    if _MOVES[language].search(told):
        return "place_left"
    if names_a_place(told, language, names):
        return "place_of_a_name"
    if inside and _AT_THE_DOOR.search(told):
        return "place_part"
    if other_side(told, language, inside=inside) or not (inside or not _vehicle(told, language)):
        return "place_other_side"
    return "" if peopled else "place_others"


def against_stated(
    told: str, words: Collection[str], place: str, language: str, names: Collection[str], *, inside: bool
) -> str:
    """The evidence that a place that a sentence names is not where it happens."""
    if inside and _AT_THE_DOOR.search(told):
        return "place_part"
    if language == "zh":
        if words and not any(_is_word(told, word) for word in words):
            return "place_in_a_word"
        if any(re.search(rf"{word}[^，。]{{0,2}}{_PART_ZH}", told) for word in words):
            return "place_part"
        if any(re.search(rf"{word}的(?:人家?|老板|主人|家庭|儿子|女儿)", told) for word in words):
            return "place_as_people"
    else:
        spoken = [re.escape(word.replace("-", " ")) for word in words]
        if any(
            re.search(
                rf"\b{word}(?:[’']s)? (?:\w+ )?{_PART_EN}\b|\b{_PART_EN} (?:of|off|from|on|above|behind) (?:the |an? |\w+[’']s )?(?:\w+ )?{word}\b",
                told,
            )
            for word in spoken
        ):
            return "place_part"
        gone = _GOES_TO.search(told)
        if gone and not _is_known(gone[1], names):
            return "place_of_a_name"
        if place == "mountain" and _vehicle(told, language) and set(words) <= _MANY_SIGHTS:
            return "place_alike"
    if any(word.endswith("s") and word not in _ONE_IN_MANY and not word.endswith("ss") for word in words):
        return "place_general"  # icy roads
    if _ON_THE_WAY.search(told):
        return "place_general"
    if any(re.search(rf"{re.escape(word)}离|离[^，。]{{0,4}}{re.escape(word)}", told) for word in words):
        return "place_general"  # 学校离家很近
    if any(set_of(word) in ALIKE or (sign_of(place, word) and not set_of(word)) for word in words):
        return "place_alike"
    return ""


def other_side(told: str, language: str, *, inside: bool) -> bool:
    """Whether a sentence has things of a room for a place under the sky, or the other way round."""
    table = _OF_THE_OPEN if inside else _OF_ROOMS
    return language in table and table[language].search(told) is not None


_WATER = {
    "en": re.compile(r"\b(?:boats?|ships?|water|waves?|oars?|sails?|shore|tide|anchor|deck|net|nets)\b", re.IGNORECASE),
    "zh": re.compile(r"船|水面|海水|波浪|海浪|浪|桨|帆|岸边|潮"),
}
_ONLY_THERE = {
    **dict.fromkeys(("sea", "harbour", "island", "lake", "river"), _WATER),
    "forest": {
        "en": re.compile(r"\b(?:trees|branches|pines|moss|undergrowth)\b", re.IGNORECASE),
        "zh": re.compile(r"树林|树下|树枝|松树"),
    },
    "kitchen": {
        "en": re.compile(r"\b(?:stove|oven|saucepan|sink|pot)\b", re.IGNORECASE),
        "zh": re.compile(r"灶|锅|炉"),
    },
    "mountain": {
        "en": re.compile(r"\b(?:summit|slope|peak|ridge)\b", re.IGNORECASE),
        "zh": re.compile(r"山顶|山坡|山路|峰"),
    },
}


def is_confirmed(told: str, place: str, language: str) -> bool:
    """Whether a sentence has something that is hardly anywhere but at a place: a boat at sea."""
    table = _ONLY_THERE.get(place, {})
    return language in table and table[language].search(told) is not None


def names_a_place(told: str, language: str, names: Collection[str]) -> bool:
    """Whether a name that is nobody's stands where a place does: in Lisbon, 在印度."""
    if language == "zh":
        tagged = tagged_words(told)
        return any(
            (kind == "ns" or kind.startswith("nz")) and not any(word in name for name in names)
            for _, word, kind in tagged
        )
    return any(not all(_is_known(word, names) for word in found[1].split()) for found in _NAMED["en"].finditer(told))


def _is_known(word: str, names: Collection[str]) -> bool:
    bare = word.removesuffix("'s").removesuffix("’s").strip(".,")
    return bare in _DAYS or any(bare in name.split() for name in names)


def _vehicle(told: str, language: str) -> bool:
    if language == "zh":
        return any(len(word) > 1 and word in told for word in VEHICLES)
    return bool(VEHICLES & set(re.findall(r"[a-z]+", told.lower())))


def _is_word(told: str, word: str) -> bool:
    """Whether a Chinese word stands there as the segmenter cuts it, alone or with what says where in it."""
    return is_whole(told, word, tagged_words(told)) or any(
        re.fullmatch(
            rf"{re.escape(word)}[里上中下内外边旁头口子面]{{1,2}}|[\u4e00-\u9fff]{re.escape(word)}[里上中边]?", token
        )
        and kind != "v"
        and not (len(word) == 1 and token[0] != word and token not in _PATHS)
        for _, token, kind in tagged_words(told)
    )


_PATHS = frozenset(
    ["山路", "小路", "大路", "公路", "大海", "大河", "江河", "小河", "小巷", "老街", "大街", "小村", "山村", "渔村"]
)


def is_whole(text: str, word: str, words: Sequence[tuple[int, str, str]]) -> bool:
    """Whether a word begins and ends where the segmenter cuts a text."""
    cuts = {at for at, _, _ in words} | {at + len(token) for at, token, _ in words}
    return any(m.start() in cuts and m.end() in cuts for m in re.finditer(re.escape(word), text))
