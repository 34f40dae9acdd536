"""The process that writes while `bench.reads` reads: all three engines, with what runs behind their writers.

    python -m bench.reads_writer STORE

Each line that it reads names what is going on from then on; at the end of its input it prints, by those names, how long
each batch of 100 events of attribution took to commit, in milliseconds, as JSON.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import msgspec

from bench.reads_engines import AttributionStore, BusStore, Loops
from patra.kernel.clock import SECOND, SystemClock
from patra.kernel.db import Database, Tx, open_database
from patra.kernel.db.queries import statement

TURNS_PER_SECOND = 20
BUS_EVENTS = 10
INGEST_BATCHES = 2
INSERT = statement(
    "write",
    "INSERT INTO ing_task_run_batch (batch_id, run_id, task_id, slice_id, plan_id, provenance_code, endpoint_name,"
    " operation_code, expr_hash, batch_no, phase_code, status_code, request_digest, response_digest, stats,"
    " idempotent_key, reason_code, created_at) VALUES ('w' || :n, 'w', 't', 's', 'p', 'source0', 'e', 'HARVEST', '',"
    """ :n, 'LIST', 'SUCCEEDED', '{}', '{}', '{"retryCount":0,"429Count":0}', 'w' || :n, 'i_next', :now)""",
)
MOVE = statement("move", "UPDATE ing_task SET status_code = 'SUCCEEDED' WHERE task_id = :id")


class Writer:
    """A child of this process that writes to a store."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self._child = child
        self.taken: dict[str, list[float]] = {}

    def say(self, what: str) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(what.encode() + b"\n")
        self._child.stdin.flush()

    def finish(self) -> None:
        out, _ = self._child.communicate()
        self.taken = msgspec.json.decode(out, type=dict[str, list[float]]) if out else {}
        if self._child.returncode:
            raise RuntimeError(f"the writer ended with {self._child.returncode}")


@contextmanager
def writing(url: str) -> Generator[Writer]:
    child = subprocess.Popen(
        [sys.executable, "-m", "bench.reads_writer", url], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    writer = Writer(child)
    try:
        yield writer
    finally:
        writer.finish()


def _ingest(db: Database, first: int) -> Callable[[], None]:
    number = first

    def write() -> None:
        nonlocal number
        number += 1
        params: dict[str, Any] = {"n": number, "now": SystemClock().now()}
        task = f"p0000000000000000.t{number * 10 % 1000:06}"

        def work(tx: Tx) -> None:
            tx.execute(INSERT, params)
            tx.execute(MOVE, {"id": task})

        db.run(work)

    return write


def main(url: str) -> None:
    db = open_database(url)
    turn = (
        SystemClock().now() * TURNS_PER_SECOND // SECOND
    )  # a store that is kept is measured again: no number comes twice
    attribution, bus = AttributionStore(db, turn % 2**32), BusStore(db)
    ingest = _ingest(db, turn * INGEST_BATCHES)
    loops = Loops(db)
    doing, ended = "", threading.Event()

    def listen() -> None:
        nonlocal doing
        for line in sys.stdin:
            doing = line.strip()
        ended.set()

    threading.Thread(target=listen, daemon=True).start()
    taken: dict[str, list[float]] = {}
    while not ended.is_set():
        turn_ends = time.perf_counter() + 1 / TURNS_PER_SECOND
        named, begun = doing, time.perf_counter()
        attribution.write(1)
        taken.setdefault(named, []).append((time.perf_counter() - begun) * 1000)
        for _ in range(INGEST_BATCHES):
            ingest()
        bus.write(BUS_EVENTS)
        loops.turn()
        ended.wait(max(turn_ends - time.perf_counter(), 0))
    print(msgspec.json.encode(taken).decode())
    db.close()


if __name__ == "__main__":
    main(sys.argv[1])
