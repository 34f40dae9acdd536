"""PubMed as NCBI's E-utilities behave in the recordings: JSON counts as text, a search that ends at 9,999, XML details.

An error is an answer with status 200 more often than not; a list of ids that is too long for a URL is a 414; a 400 may
be a timeout of the backend.
"""

from collections.abc import Mapping
from datetime import date, datetime
from html import escape
from typing import Any

import msgspec

from patra.demo.providers import Library, Paper

MAX_OFFSET = 9_998
MAX_RESULTS = 10_000
MAX_URL_CHARS = 4_000


class Reply(msgspec.Struct, frozen=True):
    """What a simulated provider answers."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def answer(library: Library, path: str, params: Mapping[str, str], *, url_length: int = 0) -> Reply:
    """`params` are those of the query and of a form together."""
    if url_length > MAX_URL_CHARS:
        return Reply(
            414, {"Content-Type": "text/html"}, b"<html><head><title>414 Request-URI Too Large</title></head></html>"
        )
    if path.endswith("/esearch.fcgi"):
        return esearch(library, params)
    if path.endswith("/efetch.fcgi"):
        return efetch(library, params)
    return Reply(404, {"Content-Type": "text/html"}, b"<html><body>Not Found</body></html>")


def esearch(library: Library, params: Mapping[str, str]) -> Reply:
    """Ids, the newest first."""
    term = params.get("term", "").strip()
    start, most = int(params.get("retstart", "0")), min(int(params.get("retmax", "20")), MAX_RESULTS)
    if not term:
        return _json({"esearchresult": {"ERROR": "Empty term and query_key - nothing todo"}})
    if start > MAX_OFFSET:
        text = "Search Backend failed: Exception:\n'retstart' cannot be larger than 9998. For PubMed, ESearch can only"
        return _json({"esearchresult": {"ERROR": text + " retrieve the first 9,999 records matching the query."}})
    found = [paper for paper in library.papers if _matches(paper, term) and _is_dated(paper, params)]
    page = found[::-1][start : min(start + most, MAX_OFFSET + 1)]
    result: dict[str, Any] = {
        "count": str(len(found)),
        "retmax": str(len(page)),
        "retstart": str(start),
        "idlist": [paper.pmid for paper in page],
        "translationset": [],
        "querytranslation": term,
    }
    if not found:
        result["errorlist"] = {"phrasesnotfound": [], "fieldsnotfound": []}
        result["warninglist"] = {"outputmessages": ["No items found."]}
    return _json({"header": {"type": "esearch", "version": "0.3"}, "esearchresult": result})


def efetch(library: Library, params: Mapping[str, str]) -> Reply:
    """Records by id; unknown ids are passed over without a word."""
    asked = [one.strip() for one in params.get("id", "").split(",") if one.strip()]
    articles = "".join(_article(library.by_pmid[one]) for one in asked if one in library.by_pmid)
    text = (
        '<?xml version="1.0" ?>\n<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle, 1st January 2026//EN"'
        ' "https://dtd.nlm.nih.gov/ncbi/pubmed/out/pubmed_260101.dtd">\n<PubmedArticleSet>\n'
        f"{articles}</PubmedArticleSet>"
    )
    return Reply(200, {"Content-Type": "text/xml; charset=UTF-8"}, text.encode())


def throttling_reply(limit: int) -> Reply:
    """What too many requests in a second get."""
    body = {"error": "API rate limit exceeded", "api-key": "127.0.0.1", "count": str(limit + 1), "limit": str(limit)}
    headers = {"Content-Type": "application/json", "X-RateLimit-Limit": str(limit), "X-RateLimit-Remaining": "0"}
    return Reply(429, {**headers, "Retry-After": "1"}, msgspec.json.encode(body))


def backend_timeout() -> Reply:
    """The 400 that is none."""
    text = "Error: External viewer error: Empty Response. Bytes read: 0 Status: Timeout"
    text = f"<eFetchResult>\n\t<ERROR> {text}</ERROR>\n</eFetchResult>"
    return Reply(400, {"Content-Type": "text/xml; charset=UTF-8"}, text.encode())


def _json(body: Any) -> Reply:
    return Reply(200, {"Content-Type": "application/json; charset=UTF-8"}, msgspec.json.encode(body))


def _matches(paper: Paper, term: str) -> bool:
    words = [word for word in term.lower().replace("(", " ").replace(")", " ").split() if word not in {"and", "or"}]
    text = f"{paper.title} {paper.abstract} {paper.topic}".lower()
    return all(_is_found(paper, word, text) for word in words)


def _is_found(paper: Paper, word: str, text: str) -> bool:
    """Whether a word of a search fits: `all[sb]` always does, `1:500[uid]` is a range of PMIDs."""
    plain, _, field = word.partition("[")
    if field == "uid]":
        low, _, high = plain.partition(":")
        return int(low) <= int(paper.pmid) <= int(high or low)
    return word.startswith("all[") or plain.strip('"') in text


def _is_dated(paper: Paper, params: Mapping[str, str]) -> bool:
    first, last = _day(params.get("mindate")), _day(params.get("maxdate"))
    return (first is None or paper.entered >= first) and (last is None or paper.entered <= last)


def _day(text: str | None) -> date | None:
    return datetime.strptime(text, "%Y/%m/%d").date() if text else None  # noqa: DTZ007  days have no zone


def _article(paper: Paper) -> str:
    revised = (
        f"<Year>{paper.entered.year}</Year><Month>{paper.entered.month:02}</Month><Day>{paper.entered.day:02}</Day>"
    )
    authors = "".join(
        f'<Author ValidYN="Y"><CollectiveName>{escape(one.family)}</CollectiveName></Author>'
        if one.group
        else f'<Author ValidYN="Y"><LastName>{escape(one.family)}</LastName>'
        + (f"<ForeName>{escape(one.given)}</ForeName>" if one.given else "")
        + (f'<Identifier Source="ORCID">https://orcid.org/{one.orcid}</Identifier>' if one.orcid else "")
        + f"<AffiliationInfo><Affiliation>{escape(one.affiliation or '')}</Affiliation></AffiliationInfo></Author>"
        for one in paper.authors
    )
    year, *_ = paper.issued
    published = f"<Year>{year}</Year>" if year else f"<MedlineDate>{paper.entered.year} Winter-Spring</MedlineDate>"
    kinds = "<PublicationType>Journal Article</PublicationType>"
    if paper.retracted:
        kinds += "<PublicationType>Retracted Publication</PublicationType>"
    title, abstract = paper.title, paper.abstract.replace("&", "&amp;")
    return (
        f'<PubmedArticle><MedlineCitation Status="MEDLINE" Owner="NLM"><PMID Version="1">{paper.pmid}</PMID>'
        f'<DateRevised>{revised}</DateRevised><Article PubModel="Print"><Journal><JournalIssue CitedMedium="Print">'
        f"<PubDate>{published}</PubDate></JournalIssue><Title>{escape(paper.journal)}</Title></Journal>"
        f"<ArticleTitle>{title}</ArticleTitle><Abstract><AbstractText>{abstract}</AbstractText></Abstract>"
        f"<AuthorList>{authors}</AuthorList><Language>eng</Language>"
        f"<PublicationTypeList>{kinds}</PublicationTypeList></Article></MedlineCitation><PubmedData><ArticleIdList>"
        f'<ArticleId IdType="pubmed">{paper.pmid}</ArticleId><ArticleId IdType="doi">{paper.doi}</ArticleId>'
        "</ArticleIdList></PubmedData></PubmedArticle>\n"
    )
