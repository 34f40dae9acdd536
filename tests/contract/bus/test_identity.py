"""B7: who publishes is known apart from what the envelope claims, bound to producers and tenants, and recorded."""

import json
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import pytest
import urllib3

from patra.app.components.bus import bus_of
from patra.app.configuration.engine_settings import BusSettings, PublisherSettings
from patra.app.configuration.settings import Settings, StoreSettings, WebSettings
from patra.app.wiring import build
from patra.bus.catalogue.reasons import Reason
from patra.bus.publishing.envelope import encode
from patra.bus.publishing.publish import Published
from patra.bus.publishing.publisher_tokens import publisher, unbound_publisher
from patra.bus.store import events
from patra.bus.timeline import timeline
from patra.kernel.errors import ConfigInvalid
from patra.kernel.testing import ManualClock
from patra.web.asgi import app
from patra.web.uvicorn_server import serving
from tests.unit.bus.making import envelope, forward

TOKENS = {role: f"{role}-token-of-some-length" for role in ("publisher", "operator", "admin")}


def test_a_publisher_speaks_for_its_own_producers_and_tenants_only(site):
    maker = publisher("maker-1", producers=["Maker"], tenants=["tenant"])
    made = envelope()
    assert site.publish(made, publisher=maker) == [Published(event_id=made.event_id)]
    (other_tenant,) = site.publish(envelope(tenant_id="other"), publisher=maker)
    assert (other_tenant.code, other_tenant.place) == (Reason.PUBLISHER, "/tenant_id")
    stranger = publisher("stranger", producers=["Stranger"], tenants=["*"])
    assert site.publish(envelope(), publisher=stranger)[0].code is Reason.FORWARD_UNMARKED


def test_a_forward_is_marked_by_who_is_allowed_to_forward(site):
    hub = publisher("hub-1", producers=["Hub"], tenants=["*"], forwards=["maker"])
    other = publisher("gate-1", producers=["Gate"], tenants=["*"])
    assert isinstance(site.publish(forward(envelope(), "Hub"), publisher=hub)[0], Published)
    assert site.publish(forward(envelope(), "Gate"), publisher=hub)[0].code is Reason.FORWARD_UNMARKED
    (refused,) = site.publish(forward(envelope(), "Gate"), publisher=other)
    assert (refused.code, refused.place) == (Reason.PUBLISHER, "/producer")


def test_who_published_is_recorded_beside_the_claimed_producer(site):
    made, bad = envelope(), envelope(producer="Nobody")
    site.publish(made, bad, publisher=unbound_publisher("alice"))
    (entry,) = [e for e in site.db.read(lambda tx: timeline(tx, made.event_id)) if e.what == "published"]
    assert (entry.detail["producer"], entry.detail["published_by"]) == ("Maker", "alice")
    (row,) = site.db.read(lambda tx: events.refusals_of(tx, bad.event_id))
    assert (row.producer, row.published_by) == ("Nobody", "alice")


class Served:
    def __init__(self, patra: Any, url: str) -> None:
        self.patra, self.url, self.http = patra, url, urllib3.PoolManager(retries=False)

    def envelope(self, name: str = "task.submitted", **more: Any) -> Any:
        bus = bus_of(self.patra).bus
        ids = dict.fromkeys(("project_id", "trace_id", "correlation_id"), "x")
        payload = dict(bus.catalogue.types[name].contracts[1].examples[0])
        return bus.envelope(name, payload, **{"tenant_id": "acme", "idempotency_key": "k", **ids, **more})

    def post(self, role: str, made: Any) -> tuple[int, Any]:
        headers = {"authorization": f"Bearer {TOKENS[role]}", "content-type": "application/json"}
        answer = self.http.request("POST", f"{self.url}/bus/events", body=encode(made), headers=headers)
        return answer.status, json.loads(answer.data)


def entry(role: str, name: str) -> str:
    return f"{name}=sha256:{sha256(TOKENS[role].encode()).hexdigest()}"


def settings(url: str, **bus: Any) -> Settings:
    web = WebSettings(
        port=0,
        publisher_tokens=(entry("publisher", "gateway"),),
        operator_tokens=(entry("operator", "olga"),),
        admin_tokens=(entry("admin", "alice"),),
    )
    return Settings(store=StoreSettings(url=url), web=web, bus=BusSettings(**bus))


@pytest.fixture
def served(database_url: str) -> Iterator[Served]:
    bound = {"gateway": PublisherSettings(producers=("Gateway",), tenants=("acme",))}
    chosen = settings(database_url, publishers=bound)
    patra = build(chosen, ManualClock())
    with serving(app(patra), chosen.web) as found:
        yield Served(patra, found.url)
    patra.close(5)


def test_an_operator_does_not_publish_and_a_publisher_does_nothing_else(served):
    assert served.post("operator", served.envelope())[1]["code"] == "role_insufficient"
    assert served.post("publisher", served.envelope())[0] == 200
    headers = {"authorization": f"Bearer {TOKENS['publisher']}"}
    assert served.http.request("GET", f"{served.url}/bus/groups", headers=headers).status == 403


def test_a_token_is_bound_to_its_producers_and_tenants(served):
    status, refused = served.post("publisher", served.envelope(tenant_id="other"))
    assert (status, refused["code"], refused["place"]) == (403, "b_publisher_not_allowed", "/tenant_id")
    assert served.post("publisher", served.envelope("run.created"))[1]["code"] == "b_forward_unmarked"
    assert served.post("admin", served.envelope("run.created"))[0] == 200
    found = served.patra.db.read(lambda tx: events.after(tx, 0, limit=9))
    assert [(one.event_type, one.published_by) for one in found] == [("run.created", "alice")]


def test_a_cloudevent_of_a_sender_that_knows_nothing_of_patra_is_published_as_who_its_token_is(served):
    made = served.envelope()
    sent = {"specversion": "1.0", "id": "42", "source": "/portal", "type": made.event_type, "data": made.payload}

    def post(who):
        headers = {"authorization": f"Bearer {TOKENS[who]}", "content-type": "application/cloudevents+json"}
        body = json.dumps(sent).encode()
        answer = served.http.request("POST", f"{served.url}/bus/events", body=body, headers=headers)
        return answer.status, answer.json()

    status, first = post("publisher")
    assert status == 200, first
    assert post("publisher")[1] == {"events": [{**first["events"][0], "duplicate": True}]}
    assert post("admin")[1]["place"] == "/tenant_id"  # of every tenant: it has to say which
    (stored,) = served.patra.db.read(lambda tx: events.after(tx, 0, limit=9))
    assert stored.published_by == "gateway"
    sent["type"] = "run.created"  # the Planner's, whom this token does not speak for
    assert post("publisher")[1]["code"] in {"b_forward_unmarked", "b_payload_invalid"}


def test_a_publishers_token_that_is_bound_to_nothing_stops_the_start(database_url):
    with pytest.raises(ConfigInvalid) as caught:
        build(settings(database_url), ManualClock())
    assert (caught.value.code, caught.value.place) == ("config_publisher_unbound", "web.publisher_tokens[0]")
