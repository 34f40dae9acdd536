"""Decides which words mean something else here than what is drawn for them: a word of two senses, a part of another word (C§2.3)."""

# ruff: noqa: E501, SIM905  tables read better unbroken, as words

import re

NOT_CHINESE = (
    "马灯 火花 雪花膏 关火 熄火 灭火 驴车 马夫 "
    "纹路 思路 出路 退路 门路 销路 套路 船工 船员 船票 花匠 书商 鱼贩 茶农 茶商 起床 河道 山楂 "
    "厨房纸 花盆 花钱 火锅 花瓶 书签 门铃 灯泡 鱼缸 鱼竿 茶叶蛋 马达 星座 钟表匠 路费 山歌 风琴 手风琴 树脂 船票 车票 街坊 床位 "
    "相信 自信 信心 信任 星期 马上 一路 专门 部门 热门 风景 风格 书记 花费 花了 分钟 点钟 几点 走路 夜班 家伙 一家 国家 大家 "
    "爱好 江湖 年轻 心里 门票 出门 入门 山东 火气 雷同 爱说 可爱 急忙 断断续续 不断 果然 一路上 火车站 电灯泡 风力 风扇 星球 "
    "花生 山药 开门见山 河南 河北 江苏 信号 信息 水星 行星 卫星 明星 风险 茶几 生火 床单 马戏 马拉松 花样 火箭 火药 火腿 水花 "
    "花纹 花色 花边 爆米花 书法 书包 说书 秘书 证书 书生 风味 风俗 门派 路过 路线 电路 星光大道 钟头 一会儿 灯谜 大门牙 "
    "鱼贯 窗花 棉花 雪白 风暴 江山 山羊 笑话 河马 斑马 木马 海马 风光 开花 信仰 信用 迷信 通信 威信 家乡 家庭 专家 政治家 "
    "音乐家 哭笑 追求 着急 紧急 急救 判断 中断 断定 梦想 恐怕 哪怕 可怕 雨衣 雨季 雪橇 云雾 田径 病床 河床 床位 床上用品 "
    "丝绸之路 走廊 一生 塔吊 茶叶 茶树 "
    "不信 信以为真 信了 信得过 信用卡 信念 信物 发火 恼火 火了 火热 火红 火辣辣 红火 如火如荼 火烧云 火柴 火星 金星 木星 土星 打火机 灭火器 消防 门牌 门外汉 冷门 邪门 五花八门 串门 走后门 这门 一门 登门 部门 上门 同门 "
    "心花怒放 花掉 花光 花时间 花甲 花白 花卷 眼花 老花 礼花 浪花 泪花 葱花 豆花 天花板 天花 花椒 花菜 花样 花园城市 交头接耳 马虎 马桶 马力 马铃薯 罗马 巴拿马 人马 马甲 马褂 马克 马来 斑马线 走马灯 下马威 鸟瞰 鱼肉 鱼香 木鱼 鱿鱼 "
    "鱼雷 美人鱼 鱼尾纹 零星 星级 歌星 影星 球星 童星 星云 道路 半路 路程 路人 铺路 上路 领路 带路 让路 迷路 绕路 指路 赶路 探路 开路 路由器 心田 丹田 油田 煤田 村长 镇长 山寨 靠山 假山 山西 中山 火山 河粉 河豚 河南 湖南 湖北 江南 "
    "江西 黑龙江 镇江 海报 寺里的钟声 庙会 水塔 铁塔 桥牌 桥段 钟情 钟爱 钟点 编钟 警钟 闹钟 猫腻 热狗 雨靴 雨后春笋 谷雨 雪碧 雪糕 雪梨 雪茄 雪亮 雷锋 手雷 雷厉风行 雾霾 风扇 电风扇 风车 风箱 风衣 风湿 风水 风度 风波 风声 作风 中风 通风 威风 "
    "风趣 风干 风尚 风采 风云 风油精 屏风 风铃 抽风 春风得意 奖杯 世界杯 金杯 银杯 幻灯片 灯芯 灯罩 奶茶 茶色 树立 树懒 田螺 生日 节日 日子 日本 日语 昨日 今日 明日 假日 电线杆 电话 电影 电视台 电脑 手电筒 田野调查 水平 水准 薪水 墨水 香水 胶水 口水 汗水 泪水 雨刷 "
    "一床 几床 两床 胖娃娃 门将 门诊 石门 天门 国门 车门 冰箱门 柜门 校门 厂门 城门 家门 出家门 后门 星级酒店 书写 书面 书籍 图书 书房 文书 聘书 书包带 马拉 马蹄 马鞍 马厩 牛仔 灯笼椒 林业 山区 山货 海拔 海军 海关 上海 青海 脑海 人海 海外 河流域 路费 铁路局 船长 船厂 船坞 飞船 船舱 鱼塘 鱼池 钟楼 钟表店 书展 花店 花鼓 花灯 花轿 花卉 花坛 "
).split()
"""Words that hold another's character without its meaning."""

AT = frozenset(
    "in into at on onto to through across along over by beside near toward towards reached entered crossed outside around "
    "behind under inside past down up beyond between above off among upon within cross crosses climb climbs climbed where stood lay closed filled covered".split()
)
PART_OF = frozenset(
    "edge end middle side top bank shore foot bottom corner mouth heart floor centre center walls door gate window".split()
)
MODIFIED = frozenset(
    "band choir bus boy girl boys girls friend friends teacher teachers bell clock master uniform trip song songs council "
    "councillor air breeze bird birds gull gulls salt water captain manager mayor folk people life cat cats dog mouse mice "
    "lamp lamps light lights sign signs vendor vendors musician dogs food officials workers worker staff ticket tickets guard orchestra team teams board report news paper newspaper".split()
)
"""Words that a place only describes: a school band plays anywhere. Who sits at a kitchen table is in the kitchen."""

_OTHER = {
    # things
    "lock": r"canal|towpath|barge|narrowboat|lock.keeper|lock of",
    "chain": r"human chain|chains? (?:of (?:people|hands|command|events|shops|stores|hotels|restaurants|islands|volunteers|neighbou?rs)|reaction|stores?|letters?)|\b(?:form|made|make|making)\w* (?:a|one) (?:\w+ )?chain|(?:food|supply|mountain|island|hotel|retail|restaurant|value) chains?",
    "record": r"\b(?:broke|sets?|beat|world|track|holds?|held|new|keeps?|kept|on|for the|national|break) (?:an? |the |\w+ )?record|record (?:high|low|crowd|number|time|of)",
    "bank": r"river|stream|canal|banks? of|far bank|opposite bank|piggy|sand",
    "plane": r"plane.tree",
    "palm": r"palms? of|palms? up|(?:his|her|my|their|each|one) palms?",
    "nail": r"finger|toe|thumb|\bbit\w* (?:his|her)",
    "spring": r"(?:in|last|next|this|every|each|early|late|of|that|until|by|the) spring\b|spring (?:\d|morning|rain|sun|day|festival|evening|of|came|comes|and)",
    "star": r"(?:film|movie|rock|pop|football|five|four|young|new) stars?\b|stars? (?:of the|player|pupil|turn)|stars? in ",
    "key": r"key (?:to|question|part|figure|role|moment|word|point|reason|step|witness)|keys? of (?:the|a)|piano|typewriter|keyboard|low.key",
    "chest": r"(?:his|her|my|your|their|the) chest\b(?! of)|chest pain",
    "trunk": r"elephant|tree trunk|trunks? of",
    "seal": r"\bseal(?:ed|s)? (?:the|it|with|up)|wax|envelope|stamp",
    "table": r"table of contents|water table|times table",
    "cell": r"prison|phone|police|jail|guard",
    "court": r"tennis|basketball|squash|badminton",
    "mouse": r"computer|click|cursor|keyboard",
    "train": r"\btrain(?:ed|ing)?\b (?:for|hard|as|every|with|dogs?|him|her|them|to)\b|\b(?:to|she|they|we|who|team|he) trains?\b|train of thought",
    "bridge": r"bridge of (?:his|her)|played bridge|captain",
    "bat": r"baseball|cricket|swung|\bball\b",
    "drum": r"eardrum|drums? of oil|oil drum",
    "fire": r"\bfire (?:at|department|brigade|station|engine|alarm|drill|truck|service|fighter|extinguisher|exit)|open(?:ed)? fire|\bunder fire|gunfire|(?:hire|cease).?(?:and )?fire",
    "door": r"next door|door.to.door|out of doors|doors? of the (?:car|bus|fridge|oven|plane)|(?:car|fridge|oven|plane) doors?",
    "window": r"window of (?:time|opportunity)",
    "letter": r"letters? of the alphabet|capital letter|in (?:small|big|large|gold|red|white|black|golden) letters|block letters|letter by letter|\bletters? (?:[a-z]|“.)\b",
    "book": r"\bbook(?:ed|ing|s)? (?:a |the )?(?:table|ticket|room|flight|seat|hotel|trip)|\bto book\b",
    "cup": r"world cup|cup final|(?:won|win|lift\w*) the cup|cups? of (?:flour|sugar|rice|milk|water|oil)",
    "clock": r"o.clock|round the clock",
    "leaf": r"leaf through|leafed",
    "dog": r"hot dogs?",
    "horse": r"horse chestnut|rocking horse|horse.?power|sawhorse",
    "cat": r"cat flap|cat.s eye|copy cat",
    "umbrella": r"umbrella (?:group|organi|term)",
    "map": r"map out|mapped",
    "path": r"paths? to (?:peace|victory|success)|career path",
    "house": r"house of (?:commons|lords|representatives|cards)|white house|opera house|publishing house|house (?:wine|rules|arrest)|full house",
    "tree": r"family tree|tree of life|christmas tree lights",
    "bell": r"bell pepper|graham bell",
    "flower": r"flower (?:girl|power)",
    "battery": r"battery of|artillery",
    "bird": r"bird.s.eye",
    "moon": r"honeymoon|over the moon|moon ?cake",
    "sun": r"sun ?glasses",
    "candle": r"candle.?stick",
    "fish": r"\bfish(?:ed|ing)? (?:for|out)",
    "kite": r"\bkites? (?:circled|hovered|nest)",
    "pot": r"flower.?pot|\bplant|\btree|\broots\b|\bsoil\b|pots? of (?:paint|gold)",
    "grain": r"grains? of",
    "barley": r"grains? of",
    "glass": r"glass(?:es)?\b(?! of)",
    "speed": r"\bspeeds? (?:up|it|them|the|things)",
    "fly": r"\bfl(?:y|ies) (?:to|over|from|away|home|off|south|north|back)",
    "fan": r"(?:football|music|sports) fans?|fans? of",
    "orange": r"(?:is|are|was|were|turn\w*|glow\w*|bright|deep|pale|in) orange|orange (?:light|flame|coat|jacket|sky|sun|vest|scarf|glow|hat|dress|car|bus|boat|and)",
    "bus-stop": r"bus stops? (?:at|in|near|for|by|outside|there|here|every|and)",
    "wheel": r"wheels? of (?:cheese|fortune)|wheelchair|steering",
    "sheep": r"counting sheep",
    "note": r"\btake notes?|banknote",
    "ring": r"rings? of|(?:bells?|phone|telephone|alarm) rings?|\brings? (?:in|at|once|twice)|ring road|boxing|\brings? (?:the|a|up|out)",
    "school": r"schools? of (?:fish|thought|herring|sardine)|high school sweetheart|old school|art school|law school",
    "hook": r"off the hook",
    "light": r"light (?:meal|rain|snow|coat)",
    "mirror": r"rear.view",
    "gold": r"gold (?:medal|rush|ring|leaf)|marigold",
    "plant": r"(?:power|chemical|bottling|treatment|recycling) plants?",
    "cake": r"piece of cake",
    # places
    "field": r"fields? of (?:study|physics|view|vision|science|law)|(?:magnetic|electric|force|gravitational|playing|football) fields?|in the field of|field trip",
    "park": r"\bpark(?:ed|ing|s)? (?:the|his|her|my|a|their|outside|in|on|near)\b|car park|theme park",
    "port": r"glass of port|usb|port wine|port side",
    "bay": r"\bat bay|bay window|bay lea|bay horse",
    "square": r"square (?:met|kilomet|mile|root|of|piece|table|box|hole|inch|feet|foot)|squares? of|into squares|met\w+ square|a square\b(?! in)",
    "market": r"(?:stock|labour|labor|housing|job|black|export|world) markets?|market (?:price|value|share|leader)|on the market",
    "mountain": r"mountains? of (?:paper|debt|work|dish|laundry|rubbish)",
    "peak": r"(?:at|reach\w*|past) (?:its|his|her|their|a|the) peak|peak (?:hour|of|season|time)",
    "platform": r"(?:software|online|digital|political|trading) platform",
    "stream": r"streaming|live stream|stream of (?:people|visitor|cars|data|words|electron|air)",
    "island": r"kitchen island|traffic island",
    "valley": r"silicon valley",
    "slope": r"slippery slope",
    "wave": r"(?:sound|radio|heat|light|shock|micro|brain) ?waves?|waves? (?:goodbye|to|at|his|her|hello)|wave of|gravitational|wavelength",
    "waves": r"(?:sound|radio|heat|light|shock|micro|brain) ?waves?|waves? (?:goodbye|to|at|his|her|hello)|wavelength",
    "surf": r"surf\w* the (?:web|internet)",
    "bed": r"beds? of|(?:river|flower|sea|vegetable|garden) ?beds?",
    "room": r"room for|room temperature|(?:make|made|no|enough|plenty of|more|took up|little) room",
    "street": r"wall street|street (?:food|lights?|lamps?|price)",
    "desk": r"help desk",
    "coast": r"coasted|coast is clear",
    "stage": r"(?:early|late|next|first|final|each|last|this|later|two|three) stages?|stages? of",
    "cabin": r"cabin crew|cabin pressure",
    "hall": r"hall of fame",
    "city": r"manchester city|city council",
    "ward": r"wards? off",
    "shed": r"\bsheds? (?:light|tears|its|their|his|her|a)",
    "forge": r"\bforged?\b (?:a|the|his|her|ahead)",
    "shop": r"shop(?:ped|ping)? (?:for|around|online)|workshop on",
    "farm": r"(?:wind|solar|fish|server) farm",
    "river": r"rivers? of (?:tears|lava|people|blood)",
    "sea": r"seas? of (?:faces|flags|troubles|people|umbrellas|flowers)",
    "forest": r"forests? of (?:masts|arms|hands|chimney)",
    # times and weather
    "dark": r"dark(?:er)? (?:blue|green|red|brown|grey|gray|hair|eyes?|wood|chocolate|glasses|coats?|suits?|beer|bread|skin|side|ages?|matter|energy|cloud|horse|roast|spot|circle|line)|in the dark about|(?:turn|until) (?:\w+ )?dark (?:brown|red|green)",
    "evening": r"evening (?:dress|gown|paper|class)",
    "night": r"night ?(?:club|gown|dress|mare|shift)|night watch",
    "stars": r"(?:film|movie|rock|pop|football|five|four) stars|stars (?:of the|in )",
    "storm": r"by storm|brainstorm|storms? of (?:applause|protest|laughter)",
    "snow": r"snow.white|snow.?(?:boots|shoes)",
    "rain": r"rain.?(?:coat|boots|forest|bow)",
    "wind": r"\bwinds? (?:up|its way|through|the clock|round|around|down|it|turbine|farm|instrument|power)|second wind",
    "shower": r"(?:took|take|takes|taking|in|have|had) (?:a|the) (?:\w+ )?shower|shower (?:curtain|gel|room)|(?:meteor|bridal|baby) shower",
    "thunder": r"thunder of (?:applause|hoo)",
    "frost": r"frosting|frosted",
    "gust": r"gusto",
}
_COMPANY = {word: re.compile(pattern) for word, pattern in _OTHER.items()}


def is_other_sense(word: str, sentence: str) -> bool:
    """Whether an English word means something else in a sentence than what is drawn for it: a record that is broken."""
    company = _COMPANY.get(word)
    return company is not None and company.search(sentence.lower()) is not None
