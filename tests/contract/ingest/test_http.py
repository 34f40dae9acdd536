"""`/ingest/…` on a real server: what is shown, what may be done, and the audit of it."""

import json
from collections.abc import Iterator

import pytest

from patra.ingest import shelf
from patra.kernel.telemetry import setup_logging
from tests.unit.ingest.packs import loaded
from tests.unit.web.served import Client, served


@pytest.fixture
def client() -> Iterator[Client]:
    setup_logging(level="error")  # a command's test may have left the log on a stream that is closed by now
    with served() as found:
        packs = [loaded("offset"), loaded("oai")]
        found.patra.db.run(lambda tx: shelf.load(tx, packs, by="test", now=found.patra.clock.now()))
        yield found


def post(client, path, status=200, **body):
    answer = client.post(path, body=json.dumps(body).encode(), headers={"Content-Type": "application/json"})
    assert answer.status == status, answer.data
    return answer.json()


def get(client, path, status=200):
    answer = client.get(path)
    assert answer.status == status, answer.data
    return answer.json()


WISH = {
    "source": "atomlike",
    "endpoint": "query",
    "operation": "BACKFILL",
    "since": "2026-01-01T00:00:00Z",
    "until": "2026-01-03T00:00:00Z",
}


def test_sources_and_their_packs_are_shown(client):
    assert [line["source"] for line in get(client, "/ingest/sources")["sources"]] == ["atomlike", "oailike"]
    assert get(client, "/ingest/sources/atomlike/pack") == loaded("offset").tree
    assert get(client, "/ingest/sources/nope/pack", 404)["code"] == "i_source_unknown"


def test_a_plan_is_made_once_and_can_be_followed(client):
    made = post(client, "/ingest/plans", **WISH)
    assert (made["outcome"], made["status"], made["slices"]) == ("i_planned", "READY", 2)
    assert post(client, "/ingest/plans", **WISH)["outcome"] == "i_window_covered"
    assert get(client, f"/ingest/plans/{made['plan']}")["task_counts"] == {"QUEUED": 2}
    assert len(get(client, "/ingest/tasks?source=atomlike")["tasks"]) == 2
    assert len(get(client, "/ingest/plans?status=READY")["plans"]) == 1
    assert get(client, "/ingest/queue")["queue"][0]["tasks"] == 2
    assert get(client, "/ingest/plans/nope", 404)["code"] == "i_plan_unknown"


def test_a_refused_trigger_says_why(client):
    refused = post(client, "/ingest/plans", 422, source="oailike", endpoint="records")
    assert (refused["status"], refused["code"], refused["outcome"]) == (422, "i_compile_failed", "i_compile_failed")
    assert "baseUrl" in refused["problems"][0]
    assert post(client, "/ingest/plans", 400, **{**WISH, "since": "yesterday"})["code"] == "i_window_invalid"


def test_a_body_that_nests_too_deep_is_malformed_and_no_bug(client):
    body = b'{"source":"atomlike","endpoint":"query","params":{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}}"
    answer = client.post("/ingest/plans", body=body, headers={"Content-Type": "application/json"})
    assert (answer.status, answer.json()["code"]) == (400, "body_malformed")


def test_operators_act_and_the_audit_keeps_it(client):
    assert post(client, "/ingest/sources/atomlike/pause", why="maintenance")["changed"] == 1
    assert get(client, "/ingest/sources")["sources"][0]["halts"][0]["detail"] == "maintenance"
    assert post(client, "/ingest/plans", 422, **WISH)["outcome"] == "i_paused"
    assert client.post("/ingest/sources/atomlike/resume").json()["changed"] == 1  # without a body: all has defaults
    assert post(client, "/ingest/sources/atomlike/lift")["changed"] == 0
    plan = post(client, "/ingest/plans", **WISH)["plan"]
    assert post(client, f"/ingest/tasks/{plan}.t000001/cancel")["changed"] == 1
    assert post(client, f"/ingest/slices/{plan}.s000002/cancel")["changed"] == 1
    assert post(client, f"/ingest/tasks/{plan}.t000001/requeue")["changed"] == 0
    assert post(client, f"/ingest/plans/{plan}/cancel", why="x")["changed"] == 1  # itself: it had no task left
    assert post(client, f"/ingest/plans/{plan}/cancel", why="x")["changed"] == 0
    for path, code in (
        ("sources/nope/pause", "i_source_unknown"),
        ("plans/nope/cancel", "i_plan_unknown"),
        ("slices/nope/cancel", "i_slice_unknown"),
        ("tasks/nope/requeue", "i_task_unknown"),
    ):
        assert post(client, f"/ingest/{path}", 404)["code"] == code
    assert post(client, "/ingest/sources/atomlike/pause", 404, endpoint="nope")["code"] == "i_endpoint_unknown"
    acts = [entry["act"] for entry in get(client, "/audit")["acts"]]
    assert acts.count("ingest.pause") == 1
    assert {
        "ingest.plan",
        "ingest.resume",
        "ingest.lift",
        "ingest.cancel_task",
        "ingest.cancel_slice",
        "ingest.cancel_plan",
    } <= set(acts)
