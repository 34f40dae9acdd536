"""Finds Chinese names by the words around them: a text is cut into words, and who acts like a person is one (C§2.3).

The words and what each is (noun, verb, name) are jieba's, by rjieba. A name is what stands where people stand: it opens
a clause and does what only people do, follows a role or "called", or is spoken to.
"""

# ruff: noqa: E501  tables read better unbroken

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache

from patra.studio.script.cast.roles import kind_words_of
from patra.studio.script.lexicon import is_known

SURNAMES = "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林郑谢罗梁宋唐许韩冯邓曹彭曾萧田董袁潘蒋蔡余杜叶程苏魏吕丁沈姚卢傅钟汪夏谭陆范金石廖贾韦方邹白孟秦邱江尹薛雷侯龙段郝孔邵毛常万顾赖武贺严梅盛俞倪姜崔翟戴莫祝柳甘祁聂庄施陶洪殷葛柯阮骆费岑裴鲍樊凌霍虞邢滕卓岳温路成尚齐康伍钱尤于安乔文章关史黎易邬覃向池荣耿习桂焦巩童单舒褚卫丛佟符冷房辛简欧屈项詹管喻艾穆华戚柏窦奚郎鲁昌苗凤任酆廉汤毕卞元卜湛禹狄米贝臧谈茅庞熊纪蓝闵季麻娄颜刁昝裘缪宗宣贲郁杭包诸左吉钮龚嵇滑翁荀於惠甄麴封芮羿储靳汲邴糜巫巴弓隗宓蓬郗仰仲伊宁仇栾钭厉戎景司韶郜蓟宿怀蒲邰鄂索咸籍蔺屠蒙阴胥苍闻莘党贡劳逄姬申扶堵冉宰郦雍却璩桑濮寿扈燕冀郏浦农晏柴瞿阎慕茹宦戈庾暨衡弘匡寇禄阙殳蔚夔厍晁勾敖融訾阚饶毋沙乜鞠丰巢蒯查荆游竺逯盖桓帅肖佘佴涂麦展练闫丘禚苟"
COMPOUND_SURNAMES = ("欧阳", "司马", "诸葛", "上官", "司徒", "慕容", "夏侯", "皇甫", "尉迟", "公孙", "东方", "端木")
_ACTS = "说问答喊叫笑哭想看听坐站走跑拿抱背推拉打写读画唱吃喝回爬找给告觉知决住睡醒穿戴骑教学做买卖帮送点摇抬低伸咬捡握开关放望等接递擦端扶指盯愣抓摸躺蹲跪洗换挑砍缝织修剪讲念骂夸劝求请谢答应认识发现参加离出生嫁娶结婚守跳钻探叹闭睁眨皱追赶"
_SPEAKS = "说问答喊笑哭"
_BEFORE = frozenset("和 与 跟 给 对 向 把 被 问 找 让 等 告诉 叫醒 带 陪 帮 教 请 喊 抱 拉 扶 望着 看着".split())  # noqa: SIM905
_CALLED = re.compile(r"(?:名叫|叫做|叫|名字是|取名|姓名|绰号|外号|人称|叫他|叫她|喊他|喊她)$")
NO_NAMES = frozenset(
    "白云 阳光 高山 江水 林子里 天文台 望远镜 谢谢 明白 田野 白石 小心 老是 老家 小时候 小声 大家 石榴 雷声 马上 马路 金黄 黄昏 高高 高兴 平安 安静 安全 方便 方法 成功 成为 文章 文化 关心 关于 于是 常常 单独 管理 简单 向前 向导 康复 路上 路口 温暖 温柔 齐声 尚未 卫生 章程 史书 荣誉 关门 安排 欧洲 东方 文具 高粱 石板 石头 石阶 夏天 金鱼 金色 白色 白发 白天 黄色 黄土 黄河 江南 江湖 马匹 马车 龙头 梁上 万一 万物 常年 常见 钱包 何况 何必 如何 毛巾 毛衣 毛笔 柳树 梅花 桂花 童年 马帮 马队 马锅头 房间 房子 房屋 车子 项目 单位 单车 冷水 冷风 金属 钟声 钟楼 钟表 童话 莫名 成绩 成熟 关系 易拉罐 向日葵 康乐 乔木 于今 安心 安慰 明天 明月".split()  # noqa: SIM905
)
_DIMINUTIVE = re.compile(
    r"^(?:[小阿老大二三][\u4e00-\u9fff]|(?P<x>[\u4e00-\u9fff])(?P=x)|[\u4e00-\u9fff](?:妮|娃|蛋|宝|妞|丫|仔|儿))$"
)
_PLAIN_POS = ("v", "a", "d", "t", "m", "r", "c", "p", "u", "f", "q", "s", "z", "l", "i", "b", "x")


@lru_cache(maxsize=8)
def tagged_words(text: str) -> tuple[tuple[int, str, str], ...]:
    """The words of a Chinese text: where each begins, the word, what it is."""
    import rjieba  # noqa: PLC0415  its dictionary takes 30 MB

    found: list[tuple[int, str, str]] = []
    at = 0
    for word, kind in rjieba.tag(text):
        at = text.find(word, at)
        found.append((at, word, kind))
        at += len(word)
    return tuple(found)


def segmented_names(text: str) -> Counter[str]:
    """Who acts like a person, with how often each is meant."""
    points: defaultdict[str, float] = defaultdict(float)
    human: Counter[str] = Counter()
    words = tagged_words(text)
    for number, (at, _, _) in enumerate(words):
        for name, length in _candidates(words, number):
            own, acts = _evidence(text, words, number, at, length)
            points[name] += own
            human[name] += acts
    found = [name for name in points if human[name] and points[name] >= 3 and text.count(name)]
    kept: Counter[str] = Counter()
    for name in sorted(found, key=lambda one: (-points[one], -len(one))):
        rivals = [one for one in kept if one in name or name in one]
        if not rivals:
            kept[name] = text.count(name)
    return kept


@lru_cache(maxsize=64)
def word_kinds(text: str, name: str) -> frozenset[str]:
    """What a name is as a word of its own, wherever the segmenter cuts it so."""
    return frozenset(kind for _, word, kind in tagged_words(text) if word == name)


@lru_cache(maxsize=64)
def is_plain_word(text: str, name: str) -> bool:
    """Whether a name would be only a word, or cuts words in two, wherever it is written."""
    starts = {at for at, _, _ in tagged_words(text)}
    whole = word_kinds(text, name)
    if whole and all(kind.startswith(_PLAIN_POS) for kind in whole):
        return True
    spots = [m.start() for m in re.finditer(re.escape(name), text)]
    return bool(spots) and not any(at in starts for at in spots)


def is_thing(text: str, name: str) -> bool:
    """Whether the words around a would-be name say that it is a thing: defined as a kind, counted, or with an inside."""
    one = re.escape(name)
    if len(name) == 2 and name[1] in "树叶草藤菜豆糖油酸碱盐菌鱼虫鸟兽蛋肉" and name[0] not in "小阿老" + name[1]:
        return True  # 柏树
    return any(re.search(rule.replace("NAME", one), text) for rule in _OF_THINGS)


_OF_THINGS = (
    r"(?:^|[，。；：！？\n])(?:所谓)?NAME(?:就?是|指的?是)(?:指|由|一[种类层片块段股颗粒层])",
    r"一[种类][^。！？]{0,24}(?:叫做?|称为|名叫|名为)NAME",
    r"(?:一[种类层片块棵朵株根颗粒滴束股]|[几许多]种|大量的?|少量的?|制造|产生|分泌|含有|释放|新的)[^，。；]{0,4}NAME",
    r"NAME(?:里面?(?![长人])|内部|表面|外面|外层|底部|中的|含有|由[^，。]{1,6}(?:组成|构成|做成|制成))",
)
"""Of what is no person, NAME for the name."""


def _candidates(words: Sequence[tuple[int, str, str]], number: int) -> Iterator[tuple[str, int]]:
    """What may be a name from a word on, with how many characters it takes."""
    _, word, kind = words[number]
    after = words[number + 1][1] if number + 1 < len(words) else ""
    options: dict[str, None] = {}
    surname = next((one for one in COMPOUND_SURNAMES if word.startswith(one)), word[0] if word[0] in SURNAMES else "")
    if (kind.startswith("nr") or kind == "j") and 1 < len(word) < 5:
        options[word] = None
        if len(word) > 2 and word[-1] in _ACTS + "在是和对向给也就还又没把从正都才刚便急住":
            options[word[:-1]] = None
    if surname and word == surname and 0 < len(after) < 3:
        options[word + after] = None
    if surname and len(word) == len(surname) + 1 and len(after) == 1:
        options[word + after] = None  # 顾念 慈
    if surname and len(surname) < len(word) < len(surname) + 3 and kind[0] in "njz":
        options[word] = None
    if _DIMINUTIVE.match(word) and kind[0] in "nav":
        options[word] = None
    if word[0] in "小阿老" and len(word) == 3 and kind.startswith("nr"):
        options[word[:2]] = None
    if word in {"小", "阿", "老", "大"} and len(after) == 1:
        options[word + after] = None
    for name in options:
        if name[0] in "小阿老" and len(name) == 3:
            continue  # 小满 刚
        if (
            name in NO_NAMES
            or is_known(name, "zh")
            or name in kind_words_of("zh")
            or not re.fullmatch("[\u4e00-\u9fff]+", name)
        ):
            continue
        if re.search("[今昨明]天|[上下]午|晚上|早上", name) or (kind == "j" and len(word) > 3):
            continue
        if re.search("[你我他她它您]|麻烦", name):
            continue
        if name[-1] in "正住急" and name[0] not in SURNAMES:
            continue
        if name[
            -1
        ] in "的了着过们里上下是从在把和对向给也就还又没被让跟与而且很镇村县市省寺庙街路桥区州要会能可子头不底" or (
            len(name) == 2 and name[1] in "说问是在和也有很"
        ):
            continue
        yield name, len(name)


def _evidence(text: str, words: Sequence[tuple[int, str, str]], number: int, at: int, length: int) -> tuple[float, int]:
    """How much speaks for a person at a place, and whether they act."""
    before = words[number - 1] if number else (0, "", "x")
    opens = before[2] == "x" or not before[1].strip()
    points = 1.0 if opens else 0.0
    if before[1] in _BEFORE:
        points += 1
    role = next((one for one in kind_words_of("zh") if len(one) > 1 and text[:at].endswith(one)), "")
    called = _CALLED.search(text[max(0, at - 4) : at]) is not None
    points += 3 * bool(role) + 3 * called
    name = text[at : at + length]
    if any(
        one in kind_words_of("zh")
        for one in (text[at - 1 : at + length], text[at - 2 : at + length], text[at - 1 : at + 1])
    ):
        return 0.0, 0  # 工程师
    if re.search(r"它叫|它的名字[是叫]|[只头条匹]叫", text[max(0, at - 6) : at]):
        return -9.0, 0
    if words[number][2].startswith("nr"):
        points += 1
    if name[0] in SURNAMES and length == 3:
        points += 0.7
    clause = re.split(r"[，。！？；：“”、\n]", text[at + length : at + length + 14], maxsplit=1)[0]
    follows = next((w for w in words[number:] if w[0] >= at + length), None)
    speaks = clause[:1] in set(_SPEAKS) and clause[:1] != ""
    verb = _verb(words, number, at + length, len(clause))
    acts = (opens or bool(role) or before[1] in {"的", "和", "与"}) and verb[:1] in set(_ACTS) and verb != ""
    points += 2 * acts + 1 * speaks
    if follows is not None and follows[2][0] in "dpv":
        points += 0.5
    if (
        re.search(r"[“，]$", text[:at])
        and text[at + length : at + length + 1] in set("，！？")
        and "”" in text[at : at + 40]
    ):
        points += 0.5
    meant = before[1] in _BEFORE and (words[number][2].startswith("nr") or _DIMINUTIVE.match(name) is not None)
    return points + meant, int(acts or bool(role) or called or meant)


def _verb(words: Sequence[tuple[int, str, str]], number: int, end: int, room: int) -> str:
    """The first verb of the clause behind a place."""
    for at, word, kind in words[number : number + 9]:
        if at >= end + room:
            break
        if (
            at >= end
            and (kind[0] == "v" or (len(word) > 0 and word[0] in _ACTS and kind[0] in "vlnida"))
            and word not in {"是", "有", "没有", "到", "在"}
        ):
            return word
    return ""
