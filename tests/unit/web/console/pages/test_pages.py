"""Pages ask the HTTP interface: what the console shows, `curl` can ask for."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from patra.kernel.telemetry import setup_logging
from patra.web.console import pages
from tests.unit.web.served import Client, served

EXCEPT = {
    "studio.py": "shots and notes of a film",
    "operations.py": "the names of engines and of vendored files",
    "overview.py": "readiness and loops of this process",
}


def test_no_page_reads_the_store_itself() -> None:
    folder = Path(pages.__file__).parent
    found = {path.name for path in folder.glob("*.py") if re.search(r"view\.patra\b", path.read_text("utf-8"))}
    assert found <= set(EXCEPT)
    assert not [path.name for path in folder.glob("*.py") if ".db.read" in path.read_text("utf-8")]


SINCE = "2026-01-01T00:00:00Z"


@pytest.fixture(scope="module")
def nothing() -> Iterator[Client]:
    """Served over a store to which nothing has come."""
    setup_logging(level="error")
    with served() as found:
        yield found


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/attribution/closures", "No closure is open"),
        ("/attribution/rejects", "No event was rejected"),
        ("/attribution/apps", "No app key is in force"),
        ("/attribution/settlement", "No fact may be billed"),
        ("/ingest", "No task is queued"),
        ("/ingest/quarantine", "Nothing is in quarantine"),
        ("/ingest/errors", "Nothing failed in the last day"),
        ("/bus", "No event flows now, no group reads"),
        ("/bus/groups", "No group has joined"),
        ("/bus/dead-letters", "No dead letter is open"),
        ("/bus/refusals", "No publish was refused"),
        ("/studio", "No film is being made"),
        ("/outbox", "Everything is delivered"),
    ],
)
def test_the_title_of_a_page_is_the_answer_also_over_an_empty_store(nothing: Client, path: str, answer: str) -> None:
    assert f"<h1>{answer}</h1>" in nothing.get(f"/console{path}").data.decode()


def test_instants_are_written_as_instants_and_not_as_they_are_stored(nothing: Client) -> None:
    lead = (
        nothing.get("/console/attribution/settlement").data.decode().partition('class="lead"')[2].partition("</p>")[0]
    )
    assert len(re.findall(r"<time [^>]*>\d+ [A-Z][a-z]+( \d{4})? 00:00</time>|<time [^>]*>00:00</time>", lead)) == 2


@pytest.mark.parametrize(
    ("path", "next_step"),
    [
        ("/attribution/closures", "A closure opens with the first event"),
        ("/attribution/settlement", "These are the last seven days."),
        ("/ingest/tasks", "patra ingest plan SOURCE ENDPOINT --dry-run"),
        ("/ingest/cursors", "patra ingest plan SOURCE ENDPOINT --dry-run"),
    ],
)
def test_an_empty_list_without_filters_says_what_comes_first_and_offers_no_filter_to_clear(
    nothing: Client, path: str, next_step: str
) -> None:
    shown = nothing.get(f"/console{path}").data.decode()
    assert next_step in shown
    assert "Clear filters" not in shown


def test_the_list_of_films_says_how_far_each_is_and_the_audit_writes_prices_as_amounts() -> None:
    with served() as client:
        headers = {"Content-Type": "application/json"}
        client.post("/studio/runs", body=json.dumps({"chapter": "A river runs."}), headers=headers)
        films = client.get("/console/studio").data.decode()
        price = {"billableType": "billable_click", "priceMicros": 250_000, "currency": "EUR", "validFrom": SINCE}
        assert client.post("/attribution/rates", body=json.dumps(price), headers=headers).status < 300
        audit = client.get("/console/audit").data.decode()
    assert "<h1>1 film is being made</h1>" in films
    assert '<span class="dim nowrap">0 %</span>' in films
    assert "type billable_click, currency EUR, price 0.250000" in audit


def test_an_engine_without_work_says_so_beside_its_dash(nothing: Client) -> None:
    shown = nothing.get("/console/").data.decode()
    for label in ("no deadline is open", "nothing is harvested", "nothing waits", "nothing is being made"):
        assert f"<span>{label}</span>" in shown
