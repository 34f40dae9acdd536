"""Every recorded chain of pages is followed to its end by the real executor; each record lands once or says why not."""

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from patra.kernel.db import Database
from tests.contract.ingest.recordings.replay import Replay, chain, harvested
from tests.contract.ingest.recordings.shelf import needed, recording

pytestmark = needed


def emptied(*path: str, drop: str | None = None) -> Callable[[str], bytes]:
    """The page behind the last recorded one: the same envelope without records."""

    def make(body: str) -> bytes:
        document = json.loads(body)
        node: Any = document
        for step in path[:-1]:
            node = node[step]
        node[path[-1]] = []
        if drop is not None:
            document.pop(drop, None)
        return json.dumps(document).encode()

    return make


def without_entries(body: str) -> bytes:
    return re.sub(r"<entry>.*?</entry>\s*", "", body, flags=re.DOTALL).encode()


OAI = {"baseUrl": "{url}/oai"}

CHAINS: list[tuple[str, str, str, str, int, dict[str, Any], dict[str, Any], Callable[[str], bytes] | None]] = [
    ("arxiv-testing-10", "arxiv", "query", "start", 60, {"pagination": {"pageSize": 10}}, {}, without_entries),
    ("crossref-habanero-widget", "crossref", "works", "cursor", 60, {"pagination": {"pageSize": 20}}, {},
     emptied("message", "items")),
    ("europepmc-cancer-10", "europepmc", "search", "cursorMark", 1000, {"pagination": {"pageSize": 100}},
     {"resultType": "lite"}, emptied("resultList", "result", drop="nextCursorMark")),
    ("oai-mla-14", "oaipmh", "records", "resumptionToken", 319, {}, OAI, None),
    ("oai-spdataverse", "oaipmh", "records", "resumptionToken", 19, {}, OAI, None),
    ("oai-dryad-3", "oaipmh", "records", "resumptionToken", 294, {}, OAI, None),
    ("oai-hacettepe-2", "oaipmh", "records", "resumptionToken", 103, {}, OAI, None),
    ("datacite-oai-56", "oaipmh", "records", "resumptionToken", 56, {}, OAI, None),
    ("oai-purdue", "oaipmh", "records", "resumptionToken", 1, {}, OAI, None),
]  # fmt: skip


@pytest.fixture
def database(tmp_path: Any) -> Any:
    from patra.kernel.db import open_database

    db = open_database(f"sqlite:///{tmp_path / 'patra.db'}")
    yield db
    db.close()


@pytest.mark.parametrize(
    ("name", "source", "endpoint", "drives", "count", "sections", "params", "end"), CHAINS, ids=[c[0] for c in CHAINS]
)
def test_a_chain_is_followed_to_its_end(
    database: Database,
    name: str,
    source: str,
    endpoint: str,
    drives: str,
    count: int,
    sections: dict[str, Any],
    params: dict[str, Any],
    end: Callable[[str], bytes] | None,
) -> None:
    pages = chain(name)
    replay = Replay(pages, drives, end(pages[-1].body) if end is not None else None)
    with harvested(database, replay, source, endpoint, sections=sections, params=params) as harvest:
        assert replay.wrong == []
        assert harvest.tasks() == {"SUCCEEDED i_done": 1}
        assert harvest.quarantined() == []
        assert len(harvest.landed()) == count
        assert replay.served >= len(pages)


SINGLE = [
    ("arxiv/013", "arxiv", "oai", 95, {}),
    ("oaipmh/022", "oaipmh", "records", 173, OAI),  # the total says 174
    ("oaipmh/025", "oaipmh", "records", 20, OAI),
    ("oaipmh/026", "oaipmh", "marc", 2, OAI),
    ("zenodo/007", "oaipmh", "records", 7, OAI),
    ("biorxiv/003", "biorxiv", "feed", 30, {}),
]


@pytest.mark.parametrize(("name", "source", "endpoint", "count", "params"), SINGLE, ids=[s[0] for s in SINGLE])
def test_a_list_of_one_page(
    database: Database, name: str, source: str, endpoint: str, count: int, params: dict[str, Any]
) -> None:
    replay = Replay([recording(name)], "resumptionToken", None)
    with harvested(database, replay, source, endpoint, params=params) as harvest:
        assert replay.wrong == []
        assert harvest.tasks() == {"SUCCEEDED i_done": 1}
        assert (len(harvest.landed()), harvest.quarantined()) == (count if source != "biorxiv" else 0, [])


@pytest.mark.parametrize(
    ("name", "source", "endpoint", "drives", "count", "end"),
    [
        ("s2-bulk-2674", "semanticscholar", "bulk", "token", 2674, None),
        ("ctgov-phelan", "clinicaltrials", "studies", "pageToken", 10, emptied("studies", drop="nextPageToken")),
    ],
    ids=["s2-bulk-2674", "ctgov-phelan"],
)
def test_records_without_an_update_time_are_all_in_the_quarantine(
    database: Database,
    name: str,
    source: str,
    endpoint: str,
    drives: str,
    count: int,
    end: Callable[[str], bytes] | None,
) -> None:
    """The recorded clients asked for a few fields; a person is told which one is missing."""
    pages = chain(name)
    replay = Replay(pages, drives, end(pages[-1].body) if end is not None else None)
    with harvested(database, replay, source, endpoint, sections={"pagination": {"pageSize": 5}}) as harvest:
        assert replay.wrong == []
        bad = harvest.quarantined()
        assert len(bad) == count
        assert {detail for _, _, detail in bad} == {"nothing means no instant"}
        assert harvest.landed() == []


def test_people_are_found_and_their_works_read(database: Database) -> None:
    """ORCID: ids of people on two pages, then the works of each; here everyone has none but one."""
    pages = chain("orcid-search-3")
    first = json.loads(pages[0].body)["result"][0]["orcid-identifier"]["path"]
    end = json.dumps({"result": None, "num-found": 6}).encode()

    def works(path: str) -> Any:
        return recording("orcid/008" if first in path else "orcid/007")

    replay = Replay(pages, "start", end, works)
    with harvested(database, replay, "orcid", "people", sections={"pagination": {"pageSize": 3}}) as harvest:
        assert replay.wrong == []
        assert harvest.tasks() == {"SUCCEEDED i_done": 1}
        assert (len(harvest.landed()), harvest.quarantined()) == (8, [])


RETIRED = Path(__file__).with_name("retired.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "endpoint", "drives", "landed", "reasons", "end"),
    [
        ("crossref-eventdata-355", "events", "cursor", 355, {}, None),
        ("datacite-re3data-climate", "re3data", "page[number]", 49, {"i_no_id": 1}, emptied("data", drop="links")),
        ("s2-search-turing", "search", "offset", 0, {"i_no_updated_at_value": 200}, emptied("data", drop="next")),
        ("s2-references", "references", "offset", 0, {"i_no_updated_at_value": 44, "i_no_id": 23}, None),
    ],
    ids=["crossref-eventdata-355", "datacite-re3data-climate", "s2-search-turing", "s2-references"],
)
def test_chains_of_services_without_a_pack(
    database: Database,
    name: str,
    endpoint: str,
    drives: str,
    landed: int,
    reasons: dict[str, int],
    end: Callable[[str], bytes] | None,
) -> None:
    pages = chain(name)
    replay = Replay(pages, drives, end(pages[-1].body) if end is not None else None)
    with harvested(database, replay, "retired", endpoint, text=RETIRED) as harvest:
        assert replay.wrong == []
        assert len(harvest.landed()) == landed
        assert Counter(code for _, code, _ in harvest.quarantined()) == reasons


def test_summaries_keyed_by_id_are_records(database: Database) -> None:
    """PubMed Central: ids as XML, then an object whose members are the records."""
    first, second = chain("pubmed-fulltext-esearch-esummary")
    replay = Replay([first], "retstart", b"<eSearchResult><IdList/></eSearchResult>", lambda _: second)
    with harvested(database, replay, "retired", "pmc", text=RETIRED) as harvest:
        assert (len(harvest.landed()), harvest.tasks()) == (200, {"SUCCEEDED i_done": 1})
