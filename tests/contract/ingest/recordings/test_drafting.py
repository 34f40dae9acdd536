"""A pack can be begun from every recorded answer that holds records, and it says what a person reads off the answer."""

import json
from typing import Any

import pytest
import yaml

from patra.ingest.packs import bundled
from patra.ingest.packs.compiler import check_pack
from patra.ingest.packs.problems import errors
from patra.ingest.packs.scaffold import Sample, start_pack
from patra.kernel.errors import Invalid
from tests.contract.ingest.recordings.shelf import FOLDER, needed, recording

pytestmark = needed


def sample(name: str) -> Sample:
    found = recording(name)
    known = not any(mark in found.url for mark in ("...", "{"))
    headers = {key: value for key, value in found.headers.items() if isinstance(value, str)}
    return Sample(body=found.body.encode(), url=found.url if known else None, headers=headers)


def test_every_recorded_answer_gives_a_pack_that_loads_or_a_reason() -> None:
    made = 0
    refused: list[str] = []
    for path in sorted(FOLDER.glob("*/*.json")):
        name = f"{path.parent.name}/{path.name[:3]}"
        if json.loads(path.read_text(encoding="utf-8"))["response"]["status"] != 200:
            continue
        try:
            draft = start_pack(path.parent.name, "records", sample(name))
        except Invalid as error:
            refused.append(error.code)
            continue
        wrong = errors(check_pack(bundled.parse_pack(draft.text, f"{name}.yaml")))
        assert [str(problem) for problem in wrong] == [], name
        made += 1
    assert made > 150
    assert set(refused) <= {"sample_empty", "sample_unreadable"}
    assert len(refused) < 40


READ = {
    "arxiv/001": ("/a:feed/a:entry", "a:id", "a:updated", {"type": "OFFSET"}),
    "clinicaltrials/001": (
        "$.studies", "$.protocolSection.identificationModule.nctId",
        "$.protocolSection.statusModule.startDateStruct.date", {"type": "TOKEN", "nextTokenPath": "$.nextPageToken"}),
    "crossref/001": ("$.message.items", "$.DOI", "$.indexed['date-time']",
                     {"type": "TOKEN", "nextTokenPath": "$.message['next-cursor']", "initial": {"token": "*"}}),
    "datacite/001": ("$.data", "$.id", "$.attributes.updated", {"type": "URL", "nextUrlPath": "$.links.next"}),
    "doaj/001": ("$.results", "$.id", "$.last_updated", {"type": "URL", "nextUrlLink": "next"}),
    "europepmc/001": ("$.resultList.result", "$.id", "$.firstIndexDate",
                      {"type": "TOKEN", "nextTokenPath": "$.nextCursorMark", "repeatedToken": "END"}),
    "oaipmh/017": ("//o:record", "o:header/o:identifier", "o:header/o:datestamp",
                   {"type": "TOKEN", "nextTokenPath": "//o:resumptionToken[normalize-space()]"}),
    "semanticscholar/001": ("$.data", "$.paperId", "$.updated",  # no date in the answer: a guess, marked TODO
                            {"type": "TOKEN", "nextTokenPath": "$.token"}),
    "zenodo/004": ("$.hits.hits", "$.id", "$.modified", {"type": "PAGE"}),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_the_draft_says_what_the_answer_says(name: str) -> None:
    items, identity, updated, pagination = READ[name]
    tree: Any = yaml.safe_load(start_pack(name.partition("/")[0], "records", sample(name)).text)
    endpoint = tree["endpoints"]["records"]
    response = endpoint["response"]
    assert (response["itemsPath"], response["idPath"], response.get("updatedAtPath")) == (items, identity, updated)
    assert pagination.items() <= endpoint["pagination"].items()
