"""A program in any language consumes over HTTP: events under leases, with the inbox on our side."""

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import urllib3

from patra.app.access.actor import Role, Scope
from patra.app.access.tokens import add_token
from patra.app.component import Health
from patra.app.components.bus import bus_of
from patra.app.components.bus_publishers import publishers
from patra.app.configuration.engine_settings import BusSettings, PublisherSettings
from patra.app.configuration.settings import Settings, StoreSettings, WebSettings
from patra.app.doctor import own_checks
from patra.app.wiring import Patra, build
from patra.bus import operations
from patra.bus.catalogue.versions import Version
from patra.bus.publishing.envelope import to_wire
from patra.bus.store import dead_letters, deliveries, events, groups
from patra.bus.timeline import timeline
from patra.kernel.clock import MINUTE
from patra.kernel.errors import ConfigInvalid
from patra.kernel.testing import ManualClock
from patra.web.api.bus import pulling
from patra.web.asgi import app
from patra.web.uvicorn_server import serving

NODE = shutil.which("node")
EXAMPLE = Path(__file__).parents[3] / "examples" / "pull_consumer.mjs"
TOKEN, ADMIN = "token-of-the-remote-consumer", "token-of-the-administrator"
TYPES = {"task.submitted": ">=1"}


class Remote:
    """A program that pulls for the group `tasks`, and the Patra that it pulls from."""

    def __init__(self, patra: Patra, url: str) -> None:
        self.patra, self.url, self.http = patra, url, urllib3.PoolManager(retries=False)
        self.bus = bus_of(patra).bus

    def call(self, act: str, body: Any, group: str = "tasks", token: str = TOKEN) -> tuple[int, Any]:
        answer = self.http.request(
            "POST",
            f"{self.url}/bus/groups/{group}/{act}",
            body=json.dumps(body).encode(),
            headers={"content-type": "application/json", "authorization": f"Bearer {token}"},
        )
        return answer.status, answer.json()

    def pull(self, **more: Any) -> list[dict[str, Any]]:
        status, found = self.call("pull", {"types": TYPES, "from_beginning": True, **more})
        assert status == 200, found
        return found["deliveries"]

    def settle(self, act: str, *deliveries: dict[str, Any], **more: Any) -> list[str]:
        status, told = self.call(act, {"deliveries": [d["delivery"] for d in deliveries], **more})
        assert status == 200, told
        return list(told["deliveries"].values())

    def envelope(self, key: str, tenant: str = "acme") -> Any:
        payload = dict(self.bus.catalogue.types["task.submitted"].contracts[1].examples[0])
        return self.bus.envelope(
            "task.submitted", payload, tenant_id=tenant, project_id="p", trace_id="t", correlation_id="c",
            idempotency_key=key,
        )  # fmt: skip

    def publish(self, *keys: str, tenant: str = "acme") -> list[str]:
        made = [self.envelope(key, tenant) for key in keys]
        self.patra.db.run(lambda tx: self.bus.publish_many(tx, made))
        return [one.event_id for one in made]

    def waiting(self) -> int:
        return next(g.waiting for g in self.patra.db.read(groups.totals) if g.name == "tasks")


def settings_with(url: str, **publishers: PublisherSettings) -> Settings:
    def hashed(name: str, token: str) -> str:
        return f"{name}=sha256:{sha256(token.encode()).hexdigest()}"

    web = WebSettings(port=0, publisher_tokens=(hashed("remote", TOKEN),), admin_tokens=(hashed("root", ADMIN),))
    return Settings(store=StoreSettings(url=url), web=web, bus=BusSettings(publishers=publishers))


@pytest.fixture
def remote(database_url: str) -> Iterator[Remote]:
    bound = PublisherSettings(producers=("Gateway",), tenants=("acme",), groups=("tasks",))
    settings = settings_with(database_url, remote=bound)
    patra = build(settings, ManualClock())
    with serving(app(patra), settings.web) as served:
        yield Remote(patra, served.url)
    patra.close(5)


def test_an_event_is_the_callers_until_it_is_acknowledged_and_an_ack_counts_once(remote):
    ids = remote.publish("a", "b")
    first, second = remote.pull()
    assert [first["event"]["event_id"], second["event"]["event_id"]] == ids
    assert (first["attempt"], first["replay"]) == (1, False)
    assert remote.pull() == []  # another worker holds it
    assert remote.settle("ack", first) == ["handled"]
    assert remote.settle("ack", first) == ["handled"]  # the answer was lost: the same again
    assert remote.waiting() == 1
    assert remote.settle("ack", second) == ["handled"]
    assert remote.waiting() == 0


def test_an_event_whose_lease_ran_out_goes_to_another_and_the_late_ack_is_told_so(remote):
    remote.publish("a")
    (late,) = remote.pull(lease_seconds=60)
    remote.patra.clock.advance(2 * MINUTE)
    (again,) = remote.pull()
    assert again["event"]["event_id"] == late["event"]["event_id"]
    assert remote.settle("ack", late) == ["lost"]
    assert remote.settle("nack", late) == ["lost"]
    assert remote.settle("ack", again) == ["handled"]
    assert remote.settle("ack", late) == ["handled"]  # it is, by now


def test_a_lease_is_extended_for_as_long_as_the_work_takes(remote):
    remote.publish("a")
    (held,) = remote.pull(lease_seconds=60)
    for _ in range(3):
        remote.patra.clock.advance(MINUTE - 1)
        assert remote.settle("extend", held, lease_seconds=60) == ["extended"]
        assert remote.pull() == []
    assert remote.settle("ack", held) == ["handled"]


def test_a_nack_comes_back_by_the_retries_or_when_it_asks_or_never(remote):
    remote.publish("a", "b")
    first, second = remote.pull()
    assert remote.settle("nack", first, detail="no luck", retry_after_seconds=3600) == ["later"]
    assert remote.settle("nack", second, code="bad_task", detail="never", dead=True) == ["dead"]
    remote.patra.clock.advance(30 * MINUTE)
    assert remote.pull() == []
    remote.patra.clock.advance(31 * MINUTE)
    (again,) = remote.pull()
    assert (again["event"]["event_id"], again["attempt"]) == (first["event"]["event_id"], 2)
    (letter,) = remote.patra.db.read(lambda tx: dead_letters.of_events(tx, [second["event"]["event_id"]]))
    assert (letter.group, letter.error_code, letter.error_detail) == ("tasks", "bad_task", "never")
    assert remote.patra.db.read(lambda tx: dead_letters.backlog(tx, "task.submitted")) == 0  # B9: it freezes nobody


def test_the_timeline_tells_who_pulled_refused_and_acknowledged_an_event(remote):
    (event_id,) = remote.publish("a")
    (first,) = remote.pull(lease_seconds=60)
    assert remote.settle("nack", first, code="busy", detail="try later", retry_after_seconds=1) == ["later"]
    remote.patra.clock.advance(MINUTE)
    (again,) = remote.pull()
    assert remote.settle("ack", again) == ["handled"]
    found = remote.patra.db.read(lambda tx: timeline(tx, event_id))
    told = [(e.what, e.detail["by"], e.detail.get("attempt")) for e in found if e.what not in {"published", "routed"}]
    assert told == [
        ("delivered", "remote", 1),
        ("attempt_failed", "remote", 1),
        ("delivered", "remote", 2),
        ("handled", "remote", None),
    ]
    failed = next(e.detail for e in found if e.what == "attempt_failed")
    assert (failed["error_code"], failed["error_detail"]) == ("busy", "try later")


def test_who_subscribed_a_group_is_recorded_once_and_so_is_who_was_refused(remote):
    remote.pull()
    remote.pull()
    (act,) = remote.patra.db.read(lambda tx: groups.acts(tx, subject="tasks"))
    assert (act.act, act.done_by) == ("subscribe", "remote")
    assert act.detail == {"event_type": "task.submitted", "versions": ">=1", "from_beginning": True}
    for _ in range(2):
        remote.call("pull", {"types": TYPES}, group="strangers")
    remote.call("pull", {"types": TYPES}, group="others")
    remote.call("ack", {"deliveries": ["1.1.x.y"]}, group="strangers")
    remote.call("pull", {"types": {"task.submitted": ">=9"}})
    remote.call("pull", {"types": {"task.submitted": "newest"}})
    rows = remote.patra.db.read(lambda tx: events.refusals(tx, limit=10))
    assert {r.published_by for r in rows} == {"remote"}
    assert sorted((r.code, r.event_type, r.detail.partition(":")[0], r.count) for r in rows) == [
        ("b_consumer_not_allowed", "", "pull of group strangers", 1),
        ("b_consumer_not_allowed", "task.submitted", "pull of group others", 1),
        ("b_consumer_not_allowed", "task.submitted", "pull of group strangers", 2),
        ("b_version_unknown", "task.submitted", "pull of group tasks", 2),
    ]


def test_names_that_are_no_group_s_are_one_row_among_the_refusals(remote):
    """What a program makes up as it goes does not fill the store."""
    for n in range(3):
        assert remote.call("pull", {"types": TYPES}, group=f"No.{n}", token=ADMIN)[0] == 404
    (row,) = remote.patra.db.read(lambda tx: events.refusals(tx, limit=10))
    assert (row.code, row.count) == ("b_group_unknown", 3)


def test_b9_letters_of_a_forgotten_remote_group_freeze_nobody(remote):
    remote.publish("a")
    (held,) = remote.pull()
    assert remote.settle("nack", held, dead=True) == ["dead"]
    forget = {"by": "ann", "confirm": "tasks"}
    remote.patra.db.run(lambda tx: operations.forget(tx, remote.bus, "tasks", **forget))
    assert remote.patra.db.read(lambda tx: dead_letters.backlog(tx, "task.submitted")) == 0


def test_letters_of_a_remote_group_that_was_forgotten_before_the_upgrade_are_discarded(remote):
    """Nothing on the store says of them that the group was remote: docs/operations/bus.md says what to do."""
    made = remote.publish("a")
    (held,) = remote.pull()
    remote.settle("nack", held, dead=True)
    forget = {"by": "ann", "confirm": "tasks"}
    remote.patra.db.run(lambda tx: operations.forget(tx, remote.bus, "tasks", **forget))
    remote.patra.db.run(lambda tx: tx.script("UPDATE bus_dead_letter SET remote = 0"))  # as migration 0211 leaves it
    assert remote.patra.db.read(lambda tx: dead_letters.backlog(tx, "task.submitted")) == 1
    discard = {"by": "ann", "reason": "the group is gone"}
    remote.patra.db.run(lambda tx: operations.discard(tx, remote.bus, "tasks", made, **discard))
    assert remote.patra.db.read(lambda tx: dead_letters.backlog(tx, "task.submitted")) == 0


def test_what_is_published_with_an_ack_is_there_if_and_only_if_the_ack_counts(remote):
    remote.publish("a")
    (held,) = remote.pull()
    follows = to_wire(remote.envelope("follows"))
    body = {"deliveries": [held["delivery"]], "publish": [{**follows, "event_version": "9.0"}]}
    assert remote.call("ack", body)[1]["code"] == "b_version_unknown"
    assert remote.settle("extend", held) == ["extended"]  # it is the caller's still
    status, told = remote.call("ack", {**body, "publish": [follows]})
    assert (status, told["published"][0]["event_id"]) == (200, follows["event_id"])
    assert remote.call("ack", {**body, "publish": [follows]})[1]["published"][0]["duplicate"] is True
    (next_one,) = remote.pull()
    assert next_one["event"]["event_id"] == follows["event_id"]
    remote.patra.clock.advance(2 * MINUTE)
    (other,) = remote.pull()
    lost = {"deliveries": [next_one["delivery"]], "publish": [to_wire(remote.envelope("not"))]}
    assert remote.call("ack", lost)[1] == {"deliveries": {next_one["delivery"]: "lost"}, "published": []}
    assert remote.settle("ack", other) == ["handled"]
    assert remote.pull() == []


def test_an_answer_that_comes_after_another_was_counted_is_not_published(remote):
    remote.publish("a")
    (late,) = remote.pull(lease_seconds=60)
    remote.patra.clock.advance(2 * MINUTE)
    (again,) = remote.pull()
    counted = {"deliveries": [again["delivery"]], "publish": [to_wire(remote.envelope("counted"))]}
    assert remote.call("ack", counted)[1]["deliveries"] == {again["delivery"]: "handled"}
    second = {"deliveries": [late["delivery"]], "publish": [to_wire(remote.envelope("second"))]}
    assert remote.call("ack", second)[1] == {"deliveries": {late["delivery"]: "lost"}, "published": []}
    assert remote.call("ack", counted)[1]["published"][0]["duplicate"] is True
    (answer,) = remote.pull()  # one answer, not two
    assert answer["event"]["event_id"] == counted["publish"][0]["event_id"]
    one = deliveries.Waiting(1, None, 0, 0, False, None, "", Version(1, 0), answer["event"]["event_id"], 0, None, 0)
    remote.patra.db.run(lambda tx: deliveries.accept(tx, "tasks", [one], remote.patra.clock.now()))  # by another way
    third = {"deliveries": [answer["delivery"]], "publish": [to_wire(remote.envelope("third"))]}
    assert remote.call("ack", third)[1] == {"deliveries": {answer["delivery"]: "lost"}, "published": []}
    assert (remote.pull(), remote.waiting()) == ([], 0)


def test_a_request_waits_for_the_first_event(remote):
    remote.pull()
    thread = threading.Timer(0.3, lambda: remote.publish("a"))
    thread.start()
    assert len(remote.pull(wait_seconds=60)) == 1
    thread.join()


def test_where_too_many_wait_the_next_is_answered_at_once(remote, monkeypatch):
    monkeypatch.setattr(pulling, "MAX_WAITING_PULLS", 0)
    remote.http = urllib3.PoolManager(retries=False, timeout=30.0)
    assert remote.pull(wait_seconds=60) == []
    remote.publish("a")
    assert len(remote.pull(wait_seconds=60)) == 1


def test_leased_events_of_a_type_that_the_group_left_keep_nothing_from_it(remote):
    remote.publish("a")
    remote.pull(lease_seconds=60)
    remote.patra.clock.advance(2 * MINUTE)
    remote.patra.db.run(lambda tx: operations.unsubscribe(tx, remote.bus, "tasks", "task.submitted", by="ann"))
    payload = dict(remote.bus.catalogue.types["run.created"].contracts[1].examples[0])
    other = remote.bus.envelope(
        "run.created", payload, tenant_id="acme", project_id="p", trace_id="t", correlation_id="c", idempotency_key="k"
    )
    remote.patra.db.run(lambda tx: remote.bus.publish(tx, other))
    found = [remote.pull(types={"run.created": ">=1"}, max=1) for _ in range(2)]
    assert [d["event"]["event_id"] for one in found for d in one] == [other.event_id]
    remote.patra.clock.advance(MINUTE)
    (back,) = remote.pull(max=1)  # it subscribes again, and what it left is there still
    assert back["event"]["event_type"] == "task.submitted"


def test_b7_a_token_takes_events_of_its_groups_and_tenants_only(remote):
    remote.publish("theirs", tenant="other")
    mine = remote.publish("mine")
    assert [d["event"]["event_id"] for d in remote.pull()] == mine
    status, told = remote.call("pull", {"types": TYPES}, group="strangers")
    assert (status, told["code"]) == (403, "b_consumer_not_allowed")
    assert remote.call("ack", {"deliveries": ["1.1.x.y"]}, group="strangers")[0] == 403
    assert remote.call("pull", {"types": TYPES}, group="anything", token=ADMIN)[0] == 200


def test_b7_a_token_of_the_store_takes_events_for_its_groups_of_its_tenants_and_publishes_nothing(remote):
    scope = Scope(groups=("kept",), tenants=("acme",))
    add = {"by": "test", "now": remote.patra.clock.now()}
    token = remote.patra.db.run(lambda tx: add_token(tx, "worker", Role.PUBLISHER, scope, **add)).token
    assert remote.call("pull", {"types": TYPES}, group="kept", token=token)[0] == 200
    remote.publish("theirs", tenant="other")
    mine = remote.publish("mine")
    status, told = remote.call("pull", {}, group="kept", token=token)
    assert (status, [one["event"]["event_id"] for one in told["deliveries"]]) == (200, mine)
    (delivery,) = told["deliveries"]
    assert remote.call("ack", {"deliveries": [delivery["delivery"]]}, group="kept", token=token)[0] == 200
    assert remote.call("pull", {"types": TYPES}, group="tasks", token=token)[1]["code"] == "b_consumer_not_allowed"
    followed = {"deliveries": ["1.1.x.y"], "publish": [{**delivery["event"], "idempotency_key": "new"}]}
    del followed["publish"][0]["event_id"]
    assert remote.call("ack", followed, group="kept", token=token)[1]["deliveries"] == {"1.1.x.y": "lost"}
    body = json.dumps(followed["publish"]).encode()
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    refused = remote.http.request("POST", f"{remote.url}/bus/events", body=body, headers=headers).json()
    assert refused["events"][0]["code"] == "b_forward_unmarked"


def test_events_of_tenants_that_another_token_of_the_group_sees_are_left_for_it(remote):
    """A conflict that the settings bring after the token was made: nothing is lost, and the doctor shows it."""
    scope = Scope(groups=("tasks",), tenants=("other",))
    body = {"name": "late", "role": "publisher", "groups": ["tasks"], "tenants": ["other"]}
    headers = {"content-type": "application/json", "authorization": f"Bearer {ADMIN}"}
    refused = remote.http.request("POST", f"{remote.url}/tokens", body=json.dumps(body).encode(), headers=headers)
    assert (refused.status, refused.json()["code"]) == (400, "token_scope_invalid")
    checks = {one.name: one for one in own_checks(remote.patra)}
    assert checks["bus groups"].health is Health.OK
    add = {"by": "test", "now": remote.patra.clock.now()}
    token = remote.patra.db.run(lambda tx: add_token(tx, "worker", Role.PUBLISHER, scope, **add)).token
    checks = {one.name: one for one in own_checks(remote.patra)}
    assert checks["bus groups"].health is Health.WARNING
    assert "tasks (remote of the settings, token worker)" in checks["bus groups"].found

    theirs = remote.publish("a", "b", "c", tenant="other")
    remote.publish("nobody", tenant="third")
    mine = remote.publish("mine")
    pulled = [one for _ in range(6) for one in remote.pull(max=1)]
    assert [one["event"]["event_id"] for one in pulled] == mine  # it stands behind those of others
    assert remote.settle("ack", *pulled) == ["handled"]
    assert remote.waiting() == 3  # `nobody` is for nobody
    _, told = remote.call("pull", {}, token=token)
    assert [(one["event"]["event_id"], one["attempt"]) for one in told["deliveries"]] == [(one, 1) for one in theirs]
    remote.patra.clock.advance(60 * MINUTE)  # lost once, by its own worker
    _, told = remote.call("pull", {}, token=token)
    assert [one["event"]["event_id"] for one in told["deliveries"]] == theirs
    assert remote.settle("ack", *told["deliveries"]) == ["handled"] * 3


def test_a_group_of_handlers_in_a_process_of_the_bus_is_not_pulled(remote):
    remote.patra.db.run(lambda tx: groups.ensure(tx, "elsewhere", 0))  # joined by another process
    remote.bus.consumer("task.submitted", group="here")(lambda _tx, _event: None)
    for group in ("elsewhere", "here"):
        for types in (TYPES, {}):
            status, told = remote.call("pull", {"types": types}, group=group, token=ADMIN)
            assert (status, told["code"]) == (403, "b_consumer_not_allowed")


def test_what_cannot_be_asked_for_is_told_with_its_reason(remote):
    assert remote.call("pull", {"types": {"no.such": ">=1"}})[1]["code"] == "b_type_unknown"
    assert remote.call("pull", {"types": {"task.submitted": ">=9"}})[1]["code"] == "b_version_unknown"
    assert remote.call("pull", {"types": {"task.submitted": "newest"}})[1]["code"] == "b_version_unknown"
    assert remote.call("pull", {"max": 0})[0] == 400
    assert remote.call("pull", {})[1]["code"] == "b_group_unknown"  # it never subscribed
    assert remote.call("ack", {"deliveries": ["x"]})[1]["code"] == "b_group_unknown"
    remote.pull()
    told = remote.settle(
        "ack", *[{"delivery": text} for text in ("x", "1.2.3", "1.1.holder.event", "9" * 99 + ".1.h.e")]
    )
    assert told == ["lost"] * 4


def test_a_group_belongs_to_publishers_of_the_same_tenants():
    one = PublisherSettings(producers=("Gateway",), tenants=("acme",), groups=("tasks",))
    two = PublisherSettings(producers=("Gateway",), tenants=("other",), groups=("tasks",))
    with pytest.raises(ConfigInvalid, match="the group tasks"):
        publishers(settings_with("sqlite://", remote=one, more=two))
    every = PublisherSettings(producers=("Gateway",), tenants=("acme",), groups=("*",))
    for first, second in ((every, two), (two, every)):  # `*` takes them of every group
        with pytest.raises(ConfigInvalid, match="the group tasks"):
            publishers(settings_with("sqlite://", remote=first, more=second))
    publisher_only = PublisherSettings(producers=("Gateway",), tenants=("other",))
    assert len(publishers(settings_with("sqlite://", remote=one, more=every, third=publisher_only))) == 3


@pytest.mark.skipif(NODE is None, reason="Node.js is not installed")
def test_the_consumer_in_node_handles_each_event_once(remote):
    ids = remote.publish("a", "b", "c")
    command = [str(NODE), str(EXAMPLE), "task.submitted", "tasks", "once"]
    names = os.environ | {"PATRA_URL": remote.url, "PATRA_TOKEN": TOKEN}
    said = subprocess.run(command, env=names, capture_output=True, text=True, check=True, timeout=120).stdout
    assert said.splitlines() == [f"attempt 1: task.submitted {i}" for i in ids]
    assert remote.waiting() == 0
    again = subprocess.run(command, env=names, capture_output=True, text=True, check=True, timeout=120).stdout
    assert again == ""
