"""Names the places whose word is lettered on a sign, and which set is drawn for the word (C§2.3)."""

# ruff: noqa: E501, SIM905  tables read better unbroken, as words

import re
from functools import lru_cache
from itertools import islice

ELSEWHERE = (
    "airport stadium cave cavern zoo prison jail mine coalmine quarry circus castle palace fortress gym gymnasium swimming-pool aquarium observatory clinic pharmacy salon "
    "barbershop parliament embassy barracks battlefield trench tunnel subway metro spaceship spacecraft cockpit submarine corridor hallway cemetery graveyard playground rink "
    "arena warehouse mill watermill windmill brewery winery dairy barn stables sawmill shipyard dockyard foundry smithy pottery swamp marsh canyon gorge glacier volcano tundra "
    "iceberg waterfall igloo yurt tent studio gallery post-office university college kindergarten nursery dormitory hotel hostel supermarket mall bathroom canteen basement "
    "police-station fire-station polling-station space-station power-station petrol-station gas-station weather-station radio-station bus-station football-field ballroom "
    "car-park theme-park water-park town-hall village-hall concert-hall church chapel cathedral monastery convent abbey mosque synagogue promenade racetrack racecourse casino morgue crypt sewer landfill dump nest hive anthill burrow outer-space | "
    "机场 教堂 体育场 体育馆 山洞 洞穴 洞里 动物园 植物园 监狱 牢房 矿井 煤矿 矿山 马戏团 城堡 皇宫 宫殿 游泳池 泳池 水族馆 天文台 诊所 药店 药铺 理发店 法院 法庭 战场 军营 隧道 地铁 飞船 "
    "船舱 驾驶舱 电梯 走廊 墓地 操场 溜冰场 冰场 球场 仓库 磨坊 酒厂 工厂 车间 造船厂 船厂 沼泽 峡谷 冰川 火山 瀑布 太空 帐篷 蒙古包 画室 画廊 展厅 银行 邮局 大学 幼儿园 宿舍 酒店 旅馆 "
    "宾馆 超市 商场 浴室 食堂 研究所 养老院 派出所 警察局 消防站 加油站 空间站 气象站 公交站 窑洞 窑厂 梯田 牧场 养蜂场 祠堂 赛场 赛道 地下室 手术室 试验田 考场 后台 观测站"
)
"""Places that no drawing shows: a plain background and the word."""

INEXACT = frozenset(
    (
        "hospital ward office cellar attic cabin hotel-room bakery museum theatre theater courtroom school classroom schoolroom laboratory lab factory forge shed "
        "garage shrine market night-market square cafe café restaurant teashop bookstore bookshop archive apartment rooftop canal paddy greenhouse "
        "vineyard park inn reef jungle rainforest pond reservoir orchard pasture barley hall "
        "医院 病房 办公室 阁楼 博物馆 展览馆 礼堂 剧院 学校 教室 戏台 集市 夜市 市场 广场 公寓 楼顶 茶馆 饭馆 咖啡馆 餐馆 书店 果园 公园 作坊 工坊 铺子 修理铺 店铺 池塘 农场 竹林 戈壁 悬崖 稻田 铁路 大厅 商店 小店"
    ).split()
)
"""Words for a place that is drawn as another one of its kind: a hospital as a room."""


def sign_of(place: str, word: str) -> str:
    """What is lettered on the sign of a place; nothing where the drawing says it."""
    return word if place == "elsewhere" or word in INEXACT else ""


SETS = {
    # rooms
    "ward": "hospital ward clinic morgue | 医院 病房 诊所 手术室 急诊室 养老院 卫生院",
    "school": "school classroom schoolroom kindergarten nursery | 学校 教室 幼儿园 考场 课堂 讲台",
    "office": "office courtroom police-station polling-station fire-station weather-station radio-station post-office | 办公室 派出所 警察局 银行 邮局 法院 法庭 研究所 消防站 气象站 编辑部 会议室",
    "gallery": "museum gallery | 博物馆 展览馆 画廊 展厅 纪念馆 美术馆",
    "church": "church chapel cathedral monastery convent abbey | 教堂",
    "store": "shop bakery pharmacy supermarket mall teashop bookstore bookshop salon barbershop | 商店 小店 超市 商场 药店 药铺 店铺 铺子 面包店 水果店 花店 便利店 杂货店 供销社",
    "cafe": "cafe café restaurant canteen casino | 茶馆 饭馆 咖啡馆 餐馆 食堂 饭店 餐厅 酒馆 面馆",
    "factory": "factory warehouse brewery winery dairy sawmill foundry smithy forge garage pottery | 工厂 车间 仓库 酒厂 窑厂 厂里 厂房",
    "laboratory": "laboratory lab | 实验室",
    "loft": "attic cabin barn stables shed igloo | 阁楼 木屋 谷仓 马厩 牛棚 窑洞",
    "vault": "prison jail cellar basement crypt | 监狱 牢房 地下室 地窖",
    "corridor": "corridor hallway hotel hostel dormitory | 走廊 酒店 旅馆 宾馆 宿舍 电梯 楼道 过道",
    "carriage": "carriage compartment cockpit spaceship spacecraft submarine | 车厢 船舱 驾驶舱 飞船 机舱",
    "waiting": "waiting-room departure-lounge ticket-hall | 候车室 候诊室 候机厅 候机室 售票厅",
    "bathroom": "bathroom | 浴室 卫生间 洗手间",
    "pool": "swimming-pool | 游泳池 泳池",
    "stage": "theatre theater ballroom concert-hall village-hall circus hall | 剧院 礼堂 戏台 马戏团 后台 剧场 舞台 大厅",
    # under the sky
    "airport": "airport runway | 机场 跑道",
    "stadium": "stadium arena football-field racetrack racecourse | 体育场 球场 赛场 赛道 冰场 足球场",
    "cave": "cave cavern mine coalmine tunnel burrow | 山洞 洞穴 洞里 矿井 煤矿 矿山 隧道",
    "castle": "castle palace fortress | 城堡 皇宫 宫殿",
    "graveyard": "cemetery graveyard | 墓地 坟地 公墓 陵园",
    "market": "market night-market | 集市 夜市 市场 菜市场",
    "square": "square | 广场",
    "canal": "canal lock towpath | 运河",
    "waterfall": "waterfall gorge canyon | 瀑布 峡谷",
    "ice": "glacier iceberg tundra | 冰川 冰原",
    "volcano": "volcano | 火山",
    "swamp": "swamp marsh | 沼泽 湿地",
    "camp": "tent yurt campsite camp barracks battlefield trench | 帐篷 蒙古包 军营 营地 毡房 战场",
    "mill": "mill windmill watermill | 磨坊 风车",
    "facade": "university college parliament embassy town-hall observatory courthouse hospital-gate | 大学 市政厅 天文台 政府 大使馆 校门口",
    "works": "shipyard construction-site building-site | 造船厂 船厂 工地",
    "halt": "bus-station bus-stop | 公交站 车站牌",
    "yard": "playground schoolyard | 操场 运动场 校园",
    "parking": "car-park petrol-station gas-station | 停车场 加油站",
    "rows": "vineyard orchard paddy barley | 梯田 果园 稻田 葡萄园 茶园",
    "space": "outer-space space-station | 太空 空间站 宇宙",
    "outdoors": "zoo promenade theme-park water-park quarry | 采石场 动物园 植物园 牧场 试验田 养蜂场",
}
"""The set that is drawn for a word of a place: a room that is furnished, or a place under the sky."""


VEHICLES = frozenset(
    "car bus tram taxi van train plane coach lorry truck minibus 公交车 火车 出租车 飞机 校车 卡车 车".split()
)
"""No places, but who is in one is inside."""

ROOM_SETS = frozenset(islice(SETS, tuple(SETS).index("airport")))
OUTDOORS = {"en": "outside", "zh": "外面"}
"""Where someone is who went out of a room: said by no sign."""


def is_room(sign: str) -> bool:
    """Whether the place on a sign is drawn as a room."""
    return set_of(sign) in ROOM_SETS


@lru_cache(maxsize=1)
def _sets() -> dict[str, str]:
    return {word: name for name, row in SETS.items() for word in row.replace("|", " ").split()}


def set_of(sign: str) -> str:
    """The set of the word on a sign; by its ending where the word is longer than a known one, as in 菜市场."""
    if sign in VEHICLES or sign in OUTDOORS.values():
        return "carriage" if sign in VEHICLES else "outdoors"
    known = _sets()
    return known.get(sign) or next((known[sign[k:]] for k in range(1, len(sign) - 1) if sign[k:] in known), "")


_PLACE_END_ZH = "室馆院厂店局厅铺棚坊场站园所"
_UNKNOWN_ZH = re.compile(
    rf"(?:[在到进]|回到|走出|[，。]|^)([\u4e00-\u9fff]{{1,3}}[{_PLACE_END_ZH}])(?=[里内中外]|门口|后面|前面)"
    rf"|[在到进]([\u4e00-\u9fff]{{1,3}}[{_PLACE_END_ZH}])(?=[的，。旁])"
)
_VEHICLE = re.compile(
    r"\b(?:in|inside|on) (?:the|an?|his|her|their|our|my) (?:[a-z]+ )?(car|bus|tram|taxi|van|train|plane|coach|lorry|truck|minibus)\b(?! (?:deck|park|door|seat|window|roof|stop|station|driver|ride|lane|factory|journey|ticket|platform|crash|company|key|radio|bonnet|horn|engine|shed|yard|depot|lines?|tracks?|service|fare|route|shelter|terminal|conductor|passengers?|wheel|wash|boot|keys)\b)"
    r"|(?:[在坐上]|^|[，。])(?:[一这那]辆|[他她我]的)?(公交车|火车|出租车|飞机|校车|卡车|车)[上里]",
    re.IGNORECASE,
)
_UNKNOWN_EN = re.compile(
    r"\b(?:in|at|inside|into|outside|to) (?:the|an?|his|her|their|our|my) (?:[a-z]+ )?"
    r"([a-z]{3,}(?:yard|house|room|works|drome|ground|hall|court|port))\b"
)


def unknown_place(here: str, language: str) -> str:
    """The word of a place that the lexicon does not have: by its ending, 急诊室里, at the boathouse; or inside of what drives."""
    if (inside := _VEHICLE.search(here)) is not None and (inside[2] is None) == (language != "zh"):
        return inside[1] or inside[2]
    if language == "zh":
        found = _UNKNOWN_ZH.search(here)
        return (found[1] or found[2]) if found else ""
    found = _UNKNOWN_EN.search(here)
    return found[1] if found and found[1] not in {"lighthouse", "ground", "farmhouse"} else ""
