"""Turns settings and common ground into the ingestion platform, its loops and checks.

A turn with nothing to do only reads: the writer's place is for work.
"""

import threading
from collections.abc import Callable, Mapping, Sequence

import msgspec

from patra.app.bridges import ingest_alerts, ingest_events
from patra.app.bridges.bus_alerts import bus_readings
from patra.app.bridges.outbox_alerts import outbox_readings
from patra.app.component import BuiltComponent, Check, Context, Health
from patra.app.configuration.egress_networks import networks
from patra.app.configuration.secrets import resolve
from patra.app.configuration.settings import Settings
from patra.app.loops import Loop, LoopRole
from patra.bus.runtime import BusEngine
from patra.ingest.execution.compiled_plan import Options
from patra.ingest.execution.executor import Counts, Executor, Limits, Shared
from patra.ingest.execution.run_to_completion import Drain
from patra.ingest.fetching import resilience
from patra.ingest.fetching.runtime import Runtime
from patra.ingest.http.client import Transport
from patra.ingest.landing import store
from patra.ingest.landing.window_ledger import incomplete
from patra.ingest.operations.alerting.alerts import Reading, Thresholds
from patra.ingest.operations.alerting.last_check import late_check_text
from patra.ingest.operations.alerting.monitor import Watch, alerts
from patra.ingest.operations.history_place import HistoryPlace, history_place
from patra.ingest.operations.retention import Keep, Purged, Retention, into_files, purge_bodies, purge_once
from patra.ingest.packs import registry
from patra.ingest.planning.planner import Planner
from patra.ingest.planning.snapshot_cache import SnapshotCache
from patra.ingest.ratelimit.database import DatabaseGate
from patra.ingest.ratelimit.limiter import Gate, LocalGate
from patra.ingest.ratelimit.quota_store import RateMemory
from patra.ingest.ratelimit.redis import RedisGate
from patra.ingest.works.scheduled_export import ScheduledExports
from patra.kernel import outbox
from patra.kernel.clock import DAY, MINUTE, SECOND
from patra.kernel.db import Database, Tx
from patra.kernel.errors import ConfigInvalid, Invalid, count_phrase


class Ingest(msgspec.Struct, frozen=True, kw_only=True):
    """The planner, and what stands around it in one process."""

    planner: Planner
    services: Runtime
    relays: dict[str, outbox.Relay]
    stopping: threading.Event


def join(ground: Context) -> BuiltComponent:
    """Build the platform on the common ground."""
    built = Ingest(
        planner=planner_of(ground),
        services=Runtime(
            clock=ground.clock,
            gate=_gate(ground),
            transport=Transport(networks=networks(ground.settings)),
            thresholds=healing_of(ground.settings),
        ),
        relays=ingest_events.relays(ground.db, ground.engine(BusEngine).bus),
        stopping=threading.Event(),
    )

    def sources() -> Check:
        loaded = ground.db.read(registry.sources)
        if not loaded:
            advice = "load one with `patra ingest pack load FILE`"
            return Check(name="ingest.sources", health=Health.OFF, found="no source is loaded", advice=advice)
        names = ", ".join(row["provenance_code"] for row in loaded)
        return Check(name="ingest.sources", health=Health.OK, found=f"{len(loaded)} loaded: {names}")

    def fires() -> Check:
        now, every = ground.clock.now(), int(ground.settings.alerts.every_seconds * SECOND)
        firing = [one for one in alerts(ground.db, now) if one["state"] == "FIRING"]
        if not firing:
            return Check(name="alerts", health=Health.OK, found="no alert fires")
        found = ", ".join(f"{one['alert']} {one['subject']}" for one in firing)
        advice = "`patra alerts` says what to do"
        if late := late_check_text(firing, now, every):
            found += f"; {late}"
            advice += "; `patra up` or `patra work` checks again"
        return Check(
            name="alerts",
            health=Health.WARNING,
            found=f"{count_phrase(len(firing), 'alert')} firing: {found}",
            advice=advice,
        )

    def gate() -> Check:
        return Check(name="ingest.rate_gate", health=Health.OK, found=gate_in_force(built.services.gate))

    def adds_up() -> Check:
        open_ = ground.db.read(incomplete)
        if not open_:
            return Check(name="ingest.completeness", health=Health.OK, found="every window that was read adds up")
        names = ", ".join(sorted({f"{one.source}/{one.endpoint}" for one in open_}))
        missing = sum(one.missing for one in open_)
        return Check(
            name="ingest.completeness",
            health=Health.WARNING,
            found=f"{len(open_)} windows do not add up, {missing} records or more are missing: {names}",
            advice="`patra ingest errors SOURCE` says what is missing; fix the pack and run the same again",
        )

    def release() -> None:
        built.services.gate.close()
        built.services.transport.close()

    return BuiltComponent(
        engine=built,
        loops=[
            Loop(name="ingest.planner", run_once=built.planner.run_once, every=5 * SECOND, role=LoopRole.TIMERS),
            *_telling(ground, built.relays, SECOND // 2),
            *_executors(ground, built),
            Loop(name="ingest.exports", run_once=ScheduledExports(ground.db, ground.clock).run_once, every=5 * SECOND),
            *_keeping(ground),
            *_watching(ground),
        ],
        checks=[sources, fires, adds_up, gate],
        stop_intake=built.stopping.set,
        release=release,
    )


def gate_in_force(gate: Gate) -> str:
    """Which gate keeps the rates, for the doctor and the log."""
    match gate:
        case RedisGate():
            return "in Redis: all processes share one rate"
        case DatabaseGate():
            return "in the database: all processes on it share one rate"
        case _:
            return "in this process: run no other executor beside it"


def planner_of(ground: Context) -> Planner:
    snapshots = SnapshotCache() if ground.settings.ingest.cache_snapshots else None
    return Planner(ground.db, ground.clock, snapshots=snapshots)


def _gate(ground: Context) -> Gate:
    place = "ingest.redis_url"
    url = ground.settings.ingest.redis_url
    if not url and ground.db.dialect == "postgres":
        return DatabaseGate(ground.db, RateMemory(ground.db))
    if not url:
        return LocalGate(ground.clock, RateMemory(ground.db))
    try:
        return RedisGate(resolve(url, place), ground.clock)
    except ValueError as error:
        advice = "write it as `redis://host:6379/0`, `rediss://…` or `unix://…`"
        raise ConfigInvalid("config_wrong_value", "it is not a URL of a Redis", place=place, advice=advice) from error


def _telling(ground: Context, relays: Mapping[str, outbox.Relay], every: int) -> list[Loop]:
    return [
        Loop(name=name, run_once=_relaying(ground, relay), every=every, role=LoopRole.RELAY)
        for name, relay in relays.items()
    ]


def _relaying(ground: Context, relay: outbox.Relay) -> Callable[[], outbox.Counts]:
    def turn() -> outbox.Counts:
        due = relay.next_due()
        return outbox.Counts() if due is None or due > ground.clock.now() else relay.run_once()

    return turn


def options_of(settings: Settings, db: Database) -> Options:
    """What the settings say about runs."""
    clock = settings.ingest.server_clock
    shared = clock == "on" or (clock == "auto" and db.dialect == "postgres")
    ttl = int(settings.ingest.lease_seconds * SECOND)
    return Options(ttl=ttl, keep_bodies=settings.ingest.keep_bodies, server_clock=shared)


def healing_of(settings: Settings) -> resilience.Thresholds:
    """When a partition counts as unwell."""
    said = settings.healing
    return resilience.Thresholds(
        throttled=round(said.throttled_percent * 10),
        refused=round(said.refused_percent * 10),
        fewest=said.min_requests,
        latency=said.slow_batch_ms * 1000,
        database=said.slow_database_ms * 1000,
        depth=said.deeper_factor,
        failures=said.circuit_failures,
        circuit=int(said.circuit_seconds * SECOND),
    )


def alert_thresholds_of(settings: Settings) -> Thresholds:
    """When an alert fires."""
    said = settings.alerts
    return Thresholds(
        cursor_lag=said.cursor_lag_seconds * SECOND,
        failing_runs=said.failing_runs,
        errors=round(said.errors_percent * 10),
        throttled=round(said.throttled_percent * 10),
        budget=round(said.budget_percent * 10),
        plan_idle=said.plan_idle_seconds * SECOND,
        sample=int(said.every_seconds * SECOND),
    )


def run_of(ground: Context, *, executors: int = 2, patience: int = 15 * MINUTE) -> Drain:
    """A run as this installation has it: with its rate gate, its options and its limits."""
    return Drain(
        ground.db,
        ground.engine(Ingest).services,
        options=options_of(ground.settings, ground.db),
        limits=limits_of(ground.settings),
        executors=executors,
        patience=patience,
    )


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
    place = history_of(settings)
    return retention, None if place is None else into_files(place)


def history_of(settings: Settings) -> HistoryPlace | None:
    """Where purged history lies; None where it is deleted."""
    url = settings.ingest.history_url
    return history_place(settings.ingest.history_folder, resolve(url, "ingest.history_url") if url else "")


def kept_history(settings: Settings) -> HistoryPlace:
    """The same; raises Invalid where there is none."""
    place = history_of(settings)
    if place is None:
        raise Invalid(
            "i_history_missing", "history is deleted here: `ingest.history_folder` and `ingest.history_url` are empty"
        )
    return place


def _keeping(ground: Context) -> list[Loop]:
    """What is past its time goes; kept bodies are looked at more often, since they may come fast."""
    retention, keep = retention_of(ground.settings)

    def purge() -> Purged:
        return purge_once(ground.db, ground.clock.now(), retention, keep=keep)

    def bodies() -> int:
        return purge_bodies(ground.db, ground.clock.now(), retention)

    loops = [Loop(name="ingest.retention", run_once=purge, every=10 * MINUTE, role=LoopRole.UPKEEP)]
    if ground.settings.ingest.keep_bodies:
        loops.append(Loop(name="ingest.bodies", run_once=bodies, every=10 * SECOND, role=LoopRole.UPKEEP))
    return loops


def handed_in_of(settings: Settings) -> Callable[[Tx, int], Mapping[str, Sequence[Reading]]]:
    """What the watch is given of the bus and of the outbox."""
    bus = bus_readings(int(settings.bus.lag_warning_seconds * SECOND))
    messages = outbox_readings(settings.alerts.undelivered_seconds * SECOND)
    return lambda tx, now: {**bus(tx, now), **messages(tx, now)}


def _watching(ground: Context) -> list[Loop]:
    """The alert monitor, and one relay per notification channel."""
    said = ground.settings.alerts
    every = int(said.every_seconds * SECOND)
    thresholds = alert_thresholds_of(ground.settings)
    watch = Watch(
        ground.db,
        ground.clock,
        thresholds=thresholds,
        channels=ingest_alerts.channels(said),
        handed_in=handed_in_of(ground.settings),
    )
    return [
        Loop(name="ingest.watch", run_once=watch.run_once, every=every, again=lambda _: False, role=LoopRole.TIMERS),
        *_telling(ground, ingest_alerts.relays(ground), SECOND),
    ]


def _executors(ground: Context, built: Ingest) -> list[Loop]:
    """The executors of this process, each a loop; what they know of sources and partitions they share."""
    options, limits = options_of(ground.settings, ground.db), limits_of(ground.settings)
    shared = Shared()

    def working(executor: Executor) -> Callable[[], Counts]:
        def turn() -> Counts:
            now = ground.clock.now()
            if built.stopping.is_set() or not ground.db.read(lambda tx: store.waiting(tx, now)):
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
