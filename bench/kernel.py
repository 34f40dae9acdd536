"""Ledger claims, outbox messages and lease cycles a second on SQLite and PostgreSQL, beside raw driver loops.

The plain limit is what the driver alone reaches with the same rows in the same tables, one durable commit a set: for
SQLite the faster of `executemany` and one multi-row VALUES; for PostgreSQL one statement that takes the set as JSON. It
makes no decisions: it does not tell duplicates from conflicts, and knows no groups, partitions, fences or failures.
"""

import itertools
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import psycopg
from tests import services

from bench.harness import Case, Contender, Running
from patra.kernel import leases, ledger, outbox
from patra.kernel.canonical import key16
from patra.kernel.clock import DAY, SystemClock
from patra.kernel.db import Database, migrate, open_database
from patra.kernel.ledger import Claim
from patra.kernel.outbox import Delivered, Message, Policy, Relay
from patra.kernel.retry import DelayTable

SETS = 10  # transactions in one round
ROW = 300  # bytes of a message
NOW = 1_700_000_000_000_000
_encode = msgspec.json.Encoder().encode
_numbers = itertools.count()


class Sizes(msgspec.Struct, frozen=True):
    many: int
    sets: int
    work: int


def cases(quick: bool) -> Iterator[Case]:
    sizes = Sizes(20_000, 2, 3_000) if quick else Sizes(1_000_000, SETS, 100_000)
    with ExitStack() as stack:
        stores: list[Store] = [SQLite()]
        if not quick:
            stores.append(Postgres(stack.enter_context(services.postgres(durable=True))))
        for store in stores:
            for size in (100, 1_000):
                for there in (0, sizes.many):
                    yield ledger_case(store, size, there, sizes)
            for size in (100, 1_000):
                yield append_case(store, size, sizes)
            yield deliver_case(store, sizes)
            yield lease_case(store, sizes)


def facts(quick: bool) -> dict[str, str]:
    if quick:
        return {}
    with services.postgres(durable=True) as url, psycopg.connect(url) as connection:
        version = connection.execute("SHOW server_version").fetchone()
    return {"postgres": f"{version[0] if version else '?'}, fsync on, synchronous_commit on"}


class Store:
    """Opens fresh stores, ours and one for each raw loop, with the kernel's tables."""

    name: str

    @contextmanager
    def open(self, prepare: Callable[[Database], None], raw: int) -> Iterator[tuple[Database, list[Any]]]:
        """Our database, and raw connections to copies of it."""
        raise NotImplementedError

    def ledger(self) -> dict[str, Callable[[Any, Sequence[tuple]], None]]:
        raise NotImplementedError

    def append(self) -> dict[str, Callable[[Any, Sequence[tuple]], None]]:
        raise NotImplementedError

    def deliver(self, connection: Any, most: int) -> int:
        raise NotImplementedError

    def lease(self, connection: Any, n: int) -> int:
        raise NotImplementedError


class SQLite(Store):
    name = "SQLite"

    @contextmanager
    def open(self, prepare: Callable[[Database], None], raw: int) -> Iterator[tuple[Database, list[Any]]]:
        with tempfile.TemporaryDirectory(prefix="patra-bench-") as folder, ExitStack() as stack:
            databases = []
            for number in range(raw + 1):
                db = open_database(f"sqlite:///{Path(folder) / f'{number}.db'}")
                stack.callback(db.close)
                migrate(db, ["patra.kernel"])
                prepare(db)
                databases.append(db)
            yield databases[0], [db._writer for db in databases[1:]]  # noqa: SLF001  with the same pragmas as ours

    def ledger(self) -> dict[str, Callable[[Any, Sequence[tuple]], None]]:
        into = "INSERT INTO krn_ledger (scope, key, fingerprint, cycle, first_at, expires_at) VALUES "
        return {
            "sqlite3, executemany … DO NOTHING (tells nothing)": self._many(
                f"{into} (?,?,?,?,?,?) ON CONFLICT DO NOTHING"
            ),
            "sqlite3, multi-row VALUES … RETURNING key": self._values(into, " ON CONFLICT DO NOTHING RETURNING key"),
        }

    def append(self) -> dict[str, Callable[[Any, Sequence[tuple]], None]]:
        return {"sqlite3, executemany": self._many(APPEND.format("(?,?,?,?,?,?)"))}

    def deliver(self, connection: Any, most: int) -> int:
        connection.execute("BEGIN IMMEDIATE")
        found = connection.execute(OLDEST.format("?", "?"), ("c", most)).fetchall()
        if found:
            connection.execute("DELETE FROM krn_outbox WHERE channel = ? AND seq <= ?", ("c", found[-1][0]))
        connection.execute("COMMIT")
        return len(found)

    def lease(self, connection: Any, n: int) -> int:
        connection.execute("BEGIN IMMEDIATE")
        held = connection.execute(TAKE.format("?", "?", ""), (n, "w")).fetchall()
        connection.execute("COMMIT")
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("DELETE FROM krn_lease WHERE pool = 'p' AND item = ?", held)
        connection.execute("COMMIT")
        return len(held)

    @staticmethod
    def _many(text: str) -> Callable[[Any, Sequence[tuple]], None]:
        def run(connection: Any, rows: Sequence[tuple]) -> None:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(text, rows)
            connection.execute("COMMIT")

        return run

    @staticmethod
    def _values(before: str, after: str) -> Callable[[Any, Sequence[tuple]], None]:
        def run(connection: Any, rows: Sequence[tuple]) -> None:
            mark = f"({','.join('?' * len(rows[0]))})"
            connection.execute("BEGIN IMMEDIATE")
            for start in range(0, len(rows), 250):
                part = rows[start : start + 250]
                text = before + ",".join([mark] * len(part)) + after
                connection.execute(text, [value for row in part for value in row]).fetchall()
            connection.execute("COMMIT")

        return run


class Postgres(Store):
    name = "PostgreSQL"

    def __init__(self, url: str) -> None:
        self._url = url

    @contextmanager
    def open(self, prepare: Callable[[Database], None], raw: int) -> Iterator[tuple[Database, list[Any]]]:
        names = [f"bench_{next(_numbers)}" for _ in range(raw + 1)]
        databases, connections = [], []
        with psycopg.connect(self._url, autocommit=True) as admin:
            for name in names:
                admin.execute(f"CREATE SCHEMA {name}".encode())
                url = f"{self._url}?options=-csearch_path%3D{name}"
                db = open_database(url)
                migrate(db, ["patra.kernel"])
                prepare(db)
                databases.append(db)
                connections.append(psycopg.connect(url, autocommit=True, prepare_threshold=3))
            admin.execute(b"VACUUM ANALYZE")
            admin.execute(b"CHECKPOINT")
            yield databases[0], connections[1:]
            for opened in databases + connections:
                opened.close()
            for name in names:
                admin.execute(f"DROP SCHEMA {name} CASCADE".encode())

    def ledger(self) -> dict[str, Callable[[Any, Sequence[tuple]], None]]:
        into = "INSERT INTO krn_ledger (scope, key, fingerprint, cycle, first_at, expires_at) "
        columns = "scope text, key bytea, fingerprint bytea, cycle bigint, first_at bigint, expires_at bigint"
        return {
            "psycopg, one JSON parameter … RETURNING key": self._json(
                into, columns, " ON CONFLICT DO NOTHING RETURNING key"
            ),
            "psycopg, executemany … DO NOTHING (tells nothing)": self._many(
                f"{into} VALUES (%s,%s,%s,%s,%s,%s) ON CONFLICT DO NOTHING"
            ),
        }

    def append(self) -> dict[str, Callable[[Any, Sequence[tuple]], None]]:
        columns = "channel text, group_key bytea, message_key text, payload bytea, appended_at bigint, due_at bigint"
        into = "INSERT INTO krn_outbox (channel, group_key, message_key, payload, appended_at, due_at) "
        return {
            "psycopg, one JSON parameter": self._json(into, columns, ""),
            "psycopg, executemany": self._many(APPEND.format("(%s,%s,%s,%s,%s,%s)")),
        }

    def deliver(self, connection: Any, most: int) -> int:
        with connection.transaction():
            found = connection.execute(OLDEST.format("%s", "%s"), ("c", most)).fetchall()
            if found:
                connection.execute("DELETE FROM krn_outbox WHERE channel = %s AND seq <= %s", ("c", found[-1][0]))
        return len(found)

    def lease(self, connection: Any, n: int) -> int:
        with connection.transaction():
            held = connection.execute(TAKE.format("%s", "%s", "FOR UPDATE SKIP LOCKED"), (n, "w")).fetchall()
        with connection.transaction():
            items = [item for (item,) in held]
            connection.execute("DELETE FROM krn_lease WHERE pool = 'p' AND item = ANY(%s)", (items,))
        return len(held)

    @staticmethod
    def _json(into: str, columns: str, after: str) -> Callable[[Any, Sequence[tuple]], None]:
        names = [column.split()[0] for column in columns.split(", ")]
        blobs = [place for place, column in enumerate(columns.split(", ")) if column.endswith("bytea")]
        shape = msgspec.defstruct("Raw", [(name, Any) for name in names], gc=False)  # the fastest way we know
        text = f"{into} SELECT {', '.join(names)} FROM json_to_recordset(%s::json) AS r({columns}){after}"

        def run(connection: Any, rows: Sequence[tuple]) -> None:
            values: list[Sequence[Any]] = list(zip(*rows, strict=True))
            for place in blobs:
                values[place] = ["\\x" + value.hex() for value in values[place]]
            with connection.transaction():
                found = connection.execute(text, (_encode(list(map(shape, *values))).decode(),))
                if after:
                    found.fetchall()

        return run

    @staticmethod
    def _many(text: str) -> Callable[[Any, Sequence[tuple]], None]:
        def run(connection: Any, rows: Sequence[tuple]) -> None:
            with connection.transaction(), connection.cursor() as cursor:
                cursor.executemany(text, rows)

        return run


LEDGER = ("scope", "key", "fingerprint", "cycle", "first_at", "expires_at")
APPEND = "INSERT INTO krn_outbox (channel, group_key, message_key, payload, appended_at, due_at) VALUES {}"
OLDEST = "SELECT seq, message_key, payload FROM krn_outbox WHERE channel = {} ORDER BY seq LIMIT {}"
TAKE = (
    "WITH next AS (SELECT item FROM krn_lease WHERE pool = 'p' AND lease_owner IS NULL "
    "ORDER BY pool, partition_key, priority, due_at, item LIMIT {0} {2}) "
    "UPDATE krn_lease SET lease_owner = {1}, leased_until = 1, lease_fence = lease_fence + 1 "
    "WHERE pool = 'p' AND item IN (SELECT item FROM next) RETURNING item"
)


def ledger_case(store: Store, size: int, there: int, sizes: Sizes) -> Case:
    def prepare(db: Database) -> None:
        for start in range(0, there, 50_000):
            count = min(50_000, there - start)
            rows = [("s", os.urandom(16), b"x" * 16, 1, NOW, NOW + DAY) for _ in range(count)]
            db.run(lambda tx, rows=rows: tx.insert_tuples("krn_ledger", LEDGER, rows))

    def make() -> list[tuple[list[Claim], list[tuple]]]:
        made = []
        for _ in range(sizes.sets * (10 if size == 100 else 1)):
            keys = [os.urandom(16) for _ in range(size)]
            claims = [Claim(key=key, fingerprint=key, window=DAY) for key in keys]
            made.append((claims, [("s", key, key, 1, NOW, NOW + DAY) for key in keys]))
        return made

    @contextmanager
    def opened() -> Iterator[Running]:
        raw = store.ledger()
        with store.open(prepare, len(raw)) as (db, connections):

            def ours(made: list[tuple[list[Claim], list[tuple]]]) -> None:
                for claims, _ in made:
                    db.run(lambda tx, claims=claims: ledger.claim(tx, "s", claims, NOW))

            yield Running(
                contenders=[Contender(name="patra: ledger.claim", run=ours), *_raw(raw, connections)],
                make=make,
                units=size * sizes.sets * (10 if size == 100 else 1),
            )

    keys = f"{there:,} keys there" if there else "empty"
    return Case(name=f"{store.name}: ledger, sets of {size:,}, {keys}", unit="claims/s", open=opened)


def append_case(store: Store, size: int, sizes: Sizes) -> Case:
    many = sizes.sets * (10 if size == 100 else 1)

    @contextmanager
    def opened() -> Iterator[Running]:
        raw = store.append()
        with store.open(_nothing, len(raw)) as (db, connections):

            def ours(made: list[tuple[list[Message], list[tuple]]]) -> None:
                for messages, _ in made:
                    db.run(lambda tx, messages=messages: outbox.append(tx, "c", messages, NOW))

            yield Running(
                contenders=[Contender(name="patra: outbox.append", run=ours), *_raw(raw, connections)],
                make=lambda: [_messages(size) for _ in range(many)],
                units=size * many,
            )

    return Case(name=f"{store.name}: outbox, append sets of {size:,}", unit="messages/s", open=opened)


def deliver_case(store: Store, sizes: Sizes) -> Case:
    """Appended in sets of 1,000, taken and settled again; the receiver costs nothing."""
    policy = Policy(delays=DelayTable((1,)), groups=256, per_group=64)

    @contextmanager
    def opened() -> Iterator[Running]:
        raw = dict(itertools.islice(store.append().items(), 1))
        with store.open(_nothing, 1) as (db, (connection,)):
            relay = Relay(db, "c", lambda found: [Delivered()] * len(found), policy, SystemClock())

            def ours(made: list[tuple[list[Message], list[tuple]]]) -> None:
                for messages, _ in made:
                    db.run(lambda tx, messages=messages: outbox.append(tx, "c", messages, NOW))
                while not relay.run_once().idle:
                    pass

            def plain(made: list[tuple[list[Message], list[tuple]]]) -> None:
                (append,) = raw.values()
                for _, rows in made:
                    append(connection, rows)
                while store.deliver(connection, 1_000):
                    pass

            yield Running(
                contenders=[
                    Contender(name="patra: outbox.append, Relay, 1,000 groups", run=ours),
                    Contender(name="raw: insert, read the oldest 1,000, delete them; no groups", run=plain),
                ],
                make=lambda: [_messages(1_000) for _ in range(sizes.sets)],
                units=1_000 * sizes.sets,
            )

    return Case(name=f"{store.name}: outbox, append and deliver", unit="messages/s", open=opened)


def lease_case(store: Store, sizes: Sizes) -> Case:
    def prepare(db: Database) -> None:
        for start in range(0, sizes.work, 10_000):
            db.run(lambda tx, start=start: leases.add(tx, "p", _work(start, min(10_000, sizes.work))))

    @contextmanager
    def opened() -> Iterator[Running]:
        with store.open(prepare, 1) as (db, (connection,)):
            pool = leases.pool("p")

            def ours(_: object) -> None:
                for _ in range(sizes.sets):
                    held = db.run(lambda tx: leases.acquire(tx, pool, holder="w", n=100, now=NOW, ttl=DAY))
                    db.run(lambda tx, held=held: leases.finish(tx, pool, held))

            def plain(_: object) -> None:
                for _ in range(sizes.sets):
                    store.lease(connection, 100)

            yield Running(
                contenders=[
                    Contender(name="patra: acquire 100, finish; 10 partitions, fences", run=ours),
                    Contender(name="raw: take the first 100, delete them; no turns, no fences", run=plain),
                ],
                make=lambda: None,
                units=100 * sizes.sets,
            )

    return Case(name=f"{store.name}: leases, {sizes.work:,} waiting", unit="leases/s", open=opened)


def _raw(loops: dict[str, Callable[[Any, Sequence[tuple]], None]], connections: Sequence[Any]) -> list[Contender]:
    def contender(name: str, loop: Callable[[Any, Sequence[tuple]], None], connection: Any) -> Contender:
        return Contender(name=name, run=lambda made: [loop(connection, rows) for _, rows in made])

    return [contender(name, loop, c) for (name, loop), c in zip(loops.items(), connections, strict=True)]


def _nothing(db: Database) -> None:
    """The store is measured empty."""


def _messages(size: int) -> tuple[list[Message], list[tuple]]:
    payload = os.urandom(ROW)
    messages = [Message(group=f"{n % 1000}", key=f"{next(_numbers)}", payload=payload) for n in range(size)]
    return messages, [("c", key16(m.group), m.key, m.payload, NOW, NOW) for m in messages]


def _work(start: int, count: int) -> list[leases.Work]:
    return [leases.Work(item=f"{n:08}", partition=f"{n % 10}", due_at=n) for n in range(start, start + count)]
