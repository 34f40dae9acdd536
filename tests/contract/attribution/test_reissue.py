"""F26: an operator issues records again that the archive did not take; settlement counts a billing key once."""

from collections.abc import Iterator
from typing import Any

import pytest

from patra.attribution.contract.reasons import Reason
from patra.attribution.decision.output_records import RecordType
from patra.attribution.delivery.port import Retry
from patra.attribution.delivery.reissue import ReissuedRecord, reissue
from patra.attribution.queries import closure_by_key, timeline
from patra.attribution.replay import replay
from patra.attribution.settlement import settle
from patra.attribution.storage.read import deliveries
from patra.attribution.verify import verify
from patra.kernel.clock import DAY, SECOND
from patra.kernel.db import Database, migrate
from patra.kernel.errors import Invalid
from tests.contract.attribution.test_delivery import House as DeliveryHouse
from tests.contract.attribution.test_delivery import given_up_impression
from tests.contract.attribution.test_record_keys import FIRST, MISMATCH
from tests.contract.attribution.test_record_keys import SECOND as OTHER
from tests.unit.attribution.said import PACKAGES, T0, event, sent, tick


class House(DeliveryHouse):
    def reissue(self, key: str) -> list[ReissuedRecord]:
        return self.db.run(lambda tx: reissue(tx, key, self.clock.now(), archived=False))

    def counted(self) -> tuple[int, int]:
        found = self.db.read(lambda tx: settle(tx, T0, T0 + DAY, "app"))
        return found.impressions, found.clicks

    def fail(self) -> None:
        self.archive.fails = lambda record: Retry(Reason.ARCHIVE_TIMEOUT)
        for _ in range(31):
            self.deliver()
            self.clock.advance(30 * SECOND)
        self.archive.fails = lambda record: None


@pytest.fixture
def house(database: Database) -> Iterator[House]:
    return House(database)


def bodies(house: House, kind: str = "billable_fact") -> list[dict[str, Any]]:
    found = house.db.read(lambda tx: timeline(tx, "ref|ra")).decisions
    return [record for one in found for record in one.records if record["recordType"] == kind]


def test_a_record_that_was_given_up_is_issued_again_under_a_key_of_its_own_and_counted_once(house: House):
    given_up_impression(house)
    assert house.counted() == (0, 0)
    made = house.reissue("ref|ra")
    assert {one.archiveContractVersion for one in made} == {"f_archive_v1.r2"}
    assert {one.recordType for one in made} == {"decision_audit", "billable_fact", "attribution_fact"}
    assert {one.recordStatus for one in made} == {"new"}
    assert house.counted() == (0, 0)
    house.deliver()
    old, new = bodies(house)
    assert (old["recordStatus"], new["recordStatus"]) == ("conflicted", "committed")
    assert new["conflictWithRecordKey"] == old["recordKey"] != new["recordKey"]
    assert new["payloadRef"] == old["payloadRef"]
    assert [record.body["recordKey"] for record in house.archive.written if record.type == "billable_fact"] == [
        new["recordKey"]
    ]
    assert house.counted() == (1, 0)
    view = house.db.read(lambda tx: closure_by_key(tx, "ref|ra"))
    assert view is not None
    assert view.aggregate == "consistent_committed"
    assert house.db.read(deliveries) == {}
    assert verify(house.db, house.clock).findings == []


def test_a_record_is_found_by_the_key_of_its_later_issue_with_its_moves(house: House):
    given_up_impression(house)
    made = {one.recordType: one for one in house.reissue("ref|ra")}
    house.deliver()
    (found,) = house.db.read(lambda tx: timeline(tx, made["billable_fact"].recordKey)).decisions
    moves = [(move.was, move.recordStatus) for move in found.moves if move.recordKey == made["billable_fact"].recordKey]
    assert moves == [("new", "committed")]


def test_what_was_issued_again_and_taken_or_is_on_its_way_is_not_issued_once_more(house: House):
    given_up_impression(house)
    house.reissue("ref|ra")
    for _ in range(2):
        with pytest.raises(Invalid, match="reissue_nothing"):
            house.reissue("ref|ra")
        house.deliver()
    with pytest.raises(Invalid, match="reissue_nothing"):
        house.reissue("no such key")


def test_a_record_that_is_given_up_again_has_a_third_issue(house: House):
    given_up_impression(house)
    house.reissue("ref|ra")
    house.fail()
    assert [one["recordStatus"] for one in bodies(house)] == ["conflicted", "conflicted"]
    assert house.counted() == (0, 0)
    assert {one.archiveContractVersion for one in house.reissue("ref|ra")} == {"f_archive_v1.r3"}
    house.deliver()
    first, second, third = bodies(house)
    assert (third["recordStatus"], third["conflictWithRecordKey"]) == ("committed", second["recordKey"])
    assert second["conflictWithRecordKey"] == first["recordKey"]
    assert house.counted() == (1, 0)


def test_a_records_own_key_means_that_record_alone(house: House):
    given_up_impression(house)
    (old,) = bodies(house)
    assert [one.recordType for one in house.reissue(old["recordKey"])] == ["billable_fact"]


@pytest.mark.parametrize("trace", ["trace", "other"])
def test_a_click_is_written_again_only_after_its_impression(house: House, trace: str):
    given_up_impression(house)
    house.take(sent(0, event("click", traceKey=trace)))
    house.deliver()
    house.reissue("click")
    house.deliver()
    assert house.counted() == (0, 0)
    house.reissue("ref|ra")
    for _ in range(3):
        house.deliver()
        house.clock.advance(130 * SECOND)
    assert house.counted() == (1, 1)
    order = [r.payload["billableType"] for r in house.archive.written if r.type == "billable_fact"]
    assert order == ["billable_impression", "billable_click"]


def test_a_click_that_the_archive_has_counts_once_its_impression_is_there_too(house: House):
    given_up_impression(house, sent(0, event("click", traceKey="other")))
    assert house.counted() == (0, 0)
    house.reissue("impression")
    house.deliver()
    assert house.counted() == (1, 1)


def test_a_conflict_of_the_built_in_archive_is_issued_again_at_once(database: Database):
    migrate(database, PACKAGES)
    replay(
        [sent(0, event("ad_filled", "f1", **FIRST)), sent(1, event("ad_filled", "f2", **OTHER)), tick(200)], database
    )
    made = database.run(lambda tx: reissue(tx, "r|x|a", T0 + 300 * SECOND, archived=True))
    assert {(one.recordType, one.recordStatus) for one in made} == {
        ("decision_audit", "committed"),
        ("attribution_fact", "committed"),
    }
    found = database.read(lambda tx: timeline(tx, "r|x|a")).decisions[-1]
    assert [(one["recordStatus"], one["decisionReasonCode"]) for one in found.records] == [
        ("conflicted", MISMATCH),
        ("conflicted", MISMATCH),
        ("committed", "f_terminal_timeout_autofill"),
        ("committed", "f_terminal_timeout_autofill"),
    ]


def superseded(house: House, *, before: bool) -> None:
    """A timeout that an impression superseded; `before`: the archive had it as committed."""
    house.take(sent(0, event("ad_filled")), 120)
    if before:
        house.deliver()
    house.clock.set(T0 + 200 * SECOND)
    house.take(sent(200, event("impression"), batch="b2"))


def aggregate(house: House) -> str | None:
    closure = house.db.read(lambda tx: closure_by_key(tx, "ref|ra"))
    assert closure is not None
    return closure.aggregate


def timeout_told(house: House) -> list[str]:
    """The states in which the archive was sent the timeout's attribution record."""
    return [
        record.status.value
        for record in house.archive.written
        if record.type is RecordType.ATTRIBUTION and record.body["decisionReasonCode"].startswith("f_terminal_timeout")
    ]


@pytest.mark.parametrize("before", [True, False])
def test_a_superseded_record_that_the_archive_was_not_told_of_is_told_again(house: House, before: bool):
    superseded(house, before=before)
    house.fail()
    assert aggregate(house) == "partial_timeout"
    assert timeout_told(house) == ["committed"] * before
    made = house.reissue("ref|ra")
    assert "superseded" in {one.recordStatus for one in made}
    assert aggregate(house) == "partial_pending"
    house.deliver()
    assert timeout_told(house)[-2:] == ["committed", "superseded"]
    assert aggregate(house) == "consistent_committed"
    assert house.counted() == (1, 0)
    assert house.db.read(deliveries) == {}
    with pytest.raises(Invalid, match="reissue_nothing"):
        house.reissue("ref|ra")


def test_a_superseded_record_that_cannot_be_told_again_stays_outstanding_and_may_be_tried_once_more(house: House):
    superseded(house, before=True)
    house.fail()
    house.reissue("ref|ra")
    with pytest.raises(Invalid, match="reissue_nothing"):  # it is on its way
        house.reissue("ref|ra")
    house.fail()
    assert aggregate(house) == "partial_timeout"
    house.reissue("ref|ra")
    house.deliver()
    assert aggregate(house) == "consistent_committed"


def test_a_record_that_was_born_in_conflict_is_not_issued_again(house: House):
    house.take(sent(0, event("impression"), event("postback", postbackStatus="failed")))
    house.deliver()
    with pytest.raises(Invalid, match="reissue_nothing"):
        house.reissue("postback")
