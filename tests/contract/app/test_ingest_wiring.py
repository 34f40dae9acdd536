"""What a harvest lands is on the bus, once a record; executors and relay run as loops of the process (ingest ch. 11.1)."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from patra.app.bridges.ingest_events import EVENT_TYPE, HALTED, POLICY, publishing
from patra.app.component import BuiltComponent, Context
from patra.app.components import bus as bus_part
from patra.app.components import ingest as ingest_part
from patra.app.components.ingest import Ingest
from patra.app.configuration.engine_settings import IngestSettings
from patra.app.configuration.settings import Settings
from patra.bus import operations
from patra.bus.runtime import BusEngine
from patra.ingest.http.client import Exchange, Outgoing, Transport
from patra.ingest.landing.change_messages import CHANNEL
from patra.ingest.ratelimit.limiter import Permit
from patra.ingest.ratelimit.redis import RedisGate
from patra.kernel import outbox
from patra.kernel.clock import HOUR
from patra.kernel.db import Database, migrate, open_database
from patra.kernel.errors import ConfigInvalid
from patra.kernel.testing import ManualClock
from tests.contract.ingest.running.world import NOW, T0, T1, World, pack, world
from tests.support.hostile_provider import Habits, Reply, crowded

ITEMS = 120


class Process:
    """The bus and the ingestion platform of one process, on the store of a world; loops are turned by hand."""

    def __init__(self, w: World, settings: Settings) -> None:
        migrate(w.db, ["patra.bus"])
        self.w = w
        self.ground = Context(settings=settings, db=w.db, clock=w.clock, engines={})
        self.bus = self._joined("bus", bus_part.join(self.ground))
        self.ingest = self._joined("ingest", ingest_part.join(self.ground))
        self.engine = self.ground.engine(Ingest)
        self.loops = {loop.name: loop for loop in self.ingest.loops}

    def _joined(self, name: str, joined: BuiltComponent) -> BuiltComponent:
        self.ground.engines[name] = joined.engine
        return joined

    def turn(self, name: str) -> Any:
        return self.loops[name].run_once()

    def turns(self, name: str) -> int:
        """Turn a loop until it finds nothing to do; gives how often it did something."""
        loop, count = self.loops[name], 0
        while loop.again(loop.run_once()):
            count += 1
        return count

    def events(self) -> list[dict[str, Any]]:
        rows = self.w.rows("SELECT body FROM bus_event WHERE event_type = :type ORDER BY seq", type=EVENT_TYPE)
        return [msgspec.json.decode(body) for (body,) in rows]

    def published(self) -> dict[str, str]:
        """The records on the bus and their update times; each must be there once."""
        payloads = [event["payload"] for event in self.events()]
        counts = Counter((one["provider_id"], one["updated_at"]) for one in payloads)
        assert set(counts.values()) <= {1}
        return {one["provider_id"]: one["change"] for one in payloads}

    def waiting(self) -> int:
        """Changes of records that the bus has not heard of."""
        rows = self.w.rows("SELECT payload FROM krn_outbox WHERE channel = :channel", channel=CHANNEL)
        return sum(len(msgspec.json.decode(bytes(body))["records"]) for (body,) in rows)

    def close(self) -> None:
        for part in (self.ingest, self.bus):
            if part.release:
                part.release()


@contextmanager
def process(db: Database, habits: Habits | None = None, **settings: Any) -> Iterator[Process]:
    with world(db, crowded(ITEMS, T0, T1), habits, ManualClock(NOW)) as w:
        w.load(pack(w.url, pagination={"pageSize": 5}))
        built = Process(w, Settings(ingest=IngestSettings(**settings)))
        try:
            yield built
        finally:
            built.close()


def test_every_landed_record_is_one_event_on_the_bus_however_often_the_relay_runs(database: Database) -> None:
    with process(database) as p:
        p.w.trigger()
        p.w.drain()
        assert p.w.landed() == p.w.provider.truth
        assert p.waiting() == ITEMS

        assert p.turns("ingest.relay") >= 1
        assert p.published() == dict.fromkeys(p.w.provider.truth, "created")
        assert p.waiting() == 0

        assert p.turns("ingest.relay") == 0
        assert len(p.events()) == ITEMS
        one = p.events()[0]
        assert (one["producer"], one["tenant_id"], one["project_id"]) == ("Ingest", "patra", "hostile")
        assert one["payload"]["run_id"] == one["trace_id"]


def test_a_relay_that_dies_after_it_published_publishes_nothing_twice(database: Database) -> None:
    with process(database) as p:
        p.w.trigger()
        p.w.drain()
        publish = publishing(database, p.ground.engine(BusEngine).bus)

        def dies(messages: Sequence[outbox.Pending]) -> list[outbox.Outcome]:
            publish(messages)
            raise KeyboardInterrupt

        whole = msgspec.structs.replace(POLICY, per_group=1000)
        with pytest.raises(KeyboardInterrupt):
            outbox.Relay(database, CHANNEL, dies, whole, p.w.clock).run_once()
        first = [event["event_id"] for event in p.events()]
        assert (len(first), p.waiting()) == (ITEMS, ITEMS)

        assert p.turns("ingest.relay") == 0  # the dead one holds them still
        p.w.clock.advance(POLICY.hold + 1)
        p.turns("ingest.relay")
        assert [event["event_id"] for event in p.events()] == first
        assert p.waiting() == 0


def test_a_frozen_type_is_waited_for(database: Database) -> None:
    with process(database) as p:
        bus = p.ground.engine(BusEngine).bus
        database.run(lambda tx: operations.freeze(tx, bus, EVENT_TYPE, by="test", reason="try it"))
        p.w.trigger()
        p.w.drain()
        p.turns("ingest.relay")
        assert (p.events(), p.waiting()) == ([], ITEMS)
        assert p.w.rows("SELECT DISTINCT status FROM krn_outbox") == [("pending",)]
        assert p.w.rows("SELECT reason FROM krn_outbox ORDER BY seq LIMIT 1") == [("b_type_frozen",)]
        assert p.w.one("SELECT count(*) FROM bus_refusal") == 0

        p.w.clock.advance(HOUR)
        p.turns("ingest.relay")
        database.run(lambda tx: operations.thaw(tx, bus, EVENT_TYPE, by="test"))
        p.w.clock.advance(HOUR)
        p.turns("ingest.relay")
        assert (len(p.published()), p.waiting()) == (ITEMS, 0)


def test_what_breaks_the_contract_is_refused_and_keeps_nothing_else_waiting(database: Database) -> None:
    with process(database) as p:
        p.w.trigger()
        p.w.drain()
        bad = [outbox.Message(group="x", key="bad", payload=b"{}")]
        database.run(lambda tx: outbox.append(tx, CHANNEL, bad, p.w.clock.now()))
        p.turns("ingest.relay")
        assert len(p.published()) == ITEMS
        assert p.w.rows("SELECT message_key, status, reason FROM krn_outbox") == [
            ("bad", "refused", "b_payload_invalid")
        ]


def test_a_fatal_error_is_one_event_that_says_how_to_lift_the_halt(database: Database) -> None:
    with process(database) as p:
        p.w.provider._served = lambda *_: Reply(status=401, body=b"who are you", kind="text/plain")  # type: ignore[method-assign]
        p.w.trigger()
        p.w.drain()
        assert p.turns("ingest.halts") >= 1
        (body,) = [row[0] for row in p.w.rows("SELECT body FROM bus_event WHERE event_type = :type", type=HALTED)]
        said = msgspec.json.decode(body)["payload"]
        assert (said["provenance_code"], said["endpoint_name"], said["error_level"]) == ("hostile", "search", "L4")
        assert (said["error_code"], "401" in said["message"]) == ("i_failed_fatal", True)
        assert "`patra ingest lift hostile search`" in said["lift_advice"]


def test_the_executors_of_the_process_work_off_what_is_planned(database: Database) -> None:
    with process(database, executors=3, partition_tasks=2) as p:
        assert [name for name in p.loops if "executor" in name] == [f"ingest.executor.{n}" for n in (1, 2, 3)]
        planned = p.w.trigger()
        assert planned.slices > 1
        while sum(p.turn(f"ingest.executor.{n}").tasks for n in (1, 2, 3)):
            p.turn("ingest.planner")
        assert p.w.landed() == p.w.provider.truth
        assert p.w.tasks() == {"SUCCEEDED i_done": planned.slices}
        p.turns("ingest.relay")
        assert set(p.published()) == set(p.w.provider.truth)


class Readers(Database):
    """A store of which only readers are let in."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.dialect = db.dialect

    def read(self, work: Any) -> Any:
        return self._db.read(work)

    def run(self, work: Any, *, durable: bool = True, seconds: float | None = None) -> Any:
        raise AssertionError("an idle turn wrote")

    def close(self) -> None:
        pass


def test_idle_turns_only_read(database: Database) -> None:
    with process(database) as p:
        p.w.trigger()
        p.w.drain()
        p.turns("ingest.relay")
        ground = msgspec.structs.replace(p.ground, db=Readers(database))
        idle = ingest_part.join(ground)
        for loop in idle.loops:
            if loop.name not in {"ingest.planner", "ingest.retention"}:  # seldom ones may ask for the writer's place
                assert not loop.again(loop.run_once()), loop.name
        assert idle.release
        idle.release()


class Stopping(Transport):
    """The process is asked to stop while a request is under way."""

    def __init__(self, stop: Callable[[], None]) -> None:
        super().__init__()
        self._stop = stop

    def send(self, request: Outgoing, permit: Permit) -> Exchange:
        self._stop()
        return super().send(request, permit)


def test_a_task_in_hand_is_put_back_at_its_last_page_when_the_process_stops(database: Database) -> None:
    with process(database) as p:
        p.w.trigger()
        stop = p.ingest.stop_intake
        assert stop is not None
        p.engine.services.transport.close()
        p.engine.services.transport = Stopping(stop)
        counts = p.turn("ingest.executor.1")
        assert (counts.tasks, counts.batches, counts.deferred) == (1, 1, 1)
        assert p.turn("ingest.executor.1").tasks == 0
        assert p.w.one("SELECT count(*) FROM ing_task WHERE lease_owner IS NOT NULL") == 0
        assert p.w.tasks().get("QUEUED i_stopped") == 1

        p.w.drain()  # another process goes on
        assert p.w.landed() == p.w.provider.truth
        assert p.w.one("SELECT count(*) FROM ing_task_run_batch WHERE page_offset = 0") == p.w.one(
            "SELECT count(DISTINCT task_id) FROM ing_task_run_batch"
        )


def test_a_redis_url_makes_the_gate_a_shared_one_and_nonsense_is_named() -> None:
    db = open_database("sqlite:///:memory:")
    migrate(db, ["patra.kernel", "patra.bus", "patra.ingest"])

    def joined(url: str) -> BuiltComponent:
        settings = Settings(ingest=IngestSettings(redis_url=url))
        ground = Context(settings=settings, db=db, clock=ManualClock(NOW), engines={})
        ground.engines["bus"] = bus_part.join(ground).engine
        return ingest_part.join(ground)

    shared = joined("redis://:secret@127.0.0.1:1/0")
    assert isinstance(shared.engine.services.gate, RedisGate)
    assert shared.release
    shared.release()
    assert "secret" not in repr(IngestSettings(redis_url="redis://:secret@127.0.0.1:1/0"))
    with pytest.raises(ConfigInvalid, match="config_wrong_value"):
        joined("nonsense")
    db.close()
