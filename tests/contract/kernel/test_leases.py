"""Leases on both databases: one holder at a time, in turn across partitions, and a fence against the late."""

import threading
from collections import Counter

import msgspec
import pytest

from patra.kernel import leases
from patra.kernel.clock import MINUTE, SECOND
from patra.kernel.db import Database, Tx, migrate, open_database
from patra.kernel.db.queries import statement
from patra.kernel.errors import Fenced
from patra.kernel.leases import Lease, LeaseTable, Work

NOW = 1_700_000_000_000_000
POOL = leases.pool("p")
ROWS = statement(
    "rows_of_pool", "SELECT item, lease_owner, leased_until, lease_fence, lease_count FROM krn_lease ORDER BY item"
)

HELD = statement("held", "SELECT count(*) FROM krn_lease WHERE lease_owner IS NOT NULL GROUP BY partition_key")


def add(store: Database, *work: Work, pool: str = "p") -> int:
    return store.run(lambda tx: leases.add(tx, pool, work))


def items(*names: str, **how) -> list[Work]:
    """`a1` is a piece of the partition `a`."""
    return [Work(item=name, partition=name.rstrip("0123456789"), **how) for name in names]


def acquire(store: Database, n: int = 100, holder: str = "w1", now: int = NOW, where=POOL, **how) -> list[Lease]:
    return store.run(lambda tx: leases.acquire(tx, where, holder=holder, n=n, now=now, ttl=MINUTE, **how))


def ids(found: list[Lease]) -> list[str]:
    return [lease.id for lease in found]


def rows(store: Database) -> list[tuple]:
    return store.read(lambda tx: tx.fetch(ROWS))


def finish(store: Database, found: list[Lease]) -> int:
    return store.run(lambda tx: leases.finish(tx, POOL, found))


def test_what_is_taken_is_not_taken_again(store: Database):
    add(store, *items("a1", "a2", "a3"))
    (one,) = acquire(store, 1)
    assert one == Lease(id="a1", partition="a", holder="w1", fence=1, until=NOW + MINUTE)
    assert ids(acquire(store, 5, "w2")) == ["a2", "a3"]
    assert acquire(store, 5, "w3") == []
    assert rows(store)[0] == ("a1", "w1", NOW + MINUTE, 1, 1)


def test_adding_again_leaves_what_is_there(store: Database):
    assert add(store, *items("a1", "a2")) == 2
    acquire(store, 1)
    assert add(store, *items("a1", "a3")) == 1
    assert ids(acquire(store, 5, "w2")) == ["a2", "a3"]


def test_priority_then_due_time_then_id(store: Database):
    add(
        store,
        Work(item="last", priority=300, due_at=1),
        Work(item="y", priority=100, due_at=5),
        Work(item="x", priority=100, due_at=5),
        Work(item="z", priority=100, due_at=4),
        Work(item="not yet", priority=1, due_at=NOW + 1),
    )
    assert ids(acquire(store)) == ["z", "x", "y", "last"]
    assert ids(acquire(store, now=NOW + 1)) == ["not yet"]


def test_partitions_take_turns_within_a_priority(store: Database):
    add(store, *items(*[f"a{n}" for n in range(9)]), *items("b1", "b2", "c1"), *items("d1", priority=200))
    assert ids(acquire(store, 6)) == ["a0", "b1", "c1", "a1", "b2", "a2"]
    assert ids(acquire(store, 100)) == ["a3", "a4", "a5", "a6", "a7", "a8", "d1"]


def test_it_is_the_turn_of_the_partition_of_which_the_fewest_are_held(store: Database):
    """Also when each worker takes a single piece and keeps it for long."""
    add(store, *items(*[f"a{n}" for n in range(9)], due_at=1), *items("b1", "b2", "c1", due_at=2))
    assert [acquire(store, 1, f"w{n}")[0].id for n in range(6)] == ["a0", "b1", "c1", "a1", "b2", "a2"]


def test_a_more_urgent_piece_goes_before_a_partition_s_turn(store: Database):
    add(store, *items(*[f"a{n}" for n in range(3)], priority=100), *items("b1", priority=300))
    assert [acquire(store, 1, f"w{n}")[0].id for n in range(4)] == ["a0", "a1", "a2", "b1"]


@pytest.mark.parametrize("n", [1, 3, 7, 40])
def test_many_partitions_of_uneven_size_are_served_evenly(store: Database, n: int):
    sizes = {f"p{chr(97 + i)}": 1 + i * i for i in range(12)}
    add(store, *(Work(item=f"{p}{i:04}", partition=p) for p, size in sizes.items() for i in range(size)))
    served: Counter[str] = Counter()
    total = sum(sizes.values())
    for _ in range(total // n + 1):
        served.update(lease.partition for lease in acquire(store, n))
        full = [served[p] for p in sizes if served[p] < sizes[p]]
        assert not full or max(served.values()) - min(full) <= 1
    assert served == sizes


def test_no_more_of_a_partition_are_held_than_its_bound(store: Database):
    add(store, *items("a1", "a2", "a3", "a4", "b1"))
    found = acquire(store, 10, per_partition=2)
    assert ids(found) == ["a1", "b1", "a2"]
    assert acquire(store, 10, "w2", per_partition=2) == []
    assert finish(store, found[:1]) == 1
    assert ids(acquire(store, 10, "w2", per_partition=2)) == ["a3"]


def test_a_partition_at_its_bound_holds_back_nobody_less_urgent(store: Database):
    add(store, *items("a1", "a2", "a3", "a4", priority=1), *items("b1", "c1", priority=2))
    assert ids(acquire(store, 3, per_partition=1)) == ["a1", "b1", "c1"]


def test_a_single_partition_may_have_a_bound_of_its_own(store: Database):
    add(store, *items("a1", "a2", "a3", "b1", "b2", "b3", "c1", "c2"))
    found = acquire(store, 10, per_partition=2, bounds={"a": 1, "b": 9, "c": 0, "x": 1})
    assert ids(found) == ["a1", "b1", "b2"]  # the tighter of both bounds; of c nothing at all
    assert acquire(store, 10, "w2", per_partition=2, bounds={"a": 1, "c": 0}) == []
    assert ids(acquire(store, 10, "w2", bounds={"a": 2, "c": 0})) == ["a2", "b3"]
    assert ids(acquire(store, 10, "w3", bounds={"a": 0})) == ["c1", "c2"]
    assert ids(acquire(store, 10, "w4")) == ["a3"]


def test_a_partition_that_is_left_out_holds_back_nobody(store: Database):
    add(store, *items(*[f"a{n}" for n in range(40)], priority=1), *items("b1", "b2", "b3", priority=2))
    assert ids(acquire(store, 2, bounds={"a": 0})) == ["b1", "b2"]


def test_pools_do_not_meet(store: Database):
    add(store, *items("a1"), pool="p")
    add(store, *items("a1", "a2"), pool="q")
    assert ids(acquire(store)) == ["a1"]
    assert ids(acquire(store, where=leases.pool("q"))) == ["a1", "a2"]
    assert store.run(lambda tx: leases.expire(tx, leases.pool("q"), now=NOW + 2 * MINUTE)) == ["a1", "a2"]
    with pytest.raises(ValueError, match="not a name for a pool"):
        leases.pool("p'; --")


def test_finished_work_leaves_the_table_and_released_work_comes_back(store: Database):
    add(store, *items("a1", "a2"))
    first, second = acquire(store)
    assert finish(store, [first]) == 1
    assert store.run(lambda tx: leases.release(tx, POOL, [second])) == 1
    assert store.run(lambda tx: leases.release(tx, POOL, [second])) == 0
    assert rows(store) == [("a2", None, None, 1, 1)]
    assert acquire(store, holder="w2") == [Lease(id="a2", partition="a", holder="w2", fence=2, until=NOW + MINUTE)]


def test_an_expired_lease_comes_back_and_the_late_holder_is_fenced_off(store: Database):
    add(store, *items("a1", "a2"))
    lost = acquire(store)
    assert store.run(lambda tx: leases.expire(tx, POOL, now=NOW + MINUTE)) == []
    assert store.run(lambda tx: leases.expire(tx, POOL, now=NOW + MINUTE + 1, limit=1)) == ["a1"]
    assert ids(acquire(store, holder="w2", now=NOW + 2 * MINUTE)) == ["a1"]
    for late in (leases.guard, leases.finish):
        with pytest.raises(Fenced, match="lease_lost"):
            store.run(lambda tx, late=late: late(tx, POOL, lost))
    assert store.run(lambda tx: leases.renew(tx, POOL, lost, now=NOW + 2 * MINUTE, ttl=MINUTE)) == [
        msgspec.structs.replace(lost[1], until=NOW + 3 * MINUTE)
    ]
    assert store.run(lambda tx: leases.release(tx, POOL, lost)) == 1
    assert [row[1] for row in rows(store)] == ["w2", None]


def test_the_same_worker_is_fenced_off_from_a_lease_it_lost_and_took_again(store: Database):
    add(store, *items("a1"))
    (old,) = acquire(store)
    store.run(lambda tx: leases.expire(tx, POOL, now=NOW + 2 * MINUTE))
    (new,) = acquire(store, now=NOW + 2 * MINUTE)
    assert (old.fence, new.fence) == (1, 2)
    with pytest.raises(Fenced):
        finish(store, [old])
    assert finish(store, [new]) == 1


def test_a_fenced_step_writes_nothing(store: Database):
    add(store, *items("a1"))
    lost = acquire(store)
    store.run(lambda tx: leases.expire(tx, POOL, now=NOW + 2 * MINUTE))

    def late(tx: Tx) -> None:
        leases.add(tx, "p", items("result"))
        leases.finish(tx, POOL, lost)

    with pytest.raises(Fenced):
        store.run(late)
    assert [row[0] for row in rows(store)] == ["a1"]


def test_a_renewed_lease_lasts(store: Database):
    add(store, *items("a1"))
    held = acquire(store)
    (longer,) = store.run(lambda tx: leases.renew(tx, POOL, held, now=NOW + 50 * SECOND, ttl=MINUTE))
    assert longer.until == NOW + 110 * SECOND
    assert store.run(lambda tx: leases.expire(tx, POOL, now=NOW + 90 * SECOND)) == []
    store.run(lambda tx: leases.guard(tx, POOL, held))


def test_nothing_asked_for_is_nothing_done(store: Database):
    assert acquire(store) == []
    assert acquire(store, 0) == []
    assert finish(store, []) == 0
    store.run(lambda tx: leases.guard(tx, POOL, []))
    assert store.run(lambda tx: leases.renew(tx, POOL, [], now=NOW, ttl=1)) == []


def test_an_engine_s_own_table_with_its_own_states(database: Database):
    database.run(
        lambda tx: tx.script(
            "CREATE TABLE job (id TEXT PRIMARY KEY, source TEXT NOT NULL, rank BIGINT NOT NULL, start_at BIGINT NOT NULL, "
            "state TEXT NOT NULL, held_by TEXT, until BIGINT, fence BIGINT NOT NULL DEFAULT 0, tries BIGINT NOT NULL DEFAULT 0)"
        )
    )
    table = LeaseTable(
        table="job",
        id="id",
        partition="source",
        priority="rank",
        due="start_at",
        owner="held_by",
        until="until",
        fence="fence",
        count="tries",
        ready="state = 'queued'",
    )
    jobs = [("1", "x", "queued"), ("2", "x", "done"), ("3", "y", "queued"), ("4", "x", "queued")]
    rows = [{"id": i, "source": s, "rank": 1, "start_at": 0, "state": state} for i, s, state in jobs]
    database.run(lambda tx: tx.insert("job", rows))
    held = acquire(database, 2, where=table)
    assert [(lease.id, lease.partition) for lease in held] == [("1", "x"), ("3", "y")]
    database.run(lambda tx: leases.guard(tx, table, held))
    assert ids(database.run(lambda tx: leases.renew(tx, table, held, now=NOW, ttl=5))) == ["1", "3"]
    assert database.run(lambda tx: leases.expire(tx, table, now=NOW + 6)) == ["1", "3"]
    assert ids(acquire(database, 9, where=table)) == ["1", "3", "4"]


@pytest.mark.parametrize("field", ["table", "id", "partition", "priority", "due", "owner", "until", "fence", "count"])
def test_names_that_are_not_ours_are_refused(field: str):
    good = {"table": "t", "id": "i", "partition": "p", "priority": "q", "due": "d"}
    with pytest.raises(ValueError, match="is not a name of ours"):
        LeaseTable(**{**good, field: "x; DROP TABLE t"})


def test_workers_that_look_at_the_same_moment_take_different_pieces(postgres_url: str):
    """A worker that has not committed yet keeps nobody waiting and hides nothing from the others."""
    store = open_database(postgres_url)
    migrate(store, ["patra.kernel"])
    add(store, *items(*[f"a{n:02}" for n in range(20)], *[f"b{n:02}" for n in range(20)]))
    found: list[list[Lease]] = []

    def uncommitted(tx: Tx) -> None:
        mine = leases.acquire(tx, POOL, holder="w1", n=10, now=NOW, ttl=MINUTE)
        for number in (2, 3):
            other = threading.Thread(target=lambda n=number: found.append(acquire(store, 10, f"w{n}")))
            other.start()
            other.join(30)
        found.append(mine)

    store.run(uncommitted)
    assert [len(part) for part in found] == [10, 10, 10]
    assert len({lease.id for part in found for lease in part}) == 30
    store.close()


@pytest.mark.parametrize("per_partition", [None, 5])
def test_many_workers_never_hold_the_same_piece(store: Database, database_url: str, per_partition: int | None):
    add(store, *(Work(item=f"{n:03}", partition=f"{n % 7}") for n in range(200)))
    taken: list[str] = []
    over: list[int] = []

    def worker(number: int) -> None:
        db = open_database(database_url)
        while True:
            held = acquire(db, 6, f"w{number}", per_partition=per_partition)
            if not held and db.read(lambda tx: tx.fetch(ROWS)) == []:
                break
            if per_partition:
                over.extend(n for (n,) in db.read(lambda tx: tx.fetch(HELD)) if n > per_partition)
            taken.extend(ids(held))
            db.run(lambda tx: leases.finish(tx, POOL, held))  # noqa: B023
        db.close()

    threads = [threading.Thread(target=worker, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == [f"{n:03}" for n in range(200)]
    assert over == []
