"""What users of other buses complain of, and what must not happen here; the rest of it is named where it belongs:

`test_long_work`: a handler that outlives its lease runs once. `test_dead_letters`: a replay is not swallowed by the inbox,
reaches the failed group only, keeps its history. `test_consuming`: a subscriber cannot change the publisher's contract.
`test_evolution`: whatever is not a new optional field is a breaking change.
"""

import contextlib

from patra.bus import operations, timeline
from patra.bus.consuming.dead_letter import DeadLetterState, Filter
from patra.bus.dispatch.dispatcher import Dispatcher
from patra.bus.store import deliveries, events, groups
from patra.kernel.clock import DAY, SECOND, format_instant
from tests.support.faults import FaultyDatabase, InjectedFault
from tests.unit.bus.making import envelope


def failing(site):
    site.listen("one")
    site.fail = {"bad"}
    made = envelope(payload={"key": "bad"})
    site.publish(made)
    site.transport()
    return made


def bury(site):
    for _ in range(3):  # max_retries = 2
        site.step("one")
        site.clock.advance(60 * SECOND)


def test_a_retry_that_cannot_be_written_loses_nothing(site):
    """Whatever statement of the step fails, the event is in line, for now or for later."""
    made = failing(site)
    seq = site.db.read(lambda tx: events.by_id(tx, made.event_id))[0].seq
    group_id = site.db.read(lambda tx: groups.find(tx, "one")).group_id
    counting = FaultyDatabase(site.db)
    Dispatcher(counting, site.bus, "one", slow_start=False).run_once()
    for n in range(1, counting.steps + 1):
        site.clock.advance(60 * SECOND)
        site.db.run(lambda tx: deliveries.replay(tx, group_id, [(seq, None)], site.clock.now()))
        with contextlib.suppress(InjectedFault):
            Dispatcher(FaultyDatabase(site.db, fail_at=n), site.bus, "one", slow_start=False).run_once()
        (row,) = site.db.read(lambda tx: deliveries.of_event(tx, made.event_id))
        assert row["attempts"] in {0, 1}, f"a fault at step {n}"
    site.fail = set()
    site.clock.advance(60 * SECOND)
    site.pump()
    assert [e for e, _, _ in site.effects("one")] == [made.event_id]


def test_a_failed_event_does_not_come_back_at_once(site):
    failing(site)
    assert site.step("one").later == 1
    assert not site.step("one").busy
    group = site.db.read(lambda tx: groups.find(tx, "one"))
    assert site.db.read(lambda tx: deliveries.next_due(tx, group.group_id)) > site.clock.now()
    assert len(site.tries) == 2  # once with its batch, once by itself; then it waits


def test_a_failing_event_does_not_come_back_for_ever(site):
    failing(site)
    bury(site)
    tries = len(site.tries)
    site.clock.advance(365 * DAY)
    assert site.pump() == {}
    assert len(site.tries) == tries


def test_a_dead_letter_does_not_expire_and_is_replayed_long_after_its_events_retention(site):
    made = failing(site)
    bury(site)
    site.clock.advance(1000 * DAY)
    before = site.clock.now() - 90 * DAY
    site.db.run(lambda tx: events.purge_bodies(tx, made.event_type, before=before, limit=10))
    (letter,) = site.db.read(lambda tx: operations.find_letters(tx, Filter(), limit=5))
    assert letter.event_id == made.event_id
    site.fail = set()
    site.run(operations.replay, "one", [made.event_id], by="ann", confirm="one")
    site.pump()
    assert [e for e, _, _ in site.effects("one")] == [made.event_id]
    assert site.db.run(lambda tx: events.purge_bodies(tx, made.event_type, before=before, limit=10)).emptied == 1


def test_who_replayed_what_and_when_is_told(site):
    made = failing(site)
    bury(site)
    site.fail = set()
    at = site.clock.now()
    site.run(operations.replay, "one", [made.event_id], by="ann", confirm="one")
    site.clock.advance(SECOND)
    site.pump()
    (letter,) = site.db.read(lambda tx: operations.find_letters(tx, Filter(state=DeadLetterState.REPLAYED), limit=5))
    assert (letter.replayed_by, letter.replayed_at, letter.replay_count) == ("ann", at, 1)
    story = site.db.read(lambda tx: timeline.timeline(tx, made.event_id))
    told = [(entry.what, entry.at) for entry in story]
    assert ("replay", at) in told
    assert ("dead_letter_replayed", at + SECOND) in told
    assert next(entry for entry in story if entry.what == "replay").detail["by"] == "ann"
    assert next(entry for entry in story if entry.what == "dead_letter").detail["replayed_at"] == format_instant(at)
