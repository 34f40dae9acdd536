"""Settings and common ground go in; the ingestion platform, its loops and checks come out.

A turn with nothing to do only reads: the writer's place is for work.
"""

import threading
from collections.abc import Callable

import msgspec

from patra.app import ingest_events
from patra.app.loops import Loop
from patra.app.parts import Check, Ground, Health, Joined
from patra.app.references import resolve
from patra.bus.runtime import BusEngine
from patra.ingest import running_store, shelf
from patra.ingest.course import Options
from patra.ingest.executor import Counts, Executor, Limits, Shared
from patra.ingest.gates import Gate, LocalGate
from patra.ingest.planner import Planner
from patra.ingest.rategate_redis import RedisGate
from patra.ingest.services import Services
from patra.ingest.transport import Transport
from patra.kernel import outbox
from patra.kernel.clock import SECOND
from patra.kernel.errors import ConfigInvalid


class Ingest(msgspec.Struct, frozen=True, kw_only=True):
    """The planner, and what stands around it in one process."""

    planner: Planner
    services: Services
    relay: outbox.Relay
    stopping: threading.Event


def join(ground: Ground) -> Joined:
    """Build the platform on the common ground."""
    built = Ingest(
        planner=Planner(ground.db, ground.clock),
        services=Services(clock=ground.clock, gate=_gate(ground), transport=Transport()),
        relay=ingest_events.relay(ground.db, ground.engine(BusEngine).bus),
        stopping=threading.Event(),
    )

    def sources() -> Check:
        loaded = ground.db.read(shelf.sources)
        if not loaded:
            advice = "load one with `patra ingest pack load FILE`"
            return Check(name="ingest.sources", health=Health.OFF, found="no source is loaded", advice=advice)
        names = ", ".join(row["provenance_code"] for row in loaded)
        return Check(name="ingest.sources", health=Health.OK, found=f"{len(loaded)} loaded: {names}")

    def release() -> None:
        built.services.gate.close()
        built.services.transport.close()

    return Joined(
        engine=built,
        loops=[
            Loop(name="ingest.planner", run_once=built.planner.run_once, every=5 * SECOND),
            Loop(name="ingest.relay", run_once=_relaying(ground, built), every=SECOND // 2),
            *_executors(ground, built),
        ],
        checks=[sources],
        stop_intake=built.stopping.set,
        release=release,
    )


def _gate(ground: Ground) -> Gate:
    place = "ingest.redis_url"
    url = ground.settings.ingest.redis_url
    if not url:
        return LocalGate(ground.clock)
    try:
        return RedisGate(resolve(url, place), ground.clock)
    except ValueError as error:
        advice = "write it as `redis://host:6379/0`, `rediss://…` or `unix://…`"
        raise ConfigInvalid("config_wrong_value", "it is no URL of a Redis", place=place, advice=advice) from error


def _relaying(ground: Ground, built: Ingest) -> Callable[[], outbox.Counts]:
    def turn() -> outbox.Counts:
        due = built.relay.next_due()
        return outbox.Counts() if due is None or due > ground.clock.now() else built.relay.run_once()

    return turn


def _executors(ground: Ground, built: Ingest) -> list[Loop]:
    """The executors of this process, each a loop; what they know of sources and partitions they share."""
    settings = ground.settings.ingest
    options, limits = Options(keep_bodies=settings.keep_bodies), Limits(per_partition=settings.partition_tasks)
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
        for n in range(settings.executors)
    ]
