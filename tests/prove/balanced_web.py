"""Two APIs behind a balancer: one is killed with -9 or stopped, the other answers all; what was acknowledged is there, once."""

import os
import tempfile
from pathlib import Path

from tests.prove.chaos_faults import until
from tests.prove.chaos_world import World, world


def kill_one(found: World, name: str) -> None:
    """Work goes on while it is away, and it comes back behind the same balancer."""
    found.processes[name].kill()
    found.processes[name].wait()
    found.goes_on(f"{name} was killed")
    found.up()
    until(lambda: len(found.balancer.up) == found.copies, "the balancer to see all")


def stop_one(found: World, name: str) -> None:
    """The same with SIGTERM, as in a rolling restart."""
    found.processes[name].terminate()
    found.processes[name].wait(60)
    found.goes_on(f"{name} was stopped")
    found.up()
    until(lambda: len(found.balancer.up) == found.copies, "the balancer to see all")


def prove(folder: Path, rounds: int, **options) -> str:
    with world(folder, copies=2, services_too=False, **options) as found:
        until(lambda: len(found.balancer.up) == found.copies, "the balancer to see all")
        found.goes_on("the start")
        for _ in range(rounds):
            for fault in (kill_one, stop_one):
                for name in ("web", "web2"):
                    fault(found, name)
        return f"{rounds * 2} kills and {rounds * 2} stops, {found.answers.statuses[0]} requests without an answer; {found.reckon()}"


def main() -> str:
    rounds = int(os.environ.get("PROVE_ROUNDS", "5"))
    with tempfile.TemporaryDirectory(prefix="patra-balanced-") as folder:
        return prove(Path(folder), rounds, postgres=True, disk_size="2g")
