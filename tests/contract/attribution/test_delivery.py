"""From decisions to an archive outside the store: §3.8.27 to §3.8.29, F17, F21."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pytest

from patra.attribution.commit import commit
from patra.attribution.contract.reasons import Reason
from patra.attribution.contract.versions import Versions
from patra.attribution.decision.closure_rules import Status
from patra.attribution.decision.output_records import RANK, Record, RecordType
from patra.attribution.decision.output_records import RecordTransition as RecordMove
from patra.attribution.delivery.http_archive import HttpArchive
from patra.attribution.delivery.port import ArchiveForbiddenError, Outcome, Rejected, Retry
from patra.attribution.delivery.record_status import Moved, write_moves
from patra.attribution.delivery.relay import POLICY, Delivery, handing
from patra.attribution.intake.batch import Item, Tick, read_batch
from patra.attribution.queries import ArchiveDelivery, archive_delivery
from patra.attribution.settlement import By, settle
from patra.attribution.storage.read import Archived, every_decision
from patra.kernel.clock import DAY, MINUTE, SECOND, format_instant
from patra.kernel.db import Database, migrate
from patra.kernel.db.queries import statement
from patra.kernel.machine import history
from patra.kernel.testing import ManualClock
from tests.contract.attribution.archives import ListedArchive
from tests.unit.attribution.said import ALL_DUE_CLOSURES, PACKAGES, T0, event, sent, terminal


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
            commit(self.db, [item], due=ALL_DUE_CLOSURES, hand=handing(self.clock))

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
    house.archive.fails = lambda record: Retry(Reason.ARCHIVE_TIMEOUT) if record.type is RecordType.AUDIT else None
    house.deliver()
    assert house.archive.written == []
    assert {status for _, _, status in house.statuses()} == {"new"}


def test_no_attribution_fact_of_a_group_is_written_before_its_billable_facts_are(house: House):
    house.take(sent(0, event("impression"), event("click")))
    house.archive.fails = lambda record: Retry(Reason.ARCHIVE_TIMEOUT) if record.type is RecordType.BILLABLE else None
    house.deliver()
    assert {record.type for record in house.archive.written} == {RecordType.AUDIT}
    house.archive.fails = lambda record: None
    house.clock.advance(SECOND)
    house.deliver()
    ranks = [RANK[record.type] for record in house.archive.written]
    assert ranks == sorted(ranks) == [0, 0, 0, 1, 1, 2, 2, 2]


def test_a_billable_fact_that_is_refused_for_good_does_not_hold_up_its_attribution_fact(house: House):
    house.take(sent(0, event("impression")))
    house.archive.fails = lambda record: Rejected("g_no") if record.type is RecordType.BILLABLE else None
    house.deliver()
    assert [record.type for record in house.archive.written] == [RecordType.AUDIT, RecordType.ATTRIBUTION]


@pytest.mark.parametrize("code", [Reason.ARCHIVE_TIMEOUT, Reason.ARCHIVE_UNAVAILABLE, Reason.ARCHIVE_RATE_LIMITED])
def test_what_can_be_retried_is_tried_again_after_1_5_30_120_seconds_and_so_on(house: House, code: Reason):
    house.take(sent(0, event("opportunity_created")))
    house.archive.fails = lambda record: Retry(code)
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
    house.archive.fails = lambda record: None if record.type is RecordType.AUDIT else Retry(Reason.ARCHIVE_UNAVAILABLE)
    for _ in range(40):
        house.deliver()
        house.clock.advance(30 * SECOND)
    house.deliver()
    assert sorted(house.statuses()) == [
        ("attribution_fact", "f_output_archive_compensation_exhausted", "conflicted"),
        ("billable_fact", "f_output_archive_compensation_exhausted", "conflicted"),
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
        Rejected(Reason.RECORDKEY_MISMATCH.value) if record.type is RecordType.ATTRIBUTION else None
    )
    house.deliver()
    assert sorted(house.statuses()) == [
        ("attribution_fact", "f_output_recordkey_payload_mismatch", "conflicted"),
        ("decision_audit", "f_accepted", "committed"),
    ]


def test_a_record_that_the_archive_refuses_is_rejected_with_its_facts(house: House):
    house.take(sent(0, event("impression")))
    house.archive.fails = lambda record: (
        Rejected(Reason.ARCHIVE_REFUSED.value) if record.type is RecordType.AUDIT else None
    )
    house.deliver()
    assert {status for _, _, status in house.statuses()} == {"rejected"}
    assert house.archive.written == []


def test_a_group_that_fails_does_not_hold_up_the_others(house: House):
    house.take(sent(0, event("impression", "i1", traceKey="stuck"), event("impression", "i2", renderAttemptId="two")))
    house.archive.fails = lambda record: (
        Retry(Reason.ARCHIVE_TIMEOUT) if record.body["sourceKeys"]["traceKey"] == "stuck" else None
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
    house.archive.fails = lambda record: Retry(Reason.ARCHIVE_TIMEOUT)
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
        if reason.startswith("f_terminal_timeout_") and kind == "attribution_fact"
    ]
    assert of_timeout == ["committed", "superseded"]
    assert ("attribution_fact", "f_terminal_timeout_superseded", "superseded") in house.statuses()
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
        Retry(Reason.ARCHIVE_TIMEOUT) if record.body["sourceKeys"]["traceKey"] == "opener" else None
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
    assert ("attribution_fact", "f_terminal_timeout_superseded", "superseded") in house.statuses()


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
    monkeypatch.setattr("patra.attribution.decision.output_records.VERSIONS", (Versions(billingRuleVersion=""),))
    house.take(sent(0, event("opportunity_created")))
    house.deliver()
    assert {(reason, status) for _, reason, status in house.archive.told} == {
        ("f_output_missing_version_anchor", "rejected")
    }
    assert {status for _, _, status in house.statuses()} == {"rejected"}
    moves = house.db.read(lambda tx: history(tx, [record.key for record in house.archive.written]))
    assert {(move.was, move.to, move.reason) for move in moves} == {
        ("new", "rejected", Reason.MISSING_VERSION_ANCHOR.value)
    }


def test_every_move_of_a_record_says_why_when_and_under_which_rules(house: House):
    house.take(sent(0, event("ad_filled")), 120)
    house.clock.advance(200 * SECOND)
    house.take(sent(200, event("impression")))
    house.archive.fails = lambda record: Rejected("g_no") if record.type is RecordType.BILLABLE else None
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
    house.archive.fails = lambda record: Retry(Reason.ARCHIVE_TIMEOUT)
    tried: list[int] = []
    while {status for _, _, status in house.statuses()} == {"new"}:
        calls = house.archive.calls
        house.deliver()
        tried += [(house.clock.now() - T0) // SECOND] * (house.archive.calls - calls)
        house.clock.advance(SECOND)
    cycle = [1, 6, 36, 156]
    assert tried == [0, *[n * 156 + second for n in range(6) for second in cycle if n * 156 + second < 900], 900]


def test_what_waits_is_lost_15_minutes_after_its_first_failure_however_long_it_waited_before(house: House):
    house.take(sent(0, event("impression")))
    house.clock.advance(3600 * SECOND)

    def found() -> ArchiveDelivery:
        return house.db.read(lambda tx: archive_delivery(tx, "https://ann:pw@archive.example/records?key=k"))

    before = found()
    assert (before.failing_since, before.lost_at, before.waiting[0]["lost_at"]) == (None, None, None)
    assert before.where == "https://***@archive.example/records"
    house.archive.fails = lambda record: Retry(Reason.ARCHIVE_TIMEOUT)
    house.deliver()
    first, after = house.clock.now(), found()
    lost = format_instant(first + 900 * SECOND)
    assert (after.failing_since, after.lost_at) == (format_instant(first), lost)
    assert {one["lost_at"] for one in after.waiting} == {lost}
    house.archive.fails = lambda record: None
    house.clock.advance(SECOND)
    house.deliver()
    assert (found().waiting, found().lost_at) == ([], None)


def test_the_15_minutes_of_a_group_end_for_all_of_it_that_is_pending(house: House):
    """F26: a click that waited for its impression is given up with it, and so is what came a moment before."""
    house.take(sent(0, event("impression")), sent(0, event("click")))
    house.archive.fails = lambda record: Retry(Reason.ARCHIVE_TIMEOUT) if record.type is RecordType.BILLABLE else None
    for second in range(900):
        if second == 890:
            house.take(sent(0, event("interaction")))
        house.deliver()
        house.clock.advance(SECOND)
    assert {status for _, _, status in house.statuses()} == {"new"}
    house.deliver()
    assert house.delivery.relay.next_due() is None
    facts = {status for kind, _, status in house.statuses() if kind != "decision_audit"}
    assert facts == {"conflicted"}
    assert {record.type for record in house.archive.written} == {RecordType.AUDIT}
    keys = [record.key for one in house.decisions() for record in one.records if record.type is not RecordType.AUDIT]
    moves = house.db.read(lambda tx: history(tx, keys))
    assert {(move.to, move.reason, move.at - T0) for move in moves} == {
        ("conflicted", "f_output_archive_compensation_exhausted", 900 * SECOND)
    }


def test_a_decision_that_waited_behind_a_failure_has_no_15_minutes_of_its_own(house: House):
    house.take(sent(0, event("ad_filled")), sent(0, event("interaction")))
    down = "ad_filled"
    house.archive.fails = lambda record: (
        Retry(Reason.ARCHIVE_TIMEOUT) if record.body["sourceKeys"]["eventId"] == down else None
    )
    for second in range(902):
        if second == 600:
            down = "interaction"
        house.deliver()
        house.clock.advance(SECOND)
    found = {
        (record.body["sourceKeys"]["eventId"], record.status.value)
        for one in house.decisions()
        for record in one.records
    }
    assert found == {("ad_filled", "committed"), ("interaction", "conflicted")}


def given_up_impression(house: House, *more: Any) -> None:
    house.take(sent(0, event("impression")), *more)
    house.archive.fails = lambda record: (
        Retry(Reason.ARCHIVE_TIMEOUT) if record.body["sourceKeys"]["eventId"] == "impression" else None
    )
    for _ in range(31):
        house.deliver()
        house.clock.advance(30 * SECOND)
    house.archive.fails = lambda record: None


def clicks(house: House) -> list[tuple[str, str]]:
    return [(kind, status) for kind, _, status in house.archive.told if kind == "billable_fact"]


def test_no_click_is_written_whose_impression_was_given_up_before(house: House):
    given_up_impression(house)
    house.take(sent(0, event("click"), event("click", "other", renderAttemptId="two")))
    house.deliver()
    assert clicks(house) == []
    of_click = [r for one in house.decisions() for r in one.records if r.body["sourceKeys"]["eventId"] == "click"]
    assert {(r.type.value, r.status.value) for r in of_click} == {
        ("decision_audit", "committed"),
        ("billable_fact", "conflicted"),
        ("attribution_fact", "committed"),
    }


def test_settlement_counts_no_click_whose_impression_was_given_up(house: House):
    """The click came under another trace, so in another group, and was written before its impression was given up."""
    given_up_impression(house, sent(0, event("click", traceKey="other")))
    house.take(sent(0, event("impression", "i2", renderAttemptId="two"), event("click", "c2", renderAttemptId="two")))
    house.deliver()
    assert len(clicks(house)) == 3
    ways: tuple[By, ...] = ("app", "day", "placement")
    for by in ways:
        found = house.db.read(lambda tx, by=by: settle(tx, T0, T0 + DAY, by))
        assert (found.impressions, found.clicks) == (1, 1)
        assert found.uncounted == {"conflicted": 1, "impression_not_archived": 1}


def test_a_record_that_is_sent_in_two_states_is_written_in_both(house: House):
    house.take(sent(0, event("ad_filled")), 120)
    house.clock.advance(200 * SECOND)
    house.take(sent(200, event("impression")))
    failures = [Retry(Reason.ARCHIVE_TIMEOUT)]
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
    house.db.run(lambda tx: write_moves(tx, moves, house.clock.now()))
    assert {status for _, _, status in house.statuses()} == {"committed"}


def test_a_timeout_whose_record_never_arrived_is_not_superseded(house: House):
    """`conflicted` is an end (§3.8.27): only what was committed can be superseded."""
    house.take(sent(0, event("ad_filled")), 120)
    house.archive.fails = lambda record: (
        Retry(Reason.ARCHIVE_TIMEOUT) if "timeout" in record.body["decisionReasonCode"] else None
    )
    for _ in range(80):
        house.deliver()
        house.clock.advance(30 * SECOND)
    house.archive.fails = lambda record: None
    house.take(sent(0, event("impression")))
    house.deliver()
    timeout = next(one for one in house.decisions() if "timeout" in one.decision.reason)
    assert timeout.statuses.attribution is Status.CONFLICTED
    assert ("billable_fact", "f_accepted", "committed") in house.statuses()


def test_records_are_kept_while_the_archive_may_not_be_called_as_it_is_configured(house: House):
    house.take(sent(0, event("impression")))
    forbidden = Delivery(house.db, HttpArchive("http://127.1:9/"), house.clock)  # a name that leads to this machine
    for _ in range(40):  # for twenty minutes, of which no turn passes as if all were well
        with pytest.raises(ArchiveForbiddenError, match=r"egress\.networks"):
            forbidden.run_once()
        house.clock.advance(30 * SECOND)
    assert {status for _, _, status in house.statuses()} == {"new"}
    house.deliver()  # by a process whose settings were fixed
    assert {status for _, _, status in house.statuses()} == {"committed"}
    assert len(house.archive.written) == 3
