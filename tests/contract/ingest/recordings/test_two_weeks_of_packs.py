"""Two weeks of fifteen packs: records appear late, change with and without a word, and are taken back.

At the end of each day what is stored equals the provider's truth, within what the pack declares: its safety lag, its
weekly `reread` where it harvests by the date of publication, and whether its source reports deletions.
"""

import json
import random
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
import pytest

from patra.ingest.operations.coverage import coverage
from patra.ingest.packs import bundled
from patra.ingest.planning.schedule import Scheduled, due_ticks
from patra.ingest.planning.trigger import Trigger
from patra.ingest.vocabulary.codes import Operation
from patra.ingest.works.read import works
from patra.kernel.clock import DAY, HOUR, format_instant
from patra.kernel.db import Database, open_database
from tests.contract.ingest.recordings.replay import NOW, Harvest, Replay, local, serving

DAYS = 14
OLD_AGE = 40 * DAY


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
    hour: int = 0
    """When on a day its records appear and change."""
    read_again_by_change: bool = False
    """Whether the re-read asks for days of change, and not for those by which windows are cut."""
    sees_today: bool = False
    """Whether what was there in the morning is read in the afternoon; else the safety lag is a day or more."""
    deletes: bool = True

    def __init__(self) -> None:
        super().__init__([], "none", None)
        self.papers: dict[str, Paper] = {}
        self.vanished: set[str] = set()
        self._chance = random.Random(7)
        if self.read_again_by_change:  # older than any re-read by days of creation would reach
            for number in range(4):
                self._put(Paper(f"99{number}", "old", NOW - OLD_AGE, NOW - OLD_AGE, NOW - OLD_AGE))

    def live(self, day: int) -> None:
        start, chance = NOW + day * DAY + self.hour, self._chance
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
    form = '<dc xmlns="http://purl.org/dc/elements/1.1/"><title>{title}</title></dc>'

    def take_back(self, key: str, at: int) -> None:
        self._put(msgspec.structs.replace(self.papers[key], gone=True, told=at, changed=at))

    def asked(self, params: Mapping[str, str]) -> tuple[str, str]:
        return params["from"], params["until"]

    def page(self, found: list[Paper]) -> str:
        if not found:
            inside = '<error code="noRecordsMatch">none</error>'
        else:
            inside = f"<ListRecords>{''.join(map(self._record, found))}</ListRecords>"
        return f'<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">{inside}</OAI-PMH>'

    def _record(self, paper: Paper) -> str:
        status = ' status="deleted"' if paper.gone else ""
        title = "" if paper.gone else f"<metadata>{self.form.format(id=paper.id, title=paper.title)}</metadata>"
        return (
            f"<record><header{status}><identifier>{paper.id}</identifier>"
            f"<datestamp>{_day(paper.told)}</datestamp></header>{title}</record>"
        )


class ArxivRepository(Repository):
    form = '<arXiv xmlns="http://arxiv.org/OAI/arXiv/"><id>2601.00{id}</id><title>{title}</title></arXiv>'


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


class Timed(Living):
    """The time of change moves with every change and is asked for to the second; who vanishes does so silently."""

    hour = 14 * HOUR  # after the harvest of the day before
    sees_today = True

    def answer(self, path: str, params: Mapping[str, str]) -> tuple[int, Mapping[str, Any], bytes]:
        asked = re.findall(r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?", unquote(path) + " ".join(params.values()))
        if len(asked) < 2:
            return self.details(unquote(path).rpartition("/")[2])
        size = len(asked[0])
        found = [one for one in self.papers.values() if asked[0] <= format_instant(one.told)[:size] <= asked[1]]
        return 200, {"content-type": self.kind}, self.page(found).encode()

    def details(self, key: str) -> tuple[int, Mapping[str, Any], bytes]:
        paper = self.papers.get(key)
        if paper is None:
            return 404, {"content-type": self.kind}, b"{}"
        return 200, {"content-type": self.kind}, json.dumps(self.record(paper)).encode()

    def record(self, paper: Paper) -> Any:
        raise NotImplementedError


class Crossref(Timed):
    """Nothing is deleted."""

    deletes = False

    def page(self, found: list[Paper]) -> str:
        items = [
            {"DOI": f"10.5555/{one.id}", "title": [one.title], "indexed": {"date-time": format_instant(one.told)}}
            for one in found
        ]
        return json.dumps({"message": {"total-results": len(found), "next-cursor": "x", "items": items}})


class DataCite(Timed):
    def page(self, found: list[Paper]) -> str:
        data = [self.record(one)["data"] for one in found]
        return json.dumps({"data": data, "meta": {"total": len(found)}, "links": {}})

    def record(self, paper: Paper) -> Any:
        doi = f"10.5555/{paper.id}"
        attributes = {
            "doi": doi,
            "titles": [{"title": paper.title}],
            "updated": format_instant(paper.told),
            "state": "findable",
        }
        return {"data": {"id": doi, "attributes": attributes}}


class Doaj(Timed):
    def page(self, found: list[Paper]) -> str:
        return json.dumps({"total": len(found), "results": list(map(self.record, found))})

    def record(self, paper: Paper) -> Any:
        return {"id": paper.id, "last_updated": format_instant(paper.told), "bibjson": {"title": paper.title}}


class Zenodo(Timed):
    def page(self, found: list[Paper]) -> str:
        return json.dumps({"hits": {"total": len(found), "hits": list(map(self.record, found))}})

    def record(self, paper: Paper) -> Any:
        return {"id": paper.id, "updated": format_instant(paper.told), "metadata": {"title": paper.title}}


class Hal(Timed):
    def page(self, found: list[Paper]) -> str:
        docs = [
            {"halId_s": one.id, "title_s": [one.title], "modifiedDate_tdate": format_instant(one.told)} for one in found
        ]
        return json.dumps({"response": {"numFound": len(found), "docs": docs}, "nextCursorMark": "*"})


class Daily(Living):
    """The day of change moves with every change; a window is asked for in whole days."""

    def asked(self, params: Mapping[str, str]) -> tuple[str, str]:
        since, until = re.findall(r"\d{4}-\d\d-\d\d", " ".join(params.values()))
        return since, until


class Inspire(Daily):
    def page(self, found: list[Paper]) -> str:
        hits = [
            {"id": one.id, "updated": format_instant(one.told), "metadata": {"titles": [{"title": one.title}]}}
            for one in found
        ]
        return json.dumps({"hits": {"total": len(found), "hits": hits}})


class ClinicalTrials(Daily):
    def page(self, found: list[Paper]) -> str:
        studies = [
            {"protocolSection": {
                "identificationModule": {"nctId": one.id, "briefTitle": one.title},
                "statusModule": {"lastUpdatePostDateStruct": {"date": _day(one.told)}},
            }}
            for one in found
        ]  # fmt: skip
        return json.dumps({"totalCount": len(found), "studies": studies})


class EuropePmc(Daily):
    """Windows are cut by the day of indexing; what a record tells of its revision does not move with each change."""

    tells_changes = False
    read_again_by_change = True
    _by = "FIRST_IDATE"

    def asked(self, params: Mapping[str, str]) -> tuple[str, str]:
        self._by = params["query"].partition(":")[0]
        return super().asked(params)

    def answer(self, path: str, params: Mapping[str, str]) -> tuple[int, Mapping[str, Any], bytes]:
        since, until = self.asked(params)
        found = [
            one
            for one in self.papers.values()
            if since <= _day(one.changed if self._by == "UPDATE_DATE" else one.told) <= until
        ]
        return 200, {"content-type": self.kind}, self.page(found).encode()

    def page(self, found: list[Paper]) -> str:
        results = [
            {"id": one.id, "source": "MED", "title": one.title, "firstIndexDate": _day(one.told)} for one in found
        ]
        return json.dumps({"hitCount": len(found), "resultList": {"result": results}})


class PubMed(Daily):
    """Ids first, by the day of creation or of change, then their records; the day of revision moves with a change."""

    tells_changes = False
    read_again_by_change = True

    def answer(self, path: str, params: Mapping[str, str]) -> tuple[int, Mapping[str, Any], bytes]:
        if path.endswith("efetch.fcgi"):
            found = [one for key in params["id"].split(",") if (one := self.papers.get(key)) is not None]
            return 200, {"content-type": "text/xml"}, self.page(found).encode()
        since, until = params["mindate"].replace("/", "-"), params["maxdate"].replace("/", "-")
        days = {
            key: _day(one.changed if params["datetype"] == "mdat" else one.told) for key, one in self.papers.items()
        }
        ids = [key for key, day in days.items() if since <= day <= until]
        result = {"esearchresult": {"count": str(len(ids)), "idlist": ids}}
        return 200, {"content-type": self.kind}, json.dumps(result).encode()

    def page(self, found: list[Paper]) -> str:
        return f"<PubmedArticleSet>{''.join(map(self._article, found))}</PubmedArticleSet>"

    def _article(self, paper: Paper) -> str:
        year, month, day = _day(paper.changed).split("-")
        return (
            f"<PubmedArticle><MedlineCitation><PMID>{paper.id}</PMID><DateRevised><Year>{year}</Year><Month>{month}</Month>"
            f"<Day>{day}</Day></DateRevised><Article><ArticleTitle>{paper.title}</ArticleTitle></Article></MedlineCitation>"
            "</PubmedArticle>"
        )


class Biorxiv(Living):
    """By the day of posting, which stays when the DOI of a journal is added."""

    tells_changes = False
    deletes = False

    def answer(self, path: str, params: Mapping[str, str]) -> tuple[int, Mapping[str, Any], bytes]:
        since, until = re.findall(r"\d{4}-\d\d-\d\d", path)
        found = [one for one in self.papers.values() if since <= _day(one.published) <= until]
        if not path.endswith("/0/json"):
            found = []
        collection = [
            {"doi": f"10.5555/{one.id}", "title": one.title, "date": _day(one.published), "version": "1"}
            for one in found
        ]
        total = {"status": "ok", "total": str(len(found))}
        return 200, {"content-type": self.kind}, json.dumps({"messages": [total], "collection": collection}).encode()

    def dated(self, paper: Paper) -> int:
        return paper.published


class Fortnight:
    """A pack, its provider and a store; says what is wrong in the store at the end of a day."""

    def __init__(self, db: Database, source: str, endpoint: str, provider: Living, url: str) -> None:
        self.provider = provider
        self.harvest = Harvest(db, local(bundled.text(source), f"{source}.yaml", url))
        self.where = source, endpoint
        self.params = {"baseUrl": f"{url}/oai"} if source == "oaipmh" else {}
        again = bundled.pack(source).pack.schedules.get("reread")
        self.reread = (
            None
            if again is None or again.endpoint != endpoint
            else Scheduled(source=source, name="reread", schedule=again)
        )
        self.read_again = NOW

    def day(self, number: int) -> None:
        """A harvest in the afternoon of the day after, and the re-read where its schedule is due."""
        self.harvest.clock.set(NOW + (number + 1) * DAY + 13 * HOUR)
        source, endpoint = self.where
        oldest = min(paper.told for paper in self.provider.papers.values())
        since = min(NOW, oldest) if number == 0 else None
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
        dated = self.provider.dated(paper)
        fresh = dated == paper.changed  # read by the harvest as soon as it was there
        read = self.read_again - self.lag
        again = _day(paper.changed) < _day(read) if self.provider.read_again_by_change else paper.changed < read
        return _day(dated) < _day(covered) and (fresh or again)

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
    ("arxiv", "oai", ArxivRepository),
    ("pmc", "records", Repository),
    ("datacite", "dois", DataCite),
    ("doaj", "articles", Doaj),
    ("zenodo", "records", Zenodo),
    ("hal", "search", Hal),
    ("inspire", "literature", Inspire),
    ("clinicaltrials", "studies", ClinicalTrials),
    ("europepmc", "search", EuropePmc),
    ("pubmed", "search", PubMed),
    ("biorxiv", "details", Biorxiv),
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
            assert bool(late) is not kind.sees_today, "half a day of lag is over in the afternoon; others wait longer"
            assert fortnight.harvest.quarantined() == []
            if issubclass(kind, Repository):
                assert any(paper.gone for paper in provider.papers.values())
            if fortnight.reread is not None:
                [counted] = store.read(lambda tx: coverage(tx, source)).rereads
                assert counted.found_late + counted.changed > 0
                assert provider.vanished or not kind.deletes
        finally:
            fortnight.harvest.close()


@pytest.mark.parametrize(
    ("source", "endpoint", "kind"), [one for one in PACKS if one[0] in {"datacite", "doaj", "zenodo"}]
)
def test_an_update_finds_what_disappeared_without_a_word(
    store: Database, source: str, endpoint: str, kind: type[Living]
) -> None:
    """Where an id that is asked for is answered as gone, the store equals the provider's truth after the next round."""
    provider = kind()
    with serving(provider) as url:
        fortnight = Fortnight(store, source, endpoint, provider, url)
        try:
            for number in range(5):
                provider.live(number)
                fortnight.day(number)
            stored = fortnight.wrong() & provider.vanished
            assert stored, "the harvest has read some of them while they were there"
            stale = {"update": {"staleAfter": "PT1H", "rounds": 1}}
            fortnight.harvest.planner.trigger(
                Trigger(source=source, endpoint=endpoint, operation=Operation.UPDATE, sections=stale)
            )
            fortnight.harvest.drain()
            deleted = {
                work.id.removeprefix("10.5555/")
                for page in works(store)
                for work in page
                if work is not None and work.deleted
            }
            assert (fortnight.wrong() - provider.vanished, deleted) == (set(), stored)
        finally:
            fortnight.harvest.close()
