"""OpenAlex as it behaves in the recordings: inverted abstracts, a daily budget in the headers, one cursor too many.

After the last page there is one more cursor; the page behind it is empty and its cursor is null.
"""

import base64
from collections.abc import Mapping
from datetime import date
from html import unescape
from typing import Any
from urllib.parse import unquote

import msgspec

from patra.demo.providers import Library, Paper, filters_of
from patra.demo.providers_pubmed import Reply

MAX_PAGE_SIZE = 100
BUDGET = 1000


class OpenAlex:
    """The provider; `seconds_left` is how long its day still lasts."""

    def __init__(self, library: Library, seconds_left: int = 64_141) -> None:
        self._library = library
        self._seconds_left = seconds_left
        self._used = 0

    def answer(self, path: str, params: Mapping[str, str]) -> Reply:
        self._used += 1
        if path.rstrip("/") == "/works":
            return self._works(params)
        wanted = unquote(path.removeprefix("/works/")).removeprefix("https://openalex.org/")
        paper = self._library.by_openalex.get(wanted) or self._library.by_doi.get(
            wanted.removeprefix("https://doi.org/").lower()
        )
        if paper is None:
            return Reply(404, {"Content-Type": "text/html"}, b"<!doctype html><title>404 Not Found</title>")
        return self._json(200, _work(paper))

    def _works(self, params: Mapping[str, str]) -> Reply:
        size = int(params.get("per-page", params.get("per_page", "25")))
        if not 1 <= size <= MAX_PAGE_SIZE:
            return self._json(403, {"error": "Invalid query parameters error.", "message": "per_page must be 1 to 100"})
        filters = filters_of(params.get("filter", ""))
        if any(name in filters for name in ("from_updated_date", "from_created_date")) and "api_key" not in params:
            text = "from_updated_date and from_created_date need an API key of a paid plan."
            return self._json(403, {"error": "Forbidden", "message": text})
        found = [paper for paper in self._library.papers if _is_chosen(paper, filters, params.get("search", ""))]
        at = _position(params.get("cursor", "*"))
        if at is None:
            return self._json(400, {"error": "Invalid query parameters error.", "message": "Cursor is invalid"})
        page = found[at : at + size]
        following = _cursor(at + len(page)) if page else None
        meta = {
            "count": len(found),
            "db_response_time_ms": 20,
            "page": None,
            "per_page": size,
            "next_cursor": following,
            "groups_count": None,
        }
        return self._json(200, {"meta": meta, "results": [_work(paper) for paper in page], "group_by": []})

    def _json(self, status: int, body: Any) -> Reply:
        headers = {
            "Content-Type": "application/json",
            "X-RateLimit-Limit": str(BUDGET),
            "X-RateLimit-Remaining": str(max(BUDGET - self._used, 0)),
            "X-RateLimit-Credits-Used": "1",
            "X-RateLimit-Reset": str(self._seconds_left),
            "X-RateLimit-Limit-USD": "0.1",
            "X-RateLimit-Cost-USD": "0.0001",
        }
        return Reply(status, headers, msgspec.json.encode(body))


def throttling_reply() -> Reply:
    body = {"error": "Too many requests", "message": "Rate limit exceeded: 10 requests per second"}
    return Reply(429, {"Content-Type": "application/json", "Retry-After": "1"}, msgspec.json.encode(body))


def _cursor(at: int) -> str:
    return base64.b64encode(f"[{at}]".encode()).decode()


def _position(cursor: str) -> int | None:
    if cursor == "*":
        return 0
    try:
        return int(base64.b64decode(cursor, validate=True).decode().strip("[]"))
    except ValueError:
        return None


def _is_chosen(paper: Paper, filters: Mapping[str, str], search: str) -> bool:
    for name, text in filters.items():
        if name == "openalex" and paper.openalex not in {one.rpartition("/")[2] for one in text.split("|")}:
            return False
        if name.startswith("from_") and paper.entered < date.fromisoformat(text[:10]):
            return False
        if name.startswith("to_") and paper.entered > date.fromisoformat(text[:10]):
            return False
    return all(word in paper.title.lower() for word in search.lower().split())


def inverted_index(text: str) -> dict[str, list[int]]:
    """A text as OpenAlex stores it: each word with its places."""
    places: dict[str, list[int]] = {}
    for place, word in enumerate(text.split()):
        places.setdefault(word, []).append(place)
    return places


def _work(paper: Paper) -> dict[str, Any]:
    plain = unescape(paper.abstract.replace("<sub>", "").replace("</sub>", ""))
    return {
        "id": f"https://openalex.org/{paper.openalex}",
        "doi": f"https://doi.org/{paper.doi}",
        "title": paper.title if paper.no % 41 else None,
        "publication_year": paper.entered.year,
        "publication_date": paper.entered.isoformat(),
        "ids": {
            "openalex": f"https://openalex.org/{paper.openalex}",
            "doi": f"https://doi.org/{paper.doi}",
            "pmid": f"https://pubmed.ncbi.nlm.nih.gov/{paper.pmid}",
        },
        "language": "en",
        "primary_location": {
            "is_oa": True,
            "license": "cc-by",
            "source": {"display_name": paper.journal, "host_organization_name": "Fog Society Press"},
        },
        "best_oa_location": {"license": "cc-by"},
        "locations": [],
        "type": "article",
        "open_access": {"is_oa": True, "oa_status": "gold", "oa_url": f"https://example.org/boats/{paper.no}.pdf"},
        "authorships": [
            {
                "author": {
                    "display_name": " ".join(part for part in (one.given, one.family) if part),
                    "orcid": f"https://orcid.org/{one.orcid}" if one.orcid else None,
                },
                "raw_affiliation_strings": [one.affiliation] if one.affiliation else [],
            }
            for one in paper.authors
        ],
        "is_retracted": paper.retracted,
        "abstract_inverted_index": inverted_index(plain) if paper.no % 11 else None,
        "updated_date": paper.indexed.strftime("%Y-%m-%dT%H:%M:%S.%f"),
        "created_date": paper.entered.isoformat(),
    }
