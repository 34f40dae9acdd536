"""Decides whom each word of a chapter points to (C§2.3).

A definite "the woman" is the one who was introduced; "a woman" is a new person. A pronoun is the last one it fits; a
relative who is only named by it ("her mother") and a role that either sex may have leave it to the one with a name.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from patra.studio.script.cast import identity
from patra.studio.script.cast.ages import is_life
from patra.studio.script.cast.crowds import THEY, crowd_in
from patra.studio.script.cast.mentions import Mention, absolute, blank_speech, fits_kind
from patra.studio.script.cast.phrases import (
    AS_A,
    BESIDE,
    CHILD_OF,
    CLAUSE_AFTER,
    ELDERS,
    GENERIC,
    GENERIC_WORDS,
    GRANDCHILD_EN,
    GRANDCHILD_ZH,
    HIS_NAME,
    IS_EN,
    IS_ZH,
    IT_WAS,
    KIN_BEFORE,
    KIN_ZH,
    OWN_PLACE,
    OWN_PLACE_ZH,
    OWNERS,
    POSSESSED,
    ROLE_AFTER,
    ROLE_TWICE,
    TO_ZH,
)
from patra.studio.script.cast.pointers import Known, pointers
from patra.studio.script.cast.presence import is_dead, is_elsewhere, is_owner, unreported_part
from patra.studio.script.cast.roles import FEMALE, MALE, kind_words_of
from patra.studio.script.depiction import is_salutation, seen_part, unthought_part, without_speech
from patra.studio.script.lexicon import CHILDREN, named_places
from patra.studio.script.pictograms import has_animal
from patra.studio.script.sentences import Chapter
from patra.studio.script.words.groups import groups_in


class Scan:
    """Goes through a chapter once, in order, and keeps who was last meant."""

    def __init__(
        self, chapter: Chapter, kinds: Mapping[str, str], aliases: Mapping[str, str], unsure: Iterable[str]
    ) -> None:
        self.chapter = chapter
        self.told: list[str] = []  # the sentences without speech
        self._aliases = aliases
        self._acting = list[str]()  # who does something in the current sentence, so far
        self._dead = set[str]()
        self._is_life = is_life("\n".join(without_speech(sentence.text) for sentence in chapter.sentences))
        self._owned_names = set[str]()
        self._owned = dict[str, str]()  # whom `_last` was before a relative of theirs was named
        self._unsure = set(unsure)  # names and roles of which nothing says whether they are women or men
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
        self._is_letter = any(is_salutation(sentence.text) for sentence in chapter.sentences[:2])
        self._same: dict[str, str] = {}  # roles that the text says are someone with a name
        self._animal = False  # whether an animal was named
        self._definite: set[str] = set()  # "the girl" of whom nothing was said before
        self._kind_words = kind_words_of(chapter.language)
        self._roles |= identity.roles_of_names(chapter, self._named, self._kind_words)

    def run(self) -> Iterator[Mention]:
        open_quote = False
        sentences = self.chapter.sentences
        for number, sentence in enumerate(sentences):
            if number and sentence.paragraph != sentences[number - 1].paragraph:
                self._open_paragraph()
            self._owned = dict[str, str]()
            following = sentences[number + 1] if number + 1 < len(sentences) else sentence
            goes_on = following is not sentence and following.paragraph == sentence.paragraph
            self._following = without_speech(following.text) if goes_on else ""
            text, open_quote = blank_speech(sentence.text, open_quote)
            self.told.append(text)
            text = seen_part(text, self.chapter.language)
            self._animal = self._animal or (not self._zh and has_animal(text, "en"))
            known_people = Known(
                chinese=self._zh,
                kinds=self.kinds,
                aliases=self._aliases,
                roles=self._roles,
                kind_words=self._kind_words,
            )
            found = sorted(pointers(text, known_people), key=lambda m: m[0])
            present = unthought_part(text, self.chapter.language)
            stated = unreported_part(text, self.chapter.language)
            self._met = here = list[str]()
            gone = set[str]()
            self._acting = acting = list[str]()
            for place, word, article, size in found:
                if word in THEY:
                    if "them" in text[:place].lower().split():
                        continue  # drew them before they melted
                    whose = self._zh and re.match(r"[^，。]{0,3}的", text[place + size :]) is not None
                    yield from (Mention(absolute(sentence, place), one, whose) for one in self._group)
                    continue
                known = len(self.kinds)
                name, weak = self._resolve_mention(text, place, word, article)
                if not name:
                    continue
                rest, reported = self.told[-1][place + size :], stated[place : place + 1].isspace()
                weak = weak or (article == "name" and is_owner(rest, self._kind_words, self.chapter.language))
                weak = weak or (self._zh and bool(OWN_PLACE_ZH.match(rest) or (word in KIN_ZH and rest[:1] == "的")))
                if reported and len(self.kinds) > known:
                    self.kinds.pop(name)
                    self._roles.pop(word, None)
                    continue  # nobody met them: they are only in what is said
                owned = OWN_PLACE.match(rest) if weak and not self._zh else None
                away = owned is not None and bool(named_places(owned[1], "en"))  # her kitchen: she may be out
                kin = article != "name" or KIN_BEFORE.search(text[:place]) is not None
                away = away or (
                    article != "pronoun" and is_elsewhere(text[:place], rest, self.chapter.language, kin=kin)
                )
                dead = article != "pronoun" or (word in {"he", "she"} and name in self._named)
                dead = dead and is_dead(rest, self.chapter.language) and not reported
                absent = present[place : place + 1].isspace() or is_salutation(sentence.text) or away or dead
                absent = absent or reported or name in self._dead or name in gone
                gone |= {name} if absent and name not in self._named else set()
                self._dead |= {name} if dead else set()
                here.append(name)
                acting += [name] * (not weak)
                if (not reported and not dead and not away) or name in self._named:
                    self._note(
                        name, owned=(absent or name not in self._named) and self._is_owned(text, place, word, article)
                    )
                yield Mention(absolute(sentence, place), name, weak, absent)
            self._prefer_subject(here)
            self._last |= self._owned  # of her and her mother the next sentence means her
            self._age_elders(text, acting)
            met = list(dict.fromkeys([*reversed(here), *reversed(self._group)]))
            self._group = list(reversed(met[: max(2, len(set(here)))]))
            if crowd_in(text, self._kind_words, self.chapter.language) or groups_in(text, self.chapter.language)[0]:
                self._group = []  # "they" are the many

    def _resolve_mention(self, text: str, place: int, word: str, article: str) -> tuple[str, bool]:
        if article == "name":
            if (
                self._zh
                and self._met
                and re.search(r"是[^，。]{0,12}$", text[:place])
                and self._met[-1] not in self._named
            ):
                self._same[self._met[-1]] = word  # 裁判一直是郑伯
            if self._met and self._met[-1] not in self._named and HIS_NAME.search(text[:place]):
                self._same[self._met[-1]] = word  # Her name was Ottilie
            if not self._met and self._history and IT_WAS.search(text[:place]):
                self._same |= {one: word for one in self._history[-1:] if one not in self._named}
            if self._zh and self._met and self._met[-1] not in self._named and re.search(r"名[字]?叫$", text[:place]):
                self._same[self._met[-1]] = word  # 男孩今年六岁，名叫天天
            return word, False
        if article == "pronoun":
            return self._pronoun(text, place, word)
        kind = self._kind_words[word]
        if kind == "crowd" or (word == "guide" and text[place:].startswith("guide to ")):
            return "", False
        if not self._zh and (AS_A.search(text[:place]) or CHILD_OF.search(text[:place])):
            return "", False  # as a child she rode with her father; the daughter of a surveyor
        if named := self._apposition(text, place, word):
            if (
                self._zh
                and self._met
                and self._met[-1] not in self._named
                and re.search(r"是[^，。]{0,12}$", text[:place])
            ):
                self._same[self._met[-1]] = named  # 他是面馆的老板陶然
            if word in self._roles and self._roles[word] not in self._named and word not in GENERIC_WORDS:
                self._same[self._roles[word]] = named  # her mother, and later: her mother, Nadia
            self._roles[word] = named
            return named, False
        if not self._zh and (same := self._same_role(text, place, word, kind)):
            return same, False
        if aged_role := kind == "person" and article == "the" and text[:place].endswith(("old ", "young ")):
            known = [
                name
                for name in dict.fromkeys(self._history)
                if name in self._named and self.kinds[name] not in CHILDREN
            ]
            if aged_role and word not in self._roles and len(known) == 1:
                return known[0], False  # the old teacher
        if article not in {"a", "an", "another", "two", "three"}:
            if word in self._roles:
                return self._roles[word], False
            fits = [name for name, own in self.kinds.items() if fits_kind(own, kind)]
            if word in GENERIC_WORDS and len(fits) == 1:
                return fits[0], False
            if word in ELDERS and not fits and (elder := self._elder(kind)):
                return elder, False
            if (
                word in GENERIC_WORDS
                and kind in {"boy", "girl"}
                and article == "the"
                and (grown := self._only_grown_up(kind))
            ):
                return grown, False
            if kind == "person" and article == "the" and (alone := self._only_unnamed()):
                return alone, False
        name = word.replace("-", " ")
        if name not in self.kinds:
            self._definite.update({name} if article == "the" and not self._zh else ())
            alone = not any(name in self._named for name in self._last.values())
            rest = text[place:] + (f" {self._following}" if alone else "")
            own, is_settled = identity.settled_kind(kind, word, text[:place], rest)
            aged = self._zh and text[max(0, place - 1) : place] == "老"
            self.kinds[name] = {"man": "old", "woman": "granny"}.get(own, own) if aged else own
            if not is_settled:
                self._unsure.add(name)
        self._roles[word] = name
        return name, False

    @property
    def unsure(self) -> frozenset[str]:
        return frozenset(self._unsure)

    def join_mentions(self, mentions: tuple[Mention, ...]) -> tuple[Mention, ...]:
        """`the girl` who opens a story and is named later is one person, if nobody calls her a girl after that."""
        married = identity.spouses(self.kinds, self._named, mentions)
        self._same = identity.self_named(self.chapter, self._named, mentions) | married | self._same
        for role, name in self._same.items():
            kind = self.kinds.pop(role, "")
            if kind in {"old", "granny", "boy", "girl"} or (kind and name in self._unsure):
                self.kinds[name] = kind
            mentions = tuple(msgspec.structs.replace(m, name=name) if m.name == role else m for m in mentions)
        for role in [one for one in self.kinds if one in GENERIC and one not in self._definite]:
            if name := identity.named_next(self.chapter, role, self.kinds, self._named, self._unsure, mentions):
                kind = self.kinds.pop(role)
                self.kinds[name] = kind if kind != "child" else self.kinds[name]
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
        if (IS_ZH if self._zh else IS_EN).search(text[:place]) and self._met:
            return self._met[-1]
        if self._zh:
            if full := identity.titled_name(text[:place], word, self._named, self.kinds):
                self.kinds |= {full: self._kind_words[word]} if self._kind_words[word] in {"granny", "old"} else {}
                return full
            after = text[place + len(word) :]
            return next((n for n in self.kinds if after.startswith((n, f"叫{n}", f"名叫{n}"))), "")
        rest = text[place + len(word) :]
        match = re.match(r"(?:\s+(?:(?:is|was)\s+)?(?:named|called)|,)?\s+(?:[\w-]+-old\s+)?([A-Z][a-z]+)", rest)
        match = match or re.match(r"(?:His|Her) name was ([A-Z][a-z]+)", self._following)
        match = match or ROLE_AFTER.search(text[:place])
        if match is None and CLAUSE_AFTER.search(text[:place]) and re.match(r"\s+(?:of|who|from)\b", rest):
            return next((name for name in self._met if name in self._named), "")
        return next((n for n in self.kinds if match and match[1].split()[0] in n.split()), "") if match else ""

    def _same_role(self, text: str, place: int, word: str, kind: str) -> str:
        """`the driver, an old man`: one person, unless others follow in a row."""
        before, clause = ROLE_TWICE.search(text[:place]), re.split(r"[,.;:!?]", text[place:])[0]
        name = self._roles.get(before[1], "") if before and not re.search(r"\band\b", clause) else ""
        if name in self._met and name not in self._named and kind in FEMALE | MALE | {"person"}:
            self.kinds[name] = self.kinds[name] if kind == "person" else kind
            self._roles[word] = name
            return name
        return ""

    def _pronoun(self, text: str, place: int, word: str) -> tuple[str, bool]:
        female = word in {"she", "her", "hers", "herself", "她"}
        possessive = word in {"his", "her"} and bool(POSSESSED.match(text[place + len(word) :]))
        if self._zh:
            possessive = text[place + 1 : place + 2] == "的"
        name = self._last.get("female" if female else "male")
        clause = re.split(r"[，。；,;]", text[:place])[-1]
        given = (
            text[place - 1 : place] in {*TO_ZH, *"着了过住"} if self._zh else word in {"her", "him"} and not possessive
        )
        subject = (
            self._zh
            or not BESIDE.search(text[:place])
            or (name or "-") in clause
            or re.search(r"\b(?:she|he)\b|[他她]", clause, re.IGNORECASE) is not None
        )
        if given and subject and self._met and name == self._met[-1] and name in self._acting:
            sex = FEMALE if female else MALE  # Priya walked with her: with another one
            others = (n for n in reversed(self._history) if n != name and (n in self._named or n not in self._unsure))
            name = next((n for n in others if self.kinds[n] in sex), name)
        if not name and possessive and not self._zh:
            return "", True  # "a fox who had lost her hearing": of nobody who was met
        name = name or self._only("female" if female else "male")
        name = "" if self._animal and name not in self._history else name  # he may be the dog
        if not name and self._animal:
            return "", possessive  # she may be the elephant
        if not name and (called := re.match(r"([\u4e00-\u9fff]{2,4})", text[place + 1 :])) and self._zh:
            name = next((n for n in self._named if called[1].startswith(n)), "")  # 大家都叫他老侯
        if not name:
            name = "woman" if female else "man"
            self.kinds.setdefault(name, name)
        return name, possessive

    def _only_grown_up(self, kind: str) -> str:
        """The only one with a name and of that sex: "bought the boy a camera" is about the one whose life this is."""
        sex = FEMALE if kind == "girl" else MALE
        named = [name for name, own in self.kinds.items() if name in self._named and own in sex]
        named = [name for name in named if name in self._history]
        if len(named) != 1 or any(own == kind for own in self.kinds.values()):
            return ""
        if not self._is_life:
            self.kinds[named[0]] = kind
        return named[0]

    def _only_unnamed(self) -> str:
        """The one man or woman without a name and a role: "the musician" of whom nobody spoke yet is that one."""
        unnamed = [name for name, kind in self.kinds.items() if name in GENERIC and kind not in CHILDREN]
        roles = [name for name in self.kinds if name not in self._named and name not in GENERIC]
        return unnamed[0] if len(unnamed) == 1 and not roles else ""

    def _only(self, gender: str) -> str:
        wanted = FEMALE if gender == "female" else MALE
        fits = [name for name, kind in self.kinds.items() if kind in wanted]
        return fits[0] if len(fits) == 1 else ""

    def _is_owned(self, text: str, place: int, word: str, article: str) -> bool:
        """Whether someone is only the relative of another: her mother, 母亲, her sister Odile."""
        if self._zh:
            return word in KIN_ZH and not any(text[:place].endswith(f"{name}的") for name in self._named)
        return article in OWNERS or (article == "name" and KIN_BEFORE.search(text[:place]) is not None)

    def _elder(self, kind: str) -> str:
        """`the old man` is the man with a name who was met last, if that is a grown one."""
        sex = FEMALE if kind == "granny" else MALE
        alone = sum(name in self._named for name, own in self.kinds.items() if own in sex) == 1
        near = (n for n in reversed(self._history[-6:]) if n in self._named and self.kinds[n] in sex - CHILDREN)
        if not (found := next(near, "")) or (alone and identity.is_called_child(self.chapter, sex)):
            return ""
        self.kinds[found] = kind
        return found

    def _prefer_subject(self, here: Sequence[str]) -> None:
        """Who praised the boy is the one who goes on to speak."""
        if here and here[0] in self._named and self.kinds[here[0]] in FEMALE | MALE and here[0] not in self._unsure:
            gender = "female" if self.kinds[here[0]] in FEMALE else "male"
            if self._last.get(gender) not in self._named and self._last.get(gender) in self._roles.values():
                self._last[gender] = here[0]

    def _age_elders(self, text: str, here: Sequence[str]) -> None:
        """Who has a grandchild is old."""
        if not (GRANDCHILD_ZH if self._zh else GRANDCHILD_EN).search(text):
            return
        grown = [name for name in dict.fromkeys(here) if name in self._named and self.kinds[name] in {"woman", "man"}]
        if len(grown) == 1:
            self.kinds[grown[0]] = {"woman": "granny", "man": "old"}[self.kinds[grown[0]]]

    def _open_paragraph(self) -> None:
        """A new paragraph is about those who have names, not about their mothers, or goes on with who came last."""
        if self._is_letter:
            self._group = []  # "they" of a new paragraph are others
        last = self._history[-1] if self._history else ""
        kept = {gender: name for gender, name in self._last.items() if name == last and name not in self._owned_names}
        recent = self._history[-3:]
        self._last = {sex: name for sex, name in self._last.items() if name in self._named or name in recent}
        self._last |= self._topics | kept

    def _note(self, name: str, *, owned: bool = False) -> None:
        self._history.append(name)
        kind = self.kinds[name]
        self._owned_names |= {name} if owned else set()
        if kind in FEMALE | MALE:
            gender = "female" if kind in FEMALE else "male"
            before = self._last.get(gender, "")
            if name in self._unsure and before in self._named:
                return
            if owned and before in self._named and before != name:
                self._owned.setdefault(gender, before)
            elif not owned:
                self._owned.pop(gender, None)
            self._last[gender] = name
            self._topics |= {gender: name} if name in self._named else {}
        else:
            self._last.setdefault("female", name)
            self._last.setdefault("male", name)
