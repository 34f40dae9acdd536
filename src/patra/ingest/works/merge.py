"""Turns works of several sources that are the same work into one work, and who gave which field of it.

Two works are the same where they share a DOI, a PMID, a PMCID, an arXiv id or an OpenAlex id, directly or through a
third one, or where one names the other as its version, preprint or article. The DOI that DataCite gives to an arXiv
paper counts as its arXiv id too. `joins` explains each join; `retractions` says who calls the work retracted, and when.
"""
# ruff: noqa: RUF012  msgspec gives each struct an empty default of its own

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from patra.ingest.expressions.cleaners import clean
from patra.ingest.packs.sections.base import doc
from patra.ingest.packs.work import (
    IDENTIFIERS,
    SAME,
    Author,
    Citations,
    Funder,
    Link,
    Notice,
    Relation,
    Shaped,
    When,
    Work,
)

_Part = TypeVar("_Part")

PRECEDENCE = (
    "pubmed",
    "crossref",
    "europepmc",
    "datacite",
    "arxiv",
    "pmc",
    "inspire",
    "ads",
    "biorxiv",
    "osf",
    "clinicaltrials",
    "openalex",
    "doaj",
    "dblp",
    "jstage",
    "eric",
    "hal",
    "zenodo",
    "semanticscholar",
    "openaire",
    "core",
    "oaipmh",
    "unpaywall",
    "opencitations",
    "orcid",
)
"""Whose value is taken where several sources have one; sources not listed come last, by name.

A date gives way to a more exact one that agrees with it, a cut list of authors to a whole one. Where an article and its
preprint are joined, the article is cited, whatever the order of their sources."""

_PLACE = frozenset({"doi", "title", "type", "container", "publisher", "volume", "issue", "pages", "article_number"}) | {
    "issn", "isbn", "issued", "url",
}  # fmt: skip
"""What says how the work is cited: of a preprint that became an article, the article says it."""
_OF_THE_EDITION = frozenset({"publisher", "volume", "issue", "pages", "article_number", "issn", "isbn"})
"""What an article does not have from its preprint, even where no record of the article says it."""
_DESCRIPTION = (
    "title",
    "abstract",
    "authors",
    "editors",
    "container",
    "publisher",
    "type",
    "issued",
    "language",
    "license",
    "oa_url",
    "url",
    "volume",
    "issue",
    "pages",
    "article_number",
    "issn",
    "isbn",
    "keywords",
    "mesh",
    "references",
    "citations",
    "funders",
    "full_text",
)


class Seen(Shaped, frozen=True, kw_only=True):
    """A record that the work was joined from."""

    source: Annotated[str, doc("The source.", "crossref")]
    endpoint: Annotated[str, doc("The endpoint.", "works")]
    id: Annotated[str, doc("The source's own id.", "10.7717/peerj.4375")]


class Join(Shaped, frozen=True, kw_only=True):
    """Why records were taken for one work."""

    by: Annotated[str, doc("The identifier that they share.", "doi:10.7717/peerj.4375")]
    records: Annotated[list[str], doc("The records, as source:id.", ["crossref:10.7717/peerj.4375"])]
    why: Annotated[str, doc("`identifier`, or the relations by which some of them name it.", "is-preprint-of")]


class Retraction(Shaped, frozen=True, kw_only=True):
    """A source that calls the work retracted."""

    source: Annotated[str, doc("Who says so.", "crossref")]
    id: Annotated[str, doc("In which record.", "10.1016/s0140-6736(97)11096-0")]
    updated: Annotated[str | None, doc("As of that record's last change.", "2025-06-11T00:03:37Z")] = None
    notice: Annotated[str | None, doc("The notice, where it is named.", "doi:10.1016/s0140-6736(10)60175-4")] = None
    at: Annotated[str | None, doc("When the notice was given, as the source writes it.", "2010-02-06")] = None


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
    authors_truncated: Annotated[bool, doc("No source gave all of them.", False)] = False
    editors: list[Author] = []
    container: str | None = None
    publisher: str | None = None
    type: str | None = None
    issued: When | None = None
    updated: Annotated[str | None, doc("The latest change that a source reports.", "2025-06-11T00:03:37Z")] = None
    language: str | None = None
    license: str | None = None
    oa_url: str | None = None
    url: str | None = None
    volume: str | None = None
    issue: str | None = None
    pages: str | None = None
    article_number: str | None = None
    issn: list[str] = []
    isbn: list[str] = []
    keywords: list[str] = []
    mesh: list[str] = []
    references: list[str] = []
    citations: Citations | None = None
    funders: list[Funder] = []
    full_text: list[Link] = []
    relations: Annotated[list[Relation], doc("Those of all records, each once.", [])] = []
    notices: Annotated[list[Notice], doc("Those of all records, each once.", [])] = []
    joins: Annotated[list[Join], doc("Why the records are one work.", [])] = []
    retractions: Annotated[list[Retraction], doc("Which sources call it retracted.", [])] = []
    retracted: Annotated[bool, doc("Some source says so.", False)] = False
    deleted: Annotated[bool, doc("Every source has taken it back.", False)] = False
    given_by: Annotated[dict[str, str], doc("Source by field.", {"title": "crossref"})] = {}


def keys_of(work: Work) -> list[str]:
    """What the work can be joined by."""
    found = [f"{name}:{value}" for name in IDENTIFIERS if (value := getattr(work, name)) is not None]
    if work.doi is not None and work.doi.startswith("10.48550/arxiv."):
        arxiv = clean(["arxiv"], work.doi.removeprefix("10.48550/"))
        found += [f"arxiv:{arxiv}"] if arxiv else []
    found += [relation.id for relation in work.relations if relation.type in SAME]
    return list(dict.fromkeys(found))


RETRACTING = frozenset({"retraction", "withdrawal", "removal"})
"""Notices that take a work back; of a partial retraction the rest stands."""


def joins_of(works: Sequence[Work]) -> list[Join]:
    """Why these are one work: each key that several of them have."""
    shared: dict[str, list[Work]] = {}
    for work in works:
        for key in keys_of(work):
            shared.setdefault(key, []).append(work)
    found: list[Join] = []
    for key, those in shared.items():
        if len(those) > 1:
            named = {one.type for work in those for one in work.relations if one.id == key and one.type in SAME}
            records = [f"{work.source}:{work.id}" for work in those]
            found.append(Join(by=key, records=records, why=", ".join(sorted(named)) or "identifier"))
    return found


def retractions_of(works: Sequence[Work]) -> list[Retraction]:
    """Every source that says so; the notice where it names one."""
    found: list[Retraction] = []
    for work in works:
        notice = next((one for one in work.notices if one.type in RETRACTING), None)
        if work.retracted or notice is not None:
            found.append(
                Retraction(
                    source=work.source,
                    id=work.id,
                    updated=work.updated,
                    notice=None if notice is None else notice.id,
                    at=None if notice is None else notice.at,
                )
            )
    return found


def merge_works(works: Sequence[Work], precedence: Sequence[str] = PRECEDENCE) -> Merged:
    """One work of several; the order in which they come does not matter."""
    ordered = works if len(works) == 1 else _rank_works(works, precedence)
    cited = _articles_first(ordered)
    chosen: dict[str, Any] = {}
    given: dict[str, str] = {}
    for name in (*IDENTIFIERS, *_DESCRIPTION):
        # a list of authors that the source has cut gives way to a whole one
        order = sorted(ordered, key=lambda w: w.authors_truncated) if name == "authors" else ordered
        for work in _sayers(name, cited, order):
            value = getattr(work, name)
            if value is not None and value != []:
                chosen[name] = value
                given[name] = work.source
                break
    if (dated := _most_exact_date(cited)) is not None:
        chosen["issued"], given["issued"] = dated.issued, dated.source
    named = [work for work in ordered if work.authors]
    retractions = retractions_of(ordered)
    if retractions:
        given["retracted"] = retractions[0].source
    first = ordered[0]
    key = next((key for name in IDENTIFIERS if name in chosen for key in [f"{name}:{chosen[name]}"]), None)
    return Merged(
        key=key or f"{first.source}:{first.endpoint}:{first.id}",
        seen=[Seen(source=work.source, endpoint=work.endpoint, id=work.id) for work in ordered],
        ids=_identifiers(ordered),
        updated=max((work.updated for work in ordered if work.updated is not None), default=None),
        authors_truncated=bool(named) and all(work.authors_truncated for work in named),
        relations=_each_once(one for work in ordered for one in work.relations),
        notices=_each_once(one for work in ordered for one in work.notices),
        joins=joins_of(ordered),
        retractions=retractions,
        retracted=bool(retractions),
        deleted=all(work.deleted for work in ordered),
        given_by=given,
        **chosen,
    )


def _sayers(name: str, cited: Sequence[Work], order: Sequence[Work]) -> Sequence[Work]:
    """The works that may give a field, the first before all others; `cited` begins with the article if there is one."""
    if name in _OF_THE_EDITION and cited[0].type != "preprint":
        return [work for work in cited if work.type != "preprint"]
    return cited if name in _PLACE else order


def _articles_first(ordered: Sequence[Work]) -> Sequence[Work]:
    """The works, those that describe the article which a preprint among them became before all others.

    A record of another kind under the preprint's own DOI describes the preprint, too: some sources call all articles.
    """
    preprints = [work for work in ordered if work.type == "preprint"]
    if not preprints or len(preprints) == len(ordered):
        return ordered
    dois = {work.doi: work for work in preprints if work.doi is not None}
    own = {doi for doi, work in dois.items() if work.arxiv is None or doi.startswith("10.48550/")}
    return sorted(ordered, key=lambda w: not (_is_published(w) and w.doi not in own))


_PUBLISHED = frozenset({"article", "review", "letter", "conference-paper", "book", "chapter"})


def _is_published(work: Work) -> bool:
    return not work.deleted and work.type in _PUBLISHED and bool(work.container and work.title)


_PERIODS = {"year": "-01-01T00:00:00Z", "month": "-01T00:00:00Z", "day": "T00:00:00Z", "instant": ""}
"""How the earliest instant of a date ends, by its precision, the vaguest first."""
_EXACTNESS = {precision: place for place, precision in enumerate(_PERIODS)}


def _most_exact_date(ordered: Sequence[Work]) -> Work | None:
    """Whose date is taken: the first one's, unless a later one says it more exactly and agrees with it.

    A preprint says nothing of when the article came out, nor the article of the preprint; nor does a record that its
    source has taken back.
    """
    taken: Work | None = None
    for work in ordered:
        if work.issued is not None and (taken is None or _narrows(work, taken)):
            taken = work
    return taken


def _narrows(work: Work, other: Work) -> bool:
    """Whether the date of the work lies within that of the other, which is vaguer."""
    exact, vague = work.issued, other.issued
    if exact is None or vague is None or _edition(work) != _edition(other):
        return False
    rest = _PERIODS.get(vague.precision, "")
    if not rest or _EXACTNESS.get(exact.precision, -1) <= _EXACTNESS[vague.precision]:
        return False
    return vague.at.endswith(rest) and exact.at.startswith(vague.at.removesuffix(rest))


def _edition(work: Work) -> tuple[bool, bool]:
    return work.deleted, work.type == "preprint"


def _each_once(parts: Iterable[_Part]) -> list[_Part]:
    found: list[_Part] = []
    for part in parts:
        if part not in found:
            found.append(part)
    return found


def _rank_works(works: Sequence[Work], precedence: Sequence[str]) -> list[Work]:
    rank = {source: place for place, source in enumerate(precedence)}
    last = len(rank)
    return sorted(works, key=lambda w: (w.deleted, _is_alias(w), rank.get(w.source, last), w.source, w.endpoint, w.id))


def _is_alias(work: Work) -> bool:
    """A record that says nothing but under which other identifier the work is found: its own comes after that."""
    return work.title is None and any(one.type == "is-identical-to" for one in work.relations)


def group_works(works: Iterable[Work]) -> list[list[Work]]:
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
