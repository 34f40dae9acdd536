"""Finds the names of a chapter's people, and of which kind each is (C§2.3)."""

# ruff: noqa: E501, SIM905  tables read better unbroken, as words

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

from patra.kernel.canonical import sha256_hex
from patra.studio.script.depiction import without_speech
from patra.studio.script.lexicon import FIGURES, is_known, tags_of
from patra.studio.script.sentences import Chapter

FEMALE = frozenset({"woman", "girl", "granny"})
MALE = frozenset({"man", "boy", "old"})
MOST_PEOPLE = 8

_ROLES_EITHER = (
    "baker doctor teacher nurse farmer driver engineer scientist merchant painter singer writer poet student cook chef "
    "shopkeeper neighbour neighbor friend keeper clockmaker carpenter tailor weaver guide traveller traveler stranger "
    "visitor guest officer guard judge mayor professor librarian gardener pilot inventor researcher reporter astronaut "
    "explorer musician worker builder miner hunter shepherd potter postman waiter conductor ferryman cousin pupil "
    "monk smith blacksmith mechanic clerk cleaner seller vendor artist dancer actor lawyer secretary manager assistant apprentice servant beggar thief prisoner cashier astronomer geologist biologist chemist physicist minister president athlete coach runner swimmer climber skier cyclist detective firefighter sergeant referee captain trainer florist butcher grocer barber cobbler shoemaker watchmaker beekeeper potter weaver plumber electrician translator colleague surveyor boss employee rival leader owner landlord host hostess archivist curator conservator diver rider juggler clown magician puppeteer drummer violinist pianist organist composer chemist pharmacist surgeon dentist vet midwife patient customer passenger volunteer tourist caretaker janitor watchman miller glassblower lamplighter stonemason mason fiddler bellringer courier messenger ranger"
)  # fmt: skip
_ROLES_ZH = "医生 老师 护士 司机 工程师 科学家 商人 画家 歌手 作家 诗人 学生 厨师 邻居 朋友 裁缝 木匠 铁匠 农民 客人 警察 记者 校长 图书管理员 园丁 工人 师傅 老板 掌柜 邮差 研究员 教师 教授 专家 售票员 清洁工 店员 保安 市长 主任 队员 徒弟 学徒 同学 教练 运动员 选手 队长 船员 矿工 牧民 侦探 演员 导演 指挥 导游 顾客 法官 律师 消防员 飞行员 宇航员 志愿者 陌生人 病人 乘客 游客 快递员 潜水员 登山者 药剂师 接生婆 匠人 石匠 陶工 鼓手 琴师 船工 养蜂人 放羊人 修表匠 鞋匠 理发师 摄影师 饲养员 守林人 护林员 解说员 裁判 伙计 店主 摊主 馆长 院长 局长 所长 站长 厂长 店长 班长 村长 镇长 县长 社长 团长 部长 组长 处长 科长"
_WOMEN = frozenset("Anna Mary Maria Marie Emma Alice Clara Elena Sofia Julia Lucy Lily Rosa Rose Ruth Sarah Jane Kate Helen Nora Mara Ada Ida Eva Eve Grace Hannah Ellen Martha Margaret Elizabeth Emily Charlotte Laura Olivia Sophie Mia Zoe Nina Lena Vera Irene Amelia Florence Rachel Rebecca Leila Aisha Fatima Priya Mei Yuki Hana Ines Carmen Lucia Greta Ingrid Astrid Tilda Wilma Edith Mabel Hilda Agnes Beatrice Susan Linda Joan Diana Dorothy Jenny Sally Polly Molly Annie Maggie Ella Isabel Rosalind Marta Hanna Karin Birgit Signe Elsa Freya Nell Nelly Iris Ivy Pearl Ruby Stella Sylvia Teresa Theresa Tessa Una Ursula Violet Winnie Yara Zara Amina Noor Layla Chiara Giulia Paula Petra Monika Katya Olga Tanya Natasha Svetlana Sonia Rita Rosie Sara Simone Camille Claire Colette Denise Louise Lydia Marian Miriam Naomi Penelope Phoebe".split())  # fmt: skip
_MEN = frozenset("Tom Tomas Thomas John Jack James Peter Paul David Daniel Samuel Sam Ben Benjamin Henry George William Will Robert Bob Charles Edward Arthur Albert Frank Fred Harry Hugo Oscar Leo Max Felix Karl Carl Otto Hans Ivan Boris Viktor Victor Marco Luca Pablo Diego Juan Jose Ali Omar Hassan Yusuf Ravi Arjun Ken Hiro Jonas Elias Noah Adam Simon Martin Michael Mike Nick Nicholas Alexander Alan Isaac Jacob Joseph Joe Luke Mark Matthew Philip Richard Stephen Walter Theo Finn Oliver Alfred Ernest Louis Johannes Galileo Emil Anton Bruno Andrew Anders Erik Lars Piet Pieter Jan Owen Evan Ewan Ian Liam Sean Kevin Brian Colin Derek Dylan Edwin Eric Gareth Giles Gordon Graham Harold Herbert Howard Hugh Jasper Jerome Julian Keith Lewis Malcolm Marcus Neil Nigel Norman Patrick Ralph Roger Ronald Rufus Rupert Silas Stanley Stuart Timothy Tim Tobias Toby Vincent Wilfred Xavier Yuri Dmitri Sergei Pavel Mikhail Stefan Matteo Giovanni Antonio Carlos Miguel Rafael Kwame Kofi Ahmed Ibrahim Karim Tariq Kenji Takeshi Wei".split())  # fmt: skip
TITLES = {"Mr": "man", "Sir": "man", "Lord": "man", "King": "man", "Uncle": "man", "Mrs": "woman", "Miss": "woman", "Ms": "woman", "Lady": "woman", "Queen": "woman", "Aunt": "woman", "Madame": "woman", "Dr": "", "Doctor": "", "Professor": "", "Mayor": "", "President": "", "Minister": "", "General": "man", "Judge": "", "Prince": "man", "Princess": "woman", "Captain": ""}  # fmt: skip
_NO_NAMES = frozenset(
    "He It We My As At In On So Or To Up No By An Of Is Be Do Go Me Us Oh Ah Be Am Out Off Any Such Very More Less "
    "The And But She Her His Him They Their There Then This That These Those When Where While What Who Why How With "
    "Without Within After Before Because Until Since For From Into Over Under Not Now Never Nothing Nobody Once One Two "
    "Eleven Twelve Thirteen Fourteen Fifteen Twenty Thirty Forty Fifty Sixty Seventy Eighty Ninety Hundred Hundreds Thousand Thousands Million Millions Half Dozens "
    "Three Four Five Six Seven Eight Nine Ten Every Everyone Everything Each All Some Many Most Few Both Another Other "
    "You Your Our Its Yes Let Add Put Take Cut Mix Turn Heat Open Close Press Hold Wash Place Pour Stir Bake Boil Cook Serve "
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May June July August "
    "September October November December God Madam English Chinese French German Russian Chapter Dear Love Yours Today "
    "Yesterday Tomorrow Tonight Here Outside Inside Above Below Behind Beside Between Only Just Even Still Soon Later "
    "Sometimes Always Often Perhaps Maybe Finally First Second Third Next Last Long Old Young Little Good Bad If Although "
    "Though However Instead Also Again Almost Mother Father Grandmother Grandfather Grandma Grandpa Rain Snow Spring "
    "Summer Autumn Winter Morning Evening Night Dawn Dusk Earth Europe Asia Africa America China England France London "
    "Paris Water Light Time People Children Men Women Well Please Thank Thanks Come Look Wait Stop Help Hello Goodbye Good "
    "Make Leave Keep Use Set Fill Remove Check Rinse Spread Fold Drain Knead Roll Sow Plant Dig Tie Screw Plug Choose".split()
)
_PLACE_BEFORE = re.compile(r"\b(?:in|at|near|from|through|across|of|outside|around|over)\s+$")
_ACTS = re.compile(
    r"^\s*(?:\w+ly\s+)?(?:said|says|asked|cried|whispered|shouted|answered|replied|told|was|is|had|has|went|ran|came|sat|"
    r"stood|took|put|gave|looked|saw|heard|knew|thought|felt|held|left|wrote|read|made|found|kept|began|lived|woke|"
    r"drew|rode|swam|threw|bought|caught|built|grew|fell|flew|spoke|sang|slept|paid|sold|sent|taught|led|met|set|shook|stole|wore|won|"
    r"drank|ate|broke|chose|drove|dug|fed|fought|forgot|hid|hung|hit|knelt|lay|lit|lost|meant|rang|rose|sank|slid|spent|spread|swept|swung|tore|wept|"
    r"could|would|did|does|can|will|must|never|always|and\s+[A-Z]\w*|\w{2,}ed)\b"
)
_ACTS_NOW = re.compile(r"^\s*(?:\w+ly\s+)?(?!has\b|is\b|was\b)[a-z]{2,}[^s\W]s\b")  # in a story of the present
_CALLED = re.compile(r"\b([a-z]+)\s+(?:called|named)\s+$")
_FEMALE_END = re.compile(r"(?:a|ette|elle|ine|een|lyn|beth|ie|ice|ise|ude|lde)$")
_WITH = re.compile(r"\b(?:with|asked|told|met|beside|hugged|kissed|thanked|helped|followed|married|taught|behind)\s+$")
_NAME = re.compile(
    r"\b(?:(Mr|Mrs|Miss|Ms|Dr|Sir|Lady|Lord|King|Queen|Uncle|Aunt|Captain|Professor|Madame|Doctor|Mayor|President|Minister|General|Judge|Princess|Prince)\.?\s+)?([A-ZÀ-Þ][a-zß-ÿ]{1,}(?:\s+[A-ZÀ-Þ][a-zß-ÿ]{2,})?)\b(?!['’]?\w)"
)
_ZH_VERBS = "[说道问答喊笑走站坐拿看听想把是在也和从回跑背提抱拉推打点抬伸带给去来没不又每就用蹲跪爬骑开写画唱吹挥望]"
_ZH_NAME = re.compile(r"(?:小|阿|老)[\u4e00-\u9fff]")
_ZH_SURNAMES = "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林郑谢罗梁宋唐许韩冯邓曹彭曾萧田董袁潘蒋蔡余杜叶程苏魏吕丁沈姚卢傅钟汪夏谭陆范金石廖贾韦方邹白孟秦邱江尹薛雷侯龙段郝孔邵毛常万顾赖武贺严梅盛俞倪姜崔翟戴莫祝柳甘祁聂庄施陶洪殷葛柯阮骆费岑裴鲍樊凌霍虞邢滕卓"
_ZH_FULL = re.compile(
    rf"(?:^|[，。！？；：“”、的是和叫给对向]|工程师|教师|老师|教授|专家|记者|校长|医生|市长|居民|主任|村民)([{_ZH_SURNAMES}][\u4e00-\u9fff]{{1,2}})(?=说|道|问|答|喊|笑|走|站|坐|拿|看|听|想|把|是|在|也|和|从|出生|[一二][零〇一二三四五六七八九]{{3}}年|[一二三四五六七八九十0-9]+岁|回|表示|介绍|告诉|发现|发明|带|对|终于|决定)",
    re.MULTILINE,
)
_ZH_BEFORE_NAME = "的和与对给跟向叫是把被让找问见士生师员人友位长警妹弟哥姐子在到从了着说看听想等比为"
_ZH_NOT_LAST = "的了在是和着就也都上下里中把被从到说问来去不没有这那个们"
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
_ZH_FOREIGN = re.compile(r"[\u4e00-\u9fff]{1,9}·[\u4e00-\u9fff]{1,4}?(?=[在是说和，。一于从出被把对有发]|$)")
_ZH_BEGINS = re.compile(
    rf"(?:^|[，。！？；：“”])([{_ZH_SURNAMES}][\u4e00-\u9fff]{{1,2}}?)(?={_ZH_VERBS})", re.MULTILINE
)
_ZH_TITLES = {
    **dict.fromkeys(("奶奶", "婆婆", "大妈", "大娘", "婆"), "granny"),
    **dict.fromkeys(("爷爷", "大爷", "大伯", "伯伯", "伯", "公", "爷"), "old"),
    **dict.fromkeys(
        ("阿姨", "婶婶", "太太", "小姐", "女士", "大姐", "姐姐", "妈妈", "婶", "姨", "嫂", "姐", "妈"), "woman"
    ),
    **dict.fromkeys(("叔叔", "大叔", "先生", "大哥", "哥哥", "爸爸", "叔", "哥"), "man"),
    **dict.fromkeys(("老师", "医生", "师傅", "老板", "校长", "警官", "教授", "队长", "船长"), ""),
}
_ZH_TITLED = re.compile(
    rf"[{_ZH_SURNAMES}](?:{'|'.join(sorted(_ZH_TITLES, key=len, reverse=True))})(?![司园共里路斤元安])"
)
_ZH_WOMEN, _ZH_MEN = (
    "敏芳丽娟英红梅兰秀玉婷雪霞燕莉娜静娥珍萍花妹",
    "国建军伟强刚勇峰志海民涛龙虎杰鹏",
)  # in given names
_ZH_ACTS = "说|问|答|喊|笑|走|跑|站|坐|拿|看|听|想|把|伸手|点|抬|推|打开|低头|回头|摇|跟|抱|拉|没有|也|又|每天"
_SCHOOL = re.compile(r"书包|放学|上学|作业|同学|爸爸|妈妈|小朋友")  # of a child that is called 小…
_ZH_WEATHER_NAMES = ("小雨", "小雪")  # also names: where they act, or someone calls them
_ZH_NO_NAMES = frozenset("小船 小岛 小路 小屋 小镇 小时 小心 小巷 小孩 小溪 小河 小狗 小猫 小桥 小鸟 小径 小院 小声 小的 小小 小火 小块 小雨 小雪 小山 小女 小男 小姑 小伙 小学 小店 小菜 小碗 小麦 小提 小站 小城 小楼 小床 小灯 小刀 小手 小脸 小事 小队 小组 小说 小姐 小岛 小村 小车 小勺 小苏 老人 老师 老树 老头 老屋 老者 老了 老太 老旧 老是 老板 老奶 老家 老房 老街 老鼠 老虎 老式 老大 老爷 老木 老汉 老伯 老妇 阿姨".split())  # fmt: skip


def kinds_of_names(chapter: Chapter) -> dict[str, str]:
    """The kinds of all named people of a chapter, the most frequent name first."""
    names = _chinese_names(chapter) if chapter.language == "zh" else _english_names(chapter)
    return {name: _kind_of(name, chapter, title) for name, title in names.items()}


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
    return words


def _english_names(chapter: Chapter) -> dict[str, str]:
    """Names, most frequent first, each with the kind that its title gives or nothing."""
    found: Counter[str] = Counter()
    acts: Counter[str] = Counter()
    titles: dict[str, str] = {}
    kind_words = kind_words_of("en")
    no_people: set[str] = set()
    whole = " ".join(sentence.text for sentence in chapter.sentences)
    words = set(re.findall(r"\b[a-z]+\b", whole))
    for sentence in chapter.sentences:
        opening = re.match(r"\W*([A-Z][a-z]+) [A-Z]", sentence.text)
        skipped = opening.end(1) if opening and opening[1].lower() in kind_words and opening[1] not in TITLES else 0
        for match in _NAME.finditer(sentence.text, skipped):  # Librarian Joan Pike
            title, name = match[1], _trim(match[2])
            if not name or (not title and name.split()[0] in _NO_NAMES):
                continue
            before = sentence.text[: match.end() - len(name) if match[2].endswith(name) else match.start()]
            full = f"{title} {name}" if title and " " not in name else name
            found[full] += 1
            if title:
                titles[full] = TITLES[title]
            known = _without_accents(name.split()[0]) in _WOMEN | _MEN
            opens = not before.strip(" \"“‘'")
            rest = sentence.text[match.end() :]
            thing = _CALLED.search(before)
            if (
                thing
                and not title
                and thing[1] not in kind_words
                and not thing[1].endswith(("man", "girl", "boy", "ist"))
            ):
                no_people.add(full)  # a parrot called Admiral, a town called Harwick
            beside = re.match(r"\s+and\s+[A-Z]", sentence.text[match.end() :])
            if (
                opens
                and not known
                and not title
                and not beside
                and not _is_role_after(rest, kind_words)
                and _is_plain_word(name, words)
            ):
                continue
            spoken = re.search(r"\b(?:said|asked|cried|answered|replied|whispered|shouted|called|named)\s+$", before)
            often = len(re.findall(rf"\b{name}\b", whole)) > 1
            acting = _ACTS.match(rest) or (often and _ACTS_NOW.match(rest)) or _is_role_after(rest, kind_words)
            acting = acting and not _PLACE_BEFORE.search(before)
            role = re.search(r"([a-z]+)\s+$", before)
            related = role is not None and role[1] in kind_words
            meant = re.search(rf"\b{re.escape(name)}[.,]?\s+(?:He|She|who)\b", whole)
            acts[full] += bool(title or known or spoken or meant or acting or related or _WITH.search(before))
    people = [
        name for name, _ in sorted(found.items(), key=lambda i: (-i[1], i[0])) if acts[name] and name not in no_people
    ]
    longer = [name for name in people if " " in name]
    plain = [name for name in longer if name.split()[0] not in TITLES]
    kept = [
        name
        for name in people
        if not any(name != other and name in other.split() for other in longer)
        and not (
            name.split()[0] in TITLES and any(name != other and name.split()[-1] in other.split() for other in plain)
        )
    ]
    return {name: titles.get(name, "") for name in kept[:MOST_PEOPLE]}


def _without_accents(word: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))


def _is_role_after(rest: str, kind_words: Mapping[str, str]) -> bool:
    """Whether a role follows: Nicolas Conté, a French officer."""
    follows = re.match(r",\s+(?:an?|the|his|her|their|my|our)\s+((?:[A-Za-z-]+\s+){0,3}[A-Za-z-]+)", rest)
    return follows is not None and any(word in kind_words for word in follows[1].split())


def _is_plain_word(name: str, words: set[str]) -> bool:
    """Whether a capital letter only opens a sentence: the word is written small elsewhere, is a plural or a noun."""
    first = name.split(maxsplit=1)[0].lower()
    return first in words or first.endswith("s") or bool(tags_of(first, "en").all)


def _trim(name: str) -> str:
    words = name.split()
    if len(words) == 2 and words[1] in _NO_NAMES:
        return words[0]
    if len(words) == 2 and words[0] in _NO_NAMES:
        return words[1]
    return name


def _chinese_names(chapter: Chapter) -> dict[str, str]:
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
    for name in _ZH_WEATHER_NAMES:
        if re.search(rf"{name}(?:{_ZH_ACTS})|“{name}[，！？]|叫{name}", text):
            found[name] += text.count(name)
    titled = {match[0]: _ZH_TITLES[match[0][1:]] for match in _ZH_TITLED.finditer(text)}
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
    roles = sorted(kind_words_of("zh"), key=len, reverse=True)
    for match in _ZH_FOREIGN.finditer(text):
        name = match[0]
        cut = max((name.find(one) + len(one) for one in roles if one in name.split("·")[0][:-1]), default=0)
        found[name[cut:]] += 2
    acting = "说|问|答|喊|笑|走|跑|站|坐|拿|看|听|想|把|在|和|的|撑|提|抱|点|又|也|今年|回|对|从|是|向|给|出生|嫁|娶|带|送|打|捉|爬|写|画|告诉|表示|介绍|发现|用"
    names = [
        name
        for name, count in sorted(found.items(), key=lambda i: (-i[1], i[0]))
        if (count > 1 and not name.startswith("小"))
        or re.search(rf"{name}(?:{acting}|[一二][零〇一二三四五六七八九]{{3}}年)", text)
    ]
    return {name: titled.get(name, "") for name in names[:MOST_PEOPLE]}


def _is_in_role(text: str, start: int) -> bool:
    """Whether a name would begin inside of a role: 老师傅没有."""
    return text[start - 1 : start + 1] in kind_words_of("zh")


@lru_cache(maxsize=1)
def _zh_behind_roles() -> "re.Pattern[str]":
    """Names behind a role, up to what someone does or the end of the clause."""
    roles = "|".join(word for word, kind in kind_words_of("zh").items() if len(word) > 1 and kind == "person")
    ends = rf"[，。、；：！？”]|{_ZH_VERBS}|表示|介绍|告诉|发现|带|对|终于|决定|今年|出生|$"
    return re.compile(rf"(?:{roles}|船长)([{_ZH_SURNAMES}][\u4e00-\u9fff]{{1,2}})(?={ends})", re.MULTILINE)


@lru_cache(maxsize=1)
def _zh_repeated() -> "re.Pattern[str]":
    """Names of three characters where a clause begins or a role stands before; one who comes again is a person."""
    roles = "|".join(sorted(kind_words_of("zh"), key=len, reverse=True))
    return re.compile(rf"(?:^|[，。！？；：“”]|{roles})([{_ZH_SURNAMES}][\u4e00-\u9fff]{{2}})", re.MULTILINE)


def _kind_of(name: str, chapter: Chapter, title: str) -> str:
    """What a name's own words and the sentences around it say that it is."""
    text = "\n".join(sentence.text for sentence in chapter.sentences)
    if title in {"granny", "old"}:
        return title
    words = name.split()
    first = words[-1] if words[0].rstrip(".") in TITLES else words[0]
    if young := re.search(
        rf"\b(?:school)?(boy|girl|child|son|daughter)\b(?:[^.]{{0,20}}|[^.]{{0,80}}\.\s+(?:His|Her) name was )\b{first}\b|\b{first}\b,? (?:was |is )?(?:a|an|the|her|his|my) (?:\w+ )?(boy|girl|child|son|daughter|granddaughter|grandson)\b"
        rf"|(?<![一二三四五六七八九十])(?:[一二三四五六七八九]|十[一二三四]?|[0-9]|1[0-4])岁的{re.escape(name)}"
        rf"|{re.escape(name)}[^。.]{{0,12}}?(?:(?<![一二三四五六七八九十])(?:[一二三四五六七八九]|十[一二三四]?|[0-9]|1[0-4])岁|(?:six|seven|eight|nine|ten|eleven|twelve|\d) years old)",
        text,
    ):
        word = (young[1] or young[2] or "").lower()
        if word in {"boy", "son", "grandson"}:
            return "boy"
        if word in {"girl", "daughter", "granddaughter"}:
            return "girl"
        return "girl" if _is_female(name, first, chapter) else "boy"
    if re.search(
        rf"(?:女孩|小姑娘|女儿|孙女)[^。]{{0,4}}{re.escape(name)}|{re.escape(name)}是[^。]{{0,6}}(?:女孩|小姑娘|女儿)",
        text,
    ):
        return "girl"
    if re.search(
        rf"(?:男孩|儿子|孙子|少年)[^。]{{0,4}}{re.escape(name)}|{re.escape(name)}是[^。]{{0,6}}(?:男孩|儿子|少年)", text
    ):
        return "boy"
    roles = (kind_words_of("en").get(m[1], "") for m in re.finditer(rf"\b([a-z]+),? {re.escape(first)}\b", text))
    if role := next((kind for kind in roles if kind in FEMALE | MALE), ""):
        return role
    if len(name) == 2 and name[0] == name[1]:
        return "girl" if _is_female(name, first, chapter) else "boy"
    if name.startswith(("小", "阿")) and _SCHOOL.search(text):
        return "girl" if _is_female(name, first, chapter) else "boy"
    female = title == "woman" or (title != "man" and _is_female(name, first, chapter))
    aged = rf"[六七八九]十[一二三四五六七八九]?岁的?[^。，]{{0,8}}{re.escape(name)}|{re.escape(name)}, (?:6[5-9]|[789]\d)\b"
    if (
        name.startswith("老")
        or re.search(aged, text)
        or re.search(
            rf"\b(?:[Oo]ld|grandmother|grandma|grandfather|grandpa) (?:Mrs\.? |Mr\.? |Miss )?{first}\b|\b{first}(?: [A-Z][a-z]+)?, (?:an|the|his|her) old\b|{re.escape(name)}[^。]{{0,6}}老人",
            text,
        )
    ):
        return "granny" if female else "old"
    return "woman" if female else "man"


def _is_female(name: str, first: str, chapter: Chapter) -> bool:
    plain = _without_accents(first)
    if plain in _WOMEN or plain in _MEN:
        return plain in _WOMEN
    if "·" in name:
        return name.split("·", maxsplit=1)[0][-1] in "娜莉丝娅妮莎雅琳蒂黛拉"
    votes = 0
    for number, sentence in enumerate(chapter.sentences):
        if name not in sentence.text:
            continue
        after = chapter.sentences[number + 1].text if number + 1 < len(chapter.sentences) else ""
        rest = without_speech(sentence.text)
        rest = rest[rest.find(name) + len(name) :] if name in rest else rest
        if chapter.language == "zh":
            rest, after = (re.sub("[给对向把跟和][他她]", "", told) for told in (rest, after))  # another one
            votes += 2 * (rest.count("她") - rest.count("他")) + after[:8].count("她") - after[:8].count("他")
        else:
            votes += 2 * (len(re.findall(r"\bshe|\bher\b", rest)) - len(re.findall(r"\bhe\b|\bhis\b|\bhim\b", rest)))
            votes += bool(re.match(r"\W*(?:She|Her)\b", after)) - bool(re.match(r"\W*(?:He|His)\b", after))
    if votes:
        return votes > 0
    if chapter.language == "zh" and (
        known := [letter in _ZH_WOMEN for letter in name[1:] if letter in _ZH_WOMEN + _ZH_MEN]
    ):
        return known[-1]
    if chapter.language != "zh":
        return _FEMALE_END.search(first.lower()) is not None
    return not name.startswith("老") and int(sha256_hex(name)[:2], 16) % 2 == 1
