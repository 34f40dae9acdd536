"""Alerts arrive at a real web server and a real mail server, signed, once, and again after an outage (ch. 14.8)."""

import base64
import hmac
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec
import pytest

from patra.app.bridges.ingest_alerts import EMAIL, TOLD, WEBHOOK, channels, relays
from patra.app.component import Context
from patra.app.configuration.engine_settings import AlertSettings
from patra.app.configuration.settings import Settings
from patra.kernel import outbox
from patra.kernel.clock import MINUTE
from patra.kernel.db import Database, migrate
from patra.kernel.errors import ConfigInvalid
from patra.kernel.testing import ManualClock

NOW = 1_800_000_000_000_000
ALERT = {
    "alert": "fatal",
    "subject": "crossref/works",
    "severity": "critical",
    "state": "FIRING",
    "value": 1,
    "detail": "i_failed_fatal: 401\r\nBcc: everyone@example.org api_key=abcdef",
    "advice": "fix the cause, then `patra ingest lift SOURCE [ENDPOINT]`",
    "since": "2027-01-15T08:00:00Z",
    "fired": "2027-01-15T08:00:00Z",
    "over": None,
}


class Receiver:
    """A web server that remembers what it was sent."""

    def __init__(self) -> None:
        self.calls: list[tuple[dict[str, str], bytes]] = []
        self.status = 204
        self.url = ""


@contextmanager
def web_server() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            receiver.calls.append(({name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(receiver.status)
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        receiver.url = f"http://127.0.0.1:{server.server_address[1]}/alerts"
        yield receiver
        server.shutdown()


class Mailbox:
    """A mail server that remembers letters and who logged in."""

    def __init__(self) -> None:
        self.letters: list[Any] = []
        self.to: list[list[str]] = []
        self.logins: list[bytes] = []
        self.refuse = False
        self.port = 0


@contextmanager
def mail_server() -> Iterator[Mailbox]:
    box = Mailbox()

    class Handler(socketserver.StreamRequestHandler):
        def say(self, text: str) -> None:
            self.wfile.write(f"{text}\r\n".encode())

        def handle(self) -> None:
            self.say("220 mail.test")
            to: list[str] = []
            while line := self.rfile.readline().decode().strip():
                verb = line.split(" ")[0].upper()
                if verb == "EHLO":
                    self.say("250-mail.test\r\n250 AUTH PLAIN")
                elif verb == "AUTH":
                    box.logins.append(base64.b64decode(line.split(" ")[2]))
                    self.say("235 welcome")
                elif verb == "RCPT":
                    to.append(line.partition(":")[2].strip("<> "))
                    self.say("451 later" if box.refuse else "250 ok")
                elif verb == "DATA":
                    self.say("354 go on")
                    body = b""
                    while (part := self.rfile.readline()) != b".\r\n":
                        body += part
                    box.letters.append(message_from_bytes(body, policy=policy.default))
                    box.to.append(to)
                    self.say("250 taken")
                elif verb == "QUIT":
                    self.say("221 bye")
                    return
                else:
                    self.say("250 ok")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        box.port = server.server_address[1]
        yield box
        server.shutdown()


class Office:
    """A store with the relays of some settings."""

    def __init__(self, db: Database, **alerts: Any) -> None:
        migrate(db, ["patra.kernel"])
        self.db = db
        self.clock = ManualClock(NOW)
        self.settings = AlertSettings(**alerts)
        settings = Settings(alerts=self.settings)
        self.relays = relays(Context(settings=settings, db=db, clock=self.clock, engines={}))

    def tell(self, key: str = "fatal|crossref/works@1") -> None:
        message = outbox.Message(group="fatal|crossref/works", key=key, payload=msgspec.json.encode(ALERT))

        def work(tx: Any) -> None:
            for channel in channels(self.settings):
                outbox.append(tx, channel, [message], self.clock.now())

        self.db.run(work)

    def turn(self) -> dict[str, outbox.Counts]:
        return {name: relay.run_once() for name, relay in self.relays.items()}


def test_a_webhook_gets_the_alert_signed_and_again_after_an_outage_under_the_same_id(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALERT_SECRET", "quite secret")
    with web_server() as receiver:
        office = Office(
            database,
            webhook_url=receiver.url,
            webhook_hosts=("127.0.0.1",),
            webhook_secret="env:ALERT_SECRET",
        )
        assert list(office.relays) == [WEBHOOK]
        receiver.status = 302  # not followed: it could lead anywhere
        office.tell()
        assert office.turn()[WEBHOOK].retried == 1
        receiver.status = 204
        office.clock.advance(MINUTE)
        told = TOLD.labels(way="webhook", result="delivered")._value.get()
        assert office.turn()[WEBHOOK].delivered == 1
        assert TOLD.labels(way="webhook", result="delivered")._value.get() == told + 1
        office.clock.advance(MINUTE)
        assert office.turn()[WEBHOOK].delivered == 0
        (first, _), (second, body) = receiver.calls
        assert msgspec.json.decode(body) == ALERT
        assert first["webhook-id"] == second["webhook-id"]
        signed = f"{second['webhook-id']}.{second['webhook-timestamp']}.".encode() + body
        expected = base64.b64encode(hmac.digest(b"quite secret", signed, "sha256")).decode()
        assert second["webhook-signature"] == f"v1,{expected}"


def test_without_a_secret_nothing_is_signed(database: Database) -> None:
    with web_server() as receiver:
        office = Office(database, webhook_url=receiver.url, webhook_hosts=("127.0.0.1",))
        office.tell()
        office.turn()
        assert "webhook-signature" not in receiver.calls[0][0]


def test_a_letter_arrives_with_what_to_do_and_no_secrets(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAIL_PASSWORD", "pass word")
    with mail_server() as box:
        office = Office(
            database,
            email_to=("ops@example.org", "night@example.org"),
            email_from="patra@example.org",
            smtp_host="127.0.0.1",
            smtp_port=box.port,
            smtp_security="none",
            smtp_user="patra",
            smtp_password="env:MAIL_PASSWORD",
        )
        assert list(office.relays) == [EMAIL]
        box.refuse = True
        office.tell()
        assert office.turn()[EMAIL].retried == 1
        box.refuse = False
        office.clock.advance(MINUTE)
        assert office.turn()[EMAIL].delivered == 1
        assert box.logins[-1] == b"\0patra\0pass word"
        assert box.to == [["ops@example.org", "night@example.org"]]
        letter = box.letters[0]
        assert letter["Subject"] == "[patra] critical: fatal crossref/works"
        assert letter["Bcc"] is None
        text = letter.get_content()
        assert "What to do: fix the cause" in text
        assert "abcdef" not in text
        assert "everyone@example.org" not in text
        assert letter["Message-ID"].endswith("@patra.alerts>")


def test_one_way_that_fails_does_not_keep_the_other_from_telling(database: Database) -> None:
    with web_server() as receiver, mail_server() as box:
        office = Office(
            database,
            webhook_url=receiver.url,
            webhook_hosts=("127.0.0.1",),
            email_to=("ops@example.org",),
            email_from="patra@example.org",
            smtp_host="127.0.0.1",
            smtp_port=box.port,
            smtp_security="none",
        )
        receiver.status = 500
        office.tell()
        found = office.turn()
        assert (found[WEBHOOK].retried, found[EMAIL].delivered) == (1, 1)


@pytest.mark.parametrize(
    ("said", "place"),
    [
        ({"webhook_url": "https://evil.example/x", "webhook_hosts": ("hooks.example.org",)}, "alerts.webhook_url"),
        ({"webhook_url": "http://hooks.example.org/x", "webhook_hosts": ("hooks.example.org",)}, "alerts.webhook_url"),
        ({"webhook_url": "ftp://x/y", "webhook_hosts": ("x",)}, "alerts.webhook_url"),
        ({"email_to": ("a@b.c",)}, "alerts.smtp_host"),
        ({"email_to": ("a@b.c",), "smtp_host": "m"}, "alerts.email_from"),
        (
            {
                "email_to": ("a@b.c",),
                "email_from": "a@b.c",
                "smtp_host": "m",
                "smtp_security": "none",
                "smtp_password": "x",
            },
            "alerts.smtp_security",
        ),
    ],
    ids=["host", "http", "ftp", "server", "sender", "open"],
)
def test_what_cannot_work_or_is_unsafe_is_refused_at_the_start(tmp_path: Any, said: dict[str, Any], place: str) -> None:
    from patra.kernel.db import open_database

    db = open_database(f"sqlite:///{tmp_path / 'patra.db'}")
    with pytest.raises(ConfigInvalid) as caught:
        Office(db, **said)
    assert caught.value.place == place
    db.close()
