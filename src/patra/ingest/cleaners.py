"""What a mapping may apply to a value after it was found: markup out of titles, identifiers into one form (ch. 3.3.4).

Each takes a JSON value and gives a JSON value; what it cannot make sense of becomes nothing, never a wrong value.
"""

import html
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import msgspec

from patra.ingest.times import read_instant

_LONGEST = 1_000_000


class Cleaner(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    call: Callable[[Any], Any]
    text: str
    whole: bool = False
    """Whether it wants a list as a whole; the others are applied to each item of one."""


CLEANERS: dict[str, Cleaner] = {}


def _cleaner(name: str, text: str, *, whole: bool = False) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    def declare(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
        CLEANERS[name] = Cleaner(name=name, call=call, text=text, whole=whole)
        return call

    return declare


def clean(names: tuple[str, ...] | list[str], value: Any) -> Any:
    """Apply cleaners in order; nothing stays nothing, and a list of nothings is nothing."""
    return cleaning(tuple(names))(value)


@lru_cache(maxsize=1024)
def cleaning(names: tuple[str, ...]) -> Callable[[Any], Any]:
    """The cleaners of these names, one after the other, looked up once."""
    steps = [_step(CLEANERS[name]) for name in names]
    if len(steps) == 1:
        return steps[0]

    def apply(value: Any) -> Any:
        for step in steps:
            value = step(value)
        return value

    return apply


def single(names: tuple[str, ...]) -> Callable[[Any], Any] | None:
    """The one cleaner of a value or of each item of a list, if it is just one of those."""
    cleaner = CLEANERS[names[0]]
    return cleaner.call if len(names) == 1 and not cleaner.whole else None


def _step(cleaner: Cleaner) -> Callable[[Any], Any]:
    call = cleaner.call
    if cleaner.whole:
        return lambda value: None if value is None else call(value)

    def each(value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, list):
            return [found for item in cast("list[Any]", value) if (found := call(item)) is not None] or None
        return call(value)

    return each


_TAG = re.compile(
    r"<(?:/\s*[A-Za-z][\w:.-]*\s*|!--[^<>]{0,500}--"
    r"|[A-Za-z][\w:.-]{0,40}(?:\s+[\w:.-]{1,60}\s*=\s*(?:\"[^\"<>]{0,500}\"|'[^'<>]{0,500}'|[^\s\"'<>=]{1,200})){0,20}"
    r"\s*/?)>"
)
"""A tag, and nothing that only looks like one: `p < 0.05 and q > 3` stays."""


@_cleaner("text", "Markup and entities taken out, white space made single, empty becomes nothing.")
def _text(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    plain = value[:_LONGEST]
    if "<" in plain:
        plain = _TAG.sub(_gap, plain)
    if "&" in plain:  # markup that was escaped once more inside XML or JSON
        plain = _TAG.sub(_gap, html.unescape(plain))
        plain = html.unescape(plain)
    return " ".join(plain.split()) or None


def _gap(tag: re.Match[str]) -> str:
    """A block ends a word; inline markup does not (`H<sub>2</sub>O`)."""
    name = _NAME.sub("", tag[0]).lower().rpartition(":")[2]
    return " " if name in _BLOCKS else ""


_NAME = re.compile(r"^<\s*/?\s*|[\s/>].*$", re.DOTALL)
_BLOCKS = frozenset(
    {"p", "br", "div", "li", "title", "sec", "tr", "td", "th", "ul", "ol", "blockquote", "pre", "list-item"}
    | {"h1", "h2", "h3", "h4", "h5", "h6"}
)


_HEADING = re.compile(
    r"^\s*((?:<(?:jats:)?(?:p|div|sec)>\s*)*)<((?:jats:)?title|h[1-6]|b|strong)>\s*"
    r"(?:abstract|summary|resumo|r[eé]sum[eé]n?|zusammenfassung)[.:]?\s*</\2>",
    re.IGNORECASE,
)


_ESCAPED_LINE = re.compile(r"\\n(?=\s|$)")  # a line break that was escaped twice; LaTeX such as nu stays


@_cleaner("abstract", "As text, without the heading that only says that this is the abstract.")
def _abstract(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    text = value[:_LONGEST]
    if "<" in text:
        text = _HEADING.sub("", text, count=1)
    return _text(_ESCAPED_LINE.sub(" ", text) if "\\n" in text else text)


@_cleaner("sections", "Sections of an abstract ({label, text}) as one text: `AIM: … METHODS: …`.", whole=True)
def _sections(value: Any) -> str | None:
    parts: list[str] = []
    for item in cast("list[Any]", value if isinstance(value, list) else [value]):
        section = cast("dict[str, Any]", item) if isinstance(item, dict) else {"text": item}
        label, text = _text(section.get("label")), _text(section.get("text"))
        if text:
            parts.append(f"{label}: {text}" if label and label.upper() != "UNLABELLED" else text)
    return " ".join(parts) or None


@_cleaner("strip", "White space at both ends taken away, empty becomes nothing.")
def _strip(value: Any) -> str | None:
    return value.strip() or None if isinstance(value, str) else None


@_cleaner("lower", "In small letters.")
def _lower(value: Any) -> str | None:
    return value.lower() if isinstance(value, str) else None


@_cleaner("upper", "In capital letters.")
def _upper(value: Any) -> str | None:
    return value.upper() if isinstance(value, str) else None


_DOI = re.compile(r"10\.\d{4,9}/\S+")


@_cleaner("doi", "A DOI in its bare form and small letters, whatever URL or prefix it came with; else nothing.")
def _doi(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    text = value.strip()[:2000]
    if "%" in text and "doi.org" in text.lower():
        text = unquote(text)
    found = _DOI.search(text)
    return found[0].rstrip(".,;").lower() if found else None


_ORCID = re.compile(r"\b\d{4}-?\d{4}-?\d{4}-?\d{3}[\dXx]\b")


@_cleaner("orcid", "An ORCID iD as 0000-0000-0000-0000; else nothing.")
def _orcid(value: Any) -> str | None:
    found = _ORCID.search(value[:200]) if isinstance(value, str) else None
    if found is None:
        return None
    digits = found[0].replace("-", "").upper()
    return f"{digits[:4]}-{digits[4:8]}-{digits[8:12]}-{digits[12:]}"


_ARXIV = re.compile(r"(\d{4}\.\d{4,5}|[a-z-]+(?:\.[A-Z]{2})?/\d{7})(v\d+)?", re.IGNORECASE)


@_cleaner("arxiv", "An arXiv id without its version; else nothing.")
def _arxiv(value: Any) -> str | None:
    found = _ARXIV.search(value[:200]) if isinstance(value, str) else None
    return found[1] if found else None


@_cleaner("digits", "The first run of digits (a PMID out of a URL); else nothing.")
def _digits(value: Any) -> str | None:
    found = (
        re.search(r"\d+", str(value)[:200]) if isinstance(value, str | int) and not isinstance(value, bool) else None
    )
    return found[0] if found else None


_PMCID = re.compile(r"(?:^|PMC|/)(\d{1,9})/?$", re.IGNORECASE)


_DEGREE = re.compile(
    r"(?:jr|sr|[ivx]+|ph\.?d|m\.?d|d\.?phil|d\.?sc|m\.?sc|b\.?sc|m\.?a|b\.?a|m\.?s|b\.?s|m\.?p\.?h|mba|rn|dds|dvm|pharm\.?d|ed\.?d"
    r"|j\.?d|frcp|facp|esq|et al|prof|dr)\.?",
    re.IGNORECASE,
)


@_cleaner(
    "person", "A name as {name, given, family}: `Lovelace, Ada` is turned round, `Ada Lovelace, PhD` is left alone."
)
def _person(value: Any) -> dict[str, str] | None:
    name = _text(value)
    if name is None:
        return None
    family, comma, rest = name.partition(", ")
    given = rest.strip()
    if not comma or not given or all(_DEGREE.fullmatch(part.strip()) for part in given.split(",")):
        return {"name": name}
    return {"name": f"{given} {family}", "given": given, "family": family}


@_cleaner("pmcid", "A PubMed Central id as PMC1234567; else nothing.")
def _pmcid(value: Any) -> str | None:
    found = _PMCID.search(str(value).strip()[:200]) if isinstance(value, str | int) else None
    return f"PMC{found[1]}" if found else None


_CREATIVE = re.compile(r"creativecommons\.org/(licenses|publicdomain)/([a-z-]+)(?:/(\d\.\d))?", re.IGNORECASE)
_SHORT = re.compile(r"(?:CC|Creative Commons)[ -]+([a-z][a-z -]*?)(?:[ -]+v?(\d\.\d))?(?: .*)?", re.IGNORECASE)


@_cleaner("license", "A licence as cc-by-4.0 where it is a Creative Commons one; anything else stays.")
def _license(value: Any) -> str | None:
    text = value.strip() if isinstance(value, str) else ""
    return _licensed(text) if len(text) <= _SHORTISH else _licence_of(text)


def _licence_of(text: str) -> str | None:
    if found := _CREATIVE.search(text):
        name = {"zero": "cc0", "mark": "public-domain"}.get(found[2].lower(), f"cc-{found[2].lower()}")
        return f"{name}-{found[3]}" if found[3] else name
    if text.lower() in {"cc0", "cc-0", "cc zero"}:
        return "cc0"
    if (found := _SHORT.fullmatch(text)) and set(parts := found[1].lower().replace("-", " ").split()) <= _ELEMENTS:
        name = "cc-" + "-".join(parts)
        return f"{name}-{found[2]}" if found[2] else name
    return text or None


_ELEMENTS = frozenset({"by", "nc", "nd", "sa"})
_SHORTISH = 200
_licensed = lru_cache(maxsize=1024)(_licence_of)
"""A provider's records have a handful of licences."""

_LANGUAGES = {
    code: short
    for short, codes in {
        "ar": "ara arabic", "bg": "bul bulgarian", "ca": "cat catalan", "cs": "cze ces czech", "da": "dan danish",
        "de": "ger deu german", "el": "gre ell greek", "en": "eng english", "es": "spa spanish", "et": "est estonian",
        "eu": "baq eus basque", "fa": "per fas persian", "fi": "fin finnish", "fr": "fre fra french",
        "he": "heb hebrew", "hi": "hin hindi", "hr": "hrv scr croatian", "hu": "hun hungarian",
        "id": "ind indonesian", "is": "ice isl icelandic", "it": "ita italian", "ja": "jpn japanese",
        "ko": "kor korean", "la": "lat latin", "lt": "lit lithuanian", "lv": "lav latvian", "nl": "dut nld dutch",
        "no": "nor norwegian", "pl": "pol polish", "pt": "por portuguese", "ro": "rum ron romanian",
        "ru": "rus russian", "sk": "slo slk slovak", "sl": "slv slovenian", "sr": "srp scc serbian",
        "sv": "swe swedish", "th": "tha thai", "tr": "tur turkish", "uk": "ukr ukrainian", "vi": "vie vietnamese",
        "zh": "chi zho chinese",
    }.items()
    for code in codes.split()
}  # fmt: skip


@_cleaner("language", "A language in two letters (eng, English, en_US become en); what is not known is nothing.")
def _language(value: Any) -> str | None:
    text = value.strip().lower() if isinstance(value, str) else ""
    if len(text) == 2 and text.isascii() and text.isalpha():
        return text
    code = re.split(r"[-_]", text, maxsplit=1)[0]
    if len(code) == 2 and code.isascii() and code.isalpha():
        return code
    return _LANGUAGES.get(code)


@_cleaner(
    "known_date",
    "A date that means nothing ([[null]], n.d.) becomes nothing instead of a flaw of its record.",
    whole=True,
)
def _known_date(value: Any) -> Any:
    return value if read_instant(value) is not None else None


@_cleaner("earliest", "The earliest date of a list; those that mean nothing do not count.", whole=True)
def _earliest(value: Any) -> Any:
    dates = [
        (moment.at, -len(str(item)), item)
        for item in (cast("list[Any]", value) if isinstance(value, list) else [value])
        if (moment := read_instant(item)) is not None
    ]
    return min(dates)[2] if dates else None


@_cleaner("longest", "The longest text of a list.", whole=True)
def _longest(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    texts = [item for item in cast("list[Any]", value) if isinstance(item, str)]
    return max(texts, key=len) if texts else None


_USUAL_URL = re.compile(r"https?://[A-Za-z0-9.-]+(?:[/?#]|\Z)").match


@_cleaner("url", "An http or https URL; else nothing.")
def _url(value: Any) -> str | None:
    text = value.strip() if isinstance(value, str) else ""
    if _USUAL_URL(text):
        return text
    try:
        parts = urlsplit(text)
    except ValueError:
        return None
    return text if parts.scheme in {"http", "https"} and parts.netloc else None


@_cleaner("first", "The first item of a list; anything else stays.", whole=True)
def _first(value: Any) -> Any:
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return items[0] if items else None
    return value


@_cleaner("compact", "A list without nothings and empty texts; an empty list becomes nothing.", whole=True)
def _compact(value: Any) -> list[Any] | None:
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [item for item in items if item not in (None, "")] or None


@_cleaner("uninvert", "An inverted abstract (OpenAlex: word to its places) put back together.")
def _uninvert(value: Any) -> str | None:
    if not isinstance(value, Mapping):
        return None
    words: dict[int, str] = {}
    for word, places in cast("Mapping[str, Any]", value).items():
        if isinstance(places, list):
            for place in cast("list[Any]", places):
                if isinstance(place, int) and 0 <= place < 200_000:
                    words[place] = word
    return " ".join(words[place] for place in sorted(words)) or None
