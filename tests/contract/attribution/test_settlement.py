"""Settlement, aggregate states and what may be forgotten, by where records stand in the archive: §3.8.29, §3.8.30."""

import json
from collections.abc import Callable, Iterator

import msgspec
import pytest

from patra.attribution.commit import commit
from patra.attribution.contract.reasons import Reason
from patra.attribution.decision.closure_rules import Status
from patra.attribution.decision.closure_state import ClosureState, Terminal
from patra.attribution.decision.output_records import Record, RecordType
from patra.attribution.delivery.port import Outcome, Rejected, Retry
from patra.attribution.delivery.relay import RECORDS
from patra.attribution.intake.batch import read_batch
from patra.attribution.queries import closure_by_key, timeline
from patra.attribution.retention import FACTS, Retention, purge_once
from patra.attribution.settlement import settle
from patra.attribution.storage.read import every_closure
from patra.attribution.storage.sql import set_mark
from patra.kernel.clock import DAY, SECOND, format_instant
from patra.kernel.db import Database
from patra.kernel.telemetry import setup_logging
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


@pytest.mark.parametrize("outcome", [Rejected("g_archive_refused"), Rejected(Reason.RECORDKEY_MISMATCH.value)])
def test_a_fact_that_the_archive_refuses_or_contradicts_is_never_settled(house: House, outcome: Rejected):
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
    house.archive.fails = lambda record: Rejected("g_no") if record.type is RecordType.BILLABLE else None
    house.take(sent(0, event("impression", "i", renderAttemptId="refused", eventAt=at(-5)), batch="refused"))
    house.deliver()
    house.take(sent(0, event("impression", "i", renderAttemptId="new", eventAt=at(-5)), batch="new"))
    found = house.db.read(lambda tx: settle(tx, begin, end, by))  # type: ignore[arg-type]
    assert (found.impressions, found.clicks, len(found.lines)) == (2, 0, 1)


def test_a_fact_that_was_never_written_is_never_settled(house: House):
    house.take(sent(0, event("impression")))
    house.archive.fails = lambda record: Retry(Reason.ARCHIVE_UNAVAILABLE)
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
    house.archive.fails = lambda record: None if record.type is RecordType.AUDIT else Retry(Reason.ARCHIVE_RATE_LIMITED)
    house.deliver()
    assert house.aggregate() == "partial_pending"
    house.archive.fails = lambda record: None
    house.clock.advance(SECOND)
    house.deliver()
    assert house.aggregate() == "consistent_committed"


def test_a_closure_whose_records_could_not_be_written_in_time_has_timed_out(house: House):
    house.take(sent(0, event("impression")))
    house.archive.fails = lambda record: (
        Retry(Reason.ARCHIVE_TIMEOUT) if record.type is RecordType.ATTRIBUTION else None
    )
    house.give_up()
    assert house.aggregate() == "partial_timeout"


def test_a_closure_has_timed_out_also_where_another_record_was_refused(house: House):
    house.take(sent(0, event("impression")))
    outcomes = {
        RecordType.BILLABLE: Rejected("g_archive_refused"),
        RecordType.ATTRIBUTION: Retry(Reason.ARCHIVE_TIMEOUT),
    }
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
    house.archive.fails = lambda record: Rejected("g_archive_refused") if record.type is RecordType.BILLABLE else None
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
    assert house.statuses()[0] == ("decision_audit", "f_output_recordkey_payload_mismatch", "conflicted")


def late(house: House) -> None:
    """A timeout that the archive has, and an impression that supersedes it."""
    house.take(sent(0, event("ad_filled")), 120)
    house.deliver()
    house.clock.set(T0 + 200 * SECOND)
    house.take(sent(200, event("impression"), batch="b2"))


def superseding(outcome: Outcome) -> Callable[[Record], Outcome | None]:
    return lambda record: outcome if record.status is Status.SUPERSEDED else None


def test_a_closure_is_pending_until_the_archive_knows_what_was_superseded(house: House):
    late(house)
    house.archive.fails = superseding(Retry(Reason.ARCHIVE_TIMEOUT))
    house.deliver()
    assert house.settled() == [("app", "", 1, 0)]
    assert house.aggregate() == "partial_pending"
    house.archive.fails = lambda record: None
    house.clock.advance(SECOND)
    house.deliver()
    assert house.aggregate() == "consistent_committed"


def codes(house: House, key: str) -> set[str | None]:
    return {one.archiveCode for one in house.db.read(lambda tx: timeline(tx, key)).decisions}


def test_that_the_archive_never_learnt_what_was_superseded_is_told(house: House):
    late(house)
    house.archive.fails = superseding(Retry(Reason.ARCHIVE_TIMEOUT))
    house.give_up()
    assert house.aggregate() == "partial_timeout"
    assert codes(house, "ref|ra") == {None, "f_output_archive_compensation_exhausted"}
    assert house.statuses()[3] == ("attribution_fact", "f_terminal_timeout_superseded", "superseded")


def test_why_the_archive_refused_to_learn_what_was_superseded_is_told(house: House):
    late(house)
    house.archive.fails = superseding(Rejected("g_known_already"))
    house.deliver()
    assert codes(house, "ref|ra") == {None, "g_known_already"}
    assert house.aggregate() == "consistent_committed"


def test_nothing_is_purged_before_the_archive_knows_that_it_was_superseded(house: House):
    late(house)
    house.archive.fails = superseding(Retry(Reason.ARCHIVE_TIMEOUT))
    house.deliver()
    house.clock.advance(10 * DAY)
    assert purge_once(house.db, house.clock.now(), Retention(facts=DAY)).facts == 1  # that which opened the closure
    house.archive.fails = lambda record: None
    house.deliver()
    assert ("attribution_fact", "f_terminal_timeout_superseded", "superseded") in house.archive.told
    assert purge_once(house.db, house.clock.now(), Retention(facts=DAY)).facts == 2


@pytest.mark.parametrize("outcome", [Retry(Reason.ARCHIVE_TIMEOUT), Rejected("g_archive_refused")])
def test_a_fact_that_the_archive_did_not_take_is_purged_only_into_a_file(house: House, outcome: Outcome):
    house.take(sent(0, event("impression"), event("impression", "other", renderAttemptId="two")))
    house.archive.fails = lambda record: outcome if record.body["sourceKeys"]["eventId"] == "other" else None
    house.give_up()
    house.clock.advance(10 * DAY)
    done = purge_once(house.db, house.clock.now(), Retention(facts=DAY))
    assert (done.facts, done.passed) == (1, 1)
    assert [one.decision.subject.event_id for one in house.decisions()] == ["other"]


def test_a_fact_that_was_archived_in_the_store_is_not_purged_because_another_archive_came_later(house: House):
    commit(house.db, [read_batch(msgspec.json.encode(sent(0, event("impression"))["batch"]), T0)])
    house.take(sent(0, event("click"), batch="b2"))
    house.deliver()
    house.clock.advance(10 * DAY)
    files: list[Record] = []
    assert purge_once(house.db, house.clock.now(), Retention(facts=DAY)).facts == 1
    assert [one.decision.subject.event_id for one in house.decisions()] == ["impression"]
    house.db.run(lambda tx: set_mark(tx, FACTS, 0))
    assert purge_once(house.db, house.clock.now(), Retention(facts=DAY), keep=files.extend).facts == 1
    assert [record.type for record in files] == list(RecordType)


def test_a_record_that_moved_otherwise_than_by_arriving_says_why_when_and_under_which_rules(house: House):
    house.take(sent(0, event("impression")))
    house.archive.fails = lambda record: Rejected("g_no") if record.type is RecordType.BILLABLE else None
    house.deliver()
    (found,) = house.db.read(lambda tx: timeline(tx, "ref|ra|billable_impression")).decisions
    (move,) = [one for one in found.moves if one.recordStatus != "committed"]
    assert (move.recordKey, found.archiveCode) == (found.records[1]["recordKey"], "g_no")
    assert (move.was, move.recordStatus, move.decisionReasonCode) == ("new", "rejected", "g_no")
    assert (move.decidedAt, move.ruleVersionSnapshot) == (at(0), "f_archive_v1")


def test_a_plain_arrival_says_when_and_under_which_rules_too(house: House):
    house.take(sent(0, event("impression")), sent(0, event("impression", "again")))
    house.clock.advance(7 * SECOND)
    house.deliver()
    first, second = house.db.read(lambda tx: timeline(tx, "ref|ra")).decisions
    moves = [(one.was, one.recordStatus, one.decisionReasonCode, one.decidedAt) for one in first.moves]
    assert moves == [("new", "committed", "f_accepted", at(7))] * 3
    assert [one.recordKey for one in first.moves] == [record["recordKey"] for record in first.records]
    code = "f_billing_conflict_duplicate_impression"
    moves = [(one.was, one.recordStatus, one.decisionReasonCode, one.decidedAt) for one in second.moves]
    assert moves == [("new", "committed", code, at(7)), ("new", "duplicate", code, at(0))]
    assert {one.ruleVersionSnapshot for one in (*first.moves, *second.moves)} == {"f_archive_v1"}


def counted(outcome: str) -> float:
    return RECORDS.labels(outcome)._value.get()


def test_an_archive_that_fails_is_told_once_and_what_is_given_up_is_told_too(
    house: House, capsys: pytest.CaptureFixture[str]
):
    setup_logging(level="info", format="json")
    before = {name: counted(name) for name in ("written", "again", "refused", "given_up")}
    house.take(sent(0, event("impression")))
    house.archive.fails = lambda record: Retry(Reason.ARCHIVE_TIMEOUT) if record.type is RecordType.BILLABLE else None
    house.give_up()
    house.take(sent(0, event("click"), batch="b2"))
    house.archive.fails = lambda record: Rejected("g_no") if record.type is RecordType.BILLABLE else None
    house.deliver()
    told = [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()]
    assert told == [
        "attribution_archive_failing",
        "attribution_archive_gave_up",
        "attribution_archive_refused",
        "attribution_archive_recovered",
    ]
    assert counted("given_up") - before["given_up"] == 2  # the attribution fact waited for the billable one
    assert counted("refused") - before["refused"] == 1
    assert counted("again") > before["again"]
    assert counted("written") > before["written"]


def test_timeouts_whose_keys_join_to_the_same_text_cost_nobody_a_billable_fact(house: House):
    """Fields that contain `|` may give the failures of two closures one key; their impressions have keys of their own."""
    one = {"opportunityKey": "o", "responseReference": "x|y", "renderAttemptId": "z"}
    two = {"opportunityKey": "o|x", "responseReference": "y", "renderAttemptId": "z"}
    house.take(sent(0, event("ad_filled", "f1", **one)))
    house.clock.advance(SECOND)
    house.take(sent(1, event("ad_filled", "f2", **two), batch="b2"), 200)
    house.deliver()
    timeouts = [d for d in house.decisions() if d.decision.reason == Reason.TIMEOUT.value]
    assert {d.records[1].key for d in timeouts} == {timeouts[0].records[1].key}
    assert [d.settled_code for d in timeouts] == [None, Reason.RECORDKEY_MISMATCH.value]  # the archive has the first
    house.clock.set(T0 + 300 * SECOND)
    for n, link in enumerate((one, two)):
        house.take(sent(300, event("impression", f"i{n}", **link), batch=f"late{n}"))
        house.take(sent(300, event("click", f"c{n}", **link), batch=f"later{n}"))
    house.deliver()
    assert house.settled() == [("app", "", 2, 2)]
    states = {c.closure: (c.state, c.source) for c in every_closure(house.db)}
    assert states == dict.fromkeys(["x|y|z", "y|z"], (ClosureState.CLOSED_SUCCESS, Terminal.IMPRESSION))
    assert {d.decision.billable for d in house.decisions()} == {None, "billable_impression", "billable_click"}


def test_a_decision_whose_records_cannot_be_written_costs_an_earlier_one_of_its_group_nothing(house: House):
    house.take(sent(0, event("impression")), sent(0, event("click"), batch="b2"))
    house.archive.fails = lambda record: (
        Retry(Reason.ARCHIVE_UNAVAILABLE) if record.body["sourceKeys"]["eventId"] == "click" else None
    )
    house.give_up()
    assert house.settled() == [("app", "", 1, 0)]
    assert house.aggregate() == "partial_timeout"
    order = [(record.type, record.body["sourceKeys"]["eventId"]) for record in house.archive.written]
    assert order == [(kind, "impression") for kind in RecordType]
