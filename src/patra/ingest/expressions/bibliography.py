"""Turns what providers write of people, pages, subjects, grants, publishers, licences and languages into one form.

Pure rules behind the cleaners.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, cast

MAX_ABSTRACT_WORDS = 200_000
_DEGREE = re.compile(
    r"(?:jr|sr|[ivx]{2,}|ph\.?d|m\.?d|d\.?phil|d\.?sc|m\.?sc|b\.?sc|m\.?a|b\.?a|m\.?s|b\.?s|m\.?p\.?h|mba|rn|dds|dvm|pharm\.?d|ed\.?d"
    r"|j\.?d|frcp|facp|esq|et al|prof|dr)\.?",
    re.IGNORECASE,
)
_INITIALS = re.compile(r"(?:[A-Z]\.?){1,3}")
_AND_OTHERS = re.compile(r"[ ,;]+et\.? al\.?$", re.IGNORECASE)


_ORGANISATION = re.compile(
    r"(?i)\b(?:universit\w+|institut\w*|laborator\w+|departments?|divisions?|agency|consortium|collaboration|committee"
    r"|societ[yé]|association|foundation|cent(?:er|re)|ministry|museum|hospital|college|bureau|council)\b"
)
_INITIAL_FIRST = re.compile(r"[A-Z]\. ?\w")
"""`J. Dupont, M. Curie`: two people, and no family name."""


def person(name: str) -> dict[str, str] | None:
    """A name as {name, given, family}: `Lovelace, Ada` is turned round, `Ada Lovelace, PhD` is left alone.

    So is an organisation within another: `Environmental Sciences Division, Oak Ridge National Laboratory`. One word
    alone before the comma is a family name, whatever it means: `Bureau, Thomas E.`, `Hospital, Frédéric`.
    """
    whole = _AND_OTHERS.sub("", name.strip(" ,;")) if name.rstrip(" .,;").endswith(" al") else name.strip(" ,;")
    family, comma, rest = whole.partition(", ")
    parts = [part.strip() for part in rest.split(",") if part.strip()]
    given, after = (parts[0], parts[1:]) if parts else ("", [])
    alone = (
        " " not in family and _INITIALS.fullmatch(given) and given.rstrip(".").lower() not in {"jr", "sr", "ii", "iii"}
    )
    if (
        not comma
        or not given
        or _ORGANISATION.search(whole if " " in family else rest)
        or _INITIAL_FIRST.match(family)
        or (not (alone and not after) and all(map(_DEGREE.fullmatch, parts)))
    ):
        return {"name": whole} if whole else None
    if after and not all(map(_DEGREE.fullmatch, after)):
        if " " in family and all(" " in part for part in parts):
            return {"name": whole}  # several people in one text: nobody can say which name is whose
        plain = all(map(_INITIALS.fullmatch, after))  # `El-Kassaby, Yousry, A.`
        if not plain and _INITIALS.fullmatch(given):
            return {"name": whole}  # `Smith, J., Doe, K.`
        given, after = (" " if plain else ", ").join(parts), []
    behind = "".join(f", {part}" for part in after)
    return {"name": f"{given} {family.strip(' ,')}{behind}", "given": given, "family": family.strip(" ,")}


def without_degrees(name: str) -> str:
    """`Harvey A. Risch, MD, PhD` as it is cited: without what only follows a comma and is a degree."""
    first, *after = name.split(", ")
    return first if after and all(map(_DEGREE.fullmatch, after)) else name


_LETTERS_AT_END = re.compile(r"(.+) ([^\W\d_](?:-?[^\W\d_]){0,3})")


def surname_first(name: str) -> dict[str, str]:
    """A name as indexes write it, with initials at its end: `Vázquez-Arreguín K`, `Thiery JP`; a group has none."""
    found = _LETTERS_AT_END.fullmatch(name)
    if found is None or not found[2].isupper():
        return {"name": name}
    return {"name": f"{found[2]} {found[1]}", "given": found[2], "family": found[1]}


_NOTHING = frozenset({"", "-"})


def align_lists(lists: Any) -> list[dict[str, Any]] | None:
    """Lists whose places belong together (`authors`, `affiliations`) as items; the first one tells how many there are.

    A list of another length is left out: nobody can say what belongs to whom. `-` and empty texts are nothing; several
    affiliations of one author are parted by semicolons. Those that name their author themselves (HAL) go by the name.
    """
    sides: Mapping[str, Any] = cast("Mapping[str, Any]", lists) if isinstance(lists, Mapping) else {}
    columns = {name: cast("list[Any]", side) for name, side in sides.items() if isinstance(side, list)}
    owned = _owned_affiliations(columns.get("affiliation", ()))
    if owned:
        del columns["affiliation"]
    places = len(next(iter(columns.values()), ()))
    items: list[dict[str, Any]] = []
    for at in range(places):
        item: dict[str, Any] = {}
        for name, column in columns.items():
            value = column[at] if len(column) == places else None
            if isinstance(value, Mapping):  # a person in parts
                item |= cast("Mapping[str, Any]", value)
            elif value is not None and value not in _NOTHING:
                item[name] = [part.strip() for part in value.split(";")] if name == "affiliation" else value
        if parts := [item[part] for part in ("given", "family") if part in item]:
            item.setdefault("name", " ".join(parts))
        items.append(item)
    names = Counter(item.get("name") for item in items)
    for item in items:
        name = item.get("name")
        if name in owned and names[name] == 1:  # of two of one name nobody can say which
            item["affiliation"] = owned[name]
    return [item for item in items if item] or None


def _owned_affiliations(entries: Iterable[Any]) -> dict[str, list[str]]:
    """Affiliations by their author's name, from texts that hold both: `7_FacetSep_NAME_JoinSep_9_FacetSep_PLACE`."""
    found: dict[str, list[str]] = {}
    for entry in entries:
        author, _, place = entry.partition("_JoinSep_") if isinstance(entry, str) else ("", "", "")
        if told := " ".join(place.partition("_FacetSep_")[2].split()):
            found.setdefault(author.partition("_FacetSep_")[2], []).append(told)
    return found


_PUBLISHER_ITEM = re.compile(r"S\d{4}-?\d{3}[\dX]\(\d\d\)\d{5}-?[\dX]", re.IGNORECASE)
"""The publisher's number of an article that has no pages yet (PII), which indexes write in their place."""
_DASHES = re.compile(r"\s*(?:--+|[\u2010-\u2015\u2212-])\s*")
_DASH = re.compile("[\u2010-\u2015\u2212]")
_NO_PAGES = frozenset({"n/a", "na", "null", "undefined", "none"})
_NUMBERS = re.compile(r"([0-9]+)(?:-([0-9]+))?").fullmatch


def pages(text: str) -> str | None:
    """Pages as `253-277`: one hyphen, no `pp.`; what only stands in their place is nothing."""
    if numbers := _NUMBERS(text):  # so it is with most: nothing below changes them
        first, last = numbers.groups()
        if last is None or last == first:
            return first
        return text if len(last) >= len(first) else f"{first}-{_last_page(first, last)}"
    plain = re.sub(r"^\s*pp?\.?\s+(?=\w)", "", " ".join(text.split()), flags=re.IGNORECASE)
    plain = re.sub(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", "", plain)  # J-STAGE: _2304-1_-_2304-8_
    plain = _DASHES.sub("-", plain).strip(" -,;.")
    if not plain or _PUBLISHER_ITEM.fullmatch(plain):
        return None
    first, last = page_range(plain)
    if {first.lower(), (last or first).lower()} <= _NO_PAGES:
        return None
    if last is None:
        return plain
    return first if first == last else f"{first}-{_last_page(first, last)}"


_PAGE = re.compile(r"([A-Za-z]*)([0-9]+)").fullmatch


def _last_page(first: str, last: str) -> str:
    """The last page in full: indexes write `444-58` and `S139-47` for 444-458 and S139-S147."""
    begin, end = _PAGE(first), _PAGE(last)
    if begin is None or end is None or end[1] not in ("", begin[1]) or len(end[2]) >= len(begin[2]):
        return last
    whole = begin[2][: -len(end[2])] + end[2]
    return begin[1] + whole if int(whole) > int(begin[2]) else last


def page_range(text: str) -> tuple[str, str | None]:
    """First and last page. The hyphen in the middle parts them: `2304-1-2304-8`, but not `jmg-2025-110769`."""
    parts = text.split("-")
    if len(parts) % 2 or "," in text:
        return text, None
    half = len(parts) // 2
    return "-".join(parts[:half]), "-".join(parts[half:])


_NUMBER = r"[\w./-]{1,20}"
_JOURNAL_VOLUME = rf"(?:vol(?:ume|umen)?|bd|band|t|tom[eo]?|v|cilt)[. ]\s*(?P<volume>{_NUMBER}?)"
_JOURNAL_ISSUE = rf"(?:no|nr|n\u00fam|num|n|issue|iss|heft|h|\u2116)[.\u00b0\u00ba ]\s*(?P<issue>{_NUMBER}?)"
_JOURNAL_PAGES = r"(?P<pages>[\w.]{1,15}(?:\s*[-\u2013]\s*[\w.]{1,15})?)"
_PRINTED = (
    # Open Journal Systems: `Annals of Fog; Vol. 7 No. 2 (2012): Lamps; 23-44`, `Annals of Fog; No 1 (2013)`
    re.compile(
        rf"(?P<container>[^;]{{2,300}});\s*(?:{_JOURNAL_VOLUME})?,?\s*(?:{_JOURNAL_ISSUE})?\s*(?:\(?(?:19|20)\d\d\)?)?"
        rf"(?::[^;]{{0,300}})?(?:;\s*{_JOURNAL_PAGES})?",
        re.IGNORECASE,
    ),
    # `GMS Medizin; 12(3):Doc25`
    re.compile(
        rf"(?P<container>[^;]{{2,300}}); (?P<volume>{_NUMBER})(?:\((?P<issue>{_NUMBER})\))?:(?P<pages>[\w-]{{1,30}})"
    ),
    # Invenio: `Evolution: 29 (1975) no. 4, pp. 750-762`
    re.compile(
        rf"(?P<container>.{{2,300}}): (?P<volume>{_NUMBER}) \(\d{{4}}\)(?: no\. (?P<issue>{_NUMBER}),)?"
        r" pp\. (?P<pages>[\w-]{1,30})"
    ),
    # `MIPO Online, yr. 2012, vol. 7, iss. 2, pg. 23-44`
    re.compile(
        rf"(?P<container>.{{2,300}}), yr\. \d{{4}}, vol\. (?P<volume>{_NUMBER}), iss\. (?P<issue>{_NUMBER}),"
        r" pg\. (?P<pages>[\w-]{1,30})"
    ),
)


def parse_printed(text: str) -> dict[str, str]:
    """Where a work is printed, in one text, as {container, volume, issue, pages}; another text is the container."""
    for form in _PRINTED:
        if found := form.fullmatch(text):
            parts = {name: part.strip() for name, part in found.groupdict().items() if part}
            return {**parts, **({"pages": whole} if (whole := pages(parts.get("pages", ""))) else {})}
    return {"container": text}


_MOST_COMMAS = 3
_LIST_COMMA = ", "


def terms(texts: Iterable[str]) -> list[str] | None:
    """Keywords, each once: several in one text are parted at their semicolons, or at many commas.

    A heading turned round has few of those: `Receptors, Antigen, T-Cell, gamma-delta`. A comma without a space behind
    it belongs to its word: `1,2,3,4,6-penta-O-galloyl-beta-D-glucose`.
    """
    found: dict[str, str] = {}
    for text in texts:
        for part in text.split(_LIST_COMMA if ";" not in text and text.count(_LIST_COMMA) > _MOST_COMMAS else ";"):
            if term := part.strip(" ,"):
                found.setdefault(term.casefold(), term)
    return list(found.values()) or None


def grants(entries: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]] | None:
    """Grants of one funder put together: each funder once, with all its awards.

    The same name under another id is the same funder: lists of one record name it by different registries.
    """
    found: list[dict[str, Any]] = []
    places: dict[Any, dict[str, Any]] = {}
    for entry in entries:
        keys = [key for key in (entry.get("id"), entry.get("name")) if key is not None]
        if not keys:
            continue
        known = next((places[key] for key in keys if key in places), None)
        if known is None:
            known = {name: value for name, value in entry.items() if name != "awards"}
            found.append(known)
        places |= {key: places.get(key, known) for key in keys}
        awards = [*known.get("awards", ()), *(entry.get("awards") or ())]
        if awards:
            known["awards"] = list(
                dict.fromkeys(_DASH.sub("-", award) if isinstance(award, str) else award for award in awards)
            )
    return found or None


_ABBREVIATION = re.compile(
    r"(?:^|[\s.(])(?:[A-Z]|St|Ste|Mt|Ft|Dr|Mr|Mrs|Prof|Dept|Univ|Inst|Natl|Assn|Assoc|Bros|Inc|Ltd|Co|Corp)$"
)
_MAX_ABBREVIATION_CHARS = 8
_ADDRESS = re.compile(r"\d|\b(?:P\. ?O\. |PO Box|(?:Available|Tel|Fax|Web ?site|e-?mail)\b)", re.IGNORECASE)


def publisher_name(text: str) -> str:
    """The name before an address; the full stop of an abbreviation (`U.S. Department`, `St. Martin's`) ends none.

    What follows a name is an address where it begins as one or, behind a whole word, holds the signs of one.
    """
    signs = [found.start() for found in _ADDRESS.finditer(text)]
    last = signs[-1] if signs else -1
    for stop in re.finditer(r"\. ", text[: last + 1]):
        at, rest = stop.span()
        shortened = _ABBREVIATION.search(text, max(0, at - _MAX_ABBREVIATION_CHARS), at) is not None
        if _ADDRESS.match(text, rest) or not (shortened or text[rest].islower()):
            return text[: at + 1] if shortened else text[:at]
    return text


_SHORTENED_END = re.compile(r"(?:\.[A-Za-z]?|\b(?:al|etc|nov|spp?|var|Inc|Ltd|Co|Jr|Sr))\.$")


def without_full_stop(title: str) -> str:
    """A title without the stop that an index sets behind it; that of an abbreviation, and three dots, stay."""
    return title if not title.endswith(".") or _SHORTENED_END.search(title) else title[:-1].rstrip()


_CREATIVE = re.compile(r"creativecommons\.org/(licenses|publicdomain)/([a-z-]+)(?:/(\d\.\d))?", re.IGNORECASE)
_SHORT = re.compile(
    r"(?:CC|Creative Commons)[ -]+((?:by|nc|nd|sa)(?:[ -]+(?:by|nc|nd|sa))*)(?:[ -]+v?(\d\.\d))?(?: .*)?", re.IGNORECASE
)
_RUN_TOGETHER = re.compile(r"cc(by(?:nc|nd|sa)*)", re.IGNORECASE)


def licence(text: str) -> str | None:
    """A licence of Creative Commons as `cc-by-4.0`; anything else stays."""
    if found := _CREATIVE.search(text):
        name = {"zero": "cc0", "mark": "public-domain"}.get(found[2].lower(), f"cc-{found[2].lower()}")
        return f"{name}-{found[3]}" if found[3] else name
    if text.lower() in {"cc0", "cc-0", "cc zero", "cc-zero"}:
        return "cc0"
    if found := _RUN_TOGETHER.fullmatch(text):
        return "cc-" + "-".join(re.findall("..", found[1].lower()))
    if found := _SHORT.fullmatch(text):
        name = "cc-" + "-".join(found[1].lower().replace("-", " ").split())
        return f"{name}-{found[2]}" if found[2] else name
    return text or None


def uninvert(value: Any) -> str | None:
    """An inverted abstract (word to its places) put back together."""
    if not isinstance(value, Mapping):
        return None
    words: dict[int, str] = {}
    for word, places in cast("Mapping[str, Any]", value).items():
        if isinstance(places, list):
            for place in cast("list[Any]", places):
                if isinstance(place, int) and 0 <= place < MAX_ABSTRACT_WORDS:
                    words[place] = word
    return " ".join(words[place] for place in sorted(words)) or None


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


def language(value: str) -> str | None:
    """A language in two letters; nothing where it is not known."""
    text = value.strip().lower()
    if len(text) == 2 and text.isascii() and text.isalpha():
        return text
    code = re.split(r"[-_]", text, maxsplit=1)[0]
    if len(code) == 2 and code.isascii() and code.isalpha():
        return code
    return _LANGUAGES.get(code)
