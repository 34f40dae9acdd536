"""Sources without a list are asked about ids that others have found: an UPDATE of these ids lands their records."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from patra.ingest.packs import bundled
from patra.ingest.planning.trigger import Trigger
from patra.ingest.vocabulary.codes import Operation
from patra.ingest.works.merge import group_works, merge_works
from patra.ingest.works.read import works
from patra.kernel.clock import DAY
from patra.kernel.db import open_database
from tests.contract.ingest.recordings import shelf
from tests.contract.ingest.recordings.replay import SINCE, Harvest, Replay, local, serving
from tests.contract.ingest.recordings.shelf import Recording, needed, recording

pytestmark = needed
JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("source", "endpoint", "name", "asked", "landed"),
    [
        ("unpaywall", "doi", "unpaywall/002", "10.1001/jamadermatol.2015.3091", "10.1001/jamadermatol.2015.3091"),
        ("opencitations", "cited", "opencitations/004", "10.1108/jd-12-2013-0166", "10.1108/jd-12-2013-0166"),
        ("pmc", "convert", "pmc/005", "PMC2883744", "PMC2883744"),
    ],
)
def test_records_are_read_by_id(tmp_path: Path, source: str, endpoint: str, name: str, asked: str, landed: str) -> None:
    db = open_database(f"sqlite:///{tmp_path / 'patra.db'}")
    replay = Replay([], "none", None, lambda _: recording(name))
    with serving(replay) as url:
        harvest = Harvest(db, local(bundled.text(source), f"{source}.yaml", url))
        try:
            params = {"email": "someone@example.org"} if source != "opencitations" else {}
            trigger = Trigger(source=source, endpoint=endpoint, operation=Operation.UPDATE, ids=(asked,), params=params)
            planned = harvest.planner.trigger(trigger)
            assert planned.slices == 1, planned
            harvest.drain()
            assert (harvest.landed(), harvest.quarantined()) == ([landed], [])
        finally:
            harvest.close()
            db.close()


def test_a_doi_that_became_an_alias_is_joined_with_the_one_it_leads_to(tmp_path: Path) -> None:
    """Crossref answers 301 to it; the record comes under its own DOI, and neither is lost."""
    own = recording("crossref/011")
    doi = json.loads(own.body)["message"]["DOI"]
    moved = msgspec.structs.replace(own, status=301, headers={"location": f"/works/{doi}"}, body="")
    db = open_database(f"sqlite:///{tmp_path / 'patra.db'}")
    replay = Replay([], "none", None, lambda path: moved if "10.5555" in path else own)
    with serving(replay) as url:
        harvest = Harvest(db, local(bundled.text("crossref"), "crossref.yaml", url))
        try:
            asked = ("10.5555/Old.1", doi.upper())
            trigger = Trigger(source="crossref", endpoint="work", operation=Operation.UPDATE, ids=asked)
            assert harvest.planner.trigger(trigger).slices == 1
            harvest.drain()
            assert (sorted(harvest.landed()), harvest.quarantined()) == (sorted({doi, "10.5555/Old.1"}), [])
            found = [work for page in works(db) for work in page if work is not None]
            [group] = group_works(found)
            one = merge_works(group)
            assert one.doi == doi.lower()
            assert one.ids["doi"] == [doi.lower(), "10.5555/old.1"]
            assert [(join.by, join.why) for join in one.joins] == [(f"doi:{doi.lower()}", "is-identical-to")]
            assert one.title
        finally:
            harvest.close()
            db.close()


DELETIONS = [
    ("zenodo", "record", "zenodo/001", 410),
    ("doaj", "article", "doaj/003", 404),
    ("datacite", "doi", "datacite/006", 404),
]


@pytest.mark.parametrize(("source", "endpoint", "name", "status"), DELETIONS, ids=[one[0] for one in DELETIONS])
def test_a_record_that_its_source_has_no_more_is_deleted_until_it_comes_back(
    tmp_path: Path, source: str, endpoint: str, name: str, status: int
) -> None:
    there = recording(name)
    [read] = shelf.read(source, endpoint, name)
    known = str(read.identity.id)
    now = {"says": there}
    db = open_database(f"sqlite:///{tmp_path / 'patra.db'}")
    with serving(Replay([], "none", None, lambda path: now["says"])) as url:
        harvest = Harvest(db, local(bundled.text(source), f"{source}.yaml", url))

        def asked(answer: Recording, *ids: str) -> list[tuple[Any, ...]]:
            now["says"] = answer
            trigger = Trigger(
                source=source, endpoint=endpoint, operation=Operation.UPDATE, ids=ids, activity=str(len(history))
            )
            history.append(harvest.planner.trigger(trigger))
            harvest.drain()
            return harvest.rows("SELECT provider_id, deleted FROM ing_record ORDER BY provider_id")

        history: list[Any] = []
        try:
            assert asked(there, known) == [(known, 0)]
            gone = msgspec.structs.replace(there, status=status, body="{}")
            refused = msgspec.structs.replace(there, status=400, body="{}")
            assert asked(refused, known) == [(known, 0)], "an error says nothing of the record"
            silent = msgspec.structs.replace(there, status=204, body="")
            assert asked(silent, known) == [(known, 0)], "no rule of the pack says what no content means"
            assert asked(gone, known, "10.5555/never") == [(known, 1)], "what was never there is not deleted"
            assert asked(there, known) == [(known, 0)]
        finally:
            harvest.close()
            db.close()


def test_authors_that_a_list_of_openalex_cuts_are_read_one_by_one_and_stay(tmp_path: Path) -> None:
    """The record by id has the same update time; neither it nor the next reading of the list may lose any."""
    whole = {**json.loads(recording("openalex/011").body), "id": "https://openalex.org/W1"}
    names = [{"author_position": "middle", "author": {"display_name": f"Author {n}"}} for n in range(150)]
    cut = {**whole, "authorships": names[:100], "is_authors_truncated": True}
    bodies = {
        "/works": {"meta": {"count": 1, "next_cursor": None}, "results": [cut]},
        "/works/https://openalex.org/W1": {**whole, "authorships": names},
    }

    def answer(path: str) -> Recording:
        body = json.dumps(bodies[path])
        return Recording(name="own", method="GET", url="", status=200, headers=JSON, body=body)

    db = open_database(f"sqlite:///{tmp_path / 'patra.db'}", synchronous="OFF")
    with serving(Replay([], "none", None, answer)) as url:
        harvest = Harvest(db, local(bundled.text("openalex"), "openalex.yaml", url))

        def authors(trigger: Trigger) -> tuple[int, bool]:
            assert harvest.planner.trigger(trigger).slices == 1
            harvest.drain()
            assert harvest.quarantined() == []
            [found] = [work for page in works(db) for work in page if work is not None]
            return len(found.authors), found.authors_truncated

        def listed(operation: Operation) -> Trigger:
            again = "again" if operation is Operation.BACKFILL else None
            return Trigger(
                source="openalex", endpoint="works", operation=operation, since=SINCE, until=SINCE + DAY, activity=again
            )

        def by_id(endpoint: str) -> Trigger:
            return Trigger(
                source="openalex",
                endpoint="works",
                operation=Operation.UPDATE,
                ids=("https://openalex.org/W1",),
                sections={"twoPhase": {"linkedEndpoint": endpoint}},
                activity=endpoint,
            )

        try:
            assert authors(listed(Operation.HARVEST)) == (100, True)
            assert authors(by_id("work")) == (150, False)
            assert authors(listed(Operation.BACKFILL)) == (150, False)
            assert authors(by_id("byId")) == (150, False), "which is a list, too"
        finally:
            harvest.close()
            db.close()
