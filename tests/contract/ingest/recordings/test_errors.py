"""Every recorded error gets the right class and action, whether it came with its status or inside a 200."""

import json

import pytest

from patra.ingest.extraction.classify import Action, Classifier
from patra.ingest.http.client import Answer
from tests.contract.ingest.recordings.shelf import FOLDERS, leg_of, needed, recording

pytestmark = needed

CASES = [
    ("arxiv", "query", "arxiv/008", Action.FAIL, "L2"),  # a feed with one entry titled Error
    ("arxiv", "getRecord", "arxiv/011", Action.EMPTY, None),  # idDoesNotExist inside a 200
    ("core", "search_v2", "core/002", Action.EMPTY, None),
    ("crossref", "works", "crossref/004", Action.RESTART, None),  # the cursor has expired
    ("crossref", "work", "crossref/005", Action.EMPTY, None),  # unknown DOI, as plain text
    ("crossref", "works", "crossref/006", Action.FAIL, "L2"),
    ("crossref", "works", "crossref/007", Action.FAIL, "L2"),
    ("crossref", "work", "crossref/014", Action.RETRY, "L1"),  # 429 as HTML
    ("crossref", "work", "crossref/015", Action.EMPTY, None),
    ("datacite", "doi", "datacite/005", Action.EMPTY, None),
    ("oaipmh", "records", "oaipmh/014", Action.EMPTY, None),  # noRecordsMatch after a valid token
    ("openalex", "works", "openalex/020", Action.HALT, "L4"),  # a bad key
    ("openalex", "works", "openalex/021", Action.FAIL, "L2"),  # an unknown field
    ("orcid", "people", "orcid/004", Action.FAIL, "L2"),  # 500 for a bad number
    ("orcid", "people", "orcid/005", Action.FAIL, "L2"),
    ("orcid", "works", "orcid/006", Action.EMPTY, None),
    ("pubmed", "fetch", "pubmed/010", Action.FAIL, "L2"),  # 414
    ("pubmed", "fetch", "pubmed/011", Action.RETRY, "L1"),  # 400 that is a timeout
    ("pubmed", "search", "pubmed/011", Action.RETRY, "L1"),
    ("pubmed", "fetch", "pubmed/018", Action.FAIL, "L2"),  # ERROR inside a 200
    ("pubmed", "fetch", "pubmed/019", Action.FAIL, "L2"),
    ("pubmed", "fetch", "pubmed/024", Action.FAIL, "L2"),
    ("pubmed", "search", "pubmed/031", Action.RETRY, "L1"),
    ("semanticscholar", "bulk", "semanticscholar/009", Action.FAIL, "L2"),
    ("semanticscholar", "batch", "semanticscholar/010", Action.HALT, "L4"),  # a bad key
    ("semanticscholar", "bulk", "semanticscholar/011", Action.FAIL, "L2"),
    ("pmc", "convert", "pmc/006", Action.FAIL, "L2"),  # ids of another kind than was said
    ("ror", "organization", "ror/006", Action.EMPTY, None),
    ("unpaywall", "doi", "unpaywall/001", Action.EMPTY, None),
]
INSIDE_200 = {"arxiv/011", "core/002", "oaipmh/014", "pubmed/018", "pubmed/019", "pubmed/024"}
"""Errors that came with a status 200, as the list of the recordings names them."""


def test_no_recorded_error_is_left_out() -> None:
    """A redirect is none: the chain of it is followed."""
    failed: set[str] = set()
    for path in (path for folder in FOLDERS for path in folder.glob("*/*.json")):
        status = json.loads(path.read_text(encoding="utf-8"))["response"]["status"]
        if status >= 400:
            failed.add(f"{path.parent.name}/{path.name[:3]}")
    assert {case[2] for case in CASES} == failed | INSIDE_200


@pytest.mark.parametrize(("source", "endpoint", "name", "action", "level"), CASES)
def test_an_error_is_classified(source: str, endpoint: str, name: str, action: Action, level: str | None) -> None:
    found = recording(name)
    headers = {key: value if isinstance(value, str) else ", ".join(value) for key, value in found.headers.items()}
    answer = Answer(
        status=found.status, headers=headers, body=found.body.encode(), url=found.url, elapsed=1, wire_bytes=1
    )
    verdict, _ = Classifier(leg_of(source, endpoint)).judge(answer, 0)
    assert (verdict.action, verdict.level) == (action, level)
    assert verdict.action in {Action.EMPTY, Action.RESTART} or verdict.detail


def test_an_answer_that_is_no_error_is_none() -> None:
    """Unknown ids are passed over by efetch, and a search without hits lists what it did not find: both are empty."""
    for source, endpoint, name in (("pubmed", "fetch", "pubmed/006"), ("europepmc", "search", "europepmc/013")):
        found = recording(name)
        answer = Answer(status=200, headers={}, body=found.body.encode(), url=found.url, elapsed=1, wire_bytes=1)
        verdict, _ = Classifier(leg_of(source, endpoint)).judge(answer, 0)
        assert (verdict.action in {Action.ACCEPT, Action.EMPTY}, verdict.level) == (True, None)


def test_a_rate_limit_inside_a_200_is_waited_for() -> None:
    body = recording("pubmed/031").body.encode()
    answer = Answer(
        status=200,
        headers={"content-type": "application/json"},
        body=body,
        url="https://x.org",
        elapsed=1,
        wire_bytes=1,
    )
    verdict, _ = Classifier(leg_of("pubmed", "search")).judge(answer, 0)
    assert (verdict.action, verdict.level) == (Action.RETRY, "L1")
