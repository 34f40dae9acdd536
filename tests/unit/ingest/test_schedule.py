"""Cron-like schedules: each tick once, missed ones not made up (ch. 5.2.1)."""

from patra.ingest.codes import Operation
from patra.ingest.pack import Schedule
from patra.ingest.schedule import Scheduled, due_triggers, latest_tick, next_tick
from patra.kernel.clock import DAY, parse_instant


def at(text):
    return parse_instant(text)


def scheduled(operation=Operation.HARVEST, **more):
    return Scheduled(
        source="s", name="n", schedule=Schedule(endpoint="e", operation=operation, cron="*/15 * * * *", **more)
    )


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


def test_a_schedule_may_look_back_from_its_tick():
    now = at("2026-11-16T02:20:00Z")
    (trigger,) = due_triggers([scheduled(Operation.BACKFILL, last="P7D", params={"a": "1"}, priority=7)], {}, now)
    assert trigger.since == at("2026-11-16T02:15:00Z") - 7 * DAY
    assert (trigger.params, trigger.priority) == ({"a": "1"}, 7)


def test_a_scheduled_refresh_is_a_campaign_of_its_own():
    (trigger,) = due_triggers([scheduled(Operation.UPDATE)], {}, at("2026-11-16T02:20:00Z"))
    assert trigger.activity == "2026-11-16T02:15:00Z"
    (harvest,) = due_triggers([scheduled()], {}, at("2026-11-16T02:20:00Z"))
    assert harvest.activity is None
