"""A process is stopped (SIGSTOP) for a minute under load while others take over its work: what it does afterwards is fenced.

Two APIs and two workers stand on PostgreSQL. Leases of ingest last five seconds, so the paused worker has lost all of its
tasks when it wakes up, and the other one has done them. Nothing that was acknowledged is lost, no event is counted twice, no
deadline is applied twice, and the log still leads to what the store says (`verify`).
"""

import os
import signal
import tempfile
import time
from pathlib import Path

from tests.prove.chaos_faults import signal_family, until
from tests.prove.chaos_world import World, world

PAUSE_SECONDS = 60.0
LEASES = {"PATRA_INGEST_LEASE_SECONDS": "5", "PATRA_STUDIO_LEASE_SECONDS": "5"}


def pause(found: World, name: str, seconds: float) -> float:
    """Stop one process with its children; gives after how long the others acknowledged everything again."""
    began = time.monotonic()
    signal_family(found.processes[name].pid, signal.SIGSTOP)
    try:
        found.goes_on(f"{name} was paused")
        took = time.monotonic() - began
        until(lambda: time.monotonic() - began >= seconds, "the pause to end", seconds + 60)
        found.goes_on(f"{name} was paused for {seconds:.0f} s")
    finally:
        signal_family(found.processes[name].pid, signal.SIGCONT)
    until(lambda: found.is_healthy(name), f"{name} to answer again")
    found.goes_on(f"{name} came back")
    found.check_alive(f"the pause of {name}")
    return took


def prove(folder: Path, seconds: float, names: tuple[str, ...]) -> str:
    figures: list[str] = []
    with world(folder, postgres=True, copies=2, services_too=False, disk_size="2g", settings=LEASES) as found:
        until(lambda: len(found.balancer.up) == found.copies, "the balancer to see all")
        found.goes_on("the start")
        for name in names:
            took = pause(found, name, seconds)
            figures.append(f"{name} paused for {seconds:.0f} s, the others answered all after {took:.1f} s")
            print(f"   {figures[-1]}; {found.progress()}", flush=True)
        return f"{'; '.join(figures)}; {found.reckon()}"


def main() -> str:
    seconds = float(os.environ.get("PROVE_PAUSE_SECONDS", str(PAUSE_SECONDS)))
    with tempfile.TemporaryDirectory(prefix="patra-paused-") as folder:
        return prove(Path(folder), seconds, ("web", "work", "web2", "work2"))
