"""100,000 leases, four workers killed with -9: each piece held by one worker at a time and finished once.

Every change of a lease is journaled in its own transaction: taken, wrote (a result under `guard`), finished, released,
expired. For each piece the journal must read as holdings one after the other, each ended before the next begins, writes
only by the holder of the moment, and one end that is `finished`. Workers that are slow on purpose let their leases run
out and come back late: the fence must refuse them.
"""

import os
import random
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import msgspec

from patra.kernel import leases
from patra.kernel.clock import SECOND
from patra.kernel.db import Database, Tx, migrate, open_database
from patra.kernel.db.queries import expand, statement
from patra.kernel.errors import Fenced
from patra.kernel.leases import Lease, Work
from tests import services
from tests.prove.crew import Crew, Life

TTL = 2 * SECOND
PARTITIONS = 20
POOL = leases.pool("proof")
TABLES = (
    "CREATE TABLE prf_journal (seq {id}, item TEXT NOT NULL, event TEXT NOT NULL, worker TEXT, fence BIGINT)",
    "CREATE TABLE prf_result (item TEXT PRIMARY KEY, worker TEXT NOT NULL)",
)
LEFT = statement("left", "SELECT count(*) FROM krn_lease")
JOURNAL = statement("journal", "SELECT item, event, worker, fence FROM prf_journal ORDER BY seq")
RESULTS = statement("results", "SELECT count(*) FROM prf_result")


def main() -> str:
    with services.postgres(durable=True) as url:
        figures = prove(url, items=100_000, workers=4, every=0.1, at_least=50)
    with tempfile.TemporaryDirectory() as folder:
        small = prove(f"sqlite:///{Path(folder) / 'patra.db'}", items=50_000, workers=1, every=0.5)
    return f"PostgreSQL {figures}; SQLite, one process: {small}"


def prove(
    url: str,
    *,
    items: int,
    workers: int,
    every: float,
    at_least: int = 5,
    most_kills: int | None = None,
    life: int = 40,
) -> str:
    db = open_database(url)
    migrate(db, ["patra.kernel"])
    db.run(lambda tx: [tx.script(expand(text, tx.dialect)) for text in TABLES])
    for start in range(0, items, 10_000):
        numbers = range(start, min(start + 10_000, items))
        work = [Work(item=f"{n:06}", partition=f"{n % PARTITIONS}", priority=n % 3, due_at=n) for n in numbers]
        db.run(lambda tx, work=work: leases.add(tx, "proof", work))
    started = time.monotonic()
    jobs = [["worker", url, f"w{n}", f"{life}"] for n in range(workers)]
    with Crew("tests.prove.kernel_leases", jobs, most_kills=most_kills) as crew:

        def missing() -> str:
            left = db.read(lambda tx: tx.fetch(LEFT))[0][0]
            return f"{left} to do" if left else ""

        crew.kill_until(missing, every=every)
    seconds = time.monotonic() - started
    events = check(db, items)
    db.close()
    assert crew.kills >= at_least, f"only {crew.kills} kills: nothing is proved"
    seen = ", ".join(f"{count} {event}" for event, count in sorted(events.items()))
    return f"{items} pieces, {workers} workers, {crew.kills} kills, {seconds:.0f} s ({seen})"


class Holding(msgspec.Struct):
    worker: str
    fence: int


def check(db: Database, items: int) -> dict[str, int]:
    """Read every piece's journal; gives how often each event happened."""
    open_now: dict[str, Holding] = {}
    finished: set[str] = set()
    fences: dict[str, int] = defaultdict(int)
    counts: dict[str, int] = defaultdict(int)
    for item, event, worker, fence in db.read(lambda tx: tx.fetch(JOURNAL)):
        counts[event] += 1
        if event == "fenced":  # a worker that came late; nothing of what it wanted to write may be here
            continue
        held = open_now.get(item)
        assert item not in finished, f"{item}: {event} by {worker} after it was finished"
        if event == "taken":
            assert held is None, f"{item}: taken by {worker} while {held} held it"
            assert fence == fences[item] + 1, f"{item}: fence {fence} follows {fences[item]}"
            fences[item] = fence
            open_now[item] = Holding(worker, fence)
            continue
        assert held is not None, f"{item}: {event} by {worker}, held by nobody"
        if event != "expired":
            assert (worker, fence) == (held.worker, held.fence), f"{item}: {event} by {worker}, held by {held}"
        if event != "wrote":
            del open_now[item]
        if event == "finished":
            finished.add(item)
    assert not open_now
    assert len(finished) == items, f"{len(finished)} of {items} were finished"
    assert db.read(lambda tx: tx.fetch(RESULTS)) == [(items,)]
    return counts


class Worker:
    def __init__(self, url: str, name: str, life: str) -> None:
        self.db = open_database(url, wait=60)
        self.name = f"{name}.{os.getpid()}"
        self.chance = random.Random()
        self.life = Life(int(life))

    def run(self) -> None:
        while self.db.read(lambda tx: tx.fetch(LEFT)) != [(0,)]:
            held = self.db.run(self.take)
            if not held:
                time.sleep(0.05)
                continue
            if self.chance.random() < 0.01:
                time.sleep(1.5 * TTL / SECOND)  # thought dead; comes back late
            try:
                self.db.run(lambda tx, held=held: self.write(tx, held))
                self.db.run(lambda tx, held=held: self.end(tx, held))
            except Fenced:
                self.db.run(lambda tx, held=held: self.too_late(tx, held))
            self.life.turn()

    def take(self, tx: Tx) -> list[Lease]:
        now = tx.server_now()
        expired = leases.expire(tx, POOL, now=now)
        self.journal(tx, "expired", [(item, None) for item in expired])
        bound = 40 if self.chance.random() < 0.25 else None
        n = self.chance.randint(1, 150)
        held = leases.acquire(tx, POOL, holder=self.name, n=n, now=now, ttl=TTL, per_partition=bound)
        self.journal(tx, "taken", [(lease.id, lease.fence) for lease in held])
        return held

    def write(self, tx: Tx, held: list[Lease]) -> None:
        leases.guard(tx, POOL, held)
        self.journal(tx, "wrote", [(lease.id, lease.fence) for lease in held])

    def end(self, tx: Tx, held: list[Lease]) -> None:
        keep = self.chance.randint(0, len(held)) if self.chance.random() < 0.1 else len(held)
        leases.finish(tx, POOL, held[:keep])
        tx.insert("prf_result", [{"item": lease.id, "worker": self.name} for lease in held[:keep]])
        self.journal(tx, "finished", [(lease.id, lease.fence) for lease in held[:keep]])
        self.give_back(tx, held[keep:])

    def too_late(self, tx: Tx, held: list[Lease]) -> None:
        self.journal(tx, "fenced", [("", None)])
        self.give_back(tx, held)

    def give_back(self, tx: Tx, held: list[Lease]) -> None:
        """Some of it may be lost already: only what is still held is released, and journaled."""
        mine = leases.renew(tx, POOL, held, now=tx.server_now(), ttl=TTL)
        leases.release(tx, POOL, mine)
        self.journal(tx, "released", [(lease.id, lease.fence) for lease in mine])

    def journal(self, tx: Tx, event: str, pieces: list[tuple[str, int | None]]) -> None:
        rows = [(item, event, self.name, fence) for item, fence in pieces]
        tx.insert_tuples("prf_journal", ("item", "event", "worker", "fence"), rows)


if __name__ == "__main__":
    Worker(*sys.argv[2:]).run()
