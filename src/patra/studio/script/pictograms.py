"""Decides which pictograms show the nouns of a sentence that no drawing of ours knows (C§2.3).

Names are those of the Material Design Icons; words of both languages lead to them. What our own painter draws (a boat, a
lamp, a cat) is in the lexicon and not here.
"""

# ruff: noqa: E501, SIM905, W291  tables read better unbroken, as words

import re
from functools import lru_cache

from patra.studio.script.depiction import seen_part
from patra.studio.script.language import READ
from patra.studio.script.lexicon import FIGURES, word_length

PICTOGRAMS = {
    # food and kitchen
    "kettle": "kettle | 水壶 热水壶", "pot-steam": "pot saucepan stew soup broth | 锅 砂锅 汤 粥", "bowl-mix": "bowl mixing-bowl batter dough | 碗 面团 面糊",
    "bread-slice": "bread loaf toast | 面包 吐司", "egg": "egg | 鸡蛋 蛋", "cheese": "cheese | 奶酪", "cupcake": "cake cupcake pastry pie | 蛋糕 糕点", "cookie": "cookie biscuit | 饼干",
    "rice": "rice | 米饭 大米", "noodles": "noodle noodles pasta spaghetti dumpling | 面条 饺子", "carrot": "carrot vegetable vegetables | 胡萝卜 蔬菜", "corn": "corn maize | 玉米", "chili-mild": "pepper chili | 辣椒",
    "fruit-citrus": "lemon orange lime citrus | 柠檬 橙子 橘子", "food-apple": "apple apples fruit | 苹果 水果", "fruit-grapes": "grape grapes vine | 葡萄", "fruit-cherries": "cherry cherries berries | 樱桃", "fruit-pineapple": "pineapple | 菠萝", "fruit-watermelon": "watermelon melon | 西瓜",
    "shaker": "salt | 盐", "cube-outline": "sugar-cube | 方糖", "sack": "flour sugar sack | 面粉 白糖 糖 冰糖 红糖 砂糖 袋子", "barley": "wheat grain barley oats cereal | 小麦 麦子 谷物 燕麦", "bottle-wine": "wine vinegar oil | 酒 醋 油", "beer": "beer | 啤酒", "bottle-soda-classic": "bottle milk | 瓶子 牛奶",
    "silverware-fork-knife": "fork dinner lunch supper plate | 叉子 晚饭 午饭 盘子", "knife": "knife blade | 刀", "silverware-spoon": "spoon teaspoon tablespoon ladle | 勺子 汤匙", "stove": "stove oven cooker | 炉子 烤箱 灶", "fridge": "fridge refrigerator | 冰箱", "mushroom": "mushroom | 蘑菇", "peanut": "nut nuts peanut almond | 花生 坚果", "seed": "seed seeds bean beans pea | 种子 豆子", 
    "ice-cream": "ice-cream | 冰淇淋", "pizza": "pizza | 披萨", "candy": "sweet candy toffee | 糖果", "hamburger": "burger | 汉堡", "ice-pop": "lolly | 冰棍",
    # nature
    "sprout": "sprout seedling shoot plant plants | 幼苗 嫩芽 芽 植物", "leaf": "leaf foliage chlorophyll | 叶绿素", "pine-tree": "pine fir conifer | 松树", "palm-tree": "palm | 棕榈", "cactus": "cactus | 仙人掌", "grass": "grass hay | 草", "clover": "clover | 三叶草",
    "bee": "bee bees honeybee wasp | 蜜蜂", "beehive-outline": "hive beehive honey | 蜂巢 蜂箱 蜂蜜", "butterfly": "butterfly moth | 蝴蝶", "ladybug": "beetle ladybird insect insects bug | 甲虫 昆虫", "spider": "spider web | 蜘蛛", "snail": "snail slug | 蜗牛", "snake": "snake | 蛇", "turtle": "turtle tortoise | 乌龟 海龟", "tortoise": "tortoise | 陆龟",
    "cow": "cow cows cattle ox bull | 牛 奶牛", "pig": "pig pigs | 猪", "sheep": "sheep lamb goat wool | 羊 绵羊 羊毛", "duck": "duck ducks | 鸭子", "rabbit": "rabbit hare | 兔子", "elephant": "elephant | 大象", "kangaroo": "kangaroo | 袋鼠", "panda": "panda bear | 熊猫 熊", "penguin": "penguin | 企鹅", "owl": "owl | 猫头鹰", "shark": "shark whale | 鲨鱼 鲸", "jellyfish": "jellyfish octopus | 水母 章鱼", "paw": "wolf fox lion tiger animal animals | 狼 狐狸 狮子 老虎 动物", "rodent": "mouse mice rat | 老鼠", "bat": "bat bats | 蝙蝠", "donkey": "donkey mule camel | 驴 骆驼", "feather": "feather quill | 羽毛", "bone": "bone bones skeleton fossil | 骨头 化石", "egg-easter": "nest | 鸟巢",
    "weather-sunny": "sunlight sunshine | 阳光", "white-balance-sunny": "sun solar | 太阳 太阳能", "weather-night": "moon | 月亮", "earth": "earth globe world planet | 地球 世界 行星", "cloud": "cloud clouds steam vapour vapor | 云 云朵 蒸汽 水汽", "water": "water droplet rainwater moisture | 水 水滴 雨水", "waves": "wave waves tide current flood | 波浪 海浪 潮汐 洪水", "snowflake": "ice snowflake frost | 冰 雪花", "fire": "fire heat flame burning | 火焰 热量", "lightning-bolt": "electricity lightning energy power spark | 电 电力 闪电 能量", "weather-windy": "wind breeze air | 风力 空气", "volcano": "volcano lava eruption | 火山 岩浆", "image-filter-hdr": "mountains peaks glacier | 冰川", "weather-tornado": "tornado hurricane cyclone | 龙卷风 台风", "molecule-co2": "carbon dioxide carbon-dioxide | 二氧化碳 碳", "chart-bubble": "molecule molecules particles ions ion electrons electron | 分子 粒子 离子 电子", "atom": "atom atoms nucleus | 原子", "gas-cylinder": "oxygen hydrogen | 氧气 氢气", "diamond-stone": "diamond gem jewel jewels | 钻石 水晶 宝石", "gold": "gold silver metal copper iron steel | 金子 黄金 银 金属 铜 铁 钢", "shovel": "spade shovel soil earthworm | 铲子 铁锹 泥土 土壤", "terrain": "rock rocks stone stones boulder landslide | 岩石 石头",
    # body and health
    "brain": "brain mind nerve neurons | 大脑 神经", "heart-pulse": "heart heartbeat pulse blood | 心脏 心跳 血液", "eye": "eye eyes retina | 眼睛 视网膜", "ear-hearing": "ear ears hearing | 耳朵", "tooth": "tooth teeth | 牙齿", "lungs": "lung lungs | 肺", "hand-back-right": "palm fingers | 手指", "foot-print": "footprint footprints | 脚印", "pill": "pill medicine tablet vaccine | 药 药片 疫苗", "needle": "needle injection syringe | 针 针头", "bandage": "wound bandage | 伤口 绷带", "thermometer": "thermometer temperature fever degrees | 温度计 温度 发烧", "bacteria": "bacteria germ germs microbe yeast mould | 细菌 微生物 酵母", "virus": "virus viruses | 病毒", "dna": "dna gene genes cell cells | 基因 细胞", "stethoscope": "stethoscope | 听诊器", "hospital-building": "hospital clinic | 医院", "ambulance": "ambulance | 救护车", "wheelchair-accessibility": "wheelchair | 轮椅",
    # tools and machines
    "battery": "battery batteries accumulator | 电池", "battery-plus-variant": "electrode electrodes anode cathode terminal | 电极 正极 负极", "power-plug": "plug socket charger | 插头 插座 充电器", "lightbulb-on": "bulb light-bulb lightbulb | 灯泡", "magnet": "magnet magnets magnetic magnetism | 磁铁 磁", "engine": "engine motor machine machines | 发动机 引擎 机器 水泵", "cog": "gear gears cog wheel wheels | 齿轮 轮子", "hammer": "hammer anvil | 锤子", "saw-blade": "saw | 锯子", "screwdriver": "screw screws screwdriver | 螺丝 螺丝刀", "wrench": "wrench spanner bolt bolts | 扳手 螺栓", "nail": "nail nails | 钉子", "ladder": "ladder | 梯子", "jump-rope": "rope string thread | 绳子 线", "scissors-cutting": "scissors shears | 剪刀", "ruler": "ruler measure | 尺子", "bucket": "bucket pail | 水桶", "broom": "broom brush | 扫帚 刷子", "axe": "axe hatchet | 斧头", "pickaxe": "pickaxe mine | 镐 矿井", "basket": "basket baskets | 篮子", "barrel": "barrel oil-barrel | 桶 木桶 石油", "package-variant": "box parcel package crate chest carton | 盒子 包裹 箱子", "bag-personal": "bag backpack suitcase | 包 背包 行李箱", "flask": "laboratory chemical chemicals acid solution | 烧瓶 化学品 酸 溶液", "test-tube": "test-tube sample | 试管 样品", "microscope": "microscope | 显微镜", "telescope": "telescope observatory | 望远镜 天文台", "camera": "camera photograph photo photos | 相机 照片", "radio": "radio | 收音机", "television": "television screen | 电视 屏幕", "laptop": "computer laptop software | 电脑 软件", "cellphone": "phone telephone mobile smartphone | 手机 电话", "robot": "robot robots | 机器人", "printer": "printer printing-press | 打印机 印刷机", "satellite-variant": "satellite | 卫星", "rocket-launch": "rocket spacecraft spaceship | 火箭 飞船", "solar-panel": "solar-panel solar-panels panel panels | 太阳能板", "wind-turbine": "wind-turbine turbine turbines windmill windmills | 风车 涡轮 风力发电机", "transmission-tower": "grid power-line cable cables wire wires | 电网 电缆 电线", "radioactive": "uranium reactor radiation radium radioactivity | 铀 反应堆 辐射 镭", "washing-machine": "washing-machine | 洗衣机", "speedometer": "speed speedometer | 速度", "scale-balance": "scales balance justice court | 天平", "weight": "weight kilogram | 砝码", "hook": "hook | 钩子", "tent": "tent camp | 帐篷 营地", "lock": "lock padlock | 锁", "compass": "compass | 指南针 罗盘", "timer-sand": "hourglass sand | 沙漏", "alarm": "alarm alarm-clock | 闹钟", "watering-can": "watering-can | 水壶浇花", "fan": "fan | 风扇", "air-filter": "filter | 过滤器", "spray": "spray | 喷雾",
    # travel
    "airplane": "airplane aeroplane plane aircraft | 飞机 航班", "car": "car cars | 汽车 轿车", "bus": "bus buses | 公共汽车 公交车", "truck": "lorry truck trucks | 卡车", "tractor": "tractor plough | 拖拉机", "motorbike": "motorbike motorcycle | 摩托车", "tram": "tram | 电车", "ferry": "steamship steamer liner | 轮船 渡轮", "anchor": "anchor | 锚", "airballoon": "balloon | 热气球 气球", "helicopter": "helicopter | 直升机", "traffic-light": "traffic traffic-light | 红绿灯 交通", "gas-station": "petrol fuel diesel | 汽油 燃料", "ticket": "ticket tickets | 票 车票", "submarine": "submarine | 潜艇", "sail-boat": "canoe raft | 独木舟 木筏",
    # buildings and society
    "factory": "factory | 工厂", "bank": "parliament government palace | 银行 政府 宫殿", "castle": "castle fortress fort tower | 城堡 塔楼", "school": "university graduation degree | 大学 学位", "home-city": "town-hall council | 市政厅", "crown": "crown king queen emperor empress prince princess | 王冠 国王 女王 皇帝", "sword-cross": "sword swords war battle army soldiers | 剑 战争 军队", "shield": "shield armour | 盾", "flag": "flag banner | 旗 旗帜", "vote": "vote votes election ballot | 选举 投票", "gavel": "law judge verdict | 法律 判决", "newspaper": "newspaper news article | 报纸 新闻", "script-text": "scroll treaty manuscript contract | 卷轴 条约 手稿 合同", "pencil": "pencil pen ink | 铅笔 钢笔 墨水", "calendar": "calendar | 日历", "cash": "money dollars coins wage wages | 钱 工资", "hand-coin": "coin tax taxes price | 硬币 税 价格", "cart": "trade goods trolley | 贸易 货物", "trophy": "prize award medal trophy | 奖 奖章", "account-group": "workers team committee audience | 团队 观众", "handshake": "agreement peace | 协议 和平", "briefcase": "briefcase business company | 公司", "store": "stall stalls | 摊位", "bell-ring": "siren | 警报器", "fire-truck": "firefighters fire-engine | 消防员 消防车", "police-badge": "police | 警察", "church": "cathedral | 大教堂", "water-well": "well | 水井", "pipe": "pipe pipes tap drain | 水管 水龙头", "toilet": "toilet | 厕所", "shower": "shower bath | 淋浴", "sofa": "sofa armchair couch | 沙发", "table-furniture": "table | 桌子", "chair-rolling": "chair stool | 椅子 凳子", "bed": "blanket pillow | 毯子 枕头", "mirror": "mirror | 镜子", "palette": "paint painting colour colors colours | 颜料 绘画", "music": "music tune song melody | 音乐 旋律", "violin": "violin fiddle | 小提琴", "piano": "piano | 钢琴", "guitar-acoustic": "guitar | 吉他", "soccer": "football goal | 足球 球", "chess-knight": "chess | 象棋", "cards": "cards | 纸牌", "puzzle": "puzzle | 拼图", "gift": "gift present | 礼物", "shoe-print": "shoe shoes boots | 鞋 靴子", "hat-fedora": "hat | 帽子", "tshirt-crew": "shirt coat clothes dress jacket | 衬衫 衣服", "glasses": "glasses spectacles lens lenses | 眼镜 镜片", "ring": "ring | 戒指", "toothbrush": "toothbrush | 牙刷", "flower-tulip": "petal pollen nectar | 花粉 花蜜", "hexagon-multiple": "honeycomb | 蜂房", "stairs": "stairs steps | 楼梯 台阶", "desk-lamp": "desk-lamp | 台灯", "trash-can": "waste rubbish garbage | 垃圾", "recycle": "recycling recycle | 回收", "music-note": "note notes | 音符", "teddy-bear": "doll toy toys | 玩具 娃娃",
    # more of the font, by the names that its drawings have there
    "abacus": "abacus | 算盘", "airport": "airport runway | 机场 跑道", "antenna": "antenna aerial | 天线", "anvil": "anvil | 铁砧", "arch": "arch | 拱门", "baguette": "baguette | 法棍", "balcony": "balcony | 阳台", "barn": "barn stables | 谷仓 马厩 牛棚", "bathtub": "bathtub | 浴缸", "bench": "bench benches | 长椅 板凳 长凳", "binoculars": "binoculars | 双筒望远镜", "bomb": "bomb | 炸弹", "bookmark": "bookmark | 书签", "boomerang": "boomerang | 回旋镖",
    "bugle": "bugle | 军号 号角", "bulldozer": "bulldozer | 推土机", "bullhorn": "megaphone loudspeaker | 喇叭 扩音器", "calculator": "calculator | 计算器", "campfire": "campfire | 营火", "candelabra": "candelabra candlestick | 烛台", "caravan": "caravan | 房车", "cassette": "cassette tape | 磁带", "certificate": "certificate diploma licence | 证书 执照", "chandelier": "chandelier | 吊灯", "cigar": "cigar cigarette | 香烟 雪茄", "coffin": "coffin | 棺材", "cradle": "cradle | 摇篮", "crane": "building-crane | 起重机 吊车", "cupboard": "cupboard cabinet | 橱柜 柜子", "curtains": "curtain curtains | 窗帘 幕布", "dolphin": "dolphin dolphins | 海豚", "drone": "drone drones | 无人机", "dumbbell": "dumbbell | 哑铃", "elevator": "elevator | 电梯", "excavator": "excavator digger | 挖掘机", "film": "film movie | 电影 胶片",
    "fingerprint": "fingerprint fingerprints | 指纹", "firework": "firework fireworks firecracker | 烟花 鞭炮 爆竹", "fireplace": "fireplace | 壁炉", "flashlight": "torch flashlight | 手电筒", "fishbowl": "aquarium fishbowl | 鱼缸", "fountain": "fountain | 喷泉", "ghost": "ghost | 鬼魂", "greenhouse": "greenhouse | 温室", "grill": "grill barbecue | 烤架 烧烤", "handcuffs": "handcuffs | 手铐", "headphones": "headphones earphones | 耳机", "horseshoe": "horseshoe | 马蹄铁", "hops": "hops | 啤酒花", "keyboard": "keyboard | 键盘", "koala": "koala | 考拉", "lasso": "lasso | 套索", "leek": "leek onion onions spring-onion scallion | 葱 大葱 洋葱", "lifebuoy": "lifebuoy lifebelt | 救生圈", "lipstick": "lipstick | 口红", "magnify": "magnifying-glass | 放大镜", "mailbox": "mailbox postbox letterbox | 信箱 邮筒 邮箱", "medal": "medal medals | 金牌 银牌 铜牌 奖牌", "metronome": "metronome | 节拍器", "microphone": "microphone | 话筒 麦克风", "microwave": "microwave | 微波炉", "mosque": "mosque | 清真寺", "muffin": "muffin | 松饼", "necklace": "necklace beads | 项链 珠子",
    "oar": "oar oars paddle paddles | 船桨 桨", "ocarina": "ocarina flute | 笛子 陶笛", "parachute": "parachute | 降落伞", "passport": "passport | 护照", "pillar": "pillar pillars | 柱子 石柱", "pin": "pin pins | 别针", "pistol": "pistol gun revolver | 手枪 枪", "pitchfork": "pitchfork | 草叉", "popcorn": "popcorn | 爆米花", "pretzel": "pretzel | 椒盐卷饼", "projector": "projector | 放映机 投影仪", "pumpkin": "pumpkin pumpkins | 南瓜", "purse": "purse handbag | 手提包", "pyramid": "pyramid pyramids | 金字塔", "radar": "radar | 雷达", "rake": "rake | 耙子", "receipt": "receipt | 收据 账单", "ribbon": "ribbon ribbons | 丝带 缎带", "rickshaw": "rickshaw | 人力车 黄包车", "rug": "rug carpet rugs carpets | 地毯", "safe": "vault | 保险柜", "sausage": "sausage sausages | 香肠", "saxophone": "saxophone | 萨克斯", "scooter": "scooter | 滑板车", "seesaw": "seesaw | 跷跷板", "sickle": "sickle scythe | 镰刀", "silo": "silo | 粮仓", "skateboard": "skateboard | 滑板", "ski": "ski skis | 滑雪板", "skull": "skull | 头骨", "snowman": "snowman | 雪人", "spear": "spear spears lance | 长矛", "stadium": "stadium arena | 体育场 体育馆", "stomach": "stomach | 胃", "sunglasses": "sunglasses | 太阳镜", "tank": "cannon | 大炮", "taxi": "taxi cab | 出租车", "tennis": "tennis racket | 网球 球拍", "toolbox": "toolbox tools tool | 工具箱 工具", "trumpet": "trumpet trumpets horn | 小号 唢呐", "tunnel": "tunnel tunnels | 隧道 地道", "turkey": "turkey | 火鸡", "typewriter": "typewriter | 打字机", "umbrella-beach": "beach-umbrella | 遮阳伞", "unicorn": "unicorn | 独角兽", "vacuum": "vacuum-cleaner | 吸尘器", "wallet": "wallet | 钱包", "wardrobe": "wardrobe | 衣柜", "warehouse": "warehouse | 仓库", "waterfall": "waterfall | 瀑布", "whistle": "whistle | 哨子 汽笛", "wheel-barrow": "wheelbarrow | 独轮车", "weather-cloudy": "cloudy | 乌云", "rowing": "kayak | 皮划艇", "hanger": "hanger | 衣架", "tie": "necktie | 领带", "scale": "weighing-scales | 秤", "yurt": "yurt | 蒙古包 毡房", "music-clef-treble": "orchestra choir concert | 乐队 合唱团 音乐会", "drama-masks": "mask masks puppet puppets | 面具 木偶 皮影 脸谱", "meteor": "meteor comet meteorite | 流星 彗星 陨石", "chart-line": "graph | 曲线图", "ballot": "ballots | 选票", "soccer-field": "playing-field | 球场", "bow-arrow": "arrow arrows longbow | 弓箭 弓", "dolly": "pushcart handcart | 手推车 推车", "grave-stone": "grave graves tomb gravestone | 坟墓 墓碑",
}  # fmt: skip
MOST_SHOWN = 5
_WORD = re.compile(r"[a-z]+(?:-[a-z]+)*")
_VERB_AFTER = frozenset(
    "to i you we they he she it can will must should could would may might who and then not".split()
)


def pictograms_of(sentence: str, language: str) -> tuple[str, ...]:
    """The pictograms of a sentence, in the order of mention."""
    return tuple(pictogram_words(sentence, language))


def pictogram_words(sentence: str, language: str) -> dict[str, str]:
    """The pictograms of a sentence, in the order of mention, each with the word that it stands for."""
    if language not in READ:
        return {}
    text = seen_part(sentence, language)
    found = _chinese(text) if language == "zh" else _english(text)
    return dict(list(found.items())[:MOST_SHOWN])


def is_alone(text: str, at: int) -> bool:
    """Whether a single character is a word of its own: 油 after 倒, but neither that of 酱油 nor the 水 of 水分子."""
    if text[at] not in _ALONE:
        return False
    before, after = text[at - 1 : at] if at else "", text[at + 1 : at + 2]
    begins = not "\u4e00" <= before <= "\u9fff" or before in _BEFORE_ALONE
    return begins and (not "\u4e00" <= after <= "\u9fff" or after in _AFTER_ALONE)


_AFTER_ALONE = frozenset(
    "的了在和与里上中下是有一放倒煮烧开会就也都被把从到变流喝吃来去不没很太又还给用让后前边很滚热凉冷干湿香"
)
_BEFORE_ALONE = frozenset(
    "一二两三四五六七八九十几半的了着把将和与加放倒喝吃买卖有用是在从到进上下里煮烧切点提拿背打带给没个只杯碗勺锅瓶壶袋张条块滴片根头群匹这那些冷热清凉温开小大新旧老白黑红浇装取送付收花种挑抓赶喂骑采看望见闻擦洗刷搬背"
)
ANIMALS = frozenset(
    "cow pig sheep duck rabbit elephant kangaroo panda penguin owl shark jellyfish paw rodent bat donkey turtle tortoise dolphin koala bee butterfly snail snake turkey".split()
)
_PETS = re.compile(
    r"\b(?:cat|dog|horse|bird|parrot|hen|goose|fox|monkey|pony|mare|kitten|puppy|whale|crow|raven|robot|dragon|doll)\b|[猫狗马鸟鸡鹅]|鹦鹉|猴|龙"
)


def has_animal(text: str, language: str) -> bool:
    """Whether a sentence names an animal: a pronoun may mean it."""
    return bool(ANIMALS & set(pictogram_words(text, language))) or _PETS.search(text.lower()) is not None


BODY = frozenset({"brain", "heart-pulse", "eye", "ear-hearing", "tooth", "lungs", "hand-back-right"})


def is_bodily(text: str, language: str) -> bool:
    """Whether a chapter is about the body: teeth of a zip and the heart of a town are none."""
    return language in READ and len(BODY & set((_chinese if language == "zh" else _english)(text))) > 1


def is_pictured(word: str, language: str) -> bool:
    return word in _index(language) and (language != "zh" or len(word) > 1 or word in _ALONE)


def _chinese(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    index = _index("zh")
    longest, at = max(map(len, index)), 0
    while at < len(text):
        own = word_length(text, at)
        for length in range(min(longest, len(text) - at), 0, -1):
            if length < own:  # a part of a longer word that is drawn otherwise: 油 of 油灯
                at += own - 1
                break
            word = text[at : at + length]
            if (name := index.get(word)) is not None and (length > 1 or is_alone(text, at)):
                found.setdefault(name, word)
                at += length - 1
                break
        at += 1
    return found


def _english(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    index = _index("en")
    lowered = text.lower()
    words = _WORD.findall(lowered)
    for at, word in enumerate(words):
        pair = f"{word}-{words[at + 1]}" if at + 1 < len(words) else ""
        if word == "mine" and (at == 0 or words[at - 1] not in _MINES):
            continue  # take mine
        after = words[at + 1] if at + 1 < len(words) else ""
        if _single(word) in _VERBS and (after in {"to", "at", "off", "away"} or (at and words[at - 1] in _ROLE_WORDS)):
            continue  # my brother waves to her
        doing = at > 0 and len(words[at - 1]) > 5 and words[at - 1].endswith("ing")  # a sewing machine is no engine
        made_of = (
            word in _MATERIALS and f"{word} {after}" in lowered and after not in _AFTER_MATERIAL | {""}
        )  # an iron pan is no iron
        for form in (pair, _single(pair), *(() if doing or made_of else (word, _single(word)))):
            if form and form in index and not (form in _VERBS and (at == 0 or words[at - 1] in _VERB_AFTER)):
                found.setdefault(index[form], pair.replace("-", " ") if "-" in form and "-" not in word else word)
                break
    return found


_MATERIALS = frozenset(
    "iron gold silver copper steel metal apple lemon orange corn rice egg wine oil water fire ice stone wool bone salt sugar milk bread car bus bee horse fish flower coffee tea".split()
)
_AFTER_MATERIAL = frozenset(
    "and or in on at by with from of for to is was were are that which until over into it the a an as then but so if when while under out".split()
)
_ROLE_WORDS = frozenset(word for row in FIGURES.values() for word in row.split("|")[0].split())
_ALONE = frozenset("锅汤粥蛋盐酒醋油刀草蛇牛猪羊鸭云水冰肺药针磁锚票剑盾旗钱税鼓碗")
_MINES = frozenset("a the coal gold salt copper iron silver old deep in".split())
_VERBS = frozenset(
    "water plant power heat light bank ring nail saw paint spring measure screw hook fan pump bear bat drum degree present note notes table well mine mind wave waves current trade goods sweet panel steps filter spray shoot web vote bolt plate drop balance bath brush camp court box law price store sample kind sun earth world air lock cloud seed energy colour dress coat fuel goal ball peace business company music oil rock rocks sand well pin pins film tape horn lance graph ribbon torch mask puppet tools drain pipe tap filter".split()
)


def _single(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


@lru_cache(maxsize=2)
def _index(language: str) -> dict[str, str]:
    index: dict[str, str] = {}
    for name, row in PICTOGRAMS.items():
        english, chinese = row.split("|")
        for word in (chinese if language == "zh" else english).split():
            index.setdefault(word, name)
    return index
