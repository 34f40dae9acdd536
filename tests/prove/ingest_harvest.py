"""A provider with every bad habit, harvested in every way to page, by 1 and 4 processes: what lands is its truth.

One provider for each kind of paging, in JSON and XML, giving records or ids with details; each throttles, fails, cuts
connections, truncates bodies, answers with HTML, repeats pages, lets cursors expire, gives short pages and loses next
links now and then, has records without an id, moves records while they are read, crowds half of them into one hour and
caps the depth of its lists; and one list of each is broken for good (`broken_promises`). All are harvested at once from
one store by four executors, in one and in four processes, on SQLite and PostgreSQL, with and without a rate gate in
Redis. (SQLite without Redis is for one process: ruling I12.) As long as a list is broken, every hole is told and the
watermark stands before it. When it is mended, ids and update times must be the provider's, the watermark at the end of
the window, every place without an id counted, and no provider may have seen more requests in any second than it allows.
Then HARVEST, BACKFILL and UPDATE of one source run at once.
"""

import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import msgspec
import yaml
from msgspec.structs import replace

from patra.ingest.execution.compiled_plan import Options
from patra.ingest.execution.executor import Executor, Limits, Shared
from patra.ingest.fetching.resilience import Thresholds
from patra.ingest.fetching.runtime import Runtime
from patra.ingest.http.client import Transport
from patra.ingest.landing.window_ledger import incomplete
from patra.ingest.packs import registry
from patra.ingest.packs.compiler import check_pack, load_pack
from patra.ingest.packs.problems import errors
from patra.ingest.packs.schema import Pack
from patra.ingest.packs.yaml.yaml_document import read_document
from patra.ingest.planning.planner import Planner
from patra.ingest.planning.slicing.windows import Span
from patra.ingest.planning.trigger import Trigger
from patra.ingest.ratelimit.database import DatabaseGate
from patra.ingest.ratelimit.limiter import Gate, LocalGate
from patra.ingest.ratelimit.redis import RedisGate
from patra.ingest.vocabulary.codes import Operation
from patra.kernel.clock import DAY, HOUR, MINUTE, SECOND, Clock, SystemClock
from patra.kernel.db import Database, migrate, open_database
from patra.kernel.db.queries import statement
from patra.kernel.telemetry import setup_logging
from tests import services
from tests.contract.ingest.running.world import pack
from tests.prove.broken_promises import LANDED, UNPROMISED, broken_instant, counted_nameless, told_holes
from tests.prove.crew import Crew
from tests.support.hostile_provider import Habits, Provider, crowded, serving

MODULE = "tests.prove.ingest_harvest"
KINDS = ("OFFSET", "PAGE", "TOKEN", "URL", "LINK", "TIME")
DEPTH = 60
EXECUTORS = 4
RATE, BURST, LIMIT = 60, 8, 80
"""What the packs say, and what a provider allows in any second. Whatever the speed of the machine, no second sees more
than BURST + RATE permits, and one request more of each executor that was let go before it and arrives in it; an executor
that cannot reach Redis in time may send two of its own: 8 + 60 + 4 * 3 = 80."""
PATIENCE = 900.0
RECORDS = 200
NAMELESS_EVERY = 25

LEFT = statement(
    "left",
    "SELECT (SELECT count(*) FROM ing_task WHERE status_code IN ('QUEUED', 'DISPATCHED', 'EXECUTING'))"
    " + (SELECT count(*) FROM ing_reslice_request WHERE status_code = 'OPEN')",
)
FAILED = statement(
    "failed", "SELECT task_id, reason_code FROM ing_task WHERE status_code NOT IN ('SUCCEEDED', 'PARTIAL')"
)
INCOMPLETE = "i_incomplete"
OPEN = statement("open", "SELECT count(*) FROM ing_quarantine WHERE provenance_code = :source AND status_code = 'OPEN'")
CURSORS = statement(
    "cursors",
    "SELECT operation_code, normalized_instant, cursor_value FROM ing_cursor WHERE provenance_code = :source",
)
EVENTS = statement(
    "events",
    "SELECT operation_code, namespace_key, prev_instant, new_instant FROM ing_cursor_event"
    " WHERE provenance_code = :source ORDER BY event_id",
)


class Way(msgspec.Struct, frozen=True):
    """A way to give records."""

    kind: str
    xml: bool
    two_phase: bool

    @property
    def source(self) -> str:
        return f"{self.kind}-{'xml' if self.xml else 'json'}-{'ids' if self.two_phase else 'records'}".lower()


def ways(kinds: Iterable[str] = KINDS) -> list[Way]:
    """Ids without update times cannot be paged by time."""
    every = [Way(kind, xml, two) for kind in kinds for xml in (False, True) for two in (False, True)]
    return [way for way in every if not (way.two_phase and way.kind == "TIME")]


def main() -> str:
    setup_logging(level="error")
    found: list[str] = []
    for processes, shared in ((0, False), (1, True), (4, True)):
        with tempfile.TemporaryDirectory(prefix="patra-proof-") as folder, ExitStack() as stack:
            redis = stack.enter_context(services.redis()) if shared else ""
            found.append(_case(f"sqlite:///{folder}/patra.db", "SQLite", processes, redis))
    for processes, shared in ((1, False), (1, True), (4, False), (4, True)):
        with services.postgres(durable=True) as url, ExitStack() as stack:
            redis = stack.enter_context(services.redis()) if shared else ""
            found.append(_case(url, "PostgreSQL", processes, redis))
    with services.postgres(durable=True) as url, services.redis() as redis:
        found.append("at once: " + at_once(url, records=2000, redis=redis, processes=4))
    with tempfile.TemporaryDirectory(prefix="patra-proof-") as folder:
        found.append("at once on SQLite: " + at_once(f"sqlite:///{folder}/patra.db", records=2000))
    return "; ".join(found)


def _case(url: str, store: str, processes: int, redis: str) -> str:
    began = time.monotonic()
    figures = prove(url, ways(), records=RECORDS, redis=redis, processes=processes)
    gate = "Redis" if redis else "no Redis"
    said = f"{store}, {processes or 'threads of 1'} process{'es' if processes > 1 else ''}, {gate}: {figures}"
    print(f"   {said} ({time.monotonic() - began:.0f} s)", flush=True)
    return said


def prove(url: str, every: list[Way], *, records: int, redis: str = "", processes: int = 0) -> str:
    """Harvest all of them at once; `processes` 0 works in threads of this one. Says how much was asked."""
    start, end = window(2)
    later = end + HOUR
    items = crowded(records, start, end)
    with ExitStack() as stack:
        db = stack.enter_context(opened(url))
        providers = {way: Provider(items, habits(way, end, broken_instant(items))) for way in every}
        for way, provider in providers.items():
            load(db, tree(way, stack.enter_context(serving(provider))))
        stack.enter_context(executors(db, url, redis, processes))
        planner = Planner(db, SystemClock())
        for way in every:
            planner.trigger(trigger(way.source, since=start, until=end))
        known = drained(db, planner)
        told = 0
        for way, provider in providers.items():
            told += told_holes(db, way.source, way.kind, provider, Span(start, end))
            # what moved out of its window is the next one's; lists are whole from now on
            provider.habits = replace(provider.habits, moves=0, broken_at=0, shortens=0, drops_next=0)
            planner.trigger(trigger(way.source, until=later))
        drained(db, planner, known)
        for way, provider in providers.items():
            landed = dict(db.read(lambda tx, s=way.source: tx.fetch(LANDED, {"source": s})))
            assert landed == provider.named_truth, f"{way}: {difference(landed, provider.named_truth)}"
            assert watermark(db, way.source) == later, f"{way}: {watermark(db, way.source)}"
            assert not db.read(lambda tx, s=way.source: incomplete(tx, s)), way
            counted_nameless(db, way.source, way.kind, provider)
            aside = db.read(lambda tx, s=way.source: tx.fetch(OPEN, {"source": s}))[0][0]
            assert bool(aside) == way.xml, f"{way}: {aside} set aside; a null is not a record, an element without id is"
            most = provider.most_in_a_second()
            assert most <= LIMIT, f"{way}: {most} requests in one second"
            assert provider.limited == 0, way
    asked = sum(len(provider.asked) for provider in providers.values())
    bad = sum(1 for provider in providers.values() for one in provider.asked if one.status != 200)
    most = max(provider.most_in_a_second() for provider in providers.values())
    return (
        f"{len(every)} ways, {records} records each, {asked} requests, {bad} refused, {told} windows told as "
        f"incomplete, then mended, at most {most} in a second"
    )


def at_once(url: str, *, records: int, redis: str = "", processes: int = 0) -> str:
    """HARVEST, BACKFILL and UPDATE of one source at the same time: each moves its own cursor, and only its way."""
    start, end = window(4)
    middle, later = start + 2 * DAY, end + HOUR
    way = Way("OFFSET", xml=False, two_phase=False)
    source = way.source
    with ExitStack() as stack:
        db = stack.enter_context(opened(url))
        provider = Provider(crowded(records, start, end, crowd=False), Habits(seed=5, fails=50))
        load(db, tree(way, stack.enter_context(serving(provider))))
        stack.enter_context(executors(db, url, redis, processes))
        planner = Planner(db, SystemClock())
        planner.trigger(trigger(source, since=middle, until=end))
        assert not drained(db, planner)
        first = sorted(provider.truth, key=lambda one: provider.truth[one])[-200:]
        for one in first[:20]:
            provider.change(one, provider.truth[one] + 1)
        planner.trigger(trigger(source, until=later))
        planner.trigger(trigger(source, Operation.BACKFILL, since=start, until=middle, activity="history"))
        planner.trigger(trigger(source, Operation.UPDATE, ids=tuple(first), activity="refresh"))
        assert not drained(db, planner)
        assert dict(db.read(lambda tx: tx.fetch(LANDED, {"source": source}))) == provider.truth
        cursors = {op: (at, value) for op, at, value in db.read(lambda tx: tx.fetch(CURSORS, {"source": source}))}
        assert set(cursors) == {"HARVEST", "BACKFILL", "UPDATE"}, cursors
        assert cursors["HARVEST"][0] == later, cursors
        assert cursors["BACKFILL"][0] == start, cursors
        assert cursors["UPDATE"][1] == max(first), cursors
        events = db.read(lambda tx: tx.fetch(EVENTS, {"source": source}))
        assert len({(op, name) for op, name, _, _ in events}) == 3, "each has a namespace of its own"
        for op, _, before, after in events:
            if before is not None and after is not None:
                assert (after <= before) if op == "BACKFILL" else (after >= before), (op, before, after)
    return f"{records} records, {len(events)} cursor events"


# --- the world of a proof


def habits(way: Way, end: int, broken_at: int) -> Habits:
    return Habits(
        seed=sum(way.source.encode()),
        limit=LIMIT,
        retry_after="1",
        throttles=15,
        fails=80,
        cuts=40,
        truncates=40,
        html=30,
        repeats=40,
        drops_next=20,
        shortens=20,
        nameless=NAMELESS_EVERY,
        broken_at=0 if way.kind in UNPROMISED else broken_at,
        expires=25,
        moves=150,
        move_to=end + SECOND,
        depth=DEPTH if way.kind in {"OFFSET", "PAGE"} else 0,
    )


def tree(way: Way, url: str) -> dict[str, Any]:
    limits = {"maxDepth": DEPTH} if way.kind in {"OFFSET", "PAGE"} else {}
    found = pack(url, way.kind, xml=way.xml, two_phase=way.two_phase, pagination={"pageSize": 12}, limits=limits)
    found["source"] = way.source
    found["defaults"]["http"]["readTimeoutMs"] = 60_000
    found["defaults"]["rateLimit"] = {
        "refillRatePerSec": RATE,
        "burstCapacity": BURST,
        "recoverStepPerSec": 60,
        "coolDown": "PT1S",
    }
    found["defaults"]["retry"] = {"maxAttempts": 10, "baseDelay": "PT0.05S", "maxDelay": "PT0.5S"}
    return found


def window(days: int) -> tuple[int, int]:
    """Whole days that are over, whatever day it is."""
    end = SystemClock().now() // DAY * DAY - 2 * DAY
    return end - days * DAY, end


def trigger(source: str, operation: Operation = Operation.HARVEST, **more: Any) -> Trigger:
    return Trigger(source=source, endpoint="search", operation=operation, **more)


@contextmanager
def opened(url: str) -> Generator[Database]:
    db = open_database(url)
    try:
        migrate(db, ["patra.kernel", "patra.ingest"])
        yield db
    finally:
        db.close()


def load(db: Database, found: dict[str, Any]) -> None:
    document = read_document(yaml.safe_dump(found), "proof.yaml", Pack)
    loaded = load_pack(document)
    assert loaded is not None, [str(problem) for problem in document.problems]
    wrong = errors(check_pack(loaded))
    assert not wrong, [str(problem) for problem in wrong]
    db.run(lambda tx: registry.load(tx, [loaded], by="proof", now=SystemClock().now()))


@contextmanager
def executors(db: Database, url: str, redis: str, processes: int) -> Generator[None]:
    """Four executors: in so many processes, or in threads of this one."""
    if processes:
        with Crew(MODULE, [["work", url, redis, str(EXECUTORS // processes)] for _ in range(processes)]):
            yield
        return
    stopping, trouble = threading.Event(), []

    def work() -> None:
        try:
            working(db, "", stopping.is_set, threads=EXECUTORS)
        except BaseException as error:  # noqa: BLE001  it must be heard of in the thread that waits
            trouble.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()
    if trouble:
        raise trouble[0]


def working(
    db: Database,
    redis: str,
    over: Callable[[], bool],
    *,
    threads: int = 1,
    made: type[Executor] = Executor,
    ttl: int = MINUTE,
) -> None:
    """Take tasks and work on them. Circuits close again soon: the provider's troubles last for one request each."""
    clock = SystemClock()
    transport = Transport()
    gate = _gate(db, redis, clock)
    joined = Runtime(clock=clock, gate=gate, transport=transport, thresholds=Thresholds(circuit=SECOND // 4))
    shared = Shared()

    def one(_: int) -> None:
        executor = made(db, joined, options=Options(ttl=ttl), limits=Limits(per_partition=8), shared=shared)
        while not over():
            if not executor.run_once().tasks:
                time.sleep(0.02)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(one, range(threads)))
    gate.close()
    transport.close()


def _gate(db: Database, redis: str, clock: Clock) -> Gate:
    """As the program chooses it (ruling I12)."""
    if redis:
        return RedisGate(redis, clock)
    return DatabaseGate(db) if db.dialect == "postgres" else LocalGate(clock)


def drained(db: Database, planner: Planner, known: frozenset[str] | None = None) -> frozenset[str]:
    """Wait until everything is done; nothing may have failed but what is incomplete, and given `known`, nothing more.

    Gives the tasks that are incomplete.
    """
    until = time.monotonic() + PATIENCE
    while True:
        planner.run_once()
        left = db.read(lambda tx: tx.fetch(LEFT))[0][0]
        if not left:
            break
        if time.monotonic() > until:
            raise TimeoutError(f"{left} tasks are left after {PATIENCE:.0f} s")
        time.sleep(0.02)
    failed = dict(db.read(lambda tx: tx.fetch(FAILED)))
    assert set(failed.values()) <= {INCOMPLETE}, failed
    assert known is None or set(failed) <= known, sorted(set(failed) - known)
    return frozenset(failed)


def watermark(db: Database, source: str) -> int | None:
    cursors = db.read(lambda tx: tx.fetch(CURSORS, {"source": source}))
    return next((at for operation, at, _ in cursors if operation == "HARVEST"), None)


def difference(landed: dict[str, int], truth: dict[str, int]) -> str:
    lost = sorted(set(truth) - set(landed))
    more = sorted(set(landed) - set(truth))
    other = [one for one in truth if one in landed and landed[one] != truth[one]]
    return f"lost {lost[:5]}, invented {more[:5]}, of another time {other[:5]}"


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["work", store, redis_, threads_]:
            setup_logging(level="error")
            working(open_database(store), redis_, lambda: False, threads=int(threads_))
        case _:
            print(main())
