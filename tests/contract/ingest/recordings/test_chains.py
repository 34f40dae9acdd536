"""Every recorded chain of pages is followed to its end by the real executor; each record lands once or says why not."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from patra.kernel.db import Database, open_database
from tests.contract.ingest.recordings.replay import Replay, chain, harvested
from tests.contract.ingest.recordings.shelf import FOLDERS, Recording, needed, recording

pytestmark = needed

RETIRED = Path(__file__).with_name("retired.yaml").read_text(encoding="utf-8")
OAI = {"baseUrl": "{url}/oai"}
NO_INSTANT = "i_no_updated_at_value"


def emptied(*path: str, drop: str | None = None, total: tuple[str, int] | None = None) -> Callable[[str], bytes]:
    """The page behind the last recorded one: the same envelope without records.

    Of long lists only the first pages are recorded; `total` beside the records then says how many those were, since an
    empty page far before the promised end is no end.
    """

    def make(body: str) -> bytes:
        document = json.loads(body)
        node: Any = document
        for step in path[:-1]:
            node = node[step]
        node[path[-1]] = []
        if total is not None:
            holder = node if total[0] in node else document
            assert total[0] in holder
            holder[total[0]] = total[1]
        if drop is not None:
            document.pop(drop, None)
        return json.dumps(document).encode()

    return make


def without_entries(body: str) -> bytes:
    return re.sub(r"<entry>.*?</entry>\s*", "", body, flags=re.DOTALL).encode()


def without_records(body: str) -> bytes:
    return re.sub(r"<ListRecords>.*</ListRecords>", '<error code="noRecordsMatch"/>', body, flags=re.DOTALL).encode()


class Case(NamedTuple):
    """A chain and what becomes of it. `drives` is the parameter that asks for a page, `landed` counts records."""

    name: str
    source: str
    endpoint: str
    drives: str
    landed: int
    quarantined: dict[str, int] = {}  # noqa: RUF012  never changed
    sections: dict[str, Any] = {}  # noqa: RUF012
    params: dict[str, Any] = {}  # noqa: RUF012
    end: Callable[[str], bytes] | None = None
    details: Callable[[list[Recording]], Callable[[str], Recording]] | None = None
    """For two phases: what is answered to a request for details."""
    pages: int | None = None
    """How many recordings of the chain are pages of the list, where not all are."""
    away: str | None = None
    """The address in the pages' own links."""
    total: tuple[str, int] | None = None
    """What every page says instead of its own total, where only the first pages of a long list are recorded."""


def works_of_the_first(pages: list[Recording]) -> Callable[[str], Recording]:
    """ORCID: the works of each person; here everyone has none but the first."""
    first = json.loads(pages[0].body)["result"][0]["orcid-identifier"]["path"]
    return lambda path: recording("orcid/008" if first in path else "orcid/007")


def size(records: int) -> dict[str, Any]:
    return {"pagination": {"pageSize": records}}


def first_pages(records: int) -> dict[str, Any]:
    """Only the first pages of the list are recorded: its total promises nothing of them."""
    return {"pagination": {"pageSize": records, "total": "NONE"}}


CUT = {"ror-lincoln": (20, 12_650), "osf-nodes": (10, 30)}
"""Lists that are recorded in part, by packs that declare their totals exact: records of a page, and the total."""


CHAINS = [
    Case("arxiv-testing-10", "arxiv", "query", "start", 60, sections=first_pages(10), end=without_entries),
    Case("crossref-habanero-widget", "crossref", "works", "cursor", 60, sections=size(20),
         end=emptied("message", "items", total=("total-results", 60)), total=("total-results", 60)),
    Case("europepmc-cancer-10", "europepmc", "search", "cursorMark", 1000, sections=size(100),
         params={"resultType": "lite"}, end=emptied("resultList", "result", drop="nextCursorMark", total=("hitCount", 1000)),
         total=("hitCount", 1000)),
    Case("oai-mla-14", "oaipmh", "records", "resumptionToken", 319, params=OAI),
    Case("oai-spdataverse", "oaipmh", "records", "resumptionToken", 19, params=OAI),
    Case("oai-dryad-3", "oaipmh", "records", "resumptionToken", 294, params=OAI),
    Case("oai-hacettepe-2", "oaipmh", "records", "resumptionToken", 103, params=OAI),
    Case("datacite-oai-56", "oaipmh", "records", "resumptionToken", 56, params=OAI),
    Case("oai-purdue", "oaipmh", "records", "resumptionToken", 1, params=OAI),
    # the recorded clients asked for a few fields, the update time not among them: the report names what is missing
    Case("s2-bulk-2674", "semanticscholar", "bulk", "token", 0, {NO_INSTANT: 2674}, size(5)),
    Case("ctgov-phelan", "clinicaltrials", "studies", "pageToken", 0, {NO_INSTANT: 10}, size(5),
         end=emptied("studies", drop="nextPageToken")),
    # two pages of 10242 records: beyond them no list at all would not be believed
    Case("orcid-search-3", "orcid", "people", "start", 8, sections=first_pages(3),
         end=lambda _: json.dumps({"result": [], "num-found": 6}).encode(), details=works_of_the_first),
    Case("ror-lincoln", "ror", "organizations", "page", 40, sections=first_pages(20), end=emptied("items")),
    # the window has 17 pages; the first two and the last two are recorded, and the last has no token element at all
    Case("pmc-oai-start", "pmc", "records", "resumptionToken", 100, end=without_records),
    Case("pmc-oai-end", "pmc", "records", "resumptionToken", 94),
    # services that are gone, or that no pack of the distribution reads
    Case("crossref-eventdata-355", "retired", "events", "cursor", 355),
    Case("datacite-re3data-climate", "retired", "re3data", "page[number]", 49, {"i_no_id": 1},
         end=emptied("data", drop="links")),
    Case("osf-nodes", "retired", "osf_nodes", "page", 20, sections=first_pages(10), end=emptied("data")),
    Case("osf-v1", "retired", "osf_v1", "from", 3),
    Case("s2-search-turing", "retired", "search", "offset", 0, {NO_INSTANT: 200}, end=emptied("data", drop="next")),
    Case("s2-references", "retired", "references", "offset", 0, {NO_INSTANT: 44, "i_no_id": 23}),
    # the first page has 20 of 126; the client then asks for as many as there are, and gets all of them
    Case("ctgov-classic-126", "retired", "classic", "count", 126),
    # ids as XML, then an object whose members are the records
    Case("pubmed-fulltext-esearch-esummary", "retired", "pmc", "retstart", 200,
         end=lambda _: b"<eSearchResult><IdList/></eSearchResult>", details=lambda pages: lambda _: pages[1], pages=1),
]  # fmt: skip

# The same pages by the other kinds of pagination: no chain of them is recorded, and these pages can be walked so.
OTHERWISE = [
    Case("datacite-re3data-climate", "retired", "re3data_pages", "page[number]", 49, {"i_no_id": 1}, size(25),
         end=emptied("data", drop="links")),
    Case("datacite-re3data-climate", "retired", "re3data_urls", "page[number]", 49, {"i_no_id": 1},
         end=emptied("data", drop="links"), away="https://api.datacite.org"),
]  # fmt: skip

NAMED = {case.name: case for case in CHAINS}
BOTH = {
    "OFFSET": CHAINS[0],
    "TOKEN that stays the same": CHAINS[1],
    "TOKEN that stands alone": CHAINS[4],
    "PAGE": OTHERWISE[0],
    "URL": OTHERWISE[1],
    "redirect": NAMED["oai-purdue"],
    "two phases": NAMED["orcid-search-3"],
    "two phases, ids as XML": NAMED["pubmed-fulltext-esearch-esummary"],
    "everything in the quarantine": NAMED["ctgov-phelan"],
}
"""One chain of each kind, walked on PostgreSQL too."""


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Database]:
    db = open_database(f"sqlite:///{tmp_path / 'patra.db'}")
    yield db
    db.close()


@pytest.fixture
def postgres(postgres_url: str) -> Iterator[Database]:
    db = open_database(postgres_url)
    yield db
    db.close()


def with_total(page: Recording, total: tuple[str, int] | None) -> Recording:
    if total is None:
        return page
    name, count = total
    return msgspec.structs.replace(page, body=re.sub(rf'"{name}": ?[0-9]+', f'"{name}":{count}', page.body))


def follow(db: Database, case: Case) -> None:
    recorded = chain(case.name)
    pages = [with_total(page, case.total) for page in recorded[: case.pages]]
    replay = Replay(
        pages,
        case.drives,
        case.end(pages[-1].body) if case.end is not None else None,
        case.details(recorded) if case.details is not None else None,
    )
    text = RETIRED if case.source == "retired" else None
    with harvested(
        db, replay, case.source, case.endpoint, sections=case.sections, params=case.params, text=text, away=case.away
    ) as harvest:
        assert replay.wrong == []
        assert replay.served >= len(pages)
        assert list(harvest.tasks().values()) == [1]
        assert harvest.tasks() == {"SUCCEEDED i_done": 1} or case.quarantined
        assert len(harvest.landed()) == len(set(harvest.landed())) == case.landed
        bad = harvest.quarantined()
        assert Counter(code for _, code, _ in bad) == case.quarantined
        assert all(detail for _, _, detail in bad)


@pytest.mark.parametrize("case", CHAINS, ids=[case.name for case in CHAINS])
def test_a_chain_is_followed_to_its_end(sqlite: Database, case: Case) -> None:
    follow(sqlite, case)


@pytest.mark.parametrize("name", CUT)
def test_a_list_that_ends_before_its_exact_total_is_not_taken_as_whole(sqlite: Database, name: str) -> None:
    """The same chain under the pack's own declaration: the pages that were not recorded are missed."""
    case, pages = NAMED[name], chain(name)
    records, total = CUT[name]
    assert case.end is not None
    replay = Replay(pages, case.drives, case.end(pages[-1].body))
    text = RETIRED if case.source == "retired" else None
    with harvested(sqlite, replay, case.source, case.endpoint, sections=size(records), text=text) as harvest:
        assert harvest.tasks() == {"FAILED i_incomplete": 1}
        [(why,)] = harvest.rows("SELECT detail FROM ing_window_ledger WHERE leg_code = 'LIST'")
        assert f"of {total} promised" in str(why)


@pytest.mark.parametrize("case", OTHERWISE, ids=[case.endpoint for case in OTHERWISE])
def test_pages_can_be_walked_by_number_and_by_url(sqlite: Database, case: Case) -> None:
    follow(sqlite, case)


@pytest.mark.parametrize("kind", BOTH)
def test_a_chain_of_each_kind_is_followed_on_postgresql(postgres: Database, kind: str) -> None:
    follow(postgres, BOTH[kind])


def test_no_recorded_chain_is_left_out() -> None:
    """Of the recordings themselves, and of the list of them that people read."""
    recorded: Counter[str] = Counter()
    whole: dict[str, int] = {}
    for path in (path for folder in FOLDERS for path in folder.glob("*/*.json")):
        entry = json.loads(path.read_text(encoding="utf-8")).get("chain")
        if entry is not None:
            recorded[entry["id"]] += 1
            whole[entry["id"]] = entry["of"]
    assert recorded == whole
    assert sorted(case.name for case in CHAINS) == sorted(recorded)
    manifests = "".join((folder / "MANIFEST.md").read_text(encoding="utf-8") for folder in FOLDERS)
    listed = re.findall(r"\| ([a-z0-9-]+) \d+/\d+ \|", manifests)
    assert Counter(listed) == recorded


SINGLE = [
    ("arxiv/013", "arxiv", "oai", 95, {}),
    ("oaipmh/022", "oaipmh", "records", 173, OAI),  # the total says 174
    ("oaipmh/025", "oaipmh", "records", 20, OAI),
    ("oaipmh/026", "oaipmh", "marc", 2, OAI),
    ("zenodo/007", "oaipmh", "records", 7, OAI),
    ("biorxiv/003", "biorxiv", "feed", 30, {}),
]


@pytest.mark.parametrize(("name", "source", "endpoint", "count", "params"), SINGLE, ids=[s[0] for s in SINGLE])
def test_a_list_of_one_page(
    sqlite: Database, name: str, source: str, endpoint: str, count: int, params: dict[str, Any]
) -> None:
    replay = Replay([recording(name)], "resumptionToken", None)
    with harvested(sqlite, replay, source, endpoint, params=params) as harvest:
        assert replay.wrong == []
        assert harvest.tasks() == {"SUCCEEDED i_done": 1}
        assert (len(harvest.landed()), harvest.quarantined()) == (count if source != "biorxiv" else 0, [])
