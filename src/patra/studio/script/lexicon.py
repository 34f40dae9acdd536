"""Decides from a sentence what its words say of place, time, weather, mood, things and people (C§2.3).

A small lexicon of our own. English words are matched whole, with their plain plural; Chinese words as substrings, the
longest first, so that 灯塔 is a lighthouse and not a lamp.
"""

# ruff: noqa: E501, SIM905  a table reads better unbroken

import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import islice

import msgspec

from patra.studio.script.depiction import here_part, is_salutation, seen_part, undenied_part
from patra.studio.script.language import READ
from patra.studio.script.signs import ELSEWHERE, SETS, set_of, unknown_place
from patra.studio.script.tables.senses import AT, MODIFIED, NOT_CHINESE, PART_OF, is_other_sense
from patra.studio.script.tables.things import PICTOGRAMS


class Tags(msgspec.Struct, frozen=True, kw_only=True):
    """What one sentence mentions, in the order of mention."""

    places: tuple[str, ...] = ()
    times: tuple[str, ...] = ()
    weathers: tuple[str, ...] = ()
    moods: tuple[str, ...] = ()
    motifs: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()  # motifs that the sentence says are not there
    place_words: tuple[str, ...] = ()  # of the places, in their order

    @property
    def all(self) -> tuple[str, ...]:
        return tuple(tag for field in self.__struct_fields__ for tag in getattr(self, field))


INSIDE = frozenset({"room", "kitchen", "library", "workshop", "hall", "shop"})

PLACES = {
    "sea": "sea ocean waves shore coast tide surf beach bay seaside | 大海 海边 海面 海浪 海上 海岸 沙滩 海水 海湾 潮水",
    "harbour": "harbour harbor port dock quay pier jetty wharf | 港口 码头 港湾 海港",
    "island": "island isle reef | 小岛 岛上 海岛 岛屿",
    "lake": "lake pond reservoir | 湖 湖面 湖边 池塘 湖水",
    "river": "river stream creek brook canal riverbank | 河 江 溪 河边 河水 小河 江边 江水 小溪 渡船 渡口 桥上 桥头 桥下 桥洞 桥边",
    "mountain": "mountain mountains peak ridge cliff summit valley slope hill hillside mountainside | 山 山谷 山顶 山峰 悬崖 山路 山坡 雪山 山脊",
    "forest": "forest woods grove jungle rainforest | 森林 树林 林子 竹林 松林 林中",
    "field": "field meadow farm pasture wheatfield orchard plains grassland paddy barley | 田野 田 麦田 稻田 草原 草地 农场 果园 原野",
    "garden": "garden courtyard yard park lawn greenhouse vineyard | 花园 院子 庭院 公园 后院 园子 小院",
    "village": "village hamlet cottage town inn | 村 村子 村庄 小镇 镇上 乡村 村口 镇子",
    "city": "city skyline skyscraper downtown apartment rooftop tower-block | 城市 都市 高楼 大楼 楼顶 城里 公寓",
    "street": "street night-market alley lane avenue pavement sidewalk market square crossroads | 街 街道 巷子 小巷 胡同 大街 街上 巷口 街口 路口 集市 夜市 广场 市场 巷",
    "road": "road path trail highway crossroad roadside | 马路 路 小路 公路 大路 路上 小径",
    "station": "station platform railway rails | 车站 站台 火车站 铁轨 月台 铁路",
    "desert": "desert dune sands | 沙漠 沙丘 戈壁",
    "temple": "temple shrine pagoda | 寺 庙 寺庙 古塔 宝塔 佛塔 山寺",
    "room": "bedroom attic parlour parlor living-room sitting-room cabin hotel-room hospital ward office cellar | 卧室 书房 客厅 阁楼 医院 病房 办公室",
    "kitchen": "kitchen stove hearth bakery | 厨房 灶台 灶",
    "library": "library bookshelf bookshelves archive bookshop | 图书馆 书架 书店 藏书",
    "workshop": "workshop workbench forge shed garage laboratory lab factory | 作坊 工坊 工作台 铺子 修理铺 店铺",
    "shop": "shop bookstore teashop cafe café restaurant | 商店 小店 茶馆 饭馆 咖啡馆 餐馆",
    "hall": "hall theatre theater school classroom schoolroom museum courtroom | 博物馆 展览馆 大厅 礼堂 剧院 学校 教室 戏台",
}
INDOORS = "room bed desk upstairs downstairs staircase indoors pillow sofa armchair wardrobe ceiling bookshelf | 房间 屋里 屋子 床 书桌 屋内 窗前 室内 枕头 被窝 沙发 衣柜 书架 天花板 窗帘"
"""Words that say only that it is inside: who is in a kitchen stays there."""

TIMES = {
    "dawn": "dawn sunrise daybreak | 黎明 日出 破晓 清晨 拂晓 天亮 天刚亮",
    "morning": "morning breakfast | 早晨 早上 上午 早饭",
    "day": "noon midday next-day next-year afternoon daylight sunlight sunny daytime | 中午 正午 下午 白天 阳光 午后 第二年 第二天 次日 夏天",
    "dusk": "dusk sunset twilight evening sundown | 黄昏 傍晚 日落 夕阳 晚霞 暮色 天黑 天晚了 天色已晚",
    "night": "night midnight moonlight moonlit starlight dark darkness moon stars nightfall tonight | 凌晨 夜 夜里 夜晚 半夜 午夜 月光 月亮 星光 深夜 黑夜 晚上 今晚 星星",
}
WEATHERS = {
    "rain": "rain rainy rained raining drizzle shower puddle | 雨 下雨 细雨 雨水 大雨 雨点",
    "storm": "storm thunder lightning gale tempest squall | 暴风雨 雷 闪电 风暴 暴雨 台风",
    "snow": "snow snowy snowed snowing snowfall snowflake blizzard frost | 雪 下雪 雪花 大雪 落雪 积雪",
    "fog": "fog foggy mist misty haze | 雾 浓雾 薄雾 大雾 雾气",
    "wind": "wind windy breeze gust | 风 大风 微风 海风 晚风 秋风",
    "clear": "clear-sky cloudless sunny sunshine | 晴 晴朗 晴天 阳光",
}
MOODS = {
    "joyful": "laugh laughed laughing smile smiled joy happy merry danced dancing song sang bright delighted festival | 笑 笑了 高兴 快乐 欢喜 开心 欢笑 唱 热闹",
    "sad": "cry cried wept tears sad sorrow lonely alone grief lost mourn farewell goodbye empty gone | 哭 泪 眼泪 悲伤 伤心 孤独 难过 离别 告别 失去 寂寞 走了",
    "tense": "fear feared afraid danger scream screamed ran running fight fought shouted enemy broke crash desperate hurry alarm | 怕 害怕 恐惧 危险 喊 逃 追 急 断 尖叫 慌 警报",
    "mysterious": "strange secret whisper whispered shadow silent silence mystery ghost unknown hidden vanished dream | 奇怪 秘密 低语 影子 沉默 寂静 神秘 鬼 消失 梦 悄悄",
    "warm": "warm home mother father gentle kind tea bread friend together love loved embrace hearth | 温暖 家 母亲 父亲 妈妈 爸爸 朋友 一起 爱 茶 温柔 奶奶 爷爷 外婆",
}
MOTIFS = {
    "lighthouse": "lighthouse beacon | 灯塔",
    "boat": "boat ship sailboat rowboat vessel ferry dinghy mast | 船 小船 帆 渔船 渡船 木船 帆船",
    "house": "house cottage hut roof chimney farmhouse inn | 房子 小屋 屋顶 木屋 房屋 烟囱 人家 老屋",
    "tree": "tree oak willow pine branch branches elm plane-tree | 树 大树 老树 柳树 树枝 槐树 松树 银杏 梧桐",
    "blossom": "blossom cherry-tree plum-tree petals | 樱花 桃花 梅花 花瓣 春天",
    "leaf": "leaf leaves | 落叶 叶子 秋天 树叶 黄叶",
    "flower": "flower roses tulip daisy lavender sunflower | 花 花朵 玫瑰 野花 菊花",
    "bird": "bird gull seagull crow swallow heron geese goose sparrow owl | 鸟 海鸥 乌鸦 燕子 大雁 白鹭 麻雀 鸽子",
    "moon": "moon moonlight | 月亮 月光 明月 月球 新月 满月",
    "sun": "sun sunrise sunset | 太阳 夕阳 日出 日落",
    "star": "star stars starlight constellation | 星 星星 星光 繁星 银河",
    "fire": "fire campfire bonfire flames fireplace | 火 篝火 火焰 火光 炉火",
    "lamp": "lamp lantern streetlamp lamplight | 灯 灯笼 油灯 路灯 灯光 提灯 台灯",
    "candle": "candle candlelight | 蜡烛 烛光",
    "window": "window windowpane sill | 窗 窗户 窗外 窗口 窗台",
    "door": "door doorway gate threshold | 门 大门 门口 木门",
    "book": "book diary notebook pages logbook ledger | 书 日记 本子 笔记 书页 账本",
    "letter": "letter envelope postcard | 信 信封 信纸 纸条 明信片 来信",
    "clock": "clock pocket-watch wristwatch pendulum | 钟 时钟 手表 怀表 钟表 挂钟",
    "key": "key keys | 钥匙",
    "cup": "cup tea mug teapot coffee | 茶 杯 茶杯 茶壶 咖啡",
    "umbrella": "umbrella parasol | 伞 雨伞 油纸伞",
    "kite": "kite | 风筝",
    "bell": "bell chime | 敲钟 撞钟 大钟 铃 钟声 铃铛 铜铃",
    "bridge": "bridge | 桥 石桥 小桥 木桥 铁桥 大桥 老桥 桥上 桥头 桥下 桥洞 桥边",
    "train": "train locomotive carriage | 火车 列车 车厢",
    "fence": "fence railing | 篱笆 栅栏",
    "path": "path road trail footpath | 马路 小路 山路 路 小径",
    "cat": "cat kitten | 猫 小猫",
    "dog": "dog puppy hound | 狗 小狗",
    "horse": "horse pony mare | 马 白马",
    "fish": "fish | 鱼 渔网",
    "map": "map | 地图 海图",
    "bicycle": "bicycle bike | 自行车 单车",
    "paperboat": "paper-boat | 纸船",
}
CHILDREN = frozenset({"boy", "girl", "child"})
FIGURES = {
    "boy": "boy son grandson lad schoolboy | 男孩 儿子 孙子 少年",
    "girl": "girl daughter granddaughter lass schoolgirl | 女孩 女儿 孙女 小姑娘",
    "child": "child kid children baby | 孩子 小孩 娃 小学生",
    "granny": "grandmother grandma granny gran nana old-woman old-lady elderly-woman elderly-lady | 外婆 奶奶 老太太 老奶奶 姥姥 老婆婆 老妇人",
    "woman": "woman mother wife lady aunt sister queen mum mom mama mummy widow bride waitress actress princess empress duchess she her | 女人 母亲 妈妈 阿妈 阿娘 娘亲 妻子 姑娘 她 姐姐 妹妹 阿姨 女子 未婚妻 太太 姑妈 姑姑 姨妈 舅妈 婶婶 大婶 嫂子 侄女 岳母 公主 皇后 女王 老板娘 新娘 婆婆 媳妇 大姐 大妈",
    "man": "man father dad daddy papa husband gentleman uncle brother king emperor prince knight groom he him captain sailor soldier fisherman | 男人 父亲 爸爸 阿爸 阿爹 丈夫 他 哥哥 弟弟 叔叔 舅舅 姑父 姨父 伯父 侄子 外甥 岳父 船长 水手 男子 渔夫 船夫 车夫 农夫 守塔人 守夜人 未婚夫 将军 士兵 皇帝 国王 王子 和尚 新郎 大叔 大哥 小伙子 牧羊人 猎人 渔民",
    "old": "grandfather grandpa granddad elder old-man old-gentleman elderly-man elderly-gentleman | 老人 爷爷 外公 老头 老者 老师傅 老汉 老伯 老爷爷",
    "crowd": "crowd people everyone villagers neighbours neighbors townsfolk passengers residents spectators audience crew visitors tourists pilgrims onlookers fans protesters volunteers workers soldiers students pupils | 人群 人们 他们 她们 村民 众人 乡亲 行人 居民 市民 游客 乘客 观众 同学们 大伙",
}

_TABLES = {
    "places": PLACES | {"indoors": INDOORS, "elsewhere": ELSEWHERE},
    "times": TIMES,
    "weathers": WEATHERS,
    "moods": MOODS,
    "motifs": MOTIFS,
    "figures": FIGURES,
}
_OVER_EN = re.compile(
    r"\b(rain|snow|fog|mist|storm|wind)\s+(?:had\s+|has\s+)?(?:lifted|stopped|cleared|ended|passed|died)"
)
_OVER_ZH = re.compile(r"(雨|雪|雾|风)[^，。]{0,4}(?:停|散)")
_NAMED_SKY = re.compile(r"\b(?:of|about|count\w*|names?|study|studied)\s+(?:the\s+|[\d,]+\s+)?$", re.IGNORECASE)
"""Who counts the stars may do so by day."""

_LEAVES = frozenset(
    "the of fallen dead dry green yellow red autumn brown and with in on under its their tea some few many wet golden "
    "among through new young".split()
)
_ANIMALS_ZH = frozenset("虫鸟鸡鸭鹅兽蛙蛇龟蝶蜂蚁虾蟹燕鹰狮豹")
_PROPER = re.compile(
    r"[A-Z][a-z]+ (?:Lane|Road|Street|Avenue|Square|Hill|House|Park|Bridge|Station|Hall|School|Hotel)\b"
)
_STAFF_ZH = re.compile(r"的[^，。]{0,2}?(?:专家|医生|老师|员工|工作人员|校长|馆长|教授|学生|记者|工人|护士)")
_WORD = re.compile(r"[a-zà-öø-ÿ]+(?:['’-][a-zà-öø-ÿ]+)*")


def tags_of(sentence: str, language: str) -> Tags:
    """What a sentence says is there: without what is denied, compared with, or only spoken of."""
    if language not in READ:
        return Tags()
    seen, here = seen_part(sentence, language), here_part(sentence, language)
    find = _chinese if language == "zh" else _english
    found: dict[str, dict[str, str]] = {table: {} for table in _TABLES}
    if is_salutation(sentence):
        found["motifs"]["letter"] = ""
    for place, entry in find(seen):
        for table, tag in entry:
            if table in {"motifs", "moods"}:
                found[table].setdefault(tag, "")
        del place
    there: set[str] = set()
    for place, entry in find(here):
        for table, tag in entry:
            if table == "times" and language != "zh" and _NAMED_SKY.search(here[:place]):
                continue
            if table not in {"motifs", "moods"} and (table != "places" or _is_located(here, place, language)):
                found[table].setdefault(tag, word_at(here, place, language))
                if table == "places" and language == "zh" and re.search(r"[在到进回][^，。]{0,2}$", here[:place]):
                    there.add(tag)
    if there:  # 茶馆关了门，他在巷口: what someone is in goes before what is only named
        found["places"] = {place: word for place, word in found["places"].items() if place in there}
    if not [place for place in found["places"] if place != "indoors"] and (word := unknown_place(here, language)):
        found["places"] = {"elsewhere": word}
    if over := (_OVER_ZH if language == "zh" else _OVER_EN).search(here):  # the weather that goes is no more
        gone = {tag for _, entry in find(over[1]) for _, tag in entry}
        found["weathers"] = {"clear": ""} | {tag: "" for tag in found["weathers"] if tag not in gone}
    kept = {tag for _, entry in find(undenied_part(sentence, language)) for _, tag in entry}
    denied = [tag for _, entry in find(sentence) for table, tag in entry if table == "motifs" and tag not in kept]
    return Tags(
        **{table: tuple(tags) for table, tags in found.items()},
        denied=tuple(dict.fromkeys(denied)),
        place_words=tuple(found["places"].values()),
    )


def motif_words(sentence: str, language: str) -> dict[str, str]:
    """The motifs that a sentence shows, each with its word there."""
    seen, found = seen_part(sentence, language), dict[str, str]()
    for place, entry in (_chinese if language == "zh" else _english)(seen):
        for table, tag in entry:
            if table == "motifs":
                found.setdefault(tag, word_at(seen, place, language))
    return found


def named_places(sentence: str, language: str) -> list[tuple[str, str]]:
    """The places that a sentence names, whether or not anyone is there, each with its word."""
    seen = seen_part(sentence, language)
    hits = [
        (tag, place, word_at(seen, place, language))
        for place, entry in (_chinese if language == "zh" else _english)(seen)
        for table, tag in entry
        if table == "places" and tag != "indoors" and set_of(word_at(seen, place, language)) != "outdoors"
    ]
    hits = [hit for hit in hits if not _FROM.search(seen[: hit[1]])]
    after = {place: re.match(r"\W*(\w*)", seen[place + len(word) :]) for _, place, word in hits}
    return [(tag, word) for tag, place, word in hits if not ((next_ := after[place]) and next_[1] in MODIFIED)]


def is_known(word: str, language: str) -> bool:
    """Whether the lexicon has a word; it says then what is drawn for it."""
    return word in _index(language)


def word_at(text: str, place: int, language: str) -> str:
    """The word of the lexicon that begins at a place of a text."""
    if language == "zh":
        return text[place : place + word_length(text, place)]
    first, second = ([m[0] for m in islice(_WORD.finditer(text.lower(), place), 2)] + ["", ""])[:2]
    pair = f"{first}-{second}"
    return pair if {pair, f"{first}-{_singular(second)}"} & set(_index("en")) else first


_TO_PLACE = re.compile(r"\bto\s+(?:$|(?:the|an?|his|her|their|its|our|my|your|this|that)\b[^,]*$)", re.IGNORECASE)

_FROM = re.compile(r"\bfrom\b[^,.;]{0,25}$|从[^，。]{0,3}$", re.IGNORECASE)
_WAY_TO = re.compile(
    r"\b(?:bus|train|tram|ferry|boat|road|way|path|ticket|door|key|letter|map)s?\s+to\s+(?:the |an? )?$", re.IGNORECASE
)
_WHICH_ONE = re.compile(
    r"\b(?:(house|home|shop|hut|cottage|flat|building|yard|place) )?(?:behind|near|opposite|beside|above|below|next to)\s+(?:the |an? )?(?:\w+ )?$"
)


def _is_located(text: str, place: int, language: str) -> bool:
    """Whether an English word for a place says where something is: "on the sea", "the sea lay", not "of the sea"."""
    if language == "zh":  # 江边的村子: what stands before 的 only says which one
        if re.search(r"听[见到]?[^，。]{0,3}$", text[:place]):
            return False  # what is heard may be far away
        if re.search(r"从[^，。]{0,3}$", text[:place]) and re.match(
            r"[^，。]{1,5}(?:寄来|运来|带来|搬来|传来|赶来|来的|回来)", text[place:]
        ):
            return False  # where something comes from
        size = word_length(text, place)
        if _STAFF_ZH.match(text[place + size :]):
            return False  # 博物馆的专家来到河边: where they work
        if text[place + size : place + size + 1] == "、" or re.search(r"、(?:[^，。、]{1,6}[和与及])?$", text[:place]):
            return False  # one of several places in a row
        owned = re.match(r"[^，。的]{1,3}的(.{1,5})", text[place:])
        gone = re.search(r"(?:走出|离开|出了|跑出|卖掉|卖了|关掉|拆了|拆掉|买下)[^，。]{0,2}$", text[:place])
        return not gone and not (
            owned and any(table == "places" for _, entry in _chinese(owned[1]) for table, _ in entry)
        )
    before = re.split(r"[,.;:!?—]", text[:place])[-1]
    words = before.lower().split()
    rest = text[place:].split(maxsplit=2)
    if rest[1:2] == ["of"] and rest[0].lower() in {"field", "school", "sea", "forest", "bed", "mountain", "plains"}:
        return False  # a field of study, a sea of troubles
    if words[-1:] == ["magnetic"] or words[-1:] == ["electric"]:
        return False
    follower = re.sub(r"[^a-z].*", "", rest[1].lower()) if rest[1:] else ""
    if follower in MODIFIED and rest[0].isalpha():
        return False
    if "-" not in word_at(text, place, language) and any(
        table == "places" for table, _ in _index("en").get(follower, ())
    ):
        return False  # the school of a school playground
    near = words[-5:]
    if {"heard", "hear", "hears"} & set(near[-4:]):
        return False
    if {"from", "left", "leaving"} & set(near[-3:]) or re.search(r"\bout of (?:the |a |his |her )?(?:\w+ )?$", before):
        return False  # who leaves a place is no longer there
    if "of" in near[-3:] and not PART_OF & set(near):
        return False
    roles = {word for row in FIGURES.values() for word in row.split("|")[0].split()}
    subject = (
        len(words) <= 3
        and not roles & set(words)
        and not {"he", "she", "they", "i", "we", "you", "it", "loved", "loves"} & set(words)
    )
    if _WAY_TO.search(before):
        return False  # the bus to the hospital is not there yet
    which = _WHICH_ONE.search(before)
    if which and (which[1] or any(table == "places" for _, e in _english(before) for table, _ in e)):
        return False  # the shop behind the church: it only says which shop
    at = AT & set(near)
    if set(at) <= {"to"} and at and not _TO_PLACE.search(before):
        return False  # she learned to draw hills
    return bool(at) or subject or bool(PART_OF & set(near))


def _english(sentence: str) -> list[tuple[int, tuple[tuple[str, str], ...]]]:
    index = _index("en")
    hits: list[tuple[int, tuple[tuple[str, str], ...]]] = []
    words = [(m.start(), m[0]) for m in _WORD.finditer(sentence.lower().replace("’", "'"))]
    at = 0
    while at < len(words):
        place, word = words[at]
        after = words[at + 1][1] if at + 1 < len(words) else ""
        if place and _PROPER.match(sentence, place):
            at += 2
            continue  # Mill Lane, River Road: a name
        if word == "leaves" and at and words[at - 1][1] not in _LEAVES:
            at += 1
            continue  # the train leaves
        if word == "roof" and after == "of":
            at += 1
            continue  # of a lorry
        for form in (f"{word}-{after}", f"{word}-{_singular(after)}", word.removesuffix("'s"), _singular(word)):
            if form in index and not is_other_sense(form, sentence):
                hits.append((place, index[form]))
                at += "-" in form and "-" not in word  # a pair is one thing: a paper boat is no boat
                break
        at += 1
    return hits


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _chinese(sentence: str) -> list[tuple[int, tuple[tuple[str, str], ...]]]:
    index, longest = _index("zh"), _longest()
    hits: list[tuple[int, tuple[tuple[str, str], ...]]] = []
    at = 0
    while at < len(sentence):
        for length in range(min(longest, len(sentence) - at), 0, -1):
            if (entry := index.get(sentence[at : at + length])) is not None:
                kind = (
                    length == 1
                    and (
                        sentence[at + 1 : at + 2] in _ANIMALS_ZH  # 火虫, 雨燕: of the name of an animal
                        or (sentence[at] == "杯" and sentence[at - 1 : at] in set("一二两三几半每"))  # how much of it
                    )
                )
                hits.append((at, () if kind else entry))
                at += length
                break
        else:
            at += 1
    return hits


def word_length(text: str, at: int) -> int:
    """How long the word of the Chinese lexicon is that begins at a place of a text; 0 where none does."""
    index = _index("zh")
    return next((n for n in range(min(_longest(), len(text) - at), 0, -1) if text[at : at + n] in index), 0)


@lru_cache(maxsize=2)
def _index(language: str) -> Mapping[str, tuple[tuple[str, str], ...]]:
    index: dict[str, list[tuple[str, str]]] = {}
    for table, entries in _TABLES.items():
        for tag, words in entries.items():
            english, chinese = words.split("|")
            for word in (chinese if language == "zh" else english).split():
                index.setdefault(word, []).append((table, tag))
    for word in (word for row in SETS.values() for word in row.replace("|", " ").split()):
        if word.isascii() == (language != "zh") and word not in index:
            index[word] = [("places", "elsewhere")]
    if language == "zh":
        things = [word for row in PICTOGRAMS.values() for word in row.split("|")[1].split() if len(word) > 1]
        for word in (*NOT_CHINESE, *things):  # 熊猫 is no cat
            index.setdefault(word, [])
    return {word: tuple(tags) for word, tags in index.items()}


@lru_cache(maxsize=1)
def _longest() -> int:
    return max(map(len, _index("zh")))
