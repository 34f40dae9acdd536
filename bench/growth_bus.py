"""The spots of the bus: publishing, consuming, replaying and emptying on a long log, and what is counted of a group.

The older half of the log is handled and past its retention; the younger half waits for a group, in order per key.
"""

import msgspec

from bench.bus import GROUP, envelope, prepared
from bench.growth_spot import Spot
from bench.reads_fill import BUS_KIND as KIND
from bench.reads_fill import fill_bus
from patra.bus import operations
from patra.bus.consuming.dead_letter import letter_id
from patra.bus.dispatch.dispatcher import Dispatcher
from patra.bus.runtime import PURGE_BATCH_SIZE
from patra.bus.store import dead_letters, events, groups
from patra.kernel.clock import DAY, SystemClock
from patra.kernel.db import Database, Tx
from patra.kernel.db.queries import statement

REPLAYED = "replayed"
"""The group that handles only what is replayed to it."""
STEP_EVENTS = 1_000
PAST_RETENTION = 4_000 * DAY
OLD = statement(
    "old", "SELECT seq, event_id, order_key, body FROM bus_event WHERE seq > :after ORDER BY seq LIMIT :limit"
)


class BusGrowth:
    def __init__(self, db: Database) -> None:
        self.db = db
        self.bus = prepared(db, KIND)
        self.mark = events.PurgeMark()
        self.replayed_to = 0

    def fill(self, rows: int) -> None:
        now = SystemClock().now() - DAY
        fill_bus(self.db, self.bus, rows, past=now - PAST_RETENTION, now=now)
        self.bus.batch_consumer(KIND, group=REPLAYED)(lambda _tx, _events: None)
        self.db.run(self.bus.join)

    def spots(self, rows: int) -> list[Spot]:
        del rows
        return [
            Spot("publish", "event", self._publish),
            Spot("consume, in order per key", "event", self._consume),
            Spot("replay, handled", "event", self._replay, self._ask_for_replay),
            Spot("retention", "body", self._purge),
            Spot("totals of the groups", "answer", self._totals),
        ]

    def _publish(self) -> int:
        made = [envelope(self.bus, KIND) for _ in range(STEP_EVENTS)]
        self.db.run(lambda tx: self.bus.publish_many(tx, made))
        return STEP_EVENTS

    def _consume(self) -> int:
        return self._dispatcher(GROUP).run_once().handled

    def _dispatcher(self, group: str) -> Dispatcher:
        return Dispatcher(self.db, self.bus, group, batch=STEP_EVENTS, slow_start=False)

    def _ask_for_replay(self) -> None:
        """Dead letters of events that were handled long ago, replayed to a group that has nothing else to do."""
        dispatcher = self._dispatcher(REPLAYED)
        while dispatcher.run_once().busy:
            pass
        self.db.run(self._bury)

    def _bury(self, tx: Tx) -> None:
        found = tx.fetch(OLD, {"after": self.replayed_to, "limit": STEP_EVENTS})
        group = groups.find(tx, REPLAYED)
        assert group is not None
        self.replayed_to = found[-1][0] if found else self.replayed_to
        now = SystemClock().now()
        letters = [
            dead_letters.NewDeadLetter(
                letter_id=letter_id(REPLAYED, event_id),
                group_id=group.group_id,
                group_name=REPLAYED,
                seq=seq,
                order_key=None if order_key is None else bytes(order_key),
                event_id=event_id,
                event_type=KIND,
                event_version="1.0",
                producer="p",
                tenant_id="t",
                trace_id="t",
                correlation_id="c",
                error_code="b_handler_failed",
                error_detail="",
                reason="b_handler_failed",
                attempts=1,
                first_failed_at=now,
                last_failed_at=now,
                envelope=body,
                traceback="",
                error_shape="",
            )
            for seq, event_id, order_key, body in found
        ]
        dead_letters.write(tx, letters)
        ids = [one.event_id for one in letters]
        done = operations.replay(tx, self.bus, REPLAYED, ids, by="bench", confirm=REPLAYED)
        assert isinstance(done, operations.Done), msgspec.json.encode(done)

    def _replay(self) -> int:
        return self._dispatcher(REPLAYED).run_once().handled

    def _purge(self) -> int:
        before = SystemClock().now() - PAST_RETENTION // 2
        page = self.db.run(
            lambda tx: events.purge_bodies(tx, KIND, before=before, limit=PURGE_BATCH_SIZE, after=self.mark)
        )
        self.mark = page.last
        return page.emptied

    def _totals(self) -> int:
        self.db.read(groups.totals)
        return 1
