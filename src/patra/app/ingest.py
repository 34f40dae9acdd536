"""Settings and common ground go in; the ingestion platform, its loops and checks come out.

A turn with nothing to do only reads: the writer's place is for work.
"""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from patra.app import ingest_alerts, ingest_events
from patra.app.loops import Loop
from patra.app.parts import Check, Ground, Health, Joined
from patra.app.references import resolve
from patra.app.settings import Settings
from patra.bus.runtime import BusEngine
from patra.ingest import running_store, shelf
from patra.ingest.alerts import Thresholds
from patra.ingest.course import Options
from patra.ingest.executor import Counts, Executor, Limits, Shared
from patra.ingest.gates import Gate, LocalGate
from patra.ingest.planner import Planner
from patra.ingest.rategate_redis import RedisGate
from patra.ingest.retention import Keep, Purged, Retention, into_files, purge_bodies, purge_once
from patra.ingest.services import Services
from patra.ingest.store import RateMemory
from patra.ingest.transport import Transport
from patra.ingest.watch import Watch, alerts
from patra.kernel import outbox
from patra.kernel.clock import DAY, MINUTE, SECOND
from patra.kernel.db import Database
from patra.kernel.errors import ConfigInvalid


class Ingest(msgspec.Struct, frozen=True, kw_only=True):
    """The planner, and what stands around it in one process."""

    planner: Planner
    services: Services
    relays: dict[str, outbox.Relay]
    stopping: threading.Event


def join(ground: Ground) -> Joined:
    """Build the platform on the common ground."""
    built = Ingest(
        planner=Planner(ground.db, ground.clock),
        services=Services(clock=ground.clock, gate=_gate(ground), transport=Transport()),
        relays=ingest_events.relays(ground.db, ground.engine(BusEngine).bus),
        stopping=threading.Event(),
    )

    def sources() -> Check:
        loaded = ground.db.read(shelf.sources)
        if not loaded:
            advice = "load one with `patra ingest pack load FILE`"
            return Check(name="ingest.sources", health=Health.OFF, found="no source is loaded", advice=advice)
        names = ", ".join(row["provenance_code"] for row in loaded)
        return Check(name="ingest.sources", health=Health.OK, found=f"{len(loaded)} loaded: {names}")

    def fires() -> Check:
        firing = [one for one in alerts(ground.db, ground.clock.now()) if one["state"] == "FIRING"]
        if not firing:
            return Check(name="ingest.alerts", health=Health.OK, found="no alert fires")
        found = ", ".join(f"{one['alert']} {one['subject']}" for one in firing)
        advice = "`patra ingest alerts` says what to do"
        return Check(name="ingest.alerts", health=Health.WARNING, found=f"{len(firing)} fire: {found}", advice=advice)

    def release() -> None:
        built.services.gate.close()
        built.services.transport.close()

    return Joined(
        engine=built,
        loops=[
            Loop(name="ingest.planner", run_once=built.planner.run_once, every=5 * SECOND),
            *_telling(ground, built.relays, SECOND // 2),
            *_executors(ground, built),
            *_keeping(ground),
            *_watching(ground),
        ],
        checks=[sources, fires],
        stop_intake=built.stopping.set,
        release=release,
    )


def _gate(ground: Ground) -> Gate:
    place = "ingest.redis_url"
    url = ground.settings.ingest.redis_url
    if not url:
        return LocalGate(ground.clock, RateMemory(ground.db))
    try:
        return RedisGate(resolve(url, place), ground.clock)
    except ValueError as error:
        advice = "write it as `redis://host:6379/0`, `rediss://…` or `unix://…`"
        raise ConfigInvalid("config_wrong_value", "it is no URL of a Redis", place=place, advice=advice) from error


def _telling(ground: Ground, relays: Mapping[str, outbox.Relay], every: int) -> list[Loop]:
    return [Loop(name=name, run_once=_relaying(ground, relay), every=every) for name, relay in relays.items()]


def _relaying(ground: Ground, relay: outbox.Relay) -> Callable[[], outbox.Counts]:
    def turn() -> outbox.Counts:
        due = relay.next_due()
        return outbox.Counts() if due is None or due > ground.clock.now() else relay.run_once()

    return turn


def options_of(settings: Settings, db: Database) -> Options:
    """What the settings say about runs."""
    clock = settings.ingest.server_clock
    shared = clock == "on" or (clock == "auto" and db.dialect == "postgres")
    return Options(keep_bodies=settings.ingest.keep_bodies, server_clock=shared)


def limits_of(settings: Settings) -> Limits:
    return Limits(per_partition=settings.ingest.partition_tasks)


def retention_of(settings: Settings) -> tuple[Retention, Keep | None]:
    """What is kept for how long, and where purged history goes."""
    said = settings.ingest
    retention = Retention(
        history=said.keep_history_days * DAY or None,
        records=said.keep_records_days * DAY or None,
        bodies=said.keep_bodies_mb * 1_000_000,
    )
    return retention, into_files(Path(said.history_folder)) if said.history_folder else None


def _keeping(ground: Ground) -> list[Loop]:
    """What is past its time goes; kept bodies are looked at more often, since they may come fast."""
    retention, keep = retention_of(ground.settings)

    def purge() -> Purged:
        return purge_once(ground.db, ground.clock.now(), retention, keep=keep)

    def bodies() -> int:
        return purge_bodies(ground.db, ground.clock.now(), retention)

    loops = [Loop(name="ingest.retention", run_once=purge, every=10 * MINUTE)]
    if ground.settings.ingest.keep_bodies:
        loops.append(Loop(name="ingest.bodies", run_once=bodies, every=10 * SECOND))
    return loops


def _watching(ground: Ground) -> list[Loop]:
    """The watch, and a relay for every way of telling."""
    said = ground.settings.alerts
    every = int(said.every_seconds * SECOND)
    thresholds = Thresholds(cursor_lag=said.cursor_lag_seconds * SECOND, sample=every)
    watch = Watch(ground.db, ground.clock, thresholds=thresholds, channels=ingest_alerts.channels(said))
    return [
        Loop(name="ingest.watch", run_once=watch.run_once, every=every, again=lambda _: False),
        *_telling(ground, ingest_alerts.relays(ground), SECOND),
    ]


def _executors(ground: Ground, built: Ingest) -> list[Loop]:
    """The executors of this process, each a loop; what they know of sources and partitions they share."""
    options, limits = options_of(ground.settings, ground.db), limits_of(ground.settings)
    shared = Shared()

    def working(executor: Executor) -> Callable[[], Counts]:
        def turn() -> Counts:
            now = ground.clock.now()
            if built.stopping.is_set() or not ground.db.read(lambda tx: running_store.waiting(tx, now)):
                return Counts()
            return executor.run_once()

        return turn

    return [
        Loop(
            name=f"ingest.executor.{n + 1}",
            run_once=working(
                Executor(
                    ground.db, built.services, options=options, limits=limits, stopping=built.stopping, shared=shared
                )
            ),
            every=SECOND,
        )
        for n in range(ground.settings.ingest.executors)
    ]
