"""Several gates on one database share one rate (ruling I12)."""

import random
from typing import Any

import pytest

from patra.ingest.ratelimit.database import DatabaseGate
from patra.ingest.ratelimit.token_bucket import Allow, Ask, Policy, Sign, Signal
from patra.kernel.clock import SECOND
from patra.kernel.db import Database, migrate
from patra.kernel.testing import ManualClock
from tests.contract.ingest.running.world import NOW

POLICY = Policy(rate=5000, burst=5)


def allowed(gates: list[DatabaseGate], policy: Policy, turns: int, name: str) -> int:
    """How many of so many asks per gate are allowed at this instant."""
    count = 0
    for turn in range(turns):
        for number, gate in enumerate(gates):
            ask = Ask(task=f"{name}-{number}-{turn}", permit=f"{name}-{number}-{turn}", cost=1, deadline=0, jitter=0)
            count += isinstance(gate.ask("shared", policy, ask).decision, Allow)
    return count


def test_three_processes_send_no_more_than_one_would(database: Database) -> None:
    migrate(database, ["patra.kernel", "patra.ingest"])
    clock = ManualClock(NOW)
    alone = allowed([DatabaseGate(database, clock=clock)], POLICY, 60, "warm")
    gates = [DatabaseGate(database, clock=clock) for _ in range(3)]
    assert alone > 0
    assert allowed(gates, POLICY, 20, "first") == 0  # the bucket is empty for all of them
    clock.advance(SECOND)
    assert 0 < allowed(gates, POLICY, 20, "second") <= POLICY.rate // 1000


FAST = Policy(rate=100_000, burst=100, quantum=10)


def send(gate: DatabaseGate, clock: ManualClock, name: str) -> bool:
    return isinstance(gate.ask("shared", FAST, Ask(task=name, permit=name, deadline=0)).decision, Allow)


def test_permits_come_in_lots_and_the_provider_never_sees_more_than_its_limit_in_any_second(
    database: Database,
) -> None:
    """Processes take lots, die with unused permits and are restarted; every sliding second keeps to the limit."""
    migrate(database, ["patra.kernel", "patra.ingest"])
    clock, chance = ManualClock(NOW), random.Random(4)
    gates = [DatabaseGate(database, clock=clock) for _ in range(3)]
    sent: list[int] = []
    for turn in range(250):
        clock.advance(chance.randrange(1, 20_000))
        number = chance.randrange(3)
        if chance.random() < 0.05:
            gates[number] = DatabaseGate(database, clock=clock)  # killed and restarted
        tries = range(chance.randrange(1, 15))
        sent += [clock.now() for again in tries if send(gates[number], clock, f"t{turn}-{again}")]
    limit = FAST.rate // 1000 + FAST.burst
    worst = max(sum(1 for one in sent if start <= one < start + SECOND) for start in sent)
    assert len(sent) > 250
    assert worst <= limit


def test_most_requests_cost_no_transaction_and_good_answers_none(database: Database) -> None:
    migrate(database, ["patra.kernel", "patra.ingest"])
    clock = ManualClock(NOW)
    gate = DatabaseGate(database, clock=clock)
    run, runs = database.run, list[int]()

    def counted(work: Any) -> Any:
        runs.append(1)
        return run(work)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(database, "run", counted)
        for number in range(50):
            assert send(gate, clock, f"t{number}")
            gate.tell("shared", FAST, Signal(sign=Sign.OK, permit=f"t{number}"))
            clock.advance(SECOND // 100)
        assert len(runs) <= 12
        gate.tell("shared", FAST, Signal(sign=Sign.HTTP_429, permit="t49", allowed_at=clock.now()))
    assert gate.look("shared", FAST).rate < FAST.rate


def test_a_lot_is_given_back_when_its_process_ends(database: Database) -> None:
    migrate(database, ["patra.kernel", "patra.ingest"])
    clock = ManualClock(NOW)
    gate = DatabaseGate(database, clock=clock)
    assert send(gate, clock, "one")
    full = gate.look("shared", FAST).tokens
    gate.close()
    assert DatabaseGate(database, clock=clock).look("shared", FAST).tokens > full
