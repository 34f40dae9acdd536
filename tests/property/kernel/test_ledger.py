"""For any sequence of claims, holds, settlements, releases and purges, the ledger says what a dictionary would."""

import itertools

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from patra.kernel import ledger
from patra.kernel.db import Database, migrate
from patra.kernel.ledger import Claim, Entry, Outcome, Verdict

KEYS = [bytes([n]) * 16 for n in range(4)]
HOLDERS = ["w1", "w2"]
_scopes = itertools.count()

instants = st.integers(0, 30)
keys = st.lists(st.sampled_from(KEYS), max_size=4)
holders = st.sampled_from(HOLDERS)
claims = st.lists(
    st.builds(Claim, key=st.sampled_from(KEYS), fingerprint=st.sampled_from([b"x", b"y"]), window=st.integers(0, 8)),
    max_size=6,
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("claim"), claims, instants),
        st.tuples(st.just("hold"), claims, instants, st.integers(0, 8), holders),
        st.tuples(st.just("settle"), keys, holders),
        st.tuples(st.just("release"), keys, holders),
        st.tuples(st.just("purge"), instants, st.integers(0, 3)),
    ),
    max_size=25,
)


class Slot(msgspec.Struct):
    fingerprint: bytes
    cycle: int
    first_at: int
    expires_at: int
    held_until: float | None  # -inf once released
    holder: str | None


class Model:
    """The ledger as a dictionary, without a thought for speed or for anyone else."""

    def __init__(self) -> None:
        self.slots: dict[bytes, Slot] = {}

    def claim(self, claims: list[Claim], now: int, hold: int | None = None, holder: str | None = None) -> list[Verdict]:
        winners: set[bytes] = set()
        verdicts = []
        for one in claims:
            slot = self.slots.get(one.key)
            if one.key in winners:
                assert slot is not None
                outcome = Outcome.DUPLICATE_IN_FLIGHT if slot.fingerprint == one.fingerprint else Outcome.CONFLICT
            elif slot is None or (cycle := self.next_cycle(slot, now)):
                cycle = 1 if slot is None else cycle
                held_until = None if hold is None else now + hold
                slot = self.slots[one.key] = Slot(one.fingerprint, cycle, now, now + one.window, held_until, holder)
                winners.add(one.key)
                outcome = Outcome.FIRST if cycle == 1 else Outcome.NEW_CYCLE
            elif slot.fingerprint != one.fingerprint:
                outcome = Outcome.CONFLICT
            else:
                outcome = Outcome.DUPLICATE_COMMITTED if slot.held_until is None else Outcome.DUPLICATE_IN_FLIGHT
            verdicts.append(Verdict(outcome=outcome, cycle=slot.cycle, first_at=slot.first_at))
        return verdicts

    @staticmethod
    def next_cycle(slot: Slot, now: int) -> int:
        """The cycle that a claim would begin, 0 if the slot is taken."""
        if slot.held_until is not None and slot.held_until < now:
            return slot.cycle
        return slot.cycle + 1 if slot.expires_at < now else 0

    def end(self, keys: list[bytes], holder: str, held_until: float | None) -> set[bytes]:
        held = {key for key in keys if key in self.slots and self.slots[key].holder == holder}
        for key in held:
            self.slots[key].held_until = held_until
            self.slots[key].holder = None
        return held

    def purge(self, before: int, limit: int) -> int:
        over = [
            key
            for key, slot in self.slots.items()
            if slot.expires_at < before and (slot.held_until is None or slot.held_until < before)
        ]
        return min(len(over), limit)


def stored(entries: dict[bytes, Entry]) -> dict[bytes, Slot]:
    return {
        key: Slot(
            e.fingerprint,
            e.cycle,
            e.first_at,
            e.expires_at,
            float("-inf") if e.held_until == ledger.LONG_AGO else e.held_until,
            e.holder,
        )
        for key, e in entries.items()
    }


@given(steps)
def test_the_ledger_is_a_dictionary(database: Database, steps: list[tuple]):
    migrate(database, ["patra.kernel"])
    scope, model = f"s{next(_scopes)}", Model()
    for step in steps:
        match step:
            case ("claim", claims, now):
                answer = database.run(lambda tx: ledger.claim(tx, scope, claims, now))
                assert answer == model.claim(claims, now)
            case ("hold", claims, now, hold, holder):
                answer = database.run(lambda tx: ledger.claim(tx, scope, claims, now, hold=hold, holder=holder))
                assert answer == model.claim(claims, now, hold, holder)
            case ("settle", keys, holder):
                answer = database.run(lambda tx: ledger.settle(tx, scope, keys, holder=holder))
                assert answer == model.end(keys, holder, None)
            case ("release", keys, holder):
                answer = database.run(lambda tx: ledger.release(tx, scope, keys, holder=holder))
                assert answer == model.end(keys, holder, float("-inf"))
            case ("purge", before, limit):
                answer = database.run(lambda tx: ledger.purge(tx, scope, before=before, limit=limit))
                assert answer == model.purge(before, limit)
                left = database.read(lambda tx: ledger.entries(tx, scope, KEYS))
                assert len(left) == len(model.slots) - answer
                model.slots = {key: slot for key, slot in model.slots.items() if key in left}
        assert stored(database.read(lambda tx: ledger.entries(tx, scope, KEYS))) == model.slots


@given(claims, claims, instants, instants)
def test_judge_is_the_rule_that_claim_applies(database: Database, earlier, later, then, now):
    migrate(database, ["patra.kernel"])
    scope = f"j{next(_scopes)}"
    later = list({one.key: one for one in later}.values())
    database.run(lambda tx: ledger.claim(tx, scope, earlier, then))
    seen = database.read(lambda tx: ledger.entries(tx, scope, KEYS))
    judged = [ledger.judge(seen.get(one.key), one, now) for one in later]
    assert judged == database.run(lambda tx: ledger.claim(tx, scope, later, now))
