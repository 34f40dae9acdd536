"""Identifiers of works, people and organisations in one form each, whatever prefix or URL they came with.

What is none becomes None, never a wrong one.
"""

import re
from typing import Any
from urllib.parse import unquote

_DOI = re.compile(r"10\.\d{4,9}/\S+")
_IN_ITS_FORM = re.compile(r"10\.[0-9]{4,9}/[!-$&-@\[-~]{0,1900}[!-$&-+\-/-:<-@\[-~]").fullmatch
"""Of ASCII without capitals and `%`, and no `.`, `,` or `;` at the end: so most are."""


def doi(value: Any) -> str | None:
    """A DOI in its bare form and small letters, whatever URL or prefix it came with; else nothing."""
    if not isinstance(value, str):
        return None
    if _IN_ITS_FORM(value):
        return value
    text = value.strip()[:2000]
    if "%" in text and "doi.org" in text.lower():
        text = unquote(text)
    found = _DOI.search(text)
    return _until_closed(found[0], text[: found.start()]).rstrip(".,;").lower() if found else None


_CLOSED_BY = {"(": ")", "[": "]", "{": "}", "<": ">", "⟨": "⟩", '"': '"', "“": "”", "«": "»"}


def _until_closed(doi: str, before: str) -> str:
    """A DOI in a sentence ends where a bracket closes that was opened before it: `(doi:10.1/x(2)).`."""
    for opening in _CLOSED_BY.keys() & set(before):
        depth, closing = 0, _CLOSED_BY[opening]
        for at, sign in enumerate(doi):
            depth += (sign == opening != closing) - (sign == closing)
            if depth < 0:
                doi = doi[:at]
                break
    return doi


def doi_key(value: Any) -> str | None:
    """A DOI with its kind, as references and relations have it: `doi:10.1/x`."""
    found = doi(value)
    return None if found is None else f"doi:{found}"


def pmid_key(value: Any) -> str | None:
    """A PubMed id with its kind: `pmid:29456894`."""
    found = re.search(r"\d+", str(value)[:200]) if isinstance(value, str | int) else None
    return f"pmid:{found[0]}" if found else None


def openalex_key(value: Any) -> str | None:
    """An OpenAlex id with its kind: `openalex:W2741809807`."""
    found = re.search(r"W\d{1,20}$", value[:200]) if isinstance(value, str) else None
    return f"openalex:{found[0]}" if found else None


_ISSN = re.compile(r"(?<!\d)(\d{4})-?(\d{3}[\dXx])(?!\d)")


def issn(value: Any) -> str | None:
    """An ISSN as 1234-567X, out of a prefix or a URL too; else nothing."""
    found = _ISSN.search(value[:200]) if isinstance(value, str) else None
    return f"{found[1]}-{found[2].upper()}" if found else None


def isbn(value: Any) -> str | None:
    """An ISBN without its hyphens; else nothing."""
    plain = value[:200].replace("-", "").replace(" ", "") if isinstance(value, str) else ""
    found = re.search(r"(?<!\d)(97[89]\d{10}|\d{9}[\dXx])(?!\d)", plain)
    return found[1].upper() if found else None


def ror(value: Any) -> str | None:
    """A ROR id as https://ror.org/…; else nothing."""
    found = (
        re.search(r"(?:^|ror\.org/)(0[a-z0-9]{8})$", value.strip().lower()[:200]) if isinstance(value, str) else None
    )
    return f"https://ror.org/{found[1]}" if found else None


_ORCID_URL = re.compile(r"https?://orcid\.org/([0-9]{4}-[0-9]{4}-[0-9]{4}-[0-9]{3}[0-9X])").fullmatch
_ORCID = re.compile(r"\b\d{4}-?\d{4}-?\d{4}-?\d{3}[\dXx]\b")


def orcid(value: Any) -> str | None:
    """An ORCID iD as 0000-0000-0000-0000; else nothing."""
    if isinstance(value, str) and (usual := _ORCID_URL(value)):
        return usual[1]
    found = _ORCID.search(value[:200]) if isinstance(value, str) else None
    if found is None:
        return None
    digits = found[0].replace("-", "").upper()
    return f"{digits[:4]}-{digits[4:8]}-{digits[8:12]}-{digits[12:]}"


_ARXIV = re.compile(r"(\d{4}\.\d{4,5}|[a-z-]+(?:\.[A-Z]{2})?/\d{7})(v\d+)?", re.IGNORECASE)


def arxiv(value: Any) -> str | None:
    """An arXiv id without its version; else nothing."""
    found = _ARXIV.search(value[:200]) if isinstance(value, str) else None
    return found[1] if found else None
