"""Every example runs, and does what its first lines say; in this process where that is possible."""

import json
import os
import re
import runpy
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import urllib3
from standardwebhooks.webhooks import Webhook

from patra.app.configuration.settings import Settings, StoreSettings, WebSettings
from patra.app.wiring import build
from patra.attribution.commit import commit
from patra.attribution.contract.event_fields import example_batch, sample_events
from patra.attribution.intake.batch import read_batch
from patra.cli.main import run as run_patra
from patra.demo.providers import library
from patra.demo.providers_http import local_pack, serve
from patra.kernel.clock import DAY, SystemClock, format_instant
from patra.web.asgi import app
from patra.web.uvicorn_server import serving
from tests.e2e.process import environment

EXAMPLES = Path(__file__).parents[2] / "examples"
# by tests/contract/bus/test_embedded.py, tests/e2e/test_readme.py, tests/contract/bus/test_pull.py
RUN_ELSEWHERE = {"orders.py", "dead_letter.py", "pull_consumer.mjs"}
Example = Callable[..., str]


def test_every_example_is_run_by_a_test_and_listed() -> None:
    text, index = Path(__file__).read_text("utf-8"), (EXAMPLES / "README.md").read_text("utf-8")
    names = {path.name for path in EXAMPLES.iterdir() if path.is_file()} - {"README.md"}
    assert len(names) >= 20
    assert [name for name in sorted(names - RUN_ELSEWHERE) if f'"{name}"' not in text] == []
    assert [name for name in sorted(names) if f"]({name})" not in index] == []


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Example:
    """Run an example in this process, in a folder of its own: a program, or a script that only calls `patra`."""
    monkeypatch.chdir(tmp_path)
    for variable in [name for name in os.environ if name.startswith("PATRA_")]:
        monkeypatch.delenv(variable)

    def example(name: str, *args: str) -> str:
        path = EXAMPLES / name
        if path.suffix == ".sh":
            for command in _commands(path, args):
                assert run_patra(command) == 0, (command, capsys.readouterr())
        else:
            monkeypatch.setattr(sys, "argv", [str(path), *args])
            runpy.run_path(str(path), run_name="__main__")
        return capsys.readouterr().out

    return example


def _commands(path: Path, args: tuple[str, ...]) -> Iterator[list[str]]:
    for line in path.read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            program, *words = shlex.split(line)
            assert program == "patra"
            yield [args[int(word[1:]) - 1] if re.fullmatch(r"\$\d", word) else word for word in words]


# --- bus --------------------------------------------------------------------------------------------------------------


def test_a_charge_happens_once_though_the_handler_is_called_twice(example: Example) -> None:
    out = example("idempotent_effect.py")
    assert out.count("charged with key") > 1
    assert out.endswith("1 charge of 500 cents\n")


def test_what_does_not_fit_a_contract_is_refused(example: Example) -> None:
    out = example("contract_from_type.py")
    assert "o-1 is published" in out
    assert re.search(r"o-2 is refused: .*b_payload_invalid.*count", out)


def test_an_event_is_published_with_its_row_or_not_at_all(example: Example) -> None:
    out = example("outbox_in_your_transaction.py").splitlines()
    assert out == ["o-2: the card was refused", "mail for o-1", "1 handled"]


def test_a_consumer_is_tested_without_threads(tmp_path: Path) -> None:
    tests = runpy.run_path(str(EXAMPLES / "test_a_consumer.py"))
    tests["test_an_order_is_shipped_once_though_the_warehouse_is_down_at_first"](tmp_path)


def test_a_shell_command_consumes_events(example: Example, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    del example  # the folder of its own
    assert run_patra(["bus", "publish", "--sample", "task.submitted"]) == 0
    (tmp_path / "event.json").write_text(capsys.readouterr().out, encoding="utf-8")
    assert run_patra(["bus", "publish", "event.json"]) == 0
    consume = ["bus", "consume", "task.submitted", "--group", "log", "--from-beginning", "--once", "--", "sh"]
    for _ in range(2):
        assert run_patra([*consume, str(EXAMPLES / "shell_consumer.sh")]) == 0
    assert len(re.findall(r"attempt \d+: \{", (tmp_path / "orders.log").read_text("utf-8"))) == 1


def test_a_webhook_is_verified_and_handled_once() -> None:
    secret = "whsec_" + "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"
    command = [sys.executable, str(EXAMPLES / "webhook_receiver.py"), "0"]
    with subprocess.Popen(command, env=environment(SECRET=secret), stdout=subprocess.PIPE, text=True) as receiver:
        try:
            assert receiver.stdout is not None
            port = receiver.stdout.readline().split()[-1]
            body, now = '{"order_id":"o-1"}', datetime.now(UTC)
            signature = Webhook(secret).sign("event-1", now, body)
            headers = {"webhook-id": "event-1", "webhook-timestamp": str(int(now.timestamp()))}

            def post(signed: str) -> int:
                return urllib3.request(
                    "POST", f"http://127.0.0.1:{port}/", body=body, headers=headers | {"webhook-signature": signed}
                ).status

            assert [post(signature), post(signature), post("v1,bm8=")] == [204, 204, 401]
        finally:
            receiver.kill()
        assert receiver.stdout.read() == "event-1 {'order_id': 'o-1'}\n"


# --- attribution ------------------------------------------------------------------------------------------------------


def test_programs_talk_to_a_server(example: Example, tmp_path: Path) -> None:
    settings = Settings(store=StoreSettings(url=f"sqlite:///{tmp_path}/patra.db"), web=WebSettings(port=0))
    served_by = build(settings)
    try:
        with serving(app(served_by), settings.web) as served:
            assert "again: e2 duplicate" in example("settle_ad_events.py", served.url)
            assert (
                example("read_settlement.py", served.url, "2026-01-01", "2100-01-01")
                == "home: 1 impressions, 1 clicks\n"
            )
            assert example("durable_sdk.py", served.url) == "accepted\nsent\n"
            published = example("publish_over_http.py", served.url).splitlines()
            assert "again 200" in published[1]
            metrics = example("read_metrics.py", served.url)
            assert re.search(r"^patra_attribution_events_total\{.*\} [1-9]", metrics, re.MULTILINE)
    finally:
        served_by.close(5)


def test_a_program_without_a_key_shows_why_it_is_refused(example: Example, tmp_path: Path) -> None:
    assert run_patra(["attribution", "app", "add", "shop"]) == 0
    settings = Settings(store=StoreSettings(url=f"sqlite:///{tmp_path}/patra.db"), web=WebSettings(port=0))
    served_by = build(settings)
    try:
        with (
            serving(app(served_by), settings.web) as served,
            pytest.raises(SystemExit, match="first: 401 f_app_key_missing: app keys are in use"),
        ):
            example("settle_ad_events.py", served.url)
    finally:
        served_by.close(5)


def test_the_engine_runs_inside_a_program_and_its_log_is_decided_again(example: Example) -> None:
    assert example("embed_attribution.py") == "first [('e1', 'accepted')]\nagain [('e1', 'duplicate')]\n"
    assert run_patra(["attribution", "log", "export", "--out", "log.jsonl"]) == 0
    first, again = example("replay_log.py", "log.jsonl"), example("replay_log.py", "log.jsonl")
    assert "2 batches, 1 billable facts" in first
    assert first.splitlines()[-2:] == again.splitlines()[-2:]


def test_a_day_becomes_a_statement_that_is_verified(example: Example, tmp_path: Path) -> None:
    yesterday = SystemClock().now() - DAY
    store = build(Settings(store=StoreSettings(url=f"sqlite:///{tmp_path}/patra.db")))
    batch = example_batch(batch_id="b") | {"events": sample_events(format_instant(yesterday), "one")}
    commit(store.db, [read_batch(json.dumps(batch).encode(), yesterday)])
    store.close(5)
    day = datetime.fromtimestamp(yesterday / 1_000_000, UTC).strftime("%Y-%m-%d")
    out = example("statement.sh", day)
    assert "152500 micro-EUR" in out
    assert "2 facts" in out


# --- ingest -----------------------------------------------------------------------------------------------------------


def test_a_harvest_is_read_certified_and_done_again(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATRA_INGEST_KEEP_BODIES", "true")
    start = datetime.now(UTC).date() - timedelta(days=5)
    with serve(library(5, start=start)) as providers:
        for source in ("pubmed", "crossref", "openalex"):
            (tmp_path / f"{source}.yaml").write_text(local_pack(source, providers.url), "utf-8")
        assert run_patra(["ingest", "pack", "load", "crossref.yaml"]) == 0
        done = example("harvest_in_a_program.py").splitlines()
        assert run_patra(["ingest", "pack", "load", "pubmed.yaml", "openalex.yaml"]) == 0
        example("nightly.sh")
    assert done[-2] == "done"
    assert int(done[-1].split()[0]) > 0
    assert "windows add up" in example("coverage_certificate.sh")
    example("bibliography.sh")
    assert (tmp_path / "library.bib").read_text("utf-8").startswith("@")
    assert run_patra(["ingest", "tasks", "--json"]) == 0
    task = json.loads(capsys.readouterr().out)[0]["task"]
    assert "=" in example("replay_batch.sh", f"{task}.r1", "1")
    _notebook("read_works.ipynb")


def _notebook(name: str) -> None:
    """Run the cells of a notebook, in order, in one namespace."""
    book, names = json.loads((EXAMPLES / name).read_text("utf-8")), {}
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), name, "exec"), names)


def _install(name: str, folder: Path) -> None:
    """An example as an installer would leave it: the module, and the entry points that its text declares."""
    text = (EXAMPLES / name).read_text("utf-8")
    [(group, entry)] = re.findall(r'\[project\.entry-points\."([\w.]+)"\]\n +(.+)\n', text)
    info = folder / "museum-1.0.0.dist-info"
    info.mkdir(parents=True)
    (folder / name).write_text(text, "utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: museum\nVersion: 1.0.0\n", "utf-8")
    (info / "entry_points.txt").write_text(f"[{group}]\n{entry.replace(chr(34), '')}\n", "utf-8")


@pytest.mark.usefixtures("example")
def test_a_made_up_provider_is_harvested_with_a_signer_of_our_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _install("custom_signer.py", tmp_path / "site")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    signed: list[str] = []

    class Museum(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            signed.append(self.headers["X-Museum"] or "")
            since = parse_qs(urlsplit(self.path).query)["since"][0]
            body = {"total": 1, "objects": [{"id": f"o-{since}", "changed": since, "name": "Otters", "by": "Anon"}]}
            data = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    monkeypatch.setenv("MUSEUM_SECRET", "quite-secret")
    with ThreadingHTTPServer(("127.0.0.1", 0), Museum) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        text = (EXAMPLES / "museum.yaml").read_text("utf-8").replace("9100", str(server.server_port))
        (tmp_path / "museum.yaml").write_text(text, "utf-8")
        assert run_patra(["migrate"]) == 0
        assert run_patra(["ingest", "secret", "allow", "museum", "env:MUSEUM_SECRET"]) == 0
        run = ("ingest", "run", "museum", "objects", "--operation", "BACKFILL", "--from", "2026-01-01")
        for line in (("ingest", "pack", "load", "museum.yaml"), (*run, "--to", "2026-01-02")):
            assert run_patra(line) == 0, capsys.readouterr()
        server.shutdown()
    assert signed
    assert re.fullmatch(r"\d+:[0-9a-f]{64}", signed[0])


# --- operations -------------------------------------------------------------------------------------------------------


def test_a_store_is_backed_up_and_restored(example: Example) -> None:
    assert run_patra(["migrate"]) == 0
    assert "store.restore" in example("backup_and_restore.sh")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nightly.toml", "sqlite:///papers.db"),
        ("alerts.toml", "pager.example.org"),
        ("postgresql.toml", "file:store-url"),
    ],
)
def test_the_settings_are_valid(example: Example, capsys: pytest.CaptureFixture[str], name: str, expected: str) -> None:
    del example  # the folder of its own
    assert run_patra(["--config", str(EXAMPLES / name), "config", "show"]) == 0
    assert expected in capsys.readouterr().out
