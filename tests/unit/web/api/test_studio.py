"""Runs over HTTP: how many are watched at once, and from which note on."""

import json
import time
from collections.abc import Iterator
from hashlib import sha256

import pytest
import urllib3

from patra.app.access.actor import Role
from patra.app.access.tokens import add_token, revoke_token
from patra.kernel.telemetry import setup_logging
from patra.web.api import studio
from tests.unit.web.served import Client, served, web_settings


@pytest.fixture
def client() -> Iterator[Client]:
    setup_logging(level="critical")
    with served() as found:
        yield found


def submitted(client: Client, token: str = "") -> str:
    body, headers = json.dumps({"chapter": "A river runs."}), {"Content-Type": "application/json"}
    return client.post("/studio/runs", body=body, headers=headers, token=token).json()["run_id"]


def watched(client: Client, run_id: str, last: str = "", token: str = "") -> urllib3.BaseHTTPResponse:
    pool = urllib3.PoolManager(retries=False, timeout=30.0)
    headers = {"Last-Event-ID": last.encode("latin-1")} if last else {}
    if token:
        headers["Authorization"] = f"Bearer {token}".encode()
    path = f"{client.url}/studio/runs/{run_id}/events"
    return pool.request("GET", path, headers=headers, preload_content=False)


@pytest.mark.parametrize("last", ["²", "9" * 30, "9" * 5000, "-1", "x"])
def test_a_place_in_the_story_that_is_none_is_its_beginning(client: Client, last: str):
    answer = watched(client, submitted(client), last)
    assert answer.status == 200
    assert next(answer.stream(1))
    answer.close()


def test_a_run_is_watched_by_so_many_at_once_and_no_more(client: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(studio, "MAX_STREAMS", 2)
    run_id = submitted(client)
    streams = [watched(client, run_id) for _ in range(2)]
    begun = [one.stream(1) for one in streams]
    assert all(next(one) for one in begun)
    refused = watched(client, run_id)
    assert (refused.status, json.loads(refused.read())["code"]) == (503, "too_many_streams")
    streams[0].close()
    until = time.monotonic() + 20
    while (again := watched(client, run_id)).status == 503 and time.monotonic() < until:
        again.close()
    assert again.status == 200
    for one in (again, streams[1]):
        one.close()


def test_one_holder_of_a_token_does_not_take_the_streams_of_others_and_watches_while_it_holds(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(studio, "MAX_STREAMS_PER_ACTOR", 1)
    monkeypatch.setattr(studio, "ASK_AGAIN_SECONDS", 0.0)
    monkeypatch.setattr(studio, "LOOK_EVERY", 0.01)
    setup_logging(level="critical")
    admin = f"ada=sha256:{sha256(b'admin-token-0123456789').hexdigest()}"
    with served(web_settings(admin_tokens=[admin])) as client:
        run_id = submitted(client, "admin-token-0123456789")
        now = client.patra.clock.now()
        one, two = (
            client.patra.db.run(lambda tx, name=name: add_token(tx, name, Role.VIEWER, by="t", now=now)).token
            for name in ("one", "two")
        )
        first = watched(client, run_id, token=one)
        told = first.stream(1)
        assert next(told)
        refused = watched(client, run_id, token=one)
        assert (refused.status, json.loads(refused.read())["code"]) == (503, "too_many_streams")
        other = watched(client, run_id, token=two)
        assert next(other.stream(1))
        client.patra.db.run(lambda tx: revoke_token(tx, "one", now=client.patra.clock.now()))
        assert b"event: end" not in b"".join(told)  # it is over, and the run is not
        other.close()
