"""The simulated providers are harvested whole by the packs of the distribution, through throttling and troubles."""

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from patra.demo.providers import Library, library
from patra.demo.providers_http import Providers, Trouble, local_pack, serve, without_credential
from patra.ingest.packs import bundled
from patra.ingest.planning.trigger import Trigger
from patra.ingest.vocabulary.codes import Operation
from patra.ingest.works.merge import group_works, merge_works
from patra.ingest.works.read import works
from patra.kernel.clock import DAY, parse_instant
from patra.kernel.db import Database, open_database
from tests.contract.ingest.recordings.replay import Harvest

START = parse_instant("2026-03-01T00:00:00Z") or 0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    db = open_database(f"sqlite:///{tmp_path / 'patra.db'}")
    yield db
    db.close()


def run(
    db: Database,
    providers: Providers,
    source: str,
    endpoint: str,
    days: int = 7,
    deepest: int | None = None,
    **params: Any,
) -> Harvest:
    """Harvest some days of a simulated provider until nothing is left to do."""
    text = local_pack(source, providers.url)
    if deepest is not None:
        assert "maxDepth: 9999" in text
        text = text.replace("maxDepth: 9999", f"maxDepth: {deepest}").replace("maxWindow: P7D", "maxWindow: P1D")
    loaded = bundled.parse_pack(text, f"{source}.yaml")
    harvest = Harvest(db, loaded)
    trigger = Trigger(
        source=source,
        endpoint=endpoint,
        operation=Operation.HARVEST,
        since=START,
        until=START + days * DAY,
        params=params,
    )
    harvest.planner.trigger(trigger)
    harvest.drain()
    harvest.close()
    return harvest


def papers(found: Library, topic: str | None = None) -> list[str]:
    return sorted(paper.pmid for paper in found.papers if topic is None or paper.topic == topic)


@pytest.fixture(scope="module")
def shelf() -> Library:
    return library(7, per_day=40, start=date(2026, 3, 1))


def test_pubmed_is_harvested_through_timeouts_and_throttling(store: Database, shelf: Library) -> None:
    with serve(shelf, limits={}, trouble=Trouble(throttle_every=2, timeout_every=3)) as providers:
        harvest = run(store, providers, "pubmed", "search", term="otters")
    assert harvest.landed() == papers(shelf, "river otters")
    assert harvest.quarantined() == []
    assert providers.refused["pubmed"] > 0


def test_a_crowded_day_of_pubmed_is_read_in_ranges_of_pmids(store: Database) -> None:
    """A day deeper than a search reaches, here 9,999 made 60, is read whole all the same (ruling I4)."""
    found = library(3, per_day=5, start=date(2026, 3, 1), crowded={date(2026, 3, 2): 150})
    with serve(found, limits={}) as providers:
        harvest = run(store, providers, "pubmed", "search", days=3, deepest=60)
    assert harvest.tasks() == {"SUCCEEDED i_done": len(harvest.rows("SELECT 1 FROM ing_task"))}
    assert harvest.landed() == papers(found)
    [(promised, positions)] = harvest.rows(
        "SELECT promised_last, positions FROM ing_window_ledger WHERE leg_code = 'LIST' ORDER BY positions DESC LIMIT 1"
    )
    assert promised == positions > 60


def test_crossref_is_harvested_although_its_cursor_stays_the_same_and_expires(store: Database, shelf: Library) -> None:
    with serve(shelf, limits={}, trouble=Trouble(throttle_every=2)) as providers:
        harvest = run(store, providers, "crossref", "works")
    assert len(harvest.landed()) == len(shelf.papers)
    assert harvest.quarantined() == []


def test_openalex_is_harvested_to_its_null_cursor(store: Database, shelf: Library) -> None:
    with serve(shelf, limits={}) as providers:
        harvest = run(store, providers, "openalex", "works")
    assert len(harvest.landed()) == len(shelf.papers)
    assert harvest.quarantined() == []


def test_the_three_join_into_one_library(store: Database) -> None:
    found = library(2, per_day=20, start=date(2026, 3, 1))
    with serve(found, limits={}) as providers:
        for source, endpoint in (("pubmed", "search"), ("crossref", "works"), ("openalex", "works")):
            run(store, providers, source, endpoint, days=2)
    everything = [work for page in works(store) for work in page if work is not None]
    joined = [merge_works(group) for group in group_works(everything)]
    assert len(everything) == 3 * len(found.papers)
    assert len(joined) == len(found.papers)
    for one in joined:
        assert {seen.source for seen in one.seen} == {"pubmed", "crossref", "openalex"}
        assert one.title is not None
        assert "<" not in one.title
        assert one.abstract is not None
        assert one.abstract.endswith("H2O & salt were measured.")
        assert one.given_by["openalex"] == "openalex"


@pytest.mark.parametrize("source", ["pubmed", "crossref", "openalex"])
def test_a_pack_for_newcomers_has_no_credential_and_is_otherwise_the_same(source: str) -> None:
    ours = bundled.parse_pack(local_pack(source, "http://127.0.0.1:9"), "a.yaml").tree
    without = bundled.parse_pack(without_credential(local_pack(source, "http://127.0.0.1:9")), "a.yaml").tree
    assert ours.pop("credentials")
    assert ours["defaults"].pop("auth")
    assert without == ours
