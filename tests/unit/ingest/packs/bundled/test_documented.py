"""Packs of which no answers are recorded: answers of our own making in the form that the providers document.

HAL's search, the details of bioRxiv and medRxiv, and version 3 of CORE. The page of sources says of them that they are
not proven against recordings.
"""

import json
from typing import Any

import msgspec
import pytest

from patra.ingest.extraction.body_parser import Document, parse
from patra.ingest.extraction.mapping import Flaw, Mapper
from patra.ingest.extraction.response import Identity, Listed, Reader
from patra.ingest.packs import bundled
from patra.ingest.packs.compiler import compile_spec
from patra.ingest.packs.work import Origin, work_of
from patra.ingest.vocabulary.codes import Operation


def read(source: str, endpoint: str, body: Any) -> tuple[Listed, list[dict[str, Any]]]:
    """A page as the executor reads it, and its works."""
    spec = compile_spec(bundled.pack(source), endpoint, Operation.BACKFILL).spec
    assert spec is not None
    document = parse(json.dumps(body).encode(), spec.response.format)
    assert isinstance(document, Document)
    reader = Reader(spec)
    mapper = Mapper(spec.mapping.output, spec.response, spec.expr, spec.params)
    page = reader.page(document, {}, "https://example.org")
    works: list[dict[str, Any]] = []
    for item in page.items or []:
        identity, fields = reader.identity(item), mapper(item, 0, {"source": source})
        assert isinstance(identity, Identity), identity
        assert not isinstance(fields, Flaw), fields
        origin = Origin(
            source=source, endpoint=endpoint, id=identity.id, updated_at=identity.updated_at, deleted=identity.deleted
        )
        work = msgspec.to_builtins(work_of(fields, origin))
        works.append({key: value for key, value in work.items() if key not in {"source", "endpoint"}})
    return page, works


HAL = {
    "response": {
        "numFound": 3,
        "start": 0,
        "docs": [
            {
                "docid": "4020890", "halId_s": "hal-04020890", "version_i": 2, "doiId_s": "10.5555/Bateaux.1",
                "arxivId_s": "2603.00001", "title_s": ["Les bateaux en papier", "Paper boats"],
                "abstract_s": ["<p>Une &eacute;tude.</p>"], "authFullName_s": ["Ada Lovelace", "Émilie du Châtelet"],
                "journalTitle_s": "Annales des petits bateaux", "journalPublisher_s": "Société de la brume",
                "docType_s": "ART", "publicationDate_s": "2026-03", "producedDate_s": "2026-02-01",
                "language_s": ["fr"], "licence_s": "http://creativecommons.org/licenses/by/4.0/",
                "fileMain_s": "https://hal.science/hal-04020890/document", "uri_s": "https://hal.science/hal-04020890v2",
                "modifiedDate_tdate": "2026-03-05T10:11:12Z",
            },
            {
                "docid": "7", "halId_s": "tel-00000007", "title_s": ["Thèse sur la brume"], "authFullName_s": ["Zoë Müller"],
                "docType_s": "THESE", "producedDate_s": "2019", "modifiedDate_tdate": "2026-03-05T11:00:00Z",
                "uri_s": "https://theses.hal.science/tel-00000007",
            },
            {
                "docid": "8", "halId_s": "hal-00000008", "pubmedId_s": "29456894", "pubmedcentralId_s": "PMC5815332",
                "title_s": ["A talk"], "conferenceTitle_s": "Fog Days", "publisher_s": ["Lantern Press"],
                "docType_s": "COMM", "publicationDate_s": "2025-12-24", "language_s": ["en"],
                "modifiedDate_tdate": "2026-03-05T12:00:00Z",
            },
        ],
    },
    "nextCursorMark": "AoEnNDAyMDg5MA==",
}  # fmt: skip
HAL_WORKS = [
    {
        "id": "hal-04020890", "doi": "10.5555/bateaux.1", "arxiv": "2603.00001", "ids": {"hal": "hal-04020890"},
        "title": "Les bateaux en papier", "abstract": "Une étude.", "type": "article", "language": "fr",
        "authors": [{"name": "Ada Lovelace"}, {"name": "Émilie du Châtelet"}],
        "container": "Annales des petits bateaux", "publisher": "Société de la brume",
        "issued": {"at": "2026-03-01T00:00:00Z", "precision": "month"}, "updated": "2026-03-05T10:11:12Z",
        "license": "cc-by-4.0", "oa_url": "https://hal.science/hal-04020890/document",
        "url": "https://hal.science/hal-04020890v2",
    },
    {
        "id": "tel-00000007", "ids": {"hal": "tel-00000007"}, "title": "Thèse sur la brume", "type": "thesis",
        "authors": [{"name": "Zoë Müller"}], "issued": {"at": "2019-01-01T00:00:00Z", "precision": "year"},
        "updated": "2026-03-05T11:00:00Z", "url": "https://theses.hal.science/tel-00000007",
    },
    {
        "id": "hal-00000008", "pmid": "29456894", "pmcid": "PMC5815332", "ids": {"hal": "hal-00000008"},
        "title": "A talk", "container": "Fog Days", "publisher": "Lantern Press", "type": "conference-paper",
        "issued": {"at": "2025-12-24T00:00:00Z", "precision": "day"}, "updated": "2026-03-05T12:00:00Z", "language": "en",
    },
]  # fmt: skip

BIORXIV = {
    "messages": [{"status": "ok", "interval": "2026-03-01:2026-03-02", "cursor": 0, "count": 3, "total": "93"}],
    "collection": [
        {
            "doi": "10.1101/2026.03.01.600001", "title": "Fog <i>in vitro</i>", "authors": "Lovelace, A.; du Châtelet, É.",
            "author_corresponding": "Ada Lovelace", "author_corresponding_institution": "Analytical Engines",
            "date": "2026-03-01", "version": "2", "type": "new results", "license": "cc_by_nc_nd",
            "category": "biophysics", "jatsxml": "https://www.biorxiv.org/x.source.xml", "abstract": "H<sub>2</sub>O.",
            "published": "10.5555/Fog.7", "server": "bioRxiv",
        },
        {
            "doi": "10.1101/2026.03.02.600002", "title": "WITHDRAWN: Keels", "authors": "Hopper, G.", "date": "2026-03-02",
            "version": "3", "type": "withdrawn", "license": "cc_no", "category": "zoology", "abstract": "",
            "published": "NA", "server": "bioRxiv",
        },
        {
            "doi": "10.1101/2026.03.02.600003", "title": "Lamps", "authors": "The Lamp Collaboration", "date": "2026-03-02",
            "version": "1", "type": "confirmatory results", "license": "cc0", "category": "ecology",
            "abstract": "Lamps.", "published": "NA",
        },
    ],
}  # fmt: skip
_BIORXIV = {"container": "bioRxiv", "publisher": "Cold Spring Harbor Laboratory", "type": "preprint"}
BIORXIV_WORKS = [
    {
        **_BIORXIV, "id": "10.1101/2026.03.01.600001", "doi": "10.1101/2026.03.01.600001", "title": "Fog in vitro",
        "abstract": "H2O.", "ids": {"published_doi": "10.5555/fog.7"}, "keywords": ["biophysics"],
        "full_text": [{"url": "https://www.biorxiv.org/x.source.xml", "type": "application/xml"}],
        "relations": [{"type": "is-preprint-of", "id": "doi:10.5555/fog.7"}], "license": "cc-by-nc-nd",
        "authors": [{"name": "A. Lovelace", "given": "A.", "family": "Lovelace"},
                    {"name": "É. du Châtelet", "given": "É.", "family": "du Châtelet"}],
        "issued": {"at": "2026-03-01T00:00:00Z", "precision": "month"}, "updated": "2026-03-01T00:00:00Z",
        "oa_url": "https://www.biorxiv.org/content/10.1101/2026.03.01.600001v2.full.pdf",
        "url": "https://doi.org/10.1101/2026.03.01.600001",
    },
    {
        **_BIORXIV, "id": "10.1101/2026.03.02.600002", "doi": "10.1101/2026.03.02.600002", "title": "WITHDRAWN: Keels",
        "retracted": True, "notices": [{"type": "withdrawal", "at": "2026-03-02"}], "keywords": ["zoology"],
        "authors": [{"name": "G. Hopper", "given": "G.", "family": "Hopper"}],
        "issued": {"at": "2026-03-01T00:00:00Z", "precision": "month"}, "updated": "2026-03-02T00:00:00Z",
        "oa_url": "https://www.biorxiv.org/content/10.1101/2026.03.02.600002v3.full.pdf",
        "url": "https://doi.org/10.1101/2026.03.02.600002",
    },
    {
        **_BIORXIV, "id": "10.1101/2026.03.02.600003", "doi": "10.1101/2026.03.02.600003", "title": "Lamps",
        "abstract": "Lamps.", "license": "cc0", "authors": [{"name": "The Lamp Collaboration"}], "keywords": ["ecology"],
        "issued": {"at": "2026-03-02T00:00:00Z", "precision": "day"}, "updated": "2026-03-02T00:00:00Z",
        "oa_url": "https://www.biorxiv.org/content/10.1101/2026.03.02.600003v1.full.pdf",
        "url": "https://doi.org/10.1101/2026.03.02.600003",
    },
]  # fmt: skip

CORE = {
    "totalHits": 3, "limit": 100, "offset": 0, "scrollId": "FGluY2x1ZGVfY29udGV4dF91dWlk",
    "results": [
        {
            "id": 998877, "doi": "10.5555/CORE.1", "arxivId": None, "pubmedId": "29456894", "title": "Boats",
            "abstract": "A study\nof boats.", "authors": [{"name": "Lovelace, Ada"}, {"name": "Hopper, Grace"}],
            "createdDate": "2026-01-01T00:00:00", "updatedDate": "2026-03-05T10:11:12", "depositedDate": None,
            "publishedDate": "2026-02-01T00:00:00", "yearPublished": 2026, "publisher": "'Fog Society'",
            "documentType": "research", "language": {"code": "en", "name": "English"}, "deleted": "ALLOWED",
            "downloadUrl": "https://core.ac.uk/download/998877.pdf", "oaiIds": ["oai:x.org:1"],
            "journals": [{"title": "Annals of Small Boats", "identifiers": ["1234-5678"]}],
            "fullText": "Not available for public API users.", "sourceFulltextUrls": ["https://x.org/1.pdf"],
        },
        {
            "id": 2, "doi": None, "arxivId": "2603.00002", "title": "Fog", "abstract": None, "authors": [],
            "createdDate": "2026-03-01T00:00:00", "updatedDate": None, "publishedDate": None, "yearPublished": 2019,
            "documentType": "thesis", "language": None, "deleted": "ALLOWED", "downloadUrl": "", "oaiIds": [],
            "journals": [],
        },
        {
            "id": 3, "title": "Gone", "createdDate": "2026-01-01T00:00:00", "updatedDate": "2026-03-05T11:00:00",
            "deleted": "DELETED", "authors": [],
        },
    ],
}  # fmt: skip
CORE_WORKS = [
    {
        "id": "998877", "doi": "10.5555/core.1", "pmid": "29456894", "ids": {"core": "998877", "oai": "oai:x.org:1"},
        "title": "Boats", "abstract": "A study of boats.", "authors": [{"name": "Ada Lovelace", "given": "Ada", "family": "Lovelace"},
                    {"name": "Grace Hopper", "given": "Grace", "family": "Hopper"}],
        "container": "Annals of Small Boats", "publisher": "'Fog Society'", "type": "article", "language": "en",
        "issued": {"at": "2026-02-01T00:00:00Z", "precision": "day"}, "updated": "2026-03-05T10:11:12Z",
        "oa_url": "https://core.ac.uk/download/998877.pdf", "url": "https://core.ac.uk/works/998877",
        "issn": ["1234-5678"], "full_text": [{"url": "https://core.ac.uk/download/998877.pdf"}],
    },
    {
        "id": "2", "arxiv": "2603.00002", "ids": {"core": "2"}, "title": "Fog", "type": "thesis",
        "issued": {"at": "2019-01-01T00:00:00Z", "precision": "year"}, "updated": "2026-03-01T00:00:00Z",
        "url": "https://core.ac.uk/works/2",
    },
    {
        "id": "3", "ids": {"core": "3"}, "title": "Gone", "updated": "2026-03-05T11:00:00Z", "deleted": True,
        "url": "https://core.ac.uk/works/3",
    },
]  # fmt: skip

CASES = [
    ("hal", "search", HAL, HAL_WORKS, 3, "AoEnNDAyMDg5MA=="),
    ("biorxiv", "details", BIORXIV, BIORXIV_WORKS, 93, None),
    ("core", "works", CORE, CORE_WORKS, 3, "FGluY2x1ZGVfY29udGV4dF91dWlk"),
]


@pytest.mark.parametrize(("source", "endpoint", "body", "works", "total", "token"), CASES, ids=[c[0] for c in CASES])
def test_a_documented_answer_becomes_these_works(
    source: str, endpoint: str, body: Any, works: list[dict[str, Any]], total: int, token: str | None
) -> None:
    page, found = read(source, endpoint, body)
    assert found == works
    assert (page.total, page.token) == (total, token)


@pytest.mark.parametrize(
    ("source", "endpoint", "body"),
    [
        ("biorxiv", "details", {"messages": [{"status": "no posts found"}], "collection": []}),
        ("core", "works", {"totalHits": 0, "results": [], "scrollId": None}),
        ("hal", "search", {"response": {"numFound": 0, "start": 0, "docs": []}, "nextCursorMark": "*"}),
    ],
)
def test_an_answer_without_records_is_an_empty_page(source: str, endpoint: str, body: Any) -> None:
    assert read(source, endpoint, body)[1] == []
