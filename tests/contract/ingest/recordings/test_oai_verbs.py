"""ListIdentifiers with GetRecord, and ListSets, by the real planner and executor against answers of our own making."""

from collections.abc import Mapping
from typing import Any

import pytest

from patra.ingest.packs import bundled
from patra.ingest.planning.trigger import Trigger
from patra.ingest.vocabulary.codes import Operation
from patra.kernel.db import Database
from tests.contract.ingest.recordings.replay import SINCE, UNTIL, Harvest, Replay, local, serving
from tests.contract.ingest.recordings.test_chains import sqlite as sqlite  # noqa: PLC0414  the fixture

HEADERS = {
    "": "<header><identifier>oai:x:1</identifier><datestamp>2026-11-06</datestamp></header>"
    '<header status="deleted"><identifier>oai:x:2</identifier><datestamp>2026-11-06</datestamp></header>'
    "<resumptionToken>more</resumptionToken>",
    "more": "<header><identifier>oai:x:3</identifier><datestamp>2026-11-06</datestamp></header><resumptionToken/>",
}
SETS = {
    "": "<set><setSpec>a</setSpec><setName>Arts</setName></set><resumptionToken>more</resumptionToken>",
    "more": "<set><setSpec>a:b</setSpec><setName>Boats &amp; fog</setName></set>",
}


class Repository(Replay):
    """Answers by the verb."""

    def __init__(self) -> None:
        super().__init__([], "resumptionToken", None)

    def answer(self, path: str, params: Mapping[str, str]) -> tuple[int, Mapping[str, Any], bytes]:
        verb, token = params["verb"], params.get("resumptionToken", "")
        if verb == "GetRecord":
            head = f"<identifier>{params['identifier']}</identifier><datestamp>2026-11-06</datestamp>"
            status = ' status="deleted"' if params["identifier"] == "oai:x:2" else ""
            inner = f"<record><header{status}>{head}</header></record>"
        else:
            inner = {"ListIdentifiers": HEADERS, "ListSets": SETS}[verb][token]
        body = f'<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><{verb}>{inner}</{verb}></OAI-PMH>'
        return 200, {"content-type": "text/xml"}, body.encode()


@pytest.mark.parametrize(
    ("endpoint", "since", "landed"),
    [
        ("identifiers", SINCE, ["oai:x:1", "oai:x:2", "oai:x:3"]),
        ("sets", 0, ["a", "a:b"]),
        ("sets", SINCE, ["a", "a:b"]),
    ],
)
def test_a_verb_is_walked_to_its_end(sqlite: Database, endpoint: str, since: int, landed: list[str]) -> None:
    with serving(Repository()) as url:
        harvest = Harvest(sqlite, local(bundled.text("oaipmh"), "oaipmh.yaml", url))
        try:
            trigger = Trigger(
                source="oaipmh",
                endpoint=endpoint,
                operation=Operation.BACKFILL,
                since=since,
                until=UNTIL,
                params={"baseUrl": f"{url}/oai"},
            )
            assert harvest.planner.trigger(trigger).slices == 1
            harvest.drain()
            assert harvest.tasks() == {"SUCCEEDED i_done": 1}
            assert (harvest.landed(), harvest.quarantined()) == (landed, [])
            [(stats,)] = harvest.rows("SELECT stats FROM ing_task_run")
            assert '"lateArrivals":0' in str(stats).replace(" ", ""), "what tells no time is not late"
            if endpoint == "identifiers":
                gone = harvest.rows("SELECT provider_id FROM ing_record WHERE deleted = 1")
                assert gone == [("oai:x:2",)]
        finally:
            harvest.close()
