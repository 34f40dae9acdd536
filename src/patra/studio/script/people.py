"""Decides who a chapter is about, what they look like, and whom each word points to (C§2.3).

A person is known by a name, a role ("the baker") or a kind ("an old woman"). A definite "the woman" is the one who was
introduced; "a woman" is a new person. A pronoun is the last one it fits. One person keeps one kind, and so one look,
through the film.
"""

import re
from collections.abc import Iterator, Mapping

import msgspec

from patra.kernel.canonical import sha256_hex
from patra.studio.script.depiction import is_gone, is_salutation, seen_part, unthought_part, without_speech
from patra.studio.script.language import READ
from patra.studio.script.lexicon import CHILDREN, named_places
from patra.studio.script.names import FEMALE, MALE, TITLES, kind_words_of, kinds_of_names
from patra.studio.script.pictograms import has_animal
from patra.studio.script.sentences import Chapter, Sentence

GENERIC = frozenset({"girl", "boy", "woman", "man", "child", "old man", "old woman"})
_GENERIC_WORDS = frozenset(
    "woman man girl boy child old-man old-woman 女人 男人 女孩 男孩 孩子 老人 老太太 小姑娘".split()  # noqa: SIM905
)
THEY = frozenset({"they", "他们", "她们"})


class Mention(msgspec.Struct, frozen=True):
    """A word that points to a person, at a place of the chapter; `weak` is a possessive, which need not show them.

    `absent` is a person who is only remembered, imagined or spoken of: a pronoun may mean them, but they are not seen.
    """

    at: int
    name: str
    weak: bool = False
    absent: bool = False


class People(msgspec.Struct, frozen=True, kw_only=True):
    """Everyone in a chapter: their kinds by name, and who is meant where."""

    kinds: dict[str, str]
    mentions: tuple[Mention, ...]
    names: tuple[str, ...] = ()  # those of the kinds that are names, not roles

    def without_names(self, text: str, language: str) -> str:
        """A text with blanks for names: 小雨 is a girl and no weather, and Owen Price costs nothing."""
        for name in self.names:
            pattern = re.escape(name) if language == "zh" else rf"\b{re.escape(name)}\b"
            text = re.sub(pattern, lambda found: " " * len(found[0]), text)
        return text

    def acting(self, start: int, end: int) -> list[str]:
        """Who is pointed to between two places, without those of whom only something is: "her parents" is not she."""
        return list(dict.fromkeys(m.name for m in self.mentions if start <= m.at < end and not m.absent and not m.weak))

    def within(self, start: int, end: int) -> list[str]:
        """Who is pointed to between two places, in order; possessives count where nobody else is named."""
        here = [m for m in self.mentions if start <= m.at < end and not m.absent]
        strong = [m.name for m in here if not m.weak]
        return list(dict.fromkeys(strong or [m.name for m in here]))


def people_of(chapter: Chapter) -> People:
    """Everyone whom a chapter names or points to."""
    if chapter.language not in READ:
        return People(kinds={}, mentions=())
    named = kinds_of_names(chapter)
    scan = _Scan(chapter, named)
    mentions = scan.joined(tuple(scan.run()))
    return People(kinds=scan.kinds, mentions=mentions, names=tuple(sorted(named, key=len, reverse=True)))


# ---- who is meant


_PRONOUN_EN = re.compile(r"\b(she|he|him|hers|herself|himself|her|his|they)\b", re.IGNORECASE)
_POSSESSED = re.compile(
    r"\s+(?!(?:in|on|at|to|through|by|with|from|into|over|under|and|but|for|as|when|while|that|again|away|home|back|up|"
    r"down|out|off|across|along|about|how|what|if|the|an?|his|her|some|until|because|before|after|towards?)\b)[a-z]"
)
_OWN_PLACE = re.compile(
    r"\s+([a-z]+)(?=\s*[,.;:!?]|\s+(?:in|on|at|by|with|and|near|next|behind|under|beside|stood|was|had|has|is|lay)\b|$)"
)
_NEW_EN = re.compile(r"\b(an?|another)\s+[a-z]+\s+$", re.IGNORECASE)
_IS_EN = re.compile(r"\b(?:was|is|became|had been|worked as)\s+(?:an?|the)\s+(?:[a-z]+\s+){0,2}$")
_IS_ZH = re.compile(r"(?:是|当了|成了|成为|做了)(?:一[个名位]|个|名)?[^，。]{0,2}$")
_AS_A = re.compile(r"\b[Aa]s an?\s+(?:[a-z]+\s+)?$")
_CHILD_OF = re.compile(
    r"\b(?:son|daughter|child|wife|widow|sister|brother|grandson|granddaughter) of an?\s+(?:[a-z-]+\s+){0,2}$"
)
_CLAUSE_AFTER = re.compile(r",\s+(?:an?|the)\s+(?:[a-z-]+\s+){0,2}$")
_ROLE_TWICE = re.compile(r"\b([a-z]+),\s+an?\s+(?:[a-z-]+\s+){0,2}$")
_ROLE_AFTER = re.compile(
    r"\b([A-ZÀ-Þ][a-zß-ÿ]+(?: [A-ZÀ-Þ][a-zß-ÿ]+)?),\s+(?:an?|the|his|her|their|my|our)\s+(?:[A-Za-z-]+\s+){0,2}$"
)
_SEVERAL_ZH = re.compile(r"(?:[两三四五六七八九十百千万亿几数]+|许多|很多|一群|一些)(?:个|位|名)?(?:年轻|老)?$")


_MANY_ZH = re.compile(r"[村镇城店街厂船][里上]?的人(?!家)|大家|全村|人人")


class _Scan:
    """Goes through a chapter once, in order, and keeps who was last meant."""

    def __init__(self, chapter: Chapter, kinds: Mapping[str, str]) -> None:
        self.chapter = chapter
        self.kinds: dict[str, str] = dict(kinds)
        self._roles: dict[str, str] = {}
        self._last: dict[str, str] = {}
        self._group: list[str] = []
        self._zh = chapter.language == "zh"
        self._following = ""  # the sentence after the current one
        self._met: list[str] = []  # in the current sentence, so far
        self._named = frozenset(kinds)
        self._topics: dict[str, str] = {}  # who with a name was last meant, by gender
        self._history: list[str] = []
        self._same: dict[str, str] = {}  # roles that the text says are someone with a name
        self._animal = False  # whether an animal was named
        self._definite: set[str] = set()  # "the girl" of whom nothing was said before
        self._kind_words = kind_words_of(chapter.language)

    def run(self) -> Iterator[Mention]:
        open_quote = False
        sentences = self.chapter.sentences
        for number, sentence in enumerate(sentences):
            if number and sentence.paragraph != sentences[number - 1].paragraph:
                self._last |= self._topics  # a new paragraph is about those who have names, not about their mothers
            self._following = without_speech(sentences[number + 1].text) if number + 1 < len(sentences) else ""
            text, open_quote = _narrated(sentence.text, open_quote)
            text = seen_part(text, self.chapter.language)
            self._animal = self._animal or (not self._zh and has_animal(text, "en"))
            found = sorted(self._found(text), key=lambda m: m[0])
            present = unthought_part(text, self.chapter.language)
            self._met = here = list[str]()
            for place, word, article in found:
                if word in THEY:
                    if "them" in text[:place].lower().split():
                        continue  # drew them before they melted
                    yield from (Mention(_absolute(sentence, place), one) for one in self._group)
                    continue
                name, weak = self._resolved(text, place, word, article)
                if name:
                    self._note(name)
                    here.append(name)
                    owned = _OWN_PLACE.match(text[place + len(word) :]) if weak and not self._zh else None
                    away = owned is not None and bool(named_places(owned[1], "en"))  # her kitchen: she may be out
                    away = away or is_gone(text[place + len(word) :])
                    absent = present[place : place + 1].isspace() or is_salutation(sentence.text) or away
                    yield Mention(_absolute(sentence, place), name, weak, absent)
            met = list(dict.fromkeys([*reversed(here), *reversed(self._group)]))
            self._group = list(reversed(met[: max(2, len(set(here)))]))
            if not here and crowd_in(text, self._kind_words, self.chapter.language):
                self._group = []  # "they" are the many

    def _found(self, text: str) -> Iterator[tuple[int, str, str]]:
        """Places, words and articles of everything that may point to a person."""
        taken: set[int] = set()
        for name in sorted(self.kinds, key=len, reverse=True):
            for form in dict.fromkeys((name, *(name.split("·")[1:] if self._zh else name.split()))):
                if form in TITLES or (not self._zh and form.rstrip(".") in {"Mr", "Mrs", "Dr"}):
                    continue
                pattern = re.escape(form) if self._zh else rf"\b{re.escape(form)}\b"
                for match in re.finditer(pattern, text):
                    if match.start() not in taken:
                        taken.update(range(match.start(), match.end()))
                        yield match.start(), name, "name"
        if self._zh:
            yield from self._chinese(text, taken)
            return
        for match in re.finditer(
            r"\b(?:(a|an|another|the|his|her|my|our|their|your|this|that|two|three)\s+)?((?:old|little|young)\s+)?([a-z]+|Mother|Father|Grandmother|Grandfather|Grandma|Grandpa|Mum|Dad)\b",
            text,
        ):
            adjective, noun = (match[2] or "").strip(), match[3].lower()
            word = f"{adjective}-{noun}" if f"{adjective}-{noun}" in self._kind_words else noun
            owner = text[match.end() : match.end() + 2] in {"'s", "’s"} and word not in self._roles
            if word in self._kind_words and match.start(3) not in taken and not owner:  # several of them are a crowd
                new = _NEW_EN.search(text[: match.start()])  # a tall man
                yield match.start(3), word, (match[1] or (new[1] if new else "")).lower()
        for match in _PRONOUN_EN.finditer(text):
            yield match.start(), match[1].lower(), "pronoun"

    def _chinese(self, text: str, taken: set[int]) -> Iterator[tuple[int, str, str]]:
        longest = max(map(len, self._kind_words))
        at = 0
        while at < len(text):
            for length in range(min(longest, len(text) - at), 0, -1):
                word = text[at : at + length]
                if word in self._kind_words and at not in taken:
                    if re.match(r"家(?![人里])", text[at + length :]):  # 外婆家的院子: nobody is named but whose it is
                        at += length - 1
                        break
                    several = text[at + length : at + length + 1] == "们" and self._kind_words[word] not in CHILDREN
                    if several or _SEVERAL_ZH.search(text[:at]):  # several of them are a crowd
                        at += length - 1
                        break
                    new = re.search(r"(?:一个|一位|一名|另一个|有个|有位|几个|两个)[^，。]{0,4}$", text[:at])
                    yield at, word, "pronoun" if word in {"他", "她", "他们", "她们"} else ("a" if new else "the")
                    at += length - 1
                    break
            at += 1

    def _resolved(self, text: str, place: int, word: str, article: str) -> tuple[str, bool]:
        if article == "name":
            if (
                self._zh
                and self._met
                and re.search(r"是[^，。]{0,6}$", text[:place])
                and self._met[-1] not in self._named
            ):
                self._same[self._met[-1]] = word  # 裁判一直是郑伯
            return word, False
        if article == "pronoun":
            return self._pronoun(text, place, word)
        kind = self._kind_words[word]
        if kind == "crowd":
            return "", False
        if not self._zh and (_AS_A.search(text[:place]) or _CHILD_OF.search(text[:place])):
            return "", False  # as a child she rode with her father; the daughter of a surveyor
        if named := self._apposition(text, place, word):
            self._roles[word] = named
            return named, False
        if not self._zh and (same := self._same_role(text, place, word, kind)):
            return same, False
        if article not in {"a", "an", "another", "two", "three"}:
            if word in self._roles:
                return self._roles[word], False
            fits = [name for name, own in self.kinds.items() if _fits(own, kind)]
            if word in _GENERIC_WORDS and len(fits) == 1:
                return fits[0], False
            if kind in {"boy", "girl"} and article == "the" and (grown := self._grown(kind)):
                return grown, False
            if kind == "person" and article == "the" and (alone := self._unnamed()):
                return alone, False
        name = word.replace("-", " ")
        if name not in self.kinds:
            self._definite.update({name} if article == "the" and not self._zh else ())
            own = self._settled(kind, word, text, place)
            aged = self._zh and text[max(0, place - 1) : place] == "老"
            self.kinds[name] = {"man": "old", "woman": "granny"}.get(own, own) if aged else own
        self._roles[word] = name
        return name, False

    def joined(self, mentions: tuple[Mention, ...]) -> tuple[Mention, ...]:
        """`the girl` who opens a story and is named later is one person, if nobody calls her a girl after that."""
        for role, name in self._same.items():
            self.kinds.pop(role, None)
            mentions = tuple(msgspec.structs.replace(m, name=name) if m.name == role else m for m in mentions)
        for role in self._definite & GENERIC:
            spots = [m.at for m in mentions if m.name == role]
            first = {m.name: m.at for m in reversed(mentions) if m.name not in self._definite}
            sex = FEMALE if self.kinds[role] in FEMALE else MALE
            later = [n for n, at in first.items() if at > max(spots, default=0) and self.kinds[n] in sex]
            if spots and len(later) == 1 and later[0] not in GENERIC:
                self.kinds[later[0]] = self.kinds.pop(role)
                mentions = tuple(msgspec.structs.replace(m, name=later[0]) if m.name == role else m for m in mentions)
        return mentions

    def _apposition(self, text: str, place: int, word: str) -> str:
        """`a boy named Tom`, `her sister Anna`, `Marta, an old shepherd`, `he was a baker`: the role is someone's."""
        if (_IS_ZH if self._zh else _IS_EN).search(text[:place]) and self._met:
            return self._met[-1]
        if self._zh:
            after = text[place + len(word) :]
            return next((n for n in self.kinds if after.startswith((n, f"叫{n}", f"名叫{n}"))), "")
        rest = text[place + len(word) :]
        match = re.match(r"(?:\s+(?:named|called)|,)?\s+([A-Z][a-z]+)", rest)
        match = match or re.match(r"(?:His|Her) name was ([A-Z][a-z]+)", self._following)
        match = match or _ROLE_AFTER.search(text[:place])
        if match is None and _CLAUSE_AFTER.search(text[:place]) and re.match(r"\s+(?:of|who|from)\b", rest):
            return next((name for name in self._met if name in self._named), "")
        return next((n for n in self.kinds if match and match[1].split()[0] in n.split()), "") if match else ""

    def _same_role(self, text: str, place: int, word: str, kind: str) -> str:
        """`the driver, an old man`: one person, unless others follow in a row."""
        before, clause = _ROLE_TWICE.search(text[:place]), re.split(r"[,.;:!?]", text[place:])[0]
        name = self._roles.get(before[1], "") if before and not re.search(r"\band\b", clause) else ""
        if name in self._met and name not in self._named and kind in FEMALE | MALE:
            self.kinds[name], self._roles[word] = kind, name
            return name
        return ""

    def _settled(self, kind: str, word: str, text: str, place: int) -> str:
        """A role that either may have is a woman or a man by the pronoun that follows, else by its own word."""
        if kind != "person":
            return kind
        rest = text[place:] + " " + self._following
        old = text[:place].rstrip().lower().endswith("old")
        for hers, his in (
            (r"\bshe\b|(?<![给对向把跟和])她", r"\bhe\b|(?<![给对向把跟和])他(?!们)"),
            (r"\bher\b", r"\b(?:his|him)\b"),
        ):
            she, he = re.search(hers, rest, re.IGNORECASE), re.search(his, rest, re.IGNORECASE)
            if she or he:
                female = she is not None and (he is None or she.start() < he.start())
                break
        else:
            female = int(sha256_hex(word)[:2], 16) % 2 == 1
        return ("granny" if female else "old") if old else ("woman" if female else "man")

    def _pronoun(self, text: str, place: int, word: str) -> tuple[str, bool]:
        female = word in {"she", "her", "hers", "herself", "她"}
        possessive = word in {"his", "her"} and bool(_POSSESSED.match(text[place + len(word) :]))
        if self._zh:
            possessive = text[place + 1 : place + 2] == "的"
        name = self._last.get("female" if female else "male")
        clause = re.split(r"[，。；,;]", text[:place])[-1]
        given = text[place - 1 : place] in set("给对向跟把") if self._zh else word in {"her", "him"} and not possessive
        subject = (name or "-") in clause or re.search(r"\b(?:she|he)\b|[他她]", clause, re.IGNORECASE) is not None
        if given and subject and self._met and name == self._met[-1]:
            sex = FEMALE if female else MALE  # Priya walked with her: with another one
            name = next((n for n in reversed(self._history) if n != name and self.kinds[n] in sex), name)
        if not name and possessive and not self._zh:
            return "", True  # "a fox who had lost her hearing": of nobody who was met
        name = name or self._only("female" if female else "male")
        if not name and self._animal:
            return "", possessive  # she may be the elephant
        if not name:
            name = "woman" if female else "man"
            self.kinds.setdefault(name, name)
        return name, possessive

    def _grown(self, kind: str) -> str:
        """The only one with a name and of that sex: "bought the boy a camera" is about the one whose life this is."""
        sex = FEMALE if kind == "girl" else MALE
        named = [name for name, own in self.kinds.items() if name in self._named and own in sex]
        named = [name for name in named if name in self._history]
        return named[0] if len(named) == 1 and not any(own == kind for own in self.kinds.values()) else ""

    def _unnamed(self) -> str:
        """The one man or woman without a name and a role: "the musician" of whom nobody spoke yet is that one."""
        unnamed = [name for name in self.kinds if name in GENERIC]
        roles = [name for name in self.kinds if name not in self._named and name not in GENERIC]
        return unnamed[0] if len(unnamed) == 1 and not roles else ""

    def _only(self, gender: str) -> str:
        wanted = FEMALE if gender == "female" else MALE
        fits = [name for name, kind in self.kinds.items() if kind in wanted]
        return fits[0] if len(fits) == 1 else ""

    def _note(self, name: str) -> None:
        self._history.append(name)
        kind = self.kinds[name]
        if kind in FEMALE | MALE:
            gender = "female" if kind in FEMALE else "male"
            self._last[gender] = name
            self._topics |= {gender: name} if name in self._named else {}
        else:
            self._last.setdefault("female", name)
            self._last.setdefault("male", name)


def _narrated(text: str, open_quote: bool) -> tuple[str, bool]:
    """The sentence with speech blanked, also speech that an earlier sentence began; and whether it is still open."""
    out: list[str] = []
    for letter in text:
        if letter in "“「『" or (letter == '"' and not open_quote):
            open_quote = True
            out.append(" ")
        elif letter in "”」』" or (letter == '"' and open_quote):
            open_quote = False
            out.append(" ")
        else:
            out.append(" " if open_quote else letter)
    return "".join(out), open_quote


def _absolute(sentence: Sentence, place: int) -> int:
    return min(sentence.start + place, sentence.end - 1)


def _fits(own: str, kind: str) -> bool:
    if kind == "child":
        return own in CHILDREN
    return own == kind or (kind == "woman" and own == "granny") or (kind == "man" and own == "old")


def crowd_in(text: str, kind_words: Mapping[str, str] | None = None, language: str = "en") -> bool:
    """Whether a sentence is about many people at once."""
    words = kind_words or kind_words_of(language)
    if language == "zh" and _MANY_ZH.search(text):
        return True
    if language == "zh":
        several = any(
            f"{word}们" in text for word, kind in words.items() if kind not in CHILDREN and word not in "他她"
        ) or any(_SEVERAL_ZH.search(text[: at.start()]) for word in words for at in re.finditer(word, text))
        return several or any(word in text for word, kind in words.items() if kind == "crowd" and word not in THEY)
    return any(
        words.get(word) == "crowd" or (word not in words and word.removesuffix("s") in words)
        for word in re.findall(r"[a-z]+", text.lower())
    )


__all__ = ["FEMALE", "MALE", "Mention", "People", "crowd_in", "people_of"]
