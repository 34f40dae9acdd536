"""For any sequence of steps, leases are what a list of work and a dictionary of holders would say."""

import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from patra.kernel import leases
from patra.kernel.db import Database, migrate
from patra.kernel.db.queries import statement
from patra.kernel.errors import Fenced
from patra.kernel.leases import Lease, Work

ITEMS = [f"i{n}" for n in range(12)]
OWNERS = statement("owners", "SELECT item, lease_owner, lease_fence FROM krn_lease WHERE pool = :pool")
_pools = itertools.count()

work = st.builds(
    Work,
    item=st.sampled_from(ITEMS),
    partition=st.sampled_from(["", "a", "b", "组"]),
    priority=st.sampled_from([1, 2]),
    due_at=st.integers(0, 12),
)
picks = st.lists(st.integers(0, 30), max_size=4, unique=True)  # which of all leases ever given
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.lists(work, max_size=8)),
        st.tuples(
            st.just("acquire"),
            st.integers(0, 8),
            st.sampled_from(["w1", "w2"]),
            st.one_of(st.none(), st.integers(1, 3)),
        ),
        st.tuples(st.sampled_from(["renew", "release", "finish", "guard"]), picks),
        st.tuples(st.just("expire"), st.integers(0, 4)),
        st.tuples(st.just("wait"), st.integers(1, 6)),
    ),
    max_size=30,
)
TTL = 5


class Held(msgspec.Struct):
    holder: str
    until: int


class Piece(msgspec.Struct):
    work: Work
    fence: int = 0
    held: Held | None = None

    @property
    def place(self) -> tuple[int, int, str]:
        return self.work.priority, self.work.due_at, self.work.item


class Model:
    def __init__(self) -> None:
        self.pieces: dict[str, Piece] = {}

    def add(self, work: list[Work]) -> int:
        before = len(self.pieces)
        for one in work:
            self.pieces.setdefault(one.item, Piece(one))
        return len(self.pieces) - before

    def acquire(self, n: int, holder: str, now: int, bound: int | None) -> list[Lease]:
        """One after the other: the best piece of the partition whose turn it is."""
        found = []
        for _ in range(n):
            heads: dict[str, Piece] = {}
            for piece in self.pieces.values():
                best = heads.get(piece.work.partition)
                if piece.held is None and piece.work.due_at <= now and (best is None or piece.place < best.place):
                    heads[piece.work.partition] = piece
            open_heads = [
                (piece.work.priority, count, piece.place, piece)
                for name, piece in heads.items()
                if bound is None or (self.held(name) < bound)
                for count in [self.held(name)]
            ]
            if not open_heads:
                break
            piece = min(open_heads, key=lambda head: head[:3])[3]
            piece.held, piece.fence = Held(holder, now + TTL), piece.fence + 1
            found.append(
                Lease(
                    id=piece.work.item,
                    partition=piece.work.partition,
                    holder=holder,
                    fence=piece.fence,
                    until=now + TTL,
                )
            )
        return found

    def held(self, partition: str) -> int:
        return sum(p.work.partition == partition and p.held is not None for p in self.pieces.values())

    def mine(self, some: list[Lease]) -> list[Piece]:
        return [
            piece
            for lease in some
            if (piece := self.pieces.get(lease.id))
            and piece.held
            and (piece.held.holder, piece.fence) == (lease.holder, lease.fence)
        ]

    def expire(self, now: int, limit: int) -> list[str]:
        late = sorted((p.held.until, p.work.item) for p in self.pieces.values() if p.held and p.held.until < now)[
            :limit
        ]
        for _, item in late:
            self.pieces[item].held = None
        return sorted(item for _, item in late)


@given(steps)
def test_leases_are_a_dictionary_of_holders(database: Database, steps: list[tuple]):
    migrate(database, ["patra.kernel"])
    name, model, now = f"p{next(_pools)}", Model(), 0
    where = leases.pool(name)
    given: list[Lease] = []
    for step in steps:
        match step:
            case ("add", work):
                assert database.run(lambda tx: leases.add(tx, name, work)) == model.add(work)
            case ("acquire", n, holder, bound):
                found = take(database, where, holder, n, now, bound)
                expected = model.acquire(n, holder, now, bound)
                assert sorted(found, key=lambda lease: lease.id) == sorted(expected, key=lambda lease: lease.id)
                given += found
            case ("expire", limit):
                late = database.run(lambda tx: leases.expire(tx, where, now=now, limit=limit))  # noqa: B023
                assert late == model.expire(now, limit)
            case ("wait", time):
                now += time
            case (act, numbers):
                some = [given[number] for number in numbers if number < len(given)]
                some = list({lease.id: lease for lease in some}.values())
                act_on_some(database, where, model, act, some, now)
        stored = {
            item: (owner, fence) for item, owner, fence in database.read(lambda tx: tx.fetch(OWNERS, {"pool": name}))
        }
        assert stored == {
            item: (piece.held.holder if piece.held else None, piece.fence) for item, piece in model.pieces.items()
        }


def take(database: Database, where, holder: str, n: int, now: int, bound: int | None = None) -> list[Lease]:
    return database.run(lambda tx: leases.acquire(tx, where, holder=holder, n=n, now=now, ttl=TTL, per_partition=bound))


def act_on_some(database: Database, where, model: Model, act: str, some: list[Lease], now: int) -> None:
    mine = model.mine(some)
    match act:
        case "renew":
            kept = database.run(lambda tx: leases.renew(tx, where, some, now=now, ttl=TTL))
            for piece in mine:
                assert piece.held
                piece.held.until = now + TTL
            assert sorted(lease.id for lease in kept) == sorted(piece.work.item for piece in mine)
        case "release":
            assert database.run(lambda tx: leases.release(tx, where, some)) == len(mine)
            for piece in mine:
                piece.held = None
        case "guard" | "finish" if len(mine) < len(some):
            with pytest.raises(Fenced):
                database.run(lambda tx: getattr(leases, act)(tx, where, some))
        case "finish":
            assert database.run(lambda tx: leases.finish(tx, where, some)) == len(some)
            for piece in mine:
                del model.pieces[piece.work.item]
        case "guard":
            database.run(lambda tx: leases.guard(tx, where, some))


@given(
    st.lists(st.integers(0, 25), min_size=1, max_size=6),
    st.integers(1, 12),
    st.booleans(),
)
def test_no_partition_starves(database: Database, sizes: list[int], n: int, quick: bool):
    """While a partition has work, none of the others is more than one turn ahead of it, whether work is kept or done."""
    migrate(database, ["patra.kernel"])
    name = f"s{next(_pools)}"
    where = leases.pool(name)
    waiting = {f"{p}": size for p, size in enumerate(sizes)}
    work = [Work(item=f"{p}.{i}", partition=p, due_at=i) for p, size in waiting.items() for i in range(size)]
    database.run(lambda tx: leases.add(tx, name, work))
    served = dict.fromkeys(waiting, 0)
    while any(waiting.values()):
        found = take(database, where, "w", n, 100)
        assert len(found) == min(n, sum(waiting.values()))
        for lease in found:
            served[lease.partition] += 1
            waiting[lease.partition] -= 1
        left = [served[p] for p, count in waiting.items() if count]
        assert not left or max(served.values()) - min(left) <= 1
        if quick:
            database.run(lambda tx: leases.finish(tx, where, found))  # noqa: B023
