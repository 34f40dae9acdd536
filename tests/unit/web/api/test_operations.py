"""Health, readiness, loops and metrics of a process, seen over HTTP."""

import threading

import pytest

from patra.app.access.actor import Role
from patra.app.access.audit import list_acts
from patra.app.loops import NOT_READY_AFTER, Loop
from patra.app.wiring import open_store, packages
from patra.kernel.clock import HOUR
from patra.kernel.db import migrate
from tests.unit.app.test_outbox_admin import refuse
from tests.unit.web.served import problem, served, web_settings, with_loops


def test_a_fresh_process_is_alive_and_ready() -> None:
    with served() as client:
        assert client.get("/health").json() == {"status": "alive"}
        assert client.get("/ready").json() == {"ready": True, "reasons": [], "loops": []}
        links = client.get("/").json()["links"]
        assert (links["ready"], links["console"]) == ("/ready", "/console")
        for path in links.values():
            assert client.get(path).status in {200, 303}, path  # the console asks who is there


def test_missing_migrations_make_it_not_ready_until_they_are_applied(tmp_path) -> None:
    settings = web_settings()
    store = type(settings.store)(url=f"sqlite:///{tmp_path / 'x.db'}", migrate_on_start=False)
    settings = type(settings)(store=store, web=settings.web)
    with served(settings) as client:
        before = client.get("/ready")
        health = client.get("/health")
        migrate(client.patra.db, packages())
        after = client.get("/ready")

    found = problem(before)
    assert (before.status, found["code"], found["ready"]) == (503, "not_ready", False)
    assert "patra.kernel 0001" in found["reasons"][0]
    assert "patra migrate" in found["reasons"][0]
    assert health.status == 200
    assert after.status == 200


def test_a_store_that_is_gone_makes_it_not_ready_and_leaves_it_alive() -> None:
    with served() as client:
        client.patra.db.close()
        assert problem(client.get("/ready"))["reasons"][0].startswith("store_")
        assert client.get("/health").status == 200


def test_the_outbox_is_counted_by_channel_and_state_and_the_process_checks_itself() -> None:
    with served() as client:
        assert client.get("/outbox/backlog").json() == {"backlog": []}
        before = {one["name"]: one["health"] for one in client.get("/doctor").json()["checks"]}
        refuse(client.patra.db, "ingest.record", "a", "b")
        found = client.get("/outbox/backlog").json()["backlog"]
        after = {one["name"]: one for one in client.get("/doctor").json()["checks"]}
        client.patra.db.close()
        gone = {one["name"]: one["health"] for one in client.get("/doctor").json()["checks"]}
    assert found == [{"channel": "ingest.record", "state": "refused", "count": 2, "more": False}]
    assert (before["store"], before["migrations"], before["outbox"]) == ("ok", "ok", "ok")
    assert (after["outbox"]["health"], after["outbox"]["found"]) == ("warning", "2 of ingest.record refused")
    assert gone["store"] == "broken"


def test_a_loop_that_keeps_failing_is_named_in_ready_and_in_the_list() -> None:
    turns = threading.Semaphore(0)

    def fails() -> None:
        turns.release()
        raise RuntimeError("no luck")

    with served(parts=with_loops(Loop(name="example.unlucky", run_once=fails, every=HOUR))) as client:
        client.patra.start()
        for _ in range(NOT_READY_AFTER + 1):  # one more: then the one before has been recorded
            assert turns.acquire(timeout=30)
            assert client.post("/loops/example.unlucky/wake").json() == {"woken": "example.unlucky"}
        response = client.get("/ready")
        (state,) = (loop for loop in client.get("/loops").json()["loops"] if loop["name"] == "example.unlucky")

    assert response.status == 503
    assert problem(response)["reasons"][0].startswith("loop example.unlucky failed ")
    assert state["failures_in_a_row"] >= NOT_READY_AFTER
    assert state["last_error"] == "RuntimeError: no luck"


def test_waking_a_loop_gives_it_a_turn_and_is_audited() -> None:
    turns = threading.Semaphore(0)

    with served(parts=with_loops(Loop(name="example.idle", run_once=turns.release, every=HOUR))) as client:
        client.patra.start()
        assert turns.acquire(timeout=30)
        assert client.post("/loops/example.idle/wake").status == 200
        assert turns.acquire(timeout=30)
        unknown = client.post("/loops/other/wake")
        rows = client.patra.db.read(lambda tx: list_acts(tx, limit=10))

    assert (unknown.status, problem(unknown)["code"]) == (404, "loop_unknown")
    assert [(row.actor, row.act, row.subject) for row in rows] == [("local", "loop.wake", "example.idle")]


def test_metrics_count_requests_by_the_path_of_the_table() -> None:
    with served() as client:
        client.post("/loops/some-name/wake")
        client.get("/a-path-nobody-knows")
        response = client.get("/metrics")

    text = response.data.decode()
    assert response.headers["Content-Type"].startswith("text/plain")
    assert 'patra_http_requests_total{method="POST",path="/loops/{name}/wake",status="404"}' in text
    assert "some-name" not in text
    assert "a-path-nobody-knows" not in text


@pytest.mark.parametrize(
    ("path", "least"),
    [
        ("/", None),
        ("/health", None),
        ("/ready", None),
        ("/openapi.json", None),
        ("/metrics", Role.VIEWER),
        ("/loops", Role.VIEWER),
        ("/audit", Role.ADMIN),
    ],
)
def test_with_tokens_each_path_asks_for_its_role(
    path: str, least: Role | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for role in (Role.VIEWER, Role.OPERATOR, Role.ADMIN):  # a publisher is bound by settings of the bus
        monkeypatch.setenv(f"T_{role.name}", role.value * 5)
    settings = web_settings(
        viewer_tokens=("env:T_VIEWER",),
        operator_tokens=("env:T_OPERATOR",),
        admin_tokens=("env:T_ADMIN",),
    )
    with served(settings) as client:
        assert client.get(path).status == (200 if least is None else 401)
        for role in (Role.VIEWER, Role.OPERATOR, Role.ADMIN):
            allowed = least is None or role.allows(least)
            assert client.get(path, token=role.value * 5).status == (200 if allowed else 403)


def test_strangers_learn_from_ready_only_whether_it_is(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("T_VIEWER", "v" * 30)
    settings = web_settings(viewer_tokens=("env:T_VIEWER",))
    store = type(settings.store)(url=f"sqlite:///{tmp_path / 'x.db'}", migrate_on_start=False)
    with served(type(settings)(store=store, web=settings.web)) as client:
        stranger, viewer = client.get("/ready"), client.get("/ready", token="v" * 30)

    assert stranger.status == viewer.status == 503
    assert "migrations" not in stranger.data.decode()
    assert "migrations" in viewer.data.decode()


def test_the_store_is_opened_from_a_reference(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{tmp_path / 'referred.db'}")
    settings = web_settings()
    open_store(type(settings)(store=type(settings.store)(url="env:DATABASE_URL"))).close()
    assert (tmp_path / "referred.db").exists()


def test_settings_are_shown_with_their_origin() -> None:
    with served(web_settings(request_seconds=7.5)) as client:
        client.patra.origins = {"web.request_seconds": "PATRA_WEB_REQUEST_SECONDS"}
        lines = {one["key"]: one for one in client.get("/settings").json()["settings"]}
    assert (lines["web.request_seconds"]["value"], lines["web.request_seconds"]["origin_kind"]) == (
        "7.5",
        "environment",
    )
    assert (lines["log.level"]["origin_kind"], lines["log.level"]["origin"]) == ("default", "default")
