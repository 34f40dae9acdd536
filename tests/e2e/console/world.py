"""A Patra with something in every engine, served on a free port: what the console's tests look at.

Every text that clients can choose holds `HOSTILE`: markup, script, quotes.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import urllib3

from patra.app.components.bus import bus_of
from patra.app.configuration.engine_settings import StudioSettings
from patra.app.configuration.settings import Settings, StoreSettings, WebSettings
from patra.app.wiring import Patra, build
from patra.bus import bulk_acts
from patra.bus.dispatch.dispatcher import Dispatcher
from patra.ingest.packs import registry
from patra.kernel.clock import DAY, MINUTE, SECOND, SystemClock, format_instant
from patra.kernel.db.queries import statement
from patra.kernel.testing import ManualClock
from patra.web.asgi import App, app, every_endpoint
from patra.web.endpoint import Endpoint
from patra.web.uvicorn_server import Serving, listen
from tests.unit.attribution import said
from tests.unit.ingest.sample_packs import loaded

HOSTILE = "<script>window.pwned=1</script><img src=x onerror=window.pwned=1>\"'&{{7*7}}"
TOKENS = {
    "viewer": "viewer-token-0123456789abcdef",
    "operator": "operator-token-0123456789abcdef",
    "admin": "admin-token-0123456789abcdef",
}


class World:
    """The process under test and what was put into it."""

    def __init__(self, patra: Patra, clock: ManualClock, settings: Settings) -> None:
        self.patra = patra
        self.clock = clock
        self.settings = settings
        self.url = ""
        self.known: dict[str, str] = {}
        self._http = urllib3.PoolManager(retries=False, timeout=30.0)
        self._serving: Serving | None = None
        self._thread: threading.Thread | None = None

    def serve(self, port: int = 0) -> None:
        web = WebSettings(
            port=port,
            shutdown_seconds=self.settings.web.shutdown_seconds,
            viewer_tokens=self.settings.web.viewer_tokens,
            operator_tokens=self.settings.web.operator_tokens,
            admin_tokens=self.settings.web.admin_tokens,
        )
        served: App = app(self.patra)
        self._serving = Serving(served, listen(web), finish_seconds=web.shutdown_seconds)
        self.url = self._serving.url
        self._thread = threading.Thread(target=self._serving.run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        if self._serving is not None and self._thread is not None:
            self._serving.stop()
            self._thread.join()

    def restart(self) -> None:
        """Stop the server and serve the same store at the same address."""
        port = int(self.url.rpartition(":")[2])
        self.stop()
        self.serve(port)

    def post(self, path: str, body: Any, token: str = "") -> Any:
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        answer = self._http.request("POST", self.url + path, body=json.dumps(body).encode(), headers=headers)
        assert answer.status < 300, answer.data
        return answer.json()

    def get(self, path: str) -> Any:
        return self._http.request("GET", self.url + path).json()

    def send_events(self, batch: str, *events: dict[str, Any], app_id: str = "shop") -> Any:
        now = format_instant(self.clock.now())
        dated = [{**event, "eventAt": now} for event in events]
        return self.post("/events", said.envelope(*dated, batch=batch, app=app_id, sentAt=now))

    def work_off_acts(self) -> None:
        """As the loop of the bus does; this process runs none."""
        bus = bus_of(self.patra).bus
        while bulk_acts.run_once(self.patra.db, bus):
            pass

    def endpoints(self) -> list[Endpoint]:
        return list(every_endpoint(self.patra))

    def audit(self) -> list[tuple[str, str, str]]:
        from patra.app.access.audit import list_acts

        return [(one.actor, one.act, one.subject) for one in self.patra.db.read(lambda tx: list_acts(tx, limit=1000))]


STATS = {
    "itemsCount": 20, "inserted": 20, "updated": 0, "failed": 0, "latencyMs": 300, "waitMs": 700, "requests": 1,
    "retryCount": 0, "429Count": 1,
}  # fmt: skip
CURSOR = "backfill:atomlike/query:history"
POSITION = {"source": "atomlike", "endpoint": "query", "operation": "BACKFILL", "now": 0}
FAIL = statement("fail", "UPDATE ing_task SET status_code = 'FAILED', reason_code = 'i_gave_up' WHERE task_id = :task")


def fill(world: World) -> None:
    """Something in every engine."""
    _bus(world)
    _attribution(world)
    _ingest(world)
    _studio(world)


def _attribution(world: World) -> None:
    world.send_events(
        "b-1", said.event("ad_filled", "e-1"), said.event("impression", "e-2"), said.event("click", "e-3")
    )
    for number in range(4):
        link = {"responseReference": f"ref-{number}", "renderAttemptId": "ra"}
        world.send_events(f"b-open-{number}", said.event("ad_filled", f"f-{number}", **link))
    world.send_events("b-bad", said.event("impression", "e-9", creativeId=said.ABSENT), said.event("nonsense", HOSTILE))
    (impression,) = world.get("/attribution/events?batchId=b-1&eventId=e-2")["decisions"]
    world.known |= {"batch": "b-1", "event": "e-2", "closure": "ref|ra", "decision": str(impression["number"])}


def _ingest(world: World) -> None:
    db, now = world.patra.db, world.clock.now()
    packs = [loaded("offset"), loaded("oai")]
    db.run(lambda tx: registry.load(tx, packs, by="test", now=now))
    today = now // DAY * DAY
    wish = {
        "source": "atomlike",
        "endpoint": "query",
        "operation": "BACKFILL",
        "since": format_instant(today - 12 * DAY),
        "until": format_instant(today - 4 * DAY),
        "activity": "history",
    }
    plan = world.post("/ingest/plans", wish)["plan"]
    tasks = [line["task"] for line in world.get(f"/ingest/tasks?plan={plan}")["tasks"]]
    run = _run_of(world, plan, tasks[0])
    _alert(world)
    world.post("/ingest/sources/oailike/pause", {"why": f"maintenance {HOSTILE}"})
    world.known |= {"plan": plan, "task": tasks[0], "run": run, "queued": tasks[-1]}


def _alert(world: World) -> None:
    """One that fires, as the watch writes it."""
    now = world.clock.now()
    alert = {
        "alert_key": "fatal|oailike",
        "rule_code": "fatal",
        "subject": "oailike",
        "severity": "critical",
        "state_code": "FIRING",
        "value": 1.0,
        "detail": f"401 {HOSTILE}",
        "since": now,
        "seen_at": now,
        "fired_at": now,
    }
    world.patra.db.run(lambda tx: tx.insert("ing_alert", [alert]))


def _run_of(world: World, plan: str, task: str) -> str:
    """One failed run with two batches, as an executor writes them."""
    db, now = world.patra.db, world.clock.now()
    run = f"{task}.r1"
    slice_id = task.replace(".t", ".s")
    common = {"task_id": task, "plan_id": plan, "slice_id": slice_id}
    digest = json.dumps({"url": "https://provider.example/query", "note": HOSTILE, "at": POSITION})
    batches = [
        {
            "batch_id": f"{run}.b{number}",
            "run_id": run,
            **common,
            "expr_hash": "h",
            "batch_no": number,
            "phase_code": "LIST",
            "status_code": "FAILED" if number == 2 else "SUCCEEDED",
            "request_digest": digest,
            "response_digest": digest,
            "stats": json.dumps(STATS),
            "idempotent_key": f"{run}.{number}",
            "error_level": "L1" if number == 2 else None,
            "reason_code": "i_error_page" if number == 2 else "i_landed",
            "error": HOSTILE if number == 2 else None,
            "created_at": now,
        }
        for number in (1, 2)
    ]
    row = {
        "run_id": run,
        **common,
        "schedule_instance_id": "i",
        "provenance_code": "atomlike",
        "endpoint_name": "query",
        "operation_code": "BACKFILL",
        "attempt_no": 1,
        "status_code": "FAILED",
        "lease_owner": "worker",
        "lease_fence": 1,
        "checkpoint": "{}",
        "stats": "{}",
        "reason_code": "i_gave_up",
        "error": HOSTILE,
        "started_at": now - MINUTE,
        "finished_at": now,
        "updated_at": now,
    }
    quarantine = {
        "provenance_code": "atomlike",
        "endpoint_name": "query",
        "item_key": "10.5555/boats.1",
        "status_code": "OPEN",
        "reason_code": "i_field_missing",
        "field_path": "$.title",
        "detail": HOSTILE,
        "sample": HOSTILE.encode(),
        "sample_hash": "h",
        "request_digest": digest,
        "operation_code": "BACKFILL",
        **common,
        "run_id": run,
        "batch_no": 1,
        "expr_hash": "h",
        "first_seen_at": now,
        "last_seen_at": now,
    }

    moved = {
        "provenance_code": "atomlike",
        "operation_code": "BACKFILL",
        "cursor_key": "updated",
        "namespace_scope_code": "CUSTOM",
        "namespace_key": CURSOR,
        "cursor_type_code": "TIME",
        "observed_max_value": format_instant(now),
        "plan_id": plan,
        "run_id": run,
    }
    event = {
        **moved,
        "direction_code": "BACKFILL",
        "prev_value": None,
        "new_value": format_instant(now - DAY),
        "reason_code": "i_advanced",
        "schedule_instance_id": "i",
        "slice_id": slice_id,
        "task_id": task,
        "batch_no": 1,
        "expr_hash": "h",
        "idempotent_key": "moved",
        "record_remarks": json.dumps({"lateArrival": 0, "note": HOSTILE}),
        "event_time": now,
    }

    def write(tx: Any) -> None:
        tx.insert(
            "ing_cursor",
            [{**moved, "cursor_value": format_instant(now - DAY), "batch_no": 1, "created_at": now, "updated_at": now}],
        )
        tx.insert("ing_cursor_event", [event])
        tx.insert("ing_task_run", [row])
        tx.insert("ing_task_run_batch", batches)
        tx.insert("ing_quarantine", [quarantine])
        tx.execute(FAIL, {"task": task})

    db.run(write)
    return run


def _bus(world: World) -> None:
    """Two dead letters of each of two groups whose handlers repeat what clients wrote, and an event that they handled."""
    bus, db = bus_of(world.patra).bus, world.patra.db

    def fails(tx: Any, event: Any) -> None:
        if event.payload["chapter"]["title"] == HOSTILE:
            raise ValueError(f"cannot index {HOSTILE}")

    for group in ("search-index", "mail-out"):
        bus.consumer("task.submitted", group=group)(fails)
    db.run(bus.join)
    example = dict(bus.catalogue.types["task.submitted"].contracts[1].examples[0])
    hostile = {**example, "chapter": {**example["chapter"], "title": HOSTILE}}
    for number, payload in enumerate((hostile, hostile, example)):
        made = bus.envelope(
            "task.submitted",
            {**payload, "task_id": f"task-{number}"},
            tenant_id="t",
            project_id="p",
            trace_id=f"trace-{number}",
            correlation_id="c",
            idempotency_key=f"k-{number}",
        )
        db.run(lambda tx, made=made: bus.publish(tx, made))
        world.known[f"letter-{number}"] = made.event_id
    dispatchers, dead = [Dispatcher(db, bus, group) for group in ("search-index", "mail-out")], 0
    while dead < 4:
        dead += sum(dispatcher.run_once().dead for dispatcher in dispatchers)
        world.clock.advance(20 * SECOND)


def _studio(world: World) -> None:
    chapter = f"A boat\n\nThe boat is on the river. {HOSTILE} The end."
    world.known["film"] = world.post("/studio/runs", {"chapter": chapter, "title": f"A boat {HOSTILE}"})["run_id"]


@contextmanager
def world(folder: Path, *, tokens: bool = False, url: str = "") -> Iterator[World]:
    """Filled without tokens; then served with them, if they are wanted."""
    given: dict[str, Any] = {}
    if tokens:
        for role, token in TOKENS.items():
            (folder / f"{role}.token").write_text(token)
            given[f"{role}_tokens"] = [f"{role}=file:{folder / f'{role}.token'}"]
    settings = Settings(
        store=StoreSettings(url=url or f"sqlite:///{folder / 'patra.db'}"),
        web=WebSettings(port=0, shutdown_seconds=5.0),
        studio=StudioSettings(folder=str(folder / "artifacts")),
    )
    clock = ManualClock(SystemClock().now() - 10 * MINUTE)
    patra = build(settings, clock)
    made = World(patra, clock, settings)
    try:
        made.serve()
        fill(made)
        if tokens:
            made.stop()
            made.settings = Settings(
                store=settings.store, web=WebSettings(shutdown_seconds=5.0, **given), studio=settings.studio
            )
            patra.settings = made.settings
            made.serve()
        yield made
    finally:
        made.stop()
        patra.close(5)
