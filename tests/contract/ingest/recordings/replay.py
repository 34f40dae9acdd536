"""Recorded pages served by request, and the real planner and executor run against them on a clock of their own.

The server gives the pages of a chain in their order and holds each request to the recorded one: the parameter that
drives the pages must have the value that the recorded client sent.
"""

import json
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from patra.ingest.execution.compiled_plan import Options
from patra.ingest.execution.executor import Executor, Limits
from patra.ingest.fetching.runtime import Runtime
from patra.ingest.http.client import Transport
from patra.ingest.packs import bundled, registry
from patra.ingest.packs.compiler import LoadedPack, load_pack
from patra.ingest.packs.schema import Pack
from patra.ingest.packs.yaml.yaml_document import read_document
from patra.ingest.planning.planner import Planner
from patra.ingest.planning.trigger import Trigger
from patra.ingest.ratelimit.limiter import LocalGate
from patra.ingest.vocabulary.codes import Operation
from patra.kernel.clock import DAY, MINUTE, SECOND, parse_instant
from patra.kernel.db import Database, migrate
from patra.kernel.db.queries import statement
from patra.kernel.testing import ManualClock
from tests.contract.ingest.recordings.shelf import FOLDERS, Recording, recording

NOW = parse_instant("2026-11-16T00:00:00Z") or 0
SINCE = NOW - 10 * DAY
UNTIL = SINCE + DAY
NO_LIMITS: dict[str, Any] = {
    "limits": {"maxDepth": 100_000_000, "maxRatePerSec": 1000},
    "planning": {"maxPagesPerSlice": 1_000_000, "maxRequests": 1_000_000, "resliceBytes": 1_000_000_000},
    "rateLimit": {"refillRatePerSec": 1000, "burstCapacity": 1000, "minRatePerSec": 1},
}
"""The recorded lists are cut off: their totals count millions that are not there."""


def chain(name: str) -> list[Recording]:
    """The pages of a chain, in their order."""
    found: list[tuple[int, str]] = []
    for path in sorted(path for folder in FOLDERS for path in folder.glob("*/*.json")):
        entry = json.loads(path.read_text(encoding="utf-8")).get("chain") or {}
        if entry.get("id") == name:
            found.append((entry["seq"], f"{path.parent.name}/{path.name[:3]}"))
    return [recording(one) for _, one in sorted(found)]


class Replay:
    """The pages of a chain; `drives` is the parameter that asks for a page. What was asked wrongly is in `wrong`."""

    def __init__(
        self,
        pages: Sequence[Recording],
        drives: str,
        end: bytes | None,
        details: Callable[[str], Recording] | None = None,
    ) -> None:
        self._pages = list(pages)
        self._drives = drives
        self._end = end
        self._details = details
        self._lock = threading.Lock()
        self.served = 0
        self.wrong: list[str] = []
        self.away: tuple[str, str] | None = None
        """An address in the recorded pages, and what stands for it: where the next page is named by its URL."""

    def answer(self, path: str, params: Mapping[str, str]) -> tuple[int, Mapping[str, Any], bytes]:
        if self._details is not None and not path.rstrip("/").endswith("search"):
            found = self._details(path)
            return found.status, found.headers, found.body.encode()
        with self._lock:
            place, self.served = self.served, self.served + 1
        if place >= len(self._pages):
            if self._end is None:
                self.wrong.append(f"asked for page {place + 1} of {len(self._pages)}")
                return 500, {}, b""
            return 200, {"content-type": _kind(self._pages[-1])}, self._end
        page = self._pages[place]
        sent = dict(parse_qsl(urlsplit(page.url).query, keep_blank_values=True)).get(self._drives)
        asked = params.get(self._drives)
        if place and asked not in {sent, sent and unquote(sent)}:  # one recorded client encoded twice
            self.wrong.append(f"page {place + 1}: {self._drives} is {asked!r}, the recorded client sent {sent!r}")
        body = page.body if self.away is None else page.body.replace(*self.away)
        return page.status, {"content-type": _kind(page), **_location(page)}, body.encode()


def _kind(page: Recording) -> str:
    given = page.headers.get("content-type")
    if isinstance(given, str):
        return given
    return "text/xml" if page.body.lstrip().startswith("<") else "application/json"


def _location(page: Recording) -> dict[str, str]:
    target = page.headers.get("location")
    return {"location": f"?{urlsplit(target).query}"} if isinstance(target, str) else {}


@contextmanager
def serving(replay: Replay) -> Generator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer({})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            self._answer(dict(parse_qsl(body)))

        def _answer(self, form: dict[str, str]) -> None:
            parts = urlsplit(self.path)
            params = {**dict(parse_qsl(parts.query, keep_blank_values=True)), **form}
            status, headers, body = replay.answer(parts.path, params)
            self.send_response(status)
            for name in ("content-type", "location"):
                if isinstance(headers.get(name), str):
                    self.send_header(name, headers[name])
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the standard library's name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def local(text: str, file: str, url: str) -> LoadedPack:
    """A pack whose every base URL is the local server."""
    document = read_document(text, file, Pack)
    assert not document.problems, [str(problem) for problem in document.problems]
    tree = document.tree
    for place in (tree.setdefault("defaults", {}), *tree["endpoints"].values()):
        http = place.setdefault("http", {})
        if http.get("baseUrl") not in {None, "${params.baseUrl}"}:
            http["baseUrl"] = url + urlsplit(http["baseUrl"]).path
        http["allowHttp"] = True
        if "rateLimit" in place:
            place["rateLimit"] |= NO_LIMITS["rateLimit"]
            place["rateLimit"].pop("authenticated", None)
        if "limits" in place:
            place["limits"] |= {
                "maxRatePerSec": 1000,
                **({"maxDepth": 100_000_000} if "maxDepth" in place["limits"] else {}),
            }
    loaded = load_pack(document)
    assert loaded is not None
    return loaded


class Harvest:
    """A store, a planner and an executor; time passes when a component sleeps."""

    def __init__(self, db: Database, loaded: LoadedPack) -> None:
        migrate(db, ["patra.kernel", "patra.ingest"])
        self.db = db
        self.clock = ManualClock(NOW)
        self.transport = Transport()
        services = Runtime(
            clock=self.clock, gate=LocalGate(self.clock), transport=self.transport, jitter=lambda: 0.5, environ={}
        )
        self.planner = Planner(db, self.clock)
        self.executor = Executor(
            db, services, options=Options(ttl=10 * MINUTE), limits=Limits(per_partition=8), pause=self._pause
        )
        db.run(lambda tx: registry.load(tx, [loaded], by="test", now=NOW))

    def _pause(self, seconds: float) -> bool:
        self.clock.advance(int(seconds * SECOND))
        return False

    def run(
        self, source: str, endpoint: str, operation: Operation, sections: dict[str, Any], params: dict[str, Any]
    ) -> None:
        """One window, from its plan to the end of its last task."""
        merged = {**NO_LIMITS, **sections, "limits": {**NO_LIMITS["limits"], **sections.get("limits", {})}}
        trigger = Trigger(
            source=source,
            endpoint=endpoint,
            operation=operation,
            since=SINCE,
            until=UNTIL,
            params=params,
            sections={**merged, "window": {"maxWindow": "P1D"}},
            activity=None if operation is Operation.HARVEST else "recorded",
        )
        planned = self.planner.trigger(trigger)
        assert planned.slices == 1, planned
        self.drain()

    def drain(self) -> None:
        """Work until nothing is left that could be done, letting time pass where everything waits."""
        for _ in range(1000):
            if not self.executor.run_once().tasks:
                turn = self.planner.run_once()
                due = self.rows("SELECT min(scheduled_at) FROM ing_task WHERE status_code = 'QUEUED'")[0][0]
                if due is None and not turn.slices:
                    return
                if due is not None:
                    self.clock.set(max(due, self.clock.now() + 1))
        raise AssertionError(f"not done: {self.tasks()}")

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.db.read(lambda tx: tx.fetch(statement("test", sql), {}))

    def tasks(self) -> dict[str, int]:
        rows = self.rows("SELECT status_code || ' ' || coalesce(reason_code, ''), count(*) FROM ing_task GROUP BY 1")
        return {str(name): int(count) for name, count in rows}

    def landed(self) -> list[str]:
        return [str(row[0]) for row in self.rows("SELECT provider_id FROM ing_record ORDER BY provider_id")]

    def quarantined(self) -> list[tuple[str, str, str]]:
        rows = self.rows("SELECT provider_id, reason_code, detail FROM ing_quarantine ORDER BY item_key")
        return [(str(row[0]), str(row[1]), str(row[2])) for row in rows]

    def close(self) -> None:
        self.transport.close()


@contextmanager
def harvested(
    db: Database,
    replay: Replay,
    source: str,
    endpoint: str,
    *,
    operation: Operation = Operation.HARVEST,
    sections: dict[str, Any] | None = None,
    params: dict[str, Any] | None = None,
    text: str | None = None,
    away: str | None = None,
) -> Generator[Harvest]:
    """The pack's endpoint run over a replayed chain; `away` is an address in the pages that the server stands for."""
    with serving(replay) as url:
        replay.away = None if away is None else (away, url)
        given = {
            name: value.replace("{url}", url) if isinstance(value, str) else value
            for name, value in (params or {}).items()
        }
        harvest = Harvest(db, local(text or bundled.text(source), f"{source}.yaml", url))
        try:
            harvest.run(source, endpoint, operation, sections or {}, given)
            yield harvest
        finally:
            harvest.close()
