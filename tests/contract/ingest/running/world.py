"""A store, a planner, an executor and a hostile provider, put together; time passes when a component sleeps."""

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec
import yaml

from patra.ingest.execution.compiled_plan import Options
from patra.ingest.execution.executor import Counts, Executor, Limits
from patra.ingest.fetching.runtime import Runtime
from patra.ingest.http.client import Transport
from patra.ingest.landing.records import content_of
from patra.ingest.operations.reads.listing import Listing, page
from patra.ingest.packs import registry, secret_grants
from patra.ingest.packs.compiler import check_pack, load_pack
from patra.ingest.packs.problems import errors
from patra.ingest.packs.schema import Pack
from patra.ingest.packs.yaml.yaml_document import read_document
from patra.ingest.planning.planner import Planned, Planner
from patra.ingest.planning.trigger import Trigger
from patra.ingest.ratelimit.limiter import LocalGate
from patra.ingest.vocabulary.codes import Operation
from patra.kernel.clock import DAY, HOUR, MINUTE, SECOND, Clock, parse_instant
from patra.kernel.db import Database, Statement, Tx, migrate
from patra.kernel.db.queries import statement
from patra.kernel.testing import ManualClock
from tests.support.hostile_provider import Habits, Item, Provider, crowded, serving

T0 = parse_instant("2026-03-01T00:00:00Z") or 0
T1 = T0 + 2 * DAY
NOW = T0 + 30 * DAY

PATHS = {"OFFSET": "/offset", "PAGE": "/page", "TOKEN": "/token", "URL": "/url", "LINK": "/link", "TIME": "/time"}


def pack(
    url: str, kind: str = "OFFSET", *, xml: bool = False, two_phase: bool = False, **sections: Any
) -> dict[str, Any]:
    """A pack for the hostile provider; sections are merged over what the kind needs."""
    query: dict[str, Any] = {"from": "${window.from}", "until": "${window.to}", "size": "${page.size}"}
    if xml:
        query["format"] = "xml"
    if two_phase:
        query["ids"] = "1"
    pagination: dict[str, Any] = {"pageSize": 25}
    ordering: dict[str, Any] = {"orderBy": "updated desc", "stable": True}
    match kind:
        case "OFFSET":
            query["offset"] = "${page.offset}"
            pagination |= {"type": "OFFSET"}
        case "PAGE":
            query["page"] = "${page.no}"
            pagination |= {"type": "PAGE", "base1": True}
        case "TOKEN":
            query["token"] = "${page.token}"
            path = "/list/@next" if xml else "$.next"
            pagination |= {"type": "TOKEN", "initial": {"token": "*"}, "nextTokenPath": path}
        case "URL":
            pagination |= {"type": "URL", "nextUrlPath": "/list/@next" if xml else "$.next"}
        case "LINK":
            pagination |= {"type": "URL", "nextUrlLink": "next"}
        case "TIME":
            query["from"] = "${page.from}"
            pagination |= {"type": "TIME"}
            ordering = {"orderBy": "updated asc", "ascending": True, "stable": True, "monotonic": True}
    paths = _paths(xml=xml, ids=two_phase)
    if kind == "TIME":
        paths.pop("totalPath", None)
    endpoint: dict[str, Any] = {
        "method": "GET",
        "path": PATHS[kind],
        "http": {"queryTemplate": query},
        "pagination": pagination,
        "ordering": ordering,
        "window": {
            "supportsUpdatedSince": True,
            "watermarkKey": "updated",
            "align": "min",
            "minWindow": "PT1M",
            "maxWindow": "PT12H",
            "safetyLag": "PT10M",
            "initial": "2026-03-01T00:00:00Z",
        },
        "response": paths,
        "errors": {"expired": {"status": [404], "pattern": "cursor-invalid", "outcome": "RESTART"}},
        "output": {"fields": {"title": "title" if xml else "$.title"}},
    }
    detail = {
        "method": "POST",
        "role": "DETAIL",
        "path": "/details",
        "http": {
            "bodyTemplate": {
                "kind": "FORM",
                "fields": {"ids": "${join(ids, ',')}", **({"format": "xml"} if xml else {})},
            }
        },
        "response": _paths(xml=xml, ids=False),
        "batching": {"idBatchSize": 20},
        "output": {"fields": {"title": "title" if xml else "$.title"}},
    }
    endpoints = {"search": endpoint, "details": detail}
    endpoint["twoPhase"] = {"enabled": two_phase, "linkedEndpoint": "details"}
    endpoint["supports"] = ["HARVEST", "BACKFILL", "UPDATE"]
    for section, values in sections.items():  # what a test says goes over what the kind needs
        endpoint[section] = {**endpoint.get(section, {}), **values}
    return {
        "pack": 1,
        "source": "hostile",
        "version": "1",
        "title": "Hostile",
        "hosts": ["127.0.0.1"],
        "defaults": {
            "http": {"baseUrl": url, "allowHttp": True, "readTimeoutMs": 5000},
            "rateLimit": {
                "refillRatePerSec": 1000,
                "burstCapacity": 1000,
                "recoverStepPerSec": 500,
                "coolDown": "PT1S",
            },
            "retry": {"maxAttempts": 5, "baseDelay": "PT0.1S", "maxDelay": "PT2S"},
        },
        "endpoints": endpoints,
    }


def _paths(*, xml: bool, ids: bool) -> dict[str, Any]:
    if not xml:
        found = {"itemsPath": "$.items", "idPath": "$.id", "updatedAtPath": "$.updated", "totalPath": "$.total"}
        return {**found, "idPath": "$", "updatedAtPath": ""} if ids else found
    found = {
        "format": "XML",
        "itemsPath": "/list/record",
        "idPath": "@id",
        "updatedAtPath": "@updated",
        "totalPath": "/list/@total",
    }
    return {**found, "itemsPath": "/list/id", "idPath": ".", "updatedAtPath": ""} if ids else found


class World:
    """Everything in one process, on a clock that moves when a component sleeps."""

    def __init__(self, db: Database, provider: Provider, url: str, clock: Clock | None = None, **options: Any) -> None:
        migrate(db, ["patra.kernel", "patra.ingest"])
        self.db = db
        self.provider = provider
        self.url = url
        self.clock: Any = clock or ManualClock(NOW)
        self.planner = Planner(db, self.clock)
        self.transport = Transport()
        self.services = Runtime(
            clock=self.clock,
            gate=LocalGate(self.clock),
            transport=self.transport,
            jitter=lambda: 0.5,
            environ=os.environ,
        )
        self.options = Options(**({"ttl": 10 * MINUTE} | options))
        self.executor = self.new_executor()

    def new_executor(self, **more: Any) -> Executor:
        manual = isinstance(self.clock, ManualClock)
        return Executor(
            self.db,
            self.services,
            options=self.options,
            limits=Limits(per_partition=8),
            pause=self._pause if manual else None,
            **more,
        )

    def _pause(self, seconds: float) -> bool:
        self.clock.advance(int(seconds * SECOND))
        return False

    def load(self, tree: dict[str, Any]) -> None:
        document = read_document(yaml.safe_dump(tree), "test.yaml", Pack)
        assert not document.problems, [str(problem) for problem in document.problems]
        loaded = load_pack(document)
        assert loaded is not None
        wrong = errors(check_pack(loaded))
        assert not wrong, [str(problem) for problem in wrong]
        self.db.run(lambda tx: registry.load(tx, [loaded], by="test", now=self.clock.now()))
        for credential in loaded.pack.credentials.values():
            for reference in credential.secrets.values():
                self.allow_secret(loaded.pack.source, reference)

    def allow_secret(self, source: str, reference: str) -> None:
        self.db.run(lambda tx: secret_grants.allow(tx, source, reference, (), by="test", now=self.clock.now()))

    def trigger(
        self, operation: Operation = Operation.HARVEST, since: int | None = T0, until: int | None = T1, **more
    ) -> Planned:
        return self.planner.trigger(
            Trigger(source="hostile", endpoint="search", operation=operation, since=since, until=until, **more)
        )

    def drain(self, turns: int = 5000) -> list[Counts]:
        """Work until nothing is left that could be done, letting time pass where everything waits."""
        done: list[Counts] = []
        for _ in range(turns):
            counts = self.executor.run_once()
            if counts.tasks:
                done.append(counts)
                continue
            turn = self.planner.run_once()
            if turn.resliced or turn.slices or turn.resumed:
                continue
            due = self.next_due()
            if due is None:
                return done
            self.clock.set(max(due, self.clock.now() + 1))
        raise AssertionError(f"not drained after {turns} turns: {self.tasks()}")

    def next_due(self) -> int | None:
        return self.one(
            "SELECT min(scheduled_at) FROM ing_task WHERE status_code = 'QUEUED' AND lease_owner IS NULL"
            " AND provenance_code NOT IN (SELECT provenance_code FROM ing_halt)"
        )

    # --- what there is

    def rows(self, sql: str, **params: Any) -> list[tuple[Any, ...]]:
        return self.db.read(lambda tx: tx.fetch(statement("test", sql), params))

    def run(self, sql: str, **params: Any) -> int:
        return self.db.run(lambda tx: tx.execute(statement("test", sql), params))

    def one(self, sql: str, **params: Any) -> Any:
        found = self.rows(sql, **params)
        return found[0][0] if found else None

    def landed(self) -> dict[str, int]:
        return dict(self.rows("SELECT provider_id, updated_at FROM ing_record"))

    def contents(self) -> dict[str, Any]:
        rows = self.rows("SELECT provider_id, content FROM ing_record")
        return {key: msgspec.json.decode(content_of(bytes(content))) for key, content in rows}

    def tasks(self) -> dict[str, int]:
        return dict(
            self.rows("SELECT status_code || ' ' || coalesce(reason_code, ''), count(*) FROM ing_task GROUP BY 1")
        )

    def watermark(self) -> int | None:
        return self.one("SELECT normalized_instant FROM ing_cursor WHERE operation_code = 'HARVEST'")

    def close(self) -> None:
        self.transport.close()


@contextmanager
def world(
    db: Database,
    items: list[Item] | None = None,
    habits: Habits | None = None,
    clock: Clock | None = None,
    **options: Any,
) -> Generator[World]:
    provider = Provider(crowded(600, T0, T1) if items is None else items, habits)
    with serving(provider) as url:
        found = World(db, provider, url, clock, **options)
        try:
            yield found
        finally:
            found.close()


__all__ = ["HOUR", "NOW", "T0", "T1", "World", "pack", "world"]


def explain_listing(tx: Tx, listing: Listing, wanted: Mapping[str, Any]) -> tuple[Statement, dict[str, Any]]:
    """The statement that a page is read by, with its parameters: for those who look at its plan."""
    found: list[tuple[Statement, dict[str, Any]]] = []

    class Recorder:
        dialect = tx.dialect

        def fetch(self, stmt: Statement, params: Any = None) -> Any:
            return tx.fetch(stmt, params)

        def fetch_dicts(self, stmt: Statement, params: dict[str, Any]) -> list[dict[str, Any]]:
            found.append((stmt, params))
            return []

    page(Recorder(), listing, wanted, limit=50)
    return found[-1]
