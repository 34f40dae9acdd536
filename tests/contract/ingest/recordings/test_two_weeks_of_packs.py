"""Two weeks of packs of the distribution: records appear late, change with and without a word, and are taken back.

At the end of each day what is stored equals the provider's truth, within what the pack declares: its safety lag, its
weekly `reread` where it harvests by the date of publication, and whether its source reports deletions.
"""

import json
import random
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from patra.ingest.operations.coverage import coverage
from patra.ingest.packs import bundled
from patra.ingest.planning.schedule import Scheduled, due_ticks
from patra.ingest.planning.trigger import Trigger
from patra.ingest.vocabulary.codes import Operation
from patra.ingest.works.read import works
from patra.kernel.clock import DAY, HOUR
from patra.kernel.db import Database, open_database
from tests.contract.ingest.recordings.replay import NOW, Harvest, Replay, local, serving

DAYS = 14


class Paper(msgspec.Struct, frozen=True):
    id: str
    title: str
    published: int
    told: int
    """When its source says that it was last changed."""
    changed: int
    """When it was."""
    gone: bool = False


class Living(Replay):
    """A provider whose records are edited from outside; each day is drawn from the same chances."""

    later_days: int = 9
    tells_changes: bool = True
    deletes: bool = True

    def __init__(self) -> None:
        super().__init__([], "none", None)
        self.papers: dict[str, Paper] = {}
        self.vanished: set[str] = set()
        self._chance = random.Random(7)

    def live(self, day: int) -> None:
        start, chance = NOW + day * DAY, self._chance
        for number in range(3):
            self._put(Paper(f"{day:02}{number}", "new", start, start, start))
        for number in range(2):
            published = max(NOW, start - chance.randrange(1, self.later_days) * DAY)
            self._put(Paper(f"{day:02}{number + 7}", "late", published, start, start))
        there = sorted(key for key, paper in self.papers.items() if not paper.gone)
        for key in chance.sample(there, 2):
            paper = self.papers[key]
            told = start if self.tells_changes else paper.told
            self._put(msgspec.structs.replace(paper, title=f"edited on day {day}", told=told, changed=start))
        if self.deletes:
            self.take_back(chance.choice(there), start)

    def take_back(self, key: str, at: int) -> None:
        """By default no notification is sent."""
        del self.papers[key]
        self.vanished.add(key)

    def _put(self, paper: Paper) -> None:
        self.papers[paper.id] = paper

    def answer(self, path: str, params: Mapping[str, str]) -> tuple[int, Mapping[str, Any], bytes]:
        since, until = self.asked(params)
        found = [one for one in self.papers.values() if since <= _day(self.dated(one)) <= until]
        return 200, {"content-type": self.kind}, self.page(found).encode()

    kind = "application/json"

    def dated(self, paper: Paper) -> int:
        """What windows are cut by."""
        return paper.told

    def asked(self, params: Mapping[str, str]) -> tuple[str, str]:
        raise NotImplementedError

    def page(self, found: list[Paper]) -> str:
        raise NotImplementedError


def _day(at: int) -> str:
    return datetime.fromtimestamp(at / 1_000_000, UTC).date().isoformat()


class Repository(Living):
    """OAI-PMH: the datestamp moves with every change, and a deleted record stays as a header."""

    kind = "text/xml"

    def take_back(self, key: str, at: int) -> None:
        self._put(msgspec.structs.replace(self.papers[key], gone=True, told=at, changed=at))

    def asked(self, params: Mapping[str, str]) -> tuple[str, str]:
        return params["from"], params["until"]

    def page(self, found: list[Paper]) -> str:
        if not found:
            inside = '<error code="noRecordsMatch">none</error>'
        else:
            inside = f"<ListRecords>{''.join(map(_oai, found))}</ListRecords>"
        return f'<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">{inside}</OAI-PMH>'


def _oai(paper: Paper) -> str:
    status = ' status="deleted"' if paper.gone else ""
    title = f'<dc xmlns="http://purl.org/dc/elements/1.1/"><title>{paper.title}</title></dc>'
    return (
        f"<record><header{status}><identifier>{paper.id}</identifier><datestamp>{_day(paper.told)}</datestamp></header>"
        f"{'' if paper.gone else f'<metadata>{title}</metadata>'}</record>"
    )


class Crossref(Living):
    """The index date moves with every change; nothing is deleted."""

    deletes = False

    def asked(self, params: Mapping[str, str]) -> tuple[str, str]:
        since, until = params["filter"].split(",")
        return since.partition(":")[2][:10], until.partition(":")[2][:10]

    def page(self, found: list[Paper]) -> str:
        items = [
            {"DOI": f"10.5555/{one.id}", "title": [one.title], "indexed": {"date-time": f"{_day(one.told)}T00:00:00Z"}}
            for one in found
        ]
        return json.dumps({"message": {"total-results": len(found), "next-cursor": "x", "items": items}})


class OpenAlex(Living):
    """By date of publication; the time of change is reported, a deletion is not."""

    def dated(self, paper: Paper) -> int:
        return paper.published

    def asked(self, params: Mapping[str, str]) -> tuple[str, str]:
        since, until = params["filter"].split(",")
        return since.partition(":")[2], until.partition(":")[2]

    def page(self, found: list[Paper]) -> str:
        results = [
            {"id": one.id, "title": one.title, "publication_date": _day(one.published), "updated_date": _day(one.told)}
            for one in found
        ]
        return json.dumps({"meta": {"count": len(found), "next_cursor": None}, "results": results})


class SemanticScholar(Living):
    """By date of publication, which is all that it tells: every change is silent."""

    tells_changes = False

    def dated(self, paper: Paper) -> int:
        return paper.published

    def asked(self, params: Mapping[str, str]) -> tuple[str, str]:
        since, _, until = params["publicationDateOrYear"].partition(":")
        return since, until

    def page(self, found: list[Paper]) -> str:
        data = [{"paperId": one.id, "title": one.title, "publicationDate": _day(one.published)} for one in found]
        return json.dumps({"total": len(found), "token": None, "data": data})


class Fortnight:
    """A pack, its provider and a store; says what is wrong in the store at the end of a day."""

    def __init__(self, db: Database, source: str, endpoint: str, provider: Living, url: str) -> None:
        self.provider = provider
        self.harvest = Harvest(db, local(bundled.text(source), f"{source}.yaml", url))
        self.where = source, endpoint
        self.params = {"baseUrl": f"{url}/oai"} if source == "oaipmh" else {}
        again = bundled.pack(source).pack.schedules.get("reread")
        self.reread = None if again is None else Scheduled(source=source, name="reread", schedule=again)
        self.read_again = NOW

    def day(self, number: int) -> None:
        """A harvest in the afternoon of the day after, and the re-read where its schedule is due."""
        self.harvest.clock.set(NOW + (number + 1) * DAY + 13 * HOUR)
        source, endpoint = self.where
        since = NOW if number == 0 else None
        self.harvest.planner.trigger(
            Trigger(source=source, endpoint=endpoint, operation=Operation.HARVEST, params=self.params, since=since)
        )
        self.harvest.drain()
        ticks = [] if self.reread is None else due_ticks(self.reread, self.read_again, self.harvest.clock.now())
        for tick in ticks:
            assert tick.trigger is not None
            few = {"window": {"maxWindow": "P90D"}}  # the same days in fewer requests
            self.harvest.planner.trigger(msgspec.structs.replace(tick.trigger, sections=few))
            self.harvest.drain()
            self.read_again = self.harvest.clock.now()

    def wrong(self) -> set[str]:
        """Papers that are not stored as they are, and papers that are stored and are not."""
        found = {
            work.id.removeprefix("10.5555/"): "gone" if work.deleted else work.title
            for page in works(self.harvest.db)
            for work in page
            if work is not None
        }
        true = {key: "gone" if paper.gone else paper.title for key, paper in self.provider.papers.items()}
        return {key for key, _ in found.items() ^ true.items()}

    def due(self, paper: Paper) -> bool:
        """Whether what the pack declares has seen the paper as it is by now."""
        covered = self.harvest.clock.now() - self.lag
        if self.reread is None:
            return _day(paper.told) < _day(covered)
        fresh = paper.published == paper.changed  # read by the harvest as soon as it was there
        return _day(paper.published) < _day(covered) and (fresh or paper.changed < self.read_again - self.lag)

    lag = DAY


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    db = open_database(f"sqlite:///{tmp_path / 'patra.db'}", synchronous="OFF")
    yield db
    db.close()


PACKS = [
    ("oaipmh", "records", Repository),
    ("crossref", "works", Crossref),
    ("openalex", "works", OpenAlex),
    ("semanticscholar", "bulk", SemanticScholar),
]


@pytest.mark.parametrize(("source", "endpoint", "kind"), PACKS, ids=[one[0] for one in PACKS])
def test_what_is_stored_is_the_truth_within_what_the_pack_declares(
    store: Database, source: str, endpoint: str, kind: type[Living]
) -> None:
    provider = kind()
    with serving(provider) as url:
        fortnight = Fortnight(store, source, endpoint, provider, url)
        try:
            late = 0
            for number in range(DAYS):
                provider.live(number)
                fortnight.day(number)
                wrong = fortnight.wrong()
                untold = wrong & provider.vanished
                assert [key for key in wrong - untold if fortnight.due(provider.papers[key])] == [], f"day {number}"
                late += len(wrong - untold)
            assert bool(late) is (kind is not Crossref), (
                "half a day of lag is over in the afternoon; others wait longer"
            )
            assert fortnight.harvest.quarantined() == []
            if kind is Repository:
                assert any(paper.gone for paper in provider.papers.values())
            if fortnight.reread is not None:
                [counted] = store.read(lambda tx: coverage(tx, source)).rereads
                assert counted.found_late > 0
                assert provider.vanished
        finally:
            fortnight.harvest.close()
