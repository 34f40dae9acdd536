"""A sentence goes in; what its words say of place, time, weather, mood, things and people comes out (C§2.3).

A small lexicon of our own. English words are matched whole, with their plain plural; Chinese words as substrings, the
longest first, so that 灯塔 is a lighthouse and not a lamp.
"""

# ruff: noqa: E501  a table reads better unbroken

import re
from collections.abc import Mapping
from functools import lru_cache

import msgspec


class Tags(msgspec.Struct, frozen=True, kw_only=True):
    """What one sentence mentions, in the order of mention."""

    places: tuple[str, ...] = ()
    times: tuple[str, ...] = ()
    weathers: tuple[str, ...] = ()
    moods: tuple[str, ...] = ()
    motifs: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()


INSIDE = frozenset({"room", "kitchen", "library", "workshop", "hall", "shop"})

PLACES = {
    "sea": "sea ocean waves shore coast tide surf beach bay | 大海 海边 海面 海浪 海上 海岸 沙滩 海水 海湾 潮水",
    "harbour": "harbour harbor port dock quay pier jetty wharf | 港口 码头 渡口 港湾 海港",
    "island": "island isle reef | 小岛 岛上 海岛 岛屿",
    "lake": "lake pond reservoir | 湖 湖面 湖边 池塘 湖水",
    "river": "river stream creek brook canal riverbank ferry | 河 江 溪 河边 河水 小河 江边 江水 小溪 渡船",
    "mountain": "mountain peak ridge cliff summit valley slope pass hill | 山 山谷 山顶 山峰 悬崖 山路 山坡 雪山 山脊",
    "forest": "forest wood woods grove pine bamboo | 森林 树林 林子 竹林 松林 林中",
    "field": "field meadow farm pasture wheat orchard plain grassland paddy barley | 田野 田 麦田 稻田 草原 草地 农场 果园 原野",
    "garden": "garden courtyard yard park lawn | 花园 院子 庭院 公园 后院 园子 小院",
    "village": "village hamlet cottage town inn | 村 村子 村庄 小镇 镇上 乡村 村口 镇子",
    "city": "city skyline skyscraper downtown apartment rooftop tower-block | 城市 都市 高楼 大楼 楼顶 城里 公寓",
    "street": "street alley lane avenue pavement sidewalk market square crossroads | 街 街道 巷子 小巷 胡同 大街 街上 集市 广场 市场 巷",
    "road": "road path track trail highway crossroad | 路 小路 公路 大路 路上 小径",
    "station": "station platform railway rails | 车站 站台 火车站 铁轨 月台 铁路",
    "desert": "desert dune sands | 沙漠 沙丘 戈壁",
    "temple": "temple shrine monastery pagoda church chapel | 寺 庙 寺庙 塔 古塔 教堂 山寺",
    "room": "room bedroom attic parlour parlor study bed desk ceiling cabin upstairs staircase indoors inside | 房间 屋里 屋子 卧室 书房 客厅 阁楼 床 书桌 屋内 窗前 室内",
    "kitchen": "kitchen stove oven hearth | 厨房 灶台 炉子 灶 炉火",
    "library": "library bookshelf bookshelves archive bookshop | 图书馆 书架 书店 藏书",
    "workshop": "workshop workbench forge studio shed | 作坊 工坊 工作台 铺子 修理铺 店铺",
    "hall": "hall theatre theater stage school classroom | 大厅 礼堂 剧院 学校 教室 戏台",
}
TIMES = {
    "dawn": "dawn sunrise daybreak | 黎明 日出 破晓 清晨 拂晓 天亮 天刚亮",
    "morning": "morning breakfast | 早晨 早上 上午 早饭",
    "day": "noon midday next-day next-year summer afternoon daylight sunlight sunny daytime | 中午 正午 下午 白天 阳光 午后 第二年 第二天 次日 夏天",
    "dusk": "dusk sunset twilight evening sundown nightfall | 黄昏 傍晚 日落 夕阳 晚霞 暮色 天黑",
    "night": "night midnight moonlight moonlit starlight dark darkness moon stars | 夜 夜里 夜晚 半夜 午夜 月光 月亮 星光 深夜 黑夜 晚上 星星",
}
WEATHERS = {
    "rain": "rain rainy rained raining drizzle shower umbrella puddle | 雨 下雨 细雨 雨水 大雨 雨点 雨伞",
    "storm": "storm thunder lightning gale tempest squall | 暴风雨 雷 闪电 风暴 暴雨 台风",
    "snow": "snow snowy snowed snowing snowfall snowflake blizzard frost | 雪 下雪 雪花 大雪 落雪 积雪",
    "fog": "fog foggy mist misty haze | 雾 浓雾 薄雾 大雾 雾气",
    "wind": "wind windy breeze gust | 风 大风 微风 海风 晚风 秋风",
    "clear": "clear bright cloudless sunny sunshine | 晴 晴朗 晴天 阳光",
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
    "boat": "boat ship sail sailboat rowboat vessel ferry dinghy mast | 船 小船 帆 渔船 渡船 木船 帆船",
    "house": "house cottage hut home roof chimney farmhouse inn | 房子 小屋 屋顶 木屋 房屋 烟囱 人家 老屋",
    "tree": "tree oak willow pine branch branches elm plane-tree | 树 大树 老树 柳树 树枝 槐树 松树 银杏 梧桐",
    "blossom": "blossom cherry plum petals spring | 樱花 桃花 梅花 花瓣 春天",
    "leaf": "leaf leaves autumn | 落叶 叶子 秋天 树叶 黄叶",
    "flower": "flower rose tulip daisy garden lavender sunflower | 花 花朵 玫瑰 野花 菊花",
    "bird": "bird gull seagull crow swallow heron geese goose sparrow owl | 鸟 海鸥 乌鸦 燕子 大雁 白鹭 麻雀 鸽子",
    "moon": "moon moonlight | 月亮 月光 明月",
    "sun": "sun sunrise sunset | 太阳 夕阳 日出 日落",
    "star": "star stars starlight constellation | 星 星星 星光 繁星 银河",
    "fire": "fire campfire bonfire flame flames hearth | 火 篝火 火焰 火光 炉火",
    "lamp": "lamp lantern streetlamp lamplight light | 灯 灯笼 油灯 路灯 灯光 提灯 台灯",
    "candle": "candle candlelight | 蜡烛 烛光",
    "window": "window windowpane sill | 窗 窗户 窗外 窗口 窗台",
    "door": "door doorway gate threshold | 门 大门 门口 木门",
    "book": "book diary notebook page pages logbook ledger | 书 日记 本子 笔记 书页 账本",
    "letter": "letter envelope note postcard message paper | 信 信封 信纸 纸条 明信片 来信",
    "clock": "clock watch pendulum hour clockmaker | 钟 时钟 手表 怀表 钟表 挂钟",
    "key": "key keys lock | 钥匙 锁",
    "cup": "cup tea mug teapot coffee bowl soup | 茶 杯 茶杯 茶壶 碗 汤 咖啡",
    "umbrella": "umbrella parasol | 伞 雨伞 油纸伞",
    "kite": "kite | 风筝",
    "bell": "bell chime | 铃 钟声 铃铛 铜铃",
    "bridge": "bridge | 桥 石桥 小桥 木桥",
    "train": "train locomotive carriage | 火车 列车 车厢",
    "fence": "fence railing | 篱笆 栅栏",
    "path": "path road trail footpath | 小路 山路 路 小径",
    "cat": "cat kitten | 猫 小猫",
    "dog": "dog puppy hound | 狗 小狗",
    "horse": "horse pony mare | 马 白马",
    "fish": "fish net nets | 鱼 渔网",
    "map": "map chart compass | 地图 海图 指南针",
    "bicycle": "bicycle bike | 自行车 单车",
    "paperboat": "paper-boat | 纸船",
}
CHILDREN = frozenset({"boy", "girl", "child"})
FIGURES = {
    "boy": "boy son grandson lad | 男孩 儿子 孙子 少年",
    "girl": "girl daughter granddaughter lass | 女孩 女儿 孙女 小姑娘",
    "child": "child kid children baby | 孩子 小孩 娃",
    "granny": "grandmother grandma granny old-woman | 外婆 奶奶 老太太 老奶奶",
    "woman": "woman mother wife lady aunt sister queen she her | 女人 母亲 妈妈 妻子 姑娘 她 姐姐 妹妹 阿姨 女子",
    "man": "man father husband gentleman uncle brother king he him captain sailor soldier fisherman | 男人 父亲 爸爸 丈夫 他 哥哥 弟弟 叔叔 船长 水手 男子 渔夫",
    "old": "grandfather grandpa elder old-man | 老人 爷爷 外公 老头 老者 老师傅",
    "crowd": "crowd people everyone villagers neighbours neighbors townsfolk passengers | 人群 人们 他们 村民 众人 乡亲 行人",
}

# Words that hold another's character without its meaning.
_NOT_CHINESE = [
    "相信",
    "自信",
    "信心",
    "信任",
    "星期",
    "马上",
    "一路",
    "专门",
    "部门",
    "热门",
    "风景",
    "风格",
    "书记",
    "花费",
    "花了",
    "分钟",
    "点钟",
    "几点",
    "走路",
    "夜班",
    "家伙",
    "一家",
    "国家",
    "大家",
    "爱好",
    "江湖",
    "年轻",
    "心里",
    "门票",
    "出门",
    "入门",
    "山东",
    "火气",
    "雷同",
    "爱说",
    "可爱",
    "急忙",
    "断断续续",
    "不断",
    "果然",
]

_TABLES = {"places": PLACES, "times": TIMES, "weathers": WEATHERS, "moods": MOODS, "motifs": MOTIFS, "figures": FIGURES}
_OVER_EN = re.compile(
    r"\b(rain|snow|fog|mist|storm|wind)\s+(?:had\s+|has\s+)?(?:lifted|stopped|cleared|ended|passed|died)"
)
_OVER_ZH = re.compile(r"(雨|雪|雾|风)[^，。]{0,4}(?:停|散)")
_WORD = re.compile(r"[a-z]+(?:['’-][a-z]+)*")


def tags_of(sentence: str, language: str) -> Tags:
    """Everything the lexicon finds in one sentence."""
    hits = _chinese(sentence) if language == "zh" else _english(sentence)
    found: dict[str, dict[str, None]] = {table: {} for table in _TABLES}
    for hit in hits:
        for table, tag in hit:
            found[table].setdefault(tag)
    if over := (_OVER_ZH if language == "zh" else _OVER_EN).search(sentence):  # the weather that goes is no more
        gone = {tag for hit in (_chinese(over[1]) if language == "zh" else _english(over[1])) for _, tag in hit}
        found["weathers"] = {"clear": None} | {tag: None for tag in found["weathers"] if tag not in gone}
    here = without_speech(re.sub(r"\bfrom (the |a |an )?\w+", " ", sentence) if language == "en" else sentence)
    if here != sentence:
        told = [tag for hit in (_chinese(here) if language == "zh" else _english(here)) for _, tag in hit]
        for table in ("places", "times"):
            found[table] = {tag: None for tag in found[table] if tag in told}
    return Tags(**{table: tuple(tags) for table, tags in found.items()})


def without_speech(sentence: str) -> str:
    """The sentence without what is said in quotation marks: a place that someone talks of is not where they are."""
    return re.sub(r"[“「『\"][^”」』\"]*[”」』\"]?", " ", sentence)


def _english(sentence: str) -> list[tuple[tuple[str, str], ...]]:
    index = _index("en")
    hits: list[tuple[tuple[str, str], ...]] = []
    words = _WORD.findall(sentence.lower().replace("’", "'"))
    at = 0
    while at < len(words):
        word, after = words[at], words[at + 1] if at + 1 < len(words) else ""
        for form in (f"{word}-{after}", f"{word}-{_singular(after)}", word.removesuffix("'s"), _singular(word)):
            if form in index:
                hits.append(index[form])
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


def _chinese(sentence: str) -> list[tuple[tuple[str, str], ...]]:
    index, longest = _index("zh"), _longest()
    hits: list[tuple[tuple[str, str], ...]] = []
    at = 0
    while at < len(sentence):
        for length in range(min(longest, len(sentence) - at), 0, -1):
            if (entry := index.get(sentence[at : at + length])) is not None:
                hits.append(entry)
                at += length
                break
        else:
            at += 1
    return hits


@lru_cache(maxsize=2)
def _index(language: str) -> Mapping[str, tuple[tuple[str, str], ...]]:
    index: dict[str, list[tuple[str, str]]] = {}
    for table, entries in _TABLES.items():
        for tag, words in entries.items():
            english, chinese = words.split("|")
            for word in (chinese if language == "zh" else english).split():
                index.setdefault(word, []).append((table, tag))
    if language == "zh":
        for word in _NOT_CHINESE:
            index.setdefault(word, [])
    return {word: tuple(tags) for word, tags in index.items()}


@lru_cache(maxsize=1)
def _longest() -> int:
    return max(map(len, _index("zh")))
