"""`/ingest/…` on a real server: what is shown, what may be done, and the audit of it."""

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

from patra.ingest.operations.reads import views
from patra.ingest.packs import registry
from patra.ingest.planning import own_schedules
from patra.ingest.planning.planner import Planner
from patra.ingest.planning.schedule import ScheduledExport
from patra.kernel.db.queries import statement
from patra.kernel.telemetry import setup_logging
from tests.unit.ingest.sample_packs import loaded, text_of
from tests.unit.web.served import Client, served


@pytest.fixture
def client() -> Iterator[Client]:
    setup_logging(level="error")  # a command's test may have left the log on a stream that is closed by now
    with served() as found:
        packs = [loaded("offset"), loaded("oai")]
        found.patra.db.run(lambda tx: registry.load(tx, packs, by="test", now=found.patra.clock.now()))
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
WISHED = urlencode(WISH)
HIDDEN_FIELD = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)">')


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


def test_coverage_is_shown_in_pages(client):
    assert get(client, "/ingest/coverage?source=atomlike")["windows"] == []
    assert get(client, "/ingest/coverage?source=atomlike")["sum"]["open"] == 0
    for place in ("x", "--5%7Cx", "%C2%B2", "9" * 30):
        assert get(client, f"/ingest/coverage?source=atomlike&after={place}", 400)["code"] == "i_bad_page"


def test_a_refused_trigger_says_why(client):
    refused = post(client, "/ingest/plans", 422, source="oailike", endpoint="records")
    assert (refused["status"], refused["code"], refused["outcome"]) == (422, "i_compile_failed", "i_compile_failed")
    assert "baseUrl" in refused["problems"][0]
    assert post(client, "/ingest/plans", 400, **{**WISH, "since": "yesterday"})["code"] == "i_window_invalid"


def test_what_a_plan_would_cost_is_told_without_making_it(client):
    found = get(client, f"/ingest/preview?{WISHED}")
    made = get(client, "/ingest/plans")["plans"]
    assert made == []
    cost = found["cost"]
    assert found["outcome"] == "i_planned"
    assert (cost["slices"], cost["requests"], cost["records"], cost["measured"]) == (
        cost["slices"],
        cost["slices"],
        None,
        False,
    )
    assert cost["seconds"] >= cost["requests"] / cost["rate_per_sec"]
    assert post(client, "/ingest/plans", **WISH)["slices"] == cost["slices"]
    assert get(client, f"/ingest/preview?{WISHED}")["outcome"] == "i_window_covered"
    refused = get(client, "/ingest/preview?source=oailike&endpoint=records", 422)
    assert "baseUrl" in refused["problems"][0]
    assert get(client, "/ingest/preview?source=a&endpoint=b&params=[1]", 400)["code"] == "i_param_invalid"
    deep = f'{{"a":{"[" * 2000}{"]" * 2000}}}'
    assert get(client, f"/ingest/preview?source=a&endpoint=b&params={deep}", 400)["code"] == "i_param_invalid"


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


def test_lists_are_paged_and_filtered_over_http(client):
    for _ in range(2):
        post(client, "/ingest/plans", **WISH)
    tasks = get(client, "/ingest/tasks?limit=1&source=atomlike")
    assert len(tasks["tasks"]) == 1
    following = get(client, f"/ingest/tasks?limit=1&source=atomlike&after={tasks['next']}")
    assert following["tasks"][0]["task"] > tasks["tasks"][0]["task"]
    assert get(client, "/ingest/tasks?after=rubbish", 400)["code"] == "i_bad_page"
    assert get(client, "/ingest/runs") == {"rows": [], "next": None}
    assert get(client, "/ingest/errors?since=yesterday", 400)["code"] == "i_window_invalid"
    assert get(client, "/ingest/errors/top") == {"rows": [], "next": None}
    assert get(client, "/ingest/alerts")["alerts"] == []
    assert {one["job"].split("/")[0] for one in get(client, "/ingest/schedules")["rows"]} <= {"atomlike", "oailike"}
    assert "crossref" in {one["source"] for one in get(client, "/ingest/packs")["rows"]}
    assert get(client, "/ingest/sources/atomlike/specs/query")["endpointCode"] == "query"
    assert get(client, "/ingest/sources/none/specs/query", 404)["code"] == "i_source_unknown"
    assert get(client, "/ingest/plans?plan=p1", 400)


def test_packs_are_compared_and_loaded_over_http(client):
    text = text_of("offset")
    assert post(client, "/ingest/packs/diff", text=text)["changes"] == []
    changed = text.replace("version:", "version: changed #", 1)
    assert [one["path"] for one in post(client, "/ingest/packs/diff", text=changed)["changes"]] == ["version"]
    done = post(client, "/ingest/packs", text=changed)
    assert (done["source"], done["first"], len(done["changes"])) == ("atomlike", False, 1)
    assert post(client, "/ingest/packs/diff", text=changed)["changes"] == []
    assert post(client, "/ingest/packs", 422, text="pack: 1")["problems"]


def test_evidence_needs_a_reason_and_a_batch(client):
    post(client, "/ingest/runs/none/batches/1/evidence", 422, why="")
    assert post(client, "/ingest/runs/none/batches/1/evidence", 404, why="TICKET-7")["code"] == "i_batch_unknown"
    assert post(client, "/ingest/runs/none/batches/x/evidence", 404, why="TICKET-7")["code"] == "i_batch_unknown"
    wish = {"source": "atomlike", "endpoint": "query", "keys": ["a"], "why": "known"}
    assert post(client, "/ingest/quarantine/dismiss", **wish)["changed"] == 0
    assert post(client, "/ingest/history/restore", 404, run="none", why="TICKET-7")["code"] == "i_history_missing"
    assert get(client, "/ingest/history") == {"files": []}


def test_one_task_is_followed_down_to_its_batch(client):
    plan = post(client, "/ingest/plans", **WISH)["plan"]
    task, run = f"{plan}.t000001", f"{plan}.t000001.r1"
    _write_run(client.patra.db, plan, task, run)
    found = get(client, f"/ingest/tasks/{task}")
    assert (found["task_id"], [one["run_id"] for one in found["runs"]]) == (task, [run])
    assert found["runs"][0]["error"] == "refused: password=***"
    first = get(client, f"/ingest/runs/{run}?limit=2")
    assert ([one["batch_no"] for one in first["batches"]], first["next"]) == ([1, 2], 2)
    rest = get(client, f"/ingest/runs/{run}?limit=2&after=2")
    assert ([one["batch_no"] for one in rest["batches"]], rest["next"]) == ([3], None)
    batch = get(client, f"/ingest/runs/{run}/batches/3")
    assert (batch["batch_no"], batch["request_digest"]["url"]) == (3, "https://provider.example/?key=***")
    for path in ("tasks/nope", "runs/nope", f"runs/{run}/batches/9", f"runs/{run}/batches/x"):
        assert get(client, f"/ingest/{path}", 404)["code"].endswith("_unknown")


def _write_run(db, plan: str, task: str, run: str) -> None:
    common = {"run_id": run, "task_id": task, "plan_id": plan, "slice_id": task.replace(".t", ".s")}
    row = {
        **common,
        "schedule_instance_id": "i",
        "provenance_code": "atomlike",
        "endpoint_name": "query",
        "operation_code": "BACKFILL",
        "attempt_no": 1,
        "status_code": "FAILED",
        "lease_owner": "w",
        "lease_fence": 1,
        "checkpoint": "{}",
        "stats": "{}",
        "error": "refused: password=hunter2",
        "started_at": 1,
        "updated_at": 1,
    }
    batches = [
        {
            **common,
            "batch_id": f"{run}.b{number}",
            "expr_hash": "h",
            "batch_no": number,
            "phase_code": "LIST",
            "status_code": "SUCCEEDED",
            "request_digest": '{"url": "https://provider.example/?key=s3cr3t"}',
            "response_digest": "{}",
            "stats": "{}",
            "idempotent_key": f"{run}.{number}",
            "reason_code": "i_landed",
            "created_at": 1,
        }
        for number in (1, 2, 3)
    ]

    def write(tx) -> None:
        tx.insert("ing_task_run", [row])
        tx.insert("ing_task_run_batch", batches)

    db.run(write)


def test_windows_and_rates_are_read_over_http(client):
    post(client, "/ingest/plans", **WISH)
    found = get(client, "/ingest/windows?source=atomlike&since=2025-12-31T00:00:00Z&until=2026-02-01T00:00:00Z")
    [series] = found["series"]
    assert (series["operation"], len(series["windows"]), series["more"]) == ("BACKFILL", 2, False)
    assert {row["status_code"] for row in series["windows"]} == {"QUEUED"}
    assert get(client, "/ingest/windows?source=atomlike&since=x", 400)["code"] == "i_window_invalid"
    assert get(client, "/ingest/rate") == {"minutes": 15, "gates": [], "quotas": [], "cooldowns": []}


def test_records_are_signalled_and_wait_for_the_next_update(client):
    wish = {"source": "atomlike", "endpoint": "query"}
    done = post(client, "/ingest/signals", **wish, ids=["id2", "id1", "id2"], why="retracted")
    assert (done["act"], done["subject"], done["changed"]) == ("ingest.signal", "atomlike/query", 2)
    waiting = get(client, "/ingest/signals?source=atomlike")["rows"]
    assert [(row["provider_id"], row["reason_code"], row["detail"]) for row in waiting] == [
        ("id1", "i_operator", "retracted"),
        ("id2", "i_operator", "retracted"),
    ]
    row = get(client, "/audit")["acts"][0]
    assert (row["act"], row["subject"], row["detail"]["why"]) == ("ingest.signal", "atomlike/query", "retracted")
    assert post(client, "/ingest/signals", 404, source="atomlike", endpoint="nope", ids=["a"])["code"] == (
        "i_endpoint_unknown"
    )
    assert post(client, "/ingest/signals", 404, source="nope", endpoint="query", ids=["a"])["code"].startswith("i_")
    for ids in ([], [""], ["x"] * 1001, "id1"):
        assert post(client, "/ingest/signals", 422, **wish, ids=ids)["code"] == "body_invalid"


def test_schedules_are_turned_off_and_on_and_run_now(client):
    said = {"endpoint": "query", "operation": "HARVEST", "cron": "0 3 * * *", "timezone": "Europe/Berlin"}
    entry = own_schedules.schedule_of("atomlike/nightly", said, None)
    client.patra.db.run(lambda tx: own_schedules.add(tx, entry, by="test", now=client.patra.clock.now()))

    def shown() -> dict[str, Any]:
        [row] = [one for one in get(client, "/ingest/schedules")["rows"] if one["job"] == "atomlike/nightly"]
        return row

    assert (shown()["on"], shown()["timezone"]) == ("yes", "Europe/Berlin")
    assert post(client, "/ingest/schedules/disable", job="atomlike/nightly", why="quiet")["changed"] == 1
    assert (shown()["on"], shown()["next"]) == ("no", None)
    assert post(client, "/ingest/schedules/disable", job="atomlike/nightly")["changed"] == 0
    made = post(client, "/ingest/schedules/run", job="atomlike/nightly", why="once")
    assert (made["outcome"], made["plan"] is not None) == ("i_planned", True)
    assert post(client, "/ingest/schedules/enable", job="atomlike/nightly")["changed"] == 1
    assert shown()["on"] == "yes"
    for verb in ("enable", "disable", "run"):
        assert post(client, f"/ingest/schedules/{verb}", 404, job="atomlike/none")["code"] == "i_schedule_unknown"
    acts = [(one["act"], one["detail"].get("why")) for one in get(client, "/audit")["acts"]]
    assert acts[:4] == [
        ("ingest.enable_schedule", ""),
        ("ingest.run_schedule", "once"),
        ("ingest.disable_schedule", ""),
        ("ingest.disable_schedule", "quiet"),
    ]


FAILED = statement(
    "fail", "UPDATE ing_task SET status_code = 'FAILED', reason_code = 'i_gave_up', finished_at = 1, scheduled_at = 1"
)


def test_failed_tasks_are_counted_and_tried_again_together(client):
    plan = post(client, "/ingest/plans", **WISH)["plan"]
    assert get(client, f"/ingest/requeue/preview?plan={plan}")["tasks"] == 0
    client.patra.db.run(lambda tx: tx.execute(FAILED, {}))
    found = get(client, "/ingest/requeue/preview?source=atomlike")
    assert (found["tasks"], found["more"]) == (2, False)
    assert found["by_reason"] == {"i_gave_up": 2}
    assert found["by_source"] == {"atomlike/query": 2}
    assert found["sample"] == [f"{plan}.t000001", f"{plan}.t000002"]
    assert get(client, "/ingest/requeue/preview?source=oailike")["tasks"] == 0
    assert get(client, "/ingest/requeue/preview", 400)["code"] == "i_param_invalid"
    assert post(client, "/ingest/requeue", 400, why="all of them")["code"] == "i_param_invalid"
    assert post(client, "/ingest/requeue", source="oailike", why="other")["changed"] == 0
    done = post(client, "/ingest/requeue", source="atomlike", endpoint="query", why="the provider is back")
    assert (done["act"], done["subject"], done["changed"]) == ("ingest.requeue_failed", "atomlike/query", 2)
    assert {line["status"] for line in get(client, "/ingest/tasks")["tasks"]} == {"QUEUED"}
    assert all(line["due"] > "2020" and line["reason"] is None for line in get(client, "/ingest/tasks")["tasks"])
    row = get(client, "/audit")["acts"][0]
    assert (row["act"], row["detail"]["why"]) == ("ingest.requeue_failed", "the provider is back")
    assert row["detail"]["filter"] == {"source": "atomlike", "endpoint": "query"}


@pytest.mark.parametrize("state", ["CANCELLED", "FAILED"])
def test_failed_tasks_of_a_plan_that_was_given_up_are_left_out_unless_it_is_named(client, state):
    plan = post(client, "/ingest/plans", **WISH)["plan"]
    client.patra.db.run(lambda tx: tx.execute(FAILED, {}))
    give_up = statement("give_up", f"UPDATE ing_plan SET status_code = '{state}'")
    client.patra.db.run(lambda tx: tx.execute(give_up, {}))
    found = get(client, "/ingest/requeue/preview?source=atomlike")
    assert (found["tasks"], found["left_out"], found["sample"]) == (0, 2, [])
    assert post(client, "/ingest/requeue", source="atomlike", why="all")["changed"] == 0
    assert get(client, "/audit")["acts"][0]["detail"]["left_out"] == 2
    named = get(client, f"/ingest/requeue/preview?plan={plan}")
    assert (named["tasks"], named["left_out"]) == (2, 0)
    assert post(client, "/ingest/requeue", plan=plan, why="these")["changed"] == 2


def test_a_finished_window_is_planned_again_under_a_name_of_its_own(client):
    post(client, "/ingest/plans", **WISH)
    assert post(client, "/ingest/plans", **WISH)["outcome"] == "i_window_covered"
    window = {name: WISH[name] for name in ("source", "endpoint", "since", "until")}
    made = post(client, "/ingest/reread", **window, why="the provider sent a correction")
    assert (made["outcome"], made["slices"]) == ("i_planned", 2)
    again = post(client, "/ingest/reread", **window, why="once more")
    assert again["plan"] != made["plan"]
    assert post(client, "/ingest/reread", 422, **window, why="")["code"] == "body_invalid"
    assert post(client, "/ingest/reread", 422, **{**window, "source": "nope"}, why="x")["code"] == "i_compile_failed"
    row = next(one for one in get(client, "/audit")["acts"] if one["detail"].get("plan"))
    assert (row["act"], row["subject"], row["detail"]["plan"]) == ("ingest.reread", "atomlike/query", again["plan"])


NIGHTLY = {"job": "atomlike/nightly", "endpoint": "query", "cron": "30 3 * * *", "timezone": "Europe/Berlin"}


def schedule_row(client, job):
    return next((one for one in get(client, "/ingest/schedules")["rows"] if one["job"] == job), None)


def test_a_schedule_of_ones_own_is_added_changed_and_removed(client):
    added = post(
        client, "/ingest/schedules", **NIGHTLY, params={"search": "otters"}, priority=7, why="nights are quiet"
    )
    assert (added["act"], added["subject"], added["changed"]) == ("ingest.add_schedule", "atomlike/nightly", 1)
    assert post(client, "/ingest/schedules", 400, **NIGHTLY)["code"] == "i_schedule_exists"
    row = schedule_row(client, "atomlike/nightly")
    assert (row["own"], row["on"], row["cron"], row["missed"], row["params"], row["priority"]) == (
        True, "yes", "30 3 * * *", "ONCE", {"search": "otters"}, 7,
    )  # fmt: skip
    post(client, "/ingest/schedules/disable", job="atomlike/nightly")
    changed = {**NIGHTLY, "cron": "0 5 * * 1", "missed": "ALL", "why": "mondays"}
    assert post(client, "/ingest/schedules/change", **changed)["changed"] == 1
    row = schedule_row(client, "atomlike/nightly")
    assert (row["on"], row["cron"], row["missed"], row["params"]) == ("no", "0 5 * * 1", "ALL", {})
    assert post(client, "/ingest/schedules/remove", job="atomlike/nightly", why="over")["changed"] == 1
    assert schedule_row(client, "atomlike/nightly") is None
    acts = [(one["act"], one["detail"].get("why")) for one in get(client, "/audit")["acts"]]
    assert acts[:4] == [
        ("ingest.remove_schedule", "over"),
        ("ingest.change_schedule", "mondays"),
        ("ingest.disable_schedule", ""),
        ("ingest.add_schedule", "nights are quiet"),
    ]


def test_a_schedule_that_cannot_be_is_refused_and_one_of_a_pack_is_not_changed(client):
    assert post(client, "/ingest/schedules", 400, **{**NIGHTLY, "cron": "never"})["code"] == "cron_invalid"
    assert post(client, "/ingest/schedules", 400, **{**NIGHTLY, "timezone": "Mars/Base"})["code"].startswith("i_")
    assert post(client, "/ingest/schedules", 400, **{**NIGHTLY, "job": "nightly"})["code"] == "i_schedule_invalid"
    assert post(client, "/ingest/schedules", 404, **{**NIGHTLY, "job": "nobody/x"})["code"] == "i_source_unknown"
    assert post(client, "/ingest/schedules/change", 404, **NIGHTLY)["code"] == "i_schedule_unknown"
    assert post(client, "/ingest/schedules/remove", 404, job="atomlike/nightly")["code"] == "i_schedule_unknown"
    client.patra.db.run(lambda tx: registry.load(tx, [loaded("page")], by="test", now=1))
    of_pack = next(one["job"] for one in get(client, "/ingest/schedules")["rows"] if not one["own"])
    assert post(client, "/ingest/schedules/remove", 400, job=of_pack)["code"] == "i_schedule_exists"
    assert post(client, "/ingest/schedules/change", 400, **{**NIGHTLY, "job": of_pack})["code"] == "i_schedule_exists"
    assert "then" in post(client, "/ingest/schedules", 422, **NIGHTLY, then={"out": "/etc/x"})["detail"]


def test_a_change_over_http_leaves_the_file_that_the_command_line_named(client):
    export = ScheduledExport(what="works", out="/tmp/works.csv")
    entry = own_schedules.schedule_of("atomlike/nightly", {**NIGHTLY_SAID, "operation": "HARVEST"}, export)
    client.patra.db.run(lambda tx: own_schedules.add(tx, entry, by="me", now=1))
    post(client, "/ingest/schedules/change", **{**NIGHTLY, "cron": "0 6 * * *"})
    row = schedule_row(client, "atomlike/nightly")
    assert (row["cron"], row["then"]) == ("0 6 * * *", "export works to /tmp/works.csv")


def test_a_schedule_shows_its_last_tick_and_how_far_back_it_reads(client):
    post(client, "/ingest/schedules", **NIGHTLY, operation="BACKFILL", last="P7D")
    assert (schedule_row(client, "atomlike/nightly")["last"], schedule_row(client, "atomlike/nightly")["look_back"]) == (
        None, "P7D",
    )  # fmt: skip
    Planner(client.patra.db, client.patra.clock).run_once()
    row = schedule_row(client, "atomlike/nightly")
    [tick] = client.patra.db.read(lambda tx: views.schedule_history(tx, "atomlike/nightly", 9))
    assert (row["last"], row["look_back"], row["outcome"]) == (tick["tick"], "P7D", "i_planned")
    page = client.get("/console/ingest/schedules").data.decode()
    assert f'<time datetime="{tick["tick"]}"' in page
    assert "P7D" in page, "the form to change it begins with what was said"


def test_a_schedule_with_a_topic_cannot_become_a_refresh(client):
    entry = own_schedules.schedule_of("atomlike/nightly", {**NIGHTLY_SAID, "operation": "HARVEST"}, None, "otters")
    client.patra.db.run(lambda tx: own_schedules.add(tx, entry, by="me", now=1))
    refused = post(client, "/ingest/schedules/change", 400, **NIGHTLY, operation="UPDATE")
    assert refused["code"] == "i_schedule_invalid"
    assert "it finds nothing for a topic, and atomlike/nightly has 'otters'" in refused["detail"]
    assert schedule_row(client, "atomlike/nightly")["operation"] == "HARVEST"


NIGHTLY_SAID = {name: value for name, value in NIGHTLY.items() if name != "job"}


def test_a_new_version_is_put_on_trial_compared_and_promoted_or_taken_back(client):
    newer = text_of("offset").replace("maxWindow: P1D", "maxWindow: P2D")
    assert newer != text_of("offset")
    assert get(client, "/ingest/sources/atomlike/trial", 404)["code"] == "i_not_staged"
    for verb in ("promote", "rollback"):
        assert post(client, f"/ingest/sources/atomlike/{verb}", 404)["code"] == "i_not_staged"
    staged = post(client, "/ingest/packs/stage", text=newer, share=40, source="atomlike", why="smaller windows")
    assert (staged["source"], staged["version"], staged["share"]) == ("atomlike", 2, 40)
    [change] = staged["changes"]
    assert (change["path"].split(".")[-1], change["before"], change["after"]) == ("maxWindow", "P1D", "P2D")
    trial = get(client, "/ingest/sources/atomlike/trial")
    assert [(one["role"], one["version_no"]) for one in trial["results"]] == [("in force", 1), ("on trial", 2)]
    assert (trial["share"], trial["changes"]) == (40, [change])
    assert post(client, "/ingest/sources/atomlike/rollback", why="no better")["changed"] == 1
    assert get(client, "/ingest/sources/atomlike/trial", 404)["code"] == "i_not_staged"
    post(client, "/ingest/packs/stage", text=newer)
    assert post(client, "/ingest/sources/atomlike/promote", why="better")["act"] == "ingest.pack_promote"
    assert get(client, "/ingest/sources/atomlike/pack") != loaded("offset").tree
    acts = [(one["act"], one["subject"], one["detail"].get("why")) for one in get(client, "/audit")["acts"]]
    assert acts[:4] == [
        ("ingest.pack_promote", "atomlike", "better"),
        ("ingest.pack_stage", "atomlike", ""),
        ("ingest.pack_rollback", "atomlike", "no better"),
        ("ingest.pack_stage", "atomlike", "smaller windows"),
    ]


def test_only_the_version_that_was_looked_at_is_promoted(client):
    first, second = (text_of("offset").replace("maxWindow: P1D", f"maxWindow: {most}") for most in ("P2D", "P3D"))
    looked_at = post(client, "/ingest/packs/stage", text=first)["version"]
    shown = client.get("/console/confirm/ingest.pack_promote?source=atomlike")
    hidden = dict(HIDDEN_FIELD.findall(shown.data.decode()))
    assert hidden["previewed_version"] == str(looked_at)
    assert "previewed_version" not in client.get("/console/ingest/source/atomlike").data.decode()
    other = post(client, "/ingest/packs/stage", text=second)["version"]
    refused = post(client, "/ingest/sources/atomlike/promote", 404, version=looked_at)
    assert (refused["code"], refused["detail"]) == (
        "i_not_staged",
        f"version no. {looked_at} of atomlike is not on trial: no. {other} is",
    )
    form = urlencode({**hidden, "confirm": "atomlike", "why": "better"})
    kind = {
        "Content-Type": "application/x-www-form-urlencoded",
        "Cookie": shown.headers["Set-Cookie"].partition(";")[0],
    }
    answer = client.post("/console/do/ingest.pack_promote", body=form.encode(), headers=kind)
    assert answer.status == 404
    again = dict(HIDDEN_FIELD.findall(answer.data.decode()))
    assert again["previewed_version"] == str(other), "the preview is that of the other version now"
    assert get(client, "/ingest/sources/atomlike/pack") == loaded("offset").tree
    assert post(client, "/ingest/sources/atomlike/promote", version=other)["changed"] == 1


def test_a_pack_that_is_broken_foreign_or_new_is_not_put_on_trial(client):
    assert post(client, "/ingest/packs/stage", 422, text="source: x")["code"] == "i_pack_invalid"
    foreign = post(client, "/ingest/packs/stage", 400, text=text_of("offset"), source="oailike")
    assert foreign["detail"] == "text: this is a pack of atomlike, not of oailike"
    assert post(client, "/ingest/packs/stage", 404, text=text_of("token"))["code"] == "i_source_unknown"
    assert get(client, "/audit")["acts"] == []


def test_chosen_tasks_are_tried_again_together_or_none_of_them(client):
    plan = post(client, "/ingest/plans", **WISH)["plan"]
    first, second = (f"{plan}.t00000{number}" for number in (1, 2))
    assert post(client, "/ingest/tasks/requeue", tasks=[first])["changed"] == 0  # it did not fail
    client.patra.db.run(lambda tx: tx.execute(FAILED, {}))
    assert post(client, "/ingest/tasks/requeue", 404, tasks=[first, "nope.t1"])["code"] == "i_task_unknown"
    assert {line["status"] for line in get(client, "/ingest/tasks")["tasks"]} == {"FAILED"}
    done = post(client, "/ingest/tasks/requeue", tasks=[second, first, first], why="the provider is back")
    assert (done["act"], done["subject"], done["changed"]) == ("ingest.requeue_tasks", plan, 2)
    assert {line["status"] for line in get(client, "/ingest/tasks")["tasks"]} == {"QUEUED"}
    (row,) = [entry for entry in get(client, "/audit")["acts"] if entry["act"] == "ingest.requeue_tasks"][:1]
    assert row["detail"]["tasks"] == [first, second]
