"""Crossref as it behaves in the recordings: a cursor that stays the same while the list moves on, and then expires.

The cursor is the server's own state: asking twice with the same one gives two different pages. The last page still
carries it, and the end is an empty page. Unknown DOIs are plain text, bad filters a list of messages, 429 is HTML.
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any
from urllib.parse import unquote

import msgspec

from patra.demo.providers import Library, Paper, Person, filters_of
from patra.demo.providers_pubmed import Reply

CURSOR_LIVES = 300.0
_FILTERS = frozenset(
    {f"{edge}-{kind}-date" for edge in ("from", "until") for kind in ("index", "update", "created")}
    | {"type", "has-abstract"}
)


class Scroll(msgspec.Struct):
    """One list that a client is reading."""

    papers: list[Paper]
    at: int
    until: float


class Crossref:
    """The provider, with the cursors that it remembers. `clock` gives seconds."""

    def __init__(self, library: Library, clock: Callable[[], float]) -> None:
        self._library = library
        self._clock = clock
        self._scrolls: dict[str, Scroll] = {}

    def answer(self, path: str, params: Mapping[str, str]) -> Reply:
        polite = "mailto" in params
        if path.rstrip("/") == "/works":
            return self._works(params, polite=polite)
        paper = self._library.by_doi.get(unquote(path.removeprefix("/works/")).lower())
        if paper is None:
            return Reply(404, {"Content-Type": "text/plain", **_limits(polite=polite)}, b"Resource not found.")
        return _json({"status": "ok", "message-type": "work", "message": _item(paper)}, polite=polite)

    def expire(self) -> None:
        """Forget every cursor, as the real one does after some minutes."""
        self._scrolls.clear()

    def _works(self, params: Mapping[str, str], *, polite: bool) -> Reply:
        rows = params.get("rows", "20")
        if not rows.isdecimal() or int(rows) > 1000:
            return _failure_reply(
                "integer-not-valid", rows, "Integer specified as rows must be between 0 and 1000", polite=polite
            )
        filters = filters_of(params.get("filter", ""))
        for name in filters:
            if name not in _FILTERS:
                text = f"Filter '{name}' specified but there is no such filter for this route."
                return _failure_reply("filter-not-available", name, text, polite=polite)
        cursor = params.get("cursor", "*")
        if cursor == "*":
            found = [paper for paper in self._library.papers if _is_chosen(paper, filters, params.get("query", ""))]
            cursor = "DnF1ZXJ5VGhlbkZldGNo" + sha256(repr(sorted(params.items())).encode()).hexdigest()
            self._scrolls[cursor] = Scroll(found, 0, self._clock() + CURSOR_LIVES)
        scroll = self._scrolls.get(cursor)
        if scroll is None or scroll.until < self._clock():
            text = "Cursor specified but it is invalid"
            return _failure_reply("cursor-invalid", cursor, text, polite=polite, status=404, kind="resource-failure")
        page = scroll.papers[scroll.at : scroll.at + int(rows)]
        scroll.at += len(page)
        scroll.until = self._clock() + CURSOR_LIVES
        message = {
            "facets": {},
            "next-cursor": cursor,
            "total-results": len(scroll.papers),
            "items": [_item(paper) for paper in page],
            "items-per-page": int(rows),
            "query": {"start-index": 0, "search-terms": params.get("query")},
        }
        body = {"status": "ok", "message-type": "work-list", "message-version": "1.0.0", "message": message}
        return _json(body, polite=polite)


def throttling_reply() -> Reply:
    body = (
        b"<html><body><h1>429 Too Many Requests</h1>\nYou have sent too many requests in a given amount of time.\n"
        b"</body></html>\n"
    )
    return Reply(429, {"Content-Type": "text/html"}, body)


def _limits(*, polite: bool) -> dict[str, str]:
    return {
        "x-rate-limit-limit": "10" if polite else "5",
        "x-rate-limit-interval": "1s",
        "x-concurrency-limit": "3" if polite else "1",
        "x-api-pool": "polite" if polite else "public",
    }


def _json(body: Any, *, polite: bool) -> Reply:
    headers = {"Content-Type": "application/json", **_limits(polite=polite)}
    return Reply(200, headers, msgspec.json.encode(body))


def _failure_reply(
    kind_of: str, value: str, text: str, *, polite: bool, status: int = 400, kind: str = "validation-failure"
) -> Reply:
    message = [{"type": kind_of, "value": value, "message": text}]
    headers = {"Content-Type": "application/json;charset=utf-8", **_limits(polite=polite)}
    return Reply(status, headers, msgspec.json.encode({"status": "failed", "message-type": kind, "message": message}))


def _is_chosen(paper: Paper, filters: Mapping[str, str], query: str) -> bool:
    for name, text in filters.items():
        at = _cut(paper.indexed, text)
        if (name.startswith("from-") and at < text) or (name.startswith("until-") and at > text):
            return False
    return all(word in paper.title.lower() for word in re.findall(r"\w+", query.lower()))


def _cut(at: datetime, text: str) -> str:
    """An instant as finely as the filter is written: a day alone means all of it."""
    return at.strftime("%Y-%m-%dT%H:%M:%S")[: len(text)]


def _item(paper: Paper) -> dict[str, Any]:
    day = paper.indexed
    return {
        "indexed": {
            "date-parts": [[day.year, day.month, day.day]],
            "date-time": day.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "timestamp": int(day.timestamp() * 1000),
        },
        "publisher": "Fog Society Press",
        "DOI": paper.doi.upper() if paper.no % 7 == 0 else paper.doi,
        "type": "journal-article",
        "title": [paper.title.replace(" ", "\n                    ", 1)],
        "abstract": f"<jats:title>Abstract</jats:title><jats:p>{paper.abstract}</jats:p>",
        "author": [_author(one, place) for place, one in enumerate(paper.authors)],
        "container-title": [paper.journal],
        "issued": {"date-parts": [list(paper.issued)]},
        "license": [{"URL": "http://creativecommons.org/licenses/by/4.0/", "content-version": "vor"}],
        "URL": f"https://doi.org/{paper.doi}",
        "language": "en",
        **({"updated-by": [{"type": "retraction", "DOI": f"{paper.doi}.r"}]} if paper.retracted else {}),
    }


def _author(one: Person, place: int) -> dict[str, Any]:
    sequence = "additional" if place else "first"
    if one.group:
        return {"name": one.family, "sequence": sequence, "affiliation": []}
    out: dict[str, Any] = {"family": one.family, "sequence": sequence, "affiliation": [{"name": one.affiliation}]}
    if one.given is not None:
        out["given"] = one.given
    if one.orcid is not None:
        out["ORCID"] = f"https://orcid.org/{one.orcid}"
    return out
