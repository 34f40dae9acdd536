"""From decisions to an archive outside the store: §3.8.27 to §3.8.29, F17, F21."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pytest

from patra.attribution.archive import Again, Never, Outcome
from patra.attribution.batch import Item, Tick, read_batch
from patra.attribution.commit import EVERYTHING, commit
from patra.attribution.contract import Versions
from patra.attribution.delivery import POLICY, Delivery, Moved, _write_moves, handing
from patra.attribution.reading import Archived, every_decision
from patra.attribution.reasons import R
from patra.attribution.records import RANK, Record, RecordType
from patra.attribution.records import On as RecordMove
from patra.kernel.clock import MINUTE, SECOND
from patra.kernel.db import Database, migrate
from patra.kernel.db.queries import statement
from patra.kernel.machine import history
from patra.kernel.testing import ManualClock
from tests.contract.attribution.archives import ListedArchive
from tests.unit.attribution.said import PACKAGES, T0, event, sent, terminal


class House:
    """A store, an archive and what goes between them, with a clock set by hand."""

    def __init__(self, db: Database) -> None:
        migrate(db, PACKAGES)
        self.db = db
        self.clock = ManualClock(T0)
        self.archive = ListedArchive()
        self.delivery = Delivery(db, self.archive, self.clock)

    def take(self, *lines: Any) -> None:
        for line in lines:
            item: Item = (
                Tick(at=T0 + line * SECOND)
                if isinstance(line, int)
                else read_batch(msgspec.json.encode(line["batch"]), self.clock.now())
            )
            commit(self.db, [item], due=EVERYTHING, hand=handing(self.clock))

    def deliver(self) -> None:
        while not self.delivery.relay.run_once().idle:
            pass

    def decisions(self) -> list[Archived]:
        return list(every_decision(self.db))

    def statuses(self) -> list[tuple[str, str, str]]:
        return [
            (r.type.value, r.body["decisionReasonCode"], r.status.value) for d in self.decisions() for r in d.records
        ]


@pytest.fixture
def house(database: Database) -> Iterator[House]:
    return House(database)


def test_records_are_new_until_the_archive_has_them_and_committed_then(house: House):
    house.take(sent(0, event("impression")), sent(0, event("click")))
    assert {status for _, _, status in house.statuses()} == {"new"}
    house.deliver()
    assert {status for _, _, status in house.statuses()} == {"committed"}
    assert len(house.archive.written) == 6
    assert {record.status.value for record in house.archive.written} == {"committed"}
    assert house.deliver() is None
    assert len(house.archive.written) == 6


def test_duplicates_conflicts_and_rejections_are_output_too(house: House):
    house.take(
        sent(
            0,
            event("impression", "i1"),
            event("impression", "i2"),
            event("view"),
            event("postback", postbackStatus="failed"),
        )
    )
    house.deliver()
    assert sorted(house.archive.told) == sorted(house.statuses())
    assert ("attribution_fact", "f_billing_conflict_duplicate_impression", "duplicate") in house.archive.told
    assert ("attribution_fact", "f_postback_terminal_conflict", "conflicted") in house.archive.told
    assert ("decision_audit", "f_event_type_unsupported", "committed") in house.archive.told


def test_within_a_group_audits_are_written_before_billable_facts_before_attribution_facts(house: House):
    house.take(sent(0, event("ad_filled"), event("click")), sent(0, event("impression")))
    house.deliver()
    ranks = [RANK[record.type] for record in house.archive.written]
    assert ranks == sorted(ranks)


def test_no_fact_is_written_before_its_audit_is(house: House):
    house.take(sent(0, event("impression")))
    house.archive.fails = lambda record: Again(R.ARCHIVE_TIMEOUT) if record.type is RecordType.AUDIT else None
    house.deliver()
    assert house.archive.written == []
    assert {status for _, _, status in house.statuses()} == {"new"}


def test_no_attribution_fact_of_a_group_is_written_before_its_billable_facts_are(house: House):
    house.take(sent(0, event("impression"), event("click")))
    house.archive.fails = lambda record: Again(R.ARCHIVE_TIMEOUT) if record.type is RecordType.BILLABLE else None
    house.deliver()
    assert {record.type for record in house.archive.written} == {RecordType.AUDIT}
    house.archive.fails = lambda record: None
    house.clock.advance(SECOND)
    house.deliver()
    ranks = [RANK[record.type] for record in house.archive.written]
    assert ranks == sorted(ranks) == [0, 0, 0, 1, 1, 2, 2, 2]


def test_a_billable_fact_that_is_refused_for_good_does_not_hold_up_its_attribution_fact(house: House):
    house.take(sent(0, event("impression")))
    house.archive.fails = lambda record: Never("g_no") if record.type is RecordType.BILLABLE else None
    house.deliver()
    assert [record.type for record in house.archive.written] == [RecordType.AUDIT, RecordType.ATTRIBUTION]


@pytest.mark.parametrize("code", [R.ARCHIVE_TIMEOUT, R.ARCHIVE_UNAVAILABLE, R.ARCHIVE_RATE_LIMITED])
def test_what_can_be_retried_is_tried_again_after_1_5_30_120_seconds_and_so_on(house: House, code: R):
    house.take(sent(0, event("opportunity_created")))
    house.archive.fails = lambda record: Again(code)
    house.deliver()
    for wait in (1, 5, 30, 120, 1, 5, 30, 120):
        calls = house.archive.calls
        house.clock.advance(wait * SECOND - 1)
        house.deliver()
        assert house.archive.calls == calls
        house.clock.advance(1)
        house.deliver()
        assert house.archive.calls == calls + 1
    house.archive.fails = lambda record: None
    house.clock.advance(120 * SECOND)
    house.deliver()
    assert {status for _, _, status in house.statuses()} == {"committed"}
    assert len({record.key for record in house.archive.written}) == len(house.archive.written) == 2


def test_after_15_minutes_what_is_missing_is_conflicted_and_the_row_says_why(house: House):
    house.take(sent(0, event("impression")))
    house.archive.fails = lambda record: None if record.type is RecordType.AUDIT else Again(R.ARCHIVE_UNAVAILABLE)
    for _ in range(40):
        house.deliver()
        house.clock.advance(30 * SECOND)
    house.deliver()
    assert sorted(house.statuses()) == [
        ("attribution_fact", "f_accepted", "conflicted"),
        ("billable_fact", "f_accepted", "conflicted"),
        ("decision_audit", "f_accepted", "committed"),
    ]
    keys = [record.key for record in house.decisions()[0].records]
    moves = house.db.read(lambda tx: history(tx, keys))
    assert {(move.was, move.to, move.reason) for move in moves} == {
        ("new", "conflicted", "f_output_archive_compensation_exhausted")
    }
    assert min(move.at for move in moves) >= T0 + 15 * MINUTE


def test_another_payload_under_the_same_record_key_is_a_conflict(house: House):
    house.take(sent(0, event("opportunity_created")))
    house.archive.fails = lambda record: (
        Never(R.RECORDKEY_MISMATCH.value) if record.type is RecordType.ATTRIBUTION else None
    )
    house.deliver()
    assert sorted(house.statuses()) == [
        ("attribution_fact", "f_accepted", "conflicted"),
        ("decision_audit", "f_accepted", "committed"),
    ]


def test_a_record_that_the_archive_refuses_is_rejected_with_its_facts(house: House):
    house.take(sent(0, event("impression")))
    house.archive.fails = lambda record: Never(R.ARCHIVE_REFUSED.value) if record.type is RecordType.AUDIT else None
    house.deliver()
    assert {status for _, _, status in house.statuses()} == {"rejected"}
    assert house.archive.written == []


def test_a_group_that_fails_does_not_hold_up_the_others(house: House):
    house.take(sent(0, event("impression", "i1", traceKey="stuck"), event("impression", "i2", renderAttemptId="two")))
    house.archive.fails = lambda record: (
        Again(R.ARCHIVE_TIMEOUT) if record.body["sourceKeys"]["traceKey"] == "stuck" else None
    )
    house.deliver()
    assert {record.body["sourceKeys"]["renderAttemptIdOrNA"] for record in house.archive.written} == {"two"}


def test_a_turn_ends_before_its_hold_does_however_much_waits_and_however_slow_the_archive_is(house: House):
    for trace in range(12):
        found = [event("opportunity_created", f"o{n}", traceKey=f"t{trace}") for n in range(60)]
        house.take(sent(0, *found, batch=f"b{trace}"))
    write = house.archive.write

    def slow(records: Sequence[Record]) -> list[Outcome]:
        house.clock.advance(34 * SECOND)
        return write(records)

    house.archive.write = slow  # type: ignore[method-assign]
    began = house.clock.now()
    counts = house.delivery.relay.run_once()
    assert house.clock.now() - began < POLICY.hold
    assert counts.delivered > 0
    house.deliver()
    assert {status for _, _, status in house.statuses()} == {"committed"}
    assert len(house.archive.written) == 2 * 12 * 60


def test_later_decisions_of_a_group_wait_for_earlier_ones(house: House):
    house.take(sent(0, event("ad_filled")))
    house.archive.fails = lambda record: Again(R.ARCHIVE_TIMEOUT)
    house.deliver()
    house.clock.advance(1)
    house.take(sent(0, event("interaction")))
    house.archive.fails = lambda record: None
    house.deliver()
    assert house.archive.written == []
    house.clock.advance(SECOND)
    house.deliver()
    facts = [
        record.payload["attributionType"] for record in house.archive.written if record.type is RecordType.ATTRIBUTION
    ]
    assert facts == ["attr_ad_filled", "attr_interaction"]


@pytest.mark.parametrize("delivered_between", [True, False])
def test_a_superseded_timeout_reaches_the_archive_as_committed_and_then_as_superseded(
    house: House, delivered_between: bool
):
    house.take(sent(0, event("ad_filled")), 120)
    if delivered_between:
        house.deliver()
    house.clock.advance(200 * SECOND)
    house.take(sent(200, event("impression")))
    house.deliver()
    of_timeout = [
        status
        for kind, reason, status in house.archive.told
        if reason == "f_terminal_timeout_autofill" and kind == "attribution_fact"
    ]
    assert of_timeout == ["committed", "superseded"]
    assert ("attribution_fact", "f_terminal_timeout_autofill", "superseded") in house.statuses()
    assert {status for kind, _, status in house.statuses() if kind != "attribution_fact"} == {"committed"}
    key = next(r.key for d in house.decisions() for r in d.records if r.status.value == "superseded")
    moves = [(move.was, move.to) for move in house.db.read(lambda tx: history(tx, [key]))]
    assert moves[-1] == ("committed", "superseded")
    assert moves == (
        [("committed", "superseded")] if delivered_between else [("new", "committed"), ("committed", "superseded")]
    )


def test_a_superseded_timeout_waits_for_its_own_records_though_the_impression_has_another_trace(house: House):
    """§3.8.27: superseded only from committed; §3.8.29.2: no fact before its audit."""
    house.take(sent(0, event("ad_filled", traceKey="opener")), 120)
    house.archive.fails = lambda record: (
        Again(R.ARCHIVE_TIMEOUT) if record.body["sourceKeys"]["traceKey"] == "opener" else None
    )
    house.deliver()
    house.clock.advance(SECOND // 2)
    house.take(sent(200, event("impression", traceKey="late")))
    house.deliver()
    assert {record.body["sourceKeys"]["traceKey"] for record in house.archive.written} == {"late"}
    assert ("billable_fact", "f_accepted", "committed") in house.statuses()  # not held up by the other group
    house.archive.fails = lambda record: None
    house.clock.advance(SECOND)
    house.deliver()
    assert [(kind, status) for kind, reason, status in house.archive.told if "timeout" in reason] == [
        ("decision_audit", "committed"),
        ("attribution_fact", "committed"),
        ("attribution_fact", "superseded"),
    ]
    assert ("attribution_fact", "f_terminal_timeout_autofill", "superseded") in house.statuses()


def test_a_message_whose_decision_was_purged_goes_without_a_word(house: House):
    house.take(sent(0, event("ad_filled")), 120)
    house.deliver()
    house.take(sent(0, event("impression")))
    house.db.run(lambda tx: tx.execute(statement("purge", "DELETE FROM att_decision")))
    told = len(house.archive.told)
    house.deliver()
    assert len(house.archive.told) == told
    assert house.delivery.relay.next_due() is None


def test_dropping_the_same_event_again_outputs_nothing_new(house: House):
    house.take(
        sent(0, event("view")), sent(0, event("view")), sent(0, terminal()), sent(0, terminal()), sent(0, terminal())
    )
    house.deliver()
    assert len(house.archive.written) == 4


def test_a_record_that_lacks_a_version_anchor_is_output_as_rejected(house: House, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("patra.attribution.records.VERSIONS", (Versions(billingRuleVersion=""),))
    house.take(sent(0, event("opportunity_created")))
    house.deliver()
    assert {(reason, status) for _, reason, status in house.archive.told} == {
        ("f_output_missing_version_anchor", "rejected")
    }
    assert {status for _, _, status in house.statuses()} == {"rejected"}
    moves = house.db.read(lambda tx: history(tx, [record.key for record in house.archive.written]))
    assert {(move.was, move.to, move.reason) for move in moves} == {("new", "rejected", R.MISSING_VERSION_ANCHOR.value)}


def test_every_move_of_a_record_says_why_when_and_under_which_rules(house: House):
    house.take(sent(0, event("ad_filled")), 120)
    house.clock.advance(200 * SECOND)
    house.take(sent(200, event("impression")))
    house.archive.fails = lambda record: Never("g_no") if record.type is RecordType.BILLABLE else None
    house.deliver()
    keys = [record.key for one in house.decisions() for record in one.records]
    moves = house.db.read(lambda tx: history(tx, keys))
    assert {(move.to, move.reason, move.at - T0, move.rule_version) for move in moves} == {
        ("committed", "f_terminal_timeout_autofill", 200 * SECOND, "f_archive_v1"),
        ("superseded", "f_terminal_timeout_superseded", 200 * SECOND, "f_archive_v1"),
        ("rejected", "g_no", 200 * SECOND, "f_archive_v1"),
    }


def test_the_version_anchors_of_a_record_stay_the_same_while_it_moves(house: House):
    house.take(sent(0, event("ad_filled")), 120)
    house.deliver()
    house.clock.advance(200 * SECOND)
    house.take(sent(200, event("impression")))
    house.deliver()
    anchors: dict[str, list[dict[str, str]]] = {}
    for record in house.archive.written:
        anchors.setdefault(record.key, []).append(record.body["versionAnchors"])
    assert max(map(len, anchors.values())) == 2
    assert all(found == found[:1] * len(found) for found in anchors.values())


def test_the_last_try_is_at_the_end_of_the_15_minutes(house: House):
    house.take(sent(0, event("opportunity_created")))
    house.archive.fails = lambda record: Again(R.ARCHIVE_TIMEOUT)
    tried: list[int] = []
    while {status for _, _, status in house.statuses()} == {"new"}:
        calls = house.archive.calls
        house.deliver()
        tried += [(house.clock.now() - T0) // SECOND] * (house.archive.calls - calls)
        house.clock.advance(SECOND)
    cycle = [1, 6, 36, 156]
    assert tried == [0, *[n * 156 + second for n in range(6) for second in cycle if n * 156 + second < 900], 900]


def test_what_was_never_tried_does_not_use_up_its_15_minutes(house: House):
    """A decision that waits for an earlier one of its group has a window of its own."""
    house.take(sent(0, event("ad_filled")), sent(0, event("interaction")))
    house.archive.fails = lambda record: (
        Again(R.ARCHIVE_TIMEOUT) if record.body["sourceKeys"]["eventId"] == "ad_filled" else None
    )
    for _ in range(16 * 60):
        house.deliver()
        house.clock.advance(SECOND)
    by_event = {
        (record.body["sourceKeys"]["eventId"], record.status.value)
        for one in house.decisions()
        for record in one.records
    }
    assert by_event == {("ad_filled", "conflicted"), ("interaction", "committed")}


def test_a_record_that_is_sent_in_two_states_is_written_in_both(house: House):
    house.take(sent(0, event("ad_filled")), 120)
    house.clock.advance(200 * SECOND)
    house.take(sent(200, event("impression")))
    failures = [Again(R.ARCHIVE_TIMEOUT)]
    house.archive.fails = lambda record: (
        failures.pop()
        if failures and record.type is RecordType.ATTRIBUTION and "timeout" in record.body["decisionReasonCode"]
        else None
    )
    house.deliver()
    house.clock.advance(SECOND)
    house.deliver()
    assert failures == []
    told = [status for kind, reason, status in house.archive.told if "timeout" in reason and kind == "attribution_fact"]
    assert told == ["committed", "superseded"]


def test_a_record_that_is_settled_stays_so(house: House):
    """Should a message ever be settled twice, the first time counts (§3.8.27)."""
    house.take(sent(0, event("impression")))
    house.deliver()
    lost = Moved(RecordMove.CONFLICT, None)
    moves = [(one, dict.fromkeys(RecordType, lost)) for one in house.decisions()]
    house.db.run(lambda tx: _write_moves(tx, moves, house.clock.now()))
    assert {status for _, _, status in house.statuses()} == {"committed"}


def test_a_timeout_whose_record_never_arrived_is_not_superseded(house: House):
    """`conflicted` is an end (§3.8.27): only what was committed can be superseded."""
    house.take(sent(0, event("ad_filled")), 120)
    house.archive.fails = lambda record: (
        Again(R.ARCHIVE_TIMEOUT) if "timeout" in record.body["decisionReasonCode"] else None
    )
    for _ in range(80):
        house.deliver()
        house.clock.advance(30 * SECOND)
    house.archive.fails = lambda record: None
    house.take(sent(0, event("impression")))
    house.deliver()
    found = {status for kind, reason, status in house.statuses() if "timeout" in reason and kind == "attribution_fact"}
    assert found == {"conflicted"}
    assert ("billable_fact", "f_accepted", "committed") in house.statuses()
