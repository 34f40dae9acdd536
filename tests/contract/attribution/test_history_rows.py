"""Rows of history page by page: each once, by kind, time and key, in bounded work, over HTTP as in the store."""

import re
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import urllib3

from patra.app.configuration.engine_settings import AttributionSettings
from patra.app.configuration.settings import Settings, StoreSettings, WebSettings
from patra.app.wiring import Patra, build
from patra.attribution.history import row_search
from patra.attribution.history.ask import VIEWS
from patra.attribution.history.decisions import FACTS, DecisionRecords
from patra.attribution.history.files import CODES, files_between, read_rows
from patra.attribution.history.kinds import LOG_COLUMNS, LogLines
from patra.attribution.history.row_search import Wanted, find_rows, only_search
from patra.attribution.replay import replay
from patra.attribution.retention import Purged, Retention, purge_once
from patra.attribution.settlement.verified_statements import VerifiedStatements
from patra.kernel.clock import DAY, SECOND, format_instant
from patra.kernel.db import Database, migrate
from patra.kernel.errors import Invalid, Transient
from patra.kernel.files import FilePlace, FolderPlace
from patra.web.asgi import app
from patra.web.uvicorn_server import serving
from tests.contract.attribution.test_history import BATCHES, LATER, catch_up, close_january, fill, move_all
from tests.unit.attribution.said import PACKAGES, T0, event, fresh, sent


@pytest.fixture
def place(tmp_path: Path) -> FilePlace:
    return FolderPlace(tmp_path / "history", CODES)


@pytest.fixture
def moved(database: Database, place: FilePlace, monkeypatch: pytest.MonkeyPatch) -> Database:
    """The log in files of three lines, the facts in one."""
    monkeypatch.setattr("patra.attribution.history.kinds.MAX_FILE_ROWS", 3)
    migrate(database, PACKAGES)
    move_rows(database, place)
    return database


@pytest.fixture
def moved_in_memory(place: FilePlace, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """The same, for what no database does differently."""
    monkeypatch.setattr("patra.attribution.history.kinds.MAX_FILE_ROWS", 3)
    db = fresh()
    move_rows(db, place)
    yield db
    db.close()


def move_rows(db: Database, place: FilePlace) -> None:
    fill(db)
    move_all(db, place, LogLines())
    move_all(db, place, DecisionRecords("facts", FACTS))


def every_row(db: Database, place: FilePlace, wanted: Wanted, limit: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    after: str | None = ""
    while after is not None:
        page = find_rows(db, place, wanted, after=after, limit=limit)
        assert len(page.rows) <= limit
        assert page.files <= row_search.MAX_FILES
        rows += page.rows
        after = page.next
    return rows


@pytest.mark.parametrize(("limit", "files"), [(1, 8), (4, 2), (1000, 8), (1000, 1)])
def test_every_row_is_on_one_page_however_long_the_pages_are(
    moved: Database,
    place: FilePlace,
    monkeypatch: pytest.MonkeyPatch,
    limit: int,
    files: int,
):
    monkeypatch.setattr(row_search, "MAX_FILES", files)
    found = every_row(moved, place, Wanted(kind="log"), limit)
    assert [one["batch_id"] for one in found if one["kind"] == "batch"] == [f"b{n}" for n in range(BATCHES)]
    assert len({one["number"] for one in found}) == len(found)


def test_rows_are_found_by_time_and_by_any_key(moved: Database, place: FilePlace):
    some = Wanted(kind="log", begin=T0 + 3 * SECOND, end=T0 + 5 * SECOND)
    assert [one["batch_id"] for one in every_row(moved, place, some, 100)] == ["b3", "b4"]
    (row,) = every_row(moved, place, Wanted(kind="log", key="b7"), 100)
    assert (row["at"], row["app_id"]) == ("2026-01-01T00:00:07Z", "app")
    assert not {"body", "raw"} & row.keys(), "what the apps sent is not shown"
    facts = every_row(moved, place, Wanted(kind="facts", key="ref|ra2|billable_click"), 100)
    assert {one["billing_key"] for one in facts} == {"ref|ra2|billable_click"}
    assert every_row(moved, place, Wanted(kind="facts", key="nobody"), 100) == []


def test_a_key_is_compared_with_what_is_shown_of_a_row(moved_in_memory: Database, place: FilePlace):
    """Bytes as hexadecimal digits, instants as text; nothing of the columns that are left out, nor a number."""
    every = every_row(moved_in_memory, place, Wanted(kind="facts"), 1000)
    for name in ("audit_key", "at", "output_at", "payload", "record_key"):
        key = every[5][name]
        expected = [one for one in every if key in one.values()]
        assert every_row(moved_in_memory, place, Wanted(kind="facts", key=key), 2) == expected, name
    line = read_rows(place, LOG_COLUMNS, *first_file(moved_in_memory, "log"))[0]
    body = line[list(LOG_COLUMNS).index("body")]
    for key in (body, every[5]["audit_key"].upper(), str(every[5]["decision_id"]), "2026-01-01T01:00:07+01:00"):
        assert every_row(moved_in_memory, place, Wanted(kind="log", key=key), 100) == []
        assert every_row(moved_in_memory, place, Wanted(kind="facts", key=key), 100) == []


def first_file(db: Database, kind: str) -> tuple[str, str]:
    span = db.read(lambda tx: files_between(tx, kind))[0]
    return span.file or "", span.sha256


def test_a_page_opens_two_files_and_converts_only_rows_with_the_key(
    moved_in_memory: Database, place: FilePlace, monkeypatch: pytest.MonkeyPatch
):
    converted: list[int] = []

    def format_counted(instant: int) -> str:
        converted.append(instant)
        return format_instant(instant)

    monkeypatch.setattr(row_search, "format_instant", format_counted)
    page = find_rows(moved_in_memory, place, Wanted(kind="log", key="nobody"))
    files = moved_in_memory.read(lambda tx: files_between(tx, "log"))
    assert (page.rows, page.files, page.next) == ([], 2, f"{files[2].number}.0")
    assert converted == []
    assert len(every_row(moved_in_memory, place, Wanted(kind="log", key="b7"), 100)) == len(converted) == 1


def test_one_search_runs_at_a_time(moved_in_memory: Database, place: FilePlace):
    refused: list[str] = []

    class Searched(FolderPlace):
        """A place in which a second search begins while a file is read."""

        def read(self, name: str) -> bytes | None:
            with pytest.raises(Transient) as caught:
                find_rows(moved_in_memory, place, Wanted(kind="log"))
            refused.append(caught.value.code)
            return super().read(name)

    page = find_rows(moved_in_memory, Searched(Path(place.name), CODES), Wanted(kind="log"))
    assert refused == ["attribution_history_busy"] * page.files
    assert find_rows(moved_in_memory, place, Wanted(kind="log")) == page


@pytest.mark.parametrize("after", ["x", "1", "1.x", "1.-1", "999.0"])
def test_a_place_that_is_none_is_refused(moved: Database, place: FilePlace, after: str):
    with pytest.raises(Invalid) as caught:
        find_rows(moved, place, Wanted(kind="log"), after=after)
    assert caught.value.code == "attribution_history_page"


def test_a_damaged_file_is_not_shown(moved: Database, place: FilePlace):
    file = moved.read(lambda tx: files_between(tx, "log"))[0].file or ""
    place.put(file, b"PAR1")
    with pytest.raises(Invalid) as caught:
        find_rows(moved, place, Wanted(kind="log"))
    assert caught.value.code == "attribution_history_damaged"
    assert find_rows(moved, place, Wanted(kind="facts")).rows, "a search that failed keeps no other out"


Get = Callable[..., Any]


@contextmanager
def house(tmp_path: Path, write: Callable[[Patra, FilePlace], None]) -> Generator[Get]:
    """A Patra with a history that `write` fills; gives how it is asked over HTTP."""
    settings = Settings(
        store=StoreSettings(url=f"sqlite:///{tmp_path / 'patra.db'}"),
        web=WebSettings(port=0),
        attribution=AttributionSettings(history_folder=str(tmp_path / "history")),
    )
    patra = build(settings)
    try:
        write(patra, FolderPlace(tmp_path / "history", CODES))
        with serving(app(patra), settings.web) as served:
            http = urllib3.PoolManager(retries=False)

            def get(path: str, **query: Any) -> Any:
                return http.request("GET", f"{served.url}{path}?{urlencode(query)}")

            yield get
    finally:
        patra.close(5)


def test_files_and_rows_are_read_over_http_and_shown_by_the_console(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("patra.attribution.history.kinds.MAX_FILE_ROWS", 3)

    def write(patra: Patra, place: FilePlace) -> None:
        fill(patra.db)
        move_all(patra.db, place, LogLines())

    with house(tmp_path, write) as get:
        first = get("/attribution/history", kind="log", limit=2).json()
        assert [(one["kind"], one["rows"], one["rowsInStore"]) for one in first["files"]] == [("log", 3, False)] * 2
        second = get("/attribution/history", kind="log", limit=100, after=first["next"]).json()
        assert second["next"] is None
        numbers = [one["number"] for one in [*first["files"], *second["files"]]]
        assert numbers == sorted(set(numbers))

        page = get("/attribution/history/rows", kind="log", limit=5).json()
        assert [one["batch_id"] for one in page["rows"]] == ["b0", "b1", "b2", "b3", "b4"]
        more = get("/attribution/history/rows", kind="log", limit=1, after=page["next"]).json()
        assert more["rows"][0]["batch_id"] == "b5"
        for wrong in ({"kind": "log", "begin": "yesterday"}, {"kind": "log", "after": "x"}, {"kind": "bodies"}, {}):
            assert get("/attribution/history/rows", **wrong).status == 400, wrong
        before = get("/console/attribution/history", kind="log", key="b7").data.decode()
        assert "Nothing in the 2 files that this page opened." in before
        (after,) = re.findall(r'href="[^"]*[?&;]after=([\d.]+)', before)
        shown = get("/console/attribution/history", kind="log", key="b7", after=after).data.decode()
        assert re.findall(r'data-copy="(b\d+)"', shown) == ["b7"]
        assert first["files"][0]["file"] in get("/console/attribution/history").data.decode()
        with only_search():
            busy = get("/attribution/history/rows", kind="log")
            assert (busy.status, busy.json()["code"]) == (503, "attribution_history_busy")
            assert busy.headers["Retry-After"] == "1"
            assert get("/attribution/history", kind="log").status == 200, "files are listed without a search"
        assert get("/attribution/history/rows", kind="log").status == 200


ADDRESS = "reader@example.org"


def write_addresses(patra: Patra, place: FilePlace) -> None:
    """Events with an address in their extensions and in a value that nobody foresaw, sent twice, and settled."""
    told = {"extensions": {"contact": ADDRESS}}
    events = event("impression", **told), event("postback", postbackStatus=ADDRESS, **told)
    replay([sent(0, *events), sent(1, *events), sent(50, batch="newest")], patra.db)
    close_january(patra.db)
    catch_up(patra.db)
    verified = VerifiedStatements()
    periods = dict.fromkeys(("log", "audits", "facts", "settled"), 30 * DAY)
    kept = Retention(**periods, verified=verified, statements=verified)
    while purge_once(patra.db, LATER + 99 * DAY, kept, history=place) != Purged():
        pass


def test_rows_of_every_kind_are_given_over_http_without_personal_data(tmp_path: Path):
    with house(tmp_path, write_addresses) as get:
        answers = {kind: get("/attribution/history/rows", kind=kind) for kind in VIEWS}
    assert not [kind for kind, answer in answers.items() if ADDRESS in answer.data.decode()]
    rows = {kind: answer.json()["rows"] for kind, answer in answers.items()}
    assert [one["batch_id"] for one in rows["log"]] == ["b1", "b1"]
    assert [one["payload"]["decisionAction"] for one in rows["audits"]] == ["drop", "drop"]
    assert [one["billable_type"] for one in rows["settled"]] == ["billable_impression"]
    raw = [one["payload"]["rawValue"] for one in rows["facts"] if "rawValue" in one["payload"]]
    assert raw == ["***"]
    billed = [one["payload"] for one in rows["facts"] if one["record_type"] == "billable_fact"]
    assert [one["billingKey"] for one in billed] == ["ref|ra|billable_impression"]
