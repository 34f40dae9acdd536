"""Processes of two versions share a store while a new major rolls out; all are killed with -9: no event misses a group.

A process draws its version when it starts: at first mostly the old one, whose catalogue has 1.0 only, later mostly the
new one, whose catalogue has 1.0 and 2.0 and which publishes both. The first new process subscribes a group that reads
2.0 only; from that transaction on it must get every event. A publisher that is refused for being behind draws again, as
if it were upgraded. All the while the stage of 2.0 is moved back and forth. Over NATS the receivers are of
both versions too, so that old ones read what they do not know. No handler gets a version that its process does not know.
"""

import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from patra.bus import operations
from patra.bus.bus import Bus
from patra.bus.catalogue.reasons import NOT_ADOPTED
from patra.bus.consuming.consumer import Poison
from patra.bus.consuming.version_stages import Stage
from patra.bus.dispatch.dispatcher import Dispatcher
from patra.bus.publishing.envelope import Refused
from patra.bus.publishing.publish import Published
from patra.bus.store import events, groups, held_messages
from patra.bus.transports.nats import NatsStream
from patra.bus.transports.receiver import Receiver
from patra.bus.transports.sender import Outboxed, relay
from patra.kernel.clock import SystemClock
from patra.kernel.db import Tx, migrate, open_database
from patra.kernel.db.queries import statement
from patra.kernel.errors import ConfigInvalid, Transient
from tests import services
from tests.prove.bus_exactly_once import restarting_nats
from tests.prove.crew import Crew, Life
from tests.unit.bus.making import THING_2, catalogue, envelope, event_type, version

MODULE = "tests.prove.bus_rolling_upgrade"
TYPE = "thing.happened"
OLD = catalogue(event_type())
NEW = catalogue(event_type(versions=[version("1.0", status="retiring"), version("2.0", THING_2)]))
READERS = {"first_only": ">=1,<2", "both": ">=1", "second_only": ">=2"}
TABLES = (
    "CREATE TABLE prf_effect (group_name TEXT NOT NULL, event_id TEXT NOT NULL)",
    "CREATE TABLE prf_place (publisher BIGINT PRIMARY KEY, reached BIGINT NOT NULL)",
    "CREATE TABLE prf_joined (only_row BIGINT PRIMARY KEY, seq BIGINT NOT NULL)",
)
PLACES = statement("places", "SELECT COALESCE(sum(reached), 0) FROM prf_place")
PLACE = statement("place", "SELECT reached FROM prf_place WHERE publisher = :publisher")
REACHED = statement(
    "reached",
    "INSERT INTO prf_place (publisher, reached) VALUES (:publisher, :reached) "
    "ON CONFLICT (publisher) DO UPDATE SET reached = excluded.reached WHERE prf_place.reached < excluded.reached",
)
JOINED = statement("joined", "INSERT INTO prf_joined (only_row, seq) VALUES (1, :seq) ON CONFLICT DO NOTHING")
JOINED_AT = statement("joined_at", "SELECT seq FROM prf_joined")
COUNTS = statement(
    "counts", "SELECT group_name, count(*), count(DISTINCT event_id) FROM prf_effect GROUP BY group_name"
)
MISSED = statement(
    "missed",
    "SELECT count(DISTINCT e.event_id) FROM bus_event e WHERE e.seq > :seq AND NOT EXISTS "
    "(SELECT 1 FROM prf_effect x WHERE x.group_name = 'second_only' AND x.event_id = e.event_id)",
)
AFTER = statement("after_join", "SELECT count(DISTINCT event_id) FROM bus_event WHERE seq > :seq")


def main() -> str:
    figures: list[str] = []
    full = {"events_": 20_000, "publishers": 6, "consumers": 4, "every": 0.4, "at_least": 30}
    with services.postgres(durable=True) as url:
        figures.append("PostgreSQL " + prove(url, **full))
    with services.postgres(durable=True) as url, restarting_nats() as nats_url:
        figures.append("PostgreSQL and NATS " + prove(url, nats_url, **full))
    with tempfile.TemporaryDirectory() as folder:
        figures.append("SQLite " + prove(f"sqlite:///{Path(folder) / 'patra.db'}", **full))
    return "; ".join(figures)


def prove(
    url: str,
    nats_url: str = "",
    *,
    events_: int,
    publishers: int,
    consumers: int,
    every: float,
    at_least: int,
    most_kills: int | None = None,
    life: int = 10,
) -> str:
    db = open_database(url)
    migrate(db, ["patra.kernel", "patra.bus"])
    db.run(lambda tx: [tx.script(text) for text in TABLES])
    db.run(bus_of(OLD, nats_url).adopt)
    db.run(bus_of(OLD, nats_url).join)
    each = events_ // publishers
    total = each * publishers
    common = [str(life), url, nats_url, str(total)]
    jobs = [["publish", *common, str(n), str(each)] for n in range(publishers)]
    jobs += [["consume", *common] for _ in range(consumers)] + [["stage", *common]]
    jobs += [["carry", *common] for _ in range(2 if nats_url else 0)]
    started = time.monotonic()
    with Crew(MODULE, jobs, most_kills=most_kills) as crew:

        def missing() -> str:
            try:
                reached = db.read(lambda tx: tx.fetch(PLACES))[0][0]
            except Transient as error:
                return str(error)
            return "" if reached >= total else f"{reached} of {total} published"

        crew.kill_until(missing, every=every)
    seconds = time.monotonic() - started
    after = drain(db, nats_url, total)
    db.close()
    assert after or most_kills is not None, "nothing was published after the upgrade began: nothing is proved"
    assert crew.kills >= at_least, f"only {crew.kills} kills: nothing is proved"
    return f"{total} events, {after} after the upgrade began, {crew.kills} kills, {seconds:.0f} s"


def drain(db: Any, nats_url: str, total: int) -> int:
    """The upgrade is over: processes of the new version handle what is there.

    Nothing to do is not the end: what a killed process had leased is given out again only when its lease is over.
    """
    bus = joined(db, NEW, nats_url)
    turns = carrying(db, bus, nats_url) if nats_url else []
    turns += [dispatching(db, bus, group) for group in READERS]
    until = time.monotonic() + 120
    while True:
        try:
            if not sum(turn() for turn in turns) and not any(g.waiting for g in db.read(groups.totals)):
                return check(db, total)
        except (Transient, AssertionError):
            if time.monotonic() > until:
                raise
        time.sleep(0.02)


def check(db: Any, total: int) -> int:
    """Every group has every event that was published since it joined, once."""
    counts = {group: (rows, distinct) for group, rows, distinct in db.read(lambda tx: tx.fetch(COUNTS))}
    assert counts.get("first_only") == counts.get("both") == (total, total), counts
    seq = db.read(lambda tx: tx.fetch(JOINED_AT))[0][0]
    missed = db.read(lambda tx: tx.fetch(MISSED, {"seq": seq}))[0][0]
    assert missed == 0, f"{missed} events missed the group of the new version"
    rows, distinct = counts.get("second_only", (0, 0))  # the short form may be over before the upgrade begins
    assert rows == distinct, "an event had its effect twice"
    assert db.read(held_messages.counts) == []
    return int(db.read(lambda tx: tx.fetch(AFTER, {"seq": seq}))[0][0])


def bus_of(types: Any, nats_url: str) -> Bus:
    bus = Bus(types, SystemClock(), Outboxed() if nats_url else None)
    for group, versions in READERS.items():
        if types is NEW or group != "second_only":
            bus.consumer(TYPE, group=group, versions=versions)(_effect(group, set(types.types[TYPE].contracts)))
    if types is NEW:
        bus.translations.add(TYPE, 1, 2, lambda payload: {"key": payload["key"], "number": 1})
    return bus


def _effect(group: str, known: set[int]) -> Callable[[Tx, Any], None]:
    def handle(tx: Tx, event: Any) -> None:
        if event.envelope.version.major not in known:
            raise Poison("unknown_major", "the process has no contract of this version: it was to leave the event")
        tx.insert("prf_effect", [{"group_name": group, "event_id": event.event_id}])

    return handle


def joined(db: Any, types: Any, nats_url: str) -> Bus:
    """A process of some version begins: it adopts its catalogue where it may, and its groups join."""
    bus = bus_of(types, nats_url)

    def begin(tx: Tx) -> None:
        bus.adopt(tx)
        bus.join(tx)
        if types is NEW:
            tx.execute(JOINED, {"seq": events.last_seq(tx)})

    try:
        db.run(begin)
    except ConfigInvalid:  # the old version, after the new one was adopted
        db.run(bus.join)
    return bus


def dispatching(db: Any, bus: Bus, group: str) -> Callable[[], bool]:
    dispatcher = Dispatcher(db, bus, group)
    return lambda: dispatcher.run_once().busy


def carrying(db: Any, bus: Bus, nats_url: str) -> list[Callable[[], bool]]:
    stream = NatsStream(nats_url, seconds=2.0)
    sending, receiving = relay(db, stream, bus.clock), Receiver(db, bus, stream)
    return [lambda: bool(sending.run_once().groups), lambda: bool(receiving.run_once(0.02).received)]


class Behind(Exception):  # noqa: N818  what it is
    """A publisher was refused for its catalogue: it has to be upgraded."""


class Publisher:
    def __init__(self, db: Any, bus: Bus, number: int, each: int) -> None:
        self._db, self._bus, self._number, self._each = db, bus, number, each
        row = db.read(lambda tx: tx.fetch_one(PLACE, {"publisher": number}))
        self._next = row[0] if row else 0

    def run_once(self) -> bool:
        if self._next >= self._each:
            return False
        end = min(self._next + random.randint(1, 40), self._each)

        def work(tx: Tx) -> bool:
            made = [envelope(idempotency_key=f"{self._number}:{n}") for n in range(self._next, end)]
            for outcome in self._bus.publish_many(tx, made):
                if isinstance(outcome, Refused) and outcome.code in NOT_ADOPTED:
                    raise Behind
                assert isinstance(outcome, Published), outcome
            tx.execute(REACHED, {"publisher": self._number, "reached": end})
            return True

        self._db.run(work)
        self._next = end
        return True


def move_stage(db: Any, bus: Bus) -> bool:
    time.sleep(0.05)
    to = random.choice([Stage.SHADOW, Stage.DUAL, Stage.RETIRING])
    share = random.randint(1, 100)
    db.run(lambda tx: operations.set_stage(tx, bus, TYPE, to, by="proof", share=share))
    return True


def turns_of(job: str, db: Any, bus: Bus, nats_url: str, *arguments: str) -> list[Callable[[], bool]]:
    match job:
        case "publish":
            return [Publisher(db, bus, int(arguments[0]), int(arguments[1])).run_once]
        case "consume":
            return [dispatching(db, bus, group) for group in bus.groups()]
        case "carry":
            return carrying(db, bus, nats_url)
        case _:
            return [lambda: move_stage(db, bus)]


def work(job: str, most: str, url: str, nats_url: str, total: str, *arguments: str) -> None:
    life = Life(int(most))
    db = open_database(url, wait=60)
    turns: list[Callable[[], bool]] = []
    while True:
        try:
            if not turns:
                progress = db.read(lambda tx: tx.fetch(PLACES))[0][0] / int(total)
                types = NEW if random.random() < 3 * progress or progress > 0.9 else OLD
                turns = turns_of(job, db, joined(db, types, nats_url), nats_url, *arguments)
            busy = sum(turn() for turn in turns)
        except Behind:
            turns = []
            continue
        except Transient:
            time.sleep(0.1)
            continue
        if busy:
            life.turn()
        else:
            time.sleep(0.01)


if __name__ == "__main__":
    work(*sys.argv[1:])
