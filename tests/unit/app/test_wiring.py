"""A Patra is built from its parts in order, and taken down in the order in which no running work is lost."""

import threading
from pathlib import Path

import pytest

from patra.app.component import BuiltComponent, Component, Context
from patra.app.components.bus import bus_of, group_loops
from patra.app.configuration.engine_settings import AttributionSettings, BusSettings, IngestSettings
from patra.app.configuration.settings import Settings, StoreSettings
from patra.app.loops import Loop, LoopRole, select_loops
from patra.app.wiring import COMPONENTS, build
from patra.bus.consuming.consumer import Event
from patra.kernel.clock import HOUR
from patra.kernel.db import Tx
from patra.kernel.errors import MigrationMismatch, StoreUnavailable
from patra.kernel.testing import ManualClock

MEMORY = Settings(store=StoreSettings(url="sqlite:///:memory:"))


class Lower:
    pass


class Upper:
    def __init__(self, below: Lower) -> None:
        self.below = below


def test_a_part_finds_the_engines_of_the_parts_before_it() -> None:
    lower = Component(name="lower", join=lambda ground: BuiltComponent(engine=Lower()))
    upper = Component(name="upper", join=lambda ground: BuiltComponent(engine=Upper(ground.engine(Lower))))
    patra = build(MEMORY, ManualClock(), parts=(*COMPONENTS, lower, upper))
    assert patra.engine(Upper).below is patra.engine(Lower)
    patra.close(0)

    with pytest.raises(LookupError, match="Lower"):
        build(MEMORY, ManualClock(), parts=(*COMPONENTS, upper, lower))


def test_processes_of_every_role_together_run_every_loop_once() -> None:
    settings = Settings(
        store=MEMORY.store,
        bus=BusSettings(nats_url="nats://127.0.0.1:1"),
        attribution=AttributionSettings(archive="bus"),
        ingest=IngestSettings(keep_bodies=True, executors=1),
    )
    patra = build(settings, ManualClock())
    by_role = {role: [loop.name for loop in select_loops(patra.loops, (), [role])] for role in LoopRole}
    by_role[LoopRole.WORK] = [name for name in by_role[LoopRole.WORK] if not name.startswith("studio.")]
    assert by_role == {
        LoopRole.INTAKE: ["attribution.turned_away"],
        LoopRole.TIMERS: ["attribution.timer", "ingest.planner", "ingest.watch"],
        LoopRole.INDEXER: [
            "attribution.keys",
            "attribution.placements",
            "attribution.billing_tree",
            "attribution.sums_hour",
            "attribution.sums_placement",
            "attribution.index",
            "attribution.index_merge",
        ],
        LoopRole.RELAY: [
            "bus.webhooks",
            "bus.relay",
            "bus.receiver",
            "attribution.archive",
            "ingest.relay",
            "ingest.halts",
        ],
        LoopRole.WORK: ["bus.bulk_acts", "ingest.executor.1", "ingest.exports"],
        LoopRole.UPKEEP: [
            "bus.upkeep",
            "attribution.verify",
            "attribution.retention",
            "ingest.retention",
            "ingest.bodies",
        ],
    }
    patra.close(0)


def test_parts_are_warmed_and_one_that_cannot_be_keeps_nobody_from_starting() -> None:
    warmed: list[str] = []

    def cold() -> None:
        raise StoreUnavailable("store_unavailable", "not there yet")

    parts = [
        Component(name="a", join=lambda _: BuiltComponent(engine=Lower(), warm=cold)),
        Component(name="b", join=lambda _: BuiltComponent(engine=Lower(), warm=lambda: warmed.append("b"))),
    ]
    patra = build(MEMORY, ManualClock(), parts=(*COMPONENTS, *parts))
    patra.warm()
    assert warmed == ["b"]
    assert patra.readiness().ready
    patra.close(0)


def test_on_demand_a_part_is_joined_once_when_its_engine_is_asked_for_with_those_that_it_needs() -> None:
    joined: list[str] = []

    def lower(ground: Context) -> BuiltComponent:
        joined.append("lower")
        return BuiltComponent(engine=Lower(), release=lambda: joined.append("lower released"))

    def upper(ground: Context) -> BuiltComponent:
        built = BuiltComponent(engine=Upper(ground.engine(Lower)), release=lambda: joined.append("upper released"))
        joined.append("upper")
        return built

    parts = [
        Component(name=join.__name__, join=join, engine=f"{__name__}:{kind.__name__}")
        for join, kind in ((lower, Lower), (upper, Upper))
    ]
    patra = build(MEMORY, ManualClock(), parts=(*COMPONENTS, *parts), on_demand=True)
    assert joined == []
    assert patra.engine(Upper).below is patra.engine(Lower)
    assert joined == ["lower", "upper"]
    with pytest.raises(LookupError, match="Path"):
        patra.engine(Path)
    patra.close(0)
    assert joined == ["lower", "upper", "upper released", "lower released"]


def test_every_engine_is_found_on_demand_by_its_type() -> None:
    kinds = [part.engine for part in COMPONENTS if part.join]
    with_all = build(MEMORY, ManualClock())
    assert [f"{type(one).__module__}:{type(one).__qualname__}" for one in with_all.ground.engines.values()] == kinds
    with_all.close(0)


def test_shutdown_stops_intake_then_loops_then_releases_then_closes_the_store() -> None:
    order: list[str] = []

    def join(ground: Context) -> BuiltComponent:
        def release() -> None:
            ground.db.read(lambda tx: tx.server_now())  # leases are released in the store: it is still open
            order.append("release")

        def stop_intake() -> None:
            order.append(f"stop intake, loops running: {patra.supervisor.states()[0].running}")

        loop = Loop(name="x", run_once=lambda: None, every=HOUR)
        return BuiltComponent(engine=object(), loops=[loop], stop_intake=stop_intake, release=release)

    patra = build(MEMORY, ManualClock(), parts=(*COMPONENTS, Component(name="x", join=join)))
    patra.start()
    assert patra.close(30) == []

    order.append(f"loops running: {patra.supervisor.states()[0].running}")
    assert order == ["stop intake, loops running: True", "release", "loops running: False"]
    with pytest.raises(StoreUnavailable):
        patra.db.run(lambda tx: tx.server_now())
    assert patra.close(30) == []


def test_the_store_is_closed_even_when_a_release_fails() -> None:
    def fails() -> None:
        raise RuntimeError("no")

    join = BuiltComponent(engine=object(), release=fails)
    patra = build(MEMORY, ManualClock(), parts=(*COMPONENTS, Component(name="x", join=lambda ground: join)))
    with pytest.raises(RuntimeError):
        patra.close(0)
    with pytest.raises(StoreUnavailable):
        patra.db.run(lambda tx: tx.server_now())


def test_tables_are_made_at_the_start_unless_the_settings_say_no(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'x.db'}"
    waiting = build(Settings(store=StoreSettings(url=url, migrate_on_start=False)))
    assert "patra.app" in {migration.package for migration in waiting.pending()}
    assert not waiting.readiness().ready
    waiting.close(0)

    built = build(Settings(store=StoreSettings(url=url)))
    assert built.pending() == []
    assert built.readiness().ready
    built.close(0)


def test_a_process_stays_ready_when_a_newer_release_migrates_its_store() -> None:
    patra = build(MEMORY)
    row = {"package": "patra.kernel", "number": 9999, "name": "later", "checksum": "x", "applied_at": 0}
    patra.db.run(lambda tx: tx.insert("krn_migration", [row]))
    with pytest.raises(MigrationMismatch):
        patra.pending()
    assert patra.readiness().ready
    patra.close(0)


def test_a_part_that_cannot_be_joined_leaves_no_open_store(tmp_path: Path) -> None:
    grounds: list[Context] = []

    def join(ground: Context) -> BuiltComponent:
        grounds.append(ground)
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        build(MEMORY, parts=(*COMPONENTS, Component(name="x", join=join)))
    with pytest.raises(StoreUnavailable):
        grounds[0].db.run(lambda tx: tx.server_now())


def test_only_the_wanted_loops_are_started() -> None:
    loops = [Loop(name=name, run_once=lambda: None, every=HOUR) for name in ("a.one", "a.two", "b.one")]
    part = Component(name="x", join=lambda ground: BuiltComponent(engine=object(), loops=loops))
    patra = build(MEMORY, parts=(*COMPONENTS, part))
    assert [loop.name for loop in patra.start(["a"])] == ["a.one", "a.two"]
    assert [state.name for state in patra.readiness().loops] == ["a.one", "a.two"]
    patra.close(30)


def test_a_part_runs_the_consumers_that_it_brings() -> None:
    handled = threading.Event()

    def join(ground: Context) -> BuiltComponent:
        engine = bus_of(ground)

        @engine.bus.consumer("error.recorded", group="statistics")
        def _(tx: Tx, event: Event) -> None:
            tx.after_commit(handled.set)

        ground.db.run(engine.bus.join)
        return BuiltComponent(engine=object(), loops=group_loops(engine, "statistics"))

    patra = build(MEMORY, parts=(*COMPONENTS, Component(name="example", join=join)))
    try:
        assert "bus.group.statistics" in [loop.name for loop in patra.start(["bus"])]
        bus = bus_of(patra).bus
        example = dict(bus.catalogue.types["error.recorded"].contracts[1].examples[0])
        keys = {"tenant_id": "t", "project_id": "p", "trace_id": "tr", "correlation_id": "c", "idempotency_key": "k"}
        patra.db.run(lambda tx: bus.publish(tx, bus.envelope("error.recorded", example, **keys)))
        assert handled.wait(30)
    finally:
        patra.close(5)
