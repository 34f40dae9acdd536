"""Processes that share one PostgreSQL without Redis, killed with -9: the provider never sees more than its limit.

Each process takes permits from the rate gate in the database as fast as it gets them and reports each use, with its
instant by the database's clock, to a socket of this process. Processes are killed while they hold prefetched permits and
started again. In any sliding second no more than the rate and the burst may be used (ruling I12).
"""

import socket
import struct
import sys
import threading
import time

from patra.ingest.ratelimit.database import DatabaseGate
from patra.ingest.ratelimit.limiter import Permit, obtain
from patra.ingest.ratelimit.token_bucket import Policy
from patra.kernel.clock import SECOND, SystemClock
from patra.kernel.db import migrate, open_database
from patra.kernel.ids import new_id
from tests import services
from tests.prove.crew import Crew, Life

POLICY = Policy(rate=100_000, burst=20, quantum=10)


def main() -> str:
    with services.postgres(durable=True) as url:
        return prove(url, uses=20_000, processes=4, every=1.0, at_least=20)


def prove(
    url: str, *, uses: int, processes: int, every: float, at_least: int, most_kills: int | None = None, life: int = 400
) -> str:
    db = open_database(url)
    migrate(db, ["patra.kernel", "patra.ingest"])
    db.close()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as provider:
        provider.bind(("127.0.0.1", 0))
        provider.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        seen: list[int] = []
        threading.Thread(target=_listen, args=(provider, seen), daemon=True).start()
        port = str(provider.getsockname()[1])
        jobs = [["worker", url, port, str(life)] for _ in range(processes)]
        with Crew("tests.prove.ingest_rate", jobs, most_kills=most_kills) as crew:
            crew.kill_until(lambda: f"{uses - len(seen)} uses to go" if len(seen) < uses else "", every=every)
    worst = most_in_a_second(seen)
    limit = POLICY.rate // 1000 + POLICY.burst
    assert crew.kills >= at_least, f"only {crew.kills} kills: nothing is proved"
    assert worst <= limit, f"{worst} uses in a second, {limit} are allowed"
    return f"{len(seen)} uses, {processes} processes, {crew.kills} kills, at most {worst} of {limit} in a second"


def most_in_a_second(instants: list[int]) -> int:
    """The most uses in any second."""
    ordered, first, worst = sorted(instants), 0, 0
    for number, at in enumerate(ordered):
        while ordered[first] <= at - SECOND:
            first += 1
        worst = max(worst, number - first + 1)
    return worst


def _listen(provider: socket.socket, seen: list[int]) -> None:
    while True:
        try:
            seen.append(struct.unpack("!q", provider.recv(8))[0])
        except OSError:
            return


def work(url: str, port: str, life: str) -> None:
    gate, alive = DatabaseGate(open_database(url, wait=60)), Life(int(life))

    def pause(microseconds: int) -> bool:
        time.sleep(microseconds / SECOND)
        return True

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        while True:
            found = obtain(gate, SystemClock(), pause, key="provider", policy=POLICY, task=new_id(), deadline=SECOND)
            if isinstance(found, Permit):
                sender.sendto(struct.pack("!q", found.at), ("127.0.0.1", int(port)))
                alive.turn()


if __name__ == "__main__":
    work(*sys.argv[2:])
