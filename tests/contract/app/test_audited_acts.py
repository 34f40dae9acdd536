"""Every act that the OpenAPI document offers leaves exactly one row in the audit, with who did it."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from patra.app.components.bus import bus_of
from patra.app.configuration.engine_settings import StudioSettings
from patra.app.configuration.settings import Settings, StoreSettings, WebSettings
from patra.app.loops import Loop
from patra.bus.publishing.envelope import to_wire
from patra.ingest.packs import registry
from patra.web.asgi import every_endpoint
from tests.contract.attribution.test_periods import feed, shown
from tests.unit.app.test_outbox_admin import refuse
from tests.unit.attribution.said import tick
from tests.unit.ingest.sample_packs import loaded
from tests.unit.web.served import Client, served, with_loops

PULLED = "what a consumer takes and settles stands in the rows of each event"
NOT_AN_ACT = {
    ("POST", "/events"): "what SDKs send stands in the log of batches, with the app that sent it",
    **{("POST", f"/bus/groups/{{group}}/{name}"): PULLED for name in ("pull", "ack", "nack", "extend")},
}


class Acts:
    """An example of each act, in an order in which all of them can be done."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.done: set[tuple[str, str]] = set()
        self.names = {(one.method, one.template): one.act for one in every_endpoint(client.patra)}

    def do(self, method: str, template: str, body: Any = None, **path: str) -> Any:
        content = json.dumps(body).encode() if body is not None else None
        before = self.rows()
        headers = {"Content-Type": "application/json"} if content is not None else {}
        answer = self.client(method, template.format_map(path), body=content, headers=headers)
        assert 200 <= answer.status < 300, (template, answer.data)
        after = self.rows()
        new = [(row["act"], row["actor"], row["role"]) for row in after[: len(after) - len(before)]]
        assert new == [(self.names[method, template], "local", "admin")], template
        self.done.add((method, template))
        return json.loads(answer.data) if answer.data else None

    def rows(self) -> list[Any]:
        return self.client.get("/audit?limit=1000").json()["acts"]


@pytest.fixture
def acts(tmp_path: Path) -> Iterator[Acts]:
    settings = Settings(
        store=StoreSettings(url="sqlite:///:memory:"),
        web=WebSettings(port=0),
        studio=StudioSettings(folder=str(tmp_path)),
    )
    loop = Loop(name="example.loop", run_once=lambda: None, every=3_600_000_000)
    with served(settings, parts=with_loops(loop)) as client:
        now = client.patra.clock.now()
        client.patra.db.run(lambda tx: registry.load(tx, [loaded("offset")], by="test", now=now))
        client.patra.start(["example"])
        yield Acts(client)


def _operations(acts: Acts) -> None:
    refuse(acts.client.patra.db, "ingest.record", "a")
    seq = acts.client.get("/outbox").json()["messages"][0]["seq"]
    acts.do("POST", "/loops/{name}/wake", name="example.loop")
    acts.do("POST", "/outbox/{channel}/requeue", {"seqs": [seq]}, channel="ingest.record")
    acts.do("POST", "/tokens", {"name": "vera", "role": "viewer"})
    acts.do("POST", "/tokens/{name}/rotate", {}, name="vera")
    acts.do("POST", "/tokens/{name}/revoke", name="vera")


def _bus(acts: Acts) -> None:
    patra = acts.client.patra
    bus = bus_of(patra).bus
    patra.db.run(bus.join)  # the studio's group, among others
    ids = dict.fromkeys(("project_id", "trace_id", "correlation_id", "idempotency_key", "tenant_id"), "x")
    payload = dict(bus.catalogue.types["task.submitted"].contracts[1].examples[0])
    acts.do("POST", "/bus/events", to_wire(bus.envelope("task.submitted", payload, **ids)))
    acts.do("POST", "/bus/replay", {"group": "orchestrator", "confirm": "orchestrator"})
    acts.do("POST", "/bus/discard", {"group": "orchestrator", "event_ids": ["none"], "reason": "x"})
    acts.do("POST", "/bus/groups/{group}/pause", group="orchestrator")
    acts.do("POST", "/bus/groups/{group}/resume", group="orchestrator")
    acts.do("POST", "/bus/types/{type}/freeze", {"reason": "x"}, type="task.submitted")
    acts.do("POST", "/bus/types/{type}/thaw", type="task.submitted")
    hook = {"name": "shop", "url": "https://shop.test/", "types": {"job.failed": ">=1"}}
    acts.do("POST", "/bus/webhooks", hook)
    acts.do("POST", "/bus/webhooks/{name}/rotate", {}, name="shop")
    acts.do("DELETE", "/bus/webhooks/{name}", name="shop")


def _attribution(acts: Acts) -> None:
    feed(acts.client.patra.db, shown(1), tick(600))
    price = {"priceMicros": 10, "currency": "EUR", "validFrom": "2026-01-01T00:00:00Z"}
    for kind in ("billable_impression", "billable_click"):
        acts.do("POST", "/attribution/rates", {**price, "billableType": kind})
    period = {"app": "app", "period": "2026-01"}
    acts.do("POST", "/attribution/apps/{app}/periods/{period}/close", {}, **period)
    acts.do("POST", "/attribution/apps/{app}/periods/{period}/reconcile", {"csv": "billingKey\n"}, **period)
    acts.do("POST", "/attribution/apps/{app}/keys", app="app")
    acts.do("POST", "/attribution/apps/{app}/rotate", app="app")
    acts.do("DELETE", "/attribution/apps/{app}/keys", app="app")


def _ingest(acts: Acts) -> None:
    span = {"since": "2026-01-01T00:00:00Z", "until": "2026-01-04T00:00:00Z"}
    wish = {"source": "atomlike", "endpoint": "query", "operation": "BACKFILL", **span}
    plan = acts.do("POST", "/ingest/plans", wish)["plan"]
    tasks = acts.client.get(f"/ingest/plans/{plan}").json()
    slices = [one["slice"] for one in tasks["slices"]]
    ids = [one["task"] for one in acts.client.get("/ingest/tasks?source=atomlike").json()["tasks"]]
    for name in ("pause", "resume", "lift"):
        acts.do("POST", f"/ingest/sources/{{source}}/{name}", {}, source="atomlike")
    acts.do("POST", "/ingest/tasks/{task}/cancel", {}, task=ids[0])
    acts.do("POST", "/ingest/slices/{slice}/cancel", {}, slice=slices[-1])
    acts.do("POST", "/ingest/tasks/{task}/requeue", {}, task=ids[0])
    acts.do("POST", "/ingest/requeue", {"plan": plan})
    acts.do("POST", "/ingest/plans/{plan}/cancel", {}, plan=plan)
    again = {name: wish[name] for name in ("source", "endpoint", "since", "until")}
    acts.do("POST", "/ingest/reread", {**again, "why": "a correction"})


def _studio(acts: Acts) -> None:
    run = acts.do("POST", "/studio/runs", {"chapter": "The Test\n\nThe sea was calm."})["run_id"]
    acts.do("POST", "/studio/runs/{run_id}/cancel", run_id=run)
    acts.do("POST", "/studio/runs/{run_id}/resume", {}, run_id=run)


EXAMPLES: tuple[Callable[[Acts], None], ...] = (_studio, _operations, _bus, _attribution, _ingest)


def test_every_act_of_the_interface_leaves_one_row(acts: Acts) -> None:
    for example in EXAMPLES:
        example(acts)
    document = acts.client.get("/openapi.json").json()
    offered = {
        (method.upper(), path)
        for path, methods in document["paths"].items()
        for method in methods
        if method not in {"get", "head", "parameters"}
    }
    untried = offered - acts.done - set(NOT_AN_ACT)
    table = {(one.method, one.template): one for one in every_endpoint(acts.client.patra)}
    for name in untried:  # the table writes the row of a plain handler; a raw one needs an example here
        assert table[name].act, name
        assert table[name].handler is not None, name
    assert acts.done <= offered
    assert len(acts.done) >= len(untried)
