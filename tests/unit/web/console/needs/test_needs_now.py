"""What needs a person stands there once, under the line that mends it."""

import msgspec
import pytest

from patra.attribution.delivery.relay import CHANNEL, POLICY
from patra.kernel import outbox
from patra.kernel.clock import DAY, HOUR, MINUTE, SystemClock, format_instant
from patra.kernel.db import Database
from patra.kernel.outbox import Message, Relay, Retry
from patra.kernel.testing import ManualClock
from patra.web.console.needs.need import Need
from patra.web.console.needs.needs_now import each_once
from tests.unit.attribution import said
from tests.unit.web.served import Client, served


def need(act: str, **fields: str) -> Need:
    return Need(subject="s", href="/", what="w", act=act, fields=fields)


def test_an_alert_of_the_bus_gives_way_to_the_line_that_mends_its_cause() -> None:
    letters, frozen = need("bus.replay_all", group="g"), need("ingest.acknowledge", alert="bus_frozen")
    alert = need("ingest.acknowledge", alert="bus_dead_letters")
    assert each_once([alert, letters, frozen]) == [letters, frozen]
    assert each_once([alert, frozen]) == [alert, frozen]


def fail(db: Database, since: int, now: int) -> None:
    """A decision that its archive has not taken since an instant."""
    message = Message(group="g", key="1", payload=b"")
    db.run(lambda tx: outbox.append(tx, CHANNEL, [message], since - HOUR))
    for at in (since, now):
        clock = ManualClock(at)
        Relay(db, CHANNEL, lambda pending: [Retry("g_archive_timeout") for _ in pending], POLICY, clock).run_once()


@pytest.mark.parametrize(("minutes", "title"), [(1, "Everything is healthy"), (8, "One thing needs a person")])
def test_an_archive_that_takes_nothing_needs_a_person_before_the_first_fact_is_lost(minutes: int, title: str) -> None:
    with served() as client:
        now = client.patra.clock.now()
        fail(client.patra.db, now - minutes * MINUTE, now)
        shown = client.get("/console/").data.decode()
        delivery = client.get("/console/attribution/archive").data.decode()
    assert f"<h1>{title}</h1>" in shown
    assert "does not take decisions" in shown
    assert "g_archive_timeout" in shown
    assert f"is lost to settlement in {14 - minutes} min" in shown
    assert "1 decision waits for the archive" in delivery
    assert "what failed first is lost to settlement at" in delivery


def test_deadlines_that_the_timer_has_not_taken_need_a_person_and_are_counted() -> None:
    clock = ManualClock(SystemClock().now())
    with served(clock=clock) as client:
        now = format_instant(clock.now())
        for number in range(2):
            filled = said.event("ad_filled", f"e-{number}", responseReference=f"r-{number}", eventAt=now)
            client.post("/events", body=msgspec.json.encode(said.envelope(filled, batch=f"b-{number}", sentAt=now)))
        early = client.get("/console/").data.decode()
        clock.advance(10 * MINUTE)
        late = client.get("/console/").data.decode()
    assert "attribution timer" not in early
    assert "2 closures are past the deadline." in late
    assert '<b class="">2</b> <span>closures open</span>' in late


@pytest.mark.parametrize(("a_day", "is_unusual"), [(0, True), (7, True), (8, False)])
def test_far_more_rejects_than_in_the_same_hour_of_other_days_are_worth_watching(a_day: int, is_unusual: bool) -> None:
    clock = ManualClock(SystemClock().now())
    with served(clock=clock) as client:
        for day in range(7, -1, -1):
            clock.set(clock.now() if day == 7 else clock.now() + DAY)
            reject(client, f"d{day}", 40 if day == 0 else a_day, clock)
        clock.advance(MINUTE)
        shown = client.get("/console/").data.decode()
    assert ("are unusually many: 40 in an hour" in shown) == is_unusual
    assert "<h1>Everything is healthy</h1>" in shown


def reject(client: Client, batch: str, count: int, clock: ManualClock) -> None:
    now = format_instant(clock.now())
    events = [said.event("nonsense", f"{batch}-{number}", eventAt=now) for number in range(count)]
    if events:
        client.post("/events", body=msgspec.json.encode(said.envelope(*events, batch=batch, sentAt=now)))
