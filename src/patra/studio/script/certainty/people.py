"""Claims on the people of a shot: who is there, what is a name, which sex and age, and who may be missing (C§2.3)."""

# ruff: noqa: E501, SIM905  patterns and tables read better unbroken, as words

import re
from collections.abc import Mapping, Sequence

from patra.studio.script.cast.ages import is_life
from patra.studio.script.cast.crowds import THEY, crowd_in
from patra.studio.script.cast.given_names import given_name_votes
from patra.studio.script.cast.mentions import Mention, mentions_between
from patra.studio.script.cast.phrases import KIN_ZH, OWNERS
from patra.studio.script.cast.presence import unreported_part
from patra.studio.script.cast.roles import FEMALE, MALE, TITLES, kind_words_of
from patra.studio.script.cast.segments import COMPOUND_SURNAMES, SURNAMES, is_plain_word, tagged_words, word_kinds
from patra.studio.script.certainty.claims import Claim
from patra.studio.script.depiction import here_part, seen_part
from patra.studio.script.dialogue import Reading
from patra.studio.script.lexicon import CHILDREN
from patra.studio.script.pictograms import is_animal
from patra.studio.script.sentences import Sentence, is_signature
from patra.studio.script.shots import Figure, Shot

_PRONOUNS = frozenset("she he her him his hers herself himself they them their 他 她 他们 她们".split())
GENERIC_PRONOUNS = frozenset({"man", "woman"})  # whom a pronoun stands for that fits nobody
_KIN_ENDS = frozenset("伯叔爷奶婶姨嫂公婆哥姐弟妹")
_FAMILIAR = frozenset("小阿老大")
_NEAR = 4  # sentences in which a pronoun looks for whom it means
_CHILDISH = re.compile(
    r"\b(?:boys?|girls?|child(?:ren)?|pupils?|school|class|mum|mom|dad|mummy|daddy|grandma|grandpa|granny|playground|cousin|homework)\b|孩|放学|上学|小学|同学|妈妈|爸爸|奶奶|爷爷|外婆|外公|年级|校服"
)
_AGED = re.compile(
    r"\b(?:aged?|old|years?|was (?:only )?(?:\w+teen|six|seven|eight|nine|ten|eleven|twelve|\d+))\b|, \d{1,2},|岁|晚年|\b(?:1[5-9]|20)\d\d\b|[0-9零〇一二三四五六七八九]{4}年"
)
_MANY_OF = re.compile(
    r"(?:[0-9二三四五六七八九十百千万两几数多]|许)[名位个群]?$|\b(?:two|three|four|five|six|seven|eight|nine|ten|many|several|some|all|\d+)(?: \w+)? $"
)
_FROM = re.compile(r"\b(?:from|of|like|than|about|for) \w+\s*$")
_AGENT_EN = re.compile(
    r"\b(?:an?|the|his|her|their|our|one|every|some|two) (?:[a-z]+ ){0,2}?([a-z]+(?:ctor|itor|ator|essor|ist|ician|man|woman|keeper|maker|seller|worker|monger|master|mistress|player|grower|holder|owner|leader|clerk|dealer|boy|girl|teller|trainer|hunter|rider|dancer|fighter|smith))\b",
    re.IGNORECASE,
)
_NO_AGENTS = frozenset(
    "tractor factor reactor vector sector elevator radiator generator calculator refrigerator indicator alligator equator monitor human separator ventilator escalator mist list fist wrist twist waist gist woman man".split()
)
_WISHED = re.compile(
    r"[?？]|吗[，。]|^\W*(?:别|请|不要|祝|愿|希望|等)|^\W*(?:Tell|Please|Don['’]t|Do not|May|Let|Give|Kiss|Ask)\b|\b(?:please|hope that|I wish)\b"
)
_OFFSPRING = frozenset("son daughter grandson granddaughter 儿子 女儿 孙子 孙女".split())
_FIRST = re.compile(r"\b(?:I|[Ww]e|us|me)\b|(?<!自)我们?|咱")
_OF_MAPS = frozenset(
    "Port Island Isle Lake Mount River Bay Cape Point Hill City Town Valley Bridge Harbour Street Road Square Beach".split()
)
_OF_HOUSES = frozenset(
    "Lane Avenue Sea Ocean Canal Mountains Hills Museum University College School Academy Institute Hospital Church Cathedral Abbey Library Station Hotel Palace Castle Theatre Company Society Railway Airport Parliament".split()
)
_MANY_EN = re.compile(
    r"\b(?:police|motorists?|rescuers?|everyone|everybody|people|family|half the (?:village|town)|brigade|crew|team|guests|officials)\b",
    re.IGNORECASE,
)
_SOMEONE_ZH = re.compile(
    r"[\u4e00-\u9fff](?:叔|伯|婶|姨|嫂|匠|夫|先生|小姐|女士|师傅|大爷|大妈|村民)(?!路|街|店)|民夫|工匠|队员|同伴|向导|学家|经理|负责人"
)
_NAME_EN = re.compile(r"(?<=[a-z,;] )([A-Z][a-zé]{2,}(?: (?:of )?[A-Z][a-zé]{2,})*)\b")
_PLACED = re.compile(
    r"\b(?:in|at|near|from|to|of|through|around|outside|for|on|called|via|across|between|the|a|an|and|over|until|since|by|last|next|every|each|rivers?|lakes?|mount|canal|island|village|town|city)\s+$",
    re.IGNORECASE,
)
_PET_BEFORE = re.compile(r"\b([a-z]+),?\s+$")
_ANIMAL_ZH = re.compile("[牛羊狗猫鸟鸡鸭鹅鱼驴骡猴鹿狐狼虫蚁蜂仪器]|[马虎龙兔鼠燕].?[儿子]")
_DAYS = frozenset(
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May June July August September October November December Christmas Easter English French German Chinese Latin God Mr Mrs Miss Mama Papa Mum Dad North South East West".split()
)


def people_claims(shot: Shot, before: Sequence[Sentence], reading: Reading) -> list[Claim]:
    """Claims on everyone in the picture, and on those of whom nothing is seen."""
    claims = [claim for figure in shot.picture.figures for claim in figure_claims(figure, shot, before, reading)]
    told = " ".join(reading.narration_of(sentence) for sentence in shot.sentences)
    if shot.picture.figures and any(is_signature(s, reading.text) for s in shot.sentences):
        claims.append(Claim(about="person", subject=shot.picture.figures[0].name, evidence="signature"))
    if shot.picture.figures and not _spoken_claims(shot, reading) and _WISHED.search(told):
        claims.append(Claim(about="person", subject=shot.picture.figures[0].name, evidence="asked_about"))
    return claims + _missing(shot, reading)


def figure_claims(figure: Figure, shot: Shot, before: Sequence[Sentence], reading: Reading) -> list[Claim]:
    """Claims on one person: that they are there, that it is a name, which sex and age."""
    name = figure.name
    own = [m for s in shot.sentences for m in _within(reading, s) if m.name == name]
    found = [Claim(about="person", subject=name, evidence=_presence(name, own, shot, before, reading))]
    if name in reading.people.names:
        found.append(Claim(about="name", subject=name, evidence=_naming(name, reading)))
    found.append(Claim(about="sex", subject=name, evidence=_sex(figure, reading)))
    found.append(Claim(about="age", subject=name, evidence=_age(figure, shot, reading)))
    return found


def _within(reading: Reading, sentence: Sentence) -> list[Mention]:
    return list(mentions_between(reading.people.mentions, sentence.start, sentence.end))


def _word_at(mention: Mention, sentences: Sequence[Sentence], language: str) -> str:
    """The word of a mention, as the text has it."""
    text = next((s.text[mention.at - s.start :] for s in sentences if s.start <= mention.at < s.end), "")
    if language == "zh":
        return text[:2] if text[:2] in _PRONOUNS else text[:1]
    word = re.match(r"[A-Za-z]+", text)
    return word[0].lower() if word else ""


def _presence(name: str, own: Sequence[Mention], shot: Shot, before: Sequence[Sentence], reading: Reading) -> str:
    people, language = reading.people, reading.language
    if name[-1:].isdigit():
        return "group"
    strong = [m for m in own if not m.absent]
    forms = [(m, _word_at(m, shot.sentences, language)) for m in strong]
    direct = [m for m, word in forms if word not in _PRONOUNS]
    if (
        direct
        and name not in people.names
        and any(
            _MANY_OF.search(s.text[: m.at - s.start]) for m in direct for s in shot.sentences if s.start <= m.at < s.end
        )
    ):
        return "group"
    if direct and name in people.names:
        return "named_here"
    if direct:
        text = next((s.text[: direct[0].at - s.start] for s in shot.sentences if s.start <= direct[0].at < s.end), "")
        owned = (text.split() or [""])[-1].lower() in OWNERS or (name in KIN_ZH and text[-1:] in set("的我他她你"))
        if owned and _FROM.search(text):
            return "kin_away"
        return (
            "kin_here"
            if owned and not any(said for said in _spoken_claims(shot, reading) if said == name)
            else "role_here"
        )
    if not strong:
        if name in _spoken_claims(shot, reading):
            return "turn"
        return "addressed" if shot.picture.speaker else "carried"
    if all(m.weak for m in strong):
        return "carried"
    if name in GENERIC_PRONOUNS:
        return "pronoun_of_several"
    last = [m.name for m in _within(reading, before[-1]) if not m.absent] if before else []
    if last[:1] == [name] and name in people.names:
        return "pronoun_goes_on"
    return "pronoun_of_one" if len(_rivals(name, strong[0].at, before, shot, reading)) < 2 else "pronoun_of_several"


def _spoken_claims(shot: Shot, reading: Reading) -> list[str]:
    return [name for s in shot.sentences if (name := reading.speaker(s))]


def _rivals(name: str, at: int, before: Sequence[Sentence], shot: Shot, reading: Reading) -> set[str]:
    """Who of the sentences just before a pronoun it could mean."""
    people = reading.people
    near = [*before[-_NEAR:], *shot.sentences]
    start = near[0].start
    sex = FEMALE if people.kinds.get(name) in FEMALE else MALE
    return {
        m.name
        for m in mentions_between(people.mentions, start, at)
        if (people.kinds.get(m.name) in sex or m.name in people.unsure)
    } | {name}


def _naming(name: str, reading: Reading) -> str:
    words = name.split()
    if reading.language == "zh":
        whole = reading.text
        kinds = word_kinds(whole, name)
        cut = is_plain_word(whole, name) or (kinds and not any(kind.startswith("nr") for kind in kinds))
        if (cut and whole.count(name) < 3) or _ANIMAL_ZH.search(name):
            return "word_as_name"
        if (name[0] in SURNAMES or name[:2] in COMPOUND_SURNAMES) and len(name) in {2, 3, 4}:
            return "surname"
        often = sum(m.name == name for m in reading.people.mentions) > 1
        return "repeated_name" if often and (name[0] in _FAMILIAR or len(set(name)) == 1) else "guessed_name"
    if words[0].rstrip(".") in TITLES:
        return "title"
    if _OF_MAPS & set(words):
        return "word_as_name"  # Gull Island
    if re.search(rf"\b(?:[Ii]n|at|near|to) {re.escape(name)}\b", reading.text):
        return "word_as_name"
    if given_name_votes(words[0]):
        return "listed_name"
    return (
        "repeated_name"
        if len(words) > 1 or sum(m.name == name for m in reading.people.mentions) > 2
        else "guessed_name"
    )


def _sex(figure: Figure, reading: Reading) -> str:
    people, name = reading.people, figure.name
    if figure.kind == "child":
        return "word_of_one_sex"
    if name in people.unsure:
        return "sex_guessed"
    if name not in people.names:
        return (
            "word_of_one_sex"
            if kind_words_of(reading.language).get(name.replace(" ", "-")) != "person"
            else "sex_by_text"
        )
    if reading.language == "zh":
        if name[-1] in _KIN_ENDS:
            return "word_of_one_sex"
        near = re.findall(rf"{name}[^他她]{{0,40}}([他她])(?!们)", reading.text)
        agrees = bool(near) and near.count("她" if figure.kind in FEMALE else "他") * 4 >= len(near) * 3
        return "sex_by_text" if agrees else "sex_by_letters"
    words = name.split()
    if TITLES.get(words[0].rstrip(".")):
        return "word_of_one_sex"
    return "list_of_names" if abs(given_name_votes(words[0])) >= 3 else "sex_by_text"


def _age(figure: Figure, shot: Shot, reading: Reading) -> str:
    people, name = reading.people, figure.name
    text = shot.narration
    whole = reading.text
    if is_life(whole) and name not in _OFFSPRING:
        if _AGED.search(text):
            return "age_stated"
        return "life_between"
    if name in _OFFSPRING:
        return "offspring"
    if name not in people.names:
        return "word_of_an_age" if figure.kind in CHILDREN or figure.kind in {"old", "granny"} else "grown_role"
    if figure.kind in CHILDREN and name.split()[0].rstrip(".") in TITLES:
        return "child_with_title"
    told = rf"(?:{re.escape(name.split()[-1])}|{re.escape(name.split()[0])})"
    if figure.kind in CHILDREN | {"old", "granny"}:
        near = re.search(
            rf"(?:岁|\bold\b|boy|girl|son|daughter|child|孩|女儿|儿子|孙|年级|老|Mrs|aged|\d\d)[^.。]{{0,40}}{told}|{told}[^.。]{{0,40}}(?:岁|\bold\b|\bwas \w+\b|boy|girl|child|孩|年级|\d\d)",
            whole,
        )
        return "age_stated" if near or name[:1] == "老" or name[-1:] in "奶爷婆伯" else "aged_by_text"
    if re.search(
        rf"(?:Mr|Mrs|Miss|Ms|Dr|Captain|Professor)\.? {told}|\b(?:{'|'.join(_GROWN_EN)}),? {told}|{told}, (?:an? |the )?(?:\w+ )?(?:{'|'.join(_GROWN_EN)})\b|{told}, (?:[2-9]\d)\b",
        whole,
    ):
        return "grown_role"
    if reading.language == "zh" and re.search(rf"(?:{'|'.join(_GROWN_ZH)}){told}", whole):
        return "grown_role"
    return "children_about" if _CHILDISH.search(whole) else "grown_by_default"


_GROWN_EN = [
    word
    for word, kind in kind_words_of("en").items()
    if kind == "person" and word not in {"pupil", "student", "neighbour", "friend", "cousin"}
]
_GROWN_ZH = [
    word
    for word, kind in kind_words_of("zh").items()
    if kind == "person" and word not in {"学生", "同学", "邻居", "朋友"}
]


def _missing(shot: Shot, reading: Reading) -> list[Claim]:
    """People of whom the sentences speak and who are not drawn."""
    claims: list[Claim] = []
    language, people = reading.language, reading.people
    words = kind_words_of(language)
    drawn = {figure.name for figure in shot.picture.figures}
    grouped = any(name[-1:].isdigit() for name in drawn)
    for sentence in shot.sentences:
        told = unreported_part(here_part(reading.narration_of(sentence), language), language)
        mentioned = {m.at - sentence.start for m in _within(reading, sentence)}
        if not drawn and not shot.picture.crowd and any(told[at : at + 1].strip() for at in mentioned):
            claims.append(Claim(about="missing", subject="", evidence="person_not_drawn"))
        first = _FIRST.search(told)
        if first:
            claims.append(Claim(about="missing", subject=first[0], evidence="narrator_acts"))
        for at, word in _person_words(told, words, language):
            if (
                not any(at - 3 <= place < at + len(word) for place in mentioned)
                and not grouped
                and not shot.picture.crowd
            ):
                claims.append(Claim(about="missing", subject=word, evidence="person_not_found"))
        claims += [
            Claim(about="missing", subject=one, evidence="name_not_found")
            for one in _unknown_names(told, people.names, people.aliases, language)
        ]
        pronoun = re.search(r"\b(?:she|he|they)\b|[他她]们?", told, re.IGNORECASE)
        many = shot.picture.crowd and (pronoun is None or pronoun[0].lower() in THEY)  # a crowd is not she
        if pronoun and not drawn and not many:
            claims.append(Claim(about="missing", subject=pronoun[0], evidence="pronoun_unresolved"))
        they = re.search(r"\b(?:they)\b|[他她]们", told, re.IGNORECASE)
        if they and drawn and len(drawn) < 2 and not shot.picture.crowd:
            claims.append(Claim(about="missing", subject=they[0], evidence="pronoun_unresolved"))
    if shot.picture.crowd:
        text = seen_part(shot.narration, language)
        carried = not crowd_in(text, language=language) and bool(
            THEY & set(re.findall(r"[a-z]+|[他她]们", text.lower()))
        )
        shown = "crowd_counted" if shot.picture.crowd_count else "crowd_shown"
        claims.append(Claim(about="missing", subject="", evidence="crowd_carried" if carried else shown))
    return list(dict.fromkeys(claims))


def _person_words(text: str, words: dict[str, str], language: str) -> list[tuple[int, str]]:
    if language == "zh":
        return [(m.start(), m[0]) for m in _SOMEONE_ZH.finditer(text)] + [
            (m.start(), m[0])
            for m in re.finditer("|".join(sorted((w for w in words if len(w) > 1), key=len, reverse=True)), text)
        ]
    found = [(m.start(), m[0]) for m in _MANY_EN.finditer(text)]
    found += [(m.start(1), m[1]) for m in _AGENT_EN.finditer(text) if m[1] not in _NO_AGENTS and m[1] not in words]
    return found + [
        (m.start(), m[0])
        for m in re.finditer(r"[a-z]{3,}", text)
        if m[0] in words
        or (m[0].endswith("s") and m[0][:-1] in words)
        or (m[0].endswith("men") and f"{m[0][:-3]}man" in words)
    ]


def _unknown_names(text: str, names: Sequence[str], aliases: Mapping[str, str], language: str) -> list[str]:
    if language == "zh":
        known = (*names, *aliases)
        return [
            word
            for _, word, kind in tagged_words(text.strip())
            if kind.startswith("nr")
            and len(word) > 1
            and word[0] in SURNAMES
            and not any(word in n or n in word for n in known)
        ]
    known = {part for name in names for part in name.split()}
    found: list[str] = []
    for run in _NAME_EN.finditer(text):
        words, before = run[1].split(), _PET_BEFORE.search(text[: run.start()])
        placed = _PLACED.search(text[: run.start()]) or set(words) & (_OF_MAPS | _OF_HOUSES)
        if placed or (before is not None and is_animal(before[1])):
            continue
        unknown = [word for word in words if word not in known | _DAYS and not word.endswith("ish")]
        found += unknown[:1]
    return found
