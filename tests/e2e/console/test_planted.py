"""Secrets, e-mail addresses and script are planted wherever clients and operators can write; no page, stream or story
shows them."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb
import pytest
import urllib3

from patra.cli.main import run as cli_run
from patra.ingest.landing.records import pack_body
from patra.kernel.clock import DAY, format_instant
from patra.kernel.telemetry import setup_logging
from patra.web.console.pages import ROUTES
from tests.e2e.console.world import World, world
from tests.unit.attribution import said

MAIL = "mei.halvorsen@hospital.example"
SECRET = "sk-live-9f8e7d6c5b4a39281706f5e4d3c2b1a0"
BEARER = f"Authorization: Bearer {SECRET}"
SCRIPT = "<script>window.pwned=1</script>"
PLANTED = f"{SCRIPT} {MAIL} {BEARER} password={SECRET}"


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    setup_logging(level="critical")
    with world(Path(tmp_path_factory.mktemp("planted"))) as made:
        _plant(made)
        yield made


def _plant(made: World) -> None:
    made.send_events(
        "b-planted",
        said.event("nonsense", "p-1", creativeId=PLANTED),
        said.event("impression", "p-2", creativeId=said.ABSENT, clickTarget=PLANTED),
        said.event("opportunity_created", "p-0", opportunityKey="planted", placementKey=PLANTED),
        said.event("ad_filled", "p-3", responseReference="planted", opportunityKey="planted", creativeId=PLANTED),
        said.event("impression", "p-4", responseReference="planted", opportunityKey="planted", creativeId=PLANTED),
    )
    made.post("/ingest/sources/atomlike/pause", {"why": PLANTED})
    made.post("/bus/types/task.submitted/freeze", {"reason": PLANTED})
    made.post("/ingest/alerts/acknowledge", {"alert": "fatal", "subject": "oailike", "why": PLANTED})
    made.post("/ingest/alerts/silence", {"alert": "fatal", "subject": "oailike", "why": PLANTED, "duration": "PT1H"})
    asked = {"act": "discard", "group": "mail-out", "confirm": "mail-out", "why": PLANTED}
    made.known["act"] = made.post("/bus/acts", asked)["act_id"]
    made.work_off_acts()
    digest = json.dumps({"url": f"https://provider.example/query?api_key={SECRET}&mail={MAIL}", "note": PLANTED})

    def write(tx: Any) -> None:
        tx.execute(_set("ing_task_run", "error"), {"text": PLANTED})
        tx.execute(_set("ing_task_run_batch", "error"), {"text": PLANTED})
        tx.execute(_set("ing_task_run_batch", "request_digest"), {"text": digest})
        tx.execute(_set("ing_quarantine", "detail"), {"text": PLANTED})
        tx.execute(_set("ing_quarantine", "sample"), {"text": PLANTED.encode()})
        tx.execute(_set("bus_dead_letter", "error_detail"), {"text": PLANTED})
        tx.execute(_set("ing_alert", "detail"), {"text": PLANTED})

    made.patra.db.run(write)
    made.patra.db.run(lambda tx: tx.insert("ing_record", [_record()]))
    made.known["day"] = format_instant(made.clock.now())[:10]
    made.clock.advance(2 * DAY)
    made.post(f"/attribution/apps/shop/periods/{made.known['day']}/close", {"allowUnpriced": True})


def _record() -> dict[str, Any]:
    """A work whose texts are planted, as a provider may publish it."""
    author = {"name": PLANTED, "given": PLANTED, "family": PLANTED, "affiliation": [PLANTED]}
    texts = dict.fromkeys(("title", "abstract", "container", "publisher"), PLANTED)
    fields = {"doi": "10.5555/planted", **texts, "authors": [author], "keywords": [PLANTED]}
    return {
        "provenance_code": "atomlike",
        "endpoint_name": "query",
        "provider_id": "planted",
        "updated_at": 1,
        "deleted": 0,
        "expr_hash": "h",
        "content": pack_body(json.dumps({"fields": fields, "raw": {"note": PLANTED}}).encode()),
        "content_hash": "c",
        "task_id": "t",
        "run_id": "r",
        "batch_no": 1,
        "first_seen_at": 1,
        "changed_at": 1,
        "refresh_checked_at": 1,
    }


def _set(table: str, column: str) -> Any:
    from patra.kernel.db.queries import statement

    return statement("plant", f"UPDATE {table} SET {column} = :text")


def addresses(made: World) -> list[str]:
    known = {**made.known, "type": "task.submitted", "source": "atomlike", "group": "search-index", "number": "2"}
    known["event_id"] = known["letter-0"]
    found: list[str] = []
    for route in ROUTES:
        path = route.path
        for name in ("plan", "task", "run", "number", "type", "source", "group", "event_id", "act"):
            value = known["film"] if path.startswith("/studio/") and name == "run" else known[name]
            path = path.replace(f"{{{name}}}", value)
        assert "{" not in path, path
        found.append(f"/console{path}")
    stories = [*made.known.values(), "b-planted", "p-1", "p-2"]
    found += [f"/console/story?key={key.replace('|', '%7C')}" for key in stories]
    found += [f"/story?key={key.replace('|', '%7C')}" for key in stories]
    found += ["/console/attribution/event?batch=b-planted&event=p-1", "/console/attribution/rejects?quarantined=1"]
    asked = ["/ingest/alerts", "/bus/acts", f"/bus/acts/{known['act']}", "/bus/dead-letters/causes", "/settings"]
    asked += ["/bus/dead-letters/preview?group=search-index", "/bus/dead-letters/causes?state=discarded"]
    return [*found, *asked, "/metrics", "/openapi.json"]


def test_nothing_that_was_planted_is_on_any_page_or_in_the_log(
    planted: World, capfd: pytest.CaptureFixture[str]
) -> None:
    setup_logging(level="debug")
    http = urllib3.PoolManager(retries=False)
    seen = 0
    shown: dict[str, list[str]] = {}
    for path in addresses(planted):
        answer = http.request("GET", planted.url + path)
        text = answer.data.decode()
        seen += "[" in text and "window.pwned" in text
        bad = [name for name, value in (("mail", MAIL), ("secret", SECRET)) if value in text]
        if SCRIPT in text and path.startswith("/console"):
            bad.append("script")
        if bad:
            shown[path] = bad
    setup_logging(level="critical")
    log = "".join(capfd.readouterr())
    assert shown == {}
    assert (MAIL in log, SECRET in log) == (False, False)
    assert seen > 3, "the planted text did not reach the pages, so that nothing was tried"


NEVER_ASKED = {
    "/studio/runs/{run_id}/events": "a stream that ends with the run",
}


def _asked(made: World, template: str) -> str:
    known = {**made.known, "source": "atomlike", "endpoint": "query", "group": "search-index", "type": "task.submitted"}
    known |= {"key": made.known["letter-0"], "event_id": made.known["letter-0"], "act_id": made.known["act"]}
    known |= {"run_id": made.known["film"], "app": "shop", "number": "2", "batch": "2", "period": made.known["day"]}
    known |= {"slice": "s", "shot_id": "s", "name": "n", "channel": "c"}
    return re.sub(r"\{(\w+)\}", lambda found: quote(known[found[1]], safe=""), template)


def test_nothing_that_was_planted_is_in_any_answer_of_the_http_interface(planted: World) -> None:
    http = urllib3.PoolManager(retries=False)
    found: dict[str, list[str]] = {}
    seen = 0
    templates = [one.template for one in planted.endpoints() if one.method == "GET" and one.template not in NEVER_ASKED]
    for path in [*(_asked(planted, one) for one in templates), "/attribution/events?batchId=b-planted"]:
        answer = http.request("GET", planted.url + path, timeout=30)
        assert answer.status < 500, path
        seen += b"window.pwned" in answer.data
        if bad := _planted_in(answer.data):
            found[path] = bad
    assert found == {}
    assert seen > 10, "the planted text did not reach the answers, so that nothing was tried"


def _planted_in(content: bytes) -> list[str]:
    return [name for name, value in (("mail", MAIL), ("secret", SECRET)) if value.encode() in content]


def test_nothing_that_was_planted_is_in_any_export(
    planted: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """What leaves as a file or as text of a command, but for the data themselves (`EXACT`)."""
    run, now = planted.known["run"], planted.clock.now()
    span = ["--from", format_instant(now - 5 * DAY), "--to", format_instant(now)]
    statement = ["attribution", "statement", "export", planted.known["day"], "--app", "shop", "--out"]
    settled = ["attribution", "settle", *span, "--by"]
    written = {
        "evidence": ["ingest", "blackbox", run, "2", "--why", PLANTED, "-o", str(tmp_path / "evidence")],
        "certificate": ["ingest", "coverage", "atomlike", "--out", str(tmp_path / "certificate.json")],
        "settled": [*settled, "placement", "--format", "csv"],
        "settled dimensions": [*settled, "creative,opportunity", "--format", "json"],
        "rejects": ["attribution", "rejects", "--json"],
        "facts": ["attribution", "list", "billable"],
        "attributions": ["attribution", "list", "attribution"],
        "archived": ["attribution", "list", "records"],
        "audits": ["attribution", "list", "audits"],
        "quarantine": ["ingest", "quarantine", "--json"],
        "errors": ["ingest", "errors", "--json"],
        "signals": ["ingest", "signals", "--json"],
        "letters": ["bus", "dead-letters", "--json"],
        "letter": ["bus", "dead-letters", planted.known["letter-0"], "--json"],
        "story": ["story", "p-4", "--json"],
        "audit": ["audit", "--json"],
        "doctor": ["doctor", "--json"],
        "rate": ["ingest", "rate", "--json"],
        "task": ["ingest", "show", planted.known["task"]],
        "run": ["ingest", "show", run],
        "batch": ["ingest", "show", f"{run}/2"],
    }
    written |= {
        f"settled.{form}": [*settled, "placement", "--out", str(tmp_path / f"settled.{form}")] for form in TABLES
    }
    written |= {f"statement.{form}": [*statement, str(tmp_path / f"statement.{form}")] for form in TABLES}
    written |= {f"works.{form}": ["ingest", "works", "--out", str(tmp_path / f"works.{form}")] for form in WORKS}
    texts = _written(planted, written, monkeypatch, capfdbinary)
    files = {path.name: _text_of(path) for path in tmp_path.rglob("*") if path.is_file()}
    assert set(files) >= {"evidence.json", "certificate.json", "statement.parquet", "works.parquet", "works.ris"}
    assert {name: bad for name, text in (texts | files).items() if (bad := _planted_in(text))} == {}
    body = planted.post(f"/ingest/runs/{run}/batches/2/evidence", {"why": PLANTED})
    assert _planted_in(json.dumps(body).encode()) == []
    shown = [name for name, text in (texts | files).items() if b"window.pwned" in text]
    assert len(shown) > 8, f"the planted text did not reach the exports, so that nothing was tried: {shown}"
    labels = json.loads(files["statement.json"])["facts"]
    assert {one[name][:3] for one in labels if one["billingKey"].startswith("planted") for name in LABELS} == {"***"}


TABLES = ("json", "csv", "parquet")
WORKS = ("jsonl", "csv", "parquet", "csljson", "bib", "ris")
LABELS = ("placement", "creative")
EXACT = {
    "log": ["attribution", "log", "export"],
    "records": ["ingest", "records"],
}
"""Exports that are the data themselves: `replay` decides again from the one, the other is what the provider sent."""


def test_what_is_exported_exactly_is_named_so(
    planted: World, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    for name, text in _written(planted, EXACT, monkeypatch, capfdbinary).items():
        assert _planted_in(text) == ["mail", "secret"], name


def _written(
    planted: World,
    commands: dict[str, list[str]],
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> dict[str, bytes]:
    """What each command says."""
    setup_logging(level="critical")
    monkeypatch.setenv("PATRA_STORE_URL", planted.settings.store.url)
    found: dict[str, bytes] = {}
    for name, line in commands.items():
        capfdbinary.readouterr()
        code = cli_run(line)
        found[name] = b"".join(capfdbinary.readouterr())
        assert code in {0, 1}, (name, found[name])
    return found


def _text_of(path: Path) -> bytes:
    """The file's bytes; of a Parquet file, whose pages are compressed, its values."""
    if path.suffix != ".parquet":
        return path.read_bytes()
    return repr(duckdb.sql(f"SELECT * FROM read_parquet('{path}')").fetchall()).encode()
