"""Whatever statement fails: the work is done again and ends in the same rows."""

from patra.bus import operations
from patra.bus.consuming.dead_letter import Filter
from patra.bus.dispatch.dispatcher import Dispatcher
from patra.bus.store import dead_letters, groups
from patra.kernel.clock import SECOND
from patra.kernel.db.queries import Statement
from tests.contract.bus.conftest import TYPES
from tests.contract.bus.site import EFFECTS, Site
from tests.support.examples import SCALE
from tests.support.faults import FaultyDatabase, InjectedFault
from tests.unit.bus.making import envelope

TABLES = Statement(
    name="tables",
    text={
        "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table' AND (name LIKE 'bus_%' OR name LIKE 'krn_%' OR name = 'effect')",
        "postgres": "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()",
    },
)


def scenario(site: Site, db) -> None:
    """Publish, handle, fail, bury, replay: each step again until it went through."""

    def again(work):
        for _ in range(3):
            try:
                return work()
            except InjectedFault:
                continue
        raise AssertionError("a fault came twice")

    def drained():
        """A new process each time, from its slow start on."""
        dispatcher = again(lambda: Dispatcher(db, site.bus, "one", jitter=lambda: 0.5))
        while again(dispatcher.run_once).busy:
            pass

    made = [
        envelope(
            "ordered.happened",
            {"key": key, "n": n},
            event_id=f"0190a1b2-0000-7000-8000-00000000000{i}",
            idempotency_key=str(i),
        )
        for i, (key, n) in enumerate([("a", 0), ("bad", 0), ("a", 1), ("bad", 1)])
    ]
    again(lambda: db.run(lambda tx: site.bus.publish_many(tx, made)))
    site.fail = {"bad"}
    for _ in range(9):
        drained()
        site.clock.advance(60 * SECOND)
    site.fail = set()
    again(
        lambda: db.run(lambda tx: operations.replay(tx, site.bus, "one", [made[1].event_id], by="ann", confirm="one"))
    )
    for _ in range(2):  # a fault right after a trial was written down leaves the event for a little later
        drained()
        site.clock.advance(60 * SECOND)


def outcome(site: Site):
    def look(tx):
        found = [x.letter for x in dead_letters.find(tx, Filter(state=None), limit=9)]
        rows = sorted((x.event_id, x.state, x.replay_count) for x in found)
        return sorted(tx.fetch(EFFECTS, {"group_name": "one"})), rows, [g.waiting for g in groups.totals(tx)]

    return site.db.read(look)


def emptied(db) -> Site:
    """A site on a store with its tables there and nothing in them."""
    site = Site(db, TYPES)
    tables = db.read(lambda tx: [name for (name,) in tx.fetch(TABLES)])
    if "effect" not in tables:
        site.effects_table()

    def clean(tx):
        for table in sorted(tables, key=lambda t: t == "bus_group"):  # what refers to it goes first
            if table != "krn_migration":
                tx.script(f"DELETE FROM {table}")

    db.run(clean)
    site.listen("one", "ordered.happened")
    return site


def test_a_fault_at_any_statement_changes_nothing_in_the_end(database):
    calm = emptied(database)
    counting = FaultyDatabase(database)
    scenario(calm, counting)
    expected = outcome(calm)
    assert [state for _, state, _ in expected[1]] == ["replayed", "open"]
    stride = (
        1 if database.dialect == "sqlite" else 4 // SCALE or 1
    )  # the statements are the same; a step costs more here
    for n in range(1, counting.steps + 1, stride):
        site = emptied(database)
        scenario(site, FaultyDatabase(database, fail_at=n))
        assert outcome(site) == expected, f"a fault at step {n}"
