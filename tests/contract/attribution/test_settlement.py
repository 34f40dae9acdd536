"""Settlement, aggregate states and what may be forgotten, by where records stand in the archive: §3.8.29, §3.8.30."""

from collections.abc import Iterator

import pytest

from patra.attribution.archive import Again, Never
from patra.attribution.queries import closure_by_key
from patra.attribution.reasons import R
from patra.attribution.records import RecordType
from patra.attribution.retention import Retention, purge_once
from patra.attribution.settle import settle
from patra.kernel.clock import DAY, SECOND, format_instant
from patra.kernel.db import Database
from tests.contract.attribution.test_delivery import House as Store
from tests.unit.attribution.said import T0, at, event, sent, terminal


class House(Store):
    def settled(self, by: str = "app") -> list[tuple[str, str, int, int]]:
        found = self.db.read(lambda tx: settle(tx, T0 - DAY, T0 + DAY, by))  # type: ignore[arg-type]
        return [(line.app_id, line.placement, line.impressions, line.clicks) for line in found.lines]

    def aggregate(self) -> str | None:
        view = self.db.read(lambda tx: closure_by_key(tx, "ref|ra"))
        assert view is not None
        return view.aggregate

    def give_up(self) -> None:
        for _ in range(40):
            self.deliver()
            self.clock.advance(30 * SECOND)
        self.deliver()


@pytest.fixture
def house(database: Database) -> Iterator[House]:
    return House(database)


def test_only_facts_whose_record_the_archive_has_are_settled(house: House):
    house.take(sent(0, event("impression"), event("click")))
    assert house.settled() == []
    house.deliver()
    assert house.settled() == [("app", "", 1, 1)]


@pytest.mark.parametrize("outcome", [Never("g_archive_refused"), Never(R.RECORDKEY_MISMATCH.value)])
def test_a_fact_that_the_archive_refuses_or_contradicts_is_never_settled(house: House, outcome: Never):
    house.take(sent(0, event("impression"), event("click")))
    house.archive.fails = lambda record: (
        outcome if record.type is RecordType.BILLABLE and record.payload["billableType"] == "billable_click" else None
    )
    house.deliver()
    assert house.settled() == [("app", "", 1, 0)]


@pytest.mark.parametrize("by", ["app", "day", "placement"])
def test_a_settlement_counts_from_its_beginning_up_to_its_end_and_only_what_is_committed(house: House, by: str):
    begin, end = T0 - 10 * SECOND, T0
    for n, instant in enumerate([begin - 1, begin, end - 1, end]):
        house.take(
            sent(0, event("impression", "i", renderAttemptId=f"r{n}", eventAt=format_instant(instant)), batch=f"b{n}")
        )
    house.deliver()
    house.archive.fails = lambda record: Never("g_no") if record.type is RecordType.BILLABLE else None
    house.take(sent(0, event("impression", "i", renderAttemptId="refused", eventAt=at(-5)), batch="refused"))
    house.deliver()
    house.take(sent(0, event("impression", "i", renderAttemptId="new", eventAt=at(-5)), batch="new"))
    found = house.db.read(lambda tx: settle(tx, begin, end, by))  # type: ignore[arg-type]
    assert (found.impressions, found.clicks, len(found.lines)) == (2, 0, 1)


def test_a_fact_that_was_never_written_is_never_settled(house: House):
    house.take(sent(0, event("impression")))
    house.archive.fails = lambda record: Again(R.ARCHIVE_UNAVAILABLE)
    house.give_up()
    assert house.settled() == []


def test_a_placement_is_that_of_the_first_opportunity_of_the_same_app(house: House):
    def opportunity(name: str, place: str) -> dict[str, object]:
        return event("opportunity_created", name, placementKey=place)

    house.take(sent(0, opportunity("a", "first"), opportunity("b", "second")))
    house.take(sent(0, opportunity("c", "third"), batch="b2"))
    house.take(sent(0, opportunity("d", "elsewhere"), batch="b3", app="other"))
    house.take(sent(0, event("impression"), event("click"), batch="b4"))
    house.take(sent(0, event("impression", responseReference="theirs"), batch="b5", app="other"))
    house.take(sent(0, event("impression", responseReference="none", opportunityKey="none"), batch="b6", app="third"))
    house.deliver()
    assert house.settled("placement") == [("app", "first", 1, 1), ("other", "elsewhere", 1, 0), ("third", "", 1, 0)]


def test_a_closure_is_pending_until_its_records_are_written_and_committed_then(house: House):
    house.take(sent(0, event("impression")))
    assert house.aggregate() == "partial_pending"
    house.archive.fails = lambda record: None if record.type is RecordType.AUDIT else Again(R.ARCHIVE_RATE_LIMITED)
    house.deliver()
    assert house.aggregate() == "partial_pending"
    house.archive.fails = lambda record: None
    house.clock.advance(SECOND)
    house.deliver()
    assert house.aggregate() == "consistent_committed"


def test_a_closure_whose_records_could_not_be_written_in_time_has_timed_out(house: House):
    house.take(sent(0, event("impression")))
    house.archive.fails = lambda record: Again(R.ARCHIVE_TIMEOUT) if record.type is RecordType.ATTRIBUTION else None
    house.give_up()
    assert house.aggregate() == "partial_timeout"


def test_a_closure_has_timed_out_also_where_another_record_was_refused(house: House):
    house.take(sent(0, event("impression")))
    outcomes = {RecordType.BILLABLE: Never("g_archive_refused"), RecordType.ATTRIBUTION: Again(R.ARCHIVE_TIMEOUT)}
    house.archive.fails = lambda record: outcomes.get(record.type)
    house.give_up()
    assert house.aggregate() == "partial_timeout"


def test_a_closure_whose_decisions_were_purged_has_no_aggregate_state_instead_of_a_wrong_one(house: House):
    house.take(sent(0, event("impression")))
    house.deliver()
    house.take(sent(60, event("impression"), batch="b2"))
    house.deliver()
    assert house.aggregate() == "consistent_committed"
    purge_once(house.db, T0 + 30 * SECOND + DAY, Retention(facts=DAY))
    assert house.aggregate() is None
    assert house.settled() == [("app", "", 1, 0)]


def test_a_closure_without_a_billable_fact_that_counts_is_consistent_and_not_billable(house: House):
    house.take(sent(0, terminal()), sent(0, event("impression"), batch="b2"))
    house.deliver()
    assert house.aggregate() == "consistent_non_billable"


def test_a_closure_whose_billable_fact_was_refused_is_not_billable(house: House):
    house.take(sent(0, event("impression")))
    house.archive.fails = lambda record: Never("g_archive_refused") if record.type is RecordType.BILLABLE else None
    house.deliver()
    assert house.aggregate() == "consistent_non_billable"


def test_nothing_is_purged_that_the_archive_does_not_have(house: House):
    house.take(sent(0, event("impression"), event("view")))
    house.clock.advance(10 * DAY)
    kept = Retention(audits=DAY, facts=DAY)
    before = purge_once(house.db, house.clock.now(), kept)
    assert (before.audits, before.facts) == (0, 0)
    house.deliver()
    done = purge_once(house.db, house.clock.now(), kept)
    assert (done.audits, done.facts) == (1, 1)


def test_an_audit_that_was_purged_and_is_made_again_does_not_replace_the_archived_one(house: House):
    house.take(sent(0, event("view")))
    house.deliver()
    house.clock.advance(10 * DAY)
    purge_once(house.db, house.clock.now(), Retention(audits=DAY))
    house.take(sent(0, event("view")), sent(0, event("impression", eventAt=at(10 * 86_400))))
    house.deliver()
    told = [(r.body["decisionReasonCode"], r.payload.get("decidedAt")) for r in house.archive.written]
    assert told[0] == ("f_event_type_unsupported", at(0))
    assert told[1:] == [("f_accepted", at(10 * 86_400)), ("f_accepted", None), ("f_accepted", None)]
    assert house.statuses()[0] == ("decision_audit", "f_event_type_unsupported", "conflicted")
