"""An archive, a bus or a receiver that does not take messages is told once, and over once."""

import msgspec

from patra.app.bridges.outbox_alerts import outbox_readings
from patra.app.components.ingest import handed_in_of
from patra.app.configuration.engine_settings import AlertSettings
from patra.app.configuration.settings import Settings
from patra.app.wiring import packages
from patra.ingest.operations.alerting.bus_rules import UNDELIVERED
from patra.ingest.operations.alerting.monitor import Watch, alerts
from patra.kernel import outbox
from patra.kernel.clock import DAY, MINUTE, SECOND
from patra.kernel.db import Database, migrate
from patra.kernel.db.queries import statement
from patra.kernel.outbox_messages import Delivered, Message, Policy, Refused, Retry
from patra.kernel.retry import DelayTable
from patra.kernel.testing import ManualClock

CHANNEL = "test.alerts"
POLICY = Policy(delays=DelayTable((MINUTE,)), window=None)
TOLD = statement("told", "SELECT payload FROM krn_outbox WHERE channel = :channel ORDER BY seq")


class Site:
    """A store with an archive that answers as it is told to, and the watch."""

    def __init__(self, db: Database) -> None:
        migrate(db, packages())
        self.db, self.clock = db, ManualClock()
        self.answer: Delivered | Retry | Refused = Delivered()
        deliver = outbox.one_by_one(lambda _: self.answer)
        self.relay = outbox.Relay(db, "archive", deliver, POLICY, self.clock)
        self.watch = Watch(db, self.clock, channels=[CHANNEL], handed_in=outbox_readings(5 * MINUTE))

    def send(self) -> None:
        message = Message(group="one", key="k", payload=b"{}")
        self.db.run(lambda tx: outbox.append(tx, "archive", [message], self.clock.now()))
        self.relay.run_once()

    def look(self, later: int = SECOND) -> list[tuple[str, str, str]]:
        self.clock.advance(later)
        before = len(self.told())
        self.watch.run_once()
        return self.told()[before:]

    def told(self) -> list[tuple[str, str, str]]:
        rows = self.db.read(lambda tx: tx.fetch(TOLD, {"channel": CHANNEL}))
        found = [msgspec.json.decode(bytes(payload)) for (payload,) in rows]
        return [(one["alert"], one["state"], one["subject"]) for one in found]

    def detail(self) -> str:
        return next(one["detail"] for one in alerts(self.db, self.clock.now()) if one["state"] == "FIRING")


def test_a_message_that_is_refused_is_told_once_and_over_when_it_is_taken(database: Database) -> None:
    site = Site(database)
    site.send()
    assert site.look() == []
    site.answer = Refused("a_conflict: of ann")
    site.send()
    assert site.look() == [(UNDELIVERED, "FIRING", "archive")]
    assert site.detail() == "1 message refused or given up within a day (a_conflict)"
    site.send()
    assert site.look() == []
    site.answer = Delivered()
    seqs = [one.seq for one in database.read(lambda tx: outbox.undelivered_messages(tx, channel="archive"))]
    database.run(lambda tx: outbox.requeue(tx, "archive", seqs, site.clock.now()))
    site.relay.run_once()
    assert site.look() == [(UNDELIVERED, "OVER", "archive")]
    assert site.look() == []


def test_a_refusal_that_is_final_is_over_after_a_day(database: Database) -> None:
    site = Site(database)
    site.answer = Refused("a_conflict")
    site.send()
    assert site.look() == [(UNDELIVERED, "FIRING", "archive")]
    assert site.look(DAY + SECOND) == [(UNDELIVERED, "OVER", "archive")]


def test_a_delivery_that_fails_for_long_is_told_and_over_when_it_works_again(database: Database) -> None:
    site = Site(database)
    site.answer = Retry("a_unavailable")
    site.send()
    assert site.look(5 * MINUTE) == []
    assert site.look(MINUTE) == [(UNDELIVERED, "FIRING", "archive")]
    assert site.detail() == "delivery has failed for 6 min and is tried again"
    assert site.look() == []
    site.answer = Delivered()
    site.clock.advance(DAY)
    site.relay.run_once()
    assert site.look() == [(UNDELIVERED, "OVER", "archive")]
    assert site.look() == []


def test_how_long_a_delivery_may_fail_is_a_setting(database: Database) -> None:
    site = Site(database)
    site.answer = Retry("a_unavailable")
    site.send()
    site.clock.advance(2 * MINUTE)
    for seconds, told in ((300, 0), (60, 1)):
        read = handed_in_of(Settings(alerts=AlertSettings(undelivered_seconds=seconds)))
        assert len(database.read(lambda tx, read=read: read(tx, site.clock.now()))[UNDELIVERED]) == told
