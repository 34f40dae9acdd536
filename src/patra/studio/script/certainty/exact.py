"""Words of one sense whose drawing is that very thing: a bicycle and no nut, a pear is no lemon (C§2.3).

On a card only these are drawn: its words say the rest. A word that is not here has a drawing of something alike (a fox a
paw, a parrot a crow, a canoe sails) or several senses (a well, a ring), which a scene shows with the word below it.
"""

# ruff: noqa: E501, SIM905 tables read better unbroken, as words

import re

from patra.studio.script.cast.segments import tagged_words
from patra.studio.script.certainty.elsewhere import is_whole

_EN = frozenset(
    # food and kitchen
    "bacon croissant birthday-cake kettle saucepan soup stew bread loaf toast egg cheese cupcake cookie biscuit rice noodle noodles spaghetti carrot corn maize chili lemon apple grapes "
    "cherry cherries pineapple watermelon flour wheat beer wine fork knife spoon teaspoon tablespoon oven refrigerator fridge mushroom peanut peanuts ice-cream pizza leek "
    "baguette muffin pretzel popcorn pumpkin sausage teapot coffee tea bottle "
    # nature and animals
    "ladybird hippo hippopotamus mosquito grasshopper locust earthworm shrimp prawn goldfish salmon trout carp herring seedlings sapling seedling sprout pine fir cactus clover bee bees honeybee beehive beehives hive butterfly spider snail snake turtle tortoise cow cows pig pigs sheep duck rabbit hare elephant kangaroo panda penguin owl shark jellyfish mouse mice rat donkey "
    "dolphin feather bone bones sunlight sunshine cloud clouds snowflake lightning volcano tornado frog dove pigeon crow raven koala fish cat kitten dog puppy horse bird gull seagull swallow sparrow heron rainbow icicle snowman "
    "tree oak willow flower roses tulip daisy lavender leaf leaves moon sun star stars earth globe waterfall diamond "
    # body and health
    "brain tooth teeth lungs footprint footprints pill syringe bandage thermometer bacteria virus dna stethoscope hospital ambulance wheelchair fingerprint crutch crutches "
    # tools and machines
    "tunnel tunnels cannon fireplace balcony bathtub greenhouse antenna cassette carpet curtain curtains cupboard parcel solar-panel trophy necktie hanger stopwatch signpost microchip walkie-talkie soap hardhat faucet pestle trowel brick bricks paintbrush photograph radiator blackboard atlas piggy-bank banknote briefcase pram pushchair first-aid-kit watchtower radio-telescope propeller gauge crucifix dice jigsaw basketball volleyball ping-pong football pinwheel ferris-wheel gravestone sock socks mitten mittens jar battery batteries lightbulb magnet magnets engine gear gears hammer nails screwdriver wrench spanner ladder scissors ruler bucket pail broom axe pickaxe basket suitcase backpack test-tube microscope telescope camera radio television laptop computer smartphone "
    "robot printer satellite rocket wind-turbine washing-machine speedometer anchor tent padlock compass hourglass alarm-clock watering-can tyre tyres tire tires toolbox tools shovel spade sickle rake pitchfork wheelbarrow chain "
    "abacus binoculars bomb boomerang bulldozer megaphone loudspeaker calculator campfire chandelier coffin cradle excavator drone dumbbell flashlight firework fireworks handcuffs headphones horseshoe keyboard lasso lifebuoy lipstick magnifying-glass mailbox postbox metronome microphone microwave "
    "oar oars parachute passport pistol revolver projector purse handbag pyramid rickshaw skateboard spear trumpet saxophone typewriter vacuum-cleaner wallet wardrobe whistle yurt bench piano guitar violin fiddle drum drums "
    # travel
    "kayak taxi cable-car minibus luggage airplane aeroplane aircraft car cars bus buses lorry truck tractor motorbike motorcycle tram ferry steamer steamship helicopter submarine boat sailboat ship train locomotive bicycle bike sledge sled traffic-light ticket tickets "
    # buildings and society
    "cathedral warehouse barn castle fortress crown sword swords shield flag banner newspaper scroll pencil calendar money dollars coin handshake sofa couch table chair mirror chess gift glasses spectacles sunglasses toothbrush teddy-bear stairs staircase "
    "lighthouse house cottage hut bridge window door book diary notebook letter envelope postcard clock pocket-watch wristwatch key keys cup mug umbrella kite candle lamp map fence fire bonfire bell paper-boat tractor factory church mosque smoke bucket necklace".split()
)
_ZH = frozenset(
    "隧道 大炮 壁炉 阳台 浴缸 温室 天线 磁带 地毯 窗帘 包裹 太阳能板 领带 衣架 秒表 路牌 路标 芯片 对讲机 肥皂 安全帽 水龙头 石臼 砖头 画笔 照片 暖气片 黑板 存钱罐 钞票 公文包 婴儿车 急救箱 药箱 瞭望塔 射电望远镜 螺旋桨 十字架 骰子 篮球 排球 乒乓球 足球 纸风车 摩天轮 滑梯 墓碑 袜子 风扇 蝙蝠 河马 蚊子 蝗虫 蚯蚓 虾 黄牛 水牛 金鱼 树苗 生日蛋糕 皮划艇 出租车 缆车 中巴 大教堂 仓库 邮票 竹篮 充电桩 水壶 砂锅 汤 粥 面包 吐司 鸡蛋 奶酪 饼干 米饭 大米 面条 胡萝卜 玉米 辣椒 柠檬 苹果 葡萄 樱桃 菠萝 西瓜 盐 面粉 小麦 麦子 啤酒 瓶子 叉子 刀 勺子 汤匙 烤箱 冰箱 蘑菇 花生 冰淇淋 披萨 葱 大葱 南瓜 香肠 爆米花 葫芦 锅 碗 酒 "
    "幼苗 嫩芽 芽 松树 仙人掌 三叶草 蜜蜂 蜂巢 蜂箱 蝴蝶 蜘蛛 蜗牛 蛇 乌龟 海龟 牛 奶牛 猪 羊 绵羊 鸭子 兔子 大象 袋鼠 熊猫 企鹅 猫头鹰 鲨鱼 水母 老鼠 驴 羽毛 骨头 阳光 太阳 月亮 月球 地球 云朵 雪花 闪电 火山 龙卷风 青蛙 信鸽 鸽子 乌鸦 喜鹊 "
    "大脑 心脏 眼睛 耳朵 牙齿 肺 脚印 药片 绷带 温度计 细菌 病毒 听诊器 医院 救护车 轮椅 电池 灯泡 磁铁 发动机 齿轮 锤子 螺丝刀 扳手 钉子 梯子 剪刀 尺子 水桶 扫帚 斧头 篮子 油桶 背包 行李箱 烧瓶 试管 显微镜 望远镜 相机 照相机 收音机 电视 电脑 手机 机器人 打印机 卫星 火箭 "
    " 洗衣机 天平 砝码 帐篷 指南针 罗盘 沙漏 闹钟 轮胎 车胎 外胎 工具箱 铲子 铁锹 镰刀 耙子 独轮车 铁链 链条 算盘 铁砧 双筒望远镜 炸弹 推土机 计算器 篝火 吊灯 棺材 摇篮 挖掘机 无人机 哑铃 手电筒 烟花 手铐 耳机 马蹄铁 键盘 救生圈 口红 放大镜 信箱 邮筒 节拍器 话筒 麦克风 微波炉 "
    "船桨 桨 降落伞 护照 手枪 放映机 金字塔 滑板 长矛 小号 打字机 吸尘器 钱包 衣柜 哨子 蒙古包 长椅 板凳 钢琴 吉他 小提琴 鼓 大鼓 飞机 汽车 公共汽车 公交车 卡车 拖拉机 摩托车 电车 轮船 渡轮 直升机 潜艇 独木舟 火车 列车 自行车 单车 热气球 雪橇 红绿灯 车票 船 小船 渔船 木船 帆船 "
    "城堡 王冠 剑 盾 旗帜 报纸 卷轴 铅笔 日历 硬币 沙发 桌子 镜子 象棋 礼物 眼镜 戒指 牙刷 楼梯 台阶 灯塔 房子 小屋 木屋 桥 石桥 小桥 木桥 铁桥 大桥 窗户 书 日记 笔记 信封 明信片 时钟 手表 怀表 钟表 挂钟 钥匙 茶杯 茶壶 伞 雨伞 油纸伞 风筝 蜡烛 台灯 地图 篱笆 火焰 铃铛 铜铃 大钟 纸船 "
    "树 大树 老树 柳树 槐树 玫瑰 野花 菊花 落叶 树叶 星星 猫 小猫 狗 小狗 鱼 燕子 麻雀 海鸥 白鹭 面具 工厂 教堂 清真寺 彩虹 雪人 项链 玩具 戏台 水井 井".split()
)
_FIGURE = re.compile(
    r"\b(?:heart|fire|star|key|bridge|window|door|seed|sea|flood|bone|bones|tooth|teeth|leaf|moon|sun) of (?:the )?(?:war|hope|town|matter|story|city|peace|team|show|success)\b"
)
"""Of what is no thing: the heart of the town."""


_HEADS = "oil|oils|shop|shops|maker|makers|seller|sellers|handle|handles|cover|stand|factory|box|holder|seed|seeds|juice|frame|stop|stops|station|owner|dealer|driver|drivers|plan|price|prices|thief|trade|tax|tower|field|fields|season|industry"
"""What another noun only describes: lamp oil is no lamp."""


def is_exact(word: str, sentence: str, language: str) -> bool:
    """Whether what is drawn for a word is certainly what it names."""
    if language == "zh":
        return word in _ZH and is_whole(sentence, word, tagged_words(sentence))
    lowered = word.lower().replace(" ", "-")
    single = lowered.removesuffix("s")
    known = any(
        form in _EN for form in (lowered, single, lowered.removesuffix("es"), f"{lowered.removesuffix('ies')}y")
    )
    described = re.search(rf"\b{re.escape(word.lower())} (?:{_HEADS})\b", sentence.lower())
    return known and not described and not _FIGURE.search(sentence.lower())
