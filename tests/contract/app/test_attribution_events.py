"""The bus as an archive of attribution: each record one event that keeps its contract, in the order of §3.8.29."""

import msgspec

from patra.app.bridges.attribution_events import EVENT_TYPE, BusArchive
from patra.app.component import Context
from patra.app.components import attribution as attribution_part
from patra.app.components import bus as bus_part
from patra.app.components.attribution import Attribution
from patra.app.configuration.engine_settings import AttributionSettings
from patra.app.configuration.settings import Settings
from patra.attribution.contract.reasons import Reason
from patra.attribution.decision.output_records import in_write_order
from patra.attribution.delivery.port import Rejected, Retry, Written
from patra.attribution.storage.read import every_decision
from patra.attribution.writer import Overloaded
from patra.bus import operations
from patra.bus.bus import Bus
from patra.bus.catalogue.catalogue import load
from patra.kernel.db import Database, migrate
from patra.kernel.db.queries import statement
from patra.kernel.testing import ManualClock
from tests.contract.attribution.test_archives import some_records
from tests.unit.attribution.said import T0, envelope, event

EVENTS = statement("emitted", "SELECT body FROM bus_event WHERE event_type = :type ORDER BY seq")
PACKAGES = ["patra.kernel", "patra.app", "patra.bus", "patra.attribution"]


def emitted(db: Database) -> list[dict]:
    return [msgspec.json.decode(body) for (body,) in db.read(lambda tx: tx.fetch(EVENTS, {"type": EVENT_TYPE}))]


def test_a_record_is_one_event_however_often_it_is_handed_over(database: Database):
    migrate(database, PACKAGES)
    archive = BusArchive(database, Bus(load(), ManualClock()))
    records = some_records()
    assert archive.write(records[:2]) == [Written()] * 2
    assert archive.write(records) == [Written()] * len(records)
    told = emitted(database)
    assert [one["payload"]["recordKey"] for one in told] == [record.key for record in records]
    assert [one["payload"]["payload"] for one in told] == [record.payload for record in records]
    assert {one["producer"] for one in told} == {"Attribution"}


def test_another_payload_under_the_same_key_is_refused_and_a_frozen_type_is_waited_for(database: Database):
    migrate(database, PACKAGES)
    bus = Bus(load(), ManualClock())
    archive = BusArchive(database, bus)
    record = some_records()[0]
    archive.write([record])
    assert archive.write([record._replace(payload={"other": 1})]) == [Rejected("b_idempotency_conflict")]
    database.run(lambda tx: operations.freeze(tx, bus, EVENT_TYPE, by="test", reason="try it"))
    assert archive.write([record]) == [Retry(Reason.ARCHIVE_UNAVAILABLE)]


def test_with_the_bus_as_archive_a_process_publishes_what_it_decides(database: Database):
    migrate(database, PACKAGES)
    clock = ManualClock(T0)
    settings = Settings(attribution=AttributionSettings(archive="bus"))
    ground = Context(settings=settings, db=database, clock=clock, engines={})
    bus = bus_part.join(ground)
    ground.engines["bus"] = bus.engine
    joined = attribution_part.join(ground)
    ground.engines["attribution"] = joined.engine
    body = msgspec.json.encode(envelope(event("ad_filled"), event("impression")))
    taken = ground.engine(Attribution).engine.submit(body, T0)
    assert not isinstance(taken, Overloaded)
    taken.result()
    loop = next(loop for loop in joined.loops if loop.name == "attribution.archive")
    while loop.again(loop.run_once()):
        pass
    expected = in_write_order([record for one in every_decision(database) for record in one.records])
    told = emitted(database)
    assert sorted(one["payload"]["recordKey"] for one in told) == sorted(record.key for record in expected)
    assert {one["payload"]["recordStatus"] for one in told} == {"committed"}
    for part in (joined, bus):
        if part.release:
            part.release()
