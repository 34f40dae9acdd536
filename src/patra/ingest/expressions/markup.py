"""Texts of people out of markup: tags and entities, formulas, and signs that nobody can see (ch. 3.3.4)."""

import html
import re
from functools import lru_cache

MAX_TEXT_CHARS = 1_000_000
_MATH = re.compile(r"<((?:mml:)?math)\b[^<>]{0,500}>[^<]*+(?:<(?!/?(?:mml:)?math\b)[^<]*+)*+</\1>")
"""A formula, which holds no other: where one is not closed, the search goes on behind it and not from its start."""
_AROUND_TAG = re.compile(r"(?:(?<!\s)\s++)?(<[^<>]{1,1000}>)\s*+")
"""Formulas are laid out with white space between their elements, which is none of the formula's."""

_TAG = re.compile(
    r"<(?:/\s*[A-Za-z][\w:.-]*\s*|!--[^<>]{0,500}--"
    r"|[A-Za-z][\w:.-]{0,40}(?:\s+[\w:.-]{1,60}\s*=\s*(?:\"[^\"<>]{0,500}\"|'[^'<>]{0,500}'|[^\s\"'<>=]{1,200})){0,20}"
    r"\s*/?)>"
)
"""A tag, and nothing that only looks like one: `p < 0.05 and q > 3` stays."""


def plain_text(value: str) -> str | None:
    """Markup and entities taken out, white space made single; nothing of an empty text."""
    if value.isalnum() and len(value) <= MAX_TEXT_CHARS:  # one word
        return value
    plain = value[:MAX_TEXT_CHARS]
    if "<" in plain:
        if "math" in plain:
            plain = _MATH.sub(_without_layout, plain)
        plain = _TAG.sub(_gap, _SLANTED.sub(_apart, plain))
    if "&" in plain:  # markup that was escaped once more inside XML or JSON
        plain = _TAG.sub(_gap, _SLANTED.sub(_apart, html.unescape(plain)))
        plain = html.unescape(plain)
    if not plain.isascii():
        plain = _UNPRINTED.sub(_printable_sign, plain)
    if len(plain) > _FEW_CHARS and plain.isprintable():  # no white space but spaces
        plain = plain.strip(" ")
        if "  " not in plain:  # nothing left to do, at half the price of doing it
            return plain or None
    return " ".join(plain.split()) or None


_FEW_CHARS = 12


def only_paragraph(text: str) -> str | None:
    """The text of its only element, a paragraph, with the white space that its tags stand for.

    An abstract is mostly that, and looking for what else it may hold costs more than all else that is done to it.
    """
    for begin, end in _PARAGRAPHS:
        if text.startswith(begin):
            alone = text.endswith(end) and text.count("<") == 2 and "\\n" not in text  # its two tags
            return f" {text[len(begin) : -len(end)]} " if alone else None
    return None


_PARAGRAPHS = (("<jats:p>", "</jats:p>"), ("<p>", "</p>"))

_SLANTED = re.compile(r"<(i|em|(?:jats:)?italic)>([^<>]{3,200})</\1>")
_BEGINS_WORD = re.compile(r"[a-zß-öø-ÿ]{2}")
_ENDS_WORD = re.compile(r"[^\W\d_][a-zß-öø-ÿ]$")


def _apart(slanted: re.Match[str]) -> str:
    """Deposits may lose spaces around italics (`in<i>PRCC-TFE3</i>fusion`); `d<i>N</i>` and `<i>lac</i>Z` have none."""
    whole, (start, end), inside = slanted.string, slanted.span(), slanted[2]
    before = " " if inside[0].isalnum() and _ENDS_WORD.search(whole[max(0, start - 2) : start]) else ""
    after = " " if inside[-1].isalnum() and _BEGINS_WORD.match(whole, end) else ""
    return f"{before}{inside}{after}"


_UNPRINTED = re.compile("[\u0080-\u009f\u00ad\u200b\u2060\ufeff]")


def _printable_sign(sign: re.Match[str]) -> str:
    """Quotes and dashes of Windows where controls stand; soft hyphens and spaces without width are nothing."""
    return sign[0].encode("latin-1").decode("cp1252", "ignore") if sign[0] < "\u00a0" else ""


def _without_layout(formula: re.Match[str]) -> str:
    return _AROUND_TAG.sub(r"\1", formula[0])


def _gap(tag: re.Match[str]) -> str:
    """A block ends a word; inline markup does not (`H<sub>2</sub>O`)."""
    return _gap_of(tag[0]) if tag.end() - tag.start() <= _MAX_KNOWN_TAG_CHARS else _gap_of.__wrapped__(tag[0])


_MAX_KNOWN_TAG_CHARS = 100


@lru_cache(maxsize=1024)
def _gap_of(tag: str) -> str:
    """A provider's texts have a handful of tags."""
    name = _NAME.sub("", tag).lower().rpartition(":")[2]
    return " " if name in _BLOCKS else ""


_NAME = re.compile(r"^<\s*/?\s*|[\s/>].*$", re.DOTALL)
_BLOCKS = frozenset(
    {"p", "br", "div", "li", "title", "sec", "tr", "td", "th", "ul", "ol", "blockquote", "pre", "list-item"}
    | {"h1", "h2", "h3", "h4", "h5", "h6"}
)
