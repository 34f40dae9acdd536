"""The simulated providers are harvested whole by the packs of the distribution, through throttling and troubles."""

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from patra.demo.providers import Library, library
from patra.demo.providers_http import Providers, Trouble, local_pack, serve
from patra.ingest import sources
from patra.ingest.codes import Operation
from patra.ingest.trigger import Trigger
from patra.ingest.works_merge import grouped, merged
from patra.ingest.works_read import works
from patra.kernel.clock import DAY, parse_instant
from patra.kernel.db import Database, open_database
from tests.contract.ingest.recordings.replay import Harvest

START = parse_instant("2026-03-01T00:00:00Z") or 0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    db = open_database(f"sqlite:///{tmp_path / 'patra.db'}")
    yield db
    db.close()


def run(db: Database, providers: Providers, source: str, endpoint: str, days: int = 7, **params: Any) -> Harvest:
    """Harvest some days of a simulated provider until nothing is left to do."""
    loaded = sources.parsed(local_pack(source, providers.url), f"{source}.yaml")
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


def test_a_crowded_day_of_pubmed_fails_loudly_and_the_others_land(store: Database) -> None:
    """More than 9,999 records on one day cannot be reached (ruling I4); nothing is lost in silence."""
    found = library(3, per_day=5, start=date(2026, 3, 1), crowded={date(2026, 3, 2): 10_050})
    with serve(found, limits={}) as providers:
        harvest = run(store, providers, "pubmed", "search", days=3)
    assert any("FAILED" in status for status in harvest.tasks()), harvest.tasks()
    quiet = sorted(paper.pmid for paper in found.papers if paper.entered != date(2026, 3, 2))
    assert [one for one in harvest.landed() if one in set(quiet)] == quiet


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
    joined = [merged(group) for group in grouped(everything)]
    assert len(everything) == 3 * len(found.papers)
    assert len(joined) == len(found.papers)
    for one in joined:
        assert {seen.source for seen in one.seen} == {"pubmed", "crossref", "openalex"}
        assert one.title is not None
        assert "<" not in one.title
        assert one.abstract is not None
        assert one.abstract.endswith("H2O & salt were measured.")
        assert one.given_by["openalex"] == "openalex"
