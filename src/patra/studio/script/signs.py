"""Names the places whose drawing is only near, or that no drawing shows: their word is lettered on a sign (C§2.3)."""

# ruff: noqa: E501, SIM905  tables read better unbroken, as words

import re

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


_PLACE_END_ZH = "室馆院厂店局厅铺棚坊场站园所"
_UNKNOWN_ZH = re.compile(
    rf"(?:[在到进]|回到|走出|[，。]|^)([\u4e00-\u9fff]{{1,3}}[{_PLACE_END_ZH}])(?=[里内中外]|门口|后面|前面)"
    rf"|[在到进]([\u4e00-\u9fff]{{1,3}}[{_PLACE_END_ZH}])(?=[的，。旁])"
)
_UNKNOWN_EN = re.compile(
    r"\b(?:in|at|inside|into|outside|to) (?:the|an?|his|her|their|our|my) (?:[a-z]+ )?"
    r"([a-z]{3,}(?:yard|house|room|works|drome|ground|hall|court|port))\b"
)


def unknown_place(here: str, language: str) -> str:
    """The word of a place that the lexicon does not have, by its ending: 急诊室里, at the boathouse."""
    if language == "zh":
        found = _UNKNOWN_ZH.search(here)
        return (found[1] or found[2]) if found else ""
    found = _UNKNOWN_EN.search(here)
    return found[1] if found and found[1] not in {"lighthouse", "ground", "farmhouse"} else ""
