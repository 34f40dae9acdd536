"""Every record of every recorded page becomes a work, or there is a reason that a person understands."""

from collections import Counter

import pytest

from patra.ingest import sources
from patra.ingest.codes import ResponseFormat
from patra.ingest.mapping import Flaw
from patra.ingest.reading import Polluted, list_split
from patra.ingest.works_docs import RECORDED
from tests.contract.ingest.recordings.shelf import leg_of, needed, read
from tests.contract.ingest.recordings.test_chains import CHAINS
from tests.contract.ingest.recordings.test_fields_by_hand import CASES

pytestmark = needed
XML = ResponseFormat.XML


def pages(source: str, endpoint: str, folder: str, *counts: tuple[int, int]) -> list[tuple[str, str, str, int]]:
    return [(source, endpoint, f"{folder}/{number:03}", records) for number, records in counts]


WHOLE = [
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

PARTIAL = [
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
        assert work.updated
        assert work.deleted or work.title or work.doi or work.ids
        for text in (work.title, work.abstract, work.container, *(author.name for author in work.authors)):
            assert text is None or (text == " ".join(text.split()) and "</" not in text and "&amp;" not in text)


@pytest.mark.parametrize(("source", "endpoint", "name", "count"), PARTIAL)
def test_a_record_without_its_update_time_says_so(source: str, endpoint: str, name: str, count: int) -> None:
    found = read(source, endpoint, name)
    assert len(found) == count
    for one in found:
        assert isinstance(one.identity, Polluted)
        assert one.identity.id
        assert one.identity.detail == "nothing means no instant"
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
    used = {(case[0], case[1]) for case in (*CASES, *WHOLE, *PARTIAL, *IDS, ("arxiv", "getRecord"))}
    used |= {(case.source, case.endpoint) for case in CHAINS if case.source != "retired"}
    assert used == {(source, endpoint) for source, endpoints in RECORDED.items() for endpoint in endpoints}


def test_every_pack_with_recordings_has_three_records_read_by_eye() -> None:
    read_by_eye = Counter(case[0] for case in CASES)
    assert {name for name in sources.names() if read_by_eye[name] < 3} == {"hal"}, "no answer of HAL is recorded"


@pytest.mark.parametrize(
    ("source", "endpoint", "name"), [one[:3] for one in WHOLE if leg_of(*one[:2]).response.format is XML]
)
def test_a_large_page_of_xml_is_read_item_by_item_to_the_same_end(
    source: str, endpoint: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = read(source, endpoint, name)
    assert list_split(leg_of(source, endpoint)) is not None or endpoint in {"query", "feed"}
    monkeypatch.setattr("patra.ingest.reading.LARGE", 0)
    assert read(source, endpoint, name) == whole


def test_deleted_records_of_oai_are_kept_as_deleted() -> None:
    found = [one.work for one in read("oaipmh", "records", "oaipmh/016") if one.work is not None]
    assert [work.deleted for work in found].count(True) == 6
    assert all(work.title is None for work in found if work.deleted)


def test_the_error_entry_of_arxiv_is_no_record() -> None:
    [one] = read("arxiv", "query", "arxiv/008")
    assert isinstance(one.identity, Polluted)
