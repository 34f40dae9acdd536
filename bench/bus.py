"""Events published and consumed a second with exactly-once effect, beside the plain limit and procrastinate; latency.

The plain limit is a raw driver loop that writes the same rows to the same tables, one durable commit a set: to publish, the
log and one group's line; to consume, the inbox, the effect, and the line's end. It checks no schema, producer or key, and
knows no order, failure or second group. procrastinate (when it is installed) runs jobs at least once: its effect may
happen twice. Latency is measured with the duties of the bus in threads of one process, one event every 20 ms.
"""

import itertools
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import psycopg
from tests import services

from bench.harness import Case, Contender, Running
from patra.bus import publish as rules
from patra.bus.bus import Bus
from patra.bus.catalogue import load
from patra.bus.dispatcher import Dispatcher
from patra.bus.envelope import Envelope
from patra.bus.runtime import BusEngine
from patra.bus.store import groups
from patra.kernel.clock import SystemClock
from patra.kernel.db import Database, Tx, migrate, open_database
from patra.kernel.db.queries import statement

GROUP = "bench"
EFFECT = statement("effect", "INSERT INTO effect (event_id) SELECT event_id FROM rows", "event_id text")
_numbers = itertools.count()
_encode = msgspec.json.Encoder().encode

EVENT = (
    "INSERT INTO bus_event (seq, event_id, major, minor, event_type, identity, fingerprint, producer, tenant_id, trace_id, "
    "correlation_id, order_key, published_at, body) "
)
LINE = "INSERT INTO bus_delivery (group_id, seq, order_key, due_at) "
INBOX = "INSERT INTO krn_ledger (scope, key, fingerprint, cycle, first_at, expires_at) "
DUE = "SELECT d.seq, e.event_id, e.body FROM bus_delivery d JOIN bus_event e ON e.seq = d.seq WHERE d.group_id = 1 ORDER BY d.due_at, d.seq LIMIT "


def cases(quick: bool) -> Iterator[Case]:
    events = 2_000 if quick else 20_000
    with ExitStack() as stack:
        stores: list[Store] = [SQLite()]
        if not quick:
            stores.append(Postgres(stack.enter_context(services.postgres(durable=True))))
        for store in stores:
            for kind, words in (("error.recorded", ""), ("job.succeeded", ", in order per key")):
                for size in (100, 1_000):
                    yield publish_case(store, kind, words, size, events)
                yield consume_case(store, kind, words, 1_000, events)


def facts(quick: bool) -> dict[str, str]:
    found = {"sqlite p50, p99": latency(lambda folder: f"sqlite:///{folder}/bus.db", "", quick)}
    if not quick:
        with services.postgres(durable=True) as url, services.nats() as nats_url:
            found["postgres p50, p99"] = latency(lambda _: url, "", quick)
            found["nats p50, p99"] = latency(lambda folder: f"sqlite:///{folder}/bus.db", nats_url, quick)
    return found


def latency(url: Callable[[str], str], nats_url: str, quick: bool) -> str:
    """From the call of publish to the handler, and from the commit to the handler."""
    with tempfile.TemporaryDirectory(prefix="patra-bench-") as folder:
        db = open_database(url(folder))
        migrate(db, ["patra.kernel", "patra.bus"])
        engine = BusEngine(db, SystemClock(), load(), nats_url=nats_url)
        seen: dict[str, float] = {}

        @engine.bus.consumer("error.recorded", group=GROUP)
        def _(tx: Tx, event: Any) -> None:
            del tx
            seen[event.event_id] = time.perf_counter()

        db.run(engine.bus.join)
        stop = threading.Event()

        def loop(run_once: Callable[[], object]) -> None:
            while not stop.is_set():
                run_once()

        duties = [d for d in engine.duties() if d.every == 1] + engine.group_duties(GROUP)
        threads = [threading.Thread(target=loop, args=(duty.run_once,), daemon=True) for duty in duties]
        for thread in threads:
            thread.start()
        calls: dict[str, tuple[float, float]] = {}
        for _ in range(100 if quick else 500):
            made = envelope(engine.bus, "error.recorded")
            before = time.perf_counter()
            db.run(lambda tx, made=made: engine.bus.publish(tx, made))
            calls[made.event_id] = (before, time.perf_counter())
            time.sleep(0.02)
        until = time.monotonic() + 10
        while len(seen) < len(calls) and time.monotonic() < until:
            time.sleep(0.05)
        stop.set()
        for thread in threads:
            thread.join(2)
        engine.close()
        db.close()
    whole = sorted((seen[e] - before) * 1e3 for e, (before, _) in calls.items() if e in seen)
    rest = sorted((seen[e] - after) * 1e3 for e, (_, after) in calls.items() if e in seen)
    return f"publish to effect {_quantiles(whole)} ms; commit to effect {_quantiles(rest)} ms"


def _quantiles(values: list[float]) -> str:
    return f"{values[len(values) // 2]:.1f}, {values[int(len(values) * 0.99)]:.1f}"


def envelope(bus: Bus, kind: str) -> Envelope:
    number = next(_numbers)
    payload = dict(bus.catalogue.types[kind].contracts[1].examples[0])
    if "job_id" in payload:
        payload["job_id"] = f"job_{number % 1000}"
    names = {
        "tenant_id": "t",
        "project_id": "p",
        "trace_id": f"trace-{number}",
        "correlation_id": f"run-{number // 10}",
    }
    return bus.envelope(kind, payload, idempotency_key=f"key-{number}", **names)


class Store:
    """Opens fresh stores, ours and one for a raw loop, with a group that has joined both."""

    name: str

    @contextmanager
    def open(self, kind: str) -> Iterator[tuple[Database, Bus, Any]]:
        raise NotImplementedError

    def raw_publish(self, connection: Any, events: list[tuple], lines: list[tuple]) -> None:
        raise NotImplementedError

    def raw_consume(self, connection: Any, size: int) -> int:
        raise NotImplementedError

    def others(self, kind: str) -> "Procrastinate | None":
        del kind
        return None


class SQLite(Store):
    name = "SQLite"

    @contextmanager
    def open(self, kind: str) -> Iterator[tuple[Database, Bus, Any]]:
        with tempfile.TemporaryDirectory(prefix="patra-bench-") as folder:
            ours, raw = (open_database(f"sqlite:///{Path(folder) / name}.db") for name in ("ours", "raw"))
            bus = prepared(ours, kind)
            prepared(raw, kind)
            yield ours, bus, raw._writer  # noqa: SLF001  with the same pragmas as ours
            ours.close()
            raw.close()

    def raw_publish(self, connection: Any, events: list[tuple], lines: list[tuple]) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(f"{EVENT} VALUES ({','.join('?' * 14)})", events)
        connection.executemany(f"{LINE} VALUES (?,?,?,?)", lines)
        connection.execute("COMMIT")

    def raw_consume(self, connection: Any, size: int) -> int:
        connection.execute("BEGIN IMMEDIATE")
        found = connection.execute(DUE + str(size)).fetchall()
        connection.executemany(f"{INBOX} VALUES ('raw',?,?,1,0,9)", [(e.encode(), b"") for _, e, _ in found])
        connection.executemany("INSERT INTO effect (event_id) VALUES (?)", [(e,) for _, e, _ in found])
        connection.executemany("DELETE FROM bus_delivery WHERE group_id = 1 AND seq = ?", [(s,) for s, _, _ in found])
        connection.execute("COMMIT")
        return len(found)


class Postgres(Store):
    name = "PostgreSQL"

    def __init__(self, url: str) -> None:
        self._url = url

    @contextmanager
    def open(self, kind: str) -> Iterator[tuple[Database, Bus, Any]]:
        names = [f"b{os.getpid()}_{next(_numbers)}" for _ in range(2)]
        with psycopg.connect(self._url, autocommit=True) as admin:
            for name in names:
                admin.execute(f"CREATE SCHEMA {name}".encode())
            ours, raw = (open_database(f"{self._url}?options=-csearch_path%3D{name}") for name in names)
            bus = prepared(ours, kind)
            prepared(raw, kind)
            with psycopg.connect(raw.url, autocommit=True) as connection:
                yield ours, bus, connection
            ours.close()
            raw.close()
            for name in names:
                admin.execute(f"DROP SCHEMA {name} CASCADE".encode())

    def raw_publish(self, connection: Any, events: list[tuple], lines: list[tuple]) -> None:
        columns = "seq bigint, event_id text, major bigint, minor bigint, event_type text, identity bytea, fingerprint bytea, producer text, tenant_id text, trace_id text, correlation_id text, order_key bytea, published_at bigint, body text"
        with connection.transaction():
            connection.execute(
                f"{EVENT} SELECT * FROM json_to_recordset(%s::json) AS r({columns})", [_json(columns, events)]
            )
            columns = "group_id bigint, seq bigint, order_key bytea, due_at bigint"
            connection.execute(
                f"{LINE} SELECT * FROM json_to_recordset(%s::json) AS r({columns})", [_json(columns, lines)]
            )

    def raw_consume(self, connection: Any, size: int) -> int:
        with connection.transaction():
            found = connection.execute(f"{DUE} {size} FOR UPDATE OF d SKIP LOCKED").fetchall()
            ids, seqs = [e for _, e, _ in found], [s for s, _, _ in found]
            connection.execute(
                f"{INBOX} SELECT 'raw', decode(md5(e), 'hex'), ''::bytea, 1, 0, 9 FROM unnest(%s::text[]) e", [ids]
            )
            connection.execute("INSERT INTO effect (event_id) SELECT unnest(%s::text[])", [ids])
            connection.execute("DELETE FROM bus_delivery WHERE group_id = 1 AND seq = ANY(%s)", [seqs])
        return len(found)

    def others(self, kind: str) -> "Procrastinate | None":
        del kind
        return Procrastinate(self._url) if find_spec("procrastinate") else None


def _json(columns: str, rows: list[tuple]) -> str:
    names = [column.split()[0] for column in columns.split(", ")]
    hexed = [[f"\\x{v.hex()}" if isinstance(v, bytes) else v for v in row] for row in rows]
    return _encode([dict(zip(names, row, strict=True)) for row in hexed]).decode()


class Procrastinate:
    """The usual job queue on PostgreSQL: one effect a job, at least once."""

    def __init__(self, url: str) -> None:
        import procrastinate

        self._schema = f"p{os.getpid()}_{next(_numbers)}"
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute(f"CREATE SCHEMA {self._schema}".encode())
        self.url = f"{url}?options=-csearch_path%3D{self._schema}"
        connector = procrastinate.SyncPsycopgConnector(conninfo=self.url)
        self._app = procrastinate.App(connector=connector)
        effects = psycopg.connect(self.url, autocommit=True)
        effects.execute("CREATE TABLE effect (event_id TEXT)")

        @self._app.task(name="effect")
        def effect(body: dict[str, Any]) -> None:
            effects.execute("INSERT INTO effect (event_id) VALUES (%s)", [body["event_id"]])

        self._task = effect
        self._app.open()
        self._app.schema_manager.apply_schema()

    def publish(self, bodies: list[dict[str, Any]]) -> None:
        self._task.batch_defer(*[{"body": body} for body in bodies])

    def consume(self) -> None:
        self._app.run_worker(wait=False, install_signal_handlers=False, listen_notify=False)


def prepared(db: Database, kind: str) -> Bus:
    migrate(db, ["patra.kernel", "patra.bus"])
    bus = Bus(load(), SystemClock())

    @bus.batch_consumer(kind, group=GROUP)
    def _(tx: Tx, events: Any) -> None:
        tx.execute(EFFECT, rows=[(event.event_id,) for event in events])

    db.run(lambda tx: tx.script("CREATE TABLE effect (event_id TEXT NOT NULL)"))
    db.run(bus.join)
    assert db.read(lambda tx: groups.find(tx, GROUP)) is not None
    return bus


def raw_rows(bus: Bus, made: list[Envelope]) -> tuple[list[tuple], list[tuple]]:
    events: list[tuple] = []
    lines: list[tuple] = []
    now = bus.clock.now()
    for envelope_ in made:
        c = rules.examine(bus.catalogue, envelope_)
        assert isinstance(c, rules.Candidate)
        seq = next(_numbers)
        e = c.envelope
        events.append(
            (seq, e.event_id, c.major, c.minor, e.event_type, c.identity, c.fingerprint, e.producer, e.tenant_id, e.trace_id,
             e.correlation_id, c.order_key, now, c.body)
        )  # fmt: skip
        lines.append((1, seq, c.order_key, now))
    return events, lines


def publish_case(store: Store, kind: str, words: str, size: int, events: int) -> Case:
    @contextmanager
    def opened() -> Iterator[Running]:
        with store.open(kind) as (db, bus, raw):
            other = store.others(kind)

            def make() -> Any:
                made = [envelope(bus, kind) for _ in range(events)]
                return made, raw_rows(bus, made)

            def ours(given: Any) -> None:
                for at in range(0, events, size):
                    db.run(lambda tx, part=given[0][at : at + size]: bus.publish_many(tx, part))

            def plain(given: Any) -> None:
                rows, lines = given[1]
                for at in range(0, events, size):
                    store.raw_publish(raw, rows[at : at + size], lines[at : at + size])

            contenders = [Contender(name="patra bus", run=ours), Contender(name="raw driver, no checks", run=plain)]
            if other is not None:

                def theirs(given: Any) -> None:
                    for at in range(0, events, size):
                        other.publish([{"event_id": e.event_id, **e.payload} for e in given[0][at : at + size]])

                contenders.append(Contender(name="procrastinate, batch_defer", run=theirs))
            yield Running(contenders=contenders, make=make, units=events)

    return Case(name=f"{store.name}: publish {kind}{words}, {size} a transaction", unit="events/s", open=opened)


def consume_case(store: Store, kind: str, words: str, size: int, events: int) -> Case:
    @contextmanager
    def opened() -> Iterator[Running]:
        with store.open(kind) as (db, bus, raw):
            other = store.others(kind)
            dispatcher = Dispatcher(db, bus, GROUP, batch=size)

            def make() -> None:
                """Fills the line of whoever comes next: what another left is not counted twice."""
                drained(ours)
                drained(plain)
                made = [envelope(bus, kind) for _ in range(events)]
                for at in range(0, events, 1_000):
                    db.run(lambda tx, part=made[at : at + 1_000]: bus.publish_many(tx, part))
                rows, lines = raw_rows(bus, made)
                store.raw_publish(raw, rows, lines)
                if other is not None:
                    with suppress(Exception):
                        other.consume()
                    other.publish([{"event_id": e.event_id, **e.payload} for e in made])

            def drained(work: Callable[[Any], None]) -> None:
                work(None)

            def ours(_: Any) -> None:
                while dispatcher.run_once().busy:
                    pass

            def plain(_: Any) -> None:
                while store.raw_consume(raw, size):
                    pass

            contenders = [Contender(name="patra bus, effect once", run=ours), Contender(name="raw driver", run=plain)]
            if other is not None:
                contenders.append(Contender(name="procrastinate, at least once", run=lambda _: other.consume()))
            yield Running(contenders=contenders, make=make, units=events)

    return Case(name=f"{store.name}: consume {kind}{words}, {size} a transaction", unit="events/s", open=opened)
