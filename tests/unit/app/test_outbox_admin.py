"""Messages that nobody took are seen, explained, and tried again, over HTTP, on the command line and by the doctor."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from patra.app import outbox_admin
from patra.app.access.audit import list_acts
from patra.app.component import Health
from patra.attribution.delivery.relay import CHANNEL as ARCHIVE
from patra.cli.main import run
from patra.kernel import outbox
from patra.kernel.clock import SECOND
from patra.kernel.db import Database, open_database
from patra.kernel.outbox import Message, Policy, Refused, Relay
from patra.kernel.retry import DelayTable
from patra.kernel.testing import ManualClock
from tests.unit.web.served import Client, served


def refuse(db: Database, channel: str, *keys: str) -> None:
    """Messages that their receiver will never take."""
    clock = ManualClock()
    messages = [Message(group="g", key=key, payload=b"{}") for key in keys]
    db.run(lambda tx: outbox.append(tx, channel, messages, clock.now()))
    policy = Policy(delays=DelayTable((SECOND,)))
    Relay(db, channel, lambda pending: [Refused("too_big") for _ in pending], policy, clock).run_once()


@pytest.fixture
def client() -> Iterator[Client]:
    with served() as found:
        refuse(found.patra.db, "ingest.record", "a", "b")
        yield found


def test_they_are_listed_page_by_page_and_tried_again_with_an_audit_row(client: Client) -> None:
    first = client.get("/outbox?limit=1").json()
    (one,) = first["messages"]
    assert (one["channel"], one["key"], one["state"], one["reason"]) == ("ingest.record", "a", "refused", "too_big")
    rest = client.get(f"/outbox?after={first['next']}").json()
    assert [message["key"] for message in rest["messages"]] == ["b"]
    assert rest["next"] is None
    assert client.get("/outbox?channel=bus").json()["messages"] == []
    asked = {
        "body": json.dumps({"seqs": [one["seq"]], "why": "mended"}),
        "headers": {"Content-Type": "application/json"},
    }
    assert client.post("/outbox/ingest.record/requeue", **asked).json() == {"channel": "ingest.record", "changed": 1}
    assert client.post("/outbox/ingest.record/requeue", **asked).json()["changed"] == 0  # it is on its way
    assert client.patra.db.read(outbox.backlog) == {("ingest.record", "pending"): 1, ("ingest.record", "refused"): 1}
    act = client.patra.db.read(lambda tx: list_acts(tx, limit=1))[0]
    assert (act.act, act.subject, act.detail["why"]) == ("outbox.requeue", "ingest.record", "mended")


def test_what_an_archive_did_not_take_is_final(client: Client) -> None:
    refuse(client.patra.db, ARCHIVE, "1")
    body, kind = json.dumps({"seqs": [1]}), {"Content-Type": "application/json"}
    answer = client.post(f"/outbox/{ARCHIVE}/requeue", body=body, headers=kind)
    assert (answer.status, answer.json()["code"]) == (409, "outbox_final")


def test_the_doctor_says_that_they_are_there(client: Client) -> None:
    found = outbox_admin.check(client.patra.db)
    assert (found.health, found.found) == (Health.WARNING, "2 of ingest.record refused")


def test_the_command_line_lists_them_and_tries_them_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["migrate"]) == 0
    db = open_database("sqlite:///patra.db")
    assert outbox_admin.check(db).health is Health.OK
    refuse(db, "ingest.record", "a")
    db.close()
    capsys.readouterr()
    assert run(["outbox", "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)
    assert (one["key"], one["reason"]) == ("a", "too_big")
    assert run(["outbox", "requeue", "ingest.record", str(one["seq"])]) == 0
    assert run(["outbox", "requeue", "ingest.record", str(one["seq"])]) == 1
    assert run(["outbox", "requeue", ARCHIVE, "1"]) == 5
