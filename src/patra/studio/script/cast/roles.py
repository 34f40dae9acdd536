"""Words for people: roles, kinship, titles, and given names that say who is a woman and who a man (C§2.3)."""

# ruff: noqa: E501, SIM905  tables read better unbroken, as words

from functools import lru_cache

from patra.studio.script.lexicon import FIGURES

FEMALE = frozenset({"woman", "girl", "granny"})
MALE = frozenset({"man", "boy", "old"})

_ROLES_EITHER = (
    "baker doctor teacher nurse farmer driver engineer scientist merchant painter singer writer poet student cook chef "
    "shopkeeper neighbour neighbor friend keeper clockmaker carpenter tailor weaver guide traveller traveler stranger "
    "visitor guest officer guard judge mayor professor librarian gardener pilot inventor researcher reporter astronaut "
    "explorer musician worker builder miner hunter shepherd potter postman waiter conductor ferryman cousin pupil "
    "monk smith blacksmith mechanic clerk cleaner seller vendor artist dancer actor lawyer secretary manager assistant apprentice servant beggar thief prisoner cashier astronomer geologist biologist chemist physicist minister president athlete coach runner swimmer climber skier cyclist detective firefighter sergeant referee captain trainer florist butcher grocer barber cobbler shoemaker watchmaker beekeeper potter weaver plumber electrician translator colleague surveyor boss employee rival leader owner landlord host hostess archivist curator conservator diver rider juggler clown magician puppeteer drummer violinist pianist organist composer chemist pharmacist surgeon dentist vet midwife patient customer passenger volunteer tourist caretaker janitor watchman miller glassblower lamplighter journalist spinner foreman inspector fishmonger bishop priest sculptor architect editor novelist philosopher historian mathematician diplomat ambassador governor bookbinder bookseller printer engraver jeweller goldsmith locksmith coachman seamstress dressmaker goatherd porter lifeguard paramedic therapist zookeeper botanist programmer technician welder bricklayer docker deckhand skipper navigator farmhand housekeeper landlady nanny maid butler sailor-boy stonemason mason fiddler bellringer courier messenger ranger"
)  # fmt: skip
_ROLES_ZH = "医生 老师 护士 司机 工程师 科学家 商人 画家 歌手 作家 诗人 学生 厨师 邻居 朋友 裁缝 木匠 铁匠 农民 客人 警察 记者 校长 图书管理员 园丁 工人 师傅 老板 掌柜 邮差 研究员 教师 教授 专家 售票员 清洁工 店员 保安 市长 主任 队员 徒弟 学徒 同学 教练 运动员 选手 队长 船员 矿工 牧民 侦探 演员 导演 指挥 导游 顾客 法官 律师 消防员 飞行员 宇航员 志愿者 陌生人 病人 乘客 游客 快递员 潜水员 登山者 药剂师 接生婆 匠人 石匠 陶工 鼓手 琴师 船工 养蜂人 放羊人 修表匠 鞋匠 理发师 摄影师 饲养员 守林人 护林员 解说员 裁判 伙计 店主 摊主 馆长 院长 局长 所长 站长 厂长 店长 班长 村长 镇长 县长 社长 团长 部长 组长 处长 科长 班主任 喇嘛 僧人 道士 尼姑 书生 侍卫 丫鬟 管家 郎中 工友 战友 列车员"
WOMEN = frozenset("Anna Mary Maria Marie Emma Alice Clara Elena Sofia Julia Lucy Lily Rosa Rose Ruth Sarah Jane Kate Helen Nora Mara Ada Ida Eva Eve Grace Hannah Ellen Martha Margaret Elizabeth Emily Charlotte Laura Olivia Sophie Mia Zoe Nina Lena Vera Irene Amelia Florence Rachel Rebecca Leila Aisha Fatima Priya Mei Yuki Hana Ines Carmen Lucia Greta Ingrid Astrid Tilda Wilma Edith Mabel Hilda Agnes Beatrice Susan Linda Joan Diana Dorothy Jenny Sally Polly Molly Annie Maggie Ella Isabel Rosalind Marta Hanna Karin Birgit Signe Elsa Freya Nell Nelly Iris Ivy Pearl Ruby Stella Sylvia Teresa Theresa Tessa Una Ursula Violet Winnie Yara Zara Amina Noor Layla Chiara Giulia Paula Petra Monika Katya Olga Tanya Natasha Svetlana Sonia Rita Rosie Sara Simone Camille Claire Colette Denise Louise Lydia Marian Miriam Naomi Penelope Phoebe".split())  # fmt: skip
MEN = frozenset("Tom Tomas Thomas John Jack James Peter Paul David Daniel Samuel Sam Ben Benjamin Henry George William Will Robert Bob Charles Edward Arthur Albert Frank Fred Harry Hugo Oscar Leo Max Felix Karl Carl Otto Hans Ivan Boris Viktor Victor Marco Luca Pablo Diego Juan Jose Ali Omar Hassan Yusuf Ravi Arjun Ken Hiro Jonas Elias Noah Adam Simon Martin Michael Mike Nick Nicholas Alexander Alan Isaac Jacob Joseph Joe Luke Mark Matthew Philip Richard Stephen Walter Theo Finn Oliver Alfred Ernest Louis Johannes Galileo Emil Anton Bruno Andrew Anders Erik Lars Piet Pieter Jan Owen Evan Ewan Ian Liam Sean Kevin Brian Colin Derek Dylan Edwin Eric Gareth Giles Gordon Graham Harold Herbert Howard Hugh Jasper Jerome Julian Keith Lewis Malcolm Marcus Neil Nigel Norman Patrick Ralph Roger Ronald Rufus Rupert Silas Stanley Stuart Timothy Tim Tobias Toby Vincent Wilfred Xavier Yuri Dmitri Sergei Pavel Mikhail Stefan Matteo Giovanni Antonio Carlos Miguel Rafael Kwame Kofi Ahmed Ibrahim Karim Tariq Kenji Takeshi Wei".split())  # fmt: skip
TITLES = {"Mr": "man", "Sir": "man", "Lord": "man", "King": "man", "Uncle": "man", "Mrs": "woman", "Miss": "woman", "Ms": "woman", "Lady": "woman", "Queen": "woman", "Aunt": "woman", "Madame": "woman", "Dr": "", "Doctor": "", "Professor": "", "Mayor": "", "President": "", "Minister": "", "General": "man", "Judge": "", "Prince": "man", "Princess": "woman", "Captain": "", "Father": "man", "Reverend": "man", "Auntie": "woman", "Colonel": "man", "Major": "man", "Lieutenant": "man", "Granny": "granny", "Grandma": "granny", "Nana": "granny", "Grandpa": "old"}  # fmt: skip
WOMENS_LETTERS = "敏芳丽娟英红梅兰秀玉婷雪霞燕莉娜静娥珍萍花妹琴慈香菊莲琳琪瑶萱怡洁倩蓉蕾薇茜媛嫣婉淑贞惠慧妍娇娅姗莎莹芬芸苗凤月雅韵诗蓓翠银桂巧姣姝妮媚芝茹莺鹃荷蓝彩仙娣黛滢漪晴彤欣梦露佳语若婕筱蕊菲颖盈岚芷蕙"
MENS_LETTERS = "国建军伟强刚勇峰志海民涛龙虎杰鹏远明立新斌彬波辉超鑫磊浩宇博武德福贵根富祥洪泽俊力毅坤山石柱栓松柏江河义仁忠良才生水土大东胜成功庆亮光振启耀斗魁顺昌盛奎发宝锁铁钢兵勤川舟帆岩锋雷达康进守承正长汉炎年信昭泰哲翔凯旭"
"""Letters of Chinese given names that women and men have; the last one of them decides."""


_KIN_ZH = {
    "叔": "man",
    "伯": "old",
    "舅": "man",
    "姨": "woman",
    "姑": "woman",
    "婶": "woman",
    "姐": "woman",
    "哥": "man",
    "嫂": "woman",
    "爷": "old",
}
_COUSINS_ZH = {"哥": "man", "姐": "woman", "弟": "man", "妹": "woman"}


@lru_cache(maxsize=2)
def kind_words_of(language: str) -> dict[str, str]:
    words: dict[str, str] = {}
    for kind, row in FIGURES.items():
        english, chinese = row.split("|")
        for word in (chinese if language == "zh" else english).split():
            words.setdefault(word, kind)
    for pronoun in ("she", "her", "he", "him"):
        words.pop(pronoun, None)
    for word in (_ROLES_ZH if language == "zh" else _ROLES_EITHER).split():
        words.setdefault(word, "person")
    if language == "zh":
        words |= {f"{rank}{kin}": kind for rank in "二三四五六" for kin, kind in _KIN_ZH.items()}
        words |= {f"{rank}{kin}": kind for rank in ("表", "堂") for kin, kind in _COUSINS_ZH.items()}
    return words
