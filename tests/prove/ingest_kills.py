"""Executors killed with -9 twenty times in one harvest: same result, a batch at most read again for each kill, no gap.

Three sources at once, many windows side by side, each list several pages long, providers that fail now and then and take
their time. One keeps its promises; the others, a search with details by page and a list by token, have records without
an id and one list that is broken for good, short and without its next link (`broken_promises`). The watermarks are
looked at all the while: every record before them must have landed at that moment. When nothing is left, every hole of
the broken lists is told as INCOMPLETE. Then they are mended and harvested again, and in the end ids and update
times are the providers'. Of the pages that the sound provider answered no more were asked for again than runs had died.
"""

import sys
import tempfile
import time
from contextlib import ExitStack

from msgspec.structs import replace

from patra.ingest.execution.executor import Executor
from patra.ingest.landing.store import LeasedTask
from patra.ingest.planning.planner import Planner
from patra.ingest.planning.slicing.windows import Span
from patra.kernel.clock import SECOND, SystemClock
from patra.kernel.db import Database, open_database
from patra.kernel.db.queries import statement
from patra.kernel.telemetry import setup_logging
from tests import services
from tests.prove.broken_promises import broken_instant, counted_nameless, no_gap, state_of, told_holes
from tests.prove.crew import Crew, Life
from tests.prove.ingest_harvest import (
    FAILED,
    INCOMPLETE,
    LEFT,
    NAMELESS_EVERY,
    Way,
    difference,
    load,
    opened,
    tree,
    trigger,
    window,
    working,
)
from tests.support.hostile_provider import Habits, Provider, crowded, serving

MODULE = "tests.prove.ingest_kills"
SOUND = Way("OFFSET", xml=False, two_phase=False)
BROKEN = (Way("PAGE", xml=False, two_phase=True), Way("TOKEN", xml=True, two_phase=False))
DIED = statement(
    "died",
    "SELECT count(*) FROM ing_task_run r JOIN ing_task t ON t.task_id = r.task_id"
    " WHERE r.reason_code = 'i_lease_expired' AND t.provenance_code = :source",
)


def main() -> str:
    setup_logging(level="error")
    found: list[str] = []
    for processes, shared in ((1, False), (1, True), (4, True)):
        with tempfile.TemporaryDirectory(prefix="patra-proof-") as folder, ExitStack() as stack:
            redis = stack.enter_context(services.redis()) if shared else ""
            found.append(_case(f"sqlite:///{folder}/patra.db", "SQLite", processes, redis))
    for processes, shared in ((1, False), (1, True), (4, False), (4, True)):
        with services.postgres(durable=True) as url, ExitStack() as stack:
            redis = stack.enter_context(services.redis()) if shared else ""
            found.append(_case(url, "PostgreSQL", processes, redis))
    return "; ".join(found)


def _case(url: str, store: str, processes: int, redis: str) -> str:
    began = time.monotonic()
    figures = prove(url, redis=redis, processes=processes, records=1000, kills=20, at_least=20)
    gate = "Redis" if redis else "no Redis"
    said = f"{store}, {processes} process{'es' if processes > 1 else ''}, {gate}: {figures}"
    print(f"   {said} ({time.monotonic() - began:.0f} s)", flush=True)
    return said


def prove(
    url: str, *, processes: int, records: int, kills: int, at_least: int, redis: str = "", life: int = 8, ttl: int = 4
) -> str:
    """`life`: batches after which, at most, one may be killed; `ttl`: seconds until the lease of a dead one is over."""
    start, end = window(4)
    items = crowded(records, start, end, crowd=False)
    calm = Habits(seed=9, fails=30, latency=0.01)
    torn = replace(calm, nameless=NAMELESS_EVERY, broken_at=broken_instant(items))
    with ExitStack() as stack:
        db = stack.enter_context(opened(url))
        providers = {way: Provider(items, calm if way is SOUND else torn) for way in (SOUND, *BROKEN)}
        for way, provider in providers.items():
            load(db, tree(way, stack.enter_context(serving(provider))))
        planner = Planner(db, SystemClock())
        for way in providers:
            planner.trigger(trigger(way.source, since=start, until=end))
        jobs = [["work", url, redis, str(life), str(ttl)] for _ in range(processes)]
        crew = stack.enter_context(Crew(MODULE, jobs, most_kills=kills))
        looks = 0

        def missing() -> str:
            nonlocal looks
            looks += 1
            for way, provider in providers.items():
                no_gap(db, way.source, provider.named_truth)
            planner.run_once()
            left = db.read(lambda tx: tx.fetch(LEFT))[0][0]
            return f"{left} tasks" if left else ""

        crew.kill_until(missing, every=0.2, limit=900)
        told = sum(told_holes(db, way.source, way.kind, providers[way], Span(start, end)) for way in BROKEN)
        known = _incomplete(db)
        for way in BROKEN:
            providers[way].habits = replace(torn, broken_at=0)
            planner.trigger(trigger(way.source, until=end))
        crew.kill_until(missing, every=0.2, limit=900)
        assert _incomplete(db) <= known, "a list that is whole again was not believed"
        for way, provider in providers.items():
            landed, mark = db.read(lambda tx, s=way.source: state_of(tx, s))
            assert landed == provider.named_truth, f"{way}: {difference(landed, provider.named_truth)}"
            assert mark == end, f"{way}: {mark}"
            counted_nameless(db, way.source, way.kind, provider)
        died = db.read(lambda tx: tx.fetch(DIED, {"source": SOUND.source}))[0][0]
    answered = [one.path for one in providers[SOUND].asked if one.status == 200]
    again = len(answered) - len(set(answered))
    assert again <= died, f"{again} pages were asked for again, and {died} runs died"
    assert crew.kills >= at_least, f"only {crew.kills} kills: nothing is proved"
    return (
        f"3 sources of {records} records, {crew.kills} kills, {died} runs of the sound one died, {again} pages asked "
        f"for again, {told} windows told as incomplete, then mended, {looks} looks at the watermarks"
    )


def _incomplete(db: Database) -> set[str]:
    """The tasks that are incomplete; nothing else may have failed."""
    failed = dict(db.read(lambda tx: tx.fetch(FAILED)))
    assert set(failed.values()) <= {INCOMPLETE}, failed
    return set(failed)


class Mortal(Executor):
    """An executor that counts its batches, since after some of them it may be killed."""

    life: Life

    def wait(self, taken: LeasedTask, microseconds: int) -> bool:
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
