"""Finds who is one person although two words name them (C§2.3)."""

import re
from collections.abc import Collection, Mapping, Sequence

from patra.kernel.canonical import sha256_hex
from patra.studio.script.cast.mentions import Mention
from patra.studio.script.cast.phrases import CALLED_BOY, CALLED_GIRL, TITLES_AFTER_ZH, TO_ZH
from patra.studio.script.cast.roles import FEMALE, MALE
from patra.studio.script.cast.segments import SURNAMES
from patra.studio.script.depiction import without_speech
from patra.studio.script.lexicon import CHILDREN
from patra.studio.script.sentences import Chapter

_MY_NAME = re.compile(
    r"[\"“](?:[^\"”]*\b(?:[Mm]y name is|I am|I'm|Call me) |我叫)"
    r"([A-Z][a-z]+|[\u4e00-\u9fff]{2,4})[,.!，。！][^\"”]*[\"”]"
)


def is_called_child(chapter: Chapter, sex: frozenset[str]) -> bool:
    """Whether a chapter mentions "the boy": the only one with a name and of that sex is no old man then."""
    child = CALLED_BOY if sex == MALE else CALLED_GIRL
    return any(child.search(without_speech(sentence.text)) for sentence in chapter.sentences)


def titled_name(before: str, word: str, named: Collection[str], kinds: Mapping[str, str]) -> str:
    """Who is meant by a title right behind a full Chinese name: 陈秀兰奶奶 is one person."""
    if word not in TITLES_AFTER_ZH:
        return ""
    full = (name for name in named if before.endswith(name) and len(name) > 1 and name[0] in SURNAMES)
    return next((name for name in full if kinds[name] not in CHILDREN), "")


def roles_of_names(chapter: Chapter, named: Collection[str], kind_words: Mapping[str, str]) -> dict[str, str]:
    """Detective Sorel is the detective, 孙队长 is 队长."""
    if chapter.language == "zh":
        ends = [(name[1:], name) for name in named]
    else:
        whole = " ".join(sentence.text for sentence in chapter.sentences)
        found = ((re.search(rf"\b([A-Z][a-z]+) {re.escape(name)}\b", whole), name) for name in named)
        ends = [(match[1].lower(), name) for match, name in found if match]
        ends += [(name.split()[0].lower(), name) for name in named]
    roles = [role for role, _ in ends]
    return {role: name for role, name in ends if kind_words.get(role) == "person" and roles.count(role) == 1}


def spouses(kinds: Mapping[str, str], named: Collection[str], mentions: Sequence[Mention]) -> dict[str, str]:
    """`He looked at his wife.` and soon `said Ingrid`: one woman, if she comes with no other role."""
    found: dict[str, str] = {}
    for role in [one for one in ("wife", "husband", "妻子", "丈夫") if one in kinds]:
        last = max((m.at for m in mentions if m.name == role), default=-1)
        first = {m.name: m.at for m in reversed(mentions) if m.name in named}
        sex = FEMALE if kinds[role] in FEMALE else MALE
        later = [name for name, at in first.items() if 0 <= last < at < last + 240 and kinds[name] in sex]
        if len(later) == 1:
            found[role] = later[0]
    return found


def self_named(chapter: Chapter, named: Collection[str], mentions: Sequence[Mention]) -> dict[str, str]:
    """`"Ezra," said the boy`: who says only a name says his own."""
    text = " ".join(sentence.text for sentence in chapter.sentences)
    whole = _in_place(chapter)
    said = r"[\"“]([A-Z][a-z]+)[,.!][\"”] (?:said|answered|replied|whispered|muttered) the (boy|girl|woman|man|child)\b"
    found = {match[2]: match[1] for match in re.finditer(said, text) if match[1] in named}
    for match in _MY_NAME.finditer(whole):
        name = next((one for one in named if match[1] in {one, *one.split()}), "")
        near = [m.name for m in mentions if abs(m.at - match.end()) < 14]
        found |= {role: name for role in near[:1] if name and role not in named}
    return found


def _in_place(chapter: Chapter) -> str:
    """The sentences at their places in the chapter."""
    whole = ""
    for sentence in chapter.sentences:
        whole = whole.ljust(sentence.start) + sentence.text
    return whole


def named_next(
    chapter: Chapter,
    role: str,
    kinds: Mapping[str, str],
    named: Collection[str],
    unsure: Collection[str],
    mentions: Sequence[Mention],
) -> str:
    """`A boy has saved his neighbour. Tendai Moyo was at home`: the full name that opens the next sentence."""
    start = next((m.at for m in mentions if m.name == role), -1)
    spans = [(s.start, s.end, s.paragraph) for s in chapter.sentences]
    at = next((number for number, (begins, ends, _) in enumerate(spans) if begins <= start < ends), len(spans))
    if at + 1 >= len(spans) or spans[at][2] != spans[at + 1][2]:
        return ""
    first = next((m for m in mentions if spans[at + 1][0] <= m.at <= spans[at + 1][0] + 2), None)
    if first is None or first.name not in named or any(m.name == first.name for m in mentions if m.at < first.at):
        return ""
    sex = FEMALE if kinds[role] in FEMALE else MALE
    fits = first.name in unsure or kinds[first.name] in sex or kinds[role] == "child"
    return first.name if fits and (" " in first.name or (chapter.language == "zh" and len(first.name) > 2)) else ""


_PRONOUNS = (
    (rf"\bshe\b|(?<![{TO_ZH}])她", rf"\bhe\b|(?<![{TO_ZH}])他(?!们)"),
    (
        r"\bher\b(?! (?:the|an?|to|in|on|at|for|how|what|that|with|by|from|and|as|his|some|about)\b|[.,;])",
        r"\b(?:his|him)\b",
    ),
)


def settled_kind(kind: str, word: str, before: str, rest: str) -> tuple[str, bool]:
    """A role that either may have is a woman or a man by the pronoun that follows, else by its own word: unsettled."""
    if kind != "person":
        return kind, True
    female, is_settled = int(sha256_hex(word)[:2], 16) % 2 == 1, False
    for hers, his in _PRONOUNS:
        she, he = re.search(hers, rest, re.IGNORECASE), re.search(his, rest, re.IGNORECASE)
        if she or he:
            female, is_settled = she is not None and (he is None or she.start() < he.start()), True
            break
    old = before.rstrip().lower().endswith("old")
    return ("granny" if female else "old") if old else ("woman" if female else "man"), is_settled
