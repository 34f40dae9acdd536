"""What the recordings show of providers, in small answers of our own making: these run where no recordings are.

The numbers are those of the list of facts that came with the recordings; each is something a real provider does.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from patra.ingest.extraction.classify import Action, Classifier
from patra.ingest.http.client import Answer
from patra.kernel.db import Database, open_database
from tests.contract.ingest.recordings.replay import Harvest, Replay, harvested
from tests.contract.ingest.recordings.shelf import Recording, leg_of

OAI = {"baseUrl": "{url}/oai"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    db = open_database(f"sqlite:///{tmp_path / 'patra.db'}")
    yield db
    db.close()


def page(body: Any, query: str = "", status: int = 200) -> Recording:
    """An answer; `query` is what a client must have sent to get it."""
    text = body if isinstance(body, str) else json.dumps(body)
    kind = "text/xml" if text.startswith("<") else "application/json"
    url = f"https://x.org/?{query}"
    return Recording(name="own", method="GET", url=url, status=status, headers={"content-type": kind}, body=text)


def run(store: Database, pages: list[Recording], source: str, endpoint: str, drives: str, **given: Any) -> Harvest:
    """Follow the pages; asking for more than there are, or for others, is an error."""
    details = given.pop("details", None)
    replay = Replay(pages, drives, None, details)
    with harvested(store, replay, source, endpoint, **given) as harvest:
        assert replay.wrong == []
        assert replay.served == len(pages)
        return harvest


def oai(records: str, token: str | None, total: int = 3) -> str:
    more = "" if token is None else f"<resumptionToken completeListSize='{total}'>{token}</resumptionToken>"
    inside = f"<ListRecords>{records}{more}</ListRecords>" if records else ""
    return f'<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">{inside}</OAI-PMH>'


def record(number: int, *, deleted: bool = False) -> str:
    metadata = (
        '<metadata><dc xmlns="http://purl.org/dc/elements/1.1/"><title>Boats</title></dc></metadata>'
        if not deleted
        else ""
    )
    status = ' status="deleted"' if deleted else ""
    return (
        f"<record><header{status}><identifier>oai:x:{number}</identifier><datestamp>2026-11-06</datestamp></header>"
        f"{metadata}</record>"
    )


ERROR = '<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><error code="noRecordsMatch">none</error></OAI-PMH>'


@pytest.mark.parametrize(
    "last",
    [oai(record(3), ""), oai(record(3), None), ERROR],
    ids=["an empty token", "no token", "noRecordsMatch after a valid token"],
)
def test_4_a_list_of_oai_ends_in_three_ways(store: Database, last: str) -> None:
    total = 2 if last is ERROR else 3
    pages = [page(oai(record(1) + record(2, deleted=True), "a", total)), page(last, "resumptionToken=a")]
    harvest = run(store, pages, "oaipmh", "records", "resumptionToken", params=OAI)
    assert harvest.tasks() == {"SUCCEEDED i_done": 1}
    assert len(harvest.landed()) == (2 if last is ERROR else 3)
    assert harvest.rows("SELECT count(*) FROM ing_record WHERE deleted = 1") == [(1,)]


def crossref(number: int) -> dict[str, Any]:
    return {"DOI": f"10.5555/{number}", "title": ["Boats"], "indexed": {"date-time": "2026-11-06T01:00:00Z"}}


def test_1_a_cursor_that_stays_the_same_is_followed_to_the_short_page(store: Database) -> None:
    def listed(*numbers: int) -> dict[str, Any]:
        return {"message": {"total-results": 5, "next-cursor": "same", "items": [crossref(n) for n in numbers]}}

    pages = [page(listed(1, 2)), page(listed(3, 4), "cursor=same"), page(listed(5), "cursor=same")]
    harvest = run(store, pages, "crossref", "works", "cursor", sections={"pagination": {"pageSize": 2}})
    assert (len(harvest.landed()), harvest.tasks()) == (5, {"SUCCEEDED i_done": 1})


@pytest.mark.parametrize(
    "envelope",
    [{"hitCount": 0, "nextCursorMark": "*"}, {"hitCount": 0}],
    ids=["a cursor that would loop", "no cursor"],
)
def test_4_no_hits_of_europe_pmc_are_the_end(store: Database, envelope: dict[str, Any]) -> None:
    harvest = run(store, [page({**envelope, "resultList": {"result": []}})], "europepmc", "search", "cursorMark")
    assert (harvest.landed(), harvest.tasks()) == ([], {"SUCCEEDED i_done": 1})


def test_4_a_token_after_the_last_full_page_leads_to_an_empty_one(store: Database) -> None:
    def study(number: int) -> dict[str, Any]:
        status = {"lastUpdatePostDateStruct": {"date": "2026-11-06"}}
        return {
            "protocolSection": {
                "identificationModule": {"nctId": f"NCT{number:08}", "briefTitle": "Boats"},
                "statusModule": status,
            }
        }

    pages = [
        page({"totalCount": 2, "studies": [study(1), study(2)], "nextPageToken": "t"}),
        page({"studies": []}, "pageToken=t"),
    ]
    harvest = run(store, pages, "clinicaltrials", "studies", "pageToken", sections={"pagination": {"pageSize": 2}})
    assert (len(harvest.landed()), harvest.tasks()) == (2, {"SUCCEEDED i_done": 1})


def test_5_no_data_key_means_no_results(store: Database) -> None:
    harvest = run(store, [page({"total": 0, "offset": 0})], "semanticscholar", "bulk", "token")
    assert (harvest.landed(), harvest.tasks()) == ([], {"SUCCEEDED i_done": 1})


def test_5_a_result_of_null_means_nobody(store: Database) -> None:
    harvest = run(store, [page({"result": None, "num-found": 0})], "orcid", "people", "start")
    assert (harvest.landed(), harvest.tasks()) == ([], {"SUCCEEDED i_done": 1})


def test_11_a_page_that_is_smaller_than_asked_for_moves_the_offset_by_what_came(store: Database) -> None:
    """bioRxiv's pages went from 100 to 30, its total is a text, and the offset stands in the path."""

    def listed(*numbers: int) -> dict[str, Any]:
        rows = [{"doi": f"10.1101/{n}", "title": "Boats", "date": "2026-11-06", "version": "1"} for n in numbers]
        return {"messages": [{"status": "ok", "total": "3"}], "collection": rows}

    paths: list[str] = []

    def answer(path: str) -> Recording:
        paths.append(path)
        offset = int(path.split("/")[-2])
        return page(listed(*[1, 2, 3][offset : offset + 2]))

    replay = Replay([], "none", None, answer)
    with harvested(store, replay, "biorxiv", "details") as harvest:
        assert (len(harvest.landed()), harvest.tasks()) == (3, {"SUCCEEDED i_done": 1})
    assert [path.split("/")[-2] for path in paths][:2] == ["0", "2"]


@pytest.mark.parametrize(
    ("told", "ended"), [(10, "SUCCEEDED i_done"), (12, "SUCCEEDED i_done"), (13, "FAILED i_incomplete")]
)
def test_a_total_of_biorxiv_that_is_a_fifth_too_high_is_believed_and_a_higher_one_is_not(
    store: Database, told: int, ended: str
) -> None:
    """It counts what the list does not hold; how much is declared, and more than that is said aloud, never taken for done."""

    def answer(path: str) -> Recording:
        offset = int(path.split("/")[-2])
        rows = [{"doi": f"10.1101/{n}", "title": "Boats", "date": "2026-11-06", "version": "1"} for n in range(10)]
        return page({"messages": [{"status": "ok", "total": str(told)}], "collection": rows[offset : offset + 4]})

    with harvested(store, Replay([], "none", None, answer), "biorxiv", "details") as harvest:
        assert (len(harvest.landed()), harvest.tasks()) == (10, {ended: 1})


def test_13_a_date_that_means_nothing_does_not_lose_the_record(store: Database) -> None:
    item = {**crossref(1), "issued": {"date-parts": [[None]]}}
    body = {"message": {"total-results": 1, "next-cursor": "x", "items": [item]}}
    harvest = run(store, [page(body)], "crossref", "works", "cursor")
    assert (harvest.landed(), harvest.quarantined()) == (["10.5555/1"], [])


def test_a_record_without_its_time_of_change_is_in_the_quarantine_with_a_reason(store: Database) -> None:
    body = {"message": {"total-results": 2, "next-cursor": "x", "items": [crossref(1), {"DOI": "10.5555/2"}]}}
    harvest = run(store, [page(body)], "crossref", "works", "cursor")
    assert harvest.landed() == ["10.5555/1"]
    assert harvest.quarantined() == [("10.5555/2", "i_no_updated_at_value", "nothing means no instant")]


ATOM = '<feed xmlns="http://www.w3.org/2005/Atom"><entry><title>Error</title><summary>bad id</summary></entry></feed>'
ERRORS = [
    ("crossref", "works", 404, '{"status": "failed", "message": [{"type": "cursor-invalid"}]}', Action.RESTART, None),
    ("crossref", "work", 404, "Resource not found.", Action.EMPTY, None),
    ("crossref", "works", 400, '{"status": "failed", "message": [{"type": "x"}]}', Action.FAIL, "L2"),
    ("crossref", "works", 429, "<html>Too many</html>", Action.RETRY, "L1"),
    ("pubmed", "fetch", 400, "<e><ERROR>External viewer error: Status: Timeout</ERROR></e>", Action.RETRY, "L1"),
    ("pubmed", "fetch", 200, "<e><ERROR>Neither query_key nor id</ERROR></e>", Action.FAIL, "L2"),
    ("pubmed", "search", 200, '{"error": "API rate limit exceeded", "count": "4"}', Action.RETRY, "L1"),
    ("pubmed", "search", 200, '{"esearchresult": {"ERROR": "retstart above 9998"}}', Action.FAIL, "L2"),
    ("arxiv", "query", 400, ATOM, Action.FAIL, "L2"),
    ("oaipmh", "records", 200, ERROR.replace("noRecordsMatch", "badResumptionToken"), Action.RESTART, None),
    ("oaipmh", "records", 200, ERROR.replace("noRecordsMatch", "badArgument"), Action.FAIL, "L2"),
    ("core", "search_v2", 200, '{"status": "Not found", "data": null}', Action.EMPTY, None),
    ("semanticscholar", "batch", 403, '{"message": "Forbidden"}', Action.HALT, "L4"),
    ("orcid", "works", 404, '{"response-code": 404}', Action.EMPTY, None),
]


@pytest.mark.parametrize(("source", "endpoint", "status", "body", "action", "level"), ERRORS)
def test_2_6_7_14_an_error_has_its_class_whatever_it_comes_as(
    source: str, endpoint: str, status: int, body: str, action: Action, level: str | None
) -> None:
    kind = "text/html" if body.startswith("<html") else "text/xml" if body.startswith("<") else "application/json"
    kind = "text/plain" if body.startswith("Res") else kind
    answer = Answer(
        status=status, headers={"content-type": kind}, body=body.encode(), url="https://x.org", elapsed=1, wire_bytes=1
    )
    verdict, _ = Classifier(leg_of(source, endpoint)).judge(answer, 0)
    assert (verdict.action, verdict.level) == (action, level)
