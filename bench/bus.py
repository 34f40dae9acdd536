"""Events published and consumed a second with exactly-once effect, beside the plain limit and other queues; latency.

The plain limit is a raw driver loop that writes the same rows to the same tables, one durable commit a set: to publish, the
log and one group's line; to consume, the inbox, the effect, and the line's end. It checks no schema, producer or key, and
knows no order, failure or second group. Where order per key is asked for, a second raw loop on PostgreSQL keeps it in the
simplest way: one worker at a time, which takes an event only if it is the first of its key. Latency is measured with the duties of the bus in threads of one process, one event
every 20 ms. Ours and each of the other queues take turns, two rounds, and medians are given. The other queues are installed from PyPI into an environment of their own, build/bench/bus-venv, and run the
same effect, one row inserted durably into the same PostgreSQL (`bus_others.py`); what each promises stands beside it.
"""

import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import psycopg
from tests import services

from bench.harness import BUILD, Case, Contender, Running
from patra.bus.bus import Bus, Sender
from patra.bus.catalogue.catalogue import load
from patra.bus.dispatch.dispatcher import Dispatcher
from patra.bus.publishing import publish as rules
from patra.bus.publishing.envelope import Envelope, encode
from patra.bus.runtime import BusEngine
from patra.bus.store import groups
from patra.bus.transports.nats import NatsStream
from patra.bus.transports.receiver import Receiver
from patra.bus.transports.sender import Outboxed, Parcel, relay
from patra.kernel.clock import SystemClock
from patra.kernel.db import Database, Tx, migrate, open_database
from patra.kernel.db.queries import statement

GROUP = "bench"
ROUNDS = 3  # with these the whole takes some three minutes on two quiet cores; `--rounds 9` for figures that are kept
VENV = BUILD / "bus-venv"
UV = Path(".dev/uv/bin/uv")
OTHERS = ("procrastinate", "dbos", "celery[redis]", "faststream[nats]", "psycopg[binary,pool]")
OUR_PROMISE = "Promise: the effect once, in the transaction of the inbox; order per key, contract checked"
PROMISES = {
    "procrastinate": "Promise: at least once, PostgreSQL",
    "dbos": "Promise: the effect once (transaction of a datasource), PostgreSQL",
    "celery": "Promise: at least once (acks_late), Redis without fsync",
    "faststream": "Promise: at least once (ack after the handler), NATS JetStream",
}
HANDLERS = {
    "insert": "by a handler of one event (`tx.insert`)",
    "write": "by one that writes with `tx.write`",
    "execute": "by one that waits for each (`tx.execute`)",
    "set": "by one of sets",
}
EFFECT = statement("effect", "INSERT INTO effect (event_id) SELECT event_id FROM rows", "event_id text")
_numbers = itertools.count()
_encode = msgspec.json.Encoder().encode

EVENT = (
    "INSERT INTO bus_event (seq, event_id, major, minor, event_type, identity, fingerprint, producer, tenant_id, trace_id, "
    "correlation_id, order_key, published_at, body) "
)
LINE = "INSERT INTO bus_delivery (group_id, seq, order_key, due_at) "
INBOX = "INSERT INTO krn_ledger (scope, key, fingerprint, cycle, first_at, expires_at) "
HEADS = (
    "SELECT k, h.seq FROM unnest(%s::bytea[]) k CROSS JOIN LATERAL "
    "(SELECT seq FROM bus_delivery d WHERE d.group_id = 1 AND d.order_key = k ORDER BY seq LIMIT 1) h"
)
DUE = "SELECT d.seq, e.event_id, e.body FROM bus_delivery d JOIN bus_event e ON e.seq = d.seq WHERE d.group_id = 1 ORDER BY d.due_at, d.seq LIMIT "


def cases(quick: bool) -> Iterator[Case]:
    events = 2_000 if quick else 10_000
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
            found["nats into postgres p50, p99"] = latency(lambda _: url, nats_url, quick)
            found["nats"] = over_nats(nats_url, 10_000)
        found |= beside()
    return found


def over_nats(nats_url: str, events: int) -> str:
    """Each hop by itself, from a SQLite store over the stream into its lines; the plain limit is JetStream's own publish."""
    stream = NatsStream(nats_url, f"B{os.getpid()}", prefix=f"b{os.getpid()}")
    with tempfile.TemporaryDirectory(prefix="patra-bench-") as folder:
        db = open_database(f"sqlite:///{folder}/bus.db")
        bus = prepared(db, "error.recorded", sender=Outboxed())
        made = [envelope(bus, "error.recorded") for _ in range(events)]
        sending, receiving = relay(db, stream, bus.clock), Receiver(db, bus, stream)
        dispatcher = Dispatcher(db, bus, GROUP, batch=1_000)

        def publish() -> None:
            for at in range(0, events, 1_000):
                db.run(lambda tx, part=made[at : at + 1_000]: bus.publish_many(tx, part))

        def send() -> None:
            while sending.run_once().groups:
                pass

        def receive() -> None:
            left = events
            while left > 0:
                left -= receiving.run_once(1.0).received

        def consume() -> None:
            while dispatcher.run_once().busy:
                pass

        def plain() -> None:
            for at in range(0, events, 256):
                stream.send(
                    [Parcel(key=f"plain{n}", event_type="plain", body=body) for n in range(at, min(at + 256, events))]
                )

        body = encode(made[0])
        hops = {
            "published": publish,
            "sent": send,
            "received": receive,
            "consumed": consume,
            "sent without a store": plain,
        }
        rates: list[str] = []
        for name, hop in hops.items():
            started = time.perf_counter()
            hop()
            rates.append(f"{events / (time.perf_counter() - started):,.0f} {name}/s")
        db.close()
    stream.close()
    return ", ".join(rates)


def beside(events: int = 1_000, rounds: int = 2) -> dict[str, str]:
    """Ours and the other queues in turn on one PostgreSQL, a row inserted by each handler.

    Ours is measured again before each run of the others: on a shared machine minutes apart are not the same conditions.
    """
    found: dict[str, str] = {}
    try:
        brought()
    except (OSError, subprocess.SubprocessError) as error:
        return {"other queues": f"not measured: their environment cannot be made ({type(error).__name__})"}
    with services.postgres(durable=True) as url, services.redis() as redis_url, services.nats() as nats_url:
        rates = {kind: [ours_beside(url, kind, events) for _ in range(rounds)] for kind in HANDLERS}
        told = [f"{_rates(*map(statistics.median, zip(*rates[kind], strict=True)))} {HANDLERS[kind]}" for kind in rates]
        found["patra bus"] = f"{'; '.join(told)}. {OUR_PROMISE}"
        for name, broker in (("procrastinate", "-"), ("dbos", "-"), ("celery", redis_url), ("faststream", nats_url)):
            count = events // 4 if name == "dbos" else events  # its rate does not depend on how many there are
            mine: list[float] = []
            theirs: list[tuple[float, float]] = []
            loads: list[float] = []
            try:
                for _ in range(rounds):
                    loads.append(os.getloadavg()[0])
                    mine.append(ours_beside(url, "insert", events)[1])
                    theirs.append(_other(name, url, broker, count))
            except subprocess.SubprocessError as error:
                found[name] = f"did not run: {type(error).__name__} {(getattr(error, 'stderr', '') or '')[-300:]}"
                continue
            times = statistics.median(ours / consumed for ours, (_, consumed) in zip(mine, theirs, strict=True))
            published, consumed = (statistics.median(rate) for rate in zip(*theirs, strict=True))
            ours = f"ours in turn {statistics.median(mine):,.0f} consumed/s, {times:.1f} times as many"
            ours += f" (load {min(loads):.1f} to {max(loads):.1f})"
            found[name] = f"{_rates(published, consumed)}; {ours}. {PROMISES[name]}"
    return found


def _other(name: str, url: str, broker: str, events: int) -> tuple[float, float]:
    if name == "faststream":  # its stream would bring what an earlier round left
        with services.nats() as fresh:
            return _ran(name, url, fresh, events)
    return _ran(name, url, broker, events)


def _ran(name: str, url: str, broker: str, events: int) -> tuple[float, float]:
    """In a database of its own, as ours has a schema of its own each time."""
    database = f"o{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {database}".encode())
    fresh = urlsplit(url)._replace(path=f"/{database}").geturl()
    command = [VENV / "bin" / "python", "bench/bus_others.py", name, fresh, broker, str(events)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=100)
    said = msgspec.json.decode(done.stdout.strip().splitlines()[-1])
    return said["published"], said["consumed"]


def _rates(published: float, consumed: float) -> str:
    return f"{published:,.0f} published/s, {consumed:,.0f} consumed/s"


def brought() -> None:
    """The environment of the other queues."""
    if not (VENV / "bin" / "faststream").exists():
        subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, VENV], check=True)
        subprocess.run([UV, "pip", "install", "--quiet", "--python", VENV / "bin" / "python", *OTHERS], check=True)


def ours_beside(url: str, kind: str, events: int) -> tuple[float, float]:
    """The same effect by a handler of single events, or of sets (`HANDLERS`), in one process."""
    schema = f"b{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"CREATE SCHEMA {schema}".encode())
    db = open_database(f"{url}?options=-csearch_path%3D{schema}")
    bus = prepared(db, "error.recorded", handler=kind)
    made = [envelope(bus, "error.recorded") for _ in range(events)]
    started = time.perf_counter()
    for at in range(0, events, 1_000):
        db.run(lambda tx, part=made[at : at + 1_000]: bus.publish_many(tx, part))
    published = time.perf_counter() - started
    dispatcher = Dispatcher(db, bus, GROUP)
    dispatcher.run_once()  # the first effect, as with the others
    started = time.perf_counter()
    while dispatcher.run_once().busy:
        pass
    consumed = time.perf_counter() - started
    db.close()
    return events / published, (events - 1) / consumed


def latency(url: Callable[[str], str], nats_url: str, quick: bool) -> str:
    """From the call of publish to the handler, and from the commit to the handler."""
    with tempfile.TemporaryDirectory(prefix="patra-bench-") as folder:
        db = open_database(url(folder))
        migrate(db, ["patra.kernel", "patra.bus"])
        stream = f"L{os.getpid()}_{next(_numbers)}"  # of its own: a new store reads a stream from its beginning
        engine = BusEngine(db, SystemClock(), load(), nats_url=nats_url, stream=stream)
        if engine.stream is not None:
            engine.stream._prefix = stream  # noqa: SLF001
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
        for _ in range(100 if quick else 300):
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

    raw_consume_in_order: Callable[[Any, int], int] | None = None


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

    def raw_consume_in_order(self, connection: Any, size: int) -> int:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(1)")
            found = connection.execute(
                f"{DUE.replace('e.body', 'e.body, d.order_key')} {size} FOR UPDATE OF d"
            ).fetchall()
            mine = {seq for seq, *_ in found}
            heads = dict(connection.execute(HEADS, [sorted({key for *_, key in found})]).fetchall())
            ready = [(seq, event_id) for seq, event_id, _, key in found if heads[key] in mine]
            ids, seqs = [e for _, e in ready], [s for s, _ in ready]
            connection.execute(
                f"{INBOX} SELECT 'raw', decode(md5(e), 'hex'), ''::bytea, 1, 0, 9 FROM unnest(%s::text[]) e", [ids]
            )
            connection.execute("INSERT INTO effect (event_id) SELECT unnest(%s::text[])", [ids])
            connection.execute("DELETE FROM bus_delivery WHERE group_id = 1 AND seq = ANY(%s)", [seqs])
        return len(found)


def _json(columns: str, rows: list[tuple]) -> str:
    names = [column.split()[0] for column in columns.split(", ")]
    hexed = [[f"\\x{v.hex()}" if isinstance(v, bytes) else v for v in row] for row in rows]
    return _encode([dict(zip(names, row, strict=True)) for row in hexed]).decode()


def prepared(db: Database, kind: str, *, handler: str = "set", sender: Sender | None = None) -> Bus:
    migrate(db, ["patra.kernel", "patra.bus"])
    bus = Bus(load(), SystemClock(), sender)

    def several(tx: Tx, events: Any) -> None:
        tx.execute(EFFECT, rows=[(event.event_id,) for event in events])

    singles: dict[str, Callable[[Tx, Any], None]] = {
        "insert": lambda tx, event: tx.insert("effect", [{"event_id": event.event_id}]),
        "write": lambda tx, event: tx.write(EFFECT, rows=[(event.event_id,)]),
        "execute": lambda tx, event: tx.execute(EFFECT, rows=[(event.event_id,)]) and None,
    }
    if handler == "set":
        bus.batch_consumer(kind, group=GROUP)(several)
    else:
        bus.consumer(kind, group=GROUP)(singles[handler])

    db.run(lambda tx: tx.script("CREATE TABLE IF NOT EXISTS effect (event_id TEXT NOT NULL)"))
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
            yield Running(contenders=contenders, make=make, units=events)

    return Case(name=f"{store.name}: publish {kind}{words}, {size} a transaction", unit="events/s", open=opened)


def consume_case(store: Store, kind: str, words: str, size: int, events: int) -> Case:
    @contextmanager
    def opened() -> Iterator[Running]:
        with store.open(kind) as (db, bus, raw):
            dispatcher = Dispatcher(db, bus, GROUP, batch=size)

            def make() -> None:
                """Fills the queue for the next test: what another left is not counted twice."""
                drained(ours)
                drained(plain)
                made = [envelope(bus, kind) for _ in range(events)]
                for at in range(0, events, 1_000):
                    db.run(lambda tx, part=made[at : at + 1_000]: bus.publish_many(tx, part))
                rows, lines = raw_rows(bus, made)
                store.raw_publish(raw, rows, lines)

            def drained(work: Callable[[Any], None]) -> None:
                work(None)

            def ours(_: Any) -> None:
                while dispatcher.run_once().busy:
                    pass

            def plain(_: Any) -> None:
                while store.raw_consume(raw, size):
                    pass

            def in_order(_: Any) -> None:
                while store.raw_consume_in_order and store.raw_consume_in_order(raw, size):
                    pass

            contenders = [Contender(name="patra bus, effect once", run=ours), Contender(name="raw driver", run=plain)]
            if words and store.raw_consume_in_order:
                contenders.append(Contender(name="raw driver, in order per key, one worker at a time", run=in_order))
            yield Running(contenders=contenders, make=make, units=events)

    return Case(name=f"{store.name}: consume {kind}{words}, {size} a transaction", unit="events/s", open=opened)
