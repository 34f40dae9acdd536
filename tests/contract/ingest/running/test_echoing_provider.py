"""A provider that repeats our key in its records puts it nowhere."""

import json
from typing import Any

import pytest

from patra.ingest.landing.records import bad, content_of, incoming
from patra.ingest.operations.reads.blackbox import export
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.db import Database
from patra.kernel.safety.known_secrets import know_secret
from tests.contract.ingest.running.test_credentials_at_the_gate import keyed
from tests.contract.ingest.running.world import T0, T1, world
from tests.support.hostile_provider import Reply, crowded

KEY = "s3cr3t-k3y-that-is-echoed"
TABLES = (
    "ing_plan", "ing_task", "ing_task_run", "ing_task_run_batch", "ing_cursor_event", "ing_plan_slice", "ing_quarantine",
    "krn_move", "krn_outbox",
)  # fmt: skip


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTILE_KEY", KEY)


def test_records_that_repeat_the_key_are_stored_without_it(database: Database, capfd: Any) -> None:
    with world(database, crowded(20, T0, T1, crowd=False), keep_bodies=True) as w:
        tree = keyed(w.url)
        for endpoint in tree["endpoints"].values():
            endpoint.setdefault("output", {})["keepRaw"] = True
        w.load(tree)
        serve = w.provider._served

        def echoing(*args: Any) -> Reply:
            reply = serve(*args)
            body = reply.body.replace(b'"id":', b'"note":"your key is %b","id":' % KEY.encode())
            assert KEY.encode() in body or b'"id":' not in reply.body
            return Reply(status=reply.status, body=body, kind=reply.kind)

        w.provider._served = echoing  # type: ignore[method-assign]
        w.trigger()
        w.drain()
        assert len(w.landed()) == 20
        assert any(KEY in one.path for one in w.provider.asked)
        for table in TABLES:
            for row in w.rows(f"SELECT * FROM {table}"):
                assert "s3cr3t" not in repr(row), table
        for (content,) in w.rows("SELECT content FROM ing_record"):
            assert KEY.encode() not in content_of(bytes(content))
            assert b"your key is ***" in content_of(bytes(content))
        for run_id, batch_no in w.rows("SELECT run_id, batch_no FROM ing_task_run_batch"):
            assert KEY not in json.dumps(export(database, run_id, batch_no))
    assert KEY not in "".join(capfd.readouterr())


def test_a_record_and_a_quarantined_one_are_scrubbed_and_stay_json() -> None:
    know_secret(KEY)
    record = incoming("1", 0, None, {"n": 7, f"x{KEY}": [f"key={KEY}&a=1"]}, {"deep": {"k": KEY}}, deleted=False)
    assert record is not None
    assert json.loads(content_of(record.content)) == {
        "fields": {"n": 7, "x***": ["key=***&a=1"]},
        "raw": {"deep": {"k": "***"}},
    }
    sample = bad({"k": "x" * 1010 + KEY}, "1", RunReason.NO_ID, "$", f"no id in {KEY}")
    assert b"s3cr3t" not in sample.sample
    assert "s3cr3t" not in sample.detail
