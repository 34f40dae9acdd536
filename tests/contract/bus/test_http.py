"""The bus over HTTP, on a real server: publish in every form, read, replay, freeze, webhooks."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import urllib3

from patra import Bus
from patra.app.components.bus import bus_of
from patra.app.configuration.settings import Settings, StoreSettings, WebSettings
from patra.app.wiring import Patra, build
from patra.bus.catalogue.catalogue import Catalogue
from patra.bus.catalogue.evolution import encode_release, release
from patra.bus.consuming.version_stages import Stage, StagedMajor
from patra.bus.dispatch.dispatcher import Dispatcher
from patra.bus.publishing.cloudevents import binary, from_structured, structure_event
from patra.bus.publishing.envelope import Envelope, encode, to_wire
from patra.bus.store import events, groups, version_stages
from patra.kernel.safety.networks import networks_of
from patra.kernel.testing import ManualClock
from patra.web.api.bus import publishing
from patra.web.asgi import app
from patra.web.uvicorn_server import serving


class Order(msgspec.Struct):
    """A customer placed an order."""

    order_id: str


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

    def bury(self, why: str = "no luck", extensions: dict[str, str] | None = None, **more: Any) -> Envelope:
        """A dead letter in the group `orchestrator`."""
        bus = self.engine.bus

        @bus.consumer("task.submitted", group="orchestrator")
        def _(tx, event):
            raise ValueError(why)

        made = msgspec.structs.replace(self.envelope(**more), extensions=extensions or {})
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
    assert (
        house.call("POST", "/bus/events", structure_event(one), content_type="application/cloudevents+json")[0] == 200
    )
    headers, body = binary(two)
    answer = house.http.request("POST", f"{house.url}/bus/events", body=body, headers=headers)
    assert (answer.status, answer.json()) == (200, {"events": [{"event_id": two.event_id}]})
    batch = [structure_event(three), {**structure_event(three), "specversion": "0.3"}]
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


def test_a_refusal_says_all_that_is_wrong(house):
    sent = {"event_type": "task.submitted", "event_version": "1.0", "producer": "Nobody", "payload": {"task_id": 1}}
    _, found = house.call("POST", "/bus/events", sent)
    wrong = ["/tenant_id", "/project_id", "/idempotency_key", "/producer", "/payload/chapter_id"]
    assert [one["place"] for one in found["errors"]] == wrong
    _, found = house.call("POST", "/bus/events", {**to_wire(house.envelope()), **sent})
    assert [one["place"] for one in found["errors"]] == wrong[3:]


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
    house.call("POST", "/bus/events", [{**to_wire(made), "project_id": None}, 3])
    cloud = {**structure_event(made), "traceid": 3}
    house.call("POST", "/bus/events", cloud, content_type="application/cloudevents+json")
    headers, body = binary(made)
    house.http.request("POST", f"{house.url}/bus/events", body=body, headers={**headers, "ce-not_allowed": "x"})
    house.call("POST", "/bus/events", b"{")
    house.call("POST", "/bus/events", b"[")
    _, found = house.call("GET", "/bus/refusals")
    assert sorted((r["code"], r["place"], r["event_id"], r["count"]) for r in found["refusals"]) == [
        ("b_cloudevent_invalid", "/traceid", made.event_id, 1),
        ("b_envelope_invalid", "/extensions/not_allowed", made.event_id, 1),
        ("b_envelope_malformed", "", "", 3),  # one row for what has no key: 3, { and [
        ("b_envelope_missing", "/project_id", made.event_id, 1),
        ("b_envelope_missing", "/tenant_id", made.event_id, 1),
    ]
    _, story = house.call("GET", f"/bus/timeline/{made.event_id}")
    assert {e["what"] for e in story["entries"]} == {"refused"}


RUBBISH = [  # one server takes them all: it must stand after each
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
]


def test_of_too_many_events_none_is_looked_at(house, monkeypatch):
    def explode(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(publishing, "from_wire", explode)
    monkeypatch.setattr(publishing, "from_structured", explode)
    for media in ("application/json", "application/cloudevents-batch+json"):
        status, refused = house.call("POST", "/bus/events", [{}] * 1001, content_type=media)
        assert (status, refused["code"]) == (413, "too_many_events")


def test_rubbish_is_refused_not_a_crash(house):
    for body, media, status in RUBBISH:
        assert house.call("POST", "/bus/events", body, content_type=media)[0] == status, (body[:40], media)


def test_the_catalogue_is_readable_and_is_an_asyncapi_document(house):
    _, types = house.call("GET", "/bus/catalogue")
    assert len(types["types"]) == 21
    status, page = house.call("GET", "/bus/catalogue/job.failed")
    assert status == 200
    assert b"# `job.failed`" in page
    assert house.call("GET", "/bus/catalogue/nothing")[0] == 404
    _, document = house.call("GET", "/bus/catalogue/asyncapi")
    assert document["asyncapi"] == "3.0.0"


def test_types_that_a_program_registered_are_shown_and_are_no_trouble(house):
    url = house.patra.settings.store.url
    shop = Bus.open(url, clock=house.patra.clock)
    shop.declare("order.placed", Order, producer="Shop", example=Order("o1"))
    shop.prepare()
    house.engine.adopt()  # raises where something of the store is broken
    health = next(one for check in house.patra.checks if (one := check()).name == "bus")
    assert (health.health, "handle them: order.placed" in health.found) == ("ok", True)
    assert "order.placed" in [one["type"] for one in house.call("GET", "/bus/catalogue")[1]["types"]]
    assert "order.placed" in [one["type"] for one in house.call("GET", "/bus/flow")[1]["types"]]
    assert "order_placed" in house.call("GET", "/bus/catalogue/asyncapi")[1]["channels"]
    assert house.call("POST", "/bus/types/order.placed/freeze", {})[0] == 200
    shop.close()
    again = Bus.open(url, clock=house.patra.clock)  # a later start of the program finds nothing removed either
    again.declare("order.placed", Order, producer="Shop", example=Order("o1"))
    again.prepare()
    again.close()


def test_dead_letters_are_listed_shown_replayed_and_discarded(house):
    made = house.bury()
    _, page = house.call("GET", "/bus/dead-letters?group=orchestrator")
    (letter,) = page["dead_letters"]
    assert (letter["event_id"], letter["error_code"], letter["attempts"]) == (made.event_id, "b_handler_failed", 2)
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


def test_dead_letters_are_listed_and_counted_by_when_they_failed(house):
    house.bury()
    (letter,) = house.call("GET", "/bus/dead-letters")[1]["dead_letters"]
    at = letter["last_failed_at"]
    assert house.call("GET", f"/bus/dead-letters?until={at}")[1]["dead_letters"] == []
    assert len(house.call("GET", f"/bus/dead-letters?since={at}")[1]["dead_letters"]) == 1
    found = house.call("GET", "/bus/dead-letters/over-time?parts=5")[1]
    assert (sum(found["counts"]), len(found["counts"]), found["more"]) == (1, 5, False)
    assert found["since"] <= at < found["until"]
    assert house.call("GET", f"/bus/dead-letters/over-time?until={at}")[1]["counts"] == [0] * 60
    for wrong in ("since=yesterday", "until=x", "state=lost"):
        assert house.call("GET", f"/bus/dead-letters/over-time?{wrong}")[0] == 400
    backwards = "since=2026-02-01T00:00:00Z&until=2026-01-01T00:00:00Z"
    for path in ("/bus/dead-letters", "/bus/dead-letters/over-time"):
        status, refused = house.call("GET", f"{path}?{backwards}")
        assert (status, refused["code"]) == (400, "span_invalid")


def test_a_dead_letter_is_compared_with_what_its_group_handled(house):
    made = house.bury()
    path = f"/bus/dead-letters/orchestrator/{made.event_id}/beside"
    status, found = house.call("GET", path)
    assert (status, found["last_handled"], found["letters"], found["handled"]) == (200, None, 1, 0)
    assert found["payload"] == made.payload
    assert house.call("GET", "/bus/dead-letters/orchestrator/nothing/beside")[0] == 404
    house.engine.bus.consumers.clear()
    house.engine.bus.consumer("task.submitted", group="orchestrator")(lambda tx, event: None)
    house.patra.db.run(house.engine.bus.join)
    well = house.envelope(idempotency_key="well")
    house.patra.db.run(lambda tx: house.engine.bus.publish(tx, well))
    Dispatcher(house.patra.db, house.engine.bus, "orchestrator").run_once()
    last = house.call("GET", path)[1]["last_handled"]
    assert (last["event_id"], last["payload"]) == (well.event_id, well.payload)
    assert last["handled_at"].endswith("Z")


def test_what_handlers_and_senders_wrote_is_shown_without_secrets_and_replayed_as_it_is(house):
    planted = {"contact": "ann@example.org", "password": "hunter2-planted"}
    made = house.bury("api_key=sk-planted-1234567890 of bob@example.org", extensions=planted)
    house.call("POST", "/bus/types/task.submitted/freeze", {"reason": "token=planted-9876543210 leaked"})
    answers = [
        house.call("GET", path)
        for path in (
            "/bus/dead-letters",
            f"/bus/dead-letters/orchestrator/{made.event_id}",
            f"/bus/dead-letters/orchestrator/{made.event_id}/beside",
            "/bus/health",
            f"/bus/timeline/{made.event_id}",
            "/bus/refusals",
        )
    ]
    assert [status for status, _ in answers] == [200] * 6
    assert answers[0][1]["dead_letters"][0]["envelope"]["event_id"] == made.event_id
    assert answers[0][1]["dead_letters"][0]["trace_id"] == "trace-1"
    told = json.dumps([body for _, body in answers])
    for secret in ("planted", "ann@", "bob@", "sk-planted"):
        assert secret not in told, secret
    (row,) = house.patra.db.read(lambda tx: events.by_id(tx, made.event_id))
    assert "hunter2-planted" in row.body  # what is replayed is the event itself


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


UNSOUND_URLS = (
    "ftp://x/", "x", "http://", "http://[", "http://x:y/", "http://x/ y", "http://ann:secret@x/", "http://ann@x/",
    "http://①②⑦.0.0.1/", "http://bücher.example/", "http://%31%32%37.0.0.1/", "http://a..b/", "http://127.0.0.1\\.good.test/",
    f"http://{'a' * 64}.example/", f"http://{'a.' * 127}com/", f"http://x.example/{'a' * 2000}",
)  # fmt: skip


def test_a_webhooks_url_is_sound_and_carries_no_password(house):
    for url in UNSOUND_URLS:
        asked = {"name": "shop", "url": url, "types": {"job.failed": ">=1"}}
        status, refused = house.call("POST", "/bus/webhooks", asked)
        assert (status, refused["code"], refused["place"]) == (400, "b_webhook_url_invalid", "/url"), url
        assert "secret" not in refused["detail"]
    assert house.call("GET", "/bus/webhooks")[1] == {"webhooks": []}


PRIVATE_URLS = (
    "http://127.0.0.1/", "http://localhost:9000/", "http://a.localhost/", "http://10.0.0.7/", "https://169.254.169.254/",
    "http://[::1]/", "http://[fe80::1]/", "http://[::ffff:10.0.0.7]/", "http://2130706433/", "http://0x7f.1/",
)  # fmt: skip


def test_a_webhook_on_a_private_address_is_refused_unless_its_network_is_named(house):
    def add(url, name="shop"):
        return house.call("POST", "/bus/webhooks", {"name": name, "url": url, "types": {"job.failed": ">=1"}})

    for url in PRIVATE_URLS:
        status, refused = add(url)
        assert (status, refused["code"], refused["place"]) == (400, "b_webhook_address_refused", "/url"), url
        assert "bus.webhook_networks" in refused["detail"]
    assert house.call("GET", "/bus/webhooks")[1] == {"webhooks": []}
    house.engine.webhook_networks = networks_of(["10.0.0.0/24"])
    assert add("http://10.0.0.7/")[0] == 201
    assert add("http://10.0.1.7/", "other")[0] == 400
    assert add("http://93.184.216.34/", "public")[0] == 201


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
        "routed",
        *["attempt_failed"] * 2,  # the first try and one retry: the error is none that may pass
        "dead_letter",
        "waiting",
        "dead_letter_replaying",
        "replay",
    ]


def test_webhooks_are_added_listed_and_removed(house):
    status, made = house.call(
        "POST",
        "/bus/webhooks",
        {"name": "shop", "url": "https://shop.example/?token=s3cret&a=b", "types": {"artifact.published": ">=1,<2"}},
    )
    assert status == 201
    assert made["secret"].startswith("whsec_")
    _, found = house.call("GET", "/bus/webhooks")
    assert found["webhooks"] == [
        {"name": "shop", "url": "https://shop.example/?token=***&a=b", "group": "webhook.shop"}
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


def test_a_webhooks_secret_is_rotated_over_http_and_its_tenants_are_shown(house):
    asked = {"name": "shop", "url": "https://shop.example/", "types": {"job.failed": ">=1"}, "tenants": ["acme"]}
    made = house.call("POST", "/bus/webhooks", asked)[1]
    status, rotated = house.call("POST", "/bus/webhooks/shop/rotate", {"overlap_seconds": 60})
    assert status == 200
    assert rotated["secret"] != made["secret"]
    assert house.call("POST", "/bus/webhooks/nobody/rotate", {})[0] == 404
    (found,) = house.call("GET", "/bus/webhooks")[1]["webhooks"]
    assert (found["tenants"], found.get("suspended_at")) == (["acme"], None)


def test_a_plain_message_without_ids_and_times_is_published_with_them_filled_in(house):
    wire = to_wire(house.envelope())
    sent = {k: v for k, v in wire.items() if k not in {"event_id", "trace_id", "correlation_id", "occurred_at"}}
    status, found = house.call("POST", "/bus/events", sent)
    assert status == 200
    (event,) = house.call("GET", f"/bus/events/{found['events'][0]['event_id']}")[1]
    assert event["traceid"] == event["id"] == found["events"][0]["event_id"]
    assert house.call("POST", "/bus/events", sent)[1]["events"][0] == {"event_id": event["id"], "duplicate": True}


def test_all_errors_of_an_envelope_are_answered_at_once_and_double_keys_are_refused(house):
    status, refused = house.call("POST", "/bus/events", {"event_type": "Task", "payload": {}})
    assert status == 400
    assert {one["place"] for one in refused["errors"]} == {
        f"/{name}" for name in ("event_type", "event_version", "producer", "tenant_id", "project_id", "idempotency_key")
    }
    body = encode(house.envelope()).replace(b'"tenant_id":', b'"tenant_id":"first","tenant_id":', 1)
    assert house.call("POST", "/bus/events", body)[1]["code"] == "b_envelope_malformed"


def test_letters_are_grouped_and_dealt_with_by_a_query_with_preview_and_progress(house):
    made = house.bury()
    status, found = house.call("GET", "/bus/dead-letters/causes?group=orchestrator")
    (cause,) = found["causes"]
    assert (status, cause["letters"], cause["error_code"]) == (200, 1, "b_handler_failed")
    assert (len(cause["hours"]), sum(cause["hours"])) == (24, 1)
    _, health = house.call("GET", "/bus/health")
    assert (health["dead_letters"], health["freezes_at"]) == ({made.event_type: 1}, {made.event_type: 100})
    status, seen = house.call("GET", "/bus/dead-letters/preview?group=orchestrator&error_code=b_handler_failed")
    assert (status, seen["letters"], seen["sample"]) == (200, 1, [made.event_id])
    begin = {"group": "orchestrator", "error_code": "b_handler_failed", "act": "replay", "confirm": "orchestrator"}
    assert house.call("POST", "/bus/acts", {**begin, "confirm": "no"})[1]["code"] == "b_replay_unconfirmed"
    status, act = house.call("POST", "/bus/acts", begin)
    assert (status, act["state"], act["total"]) == (202, "running", 1)
    (duty,) = [d for d in house.engine.duties() if d.name == "bulk_acts"]
    assert duty.run_once().done == 1
    status, act = house.call("GET", f"/bus/acts/{act['act_id']}")
    assert (act["state"], act["moved"]) == ("done", 1)
    assert [a["act_id"] for a in house.call("GET", "/bus/acts")[1]["acts"]] == [act["act_id"]]
    assert house.call("POST", f"/bus/acts/{act['act_id']}/stop")[1]["state"] == "done"
    assert house.call("GET", "/bus/acts/none")[1]["code"] == "b_bulk_act_unknown"


def test_stages_of_new_versions_are_seen_and_moved(house):
    assert house.call("GET", "/bus/stages") == (200, {"stages": []})
    staged = StagedMajor(event_type="task.submitted", major=2, stage=Stage.SHADOW, changed_by="adoption")
    house.patra.db.run(lambda tx: version_stages.put(tx, [staged]))
    status, now = house.call("POST", "/bus/types/task.submitted/stage", {"stage": "dual", "share": 10})
    assert (status, now["stage"], now["share"]) == (200, "dual", 10)
    assert [one["stage"] for one in house.call("GET", "/bus/stages")[1]["stages"]] == ["dual"]
    assert house.call("POST", "/bus/types/run.created/stage", {"stage": "dual"})[1]["code"] == "b_stage_not_allowed"
    assert house.call("POST", "/bus/types/task.submitted/stage", {"stage": "retired"})[0] == 422
