"""Requests are reserved under the quota of the leg that sends them, and given back there (4.10.5, 4.10.9)."""

from typing import Any

from patra.ingest.packs.spec import Spec
from patra.ingest.planning import operations
from patra.ingest.planning.limits.leg_quotas import LegQuotas, permits_by_key
from patra.ingest.vocabulary.codes import Operation
from patra.kernel.clock import DAY
from tests.unit.ingest.packs.effects.observe import TWO_PHASE, built, compiled
from tests.unit.ingest.packs.effects.stand_in import NOW, Site, site

LIST, DETAILS = "s|search", "s|details"
LIMITED = {
    "rateLimit": {"quotaDaily": 100, "quotaReserve": 0.0},
    "endpoints.details.rateLimit": {"quotaDaily": 10, "quotaReserve": 0.0, "cost": 3},
}
NEXT_DAY = NOW // DAY * DAY + DAY


def tree(**given: Any) -> dict[str, Any]:
    named = {key if not key.startswith("endpoints.") else f"/{key}": value for key, value in LIMITED.items()}
    return built(TWO_PHASE | named | given)


def spec(**given: Any) -> Spec:
    return compiled(tree(**given))


def reserved(s: Site) -> dict[str, int]:
    return dict(s.rows("SELECT rate_key, sum(reserved) FROM ing_quota GROUP BY 1"))


def test_each_leg_has_its_key_and_its_cost() -> None:
    assert permits_by_key(spec(), 5, 2) == {LIST: 3, DETAILS: 6}
    assert permits_by_key(spec(), 2, 2) == {DETAILS: 6}
    shared = tree()
    shared["defaults"]["rateLimit"]["scope"] = "SOURCE"
    assert permits_by_key(compiled(shared), 5, 2) == {"s": 9}


def test_a_slice_is_due_when_both_legs_have_room() -> None:
    quotas = LegQuotas(spec(), {DETAILS: {("DAY", NOW // DAY * DAY): 4}}, NOW)
    assert quotas.place(3, 2).due == NOW
    assert quotas.place(1, 0).due == NOW
    assert quotas.place(3, 1).due == NEXT_DAY, "the details of this day are used up"
    assert quotas.place(1, 0).due == NEXT_DAY, "never before the one that came earlier"
    assert quotas.added_permits[LIST] == {("DAY", NEXT_DAY - DAY): 2, ("DAY", NEXT_DAY): 3}
    assert quotas.added_permits[DETAILS] == {("DAY", NEXT_DAY - DAY): 6, ("DAY", NEXT_DAY): 3}


def test_a_refresh_takes_from_the_quota_of_the_details_and_a_cancelled_one_gives_it_back() -> None:
    with site() as s:
        s.load(tree())
        made = s.trigger(Operation.UPDATE, ids=("r001", "r002"))
        assert reserved(s) == {DETAILS: 3}
        s.db.run(lambda tx: operations.cancel_plan(tx, made.plan_id or "", why="", now=NOW))
        assert reserved(s) == {DETAILS: 0}


def test_what_a_plan_costs_counts_both_legs() -> None:
    with site() as s:
        s.load(tree())
        s.trigger()
        s.drain()  # thirty records, so that there is a history
        s.clock.advance(60)
        before = reserved(s)
        made = s.trigger(Operation.BACKFILL)
        assert made.slices == 1
        after = reserved(s)
        assert after[LIST] - before[LIST] == 4, "31 records are four pages of ten"
        assert after[DETAILS] - before.get(DETAILS, 0) == 3, "and one group of details, at three permits"
