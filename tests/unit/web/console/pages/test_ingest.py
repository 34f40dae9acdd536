"""Lists of ingest on the console's pages: paged by key as the HTTP interface pages them, nothing twice, nothing left."""

import json
import re
from collections.abc import Iterator
from html import unescape
from typing import Any, cast

import pytest

from patra.ingest.operations.reads import rates
from patra.ingest.packs import registry
from patra.kernel.clock import DAY, parse_instant
from patra.kernel.db.queries import statement
from patra.kernel.telemetry import setup_logging
from patra.web.console.pages.ingest import queue_title
from patra.web.console.pages.ingest_rate import with_traffic
from patra.web.console.pages.ingest_runs import failed_share, request_text
from patra.web.console.view import View
from tests.unit.ingest.sample_packs import loaded
from tests.unit.web.served import Client, served

ROWS = 103
FAIL = statement("fail", "UPDATE ing_task SET status_code = 'FAILED' WHERE task_id = :task")


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    setup_logging(level="error")
    with served() as found:
        now = found.patra.clock.now()
        found.patra.db.run(lambda tx: registry.load(tx, [loaded("offset")], by="test", now=now))
        found.patra.db.run(lambda tx: _fill(tx, now))
        yield found


def _fill(tx: Any, now: int) -> None:
    common = {"task_id": "p.t1", "plan_id": "p", "slice_id": "p.s1", "run_id": "p.t1.r1", "expr_hash": "h"}
    of = {"provenance_code": "atomlike", "endpoint_name": "query", "operation_code": "BACKFILL"}
    tx.insert(
        "ing_quarantine",
        [
            {
                **common,
                **of,
                "item_key": f"record-{number:03}",
                "status_code": "DISMISSED" if number == 0 else "OPEN",
                "reason_code": "i_field_missing",
                "field_path": "$.title",
                "detail": "no title",
                "sample": b"{}",
                "sample_hash": "h",
                "request_digest": "{}",
                "batch_no": number,
                "first_seen_at": now,
                "last_seen_at": now - number,
            }
            for number in range(ROWS)
        ],
    )
    tx.insert(
        "ing_task_run_batch",
        [
            {
                **common,
                **of,
                "batch_id": f"p.t1.r1.b{number}",
                "batch_no": number,
                "phase_code": "LIST",
                "status_code": "FAILED",
                "request_digest": "{}",
                "response_digest": "{}",
                "stats": "{}",
                "idempotent_key": f"k-{number}",
                "error_level": "L1" if number % 2 else "L3",
                "reason_code": "i_error_page",
                "error": f"page {number} was an error",
                "created_at": now - number,
            }
            for number in range(ROWS)
        ],
    )


def shown(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status == 200, answer.data
    return unescape(answer.data.decode())


def walked(client: Client, path: str, row: str) -> list[str]:
    """The rows of all pages, by following what a person would press."""
    found: list[str] = []
    while path:
        page = shown(client, path)
        found += re.findall(row, page)
        following = re.search(r'href="([^"]*)">Next page<', page)
        path = following[1] if following else ""
    return found


def test_every_record_of_the_quarantine_is_reached_by_its_pages(client: Client):
    found = walked(client, "/console/ingest/quarantine", r'data-key="atomlike query (record-\d+)"')
    assert found == [f"record-{number:03}" for number in range(1, ROWS)]
    assert "More than 50 records are in quarantine" in shown(client, "/console/ingest/quarantine")
    assert "1 record" not in shown(client, "/console/ingest/quarantine?status=DISMISSED")
    assert walked(client, "/console/ingest/quarantine?status=DISMISSED", r'data-key="atomlike query ([^"]*)"') == [
        "record-000"
    ]
    assert walked(client, "/console/ingest/quarantine?reason=i_other", r'data-key="atomlike query ([^"]*)"') == []


def test_every_error_is_reached_by_its_pages_and_the_most_frequent_are_counted(client: Client):
    found = walked(client, "/console/ingest/errors?source=atomlike", r'data-key="p\.t1\.r1/(\d+)"')
    assert found == [str(number) for number in range(ROWS)]
    assert len(walked(client, "/console/ingest/errors?level=L3", r'data-key="p\.t1\.r1/(\d+)"')) == (ROWS + 1) // 2
    top = shown(client, "/console/ingest/errors").partition('id="top"')[2].partition("</tbody>")[0]
    assert re.findall(r'<b class="big">(\d+)</b>', top) == ["52", "51"]
    assert "<h1>atomlike fails most: 52 times in a day</h1>" in shown(client, "/console/ingest/errors")


def test_the_coverage_of_a_source_without_windows_says_so(client: Client):
    page = shown(client, "/console/ingest/coverage")
    assert "No windows yet." in page
    assert "patra ingest coverage atomlike" in page


COUNTS = (
    "positions", "distinct_ids", "null_items", "without_id", "suppressed", "inserted", "updated", "equal_count",
    "older_count", "repeated", "outside", "quarantined", "gone", "missing",
)  # fmt: skip


def test_each_window_shows_what_it_promised_and_gave_and_can_be_read_again(client: Client):
    wish = {"source": "atomlike", "endpoint": "query", "operation": "BACKFILL", "activity": "january"}
    wish |= {"since": "2026-01-01T00:00:00Z", "until": "2026-01-03T00:00:00Z"}
    made = client.post("/ingest/plans", body=json.dumps(wish), headers={"Content-Type": "application/json"})
    plan = json.loads(made.data)["plan"]
    day = parse_instant(wish["since"]) or 0
    rows = [
        {
            **dict.fromkeys(COUNTS, 0),
            "task_id": f"{plan}.t{number:06}",
            "leg_code": "LIST",
            "run_id": f"{plan}.t{number:06}.r1",
            "plan_id": plan,
            "provenance_code": "atomlike",
            "endpoint_name": "query",
            "operation_code": "BACKFILL",
            "namespace_key": "n",
            "window_from": day + (number - 1) * DAY,
            "window_to": day + number * DAY,
            "total_code": "EXACT",
            "promised_first": 40,
            "promised_last": 40,
            "readings": 1,
            "closed_at": day,
            "status_code": status,
            "inserted": 40 - lost,
            "distinct_ids": 40 - lost,
            "missing": lost,
            "detail": "two are missing" if lost else "",
            "spec_fingerprint": "f",
        }
        for number, status, lost in ((1, "COMPLETE", 0), (2, "INCOMPLETE", 2))
    ]

    def write(tx: Any) -> None:
        tx.insert("ing_window_ledger", rows)
        tx.execute(FAIL, {"task": f"{plan}.t000002"})

    client.patra.db.run(write)
    page = shown(client, "/console/ingest/coverage?source=atomlike")
    assert "1 window does not add up" in page
    first, second = re.findall(r'<tr tabindex="0" data-key="[^"]* LIST".*?</tr>', page, re.DOTALL)
    assert "complete" in first
    assert "two are missing" in second
    assert "incomplete" in second
    again = re.search(r'href="(/console/confirm/ingest\.reread[^"]*)"', second)
    assert again is not None
    dialog = shown(client, again[1])
    assert 'value="2026-01-02T00:00:00Z"' in dialog
    assert "1 slice" in dialog
    assert "<th>Leg</th>" not in page
    detail = {**rows[0], "leg_code": "DETAIL", "total_code": "NONE", "promised_first": None, "promised_last": None}
    client.patra.db.run(lambda tx: tx.insert("ing_window_ledger", [detail]))
    assert re.findall(r'data-label="Leg"[^>]*>(\w+)<', shown(client, "/console/ingest/coverage?source=atomlike")) == [
        "DETAIL", "LIST", "LIST",
    ]  # fmt: skip


def test_the_board_shows_what_was_sent_to_each_source_and_how_far_it_is_behind(client: Client):
    batch = [
        {"provenance_code": "atomlike", "operation_code": "HARVEST", "cursor_value": "2026-01-01T00:00:00Z"},
        {"provenance_code": "atomlike", "operation_code": "BACKFILL", "cursor_value": "2020-01-01T00:00:00Z"},
    ]
    gates = [{"source": "atomlike", "requests": 7, "throttled": 2, "wait_ms": 1500}] * 2

    class Asked:
        now = parse_instant("2026-01-03T01:00:00Z")

        def ask(self, _: str) -> dict[str, Any]:
            return {"gates": gates}

    (found,) = with_traffic(cast("View", Asked()), {"atomlike": {"source": "atomlike"}}, batch)
    assert (found["requests"], found["throttled"], found["wait_ms"], found["behind"]) == (14, 4, 3000, "2 d 1 h")
    page = shown(client, "/console/ingest")
    assert '<td data-label="Sent" class="num">0</td>' in page


def test_the_queue_says_what_waits_and_what_runs() -> None:
    assert queue_title(0, 0) == "No task is queued"
    assert queue_title(1, 0) == "1 task is queued"
    assert queue_title(0, 1) == "No task is queued, 1 runs"
    assert queue_title(3, 2) == "3 tasks are queued, 2 run"


def test_a_request_is_shown_as_it_goes_over_the_wire():
    said = {"method": "GET", "url": "https://a.example/search?db=x&api_key=***", "headers": ["User-Agent: patra"]}
    assert request_text(said) == "GET https://a.example/search\n  ?db=x\n  &api_key=***\n\nUser-Agent: patra"
    assert request_text({"refused": "$.url: no https"}) == "not sent: $.url: no https"
    assert request_text("purged") == ""


def test_the_share_that_failed_is_that_of_the_tasks_that_ran_to_an_end():
    assert failed_share({"FAILED": 1, "SUCCEEDED": 2, "PARTIAL": 1, "QUEUED": 90, "CANCELLED": 5}) == "25.0 %"
    assert failed_share({"FAILED": 1, "SUCCEEDED": 100_000}) == "0.1 %"
    assert failed_share({"SUCCEEDED": 3, "QUEUED": 1}) == ""


def test_a_quota_stands_beside_its_limit_with_when_it_is_used_up(client: Client, monkeypatch: pytest.MonkeyPatch):
    now = client.patra.clock.now()
    day = now // DAY * DAY
    row = {"rate_key": "atomlike|query", "period_code": "DAY", "period_start": day, "updated_at": now}
    client.patra.db.run(lambda tx: tx.insert("ing_quota", [row | {"reserved": 50, "consumed": 40}]))
    unknown = client.get("/console/ingest/rate").data.decode()
    monkeypatch.setattr(rates, "quota_limits", lambda tx, keys: {"atomlike|query": {"DAY": 40}})
    known = client.get("/console/ingest/rate").data.decode()
    assert ("not known" in unknown, "40 used" in unknown) == (True, False)
    assert ("not known" in known, 'aria-label="40 used"' in known, "just now" in known) == (False, True, True)
