"""Where dedup keys stand, whatever happens between two commits (F9, §3.8.15)."""

import random
from collections.abc import Iterator

import pytest

from patra.attribution.contract.windows import BILLING_WINDOW, DIAGNOSTICS_WINDOW
from patra.attribution.decision.dedup import Ledger
from patra.attribution.storage import dedup_keys
from patra.attribution.storage.dedup_keys import Keys, carry_once
from patra.kernel.clock import DAY, HOUR
from patra.kernel.db import Database, Tx, migrate, open_database
from patra.kernel.db.queries import statement
from patra.kernel.errors import StoreUnavailable
from patra.kernel.ledger import Outcome
from tests.support.faults import FaultyDatabase
from tests.unit.attribution.said import PACKAGES, T0

ROWS = statement("rows", "SELECT count(*) FROM att_recent")
TREE = statement("tree", "SELECT count(*) FROM krn_ledger")
MARK = b"m" * 16


def key(n: int) -> bytes:
    return random.Random(n).randbytes(16)


def claim(keys: Keys, tx: Tx, numbers: list[int], at: int = T0, window: int = BILLING_WINDOW) -> list[str]:
    """What `commit` does with its keys: refresh, load, decide, write."""
    keys.refresh(tx)
    ledger = keys.load(tx, {key(n) for n in numbers})
    said: list[str] = []
    for place, n in enumerate(numbers):
        outcome, cycle = ledger.verdict(key(n), MARK, at, place)
        said.append(f"{outcome} {cycle}")
        if outcome in {Outcome.FIRST, Outcome.NEW_CYCLE}:
            ledger.begin(key(n), MARK, at, window, cycle=cycle, batch=place)
    keys.write(tx, ledger, at)
    return said


FIRST, AGAIN = "first 1", "duplicate_committed 1"


@pytest.fixture
def db(database: Database) -> Iterator[Database]:
    migrate(database, PACKAGES)
    return database


def count(db: Database, what: object) -> int:
    return db.read(lambda tx: tx.fetch(what))[0][0]  # type: ignore[arg-type]


def test_a_key_is_known_to_the_same_process_to_a_new_one_and_after_it_was_carried(db: Database):
    keys = Keys()
    assert db.run(lambda tx: claim(keys, tx, [1, 2])) == [FIRST, FIRST]
    assert db.run(lambda tx: claim(keys, tx, [1, 3])) == [AGAIN, FIRST]
    assert db.run(lambda tx: claim(Keys(), tx, [1, 2, 3])) == [AGAIN] * 3
    while carry_once(db, keys, T0 + HOUR):
        pass
    assert count(db, TREE) == 3
    assert count(db, ROWS) == 0
    assert db.run(lambda tx: claim(keys, tx, [1, 2, 3, 4])) == [AGAIN, AGAIN, AGAIN, FIRST]
    assert db.run(lambda tx: claim(Keys(), tx, [1, 2, 3, 4])) == [AGAIN] * 4


def test_what_another_process_took_is_noticed(db: Database):
    one, other = Keys(), Keys()
    for n in range(0, 20, 2):
        assert db.run(lambda tx, n=n: claim(one, tx, [n])) == [FIRST]
        assert db.run(lambda tx, n=n: claim(other, tx, [n, n + 1])) == [AGAIN, FIRST]
        assert db.run(lambda tx, n=n: claim(one, tx, [n, n + 1])) == [AGAIN, AGAIN]


def test_what_was_undone_is_not_remembered(db: Database):
    keys = Keys()

    def undone(tx: Tx) -> None:
        assert claim(keys, tx, [1, 2]) == [FIRST, FIRST]
        raise StoreUnavailable("gone", "before the commit")

    with pytest.raises(StoreUnavailable):
        db.run(undone)
    assert db.run(lambda tx: claim(keys, tx, [1, 2])) == [FIRST, FIRST]


def test_nothing_is_lost_or_invented_when_carrying_fails_at_any_statement(
    db: Database, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(dedup_keys, "CARRY_BATCH_SIZE", 7)
    if db.dialect != "sqlite":
        pytest.skip("PostgreSQL carries nothing")
    done = 0
    for fail_at in range(1, 400):
        keys = Keys()
        faulty = FaultyDatabase(db, fail_at)
        numbers = [*range(done, done + 20)]
        try:
            assert faulty.run(lambda tx, keys=keys, numbers=numbers: claim(keys, tx, numbers)) == [FIRST] * 20
            while carry_once(faulty, keys, T0 + HOUR):
                pass
        except StoreUnavailable:
            answers = db.run(lambda tx, keys=keys, numbers=numbers: claim(keys, tx, numbers))
            assert set(answers) in ({FIRST}, {AGAIN})
        else:
            break
        done += 20
    else:
        raise AssertionError("the faults never ended")
    assert db.run(lambda tx: claim(Keys(), tx, [*range(done + 20)])) == [AGAIN] * (done + 20)
    assert done > 100


def test_memory_is_bounded_although_nobody_carries(db: Database, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(dedup_keys, "CARRY_BATCH_SIZE", 10)
    keys = Keys(most=200)
    for n in range(0, 3000, 30):
        assert db.run(lambda tx, n=n: claim(keys, tx, [*range(n, n + 30)])) == [FIRST] * 30
        assert keys.count <= 200 + 3 * 30
    assert db.run(lambda tx: claim(keys, tx, [*range(3000)])) == [AGAIN] * 3000
    assert db.run(lambda tx: claim(Keys(), tx, [*range(3000)])) == [AGAIN] * 3000


def test_a_later_cycle_is_counted_also_while_its_first_is_recent(db: Database):
    keys = Keys()
    said = [
        db.run(lambda tx, day=day: claim(keys, tx, [1, day + 100], T0 + day * DAY, DIAGNOSTICS_WINDOW))[0]
        for day in (0, 3, 4, 7, 8)
    ]
    assert said == [FIRST, AGAIN, "new_cycle 2", "duplicate_committed 2", "new_cycle 3"]
    assert db.run(lambda tx: claim(Keys(), tx, [1], T0 + 8 * DAY, DIAGNOSTICS_WINDOW)) == ["duplicate_committed 3"]


def test_quiet_moments_carry_what_is_old_and_leave_what_is_new(db: Database):
    if db.dialect != "sqlite":
        pytest.skip("PostgreSQL carries nothing")
    keys = Keys()
    db.run(lambda tx: claim(keys, tx, [1]))
    assert carry_once(db, keys, T0 + HOUR - 1) == 0
    assert count(db, ROWS) == 1
    assert carry_once(db, keys, T0 + HOUR) == 1


def test_any_order_of_commits_carries_and_new_processes_gives_the_same_answers(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(dedup_keys, "CARRY_BATCH_SIZE", 5)
    for seed in range(40):
        rng = random.Random(seed)
        db = open_database("sqlite:///:memory:")
        migrate(db, PACKAGES)
        keys, now = Keys(most=rng.choice((10, 1000))), T0
        known: dict[int, tuple[int, int]] = {}
        for _ in range(60):
            step = rng.random()
            if step < 0.15:
                keys = Keys(most=10)
            elif step < 0.4:
                db.run(lambda tx, keys=keys: keys.carry(tx))
            now += rng.choice((1, HOUR, 2 * DAY))
            numbers = rng.sample(range(40), rng.randrange(1, 12))
            window = rng.choice((BILLING_WINDOW, DIAGNOSTICS_WINDOW))
            wanted: list[str] = []
            for n in numbers:
                cycle, ends = known.get(n, (0, -1))
                if ends >= now:
                    wanted.append(f"duplicate_committed {cycle}")
                else:
                    wanted.append(f"{'new_cycle' if cycle else 'first'} {cycle + 1}")
                    known[n] = cycle + 1, now + window
            assert db.run(lambda tx, a=(keys, numbers, now, window): claim(a[0], tx, a[1], a[2], a[3])) == wanted
        db.close()


def test_a_ledger_without_new_keys_writes_nothing(db: Database):
    db.run(lambda tx: Keys().write(tx, Ledger({}), T0))
    assert count(db, ROWS) == count(db, TREE) == 0
