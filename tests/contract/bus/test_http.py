"""The bus over HTTP, on a real server: publish in every form, read, replay, freeze, webhooks."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import urllib3

from patra.app.bus import bus_of
from patra.app.settings import Settings, StoreSettings, WebSettings
from patra.app.wiring import Patra, build
from patra.bus.catalogue import Catalogue
from patra.bus.cloudevents import binary, from_structured, structured
from patra.bus.dispatcher import Dispatcher
from patra.bus.envelope import Envelope, encode, to_wire
from patra.bus.evolution import encode_release, release
from patra.bus.store import groups
from patra.kernel.testing import ManualClock
from patra.web.server import app
from patra.web.serving import serving

DEEP = b"[" * 100_000 + b"]" * 100_000


class House:
    """A Patra behind a real socket."""

    def __init__(self, patra: Patra, url: str) -> None:
        self.patra = patra
        self.engine = bus_of(patra)
        self.url = url
        self.http = urllib3.PoolManager(retries=False)

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        names = {
            name.replace("_", "-"): value for name, value in {"content_type": "application/json", **headers}.items()
        }
        answer = self.http.request(method, f"{self.url}{path}", body=content, headers=names)
        return answer.status, answer.json() if "json" in answer.headers.get("content-type", "") else answer.data

    def envelope(self, name: str = "task.submitted", **more: Any) -> Envelope:
        bus = self.engine.bus
        fields = {
            "tenant_id": "t",
            "project_id": "p",
            "trace_id": "trace-1",
            "correlation_id": "c",
            "idempotency_key": "k",
            **more,
        }
        return bus.envelope(name, dict(bus.catalogue.types[name].contracts[1].examples[0]), **fields)

    def bury(self, **more: Any) -> Envelope:
        """A dead letter in the group `orchestrator`."""
        bus = self.engine.bus

        @bus.consumer("task.submitted", group="orchestrator")
        def _(tx, event):
            raise ValueError("no luck")

        made = self.envelope(**more)
        self.patra.db.run(bus.join)
        self.patra.db.run(lambda tx: bus.publish(tx, made))
        for _ in range(6):
            Dispatcher(self.patra.db, bus, "orchestrator").run_once()
            self.patra.clock.advance(3_600_000_000)
        return made


@pytest.fixture
def house(database_url: str) -> Iterator[House]:
    settings = Settings(store=StoreSettings(url=database_url), web=WebSettings(port=0))
    patra = build(settings, ManualClock())
    with serving(app(patra), settings.web) as served:
        yield House(patra, served.url)
    patra.close(5)


def test_an_envelope_is_published_and_answered_with_its_id(house):
    made = house.envelope()
    assert house.call("POST", "/bus/events", encode(made)) == (200, {"events": [{"event_id": made.event_id}]})
    again = house.envelope()
    assert house.call("POST", "/bus/events", encode(again)) == (
        200,
        {"events": [{"event_id": made.event_id, "duplicate": True}]},
    )


def test_b1_cloudevents_are_taken_in_structured_binary_and_batch_mode(house):
    one, two, three = (house.envelope(idempotency_key=key) for key in "abc")
    assert house.call("POST", "/bus/events", structured(one), content_type="application/cloudevents+json")[0] == 200
    headers, body = binary(two)
    answer = house.http.request("POST", f"{house.url}/bus/events", body=body, headers=headers)
    assert (answer.status, answer.json()) == (200, {"events": [{"event_id": two.event_id}]})
    batch = [structured(three), {**structured(three), "specversion": "0.3"}]
    status, found = house.call("POST", "/bus/events", batch, content_type="application/cloudevents-batch+json")
    assert status == 207
    assert [e.get("event_id") or e["code"] for e in found["events"]] == [three.event_id, "b_cloudevent_invalid"]
    status, given = house.call("GET", "/bus/events/trace-1")
    assert status == 200
    assert [from_structured(one) for one in given] == [one, two, three]


@pytest.mark.parametrize(
    ("change", "status", "code", "place"),
    [
        ({"producer": "Nobody"}, 400, "b_producer_not_authoritative", "/producer"),
        ({"payload": {"task_id": 1}}, 400, "b_payload_invalid", "/payload/chapter_id"),
        ({"tenant_id": ""}, 400, "b_envelope_missing", "/tenant_id"),
        ({"event_type": "no.such_type"}, 400, "b_type_unknown", "/event_type"),
        ({"extra": 1}, 400, "b_envelope_unknown_field", "/extra"),
    ],
)
def test_a_refusal_says_code_and_place(house, change, status, code, place):
    found = house.call("POST", "/bus/events", {**to_wire(house.envelope()), **change})
    assert (found[0], found[1]["code"], found[1]["place"]) == (status, code, place)


def test_a_conflict_of_keys_is_409_and_leaves_a_row(house):
    first = house.envelope()
    house.call("POST", "/bus/events", encode(first))
    other = {**to_wire(first), "payload": {**first.payload, "priority": 3}}
    assert house.call("POST", "/bus/events", other)[0] == 409
    _, found = house.call("GET", "/bus/refusals?code=b_idempotency_conflict")
    assert [(r["code"], r["count"]) for r in found["refusals"]] == [("b_idempotency_conflict", 1)]
    assert found["refusals"][0]["first_at"].endswith("Z")


def test_a4_what_is_no_envelope_leaves_a_row_too_in_every_form(house):
    made = house.envelope()
    house.call("POST", "/bus/events", {**to_wire(made), "tenant_id": ""})
    house.call("POST", "/bus/events", [{**to_wire(made), "trace_id": None}, 3])
    cloud = {**structured(made), "traceid": 3}
    house.call("POST", "/bus/events", cloud, content_type="application/cloudevents+json")
    headers, body = binary(made)
    house.http.request("POST", f"{house.url}/bus/events", body=body, headers={**headers, "ce-extra": "x"})
    house.call("POST", "/bus/events", b"{")
    house.call("POST", "/bus/events", b"[")
    _, found = house.call("GET", "/bus/refusals")
    assert sorted((r["code"], r["place"], r["event_id"], r["count"]) for r in found["refusals"]) == [
        ("b_cloudevent_invalid", "/extra", made.event_id, 1),
        ("b_cloudevent_invalid", "/traceid", made.event_id, 1),
        ("b_envelope_malformed", "", "", 3),  # one row for what has no key: 3, { and [
        ("b_envelope_missing", "/tenant_id", made.event_id, 1),
        ("b_envelope_missing", "/trace_id", made.event_id, 1),
    ]
    _, story = house.call("GET", f"/bus/timeline/{made.event_id}")
    assert {e["what"] for e in story["entries"]} == {"refused"}


@pytest.mark.parametrize(
    ("body", "media", "status"),
    [
        (b"[]", "application/cloudevents+json", 400),
        (b'{"event_id": "\xff"}', "application/json", 400),
        (b"{", "application/json", 400),
        (b"[3]", "application/json", 207),
        (b"{}", "text/plain", 400),
        (b"[", "application/json", 400),
        (DEEP, "application/json", 400),
        (b'{"event_id":' + DEEP + b"}", "application/json", 400),
        (DEEP, "application/cloudevents-batch+json", 400),
        (b'{"data":' + DEEP + b"}", "application/cloudevents+json", 400),
    ],
)
def test_rubbish_is_refused_not_a_crash(house, body, media, status):
    assert house.call("POST", "/bus/events", body, content_type=media)[0] == status


def test_the_catalogue_is_readable_and_is_an_asyncapi_document(house):
    _, types = house.call("GET", "/bus/catalogue")
    assert len(types["types"]) == 20
    status, page = house.call("GET", "/bus/catalogue/job.failed")
    assert status == 200
    assert b"# `job.failed`" in page
    assert house.call("GET", "/bus/catalogue/nothing")[0] == 404
    _, document = house.call("GET", "/bus/catalogue/asyncapi")
    assert document["asyncapi"] == "3.0.0"


def test_dead_letters_are_listed_shown_replayed_and_discarded(house):
    made = house.bury()
    _, page = house.call("GET", "/bus/dead-letters?group=orchestrator")
    (letter,) = page["dead_letters"]
    assert (letter["event_id"], letter["error_code"], letter["attempts"]) == (made.event_id, "b_handler_failed", 6)
    assert letter["first_failed_at"].endswith("Z")
    assert letter["envelope"]["payload"] == made.payload
    _, detail = house.call("GET", f"/bus/dead-letters/orchestrator/{made.event_id}")
    assert detail["violations"] == []
    assert house.call("GET", "/bus/dead-letters/orchestrator/nothing")[0] == 404
    asked = {"group": "orchestrator", "confirm": "yes", "event_ids": [made.event_id]}
    status, refused = house.call("POST", "/bus/replay", asked)
    assert (status, refused["code"]) == (400, "b_replay_unconfirmed")
    _, done = house.call("POST", "/bus/replay", {**asked, "confirm": "orchestrator"})
    assert done["letters"] == [f"orchestrator/{made.event_id}"]
    _, again = house.call("POST", "/bus/replay", {"group": "orchestrator", "confirm": "orchestrator"})
    assert again["letters"] == []
    _, page = house.call("GET", "/bus/dead-letters?state=all")
    assert (page["dead_letters"][0]["replay_count"], page["dead_letters"][0]["state"]) == (1, "replaying")
    _, refused = house.call(
        "POST", "/bus/discard", {"group": "orchestrator", "event_ids": [made.event_id], "reason": "x"}
    )
    assert refused["refused"][f"orchestrator/{made.event_id}"]["code"] == "b_dead_letter_not_open"
    _, audit = house.call("GET", "/audit")
    assert {"bus.replay", "bus.discard"} <= {a["act"] for a in audit["acts"]}


def test_groups_pause_types_freeze_and_health_tells(house):
    house.bury()
    _, found = house.call("GET", "/bus/groups")
    assert [(g["name"], g["dead"]) for g in found["groups"]] == [("orchestrator", 1)]
    assert house.call("POST", "/bus/groups/orchestrator/pause")[1] == {"changed": True}
    assert house.call("POST", "/bus/groups/nobody/pause")[0] == 404
    assert house.call("POST", "/bus/types/task.submitted/freeze", {"reason": "test"})[1]["state"] == "frozen_by_hand"
    status, refused = house.call("POST", "/bus/events", encode(house.envelope(idempotency_key="new")))
    assert (status, refused["code"]) == (409, "b_type_frozen")
    _, health = house.call("GET", "/bus/health")
    assert len(health["troubles"]) == 3
    assert house.call("POST", "/bus/types/task.submitted/thaw")[1]["state"] == "open"
    assert house.call("POST", "/bus/groups/orchestrator/resume")[1] == {"changed": True}


@pytest.mark.parametrize(
    "url",
    ["ftp://x/", "x", "http://", "http://[", "http://x:y/", "http://x/ y", "http://ann:secret@x/", "http://ann@x/"],
)
def test_a_webhooks_url_is_sound_and_carries_no_password(house, url):
    asked = {"name": "shop", "url": url, "types": {"job.failed": ">=1"}}
    status, refused = house.call("POST", "/bus/webhooks", asked)
    assert (status, refused["code"], refused["place"]) == (400, "b_webhook_url_invalid", "/url")
    assert "secret" not in refused["detail"]
    assert house.call("GET", "/bus/webhooks")[1] == {"webhooks": []}


def test_what_is_answered_stands_in_the_openapi_document(house):
    _, document = house.call("GET", "/openapi.json")
    paths = document["paths"]
    assert "207" in paths["/bus/events"]["post"]["responses"]
    assert "404" in paths["/bus/replay"]["post"]["responses"]
    assert "404" in paths["/ingest/sources/{source}/pack"]["get"]["responses"]
    asked = {"group": "nobody", "confirm": "nobody"}
    assert house.call("POST", "/bus/replay", asked)[0] == 404
    assert house.call("POST", "/bus/types/no.such_type/freeze", {})[0] == 404
    assert house.call("POST", "/bus/types/no.such_type/thaw")[0] == 404


def test_b4_nothing_is_published_by_a_contract_that_breaks_the_one_in_force(house, monkeypatch):
    engine = house.engine
    engine.adopt()
    kind = engine.bus.catalogue.types["job.failed"]
    other = msgspec.structs.replace(kind, producer="Somebody")
    last = release(Catalogue({**engine.bus.catalogue.types, "job.failed": other}))
    house.patra.db.run(lambda tx: groups.record_release(tx, last.digest, encode_release(last), engine.clock.now() + 1))
    monkeypatch.setattr(engine, "_adopted", False)
    status, refused = house.call("POST", "/bus/events", encode(house.envelope("job.failed")))
    assert (status, refused["code"]) == (503, "b_evolution_needs_major")
    assert house.call("GET", "/bus/events/trace-1")[1] == []
    assert house.call("POST", "/bus/events", encode(house.envelope()))[0] == 200


def test_the_timeline_of_an_event_tells_its_whole_story(house):
    made = house.bury()
    house.call("POST", "/bus/replay", {"group": "orchestrator", "confirm": "orchestrator"})
    _, found = house.call("GET", f"/bus/timeline/{made.event_id}")
    assert [e["what"] for e in found["entries"]] == [
        "published",
        "dead_letter",
        "waiting",
        "dead_letter_replaying",
        "replay",
    ]


def test_webhooks_are_added_listed_and_removed(house):
    status, made = house.call(
        "POST",
        "/bus/webhooks",
        {"name": "shop", "url": "http://127.0.0.1:1/?token=s3cret&a=b", "types": {"artifact.published": ">=1,<2"}},
    )
    assert status == 201
    assert made["secret"].startswith("whsec_")
    _, found = house.call("GET", "/bus/webhooks")
    assert found["webhooks"] == [
        {"name": "shop", "url": "http://127.0.0.1:1/?token=***&a=b", "group": "webhook.shop"}
    ]  # neither the secret nor what the URL tells: a viewer may look
    assert (
        house.call("POST", "/bus/webhooks", {"name": "x", "url": "ftp://x/", "types": {"artifact.published": ">=1"}})[0]
        == 400
    )
    assert (
        house.call("POST", "/bus/webhooks", {"name": "x", "url": "http://x/", "types": {"artifact.published": "new"}})[
            0
        ]
        == 400
    )
    status, again = house.call(
        "POST", "/bus/webhooks", {"name": "shop", "url": "http://x/", "types": {"job.failed": ">=1"}}
    )
    assert (status, again["code"]) == (409, "b_webhook_exists")
    status, wrong = house.call(
        "POST", "/bus/webhooks", {"name": "", "url": "http://x/", "types": {"job.failed": ">=1"}}
    )
    assert (status, wrong["code"]) == (400, "b_webhook_name_invalid")
    assert house.call("DELETE", "/bus/webhooks/shop")[0] == 200
    assert house.call("DELETE", "/bus/webhooks/shop")[0] == 404
