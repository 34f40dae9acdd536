"""Turns chapter text into its title and its sentences, each with its place in the text (C§2.3)."""

import re
from collections.abc import Iterator

import msgspec

from patra.studio.script.language import language_of

_CJK = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_ABBREVIATIONS = frozenset(
    [
        "mr",
        "mrs",
        "ms",
        "dr",
        "st",
        "prof",
        "sr",
        "jr",
        "vs",
        "etc",
        "no",
        "vol",
        "ch",
        "fig",
        "gen",
        "col",
        "lt",
        "sgt",
        "capt",
        "rev",
        "hon",
        "messrs",
        "mme",
        "mlle",
        "e.g",
        "i.e",
        "a.m",
        "p.m",
    ]
)
_EN_END = re.compile(r"[.!?…]+[\"'”’)\]]*(?=\s|$)")
_ZH_END = re.compile(r"[。！？!?…]+[”’」』）\"]*")
_CLAUSE = {"en": re.compile(r"[;:—,][\"”’]?\s+|\s[—–-]\s+"), "zh": re.compile(r"[，；：、—][”’」』]?")}
CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")  # what is no text
_CHINESE_MARKS = dict(zip(",;:?!.", "，；：？！。", strict=True))
_LATIN_MARK = re.compile(
    r"(?<=[\u3400-\u9fff”’」』）》])(?:[,;:?!]|\.(?![A-Za-z0-9_.]))|(?<=[\u3400-\u9fff]\")[,;:?!.](?=[\u3400-\u9fff\s]|$)"
)
MOST_SIGNING = {"en": 8, "zh": 16}  # words, or letters
_GREETS = re.compile(
    r"^\W*(?:My dear|Dear|Hello|Hi)\b[^\n]{1,60},\s*$|^\W*(?:亲爱的|敬爱的|尊敬的)?[\u4e00-\u9fff]{1,12}[：:]\s*$",
    re.MULTILINE,
)
_DATE_LINE = re.compile(r"[^\n]*(?:\d{4}|\d+月|月[^\n]{0,4}日)[^\n]*\s*$")
_HEADING_MARK = re.compile(r"#{1,6}\s+")
_CHAPTER = re.compile(
    r"(chapter|part|prologue|epilogue)\b|第[0-9一二三四五六七八九十百零〇两]+[章回节]|序章|尾声", re.IGNORECASE
)
LONGEST = {"en": 190, "zh": 56}  # characters that one breath and one picture can carry
LONGEST_TITLE = {"en": 70, "zh": 24}


class Sentence(msgspec.Struct, frozen=True, kw_only=True):
    """What is said in one breath: a sentence, or a clause of a long one. `start`, `end` are places in the chapter."""

    text: str
    start: int
    end: int
    paragraph: int


class Chapter(msgspec.Struct, frozen=True, kw_only=True):
    title: str
    language: str  # en | zh
    sentences: tuple[Sentence, ...]


def read_chapter(text: str, language: str = "") -> Chapter:
    """Cut a chapter into its title and sentences. `language` is a BCP 47 tag; found from the text when empty."""
    found = (language.split("-", maxsplit=1)[0].lower() if language else "") or language_of(text)
    rules = "zh" if found == "zh" else "en"
    text = with_chinese_marks(text) if rules == "zh" else text
    paragraphs = list(_paragraphs(text))
    title = ""
    if paragraphs and _is_heading(text[slice(*paragraphs[0])], rules):
        title = _HEADING_MARK.sub("", text[slice(*paragraphs[0])].strip())
        paragraphs = paragraphs[1:]
    sentences = [
        Sentence(text=" ".join(text[start:end].split()), start=start, end=end, paragraph=number)
        for number, span in enumerate(paragraphs)
        for whole in _sentences(text, *span, rules)
        for start, end in _breaths(text, *whole, rules)
    ]
    return Chapter(title=title, language=found, sentences=tuple(s for s in sentences if any(map(str.isalnum, s.text))))


def with_chinese_marks(text: str) -> str:
    """Chinese text that was typed with the marks of a Latin keyboard, with its own; places in it stay the same."""
    return _LATIN_MARK.sub(lambda found: _CHINESE_MARKS[found[0]], text)


def is_signature(sentence: Sentence, text: str) -> bool:
    """Whether a sentence only says who wrote a letter: the last lines of one, which end like no sentence."""
    whole = sentence.text.strip()
    rest = _DATE_LINE.sub("", text[sentence.end :]).strip()
    words = len(whole) if _CJK.search(whole) else len(whole.split())
    most = MOST_SIGNING["zh" if _CJK.search(whole) else "en"]
    return _GREETS.search(text) is not None and not rest and words <= most and whole[-1:] not in set(".!?…。！？”")


def _paragraphs(text: str) -> Iterator[tuple[int, int]]:
    # A blank line ends a paragraph; so does any line break in Chinese text, a heading's, or an indented next line.
    for block in re.finditer(r"(?:[^\n]*\S[^\n]*(?:\n|$))+", text):
        start = block.start()
        for line in re.finditer(r"[^\n]*\S[^\n]*(?:\n|$)", block[0]):
            at = block.start() + line.start()
            fresh = line[0][:1] in {"\u3000", "\t", "#"} or line[0].startswith("    ")
            if at > start and (fresh or _CJK.search(line[0][:3])):
                yield start, at
                start = at
            if (line[0].lstrip().startswith("#") or _CHAPTER.match(line[0].strip())) and len(line[0]) < 80:
                if at > start:
                    yield start, at
                yield at, block.start() + line.end()
                start = block.start() + line.end()
        if start < block.end():
            yield start, block.end()


def _is_heading(line: str, rules: str) -> bool:
    plain = line.strip()
    if _HEADING_MARK.match(plain):
        return True
    ends = plain[-1:] in set(".!?…。！？”\"'，,;；:：")  # a salutation is no title
    return len(plain) <= LONGEST_TITLE[rules] and "\n" not in plain and (not ends or bool(_CHAPTER.match(plain)))


def _sentences(text: str, start: int, end: int, rules: str) -> Iterator[tuple[int, int]]:
    here = start
    for match in (_ZH_END if rules == "zh" else _EN_END).finditer(text, start, end):
        if rules == "en" and not _really_ends(text, match, end):
            continue
        yield here, match.end()
        here = match.end()
    if text[here:end].strip():
        yield here, end


def _really_ends(text: str, match: "re.Match[str]", end: int) -> bool:
    if match[0].startswith("."):
        word = re.search(r"([\w.]+)\Z", text[max(0, match.start() - 20) : match.start()])
        if word and (word[1].lower() in _ABBREVIATIONS or re.fullmatch(r"[A-Z]", word[1])):
            return False
    after = text[match.end() : end].lstrip()
    # "Stop!" she said: the quotation ends, the sentence does not
    return not after or not after[0].islower()


def _breaths(text: str, start: int, end: int, rules: str) -> Iterator[tuple[int, int]]:
    """A long sentence at its clauses, near the middle, until each part fits one breath."""
    if end - start <= LONGEST[rules]:
        yield start, end
        return
    middle = (start + end) / 2
    cuts = [m.end() for m in _CLAUSE[rules].finditer(text, start, end) if start + 12 < m.end() < end - 12]
    if not cuts and rules == "en":
        cuts = [m.end() for m in re.finditer(r"\s+", text[start:end])]
        cuts = [start + cut for cut in cuts if 12 < cut < end - start - 12]
    if not cuts:
        cuts = [start + LONGEST[rules]]
    cut = min(cuts, key=lambda at: abs(at - middle))
    yield from _breaths(text, start, cut, rules)
    yield from _breaths(text, cut, end, rules)
