"""Work out which ticks of the schedules are due at an instant, with their triggers (ch. 5.2.1).

A schedule fires at most once for each of its ticks: the tick is part of the trigger's identity. What becomes of ticks
that nobody fired in time (an outage, a pause) is the schedule's `missed`.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import islice
from zoneinfo import ZoneInfo

import msgspec
from cronsim import CronSim

from patra.ingest.packs.schema import MAX_JITTER, Schedule
from patra.ingest.planning.trigger import CRON, MANUAL, Trigger
from patra.ingest.vocabulary.codes import MissedTicks, Operation
from patra.kernel.clock import MINUTE, format_instant, parse_duration

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

MISSED_AFTER = 5 * MINUTE
"""A tick that is looked at later than this after it was due has been missed."""

MAX_CATCH_UP_TICKS = 1000
"""Ticks that a schedule with `missed: ALL` makes up at once; the rest follows in the next turn."""


class ScheduledExport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A file that is written again when the plan of a tick is done."""

    what: str
    """`works` or `records`."""
    out: str
    dedupe: bool = False
    sources: tuple[str, ...] = ()
    topic: str = ""
    """Only records that were noted under this topic; all of the store where it is empty."""


class Scheduled(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule of a loaded pack, or one that an operator has added."""

    source: str
    name: str
    schedule: Schedule
    enabled: bool = True
    since: int = 0
    """When it was turned on; ticks before are not missed."""
    own: bool = False
    """Added by an operator, not by a pack."""
    then: ScheduledExport | None = None
    topic: str = ""
    """What it finds is noted under this name."""

    @property
    def job(self) -> str:
        return f"{self.source}/{self.name}"

    def next(self, now: int) -> int:
        """The first instant after `now` at which it fires, without jitter."""
        return next_tick(self.schedule.cron, now, self.schedule.timezone)


class DueTick(msgspec.Struct, frozen=True, kw_only=True):
    """A tick to be fired, or one that was missed and is only noted."""

    entry: Scheduled
    tick: int
    trigger: Trigger | None


def latest_tick(cron: str, now: int, zone: str = "UTC") -> int:
    """The last instant at or before `now` at which the schedule fires.

    In the hour that is passed twice when summer time ends, looking back skips the ticks of the first pass.
    """
    found = _instant(next(CronSim(cron, _local(now + 1, zone), reverse=True)))
    while (later := next_tick(cron, found, zone)) <= now:
        found = later
    return found


def next_tick(cron: str, now: int, zone: str = "UTC") -> int:
    """The first instant after `now` at which the schedule fires; one in an hour that is passed twice fires once."""
    return next(tick for found in CronSim(cron, _local(now, zone)) if (tick := _instant(found)) > now)


def due_ticks(entry: Scheduled, fired: int | None, now: int) -> list[DueTick]:
    """What a schedule has to do at `now`; `fired` is its last tick that was dealt with."""
    latest = _latest_due(entry, now)
    if fired is not None and latest <= fired:
        return []
    match entry.schedule.missed:
        case MissedTicks.ONCE:
            return [DueTick(entry=entry, tick=latest, trigger=_trigger(entry, latest))]
        case MissedTicks.NONE:
            late = now - latest - tick_jitter(entry, latest) > MISSED_AFTER
            return [DueTick(entry=entry, tick=latest, trigger=None if late else _trigger(entry, latest))]
        case MissedTicks.ALL:
            after = max(fired or 0, entry.since)
            ticks = list(islice(_ticks_between(entry, after, latest), MAX_CATCH_UP_TICKS)) if after else []
            older = [DueTick(entry=entry, tick=t, trigger=_trigger(entry, t, until=t)) for t in ticks if t < latest]
            if ticks and ticks[-1] < latest:
                return older
            return [*older, DueTick(entry=entry, tick=latest, trigger=_trigger(entry, latest))]


def tick_jitter(entry: Scheduled, tick: int) -> int:
    """How much later than its tick a schedule fires: always the same for one tick, so that all planners agree."""
    most = min(parse_duration(entry.schedule.jitter), MAX_JITTER)  # one of an earlier release may say more
    digest = sha256(f"{entry.job}|{tick}".encode()).digest()
    return int.from_bytes(digest[:8]) % (most + 1)


def trigger_now(entry: Scheduled, now: int) -> Trigger:
    """What a schedule would ask for, asked for by hand."""
    return msgspec.structs.replace(_trigger(entry, now), kind=MANUAL, scheduler="manual", log="")


def _latest_due(entry: Scheduled, now: int) -> int:
    """The last tick whose jitter is over, too."""
    cron, zone = entry.schedule.cron, entry.schedule.timezone
    tick = latest_tick(cron, now, zone)
    while tick + tick_jitter(entry, tick) > now:
        tick = latest_tick(cron, tick - 1, zone)
    return tick


def _ticks_between(entry: Scheduled, after: int, until: int) -> Iterator[int]:
    tick = entry.next(after)
    while tick <= until:
        yield tick
        tick = entry.next(tick)


def _local(at: int, zone: str) -> datetime:
    return (_EPOCH + timedelta(microseconds=at)).astimezone(ZoneInfo(zone))


def _instant(found: datetime) -> int:
    return (found - _EPOCH) // timedelta(microseconds=1)


def _trigger(entry: Scheduled, tick: int, until: int | None = None) -> Trigger:
    schedule = entry.schedule
    last = parse_duration(schedule.last) if schedule.last is not None else None
    return Trigger(
        source=entry.source,
        endpoint=schedule.endpoint,
        operation=schedule.operation,
        since=None if last is None else tick - last,
        until=None if schedule.operation is Operation.UPDATE else until,
        params=dict(schedule.params),
        priority=schedule.priority,
        activity=_campaign(entry, tick) if last is None or schedule.reread else None,
        said=None if last is None or schedule.reread else (schedule.last, None),
        last=last,
        topic=entry.topic,
        kind=CRON,
        scheduler="cron",
        job=entry.job,
        log=format_instant(tick),
    )


def _campaign(entry: Scheduled, tick: int) -> str | None:
    """Each tick of a refresh is a campaign of its own, also beside others of its endpoint that fire at the same time;
    harvests have the watermark instead.
    """
    return None if entry.schedule.operation is Operation.HARVEST else f"{entry.name} {format_instant(tick)}"
