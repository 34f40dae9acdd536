"""What operators see of the bus: who handled an event and when, what is counted, what the doctor warns of."""

from msgspec.structs import replace

from patra.app.components.bus import bus_of
from patra.app.configuration.engine_settings import BusSettings
from patra.app.configuration.settings import Settings, StoreSettings
from patra.app.wiring import build
from patra.bus import operations
from patra.bus.consuming.consumer import Poison
from patra.bus.dispatch.long_worker import LongWorker
from patra.bus.dispatch.outcomes import CONSUMED
from patra.bus.publishing.envelope import DELIVER_AT
from patra.bus.store import dead_letters, events, hops
from patra.bus.timeline import timeline
from patra.kernel.clock import SECOND
from patra.kernel.testing import ManualClock
from tests.contract.bus.site import Site
from tests.unit.bus.making import catalogue, envelope, event_type


def story(site, made):
    found = site.db.read(lambda tx: timeline(tx, made.event_id))
    return [(e.at, e.detail["group"]) for e in found if e.what == "handled"]


def test_the_timeline_says_which_group_handled_an_event_and_when(site):
    site.listen("one")
    site.listen("two")
    made = envelope()
    site.publish(made)
    assert story(site, made) == []
    site.clock.advance(SECOND)
    site.pump("one")
    first = site.clock.now()
    site.clock.advance(SECOND)
    site.pump("two")
    assert story(site, made) == [(first, "one"), (first + SECOND, "two")]


def test_an_event_past_its_retention_keeps_its_id_in_the_timeline_of_its_trace(site):
    site.listen("one")
    made = envelope(trace_id="one trace")
    site.publish(made)
    site.pump()
    site.db.run(lambda tx: events.purge_bodies(tx, made.event_type, before=site.clock.now() + 1, limit=10))
    told = [(e.what, e.event_id) for e in site.db.read(lambda tx: timeline(tx, "one trace"))]
    assert {"published", "handled"} <= {what for what, _ in told}
    assert {event_id for _, event_id in told} == {made.event_id}


def test_a_dead_letter_was_not_handled_by_its_group_and_a_discarded_one_neither(site):
    site.listen("one")
    site.fail = {"bad"}
    made = envelope(payload={"key": "bad"})
    site.publish(made)
    for _ in range(4):
        site.pump("one")
        site.clock.advance(60 * SECOND)
    assert story(site, made) == []
    site.run(operations.discard, "one", [made.event_id], by="ann", reason="test")
    assert story(site, made) == []


def test_a_letter_keeps_the_traceback_of_its_handler_without_secrets(site):
    @site.bus.consumer("thing.happened", group="one")
    def _(tx, event):
        raise Poison("broken", "password=hunter2 does not work")

    site.join()
    made = envelope()
    site.publish(made)
    site.pump("one")
    (letter,) = site.db.read(lambda tx: dead_letters.of_events(tx, [made.event_id]))
    assert "Traceback (most recent call last)" in letter.traceback
    assert "test_seen.py" in letter.traceback
    assert "hunter2" not in letter.traceback + letter.error_detail


def counted(group, result):
    return CONSUMED.labels(group, result)._value.get()


def test_consumed_events_are_counted_by_group_and_result(site):
    site.listen("counted")
    site.fail = {"bad"}
    before = {result: counted("counted", result) for result in ("handled", "later", "dead")}
    site.publish(envelope(), envelope(), envelope(payload={"key": "bad"}))
    for _ in range(4):
        site.pump("counted")
        site.clock.advance(60 * SECOND)
    after = {result: counted("counted", result) - before[result] for result in before}
    assert after == {"handled": 2, "later": 2, "dead": 1}


def test_the_doctor_warns_of_a_group_that_is_behind(database_url):
    settings = Settings(store=StoreSettings(url=database_url), bus=BusSettings(lag_warning_seconds=60))
    patra = build(settings, ManualClock())
    bus = bus_of(patra).bus
    bus.consumer("task.submitted", group="slow")(lambda tx, event: None)
    patra.db.run(bus.join)
    payload = dict(bus.catalogue.types["task.submitted"].contracts[1].examples[0])
    ids = dict.fromkeys(("tenant_id", "project_id", "trace_id", "correlation_id", "idempotency_key"), "x")
    later = {**ids, "idempotency_key": "later"}
    far = replace(bus.envelope("task.submitted", payload, **later), extensions={DELIVER_AT: "9999-12-31T23:59:59Z"})
    patra.db.run(lambda tx: bus.publish(tx, far))  # nobody is behind with what is not due
    patra.clock.advance(3600 * SECOND)
    assert next(check() for check in patra.checks if check().name == "bus").health == "ok"
    patra.db.run(lambda tx: bus.publish(tx, bus.envelope("task.submitted", payload, **ids)))
    patra.clock.advance(60 * SECOND)
    assert next(check() for check in patra.checks if check().name == "bus").health == "ok"
    patra.clock.advance(SECOND)
    (found,) = [check() for check in patra.checks if check().name == "bus"]
    assert (found.health, found.found) == ("warning", "group slow is 61 s behind: 2 events wait")
    patra.close(5)


def steps(site, made, *what):
    found = site.db.read(lambda tx: timeline(tx, made.event_id))
    return [(e.what, e.detail) for e in found if e.what in what]


def test_the_timeline_keeps_the_tries_that_failed_when_the_event_is_handled(site):
    site.listen("one")
    site.fail = {"bad"}
    made = envelope(payload={"key": "bad"})
    site.publish(made)
    site.pump("one")
    site.fail = set()
    site.clock.advance(60 * SECOND)
    site.pump("one")
    (what, detail), handled = steps(site, made, "attempt_failed", "handled")
    assert (what, detail["group"], detail["attempt"]) == ("attempt_failed", "one", 1)
    assert (detail["error_code"], detail["error_detail"]) == ("b_handler_failed", "ValueError: no luck with bad")
    assert handled == ("handled", {"group": "one"})  # nothing was declared as written


def test_the_timeline_shows_the_rows_that_a_handler_declared_as_written(site):
    @site.bus.consumer("thing.happened", group="one", effects=lambda event: [("thing", event.payload["key"])])
    def _(tx, event):
        event.wrote("receipt", 7)

    @site.bus.batch_consumer("thing.happened", group="many")
    def _(tx, events):
        for event in events:
            event.wrote("total", event.payload["key"])

    @site.bus.long_consumer("thing.happened", group="long", effects=lambda event: [("film", event.event_id)])
    def _(event, hold):
        return lambda tx: event.wrote("frame", 1)

    site.join()
    made = envelope()
    site.publish(made)
    site.pump("one", "many", "long")
    worker = LongWorker(site.db, site.bus, "long")
    worker.run_once()
    worker.run_once(20)
    worker.close()
    shown = {detail["group"]: detail["effects"] for _, detail in steps(site, made, "handled")}
    assert shown == {
        "one": [{"table": "receipt", "key": "7"}, {"table": "thing", "key": "k"}],
        "many": [{"table": "total", "key": "k"}],
        "long": [{"table": "frame", "key": "1"}, {"table": "film", "key": made.event_id}],
    }


def test_a_handler_that_fails_has_written_nothing_whatever_it_declared(site):
    @site.bus.consumer("thing.happened", group="one")
    def _(tx, event):
        event.wrote("receipt", 7)
        raise ValueError("after all")

    site.join()
    made = envelope()
    site.publish(made)
    site.pump("one")
    assert [what for what, _ in steps(site, made, "attempt_failed", "handled")] == ["attempt_failed"]


def test_steps_of_the_timeline_that_are_past_their_retention_are_purged(site):
    site.listen("one")
    site.fail = {"bad"}
    made = envelope(payload={"key": "bad"})
    site.publish(made)
    site.pump("one")
    now = site.clock.now()
    assert site.db.run(lambda tx: hops.purge(tx, before=now, limit=10)) == 0
    assert site.db.run(lambda tx: hops.purge(tx, before=now + 1, limit=10)) == 1
    assert steps(site, made, "attempt_failed") == []


def test_the_timeline_says_to_which_groups_an_event_was_routed(site):
    site.listen("one")
    site.listen("two")
    site.listen("other", "ordered.happened")
    made = envelope()
    site.publish(made)
    site.pump("one")
    found = site.db.read(lambda tx: timeline(tx, made.event_id))
    assert [e.detail["groups"] for e in found if e.what == "routed"] == [["one", "two"]]
    assert [e.what for e in found][:2] == ["published", "routed"]


def test_consumers_that_are_listed_and_never_subscribed_are_told_of(database):
    types = catalogue(event_type(consumers=[{"group": "here"}, {"group": "nowhere"}]))
    site = Site(database, types)
    site.listen("here")
    assert site.db.read(lambda tx: operations.absent_consumers(tx, site.bus)) == {"nowhere": ["thing.happened"]}
