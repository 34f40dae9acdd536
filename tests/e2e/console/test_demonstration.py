"""From everything that the demonstration makes, the story reaches where it came from and what it led to.

`patra demo` is started as a person starts it; when its films are made, every fact, event, batch, dead letter and artifact
is asked for by its key, and one key of each kind is tried by itself.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
import urllib3

from tests.shots.__main__ import wait_for_films

KINDS = {
    "attribution.batchId", "attribution.event", "attribution.eventId", "attribution.billingKey", "attribution.recordKey",
    "attribution.closureKey", "attribution.responseReference", "attribution.canonicalDedupKey",
    "attribution.sourceEventId", "attribution.traceKey", "attribution.factId", "attribution.statement",
    "ingest.plan", "ingest.slice", "ingest.task", "ingest.run", "ingest.batch", "ingest.record", "ingest.cursor",
    "ingest.correlation_id", "bus.event_id", "bus.trace_id", "bus.correlation_id", "bus.dead_letter",
    "studio.task", "studio.run", "studio.job", "studio.artifact",
}  # fmt: skip
"""Every kind of key that the console's search box promises."""


class Demonstration:
    """A running demonstration, asked over HTTP; `reached` are keys that its stories led to, one of each kind."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.reached: dict[str, str] = {}
        self._http = urllib3.PoolManager(retries=False, timeout=30.0)

    def get(self, path: str) -> Any:
        answer = self._http.request("GET", self.url + path)
        assert answer.status == 200, (path, answer.data)
        return answer.json()

    def pages(self, path: str, name: str) -> Iterator[dict[str, Any]]:
        after = -1
        while after is not None:
            page = self.get(f"{path}?after={after}&limit=1000")
            yield from page[name]
            after = page["next"]

    def kinds(self, key: str, kind: str = "") -> set[str]:
        """What the story of a key is about, and what it leads to; nothing where it is not found."""
        asked = f"/story?key={quote(key, safe='')}" + (f"&kind={kind}" if kind else "")
        found = self.get(asked)
        if found["outcome"] != "found":
            return set()
        for one in found["related"]:
            self.reached.setdefault(one["kind"], one["key"])
        self.reached.setdefault(found["kind"], found["key"])
        return {found["kind"], *(one["kind"] for one in found["related"])}


@pytest.fixture(scope="module")
def shown() -> Iterator[Demonstration]:
    command = [sys.executable, "-m", "patra", "demo", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            url = ""
            for line in process.stdout:
                found = re.search(r"Open (\S+)/console/", line)
                url = found[1] if found else url
                if "It goes on producing" in line:
                    break
            wait_for_films(url)
            yield Demonstration(url)
        finally:
            process.terminate()


def _lost(shown: Demonstration, keys: Iterator[str], *wanted: str) -> list[tuple[str, set[str]]]:
    """Keys whose story misses a kind of origin or effect, and what it misses."""
    asked = list(dict.fromkeys(keys))
    assert asked
    missing = [(key, set(wanted) - shown.kinds(key)) for key in asked]
    return [(key, kinds) for key, kinds in missing if kinds]


def test_every_fact_leads_to_its_batch_its_event_and_its_record(shown: Demonstration) -> None:
    origin = ("attribution.batchId", "attribution.sourceEventId", "attribution.recordKey")
    billable = list(shown.pages("/attribution/facts/billable", "items"))
    assert _lost(shown, (one["factId"] for one in billable), *origin, "attribution.closureKey") == []
    assert _lost(shown, (one["billingKey"] for one in billable), *origin, "attribution.closureKey") == []
    others = shown.pages("/attribution/facts/attribution", "items")
    assert _lost(shown, (one["factId"] for one in others), *origin) == []


def test_every_event_and_every_batch_leads_to_what_was_decided(shown: Demonstration) -> None:
    decisions = list(shown.pages("/attribution/decisions", "decisions"))
    batches = (one["batchId"] for one in decisions if one["batchId"])
    assert _lost(shown, batches, "attribution.appId", "attribution.sourceEventId") == []
    events = (
        f"{one['batchId']}/{event}"
        for one in decisions
        if one["batchId"] and one["records"]
        if (event := one["records"][0]["sourceKeys"].get("eventId", "NA")) != "NA"
    )
    assert _lost(shown, events, "attribution.batchId", "attribution.sourceEventId") == []


def test_every_task_run_and_batch_leads_to_its_plan_and_a_paper_to_all_of_them(shown: Demonstration) -> None:
    tasks = [one["task"] for one in shown.get("/ingest/tasks?limit=200")["tasks"]]
    runs = [run["run_id"] for task in tasks for run in shown.get(f"/ingest/tasks/{task}")["runs"]]
    batches = [f"{run}/{batch['batch_no']}" for run in runs for batch in shown.get(f"/ingest/runs/{run}")["batches"]]
    plans = iter([one["plan"] for one in shown.get("/ingest/plans?limit=200")["plans"]])
    assert _lost(shown, plans, "ingest.task", "ingest.cursor") == []
    assert (
        _lost(shown, iter([*tasks, *(task.replace(".t", ".s") for task in tasks), *runs, *batches]), "ingest.plan")
        == []
    )
    assert _lost(shown, iter(["10.5555/boats.0"]), "ingest.plan", "ingest.batch", "ingest.record", "bus.event_id") == []


def test_every_event_of_the_bus_and_every_dead_letter_leads_to_its_trace(shown: Demonstration) -> None:
    events = shown.get("/bus/events?limit=1000")["events"]
    records = iter([one["event_id"] for one in events if one["event_type"] == "ingest.record.changed"])
    assert _lost(shown, records, "bus.trace_id", "ingest.batch") == []
    others = iter([one["event_id"] for one in events if one["event_type"] != "ingest.record.changed"])
    assert _lost(shown, others, "bus.trace_id", "bus.correlation_id") == []
    letters = shown.get("/bus/dead-letters?state=all")["dead_letters"]
    assert _lost(shown, iter([one["letter_id"] for one in letters]), "bus.event_id", "bus.trace_id") == []


def test_every_artifact_leads_to_the_film_that_it_was_made_for(shown: Demonstration) -> None:
    for run in shown.get("/studio/runs")["runs"]:
        manifest = shown.get(f"/studio/runs/{run['run_id']}/manifest")
        made = [one["sha256"] for one in manifest["artifacts"]]
        parts = [
            shot[name] for shot in manifest["work"]["shots"] for name in ("audio", "mouth_shapes", "timing", "video")
        ]
        assert _lost(shown, iter(made), "studio.run", "studio.task") == []
        assert _lost(shown, iter(parts), "studio.run", "studio.job") == []


def test_one_key_of_every_kind_is_found_by_its_kind(shown: Demonstration) -> None:
    (statement,) = shown.get("/attribution/statements")["statements"]
    assert "attribution.billingKey" in shown.kinds(f"{statement['appId']}/{statement['period']}")
    cursor = shown.get("/ingest/cursors")["rows"][0]
    name = f"{cursor['provenance_code']}/{cursor['operation_code']}/{cursor['namespace_key']}"
    assert "ingest.plan" in shown.kinds(name)
    fact = shown.get("/attribution/facts/billable?limit=1000")["items"][0]["factId"]
    letter = shown.get("/bus/dead-letters?state=all")["dead_letters"][0]["letter_id"]
    film = shown.get("/studio/runs")["runs"][0]["run_id"]
    for key in (fact, "10.5555/boats.0", letter, film):
        shown.kinds(key)
    assert KINDS - set(shown.reached) == set()
    assert {kind for kind in KINDS if kind not in shown.kinds(shown.reached[kind], kind)} == set()
