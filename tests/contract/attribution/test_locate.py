"""Locating: every key that the specification names leads to its decisions, in pages (§3.8.8, .16, .20, .25, .28, .30)."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from patra.attribution.decision.decide import ITEM_BITS
from patra.attribution.queries import (
    closure_by_key,
    events_of_batch,
    latest_decisions,
    listing,
    reject_place,
    rejects,
    timeline,
)
from patra.attribution.replay import replay
from patra.attribution.storage.key_index import INDEXED, Indexer
from patra.attribution.storage.key_search import Only, find, find_latest
from patra.attribution.storage.sql import mark
from patra.attribution.storage.write import digest
from patra.kernel.clock import DAY, SECOND
from patra.kernel.db import Database, Tx
from patra.kernel.db.queries import statement
from patra.kernel.errors import StoreCorrupt
from tests.contract.attribution.test_retention import House as Store
from tests.unit.attribution.said import ABSENT, T0, at, event, sent, terminal

KEYS = {
    "traceKey": "t-1",
    "requestKey": "r-1",
    "attemptKey": "a-1",
    "opportunityKey": "o-1",
    "responseReference": "ref-1",
    "renderAttemptId": "ra-1",
}


class House(Store):
    def codes(self, key: str, **asked: Any) -> list[str]:
        return [
            one.audit["decisionReasonCode"] for one in self.db.read(lambda tx: timeline(tx, key, **asked)).decisions
        ]

    def of_batch(self, batch: str, event_id: str = "", **only: str) -> list[str]:
        found = self.db.read(lambda tx: events_of_batch(tx, batch, event_id, Only(**only)))
        return [one.audit["decisionReasonCode"] for one in found.decisions]


@pytest.fixture
def house(database: Database) -> Iterator[House]:
    return House(database)


def both(house: House) -> Iterator[bool]:
    """Before the index has reached anything, and after it has reached everything."""
    yield False
    house.index()
    assert house.db.read(lambda tx: mark(tx, INDEXED)) > 0
    yield True


def test_every_key_of_a_record_leads_to_its_decision(house: House):
    house.take(event("click", "e-1", **KEYS), batch="batch-1", app="app-1")
    house.take(event("impression", "e-2", **KEYS), batch="batch-2", app="app-1")
    house.take(event("impression", "other"), batch="batch-3", app="app-2")
    click = house.db.read(lambda tx: timeline(tx, "e-1")).decisions[-1]
    keys: set[str] = {"app-1", click.audit["sourceEventId"], click.billable["factId"], click.attribution["factId"]}  # type: ignore[index]
    for record in click.records:
        keys |= {*record["sourceKeys"].values(), *record["relationKeys"].values(), record["recordKey"]} - {"NA"}
        keys.add(record["payloadRef"]["payloadKey"])
    assert {"e-1", "a-1", "ra-1", "ref-1|ra-1", "ref-1|ra-1|billable_click"} <= keys
    assert len(keys) == 19
    for _ in both(house):
        for key in keys:
            found = house.db.read(lambda tx, key=key: find(tx, key)).found
            assert click.number in [one.archived.id for one in found], key
            assert {one.archived.decision.subject.app for one in found} == {"app-1"}, key


def test_the_payload_key_of_an_audit_leads_to_that_decision_alone(house: House):
    house.take(event("impression", "i"), event("impression", "i"))
    accepted, dropped = [one.records[0] for one in house.db.read(lambda tx: timeline(tx, "i")).decisions]
    for _ in both(house):
        for record in (accepted, dropped):
            found = house.db.read(lambda tx, one=record: timeline(tx, one["payloadRef"]["payloadKey"]))
            assert [one.records[0]["recordKey"] for one in found.decisions] == [record["recordKey"]]


def test_rejected_events_are_found_by_what_can_be_read_of_them(house: House):
    house.take({"eventType": "view", "eventId": "lost", "attemptKey": "a-9", "renderAttemptId": "ra-9"}, batch="b")
    for _ in both(house):
        for key in ("lost", "a-9", "ra-9", "view"):
            assert house.codes(key) == (["f_event_type_unsupported"] if key != "view" else []), key


def test_a_key_that_matches_many_is_answered_page_by_page(house: House):
    for number in range(7):
        house.take(*[event("interaction", f"i{place}") for place in range(5)], batch=f"b{number}", app="shop")
    house.take(event("interaction", "foreign", responseReference="other"), app="other")
    for _ in both(house):
        for limit in (1, 4, 5, 34, 35, 36):
            seen: list[int] = []
            after: int | None = -1
            while after is not None:
                page = house.db.read(
                    lambda tx, after=after, limit=limit: timeline(tx, "shop", after=after, limit=limit)
                )
                assert len(page.decisions) <= limit
                seen += [one.number for one in page.decisions]
                after = page.next
            assert len(seen) == 35
            assert seen == sorted(set(seen))


def test_an_id_that_all_batches_of_an_app_have_is_answered_page_by_page(house: House):
    for number in range(7):
        house.take(event("interaction", f"i{number}"), event("interaction", "same", traceKey=f"t{number}"), batch="b")
    for _ in both(house):
        for event_id, count in (("", 14), ("same", 7), ("i3", 1)):
            whole = house.db.read(lambda tx, e=event_id: events_of_batch(tx, "b", e)).decisions
            for limit in (1, 3, count, count + 1):
                seen: list[int] = []
                after: int | None = -1
                while after is not None:
                    page = house.db.read(
                        lambda tx, e=event_id, a=after, n=limit: events_of_batch(tx, "b", e, after=a, limit=n)
                    )
                    assert len(page.decisions) <= limit
                    seen += [one.number for one in page.decisions]
                    after = page.next
                assert seen == [one.number for one in whole], (event_id, limit)


@pytest.mark.parametrize("indexed", [False, True])
def test_the_latest_decisions_of_a_key_are_found_without_reading_the_earlier_ones(house: House, indexed: bool):
    for number in range(30):
        house.take(event("interaction", "same", traceKey=f"t{number}"), batch=f"b{number}")
    if indexed:
        house.index()
    (last,) = house.db.read(lambda tx: find_latest(tx, "same", limit=1)).found
    ruin = statement("ruin", "UPDATE att_decision SET body = :body WHERE item <= :item")
    house.db.run(lambda tx: tx.execute(ruin, {"body": b"ruin", "item": (last.archived.id >> ITEM_BITS) - 15}))
    latest = house.db.read(lambda tx: find_latest(tx, "same", limit=3))
    assert [one.batch_id for one in latest.found] == ["b27", "b28", "b29"]
    assert latest.more
    assert latest.items == (30 if indexed else 7)  # in steps of 1, 2 and 4 items
    with pytest.raises(StoreCorrupt):
        house.db.read(lambda tx: find(tx, "same", limit=3))


def test_decisions_that_a_transaction_has_read_are_not_made_again(house: House):
    for number in range(3):
        house.take(event("interaction", "same", traceKey=f"t{number}"), batch=f"b{number}")

    def read(tx: Tx) -> None:
        known = {one.number: one for one in latest_decisions(tx, "same", limit=1).decisions}
        wider = latest_decisions(tx, "same", limit=3, known=known).decisions
        assert [one.batchId for one in wider] == ["b0", "b1", "b2"]
        assert wider[-1] is known[wider[-1].number]
        assert wider == latest_decisions(tx, "same", limit=3).decisions

    house.db.read(read)


def test_lists_can_be_of_one_app_and_go_on_where_a_page_ended(house: House):
    for number in range(4):
        house.take(event("impression", "i", renderAttemptId=f"r{number}"), batch=f"b{number}", app=f"app{number % 2}")
    for _ in both(house):
        first, following = house.db.read(lambda tx: listing(tx, "billable", only=Only(app="app1"), limit=1))
        assert following is not None
        second, end = house.db.read(
            lambda tx, after=following: listing(tx, "billable", only=Only(app="app1"), after=after, limit=1)
        )
        assert [fact["renderAttemptId"] for fact in first + second] == ["r1", "r3"]
        assert end is None
        keyed, _ = house.db.read(lambda tx: listing(tx, "records", key="ref", only=Only(app="app0")))
        assert len(keyed) == 6


def test_a_reason_code_and_an_app_narrow_what_a_key_leads_to(house: House):
    house.take(event("impression", "i"), event("impression", "j"), event("view", "v"))
    house.take(event("impression", "i"), app="other", batch="b2")
    for _ in both(house):
        assert house.codes("ref|ra", only=Only(code="f_billing_conflict_duplicate_impression")) == [
            "f_billing_conflict_duplicate_impression"
        ]
        assert house.codes("ref|ra", only=Only(app="other")) == ["f_closure_foreign_app"]
        assert house.codes("i", only=Only(app="app")) == ["f_accepted"]
        assert house.codes("i", only=Only(app="app", code="f_closure_foreign_app")) == []


def test_any_rejection_is_found_by_batch_event_and_code(house: House):
    house.take(event("click", "c", clickTarget="one", idempotencyKey="same"), batch="b1")
    house.take(event("click", "c", clickTarget="two", idempotencyKey="same"), event("view", "v"), batch="b2")
    for _ in both(house):
        assert sorted(house.of_batch("b2")) == ["f_dedup_payload_conflict", "f_event_type_unsupported"]
        assert house.of_batch("b2", "c", code="f_dedup_payload_conflict") == ["f_dedup_payload_conflict"]
        assert house.of_batch("b2", "v", code="f_event_type_unsupported") == ["f_event_type_unsupported"]
        assert house.of_batch("b2", "v", app="other") == []
        assert house.of_batch("b1", "v") == []


def test_a_value_that_became_unknown_is_found_by_batch_event_and_code(house: House):
    house.take(event("interaction", "i", interactionType="odd"), event("interaction", "j"), batch="b1")
    for _ in both(house):
        assert house.of_batch("b1", "i", code="f_accepted_unknown_enum") == ["f_accepted_unknown_enum"]
        found = house.db.read(lambda tx: events_of_batch(tx, "b1", "i")).decisions
        assert [(one.audit["fieldPath"], one.audit["rawValue"]) for one in found] == [("interactionType", "odd")]


def test_a_dedup_conflict_is_found_by_its_dedup_key_and_code(house: House):
    house.take(event("click", "c", clickTarget="one"), batch="b1")
    house.take(event("click", "c", clickTarget="two"), event("click", "c", clickTarget="one"), batch="b1")
    key = "f_dedup_v1:client_event_id:app|b1|c"
    for _ in both(house):
        for code in ("f_dedup_payload_conflict", "f_dedup_committed_duplicate"):
            assert house.codes(key, only=Only(code=code)) == [code]
            assert house.of_batch("b1", "c", code=code) == [code]


def test_timeouts_and_terminal_conflicts_are_found_by_reference_attempt_and_code(house: House):
    house.take(event("ad_filled", "f"), batch="b1")
    house.clock.advance(200 * SECOND)
    house.take(event("impression", "i"), terminal("t", eventAt=at(100)), batch="b2")
    house.take(event("ad_filled", "f", renderAttemptId="other"), batch="b3")
    for _ in both(house):
        for code in ("f_terminal_timeout_autofill", "f_terminal_conflict_failure_after_impression"):
            for key in ("ref", "ra", "ref|ra"):
                assert house.codes(key, only=Only(code=code)) == [code]
        assert sorted(house.codes("ref|ra")) == [
            "f_accepted",
            "f_accepted",
            "f_terminal_conflict_failure_after_impression",
            "f_terminal_timeout_autofill",
        ]


def test_an_event_whose_drop_was_counted_with_that_of_another_batch_is_found_by_its_own_batch(house: House):
    house.take(event("click", "c", clickTarget="one", idempotencyKey="same"), batch="b1")
    for batch in ("b2", "b3", "b4"):
        house.take(event("click", "c", clickTarget="two", idempotencyKey="same"), batch=batch)
    house.take(event("click", "d", clickTarget="one", idempotencyKey="same"), batch="b5")
    house.take(event("click", "d", clickTarget="one", idempotencyKey="same"), batch="b6")
    for _ in both(house):
        for batch in ("b2", "b3", "b4"):
            assert house.of_batch(batch, "c", code="f_dedup_payload_conflict") == ["f_dedup_payload_conflict"]
        assert house.of_batch("b6", "d", code="f_dedup_committed_duplicate") == ["f_dedup_committed_duplicate"]
        found = house.db.read(lambda tx: events_of_batch(tx, "b4", "c", Only(code="f_dedup_payload_conflict")))
        assert [one.count for one in found.decisions] == [3]


def test_a_later_cycle_is_found_by_the_dedup_key_of_all(house: House):
    event_id = "an-id-that-is-longer-than-all-that-stands-before-it"
    for days in (0, 15, 30):
        house.clock.set(house.clock.now() if not days else house.clock.now() + 15 * DAY)
        house.take(event("postback", event_id, eventAt=at(days * 86_400), renderAttemptId=f"r{days}"))
    key = f"f_dedup_v1:client_event_id:app|b1|{event_id}"
    for _ in both(house):
        assert house.codes(key) == ["f_accepted"] * 3
        assert house.codes(f"attr_postback|{key}#3") == ["f_accepted"]
        assert house.codes(f"{key}#3") == ["f_accepted"]


def test_every_cycle_of_a_key_is_found_by_it_however_many_there_were(house: House):
    for number in range(12):
        when = number * 15 * 86_400
        house.clock.set(T0 + when * SECOND)
        house.take(event("postback", "p", eventAt=at(when), renderAttemptId=f"r{number}"))
        house.take(event("postback", "p", eventAt=at(when), renderAttemptId=f"r{number}"))
    for _ in both(house):
        assert (
            house.codes("f_dedup_v1:client_event_id:app|b1|p")
            == [
                "f_accepted",
                "f_dedup_committed_duplicate",
            ]
            * 12
        )


def test_a_decision_that_was_taken_later_belongs_to_the_batch_of_its_source_event(house: House):
    """F25: the upgrade of a click was shown under the impression's batch, a lapse under whichever batch came next."""
    house.take(event("click"), batch="clicked")
    house.take(event("impression"), batch="seen")
    house.take(event("ad_filled", renderAttemptId="rb"), event("click", "c2", renderAttemptId="rb"), batch="alone")
    house.clock.set(house.clock.now() + 200 * SECOND)
    house.take(event("postback", renderAttemptId="rb", eventAt=at(200)), batch="later")
    lapsed = ["f_terminal_timeout_autofill", "f_billing_click_without_impression"]
    for _ in both(house):
        assert house.of_batch("clicked") == ["f_accepted", "f_accepted"]
        assert house.of_batch("clicked", "click") == ["f_accepted", "f_accepted"]
        assert house.of_batch("seen") == ["f_accepted"]
        assert house.of_batch("alone") == ["f_accepted", "f_accepted", *lapsed]
        assert house.of_batch("later") == ["f_postback_terminal_conflict"]
        assert house.codes("alone") == ["f_accepted", "f_accepted", *lapsed]
        found = house.db.read(lambda tx: timeline(tx, "ref|rb")).decisions
        assert [one.batchId for one in found] == ["alone"] * 4 + ["later"]


def test_those_that_lost_a_billing_conflict_are_found_by_the_billing_key_and_the_reason(house: House):
    house.take(event("impression", "i1"), event("impression", "i2"), event("click", "c1"), event("click", "c2"))
    house.take(event("impression", "x", renderAttemptId="other"), batch="b2")
    key, code = "ref|ra|billable_impression", "f_billing_conflict_duplicate_click"
    for _ in both(house):
        assert house.codes(key) == ["f_accepted", "f_billing_conflict_duplicate_impression"]
        found = house.db.read(lambda tx: timeline(tx, key, Only(code="f_billing_conflict_duplicate_impression")))
        assert [one.records[0]["sourceKeys"]["eventId"] for one in found.decisions] == ["i2"]
        found = house.db.read(lambda tx: timeline(tx, "ref|ra|billable_click", Only(code=code)))
        assert [one.records[0]["sourceKeys"]["eventId"] for one in found.decisions] == ["c2"]


def test_a_second_rejected_event_in_the_same_place_has_a_row_of_its_own(house: House):
    """F25: only an identical event raises a count."""
    house.take(event("view", "first"))
    house.take(event("view", "second"))
    house.take(event("view", "second"))
    found = house.db.read(lambda tx: rejects(tx, batch_id="b1", limit=10)).rejects
    assert sorted((one.digest, one.count) for one in found) == sorted(
        [(digest(event("view", "first")), 1), (digest(event("view", "second")), 2)]
    )


def test_a_rejected_event_tells_its_id_its_field_and_what_was_expected(house: House):
    house.take(event("click", "owner"), batch="b1")
    house.take(
        event("view", "type"),
        event("click", "no\x00t legal", traceKey=ABSENT),
        event("click", 7, traceKey=""),
        "no object",
        batch="b2",
    )
    house.take(event("click", "foreign"), batch="b3", app="other")
    house.take(event("click", "owner", clickTarget="another"), batch="b1")
    found = house.db.read(lambda tx: rejects(tx, limit=10)).rejects
    assert {(one.batchId, one.eventIndex, one.eventId, one.fieldPath) for one in found} == {
        ("b2", 0, "type", "eventType"),
        ("b2", 1, "no\ufffdt legal", "traceKey"),
        ("b2", 2, None, "traceKey"),
        ("b2", 3, None, "$"),
        ("b3", 0, "foreign", "responseReference"),
        ("b1", 0, "owner", "eventId"),
    }
    assert {one.expected for one in found if one.fieldPath == "traceKey"} == {"text of 1 to 1,024 characters"}
    told = house.db.read(lambda tx: events_of_batch(tx, "b2")).decisions
    assert [(one.eventId, one.fieldPath) for view in told for one in view.rejects] == [
        ("type", "eventType"),
        ("no\ufffdt legal", "traceKey"),
        (None, "traceKey"),
        (None, "$"),
    ]


def test_a_rejected_event_tells_all_required_fields_that_are_missing(house: House):
    house.take(event("click", "two", traceKey="", clickTarget=ABSENT), event("click", "one", traceKey=""), batch="b1")
    found = house.db.read(lambda tx: rejects(tx, limit=10)).rejects
    assert {(one.eventId, one.fieldPath, one.alsoWrong) for one in found} == {
        ("two", "traceKey", "clickTarget"),
        ("one", "traceKey", None),
    }
    told = house.db.read(lambda tx: events_of_batch(tx, "b1")).decisions
    assert {(one.eventId, one.alsoWrong) for view in told for one in view.rejects} == {
        ("two", "clickTarget"),
        ("one", None),
    }


def test_a_rejected_event_is_corrected_under_its_batch_and_its_id_and_stays_listed(house: House):
    wrong, corrected = event("ad_filled", "c", traceKey=""), event("ad_filled", "c")
    codes = [house.take(one, batch="b1")[0].split()[0] for one in (wrong, corrected, corrected)]
    assert codes == ["f_event_missing_required", "f_accepted", "f_dedup_committed_duplicate"]
    assert [one.eventId for one in house.db.read(lambda tx: rejects(tx, limit=10)).rejects] == ["c"]


def test_an_idempotency_key_in_conflict_leaves_a_row_in_each_batch(house: House):
    house.take(event("click", "c", idempotencyKey="k"), batch="b1")
    for batch in ("b2", "b3"):
        house.take(event("click", "c", clickTarget="two", idempotencyKey="k"), batch=batch)
    found = house.db.read(lambda tx: rejects(tx, limit=10)).rejects
    assert sorted((one.batchId, one.ackReasonCode, one.count) for one in found) == [
        ("b2", "f_dedup_payload_conflict", 1),
        ("b3", "f_dedup_payload_conflict", 1),
    ]


def test_an_item_that_was_committed_after_the_index_had_passed_it_is_found_at_once(house: House):
    house.take(event("ad_filled", "one"), batch="one")
    house.take(event("ad_filled", "two", traceKey="late"), batch="two")
    house.take(event("ad_filled", "three"), batch="three")
    hide = "UPDATE att_decision SET item = {} WHERE item = {}"
    house.db.run(lambda tx: tx.script(hide.format(-2, 2)))
    house.index()
    house.db.run(lambda tx: tx.script(hide.format(2, -2)))
    assert house.db.read(lambda tx: tx.fetch(statement("gaps", "SELECT item FROM att_gap"))) == [(2,)]
    assert house.codes("late") == ["f_accepted"]


def test_the_aggregate_of_a_closure_does_not_count_what_only_shares_its_text(house: House):
    house.take(terminal("t"))
    house.take(event("impression", "i", traceKey="ref|ra", responseReference="other"), batch="b2")
    for _ in both(house):
        view = house.db.read(lambda tx: closure_by_key(tx, "ref|ra"))
        assert view is not None
        assert view.aggregate == "consistent_non_billable"


def test_a_closure_tells_what_became_of_its_click(house: House):
    told: list[str | None] = []

    def look() -> None:
        view = house.db.read(lambda tx: closure_by_key(tx, "ref|ra"))
        told.append(view.click if view else None)

    house.take(event("ad_filled", "f"), batch="b1")
    look()
    house.take(event("click", "c"), batch="b2")
    look()
    house.clock.advance(200 * SECOND)
    house.take(event("impression", "i"), batch="b3")
    look()
    house.take(event("click", "d"), batch="b4")
    look()
    assert told == [None, "pending", "lapsed", "billable"]


def test_an_index_that_waits_for_its_run_changes_no_answer(database: Database):
    house = House(database)
    house.indexer = Indexer(database, house.clock, run=3, patience=DAY)
    for number in range(8):
        house.take(event("interaction", f"e{number}"), batch=f"b{number}")
        house.index()
        assert len(house.codes("ra")) == number + 1
    assert house.db.read(lambda tx: mark(tx, INDEXED)) == 6


def test_rejects_of_one_instant_are_paged_through_one_by_one(house: House):
    house.take(*[event("view", f"v{n}") for n in range(5)], batch="b1")
    house.clock.advance(1)
    house.take(event("view", "v"), batch="b2")
    seen: list[tuple[str, int]] = []
    following: str | None = at(1)
    while following is not None:
        place = reject_place(following)
        assert place is not None
        page = house.db.read(lambda tx, place=place: rejects(tx, before=place, limit=2))
        seen += [(one.batchId, one.eventIndex) for one in page.rejects]
        following = page.next
    assert seen[0] == ("b2", 0)
    assert sorted(seen[1:]) == [("b1", n) for n in range(5)]
    assert house.db.read(lambda tx: rejects(tx, before=reject_place(at(0)) or (0, b""), limit=9)).rejects == []
    assert [reject_place(text) for text in ("soon", f"{at(0)}~xyz", "")] == [None] * 3


def test_a_batch_that_was_refused_as_a_whole_stands_beside_what_was_decided_on_another_of_its_id(house: House):
    with pytest.raises(AttributeError):  # there is no item to name
        house.take(event("click", "c"), schemaVersion="9")
    house.clock.advance(1)
    house.take(event("click", "c"))
    for _ in both(house):
        for found in (
            house.db.read(lambda tx: timeline(tx, "b1")),
            house.db.read(lambda tx: events_of_batch(tx, "b1", "c")),
        ):
            assert [one.code for one in found.refused] == ["f_batch_schema_unsupported"]
            assert [one.audit["decisionReasonCode"] for one in found.decisions] == ["f_accepted"]
        assert house.db.read(lambda tx: timeline(tx, "c")).refused == []


def test_every_rejected_event_leaves_a_row_and_only_one_that_lacks_its_reference_keeps_its_payload(house: House):
    house.take(event("click", "owned"), batch="b1")
    house.take(
        event("click", "foreign"),
        event("view", "type"),
        event("impression", "lacking", responseReference=None, renderAttemptId="r9"),
        event("impression", "not legal", responseReference=None, renderAttemptId="r9"),
        event("error", "error", responseReference=ABSENT),
        event("opportunity_created", "place", placementKey=ABSENT, responseReference=ABSENT),
        "no object",
        batch="b2",
        app="other",
    )
    house.take(event("click", "owned", clickTarget="another"), batch="b1")
    page = house.db.read(lambda tx: rejects(tx, limit=100)).rejects
    assert {(one.batchId, one.eventIndex, one.ackReasonCode, one.raw is not None) for one in page} == {
        ("b2", 0, "f_closure_foreign_app", False),
        ("b2", 1, "f_event_type_unsupported", False),
        ("b2", 2, "f_event_missing_required", True),
        ("b2", 3, "f_event_id_invalid_no_fallback", True),
        ("b2", 4, "f_event_missing_required", True),
        ("b2", 5, "f_event_missing_required", False),
        ("b2", 6, "f_event_missing_required", False),
        ("b1", 0, "f_dedup_payload_conflict", False),
    }
    kept = house.db.read(lambda tx: rejects(tx, quarantined=True, limit=100)).rejects
    assert {json.loads(bytes(one.raw))["eventId"] for one in kept if one.raw} == {"lacking", "not legal", "error"}
    assert all(len(one.digest) == 64 and one.serverEventKey.startswith("fe_") for one in page)


def test_an_event_that_lacks_its_reference_is_kept_raw_though_another_was_rejected_in_its_place(house: House):
    house.take(event("click", "first", traceKey=ABSENT))
    house.clock.advance(SECOND)
    house.take(event("click", "second", responseReference=ABSENT))
    for _ in range(2):
        house.clock.advance(SECOND)
        house.take(event("click", "third", responseReference=ABSENT))
    page = house.db.read(lambda tx: rejects(tx, limit=100)).rejects
    assert [(one.count, one.raw and json.loads(bytes(one.raw))["eventId"]) for one in page] == [
        (2, "third"),
        (1, "second"),
        (1, None),
    ]
    assert {(one.batchId, one.eventIndex, one.ackReasonCode) for one in page} == {("b1", 0, "f_event_missing_required")}
    assert len({one.digest for one in page}) == 3


@pytest.mark.parametrize("group", [1, 4])
def test_the_quarantine_does_not_depend_on_how_batches_are_grouped(house: House, group: int):
    defects = [{"traceKey": ABSENT}, *({"responseReference": value} for value in (ABSENT, None, ""))]
    lines = [sent(seconds, event("click", "e", **defect)) for seconds, defect in enumerate(defects)]
    replay(lines, house.db, group=[group])
    page = house.db.read(lambda tx: rejects(tx, limit=100)).rejects
    assert [(one.at, one.raw is not None) for one in page] == [
        (at(3), True),
        (at(2), True),
        (at(1), True),
        (at(0), False),
    ]


@pytest.mark.parametrize("indexed", [False, True])
def test_what_was_decided_on_a_batch_is_found_however_often_it_was_sent_again(house: House, indexed: bool):
    for _ in range(6):
        house.take(event("interaction", "once"), batch="again")
    if indexed:
        house.index()
    whole = house.db.read(lambda tx: find(tx, "again")).found
    assert len(whole) == 2  # taken once; the repeats are one decision with a count
    latest = house.db.read(lambda tx: find_latest(tx, "again", limit=2))
    assert ([one.archived.id for one in latest.found], latest.more) == ([one.archived.id for one in whole], False)
    (last,) = house.db.read(lambda tx: find_latest(tx, "again", limit=1)).found
    assert last.archived.id == whole[-1].archived.id
