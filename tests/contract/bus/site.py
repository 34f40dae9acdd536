"""A whole bus on one store and one transport, with a clock set by hand; `pump` runs everything until it is idle."""

from collections.abc import Callable
from typing import Any

from patra.bus.bus import Bus
from patra.bus.catalogue.catalogue import Catalogue
from patra.bus.dispatch.dispatcher import Counts as Step
from patra.bus.dispatch.dispatcher import Dispatcher
from patra.bus.dispatch.long_worker import LongWorker
from patra.bus.publishing.envelope import Envelope
from patra.bus.publishing.publish import Outcome
from patra.bus.transports.receiver import Receiver, Stream
from patra.bus.transports.sender import Broker, Outboxed, relay
from patra.kernel.db import Database, Tx, migrate
from patra.kernel.db.queries import statement
from patra.kernel.testing import ManualClock

TABLE = "CREATE TABLE effect (group_name TEXT NOT NULL, event_id TEXT NOT NULL, key TEXT NOT NULL, n BIGINT NOT NULL)"
EFFECT = statement(
    "effect",
    "INSERT INTO effect SELECT group_name, event_id, key, n FROM rows",
    "group_name text, event_id text, key text, n int",
)
EFFECTS = statement("effects", "SELECT event_id, key, n FROM effect WHERE group_name = :group_name")


class Site:
    def __init__(
        self, db: Database, catalogue: Catalogue, stream: Any = None, clock: ManualClock | None = None
    ) -> None:
        self.db = db
        self.clock = clock or ManualClock()
        self.stream: Broker | Stream | None = stream
        self.bus = Bus(catalogue, self.clock, Outboxed() if stream else None)
        self.fail: set[str] = set()
        self.tries: list[tuple[str, str]] = []
        self.workers: dict[str, LongWorker] = {}
        migrate(db, ["patra.kernel", "patra.bus"])

    def effects_table(self) -> None:
        self.db.run(lambda tx: tx.script(TABLE))

    def join(self) -> None:
        self.db.run(self.bus.join)

    def listen(
        self, group: str, event_type: str = "thing.happened", versions: str = ">=1", *, batch: bool = False, **more: Any
    ) -> None:
        """A group whose handler writes an effect, and fails for the keys in `fail`."""
        if batch:

            @self.bus.batch_consumer(event_type, group=group, versions=versions, **more)
            def _(tx: Tx, events: Any) -> None:
                for event in events:
                    self.handle(tx, group, event)
        else:

            @self.bus.consumer(event_type, group=group, versions=versions, **more)
            def _(tx: Tx, event: Any) -> None:
                self.handle(tx, group, event)

        self.join()

    def handle(self, tx: Tx, group: str, event: Any) -> None:
        self.tries.append((group, event.event_id))
        payload = event.payload
        n = payload.get("n", payload.get("number", 0))
        tx.insert("effect", [{"group_name": group, "event_id": event.event_id, "key": payload["key"], "n": n}])
        if payload["key"] in self.fail:
            raise ValueError(f"no luck with {payload['key']}")

    def publish(self, *envelopes: Envelope, publisher: str | None = None) -> list[Outcome]:
        return self.db.run(lambda tx: self.bus.publish_many(tx, envelopes, publisher=publisher))

    def transport(self) -> None:
        """Carry what was published to the lines of the groups."""
        if self.stream is not None:
            sending, receiving = relay(self.db, self.stream, self.clock), Receiver(self.db, self.bus, self.stream)
            while sending.run_once().groups:
                pass
            while receiving.run_once().received:
                pass

    def step(self, group: str, **more: Any) -> Step:
        return Dispatcher(self.db, self.bus, group, slow_start=False, jitter=lambda: 0.5, **more).run_once()

    def pump(self, *groups: str, **more: Any) -> dict[str, int]:
        """Everything until nothing is left to do now; gives the sums of the steps' counts."""
        sums: dict[str, int] = {}
        self.transport()
        for group in groups or self.bus.groups():
            while (counts := self.step(group, **more)).busy:
                for name in counts.__struct_fields__:
                    sums[name] = sums.get(name, 0) + getattr(counts, name)
        return sums

    def effects(self, group: str) -> list[tuple[str, str, int]]:
        return self.db.read(lambda tx: tx.fetch(EFFECTS, {"group_name": group}))

    def run(self, work: Callable[..., Any], *args: Any, **more: Any) -> Any:
        """An operation of the bus in one transaction."""
        return self.db.run(lambda tx: work(tx, self.bus, *args, **more))
