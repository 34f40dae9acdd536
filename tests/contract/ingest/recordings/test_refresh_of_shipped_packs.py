"""UPDATE with packs of the distribution: only signalled, changed and stale records are fetched again (6.3)."""

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from patra.demo.providers import Library, library
from patra.demo.providers_http import local_pack, serve
from patra.ingest.landing import store as landing_store
from patra.ingest.packs import bundled
from patra.ingest.planning import operations
from patra.ingest.planning.trigger import Trigger
from patra.ingest.vocabulary.codes import Operation
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.clock import DAY, MINUTE, parse_instant
from patra.kernel.db import Database, open_database
from patra.kernel.db.queries import statement
from tests.contract.ingest.recordings.replay import Harvest

START = parse_instant("2026-03-01T00:00:00Z") or 0
SHIPPED = [("pubmed", "search"), ("crossref", "works"), ("openalex", "works")]


@pytest.fixture(scope="module")
def shelf() -> Library:
    return library(1, per_day=6, start=date(2026, 3, 1))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    db = open_database(f"sqlite:///{tmp_path / 'patra.db'}", synchronous="OFF")
    yield db
    db.close()


class Refresh:
    """Refreshes of one source; says which records each has looked at."""

    def __init__(self, harvest: Harvest, source: str, endpoint: str) -> None:
        self.harvest = harvest
        self.where = source, endpoint

    def plan(self):
        self.harvest.clock.advance(MINUTE)
        source, endpoint = self.where
        return self.harvest.planner.trigger(Trigger(source=source, endpoint=endpoint, operation=Operation.UPDATE))

    def signal(self, *ids: str) -> None:
        now = self.harvest.clock.now()
        self.harvest.db.run(lambda tx: operations.signal(tx, *self.where, ids, by="reader", why="retracted", now=now))

    def work(self) -> list[str]:
        """Do what is planned; gives the records that it looked at."""
        before = self.harvest.clock.now()
        self.harvest.drain()
        return [
            str(row[0])
            for row in self.harvest.rows(
                f"SELECT provider_id FROM ing_record WHERE refresh_checked_at >= {before} ORDER BY provider_id"
            )
        ]


@pytest.mark.parametrize(("source", "endpoint"), SHIPPED)
def test_only_what_is_signalled_changed_or_stale_is_fetched(
    store: Database, shelf: Library, source: str, endpoint: str
) -> None:
    with serve(shelf, limits={}) as providers:
        harvest = Harvest(store, bundled.parse_pack(local_pack(source, providers.url), f"{source}.yaml"))
        wish = Trigger(
            source=source, endpoint=endpoint, operation=Operation.HARVEST, since=START, until=START + 2 * DAY
        )
        harvest.planner.trigger(wish)
        harvest.drain()
        ids = harvest.landed()
        assert len(ids) == len(shelf.papers)
        refresh = Refresh(harvest, source, endpoint)

        assert refresh.plan().outcome is Reason.NO_CANDIDATES, "all of it is fresh"

        refresh.signal(ids[1], ids[3])
        assert refresh.plan().outcome is Reason.PLANNED
        assert refresh.work() == [ids[1], ids[3]]
        assert refresh.plan().outcome is Reason.NO_CANDIDATES

        refresh.signal(ids[2])
        cancelled = refresh.plan()
        store.run(lambda tx: operations.cancel_plan(tx, cancelled.plan_id or "", why="", now=harvest.clock.now()))
        assert refresh.plan().outcome is Reason.PLANNED, "a signal survives the plan that took it"
        assert refresh.work() == [ids[2]]

        refresh.signal(ids[2])
        assert refresh.plan().outcome is Reason.PLANNED
        store.run(lambda tx: landing_store.take(tx, "dead", harvest.clock.now(), MINUTE, 8))
        harvest.clock.advance(2 * MINUTE)
        assert refresh.work() == [ids[2]], "and the executor that took it"

        change = statement("test", "UPDATE ing_record SET expr_hash = 'older' WHERE provider_id = :id")
        store.run(lambda tx: tx.execute(change, {"id": ids[0]}))
        assert refresh.plan().outcome is Reason.PLANNED
        assert refresh.work() == [ids[0]]

        harvest.clock.advance(91 * DAY)
        assert refresh.plan().outcome is Reason.PLANNED
        stale = refresh.work()
        assert len(stale) == 1, "one round takes a thirtieth, the stalest first"
        assert stale[0] in {ids[1], ids[3]}
        assert harvest.landed() == ids, "nothing is stored twice"
        harvest.close()
