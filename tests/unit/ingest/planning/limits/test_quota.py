"""Quotas: what is reserved, and when slices are due (ch. 4.10.5, 4.12)."""

from hypothesis import given
from hypothesis import strategies as st

from patra.ingest.packs.compiler import Overrides, compile_spec
from patra.ingest.planning.limits.quota import Period, Reservation, periods, remaining
from patra.ingest.vocabulary.codes import Operation
from patra.kernel.clock import DAY, HOUR, parse_instant
from tests.unit.ingest.sample_packs import changed, loaded, loaded_text

NOON = parse_instant("2026-11-16T12:00:00Z")
MIDNIGHT = parse_instant("2026-11-17T00:00:00Z")
DAILY = Period(code="DAY", length=DAY, capacity=100)
HOURLY = Period(code="HOUR", length=HOUR, capacity=30)


def test_without_a_quota_everything_is_due_now():
    reservation = Reservation((), {}, NOON)
    assert [reservation.place(1000).due for _ in range(3)] == [NOON] * 3
    assert reservation.added == {}


def test_what_does_not_fit_into_a_day_is_due_the_next():
    reservation = Reservation((DAILY,), {("DAY", NOON - 12 * HOUR): 90}, NOON)
    assert reservation.place(10).due == NOON
    placed = reservation.place(10)
    assert (placed.due, placed.moved) == (MIDNIGHT, True)
    assert reservation.place(1).due == MIDNIGHT
    assert reservation.added == {("DAY", NOON - 12 * HOUR): 10, ("DAY", MIDNIGHT): 11}


def test_the_tightest_of_several_quotas_decides():
    reservation = Reservation((DAILY, HOURLY), {}, NOON)
    assert [reservation.place(20).due for _ in range(6)] == [
        NOON,
        NOON + HOUR,
        NOON + 2 * HOUR,
        NOON + 3 * HOUR,
        NOON + 4 * HOUR,
        MIDNIGHT,
    ]


def test_what_needs_more_than_a_period_gets_one_to_itself():
    reservation = Reservation((HOURLY,), {}, NOON)
    assert [reservation.place(50).due for _ in range(2)] == [NOON, NOON + HOUR]


@given(st.lists(st.integers(1, 60), max_size=40), st.integers(0, 100))
def test_no_period_is_overbooked_and_order_is_kept(requests, used):
    taken = {("HOUR", NOON): used}
    reservation = Reservation((HOURLY,), taken, NOON)
    due = [reservation.place(one).due for one in requests]
    assert due == sorted(due)
    for (_, start), added in reservation.added.items():
        before = taken.get(("HOUR", start), 0)
        assert before + added <= 30 or (
            before == 0 and sum(at == start or start <= at < start + HOUR for at in due) == 1
        )


def test_an_operation_has_its_share_and_a_reserve_stays():
    compiled = {op: compile_spec(loaded("twophase"), "search", op).spec for op in Operation}
    capacity = {op: periods(spec, op)[0].capacity for op, spec in compiled.items()}
    assert capacity == {Operation.HARVEST: 90_000, Operation.UPDATE: 72_000, Operation.BACKFILL: 54_000}
    assert (
        remaining(periods(compiled[Operation.HARVEST], Operation.HARVEST), {("DAY", NOON - 12 * HOUR): 89_000}, NOON)
        == 1000
    )
    assert remaining((), {}, NOON) is None


def test_a_credential_that_is_always_there_brings_its_quota():
    pack = loaded_text(
        changed("twophase", (", optional: true", ""), ("burstCapacity: 10}", "burstCapacity: 10, quotaDaily: 500000}"))
    )
    spec = compile_spec(pack, "search", Operation.HARVEST, Overrides()).spec
    assert periods(spec, Operation.HARVEST)[0].capacity == 450_000
