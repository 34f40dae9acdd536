"""`patra attribution schema` and `send-sample` from the outside."""

import json
import re
from pathlib import Path

import jsonschema_rs
import pytest
import urllib3
from click.testing import CliRunner

from patra.app.configuration.settings import Settings, StoreSettings, WebSettings
from patra.app.wiring import build
from patra.attribution.app_keys import add_key
from patra.attribution.event_schema import typescript
from patra.attribution.settlement import settle
from patra.cli.attribution.group import group
from patra.kernel.clock import DAY, SystemClock
from patra.web.asgi import app
from patra.web.uvicorn_server import serving


def test_every_form_of_the_contract_is_printed_and_written(tmp_path: Path):
    runner = CliRunner()
    assert runner.invoke(group, ["schema", "--out", str(tmp_path)]).exit_code == 0
    files = {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()}
    assert files["events.d.ts"] == typescript() == runner.invoke(group, ["schema", "typescript"]).output
    schema = json.loads(files["event-batch-request.schema.json"])
    assert schema == json.loads(runner.invoke(group, ["schema"]).output)
    assert jsonschema_rs.validator_for(schema).is_valid(json.loads(files["event-batch.example.json"]))
    assert json.loads(files["event-batch-ack.schema.json"])["$schema"].endswith("2020-12/schema")


def test_each_sample_is_accepted_by_a_running_server_and_billed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.chdir(tmp_path)
    patra = build(Settings(store=StoreSettings(url=f"sqlite:///{tmp_path}/patra.db"), web=WebSettings(port=0)))
    try:
        with serving(app(patra), WebSettings(port=0)) as server:
            for _ in range(2):
                found = CliRunner().invoke(group, ["send-sample", "--url", server.url], standalone_mode=False)
                assert found.return_value == 0, found.output
                assert found.output.count("f_accepted") == 8
        now = SystemClock().now()
        total = patra.db.read(lambda tx: settle(tx, now - DAY, now + DAY, "app"))
        assert (total.impressions, total.clicks) == (2, 2)
    finally:
        patra.close(1)


def test_a_sample_can_be_of_yesterday_and_can_lack_a_field(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.chdir(tmp_path)
    patra = build(Settings(store=StoreSettings(url=f"sqlite:///{tmp_path}/patra.db"), web=WebSettings(port=0)))
    try:
        with serving(app(patra), WebSettings(port=0)) as server:
            sample = ["send-sample", "--url", server.url]
            found = CliRunner().invoke(group, [*sample, "--days-ago", "1"], standalone_mode=False)
            assert (found.return_value, found.output.count("f_accepted")) == (0, 8)
            found = CliRunner().invoke(group, [*sample, "--without", "responseReference"], standalone_mode=False)
            assert found.return_value == 1
            for kind in ("impression", "click"):
                assert re.search(rf"^{kind}-\w+\trejected\tf_event_missing_required$", found.output, re.MULTILINE)
            assert found.output.endswith("next: patra attribution rejects\n")
        now = SystemClock().now()
        for since, until, expected in ((now - 2 * DAY, now - DAY // 2, 1), (now - DAY // 2, now + DAY, 0)):
            total = patra.db.read(lambda tx, since=since, until=until: settle(tx, since, until, "app"))
            assert (total.impressions, total.clicks) == (expected, expected)
    finally:
        patra.close(1)


def test_a_sample_without_a_key_says_why_it_was_not_taken_and_how_to_get_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.chdir(tmp_path)
    patra = build(Settings(store=StoreSettings(url=f"sqlite:///{tmp_path}/patra.db"), web=WebSettings(port=0)))
    try:
        patra.db.run(lambda tx: add_key(tx, "shop", SystemClock().now()))
        with serving(app(patra), WebSettings(port=0)) as server:
            sample = ["send-sample", "--app", "shop", "--url", server.url]
            found = CliRunner().invoke(group, sample, standalone_mode=False)
            answer = urllib3.request("POST", f"{server.url}/events", json={}).json()
        assert found.return_value == 1
        assert found.output == (
            "the batch was not taken: app keys are in use, and the request carries none that is known "
            "[f_app_key_missing]\n"
            "`patra attribution app add shop` prints a key of this app: give it with --key KEY\n"
        )
        assert answer["detail"].endswith(
            "send `Authorization: Bearer KEY`; `patra attribution app add APP` prints a key"
        )
    finally:
        patra.close(1)


def test_a_sample_that_nobody_answers_says_so():
    found = CliRunner().invoke(group, ["send-sample", "--url", "http://127.0.0.1:9"], standalone_mode=False)
    assert found.return_value == 4
