"""A Patra is built from its parts in order, and taken down in the order in which nothing in hand is lost."""

import threading
from pathlib import Path

import pytest

from patra.app.bus import bus_of, group_loops
from patra.app.loops import Loop
from patra.app.parts import Ground, Joined, Part
from patra.app.settings import Settings, StoreSettings
from patra.app.wiring import PARTS, build
from patra.bus.consumer import Event
from patra.kernel.clock import HOUR
from patra.kernel.db import Tx
from patra.kernel.errors import StoreUnavailable
from patra.kernel.testing import ManualClock

MEMORY = Settings(store=StoreSettings(url="sqlite:///:memory:"))


class Lower:
    pass


class Upper:
    def __init__(self, below: Lower) -> None:
        self.below = below


def test_a_part_finds_the_engines_of_the_parts_before_it() -> None:
    lower = Part(name="lower", join=lambda ground: Joined(engine=Lower()))
    upper = Part(name="upper", join=lambda ground: Joined(engine=Upper(ground.engine(Lower))))
    patra = build(MEMORY, ManualClock(), parts=(*PARTS, lower, upper))
    assert patra.engine(Upper).below is patra.engine(Lower)
    patra.close(0)

    with pytest.raises(LookupError, match="Lower"):
        build(MEMORY, ManualClock(), parts=(*PARTS, upper, lower))


def test_shutdown_stops_intake_then_loops_then_releases_then_closes_the_store() -> None:
    order: list[str] = []

    def join(ground: Ground) -> Joined:
        def release() -> None:
            ground.db.read(lambda tx: tx.server_now())  # leases are released in the store: it is still open
            order.append("release")

        def stop_intake() -> None:
            order.append(f"stop intake, loops running: {patra.supervisor.states()[0].running}")

        loop = Loop(name="x", run_once=lambda: None, every=HOUR)
        return Joined(engine=object(), loops=[loop], stop_intake=stop_intake, release=release)

    patra = build(MEMORY, ManualClock(), parts=(*PARTS, Part(name="x", join=join)))
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

    join = Joined(engine=object(), release=fails)
    patra = build(MEMORY, ManualClock(), parts=(*PARTS, Part(name="x", join=lambda ground: join)))
    with pytest.raises(RuntimeError):
        patra.close(0)
    with pytest.raises(StoreUnavailable):
        patra.db.run(lambda tx: tx.server_now())


def test_tables_are_made_at_the_start_unless_the_settings_say_no(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'x.db'}"
    waiting = build(Settings(store=StoreSettings(url=url, migrate_on_start=False)))
    assert [migration.package for migration in waiting.pending()].count("patra.app") == 1
    assert not waiting.readiness().ready
    waiting.close(0)

    built = build(Settings(store=StoreSettings(url=url)))
    assert built.pending() == []
    assert built.readiness().ready
    built.close(0)


def test_a_part_that_cannot_be_joined_leaves_no_open_store(tmp_path: Path) -> None:
    grounds: list[Ground] = []

    def join(ground: Ground) -> Joined:
        grounds.append(ground)
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        build(MEMORY, parts=(*PARTS, Part(name="x", join=join)))
    with pytest.raises(StoreUnavailable):
        grounds[0].db.run(lambda tx: tx.server_now())


def test_only_the_wanted_loops_are_started() -> None:
    loops = [Loop(name=name, run_once=lambda: None, every=HOUR) for name in ("a.one", "a.two", "b.one")]
    part = Part(name="x", join=lambda ground: Joined(engine=object(), loops=loops))
    patra = build(MEMORY, parts=(*PARTS, part))
    assert [loop.name for loop in patra.start(["a"])] == ["a.one", "a.two"]
    assert [state.name for state in patra.readiness().loops] == ["a.one", "a.two"]
    patra.close(30)


def test_a_part_runs_the_consumers_that_it_brings() -> None:
    handled = threading.Event()

    def join(ground: Ground) -> Joined:
        engine = bus_of(ground)

        @engine.bus.consumer("error.recorded", group="statistics")
        def _(tx: Tx, event: Event) -> None:
            tx.after_commit(handled.set)

        ground.db.run(engine.bus.join)
        return Joined(engine=object(), loops=group_loops(engine, "statistics"))

    patra = build(MEMORY, parts=(*PARTS, Part(name="example", join=join)))
    try:
        assert "bus.group.statistics" in [loop.name for loop in patra.start(["bus"])]
        bus = bus_of(patra).bus
        example = dict(bus.catalogue.types["error.recorded"].contracts[1].examples[0])
        keys = {"tenant_id": "t", "project_id": "p", "trace_id": "tr", "correlation_id": "c", "idempotency_key": "k"}
        patra.db.run(lambda tx: bus.publish(tx, bus.envelope("error.recorded", example, **keys)))
        assert handled.wait(30)
    finally:
        patra.close(5)
