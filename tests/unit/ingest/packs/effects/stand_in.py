"""A store in memory, a planner, an executor and a provider in the same process: a harvest without a socket or a file."""

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import msgspec

from patra.ingest.execution.compiled_plan import Options
from patra.ingest.execution.executor import Executor, Limits
from patra.ingest.fetching.runtime import Runtime
from patra.ingest.http.client import Answer, Exchange, Failure, Fault, Outgoing, Transport
from patra.ingest.landing.records import content_of
from patra.ingest.packs import registry, secret_grants
from patra.ingest.packs.compiler import LoadedPack, load_pack
from patra.ingest.packs.problems import Source
from patra.ingest.packs.yaml.yaml_document import Document
from patra.ingest.planning.planner import Planned, Planner
from patra.ingest.planning.trigger import Trigger
from patra.ingest.ratelimit.limiter import LocalGate, Permit
from patra.ingest.vocabulary.codes import Operation
from patra.kernel.clock import DAY, MINUTE, SECOND, parse_instant
from patra.kernel.db import migrate
from patra.kernel.db.queries import statement
from patra.kernel.db.sqlite import SQLiteDatabase
from patra.kernel.testing import ManualClock
from tests.support.hostile_provider import Item, Provider, Reply

T0 = parse_instant("2026-03-01T00:00:00Z") or 0
T1 = T0 + 2 * DAY
NOW = T0 + 30 * DAY
HOUR = 60 * MINUTE

Tree = dict[str, Any]
Script = Callable[[int, Outgoing], Reply | Failure | None]
"""What is answered to the n-th request (from 1) instead of what the provider says."""

SECRETS = {"KEY": "key-1234", "OTHER": "other-1234", "CLIENT": "client-1234"}


def loaded_tree(tree: Tree) -> LoadedPack:
    """The pack of a tree, as its file would be read; places in the file are not asked for here."""
    return _loaded(msgspec.json.encode(tree))


@cache
def _loaded(text: bytes) -> LoadedPack:
    pack = load_pack(Document(tree=msgspec.json.decode(text), source=Source(), problems=()))
    assert pack is not None
    return pack


def spread(count: int = 30) -> list[Item]:
    """Records at equal distances over the window, none on an edge."""
    step = (T1 - T0) // count // SECOND * SECOND
    return [Item(T0 + number * step + MINUTE, f"r{number:03}", f"Title {number}") for number in range(count)]


class StandIn(Transport):
    """The provider as a transport: what is sent is noted with its time, and answered at once."""

    def __init__(self, provider: Provider, clock: ManualClock, script: Script) -> None:
        super().__init__()
        self._provider = provider
        self._clock = clock
        self._script = script
        self.sent: list[tuple[int, Outgoing]] = []

    def send(self, request: Outgoing, permit: Permit) -> Exchange:
        del permit
        self.sent.append((self._clock.now() - NOW, request))
        url = urlsplit(request.url)
        reply = self._script(len(self.sent), request)
        if isinstance(reply, Failure):
            return reply
        if reply is None and url.path == "/token-endpoint":
            reply = as_json({"access_token": f"token-{len(self.sent)}", "token_type": "Bearer", "expires_in": 100})
        if reply is None:
            reply = self._provider.answer(request.method, f"{url.path}?{url.query}", request.body or b"")
        if len(reply.body) > request.max_bytes:
            return Failure(fault=Fault.TOO_LARGE, detail="too large")
        headers = {"content-type": reply.kind, **{name.lower(): value for name, value in reply.headers.items()}}
        size = len(reply.body)
        return Answer(
            status=reply.status, headers=headers, body=reply.body, url=request.url, elapsed=1000, wire_bytes=size
        )


def as_json(tree: Any, status: int = 200, **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status=status, body=json.dumps(tree).encode(), kind="application/json", headers=named)


def listed(reply: Reply) -> Tree:
    return json.loads(reply.body)


@cache
def _template() -> sqlite3.Connection:
    db = SQLiteDatabase(":memory:")
    migrate(db, ["patra.kernel", "patra.ingest"])
    return db._writer


@cache
def _store() -> SQLiteDatabase:
    return SQLiteDatabase(":memory:")


class Site:
    """Everything in one process, on a clock that moves when something sleeps."""

    def __init__(
        self, provider: Provider | None = None, script: Script = lambda *_: None, environ: Mapping[str, str] = SECRETS
    ) -> None:
        self.db = _store()
        _template().backup(self.db._writer)
        self.clock = ManualClock(NOW)
        self.provider = provider or Provider(spread())
        self.transport = StandIn(self.provider, self.clock, script)
        self.planner = Planner(self.db, self.clock)
        self.services = Runtime(
            clock=self.clock,
            gate=LocalGate(self.clock),
            transport=self.transport,
            jitter=lambda: 0.5,
            environ=environ,
        )
        self.executor = Executor(
            self.db,
            self.services,
            options=Options(ttl=10 * MINUTE),
            limits=Limits(per_partition=8),
            pause=self._pause,
        )

    def _pause(self, seconds: float) -> bool:
        self.clock.advance(int(seconds * SECOND))
        return False

    def load(self, tree: Tree) -> None:
        pack = loaded_tree(tree)
        now = self.clock.now()
        self.db.run(lambda tx: registry.load(tx, [pack], by="test", now=now))
        for credential in pack.pack.credentials.values():
            for reference in credential.secrets.values():
                self.db.run(lambda tx, r=reference: secret_grants.allow(tx, "s", r, (), by="test", now=now))

    def trigger(
        self, operation: Operation = Operation.HARVEST, since: int | None = T0, until: int | None = T1, **more: Any
    ) -> Planned:
        if operation is Operation.UPDATE:
            since = until = None
        return self.planner.trigger(
            Trigger(source="s", endpoint="search", operation=operation, since=since, until=until, **more)
        )

    def drain(self, turns: int = 400) -> None:
        for _ in range(turns):
            if self.executor.run_once().tasks:
                continue
            turn = self.planner.run_once()
            if turn.resliced or turn.slices or turn.resumed:
                continue
            due = self.rows(
                "SELECT min(scheduled_at) FROM ing_task WHERE status_code = 'QUEUED' AND lease_owner IS NULL"
                " AND provenance_code NOT IN (SELECT provenance_code FROM ing_halt)"
            )[0][0]
            if due is None:
                return
            self.clock.set(max(due, self.clock.now() + 1))
        raise AssertionError("not drained")

    def rows(self, sql: str, **params: Any) -> list[tuple[Any, ...]]:
        return self.db.read(lambda tx: tx.fetch(statement("test", sql), params))

    # --- the result

    @property
    def sent(self) -> list[str]:
        """Each request: when (ms), what."""
        return [
            f"{at // 1000} {request.method} {request.url} {(request.body or b'').decode()}"
            for at, request in self.transport.sent
        ]

    @property
    def landed(self) -> dict[str, Any]:
        rows = self.rows("SELECT provider_id, updated_at, deleted, content FROM ing_record ORDER BY 1")
        return {key: (at, gone, msgspec.json.decode(content_of(bytes(content)))) for key, at, gone, content in rows}

    @property
    def outcome(self) -> dict[str, Any]:
        return {
            "tasks": self.rows(
                "SELECT window_from, window_to, status_code, reason_code, priority, scheduled_at - :now, partition_key"
                " FROM ing_task ORDER BY task_id",
                now=NOW,
            ),
            "cursors": self.rows(
                "SELECT operation_code, cursor_key, cursor_type_code, namespace_scope_code, cursor_value FROM ing_cursor"
                " ORDER BY 1, 2"
            ),
            "quarantine": self.rows("SELECT item_key, reason_code, status_code FROM ing_quarantine ORDER BY 1"),
            "halts": self.rows("SELECT endpoint_name, reason_code FROM ing_halt ORDER BY 1"),
            "ledger": self.rows(
                "SELECT window_from, status_code, positions, missing, readings, gone FROM ing_window_ledger"
                " WHERE leg_code = 'LIST' ORDER BY task_id"
            ),
        }

    @property
    def plans(self) -> dict[str, Any]:
        return {
            "plans": self.rows(
                "SELECT operation_code, window_from, window_to, status_code FROM ing_plan ORDER BY plan_id"
            ),
            "slices": [
                (msgspec.json.decode(text)["bounds"], msgspec.json.decode(text)["budget"])
                for (text,) in self.rows("SELECT slice_spec FROM ing_plan_slice ORDER BY slice_id")
            ],
            "tasks": self.rows(
                "SELECT window_from, window_to, priority, scheduled_at - :now FROM ing_task ORDER BY task_id", now=NOW
            ),
        }


@contextmanager
def site(**given: Any) -> Iterator[Site]:
    found = Site(**given)
    try:
        yield found
    finally:
        found.transport.close()
