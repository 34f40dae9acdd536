"""The common shape: one `Work` from what a pack mapped, whatever source it came from (rulings I6, I7).

Text in it is for people: markup out, white space single. The record as it came stays beside it in `raw`. A field that
the source does not have is absent; nothing is guessed.

    work = work_of({"doi": "10.1/x", "title": "On boats"}, Origin(source="crossref", endpoint="works", id="10.1/x"))
"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, cast

import msgspec

from patra.ingest.packs.sections import Field, Output
from patra.ingest.packs.sections.base import doc
from patra.ingest.vocabulary.codes import FieldType
from patra.kernel.clock import format_instant


class Shaped(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of the shape: what is absent is not written."""


class When(Shaped, frozen=True, kw_only=True, tag=None):
    """A date and how exactly it is known: `at` is the earliest instant that it can mean (ruling I7)."""

    at: Annotated[str, doc("The earliest instant that the source's date can mean.", "2019-03-01T00:00:00Z")]
    precision: Annotated[str, doc("`year`, `month`, `day` or `instant`.", "month")]


class Author(Shaped, frozen=True, kw_only=True):
    """A person, or a group: a group has a name only."""

    name: Annotated[str, doc("As a person reads it, the given name first.", "Ada Lovelace")]
    given: Annotated[str | None, doc("Given names.", "Ada")] = None
    family: Annotated[str | None, doc("Family name.", "Lovelace")] = None
    suffix: Annotated[str | None, doc("What follows the name, where the source parts it off.", "Jr")] = None
    orcid: Annotated[str | None, doc("ORCID iD.", "0000-0002-1825-0097")] = None
    affiliation: Annotated[list[str], doc("Affiliations as written.", ["University of Oslo"])] = []
    ror: Annotated[list[str], doc("Their ROR ids.", ["https://ror.org/01xtthb56"])] = []


class Funder(Shaped, frozen=True, kw_only=True):
    """Who paid, and under which grants."""

    name: Annotated[str | None, doc("Name.", "Research Council of Norway")] = None
    id: Annotated[str | None, doc("Funder id: a DOI of the registry, or ROR.", "10.13039/501100005416")] = None
    awards: Annotated[list[str], doc("Grant numbers.", ["262695"])] = []


class Relation(Shaped, frozen=True, kw_only=True):
    """A related work. Those of `SAME` join the two where works are joined."""

    type: Annotated[
        str, doc("How it is related, in the words of `RELATIONS` where the pack knows them.", "is-preprint-of")
    ]
    id: Annotated[str, doc("Its identifier with its kind.", "doi:10.7717/peerj.4375")]


class Link(Shaped, frozen=True, kw_only=True):
    """Where the full text is."""

    url: Annotated[str, doc("The address.", "https://peerj.com/articles/4375.pdf")]
    type: Annotated[str | None, doc("Media type, where the source reports it.", "application/pdf")] = None
    version: Annotated[str | None, doc("Which version it is: vor, am, submitted.", "vor")] = None


class Citations(Shaped, frozen=True, kw_only=True):
    """How often it is cited, as the source counts."""

    count: Annotated[int, doc("How often.", 917)]
    at: Annotated[
        str | None, doc("As of when: as the source reports it, else when the record landed.", "2025-06-11T00:03:37Z")
    ] = None


class Notice(Shaped, frozen=True, kw_only=True):
    """A correction, a retraction or an expression of concern about the work."""

    type: Annotated[str, doc("`retraction`, `withdrawal`, `correction`, `erratum`, `concern`, …", "retraction")]
    id: Annotated[
        str | None, doc("The notice's own identifier with its kind.", "doi:10.1016/s0140-6736(10)60175-4")
    ] = None
    at: Annotated[str | None, doc("When it was given, as the source writes it.", "2010-02-06")] = None


class Work(Shaped, frozen=True, kw_only=True):
    """A work as one source describes it."""

    source: Annotated[str, doc("The source's code.", "crossref")]
    endpoint: Annotated[str, doc("The endpoint that it came from.", "works")]
    id: Annotated[str, doc("The source's own id of the record.", "10.7717/peerj.4375")]
    doi: Annotated[str | None, doc("DOI, bare and in small letters.", "10.7717/peerj.4375")] = None
    pmid: Annotated[str | None, doc("PubMed id.", "29456894")] = None
    pmcid: Annotated[str | None, doc("PubMed Central id.", "PMC5815332")] = None
    arxiv: Annotated[str | None, doc("arXiv id without its version.", "2202.12139")] = None
    openalex: Annotated[str | None, doc("OpenAlex id.", "W2741809807")] = None
    ids: Annotated[dict[str, str], doc("Further identifiers by kind.", {"mag": "2741809807"})] = {}
    title: Annotated[str | None, doc("Title.", "The state of OA")] = None
    abstract: Annotated[str | None, doc("Abstract.", "Despite growing interest …")] = None
    authors: Annotated[list[Author], doc("Authors in order.", [{"name": "Ada Lovelace"}])] = []
    authors_truncated: Annotated[bool, doc("The source gave the first of them only.", False)] = False
    editors: Annotated[
        list[Author], doc("Editors: of the book, of the volume that holds it, or of the article.", [])
    ] = []
    container: Annotated[str | None, doc("Journal, book, series or repository.", "PeerJ")] = None
    publisher: Annotated[str | None, doc("Publisher, or sponsor of a trial.", "PeerJ, Inc.")] = None
    volume: Annotated[str | None, doc("Volume.", "6")] = None
    issue: Annotated[str | None, doc("Issue.", "2")] = None
    pages: Annotated[str | None, doc("Pages, from and to.", "253-277")] = None
    article_number: Annotated[str | None, doc("Number of an article without pages.", "e4375")] = None
    issn: Annotated[list[str], doc("ISSNs of the container.", ["2167-8359"])] = []
    isbn: Annotated[list[str], doc("ISBNs.", ["9781484267004"])] = []
    keywords: Annotated[list[str], doc("Keywords and subjects.", ["Open access"])] = []
    mesh: Annotated[list[str], doc("MeSH headings.", ["Humans"])] = []
    references: Annotated[list[str], doc("What it cites: identifiers with their kind.", ["doi:10.1038/493159a"])] = []
    citations: Annotated[Citations | None, doc("How often it is cited, and as of when.", {"count": 917})] = None
    funders: Annotated[list[Funder], doc("Funders and grants.", [{"name": "Research Council of Norway"}])] = []
    relations: Annotated[list[Relation], doc("Versions and related works.", [])] = []
    full_text: Annotated[list[Link], doc("Links to the full text.", [])] = []
    notices: Annotated[list[Notice], doc("Corrections and retractions.", [])] = []
    type: Annotated[str | None, doc("What it is, in the words of `TYPES` where the pack knows them.", "article")] = None
    issued: Annotated[When | None, doc("When it was published, with its precision.", {"precision": "year"})] = None
    updated: Annotated[str | None, doc("When the source last changed the record.", "2025-06-11T00:03:37Z")] = None
    language: Annotated[str | None, doc("Language in two letters.", "en")] = None
    license: Annotated[str | None, doc("Licence; Creative Commons as cc-by-4.0.", "cc-by-4.0")] = None
    oa_url: Annotated[str | None, doc("Where it can be read freely.", "https://peerj.com/articles/4375.pdf")] = None
    url: Annotated[str | None, doc("Its page.", "https://doi.org/10.7717/peerj.4375")] = None
    retracted: Annotated[bool, doc("The source says that it was retracted.", False)] = False
    deleted: Annotated[bool, doc("The source has taken the record back.", False)] = False
    raw: Annotated[Any, doc("The record as it came: JSON, or the text of its XML.", {})] = None


TYPES: Mapping[str, str] = {
    "article": "in a journal",
    "preprint": "not yet reviewed",
    "review": "a review of literature",
    "conference-paper": "in the proceedings of a meeting",
    "book": "a book or monograph",
    "chapter": "part of a book, or an entry of one",
    "thesis": "a thesis or dissertation",
    "report": "a report or working paper",
    "dataset": "data",
    "software": "a program or notebook",
    "trial": "a registered study",
    "peer-review": "a review of a manuscript",
    "journal": "a journal itself",
    "letter": "a letter, comment or editorial",
    "erratum": "a correction or retraction notice",
    "component": "a figure, table or supplement",
    "other": "anything else",
}
"""The words that packs translate types to; what a pack does not know stays as the source wrote it."""

RELATIONS: Mapping[str, str] = {
    "is-preprint-of": "the article that a preprint became",
    "has-preprint": "the preprint that an article was",
    "is-version-of": "the work of which this is one version",
    "has-version": "a version of it",
    "is-identical-to": "the same under another identifier",
    "is-part-of": "the book, series or collection that holds it",
    "has-part": "a part of it",
    "is-supplement-to": "what it supplements",
    "is-supplemented-by": "its supplement",
    "references": "what it cites",
}
"""The words that packs translate relations to; what a pack does not know stays as the source wrote it."""
SAME = frozenset({"is-preprint-of", "has-preprint", "is-version-of", "has-version", "is-identical-to"})
"""Relations whose two ends are one work for those who join works."""

FIELDS = frozenset(field.name for field in msgspec.structs.fields(Work)) - {
    "source", "endpoint", "id", "updated", "deleted", "raw"
}  # fmt: skip
"""What a pack may map; the rest is known from where the record came from."""

SHAPES = ("work", "raw")
IDENTIFIERS = ("doi", "pmid", "pmcid", "arxiv", "openalex")
_PARTS: Mapping[str, frozenset[str]] = {
    name: frozenset(field.name for field in msgspec.structs.fields(part))
    for name, part in (
        ("authors", Author),
        ("editors", Author),
        ("funders", Funder),
        ("relations", Relation),
        ("full_text", Link),
        ("notices", Notice),
        ("citations", Citations),
    )
}
"""Fields that have fields of their own."""
_NEEDED = {"relations": "id", "full_text": "url", "notices": "type"}
"""A part without this one is none."""
_NUMBERED = (
    *IDENTIFIERS,
    "title",
    "container",
    "publisher",
    "language",
    "type",
    "volume",
    "issue",
    "pages",
    "article_number",
)
"""Texts that a JSON API may write as numbers."""


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a record came from, as the reading stage has found it."""

    source: str
    endpoint: str
    id: str
    updated_at: int | None = None
    deleted: bool = False


def work_of(fields: Mapping[str, Any], origin: Origin, raw: Any = None) -> Work:
    """The work of mapped fields. Raises msgspec.ValidationError where a pack maps something of another kind."""
    updated = format_instant(origin.updated_at) if origin.updated_at else None  # 0: unknown
    whole = {
        **fields,
        **{name: str(fields[name]) for name in _NUMBERED if type(fields.get(name)) is int},
        **{name: _whole(fields[name], needed) for name, needed in _NEEDED.items() if fields.get(name)},
        **{name: _whole(list(map(_author, fields.get(name) or ())), "name") for name in ("authors", "editors")},
        "source": origin.source,
        "endpoint": origin.endpoint,
        "id": origin.id,
        "updated": updated,
        "deleted": origin.deleted,
    }
    cited = cast("Mapping[str, Any]", fields.get("citations") or {})
    if cited.get("count") is None:  # an instant alone counts nothing
        whole["citations"] = None
    if fields.get("ids"):
        ids = cast("Mapping[str, Any]", fields["ids"])
        whole["ids"] = {kind: str(value) if type(value) is int else value for kind, value in ids.items()}
    if raw is not None:
        whole["raw"] = raw
    return msgspec.convert(whole, Work)


def _whole(parts: Any, needed: str) -> list[Mapping[str, Any]]:
    """The parts of a list that have what makes them one."""
    return [part for part in cast("list[Mapping[str, Any]]", parts) if part.get(needed)]


def _author(author: Any) -> Mapping[str, Any]:
    """A source that has names only gives texts."""
    return {"name": " ".join(author.split())} if isinstance(author, str) else author


class Misfit(msgspec.Struct, frozen=True, kw_only=True):
    """A part of an output that the shape has no place for; `path` is where it stands below `output`."""

    path: tuple[str, ...]
    message: str
    advice: str


def check_shape(output: Output) -> Iterator[Misfit]:
    """What an output maps that its shape does not have."""
    if output.shape not in SHAPES:
        advice = f"one of {', '.join(SHAPES)}"
        yield Misfit(path=("shape",), message=f"there is no shape {output.shape!r}", advice=advice)
    if output.shape != "work":
        return
    for name, field in output.fields.items():
        if name.startswith("_"):
            continue
        if name not in FIELDS:
            yield Misfit(path=("fields", name), message=f"a work has no field {name!r}", advice=_better(name))
        elif isinstance(field, Field) and name in _PARTS:
            for inner in field.fields:
                if inner not in _PARTS[name] and not inner.startswith("_"):
                    known, path = ", ".join(sorted(_PARTS[name])), ("fields", name, "fields", inner)
                    advice = f"{name} have {known}; _{inner} is for the fields below it only"
                    yield Misfit(path=path, message=f"{name} have no field {inner!r}", advice=advice)
        elif name == "issued" and not _is_dated(field):
            yield Misfit(path=("fields", name), message="issued is a date with its precision", advice="type: DATE")
    if not {*IDENTIFIERS, "title", "ids"} & set(output.fields):
        message = "a work needs at least an identifier or a title"
        yield Misfit(path=("fields",), message=message, advice=f"one of {', '.join(IDENTIFIERS)}, ids, title")


def _is_dated(field: Field | str) -> bool:
    """Whether what a field gives can be a date: typed so, or put together by hand."""
    return isinstance(field, Field) and (field.type is FieldType.DATE or bool(field.fields) or field.expr is not None)


def _better(name: str) -> str:
    if name in {"source", "endpoint", "id", "updated", "deleted", "raw"}:
        return "it is known from where the record came from: idPath, updatedAtPath and deletedPath under response"
    near = get_close_matches(name, FIELDS, n=1, cutoff=0.7)
    if near:
        return f"did you mean {near[0]}?"
    return f"further identifiers go into ids; shape raw keeps any name; _{name} is for the fields below it only"
