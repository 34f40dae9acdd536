"""Patra's part of the ingest benchmark: one process that plans and works until everything has landed.

    python -m bench.ingest_ours SERVER STORE RECORDS WINDOWS [--threads N] [--work-only] [--pack crossref]

Everything is on: black box, cursor events, guarded upsert, outbox, durable commits. Writes one line of JSON.
"""

import argparse
import json
import resource
import statistics
import threading
import time
from importlib import import_module
from typing import Any

import yaml

from bench.ingest_server import EPOCH, width
from patra.ingest.execution import run_recorder
from patra.ingest.execution.compiled_plan import Options
from patra.ingest.execution.executor import Executor, Limits, Shared
from patra.ingest.fetching.runtime import Runtime
from patra.ingest.http.client import Transport
from patra.ingest.packs import bundled, registry
from patra.ingest.packs.compiler import check_pack, load_pack
from patra.ingest.packs.problems import errors
from patra.ingest.packs.schema import Pack
from patra.ingest.packs.yaml.yaml_document import read_document
from patra.ingest.planning.planner import Planner
from patra.ingest.planning.trigger import Trigger
from patra.ingest.ratelimit.limiter import LocalGate
from patra.ingest.vocabulary.codes import Operation
from patra.kernel.clock import SECOND, SystemClock
from patra.kernel.db import Database, migrate, open_database
from patra.kernel.db.queries import statement
from patra.kernel.telemetry import setup_logging

LEFT = statement("left", "SELECT count(*) FROM ing_task WHERE status_code IN ('QUEUED', 'DISPATCHED', 'EXECUTING')")
LANDED = statement("landed", "SELECT count(*) FROM ing_record")
FIELDS = {
    "doi": "$.DOI",
    "title": "$.title[0]",
    "abstract": "$.abstract",
    "authors": {"each": "$.author[*]", "fields": {"given": "$.given", "family": "$.family", "orcid": "$.ORCID"}},
    "container": "$['container-title'][0]",
    "publisher": "$.publisher",
    "type": "$.type",
    "issued": "$.issued['date-parts'][0]",
    "language": "$.language",
    "license": "$.license[0].URL",
    "url": "$.URL",
    "issn": "$.ISSN[0]",
}


def pack(server: str, seconds: int, output: dict[str, Any]) -> dict[str, Any]:
    query = {
        "cursor": "${page.token}",
        "from": "${formatDateTime(window.from, 'EPOCH_S')}",
        "until": "${formatDateTime(window.to, 'EPOCH_S')}",
    }
    return {
        "pack": 1,
        "source": "bench",
        "version": "1",
        "title": "A provider without limits",
        "hosts": ["127.0.0.1"],
        "defaults": {
            "http": {"baseUrl": server, "allowHttp": True},
            "rateLimit": {"refillRatePerSec": 1000, "burstCapacity": 1000, "maxConcurrency": 64},
        },
        "endpoints": {
            "works": {
                "method": "GET",
                "path": "/works",
                "http": {"queryTemplate": query},
                "pagination": {
                    "type": "TOKEN",
                    "initial": {"token": "*"},
                    "nextTokenPath": "$.message['next-cursor']",
                    "pageSize": 1000,
                    "shortPage": "CONTINUE",
                },
                "ordering": {"orderBy": "as found", "stable": True},
                "window": {
                    "supportsUpdatedSince": True,
                    "watermarkKey": "indexed",
                    "align": "min",
                    "minWindow": f"PT{seconds}S",
                    "maxWindow": f"PT{seconds}S",
                    "safetyLag": "PT1S",
                    "initial": "2026-01-01T00:00:00Z",
                },
                "limits": {"maxPageSize": 1000},
                "response": {
                    "itemsPath": "$.message.items",
                    "idPath": "$.DOI",
                    "updatedAtPath": "$.indexed['date-time']",
                    "totalPath": "$.message['total-results']",
                },
                "output": output,
            }
        },
    }


def load(db: Database, tree: dict[str, Any]) -> None:
    document = read_document(yaml.safe_dump(tree, sort_keys=False), "bench.yaml", Pack)
    loaded = load_pack(document)
    assert loaded is not None, [str(problem) for problem in document.problems]
    wrong = errors(check_pack(loaded))
    assert not wrong, [str(problem) for problem in wrong]
    db.run(lambda tx: registry.load(tx, [loaded], by="bench", now=0))


def shipped() -> dict[str, Any]:
    """The output that the shipped Crossref pack maps to."""
    tree = yaml.safe_load(bundled.text("crossref"))
    return tree["endpoints"]["works"]["output"]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("server")
    parser.add_argument("store")
    parser.add_argument("records", type=int)
    parser.add_argument("windows", type=int)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--plan", action="store_true", help="load and plan, do not work")
    parser.add_argument("--work", action="store_true", help="work on what is planned")
    parser.add_argument("--pack", default="plain", choices=["plain", "crossref"])
    parser.add_argument("--profile")
    options = parser.parse_args()
    import_module("structlog")  # with the first task a process loads it, for 60 ms, which is no throughput
    setup_logging(level="warning")
    db = open_database(options.store)
    clock = SystemClock()
    seconds = width(options.records, options.windows)
    if not options.work:
        migrate(db, ["patra.kernel", "patra.ingest"])
        output = shipped() if options.pack == "crossref" else {"fields": FIELDS}
        load(db, pack(options.server, seconds, output))
    begun, cpu = time.perf_counter(), time.process_time()
    if not options.work:
        since, until = EPOCH * SECOND, (EPOCH + seconds * options.windows) * SECOND
        made = Planner(db, clock).trigger(
            Trigger(source="bench", endpoint="works", operation=Operation.HARVEST, since=since, until=until)
        )
        assert made.slices == options.windows, made
    costs: list[float] = []
    if not options.plan:
        watch(costs)
        if options.profile:
            import cProfile

            profile = cProfile.Profile()
            profile.runcall(work, db, clock, options.threads)
            profile.dump_stats(options.profile)
        else:
            work(db, clock, options.threads)
    found = {
        "seconds": time.perf_counter() - begun,
        "cpu": time.process_time() - cpu,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    if costs:
        found |= {
            "landed": db.read(lambda tx: tx.fetch(LANDED))[0][0],
            "batches": len(costs),
            "book_mean_ms": statistics.mean(costs) * 1000,
            "book_p95_ms": statistics.quantiles(costs, n=20)[-1] * 1000,
        }
    print(json.dumps(found))


def watch(costs: list[float]) -> None:
    """Note how long each batch's transaction takes."""
    land = run_recorder.RunRecorder.land

    def timed(self: Any, *given: Any) -> Any:
        begun = time.perf_counter()
        try:
            return land(self, *given)
        finally:
            costs.append(time.perf_counter() - begun)

    run_recorder.RunRecorder.land = timed  # type: ignore[method-assign]


def work(db: Database, clock: SystemClock, threads: int) -> None:
    transport = Transport()
    services = Runtime(clock=clock, gate=LocalGate(clock), transport=transport)
    shared = Shared()

    def one() -> None:
        executor = Executor(db, services, options=Options(), limits=Limits(per_partition=64), shared=shared)
        while True:
            if executor.run_once().tasks:
                continue
            if not db.read(lambda tx: tx.fetch(LEFT))[0][0]:
                return
            time.sleep(0.01)

    if threads == 1:
        one()
    else:
        crew = [threading.Thread(target=one) for _ in range(threads)]
        for thread in crew:
            thread.start()
        for thread in crew:
            thread.join()
    transport.close()


if __name__ == "__main__":
    main()
