"""Finds the names of a chapter's people, and of which kind each is (C§2.3)."""

# ruff: noqa: E501, SIM905  tables and patterns read better unbroken

import re
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

from patra.kernel.canonical import sha256_hex
from patra.studio.script.cast.ages import is_life
from patra.studio.script.cast.chinese_names import chinese_names, joined_names
from patra.studio.script.cast.given_names import given_name_votes
from patra.studio.script.cast.roles import FEMALE, MALE, MENS_LETTERS, TITLES, WOMENS_LETTERS, kind_words_of
from patra.studio.script.depiction import without_speech
from patra.studio.script.lexicon import tags_of
from patra.studio.script.pictograms import is_animal
from patra.studio.script.sentences import Chapter

MOST_PEOPLE = 8

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
    "Among During Despite Against Along Across Around Near Upon Whose Which Whom Would Could Should Did Does Has Have Had "
    "Was Were Are Meanwhile Nearby Downstairs Upstairs Beyond Except Like Unlike Rather Thus Hence Whether Whenever "
    "Mum Mom Mama Mummy Mommy Dad Daddy Papa Granny Gran Nana Granddad Nan Ma Pa "
    "Paris Water Light Time People Children Men Women Well Please Thank Thanks Come Look Wait Stop Help Hello Goodbye Good "
    "Make Leave Keep Use Set Fill Remove Check Rinse Spread Fold Drain Knead Roll Sow Plant Dig Tie Screw Plug Choose".split()
)
_PLACE_BEFORE = re.compile(
    r"\b(?:in|at|near|from|through|across|of|outside|around|over|between|towards?|beyond|via|off|(?:train|bus|ferry|ship|boat|road|way|ticket|flight|went|travelled|traveled|moved|returned|sailed|drove|came|emigrated|fled|back) to|for)\s+$"
)
_ACTS = re.compile(
    r"^\s*(?:\w+ly\s+)?(?:said|says|asked|cried|whispered|shouted|answered|replied|told|was|is|had|has|went|ran|came|sat|"
    r"stood|took|put|gave|looked|saw|heard|knew|thought|felt|held|left|wrote|read|made|found|kept|began|lived|woke|"
    r"drew|rode|swam|threw|bought|caught|built|grew|fell|flew|spoke|sang|slept|paid|sold|sent|taught|led|met|set|shook|stole|wore|won|"
    r"drank|ate|broke|chose|drove|dug|fed|fought|forgot|hid|hung|hit|knelt|lay|lit|lost|meant|rang|rose|sank|slid|spent|spread|swept|swung|tore|wept|"
    r"could|would|did|does|can|will|must|never|always|and\s+[A-Z]\w*|\w{2,}ed)\b"
)
_ACTS_NOW = re.compile(r"^\s*(?:\w+ly\s+)?(?!has\b|is\b|was\b)[a-z]{2,}[^s\W]s\b")  # in a story of the present
_MEANT_NEXT = re.compile(r"[.,]?\s+(?:He|She|who)\b")
_CALLED = re.compile(r"\b([a-z]+)\s+(?:(?:is|was)\s+)?(?:called|named)\s+$")
_NO_MAKERS = frozenset(
    "river tower steamer trawler schooner flower cutter cruiser tractor motor terrier retriever setter panther tiger spider liner freighter ter".split()
)
_GROWN_UP = re.compile(
    r"\b(?:drives?|drove|works?|worked|married|lawyer|doctor|engineer|university|soldier|teaches|taught|runs|manages|husband|wife)\b"
)
_FEMALE_END = re.compile(r"(?:a|ette|elle|ine|een|lyn|beth|ie|ice|ise|ude|lde)$")
_WITH = re.compile(
    r"\b(?:with|asked|told|met|beside|hugged|kissed|thanked|helped|followed|married|taught|behind|came|stood|sat|stepped|appeared|emerged|knelt)\s+$"
)
_NAME = re.compile(
    r"\b(?:(Mr|Mrs|Miss|Ms|Dr|Sir|Lady|Lord|King|Queen|Uncle|Aunt|Captain|Professor|Madame|Doctor|Mayor|President|Minister|General|Judge|Princess|Prince|Father|Reverend|Auntie|Colonel|Major|Lieutenant|Granny|Grandma|Grandpa|Nana)\.?\s+)?([A-ZÀ-Þ][a-zß-ÿ]{1,}(?:\s+[A-ZÀ-Þ][a-zß-ÿ]{2,}){0,2})\b(?!['’]?\w)"
)

_SCHOOL = re.compile(
    r"听老师的话|听老师的话|[上读]小学|年级|幼儿园|书包|放学|上学|作业|同学|爸爸|妈妈|小朋友"
)  # of a child that is called 小…


def kinds_of_names(chapter: Chapter) -> tuple[dict[str, str], dict[str, str], set[str]]:
    """The kinds of all named people of a chapter, the most frequent name first; whom other words for them mean; and
    those of whom nothing says whether they are women or men.
    """
    if chapter.language == "zh":
        names, aliases = joined_names(chinese_names(chapter, MOST_PEOPLE), chapter)
    else:
        names, aliases = _english_names(chapter), dict[str, str]()
    kinds = {name: _kind_of(name, chapter, title) for name, title in names.items()}
    unsure = {
        n
        for n, title in names.items()
        if not title and _sex_votes(n, n.split()[-1 if n.split()[0] in TITLES else 0], chapter) == 0
    }
    return kinds, aliases, unsure


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
            known = bool(given_name_votes(name.split()[0])) and not re.search(r"\ban?\s+(?:\w+\s+)?$", before)
            known = known and not before.endswith("the ") and (" " in name or not _PLACE_BEFORE.search(before))
            opens = not before.strip(" \"“‘'")
            rest = sentence.text[match.end() :]
            thing = _CALLED.search(before)
            if (
                thing
                and not title
                and thing[1] not in kind_words
                and (
                    thing[1] in _NO_MAKERS
                    or not thing[1].endswith(("man", "girl", "boy", "ist", "er", "or", "ian", "smith", "wright"))
                )
            ):
                no_people.add(full)  # a parrot called Admiral, a town called Harwick
            if not title and _is_named_animal(before, rest):
                no_people.add(full)
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
            written = _ends_of_name(name, whole)
            often = len(written) > 1
            acting = _ACTS.match(rest) or (often and _ACTS_NOW.match(rest)) or _is_role_after(rest, kind_words)
            acting = acting and not _PLACE_BEFORE.search(before) and not before.endswith(" the ")
            role = re.search(r"([a-z]+)\s+$", before)
            related = role is not None and role[1] in kind_words
            meant = (
                not before.endswith("the ")
                and not _PLACE_BEFORE.search(before)
                and any(_MEANT_NEXT.match(whole, end) for end in written)
            )
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


@lru_cache(maxsize=256)
def _ends_of_name(name: str, text: str) -> tuple[int, ...]:
    """Where a name ends in a text, each time that it is written there."""
    return tuple(match.end() for match in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text))


def _is_named_animal(before: str, rest: str) -> bool:
    """Whether a name is an animal's: our cat, Pepper, slept; Pepper, the cat; the dog Bruno."""
    beside = re.search(r"\b([a-z]+)(,?)\s+$", before)
    follows = re.match(r",\s+(?:an?|the|his|her|their|my|our|your)\s+(?:[a-z-]+\s+){0,2}?([a-z]+)\b", rest)
    if beside and is_animal(beside[1]) and (not beside[2] or rest[:1] in {",", ".", "!", "?", ";", ":"}):
        return True
    return follows is not None and is_animal(follows[1])


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
    while len(words) > 1 and words[-1] in _NO_NAMES:
        words.pop()
    while len(words) > 1 and words[0] in _NO_NAMES:
        words.pop(0)
    return " ".join(words)


def _kind_of(name: str, chapter: Chapter, title: str) -> str:
    """What a name's own words and the sentences around it say that it is."""
    text = "\n".join(without_speech(sentence.text) for sentence in chapter.sentences)
    if title in {"granny", "old"}:
        return title
    if re.fullmatch("老[\u4e00-\u9fff]", name) and title != "woman":
        return "old"
    if kin := re.search(rf"(妹妹|姐姐|弟弟|哥哥){name}", text):
        small = re.search(rf"{name}[^。]{{0,4}}(?:学会走路|学走路|满月|断奶|上幼儿园)", text)
        return (
            ("girl" if kin[1] in {"妹妹", "姐姐"} else "boy")
            if small
            else ("woman" if kin[1] in {"妹妹", "姐姐"} else "man")
        )
    words = name.split()
    first = words[-1] if words[0].rstrip(".") in TITLES else words[0]
    if not is_life(text) and re.search(
        rf"\b{first}\b,? (?:who )?(?:is|was|turned) (?:only |just )?(?:four|five|six|seven|eight|nine|ten|eleven|twelve|[4-9]|1[0-3])(?=[,.;]| and\b| when\b)",
        text,
    ):
        return "girl" if _is_female(name, first, chapter) else "boy"
    if chapter.language == "zh" and re.search(
        rf"年级(?:的|学生|小学生|男生|女生)?{name}|{name}[^。]{{0,10}}(?:上学|放学|年级)", text
    ):
        return "girl" if _is_female(name, name, chapter) else "boy"
    if young := re.search(
        rf"\b(?:school)?(boy|girl|child|son|daughter)\b(?:[^.]{{0,20}}|[^.]{{0,80}}\.\s+(?:His|Her) name was )\b{first}\b|\b{first}\b,? (?:was |is )?(?:a|an|the|her|his|my) (?:\w+ )?(boy|girl|child|son|daughter|granddaughter|grandson)\b"
        rf"|(?<![一二三四五六七八九十])(?:[一二三四五六七八九]|十[一二三四]?|[0-9]|1[0-4])岁的{re.escape(name)}"
        rf"|{re.escape(name)}[^。.]{{0,12}}?(?:(?<![一二三四五六七八九十])(?:[一二三四五六七八九]|十[一二三四]?|[0-9]|1[0-4])岁|(?:six|seven|eight|nine|ten|eleven|twelve|\d) years old)",
        text,
    ):
        word = (young[1] or young[2] or "").lower()
        if word in {"son", "daughter"} and _GROWN_UP.search(text[young.start() : young.end() + 60].split(".")[0]):
            return "man" if word == "son" else "woman"
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
    if name[1:2] == "小" and len(name) == 3 and re.search("爸爸|妈妈|暑假|寒假|父母|" + _SCHOOL.pattern, text):
        return "girl" if _is_female(name, first, chapter) else "boy"  # 莫小溪
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
    if votes := _sex_votes(name, first, chapter):
        return votes > 0
    if chapter.language != "zh":
        return _FEMALE_END.search(first.lower()) is not None
    return not name.startswith("老") and int(sha256_hex(name)[:2], 16) % 2 == 1


def _sex_votes(name: str, first: str, chapter: Chapter) -> int:
    """More than nothing for a woman, less for a man."""
    if chapter.language != "zh" and (votes := given_name_votes(first)):
        return votes
    if "·" in name:
        return 9 if name.split("·", maxsplit=1)[0][-1] in "娜莉丝娅妮莎雅琳蒂黛拉" else -9
    votes = 0
    for number, sentence in enumerate(chapter.sentences):
        if not any(part in sentence.text for part in name.split() if part not in TITLES):
            continue
        after = chapter.sentences[number + 1].text if number + 1 < len(chapter.sentences) else ""
        rest = without_speech(sentence.text)
        rest = rest[rest.find(name) + len(name) :] if name in rest else rest
        if chapter.language == "zh":
            rest, after = (re.sub("[给对向把跟和][他她]", "", told) for told in (rest, after))  # another one
            votes += (
                2 * (rest.count("她") - rest.count("他"))
                + bool(re.match("[^，。]{0,2}她", after))
                - bool(re.match("[^，。]{0,2}他(?!们)", after))
            )
        else:
            votes += 2 * (len(re.findall(r"\bshe|\bher\b", rest)) - len(re.findall(r"\bhe\b|\bhis\b|\bhim\b", rest)))
            votes += bool(re.match(r"\W*(?:She|Her)\b", after)) - bool(re.match(r"\W*(?:He|His)\b", after))
    text = "\n".join(sentence.text for sentence in chapter.sentences)
    if called := re.search(rf"[叫喊称管]([他她])(?:作|做)?{re.escape(name)}", text):
        return 9 if called[1] == "她" else -9
    if wed := re.search(
        rf"\b(she|he) married (?:\w+ )?{re.escape(first)}\b|([她他])[^，。]{{0,8}}{re.escape(name)}[^，。]{{0,3}}(?:结了?婚|成婚|订婚|相爱)",
        text,
        re.IGNORECASE,
    ):
        return 9 if (wed[1] or wed[2]).lower() in {"he", "他"} else -9
    if chapter.language == "zh":
        letters = name[1:] if len(name) < 4 else name
        votes += 3 * (len(letters) == 2 and letters[0] == letters[1]) + 2 * bool(
            re.search(f"(?:护士|妻子|太太|姑娘|嫂子){name}", text)
        )
        votes += 2 * sum((one in WOMENS_LETTERS) - (one in MENS_LETTERS) for one in letters)
        votes += next((w for one in letters[::-1] if (w := (one in WOMENS_LETTERS) - (one in MENS_LETTERS))), 0)
    return votes
