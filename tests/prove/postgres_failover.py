"""The PostgreSQL primary is killed with -9 under load and its standby promoted, twenty times by turns: nothing is lost or doubled.

Each time the killed server joins the new primary again as its synchronous standby, and is the next to be promoted. Patra is
told nothing: its URL names both servers. The outage is the time from the kill until an event is acknowledged again; the
promotion is part of it.
"""

import os
import statistics
import tempfile
import time
from pathlib import Path

from tests.prove.chaos_faults import until
from tests.prove.chaos_world import world

RESUME_SECONDS = 60


def prove(folder: Path, times: int) -> str:
    outages: list[float] = []
    promotions: list[float] = []
    with world(folder, postgres=True, services_too=False, disk_size="2g") as found:
        assert found.pair is not None
        found.goes_on("the start")
        for number in range(1, times + 1):
            killed = time.monotonic()
            found.pair.fail_over()
            promotions.append(time.monotonic() - killed)
            before = found.progress()[0]
            until(lambda b=before: found.progress()[0] > b, f"intake after failover {number}", RESUME_SECONDS)
            outages.append(time.monotonic() - killed)
            found.goes_on(f"failover {number}")
            found.check_alive(f"failover {number}")
            found.pair.join()
            away = f"intake away for {outages[-1]:.1f} s, {promotions[-1]:.1f} s of it promotion"
            print(f"   {number}: {away}; {found.progress()}", flush=True)
        kept = found.reckon()
    middle = statistics.median(outages)
    promoted = statistics.median(promotions)
    return f"{times} failovers, intake away {middle:.1f} s (median; {promoted:.1f} s of it promotion), at most {max(outages):.1f} s; {kept}"


def main() -> str:
    """`PROVE_FAILOVERS=3 ./dev prove postgres_failover` for fewer."""
    with tempfile.TemporaryDirectory(prefix="patra-failover-") as folder:
        return prove(Path(folder), int(os.environ.get("PROVE_FAILOVERS", "20")))
