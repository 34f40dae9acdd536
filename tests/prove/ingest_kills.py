"""Executors killed with -9 twenty times in one harvest: same result, a batch at most read again for each kill, no gap.

The provider fails now and then and takes its time; one source, many windows side by side, each list several pages long.
The watermark is looked at all the while: every record before it must have landed at that moment. In the end ids and
update times are the provider's, and of the pages that were answered no more were asked for again than runs had died.
"""

import sys
import tempfile
from contextlib import ExitStack

from patra.demo.hostile import Habits, Provider, crowded, serving
from patra.ingest.executor import Executor
from patra.ingest.planner import Planner
from patra.ingest.running_store import Taken
from patra.kernel.clock import SECOND, SystemClock
from patra.kernel.db import Database, Tx, open_database
from patra.kernel.db.queries import statement
from patra.kernel.telemetry import setup_logging
from tests import services
from tests.prove.crew import Crew, Life
from tests.prove.ingest_harvest import (
    CURSORS,
    FAILED,
    LANDED,
    LEFT,
    Way,
    difference,
    load,
    opened,
    tree,
    trigger,
    window,
    working,
)

MODULE = "tests.prove.ingest_kills"
WAY = Way("OFFSET", xml=False, two_phase=False)
DIED = statement("died", "SELECT count(*) FROM ing_task_run WHERE reason_code = 'i_lease_expired'")


def main() -> str:
    setup_logging(level="error")
    with services.postgres(durable=True) as url, services.redis() as redis:
        many = prove(url, redis=redis, processes=4, records=6000, kills=20, at_least=20)
    with tempfile.TemporaryDirectory(prefix="patra-proof-") as folder:
        one = prove(f"sqlite:///{folder}/patra.db", processes=1, records=6000, kills=20, at_least=20)
    return f"PostgreSQL, 4 processes: {many}; SQLite, 1 process: {one}"


def prove(
    url: str, *, processes: int, records: int, kills: int, at_least: int, redis: str = "", life: int = 8, ttl: int = 4
) -> str:
    """`life`: batches after which, at most, one may be killed; `ttl`: seconds until the lease of a dead one is over."""
    start, end = window(4)
    with ExitStack() as stack:
        db = stack.enter_context(opened(url))
        provider = Provider(crowded(records, start, end, crowd=False), Habits(seed=9, fails=30, latency=0.01))
        load(db, tree(WAY, stack.enter_context(serving(provider))))
        planner = Planner(db, SystemClock())
        planner.trigger(trigger(WAY.source, since=start, until=end))
        truth = provider.truth
        jobs = [["work", url, redis, str(life), str(ttl)] for _ in range(processes)]
        crew = stack.enter_context(Crew(MODULE, jobs, most_kills=kills))
        looks = 0

        def missing() -> str:
            nonlocal looks
            looks += 1
            no_gap(db, truth)
            planner.run_once()
            left = db.read(lambda tx: tx.fetch(LEFT))[0][0]
            return f"{left} tasks" if left else ""

        crew.kill_until(missing, every=0.2, limit=900)
        failed = db.read(lambda tx: tx.fetch(FAILED))
        assert not failed, failed
        landed, mark = db.read(_state)
        assert landed == truth, difference(landed, truth)
        assert mark == end
        died = db.read(lambda tx: tx.fetch(DIED))[0][0]
    answered = [one.path for one in provider.asked if one.status == 200]
    again = len(answered) - len(set(answered))
    assert again <= died, f"{again} pages were asked for again, and {died} runs died"
    assert crew.kills >= at_least, f"only {crew.kills} kills: nothing is proved"
    return (
        f"{records} records, {crew.kills} kills, {died} runs died, {again} pages asked for again, "
        f"{looks} looks at the watermark"
    )


def no_gap(db: Database, truth: dict[str, int]) -> None:
    """Every record before the watermark has landed."""
    landed, mark = db.read(_state)
    lost = [one for one, at in truth.items() if mark is not None and at < mark and one not in landed]
    assert not lost, f"the watermark stands at {mark}, and {len(lost)} records before it are not there: {lost[:5]}"


def _state(tx: Tx) -> tuple[dict[str, int], int | None]:
    landed = dict(tx.fetch(LANDED, {"source": WAY.source}))
    cursors = tx.fetch(CURSORS, {"source": WAY.source})
    return landed, next((at for operation, at, _ in cursors if operation == "HARVEST"), None)


class Mortal(Executor):
    """An executor that counts its batches, since after some of them it may be killed."""

    life: Life

    def wait(self, taken: Taken, microseconds: int) -> bool:
        self.life.turn()
        return super().wait(taken, microseconds)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["work", store, redis_, most, seconds]:
            setup_logging(level="error")
            Mortal.life = Life(int(most))
            working(open_database(store), redis_, lambda: False, made=Mortal, ttl=int(seconds) * SECOND)
        case _:
            print(main())
