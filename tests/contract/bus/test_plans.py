"""How statements are run does not hang on statistics, which of a queue are always of yesterday."""

import msgspec
import pytest

from patra.bus import operations
from patra.bus.consuming import freeze
from patra.bus.consuming.dead_letter import DEAD_LETTER, DeadLetterState, DeadLetterTransition
from patra.bus.dispatch.dispatcher import Dispatcher
from patra.bus.store import dead_letters, deliveries, events, groups
from patra.kernel.db import open_database
from patra.kernel.db.queries import statement
from tests.contract.bus.conftest import TYPES
from tests.contract.bus.site import Site
from tests.contract.kernel.test_outbox import explained
from tests.unit.bus.making import catalogue, dead_letter, envelope, event_type

MISLED = [
    statement(f"misled_{n}", f"SET LOCAL {name} = off") for n, name in enumerate(("enable_nestloop", "enable_seqscan"))
]
DUE = {"group_id": 1, "now": 2**60, "limit": 500}
BY_KEY = DUE | {"window": 4000, "group_shards": 1, "first": 0, "share": 64}


@pytest.mark.parametrize(("name", "params"), [("deliveries_due", DUE), ("deliveries_due_by_key", BY_KEY)])
def test_an_event_is_found_by_its_key_whatever_the_planner_believes(postgres_url, name, params):
    """With nested loops forbidden as far as they can be, any other way to join would be taken if there were one."""
    site = Site(open_database(postgres_url), TYPES)
    site.effects_table()
    site.listen("one")
    site.publish(*[envelope() for _ in range(50)])

    def plan(tx):
        for setting in MISLED:
            tx.execute(setting)
        return "\n".join(line for (line,) in tx.fetch(explained(deliveries.Q[name]), params))

    found = site.db.run(plan)
    site.db.close()
    assert "Merge Join" not in found, found
    assert "Hash Join" not in found or "bus_event" not in found.partition("Hash Join")[2], found
    assert "bus_event_pkey" in found, found


def test_retention_finds_what_waits_for_an_event_by_its_key(postgres_url):
    """With nested loops forbidden as far as they can be, any other way to join would be taken if there were one."""
    site = Site(open_database(postgres_url), TYPES)
    site.effects_table()
    site.listen("one")
    site.publish(*[envelope() for _ in range(50)])

    def plan(tx):
        tx.execute(MISLED[0])
        rows = [(n,) for n in range(1, 50)]
        return "\n".join(line for (line,) in tx.fetch(explained(events.Q["event_purge"]), rows=rows))

    found = site.db.run(plan)
    site.db.close()
    assert "Anti Join" not in found, found
    assert "Seq Scan on bus_delivery" not in found, found
    assert "bus_dead_letter_by_event" in found, found


def test_replays_are_handled_in_sets(database):
    """Statements of a step, beside those of the handler, do not grow with the replays that it handles."""
    many = catalogue(event_type(retry={"max_retries": 0}, dead_letter_threshold=100))
    site = Site(database, many)
    site.effects_table()
    site.listen("one")

    def statements(count):
        site.fail = {"bad"}
        made = [envelope(payload={"key": "bad"}) for _ in range(count)]
        site.publish(*made)
        site.pump()
        site.fail = set()
        site.run(operations.replay, "one", [one.event_id for one in made], by="ann", confirm="one")
        asked = []

        class Counting:
            def __init__(self, tx):
                self._tx = tx

            def __getattr__(self, name):
                return getattr(self._tx, name)

            def fetch(self, statement, *args, **more):
                asked.append(statement.name)
                return self._tx.fetch(statement, *args, **more)

            def execute(self, statement, *args, **more):
                asked.append(statement.name)
                return self._tx.execute(statement, *args, **more)

            def insert_tuples(self, table, *args):
                asked.append(table)
                return self._tx.insert_tuples(table, *args)

        step = Dispatcher(site.db, site.bus, "one", slow_start=False)
        done = site.db.run(lambda tx: step._step(Counting(tx), careful=False))
        assert done.handled == count
        return asked

    assert statements(20) == statements(2)


def test_counting_a_group_stops_at_a_bound(database, monkeypatch):
    site = Site(database, TYPES)
    site.effects_table()
    site.listen("one")
    site.publish(*[envelope() for _ in range(7)])
    assert [g.waiting for g in site.db.read(groups.totals)] == [7]
    monkeypatch.setattr(groups, "MAX_COUNTED_EVENTS", 5)
    assert [g.waiting for g in site.db.read(groups.totals)] == [5]


def test_dead_letters_that_wait_are_counted_by_an_index_up_to_a_bound(database):
    site = Site(database, TYPES)
    site.db.run(lambda tx: dead_letters.write(tx, [dead_letter(n) for n in range(7)]))
    now = site.clock.now()
    moves = [
        DEAD_LETTER.move(f"one/e{n}", DeadLetterState.OPEN, DeadLetterTransition.REPLAY, reason="asked", at=now)
        for n in range(2)
    ]
    site.db.run(lambda tx: dead_letters.move(tx, moves))
    assert site.db.read(dead_letters.waiting) == {DeadLetterState.OPEN: 5, DeadLetterState.REPLAYING: 2}
    assert site.db.read(lambda tx: dead_letters.waiting(tx, 3)) == {
        DeadLetterState.OPEN: 3,
        DeadLetterState.REPLAYING: 2,
    }

    def plan(tx):
        known = dead_letters.Q["letters_waiting"]
        if tx.dialect == "postgres":
            tx.execute(MISLED[1])
            asked = explained(known)
        else:
            asked = statement("plan", f"EXPLAIN QUERY PLAN {known.text['sqlite']}")
        return "\n".join(str(row[-1]) for row in tx.fetch(asked, {"most": 3}))

    found = site.db.run(plan)
    searched = {
        "sqlite": ("USING COVERING INDEX bus_dead_letter_by_time (state=?)", 2),
        "postgres": ("using bus_dead_letter_by_time on", 1),  # one plan for both
    }
    index, times = searched[site.db.dialect]
    assert found.count(index) == times, found


COUNTED_LETTERS = [
    (dead_letters.Q["backlog"], {"event_type": "thing.happened", "most": 100}, "bus_dead_letter_freezing"),
    (dead_letters.Q["backlogs"], {"most": 100_000}, "bus_dead_letter_backlog"),
    (dead_letters.Q["letters_waiting"], {"most": 100_000}, "bus_dead_letter_by_time"),
    (groups.Q["group_totals"], {"most": 100_000}, "bus_dead_letter_by_group"),
]


@pytest.mark.parametrize(("known", "params", "index"), COUNTED_LETTERS, ids=[one[0].name for one in COUNTED_LETTERS])
def test_dead_letters_are_counted_by_an_index_whatever_the_planner_believes(database, known, params, index):
    """Statistics that are right for the endpoint that has them all: of others there are none, and a scan reads all."""
    site = Site(database, TYPES)
    site.effects_table()
    site.listen("one")
    made = [
        msgspec.structs.replace(dead_letter(n), group_name="webhook.away", letter_id=f"webhook.away/e{n}")
        for n in range(3000)
    ]
    site.db.run(lambda tx: dead_letters.write(tx, made))
    if site.db.dialect == "postgres":
        site.db.run(lambda tx: tx.script("ANALYZE bus_dead_letter"))
        found = "\n".join(line for (line,) in site.db.read(lambda tx: tx.fetch(explained(known), params)))
        assert "Seq Scan on bus_dead_letter" not in found, found
    else:
        asked = statement("plan", f"EXPLAIN QUERY PLAN {known.text['sqlite']}")
        found = "\n".join(str(row[-1]) for row in site.db.read(lambda tx: tx.fetch(asked, params)))
        assert "SCAN bus_dead_letter" not in found, found
    assert index in found, found
    assert site.db.read(lambda tx: dead_letters.backlog(tx, "thing.happened")) == 0
    assert site.db.read(dead_letters.backlogs) == {"thing.happened": 3000}
    assert site.db.read(lambda tx: dead_letters.backlogs(tx, 7)) == {"thing.happened": 7}
    assert [one.dead for one in site.db.read(groups.totals)] == [0]


def test_a_dead_letter_counts_its_backlog_no_further_than_it_decides(database, monkeypatch):
    """Each of a million failures in a row would else count all those before it."""
    limited = catalogue(event_type(retry={"max_retries": 0}, dead_letter_threshold=3))
    site = Site(database, limited)
    site.effects_table()
    site.listen("one")
    site.db.run(lambda tx: dead_letters.write(tx, [dead_letter(n) for n in range(2000)]))
    asked = []
    counted = dead_letters.backlog

    def noted(tx, event_type, most=dead_letters.ALL):
        asked.append((most, counted(tx, event_type, most)))
        return asked[-1][1]

    monkeypatch.setattr(dead_letters, "backlog", noted)
    site.fail = {"bad"}
    site.publish(*[envelope(payload={"key": "bad"}) for _ in range(2)])
    site.pump(batch=1)
    most = 3 + freeze.MAX_NAMED_OVER
    assert asked == [(most, most), (1, 1)]
    assert [one.state for one in site.db.read(dead_letters.freezes)] == [freeze.FreezeState.FROZEN]
    assert site.db.read(lambda tx: counted(tx, "thing.happened")) == 2002


def test_what_fails_and_what_is_held_is_counted_without_walking_all_that_waits(database):
    site = Site(database, TYPES)
    site.effects_table()
    site.listen("one")
    site.publish(*[envelope() for _ in range(7)])

    def plan(tx):
        known = groups.Q["group_totals"]
        if tx.dialect == "postgres":
            asked = explained(known)
        else:
            asked = statement("plan", f"EXPLAIN QUERY PLAN {known.text['sqlite']}")
        return "\n".join(str(row[-1]) for row in tx.fetch(asked, {"most": 3}))

    found = site.db.run(plan)
    assert "bus_delivery_failing" in found, found
    assert "bus_delivery_held" in found, found


def test_a_group_that_has_nothing_is_counted_without_reading_what_waits_for_another(postgres_url):
    """Statistics know only the group that has everything: whatever they say of the other, no scan is the cheaper way."""
    site = Site(open_database(postgres_url), TYPES)
    site.effects_table()
    site.listen("one")
    site.listen("two")
    site.publish(envelope())
    text = f"""INSERT INTO bus_delivery (group_id, seq, due_at, attempts, state)
      SELECT (SELECT min(group_id) FROM bus_group), {2**40} + n, 0, 1, 'held' FROM generate_series(1, 20000) n"""
    site.db.run(lambda tx: tx.script(f"{text}; ANALYZE bus_delivery"))
    try:
        lines = site.db.read(lambda tx: tx.fetch(explained(groups.Q["group_totals"]), {"most": 100_000}))
        found = "\n".join(line for (line,) in lines)
        assert "Seq Scan on bus_delivery" not in found, found
        assert {one.name: (one.waiting, one.failing, one.held) for one in site.db.read(groups.totals)} == {
            "one": (20_001, 20_000, 20_000),
            "two": (1, 0, 0),
        }
    finally:
        site.db.close()
