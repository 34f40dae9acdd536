"""For every n: fail at the n-th step of a ledger, outbox or lease step, run it again, and find the same rows."""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable

import pytest

from patra.kernel import leases, ledger, outbox
from patra.kernel.canonical import key16
from patra.kernel.clock import SECOND
from patra.kernel.db import Database, Tx
from patra.kernel.db.queries import statement
from patra.kernel.errors import StoreBusy, Transient
from patra.kernel.ledger import Claim, Entry
from patra.kernel.outbox import Delivered, Message, Pending, Policy, Refused, Relay, Retry, Settled, one_by_one
from patra.kernel.retry import DelayTable
from patra.kernel.testing import ManualClock
from tests.support.faults import FaultyDatabase, InjectedFault

LEDGER = statement(
    "ledger",
    "SELECT key, fingerprint, cycle, first_at, expires_at, held_until, holder FROM krn_ledger WHERE scope = :name ORDER BY key",
)
OUTBOX = statement(
    "outbox",
    "SELECT message_key, payload, attempt, holder, status, reason FROM krn_outbox WHERE channel = :name ORDER BY seq",
)
LEASES = statement(
    "leases",
    "SELECT item, lease_owner, leased_until FROM krn_lease WHERE pool = :name ORDER BY item",
)
HOLD = 5 * SECOND
_names = itertools.count()


class Step(ABC):
    """Some work on rows of its own, distinguished by a name, so that one store serves every n."""

    def __init__(self, store: Database) -> None:
        self.name = f"f{next(_names)}"
        self.store = store
        self.clock = ManualClock(1_000 * SECOND)
        self.now = self.clock.now()

    def prepare(self) -> None:  # noqa: B027  (most start from nothing)
        """What is there before."""

    @abstractmethod
    def run(self, db: Database) -> None:
        """The step itself; done again after a fault."""

    def rows(self) -> list[list[tuple]]:
        return [self.store.read(lambda tx, q=q: tx.fetch(q, {"name": self.name})) for q in (LEDGER, OUTBOX, LEASES)]

    def claims(self, *keys: int, mark: bytes = b"x", window: int = 60 * SECOND) -> list[Claim]:
        return [Claim(key=key16(f"{key}"), fingerprint=mark, window=window) for key in keys]


class ClaimASet(Step):
    """First, duplicate, conflict and new cycle in one set."""

    def prepare(self) -> None:
        self.store.run(lambda tx: ledger.claim(tx, self.name, self.claims(1, 2), self.now - SECOND))
        self.store.run(lambda tx: ledger.claim(tx, self.name, self.claims(3, 4, window=1), self.now - SECOND))

    def run(self, db: Database) -> None:
        claims = [*self.claims(1, 3, 5), *self.claims(2, 4, 6, mark=b"y"), *self.claims(5)]
        db.run(lambda tx: ledger.claim(tx, self.name, claims, self.now))


class HoldThenSettle(Step):
    """Two transactions: what stays in flight after a fault is taken over by the next run."""

    def run(self, db: Database) -> None:
        self.clock.advance(HOLD + 1)
        now, holder = self.clock.now(), f"run at {self.clock.now()}"
        claims = self.claims(1, 2, 3)
        db.run(lambda tx: ledger.claim(tx, self.name, claims, now, hold=HOLD, holder=holder))

        def finish(tx: Tx) -> None:
            ledger.settle(tx, self.name, [c.key for c in claims[:2]], holder=holder)
            ledger.release(tx, self.name, [c.key for c in claims[2:]], holder=holder)

        db.run(finish)

    def rows(self) -> list[list[tuple]]:
        found, *rest = super().rows()
        return [[(key, mark, cycle, held, holder) for key, mark, cycle, _, _, held, holder in found], *rest]


class DecideThenBegin(Step):
    """A caller that looks, judges and writes, as an engine does."""

    def prepare(self) -> None:
        self.store.run(lambda tx: ledger.claim(tx, self.name, self.claims(1, window=1), self.now - SECOND))
        self.store.run(lambda tx: ledger.claim(tx, self.name, self.claims(2), self.now - SECOND))

    def run(self, db: Database) -> None:
        def work(tx: Tx) -> None:
            claims = self.claims(1, 2, 3)
            seen = ledger.entries(tx, self.name, [c.key for c in claims])
            begun = {}
            for c in claims:
                verdict = ledger.judge(seen.get(c.key), c, self.now)
                if verdict.has_won:
                    begun[c.key] = Entry(
                        key=c.key,
                        fingerprint=c.fingerprint,
                        cycle=verdict.cycle,
                        first_at=self.now,
                        expires_at=self.now + c.window,
                    )
            ledger.begin_cycles(tx, self.name, begun)

        db.run(work)


class Purge(Step):
    def prepare(self) -> None:
        self.store.run(lambda tx: ledger.claim(tx, self.name, self.claims(*range(9), window=1), self.now))
        self.store.run(lambda tx: ledger.claim(tx, self.name, self.claims(*range(9, 12)), self.now))

    def run(self, db: Database) -> None:
        while db.run(lambda tx: ledger.purge(tx, self.name, before=self.now + SECOND, limit=4)):
            pass


class AppendWhatIsNew(Step):
    """The ledger and the outbox in one transaction: an event that comes twice is published once."""

    def run(self, db: Database) -> None:
        def work(tx: Tx) -> None:
            claims = self.claims(1, 2, 3)
            verdicts = ledger.claim(tx, self.name, claims, self.now)
            new = [
                Message(group="g", key=c.key.hex(), payload=b"\0")
                for c, v in zip(claims, verdicts, strict=True)
                if v.has_won
            ]
            outbox.append(tx, self.name, new, self.now)

        db.run(work)


class RelayATurn(Step):
    """Delivered, refused, given up and failed in one turn; the engine's row moves with each."""

    policy = Policy(delays=DelayTable((3600 * SECOND,)), window=7200 * SECOND, hold=HOLD, groups=8, per_group=2)

    def prepare(self) -> None:
        keys = ["a1", "a2", "a3", "a4", "a5", "b1", "b2", "c1", "c2", "d1"]
        messages = [Message(group=key[0], key=key, payload=b"") for key in keys]
        self.store.run(lambda tx: outbox.append(tx, self.name, messages, self.now))
        self.store.run(
            lambda tx: tx.execute(
                statement(
                    "old", "UPDATE krn_outbox SET failed_at = 0, attempt = 7 WHERE channel = :c AND message_key = 'd1'"
                ),
                {"c": self.name},
            )
        )

    def run(self, db: Database) -> None:
        relay = Relay(db, self.name, one_by_one(self.send), self.policy, self.clock, self.settled)
        self.clock.advance(HOLD)  # whatever an earlier run held is free again
        while not relay.run_once().idle:
            pass

    @staticmethod
    def send(message: Pending) -> Delivered | Refused | Retry:
        return {"b1": Refused("no"), "c1": Retry("down"), "d1": Retry("down")}.get(message.key, Delivered())

    def settled(self, tx: Tx, settled: list[Settled], now: int) -> None:
        ledger.claim(
            tx, self.name, [Claim(key=key16(s.message.key), fingerprint=s.state.encode(), window=0) for s in settled], 0
        )


class WorkOnLeases(Step):
    """Take, renew, give back one, finish the others together with their results."""

    def prepare(self) -> None:
        work = [leases.Work(item=f"{n}", partition=f"{n % 3}") for n in range(7)]
        self.store.run(lambda tx: leases.add(tx, self.name, work))

    def run(self, db: Database) -> None:
        where = leases.pool(self.name)
        while True:
            self.clock.advance(2 * HOLD + 1)
            now, holder = self.clock.now(), f"run at {self.clock.now()}"

            def take(tx: Tx, holder: str = holder, now: int = now) -> list[leases.Lease]:
                leases.expire(tx, where, now=now)
                return leases.acquire(tx, where, holder=holder, n=3, now=now, ttl=HOLD, per_partition=2)

            held = db.run(take)
            if not held:
                return
            kept = db.run(lambda tx, h=held, now=now: leases.renew(tx, where, h, now=now + 1, ttl=HOLD))
            db.run(lambda tx, h=kept: self.done(tx, where, h))

    def done(self, tx: Tx, where: leases.LeaseTable, held: list[leases.Lease]) -> None:
        leases.release(tx, where, held[2:])
        results = self.claims(*(int(lease.id) for lease in held[:2]))
        assert all(verdict.has_won for verdict in ledger.claim(tx, self.name, results, 0))
        leases.finish(tx, where, held[:2])


class AddWork(Step):
    def run(self, db: Database) -> None:
        for start in (0, 3):
            work = [leases.Work(item=f"{n}") for n in range(start, start + 5)]
            db.run(lambda tx, work=work: leases.add(tx, self.name, work))


STEPS = [ClaimASet, HoldThenSettle, DecideThenBegin, Purge, AppendWhatIsNew, RelayATurn, WorkOnLeases, AddWork]


def busy(place: str) -> StoreBusy:
    return StoreBusy("store_busy", place)


@pytest.mark.parametrize("fault", [InjectedFault, busy])
@pytest.mark.parametrize("kind", STEPS)
def test_a_step_that_failed_anywhere_and_was_run_again_ends_in_the_same_rows(
    store: Database, kind: Callable[[Database], Step], fault: Callable[[str], Exception]
):
    whole = kind(store)
    whole.prepare()
    counting = FaultyDatabase(store)
    whole.run(counting)
    expected = whole.rows()
    assert counting.steps >= 3
    for n in range(1, counting.steps + 1):
        broken = kind(store)
        broken.prepare()
        faulty = FaultyDatabase(store, fail_at=n, fault=fault)
        try:
            broken.run(faulty)
        except Transient:
            broken.run(store)
        assert faulty.steps >= n, "the fault was never reached"
        assert broken.rows() == expected, f"step {n} of {counting.steps}"


@pytest.mark.parametrize("kind", STEPS)
def test_a_step_that_was_run_twice_ends_in_the_same_rows(store: Database, kind: Callable[[Database], Step]):
    once, twice = kind(store), kind(store)
    for step in (once, twice):
        step.prepare()
        step.run(store)
    twice.run(store)
    assert twice.rows() == once.rows()
