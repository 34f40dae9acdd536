"""Finds the names of the people of a Chinese chapter (C§2.3)."""

# ruff: noqa: E501, SIM905  tables read better unbroken, as words

import re
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

from patra.studio.script.cast.roles import FEMALE, kind_words_of
from patra.studio.script.cast.segments import NO_NAMES, SURNAMES, is_plain_word, is_thing, segmented_names
from patra.studio.script.lexicon import is_known
from patra.studio.script.sentences import Chapter

_ZH_VERBS = "[说道问答喊笑走站坐拿看听想把是在也和从回跑背提抱拉推打点抬伸带给去来没不又每就用蹲跪爬骑开写画唱吹挥望]"
_ZH_NAME = re.compile(r"(?:小|阿|老)[\u4e00-\u9fff]")
_ZH_FULL = re.compile(
    rf"(?:^|[，。！？；：“”、的是和叫给对向]|工程师|教师|老师|教授|专家|记者|校长|医生|市长|居民|主任|村民)([{SURNAMES}][\u4e00-\u9fff]{{1,2}})(?=说|道|问|答|喊|笑|走|站|坐|拿|看|听|想|把|是|在|也|和|从|出生|[一二][零〇一二三四五六七八九]{{3}}年|[一二三四五六七八九十0-9]+岁|回|表示|介绍|告诉|发现|发明|带|对|终于|决定)",
    re.MULTILINE,
)
_ZH_BEFORE_NAME = "的和与对给跟向叫是把被让找问见士生师员人友位长警妹弟哥姐子在到从了着说看听想等比为"
_ZH_NOT_LAST = "的了在是和着就也都上下里中把被从到说问来去不没有这那个们"
_ZH_HOW = re.compile(r"[\u4e00-\u9fff]{2,3}[得地]")  # 高兴得跳起来
_ZH_TWICE = frozenset(
    "慢慢 轻轻 悄悄 渐渐 常常 偷偷 静静 默默 深深 天天 人人 家家 刚刚 仅仅 匆匆 缓缓 纷纷 处处 远远 久久 紧紧 呆呆 偏偏 往往 早早 好好 白白 连连 频频 微微 牢牢 狠狠 统统".split()
)
_ZH_SURNAME_WORDS = "王国 高兴 方法 白天 江面 江边 马上 马路 田野 金属 石头 龙舟 雷声 夏天 何时 常常 万里 江水 高山 白云 石桥 马车 林子 叶子".split()
"""Words that begin like a name."""

_ZH_SPOKEN = re.compile(
    r"”([\u4e00-\u9fff]{2,3})[说问答喊](?=[，。：])|(?:^|。)([\u4e00-\u9fff]{2,3})[说问答喊]：“|岁的([\u4e00-\u9fff]{2,4}?)(?=嫁|出生|来到|离开|在|从|被|不|没|总|很|正|就|也|最|一个人|每天|说|问|跑|走|站|坐|拿|抱|看|想|把|独自|第一次|告诉|发现)|"
    r"(?:^|[，。”])((?P<same>[\u4e00-\u9fff])(?P=same))(?=[说问答喊晃笑跑走闭伸拿站坐看睁点摇抱推])",
    re.MULTILINE,
)
_ZH_CALLED = re.compile(r"(?:名叫|名字叫|小名叫?|取名叫?|乳名叫?|我叫)([\u4e00-\u9fff]{2,4})(?=[，。、”；！]|的(?!名))")
_NO_PERSON = re.compile(r"[猫狗牛马羊鸟兔猪鹅鸭鸡鱼龟驴骡它船店村镇河山岛歌书寨桥]")
_ZH_FOREIGN = re.compile(r"[\u4e00-\u9fff]{1,9}·[\u4e00-\u9fff]{1,4}?(?=[在是说和，。一于从出被把对有发]|$)")
_ZH_BEGINS = re.compile(rf"(?:^|[，。！？；：“”])([{SURNAMES}][\u4e00-\u9fff]{{1,2}}?)(?={_ZH_VERBS})", re.MULTILINE)
_ZH_TITLES = {
    **dict.fromkeys(("奶奶", "婆婆", "大妈", "大娘", "婆", "姥姥", "老太太", "外婆"), "granny"),
    **dict.fromkeys(("爷爷", "大爷", "大伯", "伯伯", "伯", "公", "爷"), "old"),
    **dict.fromkeys(
        (
            "阿姨",
            "婶婶",
            "太太",
            "小姐",
            "女士",
            "大姐",
            "姐姐",
            "妈妈",
            "婶",
            "姨",
            "嫂",
            "姐",
            "妈",
            "娘子",
            "夫人",
            "姑娘",
            "大嫂",
            "二姐",
            "阿婆",
        ),
        "woman",
    ),
    **dict.fromkeys(
        ("叔叔", "大叔", "先生", "大哥", "哥哥", "爸爸", "叔", "哥", "伯父", "公子", "少爷", "大人", "二哥"), "man"
    ),
    **dict.fromkeys(
        (
            "老师",
            "医生",
            "师傅",
            "老板",
            "校长",
            "警官",
            "教授",
            "队长",
            "船长",
            "大夫",
            "主任",
            "经理",
            "局长",
            "同志",
            "法官",
            "护士",
            "警察",
            "团长",
            "连长",
            "将军",
            "掌柜",
            "郎中",
        ),
        "",
    ),
}
_ZH_TITLED = re.compile(rf"[{SURNAMES}](?:{'|'.join(sorted(_ZH_TITLES, key=len, reverse=True))})(?![司园共里路斤元安])")
_ZH_ACTS = "说|问|答|喊|笑|走|跑|站|坐|拿|看|听|想|把|伸手|点|抬|推|打开|低头|回头|摇|跟|抱|拉|没有|也|又|每天"
_ZH_SIGNED = re.compile(
    r"(?:女儿|儿子|孙女|孙子|妹妹|姐姐|弟弟|哥哥|侄女|侄子|外甥女?|朋友|学生|妻子?|同学)[ \u3000，]+([\u4e00-\u9fff]{2,4})\s*\Z"
)  # who signs a letter, also 小雨
_ZH_QUANTITY = re.compile("许多|很多|不少|好多|好些|有些|一些|大多|多数|少数|所有|全体|其他|其余|另外|每个|各个|无数")
_ZH_WEATHER_NAMES = ("小雨", "小雪")  # also names: where they act, or someone calls them
_ZH_NO_NAMES = frozenset("小船 小岛 小路 小屋 小镇 小时 小心 小巷 小孩 小溪 小河 小狗 小猫 小桥 小鸟 小径 小院 小声 小的 小小 小火 小块 小雨 小雪 小山 小女 小男 小姑 小伙 小学 小店 小菜 小碗 小麦 小提 小站 小城 小楼 小床 小灯 小刀 小手 小脸 小事 小队 小组 小说 小姐 小岛 小村 小车 小勺 小苏 老人 老师 老树 老头 老屋 老者 老了 老太 老旧 老是 老板 老奶 老家 老房 老街 老鼠 老虎 老式 老大 老爷 老木 老汉 老伯 老妇 阿姨".split())  # fmt: skip


def chinese_names(chapter: Chapter, most: int) -> dict[str, str]:
    """Names, most frequent first, each with the kind that its title gives or nothing."""
    text = "\n".join(sentence.text for sentence in chapter.sentences)
    found = Counter(
        match[0]
        for match in _ZH_NAME.finditer(text)
        if match[0] not in _ZH_NO_NAMES
        and (
            not "\u4e00" <= text[max(0, match.start() - 1)] <= "\u9fff"
            or text[match.start() - 1] in _ZH_BEFORE_NAME
            or not match.start()
        )
    )
    sure = set[str]()  # who needs no more evidence
    for name in _ZH_WEATHER_NAMES:
        if re.search(rf"{name}(?:{_ZH_ACTS})|“{name}[，！？]|叫{name}", text):
            found[name] += text.count(name)
    titled = {match[0]: _ZH_TITLES[match[0][1:]] for match in _ZH_TITLED.finditer(text)}
    titled |= {match[1]: "" for match in _ZH_SIGNED.finditer(text)}
    found.update({name: text.count(name) + 1 for name in titled})
    for match in _ZH_FULL.finditer(text):
        name = match[1]
        if _is_in_role(text, match.start(1)) or any(name.startswith(one) or one.startswith(name) for one in titled):
            continue
        if len(name) == 3 and text.count(name) < 2 and name[2] in "说道问答喊笑走站坐拿看听想把是在也和从回":
            name = name[:2]
        if len(name) > 1 and not any(word in name for word in _ZH_SURNAME_WORDS):
            found[name] += text.count(name)
    for match in _zh_behind_roles().finditer(text):  # 馆长周敏, 船长韩大海
        name = match[1][:2] if match[1][2:] in set(_ZH_VERBS) and text.count(match[1]) == 1 else match[1]
        plain = _is_in_role(text, match.start(1)) or any(word in name for word in _ZH_SURNAME_WORDS)
        plain = plain or (len(name) == 2 and name[1] in _ZH_VERBS)  # 教授常说
        if not plain and name not in found:
            found[name] += text.count(name) + 1
    for match in _zh_repeated().finditer(text):
        name = match[1]
        plain = any(is_known(name[at : at + 2], "zh") for at in range(2)) or name[2] in _ZH_NOT_LAST
        plain = plain or _is_in_role(text, match.start(1))
        if text.count(name) > 1 and not plain and not any(name in one or one in name for one in found):
            found[name] += text.count(name)
    for match in _ZH_BEGINS.finditer(text):  # who opens clauses more than once is a person
        name = match[1]
        plain = any(is_known(name[at : at + 2], "zh") or is_known(name[at], "zh") for at in range(1, len(name)))
        often = len(re.findall(rf"(?:^|[，。！？；：“”])[^，。]{{0,4}}{name}", text, re.MULTILINE)) > 1
        if often and not plain and not any(name in one or one in name for one in found):
            found[name] += text.count(name)
    for match in _ZH_SPOKEN.finditer(text):  # who speaks, who is so old, and 乐乐 who does something
        name = next(one for one in match.groups() if one)
        known = (
            is_known(name, "zh")
            or name in kind_words_of("zh")
            or name[0] in "他她它我你您谁大有没"
            or name[-1] in _ZH_NOT_LAST
        )
        for shorter in [one for one in found if one != name and name.startswith(one)]:
            del found[shorter]  # 阿依 of 阿依古丽
        if not known and name not in _ZH_TWICE and not any(name in one for one in found):
            found[name] += text.count(name) + 1
    for name in [
        n for n in found if n not in titled and n[0] in SURNAMES and n[0] != n[1:2] and is_plain_word(text, n)
    ]:
        del found[name]
    for name in [one for one in found if one[:2] in NO_NAMES or _is_animal(one, text)]:
        del found[name]
    for match in _ZH_CALLED.finditer(text):  # 男孩名叫天天
        if not _NO_PERSON.search(text[max(0, match.start() - 14) : match.start()]) and not is_known(match[1], "zh"):
            found[match[1]] = text.count(match[1]) + 1
            sure.add(match[1])
    for name, count in segmented_names(text).items():
        if _is_animal(name, text):
            continue
        cut = [
            one for one in found if one != name and one not in titled and (one.startswith(name) or name.startswith(one))
        ]
        if any(text.count(one) == text.count(name) and len(one) == 3 and name in one for one in cut):
            continue  # 孟庆和
        if "·" in text and re.search(f"·{name}|{name}·", text):
            continue
        if not any(name in one for one in found if one not in cut and one != name):
            for one in cut:
                del found[one]
            found[name] = max(found[name], count + 1)
            sure.add(name)
    roles = sorted(kind_words_of("zh"), key=len, reverse=True)
    for match in _ZH_FOREIGN.finditer(text):
        name = match[0]
        cut = max((name.find(one) + len(one) for one in roles if one in name.split("·")[0][:-1]), default=0)
        found[name[cut:]] += 2
    acting = "说|问|答|喊|笑|走|跑|站|坐|拿|看|听|想|把|在|和|的|撑|提|抱|点|又|也|今年|回|对|从|是|向|给|出生|嫁|娶|带|送|打|捉|爬|写|画|告诉|表示|介绍|发现|用"
    names = [
        name
        for name, count in sorted(found.items(), key=lambda i: (-i[1], i[0]))
        if not _ZH_HOW.fullmatch(name) and (name in titled or not is_thing(text, name))
        if not _ZH_QUANTITY.match(name) and not _is_within_role(text, name)
        if name in sure
        or name in titled
        or (count > 1 and not name.startswith("小"))
        or re.search(rf"{name}(?:{acting}|[一二][零〇一二三四五六七八九]{{3}}年)", text)
    ]
    return {name: titled.get(name, "") for name in names[:most]}


def _is_animal(name: str, text: str) -> bool:
    """Whether a name is a dog's or a cat's: 他的黄狗阿福."""
    return (
        re.search(rf"[猫狗马牛羊驴骡鹅鸟猪兔](?:的?名字)?[叫是]?{name}|{name}是[^，。]{{0,6}}[只头条匹]", text)
        is not None
    )


def _is_within_role(text: str, name: str) -> bool:
    """Whether a name is only ever a part of a longer word for someone: 小姑 of 小姑娘."""
    around = [word for word in kind_words_of("zh") if name in word and word != name]
    covered = sum(text.count(word) for word in around)
    return covered > 0 and covered >= text.count(name)


def _is_in_role(text: str, start: int) -> bool:
    """Whether a name would begin inside of a role: 老师傅没有."""
    return text[start - 1 : start + 1] in kind_words_of("zh")


@lru_cache(maxsize=1)
def _zh_behind_roles() -> "re.Pattern[str]":
    """Names behind a role, up to what someone does or the end of the clause."""
    roles = "|".join(word for word, kind in kind_words_of("zh").items() if len(word) > 1 and kind == "person")
    ends = rf"[，。、；：！？”]|{_ZH_VERBS}|表示|介绍|告诉|发现|带|对|终于|决定|今年|出生|$"
    return re.compile(rf"(?:{roles}|船长)([{SURNAMES}][\u4e00-\u9fff]{{1,2}})(?={ends})", re.MULTILINE)


@lru_cache(maxsize=1)
def _zh_repeated() -> "re.Pattern[str]":
    """Names of three characters where a clause begins or a role stands before; one who comes again is a person."""
    roles = "|".join(sorted(kind_words_of("zh"), key=len, reverse=True))
    return re.compile(rf"(?:^|[，。！？；：“”]|{roles})([{SURNAMES}][\u4e00-\u9fff]{{2}})", re.MULTILINE)


def joined_names(names: Mapping[str, str], chapter: Chapter) -> tuple[dict[str, str], dict[str, str]]:
    """The names without those that are another word for one of them, and whom each such word means.

    沈月琴 is also 月琴, 老秦 is 秦爷爷 to a child, 周敏 is 周师傅: where only one person has the surname.
    """
    text = "\n".join(sentence.text for sentence in chapter.sentences)
    kept, aliases = dict(names), dict[str, str]()
    full = [name for name in names if _is_full(name)]
    for name in names:
        surname = name[1] if name[0] in "老小" else name[0]
        if name in full or surname not in SURNAMES or name[0] == "阿":
            continue
        own = [one for one in full if one[0] == surname]
        others = [
            one
            for one in kept
            if one != name
            and one not in full
            and surname in {one[0], one[1:2]}
            and (one[0] in "老小") != (name[0] in "老小")
        ]
        sexes = {kind in FEMALE for kind in (names[name], *(names[one] for one in own + others)) if kind}
        if len(own) == 1 and len(sexes) < 2 and name[0] != "小":
            aliases[name] = own[0]
            kept[own[0]] = kept[own[0]] or kept.pop(name)
            kept.pop(name, None)
        elif not own and len(others) == 1 and len(sexes) < 2 and others[0] in kept and name[0] == "老":
            aliases[others[0]] = name
            kept[name] = kept[name] or kept.pop(others[0])
            kept.pop(others[0], None)
    for name in [one for one in kept if one[0] not in "老小阿"]:
        if longer := next((one for one in kept if one != name and one.startswith(name) and one[1:] in _ZH_TITLES), ""):
            aliases[longer] = name  # 庄伯, 庄伯伯
            kept[name] = kept[name] or kept.pop(longer)
            kept.pop(longer, None)
            break
    for name in full:
        given = name[1:]
        alone = re.findall(rf"(?<!{name[0]}){given}", text)
        if len(name) == 3 and alone and not is_known(given, "zh") and given not in kind_words_of("zh"):
            aliases[given] = name
    return kept, aliases


def _is_full(name: str) -> bool:
    """Whether a name is a surname with a given name: neither 秦爷爷 nor 老秦."""
    return (
        name[0] in SURNAMES
        and name[1:] not in _ZH_TITLES
        and 1 < len(name) < 4
        and name[0] != name[1]
        and "·" not in name
    )
