"""Searching by key: rows and decisions that cannot hold a key are skipped, and none that does."""

from collections.abc import Iterator

import pytest

from patra.attribution.contract.keys import in_cycle
from patra.attribution.decision.decisions import Decision, attribution_key_of, audit_key_of, billing_key_of
from patra.attribution.replay import replay
from patra.attribution.storage import key_search
from patra.attribution.storage.key_index import LATER_IN_BATCH, Indexer, located_by
from patra.attribution.storage.key_search import LOST_BILLING, find, find_latest
from patra.attribution.storage.read import every_decision
from patra.kernel.clock import SystemClock
from patra.kernel.db import Database, Tx
from tests.unit.attribution.said import ABSENT, at, event, fresh, sent, terminal, tick

LATER = 15 * 86_400
ODD = 'a"b\\c|d/é\u2028横#2'
SOURCES = {"client_idempotency", "client_event_id", "computed"}
LONG = "an-id-that-is-longer-than-all-that-stands-before-it"
LINES = [
    sent(0, event("ad_filled"), event("click"), event("view"), event("postback", LONG), batch="b1"),
    sent(1, event("impression"), event("impression", "again"), batch="b2"),
    sent(2, event("impression", idempotencyKey="k"), event("impression", responseReference=ABSENT), batch="b3"),
    sent(3, event("impression"), event("impression", creativeId="other"), batch="b2"),
    sent(4, event("click", "c", renderAttemptId="x"), event("ad_filled", "f", renderAttemptId="y"), batch="lone"),
    sent(5, event("click", "c", renderAttemptId="y"), batch="foreign", app="other"),
    sent(6, event("click", ODD, traceKey=ODD, responseReference=ODD, renderAttemptId=ODD), batch="odd"),
    sent(7, event("impression", "i", responseReference=ODD, renderAttemptId=ODD), batch="odd2"),
    sent(8, terminal(), event("error", "e", renderAttemptId="z"), "no object", batch="b4"),
    tick(400),
    *(
        sent(cycle * LATER, event("postback", LONG, eventAt=at(cycle * LATER), renderAttemptId=f"r{cycle}"))
        for cycle in range(1, 11)
    ),
]


@pytest.fixture(scope="module")
def store() -> Iterator[Database]:
    db = fresh()
    replay(LINES, db)
    yield db
    db.close()


def keys_of(decision: Decision) -> set[str]:
    """Every key that the specification names, as far as the decision has it."""
    subject = decision.subject
    found = {audit_key_of(decision), billing_key_of(decision), attribution_key_of(decision), decision.batch}
    if subject.dedup is not None:
        found |= {subject.dedup, in_cycle(subject.dedup, subject.cycle)}
    if kind := LOST_BILLING.get(decision.reason):
        found.add(f"{subject.closure}|{kind}")
    return {key for key in found | located_by(decision) if key is not None and not key.startswith(LATER_IN_BATCH)}


def test_every_key_is_found_as_if_no_row_were_skipped(store: Database, monkeypatch: pytest.MonkeyPatch):
    asked = {"b1", "b2", "b3", "b4", "lone", "foreign", "odd", "odd2", "nothing"}
    for one in every_decision(store):
        asked |= keys_of(one.decision)
    assert {ODD, f"{ODD}|{ODD}", f"{ODD}|{ODD}|billable_impression"} < asked
    assert {key.partition(":")[0] for key in asked if "#11" in key} == {"f_dedup_v1", "attr_postback|f_dedup_v1"}
    assert {key.split(":")[1] for key in asked if key.startswith("f_dedup_v1:")} == SOURCES

    def answers(tx: Tx) -> dict[str, list[int]]:
        return {key: [one.archived.id for one in find(tx, key).found] for key in sorted(asked)}

    skipping = store.read(answers)
    with monkeypatch.context() as patched:
        patched.setattr(key_search, "stored_text", lambda _key: None)
        assert skipping == store.read(answers)
    assert [key for key, found in skipping.items() if not found] == ["nothing"]
    indexer = Indexer(store, SystemClock(), patience=0, run=3)
    while indexer.run_once().items:
        pass
    assert skipping == store.read(answers)
    for key, whole in skipping.items():
        for limit in (1, 2, len(whole) or 1, 100):
            latest = store.read(lambda tx, key=key, limit=limit: find_latest(tx, key, limit=limit))
            assert [one.archived.id for one in latest.found] == whole[-limit:], (key, limit)
            assert latest.more == (len(whole) > limit), (key, limit)
