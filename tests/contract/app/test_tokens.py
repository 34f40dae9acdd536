"""Tokens that the store keeps, through HTTP: scopes hold, and what expired or was revoked is refused at once."""

import json
import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import pytest
import urllib3
from msgspec.structs import replace

from patra.app.access.actor import Role, Scope
from patra.app.access.audit import list_acts
from patra.app.access.tokens import USED_INTERVAL, add_token, revoke_token, rotate_token, tokens
from patra.app.components.bus import bus_of
from patra.app.configuration.settings import Settings, StoreSettings, WebSettings
from patra.app.wiring import Patra, build
from patra.bus.publishing.envelope import encode, to_wire
from patra.kernel.clock import DAY, HOUR, SECOND, format_instant
from patra.kernel.db import open_database
from patra.kernel.ids import new_id
from patra.kernel.testing import ManualClock
from patra.web.asgi import app, every_endpoint
from patra.web.uvicorn_server import serving
from tests.conftest import schema_of_its_own
from tests.unit.attribution.said import envelope, event

ADMIN = "admin-token-of-the-settings"


class House:
    """A Patra behind a real socket, and another process's connection to its store."""

    def __init__(self, patra: Patra, url: str, store: str, clock: ManualClock) -> None:
        self.patra, self.url, self.clock = patra, url, clock
        self.elsewhere = open_database(store)
        self.http = urllib3.PoolManager(retries=False)

    def new(self, name: str, role: Role, *, lifetime: int | None = None, **scope: Any) -> str:
        bound = Scope(**scope)
        now = self.clock.now()
        return self.elsewhere.run(
            lambda tx: add_token(tx, name, role, bound, by="test", now=now, lifetime=lifetime)
        ).token

    def ask(self, token: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        answer = self.http.request(method, f"{self.url}{path}", body=content, headers=headers)
        return answer.status, json.loads(answer.data)

    def batch(self, app_id: str, batch: str) -> dict[str, Any]:
        at = format_instant(self.clock.now())
        return envelope(event("impression", batch, eventAt=at), batch=batch, app=app_id, sentAt=at)


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One store for all tests here: each goes by names of its own."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path_factory.mktemp('tokens') / 'patra.db'}"
        return
    with schema_of_its_own(request.getfixturevalue("postgres_server")) as url:
        yield url


@pytest.fixture(scope="module")
def house(store: str) -> Iterator[House]:
    admin = f"alice=sha256:{sha256(ADMIN.encode()).hexdigest()}"
    settings = Settings(store=StoreSettings(url=store), web=WebSettings(port=0, admin_tokens=(admin,)))
    clock = ManualClock()
    patra = build(settings, clock)
    with serving(app(patra), settings.web) as served:
        made = House(patra, served.url, store, clock)
        yield made
        made.elsewhere.close()
    patra.close(5)


def test_a_token_for_one_app_neither_sends_for_another_nor_reads_it(house: House):
    sender, other = (house.new(f"send-{name}", Role.PUBLISHER, app=name) for name in ("shop", "game"))
    reader = house.new("read-shop", Role.VIEWER, app="shop")
    assert house.ask(sender, "POST", "/events", house.batch("shop", "b1"))[0] == 200
    assert house.ask(other, "POST", "/events", house.batch("game", "b2"))[0] == 200
    status, refused = house.ask(sender, "POST", "/events", house.batch("game", "b3"))
    assert (status, refused["code"]) == (403, "f_app_key_foreign")
    for token in (reader, ADMIN, "pt_unknown"):
        assert house.ask(token, "POST", "/events", house.batch("shop", "b4"))[0] == 401

    def read(token: str, path: str) -> int:
        answer = house.ask(token, "GET", path)[1]
        return len(answer["items"] if "items" in answer else answer["decisions"])

    for path, all_there, of_shop in (
        ("/attribution/audits", 2, 1),
        ("/attribution/audits?appId=shop", 1, 1),
        ("/attribution/events?batchId=b1", 1, 1),
        ("/attribution/events?batchId=b2", 1, 0),
        ("/attribution/timeline/b2", 1, 0),
    ):
        assert (read(ADMIN, path), read(reader, path)) == (all_there, of_shop), path
    assert house.ask(reader, "GET", "/attribution/audits?appId=game")[1]["code"] == "scope_insufficient"
    assert house.ask(reader, "GET", "/attribution/statements/game/2026-01")[1]["code"] == "scope_insufficient"
    assert house.ask(reader, "GET", "/attribution/statements/shop/2026-01")[1]["code"] == "statement_unknown"
    compared = house.ask(reader, "POST", "/attribution/apps/shop/periods/2026-01/reconcile", {"csv": "billingKey\n"})
    assert compared[1]["code"] == "role_insufficient"
    for path in ("/attribution/decisions", "/attribution/rejects", "/bus/groups", "/story?key=b2", "/loops"):
        assert house.ask(reader, "GET", path)[1]["code"] == "scope_insufficient", path
    assert house.ask(sender, "GET", "/attribution/audits")[1]["code"] == "role_insufficient"


def test_a_token_for_one_engine_reads_it_and_does_not_act(house: House):
    reader = house.new("inga", Role.VIEWER, engines=("ingest",))
    operator = house.new("olga", Role.OPERATOR, engines=("ingest",))
    assert house.ask(reader, "GET", "/ingest/plans")[0] == 200
    assert house.ask(operator, "POST", "/ingest/plans/none/cancel", {})[0] in {400, 404}
    for path in ("/attribution/audits", "/bus/dead-letters", "/metrics", "/story?key=x"):
        assert house.ask(operator, "GET", path)[1]["code"] == "scope_insufficient", path
    assert house.ask(operator, "POST", "/bus/groups/none/pause")[1]["code"] == "scope_insufficient"
    assert house.ask(reader, "POST", "/ingest/plans/none/cancel", {})[1]["code"] == "role_insufficient"


def test_a_publisher_speaks_for_its_producers_and_tenants_and_a_viewer_reads_its_tenants(house: House):
    gateway = house.new("gateway", Role.PUBLISHER, producers=("Gateway",), tenants=("acme",))
    reader = house.new("acme-reader", Role.VIEWER, tenants=("acme", "beta"))
    bus = bus_of(house.patra).bus

    def made(name: str, tenant: str) -> bytes:
        payload = dict(bus.catalogue.types[name].contracts[1].examples[0])
        ids = dict.fromkeys(("project_id", "trace_id", "correlation_id"), "x")
        return encode(bus.envelope(name, payload, tenant_id=tenant, idempotency_key=f"{name}/{tenant}", **ids))

    assert house.ask(gateway, "POST", "/bus/events", made("task.submitted", "acme"))[0] == 200
    assert house.ask(gateway, "POST", "/bus/events", made("task.submitted", "other"))[1]["place"] == "/tenant_id"
    assert house.ask(gateway, "POST", "/bus/events", made("run.created", "acme"))[1]["code"] == "b_forward_unmarked"
    assert house.ask(reader, "GET", "/bus/dead-letters?tenant_id=acme")[0] == 200
    for path in ("/bus/dead-letters", "/bus/dead-letters?tenant_id=other", "/bus/events/x", "/bus/groups"):
        assert house.ask(reader, "GET", path)[1]["code"] == "scope_insufficient", path


class TwoTenants:
    """Events of two tenants in one trace, each a dead letter, discarded by one act; a refusal and a run of each."""

    group = "readers"

    def __init__(self, house: House, *tenants: str) -> None:
        self.house, self.trace, self.key = house, f"trace of {tenants}", f"key of {tenants}"
        self.runs = {one: self._run(one) for one in tenants}
        self._pull()
        bus = bus_of(house.patra).bus
        payload = dict(bus.catalogue.types["task.submitted"].contracts[1].examples[0])
        ids = {"project_id": "x", "trace_id": self.trace, "correlation_id": "c", "idempotency_key": self.key}
        made = [bus.envelope("task.submitted", payload, tenant_id=one, **ids) for one in tenants]
        spoilt = [replace(one, event_id=new_id(), producer="Nobody", idempotency_key="spoilt") for one in made]
        self.events = {one.tenant_id: one.event_id for one in made}
        assert self._act("/bus/events", [to_wire(one) for one in (*made, *spoilt)])[0] == 207
        dead = [one["delivery"] for one in self._pull() if one["event"]["trace_id"] == self.trace]
        self._act(f"/bus/groups/{self.group}/nack", {"deliveries": dead, "code": "boom", "dead": True})
        discarded = {"group": self.group, "event_ids": list(self.events.values()), "reason": "test"}
        assert len(self._act("/bus/discard", discarded)[1]["letters"]) == len(tenants)

    def _act(self, path: str, body: Any) -> tuple[int, Any]:
        return self.house.ask(ADMIN, "POST", path, body)

    def _run(self, tenant: str) -> str:
        return self._act("/studio/runs", {"chapter": "A short chapter. It ends.", "tenant_id": tenant})[1]["run_id"]

    def _pull(self) -> list[Any]:
        asked = {"types": {"task.submitted": ">=1"}, "max": 100}
        return self._act(f"/bus/groups/{self.group}/pull", asked)[1]["deliveries"]


def test_a_viewer_of_a_tenant_reads_all_that_is_its_own_and_nothing_of_others(house: House):
    there = TwoTenants(house, "north", "south")
    own, foreign = there.events["north"], there.events["south"]
    reader = house.new("north-reader", Role.VIEWER, tenants=("north",))

    def read(path: str, token: str = reader) -> str:
        status, answer = house.ask(token, "GET", path)
        assert status == 200, (path, answer)
        return json.dumps(answer)

    for path in (
        "/bus/events",
        f"/bus/events/{there.trace}",
        f"/bus/events/{own}",
        f"/bus/timeline/{there.trace}",
        f"/bus/timeline/{there.key}",
        f"/bus/timeline/{own}",
        "/bus/dead-letters?state=all",
        f"/bus/dead-letters/{there.group}/{own}",
    ):
        found = read(path)
        assert own in found, path
        assert foreign not in found, path
        assert "south" not in found.replace(there.trace, "").replace(there.key, ""), path
        assert foreign in read(path, ADMIN) or path.endswith(own), path  # an unbound token sees both
    listed = house.ask(reader, "GET", "/bus/events?limit=1")[1]
    assert (listed["events"][0]["tenant_id"], listed["events"][0]["occurred_at"][-1]) == ("north", "Z")
    assert read(f"/bus/events/{foreign}") == "[]"
    assert read(f"/bus/timeline/{foreign}") == '{"entries": []}'
    causes = house.ask(reader, "GET", "/bus/dead-letters/causes?state=discarded")[1]["causes"]
    assert [(one["error_code"], one["letters"]) for one in causes] == [("boom", 1)]
    over_time = "/bus/dead-letters/over-time?state=discarded"
    assert [sum(house.ask(one, "GET", over_time)[1]["counts"]) for one in (reader, ADMIN)] == [1, 2]
    beside = house.ask(reader, "GET", f"/bus/dead-letters/{there.group}/{own}/beside")[1]
    assert (beside["letters"], beside["last_handled"]) == (1, None)
    status, refused = house.ask(reader, "GET", f"/bus/dead-letters/{there.group}/{foreign}/beside")
    assert (status, refused["code"]) == (403, "scope_insufficient")
    assert [one["tenant_id"] for one in house.ask(reader, "GET", "/bus/refusals")[1]["refusals"]] == ["north"]
    assert [one["run_id"] for one in house.ask(reader, "GET", "/studio/runs")[1]["runs"]] == [there.runs["north"]]
    assert read("/bus/catalogue") == read("/bus/catalogue", ADMIN)
    for tail in ("", "/events", "/film", "/captions", "/manifest", "/shots/s1/still"):
        foreign_run, no_run = (
            house.ask(reader, "GET", f"/studio/runs/{one}{tail}") for one in (there.runs["south"], "run_none")
        )
        assert foreign_run == no_run, tail  # neither is told apart from the other
        assert foreign_run[1]["code"] == "scope_insufficient", tail
    assert house.ask(reader, "GET", f"/studio/runs/{there.runs['north']}")[0] == 200
    assert house.ask(reader, "GET", f"/studio/runs/{there.runs['north']}/film")[1]["code"] == "s_film_missing"


def test_a_viewer_of_a_tenant_reads_nothing_that_is_of_all_tenants(house: House):
    """Every read of the interface is either narrowed to a tenant, the same for all, or refused."""
    reader = house.new("all-reader", Role.VIEWER, tenants=("north",))
    reads = [one for one in every_endpoint(house.patra) if one.method == "GET" and one.role is not None]
    allowed = {one.path for one in reads if one.tenant_query or one.tenant_of or one.shared}
    for endpoint in reads:
        path = re.sub(r"{\w+(:\w+)?}", "x", endpoint.path)
        status, answer = house.ask(reader, "GET", path)
        if endpoint.path not in allowed:
            assert (status, answer["code"]) in {(403, "scope_insufficient"), (403, "role_insufficient")}, path
    assert sorted(allowed) == [
        "/bus/catalogue",
        "/bus/catalogue/asyncapi",
        "/bus/catalogue/{type}",
        "/bus/dead-letters",
        "/bus/dead-letters/causes",
        "/bus/dead-letters/over-time",
        "/bus/dead-letters/{group}/{event_id}",
        "/bus/dead-letters/{group}/{event_id}/beside",
        "/bus/events",
        "/bus/events/{key}",
        "/bus/refusals",
        "/bus/timeline/{key}",
        "/studio/runs",
        "/studio/runs/{run_id}",
        "/studio/runs/{run_id}/captions",
        "/studio/runs/{run_id}/events",
        "/studio/runs/{run_id}/film",
        "/studio/runs/{run_id}/manifest",
        "/studio/runs/{run_id}/shots/{shot_id}/still",
    ]


def test_what_expired_was_revoked_or_rotated_out_is_refused_at_once(house: House):
    short = house.new("short", Role.VIEWER, lifetime=HOUR)
    viewer = house.new("vera", Role.VIEWER)
    assert [house.ask(token, "GET", "/loops")[0] for token in (short, viewer)] == [200, 200]
    house.clock.advance(HOUR)
    assert house.ask(short, "GET", "/loops")[1]["code"] == "token_expired"

    def rotate(tx: Any) -> str:
        return rotate_token(tx, "vera", by="test", now=house.clock.now(), overlap=DAY).token

    newer = house.elsewhere.run(rotate)
    assert [house.ask(token, "GET", "/loops")[0] for token in (viewer, newer)] == [200, 200]
    house.clock.advance(DAY)
    assert house.ask(viewer, "GET", "/loops")[1]["code"] == "token_expired"
    assert house.ask(newer, "GET", "/loops")[0] == 200
    assert house.elsewhere.run(lambda tx: revoke_token(tx, "vera", now=house.clock.now())) == 1
    status, refused = house.ask(newer, "GET", "/loops")
    assert (status, refused["code"]) == (401, "token_revoked")
    assert house.ask("pt_nobody", "GET", "/loops")[1]["code"] == "token_unknown"


def test_the_last_use_is_written_seldom(house: House):
    viewer = house.new("seldom", Role.VIEWER)

    def used() -> str | None:
        return house.elsewhere.read(lambda tx: tokens(tx, house.clock.now(), "seldom"))[0].used_at

    assert used() is None
    first = format_instant(house.clock.now())
    house.ask(viewer, "GET", "/loops")
    assert used() == first
    house.clock.advance(USED_INTERVAL)
    house.ask(viewer, "GET", "/loops")
    assert used() == first
    house.clock.advance(SECOND)
    house.ask(viewer, "GET", "/loops")
    assert used() == format_instant(house.clock.now())


def test_an_unbound_admin_makes_rotates_and_revokes_over_http_and_the_audit_says_so(house: House):
    asked = {"name": "bob", "role": "admin", "engines": ["operations"], "lifetime_seconds": 60}
    status, made = house.ask(ADMIN, "POST", "/tokens", asked)
    assert (status, made["name"]) == (201, "bob")
    assert house.ask(made["token"], "GET", "/audit")[0] == 200
    for method, path, body in (
        ("GET", "/tokens", None),
        ("POST", "/tokens", {"name": "eve", "role": "admin"}),
        ("POST", "/tokens/bob/rotate", {}),
    ):
        assert house.ask(made["token"], method, path, body)[1]["code"] == "scope_insufficient"
    assert house.ask(ADMIN, "POST", "/tokens", asked)[1]["code"] == "token_name_taken"
    rotated = house.ask(ADMIN, "POST", "/tokens/bob/rotate", {"overlap_seconds": 5})[1]
    listed = [one for one in house.ask(ADMIN, "GET", "/tokens")[1]["tokens"] if one["name"] == "bob"]
    assert [(one["name"], one["state"], one["scope"]) for one in listed] == [
        ("bob", "active", {"engines": ["operations"]})
    ] * 2
    assert rotated["token"] not in json.dumps(listed)
    assert house.ask(ADMIN, "POST", "/tokens/bob/revoke")[1] == {"name": "bob", "revoked": 2}
    assert house.ask(rotated["token"], "GET", "/audit")[0] == 401
    assert house.ask(ADMIN, "POST", "/tokens/bob/revoke")[1]["code"] == "token_not_found"
    acts = house.patra.db.read(lambda tx: list_acts(tx, limit=3))
    assert [(one.act, one.subject, one.actor) for one in acts] == [
        ("token.revoke", "bob", "alice"),
        ("token.rotate", "bob", "alice"),
        ("token.new", "bob", "alice"),
    ]


def test_a_token_of_the_store_signs_in_to_the_console_unless_it_is_bound(house: House):
    viewer, bound = house.new("wanda", Role.VIEWER), house.new("ivo", Role.VIEWER, engines=("ingest",))

    def sign_in(token: str) -> urllib3.BaseHTTPResponse:
        return house.http.request(
            "POST", f"{house.url}/console/login", fields={"token": token}, encode_multipart=False, redirect=False
        )

    def page(cookie: str) -> int:
        asked = {"cookie": cookie}
        return house.http.request("GET", f"{house.url}/console/bus", headers=asked, redirect=False).status

    assert sign_in(bound).status == 401
    answer = sign_in(viewer)
    assert answer.status == 303
    cookie = answer.headers["set-cookie"].partition(";")[0]
    assert page(cookie) == 200
    house.elsewhere.run(lambda tx: revoke_token(tx, "wanda", now=house.clock.now()))
    assert page(cookie) == 303
