"""A trigger goes in; it is planned and worked on until nothing of it is left, and what was left behind comes out."""

import threading
from collections.abc import Callable

from patra.ingest.executor import Executor, Shared
from patra.ingest.gates import LocalGate
from patra.ingest.planner import Planner
from patra.ingest.running_store import Q
from patra.ingest.services import Services
from patra.ingest.transport import Transport
from patra.ingest.trigger import Trigger
from patra.kernel.clock import SystemClock
from patra.kernel.db import Database

IDLE = 0.2  # seconds between looks when everything waits


def drain(db: Database, trigger: Trigger, *, executors: int, tell: Callable[[str], None]) -> list[str]:
    """Plan and work; gives a line for everything that is not done, nothing where all is well."""
    clock = SystemClock()
    planner = Planner(db, clock)
    planned = planner.trigger(trigger)
    if planned.problems or planned.detail:
        tell(f"{planned.outcome.value}: {planned.detail or planned.outcome.text}")
    for problem in planned.problems:
        tell(str(problem))
    transport = Transport()
    services = Services(clock=clock, gate=LocalGate(clock), transport=transport)
    shared, stopping = Shared(), threading.Event()

    def work() -> None:
        executor = Executor(db, services, shared=shared, stopping=stopping)
        while not stopping.is_set():
            if not executor.run_once().tasks:
                stopping.wait(IDLE)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(executors)]
    for thread in threads:
        thread.start()
    last = ""
    try:
        while True:
            planner.run_once()
            counts = dict(db.read(lambda tx: tx.fetch(Q["drain_counts"], {"source": trigger.source})))
            line = ", ".join(f"{status.lower()} {count}" for status, count in sorted(counts.items()))
            if line != last:
                tell(line)
                last = line
            halted = db.read(lambda tx: tx.fetch(Q["drain_halts"], {"source": trigger.source}))
            waiting = counts.get("DISPATCHED", 0) + counts.get("EXECUTING", 0)
            if not waiting and (not counts.get("QUEUED", 0) or halted):
                break
            stopping.wait(IDLE)
    finally:
        stopping.set()
        for thread in threads:
            thread.join(10)
        transport.close()
    rows = db.read(lambda tx: tx.fetch(Q["drain_left"], {"source": trigger.source}))
    return [f"{task_id}: {status} {reason or ''}" for task_id, status, reason in rows]
