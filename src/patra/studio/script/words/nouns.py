"""Finds the things that a sentence names and that neither a drawing nor a pictogram shows: they are lettered (C§2.3).

There is no dictionary: a noun is what an article, a possessive or a number stands before (English), a measure word or the
end of a clause after 的 (Chinese). What is found is a piece of the text itself, so that nothing unsaid is ever lettered.
"""

# ruff: noqa: E501, SIM905  tables read better unbroken, as words

import re
from collections.abc import Container

from patra.studio.script.cast.roles import kind_words_of
from patra.studio.script.cast.segments import tagged_words
from patra.studio.script.depiction import seen_part
from patra.studio.script.language import READ
from patra.studio.script.lexicon import is_known
from patra.studio.script.pictograms import is_pictured

MOST_NOUNS = 4
LONGEST_NOUN = {"en": 24, "zh": 6}

_DONE_EN = re.compile(
    r"(?<!\bs)(?<!\bb)(?<!\bsh)(?<!\bse)(?<!\bre)(?<!\bwe)(?<!\bsl)ed$| (?:hang|stand|lie|sit|slid|live|wait|come|go)$"
)
_BEFORE = frozenset(
    "a an the his her its their my our your these those some two three four five six seven eight nine ten eleven twelve "
    "twenty thirty forty fifty hundred another every each of with into against this".split()
)
_STOPS = frozenset(
    "in on at by near over under through across along behind above below beside around to from for with and but or nor that which who whom whose when where while as of is was were are be been "
    "am being could would should can will may might must had has have having do does did not never then than so if because until since after before into onto out off up down again away back "
    "he she it they we i you him them us me there here this these those all both only just also too very now soon already always often sometimes together today tonight later still even once a an the his her its their my our your what how why no yes like "
    "made make makes came come comes went go goes took take takes gave give gives said says told stood stand stands lay lies sat sits ran runs fell falls rose rises grew grows kept keeps began begins "
    "slid crept swept spun bent leapt wept dug hid lit stuck struck sank swam sprang strode woke wound wove tore bit fled clung burst spread cost hit shut beat belongs hurried slipped "
    "left leaves held holds turned turns looked looks brought brings found finds got gets let lets put puts set sets saw sees heard hears felt feels knew knows thought shone hung swung drew flew rode "
    "sang slept broke spoke wrote read built caught taught bought sold met won lost paid sent led ate drank wore swam shook threw blew rang seemed became becomes means needs wants".split()
)
_PLAIN = frozenset(
    "old new young little small big large great long short tall wide narrow deep high low thin thick heavy light dark bright warm cold hot cool wet dry soft hard clean dirty empty full open closed "
    "red blue green white black brown yellow grey gray golden silver pink purple orange first second third fourth fifth last next same other own whole half few many several more most best better good bad "
    "beautiful strange quiet loud slow fast early late poor rich kind clever wooden iron stone glass paper paved flat round square sharp fine fresh sweet sour dead alive sick busy free main local "
    "public private royal national famous single double simple real true false ancient modern tiny huge enormous broken rusty dusty muddy snowy rainy sunny windy foggy sleepy hungry thirsty angry happy "
    "sad lonely lucky easy difficult important special common rare right left north south east west northern southern eastern western raw ripe plain pale wild mild brave proud shy certain entire".split()
)
_PLAIN_END = re.compile(r"(?:ous|ful|less|ish|able|ible|ive|ward|ese|est|like)$|(?:ed|ing)$")
_ABSTRACT = frozenset(
    "time times day days week weeks month months year years hour hours minute minutes second seconds moment moments while way ways thing things kind sort lot bit part parts piece pieces pair end middle "
    "side top bottom front back edge rest name names word words voice idea life death fact case reason question answer story stories number amount size shape sound noise smell taste colour color sight "
    "look feeling hand hands eye eyes face faces head hair arm arms leg legs foot feet mouth finger fingers shoulder shoulders knee knees lap skin body breath smile tear tears heart love fear hope luck "
    "work job help care use trouble problem chance change turn step start beginning finish rule rules law order place places spot point line row corner inch mile miles metre metres kilometre degrees "
    "morning evening night noon afternoon dawn dusk spring summer autumn winter today tomorrow yesterday weekend monday tuesday wednesday thursday friday saturday sunday century age birthday world "
    "people person man men woman women boy girl child children parents grandparents twins couple crew team families crowd audience family friend friends nobody everyone someone group pair others one ones dozen dozens hundred hundreds thousand thousands million course distance "
    "silence peace war quiet darkness air ground north south east west direction left right inside outside centre center home house matter need needs mind memory thought dream length height width "
    "weight speed price cost money total rate percent half quarter third same next last first past future present minute niece nephew cousin aunt uncle talk rest walk ride trip visit lesson lesson class game match race song dance party meeting wedding holiday news call sleep tide strength pause rhythm power effect pressure pattern flash flashes design method system process result record mercy midday thumb toe splash catch ton tons tonne tonnes litre litres gram grams wage luck noise sort rhythm".split()
)
_TOKEN = re.compile(r"[A-Za-zÀ-ÿ]+(?:['’-][A-Za-zÀ-ÿ]+)*|\d[\d,.]*|[^\sA-Za-z0-9]")
_LIST_EN = re.compile(r"\b[a-z]+(?:, (?:[a-z]+ ){0,2}[a-z]+)+,? (?:and|or) (?:[a-z]+ ){0,2}[a-z]+(?=[.,;:!?]|$)")
_PAIR_EN = re.compile(r"\band (?:[a-z]+ )?([a-z]{3,}s)\b(?=[.,;!?]| (?:in|on|at|with|from|of)\b|$)")
_MEASURES = "碟遍次回段节个只把张条本块件幅支根台辆艘座栋间棵朵片串盒袋瓶杯碗盘封顶双副套架盏面口枚颗粒匹头尊部扇堵道份卷箱筐篮桶壶罐捆束堆团排种"
_MEASURED = re.compile(
    rf"(?:[一二两三四五六七八九十几百千数这那每半0-9]|多少|许多)[{_MEASURES}](?:[^，。！？；：、“”的]{{1,4}}的)?([\u4e00-\u9fff]{{2,8}})"
)
_COUNT_ZH = re.compile(rf"[一二两三四五六七八九十几半][{_MEASURES}]")
_OF_ZH = re.compile(r"的([\u4e00-\u9fff]{2,4})(?=[，。！？；：、”]|$)")
_ITEM_ZH = re.compile(
    r"(?:[\u4e00-\u9fff]{0,8}?)([\u4e00-\u9fff]{2,4})(?=、)|(?<=、)([\u4e00-\u9fff]{2,4}?)(?=[，。！？；、]|和|与|以及|$)"
    r"|(?<=和)([\u4e00-\u9fff]{2,4})(?=[，。！？；]|$)"
)
_AT_ZH = re.compile(r"(?:在|到|从|进)([\u4e00-\u9fff]{2,4}?)(?=[上里下旁边中前外])")
_DONE_ZH = re.compile(
    r"[了着过]([\u4e00-\u9fff]{2,4})(?=[，。！？；”]|$)|(.)一\2([\u4e00-\u9fff]{2,3})(?=[，。！？；]|$)"
)
_TAKEN_ZH = re.compile(
    r"[把将]([\u4e00-\u9fff]{2,4}?)(?=[放拿插装挂倒切送搬推拉抱举埋涂贴泡剪折包扔递交给带扛背做成变打写画洗擦刻烧煮])"
)
_ACTS_ZH = re.compile(r"(?:^|[，。；！？“”])([\u4e00-\u9fff]{2,3}?)(?=[落飞跑走站吃叫响游爬跳])")
_END_ZH = re.compile(
    r"[了着过在和与把被给向对从到是有就都也很不没为能会要上下里中外前后时说问答走来去放拿看听想叫做用让使以而但却可这那他她它我你们吗呢吧啊得地所又再还才只将比跟同由于并且或者站坐突忽慢已正渐刚各跑飞落照"
    r"挂装开关写读画唱跳打拉推切煮炒烧吃喝飘升起出进回]"
)
_DOING_ZH = re.compile(
    r"^(?:减少|增加|提高|降低|开始|继续|准备|打扫|修理|参加|学习|寻找|收集|制作|购买|欣赏|观看|庆祝|练习|整理|收拾|检查|测量|研究|发现|发明|使用|利用|需要|拥有|成为|经过|通过|关于|对于|根据|按照)"
)
_ABSTRACT_ZH = frozenset(
    "时候 时间 地方 样子 声音 东西 事情 办法 名字 人们 大家 自己 生活 日子 味道 颜色 故事 世界 眼睛 双手 心情 力量 希望 问题 原因 结果 方法 方式 作用 情况 过程 部分 方向 一生 朋友 孩子 人家 意思 感觉 脸上 身体 机会 精神 本领 手艺 技术 历史 文化 重量 速度 限度 噪音 高度 长度 宽度 温度 深度 危险 安全 质量 数量 价格 费用 机会 经验 知识 消息 新闻 水分 营养 距离 面积 比例 效果 目的 条件 任务 工作 计划 决定 活动 比赛 冠军 节日 春节 早饭 午饭 晚饭 上午 下午 周末 礼拜 时代 年代 世纪 当地 附近 周围 中间 旁边 对面 里面 外面 上面 下面 前面 后面 第一次 最后 以前 以后 之后 从前 现在 将来 今年 去年 明年 每天 整天 一天 半天 爱情 友谊 秘密 快乐 幸福 悲伤 勇气 智慧 礼貌 错误 成绩 作业 功课 道理 笑声 歌声 哭声 掌声 脚步声 雨声 风声 叫声 响声 沉默 影子 背影 身影 目光 眼神 表情 微笑 眼泪 头发 肩膀 手指 膝盖 胸口 额头 嘴唇 耳朵 鼻子 脖子 手心 手掌 后背 双脚 双眼".split()
)


def unshown_nouns(sentence: str, language: str, named: Container[str] = ()) -> tuple[str, ...]:
    """The nouns of a sentence, as they are written there, for which there is neither a drawing nor a pictogram."""
    if language not in READ:
        return ()
    text = seen_part(sentence, language)
    found = _chinese(text) if language == "zh" else _english(text)
    longest = LONGEST_NOUN[language]
    kept = [noun for noun in dict.fromkeys(found) if len(noun) <= longest and noun not in named]
    kept = [noun for noun in kept if not _DONE_EN.search(noun)]  # unlocked: no thing
    kept = [noun for noun in kept if not (noun.startswith("人") and f"一个{noun}" in text)]  # 一个人睡觉: alone
    return tuple(kept[:MOST_NOUNS])


def _english(text: str) -> list[str]:
    tokens = _TOKEN.findall(text)
    found: list[str] = []
    at = 0
    while at < len(tokens):
        if tokens[at].lower() in _BEFORE or tokens[at][:1].isdigit():
            noun, at = _phrase(tokens, at + 1)
            found += [noun] if noun else []
        else:
            at += 1
    for match in _LIST_EN.finditer(text):
        items = [_TOKEN.findall(part) for part in re.split(r",\s*(?:and\s+|or\s+)?|\s+(?:and|or)\s+", match[0])]
        found += [
            noun
            for words in items
            if words and not _is_shown(noun := words[-1].lower()) and not _is_plain(noun) and noun not in _STOPS
        ]
    pairs = [match[1] for match in _PAIR_EN.finditer(text) if not match[1].endswith(("us", "ss"))]
    found += [noun for noun in pairs if not _is_shown(noun) and noun not in _STOPS]
    return found


def _phrase(tokens: list[str], at: int) -> tuple[str, int]:
    """The noun that the words from here on lead to, and where they end."""
    while at < len(tokens) and _is_plain(tokens[at].lower()) and _is_word(tokens, at + 1):
        at += 1
    if not _is_word(tokens, at) or tokens[at][0].isupper():
        return "", at
    if tokens[at].lower() in _PLAIN:
        return "", at + 1
    if tokens[at - 1].lower().endswith("ing") and len(tokens[at - 1]) > 5 and is_pictured(tokens[at].lower(), "en"):
        return f"{tokens[at - 1].lower()} {tokens[at].lower()}", at + 1  # a sewing machine is no engine
    if _is_doing(tokens, at):
        return "", at + 1  # a small light moving on the water
    first = tokens[at].lower().removesuffix("'s").removesuffix("’s")
    if _is_word(tokens, at + 1) and not _is_plain(tokens[at + 1].lower()) and not _is_word(tokens, at + 2):
        second = tokens[at + 1].lower()
        follows = tokens[at + 2].lower() if at + 2 < len(tokens) else "."
        if follows not in _BEFORE - {"with", "of"} and not second.endswith("ly"):
            return (f"{first} {second}" if not _is_shown(second) and not _is_shown(first) else ""), at + 2
    return ("" if _is_shown(first) else first), at + 1


def _is_doing(tokens: list[str], at: int) -> bool:
    """Whether a word in -ing behind other words of a phrase says what is done: it is no thing itself."""
    word, before = tokens[at].lower(), tokens[at - 1].lower()
    return word.endswith("ing") and len(word) > 5 and before not in _BEFORE


def _is_word(tokens: list[str], at: int) -> bool:
    return at < len(tokens) and tokens[at][0].isalpha() and tokens[at].lower() not in _STOPS


def _is_plain(word: str) -> bool:
    if word in _ABSTRACT or is_known(word, "en") or is_pictured(word, "en"):
        return word in _PLAIN
    return word in _PLAIN or word.isdigit() or (len(word) > 4 and _PLAIN_END.search(word) is not None)


def _is_shown(word: str) -> bool:
    """Whether a word is drawn, has a pictogram, is a person, or is nothing that could be seen."""
    if word in _BEFORE:
        return True
    single = word.removesuffix("s")
    forms = {word, single, word.removesuffix("es")}
    roles = kind_words_of("en")
    return bool(
        forms & _ABSTRACT
        or len(word) < 3
        or any(form in roles or is_known(form, "en") or is_pictured(form, "en") for form in forms)
        or word.endswith(("ness", "tion", "ment", "ity", "ism", "ship", "ance", "ence"))
    )


def _chinese(text: str) -> list[str]:
    spots: list[tuple[int, str]] = []
    for pattern in (_MEASURED, _OF_ZH, _ITEM_ZH, _AT_ZH, _DONE_ZH, _TAKEN_ZH, _ACTS_ZH):
        for match in pattern.finditer(text):
            group = next(number for number, words in enumerate(match.groups(), 1) if words and len(words) > 1)
            counted = _DOING_ZH.sub("", _COUNT_ZH.split(match[group])[-1])
            listed = pattern is _ITEM_ZH and group == 1  # what stands before the first of a list is no part of it
            noun = counted if counted[2:] == "站" else _END_ZH.split(counted)[-1 if listed else 0]
            if not noun:
                continue
            at = match.start(group) + match[group].find(noun)
            crossed = any(
                is_pictured(text[at + k : at + k + n], "zh")
                for k in range(1, len(noun))
                for n in range(len(noun) - k + 1, 5)
            )
            if crossed or _ends_in_a_verb(text, at, len(noun)):
                continue  # 背吉 of 背吉他, 井边停 of 井边停下来
            if len(noun) >= 2 and noun[0] not in "一二两三四五六七八九十百千几" and not _is_shown_zh(noun):
                spots.append((match.start(group), noun))
    nouns = [noun for _, noun in sorted(spots)]
    return [noun for noun in nouns if not any(noun != other and noun in other for other in nouns)]


def _ends_in_a_verb(text: str, at: int, length: int) -> bool:
    """Whether the last word of a piece of a Chinese text, as the segmenter cuts it, is a verb or goes on behind it."""
    last = next((word for word in tagged_words(text) if word[0] < at + length <= word[0] + len(word[1])), None)
    return (
        last is not None
        and last[0] > at
        and ((last[2] == "v" and len(last[1]) == 1) or last[0] + len(last[1]) > at + length)
    )


def _is_shown_zh(noun: str) -> bool:
    roles = kind_words_of("zh")
    if len(noun) <= 3 and is_known(noun[0], "zh"):
        return True
    return any(
        (part := noun[start:end]) in _ABSTRACT_ZH or part in roles or is_known(part, "zh") or is_pictured(part, "zh")
        for start in range(len(noun))
        for end in range(len(noun), start, -1)
        if end == len(noun) or end - start > 1 or start
    )


_FUNCTION_ZH = re.compile(
    r"[的了着过在和与把被给向对从到是有就都也很不没为能会要上下里中外前后时说问答走来去放拿看听想叫做用让使以而但却可这那他她它我你们吗呢吧啊得地所又再还才只将比跟同由于并且或者站坐"
    r"一二两三四五六七八九十百千万几半个只把张条本块件位名次天年月日岁点分钟大小多少老新旧好坏长短高低早晚今昨明每全自己起出进回开关打拉推写读笑哭吃喝买卖走跑飞住死生知道觉得已经"
    r"，。！？；：“”、 ]"
)
SHORTEST_RESIDUE, LONGEST_PHRASE = 2, 20


def phrase_of(text: str, language: str, whole: str = "") -> str:
    """The clause of a sentence of which the least is known; nothing where each has only words that are shown.

    `whole` is the sentence where `text` has blanks for names and speech: a clause is lettered as it stands there.
    """
    if language not in READ:
        return ""
    if language == "en":
        return _english_phrase(text, whole or text)
    clauses = [clause.strip() for clause in re.split(r"[，。！？；：]", seen_part(text, language)) if clause.strip()]

    def residue(clause: str) -> int:
        runs = [run for run in _FUNCTION_ZH.split(_without_known(clause)) if run and run != "零"]
        return max(map(len, runs), default=0) if len(runs) < 3 else max(2, *map(len, runs))

    residues = {
        clause: residue(clause) for clause in clauses if not re.search(r"(?:[年月日]|以后|以前|之后|时候)$", clause)
    }
    most = max(residues, key=lambda clause: residues[clause], default="")
    return (
        most if most and residues[most] >= SHORTEST_RESIDUE and " " not in most and len(most) <= LONGEST_PHRASE else ""
    )


def _without_known(clause: str) -> str:
    roles, at, left = kind_words_of("zh"), 0, ""
    while at < len(clause):
        size = next(
            (
                n
                for n in range(min(5, len(clause) - at), 0, -1)
                if (word := clause[at : at + n]) in roles or is_known(word, "zh") or is_pictured(word, "zh")
            ),
            0,
        )
        left += "，" if size else clause[at]
        at += size or 1
    return left


LONGEST_PHRASE_EN = 44
_CLAUSE_EN = re.compile(r"[^,;:.!?—“”\"]+")
_DATE_EN = re.compile(
    r"^(?:In|On|By|At|Since|Until)\b.*\d|\b(?:January|February|March|April|June|July|August|September|October|November|December)\b"
)


def _english_phrase(text: str, whole: str) -> str:
    def is_unknown(word: str) -> bool:
        return not (
            word in _STOPS | _PLAIN | _BEFORE
            or _is_shown(word)
            or word.endswith(("ed", "ing", "ly"))
            or not word.isalpha()
        )

    seen = seen_part(text, "en")
    residues: dict[str, int] = {}
    for span in _CLAUSE_EN.finditer(text):
        clause, written = " ".join(seen[slice(*span.span())].split()), " ".join(whole[slice(*span.span())].split())
        if clause[:1].isalnum() and not _DATE_EN.search(clause):
            residues[written] = sum(is_unknown(word) for word in (clause[:1].lower() + clause[1:]).split())
    most = max(residues, key=lambda clause: residues[clause], default="")
    return most if most and residues[most] and len(most) <= LONGEST_PHRASE_EN else ""
