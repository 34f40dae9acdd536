"""A primary and its synchronous standby: what is acknowledged is on both, and the server that takes writes is found.

The short form of `./dev prove postgres_failover`. The test that kills the primary comes last: the servers are shared.
"""

import itertools
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from patra.attribution.decision.ack import BatchAck
from patra.attribution.verify import verify
from patra.attribution.writer import Engine, Overloaded
from patra.bus.transports.notifier import PostgresWaker
from patra.kernel.clock import SystemClock
from patra.kernel.db import Database, Tx, migrate, open_database
from patra.kernel.db.queries import statement
from patra.kernel.errors import StoreUnavailable
from tests import services
from tests.contract.kernel.tables import add, create_thing, names
from tests.e2e.attribution.clients import body, event
from tests.prove.attribution_kills import Seen
from tests.prove.chaos_faults import Postgres, until
from tests.prove.postgres_pair import Pair

CANCEL = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
IN_RECOVERY = statement("in_recovery", "SELECT CAST(pg_is_in_recovery() AS text)")


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with services._folder("pair", within=services._memory()) as folder:
        folder.chmod(0o755)  # the servers run as another account
        pair = Pair(folder / "one", folder / "two", fsync=False)
        try:
            pair.start()
            yield pair
        finally:
            pair.close()


@pytest.fixture
def db(pair: Pair) -> Iterator[Database]:
    db = open_database(pair.url, wait=60)
    yield db
    db.close()


def url_of(*servers: Postgres) -> str:
    hosts = ",".join(f"127.0.0.1:{one.port}" for one in servers)
    return f"postgresql://postgres@{hosts}/postgres?connect_timeout=5"


def test_a_commit_that_stopped_waiting_for_the_standby_is_unknown(pair: Pair, db: Database) -> None:
    create_thing(db)
    pair.standby.signal(signal.SIGSTOP)
    try:
        with ThreadPoolExecutor(1) as pool, pair.connect(pair.primary) as admin:
            writing = pool.submit(db.run, lambda tx: add(tx, "here alone"))
            until(lambda: admin.execute(CANCEL).fetchall() or writing.done(), "the commit to wait for the standby")
            with pytest.raises(StoreUnavailable, match="store_commit_unknown"):
                writing.result(60)
    finally:
        pair.standby.signal(signal.SIGCONT)
    db.run(lambda tx: add(tx, "on both"))
    assert names(db) == ["here alone", "on both"]


def test_a_standby_takes_no_writes_which_is_an_outage_and_may_be_read(pair: Pair) -> None:
    db = open_database(url_of(pair.standby), wait=5)

    def within(tx: Tx) -> None:
        with tx.savepoint():
            add(tx, "never")

    assert db.read(lambda tx: tx.fetch(IN_RECOVERY)) == [("true",)]
    for work in (lambda tx: add(tx, "never"), within):
        with pytest.raises(StoreUnavailable, match="takes no writes"):
            db.run(work)
    db.close()


def test_a_bus_listens_to_the_server_that_takes_writes_and_says_so_when_there_is_none(pair: Pair) -> None:
    waker = PostgresWaker(url_of(pair.standby, pair.primary))
    assert waker.wait(0)  # it listens from now on
    with pair.connect(pair.primary) as connection:
        connection.execute("NOTIFY patra_bus")
    assert waker.wait(60)
    waker.close()
    deaf = PostgresWaker(url_of(pair.standby))
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            deaf.wait(0)
    deaf.close()


def test_a_primary_killed_under_load_costs_no_acknowledged_event_and_doubles_none(pair: Pair, db: Database) -> None:
    migrate(db, ["patra.kernel", "patra.app", "patra.attribution"])
    engine = Engine(db, SystemClock())
    acknowledged: list[str] = []
    over = threading.Event()

    def taken(batch: bytes) -> bool:
        answer = engine.submit(batch)
        if isinstance(answer, Overloaded) or answer.exception(60) or not isinstance(reply := answer.result(), BatchAck):
            return False
        acknowledged.extend(item.serverEventKey for item in reply.ackItems)
        return True

    def send(client: int) -> None:
        for number in itertools.count():
            name = f"{client}-{number}"
            batch = body(f"b-{name}", [event(kind, name, f"{name}-{kind}") for kind in ("ad_filled", "impression")])
            while not taken(batch):  # the same bytes again, as an SDK must
                if over.wait(0.05):
                    return
            if over.is_set():
                return

    with ThreadPoolExecutor(2) as pool:
        senders = [pool.submit(send, client) for client in range(2)]
        try:
            until(lambda: len(acknowledged) > 20, "events to be acknowledged")
            pair.fail_over()
            before = len(acknowledged)
            until(lambda: len(acknowledged) > before + 20, "intake to resume by itself")
        finally:
            over.set()
        for one in senders:
            one.result()
    engine.close()
    seen = Seen()
    seen.look(db)
    seen.check(acknowledged)
    assert verify(db, SystemClock()).findings == []
