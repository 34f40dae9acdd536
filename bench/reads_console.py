"""The pages of the console and the story on the large store of `bench.reads`, over HTTP, while a writer writes.

Each view is asked for as a browser asks: the whole page. Keys of the story are taken from the middle of the store.
"""

import http.client
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from urllib.parse import quote, urlsplit

from bench.attribution_traffic import APPS, EVENTS, TEMPLATES, mark
from bench.reads_fill import BUS_EVENT_ID, TASKS_PER_PLAN
from patra.app.configuration.settings import Settings, StoreSettings, WebSettings
from patra.app.wiring import build
from patra.attribution.queries import latest_decisions
from patra.ingest.packs import bundled, registry
from patra.kernel.clock import SystemClock
from patra.kernel.db import Database
from patra.kernel.telemetry import setup_logging
from patra.web.asgi import app
from patra.web.uvicorn_server import Serving, listen

VIEWS = (
    "/", "/alerts", "/attribution/events", "/attribution/events?app=news-web&type=click", "/attribution/closures",
    "/attribution/closures?state=closed_failure", "/attribution/settlement", "/attribution/settlement?by=placement",
    "/attribution/rejects", "/attribution/archive", "/ingest", "/ingest/source/source3", "/ingest/plans",
    "/ingest/tasks", "/ingest/tasks?status=FAILED", "/ingest/tasks?source=source3&status=FAILED",
    "/ingest/coverage?source=source3", "/ingest/cursors", "/ingest/rate", "/ingest/quarantine", "/ingest/errors",
    "/ingest/schedules", "/bus", "/bus/groups", "/bus/dead-letters", "/studio", "/loops", "/outbox", "/audit",
)  # fmt: skip


def load_sources(db: Database, count: int) -> None:
    """A pack for each source of the filled store, so that it has a page."""
    text, now = bundled.text("crossref"), SystemClock().now()
    packs = [
        bundled.parse_pack(text.replace("source: crossref", f"source: source{number}", 1), f"source{number}.yaml")
        for number in range(count)
    ]
    db.run(lambda tx: registry.load(tx, packs, by="bench", now=now))


def story_keys(db: Database, tasks: int, events: int, copies: int) -> dict[str, str]:
    """A key of each kind that the filled store has, from its middle, and some that very many rows have."""
    plan = f"p0000000000{tasks // TASKS_PER_PLAN // 2:06}"
    found = {
        "plan": plan,
        "task": f"{plan}.t000500",
        "run": f"{plan}.t000500.r1",
        "batch": f"{plan}.t000500.r1/5",
        "correlation id of a batch": f"ing-{plan}.t000500.r1-5",
        "unknown": "no-such-key",
        "unknown, a DOI": "10.1234/no.such.work",
    }
    return found | _keys_of_attribution(db, events // (copies + 1)) | _keys_of_bus(events) if events else found


def _keys_of_attribution(db: Database, events: int) -> dict[str, str]:
    number = events // EVENTS // len(APPS) // 2
    batch = f"b-{mark(0, number)}-{number % TEMPLATES:02}"
    decisions = db.read(lambda tx: latest_decisions(tx, batch, limit=EVENTS)).decisions
    billed = next(one for one in decisions if one.billable is not None and one.attribution is not None)
    assert billed.billable is not None
    assert billed.attribution is not None
    record = billed.records[0]
    sources, relations = record["sourceKeys"], record["relationKeys"]
    return {
        "batchId": str(billed.batchId),
        "batchId/eventId": f"{billed.batchId}/{sources['eventId']}",
        "eventId of many batches": sources["eventId"],
        "sourceEventId": sources["sourceEventId"],
        "canonicalDedupKey": relations["canonicalDedupKey"],
        "closureKey": relations["closureKeyOrNA"],
        "billingKey": billed.billable["billingKey"],
        "attributionKey": billed.attribution["attributionKey"],
        "factId": billed.billable["factId"],
        "auditKey": record["payloadRef"]["payloadKey"],
        "recordKey": record["recordKey"],
        "traceKey": sources["traceKey"],
        "requestKey": sources["requestKey"],
        "attemptKey of every event": sources["attemptKey"],
        "opportunityKey": sources["opportunityKey"],
        "responseReference": sources["responseReferenceOrNA"],
        "renderAttemptId of every event": sources["renderAttemptIdOrNA"],
        "appId": APPS[0],
    }


def _keys_of_bus(events: int) -> dict[str, str]:
    middle = events // 2
    return {
        "event_id": BUS_EVENT_ID.format(middle),
        "trace_id": f"trace-{middle}",
        "correlation_id": f"run-{middle // 10}",
        "idempotency_key": f"filled-{middle}",
    }


@contextmanager
def served(url: str) -> Generator[str]:
    """A process without loops on a filled store."""
    setup_logging(level="error")
    settings = Settings(store=StoreSettings(url=url), web=WebSettings(port=0, shutdown_seconds=5.0))
    patra = build(settings, SystemClock())
    serving = Serving(app(patra), listen(settings.web), finish_seconds=5.0)
    thread = threading.Thread(target=serving.run, daemon=True)
    thread.start()
    try:
        yield serving.url
    finally:
        serving.stop()
        thread.join()
        patra.close(5)


class Browser:
    """One connection that is kept, as a browser keeps it."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=120)

    def get(self, path: str) -> None:
        self._connection.request("GET", path, headers={"Accept": "text/html"})
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path} answered {answer.status}: {body[:300]!r}")

    def close(self) -> None:
        self._connection.close()


def pages(browser: Browser, db: Database, tasks: int, events: int, copies: int) -> dict[str, Callable[[], object]]:
    """What is asked for, by its name."""
    found: dict[str, Callable[[], object]] = {}
    for path in VIEWS:
        found[f"/console{path}"] = lambda path=path: browser.get(f"/console{path}")
    plan = f"p0000000000{tasks // TASKS_PER_PLAN // 2:06}"
    for path in (f"/ingest/plan/{plan}", f"/ingest/task/{plan}.t000500", f"/ingest/run/{plan}.t000500.r1"):
        found[f"/console{path}"] = lambda path=path: browser.get(f"/console{path}")
    for name, key in story_keys(db, tasks, events, copies).items():
        found[f"story: {name}"] = lambda key=key: browser.get(f"/story?key={quote(key, safe='')}")
        found[f"page of the story: {name}"] = lambda key=key: browser.get(f"/console/story?key={quote(key, safe='')}")
    return found
