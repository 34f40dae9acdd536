"""What a mapping may apply to a value after it was found: markup out of titles, identifiers into one form (ch. 3.3.4).

Each takes a JSON value and gives a JSON value; what it cannot make sense of becomes nothing, never a wrong value.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec

from patra.ingest.expressions import bibliography
from patra.ingest.expressions.markup import MAX_TEXT_CHARS, only_paragraph, plain_text
from patra.ingest.vocabulary import identifiers
from patra.ingest.vocabulary.instants import read_instant

WORD_CHARS = 100
KNOWN_CHARS = 128
KNOWN_TEXTS = 4096


class Cleaner(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    call: Callable[[Any], Any]
    text: str
    whole: bool = False
    """Whether it wants a list as a whole; the others are applied to each item of one."""
    keeps_words: bool = False
    """Whether it leaves a text of fewer than WORD_CHARS letters and digits as it is."""
    known: Callable[[str], Any] | None = None
    """The same for a text of up to KNOWN_CHARS characters, remembering the last ones: journals, publishers, names and
    affiliations come again from record to record.
    """


CLEANERS: dict[str, Cleaner] = {}


def _cleaner(
    name: str, text: str, *, whole: bool = False, keeps_words: bool = False, repeats: bool = False
) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """`repeats`: what it gives is a text or nothing, and the texts that it is given come again."""

    def declare(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
        known = lru_cache(maxsize=KNOWN_TEXTS)(call) if repeats else None
        CLEANERS[name] = Cleaner(name=name, call=call, text=text, whole=whole, keeps_words=keeps_words, known=known)
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


@_cleaner(
    "text",
    "Markup and entities taken out, white space made single, empty becomes nothing.",
    keeps_words=True,
    repeats=True,
)
def _text(value: Any) -> str | None:
    return plain_text(value) if isinstance(value, str) else None


_HEADING = re.compile(
    r"^\s*((?:<(?:jats:)?(?:p|div|sec)>\s*)*)<((?:jats:)?title|h[1-6]|b|strong)>\s*"
    r"(?:abstract|summary|resumo|r[eé]sum[eé]n?|zusammenfassung)[.:]?\s*</\2>",
    re.IGNORECASE,
)


_PLAIN_HEADING = re.compile(
    r"^\s*(?:abstract|summary|resumo|r[eé]sum[eé]n?|zusammenfassung)(?:\s*[:.]\s+|[^\S\n]*\n\s*)(?=\S)", re.IGNORECASE
)
"""A heading is a line of its own, or ends with a colon: `Abstract algebra` begins an abstract like any other."""

_FULL_TEXT_NOTE = re.compile(
    r"^\s*(?:Item does not contain fulltext|Contains fulltext ?: ?[^\s()]{1,80}(?: \([^()]{1,40}\)){0,2})\s*"
)
"""What the repository of Radboud University writes before an abstract, or in the place of one."""

_SECTION_HEADING = re.compile(r"<((?:jats:)?title|h[1-6])>\s*([^<>]{0,99}[^\s<>:.?!])\s*[:.]?\s*</\1>")
"""The title of a section, such as Background; a colon parts it from the text behind it."""
_ESCAPED_LINE = re.compile(r"\\n(?=\s|$)")  # a line break that was escaped twice; LaTeX such as nu stays


@_cleaner("abstract", "As text, without the heading that only says that this is the abstract.")
def _abstract(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    text = value[:MAX_TEXT_CHARS]
    if (paragraph := only_paragraph(text)) is not None:  # has no heading: so it is with many
        return _no_link(plain_text(paragraph))
    if "<" in text and (heading := _HEADING.match(text)):
        text = text[heading.end() :]
    if heading := _PLAIN_HEADING.match(text):
        text = text[heading.end() :]
    if "fulltext" in text and (note := _FULL_TEXT_NOTE.match(text)):
        text = text[note.end() :]
    if "title>" in text or "</h" in text:
        text = _SECTION_HEADING.sub(r"<p>\2:</p>", text)
    return _no_link(_text(_ESCAPED_LINE.sub(" ", text) if "\\n" in text else text))


def _no_link(text: str | None) -> str | None:
    """A link is not an abstract."""
    return None if text is None or (" " not in text and _USUAL_URL(text)) else text


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


for _name, _about, _call in (
    (
        "doi",
        "A DOI in its bare form and small letters, whatever URL or prefix it came with; else nothing.",
        identifiers.doi,
    ),
    ("doi_key", "A DOI with its kind, as references and relations have it: `doi:10.1/x`.", identifiers.doi_key),
    ("pmid_key", "A PubMed id with its kind: `pmid:29456894`.", identifiers.pmid_key),
    ("openalex_key", "An OpenAlex id with its kind: `openalex:W2741809807`.", identifiers.openalex_key),
    ("issn", "An ISSN as 1234-567X, out of a prefix or a URL too; else nothing.", identifiers.issn),
    ("isbn", "An ISBN without its hyphens; else nothing.", identifiers.isbn),
    ("ror", "A ROR id as https://ror.org/…; else nothing.", identifiers.ror),
    ("orcid", "An ORCID iD as 0000-0000-0000-0000; else nothing.", identifiers.orcid),
    ("arxiv", "An arXiv id without its version; else nothing.", identifiers.arxiv),
):
    _cleaner(_name, _about, repeats=_name in {"issn", "ror"})(_call)


@_cleaner("digits", "The first run of digits (a PMID out of a URL); else nothing.")
def _digits(value: Any) -> str | None:
    found = (
        re.search(r"\d+", str(value)[:200]) if isinstance(value, str | int) and not isinstance(value, bool) else None
    )
    return found[0] if found else None


_PMCID = re.compile(r"(?:^|PMC|/)(\d{1,9})/?$", re.IGNORECASE)


@_cleaner(
    "person", "A name as {name, given, family}: `Lovelace, Ada` is turned round, `Ada Lovelace, PhD` is left alone."
)
def _person(value: Any) -> dict[str, str] | None:
    name = _text(value)
    return None if name is None else bibliography.person(name)


@_cleaner("surname_first", "A name with initials at its end, `Thiery JP`, as {name, given, family}; others stay.")
def _surname_first(value: Any) -> Any:
    return bibliography.surname_first(name) if isinstance(value, str) and (name := _text(value)) else value


@_cleaner("homonym", "A name without the number that distinguishes namesakes: `Xiaopeng Zhang 0009`.")
def _homonym(value: Any) -> str | None:
    name = _text(value)
    return None if name is None else re.sub(r" \d{4}$", "", name)


@_cleaner(
    "bracketed", "A name with its ids in brackets, `Piwowar, Heather [orcid:…]`, as {name, given, family, orcid}."
)
def _parse_bracketed(value: Any) -> dict[str, str] | None:
    if not isinstance(value, str):
        return None
    plain, _, ids = value[:2000].partition("[")
    found, orcid = _person(plain), identifiers.orcid(ids)
    return None if found is None else {**found, "orcid": orcid} if orcid else found


@_cleaner("pages", "Pages as 253-277, with one hyphen and without `pp.`; a publisher's item number is none.")
def _pages(value: Any) -> str | None:
    if type(value) is str and len(value) < WORD_CHARS and value.replace("-", "", 1).isdecimal():
        return bibliography.pages(value)  # as it would be as text: so it is with most
    text = str(value) if type(value) is int else _text(value)
    return None if text is None else bibliography.pages(text)


@_cleaner("printed", "Where it is printed, `Annals; Vol. 7 No. 2 (2012); 23-44`, as {container, volume, issue, pages}.")
def _parse_printed(value: Any) -> dict[str, str] | None:
    text = _text(value)
    return None if text is None else bibliography.parse_printed(text[:2000])


@_cleaner("numbering", "The number of a volume or issue; `null`, `n/a` and dashes are none.", repeats=True)
def _numbering(value: Any) -> str | None:
    text = str(value) if type(value) is int else _text(value)
    return None if text is None or text.lower().strip("-. ") in {"", "null", "n/a", "na", "none"} else text


@_cleaner("terms", "Keywords, each once; several in one text are parted at semicolons or many commas.", whole=True)
def _terms(value: Any) -> list[str] | None:
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    return bibliography.terms(text for item in items if (text := _text(item)) is not None)


@_cleaner("grants", "Grants of one funder put together: [{name, id, awards}] with each funder once.", whole=True)
def _grants(value: Any) -> list[dict[str, Any]] | None:
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    return bibliography.grants(cast("Mapping[str, Any]", item) for item in items if isinstance(item, Mapping))


@_cleaner("isbd", "Text without the punctuation that ends a part of a catalogue card: `Fog :`, `A study /`.")
def _isbd(value: Any) -> str | None:
    text = _text(value)
    return None if text is None else re.sub(r"\s+(?=[:;] )", "", re.sub(r"[\s/:;,=]+$", "", text)) or None


@_cleaner("card_date", "The date of a catalogue card without its signs: `c1843.`, `[1843]`, `©2001`.")
def _card_date(value: Any) -> str | None:
    return None if (text := _text(value)) is None else re.sub(r"^[\[(©cp ]+(?=\d)|[\])?.,; ]+$", "", text) or None


@_cleaner(
    "full_stop", "A title without the full stop that an index sets behind it; that of `sp. nov.` or `U.S.` stays."
)
def _without_full_stop(value: Any) -> str | None:
    title = _text(value)
    return None if title is None else bibliography.without_full_stop(title) or None


@_cleaner("unnumbered", "A name without a number in brackets at its end: `Mihai G Netea (15649)`.")
def _drop_number(value: Any) -> str | None:
    name = _text(value)
    return None if name is None else re.sub(r"\s*\(\d+\)$", "", name) or None


@_cleaner("publisher", "The name of a publisher without the address behind it: `Fog Press. 5 Main Street, Lamp, NY`.")
def _publisher(value: Any) -> str | None:
    return None if (text := _text(value)) is None else bibliography.publisher_name(text) or None


@_cleaner("pmcid", "A PubMed Central id as PMC1234567; else nothing.")
def _pmcid(value: Any) -> str | None:
    found = _PMCID.search(str(value).strip()[:200]) if isinstance(value, str | int) else None
    return f"PMC{found[1]}" if found else None


@_cleaner("license", "A licence as cc-by-4.0 where it is a Creative Commons one; anything else stays.", repeats=True)
def _license(value: Any) -> str | None:
    return bibliography.licence(value.strip() if isinstance(value, str) else "")


@_cleaner(
    "language",
    "A language in two letters (eng, English, en_US become en); what is not known is nothing.",
    repeats=True,
)
def _language(value: Any) -> str | None:
    return bibliography.language(value) if isinstance(value, str) else None


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
    text = value.strip().replace("&amp;", "&") if isinstance(value, str) else ""
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


_cleaner("aligned", "Lists side by side, {name: […], orcid: […]}, as one list of items.", whole=True)(
    bibliography.align_lists
)
_cleaner("uninvert", "An inverted abstract (OpenAlex: word to its places) put back together.")(bibliography.uninvert)
