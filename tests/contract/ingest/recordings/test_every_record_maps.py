"""Every record of every recorded page becomes a work, or there is a reason that a person understands."""

from collections import Counter

import pytest

from patra.ingest.extraction.list_outline import list_split
from patra.ingest.extraction.mapping import Flaw
from patra.ingest.extraction.response import Identity, Polluted
from patra.ingest.packs import bundled
from patra.ingest.vocabulary.codes import ResponseFormat
from patra.ingest.works.docs import RECORDED
from tests.contract.ingest.recordings.shelf import leg_of, needed, read
from tests.contract.ingest.recordings.test_chains import CHAINS
from tests.contract.ingest.recordings.test_fields_by_hand import CASES
from tests.contract.ingest.recordings.test_values_by_hand import VALUES

pytestmark = needed
XML = ResponseFormat.XML


def pages(source: str, endpoint: str, folder: str, *counts: tuple[int, int]) -> list[tuple[str, str, str, int]]:
    return [(source, endpoint, f"{folder}/{number:03}", records) for number, records in counts]


WHOLE = [
    *pages("ads", "search", "ads", (2, 0), (3, 28)),
    *pages("dblp", "search", "dblp", (1, 1)),
    *pages("eric", "search", "eric", (1, 1)),
    *pages("inspire", "literature", "inspire", (1, 3)),
    *pages("jstage", "articles", "jstage", (1, 2)),
    *pages("openalex", "works", "openalex", (22, 1)),
    *pages("openalex", "work", "openalex", (23, 1)),
    *pages("pmc", "records", "pmc", (1, 50), (2, 50), (3, 50), (4, 44)),
    *pages("unpaywall", "doi", "unpaywall", (2, 1), (3, 1), (6, 1)),
    *pages("arxiv", "query", "arxiv", (1, 10), (2, 10), (3, 10), (4, 10), (5, 10), (6, 10), (7, 0), (9, 1), (10, 1)),
    *pages("arxiv", "oai", "arxiv", (11, 0), (12, 1), (13, 95), (14, 1), (15, 1), (16, 1)),
    *pages("biorxiv", "feed", "biorxiv", (2, 30), (3, 30)),
    *pages("clinicaltrials", "study", "clinicaltrials", (5, 1), (6, 1), (7, 1)),
    *pages("core", "search_v2", "core", (1, 10), (2, 0)),
    *pages("crossref", "works", "crossref", (1, 20), (2, 20), (3, 20), (9, 2), (10, 2), (39, 1)),
    *pages("crossref", "work", "crossref", *((number, 1) for number in (11, 12, 32, 33, 34, 35, 36, 37, 38))),
    *pages("datacite", "dois", "datacite", (1, 5)),
    *pages("datacite", "doi", "datacite", *((number, 1) for number in range(6, 14))),
    *pages("doaj", "articles", "doaj", (1, 10), (2, 2)),
    *pages("doaj", "article", "doaj", (3, 1)),
    *pages("europepmc", "search", "europepmc", *((number, 100) for number in range(1, 11))),
    *pages("europepmc", "search", "europepmc", (11, 25), (12, 5), (13, 0), (15, 25), (18, 25)),
    *pages("oaipmh", "records", "oaipmh", *((number, 25) for number in range(1, 13)), (13, 19), (14, 0)),
    *pages("oaipmh", "records", "oaipmh", (15, 10), (16, 9), (17, 100), (18, 100), (19, 94), (20, 100), (21, 3)),
    *pages("oaipmh", "records", "oaipmh", (22, 173), (24, 1), (25, 20)),
    *pages("oaipmh", "marc", "oaipmh", (26, 2)),
    *pages("oaipmh", "records", "zenodo", (7, 7)),
    *pages("oaipmh", "records", "datacite", (18, 50), (19, 6)),
    *pages("openalex", "work", "openalex", *((number, 1) for number in range(11, 19))),
    *pages("orcid", "works", "orcid", (7, 0), (8, 8)),
    *pages("orcid", "work", "orcid", (10, 1)),
    *pages("pubmed", "fetch", "pubmed", (5, 4), (6, 0), (7, 1), (25, 2), (26, 1), (27, 1), (32, 1)),
    *pages("semanticscholar", "batch", "semanticscholar", (12, 3)),
    *pages("semanticscholar", "bulk", "semanticscholar", (4, 0)),
    *pages("zenodo", "records", "zenodo", (4, 10), (5, 1)),
    *pages("zenodo", "record", "zenodo", (1, 1), (2, 1), (3, 1)),
]

WITHOUT_TIME = [
    *pages("openaire", "products", "openaire", (1, 5)),
    *pages("opencitations", "work", "opencitations", (7, 1)),
    *pages("opencitations", "cited", "opencitations", (4, 1)),
    *pages("pmc", "convert", "pmc", (5, 1), (7, 0)),
]
WHOLE += WITHOUT_TIME
TIMELESS = {"openaire", "opencitations", "pmc"}
"""Sources, or endpoints of them, that give no time of change."""

ORGANISATIONS = [
    *pages("ror", "organizations", "ror", (1, 20), (2, 20), (3, 0), (4, 13), (5, 20)),
    *pages("ror", "organization", "ror", (7, 1), (8, 1)),
]

PARTIAL = [
    *pages("ads", "search", "ads", (1, 1), (4, 1), (5, 2)),
    *pages("hal", "search", "hal", (1, 3), (2, 1), (3, 2)),
    *pages("clinicaltrials", "studies", "clinicaltrials", (1, 5), (2, 5), (3, 1)),
    *pages("crossref", "works", "crossref", (13, 20)),
    *pages("europepmc", "search", "europepmc", (14, 25)),
    *pages("semanticscholar", "bulk", "semanticscholar", (1, 1000), (2, 1000), (3, 674)),
]
"""Recorded by clients that asked for a few fields only, the update time not among them."""


@pytest.mark.parametrize(("source", "endpoint", "name", "count"), WHOLE)
def test_every_record_becomes_a_work(source: str, endpoint: str, name: str, count: int) -> None:
    found = read(source, endpoint, name)
    assert len(found) == count
    assert [one for one in found if one.work is None] == []
    for one in found:
        work = one.work
        assert work is not None
        assert work.id
        assert work.updated or source in TIMELESS
        assert work.deleted or work.title or work.doi or work.ids
        for text in (work.title, work.abstract, work.container, *(author.name for author in work.authors)):
            assert text is None or (text == " ".join(text.split()) and "</" not in text and "&amp;" not in text)


WITHOUT_ID = {"ads/001"}


@pytest.mark.parametrize(("source", "endpoint", "name", "count"), ORGANISATIONS)
def test_every_organisation_has_an_id_and_a_name(source: str, endpoint: str, name: str, count: int) -> None:
    found = read(source, endpoint, name)
    assert len(found) == count
    for one in found:
        assert isinstance(one.identity, Identity)
        assert isinstance(one.fields, dict)
        assert one.fields["ror"] == one.identity.id
        assert one.fields["name"]


@pytest.mark.parametrize(("source", "endpoint", "name", "count"), PARTIAL)
def test_a_record_without_its_update_time_says_so(source: str, endpoint: str, name: str, count: int) -> None:
    found = read(source, endpoint, name)
    assert len(found) == count
    for one in found:
        assert isinstance(one.identity, Polluted)
        assert one.identity.id or name in WITHOUT_ID
        assert one.identity.detail in {"nothing means no instant", "no id there"}
        assert not isinstance(one.fields, Flaw)
        assert one.fields["title" if name != "europepmc/014" else "ids"]


IDS = [
    ("pubmed", "search", "pubmed/029", 100),
    ("pubmed", "search", "pubmed/030", 3),
    ("orcid", "people", "orcid/002", 3),
]


@pytest.mark.parametrize(("source", "endpoint", "name", "count"), IDS)
def test_a_search_gives_ids(source: str, endpoint: str, name: str, count: int) -> None:
    found = [one.identity for one in read(source, endpoint, name)]
    assert len({one.id for one in found}) == count


def test_a_record_asked_for_by_id_is_read_as_one_of_the_list() -> None:
    [one] = read("arxiv", "getRecord", "arxiv/012")
    assert one.work is not None
    assert one.work.arxiv


def test_the_page_of_sources_says_what_is_held_to_recordings() -> None:
    used = {
        (case[0], case[1])
        for case in (*CASES, *WHOLE, *PARTIAL, *IDS, *ORGANISATIONS, ("arxiv", "getRecord"), ("osf", "preprint"))
    }
    used |= {(case.source, case.endpoint) for case in CHAINS if case.source != "retired"}
    assert used == {(source, endpoint) for source, endpoints in RECORDED.items() for endpoint in endpoints}


def test_every_pack_with_recordings_has_three_records_read_by_eye() -> None:
    count = Counter(source for source, _, _ in {(case[0], case[2], case[3]) for case in (*CASES, *VALUES)})
    few = {"dblp", "eric", "hal", "jstage", "opencitations", "osf", "ror"}
    assert {name for name in bundled.names() if count[name] < 3} == few, "fewer records of these are recorded in full"


@pytest.mark.parametrize(
    ("source", "endpoint", "name"), [one[:3] for one in WHOLE if leg_of(*one[:2]).response.format is XML]
)
def test_a_large_page_of_xml_is_read_item_by_item_to_the_same_end(
    source: str, endpoint: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = read(source, endpoint, name)
    assert list_split(leg_of(source, endpoint)) is not None or endpoint in {"query", "feed", "articles"}
    monkeypatch.setattr("patra.ingest.extraction.body_parser.SPLIT_FROM_BYTES", 0)
    assert read(source, endpoint, name) == whole


def test_deleted_records_of_oai_are_kept_as_deleted() -> None:
    found = [one.work for one in read("oaipmh", "records", "oaipmh/016") if one.work is not None]
    assert [work.deleted for work in found].count(True) == 6
    assert all(work.title is None for work in found if work.deleted)


def test_the_error_entry_of_arxiv_is_no_record() -> None:
    [one] = read("arxiv", "query", "arxiv/008")
    assert isinstance(one.identity, Polluted)
