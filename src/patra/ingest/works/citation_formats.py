"""Writes rows of works as CSL-JSON items, BibTeX entries and RIS records, for reference managers.

Rows are those of `works_export`: flat, with the date and its precision in columns of their own. What a format has no
place for is left out; nothing is invented.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

from patra.ingest.expressions.bibliography import page_range, without_degrees
from patra.ingest.works.citation_names import is_person, name_parts, without_suffix

Row = Mapping[str, Any]

CSL_TYPES: Mapping[str, str] = {
    "article": "article-journal",
    "review": "article-journal",
    "letter": "article-journal",
    "erratum": "article-journal",
    "preprint": "article",
    "conference-paper": "paper-conference",
    "book": "book",
    "chapter": "chapter",
    "thesis": "thesis",
    "report": "report",
    "dataset": "dataset",
    "software": "software",
    "peer-review": "review",
    "journal": "periodical",
}
BIBTEX_TYPES: Mapping[str, str] = {
    "article": "article",
    "review": "article",
    "letter": "article",
    "erratum": "article",
    "conference-paper": "inproceedings",
    "book": "book",
    "chapter": "incollection",
    "thesis": "phdthesis",
    "report": "techreport",
}
RIS_TYPES: Mapping[str, str] = {
    "article": "JOUR",
    "review": "JOUR",
    "letter": "JOUR",
    "erratum": "JOUR",
    "preprint": "UNPB",
    "conference-paper": "CPAPER",
    "book": "BOOK",
    "chapter": "CHAP",
    "thesis": "THES",
    "report": "RPRT",
    "dataset": "DATA",
    "software": "COMP",
}
_WITHOUT_EDITORS = frozenset({"article", "review", "letter", "erratum", "preprint"})
"""Who handled the article of a journal is no part of how it is cited."""
_PARTS = {"year": 1, "month": 2, "day": 3, "instant": 3}


def is_citable(row: Row) -> bool:
    """Whether a reference manager can do anything with it: it is there, and has a title or a DOI."""
    return not row.get("deleted") and bool(row.get("title") or row.get("doi"))


def date_parts(row: Row) -> list[int]:
    """Year, month and day, as far as they are known."""
    issued = row.get("issued")
    if not isinstance(issued, str):
        return []
    parts = [int(part) for part in issued[:10].split("-")]
    return parts[: _PARTS.get(str(row.get("issued_precision")), 1)]


def citation_key(row: Row) -> str:
    """A key in ASCII that is the same in every export: first family name, year, and the first word of the title."""
    people: list[Row] = row.get("authors") or _editors(row)
    first: Row = people[0] if people else {}
    written, _ = without_suffix(without_degrees(str(first.get("name") or "")))
    name = _ascii(str(first.get("family") or written.rpartition(" ")[2])) or "anon"
    word = next((one for one in re.findall(r"\w+", str(row.get("title") or "")) if len(one) > 3), "")
    year = "".join(str(part) for part in date_parts(row)[:1])
    key = f"{name}{year}{_ascii(word)}"
    number = str(row.get("doi") or row.get("pmid") or row.get("arxiv") or row.get("id") or row.get("key") or "")
    return f"{key}:{re.sub(r'[^A-Za-z0-9.]', '-', number)}" if number else key


_LETTERS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ð": "d", "æ": "ae", "œ": "oe", "þ": "th"})


def _ascii(text: str) -> str:
    """Letters and digits of a key: BibTeX itself reads no others."""
    plain = unicodedata.normalize("NFKD", text.casefold().translate(_LETTERS)).encode("ascii", "ignore").decode()
    return re.sub(r"\W", "", plain)


def _editors(row: Row) -> list[Row]:
    """Editors of a book, of the volume that holds a chapter or paper, of data."""
    return [] if row.get("type") in _WITHOUT_EDITORS else list(row.get("editors") or ())


_PUBLISHED_BY_PLACE = frozenset({"thesis", "report"})


def _places(row: Row) -> tuple[Any, Any]:
    """Container and publisher as reference managers have them: the server of a preprint is its publisher, and so is the
    place of a thesis or report of which no publisher is named; who publishes a book is no series of it.
    """
    container, publisher = row.get("container"), row.get("publisher")
    if row.get("type") == "preprint":
        return None, container or publisher
    if row.get("type") == "book" and container == publisher:
        return None, publisher
    if row.get("type") in _PUBLISHED_BY_PLACE and publisher in (None, container):
        return None, container
    return container, publisher


def _keywords(row: Row) -> list[str]:
    """Keywords and MeSH headings, each once."""
    return list(dict.fromkeys([*(row.get("keywords") or ()), *(row.get("mesh") or ())]))


def _list_words(words: list[str]) -> str:
    """As one text; a word with a comma of its own (`Crosses, Genetic`) makes semicolons of the commas between them."""
    return ("; " if any("," in word for word in words) else ", ").join(words)


def csl(row: Row) -> dict[str, Any]:
    """An item of CSL-JSON."""
    parts, preprint = date_parts(row), row.get("type") == "preprint"
    container, publisher = _places(row)
    item: dict[str, Any] = {
        "id": citation_key(row),
        "type": CSL_TYPES.get(str(row.get("type")), "document"),
        "title": row.get("title"),
        "author": [_csl_name(author) for author in row.get("authors") or ()],
        "editor": [_csl_name(editor) for editor in _editors(row)],
        "collection-title" if row.get("type") == "book" else "container-title": container,
        "publisher": publisher,
        "issued": {"date-parts": [parts]} if parts else None,
        "volume": row.get("volume"),
        "issue": row.get("issue"),
        "page": row.get("pages") or row.get("article_number"),  # styles know no other place for it
        "number": row.get("article_number") or (f"arXiv:{row['arxiv']}" if row.get("arxiv") and preprint else None),
        "abstract": row.get("abstract"),
        "language": row.get("language"),
        "DOI": row.get("doi"),
        "PMID": row.get("pmid"),
        "PMCID": row.get("pmcid"),
        "ISSN": _first(row, "issn"),
        "ISBN": _first(row, "isbn"),
        "URL": row.get("url"),
        "keyword": _list_words(_keywords(row)),
        "status": "retracted" if row.get("retracted") else None,
    }
    return {name: value for name, value in item.items() if value not in (None, "", [])}


def _csl_name(author: Row) -> dict[str, str]:
    parts = name_parts(author)
    return {name: str(value) for name, value in parts.items() if value} or {"literal": str(author.get("name"))}


_ESCAPES = {"\\": r"\textbackslash{}", "%": r"\%", "&": r"\&", "#": r"\#", "_": r"\_", "$": r"\$"} | {
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}
_BALANCED = str.maketrans(_ESCAPES | {"{": r"\{", "}": r"\}"})
_UNBALANCED = str.maketrans(_ESCAPES | {"{": r"\textbraceleft{}", "}": r"\textbraceright{}"})
"""BibTeX counts braces also where a backslash stands before them: one alone would end the file for it."""
_MATH = re.compile(r"(?<!\\)\$[^\s$](?:[^$]{0,200}?[^\s$])?\$(?!\d)")
_MATH_SIGNS = frozenset("\\^_{}=<>+")
_TEX_TOKEN = re.compile(
    r"\\(?:begin|end)\{(?P<environment>[^{}]*)\}|\\(?P<command>[A-Za-z@]+)|\\.|(?P<other>[%\\]|\^\^)"
)
_NO_MATH_COMMANDS = re.compile(  # they read, write or run something, or give other commands another meaning
    r"input|include(?:only|graphics)?|verbatiminput|lstinputlisting|(?:open|close)(?:in|out)|new(?:read|write)"
    r"|read(?:line)?|write|immediate|special|jobname|endinput|begin|end|document(?:class)?|usepackage|RequirePackage"
    r"|(?:end)?csname|(?:cat|lc|uc|math)code|(?:lower|upper)case|scantokens|expandafter|noexpand|[egx]?def|(?:future)?let"
    r"|(?:re)?new(?:command|environment)|providecommand|DeclareRobustCommand|after(?:assignment|group)|every(?:par|math)"
    r"|output|loop|repeat|(?:InputIf|If)FileExists|(?:direct|late)lua|luaexec|ShellEscape|pdf(?:obj|literal|filedump)"
)
_MATH_ENVIRONMENT = re.compile(r"[pbvBV]?(?:small)?matrix|array|cases|aligned|split|gathered")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def bibtex(row: Row) -> str:
    """An entry of BibTeX, in UTF-8; `%` and `&` are escaped, formulas in LaTeX stay, titles keep their capitals."""
    kind = BIBTEX_TYPES.get(str(row.get("type")), "misc")
    parts = date_parts(row)
    fields: list[tuple[str, Any]] = [
        ("author", _bibtex_authors(row)),
        ("editor", " and ".join(map(_bibtex_name, _editors(row)))),
        ("title", f"{{{_escape_value(row['title'])}}}" if row.get("title") else None),
        *_publication_fields(row, kind),
        ("year", parts[0] if parts else None),
        ("volume", _escape_value(row.get("volume"))),
        ("number", _escape_value(row.get("issue"))),
        ("pages", _escape_value(_bibtex_pages(row))),
        ("doi", _link(row.get("doi"))),
        ("eprint", row.get("arxiv")),
        ("archiveprefix", "arXiv" if row.get("arxiv") else None),
        ("issn", _first(row, "issn")),
        ("isbn", _first(row, "isbn")),
        ("language", row.get("language")),
        ("url", _link(row.get("url"))),
        ("keywords", _escape_value(_list_words(_keywords(row)))),
        ("abstract", _escape_value(row.get("abstract"))),
        ("note", "Retracted" if row.get("retracted") else None),
    ]
    lines = [f"  {name} = {{{value}}}" for name, value in fields if value not in (None, "")]
    if len(parts) > 1:  # a macro, which every style writes in its own way
        lines.insert(
            next(at for at, line in enumerate(lines) if line.startswith("  year")) + 1,
            f"  month = {_MONTHS[parts[1] - 1]}",
        )
    return f"@{kind}{{{citation_key(row)},\n" + ",\n".join(lines) + "\n}\n"


_BIBTEX_PLACES = {"article": "journal", "inproceedings": "booktitle", "incollection": "booktitle", "book": "series"}


def _publication_fields(row: Row, kind: str) -> list[tuple[str, str]]:
    """Where it stands and who published it; a thesis has a school, and a report an institution, if either is known."""
    container, publisher = _escape_value(row.get("container")), _escape_value(row.get("publisher"))
    if kind == "book" and container == publisher:
        container = ""
    owner = {"phdthesis": "school", "techreport": "institution"}.get(kind)
    if owner is not None:
        return [
            (owner, publisher or container),
            ("howpublished", container if publisher not in ("", container) else ""),
        ]
    return [(_BIBTEX_PLACES.get(kind, "howpublished"), container), ("publisher", publisher)]


_JOINED_INITIALS = re.compile(r"[A-Z]{2,3}")


def _bibtex_name(author: Row) -> str:
    """Family name first; a name whose parts are not known is BibTeX's to part, unless it looks like that of a group."""
    family, given = str(author.get("family") or ""), str(author.get("given") or "")
    if family and given and " and " not in f"{family} {given}" and "," not in family:
        if _JOINED_INITIALS.fullmatch(given) and not family.isupper():  # styles shorten `MS` to `M.`
            given = "".join(f"{letter}. " for letter in given).rstrip()
        return _escape_value(", ".join(filter(None, [family, author.get("suffix"), given])))
    name = without_degrees(str(author.get("name") or " ".join(filter(None, [given, family]))))
    if family or not is_person(name):
        return f"{{{_escape_value(name)}}}"
    if (parts := name_parts(author)).get("suffix"):
        return _escape_value(f"{parts['family']}, {parts['suffix']}, {parts['given']}")
    return _escape_value(name)


def _bibtex_authors(row: Row) -> str:
    """All that are known; `others` are those that the source has cut off."""
    names = [_bibtex_name(author) for author in row.get("authors") or ()]
    return " and ".join([*names, "others"] if names and row.get("authors_truncated") else names)


def _bibtex_pages(row: Row) -> str:
    """Ranges with two hyphens; the number of an article is none."""
    parts = [page_range(part.strip()) for part in str(row.get("pages") or "").split(",")]
    found = ", ".join(first if last is None else f"{first}--{last}" for first, last in parts)
    return found or str(row.get("article_number") or "")


def _link(value: Any) -> str | None:
    """A DOI or URL as it is; a brace or a backslash in it is written in the way of URLs."""
    return None if value is None else str(value).replace("{", "%7B").replace("}", "%7D").replace("\\", "%5C")


def _escape_value(value: Any) -> str:
    if value is None:
        return ""
    text = " ".join(str(value).split())
    table = _BALANCED if _is_balanced(text) else _UNBALANCED
    out, at = "", 0
    for formula in _MATH.finditer(text):
        if _is_formula(formula[0][1:-1]):
            out += text[at : formula.start()].translate(table) + formula[0]
            at = formula.end()
    return out + text[at:].translate(table)


def _is_formula(inside: str) -> bool:
    """LaTeX between dollars, as arXiv has it in titles (`$g_J$`), and not two prices; mathematics and nothing else."""
    looks_like_one = _is_balanced(inside) and (bool(_MATH_SIGNS & set(inside)) or inside.isalpha())
    return looks_like_one and all(map(_is_harmless, _TEX_TOKEN.finditer(inside)))


def _is_harmless(token: re.Match[str]) -> bool:
    """Neither a comment, a character in disguise (`^^5c`), an escape of the last dollar, nor a command with files."""
    environment, command = token["environment"], token["command"]
    if environment is not None:
        return _MATH_ENVIRONMENT.fullmatch(environment) is not None
    if command is not None:
        return _NO_MATH_COMMANDS.fullmatch(command) is None and "@" not in command
    return token["other"] is None


def _is_balanced(text: str) -> bool:
    depth = 0
    for one in text:
        depth += (one == "{") - (one == "}")
        if depth < 0:
            return False
    return depth == 0


def ris(row: Row) -> str:
    """A record of RIS."""
    parts = date_parts(row)
    number = row.get("article_number")
    first, last = page_range(str(row["pages"])) if row.get("pages") else (number, None)
    container, publisher = _places(row)
    lines: list[tuple[str, Any]] = [
        ("TY", RIS_TYPES.get(str(row.get("type")), "GEN")),
        ("ID", citation_key(row)),
        *(("AU", _ris_name(author)) for author in row.get("authors") or ()),
        *(("ED", _ris_name(editor)) for editor in _editors(row)),
        ("TI", row.get("title")),
        ("T2", container),
        ("PB", publisher),
        ("PY", f"{parts[0]:04}" if parts else None),
        (
            "DA",
            "/".join([f"{parts[0]:04}", *(f"{part:02}" for part in parts[1:]), *[""] * (3 - len(parts))])
            if parts
            else None,
        ),
        ("VL", row.get("volume")),
        ("IS", row.get("issue")),
        ("SP", first),
        ("EP", last),
        ("C7", number),
        ("DO", row.get("doi")),
        ("AN", row.get("pmid")),
        *(("SN", number) for number in [*(row.get("issn") or ()), *(row.get("isbn") or ())]),
        *(("KW", word) for word in _keywords(row)),
        ("LA", row.get("language")),
        ("UR", row.get("url")),
        ("L1" if _is_pdf(row) else "L2", row.get("oa_url")),
        ("AB", row.get("abstract")),
        ("N1", "Retracted" if row.get("retracted") else None),
    ]
    told = [f"{tag}  - {' '.join(str(value).split())}\r\n" for tag, value in lines if value not in (None, "")]
    return "".join([*told, "ER  - \r\n"])


_PDF = re.compile(r"(?i)[./_]pdf\b")


def _is_pdf(row: Row) -> bool:
    """Whether what can be read freely is a PDF: reference managers load L1 as one, and L2 is a page."""
    links: Iterable[Row] = row.get("full_text") or ()
    known = any(link.get("url") == row.get("oa_url") and link.get("type") == "application/pdf" for link in links)
    return known or bool(_PDF.search(str(row.get("oa_url"))))


def _ris_name(author: Row) -> str:
    parts = name_parts(author)
    return ", ".join(str(part) for part in parts.values() if part) or str(author.get("name"))


def _first(row: Row, name: str) -> str | None:
    values: Iterable[str] = row.get(name) or ()
    return next(iter(values), None)
