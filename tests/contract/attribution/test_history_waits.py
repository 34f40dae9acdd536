"""What stays although it is past its retention: decisions that settlement or an operator still needs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from patra.app.component import Health
from patra.app.configuration.attribution_settings import AttributionSettings
from patra.app.configuration.settings import Settings, StoreSettings
from patra.app.wiring import build
from patra.attribution.commit import commit
from patra.attribution.decision.output_records import Record
from patra.attribution.history import kinds
from patra.attribution.history.ask import ask, check_files
from patra.attribution.history.decisions import FACTS, DecisionRecords
from patra.attribution.history.export import Exporter, Moved
from patra.attribution.history.files import CODES, failing_kinds, files_between, note_failure
from patra.attribution.history.kinds import LogLines
from patra.attribution.intake.batch import read_batch
from patra.attribution.replay import replay
from patra.attribution.retention import Purged, Retention, purge_once
from patra.attribution.settlement import statement_store
from patra.attribution.settlement.facts import settled_facts
from patra.attribution.settlement.period import close_period, parse_period
from patra.attribution.settlement.rate_card import Rate
from patra.attribution.settlement.statement_store import add_rate
from patra.attribution.settlement.verified_statements import VerifiedStatements
from patra.attribution.verify import verify
from patra.kernel.clock import DAY, SECOND
from patra.kernel.db import Database, Row, Tx, migrate
from patra.kernel.db.queries import statement
from patra.kernel.errors import Invalid, StoreCorrupt, Transient
from patra.kernel.files import FilePlace, FolderPlace
from patra.kernel.testing import ManualClock
from tests.contract.attribution.test_delivery import given_up_impression
from tests.contract.attribution.test_reissue import House
from tests.unit.attribution.said import ALL_DUE_CLOSURES, PACKAGES, T0, at, envelope, event, sent

JANUARY, FEBRUARY = parse_period("2026-01"), parse_period("2026-02")
LAST_OF_JANUARY = 31 * 86_400 - 60
FIRST_OF_FEBRUARY = 31 * 86_400 + 60
LATER = T0 + 400 * DAY


@pytest.fixture
def place(tmp_path: Path) -> FilePlace:
    return FolderPlace(tmp_path / "history", CODES)


def priced(database: Database) -> Database:
    """A click of the creative `cr` costs much, any other little."""
    migrate(database, PACKAGES)
    for kind, creative, price in (
        ("billable_impression", "", 2500),
        ("billable_click", "", 1),
        ("billable_click", "cr", 7_000_000),
    ):
        rate = Rate(billable_type=kind, creative=creative, price_micros=price, currency="EUR", valid_from=T0)
        database.run(lambda tx, rate=rate: add_rate(tx, rate, T0))
    return database


@pytest.fixture
def store(database: Database) -> Database:
    return priced(database)


def purge(db: Database, place: FilePlace | None) -> None:
    retention = Retention(log=DAY, audits=DAY, facts=DAY, verified=VerifiedStatements())
    while purge_once(db, LATER, retention, history=place) != Purged():
        pass


def close(db: Database, period: Any) -> list[tuple[str, int | None]]:
    file = close_period(db, ManualClock(LATER), "app", period)
    return [(fact.billable_type, fact.price_micros) for fact in file.facts]


def count(db: Database, table: str) -> int:
    return db.read(lambda tx: tx.fetch(statement("rows_of_table", f"SELECT count(*) FROM {table}")))[0][0]


def click_in_february(db: Database) -> None:
    body = msgspec.json.encode(envelope(event("click", eventAt=at(FIRST_OF_FEBRUARY)), batch="february"))
    commit(db, [read_batch(body, T0 + (FIRST_OF_FEBRUARY + 1) * SECOND)], due=ALL_DUE_CLOSURES)


def shown_in_january(db: Database) -> None:
    replay([sent(LAST_OF_JANUARY, event("impression", eventAt=at(LAST_OF_JANUARY)))], db)


def test_an_impression_stays_until_its_click_of_a_later_period_is_in_a_statement(store: Database, place: FilePlace):
    shown_in_january(store)
    click_in_february(store)
    assert close(store, JANUARY) == [("billable_impression", 2500)]
    purge(store, place)
    assert count(store, "att_decision") == 2
    assert close(store, FEBRUARY) == [("billable_click", 7_000_000)]
    purge(store, place)
    assert count(store, "att_decision") == 0


def test_a_click_that_comes_after_its_impression_was_purged_has_the_creative_of_its_statement(
    store: Database, place: FilePlace
):
    shown_in_january(store)
    assert close(store, JANUARY) == [("billable_impression", 2500)]
    purge(store, place)
    assert count(store, "att_decision") == 0
    click_in_february(store)
    assert close(store, FEBRUARY) == [("billable_click", 7_000_000)]


def test_a_click_whose_creative_nothing_names_any_more_is_not_priced(store: Database, place: FilePlace):
    shown_in_january(store)
    close(store, JANUARY)
    purge(store, place)
    click_in_february(store)
    store.run(lambda tx: tx.script("DELETE FROM att_statement_page"))
    with pytest.raises(Invalid, match="period_unverified"):
        close(store, FEBRUARY)
    with pytest.raises(StoreCorrupt, match="priced by the creative of its impression"):
        list(settled_facts(store, FEBRUARY.begin, FEBRUARY.end, "app"))


def test_a_click_whose_impression_the_first_release_wrote_without_a_closure_has_its_creative(store: Database):
    shown_in_january(store)
    store.run(lambda tx: tx.script("UPDATE att_billable SET closure = NULL"))
    click_in_february(store)
    assert close(store, JANUARY) == [("billable_impression", 2500)]
    assert close(store, FEBRUARY) == [("billable_click", 7_000_000)]


def test_a_click_without_a_closure_has_the_creative_of_its_impression(store: Database):
    shown_in_january(store)
    click_in_february(store)
    store.run(lambda tx: tx.script("UPDATE att_billable SET closure = NULL"))
    close(store, JANUARY)
    assert close(store, FEBRUARY) == [("billable_click", 7_000_000)]


def test_a_late_click_is_priced_by_a_creative_that_its_statement_masks(store: Database, place: FilePlace):
    name = "brand@agency.com"
    rate = Rate(billable_type="billable_click", creative=name, price_micros=9, currency="EUR", valid_from=T0)
    store.run(lambda tx: add_rate(tx, rate, T0))
    replay([sent(LAST_OF_JANUARY, event("impression", creativeId=name, eventAt=at(LAST_OF_JANUARY)))], store)
    close(store, JANUARY)
    purge(store, place)
    click_in_february(store)
    assert close(store, FEBRUARY) == [("billable_click", 9)]


class Away(FolderPlace):
    """A place that cannot be reached when the n-th file is put."""

    def __init__(self, folder: Path, reached: int) -> None:
        super().__init__(folder, CODES)
        self.left = reached

    def put(self, name: str, content: bytes) -> None:
        self.left -= 1
        if self.left < 0:
            raise Transient("attribution_history_unavailable", "away")
        super().put(name, content)


def refused(house: House) -> None:
    """Facts that the archive has, then an impression that it did not take."""
    house.take(sent(0, event("impression", "taken", renderAttemptId="other"), batch="b0"))
    given_up_impression(house)


def moved(house: House, place: FilePlace) -> None:
    kind = DecisionRecords("facts", FACTS)
    while Exporter(house.db, place).move(kind, LATER - DAY, LATER) != Moved():
        pass


RECORDS = "SELECT count(*), count(DISTINCT record_key) FROM facts"


def test_a_decision_that_is_issued_again_before_its_file_is_written_stays(database: Database, tmp_path: Path):
    house = House(database)
    refused(house)
    with pytest.raises(Transient):
        moved(house, Away(tmp_path, 0))
    house.reissue("ref|ra")
    place = FolderPlace(tmp_path, CODES)
    moved(house, place)
    assert (count(database, "att_reissue"), count(database, "att_decision")) == (3, 1)
    assert ask(database, place, RECORDS).rows == [(3, 3)]
    house.deliver()
    moved(house, place)
    assert (count(database, "att_reissue"), count(database, "att_decision")) == (0, 0)
    assert ask(database, place, RECORDS).rows == [(9, 9)]
    assert verify(database, house.clock).findings == []


@pytest.mark.parametrize("batch_size", [1, 100])
def test_a_decision_that_is_issued_again_after_its_file_was_written_stays_for_a_later_file(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch_size: int
):
    monkeypatch.setattr(kinds, "DELETE_BATCH_SIZE", batch_size)
    house = House(database)
    refused(house)
    place = FolderPlace(tmp_path, CODES)
    kind = DecisionRecords("facts", FACTS)
    delete = kind.delete

    def killed(tx: Tx, rows: Sequence[Row]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(kind, "delete", killed)
    with pytest.raises(KeyboardInterrupt):
        Exporter(database, place).move(kind, LATER - DAY, LATER)
    monkeypatch.setattr(kind, "delete", delete)
    house.reissue("ref|ra")
    assert Exporter(database, place).move(kind, LATER - DAY, LATER) == Moved(rows=3)
    assert (count(database, "att_reissue"), count(database, "att_decision")) == (3, 1)
    assert ask(database, place, RECORDS).rows == [(3, 3)]
    assert check_files(database, place).problems == []
    moved(house, place)
    assert count(database, "att_decision") == 1
    house.deliver()
    moved(house, place)
    assert count(database, "att_decision") == 0
    assert ask(database, place, RECORDS).rows == [(9, 9)]
    indexed = sorted(one.name for one in tmp_path.glob("*.index.json"))
    files = [(one.file or "").replace(".parquet", ".index.json") for one in database.read(files_between)]
    assert indexed == sorted(files)


def test_a_decision_that_is_issued_again_while_its_records_are_kept_elsewhere_stays(database: Database):
    house = House(database)
    refused(house)
    made: list[Any] = []

    def keep(records: Sequence[Record]) -> None:
        if records and not made:
            made.extend(house.reissue("ref|ra"))

    assert purge_once(database, LATER, Retention(facts=DAY), keep=keep).facts == 1
    assert (count(database, "att_reissue"), count(database, "att_decision")) == (3, 1)
    house.deliver()
    assert purge_once(database, LATER, Retention(facts=DAY), keep=keep).facts == 1
    assert (count(database, "att_reissue"), count(database, "att_decision")) == (0, 0)


def click_without_impression(house: House) -> None:
    """A click that the archive took, of an impression that it did not take; January is closed."""
    given_up_impression(house, sent(0, event("click", traceKey="other")), shown_besides())
    for kind in ("billable_impression", "billable_click"):
        rate = Rate(billable_type=kind, price_micros=5, currency="EUR", valid_from=T0)
        house.db.run(lambda tx, rate=rate: add_rate(tx, rate, T0))
    house.clock.set(LATER)
    assert close(house.db, JANUARY) == [("billable_impression", 5)]


def shown_besides() -> dict[str, Any]:
    return sent(0, event("impression", "besides", renderAttemptId="besides", traceKey="third"), batch="besides")


def test_a_click_stays_with_its_impression_that_the_archive_refused_and_both_count_when_it_is_issued_again(
    database: Database,
):
    house = House(database)
    click_without_impression(house)
    purge(database, None)
    assert count(database, "att_decision") == 2
    house.reissue("impression")
    house.deliver()
    assert close(database, FEBRUARY) == [("billable_click", 5), ("billable_impression", 5)]


def test_a_click_goes_to_history_together_with_its_impression_that_the_archive_refused(
    database: Database, place: FilePlace
):
    house = House(database)
    click_without_impression(house)
    purge(database, place)
    assert count(database, "att_decision") == 0
    assert close(database, FEBRUARY) == []


def entered(db: Database, place: FilePlace, kind: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The process ends before the first deletion; gives the file that it entered."""

    def killed(tx: Tx, rows: Sequence[Row]) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(kind, "delete", killed)
        with pytest.raises(KeyboardInterrupt):
            Exporter(db, place).move(kind, LATER - DAY, LATER)
    (file,) = db.read(lambda tx: files_between(tx, kind.name))
    return Path(place.name) / (file.file or "")


def shown_thrice(db: Database) -> None:
    replay([sent(n, event("impression", f"i{n}", renderAttemptId=f"r{n}"), batch=f"b{n}") for n in range(3)], db)


@pytest.mark.parametrize("kind", [LogLines(), DecisionRecords("facts", FACTS)])
def test_a_file_that_is_lost_before_its_rows_were_deleted_is_written_again(
    store: Database, place: FilePlace, monkeypatch: pytest.MonkeyPatch, kind: Any
):
    shown_thrice(store)
    entered(store, place, kind, monkeypatch).unlink()
    assert Exporter(store, place).move(kind, LATER - DAY, LATER) == Moved(written=1)
    assert Exporter(store, place).move(kind, LATER - DAY, LATER).rows > 0
    assert check_files(store, place).problems == []
    assert len(store.read(files_between)) == 1


def test_a_file_that_is_lost_after_its_first_rows_were_deleted_stops_its_kind_alone_and_is_said(
    store: Database, place: FilePlace, monkeypatch: pytest.MonkeyPatch
):
    shown_thrice(store)
    path = entered(store, place, LogLines(), monkeypatch)
    whole = path.read_bytes()
    path.unlink()
    store.run(lambda tx: tx.script("DELETE FROM att_log WHERE number = (SELECT min(number) FROM att_log)"))
    retention = Retention(log=DAY, facts=DAY)
    done = purge_once(store, LATER, retention, history=place)
    assert (done.log, done.facts, count(store, "att_decision")) == (0, 9, 0)
    assert store.read(failing_kinds) == {"log": LATER}
    with pytest.raises(Invalid, match="attribution_history_damaged"):
        purge_once(store, LATER + DAY, retention, history=place)
    assert store.read(failing_kinds) == {"log": LATER}
    path.write_bytes(whole)
    assert purge_once(store, LATER + DAY, retention, history=place).log == 2
    assert store.read(failing_kinds) == {}


def test_the_doctor_names_the_kinds_of_rows_that_do_not_leave_for_history(tmp_path: Path):
    attribution = AttributionSettings(history_folder=str(tmp_path))
    patra = build(Settings(store=StoreSettings(url="sqlite:///:memory:"), attribution=attribution))
    try:
        for failing, health in (({}, Health.OK), ({"facts": T0}, Health.WARNING)):
            for kind, since in failing.items():
                patra.db.run(lambda tx, kind=kind, since=since: note_failure(tx, kind, since))
            (found,) = (check for check in (look() for look in patra.checks) if check.name == "attribution history")
            assert found.health is health
        assert "facts since 2026-01-01T00:00:00Z" in found.found
    finally:
        patra.close(0)


def test_a_statement_is_checked_once_page_by_page_and_again_after_a_day_where_it_has_problems(
    store: Database, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(statement_store, "PAGE_FACTS", 2)
    shown_thrice(store)
    close(store, JANUARY)
    checks = VerifiedStatements()

    def verified() -> bool:
        return store.read(lambda tx: checks(tx, "app", 1))

    assert not verified()
    assert [checks.check_pending(store, LATER) for _ in range(2)] == [1, 0]
    assert verified()
    pages = statement("pages", "SELECT page, body FROM att_statement_page ORDER BY page")
    kept = store.read(lambda tx: tx.fetch(pages))
    assert [page for page, _ in kept] == [0, 1]
    for text in ("DELETE FROM att_statement_page WHERE page = 1", "DELETE FROM att_statement_check"):
        store.run(lambda tx, text=text: tx.script(text))
    assert [checks.check_pending(store, LATER) for _ in range(2)] == [1, 0]
    assert not verified()
    added = statement("page", "INSERT INTO att_statement_page (app_id, number, page, body) VALUES ('app', 1, 1, :body)")
    store.run(lambda tx: tx.execute(added, {"body": bytes(kept[1][1])}))
    assert checks.check_pending(store, LATER + DAY) == 1
    assert verified()
    store.run(lambda tx: tx.script("UPDATE att_statement_check SET checker = 0"))
    assert not verified()
