"""Two weeks of a source whose records appear late, change without a new update time, and are taken back.

At the end of each day what is stored equals the provider's truth, within what the pack declares: a harvest by the update
time, `onEqual: CONTENT`, a mark for deleted records, and a schedule that reads the last seven days again.
"""

import random
from bisect import bisect_left, insort

import msgspec

from patra.ingest.operations.coverage import coverage
from patra.ingest.operations.rereads import words
from patra.ingest.packs.schema import Schedule
from patra.ingest.planning.schedule import Scheduled, due_ticks
from patra.ingest.vocabulary.codes import Operation
from patra.kernel.clock import DAY, HOUR
from patra.kernel.db import Database
from patra.kernel.testing import ManualClock
from tests.contract.ingest.running.world import T0, World, pack
from tests.support.hostile_provider import Item, Provider, serving

DAYS = 14
FEW_DAYS = 4  # on PostgreSQL: the rule is the same, and a server is slower
GONE = "DELETED"
DECLARED = ("endpoint", "operation", "cron", "last", "reread", "enabled")
REREAD = Scheduled(
    source="hostile",
    name="reread",
    schedule=Schedule(endpoint="search", operation=Operation.BACKFILL, cron="30 0 * * *", last="P7D", reread=True),
)


class _Living(Provider):
    """A provider whose records are edited from outside."""

    def put(self, item: Item) -> None:
        with self._lock:
            if (old := self._by_id.get(item.id)) is not None:
                del self._items[bisect_left(self._items, old)]
            insort(self._items, item)
            self._by_id[item.id] = item

    def titles(self) -> dict[str, str]:
        with self._lock:
            return {item.id: item.title for item in self._items}

    def since(self, at: int) -> list[Item]:
        with self._lock:
            return [item for item in self._items if item.updated >= at and item.title != GONE]


def a_day(provider: _Living, chance: random.Random, day: int) -> None:
    """New records, two that come late, two that change under their old time, one that is taken back."""
    start = T0 + day * DAY
    for number in range(6):
        provider.put(Item(start + chance.randrange(DAY), f"{day:02}-{number}", "new"))
    for number in range(2):
        at = max(start - chance.randrange(1, 5) * DAY, T0) + chance.randrange(DAY)
        provider.put(Item(at, f"{day:02}-late-{number}", "late"))
    recent = provider.since(start - 5 * DAY)
    for item in chance.sample(recent, 2):
        provider.put(Item(item.updated, item.id, f"{item.title}, edited on day {day}"))
    gone = chance.choice(provider.since(start - 5 * DAY))
    provider.put(Item(gone.updated, gone.id, GONE))


def stored(w: World) -> dict[str, str]:
    deleted = {key for (key,) in w.rows("SELECT provider_id FROM ing_record WHERE deleted = 1")}
    return {key: GONE if key in deleted else found["fields"]["title"] for key, found in w.contents().items()}


def test_what_is_stored_equals_the_truth_at_the_end_of_each_day(database: Database) -> None:
    provider, clock, chance = _Living([]), ManualClock(T0), random.Random(11)
    with serving(provider) as url:
        w = World(database, provider, url, clock)
        try:
            marks = {"onEqual": "CONTENT", "deletedPath": "$.title", "deletedValues": [GONE]}
            made = pack(url, "TOKEN", response=marks, window={"maxWindow": "P7D"})
            days = DAYS if database.read(lambda tx: tx.dialect) == "sqlite" else FEW_DAYS
            off = {**msgspec.to_builtins(REREAD.schedule), "enabled": False}
            w.load({**made, "schedules": {"reread": {name: off[name] for name in DECLARED}}})
            never = database.read(lambda tx: coverage(tx, "hostile")).rereads
            [said] = [words(one, "hostile") for one in never]
            assert said.startswith("schedule reread (reads the last P7D of search again) is off")
            assert "`patra ingest schedule enable hostile/reread`" in said
            late: list[int] = []
            for day in range(days):
                a_day(provider, chance, day)
                clock.set(T0 + (day + 1) * DAY + HOUR)
                w.trigger(since=None, until=None)
                w.drain()
                late.append(len(set(provider.titles().items()) - set(stored(w).items())))
                [again] = due_ticks(REREAD, None, clock.now())
                assert again.trigger is not None
                w.planner.trigger(again.trigger)
                w.drain()
                assert stored(w) == provider.titles(), f"day {day}"
            assert sum(late) > days  # the harvest alone would have missed these
            [counted] = database.read(lambda tx: coverage(tx, "hostile")).rereads
            assert (counted.last, counted.open, counted.found_late + counted.changed) == ("P7D", 0, sum(late))
            assert counted.windows >= days
            assert f"{counted.found_late} records came late" in words(counted, "hostile")
        finally:
            w.close()
