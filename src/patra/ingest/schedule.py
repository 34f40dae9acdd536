"""Schedules of packs and an instant go in; the triggers that are due come out (ch. 5.2.1).

A schedule fires at most once for each of its ticks: the tick is part of the trigger's identity. Ticks that were missed
are not made up one by one, because a plan covers everything since the watermark anyway; the latest one stands for all.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec
from cronsim import CronSim

from patra.ingest.codes import Operation
from patra.ingest.pack import Schedule
from patra.ingest.trigger import CRON, Trigger
from patra.kernel.clock import format_instant, parse_duration

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Scheduled(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule of a loaded pack."""

    source: str
    name: str
    schedule: Schedule

    @property
    def job(self) -> str:
        return f"{self.source}/{self.name}"


def latest_tick(cron: str, now: int) -> int:
    """The last instant at or before `now` at which the schedule fires."""
    after = _EPOCH + timedelta(microseconds=now + 1)
    found = next(CronSim(cron, after, reverse=True))
    return (found - _EPOCH) // timedelta(microseconds=1)


def next_tick(cron: str, now: int) -> int:
    """The first instant after `now` at which the schedule fires."""
    found = next(CronSim(cron, _EPOCH + timedelta(microseconds=now)))
    return (found - _EPOCH) // timedelta(microseconds=1)


def due_triggers(schedules: Sequence[Scheduled], fired: dict[str, int], now: int) -> list[Trigger]:
    """The triggers whose latest tick has not fired yet; `fired` is the last tick of each job that did."""
    found: list[Trigger] = []
    for entry in schedules:
        tick = latest_tick(entry.schedule.cron, now)
        if fired.get(entry.job, -1) < tick:
            found.append(_trigger(entry, tick))
    return found


def _trigger(entry: Scheduled, tick: int) -> Trigger:
    schedule = entry.schedule
    last = parse_duration(schedule.last) if schedule.last is not None else None
    return Trigger(
        source=entry.source,
        endpoint=schedule.endpoint,
        operation=schedule.operation,
        since=None if last is None else tick - last,
        params=dict(schedule.params),
        priority=schedule.priority,
        activity=_campaign(schedule.operation, tick) if last is None else None,
        kind=CRON,
        scheduler="cron",
        job=entry.job,
        log=format_instant(tick),
    )


def _campaign(operation: Operation, tick: int) -> str | None:
    """Scheduled refreshes are campaigns of their own; harvests have the watermark instead."""
    return None if operation is Operation.HARVEST else format_instant(tick)
