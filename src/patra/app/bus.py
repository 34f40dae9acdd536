"""Settings and common ground go in; the bus, its duties as loops and its checks come out."""

from typing import Any

from patra.app.loops import Loop
from patra.app.parts import Check, Ground, Health, Joined
from patra.app.references import resolve
from patra.bus.runtime import BusEngine, Duty
from patra.kernel.errors import PatraError


def join(ground: Ground) -> Joined:
    """Build the bus on the common ground."""
    settings = ground.settings.bus
    nats_url = resolve(settings.nats_url, "bus.nats_url") if settings.nats_url else ""
    engine = BusEngine.open(ground.db, ground.clock, settings.catalogue, nats_url=nats_url, stream=settings.nats_stream)
    return Joined(
        engine=engine,
        loops=[_loop(duty) for duty in engine.duties()],
        checks=[lambda: _check(engine)],
        release=engine.close,
    )


def group_loops(engine: BusEngine, group: str, *, workers: int = 1) -> list[Loop]:
    """The loops of a consumer group, for the part whose consumers it has."""
    return [_loop(duty) for duty in engine.group_duties(group, workers=workers)]


def bus_of(ground: Any) -> BusEngine:
    """The bus of a Patra or of its ground."""
    return ground.engine(BusEngine)


def _loop(duty: Duty) -> Loop:
    return Loop(name=f"bus.{duty.name}", run_once=duty.run_once, every=duty.every)


def _check(engine: BusEngine) -> Check:
    name = "bus"
    try:
        if engine.stream is not None:
            engine.stream.incarnation()
        broken = engine.db.read(engine.bus.evolution)
        troubles = engine.health().troubles
    except PatraError as error:
        return Check(name=name, health=Health.BROKEN, found=str(error), advice="see bus.nats_url and store.url")
    if broken:
        advice = "this process publishes no such event; see `patra bus catalogue check --store` and bus.catalogue"
        return Check(name=name, health=Health.BROKEN, found="; ".join(map(str, broken)), advice=advice)
    if troubles:
        advice = "`patra bus dead-letters` shows why; replay or discard them, or `patra bus thaw TYPE`"
        return Check(name=name, health=Health.WARNING, found="; ".join(troubles), advice=advice)
    transport = "NATS JetStream" if engine.stream is not None else "the store itself"
    return Check(name=name, health=Health.OK, found=f"{len(engine.bus.catalogue.types)} event types over {transport}")
