"""Verification of what prices and states facts: placements, statements, and which facts are noted as stated."""

import pytest

from patra.attribution.storage.placement_index import Carrier
from patra.attribution.storage.sql import Q
from patra.attribution.verify import verify
from patra.kernel.db import Database
from patra.kernel.db.queries import statement
from patra.kernel.testing import ManualClock
from tests.contract.attribution.test_periods import (
    AFTER,
    FEBRUARY,
    LATE,
    close,
    feed,
    refusal,
    shown,
    store,
)
from tests.unit.attribution.said import at, event, sent

__all__ = ["store"]


def changed(db: Database, text: str) -> None:
    db.run(lambda tx: tx.execute(statement("change", text)))


def found(db: Database) -> list[tuple[str, str]]:
    return [(one.check, one.key) for one in verify(db, ManualClock(AFTER)).findings]


def carry(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("patra.attribution.storage.placement_index.MIN_ITEMS_TO_CARRY", 0)
    carrier = Carrier(db, ManualClock(AFTER))
    while db.read(lambda tx: tx.fetch(Q["oldest_placement"]))[0][0] is not None:
        carrier.run_once()


FIRST_KEY = "(SELECT min(key) FROM {table})"


@pytest.mark.parametrize("table", ["att_placement", "att_opportunity"])
def test_a_placement_that_would_change_a_price_is_named(store: Database, table: str, monkeypatch: pytest.MonkeyPatch):
    other = sent(9, event("opportunity_created", "again", placementKey="p9", opportunityKey="o1", eventAt=at(9)))
    feed(store, other)  # the first placement of an opportunity stays
    if table == "att_opportunity":
        carry(store, monkeypatch)
    assert found(store) == []
    changed(store, f"UPDATE {table} SET placement = key WHERE key = {FIRST_KEY.format(table=table)}")
    ((check, key),) = set(found(store))
    assert check == "placement_and_decision_differ"
    assert key in {"app|o1", "app|o2", "other|o3"}
    assert refusal(store) == "period_unverified"
    changed(store, f"DELETE FROM {table}")
    assert {check for check, _ in found(store)} == {"placement_missing"}


def test_a_fact_of_another_opportunity_is_named(store: Database):
    changed(store, "UPDATE att_billable SET opportunity = closure WHERE billable_type = 'billable_click'")
    assert {check for check, _ in found(store)} == {"fact_and_decision_differ"}


def test_a_fact_that_is_no_longer_noted_as_stated_is_not_billed_again(store: Database):
    close(store)
    assert found(store) == []
    changed(
        store, "DELETE FROM att_statement_fact WHERE decision_id = (SELECT min(decision_id) FROM att_statement_fact)"
    )
    assert found(store) == [("stated_facts_differ", "app: 3 instead of 4")]
    assert refusal(store, FEBRUARY, FEBRUARY.end) == "period_unverified"


def test_a_statement_that_changed_is_named(store: Database):
    close(store)
    feed(store, shown(4, 5, LATE))
    close(store, FEBRUARY, FEBRUARY.end)
    assert found(store) == []
    changed(store, "UPDATE att_statement SET hash = 'x' WHERE number = 2")
    assert found(store) == [("statement_differs", "app, statement 2")]
    changed(store, "UPDATE att_statement SET app_id = 'other' WHERE number = 2")
    assert {check for check, _ in found(store)} == {"statement_differs", "stated_facts_differ"}


def test_facts_of_a_statement_that_changed_are_named(store: Database):
    close(store)
    feed(store, shown(4, 5, LATE))
    close(store, FEBRUARY, FEBRUARY.end)
    changed(store, "UPDATE att_statement_page SET body = (SELECT body FROM att_statement_page WHERE number = 2)")
    assert found(store) == [("statement_facts_differ", "app/2026-01")]
    changed(store, "UPDATE att_statement_page SET body = (SELECT min(key) FROM att_placement)")
    assert found(store) == [("statement_facts_differ", "app/2026-01"), ("statement_facts_differ", "app/2026-02")]


def test_a_statement_that_is_missing_breaks_the_chain(store: Database):
    close(store)
    close(store, FEBRUARY, FEBRUARY.end)
    changed(store, "DELETE FROM att_statement WHERE number = 1")
    checks = [check for check, _ in found(store)]
    assert checks == ["statement_does_not_follow", "stated_facts_differ"]
