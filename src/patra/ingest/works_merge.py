"""Works of several sources that are the same work go in; one work, and who gave which field of it, comes out.

Two works are the same where they share a DOI, a PMID, a PMCID, an arXiv id or an OpenAlex id, directly or through a
third one. The DOI that DataCite gives to an arXiv paper counts as its arXiv id too.
"""
# ruff: noqa: RUF012  msgspec gives each struct an empty default of its own

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from patra.ingest.bits.base import doc
from patra.ingest.cleaners import clean
from patra.ingest.works import IDENTIFIERS, Author, Shaped, When, Work

PRECEDENCE = (
    "pubmed",
    "crossref",
    "europepmc",
    "datacite",
    "arxiv",
    "biorxiv",
    "clinicaltrials",
    "openalex",
    "doaj",
    "hal",
    "zenodo",
    "semanticscholar",
    "core",
    "oaipmh",
    "orcid",
)
"""Whose value is taken where several sources have one; sources not listed come last, by name."""

_DESCRIPTION = (
    "title",
    "abstract",
    "authors",
    "container",
    "publisher",
    "type",
    "issued",
    "language",
    "license",
    "oa_url",
    "url",
)


class Seen(Shaped, frozen=True, kw_only=True):
    """A record that the work was joined from."""

    source: Annotated[str, doc("The source.", "crossref")]
    endpoint: Annotated[str, doc("The endpoint.", "works")]
    id: Annotated[str, doc("The source's own id.", "10.7717/peerj.4375")]


class Merged(Shaped, frozen=True, kw_only=True):
    """A work joined from all records of it. `given_by` names the source of each field."""

    key: Annotated[str, doc("Its first identifier, or the record it comes from.", "doi:10.7717/peerj.4375")]
    seen: Annotated[list[Seen], doc("The records, in the order of precedence.", [])]
    doi: str | None = None
    pmid: str | None = None
    pmcid: str | None = None
    arxiv: str | None = None
    openalex: str | None = None
    ids: Annotated[dict[str, list[str]], doc("All identifiers by kind, those above included.", {})] = {}
    title: str | None = None
    abstract: str | None = None
    authors: list[Author] = []
    container: str | None = None
    publisher: str | None = None
    type: str | None = None
    issued: When | None = None
    updated: Annotated[str | None, doc("The latest change that a source tells of.", "2025-06-11T00:03:37Z")] = None
    language: str | None = None
    license: str | None = None
    oa_url: str | None = None
    url: str | None = None
    retracted: Annotated[bool, doc("Some source says so.", False)] = False
    deleted: Annotated[bool, doc("Every source has taken it back.", False)] = False
    given_by: Annotated[dict[str, str], doc("Source by field.", {"title": "crossref"})] = {}


def keys_of(work: Work) -> list[str]:
    """What the work can be joined by."""
    found = [f"{name}:{value}" for name in IDENTIFIERS if (value := getattr(work, name)) is not None]
    if work.doi is not None and work.doi.startswith("10.48550/arxiv."):
        arxiv = clean(["arxiv"], work.doi.removeprefix("10.48550/"))
        found += [f"arxiv:{arxiv}"] if arxiv else []
    return list(dict.fromkeys(found))


def merged(works: Sequence[Work], precedence: Sequence[str] = PRECEDENCE) -> Merged:
    """One work of several; the order in which they come does not matter."""
    ordered = works if len(works) == 1 else _ranked(works, precedence)
    chosen: dict[str, Any] = {}
    given: dict[str, str] = {}
    for name in (*IDENTIFIERS, *_DESCRIPTION):
        for work in ordered:
            value = getattr(work, name)
            if value is not None and value != []:
                chosen[name] = value
                given[name] = work.source
                break
    retracting = next((work.source for work in ordered if work.retracted), None)
    if retracting is not None:
        given["retracted"] = retracting
    first = ordered[0]
    key = next((key for name in IDENTIFIERS if name in chosen for key in [f"{name}:{chosen[name]}"]), None)
    return Merged(
        key=key or f"{first.source}:{first.endpoint}:{first.id}",
        seen=[Seen(source=work.source, endpoint=work.endpoint, id=work.id) for work in ordered],
        ids=_identifiers(ordered),
        updated=max((work.updated for work in ordered if work.updated is not None), default=None),
        retracted=retracting is not None,
        deleted=all(work.deleted for work in ordered),
        given_by=given,
        **chosen,
    )


def _ranked(works: Sequence[Work], precedence: Sequence[str]) -> list[Work]:
    rank = {source: place for place, source in enumerate(precedence)}
    return sorted(works, key=lambda w: (w.deleted, rank.get(w.source, len(rank)), w.source, w.endpoint, w.id))


def grouped(works: Iterable[Work]) -> list[list[Work]]:
    """The works, those that are the same together, in the order in which each was first met."""
    parent: list[int] = []
    owner: dict[str, int] = {}
    listed = list(works)

    def root(number: int) -> int:
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number

    for number, work in enumerate(listed):
        parent.append(number)
        for key in keys_of(work):
            one, other = sorted((root(owner.setdefault(key, number)), root(number)))
            parent[other] = one
    groups: dict[int, list[Work]] = {}
    for number, work in enumerate(listed):
        groups.setdefault(root(number), []).append(work)
    return list(groups.values())


def _identifiers(works: Sequence[Work]) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = {}
    for work in works:
        own: Mapping[str, str | None] = {name: getattr(work, name) for name in IDENTIFIERS}
        for kind, value in (*own.items(), *work.ids.items()):
            if value is not None:
                found.setdefault(kind, {})[value] = None
    return {kind: list(values) for kind, values in sorted(found.items())}
