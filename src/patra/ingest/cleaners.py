"""What a mapping may apply to a value after it was found: markup out of titles, identifiers into one form (ch. 3.3.4).

Each takes a JSON value and gives a JSON value; what it cannot make sense of becomes nothing, never a wrong value.
"""

import html
import re
from collections.abc import Callable, Mapping
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import msgspec

_LONGEST = 1_000_000


class Cleaner(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    call: Callable[[Any], Any]
    text: str


CLEANERS: dict[str, Cleaner] = {}


def _cleaner(name: str, text: str) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    def declare(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
        CLEANERS[name] = Cleaner(name=name, call=call, text=text)
        return call

    return declare


def clean(names: tuple[str, ...] | list[str], value: Any) -> Any:
    """Apply cleaners in order; nothing stays nothing."""
    for name in names:
        if value is None:
            return None
        value = CLEANERS[name].call(value)
    return value


_TAG = re.compile(r"<[^<>]{0,500}>")
_SPACE = re.compile(r"\s+")


@_cleaner("text", "Markup and entities taken out, white space made single, empty becomes nothing.")
def _text(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    plain = _TAG.sub(_gap, value[:_LONGEST])
    if "&" in plain:  # markup that was escaped once more inside XML or JSON
        plain = _TAG.sub(_gap, html.unescape(plain))
        plain = html.unescape(plain)
    return _SPACE.sub(" ", plain).strip() or None


def _gap(tag: re.Match[str]) -> str:
    """A block ends a word; inline markup does not (`H<sub>2</sub>O`)."""
    name = tag[0].strip("</> ").partition(" ")[0].lower().rpartition(":")[2]
    return " " if name in {"p", "br", "div", "li", "title", "sec", "tr", "td", "h1", "h2", "h3", "h4"} else ""


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
    return "-".join(digits[i : i + 4] for i in range(0, 16, 4))


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


@_cleaner("url", "An http or https URL; else nothing.")
def _url(value: Any) -> str | None:
    text = value.strip() if isinstance(value, str) else ""
    try:
        parts = urlsplit(text)
    except ValueError:
        return None
    return text if parts.scheme in {"http", "https"} and parts.netloc else None


@_cleaner("first", "The first item of a list; anything else stays.")
def _first(value: Any) -> Any:
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return items[0] if items else None
    return value


@_cleaner("compact", "A list without nothings and empty texts; an empty list becomes nothing.")
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
