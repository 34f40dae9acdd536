"""Schedules: each tick once, in its time zone, with jitter; missed ones as the schedule says (ch. 5.2.1)."""

import pytest
from msgspec.structs import replace

from patra.ingest.packs.schema import Schedule
from patra.ingest.planning.schedule import Scheduled, due_ticks, latest_tick, next_tick, tick_jitter
from patra.ingest.vocabulary.codes import MissedTicks, Operation
from patra.kernel.clock import DAY, MINUTE, format_instant, parse_duration, parse_instant


def at(text):
    return parse_instant(text)


def scheduled(operation=Operation.HARVEST, **more):
    return Scheduled(
        source="s", name="n", schedule=Schedule(endpoint="e", operation=operation, cron="*/15 * * * *", **more)
    )


def due_triggers(entries, fired, now):
    return [due.trigger for entry in entries for due in due_ticks(entry, fired.get(entry.job), now)]


def test_the_latest_tick_is_at_or_before_now():
    assert latest_tick("*/15 * * * *", at("2026-11-16T02:15:00Z")) == at("2026-11-16T02:15:00Z")
    assert latest_tick("*/15 * * * *", at("2026-11-16T02:14:59.999999Z")) == at("2026-11-16T02:00:00Z")
    assert next_tick("*/15 * * * *", at("2026-11-16T02:15:00Z")) == at("2026-11-16T02:30:00Z")


def test_a_tick_fires_once_and_the_latest_stands_for_those_that_were_missed():
    now = at("2026-11-16T02:20:00Z")
    (trigger,) = due_triggers([scheduled()], {}, now)
    assert (trigger.kind, trigger.job, trigger.log) == ("CRON", "s/n", "2026-11-16T02:15:00Z")
    assert due_triggers([scheduled()], {"s/n": at("2026-11-16T02:15:00Z")}, now) == []
    assert len(due_triggers([scheduled()], {"s/n": at("2026-11-10T00:00:00Z")}, now)) == 1


def test_a_jitter_of_an_earlier_release_that_outlasts_every_tick_holds_up_no_planner():
    """Its planner would go back tick by tick to the beginning of time, and no other schedule would fire."""
    now = at("2026-11-16T02:20:00Z")
    (trigger,) = due_triggers([scheduled(jitter="P999999999D")], {}, now)
    assert now - 8 * DAY < at(trigger.log) <= now


def test_a_schedule_may_look_back_from_its_tick():
    now = at("2026-11-16T02:20:00Z")
    (trigger,) = due_triggers([scheduled(Operation.BACKFILL, last="P7D", params={"a": "1"}, priority=7)], {}, now)
    assert trigger.since == at("2026-11-16T02:15:00Z") - 7 * DAY
    assert (trigger.params, trigger.priority) == ({"a": "1"}, 7)
    assert trigger.said == ("P7D", None), "the next night goes on with the same namespace"


def test_a_rolling_re_read_is_a_campaign_of_its_own_each_time():
    """Without it the windows that were read before would count as covered."""
    again = scheduled(Operation.BACKFILL, last="P7D", reread=True)
    (trigger,) = due_triggers([again], {}, at("2026-11-16T02:20:00Z"))
    (later,) = due_triggers([again], {}, at("2026-11-16T02:35:00Z"))
    assert (trigger.since, trigger.activity) == (at("2026-11-09T02:15:00Z"), "n 2026-11-16T02:15:00Z")
    assert later.activity != trigger.activity
    (once,) = due_triggers([scheduled(Operation.BACKFILL, last="P7D")], {}, at("2026-11-16T02:20:00Z"))
    assert once.activity is None


def test_a_scheduled_refresh_is_a_campaign_of_its_own():
    (trigger,) = due_triggers([scheduled(Operation.UPDATE)], {}, at("2026-11-16T02:20:00Z"))
    assert trigger.activity == "n 2026-11-16T02:15:00Z"
    (harvest,) = due_triggers([scheduled()], {}, at("2026-11-16T02:20:00Z"))
    assert harvest.activity is None


def test_a_tick_is_an_instant_of_its_time_zone():
    """03:30 in Berlin is 02:30 UTC in winter and 01:30 in summer; 02:30 does not exist on 29 March and fires at 03:00."""
    assert latest_tick("30 3 * * *", at("2026-01-10T12:00:00Z"), "Europe/Berlin") == at("2026-01-10T02:30:00Z")
    assert latest_tick("30 3 * * *", at("2026-07-10T12:00:00Z"), "Europe/Berlin") == at("2026-07-10T01:30:00Z")
    assert next_tick("30 2 * * *", at("2026-03-29T00:00:00Z"), "Europe/Berlin") == at("2026-03-29T01:00:00Z")
    daily = Schedule(endpoint="e", operation=Operation.HARVEST, cron="30 3 * * *", timezone="America/New_York")
    entry = Scheduled(source="s", name="n", schedule=daily)
    assert entry.next(at("2026-07-10T12:00:00Z")) == at("2026-07-11T07:30:00Z")
    (due,) = due_ticks(entry, None, at("2026-07-10T12:00:00Z"))
    assert due.tick == at("2026-07-10T07:30:00Z")


@pytest.mark.parametrize("minute", range(0, 180, 7))
def test_a_tick_in_the_hour_that_is_passed_twice_fires_once(minute):
    """On 25 October 02:30 comes twice in Berlin, at 00:30 and at 01:30 UTC."""
    now, tick = at("2026-10-25T00:00:00Z") + minute * MINUTE, at("2026-10-25T00:30:00Z")
    before, after = at("2026-10-24T00:30:00Z"), at("2026-10-26T01:30:00Z")
    assert latest_tick("30 2 * * *", now, "Europe/Berlin") == (tick if now >= tick else before)
    assert next_tick("30 2 * * *", now, "Europe/Berlin") == (after if now >= tick else tick)


@pytest.mark.parametrize("day", ["2026-10-25", "2026-03-29"])
def test_ticks_of_every_quarter_come_in_order_when_the_clocks_change(day):
    start = at(f"{day}T00:00:00Z")
    found, now = [], start
    while now < start + 4 * 60 * MINUTE:
        now = next_tick("*/15 * * * *", now, "Europe/Berlin")
        found.append(now)
        assert latest_tick("*/15 * * * *", now, "Europe/Berlin") == now
        assert latest_tick("*/15 * * * *", now + 14 * MINUTE, "Europe/Berlin") == now
    assert found == [start + n * 15 * MINUTE for n in range(1, 17)]


def test_a_tick_fires_when_its_jitter_is_over_and_not_before():
    entry = scheduled(jitter="PT10M")
    tick = at("2026-11-16T02:15:00Z")
    late = tick_jitter(entry, tick)
    assert 0 < late <= parse_duration("PT10M")
    assert tick_jitter(entry, tick) == late, "all planners agree"
    assert len({tick_jitter(entry, tick + n * 15 * MINUTE) for n in range(8)}) > 1
    before, after = due_ticks(entry, None, tick + late - 1), due_ticks(entry, None, tick + late)
    assert [one.tick for one in before] == [tick - 15 * MINUTE]
    assert [one.tick for one in after] == [tick]


def test_what_becomes_of_missed_ticks_is_for_the_schedule_to_say():
    now, fired = at("2026-11-16T03:02:00Z"), at("2026-11-16T02:00:00Z")

    def ticks(missed, at_=now, fired=fired, **more):
        return [
            (format_instant(one.tick)[11:16], one.trigger is not None and one.trigger.until)
            for one in due_ticks(scheduled(missed=missed, **more), fired, at_)
        ]

    assert ticks(MissedTicks.ONCE) == [("03:00", None)]
    assert ticks(MissedTicks.NONE) == [("03:00", None)]
    assert ticks(MissedTicks.NONE, now + 4 * MINUTE) == [("03:00", False)], "six minutes late"
    assert ticks(MissedTicks.ALL) == [
        ("02:15", at("2026-11-16T02:15:00Z")),
        ("02:30", at("2026-11-16T02:30:00Z")),
        ("02:45", at("2026-11-16T02:45:00Z")),
        ("03:00", None),
    ]
    assert ticks(MissedTicks.ALL, operation=Operation.UPDATE)[0] == ("02:15", None), "a refresh has no window"
    assert ticks(MissedTicks.ALL, fired=None) == [("03:00", None)], "when it was turned on is not known"


@pytest.mark.parametrize("fired", ["2026-11-16T02:00:00Z", None])
def test_ticks_before_a_schedule_was_turned_on_are_not_missed_and_those_after_are_made_up(fired):
    entry = replace(scheduled(missed=MissedTicks.ALL), since=at("2026-11-16T02:40:00Z"))
    due = due_ticks(entry, fired and at(fired), at("2026-11-16T03:02:00Z"))
    assert [format_instant(one.tick)[11:16] for one in due] == ["02:45", "03:00"]
